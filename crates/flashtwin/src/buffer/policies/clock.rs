//! CLOCK, or second chance: FIFO in which a page referenced since its insertion is passed over once (Corbato, "A Paging
//! Experiment with the Multics System", 1968).
//!
//! A hit sets the page's reference bit. A page that misses enters at the newest end with the bit cleared. The search
//! for a victim starts at the oldest page. If the bit of a page is set, the search clears it and moves the page to the
//! newest end. The first page whose bit is clear is the victim. This list is equivalent to a ring of pages with a hand
//! between the newest and the oldest page.
//!
//! In Corbato's algorithm, the bit is set when a page enters, because the fault that loads the page is a reference.
//! Here, the bit is cleared, as in libCacheSim and most block caches. A page that is accessed only once is therefore
//! evicted first.

use crate::buffer::entry::{cost, example, Entry, Family, Make, GENERAL};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::second_chance::{flagged_text, second_chance, set};
use crate::buffer::{Aged, PageId, Setup};
use crate::component::{source, Provenance};

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "clock",
    title: "CLOCK",
    line: "FIFO with a second chance for pages that were accessed since the hand last passed \
                them.",
    family: Family::General,
    source: source(
        "F. J. Corbato",
        "A Paging Experiment with the Multics System",
        "MIT Project MAC Report MAC-M-384",
        1968,
    ),
    provenance: Provenance::Original,
    rule: &[
        "Pages are in a ring, each with a reference bit. A hand points at one of them.",
        "Miss: the page enters just behind the hand with its bit cleared. (Corbato sets it; \
             current caches clear it.) Hit: the bit is set.",
        "Victim: the hand advances from page to page, and clears bits that are set. The first \
         page whose bit is already clear is the victim.",
    ],
    drawing: "
 hand -> 4d1 -> 1d0 -> 3d0 -> 5c1 -+
          ^     victim             |
          +------------------------+",
    state: "The ring with reference bits; the hand is at the last page.",
    cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
    example: example(4, GENERAL),
    make: Make::Base(|setup| Clock::new(setup).into()),
    ..Entry::PLAIN
}];

/// Second chance.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Pages in the order of the ring. The oldest page is under the hand, and the newest page is just behind the hand.
    ring: Aged,
    /// For each page: its reference bit.
    referenced: Vec<bool>,
}

impl Clock {
    /// Creates the policy with an empty ring.
    pub fn new(setup: &Setup) -> Clock {
        Clock {
            ring: Aged::new(setup),
            referenced: Vec::new(),
        }
    }
}

impl Policy for Clock {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        set(&mut self.referenced, page, false);
        self.ring.push_newest(page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        self.referenced[page.0 as usize] = true;
    }

    fn forget(&mut self, page: PageId) {
        self.ring.remove(page);
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.ring.moved(device, page);
    }

    #[inline]
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let referenced = &mut self.referenced;
        let oldest = |ring: &mut Aged, out: &mut _| ring.oldest_not(device, skip, out);
        let found = second_chance(&mut self.ring, out, oldest, |ring, page| {
            let again = std::mem::take(&mut referenced[page.0 as usize]);
            if again {
                ring.renew(page);
            }
            again
        });
        let Some(page) = found else { return false };
        self.ring.remove(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        flagged_text(device, self.ring.list().iter_oldest_first(), |page| {
            self.referenced[page.0 as usize].into()
        })
    }
}

impl Prefetch for Clock {
    #[inline]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        self.ring.next_three()
    }
}
