//! The settings of a server. They have the form `key=value` on the command line of the server.

use std::path::PathBuf;

use crate::{Dilation, LiveError};

/// Place of the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// Data in memory, until the server ends.
    #[default]
    Memory,
    /// The data are in this file. The state of the flash is in a file beside it.
    File(PathBuf),
    /// The data are not stored.
    None,
}

/// All settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The device's TOML file.
    pub device: Option<PathBuf>,
    /// Snapshot with the initial state of the flash. It is not used if the store has a saved state.
    pub snapshot: Option<PathBuf>,
    /// Place of the data.
    pub store: Kept,
    /// Number of bytes of the device that clients can access; `None` for the whole device.
    pub size_bytes: Option<u64>,
    /// Dilation: the factor by which device time passes more slowly than wall-clock time.
    pub dilation: Dilation,
    /// File of the report, written every second.
    pub report: Option<PathBuf>,
    /// Socket on which to take commands.
    pub control: Option<PathBuf>,
    /// File of the recording of clients' requests.
    pub record: Option<PathBuf>,
    /// The socket to which clients connect. A stop of the server removes it.
    pub listen: Option<PathBuf>,
    /// Unix socket of the process that runs the user's placement rules.
    pub rules: Option<PathBuf>,
    /// Umask for the creation of a new store, instead of the umask of the process.
    pub umask: Option<u32>,
    /// File to which the start writes the names of the files that it creates. If the start fails, the caller removes
    /// these files.
    pub made: Option<PathBuf>,
}

impl Settings {
    /// Help text with the keys and their values. It ends in a zero byte, because a server written in C needs it.
    pub const HELP: &str = "\
device=FILE        (required) the device, as written by `flashtwin device show`
snapshot=FILE      state of the flash, as written by `flashtwin snapshot save` (default: never written)
store=memory|none|FILE   where the data is kept (default memory)
size=BYTES         what clients see of the device (default: all of it)
dilation=TIMES     how many times slower the device's time passes (default 1)
report=FILE        written anew every second, and at the end: JSON with latencies and lateness; an open file
                   (/proc/self/fd/N) has it twice, and is whole when both copies are the same
control=PATH              Unix socket on which to take commands (default: none)
record=FILE               trace of all requests, a CSV as `flashtwin run` reads it (default: none)
listen=PATH               Unix socket of the server, removed by a stop (default: none)
rules=PATH                Unix socket at which the process with the user's placement rules listens (default: none)
umask=OCTAL               umask for a new store (default: umask of the server)
made=FILE                 list of the files that the start creates, one per line (default: none)\0";

    /// Changes one setting. Paths are made absolute, because a server changes its working directory.
    ///
    /// # Errors
    /// Fails if the key is unknown or the value is invalid.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), LiveError> {
        let path = || {
            std::path::absolute(value).map_err(|e| {
                LiveError::setting(key, value, &format!("give the name of a file ({e})"))
            })
        };
        match key {
            "device" => self.device = Some(path()?),
            "snapshot" => self.snapshot = Some(path()?),
            "store" => {
                self.store = match value {
                    "memory" => Kept::Memory,
                    "none" => Kept::None,
                    _ => Kept::File(path()?),
                }
            }
            "size" => match value.parse() {
                Ok(bytes) if bytes > 0 => self.size_bytes = Some(bytes),
                _ => {
                    return Err(LiveError::setting(
                        key,
                        value,
                        "give a number of bytes from 1",
                    ))
                }
            },
            "dilation" => self.dilation = value.parse()?,
            "report" => self.report = Some(path()?),
            "control" => self.control = Some(path()?),
            "record" => self.record = Some(path()?),
            "listen" => self.listen = Some(path()?),
            "rules" => self.rules = Some(path()?),
            "umask" => match u32::from_str_radix(value, 8) {
                Ok(mask) if mask <= 0o777 => self.umask = Some(mask),
                _ => {
                    return Err(LiveError::setting(
                        key,
                        value,
                        "give an octal number to 777",
                    ))
                }
            },
            "made" => self.made = Some(path()?),
            _ => {
                return Err(LiveError::setting(
                    key,
                    value,
                    "unknown; device, snapshot, store, size, dilation, report, control, record, listen, rules, umask and made \
                     are known",
                ))
            }
        }
        Ok(())
    }
}
