//! Tables that are stored by columns: Parquet and Arrow. The program registers a function that converts such a table to
//! text with a header. The result is read like any table of text.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::input::nameless_file;
use crate::error::{ErrorKind, WorkloadError};

/// Converts the table in the first file to text, and writes the text to the second file: a header and comma-separated
/// lines. An error describes the problem with the table.
pub type TableReader = fn(&File, &File) -> Result<(), String>;

static READER: OnceLock<TableReader> = OnceLock::new();

/// Texts of converted tables. The key consists of device, inode, length and time of the last change. The texts are
/// kept, because a trace is opened several times.
static TEXTS: Mutex<BTreeMap<[u64; 5], File>> = Mutex::new(BTreeMap::new());

/// Registers the function that reads Parquet and Arrow tables. Later calls have no effect.
pub fn set_table_reader(reader: TableReader) {
    let _ = READER.set(reader);
}

/// Returns the name of the form, Parquet or Arrow, of a table that begins with these bytes.
pub(crate) fn form(magic: &[u8]) -> Option<&'static str> {
    match magic {
        [b'P', b'A', b'R', b'1', ..] => Some("Parquet"),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, _, _, ..] => {
            Some("Arrow")
        }
        _ => None,
    }
}

/// Returns the error that no function is registered to read this table.
pub(crate) fn unread(name: &str, form: &str) -> WorkloadError {
    WorkloadError::new(
        ErrorKind::UnknownFormat,
        format!("{name}: a table in the form of {form}; give it as a file to the Python package, or convert it to CSV"),
    )
}

/// Returns the text of the table in `file`, as a file without a name, which exists until the process ends.
pub(crate) fn as_text(
    name: &str,
    form: &str,
    file: &File,
    meta: &Metadata,
) -> Result<File, WorkloadError> {
    let read = READER.get().ok_or_else(|| unread(name, form))?;
    let key = [
        meta.dev(),
        meta.ino(),
        meta.len(),
        meta.mtime() as u64,
        meta.mtime_nsec() as u64,
    ];
    let keeping = |e| WorkloadError::io(name, "write the table as text in TMPDIR", &e);
    let kept = {
        let texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        texts.get(&key).map(File::try_clone)
    };
    if let Some(kept) = kept {
        return kept.map_err(keeping);
    }
    let text = nameless_file().map_err(keeping)?;
    // The lock must not be held during this call, because the function may wait for other threads.
    read(file, &text).map_err(|what| {
        let text = format!("{name}: cannot be read as a table in the form of {form}: {what}");
        WorkloadError::new(ErrorKind::Malformed, text)
    })?;
    let copy = text.try_clone().map_err(keeping)?;
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    texts.insert(key, text);
    Ok(copy)
}
