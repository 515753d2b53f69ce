//! The scope `noisy`: units of handles that hold more units than their quota.

use super::quota::Quota;
use super::{tolerance, Asked, Scope, Setup, Unit};
use crate::component::{parameters, Component, Kind, Settings};

parameters! {
    /// Parameters of the scope.
    struct Parameters {
        /// Number of units that each handle may hold: `equal`, `optimal` (the split with the fewest moves, by the
        /// closed form), or a number for each handle, separated by commas.
        quota: String = Kind::Text, "\"equal\"", "ours";
        /// Largest difference in live pages between a victim and the unit with the fewest live pages, in percent of a
        /// unit's pages; `none`: no limit; `auto`: `none` with the quota `optimal`, otherwise 12.5.
        tolerance_percent: String = Kind::Text, "\"auto\"", "ours: without a limit a scope can be ruinous";
    }
}

/// The scope `noisy`: units of handles that hold more units than their quota.
#[derive(Clone, Debug)]
pub(crate) struct Noisy {
    quota: Quota,
    tolerance: Option<f64>,
    /// For each class, whether it holds more units than its quota.
    above: Vec<bool>,
    /// Whether any class holds more units than its quota.
    any: bool,
}

impl Scope for Noisy {
    const COMPONENT: Component = Component {
        name: "noisy",
        line: "units of handles that hold more units than their quota; all units if no handle does",
        parameters: Parameters::ROWS,
    };

    fn new(settings: &Settings, setup: &Setup) -> Result<Noisy, String> {
        let p = Parameters::of(settings);
        let quota = Quota::new(&p.quota, setup)?;
        let tolerance = match p.tolerance_percent.as_str() {
            "auto" => match quota.is_optimal() {
                true => None,
                false => Some(12.5),
            },
            text => tolerance(text)?,
        };
        Ok(Noisy {
            quota,
            tolerance,
            above: Vec::new(),
            any: false,
        })
    }

    fn prepare(&mut self, pool: &Asked) {
        self.quota.update(pool);
        let classes = 0..pool.classes.classes();
        let is_above = |class| pool.classes.in_use(pool.group, class) > self.quota.of(class);
        self.above.clear();
        self.above.extend(classes.map(is_above));
        self.any = self.above.contains(&true);
    }

    fn has(&self, pool: &Asked, _number: u32, unit: &Unit) -> bool {
        let class = pool.classes.class_of(unit.owner);
        !self.any || class.is_some_and(|class| self.above[usize::from(class)])
    }

    fn words(&self) -> Vec<u64> {
        self.quota.words()
    }

    fn set_words(&mut self, words: &[u64]) -> bool {
        self.quota.set_words(words)
    }

    fn tolerance_percent(&self) -> Option<f64> {
        self.tolerance
    }
}
