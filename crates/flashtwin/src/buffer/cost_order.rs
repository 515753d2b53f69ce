//! Finds the list from which evicting a page costs least. There is one list of pages per chip, and its cost is the time
//! at which the chip completes its queue. The lists are ordered in a tournament: the cheapest list of each group takes
//! part in the next round. If the cost of a list changes, its group is compared again only if the list was the cheapest
//! of the group. The comparison is postponed until the cheapest list is requested.

use crate::chips::ChipChanges;
use crate::units::{ChipId, Time};

/// Key of a list without pages.
const EMPTY: u128 = u128::MAX;

/// Number of keys in a group.
const GROUP: usize = 8;

/// The order of the lists by cost. The key of a list consists of its cost, its rank among lists of equal cost, and its
/// number. No two lists have equal keys.
#[derive(Clone, Debug)]
pub(super) struct CostOrder {
    /// The rounds of the tournament. The first round contains the key of each list. Each later round contains the least
    /// key of each group of the previous round. The last round has a single group.
    rounds: Vec<Round>,
    /// Number of the last list, which takes no part in the rounds. The number of chips is often a power of two, so one
    /// more list would need another round.
    last: usize,
    /// Key of the last list.
    last_key: u128,
}

#[derive(Clone, Debug)]
struct Round {
    groups: Vec<[u128; GROUP]>,
    /// Groups whose least key must be determined again, as bits. Until then, the key that the next round has for such a
    /// group may be less than the group's least key.
    changed: Vec<u64>,
}

impl Round {
    fn new(keys: usize) -> Round {
        let groups = keys.div_ceil(GROUP);
        Round {
            groups: vec![[EMPTY; GROUP]; groups],
            changed: vec![0; groups.div_ceil(64)],
        }
    }
}

#[inline]
fn least_of(group: &[u128; GROUP]) -> u128 {
    group.iter().fold(EMPTY, |least, &key| least.min(key))
}

/// Sets a key in the first of `rounds`. Also sets it in each later round in which it is the least key of its group.
#[inline]
fn enter(rounds: &mut [Round], mut at: usize, key: u128) {
    let mut rounds = rounds.iter_mut().peekable();
    while let Some(round) = rounds.next() {
        let group = at / GROUP;
        let was = std::mem::replace(&mut round.groups[group][at % GROUP], key);
        let Some(next) = rounds.peek() else { return };
        let least = next.groups[group / GROUP][group % GROUP];
        if key >= least {
            if was == least && was != key {
                round.changed[group / 64] |= 1 << (group % 64);
            }
            return;
        }
        at = group;
    }
}

impl CostOrder {
    /// The order of lists without pages.
    pub fn new(lists: usize) -> CostOrder {
        let last = lists - 1;
        let mut rounds = vec![Round::new(last.max(1))];
        let mut groups = last.div_ceil(GROUP);
        while groups > 1 {
            rounds.push(Round::new(groups));
            groups = groups.div_ceil(GROUP);
        }
        CostOrder {
            rounds,
            last,
            last_key: EMPTY,
        }
    }

    /// Sets the cost of a list and its rank among lists of equal cost. `None` is the cost of a list without pages.
    #[inline]
    pub fn set(&mut self, list: usize, cost: Option<(Time, u32)>) {
        let key = cost.map_or(EMPTY, |(time, rank)| {
            u128::from(time.0) << 64 | u128::from(rank) << 32 | list as u128
        });
        match list == self.last {
            true => self.last_key = key,
            false => enter(&mut self.rounds, list, key),
        }
    }

    /// Returns the number of the list with the least cost, and the rank of that list. Returns `None` if no list has
    /// pages.
    #[inline]
    pub fn least(&mut self) -> Option<(usize, u32)> {
        for i in 1..self.rounds.len() {
            let (round, next) = self.rounds.split_at_mut(i);
            play(&mut round[i - 1], next);
        }
        let winner = self.rounds.last().map(|round| least_of(&round.groups[0]));
        let least = winner.map_or(self.last_key, |key| key.min(self.last_key));
        (least != EMPTY).then_some((least as u32 as usize, (least >> 32) as u32))
    }
}

/// Determines the least key of each changed group of a round, and writes it into the later rounds.
#[inline]
fn play(round: &mut Round, next: &mut [Round]) {
    for (i, changed) in round.changed.iter_mut().enumerate() {
        let mut groups = std::mem::take(changed);
        while groups != 0 {
            let group = i * 64 + groups.trailing_zeros() as usize;
            groups &= groups - 1;
            enter(next, group, least_of(&round.groups[group]));
        }
    }
}

/// The times at which the chips complete their queues. They are updated from the changes that the device records. There
/// is one list for each chip, and a last one for pages without a chip, whose time is always zero.
#[derive(Clone, Debug)]
pub(super) struct QueueTimes {
    times: Vec<Time>,
    /// Number of the device's recorded changes ([`ChipChanges`]) that the times already include; `None` before the
    /// first update.
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

    /// Whether the stored time of each chip equals the time that `time` returns for it.
    pub fn are(&self, time: impl Fn(ChipId) -> Time) -> bool {
        let chips = &self.times[..self.lists() - 1];
        (0..).zip(chips).all(|(chip, &of)| of == time(ChipId(chip)))
    }

    /// Computes the times of the chips that have changed since the last call. Calls `differs` for each list whose time
    /// has a new value.
    #[inline]
    pub fn follow(
        &mut self,
        changes: &ChipChanges,
        time: impl Fn(ChipId) -> Time,
        mut differs: impl FnMut(usize),
    ) {
        let changed = self.seen.and_then(|seen| changes.since(seen));
        self.seen = Some(changes.count());
        let Some(chips) = changed else {
            return self.renew_all(&time, &mut differs);
        };
        let mut last = None;
        for chip in chips {
            if last.replace(chip) != Some(chip) {
                self.renew(chip, &time, &mut differs);
            }
        }
    }

    #[cold]
    fn renew_all(&mut self, time: &impl Fn(ChipId) -> Time, differs: &mut impl FnMut(usize)) {
        for chip in 0..self.lists() as u16 - 1 {
            self.renew(ChipId(chip), time, differs);
        }
    }

    #[inline(always)]
    fn renew(
        &mut self,
        chip: ChipId,
        time: &impl Fn(ChipId) -> Time,
        differs: &mut impl FnMut(usize),
    ) {
        let (list, time) = (chip.0 as usize, time(chip));
        if std::mem::replace(&mut self.times[list], time) != time {
            differs(list);
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
            let lists = 1 + [7, 70, 700][seed as usize % 3].min(rng.below(700)) as usize;
            let mut order = CostOrder::new(lists);
            let mut costs = vec![None; lists];
            for _ in 0..2_000 {
                let list = rng.below(lists as u64) as usize;
                let cost = (Time(rng.below(5)), rng.below(3) as u32);
                costs[list] = (rng.below(4) > 0).then_some(cost);
                order.set(list, costs[list]);
                if rng.below(3) == 0 {
                    continue;
                }
                let scanned = (0..lists).filter(|&list| costs[list].is_some());
                let scanned = scanned.min_by_key(|&list| (costs[list], list));
                let scanned = scanned.map(|list| (list, costs[list].map_or(0, |cost| cost.1)));
                assert_eq!(order.least(), scanned, "seed {seed}, {costs:?}");
            }
        }
    }
}
