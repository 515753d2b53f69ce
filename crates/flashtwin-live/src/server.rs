//! A block device to be served: the driver, the data, and what becomes of both between start and stop.
//!
//! Order (D-126): data is in the store before the device is asked to write it, and is taken from there when
//! the device has read it. So a read gets at least what was acknowledged before it was asked for; what is
//! under way at the same time it may get in part, as NBD has it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use flashtwin::Op;

use crate::settings::Kept;
use crate::store::{Store, Stretch};
use crate::{twin, Call, Driver, Failure, LiveError, Report, Settings, Twin};

/// Bytes of one kind of a block device, with where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// Not written: they read as zeros.
    pub hole: bool,
}

/// A device that is ready, its clock not yet running: threads are started once the server has forked.
pub struct Ready {
    twin: Box<dyn Twin>,
    store: Store,
    size_bytes: u64,
    settings: Settings,
}

/// A block device at work.
pub struct Server {
    driver: Driver,
    store: Store,
    size_bytes: u64,
    settings: Settings,
}

/// Where the state of the flash lies beside the file with the data.
pub(crate) fn state_path(store: &Path) -> PathBuf {
    let mut name = OsString::from(store);
    name.push(".state");
    PathBuf::from(name)
}

impl Ready {
    /// Reads the device and its state, and opens the store.
    pub fn prepare(settings: Settings) -> Result<Ready, LiveError> {
        let Some(device) = &settings.device else {
            return Err(LiveError::Setting(
                "device=FILE is missing: give the device to serve".into(),
            ));
        };
        let mut twin = twin::of_file(device)?;
        let exported_bytes = twin.exported_bytes();
        let size_bytes = settings.size_bytes.unwrap_or(exported_bytes);
        if size_bytes > exported_bytes {
            return Err(LiveError::Setting(format!(
                "size={size_bytes}: the device holds {exported_bytes} bytes; give at most that, or a larger \
                 device"
            )));
        }
        let (store, kept_state) = match &settings.store {
            Kept::Memory => {
                let store = Store::memory(size_bytes);
                let store = store.map_err(|e| LiveError::io(Path::new("memory"), "reserve", e));
                (store?, None)
            }
            Kept::None => (Store::None, None),
            Kept::File(path) => {
                let (store, was_there) = Store::file(path, size_bytes)?;
                let state = state_path(path);
                (store, (was_there && state.exists()).then_some(state))
            }
        };
        if let Some(state) = kept_state.as_ref().or(settings.snapshot.as_ref()) {
            twin.load(state)?;
        }
        Ok(Ready {
            twin,
            store,
            size_bytes,
            settings,
        })
    }

    /// Starts the device's clock.
    pub fn start(self) -> Result<Server, LiveError> {
        let driver = Driver::start(self.twin, self.settings.dilation);
        let driver = driver.map_err(|e| LiveError::io(Path::new("pacer"), "start a thread", e))?;
        Ok(Server {
            driver,
            store: self.store,
            size_bytes: self.size_bytes,
            settings: self.settings,
        })
    }
}

impl Server {
    /// Bytes that clients see.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Bytes of a page, the best unit of requests.
    pub fn page_bytes(&self) -> u32 {
        self.driver.page_bytes()
    }

    /// Reads; zeros where nothing was written.
    pub fn read(&self, to: &mut [u8], offset: u64) -> Result<(), Failure> {
        self.call(Op::Read, offset, to.len() as u64, false)?;
        Ok(self.store.read(to, offset)?)
    }

    /// Writes; with `fua` it is on the medium when this returns.
    pub fn write(&self, from: &[u8], offset: u64, fua: bool) -> Result<(), Failure> {
        self.within(offset, from.len() as u64)?;
        self.refuse_if_read_only()?;
        self.store.write(from, offset)?;
        self.call(Op::Write, offset, from.len() as u64, fua)
    }

    /// All that was acknowledged before is on the medium when this returns.
    pub fn flush(&self) -> Result<(), Failure> {
        self.call(Op::Flush, 0, 0, false)
    }

    /// Forgets.
    pub fn trim(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        self.within(offset, bytes)?;
        self.refuse_if_read_only()?;
        self.store.trim(offset, bytes)?;
        self.call(Op::Trim, offset, bytes, false)
    }

    /// Makes zero: by trimming, if that is allowed, else by writing, which is never faster than writing
    /// (`fast_only`).
    pub fn zero(
        &self,
        offset: u64,
        bytes: u64,
        fua: bool,
        may_trim: bool,
        fast_only: bool,
    ) -> Result<(), Failure> {
        self.within(offset, bytes)?;
        if fast_only && !may_trim {
            return Err(Failure::Slow);
        }
        self.refuse_if_read_only()?;
        self.store.zero(offset, bytes)?;
        let op = if may_trim { Op::Trim } else { Op::Write };
        self.call(op, offset, bytes, fua)
    }

    /// Reads into the device's buffer.
    pub fn cache(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        self.call(Op::Read, offset, bytes, false)
    }

    /// [`Server::extents`] has something to say.
    pub fn has_extents(&self) -> bool {
        self.store.has_stretches()
    }

    /// What has been written and what not, until `each` has enough. Takes the device no time.
    pub fn extents(
        &self,
        offset: u64,
        bytes: u64,
        mut each: impl FnMut(Extent) -> bool,
    ) -> Result<(), Failure> {
        self.within(offset, bytes)?;
        let mut at = offset;
        self.store
            .stretches(offset, bytes, |Stretch { bytes, hole }| {
                let extent = Extent {
                    offset: at,
                    bytes,
                    hole,
                };
                at += bytes;
                each(extent)
            })?;
        Ok(())
    }

    /// How it goes.
    pub fn report(&self) -> Report {
        Report {
            exported_bytes: self.size_bytes,
            ..self.driver.report()
        }
    }

    /// Writes the report where the settings say, whole or not at all.
    pub fn write_report(&self) -> Result<(), LiveError> {
        let Some(path) = &self.settings.report else {
            return Ok(());
        };
        let mut partial = OsString::from(path);
        partial.push(".partial");
        let text = serde_json::to_string(&self.report());
        let text = text.map_err(|e| LiveError::io(path, "write", e.into()))?;
        fs::write(&partial, text + "\n")
            .and_then(|()| fs::rename(&partial, path))
            .map_err(|e| LiveError::io(path, "write", e))
    }

    /// Ends it: the last report, the data on disk, the state of the flash beside it. No call may be under
    /// way.
    pub fn stop(&self) -> Result<(), LiveError> {
        let reported = self.write_report();
        let Kept::File(path) = &self.settings.store else {
            self.driver.stop(|_| ());
            return reported;
        };
        let synced = self.store.sync();
        let saved = self
            .driver
            .stop(|twin| twin.save(&state_path(path), "flashtwin serve"));
        synced.map_err(|e| LiveError::io(path, "write", e))?;
        match saved {
            Some(saved) => saved?,
            None => {
                return Err(LiveError::Store(format!(
                    "{}: the data is on disk, but the device did not come to rest: the state of its flash is \
                     that of the last clean stop",
                    path.display()
                )))
            }
        }
        reported
    }

    fn call(&self, op: Op, offset: u64, bytes: u64, fua: bool) -> Result<(), Failure> {
        self.within(offset, bytes)?;
        self.driver.call(&Call {
            op,
            offset,
            bytes,
            fua,
        })
    }

    fn within(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.size_bytes => Ok(()),
            _ => Err(Failure::Beyond),
        }
    }

    /// What the device refuses must not be in the store.
    fn refuse_if_read_only(&self) -> Result<(), Failure> {
        match self.driver.is_read_only() {
            true => Err(Failure::ReadOnly),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
