//! The cost of evicting a page from each of several lists: the queue complete times of the chips, and the lists in the
//! order of their costs. The order is a tournament: when one list changes, only the matches of this list are repeated.

use crate::chips::ChipChanges;
use crate::units::{ChipId, Time};

/// Key of a list without pages.
const EMPTY: u128 = u128::MAX;

/// The order of the lists. A key consists of the cost, the rank among equal costs, and the number of the list, so no
/// two lists have equal keys.
#[derive(Clone, Debug)]
pub(super) struct CostOrder {
    /// The tournament, as the two keys of each match. With n lists, list l has the number n + l. The winner of match i
    /// has the number i, so the winner of match 1 is the least of all. The keys of numbers 2 * i and 2 * i + 1 are in
    /// match i.
    matches: Vec<[u128; 2]>,
}

impl CostOrder {
    /// The order of lists without pages.
    pub fn new(lists: usize) -> CostOrder {
        CostOrder {
            matches: vec![[EMPTY; 2]; lists],
        }
    }

    /// Sets the cost of a list and its rank among lists of equal cost. `None` means that the list has no pages.
    #[inline]
    pub fn set(&mut self, list: usize, cost: Option<(Time, u32)>) {
        let key = cost.map_or(EMPTY, |(time, rank)| {
            u128::from(time.0) << 64 | u128::from(rank) << 32 | list as u128
        });
        let mut number = self.matches.len() + list;
        let mut least = key;
        loop {
            let keys = &mut self.matches[number / 2];
            let place = &mut keys[number % 2];
            if *place == least {
                return;
            }
            *place = least;
            if number <= 1 {
                return;
            }
            least = keys[0].min(keys[1]);
            number /= 2;
        }
    }

    /// Returns the list of the least cost, and its rank; `None` if no list has pages.
    #[inline]
    pub fn least(&self) -> Option<(usize, u32)> {
        let least = self.matches[0][1];
        (least != EMPTY).then_some((least as u32 as usize, (least >> 32) as u32))
    }
}

/// The queue complete times of all chips, updated from the changes that the device records. There is one list for each
/// chip, and a last one for pages without a chip, whose time is always zero.
#[derive(Clone, Debug)]
pub(super) struct QueueTimes {
    times: Vec<Time>,
    /// Number of changes recorded by the device ([`ChipChanges`]) that the times include; `None` before the first
    /// update.
    seen: Option<u64>,
}

impl QueueTimes {
    /// Creates times of zero for all lists.
    pub fn new(lists: usize) -> QueueTimes {
        QueueTimes {
            times: vec![Time::ZERO; lists],
            seen: None,
        }
    }

    /// Number of lists.
    #[inline]
    pub fn lists(&self) -> usize {
        self.times.len()
    }

    /// Returns the time of a list.
    #[inline]
    pub fn of(&self, list: usize) -> Time {
        self.times[list]
    }

    /// Whether the time of each chip is the one that `time` returns.
    pub fn are(&self, time: impl Fn(ChipId) -> Time) -> bool {
        let chips = &self.times[..self.lists() - 1];
        (0..).zip(chips).all(|(chip, &of)| of == time(ChipId(chip)))
    }

    /// Computes the times of the chips that have changed since the last call. Calls `differs` for each list whose
    /// time is now different.
    #[inline]
    pub fn follow(
        &mut self,
        changes: &ChipChanges,
        time: impl Fn(ChipId) -> Time,
        mut differs: impl FnMut(usize),
    ) {
        let changed = self.seen.and_then(|seen| changes.since(seen));
        self.seen = Some(changes.count());
        let chips = self.lists() as u16 - 1;
        let mut renew = |chip: ChipId| {
            let (list, time) = (chip.0 as usize, time(chip));
            if std::mem::replace(&mut self.times[list], time) != time {
                differs(list);
            }
        };
        match changed {
            Some(chips) => {
                let mut last = None;
                for chip in chips {
                    if last.replace(chip) != Some(chip) {
                        renew(chip);
                    }
                }
            }
            None => (0..chips).for_each(|chip| renew(ChipId(chip))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{seeds, Rng};

    #[test]
    fn the_least_is_that_of_a_scan() {
        for seed in seeds(4) {
            let mut rng = Rng::new(seed);
            let lists = 1 + rng.below(70) as usize;
            let mut order = CostOrder::new(lists);
            let mut costs = vec![None; lists];
            for _ in 0..2_000 {
                let list = rng.below(lists as u64) as usize;
                let cost = (Time(rng.below(5)), rng.below(3) as u32);
                costs[list] = (rng.below(4) > 0).then_some(cost);
                order.set(list, costs[list]);
                let scanned = (0..lists).filter(|&list| costs[list].is_some());
                let scanned = scanned.min_by_key(|&list| (costs[list], list));
                let scanned = scanned.map(|list| (list, costs[list].map_or(0, |cost| cost.1)));
                assert_eq!(order.least(), scanned, "seed {seed}, {costs:?}");
            }
        }
    }
}
