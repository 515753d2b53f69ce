//! Page operations in, requests to members out: what all ways of serving the front end share.
//!
//! Consecutive pages on a member become one request to it ([`Io::join`]); a request is sent ([`Io::send`]), and
//! its originator is notified when it is done.

pub(super) mod hedge;
pub(super) mod ops;
pub(super) mod requests;
pub(super) mod runs;

use super::clock::Clock;
use super::coordinate::units::collects_at;
use super::coordinate::watch::Watch;
use super::layout::plan::{sources, Places};
use super::layout::{Layout, Spot, Stripe};
use super::member::spent::Spent;
use super::member::{Member, Members};
use super::record::log::{ArrayEvent, SentFor};
use super::record::Record;
use super::table::NONE;
use crate::device::Work;
use crate::nand::PageOp;
use crate::request::Op;
use crate::spec::{ArraySpec, Buffer, Reads};
use crate::units::{narrow, Lpn, Time};
use hedge::Hedge;
use ops::{Chain, Ops};
use requests::{Owner, Requests, OF_JOB};
use runs::{Run, Runs};

/// What a member is asked, and for whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    member: usize,
    pages: (u32, u32),
    op: Op,
    fua: bool,
    owner: Owner,
}

impl Order {
    /// `pages` are its first page there, and how many.
    pub fn new(member: usize, pages: (u32, u32), (op, fua): (Op, bool), owner: Owner) -> Order {
        Order {
            member,
            pages,
            op,
            fua,
            owner,
        }
    }
}

/// The members, and all that is in flight between them and the front end.
#[derive(Clone, Debug)]
pub(crate) struct Io {
    pub layout: Layout,
    pub members: Members,
    pub watch: Watch,
    pub record: Record,
    pub ops: Ops,
    pub runs: Runs,
    pub requests: Requests,
    pub hedge: Option<Box<Hedge>>,
    /// A member has memory that a power loss empties.
    pub volatile: bool,
    /// What the array's buffer evicts must not be lost, while that buffer survives a power loss and members' do
    /// not: all writes are forced through (D-91).
    pub through: bool,
    /// Pages are read from elsewhere while their chip collects.
    reads_around_gc: bool,
    /// An event is being processed: the front end takes finished operations at its end.
    pub in_event: bool,
    /// Writes of pages take a short way, see [`Io::find_way`].
    is_short: bool,
}

impl Io {
    /// Of an array that was never written. `hedging` is the resource of the event queue for hedging, `before` the
    /// number of resources before those of members' flash.
    pub fn new(spec: &ArraySpec, hedging: usize, before: usize) -> Io {
        let members = Members::new(spec, before);
        let volatile = members.iter().any(|member| member.volatile);
        let of = narrow(members.len());
        let mut io = Io {
            is_short: false,
            layout: Layout::new(spec.level, spec.rotation, of, spec.chunk_pages),
            watch: Watch::new(spec, &members),
            record: Record::default(),
            ops: Ops::default(),
            runs: Runs::new(members.len()),
            requests: Requests::default(),
            hedge: Hedge::of(spec, hedging),
            volatile,
            through: volatile && spec.buffer.as_ref().is_some_and(Buffer::is_protected),
            reads_around_gc: spec.reads == Reads::AroundGc,
            in_event: false,
            members,
        };
        io.find_way();
        io
    }

    /// Chooses the way of writes of one page. They take the short way if the array is whole and has one parity, no member
    /// is slow or coordinated, a page has the same chip on every member, chips serve one operation at a time, and nothing
    /// is logged.
    pub fn find_way(&mut self) {
        self.is_short = self.finds_short_way();
    }

    fn finds_short_way(&self) -> bool {
        let first = &self.members[0].drive.ssd.backend;
        let is_simple = |member: &Member| {
            let flash = &member.drive.ssd.backend;
            member.is_usual() && flash.has_short_way() && flash.has_chips_of(first)
        };
        self.writes_pairs()
            && !self.members.lost
            && self.watch.is_plain()
            && self.hedge.is_none()
            && self.members.iter().all(is_simple)
    }

    /// For tests: the short way is taken only if `allowed`.
    #[cfg(test)]
    pub fn allow_short_way(&mut self, allowed: bool) {
        self.is_short &= allowed;
    }

    /// See [`Io::find_way`], which is called once any of this changes.
    #[inline(always)]
    pub fn is_short(&self) -> bool {
        debug_assert!(!self.is_short || self.finds_short_way());
        self.is_short
    }

    /// Nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.ops.is_empty()
    }

    /// Looks at a member after something happened there.
    #[inline(never)]
    pub fn look_at(&mut self, member: usize, clock: &mut Clock) {
        let (members, record) = (&mut self.members, &mut self.record);
        self.watch.look_at(member, members, record, clock);
    }

    /// The same for a member whose flash has its events in the array's queue.
    #[inline(always)]
    pub fn look_at_flash(&mut self, member: usize, clock: &mut Clock) {
        if !self.watch.has_seen(member, &self.members) {
            self.look_at(member, clock);
        }
    }

    /// Looks at which members are in GC.
    pub fn note_gc(&mut self) {
        for (number, member) in (0..).zip(self.members.iter()) {
            self.watch
                .units
                .note(number, member.drive.ssd.chips_in_gc());
        }
    }

    /// The coordinator's own time may have come.
    pub fn check(&mut self, clock: &mut Clock) {
        let (members, record) = (&mut self.members, &mut self.record);
        self.watch.check(members, record, clock);
    }

    /// The host wants something.
    pub fn leave_idle(&mut self, clock: &mut Clock) {
        let (members, record) = (&mut self.members, &mut self.record);
        self.watch.leave_idle(members, record, clock);
    }

    /// The array may have nothing to do any more.
    #[inline(always)]
    pub fn may_be_idle(&mut self, clock: &mut Clock) {
        if !self.watch.is_local && !self.watch.coordinator.is_idle() && self.is_empty() {
            self.watch.become_idle(&mut self.members, clock);
        }
    }

    /// A member failed, was replaced or became whole.
    pub fn begin_phase(&mut self, now: Time) {
        self.record.begin_phase(self.members.condition(), now);
    }

    // ---- page operations ----

    /// The front end asks for something.
    #[inline]
    pub fn take_in(&mut self, mut op: PageOp, what: Op, now: Time) -> u32 {
        op.enqueued = now;
        let id = self.ops.add(op);
        if self.record.log.is_on() {
            self.tell_asked(id, &op, what);
        }
        id
    }

    #[cold]
    fn tell_asked(&mut self, id: u32, op: &PageOp, what: Op) {
        self.record.log.tell(|| ArrayEvent::Asked {
            op: id,
            lpn: op.lpn,
            request: op.request,
            what,
        });
    }

    /// The operations of a chain are done.
    #[inline(always)]
    pub fn finish(&mut self, mut chain: Chain, spent: Spent, written: bool) {
        while chain.head != NONE {
            let op = chain.head;
            chain.head = self.ops.after(op);
            let is_first = match &mut self.hedge {
                Some(hedge) => hedge.done(op, &self.layout, &mut self.record.stats),
                None => true,
            };
            if is_first {
                self.ops
                    .done
                    .push_back(spent.on(*self.ops.get(op), written));
                self.record.log.tell(|| ArrayEvent::Answered { op });
            } else {
                self.record.log.tell(|| ArrayEvent::Late { op });
            }
            self.ops.free(op);
        }
    }

    /// Lets the front end have what is done, at this instant.
    #[inline(always)]
    pub fn deliver(&mut self, clock: &mut Clock) {
        if !self.in_event && !self.ops.done.is_empty() {
            self.members.own.set(clock.now, clock);
        }
    }

    // ---- requests to members ----

    /// Sends a request to a member.
    #[inline(always)]
    pub fn send(
        &mut self,
        order: Order,
        clock: &mut Clock,
        on_behalf: impl FnOnce(&Ops) -> SentFor,
    ) -> u32 {
        let Order {
            member,
            pages: (first, pages),
            op,
            fua,
            owner,
        } = order;
        let part = self.requests.add(member, pages, owner, clock.now);
        let stats = &mut self.record.stats;
        match op {
            Op::Read => stats.member_pages_read += u64::from(pages),
            Op::Write => stats.member_pages_written += u64::from(pages),
            Op::Trim | Op::Flush => {}
        }
        self.members[member].ask(clock, (first, pages), (op, fua), part);
        self.look_at(member, clock);
        self.members[member].wake(clock);
        self.record.log.tell(|| ArrayEvent::Sent {
            part,
            member,
            first,
            pages,
            op,
            on_behalf: on_behalf(&self.ops),
            number: self.members[member].last_number(),
        });
        part
    }

    /// Sends one page of a job to a member's flash without a record. Returns false, with nothing done, if the member or
    /// the page needs [`Io::send`].
    #[inline(always)]
    pub fn send_page<const READ: bool>(
        &mut self,
        member: usize,
        lpn: Lpn,
        fua: bool,
        job: u32,
        clock: &mut Clock,
    ) -> bool {
        let m = &mut self.members[member];
        let tag = OF_JOB | job;
        if !m.is_usual() || !(m.drive).submit_one_among::<READ>(clock, lpn, fua, tag) {
            return false;
        }
        m.under_way += 1;
        self.record.stats.page_sent::<READ>();
        self.look_at_flash(member, clock);
        true
    }

    /// The same on the short way, to the chip of the page.
    #[inline(always)]
    pub fn send_short<const READ: bool>(
        &mut self,
        member: usize,
        (chip, lpn): (u32, Lpn),
        fua: bool,
        job: u32,
        clock: &mut Clock,
    ) -> bool {
        let m = &mut self.members[member];
        let sent = (m.drive).submit_short::<READ>(clock, (chip, lpn), fua, OF_JOB | job);
        let Some(may_collect) = sent else {
            return false;
        };
        m.under_way += 1;
        self.record.stats.page_sent::<READ>();
        if may_collect {
            self.look_at_flash(member, clock);
        }
        true
    }

    /// The chip of the pages of a stripe, if that is the same on all members.
    #[inline(always)]
    pub fn chip_of(&self, stripe: Stripe) -> u32 {
        self.members[0].drive.ssd.backend.chip_of(Lpn(stripe.0))
    }

    /// Adds a page to what is being put together for its member.
    pub fn join(
        &mut self,
        Spot { member, lpn }: Spot,
        id: u32,
        (op, fua): (Op, bool),
        clock: &mut Clock,
    ) {
        if self.runs.alone && id != NONE {
            let run = Run {
                first: lpn.0,
                pages: 1,
                op,
                fua,
                chain: Chain::only(id),
            };
            return self.send_pages(member, &run, clock);
        }
        if !self.runs.of(member).goes_on_with(lpn.0, op, fua) {
            self.send_run(member, clock);
            self.runs.begin(member, lpn.0, op, fua);
        }
        let run = self.runs.of(member);
        run.pages += 1;
        if id != NONE {
            self.ops.append(&mut run.chain, id);
        }
    }

    fn send_run(&mut self, member: usize, clock: &mut Clock) {
        if let Some(run) = self.runs.take(member) {
            self.send_pages(member, &run, clock);
        }
    }

    #[inline(always)]
    fn send_pages(&mut self, member: usize, run: &Run, clock: &mut Clock) {
        let (pages, owner) = ((run.first, run.pages), Owner::Host(run.chain));
        let order = Order::new(member, pages, (run.op, run.fua), owner);
        let request = self.send(order, clock, |ops| {
            SentFor::Pages(ops.of(run.chain).collect())
        });
        if run.op == Op::Read {
            if let Some(hedge) = &mut self.hedge {
                let (requests, ops) = (&self.requests, &self.ops);
                let reads = |id, sent| requests.host_reads(ops, id, sent).is_some();
                hedge.watch(request, clock, reads);
            }
        }
    }

    /// Sends all that was put together.
    pub fn send_runs(&mut self, clock: &mut Clock) {
        while let Some(member) = self.runs.take_member() {
            self.send_run(member, clock);
        }
    }

    /// The member and the page operations of a request of the front end's reads, sent at `sent`, if it is in
    /// flight.
    pub fn host_reads(&self, request: u32, sent: Time) -> Option<(usize, Chain)> {
        self.requests.host_reads(&self.ops, request, sent)
    }

    // ---- where pages can be read ----

    /// A write of one page reads it and its parity, and writes both, which nothing observes.
    #[inline(always)]
    pub fn writes_pairs(&self) -> bool {
        self.members.whole && self.layout.writes_pairs() && !self.record.log.closes_pairs()
    }

    /// The member holds what belongs there of a stripe.
    pub fn has(&self, member: usize, stripe: Stripe) -> bool {
        self.members.has(member, self.layout.row_of(stripe))
    }

    /// Places of a stripe whose members do not have them, as bits.
    pub fn missing(&self, stripe: Stripe) -> Places {
        if self.members.whole {
            return 0;
        }
        let layout = &self.layout;
        layout.places_where(|at| !self.has(layout.member_at(stripe, at), stripe))
    }

    /// The member to read a page from: where it lies, or of several copies that of the member with
    /// the fewest requests; `None` if it must be worked out.
    pub fn readable_copy(&self, stripe: Stripe, place: u32) -> Option<usize> {
        let copies = self.layout.copies_at(stripe, place);
        let copies = copies.filter(|&member| self.has(member, stripe));
        if !self.reads_around_gc {
            return copies.min_by_key(|&member| self.members[member].under_way);
        }
        let collects = |member: usize| collects_at(&self.members[member], stripe);
        let from = copies.min_by_key(|&at| (collects(at), self.members[at].under_way))?;
        let around =
            self.layout.parity > 0 && collects(from) && self.others_are_free(stripe, place);
        (!around).then_some(from)
    }

    /// A page can be worked out from members whose chips are not in GC.
    fn others_are_free(&self, stripe: Stripe, place: u32) -> bool {
        let layout = &self.layout;
        let missing = self.missing(stripe) | 1 << place;
        if missing.count_ones() > layout.parity {
            return false;
        }
        let from = sources(layout.data(), layout.parity as usize, missing);
        (0..layout.places())
            .filter(|at| from >> at & 1 == 1)
            .all(|at| !collects_at(&self.members[layout.member_at(stripe, at)], stripe))
    }

    /// Starts loading what a write of these places of a stripe will touch.
    pub fn prefetch_old_copies(&self, stripe: Stripe, places: impl Iterator<Item = u32>) {
        let members = self.layout.members_of(stripe);
        for at in places {
            self.prefetch_old_copy(members.at(at), stripe);
        }
    }

    /// The same for one member.
    #[inline(always)]
    pub fn prefetch_old_copy(&self, member: usize, stripe: Stripe) {
        let flash = &self.members[member].drive.ssd.backend;
        flash.prefetch_old_copy(Lpn(stripe.0));
    }
}
