//! The recording of the requests that a device receives: a trace in flashtwin's own text form, in device time.
//!
//! Each request is appended as a line in memory. The lines are written to the file together with the report. Only whole
//! lines are written, so that the file of a killed server can be read to its end. If the file system is full, lines
//! stay in memory until the next attempt. If the memory for lines is also full, further requests are not recorded, but
//! counted as missing.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flashtwin::Request;
use flashtwin_workload::CsvColumns;

use crate::LiveError;

/// Largest size in bytes of the lines in memory. The limit applies once to the lines that wait, and once to the lines
/// that are being written.
const ROOM_BYTES: usize = 32 << 20;

/// A running recording.
#[derive(Debug)]
pub(crate) struct Recording {
    path: PathBuf,
    columns: CsvColumns,
    room_bytes: usize,
    added: Mutex<Added>,
    out: Mutex<Out>,
}

#[derive(Debug, Default)]
struct Added {
    lines: Vec<u8>,
    /// Requests there was no room for.
    missing: u64,
}

#[derive(Debug)]
struct Out {
    file: File,
    /// Number of bytes of whole lines in the file.
    bytes: u64,
    /// Lines that are being written. After an error, they are written at the next attempt.
    taken: Vec<u8>,
}

impl Out {
    /// Writes the lines in `taken` to the file. After an error, the file ends with the last line that was written
    /// completely.
    fn put(&mut self) -> io::Result<()> {
        let mut written = 0;
        let put = loop {
            let rest = &self.taken[written..];
            if rest.is_empty() {
                break Ok(());
            }
            match self.file.write_at(rest, self.bytes + written as u64) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(more) => written += more,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => break Err(e),
            }
        };
        let end = self.taken[..written]
            .iter()
            .rposition(|&byte| byte == b'\n');
        let whole = end.map_or(0, |end| end + 1);
        self.bytes += whole as u64;
        self.taken.drain(..whole);
        if put.is_err() {
            // If truncating the file fails, too, the next attempt overwrites the incomplete line.
            let _ = self.file.set_len(self.bytes);
        }
        put
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|&&byte| byte == b'\n').count() as u64
}

impl Recording {
    /// Creates the file at `path`, which must not exist. `has_placement` adds a column of placement ids, for devices
    /// that write by units (blocks that are erased together).
    ///
    /// # Errors
    /// Fails if the file exists or cannot be created.
    pub fn begin(path: &Path, has_placement: bool) -> Result<Recording, LiveError> {
        let columns = match has_placement {
            true => CsvColumns::Placement,
            false => CsvColumns::Four,
        };
        Recording::within(path, columns, ROOM_BYTES)
    }

    fn within(path: &Path, columns: CsvColumns, room_bytes: usize) -> Result<Recording, LiveError> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        let file = file.map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => LiveError::Setting(format!(
                "record={}: is there already; remove it, or give another name",
                path.display()
            )),
            _ => LiveError::io(path, "make", e),
        })?;
        let mut out = Out {
            file,
            bytes: 0,
            taken: format!("{}\n", columns.header()).into_bytes(),
        };
        if let Err(e) = out.put() {
            // The new file is removed, because it is useless without its first line.
            let _ = fs::remove_file(path);
            return Err(LiveError::io(path, "write", e));
        }
        Ok(Recording {
            path: path.to_owned(),
            columns,
            room_bytes,
            added: Mutex::default(),
            out: Mutex::new(out),
        })
    }

    /// Adds a request to the lines in memory, which are written to the file later.
    pub fn add(&self, request: &Request) {
        let mut added = lock(&self.added);
        if added.lines.len() >= self.room_bytes {
            added.missing += 1;
            return;
        }
        // Memory takes every byte.
        let _ = self.columns.write_request(&mut added.lines, request);
    }

    /// Writes the lines in memory to the file. After an error, they are kept for the next attempt.
    pub fn write(&self) -> Result<(), LiveError> {
        self.put()
            .map_err(|e| LiveError::io(&self.path, "write", e))
    }

    fn put(&self) -> io::Result<()> {
        let mut out = lock(&self.out);
        out.put()?;
        mem::swap(&mut lock(&self.added).lines, &mut out.taken);
        out.put()
    }

    /// Writes the remaining lines to the file. If requests are missing, the error message has their number.
    pub fn end(&self) -> Result<(), LiveError> {
        let put = self.put();
        let (added, out) = (lock(&self.added), lock(&self.out));
        let missing = added.missing + count(&added.lines) + count(&out.taken);
        let why = match put {
            Err(e) => e.to_string(),
            Ok(()) if missing == 0 => return Ok(()),
            Ok(()) => "it could not be written for too long".into(),
        };
        let missing = io::Error::other(format!("{missing} are missing ({why})"));
        Err(LiveError::io(&self.path, "record all requests", missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashtwin::{Op, Time};

    /// Adds `requests` requests to the recording. Each is one line.
    fn add(recording: &Recording, requests: u64) {
        for i in 0..requests {
            recording.add(&Request {
                arrival: Time::from_us(i),
                offset: 4096 * i,
                bytes: 4096,
                op: Op::Write,
                fua: false,
                ..Request::default()
            });
        }
    }

    #[test]
    fn lines_without_room_wait_and_dropped_lines_are_counted() {
        let name = format!("flashtwin-record-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let recording = Recording::within(&path, CsvColumns::Four, 1000).expect("a new file");
        let error_of = |what: Result<(), LiveError>| what.expect_err("no room").to_string();
        let recorded = || {
            let text = fs::read_to_string(&path).expect("there");
            assert!(text.starts_with(CsvColumns::Four.header()) && text.ends_with('\n'));
            count(text.as_bytes()) - 1
        };
        add(&recording, 10);
        recording.write().expect("room");
        assert_eq!(recorded(), 10);

        let full = OpenOptions::new().write(true).open("/dev/full");
        let full = full.expect("a device that is always full");
        let file = mem::replace(&mut lock(&recording.out).file, full);
        for _ in 0..3 {
            add(&recording, 10);
            assert!(error_of(recording.write()).contains("cannot write: No space left"));
        }
        lock(&recording.out).file = file;
        recording.write().expect("room");
        assert_eq!(recorded(), 40);
        recording.end().expect("nothing is missing");

        let full = OpenOptions::new().write(true).open("/dev/full");
        let full = full.expect("a device that is always full");
        let file = mem::replace(&mut lock(&recording.out).file, full);
        for _ in 0..3 {
            add(&recording, 500);
            assert!(recording.write().is_err());
        }
        let held = lock(&recording.added).lines.len() + lock(&recording.out).taken.len();
        assert!(held < 2 * 1100, "{held}");
        assert!(error_of(recording.end()).contains("1500 are missing (No space left"));
        lock(&recording.out).file = file;
        let message = error_of(recording.end());
        let missing = format!("{} are missing (it could not", 1540 - recorded());
        assert!(recorded() > 40 && message.contains(&missing), "{message}");
        fs::remove_file(&path).expect("there");
    }
}
