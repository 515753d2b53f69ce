//! CDA-GC: keeps pages of chips in GC longer, and writes hot and cold pages to different blocks (CDA-GC section 3,
//! Algorithms 1 and 2, Figs 5 to 8).
//!
//! *Stager.* All pages are in one LRU list. A search for the victim starts at `test_entry` and inspects at most
//! `test_num` entries towards the most recent end. The victim is the first page that is not related to GC (see below).
//! If the search finds no such page, the victim is the least recent page (D-17). In both cases, `test_entry` becomes
//! the entry after the last inspected one. After `cycle_num` searches, `test_entry` is the least recent end again.
//!
//! A page is *related to GC* if the chip of its flash copy is in GC or close to GC. A chip is close to GC if its number
//! of free blocks has fallen to the trigger of GC, and its open blocks are nearly full (D-16).
//!
//! *Dispatcher.* A filter records the written pages. A page is hot if it was already written since the last reset of
//! the filter. Hot pages are written to a separate open block. A reset of the filter makes every page cold (D-18). The
//! filter is queried at each write to the buffer. With `hot_at = "write-back"`, it is queried again when the page is
//! written back (D-221).
//!
//! If GCaR filters the policy, a page on a chip in GC is evicted only if no other page can be evicted.

use crate::buffer::bloom::{Filter, FilterParameters};
use crate::buffer::entry::{cost, example_with, Entry, Family, Make, PAGES};
use crate::buffer::policy::{page_text, Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::{Aged, PageId, Setup};
use crate::component::{parameters, words, Kind};
use crate::component::{source, Provenance, Source};
use crate::memory::reach;
use crate::units::Stream;
use crate::units::{ChipId, Lpn};

parameters! {
    /// Parameters of CDA-GC.
    struct Parameters {
        /// Entries inspected in a lookup.
        test_num: u32 = Kind::Count(1, u32::MAX - 1), "64", "D-17: our decision, not printed";
        /// Number of searches after which the search starts again at the least recent end.
        cycle_num: u32 = Kind::Count(1, u32::MAX - 1), "16", "our decision, not printed";
        /// A chip whose free blocks are at the trigger is close to GC if at most this share of a block is free in its
        /// open blocks.
        hp_margin_percent: f64 = Kind::Percent, "12.5", "D-16: our decision";
    }
}

words! {
    /// Time at which the filter classifies a page.
    enum HotAt {
        /// At each write of the host, before the page is added to the filter.
        Write = "write",
        /// The page's write-back.
        WriteBack = "write-back",
    }
}

parameters! {
    /// Parameters of the dispatcher.
    struct DispatcherParameters {
        /// When the filter determines whether a page is hot: at each host write, before the page is inserted
        /// (`write`), or when the page is written back (`write-back`).
        hot_at: HotAt = Kind::Choice(HotAt::WORDS), "\"write\"", "D-221: our decision, printed both ways";
    }
}

const CDA_GC: Source = source(
    "K. Wang, H. Tan, Z. He, J. Li, K. Li",
    "CDA-GC: An Effective Cache Data Allocation for Garbage Collection in Flash-Based \
     Solid-State Drives",
    "Integration",
    2025,
);

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "cda-gc",
        title: "CDA-GC",
        line: "Keeps pages of chips that collect or soon will; writes hot and cold pages to \
               different blocks.",
        family: Family::Chips,
        source: CDA_GC,
        provenance: Provenance::Printed,
        rule: &[
            "Combines two parts: the stager (`cda-gc-stager`) selects victims, and the dispatcher \
             (`cda-gc-dispatcher`) selects the open block to which they are written.",
            "Open points of the paper are decided in D-16 to D-19.",
        ],
        state: "As for `lru`; hot pages end in h, such as `5dh`.",
        cost: cost("O(k) hashes", "O(test_num)", "O(test_num)"),
        example: example_with(
            6,
            &[("test_num", "2"), ("cycle_num", "3"), ("filter", "exact")],
            8,
            "W1 W2 W3 W4 W5 W5 W6 gc+1 gc+3 W7 W8 W9 W10",
        ),
        parameters: &[
            FilterParameters::ROWS,
            DispatcherParameters::ROWS,
            Parameters::ROWS,
        ],
        separates: true,
        make: Make::Base(|setup| CdaGc::new(setup).into()),
        ..Entry::PLAIN
    },
    Entry {
        name: "cda-gc-stager",
        title: "CDA-GC, stager only",
        line: "LRU that searches a limited part of the list for a page of a chip that is not \
                collecting.",
        family: Family::Chips,
        source: CDA_GC,
        provenance: Provenance::Printed,
        rule: &[
            "All pages are in one list, as in LRU. A pointer into the list starts at the least \
             recent end.",
            "Victim: at most `test_num` entries are inspected, from the pointer on. The first page \
             whose chip is neither collecting nor close to collection is the victim, and the \
             pointer moves just behind this page. If there is none, the least recent page is \
             evicted, and the pointer stays where the search stopped (D-17).",
            "After `cycle_num` searches, the pointer returns to the least recent end.",
            "A chip is close to collection if two conditions hold: it has no free block above the \
             trigger (the number of free blocks at which collection starts), and at most \
             `hp_margin_percent` of its open block is unwritten (D-16).",
        ],
        drawing: "
                  pointer after the lookup
                     v
most recent [ 6d  5d  4d  3d  2d  1d ] least recent
                          ^   ^---^ chip collecting: passed over
                          victim            (test_num >= 3)",
        state: PAGES,
        cost: cost("O(1)", "O(test_num)", "O(test_num)"),
        example: example_with(
            6,
            &[("test_num", "2"), ("cycle_num", "3")],
            8,
            "W1 W2 W3 W4 W5 W6 gc+1 gc+3 W7 W8 W9 W10",
        ),
        parameters: &[Parameters::ROWS],
        make: Make::Base(|setup| CdaGc::stager(setup).into()),
        ..Entry::PLAIN
    },
    Entry {
        name: "cda-gc-dispatcher",
        title: "CDA-GC, dispatcher only",
        line: "LRU that separates hot and cold pages: each kind is written to an open block of \
               its own.",
        family: Family::Chips,
        source: CDA_GC,
        provenance: Provenance::Printed,
        rule: &[
            "Victims are those of LRU.",
            "Every write of the host queries a Bloom filter with 8 hash functions, then inserts \
             its page into the filter. The page is hot if the filter already contained it, \
             otherwise cold.",
            "The filter and all hot marks are cleared when `filter_reset_items` distinct pages \
             have been inserted, and after `filter_reset_ms` of virtual time if that is not 0 \
             (D-18). With `filter_forget` = generations, pages inserted since the previous reset \
             stay hot.",
            "With `hot_at` = write-back, a page is hot if the filter contains it when the page is \
             written back (D-221).",
            "A hot page is written to its chip's hot open block, a cold page to the cold one. A \
             page moved by collection goes to the cold block, unless the device file specifies \
             another one (D-220).",
        ],
        state: "As for `lru`; hot pages end in h, such as `5dh`.",
        cost: cost("O(k) hashes", "O(k) hashes", "O(k) hashes"),
        example: example_with(3, &[("filter", "exact")], 1, "W1 W2 W1 R2 W3 W4"),
        parameters: &[FilterParameters::ROWS, DispatcherParameters::ROWS],
        separates: true,
        make: Make::Base(|setup| CdaGc::dispatcher(setup).into()),
        ..Entry::PLAIN
    },
];

/// The parameters of the stager, and its current position in the list.
#[derive(Clone, Debug)]
struct Stager {
    test_num: u32,
    cycle_num: u32,
    /// A chip may be close to GC if at most this many pages are free in its open blocks.
    margin_pages: u32,
    /// Page at which the next search starts; `None` means the least recent page.
    test_entry: Option<PageId>,
    lookups: u32,
    passed: u64,
    failed: u64,
}

impl Stager {
    fn new(setup: &Setup) -> Stager {
        let p = Parameters::of(&setup.settings);
        Stager {
            test_num: p.test_num,
            cycle_num: p.cycle_num,
            margin_pages: (f64::from(setup.pages_per_block) * p.hp_margin_percent / 100.0) as u32,
            test_entry: None,
            lookups: 0,
            passed: 0,
            failed: 0,
        }
    }

    fn related(&self, device: &dyn DeviceView, chip: ChipId) -> bool {
        device.in_gc(chip)
            || device.free_blocks(chip) <= device.gc_trigger_blocks(chip)
                && device.open_pages(chip) <= self.margin_pages
    }

    /// Searches for a victim without changing the state of the stager.
    fn search(&self, device: &dyn DeviceView, list: &Aged, skip: Skip) -> Search {
        let mut search = Search::default();
        let mut at = self.test_entry.or(list.list().oldest());
        while let Some(page) = at {
            if search.inspected == self.test_num {
                break;
            }
            search.inspected += 1;
            at = list.list().newer(page);
            let chip = device.chip(page);
            let skipped = skip.page_by_chip(device, page);
            search.skipped |= skipped;
            let passed_over = skipped || device.in_flight(page);
            if !passed_over && !chip.is_some_and(|chip| self.related(device, chip)) {
                search.victim = Some(page);
                break;
            }
        }
        search.stopped_at = at;
        search
    }

    fn searched(&mut self, search: &Search) {
        self.passed += u64::from(search.inspected - u32::from(search.victim.is_some()));
        self.failed += u64::from(search.victim.is_none());
        self.test_entry = search.stopped_at;
        self.lookups += 1;
        if self.lookups == self.cycle_num {
            self.lookups = 0;
            self.test_entry = None;
        }
    }
}

#[derive(Default)]
struct Search {
    victim: Option<PageId>,
    stopped_at: Option<PageId>,
    inspected: u32,
    skipped: bool,
}

/// The separation of hot pages from cold ones.
#[derive(Clone, Debug)]
struct Dispatcher {
    filter: Filter,
    hot_at: HotAt,
    /// Two values for each page: the epoch of the filter in which the page was found hot (0 if it was found cold), and
    /// its logical page.
    hot_in: Vec<(u32, Lpn)>,
    hot_writes: u64,
}

impl Dispatcher {
    fn new(setup: &Setup) -> Dispatcher {
        Dispatcher {
            filter: Filter::new(setup),
            hot_at: DispatcherParameters::of(&setup.settings).hot_at,
            hot_in: Vec::new(),
            hot_writes: 0,
        }
    }

    fn set(&mut self, page: PageId, lpn: Lpn, hot: bool) {
        reach(&mut self.hot_in, page.0 as usize, (0, lpn));
        let epoch = if hot { self.filter.epoch() } else { 0 };
        self.hot_in[page.0 as usize] = (epoch, lpn);
        self.hot_writes += u64::from(hot);
    }

    fn is_hot(&self, page: PageId) -> bool {
        let of_page = self.hot_in.get(page.0 as usize);
        of_page.is_some_and(|&(epoch, lpn)| match self.hot_at {
            HotAt::Write => self.filter.remembers(epoch),
            HotAt::WriteBack => self.filter.has(lpn),
        })
    }
}

/// LRU with the stager, the dispatcher, or both.
#[derive(Clone, Debug)]
pub struct CdaGc {
    list: Aged,
    stager: Option<Stager>,
    dispatcher: Option<Dispatcher>,
}

impl CdaGc {
    /// Creates the policy with both parts, the stager and the dispatcher.
    pub fn new(setup: &Setup) -> CdaGc {
        CdaGc::with(setup, true, true)
    }

    /// Creates the policy with the stager only. All pages count as cold.
    pub fn stager(setup: &Setup) -> CdaGc {
        CdaGc::with(setup, true, false)
    }

    /// Creates the policy with the dispatcher only. Its victims are those of LRU.
    pub fn dispatcher(setup: &Setup) -> CdaGc {
        CdaGc::with(setup, false, true)
    }

    fn with(setup: &Setup, stager: bool, dispatcher: bool) -> CdaGc {
        CdaGc {
            list: Aged::new(setup),
            stager: stager.then(|| Stager::new(setup)),
            dispatcher: dispatcher.then(|| Dispatcher::new(setup)),
        }
    }

    fn classify(&mut self, device: &dyn DeviceView, page: PageId, access: &Access, new: bool) {
        if let Some(dispatcher) = &mut self.dispatcher {
            if access.write {
                let hot = dispatcher.filter.write(device.now(), access.lpn);
                dispatcher.set(page, access.lpn, hot);
            } else if new {
                dispatcher.set(page, access.lpn, false);
            }
        }
    }

    /// Must be called before a page is moved in the list or removed from it. If the next search would start at this
    /// page, it will start at the next more recent page instead.
    #[inline]
    fn leave(&mut self, page: PageId) {
        if let Some(stager) = &mut self.stager {
            if stager.test_entry == Some(page) {
                stager.test_entry = self.list.list().newer(page);
            }
        }
    }
}

impl Policy for CdaGc {
    #[inline]
    fn insert(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        self.classify(device, page, access, true);
        self.list.push_newest(page);
    }

    #[inline]
    fn hit(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        self.classify(device, page, access, false);
        self.leave(page);
        self.list.renew(page);
    }

    fn forget(&mut self, page: PageId) {
        self.leave(page);
        self.list.remove(page);
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.list.moved(device, page);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let stager = self.stager.as_ref();
        let search = stager.map(|stager| stager.search(device, &self.list, skip));
        let mut victim = None;
        if let Some(search) = &search {
            out.inspected += u64::from(search.inspected);
            out.skipped |= search.skipped;
            victim = search.victim;
            if victim.is_none() && skip == Skip::Nothing {
                // The search found no page, so the victim is the least recent page. It does not count as inspected.
                let oldest = self.list.list().oldest();
                victim = oldest.filter(|&page| !device.in_flight(page));
            }
        }
        let Some(page) = victim.or_else(|| self.list.oldest_not(device, skip, out)) else {
            return false;
        };
        if let (Some(stager), Some(search)) = (&mut self.stager, &search) {
            stager.searched(search);
        }
        self.forget(page);
        out.victims.push(page);
        true
    }

    #[inline]
    fn stream(&self, page: PageId, _lpn: Lpn) -> Stream {
        match &self.dispatcher {
            Some(dispatcher) if dispatcher.is_hot(page) => Stream::Hot,
            _ => Stream::Cold,
        }
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let text = |page| {
            let hot = device.dirty(page) && self.stream(page, device.lpn(page)) == Stream::Hot;
            page_text(device, page) + if hot { "h" } else { "" }
        };
        let mut texts: Vec<String> = self.list.list().iter_oldest_first().map(text).collect();
        texts.reverse();
        texts.join(" ")
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = Vec::new();
        if let Some(stager) = &self.stager {
            counters.push(("stager_passed_over", stager.passed));
            counters.push(("stager_failed_lookups", stager.failed));
        }
        if let Some(dispatcher) = &self.dispatcher {
            counters.push(("dispatcher_hot_writes", dispatcher.hot_writes));
        }
        counters
    }

    fn reset_counters(&mut self) {
        if let Some(stager) = &mut self.stager {
            (stager.passed, stager.failed) = (0, 0);
        }
        if let Some(dispatcher) = &mut self.dispatcher {
            dispatcher.hot_writes = 0;
        }
    }
}

impl Prefetch for CdaGc {
    #[inline]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        match self.stager.as_ref().and_then(|stager| stager.test_entry) {
            None => self.list.next_three(),
            entry => self.list.list().links().three_from(entry),
        }
    }
}
