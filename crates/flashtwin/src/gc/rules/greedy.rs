//! Greedy victim selection: the sealed block with the fewest live pages.

use super::{Pool, Rule};
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
    fn choose<P: Pool>(&self, pool: &P) -> Option<P::Candidate> {
        pool.fewest_live()
    }
}
