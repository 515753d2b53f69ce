//! The flash back ends with their parameters.

use super::decimal::{scale, Rounding};
use super::section::{section, Field, Key, Values, OPTIONAL};
use super::{DeviceSpec, MODERN, MODERN_PAGE, MSR_PAGE, STEP_US};
use crate::component::{words, FromSetting, Kind, Value};
use crate::units::{saturating_u32, Time};

words! {
    /// Values of `nand.backend`. For each value, the variant of [`Nand`] with the same name has the parameters of the
    /// back end.
    pub(super) enum Backend {
        /// Stands for [`Nand::Msr`].
        Msr = "msr",
        /// Stands for [`Nand::Modern`].
        Modern = "modern",
    }
}

/// The flash back end.
#[derive(Clone, Debug, PartialEq)]
pub enum Nand {
    /// The chip model of the reference (DiskSim with Microsoft's SSD extension), reproduced exactly.
    Msr(MsrNand),
    /// A back end in which dies share channels and the operations of GC are queued.
    Modern(ModernNand),
}

impl Nand {
    fn msr(&self) -> Option<&MsrNand> {
        match self {
            Nand::Msr(msr) => Some(msr),
            Nand::Modern(_) => None,
        }
    }

    pub(super) fn modern(&self) -> Option<&ModernNand> {
        match self {
            Nand::Msr(_) => None,
            Nand::Modern(modern) => Some(modern),
        }
    }
}

impl Field for Nand {
    fn read(v: &Values, key: &Key<Nand>) -> Nand {
        match v.setting(key) {
            Backend::Msr => Nand::Msr(MsrNand::from_values(v)),
            Backend::Modern => Nand::Modern(ModernNand::from_values(v)),
        }
    }

    fn write(&self) -> Option<Value> {
        let backend = match self {
            Nand::Msr(_) => Backend::Msr,
            Nand::Modern(_) => Backend::Modern,
        };
        Field::write(&backend)
    }
}

words! {
    /// Mapping of blocks to planes, which the reference (DiskSim) calls "plane block mapping". The reference's value 2
    /// does not work.
    pub enum PlaneMapping {
        /// Value 1 in the reference (DiskSim): plane = block / blocks_per_plane.
        Concatenated = "concatenated",
        /// Value 3 in the reference (DiskSim): plane = block mod planes.
        Striped = "striped",
    }
}

words! {
    /// Planes to which a page may be written. The reference (DiskSim) calls this "allocation pool logic". The
    /// reference's value 0 (gangs) is not modelled.
    pub enum AllocationPool {
        /// Value 1 in the reference (DiskSim): any plane of the chip.
        Chip = "chip",
        /// Value 2 in the reference (DiskSim): only the plane that holds the old copy.
        Plane = "plane",
    }
}

section! {
    /// Parameters of the reference's element model.
    pub struct MsrNand(v) in (spec: DeviceSpec => spec.nand.msr()) {
        parallel_units: u32 = "nand.parallel_units", Kind::Count(1, 4), Some("1"), MSR_PAGE,
            "Number of parallel units of a chip (1, 2 or 4), among which its planes are split evenly. Must be 1 without copy-back.", "the reference as shipped: 1";
        copy_back: bool = "nand.copy_back", Kind::Bool, None, &[],
            "GC moves pages inside the chip, and each plane is a pool of blocks that collects by itself. Otherwise the pages cross the chip's pins, and the whole chip is one pool.", "the reference as shipped: true",
            write Some(Value::Bool(spec.copy_back()));
        plane_mapping: PlaneMapping = "nand.plane_mapping", Kind::Choice(PlaneMapping::WORDS), Some("\"striped\""), MSR_PAGE,
            "Mapping of blocks to planes: `concatenated` = block / blocks_per_plane, `striped` = block mod planes.", "the reference as shipped: striped (3)";
        allocation_pool: AllocationPool = "nand.allocation_pool", Kind::Choice(AllocationPool::WORDS), Some("\"chip\""), MSR_PAGE,
            "Planes that may take a write: any plane of the chip, or the plane of the old copy (copy-back only).", "the reference as shipped: chip (1)";
        cleaning_in_background: bool = "nand.cleaning_in_background", Kind::Bool, Some("false"), MSR_PAGE,
            "Check for cleaning after every completion, instead of only while requests wait.", "the reference as shipped: false";
    }
}

words! {
    /// Number of bits of a flash cell. For each bit, a block has one type of pages.
    pub enum Cell {
        /// One bit.
        Slc = "slc",
        /// Two bits: lower and upper page.
        Mlc = "mlc",
        /// Three bits: lower, middle and upper page.
        Tlc = "tlc",
        /// Four bits.
        Qlc = "qlc",
    }
}

impl Cell {
    /// Returns the number of page types.
    pub fn page_types(self) -> usize {
        self as usize + 1
    }
}

/// A share in parts per million. In device files, it is given in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ppm(pub u32);

impl FromSetting for Ppm {
    fn from_setting(value: &Value) -> Option<Ppm> {
        let percent = f64::from_setting(value)?;
        scale(percent, 1_000_000, 100, Rounding::Nearest).map(|ppm| Ppm(saturating_u32(ppm)))
    }
}

impl Field for Ppm {
    fn read(v: &Values, key: &Key<Ppm>) -> Ppm {
        v.setting(key)
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Float(f64::from(self.0) / 10_000.0))
    }
}

section! {
    /// Parameters of the modern back end.
    pub struct ModernNand(v) in (spec: DeviceSpec => spec.nand.modern()) {
        read_priority: bool = "nand.read_priority", Kind::Bool, Some("true"), MODERN,
            "Host reads overtake other waiting operations of their die.", "common firmware practice";
        background_gc: bool = "nand.background_gc", Kind::Bool, Some("true"), MODERN_PAGE,
            "Collect garbage also while no host operation waits.", "common firmware practice";
        cell: Cell = "nand.cell", Kind::Choice(Cell::WORDS), Some("\"slc\""), MODERN,
            "Bits per cell, 1 to 4: the number of page types for which `read_us` and `program_us` may differ. Rows of a block cycle through the types.", "published parts";
        multi_plane: u32 = "nand.multi_plane", Kind::Count(1, 16), Some("1"), MODERN_PAGE,
            "Number of planes over which a block is striped. Waiting writes fill a flash page in each plane and are programmed together; waiting reads of a row (a flash page in each plane) are performed together; one erase covers all planes.", "ONFI multi-plane commands";
        independent_reads: bool = "nand.independent_reads", Kind::Bool, Some("false"), MODERN_PAGE,
            "Waiting reads of different rows are also performed together if each is on another plane.", "ONFI asynchronous plane reads";
        cached_commands: bool = "nand.cached_commands", Kind::Bool, Some("false"), MODERN_PAGE,
            "Overlap of transfers and array operations: the data of the next program cross the channel while the array programs, and the array reads the next page while the data of the previous page cross it (D-68).", "ONFI: page cache program, read cache";
        program_wait: Time = "nand.program_wait_us", Kind::Micros(STEP_US), Some("0"), MODERN_PAGE,
            "Maximum time that a write-back waits for other writes to share its program. A flush, or a write for which the host waits, starts the program immediately.", "our decision";
        suspend: bool = "nand.suspend", Kind::Bool, Some("false"), MODERN_PAGE,
            "An arriving host read suspends a running program or erase and is served first, except while the data of a program cross the channel.", "measured on a Micron 7300 PRO (ublk-disksim, VALIDATION section 5)";
        suspend_cost: Time = "nand.suspend_us", Kind::Micros(STEP_US), Some("20"), MODERN_PAGE,
            "Time lost by a suspension: once when the array stops, and again when it resumes.", "Wu and He, FAST '12: a verify phase of some 24";
        suspend_rest: Time = "nand.suspend_rest_us", Kind::Micros(STEP_US), OPTIONAL, MODERN_PAGE,
            "A program or erase with at most this time left is not suspended; default: `suspend_us`.", "our decision (D-66)",
            follows suspend_cost;
        suspend_limit: u32 = "nand.suspend_limit", Kind::Count(1, 65_535), Some("16"), MODERN_PAGE,
            "Maximum number of read commands for which one program or erase is suspended; later reads wait for its end.", "our decision: a program must end";
        read_retry: Ppm = "nand.read_retry_percent", Kind::Percent, Some("0"), MODERN_PAGE,
            "Share of flash page reads that fail and are retried. A retry fails with the same probability; there are at most 8 retries.", "our decision";
        media_overhead: Ppm = "nand.media_overhead_percent", Kind::Percent, Some("0"), MODERN,
            "Parity and metadata that the drive programs in addition to each page, as a share of it. They are only counted, in the write amplification of the device and in the lifetime; they take no time and no room.", "counters of drives under sequential writes: 2 to 11",
            write (spec.media_overhead() != Ppm(0)).then(|| spec.media_overhead().write()).flatten();
    } and {
        /// Whether GC moves pages inside the die, without using the channel.
        copy_back: bool = v.field(&MsrNand::copy_back);
        /// The write cache of blocks in SLC mode (one bit per cell), if there is one.
        slc_cache: Option<SlcCache> = Some(SlcCache::from_values(v)).filter(|cache| cache.percent > 0.0);
    }
}

section! {
    /// A write cache of blocks in SLC mode.
    pub struct SlcCache(v) in (spec: DeviceSpec => spec.slc_cache()) {
        percent: f64 = "nand.pslc_percent", Kind::Percent, Some("0"), MODERN_PAGE,
            "Maximum share of a chip's blocks used as a write cache in SLC mode (one bit per cell). In this mode a block has fewer pages: their number is divided by the bits per cell (D-65).", "consumer drives",
            write Some(Value::Float(spec.slc_cache().map_or(0.0, |cache| cache.percent)));
        read: Time = "nand.pslc_read_us", Kind::Micros(STEP_US), Some("25"), MODERN_PAGE,
            "Page read latency in SLC mode. The `pslc_` keys have no effect while `pslc_percent` is 0.", "published parts: 20 to 30";
        program: Time = "nand.pslc_program_us", Kind::Micros(STEP_US), Some("200"), MODERN_PAGE,
            "Page program latency in SLC mode.", "published parts: 160 to 300";
        idle: Time = "nand.pslc_idle_us", Kind::Micros(STEP_US), Some("100000"), MODERN_PAGE,
            "Idle time after which a chip folds, that is, moves pages from blocks in SLC mode to normal blocks.", "our decision";
    }
}
