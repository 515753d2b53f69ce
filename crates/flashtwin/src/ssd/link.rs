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

#[derive(Clone, Debug)]
pub(super) struct Link {
    overhead: Time,
    per_sector: Time,
    /// Pending instants of [`BUS`], [`OVERHEAD`] and [`BUFFER`].
    pub pending: [Time; 3],
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
            pending: [Time::NEVER; 3],
            commands: VecDeque::new(),
            arriving: VecDeque::new(),
            leaving: VecDeque::new(),
            on_bus: None,
            handing_on: false,
        }
    }

    /// The earliest pending instant, and which it is.
    #[inline]
    pub fn next(&self) -> (Time, usize) {
        let mut first = (self.pending[BUS], BUS);
        for which in [OVERHEAD, BUFFER] {
            if self.pending[which] < first.0 {
                first = (self.pending[which], which);
            }
        }
        first
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
            self.link.pending[OVERHEAD] = at;
        }
        self.link.commands.push_back((at, id));
    }

    pub(super) fn overhead_done(&mut self) {
        let (_, id) = self.link.commands.pop_front().expect("the overhead's event has a request");
        let next = self.link.commands.front().map_or(Time::NEVER, |&(at, _)| at);
        self.link.pending[OVERHEAD] = next;
        self.enter(id);
    }

    #[inline]
    fn enter(&mut self, id: ReqId) {
        if self.link.per_sector == Time::ZERO {
            return self.dispatch(id);
        }
        self.link.arriving.push_back(id);
        self.hand_on_bus();
    }

    /// A request's pages are all done.
    #[inline]
    pub(super) fn leave(&mut self, id: ReqId) {
        if self.link.per_sector == Time::ZERO {
            return self.complete(id);
        }
        self.link.leaving.push_back(id);
        self.hand_on_bus();
    }

    pub(super) fn bus_done(&mut self) {
        self.link.pending[BUS] = Time::NEVER;
        let id = self.link.on_bus.take().expect("the bus's event has a request");
        if self.requests[id].op == Op::Write {
            self.dispatch(id);
        } else {
            self.complete(id);
        }
        self.hand_on_bus();
    }

    /// Gives the free bus to the next request; those that need no bus time pass at once.
    fn hand_on_bus(&mut self) {
        if self.link.handing_on {
            return;
        }
        self.link.handing_on = true;
        while self.link.on_bus.is_none() {
            let (id, holds) = if let Some(id) = self.link.leaving.pop_front() {
                let r = &self.requests[id];
                (id, r.op == Op::Read && r.status == Status::Ok)
            } else if let Some(id) = self.link.arriving.pop_front() {
                let write = self.requests[id].op == Op::Write;
                if !write {
                    self.dispatch(id);
                    continue;
                }
                (id, true)
            } else {
                break;
            };
            if holds {
                self.link.on_bus = Some(id);
                let on_bus = self.link.per_sector * self.requests[id].link_sectors;
                self.link.pending[BUS] = self.now + on_bus;
            } else {
                self.complete(id);
            }
        }
        self.link.handing_on = false;
    }
}
