//! The scope `chain`. If a class holds more units than its limit, the scope is the oldest closed unit of the first such
//! class. Otherwise, the scope is all units of the last class.

use super::{is_closed, Asked, Scope, Setup, Unit};
use crate::component::{Component, Settings};

/// The scope `chain`. A class counts only if it holds more units than its limit and has a closed unit. The scope is the
/// oldest closed unit of the first such class. If there is none, the scope is all units of the last class, or of all
/// classes if the scheme sets no limits.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// The only unit of the scope. If `None`, the scope is the last class, or all classes.
    oldest: Option<u32>,
}

impl Scope for Chain {
    const COMPONENT: Component = Component {
        name: "chain",
        line: "the oldest unit of the first class that holds more units than the scheme permits for this class. If \
               there is no such class, all units of the last class. If the scheme sets no limits, all units",
        parameters: &[],
    };

    fn new(_settings: &Settings, _setup: &Setup) -> Result<Chain, String> {
        Ok(Chain { oldest: None })
    }

    fn prepare(&mut self, pool: &Asked) {
        let is_above = |&(class, &limit): &(usize, &u32)| {
            pool.classes.in_use(pool.group, class as u16) > limit
        };
        let above = pool.limits.iter().enumerate().filter(is_above);
        // A class whose units are all still being written has no closed unit, and is passed over.
        self.oldest = above
            .filter_map(|(class, _)| {
                let mut opened = pool.units.opened(pool.group).iter().copied();
                opened.find(|&number| {
                    let unit = pool.units.unit(number);
                    is_closed(unit) && pool.classes.class_of(unit.owner) == Some(class as u16)
                })
            })
            .next();
    }

    fn has(&self, pool: &Asked, number: u32, unit: &Unit) -> bool {
        match self.oldest {
            Some(oldest) => oldest == number,
            None => {
                let last = Some(pool.classes.classes() - 1);
                pool.limits.is_empty() || pool.classes.class_of(unit.owner) == last
            }
        }
    }
}
