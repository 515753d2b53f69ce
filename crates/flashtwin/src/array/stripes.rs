//! What happens to stripes: writes with their parity, pages worked out from the others, trims.
//!
//! Each is a *job* on a stretch of page stripes of one row. Jobs of a row happen one after the
//! other. A job reads, then writes: all writes wait for all reads (policies.md C4).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::layout::Stripe;
use super::plan::{plan_write, sources, Method, Places};
use super::raid::{Chain, Raid, Spent};
use crate::events::EventQueue;
use crate::request::Op;
use crate::units::Time;

/// No job, no page operation.
pub(super) const NONE: u32 = u32::MAX;

/// What a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Write these data places.
    Write(Places),
    /// Work out these places: data that cannot be read where it lies.
    Recover(Places),
    /// Forget the stripe.
    Trim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
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
    /// The page operations that wait for it.
    chain: Chain,
    fua: bool,
    phase: Phase,
    /// A member failed while it was read from.
    again: bool,
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
    /// Of each row that has a job, those that wait for it.
    rows: HashMap<u32, VecDeque<u32>, BuildHasherDefault<RowHasher>>,
    /// Queues of waiting jobs to be used again.
    spare: Vec<VecDeque<u32>>,
}

impl Stripes {
    /// What a job reads is planned anew once all that is under way has come.
    pub fn read_again(&mut self, id: u32) {
        let job = &mut self.jobs[id as usize];
        job.again |= job.phase == Phase::Reading;
    }
}

impl Raid {
    /// Places of a stripe whose members do not have them, as bits.
    fn missing(&self, stripe: Stripe) -> Places {
        let mut missing = 0;
        if self.is_whole() {
            return missing;
        }
        for at in 0..self.places() {
            if !self.members[self.member_at(stripe, at)].has(stripe) {
                missing |= 1 << at;
            }
        }
        missing
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
    fn places(&self) -> u32 {
        self.layout.data() as u32 * self.layout.copies + self.layout.parity
    }

    /// The member at a place.
    fn member_at(&self, stripe: Stripe, at: u32) -> usize {
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

    /// Writes data places of a stretch of stripes.
    #[allow(clippy::too_many_arguments)] // Where, what, for whom, and the instant.
    pub(super) fn write_stripe(
        &mut self,
        stripe: Stripe,
        pages: u32,
        places: Places,
        chain: Chain,
        fua: bool,
        now: Time,
        events: &mut EventQueue,
    ) {
        self.stats.data_pages_written += u64::from(pages * places.count_ones());
        self.add_job(
            Kind::Write(places),
            stripe,
            pages,
            (chain, fua),
            now,
            events,
        );
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

    pub(super) fn trim_stripe(&mut self, stripe: Stripe, now: Time, events: &mut EventQueue) {
        self.add_job(Kind::Trim, stripe, 1, (Chain::EMPTY, false), now, events);
    }

    fn add_job(
        &mut self,
        kind: Kind,
        stripe: Stripe,
        pages: u32,
        (chain, fua): (Chain, bool),
        now: Time,
        events: &mut EventQueue,
    ) {
        let job = Job {
            kind,
            stripe,
            pages,
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
        let id = match s.free.pop() {
            Some(id) => {
                s.jobs[id as usize] = job;
                id
            }
            None => {
                s.jobs.push(job);
                s.jobs.len() as u32 - 1
            }
        };
        let row = stripe.0 / self.layout.chunk_pages();
        if let Some(waiting) = s.rows.get_mut(&row) {
            waiting.push_back(id);
            self.stats.row_waits += 1;
            return;
        }
        s.rows.insert(row, s.spare.pop().unwrap_or_default());
        self.begin(id, now, events);
    }

    /// The row is the job's: it reads what it needs.
    fn begin(&mut self, id: u32, now: Time, events: &mut EventQueue) {
        let job = &self.stripes.jobs[id as usize];
        let (kind, stripe, pages) = (job.kind, job.stripe, u64::from(job.pages));
        let missing = self.missing(stripe);
        let (data, parity) = (self.layout.data(), self.layout.parity as usize);
        let (reads, writes) = match kind {
            Kind::Write(places) if self.layout.copies > 1 => {
                let mut writes = 0;
                for copy in 0..self.layout.copies {
                    for place in (0..data as u32).filter(|place| places >> place & 1 == 1) {
                        writes |= 1 << (place * self.layout.copies + copy);
                    }
                }
                (0, writes & !missing)
            }
            Kind::Write(places) => {
                let plan = plan_write(data, parity, places, missing);
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
                (sources(data, parity, missing | places), 0)
            }
            Kind::Trim => (0, ((1 << self.places()) - 1) & !missing),
        };
        let job = &mut self.stripes.jobs[id as usize];
        job.phase = Phase::Reading;
        job.writes = writes;
        match reads {
            0 => self.write_phase(id, now, events),
            _ => self.send_places(id, reads, Op::Read, now, events),
        }
    }

    fn write_phase(&mut self, id: u32, now: Time, events: &mut EventQueue) {
        // A member may have failed since this was planned.
        let missing = self.missing(self.stripes.jobs[id as usize].stripe);
        let job = &mut self.stripes.jobs[id as usize];
        job.phase = Phase::Writing;
        job.writes &= !missing;
        let op = match job.kind {
            Kind::Trim => Op::Trim,
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
        for at in (0..self.places()).filter(|at| places >> at & 1 == 1) {
            let member = self.member_at(stripe, at);
            let to = (id, Chain::EMPTY);
            self.send(member, (stripe.0, pages), op, fua, to, now, events);
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
    fn end(&mut self, id: u32, now: Time, events: &mut EventQueue) {
        let job = &self.stripes.jobs[id as usize];
        let (chain, spent, written) = (job.chain, job.spent, job.written);
        let row = job.stripe.0 / self.layout.chunk_pages();
        self.stripes.free.push(id);
        self.finish(chain, spent, written);
        self.deliver(now, events);
        let waiting = self.stripes.rows.get_mut(&row);
        match waiting.and_then(VecDeque::pop_front) {
            Some(next) => self.begin(next, now, events),
            None => {
                let empty = self.stripes.rows.remove(&row);
                self.stripes.spare.extend(empty);
            }
        }
    }
}
