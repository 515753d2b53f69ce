//! Simulates a member ahead of the array. The member has received its parts (*pieces*) of the array's requests in
//! advance. Its responses are recorded with their instants.

use std::collections::VecDeque;

use super::drive::{Ask, Drive};
use super::response::Response;
use crate::array::table::{Table, NONE};
use crate::nand::Owner;
use crate::request::Op;
use crate::units::{Lpn, Time};

/// A piece: the part of a request that concerns one member.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Index of the array's request in the list of requests that the array received in advance.
    request: u32,
    at: Time,
    first: u32,
    pages: u32,
    op: Op,
    fua: bool,
}

/// A response, and its instant.
#[derive(Clone, Copy, Debug)]
struct Foreseen {
    at: Time,
    /// The response to a piece. Its field `owner` has the number of the piece's slot. `None` in the final entry, which
    /// only has the instant of the member's last event.
    response: Option<Response>,
}

/// A piece in flight.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Number of pages still in flight.
    left: u32,
    written: bool,
    /// The receiver of the response in the array. `None` until the array's own simulation sends the request to the
    /// member.
    owner: Option<Owner>,
}

/// The pieces that a member received ahead of the array, and its responses to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead {
    pieces: Vec<Piece>,
    slots: Table<Slot>,
    /// Slots of the pieces that the member has received in advance, but that the array's own simulation has not sent
    /// yet. They are in the order of sending.
    sent: VecDeque<u32>,
    responses: VecDeque<Foreseen>,
    /// Whether the member advances together with the array. This is so from [`Ahead::resume_serial`] until the next
    /// [`Ahead::run`].
    along: bool,
}

impl Ahead {
    /// Makes the member advance together with the array, because the next requests were not received in advance.
    pub fn resume_serial(&mut self) {
        self.along = true;
    }

    /// Adds a page of a request to the pieces. `number` is the index of the request in the list received in advance,
    /// and `at` is its arrival.
    pub fn foresee(&mut self, number: u32, at: Time, page: Lpn, op: Op, fua: bool) {
        match self.pieces.last_mut() {
            // Consecutive pages are joined to one piece, as the array joins them to one request.
            Some(p) if p.request == number && p.first + p.pages == page.0 => p.pages += 1,
            _ => self.pieces.push(Piece {
                request: number,
                at,
                first: page.0,
                pages: 1,
                op,
                fua,
            }),
        }
    }

    /// Returns the instant of the next recorded response. If the member advances together with the array, its next
    /// event counts, too. [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next_event(&self, drive: &Drive) -> Time {
        match self.along {
            true => self.next_response().min(drive.next_event()),
            false => self.next_response(),
        }
    }

    /// Returns the next recorded response; `None` if there is none, or if the array has not sent its request yet.
    fn first(&self) -> Option<&Foreseen> {
        let is_asked = |r: &Response| self.slots[r.owner.number()].owner.is_some();
        let first = self.responses.front();
        first.filter(|foreseen| foreseen.response.as_ref().is_none_or(is_asked))
    }

    /// Returns the instant of the next response that the array can receive; [`Time::NEVER`] if there is none.
    pub fn next_response(&self) -> Time {
        self.first().map_or(Time::NEVER, |foreseen| foreseen.at)
    }

    fn new_slot(&mut self, pages: u32, owner: Option<Owner>) -> u32 {
        self.slots.add(Slot {
            left: pages,
            written: true,
            owner,
        })
    }

    /// Takes the next response that is due by `now`.
    pub fn take(&mut self, now: Time) -> Option<Response> {
        loop {
            let foreseen = *self.first().filter(|foreseen| foreseen.at <= now)?;
            self.responses.pop_front();
            if let Some(response) = foreseen.response {
                let slot = response.owner.number();
                self.slots.remove(slot);
                let owner = self.slots[slot].owner?;
                return Some(Response { owner, ..response });
            }
        }
    }

    /// Whether all requests received in advance have been sent and completed.
    pub fn is_done(&self) -> bool {
        self.responses.is_empty() && self.slots.is_empty()
    }

    /// Simulates all pieces, then all events up to and including `until`. If `last` is true, simulates all events
    /// that remain.
    pub fn run(&mut self, drive: &mut Drive, until: Time, last: bool) {
        self.along = false;
        let mut pieces = std::mem::take(&mut self.pieces);
        let mut request = NONE;
        for piece in pieces.drain(..) {
            // Events due by the arrival of a request are processed before its first piece. No events are processed
            // between the pieces of one request.
            if std::mem::replace(&mut request, piece.request) != piece.request {
                self.note_responses(drive, piece.at);
            }
            let slot = self.new_slot(piece.pages, None);
            self.sent.push_back(slot);
            let ask = Ask {
                first: piece.first,
                pages: piece.pages,
                op: piece.op,
                fua: piece.fua,
                owner: Owner::member_request(slot),
            };
            drive.submit(&ask, piece.at, None);
        }
        self.pieces = pieces;
        self.note_responses(drive, until);
        if last {
            // This entry has the instant of the member's last event, so that the array's clock advances to this
            // instant.
            self.responses.push_back(Foreseen {
                at: drive.ssd.now(),
                response: None,
            });
        }
    }

    /// Called when the array sends a request to the member. If the request was simulated ahead, only the receiver of
    /// the response is recorded. Otherwise the member, which then advances together with the array, receives the
    /// request now.
    pub fn submit(&mut self, drive: &mut Drive, ask: &Ask, now: Time) {
        match self.sent.pop_front() {
            Some(slot) => self.slots[slot].owner = Some(ask.owner),
            None => {
                debug_assert!(self.along, "a piece that was not foreseen");
                let slot = self.new_slot(ask.pages, Some(ask.owner));
                let owner = Owner::member_request(slot);
                drive.submit(&Ask { owner, ..*ask }, now, None);
                self.collect(drive);
            }
        }
    }

    /// Processes all events up to and including `until`, and records the responses.
    fn note_responses(&mut self, drive: &mut Drive, until: Time) {
        loop {
            self.collect(drive);
            let next = drive.next_event();
            if next > until || next == Time::NEVER {
                return;
            }
            drive.advance(next);
        }
    }

    /// Moves the responses that the drive has produced into the list of recorded responses.
    fn collect(&mut self, drive: &mut Drive) {
        let at = drive.ssd.now();
        for response in drive.responses.drain(..) {
            let slot = &mut self.slots[response.owner.number()];
            slot.left = match response.is_whole {
                true => 0,
                false => slot.left - 1,
            };
            slot.written &= response.written;
            if slot.left == 0 {
                let response = Response {
                    written: slot.written,
                    is_whole: true,
                    ..response
                };
                self.responses.push_back(Foreseen {
                    at,
                    response: Some(response),
                });
            }
        }
    }

    /// Processes all events up to `now`, if the member advances together with the array.
    pub fn advance(&mut self, drive: &mut Drive, now: Time) {
        if self.along {
            self.note_responses(drive, now);
        }
    }
}
