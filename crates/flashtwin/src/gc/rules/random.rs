//! Any block, all alike.

use super::{Candidate, Pool, Rule};
use crate::component::{Component, Settings};

/// Any block, all alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random;

impl Rule for Random {
    const COMPONENT: Component = Component {
        name: "random",
        line: "any block, all alike",
        parameters: &[],
    };

    fn new(_settings: &Settings) -> Random {
        Random
    }

    fn choose(&self, pool: &Pool) -> Option<Candidate> {
        pool.drawn(1)
    }
}
