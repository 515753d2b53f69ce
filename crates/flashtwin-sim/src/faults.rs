//! Faults of an array during a run: members fail and are replaced. Response times are reported for each phase of the
//! array, such as degraded or rebuilding.

use flashtwin::metrics::OpMetrics;
use flashtwin::{Array, Completion, Device, MemberError, Op, Phase, Time};

use crate::{Drivable, SimError};

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Failure of the member, with the loss of all its data.
    Fail,
    /// Replacement of a failed member by a new, empty one.
    Replace,
}

/// A fault of one member of an array at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Time of the fault, from the start of the measurement.
    pub at: Time,
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Number of the member, from 0.
    pub member: usize,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.kind {
            FaultKind::Fail => "fail",
            FaultKind::Replace => "replace",
        };
        write!(f, "{what} {}@{}s", self.member, self.at.as_s())
    }
}

/// Progress of the rebuild at the end of an interval of the time series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RebuildPoint {
    /// Number of the interval.
    pub interval: u64,
    /// Rows (stripes) rebuilt so far as a fraction of the rows to rebuild, over all members being rebuilt.
    pub share: f64,
}

/// Response times of the requests that completed in one phase of the array.
#[derive(Clone, Debug)]
pub struct PhaseOutcome {
    /// The phase.
    pub phase: Phase,
    /// Reads completed in the phase.
    pub reads: OpMetrics,
    /// Writes completed in the phase.
    pub writes: OpMetrics,
}

/// Effects of faults on a run.
#[derive(Clone, Debug, Default)]
pub struct FaultsOutcome {
    /// The phases of the array, in their order.
    pub phases: Vec<PhaseOutcome>,
    /// Progress of the rebuilds at the end of each interval. Empty if the run records no time series.
    pub progress: Vec<RebuildPoint>,
    /// Faults that could not be carried out, with the reason.
    pub left_out: Vec<(Fault, String)>,
}

/// Rejects a list of faults that cannot happen in the given order. `members` is the number of members of the array, or
/// 0 if the device is no array.
fn check(faults: &[Fault], members: usize) -> Result<(), SimError> {
    let wrong = |fault: &Fault, what: String| Err(SimError::Config(format!("{fault}: {what}")));
    let mut missing = vec![false; members];
    for fault in faults {
        if members == 0 {
            let what = "needs an array; this device is a single SSD".into();
            return wrong(fault, what);
        }
        let Some(missing) = missing.get_mut(fault.member) else {
            let what = format!("the array has members 0 to {}", members - 1);
            return wrong(fault, what);
        };
        match (fault.kind, *missing) {
            (FaultKind::Fail, true) => {
                return wrong(fault, "the member has failed already by then".into())
            }
            (FaultKind::Replace, false) => {
                return wrong(fault, "the member has not failed by then".into())
            }
            (kind, _) => *missing = kind == FaultKind::Fail,
        }
    }
    Ok(())
}

/// Faults of an array, pending and past.
pub(crate) struct Agenda {
    faults: Vec<Fault>,
    at: usize,
    start: Time,
    interval: Option<Time>,
    /// Whether a member was being rebuilt when this was last checked.
    rebuilding: bool,
    /// Number of the interval of the time series at the end of which progress is recorded next.
    point: u64,
    outcome: FaultsOutcome,
}

impl Agenda {
    /// Creates an agenda of faults, sorted by time. Faults at the same instant keep their order in `faults`.
    pub fn new<S: Drivable>(
        device: &Device<S>,
        faults: &[Fault],
        interval: Option<Time>,
    ) -> Result<Agenda, SimError> {
        let mut faults = faults.to_vec();
        faults.sort_by_key(|fault| fault.at);
        let members = S::array(device).map_or(0, |array| array.spec().members.len());
        check(&faults, members)?;
        Ok(Agenda {
            interval: interval.filter(|_| !faults.is_empty()),
            faults,
            at: 0,
            start: Time::NEVER,
            rebuilding: false,
            point: 0,
            outcome: FaultsOutcome::default(),
        })
    }

    /// Records the start of the measurement. Fault times are relative to it.
    pub fn begin(&mut self, now: Time) {
        self.start = now;
    }

    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    fn next_fault(&self) -> Time {
        let fault = self.faults.get(self.at);
        fault.map_or(Time::NEVER, |fault| {
            Time(self.start.0.saturating_add(fault.at.0))
        })
    }

    fn next_point(&self) -> Time {
        match self.interval {
            Some(interval) if self.rebuilding => Time(
                interval
                    .0
                    .saturating_mul(self.point + 1)
                    .saturating_add(self.start.0),
            ),
            _ => Time::NEVER,
        }
    }

    /// Returns the next instant at which [`Agenda::act`] must be called: the time of a fault, or the end of an interval
    /// during a rebuild. Before the measurement, returns [`Time::NEVER`].
    #[inline]
    pub fn next(&self) -> Time {
        if self.faults.is_empty() || self.start == Time::NEVER {
            return Time::NEVER;
        }
        self.next_fault().min(self.next_point())
    }

    /// Carries out the fault that is due now, and records the progress of a rebuild if an interval ends now. The device
    /// must have been advanced to that instant.
    pub fn act<S: Drivable>(&mut self, device: &mut Device<S>) {
        let now = device.now();
        let (point, fault) = (self.next_point(), self.next_fault());
        // An interval without an event of the device gets no point.
        let event = device.next_event().unwrap_or(now);
        let Some(array) = S::array_mut(device) else {
            return;
        };
        if point <= now {
            self.outcome.progress.push(RebuildPoint {
                interval: self.point,
                share: share_rebuilt(array).unwrap_or(1.0),
            });
            self.rebuilding = array.rebuild_progress().is_some();
            self.point = (self.point + 1).max(self.interval_of(event));
        }
        if fault <= now {
            let fault = self.faults[self.at];
            self.at += 1;
            if let Err(e) = happen(array, &fault) {
                self.outcome.left_out.push((fault, e.to_string()));
            }
            if !self.rebuilding && array.rebuild_progress().is_some() {
                self.rebuilding = true;
                self.point = self.interval_of(now);
            }
        }
    }

    fn interval_of(&self, at: Time) -> u64 {
        let since = at.saturating_sub(self.start).0;
        self.interval.map_or(0, |interval| since / interval.0)
    }

    /// Takes completions, in order of completion.
    pub fn record<S: Drivable>(&mut self, device: &Device<S>, completions: &[Completion]) {
        let measured = !self.is_empty() && self.start != Time::NEVER;
        let Some(array) = S::array(device).filter(|_| measured) else {
            return;
        };
        let phases = array.phases();
        for c in completions {
            let at = phases.partition_point(|phase| phase.from <= c.done).max(1) - 1;
            self.know(&phases[..=at]);
            let into = &mut self.outcome.phases[at];
            match c.op {
                Op::Read => into.reads.record(c),
                Op::Write => into.writes.record(c),
                Op::Trim | Op::Flush => {}
            }
        }
    }

    fn know(&mut self, phases: &[Phase]) {
        for phase in &phases[self.outcome.phases.len().min(phases.len())..] {
            self.outcome.phases.push(PhaseOutcome {
                phase: phase.clone(),
                reads: OpMetrics::default(),
                writes: OpMetrics::default(),
            });
        }
    }

    /// Returns the effects of the faults.
    pub fn end<S: Drivable>(mut self, device: &Device<S>) -> FaultsOutcome {
        for &fault in &self.faults[self.at..] {
            let why = "the run was over before".to_string();
            self.outcome.left_out.push((fault, why));
        }
        if let Some(array) = S::array(device).filter(|_| !self.is_empty()) {
            self.know(array.phases());
        }
        self.outcome
    }
}

/// Returns the rows (stripes) rebuilt so far as a fraction of the rows to rebuild, over all members being rebuilt;
/// `None` if no member is being rebuilt.
fn share_rebuilt(array: &Array) -> Option<f64> {
    let (done, rows) = array.rebuild_progress()?;
    Some(done as f64 / rows.max(1) as f64)
}

fn happen(array: &mut Array, fault: &Fault) -> Result<(), MemberError> {
    match fault.kind {
        FaultKind::Fail => array.fail_needed_member(fault.member),
        FaultKind::Replace => array.replace_member(fault.member),
    }
}
