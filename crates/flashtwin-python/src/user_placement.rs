//! Placement schemes and victim rules written in Python.
//!
//! If a rule raises an exception, or returns an invalid class of pages or an invalid unit, the run stops and raises the
//! exception.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

use flashtwin::placement::{
    Class, HostPage, Isolated, MovedPage, Needs, Scheme, Survivors, UnitView, UserRules,
    UserScheme, UserVictim, VictimPool,
};
use flashtwin::Lpn;
use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3::IntoPyObjectExt;

use crate::errors::error;
use crate::user::Failure;

/// A page that the host writes. The user's scheme receives it as an argument.
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

/// A live page that GC moves. The user's scheme receives it as an argument.
#[pyclass(frozen, get_all, module = "flashtwin._core")]
pub struct Survivor {
    lpn: u32,
    from_class: Class,
    age: Option<u64>,
    moves: u8,
    next: Option<u64>,
    clock: u64,
}

/// A unit, as the user's scheme receives it.
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

fn class_name(object: &Bound<'_, PyAny>) -> PyResult<String> {
    object.get_type().name()?.extract()
}

fn known(time: u64) -> Option<u64> {
    (time != u64::MAX).then_some(time)
}

/// A scheme written in Python.
pub struct PyScheme {
    object: Arc<Py<PyAny>>,
    name: String,
    needs: Needs,
    has_closed: bool,
    has_erased: bool,
    has_trimmed: bool,
    failure: Arc<Failure>,
}

impl PyScheme {
    /// Creates the scheme from an instance of a subclass of `flashtwin.Placement`.
    ///
    /// # Errors
    /// Fails if an attribute is missing or has the wrong type.
    pub fn new(object: Py<PyAny>, py: Python<'_>, failure: Arc<Failure>) -> PyResult<PyScheme> {
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
        needs.isolated = match of.getattr("isolated")?.extract()? {
            true => Isolated::All,
            false => Isolated::None,
        };
        let has = |name: &str| -> PyResult<bool> { of.call_method1("_has", (name,))?.extract() };
        if has("moved")? {
            needs.survivors = Survivors::Scheme;
        }
        Ok(PyScheme {
            name: class_name(of)?,
            needs,
            has_closed: has("closed")?,
            has_erased: has("erased")?,
            has_trimmed: has("trimmed")?,
            object: Arc::new(object),
            failure,
        })
    }

    /// Calls a method of the user's scheme. Returns `None` if this call or an earlier one has failed. An exception
    /// stops the run.
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

    /// Reads the class that a method returned.
    fn class(&self, method: &str, returned: &Bound<'_, PyAny>) -> PyResult<Class> {
        let classes = self.needs.classes;
        match returned.extract::<Class>() {
            Ok(class) if class < classes => Ok(class),
            _ => Err(error(format!(
                "{method} returned {returned}; must be a class from 0 to {}, below the scheme's `classes`",
                classes.saturating_sub(1)
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

    fn name(&self) -> &str {
        &self.name
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
        let class =
            self.call(|_, object| self.class("host", &object.call_method1("host", (view,))?));
        class.unwrap_or(0)
    }

    fn moved(&mut self, page: &MovedPage) -> Class {
        let view = Survivor {
            lpn: page.lpn.0,
            from_class: page.from,
            age: known(page.age),
            moves: page.moves,
            next: known(page.next),
            clock: page.clock,
        };
        let class =
            self.call(|_, object| self.class("moved", &object.call_method1("moved", (view,))?));
        class.unwrap_or(0)
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
    /// Returns a scheme that shares the Python object. This is safe, because a device with a user's scheme is never
    /// copied during a run.
    fn clone(&self) -> PyScheme {
        PyScheme {
            object: self.object.clone(),
            name: self.name.clone(),
            needs: self.needs,
            has_closed: self.has_closed,
            has_erased: self.has_erased,
            has_trimmed: self.has_trimmed,
            failure: self.failure.clone(),
        }
    }
}

/// A closed unit (blocks that are erased together): one of the units among which a victim rule may choose.
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

/// The units among which a victim rule chooses: the closed units of a group (dies that share units), together with the
/// class of pages for which room is needed.
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
pub struct PyVictim {
    object: Arc<Py<PyAny>>,
    name: String,
    failure: Arc<Failure>,
}

impl PyVictim {
    /// Creates the rule from an instance of a subclass of `flashtwin.Victim`.
    ///
    /// # Errors
    /// Fails if the class of `object` has no name.
    pub fn new(object: Py<PyAny>, py: Python<'_>, failure: Arc<Failure>) -> PyResult<PyVictim> {
        Ok(PyVictim {
            name: class_name(object.bind(py))?,
            object: Arc::new(object),
            failure,
        })
    }

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

    fn name(&self) -> &str {
        &self.name
    }

    fn boxed_clone(&self) -> Box<dyn UserVictim> {
        Box::new(self.clone())
    }
}

/// A Unix socket over which a served device calls the user's placement rules.
#[pyclass(frozen, module = "flashtwin._core")]
pub struct RulesSocket(UnixListener);

#[pymethods]
impl RulesSocket {
    /// Listens at a path.
    #[new]
    fn new(path: PathBuf) -> PyResult<RulesSocket> {
        UnixListener::bind(&path)
            .map(RulesSocket)
            .map_err(|e| error(format!("{}: {e}", path.display())))
    }

    /// Waits until the device connects. Then replies to its questions until the device stops.
    fn reply(
        &self,
        py: Python<'_>,
        scheme: Option<Bound<'_, PyAny>>,
        victim: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let failure = Arc::new(Failure::default());
        let rules = rules(py, scheme, victim, &failure)?;
        let done = py.detach(|| {
            let (stream, _) = self.0.accept()?;
            flashtwin_sim::reply_for_rules(stream, rules, || failure.failed())
        });
        match failure.take() {
            Some(e) => Err(e),
            None => done.map_err(error),
        }
    }
}

/// Creates the user's placement rules from a scheme and a victim rule. One of the two may be missing.
///
/// # Errors
/// Fails if an attribute of the scheme is missing or has the wrong type.
pub fn rules(
    py: Python<'_>,
    scheme: Option<Bound<'_, PyAny>>,
    victim: Option<Bound<'_, PyAny>>,
    failure: &Arc<Failure>,
) -> PyResult<UserRules> {
    let scheme = scheme.map(|object| PyScheme::new(object.unbind(), py, failure.clone()));
    let scheme = scheme.transpose()?;
    let victim = victim.map(|object| PyVictim::new(object.unbind(), py, failure.clone()));
    let victim = victim.transpose()?;
    Ok(UserRules {
        scheme: scheme.map(|scheme| Box::new(scheme) as Box<dyn UserScheme>),
        victim: victim.map(|victim| Box::new(victim) as Box<dyn UserVictim>),
    })
}
