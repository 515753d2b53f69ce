//! CFLRU: LRU that evicts clean pages first within a window at the least recent end (Park et al., CASES 2006).
//!
//! Hits and insertions are as in LRU. The victim is the least recent clean page among the `window` least recent pages.
//! If all these pages are dirty, the victim is the least recent page. If GCaR filters the policy, pages whose chip is
//! in GC are skipped. The victim is then the least recent of the other clean pages of the window. Without one, it is
//! the least recent of the other pages of the whole list, clean or dirty (D-12).
//!
//! The window is the `window` least recent positions of the list. Its clean pages are also in a second list, so a
//! victim is found without a scan. If a page of the window is hit or evicted, the next more recent page enters the
//! window.

use crate::buffer::age_index::{Ages, Passed};
use crate::buffer::entry::{cost, example, example_with, Entry, Family, Make, ECR, PAGES};
use crate::buffer::policy::{
    pages_text, then, Access, DeviceView, Eviction, Policy, Prefetch, Skip,
};
use crate::buffer::{List, PageId, Setup};
use crate::component::{parameters, Kind, Pages};
use crate::component::{source, Provenance};
use crate::memory::{prefetch, reach};

parameters! {
    /// Parameters of CFLRU.
    struct Parameters {
        /// Size of the clean-first region: a number of pages, or a fraction of the capacity (rounded down, at least
        /// one page; 0: as `lru`).
        window: Pages = Kind::Window, "0.25", "D-5: our decision";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "cflru",
        title: "CFLRU",
        line: "LRU that evicts clean pages first within a window at the least recent end.",
        family: Family::Recency,
        source: source(
            "S. Park, D. Jung, J. Kang, J. Kim, J. Lee",
            "CFLRU: A Replacement Algorithm for Flash Memory",
            "CASES",
            2006,
        ),
        provenance: Provenance::Original,
        rule: &[
            "Hit and miss are as in LRU.",
            "The `window` least recent entries of the list are the clean-first region.",
            "Victim: the least recent clean page of the region; if the region has none, the least \
             recent page of the list.",
            "Clean pages outside the region are not searched for.",
        ],
        drawing: "
              working region   clean-first region
most recent [ 6d  5c  4d  9c | 3d  2c  1d ] least recent
                                   ^ victim",
        state: PAGES,
        cost: cost("O(1)", "O(window)", "O(1)"),
        example: example_with(4, &[("window", "2")], 1, "W1 R2 W3 W4 R5 W6 R7"),
        parameters: &[Parameters::ROWS],
        make: Make::Base(|setup| Cflru::new(setup).into()),
        ..Entry::PLAIN
    },
    Entry {
        name: "cflru-eps",
        title: "CFLRU-epsilon",
        line: "CFLRU whose clean-first region is the whole buffer.",
        family: Family::Recency,
        source: ECR,
        provenance: Provenance::Printed,
        rule: &[
            "Hit and miss are as in LRU.",
            "Victim: the least recent clean page; if every page is dirty, the least recent page.",
            "Equal to `cflru` with a window of the whole buffer.",
        ],
        state: PAGES,
        cost: cost("O(1)", "O(n)", "O(1)"),
        example: example(4, "W1 R2 W3 W4 R5 W6 R7"),
        make: Make::Base(|setup| Cflru::whole(setup).into()),
        ..Entry::PLAIN
    },
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Working,
    /// The page is in the window. `clean` is true if it is also on the list of clean pages.
    Window { clean: bool },
}

/// The page is in the window and on the list of clean pages.
const CLEAN: Place = Place::Window { clean: true };

/// Clean-first LRU.
#[derive(Clone, Debug)]
pub struct Cflru {
    window: usize,
    list: List,
    ages: Ages,
    /// For each page, its place (in the window or not), and whether it is dirty.
    pages: Vec<(Place, bool)>,
    in_window: usize,
    /// The most recent page of the window.
    boundary: Option<PageId>,
    clean_in_window: List,
    /// Pages that GCaR's searches of the whole list have skipped. `passed_clean` has the pages that GCaR's searches of
    /// the window's clean pages have skipped.
    passed: Passed,
    passed_clean: Passed,
}

impl Cflru {
    /// Creates CFLRU, whose clean-first region has `window` pages.
    pub fn new(setup: &Setup) -> Cflru {
        Cflru::with_window(setup, Parameters::of(&setup.settings).window)
    }

    /// Creates CFLRU-epsilon, whose clean-first region is the whole buffer (ECR section 4.2).
    pub fn whole(setup: &Setup) -> Cflru {
        Cflru::with_window(setup, Pages(setup.capacity))
    }

    fn with_window(setup: &Setup, window: Pages) -> Cflru {
        Cflru {
            window: window.0 as usize,
            list: List::default(),
            ages: Ages::new(setup.capacity, 1),
            pages: Vec::new(),
            in_window: 0,
            boundary: None,
            clean_in_window: List::default(),
            passed: Passed::new(setup.chips),
            passed_clean: Passed::new(setup.chips),
        }
    }

    /// If the window has room, moves the next more recent page into it.
    fn refill(&mut self) {
        if self.in_window == self.window {
            return;
        }
        let next = match self.boundary {
            Some(boundary) => self.list.newer(boundary),
            None => self.list.oldest(),
        };
        let Some(page) = next else { return };
        let dirty = self.pages[page.0 as usize].1;
        self.pages[page.0 as usize].0 = Place::Window { clean: !dirty };
        if !dirty {
            self.clean_in_window.push_newest(page);
        }
        self.in_window += 1;
        self.boundary = Some(page);
        // Prefetch the state of the page that enters the window next.
        if let Some(next) = self.list.newer(page) {
            prefetch(&self.pages, next.0 as usize);
            self.list.prefetch(next);
            self.clean_in_window.prefetch(next);
        }
    }

    fn push(&mut self, page: PageId, dirty: bool) {
        self.pages[page.0 as usize] = (Place::Working, dirty);
        self.list.push_newest(page);
        self.ages.push(page);
        self.ages.insert(page, 0);
        self.passed.follow(&self.ages);
        self.passed_clean.follow(&self.ages);
        self.refill();
    }

    /// Returns the victim, and the number of entries that a scan for it inspects.
    fn choose(&self) -> (Option<PageId>, u64) {
        match self.clean_in_window.oldest() {
            Some(clean) => (Some(clean), self.ages.position(clean, 0)),
            None => (self.list.oldest(), self.in_window.max(1) as u64),
        }
    }

    /// Returns the least recent clean page of the window that `skip` does not exclude. If there is none, returns the
    /// least recent page of the whole list that `skip` does not exclude. Also returns the number of inspected entries.
    fn choose_not(&mut self, device: &dyn DeviceView, skip: Skip) -> (Option<PageId>, u64) {
        let known = |_: &mut Ages, _| ();
        let ages = &mut self.ages;
        let clean = (self.clean_in_window.oldest(), self.clean_in_window.links());
        if let Some(page) = (self.passed_clean).oldest_not(device, skip, clean, ages, known) {
            return (Some(page), ages.position(page, 0));
        }
        let scanned = self.in_window as u64;
        let all = (self.list.oldest(), self.list.links());
        match (self.passed).oldest_not(device, skip, all, ages, known) {
            Some(page) => (Some(page), scanned + ages.position(page, 0)),
            None => (None, scanned + self.list.len() as u64),
        }
    }

    fn is_clean(&self, page: PageId) -> bool {
        self.pages[page.0 as usize].0 == CLEAN
    }

    fn unlink(&mut self, page: PageId) {
        if let Place::Window { clean } = self.pages[page.0 as usize].0 {
            self.in_window -= 1;
            if clean {
                (self.passed_clean).leave(page, self.clean_in_window.links(), &self.ages);
                self.clean_in_window.remove(page);
            }
            if self.boundary == Some(page) {
                self.boundary = self.list.older(page);
            }
        }
        self.passed.leave(page, self.list.links(), &self.ages);
        self.list.remove(page);
        self.ages.remove(page, 0);
        self.refill();
    }
}

impl Policy for Cflru {
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        reach(&mut self.pages, page.0 as usize, (Place::Working, false));
        self.push(page, access.dirty);
    }

    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        self.unlink(page);
        self.push(page, access.dirty);
    }

    fn forget(&mut self, page: PageId) {
        self.unlink(page);
    }

    fn cleaned(&mut self, device: &dyn DeviceView, page: PageId) {
        let state = &mut self.pages[page.0 as usize];
        state.1 = false;
        if state.0 != (Place::Window { clean: false }) {
            return;
        }
        state.0 = CLEAN;
        // Insert the page into the list of clean pages. Its older neighbour there is the next older clean page of the
        // whole list.
        let older = std::iter::successors(self.list.older(page), |&p| self.list.older(p))
            .find(|&p| self.is_clean(p));
        self.clean_in_window.insert_newer_than(older, page);
        self.passed_clean.enter(page, device, &self.ages);
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.passed.moved(page, device, &self.ages);
        self.passed_clean.moved(page, device, &self.ages);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let first = self.choose();
        // If the window has no clean page, GCaR searches the whole list, starting at the least recent page.
        let again = skip != Skip::Nothing && self.clean_in_window.is_empty();
        let (found, inspected) = match first.0 {
            Some(page) if again || skip.page(device, page) => self.choose_not(device, skip),
            _ => first,
        };
        out.inspected += inspected;
        out.skipped |= found != first.0
            && skip != Skip::Nothing
            && found != self.choose_not(device, Skip::Nothing).0;
        let Some(page) = found else { return false };
        self.forget(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        pages_text(device, self.list.iter_oldest_first())
    }
}

impl Prefetch for Cflru {
    #[inline]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        let next = |list: &List, passed: &Passed| {
            let links = list.links();
            links.three_from(passed.next(list.oldest(), links))
        };
        then(next(&self.clean_in_window, &self.passed_clean), || {
            next(&self.list, &self.passed)
        })
    }
}
