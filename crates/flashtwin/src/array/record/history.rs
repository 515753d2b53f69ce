//! Phases and rebuilds of an array since the last reset of the metrics. During a *phase*, the state of every member is
//! constant: complete, missing or under rebuild.

use super::stats::RaidStats;
use crate::units::Time;

/// State of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All members of the array are complete.
    Whole,
    /// Members are missing, and none is being rebuilt.
    Degraded,
    /// A member is being rebuilt.
    Rebuilding,
    /// More members are missing than the redundancy permits: no request is served any more.
    Lost,
}

impl Condition {
    /// Returns the name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Whole => "whole",
            Condition::Degraded => "degraded",
            Condition::Rebuilding => "rebuilding",
            Condition::Lost => "lost",
        }
    }
}

/// A span of time in which no member failed, was replaced, or was completely rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// State of the array during the phase.
    pub condition: Condition,
    /// Start of the phase.
    pub from: Time,
    /// Counters of the array at the start of the phase.
    pub stats_before: RaidStats,
}

/// The rebuild of a member that replaced a failed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberRebuild {
    /// The member.
    pub member: usize,
    /// Time of the replacement.
    pub from: Time,
    /// Instant at which the last row was restored. `None` while the rebuild is running, or if the member failed
    /// before its rebuild was complete.
    pub until: Option<Time>,
    /// Pages that the rebuild has written to the member so far.
    pub pages_written: u64,
    /// Pages that the member lacked when the rebuild began.
    pub pages: u64,
}

/// Phases and rebuilds of an array.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub phases: Vec<Phase>,
    pub rebuilds: Vec<MemberRebuild>,
}

impl Default for History {
    fn default() -> History {
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
