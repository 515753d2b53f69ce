//! W-TinyLFU: a small LRU window in front of a segmented LRU. A comparison of access counts decides which pages move
//! from the window to the segmented LRU (Einziger, Friedman and Manes, ACM TOS 2017, section 4).
//!
//! Each access increments the page's count (`buffer/sketch.rs`). New pages enter the window. When the window is full,
//! its least recent page is the candidate to move to the probation segment. As long as the buffer has room, the
//! candidate moves without a comparison. In a full buffer, the count of the candidate is compared with that of its
//! rival. The rival is the least recent page of the probation segment or, if this segment is empty, of the protected
//! segment. The page with the smaller count is evicted. If the counts are equal, the candidate is evicted.
//!
//! A hit in the probation segment moves the page to the protected segment. If the protected segment is then too large,
//! its least recent page moves back to the probation segment.

use crate::buffer::age_index::AgedLists;
use crate::buffer::entry::{cost, example_with, Entry, Family, Make};
use crate::buffer::ghosts::Incoming;
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Skip};
use crate::buffer::second_chance::{flagged_text, set};
use crate::buffer::sketch::{Counting, Frequencies};
use crate::buffer::{PageId, Setup};
use crate::component::{parameters, Kind, Pages};
use crate::component::{source, Provenance};
use crate::units::Lpn;

parameters! {
    /// Parameters of W-TinyLFU.
    struct Parameters {
        /// Size of the window; at least one page.
        admission_window: Pages = Kind::Window, "0.01", "original: 0.01 of the capacity";
        /// Share of the segmented LRU (all pages outside the window) that the protected segment may occupy.
        protected: f64 = Kind::Share, "0.8", "original: 0.8";
        /// How accesses are counted: in a count-min sketch with 8 bytes per page (`sketch`), or exactly.
        counts: Counting = Kind::Choice(Counting::WORDS), "\"sketch\"", "original";
        /// Number of accesses after which all counts are halved, as a multiple of the pages of the buffer.
        sample: u32 = Kind::Count(1, 1000), "10", "common: as in Caffeine";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "w-tinylfu",
    title: "W-TinyLFU",
    line: "A small LRU window; a page that leaves it must have more accesses than the victim \
            that it replaces.",
    family: Family::General,
    source: source(
        "G. Einziger, R. Friedman, B. Manes",
        "TinyLFU: A Highly Efficient Cache Admission Policy",
        "ACM Transactions on Storage 13(4)",
        2017,
    ),
    provenance: Provenance::Original,
    rule: &[
        "Each access adds 1 to the page's count, up to 15. After `sample` * C accesses, all \
         counts are halved. Pages that are not cached have counts, too.",
        "Miss: the page enters at the most recent end of the window.",
        "Hit in the window or the protected segment: the page moves to its most recent end. Hit in \
         the probation segment: the page moves to the most recent end of the protected segment; if \
         the protected segment is then too large, its least recent page moves to probation.",
        "Victim, if the window is full: the least recent page of the window is compared with the \
         least recent page of probation (or of the protected segment, if probation is empty). The \
         page with the smaller count is the victim; if the counts are equal, it is the window's \
         page. If the window's page is not the victim, it moves to probation.",
        "As long as the buffer has room, pages move from the window to probation without a \
         comparison.",
    ],
    drawing: "
new -> window [ 6 5 ] -> candidate 5 --+-- the smaller count leaves
                                       |
probation [ 4 2 ] -------> rival 2 ----+
    | hit     ^ one too many
    v         |
protected [ 3 1 ]",
    state:
        "`window[6d1] probation[2c1] protected[1d3]`: pages with their counts, most recent first.",
    cost: cost("O(1)", "O(1)", "O(1) amortised"),
    example: example_with(
        4,
        &[("admission_window", "1")],
        1,
        "W1 W2 R1 R1 R3 W4 R1 W5 R2 W6 R2 W7",
    ),
    parameters: &[Parameters::ROWS],
    make: Make::Base(|setup| WTinyLfu::new(setup).into()),
    ..Entry::PLAIN
}];

/// Indices of the lists.
const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// Window TinyLFU.
#[derive(Clone, Debug)]
pub struct WTinyLfu {
    window_pages: usize,
    protected_pages: usize,
    lists: AgedLists<3>,
    /// For each page: the index of its list.
    at: Vec<usize>,
    counts: Frequencies,
    /// The incoming page, from the time when its access is counted until the page is inserted. The access is therefore
    /// counted only once.
    incoming: Incoming<()>,
}

impl WTinyLfu {
    /// Creates the policy with empty lists.
    pub fn new(setup: &Setup) -> WTinyLfu {
        let parameters = Parameters::of(&setup.settings);
        let window_pages = parameters.admission_window.0.max(1);
        let behind = setup.capacity.saturating_sub(window_pages);
        WTinyLfu {
            window_pages: window_pages as usize,
            protected_pages: (f64::from(behind) * parameters.protected) as usize,
            lists: AgedLists::new(setup),
            at: Vec::new(),
            counts: Frequencies::new(parameters.counts, setup.capacity, parameters.sample),
            incoming: Incoming::none(),
        }
    }

    /// Counts the access to the incoming page, unless it has been counted already.
    fn arrives(&mut self, lpn: Lpn) {
        if self.incoming.known(lpn).is_none() {
            self.counts.record(lpn);
            self.incoming.keep(lpn, ());
        }
    }

    fn len(&self, list: usize) -> usize {
        self.lists.lists().len(list)
    }

    /// Makes a page the most recent one of a list.
    fn renew(&mut self, page: PageId, to: usize) {
        self.lists.renew(self.at[page.0 as usize], page, to);
        self.at[page.0 as usize] = to;
    }

    /// Moves the least recent pages of `list` to the probation segment until `list` has at most `most` pages.
    fn limit(&mut self, list: usize, most: usize) {
        while self.len(list) > most {
            let Some(page) = self.lists.lists().oldest(list) else {
                return;
            };
            self.renew(page, PROBATION);
        }
    }
}

impl Policy for WTinyLfu {
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        self.arrives(access.lpn);
        self.incoming.done();
        set(&mut self.at, page, WINDOW);
        self.lists.push_newest(WINDOW, page);
        self.limit(WINDOW, self.window_pages);
    }

    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        self.counts.record(access.lpn);
        match self.at[page.0 as usize] {
            WINDOW => self.renew(page, WINDOW),
            _ => self.renew(page, PROTECTED),
        }
        self.limit(PROTECTED, self.protected_pages);
    }

    fn forget(&mut self, page: PageId) {
        self.lists.remove(self.at[page.0 as usize], page);
    }

    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.lists.moved(self.at[page.0 as usize], device, page);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        self.arrives(incoming.lpn);
        let overflows = self.len(WINDOW) >= self.window_pages;
        let mut oldest = |list| self.lists.oldest_not(list, device, skip, out);
        let candidate = if overflows { oldest(WINDOW) } else { None };
        let rival = oldest(PROBATION).or_else(|| oldest(PROTECTED));
        let count = |page| self.counts.of(device.lpn(page));
        let page = match (candidate, rival) {
            (Some(candidate), Some(rival)) if count(candidate) > count(rival) => {
                self.renew(candidate, PROBATION);
                rival
            }
            (Some(page), _) | (None, Some(page)) => page,
            (None, None) if overflows => return false,
            (None, None) => match oldest(WINDOW) {
                Some(page) => page,
                None => return false,
            },
        };
        self.forget(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let text = |list| {
            let pages = self.lists.lists().iter_oldest_first(list);
            flagged_text(device, pages, |page| self.counts.of(device.lpn(page)))
        };
        let [window, probation, protected] = [WINDOW, PROBATION, PROTECTED].map(text);
        format!("window[{window}] probation[{probation}] protected[{protected}]")
    }
}
