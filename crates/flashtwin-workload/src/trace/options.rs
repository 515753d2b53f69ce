//! Options for reading a trace: format, units, volumes, and the number of bad lines to skip.

use serde::{de, Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

use super::Format;
use crate::error::{ErrorKind, WorkloadError};

/// Defines an enum whose variants have the same names in text, serde and messages.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident, $what:literal, { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// Every choice, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Returns the name of the choice in options, TOML and messages.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $name {
            type Err = WorkloadError;
            fn from_str(s: &str) -> Result<Self, WorkloadError> {
                Self::ALL.iter().copied().find(|v| v.name().eq_ignore_ascii_case(s)).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|v| v.name()).collect();
                    WorkloadError::new(
                        ErrorKind::Option,
                        format!("{} \"{s}\" is not known; one of: {}", $what, known.join(", ")),
                    )
                })
            }
        }
    };
}

named! {
    /// The unit of a trace's time column.
    TimeUnit, "time unit", {
        /// Seconds.
        Seconds = "s",
        /// Milliseconds.
        Milliseconds = "ms",
        /// Microseconds.
        Microseconds = "us",
        /// Ticks of 100 ns since 1601, as in Windows filetimes.
        Filetime = "filetime",
        /// Nanoseconds.
        Nanoseconds = "ns",
        /// Picoseconds.
        Picoseconds = "ps",
    }
}

impl TimeUnit {
    /// Returns the number of picoseconds in one unit.
    pub const fn ps(self) -> u64 {
        match self {
            TimeUnit::Seconds => 1_000_000_000_000,
            TimeUnit::Milliseconds => 1_000_000_000,
            TimeUnit::Microseconds => 1_000_000,
            TimeUnit::Filetime => 100_000,
            TimeUnit::Nanoseconds => 1_000,
            TimeUnit::Picoseconds => 1,
        }
    }
}

/// The unit of a trace's address column, as a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressUnit(u32);

impl AddressUnit {
    /// Bytes.
    pub const BYTES: Self = AddressUnit(1);
    /// Sectors of 512 bytes.
    pub const SECTORS: Self = AddressUnit(512);
    /// Pages, or logical blocks, of 4096 bytes.
    pub const PAGES: Self = AddressUnit(4096);

    /// Units that have a name.
    const NAMED: [(Self, &'static str); 3] = [
        (Self::BYTES, "bytes"),
        (Self::SECTORS, "sectors"),
        (Self::PAGES, "pages"),
    ];
    const BYTES_MAX: u32 = 1 << 30;

    /// Creates a unit of `bytes` bytes, from 1 to 1 GiB.
    pub fn of_bytes(bytes: u64) -> Option<Self> {
        let bytes = u32::try_from(bytes).ok()?;
        (1..=Self::BYTES_MAX)
            .contains(&bytes)
            .then_some(AddressUnit(bytes))
    }

    /// Returns the number of bytes in one unit.
    pub const fn bytes(self) -> u64 {
        self.0 as u64
    }

    fn name(self) -> Option<&'static str> {
        let found = Self::NAMED.iter().find(|(unit, _)| *unit == self);
        found.map(|(_, name)| *name)
    }
}

impl fmt::Display for AddressUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "units of {} bytes", self.0),
        }
    }
}

impl FromStr for AddressUnit {
    type Err = WorkloadError;
    fn from_str(s: &str) -> Result<Self, WorkloadError> {
        let mut named = Self::NAMED.iter();
        let found = named.find(|(_, name)| name.eq_ignore_ascii_case(s));
        found
            .map(|(unit, _)| *unit)
            .or_else(|| Self::of_bytes(s.parse().ok()?))
            .ok_or_else(|| {
                let text = format!(
                    "address unit \"{s}\" is not known; one of: bytes, sectors (512 bytes), pages (4096 bytes), or a \
                     number of bytes up to {}",
                    Self::BYTES_MAX
                );
                WorkloadError::new(ErrorKind::Option, text)
            })
    }
}

impl Serialize for AddressUnit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.name() {
            Some(name) => serializer.serialize_str(name),
            None => serializer.serialize_str(&self.0.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for AddressUnit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

named! {
    /// The blktrace event that counts as the request's arrival.
    BlkEvent, "blktrace event", {
        /// Issued to the driver, after merging. The device receives these requests.
        D = "D",
        /// Queued by the file system or application, before merging.
        Q = "Q",
    }
}

named! {
    /// The way in which the addresses of a trace become addresses of the device.
    Addresses, "way of placing addresses", {
        /// Volumes keep their own addresses.
        AsIs = "as-is",
        /// Pieces of 1 MiB without any read or write are removed; the other pieces keep their order (D-191). To find
        /// these pieces, the trace is read once more before the run.
        Compact = "compact",
    }
}

/// Handling of a trace of several volumes (disks, LUNs, application units).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Volumes {
    /// Volumes are placed one after the other, in order of appearance. The size of each is rounded up to 1 MiB. When a
    /// second volume is found, the trace is read once more from its start to determine the sizes of all volumes.
    #[default]
    EndToEnd,
    /// Only the named volume is read. It keeps its own addresses.
    Only(String),
    /// All volumes are read as if they were one. Each keeps its own addresses.
    Overlay,
}

/// Options for reading a trace. With `TraceOptions::default()`, all properties that can be detected are detected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraceOptions {
    /// The format; `None` to detect it.
    pub format: Option<Format>,
    /// Columns to read from a trace that is a table of text, as in
    /// `time=ts:us,offset=lba:sectors,size=len:bytes,op=type`. This option replaces `format`.
    pub columns: Option<String>,
    /// Unit of the time column; `None` for the usual unit of the format.
    pub time_unit: Option<TimeUnit>,
    /// Unit of the address column; `None` for the usual unit of the format.
    pub address_unit: Option<AddressUnit>,
    /// For blktrace and blkparse: the event that counts as the arrival of a request.
    pub event: BlkEvent,
    /// Handling of several volumes.
    pub volumes: Volumes,
    /// Placement of the requests.
    pub addresses: Addresses,
    /// Keeps about one of this number of pieces of the address space, with all requests for it, and packs the addresses.
    /// Times are divided by this number (D-234). With 1, all pieces are kept.
    pub one_in: u32,
    /// Largest number of unreadable lines that are skipped. The next unreadable line is an error.
    pub max_bad_lines: u64,
    /// Number of requests that are held back and sorted, because their times may be slightly out of order. With 0, no
    /// time may be earlier than the previous one.
    pub reorder_window: usize,
    /// Number of requests to read from the start of the file; `None` for all.
    pub limit: Option<u64>,
}

impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions {
            format: None,
            columns: None,
            time_unit: None,
            address_unit: None,
            event: BlkEvent::D,
            volumes: Volumes::EndToEnd,
            addresses: Addresses::AsIs,
            one_in: 1,
            max_bad_lines: 0,
            reorder_window: 65_536,
            limit: None,
        }
    }
}

impl TraceOptions {
    /// Whether addresses are packed, so that the trace is read once more before the run.
    pub(crate) fn packs(&self) -> bool {
        self.addresses == Addresses::Compact || self.one_in > 1
    }
}
