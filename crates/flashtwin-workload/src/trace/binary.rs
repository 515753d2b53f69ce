//! flashtwin's own binary form of traces, which is read without parsing. All numbers are little-endian:
//!
//! - Header: magic `FLTWTRC1` or `FLTWTRC2`, length of the description `u32`, zero `u32`, the description.
//! - One record of 24 bytes per request: arrival in picoseconds `u64`, offset `u64`, and a `u64` with the fields below.
//! - Trailer of 24 bytes: number of requests `u64`, checksum `u64`, `u64::MAX`.
//!
//! | field | bits in version 1 | bits in version 2 |
//! |---|---|---|
//! | operation | 0-1 | 0-3 |
//! | FUA | 2 | 4 |
//! | whether there is a placement id | | 5 |
//! | placement id | | 8-23 |
//! | length in bytes | from 8 up | from 24 up |
//!
//! Version 2 is written only if the trace has placement ids. In version 2, the field for the operation is wider than
//! needed, so that operations can be added later.
//!
//! Arrivals never decrease. A file without the trailer is truncated.
//!
//! Records have a fixed size and aligned words. Therefore reading them takes little more time than the kernel needs to
//! copy them. Tighter packing would make plain files smaller, but not compressed ones.

use flashtwin::{Op, PlacementId, Request, Time};
use std::io::{self, Write};

use super::collector::{Collector, Handed, Raw, ADDRESS_MAX, HOUR_PS, TRANSFER_MAX_BYTES};
use super::format::{Certainty, Detection, Page, Reader};
use super::input::Source;
use super::lines::{Decoder, OrderedDecoder};
use super::options::{AddressUnit, TimeUnit};
use crate::error::{ErrorKind, WorkloadError};

pub(crate) const BINARY: Reader = Reader {
    name: "binary",
    time: TimeUnit::Picoseconds,
    address: AddressUnit::BYTES,
    units: Certainty::Certain,
    detection: Detection::by_mark(|head| Version::of_head(head).map(|_| "its mark")),
    open: |_| Ok(Box::new(Binary::default())),
    requests: Binary::requests,
    page: Page {
        layout: "records of 24 bytes",
        time: "ps",
        address: "bytes",
        op: "2 or 4 bits",
        source: "flashtwin's own, below",
    },
};

/// Version of the form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    #[default]
    V1,
    V2,
}

impl Version {
    /// Returns the version in which a trace is written, which depends on whether it has placement ids.
    pub fn of(has_placement: bool) -> Self {
        match has_placement {
            true => Version::V2,
            false => Version::V1,
        }
    }

    /// Returns the first bytes of a file.
    fn magic(self) -> &'static [u8; 8] {
        match self {
            Version::V1 => b"FLTWTRC1",
            Version::V2 => b"FLTWTRC2",
        }
    }

    fn of_head(head: &[u8]) -> Option<Self> {
        let all = [Version::V1, Version::V2];
        all.into_iter().find(|v| head.starts_with(v.magic()))
    }
}

/// Fields of the third word of a record.
#[derive(Clone, Copy)]
struct Kind {
    /// Number of the operation.
    op: u64,
    fua: bool,
    bytes: u64,
    placement: PlacementId,
}

impl Kind {
    #[inline(always)]
    fn of<const HAS_IDS: bool>(word: u64) -> Self {
        if !HAS_IDS {
            return Kind {
                op: word & 3,
                fua: word & 4 != 0,
                bytes: word >> 8,
                placement: PlacementId::NONE,
            };
        }
        let id = PlacementId::new((word >> 8) as u16).filter(|_| word & PRESENT_V2 != 0);
        Kind {
            op: word & 15,
            fua: word & FUA_V2 != 0,
            bytes: word >> 24,
            placement: id.unwrap_or_default(),
        }
    }
}

const FUA_V2: u64 = 1 << 4;
const PRESENT_V2: u64 = 1 << 5;
/// Bits that no version so far uses.
const UNUSED_V2: u64 = 3 << 6;
/// Largest trim in bytes that is written as one record of version 2. Longer trims are split into pieces of this length.
const PIECE_BYTES_V2: u64 = 1 << 39;
const HEADER_BYTES: usize = 16;
const RECORD_BYTES: usize = 24;
const DESCRIPTION_MAX_BYTES: usize = 64 << 10;
/// Third word of the trailer. No record of a request has this value.
const END: u64 = u64::MAX;

/// Adds a word to a checksum. The checksum depends on the order of the words, so it detects swapped, lost and altered
/// records.
fn mix(sum: u64, word: u64) -> u64 {
    (sum.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the words of a record.
#[inline]
fn words(record: &[u8; RECORD_BYTES]) -> [u64; 3] {
    let word = |at| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&record[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    [word(0), word(8), word(16)]
}

/// Writes the form request by request.
pub(crate) struct BinaryWriter {
    version: Version,
    count: u64,
    sum: u64,
}

impl BinaryWriter {
    /// Writes the header.
    pub fn start(out: &mut dyn Write, version: Version, description: &str) -> io::Result<Self> {
        let mut cut = description.len().min(DESCRIPTION_MAX_BYTES);
        while !description.is_char_boundary(cut) {
            cut -= 1;
        }
        out.write_all(version.magic())?;
        out.write_all(&(cut as u32).to_le_bytes())?;
        out.write_all(&0u32.to_le_bytes())?;
        out.write_all(&description.as_bytes()[..cut])?;
        Ok(BinaryWriter {
            version,
            count: 0,
            sum: 0,
        })
    }

    pub fn request(&mut self, out: &mut dyn Write, request: &Request) -> io::Result<()> {
        let mut rest = *request;
        while self.version == Version::V2 && rest.bytes > PIECE_BYTES_V2 {
            let piece = Request {
                bytes: PIECE_BYTES_V2,
                ..rest
            };
            self.record(out, &piece)?;
            rest.offset += PIECE_BYTES_V2;
            rest.bytes -= PIECE_BYTES_V2;
        }
        self.record(out, &rest)
    }

    fn record(&mut self, out: &mut dyn Write, r: &Request) -> io::Result<()> {
        let (op, fua) = (r.op as u64, u64::from(r.fua));
        let kind = match (self.version, r.placement.get()) {
            (Version::V1, _) => r.bytes << 8 | fua << 2 | op,
            (Version::V2, None) => r.bytes << 24 | fua << 4 | op,
            (Version::V2, Some(id)) => {
                r.bytes << 24 | u64::from(id) << 8 | PRESENT_V2 | fua << 4 | op
            }
        };
        let mut record = [0; RECORD_BYTES];
        for (bytes, word) in record
            .chunks_exact_mut(8)
            .zip([r.arrival.0, r.offset, kind])
        {
            self.sum = mix(self.sum, word);
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        self.count += 1;
        out.write_all(&record)
    }

    pub fn finish(self, out: &mut dyn Write) -> io::Result<()> {
        for word in [self.count, self.sum, END] {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Binary {
    /// The version, once the header has been read.
    version: Option<Version>,
    ended: bool,
    count: u64,
    sum: u64,
    /// Arrival of the last request.
    latest: u64,
}

impl Binary {
    /// Returns the number of requests in an uncompressed file of this form. It follows from the length of the file and
    /// from the length of the description in the header.
    fn requests(file_bytes: u64, head: &[u8]) -> Option<u64> {
        let description = u64::from(u32::from_le_bytes(head.get(8..12)?.try_into().ok()?));
        let fixed = HEADER_BYTES as u64 + description + RECORD_BYTES as u64;
        file_bytes
            .checked_sub(fixed)
            .map(|b| b / RECORD_BYTES as u64)
    }

    fn header(source: &mut Source) -> Result<Version, WorkloadError> {
        source.want(HEADER_BYTES)?;
        let head = source.data();
        let Some(version) = Version::of_head(head) else {
            let text = format!(
                "{}: not flashtwin's binary form (FLTWTRC1 or FLTWTRC2 expected)",
                source.name()
            );
            return Err(WorkloadError::new(ErrorKind::UnknownFormat, text));
        };
        let length = head
            .get(8..12)
            .and_then(|b| b.try_into().ok())
            .map(u32::from_le_bytes);
        let whole = HEADER_BYTES + length.unwrap_or(0) as usize;
        if length.is_none_or(|l| l as usize > DESCRIPTION_MAX_BYTES) {
            let text = format!(
                "{}: the header is cut or damaged; convert the trace again",
                source.name()
            );
            return Err(WorkloadError::new(ErrorKind::Malformed, text));
        }
        source.want(whole)?;
        if source.data().len() < whole {
            return Err(cut(source, 0));
        }
        source.consume(whole);
        Ok(version)
    }
}

fn cut(source: &Source, count: u64) -> WorkloadError {
    let text = format!(
        "{}: the file ends after {count} requests without its trailer; convert the trace again",
        source.name()
    );
    WorkloadError::new(ErrorKind::Truncated, text)
}

impl OrderedDecoder for Binary {
    fn read(
        &mut self,
        source: &mut Source,
        collector: &mut Collector,
        out: &mut Vec<Request>,
        most: usize,
    ) -> Result<bool, WorkloadError> {
        let version = self.begin(source)?;
        let full = out.len() + most;
        out.reserve(most);
        while !self.ended && out.len() < full && collector.wanted > 0 {
            source.want(RECORD_BYTES)?;
            let left = (full - out.len()).min(usize::try_from(collector.wanted).unwrap_or(full));
            let used = match version {
                Version::V1 => self.usual::<false>(source.data(), collector, out, left),
                Version::V2 => self.usual::<true>(source.data(), collector, out, left),
            };
            source.consume(used * RECORD_BYTES);
            if used < left && source.data().len() >= RECORD_BYTES {
                self.unusual(version, source, collector)?;
                out.extend(collector.pending.drain(..).map(|record| Request {
                    arrival: Time(self.latest),
                    offset: record.offset,
                    bytes: record.bytes,
                    op: record.op,
                    fua: record.fua,
                    placement: record.placement,
                }));
            } else if used == 0 {
                return Err(cut(source, self.count));
            }
        }
        Ok(!self.ended && collector.wanted > 0)
    }
}

impl Binary {
    /// Reads records up to the first one that needs a closer check ([`Binary::unusual`]). Returns the number of records
    /// read.
    fn usual<const HAS_IDS: bool>(
        &mut self,
        data: &[u8],
        collector: &mut Collector,
        out: &mut Vec<Request>,
        most: usize,
    ) -> usize {
        let (mut sum, mut latest) = (self.sum, self.latest);
        let mut handed = Handed::default();
        let before = out.len();
        for record in data.as_chunks::<RECORD_BYTES>().0.iter().take(most) {
            let [arrival, offset, word] = words(record);
            let kind = Kind::of::<HAS_IDS>(word);
            let bytes = kind.bytes;
            // A plain record is a read or write with a length that arrives at most an hour after the previous record.
            // If time goes back, the difference wraps around to a large number, and the comparison fails.
            let plain = (kind.op < 2)
                & (!HAS_IDS | (word & UNUSED_V2 == 0))
                & (bytes.wrapping_sub(1) < TRANSFER_MAX_BYTES)
                & (offset <= ADDRESS_MAX)
                & (arrival.wrapping_sub(latest) <= HOUR_PS as u64)
                & (arrival >= latest);
            if !plain {
                break;
            }
            sum = mix(mix(mix(sum, arrival), offset), word);
            latest = arrival;
            handed.extent = handed.extent.max(offset + bytes);
            handed.off_sector += u64::from(!(offset | bytes).is_multiple_of(512));
            out.push(Request {
                arrival: Time(arrival),
                offset,
                bytes,
                op: if kind.op == 0 { Op::Read } else { Op::Write },
                fua: kind.fua,
                placement: kind.placement,
            });
        }
        let used = out.len() - before;
        handed.requests = used as u64;
        collector.handed_on(&handed, u128::from(latest));
        (self.sum, self.latest) = (sum, latest);
        self.count += used as u64;
        used
    }

    /// Reads the header, once.
    fn begin(&mut self, source: &mut Source) -> Result<Version, WorkloadError> {
        let version = match self.version {
            Some(version) => version,
            None => Self::header(source)?,
        };
        self.version = Some(version);
        Ok(version)
    }

    /// Reads one record of any kind, or the trailer.
    fn unusual(
        &mut self,
        version: Version,
        source: &mut Source,
        collector: &mut Collector,
    ) -> Result<(), WorkloadError> {
        let Some(record) = source.data().first_chunk() else {
            return Err(cut(source, self.count));
        };
        let words = words(record);
        let malformed = |text: String| WorkloadError::new(ErrorKind::Malformed, text);
        if words[2] == END {
            if words[0] != self.count || words[1] != self.sum {
                return Err(malformed(format!(
                    "{}: count or checksum is wrong after {} requests; convert the trace again",
                    source.name(),
                    self.count
                )));
            }
            self.ended = true;
            return Ok(());
        }
        self.count += 1;
        self.sum = words.into_iter().fold(self.sum, mix);
        let place = || format!("{}, request {}", source.name(), self.count);
        if words[0] < self.latest {
            return Err(malformed(format!(
                "{}: it arrives before the last; requests of the binary form are in order of arrival",
                place()
            )));
        }
        self.latest = words[0];
        let kind = match version {
            Version::V1 => Kind::of::<false>(words[2]),
            Version::V2 => Kind::of::<true>(words[2]),
        };
        let op = match kind.op {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Trim,
            3 => Op::Flush,
            other => {
                return Err(malformed(format!(
                    "{}: operation {other}: expected 0 (read), 1 (write), 2 (trim) or 3 (flush); the file is of a \
                     later version of flashtwin: convert the trace again with this one",
                    place()
                )))
            }
        };
        if version == Version::V2 && words[2] & UNUSED_V2 != 0 {
            return Err(malformed(format!(
                "{}: bits 6 and 7 of its last word must be 0; the file is of a later version of flashtwin: convert \
                 the trace again with this one",
                place()
            )));
        }
        let raw = Raw {
            time: u128::from(words[0]),
            volume: b"",
            op,
            offset: words[1],
            bytes: kind.bytes,
            fua: kind.fua,
            preflush: false,
            placement: kind.placement,
        };
        if let Err(bad) = collector.push(raw, self.count) {
            return Err(malformed(format!(
                "{}: {}: expected {}",
                place(),
                bad.column,
                bad.expected
            )));
        }
        source.consume(RECORD_BYTES);
        Ok(())
    }
}

impl Decoder for Binary {
    fn decode(
        &mut self,
        source: &mut Source,
        collector: &mut Collector,
        until: usize,
    ) -> Result<bool, WorkloadError> {
        let version = self.begin(source)?;
        while !self.ended && collector.pending.len() < until && collector.wanted > 0 {
            source.want(RECORD_BYTES)?;
            self.unusual(version, source, collector)?;
        }
        Ok(!self.ended && collector.wanted > 0)
    }

    fn has_placement(&self) -> bool {
        self.version == Some(Version::V2)
    }

    fn as_ordered(&mut self) -> Option<&mut dyn OrderedDecoder> {
        Some(self)
    }

    fn lines(&self) -> u64 {
        self.count
    }
}
