//! The exceptions of the Python package. Each has the message of the crate in which the error occurred.

use flashtwin::spec::SpecError;
use flashtwin_sim::SimError;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(
    flashtwin,
    FlashtwinError,
    PyValueError,
    "What was wrong, where, and what would be right."
);
create_exception!(
    flashtwin,
    DeviceError,
    FlashtwinError,
    "A device file, or an override of one of its keys, is wrong."
);
create_exception!(
    flashtwin,
    WorkloadError,
    FlashtwinError,
    "A trace cannot be read or written, or a generated load is described wrongly."
);
create_exception!(
    flashtwin,
    SnapshotError,
    FlashtwinError,
    "A snapshot cannot be read or written, or belongs to another device."
);

/// Returns an exception with the message of `e`.
pub fn error(e: impl ToString) -> PyErr {
    FlashtwinError::new_err(e.to_string())
}

pub fn of_spec(e: SpecError) -> PyErr {
    DeviceError::new_err(e.to_string())
}

pub fn of_workload(e: flashtwin_workload::WorkloadError) -> PyErr {
    WorkloadError::new_err(e.to_string())
}

pub fn of_sim(e: SimError) -> PyErr {
    let message = e.to_string();
    match e {
        SimError::Spec(_) => DeviceError::new_err(message),
        SimError::Workload(_) => WorkloadError::new_err(message),
        SimError::Snapshot { .. } => SnapshotError::new_err(message),
        _ => FlashtwinError::new_err(message),
    }
}

/// Returns the exception for a value that cannot be serialised. It indicates a bug, because all types of results can be
/// serialised.
pub fn of_json(e: serde_json::Error) -> PyErr {
    FlashtwinError::new_err(format!("a result cannot be written as JSON: {e}"))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add("FlashtwinError", py.get_type::<FlashtwinError>())?;
    m.add("DeviceError", py.get_type::<DeviceError>())?;
    m.add("WorkloadError", py.get_type::<WorkloadError>())?;
    m.add("SnapshotError", py.get_type::<SnapshotError>())
}
