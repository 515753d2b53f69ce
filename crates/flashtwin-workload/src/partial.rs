//! Files that get their final name only when they are complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file that is being written, in the directory of its final name. If it is dropped without being published, it is
/// removed.
///
/// The file has the temporary name `.NAME.flashtwin-PID-RANDOM.partial` and is locked while it is open. By the name and
/// the lock, the Python package recognises files that a killed process has left, and removes them
/// (`_support/partials.py`).
#[derive(Debug)]
pub struct Partial {
    path: PathBuf,
    file: File,
    published: bool,
}

impl Partial {
    /// Creates the file in the directory of `dst`, so that renaming needs no copy. Never opens an existing file or
    /// follows a link.
    ///
    /// # Errors
    /// Fails if `dst` has no file name or the file cannot be created.
    pub fn create(dst: &Path) -> io::Result<Partial> {
        let Some(name) = dst.file_name() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "is no file name",
            ));
        };
        loop {
            let mut hidden = OsString::from(".");
            hidden.push(name);
            // Each RandomState has keys of its own.
            let random = RandomState::new().hash_one(0);
            let pid = std::process::id();
            hidden.push(format!(".flashtwin-{pid}-{random:016x}.partial"));
            let path = dst.with_file_name(hidden);
            let file = match File::options().write(true).create_new(true).open(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            let partial = Partial {
                path,
                file,
                published: false,
            };
            // SAFETY: the file of the descriptor is open. If the file system has no locks, the file stays unlocked.
            unsafe { libc::flock(partial.file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
            // A process on another machine may have removed the file as a leftover before it was locked.
            if partial.file.metadata()?.nlink() > 0 {
                return Ok(partial);
            }
        }
    }

    /// Returns the file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Syncs the file to disk and renames it to `dst`. Returns its length in bytes. The new name is safely on disk only
    /// after [`sync_directory`].
    ///
    /// # Errors
    /// Fails if the file cannot be synced or renamed. The file is then removed.
    pub fn publish(mut self, dst: &Path) -> io::Result<u64> {
        self.file.sync_all()?;
        let bytes = self.file.metadata()?.len();
        fs::rename(&self.path, dst)?;
        self.published = true;
        Ok(bytes)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.published {
            // An error of the removal is ignored, because the caller reports the earlier error.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Syncs the directory that contains `path`, so that the file's name is on disk.
///
/// # Errors
/// Fails if the directory cannot be opened or synced.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new("."))).and_then(|d| d.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        entries
            .map(|entry| name(entry).into_string().expect("UTF-8"))
            .collect()
    }

    #[test]
    fn file_has_a_distinct_name_until_it_is_published() {
        let directory =
            std::env::temp_dir().join(format!("flashtwin-partial-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let dst = directory.join("out.csv");
        let kept = Partial::create(&dst).expect("room");
        let dropped = Partial::create(&dst).expect("room");
        let found = names(&directory);
        assert_eq!(found.len(), 2);
        let start = format!(".out.csv.flashtwin-{}-", std::process::id());
        assert!(found.iter().all(|name| name.starts_with(&start)));
        drop(dropped);
        assert_eq!(kept.publish(&dst).expect("room"), 0);
        assert_eq!(names(&directory), ["out.csv"]);
        fs::remove_dir_all(&directory).expect("it is there");
    }
}
