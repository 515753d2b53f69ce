//! The host link: command overhead, and the wire that transfers the data of requests.
//!
//! A bus (that of the reference simulator, or SATA) transfers one request at a time. The bus is held while a write is
//! received or a read is returned, as in DiskSim's device that never disconnects. Finished requests have priority over
//! new ones. The command of a read takes no bus time. On the reference's bus, it waits until the bus is free; on SATA,
//! it does not wait (command queueing). If the transfer of a sector takes no time, no request waits for the bus.
//!
//! The command overhead of a request has a constant part and a random part (`link.jitter_us`, D-235). Requests reach the
//! device in the order in which their overheads end.
//!
//! A duplex link (PCIe) has an inbound wire for writes and an outbound wire for reads. On each wire, requests are
//! served in order of arrival.

use std::collections::VecDeque;

use super::requests::ReqId;
use super::wire::Wire;
use super::{Backend, Device};
use crate::request::{Op, Status};
use crate::rng::Rng;
use crate::spec;
use crate::units::Time;

/// Timers, as indices into [`Pending`]: of the link (`BUS`, `OVERHEAD`, `WAY_OUT`), of the buffer memory, of the
/// controller's processor, of the buffer's policy (`QUIET`) and of the buffer's pauses.
pub(super) const BUS: usize = 0;
pub(super) const OVERHEAD: usize = 1;
pub(super) const BUFFER: usize = 2;
pub(super) const CPU: usize = 3;
pub(super) const WAY_OUT: usize = 4;
pub(super) const QUIET: usize = 5;
pub(super) const PAUSE: usize = 6;
/// Number of timers.
const TIMERS: usize = 7;

/// Seed of the random parts of command overheads. All devices have the same seed.
const JITTER_SEED: u64 = 2;

/// Mode of the link: how requests share the wire or wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Requests pass in no time.
    Free,
    /// One request at a time is on the bus. Its command waits for the bus, like its data.
    Bus,
    /// The data of one request at a time are on the bus. Commands without data, such as those of reads, do not wait for
    /// the bus.
    QueuedBus,
    /// In each direction, the data of one request at a time are on the wire.
    Duplex,
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    overhead: Time,
    /// Mean of the random part of the command overhead, and its generator; `None` if there is no random part.
    jitter: Option<Box<(Time, Rng)>>,
    wire: Wire,
    mode: Mode,
    pub pending: Pending,
    /// Requests in their command overhead, each with the end of that overhead, in the order of these ends.
    commands: VecDeque<(Time, ReqId)>,
    arriving: VecDeque<ReqId>,
    leaving: VecDeque<ReqId>,
    /// The request on the bus, or on the inbound wire.
    on_bus: Option<ReqId>,
    on_way_out: Option<ReqId>,
    handing_on: bool,
}

impl Link {
    pub fn new(spec: &spec::Link) -> Link {
        let wire = Wire::new(spec);
        let mode = match wire {
            _ if wire.is_none() => Mode::Free,
            _ if wire.is_duplex() => Mode::Duplex,
            _ if wire.queues_commands() => Mode::QueuedBus,
            _ => Mode::Bus,
        };
        Link {
            overhead: spec.command_overhead,
            jitter: (spec.jitter > Time::ZERO)
                .then(|| Box::new((spec.jitter, Rng::new(JITTER_SEED)))),
            wire,
            mode,
            pending: Pending::default(),
            commands: VecDeque::new(),
            arriving: VecDeque::new(),
            leaving: VecDeque::new(),
            on_bus: None,
            on_way_out: None,
            handing_on: false,
        }
    }

    /// Whether requests take no time on the link and do not wait for each other.
    pub fn is_free_of_cost(&self) -> bool {
        self.has_mode_alone(Mode::Free)
    }

    /// Whether the link has this mode and no command overhead.
    pub fn has_mode_alone(&self, mode: Mode) -> bool {
        !self.has_overhead() && self.mode == mode
    }

    #[inline(always)]
    fn has_overhead(&self) -> bool {
        self.overhead > Time::ZERO || self.jitter.is_some()
    }

    /// Whether no request holds the bus or waits for it.
    #[inline(always)]
    fn is_free(&self) -> bool {
        let waiting = self.leaving.len() | self.arriving.len();
        waiting == 0 && self.on_bus.is_none() && !self.handing_on
    }
}

/// Pending instants of the timers.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    /// For each timer, from the highest bits to the lowest: its instant, its position in the order in which timers were
    /// set, and its index.
    entries: [u128; TIMERS],
    /// Pending timers, as bits.
    set: u32,
    /// The least entry of the pending timers, that is, the next timer to end. It is stored because it is read more
    /// often than it changes.
    first: u128,
}

/// Number of bits of an entry that hold the index of the timer.
const WHICH_BITS: u32 = 3;

#[inline(always)]
fn entry(which: usize, at: Time, order: u64) -> u128 {
    u128::from(at.0) << 64 | u128::from(order << WHICH_BITS | which as u64)
}

impl Default for Pending {
    fn default() -> Pending {
        Pending {
            entries: [u128::MAX; TIMERS],
            set: 0,
            first: u128::MAX,
        }
    }
}

impl Pending {
    /// Returns the earliest pending instant; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next_time(&self) -> Time {
        Time((self.first >> 64) as u64)
    }

    /// Returns the index of the earliest timer.
    #[inline]
    pub fn next(&self) -> usize {
        self.first as usize & ((1 << WHICH_BITS) - 1)
    }

    /// Returns, for the timer that ends first, its position in the order in which timers were set.
    #[inline]
    pub fn next_order(&self) -> u64 {
        self.first as u64 >> WHICH_BITS
    }

    /// Whether only this timer is pending.
    pub fn is_only(&self, which: usize) -> bool {
        let is_pending = |entry: u128| entry >> 64 < u128::from(Time::NEVER.0);
        let pending = (0..TIMERS).filter(|&timer| is_pending(self.entries[timer]));
        pending.eq([which])
    }

    /// Sets or changes a timer.
    #[inline(always)]
    pub fn set(&mut self, which: usize, at: Time, order: u64) {
        let entry = entry(which, at, order);
        let was = std::mem::replace(&mut self.entries[which], entry);
        self.set |= 1 << which;
        if entry < self.first {
            self.first = entry;
        } else if was == self.first {
            self.find_first();
        }
    }

    /// On the plain path (the code for common devices, [`super::plain`]), returns the least entry of the pending timers
    /// other than [`BUS`]. Only [`QUIET`] can be among them, and only if the policy writes pages ahead of eviction
    /// (`ahead`).
    #[inline(always)]
    fn beside_bus(&self, ahead: bool) -> u128 {
        let others = if ahead { 1 << QUIET } else { 0 };
        debug_assert_eq!(self.set & !(1 << BUS | others), 0);
        match ahead {
            true => self.entries[QUIET],
            false => u128::MAX,
        }
    }

    /// Sets the timer of the bus, on the plain path (the code for common devices, [`super::plain`]).
    #[inline(always)]
    fn set_bus(&mut self, at: Time, order: u64, ahead: bool) {
        let entry = entry(BUS, at, order);
        self.first = entry.min(self.beside_bus(ahead));
        self.entries[BUS] = entry;
        self.set |= 1 << BUS;
    }

    /// Clears the timer of the bus, on the plain path (the code for common devices, [`super::plain`]).
    #[inline(always)]
    fn clear_bus(&mut self, ahead: bool) {
        self.first = self.beside_bus(ahead);
        self.entries[BUS] = u128::MAX;
        self.set &= !(1 << BUS);
    }

    /// Clears a timer.
    #[inline]
    pub fn clear(&mut self, which: usize) {
        let was = std::mem::replace(&mut self.entries[which], u128::MAX);
        self.set &= !(1 << which);
        if was == self.first {
            self.find_first();
        }
    }

    #[inline]
    fn find_first(&mut self) {
        self.first = u128::MAX;
        let mut left = self.set;
        while left != 0 {
            self.first = self.first.min(self.entries[left.trailing_zeros() as usize]);
            left &= left - 1;
        }
    }
}

impl<B: Backend> Device<B> {
    #[inline(always)]
    fn link_mode(&self) -> Mode {
        match B::PLAIN {
            true => Mode::Bus,
            false => self.link.mode,
        }
    }

    /// Processes the arrival of a request at the device.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn arrive(&mut self, id: ReqId) {
        if B::PLAIN || !self.link.has_overhead() {
            return self.enter(id);
        }
        let mut at = self.now + self.link.overhead;
        let mut place = self.link.commands.len();
        if let Some(jitter) = &mut self.link.jitter {
            let (mean, rng) = &mut **jitter;
            at += Time((rng.exponential() * mean.0 as f64) as u64);
            place = self.link.commands.partition_point(|&(end, _)| end <= at);
        }
        if place == 0 {
            let order = self.events.take_order();
            self.link.pending.set(OVERHEAD, at, order);
        }
        self.link.commands.insert(place, (at, id));
    }

    #[inline(never)]
    pub(super) fn overhead_done(&mut self) {
        let (_, id) = self
            .link
            .commands
            .pop_front()
            .expect("the overhead's event has a request");
        let next = self
            .link
            .commands
            .front()
            .map_or(Time::NEVER, |&(at, _)| at);
        let order = self.events.take_order();
        self.link.pending.set(OVERHEAD, next, order);
        self.enter(id);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn enter(&mut self, id: ReqId) {
        if self.link_mode() == Mode::Free {
            return self.reach_controller(id);
        }
        if self.link_mode() == Mode::Duplex {
            return match (self.requests[id].op, self.link.on_bus) {
                (Op::Write, Some(_)) => self.link.arriving.push_back(id),
                (Op::Write, None) => self.put_on_bus(id),
                _ => self.reach_controller(id),
            };
        }
        let is_write = self.requests[id].op == Op::Write;
        if !is_write && self.link_mode() == Mode::QueuedBus {
            return self.without_bus(|device| device.reach_controller(id));
        }
        if !self.link.is_free() {
            return self.link.arriving.push_back(id);
        }
        if is_write {
            return self.put_on_bus(id);
        }
        self.without_bus(|device| device.reach_controller(id));
    }

    /// Runs `work`, which may finish requests. After `work`, the finished requests return over the link, one after the
    /// other. If `work` itself calls this function, the requests return only after the outermost `work`, so that no
    /// other request is dispatched in between.
    #[inline(always)]
    pub(super) fn without_bus(&mut self, work: impl FnOnce(&mut Device<B>)) {
        let outer = std::mem::replace(&mut self.link.handing_on, true);
        work(self);
        self.link.handing_on = outer;
        self.hand_on_bus();
    }

    /// Runs `work` as `without_bus` does. Called only at the start of an event, when no other `work` is running.
    #[inline(always)]
    pub(super) fn without_bus_in_event(&mut self, work: impl FnOnce(&mut Device<B>)) {
        debug_assert!(!self.link.handing_on, "an event within another's work");
        self.link.handing_on = true;
        work(self);
        self.link.handing_on = false;
        self.hand_on_bus();
    }

    /// Lets a request whose pages are all done leave the device over the link.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn leave(&mut self, id: ReqId) {
        if self.link_mode() == Mode::Free {
            return self.complete(id);
        }
        if self.link_mode() == Mode::Duplex {
            return match (self.returns_data(id), self.link.on_way_out) {
                (true, Some(_)) => self.link.leaving.push_back(id),
                (true, None) => self.put_on_way_out(id),
                _ => self.complete(id),
            };
        }
        // Finished requests have priority over new ones. If the bus is free and no other finished request waits, this
        // request is the next.
        if self.link.on_bus.is_some() || !self.link.leaving.is_empty() {
            return self.link.leaving.push_back(id);
        }
        if self.returns_data(id) {
            self.put_on_bus(id);
        } else {
            self.complete(id);
        }
    }

    /// Whether the request occupies the link to return its data.
    #[inline(always)]
    fn returns_data(&self, id: ReqId) -> bool {
        let r = &self.requests[id];
        r.op == Op::Read && r.status == Status::Ok
    }

    /// Returns the time for which the data of a request occupy the wire.
    #[inline(always)]
    fn wire_time(&self, id: ReqId) -> Time {
        let sectors = self.requests[id].link_sectors(&self.address);
        if B::PLAIN {
            assert!(self.link.wire.is_bus(), "the wire of a plain front end");
        }
        self.link.wire.time(sectors)
    }

    #[inline(always)]
    fn put_on_bus(&mut self, id: ReqId) {
        self.link.on_bus = Some(id);
        let until = self.now + self.wire_time(id);
        let order = self.events.take_order();
        match B::PLAIN {
            true => self.link.pending.set_bus(until, order, B::AHEAD),
            false => self.link.pending.set(BUS, until, order),
        }
    }

    fn put_on_way_out(&mut self, id: ReqId) {
        self.link.on_way_out = Some(id);
        let until = self.now + self.wire_time(id);
        let order = self.events.take_order();
        self.link.pending.set(WAY_OUT, until, order);
    }

    /// Processes the end of the transfer of a read's data to the host.
    #[inline(never)]
    pub(super) fn out_done(&mut self) {
        self.link.pending.clear(WAY_OUT);
        let id = self
            .link
            .on_way_out
            .take()
            .expect("the event of the way out has a request");
        if let Some(next) = self.link.leaving.pop_front() {
            self.put_on_way_out(next);
        }
        self.complete(id);
    }

    pub(super) fn bus_done(&mut self) {
        match B::PLAIN {
            true => self.link.pending.clear_bus(B::AHEAD),
            false => self.link.pending.clear(BUS),
        }
        let id = self
            .link
            .on_bus
            .take()
            .expect("the bus's event has a request");
        if self.link_mode() == Mode::Duplex {
            if let Some(next) = self.link.arriving.pop_front() {
                self.put_on_bus(next);
            }
            return self.reach_controller(id);
        }
        if self.requests[id].op == Op::Write {
            self.without_bus_in_event(|device| match device.takes_at_once() {
                true => device.dispatch_now(id, Op::Write),
                false => device.wait_for_controller(id),
            });
        } else {
            self.complete(id);
            self.hand_on_bus();
        }
    }

    /// If the bus is free, gives it to the next request. Requests that need no bus time continue immediately.
    #[inline(always)]
    fn hand_on_bus(&mut self) {
        let waits = !self.link.leaving.is_empty() || !self.link.arriving.is_empty();
        if waits && self.link.on_bus.is_none() && !self.link.handing_on {
            self.pass_bus();
        }
    }

    #[inline(never)]
    fn pass_bus(&mut self) {
        if self.link_mode() == Mode::Duplex {
            return;
        }
        self.link.handing_on = true;
        while self.link.on_bus.is_none() {
            if let Some(id) = self.link.leaving.pop_front() {
                if self.returns_data(id) {
                    self.put_on_bus(id);
                } else {
                    self.complete(id);
                }
            } else if let Some(id) = self.link.arriving.pop_front() {
                if self.requests[id].op == Op::Write {
                    self.put_on_bus(id);
                } else {
                    self.reach_controller(id);
                }
            } else {
                break;
            }
        }
        self.link.handing_on = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;
    use crate::spec::builtin;
    use crate::{DeviceSpec, Ssd};

    /// Submits operations on one page each, all at the same instant, to a device without a buffer. Returns the instants
    /// of their completions, in nanoseconds. Without the link, a read takes no time, because no page was ever written,
    /// and a write takes 200 us.
    fn ends(kind: &str, ops: &[Op]) -> Vec<(Op, u64)> {
        ends_after("0", kind, ops)
    }

    /// As [`ends`], with a random part of the command overhead (`link.jitter_us`).
    fn ends_after(jitter_us: &str, kind: &str, ops: &[Op]) -> Vec<(Op, u64)> {
        let overrides = [
            ("buffer", "none"),
            ("link.kind", kind),
            ("link.command_overhead_us", "1"),
            ("link.jitter_us", jitter_us),
            ("timing.transfer_ns_per_byte", "0"),
        ];
        let spec = DeviceSpec::with_overrides(builtin("gcar").unwrap(), "gcar", &overrides);
        let mut ssd = Ssd::new(&spec.unwrap());
        for (i, &op) in ops.iter().enumerate() {
            let request = Request {
                arrival: Time::ZERO,
                offset: 4096 * i as u64,
                bytes: 4096,
                op,
                fua: false,
                ..Request::default()
            };
            ssd.submit(Time::ZERO, &request, 0).unwrap();
        }
        while ssd.step() {}
        let done = ssd.completions().drain(..);
        done.map(|done| (done.op, done.done.to_ns())).collect()
    }

    use Op::{Read, Write};

    #[test]
    fn on_pcie_reads_and_writes_do_not_wait_for_each_other() {
        // The transfer of a page takes 1137.5 ns in either direction.
        assert_eq!(
            ends("pcie", &[Read, Write, Read, Write]),
            [
                (Read, 2_138),
                (Read, 3_275),
                (Write, 202_138),
                (Write, 203_275)
            ]
        );
    }

    #[test]
    fn on_sata_they_cross_one_at_a_time() {
        // The transfer of a page takes 10 153.333 ns.
        assert_eq!(
            ends("sata", &[Read, Write, Read, Write]),
            [
                (Read, 11_153),
                (Read, 21_307),
                (Write, 231_460),
                (Write, 241_613)
            ]
        );
    }

    #[test]
    fn flushes_and_trims_take_no_time_on_a_wire() {
        for kind in ["pcie", "sata"] {
            let ended = ends(kind, &[Op::Flush, Op::Trim]);
            assert_eq!(ended, [(Op::Flush, 1_000), (Op::Trim, 1_000)]);
        }
    }
    #[test]
    fn jitter_delays_each_request_by_an_exponential_time() {
        for kind in ["pcie", "sata", "reference"] {
            let ended = ends_after("20", kind, &[Op::Trim; 6_000]);
            let delays: Vec<f64> = ended.iter().map(|(_, ns)| *ns as f64 / 1e3 - 1.0).collect();
            assert!(
                delays.is_sorted(),
                "an earlier end reaches the device first"
            );
            assert!(delays[0] >= 0.0, "{kind}: {} us", delays[0]);
            let mean = delays.iter().sum::<f64>() / 6_000.0;
            assert!((mean / 20.0 - 1.0).abs() < 0.06, "{kind}: {mean} us");
            for share in [0.5, 0.9, 0.99] {
                let (found, due) = (
                    delays[(6_000.0 * share) as usize],
                    -20.0 * f64::ln(1.0 - share),
                );
                assert!(
                    (found / due - 1.0).abs() < 0.12,
                    "{kind}: {found} us for {due}"
                );
            }
        }
    }
}
