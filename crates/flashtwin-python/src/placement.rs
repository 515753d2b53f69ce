//! Placement in words, stepped through a script, and runs without time; schemes and victim rules written in Python.

use std::collections::BTreeMap;
use std::sync::Arc;

use flashtwin::component::{Component, Parameter};
use flashtwin::placement::{
    script, script::Choice, theory, Class, Destination, EventType, HostPage, MovedPage, Needs,
    OwnerReport, Placed, PlacementReport, Scheme, Setup, Survivors, UnitView, UserScheme,
    UserVictim, VictimPool, SCHEMES, WORDS,
};
use flashtwin::{DeviceSpec, Lpn};
use flashtwin_sim::{run_untimed, Untimed, UntimedPlan, Warm};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3::IntoPyObjectExt;

use crate::control::Control;
use crate::device::Spec;
use crate::errors::FlashtwinError;
use crate::user::Failure;
use crate::workload::Workload;

fn error(e: impl ToString) -> PyErr {
    FlashtwinError::new_err(e.to_string())
}

/// The words of a setup: for each its name, default and meaning.
#[pyfunction]
pub fn placement_words() -> Vec<(&'static str, &'static str, &'static str)> {
    WORDS.to_vec()
}

/// The components of one kind (`scheme`, `victim`, `scope`), as a list of dicts.
#[pyfunction]
pub fn placement_components<'py>(py: Python<'py>, kind: &str) -> PyResult<Bound<'py, PyList>> {
    let choice = match kind {
        "scheme" => Choice::Scheme,
        "victim" => Choice::Victim,
        "scope" => Choice::Scope,
        _ => return Err(error(format!("kind: found {kind:?}"))),
    };
    let list = PyList::empty(py);
    for component in script::components(choice) {
        list.append(component_info(py, &component)?)?;
    }
    Ok(list)
}

fn component_info<'py>(py: Python<'py>, component: &Component) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("name", component.name)?;
    d.set_item("line", component.line)?;
    d.set_item("parameters", parameters(py, component.parameters)?)?;
    if let Some(entry) = SCHEMES.iter().find(|e| e.component.name == component.name) {
        d.set_item("provenance", entry.provenance.word())?;
        d.set_item("rule", entry.rule.to_vec())?;
        if let Some(of) = &entry.source {
            let source = PyDict::new(py);
            source.set_item("authors", of.authors)?;
            source.set_item("title", of.title)?;
            source.set_item("venue", of.venue)?;
            source.set_item("year", of.year)?;
            d.set_item("source", source)?;
        }
    }
    Ok(d)
}

fn parameters<'py>(py: Python<'py>, all: &[Parameter]) -> PyResult<Bound<'py, PyList>> {
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

/// The sizes of a device as words of a setup, and the bytes of a page.
#[pyfunction]
pub fn placement_words_of(spec: &Spec) -> PyResult<(Vec<(String, String)>, u32)> {
    let spec: &DeviceSpec = spec.ssd("placement")?;
    Ok((Setup::device_words(spec), spec.geometry.page_bytes))
}

/// Limit of a trace: each step prints all units.
const TRACE_PAGES_MAX: u64 = 1 << 16;

/// Steps a device through a script: what each step did, as a list of dicts.
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

/// Runs a load without time: the reports at the end of the fill, and after each part of the run, as a dict.
#[pyfunction]
#[pyo3(signature = (words, load, fill, *, page_bytes, warm, capacities, points, control, scheme=None, victim=None))]
#[allow(clippy::too_many_arguments)] // Keywords of one call from Python.
pub fn run_placement<'py>(
    py: Python<'py>,
    words: Vec<(String, String)>,
    load: &Workload,
    fill: Option<&Workload>,
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
    let mut device = match scheme {
        None => Placed::new(&setup),
        Some(object) => {
            let scheme = PyScheme::new(object.unbind(), py, failure.clone())?;
            Placed::with_scheme(&setup, Box::new(scheme))
        }
    }
    .map_err(error)?;
    if let Some(object) = victim {
        device.set_victim(Box::new(PyVictim {
            object: Arc::new(object.unbind()),
            failure: failure.clone(),
        }));
    }
    let plan = UntimedPlan {
        page_bytes,
        warm: warm.map_or(Warm::UntilLevel, Warm::Capacities),
        capacities,
        points,
    };
    let mut load = load.lock()?;
    let mut fill = fill.map(Workload::lock).transpose()?;
    let result = {
        let (load, device) = (load.as_mut(), &mut device);
        let fill: Option<&mut dyn flashtwin_workload::Workload> = match &mut fill {
            Some(fill) => Some(fill.as_mut()),
            None => None,
        };
        py.detach(|| run_untimed(device, fill, load, &plan, &control.0))
    };
    if let Some(e) = failure.take() {
        return Err(e);
    }
    let run = result.map_err(error)?;
    result_dict(py, &device, &run)
}

fn result_dict<'py>(
    py: Python<'py>,
    device: &Placed,
    run: &Untimed,
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
    let totals = PyDict::new(py);
    for kind in EventType::ALL {
        totals.set_item(kind.code(), device.event_total(kind))?;
    }
    d.set_item("events", totals)?;
    d.set_item("last_events", last_events(py, device)?)?;
    let setup = device.setup();
    let types: Vec<&str> = device.handle_types().iter().map(|of| of.name()).collect();
    d.set_item("handles", types)?;
    d.set_item("groups", setup.groups)?;
    d.set_item("group_bits", setup.group_bits)?;
    d.set_item("placement_handles", setup.namespace.len())?;
    let totals = device.totals();
    d.set_item("totals", (totals.host, totals.media, totals.erased))?;
    d.set_item("units", setup.units * setup.groups)?;
    d.set_item("unit_pages", setup.unit_pages)?;
    d.set_item("logical_pages", setup.logical_pages)?;
    d.set_item("low", setup.low)?;
    d.set_item("classes", device.needs().classes)?;
    Ok(d)
}

/// The last events of the host, and of the device.
fn last_events<'py>(py: Python<'py>, device: &Placed) -> PyResult<Bound<'py, PyDict>> {
    let both = PyDict::new(py);
    for (name, of_host) in [("host", true), ("controller", false)] {
        let list = PyList::empty(py);
        for event in device.last_events(of_host) {
            let d = PyDict::new(py);
            d.set_item("type", event.kind.code())?;
            d.set_item("name", event.kind.name())?;
            d.set_item("pid", event.id)?;
            d.set_item("ruhid", event.handle)?;
            d.set_item("rgid", event.group)?;
            d.set_item("clock", event.clock)?;
            d.set_item("moved", event.moved)?;
            list.append(d)?;
        }
        both.set_item(name, list)?;
    }
    Ok(both)
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

/// Closed forms at a share of live pages: by their names.
#[pyfunction]
pub fn placement_theory(load: f64, unit_pages: u32) -> BTreeMap<&'static str, f64> {
    BTreeMap::from([
        ("uniform_fifo", theory::uniform_fifo(load)),
        ("uniform_greedy", theory::uniform_greedy(load, unit_pages)),
        ("permuted_fifo", theory::permuted_fifo(load)),
    ])
}

/// The units of each stream with which their moves are fewest, and the write amplification; `None` if the live pages do
/// not fit.
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

// ---- users' schemes and rules ----

/// A page that the host writes, as a user's scheme sees it.
#[pyclass(frozen, get_all, module = "flashtwin._core")]
pub struct PlacementPage {
    lpn: u32,
    handle: u16,
    id: Option<u16>,
    clock: u64,
    old_class: Option<Class>,
    age: Option<u64>,
    next: Option<u64>,
    request_pages: u32,
}

/// A live page that collection moves, as a user's scheme sees it.
#[pyclass(frozen, get_all, module = "flashtwin._core")]
pub struct Survivor {
    lpn: u32,
    from_class: Option<Class>,
    survived: bool,
    age: Option<u64>,
    moves: u8,
    next: Option<u64>,
    clock: u64,
}

/// A unit, as a user's scheme sees it.
#[pyclass(frozen, get_all, module = "flashtwin._core")]
pub struct PlacementUnit {
    number: u32,
    group: u32,
    class_: Option<Class>,
    survivors: bool,
    opened_at: u64,
    pages: u32,
    valid: u32,
    erases: u32,
}

fn known(time: u64) -> Option<u64> {
    (time != u64::MAX).then_some(time)
}

/// A scheme written in Python.
struct PyScheme {
    object: Arc<Py<PyAny>>,
    needs: Needs,
    has_closed: bool,
    has_erased: bool,
    has_trimmed: bool,
    failure: Arc<Failure>,
}

impl PyScheme {
    fn new(object: Py<PyAny>, py: Python<'_>, failure: Arc<Failure>) -> PyResult<PyScheme> {
        let of = object.bind(py);
        let classes: u16 = of.getattr("classes")?.extract()?;
        let words: Vec<String> = of.getattr("needs")?.extract()?;
        let mut needs = Needs::classes(classes);
        for word in &words {
            match word.as_str() {
                "age" => needs.age = true,
                "moves" => needs.moves = true,
                "future" => needs.future = true,
                "old_class" => needs.old = true,
                _ => {
                    return Err(error(format!(
                        "needs: found {word:?}; must be among \"age\", \"moves\", \"future\", \"old_class\""
                    )))
                }
            }
        }
        needs.isolated = of.getattr("isolated")?.extract()?;
        let has = |name: &str| -> PyResult<bool> { of.call_method1("_has", (name,))?.extract() };
        if has("moved")? {
            needs.survivors = Survivors::Scheme;
        }
        Ok(PyScheme {
            needs,
            has_closed: has("closed")?,
            has_erased: has("erased")?,
            has_trimmed: has("trimmed")?,
            object: Arc::new(object),
            failure,
        })
    }

    /// Calls a method, unless one has failed; an exception stops the run.
    fn call<T>(
        &self,
        call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        if self.failure.failed() {
            return None;
        }
        Python::attach(|py| match call(py, self.object.bind(py)) {
            Ok(value) => Some(value),
            Err(e) => {
                self.failure.fail(e);
                None
            }
        })
    }

    fn class(&self, method: &str, class: Class) -> PyResult<Class> {
        match class < self.needs.classes {
            true => Ok(class),
            false => Err(error(format!(
                "{method} returned class {class}; must be below {}, the scheme's `classes`",
                self.needs.classes
            ))),
        }
    }
}

fn unit(of: &UnitView) -> PlacementUnit {
    PlacementUnit {
        number: of.number,
        group: of.group,
        class_: of.class,
        survivors: of.survivors,
        opened_at: of.opened_at,
        pages: of.pages,
        valid: of.live,
        erases: of.erases,
    }
}

impl Scheme for PyScheme {
    fn needs(&self) -> Needs {
        self.needs
    }

    fn host(&mut self, page: &HostPage) -> Class {
        let view = PlacementPage {
            lpn: page.lpn.0,
            handle: page.handle,
            id: page.id,
            clock: page.clock,
            old_class: page.old_class,
            age: known(page.age),
            next: known(page.next),
            request_pages: page.request_pages,
        };
        let class = self.call(|_, object| {
            let class = object.call_method1("host", (view,))?.extract()?;
            self.class("host", class)
        });
        class.unwrap_or(0)
    }

    fn moved(&mut self, page: &MovedPage) -> Destination {
        let view = Survivor {
            lpn: page.lpn.0,
            from_class: page.from,
            survived: page.survived,
            age: known(page.age),
            moves: page.moves,
            next: known(page.next),
            clock: page.clock,
        };
        let to = self.call(|_, object| {
            let to = object.call_method1("moved", (view,))?;
            if let Ok(class) = to.extract::<Class>() {
                return self.class("moved", class).map(Destination::Host);
            }
            if let Ok((word, class)) = to.extract::<(String, Class)>() {
                if word == "own" {
                    return self.class("moved", class).map(Destination::Own);
                }
            }
            if to.extract::<String>().is_ok_and(|word| word == "shared") {
                return Ok(Destination::Shared);
            }
            Err(error(format!(
                "moved returned {to}; must be a class, (\"own\", class) or \"shared\""
            )))
        });
        to.unwrap_or(Destination::Host(0))
    }

    fn closed(&mut self, of: &UnitView, clock: u64) {
        if self.has_closed {
            self.call(|_, object| object.call_method1("closed", (unit(of), clock)).map(|_| ()));
        }
    }

    fn erased(&mut self, of: &UnitView, valid: u32, clock: u64) {
        if self.has_erased {
            self.call(|_, object| {
                let args = (unit(of), valid, clock);
                object.call_method1("erased", args).map(|_| ())
            });
        }
    }

    fn trimmed(&mut self, lpn: Lpn) {
        if self.has_trimmed {
            self.call(|_, object| object.call_method1("trimmed", (lpn.0,)).map(|_| ()));
        }
    }
}

impl Clone for PyScheme {
    /// Shares the object: a device with a user's scheme is not copied in the middle of a run.
    fn clone(&self) -> PyScheme {
        PyScheme {
            object: self.object.clone(),
            needs: self.needs,
            has_closed: self.has_closed,
            has_erased: self.has_erased,
            has_trimmed: self.has_trimmed,
            failure: self.failure.clone(),
        }
    }
}

const _: fn() = || {
    fn is_user<T: UserScheme>() {}
    is_user::<PyScheme>();
};

/// A closed unit that a victim rule may choose.
#[pyclass(frozen, get_all, module = "flashtwin._core")]
pub struct VictimUnit {
    /// Place among the pool's units.
    place: u32,
    number: u32,
    valid: u32,
    pages: u32,
    written: u32,
    age: u32,
    owner: String,
    class_: Option<Class>,
    erases: u32,
    opened_at: u64,
    last_death: u64,
}

#[pymethods]
impl VictimUnit {
    fn __repr__(&self) -> String {
        format!(
            "unit {} of {}: {} of {} pages valid, age {}",
            self.number, self.owner, self.valid, self.pages, self.age
        )
    }
}

/// The closed units of a group, and the class that needs room.
#[pyclass(frozen, get_all, module = "flashtwin._core")]
pub struct PoolView {
    units: Py<PyList>,
    class_: Option<Class>,
    group: u32,
    free: u32,
    low: u32,
    clock: u64,
    pages: u32,
    /// Units in use by class.
    units_of_class: Vec<u32>,
}

#[pymethods]
impl PoolView {
    /// Units of the group that a class holds.
    fn in_use(&self, class: usize) -> PyResult<u32> {
        let found = self.units_of_class.get(class).copied();
        found.ok_or_else(|| {
            let n = self.units_of_class.len();
            error(format!("in_use: found class {class}; must be below {n}"))
        })
    }
}

/// A victim rule written in Python.
#[derive(Clone)]
struct PyVictim {
    object: Arc<Py<PyAny>>,
    failure: Arc<Failure>,
}

impl PyVictim {
    fn ask(&self, py: Python<'_>, pool: &VictimPool) -> PyResult<Option<u32>> {
        let units = PyList::empty(py);
        for (place, of) in pool.units.iter().enumerate() {
            let kind = if of.survivors { "g" } else { "h" };
            let owner = of
                .class
                .map_or("s".into(), |class| format!("{kind}{class}"));
            units.append(
                VictimUnit {
                    place: place as u32,
                    number: of.number,
                    valid: of.valid,
                    pages: pool.pages,
                    written: of.written,
                    age: of.age,
                    owner,
                    class_: of.class,
                    erases: of.erases,
                    opened_at: of.opened_at,
                    last_death: of.last_death,
                }
                .into_py_any(py)?,
            )?;
        }
        let view = PoolView {
            units: units.unbind(),
            class_: pool.class,
            group: pool.group,
            free: pool.free,
            low: pool.low,
            clock: pool.clock,
            pages: pool.pages,
            units_of_class: pool.in_use.clone(),
        };
        let chosen = self.object.bind(py).call_method1("choose", (view,))?;
        if chosen.is_none() {
            return match pool.free {
                0 => Err(error("choose returned None, and no unit is free")),
                _ => Ok(None),
            };
        }
        match chosen.cast::<VictimUnit>() {
            Ok(unit) => Ok(Some(unit.get().place)),
            Err(_) => Err(error(format!(
                "choose returned {chosen}; must be one of pool.units, or None"
            ))),
        }
    }
}

impl UserVictim for PyVictim {
    fn choose(&mut self, pool: &VictimPool) -> Option<u32> {
        if self.failure.failed() {
            return None;
        }
        Python::attach(|py| match self.ask(py, pool) {
            Ok(place) => place,
            Err(e) => {
                self.failure.fail(e);
                None
            }
        })
    }

    fn boxed_clone(&self) -> Box<dyn UserVictim> {
        Box::new(self.clone())
    }
}
