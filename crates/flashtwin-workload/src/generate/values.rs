//! Values of the short text form: numbers with suffixes, bytes, parts of a device, rates and spans of time.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::error::{ErrorKind, WorkloadError};

/// A part of a device: a number of bytes, or a percentage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// Bytes.
    Bytes(u64),
    /// A percentage of the whole, from 0 to 100.
    Percent(f64),
}

impl Part {
    /// Returns the size of this part of `whole` bytes.
    fn bytes_of(self, whole: u64) -> Result<u64, WorkloadError> {
        match self {
            Part::Bytes(bytes) => Ok(bytes),
            Part::Percent(p) if (0.0..=100.0).contains(&p) => {
                Ok((whole as f64 * (p / 100.0)) as u64)
            }
            Part::Percent(p) => wrong(format!("range: {p}%: must be from 0 % to 100 %")),
        }
    }
}

/// A range of a device, with a start and an end. The texts `50%` and `300M` are ranges from the start of the device. In
/// TOML, a range is a number of bytes or a text such as `"50%"` or `"10%..90%"`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RangeText", into = "RangeText")]
pub struct Range {
    /// Bytes before the range.
    pub start: Part,
    /// End of the range, measured from the start of the device.
    pub end: Part,
}

impl Range {
    /// Creates a range from the start of a device to `end`.
    pub const fn up_to(end: Part) -> Self {
        Range {
            start: Part::Bytes(0),
            end,
        }
    }

    /// Returns the first byte of the range, a multiple of `alignment`, and the length of the range in bytes. Bounds in
    /// percent are rounded down to the alignment, so that adjacent ranges neither overlap nor leave a gap.
    pub(crate) fn of(self, whole: u64, alignment: u64) -> Result<(u64, u64), WorkloadError> {
        let start = self.start.bytes_of(whole)?;
        let first = match self.start {
            Part::Bytes(_) => start.next_multiple_of(alignment),
            Part::Percent(_) => start / alignment * alignment,
        };
        let end = self.end.bytes_of(whole)?;
        if end > whole {
            return wrong(format!(
                "range: {end} bytes is more than the {whole} bytes there are"
            ));
        }
        if end <= first {
            return wrong(format!(
                "range: {self}: the end (byte {end}) must be after the start (byte {first})"
            ));
        }
        Ok((first, end - first))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Bytes(bytes) => write!(f, "{bytes}"),
            Part::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.start {
            Part::Bytes(0) => write!(f, "{}", self.end),
            start => write!(f, "{start}..{}", self.end),
        }
    }
}

/// Form of a `Range` in TOML and JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum RangeText {
    Bytes(u64),
    Text(String),
}

impl TryFrom<RangeText> for Range {
    type Error = WorkloadError;
    fn try_from(text: RangeText) -> Result<Self, WorkloadError> {
        match text {
            RangeText::Bytes(bytes) => Ok(Range::up_to(Part::Bytes(bytes))),
            RangeText::Text(text) => range("range", &text),
        }
    }
}

impl From<Range> for RangeText {
    fn from(range: Range) -> Self {
        match (range.start, range.end) {
            (Part::Bytes(0), Part::Bytes(bytes)) => RangeText::Bytes(bytes),
            _ => RangeText::Text(range.to_string()),
        }
    }
}

/// Returns the error for a parameter with a wrong value.
pub(crate) fn wrong<T>(text: String) -> Result<T, WorkloadError> {
    Err(WorkloadError::new(ErrorKind::Option, text))
}

/// Parses a plain number such as `0.7` or `1e6`.
pub(crate) fn number(key: &str, value: &str) -> Result<f64, WorkloadError> {
    match value.parse::<f64>() {
        Ok(v) if v.is_finite() && !value.starts_with('+') => Ok(v),
        _ => wrong(format!(
            "{key}={value}: a number is expected, like 0.7 or 1e6"
        )),
    }
}

/// Parses a count or a rate: a number with a decimal suffix k, M or G.
pub(crate) fn count(key: &str, value: &str) -> Result<f64, WorkloadError> {
    let (digits, factor) = suffix(value, 1000.0);
    match number(key, digits) {
        Ok(v) if v >= 0.0 => Ok(v * factor),
        _ => wrong(format!(
            "{key}={value}: a number is expected, like 1e6 or 20k (k, M, G are decimal)"
        )),
    }
}

/// Parses a number of bytes with a binary suffix k, M, G or T.
pub(crate) fn bytes(key: &str, value: &str) -> Result<u64, WorkloadError> {
    let bare = value
        .strip_suffix("iB")
        .or_else(|| value.strip_suffix('B'))
        .unwrap_or(value);
    let (digits, factor) = suffix(bare, 1024.0);
    match digits.parse::<f64>() {
        Ok(v)
            if (0.0..=(1u64 << 62) as f64).contains(&(v * factor))
                && (v * factor).fract() == 0.0 =>
        {
            Ok((v * factor) as u64)
        }
        _ => wrong(format!(
            "{key}={value}: bytes are expected, like 4096, 4k or 1.5G (k = 1024)"
        )),
    }
}

/// Parses a part of a device: a number of bytes, or a percentage such as `50%`.
fn part(key: &str, value: &str) -> Result<Part, WorkloadError> {
    let Some(percent) = value.strip_suffix('%') else {
        return Ok(Part::Bytes(bytes(key, value)?));
    };
    match percent.trim_end().parse::<f64>() {
        Ok(p) if (0.0..=100.0).contains(&p) => Ok(Part::Percent(p)),
        _ => wrong(format!(
            "{key}={value}: must be above 0 % and at most 100 %, like 50%"
        )),
    }
}

/// Parses a range of a device, such as `50%`, `300M`, `10%..90%` or `1G..2G`.
pub(crate) fn range(key: &str, value: &str) -> Result<Range, WorkloadError> {
    let (start, end) = match value.split_once("..") {
        Some((start, end)) => (part(key, start)?, part(key, end)?),
        None => (Part::Bytes(0), part(key, value)?),
    };
    if let Part::Percent(0.0) = end {
        return wrong(format!(
            "{key}={value}: must be above 0 % and at most 100 %, like 50%"
        ));
    }
    // 0 % and 0 bytes both denote the start of the device. With a single form, equal ranges compare as equal.
    let start = match start {
        Part::Percent(0.0) => Part::Bytes(0),
        other => other,
    };
    Ok(Range { start, end })
}

/// Parses `true` or `false`.
pub(crate) fn flag(key: &str, value: &str) -> Result<bool, WorkloadError> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => wrong(format!("{key}={value}: true or false is expected")),
    }
}

fn suffix(value: &str, step: f64) -> (&str, f64) {
    let power = match value.as_bytes().last() {
        Some(b'k' | b'K') => 1,
        Some(b'm' | b'M') => 2,
        Some(b'g' | b'G') => 3,
        Some(b't' | b'T') => 4,
        _ => return (value, 1.0),
    };
    (&value[..value.len() - 1], step.powi(power))
}

/// Parses requests per second, such as `20k/s`, `20/ms` or `20000`.
pub(crate) fn rate(key: &str, value: &str) -> Result<f64, WorkloadError> {
    let (amount, per) = match value.split_once('/') {
        None | Some((_, "s")) => (value.split('/').next().unwrap_or(value), 1.0),
        Some((amount, "ms")) => (amount, 1e3),
        Some((amount, "us")) => (amount, 1e6),
        Some(_) => {
            return wrong(format!(
                "{key}={value}: a rate is expected, like 20k/s, 20/ms or 20000"
            ))
        }
    };
    Ok(count(key, amount)? * per)
}

/// Parses an interval. Returns the corresponding rate: 250 per second for `4ms`.
pub(crate) fn interval(key: &str, value: &str) -> Result<f64, WorkloadError> {
    span(key, value).map(|(units, units_per_s)| units_per_s / units)
}

/// Parses a time and returns it in seconds.
pub(crate) fn seconds(key: &str, value: &str) -> Result<f64, WorkloadError> {
    span(key, value).map(|(units, units_per_s)| units / units_per_s)
}

/// Parses a time above 0. Returns a number of units, and how many of these units are a second.
fn span(key: &str, value: &str) -> Result<(f64, f64), WorkloadError> {
    let units = [("ns", 1e9), ("us", 1e6), ("ms", 1e3), ("s", 1.0)];
    let unit = units
        .iter()
        .find_map(|(u, per_s)| value.strip_suffix(u).map(|v| (v, per_s)));
    match unit.map(|(v, per_s)| (v.parse::<f64>(), per_s)) {
        Some((Ok(v), per_s)) if v > 0.0 && v.is_finite() => Ok((v, *per_s)),
        _ => wrong(format!(
            "{key}={value}: a span is expected, like 4ms, 50us, 100ns or 1s"
        )),
    }
}
