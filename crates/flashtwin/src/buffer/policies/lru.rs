//! LRU: one list for clean and dirty pages (GCaR Fig. 4).
//!
//! A page that is hit or inserted moves to the most recent end. The victim is the least recent page, clean or dirty.

use crate::buffer::entry::{cost, example, Entry, Family, Make, PAGES};
use crate::buffer::policy::{pages_text, Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::{Aged, PageId, Setup};
use crate::component::{source, Provenance};

/// Name of LRU, the policy with which other policies are compared.
pub(in crate::buffer) const NAME: &str = "lru";

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: NAME,
    title: "LRU",
    line: "Evicts the page not accessed for the longest time; the baseline of the papers.",
    family: Family::Recency,
    source: source(
        "R. L. Mattson, J. Gecsei, D. R. Slutz, I. L. Traiger",
        "Evaluation Techniques for Storage Hierarchies",
        "IBM Systems Journal 9(2)",
        1970,
    ),
    provenance: Provenance::Original,
    rule: &[
        "All pages, clean and dirty, are in one list.",
        "Hit: the page moves to the most recent end.",
        "Miss: the page enters at the most recent end.",
        "Victim: the page at the least recent end, clean or dirty.",
    ],
    drawing: "
most recent [ 6d  5c  4d  3d  2c  1d ] least recent
                                 ^ victim",
    state: PAGES,
    cost: cost("O(1)", "O(1)", "O(1)"),
    example: example(3, "W1 R2 W3 R1 W4 R2"),
    make: Make::Base(|setup| Lru::new(setup).into()),
    ..Entry::PLAIN
}];

/// Least recently used.
#[derive(Clone, Debug)]
pub struct Lru {
    list: Aged,
}

impl Lru {
    /// Creates the policy with an empty list.
    pub fn new(setup: &Setup) -> Lru {
        Lru {
            list: Aged::new(setup),
        }
    }

    #[inline(always)]
    pub(in crate::buffer) fn list_mut(&mut self) -> &mut Aged {
        &mut self.list
    }
}

impl Policy for Lru {
    #[inline(always)]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        self.list.push_newest(page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        self.list.renew(page);
    }

    fn forget(&mut self, page: PageId) {
        self.list.remove(page);
    }

    #[inline(always)]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.list.moved(device, page);
    }

    #[inline(always)]
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let Some(page) = self.list.oldest_not(device, skip, out) else {
            return false;
        };
        self.list.remove(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        pages_text(device, self.list.list().iter_oldest_first())
    }
}

impl Prefetch for Lru {
    #[inline(always)]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        self.list.next_three()
    }
}
