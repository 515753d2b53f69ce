//! Runs without time: a load is written to a device that writes by units, without the timing of the
//! flash. Such runs are fast enough to measure write amplification at the full size of a device.
//!
//! The device is filled; then the load is written until write amplification is level, and after
//! that for a given number of capacities. Reads are skipped; a request counts all pages that it
//! touches.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering;

use flashtwin::placement::{NoRoom, Placed, PlacementReport, NEVER};
use flashtwin::{Lpn, Op, Request};
use flashtwin_workload::{Workload, WorkloadError};

use crate::control::Control;

/// Amount of writes, in capacities of the device, after which the warm-up ends in any case.
pub const WARM_MOST: u32 = 20;
/// Largest relative change of write amplification, from the mean of two capacities to that of the next two, at which it
/// counts as level. The change from one capacity to the next is not enough: it may be small by chance while write
/// amplification still rises.
const LEVEL: f64 = 0.01;
/// Number of requests by which the prefetching of table entries is ahead.
const AHEAD: usize = 16;
/// Number of consecutive requests without a write after which a load counts as ended, since an
/// endless load may have only reads.
const IDLE_REQUESTS_MAX: u64 = 1 << 26;
/// Largest number of pages that are read in advance for schemes that need the future of a page;
/// they take about 5 GB.
const AHEAD_PAGES_MAX: u64 = 1 << 27;

/// Writes before the measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warm {
    /// Whole capacities of the load are written until write amplification changes by less than 1 %
    /// from one to the next, at most [`WARM_MOST`].
    UntilLevel,
    /// The load writes a fixed multiple of the device's capacity.
    Capacities(f64),
}

/// Length of the parts of a run without time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UntimedPlan {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Writes before the measurement.
    pub warm: Warm,
    /// Measured writes, in capacities of the device; a load that ends earlier is measured to its end.
    pub capacities: f64,
    /// Number of reports kept for each capacity, for curves over time.
    pub points: u32,
}

impl UntimedPlan {
    /// Returns the largest number of pages that a run writes to a device of `pages` pages,
    /// including the fill.
    fn pages_most(&self, pages: u64) -> u64 {
        let warm = match self.warm {
            Warm::UntilLevel => f64::from(WARM_MOST),
            Warm::Capacities(n) => n,
        };
        pages + ((warm + self.capacities) * pages as f64) as u64
    }
}

/// The reports of a run; each counts from the creation of the device.
#[derive(Clone, Debug)]
pub struct Untimed {
    /// Writes after the fill and before the measurement, in capacities of the device.
    pub warm: f64,
    /// Whether write amplification was level before the measurement; `None` if a fixed number of
    /// capacities was requested.
    pub level: Option<bool>,
    /// Measured writes, in capacities of the device.
    pub capacities: f64,
    /// Reports from the end of the fill on, in order.
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
        /// Writes of the load, in capacities of the device.
        capacities: f64,
    },
    /// The scheme needs to know more of the load in advance than is read.
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

/// Fills a device with `fill`, and then runs `load`.
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

/// Fills a device with `fill`, and then writes `load` until write amplification is level, or for a
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

    /// Writes whole capacities until write amplification is level; returns their number, and
    /// whether it is level.
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
            // While there is flash that was never written, nothing is collected, and nothing is level.
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

    /// Writes `capacities` times the device's capacity; returns the multiple written, which is
    /// smaller if the load ends.
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

/// Whether the sum of the last two values equals that of the two before, within [`LEVEL`].
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

/// The requests of a load and, for schemes that need it, the next write of each page.
struct Feed<'a> {
    load: &'a mut dyn Workload,
    page_bytes: u64,
    batch: Vec<Request>,
    at: usize,
    /// For each page written by the requests of the only batch, the instant of its next write on
    /// the host clock.
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

    /// Writes until the host has written `pages` further pages, or the load ends; returns whether
    /// more requests follow.
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

    /// Reads the load in advance until it has written `pages` pages, and determines the next write
    /// or trim of each page written. `first` is the host clock at the first of these writes.
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

    /// Writes and trims of one to three pages, or of parts of pages.
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

    /// A scheme that records each page written with the instants of this write and of the page's
    /// next write.
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

    /// The third value differs from the second by less than 1 %, but the series still rises.
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
            // Deaths of each page by the host clock, from the requests alone.
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
                // The last pages are read in advance up to a batch only.
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
        // A request may end behind the last page asked for.
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
