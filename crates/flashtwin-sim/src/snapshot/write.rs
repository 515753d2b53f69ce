//! Writing a snapshot: whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flashtwin::Device;

use super::{fingerprint, END, FORMAT, MAGIC};
use crate::{Drivable, SimError};

/// Writes through `wrap` to a temporary file beside `path`, and renames it once all is on disk.
pub(super) fn save_through<S: Drivable>(
    path: &Path,
    device: &Device<S>,
    made_by: &str,
    wrap: for<'a> fn(&'a File) -> Box<dyn Write + 'a>,
) -> Result<(), SimError> {
    let temporary = Temporary::beside(path)?;
    let written = || -> io::Result<()> {
        let file = File::create(&temporary.0)?;
        let mut out = wrap(&file);
        write_snapshot(&mut *out, device, made_by)?;
        out.flush()?;
        drop(out);
        file.sync_all()?;
        fs::rename(&temporary.0, path)
    };
    written().map_err(|e| SimError::io(path, "write", e))?;
    // The rename is on disk once the directory is. Where directories cannot be synced, so be it:
    // the old name or the new one is found whole after a crash.
    if let Some(directory) = path.parent() {
        let directory = if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            directory
        };
        let _ = File::open(directory).and_then(|d| d.sync_all());
    }
    Ok(())
}

/// A file that is gone again unless it was renamed.
struct Temporary(PathBuf);

impl Temporary {
    /// A name of its own in the directory of `path`, so that renaming needs no copy.
    fn beside(path: &Path) -> Result<Temporary, SimError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(name) = path.file_name() else {
            return Err(SimError::snapshot(
                path,
                "is no file name; give one, as in warm.snapshot",
            ));
        };
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{count}.{}.partial", std::process::id()));
        Ok(Temporary(path.with_file_name(temporary)))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Nothing there: it was renamed, or never made.
        let _ = fs::remove_file(&self.0);
    }
}

fn write_snapshot<S: Drivable>(
    out: &mut dyn Write,
    device: &Device<S>,
    made_by: &str,
) -> io::Result<()> {
    let mut out = Summed {
        inner: out,
        crc: crc32fast::Hasher::new(),
        bytes: 0,
    };
    out.write_all(MAGIC)?;
    out.write_all(&FORMAT.to_le_bytes())?;
    let fingerprint = fingerprint(&S::describe(device));
    for text in [env!("CARGO_PKG_VERSION"), &fingerprint, made_by] {
        out.write_all(&(text.len() as u32).to_le_bytes())?;
        out.write_all(text.as_bytes())?;
    }
    let header_bytes = out.bytes;
    S::save_state(device, &mut out)?;
    let state_bytes = out.bytes - header_bytes;
    out.write_all(&state_bytes.to_le_bytes())?;
    let crc = out.crc.finalize();
    out.inner.write_all(&crc.to_le_bytes())?;
    out.inner.write_all(END)
}

/// Counts and sums what passes through.
struct Summed<'a> {
    inner: &'a mut dyn Write,
    crc: crc32fast::Hasher,
    bytes: u64,
}

impl Write for Summed<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(data)?;
        self.crc.update(&data[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
