//! fio iologs with addresses in bytes. Version 3 has lines `usec file action [offset length]`. Version 2 has lines
//! `file action [offset length]` without times. Instead, a line `file wait usec 0` advances the time.

use flashtwin::{Op, PlacementId};

use super::collector::Raw;
use super::cursor::{Bad, Cursor};
use super::format::{Certainty, Detection, Page, Reader};
use super::lines::{scaled, Line, LineParser, Units};
use super::options::{AddressUnit, TimeUnit};

pub(crate) const FIO: Reader = Reader {
    name: "fio",
    time: TimeUnit::Microseconds,
    address: AddressUnit::BYTES,
    units: Certainty::Time,
    detection: Detection::by_mark(|head| {
        head.starts_with(b"fio version ")
            .then_some("its first line")
    }),
    open: |o| o.lines(Fio::new(o.units)),
    requests: |_, _| None,
    page: Page {
        layout:
            "iolog version 2: `file action [offset length]`, `file wait usec 0`; version 3: `usec \
            file action [offset length]`",
        time: "us, or ns if us are implausible",
        address: "bytes",
        op: "read, write, trim, sync, datasync",
        source: "`iolog.c` of github.com/axboe/fio",
    },
};

struct Fio {
    units: Units,
    version: u8,
    /// Sum of the waits in picoseconds (version 2).
    clock: u128,
}

impl Fio {
    fn new(units: Units) -> Self {
        Fio {
            units,
            version: 0,
            clock: 0,
        }
    }
}

const FILE: &str = "a file name";
const VERSION: &str = "the first line \"fio version 2 iolog\" or \"fio version 3 iolog\"";

impl LineParser for Fio {
    const SEPARATOR: u8 = b' ';

    fn parse<'a>(&mut self, line: &'a [u8], _number: u64) -> Result<Line<'a>, Bad> {
        if self.version == 0 {
            self.version = match line.trim_ascii() {
                b"fio version 2 iolog" => 2,
                b"fio version 3 iolog" => 3,
                _ => {
                    return Err(Bad {
                        column: "version",
                        index: 0,
                        expected: VERSION,
                    })
                }
            };
            return Ok(Line::Other);
        }
        let mut c = Cursor::<b' '>::new(line);
        let mut time = self.clock;
        if self.version == 3 {
            time = c.time(self.units.time_ps, "timestamp", "microseconds")?;
        }
        let volume = c.word();
        if volume.is_empty() {
            return c.bad("file", FILE);
        }
        let op = match c.word() {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" | b"sync_file_range" => Op::Flush,
            b"add" | b"open" | b"close" => return Ok(Line::Other),
            b"wait" => {
                // In version 3, lines have times. fio then ignores waits.
                if self.version == 2 {
                    self.clock += c.time(self.units.time_ps, "wait", "microseconds")?;
                }
                return Ok(Line::Other);
            }
            _ => {
                return c.bad(
                    "action",
                    "read, write, trim, sync, datasync, wait, add, open or close",
                )
            }
        };
        let (mut offset, mut bytes) = (0, 0);
        if op != Op::Flush {
            offset = c.uint("offset", "a non-negative integer, bytes")?;
            bytes = c.uint("length", "a non-negative integer, bytes")?;
            c.end("no more columns")?;
        }
        let unit = self.units.address_bytes;
        Ok(Line::Request(Raw {
            time,
            volume,
            op,
            offset: scaled(offset, unit, "offset", 4)?,
            bytes: scaled(bytes, unit, "length", 5)?,
            fua: false,
            preflush: false,
            placement: PlacementId::NONE,
        }))
    }
}
