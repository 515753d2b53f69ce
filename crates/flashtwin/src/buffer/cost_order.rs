//! Lists of pages, ordered by the cost of evicting a page from each list. The order is a tournament: when one list
//! changes, only the matches of this list are repeated.

use crate::units::Time;

/// Key of a list without pages.
const EMPTY: u128 = u128::MAX;

/// The order of the lists. A key consists of the cost, the rank among equal costs, and the number of the list, so no
/// two lists have equal keys.
#[derive(Clone, Debug)]
pub(super) struct CostOrder {
    /// The tournament. `keys[lists..]` are the keys of the lists. `keys[i]` is the lesser of `keys[2 * i]` and
    /// `keys[2 * i + 1]`, so `keys[1]` is the least key of all.
    keys: Vec<u128>,
}

impl CostOrder {
    /// The order of lists without pages.
    pub fn new(lists: usize) -> CostOrder {
        CostOrder {
            keys: vec![EMPTY; 2 * lists],
        }
    }

    /// Sets the cost of a list and its rank among lists of equal cost. `None` means that the list has no pages.
    #[inline]
    pub fn set(&mut self, list: usize, cost: Option<(Time, u32)>) {
        let key = cost.map_or(EMPTY, |(time, rank)| {
            u128::from(time.0) << 64 | u128::from(rank) << 32 | list as u128
        });
        let mut at = self.keys.len() / 2 + list;
        let mut least = key;
        loop {
            if self.keys[at] == least {
                return;
            }
            self.keys[at] = least;
            if at <= 1 {
                return;
            }
            least = least.min(self.keys[at ^ 1]);
            at /= 2;
        }
    }

    /// Returns the list of the least cost; `None` if no list has pages.
    #[inline]
    pub fn least(&self) -> Option<usize> {
        let least = self.keys[1];
        (least != EMPTY).then_some(least as u32 as usize)
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
                assert_eq!(order.least(), scanned, "seed {seed}, {costs:?}");
            }
        }
    }
}
