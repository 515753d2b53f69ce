//! Health logs of the drive after the run, and its lifetime at the write rate of the run.
//!
//! The units of the values are those of NVMe. SMART / Health (log 02h) counts data in units of 512 000 bytes, rounded
//! up. The endurance group log (09h) counts data in billions of bytes. Both logs cover the measured part of the run,
//! except wear, which is counted since the device was new.

use flashtwin::metrics::Metrics;
use flashtwin::{DeviceSpec, Op};
use serde::Serialize;

use crate::outcome::Outcome;
use crate::subject::Described;

/// Bytes of a SMART data unit.
const DATA_UNIT: u64 = 512_000;
const SECONDS_PER_YEAR: f64 = 365.0 * 86_400.0;

/// Health in the units of NVMe.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Health {
    /// Data read by the host, in NVMe data units of 1000 * 512 bytes, rounded up.
    pub data_units_read: u64,
    /// Data written by the host, in NVMe data units of 1000 * 512 bytes, rounded up.
    pub data_units_written: u64,
    /// Reads completed.
    pub host_read_commands: u64,
    /// Writes completed.
    pub host_write_commands: u64,
    /// Mean erase count as a percentage of the rated erases, rounded up. The value may exceed 100. It is 0 if the drive
    /// has no rating.
    pub percentage_used: u64,
    /// Percentage of the reserve blocks that are left, where each worn-out block uses up one.
    pub available_spare_percent: u64,
    /// Number of worn-out blocks: blocks that have reached the erase count that they survive.
    pub spent_blocks: u32,
    /// Bytes written by the host.
    pub host_bytes_written: u64,
    /// Bytes programmed in the flash, including summary pages and the drive's parity and metadata.
    pub media_bytes_written: u64,
    /// Write amplification of the device: bytes programmed in the flash per byte written by the host. `None` if the
    /// host wrote nothing.
    pub device_write_amplification: Option<f64>,
    /// Bytes written by the host divided by the exported capacity.
    pub drive_writes: f64,
    /// Lifetime of the drive at the write rate of the run. `None` if the drive has no rating or the host wrote nothing.
    pub lifetime: Option<Lifetime>,
}

/// Lifetime of the drive if the run were repeated until the mean erase count of the blocks reaches the rated erases.
/// For a repeated workload, the write amplification over the second half of the passes is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lifetime {
    /// Number of erases that a block is rated for.
    pub rated_erases: u32,
    /// Terabytes (10^12 bytes) that the host can write.
    pub host_tb_written: f64,
    /// Drive writes per day (writes of the whole exported capacity) at which the rated erases are reached at the end of
    /// the warranty.
    pub drive_writes_per_day: f64,
    /// Years of the warranty.
    pub warranty_years: u32,
    /// Years until the rated erases are reached if the drive is written at the rate of the run.
    pub years_at_this_rate: f64,
    /// Assumptions on which the figures rest.
    pub assumptions: &'static str,
}

impl Health {
    pub(super) fn new(
        device: &Described,
        exported_bytes: u64,
        metrics: &Metrics,
        outcome: &Outcome,
    ) -> Health {
        let flash = &outcome.flash;
        let (read, write) = (metrics.op(Op::Read), metrics.op(Op::Write));
        let media = flash.media_pages() * u64::from(device.page_bytes);
        let amplification = flash.device_write_amplification(device.page_bytes, write.bytes);
        let last_half = outcome.passes.as_ref();
        let last_half = last_half.and_then(|passes| passes.device_write_amplification);
        let blocks = |m: &&DeviceSpec| {
            m.geometry.chips * m.geometry.planes_per_chip * m.reserved_blocks_per_plane()
        };
        let reserve: u32 = device.members.iter().map(blocks).sum();
        let left = reserve.saturating_sub(flash.spent_blocks);
        // If members differ, the lowest rating counts.
        let ratings = device.members.iter().map(|m| m.wear.rated_erases);
        let rated = ratings.min().flatten();
        Health {
            data_units_read: read.bytes.div_ceil(DATA_UNIT),
            data_units_written: write.bytes.div_ceil(DATA_UNIT),
            host_read_commands: read.requests,
            host_write_commands: write.requests,
            percentage_used: rated.map_or(0, |rated| {
                (flash.erase_spread.mean / f64::from(rated.get()) * 100.0).ceil() as u64
            }),
            available_spare_percent: (u64::from(left) * 100).div_ceil(u64::from(reserve).max(1)),
            spent_blocks: flash.spent_blocks,
            host_bytes_written: write.bytes,
            media_bytes_written: media,
            device_write_amplification: amplification,
            drive_writes: write.bytes as f64 / exported_bytes as f64,
            lifetime: rated.and_then(|rated| {
                let amplification = last_half.or(amplification).filter(|&wa| wa > 0.0)?;
                Some(Lifetime::new(
                    device,
                    exported_bytes,
                    rated.get(),
                    amplification,
                    write.bytes as f64 / metrics.span().as_s().max(1e-12),
                ))
            }),
        }
    }
}

impl Lifetime {
    fn new(
        device: &Described,
        exported_bytes: u64,
        rated: u32,
        write_amplification: f64,
        host_bytes_per_s: f64,
    ) -> Lifetime {
        let bytes = |m: &&DeviceSpec| f64::from(m.physical_pages()) * f64::from(device.page_bytes);
        let flash_bytes: f64 = device.members.iter().map(bytes).sum();
        let warranty_years = device.members[0].wear.warranty_years;
        let host_bytes = f64::from(rated) * flash_bytes / write_amplification;
        let years = f64::from(warranty_years);
        Lifetime {
            rated_erases: rated,
            host_tb_written: host_bytes * 1e-12,
            drive_writes_per_day: host_bytes / exported_bytes as f64 / (years * 365.0),
            warranty_years,
            years_at_this_rate: host_bytes / (host_bytes_per_s * SECONDS_PER_YEAR),
            assumptions: "every block gets the same share of erases, write amplification and rate \
                          stay those of the measured run, no block fails before its rating",
        }
    }
}
