//! Tables of text. The option `columns` names the columns to read:
//! `time=ts:us,offset=lba:sectors,size=len:bytes,op=type`. Other columns are skipped. Numbers may have decimals and
//! exponents, because some programs store columns as floating point.

mod columns;
mod numbers;
mod request;

pub(crate) use numbers::{split, whole_number};
pub(crate) use request::{placement_id, PLACEMENT};

use super::cursor::Bad;
use super::dates::Clock;
use super::lines::{Line, LineParser};
use super::options::TraceOptions;
use super::words::Codes;
use crate::error::{quote, ErrorKind, WorkloadError};
use columns::parts;
use numbers::separator_of;
use request::{Fields, Shift};

/// Returns the number of parts of the option that name a field of this line.
fn names_in(parts: &[(&str, String)], line: &[&[u8]]) -> usize {
    let is_name = |text: &[u8]| !text.iter().all(u8::is_ascii_digit) && line.contains(&text);
    let named = parts.iter().filter(|(_, value)| {
        let ends = value.match_indices(':').map(|(at, _)| at);
        ends.chain([value.len()])
            .any(|end| is_name(&value.as_bytes()[..end]))
    });
    named.count()
}

/// Syntax of the option.
const FORM: &str =
    "columns must be like time=ts:us,offset=lba:sectors,size=len:bytes,op=type, where each \
                    name is a column of the header or its number from 1";
/// Largest number of columns of a table. It fits into the byte in which messages store a column's number.
const COLUMNS_MAX: usize = 255;
/// Number of lines at the beginning of the file in which the header is searched.
const TITLES_MAX: usize = 64;

/// A column of numbers.
#[derive(Clone, Copy)]
struct Column {
    /// Index of the column, from 0.
    index: usize,
    /// Number of picoseconds or bytes in one unit.
    unit: u64,
    /// Whether the column's numbers are hexadecimal without `0x`.
    hex: bool,
}

/// Source of the arrival times.
enum Times {
    /// No column: all requests arrive at time 0.
    None,
    At(Column),
    /// The column has the time since the previous request. The second field is the sum of all these times so far.
    Gaps(Column, u128),
    /// The column with this index has dates or times of day.
    Dates(usize, Clock),
}

/// Source of the operations.
enum Ops {
    /// No column: all requests are reads.
    Reads,
    /// Words such as `R`, `Write`, `trim`.
    Words(usize),
    Codes(usize, Codes),
}

/// The columns of one file.
struct Columns {
    times: Times,
    offset: Column,
    /// Column of the size. `None` if the size of each request is one unit of the offset.
    size: Option<Column>,
    ops: Ops,
    volume: Option<usize>,
    /// Placement ids, decimal or hexadecimal.
    placement: Option<Column>,
    /// Whether the option gives any column by name, and not only by number.
    named: bool,
}

pub(crate) struct Named {
    separator: u8,
    /// Number of the last line of titles. The requests begin after it.
    titles: u64,
    /// Number of fields in the header or in the first line.
    fields: usize,
    columns: Columns,
    /// Number of columns that must be split: those up to the last one that is read, and one more.
    width: usize,
    /// Columns that are read, in order.
    used: Vec<usize>,
}

fn option<T, E: From<WorkloadError>>(text: String) -> Result<T, E> {
    Err(WorkloadError::new(ErrorKind::Option, text).into())
}

impl Named {
    /// Reads the option `columns`, and finds the columns in the first lines of the file. `head` has these lines.
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
        // The header may be a comment. Lines with titles may precede the header.
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
            let names = names_in(&parts, &header);
            let which = if names > 0 { "header" } else { "first line" };
            let shown = format!("the {which} is {}", quote(text));
            let found = match Columns::find(&parts, opts, name, &header, &shown) {
                Ok(found) => found,
                Err(refused) if !refused.lacks_column => return Err(refused.error),
                // The message shows the line that contains the most names. If several lines do, it shows the first of
                // them that is no comment.
                Err(refused) => {
                    let rank = (names, !comment);
                    if error.as_ref().is_none_or(|(best, _)| *best < rank) {
                        error = Some((rank, refused.error));
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
            // This line has the columns, but they are given only by number, so the line may be a title. All lines
            // before the first line with a valid time are titles. If no line has a valid time, the first line that has
            // the columns is taken as the last title.
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

    /// Called for a line that has more fields than the header of a blank-separated table, because one of its fields is
    /// a text with blanks, such as the name of a process. Returns the column of this field. Columns before it must be
    /// counted from the left, columns after it from the right.
    #[cold]
    fn place_of_blanks(&self, fields: &Fields<'_>, more: usize) -> Result<usize, Bad> {
        let date = match &self.columns.times {
            Times::Dates(index, _) => Some(*index),
            _ => None,
        };
        // The text with blanks may be in a column between used columns, after a date of two words, or at the end of the
        // line.
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

    fn has_placement(&self) -> bool {
        self.columns.placement.is_some()
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
