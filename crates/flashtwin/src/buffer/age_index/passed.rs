//! Notes of what GCaR's searches of a list have passed over: see [`super`].

use super::{Ages, ChipLists, PageId, Shelf};
use crate::buffer::policy::{DeviceView, Skip};
use crate::list::Links;

/// The noted pages of a list, which the caller keeps. Ages are those of its noted pages at least.
#[derive(Clone, Debug)]
pub struct Passed {
    chips: ChipLists,
    /// The most recent noted page.
    mark: Option<PageId>,
    pages: usize,
}

impl Passed {
    /// An empty set of pages on `chips` chips.
    pub fn new(chips: u32) -> Passed {
        Passed {
            chips: ChipLists::new(chips, &[true]),
            mark: None,
            pages: 0,
        }
    }

    /// Number of noted pages.
    pub fn len(&self) -> usize {
        self.pages
    }

    /// Whether any page is noted.
    #[inline(always)]
    pub fn holds_any(&self) -> bool {
        self.mark.is_some()
    }

    /// The page is noted.
    #[inline(always)]
    pub fn holds(&self, page: PageId) -> bool {
        self.holds_any() && self.chips.holds(page)
    }

    /// The least recent page that is not noted, of the list that begins with `oldest` at that end.
    #[inline(always)]
    pub fn next(&self, oldest: Option<PageId>, links: &Links) -> Option<PageId> {
        match self.mark {
            Some(mark) => links.newer(mark),
            None => oldest,
        }
    }

    /// The page, which may be noted, is about to be removed from the list. Returns whether it was noted.
    #[inline(always)]
    pub fn leave(&mut self, page: PageId, links: &Links, ages: &Ages) -> bool {
        let noted = self.holds(page);
        if noted {
            self.chips.unlink(page, ages);
            self.chips.unregister(page);
            self.pages -= 1;
            if self.mark == Some(page) {
                self.mark = links.older(page);
            }
        }
        noted
    }

    /// The page has come into the list, not at its most recent end.
    pub fn enter(&mut self, page: PageId, device: &dyn DeviceView, ages: &Ages) {
        if self.mark.is_some_and(|mark| ages.of(page) < ages.of(mark)) {
            let place = self.chips.place_at(0, Shelf::of(device, page));
            self.chips.register(page, place);
            self.chips.link_by_age(page, place, ages);
            self.pages += 1;
        }
    }

    /// The page may belong on another list.
    #[inline(always)]
    pub fn moved(&mut self, page: PageId, device: &dyn DeviceView, ages: &Ages) {
        if !self.holds(page) {
            return;
        }
        let place = self.chips.place_at(0, Shelf::of(device, page));
        if place != self.chips.place(page) {
            self.chips.unlink(page, ages);
            self.chips.set_place(page, place);
            self.chips.link_by_age(page, place, ages);
        }
    }

    /// Whether some noted page is passed over because of its chip. Only pages older than `found` count; if `found` is
    /// `None` or not noted, all do.
    pub fn passes_over_for_chip(
        &self,
        device: &dyn DeviceView,
        skip: Skip,
        ages: &Ages,
        found: Option<PageId>,
    ) -> bool {
        let age = found.filter(|&page| self.holds(page));
        let age = age.map_or(u32::MAX, |page| ages.of(page));
        self.chips.passes_over_before(0, device, skip, age)
    }

    /// The ages may have been given anew.
    #[inline]
    pub fn follow(&mut self, ages: &Ages) {
        self.chips.follow(ages);
    }

    /// The least recent page that `skip` does not pass over, of the list that begins with `oldest` at that end.
    /// `age` is called for each page that is noted meanwhile: from then on it must have an age.
    pub fn oldest_not(
        &mut self,
        device: &dyn DeviceView,
        skip: Skip,
        (oldest, links): (Option<PageId>, &Links),
        ages: &mut Ages,
        age: impl Fn(&mut Ages, PageId),
    ) -> Option<PageId> {
        let noted = self.chips.oldest_not(0, device, skip, ages, |_| false);
        if noted.is_some() {
            return noted;
        }
        loop {
            let page = self.next(oldest, links)?;
            if !skip.page(device, page) {
                return Some(page);
            }
            self.pages += 1;
            self.mark = Some(page);
            age(ages, page);
            let place = self.chips.place_at(0, Shelf::of(device, page));
            self.chips.register(page, place);
            self.chips.follow(ages);
            self.chips.link_newest(page, place, ages);
        }
    }
}
