//! The event queue: one pending instant per resource, the earliest found in a few comparisons.
//!
//! Each chip, channel and bus has at most one pending completion, so there is no heap of events:
//! instants stand in a tree of groups of eight, each group one cache line. Nothing is allocated
//! after construction.

use crate::units::Time;

const FAN: usize = 8;

/// Pending instants of a fixed number of resources; ties go to the lowest resource number.
#[derive(Clone, Debug)]
pub(crate) struct EventTree {
    /// Level 0: one instant per resource; each further level: the minimum of each group of eight.
    levels: Vec<Vec<[Time; FAN]>>,
}

impl EventTree {
    pub fn new(resources: usize) -> EventTree {
        let mut levels = Vec::new();
        let mut groups = resources.div_ceil(FAN).max(1);
        loop {
            levels.push(vec![[Time::NEVER; FAN]; groups]);
            if groups == 1 {
                break;
            }
            groups = groups.div_ceil(FAN);
        }
        EventTree { levels }
    }

    /// Sets the pending instant of resource `i`; [`Time::NEVER`] clears it.
    #[inline]
    pub fn set(&mut self, i: usize, at: Time) {
        let mut i = i;
        let mut at = at;
        for level in &mut self.levels {
            let group = &mut level[i / FAN];
            if group[i % FAN] == at {
                return;
            }
            group[i % FAN] = at;
            at = minimum(group);
            i /= FAN;
        }
    }

    /// The earliest pending instant, [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next_time(&self) -> Time {
        minimum(&self.levels[self.levels.len() - 1][0])
    }

    /// The resource with the earliest pending instant.
    #[inline]
    pub fn next(&self) -> usize {
        let at = self.next_time();
        let mut i = 0;
        for level in self.levels.iter().rev() {
            let group = &level[i];
            let equal = (0..FAN).fold(0u32, |bits, j| bits | u32::from(group[j] == at) << j);
            i = i * FAN + equal.trailing_zeros() as usize;
        }
        i
    }
}

#[inline]
fn minimum(group: &[Time; FAN]) -> Time {
    let a = [
        group[0].min(group[4]),
        group[1].min(group[5]),
        group[2].min(group[6]),
        group[3].min(group[7]),
    ];
    a[0].min(a[2]).min(a[1].min(a[3]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn agrees_with_a_plain_scan_on_random_updates() {
        let mut rng = Rng::new(7);
        for resources in [1, 7, 8, 9, 64, 66, 600] {
            let mut tree = EventTree::new(resources);
            let mut plain = vec![Time::NEVER; resources];
            for _ in 0..2_000 {
                let i = rng.below(resources as u64) as usize;
                let at = match rng.below(4) {
                    0 => Time::NEVER,
                    _ => Time(rng.below(50)),
                };
                tree.set(i, at);
                plain[i] = at;
                let least = *plain.iter().min().unwrap();
                assert_eq!(tree.next_time(), least);
                if least != Time::NEVER {
                    let first = plain.iter().position(|t| *t == least).unwrap();
                    assert_eq!(tree.next(), first);
                }
            }
        }
    }
}
