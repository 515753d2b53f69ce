//! The controller's processor: one, which serves requests in the order of their queues (D-10).
//!
//! Each request occupies it for a fixed time before its pages are accessed, and for the entries that the published
//! policy inspects to find victims. The search delays the request that caused it and all later ones, but not the
//! flash operations that the request starts.

use super::requests::ReqId;
use super::{link, Backend, Device};
use crate::spec;
use crate::units::Time;

#[derive(Clone, Debug)]
pub(super) struct Controller {
    request: Time,
    scan_entry: Time,
    /// The request that the processor works for before its pages are accessed.
    at_work: Option<ReqId>,
    /// The request whose pages are being accessed.
    in_hand: Option<ReqId>,
    /// Entries inspected for the last request.
    inspected: u64,
    /// The request in hand has had its own time.
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

    /// How long the processor works for each request before its pages are accessed.
    #[inline(always)]
    pub fn work<B: Backend>(&self) -> Time {
        match B::PLAIN {
            true => Time::ZERO,
            false => self.request,
        }
    }

    /// The processor takes no time at all.
    #[inline]
    pub fn is_free_of_cost(&self) -> bool {
        self.request == Time::ZERO && self.scan_entry == Time::ZERO
    }
}

impl<B: Backend> Device<B> {
    /// A request has come over the host link.
    #[inline(always)]
    pub(super) fn reach_controller(&mut self, id: ReqId) {
        match self.takes_at_once() {
            true => self.dispatch(id),
            false => self.wait_for_controller(id),
        }
    }

    /// A request that has come over the host link is dispatched at once.
    #[inline(always)]
    pub(super) fn takes_at_once(&self) -> bool {
        B::PLAIN || self.controller.is_free_of_cost() && !self.queues.is_limited()
    }

    /// A request waits until the controller takes it.
    #[inline(never)]
    pub(super) fn wait_for_controller(&mut self, id: ReqId) {
        let is_free = self.controller.is_free_of_cost();
        // Holds the arrival time at the controller until the request is dispatched.
        self.requests[id].dispatched = self.now;
        self.queues.push(self.requests[id].queue, id);
        match (is_free, self.queues.waiting()) {
            (false, _) => self.next_request(),
            (true, 1) => self.take_commands(),
            // Those before it wait for a request to be finished.
            (true, _) => {}
        }
    }

    /// Lets the controller take what it may.
    pub(super) fn take_commands(&mut self) {
        if !self.controller.is_free_of_cost() {
            return self.next_request();
        }
        while let Some(id) = self.queues.take() {
            self.requests[id].controller = self.now - self.requests[id].dispatched;
            self.without_bus(|device| device.dispatch(id));
        }
    }

    /// The processor, if it has nothing to do, begins with the next request that it may take.
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

    /// The processor has done what it was at.
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

    /// Notes that the search for a victim inspected so many entries.
    #[inline]
    pub(super) fn charge_scan(&mut self, entries: u64) {
        self.controller.inspected += entries;
    }

    /// How long the processor will still search for a request whose pages are all done.
    #[inline]
    pub(super) fn search_left(&self, id: ReqId) -> Time {
        if self.controller.in_hand == Some(id) {
            return self.controller.scan_entry * self.controller.inspected;
        }
        self.requests[id].controller_until.saturating_sub(self.now)
    }
}
