//! Selects a sealed block at random. All sealed blocks of the pool are equally likely.

use super::{Pool, Rule};
use crate::component::{Component, Settings};

/// The rule `random`.
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

    fn choose<P: Pool>(&self, pool: &P) -> Option<P::Candidate> {
        pool.drawn(1)
    }
}
