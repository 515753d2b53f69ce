//! AD-LRU: evicts clean pages before dirty ones, and pages referenced once before pages referenced again (Jin et al.
//! 2012).
//!
//! Each page is in one of two recency lists: Lc has the pages referenced once, and Lh has the pages referenced again.
//! FC is the least recent clean page of a list.
//!
//! - A new page enters Lc.
//! - A page that is hit moves to the most recent end of Lh, and its cold flag is cleared.
//! - The victim is taken from Lc if Lc has more than min_lc pages or Lh is empty, otherwise from Lh.
//! - If that list has a clean page, the victim is FC.
//! - If all its pages are dirty, the search starts at the least recent page. The first page whose cold flag is set is
//!   the victim. The search sets the flag of each page before it, and moves that page to the most recent end of the
//!   list.
//!
//! If GCaR filters the policy, the search for a clean page starts at FC and proceeds towards the most recent end. The
//! search skips pages whose chip is in GC.

use crate::buffer::age_index::{Ages, Passed};
use crate::buffer::entry::{cost, example_with, Entry, Family, Make};
use crate::buffer::policy::{then, Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::second_chance::flagged_text;
use crate::buffer::{PageId, Setup};
use crate::component::{parameters, Kind, Pages};
use crate::component::{source, Provenance};
use crate::list::Lists;
use crate::memory::reach;

parameters! {
    /// Parameters of AD-LRU.
    struct Parameters {
        /// Least size of the cold list.
        min_lc: Pages = Kind::Window, "0.1", "original: 0.1 of the capacity";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "ad-lru",
    title: "AD-LRU",
    line: "Has a cold and a hot list; selects a list by size, and evicts clean pages of this list \
           first.",
    family: Family::Recency,
    source: source(
        "P. Jin, Y. Ou, T. Haerder, Z. Li",
        "AD-LRU: An Efficient Buffer Replacement Algorithm for Flash-Based Databases",
        "Data and Knowledge Engineering 72",
        2012,
    ),
    provenance: Provenance::Original,
    rule: &[
        "The cold list Lc has pages that were accessed once, the hot list Lh all others; each \
             is in LRU order. Pages have cold flags as in LRU-WSR.",
        "Miss: the page enters at the most recent end of Lc. Hit: it moves to the most recent \
             end of Lh, with its flag cleared.",
        "The victim is taken from Lc if Lc has more than `min_lc` pages or Lh is empty, otherwise \
         from Lh.",
        "Victim: the least recent clean page of this list. If the list has no clean page, its \
         dirty pages get a second chance: the search starts at the least recent page. The first \
         page with the flag is the victim. Each page before it gets the flag and moves to the \
         most recent end of the list.",
    ],
    drawing: "
hit ->  Lh [ 1d0  8c0 ]
miss -> Lc [ 6d0  5c0  3d0 ]   longer than min_lc: the victim is here
                  ^ FC: least recent clean page",
    state: "Both lists, most recent first, with the cold flag: `Lc[7d0] Lh[1d0]`.",
    cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
    example: example_with(4, &[("min_lc", "1")], 1, "W1 R2 W3 W1 R4 W5 W6 W7"),
    parameters: &[Parameters::ROWS],
    make: Make::Base(|setup| AdLru::new(setup).into()),
    ..Entry::PLAIN
}];

/// Index of Lc, the list of pages referenced once.
const LC: usize = 0;
/// Index of Lh, the list of pages referenced again.
const LH: usize = 1;

/// Pages that GCaR's searches have skipped in one list, Lc or Lh. `passed` is for searches of all pages of the list,
/// `passed_clean` for searches of its clean pages.
#[derive(Clone, Debug)]
struct Past {
    /// Ages of all pages of the list.
    ages: Ages,
    passed: Passed,
    passed_clean: Passed,
}

impl Past {
    fn new(setup: &Setup) -> Past {
        Past {
            ages: Ages::new(setup.capacity, 1),
            passed: Passed::new(setup.chips),
            passed_clean: Passed::new(setup.chips),
        }
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.passed.moved(page, device, &self.ages);
        self.passed_clean.moved(page, device, &self.ages);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// Whether the page is in Lh.
    hot: bool,
    /// Whether the page's cold flag is set.
    cold: bool,
    dirty: bool,
}

impl Page {
    fn list(self) -> usize {
        if self.hot {
            LH
        } else {
            LC
        }
    }
}

/// Adaptive double LRU.
#[derive(Clone, Debug)]
pub struct AdLru {
    min_lc: usize,
    all: Lists<2>,
    /// For each list, its clean pages in the same order.
    clean: Lists<2>,
    past: [Past; 2],
    pages: Vec<Page>,
}

impl AdLru {
    /// Creates the policy with empty lists.
    pub fn new(setup: &Setup) -> AdLru {
        AdLru {
            min_lc: Parameters::of(&setup.settings).min_lc.0 as usize,
            all: Lists::new(),
            clean: Lists::new(),
            past: [Past::new(setup), Past::new(setup)],
            pages: Vec::new(),
        }
    }

    #[inline]
    fn push_newest(&mut self, page: PageId, state: Page) {
        self.pages[page.0 as usize] = state;
        let list = state.list();
        self.all.push_newest(list, page);
        let Past {
            ages,
            passed,
            passed_clean,
        } = &mut self.past[list];
        ages.push(page);
        ages.insert(page, 0);
        passed.follow(ages);
        passed_clean.follow(ages);
        if !state.dirty {
            self.clean.push_newest(list, page);
        }
    }

    /// Removes a page and returns its state.
    #[inline]
    fn remove(&mut self, page: PageId) -> Page {
        let state = self.pages[page.0 as usize];
        let list = state.list();
        let Past {
            ages,
            passed,
            passed_clean,
        } = &mut self.past[list];
        if !state.dirty {
            passed_clean.leave(page, self.clean.links(), ages);
        }
        passed.leave(page, self.all.links(), ages);
        ages.remove(page, 0);
        if !state.dirty {
            self.clean.remove(list, page);
        }
        self.all.remove(list, page);
        state
    }

    /// Returns the least recent clean page that `skip` does not exclude. Adds to `out` the number of entries of the
    /// whole list from FC to that page.
    fn clean_victim(
        &mut self,
        list: usize,
        device: &dyn DeviceView,
        skip: Skip,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let fc = self.clean.oldest(list)?;
        if !skip.page(device, fc) {
            out.inspected += 1;
            return Some(fc);
        }
        let past = &mut self.past[list];
        let (clean, ages) = ((Some(fc), self.clean.links()), &mut past.ages);
        let found = (past.passed_clean).oldest_not(device, skip, clean, ages, |_, _| ());
        let last = found.map_or(self.all.len(list) as u64, |page| ages.position(page, 0));
        out.inspected += last + 1 - ages.position(fc, 0);
        out.skipped |= (past.passed_clean).passes_over_for_chip(device, skip, ages, found);
        found
    }

    /// Returns the least recent page that `skip` does not exclude. Adds to `out` the number of entries from the least
    /// recent end to that page.
    fn oldest_not(
        &mut self,
        list: usize,
        device: &dyn DeviceView,
        skip: Skip,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let oldest = self.all.oldest(list)?;
        if !skip.page(device, oldest) {
            out.inspected += 1;
            return Some(oldest);
        }
        let past = &mut self.past[list];
        let (all, ages) = ((Some(oldest), self.all.links()), &mut past.ages);
        let found = (past.passed).oldest_not(device, skip, all, ages, |_, _| ());
        out.inspected += found.map_or(self.all.len(list) as u64, |page| ages.position(page, 0));
        out.skipped |= (past.passed).passes_over_for_chip(device, skip, ages, found);
        found
    }

    /// Returns the victim in Lc or Lh.
    fn search(
        &mut self,
        list: usize,
        device: &dyn DeviceView,
        skip: Skip,
        out: &mut Eviction,
    ) -> Option<PageId> {
        if let Some(page) = self.clean_victim(list, device, skip, out) {
            return Some(page);
        }
        let mut looked = out.inspected;
        loop {
            // Each page that the search moved counts as one inspected entry, as do the skipped pages and the page
            // found.
            out.inspected = looked;
            let page = self.oldest_not(list, device, skip, out)?;
            if self.pages[page.0 as usize].cold {
                return Some(page);
            }
            let state = self.remove(page);
            self.push_newest(
                page,
                Page {
                    cold: true,
                    ..state
                },
            );
            looked += 1;
        }
    }
}

impl Policy for AdLru {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let dirty = access.dirty;
        let state = Page {
            dirty,
            ..Page::default()
        };
        reach(&mut self.pages, page.0 as usize, state);
        self.push_newest(page, state);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        self.remove(page);
        let state = Page {
            hot: true,
            cold: false,
            dirty: access.dirty,
        };
        self.push_newest(page, state);
    }

    fn forget(&mut self, page: PageId) {
        self.remove(page);
    }

    fn cleaned(&mut self, device: &dyn DeviceView, page: PageId) {
        let state = &mut self.pages[page.0 as usize];
        let list = state.list();
        if !std::mem::take(&mut state.dirty) {
            return;
        }
        // Insert the page into the list of clean pages. Its older neighbour there is the next older clean page in
        // `all`.
        let links = self.all.links();
        let older = std::iter::successors(links.older(page), |&p| links.older(p))
            .find(|&p| !self.pages[p.0 as usize].dirty);
        self.clean.insert_newer_than(list, older, page);
        let Past {
            ages, passed_clean, ..
        } = &mut self.past[list];
        passed_clean.enter(page, device, ages);
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        let list = self.pages[page.0 as usize].list();
        self.past[list].moved(device, page);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let from_lc = self.all.len(LC) > self.min_lc || self.all.len(LH) == 0;
        let (first, second) = if from_lc { (LC, LH) } else { (LH, LC) };
        let found = (self.search(first, device, skip, out))
            .or_else(|| self.search(second, device, skip, out));
        let Some(page) = found else { return false };
        self.forget(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let [lc, lh] = [LC, LH].map(|list| {
            flagged_text(device, self.all.iter_oldest_first(list), |page| {
                self.pages[page.0 as usize].cold.into()
            })
        });
        format!("Lc[{lc}] Lh[{lh}]")
    }
}

impl Prefetch for AdLru {
    #[inline]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        let from_lc = self.all.len(LC) > self.min_lc;
        let list = if from_lc { LC } else { LH };
        let next = |lists: &Lists<2>, passed: &Passed| {
            let (oldest, links) = (lists.oldest(list), lists.links());
            links.three_from(passed.next(oldest, links))
        };
        let past = &self.past[list];
        then(next(&self.clean, &past.passed_clean), || {
            next(&self.all, &past.passed)
        })
    }
}
