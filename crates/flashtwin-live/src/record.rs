//! The recording of what a device was asked: a trace in our own text form, whose times are the device's own.
//!
//! Who records only adds a line in memory; the lines go to the file with the report, whole ones only, so that
//! the file of a server that was killed can be read to its end.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flashtwin::Request;
use flashtwin_workload::{write_csv_request, CSV_HEADER};

use crate::LiveError;

/// A recording under way.
#[derive(Debug)]
pub(crate) struct Recording {
    path: PathBuf,
    lines: Mutex<Vec<u8>>,
    file: Mutex<File>,
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recording {
    /// Begins a file, which must not be there yet.
    pub fn begin(path: &Path) -> Result<Recording, LiveError> {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let file = file.map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => LiveError::Setting(format!(
                "record={}: is there already; remove it, or give another name",
                path.display()
            )),
            _ => LiveError::io(path, "make", e),
        })?;
        Ok(Recording {
            path: path.to_owned(),
            lines: Mutex::new(format!("{CSV_HEADER}\n").into_bytes()),
            file: Mutex::new(file),
        })
    }

    /// Adds a request; nothing is written yet.
    pub fn add(&self, request: &Request) {
        // Memory takes every byte.
        let _ = write_csv_request(&mut *lock(&self.lines), request);
    }

    /// Writes what was added.
    pub fn write(&self) -> Result<(), LiveError> {
        let mut file = lock(&self.file);
        let lines = std::mem::take(&mut *lock(&self.lines));
        file.write_all(&lines)
            .map_err(|e| LiveError::io(&self.path, "write", e))
    }
}
