//! CCF-LRU: cold clean pages leave first (policies.md A9; Li et al. 2009).
//!
//! Two recency lists: CCL, cold clean pages; ML, all others. Cold = referenced once.
//! Read miss -> CCL, write miss -> ML, both cold. Hit -> most recent end of ML, not cold.
//! Victim: the least recent page of CCL. If there is none, from the least recent page of ML: cold ->
//! victim; dirty -> cold, most recent end of ML; clean -> cold, most recent end of CCL. If ML runs
//! empty, the least recent page of CCL: until then those just put there are left alone.

use super::clock::{flagged_text, second_chance, set};
use super::policy::{Access, DeviceView, Eviction, Policy, Spare};
use super::{Aged, PageId, Setup};
use crate::memory::prefetch;

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    in_ccl: bool,
    cold: bool,
    dirty: bool,
}

/// Cold-clean-first LRU.
#[derive(Clone, Debug)]
pub struct CcfLru {
    ml: Aged,
    ccl: Aged,
    pages: Vec<Page>,
}

impl CcfLru {
    /// Empty lists.
    pub fn new(setup: &Setup) -> CcfLru {
        CcfLru {
            ml: Aged::new(setup),
            ccl: Aged::new(setup),
            pages: Vec::new(),
        }
    }

    fn list(&mut self, page: PageId) -> &mut Aged {
        match self.pages[page.0 as usize].in_ccl {
            true => &mut self.ccl,
            false => &mut self.ml,
        }
    }

    /// The victim in ML, if there is one; hot clean pages met on the way go to CCL.
    fn search_ml(
        &mut self,
        device: &dyn DeviceView,
        spare: Spare,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let (ccl, pages) = (&mut self.ccl, &mut self.pages);
        second_chance(&mut self.ml, device, spare, out, |ml, page| {
            let state = &mut pages[page.0 as usize];
            if state.cold {
                return false;
            }
            state.cold = true;
            if state.dirty {
                ml.renew(page);
            } else {
                state.in_ccl = true;
                ml.remove(page);
                ccl.push_newest(page);
            }
            true
        })
    }
}

impl Policy for CcfLru {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let state = Page {
            in_ccl: !access.dirty,
            cold: true,
            dirty: access.dirty,
        };
        set(&mut self.pages, page, state);
        self.list(page).push_newest(page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let state = &mut self.pages[page.0 as usize];
        let in_ccl = std::mem::take(&mut state.in_ccl);
        state.cold = false;
        state.dirty = access.dirty;
        if in_ccl {
            self.ccl.remove(page);
            self.ml.push_newest(page);
        } else {
            self.ml.renew(page);
        }
    }

    fn forget(&mut self, page: PageId) {
        self.list(page).remove(page);
    }

    fn cleaned(&mut self, _device: &dyn DeviceView, page: PageId) {
        self.pages[page.0 as usize].dirty = false;
    }

    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.list(page).moved(device, page);
    }

    #[inline]
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        let found = (self.ccl.oldest_not(device, spare, out))
            .or_else(|| self.search_ml(device, spare, out))
            .or_else(|| self.ccl.oldest_not(device, spare, out));
        let Some(page) = found else { return false };
        self.forget(page);
        out.victims.push(page);
        true
    }

    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        match self.ccl.list().is_empty() {
            true => self.ml.list().oldest_three(),
            false => self.ccl.list().oldest_three(),
        }
    }

    #[inline]
    fn expect(&self, page: PageId, near: bool) {
        if !near {
            prefetch(&self.pages, page.0 as usize);
        }
        self.ml.expect(page, near);
        self.ccl.expect(page, near);
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let text = |list: &Aged| {
            flagged_text(device, list.list().iter_oldest_first(), |page| {
                self.pages[page.0 as usize].cold.into()
            })
        };
        format!("ML[{}] CCL[{}]", text(&self.ml), text(&self.ccl))
    }
}
