//! Placement of data in units (blocks that are erased together): descriptions of the components, traces of the steps of
//! a script, and runs in which time is not simulated.

use std::collections::BTreeMap;
use std::sync::Arc;

use flashtwin::component::Component;
use flashtwin::placement::{
    components, script, theory, Choice, OwnerReport, Placed, PlacementReport, Setup, SCHEMES,
};
use flashtwin::spec::PLACEMENT_WORDS;
use flashtwin::DeviceSpec;
use flashtwin_sim::{placement_logs, run_untimed, Untimed, UntimedPlan, Warm};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::control::Control;
use crate::describe;
use crate::device::Spec;
use crate::errors::error;
use crate::user::Failure;
use crate::user_placement::rules;
use crate::workload::Workload;

/// Returns the words (settings) of which the text of a placement setup consists. Each has a name, a default and a
/// meaning.
#[pyfunction]
pub fn placement_words() -> Vec<(&'static str, &'static str, &'static str)> {
    PLACEMENT_WORDS.to_vec()
}

/// Returns the descriptions of all components of one kind (`scheme`, `victim` or `scope`), as a list of dicts.
#[pyfunction]
pub fn placement_components<'py>(py: Python<'py>, kind: &str) -> PyResult<Bound<'py, PyList>> {
    let choice = match kind {
        "scheme" => Choice::Scheme,
        "victim" => Choice::Victim,
        "scope" => Choice::Scope,
        _ => return Err(error(format!("kind: found {kind:?}"))),
    };
    let list = PyList::empty(py);
    for component in components(choice) {
        let info = component_info(py, &component)?;
        if choice == Choice::Scheme {
            add_scheme(py, &info, &component)?;
        }
        list.append(info)?;
    }
    Ok(list)
}

fn component_info<'py>(py: Python<'py>, component: &Component) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("name", component.name)?;
    d.set_item("line", component.line)?;
    d.set_item(
        "parameters",
        describe::parameters(py, component.parameters)?,
    )?;
    Ok(d)
}

/// Adds provenance, rule and source of a scheme to its description.
fn add_scheme(py: Python<'_>, info: &Bound<'_, PyDict>, scheme: &Component) -> PyResult<()> {
    if let Some(entry) = SCHEMES.iter().find(|e| e.component.name == scheme.name) {
        info.set_item("provenance", entry.provenance.word())?;
        info.set_item("rule", entry.rule.to_vec())?;
        if let Some(of) = &entry.source {
            info.set_item("source", describe::source(py, of)?)?;
        }
    }
    Ok(())
}

/// Returns the sizes of a device as words (settings) of a placement setup, and the page size of the device in bytes.
#[pyfunction]
pub fn placement_words_of(spec: &Spec) -> PyResult<(Vec<(String, String)>, u32)> {
    let spec: &DeviceSpec = spec.ssd("placement")?;
    Ok((Setup::device_words(spec), spec.geometry.page_bytes))
}

/// Largest number of pages of a device whose steps can be traced. Each step prints all units.
const TRACE_PAGES_MAX: u64 = 1 << 16;

/// Applies a script to a device. Returns the effects of the steps, as a list of dicts.
#[pyfunction]
pub fn trace_placement<'py>(
    py: Python<'py>,
    words: Vec<(String, String)>,
    ops: &str,
) -> PyResult<Bound<'py, PyList>> {
    let setup = Setup::of_words(&words).map_err(error)?;
    let pages = u64::from(setup.groups) * u64::from(setup.units) * u64::from(setup.unit_pages);
    if pages > TRACE_PAGES_MAX {
        return Err(error(format!(
            "units: found {pages} pages; a trace has room for {TRACE_PAGES_MAX}"
        )));
    }
    let mut device = Placed::new(&setup).map_err(error)?;
    let steps = script::run(&mut device, ops).map_err(error)?;
    let list = PyList::empty(py);
    for step in &steps {
        let d = PyDict::new(py);
        d.set_item("op", &step.op)?;
        d.set_item("status", &step.status)?;
        d.set_item("did", &step.did)?;
        d.set_item("output", &step.output)?;
        d.set_item("state", &step.state)?;
        list.append(d)?;
    }
    Ok(list)
}

/// Runs a load without simulating time. Returns a dict that contains the reports at the end of the fill and after each
/// part of the run.
#[pyfunction]
#[pyo3(signature = (words, load, fill, *, page_bytes, warm, capacities, points, control, scheme=None, victim=None))]
#[allow(clippy::too_many_arguments)] // Keywords of one call from Python.
pub fn run_placement<'py>(
    py: Python<'py>,
    words: Vec<(String, String)>,
    load: &Workload,
    fill: &Workload,
    page_bytes: u32,
    warm: Option<f64>,
    capacities: f64,
    points: u32,
    control: &Control,
    scheme: Option<Bound<'py, PyAny>>,
    victim: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let setup = Setup::of_words(&words).map_err(error)?;
    let failure = Arc::new(Failure::default());
    failure.stops(&control.0);
    let rules = rules(py, scheme, victim, &failure)?;
    let mut device = Placed::with_rules(&setup, &rules).map_err(error)?;
    let plan = UntimedPlan {
        page_bytes,
        warm: warm.map_or(Warm::UntilLevel, Warm::Capacities),
        capacities,
        points,
    };
    let mut load = load.lock()?;
    let mut fill = fill.lock()?;
    let result = {
        let (load, fill, device) = (load.as_mut(), fill.as_mut(), &mut device);
        py.detach(|| run_untimed(device, fill, load, &plan, &control.0))
    };
    if let Some(e) = failure.take() {
        return Err(e);
    }
    let run = result.map_err(error)?;
    let logs = placement_logs(&device, page_bytes).into();
    result_dict(py, &device, &run, &logs)
}

fn result_dict<'py>(
    py: Python<'py>,
    device: &Placed,
    run: &Untimed,
    logs: &serde_json::Value,
) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("warm_capacities", run.warm)?;
    d.set_item("level", run.level)?;
    d.set_item("capacities", run.capacities)?;
    d.set_item("before", report(py, &run.before)?)?;
    d.set_item("after", report(py, &run.after)?)?;
    let series: PyResult<Vec<_>> = run.series.iter().map(|at| report(py, at)).collect();
    d.set_item("series", series?)?;
    d.set_item("state", device.scheme_state())?;
    let setup = device.setup();
    d.set_item("logs", logs.to_string())?;
    d.set_item("units", setup.units * setup.groups)?;
    d.set_item("unit_pages", setup.unit_pages)?;
    d.set_item("logical_pages", setup.logical_pages)?;
    d.set_item("low", setup.low)?;
    d.set_item("classes", device.needs().classes)?;
    Ok(d)
}

fn report<'py>(py: Python<'py>, of: &PlacementReport) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("host_pages", of.host_pages)?;
    d.set_item("moves", of.moves)?;
    d.set_item("erases", of.erases)?;
    d.set_item("accepted", &of.accepted)?;
    d.set_item("crossed", of.crossed)?;
    d.set_item("redirected", of.redirected)?;
    d.set_item("scope_fallbacks", of.scope_fallbacks)?;
    d.set_item("caused", &of.caused)?;
    let owners = PyList::empty(py);
    for owner in &of.owners {
        owners.append(owner_dict(py, owner)?)?;
    }
    d.set_item("owners", owners)?;
    Ok(d)
}

fn owner_dict<'py>(py: Python<'py>, owner: &OwnerReport) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    let counts = &owner.counts;
    d.set_item("name", &owner.name)?;
    d.set_item("class", owner.class)?;
    d.set_item("of_host", owner.of_host)?;
    d.set_item("host_pages", counts.host_pages)?;
    d.set_item("moved_in", counts.moved_in)?;
    d.set_item("moved_out", counts.moved_out)?;
    d.set_item("erases", counts.erases)?;
    d.set_item("live_at_collection", counts.live_at_collection.to_vec())?;
    d.set_item("lifespans", counts.lifespans.to_vec())?;
    d.set_item("live", owner.live)?;
    d.set_item("units", owner.units)?;
    Ok(d)
}

/// Returns the write amplification that each closed form gives, by the form's name. `load` is the fraction of pages
/// that are live.
#[pyfunction]
pub fn placement_theory(load: f64, unit_pages: u32) -> BTreeMap<&'static str, f64> {
    BTreeMap::from([
        ("uniform_fifo", theory::uniform_fifo(load)),
        ("uniform_greedy", theory::uniform_greedy(load, unit_pages)),
        ("permuted_fifo", theory::permuted_fifo(load)),
    ])
}

/// Returns the division of `units` units among streams for which GC moves the fewest pages, and the resulting write
/// amplification. Returns `None` if the live pages do not fit.
#[pyfunction]
pub fn placement_split(live: Vec<f64>, writes: Vec<f64>, units: f64) -> Option<(Vec<f64>, f64)> {
    let split = theory::optimal_split(&live, &writes, units)?;
    let streams = live.iter().zip(&writes).zip(&split);
    let streams: Vec<theory::StreamShare> = streams
        .map(|((&live, &writes), &units)| theory::StreamShare {
            live,
            writes,
            units,
        })
        .collect();
    let amplification = theory::separate(&streams);
    Some((split, amplification))
}
