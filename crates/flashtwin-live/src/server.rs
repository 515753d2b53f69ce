//! The server of a block device, from its start to its stop. It combines the driver and the data.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use flashtwin::placement::Placed;
use flashtwin::{Array, Durable, Lpn, MemberError, PlacementId, Rng};
use flashtwin_sim::{placement_logs, placement_status, RemoteRules};
use serde::Serialize;
use serde_json::Value;

use crate::disturb::{Disturbance, Disturbed};
use crate::recording::Recording;
use crate::settings::Kept;
use crate::store::{Store, Stretch};
use crate::undo::Undo;
use crate::{
    orders, twin, Driver, Failure, LiveError, LiveKeys, Orders, Report, Session, Settings, Twin,
};

/// Polling period while calls in flight complete.
const DRAIN_POLL: Duration = Duration::from_millis(10);
/// Time limit for failed calls to return. Only a call that waits for a blocked store takes longer.
const FAIL_TIMEOUT: Duration = Duration::from_secs(1);
/// Directory with the open files of this process.
const OPEN_FILES: &str = "/proc/self/fd";
/// Largest factor by which a member's response times may be multiplied. A slower member would count as failed.
const SLOW_TIMES_MAX: f64 = 1000.0;

/// An extent: consecutive bytes of a block device that are all written, or all unwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Whether the bytes are unwritten. If so, they read as zeros.
    pub hole: bool,
}

/// A server that is prepared, but whose clock and threads have not started. They must start after the process has
/// forked.
pub struct PreparedServer {
    twin: Box<dyn Twin>,
    recording: Option<Arc<Recording>>,
    store: Store,
    size_bytes: u64,
    settings: Settings,
    /// Set once the user's placement rules have failed.
    rules_failed: Arc<AtomicBool>,
}

/// A running block device.
pub struct Server {
    pub(crate) driver: Driver,
    pub(crate) store: Store,
    pub(crate) undo: Arc<Undo>,
    /// Lock that is held for reading while the store changes, and for writing during a power loss.
    pub(crate) powered: RwLock<()>,
    recording: Option<Arc<Recording>>,
    size_bytes: u64,
    settings: Settings,
    /// GC settings with which the server was started.
    gc: LiveKeys,
    /// Calls in flight.
    in_flight: AtomicUsize,
    /// Whether new calls are rejected.
    closed: AtomicBool,
}

/// A call in flight. Dropping the value counts the call as completed.
#[derive(Debug)]
pub struct InFlight<'a>(&'a AtomicUsize);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The effects of a power loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Calls in flight, which have failed.
    pub unfinished: usize,
    /// Pages whose last writes are lost, in ascending order. They have their earlier contents now.
    pub lost: Vec<u64>,
}

/// Returns the path of the file with the state of the flash. It is beside the file with the data.
pub(crate) fn state_path(store: &Path) -> PathBuf {
    let mut name = OsString::from(store);
    name.push(".state");
    PathBuf::from(name)
}

/// Connects to the process that runs the user's placement rules.
fn connect_rules(path: &Path) -> Result<RemoteRules, LiveError> {
    let remote = UnixStream::connect(path).and_then(RemoteRules::connect);
    remote.map_err(|e| LiveError::io(path, "reach the placement rules", e))
}

/// Appends a file to the list of files that the start has created (`Settings::made`).
fn list_made(settings: &Settings, file: &Path) -> Result<(), LiveError> {
    let Some(list) = &settings.made else {
        return Ok(());
    };
    let mut line = OsString::from(file).into_vec();
    line.push(b'\n');
    let mut options = OpenOptions::new();
    let added = options.append(true).create(true).open(list);
    added
        .and_then(|mut list| list.write_all(&line))
        .map_err(|e| LiveError::io(list, "write", e))
}

fn write(report: Option<(&Path, Report)>) -> Result<(), LiveError> {
    let Some((path, report)) = report else {
        return Ok(());
    };
    let mut partial = OsString::from(path);
    partial.push(".partial");
    let text = serde_json::to_string(&report);
    let text = text.map_err(|e| LiveError::io(path, "write", e.into()))? + "\n";
    let written = match path.starts_with(OPEN_FILES) {
        true => write_twice(path, &text),
        false => fs::write(&partial, text).and_then(|()| fs::rename(&partial, path)),
    };
    written.map_err(|e| LiveError::io(path, "write", e))
}

/// Writes a text to an existing file that other programs have open. The file is not replaced by a renamed one, because
/// these programs would then still read the old file. The text is written twice, so that a reader can detect an
/// incomplete text.
fn write_twice(path: &Path, text: &str) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let twice = text.repeat(2);
    file.write_all_at(twice.as_bytes(), 0)?;
    file.set_len(twice.len() as u64)
}

/// Runs one step of the stop. A panic in the step becomes an error, so that the other steps still run.
fn unbroken<T>(otherwise: &str, what: impl FnOnce() -> T) -> Result<T, LiveError> {
    catch_unwind(AssertUnwindSafe(what)).map_err(|_| {
        LiveError::Setting(format!(
            "{otherwise}: a bug in flashtwin; see the message above"
        ))
    })
}

impl PreparedServer {
    /// Prepares a server: reads the device file and the saved state, and opens the store.
    ///
    /// # Errors
    /// Fails if a setting, the device file or the saved state is wrong, or if the store cannot be opened.
    pub fn prepare(settings: Settings) -> Result<PreparedServer, LiveError> {
        let Some(device) = &settings.device else {
            return Err(LiveError::Setting(
                "device=FILE is missing: give the device to serve".into(),
            ));
        };
        let remote = settings.rules.as_deref().map(connect_rules).transpose()?;
        let (rules, rules_failed) = remote.map_or_else(Default::default, |remote| {
            (Some(remote.rules), remote.failed)
        });
        let mut twin = twin::of_file(device, rules)?;
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
                if !was_there {
                    list_made(&settings, path)?;
                }
                let state = state_path(path);
                (store, (was_there && state.exists()).then_some(state))
            }
        };
        if let Some(state) = kept_state.as_ref().or(settings.snapshot.as_ref()) {
            twin.load(state)?;
        }
        let has_placement = (twin.orders()).is_some_and(|orders| orders.placement().is_some());
        let recording = settings
            .record
            .as_deref()
            .map(|path| Recording::begin(path, has_placement))
            .transpose()?;
        if let Some(record) = &settings.record {
            list_made(&settings, record)?;
        }
        Ok(PreparedServer {
            twin,
            recording: recording.map(Arc::new),
            store,
            size_bytes,
            settings,
            rules_failed,
        })
    }

    /// Starts the device's clock.
    ///
    /// # Errors
    /// Fails if the report or the recording cannot be created, or a thread cannot be started.
    pub fn start(mut self) -> Result<Server, LiveError> {
        let gc = (self.twin.orders()).map_or(LiveKeys::new(), |device| device.gc_settings());
        let durable = match self.store {
            Store::Sparse(_) => self.twin.durable(),
            // There is nothing that could be lost.
            Store::None => Durable::AtOnce,
        };
        let undo = Undo::new(durable, self.twin.page_bytes(), self.size_bytes);
        let undo = Arc::new(undo);
        let driver = Driver::start(
            Box::new(Disturbed::new(self.twin)),
            self.settings.dilation,
            undo.clone(),
            self.recording.clone(),
            self.rules_failed,
        );
        let driver = driver.map_err(|e| LiveError::io(Path::new("pacer"), "start a thread", e))?;
        Ok(Server {
            driver,
            store: self.store,
            undo,
            powered: RwLock::default(),
            recording: self.recording,
            size_bytes: self.size_bytes,
            settings: self.settings,
            gc,
            in_flight: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        })
    }
}

impl Server {
    /// Bytes that clients see.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Returns the page size in bytes, which is also the best size of requests.
    pub fn page_bytes(&self) -> u32 {
        self.driver.page_bytes()
    }

    /// Opens a session. It ends with the next power loss.
    pub fn connect(&self) -> Session<'_> {
        self.session(self.driver.cuts())
    }

    /// Returns the session of a connection that was made after `cuts` power losses ([`Session::cuts`]).
    pub fn session(&self, cuts: u64) -> Session<'_> {
        Session::new(self, cuts)
    }

    /// Counts a call as in flight.
    ///
    /// # Errors
    /// Fails if the server is stopping.
    pub fn admit(&self) -> Result<InFlight<'_>, Failure> {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let call = InFlight(&self.in_flight);
        match self.closed.load(Ordering::SeqCst) {
            true => Err(Failure::Stopping),
            false => Ok(call),
        }
    }

    /// Rejects new calls from now on.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.store.announce_release();
    }

    /// Waits until the calls in flight have completed (D-200). After `timeout`, or when `abort` returns true, the calls
    /// that are still in flight fail. `abort` may block for the time that it receives as its argument.
    pub fn drain(&self, timeout: Duration, mut abort: impl FnMut(Duration) -> bool) {
        let began = Instant::now();
        while self.in_flight.load(Ordering::SeqCst) > 0 {
            if began.elapsed() >= timeout || abort(DRAIN_POLL) {
                break;
            }
        }
        self.driver.close();
        let began = Instant::now();
        while self.in_flight.load(Ordering::SeqCst) > 0 && began.elapsed() < FAIL_TIMEOUT {
            std::thread::sleep(DRAIN_POLL);
        }
    }

    /// Simulates a power loss. Pages whose last writes this device would lose get their earlier contents back. All
    /// calls in flight fail, and the sessions opened before can no longer be used. With `torn`, a page whose program is
    /// interrupted may have new contents in its first sectors and old contents in the others.
    ///
    /// # Errors
    /// Fails if the device cannot be restarted, or if the contents of the store cannot be restored. All later calls
    /// then also fail.
    pub fn cut_power(&self, torn: bool) -> Result<Cut, LiveError> {
        let _alone = self.powered.write();
        let mut rng = Rng::new(self.driver.cuts());
        let cut = self.driver.cut_power(|cut, unfinished| {
            let torn = torn.then_some(&mut rng);
            let put = |from: &[u8], at| self.store.write_sparsely(from, at);
            let lost: &[Lpn] = match self.settings.store {
                Kept::None => &[],
                _ => &cut.lost,
            };
            let lost = self.undo.cut(&self.store, lost, torn, put)?;
            Ok(Cut { unfinished, lost })
        });
        let cut = cut.ok_or_else(|| {
            LiveError::Setting("the device did not come back; start the server anew".into())
        })?;
        cut.map_err(|(pages, e): (usize, io::Error)| {
            LiveError::Store(format!(
                "the power was cut, but of the pages that lost what was written last the store could not give \
                 {pages} their earlier contents back, and may hold both there: {e}"
            ))
        })
    }

    /// Replaces the disturbances in effect by `how`.
    ///
    /// # Errors
    /// Fails if a part of `how` is out of its range. The earlier disturbances then remain in effect.
    pub fn disturb(&self, how: Disturbance) -> Result<(), LiveError> {
        how.check()?;
        self.change(|twin| {
            twin.disturb(how);
            Ok(())
        })
    }

    /// Orders the die `die` to garbage-collect one block ([`flashtwin::Ssd::collect`]). If `die` is `None`, each die
    /// collects one block. On an array, the order is for one member, or for all members if `member` is `None`. Returns
    /// the number of dies that received the order.
    ///
    /// # Errors
    /// Fails if the device has no such member or die, or cannot collect a single block.
    pub fn collect(&self, member: Option<usize>, die: Option<u32>) -> Result<u32, LiveError> {
        self.order(|device| device.collect(member, die))
    }

    /// Returns the placement id for writes of clients that open the export `name`. The name `h3` gives id 3. The
    /// default export, with an empty name, has no id. If the device does not write by units (blocks that are erased
    /// together), no export has an id.
    ///
    /// # Errors
    /// Fails if the device writes by units (blocks that are erased together), and no placement handle has this id.
    pub fn placement_of_export(&self, name: &str) -> Result<PlacementId, LiveError> {
        self.change(|twin| {
            let device = twin.orders().and_then(|orders| orders.placement());
            let Some(device) = device.filter(|_| !name.is_empty()) else {
                return Ok(PlacementId::NONE);
            };
            let ids: Vec<u16> = device.status().into_iter().map(|status| status.id).collect();
            let id = name.strip_prefix('h').and_then(|id| match id.strip_prefix("0x") {
                Some(hexadecimal) => u16::from_str_radix(hexadecimal, 16).ok(),
                None => id.parse().ok(),
            });
            let id = id.filter(|id| ids.contains(id)).and_then(PlacementId::new);
            id.ok_or_else(|| {
                let last = ids.last().copied().unwrap_or(0);
                LiveError::Setting(format!(
                    "export {name:?}: is none of this device; h0 to h{last} are its placement handles, and the default \
                     export writes without an id"
                ))
            })
        })
    }

    /// Returns the status of the placement handles. An entry has the placement id, the number of the reclaim unit
    /// handle, and the number of bytes that can still be written to the unit of the handle.
    ///
    /// # Errors
    /// Fails if the device does not write by units.
    pub fn placement_status(&self) -> Result<Value, LiveError> {
        let page_bytes = self.page_bytes();
        self.placement(|device| Ok(placement_status(device, page_bytes)))
    }

    /// Returns log pages 20h to 23h of flexible data placement.
    ///
    /// # Errors
    /// Fails if the device does not write by units.
    pub fn placement_logs(&self) -> Result<Value, LiveError> {
        let page_bytes = self.page_bytes();
        self.placement(|device| Ok(placement_logs(device, page_bytes).into()))
    }

    /// Closes the units (blocks that are erased together) to which the handles with the given placement ids write, even
    /// if these units are not full. Returns the new status of the handles.
    ///
    /// # Errors
    /// Fails if the device does not write by units, or if an id is not valid. In that case, no unit is closed.
    pub fn placement_update(&self, ids: &[u16]) -> Result<Value, LiveError> {
        let page_bytes = self.page_bytes();
        self.placement(|device| {
            let valid: Vec<u16> = device.status().into_iter().map(|status| status.id).collect();
            device.update(ids).map_err(|e| {
                LiveError::Setting(format!(
                    "{e}: the placement ids of this device are {valid:?}, and an update names at most 128; no unit was \
                     closed"
                ))
            })?;
            Ok(placement_status(device, page_bytes))
        })
    }

    fn placement<T>(
        &self,
        what: impl FnOnce(&mut Placed) -> Result<T, LiveError>,
    ) -> Result<T, LiveError> {
        self.order(|device| {
            let none = || {
                LiveError::Setting(
                    "the device does not write by units: it has no placement handles (placement.scheme)".into(),
                )
            };
            what(device.placement().ok_or_else(none)?)
        })
    }

    /// Makes a die fail ([`flashtwin::Ssd::kill_die`]). Returns the number of pages lost.
    ///
    /// # Errors
    /// Fails if the device is an array, has no such die, or cannot work without the die.
    pub fn kill_die(&self, die: u32) -> Result<u32, LiveError> {
        self.order(|device| device.kill_die(die))
    }

    /// Replaces the policy of the buffer ([`flashtwin::Ssd::set_policy`]).
    ///
    /// # Errors
    /// Fails if the device has no buffer, or the policy or one of its keys is unknown or wrong for the device.
    pub fn set_policy(&self, name: &str, settings: &[(&str, &str)]) -> Result<(), LiveError> {
        self.order(|device| device.set_policy(name, settings))
    }

    /// Changes GC settings and keys of the buffer's policy ([`Orders::set_keys`]). Returns all keys that can change,
    /// with their values.
    ///
    /// # Errors
    /// Fails if a key cannot change while the device runs, or if a value is wrong for it.
    pub fn set_keys(&self, changes: &[(&str, &str)]) -> Result<LiveKeys, LiveError> {
        self.order(|device| device.set_keys(changes))
    }

    /// Makes a member of an array fail. If the array had no redundancy left, all later requests fail.
    ///
    /// # Errors
    /// Fails if the device is no array, has no such member, or if the member has already failed.
    pub fn fail_member(&self, member: usize) -> Result<(), LiveError> {
        self.change_array(|array| array.fail_needed_member(member))
    }

    /// Replaces a failed member by a new one, which is then rebuilt.
    ///
    /// # Errors
    /// Fails if the device is no array, has no such member, or if the member has not failed.
    pub fn replace_member(&self, member: usize) -> Result<(), LiveError> {
        self.change_array(|array| array.replace_member(member))
    }

    /// Multiplies the response times of a member by `times` from now on ([`Array::slow_member`]). A factor of 1
    /// restores the normal times.
    ///
    /// # Errors
    /// Fails if the device is no array, has no such member, or if the factor is below 1 or too large.
    pub fn slow_member(&self, member: usize, times: f64) -> Result<(), LiveError> {
        if !(1.0..=SLOW_TIMES_MAX).contains(&times) {
            return Err(LiveError::Setting(format!(
                "times {times}: give a number from 1, which is as fast as it is, to {SLOW_TIMES_MAX}"
            )));
        }
        let times_milli = (times * 1000.0).round() as u32;
        self.change_array(|array| array.slow_member(member, times_milli))
    }

    fn change_array(
        &self,
        how: impl FnOnce(&mut Array) -> Result<(), MemberError>,
    ) -> Result<(), LiveError> {
        self.change(|twin| {
            let array = twin.array().ok_or_else(orders::no_members)?;
            how(array).map_err(orders::refused)
        })
    }

    fn order<T>(
        &self,
        what: impl FnOnce(&mut dyn Orders) -> Result<T, LiveError>,
    ) -> Result<T, LiveError> {
        let none = || LiveError::Setting("the device takes no orders".into());
        self.change(|twin| what(twin.orders().ok_or_else(none)?))
    }

    fn change<T>(
        &self,
        how: impl FnOnce(&mut dyn Twin) -> Result<T, LiveError>,
    ) -> Result<T, LiveError> {
        let broken = || LiveError::Setting("the server is broken; start it anew".into());
        self.driver.change(how).ok_or_else(broken)?
    }

    /// Returns the settings with which the server was started.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether [`Server::extents`] has a result.
    pub fn has_extents(&self) -> bool {
        self.store.has_stretches()
    }

    /// Lists the written and unwritten extents of a range, until its end or until `each` returns false. Takes no device
    /// time.
    ///
    /// # Errors
    /// Fails if the range is beyond the device, the power was lost, or the store cannot be read.
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

    /// Returns the report of the server.
    pub fn report(&self) -> Report {
        Report {
            exported_bytes: self.size_bytes,
            ..self.driver.report()
        }
    }

    /// Appends the requests received since the last call to the recording, and writes the report to the file that the
    /// settings name. The report file is replaced completely or not at all, unless the settings name an open file of
    /// this process (`/proc/self/fd`).
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn write_report(&self) -> Result<(), LiveError> {
        let recorded = self.recording.as_ref().map_or(Ok(()), |to| to.write());
        recorded.and(write(self.wanted_report()))
    }

    /// Returns the report, with the path for it in the settings. Returns `None` if the settings have no such path.
    fn wanted_report(&self) -> Option<(&Path, Report)> {
        let path = self.settings.report.as_deref()?;
        Some((path, self.report()))
    }

    /// Stops the server. If the data are in a file, writes them to disk, and writes the state of the flash to a file
    /// beside it. Then writes the last report and the remaining recorded requests. A step is executed even if an
    /// earlier one fails or panics. No call may be in flight ([`Server::drain`]).
    ///
    /// # Errors
    /// Returns the first error of any step.
    pub fn stop(&self) -> Result<(), LiveError> {
        let file = match &self.settings.store {
            Kept::File(path) => Some(path),
            Kept::Memory | Kept::None => None,
        };
        let synced = file.map_or(Ok(()), |path| {
            let synced = self.store.sync();
            synced.map_err(|e| LiveError::io(path, "write", e))
        });
        // The report is made before the device writes back its buffer and becomes idle. It is written to its file only
        // after the state of the flash has been saved.
        let report = unbroken("the last report was not made", || self.wanted_report());
        if file.is_some() {
            // A server that is broken reports so below.
            drop(self.order(|device| device.restore_gc(&self.gc)));
        }
        let stopped = unbroken("the device did not come to rest", || {
            self.driver.stop(|twin| {
                let save = |path: &PathBuf| twin.save(&state_path(path), "flashtwin serve");
                file.map_or(Ok(()), save)
            })
        });
        let saved = match (stopped, file) {
            (Ok(Some(saved)), _) => saved.map_err(LiveError::from),
            (Ok(None) | Err(_), Some(path)) => Err(LiveError::Store(format!(
                "{}: the data is on disk, but the device did not come to rest: the state of its flash is \
                 that of the last clean stop",
                path.display()
            ))),
            (Ok(None), None) => Ok(()),
            (Err(bug), None) => Err(bug),
        };
        let reported = report.and_then(write);
        let recorded = self.recording.as_ref().map_or(Ok(()), |to| to.end());
        synced.and(saved).and(reported).and(recorded)
    }

    pub(crate) fn within(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.size_bytes => Ok(()),
            _ => Err(Failure::Beyond),
        }
    }

    /// Rejects a write if the device is read-only. Called before the data reach the store.
    pub(crate) fn refuse_if_read_only(&self) -> Result<(), Failure> {
        match self.driver.is_read_only() {
            true => Err(Failure::ReadOnly),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
