//! The members of an array as a back end: page operations in, requests to members out.
//!
//! What the front end queues at one instant is taken together ([`Work::settle`]): pages that follow
//! each other on a member become one request to it, pages of one stripe are written together. Where
//! there is redundancy, writes of a row happen one after the other, so that no two compute parity
//! from the same old contents; what a write does is `stripes`' business.

use std::collections::VecDeque;

use super::ahead::members_are_independent;
use super::condition::History;
use super::coordinate::{Coordinator, MemberView, Message};
use super::direct::Direct;
use super::hedge::Hedge;
use super::layout::{Layout, Stripe};
use super::log::ArrayEvent;
use super::member::{Member, State};
use super::parts::Part;
use super::rebuild::Rebuild;
use super::stripes::{Stripes, NONE};
use super::swan::Swan;
use super::timeline::Timeline;
use crate::chips::ChipSet;
use crate::device::Work;
use crate::events::EventQueue;
use crate::metrics::Breakdown;
use crate::nand::{Done, PageOp};
use crate::request::{Completion, Op};
use crate::spec::{ArraySpec, Buffer, MemberInGc};
use crate::ssd::Flash;
use crate::units::{Lpn, Time};

/// Where the time of a page operation went, as far as it is not waiting.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub queue_gc: Time,
    pub transfer: Time,
    pub array: Time,
}

impl Spent {
    pub fn of_page(page: &Done) -> Spent {
        Spent {
            queue_gc: page.queue_gc,
            transfer: page.transfer,
            array: page.array,
        }
    }

    pub fn of(parts: &Breakdown) -> Spent {
        Spent {
            queue_gc: parts.queue_gc,
            transfer: parts.transfer + parts.link,
            array: parts.array,
        }
    }

    pub fn add(&mut self, other: Spent) {
        self.queue_gc += other.queue_gc;
        self.transfer += other.transfer;
        self.array += other.array;
    }
}

/// Page operations one after the other, first and last by their places in the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub head: u32,
    pub tail: u32,
}

impl Chain {
    pub const EMPTY: Chain = Chain {
        head: NONE,
        tail: NONE,
    };

    #[inline]
    pub fn append(&mut self, op: u32, ops: &mut [(PageOp, u32)]) {
        match self.head {
            NONE => self.head = op,
            _ => ops[self.tail as usize].1 = op,
        }
        self.tail = op;
    }
}

/// What the array did itself, beside what its members did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RaidStats {
    /// Pages that the front end read of the array.
    pub data_pages_read: u64,
    /// All pages read from members, for whatever reason.
    pub member_pages_read: u64,
    /// All pages written to members.
    pub member_pages_written: u64,
    /// Pages that the front end wrote to the array.
    pub data_pages_written: u64,
    /// Pages of parity written with them.
    pub parity_pages_written: u64,
    /// Pages read to work out parity.
    pub pages_read_for_parity: u64,
    /// Pages worked out from the others of their stripe.
    pub pages_recovered: u64,
    /// Pages asked for elsewhere, too, because they took long.
    pub pages_hedged: u64,
    /// Those of them that came from there first.
    pub hedges_won: u64,
    /// Pages read from members for an answer that came too late.
    pub pages_read_in_vain: u64,
    /// Pages read to rebuild members.
    pub pages_read_to_rebuild: u64,
    /// Pages written to members that took the place of failed ones, because they lacked them.
    pub pages_rebuilt: u64,
    /// Page stripes written in each way: whole, read-modify-write, reconstruct-write, recovering, in part
    /// where no parity is there.
    pub stripes: [u64; 5],
    /// Writes that waited for another one in the same row.
    pub row_waits: u64,
    /// Valid pages that were moved to other segments.
    pub pages_moved: u64,
    /// Segments trimmed after that.
    pub segments_trimmed: u64,
    /// Messages of the coordinator: PARTICIPATE_GGC.
    pub gc_participations: u64,
    /// REQUEST_GGC.
    pub gc_requests: u64,
    /// FORCE_GC.
    pub gc_forced: u64,
    /// To leave off.
    pub gc_left_off: u64,
}

/// Lets a resource's pending instant be `at` if that is earlier.
#[inline]
pub(super) fn set_earlier(pending: &mut Time, resource: usize, at: Time, events: &mut EventQueue) {
    if at >= *pending {
        return;
    }
    match std::mem::replace(pending, at) {
        Time::NEVER => events.set(resource, at),
        _ => events.bring_forward(resource, at),
    }
}

/// Resources of the array's own event queue: each member's, its own, and those of rebuilding and hedging.
fn own_resources(members: usize) -> usize {
    members + 3
}

/// The members of an array.
#[derive(Clone, Debug)]
pub struct Raid {
    pub(super) spec: Box<ArraySpec>,
    pub(super) layout: Layout,
    pub(super) members: Vec<Member>,
    /// No member is missing or being rebuilt.
    pub(super) whole: bool,
    pub(super) units_in_gc: ChipSet,
    /// The first unit of each member.
    pub(super) first_unit: Vec<u32>,
    /// Which members count as being in GC.
    pub(super) in_gc: Vec<bool>,
    /// They do if any chip is.
    pub(super) any_chip_counts: bool,
    /// Page operations and what follows each in its chain.
    pub(super) ops: Vec<(PageOp, u32)>,
    free_ops: Vec<u32>,
    pub(super) parts: Vec<Part>,
    pub(super) free_parts: Vec<u32>,
    /// Members for which a request is being put together, as bits.
    pub(super) joining: u64,
    pub(super) direct: Direct,
    /// Members can be simulated each by itself ([`super::ahead`]).
    pub(super) independent: bool,
    /// They have been, to the end.
    pub(super) ahead_ends: bool,
    /// One page was queued at this instant: there is nothing to put together.
    pub(super) batch_of_one: bool,
    /// What was queued at this instant.
    pub(super) batch: Vec<u32>,
    pub(super) trims: Vec<Lpn>,
    /// Writes of the batch by stripe and place.
    pub(super) sorted: Vec<(Stripe, u32, u32)>,
    pub(super) stripes: Stripes,
    /// Groups of members instead of rows.
    pub(super) swan: Option<Box<Swan>>,
    done: VecDeque<Done>,
    /// When the array itself has something to do: its pending instant.
    pub(super) own_pending: Time,
    pub(super) rebuild: Rebuild,
    pub(super) hedge: Option<Box<Hedge>>,
    pub(super) history: History,
    /// Data are lost: nothing is done any more.
    pub(super) broken: bool,
    /// What leaves the array's buffer must not be lost, while that buffer survives a power cut and
    /// members' do not: all writes are forced through (D-91).
    pub(super) through: bool,
    /// A member has memory that a power cut empties.
    pub(super) volatile: bool,
    pub(super) stats: RaidStats,
    pub(super) log: Option<Vec<ArrayEvent>>,
    pub(super) timeline: Option<Timeline>,
    pub(super) completions: Vec<Completion>,
    pub(super) pages_done: Vec<Done>,
    pub(super) coordinator: Coordinator,
    pub(super) views: Vec<MemberView>,
    pub(super) messages: Vec<Message>,
    /// Nothing is under way.
    pub(super) idle: bool,
}

impl Raid {
    pub(super) fn new(spec: &ArraySpec) -> Raid {
        let members: Vec<Member> = spec.members.iter().map(Member::new).collect();
        let view = |member: &Member| {
            let pool = member.ssd.pool_blocks();
            let of = |percent: f64| (f64::from(pool.blocks) * percent / 100.0) as u32;
            MemberView {
                soft: of(spec.soft_percent),
                hard: spec.hard_percent.map_or(pool.low, of),
                stop: spec.hard_percent.map_or(pool.low, of) + spec.stop_blocks,
                idle_until: spec.idle_until_percent.map_or(pool.reserved, of),
                lowest: pool.blocks,
                told: false,
            }
        };
        let views = members.iter().map(view).collect();
        let volatile = members.iter().any(|member| member.volatile);
        let coordinator = Coordinator::of(spec);
        let mut raid = Raid {
            layout: Layout::new(
                spec.level,
                spec.rotation,
                members.len() as u32,
                spec.chunk_pages,
            ),
            whole: true,
            units_in_gc: ChipSet::none(0),
            first_unit: Vec::new(),
            in_gc: vec![false; spec.members.len()],
            any_chip_counts: spec.member_in_gc == MemberInGc::Any,
            ops: Vec::new(),
            free_ops: Vec::new(),
            parts: Vec::new(),
            free_parts: Vec::new(),
            joining: 0,
            direct: Direct::of(
                spec,
                &members,
                coordinator.is_local(),
                own_resources(members.len()),
            ),
            independent: members_are_independent(spec),
            members,
            ahead_ends: false,
            batch_of_one: false,
            batch: Vec::new(),
            trims: Vec::new(),
            sorted: Vec::new(),
            stripes: Stripes::default(),
            swan: Swan::of(spec),
            done: VecDeque::new(),
            own_pending: Time::NEVER,
            rebuild: Rebuild::default(),
            hedge: Hedge::of(spec),
            history: History::new(),
            broken: false,
            through: volatile && spec.buffer.as_ref().is_some_and(Buffer::is_protected),
            volatile,
            stats: RaidStats::default(),
            log: None,
            timeline: None,
            completions: Vec::new(),
            pages_done: Vec::new(),
            coordinator,
            views,
            messages: Vec::new(),
            idle: true,
            spec: Box::new(spec.clone()),
        };
        let (first_unit, units) = raid.count_units();
        raid.first_unit = first_unit;
        raid.units_in_gc = ChipSet::none(units);
        raid
    }

    /// Nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.len() == self.free_parts.len() && self.ops.len() == self.free_ops.len()
    }

    /// Looks at whether members are missing or being rebuilt.
    pub(super) fn count_members(&mut self) {
        let mut members = self.members.iter();
        self.whole = members.all(|member| member.state == State::There);
    }

    /// Units as the array's buffer sees them.
    pub(super) fn units(&self) -> u32 {
        self.units_in_gc.of()
    }

    // ---- page operations ----

    pub(super) fn add_op(&mut self, op: PageOp) -> u32 {
        match self.free_ops.pop() {
            Some(id) => {
                self.ops[id as usize] = (op, NONE);
                id
            }
            None => {
                self.ops.push((op, NONE));
                self.ops.len() as u32 - 1
            }
        }
    }

    pub(super) fn free_op(&mut self, op: u32) {
        self.free_ops.push(op);
    }

    pub(super) fn append(&mut self, chain: &mut Chain, op: u32) {
        chain.append(op, &mut self.ops);
    }

    /// The operations of a chain are done.
    pub(super) fn finish(&mut self, chain: Chain, spent: Spent, written: bool) {
        let mut at = chain.head;
        while at != NONE {
            let (op, next) = self.ops[at as usize];
            if self.is_first(at) {
                self.done.push_back(Done {
                    op,
                    queue_gc: spent.queue_gc,
                    transfer: spent.transfer,
                    array: spent.array,
                    written,
                    failed: false,
                });
                self.tell(|_| ArrayEvent::Answered { op: at });
            } else {
                self.tell(|_| ArrayEvent::Late { op: at });
            }
            self.free_op(at);
            at = next;
        }
    }

    /// Something for the front end that is not in the table.
    pub(super) fn hand_over(&mut self, done: Done) {
        self.done.push_back(done);
    }

    /// Lets the front end have what is done, at this instant.
    pub(super) fn deliver(&mut self, now: Time, events: &mut EventQueue) {
        if !self.done.is_empty() {
            self.wake_self(now, events);
        }
    }
}

impl Raid {
    /// What a write of one page touches: it and its parity.
    #[inline]
    fn for_each_touched(&self, lpn: Lpn, touch: impl Fn(&Flash, Lpn)) {
        if let Some(swan) = &self.swan {
            // It goes elsewhere than before: only the volume knows of both.
            return swan.volume.prefetch(lpn);
        }
        let (stripe, place) = self.layout.stripe_of(lpn);
        let lpn = Lpn(stripe.0);
        let data = self.layout.data_member(stripe, place);
        touch(&self.members[data].ssd.backend, lpn);
        for which in 0..self.layout.parity {
            let parity = self.layout.parity_member(stripe, which);
            touch(&self.members[parity].ssd.backend, lpn);
        }
    }
}

impl Work for Raid {
    fn resources(&self) -> usize {
        own_resources(self.members.len()) + self.direct.resources()
    }

    fn unit_for_write(&mut self, lpn: Lpn) -> u32 {
        self.layout.spot(lpn).member as u32
    }

    fn unit_of_copy(&self, lpn: Lpn) -> Option<u32> {
        // A member answers at once for a page that it does not have.
        Some(self.layout.spot(lpn).member as u32)
    }

    #[inline]
    fn enqueue(&mut self, _unit: usize, mut op: PageOp, now: Time, events: &mut EventQueue) {
        if self.direct.open {
            return self.enqueue_direct(op, now, events);
        }
        op.enqueued = now;
        let id = self.add_op(op);
        self.batch.push(id);
        if !self.trims.is_empty() && !op.is_read() {
            // Of what is queued together, writes go first: what was forgotten before is not now.
            self.trims.retain(|&lpn| lpn != op.lpn);
        }
        self.tell(|_| ArrayEvent::Asked {
            op: id,
            lpn: op.lpn,
            request: op.request,
            what: match op.is_read() {
                true => Op::Read,
                false => Op::Write,
            },
        });
    }

    #[inline]
    fn settle(&mut self, now: Time, events: &mut EventQueue) {
        if !self.batch.is_empty() || !self.trims.is_empty() {
            self.place(now, events);
        }
    }

    fn on_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
    ) -> (usize, Option<Done>) {
        let members = self.members.len();
        if resource >= own_resources(members) {
            return self.flash_event(resource, now, events);
        }
        if resource == members {
            self.own_pending = Time::NEVER;
            self.check_time(now, events);
        } else if resource == self.hedge_resource() {
            self.hedge_due(now, events);
        } else if self.broken {
            // Nobody waits for what members still do.
        } else if resource > self.members.len() {
            self.rebuild_due(now, events);
        } else {
            self.members[resource].pending = Time::NEVER;
            self.member_event(resource, now, events);
        }
        let unit = self.first_unit.get(resource);
        (unit.map_or(0, |&unit| unit as usize), self.done.pop_front())
    }

    fn is_volatile(&self) -> bool {
        self.volatile && !self.through
    }

    fn flush(&mut self, mut op: PageOp, now: Time, events: &mut EventQueue) {
        op.enqueued = now;
        let id = self.add_op(op);
        self.tell(|_| ArrayEvent::Asked {
            op: id,
            lpn: op.lpn,
            request: op.request,
            what: Op::Flush,
        });
        if self.broken {
            self.batch.push(id);
            return self.refuse(now, events);
        }
        self.flush_members(id, now, events);
    }

    fn lost(&self, lost: &mut Vec<Lpn>) {
        self.lost_pages(lost);
    }

    #[inline]
    fn more_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    #[inline]
    fn activate(&mut self, _unit: usize, now: Time, events: &mut EventQueue) {
        self.flash_goes_on(now, events);
    }

    fn trim(&mut self, lpn: Lpn, now: Time, events: &mut EventQueue) {
        if self.direct.open {
            return self.trim_direct(lpn, now, events);
        }
        self.trims.push(lpn);
        self.tell(|_| ArrayEvent::Forgotten { lpn });
    }

    #[inline]
    fn prefetch(&self, lpn: Lpn) {
        self.for_each_touched(lpn, |flash, lpn| flash.prefetch(lpn));
    }

    #[inline]
    fn prefetch_old_copy(&self, lpn: Lpn) {
        self.for_each_touched(lpn, |flash, lpn| flash.prefetch_old_copy(lpn));
    }

    fn reset_stats(&mut self, now: Time) {
        self.stats = RaidStats::default();
        self.reset_history(now);
        self.reset_timeline(now);
        for member in &mut self.members {
            member.advance(now);
            member.ssd.reset_flash_report();
        }
    }
}
