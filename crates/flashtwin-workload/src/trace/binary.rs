//! flashtwin's own binary form, which is read without parsing. Little-endian:
//!
//! * header: magic `FLTWTRC1`, length of the description `u32`, zero `u32`, the description;
//! * one record of 24 bytes per request: arrival in picoseconds `u64`, offset `u64`, and a `u64` with op (bits 0-1),
//!   FUA (bit 2) and length in bytes (from bit 8 up);
//! * trailer of 24 bytes: number of requests `u64`, checksum `u64`, `u64::MAX`.
//!
//! Arrivals never decrease. The trailer distinguishes a whole file from a truncated one.
//!
//! Records have a fixed size and aligned words, so that reading is little more than the kernel's copying. Tighter
//! packing would make plain files smaller, but not compressed ones.

use flashtwin::{Op, Request, Time};
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
    detection: Detection::by_mark(|head| head.starts_with(MAGIC).then_some("its mark")),
    open: |_| Ok(Box::new(Binary::default())),
    requests: Binary::requests,
    page: Page {
        layout: "records of 24 bytes",
        time: "ps",
        address: "bytes",
        op: "2 bits",
        source: "flashtwin's own, below",
    },
};

/// First bytes of the form.
const MAGIC: &[u8; 8] = b"FLTWTRC1";
const HEADER_BYTES: usize = 16;
const RECORD_BYTES: usize = 24;
const DESCRIPTION_MAX_BYTES: usize = 64 << 10;
/// Third word of the trailer; no request looks like it.
const END: u64 = u64::MAX;

/// Order-dependent sum over all words; finds swapped, lost and altered records.
fn mix(sum: u64, word: u64) -> u64 {
    (sum.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The words of a record.
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
    count: u64,
    sum: u64,
}

impl BinaryWriter {
    /// Writes the header.
    pub fn start(out: &mut dyn Write, description: &str) -> io::Result<Self> {
        let mut cut = description.len().min(DESCRIPTION_MAX_BYTES);
        while !description.is_char_boundary(cut) {
            cut -= 1;
        }
        out.write_all(MAGIC)?;
        out.write_all(&(cut as u32).to_le_bytes())?;
        out.write_all(&0u32.to_le_bytes())?;
        out.write_all(&description.as_bytes()[..cut])?;
        Ok(BinaryWriter { count: 0, sum: 0 })
    }

    pub fn request(&mut self, out: &mut dyn Write, r: &Request) -> io::Result<()> {
        let kind = r.bytes << 8 | u64::from(r.fua) << 2 | r.op as u64;
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
    started: bool,
    ended: bool,
    count: u64,
    sum: u64,
    /// Arrival of the last request.
    latest: u64,
}

impl Binary {
    /// Requests in a plain file of this form, from its length and the bytes of its header.
    fn requests(file_bytes: u64, head: &[u8]) -> Option<u64> {
        let description = u64::from(u32::from_le_bytes(head.get(8..12)?.try_into().ok()?));
        let fixed = HEADER_BYTES as u64 + description + RECORD_BYTES as u64;
        file_bytes
            .checked_sub(fixed)
            .map(|b| b / RECORD_BYTES as u64)
    }

    fn header(source: &mut Source) -> Result<(), WorkloadError> {
        source.want(HEADER_BYTES)?;
        let head = source.data();
        if !head.starts_with(MAGIC) {
            let text = format!(
                "{}: not flashtwin's binary form (FLTWTRC1 expected)",
                source.name()
            );
            return Err(WorkloadError::new(ErrorKind::UnknownFormat, text));
        }
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
        Ok(())
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
        self.begin(source)?;
        let full = out.len() + most;
        out.reserve(most);
        while !self.ended && out.len() < full && collector.wanted > 0 {
            source.want(RECORD_BYTES)?;
            let left = (full - out.len()).min(usize::try_from(collector.wanted).unwrap_or(full));
            let used = self.usual(source.data(), collector, out, left);
            source.consume(used * RECORD_BYTES);
            if used < left && source.data().len() >= RECORD_BYTES {
                self.unusual(source, collector)?;
                out.extend(collector.pending.drain(..).map(|record| Request {
                    arrival: Time(self.latest),
                    offset: record.offset,
                    bytes: record.bytes,
                    op: record.op,
                    fua: record.fua,
                }));
            } else if used == 0 {
                return Err(cut(source, self.count));
            }
        }
        Ok(!self.ended && collector.wanted > 0)
    }
}

impl Binary {
    /// Reads records up to the first that needs a closer check; returns their number.
    fn usual(
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
            let [arrival, offset, kind] = words(record);
            let bytes = kind >> 8;
            // A read or write that is not empty, and arrives after the previous one, within an hour. A time that goes
            // back appears as a large step.
            let plain = (kind & 3 < 2)
                & (bytes.wrapping_sub(1) < TRANSFER_MAX_BYTES)
                & (offset <= ADDRESS_MAX)
                & (arrival.wrapping_sub(latest) <= HOUR_PS as u64)
                & (arrival >= latest);
            if !plain {
                break;
            }
            sum = mix(mix(mix(sum, arrival), offset), kind);
            latest = arrival;
            handed.extent = handed.extent.max(offset + bytes);
            handed.off_sector += u64::from(!(offset | bytes).is_multiple_of(512));
            out.push(Request {
                arrival: Time(arrival),
                offset,
                bytes,
                op: if kind & 1 == 0 { Op::Read } else { Op::Write },
                fua: kind & 4 != 0,
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
    fn begin(&mut self, source: &mut Source) -> Result<(), WorkloadError> {
        if !self.started {
            Self::header(source)?;
            self.started = true;
        }
        Ok(())
    }

    /// Reads any record, or the trailer.
    fn unusual(
        &mut self,
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
        let raw = Raw {
            time: u128::from(words[0]),
            volume: b"",
            op: match words[2] & 3 {
                0 => Op::Read,
                1 => Op::Write,
                2 => Op::Trim,
                _ => Op::Flush,
            },
            offset: words[1],
            bytes: words[2] >> 8,
            fua: words[2] & 4 != 0,
            preflush: false,
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
        self.begin(source)?;
        while !self.ended && collector.pending.len() < until && collector.wanted > 0 {
            source.want(RECORD_BYTES)?;
            self.unusual(source, collector)?;
        }
        Ok(!self.ended && collector.wanted > 0)
    }

    fn as_ordered(&mut self) -> Option<&mut dyn OrderedDecoder> {
        Some(self)
    }

    fn lines(&self) -> u64 {
        self.count
    }
}
