//! Observing and stopping a run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Shared with the observers of a run, which may stop it and see its progress.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to stop the run early; it then reports its results so far.
    pub stop: AtomicBool,
    /// Requests submitted so far; in preconditioning, pages written.
    pub done: AtomicU64,
    /// Total number, 0 if unknown.
    pub total: AtomicU64,
    /// Rows restored so far on members being rebuilt.
    pub rows_rebuilt: AtomicU64,
    /// Number of all rows; 0 if no member is being rebuilt.
    pub rows_to_rebuild: AtomicU64,
    /// Wall-clock time at which the measurement of the last run began.
    began: Mutex<Option<Instant>>,
    /// Names of the copies of the code in use at the end of the last run.
    path: Mutex<String>,
}

impl Control {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the wall-clock time at which the measurement of the last run began; `None` before the first run.
    pub fn began(&self) -> Option<Instant> {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names of the code paths in use at the end of the last run
    /// ([`Device::path`](flashtwin::Device::path)); empty before the first run.
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
