//! Pauses: at regular intervals, programs of the buffer are held for some time (`buffer.pause_us`). In a pause, they begin
//! at a constant rate (`buffer.pause_pages_per_s`), or not at all. Those that are still held at its end begin then. The
//! buffer treats a held program as begun: an evicted page frees its slot at once, and counts as a write-back in flight.

use std::collections::VecDeque;

use crate::device::link::PAUSE;
use crate::device::{Backend, Device};
use crate::nand::{Cause, Owner};
use crate::spec;
use crate::units::{Lpn, Stream, Time};

/// A program that a pause holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub lpn: Lpn,
    pub cause: Cause,
    pub owner: Owner,
    pub stream: Stream,
    pub fua: bool,
}

/// The pauses of a buffer.
#[derive(Clone, Debug)]
pub(super) struct Pauses {
    /// Time from the end of one pause to the end of the next one.
    every: Time,
    length: Time,
    /// Time between the beginnings of two programs in a pause; `None` if no program begins.
    gap: Option<Time>,
    /// Earliest instant at which the next program may begin in a pause.
    next: Time,
    /// Programs that are held, first in, first out.
    held: VecDeque<Held>,
}

impl Pauses {
    /// Returns the pauses of a buffer; `None` if it has none.
    pub fn new(buffer: &spec::Buffer) -> Option<Box<Pauses>> {
        let per_s = u64::from(buffer.pause_pages_per_s);
        (buffer.pause > Time::ZERO).then(|| {
            Box::new(Pauses {
                every: buffer.pause_every,
                length: buffer.pause,
                gap: (per_s > 0).then(|| Time(Time::from_us(1_000_000).0 / per_s)),
                next: Time::ZERO,
                held: VecDeque::new(),
            })
        })
    }

    /// Returns the end of the pause in progress; `None` between pauses. Pauses end at the multiples of `every`.
    fn end(&self, now: Time) -> Option<Time> {
        let (period, since) = (now.0 / self.every.0, now.0 % self.every.0);
        let begin = self.every.0 - self.length.0;
        (since >= begin).then(|| Time(period.saturating_add(1).saturating_mul(self.every.0)))
    }

    /// Returns whether a program may begin now, in a pause. If so, the next one may begin only after `gap`.
    fn begins(&mut self, now: Time) -> bool {
        let Some(gap) = self.gap else { return false };
        let begins = now >= self.next;
        if begins {
            self.next = Time(now.0.saturating_add(gap.0));
        }
        begins
    }

    /// Returns the instant at which to try to begin the first held program, in a pause that lasts until `end`.
    fn release(&self, end: Time) -> Time {
        self.gap.map_or(end, |_| self.next.min(end))
    }
}

impl<B: Backend> Device<B> {
    /// Holds the program if a pause is in progress. Returns whether the program is held.
    #[inline(always)]
    pub(super) fn is_held(&mut self, program: Held) -> bool {
        !B::PLAIN && self.cache.pauses.is_some() && self.hold(program)
    }

    #[inline(never)]
    fn hold(&mut self, program: Held) -> bool {
        let now = self.now;
        let Some(pauses) = &mut self.cache.pauses else {
            return false;
        };
        let Some(end) = pauses.end(now) else {
            return false;
        };
        if pauses.held.is_empty() && pauses.begins(now) {
            return false;
        }
        pauses.held.push_back(program);
        if pauses.held.len() == 1 {
            let at = pauses.release(end);
            self.set_pause_timer(at);
        }
        true
    }

    /// Begins held programs: all of them after a pause, and one in a pause.
    #[cold]
    pub(in crate::device) fn begin_held(&mut self) {
        self.link.pending.clear(PAUSE);
        let now = self.now;
        let Some(pauses) = &mut self.cache.pauses else {
            return;
        };
        let end = pauses.end(now);
        let held = pauses.held.len();
        let begun = match end {
            Some(_) => held.min(usize::from(pauses.begins(now))),
            None => held,
        };
        if let Some(end) = end.filter(|_| begun < held) {
            let at = pauses.release(end);
            self.set_pause_timer(at);
        }
        for _ in 0..begun {
            let program = self.cache.pauses.as_mut().and_then(|p| p.held.pop_front());
            let Some(program) = program else { return };
            let Held {
                lpn,
                cause,
                owner,
                stream,
                fua,
            } = program;
            self.queue_program(lpn, cause, owner, stream, fua);
        }
    }

    fn set_pause_timer(&mut self, at: Time) {
        let order = self.events.take_order();
        self.link.pending.set(PAUSE, at, order);
    }
}
