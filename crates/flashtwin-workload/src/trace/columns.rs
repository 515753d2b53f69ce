//! Formats with five columns separated by blanks: `time device address size type`.
//!
//! - DiskSim ascii: times are milliseconds with a decimal point. The type is a hexadecimal number of which bit 0 is set
//!   for a read.
//! - MQSim and SSDSim: times are whole nanoseconds. The type is 0 for a write and 1 for a read.
//!
//! In all of them, addresses and sizes are in sectors of 512 bytes.

use flashtwin::{Op, PlacementId};

use super::collector::Raw;
use super::cursor::{field, Bad, Cursor};
use super::format::{Certainty, Detection, Fit, Opening, Page, Reader};
use super::lines::{scaled, Decoder, Line, LineParser, Units};
use super::options::{AddressUnit, TimeUnit};
use crate::error::WorkloadError;

pub(crate) const DISKSIM: Reader = Reader {
    name: "disksim",
    time: TimeUnit::Milliseconds,
    address: AddressUnit::SECTORS,
    units: Certainty::Both {
        decimal_point: true,
    },
    detection: Detection::by_lines(|lines| fit(lines, true, "times have a decimal point")),
    open: |o| o.lines(Disksim(o.units)),
    requests: |_, _| None,
    page: Page {
        layout: "`time device address size flags`",
        time: "ms, decimal",
        address: "sectors",
        op: "flags, hexadecimal: bit 0 set = read",
        source: "DiskSim 4.0, `iotrace_ascii_get_ioreq_event` in `disksim_iotrace.c`",
    },
};

pub(crate) const MQSIM: Reader = Reader {
    name: "mqsim",
    time: TimeUnit::Nanoseconds,
    address: AddressUnit::SECTORS,
    units: Certainty::Both {
        decimal_point: false,
    },
    detection: Detection::by_lines(|lines| {
        fit(lines, false, "times are whole numbers; ssdsim is the same")
    }),
    open: open_mqsim,
    requests: |_, _| None,
    page: Page {
        layout: "the same columns",
        time: "ns, whole",
        address: "sectors",
        op: "1 = read, 0 = write",
        source: "README of github.com/CMU-SAFARI/MQSim, \"Defining a Trace-based Workload\"",
    },
};

pub(crate) const SSDSIM: Reader = Reader {
    name: "ssdsim",
    time: TimeUnit::Nanoseconds,
    address: AddressUnit::SECTORS,
    units: Certainty::Both {
        decimal_point: false,
    },
    detection: Detection::NONE,
    open: open_mqsim,
    requests: |_, _| None,
    page: Page {
        layout: "the same columns",
        time: "ns, whole",
        address: "sectors",
        op: "1 = read, 0 = write",
        source:
            "`get_requests` in `interface.c` of github.com/zuoerfeng/3Dsim (SSDSim's descendant); \
            reads exactly as `mqsim`",
    },
};

/// Returns how well lines match a format. `decimal` is true for a format in which times have a decimal point. The three
/// formats have the same columns: a decimal point suggests DiskSim, whole numbers suggest MQSim. `note` is a remark on
/// the units.
fn fit(lines: &[&[u8]], decimal: bool, note: &'static str) -> Fit {
    let found = lines
        .iter()
        .filter_map(|l| l.split(|b| b" \t".contains(b)).find(|w| !w.is_empty()))
        .any(|time| time.contains(&b'.'));
    if found != decimal {
        return Fit::NONE;
    }
    Fit {
        note,
        ..Fit::of(Disksim(Units::PLAIN), lines)
    }
}

fn open_mqsim(o: &Opening) -> Result<Box<dyn Decoder>, WorkloadError> {
    o.lines(Mqsim {
        units: o.units,
        // Times of these simulators are whole nanoseconds.
        whole: o.opts.time_unit.is_none(),
    })
}

/// Parser for DiskSim. Flags are hexadecimal. Only bit 0 (read) is used; other bits, such as time-critical, are
/// ignored.
struct Disksim(Units);
/// Parser for MQSim and SSDSim. The type must be 0 or 1.
struct Mqsim {
    units: Units,
    /// Whether times with a fraction are rejected.
    whole: bool,
}

fn five<'a>(
    line: &'a [u8],
    units: Units,
    time_expected: &'static str,
    op_of: impl Fn(&[u8]) -> Option<Op>,
    type_expected: &'static str,
) -> Result<Line<'a>, Bad> {
    let mut c = Cursor::<b' '>::new(line);
    let time = c.time(units.time_ps, "arrival time", time_expected)?;
    let volume = c.name("device", "a device number")?;
    let address = c.uint("address", "a non-negative integer, sectors")?;
    let size = c.uint("size", "a non-negative integer, sectors")?;
    let Some(op) = op_of(c.word()) else {
        return c.bad("type", type_expected);
    };
    c.end("five columns")?;
    Ok(Line::Request(Raw {
        time,
        volume,
        op,
        offset: scaled(address, units.address_bytes, "address", 3)?,
        bytes: scaled(size, units.address_bytes, "size", 4)?,
        fua: false,
        preflush: false,
        placement: PlacementId::NONE,
    }))
}

impl LineParser for Disksim {
    const SEPARATOR: u8 = b' ';

    fn parse<'a>(&mut self, line: &'a [u8], _number: u64) -> Result<Line<'a>, Bad> {
        let op_of = |text: &[u8]| {
            let digits = std::str::from_utf8(text.strip_prefix(b"0x").unwrap_or(text)).ok()?;
            let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
            let flags = u32::from_str_radix(digits, 16).ok().filter(|_| plain)?;
            Some(if flags & 1 == 1 { Op::Read } else { Op::Write })
        };
        let expected = "a hexadecimal number of flags, bit 0 for a read";
        five(line, self.0, "milliseconds, decimal", op_of, expected)
    }
}

impl LineParser for Mqsim {
    const SEPARATOR: u8 = b' ';

    fn parse<'a>(&mut self, line: &'a [u8], _number: u64) -> Result<Line<'a>, Bad> {
        let op_of = |text: &[u8]| match text {
            b"0" => Some(Op::Write),
            b"1" => Some(Op::Read),
            _ => None,
        };
        let expected =
            "integer nanoseconds (fractions: give the unit, time_unit, --time-unit s|ms|us)";
        if self.whole && field(line, b' ', 1).is_some_and(|time| time.contains(&b'.')) {
            return Err(Bad {
                column: "arrival time",
                index: 1,
                expected,
            });
        }
        five(line, self.units, expected, op_of, "0 (write) or 1 (read)")
    }
}
