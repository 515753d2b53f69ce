//! Policies written in Python.
//!
//! A run does not hold the GIL. Each call of the policy attaches the thread to the interpreter. If the policy raises an
//! exception or returns an invalid victim, the run stops in these steps:
//!
//! 1. The policy is not called again.
//! 2. After the current batch of the workload, no more requests are submitted.
//! 3. Requests in flight complete. So that no request hangs, each eviction takes the page that was inserted first.
//! 4. The run raises the exception.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashtwin::buffer::{self, page_text, pages_text, DeviceView, Eviction, List, PageId, Skip};
use flashtwin::{ChipId, Lpn, Stream, Time};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use pyo3::IntoPyObjectExt;

use crate::errors::FlashtwinError;

/// The exception that a policy raised, and the control that stops the run.
#[derive(Default)]
pub struct Failure {
    failed: AtomicBool,
    error: Mutex<Option<PyErr>>,
    control: Mutex<Option<Arc<flashtwin_sim::Control>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Failure {
    /// Sets the run that a failure stops.
    pub fn stops(&self, control: &Arc<flashtwin_sim::Control>) {
        *locked(&self.control) = Some(control.clone());
    }

    /// Takes the exception, if there is one.
    pub fn take(&self) -> Option<PyErr> {
        locked(&self.error).take()
    }

    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Stores the exception, unless an earlier one is stored, and stops the run.
    pub fn fail(&self, error: PyErr) {
        if !self.failed.swap(true, Ordering::Relaxed) {
            *locked(&self.error) = Some(error);
        }
        if let Some(control) = &*locked(&self.control) {
            control.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// An access to one page. The policy receives it as an argument.
#[pyclass(frozen, get_all, module = "flashtwin._core")]
pub struct Access {
    lpn: u32,
    write: bool,
    dirty: bool,
    request: u64,
    request_pages: u32,
}

#[pymethods]
impl Access {
    fn __repr__(&self) -> String {
        let (kind, state) = (
            if self.write { 'W' } else { 'R' },
            if self.dirty { "dirty" } else { "clean" },
        );
        let request = format!("request {} of {} pages", self.request, self.request_pages);
        format!("Access({kind}{}, {state}, {request})", self.lpn)
    }
}

impl From<&buffer::Access> for Access {
    fn from(access: &buffer::Access) -> Access {
        Access {
            lpn: access.lpn.0,
            write: access.write,
            dirty: access.dirty,
            request: access.request,
            request_pages: access.request_pages,
        }
    }
}

/// A page of the buffer, from its insertion until it is evicted or trimmed. After that, its number is reused for
/// another page. A policy that compares, hashes or indexes by the old object would then confuse the two pages, so these
/// operations raise an exception.
#[pyclass(frozen, module = "flashtwin._core")]
pub struct Page {
    number: u32,
    gone: AtomicBool,
}

impl Page {
    fn number(&self) -> PyResult<u32> {
        match self.gone.load(Ordering::Relaxed) {
            false => Ok(self.number),
            true => Err(FlashtwinError::new_err(format!(
                "page {} has left the buffer, and its number is used for other pages: delete what you keep of a page \
                 in evict and forget, and remember evicted pages by access.lpn or self.device.lpn(page)",
                self.number
            ))),
        }
    }
}

#[pymethods]
impl Page {
    fn __index__(&self) -> PyResult<u32> {
        self.number()
    }

    fn __hash__(&self) -> PyResult<u64> {
        self.number().map(u64::from)
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        if let Ok(other) = other.cast::<Page>() {
            let order = self.number()?.cmp(&other.get().number()?);
            return op.matches(order).into_py_any(py);
        }
        if other.is_instance_of::<PyInt>() {
            return Err(FlashtwinError::new_err(format!(
                "page {} is compared with a number: self.device.lpn(page) is the logical page",
                self.number
            )));
        }
        Ok(py.NotImplemented())
    }

    fn __repr__(&self) -> String {
        let state = match self.gone.load(Ordering::Relaxed) {
            false => "",
            true => ", not in the buffer",
        };
        format!("Page({}{state})", self.number)
    }
}

/// Returns the number of a page that a policy returned. The policy may return a [`Page`] or a number.
fn number_of(page: &Bound<'_, PyAny>) -> PyResult<u32> {
    match page.cast::<Page>() {
        Ok(page) => page.get().number(),
        Err(_) => page.extract(),
    }
}

/// The pages in the buffer of the policy, in order of insertion.
#[derive(Debug, Default)]
struct Held {
    pages: Vec<bool>,
    /// For each page, the object that the policy received for it.
    objects: Vec<Option<Py<Page>>>,
    order: List,
    count: usize,
}

impl Clone for Held {
    fn clone(&self) -> Held {
        let cloned = |py: Python<'_>| {
            let objects = self.objects.iter();
            objects
                .map(|page| page.as_ref().map(|page| page.clone_ref(py)))
                .collect()
        };
        Held {
            pages: self.pages.clone(),
            objects: Python::attach(cloned),
            order: self.order.clone(),
            count: self.count,
        }
    }
}

impl Held {
    fn has(&self, page: PageId) -> bool {
        self.pages.get(page.0 as usize).is_some_and(|&held| held)
    }

    fn add(&mut self, page: PageId) {
        if page.0 as usize >= self.pages.len() {
            self.pages.resize(page.0 as usize + 1, false);
            self.objects.resize_with(page.0 as usize + 1, || None);
        }
        self.pages[page.0 as usize] = true;
        self.order.push_newest(page);
        self.count += 1;
    }

    fn remove(&mut self, page: PageId) {
        if let Some(object) = self.objects[page.0 as usize].take() {
            object.get().gone.store(true, Ordering::Relaxed);
        }
        self.pages[page.0 as usize] = false;
        self.order.remove(page);
        self.count -= 1;
    }
}

/// References to the device and to the pages in the buffer. They are valid only during a call of the policy.
#[derive(Clone, Copy)]
struct Asked {
    device: &'static dyn DeviceView,
    held: &'static Held,
}

thread_local! {
    static ASKED: Cell<Option<Asked>> = const { Cell::new(None) };
}

/// Guard that gives the policy access to the device. The access ends when the guard is dropped.
struct Asking {
    before: Option<Asked>,
}

impl Asking {
    /// Makes [`asked`] return `device` and `held` until the guard is dropped.
    ///
    /// # Safety
    /// The caller must drop the guard while `device` and `held` are still alive.
    unsafe fn new(device: &dyn DeviceView, held: &Held) -> Asking {
        // SAFETY: only the lifetimes change. The references are removed from `ASKED` when the guard is dropped, and the
        // caller guarantees that this happens before they become invalid. No other code keeps them for longer than a
        // call of `asked` by the same thread.
        let asked = unsafe {
            Asked {
                device: std::mem::transmute::<&dyn DeviceView, &'static dyn DeviceView>(device),
                held: std::mem::transmute::<&Held, &'static Held>(held),
            }
        };
        Asking {
            before: ASKED.replace(Some(asked)),
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKED.set(self.before);
    }
}

fn asked<T>(query: impl FnOnce(&dyn DeviceView, &Held) -> PyResult<T>) -> PyResult<T> {
    match ASKED.get() {
        Some(Asked { device, held }) => query(device, held),
        None => Err(FlashtwinError::new_err(
            "the device can be asked only while insert, hit, evict, cleaned, ahead or state is being called",
        )),
    }
}

/// The device. Its methods are the properties that a policy may read.
#[pyclass(frozen, module = "flashtwin._core")]
pub struct PolicyDevice {
    /// Number of spare blocks of each pool (a plane or a chip). `None` for an array, or if there is no device.
    #[pyo3(get)]
    spare_blocks: Option<u32>,
}

impl PolicyDevice {
    fn page<T>(
        page: &Bound<'_, PyAny>,
        query: impl FnOnce(&dyn DeviceView, PageId) -> T,
    ) -> PyResult<T> {
        let page = number_of(page)?;
        asked(|device, held| match held.has(PageId(page)) {
            true => Ok(query(device, PageId(page))),
            false => Err(FlashtwinError::new_err(format!(
                "page {page} is not in the buffer"
            ))),
        })
    }

    fn of_chip<T>(chip: u32, query: impl FnOnce(&dyn DeviceView, ChipId) -> T) -> PyResult<T> {
        asked(|device, _| match device.chips_in_gc().of() {
            chips if chip < chips => Ok(query(device, ChipId(chip as u16))),
            chips => Err(FlashtwinError::new_err(format!(
                "chip {chip} of {chips}, counted from 0"
            ))),
        })
    }
}

#[pymethods]
impl PolicyDevice {
    #[new]
    fn new(spare_blocks: Option<u32>) -> PolicyDevice {
        PolicyDevice { spare_blocks }
    }

    /// Returns the logical page cached as `page`.
    fn lpn(&self, page: &Bound<'_, PyAny>) -> PyResult<u32> {
        Self::page(page, |device, page| device.lpn(page).0)
    }

    /// Whether a cached page differs from flash.
    fn dirty(&self, page: &Bound<'_, PyAny>) -> PyResult<bool> {
        Self::page(page, |device, page| device.dirty(page))
    }

    /// Returns the chip with the flash copy of the page. None if the page has no flash copy.
    fn chip(&self, page: &Bound<'_, PyAny>) -> PyResult<Option<u16>> {
        Self::page(page, |device, page| device.chip(page).map(|chip| chip.0))
    }

    /// Whether the page is in flight: it cannot be evicted now, because it has no slot or no data yet.
    fn in_flight(&self, page: &Bound<'_, PyAny>) -> PyResult<bool> {
        Self::page(page, |device, page| device.in_flight(page))
    }

    /// Whether the page is being written back without being evicted.
    fn programming(&self, page: &Bound<'_, PyAny>) -> PyResult<bool> {
        Self::page(page, |device, page| device.programming(page))
    }

    /// Returns a page as text: `7d` if logical page 7 is dirty, `7c` if it is clean.
    fn text(&self, page: &Bound<'_, PyAny>) -> PyResult<String> {
        Self::page(page, page_text)
    }

    /// Returns the number of chips.
    #[getter]
    fn chips(&self) -> PyResult<u32> {
        asked(|device, _| Ok(device.chips_in_gc().of()))
    }

    /// Whether the chip is collecting garbage now.
    fn in_gc(&self, chip: u32) -> PyResult<bool> {
        Self::of_chip(chip, |device, chip| device.in_gc(chip))
    }

    /// Returns the time in microseconds until the chip will have completed its pending work (the chip queue complete
    /// time of ECR).
    fn drain_time_us(&self, chip: u32) -> PyResult<f64> {
        Self::of_chip(chip, |device, chip| device.drain_time(chip, false).as_us())
    }

    /// Whether the chip has nothing to do.
    fn chip_idle(&self, chip: u32) -> PyResult<bool> {
        Self::of_chip(chip, |device, chip| device.chip_idle(chip))
    }

    /// Returns the number of free blocks of the chip. Open blocks are not counted.
    fn free_blocks(&self, chip: u32) -> PyResult<u32> {
        Self::of_chip(chip, |device, chip| device.free_blocks(chip))
    }

    /// Returns the current virtual time in microseconds.
    #[getter]
    fn now_us(&self) -> PyResult<f64> {
        asked(|device, _| Ok(device.now().as_us()))
    }
}

/// Bound methods of the Python object.
struct Calls {
    name: String,
    insert: Py<PyAny>,
    hit: Py<PyAny>,
    evict: Py<PyAny>,
    forget: Py<PyAny>,
    /// The method `cleaned`. This field and those of other optional methods are `None` if the class does not override
    /// the method.
    cleaned: Option<Py<PyAny>>,
    state: Option<Py<PyAny>>,
    ahead: Option<Py<PyAny>>,
    is_hot: Option<Py<PyAny>>,
    /// The method `ahead` is called after this time without accesses by the host.
    ahead_after: Time,
}

/// A policy written in Python. It can be given to a device.
#[pyclass(frozen, module = "flashtwin._core")]
pub struct UserPolicy {
    calls: Arc<Calls>,
    pub failure: Arc<Failure>,
}

#[pymethods]
impl UserPolicy {
    /// Creates the policy. `object` has the methods of `flashtwin.Policy`. `overridden` names those optional methods
    /// that the class overrides, which are called. `name` is used in messages. `ahead` is called after `ahead_after_us`
    /// without accesses by the host.
    #[new]
    fn new(
        object: &Bound<'_, PyAny>,
        name: String,
        overridden: Vec<String>,
        ahead_after_us: u64,
    ) -> PyResult<UserPolicy> {
        let method = |name: &str| object.getattr(name).map(Bound::unbind);
        let optional = |name: &str| {
            let called = overridden.iter().any(|method| method == name);
            called.then(|| method(name)).transpose()
        };
        Ok(UserPolicy {
            calls: Arc::new(Calls {
                name,
                insert: method("insert")?,
                hit: method("hit")?,
                evict: method("evict")?,
                forget: method("forget")?,
                cleaned: optional("cleaned")?,
                state: optional("state")?,
                ahead: optional("ahead")?,
                is_hot: optional("is_hot")?,
                ahead_after: Time::from_us(ahead_after_us),
            }),
            failure: Arc::default(),
        })
    }
}

impl UserPolicy {
    /// Returns a boxed copy for the model.
    pub fn boxed(&self) -> Box<dyn buffer::UserPolicy> {
        Box::new(PyPolicy {
            calls: self.calls.clone(),
            failure: self.failure.clone(),
            held: Held::default(),
        })
    }
}

/// Adapter between the model and the policy in Python. A copy of the adapter calls the same Python object. This is
/// safe, because the package never continues both a device and its copy.
#[derive(Clone)]
struct PyPolicy {
    calls: Arc<Calls>,
    failure: Arc<Failure>,
    held: Held,
}

impl PyPolicy {
    /// Runs `call` with the interpreter, and gives it access to the device. Returns None if the policy has failed.
    fn call<T>(
        &self,
        device: Option<&dyn DeviceView>,
        call: impl FnOnce(Python<'_>, &Calls) -> PyResult<T>,
    ) -> Option<T> {
        if self.failure.failed() {
            return None;
        }
        let done = Python::attach(|py| {
            // SAFETY: the guard is dropped at the end of this block. `device` and `self.held` live longer.
            let _asking = device.map(|device| unsafe { Asking::new(device, &self.held) });
            call(py, &self.calls)
        });
        done.map_err(|e| self.failure.fail(e)).ok()
    }

    /// Returns the Python object of a page. `None` if the policy failed before the object was created.
    fn object(&self, py: Python<'_>, page: PageId) -> Option<Py<Page>> {
        let object = &self.held.objects[page.0 as usize];
        object.as_ref().map(|object| object.clone_ref(py))
    }

    /// Reads and checks the pages that `evict` returned. Each must be in the buffer and may occur only once.
    fn read_victims(
        &self,
        returned: &Bound<'_, PyAny>,
        victims: &mut Vec<PageId>,
    ) -> Result<(), String> {
        let read = |page: &Bound<'_, PyAny>| match page.cast::<Page>() {
            Ok(page) if page.get().gone.load(Ordering::Relaxed) => {
                let number = page.get().number;
                Err(format!(
                    "evict returned page {number}, which has left the buffer"
                ))
            }
            _ => number_of(page).map_err(|_| format!("evict returned {}", shown(returned))),
        };
        let pages = match returned.try_iter() {
            Err(_) => vec![read(returned)?],
            Ok(several) => several
                .map(|page| {
                    let page = page.map_err(|e| format!("evict returned what raises {e}"))?;
                    read(&page)
                })
                .collect::<Result<_, _>>()?,
        };
        if pages.is_empty() {
            return Err("evict returned no page".into());
        }
        for page in pages {
            if !self.held.has(PageId(page)) {
                return Err(format!(
                    "evict returned page {page}, which is not among the {} in the buffer",
                    self.held.count
                ));
            }
            if victims.contains(&PageId(page)) {
                return Err(format!("evict returned page {page} twice"));
            }
            victims.push(PageId(page));
        }
        Ok(())
    }
}

/// Formats a value as messages show it.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map(|text| text.to_string());
    let text = text.unwrap_or_else(|_| "what cannot be shown".into());
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

impl buffer::Policy for PyPolicy {
    fn insert(&mut self, device: &dyn DeviceView, page: PageId, access: &buffer::Access) {
        self.held.add(page);
        let inserted = self.call(Some(device), |py, calls| {
            let (number, gone) = (page.0, AtomicBool::new(false));
            let object = Py::new(py, Page { number, gone })?;
            let arguments = (object.clone_ref(py), Access::from(access));
            calls.insert.call1(py, arguments).map(|_| object)
        });
        self.held.objects[page.0 as usize] = inserted;
    }

    fn hit(&mut self, device: &dyn DeviceView, page: PageId, access: &buffer::Access) {
        self.call(Some(device), |py, calls| {
            calls
                .hit
                .call1(py, (self.object(py, page), Access::from(access)))
        });
    }

    fn forget(&mut self, page: PageId) {
        self.call(None, |py, calls| {
            calls.forget.call1(py, (self.object(py, page),))
        });
        self.held.remove(page);
    }

    fn cleaned(&mut self, device: &dyn DeviceView, page: PageId) {
        // The device may report pages that are no longer in the buffer. The policy does not receive these.
        if self.calls.cleaned.is_some() && self.held.has(page) {
            self.call(Some(device), |py, calls| match &calls.cleaned {
                Some(cleaned) => cleaned.call1(py, (self.object(py, page),)).map(drop),
                None => Ok(()),
            });
        }
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &buffer::Access,
        _skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let named = self.call(Some(device), |py, calls| {
            let returned = calls.evict.call1(py, (Access::from(incoming),))?;
            let mut victims = Vec::new();
            self.read_victims(returned.bind(py), &mut victims)
                .map_err(|wrong| {
                    FlashtwinError::new_err(format!(
                        "policy {}: {wrong}; it must return a page of the buffer, or a list of them",
                        calls.name
                    ))
                })?;
            Ok(victims)
        });
        let victims = named.unwrap_or_else(|| self.held.order.oldest().into_iter().collect());
        for page in victims {
            self.held.remove(page);
            out.one(page, 1);
        }
        !out.victims.is_empty()
    }

    fn ahead_after(&self) -> Option<Time> {
        let calls = &self.calls;
        calls.ahead.as_ref().map(|_| calls.ahead_after)
    }

    fn ahead(
        &mut self,
        device: &dyn DeviceView,
        in_flight: u32,
        busy: &dyn Fn(PageId) -> bool,
    ) -> Option<PageId> {
        let returned = self.call(Some(device), |py, calls| {
            let Some(ahead) = &calls.ahead else {
                return Ok(None);
            };
            let returned = ahead.call1(py, (in_flight,))?;
            if returned.is_none(py) {
                return Ok(None);
            }
            let returned = returned.bind(py);
            let wrong = |wrong: String| {
                FlashtwinError::new_err(format!(
                    "policy {}: ahead returned {wrong}; it must return a dirty page of the buffer that is not being \
                     written back (device.dirty, device.programming), or None",
                    calls.name
                ))
            };
            let page = number_of(returned).map_err(|_| wrong(shown(returned)))?;
            let page = PageId(page);
            match page {
                _ if !self.held.has(page) => Err(wrong(format!("page {}", page.0))),
                _ if device.programming(page) => Err(wrong(format!(
                    "page {}, which is being written back",
                    page.0
                ))),
                _ if !device.dirty(page) => {
                    Err(wrong(format!("page {}, which is clean", page.0)))
                }
                // At this point, a page is busy if its flush is due but has not begun, or if its data have not arrived.
                // Such a page is not written back now.
                _ => Ok(Some(page).filter(|&page| !busy(page))),
            }
        });
        returned.flatten()
    }

    fn stream(&self, _page: PageId, lpn: Lpn) -> Stream {
        let is_hot = self.calls.is_hot.as_ref().and_then(|_| {
            self.call(None, |py, calls| match &calls.is_hot {
                Some(is_hot) => is_hot.call1(py, (lpn.0,))?.is_truthy(py),
                None => Ok(false),
            })
        });
        match is_hot {
            Some(true) => Stream::Hot,
            _ => Stream::Cold,
        }
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let own = self.calls.state.as_ref().and_then(|_| {
            self.call(Some(device), |py, calls| match &calls.state {
                Some(state) => {
                    let returned = state.call0(py)?;
                    let text = returned.extract::<String>(py);
                    text.map_err(|_| {
                        let (name, shown) = (&calls.name, shown(returned.bind(py)));
                        let message = format!(
                            "policy {name}: state returned {shown}; it must return a string"
                        );
                        FlashtwinError::new_err(message)
                    })
                }
                None => Ok(String::new()),
            })
        });
        own.unwrap_or_else(|| pages_text(device, self.held.order.iter_oldest_first()))
    }
}
