//! FIU traces (SyLab): `ts pid process lba size rw major minor [md5]`. Times are in nanoseconds, addresses in sectors
//! of 512 bytes. The process name may contain blanks, so the columns after it are counted from the right.

use flashtwin::{Op, PlacementId};

use super::collector::Raw;
use super::cursor::{Bad, Cursor};
use super::format::{Certainty, Detection, Fit, Page, Reader};
use super::lines::{scaled, Line, LineParser, Units};
use super::options::{AddressUnit, TimeUnit};

pub(crate) const FIU: Reader = Reader {
    name: "fiu",
    time: TimeUnit::Nanoseconds,
    address: AddressUnit::SECTORS,
    units: Certainty::Address,
    detection: Detection::by_lines(|lines| Fit::of(Fiu(Units::PLAIN), lines)),
    open: |o| o.lines(Fiu(o.units)),
    requests: |_, _| None,
    page: Page {
        layout: "`ts pid process lba size rw major minor [md5]`",
        time: "ns",
        address: "sectors",
        op: "R, W",
        source: "SNIA IOTTA, README of \"FIU IODedup\" (trace 411)",
    },
};

struct Fiu(Units);

/// Largest number of words in a line. A process name with blanks counts as several words.
const COLUMNS_MAX: usize = 32;

fn whole<T>(column: &'static str, expected: &'static str) -> Result<T, Bad> {
    Err(Bad {
        column,
        index: 0,
        expected,
    })
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text)
        .ok()
        .filter(|t| t.bytes().all(|b| b.is_ascii_digit()))?
        .parse()
        .ok()
}

impl LineParser for Fiu {
    const SEPARATOR: u8 = b' ';

    fn parse<'a>(&mut self, line: &'a [u8], _number: u64) -> Result<Line<'a>, Bad> {
        let mut c = Cursor::<b' '>::new(line);
        let time = c.time(self.0.time_ps, "timestamp", "nanoseconds")?;
        c.uint("pid", "a process number")?;
        let mut words = [&line[..0]; COLUMNS_MAX];
        let mut starts = [0usize; COLUMNS_MAX];
        let mut count = 0;
        while !c.at_end() {
            if count == COLUMNS_MAX {
                return whole("line", "at most 32 columns");
            }
            starts[count] = c.position();
            words[count] = c.word();
            count += 1;
        }
        // The word R or W precedes two device numbers and an optional digest.
        let Some(rw) = (3..count.saturating_sub(2)).rev().find(|&i| {
            matches!(words[i], b"R" | b"W" | b"r" | b"w")
                && number(words[i + 1]).is_some()
                && number(words[i + 2]).is_some()
        }) else {
            return whole("rw", "timestamp pid process lba size R|W major minor [md5]");
        };
        let op = if words[rw].eq_ignore_ascii_case(b"r") {
            Op::Read
        } else {
            Op::Write
        };
        let Some(lba) = number(words[rw - 2]) else {
            return whole("lba", "a non-negative integer, sectors of 512 bytes");
        };
        let Some(size) = number(words[rw - 1]) else {
            return whole("size", "a non-negative integer, sectors of 512 bytes");
        };
        let unit = self.0.address_bytes;
        let volume = &line[starts[rw + 1]..starts[rw + 2] + words[rw + 2].len()];
        Ok(Line::Request(Raw {
            time,
            volume,
            op,
            offset: scaled(lba, unit, "lba", 0)?,
            bytes: scaled(size, unit, "size", 0)?,
            fua: false,
            preflush: false,
            placement: PlacementId::NONE,
        }))
    }
}
