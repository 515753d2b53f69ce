//! Runs without time: a load is written to a device that is written by units, as fast as its tables allow, for write
//! amplification at full size.
//!
//! The device is filled, the load is written until write amplification is level, and then for so many capacities more.
//! Reads are passed over; a request counts all pages that it touches.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering;

use flashtwin::placement::{NoRoom, Placed, PlacementReport, NEVER};
use flashtwin::{Lpn, Op, Request};
use flashtwin_workload::{Workload, WorkloadError};

use crate::control::Control;

/// Capacities after which a load is run in any case, if write amplification has not become level.
pub const WARM_MOST: u32 = 20;
/// Change of write amplification from one capacity to the next up to which it is level.
const LEVEL: f64 = 0.01;
/// Requests that are known ahead while their table entries are loaded.
const AHEAD: usize = 16;

/// Writes before the measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warm {
    /// Whole capacities of the load until write amplification differs by less than 1 % from one to the next, at most
    /// [`WARM_MOST`].
    UntilLevel,
    /// A fixed number of capacities of the load.
    Capacities(f64),
}

/// How long a load is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UntimedPlan {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Writes before the measurement.
    pub warm: Warm,
    /// Capacities measured; a load that ends before is measured to its end.
    pub capacities: f64,
    /// Reports kept of each capacity, for curves over time.
    pub points: u32,
}

/// The reports of a run, each since the device was made.
#[derive(Clone, Debug)]
pub struct Untimed {
    /// Capacities written after the fill and before the measurement.
    pub warm: f64,
    /// Write amplification was level then; always, if a number of capacities was asked for.
    pub level: bool,
    /// Capacities measured.
    pub capacities: f64,
    /// Reports from the end of the fill on, in their order.
    pub series: Vec<PlacementReport>,
    /// The report at the beginning of the measurement.
    pub before: PlacementReport,
    /// The report at its end.
    pub after: PlacementReport,
}

/// Why a run ended before its time.
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
        /// Capacities that it wrote.
        capacities: f64,
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

/// Fills a device by `fill`, or page by page without ids, and then runs `load`.
///
/// # Errors
/// See [`UntimedError`].
pub fn run_untimed(
    device: &mut Placed,
    fill: Option<&mut dyn Workload>,
    load: &mut dyn Workload,
    plan: &UntimedPlan,
    control: &Control,
) -> Result<Untimed, UntimedError> {
    let pages = u64::from(device.setup().logical_pages);
    let most = match plan.warm {
        Warm::UntilLevel => f64::from(WARM_MOST),
        Warm::Capacities(n) => n,
    };
    let total = ((most + plan.capacities + 1.0) * pages as f64) as u64;
    control.total.store(total, Ordering::Relaxed);
    match fill {
        Some(fill) => {
            Feed::new(fill, plan.page_bytes).write(device, u64::MAX, control)?;
        }
        None => fill_in_order(device)?,
    }
    let mut feed = Feed::new(load, plan.page_bytes);
    if device.needs().future {
        let first = device.totals().host;
        feed.look_ahead(((most + plan.capacities) * pages as f64) as u64, first)?;
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

fn fill_in_order(device: &mut Placed) -> Result<(), UntimedError> {
    for lpn in 0..device.setup().logical_pages {
        device.write(Lpn(lpn), 1, None, &[NEVER])?;
    }
    Ok(())
}

/// A run after the fill.
struct Run<'a> {
    device: &'a mut Placed,
    feed: Feed<'a>,
    plan: &'a UntimedPlan,
    control: &'a Control,
    series: Vec<PlacementReport>,
}

impl Run<'_> {
    fn report(&self) -> PlacementReport {
        self.device.report()
    }

    /// Writes capacities until write amplification is level; returns their number, and whether it is.
    fn warm(&mut self) -> Result<(f64, bool), UntimedError> {
        if let Warm::Capacities(n) = self.plan.warm {
            return Ok((self.write(n)?, true));
        }
        let mut warm = 0.0;
        let mut last: Option<f64> = None;
        for _ in 0..WARM_MOST {
            let before = self.report();
            let written = self.write(1.0)?;
            warm += written;
            if written < 1.0 {
                return Err(UntimedError::TooShort { capacities: warm });
            }
            let now = self.report().write_amplification(&before);
            if let (Some(last), Some(now)) = (last, now) {
                if (now / last - 1.0).abs() < LEVEL {
                    return Ok((warm, true));
                }
            }
            last = now;
        }
        Ok((warm, false))
    }

    /// Writes so many capacities; returns those written, fewer if the load ends.
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

/// The requests of a load, with the future of each page where it is needed.
struct Feed<'a> {
    load: &'a mut dyn Workload,
    page_bytes: u64,
    batch: Vec<Request>,
    at: usize,
    /// For each page written by the requests of the only batch, the host clock of its next write.
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

    /// The first page that a request touches, and their number.
    #[inline(always)]
    fn pages(&self, request: &Request) -> (u32, u32) {
        let first = request.offset / self.page_bytes;
        let end = (request.offset + request.bytes).div_ceil(self.page_bytes);
        (first as u32, (end - first) as u32)
    }

    /// The whole pages of a trim.
    fn whole_pages(&self, request: &Request) -> (u32, u32) {
        let first = request.offset.div_ceil(self.page_bytes);
        let end = (request.offset + request.bytes) / self.page_bytes;
        (first as u32, end.saturating_sub(first) as u32)
    }

    /// Writes until the host has written `pages` more, or the load ends; returns whether there is more.
    fn write(
        &mut self,
        device: &mut Placed,
        pages: u64,
        control: &Control,
    ) -> Result<bool, UntimedError> {
        let device_bytes = u64::from(device.setup().logical_pages) * self.page_bytes;
        let mut left = pages;
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
            let (offset, bytes) = (request.offset, request.bytes);
            if offset
                .checked_add(bytes)
                .is_none_or(|end| end > device_bytes)
            {
                return Err(UntimedError::OutOfRange {
                    offset,
                    bytes,
                    device_bytes,
                });
            }
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

    /// Reads the load ahead until it has written `pages`, and finds the next write or trim of each page written; `first`
    /// is the host clock of the first.
    fn look_ahead(&mut self, pages: u64, first: u64) -> Result<(), UntimedError> {
        let mut written = 0;
        let mut from = 0;
        while written < pages && self.load.next_batch(&mut self.batch)? > 0 {
            let new = &self.batch[from..];
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
