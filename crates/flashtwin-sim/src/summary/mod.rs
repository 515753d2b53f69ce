//! The result of a run as one value, written as JSON and shown on the terminal.
//!
//! Every name ends in its unit. All values follow from configuration, workload and seed, without wall-clock time.
//! Therefore the same run gives the same bytes.

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
    /// Preconditioning of the device, or the snapshot that was loaded.
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
    /// End of the warm-up, if the warm-up continued until the run was steady.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadySummary>,
    /// Passes of a workload that was repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passes: Option<PassesSummary>,
    /// Whether the device reached its end of life.
    pub read_only: bool,
    /// Pages of acknowledged writes that the device could not program because it had reached its end of life.
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
    /// Total time of all flash operations, including destages and collections, divided by the number of reads and
    /// writes. FlashSim reports this as response time (D-30).
    pub flash_us_per_request: f64,
    /// Counters of the flash.
    pub flash: FlashSummary,
    /// Contents of the drive's health logs.
    pub health: Health,
    /// Placement counts; `None` if the device does not write by units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementSummary>,
    /// Counters of the array; `None` for a single SSD.
    pub array: Option<ArraySummary>,
    /// Intervals of the time series; empty if no series was requested.
    pub series: Vec<SeriesPoint>,
}

/// A warm-up that ends once the run is steady.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SteadySummary {
    /// Requests of the warm-up.
    pub after_requests: u64,
    /// Whether the criterion was met. If not, the warm-up had its maximum length.
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
    /// Write amplification of the device over the last half of the passes; `None` without writes.
    pub device_write_amplification: Option<f64>,
    /// Half width of the 95 % confidence interval of the write amplification; `None` with fewer
    /// than six passes.
    pub device_write_amplification_half_width: Option<f64>,
    /// Bytes programmed per byte of the host over the last half of the passes, by purpose.
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

/// Response times, in virtual time, of the requests of one kind that completed without an error.
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
    /// Means of the parts of the response time; they sum to its mean.
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

/// Requests in flight, of all kinds. Little's law holds if the mean number in flight equals the arrival rate times the
/// mean response time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Inside {
    /// Mean number of requests in flight over the measured time.
    pub requests_mean: f64,
    /// Arrival rate times mean response time, which Little's law compares with `requests_mean`.
    pub little_requests_mean: f64,
    /// Relative difference between the measured mean and the product of rate and response time.
    pub little_error: f64,
}

/// Counters of the buffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BufferReport {
    /// Clean pages evicted.
    pub evicted_clean_pages: u64,
    /// Dirty pages evicted.
    pub evicted_dirty_pages: u64,
    /// Dirty pages evicted whose flash copy was on a chip in garbage collection.
    pub evicted_dirty_in_gc_pages: u64,
    /// Evictions to make room for an access.
    pub evictions: u64,
    /// List entries that the published algorithms would inspect to find the victims.
    pub entries_inspected: u64,
    /// Evictions by the number of pages that they wrote back: 1, 2, 3 to 4, 5 to 8, 9 to 16, 17 to 32, 33 to 64, and
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
    /// Fraction of the time in which the limit was reached and further write-backs were pending.
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
    /// Pages programmed per page programmed for the host. Pages of the map count as programmed pages. `None` if no page
    /// was programmed for the host. The device's write amplification is in [`Health`].
    pub gc_write_amplification: Option<f64>,
    /// Pages that garbage collection and merges moved.
    pub pages_moved: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Number of times that a chip began garbage collection.
    pub gc_actions: u64,
    /// Counters of the chips' translation layers; empty with the page map.
    pub ftl_counters: Vec<NamedCount>,
    /// Fraction of time in garbage collection, as the mean over chips.
    pub gc_share_mean: f64,
    /// Largest fraction of time in garbage collection of any chip.
    pub gc_share_max: f64,
    /// Time in garbage collection, chip by chip.
    pub gc_time_ms_by_chip: Vec<f64>,
    /// Fraction of time in which a chip was busy, including GC, as the mean over chips.
    pub busy_share_mean: f64,
    /// Fraction of time in which the busiest chip was busy.
    pub busy_share_max: f64,
    /// Fewest erases of a block since the device was new.
    pub block_erases_min: u32,
    /// Mean number of erases over all blocks.
    pub block_erases_mean: f64,
    /// Largest number of erases of a block.
    pub block_erases_max: u32,
    /// Standard deviation of the erases over all blocks.
    pub block_erases_deviation: f64,
    /// Distribution of erases: pairs of erase count and number of blocks, by ascending erase count.
    pub block_erases_counts: Vec<(u32, u64)>,
}

/// One interval of the time series. A value that needs a completed request is `None` if the interval has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SeriesPoint {
    /// Start of the interval, from the start of the measurement.
    pub t_s: f64,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Megabytes read and written.
    pub mb: f64,
    /// Mean response time of reads, if any were completed.
    pub read_mean_us: Option<f64>,
    /// Mean response time of writes, if any were completed.
    pub write_mean_us: Option<f64>,
    /// Longest response time.
    pub max_us: Option<f64>,
    /// Share of page accesses found in the buffer.
    pub hit_ratio: Option<f64>,
    /// Fraction of the response times spent waiting behind garbage collection.
    pub gc_wait_share: Option<f64>,
    /// Fraction of rows rebuilt at the end of the interval, over all members being rebuilt; `None` if there are none.
    pub rebuilt_share: Option<f64>,
}
