//! LRU: one list for clean and dirty pages (policies.md A1; GCaR Fig. 4).
//!
//! hit -> most recent end; miss -> insert there; victim = the least recent page, whatever its state.

use super::{DeviceView, List, PageId, Policy};

/// Least recently used.
#[derive(Clone, Debug, Default)]
pub struct Lru {
    list: List,
}

impl Policy for Lru {
    #[inline]
    fn insert(&mut self, page: PageId, _dirty: bool) {
        self.list.push_newest(page);
    }

    #[inline]
    fn touch(&mut self, page: PageId, _dirty: bool) {
        self.list.remove(page);
        self.list.push_newest(page);
    }

    #[inline]
    fn remove(&mut self, page: PageId) {
        self.list.remove(page);
    }

    fn cleaned(&mut self, _page: PageId) {}

    #[inline]
    fn victim<V: DeviceView>(
        &mut self,
        _device: &V,
        mut accept: impl FnMut(PageId) -> bool,
    ) -> Option<PageId> {
        self.list.iter_oldest_first().find(|&page| accept(page))
    }

    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        self.list.oldest_three()
    }

    fn order(&self) -> Vec<PageId> {
        let mut pages: Vec<PageId> = self.list.iter_oldest_first().collect();
        pages.reverse();
        pages
    }
}
