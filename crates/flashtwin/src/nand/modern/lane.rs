//! An operation of a die: its remaining steps, and the page operations that they serve.

use super::super::{Done, InHand};
use crate::short::Short;
use crate::units::Time;

/// A step of a die's work; every step except the last takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The array reads, which cannot be suspended.
    Array(Time),
    /// The array programs or erases, which may be suspended.
    Pulse(Time),
    /// The array works on a move of a collection, after which the lane has nothing to deliver.
    Move,
    /// A page crosses the channel.
    Transfer(Time),
    /// The first of the operations has ended.
    Deliver,
}

impl Step {
    fn time(self) -> Time {
        match self {
            Step::Array(time) | Step::Pulse(time) | Step::Transfer(time) => time,
            // It is never waiting.
            Step::Move | Step::Deliver => Time::ZERO,
        }
    }
}

/// The work in service of a die; free while no step is running. The fields that a collection's move uses are in the
/// first cache line.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Lane {
    /// The running step.
    pub step: Option<Step>,
    /// End of the step; `NEVER` while it waits for the channel or is suspended.
    pub ends: Time,
    pub since: Time,
    /// Remaining time of a suspended step.
    pub held: Option<Time>,
    /// When an operation of the host ended last on the die.
    pub served: Time,
    /// Reads served before the lane's own operations.
    pub passed: u32,
    /// The channel of its die.
    pub channel: u16,
    /// An instant of the lane is in the event queue.
    pub pending: bool,
    /// Operations of the host that have not completed; empty for a move or an erase.
    pub ops: Short<Done>,
    /// Steps not begun, in order.
    pub steps: Short<Step>,
}

impl Lane {
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        self.step.is_none()
    }

    /// Time until all its steps are done if it resumes now and waits for nothing.
    pub fn rest(&self, now: Time) -> Time {
        let begun = match (self.held, self.step) {
            (Some(held), _) => held,
            (None, None) => Time::ZERO,
            (None, Some(step)) if self.ends == Time::NEVER => step.time(),
            (None, Some(_)) => self.ends - now,
        };
        self.steps.iter().fold(begun, |sum, step| sum + step.time())
    }

    /// Number of writes in the lane.
    #[inline]
    pub fn writes(&self) -> u32 {
        self.ops.iter().filter(|done| !done.op.is_read()).count() as u32
    }

    /// Counts its operations among those in service.
    pub fn count(&self, in_hand: &mut InHand) {
        let writes = self.writes();
        in_hand.reads += self.ops.len() as u32 - writes;
        in_hand.writes += writes;
    }
}
