//! Selects the block with the fewest valid pages in a window: the blocks that were opened first (Hu, Eleftheriou, Haas,
//! Iliadis, Pletka, SYSTOR 2009).

use super::{Candidate, Pool, Rule};
use crate::component::{parameters, Component, Kind, Settings};

parameters! {
    /// Parameters of windowed greedy.
    struct Parameters {
        /// The victim is selected among this share of the pool's blocks: the blocks that were opened first.
        window_percent: f64 = Kind::Percent, "25", "ours";
    }
}

/// The rule `windowed`: selects the block with the fewest valid pages among the blocks that were opened first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windowed {
    window_percent: f64,
}

impl Rule for Windowed {
    const COMPONENT: Component = Component {
        name: "windowed",
        line: "the fewest valid pages among the blocks opened first (Hu et al. 2009)",
        parameters: Parameters::ROWS,
    };

    fn new(settings: &Settings) -> Windowed {
        let Parameters { window_percent } = Parameters::of(settings);
        Windowed { window_percent }
    }

    fn choose<P: Pool>(&self, pool: &P) -> Option<P::Candidate> {
        let blocks = f64::from(pool.places()) * self.window_percent / 100.0;
        let mut ages: Vec<u32> = pool.candidates().map(|c| c.age()).collect();
        let last = (blocks as usize).clamp(1, ages.len().max(1)) - 1;
        let least_age = match ages.get(last) {
            Some(_) => *ages.select_nth_unstable_by(last, |a, b| b.cmp(a)).1,
            None => 0,
        };
        pool.best(|a, b| {
            let within = |c: &P::Candidate| c.age() >= least_age;
            within(a) && (!within(b) || a.live() < b.live())
        })
    }
}
