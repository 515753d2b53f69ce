//! Pauses: at regular intervals, no program of the buffer begins for some time (`buffer.pause_us`). A program that
//! would begin in a pause is held until the end of the pause. The buffer nevertheless treats a held program as begun:
//! an evicted page passes on its slot (in background mode), and counts as a write-back in flight.

use crate::device::link::PAUSE;
use crate::device::{Backend, Device};
use crate::nand::{Cause, Owner};
use crate::spec;
use crate::units::{Lpn, Stream, Time};

/// A program that is held until the end of a pause.
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
    held: Vec<Held>,
}

impl Pauses {
    /// Returns the pauses of a buffer; `None` if it has none.
    pub fn new(buffer: &spec::Buffer) -> Option<Box<Pauses>> {
        let (every, length) = (buffer.pause_every, buffer.pause);
        let held = Vec::new();
        (length > Time::ZERO).then(|| {
            Box::new(Pauses {
                every,
                length,
                held,
            })
        })
    }

    /// Returns the end of the pause in progress; `None` between pauses. Pauses end at the multiples of `every`.
    fn end(&self, now: Time) -> Option<Time> {
        let (period, since) = (now.0 / self.every.0, now.0 % self.every.0);
        let begin = self.every.0 - self.length.0;
        (since >= begin).then(|| Time(period.saturating_add(1).saturating_mul(self.every.0)))
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
        pauses.held.push(program);
        if pauses.held.len() == 1 {
            let order = self.events.take_order();
            self.link.pending.set(PAUSE, end, order);
        }
        true
    }

    /// Begins the programs that were held.
    #[cold]
    pub(in crate::device) fn pause_ended(&mut self) {
        self.link.pending.clear(PAUSE);
        let Some(pauses) = &mut self.cache.pauses else {
            return;
        };
        for program in std::mem::take(&mut pauses.held) {
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
}
