//! Linux block tracing: the text of `blkparse` and the kernel's binary `blktrace` stream. A request has many events.
//! The option `event` selects the event that counts as the arrival: D (issued to the driver) or Q (queued).

use flashtwin::{Op, PlacementId};

use super::collector::{Collector, Raw};
use super::cursor::{Bad, Cursor};
use super::format::{Certainty, Detection, Fit, Page, Reader};
use super::input::Source;
use super::lines::{scaled, Decoder, Line, LineParser, Units};
use super::options::{AddressUnit, BlkEvent, TimeUnit};
use super::words::rwbs;
use crate::error::{ErrorKind, WorkloadError};

pub(crate) const BLKPARSE: Reader = Reader {
    name: "blkparse",
    time: TimeUnit::Seconds,
    address: AddressUnit::SECTORS,
    units: Certainty::Certain,
    detection: Detection::by_lines(|lines| {
        let fit = |event| {
            let units = Units::PLAIN;
            Fit::of(Blkparse { units, event }, lines)
        };
        let (d, q) = (fit(BlkEvent::D), fit(BlkEvent::Q));
        if q.good > d.good {
            q
        } else {
            d
        }
    }),
    open: |o| {
        o.lines(Blkparse {
            units: o.units,
            event: o.opts.event,
        })
    },
    requests: |_, _| None,
    page: Page {
        layout: "`maj,min cpu seq s pid action rwbs sector + count [name]`",
        time: "s, decimal",
        address: "sectors",
        op: "letters R, W, D",
        source: "blkparse(1), default output; letters from Linux, `blk_fill_rwbs` in \
            `kernel/trace/blktrace.c`",
    },
};

pub(crate) const BLKTRACE: Reader = Reader {
    name: "blktrace",
    time: TimeUnit::Nanoseconds,
    address: AddressUnit::SECTORS,
    units: Certainty::Certain,
    detection: Detection::by_mark(|head| is_blktrace(head).then_some("its mark")),
    open: |o| {
        Ok(Box::new(Blktrace {
            units: o.units,
            event: o.opts.event,
            records: 0,
        }))
    },
    requests: |_, _| None,
    page: Page {
        layout: "records of 48 bytes (layout 7) and payload",
        time: "ns",
        address: "sectors; size in bytes",
        op: "bits of the action",
        source: "Linux, `include/uapi/linux/blktrace_api.h`",
    },
};

/// Parser for lines of the form `maj,min cpu seq seconds pid action rwbs sector + count [process]`.
struct Blkparse {
    units: Units,
    event: BlkEvent,
}

impl LineParser for Blkparse {
    const SEPARATOR: u8 = b' ';

    fn parse<'a>(&mut self, line: &'a [u8], _number: u64) -> Result<Line<'a>, Bad> {
        // Lines of the summary at the end of blkparse's output are skipped. They begin with a word, other lines with a
        // number.
        let first = line.iter().find(|b| !b.is_ascii_whitespace());
        if !first.is_some_and(u8::is_ascii_digit) {
            return Ok(Line::Other);
        }
        let mut c = Cursor::<b' '>::new(line);
        let volume = c.word();
        if !volume.contains(&b',') {
            return c.bad("device", "major,minor");
        }
        c.uint("cpu", "a CPU number")?;
        c.uint("sequence", "a sequence number")?;
        let time = c.time(self.units.time_ps, "time", "seconds, decimal")?;
        c.uint("pid", "a process number")?;
        let action = c.word();
        if action != self.event.name().as_bytes() {
            if action.is_empty() || !action.iter().all(u8::is_ascii_alphabetic) {
                return c.bad("action", "a letter: Q, G, I, D, C ...");
            }
            return Ok(Line::Other);
        }
        let letters = c.word();
        if letters.is_empty() {
            return c.bad("rwbs", "letters: R, W, D, F, N with S, A, M");
        }
        let kind = rwbs(letters);
        let mut raw = Raw {
            time,
            volume,
            op: kind.op.unwrap_or(Op::Flush),
            offset: 0,
            bytes: 0,
            fua: kind.fua,
            preflush: kind.preflush && kind.op.is_some(),
            placement: PlacementId::NONE,
        };
        // In place of the sector, `[process]` denotes an empty flush, and `(..)` contains the bytes of a command.
        let rest = line.get(c.position()..).unwrap_or(b"").trim_ascii_start();
        if kind.op.is_none() || matches!(rest.first(), None | Some(b'[' | b'(')) {
            // An event without a sector is an empty flush, or a command that moves no blocks.
            raw.op = Op::Flush;
            raw.preflush = false;
            return Ok(if kind.preflush {
                Line::Request(raw)
            } else {
                Line::Other
            });
        }
        let sector = c.uint("sector", "a non-negative integer, sectors of 512 bytes")?;
        match c.word() {
            b"+" => {}
            // `36 (12 00 00 ..)` is a SCSI command that is passed through. It is no block request.
            [b'(', ..] => return Ok(Line::Other),
            _ => return c.bad("+", "+ and the number of sectors"),
        }
        let count = c.uint("sectors", "a non-negative integer after the +")?;
        raw.offset = scaled(sector, self.units.address_bytes, "sector", 8)?;
        raw.bytes = scaled(count, self.units.address_bytes, "sectors", 10)?;
        Ok(Line::Request(raw))
    }
}

/// First word of every record: a magic number. Its last byte is the version of the layout.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const RECORD_BYTES: usize = 48;
const ACTION_Q: u32 = 1;
const ACTION_D: u32 = 7;
const TC_WRITE: u32 = 1 << 17;
const TC_FLUSH: u32 = 1 << 18;
const TC_PASS_THROUGH: u32 = 1 << 25;
const TC_NOTIFY: u32 = 1 << 26;
const TC_DISCARD: u32 = 1 << 29;
const TC_FUA: u32 = 1 << 31;

/// Returns whether the bytes begin with a little-endian blktrace record.
fn is_blktrace(data: &[u8]) -> bool {
    data.len() >= RECORD_BYTES && word(data, 0) & 0xffff_ff00 == MAGIC
}

fn word(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

fn double(data: &[u8], at: usize) -> u64 {
    u64::from(word(data, at)) | u64::from(word(data, at + 4)) << 32
}

/// Checks the record at the start of `data`.
fn check(data: &[u8]) -> Result<(), (ErrorKind, String)> {
    if data.len() < RECORD_BYTES {
        let text = "the file ends within a record of 48 bytes; fetch it again";
        return Err((ErrorKind::Truncated, text.into()));
    }
    if !is_blktrace(data) {
        let text = "no blktrace record begins here (magic 0x65617407 expected)";
        return Err((ErrorKind::Malformed, text.into()));
    }
    match word(data, 0) & 0xff {
        VERSION => Ok(()),
        version => {
            let text = format!(
                "blktrace layout {version}, only {VERSION} is read; print it with blkparse and read \
                 the text"
            );
            Err((ErrorKind::Malformed, text))
        }
    }
}

/// Returns the operation of a record, and whether it is a forced write.
fn op_of(action: u32, bytes: u32) -> (Op, bool) {
    match action {
        a if a & TC_DISCARD != 0 => (Op::Trim, false),
        a if a & TC_WRITE != 0 => (Op::Write, a & TC_FUA != 0),
        a if a & TC_FLUSH != 0 && bytes == 0 => (Op::Flush, false),
        _ => (Op::Read, false),
    }
}

/// Decoder of a binary stream: that of one CPU, or the merged stream that `blkparse -d` writes.
struct Blktrace {
    units: Units,
    event: BlkEvent,
    records: u64,
}

impl Decoder for Blktrace {
    fn decode(
        &mut self,
        source: &mut Source,
        collector: &mut Collector,
        until: usize,
    ) -> Result<bool, WorkloadError> {
        let wanted = if self.event == BlkEvent::D {
            ACTION_D
        } else {
            ACTION_Q
        };
        while collector.pending.len() < until && collector.wanted > 0 {
            source.want(RECORD_BYTES)?;
            let data = source.data();
            let place = |what: &str| {
                format!(
                    "{}, record {} (byte {}): {what}",
                    source.name(),
                    self.records + 1,
                    source.position()
                )
            };
            if data.is_empty() {
                return Ok(false);
            }
            if let Err((kind, what)) = check(data) {
                return Err(WorkloadError::new(kind, place(&what)));
            }
            let time = u128::from(double(data, 8)) * u128::from(self.units.time_ps);
            let (sector, bytes, action) = (double(data, 16), word(data, 24), word(data, 28));
            let device = word(data, 36);
            let payload = usize::from(u16::from_le_bytes([data[46], data[47]]));
            let whole = RECORD_BYTES + payload;
            let moves_blocks = action & (TC_PASS_THROUGH | TC_NOTIFY) == 0;
            if action & 0xffff == wanted && moves_blocks {
                let (op, fua) = op_of(action, bytes);
                let Some(offset) = sector.checked_mul(self.units.address_bytes) else {
                    let text = place("the sector number passes 2^62 bytes; the file is damaged");
                    return Err(WorkloadError::new(ErrorKind::Malformed, text));
                };
                let volume = format!("{},{}", device >> 20, device & 0xf_ffff);
                let preflush = action & TC_FLUSH != 0 && op != Op::Flush;
                let bytes = u64::from(bytes);
                let raw = Raw {
                    time,
                    volume: volume.as_bytes(),
                    op,
                    offset,
                    bytes,
                    fua,
                    preflush,
                    placement: PlacementId::NONE,
                };
                collector.push(raw, self.records + 1).map_err(|bad| {
                    let text = place(&format!("{}: expected {}", bad.column, bad.expected));
                    WorkloadError::new(ErrorKind::Malformed, text)
                })?;
            } else {
                collector.passed_over += 1;
            }
            source.want(whole)?;
            if source.data().len() < whole {
                let (name, record) = (source.name(), self.records + 1);
                let text = format!("{name}: the file ends within the payload of record {record}");
                return Err(WorkloadError::new(ErrorKind::Truncated, text));
            }
            source.consume(whole);
            self.records += 1;
        }
        Ok(collector.wanted > 0)
    }

    fn lines(&self) -> u64 {
        self.records
    }
}
