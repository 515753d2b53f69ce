//! MSR Cambridge traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. Times are Windows filetimes
//! (ticks of 100 ns), addresses are in bytes. The decoder is optimised for speed, because this is the text format that
//! is used most.

use flashtwin::{Op, PlacementId};

use super::collector::Raw;
use super::cursor::{Bad, Cursor};
use super::format::{Certainty, Detection, Fit, Page, Reader};
use super::lines::{is_header, scaled, Line, LineParser, Units};
use super::options::{AddressUnit, TimeUnit};

pub(crate) const MSR: Reader = Reader {
    name: "msr",
    time: TimeUnit::Filetime,
    address: AddressUnit::BYTES,
    units: Certainty::Certain,
    detection: Detection::by_lines(|lines| Fit::of(Msr(Units::PLAIN), lines)),
    open: |o| o.lines(Msr(o.units)),
    requests: |_, _| None,
    page: Page {
        layout: "`Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`",
        time: "Windows filetime, 100 ns",
        address: "bytes",
        op: "Read, Write",
        source: "SNIA IOTTA, README of \"MSR Cambridge Traces\" (trace 387)",
    },
};

struct Msr(Units);

impl LineParser for Msr {
    const SEPARATOR: u8 = b',';

    #[inline]
    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Line<'a>, Bad> {
        if is_header(line, number) {
            return Ok(Line::Other);
        }
        let mut c = Cursor::<b','>::new(line);
        let time = c.time(
            self.0.time_ps,
            "Timestamp",
            "Windows filetime, ticks of 100 ns",
        )?;
        let from = c.position();
        c.word();
        c.name("DiskNumber", "a disk number")?;
        let volume = c.since(from);
        let op = match c.word() {
            b"Read" => Op::Read,
            b"Write" => Op::Write,
            other if other.eq_ignore_ascii_case(b"read") => Op::Read,
            other if other.eq_ignore_ascii_case(b"write") => Op::Write,
            _ => return c.bad("Type", "Read or Write"),
        };
        let offset = c.uint("Offset", "a non-negative integer, bytes")?;
        let bytes = c.uint("Size", "a non-negative integer, bytes")?;
        c.uint("ResponseTime", "a non-negative integer, ticks of 100 ns")?;
        c.end("seven columns")?;
        Ok(Line::Request(Raw {
            time,
            volume,
            op,
            offset: scaled(offset, self.0.address_bytes, "Offset", 5)?,
            bytes: scaled(bytes, self.0.address_bytes, "Size", 6)?,
            fua: false,
            preflush: false,
            placement: PlacementId::NONE,
        }))
    }
}
