//! Specification of a device: geometry, timing, over-provisioning, policies.
//!
//! A [`DeviceSpec`] is read from TOML and checked as a whole. It contains only data. Every number has its unit in its
//! type or in its name.
//!
//! Each key is declared once, in the file of its section (`geometry.rs`, `host.rs`, `nand.rs`, `ftl.rs`, `buffer.rs`,
//! `published.rs`, `array/mod.rs`). `section.rs` describes the form of a declaration. `keys.rs` has the tables of all
//! keys. `read.rs` reads a specification from text, `write.rs` writes it, and `check/` checks the conditions between
//! keys.

#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]

mod array;
mod buffer;
mod check;
mod choose;
mod convert;
mod decimal;
mod derived;
mod error;
mod exchange;
mod ftl;
mod geometry;
mod host;
mod keys;
mod nand;
mod over_provisioning;
mod placement_words;
mod profiles;
mod published;
mod read;
mod section;
mod shape;
mod suggest;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests;
mod tree;
mod units;
mod watermark;
mod write;

pub use array::{
    array_keys, is_array, ArraySpec, Level, MemberFile, MemberInGc, Protect, ReadMember, Reads,
    Rotation,
};
pub use buffer::{Buffer, EvictMode, Partial};
use choose::choose;
pub use derived::SECTOR_BYTES;
pub use error::{Place, Problem, SpecError};
pub(crate) use exchange::refused;
pub use ftl::{Ftl, Gc, Granularity, Mapping, Moves, Placement, Separation, Watermark, Wear};
pub use geometry::{Geometry, Timing};
pub use host::{Arbitration, Assign, Controller, Host, Link, LinkKind};
pub use keys::{keys, policy_keys};
pub use nand::{AllocationPool, Cell, ModernNand, MsrNand, Nand, PlaneMapping, Ppm, SlcCache};
pub use placement_words::PLACEMENT_WORDS;
pub use profiles::{builtin, builtin_array, builtin_array_names, builtin_names};
pub use published::Published;
pub use section::KeyDoc;
pub use units::WriteUnits;

use crate::component::Kind;
use nand::Backend;
use section::{section, Only};

/// Largest count that a key may have.
const U32: u32 = u32::MAX - 1;
/// Largest duration of a flash step, or of a request's overhead: one second. Real durations are below 20 ms.
const STEP_US: u32 = 1_000_000;
/// Largest transfer time of a byte or a sector: one millisecond.
const TRANSFER_NS: u32 = 1_000_000;

/// Value of `ftl.kind` that selects the page map of the whole device.
const PAGE_MAP: &str = "page";

const PAGE: Only = &[(Ftl::kind.name(), &[PAGE_MAP])];
const MODERN: Only = &[(DeviceSpec::nand.name(), &[Backend::Modern.name()])];
const MODERN_PAGE: Only = &[MODERN[0], PAGE[0]];
const MSR_PAGE: Only = &[(DeviceSpec::nand.name(), &[Backend::Msr.name()]), PAGE[0]];

section! {
    /// A device whose settings have been checked. [`DeviceSpec::parse`] creates one.
    pub struct DeviceSpec(v) in (spec: DeviceSpec => Some(spec)) {
        name: String = "name", Kind::Name, None, &[],
            "Short name of the device, printed with every result.", "ours";
        description: String = "description", Kind::Text, Some("\"\""), &[],
            "One-line description.", "ours";
        nand: Nand = "nand.backend", Kind::Choice(Backend::WORDS), None, &[],
            "`msr`: the element model of the MSR SSD extension, exact. `modern`: channels shared by dies, GC as queued operations.", "ours";
    } and {
        /// Counts of chips, planes, blocks and pages.
        geometry: Geometry = Geometry::from_values(v);
        /// Duration of each step of the flash.
        timing: Timing = Timing::from_values(v);
        /// The host's queues.
        host: Host = Host::from_values(v);
        /// Host interface in front of the device.
        link: Link = Link::from_values(v);
        /// Mapping of logical to physical pages.
        ftl: Ftl = Ftl::from_values(v);
        /// Garbage collection.
        gc: Gc = Gc::from_values(v);
        /// Placement of pages in units, if the device writes by units.
        placement: Option<WriteUnits> = units::is_on(v).then(|| WriteUnits::from_values(v));
        /// Block endurance.
        wear: Wear = Wear::from_values(v);
        /// The controller's processor.
        controller: Controller = Controller::from_values(v);
        /// The buffer in front of the flash, if there is one.
        buffer: Option<Buffer> = v.has(&Buffer::capacity_pages).then(|| Buffer::from_values(v));
        /// Published figures of the real drive that this device models; they do not influence the device.
        published: Published = Published::from_values(v);
    }
}
