//! ECR, ECR-epsilon, LCR: evict where it costs least (policies.md A13; ECR section 3).
//!
//! Clean-LRU holds the clean pages of all chips, a list per chip its dirty pages. Victim: the least
//! recent clean page, which costs nothing; if there is none, the least recent page of the chip whose
//! queue completes first (CQCT, Eqs 1-4), among the chips that have one. Of equals, the chip whose
//! victim was accessed longest ago (D-15). ECR-epsilon has no Clean-LRU: a chip's list holds clean and
//! dirty pages. LCR, the predecessor, looks at the flash time of what is queued instead.
//!
//! A page without a chip (dynamic placement, never written) stands on a list of its own: its write
//! waits for no chip, so the list's time is 0; it counts as the last chip.

use super::order::Shelf;
use super::policy::{page_text, then, Access, DeviceView, Eviction, Policy, Spare};
use super::timeline::Timeline;
use super::{PageId, Setup};
use crate::spec::Tie;
use crate::units::{ChipId, Time};

/// On Clean-LRU.
const CLEAN: usize = 0;
/// On the list of its chip.
const LISTED: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ecr,
    Epsilon,
    Lcr,
}

/// Eviction-cost-aware replacement.
#[derive(Clone, Debug)]
pub struct Ecr {
    kind: Kind,
    exact: bool,
    tie: Tie,
    order: Timeline<2>,
    /// The list with which the search begins: after the last victim's with [`Tie::RoundRobin`].
    first: usize,
}

impl Ecr {
    /// ECR as printed.
    pub fn new(setup: &Setup) -> Ecr {
        Ecr::of_kind(setup, Kind::Ecr)
    }

    /// Clean and dirty pages of a chip share its list (ECR section 4.2).
    pub fn epsilon(setup: &Setup) -> Ecr {
        Ecr::of_kind(setup, Kind::Epsilon)
    }

    /// Load instead of queue complete time.
    pub fn lcr(setup: &Setup) -> Ecr {
        Ecr::of_kind(setup, Kind::Lcr)
    }

    fn of_kind(setup: &Setup, kind: Kind) -> Ecr {
        Ecr {
            kind,
            exact: setup.params.exact_cqct,
            tie: setup.params.tie,
            order: Timeline::new(setup.capacity, setup.chips, [setup.filtered, true]),
            first: 0,
        }
    }

    fn class(&self, access: &Access) -> usize {
        match access.dirty || self.kind == Kind::Epsilon {
            true => LISTED,
            false => CLEAN,
        }
    }

    #[inline]
    fn time(&self, device: &dyn DeviceView, chip: Option<ChipId>) -> Time {
        match (chip, self.kind) {
            (None, _) => Time::ZERO,
            (Some(chip), Kind::Lcr) => device.load(chip),
            (Some(chip), _) => device.drain_time(chip, self.exact),
        }
    }

    /// The least recent page of the chip whose queue completes first.
    fn cheapest(&self, device: &dyn DeviceView, spare: Spare) -> Option<PageId> {
        let heads = self.order.heads(LISTED);
        let by_age = self.tie == Tie::Oldest;
        // At light load the chip of the oldest page has nothing to do: no other can be better.
        let oldest = heads.iter().copied().min().unwrap_or(u32::MAX);
        if by_age && oldest != u32::MAX && spare == Spare::Nobody {
            let page = self.order.at(oldest);
            if self.time(device, self.order.chip(page)) == Time::ZERO {
                return Some(page);
            }
        }
        let (mut least, mut rank, mut found) = (Time::NEVER, u32::MAX, None);
        for lists in [self.first..heads.len(), 0..self.first] {
            for list in lists {
                let age = heads[list];
                let of = if by_age { age } else { 0 };
                // Nothing is better than no time: the device need not be asked.
                if age == u32::MAX || least == Time::ZERO && of >= rank {
                    continue;
                }
                let chip = self.order.chip_of_list(list);
                if chip.is_some_and(|chip| spare.chip(device, chip)) {
                    continue;
                }
                let time = self.time(device, chip);
                if time < least || time == least && of < rank {
                    (least, rank, found) = (time, of, Some(age));
                }
            }
        }
        found.map(|age| self.order.at(age))
    }

    /// The victim, and the list entries looked at: chips are none.
    fn choose(&self, device: &dyn DeviceView, spare: Spare) -> (Option<PageId>, u64) {
        let (clean, looked) = self.order.oldest_not(CLEAN, device, spare);
        if clean.is_some() {
            return (clean, looked);
        }
        let found = self.cheapest(device, spare);
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

    fn cleaned(&mut self, _device: &dyn DeviceView, page: PageId) {
        if self.kind != Kind::Epsilon {
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
        spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        let (found, looked) = self.choose(device, spare);
        out.inspected += looked;
        out.spared |= spare != Spare::Nobody && self.choose(device, Spare::Nobody).0 != found;
        let Some(page) = found else { return false };
        if self.tie == Tie::RoundRobin && self.order.class(page) == LISTED {
            let next = self.order.chip(page).map(|chip| chip.0 as usize + 1);
            self.first = next.unwrap_or(0);
        }
        self.order.remove(page);
        out.victims.push(page);
        true
    }

    #[inline]
    fn expect(&self, page: PageId, near: bool) {
        self.order.expect(page, near);
    }

    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        let of = |class| self.order.oldest_three(class);
        then(of(CLEAN), || of(LISTED))
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let text = |name: String, oldest_first: Vec<PageId>| {
            let pages = oldest_first.iter().rev();
            let texts: Vec<String> = match self.kind {
                Kind::Epsilon => pages.map(|&page| page_text(device, page)).collect(),
                _ => pages.map(|&page| device.lpn(page).0.to_string()).collect(),
            };
            format!("{name}[{}]", texts.join(" "))
        };
        let mut lists = Vec::new();
        if self.kind != Kind::Epsilon {
            let clean = self.order.iter_oldest_first(CLEAN).collect();
            lists.push(text("Clean".to_owned(), clean));
        }
        let letter = if self.kind == Kind::Epsilon { 'L' } else { 'D' };
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
