//! A device as a state machine: a front end (host link, processor, buffer) and a back end (the flash of an SSD, or
//! the members of an array).
//!
//! The methods are of four kinds:
//!
//! - *Inputs*: [`Device::submit`] submits a request at an instant.
//! - *Time*: [`Device::next_event`] returns the instant of the next event, [`Device::step`] processes one event, and
//!   [`Device::advance`] processes all events up to an instant.
//! - *Outputs*: [`Device::completions`] has the finished requests, which the caller takes.
//! - *State*: preconditioning, saving and loading, and the metrics.
//!
//! Calls must be in the order of virtual time: a request must not be submitted at an instant before the one to which
//! the device has been advanced.

mod backend;
mod bare;
mod cache;
mod controller;
mod dispatch;
mod flash;
mod gauges;
mod link;
mod partial_write;
mod plain;
mod power;
mod queues;
mod requests;
mod wire;

use std::collections::VecDeque;

use crate::buffer::{Setup, Stream, UserPolicy};
use crate::events::EventQueue;
use crate::metrics::{FlashReport, Metrics};
use crate::nand::{Asked, Cause, Done, Owner, PageOp, Receiver};
use crate::request::{Breakdown, Completion, Op, Request, Status};
use crate::spec::{self, Partial};
use crate::units::{Lpn, Time};
pub(crate) use backend::sealed::{Work, NO_HOME};
pub use backend::Backend;
use cache::Cache;
pub use cache::{BufferEvent, PowerCut};
use controller::Controller;
pub use gauges::Gauges;
use link::Link;
use partial_write::PageWrites;
use plain::{on_path, Path};
use power::ProgramLog;
pub use power::{Durable, PageProgram};
use queues::Queues;
use requests::{PartsSet, ReqId, Requests};

/// Error: a request is not within the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// First byte of the request.
    pub offset: u64,
    /// Length of the request in bytes.
    pub bytes: u64,
    /// Number of bytes that the device exports.
    pub exported_bytes: u64,
}

impl std::fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "request of {} bytes at offset {} ends beyond the device's {} bytes",
            self.bytes, self.offset, self.exported_bytes
        )
    }
}

impl std::error::Error for OutOfRange {}

/// Parameters of a front end.
#[derive(Debug)]
pub(crate) struct Front<'a> {
    pub page_bytes: u32,
    pub exported_bytes: u64,
    pub host: &'a spec::Host,
    pub link: &'a spec::Link,
    pub controller: &'a spec::Controller,
    pub buffer: Option<&'a spec::Buffer>,
    /// Treatment of requests that cover only a part of a page.
    pub partial: Partial,
    /// Device parameters passed to the buffer's policy.
    pub setup: Setup,
    /// Whether the flash uses the placement that the host requests for writes.
    pub heeds_placement: bool,
}

/// A device: a front end and a back end. A clone has the same state as the original, including requests in flight. The
/// type is `repr(C)` because [`Device::as_plain`] depends on its layout.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Device<B: Backend> {
    now: Time,
    /// The compiled copy of the request path that is in use ([`plain`]).
    path: Path,
    pub(crate) events: EventQueue,
    pub(crate) backend: B,
    queues: Queues,
    link: Link,
    controller: Controller,
    cache: Cache,
    requests: Requests,
    completions: Vec<Completion>,
    collects_completions: bool,
    metrics: Metrics,
    address: Address,
    /// Requests whose pages are done, but whose access time of the buffer or search time of the processor has not
    /// ended. Each has the instant of this end. The earliest is first.
    in_buffer: VecDeque<(Time, ReqId)>,
    writes: PageWrites,
    programs: ProgramLog,
    latencies: BufferLatencies,
    pub(crate) read_only: bool,
    /// Whether the back end has lost data; if so, every request completes with [`Status::Failed`].
    pub(crate) broken: bool,
}

/// Access times of the buffer memory.
#[derive(Clone, Copy, Debug, Default)]
struct BufferLatencies {
    /// Whether neither the buffer memory nor the controller's processor takes any time.
    are_none: bool,
    read: Time,
    write: Time,
    read_cache: Time,
}

/// Converts addresses to pages and sectors.
#[derive(Clone, Copy, Debug)]
struct Address {
    page_bytes: u64,
    page_shift: Option<u32>,
    exported_bytes: u64,
    /// Whether requests are extended to whole pages.
    round: bool,
}

impl Address {
    fn new(front: &Front) -> Address {
        let page_bytes = u64::from(front.page_bytes);
        Address {
            page_bytes,
            page_shift: page_bytes
                .is_power_of_two()
                .then(|| page_bytes.trailing_zeros()),
            exported_bytes: front.exported_bytes,
            round: front.partial == Partial::Round,
        }
    }

    #[inline]
    fn page_of(&self, byte: u64) -> u64 {
        match self.page_shift {
            Some(shift) => byte >> shift,
            None => byte / self.page_bytes,
        }
    }
}

impl<B: Backend> Device<B> {
    /// Creates a device from `backend` and a front end. If `policy` is given, it manages the buffer instead of the
    /// policy that `front` names.
    pub(crate) fn behind(
        front: &Front,
        backend: B,
        policy: Option<Box<dyn UserPolicy>>,
    ) -> Device<B> {
        let latencies = front
            .buffer
            .map_or(BufferLatencies::default(), |b| BufferLatencies {
                are_none: false,
                read: b.latency,
                write: b.write_latency,
                read_cache: if b.read_cache_pages > 0 {
                    b.read_cache_latency
                } else {
                    b.latency
                },
            });
        let controller = Controller::new(front.controller);
        let times = [latencies.read, latencies.write, latencies.read_cache];
        let latencies = BufferLatencies {
            are_none: times == [Time::ZERO; 3] && controller.is_free_of_cost(),
            ..latencies
        };
        let mut device = Device {
            now: Time::ZERO,
            path: Path::ANY,
            events: EventQueue::new(backend.resources()),
            queues: Queues::new(front.host),
            link: Link::new(front.link),
            controller,
            cache: Cache::new(front, policy),
            requests: Requests::default(),
            completions: Vec::new(),
            collects_completions: true,
            metrics: Metrics::default(),
            address: Address::new(front),
            in_buffer: VecDeque::new(),
            writes: PageWrites::new(front),
            programs: ProgramLog::default(),
            latencies,
            read_only: false,
            broken: false,
            backend,
        };
        device.find_path();
        device.follow_times();
        device
    }

    /// Makes the back end record which units' loads or drain times change ([`Backend::load`], [`Backend::drain_time`]),
    /// if the buffer's policy requires this record. Otherwise stops the record. Must be called whenever the policy is
    /// replaced.
    fn follow_times(&mut self) {
        let follows = self.cache.present && self.cache.follows_times();
        self.backend.follow_times(follows);
    }

    // ---- state ----

    /// Returns the current instant: the one to which the device has been advanced.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of bytes that the host can address.
    pub fn exported_bytes(&self) -> u64 {
        self.address.exported_bytes
    }

    /// Returns the number of requests submitted so far. Because numbers begin with 0, the next request has this number.
    pub fn submitted(&self) -> u64 {
        self.requests.next_number()
    }

    /// Returns the number of requests submitted and not finished.
    pub fn outstanding(&self) -> usize {
        self.requests.len()
    }

    /// Whether the device has reached its end of life: writes are refused, reads served.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns the metrics of host requests since the last [`Device::reset_metrics`].
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the flash counters since the last [`Device::reset_metrics`].
    pub fn flash_report(&self) -> FlashReport {
        let mut report = self.backend.report(self.now, self.metrics.since());
        self.cache.report(&mut report);
        report
    }

    /// Returns the flash counters without the wear of blocks: `erase_spread` and `erase_counts` are empty. This is
    /// fast, because no blocks are visited. Intended for callers that poll a device in real time.
    pub fn flash_report_without_wear(&self) -> FlashReport {
        let since = self.metrics.since();
        let mut report = self.backend.report_without_wear(self.now, since);
        self.cache.report(&mut report);
        report
    }

    /// Returns the limit on write-backs in flight, and the time for which write-backs have waited because of this limit
    /// since the last [`Device::reset_metrics`]. Returns `None` if there is no limit, or if no write-back waited.
    pub fn write_back_limit(&self) -> Option<(u32, Time)> {
        self.cache.write_back_limit(self.now)
    }

    /// Resets all counters, histograms and the time series. The time series then has one point per `interval`.
    pub fn reset_metrics(&mut self, interval: Option<Time>) {
        self.backend.reset_stats(self.now);
        self.metrics = Metrics::new(self.now, interval);
        self.cache.reset_counters(self.now);
        self.find_path();
    }

    /// Stops the measurement of requests. Used for members of an array, because the array measures its requests
    /// itself.
    pub(crate) fn leave_measuring(&mut self) {
        self.metrics.leave_requests();
        self.find_path();
    }

    /// Resets the counters of flash and buffer to zero, even if requests are in flight. Used for members of an array,
    /// which may be busy while the array is idle.
    pub(crate) fn reset_flash_report(&mut self) {
        self.backend.reset_stats(self.now);
        self.metrics.flash_since(self.now);
        self.cache.reset_counters(self.now);
    }

    /// Sets whether [`Device::completions`] lists finished requests (default: true). If not, only the metrics count
    /// them.
    pub fn collect_completions(&mut self, collect: bool) {
        self.collects_completions = collect;
    }

    /// Returns the finished requests, oldest first. The caller clears the list.
    pub fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.completions
    }

    // ---- time ----

    /// Returns the instant of the next event; `None` if the device is idle. A device also counts as idle if its only
    /// pending event is that of a timer: some buffer policies write pages back after a time without host accesses.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        let at = self.next_time();
        (at != Time::NEVER && !self.awaits_silence()).then_some(at)
    }

    /// Whether the only pending event is that of a timer after which the buffer's policy writes pages back, because the
    /// host made no access. Only [`Device::advance`] processes this event. [`Device::step`] does not, because callers
    /// that step until all requests are complete would then wait for the timer.
    #[inline]
    fn awaits_silence(&self) -> bool {
        B::AHEAD && self.events.next_time() == Time::NEVER && self.link.pending.is_only(link::QUIET)
    }

    /// Processes all events up to and including `until`.
    #[inline]
    pub fn advance(&mut self, until: Time) {
        let limit = Time(until.0.saturating_add(1));
        if self.next_time() < limit {
            self.run_events(limit, 0);
        }
        self.now = self.now.max(until);
    }

    /// Processes events that are due before `limit`, until fewer than `below` requests are in the device. Then
    /// processes the remaining events of the same instant.
    #[inline]
    pub fn advance_below(&mut self, below: usize, limit: Time) {
        let at = self.next_time();
        if at < limit && (at == self.now || self.requests.len() >= below) {
            self.run_events(limit, below);
        }
    }

    /// Processes the next event; returns false if there is none.
    #[inline]
    pub fn step(&mut self) -> bool {
        self.step_before(Time::NEVER)
    }

    /// Processes the next event if it is due before `limit`; otherwise returns false.
    #[inline]
    pub fn step_before(&mut self, limit: Time) -> bool {
        let is_due = self.next_time() < limit && !self.awaits_silence();
        if is_due {
            // With the limit `Time::ZERO`, no event is due after the first one, so exactly one is processed.
            self.run_events(Time::ZERO, 0);
        }
        is_due
    }

    /// Returns the instant of the next event; [`Time::NEVER`] if there is none.
    #[inline]
    pub(crate) fn next_time(&self) -> Time {
        self.events.next_time().min(self.link.pending.next_time())
    }

    /// Processes the next event. Then processes further events that are due before `limit`, while at least `below`
    /// requests are in the device. Events of the same instant are always processed together.
    #[inline(always)]
    fn run_events(&mut self, limit: Time, below: usize) {
        debug_assert_eq!(self.path, self.path_now());
        on_path!(self, device => device.run_on(limit, below))
    }

    /// Processes events on the copy of the request path that is in use.
    #[inline(never)]
    fn run_on(&mut self, limit: Time, below: usize) {
        let mut link_at = self.link.pending.next_time();
        let mut end = self.end_of_run(limit, below);
        loop {
            let flash_at = self.events.next_time();
            let flash_first = flash_at < link_at
                || flash_at == link_at && self.events.next_order() < self.link.pending.next_order();
            let at = if flash_first { flash_at } else { link_at };
            debug_assert!(at >= self.now, "an event in the past");
            self.now = at;
            if !flash_first {
                self.link_event();
            }
            if !flash_first || self.flash_event() {
                self.resume_accesses();
                self.admit_pending();
                self.backend.settle(at, &mut self.events);
                link_at = self.link.pending.next_time();
                end = self.end_of_run(limit, below);
            }
            if self.events.next_time().min(link_at) >= end {
                return;
            }
        }
    }

    /// Returns the end of the present run of events. Events at or after the end are not processed. `now` must be before
    /// `limit`.
    #[inline(always)]
    fn end_of_run(&self, limit: Time, below: usize) -> Time {
        match self.requests.len() < below {
            true => Time(self.now.0 + 1),
            false => limit,
        }
    }

    /// Processes the event of the timer that ends first: of the link, the buffer, the processor or the buffer's policy.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn link_event(&mut self) {
        match self.link.pending.next() {
            link::QUIET if B::AHEAD => self.host_was_quiet(),
            _ if B::PLAIN => self.bus_done(),
            link::BUS => self.bus_done(),
            link::WAY_OUT => self.out_done(),
            link::OVERHEAD => self.overhead_done(),
            link::CPU => self.controller_done(),
            link::PAUSE => self.begin_held(),
            _ => self.buffer_done(),
        }
    }

    /// Processes the next event of the back end; returns false if it is internal to the back end.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn flash_event(&mut self) -> bool {
        let resource = self.events.pop_first();
        let (now, mut done) = (self.now, None);
        let chip = (self.backend).on_event(resource, now, &mut self.events, &mut done);
        let Some(chip) = chip else {
            debug_assert!(done.is_none() && self.backend.more_done().is_none());
            return false;
        };
        if let Some(done) = &done {
            self.without_bus_in_event(|device| {
                device.flash_done(done);
                while let Some(done) = device.backend.more_done() {
                    device.flash_done(&done);
                }
            });
        }
        self.backend.activate(chip, now, &mut self.events);
        self.idle_chip(chip);
        true
    }

    // ---- requests ----

    /// Prefetches, as a hint, the table entries that a future request accesses first. Drivers that know their next
    /// requests can call this.
    #[inline]
    pub fn prefetch(&self, request: &Request) {
        let page = self.address.page_of(request.offset).min(u32::MAX as u64) as u32;
        self.cache.prefetch(Lpn(page));
        if request.op == Op::Read || !self.cache.present {
            self.backend.prefetch(Lpn(page));
        }
    }

    /// Submits a request at `now`; its [`Completion`] carries `tag`.
    ///
    /// # Errors
    /// Fails, with nothing changed, if the request ends beyond the device.
    pub fn submit(&mut self, now: Time, request: &Request, tag: u64) -> Result<(), OutOfRange> {
        self.submit_by(now, request, tag, None)
    }

    /// Submits a request to the submission queue with the number `queue`, instead of the one that `host.assign`
    /// selects. Numbers beyond the last queue wrap around.
    ///
    /// # Errors
    /// Fails as [`Device::submit`] does.
    pub fn submit_to(
        &mut self,
        now: Time,
        request: &Request,
        tag: u64,
        queue: u16,
    ) -> Result<(), OutOfRange> {
        self.submit_by(now, request, tag, Some(queue))
    }

    fn submit_by(
        &mut self,
        now: Time,
        request: &Request,
        tag: u64,
        queue: Option<u16>,
    ) -> Result<(), OutOfRange> {
        debug_assert_eq!(self.path, self.path_now());
        on_path!(self, device => device.submit_on(now, request, tag, queue))
    }

    /// Submits a request on the copy of the request path that is in use.
    fn submit_on(
        &mut self,
        now: Time,
        request: &Request,
        tag: u64,
        queue: Option<u16>,
    ) -> Result<(), OutOfRange> {
        debug_assert!(now >= self.now, "submitted in the past");
        debug_assert!(
            self.next_event().is_none_or(|at| at >= now),
            "submitted before the device was advanced"
        );
        let out_of_range = OutOfRange {
            offset: request.offset,
            bytes: request.bytes,
            exported_bytes: self.address.exported_bytes,
        };
        let end = request
            .offset
            .checked_add(request.bytes)
            .ok_or(out_of_range)?;
        if end > self.address.exported_bytes {
            return Err(out_of_range);
        }
        self.begin(now, request, tag, queue);
        Ok(())
    }

    /// Records the placement of a request, if the flash uses it.
    #[inline(always)]
    fn accept(&mut self, id: ReqId, request: &Request) {
        if self.backend.heeds_placement() {
            self.requests[id].placement = request.placement;
            if request.op == Op::Write {
                self.backend.accept(self.requests[id].asked());
            }
        }
    }

    /// Accepts a request whose addresses are valid: stores it and puts it into its submission queue.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin(&mut self, now: Time, request: &Request, tag: u64, queue: Option<u16>) {
        self.now = now;
        self.metrics.arrived(now, B::PLAIN);
        if B::PLAIN {
            assert!(self.address.page_shift.is_some(), "pages of a power of two");
        }
        let id = self.requests.add(request, tag, now, &self.address);
        if !B::PLAIN {
            self.accept(id, request);
        }
        let queue = match queue {
            _ if B::PLAIN => 0,
            Some(number) => self.queues.queue_of(number),
            None => self.queues.queue_for(request.op),
        };
        self.enter_queue(id, queue);
        self.resume_accesses();
        self.backend.settle(now, &mut self.events);
    }
}
