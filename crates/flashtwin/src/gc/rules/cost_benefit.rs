//! Selects the block with the largest value of age * (1 - u) / (2 * u), where u is the fraction of valid pages
//! (Kawaguchi, Nishioka, Motoda, USENIX 1995).

use super::{Candidate, Pool, Rule};
use crate::component::{Component, Settings};

/// The rule `cost-benefit`: ranks a block by its age times the space that it frees, divided by the cost of moving its
/// live pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostBenefit;

impl Rule for CostBenefit {
    const COMPONENT: Component = Component {
        name: "cost-benefit",
        line: "the largest age x (1 - u) / 2u, u being the share of valid pages (Kawaguchi et al. 1995)",
        parameters: &[],
    };

    fn new(_settings: &Settings) -> CostBenefit {
        CostBenefit
    }

    fn choose<P: Pool>(&self, pool: &P) -> Option<P::Candidate> {
        let pages = pool.data_pages();
        pool.best(|a, b| {
            let benefit = |c: &P::Candidate| u128::from(c.age()) * u128::from(pages - c.live());
            benefit(a) * u128::from(b.live()) > benefit(b) * u128::from(a.live())
        })
    }
}
