//! The report of a server. It is written while the server runs and at its end.

use std::iter::repeat;

use flashtwin::metrics::{FlashReport, Metrics, OpMetrics};
use flashtwin::{Cause, Op, Time};
use hdrhistogram::Histogram;
use serde::Serialize;

/// Largest lateness that is recorded, in ns. Longer ones are recorded as this value. Lateness is the time from the
/// completion of a call in device time to its return.
const LATENESS_NS_MAX: u64 = 3_600_000_000_000;

/// Percentiles in microseconds, exact to three digits. Their names are those in the summary of an offline run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Median.
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
}

impl Percentiles {
    fn of(ns: &Histogram<u64>) -> Percentiles {
        let at = |share| ns.value_at_quantile(share) as f64 / 1e3;
        Percentiles {
            p50_us: at(0.5),
            p75_us: at(0.75),
            p90_us: at(0.9),
            p95_us: at(0.95),
            p99_us: at(0.99),
            p995_us: at(0.995),
            p999_us: at(0.999),
        }
    }
}

/// Counts of one kind of request, and its response times in microseconds of device time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CallCounts {
    /// Requests completed without an error.
    pub requests: u64,
    /// Bytes of the requests completed without an error.
    pub bytes: u64,
    /// Page accesses of the requests that completed without an error.
    pub pages: u64,
    /// Page accesses that hit the buffer.
    pub hits: u64,
    /// Number of requests that were refused because the device accepts no more writes. They are not counted in
    /// `requests`.
    pub refused: u64,
    /// Number of requests that failed because the device has lost their data. They are not counted in `requests`.
    /// Injected failures are not counted here.
    pub failed: u64,
    /// Sum in seconds of the response times of the requests that completed without an error.
    pub total_s: f64,
    /// Percentiles of the response times.
    #[serde(flatten)]
    pub percentiles: Percentiles,
}

impl CallCounts {
    /// Counts of calls that completed after `before`.
    fn since(before: &OpMetrics, now: &OpMetrics) -> CallCounts {
        CallCounts {
            requests: now.requests.saturating_sub(before.requests),
            bytes: now.bytes.saturating_sub(before.bytes),
            pages: now.pages.saturating_sub(before.pages),
            hits: now.hits.saturating_sub(before.hits),
            refused: now.refused.saturating_sub(before.refused),
            failed: now.failed.saturating_sub(before.failed),
            total_s: now
                .response_ps_sum()
                .saturating_sub(before.response_ps_sum()) as f64
                / 1e12,
            percentiles: Percentiles::of(&since(&before.histogram_ns(), &now.histogram_ns())),
        }
    }
}

/// Counts and response times of the calls of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Responses {
    /// Reads.
    pub read: CallCounts,
    /// Writes.
    pub write: CallCounts,
    /// Trims.
    pub trim: CallCounts,
    /// Flushes.
    pub flush: CallCounts,
}

/// Lateness: the time from the completion of a call in device time to its return, in microseconds of the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Calls counted.
    pub calls: u64,
    /// Percentiles of the delay.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// The longest delay.
    pub max_us: f64,
}

/// Counters of the flash.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlashCounts {
    /// Pages programmed for the host.
    pub host_pages: u64,
    /// Pages moved within the flash.
    pub moved_pages: u64,
    /// Write amplification of the device: bytes programmed per byte that the host wrote. `None` if the host has written
    /// nothing.
    pub device_write_amplification: Option<f64>,
    /// Write amplification of GC: pages programmed per page programmed for the host. `None` if no page was programmed
    /// for the host.
    pub gc_write_amplification: Option<f64>,
    /// Blocks erased.
    pub erases: u64,
    /// Times a chip went into collection.
    pub collections: u64,
    /// Time of each chip in garbage collection, in seconds of device time.
    pub chips_gc_s: Vec<f64>,
}

impl FlashCounts {
    /// Returns the counts from `before` to `now`. If a member of an array has failed meanwhile, `now` lacks its counts.
    /// Differences that are negative for this reason become 0.
    fn since(
        before: &FlashReport,
        now: &FlashReport,
        page_bytes: u32,
        host_bytes: u64,
    ) -> FlashCounts {
        let mut done = now.clone();
        for (count, earlier) in done.flash.ops.iter_mut().zip(before.flash.ops) {
            *count = count.saturating_sub(earlier);
        }
        done.overhead_pages = done.overhead_pages.saturating_sub(before.overhead_pages);
        let earlier = before.gc_time.iter().copied().chain(repeat(Time::ZERO));
        let chips = now.gc_time.iter().zip(earlier);
        FlashCounts {
            host_pages: done.flash.host_programs(),
            moved_pages: done.moves(),
            device_write_amplification: done.device_write_amplification(page_bytes, host_bytes),
            gc_write_amplification: done.gc_write_amplification(),
            erases: done.flash.count(Cause::Erase),
            collections: now.flash.gc_actions.saturating_sub(before.flash.gc_actions),
            chips_gc_s: chips
                .map(|(&now, before)| seconds(now.saturating_sub(before)))
                .collect(),
        }
    }
}

fn seconds(time: Time) -> f64 {
    time.0 as f64 / 1e12
}

/// Counts between the previous report and this one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Recent {
    /// Elapsed time in seconds of the wall clock.
    pub elapsed_s: f64,
    /// Elapsed time in seconds of the device.
    pub device_s: f64,
    /// Lateness of the calls that returned.
    pub lateness: Lateness,
    /// Response times of the model.
    pub responses: Responses,
    /// Counters of the flash.
    pub flash: FlashCounts,
}

/// Collects lateness.
#[derive(Clone, Debug)]
pub(crate) struct LatenessLog(Histogram<u64>);

impl Default for LatenessLog {
    fn default() -> LatenessLog {
        let histogram = Histogram::new_with_bounds(1, LATENESS_NS_MAX, 3);
        LatenessLog(histogram.expect("the bounds are constants that the histogram takes"))
    }
}

impl LatenessLog {
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    fn since(before: &LatenessLog, now: &LatenessLog) -> Lateness {
        let ns = since(&before.0, &now.0);
        Lateness {
            calls: ns.len(),
            percentiles: Percentiles::of(&ns),
            max_us: ns.max() as f64 / 1e3,
        }
    }
}

/// Returns the values recorded since `before`. If `before` contains values that `now` lacks, returns all values of
/// `now`.
fn since(before: &Histogram<u64>, now: &Histogram<u64>) -> Histogram<u64> {
    let mut left = now.clone();
    match before.is_empty() || left.subtract(before).is_ok() {
        true => left,
        false => now.clone(),
    }
}

/// All counts at one instant. They are copied under the driver's lock, while the device does not run. Values that are
/// derived from them are computed after the lock is released.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Time since the start, in seconds of the wall clock.
    pub elapsed_s: f64,
    /// The device's clock.
    pub now: Time,
    pub lateness: LatenessLog,
    pub metrics: Metrics,
    pub flash: FlashReport,
    pub page_bytes: u32,
}

impl Counts {
    /// Counts since `before`.
    pub fn since(&self, before: &Counts) -> Recent {
        let of = |op| CallCounts::since(before.metrics.op(op), self.metrics.op(op));
        let write = of(Op::Write);
        let flash = FlashCounts::since(&before.flash, &self.flash, self.page_bytes, write.bytes);
        Recent {
            elapsed_s: self.elapsed_s - before.elapsed_s,
            device_s: seconds(self.now.saturating_sub(before.now)),
            lateness: LatenessLog::since(&before.lateness, &self.lateness),
            responses: Responses {
                read: of(Op::Read),
                write,
                trim: of(Op::Trim),
                flush: of(Op::Flush),
            },
            flash,
        }
    }
}

/// The whole report of a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The device's name.
    pub device: String,
    /// Bytes that clients see.
    pub exported_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Dilation: the factor by which device time passes more slowly than wall-clock time.
    pub dilation: f64,
    /// Time since the server's start, in seconds of the wall clock.
    pub elapsed_s: f64,
    /// Calls in flight.
    pub waiting: usize,
    /// Whether the device is read-only.
    pub read_only: bool,
    /// Pages in buffers that flash lacks.
    pub dirty_pages: u64,
    /// Pages whose newest contents are lost: they could not be written to flash, or were on a die that failed.
    pub pages_lost: u64,
    /// Numbers of the dead dies in ascending order. The numbers are the indices of `chips_gc_s`.
    pub dead_dies: Vec<u32>,
    /// Time in microseconds that the pacer spins before each instant at which the device must run.
    pub spin_margin_us: f64,
    /// Whether the kernel allows the server to keep idle cores from halting while requests arrive.
    pub cores_ready: bool,
    /// Lateness of all calls.
    pub lateness: Lateness,
    /// Response times of the model.
    pub responses: Responses,
    /// Counters of the flash since the server's start.
    pub flash: FlashCounts,
    /// Counts since the previous report.
    pub recent: Recent,
}

#[cfg(test)]
mod tests;
