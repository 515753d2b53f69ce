//! What happens to stripes: writes with their parity, pages worked out from the others, trims.
//!
//! Each is a *job* on a stretch of page stripes of one row. Jobs of a row happen one after the
//! other. A job reads, then writes: all writes wait for all reads (policies.md C4). Sending a flush to
//! all members (`power`) is a job, too, but of no row; `rebuild` says what its jobs do.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::layout::Stripe;
use super::log::{ArrayEvent, JobKind, SentFor};
use super::member::State;
use super::plan::{each, plan_write, sources, Method, Places};
use super::raid::{Chain, Raid, Spent};
use crate::device::Work;
use crate::events::EventQueue;
use crate::request::Op;
use crate::units::{Lpn, Time};

/// No job, no page operation.
pub(super) const NONE: u32 = u32::MAX;

/// What a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Write these data places.
    Write(Places),
    /// Work out these places: data that cannot be read where it lies.
    Recover(Places),
    /// Write what members lack that are being rebuilt.
    Rebuild,
    /// Forget these data places, and the parity: with parity they are all there are.
    Trim(Places),
    /// Have all members write what they hold in volatile memory.
    Flush,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Waiting,
    Reading,
    Writing,
}

/// Something that happens to a stretch of stripes.
#[derive(Clone, Debug)]
struct Job {
    kind: Kind,
    stripe: Stripe,
    pages: u32,
    /// Rows it needs to itself, and those it has.
    rows: u32,
    rows_held: u32,
    /// The page operations that wait for it.
    chain: Chain,
    fua: bool,
    phase: Phase,
    /// A member failed while it was read from.
    again: bool,
    /// Places to be written; of a rebuild, members.
    writes: Places,
    /// Requests to members under way.
    left: u32,
    spent: Spent,
    written: bool,
}

/// Rows are numbers without pattern enough: one multiplication spreads them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowHasher(u64);

impl Hasher for RowHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }
    fn write_u32(&mut self, row: u32) {
        self.0 = (self.0 ^ u64::from(row)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// All jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Stripes {
    jobs: Vec<Job>,
    free: Vec<u32>,
    /// Of each row that is a job's, those that wait for it.
    rows: HashMap<u32, VecDeque<u32>, BuildHasherDefault<RowHasher>>,
    /// Queues of waiting jobs to be used again.
    spare: Vec<VecDeque<u32>>,
}

impl Raid {
    /// The member holds what belongs there of a stripe.
    #[inline]
    pub(super) fn has(&self, member: usize, stripe: Stripe) -> bool {
        let m = &self.members[member];
        match m.state {
            State::There => true,
            State::Failed => false,
            State::Rebuilding => m.rows.contain(self.layout.row_of(stripe)),
        }
    }

    /// Places of a stripe whose members do not have them, as bits.
    pub(super) fn missing(&self, stripe: Stripe) -> Places {
        if self.whole {
            return 0;
        }
        self.places_where(|at| !self.has(self.member_at(stripe, at), stripe))
    }

    pub(super) fn places_where(&self, is: impl Fn(u32) -> bool) -> Places {
        let places = (0..self.places()).filter(|&at| is(at));
        places.fold(0, |bits, at| bits | 1 << at)
    }

    /// A page can be worked out from members whose chips are not in GC.
    pub(super) fn others_are_free(&self, stripe: Stripe, place: u32) -> bool {
        let missing = self.missing(stripe) | 1 << place;
        if missing.count_ones() > self.layout.parity {
            return false;
        }
        let from = sources(self.layout.data(), self.layout.parity as usize, missing);
        (0..self.places())
            .filter(|at| from >> at & 1 == 1)
            .all(|at| !self.collects_at(self.member_at(stripe, at), stripe))
    }

    /// Places of a stripe: those of data, then of parity; with mirrors, the copies of each.
    pub(super) fn places(&self) -> u32 {
        self.layout.data() as u32 * self.layout.copies + self.layout.parity
    }

    /// All copies of these data places.
    fn copies(&self, data: Places) -> Places {
        self.places_where(|at| data >> (at / self.layout.copies) & 1 == 1)
    }

    /// The member at a place.
    pub(super) fn member_at(&self, stripe: Stripe, at: u32) -> usize {
        if self.layout.copies > 1 {
            return at as usize;
        }
        let data = self.layout.data() as u32;
        if at < data {
            self.layout.data_member(stripe, at)
        } else {
            self.layout.parity_member(stripe, at - data)
        }
    }

    /// Works out a page from the others of its stripe.
    pub(super) fn recover_page(
        &mut self,
        op: u32,
        stripe: Stripe,
        place: u32,
        now: Time,
        events: &mut EventQueue,
    ) {
        let mut chain = Chain::EMPTY;
        self.append(&mut chain, op);
        let kind = Kind::Recover(1 << place);
        self.add_job(kind, stripe, 1, (chain, false), now, events);
    }

    pub(super) fn new_job(
        &mut self,
        kind: Kind,
        stripe: Stripe,
        pages: u32,
        (chain, fua): (Chain, bool),
    ) -> u32 {
        let job = Job {
            kind,
            stripe,
            pages,
            rows: match kind {
                Kind::Rebuild => pages / self.layout.chunk_pages(),
                _ => 1,
            },
            rows_held: 0,
            chain,
            fua,
            phase: Phase::Waiting,
            again: false,
            writes: 0,
            left: 0,
            spent: Spent::default(),
            written: true,
        };
        let s = &mut self.stripes;
        match s.free.pop() {
            Some(id) => {
                s.jobs[id as usize] = job;
                id
            }
            None => {
                s.jobs.push(job);
                s.jobs.len() as u32 - 1
            }
        }
    }

    /// A job on a stretch of stripes, once it is its turn in their rows.
    pub(super) fn add_job(
        &mut self,
        kind: Kind,
        stripe: Stripe,
        pages: u32,
        whom: (Chain, bool),
        now: Time,
        events: &mut EventQueue,
    ) {
        let id = self.new_job(kind, stripe, pages, whom);
        self.take_rows(id, now, events);
    }

    /// Takes the rows that a job needs, in ascending order, so that no two wait for each other. It
    /// begins when it has them all.
    fn take_rows(&mut self, id: u32, now: Time, events: &mut EventQueue) {
        let job = &self.stripes.jobs[id as usize];
        let first = self.layout.row_of(job.stripe);
        for row in first + job.rows_held..first + job.rows {
            let s = &mut self.stripes;
            if let Some(waiting) = s.rows.get_mut(&row) {
                waiting.push_back(id);
                self.stats.row_waits += 1;
                return;
            }
            s.rows.insert(row, s.spare.pop().unwrap_or_default());
            s.jobs[id as usize].rows_held += 1;
        }
        self.begin(id, now, events);
    }

    /// The row is the job's: it reads what it needs.
    fn begin(&mut self, id: u32, now: Time, events: &mut EventQueue) {
        let job = &self.stripes.jobs[id as usize];
        let (kind, stripe, pages) = (job.kind, job.stripe, u64::from(job.pages));
        let missing = self.missing(stripe);
        let (data, parity) = (self.layout.data(), self.layout.parity as usize);
        let mut method = Method::Write;
        let (reads, writes) = match kind {
            Kind::Write(places) if self.layout.copies > 1 => (0, self.copies(places) & !missing),
            Kind::Write(places) => {
                let plan = plan_write(data, parity, places, missing);
                method = plan.method;
                self.stats.stripes[plan.method as usize] += pages;
                self.stats.pages_read_for_parity += pages * u64::from(plan.reads.count_ones());
                let of_parity = (plan.writes >> data).count_ones();
                self.stats.parity_pages_written += pages * u64::from(of_parity);
                if plan.method == Method::Recover {
                    self.stats.pages_recovered += pages;
                }
                (plan.reads, plan.writes)
            }
            Kind::Recover(places) => {
                self.stats.pages_recovered += pages;
                // What was asked for may have come back while this waited for its row, and another
                // member may have failed since.
                let without = match (missing | places).count_ones() as usize > parity {
                    true => missing,
                    false => missing | places,
                };
                (sources(data, parity, without), 0)
            }
            Kind::Rebuild | Kind::Flush => (0, 0),
            Kind::Trim(places) => {
                let of_parity = (1 << self.places()) - (1 << (self.places() - parity as u32));
                (0, (self.copies(places) | of_parity) & !missing)
            }
        };
        self.tell(|raid| raid.begun(id, method));
        if kind == Kind::Rebuild {
            return self.read_stretch(id, now, events);
        }
        let job = &mut self.stripes.jobs[id as usize];
        job.phase = Phase::Reading;
        job.writes = writes;
        match reads {
            0 => self.write_phase(id, now, events),
            _ => self.send_places(id, reads, Op::Read, now, events),
        }
    }

    fn begun(&self, id: u32, method: Method) -> ArrayEvent {
        let job = &self.stripes.jobs[id as usize];
        ArrayEvent::Begun {
            job: id,
            kind: match job.kind {
                Kind::Write(places) => JobKind::Write { method, places },
                Kind::Recover(places) => JobKind::Recover { places },
                Kind::Rebuild => JobKind::Rebuild,
                Kind::Trim(_) | Kind::Flush => JobKind::Trim,
            },
            first: job.stripe.0,
            pages: job.pages,
            ops: self.ops_of(job.chain),
        }
    }

    pub(super) fn write_phase(&mut self, id: u32, now: Time, events: &mut EventQueue) {
        // A member may have failed since this was planned.
        let job = &self.stripes.jobs[id as usize];
        let (stripe, kind) = (job.stripe, job.kind);
        if kind == Kind::Rebuild {
            return self.write_stretch(id, now, events);
        }
        let possible = !self.missing(stripe);
        let job = &mut self.stripes.jobs[id as usize];
        job.phase = Phase::Writing;
        job.writes &= possible;
        let op = match kind {
            Kind::Trim(_) => Op::Trim,
            _ => Op::Write,
        };
        match job.writes {
            0 => self.end(id, now, events),
            writes => self.send_places(id, writes, op, now, events),
        }
    }

    /// Sends one request to each of the members at these places, at least one.
    fn send_places(&mut self, id: u32, places: Places, op: Op, now: Time, events: &mut EventQueue) {
        let job = &mut self.stripes.jobs[id as usize];
        job.left = places.count_ones();
        let (stripe, pages, fua) = (job.stripe, job.pages, job.fua && op == Op::Write);
        let old_copies = match op {
            Op::Read => job.writes,
            _ => 0,
        };
        for at in each(places) {
            let member = self.member_at(stripe, at);
            let to = (id, Chain::EMPTY);
            let part = self.send(member, (stripe.0, pages), op, fua, to, now, events);
            self.tell(|raid| ArrayEvent::Sent {
                part,
                member,
                first: stripe.0,
                pages,
                op,
                on_behalf: SentFor::Job { job: id, place: at },
                number: raid.number_at(member),
            });
        }
        for at in each(old_copies) {
            let flash = &self.members[self.member_at(stripe, at)].ssd.backend;
            flash.prefetch_old_copy(Lpn(stripe.0));
        }
    }

    /// What a job reads is planned anew once all that is under way has come, if a member was lost
    /// from which it reads.
    pub(super) fn read_again(&mut self, id: u32) {
        let job = &mut self.stripes.jobs[id as usize];
        job.again |= job.phase == Phase::Reading;
    }

    /// What jobs have written to a member that is being rebuilt is lost with it.
    pub(super) fn forget_rebuilt(&mut self, member: usize) {
        for id in 0..self.stripes.jobs.len() {
            let job = &self.stripes.jobs[id];
            if job.kind == Kind::Rebuild && job.phase == Phase::Writing {
                self.stripes.jobs[id].writes &= !(1 << member);
            }
        }
    }

    /// A request of a job is done.
    pub(super) fn step_done(
        &mut self,
        id: u32,
        spent: Spent,
        written: bool,
        now: Time,
        events: &mut EventQueue,
    ) {
        let job = &mut self.stripes.jobs[id as usize];
        job.left -= 1;
        job.written &= written;
        if job.left > 0 {
            return;
        }
        // The last one is what the others waited for.
        job.spent.add(spent);
        let again = std::mem::take(&mut job.again);
        match job.phase {
            Phase::Reading if again => self.begin(id, now, events),
            Phase::Reading => self.write_phase(id, now, events),
            _ => self.end(id, now, events),
        }
    }

    /// The job is done; the next one of its row begins.
    pub(super) fn end(&mut self, id: u32, now: Time, events: &mut EventQueue) {
        let job = &self.stripes.jobs[id as usize];
        let (chain, spent, written) = (job.chain, job.spent, job.written);
        let (kind, stripe, rows) = (job.kind, job.stripe, job.rows);
        self.finish(chain, spent, written);
        self.deliver(now, events);
        if kind == Kind::Flush {
            return self.stripes.free.push(id);
        }
        if kind == Kind::Rebuild {
            self.stretch_rebuilt(id, written, now);
        }
        self.stripes.free.push(id);
        let first = self.layout.row_of(stripe);
        for row in first..first + rows {
            let waiting = self.stripes.rows.get_mut(&row);
            match waiting.and_then(VecDeque::pop_front) {
                Some(next) => {
                    self.stripes.jobs[next as usize].rows_held += 1;
                    self.take_rows(next, now, events);
                }
                None => {
                    let empty = self.stripes.rows.remove(&row);
                    self.stripes.spare.extend(empty);
                }
            }
        }
        if kind == Kind::Rebuild {
            self.rebuild_on(now, events);
        }
    }

    // ---- what others need of their jobs ----

    /// The first page stripe of a job, and how many.
    pub(super) fn extent_of(&self, id: u32) -> (Stripe, u32) {
        let job = &self.stripes.jobs[id as usize];
        (job.stripe, job.pages)
    }

    pub(super) fn writes_of(&self, id: u32) -> Places {
        self.stripes.jobs[id as usize].writes
    }

    pub(super) fn parts_left(&self, id: u32) -> u32 {
        self.stripes.jobs[id as usize].left
    }

    pub(super) fn one_more_part(&mut self, id: u32) {
        self.stripes.jobs[id as usize].left += 1;
    }

    pub(super) fn job_goes_on(&mut self, id: u32, phase: Phase, writes: Places) {
        let job = &mut self.stripes.jobs[id as usize];
        job.phase = phase;
        job.writes = writes;
    }
}

impl Stripes {
    /// The page operations that wait for jobs.
    pub(super) fn chains(&self) -> Vec<Chain> {
        let in_use = |id: &u32| !self.free.contains(id);
        let ids = (0..self.jobs.len() as u32).filter(in_use);
        ids.map(|id| self.jobs[id as usize].chain).collect()
    }
}
