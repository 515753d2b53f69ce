//! Validates the model against reference cases.

use std::path::PathBuf;

use flashtwin_sim::{validate_dir, CaseReport, SimError};
use pyo3::prelude::*;

use crate::errors::{of_json, of_sim};

/// Compares every validation case of a directory. For each case, calls `each` with the report as JSON and the total
/// number of cases. An exception in `each` ends the validation.
#[pyfunction]
pub fn validate(py: Python<'_>, path: PathBuf, each: Py<PyAny>) -> PyResult<()> {
    let mut raised = None;
    let done = py.detach(|| {
        validate_dir(&path, &mut |report: &CaseReport, cases: usize| {
            Python::attach(|py| {
                let json = serde_json::to_string(report).map_err(of_json)?;
                each.call1(py, (json, cases)).map(drop)
            })
            .map_err(|e: PyErr| {
                let message = e.to_string();
                raised = Some(e);
                SimError::Sink(message)
            })
        })
    });
    match raised {
        Some(e) => Err(e),
        None => done.map(drop).map_err(of_sim),
    }
}
