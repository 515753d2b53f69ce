//! Parts of the descriptions of components as dicts.

use flashtwin::component::{Parameter, Source};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Returns a publication as a Python object.
pub fn source<'py>(py: Python<'py>, of: &Source) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("authors", of.authors)?;
    d.set_item("title", of.title)?;
    d.set_item("venue", of.venue)?;
    d.set_item("year", of.year)?;
    Ok(d)
}

/// Returns the parameters of a component, as a list.
pub fn parameters<'py>(py: Python<'py>, all: &[Parameter]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for parameter in all {
        let d = PyDict::new(py);
        d.set_item("key", parameter.key)?;
        d.set_item("takes", parameter.kind.to_string())?;
        d.set_item("default", parameter.default)?;
        d.set_item("description", parameter.doc)?;
        d.set_item("provenance", parameter.provenance)?;
        list.append(d)?;
    }
    Ok(list)
}
