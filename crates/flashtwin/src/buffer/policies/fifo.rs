//! FIFO: pages are evicted in order of insertion.
//!
//! A hit changes nothing. A page that misses enters at the newest end. The victim is the page that
//! was inserted first, clean or dirty.

use crate::buffer::entry::{cost, example, Entry, Family, Make, GENERAL, PAGES};
use crate::buffer::policy::{pages_text, Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::{Aged, PageId, Setup};
use crate::component::{source, Provenance};

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "fifo",
    title: "FIFO",
    line: "Pages are evicted in order of insertion; a hit changes nothing.",
    family: Family::General,
    source: source(
        "L. A. Belady",
        "A Study of Replacement Algorithms for a Virtual-Storage Computer",
        "IBM Systems Journal 5(2)",
        1966,
    ),
    provenance: Provenance::Original,
    rule: &[
        "All pages are in one queue. Miss: the page enters at the head of the queue. Hit: nothing \
         changes.",
        "Victim: the page at the tail.",
    ],
    state: PAGES,
    cost: cost("O(1)", "O(1)", "O(1)"),
    example: example(4, GENERAL),
    make: Make::Base(|setup| Fifo::new(setup).into()),
    ..Entry::PLAIN
}];

/// First in, first out.
#[derive(Clone, Debug)]
pub struct Fifo {
    queue: Aged,
}

impl Fifo {
    /// Creates the policy with an empty queue.
    pub fn new(setup: &Setup) -> Fifo {
        Fifo {
            queue: Aged::new(setup),
        }
    }

    #[inline(always)]
    pub(in crate::buffer) fn list_mut(&mut self) -> &mut Aged {
        &mut self.queue
    }
}

impl Policy for Fifo {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        self.queue.push_newest(page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, _page: PageId, _access: &Access) {}

    fn forget(&mut self, page: PageId) {
        self.queue.remove(page);
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.queue.moved(device, page);
    }

    #[inline]
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let Some(page) = self.queue.oldest_not(device, skip, out) else {
            return false;
        };
        self.queue.remove(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        pages_text(device, self.queue.list().iter_oldest_first())
    }
}

impl Prefetch for Fifo {
    #[inline]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        self.queue.next_three()
    }
}
