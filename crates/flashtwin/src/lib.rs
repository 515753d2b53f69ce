//! The flashtwin model: a flash device as a deterministic state machine.
//!
//! This crate has no clock, threads, files, sockets or global state. Its random numbers follow from a seed, which is
//! part of the device's state. [`Device::submit`] submits a request. [`Device::advance`] and [`Device::step`] advance
//! the simulated time. [`Device::next_event`] returns the instant of the next event. A finished request is returned
//! as a [`Completion`]. An offline simulation and a live device are two drivers of this model.
//!
//! ```
//! use flashtwin::{DeviceSpec, Op, Request, Ssd, Time};
//!
//! let profile = flashtwin::spec::builtin("demo").unwrap();
//! let spec = DeviceSpec::parse(profile, "demo").unwrap();
//! let mut ssd = Ssd::new(&spec);
//! ssd.fill_sequential();
//! let read = Request { arrival: Time::ZERO, offset: 8192, bytes: 4096, op: Op::Read, ..Request::default() };
//! ssd.submit(Time::ZERO, &read, 1).unwrap();
//! while ssd.step() {}
//! let done = ssd.completions().pop().unwrap();
//! assert_eq!(done.breakdown.total(), done.done - done.arrival);
//! ```

mod array;
pub mod buffer;
mod chips;
pub mod component;
mod coordinate;
mod device;
mod divide;
mod events;
pub mod ftl;
mod gc;
mod joined;
mod list;
mod memory;
pub mod metrics;
mod nand;
pub mod placement;
mod refused;
pub mod request;
mod rng;
mod short;
pub mod spec;
mod ssd;
pub mod stepping;
pub mod theory;
pub mod units;
mod watch;

pub use array::{
    Array, ArrayEvent, Condition, Executor, Filling, GcInterval, GcMessage, JobKind, MemberRebuild,
    Method, Phase, Raid, RaidStats, SentFor, Sequential, Task,
};
pub use chips::{ChipChanges, ChipSet};
pub use device::{
    Backend, BufferEvent, Device, Durable, Gauges, OutOfRange, PageProgram, PowerCut,
};
pub use ftl::{StateError, StateLength};
pub use nand::{Cause, FlashEvent, FlashStats, Place};
pub use refused::{CollectError, MemberError};
pub use request::{Breakdown, Completion, Op, PlacementId, Request, Status, PARTS};
pub use rng::{seed_count, seed_of, seeds, Rng};
pub use spec::{ArraySpec, DeviceSpec};
pub use ssd::{DieError, Flash, Ssd};
pub use units::{ChipId, Lpn, Ppn, Stream, Time};
pub use watch::{Unwatched, Watch};
