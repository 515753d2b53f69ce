//! Closed forms of write amplification, hit ratios and response times. Also returns the properties of devices and loads
//! to which closed forms are applied.

use flashtwin::placement::theory as collection;
use flashtwin::theory::{fifo_hits, lru_hits, mean_response, PageClass, Pool};
use flashtwin_workload::LoadSpec;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::device::Spec;
use crate::errors::of_workload;

/// Returns the properties of a device that closed forms need, as a dict. For an array, the dict has only the page size.
#[pyfunction]
pub fn theory_device<'py>(py: Python<'py>, spec: &Spec) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("page_bytes", spec.page_bytes())?;
    d.set_item("is_array", spec.ssd("theory").is_err())?;
    let Ok(spec) = spec.ssd("theory") else {
        return Ok(d);
    };
    let pool = Pool::of(spec);
    d.set_item("pools", pool.pools)?;
    d.set_item("units", pool.units)?;
    d.set_item("unit_pages", pool.unit_pages)?;
    d.set_item("low", pool.low)?;
    d.set_item("live_pages", pool.live_pages)?;
    d.set_item("units_in_use", pool.units_in_use())?;
    d.set_item("load", pool.load())?;
    d.set_item("write_streams", spec.write_streams())?;
    d.set_item("program_pages", spec.pages_per_program())?;
    d.set_item("chips", spec.geometry.chips)?;
    Ok(d)
}

/// Returns the popularity of the pages of a generated load, as a dict. If the accesses are not independent or are too
/// complex for closed forms, returns the reason instead.
#[pyfunction]
pub fn theory_popularity<'py>(
    py: Python<'py>,
    text: &str,
    range_bytes: u64,
    page_bytes: u32,
) -> PyResult<(Option<Bound<'py, PyDict>>, Option<String>)> {
    let load = LoadSpec::parse(text).map_err(of_workload)?;
    let popularity = match load
        .popularity(range_bytes, page_bytes)
        .map_err(of_workload)?
    {
        Ok(popularity) => popularity,
        Err(reason) => return Ok((None, Some(reason))),
    };
    let d = PyDict::new(py);
    let classes = popularity.classes.iter();
    let classes: Vec<(f64, f64)> = classes.map(|class| (class.pages, class.accesses)).collect();
    d.set_item("classes", classes)?;
    d.set_item("permuted", popularity.permuted)?;
    d.set_item("reads", popularity.reads)?;
    d.set_item("writes", popularity.writes)?;
    d.set_item("request_bytes", popularity.request_bytes)?;
    d.set_item("poisson_rate", popularity.poisson_rate)?;
    Ok((Some(d), None))
}

/// Returns five values of write amplification. The first four are for uniform writes and the victim rules greedy, first
/// in first out, random, and emptiest of `choices` random units. The fifth is for permuted writes and first in first
/// out.
#[pyfunction]
pub fn theory_uniform(load: f64, unit_pages: u32, choices: u32) -> (f64, f64, f64, f64, f64) {
    (
        collection::uniform_greedy(load, unit_pages),
        collection::uniform_fifo(load),
        collection::uniform_random(load),
        collection::uniform_d_choices(load, unit_pages, choices),
        collection::permuted_fifo(load),
    )
}

/// Returns the write amplification of first-in-first-out collection if several classes of pages share the units.
/// Returns `None` if the live pages do not fit.
#[pyfunction]
pub fn theory_mixed(live: Vec<f64>, writes: Vec<f64>, units: f64) -> Option<f64> {
    collection::mixed_fifo(&live, &writes, units)
}

/// Returns the hit ratio of LRU, and that of FIFO and RANDOM, which have the same one. Each class of pages is a pair:
/// the number of pages and their share of the accesses.
#[pyfunction]
pub fn theory_hits(classes: Vec<(f64, f64)>, capacity: f64) -> (f64, f64) {
    let classes = classes.into_iter();
    let classes: Vec<PageClass> = classes
        .map(|(pages, accesses)| PageClass { pages, accesses })
        .collect();
    (lru_hits(&classes, capacity), fifo_hits(&classes, capacity))
}

/// Returns the mean response time for Poisson arrivals at `rate`, in the unit of the service times. Returns `None` if
/// the rate exceeds saturation. `service` has pairs of a service time and its probability.
#[pyfunction]
pub fn theory_response(rate: f64, service: Vec<(f64, f64)>) -> Option<f64> {
    mean_response(rate, &service)
}
