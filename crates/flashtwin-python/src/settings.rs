//! The settings of a run as Python gives them, read.

use flashtwin::Time;
use flashtwin_sim::{Beyond, Fault, FaultKind, Pacing, RunConfig, Speed, Window};
use pyo3::prelude::*;

use crate::errors::{of_sim, FlashtwinError};

/// Either a speed or a queue depth.
pub fn pacing(speed: Option<f64>, queue_depth: Option<u32>) -> PyResult<Pacing> {
    match (speed, queue_depth) {
        (Some(speed), None) => Ok(Pacing::Open {
            speed: Speed::try_from(speed).map_err(of_sim)?,
        }),
        (None, Some(depth)) => Ok(Pacing::Closed { depth }),
        _ => Err(FlashtwinError::new_err(
            "pacing: give either a speed or a queue depth",
        )),
    }
}

/// What is done with a request beyond the device.
pub fn beyond_from(name: &str) -> PyResult<Beyond> {
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

/// A length of virtual time; `what` it is, for messages.
pub fn length(what: &str, seconds: f64) -> PyResult<Time> {
    let ps = (seconds * 1e12).round();
    if !(1.0..=1e19).contains(&ps) {
        return Err(FlashtwinError::new_err(format!(
            "{what} {seconds} s: give a number above 0, such as 1 or 0.1"
        )));
    }
    Ok(Time(ps as u64))
}

/// The window of a timeline: its beginning and its length, in seconds.
pub fn window((from_s, length_s): (f64, f64)) -> PyResult<Window> {
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

/// The pacing in words, for the record.
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
    }
    text
}

/// Instant in seconds, whether the member is replaced (else it fails), and which.
pub fn fault((at_s, replace, member): (f64, bool, usize)) -> PyResult<Fault> {
    let ps = (at_s * 1e12).round();
    if !(0.0..=1e19).contains(&ps) {
        return Err(FlashtwinError::new_err(format!(
            "a fault at {at_s} s: give a number of seconds from 0, as in 10 or 0.5"
        )));
    }
    Ok(Fault {
        at: Time(ps as u64),
        kind: match replace {
            true => FaultKind::Replace,
            false => FaultKind::Fail,
        },
        member,
    })
}
