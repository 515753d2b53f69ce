//! Quotas: the number of units that each class may hold. There are three kinds of quotas: equal for all classes, given
//! by the user, or optimal, which is the split of the units that needs the fewest moves.
//!
//! The optimal split is computed as follows. Let W(load) be the closed form of the write amplification of
//! first-in-first-out collection under uniform writes. Class i has a share f_i of the host's pages, live pages that
//! would fill L_i units, and S_i units. The optimal numbers S_i minimise the sum of f_i W(L_i / S_i). At the minimum,
//! the derivatives with respect to all S_i are equal. This is valid if pages of a class are overwritten only by writes
//! of the same class.

use super::{Asked, Setup};
use crate::placement::scheme::{Class, CLASSES_MAX};
use crate::placement::theory::optimal_split;

/// Optimal quotas are recomputed whenever the number of erases has risen by 1/16 of the number of units.
const UPDATES: u32 = 16;

#[derive(Clone, Debug)]
enum Rule {
    Fixed,
    Optimal,
}

/// Quotas.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    rule: Rule,
    units: Vec<u32>,
    /// Number of units to split among the classes.
    whole: u32,
    unit_pages: u32,
    /// For each class, its share of the host's pages, as a running mean over about as many host pages as the units can
    /// hold. `seen` has the number of host pages of each class when the shares were last computed.
    shares: Vec<f64>,
    seen: Vec<u64>,
    /// Number of erases at which the quotas are updated next.
    due: u64,
}

impl Quota {
    pub fn new(text: &str, setup: &Setup) -> Result<Quota, String> {
        let handles = setup.handles.len();
        let wrong = || {
            format!(
                "quota: found {text:?}; must be \"equal\", \"optimal\", or {handles} numbers of units with commas between"
            )
        };
        let (rule, units) = match text {
            "equal" => (Rule::Fixed, Vec::new()),
            "optimal" => (Rule::Optimal, Vec::new()),
            list => {
                let numbers: Result<Vec<u32>, _> =
                    list.split(',').map(|n| n.trim().parse()).collect();
                let numbers = numbers.map_err(|_| wrong())?;
                if numbers.len() != handles {
                    return Err(wrong());
                }
                (Rule::Fixed, numbers)
            }
        };
        Ok(Quota {
            rule,
            units,
            whole: setup.units - setup.low,
            unit_pages: setup.unit_pages,
            shares: Vec::new(),
            seen: Vec::new(),
            due: 0,
        })
    }

    pub fn is_optimal(&self) -> bool {
        matches!(self.rule, Rule::Optimal)
    }

    /// Returns the number of units that a class may hold.
    #[inline]
    pub fn of(&self, class: Class) -> u32 {
        self.units.get(usize::from(class)).copied().unwrap_or(0)
    }

    /// Recomputes the quotas if an update is due.
    pub fn update(&mut self, pool: &Asked) {
        let classes = usize::from(pool.classes.classes());
        if self.units.len() != classes {
            let equal = pool.units.shape.units / classes as u32;
            self.units = vec![equal; classes];
        }
        if !self.is_optimal() || pool.classes.erases() < self.due {
            return;
        }
        self.due = pool.classes.erases() + u64::from((self.whole / UPDATES).max(1));
        self.take_shares(pool);
        let live: Vec<f64> = (0..classes)
            .map(|class| pool.classes.live(pool.units, class as Class) as f64)
            .map(|pages| pages / f64::from(self.unit_pages))
            .collect();
        if let Some(split) = optimal_split(&live, &self.shares, f64::from(self.whole)) {
            let largest = |a: &usize, b: &usize| self.shares[*a].total_cmp(&self.shares[*b]);
            self.units = split.iter().map(|&units| units as u32).collect();
            let rest = self.whole.saturating_sub(self.units.iter().sum());
            if let Some(most) = (0..classes).max_by(largest) {
                self.units[most] += rest;
            }
        }
    }

    /// Returns the state for a snapshot: the quotas and, for an optimal split, the classes' shares of the host's pages.
    pub fn words(&self) -> Vec<u64> {
        let units = self.units.iter().map(|&units| u64::from(units));
        [self.due, self.units.len() as u64, self.seen.len() as u64]
            .into_iter()
            .chain(units)
            .chain(self.shares.iter().map(|share| share.to_bits()))
            .chain(self.seen.iter().copied())
            .collect()
    }

    /// Restores the state from a snapshot. Returns false if the words are not a valid state.
    pub fn set_words(&mut self, words: &[u64]) -> bool {
        let [due, units, seen, rest @ ..] = words else {
            return false;
        };
        let (Ok(n), Ok(seen)) = (usize::try_from(*units), usize::try_from(*seen)) else {
            return false;
        };
        if n > CLASSES_MAX.into() || seen > CLASSES_MAX.into() || rest.len() != n + 2 * seen {
            return false;
        }
        let (units, rest) = rest.split_at(n);
        let (shares, seen) = rest.split_at(seen);
        let shares: Vec<f64> = shares.iter().map(|&bits| f64::from_bits(bits)).collect();
        self.due = *due;
        self.units = units.iter().map(|&units| units as u32).collect();
        self.seen = seen.to_vec();
        self.shares = shares;
        self.shares.iter().all(|share| (0.0..=1.0).contains(share))
            && units.iter().all(|&units| units <= self.whole.into())
    }

    /// Updates the running mean of the classes' shares with their shares since the last update. The more pages were
    /// written since then, relative to the capacity, the greater is the weight of the new shares.
    fn take_shares(&mut self, pool: &Asked) {
        let classes = pool.classes.classes();
        let now: Vec<u64> = (0..classes).map(|c| pool.classes.host_pages(c)).collect();
        if self.seen.is_empty() {
            self.seen = vec![0; now.len()];
            self.shares = vec![0.0; now.len()];
        }
        let written: Vec<u64> = now.iter().zip(&self.seen).map(|(a, b)| a - b).collect();
        let sum = written.iter().sum::<u64>() as f64;
        if sum > 0.0 {
            let capacity = f64::from(self.whole) * f64::from(self.unit_pages);
            let is_first = self.shares.iter().all(|&share| share == 0.0);
            let weight = match is_first {
                true => 1.0,
                false => 1.0 - (-sum / capacity).exp(),
            };
            for (share, pages) in self.shares.iter_mut().zip(written) {
                *share += weight * (pages as f64 / sum - *share);
            }
            self.seen = now;
        }
    }
}
