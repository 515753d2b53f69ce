//! Log entries of batches and collections. Start and end are both logged at dispatch, because the end is already
//! known.

use super::super::Place;
use super::*;

impl Msr {
    /// Returns the place in the log for operations on a plane. If the chip has several parallel units, the place is
    /// the unit of the plane, otherwise the chip.
    fn place(&self, chip: usize, plane: u32) -> Place {
        match self.params.parallel_units {
            1 => Place::Chip(chip as u32),
            units => Place::Unit(chip as u32, plane / (self.planes / units)),
        }
    }

    /// Logs the page operation that a chip started last. It was dispatched at `now`, and occupies the chip from
    /// `since` to `done_at`. `plane` is the plane to which a write goes. Does not log a write that found no free page.
    #[cold]
    pub(super) fn log_started(
        &mut self,
        chip: usize,
        plane: u32,
        now: Time,
        (since, done_at): (Time, Time),
    ) {
        let Done { op, written, .. } = self.service[chip].next.done;
        if !written {
            return;
        }
        let plane = match op.is_read() {
            true => self.serving(chip).plane_of_copy(op.lpn),
            false => plane,
        };
        let place = self.place(chip, plane);
        let Some(log) = &mut self.log else { return };
        log.push(FlashEvent::Begin {
            at: since,
            place,
            cause: op.cause,
            pages: 1,
            lpn: None,
            block: None,
            request: FlashEvent::NO_REQUEST,
        });
        log.push(FlashEvent::Page {
            at: now,
            chip: chip as u32,
            plane: self.params.copy_back.then_some(plane),
            lpn: op.lpn,
            cause: op.cause,
            place: Some(place),
            duration: done_at - now,
            request: op.request,
        });
        log.push(FlashEvent::End { at: done_at, place });
    }

    /// Logs a part of a collection, if a log is kept. `part` is the cause and the number of moved pages, or 0 for the
    /// erase of the block.
    #[inline]
    pub(super) fn log_part(&mut self, block: u32, part: (Cause, u32), at: Time, took: Time) {
        if self.log.is_some() && !self.ideal && took > Time::ZERO {
            self.log_part_kept(block, part, at, took);
        }
    }

    #[cold]
    fn log_part_kept(&mut self, block: u32, (cause, pages): (Cause, u32), at: Time, took: Time) {
        let plane = self.ftl.plane_of(block);
        let chip = (plane / self.planes) as usize;
        let place = self.place(chip, plane % self.planes);
        let block = self.block_number(chip, block);
        let Some(log) = &mut self.log else { return };
        log.push(FlashEvent::Begin {
            at,
            place,
            cause,
            pages,
            lpn: None,
            block: Some(block),
            request: FlashEvent::NO_REQUEST,
        });
        log.push(FlashEvent::End {
            at: at + took,
            place,
        });
    }

    /// Logs a GC action, which occupies the whole chip.
    #[cold]
    pub(super) fn log_clean(&mut self, chip: usize, at: Time, duration: Time) {
        let Some(log) = &mut self.log else { return };
        log.push(FlashEvent::collection(chip, true, at));
        log.push(FlashEvent::collection(chip, false, at + duration));
        log.push(FlashEvent::Clean {
            at,
            chip: chip as u32,
            duration,
        });
    }

    #[cold]
    pub(super) fn log_victim(&mut self, chip: usize, block: u32, valid: u32, now: Time) {
        let event = FlashEvent::Victim {
            at: now,
            chip: chip as u32,
            plane: self.ftl.plane_of(block) % self.planes,
            block: self.block_number(chip, block),
            valid,
        };
        if let Some(log) = &mut self.log {
            log.push(event);
        }
    }
}
