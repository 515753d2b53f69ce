//! Any table of text by named columns: `time=ts:us,offset=lba:sectors,size=len:bytes,op=type`.
//! Columns that are not named are passed over; numbers may be decimals and powers of ten, as
//! programs write that keep columns as floating point.

use flashtwin::Op;

use super::collector::Raw;
use super::cursor::Bad;
use super::lines::{Line, LineParser};
use super::options::{AddressUnit, TimeUnit, TraceOptions};
use crate::error::{quote, ErrorKind, WorkloadError};

/// Syntax of the option.
const FORM: &str =
    "columns must be like time=ts:us,offset=lba:sectors,size=len:bytes,op=type, where each \
                    name is a column of the header or its number from 1";
/// Columns of a table that can be named in messages.
const COLUMNS_MAX: usize = 255;

/// Encoding of the column of operations.
enum OpText {
    /// Words such as `R`, `Write`, `trim`.
    Words,
    /// One value is `.1`, any other `.2`.
    Flag(Vec<u8>, Op, Op),
}

/// One column of the table.
struct Column {
    /// Index of the column, from 0.
    index: usize,
    /// Picoseconds or bytes in one.
    unit: u64,
}

pub(crate) struct Named {
    separator: u8,
    has_header: bool,
    time: Column,
    offset: Column,
    size: Column,
    op: (usize, OpText),
    volume: Option<usize>,
    /// One past the last column that is read.
    width: usize,
}

fn option<T>(text: String) -> Result<T, WorkloadError> {
    Err(WorkloadError::new(ErrorKind::Option, text))
}

/// The fields of a line; quotes around a field are taken off, and a separator within them is text.
fn split(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
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

/// `number * unit`, cut to whole ones; `None` if it is no number or too large.
fn scaled(text: &[u8], unit: u64) -> Option<(u128, bool)> {
    let (value, power) = decimal(text)?;
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

/// The first line that is no comment.
fn first_line(head: &[u8]) -> &[u8] {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.split(|&b| b == b'\n')
        .map(<[u8]>::trim_ascii_end)
        .find(|l| !l.is_empty() && l[0] != b'#')
        .unwrap_or(b"")
}

fn separator_of(line: &[u8]) -> u8 {
    [b',', b';', b'\t']
        .into_iter()
        .find(|b| line.contains(b))
        .unwrap_or(b' ')
}

/// The unit of the time column: the one behind its name, or that of the options.
fn time_unit(
    value: &str,
    column: &str,
    suffix: Option<&str>,
    opts: &TraceOptions,
) -> Result<TimeUnit, WorkloadError> {
    match (suffix, opts.time_unit) {
        (Some(unit), _) => unit.parse(),
        (None, Some(unit)) => Ok(unit),
        (None, None) => option(format!(
            "columns: time={value}: the unit is missing, like time={column}:us"
        )),
    }
}

/// A column as the option names it.
struct Found<'a> {
    /// Index of the column, from 0.
    index: usize,
    name: &'a str,
    /// Text after the colon.
    suffix: Option<&'a str>,
    /// Whether the column is named by the header, not by its number.
    named: bool,
}

/// Finds the column of `key=value`; `first` is the first line of the file `name`, split in `header`.
fn find_column<'a>(
    name: &str,
    key: &str,
    value: &'a str,
    header: &[&[u8]],
    first: &[u8],
) -> Result<Found<'a>, WorkloadError> {
    // A name that holds a colon is found whole.
    let known = header.contains(&value.as_bytes());
    let (column, suffix) = match value.rsplit_once(':') {
        Some((column, suffix)) if !known => (column, Some(suffix)),
        _ => (value, None),
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
            name: column,
            suffix,
            named: !counted,
        }),
        None => option(format!(
            "{name}: columns: {key}={value}: there is no column \"{column}\"; the first line is {}",
            quote(first)
        )),
    }
}

impl Named {
    /// Reads the option and finds its columns in the first line of `head`.
    pub fn new(
        columns: &str,
        opts: &TraceOptions,
        name: &str,
        head: &[u8],
    ) -> Result<Self, WorkloadError> {
        let first = first_line(head);
        let separator = separator_of(first);
        let header: Vec<&[u8]> = split(first, separator).collect();
        let (mut time, mut offset, mut size, mut op, mut volume) = (None, None, None, None, None);
        let mut has_header = false;
        for part in columns.split(',') {
            let Some((key, value)) = part.trim().split_once('=') else {
                return option(format!("columns: \"{part}\" is no key=column; {FORM}"));
            };
            let known = match key {
                "time" => time.is_some(),
                "offset" => offset.is_some(),
                "size" => size.is_some(),
                "op" => op.is_some(),
                _ => volume.is_some(),
            };
            if known {
                return option(format!("columns: {key} is given twice; leave one out"));
            }
            let found = find_column(name, key, value, &header, first)?;
            has_header |= found.named;
            let (index, column, suffix) = (found.index, found.name, found.suffix);
            let bytes_in = |usual: Option<AddressUnit>| match suffix {
                Some(unit) => unit.parse().map(|u: AddressUnit| u.bytes()),
                None => Ok(usual.unwrap_or(AddressUnit::Bytes).bytes()),
            };
            match key {
                "time" => {
                    let unit = time_unit(value, column, suffix, opts)?.ps();
                    time = Some(Column { index, unit });
                }
                "offset" => {
                    let unit = bytes_in(opts.address_unit)?;
                    offset = Some(Column { index, unit });
                }
                "size" => {
                    let unit = bytes_in(opts.address_unit)?;
                    size = Some(Column { index, unit });
                }
                "op" => op = Some((index, op_text(suffix)?)),
                "volume" if suffix.is_none() => volume = Some(index),
                _ => {
                    return option(format!(
                    "columns: {key}={value}: known are time, offset, size, op and volume; {FORM}"
                ))
                }
            }
        }
        let (Some(time), Some(offset), Some(size), Some(op)) = (time, offset, size, op) else {
            let text = format!("columns: time, offset, size and op are needed; {FORM}");
            return option(text);
        };
        // Where columns are only counted, a first line whose time is no number is the header.
        has_header |= header
            .get(time.index)
            .is_some_and(|text| decimal(text).is_none());
        let of_request = time.index.max(offset.index).max(size.index).max(op.0);
        let width = of_request.max(volume.unwrap_or(0)) + 1;
        Ok(Named {
            separator,
            has_header,
            time,
            offset,
            size,
            op,
            volume,
            width,
        })
    }
}

/// Reads what follows the column of operations: nothing, `read=1` or `write=1`.
fn op_text(suffix: Option<&str>) -> Result<OpText, WorkloadError> {
    match suffix.map(|s| s.split_once('=')) {
        None => Ok(OpText::Words),
        Some(Some(("read", value))) => {
            Ok(OpText::Flag(value.as_bytes().to_vec(), Op::Read, Op::Write))
        }
        Some(Some(("write", value))) => {
            Ok(OpText::Flag(value.as_bytes().to_vec(), Op::Write, Op::Read))
        }
        Some(_) => option(
            "columns: op: give the column alone if it holds words such as R and W, else the value that \
             means read or write, like op=flag:read=1"
                .to_string(),
        ),
    }
}

fn op_of(text: &[u8]) -> Option<Op> {
    Some(match text.to_ascii_lowercase().as_slice() {
        b"r" | b"rd" | b"rs" | b"read" => Op::Read,
        b"w" | b"wr" | b"ws" | b"write" => Op::Write,
        b"t" | b"d" | b"trim" | b"discard" | b"unmap" => Op::Trim,
        b"f" | b"flush" | b"sync" | b"fsync" => Op::Flush,
        _ => return None,
    })
}

/// Whether two fields are the same number or the same text: a flag may be written `1` or `1.0`.
fn same(a: &[u8], b: &[u8]) -> bool {
    a == b || scaled(a, 1).is_some_and(|n| n.1 && Some(n) == scaled(b, 1))
}

impl LineParser for Named {
    const SEPARATOR: u8 = b',';

    fn separator(&self) -> u8 {
        self.separator
    }

    fn parse<'a>(&mut self, line: &'a [u8], _number: u64) -> Result<Line<'a>, Bad> {
        if std::mem::take(&mut self.has_header) {
            return Ok(Line::Other);
        }
        let mut fields: [&[u8]; COLUMNS_MAX] = [b""; COLUMNS_MAX];
        for (place, field) in fields[..self.width]
            .iter_mut()
            .zip(split(line, self.separator))
        {
            *place = field;
        }
        let bad = |column, index: usize, expected| Bad {
            column,
            index: index as u8 + 1,
            expected,
        };
        let time = scaled(fields[self.time.index], self.time.unit)
            .map(|(ps, _)| ps)
            .filter(|&ps| ps < 1 << 100)
            .ok_or(bad("time", self.time.index, "a non-negative number"))?;
        let bytes = |column: &Column, name| {
            scaled(fields[column.index], 1)
                .filter(|(_, exact)| *exact)
                .and_then(|(number, _)| u64::try_from(number).ok()?.checked_mul(column.unit))
                .ok_or(bad(name, column.index, "a whole number, below 2^62 bytes"))
        };
        let (index, text) = (self.op.0, &self.op.1);
        let op = match text {
            OpText::Words => op_of(fields[index]).ok_or(bad(
                "op",
                index,
                "a word such as R, W, read, write, trim or flush (for numbers give op=COLUMN:read=1)",
            ))?,
            OpText::Flag(value, is, _) if same(fields[index], value) => *is,
            OpText::Flag(..) if fields[index].is_empty() => {
                return Err(bad("op", index, "a value"));
            }
            OpText::Flag(_, _, other) => *other,
        };
        let (offset, size) = if op == Op::Flush {
            (0, 0)
        } else {
            (bytes(&self.offset, "offset")?, bytes(&self.size, "size")?)
        };
        Ok(Line::Request(Raw {
            time,
            volume: self.volume.map_or(&b""[..], |i| fields[i]),
            op,
            offset,
            bytes: size,
            fua: false,
            preflush: false,
        }))
    }
}
