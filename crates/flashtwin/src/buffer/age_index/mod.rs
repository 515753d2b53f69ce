//! The age index: pages in the order of their last access, for searches that would have to scan a plain list.
//!
//! # Questions
//!
//! 1. What is the least recent page whose chip is not in GC? GCaR searches the list of any policy for this page.
//! 2. How many pages are older than a given one? A search as published reads all of them, and the controller is charged
//!    for each entry that is read (`inspected`, D-10).
//! 3. What is the least recent page of a chip? ECR and Co-Active choose a chip first.
//! 4. If a page changes its class without an access, where in the new class does it belong? For example, a dirty page
//!    that was written back is placed among the clean pages by its last access.
//!
//! # Parts
//!
//! [`Ages`] numbers the accesses: each access to a page gives the page the next number, its *age*. A larger age is more
//! recent. The ages in use are bits of a set, and each class of pages has a set of its own. For question 2, the set
//! keeps a count for each run of 1024 bits, so the number of older pages is a sum of counts and of single bits. A tree
//! of words over the bits finds the least age in use. When the numbers are used up, all ages in use are renumbered
//! without gaps and in the same order. With n pages, this happens about once every 3 n accesses. A page in flight has
//! an age, but is in no set.
//!
//! [`ChipLists`] keeps a list of pages for each chip, and one list for pages without a chip. Each list is sorted by
//! age. The ages of the least recent pages of all lists are in one array, the *heads*. For question 1, a search takes
//! the least head of the chips that are not in GC. For question 3, it reads a single head. Pages in flight are on no
//! list, so searches do not find them. When a page is no longer in flight, it is inserted at the position given by its
//! age. In this figure, ages 1 and 5 are no longer in use, and page 8 has no chip:
//!
//! ```text
//! age           0  1  2  3  4  5  6  7       oldest first
//! page          4     9  1  7     3  8
//! chip          0     1  0  1     0  -
//! lists         chip 0: 4 1 3    chip 1: 9 7    no chip: 8
//! heads         0, 2, 7                       chip 0 in GC: page 9, the second oldest
//! ```
//!
//! # Uses
//!
//! [`AgeIndex`] contains all pages of a policy, divided into classes. ECR and Co-Active use it to rank pages. BPLRU
//! uses it to rank blocks instead of pages.
//!
//! [`Aged`] and [`AgedLists`] are recency lists. They use the index only after GCaR had to skip a page, so the index
//! costs nothing without GCaR. GCaR as published scans from the least recent page until it finds a page that it may
//! evict. Each page that a scan skips is recorded ([`Passed`]): the page gets an age and is put on the list of its
//! chip. The most recent recorded page is the *mark*. All pages of the recency list up to the mark are recorded, and no
//! page after it is. Recorded pages are older than all others, so the next search first examines the heads of their
//! lists. The search continues the scan after the mark only if the chips of all heads are still in GC:
//!
//! ```text
//! list       1  2  3  4  5 | 6  7  8  9       oldest first; the mark is 5
//! recorded   chip 0: 1 4   chip 1: 2 3 5
//! ```
//!
//! The record is cheap: a page is recorded at most once between two accesses to it, and an access only checks whether
//! its page is recorded. CFLRU and AD-LRU need the positions of pages even without GCaR. They therefore give an age to
//! every page, and record skipped pages in the same way.
//!
//! # Costs
//!
//! | operation | time |
//! |---|---|
//! | access, change of class or chip | O(1); inserting a page by its age compares it with the newer pages of its list |
//! | least recent page, of all or of a chip | O(1) |
//! | least recent page of the chips not in GC | one comparison for each chip that has pages |
//! | position of a page | one addition for each 1024 ages, and at most 16 words |
//!
//! Memory per page: 4 bytes for its age, 12 for its place in a list, up to 16 for the table of pages by age, and half
//! a byte for each set.

mod aged;
mod ages;
mod chip_lists;
mod passed;
#[cfg(test)]
mod tests;

pub use aged::Aged;
pub(super) use aged::AgedLists;
pub(super) use ages::Ages;
use chip_lists::Place;
pub(super) use chip_lists::{ChipLists, Shelf};
pub(super) use passed::Passed;

use super::policy::{DeviceView, Skip};
use super::PageId;
use crate::units::ChipId;

/// The pages of `N` classes, each class in the order of last access. A class may also have lists by chip: each of its
/// pages is then on the list of its chip as well.
#[derive(Clone, Debug)]
pub(super) struct AgeIndex<const N: usize> {
    /// Ages of the pages, with one set per class. Pages in flight have an age but are in no set.
    ages: Ages,
    /// Whether the class has a set of ages.
    is_by_age: [bool; N],
    lists: ChipLists,
    /// The page that became the least recent one of its list at the last eviction.
    upcoming: Option<PageId>,
}

impl<const N: usize> AgeIndex<N> {
    /// Creates an empty index for about `pages` pages. `listed` specifies which classes have lists by chip.
    pub fn new(pages: u32, chips: u32, listed: [bool; N]) -> AgeIndex<N> {
        AgeIndex {
            ages: Ages::new(pages, N),
            is_by_age: [true; N],
            lists: ChipLists::new(chips, &listed),
            upcoming: None,
        }
    }

    /// Selects the classes that can be searched and iterated as a whole: those for which `is_by_age` is true. The
    /// other classes can only be searched chip by chip.
    pub fn by_age(self, is_by_age: [bool; N]) -> AgeIndex<N> {
        AgeIndex { is_by_age, ..self }
    }

    /// Adds a page as the most recent one of a class.
    #[inline]
    pub fn insert(&mut self, page: PageId, class: usize, shelf: Shelf) {
        let place = self.lists.place_at(class, shelf);
        self.lists.register(page, place);
        self.push(page, place);
    }

    /// Makes a page the most recent one of a class.
    #[inline]
    pub fn renew(&mut self, page: PageId, class: usize) {
        let place = self.remove(page).in_class(class);
        self.lists.set_place(page, place);
        self.push(page, place);
    }

    #[inline]
    fn push(&mut self, page: PageId, place: Place) {
        self.ages.push(page);
        self.lists.follow(&self.ages);
        if !self.lists.is_in_flight(place) {
            self.insert_age(page, place);
            self.lists.link_newest(page, place, &self.ages);
        }
    }

    #[inline]
    fn insert_age(&mut self, page: PageId, place: Place) {
        if self.is_by_age[place.class()] {
            self.ages.insert(page, place.class());
        }
    }

    /// Removes a page. Returns its former place in the lists.
    #[inline]
    pub fn remove(&mut self, page: PageId) -> Place {
        let place = self.lists.place(page);
        self.leave(page, place);
        place
    }

    /// Removes a victim and returns the place that it had. The next page of its list is then
    /// [upcoming](AgeIndex::upcoming).
    #[inline]
    pub fn evict(&mut self, page: PageId) -> Place {
        let place = self.remove(page);
        self.upcoming = self.lists.oldest(place);
        place
    }

    /// Returns the page that became the least recent one of its list at the last eviction. It will be evicted when its
    /// chip is chosen next, so its data can be prefetched now.
    #[inline]
    pub fn upcoming(&self) -> Option<PageId> {
        self.upcoming
    }

    /// Removes a page from its place.
    #[inline]
    fn leave(&mut self, page: PageId, place: Place) {
        if !self.lists.is_in_flight(place) {
            if self.is_by_age[place.class()] {
                self.ages.remove(page, place.class());
            }
            self.lists.unlink(page, &self.ages);
        }
    }

    /// Inserts a removed page at the position given by its age.
    #[inline]
    fn put_back(&mut self, page: PageId, place: Place) {
        self.lists.set_place(page, place);
        if !self.lists.is_in_flight(place) {
            self.insert_age(page, place);
            self.lists.link_by_age(page, place, &self.ages);
        }
    }

    /// Moves a page to another class; the page keeps its age.
    #[inline]
    pub fn change(&mut self, page: PageId, class: usize) {
        let was = self.lists.place(page);
        self.leave(page, was);
        self.put_back(page, was.in_class(class));
    }

    /// Moves a page to the list that `shelf` specifies, unless it is already there.
    #[inline]
    pub fn moved(&mut self, page: PageId, shelf: Shelf) {
        let was = self.lists.place(page);
        let place = self.lists.place_at(was.class(), shelf);
        if place != was {
            self.leave(page, was);
            self.put_back(page, place);
        }
    }

    /// Returns the age of a page; larger ages are more recent.
    #[inline]
    pub fn age(&self, page: PageId) -> u32 {
        self.ages.of(page)
    }

    /// Returns the class of a page.
    #[inline]
    pub fn class(&self, page: PageId) -> usize {
        self.lists.place(page).class()
    }

    /// Returns the chip that the index last recorded for a page.
    #[inline]
    pub fn chip(&self, page: PageId) -> Option<ChipId> {
        self.lists.chip(page)
    }

    /// Returns the chip of a list of [`AgeIndex::heads`].
    #[inline]
    pub fn chip_of_list(&self, list: usize) -> Option<ChipId> {
        self.lists.chip_of_list(list)
    }

    /// Returns the page that has the age `age`. The age must be in use.
    #[inline]
    pub fn at(&self, age: u32) -> PageId {
        self.ages.page_at(age)
    }

    /// Returns the age of the least recent page of each list of a class: one list per chip, then the list of pages
    /// without a chip. For an empty list this is `u32::MAX`. The class must have lists.
    #[inline]
    pub fn heads(&self, class: usize) -> &[u32] {
        self.lists.heads(class)
    }

    /// Returns one bit for each list of [`AgeIndex::heads`]: whether the list has pages.
    #[inline]
    pub fn filled(&self, class: usize) -> &[u64] {
        self.lists.filled(class)
    }

    /// Marks list number `list` of some classes as changed. [`AgeIndex::take_changed`] then reports it even if its head
    /// (the age of its least recent page) has not changed.
    #[inline]
    pub fn mark_changed<const M: usize>(&mut self, classes: [usize; M], list: usize) {
        self.lists.mark_changed(classes, list);
    }

    /// Reports all changes since the last call. Calls `update` for each list number that was
    /// [marked](AgeIndex::mark_changed), or for which the head (age of the least recent page) has changed in any of
    /// `classes`. The arguments of `update` are the list number, and the least of the heads of the lists with this
    /// number in `classes`.
    #[inline]
    pub fn take_changed<const M: usize>(
        &mut self,
        classes: [usize; M],
        update: impl FnMut(usize, u32),
    ) {
        self.lists.take_changed(classes, update);
    }

    /// Returns the pages of a class from the least recent to the most recent.
    pub fn iter_oldest_first(&self, class: usize) -> impl Iterator<Item = PageId> + '_ {
        self.ages.iter_oldest_first(class)
    }

    /// Returns the pages of one list of a class from the least recent to the most recent. The class must have lists.
    pub fn iter_chip(&self, class: usize, list: usize) -> impl Iterator<Item = PageId> + '_ {
        self.lists.iter_oldest_first(class, list)
    }

    /// Returns the least recent page of a class that `skip` does not exclude, and the number of entries that a scan
    /// would read to find it. If `skip` can exclude pages because of their chips, the class must have lists.
    #[inline(always)]
    pub fn oldest_not(
        &self,
        class: usize,
        device: &dyn DeviceView,
        skip: Skip,
    ) -> (Option<PageId>, u64) {
        let Some(page) = self.ages.oldest(class) else {
            return (None, 0);
        };
        debug_assert!(!device.in_flight(page), "a page in flight has a place");
        match skip.page_by_chip(device, page) {
            false => (Some(page), 1),
            true => self.search(class, device, skip, |_| false),
        }
    }

    /// Searches the list of each chip for the least recent page that neither `skip` nor `passed_over` excludes.
    /// Returns this page, and the number of entries that a scan would read to find it.
    #[cold]
    pub fn search(
        &self,
        class: usize,
        device: &dyn DeviceView,
        skip: Skip,
        passed_over: impl Fn(PageId) -> bool,
    ) -> (Option<PageId>, u64) {
        match (self.lists).oldest_not(class, device, skip, &self.ages, passed_over) {
            None => (None, self.ages.count(class)),
            Some(page) => (Some(page), self.ages.position(page, class)),
        }
    }
}
