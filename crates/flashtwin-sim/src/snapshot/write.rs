//! Writes a snapshot completely or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use flashtwin::Device;
use flashtwin_workload::{sync_directory, Partial};

use super::{fingerprint, END, FORMAT, MAGIC};
use crate::{Drivable, SimError};

/// Writes to a temporary file beside `path`, through the writer that `wrap` returns. Renames the file to `path` after
/// all data are on disk.
pub(super) fn save_through<S: Drivable>(
    path: &Path,
    device: &Device<S>,
    made_by: &str,
    wrap: for<'a> fn(&'a File) -> Box<dyn Write + 'a>,
) -> Result<(), SimError> {
    if path.file_name().is_none() {
        return Err(SimError::snapshot(
            path,
            "is no file name; give one, as in warm.snapshot",
        ));
    }
    let written = || -> io::Result<()> {
        let partial = Partial::create(path)?;
        let mut out = wrap(partial.file());
        write_snapshot(&mut *out, device, made_by)?;
        out.flush()?;
        drop(out);
        partial.publish(path).map(drop)
    };
    written().map_err(|e| SimError::io(path, "write", e))?;
    // An error is ignored: even without a sync of the directory, a crash leaves either the old or the new file
    // complete.
    let _ = sync_directory(path);
    Ok(())
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

/// A writer that counts the bytes passed through it and computes their checksum.
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
