//! Description of a trace format: name, units, detection, decoder and documentation. Each format has its own file. The
//! table of all formats is in `mod.rs`.

use serde::{de, Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

use super::input::Source;
use super::lines::{Decoder, Line, LineDecoder, LineParser, Units};
use super::options::{AddressUnit, TimeUnit, TraceOptions};
use super::Format;
use crate::error::{ErrorKind, WorkloadError};

/// A trace format.
pub(crate) struct Reader {
    /// The spelling used in options, TOML and messages.
    pub name: &'static str,
    /// The usual unit of the time column.
    pub time: TimeUnit,
    /// The usual unit of the address column.
    pub address: AddressUnit,
    /// Certainty of the units.
    pub units: Certainty,
    /// Functions that recognise files of the format.
    pub detection: Detection,
    /// Makes the decoder of a file.
    pub open: fn(&Opening) -> Result<Box<dyn Decoder>, WorkloadError>,
    /// Returns the number of requests in a file, given its length and its first bytes. `None` if the format does not
    /// contain the number.
    pub requests: fn(u64, &[u8]) -> Option<u64>,
    /// Row of the format in `docs/traces.md`.
    pub page: Page,
}

/// Row of a format in the documentation's table of formats.
pub(crate) struct Page {
    pub layout: &'static str,
    pub time: &'static str,
    pub address: &'static str,
    pub op: &'static str,
    /// Source of the layout.
    pub source: &'static str,
}

/// Certainty of the units of a format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// The format specifies its units, or all its files agree on them.
    Certain,
    /// The unit of addresses and sizes is uncertain. It is the unit of the format, or the byte, for both.
    Address,
    /// The unit of times is uncertain: microseconds or nanoseconds.
    Time,
    /// The unit of addresses is uncertain: they may be sectors or object numbers.
    Objects,
    /// The units of times and of addresses both differ from file to file.
    Both {
        /// Times have a decimal point.
        decimal_point: bool,
    },
}

/// Functions that recognise the files of a format. Each receives the first bytes of a file, without the byte order
/// mark.
pub(crate) struct Detection {
    /// If the bytes begin with a mark that only this format has, returns a description of the mark for messages.
    pub mark: fn(&[u8]) -> Option<&'static str>,
    /// If the bytes are binary records of this format, returns the reason for this conclusion, for messages.
    pub records: fn(&[u8]) -> Option<String>,
    /// Counts the lines that are requests of this format, and those that cannot be read.
    pub lines: fn(&[&[u8]]) -> Fit,
}

impl Detection {
    /// Detection of a format that is never recognised. The user must give its name.
    pub const NONE: Self = Detection {
        mark: |_| None,
        records: |_| None,
        lines: |_| Fit::NONE,
    };

    /// Returns the detection of a format that is recognised by its lines: its parser can read them.
    pub const fn by_lines(lines: fn(&[&[u8]]) -> Fit) -> Self {
        Detection {
            lines,
            ..Self::NONE
        }
    }

    /// Returns the detection of a format that is recognised by its first bytes.
    pub const fn by_mark(mark: fn(&[u8]) -> Option<&'static str>) -> Self {
        Detection { mark, ..Self::NONE }
    }

    /// Returns the detection of a format that is recognised by its binary records.
    pub const fn by_records(records: fn(&[u8]) -> Option<String>) -> Self {
        Detection {
            records,
            ..Self::NONE
        }
    }
}

/// How well lines match a text format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fit {
    /// Number of lines that are requests.
    pub good: usize,
    /// Number of lines that cannot be read.
    pub bad: usize,
    /// A further reason for the detection. Messages append it after a comma.
    pub note: &'static str,
}

impl Fit {
    pub const NONE: Self = Fit {
        good: 0,
        bad: 0,
        note: "",
    };

    /// Tries a parser on lines.
    pub fn of(mut parser: impl LineParser, lines: &[&[u8]]) -> Self {
        let mut fit = Self::NONE;
        for (i, line) in lines.iter().enumerate() {
            match parser.parse(line, i as u64 + 1) {
                Ok(Line::Request(_)) => fit.good += 1,
                Ok(Line::Other) => {}
                Err(_) => fit.bad += 1,
            }
        }
        fit
    }
}

/// A file to open.
pub(crate) struct Opening<'a> {
    pub format: Format,
    pub units: Units,
    pub opts: &'a TraceOptions,
    /// The file, whose first bytes are loaded.
    pub source: &'a Source,
}

impl Opening<'_> {
    /// Returns the decoder of a text format.
    pub fn lines<P: LineParser + 'static>(
        &self,
        parser: P,
    ) -> Result<Box<dyn Decoder>, WorkloadError> {
        Ok(Box::new(LineDecoder::new(parser, self.format, self.opts)))
    }
}

/// Registers formats. For each, it needs a variant of `Format` and the constant that describes the format.
macro_rules! formats {
    ($($variant:ident => $reader:path),+ $(,)?) => {
        /// A trace format that this crate reads. The layouts and their sources are in `docs/traces.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Format {
            $(#[doc = concat!("`", stringify!($reader), "`.")] $variant),+
        }

        impl Format {
            /// Every format, in the order of the documentation.
            pub const ALL: &'static [Format] = &[$(Format::$variant),+];

            pub(crate) const fn reader(self) -> &'static $crate::trace::format::Reader {
                match self { $(Format::$variant => &$reader),+ }
            }
        }
    };
}
pub(crate) use formats;

impl Format {
    /// Returns the name of the format in options, TOML and messages.
    pub const fn name(self) -> &'static str {
        self.reader().name
    }

    /// Returns the row of the table in `docs/traces.md`: name, layout, time, address and size,
    /// operation, source.
    pub fn table_row(self) -> String {
        let p = &self.reader().page;
        let cells = [p.layout, p.time, p.address, p.op, p.source].join(" | ");
        format!("| `{self}` | {cells} |\n")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the names of all formats, for messages.
pub(crate) fn known() -> String {
    let names: Vec<&str> = Format::ALL.iter().map(|f| f.name()).collect();
    names.join(", ")
}

impl FromStr for Format {
    type Err = WorkloadError;
    fn from_str(s: &str) -> Result<Self, WorkloadError> {
        let mut all = Self::ALL.iter().copied();
        all.find(|f| f.name().eq_ignore_ascii_case(s))
            .ok_or_else(|| {
                let text = format!("trace format \"{s}\" is not known; one of: {}", known());
                WorkloadError::new(ErrorKind::Option, text)
            })
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Self::ALL.iter().copied().find(|f| f.name() == name);
        found.ok_or_else(|| {
            de::Error::custom(format!(
                "unknown format `{name}`, expected one of {}",
                known()
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- from here on written by `FLASHTWIN_WRITE_DOCS=1 cargo test -p flashtwin-workload --lib docs` -->\n";
    const END: &str = "<!-- up to here -->\n";

    #[test]
    fn names_are_distinct() {
        for (i, format) in Format::ALL.iter().enumerate() {
            let first = Format::ALL.iter().position(|f| f.name() == format.name());
            assert_eq!(first, Some(i), "{format}");
        }
    }

    /// Compares the table in `docs/traces.md` with the formats. If `FLASHTWIN_WRITE_DOCS` is 1, writes the table
    /// instead.
    #[test]
    fn the_docs_have_every_format() {
        let mut table = String::from(
            "| name | layout | time | address, size | read or write | where the layout was read |\n\
             |---|---|---|---|---|---|\n",
        );
        table.extend(Format::ALL.iter().map(|format| format.table_row()));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/traces.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (head, rest) = page.split_once(BEGIN).unwrap();
        let (old, tail) = rest.split_once(END).unwrap();
        let lacks = |text: &str, row: &str| !text.lines().any(|line| line == row);
        let differs = (table.lines().filter(|row| lacks(old, row)))
            .chain(old.lines().filter(|row| lacks(&table, row)))
            .next();
        if std::env::var_os("FLASHTWIN_WRITE_DOCS").is_some() {
            std::fs::write(path, format!("{head}{BEGIN}{table}{END}{tail}")).unwrap();
        } else {
            assert!(
                old == table,
                "a line of docs/traces.md differs: {}\n{BEGIN}",
                differs.unwrap_or("the order of the lines")
            );
        }
    }
}
