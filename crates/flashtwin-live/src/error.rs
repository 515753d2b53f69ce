//! Errors. A failed start has a message, a failed call has an errno.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use flashtwin::spec::SpecError;
use flashtwin_sim::SimError;

/// Why a server cannot be started or stopped.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// A setting is missing or wrong.
    Setting(String),
    /// The device is described wrongly.
    Spec(SpecError),
    /// A state cannot be loaded or saved.
    State(SimError),
    /// The operating system refused.
    Io {
        /// The file.
        path: PathBuf,
        /// Action on the file, as in "write".
        doing: &'static str,
        /// Message of the system.
        source: io::Error,
    },
    /// The store does not fit the device, or another server uses it.
    Store(String),
}

impl LiveError {
    pub(crate) fn io(path: &Path, doing: &'static str, source: io::Error) -> LiveError {
        LiveError::Io {
            path: path.to_owned(),
            doing,
            source,
        }
    }

    pub(crate) fn setting(key: &str, value: &str, right: &str) -> LiveError {
        LiveError::Setting(format!("{key}={}: {right}", value.escape_debug()))
    }
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveError::Setting(message) | LiveError::Store(message) => f.write_str(message),
            LiveError::Spec(e) => e.fmt(f),
            LiveError::State(e) => e.fmt(f),
            LiveError::Io {
                path,
                doing,
                source,
            } => write!(f, "{}: cannot {doing}: {source}", path.display()),
        }
    }
}

impl std::error::Error for LiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LiveError::Spec(e) => Some(e),
            LiveError::State(e) => Some(e),
            LiveError::Io { source, .. } => Some(source),
            LiveError::Setting(_) | LiveError::Store(_) => None,
        }
    }
}

impl From<SpecError> for LiveError {
    fn from(e: SpecError) -> Self {
        LiveError::Spec(e)
    }
}

impl From<SimError> for LiveError {
    fn from(e: SimError) -> Self {
        LiveError::State(e)
    }
}

/// Why a call failed.
#[derive(Debug)]
pub enum Failure {
    /// The range ends beyond the device.
    Beyond,
    /// The device accepts no more writes: it is at the end of its life.
    ReadOnly,
    /// Data are lost because a die or too many members of an array have failed, or the server is
    /// broken.
    Lost,
    /// Power was lost after the connection was made.
    Cut,
    /// The server is stopping.
    Stopping,
    /// The client requested fast zeroing, which is not possible for this range.
    Slow,
    /// The store refused a read or write.
    Store(io::Error),
}

impl Failure {
    /// Returns the errno of a block device.
    pub fn errno(&self) -> i32 {
        match self {
            Failure::Beyond => libc::EINVAL,
            Failure::ReadOnly => libc::EROFS,
            Failure::Lost | Failure::Cut => libc::EIO,
            Failure::Stopping => libc::ESHUTDOWN,
            Failure::Slow => libc::EOPNOTSUPP,
            Failure::Store(e) => match e.raw_os_error() {
                // All errors that mean a lack of space are reported as ENOSPC.
                Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG | libc::ENOMEM) => libc::ENOSPC,
                _ => libc::EIO,
            },
        }
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Failure::Store(e)
    }
}
