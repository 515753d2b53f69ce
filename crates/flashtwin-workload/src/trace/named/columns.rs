//! Reads the option `columns`, and finds the columns that it names in the header of a table.

use std::cell::Cell;

use super::super::dates::Clock;
use super::super::options::{AddressUnit, TimeUnit, TraceOptions};
use super::super::words::Codes;
use super::numbers::number;
use super::{option, Column, Columns, Ops, Times, COLUMNS_MAX, FORM};
use crate::error::{ErrorKind, WorkloadError};

/// Reason why a line cannot be the header.
pub(super) struct Refused {
    /// Whether the line lacks a column.
    pub lacks_column: bool,
    pub error: WorkloadError,
}

impl From<WorkloadError> for Refused {
    fn from(error: WorkloadError) -> Self {
        Refused {
            lacks_column: false,
            error,
        }
    }
}

/// A column named by the option.
struct Found<'a> {
    /// Index of the column, from 0.
    index: usize,
    /// Text after the colon.
    suffix: Option<&'a str>,
    /// Whether the option gives the column by name. Otherwise the option gives the number of the column.
    named: bool,
}

/// Finds the column for one part `key=value` of the option. `header` has the fields of the line in which names are
/// searched, in the file `name`. `line` describes this line in messages.
fn find_column<'a>(
    name: &str,
    key: &str,
    value: &'a str,
    header: &[&[u8]],
    line: &str,
) -> Result<Found<'a>, Refused> {
    // A colon ends the name of the column, but names may also contain colons. Therefore the name is the longest text
    // before a colon that is in the header.
    let is_column = |text: &str| header.contains(&text.as_bytes());
    let mut colons = value.rmatch_indices(':').map(|(at, _)| at);
    let cut = match colons.find(|&at| is_column(&value[..at])) {
        _ if is_column(value) => None,
        Some(at) => Some(at),
        None => value.find(':'),
    };
    let (column, suffix) = match cut {
        Some(at) => (&value[..at], Some(&value[at + 1..])),
        None => (value, None),
    };
    // If the text consists of digits, it is the number of a column, counted from 1. Otherwise it must be a name in the
    // header.
    let counted = !column.is_empty() && column.bytes().all(|b| b.is_ascii_digit());
    let index = if counted {
        column.parse::<usize>().ok().and_then(|n| n.checked_sub(1))
    } else {
        header.iter().position(|h| *h == column.as_bytes())
    };
    match index.filter(|&i| i < COLUMNS_MAX) {
        Some(index) => Ok(Found {
            index,
            suffix,
            named: !counted,
        }),
        None => {
            let text =
                format!("{name}: columns: {key}={value}: there is no column \"{column}\"; {line}");
            Err(Refused {
                lacks_column: true,
                error: WorkloadError::new(ErrorKind::Option, text),
            })
        }
    }
}

/// Splits the option at commas into its parts. A part without a key continues the list of codes of the previous part,
/// like `8a` in `op=type:write=2a,8a`.
pub(super) fn parts(columns: &str) -> Result<Vec<(&str, String)>, WorkloadError> {
    let mut parts: Vec<(&str, String)> = Vec::new();
    for part in columns.split(',') {
        match (part.trim().split_once('='), parts.last_mut()) {
            (Some((key, value)), _) if !key.contains(':') => {
                parts.push((key, value.to_string()));
            }
            (_, Some(("op", value))) if value.contains('=') => {
                value.push('|');
                value.push_str(part.trim());
            }
            _ => return option(format!("columns: \"{part}\" is no key=column; {FORM}")),
        }
    }
    Ok(parts)
}

/// Reads the unit of a time column. The word `hex`, for hexadecimal numbers, may precede or follow the unit.
fn time_column(
    key: &str,
    value: &str,
    found: &Found<'_>,
    opts: &TraceOptions,
) -> Result<Column, WorkloadError> {
    let (hex, unit) = without_hex(found.suffix);
    let unit = match (unit, opts.time_unit) {
        (Some(unit), None) => unit.parse::<TimeUnit>().map_err(|e| {
            let text = e.to_string() + ", datetime (dates and times of day)";
            WorkloadError::new(ErrorKind::Option, text)
        })?,
        (None, Some(unit)) => unit,
        (Some(unit), Some(given)) => {
            return option(format!(
                "columns: {key}={value} has the unit {unit}, and time_unit (--time-unit) is {given}; leave one out"
            ))
        }
        (None, None) => {
            return option(format!(
                "columns: {key}={value}: the unit is missing, like {key}={value}:us"
            ))
        }
    };
    Ok(Column {
        index: found.index,
        unit: unit.ps(),
        hex,
    })
}

/// Removes the word `hex` from the text after a colon. Returns whether the word was there, and the remaining text.
fn without_hex(suffix: Option<&str>) -> (bool, Option<&str>) {
    match suffix {
        Some("hex") => (true, None),
        Some(text) => match text.strip_suffix(":hex").or(text.strip_prefix("hex:")) {
            Some(unit) => (true, Some(unit)),
            None => (false, Some(text)),
        },
        None => (false, None),
    }
}

impl Columns {
    /// Reads the option, and finds its columns in a line of the file `name`. `header` has the fields of this line.
    pub(super) fn find(
        parts: &[(&str, String)],
        opts: &TraceOptions,
        name: &str,
        header: &[&[u8]],
        line: &str,
    ) -> Result<Self, Refused> {
        let (mut times, mut offset, mut size) = (None, None, None);
        let (mut ops, mut volume, mut placement) = (None, None, None);
        let mut named = false;
        // The option `address_unit` applies to columns for which no unit is given.
        let unused = Cell::new(opts.address_unit);
        for (key, value) in parts {
            let known = match *key {
                "time" | "gap" => times.is_some(),
                "offset" => offset.is_some(),
                "size" => size.is_some(),
                "op" => ops.is_some(),
                "placement" => placement.is_some(),
                _ => volume.is_some(),
            };
            if known {
                let same_key = parts.iter().filter(|(other, _)| other == key).count() > 1;
                return option(match same_key {
                    true => format!("columns: {key} is given twice; leave one out"),
                    false => "columns: time and gap are given; leave one out".into(),
                });
            }
            let found = find_column(name, key, value, header, line)?;
            named |= found.named;
            let index = found.index;
            let in_bytes = || -> Result<Column, WorkloadError> {
                let (hex, unit) = without_hex(found.suffix);
                let unit = match unit {
                    Some(unit) => unit.parse()?,
                    None => unused
                        .take()
                        .or(opts.address_unit)
                        .unwrap_or(AddressUnit::BYTES),
                };
                Ok(Column {
                    index,
                    unit: unit.bytes(),
                    hex,
                })
            };
            match *key {
                "time" if found.suffix == Some("datetime") => {
                    if let Some(unit) = opts.time_unit {
                        return option(format!(
                            "columns: {key}={value} has dates, and time_unit (--time-unit) is {unit}; leave one out"
                        ));
                    }
                    times = Some(Times::Dates(index, Clock::default()));
                }
                "time" => times = Some(Times::At(time_column(key, value, &found, opts)?)),
                "gap" => times = Some(Times::Gaps(time_column(key, value, &found, opts)?, 0)),
                "offset" => offset = Some(in_bytes()?),
                "size" => size = Some(in_bytes()?),
                "op" => {
                    ops = Some(match found.suffix {
                        None => Ops::Words(index),
                        Some(codes) => Ops::Codes(index, Codes::parse(codes)?),
                    });
                }
                "volume" if found.suffix.is_none() => volume = Some(index),
                "placement" if matches!(found.suffix, None | Some("hex")) => {
                    placement = Some(Column {
                        index,
                        unit: 1,
                        hex: found.suffix.is_some(),
                    });
                }
                _ => {
                    return option(format!(
                        "columns: {key}={value}: known are time, gap, offset, size, op, volume and placement; {FORM}"
                    ))
                }
            }
        }
        let Some(offset) = offset else {
            return option(format!("columns: offset is needed; {FORM}"));
        };
        if let Some(unit) = unused.get() {
            return option(format!(
                "columns: all addresses have units of their own, and address_unit (--address-unit) is {unit}; \
                 leave one out"
            ));
        }
        if times.is_none() && opts.time_unit.is_some() {
            return option(
                "columns: there is no time column; leave time_unit (--time-unit) out".to_string(),
            );
        }
        if size.is_none() && offset.unit == 1 {
            return option(
                "columns: size is missing; name its column, or give the unit of an address if each request is one \
                 such unit, like offset=1:pages"
                    .to_string(),
            );
        }
        Ok(Columns {
            times: times.unwrap_or(Times::None),
            offset,
            size,
            ops: ops.unwrap_or(Ops::Reads),
            volume,
            placement,
            named,
        })
    }

    /// Returns the indices of the columns that are read, in ascending order.
    pub(super) fn used(&self) -> Vec<usize> {
        let time = match &self.times {
            Times::None => None,
            Times::At(column) | Times::Gaps(column, _) => Some(column.index),
            Times::Dates(index, _) => Some(*index),
        };
        let op = match &self.ops {
            Ops::Reads => None,
            Ops::Words(index) | Ops::Codes(index, _) => Some(*index),
        };
        let size = self.size.map(|column| column.index);
        let placement = self.placement.map(|column| column.index);
        let mut used: Vec<usize> = [
            time,
            Some(self.offset.index),
            size,
            op,
            self.volume,
            placement,
        ]
        .into_iter()
        .flatten()
        .collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Whether a line is a request, and not a title: its time is valid or, without a time column, its address.
    pub(super) fn begins(&self, fields: &[&[u8]]) -> bool {
        let at = |index: usize| fields.get(index).copied().unwrap_or(b"");
        let is_number = |column: &Column| number(at(column.index), column.hex).is_some();
        match &self.times {
            Times::None => is_number(&self.offset),
            Times::At(column) | Times::Gaps(column, _) => is_number(column),
            Times::Dates(index, _) => Clock::default().read(at(*index), at(index + 1)).is_some(),
        }
    }
}
