//! Interface between the driver and the devices that it runs, SSDs and arrays: precondition, save, describe, log.

use std::io::{self, Read, Write};

use flashtwin::placement::Placed;
use flashtwin::spec::{ArraySpec, Buffer, Nand};
use flashtwin::{
    Array, ArrayEvent, Backend, BufferEvent, Device, DeviceSpec, Flash, FlashEvent, Raid, Request,
    Rng, Ssd, StateError, Watch,
};

use crate::Threads;

/// The description of a device in results.
#[derive(Clone, Debug)]
pub struct Described<'a> {
    /// Name of the device.
    pub name: &'a str,
    /// Back end of the device: `msr`, `modern`, or `mixed` if the members of an array differ.
    pub backend: &'static str,
    /// Buffer of the device, if it has one.
    pub buffer: Option<&'a Buffer>,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// The array, if the device is one.
    pub array: Option<&'a ArraySpec>,
    /// The SSDs of which the device consists.
    pub members: Vec<&'a DeviceSpec>,
}

/// Entries of a device's log. Entries of the flash and of the buffer have the number of the member; `None` for a single
/// drive. An array also has entries of its own.
#[derive(Clone, Debug)]
pub enum Logged {
    /// Events of the flash.
    Flash(Option<usize>, Vec<FlashEvent>),
    /// Events of a buffer.
    Buffer(Option<usize>, Vec<BufferEvent>),
    /// Events of an array.
    Array(Vec<ArrayEvent>),
}

/// Operations on a back end that the driver needs to precondition, save and describe a device.
pub trait Drivable: Backend + Sized {
    /// Returns the description of the device.
    fn describe(device: &Device<Self>) -> Described<'_>;
    /// Writes every exported page once in ascending order. Returns false if `watch` stopped the work.
    fn fill_sequential(device: &mut Device<Self>, watch: &dyn Watch) -> bool;
    /// Brings the device into the steady state of random writing. Returns false if `watch` stopped the work.
    fn fill_steady(device: &mut Device<Self>, seed: u64, watch: &dyn Watch) -> bool;
    /// Writes `pages` uniformly random pages without virtual time. Returns false if the device wore out.
    fn write_random(device: &mut Device<Self>, rng: &mut Rng, pages: u64) -> bool;
    /// Opens the blocks into which buffer policies write pages of their choice. Returns false if the device wore out.
    fn open_policy_blocks(device: &mut Device<Self>, seed: u64) -> bool;
    /// Resets the erase counts, since a preconditioned device counts as new.
    fn reset_wear(device: &mut Device<Self>);
    /// Writes the state of the flash of an idle device.
    ///
    /// # Errors
    /// Fails if writing to `out` fails.
    fn save_state(device: &Device<Self>, out: &mut dyn Write) -> io::Result<()>;
    /// Loads a state that [`Drivable::save_state`] wrote for the same flash.
    ///
    /// # Errors
    /// Fails if reading `input` fails, or if the state does not fit this device; the device is then unchanged.
    fn load_state(device: &mut Device<Self>, input: &mut dyn Read) -> Result<(), StateError>;
    /// Starts or stops all logs.
    fn set_logs(device: &mut Device<Self>, on: bool);
    /// Calls `take` with the log entries since the last call. The entries of an array itself precede those of its
    /// members.
    fn take_logs(device: &mut Device<Self>, take: &mut dyn FnMut(Logged));
    /// Visits each drive: the only drive, or the members of an array in order. `visit` also receives the member's
    /// number.
    fn each_drive(device: &Device<Self>, visit: &mut dyn FnMut(Option<usize>, &Ssd));
    /// Returns the placement tables and rules of a device that writes by units (blocks that are erased together);
    /// `None` for other devices.
    fn placement(_device: &mut Device<Self>) -> Option<&mut Placed> {
        None
    }
    /// The array, if the device is one.
    fn array(_device: &Device<Self>) -> Option<&Array> {
        None
    }
    /// Simulates the members' parts of the next requests before the requests are submitted ([`Array::run_ahead`]).
    /// Returns false if that is not possible.
    fn run_ahead(
        _device: &mut Device<Self>,
        _requests: &[Request],
        _last: bool,
        _threads: Threads,
    ) -> bool {
        false
    }
    /// Ends the simulation of requests before their submission. Called if the next request was not passed to
    /// [`Drivable::run_ahead`].
    fn resume_serial(_device: &mut Device<Self>) {}
    /// Returns the device as an array, if it is one.
    fn array_mut(_device: &mut Device<Self>) -> Option<&mut Array> {
        None
    }
}

fn backend(spec: &DeviceSpec) -> &'static str {
    match spec.nand {
        Nand::Msr(_) => "msr",
        Nand::Modern(_) => "modern",
    }
}

impl Drivable for Flash {
    fn placement(device: &mut Ssd) -> Option<&mut Placed> {
        device.placement_mut()
    }

    fn describe(device: &Device<Self>) -> Described<'_> {
        let spec = device.spec();
        Described {
            name: &spec.name,
            backend: backend(spec),
            buffer: spec.buffer.as_ref(),
            page_bytes: spec.geometry.page_bytes,
            array: None,
            members: vec![spec],
        }
    }

    fn fill_sequential(device: &mut Device<Self>, watch: &dyn Watch) -> bool {
        let pages = u64::from(device.spec().exported_pages());
        watch.expect(pages);
        device.fill_sequential();
        watch.done(pages)
    }

    fn fill_steady(device: &mut Device<Self>, seed: u64, watch: &dyn Watch) -> bool {
        device.fill_steady_watched(seed, watch)
    }

    fn write_random(device: &mut Device<Self>, rng: &mut Rng, pages: u64) -> bool {
        device.write_random(rng, pages)
    }

    fn open_policy_blocks(device: &mut Device<Self>, seed: u64) -> bool {
        device.open_policy_blocks(seed)
    }

    fn reset_wear(device: &mut Device<Self>) {
        device.reset_wear();
    }

    fn save_state(device: &Device<Self>, out: &mut dyn Write) -> io::Result<()> {
        device.save_state(out)
    }

    fn load_state(device: &mut Device<Self>, input: &mut dyn Read) -> Result<(), StateError> {
        device.load_state(input)
    }

    fn set_logs(device: &mut Device<Self>, on: bool) {
        device.set_logs(on);
    }

    fn take_logs(device: &mut Device<Self>, take: &mut dyn FnMut(Logged)) {
        take(Logged::Buffer(None, device.take_buffer_log()));
        take(Logged::Flash(None, device.take_flash_log()));
    }

    fn each_drive(device: &Device<Self>, visit: &mut dyn FnMut(Option<usize>, &Ssd)) {
        visit(None, device);
    }
}

/// Returns the back end of an array's members, or `mixed` if they differ.
fn array_backend(spec: &ArraySpec) -> &'static str {
    let first = backend(&spec.members[0]);
    match spec.members.iter().all(|member| backend(member) == first) {
        true => first,
        false => "mixed",
    }
}

impl Drivable for Raid {
    fn describe(device: &Device<Self>) -> Described<'_> {
        let spec = device.spec();
        Described {
            name: &spec.name,
            backend: array_backend(spec),
            buffer: spec.buffer.as_ref(),
            page_bytes: spec.page_bytes(),
            array: Some(spec),
            members: spec.members.iter().collect(),
        }
    }

    fn fill_sequential(device: &mut Device<Self>, watch: &dyn Watch) -> bool {
        let threads = Threads::available();
        device.filling(&threads).watched(watch).fill_sequential()
    }

    fn fill_steady(device: &mut Device<Self>, seed: u64, watch: &dyn Watch) -> bool {
        let threads = Threads::available();
        device.filling(&threads).watched(watch).fill_steady(seed)
    }

    fn write_random(device: &mut Device<Self>, rng: &mut Rng, pages: u64) -> bool {
        device
            .filling(&Threads::available())
            .write_random(rng, pages)
    }

    fn open_policy_blocks(device: &mut Device<Self>, seed: u64) -> bool {
        device
            .filling(&Threads::available())
            .open_policy_blocks(seed)
    }

    fn reset_wear(device: &mut Device<Self>) {
        device.reset_wear();
    }

    fn save_state(device: &Device<Self>, out: &mut dyn Write) -> io::Result<()> {
        device.save_state(out)
    }

    fn load_state(device: &mut Device<Self>, input: &mut dyn Read) -> Result<(), StateError> {
        device.load_state(input)
    }

    fn set_logs(device: &mut Device<Self>, on: bool) {
        device.set_logs(on);
    }

    fn take_logs(device: &mut Device<Self>, take: &mut dyn FnMut(Logged)) {
        take(Logged::Buffer(None, device.take_buffer_log()));
        take(Logged::Array(device.take_log()));
        device.take_member_logs(|member, flash, buffer| {
            take(Logged::Buffer(Some(member), buffer));
            take(Logged::Flash(Some(member), flash));
        });
    }

    fn each_drive(device: &Device<Self>, visit: &mut dyn FnMut(Option<usize>, &Ssd)) {
        for (member, drive) in device.drives().enumerate() {
            visit(Some(member), drive);
        }
    }

    fn array(device: &Device<Self>) -> Option<&Array> {
        Some(device)
    }

    fn run_ahead(
        device: &mut Device<Self>,
        requests: &[Request],
        last: bool,
        threads: Threads,
    ) -> bool {
        device.run_ahead(requests, last, &threads)
    }

    fn resume_serial(device: &mut Device<Self>) {
        device.resume_serial();
    }

    fn array_mut(device: &mut Device<Self>) -> Option<&mut Array> {
        Some(device)
    }
}
