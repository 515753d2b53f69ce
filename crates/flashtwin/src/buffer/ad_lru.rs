//! AD-LRU: clean pages first, from the list of pages referenced once (policies.md A10; Jin et al.
//! 2012).
//!
//! Lc holds pages referenced once, Lh those referenced again; each knows its least recent clean page
//! FC. Insert -> Lc; hit -> most recent end of Lh, cold flag 0. The victim comes from Lc if that
//! holds more than min_lc pages, else from Lh: FC if there is one; else from the least recent page,
//! all being dirty: cold -> victim; not cold -> cold, most recent end of the same list.
//!
//! Filtered by GCaR, the search for a clean page goes from FC towards the most recent end.

use super::clock::{flagged_text, set};
use super::order::Ages;
use super::passed::Passed;
use super::policy::{Access, DeviceView, Eviction, Policy, Spare};
use super::{List, PageId, Setup};
use crate::memory::prefetch;

/// Lc or Lh. The clean pages stand in a second list in the same order.
#[derive(Clone, Debug)]
struct Half {
    all: List,
    clean: List,
    /// Of all pages.
    ages: Ages,
    /// What GCaR's searches have passed over in the two lists.
    passed: Passed,
    passed_clean: Passed,
}

impl Half {
    fn new(setup: &Setup) -> Half {
        Half {
            all: List::default(),
            clean: List::default(),
            ages: Ages::new(setup.capacity),
            passed: Passed::new(setup.chips),
            passed_clean: Passed::new(setup.chips),
        }
    }

    fn push_newest(&mut self, page: PageId, dirty: bool) {
        self.all.push_newest(page);
        self.ages.push(page, self.all.iter_oldest_first());
        self.passed.follow(&self.ages);
        self.passed_clean.follow(&self.ages);
        if !dirty {
            self.clean.push_newest(page);
        }
    }

    fn remove(&mut self, page: PageId, dirty: bool) {
        if !dirty {
            self.passed_clean.leave(page, &self.clean, &self.ages);
            self.clean.remove(page);
        }
        self.passed.leave(page, &self.all, &self.ages);
        self.all.remove(page);
        self.ages.remove(page);
    }

    fn cleaned(
        &mut self,
        device: &dyn DeviceView,
        page: PageId,
        is_clean: impl Fn(PageId) -> bool,
    ) {
        // Its place on the clean list: just newer than the next older clean page.
        let older = std::iter::successors(self.all.older(page), |&p| self.all.older(p))
            .find(|&p| is_clean(p));
        self.clean.insert_newer_than(older, page);
        self.passed_clean.enter(page, device, &self.ages);
    }

    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.passed.moved(page, device, &self.ages);
        self.passed_clean.moved(page, device, &self.ages);
    }

    /// FC, or the next clean page after it that is not spared. Counts the entries on the way.
    fn clean_victim(
        &mut self,
        device: &dyn DeviceView,
        spare: Spare,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let fc = self.clean.oldest()?;
        if !spare.page(device, fc) {
            out.inspected += 1;
            return Some(fc);
        }
        let (clean, ages) = (&self.clean, &mut self.ages);
        let found = (self.passed_clean).oldest_not(device, spare, clean, ages, |_, _, _| ());
        let last = found.map_or(self.all.len() as u64, |page| ages.position(page));
        out.inspected += last + 1 - ages.position(fc);
        out.spared = true;
        found
    }

    /// The least recent page that is not spared. Counts the entries from that end to it.
    fn oldest_not(
        &mut self,
        device: &dyn DeviceView,
        spare: Spare,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let oldest = self.all.oldest()?;
        if !spare.page(device, oldest) {
            out.inspected += 1;
            return Some(oldest);
        }
        let (all, ages) = (&self.all, &mut self.ages);
        let found = (self.passed).oldest_not(device, spare, all, ages, |_, _, _| ());
        out.inspected += found.map_or(all.len() as u64, |page| ages.position(page));
        out.spared = true;
        found
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// In Lh.
    hot: bool,
    /// The cold flag.
    cold: bool,
    dirty: bool,
}

/// Adaptive double LRU.
#[derive(Clone, Debug)]
pub struct AdLru {
    min_lc: usize,
    /// Lc and Lh.
    halves: [Half; 2],
    pages: Vec<Page>,
}

impl AdLru {
    /// Lc is left alone at `setup.params.min_lc_pages`.
    pub fn new(setup: &Setup) -> AdLru {
        AdLru {
            min_lc: setup.params.min_lc_pages as usize,
            halves: [Half::new(setup), Half::new(setup)],
            pages: Vec::new(),
        }
    }

    /// The victim in Lc or Lh.
    fn search(
        &mut self,
        half: usize,
        device: &dyn DeviceView,
        spare: Spare,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let half = &mut self.halves[half];
        if let Some(page) = half.clean_victim(device, spare, out) {
            return Some(page);
        }
        let mut looked = out.inspected;
        loop {
            // Counts the pages passed over, which are those older than the page found.
            out.inspected = looked;
            let page = half.oldest_not(device, spare, out)?;
            let cold = &mut self.pages[page.0 as usize].cold;
            if std::mem::replace(cold, true) {
                return Some(page);
            }
            half.remove(page, true);
            half.push_newest(page, true);
            looked += 1;
        }
    }
}

impl Policy for AdLru {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let dirty = access.dirty;
        let state = Page {
            dirty,
            ..Page::default()
        };
        set(&mut self.pages, page, state);
        self.halves[0].push_newest(page, dirty);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        self.forget(page);
        let dirty = access.dirty;
        self.pages[page.0 as usize] = Page {
            hot: true,
            cold: false,
            dirty,
        };
        self.halves[1].push_newest(page, dirty);
    }

    fn forget(&mut self, page: PageId) {
        let state = self.pages[page.0 as usize];
        self.halves[usize::from(state.hot)].remove(page, state.dirty);
    }

    fn cleaned(&mut self, device: &dyn DeviceView, page: PageId) {
        let state = &mut self.pages[page.0 as usize];
        let half = usize::from(state.hot);
        if std::mem::take(&mut state.dirty) {
            self.halves[half].cleaned(device, page, |p| !self.pages[p.0 as usize].dirty);
        }
    }

    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        let state = self.pages[page.0 as usize];
        self.halves[usize::from(state.hot)].moved(device, page);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        let [lc, lh] = &self.halves;
        let from_lc = lc.all.len() > self.min_lc || lh.all.is_empty();
        let (first, second) = if from_lc { (0, 1) } else { (1, 0) };
        let found = (self.search(first, device, spare, out))
            .or_else(|| self.search(second, device, spare, out));
        let Some(page) = found else { return false };
        self.forget(page);
        out.victims.push(page);
        true
    }

    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        let [lc, lh] = &self.halves;
        let half = match lc.all.len() > self.min_lc {
            true => lc,
            false => lh,
        };
        match half.clean.is_empty() {
            true => half.all.oldest_three(),
            false => half.clean.oldest_three(),
        }
    }

    #[inline]
    fn expect(&self, page: PageId, near: bool) {
        if !near {
            prefetch(&self.pages, page.0 as usize);
        }
        for half in &self.halves {
            half.all.expect(page, near);
            half.clean.expect(page, near);
            half.ages.expect(page, near);
        }
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let [lc, lh] = self.halves.each_ref().map(|half| {
            flagged_text(device, half.all.iter_oldest_first(), |page| {
                self.pages[page.0 as usize].cold.into()
            })
        });
        format!("Lc[{lc}] Lh[{lh}]")
    }
}
