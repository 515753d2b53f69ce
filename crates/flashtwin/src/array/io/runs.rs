//! Runs: consecutive pages on a member that will be sent to this member as one request.

use super::ops::Chain;
use crate::request::Op;

/// Consecutive pages on a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub first: u32,
    pub pages: u32,
    pub op: Op,
    pub fua: bool,
    pub chain: Chain,
}

impl Run {
    const NONE: Run = Run {
        first: 0,
        pages: 0,
        op: Op::Read,
        fua: false,
        chain: Chain::EMPTY,
    };

    /// Whether a page can be appended to the run.
    pub fn is_followed_by(&self, page: u32, op: Op, fua: bool) -> bool {
        self.pages > 0 && self.op == op && self.fua == fua && self.first + self.pages == page
    }
}

/// The run of each member.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    runs: Vec<Run>,
    /// Members that have a run, as bits.
    joining: u64,
    /// Whether only one page was queued at this instant, so that there is nothing to join.
    pub alone: bool,
}

impl Runs {
    pub fn new(members: usize) -> Runs {
        Runs {
            runs: vec![Run::NONE; members],
            joining: 0,
            alone: false,
        }
    }

    pub fn of(&mut self, member: usize) -> &mut Run {
        &mut self.runs[member]
    }

    /// Begins an empty run at the page `first`.
    pub fn begin(&mut self, member: usize, first: u32, op: Op, fua: bool) {
        self.joining |= 1 << member;
        self.runs[member] = Run {
            first,
            op,
            fua,
            ..Run::NONE
        };
    }

    /// Takes the run of a member; `None` if the member has none.
    pub fn take(&mut self, member: usize) -> Option<Run> {
        let run = self.runs[member];
        self.runs[member].pages = 0;
        (run.pages > 0).then_some(run)
    }

    /// Takes the next member that has a run.
    pub fn take_member(&mut self) -> Option<usize> {
        let member = (self.joining != 0).then(|| self.joining.trailing_zeros() as usize);
        self.joining &= self.joining.wrapping_sub(1);
        member
    }
}
