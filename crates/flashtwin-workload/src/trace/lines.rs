//! Applies a line parser to the bytes of a text trace. Errors name the file and the line.

use memchr::memchr;

use flashtwin::Request;

use super::collector::{Collector, Raw};
use super::cursor::{field, Bad};
use super::input::Source;
use super::options::TraceOptions;
use super::Format;
use crate::error::{quote, ErrorKind, WorkloadError};

/// Content of a line.
pub(crate) enum Line<'a> {
    /// A request.
    Request(Raw<'a>),
    /// A valid line that is not a request: a header, a comment, or an event of another kind.
    Other,
}

/// Reads one text format, line by line.
pub(crate) trait LineParser: Send {
    /// Separator of the fields: `b','`, or `b' '` for any number of blanks.
    const SEPARATOR: u8;

    /// Returns the separator of the fields of this file.
    fn separator(&self) -> u8 {
        Self::SEPARATOR
    }

    /// Parses a line, which is not empty and has no line end. `number` is its line number, counted from 1.
    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Line<'a>, Bad>;

    /// Whether the lines have a column of placement ids. Known only after the first line has been read.
    fn has_placement(&self) -> bool {
        false
    }

    /// Returns a note for the description of the trace. It is empty or begins with a semicolon.
    fn note(&self) -> String {
        String::new()
    }

    /// Returns warnings about the lines read so far.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Turns bytes into records.
pub(crate) trait Decoder: Send {
    /// Reads until the collector has `until` records. Returns false at the end of the trace.
    fn decode(
        &mut self,
        source: &mut Source,
        collector: &mut Collector,
        until: usize,
    ) -> Result<bool, WorkloadError>;

    /// Returns the decoder as an [`OrderedDecoder`], which needs no reorder window. `None` if requests may be out of
    /// order or belong to several volumes.
    fn as_ordered(&mut self) -> Option<&mut dyn OrderedDecoder> {
        None
    }

    /// Returns the number of lines (or records) read so far.
    fn lines(&self) -> u64;

    /// Whether the file can have placement ids. Known only after the first request has been read.
    fn has_placement(&self) -> bool {
        false
    }

    /// Returns a note for the description of the trace. It is empty or begins with a semicolon.
    fn note(&self) -> String {
        String::new()
    }

    /// Returns warnings about the data read so far.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A decoder of requests that are in order and belong to one volume.
pub(crate) trait OrderedDecoder {
    /// Reads up to `most` requests directly into `out`, bypassing the reorder window of the collector. Returns false at
    /// the end of the trace.
    fn read(
        &mut self,
        source: &mut Source,
        collector: &mut Collector,
        out: &mut Vec<Request>,
        most: usize,
    ) -> Result<bool, WorkloadError>;
}

/// The decoder of every text format.
pub(crate) struct LineDecoder<P> {
    parser: P,
    format: Format,
    max_bad_lines: u64,
    number: u64,
}

impl<P: LineParser> LineDecoder<P> {
    pub fn new(parser: P, format: Format, opts: &TraceOptions) -> Self {
        LineDecoder {
            parser,
            format,
            max_bad_lines: opts.max_bad_lines,
            number: 0,
        }
    }

    #[inline]
    fn line(
        &mut self,
        name: &str,
        line: &[u8],
        collector: &mut Collector,
    ) -> Result<(), WorkloadError> {
        self.number += 1;
        let mut line = line;
        if self.number == 1 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if let [rest @ .., b'\r'] = line {
            line = rest;
        }
        if line.is_empty() || line[0] == b'#' {
            collector.passed_over += 1;
            return Ok(());
        }
        let outcome = match self.parser.parse(line, self.number) {
            Ok(Line::Request(raw)) => collector.push(raw, self.number),
            Ok(Line::Other) => {
                collector.passed_over += 1;
                Ok(())
            }
            Err(bad) => Err(bad),
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(bad) => self.bad_line(name, line, bad, collector),
        }
    }

    #[cold]
    fn bad_line(
        &self,
        name: &str,
        line: &[u8],
        bad: Bad,
        collector: &mut Collector,
    ) -> Result<(), WorkloadError> {
        collector.bad_lines += 1;
        let found = match field(line, self.parser.separator(), bad.index) {
            _ if bad.index == 0 => quote(line),
            Some(text) if !text.is_empty() => quote(text),
            _ => "nothing".to_string(),
        };
        let place = if bad.index == 0 {
            String::new()
        } else {
            format!(" (column {})", bad.index)
        };
        let message = format!(
            "{name}, line {}: {}{place}: found {found}, expected {}; the line as read ({}): {}",
            self.number,
            bad.column,
            bad.expected,
            self.format,
            quote(line),
        );
        let allowed = self.max_bad_lines;
        if collector.bad_lines > allowed {
            let remedy = if allowed == 0 {
                "to skip up to N such lines: max_bad_lines = N (--max-bad-lines N)".to_string()
            } else {
                format!("that is more than the {allowed} bad lines allowed by max_bad_lines")
            };
            return Err(WorkloadError::new(
                ErrorKind::Malformed,
                format!("{message}; {remedy}"),
            ));
        }
        collector.first_bad.get_or_insert(message);
        Ok(())
    }
}

impl<P: LineParser> Decoder for LineDecoder<P> {
    fn decode(
        &mut self,
        source: &mut Source,
        collector: &mut Collector,
        until: usize,
    ) -> Result<bool, WorkloadError> {
        // The name is copied for messages, because the source is borrowed for its bytes.
        let name = source.name().to_string();
        loop {
            let mut used = 0;
            let data = source.data();
            while collector.pending.len() < until && collector.wanted > 0 {
                let Some(length) = memchr(b'\n', &data[used..]) else {
                    break;
                };
                let line = &data[used..used + length];
                used += length + 1;
                self.line(&name, line, collector)?;
            }
            source.consume(used);
            if collector.wanted == 0 {
                return Ok(false);
            }
            if collector.pending.len() >= until {
                return Ok(true);
            }
            if !source.fill()? {
                // The last line of a file may lack a line end.
                let rest = source.data().to_vec();
                source.consume(rest.len());
                if !rest.is_empty() {
                    self.line(&name, &rest, collector)?;
                }
                return Ok(false);
            }
        }
    }

    fn lines(&self) -> u64 {
        self.number
    }

    fn has_placement(&self) -> bool {
        self.parser.has_placement()
    }

    fn note(&self) -> String {
        self.parser.note()
    }

    fn warnings(&self) -> Vec<String> {
        self.parser.warnings()
    }
}

/// Whether the line is a header with the names of columns: the first line, if it begins with a letter, or with a quote
/// and a letter.
pub(crate) fn is_header(line: &[u8], number: u64) -> bool {
    let unquoted = line.strip_prefix(b"\"").unwrap_or(line);
    number == 1 && unquoted.first().is_some_and(u8::is_ascii_alphabetic)
}

/// Units of the columns: those in the options, otherwise the usual units of the format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    /// Number of picoseconds in one unit of the time column.
    pub time_ps: u64,
    /// Number of bytes in one unit of the address column.
    pub address_bytes: u64,
}

impl Units {
    /// Units of 1. They are used to test whether lines can be read.
    pub const PLAIN: Self = Units {
        time_ps: 1,
        address_bytes: 1,
    };
}

/// Returns `value * unit`. If the product exceeds `u64`, returns an error that names the column.
#[inline]
pub(crate) fn scaled(value: u64, unit: u64, column: &'static str, index: u8) -> Result<u64, Bad> {
    value.checked_mul(unit).ok_or(Bad {
        column,
        index,
        expected: "an address below 2^62 bytes",
    })
}
