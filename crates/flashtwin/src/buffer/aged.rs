//! A recency list that GCaR can search by chip: [`List`], with what searches have passed over.

use super::order::Ages;
use super::passed::Passed;
use super::policy::{DeviceView, Eviction, Spare};
use super::{List, PageId, Setup};

/// Most recent first; every operation takes constant time, a filtered search one look a chip.
#[derive(Clone, Debug)]
pub struct Aged {
    list: List,
    passed: Passed,
    /// Of the pages passed over.
    ages: Ages,
}

impl Aged {
    /// An empty list.
    pub fn new(setup: &Setup) -> Aged {
        Aged {
            list: List::default(),
            passed: Passed::new(setup.chips),
            ages: Ages::new(setup.capacity),
        }
    }

    /// The plain list.
    #[inline]
    pub fn list(&self) -> &List {
        &self.list
    }

    /// The page is likely to move soon: see [`List::expect`].
    #[inline]
    pub fn expect(&self, page: PageId, near: bool) {
        self.list.expect(page, near);
        self.passed.expect(page, near);
    }

    /// Puts a page that is not in the list at the most recent end.
    #[inline]
    pub fn push_newest(&mut self, page: PageId) {
        self.list.push_newest(page);
    }

    /// Makes a page of the list the most recent one.
    #[inline]
    pub fn renew(&mut self, page: PageId) {
        self.remove(page);
        self.list.push_newest(page);
    }

    /// Takes a page out.
    #[inline]
    pub fn remove(&mut self, page: PageId) {
        if self.passed.leave(page, &self.list, &self.ages) {
            self.ages.remove(page);
        }
        self.list.remove(page);
    }

    /// The chip of the page's flash copy may have changed.
    pub fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.passed.moved(page, device, &self.ages);
    }

    /// The least recent page that `spare` does not pass over. Counts in `out` the entries that a
    /// scan from the least recent end looks at.
    #[inline]
    pub fn oldest_not(
        &mut self,
        device: &dyn DeviceView,
        spare: Spare,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let oldest = self.list.oldest()?;
        if !spare.page(device, oldest) {
            out.inspected += 1;
            return Some(oldest);
        }
        out.spared = true;
        self.search(device, spare, out)
    }

    fn search(
        &mut self,
        device: &dyn DeviceView,
        spare: Spare,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let list = &self.list;
        let number = |ages: &mut Ages, page, noted| {
            ages.push(page, list.iter_oldest_first().take(noted));
        };
        let found = (self.passed).oldest_not(device, spare, list, &mut self.ages, number);
        out.inspected += match found {
            Some(page) if self.passed.holds(page) => self.ages.position(page),
            Some(_) => self.passed.len() as u64 + 1,
            None => list.len() as u64,
        };
        found
    }
}
