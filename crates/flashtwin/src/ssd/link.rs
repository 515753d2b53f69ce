//! The host link: command overhead, then one bus that requests cross one at a time.
//!
//! As the reference's device with "never disconnect" (reference-models 1.4): the bus is held while
//! a write is received or a read returned; finished requests go before new ones; a read takes no
//! bus time on its way in. Where a sector takes no time, there is no bus to wait for.

use std::collections::VecDeque;

use super::requests::ReqId;
use super::Ssd;
use crate::request::{Op, Status};
use crate::spec::DeviceSpec;
use crate::units::Time;

/// What the link and the buffer wait for, beside the flash.
pub(super) const BUS: usize = 0;
pub(super) const OVERHEAD: usize = 1;
pub(super) const BUFFER: usize = 2;
pub(super) const CPU: usize = 3;

#[derive(Clone, Debug)]
pub(super) struct Link {
    overhead: Time,
    per_sector: Time,
    /// Pending instants of [`BUS`], [`OVERHEAD`], [`BUFFER`] and [`CPU`], with their places in the
    /// order of setting.
    pub pending: [(Time, u64); 4],
    /// Requests in their command overhead, with its end.
    commands: VecDeque<(Time, ReqId)>,
    arriving: VecDeque<ReqId>,
    leaving: VecDeque<ReqId>,
    /// The request on the bus; or the bus is being handed on.
    on_bus: Option<ReqId>,
    handing_on: bool,
}

impl Link {
    pub fn new(spec: &DeviceSpec) -> Link {
        Link {
            overhead: spec.link.command_overhead,
            per_sector: spec.link.bus_per_sector,
            pending: [(Time::NEVER, 0); 4],
            commands: VecDeque::new(),
            arriving: VecDeque::new(),
            leaving: VecDeque::new(),
            on_bus: None,
            handing_on: false,
        }
    }

    /// Nobody holds the bus or waits for it.
    #[inline]
    fn is_free(&self) -> bool {
        self.on_bus.is_none()
            && !self.handing_on
            && self.leaving.is_empty()
            && self.arriving.is_empty()
    }

    /// The earliest pending instant.
    #[inline]
    pub fn next_time(&self) -> Time {
        let [bus, overhead, buffer, cpu] = self.pending;
        bus.0.min(overhead.0).min(buffer.0.min(cpu.0))
    }

    /// Which comes first, and its place in the order of setting.
    #[inline]
    pub fn next(&self) -> (usize, u64) {
        let mut first = BUS;
        for which in [OVERHEAD, BUFFER, CPU] {
            if self.pending[which] < self.pending[first] {
                first = which;
            }
        }
        (first, self.pending[first].1)
    }
}

impl Ssd {
    /// A request reaches the device.
    #[inline]
    pub(super) fn arrive(&mut self, id: ReqId) {
        if self.link.overhead == Time::ZERO {
            return self.enter(id);
        }
        let at = self.now + self.link.overhead;
        if self.link.commands.is_empty() {
            self.link.pending[OVERHEAD] = (at, self.events.take_order());
        }
        self.link.commands.push_back((at, id));
    }

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
        self.link.pending[OVERHEAD] = (next, self.events.take_order());
        self.enter(id);
    }

    #[inline]
    fn enter(&mut self, id: ReqId) {
        if self.link.per_sector == Time::ZERO {
            return self.reach_controller(id);
        }
        if !self.link.is_free() {
            return self.link.arriving.push_back(id);
        }
        if self.requests[id].op == Op::Write {
            return self.put_on_bus(id);
        }
        self.without_bus(|ssd| ssd.reach_controller(id));
    }

    /// Does something that may finish requests. They leave afterwards, one by one: no request is
    /// dispatched in the middle of another's work.
    #[inline]
    pub(super) fn without_bus(&mut self, work: impl FnOnce(&mut Ssd)) {
        let outer = std::mem::replace(&mut self.link.handing_on, true);
        work(self);
        self.link.handing_on = outer;
        self.hand_on_bus();
    }

    /// A request's pages are all done.
    #[inline]
    pub(super) fn leave(&mut self, id: ReqId) {
        if self.link.per_sector == Time::ZERO {
            return self.complete(id);
        }
        // Finished requests go before new ones: if none of them waits, nothing stands before this.
        if self.link.on_bus.is_some() || !self.link.leaving.is_empty() {
            return self.link.leaving.push_back(id);
        }
        if self.returns_data(id) {
            self.put_on_bus(id);
        } else {
            self.complete(id);
        }
    }

    /// The request holds the bus on its way out.
    #[inline]
    fn returns_data(&self, id: ReqId) -> bool {
        let r = &self.requests[id];
        r.op == Op::Read && r.status == Status::Ok
    }

    #[inline]
    fn put_on_bus(&mut self, id: ReqId) {
        self.link.on_bus = Some(id);
        let until = self.now + self.link.per_sector * self.requests[id].link_sectors;
        self.link.pending[BUS] = (until, self.events.take_order());
    }

    pub(super) fn bus_done(&mut self) {
        self.link.pending[BUS].0 = Time::NEVER;
        let id = self
            .link
            .on_bus
            .take()
            .expect("the bus's event has a request");
        if self.requests[id].op == Op::Write {
            self.without_bus(|ssd| ssd.reach_controller(id));
        } else {
            self.complete(id);
            self.hand_on_bus();
        }
    }

    /// Gives the free bus to the next request; those that need no bus time pass at once.
    fn hand_on_bus(&mut self) {
        if self.link.handing_on || self.link.is_free() {
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
