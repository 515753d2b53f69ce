//! CLOCK, or second chance: FIFO that passes once over a page referenced since it came in (Corbato,
//! "A Paging Experiment with the Multics System", 1968).
//!
//! hit -> reference bit 1; miss -> newest end, bit 0. Victim search from the oldest page: bit 1 ->
//! bit 0 and newest end; bit 0 -> victim. A ring with a hand is the same list cut at the hand.
//!
//! Corbato's bit is 1 when a page comes in, for the fault that brings it in is a reference; here it
//! is 0, as in libCacheSim and most block caches, so that a page accessed once leaves first.

use super::entry::{cost, example, Entry, Family, Make, GENERAL};
use super::policy::{page_text, Access, DeviceView, Eviction, Policy, Prefetch, Spare};
use super::{Aged, PageId, Setup};
use crate::component::{source, Provenance};
use crate::memory::reach;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "clock",
        title: "CLOCK",
        line: "FIFO with a second chance for pages accessed since the hand last passed.",
        family: Family::General,
        source: source(
            "F. J. Corbato",
            "A Paging Experiment with the Multics System",
            "MIT Project MAC Report MAC-M-384",
            1968,
        ),
        provenance: Provenance::Original,
        rule: &[
            "Pages stand in a ring, each with a reference bit; a hand points at one.",
            "Miss: the page comes in just behind the hand, its bit clear (Corbato sets it; caches of today \
             clear it). Hit: the bit is set.",
            "Victim: the hand clears set bits and goes on; the first page whose bit is clear leaves.",
        ],
        drawing: "
 hand -> 4d1 -> 1d0 -> 3d0 -> 5c1 -+
          ^     victim             |
          +------------------------+",
        state: "The ring with reference bits; the hand stands at the last page.",
        cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
        example: example(4, GENERAL),
        make: Make::Alone(|setup| Clock::new(setup).into()),
        ..Entry::PLAIN
    },
];

/// Second chance.
#[derive(Clone, Debug)]
pub struct Clock {
    /// From the page just behind the hand to the page under it.
    ring: Aged,
    /// Per page.
    referenced: Vec<bool>,
}

impl Clock {
    /// An empty ring.
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
        spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        let referenced = &mut self.referenced;
        let oldest = |ring: &mut Aged, out: &mut _| ring.oldest_not(device, spare, out);
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

/// The least recent page, of those that `oldest` finds one after the other, that `moves` leaves where it is.
/// `moves` takes any other page from that end, to the most recent end or to another list, and returns true.
///
/// Pages that `oldest` passes over keep their place and are looked at once, like those that move; a
/// page that moved and is met again counts twice.
#[inline]
pub(super) fn second_chance<L>(
    lists: &mut L,
    out: &mut Eviction,
    oldest: impl Fn(&mut L, &mut Eviction) -> Option<PageId>,
    mut moves: impl FnMut(&mut L, PageId) -> bool,
) -> Option<PageId> {
    let mut looked = out.inspected;
    loop {
        // Counts the pages passed over, which are those older than the page found.
        out.inspected = looked;
        let page = oldest(lists, out)?;
        if !moves(lists, page) {
            return Some(page);
        }
        looked += 1;
    }
}

/// Sets an array's entry of a page, which may be new to it.
#[inline]
pub(super) fn set<T: Copy + Default>(per_page: &mut Vec<T>, page: PageId, value: T) {
    reach(per_page, page.0 as usize, T::default());
    per_page[page.0 as usize] = value;
}

/// `4d1 3c0`: pages with a number each, most recent first, from a walk that begins at the least
/// recent.
pub(super) fn flagged_text(
    device: &dyn DeviceView,
    oldest_first: impl Iterator<Item = PageId>,
    number: impl Fn(PageId) -> u8,
) -> String {
    let mut texts: Vec<String> = oldest_first
        .map(|page| format!("{}{}", page_text(device, page), number(page)))
        .collect();
    texts.reverse();
    texts.join(" ")
}
