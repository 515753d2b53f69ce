//! Devices. A `Spec` is a specification. A `Device` has a state, and can be preconditioned, saved, forked and run.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use flashtwin::spec::{
    builtin, builtin_array, builtin_array_names, builtin_names, is_array, MemberFile,
};
use flashtwin::{Array, ArraySpec, Device as AnyDevice, DeviceSpec, Op, Ssd, StateLength, Time};
use flashtwin_sim::{
    precondition_by_load, size_text, Drivable, Figure, InitialState, Outcome, Precondition,
    RunInfo, Summary,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::columns::{self, Slices};
use crate::control::Control;
use crate::errors::{error, of_json, of_sim, of_spec, DeviceError, FlashtwinError};
use crate::log::logging;
use crate::options::{describe, length, RunOptions};
use crate::user::{Failure, UserPolicy};
use crate::user_placement;
use crate::workload::Workload;

/// Names of the devices that come with flashtwin.
#[pyfunction]
pub fn device_names() -> Vec<&'static str> {
    builtin_names().chain(builtin_array_names()).collect()
}

/// A device's specification, checked as a whole.
#[pyclass(frozen, module = "flashtwin._core")]
pub struct Spec(Kind);

enum Kind {
    Ssd(Box<DeviceSpec>),
    Array(Box<ArraySpec>),
}

impl Spec {
    /// Returns the specification of an SSD. For an array, fails with a message that names `what` as the operation that
    /// needs a single SSD.
    pub fn ssd(&self, what: &str) -> PyResult<&DeviceSpec> {
        match &self.0 {
            Kind::Ssd(spec) => Ok(spec),
            Kind::Array(spec) => Err(DeviceError::new_err(format!(
                "{} is an array; {what} needs a single SSD: try one of its members, {}",
                spec.name, spec.members[0].name
            ))),
        }
    }

    fn buffer(&self) -> Option<&flashtwin::spec::Buffer> {
        match &self.0 {
            Kind::Ssd(spec) => spec.buffer.as_ref(),
            Kind::Array(spec) => spec.buffer.as_ref(),
        }
    }

    pub fn page_bytes(&self) -> u32 {
        match &self.0 {
            Kind::Ssd(spec) => spec.geometry.page_bytes,
            Kind::Array(spec) => spec.page_bytes(),
        }
    }
}

#[pymethods]
impl Spec {
    /// Reads the device that the TOML `text` describes. `origin` is the name of the text in messages. If
    /// `array.members` contains paths of device files, calls `read_member` for each. `read_member` receives the path,
    /// and whether an override gave the path. It must return the origin and the text of that file.
    #[staticmethod]
    #[pyo3(signature = (text, origin, overrides, read_member=None))]
    fn parse(
        text: &str,
        origin: &str,
        overrides: Vec<(String, String)>,
        read_member: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Spec> {
        let overrides: Vec<(&str, &str)> = overrides
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        let kind = if is_array(text) {
            let array = match read_member {
                None => ArraySpec::with_overrides(text, origin, &overrides),
                Some(call) => {
                    let read = |path: &str, by_override: bool| -> Result<MemberFile, String> {
                        let file = call.call1((path, by_override));
                        let file = file.and_then(|file| file.extract());
                        let (origin, text) = file.map_err(|e| e.value(call.py()).to_string())?;
                        Ok(MemberFile { origin, text })
                    };
                    ArraySpec::with_files(text, origin, &overrides, &read)
                }
            };
            array.map(|s| Kind::Array(Box::new(s)))
        } else {
            DeviceSpec::with_overrides(text, origin, &overrides).map(|s| Kind::Ssd(Box::new(s)))
        };
        kind.map(Spec).map_err(of_spec)
    }

    /// Returns the TOML text of a device profile that is part of flashtwin.
    #[staticmethod]
    fn builtin_text(name: &str) -> PyResult<&'static str> {
        builtin(name)
            .or_else(|| builtin_array(name))
            .ok_or_else(|| {
                let known = device_names();
                let known = known.join(", ");
                DeviceError::new_err(format!(
                    "no device is called \"{}\"; known: {known}",
                    name.escape_debug()
                ))
            })
    }

    /// Returns the whole device as TOML.
    fn to_toml(&self) -> String {
        match &self.0 {
            Kind::Ssd(spec) => spec.to_toml(),
            Kind::Array(spec) => spec.to_toml(),
        }
    }

    #[getter]
    fn name(&self) -> &str {
        match &self.0 {
            Kind::Ssd(spec) => &spec.name,
            Kind::Array(spec) => &spec.name,
        }
    }

    #[getter]
    fn description(&self) -> &str {
        match &self.0 {
            Kind::Ssd(spec) => &spec.description,
            Kind::Array(spec) => &spec.description,
        }
    }

    /// Returns the number of members of the array; 0 for a single SSD.
    #[getter]
    fn members(&self) -> usize {
        match &self.0 {
            Kind::Ssd(_) => 0,
            Kind::Array(spec) => spec.members.len(),
        }
    }

    #[getter]
    fn chips(&self) -> u32 {
        match &self.0 {
            Kind::Ssd(spec) => spec.geometry.chips,
            Kind::Array(spec) => spec.members.iter().map(|m| m.geometry.chips).sum(),
        }
    }

    #[getter]
    fn raw_bytes(&self) -> u64 {
        match &self.0 {
            Kind::Ssd(spec) => spec.raw_bytes(),
            Kind::Array(spec) => spec.members.iter().map(DeviceSpec::raw_bytes).sum(),
        }
    }

    #[getter]
    fn exported_bytes(&self) -> u64 {
        match &self.0 {
            Kind::Ssd(spec) => spec.exported_bytes(),
            Kind::Array(spec) => spec.exported_bytes(),
        }
    }

    /// Returns the smallest amount of memory, in bytes, that a simulation of the device needs.
    #[getter]
    fn tables_bytes(&self) -> u64 {
        match &self.0 {
            Kind::Ssd(spec) => spec.tables_bytes(),
            Kind::Array(spec) => spec.members.iter().map(DeviceSpec::tables_bytes).sum(),
        }
    }

    /// Returns the keys of the flash, with their values, of a device with about 1/`factor` of the blocks and the same
    /// ratios. For an array, the keys of its first member. `None` if the device would have too few blocks.
    fn smaller(&self, factor: u32) -> Option<Vec<(&'static str, f64)>> {
        let spec = match &self.0 {
            Kind::Ssd(spec) => spec.as_ref(),
            Kind::Array(spec) => spec.members.first()?,
        };
        let smaller = spec.smaller(factor)?;
        Some(smaller.keys().collect())
    }

    #[getter]
    fn buffer_pages(&self) -> u32 {
        self.buffer().map_or(0, |b| b.capacity_pages)
    }

    #[getter]
    fn buffer_bytes(&self) -> u64 {
        u64::from(self.buffer_pages()) * u64::from(self.page_bytes())
    }

    /// Returns the number of spare blocks of each pool (a plane or a chip); `None` for an array.
    #[getter]
    fn spare_blocks(&self) -> Option<u32> {
        match &self.0 {
            Kind::Ssd(spec) => Some(spec.spare_blocks_pool()),
            Kind::Array(_) => None,
        }
    }

    /// Whether the device can separate the pages that the buffer policy calls hot from other pages. Devices that write
    /// by units (blocks that are erased together) always can.
    #[getter]
    fn takes_streams(&self) -> bool {
        match &self.0 {
            Kind::Ssd(spec) => spec.policy_separates() || spec.placement.is_some(),
            Kind::Array(_) => false,
        }
    }

    /// Returns the buffer's policy; `None` without a buffer.
    #[getter]
    fn policy(&self) -> Option<String> {
        self.buffer().map(|b| b.policy.name())
    }

    /// Returns the published figures of the device: their source, and their names and values.
    #[getter]
    fn published(&self) -> PyResult<(&str, Vec<(&'static str, f64)>)> {
        let published = &self.ssd("a check against published figures")?.published;
        Ok((&published.source, published.figures.clone()))
    }

    /// Measures the performance figures that data sheets state. Returns `None` if `control` stopped the measurement.
    fn measure(&self, py: Python<'_>, control: &Control) -> PyResult<Option<Vec<Figure>>> {
        let (spec, control) = (self.ssd("a check against published figures")?, &control.0);
        py.detach(|| flashtwin_sim::measure(spec, control))
            .map_err(of_sim)
    }

    #[getter]
    fn backend(&self) -> &'static str {
        let of = |spec: &DeviceSpec| match spec.nand {
            flashtwin::spec::Nand::Msr(_) => "msr",
            flashtwin::spec::Nand::Modern(_) => "modern",
        };
        match &self.0 {
            Kind::Ssd(spec) => of(spec),
            Kind::Array(_) => "array",
        }
    }

    /// Returns a one-line description with the kind of the device, its size and its buffer.
    #[getter]
    fn in_words(&self) -> String {
        let what = match self.members() {
            0 => format!("{} back end", self.backend()),
            n => format!("{n} members"),
        };
        let buffer = match self.policy() {
            Some(policy) => format!("{} buffer, {policy}", size_text(self.buffer_bytes())),
            None => "no buffer".to_owned(),
        };
        format!(
            "{what}, {} chips, exports {} of {}, {buffer}",
            self.chips(),
            size_text(self.exported_bytes()),
            size_text(self.raw_bytes())
        )
    }

    fn __repr__(&self) -> String {
        format!("Spec({}: {})", self.name(), self.in_words())
    }
}

/// A device with its state.
#[pyclass(module = "flashtwin._core")]
pub struct Device {
    state: State,
    /// Failure of the user's policy or placement rules; `None` if the device uses no code of the user.
    failure: Option<Arc<Failure>>,
}

enum State {
    Ssd(Box<Ssd>),
    Array(Box<Array>),
}

/// Runs the same code for an SSD or an array, whichever the device is.
macro_rules! either {
    ($state:expr, $device:ident => $body:expr) => {
        match $state {
            State::Ssd($device) => $body,
            State::Array($device) => $body,
        }
    };
}

impl State {
    fn new(spec: &Kind, policy: Option<Box<dyn flashtwin::buffer::UserPolicy>>) -> State {
        match (spec, policy) {
            (Kind::Ssd(spec), None) => State::Ssd(Box::new(Ssd::new(spec))),
            (Kind::Ssd(spec), Some(p)) => State::Ssd(Box::new(Ssd::with_policy(spec, p))),
            (Kind::Array(spec), None) => State::Array(Box::new(Array::new(spec))),
            (Kind::Array(spec), Some(p)) => State::Array(Box::new(Array::with_policy(spec, p))),
        }
    }

    fn flash_bytes(&self) -> Result<Vec<u8>, String> {
        // The buffer is created with its final size, because a growing buffer is copied each time its size doubles.
        let mut length = StateLength::default();
        either!(self, device => device.save_state(&mut length)).map_err(|e| e.to_string())?;
        let mut bytes = Vec::with_capacity(length.bytes as usize);
        either!(self, device => device.save_state(&mut bytes)).map_err(|e| e.to_string())?;
        Ok(bytes)
    }

    fn load_flash(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        let loaded = either!(self, device => device.load_state(&mut bytes));
        loaded.map_err(|e| e.to_string())?;
        match bytes.len() {
            0 => Ok(()),
            left => Err(format!("{left} bytes too many: it is of another device")),
        }
    }
}

fn of_state(message: String) -> PyErr {
    FlashtwinError::new_err(format!("cannot copy the state of a device: {message}"))
}

/// Runs work that may call code of the user. If that code fails, the work is stopped, and the exception is raised after
/// its end.
fn watched<T>(
    failure: Option<&Failure>,
    control: &Control,
    work: impl FnOnce() -> T,
) -> PyResult<T> {
    if let Some(failure) = failure {
        failure.stops(&control.0);
    }
    let done = work();
    match failure.and_then(Failure::take) {
        Some(e) => Err(e),
        None => Ok(done),
    }
}

/// Result of a run, in this order:
///
/// - the summary, as JSON and as text
/// - the histograms of the response times of reads, of writes, and of both
/// - if requested: the garbage collections of the members of an array, as columns
/// - if requested: the history, as JSON
/// - if requested: the timeline, consisting of the trace, its slices, and the time in seconds at which it became full
/// - the wall-clock time in seconds of the warm-up and of the measured run
/// - the names of the code paths in use at the end, such as the fast path
type RunResult = (
    String,
    String,
    [Vec<(u64, u64)>; 3],
    Option<Py<PyDict>>,
    Option<String>,
    Option<(Py<PyBytes>, Slices, Option<f64>)>,
    (f64, f64),
    String,
);

#[pymethods]
impl Device {
    /// Creates a device that was never written. `scheme` and `victim`, if given, are placement rules of the user.
    #[new]
    #[pyo3(signature = (spec, scheme=None, victim=None))]
    fn new(
        py: Python<'_>,
        spec: &Spec,
        scheme: Option<Bound<'_, PyAny>>,
        victim: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Device> {
        let mut state = py.detach(|| State::new(&spec.0, None));
        if scheme.is_none() && victim.is_none() {
            return Ok(Device {
                state,
                failure: None,
            });
        }
        let failure = Arc::new(Failure::default());
        let rules = user_placement::rules(py, scheme, victim, &failure)?;
        let State::Ssd(ssd) = &mut state else {
            return Err(error("an array has no placement rules"));
        };
        ssd.set_rules(rules).map_err(error)?;
        Ok(Device {
            state,
            failure: Some(failure),
        })
    }

    /// Puts the device into the initial state that the text `kind` names. Returns false if `control` stopped the work.
    fn precondition(
        &mut self,
        py: Python<'_>,
        kind: &str,
        seed: u64,
        control: &Control,
    ) -> PyResult<bool> {
        let kind = InitialState::from_str(kind).map_err(of_sim)?.flash;
        let state = &mut self.state;
        let done = watched(self.failure.as_deref(), control, || {
            py.detach(
                || either!(state, device => flashtwin_sim::precondition(device, kind, seed, &control.0)),
            )
        })?;
        done.map_err(of_sim)
    }

    /// Puts a device that writes by units (blocks that are erased together) into the initial state that the text `kind`
    /// names, by writing `fill` and then `load`. Returns false if `control` stopped the work.
    fn precondition_by_load(
        &mut self,
        py: Python<'_>,
        kind: &str,
        fill: &Workload,
        load: &Workload,
        control: &Control,
    ) -> PyResult<bool> {
        let times = match InitialState::from_str(kind).map_err(of_sim)?.flash {
            Precondition::Load { times } => times,
            other => return Err(error(format!("precondition {other}: has no load"))),
        };
        let (mut fill, mut load) = (fill.lock()?, load.lock()?);
        let (fill, load) = (fill.as_mut(), load.as_mut());
        let state = &mut self.state;
        let done = watched(self.failure.as_deref(), control, || {
            py.detach(|| {
                either!(state, device => precondition_by_load(device, times, fill, load, &control.0))
            })
        })?;
        done.map_err(of_sim)
    }

    /// Fills the buffer, if it is full in the initial state that the text `kind` names. Returns false if `control`
    /// stopped the work.
    fn fill_buffer(
        &mut self,
        py: Python<'_>,
        kind: &str,
        seed: u64,
        control: &Control,
    ) -> PyResult<bool> {
        if !InitialState::from_str(kind).map_err(of_sim)?.buffer_full {
            return Ok(true);
        }
        if let Some(failure) = &self.failure {
            failure.stops(&control.0);
        }
        let (state, control) = (&mut self.state, &control.0);
        let filled = py
            .detach(|| either!(state, device => flashtwin_sim::fill_buffer(device, seed, control)));
        match self.failure.as_ref().and_then(|failure| failure.take()) {
            Some(e) => Err(e),
            None => filled.map_err(of_sim),
        }
    }

    /// Writes the state of the flash to a file. `made_by` is a line that describes the origin of the state.
    fn save_snapshot(&self, py: Python<'_>, path: PathBuf, made_by: &str) -> PyResult<()> {
        let state = &self.state;
        py.detach(|| either!(state, device => flashtwin_sim::save_snapshot(&path, device, made_by)))
            .map_err(of_sim)
    }

    /// Loads a snapshot that was saved from the same flash. Returns the description of its origin.
    fn load_snapshot(&mut self, py: Python<'_>, path: PathBuf) -> PyResult<String> {
        let state = &mut self.state;
        py.detach(|| either!(state, device => flashtwin_sim::load_snapshot(&path, device)))
            .map_err(of_sim)
    }

    /// Returns the state of the flash as bytes. `load_state` of a device with the same flash accepts them.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let from = &self.state;
        let bytes = py.detach(|| from.flash_bytes()).map_err(of_state)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Loads the state of the flash from bytes that `state` returned. The buffers of the two devices may differ.
    fn load_state(&mut self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        let to = &mut self.state;
        py.detach(|| to.load_flash(bytes)).map_err(of_state)
    }

    /// Returns a new device of `spec` with the state of this device's flash. The flash of the two devices must be the
    /// same; their buffers may differ. `user` replaces the policy that `spec` names.
    fn fork(&self, py: Python<'_>, spec: &Spec, user: Option<&UserPolicy>) -> PyResult<Device> {
        let (from, spec) = (&self.state, &spec.0);
        let policy = user.map(UserPolicy::boxed);
        let forked = py.detach(|| {
            let mut state = State::new(spec, policy);
            state.load_flash(&from.flash_bytes()?)?;
            Ok(state)
        });
        let state = forked.map_err(of_state)?;
        Ok(Device {
            state,
            failure: user.map(|user| user.failure.clone()),
        })
    }

    /// Runs a workload. The device begins in the state in which the previous run left it. Requests are submitted for at
    /// most `span_max_s`. `sink` is called on another thread with the measured completions, as dicts of columns.
    /// `label`, if given, is the name of the policy in the results.
    #[pyo3(signature = (workload, control, options, *, span_max_s=None, label=None, sink=None))]
    #[allow(clippy::too_many_arguments)] // Keywords of one call from Python.
    fn run(
        &mut self,
        py: Python<'_>,
        workload: &Workload,
        control: &Control,
        options: RunOptions,
        span_max_s: Option<f64>,
        label: Option<String>,
        sink: Option<Py<PyAny>>,
    ) -> PyResult<RunResult> {
        let config = options.config(span_max_s)?;
        if let Some(failure) = &self.failure {
            failure.stops(&control.0);
        }
        let (state, control) = (&mut self.state, &control.0);
        let mut requests = workload.lock()?;
        let requests: &mut dyn flashtwin_workload::Workload = &mut **requests;
        let began = Instant::now();
        let (outcome, raised) = py.detach(|| {
            let mut run = |take: Option<&mut flashtwin_sim::Sink>| {
                either!(state, device => flashtwin_sim::run(device, requests, &config, control, take))
            };
            match &sink {
                Some(sink) => logging(sink, |take| run(Some(take))),
                None => (run(None), Ok(())),
            }
        });
        let failed = self.failure.as_ref().and_then(|failure| failure.take());
        if let Some(e) = failed.or(raised.err()) {
            return Err(e);
        }
        let outcome = outcome.map_err(of_sim)?;
        let measured_s = control.began().map_or(0.0, |at| at.elapsed().as_secs_f64());
        let warmup_s = began.elapsed().as_secs_f64() - measured_s;
        let info = RunInfo {
            workload: requests.describe(),
            warnings: requests.warnings(),
            precondition: options.precondition,
            pacing: describe(&config),
            seed: options.seed,
        };
        let mut summary = either!(state, device => summary(device, &outcome, &info));
        if let Some(label) = label {
            summary.policy = label;
        }
        let gc_timeline = config.gc_timeline;
        let took_s = (warmup_s, measured_s);
        result(py, &summary, outcome, gc_timeline, took_s, control.path())
    }

    /// Runs several clients at once. The device begins in the state in which the previous run left it. Each client has
    /// a load and a limit on its requests in flight. Returns:
    ///
    /// - for each client and each equal part of the span, the histograms of its reads and of its writes
    /// - the number of bytes that the host wrote
    /// - the number of bytes that were written to flash
    /// - whether the run reached its end
    #[allow(clippy::too_many_arguments)] // Keywords of one call from Python.
    fn run_clients(
        &mut self,
        py: Python<'_>,
        clients: Vec<(PyRef<'_, Workload>, u32)>,
        control: &Control,
        warm_s: f64,
        span_s: f64,
        parts: u32,
        behind_max_s: f64,
    ) -> PyResult<ClientsResult> {
        let plan = flashtwin_sim::ClientsPlan {
            warm: length("warm-up", warm_s)?,
            span: length("span", span_s)?,
            parts,
            behind_max: length("backlog", behind_max_s)?,
        };
        let mut locked = Vec::with_capacity(clients.len());
        for (workload, in_flight_max) in &clients {
            locked.push((workload.lock()?, *in_flight_max));
        }
        let mut clients: Vec<_> = locked
            .iter_mut()
            .map(|(load, in_flight_max)| flashtwin_sim::Client {
                load: load.as_mut(),
                in_flight_max: *in_flight_max,
            })
            .collect();
        let (state, control) = (&mut self.state, &control.0);
        let outcome = py
            .detach(|| {
                either!(state, device => flashtwin_sim::run_clients(device, &mut clients, &plan, control))
            })
            .map_err(of_sim)?;
        let of_part = |part: &flashtwin_sim::ClientPart| {
            let both = [&part.reads, &part.writes];
            both.map(columns::of_histogram).into()
        };
        let of_client = |parts: &Vec<_>| parts.iter().map(of_part).collect();
        let histograms = outcome.clients.iter().map(of_client);
        Ok((
            histograms.collect(),
            outcome.host_bytes,
            outcome.media_bytes,
            !outcome.interrupted,
        ))
    }
}

/// Histograms of reads and of writes. Each is a list of pairs of a response time in ns and a number of requests.
type Histograms = (Vec<(u64, u64)>, Vec<(u64, u64)>);

/// For each client, the histograms of each part; the bytes written by the host; the bytes written to flash; and whether
/// the run reached its end.
type ClientsResult = (Vec<Vec<Histograms>>, u64, u64, bool);

fn result(
    py: Python<'_>,
    summary: &Summary,
    outcome: Outcome,
    gc_timeline: bool,
    took_s: (f64, f64),
    path: String,
) -> PyResult<RunResult> {
    let m = &outcome.metrics;
    let histograms =
        [m.op(Op::Read), m.op(Op::Write), &m.reads_and_writes()].map(columns::of_histogram);
    let gc_intervals = gc_timeline
        .then(|| columns::of_gc_intervals(py, &outcome.gc_intervals).map(Bound::unbind))
        .transpose()?;
    let history = outcome.history.as_ref().map(serde_json::to_string);
    let timeline = outcome.timeline.map(|mut timeline| {
        let trace = PyBytes::new(py, &std::mem::take(&mut timeline.trace)).unbind();
        let cut_at_s = timeline.cut_at.map(Time::as_s);
        (trace, Slices(timeline), cut_at_s)
    });
    Ok((
        serde_json::to_string(summary).map_err(of_json)?,
        summary.to_string(),
        histograms,
        gc_intervals,
        history.transpose().map_err(of_json)?,
        timeline,
        took_s,
        path,
    ))
}

fn summary<S: Drivable>(device: &AnyDevice<S>, outcome: &Outcome, info: &RunInfo) -> Summary {
    Summary::new(device, outcome, info)
}
