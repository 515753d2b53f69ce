//! The members of an array as a back end: page operations in, requests to members out.
//!
//! What the front end queues at one instant is taken together ([`Work::settle`]): pages that follow
//! each other on a member become one request to it, pages of one stripe are written together. Where
//! there is redundancy, writes of a row happen one after the other, so that no two compute parity
//! from the same old contents; what a write does is the business of [`Jobs`].

mod backend;
mod batch;
mod direct;
mod hedged;
mod short;

use super::clock::Clock;
use super::coordinate;
use super::io::requests::{Owner, OF_JOB};
use super::io::Io;
use super::jobs::Jobs;
use super::layout::{Spot, Stripe};
use super::member::slow::Held;
use super::member::spent::Spent;
use super::member::State;
use super::record::log::ArrayEvent;
use super::swan::Swan;
use crate::device::{Device, OutsideDone, Work, NO_HOME};
use crate::events::EventQueue;
use crate::nand::{Done, PageOp};
use crate::request::{Completion, Op, Status};
use crate::spec::{ArraySpec, DeviceSpec, Level, Reads};
use crate::ssd::Flash;
use crate::units::{narrow, Lpn, Time};
use batch::Batch;
use direct::Direct;

/// An array of SSDs. Cloning it clones its whole state.
pub type Array = Device<Raid>;

impl Array {
    /// The members, now.
    pub(super) fn raid_now(&mut self) -> (&mut Raid, Clock<'_>) {
        let (now, events) = (self.now(), &mut self.events);
        (&mut self.backend, Clock { now, events })
    }
}

/// Resources of the array's own event queue, after one for each member and its own: for rebuilding, for
/// hedging; and how many come before those of members' flash.
pub(super) const REBUILDING: usize = 1;
const HEDGING: usize = 2;
const OWN: usize = 3;

/// The members of an array.
#[derive(Clone, Debug)]
pub struct Raid {
    pub(super) spec: Box<ArraySpec>,
    pub(super) io: Io,
    pub(super) jobs: Jobs,
    /// Groups of members instead of rows.
    pub(super) swan: Option<Box<Swan>>,
    pub(super) direct: Direct,
    pub(super) batch: Batch,
    /// Members can be simulated each by itself ([`super::member::ahead`]).
    pub(super) independent: bool,
    /// They have been, to the end.
    pub(super) ahead_ends: bool,
    completions: Vec<Completion>,
    pages_done: Vec<OutsideDone>,
}

impl Raid {
    pub(super) fn new(spec: &ArraySpec) -> Raid {
        let members = spec.members.len();
        let io = Io::new(spec, members + HEDGING, members + OWN);
        Raid {
            jobs: Jobs::new(spec, members + REBUILDING),
            swan: Swan::of(spec),
            direct: Direct::of(spec, &io.members),
            batch: Batch::default(),
            independent: members_are_independent(spec),
            ahead_ends: false,
            completions: Vec::new(),
            pages_done: Vec::new(),
            io,
            spec: Box::new(spec.clone()),
        }
    }

    /// By resource of the array's event queue: each resource of its own a group, the flash of each member one with the
    /// member's.
    pub(super) fn groups_of_resources(&self) -> Vec<u32> {
        let members = &self.io.members;
        let own = members.len() + OWN;
        let group = |resource| match members.is_flash(resource) {
            true => narrow(members.flash_at(resource).member),
            false => narrow(resource),
        };
        (0..own + members.flash_resources()).map(group).collect()
    }

    pub(super) fn place(&mut self, clock: &mut Clock) {
        if self.io.members.lost {
            return self.batch.refuse(&mut self.io, clock);
        }
        self.io.leave_idle(clock);
        match &mut self.swan {
            Some(swan) => {
                let queued = (&self.batch.ops[..], &self.batch.trims[..]);
                swan.place(&mut self.io, queued, clock);
                self.batch.clear();
            }
            None => (self.batch).place(&mut self.io, &mut self.jobs, clock),
        }
        self.io.deliver(clock);
    }

    // ---- what members have done ----

    /// Something happened in a member's own queue, or comes from it.
    fn member_event(&mut self, member: usize, clock: &mut Clock) {
        if self.io.members[member].drive.place.is_none() {
            self.io.members[member].advance(clock.now);
            self.io.look_at(member, clock);
        }
        if self.io.members[member].has_answers(clock.now) {
            self.take_answers(member, clock);
        }
        self.io.members[member].wake(clock);
        self.io.may_be_idle(clock);
    }

    /// Processes the event of a resource of flash that the front end asks directly.
    #[inline(never)]
    fn direct_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        finished: &mut Option<Done>,
    ) -> Option<usize> {
        (self.direct).event(&mut self.io, resource, (now, events), finished)
    }

    /// Processes the event of a resource of a member's flash.
    #[inline(never)]
    fn flash_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        finished: &mut Option<Done>,
    ) -> Option<usize> {
        let clock = &mut Clock { now, events };
        let place = self.io.members.flash_at(resource);
        let member = place.member;
        if !self.io.members.lost {
            self.io.in_event = true;
            let mut done = None;
            let drive = &mut self.io.members[member].drive;
            drive.step_among(place, resource, clock, &mut done);
            self.io.look_at_flash(member, clock);
            match &done {
                Some(done) if done.op.owner & OF_JOB != 0 && self.io.members[member].is_usual() => {
                    let page = OutsideDone::of(done);
                    let what = (page.tag, Spent::of_page(&page), page.written);
                    self.job_page_done(member, what, clock);
                }
                Some(done) => self.flash_done(member, done, clock),
                None => {}
            }
            self.io.may_be_idle(clock);
            self.io.in_event = false;
            *finished = self.io.ops.done.pop_front();
        }
        self.unit_of_event(member, finished)
    }

    /// The unit of a member at whose flash something happened, if that is of interest to the front end.
    #[inline(always)]
    fn unit_of_event(&self, member: usize, finished: &Option<Done>) -> Option<usize> {
        // A unit is idle where its member has nothing to do.
        let is_quiet = finished.is_none() && self.io.members[member].under_way > 0;
        (!is_quiet).then(|| self.io.watch.units.first_of(member))
    }

    /// A member's flash has done a page operation.
    #[inline(never)]
    fn flash_done(&mut self, member: usize, done: &Done, clock: &mut Clock) {
        let page = OutsideDone::of(done);
        match page.tag & OF_JOB {
            0 => self.page_answered(member, &page, clock),
            _ => {
                let what = (page.tag, Spent::of_page(&page), page.written);
                self.answered(member, done.op.enqueued, what, clock);
            }
        }
        self.swan_goes_on(clock);
        self.io.members[member].wake(clock);
    }

    /// A member has done a page operation.
    #[inline(always)]
    fn page_answered(&mut self, member: usize, page: &OutsideDone, clock: &mut Clock) {
        if let Some(written) = self.io.requests.page_done(page.tag, page.written) {
            let asked = self.io.requests.sent(page.tag);
            let what = (page.tag, Spent::of_page(page), written);
            self.answered(member, asked, what, clock);
        }
    }

    /// What members have done may let the volume go on.
    #[inline(always)]
    fn swan_goes_on(&mut self, clock: &mut Clock) {
        if let Some(swan) = &mut self.swan {
            swan.goes_on(&mut self.io, clock);
            self.io.deliver(clock);
        }
    }

    fn take_answers(&mut self, member: usize, clock: &mut Clock) {
        if self.io.members[member].ahead.is_some() {
            self.take_foreseen(member, clock);
            return self.take_held(member, clock);
        }
        let ssd = &mut self.io.members[member].drive.ssd;
        std::mem::swap(&mut self.pages_done, ssd.outside_done());
        for at in 0..self.pages_done.len() {
            let page = self.pages_done[at];
            self.page_answered(member, &page, clock);
        }
        self.pages_done.clear();
        let ssd = &mut self.io.members[member].drive.ssd;
        if !ssd.completions().is_empty() {
            self.take_completions(member, clock);
        }
        self.take_held(member, clock);
        self.swan_goes_on(clock);
    }

    /// Takes the requests that a member has completed.
    fn take_completions(&mut self, member: usize, clock: &mut Clock) {
        let mut completions = std::mem::take(&mut self.completions);
        let ssd = &mut self.io.members[member].drive.ssd;
        std::mem::swap(&mut completions, ssd.completions());
        for c in completions.drain(..) {
            let (spent, written) = (Spent::of(&c.breakdown), c.status == Status::Ok);
            let (id, asked) = (narrow(c.tag), self.io.requests.sent(narrow(c.tag)));
            self.answered(member, asked, (id, spent, written), clock);
        }
        self.completions = completions;
    }

    /// The same of a member that was simulated ahead.
    fn take_foreseen(&mut self, member: usize, clock: &mut Clock) {
        loop {
            let ahead = self.io.members[member].ahead.as_mut();
            let Some((id, answer)) = ahead.and_then(|ahead| ahead.take(clock.now)) else {
                break;
            };
            let asked = self.io.requests.sent(id);
            self.answered(member, asked, (id, answer.spent, answer.written), clock);
        }
        let ends = self.ahead_ends;
        let ahead = &mut self.io.members[member].ahead;
        ahead.take_if(|ahead| ends && ahead.is_done());
    }

    /// Takes what comes from a slow member by now.
    #[inline(always)]
    fn take_held(&mut self, member: usize, clock: &mut Clock) {
        let m = &self.io.members[member];
        if !m.is_usual() && m.slow.next_answer() <= clock.now {
            self.take_held_now(member, clock);
        }
    }

    #[inline(never)]
    fn take_held_now(&mut self, member: usize, clock: &mut Clock) {
        while let Some(answer) = self.io.members[member].slow.take(clock.now) {
            match answer {
                Held::Part(id, spent, written) => {
                    self.done_by(member, (id, spent, written), clock);
                }
                Held::Page(done) => {
                    let done = self.direct.came(&mut self.io, member, done);
                    self.io.ops.done.push_back(done);
                }
            }
        }
    }

    /// A member has done a request of which it was `asked` then: number, time spent, and that it was written.
    #[inline(always)]
    fn answered(
        &mut self,
        member: usize,
        asked: Time,
        what: (u32, Spent, bool),
        clock: &mut Clock,
    ) {
        let m = &mut self.io.members[member];
        if m.is_usual() || !m.slow.is_slow() {
            return self.done_by(member, what, clock);
        }
        let (id, spent, written) = what;
        m.slow.hold_part(asked, clock.now, id, spent, written);
    }

    /// A response of a member has come.
    #[inline(always)]
    fn done_by(
        &mut self,
        member: usize,
        (id, spent, written): (u32, Spent, bool),
        clock: &mut Clock,
    ) {
        match id & OF_JOB {
            0 => self.request_done(id, spent, written, clock),
            _ => self.job_page_done(member, (id, spent, written), clock),
        }
    }

    /// A page that was sent for a job without a record is done.
    #[inline(always)]
    fn job_page_done(
        &mut self,
        member: usize,
        (id, spent, written): (u32, Spent, bool),
        clock: &mut Clock,
    ) {
        self.io.members[member].under_way -= 1;
        let done = (member, spent, written);
        (self.jobs).page_done(&mut self.io, id & !OF_JOB, done, clock);
    }

    fn request_done(&mut self, id: u32, spent: Spent, written: bool, clock: &mut Clock) {
        let io = &mut self.io;
        let request = io.requests.take(id);
        io.members[request.member].under_way -= 1;
        io.record.log.tell(|| ArrayEvent::Came { part: id });
        match (request.owner, &mut self.swan) {
            (Owner::Host(chain), swan) => {
                if let Some(swan) = swan {
                    swan.places_done(io, chain, written);
                }
                if let Some(hedge) = io.hedge.as_mut().filter(|_| io.ops.are_reads(chain)) {
                    hedge.took(clock.now - request.sent);
                }
                io.finish(chain, spent, written);
            }
            (Owner::Job(job), _) => self.jobs.step_done(io, job, spent, written, clock),
            (Owner::Task(task), Some(swan)) => swan.task_done(io, task, written, clock),
            (Owner::Task(_), None) => unreachable!("only a volume has tasks"),
        }
    }

    /// Something happens that is not in the members' flash.
    #[inline(never)]
    fn other_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        finished: &mut Option<Done>,
    ) -> Option<usize> {
        let clock = &mut Clock { now, events };
        let members = self.io.members.len();
        if resource < members {
            // Nothing waits for what members of a lost array still do.
            if !self.io.members.lost {
                self.io.members[resource].alarm.went_off();
                self.member_event(resource, clock);
            }
        } else {
            self.own_event(resource - members, clock);
        }
        if !self.io.ops.done.is_empty() {
            *finished = self.io.ops.done.pop_front();
        }
        Some(match resource < members {
            true => self.io.watch.units.first_of(resource),
            false => 0,
        })
    }

    /// What happens at a resource of the array's own.
    fn own_event(&mut self, own: usize, clock: &mut Clock) {
        let io = &mut self.io;
        if own == 0 {
            io.members.own.went_off();
            io.check(clock);
        } else if own == HEDGING {
            hedged::due(io, &mut self.jobs, clock);
        } else if !io.members.lost {
            debug_assert_eq!(own, REBUILDING);
            self.jobs.rebuild_due(io, clock);
        }
    }

    /// What a write of one page touches: it and its parity.
    #[inline(always)]
    fn for_each_touched(&self, lpn: Lpn, touch: impl Fn(&Flash, Lpn)) {
        let layout = &self.io.layout;
        let (stripe, place, members) = layout.placed(lpn);
        let lpn = Lpn(stripe.0);
        let touch = |member: usize| touch(&self.io.members[member].drive.ssd.backend, lpn);
        touch(members.data(place));
        if layout.parity > 0 {
            touch(members.parity(0));
        }
        if layout.parity > 1 {
            touch(members.parity(1));
        }
    }

    /// Only a volume knows where a page goes and where it was.
    #[inline(never)]
    fn prefetch_of_volume(&self, lpn: Lpn) {
        if let Some(swan) = &self.swan {
            swan.volume.prefetch(lpn);
        }
    }
}

/// Nothing that a member of such an array does decides what another is asked, or when.
fn members_are_independent(spec: &ArraySpec) -> bool {
    // A member that takes no more writes makes the array refuse them.
    // One with a buffer may be asked to write it.
    let can_be_foreseen = |m: &DeviceSpec| m.wear.erase_limit.is_none() && m.buffer.is_none();
    spec.level == Level::Raid0
        && coordinate::is_local(spec)
        && spec.reads == Reads::Direct
        && spec.buffer.is_none()
        && spec.members.iter().all(can_be_foreseen)
}

// SAFETY: all are of kind 0.
unsafe impl Work for Raid {
    fn resources(&self) -> usize {
        self.io.members.len() + OWN + self.io.members.flash_resources()
    }

    fn unit_for_write(&mut self, lpn: Lpn) -> u32 {
        narrow(self.io.layout.spot(lpn).member)
    }

    #[inline(always)]
    fn home(&self, lpn: Lpn) -> u32 {
        let units = &self.io.watch.units;
        match self.swan.is_none() && units.have_homes() {
            true => units.home_of(&self.io.layout, lpn),
            false => NO_HOME,
        }
    }

    fn unit_of_copy(&self, lpn: Lpn) -> Option<u32> {
        // A member responds at once for a page that it does not have.
        Some(narrow(self.io.layout.spot(lpn).member))
    }

    #[inline]
    fn enqueue(&mut self, _unit: usize, op: PageOp, now: Time, events: &mut EventQueue) {
        if self.direct.open {
            return (self.direct).enqueue(&mut self.io, op, &mut Clock { now, events });
        }
        let (what, written) = match op.is_read() {
            true => (Op::Read, None),
            false => (Op::Write, Some(op.lpn)),
        };
        let id = self.io.take_in(op, what, now);
        self.batch.push(id, written);
    }

    #[inline]
    fn settle(&mut self, now: Time, events: &mut EventQueue) {
        if !self.batch.is_empty() {
            self.place(&mut Clock { now, events });
        }
    }

    #[inline(always)]
    fn on_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        finished: &mut Option<Done>,
    ) -> Option<usize> {
        if !self.io.members.is_flash(resource) {
            return self.other_event(resource, now, events, finished);
        }
        match (self.io.is_short(), self.direct.takes_part) {
            (true, _) => self.short_event(resource, now, events, finished),
            (_, true) => self.direct_event(resource, now, events, finished),
            _ => self.flash_event(resource, now, events, finished),
        }
    }

    fn is_volatile(&self) -> bool {
        self.io.volatile && !self.io.through
    }

    fn flush(&mut self, op: PageOp, now: Time, events: &mut EventQueue) {
        let clock = &mut Clock { now, events };
        let id = self.io.take_in(op, Op::Flush, now);
        if self.io.members.lost {
            self.batch.push(id, None);
            return self.batch.refuse(&mut self.io, clock);
        }
        self.jobs.flush(&mut self.io, id, clock);
    }

    /// Adds the pages whose newest contents no member would have on flash (D-92). A page with a copy
    /// that is not lost is not lost. A page of a missing member is, if its stripe lost anything.
    fn lost(&self, lost: &mut Vec<Lpn>) {
        let (members, layout) = (&self.io.members, &self.io.layout);
        if let Some(swan) = &self.swan {
            for (at, member) in (0..).zip(members.iter()) {
                let pages = member.drive.ssd.power_cut().lost.into_iter();
                let spots = pages.map(|lpn| Spot { member: at, lpn });
                lost.extend(spots.filter_map(|spot| swan.volume.page_at(spot)));
            }
            return;
        }
        let mut stripes: Vec<(Stripe, usize)> = Vec::new();
        for (at, member) in members.iter().enumerate() {
            if member.state != State::Failed {
                let pages = member.drive.ssd.power_cut().lost;
                stripes.extend(pages.iter().map(|lpn| (Stripe(lpn.0), at)));
            }
        }
        stripes.sort_unstable();
        for of_one in stripes.chunk_by(|a, b| a.0 == b.0) {
            let stripe = of_one[0].0;
            let safe = |member: usize| {
                self.io.has(member, stripe) && of_one.iter().all(|&(_, lost)| lost != member)
            };
            for place in 0..narrow(layout.data()) {
                if !layout.copies_at(stripe, place).any(safe) {
                    lost.push(layout.page_of(stripe, place));
                }
            }
        }
    }

    #[inline]
    fn more_done(&mut self) -> Option<Done> {
        self.io.ops.done.pop_front()
    }

    #[inline]
    fn activate(&mut self, _unit: usize, now: Time, events: &mut EventQueue) {
        (self.direct).goes_on(&mut self.io, &mut Clock { now, events });
    }

    fn trim(&mut self, lpn: Lpn, now: Time, events: &mut EventQueue) {
        if self.direct.open {
            return (self.direct).trim(&mut self.io, lpn, &mut Clock { now, events });
        }
        self.batch.trims.push(lpn);
        self.io.record.log.tell(|| ArrayEvent::Forgotten { lpn });
    }

    #[inline]
    fn prefetch(&self, lpn: Lpn) {
        match self.swan {
            None => self.for_each_touched(lpn, |flash, lpn| flash.prefetch(lpn)),
            Some(_) => self.prefetch_of_volume(lpn),
        }
    }

    #[inline]
    fn prefetch_old_copy(&self, lpn: Lpn) {
        // With parity a page is read before it is written, and what the write touches is loaded while it is.
        match self.swan {
            None if self.io.layout.parity > 0 => {}
            None => self.for_each_touched(lpn, |flash, lpn| flash.prefetch_old_copy(lpn)),
            Some(_) => self.prefetch_of_volume(lpn),
        }
    }

    fn reset_stats(&mut self, now: Time) {
        let Io {
            members,
            record,
            watch,
            ..
        } = &mut self.io;
        let goes_on = |member: usize| members[member].state == State::Rebuilding;
        record.reset(members.condition(), now, |r| {
            r.until.is_none() && goes_on(r.member)
        });
        if let Some(timeline) = &mut watch.timeline {
            timeline.take(now);
        }
        for member in members.iter_mut() {
            member.advance(now);
            member.drive.ssd.reset_flash_report();
        }
    }
}
