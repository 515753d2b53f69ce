//! Hedged reads (Dean, Barroso, "The Tail at Scale", CACM 2013): a page that a member has not given
//! after a while is asked for elsewhere too, from another copy or from the rest of its stripe. The
//! first answer counts; what comes later was read in vain.
//!
//! A page asked for twice is two operations of the back end, each the *twin* of the other. The first
//! that is done is handed to the front end; its twin is then *late* and handed to nobody (D-109).

use std::collections::VecDeque;

use super::layout::{Spot, Stripe};
use super::log::ArrayEvent;
use super::raid::{set_earlier, Chain, Raid};
use super::stripes::{Kind, NONE};
use crate::events::EventQueue;
use crate::nand::PageOp;
use crate::spec::{ArraySpec, Reads};
use crate::units::Time;

/// Of a page operation, in the place of its twin: it was asked where the page lies, and the answer
/// came from elsewhere; or the other way round.
const LATE: u32 = NONE - 1;
const LATE_HEDGE: u32 = NONE - 2;
/// The twin is the hedge, not what was asked first.
const IS_HEDGE: u32 = 1 << 31;

/// Reads between two looks at how long they take.
const WINDOW: u32 = 256;
/// Parts of a factor of two that response times are told apart by.
const PARTS: u64 = 16;

/// How long to wait before a read is hedged.
#[derive(Clone, Debug)]
enum After {
    /// So long.
    Fixed(Time),
    /// As long as this share of the reads before took, in millionths; the later ones count more.
    Share {
        millionths: u64,
        /// Reads by how long they took.
        counts: Vec<u64>,
        seen: u32,
        now: Time,
    },
}

impl After {
    fn bucket(time: Time) -> usize {
        let ns = time.to_ns().max(PARTS);
        let doubled = ns.ilog2() - PARTS.ilog2();
        (u64::from(doubled) * PARTS + (ns >> doubled)) as usize
    }

    /// No time of the bucket is longer.
    fn end_of(bucket: usize) -> Time {
        let bucket = bucket as u64;
        let doubled = (bucket / PARTS).saturating_sub(1);
        Time::from_ns((bucket - doubled * PARTS + 1) << doubled)
    }

    fn took(&mut self, time: Time) {
        let After::Share {
            millionths,
            counts,
            seen,
            now,
        } = self
        else {
            return;
        };
        let bucket = After::bucket(time);
        if counts.len() <= bucket {
            counts.resize(bucket + 1, 0);
        }
        counts[bucket] += 1 << 16;
        *seen += 1;
        if *seen < WINDOW {
            return;
        }
        *seen = 0;
        let all: u64 = counts.iter().sum();
        let mut below = 0;
        let slower = |count: &u64| {
            below += count;
            u128::from(below) * 1_000_000 >= u128::from(all) * u128::from(*millionths)
        };
        let bucket = counts.iter().position(slower).unwrap_or(0);
        *now = After::end_of(bucket);
        counts.iter_mut().for_each(|count| *count /= 2);
    }

    fn now(&self) -> Time {
        match self {
            After::Fixed(time) => *time,
            After::Share { now, .. } => *now,
        }
    }
}

/// Reads that may have to be hedged.
#[derive(Clone, Debug)]
pub(super) struct Hedge {
    after: After,
    /// Requests to members, when each is to be hedged, and when it was sent: a number may have been
    /// used again.
    waiting: VecDeque<(Time, u32, Time)>,
    /// When that will be looked at next.
    pending: Time,
    /// Of each page operation: its twin, [`NONE`], or that it is late.
    twins: Vec<u32>,
    /// The request being hedged.
    hedged: Vec<(u32, PageOp)>,
}

impl Hedge {
    /// `None`: reads are not hedged.
    pub fn of(spec: &ArraySpec) -> Option<Box<Hedge>> {
        let after = match spec.hedge_after {
            Some(time) => After::Fixed(time),
            None => After::Share {
                millionths: (spec.hedge_percent * 1e4).round() as u64,
                counts: Vec::new(),
                seen: 0,
                now: Time::NEVER,
            },
        };
        let hedge = Hedge {
            after,
            waiting: VecDeque::new(),
            pending: Time::NEVER,
            twins: Vec::new(),
            hedged: Vec::new(),
        };
        (spec.reads == Reads::Hedged).then(|| Box::new(hedge))
    }

    fn set(&mut self, op: u32, twin: u32) {
        if self.twins.len() <= op as usize {
            self.twins.resize(op as usize + 1, NONE);
        }
        self.twins[op as usize] = twin;
    }

    fn twin(&self, op: u32) -> u32 {
        self.twins.get(op as usize).copied().unwrap_or(NONE)
    }
}

impl Raid {
    /// The resource of the event queue for hedging.
    pub(super) fn hedge_resource(&self) -> usize {
        self.members.len() + 2
    }

    /// A request of the front end's reads was sent to a member.
    #[inline]
    pub(super) fn watch_read(&mut self, part: u32, now: Time, events: &mut EventQueue) {
        let Some(hedge) = &mut self.hedge else {
            return;
        };
        let after = hedge.after.now();
        if after == Time::NEVER {
            return;
        }
        self.forget_those_done();
        let Some(hedge) = &mut self.hedge else {
            return;
        };
        // In the order of time, though waiting may have become shorter.
        let last = hedge.waiting.back().map_or(now, |&(at, _, _)| at);
        let at = (now + after).max(last);
        hedge.waiting.push_back((at, part, now));
        self.wake_for_hedge(events);
    }

    /// Keeps no more than what is under way, and what was sent after it.
    fn forget_those_done(&mut self) {
        let first = |raid: &Raid| Some(*raid.hedge.as_ref()?.waiting.front()?);
        while let Some((_, part, sent)) = first(self) {
            if self.reads_under_way(part, sent).is_some() {
                return;
            }
            if let Some(hedge) = &mut self.hedge {
                hedge.waiting.pop_front();
            }
        }
    }

    fn wake_for_hedge(&mut self, events: &mut EventQueue) {
        let resource = self.hedge_resource();
        let Some(hedge) = &mut self.hedge else {
            return;
        };
        if let Some(&(at, _, _)) = hedge.waiting.front() {
            set_earlier(&mut hedge.pending, resource, at, events);
        }
    }

    /// A request of the front end's reads is done.
    #[inline]
    pub(super) fn read_took(&mut self, time: Time) {
        if let Some(hedge) = &mut self.hedge {
            hedge.after.took(time);
        }
    }

    /// The instant set for hedging has come.
    pub(super) fn hedge_due(&mut self, now: Time, events: &mut EventQueue) {
        let Some(hedge) = &mut self.hedge else {
            return;
        };
        hedge.pending = Time::NEVER;
        while let Some((_, part, sent)) = self.due(now) {
            if let Some((member, chain)) = self.reads_under_way(part, sent) {
                self.hedge_chain(member, chain, now, events);
            }
        }
        self.send_runs(now, events);
        self.wake_for_hedge(events);
    }

    fn due(&mut self, now: Time) -> Option<(Time, u32, Time)> {
        let waiting = &mut self.hedge.as_mut()?.waiting;
        match waiting.front() {
            Some(&(at, _, _)) if at <= now => waiting.pop_front(),
            _ => None,
        }
    }

    /// Asks for the pages of a request elsewhere, those that follow each other in a row together.
    fn hedge_chain(&mut self, member: usize, chain: Chain, now: Time, events: &mut EventQueue) {
        let Some(hedge) = &mut self.hedge else {
            return;
        };
        let mut pages = std::mem::take(&mut hedge.hedged);
        let mut at = chain.head;
        while at != NONE {
            let (op, next) = self.ops[at as usize];
            pages.push((at, op));
            at = next;
        }
        let mut from = 0;
        while from < pages.len() {
            let (stripe, place) = self.layout.stripe_of(pages[from].1.lpn);
            let row = self.layout.row_of(stripe);
            let follows = |&(i, (id, op)): &(usize, &(u32, PageOp))| {
                let (next, its_place) = self.layout.stripe_of(op.lpn);
                let offset = (i - from) as u32;
                next.0 == stripe.0 + offset
                    && its_place == place
                    && self.layout.row_of(next) == row
                    && self.twin_of(*id) == NONE
            };
            let alike = pages.iter().enumerate().skip(from).take_while(follows);
            let count = alike.count();
            if count > 0 {
                let these = &pages[from..from + count];
                self.hedge_pages(member, (stripe, place), these, now, events);
            }
            from += count.max(1);
        }
        pages.clear();
        if let Some(hedge) = &mut self.hedge {
            hedge.hedged = pages;
        }
    }

    /// Asks for pages elsewhere that follow each other at a place of a row.
    fn hedge_pages(
        &mut self,
        member: usize,
        (stripe, place): (Stripe, u32),
        pages: &[(u32, PageOp)],
        now: Time,
        events: &mut EventQueue,
    ) {
        let other = match self.layout.copies {
            1 => {
                let without = self.missing(stripe) | 1 << place;
                if without.count_ones() > self.layout.parity {
                    return;
                }
                None
            }
            copies => {
                let first = self.layout.data_member(stripe, place);
                let others = first..first + copies as usize;
                let others = others.filter(|&m| m != member && self.has(m, stripe));
                let load = |&m: &usize| self.members[m].under_way;
                let Some(other) = others.min_by_key(load) else {
                    return;
                };
                Some(other)
            }
        };
        let mut chain = Chain::EMPTY;
        for (i, &(op, of)) in (0..).zip(pages) {
            let twin = self.add_op(of);
            self.stats.pages_hedged += 1;
            if let Some(hedge) = &mut self.hedge {
                hedge.set(op, twin | IS_HEDGE);
                hedge.set(twin, op);
            }
            self.tell(|_| ArrayEvent::Hedged { op, twin });
            match other {
                Some(member) => {
                    let lpn = crate::units::Lpn(stripe.0 + i);
                    let spot = Spot { member, lpn };
                    self.join(spot, twin, crate::request::Op::Read, false, now, events);
                }
                None => self.append(&mut chain, twin),
            }
        }
        if other.is_none() {
            let kind = Kind::Recover(1 << place);
            let count = pages.len() as u32;
            self.add_job(kind, stripe, count, (chain, false), now, events);
        }
    }

    fn twin_of(&self, op: u32) -> u32 {
        self.hedge.as_ref().map_or(NONE, |hedge| hedge.twin(op))
    }

    /// A page operation is done: false if its twin was before it, and nobody waits for it any more.
    #[inline]
    pub(super) fn is_first(&mut self, op: u32) -> bool {
        let Some(hedge) = &mut self.hedge else {
            return true;
        };
        let twin = hedge.twin(op);
        if twin == NONE {
            return true;
        }
        hedge.set(op, NONE);
        match twin {
            LATE => self.stats.pages_read_in_vain += 1,
            LATE_HEDGE => {
                let read = match self.layout.copies {
                    1 => self.layout.data() as u64,
                    _ => 1,
                };
                self.stats.pages_read_in_vain += read;
            }
            _ if twin & IS_HEDGE != 0 => hedge.set(twin & !IS_HEDGE, LATE_HEDGE),
            _ => {
                self.stats.hedges_won += 1;
                hedge.set(twin, LATE);
            }
        }
        !matches!(twin, LATE | LATE_HEDGE)
    }

    /// A page operation whose member was lost need not be done again: its twin was before it.
    pub(super) fn is_late(&self, op: u32) -> bool {
        matches!(self.twin_of(op), LATE | LATE_HEDGE)
    }
}

#[cfg(test)]
mod tests;
