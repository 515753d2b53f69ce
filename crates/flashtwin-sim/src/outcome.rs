//! The raw result of a run.

use flashtwin::metrics::{FlashReport, Metrics};
use flashtwin::placement::PlacementReport;
use flashtwin::GcInterval;

use crate::faults::FaultsOutcome;
use crate::history::RecordedHistory;
use crate::passes::Passes;
use crate::timeline::Timeline;

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Response times and other metrics of host requests.
    pub metrics: Metrics,
    /// Counters of the flash.
    pub flash: FlashReport,
    /// Requests submitted, warm-up included.
    pub submitted: u64,
    /// Number of requests skipped because their address was beyond the device.
    pub dropped: u64,
    /// Number of requests whose address was taken modulo the exported capacity.
    pub wrapped: u64,
    /// Whether an observer stopped the run before the end of the workload.
    pub interrupted: bool,
    /// Whether the device reached its end of life.
    pub read_only: bool,
    /// Effects of faults.
    pub faults: FaultsOutcome,
    /// Intervals in which members of an array ran garbage collection, since the start of the measurement, in the order
    /// of their ends.
    pub gc_intervals: Vec<GcInterval>,
    /// History of the run, if requested.
    pub history: Option<RecordedHistory>,
    /// Timeline of a window, if requested.
    pub timeline: Option<Timeline>,
    /// End of the warm-up; `None` unless the warm-up was to continue until the run is steady.
    pub steady: Option<Steady>,
    /// Passes of the workload, if it was repeated.
    pub passes: Option<Passes>,
    /// Placement counts at the start of the measurement; `None` if the device does not write by units (blocks that are
    /// erased together).
    pub placement_before: Option<PlacementReport>,
}

/// End of a warm-up that was to continue until the run is steady.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// Requests of the warm-up.
    pub after_requests: u64,
    /// Whether the criterion was met.
    pub is_met: bool,
    /// Name of the measure that was not steady; `None` if the criterion was met.
    pub missed: Option<&'static str>,
}
