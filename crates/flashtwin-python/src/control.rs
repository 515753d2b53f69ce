//! State shared by a run and the thread that observes the run: its progress, and a flag that stops it.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use pyo3::prelude::*;

/// A control object. Only one run at a time uses it.
#[pyclass(frozen, module = "flashtwin._core")]
#[derive(Default)]
pub struct Control(pub Arc<flashtwin_sim::Control>);

#[pymethods]
impl Control {
    #[new]
    fn new() -> Self {
        Control::default()
    }

    /// Stops the run before its end. The run then reports the results so far.
    fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the run was requested to stop early.
    #[getter]
    fn stopped(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// Returns the name of the current phase. Empty while requests are measured, and for work without phases.
    #[getter]
    fn phase(&self) -> &'static str {
        self.0.phase().name()
    }

    /// Returns the number of requests submitted so far. During preconditioning, the number of pages written or mapped
    /// so far.
    #[getter]
    fn done(&self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }

    /// Returns the total number of requests or pages of the current phase; 0 if it is unknown.
    #[getter]
    fn total(&self) -> u64 {
        self.0.total.load(Ordering::Relaxed)
    }

    /// Returns the progress of rebuilding members of an array: the number of rows (stripes) restored so far, and the
    /// total number of rows to restore. Both are 0 if no member is being rebuilt.
    #[getter]
    fn rebuild(&self) -> (u64, u64) {
        let rows = [&self.0.rows_rebuilt, &self.0.rows_to_rebuild];
        let [done, of] = rows.map(|rows| rows.load(Ordering::Relaxed));
        (done, of)
    }
}
