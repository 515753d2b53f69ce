//! Runs without time: a load is written to a device that writes by units (blocks that are erased together), and the
//! timing of the flash is not simulated. Such runs are fast enough to measure write amplification at the full size of a
//! device.
//!
//! First the device is filled. Then the load is written until write amplification is level (the warm-up). Finally the
//! load is written for a given multiple of the device's capacity. Only these last writes are measured. Reads are
//! skipped. A write counts all pages that it touches, even those that it touches only in part.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering;

use flashtwin::placement::{NoRoom, Placed, PlacementReport, NEVER};
use flashtwin::{Lpn, Op, Request};
use flashtwin_workload::{Workload, WorkloadError};

use crate::control::Control;

/// Longest warm-up, in writes of the device's capacity. At this length, the warm-up ends even if write amplification is
/// not level.
pub const WARM_MOST: u32 = 20;
/// Write amplification is level if its means over the last two capacities and over the two capacities before them
/// differ by less than this fraction. A comparison of single capacities would not suffice: their difference may be
/// small by chance while write amplification still rises.
const LEVEL: f64 = 0.01;
/// Distance of the prefetch, in requests. The state of the unit with the old copy of a page is prefetched this many
/// requests before the page is written, and the map entry of the page twice as many.
const AHEAD: usize = 16;
/// A load counts as ended after this number of consecutive requests without a write. An endless load may consist only
/// of reads.
const IDLE_REQUESTS_MAX: u64 = 1 << 26;
/// Largest number of written pages that are read in advance, for schemes that need to know when a page is written next.
/// At this number, the requests take about 5 GB of memory.
const AHEAD_PAGES_MAX: u64 = 1 << 27;

/// Writes before the measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warm {
    /// The load is written in steps of the device's capacity until write amplification is level, for at most
    /// [`WARM_MOST`] steps. It is level if the means over the last two steps and over the two steps before them differ
    /// by less than 1 %.
    UntilLevel,
    /// The load is written until a fixed multiple of the device's capacity has been written.
    Capacities(f64),
}

/// Plan of a run without time: length of the warm-up and of the measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UntimedPlan {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Writes before the measurement.
    pub warm: Warm,
    /// Length of the measurement, in writes of the device's capacity. A load that ends earlier is measured to its end.
    pub capacities: f64,
    /// Number of reports per capacity written. More reports give finer curves over time.
    pub points: u32,
}

impl UntimedPlan {
    /// Returns the largest number of pages that the host writes in a run on a device of `pages` pages, including the
    /// fill.
    fn pages_most(&self, pages: u64) -> u64 {
        let warm = match self.warm {
            Warm::UntilLevel => f64::from(WARM_MOST),
            Warm::Capacities(n) => n,
        };
        pages + ((warm + self.capacities) * pages as f64) as u64
    }
}

/// The reports of a run. Each report has the counts since the device was created.
#[derive(Clone, Debug)]
pub struct Untimed {
    /// Length of the warm-up (the writes after the fill), in writes of the device's capacity.
    pub warm: f64,
    /// Whether write amplification was level at the end of the warm-up; `None` if the warm-up had a fixed length.
    pub level: Option<bool>,
    /// Measured writes, in capacities of the device.
    pub capacities: f64,
    /// Reports in order of time. The first is that at the end of the fill.
    pub series: Vec<PlacementReport>,
    /// The report at the beginning of the measurement.
    pub before: PlacementReport,
    /// The report at the end of the measurement.
    pub after: PlacementReport,
}

/// Reason for which a run ended early.
#[derive(Debug)]
pub enum UntimedError {
    /// A page finds no room.
    NoRoom(NoRoom),
    /// The load cannot be read.
    Workload(WorkloadError),
    /// A request is beyond the device.
    OutOfRange {
        /// First byte of the request.
        offset: u64,
        /// Bytes of the request.
        bytes: u64,
        /// Bytes of the device.
        device_bytes: u64,
    },
    /// The load ended before the measurement began.
    TooShort {
        /// Length of the load, in writes of the device's capacity.
        capacities: f64,
    },
    /// The scheme needs to know the next writes of more pages than may be read in advance.
    TooLong {
        /// Number of pages that the load would write.
        pages: u64,
    },
    /// The run was stopped.
    Stopped,
}

impl fmt::Display for UntimedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UntimedError::NoRoom(e) => e.fmt(f),
            UntimedError::Workload(e) => e.fmt(f),
            UntimedError::OutOfRange {
                offset,
                bytes,
                device_bytes,
            } => write!(
                f,
                "a request of {bytes} bytes at {offset} is beyond the device, which has {device_bytes} bytes: choose a \
                 larger device, or wrap the addresses"
            ),
            UntimedError::TooShort { capacities } => write!(
                f,
                "the load ended after {capacities:.2} capacities, before write amplification could be measured: repeat it, \
                 or set the warm-up to fewer capacities"
            ),
            UntimedError::TooLong { pages } => write!(
                f,
                "the scheme needs to know {pages} pages in advance; at most {AHEAD_PAGES_MAX} are read: use a smaller scale, \
                 or fewer capacities"
            ),
            UntimedError::Stopped => f.write_str("the run was stopped"),
        }
    }
}

impl std::error::Error for UntimedError {}

impl From<NoRoom> for UntimedError {
    fn from(e: NoRoom) -> UntimedError {
        UntimedError::NoRoom(e)
    }
}

impl From<WorkloadError> for UntimedError {
    fn from(e: WorkloadError) -> UntimedError {
        UntimedError::Workload(e)
    }
}

/// Fills a device with `fill`, and then runs the warm-up and the measurement with `load`.
///
/// # Errors
/// Fails for the reasons listed in [`UntimedError`].
pub fn run_untimed(
    device: &mut Placed,
    fill: &mut dyn Workload,
    load: &mut dyn Workload,
    plan: &UntimedPlan,
    control: &Control,
) -> Result<Untimed, UntimedError> {
    let pages = u64::from(device.setup().logical_pages);
    control
        .total
        .store(plan.pages_most(pages), Ordering::Relaxed);
    Feed::new(fill, plan.page_bytes).write(device, u64::MAX, control)?;
    let mut feed = Feed::new(load, plan.page_bytes);
    if device.needs().future {
        let first = device.totals().host;
        let most_pages = plan.pages_most(pages) - pages;
        feed.look_ahead(most_pages, first, pages * u64::from(plan.page_bytes))?;
    }
    let mut run = Run {
        series: vec![device.report()],
        device,
        feed,
        plan,
        control,
    };
    let (warm, level) = run.warm()?;
    let before = run.report();
    let capacities = run.write(plan.capacities)?;
    if capacities == 0.0 {
        return Err(UntimedError::TooShort { capacities: warm });
    }
    let after = run.report();
    Ok(Untimed {
        warm,
        level,
        capacities,
        series: run.series,
        before,
        after,
    })
}

/// Fills a device with `fill`, then writes `load` as `warm` specifies: until write amplification is level, or for a
/// fixed number of capacities.
///
/// # Errors
/// Fails for the reasons listed in [`UntimedError`].
pub(crate) fn warm_untimed(
    device: &mut Placed,
    fill: &mut dyn Workload,
    load: &mut dyn Workload,
    page_bytes: u32,
    warm: Warm,
    control: &Control,
) -> Result<(), UntimedError> {
    let plan = UntimedPlan {
        page_bytes,
        warm,
        capacities: 0.0,
        points: 1,
    };
    let pages = u64::from(device.setup().logical_pages);
    control
        .total
        .store(plan.pages_most(pages), Ordering::Relaxed);
    Feed::new(fill, page_bytes).write(device, u64::MAX, control)?;
    let mut run = Run {
        series: vec![device.report()],
        feed: Feed::new(load, page_bytes),
        device,
        plan: &plan,
        control,
    };
    let (written, _) = run.warm()?;
    match written > 0.0 {
        true => Ok(()),
        false => Err(UntimedError::TooShort { capacities: 0.0 }),
    }
}

/// The part of a run after the fill.
struct Run<'a> {
    device: &'a mut Placed,
    feed: Feed<'a>,
    plan: &'a UntimedPlan,
    control: &'a Control,
    series: Vec<PlacementReport>,
}

impl Run<'_> {
    fn units(&self) -> u64 {
        let setup = self.device.setup();
        u64::from(setup.units) * u64::from(setup.groups)
    }

    fn report(&self) -> PlacementReport {
        self.device.report()
    }

    /// Runs the warm-up. Returns its length in capacities, and whether write amplification is level. The latter is
    /// `None` if the warm-up has a fixed length.
    fn warm(&mut self) -> Result<(f64, Option<bool>), UntimedError> {
        if let Warm::Capacities(n) = self.plan.warm {
            return Ok((self.write(n)?, None));
        }
        let mut warm = 0.0;
        let mut recent: Vec<f64> = Vec::new();
        for _ in 0..WARM_MOST {
            let before = self.report();
            let written = self.write(1.0)?;
            warm += written;
            if written < 1.0 {
                return Err(UntimedError::TooShort { capacities: warm });
            }
            let after = self.report();
            // These writes count only if at least half of the device's units were erased during them. Before that, much
            // of the flash has never been written, and write amplification is too low.
            let collects = after.erases - before.erases >= self.units() / 2;
            match after.write_amplification(&before).filter(|_| collects) {
                Some(now) => recent.push(now),
                None => recent.clear(),
            }
            if is_level(&recent) {
                return Ok((warm, Some(true)));
            }
        }
        Ok((warm, Some(false)))
    }

    /// Writes a multiple of the device's capacity. Returns the multiple that was written, which is smaller than
    /// `capacities` if the load ends.
    fn write(&mut self, capacities: f64) -> Result<f64, UntimedError> {
        let capacity = f64::from(self.device.setup().logical_pages);
        let points = (capacities * f64::from(self.plan.points)).round().max(1.0);
        let first = self.series.last().map_or(0, |report| report.host_pages);
        for point in 1..=points as u64 {
            let due = first + (capacities * capacity * point as f64 / points).round() as u64;
            let now = self.device.totals().host;
            let has_more = self
                .feed
                .write(self.device, due.saturating_sub(now), self.control)?;
            self.series.push(self.device.report());
            if !has_more {
                break;
            }
        }
        let last = self.series.last().map_or(0, |report| report.host_pages);
        Ok(((last - first) as f64 / capacity).min(capacities))
    }
}

/// Whether the sum of the last two values and the sum of the two values before them differ by less than [`LEVEL`].
fn is_level(values: &[f64]) -> bool {
    let Some(&[a, b, c, d]) = values.last_chunk() else {
        return false;
    };
    ((c + d) / (a + b) - 1.0).abs() < LEVEL
}

/// Checks that a request is within the device.
fn check_range(request: &Request, device_bytes: u64) -> Result<(), UntimedError> {
    let (offset, bytes) = (request.offset, request.bytes);
    match offset
        .checked_add(bytes)
        .is_some_and(|end| end <= device_bytes)
    {
        true => Ok(()),
        false => Err(UntimedError::OutOfRange {
            offset,
            bytes,
            device_bytes,
        }),
    }
}

/// The requests of a load. For schemes that need to know the future, also the time of the next write of each page.
struct Feed<'a> {
    load: &'a mut dyn Workload,
    page_bytes: u64,
    batch: Vec<Request>,
    at: usize,
    /// Empty unless the scheme needs to know the future. If it does, `batch` has the part of the load that was read in
    /// advance. For each page written by this part, in order, this list has the time of the next write or trim of the
    /// page, on the host clock (pages written so far).
    next: Vec<u64>,
    next_at: usize,
}

impl<'a> Feed<'a> {
    fn new(load: &'a mut dyn Workload, page_bytes: u32) -> Feed<'a> {
        Feed {
            load,
            page_bytes: page_bytes.into(),
            batch: Vec::new(),
            at: 0,
            next: Vec::new(),
            next_at: 0,
        }
    }

    /// Returns the first page that a request touches, and the number of pages.
    #[inline(always)]
    fn pages(&self, request: &Request) -> (u32, u32) {
        let first = request.offset / self.page_bytes;
        let end = (request.offset + request.bytes).div_ceil(self.page_bytes);
        (first as u32, (end - first) as u32)
    }

    /// Returns the pages that a trim covers completely, as first page and number.
    fn whole_pages(&self, request: &Request) -> (u32, u32) {
        let first = request.offset.div_ceil(self.page_bytes);
        let end = (request.offset + request.bytes) / self.page_bytes;
        (first as u32, end.saturating_sub(first) as u32)
    }

    /// Submits requests until the host has written `pages` further pages or the load ends. Returns whether more
    /// requests follow.
    fn write(
        &mut self,
        device: &mut Placed,
        pages: u64,
        control: &Control,
    ) -> Result<bool, UntimedError> {
        let device_bytes = u64::from(device.setup().logical_pages) * self.page_bytes;
        let mut left = pages;
        let mut idle = 0;
        while left > 0 {
            if self.at == self.batch.len() {
                self.batch.clear();
                self.at = 0;
                if self.load.next_batch(&mut self.batch)? == 0 {
                    return Ok(false);
                }
                control.done.store(device.totals().host, Ordering::Relaxed);
                if control.stopped() {
                    return Err(UntimedError::Stopped);
                }
            }
            let request = self.batch[self.at];
            self.at += 1;
            idle += 1;
            if idle > IDLE_REQUESTS_MAX {
                return Ok(false);
            }
            check_range(&request, device_bytes)?;
            if let Some(later) = self.batch.get(self.at + 2 * AHEAD) {
                device.prefetch(Lpn(self.pages(later).0));
            }
            if let Some(later) = self.batch.get(self.at + AHEAD) {
                device.prefetch_old_copy(Lpn(self.pages(later).0));
            }
            match request.op {
                Op::Write => {
                    let (first, n) = self.pages(&request);
                    let id = request.placement.get();
                    let next = match self.next.get(self.next_at..self.next_at + n as usize) {
                        Some(next) if !self.next.is_empty() => next,
                        _ => &[],
                    };
                    device.write(Lpn(first), n, id, next)?;
                    idle = 0;
                    self.next_at += n as usize;
                    left = left.saturating_sub(n.into());
                }
                Op::Trim => {
                    let (first, n) = self.whole_pages(&request);
                    if n > 0 {
                        device.trim(Lpn(first), n);
                    }
                }
                Op::Read | Op::Flush => {}
            }
        }
        Ok(true)
    }

    /// Reads the part of the load in advance that writes the next `pages` pages. For each of these pages, determines
    /// the time of its next write or trim. `first` is the host clock at the first of them.
    fn look_ahead(
        &mut self,
        pages: u64,
        first: u64,
        device_bytes: u64,
    ) -> Result<(), UntimedError> {
        if pages > AHEAD_PAGES_MAX {
            return Err(UntimedError::TooLong { pages });
        }
        let mut written = 0;
        let mut from = 0;
        while written < pages && self.load.next_batch(&mut self.batch)? > 0 {
            let new = &self.batch[from..];
            new.iter().try_for_each(|r| check_range(r, device_bytes))?;
            let writes = new.iter().filter(|request| request.op == Op::Write);
            written += writes.map(|r| u64::from(self.pages(r).1)).sum::<u64>();
            from = self.batch.len();
        }
        self.next = vec![NEVER; written as usize];
        let mut soonest = HashMap::new();
        let mut clock = written;
        for request in self.batch.iter().rev() {
            match request.op {
                Op::Write => {
                    let (from, n) = self.pages(request);
                    for page in (from..from + n).rev() {
                        clock -= 1;
                        let next = soonest.insert(page, first + clock);
                        self.next[clock as usize] = next.unwrap_or(NEVER);
                    }
                }
                Op::Trim => {
                    let (from, n) = self.whole_pages(request);
                    soonest.extend((from..from + n).map(|page| (page, first + clock)));
                }
                Op::Read | Op::Flush => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flashtwin::placement::{Class, HostPage, MovedPage, Needs, Scheme, Setup, Survivors};
    use flashtwin_workload::{in_order, LoadSpec};
    use std::sync::{Arc, Mutex};

    use super::*;

    const PAGE: u64 = 4096;

    fn setup() -> Setup {
        let words = [
            ("units", "40"),
            ("unit_pages", "16"),
            ("logical_pages", "480"),
            ("low", "3"),
        ];
        let words = words.map(|(key, text)| (key.to_string(), text.to_string()));
        Setup::of_words(&words).unwrap()
    }

    /// A load of writes and trims. Each touches one to three pages, some of them in part.
    struct Mixed(Vec<Request>);

    impl Workload for Mixed {
        fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
            let n = self.0.len().min(700);
            out.extend(self.0.drain(..n));
            Ok(n)
        }

        fn requests_total(&self) -> Option<u64> {
            None
        }

        fn describe(&self) -> String {
            String::new()
        }
    }

    fn requests(seed: u64) -> Vec<Request> {
        let mut rng = flashtwin::Rng::new(seed);
        let request = |_| Request {
            offset: rng.below(477) * PAGE + rng.below(2) * 512,
            bytes: (1 + rng.below(3)) * PAGE - rng.below(2) * 1024,
            op: [Op::Write, Op::Write, Op::Write, Op::Trim, Op::Read][rng.below(5) as usize],
            ..Request::default()
        };
        (0..6_000).map(request).collect()
    }

    /// A scheme that records the page, the time of the write and the time of the page's next write, for each page
    /// written.
    #[derive(Clone)]
    struct Notes(Arc<Mutex<Vec<(u32, u64, u64)>>>);

    impl Scheme for Notes {
        fn needs(&self) -> Needs {
            Needs {
                future: true,
                survivors: Survivors::Scheme,
                ..Needs::classes(1)
            }
        }

        fn host(&mut self, page: &HostPage) -> Class {
            self.0
                .lock()
                .unwrap()
                .push((page.lpn.0, page.clock, page.next));
            0
        }

        fn moved(&mut self, _page: &MovedPage) -> Class {
            0
        }
    }

    fn plan() -> UntimedPlan {
        UntimedPlan {
            page_bytes: PAGE as u32,
            warm: Warm::Capacities(2.0),
            capacities: 4.0,
            points: 3,
        }
    }

    /// The third value exceeds the second by less than 1 %, but the series still rises.
    #[test]
    fn a_rising_series_is_not_level() {
        let rising = [2.69, 3.15, 3.17, 3.25, 3.27, 3.31, 3.30, 3.32];
        let ends: Vec<usize> = (1..=8).filter(|&n| is_level(&rising[..n])).collect();
        assert_eq!(ends, [8]);
        assert!(is_level(&[4.33, 4.30, 4.32, 4.36]));
        assert!(!is_level(&[4.33, 4.32, 4.32]));
    }

    #[test]
    fn the_future_of_a_page_is_its_next_write_or_trim() {
        for seed in flashtwin::seeds(3) {
            let all = requests(seed);
            let notes = Notes(Arc::default());
            let mut device = Placed::with_scheme(&setup(), Box::new(notes.clone())).unwrap();
            let mut fill = in_order(480 * PAGE, PAGE as u32);
            let mut load = Mixed(all.clone());
            let control = Control::default();
            run_untimed(&mut device, fill.as_mut(), &mut load, &plan(), &control).unwrap();
            let noted: Vec<_> = notes.0.lock().unwrap().split_off(480);
            // Each write or trim of a page, with its time on the host clock. The list is computed from the requests
            // alone.
            let mut deaths: Vec<(u32, u64)> = Vec::new();
            let mut clock = 480;
            for request in &all {
                let (offset, end) = (request.offset, request.offset + request.bytes);
                match request.op {
                    Op::Write => {
                        for lpn in offset / PAGE..end.div_ceil(PAGE) {
                            deaths.push((lpn as u32, clock));
                            clock += 1;
                        }
                    }
                    Op::Trim => {
                        for lpn in offset.div_ceil(PAGE)..end / PAGE {
                            deaths.push((lpn as u32, clock));
                        }
                    }
                    _ => {}
                }
            }
            assert!(noted.len() > 2_000);
            let known_until = noted.last().unwrap().1;
            for (at, &(lpn, written, next)) in noted.iter().enumerate() {
                let later = |&&(page, clock): &&(u32, u64)| page == lpn && clock > written;
                let expected = deaths.iter().find(later).map_or(NEVER, |&(_, clock)| clock);
                // The load is read in advance only up to a limit. A next write beyond the limit may be unknown.
                if expected <= known_until || next != NEVER {
                    assert_eq!(next, expected, "seed {seed}: page {lpn}, write {at}");
                }
            }
        }
    }

    #[test]
    fn a_run_counts_the_pages_that_requests_touch() {
        let mut device = Placed::new(&setup()).unwrap();
        let mut fill = in_order(480 * PAGE, PAGE as u32);
        let mut load = Mixed(requests(9));
        let control = Control::default();
        let run = run_untimed(&mut device, fill.as_mut(), &mut load, &plan(), &control).unwrap();
        assert_eq!((run.warm, run.level), (2.0, None));
        assert_eq!(run.series[0].host_pages, 480);
        let measured = run.after.host_pages - run.before.host_pages;
        // The last request may write beyond the requested number of pages.
        assert!((1920..1930).contains(&measured), "{measured}");
        assert_eq!(run.series.len(), 1 + 2 * 3 + 4 * 3);
        device.check().unwrap();
    }

    #[test]
    fn loads_that_are_too_short_or_too_far_are_refused() {
        let run = |load: &mut dyn Workload| {
            let mut device = Placed::new(&setup()).unwrap();
            let mut fill = in_order(480 * PAGE, PAGE as u32);
            let plan = UntimedPlan {
                warm: Warm::UntilLevel,
                ..plan()
            };
            let control = Control::default();
            run_untimed(&mut device, fill.as_mut(), load, &plan, &control).unwrap_err()
        };
        let short = LoadSpec::parse("uniform:write=1,requests=100").unwrap();
        let error = run(short.build(480 * PAGE, 1).unwrap().as_mut());
        assert!(matches!(error, UntimedError::TooShort { .. }), "{error}");
        let far = Request {
            offset: u64::MAX - 512,
            bytes: 4096,
            op: Op::Write,
            ..Request::default()
        };
        let error = run(&mut Mixed(vec![far]));
        assert!(matches!(error, UntimedError::OutOfRange { .. }), "{error}");
    }
}
