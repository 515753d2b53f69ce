//! Snapshots: files with the flash state of a device. With a snapshot, a device has to be preconditioned only once.
//!
//! A file consists of a magic number, the format version, three texts (flashtwin's version, the fingerprint, the origin
//! of the state), the state, the length of the state, a CRC-32 of everything before it, and an end mark. The
//! fingerprint contains only settings on which the state depends. The loaded device may therefore differ from the saved
//! one in timing, link and buffer. A file gets its final name only when it is complete. It is loaded only if its
//! checksum is correct.

mod fingerprint;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom};
use std::path::Path;

use flashtwin::{Device, StateError};

use crate::{Drivable, SimError};
use fingerprint::fingerprint;
use read::{difference, verify, Header};
use write::save_through;

const MAGIC: &[u8; 16] = b"flashtwin state\n";
const FORMAT: u32 = 1;
const END: &[u8; 4] = b"end\n";
/// Length of the state, checksum, end mark.
const TRAILER_BYTES: u64 = 8 + 4 + 4;
/// Longest of the texts in the header.
const TEXT_BYTES_MAX: u32 = 64 * 1024;
const BUFFER_BYTES: usize = 256 * 1024;

/// Saves the flash state of an idle device, without the contents of its buffer. `made_by` describes the origin of the
/// state for people and programs that read the file.
///
/// # Errors
/// Fails if the file cannot be written. An older file of this name then remains.
pub fn save_snapshot<S: Drivable>(
    path: &Path,
    device: &Device<S>,
    made_by: &str,
) -> Result<(), SimError> {
    if made_by.len() > TEXT_BYTES_MAX as usize {
        let message = format!("the description is longer than {TEXT_BYTES_MAX} bytes; shorten it");
        return Err(SimError::snapshot(path, message));
    }
    save_through(path, device, made_by, |file| {
        Box::new(BufWriter::with_capacity(BUFFER_BYTES, file))
    })
}

/// Loads a snapshot into an idle device with the same fingerprint. Returns the origin of the state, as given to
/// [`save_snapshot`].
///
/// The snapshot of an array fits every array with the same members, regardless of the level. With SWAN, it fits only
/// SWAN arrays with the same groups and segments. An error leaves the device unchanged, with one exception: the
/// checksum is correct, but the file has more state than the device.
///
/// # Errors
/// Fails if the file cannot be read, is damaged, is no snapshot, or belongs to another version or another device.
pub fn load_snapshot<S: Drivable>(path: &Path, device: &mut Device<S>) -> Result<String, SimError> {
    let opening = |e| SimError::io(path, "open", e);
    // Opening a pipe would wait for its writer.
    if !std::fs::metadata(path).map_err(opening)?.is_file() {
        return Err(SimError::snapshot(
            path,
            "is no regular file; give one, as in warm.snapshot",
        ));
    }
    let file = File::open(path).map_err(opening)?;
    let file_bytes = file
        .metadata()
        .map_err(|e| SimError::io(path, "read", e))?
        .len();
    let mut input = BufReader::with_capacity(BUFFER_BYTES, file);
    let header = Header::read(&mut input, file_bytes).map_err(|e| e.at(path))?;
    if let Some(difference) = difference(&header.fingerprint, &fingerprint(&S::describe(device))) {
        return Err(SimError::snapshot(
            path,
            format!("is of another device: {difference}"),
        ));
    }
    let state_bytes = verify(&mut input, file_bytes, header.bytes).map_err(|e| e.at(path))?;
    input
        .seek(SeekFrom::Start(header.bytes))
        .map_err(|e| SimError::io(path, "read", e))?;
    let mut state = input.take(state_bytes);
    S::load_state(device, &mut state).map_err(|e| match e {
        StateError::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof => SimError::snapshot(
            path,
            "holds a shorter state than this device has, although its checksum is right; it was made \
             by a different flashtwin: make it anew",
        ),
        StateError::Io(e) => SimError::io(path, "read", e),
        StateError::Inconsistent(_) => SimError::snapshot(path, format!("{e}; make it anew")),
    })?;
    if state.limit() > 0 {
        return Err(SimError::snapshot(
            path,
            format!(
                "holds {} bytes more than the state of this device; make it anew",
                state.limit()
            ),
        ));
    }
    Ok(header.made_by)
}
