//! A trait for the two kinds of devices, SSD and array. Its dynamic dispatch takes no noticeable time, compared with
//! the communication with a client.

#[cfg(test)]
pub(crate) mod made_up;

use std::path::Path;

use flashtwin::metrics::{FlashReport, Metrics};
use flashtwin::placement::UserRules;
use flashtwin::spec::is_array;
use flashtwin::{
    Array, ArraySpec, Backend, Completion, Device, DeviceSpec, Durable, OutOfRange, PageProgram,
    PowerCut, Request, Ssd, Time,
};
use flashtwin_sim::{Drivable, SimError};

use crate::disturb::Disturbance;
use crate::{LiveError, Orders};

/// Largest number of events within which a device without requests must become idle. Even the collection of all blocks
/// takes fewer events.
const REST_STEPS_MAX: u64 = 100_000_000;

/// A device as the driver sees it.
pub trait Twin: Send {
    /// Returns the name of the device.
    fn name(&self) -> String;
    /// Returns the number of bytes that clients can access.
    fn exported_bytes(&self) -> u64;
    /// Bytes of a page.
    fn page_bytes(&self) -> u32;
    /// Returns the current virtual time: [`Device::now`].
    fn now(&self) -> Time;
    /// Returns the time of the device's next event; `None` if there is none ([`Device::next_event`]).
    fn next_event(&self) -> Option<Time>;
    /// Runs the device: [`Device::advance`].
    fn advance(&mut self, until: Time);
    /// Submits a request: [`Device::submit`].
    ///
    /// # Errors
    /// Fails as [`Device::submit`] does.
    fn submit(&mut self, now: Time, request: &Request, tag: u64) -> Result<(), OutOfRange>;
    /// Completions to be taken: [`Device::completions`].
    fn completions(&mut self) -> &mut Vec<Completion>;
    /// Whether the device is read-only: [`Device::is_read_only`].
    fn is_read_only(&self) -> bool;
    /// Metrics of requests.
    fn metrics(&self) -> &Metrics;
    /// Counters of the flash, without wear.
    fn flash_report(&self) -> FlashReport;
    /// Returns the event that makes a write safe from a power loss.
    fn durable(&self) -> Durable;
    /// Calls `each` with the notifications of page programs since the last call. Programs of pages that a power loss
    /// cannot affect are not reported.
    fn take_programs(&mut self, each: &mut dyn FnMut(PageProgram));
    /// Simulates a power loss. Returns the lost pages, or `None` if the flash does not become idle.
    fn cut_power(&mut self) -> Option<PowerCut>;
    /// Returns the device as an array; `None` if it is an SSD.
    fn array(&mut self) -> Option<&mut Array>;
    /// Returns the interface of a device that executes orders; `None` if it cannot execute any.
    fn orders(&mut self) -> Option<&mut dyn Orders> {
        None
    }
    /// Replaces the disturbances, if the device supports any.
    fn disturb(&mut self, _how: Disturbance) {}
    /// Writes back the buffer and completes all pending work, without waiting for real time. Returns false if the work
    /// does not end.
    fn come_to_rest(&mut self) -> bool;
    /// Writes the state of the flash to a file. The device must be idle ([`Twin::come_to_rest`]).
    ///
    /// # Errors
    /// Fails as [`flashtwin_sim::save_snapshot`] does.
    fn save(&self, path: &Path, made_by: &str) -> Result<(), SimError>;
    /// Loads the state of the flash from a file.
    ///
    /// # Errors
    /// Fails as [`flashtwin_sim::load_snapshot`] does.
    fn load(&mut self, path: &Path) -> Result<(), SimError>;
}

impl<S: Drivable + Send> Twin for Device<S>
where
    Device<S>: Powered + Orders,
{
    fn name(&self) -> String {
        S::describe(self).name.to_owned()
    }
    fn exported_bytes(&self) -> u64 {
        self.exported_bytes()
    }
    fn page_bytes(&self) -> u32 {
        S::describe(self).page_bytes
    }
    fn now(&self) -> Time {
        self.now()
    }
    fn next_event(&self) -> Option<Time> {
        self.next_event()
    }
    fn advance(&mut self, until: Time) {
        self.advance(until);
    }
    fn submit(&mut self, now: Time, request: &Request, tag: u64) -> Result<(), OutOfRange> {
        self.submit(now, request, tag)
    }
    fn completions(&mut self) -> &mut Vec<Completion> {
        self.completions()
    }
    fn is_read_only(&self) -> bool {
        self.is_read_only()
    }
    fn metrics(&self) -> &Metrics {
        self.metrics()
    }
    fn flash_report(&self) -> FlashReport {
        self.flash_report_without_wear()
    }
    fn durable(&self) -> Durable {
        self.durable()
    }
    fn take_programs(&mut self, each: &mut dyn FnMut(PageProgram)) {
        self.take_program_log().for_each(each);
    }
    fn cut_power(&mut self) -> Option<PowerCut> {
        self.cut_power_within(REST_STEPS_MAX)
    }
    fn array(&mut self) -> Option<&mut Array> {
        S::array_mut(self)
    }
    fn orders(&mut self) -> Option<&mut dyn Orders> {
        Some(self)
    }
    fn come_to_rest(&mut self) -> bool {
        let steps = self.shut_down(REST_STEPS_MAX);
        (0..steps).any(|_| !self.step())
    }
    fn save(&self, path: &Path, made_by: &str) -> Result<(), SimError> {
        flashtwin_sim::save_snapshot(path, self, made_by)
    }
    fn load(&mut self, path: &Path) -> Result<(), SimError> {
        flashtwin_sim::load_snapshot(path, self).map(drop)
    }
}

/// Power loss, which differs between SSDs and arrays.
pub trait Powered {
    /// Loses the power: [`Ssd::cut_power`].
    fn cut_power_within(&mut self, steps: u64) -> Option<PowerCut>;
}

impl Powered for Ssd {
    fn cut_power_within(&mut self, steps: u64) -> Option<PowerCut> {
        self.cut_power(steps)
    }
}

impl Powered for Array {
    fn cut_power_within(&mut self, steps: u64) -> Option<PowerCut> {
        self.cut_power(steps)
    }
}

/// Creates the device that the file at `path` describes. `rules` are the user's placement rules, if there are any.
pub(crate) fn of_file(path: &Path, rules: Option<UserRules>) -> Result<Box<dyn Twin>, LiveError> {
    let text = std::fs::read_to_string(path).map_err(|e| LiveError::io(path, "read", e))?;
    let origin = path.display().to_string();
    Ok(if is_array(&text) {
        let spec = ArraySpec::with_overrides(&text, &origin, &[])?;
        if rules.is_some() {
            return Err(LiveError::Setting(format!(
                "{origin}: an array has no placement rules"
            )));
        }
        Box::new(logged(Array::new(&spec)))
    } else {
        let spec = DeviceSpec::with_overrides(&text, &origin, &[])?;
        let mut ssd = Ssd::new(&spec);
        if let Some(rules) = rules {
            let set = ssd.set_rules(rules);
            set.map_err(|e| LiveError::Setting(format!("{origin}: {e}")))?;
        }
        Box::new(logged(ssd))
    })
}

/// Makes the device log its page programs. Does nothing if a power loss cannot affect pages that are not flushed.
fn logged<B: Backend>(mut device: Device<B>) -> Device<B> {
    device.set_program_log(device.durable() == Durable::Programmed);
    device
}
