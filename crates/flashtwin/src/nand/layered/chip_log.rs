//! Log entries of chips and channels: the beginning and end of each flash operation.
//!
//! The steps of a chip are planned in advance, and adjacent steps are merged, so that a chip has few events. The log
//! still needs each flash operation. A *note* describes one part of a merged step. When the step begins, its notes
//! become log entries.

use super::super::{Cause, FlashEvent, PageOp, Place};
use super::plan::{Costs, Lane};
use super::Layered;
use crate::ftl::chip::OpKind;
use crate::units::{Lpn, Time};

/// A note: data from which the log entry of one part of a step is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    cause: Cause,
    pages: u32,
    lpn: Option<Lpn>,
    block: Option<u32>,
    request: u32,
    /// Whether the flash operation begins with this part. `ends`: whether it ends with this part.
    begins: bool,
    ends: bool,
    on_channel: bool,
    time: Time,
}

impl Note {
    /// Creates the note of a flash operation. `host` is the host's operation if the flash operation reads or programs
    /// the host's page. It is `None` for map pages and moved pages.
    pub fn new(kind: OpKind, cause: Cause, host: Option<PageOp>) -> Note {
        let block = match kind {
            OpKind::Erase { block } => Some(block),
            _ => None,
        };
        Note {
            cause,
            pages: u32::from(block.is_none()),
            lpn: host.map(|op| op.lpn),
            block,
            request: host.map_or(FlashEvent::NO_REQUEST, |op| op.request),
            begins: false,
            ends: false,
            on_channel: false,
            time: Time::ZERO,
        }
    }

    fn log_begin(&mut self, chip: usize, at: Time, log: &mut Vec<FlashEvent>) {
        if std::mem::take(&mut self.begins) {
            log.push(self.event(Place::Chip(chip as u32), at));
        }
    }

    fn log_end(&self, chip: usize, at: Time, log: &mut Vec<FlashEvent>) {
        if self.ends {
            let place = Place::Chip(chip as u32);
            log.push(FlashEvent::End { at, place });
        }
    }

    fn event(&self, place: Place, at: Time) -> FlashEvent {
        FlashEvent::Begin {
            at,
            place,
            cause: self.cause,
            pages: self.pages,
            lpn: self.lpn,
            block: self.block,
            request: self.request,
        }
    }
}

impl Costs {
    /// Appends the notes of an operation, one for each part. Their order is that in which [`Costs::append`] appends
    /// the steps.
    pub fn note(&self, note: Note, kind: OpKind, lane: &mut Lane) {
        let mut parts = self.parts(kind);
        if self.has_own_pins {
            let whole = parts.iter().fold(Time::ZERO, |sum, &(time, _)| sum + time);
            parts = vec![(whole, false)];
        }
        let last = parts.len() - 1;
        let part = |(i, (time, on_channel))| Note {
            begins: i == 0,
            ends: i == last,
            on_channel,
            time,
            ..note
        };
        lane.notes.extend(parts.into_iter().enumerate().map(part));
    }
}

impl Layered {
    /// Logs the flash operations of a step in the flash array, which begins now and takes `time`.
    #[cold]
    pub(super) fn log_array(&mut self, chip: usize, time: Time, now: Time) {
        let Some(log) = &mut self.log else { return };
        let (notes, until) = (&mut self.lanes[chip].notes, now + time);
        let mut at = now;
        while let Some(note) = notes.front_mut().filter(|note| !note.on_channel) {
            if at + note.time > until {
                break;
            }
            note.log_begin(chip, at, log);
            at += note.time;
            note.log_end(chip, at, log);
            notes.pop_front();
        }
    }

    /// Logs the beginning of an operation that first needs its channel. The operation begins with the request for the
    /// channel, although it may have to wait for it.
    #[cold]
    pub(super) fn log_wait(&mut self, chip: usize, now: Time) {
        let Some(log) = &mut self.log else { return };
        if let Some(note) = self.lanes[chip].notes.front_mut() {
            note.log_begin(chip, now, log);
        }
    }

    /// Logs the transfer of a chip, which begins now and takes `time`.
    #[cold]
    pub(super) fn log_transfer(&mut self, chip: usize, time: Time, now: Time) {
        let Some(log) = &mut self.log else { return };
        let Some(note) = self.lanes[chip].notes.pop_front() else {
            return;
        };
        let place = Place::Channel((chip % self.channels.len()) as u32);
        let at = now + time;
        log.push(note.event(place, now));
        log.push(FlashEvent::End { at, place });
        note.log_end(chip, at, log);
    }

    /// Logs that a chip begins GC, or ends it.
    #[cold]
    pub(super) fn log_gc(&mut self, chip: usize, begins: bool, now: Time) {
        if let Some(log) = &mut self.log {
            log.push(FlashEvent::collection(chip, begins, now));
        }
    }

    /// Discards all notes, because logging has ended.
    pub fn forget_notes(&mut self) {
        for lane in self.lanes.iter_mut() {
            lane.notes.clear();
            lane.noted = false;
        }
    }
}
