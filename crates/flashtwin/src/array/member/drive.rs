//! The SSD of a member, asked page by page where its front end takes no time.

use crate::array::clock::Clock;
use crate::events::EventQueue;
use crate::nand::{Cause, Done};
use crate::request::{Op, Request};
use crate::spec::DeviceSpec;
use crate::ssd::Ssd;
use crate::units::{Lpn, Time};

/// An SSD, and how it is asked.
#[derive(Clone, Debug)]
pub(crate) struct Drive {
    pub ssd: Ssd,
    /// Reads and writes go to its flash page by page: its front end takes no time.
    pub takes_pages: bool,
    /// Where what is pending at its flash stands in the array's event queue. `None`: it is in a queue of the SSD's own.
    pub place: Option<Place>,
}

/// A place in the array's event queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The first resource.
    pub first: usize,
    /// The member.
    pub member: usize,
}

impl Drive {
    pub fn new(spec: &DeviceSpec) -> Drive {
        let mut ssd = Ssd::new(spec);
        ssd.leave_measuring();
        Drive {
            takes_pages: ssd.is_bare(),
            ssd,
            place: None,
        }
    }

    /// Has its flash do something, with its resources among those of the array.
    #[inline(always)]
    pub fn among<T>(
        &mut self,
        place: Place,
        clock: &mut Clock,
        act: impl FnOnce(&mut Ssd, &mut EventQueue, Time) -> T,
    ) -> T {
        self.ssd.set_now(clock.now);
        clock.events.number_from(place.first);
        act(&mut self.ssd, clock.events, clock.now)
    }

    /// What is pending at a resource of its flash, among those of the array, happens; into `done` what of the pages is
    /// done by that.
    #[inline(always)]
    pub fn step_among(
        &mut self,
        place: Place,
        resource: usize,
        clock: &mut Clock,
        done: &mut Option<Done>,
    ) {
        self.ssd.set_now(clock.now);
        clock.events.number_from(place.first);
        let at = resource - place.first;
        self.ssd.step_among(clock.events, at, clock.now, done);
    }

    /// Asks for pages, or for something to be done about them, with what is pending in the array's queue; the
    /// response will carry `tag`.
    #[inline(always)]
    pub fn submit_among(
        &mut self,
        place: Place,
        clock: &mut Clock,
        (first, pages): (u32, u32),
        (op, fua): (Op, bool),
        tag: u32,
    ) {
        let pages = (Lpn(first), pages);
        self.among(place, clock, |ssd, events, now| match cause_of(op) {
            Some(cause) => ssd.submit_among(events, now, pages, (cause, fua), tag),
            None => ssd.trim_among(events, now, pages, tag),
        });
    }

    /// Asks for one page likewise; false, with nothing done, if there is nothing to read or it is refused.
    #[inline(never)]
    pub fn submit_one_among<const READ: bool>(
        &mut self,
        clock: &mut Clock,
        page: Lpn,
        fua: bool,
        tag: u32,
    ) -> bool {
        let Some(place) = self.place else {
            return false;
        };
        self.among(place, clock, |ssd, events, now| {
            ssd.submit_one_among::<READ>(events, now, page, fua, tag)
        })
    }

    /// The same on the short way, to a chip: `None` in place of false, else whether that chip may have begun to collect.
    #[inline(always)]
    pub fn submit_short<const READ: bool>(
        &mut self,
        clock: &mut Clock,
        page: (u32, Lpn),
        fua: bool,
        tag: u32,
    ) -> Option<bool> {
        clock.events.number_from(self.place?.first);
        (self.ssd).submit_short::<READ>(clock.events, clock.now, page, fua, tag)
    }

    /// Asks for pages, or for something to be done about them; the response will carry `tag`.
    #[inline(always)]
    pub fn submit(&mut self, now: Time, (first, pages): (u32, u32), op: Op, fua: bool, tag: u32) {
        match cause_of(op).filter(|_| self.takes_pages) {
            Some(cause) => (self.ssd).submit_pages(now, (Lpn(first), pages), (cause, fua), tag),
            None => {
                let page_bytes = u64::from(self.ssd.spec().geometry.page_bytes);
                let request = Request {
                    arrival: now,
                    offset: u64::from(first) * page_bytes,
                    bytes: u64::from(pages) * page_bytes,
                    op,
                    fua,
                };
                (self.ssd.submit(now, &request, tag.into()))
                    .expect("the layout stays within its members");
            }
        }
    }

    /// Lets all happen that is due by `now` in its own queue.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        match self.takes_pages {
            true => self.ssd.advance_flash(now),
            false => self.ssd.advance(now),
        }
    }

    /// When the next thing happens there, [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub fn next_event(&self) -> Time {
        match self.takes_pages {
            true => self.ssd.next_flash_event(),
            false => self.ssd.next_event().unwrap_or(Time::NEVER),
        }
    }

    /// Something it was sent is done and not taken yet.
    #[inline(always)]
    pub fn has_answers(&mut self) -> bool {
        !self.ssd.outside_done().is_empty() || !self.ssd.completions().is_empty()
    }
}

/// What pages are read or written for; `None` for what does neither.
#[inline(always)]
fn cause_of(op: Op) -> Option<Cause> {
    match op {
        Op::Read => Some(Cause::HostRead),
        Op::Write => Some(Cause::HostWrite),
        Op::Trim | Op::Flush => None,
    }
}
