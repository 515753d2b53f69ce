//! History of a run: counts for consecutive windows of virtual time. The number of windows is bounded for runs of any
//! length.
//!
//! Windows are short at first. When there are too many windows, adjacent ones are merged in pairs, and new windows have
//! twice the length. A duration that spans several windows is divided exactly among them.

use flashtwin::metrics::FlashReport;
use flashtwin::placement::{OwnerReport, PlacementReport};
use flashtwin::{Cause, Completion, Op, Status, Time};
use serde::Serialize;

use crate::batches::{Batches, RequestBatch};

/// Maximum number of windows.
const WINDOWS_MAX: usize = 256;
/// Initial length of a window.
const FIRST: Time = Time(10_000_000_000);
/// Number of buckets of the histogram of response times in a window: 16 per factor of two, from 1 ns to over an hour.
pub(crate) const BUCKETS: usize = 640;

/// Counts collected during a run.
#[derive(Clone, Debug)]
pub struct History {
    start: Time,
    window: Time,
    windows: Vec<Window>,
    /// Time at which the flash counters were last sampled. `programs` and `gc` are the counters at that time.
    sampled: Time,
    programs: [u64; 2],
    gc: Vec<Time>,
    /// Owners of units (see `docs/placement.md`) at the last sample. Empty if the device does not write by units.
    owners: Vec<OwnerPoint>,
    batches: Batches,
}

#[derive(Clone, Debug)]
struct Window {
    reads: u64,
    writes: u64,
    bytes: u64,
    pages: u64,
    hits: u64,
    response_ps: u128,
    /// Number of requests in the device, integrated over the time of the window (requests times picoseconds).
    inside_ps: u128,
    /// Number of responses by response time.
    buckets: Box<[u32; BUCKETS]>,
    /// Two counts of pages programmed: those programmed for the host, and all.
    programs: [u64; 2],
    /// Time in GC, chip by chip.
    gc_ps: Vec<u64>,
    owners: Vec<OwnerPoint>,
}

impl Window {
    fn new() -> Window {
        Window {
            reads: 0,
            writes: 0,
            bytes: 0,
            pages: 0,
            hits: 0,
            response_ps: 0,
            inside_ps: 0,
            buckets: Box::new([0; BUCKETS]),
            programs: [0; 2],
            gc_ps: Vec::new(),
            owners: Vec::new(),
        }
    }

    fn add(&mut self, other: &Window) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.bytes += other.bytes;
        self.pages += other.pages;
        self.hits += other.hits;
        self.response_ps += other.response_ps;
        self.inside_ps += other.inside_ps;
        for (sum, n) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *sum = sum.saturating_add(*n);
        }
        for (sum, n) in self.programs.iter_mut().zip(other.programs) {
            *sum += n;
        }
        if self.gc_ps.len() < other.gc_ps.len() {
            self.gc_ps.resize(other.gc_ps.len(), 0);
        }
        for (sum, ps) in self.gc_ps.iter_mut().zip(&other.gc_ps) {
            *sum += ps;
        }
        self.add_owners(&other.owners);
    }

    /// Adds the counts of owners in a later part of the window. Counts of pages are summed. The numbers of live pages
    /// and of held units are those of the later part.
    fn add_owners(&mut self, later: &[OwnerPoint]) {
        for of in later {
            match self.owners.iter_mut().find(|own| own.name == of.name) {
                None => self.owners.push(of.clone()),
                Some(own) => {
                    *own = OwnerPoint {
                        host_pages: own.host_pages + of.host_pages,
                        moved_in_pages: own.moved_in_pages + of.moved_in_pages,
                        moved_out_pages: own.moved_out_pages + of.moved_out_pages,
                        ..of.clone()
                    }
                }
            }
        }
    }
}

/// Returns the quantile `share` of the response times in µs. The result is the upper end of the histogram bucket that
/// contains the quantile.
pub(crate) fn percentile_us(buckets: &[u32; BUCKETS], share: f64) -> f64 {
    let total: u64 = buckets.iter().map(|&n| u64::from(n)).sum();
    let rank = (share * total as f64).ceil().max(1.0) as u64;
    let mut seen = 0;
    for (i, &n) in buckets.iter().enumerate() {
        seen += u64::from(n);
        if seen >= rank {
            return bucket_end_ns(i) as f64 * 1e-3;
        }
    }
    0.0
}

pub(crate) fn bucket(ns: u64) -> usize {
    if ns < 16 {
        return ns as usize;
    }
    let octave = 63 - ns.leading_zeros() as usize;
    let within = (ns >> (octave - 4)) as usize & 15;
    ((octave - 3) * 16 + within).min(BUCKETS - 1)
}

fn bucket_end_ns(index: usize) -> u64 {
    if index < 16 {
        return index as u64;
    }
    let (octave, within) = (index / 16 + 3, index as u64 % 16);
    ((16 + within + 1) << (octave - 4)) - 1
}

impl History {
    /// Creates an empty history that begins at `start`. `placed` has the device's placement counts at that time.
    pub(crate) fn new(start: Time, placed: Option<&PlacementReport>) -> History {
        History {
            start,
            window: FIRST,
            windows: Vec::new(),
            sampled: start,
            programs: [0; 2],
            gc: Vec::new(),
            owners: placed.map(owners).unwrap_or_default(),
            batches: Batches::new(),
        }
    }

    /// Whether the flash counters must be sampled: their last sample is at least as old as a window is long.
    #[inline]
    pub(crate) fn wants_sample(&self, now: Time) -> bool {
        now >= self.sampled + self.window
    }

    /// Called before a request is submitted. Samples the counters of the flash if the request's number begins a batch.
    #[inline]
    pub(crate) fn submitting(&mut self, number: u64, report: impl FnOnce() -> FlashReport) {
        if self.batches.wants_start(number) {
            self.batches.start(number, &report());
        }
    }

    /// Returns the index of the window that contains `time`. Creates windows up to it, and merges adjacent windows if
    /// there are too many.
    fn at(&mut self, time: Time) -> usize {
        loop {
            let index = (time.0.saturating_sub(self.start.0) / self.window.0) as usize;
            if index < WINDOWS_MAX {
                if index >= self.windows.len() {
                    self.windows.resize_with(index + 1, Window::new);
                }
                return index;
            }
            let (mut to, mut from) = (0, 0);
            while from < self.windows.len() {
                self.windows.swap(to, from);
                if from + 1 < self.windows.len() {
                    let (left, right) = self.windows.split_at_mut(from + 1);
                    left[to].add(&right[0]);
                }
                to += 1;
                from += 2;
            }
            self.windows.truncate(to);
            self.window = Time(self.window.0 * 2);
        }
    }

    /// Takes a read or write that completed.
    pub(crate) fn record(&mut self, c: &Completion) {
        if !matches!(c.op, Op::Read | Op::Write) {
            return;
        }
        self.batches.record(c);
        let index = self.at(c.done);
        let response = c.done - c.arrival;
        if c.status == Status::Ok {
            let w = &mut self.windows[index];
            match c.op {
                Op::Read => w.reads += 1,
                _ => w.writes += 1,
            }
            w.bytes += c.bytes;
            w.pages += c.pages as u64;
            w.hits += c.hits as u64;
            w.response_ps += response.0 as u128;
            w.buckets[bucket(response.to_ns())] += 1;
        }
        self.share_out(c.arrival.max(self.start), c.done, |w, ps, _| {
            w.inside_ps += ps as u128
        });
    }

    /// Calls `give` for each window that overlaps the span from `from` to `to`. `give` receives the window, the length
    /// of the overlap, and the length of the span.
    fn share_out(&mut self, from: Time, to: Time, mut give: impl FnMut(&mut Window, u64, u64)) {
        let (last, whole) = (self.at(to), (to - from).0);
        let first = self.at(from);
        for index in first..=last {
            let begins = self.start.0 + index as u64 * self.window.0;
            let ends = begins + self.window.0;
            let inside = ends.min(to.0).saturating_sub(begins.max(from.0));
            give(&mut self.windows[index], inside, whole);
        }
    }

    /// Samples the counters of the flash, and distributes the work since the last sample over the windows.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        report: &FlashReport,
        placed: Option<&PlacementReport>,
    ) {
        if let Some(placed) = placed {
            self.sample_owners(now, owners(placed));
        }
        let host = report.flash.host_programs();
        let all = report.programs() - report.flash.count(Cause::Summary);
        let index = self.at(now);
        for (kind, count) in [host, all].into_iter().enumerate() {
            // The counts of an array decrease when a member fails, because its report excludes failed members.
            self.windows[index].programs[kind] += count.saturating_sub(self.programs[kind]);
        }
        self.programs = [host, all];
        let mut before = std::mem::replace(&mut self.gc, report.gc_time.clone());
        before.resize(report.gc_time.len(), Time::ZERO);
        let spent: Vec<u64> = std::iter::zip(&report.gc_time, &before)
            .map(|(now, before)| now.0.saturating_sub(before.0))
            .collect();
        let sampled = std::mem::replace(&mut self.sampled, now);
        self.share_out(sampled, now, |w, ps, whole| {
            if whole == 0 {
                return;
            }
            w.gc_ps.resize(spent.len(), 0);
            for (sum, &gc) in w.gc_ps.iter_mut().zip(&spent) {
                *sum += (gc as u128 * ps as u128 / whole as u128) as u64;
            }
        });
    }

    fn sample_owners(&mut self, now: Time, all: Vec<OwnerPoint>) {
        let before = std::mem::replace(&mut self.owners, all);
        let spent: Vec<OwnerPoint> = (self.owners.iter())
            .map(|now| match before.iter().find(|old| old.name == now.name) {
                None => now.clone(),
                Some(old) => OwnerPoint {
                    host_pages: now.host_pages - old.host_pages,
                    moved_in_pages: now.moved_in_pages - old.moved_in_pages,
                    moved_out_pages: now.moved_out_pages - old.moved_out_pages,
                    ..now.clone()
                },
            })
            .collect();
        let index = self.at(now);
        self.windows[index].add_owners(&spent);
    }

    /// Returns the recorded history, up to `end`, in the form of the results. `report` has the counters of the flash at
    /// `end`.
    pub fn recorded(&self, end: Time, report: &FlashReport) -> RecordedHistory {
        RecordedHistory {
            windows: self.points(end),
            batches: self.batches.points(report),
        }
    }

    fn points(&self, end: Time) -> Vec<HistoryPoint> {
        let point = |(i, w): (usize, &Window)| {
            let begins = self.start + self.window * i as u64;
            let length = self.window.0.min(end.0.saturating_sub(begins.0)).max(1);
            let s = length as f64 * 1e-12;
            let requests = w.reads + w.writes;
            let mean_us = w.response_ps as f64 / requests.max(1) as f64 * 1e-6;
            let [host, all] = w.programs;
            HistoryPoint {
                t_s: (begins - self.start).as_s(),
                length_s: s,
                iops: requests as f64 / s,
                mb_per_s: w.bytes as f64 * 1e-6 / s,
                mean_us: (requests > 0).then_some(mean_us),
                p99_us: (requests > 0).then(|| percentile_us(&w.buckets, 0.99)),
                hit_ratio: (w.pages > 0).then(|| w.hits as f64 / w.pages as f64),
                inside_mean: w.inside_ps as f64 / length as f64,
                gc_write_amplification: (host > 0).then(|| all as f64 / host as f64),
                gc_share_by_chip: w.gc_ps.iter().map(|&ps| share(ps, length)).collect(),
                owners: w.owners.clone(),
            }
        };
        self.windows.iter().enumerate().map(point).collect()
    }
}

fn owners(report: &PlacementReport) -> Vec<OwnerPoint> {
    let point = |owner: &OwnerReport| OwnerPoint {
        name: owner.name.clone(),
        live_pages: owner.live,
        units: owner.units,
        host_pages: owner.counts.host_pages,
        moved_in_pages: owner.counts.moved_in,
        moved_out_pages: owner.counts.moved_out,
    };
    report.owners.iter().map(point).collect()
}

/// Returns `ps / length`, rounded to four digits. More digits would not be visible in a plot and would lengthen the
/// text.
fn share(ps: u64, length: u64) -> f64 {
    (ps as f64 / length as f64 * 1e4).round() * 1e-4
}

/// The history of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordedHistory {
    /// Windows of virtual time.
    pub windows: Vec<HistoryPoint>,
    /// Ten batches of consecutive requests; none if there were too few requests.
    pub batches: Vec<RequestBatch>,
}

/// One window of a run's history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryPoint {
    /// Start of the window, in seconds since the start of the measurement.
    pub t_s: f64,
    /// Length of the window.
    pub length_s: f64,
    /// Reads and writes completed a second.
    pub iops: f64,
    /// Megabytes read and written a second.
    pub mb_per_s: f64,
    /// Mean response time of the requests that completed in the window; `None` if there are none.
    pub mean_us: Option<f64>,
    /// 99th percentile of the response times. The value is at most 7 % too high.
    pub p99_us: Option<f64>,
    /// Fraction of page accesses served by the buffer, over the requests that completed in the window.
    pub hit_ratio: Option<f64>,
    /// Mean number of reads and writes in flight. Requests that never complete are not counted.
    pub inside_mean: f64,
    /// Pages programmed per page programmed for the host; `None` if no page was programmed for the host.
    pub gc_write_amplification: Option<f64>,
    /// For each chip, the share of the window in garbage collection.
    pub gc_share_by_chip: Vec<f64>,
    /// Counts of the owners of units (see `docs/placement.md`), on devices that write by units. Empty if the flash
    /// counters were not sampled in the window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<OwnerPoint>,
}

/// An owner of units in a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerPoint {
    /// Name, such as `h0`, `g0` or `s`.
    pub name: String,
    /// Live pages at the end.
    pub live_pages: u64,
    /// Units held at the end.
    pub units: u32,
    /// Pages of the host programmed in the window.
    pub host_pages: u64,
    /// Valid pages that GC moved into units of this owner in the window.
    pub moved_in_pages: u64,
    /// Valid pages that GC moved out of units of this owner in the window.
    pub moved_out_pages: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashtwin::placement::{OwnerCounts, LIFESPAN_BINS, LIVE_BINS};
    use flashtwin::Breakdown;

    fn completion(arrival_us: u64, done_us: u64) -> Completion {
        Completion {
            tag: 0,
            op: Op::Write,
            status: flashtwin::Status::Ok,
            offset: 0,
            bytes: 4096,
            pages: 1,
            hits: 1,
            arrival: Time(arrival_us * 1_000_000),
            done: Time(done_us * 1_000_000),
            breakdown: Breakdown::default(),
        }
    }

    #[test]
    fn buckets_cover_all_lengths_in_order() {
        let mut last = 0;
        for ns in (0..4000).chain((12..42).map(|power| 1 << power)) {
            let index = bucket(ns);
            assert!(index >= last && index < BUCKETS, "{ns}");
            assert!(bucket_end_ns(index) >= ns, "{ns}");
            assert!(
                bucket_end_ns(index) as f64 <= ns as f64 * 1.0667 + 1.0,
                "{ns}"
            );
            last = index;
        }
    }

    #[test]
    fn windows_stay_few_and_lose_nothing() {
        let mut history = History::new(Time::ZERO, None);
        let mut inside_us = 0;
        for i in 0..50_000_u64 {
            let c = completion(i * 1000, i * 1000 + 300 + i % 7 * 40_000);
            inside_us += 300 + i % 7 * 40_000;
            history.submitting(c.tag, FlashReport::default);
            history.record(&c);
        }
        assert!(history.windows.len() <= WINDOWS_MAX);
        assert!(history.windows.len() > WINDOWS_MAX / 2 - 1);
        let count: u64 = history.windows.iter().map(|w| w.writes).sum();
        assert_eq!(count, 50_000);
        let inside: u128 = history.windows.iter().map(|w| w.inside_ps).sum();
        assert_eq!(inside, inside_us as u128 * 1_000_000);
        let in_buckets: u64 = history
            .windows
            .iter()
            .flat_map(|w| w.buckets.iter())
            .map(|&n| u64::from(n))
            .sum();
        assert_eq!(in_buckets, 50_000);
    }

    fn placed(host_pages: u64, moved_in: u64, live: u64, units: u32) -> PlacementReport {
        let counts = OwnerCounts {
            host_pages,
            moved_in,
            moved_out: 0,
            erases: 0,
            live_at_collection: [0; LIVE_BINS],
            lifespans: [0; LIFESPAN_BINS],
        };
        PlacementReport {
            owners: vec![OwnerReport {
                name: "h0".into(),
                class: Some(0),
                of_host: true,
                counts,
                live,
                units,
            }],
            caused: Vec::new(),
            host_pages,
            moves: moved_in,
            erases: 0,
            accepted: Vec::new(),
            crossed: 0,
            redirected: 0,
            scope_fallbacks: 0,
        }
    }

    #[test]
    fn owners_keep_their_counts_when_windows_are_merged() {
        let mut history = History::new(Time::ZERO, Some(&placed(100, 10, 5, 1)));
        let flash = FlashReport::default();
        for i in 1..=1000 {
            let report = placed(100 + 3 * i, 10 + i, i, i as u32);
            history.sample(Time(i * 10_000_000_000), &flash, Some(&report));
        }
        let points = history.points(Time(10_000_000_000_000));
        assert!(points.len() <= WINDOWS_MAX);
        let owners = || points.iter().flat_map(|point| &point.owners);
        assert_eq!(owners().map(|owner| owner.host_pages).sum::<u64>(), 3000);
        assert_eq!(
            owners().map(|owner| owner.moved_in_pages).sum::<u64>(),
            1000
        );
        let last = owners().last().unwrap();
        assert_eq!((last.live_pages, last.units), (1000, 1000));
        let live: Vec<u64> = owners().map(|owner| owner.live_pages).collect();
        assert!(live.is_sorted());
    }

    #[test]
    fn time_in_gc_is_shared_out_over_the_windows_it_lasted_in() {
        let mut history = History::new(Time::ZERO, None);
        let report = FlashReport {
            gc_time: vec![Time(30_000_000_000), Time::ZERO],
            ..FlashReport::default()
        };
        history.sample(Time(40_000_000_000), &report, None);
        let points = history.points(Time(40_000_000_000));
        let shares: Vec<f64> = points
            .iter()
            .take(4)
            .map(|p| p.gc_share_by_chip[0])
            .collect();
        assert_eq!(shares, [0.75; 4]);
        assert_eq!(points[0].gc_share_by_chip[1], 0.0);
    }
}
