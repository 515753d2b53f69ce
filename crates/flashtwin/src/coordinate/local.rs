//! No coordinator: each member collects when it must.

use super::scheme::{Coordinate, Scheme};
use crate::component::{Component, Settings};

/// The scheme `local`: every member decides for itself when it collects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Local;

impl Scheme for Local {
    const COMPONENT: Component = Component {
        name: "local",
        line: "each for itself",
        parameters: &[],
    };
    const IS_LOCAL: bool = true;

    fn new(_members: usize, _settings: &Settings) -> Local {
        Local
    }
}

impl Coordinate for Local {}

/// The scheme `ideal`: members collect without coordination, and collections take no time. It is a
/// lower bound for the response times of all schemes.
#[derive(Clone, Debug)]
pub(crate) struct Ideal;

impl Scheme for Ideal {
    const COMPONENT: Component = Component {
        name: "ideal",
        line: "collecting takes no time",
        parameters: &[],
    };
    const IS_LOCAL: bool = true;

    fn new(_members: usize, _settings: &Settings) -> Ideal {
        Ideal
    }
}

impl Coordinate for Ideal {}
