//! GCaR: a filter over the victim search of any base policy (GCaR Algorithms 1, 2).
//!
//! The victim is the base policy's first choice among the pages whose chip is not in GC. If every cached page is on a
//! chip in GC, the victim is the base policy's unfiltered choice (D-11). A counter records how often this happens. The
//! base policy handles hits and insertions. The filter stores nothing per page: it reads the states of the chips when a
//! victim is needed (GCaR section 3.3).

use std::collections::{hash_map, HashMap};
use std::num::NonZeroU32;

use crate::buffer::entry::{cost, example_with, Entry, Family, Make, FILTER};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::registry::Base;
use crate::buffer::{Aged, PageId, Setup};
use crate::chips::{ChipChanges, ChipSet};
use crate::component::{parameters, Kind};
use crate::component::{source, Provenance};
use crate::units::{ChipId, Lpn, Stream, Time};

parameters! {
    /// Parameters of GCaR.
    struct Parameters {
        /// Keep the pages of chips that are one free block away from GC as well.
        gc_lookahead: bool = Kind::Bool, "false", "D-4: our decision";
        /// Maximum number of dirty victims that one request takes from one chip. It is a percentage of the request's
        /// pages divided by the number of chips, rounded up; 0: no limit.
        chip_share_percent: u32 = Kind::Count(0, 65_535), "0", "ours (D-204)";
        /// Size of a stripe: consecutive pages, such as the data pages of a stripe of an array. The dirty pages of a
        /// stripe are evicted together; 0: each page alone.
        stripe_pages: u32 = Kind::Count(0, 65_535), "0", "ours (D-205)";
    }
}

/// The base policies that the GCaR paper combines with GCaR.
pub(in crate::buffer) const BASES_OF_THE_PAPER: [&str; 3] = ["lru", "cflru", "bplru"];

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: FILTER,
    title: "GCaR",
    line: "The policy NAME, but pages whose chip is collecting garbage are skipped.",
    family: Family::Chips,
    source: source(
        "S. Wu, B. Mao, Y. Lin, H. Jiang",
        "Improving Performance for Flash-Based Storage Systems through GC-Aware Cache \
             Management",
        "IEEE Transactions on Parallel and Distributed Systems 28(10)",
        2017,
    ),
    provenance: Provenance::Printed,
    rule: &[
        "GCaR is a filter over the victim search of any policy NAME. NAME handles hits and \
         misses.",
        "Victim: the first page, in NAME's order of eviction, whose chip is not collecting at \
             that instant. Clean and dirty pages are skipped alike.",
        "If the chip of every page is collecting, NAME's own victim is evicted (D-11), and \
             this case is counted.",
        "While no chip is collecting, the policy equals NAME.",
        "Over `bplru`, `cbm` and `req-block`, the block being written is still the last \
             choice (D-160).",
        "Over `cflru`, the clean pages of the window are searched first, then the whole list \
             (D-12). Over policies that rank blocks, `block_in_gc` specifies when a block counts \
             as collecting (D-13).",
        "Large requests become slower, since a request waits for the slowest of the evictions \
             that make room for its pages. The victims of NAME are spread over all chips. The \
             victims of GCaR are on the chips that do not collect, and the skipped pages are \
             later evicted together, all from one chip. For figures, see GCaR with large requests \
             in docs/policies.md.",
        "With `chip_share_percent`, a chip that has reached its share of a request's victims \
             is skipped as if it were collecting. If no other chip is left, NAME's own victim is \
             evicted (D-204). With `stripe_pages`, the other dirty pages of a dirty victim's \
             stripe are evicted together with it (D-205).",
    ],
    drawing: "
chip           0   1   0   2   1   2       chip 2 is collecting
most recent [ 6d  5c  4d  3d  1d  2d ] least recent
                               ^   ^ passed over
                               victim",
    state: "As for NAME.",
    cost: cost("as NAME", "O(n)", "O(K)"),
    example: example_with(4, &[], 2, "W1 W2 R3 W4 gc+1 W6 R8 gc+0 W10 gc-0 gc-1 W12"),
    parameters: &[Parameters::ROWS],
    make: Make::Filter,
    ..Entry::PLAIN
}];

/// Counts the dirty victims of one host request on each chip. A chip is *closed* if the request may take no further
/// victims from it.
#[derive(Clone, Debug)]
struct Shares {
    percent: u32,
    request: Option<u64>,
    victims: Vec<u32>,
    closed: ChipSet,
}

impl Shares {
    fn new(percent: u32, chips: u32) -> Shares {
        Shares {
            percent,
            request: None,
            victims: vec![0; chips as usize],
            closed: ChipSet::none(chips),
        }
    }

    /// Closes the chips that are in GC. Also closes the chips from which the request has taken its maximum number of
    /// dirty victims.
    fn close(&mut self, device: &dyn DeviceView, incoming: &Access) {
        if self.request.replace(incoming.request) != Some(incoming.request) {
            self.victims.fill(0);
        }
        let hundredths = u64::from(incoming.request_pages) * u64::from(self.percent);
        let share = hundredths.div_ceil(100 * self.victims.len() as u64);
        for (chip, &victims) in self.victims.iter().enumerate() {
            let chip = ChipId(chip as u16);
            let closed = u64::from(victims) >= share || device.in_gc(chip);
            self.closed.set(chip, closed);
        }
    }

    fn count(&mut self, device: &dyn DeviceView, victims: &[PageId]) {
        for &page in victims {
            if let Some(chip) = device.chip(page).filter(|_| device.dirty(page)) {
                self.victims[chip.0 as usize] += 1;
            }
        }
    }
}

/// The cached pages of each stripe.
#[derive(Clone, Debug)]
struct Stripes {
    pages: NonZeroU32,
    cached: HashMap<u32, Vec<PageId>>,
    /// The stripe of each cached page.
    of: Vec<u32>,
}

impl Stripes {
    fn new(pages: NonZeroU32) -> Stripes {
        Stripes {
            pages,
            cached: HashMap::new(),
            of: Vec::new(),
        }
    }

    #[inline(always)]
    fn insert(&mut self, device: &dyn DeviceView, page: PageId) {
        let (stripe, place) = (device.lpn(page).0 / self.pages, page.0 as usize);
        if self.of.len() <= place {
            self.of.resize(place + 1, 0);
        }
        self.of[place] = stripe;
        self.cached.entry(stripe).or_default().push(page);
    }

    fn forget(&mut self, page: PageId) {
        let stripe = self.of[page.0 as usize];
        if let hash_map::Entry::Occupied(mut cached) = self.cached.entry(stripe) {
            cached.get_mut().retain(|&other| other != page);
            if cached.get().is_empty() {
                cached.remove();
            }
        }
    }

    /// Returns the dirty pages of the victim's stripe that can be evicted together with the victim. Returns no pages if
    /// the victim is clean.
    fn others(&self, device: &dyn DeviceView, victim: PageId) -> Vec<PageId> {
        if !device.dirty(victim) {
            return Vec::new();
        }
        let cached = &self.cached[&self.of[victim.0 as usize]];
        let can_leave =
            |&page: &PageId| page != victim && device.dirty(page) && !device.in_flight(page);
        cached.iter().copied().filter(can_leave).collect()
    }
}

/// View of the device that shows the closed chips as chips in GC.
struct Closed<'a> {
    device: &'a dyn DeviceView,
    closed: &'a ChipSet,
}

impl DeviceView for Closed<'_> {
    fn chips_in_gc(&self) -> &ChipSet {
        self.closed
    }

    // All functions below return the values of the device.
    fn now(&self) -> Time {
        self.device.now()
    }
    fn dirty(&self, page: PageId) -> bool {
        self.device.dirty(page)
    }
    fn lpn(&self, page: PageId) -> Lpn {
        self.device.lpn(page)
    }
    fn chip(&self, page: PageId) -> Option<ChipId> {
        self.device.chip(page)
    }
    fn in_flight(&self, page: PageId) -> bool {
        self.device.in_flight(page)
    }
    fn pages_in_flight(&self) -> u32 {
        self.device.pages_in_flight()
    }
    fn programming(&self, page: PageId) -> bool {
        self.device.programming(page)
    }
    fn drain_time(&self, chip: ChipId, exact: bool) -> Time {
        self.device.drain_time(chip, exact)
    }
    fn load(&self, chip: ChipId) -> Time {
        self.device.load(chip)
    }
    fn time_changes(&self) -> Option<&ChipChanges> {
        self.device.time_changes()
    }
    fn idle_chips(&self) -> Option<&ChipSet> {
        self.device.idle_chips()
    }
    fn chip_idle(&self, chip: ChipId) -> bool {
        self.device.chip_idle(chip)
    }
    fn free_blocks(&self, chip: ChipId) -> u32 {
        self.device.free_blocks(chip)
    }
    fn gc_trigger_blocks(&self, chip: ChipId) -> u32 {
        self.device.gc_trigger_blocks(chip)
    }
    fn open_pages(&self, chip: ChipId) -> u32 {
        self.device.open_pages(chip)
    }
}

/// GC-aware replacement over `P`.
#[derive(Clone, Debug)]
pub struct Gcar<P> {
    base: P,
    skip: Skip,
    shares: Option<Box<Shares>>,
    stripes: Option<Box<Stripes>>,
    protected: u64,
    fallbacks: u64,
}

impl<P> Gcar<P> {
    /// Creates the policy: `base`, with its victims filtered.
    pub fn new(base: P, setup: &Setup) -> Gcar<P> {
        let parameters = Parameters::of(&setup.settings);
        let skip = match parameters.gc_lookahead {
            true => Skip::GcSoon,
            false => Skip::Gc,
        };
        let percent = parameters.chip_share_percent;
        Gcar {
            shares: (percent > 0).then(|| Box::new(Shares::new(percent, setup.chips))),
            stripes: NonZeroU32::new(parameters.stripe_pages)
                .map(|pages| Box::new(Stripes::new(pages))),
            ..Gcar::skipping(base, skip)
        }
    }

    /// Creates the policy: `base` alone, without a filter.
    pub fn off(base: P) -> Gcar<P> {
        Gcar::skipping(base, Skip::Nothing)
    }

    fn skipping(base: P, skip: Skip) -> Gcar<P> {
        Gcar {
            base,
            skip,
            shares: None,
            stripes: None,
            protected: 0,
            fallbacks: 0,
        }
    }
}

impl<P> Gcar<P> {
    /// Returns the base policy.
    pub fn base(&self) -> &P {
        &self.base
    }
}

impl Gcar<Base> {
    /// Whether the policy must be notified when the chip of the flash copy of `page` changes, or when `page` becomes or
    /// stops being in flight. A policy with a single recency list needs these notifications only for pages that a
    /// search has skipped. For all other pages, each search queries the device.
    #[inline(always)]
    pub(in crate::buffer) fn heeds_move(&mut self, page: PageId) -> bool {
        let list = self.base.in_order();
        list.is_none_or(|list| list.has_passed_over(page))
    }

    /// Returns the victim that GCaR as published finds by a scan of the list. Used for checks. Returns `None` if the
    /// base policy has no single recency list, if the options for shares or stripes are on, or if the scan finds no
    /// page.
    pub(in crate::buffer) fn victim_by_scan(&mut self, device: &dyn DeviceView) -> Option<PageId> {
        if self.shares.is_some() || self.stripes.is_some() {
            return None;
        }
        let mut pages = self.base.in_order()?.list().iter_oldest_first();
        pages.find(|&page| !self.skip.page(device, page))
    }

    /// Returns the recency list of the base policy. Returns `None` if the base policy has no single list
    /// ([`Base::in_order`]), or if GCaR filters it.
    #[inline(always)]
    pub(in crate::buffer) fn in_order(&mut self) -> Option<&mut Aged> {
        match self.skip {
            Skip::Nothing => self.base.in_order(),
            Skip::Gc | Skip::GcSoon => None,
        }
    }
}

impl<P: Policy> Gcar<P> {
    /// Evicts the base policy's first choice among the pages whose chip is not in GC. The view `passed_over` states
    /// which chips are in GC. Without such pages, evicts the base policy's first choice among all pages.
    #[inline(always)]
    fn evict_filtered(
        &mut self,
        device: &dyn DeviceView,
        passed_over: &dyn DeviceView,
        incoming: &Access,
        out: &mut Eviction,
    ) -> bool {
        // The search is compiled separately for `Skip::Nothing`, which policies without GCaR use. GCaR also uses this
        // copy while no chip is in GC.
        let skip = match self.skip {
            Skip::Gc if passed_over.chips_in_gc().is_empty() => Skip::Nothing,
            skip => skip,
        };
        if skip == Skip::Nothing {
            return self.base.evict(device, incoming, Skip::Nothing, out);
        }
        if self.base.evict(passed_over, incoming, skip, out) {
            self.protected += u64::from(out.skipped);
            return true;
        }
        self.fall_back(device, incoming, out)
    }

    /// Evicts the base policy's first choice among all pages that are not in flight. Used after a filtered search that
    /// found no page.
    #[inline(never)]
    fn fall_back(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        out: &mut Eviction,
    ) -> bool {
        let skipped = std::mem::take(&mut out.skipped);
        let fell_back = self.base.evict(device, incoming, Skip::Nothing, out);
        self.protected += u64::from(fell_back && skipped);
        self.fallbacks += u64::from(fell_back);
        fell_back
    }

    /// Chooses victims as [`Self::evict`] does, and applies the optional rules: `shares` limits the dirty victims of a
    /// request on each chip, and `stripes` evicts the dirty pages of a stripe together.
    #[inline(never)]
    fn evict_limited(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        out: &mut Eviction,
    ) -> bool {
        let mut shares = self.shares.take();
        let found = match &mut shares {
            None => self.evict_filtered(device, device, incoming, out),
            Some(shares) => {
                shares.close(device, incoming);
                let closed = &shares.closed;
                self.evict_filtered(device, &Closed { device, closed }, incoming, out)
            }
        };
        self.evict_stripe(device, out);
        if let Some(shares) = &mut shares {
            shares.count(device, &out.victims);
        }
        self.shares = shares;
        found
    }

    /// If the eviction has a single victim, also evicts the other dirty pages of the victim's stripe. The victims are
    /// then in ascending order of logical page.
    fn evict_stripe(&mut self, device: &dyn DeviceView, out: &mut Eviction) {
        let Some(stripes) = &mut self.stripes else {
            return;
        };
        if let [victim] = out.victims[..] {
            for page in stripes.others(device, victim) {
                self.base.forget(page);
                out.victims.push(page);
            }
            out.victims.sort_unstable_by_key(|&page| device.lpn(page));
        }
        for &page in &out.victims {
            stripes.forget(page);
        }
    }
}

impl<P: Policy> Policy for Gcar<P> {
    #[inline(always)]
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        _skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        match self.shares.is_none() && self.stripes.is_none() {
            true => self.evict_filtered(device, device, incoming, out),
            false => self.evict_limited(device, incoming, out),
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.base.counters();
        if self.skip != Skip::Nothing {
            counters.push(("gcar_protected", self.protected));
            counters.push(("gcar_fallbacks", self.fallbacks));
        }
        counters
    }

    fn reset_counters(&mut self) {
        self.base.reset_counters();
        (self.protected, self.fallbacks) = (0, 0);
    }

    // All functions below call those of the base policy.
    #[inline(always)]
    fn admits(&self, access: &Access) -> bool {
        self.base.admits(access)
    }
    #[inline(always)]
    fn lacks_room(&self, incoming: &Access) -> bool {
        self.base.lacks_room(incoming)
    }
    #[inline(always)]
    fn insert(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        if let Some(stripes) = &mut self.stripes {
            stripes.insert(device, page);
        }
        self.base.insert(device, page, access);
    }
    #[inline]
    fn hit(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        self.base.hit(device, page, access);
    }
    fn forget(&mut self, page: PageId) {
        if let Some(stripes) = &mut self.stripes {
            stripes.forget(page);
        }
        self.base.forget(page);
    }
    fn cleaned(&mut self, device: &dyn DeviceView, page: PageId) {
        self.base.cleaned(device, page);
    }
    #[inline(always)]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.base.moved(device, page);
    }
    fn takes_whole_blocks(&self) -> bool {
        self.base.takes_whole_blocks()
    }
    fn block_of_room(&self, lpn: Lpn) -> Option<u32> {
        self.base.block_of_room(lpn)
    }
    fn room_kept(&self) -> u32 {
        self.base.room_kept()
    }
    fn follows_times(&self) -> bool {
        self.base.follows_times()
    }
    fn wants_idle(&self) -> bool {
        self.base.wants_idle()
    }
    fn idle(
        &mut self,
        device: &dyn DeviceView,
        chip: ChipId,
        in_flight: u32,
        busy: &dyn Fn(PageId) -> bool,
    ) -> Option<PageId> {
        self.base.idle(device, chip, in_flight, busy)
    }
    fn ahead_after(&self) -> Option<Time> {
        self.base.ahead_after()
    }
    fn ahead(
        &mut self,
        device: &dyn DeviceView,
        in_flight: u32,
        busy: &dyn Fn(PageId) -> bool,
    ) -> Option<PageId> {
        self.base.ahead(device, in_flight, busy)
    }
    #[inline(always)]
    fn stream(&self, page: PageId, lpn: Lpn) -> Stream {
        self.base.stream(page, lpn)
    }
    fn arrives(&mut self, lpn: Lpn) {
        self.base.arrives(lpn);
    }
    fn read_cache_changed(&mut self, lpn: Lpn, present: bool) {
        self.base.read_cache_changed(lpn, present);
    }
    fn state(&self, device: &dyn DeviceView) -> String {
        self.base.state(device)
    }
}

impl<P: Prefetch> Prefetch for Gcar<P> {
    #[inline(always)]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        self.base.prefetch_victims()
    }
    #[inline(always)]
    fn third_victim(&self) -> Option<PageId> {
        self.base.third_victim()
    }
}
