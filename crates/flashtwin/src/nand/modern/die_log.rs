//! Log entries of dies and channels.

use super::super::Place;
use super::*;

impl<M: Map> Modern<M> {
    fn place(&self, at: usize) -> Place {
        let die = self.die_of(at) as u32;
        match at >= 2 * self.chips.len() {
            true => Place::Ahead(die),
            false => Place::Chip(die),
        }
    }

    /// Logs that the operations of a lane begin.
    #[cold]
    pub(super) fn log_ops(&mut self, at: usize, now: Time) {
        let place = self.place(at);
        let lane = &self.lanes[at];
        let (Some(log), Some(first)) = (&mut self.log, lane.ops.first()) else {
            return;
        };
        log.push(FlashEvent::Begin {
            at: now,
            place,
            cause: first.op.cause,
            pages: lane.ops.len() as u32,
            lpn: None,
            block: None,
            request: FlashEvent::NO_REQUEST,
        });
        let chip = at % self.chips.len();
        for done in lane.ops.iter() {
            let plane = (self.map.lookup(done.op.lpn)).and_then(|ppn| self.layout.plane(ppn));
            log.push(FlashEvent::Page {
                at: now,
                chip: chip as u32,
                plane,
                lpn: done.op.lpn,
                cause: done.op.cause,
                place: Some(place),
                duration: done.transfer + done.array,
                request: done.op.request,
            });
        }
    }

    /// Logs that a die begins a step of a collection. `part` is the cause and the number of pages (0 for an erase).
    /// `block` is the block that the step reads or erases, numbered within the die. It is `None` if the step only
    /// programs moved pages.
    #[cold]
    pub(super) fn log_step(
        &mut self,
        die: usize,
        part: (Cause, u32),
        block: Option<u32>,
        now: Time,
    ) {
        let place = self.place(die);
        let Some(log) = &mut self.log else { return };
        log.push(FlashEvent::Begin {
            at: now,
            place,
            cause: part.0,
            pages: part.1,
            lpn: None,
            block,
            request: FlashEvent::NO_REQUEST,
        });
    }

    /// Logs the end of a lane's operations.
    #[cold]
    pub(super) fn log_end(&mut self, at: usize, now: Time) {
        let place = self.place(at);
        if let Some(log) = &mut self.log {
            log.push(FlashEvent::End { at: now, place });
        }
    }

    /// Logs that a lane begins a transfer over its channel.
    #[cold]
    pub(super) fn log_transfer(&mut self, at: usize, now: Time) {
        let lane = &self.lanes[at];
        let channel = usize::from(self.lanes[self.die_of(at)].channel);
        let Some(log) = &mut self.log else { return };
        // Finds the operation with the data being transferred. Reads complete one by one, each after its transfer, so
        // it is the first operation of the lane. Writes complete together, so its position follows from the number of
        // transfers that have not begun.
        let left = |step: &&Step| matches!(step, Step::Transfer(_));
        let left = lane.steps.iter().filter(left).count();
        let done = match lane.ops.first() {
            Some(first) if !first.op.is_read() => lane.ops.iter().rev().nth(left),
            first => first,
        };
        log.push(FlashEvent::Begin {
            at: now,
            place: Place::Channel(channel as u32),
            cause: done.map_or(Cause::GcMove, |done| done.op.cause),
            pages: 1,
            lpn: done.map(|done| done.op.lpn),
            block: None,
            request: FlashEvent::NO_REQUEST,
        });
    }

    /// Logs that a die begins GC, or ends it.
    #[inline]
    pub(super) fn log_gc(&mut self, die: usize, begins: bool, now: Time) {
        if self.log.is_some() {
            self.log_event(FlashEvent::collection(die, begins, now));
        }
    }

    #[cold]
    pub(super) fn log_event(&mut self, event: FlashEvent) {
        if let Some(log) = &mut self.log {
            log.push(event);
        }
    }
}
