//! COOP, a policy of ours: combines the order of ARC, the eviction cost of ECR, and the write-back ahead of eviction of
//! Co-Active.
//!
//! The lists T1, T2, B1 and B2 and the target p are those of [`super::arc`]. On a miss, ARC determines the list L from
//! which a page is evicted. COOP chooses the page of L by the cost of its eviction:
//!
//! - *Static placement*: the victim is the least recent clean page of L; if L has none, that of the other list. Without
//!   clean pages, COOP considers the least recent dirty page of L on each chip. The victim is the one whose chip
//!   completes its work first (ECR's CQCT). A page counts as clean when its program has ended.
//! - *Dynamic placement*: the victim is the least recent page of L that is not being programmed; if L has none, that of
//!   the other list. The chip of a write is unknown, so all write-backs cost the same.
//!
//! Some dirty pages are written back ahead of their eviction. A page is a candidate if it was written only once since
//! it was inserted. If it is in T2, there is a second condition: none of the last `cooled` accesses was to this page.
//! With static placement, each idle chip receives its least recent candidate (T1 first) if the host has made no access
//! for `quiet_us`, or if fewer than `clean` slots are free or clean. With dynamic placement, candidates are written in
//! batches of one row of cells if the host has made no access for `quiet_us`.
//!
//! The defaults follow from the device. `quiet_us` is the longest time for which a page written ahead can block a read
//! of its chip: a program, plus an erase if reads cannot suspend it. Moves by GC are not included. With dynamic
//! placement, pages are written in batches of one row of cells. Each chip has at most one program of pages written
//! ahead.

use crate::buffer::age_index::{AgeIndex, Shelf};
use crate::buffer::balance::Balance;
use crate::buffer::cost_order::{CostOrder, QueueTimes};
use crate::buffer::entry::{cost, example_with, Entry, Family, Make};
use crate::buffer::policy::{page_text, Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::{PageId, Setup};
use crate::chips::find_from;
use crate::component::{parameters, source, Kind, Pages, Provenance};
use crate::memory::reach;
use crate::units::{ChipId, Time};

/// Largest `quiet_us`: a minute.
const QUIET_US_MAX: u32 = 60_000_000;

parameters! {
    /// Parameters of COOP.
    struct Parameters {
        /// Time in microseconds without an access by the host, after which pages are written ahead. `auto`: the time of
        /// the slowest program, plus that of an erase if reads cannot suspend it.
        quiet_us: Option<u32> = Kind::CountOrAuto(0, QUIET_US_MAX), "\"auto\"", "ours: D-231";
        /// Pages written ahead that may be in flight; 0 turns writing ahead off. `auto`: one program for each chip.
        ahead_depth: Option<u32> = Kind::CountOrAuto(0, 65_535), "\"auto\"", "ours: D-231";
        /// With static placement, pages are written ahead even during accesses while fewer than this many slots are
        /// free or clean.
        clean: Pages = Kind::Window, "0.02", "ours: D-231";
        /// Number of accesses to other pages after which a page of T2 may be written ahead.
        cooled: Pages = Kind::Beyond, "0.25", "ours: D-231";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "coop",
    title: "COOP",
    line: "ARC that evicts the cheapest page of a list, and writes cold pages back while the host \
           is silent.",
    family: Family::Chips,
    source: source(
        "The flashtwin authors",
        "COOP: One Buffer Rule for Chips That Are Known and Chips That Are Not",
        "flashtwin documentation, docs/coop.md",
        2026,
    ),
    provenance: Provenance::Ours,
    rule: &[
        "T1, T2, B1, B2 and p are those of ARC, which also determines the list L from which a page \
             is evicted.",
        "Victim with static placement: the least recent clean page of L; if L has none, the least \
         recent clean page of the other list. A page is clean when its program has ended. If no \
         page is clean, the chip with the least queue complete time (CQCT, as in ECR) is \
         selected, among the chips with pages in L. The victim is the least recent of its pages \
         in L; of equal chips, the one with the least recent page is selected. If L is empty, the \
         other list takes its place.",
        "Victim with dynamic placement: the least recent page of L that is not being programmed. \
         If L has no such page, the least recent such page of the other list. If all pages are \
         being programmed, the least recent page.",
        "Candidates for writing ahead are the dirty pages that were written only once since they \
         were inserted. A page in T2 is a candidate only if none of the last `cooled` accesses \
         was to this page.",
        "COOP writes ahead when the host has made no access for `quiet_us`; with static \
         placement, also when fewer than `clean` slots are free or clean. With static placement, \
         each idle chip writes its least recent candidate, candidates of T1 first. With dynamic \
         placement, candidates are written in batches of one row of cells, in the same order.",
        "At most `ahead_depth` of these writes are in flight. The page stays in the buffer.",
    ],
    drawing: "
B1 ( 9 8 ) <- [ 5d 4d 3c   T1 | T2   7d 6c 1d ] -> B2 ( 2 )
                       ^ clean: victim first
no clean page: chip 0 300 us, chip 1 0 us -> the oldest page of chip 1
silence:       pages written once (5d, 4d) are written back and stay",
    state:
        "`T1[6d 5c] T2[1d 2c] B1[4 3] B2[] p=1`: pages and remembered numbers, most recent first.",
    cost: cost("O(1)", "O(K)", "O(log K)"),
    example: example_with(
        4,
        &[("quiet_us", "0"), ("cooled", "0")],
        4,
        "drain0=300 drain1=900 W0 W1 R2 W3 W4 W5 W1 idle3 W6",
    ),
    parameters: &[Parameters::ROWS],
    make: Make::Base(|setup| Coop::new(setup).into()),
    ..Entry::PLAIN
}];

/// Classes of the pages of T1. T2 has the same classes, numbered after those of T1.
const CLEAN: usize = 0;
/// Dirty, and written once since the page was inserted.
const ONCE: usize = 1;
/// Dirty, and written more often.
const OFTEN: usize = 2;
/// Being programmed. Used only with dynamic placement; with static placement, such pages are in the classes of dirty
/// pages.
const PROGRAMMING: usize = 3;
/// Number of classes of a list.
const CLASSES: usize = 4;
/// Classes of dirty pages. With static placement, these classes have lists by chip.
const DIRTY: [usize; 2] = [ONCE, OFTEN];

/// The lists of cached pages.
const T1: usize = 0;
const T2: usize = 1;

/// Returns a class of a list.
const fn class(list: usize, kind: usize) -> usize {
    list * CLASSES + kind
}

/// Use of a page since it was inserted: the number of the last access, and two bits about its writes.
#[derive(Clone, Copy, Debug, Default)]
struct Use(u64);

impl Use {
    /// Bit: the page was written.
    const WRITTEN: u64 = 1;
    /// Bit: the page was written more than once.
    const OFTEN: u64 = 2;

    /// Returns the use after one more access. `number` counts all accesses to the buffer, including this one.
    #[inline]
    fn after(self, number: u64, write: bool) -> Use {
        let bits = self.0 & (Use::WRITTEN | Use::OFTEN);
        let bits = match write {
            true => bits | (bits & Use::WRITTEN) << 1 | Use::WRITTEN,
            false => bits,
        };
        Use(number << 2 | bits)
    }

    /// Returns the number of the last access.
    #[inline]
    fn last(self) -> u64 {
        self.0 >> 2
    }

    #[inline]
    fn is_written_often(self) -> bool {
        self.0 & Use::OFTEN != 0
    }
}

/// ARC's order with eviction costs and write-back ahead of eviction.
#[derive(Clone, Debug)]
pub struct Coop {
    balance: Balance,
    order: AgeIndex<{ 2 * CLASSES }>,
    uses: Vec<Use>,
    /// Number of pages in T1 and in T2, including pages in flight.
    pages: [usize; 2],
    /// Number of clean pages in both lists, including pages in flight.
    clean: usize,
    capacity: usize,
    /// Number of chips with static placement, where the chip of a write is known; `None` with dynamic placement.
    chips: Option<u16>,
    times: QueueTimes,
    /// For T1 and for T2, the chips ordered by the cost of evicting their least recent dirty page.
    costs: [CostOrder; 2],
    accesses: u64,
    last_access: Time,
    quiet: Time,
    ahead_depth: u32,
    clean_min: usize,
    cooled: u64,
    row_pages: u32,
    /// Number of pages still to be chosen for the current batch (dynamic placement).
    missing: u32,
    /// Chip at which the search for an idle chip starts.
    next_chip: u16,
    written_ahead: u64,
}

impl Coop {
    /// Creates the policy with empty lists.
    pub fn new(setup: &Setup) -> Coop {
        let parameters = Parameters::of(&setup.settings);
        let is_static = setup.stride_pages.is_some();
        let (clean, by_chip) = (setup.filtered, setup.filtered || is_static);
        let listed = [clean, by_chip, by_chip, clean];
        // Depending on placement, the dirty pages are searched chip by chip, or each class as a whole.
        let by_age = [true, !is_static, !is_static, true];
        let both = |of: [bool; CLASSES]| std::array::from_fn(|i| of[i % CLASSES]);
        let lists = setup.chips as usize + 1;
        let programs = setup.programs;
        let one_each = setup.chips.saturating_mul(programs.pages);
        Coop {
            balance: Balance::new(setup.capacity),
            order: AgeIndex::new(setup.capacity, setup.chips, both(listed)).by_age(both(by_age)),
            uses: Vec::new(),
            pages: [0; 2],
            clean: 0,
            capacity: setup.capacity as usize,
            chips: is_static.then_some(setup.chips as u16),
            times: QueueTimes::new(lists),
            costs: [CostOrder::new(lists), CostOrder::new(lists)],
            accesses: 0,
            last_access: Time::ZERO,
            quiet: (parameters.quiet_us).map_or(programs.blocked, |us| Time::from_us(us.into())),
            ahead_depth: parameters.ahead_depth.unwrap_or(one_each),
            clean_min: parameters.clean.0 as usize,
            cooled: parameters.cooled.0.into(),
            row_pages: programs.row_pages.max(1),
            missing: 0,
            next_chip: 0,
            written_ahead: 0,
        }
    }

    /// Records an access to a page. `list` is the list of the page after the access, and `of` its use before the
    /// access. Returns the class of the page after the access.
    #[inline]
    fn note(
        &mut self,
        device: &dyn DeviceView,
        page: PageId,
        (list, of): (usize, Use),
        access: &Access,
    ) -> usize {
        self.accesses += 1;
        self.last_access = device.now();
        let of = of.after(self.accesses, access.write);
        self.uses[page.0 as usize] = of;
        // With static placement, a page that is being programmed counts as dirty.
        let programming = (self.chips.is_none() || !access.dirty) && device.programming(page);
        self.class_of((list, of), access.dirty || programming, programming)
    }

    /// Returns the class of a page of `list` with the use `of`. `dirty` is true if the contents of the page are not in
    /// flash.
    #[inline]
    fn class_of(&self, (list, of): (usize, Use), dirty: bool, programming: bool) -> usize {
        let kind = match of.is_written_often() {
            _ if programming && self.chips.is_none() => PROGRAMMING,
            _ if !dirty => CLEAN,
            true => OFTEN,
            false => ONCE,
        };
        class(list, kind)
    }

    /// Returns the list of a cached page.
    #[inline]
    fn list(&self, page: PageId) -> usize {
        self.order.class(page) / CLASSES
    }

    /// Updates the page counts for a page that is added to a class (`enters`) or removed from it.
    #[inline]
    fn count(&mut self, class: usize, enters: bool) {
        let change = |n: &mut usize| match enters {
            true => *n += 1,
            false => *n -= 1,
        };
        change(&mut self.pages[class / CLASSES]);
        if class % CLASSES == CLEAN {
            change(&mut self.clean);
        }
    }

    /// Moves a page to another class; the page keeps its position.
    fn reclassify(&mut self, page: PageId, class: usize) {
        let was = self.order.class(page);
        if was != class {
            self.count(was, false);
            self.count(class, true);
            self.order.change(page, class);
        }
    }

    /// Returns the least recent page of T1 or T2 that is in one of the classes `kinds`.
    fn oldest(
        &self,
        device: &dyn DeviceView,
        skip: Skip,
        list: usize,
        kinds: &[usize],
        looked: &mut u64,
    ) -> Option<PageId> {
        let found = kinds.iter().filter_map(|&kind| {
            let (page, passed) = self.order.oldest_not(class(list, kind), device, skip);
            *looked += passed;
            page
        });
        found.min_by_key(|&page| self.order.age(page))
    }

    /// Returns the least recent page of T1 or T2 that is not being programmed (dynamic placement).
    fn oldest_at_rest(
        &mut self,
        device: &dyn DeviceView,
        skip: Skip,
        list: usize,
        looked: &mut u64,
    ) -> Option<PageId> {
        loop {
            let page = self.oldest(device, skip, list, &[CLEAN, ONCE, OFTEN], looked)?;
            if !device.programming(page) {
                return Some(page);
            }
            // A flush programs the page, so the page is put in the class of programming pages. When the program ends,
            // the device notifies the policy, and the page returns to its position.
            self.reclassify(page, class(list, PROGRAMMING));
        }
    }

    /// Returns the dirty page of T1 or T2 that costs least to evict (static placement).
    fn cheapest(&mut self, device: &dyn DeviceView, skip: Skip, list: usize) -> Option<PageId> {
        let Some(changes) = device.time_changes() else {
            return self.search(device, skip, list);
        };
        let (order, times) = (&mut self.order, &mut self.times);
        times.follow(
            changes,
            |chip| device.drain_time(chip, false),
            |chip| order.mark_changed([T1, T2].map(|list| class(list, ONCE)), chip),
        );
        if skip != Skip::Nothing {
            return self.search(device, skip, list);
        }
        let costs = &mut self.costs[list];
        let dirty = DIRTY.map(|kind| class(list, kind));
        order.take_changed(dirty, |chip, head| {
            let cost = (head != u32::MAX).then_some((times.of(chip), head));
            costs.set(chip, cost);
        });
        let found = costs.least().map(|(_, head)| order.at(head));
        debug_assert!(
            self.times.are(|chip| device.drain_time(chip, false)),
            "the table has other times than the device"
        );
        debug_assert_eq!(
            found,
            self.search(device, skip, list),
            "the order has another victim than the search"
        );
        found
    }

    /// Returns the same page as `cheapest`, by examining each chip.
    fn search(&self, device: &dyn DeviceView, skip: Skip, list: usize) -> Option<PageId> {
        let mut least = None;
        for kind in DIRTY {
            let heads = self.order.heads(class(list, kind)).iter().enumerate();
            for (at, &head) in heads.filter(|&(_, &head)| head != u32::MAX) {
                let chip = self.order.chip_of_list(at);
                if chip.is_some_and(|chip| skip.chip(device, chip)) {
                    continue;
                }
                let time = chip.map_or(Time::ZERO, |chip| device.drain_time(chip, false));
                if least.is_none_or(|least| (time, head) < least) {
                    least = Some((time, head));
                }
            }
        }
        least.map(|(_, head)| self.order.at(head))
    }

    /// Returns the victim. Adds the number of inspected list entries to `looked`. `lists` are T1 and T2 in the order of
    /// the search.
    fn choose(
        &mut self,
        device: &dyn DeviceView,
        skip: Skip,
        lists: [usize; 2],
        looked: &mut u64,
    ) -> Option<PageId> {
        match self.chips {
            Some(_) => self.choose_by_cost(device, skip, lists, looked),
            None => self.choose_by_age(device, skip, lists, looked),
        }
    }

    /// Returns the victim with static placement.
    #[inline]
    fn choose_by_cost(
        &mut self,
        device: &dyn DeviceView,
        skip: Skip,
        lists: [usize; 2],
        looked: &mut u64,
    ) -> Option<PageId> {
        for list in lists {
            let (clean, passed) = self.order.oldest_not(class(list, CLEAN), device, skip);
            *looked += passed;
            if clean.is_some() {
                return clean;
            }
        }
        *looked += 1;
        let mut lists = lists.into_iter();
        lists.find_map(|list| self.cheapest(device, skip, list))
    }

    /// Returns the victim with dynamic placement.
    fn choose_by_age(
        &mut self,
        device: &dyn DeviceView,
        skip: Skip,
        lists: [usize; 2],
        looked: &mut u64,
    ) -> Option<PageId> {
        let mut at_rest = |list| self.oldest_at_rest(device, skip, list, looked);
        let found = lists.into_iter().find_map(&mut at_rest);
        let mut any = |list| self.oldest(device, skip, list, &[PROGRAMMING], looked);
        found.or_else(|| lists.into_iter().find_map(&mut any))
    }

    /// Whether none of the last `cooled` accesses was to this page of T2.
    fn has_cooled(&self, page: PageId) -> bool {
        self.accesses - self.uses[page.0 as usize].last() >= self.cooled
    }

    /// Returns the page that `chip` should write ahead next, if there is a candidate (static placement).
    fn ahead_on(&self, chip: usize, busy: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        let next = |list| {
            let mut pages = self.order.iter_chip(class(list, ONCE), chip);
            pages.find(|&page| !busy(page))
        };
        next(T1).or_else(|| next(T2).filter(|&page| self.has_cooled(page)))
    }

    /// Returns the next idle chip that has a page to write ahead, and this page (static placement).
    fn ahead_on_any(
        &self,
        device: &dyn DeviceView,
        chips: u16,
        busy: &dyn Fn(PageId) -> bool,
    ) -> Option<(u16, PageId)> {
        let [t1, t2] = [T1, T2].map(|list| self.order.filled(class(list, ONCE)));
        let idle = device.idle_chips();
        let word = |i: usize| (t1[i] | t2[i]) & idle.map_or(u64::MAX, |idle| idle.word(i));
        find_from(self.next_chip, chips, word, |chip| {
            let is_idle = idle.is_some() || device.chip_idle(chip);
            let page = is_idle.then(|| self.ahead_on(chip.0.into(), busy));
            page.flatten().map(|page| (chip.0, page))
        })
    }

    /// Returns the same chip and page as `ahead_on_any`, by examining each chip.
    fn ahead_on_any_of_all(
        &self,
        device: &dyn DeviceView,
        chips: u16,
        busy: &dyn Fn(PageId) -> bool,
    ) -> Option<(u16, PageId)> {
        let mut chips = (0..chips).map(|i| (self.next_chip + i) % chips);
        chips.find_map(|chip| {
            let idle = device.chip_idle(ChipId(chip));
            let page = idle.then(|| self.ahead_on(chip.into(), busy)).flatten();
            page.map(|page| (chip, page))
        })
    }

    /// Returns the pages that may be written ahead: those of T1, then those of T2, each from the least recent page on
    /// (dynamic placement).
    fn candidates<'a>(
        &'a self,
        busy: &'a dyn Fn(PageId) -> bool,
    ) -> impl Iterator<Item = PageId> + 'a {
        let t1 = self.order.iter_oldest_first(class(T1, ONCE));
        let t2 = self.order.iter_oldest_first(class(T2, ONCE));
        let t2 = t2.take_while(|&page| self.has_cooled(page));
        t1.chain(t2).filter(|&page| !busy(page))
    }
}

impl Policy for Coop {
    #[inline]
    fn insert(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        let [t1, t2] = self.pages;
        let is_known = self.balance.inserted(access.lpn, t1, t2);
        reach(&mut self.uses, page.0 as usize, Use::default());
        let list = if is_known { T2 } else { T1 };
        let class = self.note(device, page, (list, Use::default()), access);
        self.count(class, true);
        self.order.insert(page, class, Shelf::of(device, page));
    }

    #[inline]
    fn hit(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        self.count(self.order.class(page), false);
        let of = self.uses[page.0 as usize];
        let class = self.note(device, page, (T2, of), access);
        self.count(class, true);
        self.order.renew(page, class);
    }

    fn forget(&mut self, page: PageId) {
        let place = self.order.remove(page);
        self.count(place.class(), false);
    }

    fn follows_times(&self) -> bool {
        self.chips.is_some()
    }

    fn cleaned(&mut self, _device: &dyn DeviceView, page: PageId) {
        self.reclassify(page, class(self.list(page), CLEAN));
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.order.moved(page, Shelf::of(device, page));
        if self.chips.is_none() && self.order.class(page) % CLASSES == PROGRAMMING {
            let programming = device.programming(page);
            let (list, of) = (self.list(page), self.uses[page.0 as usize]);
            let class = self.class_of((list, of), device.dirty(page), programming);
            self.reclassify(page, class);
        }
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let [t1, t2] = self.pages;
        let from = self.balance.arrives(incoming.lpn, t1, t2);
        let lists = match self.balance.evicts_from_t1(t1, from) {
            true => [T1, T2],
            false => [T2, T1],
        };
        let found = self.choose(device, skip, lists, &mut out.inspected);
        out.skipped |=
            skip != Skip::Nothing && self.choose(device, Skip::Nothing, lists, &mut 0) != found;
        let Some(page) = found else { return false };
        let class = self.order.evict(page).class();
        self.count(class, false);
        let in_t2 = class / CLASSES == T2;
        self.balance.remember(device.lpn(page), in_t2, t1, from);
        out.victims.push(page);
        true
    }

    fn ahead_after(&self) -> Option<Time> {
        (self.ahead_depth > 0).then_some(self.quiet)
    }

    fn ahead(
        &mut self,
        device: &dyn DeviceView,
        in_flight: u32,
        busy: &dyn Fn(PageId) -> bool,
    ) -> Option<PageId> {
        if in_flight >= self.ahead_depth {
            return None;
        }
        let is_quiet = || device.now() >= self.last_access + self.quiet;
        let page = match self.chips {
            Some(chips) => {
                let free = self.capacity - self.pages[T1] - self.pages[T2];
                if self.clean + free >= self.clean_min && !is_quiet() {
                    return None;
                }
                let found = self.ahead_on_any(device, chips, busy);
                debug_assert_eq!(
                    found,
                    self.ahead_on_any_of_all(device, chips, busy),
                    "the set of idle chips lacks a chip, or has a busy one"
                );
                let (chip, page) = found?;
                self.next_chip = (chip + 1) % chips;
                page
            }
            None => {
                let row = self.row_pages as usize;
                if !is_quiet() {
                    self.missing = 0;
                    return None;
                }
                if self.missing == 0 && self.candidates(busy).take(row).count() == row {
                    self.missing = self.row_pages;
                }
                let page = (self.missing > 0).then(|| self.candidates(busy).next());
                let Some(page) = page.flatten() else {
                    self.missing = 0;
                    return None;
                };
                self.missing -= 1;
                self.reclassify(page, class(self.list(page), PROGRAMMING));
                page
            }
        };
        self.written_ahead += 1;
        Some(page)
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let list = |list: usize| {
            let mut pages: Vec<PageId> = Vec::new();
            for kind in 0..CLASSES {
                let class = class(list, kind);
                if self.chips.is_some() && DIRTY.contains(&kind) {
                    let lists = 0..self.order.heads(class).len();
                    pages.extend(lists.flat_map(|at| self.order.iter_chip(class, at)));
                } else {
                    pages.extend(self.order.iter_oldest_first(class));
                }
            }
            pages.sort_unstable_by_key(|&page| std::cmp::Reverse(self.order.age(page)));
            let texts = pages.iter().map(|&page| page_text(device, page));
            texts.collect::<Vec<String>>().join(" ")
        };
        format!("T1[{}] T2[{}] {}", list(T1), list(T2), self.balance.text())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("coop_written_ahead", self.written_ahead)]
    }

    fn reset_counters(&mut self) {
        self.written_ahead = 0;
    }
}

impl Prefetch for Coop {
    #[inline(always)]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        [None, None, self.order.upcoming()]
    }
}
