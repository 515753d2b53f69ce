//! ECR, ECR-epsilon, LCR: evict the page whose eviction costs least (ECR section 3).
//!
//! Clean-LRU is the list of the clean pages of all chips. Each chip has a list of its dirty pages. The victim is the
//! least recent clean page, which costs nothing to evict. Without clean pages, the victim is the least recent page of
//! one of the chips that have pages. ECR chooses the chip with the least chip queue complete time (CQCT, Eqs 1-4): the
//! time at which its queue will be empty. Of chips with equal times, it chooses the one whose victim was accessed
//! longest ago (D-15).
//!
//! ECR-epsilon has no Clean-LRU: the list of a chip contains both clean and dirty pages. LCR, the predecessor of ECR,
//! ranks chips by the flash time of their queued operations instead of CQCT.
//!
//! A page has no chip if placement is dynamic and the page was never written. Such pages have a list of their own,
//! after the lists of the chips. Their write-back waits for no chip, so the CQCT of this list is 0.

use crate::buffer::age_index::{AgeIndex, Shelf};
use crate::buffer::cost_order::{CostOrder, QueueTimes};
use crate::buffer::entry::{cost, example_with, Entry, Family, Make, ECR};
use crate::buffer::policy::{page_text, Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::{PageId, Setup};
use crate::component::{parameters, words, Kind};
use crate::component::{source, Provenance};
use crate::units::{ChipId, Time};

words! {
    /// Definition of a chip's queue complete time (D-14).
    enum Cqct {
        /// Eqs 1 to 4 as printed.
        Paper = "paper",
        /// Equations 1 to 4, extended by transfers and by the remaining time of running operations.
        Exact = "exact",
    }
}

words! {
    /// Rule that chooses among chips with equal queue complete times (D-15).
    enum Tie {
        /// Takes the chip whose victim was accessed longest ago.
        Oldest = "oldest",
        /// Takes the chip with the lowest number.
        Lowest = "lowest",
        /// Takes the chip that follows the chip of the last victim.
        RoundRobin = "round-robin",
    }
}

parameters! {
    /// Parameters of ECR.
    struct Parameters {
        /// Chip queue complete time: by Eqs 1 to 4 as printed (`paper`), or with transfers and the remaining times of
        /// running operations (`exact`).
        cqct: Cqct = Kind::Choice(Cqct::WORDS), "\"paper\"", "printed; D-14";
    }
}

parameters! {
    /// Parameters of ECR and LCR.
    struct TieParameters {
        /// Choice among chips with equal times: the one whose victim was accessed longest ago, the one with the lowest
        /// number, or the next one in turn.
        tie: Tie = Kind::Choice(Tie::WORDS), "\"oldest\"", "D-15: our decision";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "ecr",
        title: "ECR",
        line: "Evicts clean pages first, then a page of the chip that will have completed its \
                work soonest.",
        family: Family::Chips,
        source: ECR,
        provenance: Provenance::Printed,
        rule: &[
            "Clean pages are in one LRU list. Dirty pages are in one LRU list per chip.",
            "Hit: the page moves to the most recent end of its list. A page that becomes dirty \
             moves to the list of its chip.",
            "Victim: the least recent clean page, if there is one.",
            "Otherwise, the chip with the least queue complete time (CQCT) is selected, among the \
             chips with a dirty page; `tie` decides between equal chips. The victim is the least \
             recent page of the selected chip.",
            "CQCT (Eqs 1 to 4) is the time of the chip's queued reads and writes, of the \
             collection that they will start, and of the summary pages that they will fill. A \
             write in service does not count against the free pages, because it already has its \
             page (D-162). `cqct` = exact adds transfers, and counts only the remaining time of \
             running work.",
        ],
        drawing: "
clean    [ 9c  6c ] -> victim, as long as there is one
chip 0   [ 8d  4d ]   CQCT  300 us
chip 1   [ 5d ]       CQCT    0 us -> then the least: 5d
chip 3   [ 11d 7d ]   CQCT  900 us",
        state:
            "`Clean[6] D0[8 4] D3[11 7]`: the clean list, then the chips' dirty lists, most recent \
                first.",
        cost: cost("O(1)", "O(K)", "O(K)"),
        example: example_with(
            4,
            &[],
            4,
            "drain0=300 drain3=900 W4 W8 W5 W7 R6 W11 drain1=500 W10 W9",
        ),
        parameters: &[Parameters::ROWS, TieParameters::ROWS],
        make: Make::Base(|setup| Ecr::new(setup).into()),
        ..Entry::PLAIN
    },
    Entry {
        name: "ecr-eps",
        title: "ECR-epsilon",
        line: "ECR without the clean list: the clean and dirty pages of a chip are in one list.",
        family: Family::Chips,
        source: ECR,
        provenance: Provenance::Printed,
        rule: &[
            "Clean and dirty pages are in one LRU list per chip.",
            "Victim: the least recent page of the chip with the least queue complete time, \
             whether the page is clean or dirty; `tie` decides between equal chips.",
            "With one chip, the policy equals LRU.",
        ],
        state: "`L0[8c 4d] L2[6c]`: the chips' lists, most recent first.",
        cost: cost("O(1)", "O(K)", "O(K)"),
        example: example_with(4, &[], 4, "drain0=300 drain3=900 W4 R8 R5 W7 R6 W11"),
        parameters: &[Parameters::ROWS, TieParameters::ROWS],
        make: Make::Base(|setup| Ecr::epsilon(setup).into()),
        ..Entry::PLAIN
    },
    Entry {
        name: "lcr",
        title: "LCR",
        line: "ECR that compares chips by the load of their queues instead of the queue complete \
               time.",
        family: Family::Chips,
        source: source(
            "C. Liu, M. Lv, Y. Pan, H. Chen, Y. Li, C. Li, Y. Xu",
            "LCR: Load-Aware Cache Replacement Algorithm for Flash-Based SSDs",
            "NAS",
            2018,
        ),
        provenance: Provenance::Reconstruction,
        rule: &[
            "Lists and hits are as in ECR.",
            "Victim: as in ECR, but with a chip's load instead of CQCT. The load is the flash \
             time of the reads and writes queued at the chip, without future collections.",
        ],
        state: "As for `ecr`.",
        cost: cost("O(1)", "O(K)", "O(K)"),
        example: example_with(4, &[], 4, "drain0=300 drain3=900 W4 W8 W5 W7 R6 W11"),
        parameters: &[TieParameters::ROWS],
        make: Make::Base(|setup| Ecr::lcr(setup).into()),
        ..Entry::PLAIN
    },
];

/// Returns the time by which the policy ranks a chip.
#[inline]
fn time_of(kind: Cost, exact: bool, device: &dyn DeviceView, chip: ChipId) -> Time {
    match kind {
        Cost::Lcr => device.load(chip),
        Cost::Ecr | Cost::Epsilon => device.drain_time(chip, exact),
    }
}

/// Class of pages on Clean-LRU.
const CLEAN: usize = 0;
/// Class of all pages that are on the lists of the chips.
const LISTED: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cost {
    Ecr,
    Epsilon,
    Lcr,
}

/// Eviction-cost-aware replacement.
#[derive(Clone, Debug)]
pub struct Ecr {
    kind: Cost,
    exact: bool,
    tie: Tie,
    order: AgeIndex<2>,
    /// The list at which the search for the least time starts. With [`Tie::RoundRobin`], it is the list after the one
    /// that contained the last victim.
    first: usize,
    table: Table,
}

/// The queue complete times of all lists, and the order of the lists by these times. Updated from the changes that the
/// device records.
#[derive(Clone, Debug)]
struct Table {
    times: QueueTimes,
    /// The lists ordered by time, then by `tie`. With [`Tie::RoundRobin`], lists of equal time have equal rank.
    order: CostOrder,
    tie: Tie,
}

impl Table {
    fn new(chips: u32, tie: Tie) -> Table {
        let lists = chips as usize + 1;
        Table {
            times: QueueTimes::new(lists),
            order: CostOrder::new(lists),
            tie,
        }
    }

    /// Sets the position of a list in the order. Lists are ordered by the time of their chip. With [`Tie::Oldest`],
    /// equal times are ordered by the age of the list's least recent page (`head`).
    #[inline]
    fn place(&mut self, list: usize, head: u32) {
        let rank = match self.tie {
            Tie::Oldest => head,
            Tie::Lowest | Tie::RoundRobin => 0,
        };
        let cost = (head != u32::MAX).then_some((self.times.of(list), rank));
        self.order.set(list, cost);
    }
}

impl Ecr {
    /// Creates ECR as printed.
    pub fn new(setup: &Setup) -> Ecr {
        Ecr::of_kind(setup, Cost::Ecr)
    }

    /// Creates ECR-epsilon, in which one list per chip has both its clean and its dirty pages (ECR section 4.2).
    pub fn epsilon(setup: &Setup) -> Ecr {
        Ecr::of_kind(setup, Cost::Epsilon)
    }

    /// Creates LCR, which ranks chips by their load instead of their queue complete time.
    pub fn lcr(setup: &Setup) -> Ecr {
        Ecr::of_kind(setup, Cost::Lcr)
    }

    fn of_kind(setup: &Setup, kind: Cost) -> Ecr {
        let tie = TieParameters::of(&setup.settings).tie;
        Ecr {
            kind,
            exact: match kind {
                Cost::Ecr | Cost::Epsilon => Parameters::of(&setup.settings).cqct == Cqct::Exact,
                Cost::Lcr => false,
            },
            tie,
            table: Table::new(setup.chips, tie),
            order: AgeIndex::new(setup.capacity, setup.chips, [setup.filtered, true])
                .by_age([true, false]),
            first: 0,
        }
    }

    fn class(&self, access: &Access) -> usize {
        match access.dirty || self.kind == Cost::Epsilon {
            true => LISTED,
            false => CLEAN,
        }
    }

    #[inline]
    fn time(&self, device: &dyn DeviceView, chip: Option<ChipId>) -> Time {
        match chip {
            None => Time::ZERO,
            Some(chip) => time_of(self.kind, self.exact, device, chip),
        }
    }

    /// Returns the least recent page of the chip whose queue completes first.
    fn cheapest(&mut self, device: &dyn DeviceView, skip: Skip) -> Option<PageId> {
        let Some(changes) = device.time_changes().filter(|_| !self.exact) else {
            return self.search(device, skip, |chip| self.time(device, chip));
        };
        let (kind, table, order) = (self.kind, &mut self.table, &mut self.order);
        let time = |chip| time_of(kind, false, device, chip);
        table
            .times
            .follow(changes, time, |list| order.mark_changed([LISTED], list));
        order.take_changed([LISTED], |list, head| table.place(list, head));
        let times = &self.table.times;
        let found = match skip == Skip::Nothing && self.tie != Tie::RoundRobin {
            true => {
                let list = self.table.order.least();
                list.map(|(list, _)| self.order.at(self.order.heads(LISTED)[list]))
            }
            false => self.search(device, skip, |chip| {
                times.of(chip.map_or(times.lists() - 1, |chip| chip.0 as usize))
            }),
        };
        debug_assert!(
            times.are(|chip| time_of(self.kind, false, device, chip)),
            "the table has other times than the device"
        );
        debug_assert_eq!(
            found,
            self.search(device, skip, |chip| self.time(device, chip)),
            "the order has another victim than the search"
        );
        found
    }

    /// Returns the least recent page of the chip with the least `time`; `None` if all pages are skipped. Compares all
    /// chips.
    fn search(
        &self,
        device: &dyn DeviceView,
        skip: Skip,
        time: impl Fn(Option<ChipId>) -> Time,
    ) -> Option<PageId> {
        let heads = self.order.heads(LISTED);
        let by_age = self.tie == Tie::Oldest;
        // Shortcut for light load: if the chip of the oldest page is idle, its time is zero, and no other chip ranks
        // before it.
        let oldest = heads.iter().copied().min().unwrap_or(u32::MAX);
        if by_age && oldest != u32::MAX && skip == Skip::Nothing {
            let page = self.order.at(oldest);
            if time(self.order.chip(page)) == Time::ZERO {
                return Some(page);
            }
        }
        let (mut least, mut rank, mut found) = (Time::NEVER, u32::MAX, None);
        for lists in [self.first..heads.len(), 0..self.first] {
            for list in lists {
                let age = heads[list];
                let of = if by_age { age } else { 0 };
                // No time is less than zero. Once a chip with time zero is found, the time of another chip is needed
                // only if that chip would win the tie.
                if age == u32::MAX || least == Time::ZERO && of >= rank {
                    continue;
                }
                let chip = self.order.chip_of_list(list);
                if chip.is_some_and(|chip| skip.chip(device, chip)) {
                    continue;
                }
                let time = time(chip);
                if time < least || time == least && of < rank {
                    (least, rank, found) = (time, of, Some(age));
                }
            }
        }
        found.map(|age| self.order.at(age))
    }

    /// Returns the victim, and the number of list entries inspected. Comparing chips does not count as inspecting
    /// entries.
    fn choose(&mut self, device: &dyn DeviceView, skip: Skip) -> (Option<PageId>, u64) {
        let (clean, looked) = self.order.oldest_not(CLEAN, device, skip);
        if clean.is_some() {
            return (clean, looked);
        }
        let found = self.cheapest(device, skip);
        (found, looked + u64::from(found.is_some()))
    }
}

impl Policy for Ecr {
    #[inline]
    fn insert(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        let class = self.class(access);
        self.order.insert(page, class, Shelf::of(device, page));
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        self.order.renew(page, self.class(access));
    }

    fn forget(&mut self, page: PageId) {
        self.order.remove(page);
    }

    fn follows_times(&self) -> bool {
        !self.exact
    }

    fn cleaned(&mut self, _device: &dyn DeviceView, page: PageId) {
        if self.kind != Cost::Epsilon {
            self.order.change(page, CLEAN);
        }
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.order.moved(page, Shelf::of(device, page));
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let (found, looked) = self.choose(device, skip);
        out.inspected += looked;
        out.skipped |= skip != Skip::Nothing && self.choose(device, Skip::Nothing).0 != found;
        let Some(page) = found else { return false };
        if self.tie == Tie::RoundRobin && self.order.class(page) == LISTED {
            let next = self.order.chip(page).map(|chip| chip.0 as usize + 1);
            self.first = next.unwrap_or(0);
        }
        self.order.evict(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let text = |name: String, oldest_first: Vec<PageId>| {
            let pages = oldest_first.iter().rev();
            let texts: Vec<String> = match self.kind {
                Cost::Epsilon => pages.map(|&page| page_text(device, page)).collect(),
                Cost::Ecr | Cost::Lcr => {
                    pages.map(|&page| device.lpn(page).0.to_string()).collect()
                }
            };
            format!("{name}[{}]", texts.join(" "))
        };
        let mut lists = Vec::new();
        if self.kind != Cost::Epsilon {
            let clean = self.order.iter_oldest_first(CLEAN).collect();
            lists.push(text("Clean".to_owned(), clean));
        }
        let letter = if self.kind == Cost::Epsilon { 'L' } else { 'D' };
        for list in 0..self.order.heads(LISTED).len() {
            let pages: Vec<PageId> = self.order.iter_chip(LISTED, list).collect();
            if !pages.is_empty() {
                let chip = self.order.chip_of_list(list);
                let number = chip.map_or("-".to_owned(), |chip| chip.0.to_string());
                lists.push(text(format!("{letter}{number}"), pages));
            }
        }
        lists.join(" ")
    }
}

impl Prefetch for Ecr {
    #[inline(always)]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        [None, None, self.order.upcoming()]
    }
}
