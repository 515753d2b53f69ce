//! Greedy victim selection: the sealed block with the fewest live pages.

use super::{Candidate, Pool, Rule, Tie};
use crate::component::{Component, Settings};

/// The rule `greedy`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Greedy;

impl Rule for Greedy {
    const COMPONENT: Component = Component {
        name: "greedy",
        line: "the fewest valid pages",
        parameters: &[],
    };

    fn new(_settings: &Settings) -> Greedy {
        Greedy
    }

    #[inline]
    fn choose<'a>(&self, pool: &Pool<'a>) -> Option<Candidate<'a>> {
        let last = pool.tie == Tie::Highest;
        pool.candidate(pool.ftl.position_of_least(pool.pool, last)?)
    }
}
