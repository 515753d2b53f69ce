//! The error type of this crate. Each message states the problem, the place of the problem, and a valid value.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use flashtwin::spec::SpecError;
use flashtwin::OutOfRange;
use flashtwin_workload::WorkloadError;

/// Reason for which a run, a snapshot or a validation failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum SimError {
    /// A setting of the run is wrong.
    Config(String),
    /// No request reached the device.
    NoRequests {
        /// Number of requests that were skipped because their address was beyond the device.
        dropped: u64,
    },
    /// A request's address is beyond the device.
    Beyond {
        /// Number of the request in the workload, from 0.
        request: u64,
        /// The range of the request.
        source: OutOfRange,
    },
    /// The workload cannot be read or generated.
    Workload(WorkloadError),
    /// The device is described wrongly.
    Spec(SpecError),
    /// The operating system refused.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Action on the file, as in "write".
        doing: &'static str,
        /// Message of the system.
        source: io::Error,
    },
    /// A snapshot that cannot be used for this device.
    Snapshot {
        /// The file.
        path: PathBuf,
        /// The problem, and a valid value.
        message: String,
    },
    /// A reference case that cannot be read.
    Case {
        /// The file.
        path: PathBuf,
        /// Number of the line with the problem, counted from 1; `None` if the problem is not in one line.
        line: Option<u64>,
        /// The problem, and a valid value.
        message: String,
    },
    /// The model violates one of its conservation laws, so its results would be wrong.
    Law {
        /// Name of the law.
        law: &'static str,
        /// The numbers that contradict the law.
        detail: String,
    },
    /// The virtual time of the run exceeds the range of the model's clock.
    Clock {
        /// Number, from 0, of the first request whose submission time exceeds the range. If no submission time does,
        /// the total number of requests.
        request: u64,
    },
    /// The load is an open loop, its requests arrive faster than the device completes them, and too many are pending.
    Behind(Box<Backlog>),
    /// The consumer of the results returned an error.
    Sink(String),
}

/// An open loop that the device cannot follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backlog {
    /// Requests submitted so far.
    pub submitted: u64,
    /// Requests in the device.
    pub waiting: u64,
    /// Rate at which the device has completed requests so far, per second.
    pub completed_per_s: f64,
    /// Rate at which the load has submitted requests so far, per second; infinite if all arrived at one instant.
    pub submitted_per_s: f64,
    /// Value of the option `speed` at which the load would submit requests exactly as fast as the device completes
    /// them; 0 if no such value exists.
    pub speed: f64,
}

impl Backlog {
    /// Formats [`Backlog::speed`] with two significant digits; `None` if it is 0.
    fn speed_text(&self) -> Option<String> {
        let decimals = (1.0 - self.speed.log10().floor()).max(0.0) as usize;
        (self.speed > 0.0).then(|| format!("{:.decimals$}", self.speed))
    }
}

impl fmt::Display for Backlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "request {}: the device cannot follow this open loop: {} requests wait in it; it completed {:.0} \
             requests per second, and the load brought ",
            self.submitted, self.waiting, self.completed_per_s
        )?;
        match self.submitted_per_s.is_finite() {
            true => write!(f, "{:.0}", self.submitted_per_s)?,
            false => f.write_str("all of them at one instant")?,
        }
        match self.speed_text() {
            Some(speed) => write!(
                f,
                "; give --speed {speed} or lower, or --queue-depth 32 for a closed loop"
            ),
            None => f.write_str(
                "; give --queue-depth 32 for a closed loop, since no --speed spreads one instant over time",
            ),
        }
    }
}

impl SimError {
    pub(crate) fn io(path: &Path, doing: &'static str, source: io::Error) -> SimError {
        SimError::Io {
            path: path.to_owned(),
            doing,
            source,
        }
    }

    pub(crate) fn snapshot(path: &Path, message: impl Into<String>) -> SimError {
        SimError::Snapshot {
            path: path.to_owned(),
            message: message.into(),
        }
    }

    pub(crate) fn case(path: &Path, line: Option<u64>, message: impl Into<String>) -> SimError {
        SimError::Case {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Config(message) | SimError::Sink(message) => f.write_str(message),
            SimError::NoRequests { dropped: 0 } => {
                f.write_str("the workload holds no request; nothing was run")
            }
            SimError::NoRequests { dropped } => write!(
                f,
                "all {dropped} requests lie beyond the device and were dropped; give --beyond wrap, \
                 or a larger device"
            ),
            SimError::Beyond { request, source } => write!(
                f,
                "request {request}: {source}; give --beyond wrap or --beyond drop, or a larger device"
            ),
            SimError::Behind(backlog) => backlog.fmt(f),
            SimError::Workload(e) => e.fmt(f),
            SimError::Spec(e) => e.fmt(f),
            SimError::Io { path, doing, source } => {
                write!(f, "{}: cannot {doing}: {source}", path.display())?;
                match source.kind() {
                    io::ErrorKind::StorageFull => f.write_str("; free some space or write elsewhere"),
                    _ => Ok(()),
                }
            }
            SimError::Snapshot { path, message } => write!(f, "{}: {message}", path.display()),
            SimError::Law { law, detail } => write!(
                f,
                "the run broke the law \"{law}\", so it has no results: {detail}; this is a bug of flashtwin: \
                 please report it with the device and the workload"
            ),
            SimError::Clock { request } => write!(
                f,
                "request {request}: the run has reached 213 days of virtual time, where the clock ends; give a \
                 higher --speed or rate, or a lower --requests-max"
            ),
            SimError::Case { path, line: Some(line), message } => {
                write!(f, "{}:{line}: {message}", path.display())
            }
            SimError::Case { path, line: None, message } => {
                write!(f, "{}: {message}", path.display())
            }
        }
    }
}

impl std::error::Error for SimError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SimError::Beyond { source, .. } => Some(source),
            SimError::Workload(e) => Some(e),
            SimError::Spec(e) => Some(e),
            SimError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<WorkloadError> for SimError {
    fn from(e: WorkloadError) -> Self {
        SimError::Workload(e)
    }
}

impl From<SpecError> for SimError {
    fn from(e: SpecError) -> Self {
        SimError::Spec(e)
    }
}
