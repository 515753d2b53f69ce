//! Recency lists in which a search can skip pages because of their chips. Each consists of a [`List`] and a record of
//! the pages that earlier searches have skipped.

use super::{Ages, PageId, Passed};
use crate::buffer::policy::{DeviceView, Eviction, Skip};
use crate::buffer::{List, Setup};
use crate::list::{Links, Lists};

/// The pages of a list that searches have skipped, and the ages of these pages.
#[derive(Clone, Debug)]
struct Past {
    passed: Passed,
    ages: Ages,
}

impl Past {
    fn new(setup: &Setup) -> Past {
        Past {
            passed: Passed::new(setup.chips),
            ages: Ages::new(setup.capacity, 1),
        }
    }

    /// Removes a page from the record of skipped pages. Must be called before the page is removed from the list.
    #[inline(always)]
    fn leave(&mut self, page: PageId, links: &Links) {
        if self.passed.leave(page, links, &self.ages) {
            self.ages.remove(page, 0);
        }
    }

    #[inline(always)]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.passed.moved(page, device, &self.ages);
    }

    /// Returns the least recent page that `skip` does not exclude. The search covers a list of `len` pages that starts
    /// at its least recent page, `oldest`. Adds to `out` the number of entries that a scan from the least recent end
    /// would read to find the page.
    #[inline(always)]
    fn oldest_not(
        &mut self,
        (oldest, len, links): (Option<PageId>, usize, &Links),
        device: &dyn DeviceView,
        skip: Skip,
        out: &mut Eviction,
    ) -> Option<PageId> {
        // In most searches, the least recent page of the list is not excluded and is returned at once.
        if !skip.page(device, oldest?) {
            out.inspected += 1;
            return oldest;
        }
        self.search((oldest, len, links), device, skip, out)
    }

    fn search(
        &mut self,
        (oldest, len, links): (Option<PageId>, usize, &Links),
        device: &dyn DeviceView,
        skip: Skip,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let number = |ages: &mut Ages, page| {
            ages.push(page);
            ages.insert(page, 0);
        };
        let (passed, ages) = (&mut self.passed, &mut self.ages);
        let found = passed.oldest_not(device, skip, (oldest, links), ages, number);
        out.inspected += match found {
            Some(page) if self.passed.holds(page) => self.ages.position(page, 0),
            Some(_) => self.passed.len() as u64 + 1,
            None => len as u64,
        };
        out.skipped |= (self.passed).passes_over_for_chip(device, skip, &self.ages, found);
        found
    }
}

/// A recency list in which a search can skip pages because of their chips. Such a search compares one page for each
/// chip. Every other operation takes constant time.
#[derive(Clone, Debug)]
pub struct Aged {
    list: List,
    past: Past,
}

impl Aged {
    /// Creates an empty list.
    pub fn new(setup: &Setup) -> Aged {
        Aged {
            list: List::default(),
            past: Past::new(setup),
        }
    }

    /// Returns the plain list.
    #[inline]
    pub fn list(&self) -> &List {
        &self.list
    }

    /// Whether a search has passed over the page.
    #[inline(always)]
    pub fn has_passed_over(&self, page: PageId) -> bool {
        self.past.passed.holds(page)
    }

    /// Whether all pages that searches have skipped are in flight, so that no search can return them. A search that
    /// skips no chips then returns [`Aged::next`], unless that page is in flight too.
    #[inline(always)]
    pub fn waits_for_all_passed(&self) -> bool {
        self.past.passed.are_in_flight()
    }

    /// Returns the least recent page that no search has passed over.
    #[inline(always)]
    pub fn next(&self) -> Option<PageId> {
        self.past.passed.next(self.list.oldest(), self.list.links())
    }

    /// Returns the three pages that follow the skipped pages in the list: the likely next victims, in the order of
    /// their eviction.
    #[inline(always)]
    pub fn next_three(&self) -> [Option<PageId>; 3] {
        let links = self.list.links();
        links.three_from(self.past.passed.next(self.list.oldest(), links))
    }

    /// Puts a page at the most recent end of the list. The page must not be in the list.
    #[inline(always)]
    pub fn push_newest(&mut self, page: PageId) {
        self.list.push_newest(page);
    }

    /// Whether [`Aged::exchange_next`] can insert `page`.
    #[inline(always)]
    pub fn can_exchange_next(&self, page: PageId) -> bool {
        self.list.len() > 3 + self.past.passed.len() && self.list.has_links_of(page)
    }

    /// Removes `next` and inserts `page` at the most recent end, in one step. `next` must be [`Aged::next`], `page`
    /// must not be in the list, and [`Aged::can_exchange_next`] must be true. Returns the page that is fourth in the
    /// order of eviction after the removal, and the number of entries that a scan would have read to find `next`.
    #[inline(always)]
    pub fn exchange_next(&mut self, next: PageId, page: PageId) -> (PageId, u64) {
        debug_assert!(self.can_exchange_next(page) && self.next() == Some(next));
        let fourth = self.list.exchange(next, page);
        (fourth, self.past.passed.len() as u64 + 1)
    }

    /// Makes a page of the list the most recent one.
    #[inline]
    pub fn renew(&mut self, page: PageId) {
        self.remove(page);
        self.list.push_newest(page);
    }

    /// Takes a page out.
    #[inline(always)]
    pub fn remove(&mut self, page: PageId) {
        self.past.leave(page, self.list.links());
        self.list.remove(page);
    }

    /// Updates the index for a page. Must be called after a change that may affect the chip of the page's flash copy,
    /// or whether the page is in flight.
    #[inline(always)]
    pub fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.past.moved(device, page);
    }

    /// Returns the least recent page that `skip` does not exclude. Adds to `out` the number of entries that a scan
    /// from the least recent end would read to find this page.
    #[inline(always)]
    pub fn oldest_not(
        &mut self,
        device: &dyn DeviceView,
        skip: Skip,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let list = (self.list.oldest(), self.list.len(), self.list.links());
        self.past.oldest_not(list, device, skip, out)
    }
}

/// `N` recency lists, each like [`Aged`]. A page is in at most one of them, so one array of links
/// serves all lists.
#[derive(Clone, Debug)]
pub struct AgedLists<const N: usize> {
    lists: Lists<N>,
    past: [Past; N],
}

impl<const N: usize> AgedLists<N> {
    /// Creates empty lists.
    pub fn new(setup: &Setup) -> Self {
        AgedLists {
            lists: Lists::new(),
            past: std::array::from_fn(|_| Past::new(setup)),
        }
    }

    /// Returns the plain lists.
    #[inline]
    pub fn lists(&self) -> &Lists<N> {
        &self.lists
    }

    /// Returns the three likely next victims of `list`: see [`Aged::next_three`].
    #[inline(always)]
    pub fn next_three(&self, list: usize) -> [Option<PageId>; 3] {
        let links = self.lists.links();
        links.three_from(self.past[list].passed.next(self.lists.oldest(list), links))
    }

    /// Puts a page, which must be in no list, at the most recent end of `list`.
    #[inline(always)]
    pub fn push_newest(&mut self, list: usize, page: PageId) {
        self.lists.push_newest(list, page);
    }

    /// Makes a page of the list `from` the most recent page of the list `to`, which may be the same list.
    #[inline]
    pub fn renew(&mut self, from: usize, page: PageId, to: usize) {
        self.remove(from, page);
        self.lists.push_newest(to, page);
    }

    /// Takes a page out of `list`, which must contain it.
    #[inline(always)]
    pub fn remove(&mut self, list: usize, page: PageId) {
        self.past[list].leave(page, self.lists.links());
        self.lists.remove(list, page);
    }

    /// Updates the index for a page of `list`. Must be called after a change that may affect the chip of the page's
    /// flash copy, or whether the page is in flight.
    #[inline(always)]
    pub fn moved(&mut self, list: usize, device: &dyn DeviceView, page: PageId) {
        self.past[list].moved(device, page);
    }

    /// Returns the least recent page of `list` that `skip` does not exclude: see [`Aged::oldest_not`].
    #[inline(always)]
    pub fn oldest_not(
        &mut self,
        list: usize,
        device: &dyn DeviceView,
        skip: Skip,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let lists = &self.lists;
        let from = (lists.oldest(list), lists.len(list), lists.links());
        self.past[list].oldest_not(from, device, skip, out)
    }
}
