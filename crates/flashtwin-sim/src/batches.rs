//! Sums over batches of consecutive requests. The number of a request determines its batch, so a batch contains the
//! same requests under every policy. A comparison of two runs can therefore pair their batches.
//!
//! At first, each batch has one request. When there are too many batches, adjacent batches are merged in pairs. The
//! flash work of a batch is counted from the submission of its first request to the submission of the first request of
//! the next batch.

use flashtwin::metrics::FlashReport;
use flashtwin::{Breakdown, Cause, Completion, Op, Status};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::history::{bucket, percentile_us, BUCKETS};

/// Number of batches in results.
const BATCHES: usize = 10;
/// Largest number of batches during a run. [`Batches::halve`] keeps at least four times as many batches as the results
/// have ([`BATCHES`]), so that the batches of the results have similar lengths.
const KEPT_MAX: usize = 8 * BATCHES;

/// The percentile of a batch is reported if at least this many requests are expected above it. The expected number is
/// the size of the batch times the fraction of requests above the percentile.
const BEYOND_MIN: f64 = 1.0;

/// Batches collected during a run.
#[derive(Clone, Debug)]
pub(crate) struct Batches {
    /// Requests per batch, including those that are neither reads nor writes.
    length: u64,
    batches: Vec<Sums>,
}

/// Counters of the flash since the start of the measurement.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    /// Pages programmed, including parity, metadata and summaries. `programs` excludes these three; `host_programs`
    /// counts only the pages programmed for the host.
    media_pages: u64,
    programs: u64,
    host_programs: u64,
    pages_moved: u64,
    erases: u64,
    gc_ps: u128,
    span_ps: u64,
}

impl Work {
    fn new(report: &FlashReport) -> Work {
        Work {
            media_pages: report.media_pages(),
            programs: report.programs() - report.flash.count(Cause::Summary),
            host_programs: report.flash.host_programs(),
            pages_moved: report.flash.count(Cause::GcMove) + report.flash.count(Cause::MergeCopy),
            erases: report.flash.count(Cause::Erase),
            gc_ps: report.gc_time.iter().map(|time| u128::from(time.0)).sum(),
            span_ps: report.span.0,
        }
    }

    /// Returns the increase of the counters since `before`, at least 0. Counters of an array decrease when a member
    /// fails, because its report excludes failed members.
    fn since(self, before: Work) -> Work {
        Work {
            media_pages: self.media_pages.saturating_sub(before.media_pages),
            programs: self.programs.saturating_sub(before.programs),
            host_programs: self.host_programs.saturating_sub(before.host_programs),
            pages_moved: self.pages_moved.saturating_sub(before.pages_moved),
            erases: self.erases.saturating_sub(before.erases),
            gc_ps: self.gc_ps.saturating_sub(before.gc_ps),
            span_ps: self.span_ps.saturating_sub(before.span_ps),
        }
    }
}

#[derive(Clone, Debug)]
struct Sums {
    /// Counters of the flash when the first request of the batch was submitted.
    start: Work,
    reads: u64,
    writes: u64,
    read_ps: u128,
    write_ps: u128,
    parts_ps: [u128; Breakdown::NAMES.len()],
    pages: u64,
    hits: u64,
    buckets: Box<[u32; BUCKETS]>,
}

impl Sums {
    fn new(start: Work) -> Sums {
        Sums {
            start,
            reads: 0,
            writes: 0,
            read_ps: 0,
            write_ps: 0,
            parts_ps: [0; Breakdown::NAMES.len()],
            pages: 0,
            hits: 0,
            buckets: Box::new([0; BUCKETS]),
        }
    }

    fn add(&mut self, other: &Sums) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_ps += other.read_ps;
        self.write_ps += other.write_ps;
        for (sum, ps) in self.parts_ps.iter_mut().zip(other.parts_ps) {
            *sum += ps;
        }
        self.pages += other.pages;
        self.hits += other.hits;
        for (sum, n) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *sum = sum.saturating_add(*n);
        }
    }
}

impl Batches {
    pub fn new() -> Batches {
        Batches {
            length: 1,
            batches: Vec::new(),
        }
    }

    /// Whether the request with this number begins a batch.
    #[inline]
    pub fn wants_start(&self, number: u64) -> bool {
        number / self.length >= self.batches.len() as u64
    }

    /// Begins a batch if the request with this number, which is about to be submitted, is the first request of a batch.
    #[cold]
    pub fn start(&mut self, number: u64, report: &FlashReport) {
        while number / self.length >= KEPT_MAX as u64 {
            self.halve();
        }
        let work = Work::new(report);
        let count = (number / self.length) as usize + 1;
        if count > self.batches.len() {
            self.batches.resize_with(count, || Sums::new(work));
        }
    }

    /// Records a completed read or write. The tag of the completion is the request's number in the workload.
    pub fn record(&mut self, c: &Completion) {
        if !matches!(c.op, Op::Read | Op::Write) || c.status != Status::Ok {
            return;
        }
        let sums = &mut self.batches[(c.tag / self.length) as usize];
        let response = c.done - c.arrival;
        let (count, ps) = match c.op {
            Op::Read => (&mut sums.reads, &mut sums.read_ps),
            _ => (&mut sums.writes, &mut sums.write_ps),
        };
        *count += 1;
        *ps += u128::from(response.0);
        for (sum, part) in sums.parts_ps.iter_mut().zip(c.breakdown.parts()) {
            *sum += u128::from(part.0);
        }
        sums.pages += u64::from(c.pages);
        sums.hits += u64::from(c.hits);
        sums.buckets[bucket(response.to_ns())] += 1;
    }

    /// Merges each pair of adjacent batches.
    #[cold]
    fn halve(&mut self) {
        self.length *= 2;
        let pairs = self.batches.chunks(2).map(|pair| {
            let mut sums = pair[0].clone();
            pair[1..].iter().for_each(|other| sums.add(other));
            sums
        });
        self.batches = pairs.collect();
    }

    /// Returns the ten batches of the results, or none if the run has fewer than ten batches. Batches before the first
    /// read or write are dropped. `end` has the counters of the flash at the end of the run.
    pub fn points(&self, end: &FlashReport) -> Vec<RequestBatch> {
        let first = self
            .batches
            .iter()
            .position(|sums| sums.reads + sums.writes > 0);
        let kept = &self.batches[first.unwrap_or(self.batches.len())..];
        let n = kept.len();
        if n < BATCHES {
            return Vec::new();
        }
        let end = Work::new(end);
        let cut = |i: usize| {
            let (from, to) = (n * i / BATCHES, n * (i + 1) / BATCHES);
            let mut sums = kept[from].clone();
            kept[from + 1..to].iter().for_each(|other| sums.add(other));
            let after = kept.get(to).map_or(end, |next| next.start);
            RequestBatch::new(&sums, after.since(sums.start))
        };
        (0..BATCHES).map(cut).collect()
    }
}

/// Sums over consecutive requests of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestBatch {
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Response times of the reads.
    pub read_us: f64,
    /// Response times of the writes.
    pub write_us: f64,
    /// Parts of the response times, by name.
    pub parts_us: BTreeMap<&'static str, f64>,
    /// Pages accessed.
    pub pages: u64,
    /// Pages found in the buffer.
    pub hits: u64,
    /// Pages programmed, with the drive's parity and metadata.
    pub media_pages: u64,
    /// Pages programmed, without parity, metadata and summaries.
    pub programs: u64,
    /// Pages programmed for the host.
    pub host_programs: u64,
    /// Pages moved by collection and merges.
    pub pages_moved: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Time in GC, all chips together.
    pub gc_us: f64,
    /// Virtual time of the batch.
    pub span_us: f64,
    /// 99th percentile of the response times. The value is at most 7 % too high. `None` if fewer than one request is
    /// expected above the percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile of the response times, like `p99_us`.
    pub p999_us: Option<f64>,
    /// 99.99th percentile of the response times, like `p99_us`.
    pub p9999_us: Option<f64>,
}

impl RequestBatch {
    fn new(sums: &Sums, work: Work) -> RequestBatch {
        let us = |ps: u128| ps as f64 * 1e-6;
        let parts = sums.parts_ps.map(us);
        let requests = (sums.reads + sums.writes) as f64;
        let percentile = |share: f64| {
            let known = requests * (1.0 - share) >= BEYOND_MIN - 1e-6;
            known.then(|| percentile_us(&sums.buckets, share))
        };
        RequestBatch {
            reads: sums.reads,
            writes: sums.writes,
            read_us: us(sums.read_ps),
            write_us: us(sums.write_ps),
            parts_us: Breakdown::NAMES.into_iter().zip(parts).collect(),
            pages: sums.pages,
            hits: sums.hits,
            media_pages: work.media_pages,
            programs: work.programs,
            host_programs: work.host_programs,
            pages_moved: work.pages_moved,
            erases: work.erases,
            gc_us: us(work.gc_ps),
            span_us: us(work.span_ps.into()),
            p99_us: percentile(0.99),
            p999_us: percentile(0.999),
            p9999_us: percentile(0.9999),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashtwin::Time;

    fn completion(tag: u64) -> Completion {
        Completion {
            tag,
            op: if tag.is_multiple_of(3) {
                Op::Read
            } else {
                Op::Write
            },
            status: Status::Ok,
            offset: 0,
            bytes: 4096,
            pages: 2,
            hits: 1,
            arrival: Time(tag * 1_000_000),
            done: Time(tag * 1_000_000 + (1 + tag % 7) * 1_000_000),
            breakdown: Breakdown::default(),
        }
    }

    #[test]
    fn batches_are_of_the_same_requests_in_any_order_of_completion() {
        for seed in flashtwin::seeds(3) {
            let mut rng = flashtwin::Rng::new(seed);
            let count = 10 + rng.below(5000);
            let mut tags: Vec<u64> = (0..count).collect();
            let of = |tags: &[u64]| {
                let mut batches = Batches::new();
                (0..count).for_each(|tag| batches.start(tag, &report(tag)));
                tags.iter()
                    .for_each(|&tag| batches.record(&completion(tag)));
                batches.points(&report(count))
            };
            let points = of(&tags);
            // Each completes somewhat earlier or later.
            tags.sort_by_cached_key(|&tag| tag + rng.below(50));
            assert_eq!(points, of(&tags));
            assert_eq!(points.len(), BATCHES);
            let requests: Vec<u64> = points.iter().map(|p| p.reads + p.writes).collect();
            assert_eq!(requests.iter().sum::<u64>(), count);
            let (least, most) = (requests.iter().min(), requests.iter().max());
            assert!(most.unwrap() <= &(2 * least.unwrap()), "{requests:?}");
            let us: f64 = points.iter().map(|p| p.read_us + p.write_us).sum();
            let wanted: u64 = (0..count).map(|tag| 1 + tag % 7).sum();
            assert_eq!(us.round() as u64, wanted);
            assert!(points.iter().all(|p| p.hits * 2 == p.pages));
            let sum = |value: fn(&RequestBatch) -> u64| points.iter().map(value).sum::<u64>();
            assert_eq!(sum(|p| p.erases), count * count);
            assert_eq!(sum(|p| p.media_pages), 7 * count);
            // A point counts the erases from its first request to the first request of the next point.
            let mut number = 0;
            for p in &points {
                let next = number + p.reads + p.writes;
                assert_eq!(p.erases, next * next - number * number);
                number = next;
            }
        }
    }

    /// Returns the counters of the flash before the request with this number. The number of erases is the square of the
    /// request's number.
    fn report(number: u64) -> FlashReport {
        let mut report = FlashReport::default();
        report.flash.ops[Cause::Erase as usize] = number * number;
        report.overhead_pages = 7 * number;
        report
    }

    #[test]
    fn batches_after_a_warm_up_begin_with_its_end() {
        let mut batches = Batches::new();
        let since = |number: u64| report(number - 1000);
        (1000..9000).for_each(|tag| {
            batches.start(tag, &since(tag));
            batches.record(&completion(tag));
        });
        let points = batches.points(&since(9000));
        let erases: u64 = points.iter().map(|p| p.erases).sum();
        assert_eq!((points.len(), erases), (BATCHES, 8000 * 8000));
    }

    #[test]
    fn few_requests_make_no_batches_and_no_far_percentiles() {
        let mut batches = Batches::new();
        let complete = |batches: &mut Batches, tag| {
            batches.start(tag, &FlashReport::default());
            batches.record(&completion(tag));
        };
        (500..509).for_each(|tag| complete(&mut batches, tag));
        assert_eq!(batches.points(&FlashReport::default()), []);
        let mut batches = Batches::new();
        (0..2560).for_each(|tag| complete(&mut batches, tag));
        let points = batches.points(&FlashReport::default());
        assert!(points
            .iter()
            .all(|p| p.p99_us.is_some() && p.p999_us.is_none()));
    }
}
