//! Observing and stopping a run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use flashtwin::Watch;

/// Part of the work that a [`Control`] observes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkPhase {
    /// Measured requests, or work without phases.
    #[default]
    Main,
    /// Preconditioning writes every page in order.
    Sequential,
    /// Preconditioning writes random pages.
    Random,
    /// Preconditioning places the steady state.
    Steady,
    /// Preconditioning writes the load of the run.
    Load,
    /// The buffer is filled.
    Buffer,
    /// Requests before the measurement.
    Warmup,
}

impl WorkPhase {
    /// Returns the name of the phase. The name of the main phase is empty.
    pub fn name(self) -> &'static str {
        match self {
            WorkPhase::Main => "",
            WorkPhase::Sequential => "sequential writes",
            WorkPhase::Random => "random writes",
            WorkPhase::Steady => "steady state",
            WorkPhase::Load => "writes of the load",
            WorkPhase::Buffer => "filling the buffer",
            WorkPhase::Warmup => "warm-up",
        }
    }
}

/// State that a run shares with its observers. Observers read the progress of the run and may stop it.
#[derive(Debug, Default)]
pub struct Control {
    /// Set by an observer to end the run early. The run then reports the results so far.
    pub stop: AtomicBool,
    /// Number of requests submitted so far. During preconditioning, the number of pages written or mapped so far.
    pub done: AtomicU64,
    /// Total number of requests or pages of the phase; 0 if unknown.
    pub total: AtomicU64,
    phase: Mutex<WorkPhase>,
    /// Rows restored so far on members being rebuilt.
    pub rows_rebuilt: AtomicU64,
    /// Total number of rows (stripes) of the array to restore; 0 if no member is being rebuilt.
    pub rows_to_rebuild: AtomicU64,
    /// Wall-clock time at which the measurement of the last run began.
    began: Mutex<Option<Instant>>,
    /// Names of the code paths, such as the fast path, in use at the end of the last run
    /// ([`Device::path`](flashtwin::Device::path)).
    path: Mutex<String>,
}

impl Control {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the current phase of the work.
    pub fn phase(&self) -> WorkPhase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a phase with `total` requests or pages, and counts from 0. `total` is 0 if the number is unknown.
    pub(crate) fn begin(&self, phase: WorkPhase, total: u64) {
        self.enter(phase);
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Begins a phase without resetting the counts, which continue those of the previous phase.
    pub(crate) fn enter(&self, phase: WorkPhase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    /// Returns the wall-clock time at which the measurement of the last run began; `None` before the first measurement.
    pub fn began(&self) -> Option<Instant> {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names of the code paths, such as the fast path, in use at the end of the last run
    /// ([`Device::path`](flashtwin::Device::path)). Empty before the first run.
    pub fn path(&self) -> String {
        self.path
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn note_path(&self, path: String) {
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }

    pub(crate) fn note_start(&self) {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Watch for Control {
    fn expect(&self, pages: u64) {
        self.total.fetch_add(pages, Ordering::Relaxed);
    }

    fn done(&self, pages: u64) -> bool {
        self.done.fetch_add(pages, Ordering::Relaxed);
        !self.stopped()
    }
}
