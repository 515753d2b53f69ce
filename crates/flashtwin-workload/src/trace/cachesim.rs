//! libCacheSim's binary traces, little-endian and packed. There are two forms. Both identify objects by number; in
//! block traces, the number is the address of the block. Times are in seconds, sizes in bytes.
//!
//! * oracleGeneral: records of 24 bytes: the time `u32`, the object `u64`, its size `u32`, and the number of the next
//!   request to the object, `i64`. If there is no next request, this number is negative or the largest possible number.
//!   The form has no operations, so all requests are reads.
//! * lcs: a header, then records whose layout depends on the version. The first and the last word of the header are
//!   `LCS_MARK`, the second is the version. From version 2 on, records have an operation.

use flashtwin::{Op, PlacementId};

use super::collector::{Collector, Raw, ADDRESS_MAX};
use super::format::{Certainty, Detection, Page, Reader};
use super::input::Source;
use super::lines::{Decoder, Units};
use super::options::{AddressUnit, TimeUnit};
use crate::error::{ErrorKind, WorkloadError};

/// First and last word of an lcs header.
const LCS_MARK: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();
/// Length of the header in bytes, in current files and in old files.
const LCS_HEADERS: [usize; 2] = [8192, 1024];
const ORACLE_BYTES: usize = 24;
/// Number of records examined to recognise an oracleGeneral trace.
const LOOKED_AT: usize = 1024;

pub(crate) const ORACLE_GENERAL: Reader = Reader {
    name: "oraclegeneral",
    time: TimeUnit::Seconds,
    address: AddressUnit::SECTORS,
    units: Certainty::Objects,
    detection: Detection::by_records(|head| {
        is_oracle_general(head).then(|| {
            "its references to next requests are right; it holds no operations, all are reads"
                .into()
        })
    }),
    open: |o| Ok(Box::new(Cachesim::oracle_general(o.units))),
    requests: |_, _| None,
    page: Page {
        layout: "records of 24 bytes",
        time: "s",
        address: "object number in sectors; size in bytes",
        op: "none: all are reads",
        source: "FAQ.md and `oracleGeneralBin.h` of github.com/1a1a11a/libCacheSim",
    },
};

pub(crate) const LCS: Reader = Reader {
    name: "lcs",
    time: TimeUnit::Seconds,
    address: AddressUnit::SECTORS,
    units: Certainty::Objects,
    detection: Detection::by_mark(|head| is_lcs(head).then_some("its mark")),
    open: |o| Ok(Box::new(Cachesim::lcs(o.units, o.source)?)),
    requests: |_, _| None,
    page: Page {
        layout: "a header, records by version (1 to 8)",
        time: "s",
        address: "object number in sectors; size in bytes",
        op: "number of the operation; none in version 1",
        source: "`lcs.h` of github.com/1a1a11a/libCacheSim",
    },
};

/// Offsets of the fields of a record.
#[derive(Clone, Copy)]
struct Layout {
    record_bytes: usize,
    /// Whether the size is a word of 8 bytes. Otherwise it is a word of 4 bytes.
    wide_size: bool,
    /// Offset of the byte with the operation; `None` if records have no operation.
    op_at: Option<usize>,
}

const ORACLE: Layout = Layout {
    record_bytes: ORACLE_BYTES,
    wide_size: false,
    op_at: None,
};

/// Returns the layout of records in a version of lcs; `None` for unknown versions. From version 4 on, records have
/// further fields at their end, which are skipped.
fn lcs_layout(version: u64) -> Option<Layout> {
    let features = match version {
        1 => return Some(ORACLE),
        2 => {
            return Some(Layout {
                record_bytes: 28,
                wide_size: false,
                op_at: Some(16),
            })
        }
        3 => 0,
        4..=8 => 1 << (version - 4),
        _ => return None,
    };
    Some(Layout {
        record_bytes: 36 + 4 * features,
        wide_size: true,
        op_at: Some(20),
    })
}

#[inline]
fn word(r: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&r[at..at + 4]);
    u32::from_le_bytes(bytes)
}

#[inline]
fn double(r: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&r[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Returns whether the bytes begin with the mark of an lcs header.
fn is_lcs(head: &[u8]) -> bool {
    head.starts_with(&LCS_MARK)
}

/// Whether a file consists of oracleGeneral records, judged by its first bytes. This is so if times are in order and
/// each number of a next request refers to a request to the same object.
fn is_oracle_general(head: &[u8]) -> bool {
    let records: Vec<&[u8]> = head.chunks_exact(ORACLE_BYTES).take(LOOKED_AT).collect();
    let mut latest = 0;
    let right = records.iter().enumerate().all(|(i, r)| {
        let in_order = word(r, 0) >= latest;
        latest = word(r, 0);
        // In some files, requests are numbered from 0, in others from 1.
        let next = double(r, 16) as i64;
        let none = next < 0 || next == i64::MAX;
        let refers = |base: usize| {
            let Some(j) = usize::try_from(next).ok().and_then(|n| n.checked_sub(base)) else {
                return false;
            };
            j > i && records.get(j).is_none_or(|n| double(n, 4) == double(r, 4))
        };
        in_order && (none || refers(0) || refers(1))
    });
    right && !records.is_empty()
}

/// Returns the operation that a number denotes in lcs. The numbers cover operations of key-value caches and of block
/// devices.
fn op_of(number: u8) -> Option<Op> {
    match number {
        // get, gets, read; and traces converted without operations
        0 | 1 | 2 | 12 => Some(Op::Read),
        // set, add, cas, replace, append, prepend; increment, decrement; write, update
        3..=8 | 10 | 11 | 13 | 14 => Some(Op::Write),
        9 => Some(Op::Trim),
        _ => None,
    }
}

struct Cachesim {
    units: Units,
    layout: Layout,
    /// Number of bytes of the header that have not been skipped yet.
    header_bytes: usize,
    records: u64,
}

impl Cachesim {
    fn oracle_general(units: Units) -> Self {
        Cachesim {
            units,
            layout: ORACLE,
            header_bytes: 0,
            records: 0,
        }
    }

    fn lcs(units: Units, source: &Source) -> Result<Self, WorkloadError> {
        let head = source.data();
        let wrong = |what: String| {
            let text = format!("{}: {what}", source.name());
            Err(WorkloadError::new(ErrorKind::Malformed, text))
        };
        let header = LCS_HEADERS
            .into_iter()
            .find(|&n| head.get(n - 8..n) == Some(&LCS_MARK[..]) && is_lcs(head));
        let Some(header_bytes) = header else {
            return wrong("no whole lcs header; fetch or convert the file again".to_string());
        };
        let version = double(head, 8);
        let Some(layout) = lcs_layout(version) else {
            return wrong(format!("lcs version {version}; versions 1 to 8 are read"));
        };
        Ok(Cachesim {
            units,
            layout,
            header_bytes,
            records: 0,
        })
    }
}

impl Decoder for Cachesim {
    fn decode(
        &mut self,
        source: &mut Source,
        collector: &mut Collector,
        until: usize,
    ) -> Result<bool, WorkloadError> {
        source.consume(std::mem::take(&mut self.header_bytes));
        let Cachesim { units, layout, .. } = *self;
        let size = layout.record_bytes;
        while collector.pending.len() < until && collector.wanted > 0 {
            source.want(size)?;
            let (data, position) = (source.data(), source.position());
            if data.is_empty() {
                return Ok(false);
            }
            let mut used = 0;
            let fail = |record: u64, used, kind, what: String| {
                let place = format!(
                    "{}, record {record} (byte {})",
                    source.name(),
                    position + used as u64
                );
                Err(WorkloadError::new(kind, format!("{place}: {what}")))
            };
            if data.len() < size {
                let what = format!("the file ends within a record of {size} bytes; fetch it again");
                return fail(self.records + 1, used, ErrorKind::Truncated, what);
            }
            let room = (until - collector.pending.len()) as u64;
            let most = room.min(collector.wanted) as usize;
            for r in data.chunks_exact(size).take(most) {
                let object = double(r, 4);
                let offset = object.checked_mul(units.address_bytes);
                let Some(offset) = offset.filter(|&o| o <= ADDRESS_MAX) else {
                    let what = format!(
                        "object {object} is no address below 2^62 bytes; a trace whose objects are hashed names \
                         cannot be replayed on a device (or give address_unit, --address-unit bytes)"
                    );
                    return fail(self.records + 1, used, ErrorKind::Malformed, what);
                };
                let bytes = if layout.wide_size {
                    double(r, 12)
                } else {
                    u64::from(word(r, 12))
                };
                match layout.op_at.map_or(Some(Op::Read), |at| op_of(r[at])) {
                    Some(op) => {
                        let raw = Raw {
                            time: u128::from(word(r, 0)) * u128::from(units.time_ps),
                            volume: b"",
                            op,
                            offset,
                            bytes,
                            fua: false,
                            preflush: false,
                            placement: PlacementId::NONE,
                        };
                        if let Err(bad) = collector.push(raw, self.records + 1) {
                            let what = format!("{}: expected {}", bad.column, bad.expected);
                            return fail(self.records + 1, used, ErrorKind::Malformed, what);
                        }
                    }
                    None => collector.passed_over += 1,
                }
                used += size;
                self.records += 1;
            }
            source.consume(used);
        }
        Ok(collector.wanted > 0)
    }

    fn lines(&self) -> u64 {
        self.records
    }
}
