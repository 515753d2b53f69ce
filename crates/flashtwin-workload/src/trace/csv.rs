//! flashtwin's own text form: `time_us,op,offset_bytes,size_bytes`. Operations are R, W, T (trim) and F (flush). `WF`
//! is a write with force unit access; `FW` and `FWF` are preceded by a flush. All combinations of Linux block
//! tracing's letters can be read. Times are decimal, exact to the picosecond.

use flashtwin::{Op, Request};
use std::io::{self, Write};

use super::collector::Raw;
use super::cursor::{Bad, Cursor};
use super::format::{Certainty, Detection, Fit, Page, Reader};
use super::lines::{is_header, scaled, Line, LineParser, Units};
use super::options::{AddressUnit, TimeUnit};
use super::words::{self, Action};

/// The names of the columns; the first line of every file of this form.
pub const HEADER: &str = "time_us,op,offset_bytes,size_bytes";

pub(crate) const CSV: Reader = Reader {
    name: "csv",
    time: TimeUnit::Microseconds,
    address: AddressUnit::BYTES,
    units: Certainty::Certain,
    detection: Detection {
        mark: |head| head.starts_with(HEADER.as_bytes()).then_some("its header"),
        ..Detection::by_lines(|lines| Fit::of(Csv(Units::PLAIN), lines))
    },
    open: |o| o.lines(Csv(o.units)),
    requests: |_, _| None,
    page: Page {
        layout: "`time_us,op,offset_bytes,size_bytes`",
        time: "us, decimal",
        address: "bytes",
        op: "R, W, T, F",
        source: "flashtwin's own, below",
    },
};

const OPS: &str = "R, W, T, F, or the letters of Linux block tracing, such as WF, FW, WS, D";

struct Csv(Units);

impl LineParser for Csv {
    const SEPARATOR: u8 = b',';

    #[inline]
    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Line<'a>, Bad> {
        if is_header(line, number) {
            if line.trim_ascii() == HEADER.as_bytes() {
                return Ok(Line::Other);
            }
            let expected = "the header time_us,op,offset_bytes,size_bytes";
            return Err(Bad {
                column: "header",
                index: 0,
                expected,
            });
        }
        let mut c = Cursor::<b','>::new(line);
        let time = c.time(
            self.0.time_ps,
            "time_us",
            "a non-negative number of microseconds",
        )?;
        let action = match c.word() {
            b"R" => Action::of(Op::Read),
            b"W" => Action::of(Op::Write),
            b"T" => Action::of(Op::Trim),
            word => match words::letters(word) {
                Some(action) => action,
                None => return c.bad("op", OPS),
            },
        };
        let Some(op) = action.op else {
            return Ok(Line::Other);
        };
        let offset = c.uint("offset_bytes", "a non-negative integer, bytes")?;
        let bytes = c.uint("size_bytes", "a non-negative integer, bytes")?;
        c.end("four columns")?;
        Ok(Line::Request(Raw {
            time,
            volume: b"",
            op,
            offset: scaled(offset, self.0.address_bytes, "offset_bytes", 3)?,
            bytes: scaled(bytes, self.0.address_bytes, "size_bytes", 4)?,
            fua: action.fua,
            preflush: action.preflush,
        }))
    }
}

/// Writes one request as a line of this form.
///
/// # Errors
/// Fails if `out` does.
pub fn write_request(out: &mut dyn Write, r: &Request) -> io::Result<()> {
    const PS_IN_US: u64 = 1_000_000;
    let (us, ps) = (r.arrival.0 / PS_IN_US, r.arrival.0 % PS_IN_US);
    let op = match (r.op, r.fua) {
        (Op::Read, _) => "R",
        (Op::Write, false) => "W",
        (Op::Write, true) => "WF",
        (Op::Trim, _) => "T",
        (Op::Flush, _) => "F",
    };
    if ps == 0 {
        writeln!(out, "{us},{op},{},{}", r.offset, r.bytes)
    } else {
        let fraction = format!("{ps:06}");
        writeln!(
            out,
            "{us}.{},{op},{},{}",
            fraction.trim_end_matches('0'),
            r.offset,
            r.bytes
        )
    }
}
