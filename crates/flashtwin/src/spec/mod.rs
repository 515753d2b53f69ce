//! What a device is: geometry, timing, reserve, policies.
//!
//! A [`DeviceSpec`] is read from TOML, checked as a whole, and is from then on only data. Every
//! number in it carries its unit in its type or at the end of its name.

#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]

mod array;
mod build;
mod check;
mod convert;
mod decimal;
mod derived;
mod error;
mod exchange;
mod keys;
mod profiles;
mod read;
mod shape;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests;
mod tree;
mod write;

pub use array::{
    array_keys, is_array, ArraySpec, Level, MemberInGc, Protect, Reads, Rotation, VolumeSpec,
};
pub use derived::SECTOR_BYTES;
pub use error::{Place, Problem, SpecError};
pub(crate) use exchange::refused;
pub use keys::{keys, policy_keys, KeyDoc};
pub use profiles::{builtin, builtin_array, builtin_array_names, builtin_names};

use crate::buffer::ChosenPolicy;
use crate::component::{words, Chosen};
use crate::ftl::chip;
use crate::units::Time;

/// A whole device, checked. Build one with [`DeviceSpec::parse`].
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSpec {
    /// Short name, as in `devices/NAME.toml`.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// How many of what.
    pub geometry: Geometry,
    /// How long each step takes.
    pub timing: Timing,
    /// The host's queues.
    pub host: Host,
    /// Host interface in front of the device.
    pub link: Link,
    /// Which flash back end, and its own parameters.
    pub nand: Nand,
    /// Mapping of logical to physical pages.
    pub ftl: Ftl,
    /// Garbage collection.
    pub gc: Gc,
    /// Block endurance.
    pub wear: Wear,
    /// The controller's processor.
    pub controller: Controller,
    /// The buffer in front of the flash, if there is one.
    pub buffer: Option<Buffer>,
    /// What is published of the drive that this is to resemble; the device does not depend on it.
    pub published: Published,
}

/// Figures of a drive, to be compared with those measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// Where they stand.
    pub source: String,
    /// Names and values in the order of the keys. `_min` and `_max` after the name of a figure is a bound of it.
    pub figures: Vec<(&'static str, f64)>,
}

impl Published {
    /// The value of a figure by its name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let found = self.figures.iter().find(|(known, _)| *known == name)?;
        Some(found.1)
    }
}

/// Counts of chips, planes, blocks and pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Chips (dies, "elements"): each does one thing at a time on the `msr` back end.
    pub chips: u32,
    /// Channels shared by the chips (`modern` only; the reference gives each chip its own pins).
    pub channels: u32,
    /// Planes in a chip.
    pub planes_per_chip: u32,
    /// Erase blocks in a plane.
    pub blocks_per_plane: u32,
    /// Pages in an erase block.
    pub pages_per_block: u32,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Spare bytes moved with every 512-byte sector (the reference: 16).
    pub spare_bytes_per_sector: u32,
    /// Share of the blocks the host does not see, in percent; rounded down to whole blocks a plane.
    pub reserve_percent: f64,
}

/// Durations of the flash steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Page read, array to register; the mean over the page types.
    pub read: Time,
    /// Page program, register to array; the mean over the page types.
    pub program: Time,
    /// Page reads by page type, lowest page first; one where all are alike.
    pub read_by_type: Vec<Time>,
    /// The same of page programs.
    pub program_by_type: Vec<Time>,
    /// Block erase.
    pub erase: Time,
    /// One byte between controller and chip.
    pub transfer_per_byte: Time,
}

words! {
    /// Which queue the controller takes from.
    pub(super) enum Arbitration {
        RoundRobin = "round-robin",
        Weighted = "weighted",
    }
}

/// The submission queues of the host, and whose turn it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// How many there are.
    pub queues: u32,
    /// Requests of a queue that are not finished, at most; 0: no limit.
    pub queue_depth: u32,
    /// Requests that the controller works on at a time; 0: no limit.
    pub commands: u32,
    /// Which queue a request goes to that names none.
    pub assign: Assign,
    /// Commands taken from a queue before the next has its turn; 0: no limit.
    pub burst: u32,
    /// Queues have classes and weights.
    pub weighted: bool,
    /// Queues that are urgent, of high and of medium priority: the first ones, in this order. The others
    /// are of low priority; without weights all are.
    pub classes: [u32; 3],
    /// Commands in a round of those of high, medium and low priority.
    pub weights: [u32; 3],
}

impl Default for Host {
    /// One queue without limits.
    fn default() -> Host {
        Host {
            queues: 1,
            queue_depth: 0,
            commands: 0,
            assign: Assign::Turn,
            burst: 1,
            weighted: false,
            classes: [0; 3],
            weights: [1; 3],
        }
    }
}

words! {
    /// Which queue a request goes to.
    pub enum Assign {
        /// One after the other.
        Turn = "turn",
        /// Reads to the first half of them, all others to the second, each in turn.
        Kind = "kind",
    }
}

/// The host interface.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What it is.
    pub kind: LinkKind,
    /// Delay of every request before the device sees it.
    pub command_overhead: Time,
    /// Time of one 512-byte sector on the reference's bus.
    pub bus_per_sector: Time,
}

words! {
    /// What `link.kind` names.
    pub(super) enum LinkWord {
        Reference = "reference",
        Sata = "sata",
        Pcie = "pcie",
    }
}

/// What requests cross to reach the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// The reference's bus: one request at a time, either way.
    Reference,
    /// 6 Gb/s, one request at a time, either way.
    Sata,
    /// Reads and writes do not wait for each other.
    Pcie {
        /// 1 to 5.
        generation: u32,
        /// How many there are.
        lanes: u32,
        /// Most data of a packet.
        payload_bytes: u32,
    },
}

words! {
    /// What `nand.backend` names.
    pub(super) enum BackendWord {
        Msr = "msr",
        Modern = "modern",
    }
}

/// The flash back end.
#[derive(Clone, Debug, PartialEq)]
pub enum Nand {
    /// The element model of the MSR SSD extension, exact.
    Msr(MsrNand),
    /// Channels shared by dies; GC as queued operations.
    Modern(ModernNand),
}

/// Parameters of the reference's element model.
#[derive(Clone, Debug, PartialEq)]
pub struct MsrNand {
    /// Planes are split evenly into this many units that may work at once: 1, 2 or 4.
    pub parallel_units: u32,
    /// GC moves pages inside the chip, one write pointer a plane; else one a chip.
    pub copy_back: bool,
    /// How block numbers map to planes.
    pub plane_mapping: PlaneMapping,
    /// Which planes a write may go to.
    pub allocation_pool: AllocationPool,
    /// Look for cleaning after every completion, not only when requests wait.
    pub cleaning_in_background: bool,
}

words! {
    /// Block number to plane ("plane block mapping" of the reference; its 2 is broken there).
    pub enum PlaneMapping {
        /// 1: plane = block / blocks_per_plane.
        Concatenated = "concatenated",
        /// 3: plane = block mod planes.
        Striped = "striped",
    }
}

words! {
    /// "Allocation pool logic" of the reference (its 0, gangs, is not modelled).
    pub enum AllocationPool {
        /// 1: any plane of the chip.
        Chip = "chip",
        /// 2: the plane of the old copy.
        Plane = "plane",
    }
}

/// Parameters of the modern back end.
#[derive(Clone, Debug, PartialEq)]
pub struct ModernNand {
    /// Host reads overtake other waiting operations of their die.
    pub read_priority: bool,
    /// GC moves pages inside the die, without the channel.
    pub copy_back: bool,
    /// Collect also when no host operation waits.
    pub background_gc: bool,
    /// Bits a cell holds: how many page types there are.
    pub cell: Cell,
    /// Pages of the map in a flash page.
    pub flash_page_pages: u32,
    /// Planes that a block is striped over and that work at once.
    pub multi_plane: u32,
    /// Planes may read different rows at once.
    pub independent_reads: bool,
    /// What comes next begins while the array programs, or while what was read crosses the channel.
    pub cached_commands: bool,
    /// How long a write-back waits for others that fill its program.
    pub program_wait: Time,
    /// Host reads stop running programs and erases.
    pub suspend: bool,
    /// Time lost when the array stops, and again when it goes on.
    pub suspend_cost: Time,
    /// What would end within this time is not stopped.
    pub suspend_rest: Time,
    /// Reads that may go before one program or erase.
    pub suspend_limit: u32,
    /// Reads out of a million that must be read again.
    pub read_retry_ppm: u64,
    /// Blocks used with one bit a cell as a write cache.
    pub slc_cache: Option<SlcCache>,
}

/// A write cache of blocks in SLC mode.
#[derive(Clone, Debug, PartialEq)]
pub struct SlcCache {
    /// Most of the blocks of a chip that are in this mode at a time.
    pub percent: f64,
    /// Reading and programming a row of such a block.
    pub read: Time,
    /// See `read`.
    pub program: Time,
    /// How long a chip must have been idle until it folds.
    pub idle: Time,
}

words! {
    /// Bits that a flash cell holds, one for each page type.
    pub enum Cell {
        /// One.
        Slc = "slc",
        /// Two: lower and upper page.
        Mlc = "mlc",
        /// Three: lower, middle, upper.
        Tlc = "tlc",
        /// Four.
        Qlc = "qlc",
    }
}

impl Cell {
    /// Page types.
    pub fn page_types(self) -> usize {
        self as usize + 1
    }
}

/// Mapping of logical to physical pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Ftl {
    /// The mapping.
    pub kind: Mapping,
    /// Which chip a page goes to.
    pub placement: Placement,
    /// Consecutive pages on a chip before the next chip (static placement).
    pub stride_pages: u32,
    /// The last page of each block holds a summary written by the device.
    pub summary_page: bool,
    /// What requests for part of a page do without a buffer, if that is specified.
    pub partial: Option<Partial>,
    /// Which pages are kept apart, in blocks of their own.
    pub separation: Separation,
}

/// What maps logical to physical pages.
#[derive(Clone, Debug, PartialEq)]
pub enum Mapping {
    /// A page map of the whole device, in memory.
    Page,
    /// A translation layer in each chip.
    Chip(chip::Layer),
}

words! {
    /// What `ftl.separation` names.
    pub(super) enum SeparationWord {
        None = "none",
        Gc = "gc",
        Region = "region",
    }
}

/// Pages that go to open blocks of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Separation {
    /// None by the FTL; the buffer policy may separate hot pages from cold ones.
    None,
    /// Pages that GC moves from those the host writes.
    Gc,
    /// The first logical pages, this share of all in percent, from the others: also when GC moves
    /// them.
    Region(f64),
}

words! {
    /// Page-to-chip mapping (D-3 of the decision register).
    pub enum Placement {
        /// chip = (page / stride) mod chips, for ever.
        Static = "static",
        /// Every write goes to the next chip of a round robin, channel first.
        Dynamic = "dynamic",
    }
}

words! {
    /// What is opened, collected and erased as one.
    pub(super) enum Granularity {
        Block = "block",
        Superblock = "superblock",
    }
}

words! {
    /// What is counted against a pool's watermark.
    pub(super) enum Watermark {
        Blocks = "blocks",
        Pages = "pages",
    }
}

words! {
    /// Where GC moves pages to on a device whose buffer policy separates hot pages from cold ones (D-220).
    pub enum Moves {
        /// The cold open block.
        Cold = "cold",
        /// An open block of the victim's kind.
        Victim = "victim",
        /// The open block of the class that the policy gives the page when it is moved.
        Class = "class",
    }
}

/// Garbage collection.
#[derive(Clone, Debug, PartialEq)]
pub struct Gc {
    /// Which block is collected.
    pub victim: Chosen,
    /// A block of every die is collected as one (`modern`).
    pub superblocks: bool,
    /// A pool collects when its free blocks are at or below this share of its blocks.
    pub low_percent: f64,
    /// Free pages count against it, those of open blocks too, instead of free blocks (`modern`).
    pub in_pages: bool,
    /// The same while no host operation waits (`modern`); `None`: no other share.
    pub idle_percent: Option<f64>,
    /// Host writes, too, pass between two moves while the pool is above `low_percent` (`modern`).
    pub preemptible: bool,
    /// Where moved pages go if the buffer policy separates pages.
    pub moves: Moves,
    /// Collecting takes no time.
    pub ideal: bool,
}

/// Endurance.
#[derive(Clone, Debug, PartialEq)]
pub struct Wear {
    /// Erases a block survives; `None`: no limit. (The reference: 50, a constant there.)
    pub erase_limit: Option<u32>,
    /// Standard deviation over blocks of that number, in percent.
    pub endurance_spread_percent: f64,
    /// How erases are spread over blocks.
    pub levelling: Chosen,
    /// Erases a block is rated for, from which lifetime is projected; `None`: not known.
    pub rated_erases: Option<u32>,
    /// Years over which drive writes a day are counted.
    pub warranty_years: u32,
}

/// What the controller's processor takes for its own work (D-10).
#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    /// For every request.
    pub request: Time,
    /// For every list entry a policy as published looks at to find a victim.
    pub scan_entry: Time,
}

/// The cached pages in front of the flash.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Size in pages.
    pub capacity_pages: u32,
    /// Replacement policy with its parameters.
    pub policy: ChosenPolicy,
    /// When the host sees the cost of an eviction (D-2).
    pub evict: EvictMode,
    /// Requests that cover part of a page (D-1).
    pub partial: Partial,
    /// Pages of the separate read cache, beside `capacity_pages`; 0: reads share the buffer.
    pub read_cache_pages: u32,
    /// Access time of the buffer memory for a read, per page.
    pub latency: Time,
    /// The same for a write.
    pub write_latency: Time,
    /// Access time of the separate read cache, per page.
    pub read_cache_latency: Time,
    /// Power-loss protection: a flush or FUA write is done once in the buffer.
    pub power_loss_protection: bool,
    /// The memory is non-volatile, as the policy of the device file has it. Another policy that takes its place
    /// governs the same memory.
    pub non_volatile: bool,
}

impl Buffer {
    /// The memory survives a power loss.
    pub(crate) fn is_protected(&self) -> bool {
        self.power_loss_protection || self.non_volatile
    }
}

words! {
    /// What `buffer.evict` names.
    pub(super) enum EvictWord {
        Blocking = "blocking",
        Background = "background",
    }
}

/// When does the access that needs a slot go on? (D-2)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictMode {
    /// When its victim's program has completed.
    Blocking,
    /// At once, while at most this many write-backs are in flight.
    Background(u32),
}

words! {
    /// What a request that does not cover whole pages does. (D-1)
    pub enum Partial {
        /// Round every request outwards to page boundaries.
        Round = "round",
        /// Keep a bitmap of valid sectors a page, or without a buffer carry only what was asked; read the
        /// rest from flash when needed.
        Sectors = "sectors",
    }
}
