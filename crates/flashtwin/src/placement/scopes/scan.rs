//! The scope `scan`: a single unit. A scan through a circle of units finds the next one with few live pages.

use super::{is_closed, Asked, Scope, Setup, Unit};
use crate::component::{parameters, Component, Kind, Settings};

parameters! {
    /// Parameters of the scope.
    struct Parameters {
        /// Initial limit: a unit is chosen if its share of live pages, in percent, is below the limit.
        live_percent: f64 = Kind::Percent, "70", "SSD-iq's two-region rule, as reconstructed";
        /// Share of the units, in percent, that are examined without a choice before the limit rises by 5 percentage
        /// points.
        reach_percent: f64 = Kind::Percent, "70", "SSD-iq's two-region rule, as reconstructed";
    }
}

/// Share of live pages by which the limit rises or falls in one step.
const STEP: f64 = 0.05;

/// The closed units of a group, arranged as a circle for the scan.
#[derive(Clone, Debug, PartialEq)]
struct Circle {
    /// The units in the order of the scan. Each has the sequence number that its unit had when it was added. If the
    /// unit now has another sequence number, it was erased in the meantime.
    order: Vec<(u32, u32)>,
    /// Position of the unit that is examined next.
    at: usize,
    /// Share of live pages below which a unit is chosen.
    limit: f64,
    /// Largest share of live pages among the units that were chosen in the current round of the circle.
    most: f64,
}

/// The circle of each group, and the unit that the last call of `prepare` found.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    /// Initial and lowest value of the limit.
    least: f64,
    /// Fraction of the units that may be examined without a choice before the limit rises.
    reach: f64,
    units: u32,
    circles: Vec<Circle>,
    found: Option<u32>,
}

impl Circle {
    /// Removes units that are no longer closed, and adds units that have been closed since the last call. Units of host
    /// pages are added at the end of the circle. Units of survivors are added just before the next unit to examine, so
    /// that they are examined last.
    fn update(&mut self, pool: &Asked) {
        let mut kept_before = 0;
        let (mut place, at) = (0, self.at);
        self.order.retain(|&(number, sequence)| {
            let unit = pool.units.unit(number);
            let keeps = unit.sequence == sequence && is_closed(unit);
            kept_before += usize::from(keeps && place < at);
            place += 1;
            keeps
        });
        self.at = kept_before;
        let listed: std::collections::HashSet<u32> = self.order.iter().map(|of| of.0).collect();
        for &number in pool.units.opened(pool.group) {
            let unit = pool.units.unit(number);
            if !is_closed(unit) || listed.contains(&number) {
                continue;
            }
            let entry = (number, unit.sequence);
            match pool.classes.is_host(unit.owner) {
                true => self.order.push(entry),
                false => {
                    self.order.insert(self.at, entry);
                    self.at += 1;
                }
            }
        }
        if self.at >= self.order.len() {
            self.at = 0;
        }
    }

    /// Returns the next unit whose share of live pages is below the limit. `None` if no unit has an invalid page.
    fn next(&mut self, pool: &Asked, least: f64, reach: f64) -> Option<u32> {
        let pages = f64::from(pool.units.shape.pages);
        let reach = (reach * self.order.len() as f64) as usize;
        let mut seen = 0;
        while !self.order.is_empty() {
            if self.at == 0 {
                if self.most > 0.0 && self.most < self.limit - STEP && self.limit > least {
                    self.limit -= STEP;
                }
                self.most = 0.0;
            }
            let (number, _) = self.order[self.at];
            self.at = (self.at + 1) % self.order.len();
            let live = pool.units.unit(number).live;
            let share = f64::from(live) / pages;
            if share < self.limit.min(1.0) {
                self.most = self.most.max(share);
                return Some(number);
            }
            seen += 1;
            if seen > reach {
                // A whole circle was examined with the highest limit, so no unit has an invalid page.
                if self.limit >= 1.0 && seen >= self.order.len() {
                    return None;
                }
                if self.limit < 1.0 {
                    (self.limit, seen) = (self.limit + STEP, 0);
                }
            }
        }
        None
    }
}

impl Scope for Scan {
    const COMPONENT: Component = Component {
        name: "scan",
        line: "one unit, found by a scan: units are examined in the order of opening, units of survivors last, until \
               the share of live pages of a unit is below a limit. If `reach_percent` of the units were examined in \
               vain, the limit rises; later it falls again. With the scheme `gc`, this scope is a reconstruction of \
               SSD-iq's rule of two regions",
        parameters: Parameters::ROWS,
    };

    fn new(settings: &Settings, setup: &Setup) -> Result<Scan, String> {
        let p = Parameters::of(settings);
        let (least, reach) = (p.live_percent / 100.0, p.reach_percent / 100.0);
        let circle = Circle {
            order: Vec::new(),
            at: 0,
            limit: least,
            most: 0.0,
        };
        Ok(Scan {
            least,
            reach,
            units: setup.units,
            circles: vec![circle; setup.groups as usize],
            found: None,
        })
    }

    fn prepare(&mut self, pool: &Asked) {
        let circle = &mut self.circles[pool.group as usize];
        circle.update(pool);
        self.found = circle.next(pool, self.least, self.reach);
    }

    fn has(&self, _pool: &Asked, number: u32, _unit: &Unit) -> bool {
        self.found == Some(number)
    }

    fn words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        for circle in &self.circles {
            let Circle {
                order,
                at,
                limit,
                most,
            } = circle;
            words.extend([
                order.len() as u64,
                *at as u64,
                limit.to_bits(),
                most.to_bits(),
            ]);
            let entry =
                |&(unit, sequence): &(u32, u32)| u64::from(sequence) << 32 | u64::from(unit);
            words.extend(order.iter().map(entry));
        }
        words
    }

    fn set_words(&mut self, words: &[u64]) -> bool {
        let mut left = words;
        let mut circles = Vec::new();
        for group in 0..self.circles.len() as u32 {
            let Some((&[n, at, limit, most], rest)) = left.split_first_chunk() else {
                return false;
            };
            let Some((entries, rest)) = usize::try_from(n)
                .ok()
                .and_then(|n| rest.split_at_checked(n))
            else {
                return false;
            };
            left = rest;
            let (limit, most) = (f64::from_bits(limit), f64::from_bits(most));
            let range = group * self.units..(group + 1) * self.units;
            let order: Vec<(u32, u32)> = (entries.iter())
                .map(|&entry| (entry as u32, (entry >> 32) as u32))
                .collect();
            let fits = order.iter().all(|(unit, _)| range.contains(unit))
                && (at < n || at == 0)
                && (0.0..2.0).contains(&limit)
                && (0.0..=1.0).contains(&most);
            if !fits {
                return false;
            }
            circles.push(Circle {
                order,
                at: at as usize,
                limit,
                most,
            });
        }
        self.circles = circles;
        left.is_empty()
    }
}
