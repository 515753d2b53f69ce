//! The scope `global`: all closed units of the group.

use super::{Asked, Scope, Setup, Unit};
use crate::component::{Component, Settings};

/// The scope of every closed unit.
#[derive(Clone, Debug)]
pub(crate) struct Global;

impl Scope for Global {
    const COMPONENT: Component = Component {
        name: "global",
        line: "all closed units",
        parameters: &[],
    };

    fn new(_settings: &Settings, _setup: &Setup) -> Result<Global, String> {
        Ok(Global)
    }

    #[inline]
    fn has(&self, _pool: &Asked, _number: u32, _unit: &Unit) -> bool {
        true
    }
}
