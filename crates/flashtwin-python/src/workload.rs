//! Traces and generated loads: opening, summarising and converting.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};

use flashtwin_workload::{
    has_times, in_order, open_trace, read_ahead, repeat, Format, LoadSpec, Open, Shift, TraceInfo,
    TraceOptions, PRESETS,
};
use pyo3::prelude::*;

use crate::errors::{of_json, of_workload, FlashtwinError, WorkloadError};

/// A stream of requests. It can be run only once.
#[pyclass(frozen, module = "flashtwin._core")]
pub struct Workload {
    inner: Mutex<Box<dyn flashtwin_workload::Workload>>,
    /// Whether the requests have arrival times.
    #[pyo3(get)]
    timed: bool,
}

#[pymethods]
impl Workload {
    /// Opens a trace file. `options` is a JSON object with the fields of `TraceOptions`.
    #[staticmethod]
    #[pyo3(signature = (path, options, repeated=None))]
    fn trace(
        py: Python<'_>,
        path: PathBuf,
        options: &str,
        repeated: Option<Repeated>,
    ) -> PyResult<Workload> {
        let options = trace_options(options)?;
        let (workload, timed) = py
            .detach(|| {
                let timed = has_times(&path, &options)?;
                let open: Open = Box::new(move || open_trace(&path, &options));
                Ok((opened(open, repeated)?, timed))
            })
            .map_err(of_workload)?;
        Ok(Workload {
            inner: Mutex::new(read_ahead(workload)),
            timed,
        })
    }

    /// Creates a generated load for a device of `range_bytes` bytes. The device is 1/`factor` of that for which the load
    /// is written.
    #[staticmethod]
    #[pyo3(signature = (text, range_bytes, seed, repeated=None, factor=1.0))]
    fn generated(
        text: &str,
        range_bytes: u64,
        seed: u64,
        repeated: Option<Repeated>,
        factor: f64,
    ) -> PyResult<Workload> {
        let spec = LoadSpec::parse(text).and_then(|load| load.smaller(factor));
        let spec = spec.map_err(of_workload)?;
        let timed = spec.is_timed();
        let open: Open = Box::new(move || spec.build(range_bytes, seed));
        let workload = opened(open, repeated).map_err(of_workload)?;
        Ok(Workload {
            inner: Mutex::new(workload),
            timed,
        })
    }

    /// Creates the writes that fill a device of `range_bytes` bytes: those that the load `text` defines, otherwise one
    /// write of every page in order. `factor` is as in `generated`.
    #[staticmethod]
    #[pyo3(signature = (text, range_bytes, page_bytes, seed, factor=1.0))]
    fn fill(
        text: Option<&str>,
        range_bytes: u64,
        page_bytes: u32,
        seed: u64,
        factor: f64,
    ) -> PyResult<Workload> {
        let fill = match text {
            Some(text) => LoadSpec::parse(text)
                .and_then(|load| load.smaller(factor))
                .and_then(|load| load.fill_or_in_order(range_bytes, page_bytes, seed)),
            None => Ok(in_order(range_bytes, page_bytes)),
        };
        Ok(Workload {
            inner: Mutex::new(fill.map_err(of_workload)?),
            timed: false,
        })
    }

    /// Returns a one-line description. For a trace: its detected format and units. For a generated load: the generator
    /// and its parameters.
    fn describe(&self) -> PyResult<String> {
        Ok(self.lock()?.describe())
    }

    /// Returns the warnings so far. Warnings do not stop a run.
    fn warnings(&self) -> PyResult<Vec<String>> {
        Ok(self.lock()?.warnings())
    }

    /// Reads the workload to its end and summarises it, as [`trace_info`] does.
    fn info(&self) -> PyResult<(String, String)> {
        let mut inner = self.lock()?;
        summary(&TraceInfo::measure(inner.as_mut()).map_err(of_workload)?)
    }

    /// Returns the number of requests if it is known in advance.
    #[getter]
    fn requests_total(&self) -> PyResult<Option<u64>> {
        Ok(self.lock()?.requests_total())
    }
}

impl Workload {
    /// Returns the lock, or an error if another thread holds it. A thread that waited for the lock while it held the
    /// GIL would block the run that holds the lock. A lock that is poisoned by a panic can still be used, because no
    /// invariant spans two calls.
    pub fn lock(&self) -> PyResult<MutexGuard<'_, Box<dyn flashtwin_workload::Workload>>> {
        match self.inner.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(e)) => Ok(e.into_inner()),
            Err(TryLockError::WouldBlock) => Err(FlashtwinError::new_err(
                "this workload is being run; open it once more",
            )),
        }
    }
}

/// Repetition of a workload, as three numbers: the number of passes (`None` for no end), the distance in bytes between
/// the addresses of consecutive passes, and the length in bytes of the range to which addresses are confined.
type Repeated = (Option<u64>, u64, u64);

fn opened(
    mut open: Open,
    repeated: Option<Repeated>,
) -> Result<Box<dyn flashtwin_workload::Workload>, flashtwin_workload::WorkloadError> {
    match repeated {
        None => open(),
        Some((passes, bytes, range_bytes)) => {
            let shift = Shift { bytes, range_bytes };
            repeat(open, passes, shift)
        }
    }
}

/// Calls the Python function that converts the table in the file `table` to text in the file `text`.
pub fn read_table(table: &File, text: &File) -> Result<(), String> {
    Python::attach(|py| {
        let (table, text) = (table.as_raw_fd(), text.as_raw_fd());
        py.import("flashtwin._support.columnar")?
            .call_method1("write_text", (table, text))
            .map(drop)
    })
    .map_err(|e| Python::attach(|py| e.value(py).to_string()))
}

fn trace_options(json: &str) -> PyResult<TraceOptions> {
    serde_json::from_str(json).map_err(|e| {
        // The position within the JSON is removed from the message, because the caller may have passed keywords and no
        // JSON.
        let message = e.to_string();
        let what = message.split(" at line ").next().unwrap_or(&message);
        WorkloadError::new_err(format!("trace options: {what}"))
    })
}

/// Returns the presets: named loads of papers. Each has a name, a text form and a description.
#[pyfunction]
pub fn presets() -> Vec<(&'static str, &'static str, &'static str)> {
    PRESETS.to_vec()
}

/// Names of the trace formats.
#[pyfunction]
pub fn trace_formats() -> Vec<&'static str> {
    Format::ALL.iter().map(|f| f.name()).collect()
}

/// Returns the estimated number of lines in a text trace; `None` if the trace is not text.
#[pyfunction]
pub fn estimate_lines(py: Python<'_>, path: PathBuf) -> Option<u64> {
    py.detach(|| flashtwin_workload::estimate_lines(&path))
}

/// Returns the summary of a trace, as JSON and as text.
#[pyfunction]
pub fn trace_info(py: Python<'_>, path: PathBuf, options: &str) -> PyResult<(String, String)> {
    let options = trace_options(options)?;
    let info = py
        .detach(|| flashtwin_workload::trace_info(&path, &options))
        .map_err(of_workload)?;
    summary(&info)
}

fn summary(info: &TraceInfo) -> PyResult<(String, String)> {
    let json = serde_json::to_string(info).map_err(of_json)?;
    Ok((json, info.to_string()))
}

/// Writes a trace in one of flashtwin's own forms. Returns the numbers of requests and of bytes written, a description
/// of the source, and warnings.
#[pyfunction]
pub fn convert(
    py: Python<'_>,
    src: PathBuf,
    dst: PathBuf,
    options: &str,
) -> PyResult<(u64, u64, String, Vec<String>)> {
    let options = trace_options(options)?;
    let done = py
        .detach(|| flashtwin_workload::convert(&src, &dst, &options))
        .map_err(of_workload)?;
    Ok((done.requests, done.bytes, done.source, done.warnings))
}
