//! CFLRU: clean first within a window at the least recent end (policies.md A2).
//!
//! hit, insert: as LRU. Victim: the least recent clean page among the `window` least recent pages;
//! if none of them is clean, the least recent page. Filtered by GCaR (A12): the first clean page of
//! the window off the chips in GC, else the first page of the whole list off them (D-12).
//!
//! The window is positional. Its clean pages stand in a second list, so that a victim is found
//! without a scan: a page enters the window when another leaves it, at the window's recent end, and
//! leaves it only by a hit or an eviction.

use super::order::{Ages, ChipLists};
use super::policy::{pages_text, Access, DeviceView, Eviction, Policy, Spare};
use super::{List, PageId, Setup};
use crate::units::ChipId;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Working,
    /// In the window; on the clean list or not.
    Window { clean: bool },
}

/// Clean-first LRU.
#[derive(Clone, Debug)]
pub struct Cflru {
    window: usize,
    list: List,
    ages: Ages,
    /// Per page: where it stands, and whether it is dirty.
    pages: Vec<(Place, bool)>,
    in_window: usize,
    /// The most recent page of the window.
    boundary: Option<PageId>,
    clean_in_window: List,
    /// All pages, and the clean ones of the window, by chip: only where GCaR filters.
    by_chip: Option<(ChipLists, ChipLists)>,
}

impl Cflru {
    /// A clean-first region of `setup.params.window_pages`.
    pub fn new(setup: &Setup) -> Cflru {
        Cflru::with_window(setup, setup.params.window_pages)
    }

    /// CFLRU-epsilon: the clean-first region is the whole buffer (ECR section 4.2).
    pub fn whole(setup: &Setup) -> Cflru {
        Cflru::with_window(setup, setup.capacity)
    }

    fn with_window(setup: &Setup, window_pages: u32) -> Cflru {
        let lists = || ChipLists::new(setup.chips);
        Cflru {
            window: window_pages as usize,
            list: List::default(),
            ages: Ages::new(setup.capacity),
            pages: Vec::new(),
            in_window: 0,
            boundary: None,
            clean_in_window: List::default(),
            by_chip: setup.filtered.then(|| (lists(), lists())),
        }
    }

    /// Lets the next page of the working region into the window if there is room.
    fn refill(&mut self) {
        if self.in_window == self.window {
            return;
        }
        let next = match self.boundary {
            Some(boundary) => self.list.newer(boundary),
            None => self.list.oldest(),
        };
        let Some(page) = next else { return };
        let dirty = self.pages[page.0 as usize].1;
        self.pages[page.0 as usize].0 = Place::Window { clean: !dirty };
        if !dirty {
            self.clean_in_window.push_newest(page);
            if let Some((all, clean)) = &mut self.by_chip {
                clean.push_newest(page, all.chip_of(page), &self.ages);
            }
        }
        self.in_window += 1;
        self.boundary = Some(page);
    }

    fn push(&mut self, page: PageId, dirty: bool, chip: Option<ChipId>) {
        self.pages[page.0 as usize] = (Place::Working, dirty);
        self.list.push_newest(page);
        self.ages.push(&self.list, page);
        if let Some((all, clean)) = &mut self.by_chip {
            all.push_newest(page, chip, &self.ages);
            clean.follow(&self.ages);
        }
        self.refill();
    }

    /// The victim, and the entries a scan looks at on the way to it.
    fn choose(&self, device: &dyn DeviceView, spare: Spare) -> (Option<PageId>, u64) {
        if let Some(clean) = self.clean_in_window.oldest() {
            if !spare.page(device, clean) {
                return (Some(clean), self.ages.position(clean));
            }
        }
        if spare == Spare::Nobody {
            return (self.list.oldest(), self.in_window.max(1) as u64);
        }
        let Some((all, clean)) = &self.by_chip else {
            return self.scan(device, spare);
        };
        if let Some(page) = clean.oldest_not(device, spare, &self.ages, None) {
            return (Some(page), self.ages.position(page));
        }
        let scanned = self.in_window as u64;
        match all.oldest_not(device, spare, &self.ages, None) {
            Some(page) => (Some(page), scanned + self.ages.position(page)),
            None => (None, scanned + self.list.len() as u64),
        }
    }

    fn scan(&self, device: &dyn DeviceView, spare: Spare) -> (Option<PageId>, u64) {
        let mut window = self.clean_in_window.iter_oldest_first();
        if let Some(page) = window.find(|&page| !spare.page(device, page)) {
            return (Some(page), self.ages.position(page));
        }
        let scanned = self.in_window as u64;
        let mut pages = self.list.iter_oldest_first();
        match pages.find(|&page| !spare.page(device, page)) {
            Some(page) => (Some(page), scanned + self.ages.position(page)),
            None => (None, scanned + self.list.len() as u64),
        }
    }

    fn is_clean(&self, page: PageId) -> bool {
        self.pages[page.0 as usize].0 == Place::Window { clean: true }
    }

    /// Takes the page out of everything but the chip lists of all pages.
    fn unlink(&mut self, page: PageId) {
        if let Place::Window { clean } = self.pages[page.0 as usize].0 {
            self.in_window -= 1;
            if clean {
                self.clean_in_window.remove(page);
                if let Some((_, clean)) = &mut self.by_chip {
                    clean.remove(page, &self.ages);
                }
            }
            if self.boundary == Some(page) {
                self.boundary = self.list.older(page);
            }
        }
        self.list.remove(page);
        self.ages.remove(page);
        self.refill();
    }
}

impl Policy for Cflru {
    fn insert(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        if page.0 as usize >= self.pages.len() {
            self.pages
                .resize(page.0 as usize + 1, (Place::Working, false));
        }
        let chip = self.by_chip.as_ref().and_then(|_| device.chip(page));
        self.push(page, access.dirty, chip);
    }

    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let all = self.by_chip.as_ref().map(|(all, _)| all);
        let chip = all.and_then(|all| all.chip_of(page));
        self.forget(page);
        self.push(page, access.dirty, chip);
    }

    fn forget(&mut self, page: PageId) {
        self.unlink(page);
        if let Some((all, _)) = &mut self.by_chip {
            all.remove(page, &self.ages);
        }
    }

    fn cleaned(&mut self, _device: &dyn DeviceView, page: PageId) {
        let state = &mut self.pages[page.0 as usize];
        state.1 = false;
        if state.0 != (Place::Window { clean: false }) {
            return;
        }
        state.0 = Place::Window { clean: true };
        // Its place on the clean list: just newer than the next older clean page.
        let older = std::iter::successors(self.list.older(page), |&p| self.list.older(p))
            .find(|&p| self.is_clean(p));
        self.clean_in_window.insert_newer_than(older, page);
        if let Some((all, clean)) = &mut self.by_chip {
            clean.insert_by_age(page, all.chip_of(page), &self.ages);
        }
    }

    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        let is_clean = self.is_clean(page);
        let Some((all, clean)) = &mut self.by_chip else {
            return;
        };
        let chip = device.chip(page);
        if chip == all.chip_of(page) {
            return;
        }
        all.remove(page, &self.ages);
        all.insert_by_age(page, chip, &self.ages);
        if is_clean {
            clean.remove(page, &self.ages);
            clean.insert_by_age(page, chip, &self.ages);
        }
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        let (found, inspected) = self.choose(device, spare);
        out.inspected += inspected;
        out.spared |= spare != Spare::Nobody && self.choose(device, Spare::Nobody).0 != found;
        let Some(page) = found else { return false };
        self.forget(page);
        out.victims.push(page);
        true
    }

    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        self.list.oldest_three()
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        pages_text(device, self.list.iter_oldest_first())
    }
}
