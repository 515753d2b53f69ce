//! GCaR: a filter over the victim search of any base policy (policies.md A12; GCaR Algorithms 1, 2).
//!
//! victim = the base policy's first choice among the pages whose chip is not in GC; if every cached
//! page is on a chip in GC, the base policy's own choice (fallback `base`, D-11), counted.
//! Hit and insert are the base's. Nothing is stored per page: the state of the chips is looked at
//! when a victim is needed (GCaR section 3.3).

use super::policy::{Access, DeviceView, Eviction, Policy, Spare, Stream};
use super::PageId;
use crate::units::{ChipId, Lpn};

/// GC-aware replacement over `P`.
#[derive(Clone, Debug)]
pub struct Gcar<P> {
    base: P,
    spare: Spare,
    protected: u64,
    fallbacks: u64,
}

impl<P> Gcar<P> {
    /// Filters the victims of `base`; with `lookahead` also pages of chips close to GC are spared
    /// (D-4).
    pub fn new(base: P, lookahead: bool) -> Gcar<P> {
        Gcar {
            base,
            spare: if lookahead { Spare::GcSoon } else { Spare::Gc },
            protected: 0,
            fallbacks: 0,
        }
    }

    /// No filter: `base` as it is.
    pub fn off(base: P) -> Gcar<P> {
        Gcar {
            spare: Spare::Nobody,
            ..Gcar::new(base, false)
        }
    }
}

impl<P: Policy> Policy for Gcar<P> {
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        _spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        if self.spare == Spare::Nobody {
            return self.base.evict(device, incoming, Spare::Nobody, out);
        }
        if self.spare == Spare::Gc && device.chips_in_gc().is_empty() {
            return self.base.evict(device, incoming, Spare::Nobody, out);
        }
        if self.base.evict(device, incoming, self.spare, out) {
            self.protected += out.spared as u64;
            return true;
        }
        // The second search passes over no chip.
        let spared = std::mem::take(&mut out.spared);
        let fell_back = self.base.evict(device, incoming, Spare::Nobody, out);
        self.protected += (fell_back && spared) as u64;
        self.fallbacks += fell_back as u64;
        fell_back
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.base.counters();
        if self.spare != Spare::Nobody {
            counters.push(("gcar_protected", self.protected));
            counters.push(("gcar_fallbacks", self.fallbacks));
        }
        counters
    }

    fn reset_counters(&mut self) {
        self.base.reset_counters();
        (self.protected, self.fallbacks) = (0, 0);
    }

    // All else is the base's.
    #[inline]
    fn admits(&self, access: &Access) -> bool {
        self.base.admits(access)
    }
    #[inline]
    fn insert(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        self.base.insert(device, page, access);
    }
    #[inline]
    fn hit(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        self.base.hit(device, page, access);
    }
    fn forget(&mut self, page: PageId) {
        self.base.forget(page);
    }
    fn cleaned(&mut self, device: &dyn DeviceView, page: PageId) {
        self.base.cleaned(device, page);
    }
    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.base.moved(device, page);
    }
    fn wants_idle(&self) -> bool {
        self.base.wants_idle()
    }
    fn idle(
        &mut self,
        device: &dyn DeviceView,
        chip: ChipId,
        in_flight: u32,
        busy: &dyn Fn(PageId) -> bool,
    ) -> Option<PageId> {
        self.base.idle(device, chip, in_flight, busy)
    }
    #[inline]
    fn stream(&self, page: PageId) -> Stream {
        self.base.stream(page)
    }
    fn arrives(&mut self, lpn: Lpn) {
        self.base.arrives(lpn);
    }
    fn read_cache_changed(&mut self, lpn: Lpn, present: bool) {
        self.base.read_cache_changed(lpn, present);
    }
    #[inline]
    fn expect(&self, page: PageId, near: bool) {
        self.base.expect(page, near)
    }
    fn wants_hints(&self) -> bool {
        self.base.wants_hints()
    }
    #[inline]
    fn expect_lpn(&self, lpn: Lpn, leaves: bool) {
        self.base.expect_lpn(lpn, leaves)
    }
    #[inline]
    fn expect_lpn_near(&self, lpn: Lpn) {
        self.base.expect_lpn_near(lpn)
    }
    #[inline]
    fn expect_last(&self, lpn: Lpn, page: Option<PageId>) {
        self.base.expect_last(lpn, page)
    }
    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        self.base.next_victims()
    }
    #[inline]
    fn next_of_block(&self, after: Option<PageId>) -> Option<PageId> {
        self.base.next_of_block(after)
    }
    fn state(&self, device: &dyn DeviceView) -> String {
        self.base.state(device)
    }
}
