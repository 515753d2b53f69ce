//! What has become of an array since it was last measured from: phases in which the same members were
//! there, members that were rebuilt; and what happens once data are lost.

use super::coordinate::Coordinator;
use super::failure::MemberError;
use super::log::ArrayEvent;
use super::member::State;
use super::raid::{Chain, Raid, RaidStats, Spent};
use super::rebuild::Rebuild;
use super::stripes::{Stripes, NONE};
use super::Array;
use crate::events::EventQueue;
use crate::units::Time;

/// How much of an array is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All members.
    Whole,
    /// Members are missing, none is being rebuilt.
    Degraded,
    /// A member is being rebuilt.
    Rebuilding,
    /// More is missing than redundancy makes up for: no request is answered any more.
    Lost,
}

impl Condition {
    /// As results call it.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Whole => "whole",
            Condition::Degraded => "degraded",
            Condition::Rebuilding => "rebuilding",
            Condition::Lost => "lost",
        }
    }
}

/// A span of time in which no member failed, was replaced, or became whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// How much was there.
    pub condition: Condition,
    /// Since when.
    pub from: Time,
    /// What the array had done by then.
    pub stats_before: RaidStats,
}

/// A member that took the place of a failed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberRebuild {
    /// The member.
    pub member: usize,
    /// When it came.
    pub from: Time,
    /// When its last row was there; `None`: not yet, or it failed before.
    pub until: Option<Time>,
    /// Pages written to it because it lacked them.
    pub pages_written: u64,
    /// Pages it lacked at first.
    pub pages: u64,
}

/// What has become of an array.
#[derive(Clone, Debug)]
pub(super) struct History {
    phases: Vec<Phase>,
    pub rebuilds: Vec<MemberRebuild>,
}

impl History {
    pub fn new() -> History {
        History {
            phases: vec![Phase {
                condition: Condition::Whole,
                from: Time::ZERO,
                stats_before: RaidStats::default(),
            }],
            rebuilds: Vec::new(),
        }
    }
}

impl Array {
    /// The phases since the last [`crate::Device::reset_metrics`]: one at least, the last one goes on.
    pub fn phases(&self) -> &[Phase] {
        &self.backend.history.phases
    }

    /// Members that were replaced since then, or were being rebuilt at the time.
    pub fn rebuilds(&self) -> &[MemberRebuild] {
        &self.backend.history.rebuilds
    }

    /// A member fails without which data are lost ([`MemberError::Needed`]). All requests inside, and
    /// all that will come, are answered with [`crate::Status::Failed`] (D-107). Refused, as
    /// [`Array::fail_member`] would, if it is no member that is there.
    pub fn fail_needed_member(&mut self, member: usize) -> Result<(), MemberError> {
        match self.backend.may_fail(member) {
            Ok(()) => self.fail_member(member),
            Err(MemberError::Needed { .. }) => {
                let now = self.now();
                self.broken = true;
                self.backend.break_down(member, now, &mut self.events);
                Ok(())
            }
            Err(other) => Err(other),
        }
    }
}

impl Raid {
    fn condition(&self) -> Condition {
        let any = |state| self.members.iter().any(|m| m.state == state);
        match () {
            () if self.broken => Condition::Lost,
            () if any(State::Rebuilding) => Condition::Rebuilding,
            () if any(State::Failed) => Condition::Degraded,
            () => Condition::Whole,
        }
    }

    /// A member failed, was replaced or became whole: a phase begins.
    pub(super) fn begin_phase(&mut self, now: Time) {
        let phase = Phase {
            condition: self.condition(),
            from: now,
            stats_before: self.stats.clone(),
        };
        self.history.phases.push(phase);
    }

    /// Forgets what was before; what is being rebuilt still is.
    pub(super) fn reset_history(&mut self, now: Time) {
        self.history.phases.clear();
        self.begin_phase(now);
        let members = &self.members;
        let under_way =
            |r: &MemberRebuild| r.until.is_none() && members[r.member].state == State::Rebuilding;
        self.history.rebuilds.retain(under_way);
    }

    /// Nothing is done any more: what was under way is answered as not done.
    fn break_down(&mut self, member: usize, now: Time, events: &mut EventQueue) {
        self.broken = true;
        // What is under way at members' flash comes back as failed when it is done there.
        self.direct.open = false;
        self.let_go_of_held();
        self.members[member].state = State::Failed;
        self.whole = false;
        self.coordinator = Coordinator::Local;
        self.rebuild = Rebuild::default();
        let parts = self.all_parts().into_iter();
        let alone = parts
            .filter(|part| part.work == NONE)
            .map(|part| part.chain);
        let waiting = self.swan.as_mut().map(|swan| swan.take_waiting());
        let waiting = waiting.unwrap_or_default().into_iter();
        let waiting = waiting.map(|op| Chain { head: op, tail: op });
        let chains: Vec<Chain> = alone.chain(self.stripes.chains()).chain(waiting).collect();
        self.stripes = Stripes::default();
        for chain in chains {
            self.finish(chain, Spent::default(), false);
        }
        self.tell(|_| ArrayEvent::Failed { member });
        self.end_intervals(now);
        self.begin_phase(now);
        self.deliver(now, events);
    }

    /// Answers what was queued at this instant as not done.
    pub(super) fn refuse(&mut self, now: Time, events: &mut EventQueue) {
        self.trims.clear();
        let mut batch = std::mem::take(&mut self.batch);
        for op in batch.drain(..) {
            let only = Chain { head: op, tail: op };
            self.finish(only, Spent::default(), false);
        }
        self.batch = batch;
        self.deliver(now, events);
    }
}
