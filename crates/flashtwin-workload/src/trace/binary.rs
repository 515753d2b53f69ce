//! flashtwin's own binary form: parsed once, read back without parsing. Little-endian:
//!
//! * header: magic `FLTWTRC1`, length of the description `u32`, zero `u32`, the description;
//! * one record of 24 bytes a request: arrival in picoseconds `u64`, offset `u64`, and a `u64`
//!   holding op (bits 0-1), FUA (bit 2) and length in bytes (from bit 8 up);
//! * trailer of 24 bytes: number of requests `u64`, checksum `u64`, `u64::MAX`.
//!
//! The trailer distinguishes a whole file from a truncated one.

use flashtwin::{Op, Request};
use std::io::{self, Write};

use super::format::{Certainty, Detection, Page, Reader};
use super::input::Source;
use super::lines::Decoder;
use super::options::{AddressUnit, TimeUnit};
use super::record::{Collector, Raw};
use crate::error::{ErrorKind, WorkloadError};

pub(crate) const BINARY: Reader = Reader {
    name: "binary",
    time: TimeUnit::Picoseconds,
    address: AddressUnit::Bytes,
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

fn word(data: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&data[at..at + 8]);
    u64::from_le_bytes(bytes)
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
        for word in [r.arrival.0, r.offset, kind] {
            self.sum = mix(self.sum, word);
            out.write_all(&word.to_le_bytes())?;
        }
        self.count += 1;
        Ok(())
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

impl Decoder for Binary {
    fn decode(
        &mut self,
        source: &mut Source,
        collector: &mut Collector,
        until: usize,
    ) -> Result<bool, WorkloadError> {
        if !self.started {
            Self::header(source)?;
            self.started = true;
        }
        while !self.ended && collector.pending.len() < until && collector.wanted > 0 {
            source.want(RECORD_BYTES)?;
            let data = source.data();
            if data.len() < RECORD_BYTES {
                return Err(cut(source, self.count));
            }
            let words = [word(data, 0), word(data, 8), word(data, 16)];
            if words[2] == END {
                if words[0] != self.count || words[1] != self.sum {
                    let text = format!(
                        "{}: count or checksum is wrong after {} requests; convert the trace again",
                        source.name(),
                        self.count
                    );
                    return Err(WorkloadError::new(ErrorKind::Malformed, text));
                }
                self.ended = true;
                break;
            }
            let op = match words[2] & 3 {
                0 => Op::Read,
                1 => Op::Write,
                2 => Op::Trim,
                _ => Op::Flush,
            };
            let raw = Raw {
                time: u128::from(words[0]),
                volume: b"",
                op,
                offset: words[1],
                bytes: words[2] >> 8,
                fua: words[2] & 4 != 0,
                preflush: false,
            };
            self.count += 1;
            self.sum = words.into_iter().fold(self.sum, mix);
            if let Err(bad) = collector.push(raw, self.count) {
                let text = format!(
                    "{}, request {}: {}: expected {}",
                    source.name(),
                    self.count,
                    bad.column,
                    bad.expected
                );
                return Err(WorkloadError::new(ErrorKind::Malformed, text));
            }
            source.consume(RECORD_BYTES);
        }
        Ok(!self.ended && collector.wanted > 0)
    }

    fn lines(&self) -> u64 {
        self.count
    }
}
