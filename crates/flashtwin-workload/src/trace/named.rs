//! Any table of text by named columns: `time=ts:us,offset=lba:sectors,size=len:bytes,op=type`.
//! Columns that are not named are skipped; numbers may be decimals and powers of ten, as
//! programs write that keep columns as floating point.

use flashtwin::Op;
use std::cell::Cell;

use super::collector::Raw;
use super::cursor::Bad;
use super::dates::{self, Clock};
use super::lines::{Line, LineParser};
use super::options::{AddressUnit, TimeUnit, TraceOptions};
use super::words::{word, Action, Codes};
use crate::error::{quote, ErrorKind, WorkloadError};

/// Syntax of the option.
const FORM: &str =
    "columns must be like time=ts:us,offset=lba:sectors,size=len:bytes,op=type, where each \
                    name is a column of the header or its number from 1";
/// Columns of a table that can be named in messages.
const COLUMNS_MAX: usize = 255;
/// Lines at the beginning among which the header is searched.
const TITLES_MAX: usize = 64;

/// A column of numbers.
#[derive(Clone, Copy)]
struct Column {
    /// Index of the column, from 0.
    index: usize,
    /// Picoseconds or bytes in one.
    unit: u64,
    /// Whether its numbers are hexadecimal without `0x`.
    hex: bool,
}

/// Source of the arrival times.
enum Times {
    /// No column: all requests at time 0.
    None,
    At(Column),
    /// The span since the request before, and the sum of all spans so far.
    Gaps(Column, u128),
    /// Dates or times of day in the column of this index.
    Dates(usize, Clock),
}

/// Source of the operations.
enum Ops {
    /// No column: all are reads.
    Reads,
    /// Words such as `R`, `Write`, `trim`.
    Words(usize),
    Codes(usize, Codes),
}

/// The columns of one file.
struct Columns {
    times: Times,
    offset: Column,
    /// `None`: each request has the size of one unit of the offset.
    size: Option<Column>,
    ops: Ops,
    volume: Option<usize>,
    /// Whether a column is named by the header, not by its number.
    named: bool,
}

pub(crate) struct Named {
    separator: u8,
    /// Number of the last line before the first request.
    titles: u64,
    /// Fields of the header or the first line.
    fields: usize,
    columns: Columns,
    /// One past the last column that is read.
    width: usize,
    /// Columns that are read, in order.
    used: Vec<usize>,
}

fn option<T, E: From<WorkloadError>>(text: String) -> Result<T, E> {
    Err(WorkloadError::new(ErrorKind::Option, text).into())
}

/// The fields of a line; quotes around a field are taken off, and a separator within them is text.
pub(crate) fn split(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let line = if separator == b' ' {
            line.trim_ascii_start()
        } else {
            line
        };
        if separator == b' ' && line.is_empty() {
            return None;
        }
        let mut quoted = false;
        let end = line
            .iter()
            .position(|&b| {
                quoted ^= b == b'"';
                !quoted && (b == separator || separator == b' ' && b == b'\t')
            })
            .unwrap_or(line.len());
        rest = line.get(end + 1..);
        let field = line[..end].trim_ascii();
        let bare = field
            .strip_prefix(b"\"")
            .and_then(|f| f.strip_suffix(b"\""));
        Some(bare.unwrap_or(field))
    })
}

/// A non-negative decimal number as digits and a power of ten: `4096`, `4096.0`, `1.5e-05`.
fn decimal(text: &[u8]) -> Option<(u128, i32)> {
    const DIGITS_MAX: u32 = 37;
    let (mantissa, exponent) = match text.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => {
            let exponent = std::str::from_utf8(&text[at + 1..]).ok()?;
            (&text[..at], exponent.parse::<i16>().ok()?)
        }
        None => (text, 0),
    };
    let (mut value, mut power) = (0u128, i32::from(exponent));
    let (mut digits, mut kept, mut fraction) = (0, 0, false);
    for &b in mantissa {
        match b {
            b'.' if !fraction => fraction = true,
            b'0'..=b'9' => {
                digits += 1;
                power -= i32::from(fraction);
                if kept < DIGITS_MAX {
                    value = value * 10 + u128::from(b - b'0');
                    kept += u32::from(value > 0);
                } else {
                    power += 1;
                }
            }
            _ => return None,
        }
    }
    (digits > 0).then_some((value, power))
}

/// A non-negative number as digits and a power of ten: decimal, hexadecimal after `0x`, or all hexadecimal.
fn number(text: &[u8], hex: bool) -> Option<(u128, i32)> {
    const DIGITS_MAX: usize = 16;
    let prefixed = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X"));
    let digits = match prefixed {
        Some(digits) => digits,
        None if hex => text,
        None => return decimal(text),
    };
    let fits = (1..=DIGITS_MAX).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| fits)?;
    Some((u128::from_str_radix(text, 16).ok()?, 0))
}

/// The value of a whole number, however it is written: `1`, `1.0`, `0x1`.
pub(crate) fn whole_number(text: &[u8]) -> Option<u128> {
    let (value, whole) = scaled(number(text, false)?, 1)?;
    whole.then_some(value)
}

/// `number * unit`, cut to whole ones, and whether it was whole; `None` if it is too large.
fn scaled((value, power): (u128, i32), unit: u64) -> Option<(u128, bool)> {
    if value == 0 {
        return Some((0, true));
    }
    if power >= 0 {
        let scale = 10u128.checked_pow(power.unsigned_abs())?;
        let whole = value.checked_mul(scale)?.checked_mul(u128::from(unit))?;
        return Some((whole, true));
    }
    let Some(scale) = 10u128.checked_pow(power.unsigned_abs()) else {
        return Some((0, false));
    };
    // Whole part and remainder apart, so that the product fits.
    let (whole, rest) = (value / scale, value % scale);
    let whole = whole.checked_mul(u128::from(unit))?;
    let (part, exact) = match rest.checked_mul(u128::from(unit)) {
        Some(product) => (product / scale, product % scale == 0),
        None => (rest / (scale / u128::from(unit).max(1)).max(1), false),
    };
    Some((whole.checked_add(part)?, exact))
}

fn separator_of(line: &[u8]) -> u8 {
    [b',', b';', b'\t']
        .into_iter()
        .find(|b| line.contains(b))
        .unwrap_or(b' ')
}

/// Reason why a line cannot be the header.
struct Refused {
    /// Whether it lacks a column.
    lacks_column: bool,
    error: WorkloadError,
}

impl From<WorkloadError> for Refused {
    fn from(error: WorkloadError) -> Self {
        Refused {
            lacks_column: false,
            error,
        }
    }
}

/// A column as the option names it.
struct Found<'a> {
    /// Index of the column, from 0.
    index: usize,
    /// Text after the colon.
    suffix: Option<&'a str>,
    /// Whether the column is named by the header, not by its number.
    named: bool,
}

/// Finds the column of `key=value`; `first` is the line of the file `name` that is split in `header`.
fn find_column<'a>(
    name: &str,
    key: &str,
    value: &'a str,
    header: &[&[u8]],
    first: &[u8],
) -> Result<Found<'a>, Refused> {
    // The longest text before a colon that is a column: names may hold colons.
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
    // Digits count columns, from 1; a name must be in the header.
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
            let text = format!(
                "{name}: columns: {key}={value}: there is no column \"{column}\"; the first line is {}",
                quote(first)
            );
            Err(Refused {
                lacks_column: true,
                error: WorkloadError::new(ErrorKind::Option, text),
            })
        }
    }
}

/// The parts of the option. A part without a key continues the codes before it: `op=type:write=2a,8a`.
fn parts(columns: &str) -> Result<Vec<(&str, String)>, WorkloadError> {
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

/// Reads a unit of times, bare or with `hex`.
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

/// Takes `hex` off the units after a colon.
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
    /// Reads the option and finds its columns in a line of the file `name`, split in `header`.
    fn find(
        parts: &[(&str, String)],
        opts: &TraceOptions,
        name: &str,
        header: &[&[u8]],
        first: &[u8],
    ) -> Result<Self, Refused> {
        let (mut times, mut offset, mut size, mut ops, mut volume) = (None, None, None, None, None);
        let mut named = false;
        // The option for addresses is for columns without a unit of their own.
        let unused = Cell::new(opts.address_unit);
        for (key, value) in parts {
            let known = match *key {
                "time" | "gap" => times.is_some(),
                "offset" => offset.is_some(),
                "size" => size.is_some(),
                "op" => ops.is_some(),
                _ => volume.is_some(),
            };
            if known {
                let same_key = parts.iter().filter(|(other, _)| other == key).count() > 1;
                return option(match same_key {
                    true => format!("columns: {key} is given twice; leave one out"),
                    false => "columns: time and gap are given; leave one out".into(),
                });
            }
            let found = find_column(name, key, value, header, first)?;
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
                _ => {
                    return option(format!(
                        "columns: {key}={value}: known are time, gap, offset, size, op and volume; {FORM}"
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
            named,
        })
    }

    /// Indices of the columns that are read, in order.
    fn used(&self) -> Vec<usize> {
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
        let mut used: Vec<usize> = [time, Some(self.offset.index), size, op, self.volume]
            .into_iter()
            .flatten()
            .collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Whether the time and the address of a line are such.
    fn begins(&self, fields: &[&[u8]]) -> bool {
        let at = |index: usize| fields.get(index).copied().unwrap_or(b"");
        let is_number = |column: &Column| number(at(column.index), column.hex).is_some();
        match &self.times {
            Times::None => is_number(&self.offset),
            Times::At(column) | Times::Gaps(column, _) => is_number(column),
            Times::Dates(index, _) => Clock::default().read(at(*index), at(index + 1)).is_some(),
        }
    }
}

impl Named {
    /// Reads the option and finds its columns in the first lines of `head`.
    pub fn new(
        columns: &str,
        opts: &TraceOptions,
        name: &str,
        head: &[u8],
    ) -> Result<Self, WorkloadError> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let parts = parts(columns)?;
        let mut lines: Vec<(u64, &[u8])> = (1..)
            .zip(head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end))
            .take(TITLES_MAX)
            .filter(|(_, line)| !line.is_empty())
            .collect();
        if lines.is_empty() {
            lines.push((1, b""));
        }
        // The header may be a comment, and titles may stand before it.
        let mut best = None;
        let mut error = None;
        for &(number, line) in &lines {
            let comment = line[..].first() == Some(&b'#');
            let mut text = line;
            while let (true, [b'#' | b' ', rest @ ..]) = (comment, text) {
                text = rest;
            }
            let separator = separator_of(text);
            let header: Vec<&[u8]> = split(text, separator).collect();
            let found = match Columns::find(&parts, opts, name, &header, text) {
                Ok(found) => found,
                Err(refused) if !refused.lacks_column => return Err(refused.error),
                // The message shows the first line that is no comment, if there is one.
                Err(refused) => {
                    if error
                        .as_ref()
                        .is_none_or(|(of_comment, _)| *of_comment && !comment)
                    {
                        error = Some((comment, refused.error));
                    }
                    continue;
                }
            };
            let (fields, named) = (header.len(), found.named);
            let begins = !comment && !named && found.begins(&header);
            if named || begins {
                let titles = if named { number } else { number - 1 };
                best = Some((separator, titles, fields, found));
                break;
            }
            // Columns that are only counted: lines before the first one with a time are titles, if there is one.
            if best.is_none() && !comment {
                best = Some((separator, number, fields, found));
            }
        }
        let (separator, titles, fields, columns) = match (best, error) {
            (Some(best), _) => best,
            (None, Some((_, error))) => return Err(error),
            (None, None) => {
                return option(format!("{name}: columns: the file begins without a table"))
            }
        };
        let used = columns.used();
        Ok(Named {
            separator,
            titles,
            fields,
            width: used.last().map_or(0, |last| last + 2).min(COLUMNS_MAX),
            used,
            columns,
        })
    }

    /// Place of a text with blanks, such as the name of a process, in a line of a blank-separated table that has more
    /// fields than the header: columns before it are counted from the left, the others from the right.
    #[cold]
    fn place_of_blanks(&self, fields: &Fields<'_>, more: usize) -> Result<usize, Bad> {
        let date = match &self.columns.times {
            Times::Dates(index, _) => Some(*index),
            _ => None,
        };
        // Between used columns, after a date of two words, and at the end of the line.
        let mut places = vec![usize::MAX];
        let mut next = 0;
        for &index in &self.used {
            if index > next || index > 0 && date == Some(index - 1) {
                places.push(index);
            }
            next = index + 1;
        }
        let mut fitting = places
            .iter()
            .filter(|&&place| self.columns.fits(fields, Shift { place, more }));
        match (fitting.next(), fitting.next()) {
            (Some(&place), None) => Ok(place),
            (Some(_), Some(_)) => Err(Bad {
                column: "columns",
                index: 0,
                expected: "as many fields as in the first line, or a text with blanks at one possible place",
            }),
            (None, _) => Ok(usize::MAX),
        }
    }
}

type Fields<'a> = [&'a [u8]; COLUMNS_MAX];

/// Columns from `place` on are `more` fields further to the right.
#[derive(Clone, Copy)]
struct Shift {
    place: usize,
    more: usize,
}

impl Shift {
    const NONE: Self = Shift {
        place: usize::MAX,
        more: 0,
    };

    #[inline]
    fn index(self, column: usize) -> usize {
        let more = if column >= self.place { self.more } else { 0 };
        (column + more).min(COLUMNS_MAX - 1)
    }

    fn bad(self, column: &'static str, index: usize, expected: &'static str) -> Bad {
        Bad {
            column,
            index: self.index(index) as u8 + 1,
            expected,
        }
    }
}

/// The number of a field in whole units of `unit`, and whether it was whole.
fn value(fields: &Fields<'_>, column: &Column, unit: u64, shift: Shift) -> Option<(u128, bool)> {
    scaled(number(fields[shift.index(column.index)], column.hex)?, unit)
}

const WORD: &str =
    "a word such as R, W, read, write, trim or flush; if it is a code, name codes, like \
                    op=COLUMN:read=1 or op=COLUMN:write=2a|8a:trim=42";

impl Columns {
    /// Whether the fields can be a request.
    fn fits(&self, fields: &Fields<'_>, shift: Shift) -> bool {
        let is_number = |column: &Column| value(fields, column, 1, shift).is_some();
        let timed = match &self.times {
            Times::None => true,
            Times::At(column) | Times::Gaps(column, _) => is_number(column),
            Times::Dates(index, _) => {
                let at = shift.index(*index);
                let next = fields.get(at + 1).copied().unwrap_or(b"");
                Clock::default().read(fields[at], next).is_some()
            }
        };
        let known = match &self.ops {
            Ops::Reads => true,
            Ops::Words(index) => word(fields[shift.index(*index)]).is_some(),
            Ops::Codes(index, codes) => codes.knows(fields[shift.index(*index)]),
        };
        timed && known && is_number(&self.offset) && self.size.as_ref().is_none_or(is_number)
    }

    fn request<'a>(&mut self, fields: &Fields<'a>, shift: Shift) -> Result<Line<'a>, Bad> {
        const NUMBER: &str =
            "a non-negative number (for dates and times of day give time=COLUMN:datetime)";
        let span = |column: &Column| {
            value(fields, column, column.unit, shift)
                .map(|(ps, _)| ps)
                .filter(|&ps| ps < 1 << 100)
                .ok_or(shift.bad("time", column.index, NUMBER))
        };
        let time = match &mut self.times {
            Times::None => 0,
            Times::At(column) => span(column)?,
            Times::Gaps(column, sum) => {
                *sum = sum.saturating_add(span(column)?).min(1 << 100);
                *sum
            }
            Times::Dates(index, clock) => {
                let at = shift.index(*index);
                let next = fields.get(at + 1).copied().unwrap_or(b"");
                clock
                    .read(fields[at], next)
                    .ok_or(shift.bad("time", *index, dates::FORM))?
            }
        };
        let bytes = |column: &Column, name| {
            value(fields, column, 1, shift)
                .filter(|(_, exact)| *exact)
                .and_then(|(number, _)| u64::try_from(number).ok()?.checked_mul(column.unit))
                .ok_or(shift.bad(name, column.index, "a whole number, below 2^62 bytes"))
        };
        let action = match &mut self.ops {
            Ops::Reads => Action::of(Op::Read),
            Ops::Words(index) => {
                word(fields[shift.index(*index)]).ok_or(shift.bad("op", *index, WORD))?
            }
            Ops::Codes(index, codes) => codes.action(fields[shift.index(*index)]).ok_or(shift.bad(
                "op",
                *index,
                "a code that is named, like op=COLUMN:write=2a|8a:trim=42:skip=0, or a word such as R or write",
            ))?,
        };
        let Some(op) = action.op else {
            return Ok(Line::Other);
        };
        let (offset, bytes) = match (op, &self.size) {
            (Op::Flush, _) => (0, 0),
            (_, Some(size)) => (bytes(&self.offset, "offset")?, bytes(size, "size")?),
            (_, None) => (bytes(&self.offset, "offset")?, self.offset.unit),
        };
        Ok(Line::Request(Raw {
            time,
            volume: self.volume.map_or(&b""[..], |i| fields[shift.index(i)]),
            op,
            offset,
            bytes,
            fua: action.fua,
            preflush: action.preflush,
        }))
    }
}

impl LineParser for Named {
    const SEPARATOR: u8 = b',';

    fn separator(&self) -> u8 {
        self.separator
    }

    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Line<'a>, Bad> {
        if number <= self.titles {
            return Ok(Line::Other);
        }
        let mut fields: Fields = [b""; COLUMNS_MAX];
        // Of a blank-separated line all fields count.
        let wanted = if self.separator == b' ' {
            COLUMNS_MAX
        } else {
            self.width
        };
        let mut count = 0;
        for (place, field) in fields[..wanted].iter_mut().zip(split(line, self.separator)) {
            *place = field;
            count += 1;
        }
        let mut shift = Shift::NONE;
        if self.separator == b' ' && count > self.fields {
            shift.more = count - self.fields;
            shift.place = self.place_of_blanks(&fields, shift.more)?;
        }
        self.columns.request(&fields, shift)
    }

    fn note(&self) -> String {
        let columns = &self.columns;
        let mut text = String::new();
        if matches!(columns.times, Times::None) {
            text += "; no time column: no arrival times";
        }
        if columns.size.is_none() {
            text += &format!("; no size column: {} bytes each", columns.offset.unit);
        }
        if matches!(columns.ops, Ops::Reads) {
            text += "; no op column: all are reads";
        }
        text
    }

    fn warnings(&self) -> Vec<String> {
        match &self.columns.ops {
            Ops::Codes(_, codes) => codes.warnings(),
            Ops::Reads | Ops::Words(_) => Vec::new(),
        }
    }
}
