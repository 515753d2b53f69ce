//! Selects the block with the fewest valid pages among d blocks drawn at random (Van Houdt, SIGMETRICS 2013).

use super::{Pool, Rule};
use crate::component::{parameters, Component, Kind, Settings};

parameters! {
    /// Parameters of `d-choices`.
    struct Parameters {
        /// Number d of blocks drawn at random; a block may be drawn several times.
        choices: u32 = Kind::Count(1, 65535), "10", "ours";
    }
}

/// The rule `d-choices`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DChoices {
    choices: u32,
}

impl Rule for DChoices {
    const COMPONENT: Component = Component {
        name: "d-choices",
        line: "the fewest valid pages among `choices` blocks drawn at random (Van Houdt 2013)",
        parameters: Parameters::ROWS,
    };

    fn new(settings: &Settings) -> DChoices {
        let Parameters { choices } = Parameters::of(settings);
        DChoices { choices }
    }

    fn choose<P: Pool>(&self, pool: &P) -> Option<P::Candidate> {
        pool.drawn(self.choices)
    }
}
