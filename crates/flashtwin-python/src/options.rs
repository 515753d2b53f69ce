//! The options of a run, as defined in `flashtwin/options.py`, converted from Python.

use flashtwin::Time;
use flashtwin_sim::{Beyond, DriveWrites, Fault, FaultKind, Pacing, RunConfig, Speed, Window};
use pyo3::prelude::*;

use crate::errors::{of_sim, FlashtwinError};

/// The options that affect the simulation, by their names in Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct RunOptions {
    pacing: GivenPacing,
    beyond: String,
    warmup_requests: u64,
    warmup_requests_max: Option<u64>,
    requests_max: Option<u64>,
    /// Smallest and largest length of the run of a repeated workload, in drive writes.
    #[pyo3(default)]
    drive_writes: Option<(f64, f64)>,
    series_s: Option<f64>,
    faults: Vec<GivenFault>,
    gc_timeline: bool,
    history: bool,
    timeline: Option<GivenWindow>,
    check_requests: Option<u64>,
    threads: u32,
    pub precondition: String,
    pub seed: u64,
}

/// The Python class `OpenLoop` or `ClosedLoop`.
#[derive(FromPyObject)]
enum GivenPacing {
    Open { speed: f64 },
    Closed { queue_depth: u32 },
}

/// The Python class `Fail` or `Replace`.
#[derive(FromPyObject)]
struct GivenFault {
    at_s: f64,
    replaces: bool,
    member: usize,
}

/// The Python class `Window`.
#[derive(FromPyObject)]
struct GivenWindow {
    from_s: f64,
    length_s: f64,
}

impl RunOptions {
    /// Returns the configuration of a run that submits requests for at most `span_max_s`.
    pub fn config(&self, span_max_s: Option<f64>) -> PyResult<RunConfig> {
        Ok(RunConfig {
            pacing: match self.pacing {
                GivenPacing::Open { speed } => Pacing::Open {
                    speed: Speed::try_from(speed).map_err(of_sim)?,
                },
                GivenPacing::Closed { queue_depth } => Pacing::Closed { depth: queue_depth },
            },
            beyond: beyond_from(&self.beyond)?,
            warmup_requests: self.warmup_requests,
            warmup_requests_max: self.warmup_requests_max,
            requests_max: self.requests_max,
            drive_writes: self
                .drive_writes
                .map(|(least, most)| DriveWrites { least, most }),
            span_max: span_max_s.map(|s| length("span", s)).transpose()?,
            series_interval: self
                .series_s
                .map(|s| length("series interval", s))
                .transpose()?,
            faults: self.faults.iter().map(fault).collect::<PyResult<_>>()?,
            gc_timeline: self.gc_timeline,
            history: self.history,
            timeline: self.timeline.as_ref().map(window).transpose()?,
            check_requests: self.check_requests,
            threads: self.threads,
            ..RunConfig::default()
        })
    }
}

/// Parses the handling of requests beyond the device.
fn beyond_from(name: &str) -> PyResult<Beyond> {
    match name {
        "error" => Ok(Beyond::Error),
        "wrap" => Ok(Beyond::Wrap),
        "drop" => Ok(Beyond::Drop),
        _ => Err(FlashtwinError::new_err(format!(
            "beyond \"{}\" is unknown; error, wrap and drop are known",
            name.escape_debug()
        ))),
    }
}

/// Converts a span of virtual time from seconds. `what` is the name of the span in messages.
pub fn length(what: &str, seconds: f64) -> PyResult<Time> {
    let ps = (seconds * 1e12).round();
    if !(1.0..=1e19).contains(&ps) {
        return Err(FlashtwinError::new_err(format!(
            "{what} {seconds} s: give a number above 0, such as 1 or 0.1"
        )));
    }
    Ok(Time(ps as u64))
}

fn window(&GivenWindow { from_s, length_s }: &GivenWindow) -> PyResult<Window> {
    let ps = |s: f64| (s * 1e12).round();
    if !(0.0..=1e19).contains(&ps(from_s)) || !(1.0..=1e19).contains(&ps(length_s)) {
        return Err(FlashtwinError::new_err(format!(
            "timeline window of {length_s} s from {from_s} s: give a beginning from 0 and a length \
             above 0, in seconds, as in (10, 0.05)"
        )));
    }
    Ok(Window {
        from: Time(ps(from_s) as u64),
        length: Time(ps(length_s) as u64),
    })
}

/// Returns a description of the pacing for the results.
pub fn describe(config: &RunConfig) -> String {
    let mut text = match config.pacing {
        Pacing::Open {
            speed: Speed::RECORDED,
        } => "open loop at the workload's times".into(),
        Pacing::Open { speed } => format!("open loop at {speed} times the workload's speed"),
        Pacing::Closed { depth } => format!("closed loop at queue depth {depth}"),
    };
    if config.warmup_requests > 0 {
        text.push_str(&format!(
            ", not counting the first {} requests",
            config.warmup_requests
        ));
        if config.warmup_requests_max.is_some() {
            text.push_str(" or more, until it is steady");
        }
    }
    text
}

fn fault(given: &GivenFault) -> PyResult<Fault> {
    let ps = (given.at_s * 1e12).round();
    if !(0.0..=1e19).contains(&ps) {
        return Err(FlashtwinError::new_err(format!(
            "a fault at {} s: give a number of seconds from 0, as in 10 or 0.5",
            given.at_s
        )));
    }
    Ok(Fault {
        at: Time(ps as u64),
        kind: match given.replaces {
            true => FaultKind::Replace,
            false => FaultKind::Fail,
        },
        member: given.member,
    })
}
