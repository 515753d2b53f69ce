//! The scope `chain`: the oldest closed unit of a class that holds more units than its limit. If there is none, the
//! units of the last class.

use super::{is_closed, Asked, Scope, Setup, Unit};
use crate::component::{Component, Settings};

/// The scope `chain`. If classes with closed units are above their limits, the scope is the oldest closed unit of the
/// first of these classes. Otherwise it is all units of the last class, or of all classes if the scheme sets no limits.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// The only unit of the scope; `None` if the scope is the last class.
    oldest: Option<u32>,
}

impl Scope for Chain {
    const COMPONENT: Component = Component {
        name: "chain",
        line: "the oldest unit of the first class that holds more units than the limit that the scheme sets for it; units of \
               the last class if no class does, and all units if the scheme sets no limits",
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
        // A class is passed over if all its units are still being written, because it then has no closed unit.
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
