//! Geometry of the flash, and the durations of the steps of flash operations.

use super::section::{section, OPTIONAL};
use super::{DeviceSpec, MODERN, MODERN_PAGE, STEP_US, TRANSFER_NS};
use crate::component::Kind;
use crate::units::Time;

section! {
    /// Counts of chips, planes, blocks and pages.
    pub struct Geometry(v) in (spec: DeviceSpec => Some(&spec.geometry)) {
        chips: u32 = "geometry.chips", Kind::Count(1, 65_535), None, &[],
            "Chips (dies, \"elements\"): each performs one operation at a time.", "GCaR, Harmonia, ECR";
        channels: u32 = "geometry.channels", Kind::Count(1, 65_535), None, MODERN,
            "Channels shared by the chips; must divide `chips`. Not allowed on `msr`, where each chip has its own pins.", "published drives",
            read if v.has(&Self::channels) { v.field(&Self::channels) } else { chips };
        planes_per_chip: u32 = "geometry.planes_per_chip", Kind::Count(1, 1024), None, &[],
            "Planes per chip.", "GCaR, Harmonia, ECR";
        blocks_per_plane: u32 = "geometry.blocks_per_plane", Kind::Count(1, 1 << 24), None, &[],
            "Erase blocks per plane.", "GCaR, Harmonia, ECR";
        pages_per_block: u32 = "geometry.pages_per_block", Kind::Count(2, 4096), None, &[],
            "Pages per erase block.", "GCaR, Harmonia, ECR";
        page_bytes: u32 = "geometry.page_bytes", Kind::Size(1 << 20), None, &[],
            "Page size: a multiple of 512 bytes from 512 bytes to 1 MiB, not necessarily a power of two.", "GCaR, Harmonia, ECR";
        flash_page_bytes: u32 = "geometry.flash_page_bytes", Kind::Size(1 << 20), OPTIONAL, MODERN_PAGE,
            "Size of a flash page, the unit of reads and programs: a multiple of `page_bytes`, which is the default.", "published parts: 16 KiB",
            follows page_bytes;
        spare_bytes_per_sector: u32 = "geometry.spare_bytes_per_sector", Kind::Count(0, 512), Some("0"), &[],
            "Bytes transferred with every 512-byte sector in addition to the data (ECC, metadata).", "the reference: 16";
        reserve_percent: f64 = "geometry.reserve_percent", Kind::Percent, None, &[],
            "Over-provisioning: share of all blocks that the host does not see, rounded down to whole blocks per plane. \
             Instead, `geometry.over_provisioning` gives the reserve as a share of the exported capacity, as data sheets do: 7 % there equals 6.54 % here, and 28 % equals 21.9 %.", "GCaR, Harmonia, ECR: 15";
    }
}

section! {
    /// Durations of the flash steps.
    pub struct Timing(v) in (spec: DeviceSpec => Some(&spec.timing)) {
        read_by_type: Vec<Time> = "timing.read_us", Kind::MicrosByType(STEP_US), None, &[],
            "Page read latency, array to register; with several bits per cell a list, lower page first.", "GCaR, Harmonia, ECR: 25";
        program_by_type: Vec<Time> = "timing.program_us", Kind::MicrosByType(STEP_US), None, &[],
            "Page program latency, register to array; with several bits per cell a list, lower page first.", "GCaR, Harmonia, ECR: 200";
        erase: Time = "timing.erase_us", Kind::Micros(STEP_US), None, &[],
            "Block erase latency.", "GCaR, Harmonia, ECR: 1500";
        transfer_per_byte: Time = "timing.transfer_ns_per_byte", Kind::Nanos(TRANSFER_NS), None, &[],
            "Transfer time per byte between controller and chip.", "ECR Table 2: 25";
    } and {
        /// Page read: the mean over the page types.
        read: Time = mean(&read_by_type);
        /// Page program: the mean over the page types.
        program: Time = mean(&program_by_type);
    }
}

fn mean(times: &[Time]) -> Time {
    let sum: u64 = times.iter().map(|time| time.0).sum();
    Time(sum / times.len() as u64)
}
