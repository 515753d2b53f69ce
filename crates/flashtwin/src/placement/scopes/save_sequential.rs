//! The scope `save-sequential`: all units except those that the host is overwriting in order, which will soon be
//! entirely invalid.

use super::{Asked, Scope, Setup, Unit};
use crate::component::{parameters, Component, Kind, Settings};

parameters! {
    /// Parameters of the scope.
    struct Parameters {
        /// Time for which a unit stays excluded after one of its pages became invalid, as a number of units of host
        /// pages.
        patience: u32 = Kind::Count(1, 65_535), "2", "ours";
    }
}

/// The scope `save-sequential`: all units except those that the host is overwriting in order.
#[derive(Clone, Debug)]
pub(crate) struct SaveSequential {
    patience: u64,
}

impl Scope for SaveSequential {
    const COMPONENT: Component = Component {
        name: "save-sequential",
        line: "all units except those that the host is overwriting in order, because these will soon be empty. In such \
               a unit, only pages at the start are invalid, and since the last of them became invalid, the host has \
               written at most `patience` units of pages",
        parameters: Parameters::ROWS,
    };

    fn new(settings: &Settings, setup: &Setup) -> Result<SaveSequential, String> {
        let Parameters { patience } = Parameters::of(settings);
        Ok(SaveSequential {
            patience: u64::from(patience) * u64::from(setup.unit_pages),
        })
    }

    fn has(&self, pool: &Asked, number: u32, unit: &Unit) -> bool {
        let dead = unit.given - unit.live;
        let dies = dead > 0 && pool.classes.clock() - unit.last_death < self.patience;
        !(dies && unit.live > 0 && pool.units.first_live(number) == Some(dead))
    }
}
