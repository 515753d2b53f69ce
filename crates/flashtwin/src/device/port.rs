//! Page operations from outside: the way into a device whose front end costs nothing.
//!
//! An array sends its members requests. Where a member has no link, no processor and no buffer to take
//! time, a request is nothing but its pages, each waiting only for itself (D-35): they go straight to
//! its flash, at the same instants as through the front end, and come back here.

use super::requests::number_in_logs;
use super::{Backend, Device, OWNER_IS_OUTSIDE};
use crate::events::EventQueue;
use crate::nand::{Cause, Done, PageOp};
use crate::units::Stream;
use crate::units::{Lpn, Time};

/// A page operation from outside that is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutsideDone {
    /// The tag with which it was sent by [`Device::submit_pages`].
    pub tag: u32,
    pub written: bool,
    pub queue_gc: Time,
    pub transfer: Time,
    pub array: Time,
}

impl OutsideDone {
    #[inline(always)]
    pub fn of(done: &Done) -> OutsideDone {
        OutsideDone {
            tag: done.op.owner & !OWNER_IS_OUTSIDE,
            written: done.written,
            queue_gc: done.queue_gc,
            transfer: done.transfer,
            array: done.array,
        }
    }

    /// The operation on a page that comes back with `tag`; `request` is the number that logs know it by.
    #[inline(always)]
    pub fn page<const READ: bool>(
        lpn: Lpn,
        fua: bool,
        now: Time,
        (tag, request): (u32, u32),
    ) -> PageOp {
        let (cause, fua) = match READ {
            true => (Cause::HostRead, false),
            false => (Cause::HostWrite, fua),
        };
        OutsideDone::page_for(lpn, (cause, fua), now, (tag, request))
    }

    #[inline(always)]
    fn page_for(
        lpn: Lpn,
        (cause, fua): (Cause, bool),
        now: Time,
        (tag, request): (u32, u32),
    ) -> PageOp {
        PageOp {
            lpn,
            owner: tag | OWNER_IS_OUTSIDE,
            cause,
            request,
            stream: Stream::Cold,
            fua,
            again: 0,
            enqueued: now,
            gc_before: Time::ZERO,
        }
    }

    /// There was nothing to do, or it was refused.
    fn at_once(tag: u32, written: bool) -> OutsideDone {
        OutsideDone {
            tag,
            written,
            queue_gc: Time::ZERO,
            transfer: Time::ZERO,
            array: Time::ZERO,
        }
    }
}

impl<B: Backend> Device<B> {
    /// Requests pass the front end in no time and are kept nowhere in it.
    pub(crate) fn is_bare(&self) -> bool {
        let is_free = self.link.is_free_of_cost() && self.controller.is_free_of_cost();
        is_free && !self.queues.is_limited() && !self.cache.present
    }

    /// What happens there happens now.
    #[inline]
    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// The number of a request that is kept elsewhere, as logs know it.
    pub(crate) fn take_number(&mut self) -> u32 {
        number_in_logs(self.requests.take_number())
    }

    /// What goes to its flash and comes back goes through here.
    #[inline(always)]
    fn port(&mut self) -> (Port<'_, B>, &mut EventQueue) {
        debug_assert!(self.is_bare(), "pages sent past a front end that has a say");
        let port = Port {
            backend: &mut self.backend,
            outside: &mut self.outside,
            read_only: &mut self.read_only,
        };
        (port, &mut self.events)
    }

    /// Reads or writes pages at `now`; each comes to [`Device::outside_done`] with `tag`. Only if
    /// [`Device::is_bare`].
    #[inline(always)]
    pub(crate) fn submit_pages(
        &mut self,
        now: Time,
        pages: (Lpn, u32),
        how: (Cause, bool),
        tag: u32,
    ) {
        debug_assert!(
            now >= self.now && self.next_event().is_none_or(|at| at >= now),
            "pages sent before the device was advanced"
        );
        self.now = now;
        let request = self.take_number();
        let (mut port, events) = self.port();
        port.submit(events, now, pages, how, (tag, request));
    }

    /// The same where what is pending at its flash is among `events`.
    #[inline(always)]
    pub(crate) fn submit_among(
        &mut self,
        events: &mut EventQueue,
        now: Time,
        pages: (Lpn, u32),
        how: (Cause, bool),
        tag: u32,
    ) {
        let request = self.take_number();
        self.port()
            .0
            .submit(events, now, pages, how, (tag, request));
    }

    /// One page likewise; false, with nothing done, if there is nothing to read or it is refused.
    #[inline(always)]
    pub(crate) fn submit_one_among<const READ: bool>(
        &mut self,
        events: &mut EventQueue,
        now: Time,
        page: Lpn,
        fua: bool,
        tag: u32,
    ) -> bool {
        let how = match READ {
            true => (Cause::HostRead, false),
            false => (Cause::HostWrite, fua),
        };
        let request = number_in_logs(self.requests.next_number());
        let sent = (self.port().0).submit_one(events, now, page, how, (tag, request));
        if sent {
            self.take_number();
        }
        sent
    }

    /// Forgets pages likewise.
    pub(crate) fn trim_among(
        &mut self,
        events: &mut EventQueue,
        now: Time,
        (first, pages): (Lpn, u32),
        tag: u32,
    ) {
        self.take_number();
        let read_only = self.read_only;
        let port = self.port().0;
        for lpn in first.0..first.0 + pages {
            if !read_only {
                port.backend.trim(Lpn(lpn), now, events);
            }
            port.outside.push(OutsideDone::at_once(tag, !read_only));
        }
    }

    /// What is pending at this resource of its flash, among `events`, happens; into `done` what of the pages is done by
    /// that.
    #[inline(always)]
    pub(crate) fn step_among(
        &mut self,
        events: &mut EventQueue,
        resource: usize,
        at: Time,
        done: &mut Option<Done>,
    ) {
        self.port().0.step(events, resource, at, done);
    }

    /// [`Device::advance`] for a bare device, where nothing but the flash has anything to do.
    #[inline]
    pub(crate) fn advance_flash(&mut self, until: Time) {
        while self.events.next_time() <= until {
            let at = self.events.next_time();
            debug_assert!(at >= self.now, "an event in the past");
            let Some(resource) = self.events.pop() else {
                break;
            };
            self.now = at;
            let (mut port, events) = self.port();
            let mut done = None;
            port.step(events, resource, at, &mut done);
            self.outside.extend(done.as_ref().map(OutsideDone::of));
        }
        self.now = self.now.max(until);
    }

    /// When its flash will next do something.
    #[inline]
    pub(crate) fn next_flash_event(&self) -> Time {
        self.events.next_time()
    }

    /// What of it is done, oldest first. The caller clears it.
    #[inline]
    pub(crate) fn outside_done(&mut self) -> &mut Vec<OutsideDone> {
        &mut self.outside
    }
}

/// The flash of a bare device, and what comes from it.
struct Port<'a, B> {
    backend: &'a mut B,
    outside: &'a mut Vec<OutsideDone>,
    read_only: &'a mut bool,
}

impl<B: Backend> Port<'_, B> {
    #[inline(always)]
    fn submit(
        &mut self,
        events: &mut EventQueue,
        now: Time,
        (first, pages): (Lpn, u32),
        (cause, fua): (Cause, bool),
        (tag, request): (u32, u32),
    ) {
        for lpn in first.0..first.0 + pages {
            let how = (cause, fua);
            if !self.submit_one(events, now, Lpn(lpn), how, (tag, request)) {
                // Nothing to read, or refused.
                let is_read = cause == Cause::HostRead;
                self.outside.push(OutsideDone::at_once(tag, is_read));
            }
        }
    }

    /// False, with nothing done, if there is nothing to read or it is refused.
    #[inline(always)]
    fn submit_one(
        &mut self,
        events: &mut EventQueue,
        now: Time,
        lpn: Lpn,
        how: (Cause, bool),
        what: (u32, u32),
    ) -> bool {
        let op = OutsideDone::page_for(lpn, how, now, what);
        let unit = match op.is_read() {
            true => self.backend.unit_of_copy(lpn),
            false if *self.read_only => None,
            false => Some(self.backend.unit_for_write(lpn)),
        };
        if let Some(unit) = unit {
            (self.backend).enqueue(unit as usize, op, now, events);
        }
        unit.is_some()
    }

    /// What is pending at a resource happens; into `done` what of the pages is done by that.
    #[inline(always)]
    fn step(
        &mut self,
        events: &mut EventQueue,
        resource: usize,
        at: Time,
        done: &mut Option<Done>,
    ) {
        self.backend.step(resource, at, events, done);
        if let Some(done) = done {
            debug_assert!(done.op.owner & OWNER_IS_OUTSIDE != 0, "whose page is this?");
            *self.read_only |= !done.written;
        }
        debug_assert!(
            self.backend.more_done().is_none(),
            "flash does one thing at a time"
        );
    }
}
