//! Jobs: operations on stripes, such as writes with their parity, reconstruction of pages, and trims.
//!
//! A *job* works on adjacent page stripes of one row. (Rows and page stripes are defined in `layout`.) A job that
//! rebuilds members works on several rows; such jobs are in the module `stretch`. The jobs of a row are executed one
//! after the other. A job first reads, then writes: its writes are sent when all its reads have completed. A flush of
//! all members is also a job, but without a row.

mod rebuild;
mod rows;
mod stretch;

use super::clock::Clock;
use super::features::{Every, Features};
use super::io::ops::Chain;
use super::io::requests::Origin;
use super::io::{Io, Order};
use super::layout::plan::{count, each, plan_write, sources, Method, Places};
use super::layout::{Layout, Stripe};
use super::member::drive::Ask;
use super::member::response::Spent;
use super::member::State;
use super::record::log::{ArrayEvent, JobKind, SentFor};
use super::table::Table;
use crate::nand::Owner;
use crate::request::Op;
use crate::spec::ArraySpec;
use rebuild::Rebuild;
use rows::RowLocks;
use stretch::Stretch;

/// Purpose of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The job writes the data at these places of its stripes.
    Write(Places),
    /// The job reconstructs the data of these places, whose members cannot be read.
    Recover(Places),
    /// The job writes the missing pages of members that are being rebuilt.
    Rebuild,
    /// The job trims the data at these places, and the parity, if there is any. In an array with parity, the places are
    /// always all data places of the stripe.
    Trim(Places),
    /// The job makes all members write the data in their volatile memory to flash.
    Flush,
}

/// Description of a job. The job works on `pages` adjacent page stripes from `stripe` on. The page operations of
/// `chain` complete with the job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobSpec {
    pub kind: Kind,
    pub stripe: Stripe,
    pub pages: u32,
    pub chain: Chain,
    pub fua: bool,
}

impl JobSpec {
    pub fn new(kind: Kind, (stripe, pages): (Stripe, u32), (chain, fua): (Chain, bool)) -> JobSpec {
        JobSpec {
            kind,
            stripe,
            pages,
            chain,
            fua,
        }
    }

    fn extent(&self) -> (Stripe, u32) {
        (self.stripe, self.pages)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Reading,
    Writing,
}

/// A running job.
#[derive(Clone, Debug)]
struct Job {
    what: JobSpec,
    /// First of the rows that the job must lock; `rows` is their number.
    first_row: u32,
    rows: u32,
    rows_held: u32,
    phase: Phase,
    /// Whether a member failed while the job was reading from it, so that the reads must be planned again.
    again: bool,
    /// Places to write, as bits; for a rebuild, members to write to.
    writes: Places,
    /// Number of requests to members in flight.
    left: u32,
    /// Members, as bits, to which pages of the job were sent without a request record ([`Io::send_page`]).
    pages_at: u64,
    spent: Spent,
    written: bool,
}

impl Job {
    /// Creates a job that holds none of its rows yet. These are `rows` adjacent rows from `first_row` on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn new(what: JobSpec, first_row: u32, rows: u32) -> Job {
        Job {
            what,
            first_row,
            rows,
            rows_held: 0,
            phase: Phase::Waiting,
            again: false,
            writes: 0,
            left: 0,
            pages_at: 0,
            spent: Spent::default(),
            written: true,
        }
    }
}

/// All jobs.
#[derive(Clone, Debug)]
pub(crate) struct Jobs {
    /// Copy of the array's layout. It is needed because the original is borrowed while requests are sent to the
    /// members.
    layout: Layout,
    jobs: Table<Job>,
    rows: RowLocks,
    rebuild: Rebuild,
    stretch: Stretch,
}

impl Jobs {
    /// Creates an empty set of jobs. `rebuilding` is the number of the event queue's resource for rebuilding.
    pub fn new(spec: &ArraySpec, layout: &Layout, rebuilding: usize) -> Jobs {
        Jobs {
            layout: layout.clone(),
            jobs: Table::default(),
            rows: RowLocks::new(),
            rebuild: Rebuild::new(spec, rebuilding),
            stretch: Stretch::new(spec.members.len()),
        }
    }

    #[inline(always)]
    fn new_job(&mut self, io: &Io, what: JobSpec) -> u32 {
        let rows = match what.kind {
            Kind::Rebuild => what.pages / io.layout.chunk_pages(),
            Kind::Write(_) | Kind::Recover(_) | Kind::Trim(_) | Kind::Flush => 1,
        };
        let first_row = io.layout.row_of(what.stripe);
        self.jobs.add(Job::new(what, first_row, rows))
    }

    /// Adds a job. The job begins as soon as it holds the locks of its rows.
    #[inline(always)]
    pub fn add<F: Features>(&mut self, io: &mut Io, what: JobSpec, clock: &mut Clock) {
        let id = self.new_job(io, what);
        self.take_rows::<F>(io, id, clock);
    }

    /// Reconstructs a page from the other pages of its stripe.
    pub fn recover(
        &mut self,
        io: &mut Io,
        op: u32,
        (stripe, place): (Stripe, u32),
        clock: &mut Clock,
    ) {
        let kind = Kind::Recover(1 << place);
        let what = JobSpec::new(kind, (stripe, 1), (Chain::only(op), false));
        self.add::<Every>(io, what, clock);
    }

    /// Flushes all members. Completes the operation `op` when the data of all writes that members had completed before
    /// are in flash.
    pub fn flush(&mut self, io: &mut Io, op: u32, clock: &mut Clock) {
        let what = JobSpec::new(Kind::Flush, (Stripe(0), 0), (Chain::only(op), true));
        let id = self.new_job(io, what);
        self.jobs[id].phase = Phase::Writing;
        for member in 0..io.members.len() {
            let m = &io.members[member];
            if !m.volatile || m.state == State::Failed {
                continue;
            }
            self.jobs[id].left += 1;
            let order = Order {
                member,
                pages: (0, 0),
                op: Op::Flush,
                fua: false,
                origin: Origin::Job(id),
            };
            io.send(order, clock, |_| SentFor::Job { job: id, place: 0 });
        }
        if self.jobs[id].left == 0 {
            self.end::<Every>(io, id, clock);
        }
    }

    /// Locks the rows of a job in ascending order, so that no two jobs wait for each other. If the job then holds all
    /// its rows, it begins.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take_rows<F: Features>(&mut self, io: &mut Io, id: u32, clock: &mut Clock) {
        let job = &mut self.jobs[id];
        while job.rows_held < job.rows {
            if !self.rows.take(job.first_row + job.rows_held, id) {
                io.record.stats.row_waits += 1;
                return;
            }
            job.rows_held += 1;
        }
        self.begin::<F>(io, id, clock);
    }

    /// Begins a job that holds the locks of its rows: sends its reads.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin<F: Features>(&mut self, io: &mut Io, id: u32, clock: &mut Clock) {
        let what = self.jobs[id].what;
        let pages = u64::from(what.pages);
        let missing = match F::ALL {
            true => io.missing(what.stripe),
            false => 0,
        };
        let (layout, stats) = (&io.layout, &mut io.record.stats);
        let (data, parity) = (layout.data(), layout.parity as usize);
        let mut method = Method::Write;
        let (reads, writes) = match what.kind {
            Kind::Write(places) if layout.copies > 1 => (0, layout.copies_of(places) & !missing),
            Kind::Write(places) => {
                let plan = plan_write(data, parity, places, missing);
                method = plan.method;
                stats.stripes[plan.method as usize] += pages;
                stats.pages_read_for_parity += pages * u64::from(count(plan.reads));
                let of_parity = count(plan.writes >> data);
                stats.parity_pages_written += pages * u64::from(of_parity);
                if plan.method == Method::Recover {
                    stats.pages_recovered += pages;
                }
                (plan.reads, plan.writes)
            }
            Kind::Recover(places) => {
                stats.pages_recovered += pages;
                // While the job waited for its row, the member of a place to reconstruct may have been restored, and
                // another member may have failed. The restored place must then be read.
                let without = match count(missing | places) as usize > parity {
                    true => missing,
                    false => missing | places,
                };
                (sources(data, parity, without), 0)
            }
            Kind::Rebuild | Kind::Flush => (0, 0),
            Kind::Trim(places) => {
                let places_all = layout.places();
                let of_parity = (1 << places_all) - (1 << (places_all - layout.parity));
                (0, (layout.copies_of(places) | of_parity) & !missing)
            }
        };
        if F::LOG {
            let ops = &io.ops;
            io.record.log.add(|| ArrayEvent::Begun {
                job: id,
                kind: match what.kind {
                    Kind::Write(places) => JobKind::Write { method, places },
                    Kind::Recover(places) => JobKind::Recover { places },
                    Kind::Rebuild => JobKind::Rebuild,
                    Kind::Trim(_) | Kind::Flush => JobKind::Trim,
                },
                first: what.stripe.0,
                pages: what.pages,
                ops: ops.of(what.chain).collect(),
            });
        }
        let job = &mut self.jobs[id];
        job.phase = Phase::Reading;
        job.writes = writes;
        if F::ALL && what.kind == Kind::Rebuild {
            let (members, sent) = self.stretch.read(io, id, what.extent(), clock);
            let job = &mut self.jobs[id];
            (job.writes, job.left) = (members, sent);
            if sent == 0 {
                self.write_phase::<F>(io, id, clock);
            }
            return;
        }
        match reads {
            0 => self.write_phase::<F>(io, id, clock),
            _ => self.send_places::<F>(io, id, reads, Op::Read, clock),
        }
    }

    /// Sends the writes of a job. Called when all reads of the job have completed.
    #[inline(never)]
    fn write_phase<F: Features>(&mut self, io: &mut Io, id: u32, clock: &mut Clock) {
        let job = &mut self.jobs[id];
        job.phase = Phase::Writing;
        if F::ALL && job.what.kind == Kind::Rebuild {
            let (still, sent) = (self.stretch).write(io, id, job.what.extent(), job.writes, clock);
            (job.writes, job.left) = (still, sent);
            if sent == 0 {
                self.end::<F>(io, id, clock);
            }
            return;
        }
        if F::ALL {
            // Members that failed after the writes were planned receive no writes.
            job.writes &= !io.missing(job.what.stripe);
        }
        let op = match job.what.kind {
            Kind::Trim(_) => Op::Trim,
            Kind::Write(_) | Kind::Recover(_) | Kind::Rebuild | Kind::Flush => Op::Write,
        };
        match job.writes {
            0 => self.end::<F>(io, id, clock),
            writes => self.send_places::<F>(io, id, writes, op, clock),
        }
    }

    /// Sends one request to the member at each of these places. There is at least one place.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn send_places<F: Features>(
        &mut self,
        io: &mut Io,
        id: u32,
        places: Places,
        op: Op,
        clock: &mut Clock,
    ) {
        let job = &mut self.jobs[id];
        job.left = count(places);
        let JobSpec { stripe, pages, .. } = job.what;
        let fua = job.what.fua && op == Op::Write;
        let ask = Ask {
            first: stripe.0,
            pages,
            op,
            fua,
            owner: Owner::job(id),
        };
        let is_single = pages == 1 && op != Op::Trim && io.may_send_pages::<F>();
        let members = self.layout.members_of_row(job.first_row);
        let mut pages_at = 0;
        for at in each(places) {
            let member = members.at(at);
            if is_single && io.send_page::<F>(member, &ask, clock) {
                pages_at |= 1 << member;
                io.log_page_sent::<F>(member, &ask, || SentFor::Job { job: id, place: at });
                continue;
            }
            let order = Order {
                member,
                pages: (stripe.0, pages),
                op,
                fua,
                origin: Origin::Job(id),
            };
            io.send(order, clock, |_| SentFor::Job { job: id, place: at });
        }
        job.pages_at = pages_at;
        if op == Op::Read {
            for at in each(job.writes) {
                io.prefetch_old_copy::<F>(members.at(at), stripe);
            }
        }
    }

    /// Counts a request of a job as completed, although the request was lost because its member failed. If the job is
    /// reading, its reads are planned again when its other requests in flight have completed.
    pub fn step_lost(&mut self, io: &mut Io, id: u32, clock: &mut Clock) {
        let job = &mut self.jobs[id];
        job.again |= job.phase == Phase::Reading;
        self.step_done::<Every>(io, id, Spent::default(), true, clock);
    }

    /// Records the completion of a page of a job that was sent to `member` without a request record
    /// ([`Io::send_page`]).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn page_done<F: Features>(
        &mut self,
        io: &mut Io,
        id: u32,
        (member, spent, written): (usize, Spent, bool),
        clock: &mut Clock,
    ) {
        io.log_page_done::<F>(Owner::job(id), member);
        self.jobs[id].pages_at &= !(1 << member);
        self.step_done::<F>(io, id, spent, written, clock);
    }

    /// Returns the jobs with a page in flight to `member` that was sent without a request record ([`Io::send_page`]).
    /// The jobs then no longer list these pages as in flight.
    pub fn take_pages_of(&mut self, member: usize) -> Vec<u32> {
        let is_lost = |job: &mut Job| {
            let is_there = job.pages_at >> member & 1 == 1;
            job.pages_at &= !(1 << member);
            is_there
        };
        let all = self.jobs.iter_mut();
        all.filter_map(|(id, job)| is_lost(job).then_some(id))
            .collect()
    }

    /// Records that a member has completed a request of the job. When all requests of the current step have completed,
    /// the job continues with its next step, or ends.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn step_done<F: Features>(
        &mut self,
        io: &mut Io,
        id: u32,
        spent: Spent,
        written: bool,
        clock: &mut Clock,
    ) {
        let job = &mut self.jobs[id];
        job.left -= 1;
        job.written &= written;
        if job.left > 0 {
            return;
        }
        // A job's step takes as long as the request that completes last.
        job.spent.add(spent);
        let again = F::ALL && std::mem::take(&mut job.again);
        match job.phase {
            Phase::Reading if again => self.begin::<F>(io, id, clock),
            Phase::Reading => self.write_phase::<F>(io, id, clock),
            _ => self.end::<F>(io, id, clock),
        }
    }

    /// Ends a job, and begins the next job of each of its rows.
    #[inline(never)]
    fn end<F: Features>(&mut self, io: &mut Io, id: u32, clock: &mut Clock) {
        let job = &self.jobs[id];
        let (what, first_row, rows) = (job.what, job.first_row, job.rows);
        let (writes, written) = (job.writes, job.written);
        io.finish::<F>(what.chain, job.spent, written);
        io.deliver(clock);
        if F::ALL && what.kind == Kind::Flush {
            return self.jobs.remove(id);
        }
        if F::ALL && what.kind == Kind::Rebuild {
            self.rebuild.in_flight -= 1;
            if written {
                stretch::rebuilt(io, what.extent(), writes, clock.now);
            }
        }
        self.jobs.remove(id);
        for row in first_row..first_row + rows {
            if let Some(next) = self.rows.give_back(row) {
                self.next_of_row::<F>(io, next, clock);
            }
        }
        if F::ALL && what.kind == Kind::Rebuild {
            self.rebuild_on(io, clock);
        }
    }

    /// Gives a job the lock of a row for which it was waiting.
    #[inline(never)]
    fn next_of_row<F: Features>(&mut self, io: &mut Io, id: u32, clock: &mut Clock) {
        self.jobs[id].rows_held += 1;
        self.take_rows::<F>(io, id, clock);
    }

    // ---- rebuilding ----

    /// Restarts the rebuild at the first row, because members were replaced.
    pub fn rebuild_anew(&mut self, io: &mut Io, clock: &mut Clock) {
        self.rebuild.next_row = 0;
        self.rebuild_on(io, clock);
    }

    /// Called at the alarm of rebuilding: begins to rebuild the stretches (groups of adjacent rows) that are due.
    pub fn rebuild_due(&mut self, io: &mut Io, clock: &mut Clock) {
        self.rebuild.alarm.went_off();
        self.rebuild_on(io, clock);
    }

    /// Begins to rebuild as many stretches (groups of adjacent rows) as may run now, and sets the alarm for the next
    /// one.
    fn rebuild_on(&mut self, io: &mut Io, clock: &mut Clock) {
        while let Some((row, rows)) = self.rebuild.next(&io.members, clock) {
            let pages = io.layout.chunk_pages();
            let stretch = (Stripe(row * pages), rows * pages);
            // The writes are forced to flash, so that a power loss cannot destroy data that were safe before the
            // member failed.
            let what = JobSpec::new(Kind::Rebuild, stretch, (Chain::EMPTY, true));
            self.add::<Every>(io, what, clock);
        }
    }

    /// Excludes a member that failed during its own rebuild from the writes of the running rebuild jobs.
    pub fn forget_rebuilt(&mut self, member: usize) {
        for (_, job) in self.jobs.iter_mut() {
            if job.what.kind == Kind::Rebuild && job.phase == Phase::Writing {
                job.writes &= !(1 << member);
            }
        }
    }

    /// Returns the page operations that wait for jobs.
    pub fn chains(&self) -> impl Iterator<Item = Chain> + '_ {
        self.jobs.iter().map(|job| job.what.chain)
    }
}
