//! Page operations from outside: the way into a device whose front end costs nothing.
//!
//! An array sends its members requests. Where a member has no link, no processor and no buffer to take
//! time, a request is nothing but its pages, each waiting only for itself (D-35): they go straight to
//! its flash, at the same instants as through the front end, and come back here.

use super::{Backend, Device, OWNER_IS_OUTSIDE};
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
        self.requests.take_number() as u32
    }

    /// Reads or writes pages at `now`; each comes to [`Device::outside_done`] with `tag`. Only if
    /// [`Device::is_bare`].
    #[inline(always)]
    pub(crate) fn submit_pages(
        &mut self,
        now: Time,
        (first, pages): (Lpn, u32),
        (cause, fua): (Cause, bool),
        tag: u32,
    ) {
        debug_assert!(self.is_bare(), "pages sent past a front end that has a say");
        debug_assert!(
            now >= self.now && self.next_event().is_none_or(|at| at >= now),
            "pages sent before the device was advanced"
        );
        self.now = now;
        let request = self.take_number();
        for lpn in first.0..first.0 + pages {
            let op = PageOp {
                lpn: Lpn(lpn),
                owner: tag | OWNER_IS_OUTSIDE,
                cause,
                request,
                stream: Stream::Cold,
                fua,
                again: 0,
                enqueued: now,
                gc_before: Time::ZERO,
            };
            let refused = !op.is_read() && self.read_only;
            let unit = match op.is_read() {
                true => self.backend.unit_of_copy(op.lpn),
                false if refused => None,
                false => Some(self.backend.unit_for_write(op.lpn)),
            };
            match unit {
                Some(unit) => (self.backend).enqueue(unit as usize, op, now, &mut self.events),
                // Nothing to read, or refused.
                None => self.outside.push(OutsideDone {
                    tag,
                    written: !refused,
                    queue_gc: Time::ZERO,
                    transfer: Time::ZERO,
                    array: Time::ZERO,
                }),
            }
        }
    }

    /// [`Device::advance`] for a bare device, where nothing but the flash has anything to do.
    #[inline]
    pub(crate) fn advance_flash(&mut self, until: Time) {
        while self.events.next_time() <= until {
            if let Some(page) = self.flash_step() {
                self.outside.push(page);
            }
        }
        self.now = self.now.max(until);
    }

    /// The same; a page operation that alone was done then is not among [`Device::outside_done`], but the result.
    #[inline(always)]
    pub(crate) fn advance_flash_to_one(&mut self, until: Time) -> Option<OutsideDone> {
        if self.events.next_time() > until {
            self.now = self.now.max(until);
            return None;
        }
        let page = self.flash_step();
        if self.events.next_time() > until && self.outside.is_empty() {
            self.now = self.now.max(until);
            return page;
        }
        self.outside.extend(page);
        self.advance_flash(until);
        None
    }

    /// The flash does the next thing that is pending: what of the pages is done by that.
    #[inline(always)]
    fn flash_step(&mut self) -> Option<OutsideDone> {
        let at = self.events.next_time();
        debug_assert!(at >= self.now, "an event in the past");
        let resource = self.events.pop()?;
        self.now = at;
        let mut done = None;
        let chip = (self.backend).on_event(resource, at, &mut self.events, &mut done);
        let page = done.map(|done| {
            debug_assert!(done.op.owner & OWNER_IS_OUTSIDE != 0, "whose page is this?");
            self.read_only |= !done.written;
            OutsideDone::of(&done)
        });
        debug_assert!(
            self.backend.more_done().is_none(),
            "flash does one thing at a time"
        );
        self.backend.activate(chip, at, &mut self.events);
        page
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
