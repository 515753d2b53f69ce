//! The scope `handle`: if a page needs room, units of its own handle are collected.

use super::{tolerance, Asked, Scope, Setup, Unit};
use crate::component::{parameters, Component, Kind, Settings};

parameters! {
    /// Parameters of the scope.
    struct Parameters {
        /// Largest difference in live pages between a victim and the unit with the fewest live pages, in percent of a
        /// unit's pages; `none`: no limit.
        tolerance_percent: String = Kind::Text, "\"12.5\"", "ours: without a limit a scope can be ruinous";
    }
}

/// The scope `handle`: a page of a handle makes room by collecting units of the same handle.
#[derive(Clone, Debug)]
pub(crate) struct ByHandle {
    tolerance: Option<f64>,
}

impl Scope for ByHandle {
    const COMPONENT: Component = Component {
        name: "handle",
        line: "units of the handle whose page needs room, and units of its survivors",
        parameters: Parameters::ROWS,
    };

    fn new(settings: &Settings, _setup: &Setup) -> Result<ByHandle, String> {
        let Parameters { tolerance_percent } = Parameters::of(settings);
        let tolerance = tolerance(&tolerance_percent)?;
        Ok(ByHandle { tolerance })
    }

    fn has(&self, pool: &Asked, _number: u32, unit: &Unit) -> bool {
        let Some(class) = pool.class else { return true };
        match pool.classes.class_of(unit.owner) {
            Some(of_unit) => of_unit == class,
            // The unit holds moved pages of several classes. It is in the scope of every class that is not isolated.
            None => !pool.classes.is_isolated(class),
        }
    }

    fn tolerance_percent(&self) -> Option<f64> {
        self.tolerance
    }
}
