//! A lane: work in service on a die, with its remaining steps and the host operations that it serves.

use super::super::{Done, InHand};
use crate::short::Short;
use crate::units::Time;

/// A step of a die's work. All steps except `Deliver` take time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Array time that cannot be suspended: a read.
    Array(Time),
    /// Array time that may be suspended: a program or an erase.
    Pulse(Time),
    /// Array time of a move of a collection, which may be suspended. It completes no host operation.
    Move,
    /// Transfer of a page over the channel.
    Transfer(Time),
    /// Completion of the first host operation of the lane. It takes no time.
    Deliver,
}

impl Step {
    fn time(self) -> Time {
        match self {
            Step::Array(time) | Step::Pulse(time) | Step::Transfer(time) => time,
            // These steps store no time: the end of a move is in the lane, and a completion takes no time.
            Step::Move | Step::Deliver => Time::ZERO,
        }
    }
}

/// A lane: work in service on a die. It is free while no step is running. The fields that every move of a collection
/// uses are in the first cache line of the struct.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Lane {
    /// The running step.
    pub step: Option<Step>,
    /// End of the running step; `NEVER` while it waits for the channel or is suspended.
    pub ends: Time,
    pub since: Time,
    /// Remaining time of a suspended step.
    pub held: Option<Time>,
    /// Instant at which the die last completed a host operation.
    pub served: Time,
    /// Number of reads that were served while the lane's work was suspended.
    pub passed: u32,
    /// The channel of the lane's die.
    pub channel: u16,
    /// Whether an event of the lane is pending in the event queue.
    pub pending: bool,
    /// Host operations in service. Empty if the work is a move or an erase.
    pub ops: Short<Done>,
    /// Steps not begun, in order.
    pub steps: Short<Step>,
}

impl Lane {
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        self.step.is_none()
    }

    /// Returns the time until all steps are done, if a suspended step resumes now and no step has to wait.
    pub fn rest(&self, now: Time) -> Time {
        let begun = match (self.held, self.step) {
            (Some(held), _) => held,
            (None, None) => Time::ZERO,
            (None, Some(step)) if self.ends == Time::NEVER => step.time(),
            (None, Some(_)) => self.ends - now,
        };
        self.steps.iter().fold(begun, |sum, step| sum + step.time())
    }

    /// Returns the number of writes in the lane.
    #[inline]
    pub fn writes(&self) -> u32 {
        self.ops.iter().filter(|done| !done.op.is_read()).count() as u32
    }

    /// Adds the lane's operations to those in service.
    pub fn count(&self, in_hand: &mut InHand) {
        let writes = self.writes();
        in_hand.reads += self.ops.len() as u32 - writes;
        in_hand.writes += writes;
    }
}
