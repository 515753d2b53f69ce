//! VMware vSCSI binary traces (CloudPhysics): little-endian records of 32 bytes (version 1) or 40 bytes (version 2).
//! Times are in microseconds, addresses in sectors of 512 bytes, lengths in bytes. The SCSI command determines whether
//! a request is a read or a write.

use flashtwin::{Op, PlacementId};

use super::collector::{Collector, Raw};
use super::format::{Certainty, Detection, Page, Reader};
use super::input::Source;
use super::lines::{Decoder, Units};
use super::options::{AddressUnit, TimeUnit};
use crate::error::{ErrorKind, WorkloadError};

pub(crate) const VSCSI: Reader = Reader {
    name: "vscsi",
    time: TimeUnit::Microseconds,
    address: AddressUnit::SECTORS,
    units: Certainty::Certain,
    detection: Detection::by_records(|head| {
        version_of(head).map(|version| format!("records of version {version:?}"))
    }),
    open: |o| {
        Ok(Box::new(Vscsi {
            units: o.units,
            version: version_of(o.source.data()).unwrap_or(Version::One),
            records: 0,
        }))
    },
    requests: |_, _| None,
    page: Page {
        layout: "records of 32 (version 1) or 40 bytes (version 2)",
        time: "us",
        address: "sectors; size in bytes",
        op: "SCSI command",
        source: "`vscsi.h` of github.com/1a1a11a/libCacheSim (the CloudPhysics traces)",
    },
};

/// The two record layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// Layout `sn u32, len u32, nSG u32, cmd u16, ver u16, lbn u64, ts u64`.
    One,
    /// Layout `cmd u16, ver u16, sn u32, len u32, nSG u32, lbn u64, ts u64, rt u64`.
    Two,
}

impl Version {
    const fn record_bytes(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    const fn ver_at(self) -> usize {
        match self {
            Version::One => 14,
            Version::Two => 2,
        }
    }

    const fn number(self) -> u8 {
        match self {
            Version::One => 1,
            Version::Two => 2,
        }
    }

    /// Whether the record contains the number of this version and a plausible SCSI command.
    fn fits(self, record: &[u8]) -> bool {
        let cmd_at = if self == Version::One { 12 } else { 0 };
        record[self.ver_at() + 1] == self.number() && record[cmd_at + 1] == 0
    }
}

/// Returns the version of a trace, from its first records. `None` if the bytes are no vSCSI trace.
fn version_of(data: &[u8]) -> Option<Version> {
    const LOOKED_AT: usize = 16;
    [Version::Two, Version::One].into_iter().find(|v| {
        let records = data.chunks_exact(v.record_bytes()).take(LOOKED_AT);
        records.len() > 0 && records.into_iter().all(|r| v.fits(r))
    })
}

/// Returns the operation for a SCSI command. Returns `None` for commands that are skipped, such as inquiries. UNMAP is
/// also skipped, because the trace does not contain its ranges.
fn op_of(command: u8) -> Option<Op> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(Op::Write),
        0x35 | 0x91 => Some(Op::Flush),
        _ => None,
    }
}

struct Vscsi {
    units: Units,
    version: Version,
    records: u64,
}

fn word(r: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([r[at], r[at + 1], r[at + 2], r[at + 3]])
}

fn double(r: &[u8], at: usize) -> u64 {
    u64::from(word(r, at)) | u64::from(word(r, at + 4)) << 32
}

impl Decoder for Vscsi {
    fn decode(
        &mut self,
        source: &mut Source,
        collector: &mut Collector,
        until: usize,
    ) -> Result<bool, WorkloadError> {
        let size = self.version.record_bytes();
        while collector.pending.len() < until && collector.wanted > 0 {
            source.want(size)?;
            let r = source.data();
            if r.is_empty() {
                return Ok(false);
            }
            let fail = |kind, what: String| {
                let place = format!(
                    "{}, record {} (byte {})",
                    source.name(),
                    self.records + 1,
                    source.position()
                );
                Err(WorkloadError::new(kind, format!("{place}: {what}")))
            };
            if r.len() < size {
                let what = format!("the file ends within a record of {size} bytes; fetch it again");
                return fail(ErrorKind::Truncated, what);
            }
            if r[self.version.ver_at() + 1] != self.version.number() {
                let what = format!("not a vSCSI record of version {}", self.version.number());
                return fail(ErrorKind::Malformed, what);
            }
            let (cmd, len, lbn, ts) = match self.version {
                Version::One => (r[12], word(r, 4), double(r, 16), double(r, 24)),
                Version::Two => (r[0], word(r, 8), double(r, 16), double(r, 24)),
            };
            if let Some(op) = op_of(cmd) {
                let Some(offset) = lbn.checked_mul(self.units.address_bytes) else {
                    return fail(
                        ErrorKind::Malformed,
                        format!("block {lbn} passes 2^62 bytes"),
                    );
                };
                let time = u128::from(ts) * u128::from(self.units.time_ps);
                let bytes = if op == Op::Flush { 0 } else { u64::from(len) };
                let raw = Raw {
                    time,
                    volume: b"",
                    op,
                    offset,
                    bytes,
                    fua: false,
                    preflush: false,
                    placement: PlacementId::NONE,
                };
                if let Err(bad) = collector.push(raw, self.records + 1) {
                    return fail(
                        ErrorKind::Malformed,
                        format!("{}: expected {}", bad.column, bad.expected),
                    );
                }
            } else {
                collector.passed_over += 1;
            }
            source.consume(size);
            self.records += 1;
        }
        Ok(collector.wanted > 0)
    }

    fn lines(&self) -> u64 {
        self.records
    }
}
