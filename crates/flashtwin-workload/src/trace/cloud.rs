//! Comma-separated traces of storage services: SPC text, SYSTOR '17, Tencent CBS, Alibaba 2020.

use flashtwin::{Op, PlacementId};

use super::collector::Raw;
use super::cursor::{Bad, Cursor};
use super::format::{Certainty, Detection, Fit, Page, Reader};
use super::lines::{is_header, scaled, Line, LineParser, Units};
use super::options::{AddressUnit, TimeUnit};

pub(crate) const SPC: Reader = Reader {
    name: "spc",
    time: TimeUnit::Seconds,
    address: AddressUnit::SECTORS,
    units: Certainty::Certain,
    detection: Detection::by_lines(|lines| Fit::of(Spc(Units::PLAIN), lines)),
    open: |o| o.lines(Spc(o.units)),
    requests: |_, _| None,
    page: Page {
        layout: "`ASU,LBA,Size,Opcode,Timestamp[,...]`",
        time: "s, decimal",
        address: "sectors; size in bytes",
        op: "r, w",
        source:
            "Storage Performance Council, \"SPC Trace File Format Specification\" 1.0.1; UMass \
            Trace Repository files",
    },
};

pub(crate) const SYSTOR: Reader = Reader {
    name: "systor",
    time: TimeUnit::Seconds,
    address: AddressUnit::BYTES,
    units: Certainty::Certain,
    detection: Detection::by_lines(|lines| Fit::of(Systor(Units::PLAIN), lines)),
    open: |o| o.lines(Systor(o.units)),
    requests: |_, _| None,
    page: Page {
        layout: "`Timestamp,Response,IOType,LUN,Offset,Size`",
        time: "s, decimal",
        address: "bytes",
        op: "R, W, blank",
        source: "SNIA IOTTA, README of \"SYSTOR '17\" (trace 4928)",
    },
};

pub(crate) const TENCENT: Reader = Reader {
    name: "tencent",
    time: TimeUnit::Seconds,
    address: AddressUnit::SECTORS,
    units: Certainty::Address,
    detection: Detection::by_lines(|lines| Fit::of(Tencent(Units::PLAIN), lines)),
    open: |o| o.lines(Tencent(o.units)),
    requests: |_, _| None,
    page: Page {
        layout: "`Timestamp,Offset,Size,IOType,VolumeID`",
        time: "s",
        address: "sectors",
        op: "0 = read, 1 = write",
        source: "SNIA IOTTA, README of \"Tencent Block Storage\" (trace 28064)",
    },
};

pub(crate) const ALIBABA: Reader = Reader {
    name: "alibaba",
    time: TimeUnit::Microseconds,
    address: AddressUnit::BYTES,
    units: Certainty::Certain,
    detection: Detection::by_lines(|lines| Fit::of(Alibaba(Units::PLAIN), lines)),
    open: |o| o.lines(Alibaba(o.units)),
    requests: |_, _| None,
    page: Page {
        layout: "`device_id,opcode,offset,length,timestamp`",
        time: "us",
        address: "bytes",
        op: "R, W",
        source: "README of github.com/alibaba/block-traces",
    },
};

struct Spc(Units);
struct Systor(Units);
struct Tencent(Units);
struct Alibaba(Units);

fn request(time: u128, volume: &[u8], op: Op, offset: u64, bytes: u64) -> Line<'_> {
    Line::Request(Raw {
        time,
        volume,
        op,
        offset,
        bytes,
        fua: false,
        preflush: false,
        placement: PlacementId::NONE,
    })
}

impl LineParser for Spc {
    const SEPARATOR: u8 = b',';

    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Line<'a>, Bad> {
        if is_header(line, number) {
            return Ok(Line::Other);
        }
        let mut c = Cursor::<b','>::new(line);
        let volume = c.name("ASU", "the number of an application storage unit")?;
        let lba = c.uint("LBA", "a non-negative integer, sectors of 512 bytes")?;
        let bytes = c.uint("Size", "a non-negative integer, bytes")?;
        let op = match c.word() {
            b"R" | b"r" => Op::Read,
            b"W" | b"w" => Op::Write,
            _ => return c.bad("Opcode", "r or w"),
        };
        let time = c.time(self.0.time_ps, "Timestamp", "seconds, decimal")?;
        // Further columns are permitted by the specification, for additions by the collector of the
        // trace.
        Ok(request(
            time,
            volume,
            op,
            scaled(lba, self.0.address_bytes, "LBA", 2)?,
            bytes,
        ))
    }
}

impl LineParser for Systor {
    const SEPARATOR: u8 = b',';

    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Line<'a>, Bad> {
        if is_header(line, number) {
            return Ok(Line::Other);
        }
        let mut c = Cursor::<b','>::new(line);
        let time = c.time(self.0.time_ps, "Timestamp", "Unix time in seconds, decimal")?;
        // The response time is not used, and may be blank.
        let response = c.word();
        if !response.iter().all(|b| b.is_ascii_digit() || *b == b'.') {
            return c.bad("Response", "seconds, decimal, or blank");
        }
        let op = match c.word() {
            b"R" => Some(Op::Read),
            b"W" => Some(Op::Write),
            b"" => None,
            _ => return c.bad("IOType", "R, W or blank"),
        };
        let volume = c.name("LUN", "a LUN number")?;
        let offset = c.uint("Offset", "a non-negative integer, bytes")?;
        let bytes = c.uint("Size", "a non-negative integer, bytes")?;
        c.end("six columns")?;
        // A line with a blank type is neither a read nor a write. Such lines are skipped and
        // counted.
        let Some(op) = op else { return Ok(Line::Other) };
        let unit = self.0.address_bytes;
        Ok(request(
            time,
            volume,
            op,
            scaled(offset, unit, "Offset", 5)?,
            scaled(bytes, unit, "Size", 6)?,
        ))
    }
}

impl LineParser for Tencent {
    const SEPARATOR: u8 = b',';

    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Line<'a>, Bad> {
        if is_header(line, number) {
            return Ok(Line::Other);
        }
        let mut c = Cursor::<b','>::new(line);
        let time = c.time(self.0.time_ps, "Timestamp", "Unix time in seconds")?;
        let offset = c.uint("Offset", "a non-negative integer, sectors of 512 bytes")?;
        let size = c.uint("Size", "a non-negative integer, sectors of 512 bytes")?;
        let op = match c.word() {
            b"0" => Op::Read,
            b"1" => Op::Write,
            _ => return c.bad("IOType", "0 (read) or 1 (write)"),
        };
        let volume = c.name("VolumeID", "a volume number")?;
        c.end("five columns")?;
        let unit = self.0.address_bytes;
        Ok(request(
            time,
            volume,
            op,
            scaled(offset, unit, "Offset", 2)?,
            scaled(size, unit, "Size", 3)?,
        ))
    }
}

impl LineParser for Alibaba {
    const SEPARATOR: u8 = b',';

    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Line<'a>, Bad> {
        if is_header(line, number) {
            return Ok(Line::Other);
        }
        let mut c = Cursor::<b','>::new(line);
        let volume = c.name("device_id", "a device number")?;
        let op = match c.word() {
            b"R" => Op::Read,
            b"W" => Op::Write,
            _ => return c.bad("opcode", "R or W"),
        };
        let offset = c.uint("offset", "a non-negative integer, bytes")?;
        let bytes = c.uint("length", "a non-negative integer, bytes")?;
        let time = c.time(self.0.time_ps, "timestamp", "microseconds")?;
        c.end("five columns")?;
        let unit = self.0.address_bytes;
        Ok(request(
            time,
            volume,
            op,
            scaled(offset, unit, "offset", 3)?,
            scaled(bytes, unit, "length", 4)?,
        ))
    }
}
