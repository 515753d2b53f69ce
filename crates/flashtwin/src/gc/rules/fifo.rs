//! Selects the block that was opened first.

use super::{Candidate, Pool, Rule};
use crate::component::{Component, Settings};

/// The rule `fifo`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fifo;

impl Rule for Fifo {
    const COMPONENT: Component = Component {
        name: "fifo",
        line: "the block opened first",
        parameters: &[],
    };

    fn new(_settings: &Settings) -> Fifo {
        Fifo
    }

    fn choose<P: Pool>(&self, pool: &P) -> Option<P::Candidate> {
        pool.best(|a, b| a.age() > b.age())
    }
}
