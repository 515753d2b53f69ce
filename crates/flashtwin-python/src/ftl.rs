//! Translation layers: their descriptions, and tracing their steps over a string of accesses.

use flashtwin::ftl::chip::catalog::find;
use flashtwin::ftl::chip::trace::{steps_text, total, trace_ftl as trace, Cost, TraceError};
use flashtwin::ftl::chip::{Setup, SetupError, ENTRIES};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::describe;
use crate::errors::FlashtwinError;

/// Returns the names of the translation layers whose steps can be traced.
#[pyfunction]
pub fn ftl_names() -> Vec<&'static str> {
    ENTRIES.iter().map(|entry| entry.name).collect()
}

/// Returns the description of a translation layer, as a dict.
#[pyfunction]
pub fn ftl_info<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    // For an unknown name, creating a setup fails with the right error message.
    Setup::new(name, 1, 1, 2).map_err(of_setup)?;
    let Some(entry) = find(name) else {
        return Err(FlashtwinError::new_err(format!(
            "ftl {name} is not described"
        )));
    };
    let d = PyDict::new(py);
    d.set_item("name", entry.name)?;
    d.set_item("title", entry.title)?;
    d.set_item("description", entry.line)?;
    d.set_item("source", describe::source(py, &entry.source)?)?;
    d.set_item("provenance", entry.provenance.word())?;
    d.set_item("rule", entry.rule.to_vec())?;
    d.set_item("state", entry.state)?;
    d.set_item("parameters", describe::parameters(py, entry.parameters)?)?;
    let example = PyDict::new(py);
    example.set_item("accesses", entry.example.accesses)?;
    let set = PyDict::new(py);
    for (key, value) in entry.example.set {
        set.set_item(key, value)?;
    }
    example.set_item("set", set)?;
    d.set_item("example", example)?;
    Ok(d)
}

/// Largest number of pages of a traced device. Each step prints the logs or the cache, so a trace of a larger device
/// would be unreadable.
const PAGES_MAX: u64 = 1 << 20;

/// Applies a string of accesses to a translation layer. Returns the effects of the steps as a list of dicts, the total
/// as a dict, and both as a table for people to read.
#[pyfunction]
#[pyo3(signature = (name, accesses, *, set, blocks, pages_per_block, logical_pages, empty))]
#[allow(clippy::too_many_arguments)] // Keywords of one call from Python.
pub fn trace_ftl<'py>(
    py: Python<'py>,
    name: &str,
    accesses: &str,
    set: Vec<(String, String)>,
    blocks: u32,
    pages_per_block: u32,
    logical_pages: Option<u32>,
    empty: bool,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>, String)> {
    let pages = u64::from(blocks) * u64::from(pages_per_block);
    if pages > PAGES_MAX {
        return Err(FlashtwinError::new_err(format!(
            "blocks: found {blocks} of {pages_per_block} pages; a trace has room for {PAGES_MAX} pages"
        )));
    }
    let logical_pages = logical_pages.unwrap_or(pages as u32 / 2);
    let set: Vec<(&str, &str)> = set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let mut setup = Setup::new(name, logical_pages, blocks, pages_per_block).map_err(of_setup)?;
    setup.set_all(&set).map_err(of_setup)?;
    let steps = py
        .detach(|| trace(&setup, empty, accesses))
        .map_err(|e| match e {
            TraceError::Setup(e) => of_setup(e),
            e => FlashtwinError::new_err(format!("accesses: {e}")),
        })?;
    let list = PyList::empty(py);
    for step in &steps {
        let d = PyDict::new(py);
        d.set_item("op", &step.op)?;
        put_cost(&d, &step.cost)?;
        d.set_item("state", &step.state)?;
        list.append(d)?;
    }
    let sum = PyDict::new(py);
    put_cost(&sum, &total(&steps))?;
    Ok((list, sum, steps_text(&steps)))
}

fn put_cost(d: &Bound<'_, PyDict>, cost: &Cost) -> PyResult<()> {
    for (name, number) in Cost::NAMES.iter().zip(cost.numbers()) {
        d.set_item(name, number)?;
    }
    Ok(())
}

fn of_setup(e: SetupError) -> PyErr {
    FlashtwinError::new_err(e.to_string())
}
