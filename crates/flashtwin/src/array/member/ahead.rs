//! What a member has done ahead of the array: pieces foreseen, and their responses with their instants.

use std::collections::VecDeque;

use super::drive::Drive;
use super::spent::Spent;
use crate::array::table::{Table, NONE};
use crate::request::{Completion, Op, Status};
use crate::units::{narrow, Lpn, Time};

/// Something a member is asked.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Number of the array's request among those given together.
    request: u32,
    at: Time,
    first: u32,
    pages: u32,
    op: Op,
    fua: bool,
}

/// A piece that a member has done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub at: Time,
    /// The slot of the piece; [`NONE`]: the member has done something unasked.
    slot: u32,
    pub spent: Spent,
    pub written: bool,
}

/// A piece in flight.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Pages of it that are not done.
    left: u32,
    written: bool,
    /// The array's number for it, once the array has sent it.
    part: u32,
}

/// What a member has done ahead of the array.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead {
    pieces: Vec<Piece>,
    slots: Table<Slot>,
    /// Slots of the pieces that the array has not sent yet, in their order.
    sent: VecDeque<u32>,
    answers: VecDeque<Answer>,
    completions: Vec<Completion>,
    /// The member goes along with the array again, until more is foreseen.
    along: bool,
}

impl Ahead {
    /// Requests come that were not foreseen: the member goes along with the array.
    pub fn resume_serial(&mut self) {
        self.along = true;
    }

    /// Request `number` of those given together will ask for a page at `at`.
    pub fn foresee(&mut self, number: u32, at: Time, page: Lpn, op: Op, fua: bool) {
        match self.pieces.last_mut() {
            // As pages are joined to one request.
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

    /// When something happens next, of what it noted or of what it does, [`Time::NEVER`] if nothing does.
    #[inline]
    pub fn next_event(&self, drive: &Drive) -> Time {
        match self.along {
            true => self.next_answer().min(drive.next_event()),
            false => self.next_answer(),
        }
    }

    /// The next response, unless it is to something that the array has yet to ask.
    fn first(&self) -> Option<&Answer> {
        let asked = |a: &&Answer| a.slot == NONE || self.slots[a.slot].part != NONE;
        self.answers.front().filter(asked)
    }

    /// When the next known response comes, [`Time::NEVER`] if none does.
    pub fn next_answer(&self) -> Time {
        self.first().map_or(Time::NEVER, |answer| answer.at)
    }

    fn new_slot(&mut self, pages: u32, part: u32) -> u32 {
        self.slots.add(Slot {
            left: pages,
            written: true,
            part,
        })
    }

    /// The next response that has come by `now`, with the array's number for it.
    pub fn take(&mut self, now: Time) -> Option<(u32, Answer)> {
        loop {
            let answer = *self.first().filter(|answer| answer.at <= now)?;
            self.answers.pop_front();
            if answer.slot != NONE {
                self.slots.remove(answer.slot);
                return Some((self.slots[answer.slot].part, answer));
            }
        }
    }

    /// Everything foreseen has been asked and has completed.
    pub fn is_done(&self) -> bool {
        self.answers.is_empty() && self.slots.is_empty()
    }

    /// Runs through its pieces, then up to and at `until`; with `last` to its end.
    pub fn run(&mut self, drive: &mut Drive, until: Time, last: bool) {
        self.along = false;
        let mut pieces = std::mem::take(&mut self.pieces);
        let mut request = NONE;
        for piece in pieces.drain(..) {
            // What one request asks of a member comes all at once.
            if std::mem::replace(&mut request, piece.request) != piece.request {
                self.note_answers(drive, piece.at);
            }
            let slot = self.new_slot(piece.pages, NONE);
            self.sent.push_back(slot);
            let (pages, op) = ((piece.first, piece.pages), piece.op);
            drive.submit(piece.at, pages, op, piece.fua, slot);
        }
        self.pieces = pieces;
        self.note_answers(drive, until);
        if last {
            // The array's clock goes on to the last thing that happens.
            self.answers.push_back(Answer {
                at: drive.ssd.now(),
                slot: NONE,
                spent: Spent::default(),
                written: true,
            });
        }
    }

    /// The array asks for pages: for a piece that was foreseen, or, as the member goes along, for
    /// another.
    pub fn send(
        &mut self,
        drive: &mut Drive,
        now: Time,
        pages: (u32, u32),
        op: Op,
        fua: bool,
        part: u32,
    ) {
        match self.sent.pop_front() {
            Some(slot) => self.slots[slot].part = part,
            None => {
                debug_assert!(self.along, "a piece that was not foreseen");
                let slot = self.new_slot(pages.1, part);
                drive.submit(now, pages, op, fua, slot);
                self.collect(drive);
            }
        }
    }

    /// Lets all happen up to and at `until`.
    fn note_answers(&mut self, drive: &mut Drive, until: Time) {
        loop {
            self.collect(drive);
            let next = drive.next_event();
            if next > until || next == Time::NEVER {
                return;
            }
            drive.advance(next);
        }
    }

    /// Notes what has been done by now.
    fn collect(&mut self, drive: &mut Drive) {
        let at = drive.ssd.now();
        for page in drive.ssd.outside_done().drain(..) {
            let slot = &mut self.slots[page.tag];
            slot.left -= 1;
            slot.written &= page.written;
            if slot.left == 0 {
                self.answers.push_back(Answer {
                    at,
                    slot: page.tag,
                    spent: Spent::of_page(&page),
                    written: slot.written,
                });
            }
        }
        std::mem::swap(&mut self.completions, drive.ssd.completions());
        for c in self.completions.drain(..) {
            self.answers.push_back(Answer {
                at,
                slot: narrow(c.tag),
                spent: Spent::of(&c.breakdown),
                written: c.status == Status::Ok,
            });
        }
    }

    /// Lets all happen up to `now`, if the member goes along.
    pub fn advance(&mut self, drive: &mut Drive, now: Time) {
        if self.along {
            self.note_answers(drive, now);
        }
    }
}
