//! GCaR: a filter over the victim search of any base policy (policies.md A12; GCaR Algorithms 1, 2).
//!
//! victim = the base policy's first choice among the pages whose chip is not in GC; if every cached
//! page is on a chip in GC, the base policy's own choice (fallback `base`, D-11), counted.
//! Hit and insert are the base's. Nothing is stored per page: the state of the chips is looked at
//! when a victim is needed (GCaR section 3.3).

use super::{DeviceView, PageId, Policy};

/// GC-aware replacement over `P`.
#[derive(Clone, Debug)]
pub struct Gcar<P> {
    base: P,
    protected: u64,
    fallbacks: u64,
}

impl<P> Gcar<P> {
    /// Filters the victims of `base`.
    pub fn new(base: P) -> Gcar<P> {
        Gcar {
            base,
            protected: 0,
            fallbacks: 0,
        }
    }
}

impl<P: Policy> Policy for Gcar<P> {
    #[inline]
    fn insert(&mut self, page: PageId, dirty: bool) {
        self.base.insert(page, dirty);
    }

    #[inline]
    fn touch(&mut self, page: PageId, dirty: bool) {
        self.base.touch(page, dirty);
    }

    #[inline]
    fn remove(&mut self, page: PageId) {
        self.base.remove(page);
    }

    fn cleaned(&mut self, page: PageId) {
        self.base.cleaned(page);
    }

    fn victim<V: DeviceView>(
        &mut self,
        device: &V,
        mut accept: impl FnMut(PageId) -> bool,
    ) -> Option<PageId> {
        let (in_gc, chips) = device.chips_in_gc();
        let mut skipped = 0;
        if in_gc < chips {
            let found = self.base.victim(device, |page| {
                let on_gc_chip =
                    in_gc > 0 && device.chip(page).is_some_and(|chip| device.in_gc(chip));
                skipped += on_gc_chip as u64;
                !on_gc_chip && accept(page)
            });
            self.protected += (skipped > 0) as u64;
            if found.is_some() {
                return found;
            }
        }
        let fallback = self.base.victim(device, accept);
        self.fallbacks += fallback.is_some() as u64;
        fallback
    }

    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        self.base.next_victims()
    }

    fn order(&self) -> Vec<PageId> {
        self.base.order()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.base.counters();
        counters.push(("gcar_protected", self.protected));
        counters.push(("gcar_fallbacks", self.fallbacks));
        counters
    }

    fn reset_counters(&mut self) {
        self.base.reset_counters();
        (self.protected, self.fallbacks) = (0, 0);
    }
}
