//! LRU: one list for clean and dirty pages (policies.md A1; GCaR Fig. 4).
//!
//! hit -> most recent end; miss -> insert there; victim = the least recent page, whatever its state.

use super::policy::{pages_text, Access, DeviceView, Eviction, Policy, Spare};
use super::{Aged, PageId, Setup};

/// Least recently used.
#[derive(Clone, Debug)]
pub struct Lru {
    list: Aged,
}

impl Lru {
    /// An empty list.
    pub fn new(setup: &Setup) -> Lru {
        Lru {
            list: Aged::new(setup),
        }
    }
}

impl Policy for Lru {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        self.list.push_newest(page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        self.list.renew(page);
    }

    fn forget(&mut self, page: PageId) {
        self.list.remove(page);
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.list.moved(device, page);
    }

    #[inline]
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        let Some(page) = self.list.oldest_not(device, spare, out) else {
            return false;
        };
        self.list.remove(page);
        out.victims.push(page);
        true
    }

    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        self.list.next_three()
    }

    #[inline]
    fn expect(&self, page: PageId, near: bool) {
        self.list.expect(page, near);
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        pages_text(device, self.list.list().iter_oldest_first())
    }
}
