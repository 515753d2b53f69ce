//! How to run a workload: pacing, limits, and what to record.

use flashtwin::Time;

use crate::faults::Fault;
use crate::timeline::Window;

/// When requests reach the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Open loop: at the workload's own times, divided by `speed` (1: as recorded).
    Open {
        /// How much faster than recorded.
        speed: f64,
    },
    /// Closed loop: always this many requests in the device.
    Closed {
        /// Queue depth.
        depth: u32,
    },
}

/// What happens to a request whose address is beyond the device (D-34).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// The run stops with an error.
    Error,
    /// Its start is taken modulo the exported size, its end is cut.
    Wrap,
    /// It is left out.
    Drop,
}

/// How to run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// When requests reach the device.
    pub pacing: Pacing,
    /// What happens to addresses beyond the device.
    pub beyond: Beyond,
    /// Requests before the measurement begins.
    pub warmup_requests: u64,
    /// Requests at most, warm-up included.
    pub requests_max: Option<u64>,
    /// Requests are submitted for so much virtual time from the start of the measurement, at most; those in
    /// the device by then finish.
    pub span_max: Option<Time>,
    /// One point of the time series every so much virtual time.
    pub series_interval: Option<Time>,
    /// What happens to members of an array meanwhile; after the last request only while the array has
    /// something to do.
    pub faults: Vec<Fault>,
    /// Keep when members of an array collect.
    pub gc_timeline: bool,
    /// Threads on which members of an array are simulated, where nothing that one does decides what
    /// another is asked; results are the same.
    pub threads: u32,
    /// Keep what happened when, in windows ([`crate::History`]).
    pub history: bool,
    /// Record what every part of the device does in this window.
    pub timeline: Option<Window>,
}

impl Default for RunConfig {
    fn default() -> Self {
        RunConfig {
            pacing: Pacing::Open { speed: 1.0 },
            beyond: Beyond::Error,
            warmup_requests: 0,
            requests_max: None,
            span_max: None,
            series_interval: None,
            faults: Vec::new(),
            gc_timeline: false,
            threads: 1,
            history: false,
            timeline: None,
        }
    }
}
