//! The back end `Modern`: dies that share channels, as in a current drive.
//!
//! A die executes one operation at a time. A channel transfers one page at a time, in order of arrival. A read is array
//! time, then a transfer. A program is a transfer, then array time. One program writes a row of waiting writes: up to
//! one flash page of each plane that operates together. One read serves all waiting reads of a row (`layout`). A page
//! moved by GC is read and programmed within the die (copy-back), or crosses the channel twice.
//!
//! The collection of a block is a *run* of separate operations (`collect`). Host reads with priority are executed
//! between them. Host writes of the die wait until the run ends. With `gc.preemptible`, host writes are also executed
//! between the moves, if the die has room. If the die is at its watermark, the run must in addition keep pace with the
//! host.
//!
//! A *lane* is the work in service on a die, with its remaining steps (`lane`). A program or an erase may be suspended for
//! host reads; during the suspension, these reads are in a second lane of the die. With cached commands, the next
//! operation begins before the end of the present one (`ahead`).
//!
//! On devices that write by blocks, host pages and pages moved by GC go to the same open block of a die. A die has a
//! second open block if pages are separated: for hot pages, or for host writes to an SLC cache. Devices that write by
//! units have open units of each placement class (`units`).

mod ahead;
mod blocks;
mod collect;
mod death;
mod die_log;
mod lane;
mod layout;
mod start;
mod superblock;
mod units;
mod write;

use super::{Cause, Chip, Done, FlashEvent, FlashStats, InHand, Latencies, PageOp, Place};
use crate::chips::{ChipSet, MovedPages};
use crate::events::EventQueue;
use crate::ftl::{PageMap, PoolFull, Shape};
use crate::gc::{self, Orders, Tie, Victims};
use crate::memory::TrustedTable;
use crate::rng::Rng;
use crate::spec::{DeviceSpec, ModernNand, Ppm, Watermark};
use crate::units::Stream;
use crate::units::{ChipId, Lpn, Ppn, Time};

pub(crate) use blocks::Blocks;
use lane::{Lane, Step};
use layout::Layout;
use std::collections::VecDeque;
pub use units::Asked;
pub(crate) use units::Units;

/// Number of waiting reads that are examined when a read starts, to find those that can join it.
const READS_LOOKED_AT: usize = 64;
/// Largest number of times that a flash page is read again because of errors.
const RETRIES_MAX: u64 = 8;
/// Seed of the random numbers that determine which reads are repeated. All devices have the same seed.
const RETRY_SEED: u64 = 1;

#[derive(Clone, Debug, Default)]
struct Channel {
    /// The lane whose transfer is running.
    busy_with: Option<u32>,
    waiting: VecDeque<(u32, Time)>,
}

/// The back end. `M` is the kind of its page map: by blocks, or by units.
#[derive(Clone, Debug)]
pub(crate) struct Modern<M = Blocks> {
    pub map: M,
    pub chips: TrustedTable<Chip>,
    pub stats: FlashStats,
    pub log: Option<Vec<FlashEvent>>,
    pub chips_in_gc: ChipSet,
    /// Record of the pages that collections may have moved to other dies.
    pub moved: MovedPages,
    /// Number of the first lane in the event queue. The queue numbers all resources, such as lanes, channels and buses.
    pub first_resource: usize,
    pub times: Latencies,
    /// Lanes of all dies, in two or three parts with one lane per die. The first part is for the work in service. The
    /// second is for reads during a suspension. The third exists only with cached commands, for operations that begin
    /// ahead.
    lanes: TrustedTable<Lane>,
    /// For each die, whether a timer is set for the end of its wait for more writes.
    timed: Vec<bool>,
    /// For each die, whether a timer is set for the instant at which the die will have been idle long enough to collect
    /// its SLC cache.
    resting: Vec<bool>,
    channels: TrustedTable<Channel>,
    layout: Layout,
    params: Box<ModernNand>,
    retries: Rng,
}

/// A page map. It also determines how a die finds its next work and makes room.
pub(crate) trait Map: Clone + std::fmt::Debug + Sized {
    /// Returns the flash page with the page's copy.
    fn lookup(&self, lpn: Lpn) -> Option<Ppn>;
    /// Whether the flash page is in a block in SLC mode.
    #[inline(always)]
    fn is_slc_at(&self, _ppn: Ppn) -> bool {
        false
    }
    /// Begins the die's next write in lane `at` while another write is being programmed.
    fn write_ahead(
        nand: &mut Modern<Self>,
        die: usize,
        at: usize,
        now: Time,
        events: &mut EventQueue,
    );
    /// Processes the end of the work in the first lane of a die. `of_host` is true if a host operation has ended, and
    /// false if a step of a collection has ended.
    fn work_ended(nand: &mut Modern<Self>, die: usize, of_host: bool, now: Time);
    /// Returns the number of pages that the die's collection has still to move. `None` if the die is not collecting, or
    /// if its collection is in its last step.
    fn left_to_move(nand: &Modern<Self>, die: usize) -> Option<u32>;
}

impl<M: Map> Modern<M> {
    pub fn with_map(spec: &DeviceSpec, params: &ModernNand, map: M) -> Modern<M> {
        let g = &spec.geometry;
        let dies = g.chips as usize;
        Modern {
            map,
            // SAFETY: indexed by die; the event queue and the placement of pages use the same number of dies.
            chips: unsafe { TrustedTable::new(vec![Chip::default(); dies]) },
            stats: FlashStats::default(),
            log: None,
            chips_in_gc: ChipSet::none(spec.geometry.chips),
            moved: MovedPages::default(),
            first_resource: 0,
            times: Latencies::of(spec, params.copy_back),
            // SAFETY: indexed by die plus a multiple of the number of dies. The table has room for all multiples in
            // use.
            lanes: unsafe {
                TrustedTable::new(
                    (0..(2 + usize::from(params.cached_commands)) * dies)
                        .map(|lane| Lane {
                            // Adjacent dies are on different channels.
                            channel: (lane % dies % g.channels as usize) as u16,
                            ..Lane::default()
                        })
                        .collect(),
                )
            },
            timed: vec![false; dies],
            resting: vec![false; dies],
            // SAFETY: an index is either the channel of a lane, which was computed modulo the
            // number of channels, or belongs to a resource after those of the dies.
            channels: unsafe { TrustedTable::new(vec![Channel::default(); g.channels as usize]) },
            layout: Layout::new(spec, params),
            params: Box::new(params.clone()),
            retries: Rng::new(RETRY_SEED),
        }
    }

    /// Returns the number of resources that this back end uses in the event queue. In this order: lanes, timers of dies
    /// that wait for more writes, timers of idle dies, channels.
    pub fn resources(&self) -> usize {
        self.first_channel() + self.channels.len()
    }

    fn first_channel(&self) -> usize {
        self.lanes.len() + 2 * self.chips.len()
    }

    /// Whether host reads wait in a queue of their own.
    pub fn reads_overtake(&self) -> bool {
        self.params.read_priority
    }

    #[inline(always)]
    fn die_of(&self, lane: usize) -> usize {
        match lane < self.chips.len() {
            true => lane,
            false => self.die_of_other(lane),
        }
    }

    /// Returns the die of a lane in the second or third part of the lanes.
    #[inline(never)]
    fn die_of_other(&self, lane: usize) -> usize {
        lane % self.chips.len()
    }

    /// Returns the lane of a die for reads during a suspension.
    #[inline(always)]
    fn aside(&self, die: usize) -> usize {
        die + self.chips.len()
    }

    // ---- events ----

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn on_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        done: &mut Option<Done>,
    ) -> usize {
        let (lanes, dies) = (self.lanes.len(), self.chips.len());
        if resource < lanes {
            let die = self.die_of(resource);
            let lane = &mut self.lanes[resource];
            lane.pending = false;
            if lane.held.is_some() {
                return die;
            }
            if lane.ends > now {
                // After this event was set, a suspension postponed the end of the step. The event is too early, so it
                // is set again for the later end.
                set(lane, self.first_resource + resource, events);
                return die;
            }
            if lane.steps.is_empty() {
                lane.step = None;
                self.ended(resource, false, now);
                return die;
            }
            self.proceed(resource, now, events, done);
            return die;
        }
        if resource < lanes + dies {
            let die = resource - lanes;
            self.timed[die] = false;
            return die;
        }
        let first_channel = self.first_channel();
        if resource < first_channel {
            let die = resource - lanes - dies;
            self.resting[die] = false;
            return die;
        }
        if self.log.is_some() {
            let place = Place::Channel((resource - first_channel) as u32);
            self.log_event(FlashEvent::End { at: now, place });
        }
        let channel = &mut self.channels[resource - first_channel];
        let lane = channel
            .busy_with
            .take()
            .expect("a transfer ends on a busy channel");
        if let Some((next, time)) = channel.waiting.pop_front() {
            channel.busy_with = Some(next);
            events.set(self.first_resource + resource, now + time);
            self.lanes[next as usize].ends = now + time;
            if self.log.is_some() {
                self.log_transfer(next as usize, now);
            }
        }
        let lane = lane as usize;
        self.proceed(lane, now, events, done);
        self.die_of(lane)
    }

    /// Starts the next step of a lane. If no step remains, the lane becomes free. Stores a host operation that
    /// completes now in `done`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn proceed(&mut self, at: usize, now: Time, events: &mut EventQueue, done: &mut Option<Done>) {
        let die = self.die_of(at);
        let lane = &mut self.lanes[at];
        match lane.steps.first() {
            // The transfer before this step has ended, so the data are in the die's register.
            Some(&Step::Pulse(time)) if at < 2 * self.chips.len() => {
                lane.step = lane.steps.pop_front();
                lane.ends = now + time;
                return set(lane, self.first_resource + at, events);
            }
            Some(Step::Deliver) => {
                lane.steps.pop_front();
                lane.ops.move_front(done);
            }
            _ => {}
        }
        lane.step = lane.steps.first().copied();
        if self.must_wait(at) {
            self.lanes[at].step = None;
            return;
        }
        let lane = &mut self.lanes[at];
        match lane.step {
            // Each completion is an event of its own.
            Some(Step::Deliver) => {
                lane.ends = now;
                set(lane, self.first_resource + at, events);
            }
            Some(Step::Array(time) | Step::Pulse(time)) => {
                lane.steps.pop_front();
                lane.ends = now + time;
                set(lane, self.first_resource + at, events);
            }
            Some(Step::Move) => unreachable!("a move begins by itself"),
            Some(Step::Transfer(time)) => {
                lane.steps.pop_front();
                self.cross_channel(at, die, time, now, events);
            }
            None => self.ended(at, done.is_some(), now),
        }
        if let Some(done) = done {
            self.lanes[die].served = now;
            self.chips[die].ended(&done.op);
        }
    }

    /// Starts the transfer of a page over the channel of its die. If the channel is busy, the transfer waits.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn cross_channel(
        &mut self,
        at: usize,
        die: usize,
        time: Time,
        now: Time,
        events: &mut EventQueue,
    ) {
        let channel = usize::from(self.lanes[die].channel);
        let resource = self.first_channel() + channel;
        let lane = &mut self.lanes[at];
        let c = &mut self.channels[channel];
        if c.busy_with.is_none() {
            c.busy_with = Some(at as u32);
            lane.ends = now + time;
            events.set(self.first_resource + resource, now + time);
            if self.log.is_some() {
                self.log_transfer(at, now);
            }
        } else {
            lane.ends = Time::NEVER;
            c.waiting.push_back((at as u32, time));
        }
    }

    /// Records that a lane is free again.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn ended(&mut self, at: usize, of_host: bool, now: Time) {
        let die = self.die_of(at);
        if self.log.is_some() {
            self.log_end(at, now);
        }
        if at != die {
            return;
        }
        self.chips[die].busy_total += now - self.lanes[die].since;
        M::work_ended(self, die, of_host, now);
    }

    fn leave_gc(&mut self, die: usize, now: Time) {
        self.chips[die].leave_gc(now);
        self.chips_in_gc.set(ChipId(die as u16), false);
        self.log_gc(die, false, now);
    }

    /// Returns the number of writes in service.
    #[inline]
    pub fn writes_in_service(&self, die: usize) -> u32 {
        let own = self.lanes[die].writes() + self.lanes[self.aside(die)].writes();
        match self.params.cached_commands {
            true => own + self.lanes[self.ahead(die)].writes(),
            false => own,
        }
    }

    /// Returns the work in service on a die. A transfer that waits for its channel counts only with its own duration.
    pub fn in_hand(&self, die: usize, now: Time) -> InHand {
        let (main, aside) = (&self.lanes[die], &self.lanes[self.aside(die)]);
        let mut in_hand = InHand {
            rest: aside.rest(now),
            ..InHand::default()
        };
        main.count(&mut in_hand);
        aside.count(&mut in_hand);
        if self.params.cached_commands {
            let ahead = &self.lanes[self.ahead(die)];
            ahead.count(&mut in_hand);
            in_hand.rest += ahead.rest(now);
        }
        let mut step = main.rest(now);
        if main.held.is_some() {
            step += self.params.suspend_cost;
        }
        if !self.chips[die].in_gc || !main.ops.is_empty() {
            in_hand.rest += std::mem::take(&mut step);
        }
        if self.chips[die].in_gc {
            in_hand.gc_moves = M::left_to_move(self, die).unwrap_or(0);
            in_hand.gc_rest = Some(match M::left_to_move(self, die) {
                Some(left) => step + self.times.move_one() * left.into() + self.times.erase,
                None => step,
            });
        }
        in_hand
    }

    /// Whether the die is busy. Also continues two kinds of work that need no free die: an operation that begins ahead,
    /// and reads during a suspension.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_taken(&mut self, die: usize, now: Time, events: &mut EventQueue) -> bool {
        if self.params.cached_commands && self.continue_ahead(die, now, events) {
            return true;
        }
        if self.lanes[die].is_free() {
            return false;
        }
        if self.lanes[die].held.is_some() && self.lanes[self.aside(die)].is_free() {
            self.read_aside(die, Time::ZERO, now, events);
        }
        true
    }

    // ---- suspending ----

    /// Suspends the running program, erase or move of a collection because a host read has arrived. Does not suspend it
    /// in three cases: it ends soon; it has already been suspended for the maximum number of reads; or, with cached
    /// commands, the data of the next program are being transferred. The read then waits, and a suspension is tried
    /// again only when another read arrives.
    #[inline(never)]
    pub fn suspend_for_read(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        let data_come = self.data_come(die);
        let lane = &mut self.lanes[die];
        let cost = self.params.suspend_cost;
        if data_come
            || !self.params.suspend
            || lane.held.is_some()
            || !matches!(lane.step, Some(Step::Pulse(_) | Step::Move))
            || lane.passed >= self.params.suspend_limit
            || lane.ends - now <= self.params.suspend_rest
        {
            return;
        }
        lane.held = Some(lane.ends - now);
        lane.ends = Time::NEVER;
        if self.log.is_some() {
            let chip = die as u32;
            self.log_event(FlashEvent::Suspended { at: now, chip });
        }
        self.read_aside(die, cost, now, events);
    }

    /// Serves the next read of a suspended die after `delay`. If no read waits, or if the maximum number of reads has
    /// been served, resumes the suspended operation.
    #[inline(never)]
    fn read_aside(&mut self, die: usize, delay: Time, now: Time, events: &mut EventQueue) {
        let lane = &mut self.lanes[die];
        if lane.passed < self.params.suspend_limit {
            if let Some(op) = self.chips[die].reads.pop_front() {
                lane.passed += 1;
                return self.start_reads(self.aside(die), op, delay, now, events);
            }
        }
        let held = lane.held.take().expect("the die is suspended");
        lane.ends = now + self.params.suspend_cost + held;
        if let Some(log) = &mut self.log {
            let chip = die as u32;
            log.push(FlashEvent::Resumed { at: now, chip });
        }
        if !lane.pending {
            set(lane, self.first_resource + die, events);
        }
    }
}

/// Sets the event of a lane to the end of its running step.
#[inline(always)]
fn set(lane: &mut Lane, resource: usize, events: &mut EventQueue) {
    lane.pending = true;
    events.set(resource, lane.ends);
}
