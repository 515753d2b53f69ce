//! Record of the pages of a list that GCaR's searches have skipped. The documentation of [`super`] explains the method.

use super::{Ages, ChipLists, PageId, Shelf};
use crate::buffer::policy::{DeviceView, Skip};
use crate::list::Links;

/// The recorded pages of one list. The caller keeps the list, and gives an age to every recorded page.
#[derive(Clone, Debug)]
pub struct Passed {
    chips: ChipLists,
    /// The most recent recorded page.
    mark: Option<PageId>,
    pages: usize,
}

impl Passed {
    /// Creates an empty record of pages on `chips` chips.
    pub fn new(chips: u32) -> Passed {
        Passed {
            chips: ChipLists::new(chips, &[true]),
            mark: None,
            pages: 0,
        }
    }

    /// Returns the number of recorded pages.
    pub fn len(&self) -> usize {
        self.pages
    }

    /// Whether any page is recorded.
    #[inline(always)]
    pub fn holds_any(&self) -> bool {
        self.mark.is_some()
    }

    /// Whether all recorded pages are in flight. Recorded pages that are not in flight are on a list.
    #[inline(always)]
    pub fn are_in_flight(&self) -> bool {
        self.chips.is_empty(0)
    }

    /// Whether the page is recorded.
    #[inline(always)]
    pub fn holds(&self, page: PageId) -> bool {
        self.holds_any() && self.chips.holds(page)
    }

    /// Returns the least recent page that is not recorded; `None` if all pages are recorded. `oldest` is the least
    /// recent page of the list.
    #[inline(always)]
    pub fn next(&self, oldest: Option<PageId>, links: &Links) -> Option<PageId> {
        match self.mark {
            Some(mark) => links.newer(mark),
            None => oldest,
        }
    }

    /// Removes a page from the record. Must be called before the page is removed from the list. Returns whether the
    /// page was recorded.
    #[inline(always)]
    pub fn leave(&mut self, page: PageId, links: &Links, ages: &Ages) -> bool {
        let noted = self.holds(page);
        if noted {
            self.remove(page, links, ages);
        }
        noted
    }

    /// Removes a recorded page.
    #[inline(never)]
    fn remove(&mut self, page: PageId, links: &Links, ages: &Ages) {
        self.chips.unlink(page, ages);
        self.chips.unregister(page);
        self.pages -= 1;
        if self.mark == Some(page) {
            self.mark = links.older(page);
        }
    }

    /// Records a page if it is older than the mark, the most recent recorded page. Must be called after a page was
    /// inserted into the list at any place except the most recent end.
    pub fn enter(&mut self, page: PageId, device: &dyn DeviceView, ages: &Ages) {
        if self.mark.is_some_and(|mark| ages.of(page) < ages.of(mark)) {
            let place = self.chips.place_at(0, Shelf::of(device, page));
            self.chips.register(page, place);
            self.chips.link_by_age(page, place, ages);
            self.pages += 1;
        }
    }

    /// Moves a recorded page to the list of its present chip, if it is on another one.
    #[inline(always)]
    pub fn moved(&mut self, page: PageId, device: &dyn DeviceView, ages: &Ages) {
        if self.holds(page) {
            self.recorded_moved(page, device, ages);
        }
    }

    #[inline(never)]
    fn recorded_moved(&mut self, page: PageId, device: &dyn DeviceView, ages: &Ages) {
        let place = self.chips.place_at(0, Shelf::of(device, page));
        if place != self.chips.place(page) {
            self.chips.unlink(page, ages);
            self.chips.set_place(page, place);
            self.chips.link_by_age(page, place, ages);
        }
    }

    /// Whether a recorded page is older than `found` and excluded by `skip` because of its chip. If `found` is `None`
    /// or not recorded, all recorded pages are considered.
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

    /// Updates the lists if the ages were renumbered.
    #[inline]
    pub fn follow(&mut self, ages: &Ages) {
        self.chips.follow(ages);
    }

    /// Returns the least recent page of a list that `skip` does not exclude. `oldest` is the least recent page of that
    /// list. The search records each page that it skips. It first calls `age`, which must give the page an age if it
    /// has none.
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
