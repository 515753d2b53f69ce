//! LRU-WSR: LRU that gives a dirty page a second chance (Jung et al. 2008).
//!
//! Hits and insertions are as in LRU, and clear the cold flag of the page. The search starts at the least recent page.
//! A clean page is the victim, whether its flag is set or not. A dirty page is the victim if its flag is set.
//! Otherwise, its flag is set and the page moves to the most recent end.

use crate::buffer::entry::{cost, example, Entry, Family, Make};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::second_chance::{flagged_text, second_chance, set};
use crate::buffer::{Aged, PageId, Setup};
use crate::component::{source, Provenance};

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "lru-wsr",
    title: "LRU-WSR",
    line: "LRU that gives a dirty page a second chance before it is written back.",
    family: Family::Recency,
    source: source(
        "H. Jung, H. Shim, S. Park, S. Kang, J. Cha",
        "LRU-WSR: Integration of LRU and Writes Sequence Reordering for Flash Memory",
        "IEEE Transactions on Consumer Electronics 54(3)",
        2008,
    ),
    provenance: Provenance::Original,
    rule: &[
        "All pages are in one list, as in LRU. Each page has a cold flag, which is cleared when \
         the page enters and when it is hit.",
        "Victim: the search starts at the least recent page. The first page that is clean or has \
         the flag is the victim.",
        "Each page before it (dirty, without the flag) gets the flag and moves to the most recent \
         end.",
    ],
    drawing: "
most recent [ 4d0  3d0  2c0  1d0 ] least recent
               ^              |
               +--------------+ dirty, flag 0: flag 1 and once more round",
    state: "As for `lru`, followed by the cold flag: `4d1`.",
    cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
    example: example(3, "W1 R2 W3 W4 W5 W6"),
    make: Make::Base(|setup| LruWsr::new(setup).into()),
    ..Entry::PLAIN
}];

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    cold: bool,
    dirty: bool,
}

/// LRU with write sequence reordering.
#[derive(Clone, Debug)]
pub struct LruWsr {
    list: Aged,
    pages: Vec<Page>,
}

impl LruWsr {
    /// Creates the policy with an empty list.
    pub fn new(setup: &Setup) -> LruWsr {
        LruWsr {
            list: Aged::new(setup),
            pages: Vec::new(),
        }
    }
}

impl Policy for LruWsr {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let (cold, dirty) = (false, access.dirty);
        set(&mut self.pages, page, Page { cold, dirty });
        self.list.push_newest(page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let (cold, dirty) = (false, access.dirty);
        self.pages[page.0 as usize] = Page { cold, dirty };
        self.list.renew(page);
    }

    fn forget(&mut self, page: PageId) {
        self.list.remove(page);
    }

    fn cleaned(&mut self, _device: &dyn DeviceView, page: PageId) {
        self.pages[page.0 as usize].dirty = false;
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.list.moved(device, page);
    }

    #[inline]
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let pages = &mut self.pages;
        let oldest = |list: &mut Aged, out: &mut _| list.oldest_not(device, skip, out);
        let found = second_chance(&mut self.list, out, oldest, |list, page| {
            let state = &mut pages[page.0 as usize];
            let again = state.dirty && !state.cold;
            if again {
                state.cold = true;
                list.renew(page);
            }
            again
        });
        let Some(page) = found else { return false };
        self.list.remove(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        flagged_text(device, self.list.list().iter_oldest_first(), |page| {
            self.pages[page.0 as usize].cold.into()
        })
    }
}

impl Prefetch for LruWsr {
    #[inline]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        self.list.next_three()
    }
}
