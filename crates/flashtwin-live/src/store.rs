//! The data of a served device: a sparse file in memory or on disk, or no data at all.
//!
//! A store in memory is a file without a name. The server does not map this file into its memory: system calls copy the
//! data. Compared with mapped memory, this has two advantages. If clients write to the same bytes at the same time, only
//! these bytes are undefined. If no memory is left for the file, a write returns an error, and no SIGBUS ends the server.
//!
//! In memory and on disk, only written data take space. Trimming releases it if the file system supports holes.
//!
//! Data are not forced to disk before [`Store::sync`]. In a simulated power loss, the model decides which data are
//! lost. A crash of the machine is not simulated (D-127).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::LiveError;

/// Zeros to write, piece by piece, if the file system does not support holes.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Place of the data.
#[derive(Debug)]
pub enum Store {
    /// A sparse file, with or without a name.
    Sparse(Sparse),
    /// No storage: all bytes read as zero, even after writes.
    None,
}

/// A sparse file.
#[derive(Debug)]
pub struct Sparse {
    file: File,
    bytes: u64,
    /// Whether the file system can make holes.
    punches: AtomicBool,
}

/// An extent: bytes that are all written or all unwritten. It begins at the end of the previous extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Number of bytes.
    pub bytes: u64,
    /// Whether the bytes are unwritten. If so, they read as zeros.
    pub hole: bool,
}

impl Store {
    /// Creates a sparse store in memory.
    ///
    /// # Errors
    /// Fails if the system refuses the memory.
    pub fn memory(bytes: u64) -> io::Result<Store> {
        // SAFETY: the name is a string that ends in a zero byte. The call does not keep its address.
        let fd = unsafe { libc::memfd_create(c"flashtwin".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was created above, is open, and has no other owner.
        let file = unsafe { File::from_raw_fd(fd) };
        Store::of(file, bytes)
    }

    /// Opens the sparse file at `path`, or creates it if it does not exist. Only one server at a time may use a file.
    /// Also returns whether the file existed.
    ///
    /// # Errors
    /// Fails if the file cannot be opened or created, has another size, or is used by another server.
    pub fn file(path: &Path, bytes: u64) -> Result<(Store, bool), LiveError> {
        let wrong =
            |message: String| Err(LiveError::Store(format!("{}: {message}", path.display())));
        let mut new = OpenOptions::new();
        let (file, was_there) = match new.read(true).write(true).create_new(true).open(path) {
            Ok(file) => (file, false),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let mut old = OpenOptions::new();
                let file = old.read(true).write(true).open(path);
                (file.map_err(|e| LiveError::io(path, "open", e))?, true)
            }
            Err(e) => return Err(LiveError::io(path, "make", e)),
        };
        // SAFETY: the descriptor is open. The call accesses no memory of this process.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            return wrong("another server uses this store; stop it, or give another file".into());
        }
        if was_there {
            let is = file
                .metadata()
                .map_err(|e| LiveError::io(path, "read", e))?;
            if !is.is_file() {
                return wrong("is no file; give a name for one".into());
            }
            if is.len() != bytes {
                return wrong(format!(
                    "holds {} bytes, the device has {bytes}; give the size and device it was made with, or \
                     another file",
                    is.len()
                ));
            }
        }
        match Store::of(file, bytes) {
            Ok(store) => Ok((store, was_there)),
            Err(e) => {
                if !was_there {
                    // A new file is removed. Otherwise the empty store would make the next start fail.
                    let _ = fs::remove_file(path);
                }
                wrong(format!(
                    "cannot be {bytes} bytes long: {e}; give a smaller size, or a file system and a file size \
                     limit (ulimit -f) that allow such files"
                ))
            }
        }
    }

    fn of(file: File, bytes: u64) -> io::Result<Store> {
        file.set_len(bytes)?;
        Ok(Store::Sparse(Sparse {
            file,
            bytes,
            punches: AtomicBool::new(true),
        }))
    }

    /// Fills `to` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Fails if the system call fails.
    pub fn read(&self, to: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Store::Sparse(sparse) => sparse.file.read_exact_at(to, offset),
            Store::None => {
                to.fill(0);
                Ok(())
            }
        }
    }

    /// Writes `from` at `offset`. If an error occurs, a part may have been written.
    ///
    /// # Errors
    /// Fails if the system call fails.
    pub fn write(&self, from: &[u8], offset: u64) -> io::Result<()> {
        match self {
            Store::Sparse(sparse) => sparse.file.write_all_at(from, offset),
            Store::None => Ok(()),
        }
    }

    /// Has the same effect as [`Store::write`]. If `from` consists of zeros, only releases the space of the range.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn write_sparsely(&self, from: &[u8], offset: u64) -> io::Result<()> {
        match from.iter().all(|&byte| byte == 0) {
            true => self.zero(offset, from.len() as u64),
            false => self.write(from, offset),
        }
    }

    /// Fills a range with zeros, and releases its space.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn zero(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let Store::Sparse(sparse) = self else {
            return Ok(());
        };
        if bytes == 0 || sparse.punch(offset, bytes)? {
            return Ok(());
        }
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let n = (end - at).min(ZEROS.len() as u64);
            sparse.file.write_all_at(&ZEROS[..n as usize], at)?;
            at += n;
        }
        Ok(())
    }

    /// Makes the lock of the file shared. From this, the next server can detect that this one is stopping, and then
    /// waits for the store.
    pub fn announce_release(&self) {
        if let Store::Sparse(sparse) = self {
            // SAFETY: the descriptor is open as long as `self`; the call accesses no memory of this process. The lock
            // is exclusive, so downgrading it succeeds immediately.
            unsafe { libc::flock(sparse.file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) };
        }
    }

    /// Whether the store can list its written and unwritten extents, which are called stretches here.
    pub fn has_stretches(&self) -> bool {
        matches!(self, Store::Sparse(_))
    }

    /// Lists the written and unwritten stretches from `offset` on, until `each` returns false.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn stretches(
        &self,
        offset: u64,
        bytes: u64,
        mut each: impl FnMut(Stretch) -> bool,
    ) -> io::Result<()> {
        let end = offset + bytes;
        let mut at = offset;
        while at < end {
            let data = match self {
                Store::Sparse(sparse) => sparse.seek(at, libc::SEEK_DATA)?.min(end),
                Store::None => end,
            };
            let hole = data > at;
            let next = match (self, hole) {
                (Store::Sparse(sparse), false) => sparse.seek(at, libc::SEEK_HOLE)?.min(end),
                _ => data,
            };
            let bytes = next - at;
            if !each(Stretch { bytes, hole }) {
                return Ok(());
            }
            at = next;
        }
        Ok(())
    }

    /// Returns when all written data are on disk.
    ///
    /// # Errors
    /// Fails if the system call fails.
    pub fn sync(&self) -> io::Result<()> {
        match self {
            Store::Sparse(sparse) => sparse.file.sync_all(),
            Store::None => Ok(()),
        }
    }
}

impl Sparse {
    /// Releases the space of a range. Returns false if the file system does not support holes.
    fn punch(&self, offset: u64, bytes: u64) -> io::Result<bool> {
        if !self.punches.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let fd = self.file.as_raw_fd();
        loop {
            // SAFETY: the descriptor is open as long as `self`; the call accesses no memory of this process.
            if unsafe { libc::fallocate(fd, mode, offset as i64, bytes as i64) } == 0 {
                return Ok(true);
            }
            let e = io::Error::last_os_error();
            match e.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EOPNOTSUPP | libc::ENOSYS) => {
                    self.punches.store(false, Ordering::Relaxed);
                    return Ok(false);
                }
                _ => return Err(e),
            }
        }
    }

    /// Returns the position of the next data or of the next hole, from `at` on. If there is none, returns the end of
    /// the file.
    fn seek(&self, at: u64, whence: i32) -> io::Result<u64> {
        // SAFETY: the descriptor is open as long as `self`; the call accesses no memory of this process. It moves the
        // file's position, which is not used.
        let found = unsafe { libc::lseek(self.file.as_raw_fd(), at as i64, whence) };
        if found >= 0 {
            return Ok(found as u64);
        }
        let e = io::Error::last_os_error();
        match e.raw_os_error() {
            Some(libc::ENXIO) => Ok(self.bytes),
            // The file system does not report holes.
            Some(libc::EINVAL) => Ok(if whence == libc::SEEK_DATA {
                at
            } else {
                self.bytes
            }),
            _ => Err(e),
        }
    }
}

#[cfg(test)]
mod tests;
