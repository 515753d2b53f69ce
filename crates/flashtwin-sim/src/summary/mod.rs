//! The result of a run as one value. It can be written as JSON or shown on the terminal.
//!
//! The name of a quantity ends in its unit. All values depend only on configuration, workload and seed, not on
//! wall-clock time. Therefore the same run gives the same bytes.

mod array;
mod build;
mod health;
mod numbers;
mod placement;
mod show;

pub use array::{ArraySummary, MemberSummary, PhaseSummary, RebuildSummary};
use flashtwin::Breakdown;
pub use health::{Health, Lifetime};
pub use numbers::bytes as size_text;
pub use placement::PlacementSummary;
use serde::{Serialize, Serializer};

/// Conditions of a run that do not belong to the device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunInfo {
    /// The workload in one line.
    pub workload: String,
    /// Warnings: problems that did not stop the run.
    pub warnings: Vec<String>,
    /// Preconditioning of the device, or the snapshot loaded instead.
    pub precondition: String,
    /// Pacing of the requests, such as "open loop" or "closed loop, depth 32".
    pub pacing: String,
    /// Seed of preconditioning and generator.
    pub seed: u64,
}

/// All results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Version of flashtwin that executed the run.
    pub flashtwin_version: &'static str,
    /// Name of the device.
    pub device: String,
    /// The back end: `msr` or `modern`.
    pub backend: &'static str,
    /// Replacement policy of the buffer; `none` without a buffer.
    pub policy: String,
    /// Size of the buffer in pages; 0 without a buffer.
    pub buffer_pages: u64,
    /// Pages of the separate read cache, in addition to the buffer.
    pub read_cache_pages: u64,
    /// Bytes in a page.
    pub page_bytes: u64,
    /// Bytes the host can address.
    pub exported_bytes: u64,
    /// The workload in one line.
    pub workload: String,
    /// Warnings: problems that did not stop the run.
    pub warnings: Vec<String>,
    /// Preconditioning of the device.
    pub precondition: String,
    /// Pacing of requests.
    pub pacing: String,
    /// Seed of preconditioning and generator.
    pub seed: u64,

    /// Requests submitted, warm-up included.
    pub requests_submitted: u64,
    /// Requests dropped because they reach beyond the device.
    pub requests_dropped: u64,
    /// Requests taken modulo the exported size.
    pub requests_wrapped: u64,
    /// Writes and trims refused because the device had reached its end of life.
    pub requests_refused: u64,
    /// Requests that failed because an array had lost data.
    pub requests_failed: u64,
    /// Whether the run was stopped early.
    pub interrupted: bool,
    /// End of the warm-up; `None` unless the warm-up was to continue until the run is steady.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadySummary>,
    /// Passes of a workload that was repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passes: Option<PassesSummary>,
    /// Whether the device reached its end of life.
    pub read_only: bool,
    /// Pages that were lost after their writes had been acknowledged: the device could not program them because it had
    /// reached its end of life.
    pub pages_lost: u64,

    /// Virtual time from the start of the measurement to the last completion.
    pub span_s: f64,
    /// Measured requests by kind.
    pub counts: Counts,
    /// Response times of reads and writes together.
    pub all: Latency,
    /// Response times of reads.
    pub read: Latency,
    /// Response times of writes.
    pub write: Latency,
    /// Response times of trims.
    pub trim: Latency,
    /// Response times of flushes.
    pub flush: Latency,
    /// Reads and writes completed per second of virtual time.
    pub throughput: Throughput,
    /// Pages found in the buffer.
    pub hits: Hits,
    /// Number of requests in the device.
    pub inside: Inside,
    /// Counters of the buffer.
    pub buffer: BufferReport,
    /// Total time of all flash operations divided by the number of reads and writes. The total includes destages and
    /// collections. FlashSim calls this quantity response time (D-30).
    pub flash_us_per_request: f64,
    /// Counters of the flash.
    pub flash: FlashSummary,
    /// Contents of the drive's health logs.
    pub health: Health,
    /// Placement summary; `None` if the device does not write by units (blocks that are erased together).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementSummary>,
    /// Counters of the array; `None` for a single SSD.
    pub array: Option<ArraySummary>,
    /// Intervals of the time series; empty if no series was requested.
    pub series: Vec<SeriesPoint>,
}

/// End of a warm-up that was to continue until the run is steady.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SteadySummary {
    /// Requests of the warm-up.
    pub after_requests: u64,
    /// Whether the criterion was met. Otherwise the warm-up ended at its maximum length.
    pub is_met: bool,
}

/// Passes of a workload that was repeated, from the start of the measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PassesSummary {
    /// Passes completed.
    pub passes: u64,
    /// Writes of the whole exported capacity.
    pub drive_writes: f64,
    /// Whether write amplification was level.
    pub is_level: bool,
    /// Write amplification of the device over the second half of the passes; `None` without writes.
    pub device_write_amplification: Option<f64>,
    /// Half width of the 95 % confidence interval of the write amplification; `None` with fewer
    /// than six passes.
    pub device_write_amplification_half_width: Option<f64>,
    /// For each purpose: bytes programmed per byte written by the host, over the second half of the passes.
    pub programs_by_purpose: Vec<Purpose>,
}

/// Programs for one purpose.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Purpose {
    /// The purpose.
    pub name: &'static str,
    /// Bytes programmed for this purpose per byte that the host wrote.
    pub write_amplification: f64,
}

/// Measured requests by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Reads.
    pub reads: Count,
    /// Writes.
    pub writes: Count,
    /// Trims.
    pub trims: Count,
    /// Flushes.
    pub flushes: Count,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Count {
    /// Requests completed without an error.
    pub requests: u64,
    /// Bytes of the requests that completed without an error.
    pub bytes: u64,
    /// Page accesses by the requests that completed without an error.
    pub pages: u64,
    /// Requests refused because the device had reached its end of life; not counted in `requests`.
    pub refused: u64,
    /// Requests that failed because data were lost; not counted in `requests`.
    pub failed: u64,
}

/// Response times of the completed requests of one kind, in virtual time. Requests with an error are excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Requests completed without an error.
    pub requests: u64,
    /// Mean response time.
    pub mean_us: f64,
    /// Standard deviation of the response times.
    pub deviation_us: f64,
    /// Coefficient of variation: standard deviation divided by the mean.
    pub variation: f64,
    /// Median. Percentiles are exact to three digits.
    pub p50_us: f64,
    /// 75th percentile.
    pub p75_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.5th percentile.
    pub p995_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// 99.99th percentile.
    pub p9999_us: f64,
    /// Longest response time, exact.
    pub max_us: f64,
    /// Mean of each part of the response time. These means sum to the mean response time.
    #[serde(serialize_with = "serialize_parts")]
    pub parts_us: Breakdown<f64>,
}

/// Writes the parts of a response time as an object with their names.
fn serialize_parts<S: Serializer>(parts: &Breakdown<f64>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(Breakdown::NAMES.iter().zip(parts.parts()))
}

/// Rates over the measured span; MB are 10^6 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Throughput {
    /// Reads and writes a second.
    pub iops: f64,
    /// Megabytes read and written a second.
    pub mb_per_s: f64,
    /// Megabytes read a second.
    pub read_mb_per_s: f64,
    /// Megabytes written a second.
    pub write_mb_per_s: f64,
}

/// Share of page accesses found in the buffer, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Hits {
    /// Hit ratio of reads and writes.
    pub ratio: f64,
    /// Hit ratio of reads.
    pub read_ratio: f64,
    /// Hit ratio of writes.
    pub write_ratio: f64,
    /// Pages found, reads and writes.
    pub pages: u64,
}

/// Number of requests in flight, of all kinds, and the number according to Little's law: the arrival rate times the
/// mean response time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Inside {
    /// Mean number of requests in flight over the measured time.
    pub requests_mean: f64,
    /// Arrival rate times mean response time. By Little's law, the product equals `requests_mean`.
    pub little_requests_mean: f64,
    /// Relative difference between `requests_mean` and `little_requests_mean`.
    pub little_error: f64,
}

/// Counters of the buffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BufferReport {
    /// Clean pages evicted.
    pub evicted_clean_pages: u64,
    /// Dirty pages evicted.
    pub evicted_dirty_pages: u64,
    /// Dirty pages that were evicted while the chip with their flash copy was in garbage collection.
    pub evicted_dirty_in_gc_pages: u64,
    /// Evictions to make room for an access.
    pub evictions: u64,
    /// Number of list entries that would be inspected to find the victims, if the policies were implemented as
    /// published.
    pub entries_inspected: u64,
    /// Number of evictions by the number of pages written back: 1, 2, 3 to 4, 5 to 8, 9 to 16, 17 to 32, 33 to 64, or
    /// more.
    pub destages: [u64; 8],
    /// Page accesses that waited for a slot.
    pub slot_waits: u64,
    /// Mean time that page accesses waited for a slot.
    pub slot_wait_mean_us: f64,
    /// A limit that was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<BufferLimit>,
    /// Counters of the policy.
    pub policy_counters: Vec<NamedCount>,
}

/// A limit of the buffer that was reached during the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BufferLimit {
    /// Key of the device file that sets the limit.
    pub key: &'static str,
    /// Value of the key: the largest number of write-backs in flight.
    pub value: u32,
    /// Fraction of the time in which the limit was reached and further write-backs waited.
    pub time_share: f64,
}

/// A count with its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NamedCount {
    /// Name of the counter.
    pub name: String,
    /// Value of the counter.
    pub count: u64,
}

/// Counters of the flash in the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlashSummary {
    /// Page operations and erases by cause.
    pub ops: Vec<NamedCount>,
    /// Write amplification of GC: pages programmed, including pages of the map, per page programmed for the host.
    /// `None` if no page was programmed for the host. The device's write amplification is in [`Health`].
    pub gc_write_amplification: Option<f64>,
    /// Pages that garbage collection and merges moved.
    pub pages_moved: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Number of times that a chip began garbage collection.
    pub gc_actions: u64,
    /// Counters of the chips' translation layers; empty if the device uses the page map.
    pub ftl_counters: Vec<NamedCount>,
    /// Fraction of the time that a chip spent in garbage collection; mean over all chips.
    pub gc_share_mean: f64,
    /// Fraction of the time that the chip with the most garbage collection spent in it.
    pub gc_share_max: f64,
    /// Time in garbage collection, chip by chip.
    pub gc_time_ms_by_chip: Vec<f64>,
    /// Fraction of the time that a chip was busy, including GC; mean over all chips.
    pub busy_share_mean: f64,
    /// Fraction of the time that the busiest chip was busy.
    pub busy_share_max: f64,
    /// Smallest erase count of any block since the device was new.
    pub block_erases_min: u32,
    /// Mean number of erases over all blocks.
    pub block_erases_mean: f64,
    /// Largest number of erases of a block.
    pub block_erases_max: u32,
    /// Standard deviation of the erases over all blocks.
    pub block_erases_deviation: f64,
    /// Distribution of the erase counts: pairs of an erase count and the number of blocks with it, in ascending order.
    pub block_erases_counts: Vec<(u32, u64)>,
}

/// One interval of the time series. Values that are computed from completed requests are `None` if no request completed
/// in the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SeriesPoint {
    /// Start of the interval, in seconds from the start of the measurement.
    pub t_s: f64,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Megabytes read and written.
    pub mb: f64,
    /// Mean response time of the reads that completed; `None` if there are none.
    pub read_mean_us: Option<f64>,
    /// Mean response time of the writes that completed; `None` if there are none.
    pub write_mean_us: Option<f64>,
    /// Longest response time.
    pub max_us: Option<f64>,
    /// Share of page accesses found in the buffer.
    pub hit_ratio: Option<f64>,
    /// Sum of the times that requests waited for garbage collection, as a fraction of the sum of the response times.
    pub gc_wait_share: Option<f64>,
    /// Rows (stripes) rebuilt at the end of the interval, as a fraction of the rows to rebuild, over all members being
    /// rebuilt. `None` if no member is being rebuilt.
    pub rebuilt_share: Option<f64>,
}
