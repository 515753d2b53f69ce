//! Validation of the model against the reference simulator: its event logs and its response times.
//!
//! A directory contains validation cases. The files of a case determine its form:
//!
//! - `NAME.json`, `NAME.trace.csv` and `NAME.events.txt`: every flash operation is compared, see [`events`].
//! - `NAME.json` and `NAME.responses.csv`: every response time is compared, see [`replay`].
//!
//! Each file may be compressed as `.zst`. This module only compares results. The behaviour of the reference is
//! implemented in the model.

mod case;
mod events;
mod input;
mod matching;
mod replay;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::SimError;
use input::{CaseFiles, Role};

/// Result of the comparison of one case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseReport {
    /// Name of the case and of its files.
    pub name: String,
    /// `msr` (event log) or `replay` (response times).
    pub kind: &'static str,
    /// Requests replayed.
    pub requests: u64,
    /// Number of operations or values of the reference that were compared.
    pub operations_compared: u64,
    /// Operations that match the model.
    pub matched: u64,
    /// Number of mismatches. For each kind of operation, the larger of two numbers is counted: unmatched operations of
    /// the reference, and unmatched operations of the model.
    pub mismatched: u64,
    /// Results by kind of operation.
    pub parts: Vec<PartReport>,
    /// The earliest mismatch: expected and actual operation.
    pub first_mismatch: Option<String>,
    /// Whether the case passed. An event log must have no mismatches. A replay may have as many as exact ties can
    /// cause.
    pub passed: bool,
}

/// Result of the comparison of one kind of operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartReport {
    /// Kind of operation.
    pub what: &'static str,
    /// Operations of the reference.
    pub compared: u64,
    /// Number of operations that match the model.
    pub matched: u64,
    /// Operations that do not match.
    pub mismatched: u64,
    /// Number of mismatches that are permitted.
    pub allowed: u64,
}

impl CaseReport {
    fn new(
        name: &str,
        kind: &'static str,
        requests: usize,
        parts: Vec<PartReport>,
        first_mismatch: Option<String>,
    ) -> CaseReport {
        CaseReport {
            name: name.to_owned(),
            kind,
            requests: requests as u64,
            operations_compared: parts.iter().map(|p| p.compared).sum(),
            matched: parts.iter().map(|p| p.matched).sum(),
            mismatched: parts.iter().map(|p| p.mismatched).sum(),
            passed: parts.iter().all(|p| p.mismatched <= p.allowed),
            parts,
            first_mismatch,
        }
    }
}

/// Compares the cases of a directory in the order of their names. `progress` receives each report as soon as the case
/// is finished, together with the total number of cases. An error from `progress` ends the validation.
///
/// # Errors
/// Fails if a case cannot be read, if there is no case, or if `progress` fails. A mismatch is no error, but part of the
/// report.
pub fn validate_dir(
    path: &Path,
    progress: &mut dyn FnMut(&CaseReport, usize) -> Result<(), SimError>,
) -> Result<Vec<CaseReport>, SimError> {
    let cases = find_cases(path)?;
    let mut reports = Vec::with_capacity(cases.len());
    for (name, files) in &cases {
        let report = match files.form(path, name)? {
            input::Form::Events {
                json,
                trace,
                events,
            } => events::compare(name, json, trace, events)?,
            input::Form::Replay { json, responses } => replay::compare(name, json, responses)?,
        };
        progress(&report, cases.len())?;
        reports.push(report);
    }
    Ok(reports)
}

/// Returns the files of each case, by the name of the case. Ignores files that belong to no case.
fn find_cases(path: &Path) -> Result<BTreeMap<String, CaseFiles>, SimError> {
    let cannot_read = |e| SimError::io(path, "read this directory", e);
    let mut cases: BTreeMap<String, CaseFiles> = BTreeMap::new();
    for entry in std::fs::read_dir(path).map_err(cannot_read)? {
        let file = entry.map_err(cannot_read)?.path();
        let Some(file_name) = file.file_name().and_then(|n| n.to_str()) else {
            continue;
        };
        if let Some((name, role)) = Role::of(file_name) {
            cases.entry(name.to_owned()).or_default().add(role, &file)?;
        }
    }
    if cases.is_empty() {
        return Err(SimError::case(
            path,
            None,
            "no reference case here; a case is NAME.json with NAME.trace.csv and NAME.events.txt, or \
             NAME.json with NAME.responses.csv, each plain or .zst",
        ));
    }
    Ok(cases)
}
