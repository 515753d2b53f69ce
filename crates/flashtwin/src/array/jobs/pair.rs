//! Writes of one page in an array with one parity, whole and, outside of tests, without a log: what [`Jobs::begin_any`] and what follows
//! it do, in fewer steps. A page and its parity are read, and then both written.

use super::{Job, JobKind, JobSpec, Jobs, Kind, Phase, Spent};
use crate::array::clock::Clock;
use crate::array::io::ops::Chain;
use crate::array::io::requests::Owner;
use crate::array::io::{Io, Order};
use crate::array::layout::plan::{plan_write, Method, Plan};
use crate::array::layout::MembersOf;
use crate::array::record::log::{ArrayEvent, Log, SentFor};
use crate::array::table::NONE;
use crate::device::OutsideDone;
use crate::nand::Done;
use crate::request::Op;
use crate::units::{narrow, Lpn};

/// The members with a page and with its parity.
pub(super) type Pair = [u16; 2];

/// Those of the page at a data place.
#[inline(always)]
fn pair_at(place: u32, members: MembersOf) -> Pair {
    [members.data(place) as u16, members.parity(0) as u16]
}

/// Places of a pair in its stripe.
fn places_of(io: &Io, what: &JobSpec) -> [u32; 2] {
    let Kind::Write(written) = what.kind else {
        unreachable!("only a write has a pair");
    };
    [written.trailing_zeros(), narrow(io.layout.data())]
}

/// Sends a page of a pair to its member, as a request of which a record is kept.
#[cold]
fn send_one(
    io: &mut Io,
    id: u32,
    what: &JobSpec,
    (side, member): (usize, usize),
    op: Op,
    clock: &mut Clock,
) {
    let how = (op, what.fua && op == Op::Write);
    let order = Order::new(member, (what.stripe.0, 1), how, Owner::Job(id));
    let place = places_of(io, what)[side];
    io.send(order, clock, |_| SentFor::Job { job: id, place });
}

/// Logs a page of a pair that was sent without a record.
#[inline(always)]
fn tell_page_sent(io: &mut Io, id: u32, what: &JobSpec, (side, member): (usize, usize), op: Op) {
    if cfg!(debug_assertions) {
        let place = places_of(io, what)[side];
        let number = io.members[member].last_number();
        io.record.log.tell_of_pair(|| ArrayEvent::Sent {
            part: part_of_pair(id, side),
            member,
            first: what.stripe.0,
            pages: 1,
            op,
            on_behalf: SentFor::Job { job: id, place },
            number,
        });
    }
}

/// Number in the log of a page of a pair that has no request of its own: beyond those of requests.
fn part_of_pair(job: u32, side: usize) -> u32 {
    1 << 31 | job << 1 | side as u32
}

impl Jobs {
    /// Writes the page of an operation once it is its turn in its row.
    #[inline(always)]
    pub fn write_page(&mut self, io: &mut Io, op: u32, (lpn, fua): (Lpn, bool), clock: &mut Clock) {
        let (stripe, place, members) = io.layout.placed(lpn);
        let what = JobSpec::new(Kind::Write(1 << place), (stripe, 1), (Chain::only(op), fua));
        if !io.writes_pairs() {
            return self.add(io, what, clock);
        }
        let (row, pair) = (members.row, pair_at(place, members));
        let id = self.jobs.add(Job::new(what, row, 1));
        if !self.rows.take(row, id) {
            io.record.stats.row_waits += 1;
            return;
        }
        self.jobs[id].rows_held = 1;
        self.begin_pair(io, id, pair, clock);
    }

    /// The pair that a job writes, if it is one.
    #[inline(always)]
    pub(super) fn pair_of(&self, io: &Io, id: u32) -> Option<Pair> {
        let what = &self.jobs[id].what;
        match what.kind {
            Kind::Write(places)
                if what.pages == 1 && places.is_power_of_two() && io.writes_pairs() =>
            {
                let members = io.layout.members_of(what.stripe);
                Some(pair_at(places.trailing_zeros(), members))
            }
            _ => None,
        }
    }

    /// The row is the job's: it reads.
    #[inline(always)]
    pub(super) fn begin_pair(&mut self, io: &mut Io, id: u32, pair: Pair, clock: &mut Clock) {
        let job = &mut self.jobs[id];
        let Kind::Write(written) = job.what.kind else {
            unreachable!("only a write has a pair");
        };
        let both = written | 1 << io.layout.data();
        debug_assert_eq!(
            plan_write(io.layout.data(), 1, written, 0),
            Plan {
                method: Method::ReadModifyWrite,
                reads: both,
                writes: both,
            }
        );
        let stats = &mut io.record.stats;
        stats.stripes[Method::ReadModifyWrite as usize] += 1;
        stats.pages_read_for_parity += 2;
        stats.parity_pages_written += 1;
        let what = job.what;
        let ops = &io.ops;
        io.record.log.tell_of_pair(|| ArrayEvent::Begun {
            job: id,
            kind: JobKind::Write {
                method: Method::ReadModifyWrite,
                places: written,
            },
            first: what.stripe.0,
            pages: 1,
            ops: ops.of(what.chain).collect(),
        });
        job.phase = Phase::Reading;
        job.writes = both;
        job.pair = Some(pair);
        let stripe = job.what.stripe;
        job.chip = io.chip_of(stripe);
        self.send_pair::<true>(io, id, pair, clock);
        for member in pair {
            io.prefetch_old_copy(member.into(), stripe);
        }
    }

    /// Sends a page to each of the two members.
    #[inline(always)]
    pub(super) fn send_pair<const READ: bool>(
        &mut self,
        io: &mut Io,
        id: u32,
        pair: Pair,
        clock: &mut Clock,
    ) {
        let job = &mut self.jobs[id];
        let (stripe, fua) = (job.what.stripe, job.what.fua && !READ);
        let (lpn, chip, is_short) = (Lpn(stripe.0), job.chip, io.is_short());
        job.left = 2;
        let op = if READ { Op::Read } else { Op::Write };
        let mut pages_at: u64 = 0;
        for (side, member) in pair.into_iter().enumerate() {
            let member = usize::from(member);
            let is_sent = match is_short {
                true => io.send_short::<READ>(member, (chip, lpn), fua, id, clock),
                false => io.send_page::<READ>(member, lpn, fua, id, clock),
            };
            match is_sent {
                true => {
                    pages_at |= 1 << member;
                    tell_page_sent(io, id, &job.what, (side, member), op);
                }
                false => send_one(io, id, &job.what, (side, member), op, clock),
            }
        }
        job.pages_at = pages_at;
    }

    /// Logs that a page came which was sent to a member without a record.
    #[inline(always)]
    pub fn tell_page_came(&self, log: &mut Log, id: u32, member: usize) {
        log.tell_of_pair(|| {
            let [first, _] = self.jobs[id]
                .pair
                .expect("other pages have a record while the log is on");
            let part = part_of_pair(id, usize::from(usize::from(first) != member));
            ArrayEvent::Came { part }
        });
    }

    /// A page of a pair is done at this member, on the short way ([`Io::find_way`]): whether the other one is, too. `None`,
    /// with nothing done, if the job writes no pair.
    #[inline(always)]
    pub fn page_of_pair_done(
        &mut self,
        id: u32,
        member: usize,
        page: &OutsideDone,
    ) -> Option<bool> {
        let job = &mut self.jobs[id];
        job.pair?;
        debug_assert!(!job.again, "a member failed");
        job.pages_at &= !(1 << member);
        job.written &= page.written;
        job.left -= 1;
        if job.left > 0 {
            return Some(false);
        }
        job.spent.add(Spent::of_page(page));
        Some(true)
    }

    /// Both pages of a pair are read, or written. If the job is done by that, `finished` gets the first of its operations.
    #[inline(always)]
    pub fn pair_goes_on(
        &mut self,
        io: &mut Io,
        id: u32,
        finished: &mut Option<Done>,
        clock: &mut Clock,
    ) {
        let job = &mut self.jobs[id];
        match (job.phase, job.pair) {
            (Phase::Reading, Some(pair)) => {
                job.phase = Phase::Writing;
                self.write_pair(io, id, pair, clock);
            }
            _ => self.end_short(io, id, finished, clock),
        }
    }

    #[inline(never)]
    pub(super) fn write_pair(&mut self, io: &mut Io, id: u32, pair: Pair, clock: &mut Clock) {
        self.send_pair::<false>(io, id, pair, clock);
    }

    /// The job is done; the next one of its row begins.
    #[inline(always)]
    fn end_short(&mut self, io: &mut Io, id: u32, finished: &mut Option<Done>, clock: &mut Clock) {
        let job = &self.jobs[id];
        let (row, mut chain) = (job.first_row, job.what.chain);
        if let Some(op) = io.ops.take_first(&mut chain) {
            *finished = Some(job.spent.on(*io.ops.get(op), job.written));
            io.record.log.tell_of_pair(|| ArrayEvent::Answered { op });
            io.ops.free(op);
        }
        if chain.head != NONE {
            io.finish(chain, job.spent, job.written);
        }
        self.jobs.remove(id);
        if let Some(next) = self.rows.give_back(row) {
            // In a whole array the next job waits for its requests, so there is nothing to deliver.
            self.next_of_row(io, next, clock);
        }
    }

    /// The job is done; the next one of its row begins.
    #[inline(never)]
    pub(super) fn end_pair(&mut self, io: &mut Io, id: u32, clock: &mut Clock) {
        let job = &self.jobs[id];
        let row = job.first_row;
        io.finish(job.what.chain, job.spent, job.written);
        io.deliver(clock);
        self.jobs.remove(id);
        if let Some(next) = self.rows.give_back(row) {
            self.next_of_row(io, next, clock);
        }
    }
}
