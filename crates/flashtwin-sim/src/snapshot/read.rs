//! Reads a snapshot and verifies it before its state is used.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::{BUFFER_BYTES, END, FORMAT, MAGIC, TEXT_BYTES_MAX, TRAILER_BYTES};
use crate::SimError;

/// Reason for which a file cannot be used. The name of the file is not included.
pub(super) enum Unusable {
    Io(io::Error),
    Wrong(String),
}

impl Unusable {
    fn wrong<T>(message: impl Into<String>) -> Result<T, Unusable> {
        Err(Unusable::Wrong(message.into()))
    }

    pub fn at(self, path: &Path) -> SimError {
        match self {
            Unusable::Io(e) => SimError::io(path, "read", e),
            Unusable::Wrong(message) => SimError::snapshot(path, message),
        }
    }
}

impl From<io::Error> for Unusable {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                Unusable::Wrong("ends in its header; make it anew".into())
            }
            _ => Unusable::Io(e),
        }
    }
}

/// Header before the state.
pub(super) struct Header {
    pub fingerprint: String,
    pub made_by: String,
    /// Length of the header.
    pub bytes: u64,
}

impl Header {
    pub fn read(input: &mut impl Read, file_bytes: u64) -> Result<Header, Unusable> {
        let mut magic = [0; MAGIC.len()];
        if file_bytes < MAGIC.len() as u64 {
            return Unusable::wrong("is no snapshot of flashtwin");
        }
        input.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Unusable::wrong("is no snapshot of flashtwin");
        }
        let format = read_u32(input)?;
        let mut bytes = MAGIC.len() as u64 + 4;
        let mut text = || -> Result<String, Unusable> {
            let length = read_u32(input)?;
            if length > TEXT_BYTES_MAX {
                return Unusable::wrong("has a damaged header; make it anew");
            }
            let mut text = vec![0; length as usize];
            input.read_exact(&mut text)?;
            bytes += 4 + u64::from(length);
            match String::from_utf8(text) {
                Ok(text) => Ok(text),
                Err(_) => Unusable::wrong("has a damaged header; make it anew"),
            }
        };
        let version = text()?;
        if format != FORMAT {
            return Unusable::wrong(format!(
                "has format {format}, written by flashtwin {}; this is flashtwin {}, which reads \
                 format {FORMAT}: make it anew",
                version.escape_debug(),
                env!("CARGO_PKG_VERSION")
            ));
        }
        let (fingerprint, made_by) = (text()?, text()?);
        Ok(Header {
            fingerprint,
            made_by,
            bytes,
        })
    }
}

fn read_u32(input: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Checks the end mark, the length and the checksum of a snapshot. Returns the length of the state.
pub(super) fn verify(
    input: &mut (impl Read + Seek),
    file_bytes: u64,
    header_bytes: u64,
) -> Result<u64, Unusable> {
    let Some(state_bytes) = file_bytes.checked_sub(header_bytes + TRAILER_BYTES) else {
        return Unusable::wrong("is truncated; make it anew");
    };
    input.seek(SeekFrom::Start(0))?;
    let mut crc = crc32fast::Hasher::new();
    let mut left = file_bytes - 8;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut length = [0; 8];
    while left > 0 {
        let n = left.min(BUFFER_BYTES as u64) as usize;
        input.read_exact(&mut buffer[..n])?;
        crc.update(&buffer[..n]);
        left -= n as u64;
        // The last eight bytes before the checksum are the length of the state. The end of the buffer may fall between
        // them.
        let kept = n.min(8);
        length.rotate_left(kept);
        length[8 - kept..].copy_from_slice(&buffer[n - kept..n]);
    }
    let expected_crc = read_u32(input)?;
    let mut end = [0; END.len()];
    input.read_exact(&mut end)?;
    if end != *END || u64::from_le_bytes(length) != state_bytes {
        return Unusable::wrong("is truncated, or has bytes added at its end; make it anew");
    }
    if crc.finalize() != expected_crc {
        return Unusable::wrong("is damaged: its checksum is wrong; make it anew");
    }
    Ok(state_bytes)
}

/// Returns a description of the first line in which the two fingerprints differ; `None` if they are equal.
pub(super) fn difference(of_file: &str, of_device: &str) -> Option<String> {
    let mut file_lines = of_file.lines();
    for line in of_device.lines() {
        let found = file_lines.next().unwrap_or_default();
        if line != found {
            let key = line.split_once(" = ").map_or(line, |(key, _)| key);
            let value = |line: &str| match line.split_once(" = ") {
                Some((of, value)) if of == key => value.escape_debug().to_string(),
                _ => "-".into(),
            };
            let (snapshot, device) = (value(found), value(line));
            return Some(format!(
                "{key} is {snapshot} in the snapshot, {device} in the device"
            ));
        }
    }
    file_lines
        .next()
        .map(|line| format!("the snapshot also has {}", line.escape_debug()))
}
