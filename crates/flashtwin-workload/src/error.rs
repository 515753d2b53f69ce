//! The error type of this crate. Each message states the problem, the place of the problem, and a valid value.

use std::fmt;
use std::io;

/// Kind of an error. The error message has the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The operating system refused to open, read or write.
    Io,
    /// The file ends within a record, or its compressed stream is broken.
    Truncated,
    /// No known trace format fits the content.
    UnknownFormat,
    /// A line or record violates its format.
    Malformed,
    /// A time is earlier than a previous one, and the reorder window is too short to put the requests in order.
    OutOfOrder,
    /// The workload has no request.
    Empty,
    /// An option or a generator parameter is wrong.
    Option,
    /// A number exceeds the range of the model (213 days, 2^63 bytes).
    TooLarge,
}

/// Reason for which a workload cannot be read, written or built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError {
    kind: ErrorKind,
    message: String,
}

impl WorkloadError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        WorkloadError {
            kind,
            message: message.into(),
        }
    }

    /// Creates an error for a failed system call on the file `name`. `doing` describes the operation, such as "open".
    pub(crate) fn io(name: &str, doing: &str, e: &io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("{name}: cannot {doing}: {e}"))
    }

    /// Returns the kind of the error, for programs.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for WorkloadError {}

/// Formats text from a file for a message: quoted, without control characters, at most 120 characters long.
pub(crate) fn quote(text: &[u8]) -> String {
    const SHOWN_MAX: usize = 120;
    let cut = &text[..text.len().min(SHOWN_MAX)];
    let more = if text.len() > SHOWN_MAX { "..." } else { "" };
    format!("\"{}{more}\"", cut.escape_ascii())
}
