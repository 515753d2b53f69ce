//! A recency list that GCaR can search by chip: [`List`], with ages and chip lists where asked for.

use super::order::{Ages, ChipLists};
use super::policy::{DeviceView, Eviction, Spare};
use super::{List, PageId, Setup};

/// Most recent first; every operation takes constant time, a filtered search one look a chip.
#[derive(Clone, Debug)]
pub struct Aged {
    list: List,
    by_chip: Option<(Ages, ChipLists)>,
}

impl Aged {
    /// An empty list; with an index by chip if the policy is filtered.
    pub fn new(setup: &Setup) -> Aged {
        Aged {
            list: List::default(),
            by_chip: setup
                .filtered
                .then(|| (Ages::new(setup.capacity), ChipLists::new(setup.chips))),
        }
    }

    /// The plain list.
    #[inline]
    pub fn list(&self) -> &List {
        &self.list
    }

    /// Puts a page that is not in the list at the most recent end.
    #[inline]
    pub fn push_newest(&mut self, device: &dyn DeviceView, page: PageId) {
        self.list.push_newest(page);
        if let Some((ages, chips)) = &mut self.by_chip {
            ages.push(&self.list, page);
            chips.push_newest(page, device.chip(page), ages);
        }
    }

    /// Makes a page of the list the most recent one.
    #[inline]
    pub fn renew(&mut self, page: PageId) {
        self.list.remove(page);
        self.list.push_newest(page);
        if let Some((ages, chips)) = &mut self.by_chip {
            let chip = chips.chip_of(page);
            chips.remove(page, ages);
            ages.remove(page);
            ages.push(&self.list, page);
            chips.push_newest(page, chip, ages);
        }
    }

    /// Takes a page out.
    #[inline]
    pub fn remove(&mut self, page: PageId) {
        self.list.remove(page);
        if let Some((ages, chips)) = &mut self.by_chip {
            chips.remove(page, ages);
            ages.remove(page);
        }
    }

    /// The chip of the page's flash copy may have changed.
    pub fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        if let Some((ages, chips)) = &mut self.by_chip {
            let chip = device.chip(page);
            if chip != chips.chip_of(page) {
                chips.remove(page, ages);
                chips.insert_by_age(page, chip, ages);
            }
        }
    }

    /// The least recent page that `spare` does not pass over. Counts in `out` the entries that a
    /// scan from the least recent end looks at.
    #[inline]
    pub fn oldest_not(
        &self,
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

    #[cold]
    fn search(&self, device: &dyn DeviceView, spare: Spare, out: &mut Eviction) -> Option<PageId> {
        let Some((ages, chips)) = &self.by_chip else {
            let mut pages = self.list.iter_oldest_first();
            return pages.find(|&page| {
                out.inspected += 1;
                !spare.page(device, page)
            });
        };
        let found = chips.oldest_not(device, spare, ages, None);
        out.inspected += found.map_or(self.list.len() as u64, |page| ages.position(page));
        found
    }
}
