//! flashtwin's own text form of traces: `time_us,op,offset_bytes,size_bytes`, and `placement` if the header has it.
//! Operations are R, W, T (trim) and F (flush). `WF` is a write with force unit access (FUA). `FW` is a write after a
//! flush, and `FWF` is a FUA write after a flush. All combinations of letters that Linux block tracing writes are
//! accepted. Times are decimal and exact to the picosecond.

use flashtwin::{Op, PlacementId, Request};
use std::io::{self, Write};

use super::collector::Raw;
use super::cursor::{Bad, Cursor};
use super::format::{Certainty, Detection, Fit, Page, Reader};
use super::lines::{is_header, scaled, Line, LineParser, Units};
use super::named::{placement_id, split, PLACEMENT};
use super::options::{AddressUnit, TimeUnit};
use super::words::{self, Action};

/// First line of a file without placement ids. The next constant is the first line of a file with them.
const HEADER: &str = "time_us,op,offset_bytes,size_bytes";
const HEADER_PLACEMENT: &str = "time_us,op,offset_bytes,size_bytes,placement";

/// Columns of a file in flashtwin's own text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsvColumns {
    /// Time, operation, offset and size.
    Four,
    /// The columns of `Four`, and a column of placement ids. Its field is empty for a request without an id.
    Placement,
}

impl CsvColumns {
    /// Returns the first line of a file with these columns, without a line end.
    pub fn header(self) -> &'static str {
        match self {
            CsvColumns::Four => HEADER,
            CsvColumns::Placement => HEADER_PLACEMENT,
        }
    }

    /// Writes one request as a line.
    ///
    /// # Errors
    /// Fails if `out` does.
    pub fn write_request(self, out: &mut dyn Write, request: &Request) -> io::Result<()> {
        write_four(out, request)?;
        if self == CsvColumns::Placement {
            match request.placement.get() {
                Some(id) => write!(out, ",{id}")?,
                None => out.write_all(b",")?,
            }
        }
        out.write_all(b"\n")
    }
}

pub(crate) const CSV: Reader = Reader {
    name: "csv",
    time: TimeUnit::Microseconds,
    address: AddressUnit::BYTES,
    units: Certainty::Certain,
    detection: Detection {
        mark: |head| {
            let line = head.split(|&byte| byte == b'\n').next()?;
            let names = HEADER.split(',').map(str::as_bytes);
            split(line, b',').take(4).eq(names).then_some("its header")
        },
        ..Detection::by_lines(|lines| Fit::of(Csv::new(Units::PLAIN), lines))
    },
    open: |o| o.lines(Csv::new(o.units)),
    requests: |_, _| None,
    page: Page {
        layout: "`time_us,op,offset_bytes,size_bytes[,placement]`",
        time: "us, decimal",
        address: "bytes",
        op: "R, W, T, F",
        source: "flashtwin's own, below",
    },
};

const OPS: &str = "R, W, T, F, or the letters of Linux block tracing, such as WF, FW, WS, D";

struct Csv {
    units: Units,
    columns: CsvColumns,
}

impl Csv {
    fn new(units: Units) -> Self {
        Csv {
            units,
            columns: CsvColumns::Four,
        }
    }
}

impl LineParser for Csv {
    const SEPARATOR: u8 = b',';

    #[inline]
    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Line<'a>, Bad> {
        if is_header(line, number) {
            let all = [CsvColumns::Four, CsvColumns::Placement];
            let has = |columns: &CsvColumns| {
                let names = columns.header().split(',').map(str::as_bytes);
                split(line, b',').eq(names)
            };
            if let Some(columns) = all.into_iter().find(has) {
                self.columns = columns;
                return Ok(Line::Other);
            }
            let expected =
                "the header time_us,op,offset_bytes,size_bytes, or the same and ,placement";
            return Err(Bad {
                column: "header",
                index: 0,
                expected,
            });
        }
        let mut c = Cursor::<b','>::new(line);
        let time = c.time(
            self.units.time_ps,
            "time_us",
            "a non-negative number of microseconds",
        )?;
        let action = match unquoted(c.word()) {
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
        let placement = match self.columns {
            CsvColumns::Four => {
                c.end("four columns, or placement as the fifth of the header")?;
                PlacementId::NONE
            }
            CsvColumns::Placement => {
                let Some(placement) = placement_id(c.word(), false) else {
                    return c.bad("placement", PLACEMENT);
                };
                c.end("five columns")?;
                placement
            }
        };
        Ok(Line::Request(Raw {
            time,
            volume: b"",
            op,
            offset: scaled(offset, self.units.address_bytes, "offset_bytes", 3)?,
            bytes: scaled(bytes, self.units.address_bytes, "size_bytes", 4)?,
            fua: action.fua,
            preflush: action.preflush,
            placement,
        }))
    }

    fn has_placement(&self) -> bool {
        self.columns == CsvColumns::Placement
    }
}

/// Removes the quotes around a word. Some programs quote all text.
#[inline]
fn unquoted(word: &[u8]) -> &[u8] {
    match word {
        [b'"', inner @ .., b'"'] => inner,
        _ => word,
    }
}

fn write_four(out: &mut dyn Write, r: &Request) -> io::Result<()> {
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
        write!(out, "{us},{op},{},{}", r.offset, r.bytes)
    } else {
        let fraction = format!("{ps:06}");
        write!(
            out,
            "{us}.{},{op},{},{}",
            fraction.trim_end_matches('0'),
            r.offset,
            r.bytes
        )
    }
}
