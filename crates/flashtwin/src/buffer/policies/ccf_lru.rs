//! CCF-LRU: evicts cold clean pages first (Li et al. 2009).
//!
//! There are two recency lists: CCL has the cold clean pages, and ML has all other pages. A page is cold when it enters
//! the buffer. It enters CCL if it is read, and ML if it is written. A hit moves the page to the most recent end of ML,
//! and the page is no longer cold.
//!
//! The victim is the least recent page of CCL. If CCL is empty, the search starts at the least recent page of ML:
//!
//! - A cold page is the victim.
//! - A dirty page that is not cold becomes cold and moves to the most recent end of ML.
//! - A clean page that is not cold becomes cold and moves to the most recent end of CCL.
//!
//! If this search finds no victim because it has moved every page of ML to CCL, the victim is the least recent page of
//! CCL.

use crate::buffer::age_index::AgedLists;
use crate::buffer::entry::{cost, example, Entry, Family, Make};
use crate::buffer::policy::{then, Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::second_chance::{flagged_text, second_chance, set};
use crate::buffer::{PageId, Setup};
use crate::component::{source, Provenance};

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "ccf-lru",
    title: "CCF-LRU",
    line: "First evicts clean pages that were accessed once; clean pages accessed again stay \
           longer.",
    family: Family::Recency,
    source: source(
        "Z. Li, P. Jin, X. Su, K. Cui, L. Yue",
        "CCF-LRU: A New Buffer Replacement Algorithm for Flash Memory",
        "IEEE Transactions on Consumer Electronics 55(3)",
        2009,
    ),
    provenance: Provenance::Original,
    rule: &[
        "The cold-clean list CCL has the clean pages that were accessed once. The mixed list ML \
         has all other pages: dirty pages, and clean pages that were accessed again. A page \
         enters with its cold flag set.",
        "Miss: a page that is read enters at the most recent end of CCL, a page that is written at \
             the most recent end of ML.",
        "Hit in either list: the flag is cleared, and the page moves to the most recent end \
             of ML.",
        "Victim: the least recent page of CCL, if CCL has any.",
        "Otherwise the search starts at the least recent page of ML. A page with the flag is \
             the victim. A dirty page without the flag gets the flag and moves to the most recent \
             end of ML. A clean page without the flag gets the flag and moves to CCL. The search \
             continues with the next page. If ML becomes empty, the least recent page of CCL is \
             the victim.",
    ],
    drawing: "
ML  [ 4d1  3d0  2c0 ] -> flag 0, clean -> CCL
      ^----- flag 0, dirty: once more    flag 1: victim
CCL [ 9c1  7c1 ] -> victim, as long as there is one",
    state: "Both lists, most recent first, with the cold flag: `ML[4d1] CCL[2c1]`.",
    cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
    example: example(3, "W1 R2 R2 R3 W4 W5 R6"),
    make: Make::Base(|setup| CcfLru::new(setup).into()),
    ..Entry::PLAIN
}];

/// Indices of the lists.
const ML: usize = 0;
const CCL: usize = 1;

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    in_ccl: bool,
    cold: bool,
    dirty: bool,
}

/// Cold-clean-first LRU.
#[derive(Clone, Debug)]
pub struct CcfLru {
    lists: AgedLists<2>,
    pages: Vec<Page>,
}

impl CcfLru {
    /// Creates the policy with empty lists.
    pub fn new(setup: &Setup) -> CcfLru {
        CcfLru {
            lists: AgedLists::new(setup),
            pages: Vec::new(),
        }
    }

    fn list(&self, page: PageId) -> usize {
        match self.pages[page.0 as usize].in_ccl {
            true => CCL,
            false => ML,
        }
    }

    /// Returns the victim in ML; `None` if there is none. Each page that the search passes before the victim becomes
    /// cold, and moves to CCL if it is clean.
    fn search_ml(
        &mut self,
        device: &dyn DeviceView,
        skip: Skip,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let pages = &mut self.pages;
        let oldest =
            |lists: &mut AgedLists<2>, out: &mut _| lists.oldest_not(ML, device, skip, out);
        second_chance(&mut self.lists, out, oldest, |lists, page| {
            let state = &mut pages[page.0 as usize];
            if state.cold {
                return false;
            }
            state.cold = true;
            state.in_ccl = !state.dirty;
            lists.renew(ML, page, if state.dirty { ML } else { CCL });
            true
        })
    }
}

impl Policy for CcfLru {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let state = Page {
            in_ccl: !access.dirty,
            cold: true,
            dirty: access.dirty,
        };
        set(&mut self.pages, page, state);
        self.lists.push_newest(self.list(page), page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        self.lists.renew(self.list(page), page, ML);
        self.pages[page.0 as usize] = Page {
            in_ccl: false,
            cold: false,
            dirty: access.dirty,
        };
    }

    fn forget(&mut self, page: PageId) {
        self.lists.remove(self.list(page), page);
    }

    fn cleaned(&mut self, _device: &dyn DeviceView, page: PageId) {
        self.pages[page.0 as usize].dirty = false;
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.lists.moved(self.list(page), device, page);
    }

    #[inline]
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let found = (self.lists.oldest_not(CCL, device, skip, out))
            .or_else(|| self.search_ml(device, skip, out))
            .or_else(|| self.lists.oldest_not(CCL, device, skip, out));
        let Some(page) = found else { return false };
        self.forget(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let lists = self.lists.lists();
        let text = |list| {
            flagged_text(device, lists.iter_oldest_first(list), |page| {
                self.pages[page.0 as usize].cold.into()
            })
        };
        format!("ML[{}] CCL[{}]", text(ML), text(CCL))
    }
}

impl Prefetch for CcfLru {
    #[inline]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        then(self.lists.next_three(CCL), || self.lists.next_three(ML))
    }
}
