//! One SSD: host link, buffer, mapping and flash as one state machine.
//!
//! The methods are of four kinds. *Inputs*: [`Ssd::submit`] hands in a request at an instant.
//! *Time*: [`Ssd::next_event`] says when something will happen by itself, [`Ssd::step`] lets the
//! next such thing happen, [`Ssd::advance`] all up to an instant. *Outputs*: [`Ssd::completions`]
//! holds the finished requests, to be taken away by the caller. *State*: preconditioning, saving
//! and loading, and the metrics. Call them in the order of time: never submit before an instant up
//! to which the device has not been advanced.

mod cache;
mod controller;
mod link;
mod precondition;
mod requests;
mod wire;

use std::collections::VecDeque;

use crate::buffer::{Stream, UserPolicy};
use crate::divide::Divider;
use crate::events::EventQueue;
use crate::metrics::{Breakdown, FlashReport, Metrics};
use crate::nand::{Cause, Done, FlashEvent, Nand, PageOp};
use crate::request::{Completion, Op, Request, Status};
use crate::spec::{DeviceSpec, Partial, Placement};
use crate::units::{Lpn, Time};
use cache::Cache;
pub use cache::PowerCut;
use controller::Controller;
use link::Link;
use requests::{ReqId, Requests};

/// Marks the owner of a flash operation as a host request (else it is a cached page).
const OWNER_IS_REQUEST: u32 = 1 << 31;

/// A request whose address is not on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// First byte of the request.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Bytes the device exports.
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

/// An SSD. Cloning it clones its whole state.
#[derive(Clone, Debug)]
pub struct Ssd {
    spec: DeviceSpec,
    now: Time,
    events: EventQueue,
    nand: Nand,
    link: Link,
    controller: Controller,
    cache: Cache,
    requests: Requests,
    completions: Vec<Completion>,
    metrics: Metrics,
    address: Address,
    /// The round robin of dynamic placement: pages written since it began, modulo a whole turn. A chip
    /// gets as many as one of its programs takes before the next one does.
    next_write: u32,
    /// Requests done but for the time of buffer and processor, the next to leave first.
    in_buffer: VecDeque<(Time, ReqId)>,
    latencies: BufferLatencies,
    read_only: bool,
}

/// Access times of the buffer memory.
#[derive(Clone, Copy, Debug, Default)]
struct BufferLatencies {
    read: Time,
    write: Time,
    read_cache: Time,
}

/// Splitting addresses.
#[derive(Clone, Copy, Debug)]
struct Address {
    page_bytes: u64,
    page_shift: Option<u32>,
    exported_bytes: u64,
    by_stride: Divider,
    chips: u32,
    by_chips: Divider,
    static_placement: bool,
    pages_per_program: u32,
    /// Round requests outwards to whole pages.
    round: bool,
}

impl Address {
    fn new(spec: &DeviceSpec) -> Address {
        let page_bytes = spec.geometry.page_bytes as u64;
        Address {
            page_bytes,
            page_shift: page_bytes
                .is_power_of_two()
                .then(|| page_bytes.trailing_zeros()),
            exported_bytes: spec.exported_bytes(),
            by_stride: Divider::new(spec.ftl.stride_pages),
            chips: spec.geometry.chips,
            by_chips: Divider::new(spec.geometry.chips),
            static_placement: spec.ftl.placement == Placement::Static,
            pages_per_program: spec.pages_per_program(),
            round: spec
                .buffer
                .as_ref()
                .is_none_or(|b| b.partial == Partial::Round),
        }
    }

    #[inline]
    fn page_of(&self, byte: u64) -> u64 {
        match self.page_shift {
            Some(shift) => byte >> shift,
            None => byte / self.page_bytes,
        }
    }

    /// Chip of a page under static striping.
    #[inline]
    fn chip(&self, lpn: Lpn) -> u32 {
        self.by_chips.div_rem(self.by_stride.div(lpn.0)).1
    }
}

impl Ssd {
    /// A device that was never written.
    pub fn new(spec: &DeviceSpec) -> Ssd {
        Ssd::build(spec, None)
    }

    /// A device whose buffer is managed by `policy` instead of the one that `spec` names.
    pub fn with_policy(spec: &DeviceSpec, policy: Box<dyn UserPolicy>) -> Ssd {
        Ssd::build(spec, Some(policy))
    }

    fn build(spec: &DeviceSpec, policy: Option<Box<dyn UserPolicy>>) -> Ssd {
        let buffer = spec.buffer.as_ref();
        let nand = Nand::new(spec);
        Ssd {
            now: Time::ZERO,
            events: EventQueue::new(nand.resources()),
            link: Link::new(spec),
            controller: Controller::new(spec),
            cache: Cache::new(spec, policy),
            requests: Requests::default(),
            completions: Vec::new(),
            metrics: Metrics::default(),
            address: Address::new(spec),
            next_write: 0,
            in_buffer: VecDeque::new(),
            latencies: buffer.map_or(BufferLatencies::default(), |b| BufferLatencies {
                read: b.latency,
                write: b.write_latency,
                read_cache: if b.read_cache_pages > 0 {
                    b.read_cache_latency
                } else {
                    b.latency
                },
            }),
            read_only: false,
            spec: spec.clone(),
            nand,
        }
    }

    // ---- state ----

    /// What the device is.
    pub fn spec(&self) -> &DeviceSpec {
        &self.spec
    }

    /// The instant of the last thing that happened.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Bytes the host can address.
    pub fn exported_bytes(&self) -> u64 {
        self.address.exported_bytes
    }

    /// Requests submitted and not finished.
    pub fn outstanding(&self) -> usize {
        self.requests.len()
    }

    /// The device has reached its end of life: writes are refused, reads served.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// What the host's requests have met since the last [`Ssd::reset_metrics`].
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What the flash did since the last [`Ssd::reset_metrics`].
    pub fn flash_report(&self) -> FlashReport {
        let mut report = FlashReport::new(&self.nand, self.now, self.metrics.since());
        self.cache.report(&mut report);
        report
    }

    /// Starts all counters, histograms and the time series (one point every `interval`) at zero.
    pub fn reset_metrics(&mut self, interval: Option<Time>) {
        self.nand.reset_stats(self.now);
        self.metrics = Metrics::new(self.now, interval);
        self.cache.reset_counters();
    }

    /// Finished requests, oldest first. The caller clears them.
    pub fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.completions
    }

    /// Starts or stops the log of flash operations.
    pub fn set_flash_log(&mut self, on: bool) {
        self.nand.set_log(on);
    }

    /// Takes the flash operations logged since the last call.
    pub fn take_flash_log(&mut self) -> Vec<FlashEvent> {
        self.nand.take_log()
    }

    /// Checks the page map against itself, for tests: costs a pass over the device.
    pub fn check(&self) -> Result<(), String> {
        self.nand.ftl().check()
    }

    /// Logical pages with a flash copy.
    pub fn pages_mapped(&self) -> u64 {
        self.nand.ftl().pages_mapped()
    }

    /// Pages of flash that can be programmed without an erase, summary pages among them.
    pub fn free_flash_pages(&self) -> u64 {
        let ftl = self.nand.ftl();
        let per_block = ftl.shape.pages_per_block;
        let (cold, hot) = (ftl.shape.data_pages, ftl.shape.hot_pages);
        let streams = match self.spec.write_streams() {
            1 => &[(Stream::Cold, cold)][..],
            _ => &[(Stream::Cold, cold), (Stream::Hot, hot)],
        };
        let mut pages = 0;
        for pool in 0..ftl.shape.chips * ftl.shape.pools_per_chip {
            pages += u64::from(ftl.pool(pool).free * per_block);
            for &(stream, end) in streams {
                let next = ftl.next_page(pool, stream);
                if next < end {
                    pages += u64::from(end + (per_block - cold) - next);
                }
            }
        }
        pages
    }

    // ---- time ----

    /// When the next thing will happen by itself; `None` when the device is idle.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        let at = self.events.next_time().min(self.link.next_time());
        (at != Time::NEVER).then_some(at)
    }

    /// Lets all happen that is due up to and at `until`.
    #[inline]
    pub fn advance(&mut self, until: Time) {
        while self.step_until(until) {}
        self.now = self.now.max(until);
    }

    /// Lets the next pending thing happen; false if there is none.
    #[inline]
    pub fn step(&mut self) -> bool {
        self.step_until(Time(Time::NEVER.0 - 1))
    }

    /// Lets the next pending thing happen if it is due by `until`.
    #[inline]
    fn step_until(&mut self, until: Time) -> bool {
        let flash_at = self.events.next_time();
        let link_at = self.link.next_time();
        let at = flash_at.min(link_at);
        if at > until {
            return false;
        }
        debug_assert!(at >= self.now, "an event in the past");
        self.now = at;
        let flash_first = flash_at < link_at
            || flash_at == link_at && self.events.next_order() < self.link.next().1;
        if flash_first {
            self.flash_event();
        } else {
            match self.link.next().0 {
                link::BUS => self.bus_done(),
                link::WAY_OUT => self.out_done(),
                link::OVERHEAD => self.overhead_done(),
                link::CPU => self.controller_done(),
                _ => self.buffer_done(),
            }
        }
        true
    }

    fn flash_event(&mut self) {
        let Some(resource) = self.events.pop() else {
            return;
        };
        let (chip, done) = self.nand.on_event(resource, self.now, &mut self.events);
        if let Some(done) = &done {
            self.without_bus(|ssd| ssd.flash_done(done));
        }
        self.nand.activate(chip, self.now, &mut self.events);
        self.idle_chip(chip);
    }

    // ---- requests ----

    /// Starts loading what a request to come will touch first: a hint, for drivers that know what
    /// comes next.
    #[inline]
    pub fn prefetch(&self, request: &Request) {
        let page = self.address.page_of(request.offset).min(u32::MAX as u64) as u32;
        self.cache.prefetch(Lpn(page));
        if request.op == Op::Read || !self.cache.present {
            self.nand.ftl().prefetch(Lpn(page));
        }
    }

    /// Hands in a request at `now`; its [`Completion`] will carry `tag`.
    pub fn submit(&mut self, now: Time, request: &Request, tag: u64) -> Result<(), OutOfRange> {
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
        self.now = now;
        self.metrics.arrived(now);
        let id = self.requests.add(request, tag, now, &self.address);
        self.arrive(id);
        Ok(())
    }

    /// The request reaches flash and buffer: its pages are accessed in ascending order, each
    /// waiting only for itself (D-35).
    fn dispatch(&mut self, id: ReqId) {
        let r = &mut self.requests[id];
        r.dispatched = self.now;
        let (op, first, pages) = (r.op, r.first_page, r.pages);
        if self.read_only && matches!(op, Op::Write | Op::Trim) {
            r.status = Status::ReadOnly;
            return self.pages_done(id);
        }
        if pages == 0 && op != Op::Flush {
            return self.pages_done(id);
        }
        match op {
            Op::Flush => self.flush(id),
            Op::Trim => {
                for page in first..first + pages {
                    self.trim(Lpn(page));
                }
                self.pages_done(id);
            }
            Op::Read | Op::Write if self.cache.present => {
                let spans = r.spans(&self.address);
                for i in 0..pages {
                    self.cached_page(id, Lpn(first + i), spans.of(i, pages));
                }
            }
            Op::Read => {
                for page in first..first + pages {
                    self.direct_read(id, Lpn(page));
                }
            }
            Op::Write => {
                for page in first..first + pages {
                    let chip = self.chip_for_write(Lpn(page));
                    self.queue_flash(chip, Lpn(page), Cause::HostWrite, id.0 | OWNER_IS_REQUEST);
                }
            }
        }
    }

    fn direct_read(&mut self, id: ReqId, lpn: Lpn) {
        match self.chip_of_copy(lpn) {
            Some(chip) => self.queue_flash(chip, lpn, Cause::HostRead, id.0 | OWNER_IS_REQUEST),
            // Never written, or trimmed: there is nothing to read.
            None => self.page_done(id, Breakdown::default()),
        }
    }

    /// One page of a request is done; `parts` sum to the time since its dispatch.
    #[inline]
    fn page_done(&mut self, id: ReqId, parts: Breakdown) {
        let r = &mut self.requests[id];
        debug_assert_eq!(
            parts.total(),
            self.now - r.dispatched,
            "a page's time does not add up"
        );
        debug_assert!(r.left > 0, "a page completed twice");
        r.left -= 1;
        r.parts = parts;
        if r.left == 0 {
            self.pages_done(id);
        }
    }

    /// All pages are done: the buffer's own time, then the way out.
    #[inline]
    fn pages_done(&mut self, id: ReqId) {
        let search = self.search_left(id);
        let r = &mut self.requests[id];
        r.pages_done = self.now;
        let buffer = match r.op {
            Op::Flush => Time::ZERO,
            Op::Write => self.latencies.write,
            Op::Read if r.read_cache_only => self.latencies.read_cache,
            Op::Read | Op::Trim => self.latencies.read,
        };
        if buffer + search == Time::ZERO {
            return self.leave(id);
        }
        r.parts.cpu += search;
        r.parts.buffer += buffer;
        let at = self.now + search + buffer;
        let place = self.in_buffer.partition_point(|&(other, _)| other <= at);
        self.in_buffer.insert(place, (at, id));
        if place == 0 {
            self.link.pending[link::BUFFER] = (at, self.events.take_order());
        }
    }

    fn buffer_done(&mut self) {
        let (_, id) = self
            .in_buffer
            .pop_front()
            .expect("the buffer's event has a request");
        let next = self.in_buffer.front().map_or(Time::NEVER, |&(at, _)| at);
        self.link.pending[link::BUFFER] = (next, self.events.take_order());
        self.requests[id].pages_done = self.now;
        self.leave(id);
    }

    /// The host has its answer.
    fn complete(&mut self, id: ReqId) {
        let r = self.requests.remove(id);
        let mut breakdown = r.parts;
        breakdown.link = (r.dispatched - r.arrival - r.cpu) + (self.now - r.pages_done);
        breakdown.cpu += r.cpu;
        let completion = Completion {
            tag: r.tag,
            op: r.op,
            status: r.status,
            offset: r.offset,
            bytes: r.bytes,
            pages: r.pages,
            hits: r.hits,
            arrival: r.arrival,
            done: self.now,
            breakdown,
        };
        debug_assert_eq!(
            breakdown.total(),
            self.now - r.arrival,
            "the parts are not the whole"
        );
        self.metrics.completed(&completion);
        self.completions.push(completion);
    }

    // ---- flash ----

    #[inline]
    fn queue_flash(&mut self, chip: u32, lpn: Lpn, cause: Cause, owner: u32) {
        self.queue_program(chip, lpn, cause, owner, Stream::Cold);
    }

    #[inline]
    fn queue_program(&mut self, chip: u32, lpn: Lpn, cause: Cause, owner: u32, stream: Stream) {
        let op = PageOp {
            lpn,
            owner,
            cause,
            stream,
            enqueued: self.now,
            gc_before: Time::ZERO,
        };
        self.nand
            .enqueue(chip as usize, op, self.now, &mut self.events);
    }

    fn flash_done(&mut self, done: &Done) {
        if !done.written {
            self.read_only = true;
        }
        if done.op.owner & OWNER_IS_REQUEST == 0 {
            return self.cached_flash_done(done);
        }
        let id = ReqId(done.op.owner & !OWNER_IS_REQUEST);
        if !done.written {
            self.requests[id].status = Status::ReadOnly;
        }
        self.page_done(id, flash_parts(done, self.now));
    }

    /// Chip a write goes to.
    #[inline]
    fn chip_for_write(&mut self, lpn: Lpn) -> u32 {
        if self.address.static_placement {
            return self.address.chip(lpn);
        }
        let chip = self.next_write / self.address.pages_per_program;
        self.next_write += 1;
        if self.next_write == self.writes_a_turn() {
            self.next_write = 0;
        }
        chip
    }

    /// Pages that the round robin hands out until it begins anew.
    fn writes_a_turn(&self) -> u32 {
        self.address.chips * self.address.pages_per_program
    }

    /// Chip of the page's flash copy, if there is one.
    #[inline]
    fn chip_of_copy(&self, lpn: Lpn) -> Option<u32> {
        let ppn = self.nand.ftl().lookup(lpn)?;
        Some(if self.address.static_placement {
            self.address.chip(lpn)
        } else {
            self.nand.ftl().chip_of(ppn)
        })
    }
}

/// Where the time of a finished flash operation went, from its queueing until `now`.
#[inline]
fn flash_parts(done: &Done, now: Time) -> Breakdown {
    let waited = now - done.op.enqueued - done.transfer - done.array;
    let queue_gc = done.queue_gc.min(waited);
    Breakdown {
        queue_gc,
        queue_host: waited - queue_gc,
        transfer: done.transfer,
        array: done.array,
        ..Breakdown::default()
    }
}
