//! Channels shared by dies: a drive of today, in its first form.
//!
//! A die does one thing at a time, and a channel carries one transfer at a time, first come first
//! served. Read: array, then transfer. Program: transfer, then array. A collected page is read and
//! programmed inside the die (copy-back) or crosses the channel twice. Collecting a block is a run
//! of separate operations, one move or erase each, between which host reads may pass if they have
//! priority; host writes of the die wait until the run is over. One write frontier a die serves
//! host and GC, but for hot pages on a device with two streams.

use super::{Cause, Chip, Done, FlashEvent, FlashStats, InHand, Latencies, PageOp};
use crate::buffer::Stream;
use crate::chips::ChipSet;
use crate::events::EventQueue;
use crate::ftl::PageMap;
use crate::gc::{self, Tie};
use crate::spec::{DeviceSpec, ModernNand, Victim};
use crate::units::{ChipId, Lpn, Ppn, Time};

use std::collections::VecDeque;

/// Pages ahead of the one being moved whose map entries are fetched.
const AHEAD: u32 = 12;

/// The steps of an operation still to do, in order; each is array time or one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Array(Time),
    Transfer(Time),
}

/// What a die has in hand.
#[derive(Clone, Copy, Debug)]
struct Running {
    /// The host's operation; `None` for a move or an erase.
    op: Option<Done>,
    /// At most: read array, out, in, program array.
    steps: [Option<Step>; 4],
    next: usize,
    /// When the step before `next` ends; `NEVER` while it waits for the channel.
    step_ends: Time,
}

impl Running {
    /// Time until it ends if it waits for nothing.
    fn rest(&self, now: Time) -> Time {
        let (begun, to_begin) = match self.step_ends {
            Time::NEVER => (Time::ZERO, self.next - 1),
            ends => (ends - now, self.next),
        };
        let steps = self.steps.iter().skip(to_begin).flatten();
        steps.fold(begun, |sum, step| match step {
            Step::Array(time) | Step::Transfer(time) => sum + *time,
        })
    }
}

/// A block being collected.
#[derive(Clone, Copy, Debug)]
struct Run {
    block: u32,
    page: u32,
}

#[derive(Clone, Debug, Default)]
struct Die {
    running: Option<Running>,
    since: Time,
    collecting: Option<Run>,
}

#[derive(Clone, Debug, Default)]
struct Channel {
    /// The die whose transfer is under way.
    busy_with: Option<u32>,
    waiting: VecDeque<(u32, Time)>,
}

/// The back end.
#[derive(Clone, Debug)]
pub(crate) struct Modern {
    pub ftl: PageMap,
    pub chips: Vec<Chip>,
    pub stats: FlashStats,
    pub log: Option<Vec<FlashEvent>>,
    pub chips_in_gc: ChipSet,
    victim: Victim,
    pub times: Latencies,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    params: ModernNand,
    summary_transfer: Option<Time>,
}

impl Modern {
    pub fn new(spec: &DeviceSpec, params: &ModernNand) -> Modern {
        let g = &spec.geometry;
        Modern {
            ftl: PageMap::new(spec, false, spec.low_blocks_chip()),
            chips: vec![Chip::default(); g.chips as usize],
            stats: FlashStats::default(),
            log: None,
            chips_in_gc: ChipSet::none(spec.geometry.chips),
            victim: spec.gc.victim,
            times: Latencies::of(spec, params.copy_back),
            dies: vec![Die::default(); g.chips as usize],
            channels: vec![Channel::default(); g.channels as usize],
            params: params.clone(),
            summary_transfer: spec.ftl.summary_page.then(|| spec.summary_transfer()),
        }
    }

    /// Dies first, then channels.
    pub fn resources(&self) -> usize {
        self.dies.len() + self.channels.len()
    }

    /// Host reads wait in a queue of their own.
    pub fn reads_overtake(&self) -> bool {
        self.params.read_priority
    }

    // ---- time passes ----

    pub fn on_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
    ) -> (usize, Option<Done>) {
        let die = if resource < self.dies.len() {
            resource
        } else {
            let channel = &mut self.channels[resource - self.dies.len()];
            let die = channel
                .busy_with
                .take()
                .expect("a transfer ends on a busy channel");
            if let Some((next, time)) = channel.waiting.pop_front() {
                channel.busy_with = Some(next);
                events.set(resource, now + time);
                if let Some(running) = &mut self.dies[next as usize].running {
                    running.step_ends = now + time;
                }
            }
            die as usize
        };
        (die, self.proceed(die, now, events))
    }

    /// Goes on to the next step of the die's operation, or ends it: then it is returned, if it is a
    /// host's.
    fn proceed(&mut self, die: usize, now: Time, events: &mut EventQueue) -> Option<Done> {
        let running = self.dies[die]
            .running
            .as_mut()
            .expect("an event belongs to an operation");
        match running.steps.get(running.next).copied().flatten() {
            Some(Step::Array(time)) => {
                running.next += 1;
                running.step_ends = now + time;
                events.set(die, now + time);
                None
            }
            Some(Step::Transfer(time)) => {
                running.next += 1;
                // Neighbours stand on different channels.
                let channel = die % self.channels.len();
                let c = &mut self.channels[channel];
                if c.busy_with.is_none() {
                    c.busy_with = Some(die as u32);
                    running.step_ends = now + time;
                    events.set(self.dies.len() + channel, now + time);
                } else {
                    running.step_ends = Time::NEVER;
                    c.waiting.push_back((die as u32, time));
                }
                None
            }
            None => {
                let finished = running.op;
                self.dies[die].running = None;
                self.chips[die].busy_total += now - self.dies[die].since;
                if let Some(done) = &finished {
                    self.chips[die].ended(&done.op);
                }
                if finished.is_none() && self.dies[die].collecting.is_none() {
                    self.chips[die].leave_gc(now);
                    self.chips_in_gc.set(ChipId(die as u16), false);
                }
                finished
            }
        }
    }

    /// What the die has begun. A transfer that waits for the channel counts with its own time.
    pub fn in_hand(&self, die: usize, now: Time) -> InHand {
        let of = &self.dies[die];
        let mut in_hand = InHand::default();
        let rest = of.running.as_ref().map_or(Time::ZERO, |r| r.rest(now));
        if let Some(done) = of.running.as_ref().and_then(|r| r.op) {
            in_hand.reads = u32::from(done.op.is_read());
            in_hand.writes = 1 - in_hand.reads;
            in_hand.rest = rest;
        }
        if self.chips[die].in_gc {
            let step = rest - in_hand.rest;
            in_hand.gc_rest = Some(match of.collecting {
                Some(run) => {
                    in_hand.gc_moves = self.ftl.valid_of(run.block);
                    step + self.times.move_one() * in_hand.gc_moves.into() + self.times.erase
                }
                None => step,
            });
        }
        in_hand
    }

    pub fn activate(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        if self.dies[die].running.is_some() {
            return;
        }
        if let Some(op) = self.chips[die].reads.pop_front() {
            return self.start_host(die, op, now, events);
        }
        if self.dies[die].collecting.is_none() {
            let waits = !self.chips[die].queue.is_empty();
            if (waits || self.params.background_gc) && self.pick_victim(die, now) {
                self.chips[die].enter_gc(now);
                self.chips_in_gc.set(ChipId(die as u16), true);
                self.stats.gc_actions += 1;
            }
        }
        if self.dies[die].collecting.is_some() {
            return self.start_gc_step(die, now, events);
        }
        if let Some(op) = self.chips[die].queue.pop_front() {
            self.start_host(die, op, now, events);
        }
    }

    // ---- operations ----

    fn start(
        &mut self,
        die: usize,
        op: Option<Done>,
        steps: [Option<Step>; 4],
        now: Time,
        events: &mut EventQueue,
    ) {
        self.dies[die].running = Some(Running {
            op,
            steps,
            next: 0,
            step_ends: now,
        });
        self.dies[die].since = now;
        if steps[0].is_none() {
            // Nothing to do (a write that failed): it ends at once, as an event of its own.
            events.set(die, now);
        } else {
            let done = self.proceed(die, now, events);
            debug_assert!(
                done.is_none(),
                "an operation with steps does not end at once"
            );
        }
    }

    fn start_host(&mut self, die: usize, op: PageOp, now: Time, events: &mut EventQueue) {
        let queue_gc = self.chips[die].gc_time(now) - op.gc_before;
        let mut done = Done {
            op,
            queue_gc,
            transfer: self.times.transfer,
            array: self.times.read,
            written: true,
        };
        let mut steps = [
            Some(Step::Array(self.times.read)),
            Some(Step::Transfer(self.times.transfer)),
            None,
            None,
        ];
        if !op.is_read() {
            let Ok(stream) = self.ftl.make_room(die as u32, op.stream) else {
                self.stats.writes_failed += 1;
                (done.transfer, done.array, done.written) = (Time::ZERO, Time::ZERO, false);
                return self.start(die, Some(done), [None; 4], now, events);
            };
            let sealed = self.ftl.append(die as u32, stream, op.lpn);
            done.array = self.times.program;
            if let (true, Some(summary)) = (sealed, self.summary_transfer) {
                self.stats.add(Cause::Summary, 1);
                done.transfer += summary;
                done.array += self.times.program;
            }
            steps = [
                Some(Step::Transfer(done.transfer)),
                Some(Step::Array(done.array)),
                None,
                None,
            ];
        }
        self.stats.add(op.cause, 1);
        if let Some(log) = &mut self.log {
            log.push(FlashEvent::Page {
                at: now,
                chip: die as u32,
                plane: None,
                lpn: op.lpn,
                cause: op.cause,
                duration: done.transfer + done.array,
            });
        }
        self.start(die, Some(done), steps, now, events);
    }

    // ---- collecting ----

    /// Whether the die is at its watermark and has a block worth collecting; takes it up.
    fn pick_victim(&mut self, die: usize, now: Time) -> bool {
        let pool = die as u32;
        if !self.ftl.is_needy(pool) {
            return false;
        }
        let Some((bit, valid)) = gc::victim(&self.ftl, pool, self.victim, Tie::Lowest) else {
            return false;
        };
        if !gc::worth_collecting(&self.ftl, pool, valid) {
            return false;
        }
        let block = pool * self.ftl.shape.blocks_per_pool + bit;
        self.dies[die].collecting = Some(Run { block, page: 0 });
        if let Some(log) = &mut self.log {
            log.push(FlashEvent::Victim {
                at: now,
                chip: pool,
                plane: bit / self.ftl.shape.blocks_per_plane,
                block: bit,
                valid,
            });
        }
        true
    }

    /// Moves the next live page of the block under collection in the map, and says whether that
    /// sealed a block; or erases the block, and says `None`.
    fn collect_step(&mut self, die: usize) -> Option<bool> {
        let run = self.dies[die]
            .collecting
            .as_mut()
            .expect("a run is under way");
        match self.ftl.next_live(run.block, run.page) {
            Some(page) => {
                run.page = page + 1;
                let ppn = self.ftl.first_ppn(run.block).0 + page;
                self.ftl.prefetch_at(Ppn(ppn + AHEAD));
                let lpn = self.ftl.lpn_at(Ppn(ppn));
                let stream = self
                    .ftl
                    .make_room(die as u32, self.ftl.move_stream(lpn))
                    .expect("worth_collecting saw the room");
                let sealed = self.ftl.append(die as u32, stream, lpn);
                self.stats.add(Cause::GcMove, 1);
                if sealed && self.summary_transfer.is_some() {
                    self.stats.add(Cause::Summary, 1);
                }
                Some(sealed)
            }
            None => {
                self.ftl.erase(run.block);
                self.stats.add(Cause::Erase, 1);
                self.dies[die].collecting = None;
                None
            }
        }
    }

    fn start_gc_step(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        let steps = match self.collect_step(die) {
            None => [Some(Step::Array(self.times.erase)), None, None, None],
            Some(sealed) => {
                let (mut out, mut program) = (Time::ZERO, self.times.program);
                if let (true, Some(summary)) = (sealed, self.summary_transfer) {
                    out += summary;
                    program += self.times.program;
                }
                if self.params.copy_back {
                    [
                        Some(Step::Array(self.times.read + program + out)),
                        None,
                        None,
                        None,
                    ]
                } else {
                    [
                        Some(Step::Array(self.times.read)),
                        Some(Step::Transfer(self.times.transfer)),
                        Some(Step::Transfer(self.times.transfer + out)),
                        Some(Step::Array(program)),
                    ]
                }
            }
        };
        self.start(die, None, steps, now, events);
    }

    pub fn write_untimed(&mut self, die: usize, lpn: Lpn) -> bool {
        while self.pick_victim(die, Time::ZERO) {
            while self.collect_step(die).is_some() {}
        }
        let stream = self.ftl.host_stream(lpn, Stream::Cold);
        let Ok(stream) = self.ftl.make_room(die as u32, stream) else {
            return false;
        };
        if self.ftl.append(die as u32, stream, lpn) && self.summary_transfer.is_some() {
            self.stats.add(Cause::Summary, 1);
        }
        self.stats.add(Cause::HostWrite, 1);
        true
    }
}
