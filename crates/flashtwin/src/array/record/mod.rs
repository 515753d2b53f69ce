//! Records of an array: counters, event log, phases and rebuilds, and collections by member.

pub(super) mod history;
pub(super) mod log;
pub(super) mod stats;
pub(super) mod timeline;

use crate::units::Time;
use history::{Condition, History, MemberRebuild, Phase};
use log::Log;
use stats::RaidStats;

/// Everything that an array records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub stats: RaidStats,
    pub log: Log,
    pub history: History,
}

impl Record {
    /// Begins a new phase of the history, because a member failed, was replaced or has been rebuilt.
    pub fn begin_phase(&mut self, condition: Condition, now: Time) {
        self.history.phases.push(Phase {
            condition,
            from: now,
            stats_before: self.stats.clone(),
        });
    }

    /// Resets the counters, and drops all rebuilds except those in progress.
    pub fn reset(
        &mut self,
        condition: Condition,
        now: Time,
        in_progress: impl Fn(&MemberRebuild) -> bool,
    ) {
        self.stats = RaidStats::default();
        self.history.phases.clear();
        self.begin_phase(condition, now);
        self.history.rebuilds.retain(in_progress);
    }
}
