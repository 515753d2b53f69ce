//! Builds a [`Summary`] from a device and an outcome.

use flashtwin::metrics::{FlashReport, Metrics, OpMetrics, Point, Series};
use flashtwin::{Cause, Device, Op, Time};

use super::{
    ArraySummary, BufferLimit, BufferReport, Count, Counts, FlashSummary, Health, Hits, Inside,
    Latency, NamedCount, PassesSummary, PlacementSummary, Purpose, RunInfo, SeriesPoint,
    SteadySummary, Summary, Throughput,
};
use crate::{Drivable, Outcome, Passes, RebuildPoint};

/// Returns `a / b`; 0 if `b` is 0.
pub(super) fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 {
        a / b
    } else {
        0.0
    }
}

impl Summary {
    /// Creates the summary of a run on `device`.
    pub fn new<S: Drivable>(device: &Device<S>, outcome: &Outcome, info: &RunInfo) -> Summary {
        let is = S::describe(device);
        let m = &outcome.metrics;
        let both = m.reads_and_writes();
        let counts = Counts {
            reads: Count::new(m.op(Op::Read)),
            writes: Count::new(m.op(Op::Write)),
            trims: Count::new(m.op(Op::Trim)),
            flushes: Count::new(m.op(Op::Flush)),
        };
        let all = [Op::Read, Op::Write, Op::Trim, Op::Flush].map(|op| m.op(op));
        let left_out = outcome.faults.left_out.iter();
        let left_out = left_out.map(|(fault, why)| format!("{fault} did not happen: {why}"));
        let steady = outcome.steady.as_ref();
        let unsteady = steady.and_then(|steady| {
            let after = steady.after_requests;
            let missed = steady.missed?;
            Some(format!(
                "not steady after {after} requests of warm-up: {missed}"
            ))
        });
        let uneven = (outcome.passes.as_ref()).and_then(|passes| {
            let missed = passes.missed?;
            Some(format!(
                "write amplification is not level after {} passes: {missed}",
                passes.passes
            ))
        });
        let mut placement = None;
        if let Some(before) = &outcome.placement_before {
            S::each_drive(device, &mut |_, ssd| {
                placement = (ssd.placement())
                    .map(|placed| PlacementSummary::new(placed, before, is.page_bytes));
            });
        }
        Summary {
            flashtwin_version: env!("CARGO_PKG_VERSION"),
            device: is.name.into(),
            backend: is.backend,
            policy: is.buffer.map_or("none".into(), |b| b.policy.name()),
            buffer_pages: is.buffer.map_or(0, |b| b.capacity_pages.into()),
            read_cache_pages: is.buffer.map_or(0, |b| b.read_cache_pages.into()),
            page_bytes: is.page_bytes.into(),
            exported_bytes: device.exported_bytes(),
            workload: info.workload.clone(),
            warnings: (info.warnings.iter().cloned())
                .chain(left_out)
                .chain(unsteady)
                .chain(uneven)
                .collect(),
            precondition: info.precondition.clone(),
            pacing: info.pacing.clone(),
            seed: info.seed,
            requests_submitted: outcome.submitted,
            requests_dropped: outcome.dropped,
            requests_wrapped: outcome.wrapped,
            requests_refused: all.iter().map(|op| op.refused).sum(),
            requests_failed: all.iter().map(|op| op.failed).sum(),
            interrupted: outcome.interrupted,
            steady: steady.map(|steady| SteadySummary {
                after_requests: steady.after_requests,
                is_met: steady.is_met,
            }),
            passes: outcome.passes.as_ref().map(PassesSummary::new),
            read_only: outcome.read_only,
            pages_lost: outcome.flash.pages_lost,
            span_s: m.span().as_s(),
            throughput: Throughput::new(&counts, m.span()),
            counts,
            hits: Hits {
                ratio: ratio(both.hits as f64, both.pages as f64),
                read_ratio: ratio(m.op(Op::Read).hits as f64, m.op(Op::Read).pages as f64),
                write_ratio: ratio(m.op(Op::Write).hits as f64, m.op(Op::Write).pages as f64),
                pages: both.hits,
            },
            all: Latency::new(&both),
            read: Latency::new(m.op(Op::Read)),
            write: Latency::new(m.op(Op::Write)),
            trim: Latency::new(m.op(Op::Trim)),
            flush: Latency::new(m.op(Op::Flush)),
            inside: Inside::new(m),
            buffer: BufferReport::new(&outcome.flash, device.write_back_limit()),
            flash_us_per_request: ratio(
                outcome
                    .flash
                    .busy_time
                    .iter()
                    .map(|t| t.as_us())
                    .sum::<f64>(),
                (counts.reads.requests + counts.writes.requests) as f64,
            ),
            flash: FlashSummary::new(&outcome.flash),
            health: Health::new(&is, device.exported_bytes(), m, outcome),
            placement,
            array: S::array(device).map(|array| ArraySummary::new(array, outcome)),
            series: m
                .series()
                .map_or(Vec::new(), |s| series(s, &outcome.faults.progress)),
        }
    }
}

impl Count {
    fn new(op: &OpMetrics) -> Count {
        Count {
            requests: op.requests,
            bytes: op.bytes,
            pages: op.pages,
            refused: op.refused,
            failed: op.failed,
        }
    }
}

impl Latency {
    /// Computes the response times of the requests counted in `op`.
    pub fn new(op: &OpMetrics) -> Latency {
        let max_ns = op.response_max.to_ns();
        // A histogram returns the upper end of a bucket, so a percentile could exceed the longest response time. It is
        // limited to that time.
        let histogram = op.histogram_ns();
        let at = |share| histogram.value_at_quantile(share).min(max_ns) as f64 * 1e-3;
        Latency {
            requests: op.requests,
            mean_us: op.response_us_mean(),
            deviation_us: op.response_us_deviation(),
            variation: ratio(op.response_us_deviation(), op.response_us_mean()),
            p50_us: at(0.5),
            p75_us: at(0.75),
            p90_us: at(0.9),
            p95_us: at(0.95),
            p99_us: at(0.99),
            p995_us: at(0.995),
            p999_us: at(0.999),
            p9999_us: at(0.9999),
            max_us: op.response_max.as_us(),
            parts_us: op.parts_us_mean(),
        }
    }
}

impl Throughput {
    fn new(counts: &Counts, span: Time) -> Throughput {
        let per_s = |n: u64| ratio(n as f64, span.as_s());
        let (reads, writes) = (counts.reads, counts.writes);
        Throughput {
            iops: per_s(reads.requests + writes.requests),
            mb_per_s: per_s(reads.bytes + writes.bytes) * 1e-6,
            read_mb_per_s: per_s(reads.bytes) * 1e-6,
            write_mb_per_s: per_s(writes.bytes) * 1e-6,
        }
    }
}

impl Inside {
    fn new(m: &Metrics) -> Inside {
        let requests_mean = m.inside_mean();
        let little_requests_mean = ratio(m.response_ps_sum() as f64, m.span().0 as f64);
        Inside {
            requests_mean,
            little_requests_mean,
            little_error: ratio((little_requests_mean - requests_mean).abs(), requests_mean),
        }
    }
}

impl BufferReport {
    fn new(report: &FlashReport, limit: Option<(u32, Time)>) -> BufferReport {
        let counters = report.policy_counters.iter();
        BufferReport {
            evicted_clean_pages: report.evicted_clean,
            evicted_dirty_pages: report.evicted_dirty,
            evicted_dirty_in_gc_pages: report.evicted_dirty_in_gc,
            evictions: report.evictions,
            entries_inspected: report.entries_inspected,
            destages: report.destages,
            slot_waits: report.slot_waits,
            slot_wait_mean_us: ratio(
                report.slot_wait_total as f64 * 1e-6,
                report.slot_waits as f64,
            ),
            limit: limit.map(|(write_backs, waited)| BufferLimit {
                key: "buffer.background_depth",
                value: write_backs,
                time_share: ratio(waited.as_s(), report.span.as_s()),
            }),
            policy_counters: counters
                .map(|(name, count)| NamedCount {
                    name: name.clone(),
                    count: *count,
                })
                .collect(),
        }
    }
}

impl FlashSummary {
    pub(super) fn new(report: &FlashReport) -> FlashSummary {
        let share = |times: &[Time]| {
            let of_span = |t: &Time| ratio(t.as_s(), report.span.as_s());
            let mean = ratio(times.iter().map(of_span).sum::<f64>(), times.len() as f64);
            (mean, times.iter().map(of_span).fold(0.0, f64::max))
        };
        let (gc_share_mean, gc_share_max) = share(&report.gc_time);
        let (busy_share_mean, busy_share_max) = share(&report.busy_time);
        let op = |cause: Cause| NamedCount {
            name: cause.name().to_owned(),
            count: report.flash.count(cause),
        };
        FlashSummary {
            ops: Cause::ALL.into_iter().map(op).collect(),
            gc_write_amplification: report.gc_write_amplification(),
            pages_moved: report.flash.count(Cause::GcMove) + report.flash.count(Cause::MergeCopy),
            erases: report.flash.count(Cause::Erase),
            gc_actions: report.flash.gc_actions,
            ftl_counters: report
                .ftl_counters
                .iter()
                .map(|&(name, count)| NamedCount {
                    name: name.to_owned(),
                    count,
                })
                .collect(),
            gc_share_mean,
            gc_share_max,
            gc_time_ms_by_chip: report.gc_time.iter().map(|t| t.as_us() * 1e-3).collect(),
            busy_share_mean,
            busy_share_max,
            block_erases_min: report.erase_spread.min,
            block_erases_mean: report.erase_spread.mean,
            block_erases_max: report.erase_spread.max,
            block_erases_deviation: report.erase_spread.deviation,
            block_erases_counts: report.erase_counts.clone(),
        }
    }
}

impl PassesSummary {
    fn new(outcome: &Passes) -> PassesSummary {
        let purposes = outcome.by_purpose.iter();
        PassesSummary {
            passes: outcome.passes,
            drive_writes: outcome.drive_writes,
            is_level: outcome.missed.is_none(),
            device_write_amplification: outcome.device_write_amplification,
            device_write_amplification_half_width: outcome.half_width,
            programs_by_purpose: purposes
                .map(|&(name, write_amplification)| Purpose {
                    name,
                    write_amplification,
                })
                .collect(),
        }
    }
}

fn series(series: &Series, progress: &[RebuildPoint]) -> Vec<SeriesPoint> {
    let rebuilt = |interval: u64| {
        let at = progress.binary_search_by_key(&interval, |point| point.interval);
        at.ok().map(|at| progress[at].share)
    };
    let interval_s = series.interval().as_s();
    let us = |ps: u64| ps as f64 * 1e-6;
    let mean_us = |ps_sum: u64, count: u64| (count > 0).then(|| us(ps_sum) / count as f64);
    // Values that are computed from completed requests are `None` in an interval in which no request completed.
    let of_any = |p: &Point, value: f64| (p.reads + p.writes > 0).then_some(value);
    let point = |p: &Point| SeriesPoint {
        t_s: p.interval as f64 * interval_s,
        reads: p.reads,
        writes: p.writes,
        mb: p.bytes as f64 * 1e-6,
        read_mean_us: mean_us(p.read_ps_sum, p.reads),
        write_mean_us: mean_us(p.write_ps_sum, p.writes),
        max_us: of_any(p, p.response_max.as_us()),
        hit_ratio: of_any(p, ratio(p.hits as f64, p.pages as f64)),
        gc_wait_share: of_any(
            p,
            ratio(
                us(p.queue_gc_ps_sum),
                us(p.read_ps_sum) + us(p.write_ps_sum),
            ),
        ),
        rebuilt_share: rebuilt(p.interval),
    };
    series.points().iter().map(point).collect()
}
