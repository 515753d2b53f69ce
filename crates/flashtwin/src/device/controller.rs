//! The controller's processor. It serves one request at a time, in the order of the queues (D-10).
//!
//! A request takes processor time twice. First, it takes a fixed time, before its pages are accessed. Second, if victims
//! are evicted for it, it takes time for each list entry that a scan by the published algorithm would read. The flash
//! operations of the request start without waiting for this scan. The request completes, and the processor takes the
//! next request, only after the scan.

use super::requests::ReqId;
use super::{link, Backend, Device};
use crate::spec;
use crate::units::Time;

#[derive(Clone, Debug)]
pub(super) struct Controller {
    request: Time,
    scan_entry: Time,
    /// The request that the processor is working on before it accesses the request's pages.
    at_work: Option<ReqId>,
    /// The request whose pages the controller is accessing now.
    in_hand: Option<ReqId>,
    /// Number of list entries that searches for victims have inspected since the controller began to access the pages
    /// of the last request.
    inspected: u64,
    /// Whether the processor is busy with the search for the victims of the last request.
    searching: bool,
}

impl Controller {
    pub fn new(spec: &spec::Controller) -> Controller {
        Controller {
            request: spec.request,
            scan_entry: spec.scan_entry,
            at_work: None,
            in_hand: None,
            inspected: 0,
            searching: false,
        }
    }

    /// Returns the fixed time that the processor works for each request before its pages are accessed.
    #[inline(always)]
    pub fn work<B: Backend>(&self) -> Time {
        match B::PLAIN {
            true => Time::ZERO,
            false => self.request,
        }
    }

    /// Whether the processor takes no time for anything.
    #[inline]
    pub fn is_free_of_cost(&self) -> bool {
        self.request == Time::ZERO && self.scan_entry == Time::ZERO
    }
}

impl<B: Backend> Device<B> {
    /// Processes the arrival of a request at the controller.
    #[inline(always)]
    pub(super) fn reach_controller(&mut self, id: ReqId) {
        match self.takes_at_once() {
            true => self.dispatch(id),
            false => self.wait_for_controller(id),
        }
    }

    /// Whether the controller dispatches every request when it arrives, without waiting.
    #[inline(always)]
    pub(super) fn takes_at_once(&self) -> bool {
        B::PLAIN || self.controller.is_free_of_cost() && !self.queues.is_limited()
    }

    /// Lets a request wait until the controller takes it.
    #[inline(never)]
    pub(super) fn wait_for_controller(&mut self, id: ReqId) {
        let is_free = self.controller.is_free_of_cost();
        // Until the request is dispatched, this field holds the instant at which the request arrived at the controller.
        self.requests[id].dispatched = self.now;
        self.queues.push(self.requests[id].queue, id);
        match (is_free, self.queues.waiting()) {
            (false, _) => self.next_request(),
            (true, 1) => self.take_commands(),
            // Other requests already wait for the limit on commands, so this one waits behind them.
            (true, _) => {}
        }
    }

    /// Takes as many waiting requests as the limits permit.
    pub(super) fn take_commands(&mut self) {
        if !self.controller.is_free_of_cost() {
            return self.next_request();
        }
        while let Some(id) = self.queues.take() {
            self.requests[id].controller = self.now - self.requests[id].dispatched;
            self.without_bus(|device| device.dispatch(id));
        }
    }

    /// Starts the next request on the processor, if the processor is free.
    fn next_request(&mut self) {
        if self.controller.at_work.is_some() || self.controller.searching {
            return;
        }
        self.controller.at_work = self.queues.take();
        if self.controller.at_work.is_some() {
            let at = self.now + self.controller.request;
            let order = self.events.take_order();
            self.link.pending.set(link::CPU, at, order);
        }
    }

    /// Processes the end of the processor's present work.
    #[inline(never)]
    pub(super) fn controller_done(&mut self) {
        self.link.pending.clear(link::CPU);
        if std::mem::take(&mut self.controller.searching) {
            return self.next_request();
        }
        let id = self
            .controller
            .at_work
            .take()
            .expect("the processor's event has a request");
        let arrived = self.requests[id].dispatched;
        self.requests[id].controller = self.now - arrived;
        self.controller.inspected = 0;
        self.controller.in_hand = Some(id);
        self.without_bus(|device| device.dispatch(id));
        self.controller.in_hand = None;
        let search = self.controller.scan_entry * self.controller.inspected;
        if search > Time::ZERO {
            self.requests[id].controller_until = self.now + search;
            self.controller.searching = true;
            let order = self.events.take_order();
            self.link.pending.set(link::CPU, self.now + search, order);
        } else {
            self.next_request();
        }
    }

    /// Adds the number of list entries inspected in a search for victims.
    #[inline]
    pub(super) fn charge_scan(&mut self, entries: u64) {
        self.controller.inspected += entries;
    }

    /// Returns how much longer the processor searches for the victims of a request whose pages are all done.
    #[inline]
    pub(super) fn search_left(&self, id: ReqId) -> Time {
        if self.controller.in_hand == Some(id) {
            return self.controller.scan_entry * self.controller.inspected;
        }
        self.requests[id].controller_until.saturating_sub(self.now)
    }
}
