//! Errors of a device file, formatted like the messages of a compiler.

use std::fmt;

/// All errors of a device file, in file order; at least one error.
///
/// The text has one line for each problem: `devices/x.toml:12:1: buffer.capcity: unknown key; did you mean
/// "capacity"?`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The problems, at least one.
    pub problems: Vec<Problem>,
}

/// One problem of a device file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Location of the problem.
    pub place: Place,
    /// Dotted key, such as `buffer.capacity`. Empty if the file is not TOML.
    pub key: String,
    /// The value found, and what is allowed.
    pub message: String,
}

/// Location of a problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The file as a whole. Used if something is missing in the file.
    File {
        /// The file.
        origin: String,
    },
    /// A line and a column of the file, both counted from 1.
    Line {
        /// The file.
        origin: String,
        /// Line.
        line: u32,
        /// Column, in characters.
        column: u32,
    },
    /// A setting on the command line: `--set key=value`.
    Override {
        /// `key=value` as given.
        setting: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { origin } => f.write_str(origin),
            Place::Line {
                origin,
                line,
                column,
            } => write!(f, "{origin}:{line}:{column}"),
            Place::Override { setting } => write!(f, "--set {}", one_line(setting)),
        }
    }
}

/// Prepares a text from a file or a command line for use in a message: removes control characters, and shortens it.
fn one_line(text: &str) -> String {
    const CHARS_MAX: usize = 300;
    let mut line = String::new();
    for (i, c) in text.chars().enumerate() {
        match c {
            _ if i == CHARS_MAX => {
                line.push_str("...");
                break;
            }
            c if c.is_control() => line.extend(c.escape_default()),
            c => line.push(c),
        }
    }
    line
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem {
            place,
            key,
            message,
        } = self;
        if key.is_empty() {
            write!(f, "{place}: {}", one_line(message))
        } else {
            write!(f, "{place}: {}: {message}", one_line(key))
        }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecError {}

impl Problem {
    /// Creates the problem of a dotted key.
    pub(super) fn new(place: Place, key: &str, message: String) -> Problem {
        let key = key.into();
        Problem {
            place,
            key,
            message,
        }
    }
}

impl From<Problem> for SpecError {
    fn from(problem: Problem) -> SpecError {
        SpecError {
            problems: vec![problem],
        }
    }
}

impl SpecError {
    /// Sorts the problems into file order; `Ok(())` if there are none.
    pub(super) fn from_problems(mut problems: Vec<Problem>) -> Result<(), SpecError> {
        problems.sort_by(|a, b| a.place.cmp(&b.place));
        match problems.is_empty() {
            true => Ok(()),
            false => Err(SpecError { problems }),
        }
    }
}
