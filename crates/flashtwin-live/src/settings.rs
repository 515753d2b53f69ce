//! The settings of a server as `key=value`, as given on the server's command line.

use std::path::PathBuf;

use crate::{Dilation, LiveError};

/// Place of the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// Data in memory, until the server ends.
    #[default]
    Memory,
    /// Data in this file; the state of the flash is in a file beside it.
    File(PathBuf),
    /// The data are not stored.
    None,
}

/// All settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The device's TOML file.
    pub device: Option<PathBuf>,
    /// Snapshot with the initial state of the flash. Used only if the store has no saved state.
    pub snapshot: Option<PathBuf>,
    /// Place of the data.
    pub store: Kept,
    /// Bytes of the device that clients see; `None` for the whole device.
    pub size_bytes: Option<u64>,
    /// Factor by which device time is slower than the wall clock.
    pub dilation: Dilation,
    /// File of the report, written every second.
    pub report: Option<PathBuf>,
    /// Socket on which to take commands.
    pub control: Option<PathBuf>,
    /// File of the recording of clients' requests.
    pub record: Option<PathBuf>,
    /// The socket that clients connect to; a stop removes it.
    pub listen: Option<PathBuf>,
    /// Unix socket of the process that runs the user's placement rules.
    pub rules: Option<PathBuf>,
    /// The umask for a new store, instead of the process's umask.
    pub umask: Option<u32>,
    /// File that lists the files that the start created. If the start fails, the caller removes them.
    pub made: Option<PathBuf>,
}

impl Settings {
    /// Help text: the keys and their values. It ends in a zero byte, as a server in C requires.
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

    /// Sets one setting. Paths are made absolute, because a server changes its working directory.
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
