//! Converts page operations of the front end to requests to members.
//!
//! Consecutive pages on a member become one request to this member ([`Io::join`]). [`Io::send`] sends a request. When
//! the request completes, its originator is notified.

pub(super) mod hedge;
pub(super) mod ops;
pub(super) mod requests;
pub(super) mod runs;

use super::clock::Clock;
use super::coordinate;
use super::coordinate::units::collects_at;
use super::coordinate::watch::Watch;
use super::features::{Copy, Features};
use super::layout::plan::{sources, Places};
use super::layout::{Layout, Spot, Stripe};
use super::member::drive::Ask;
use super::member::response::Spent;
use super::member::{Member, Members};
use super::record::log::{ArrayEvent, SentFor};
use super::record::Record;
use super::table::NONE;
use crate::device::Work;
use crate::nand::{Owner, PageOp, Receiver};
use crate::request::Op;
use crate::spec::{ArraySpec, Buffer, Level, Reads};
use crate::units::{narrow, Lpn, Time};
use hedge::Hedge;
use ops::{Chain, Ops};
use requests::{Origin, Requests};
use runs::{Run, Runs};

/// A request to be sent to a member. `pages` is its first page on the member and its number of pages. `origin` is what
/// the request belongs to: operations of the host, a job on page stripes, or a task of a SWAN volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub member: usize,
    pub pages: (u32, u32),
    pub op: Op,
    pub fua: bool,
    pub origin: Origin,
}

/// The members, and all operations in flight between them and the front end.
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
    /// Whether a member has volatile memory.
    pub volatile: bool,
    /// Whether every write to a member must reach flash before it completes, despite the member's buffer (D-91). This
    /// is so if the array's buffer survives a power loss, but a member's buffer does not: a page evicted from the
    /// array's buffer must then not be lost in the member's buffer.
    pub through: bool,
    /// Whether the array reads a page from other members while the chip that holds the page is collecting garbage.
    reads_around_gc: bool,
    /// Whether an event is being processed. At the end of the event, the front end takes the finished operations.
    pub in_event: bool,
    /// Whether pages are sent to members one by one, so that each page completes independently of others. This is so
    /// in an array with neither redundancy nor coordination.
    pub sends_single_pages: bool,
    /// Whether the array is a volume of segments (SWAN), without rows.
    has_volume: bool,
    copy: Copy,
}

impl Io {
    /// Creates the `Io` of a new array. `hedging` is the number of the event queue's resource for hedging. `before` is
    /// the number of resources that precede those of the members' flash.
    pub fn new(spec: &ArraySpec, hedging: usize, before: usize) -> Io {
        let members = Members::new(spec, before);
        let volatile = members.iter().any(|member| member.volatile);
        let of = narrow(members.len());
        let sends_single_pages = spec.level == Level::Raid0
            && coordinate::is_local(spec)
            && spec.reads == Reads::Direct
            && members.iter().all(|member| member.drive.is_bare);
        let layout = Layout::new(spec.level, spec.rotation, of, spec.chunk_pages);
        let mut io = Io {
            sends_single_pages,
            has_volume: spec.level == Level::Swan,
            copy: Copy::EVERY,
            watch: Watch::new(spec, &members, &layout),
            layout,
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
        io.choose_features();
        io
    }

    /// Chooses the compiled copy of the code that the array runs ([`super::features`]). Must be called after any change
    /// that affects the choice.
    pub fn choose_features(&mut self) {
        self.copy = self.find_copy();
    }

    fn find_copy(&self) -> Copy {
        let is_plain = self.members.whole
            && !self.members.lost
            && self.members.iter().all(Member::is_usual)
            && self.watch.sees_only_gc()
            && self.hedge.is_none()
            && !self.has_volume
            && self.record.log.leaves_plain();
        let kind = |member: &Member| member.drive.ssd.backend.kind();
        let first = kind(&self.members[0]);
        match is_plain {
            false => Copy::EVERY,
            true if self.members.iter().all(|member| kind(member) == first) => Copy::plain(first),
            true => Copy::plain(0),
        }
    }

    /// Returns the compiled copy of the code to run. It is a plain copy only as long as the array uses none of the
    /// optional features ([`Features::ALL`], [`Features::LOG`]).
    #[inline(always)]
    pub fn copy(&self) -> Copy {
        debug_assert!(self.copy == Copy::EVERY || self.copy == self.find_copy());
        self.copy
    }

    /// For tests: `allowed` determines whether [`Io::copy`] may be a plain copy.
    #[cfg(test)]
    pub fn allow_plain(&mut self, allowed: bool) {
        if !allowed {
            self.copy = Copy::EVERY;
        }
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.ops.is_empty()
    }

    /// Checks a member after one of its events.
    #[inline(never)]
    pub fn look_at(&mut self, member: usize, clock: &mut Clock) {
        let (members, record) = (&mut self.members, &mut self.record);
        self.watch.look_at(member, members, record, clock);
    }

    /// Checks a member whose requests go directly to its flash, after an event of this flash.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn look_at_flash<F: Features>(&mut self, member: usize, clock: &mut Clock) {
        let may_have_changed = match F::ALL {
            true => !self.watch.has_seen(member, &self.members),
            false => {
                let chips = self.members[member].drive.chips_in_gc::<F>();
                !self.watch.units.is_noted(member, chips)
            }
        };
        if may_have_changed {
            self.look_at(member, clock);
        }
    }

    /// Updates which members are in GC.
    pub fn note_gc(&mut self) {
        for (number, member) in (0..).zip(self.members.iter()) {
            self.watch
                .units
                .note(number, member.drive.ssd.chips_in_gc());
        }
    }

    /// Runs the coordinator's periodic check if it is due.
    pub fn check(&mut self, clock: &mut Clock) {
        let (members, record) = (&mut self.members, &mut self.record);
        self.watch.check(members, record, clock);
    }

    /// Notifies the coordinator of a host request.
    pub fn leave_idle(&mut self, clock: &mut Clock) {
        let (members, record) = (&mut self.members, &mut self.record);
        self.watch.leave_idle(members, record, clock);
    }

    /// Notifies the coordinator if the array has become idle.
    #[inline(always)]
    pub fn may_be_idle(&mut self, clock: &mut Clock) {
        if !self.watch.is_local && !self.watch.coordinator.is_idle() && self.is_empty() {
            self.watch.become_idle(&mut self.members, clock);
        }
    }

    /// Begins a new phase of the array's history, because a member failed, was replaced or has been rebuilt.
    pub fn begin_phase(&mut self, now: Time) {
        self.record.begin_phase(self.members.condition(), now);
    }

    // ---- page operations ----

    /// Adds an operation of the front end.
    #[inline]
    pub fn take_in(&mut self, mut op: PageOp, what: Op, now: Time) -> u32 {
        op.enqueued = now;
        let id = self.ops.add(op);
        if self.record.log.is_on() {
            self.log_start(id, &op, what);
        }
        id
    }

    #[cold]
    fn log_start(&mut self, id: u32, op: &PageOp, what: Op) {
        self.record.log.add(|| ArrayEvent::Asked {
            op: id,
            lpn: op.lpn,
            request: op.request,
            what,
        });
    }

    /// Finishes the operations of a chain.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn finish<F: Features>(&mut self, mut chain: Chain, spent: Spent, written: bool) {
        while chain.head != NONE {
            let op = chain.head;
            chain.head = self.ops.after(op);
            let is_first = match &mut self.hedge {
                Some(hedge) if F::ALL => hedge.done(op, &self.layout, &mut self.record.stats),
                _ => true,
            };
            if is_first {
                self.ops
                    .done
                    .push_back(spent.on(*self.ops.get(op), written));
                self.log_event::<F>(|| ArrayEvent::Answered { op });
            } else {
                self.record.log.add(|| ArrayEvent::Late { op });
            }
            self.ops.free(op);
        }
    }

    /// Ensures that the front end takes the finished operations at this instant. Outside an event, sets the array's
    /// own alarm for this purpose.
    #[inline(always)]
    pub fn deliver(&mut self, clock: &mut Clock) {
        if !self.in_event && !self.ops.done.is_empty() {
            self.members.own.set(clock.now, clock);
        }
    }

    // ---- requests to members ----

    /// Sends a request to a member, and stores a record of it.
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
            origin,
        } = order;
        let part = self.requests.add(member, pages, origin, clock.now);
        self.record.stats.pages_sent(op, pages);
        let ask = Ask {
            first,
            pages,
            op,
            fua,
            owner: Owner::member_request(part),
        };
        self.members[member].submit(&ask, clock);
        self.look_at(member, clock);
        self.members[member].wake(clock);
        self.record.log.add(|| ArrayEvent::Sent {
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

    /// Sends one page to a member's flash without a request record (an entry in [`Requests`]). The job or page
    /// operation that owns the page stores the necessary data instead. Does nothing and returns false in two cases: if
    /// pages must not be sent directly to this member's flash (`Member::is_usual`), or if the operation would complete
    /// immediately. The caller must then call [`Io::send`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn send_page<F: Features>(&mut self, member: usize, ask: &Ask, clock: &mut Clock) -> bool {
        let m = &mut self.members[member];
        let is_usual = !F::ALL || m.is_usual();
        if !is_usual || !m.drive.submit_one::<F>(ask, clock.now, clock.events) {
            return false;
        }
        m.in_flight += 1;
        self.record.stats.pages_sent(ask.op, 1);
        self.look_at_flash::<F>(member, clock);
        true
    }

    /// Logs a page that was sent without a request record ([`Io::send_page`]).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn log_page_sent<F: Features>(
        &mut self,
        member: usize,
        ask: &Ask,
        on_behalf: impl FnOnce() -> SentFor,
    ) {
        if F::LOG {
            let number = self.members[member].last_number();
            self.record.log.add(|| ArrayEvent::Sent {
                part: part_without_record(ask.owner, member),
                member,
                first: ask.first,
                pages: 1,
                op: ask.op,
                on_behalf: on_behalf(),
                number,
            });
        }
    }

    /// Logs the completion of a page that was sent without a request record ([`Io::send_page`]).
    #[inline(always)]
    pub fn log_page_done<F: Features>(&mut self, owner: Owner, member: usize) {
        self.log_event::<F>(|| ArrayEvent::Came {
            part: part_without_record(owner, member),
        });
    }

    /// Logs an event.
    #[inline(always)]
    pub fn log_event<F: Features>(&mut self, event: impl FnOnce() -> ArrayEvent) {
        if F::LOG {
            self.record.log.add(event);
        }
    }

    /// Whether single pages may be sent without a request record ([`Io::send_page`]). They may not while an array is
    /// logged, because the log contains every request. In plain arrays they always may, because only tests log these
    /// arrays.
    #[inline(always)]
    pub fn may_send_pages<F: Features>(&self) -> bool {
        !F::ALL || !self.record.log.is_on()
    }

    /// Adds a page to the run of its member, that is, to the consecutive pages that will be sent as one request. Sends
    /// the run first if the page does not follow it.
    pub fn join<F: Features>(
        &mut self,
        Spot { member, lpn }: Spot,
        id: u32,
        (op, fua): (Op, bool),
        clock: &mut Clock,
    ) {
        if (self.runs.alone || self.sends_single_pages) && id != NONE {
            let run = Run {
                first: lpn.0,
                pages: 1,
                op,
                fua,
                chain: Chain::only(id),
            };
            return self.send_single::<F>(member, &run, clock);
        }
        if !self.runs.of(member).is_followed_by(lpn.0, op, fua) {
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

    /// Sends a run (pages to be sent as one request) that has only one page. If possible, sends this page without a
    /// request record ([`Io::send_page`]).
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn send_single<F: Features>(&mut self, member: usize, run: &Run, clock: &mut Clock) {
        let is_watched = F::ALL && (self.hedge.is_some() || self.has_volume);
        if is_watched || !self.may_send_pages::<F>() {
            return self.send_pages(member, run, clock);
        }
        let id = run.chain.head;
        let ask = Ask {
            first: run.first,
            pages: 1,
            op: run.op,
            fua: run.fua,
            owner: Owner::array_page(id),
        };
        if !self.send_page::<F>(member, &ask, clock) {
            return self.send_pages(member, run, clock);
        }
        let order = self.requests.take_order();
        self.ops.note_sent(id, member, order);
        self.log_page_sent::<F>(member, &ask, || SentFor::Pages(vec![id]));
    }

    #[inline(never)]
    fn send_pages(&mut self, member: usize, run: &Run, clock: &mut Clock) {
        let order = Order {
            member,
            pages: (run.first, run.pages),
            op: run.op,
            fua: run.fua,
            origin: Origin::Host(run.chain),
        };
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

    /// Sends all runs.
    pub fn send_runs(&mut self, clock: &mut Clock) {
        while let Some(member) = self.runs.take_member() {
            self.send_run(member, clock);
        }
    }

    /// Returns the member and the page operations of a request that serves reads of the front end. `None` for other
    /// requests, and if the request that was sent at `sent` is no longer in flight.
    pub fn host_reads(&self, request: u32, sent: Time) -> Option<(usize, Chain)> {
        self.requests.host_reads(&self.ops, request, sent)
    }

    // ---- sources of a page ----

    /// Whether the member has its page of a stripe.
    pub fn has(&self, member: usize, stripe: Stripe) -> bool {
        self.members.has(member, self.layout.row_of(stripe))
    }

    /// Returns the places of a stripe whose pages are missing on their members, as bits.
    pub fn missing(&self, stripe: Stripe) -> Places {
        if self.members.whole {
            return 0;
        }
        let layout = &self.layout;
        layout.places_where(|at| !self.has(layout.member_at(stripe, at), stripe))
    }

    /// Returns the member to read a page from; `None` if the page must be reconstructed. Among members with a copy, the
    /// one with the fewest requests in flight is chosen. Reads that avoid GC first prefer copies on chips that are not
    /// in GC. A page is reconstructed in two cases:
    ///
    /// - No copy is present.
    /// - Reads avoid GC, the chip of the copy is in GC, and the chips that the reconstruction reads are not.
    pub fn readable_copy(&self, stripe: Stripe, place: u32) -> Option<usize> {
        let copies = self.layout.copies_at(stripe, place);
        let copies = copies.filter(|&member| self.has(member, stripe));
        if !self.reads_around_gc {
            return copies.min_by_key(|&member| self.members[member].in_flight);
        }
        let collects = |member: usize| collects_at(&self.members[member], stripe);
        let from = copies.min_by_key(|&at| (collects(at), self.members[at].in_flight))?;
        let around =
            self.layout.parity > 0 && collects(from) && self.others_are_free(stripe, place);
        (!around).then_some(from)
    }

    /// Whether a page can be reconstructed from pages that are all on chips not in GC.
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

    /// Prefetches the tables of a member's flash that will be accessed when the member's page of a stripe is written.
    #[inline(always)]
    pub fn prefetch_old_copy<F: Features>(&self, member: usize, stripe: Stripe) {
        let drive = &self.members[member].drive;
        drive.prefetch_old_copy::<F>(Lpn(stripe.0));
    }
}

/// Returns the number under which the log lists a page that is sent without a request record. This number is larger
/// than all numbers of requests. It is unique, because the owner of the page (a job or a page operation) has at most
/// one such page in flight per member.
fn part_without_record(owner: Owner, member: usize) -> u32 {
    1 << 31
        | (owner.number() << 6 | member as u32) << 1
        | u32::from(owner.receiver() == Receiver::Job)
}
