//! Requests to members: pages that follow each other put together, sent, and taken back when done.

use super::layout::Spot;
use super::log::{ArrayEvent, SentFor};
use super::member::Run;
use super::raid::{set_earlier, Chain, Raid, Spent};
use super::stripes::NONE;
use super::swan::TASK;
use crate::events::EventQueue;
use crate::request::{Op, Status};
use crate::units::Time;

/// A request to a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    member: u32,
    /// The job it is part of, or with [`TASK`] the task of the volume; else [`NONE`].
    pub work: u32,
    /// The page operations it does all by itself.
    pub chain: Chain,
    /// Pages of it that are not done, if its member takes pages.
    left: u32,
    /// None of them was refused.
    written: bool,
    in_use: bool,
    sent: Time,
}

impl Part {
    /// When its member was asked.
    pub fn sent(&self) -> Time {
        self.sent
    }
}

impl Raid {
    /// Sends a request to a member.
    #[allow(clippy::too_many_arguments)] // To whom, where, what, for whom, and the instant.
    pub(super) fn send(
        &mut self,
        member: usize,
        (first, pages): (u32, u32),
        op: Op,
        fua: bool,
        (work, chain): (u32, Chain),
        now: Time,
        events: &mut EventQueue,
    ) -> u32 {
        let part = Part {
            member: member as u32,
            work,
            chain,
            left: pages,
            written: true,
            in_use: true,
            sent: now,
        };
        let id = match self.free_parts.pop() {
            Some(id) => {
                self.parts[id as usize] = part;
                id
            }
            None => {
                self.parts.push(part);
                self.parts.len() as u32 - 1
            }
        };
        match op {
            Op::Read => self.stats.member_pages_read += u64::from(pages),
            Op::Write => self.stats.member_pages_written += u64::from(pages),
            Op::Trim | Op::Flush => {}
        }
        let to = &mut self.members[member];
        to.under_way += 1;
        match to.ahead.is_some() {
            true => to.send_ahead(now, (first, pages), op, fua, id),
            false => to.submit(now, (first, pages), op, fua, id),
        }
        self.look_at(member, now, events);
        self.wake(member, now, events);
        id
    }

    /// Adds a page to what is being put together for its member.
    pub(super) fn join(
        &mut self,
        spot: Spot,
        id: u32,
        op: Op,
        fua: bool,
        now: Time,
        events: &mut EventQueue,
    ) {
        if self.batch_of_one && id != NONE {
            let run = Run {
                first: spot.lpn.0,
                pages: 1,
                op,
                fua,
                chain: Chain { head: id, tail: id },
            };
            return self.send_pages(spot.member, &run, now, events);
        }
        let run = &self.members[spot.member].run;
        let follows =
            run.pages > 0 && run.op == op && run.fua == fua && run.first + run.pages == spot.lpn.0;
        if !follows {
            self.send_run(spot.member, now, events);
            self.joining |= 1 << spot.member;
            self.members[spot.member].run = Run {
                first: spot.lpn.0,
                pages: 0,
                op,
                fua,
                chain: Chain::EMPTY,
            };
        }
        let run = &mut self.members[spot.member].run;
        run.pages += 1;
        if id != NONE {
            run.chain.append(id, &mut self.ops);
        }
    }

    fn send_run(&mut self, member: usize, now: Time, events: &mut EventQueue) {
        let run = self.members[member].run;
        if run.pages > 0 {
            self.members[member].run.pages = 0;
            self.send_pages(member, &run, now, events);
        }
    }

    fn send_pages(&mut self, member: usize, run: &Run, now: Time, events: &mut EventQueue) {
        let pages = (run.first, run.pages);
        let to = (NONE, run.chain);
        let part = self.send(member, pages, run.op, run.fua, to, now, events);
        self.tell(|raid| ArrayEvent::Sent {
            part,
            member,
            first: run.first,
            pages: run.pages,
            op: run.op,
            on_behalf: SentFor::Pages(raid.ops_of(run.chain)),
            number: raid.number_at(member),
        });
        if run.op == Op::Read {
            self.watch_read(part, now, events);
        }
    }

    pub(super) fn send_runs(&mut self, now: Time, events: &mut EventQueue) {
        let mut joining = std::mem::take(&mut self.joining);
        while joining != 0 {
            self.send_run(joining.trailing_zeros() as usize, now, events);
            joining &= joining - 1;
        }
    }

    /// A member's own next instant may have come nearer.
    pub(super) fn wake(&mut self, member: usize, now: Time, events: &mut EventQueue) {
        let m = &mut self.members[member];
        let at = match m.has_answers(now) {
            false => m.next_event(),
            true => now,
        };
        set_earlier(&mut m.pending, member, at, events);
    }

    pub(super) fn wake_self(&mut self, at: Time, events: &mut EventQueue) {
        set_earlier(&mut self.own_pending, self.members.len(), at, events);
    }

    pub(super) fn member_event(&mut self, member: usize, now: Time, events: &mut EventQueue) {
        let next = self.members[member].advance(now);
        self.look_at(member, now, events);
        if self.members[member].has_answers(now) {
            self.take_answers(member, now, events);
            self.wake(member, now, events);
        } else {
            set_earlier(&mut self.members[member].pending, member, next, events);
        }
        self.may_be_idle(now, events);
    }

    /// Takes what a member has done.
    fn take_answers(&mut self, member: usize, now: Time, events: &mut EventQueue) {
        if self.members[member].ahead.is_some() {
            self.take_foreseen(member, now, events);
            return self.take_held(member, now, events);
        }
        let mut pages = std::mem::take(&mut self.pages_done);
        std::mem::swap(&mut pages, self.members[member].ssd.outside_done());
        for page in pages.drain(..) {
            let part = &mut self.parts[page.tag() as usize];
            part.left -= 1;
            part.written &= page.written;
            if part.left == 0 {
                let written = part.written;
                let spent = Spent::of_page(&page);
                self.part_answered(member, page.tag(), spent, written, now, events);
            }
        }
        self.pages_done = pages;
        let mut completions = std::mem::take(&mut self.completions);
        std::mem::swap(&mut completions, self.members[member].ssd.completions());
        for c in completions.drain(..) {
            let written = c.status == Status::Ok;
            let spent = Spent::of(&c.breakdown);
            self.part_answered(member, c.tag as u32, spent, written, now, events);
        }
        self.completions = completions;
        self.take_held(member, now, events);
        if self.swan.is_some() {
            self.volume_goes_on(now, events);
        }
    }

    /// The same of a member that was simulated ahead.
    fn take_foreseen(&mut self, member: usize, now: Time, events: &mut EventQueue) {
        loop {
            let ahead = self.members[member].ahead.as_mut();
            let Some((part, answer)) = ahead.and_then(|ahead| ahead.take(now)) else {
                break;
            };
            self.part_answered(member, part, answer.spent, answer.written, now, events);
        }
        let ahead = &mut self.members[member].ahead;
        if self.ahead_ends && ahead.as_ref().is_some_and(|ahead| ahead.is_done()) {
            *ahead = None;
        }
    }

    pub(super) fn part_done(
        &mut self,
        id: u32,
        spent: Spent,
        written: bool,
        now: Time,
        events: &mut EventQueue,
    ) {
        let part = &mut self.parts[id as usize];
        part.in_use = false;
        let part = *part;
        self.free_parts.push(id);
        self.members[part.member as usize].under_way -= 1;
        self.tell(|_| ArrayEvent::Came { part: id });
        match part.work {
            NONE => {
                self.places_done(part.chain, written);
                if self.hedge.is_some() && self.reads(part.chain) {
                    self.read_took(now - part.sent);
                }
                self.finish(part.chain, spent, written);
            }
            work if work & TASK != 0 => self.task_done(work & !TASK, written, now, events),
            work => self.step_done(work, spent, written, now, events),
        }
    }

    /// Takes what is under way at a member, in the order of its places.
    pub(super) fn parts_of(&mut self, member: usize) -> Vec<Part> {
        let mut taken = Vec::new();
        for (id, part) in self.parts.iter_mut().enumerate() {
            if part.in_use && part.member as usize == member {
                part.in_use = false;
                taken.push(*part);
                self.free_parts.push(id as u32);
            }
        }
        self.members[member].under_way = 0;
        taken
    }

    /// The member and the pages of a request of the front end's reads, sent at `sent`, if it is
    /// under way.
    pub(super) fn reads_under_way(&self, part: u32, sent: Time) -> Option<(usize, Chain)> {
        let part = self.parts.get(part as usize)?;
        let is_it = part.in_use && part.sent == sent && part.work == NONE;
        (is_it && self.reads(part.chain)).then_some((part.member as usize, part.chain))
    }

    /// These page operations, if there are any, are reads.
    fn reads(&self, chain: Chain) -> bool {
        let first = self.ops.get(chain.head as usize);
        first.is_some_and(|(op, _)| op.is_read())
    }

    /// Takes what is under way at all members.
    pub(super) fn all_parts(&mut self) -> Vec<Part> {
        self.free_parts.clear();
        let parts = std::mem::take(&mut self.parts).into_iter();
        parts.filter(|part| part.in_use).collect()
    }

    /// Page operations go back to where they began.
    pub(super) fn again(&mut self, chain: Chain) {
        let mut at = chain.head;
        while at != NONE {
            let next = std::mem::replace(&mut self.ops[at as usize].1, NONE);
            match self.is_late(at) {
                true => self.finish(Chain { head: at, tail: at }, Spent::default(), true),
                false => self.batch.push(at),
            }
            at = next;
        }
    }
}
