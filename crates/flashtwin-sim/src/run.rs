//! The main loop of a run. It submits the requests at their times, handles addresses beyond the device, reports
//! progress and can be interrupted.

use std::sync::atomic::Ordering;

use flashtwin::placement::{Placed, PlacementReport};
use flashtwin::{Completion, Device, GcInterval, Op, Request, Time};
use flashtwin_workload::Workload;

use crate::conservation::Books;
use crate::control::{Control, WorkPhase};
use crate::faults::{Agenda, Fault};
use crate::history::History;
use crate::outcome::Outcome;
use crate::passes::{DriveWrites, Observed};
use crate::timeline::{Recording, Window};
use crate::warmup::Warmup;
use crate::{Backlog, Drivable, SimError, Speed};

/// Times at which requests reach the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Open loop: requests arrive at the times in the workload, divided by `speed`. A speed of 1 is that of the
    /// recording.
    Open {
        /// Factor by which requests are faster than recorded.
        speed: Speed,
    },
    /// Closed loop: a fixed number of requests in flight.
    Closed {
        /// Queue depth.
        depth: u32,
    },
}

/// Handling of a request that reaches beyond the end of the device (D-34).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// The run stops with an error.
    Error,
    /// The start of the request is taken modulo the exported capacity. If its end is then beyond the device, the
    /// request is shortened.
    Wrap,
    /// The request is dropped.
    Drop,
}

/// Settings of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// Times at which requests reach the device.
    pub pacing: Pacing,
    /// Handling of addresses beyond the device.
    pub beyond: Beyond,
    /// Requests before the measurement begins.
    pub warmup_requests: u64,
    /// If set, the warm-up continues until the run is steady ([`crate::Steady`]). This is its largest number of
    /// requests.
    pub warmup_requests_max: Option<u64>,
    /// Minimum and maximum length of the run of a repeated workload, in drive writes. The other limits of the run also
    /// apply.
    pub drive_writes: Option<DriveWrites>,
    /// Largest number of requests, including a warm-up of `warmup_requests`. If the warm-up becomes longer, because it
    /// lasts until the run is steady, this limit increases by the difference.
    pub requests_max: Option<u64>,
    /// Largest time from the start of the measurement to the last submission. Requests in flight at the end of that
    /// time still complete.
    pub span_max: Option<Time>,
    /// Interval of the time series, in virtual time.
    pub series_interval: Option<Time>,
    /// Faults of members of an array. After the last request, faults occur only as long as the array is busy.
    pub faults: Vec<Fault>,
    /// Whether to record when members of an array run GC.
    pub gc_timeline: bool,
    /// Number of threads that simulate the members of an array. Several threads are used only if the members do not
    /// influence each other's requests. The number does not change the results.
    pub threads: u32,
    /// Whether to record the history of the run in windows ([`History`]).
    pub history: bool,
    /// Window of the timeline, in which all operations of the device are recorded; `None` for no timeline.
    pub timeline: Option<Window>,
    /// Largest number of pending requests in an open loop, if the mean size of requests is at most 8 KiB. For larger
    /// requests, the limit is lower. A run that exceeds the limit ends with [`SimError::Behind`], because pending
    /// requests take memory.
    pub waiting_max: u64,
    /// Number of requests between two checks of the conservation laws ([`SimError::Law`]). With `None`, the laws are
    /// checked only at the end of the run.
    pub check_requests: Option<u64>,
}

impl Default for RunConfig {
    fn default() -> Self {
        RunConfig {
            pacing: Pacing::Open {
                speed: Speed::RECORDED,
            },
            beyond: Beyond::Error,
            warmup_requests: 0,
            warmup_requests_max: None,
            drive_writes: None,
            requests_max: None,
            span_max: None,
            series_interval: None,
            faults: Vec::new(),
            gc_timeline: false,
            threads: 1,
            history: false,
            timeline: None,
            waiting_max: WAITING_MAX,
            check_requests: None,
        }
    }
}

/// Distance of the prefetch, in requests: the table entries that a request accesses first are prefetched this many
/// requests before the request is submitted.
const AHEAD: usize = 4;

/// Default of [`RunConfig::waiting_max`]; permits bursts of some million requests.
const WAITING_MAX: u64 = 8 << 20;
/// Largest mean size of requests, in bytes, at which [`RunConfig::waiting_max`] applies unchanged. If requests are
/// larger, fewer may be pending, because each needs more flash operations.
const BYTES_A_WAITING: u128 = 8 << 10;
/// The completion rate of an overloaded device is measured over at most this many completions. The next constant limits
/// the number of events.
const RATE_REQUESTS: usize = 10_000;
const RATE_STEPS: u32 = 4_000_000;

/// Number of completions that the sink receives in one call.
const BATCH: usize = 64;

/// Latest instant that a run may reach. It is half a day before the end of the clock's range, because no single event
/// or request takes longer.
pub(crate) const CLOCK_MAX: Time = Time::from_s(213 * 86_400);

/// Number of events between two checks of the control after all requests are submitted.
const LOOK: u32 = 4096;

/// Receives every measured completion of a run, in order of completion.
pub type Sink<'a> = dyn FnMut(&[Completion]) -> Result<(), SimError> + 'a;

/// Runs a workload on a device. `sink`, if given, receives the completions. Without a sink, they are only counted.
///
/// # Errors
/// Fails without results in the following cases: the configuration is wrong, the workload cannot be read or lies beyond
/// the device, no request reached the device, the virtual time exceeds the range of the clock, too many requests are
/// pending in an open loop, `sink` fails, or the model violates one of its conservation laws.
pub fn run<S: Drivable>(
    device: &mut Device<S>,
    workload: &mut dyn Workload,
    config: &RunConfig,
    control: &Control,
    sink: Option<&mut Sink>,
) -> Result<Outcome, SimError> {
    let result = run_measured(device, workload, config, control, sink);
    device.collect_completions(true);
    result
}

fn run_measured<S: Drivable>(
    device: &mut Device<S>,
    workload: &mut dyn Workload,
    config: &RunConfig,
    control: &Control,
    sink: Option<&mut Sink>,
) -> Result<Outcome, SimError> {
    let total = requests_to_run(workload, config)?;
    let phase = match config.warmup_requests {
        0 => WorkPhase::Main,
        _ => WorkPhase::Warmup,
    };
    control.begin(phase, total);
    keep_gc_timeline(device, config.gc_timeline)?;
    let agenda = Agenda::new(device, &config.faults, config.series_interval)?;
    let placement_before = placement(device);
    let mut driver = Driver {
        agenda,
        start: device.now(),
        exported_bytes: device.exported_bytes(),
        device,
        config,
        control,
        // The match coerces the sink to the lifetime of the other borrowed fields.
        sink: match sink {
            Some(sink) => Some(sink),
            None => None,
        },
        submitted: 0,
        bytes: 0,
        dropped: 0,
        wrapped: 0,
        warming: config.warmup_requests > 0,
        warmup: Warmup::new(config, workload.requests_total())?,
        history: None,
        timeline: None,
        passes: Observed::default(),
        placement_before,
        books: Books::default(),
        pause_at: 0,
        watches: false,
        only_counts: false,
    };
    driver.begin_history();
    driver.device.reset_metrics(config.series_interval);
    driver.open_books();
    if config.warmup_requests == 0 {
        driver.agenda.begin(driver.start);
        control.note_start();
    }
    let mut interrupted = driver.submit_all(workload)?;
    driver.end_ahead();
    interrupted |= driver.finish()?;
    // The last pass, with its last requests.
    driver.passes_suffice(workload.passes());
    if driver.warming && driver.submitted > 0 {
        if !interrupted {
            let requests = driver.submitted;
            return Err(warmup_too_long(driver.warmup.look_at, requests));
        }
        // What the warm-up met is no result.
        let now = driver.device.now();
        driver.begin_measuring(now);
    }
    driver.outcome(interrupted)
}

/// Checks the configuration. Returns the number of requests to run, or 0 if it is unknown.
fn requests_to_run(workload: &dyn Workload, config: &RunConfig) -> Result<u64, SimError> {
    if let Pacing::Closed { depth: 0 } = config.pacing {
        return Err(SimError::Config("queue depth 0: give 1 or more".into()));
    }
    let known = workload.requests_total();
    let total = match (known, config.requests_max) {
        (Some(n), Some(max)) => n.min(max),
        (n, max) => n.or(max).unwrap_or(0),
    };
    if config.warmup_requests > 0 && (1..=config.warmup_requests).contains(&total) {
        return Err(warmup_too_long(config.warmup_requests, total));
    }
    Ok(total)
}

fn keep_gc_timeline<S: Drivable>(device: &mut Device<S>, keep: bool) -> Result<(), SimError> {
    match S::array_mut(device) {
        Some(array) => array.set_gc_timeline(keep),
        None if keep => {
            let message = "a timeline of collections needs an array; this device is a single SSD";
            return Err(SimError::Config(message.into()));
        }
        None => {}
    }
    Ok(())
}

fn warmup_too_long(warmup_requests: u64, total: u64) -> SimError {
    SimError::Config(format!(
        "warm-up of {warmup_requests} requests: the run has {total}, so none would be measured; give \
         a shorter warm-up, or more requests"
    ))
}

/// Returns the placement counts of a device that writes by units (blocks that are erased together); `None` for other
/// devices.
fn placement<S: Drivable>(device: &Device<S>) -> Option<PlacementReport> {
    let mut report = None;
    S::each_drive(device, &mut |_, ssd| {
        report = ssd.placement().map(Placed::report);
    });
    report
}

fn gc_intervals<S: Drivable>(device: &mut Device<S>) -> Vec<GcInterval> {
    let start = device.metrics().since();
    let intervals = S::array_mut(device).map_or(Vec::new(), |array| array.take_gc_intervals());
    let from_start = |i: GcInterval| GcInterval {
        begin: i.begin - start,
        end: i.end - start,
        ..i
    };
    intervals.into_iter().map(from_start).collect()
}

pub(crate) struct Driver<'a, S: Drivable> {
    pub(crate) device: &'a mut Device<S>,
    pub(crate) agenda: Agenda,
    pub(crate) config: &'a RunConfig,
    control: &'a Control,
    sink: Option<&'a mut Sink<'a>>,
    start: Time,
    pub(crate) exported_bytes: u64,
    pub(crate) submitted: u64,
    /// Total bytes of the reads and writes submitted so far; trims and flushes are not counted.
    bytes: u128,
    dropped: u64,
    wrapped: u64,
    /// Whether the measurement has not begun.
    pub(crate) warming: bool,
    pub(crate) warmup: Warmup,
    history: Option<Box<History>>,
    pub(crate) timeline: Option<Box<Recording>>,
    passes: Observed,
    /// Placement counts at the start of the measurement; `None` if the device does not write by units (blocks that are
    /// erased together).
    placement_before: Option<PlacementReport>,
    books: Books,
    /// Number of submitted requests at which [`Driver::pause`] must be called next.
    pause_at: u64,
    /// Whether [`Driver::watch`] must be called before each request. This is so during the warm-up, with a limited
    /// span, and if the history or the timeline is recorded.
    watches: bool,
    /// Whether the run collects only metrics. If so, no check is needed before a request.
    only_counts: bool,
}

impl<S: Drivable> Driver<'_, S> {
    /// Records the initial values of the conservation laws. Must be called directly after the counters of the device
    /// are reset.
    fn open_books(&mut self) {
        self.books = Books::open(self.device, self.submitted);
    }

    /// Returns the number of submitted requests at which the run ends; `u64::MAX` if it is not known.
    pub(crate) fn requests_max(&self) -> u64 {
        let max = self.config.requests_max.unwrap_or(u64::MAX);
        max.saturating_add(self.warmup.extension())
    }

    /// Checks the laws of the model.
    fn check(&self) -> Result<(), SimError> {
        let same_drives = self.config.faults.is_empty();
        self.books.check(self.device, self.submitted, same_drives)
    }

    /// Called when `pause_at` requests have been submitted. Returns false if the run ends here. Otherwise checks the
    /// conservation laws and sets the next `pause_at`.
    #[cold]
    fn pause(&mut self) -> Result<bool, SimError> {
        let max = self.requests_max();
        if self.submitted == max {
            return Ok(false);
        }
        let every = self.config.check_requests.unwrap_or(u64::MAX);
        if self.submitted > 0 {
            self.check()?;
        }
        self.pause_at = self.submitted.saturating_add(every).min(max);
        Ok(true)
    }

    /// Returns the number of requests that may be submitted before `pause_at` must be compared again. The number is 1
    /// if a single step may submit several requests or change `pause_at`.
    fn requests_to_pause(&self, foresees: bool) -> usize {
        match foresees || self.warming {
            true => 1,
            false => usize::try_from(self.pause_at - self.submitted).unwrap_or(usize::MAX),
        }
    }

    /// Submits requests until the workload or the run ends. Returns true if an observer stopped the run.
    fn submit_all(&mut self, workload: &mut dyn Workload) -> Result<bool, SimError> {
        let mut batch = Vec::new();
        let mut interrupted = false;
        'run: loop {
            batch.clear();
            if workload.next_batch(&mut batch)? == 0 || self.passes_suffice(workload.passes()) {
                break;
            }
            let foresees = self.foresees();
            let (mut foreseen, mut pause) = (0, 0);
            let mut laters = batch.get(AHEAD..).unwrap_or_default().iter();
            for (i, request) in batch.iter().enumerate() {
                if i >= pause {
                    if foresees && i >= foreseen {
                        foreseen = i + self.look_ahead(&batch[i..])?;
                    }
                    if self.submitted == self.pause_at && !self.pause()? {
                        break 'run;
                    }
                    pause = i.saturating_add(self.requests_to_pause(foresees));
                }
                if let Some(later) = laters.next() {
                    self.device.prefetch(later);
                }
                if !self.one(request)? {
                    break 'run;
                }
            }
            self.control.done.store(self.submitted, Ordering::Relaxed);
            if self.control.stopped() {
                interrupted = true;
                break;
            }
            self.check_backlog(&batch)?;
        }
        Ok(interrupted)
    }

    /// Whether a repeated workload may end after `passes` passes.
    fn passes_suffice(&mut self, passes: u64) -> bool {
        let wanted = self.config.drive_writes;
        if self.warming {
            return false;
        }
        if self.passes.is_new() {
            self.passes = Observed::begin(self.device, passes);
        }
        self.passes.note(self.device, passes, wanted)
    }

    /// Returns an error if an open loop has too many pending requests, by number or by bytes.
    fn check_backlog(&mut self, batch: &[Request]) -> Result<(), SimError> {
        let (Pacing::Open { speed }, Some(last)) = (self.config.pacing, batch.last()) else {
            return Ok(());
        };
        let moved = |r: &&Request| matches!(r.op, Op::Read | Op::Write);
        let bytes = batch.iter().filter(moved).map(|r| r.bytes);
        let within = |bytes: u64| u128::from(bytes.min(self.exported_bytes));
        self.bytes += bytes.map(within).sum::<u128>();
        let waiting = self.device.outstanding() as u64;
        let mean = self.bytes / u128::from(self.submitted.max(1));
        let max = self.config.waiting_max;
        let bytes_max = u128::from(max) * BYTES_A_WAITING;
        match waiting > max || u128::from(waiting) * mean > bytes_max {
            true => Err(self.backlog(last, waiting, speed)),
            false => Ok(()),
        }
    }

    /// Runs the overloaded device without new requests to measure its completion rate. Returns the error that compares
    /// this rate with the load's arrival rate. `last` is the last request submitted.
    #[cold]
    fn backlog(&mut self, last: &Request, waiting: u64, speed: Speed) -> SimError {
        let below = self.device.outstanding().saturating_sub(RATE_REQUESTS);
        for _ in 0..RATE_STEPS {
            if self.device.outstanding() <= below || !self.device.step() {
                break;
            }
        }
        let done = self.submitted - self.device.outstanding() as u64;
        let per_s = |requests: u64, span: Time| requests as f64 / span.as_s();
        let completed_per_s = per_s(done, self.device.now() - self.start);
        let submitted_per_s = per_s(self.submitted, self.due(last) - self.start);
        let speed = speed.as_f64() * completed_per_s / submitted_per_s;
        SimError::Behind(Box::new(Backlog {
            submitted: self.submitted,
            waiting,
            completed_per_s,
            submitted_per_s,
            speed,
        }))
    }

    /// Returns the result of the run.
    fn outcome(mut self, interrupted: bool) -> Result<Outcome, SimError> {
        let history = self.history.take().map(|mut history| {
            let now = self.device.now();
            let placed = placement(self.device);
            let report = self.device.flash_report_without_wear();
            history.sample(now, &report, placed.as_ref());
            history.recorded(now, &report)
        });
        self.check()?;
        self.control.note_path(self.device.path());
        let recording = self.timeline.take();
        let timeline = recording.map(|recording| recording.finish(self.device));
        if self.submitted == 0 && !interrupted {
            return Err(SimError::NoRequests {
                dropped: self.dropped,
            });
        }
        let faults = self.agenda.end(self.device);
        let gc_intervals = gc_intervals(self.device);
        Ok(Outcome {
            faults,
            gc_intervals,
            metrics: self.device.metrics().clone(),
            flash: self.device.flash_report(),
            submitted: self.submitted,
            dropped: self.dropped,
            wrapped: self.wrapped,
            interrupted,
            read_only: self.device.is_read_only(),
            history,
            timeline,
            steady: self.warmup.into_outcome(),
            passes: self.passes.into_outcome(self.config.drive_writes),
            placement_before: self.placement_before,
        })
    }

    /// Returns the time at which a request is due in an open loop.
    pub(crate) fn due(&self, request: &Request) -> Time {
        let after = match self.config.pacing {
            Pacing::Open { speed } if speed != Speed::RECORDED => speed.replayed(request.arrival),
            _ => request.arrival,
        };
        Time(self.start.0.saturating_add(after.0))
    }

    /// Rejects an instant that is too late: events caused at it could exceed the range of the clock.
    #[inline]
    pub(crate) fn check_clock(&self, at: Time) -> Result<(), SimError> {
        if at <= CLOCK_MAX {
            return Ok(());
        }
        Err(SimError::Clock {
            request: self.submitted,
        })
    }

    /// Submits one request at its due time. Returns false if that time is after the end of the limited span.
    #[inline(always)]
    fn one(&mut self, request: &Request) -> Result<bool, SimError> {
        let end = request.offset.saturating_add(request.bytes);
        match end > self.exported_bytes {
            false => self.one_inside(request),
            true => self.one_beyond(*request),
        }
    }

    /// Handles a request that reaches beyond the device as [`Beyond`] specifies. Submits it unless it is dropped.
    #[cold]
    fn one_beyond(&mut self, mut request: Request) -> Result<bool, SimError> {
        match self.bring_inside(&mut request)? {
            true => self.one_inside(&request),
            false => Ok(true),
        }
    }

    #[inline(always)]
    fn one_inside(&mut self, request: &Request) -> Result<bool, SimError> {
        if !self.only_counts {
            return self.one_watched(request);
        }
        let at = match self.config.pacing {
            Pacing::Open { .. } => {
                let at = self.due(request);
                self.check_clock(at)?;
                self.device.advance(at);
                at
            }
            Pacing::Closed { depth } => {
                let now = self.wait_below(depth as usize);
                self.check_clock(now)?;
                now
            }
        };
        self.submit(at, request)?;
        Ok(true)
    }

    /// Submits a request in a run that records more than the metrics, has faults, or has a limited span. A fault that
    /// is due before the request is executed first.
    #[inline(never)]
    fn one_watched(&mut self, request: &Request) -> Result<bool, SimError> {
        let mut at = match self.config.pacing {
            Pacing::Open { .. } => {
                let at = self.due(request);
                self.check_clock(at)?;
                while self.agenda.next() <= at {
                    self.act();
                }
                self.advance(at);
                at
            }
            Pacing::Closed { depth } => {
                let now = self.let_finish(depth as usize);
                self.check_clock(now)?;
                now
            }
        };
        self.drain(false)?;
        if self.watches {
            match self.watch(request, at) {
                Some(later) => at = later,
                None => return Ok(false),
            }
        }
        self.submit(at, request)?;
        if self.timeline.is_some() {
            self.look();
        }
        Ok(true)
    }

    #[inline(always)]
    fn submit(&mut self, at: Time, request: &Request) -> Result<(), SimError> {
        self.device
            .submit(at, request, self.submitted)
            .map_err(|source| SimError::Beyond {
                request: self.submitted,
                source,
            })?;
        self.submitted += 1;
        Ok(())
    }

    /// Runs until fewer than `depth` requests are in flight. Returns the current time.
    #[inline(always)]
    fn wait_below(&mut self, depth: usize) -> Time {
        self.device.advance_below(depth, Time::NEVER);
        assert!(
            self.device.outstanding() < depth,
            "the device holds requests and has nothing to do"
        );
        self.device.now()
    }

    /// Runs until fewer than `depth` requests are in flight. Meanwhile, executes faults and records the timeline.
    /// Returns the current time.
    fn let_finish(&mut self, depth: usize) -> Time {
        if self.timeline.is_none() && self.agenda.next() == Time::NEVER {
            return self.wait_below(depth);
        }
        while self.device.outstanding() >= depth {
            assert!(
                self.step(),
                "the device holds requests and has nothing to do"
            );
        }
        // All events due now are processed before the next request arrives.
        let now = self.device.now();
        self.advance(now);
        now
    }

    /// Called before a request that arrives at `at`. Samples the history, and ends the warm-up if it is over. Returns
    /// the arrival time of the request, which the end of a warm-up delays. Returns `None` if this time is after the end
    /// of the limited span.
    #[inline(never)]
    fn watch(&mut self, request: &Request, at: Time) -> Option<Time> {
        if let Some(history) = &mut self.history {
            let now = self.device.now();
            if history.wants_sample(now) {
                let placed = placement(self.device);
                let report = self.device.flash_report_without_wear();
                history.sample(now, &report, placed.as_ref());
            }
        }
        let at = if self.warming && self.warmup_ends() {
            self.begin_measuring(at)
        } else {
            at
        };
        let since = self.device.metrics().since();
        let over = |max: Time| !self.warming && at.saturating_sub(since) >= max;
        if self.config.span_max.is_some_and(over) {
            return None;
        }
        if let Some(history) = &mut self.history {
            let device = &*self.device;
            history.submitting(self.submitted, || device.flash_report_without_wear());
        }
        if self.timeline.is_some() {
            self.note_request(request, at);
        }
        Some(at)
    }

    /// Whether the next request is the first to be measured.
    pub(crate) fn warmup_ends(&mut self) -> bool {
        self.submitted == self.warmup.look_at && self.warmup.is_over(self.device)
    }

    /// Completes the requests of the warm-up, resets all metrics, and starts the measurement. In an open loop, all
    /// later requests are postponed by the time that this takes. Returns the new arrival time of the next request.
    pub(crate) fn begin_measuring(&mut self, at: Time) -> Time {
        self.warming = false;
        while self.device.step() {}
        self.device.completions().clear();
        self.device.reset_metrics(self.config.series_interval);
        self.open_books();
        self.passes = Observed::default();
        self.placement_before = placement(self.device);
        self.begin_history();
        let now = self.device.now().max(at);
        self.start += now - at;
        self.agenda.begin(now);
        self.pause_at = self.pause_at.min(self.requests_max());
        if let Some(total) = self.warmup.total(self.config.requests_max) {
            self.control.total.store(total, Ordering::Relaxed);
        }
        self.control.enter(WorkPhase::Main);
        self.control.note_start();
        now
    }

    /// Restarts history and timeline, so that they exclude earlier requests.
    fn begin_history(&mut self) {
        let now = self.device.now();
        let history = || Box::new(History::new(now, self.placement_before.as_ref()));
        self.history = self.config.history.then(history);
        let ahead = self.device.submitted() - self.submitted;
        let recording = |window| Box::new(Recording::new(window, now, ahead));
        self.timeline = self
            .config
            .timeline
            .filter(|_| !self.warming)
            .map(recording);
        let records = self.history.is_some() || self.timeline.is_some();
        self.watches = self.warming || records || self.config.span_max.is_some();
        let takes = records || self.sink.is_some() || !self.agenda.is_empty();
        self.device.collect_completions(takes && !self.warming);
        self.only_counts = !self.watches && !takes;
    }

    /// Runs all events due up to and at `until`.
    #[inline]
    fn advance(&mut self, until: Time) {
        match self.timeline {
            None => self.device.advance(until),
            Some(_) => self.advance_recorded(until),
        }
    }

    /// Carries out the next fault of the agenda.
    #[cold]
    fn act(&mut self) {
        self.advance(self.agenda.next());
        self.agenda.act(self.device);
        if self.timeline.is_some() {
            self.look();
        }
    }

    /// Executes the next event of the device, or the next fault if that is earlier. Returns false if the device has no
    /// events left.
    #[inline]
    fn step(&mut self) -> bool {
        if self.timeline.is_none() && self.device.step_before(self.agenda.next()) {
            return true;
        }
        self.act_or_step()
    }

    /// Executes the next fault if it is due before the next event. Otherwise opens the timeline if due, and executes
    /// the next event of the device.
    #[cold]
    fn act_or_step(&mut self) -> bool {
        let Some(event) = self.device.next_event() else {
            return false;
        };
        if self.agenda.next() <= event {
            self.act();
            return true;
        }
        if self.timeline.is_some() {
            self.open_timeline(event);
        }
        let is_one = self.device.step();
        if self.timeline.is_some() {
            self.look();
        }
        is_one
    }

    /// Runs until all requests in flight and any rebuild have completed. If the run is stopped, only the requests are
    /// completed. Returns true if an observer stopped the run.
    fn finish(&mut self) -> Result<bool, SimError> {
        let mut steps = 0;
        while self.step() {
            self.drain(false)?;
            self.check_clock(self.device.now())?;
            steps += 1;
            if steps % LOOK == 0 {
                self.show_rebuild();
                if self.control.stopped() && self.device.outstanding() == 0 {
                    self.drain(true)?;
                    return Ok(true);
                }
            }
        }
        self.drain(true)?;
        Ok(false)
    }

    fn show_rebuild(&self) {
        if let Some(array) = S::array(self.device).filter(|_| !self.agenda.is_empty()) {
            let (done, of) = array.rebuild_progress().unwrap_or((0, 0));
            self.control.rows_rebuilt.store(done, Ordering::Relaxed);
            self.control.rows_to_rebuild.store(of, Ordering::Relaxed);
        }
    }

    /// Passes completions to the sink if at least [`BATCH`] of them are waiting or `all` is true.
    #[inline(always)]
    pub(crate) fn drain(&mut self, all: bool) -> Result<(), SimError> {
        match self.device.completions().len() >= BATCH || all {
            true => self.hand_on(),
            false => Ok(()),
        }
    }

    /// Passes completions to the sink.
    #[inline(never)]
    fn hand_on(&mut self) -> Result<(), SimError> {
        let mut completions = std::mem::take(self.device.completions());
        self.agenda.record(self.device, &completions);
        self.show_rebuild();
        if let Some(timeline) = self.timeline.as_deref_mut() {
            timeline.completed(&completions);
        }
        if !self.warming {
            if let Some(history) = &mut self.history {
                completions.iter().for_each(|c| history.record(c));
            }
            if let Some(sink) = &mut self.sink {
                sink(&completions)?;
            }
        }
        completions.clear();
        *self.device.completions() = completions;
        self.control.done.store(self.submitted, Ordering::Relaxed);
        Ok(())
    }

    /// Changes a request that reaches beyond the device as [`Beyond`] specifies. Returns false if the request is
    /// dropped.
    #[cold]
    fn bring_inside(&mut self, request: &mut Request) -> Result<bool, SimError> {
        match self.config.beyond {
            Beyond::Error => {
                let source = flashtwin::OutOfRange {
                    offset: request.offset,
                    bytes: request.bytes,
                    exported_bytes: self.exported_bytes,
                };
                Err(SimError::Beyond {
                    request: self.submitted + self.dropped,
                    source,
                })
            }
            Beyond::Drop => {
                self.dropped += 1;
                Ok(false)
            }
            Beyond::Wrap => {
                self.wrapped += 1;
                request.offset %= self.exported_bytes;
                request.bytes = request.bytes.min(self.exported_bytes - request.offset);
                Ok(true)
            }
        }
    }
}
