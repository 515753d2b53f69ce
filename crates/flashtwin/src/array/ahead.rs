//! Members simulated ahead, each by itself, so that a driver can do so on several threads.
//!
//! Where nothing that a member does decides what another member is asked, or when, the requests to
//! all of them follow from the array's requests alone: striping without redundancy, no coordinator, no
//! buffer, and no link or processor of the array's own. Requests known beforehand can then be given to
//! the members at once. Each runs through its own up to the last arrival, as a task of its own, and
//! notes its answers with their instants. After that the array takes in the same requests one by
//! one, as always, and finds the answers where it would have waited for them:
//!
//! ```text
//! requests --split--> member 0: pieces --task 1--> answers --.
//!          `--------> member 1: pieces --task 2--> answers --+--> the array, request by request
//! ```
//!
//! What comes out is the same to the last bit, for in such arrays members' events at one instant happen
//! in the order of members, whatever was set first (D-113).

use std::collections::VecDeque;

use super::coordinate::Coordinator;
use super::executor::{Executor, Task};
use super::layout::Spot;
use super::member::Member;
use super::raid::{Raid, Spent};
use super::stripes::NONE;
use super::Array;
use crate::request::{Completion, Op, Request, Status};
use crate::spec::{ArraySpec, DeviceSpec, Level, Reads};
use crate::units::{Lpn, Time};

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
pub(super) struct Answer {
    pub at: Time,
    /// The slot of the piece; [`NONE`]: the member has done something that nobody asked for.
    slot: u32,
    pub spent: Spent,
    pub written: bool,
}

/// A piece under way.
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
pub(super) struct Ahead {
    pieces: Vec<Piece>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots of the pieces that the array has not sent yet, in their order.
    sent: VecDeque<u32>,
    answers: VecDeque<Answer>,
    completions: Vec<Completion>,
    /// The member goes along with the array again, until more is foreseen.
    along: bool,
}

impl Ahead {
    /// The member goes along with the array.
    pub fn goes_along(&self) -> bool {
        self.along
    }

    /// The next answer, unless it is to something that the array has yet to ask.
    fn first(&self) -> Option<&Answer> {
        let asked = |a: &&Answer| a.slot == NONE || self.slots[a.slot as usize].part != NONE;
        self.answers.front().filter(asked)
    }

    /// When the next answer that is known comes, [`Time::NEVER`] if none does.
    pub fn next_answer(&self) -> Time {
        self.first().map_or(Time::NEVER, |answer| answer.at)
    }

    fn new_slot(&mut self, pages: u32, part: u32) -> u32 {
        let new = Slot {
            left: pages,
            written: true,
            part,
        };
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(slot as usize) {
            Some(old) => *old = new,
            None => self.slots.push(new),
        }
        slot
    }

    /// The next answer that has come by `now`, with the array's number for it.
    pub fn take(&mut self, now: Time) -> Option<(u32, Answer)> {
        loop {
            let answer = *self.first().filter(|answer| answer.at <= now)?;
            self.answers.pop_front();
            if answer.slot != NONE {
                self.free.push(answer.slot);
                return Some((self.slots[answer.slot as usize].part, answer));
            }
        }
    }

    /// Everything foreseen has been asked and answered.
    pub fn is_done(&self) -> bool {
        self.answers.is_empty() && self.free.len() == self.slots.len()
    }
}

impl Member {
    /// Runs through its pieces, then up to and at `until`; with `last` to its end.
    fn run_ahead(&mut self, until: Time, last: bool) {
        let Some(mut ahead) = self.ahead.take() else {
            return;
        };
        ahead.along = false;
        let mut pieces = std::mem::take(&mut ahead.pieces);
        let mut request = NONE;
        for piece in pieces.drain(..) {
            // What one request asks of a member comes all at once.
            if std::mem::replace(&mut request, piece.request) != piece.request {
                self.note_answers(&mut ahead, piece.at);
            }
            let slot = ahead.new_slot(piece.pages, NONE);
            ahead.sent.push_back(slot);
            let (pages, op) = ((piece.first, piece.pages), piece.op);
            self.submit(piece.at, pages, op, piece.fua, slot);
        }
        ahead.pieces = pieces;
        self.note_answers(&mut ahead, until);
        if last {
            // The array's clock goes on to the last thing that happens.
            ahead.answers.push_back(Answer {
                at: self.ssd.now(),
                slot: NONE,
                spent: Spent::default(),
                written: true,
            });
        }
        self.ahead = Some(ahead);
    }

    /// The array asks for pages: for a piece that was foreseen, or, as the member goes along, for
    /// another.
    pub(super) fn send_ahead(
        &mut self,
        now: Time,
        pages: (u32, u32),
        op: Op,
        fua: bool,
        part: u32,
    ) {
        let Some(mut ahead) = self.ahead.take() else {
            return;
        };
        match ahead.sent.pop_front() {
            Some(slot) => ahead.slots[slot as usize].part = part,
            None => {
                debug_assert!(ahead.along, "a piece that was not foreseen");
                let slot = ahead.new_slot(pages.1, part);
                self.submit(now, pages, op, fua, slot);
                self.collect(&mut ahead);
            }
        }
        self.ahead = Some(ahead);
    }

    /// Lets all happen up to and at `until`.
    fn note_answers(&mut self, ahead: &mut Ahead, until: Time) {
        loop {
            self.collect(ahead);
            let next = self.own_next_event();
            if next > until || next == Time::NEVER {
                return;
            }
            self.own_advance(next);
        }
    }

    /// Notes what has been done by now.
    fn collect(&mut self, ahead: &mut Ahead) {
        let at = self.ssd.now();
        for page in self.ssd.outside_done().drain(..) {
            let slot = &mut ahead.slots[page.tag() as usize];
            slot.left -= 1;
            slot.written &= page.written;
            if slot.left == 0 {
                ahead.answers.push_back(Answer {
                    at,
                    slot: page.tag(),
                    spent: Spent::of_page(&page),
                    written: slot.written,
                });
            }
        }
        std::mem::swap(&mut ahead.completions, self.ssd.completions());
        for c in ahead.completions.drain(..) {
            ahead.answers.push_back(Answer {
                at,
                slot: c.tag as u32,
                spent: Spent::of(&c.breakdown),
                written: c.status == Status::Ok,
            });
        }
    }

    /// Lets all happen up to `now`, if the member goes along.
    pub(super) fn advance_along(&mut self, now: Time) {
        let Some(mut ahead) = self.ahead.take_if(|ahead| ahead.along) else {
            return;
        };
        self.note_answers(&mut ahead, now);
        self.ahead = Some(ahead);
    }
}

/// Nothing that a member of such an array does decides what another is asked, or when.
pub(super) fn members_are_independent(spec: &ArraySpec) -> bool {
    // A member that takes no more writes makes the array refuse them.
    // One with a buffer may be asked to write it.
    let can_be_foreseen = |m: &DeviceSpec| m.wear.erase_limit.is_none() && m.buffer.is_none();
    spec.level == Level::Raid0
        && matches!(Coordinator::of(spec), Coordinator::Local)
        && spec.reads == Reads::Direct
        && spec.buffer.is_none()
        && spec.members.iter().all(can_be_foreseen)
}

impl Array {
    /// Has the members do ahead what these requests ask of them, each as a task of `executor`. The
    /// requests, whose `arrival` is the instant at which each will be submitted, must then be
    /// submitted exactly so, before the device is advanced beyond the last of them. With `last` no
    /// others follow before all of them are done.
    ///
    /// False: nothing was done, since what members are asked depends on what they do, or because
    /// of what a request is. Before others are submitted members must [`Array::go_along`].
    pub fn run_ahead(&mut self, requests: &[Request], last: bool, executor: &dyn Executor) -> bool {
        let page_bytes = u64::from(self.spec().page_bytes());
        let cannot = |r: &Request| {
            !r.offset.is_multiple_of(page_bytes) || !r.bytes.is_multiple_of(page_bytes)
        };
        if !self.may_run_ahead() || requests.iter().any(cannot) {
            return false;
        }
        self.backend.direct.open = false;
        for (number, request) in (0..).zip(requests) {
            self.backend.foresee(number, request, page_bytes);
        }
        self.backend.ahead_ends = last;
        let until = match (last, requests.last()) {
            (true, _) => Time(Time::NEVER.0 - 1),
            (false, Some(request)) => request.arrival,
            (false, None) => return true,
        };
        let members = self.backend.members.iter_mut();
        let tasks = members.map(|member| Box::new(move || member.run_ahead(until, last)) as Task);
        executor.run(tasks.collect());
        for member in 0..self.backend.members.len() {
            let now = self.now();
            self.backend.wake(member, now, &mut self.events);
        }
        true
    }

    /// Requests come that were not given to the members beforehand.
    pub fn go_along(&mut self) {
        let now = self.now();
        for member in 0..self.backend.members.len() {
            if let Some(ahead) = &mut self.backend.members[member].ahead {
                ahead.along = true;
                self.backend.wake(member, now, &mut self.events);
            }
        }
    }

    /// Members are on their own, and the array has nothing under way that they would have to be
    /// asked about.
    fn may_run_ahead(&self) -> bool {
        let is_at_rest = || self.next_event().is_none() && self.outstanding() == 0;
        self.is_bare()
            && self.backend.may_run_ahead()
            && (!self.backend.direct.open || is_at_rest())
    }
}

impl Raid {
    fn may_run_ahead(&self) -> bool {
        let idle = || self.is_empty() && self.members.iter().all(|m| m.next_event() == Time::NEVER);
        self.independent
            && self.whole
            && self.log.is_none()
            && self.timeline.is_none()
            && (self.members.iter().any(|m| m.ahead.is_some()) || idle())
    }

    /// Gives the members what a request asks of them.
    fn foresee(&mut self, number: u32, request: &Request, page_bytes: u64) {
        let first = request.offset / page_bytes;
        let end = (request.offset + request.bytes).div_ceil(page_bytes);
        for page in first..end {
            let Spot { member, lpn } = self.layout.spot(Lpn(page as u32));
            let (op, fua) = match request.op {
                Op::Write => (Op::Write, request.fua | self.through),
                other => (other, false),
            };
            let ahead = self.members[member].ahead.get_or_insert_default();
            match ahead.pieces.last_mut() {
                // As pages are joined to one request ([`Raid::join`]).
                Some(p) if p.request == number && p.first + p.pages == lpn.0 => p.pages += 1,
                _ => ahead.pieces.push(Piece {
                    request: number,
                    at: request.arrival,
                    first: lpn.0,
                    pages: 1,
                    op,
                    fua,
                }),
            }
        }
    }
}
