//! Selects the block with the least value of u / (1 - u) * erases / age, where u is the fraction of valid pages
//! (Chiang, Chang, Journal of Systems and Software 1999).

use super::{Candidate, Pool, Rule};
use crate::component::{Component, Settings};

/// The rule `cost-age-time`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostAgeTime;

impl Rule for CostAgeTime {
    const COMPONENT: Component = Component {
        name: "cost-age-time",
        line: "the least u / (1 - u) x erases / age (Chiang and Chang 1999)",
        parameters: &[],
    };

    fn new(_settings: &Settings) -> CostAgeTime {
        CostAgeTime
    }

    fn choose<P: Pool>(&self, pool: &P) -> Option<P::Candidate> {
        let pages = pool.data_pages();
        pool.best(|a, b| {
            // The number of erases is increased by one, because all blocks that were never erased would otherwise have
            // a cost of 0. The age is increased by one because it is a divisor.
            let cost = |c: &P::Candidate| u128::from(c.live()) * (u128::from(c.erases()) + 1);
            let gain = |c: &P::Candidate| u128::from(pages - c.live()) * (u128::from(c.age()) + 1);
            cost(a) * gain(b) < cost(b) * gain(a)
        })
    }
}
