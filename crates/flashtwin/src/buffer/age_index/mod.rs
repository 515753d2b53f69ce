//! The age index: pages in the order of their last access, for searches that need a scan of a plain list.
//!
//! # Questions
//!
//! 1. What is the least recent page whose chip is not in GC? GCaR asks this of any policy's list.
//! 2. How many pages are older than a given one? A published scan reads all of them, and the controller is
//!    charged for that (`inspected`, D-10).
//! 3. What is the least recent page of a chip? ECR and Co-Active choose a chip first.
//! 4. Where in its new class does a page belong that changes class without an access? A dirty page that was
//!    written back stands among the clean ones where its last access puts it.
//!
//! # Parts
//!
//! [`Ages`] gives each page that is pushed the next number, its *age*: larger is more recent. A page keeps its
//! age until its next access. Ages in use are bits of a set; policies with several classes of pages have
//! a set for each. With a count for each run of 1024 bits, question 2 adds up counts and then bits. A tree of
//! words over the bits finds the least age in use. Ages that are used up are given anew, without gaps and in the
//! same order, once in about three times as many accesses as there are pages. A page in flight has an age, but
//! it is in no set.
//!
//! [`ChipLists`] keeps a list for each chip, sorted by age, and a list for pages without a chip. The ages of
//! their least recent pages stand in one array, the *heads*: question 1 is the least head of the chips that are
//! not in GC, question 3 a single head. Pages in flight stand on no list, so that no search meets one; when
//! they arrive, they are put where their age belongs.
//!
//! ```text
//! age           0  1  2  3  4  5  6  7
//! page          4  -  9  1  7  -  3  8       ages 1 and 5 are no longer in use
//! chip          0     1  0  1     0  -
//! lists         chip 0: 4 1 3    chip 1: 9 7    no chip: 8
//! heads         0, 2, 7                       chip 0 in GC: page 9, the second oldest
//! ```
//!
//! # Uses
//!
//! [`AgeIndex`] has all pages of a policy, in classes: ECR and Co-Active. BPLRU does the same with blocks.
//!
//! [`Aged`] and [`AgedLists`] are recency lists. They use the index only once GCaR has to pass over a page, so
//! that it costs unfiltered policies nothing. GCaR as published scans from the least recent page until it
//! meets one that it may evict. What a scan has passed over is noted ([`Passed`]), once: all pages older than a
//! mark have an age and stand on the list of their chip, none newer does. The next search looks at the heads,
//! which are older than any page not noted, and continues from the mark only if the chips of all of them are
//! still in GC:
//!
//! ```text
//! list    9  8  7  6 | 5  4  3  2  1       least recent: 1
//! noted                chip 0: 4 1   chip 1: 5 3 2          the mark is before 5
//! ```
//!
//! A page is noted at most once between two of its accesses; an access to any other page only checks that it is
//! not noted. CFLRU and AD-LRU, which need the position of pages also when unfiltered, give ages to all pages
//! and note what they have passed over in the same way.
//!
//! # Costs
//!
//! | operation | time |
//! |---|---|
//! | access, change of class or chip | O(1); a page that is put back walks over the newer pages of its list |
//! | least recent page, of all or of a chip | O(1) |
//! | least recent page of the chips not in GC | one look at each chip that has pages |
//! | position of a page | one addition for each 1024 ages, and at most 16 words |
//!
//! Per page: 4 bytes for its age, 12 for its list, up to 16 for the pages by age and half a byte for each set.

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

/// Pages in `N` classes, each in the order of last access. Where a policy asks for it, the pages of a class
/// also stand on a list for each chip.
#[derive(Clone, Debug)]
pub(super) struct AgeIndex<const N: usize> {
    /// A set for each class, without the pages in flight.
    ages: Ages,
    lists: ChipLists,
}

impl<const N: usize> AgeIndex<N> {
    /// An empty index for about `pages` pages; `listed` specifies which classes have lists by chip.
    pub fn new(pages: u32, chips: u32, listed: [bool; N]) -> AgeIndex<N> {
        AgeIndex {
            ages: Ages::new(pages, N),
            lists: ChipLists::new(chips, &listed),
        }
    }

    /// A page enters: the most recent one of a class.
    #[inline]
    pub fn insert(&mut self, page: PageId, class: usize, shelf: Shelf) {
        let place = self.lists.place_at(class, shelf);
        self.lists.register(page, place);
        self.push(page, place);
    }

    /// A page becomes the most recent one of a class.
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
            self.ages.insert(page, place.class());
            self.lists.link_newest(page, place, &self.ages);
        }
    }

    /// A page is removed. Returns the place that it had.
    #[inline]
    pub fn remove(&mut self, page: PageId) -> Place {
        let place = self.lists.place(page);
        if !self.lists.is_in_flight(place) {
            self.ages.remove(page, place.class());
            self.lists.unlink(page, &self.ages);
        }
        place
    }

    /// Puts a page that was removed where its age belongs.
    #[inline]
    fn put_back(&mut self, page: PageId, place: Place) {
        self.lists.set_place(page, place);
        if !self.lists.is_in_flight(place) {
            self.ages.insert(page, place.class());
            self.lists.link_by_age(page, place, &self.ages);
        }
    }

    /// A page changes to another class and keeps its age.
    pub fn change(&mut self, page: PageId, class: usize) {
        let place = self.remove(page).in_class(class);
        self.put_back(page, place);
    }

    /// A page may belong on another list.
    #[inline]
    pub fn moved(&mut self, page: PageId, shelf: Shelf) {
        let was = self.lists.place(page);
        let place = self.lists.place_at(was.class(), shelf);
        if place != was {
            self.remove(page);
            self.put_back(page, place);
        }
    }

    /// Larger is more recent.
    #[inline]
    pub fn age(&self, page: PageId) -> u32 {
        self.ages.of(page)
    }

    /// The class of a page.
    #[inline]
    pub fn class(&self, page: PageId) -> usize {
        self.lists.place(page).class()
    }

    /// The chip of a page, as far as the index knows it.
    #[inline]
    pub fn chip(&self, page: PageId) -> Option<ChipId> {
        self.lists.chip(page)
    }

    /// The chip of a list of [`AgeIndex::heads`].
    #[inline]
    pub fn chip_of_list(&self, list: usize) -> Option<ChipId> {
        self.lists.chip_of_list(list)
    }

    /// The page of an age that is in use.
    #[inline]
    pub fn at(&self, age: u32) -> PageId {
        self.ages.page_at(age)
    }

    /// Age of the least recent page of a class with lists, for each chip and for the pages without one; the largest
    /// number if there is none.
    #[inline]
    pub fn heads(&self, class: usize) -> &[u32] {
        self.lists.heads(class)
    }

    /// The pages of a class from the least recent to the most recent.
    pub fn iter_oldest_first(&self, class: usize) -> impl Iterator<Item = PageId> + '_ {
        self.ages.iter_oldest_first(class)
    }

    /// The pages of a chip, of a class with lists, from the least recent to the most recent.
    pub fn iter_chip(&self, class: usize, list: usize) -> impl Iterator<Item = PageId> + '_ {
        self.lists.iter_oldest_first(class, list)
    }

    /// The least recent page of a class that `skip` does not pass over, and how many a scan looks
    /// at. To pass over any, the class must have lists.
    #[inline]
    pub fn oldest_not(
        &self,
        class: usize,
        device: &dyn DeviceView,
        skip: Skip,
    ) -> (Option<PageId>, u64) {
        let Some(page) = self.ages.oldest(class) else {
            return (None, 0);
        };
        match skip.page(device, page) {
            false => (Some(page), 1),
            true => self.search(class, device, skip, |_| false),
        }
    }

    /// Searches the list of each chip for the least recent page that neither `skip` nor `passed_over` passes over.
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
