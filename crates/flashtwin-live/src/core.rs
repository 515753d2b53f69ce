//! Manages the calls in flight on the device. This module has no clock and no threads. A call is submitted at an
//! instant of device time. It is returned exactly once, when the device has run at least until the completion of the
//! call.

use std::sync::Arc;

use flashtwin::{Op, OutOfRange, PlacementId, PowerCut, Request, Status, Time};

use crate::recording::Recording;
use crate::Twin;

/// Largest request in bytes that the device receives. Longer calls are split into pieces, as a host's block layer would
/// split them.
const PIECE_BYTES_MAX: u64 = 1 << 20;
/// Largest number of pieces of a call. Callers split longer calls ([`Core::batch_bytes`]).
pub const BATCH_PIECES: u64 = 64;

/// A caller's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Operation.
    pub op: Op,
    /// First byte; 0 for a flush.
    pub offset: u64,
    /// Length in bytes; 0 for a flush.
    pub bytes: u64,
    /// Whether the call completes only when its data are on the medium (force unit access).
    pub fua: bool,
    /// Placement id of a write.
    pub placement: PlacementId,
}

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Status of the call: the worst status of its pieces.
    pub status: Status,
    /// Virtual time of the completion.
    pub due: Time,
}

/// A call in flight; `W` identifies its waiter.
#[derive(Debug)]
struct Place<W> {
    caller: Option<W>,
    pieces_left: u32,
    response: Response,
}

/// A device, and the calls in flight on it.
pub struct Core<W> {
    twin: Box<dyn Twin>,
    places: Vec<Place<W>>,
    free: Vec<u32>,
    piece_bytes: u64,
    recording: Option<Arc<Recording>>,
}

impl<W> Core<W> {
    /// Wraps a device without calls in flight.
    pub fn new(twin: Box<dyn Twin>) -> Core<W> {
        let page = u64::from(twin.page_bytes());
        Core {
            places: Vec::new(),
            free: Vec::new(),
            recording: None,
            piece_bytes: (PIECE_BYTES_MAX / page).max(1) * page,
            twin,
        }
    }

    /// Records all requests to the device that follow.
    pub(crate) fn record(&mut self, recording: Arc<Recording>) {
        self.recording = Some(recording);
    }

    /// Bytes of the longest call.
    pub fn batch_bytes(&self) -> u64 {
        self.piece_bytes * BATCH_PIECES
    }

    /// Returns the device.
    pub fn twin(&self) -> &dyn Twin {
        &*self.twin
    }

    /// Returns the device itself, for a caller that is going to stop it.
    pub fn twin_mut(&mut self) -> &mut dyn Twin {
        &mut *self.twin
    }

    /// Calls in flight.
    pub fn waiting(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Runs the device until `now`, and appends the completed calls to `finished`. If the device's own time is already
    /// later than `now`, it does not run further.
    pub fn advance(&mut self, now: Time, finished: &mut Vec<(W, Response)>) {
        self.twin.advance(now.max(self.twin.now()));
        self.hand_out(finished);
    }

    /// Submits a call at `now`. The call may complete immediately, and is then in `finished`.
    ///
    /// # Errors
    /// Fails if the call ends beyond the device.
    pub fn submit(
        &mut self,
        now: Time,
        call: &Call,
        caller: W,
        finished: &mut Vec<(W, Response)>,
    ) -> Result<(), OutOfRange> {
        debug_assert!(call.bytes <= self.batch_bytes(), "a call is too long");
        let exported_bytes = self.twin.exported_bytes();
        let end = call.offset.checked_add(call.bytes);
        if end.is_none_or(|end| end > exported_bytes) {
            return Err(OutOfRange {
                offset: call.offset,
                bytes: call.bytes,
                exported_bytes,
            });
        }
        let now = now.max(self.twin.now());
        self.advance(now, finished);
        let place = self.take_place(caller, now);
        let (mut at, end) = (call.offset, call.offset + call.bytes);
        loop {
            // Pieces end at page boundaries, because a page in two pieces would be processed twice.
            let piece_end = end.min((at / self.piece_bytes + 1) * self.piece_bytes);
            let request = Request {
                arrival: now,
                offset: at,
                bytes: piece_end - at,
                op: call.op,
                fua: call.fua,
                placement: call.placement,
            };
            self.places[place as usize].pieces_left += 1;
            self.twin.submit(now, &request, u64::from(place))?;
            if let Some(recording) = &self.recording {
                recording.add(&request);
            }
            at = piece_end;
            if at >= end {
                break;
            }
        }
        self.advance(now, finished);
        Ok(())
    }

    /// Returns all calls in flight as failed.
    pub fn abandon(&mut self, finished: &mut Vec<(W, Response)>) {
        let due = self.twin.now();
        let failed = Response {
            status: Status::Failed,
            due,
        };
        let callers = self
            .places
            .iter_mut()
            .filter_map(|place| place.caller.take());
        finished.extend(callers.map(|caller| (caller, failed)));
    }

    /// Simulates a power loss. All calls in flight fail. Returns `None` if the device cannot be used after the loss.
    pub fn cut_power(&mut self, finished: &mut Vec<(W, Response)>) -> Option<PowerCut> {
        self.abandon(finished);
        self.places.clear();
        self.free.clear();
        self.twin.cut_power()
    }

    fn take_place(&mut self, caller: W, now: Time) -> u32 {
        let place = Place {
            caller: Some(caller),
            pieces_left: 0,
            response: Response {
                status: Status::Ok,
                due: now,
            },
        };
        match self.free.pop() {
            Some(at) => {
                self.places[at as usize] = place;
                at
            }
            None => {
                self.places.push(place);
                self.places.len() as u32 - 1
            }
        }
    }

    fn hand_out(&mut self, finished: &mut Vec<(W, Response)>) {
        for done in self.twin.completions().drain(..) {
            let place = &mut self.places[done.tag as usize];
            place.pieces_left -= 1;
            place.response.due = place.response.due.max(done.done);
            if done.status as u8 > place.response.status as u8 {
                place.response.status = done.status;
            }
            if place.pieces_left == 0 {
                finished.extend(place.caller.take().map(|caller| (caller, place.response)));
                self.free.push(done.tag as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests;
