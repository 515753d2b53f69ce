//! Converts the flash operations that a translation layer returns into steps of its chip.

use std::collections::VecDeque;

use super::super::{Cause, Done, FlashEvent, PageOp};
use super::chip_log::Note;
use super::Layered;
use crate::ftl::chip::{FlashOp, OpKind, Why};
use crate::spec::DeviceSpec;
use crate::units::Time;

/// A step of a chip's work. Only `Array` and `Transfer` take time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Array time, without the channel.
    Array(Time),
    /// Transfer of a page over the channel.
    Transfer(Time),
    /// The chip begins GC (true) or ends it (false).
    Gc(bool),
    /// The host operation no longer waits for GC. The next steps access its own page, or map pages that it needs.
    Serve,
    /// Completion of the operation in service.
    Deliver,
}

/// Work in service of a chip.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// The host's operation in service.
    pub in_hand: Option<Done>,
    /// Steps not begun, in order.
    steps: VecDeque<Step>,
    /// Total time of `steps`. The running step is not one of them.
    planned: Time,
    /// Duration of the running step.
    begun: Option<Time>,
    /// End of the running step; `NEVER` while it waits for the channel.
    pub ends: Time,
    pub since: Time,
    /// Notes of the steps not begun, from which their log entries are made. Empty if no log is kept.
    pub notes: VecDeque<Note>,
    /// Whether all steps not begun have their notes.
    pub noted: bool,
}

impl Lane {
    /// Whether no step remains, not even one that takes no time.
    fn is_empty(&self) -> bool {
        self.is_free() && self.steps.is_empty()
    }

    pub fn is_free(&self) -> bool {
        self.begun.is_none()
    }

    /// Starts the next step and returns it.
    pub fn next(&mut self) -> Option<Step> {
        let step = self.steps.pop_front();
        self.begun = match step {
            Some(Step::Array(time) | Step::Transfer(time)) => Some(time),
            _ => None,
        };
        self.planned -= self.begun.unwrap_or(Time::ZERO);
        step
    }

    /// Returns the time until all steps are done, if none has to wait for a channel.
    pub fn rest(&self, now: Time) -> Time {
        let begun = match self.begun {
            None => Time::ZERO,
            Some(time) if self.ends == Time::NEVER => time,
            Some(_) => self.ends - now,
        };
        begun + self.planned
    }

    fn mark(&mut self, step: Step) {
        self.steps.push_back(step);
    }

    /// Appends array time: as a new step, or as an extension of the last step if that is array time too.
    fn work(&mut self, time: Time) {
        self.planned += time;
        match self.steps.back_mut() {
            Some(Step::Array(before)) => *before += time,
            _ => self.steps.push_back(Step::Array(time)),
        }
    }

    fn cross(&mut self, time: Time) {
        self.planned += time;
        self.steps.push_back(Step::Transfer(time));
    }
}

/// Returns the index of a kind of operation in [`Costs::of_kind`]: 0 read, 1 program, 2 copy, 3 erase.
#[inline]
fn number_of(kind: OpKind) -> usize {
    match kind {
        OpKind::Read { .. } => 0,
        OpKind::Program { .. } => 1,
        OpKind::Copy { .. } => 2,
        OpKind::Erase { .. } => 3,
    }
}

/// Latency of an operation.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Time of the transfers.
    transfer: Time,
    /// Time in the flash array. Used only if it is equal for all pages.
    array: Time,
    /// Whether the operation transfers data over a channel that the chip shares with other chips.
    crosses: bool,
}

/// Latency of each kind of operation.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    /// Latency of each kind, by [`number_of`].
    of_kind: [Cost; 4],
    /// Whether reads take equally long for all page types, and programs too.
    is_uniform: bool,
    pages_per_block: u32,
    /// Read time of each page type; a single entry if all types have equal read times. Page `i` of a block has type `i
    /// mod n`, where `n` is the number of types.
    read: Vec<Time>,
    /// Program time of each page type; a single entry if all types have equal program times.
    program: Vec<Time>,
    erase: Time,
    transfer: Time,
    copy_back: bool,
    pub has_own_pins: bool,
}

impl Costs {
    pub fn new(spec: &DeviceSpec, has_own_pins: bool) -> Costs {
        let timing = &spec.timing;
        let (read, program) = (timing.read_by_type[0], timing.program_by_type[0]);
        let transfer = spec.page_transfer();
        let copy_back = spec.copy_back();
        let cost = |transfers: u64, array: Time| Cost {
            transfer: transfer * transfers,
            array,
            crosses: transfers > 0 && !has_own_pins,
        };
        Costs {
            of_kind: [
                cost(1, read),
                cost(1, program),
                cost(if copy_back { 0 } else { 2 }, read + program),
                cost(0, timing.erase),
            ],
            is_uniform: timing.read_by_type.len() + timing.program_by_type.len() == 2,
            pages_per_block: spec.geometry.pages_per_block,
            read: timing.read_by_type.clone(),
            program: timing.program_by_type.clone(),
            erase: timing.erase,
            transfer,
            copy_back,
            has_own_pins,
        }
    }

    fn of_type(&self, times: &[Time], ppn: u32) -> Time {
        match times {
            [one] => *one,
            _ => times[(ppn % self.pages_per_block) as usize % times.len()],
        }
    }

    /// Returns the parts of an operation in order, each with its time. The flag is true for a transfer over the
    /// channel, and false for work in the flash array.
    pub fn parts(&self, kind: OpKind) -> Vec<(Time, bool)> {
        let array = |times: &[Time], ppn| (self.of_type(times, ppn), false);
        let transfer = (self.transfer, true);
        match kind {
            OpKind::Read { ppn } => vec![array(&self.read, ppn), transfer],
            OpKind::Program { ppn } => vec![transfer, array(&self.program, ppn)],
            OpKind::Copy { from, to } => {
                let (read, program) = (array(&self.read, from), array(&self.program, to));
                match self.copy_back {
                    true => vec![(read.0 + program.0, false)],
                    false => vec![read, transfer, transfer, program],
                }
            }
            OpKind::Erase { .. } => vec![(self.erase, false)],
        }
    }

    /// Returns the time that an operation takes in the flash array.
    fn array(&self, kind: OpKind) -> Time {
        match kind {
            OpKind::Read { ppn } => self.of_type(&self.read, ppn),
            OpKind::Program { ppn } => self.of_type(&self.program, ppn),
            OpKind::Copy { from, to } => {
                self.of_type(&self.read, from) + self.of_type(&self.program, to)
            }
            OpKind::Erase { .. } => self.erase,
        }
    }

    /// Appends the steps of operations of one kind and purpose. Returns their total transfer time and their total array
    /// time.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn append(&self, ops: &[FlashOp], lane: &mut Lane) -> (Time, Time) {
        let (cost, count) = (&self.of_kind[number_of(ops[0].kind)], ops.len() as u64);
        let transfer = cost.transfer * count;
        let array = match self.is_uniform {
            true => cost.array * count,
            false => self.sum_of_array(ops),
        };
        match cost.crosses {
            false => lane.work(transfer + array),
            true => self.append_crossing(ops, lane),
        }
        (transfer, array)
    }

    /// Returns the total array time of operations if it depends on the pages.
    #[inline(never)]
    fn sum_of_array(&self, ops: &[FlashOp]) -> Time {
        (ops.iter()).fold(Time::ZERO, |sum, op| sum + self.array(op.kind))
    }

    /// Appends the steps of operations that transfer data over a shared channel.
    #[inline(never)]
    fn append_crossing(&self, ops: &[FlashOp], lane: &mut Lane) {
        ops.iter()
            .for_each(|op| self.append_one_crossing(op.kind, lane));
    }

    /// Appends the steps of one operation that transfers data over a shared channel.
    fn append_one_crossing(&self, kind: OpKind, lane: &mut Lane) {
        match kind {
            OpKind::Read { ppn } => {
                lane.work(self.of_type(&self.read, ppn));
                lane.cross(self.transfer);
            }
            OpKind::Program { ppn } => {
                lane.cross(self.transfer);
                lane.work(self.of_type(&self.program, ppn));
            }
            OpKind::Copy { from, to } => {
                lane.work(self.of_type(&self.read, from));
                lane.cross(self.transfer);
                lane.cross(self.transfer);
                lane.work(self.of_type(&self.program, to));
            }
            OpKind::Erase { .. } => lane.work(self.erase),
        }
    }
}

/// Returns the cause under which a flash operation is counted. `host` is the cause of the host's operation.
pub(super) fn cause(op: &FlashOp, host: Cause) -> Cause {
    match (op.kind, op.why) {
        (OpKind::Read { .. } | OpKind::Program { .. }, Why::Host) => host,
        (OpKind::Read { .. }, _) => Cause::MapRead,
        (OpKind::Program { .. }, _) => Cause::MapWrite,
        (OpKind::Copy { .. }, Why::Merge) => Cause::MergeCopy,
        (OpKind::Copy { .. }, _) => Cause::GcMove,
        (OpKind::Erase { .. }, _) => Cause::Erase,
    }
}

fn is_gc(op: &FlashOp) -> bool {
    matches!(op.why, Why::Gc | Why::GcMap | Why::Merge)
}

impl Layered {
    /// Appends steps for the flash operations of an access (`self.ops`) to those of its chip. `host` is the host's
    /// operation, and whether its page could be written. It is `None` for a trim.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn plan(&mut self, chip: usize, host: Option<(PageOp, bool)>, now: Time) {
        let lane = &mut self.lanes[chip];
        let after_gc = self.ops.iter().rposition(is_gc).map(|last| last + 1);
        let host_cause = host.map_or(Cause::HostRead, |(op, _)| op.cause);
        // Notes are matched to steps by their order. A step that was planned before the log was enabled has no note.
        // While such a step remains, new steps therefore get no notes either.
        lane.noted = self.log.is_some() && (lane.is_empty() || lane.noted);
        let (mut transfer, mut array, mut collecting) = (Time::ZERO, Time::ZERO, None);
        let (mut is_served, mut has_ended) = (host.is_none(), host.is_none());
        let mut planned = 0;
        for ops in self.ops.chunk_by(FlashOp::is_like) {
            let (op, is_gc) = (&ops[0], is_gc(&ops[0]));
            planned += ops.len();
            if is_gc && collecting.is_none() {
                lane.mark(Step::Gc(true));
            }
            if !is_gc && !is_served {
                is_served = true;
                lane.mark(Step::Serve);
            }
            let (on_channel, in_array) = self.costs.append(ops, lane);
            if lane.noted {
                for op in ops {
                    let of_host = host.filter(|_| op.why == Why::Host);
                    let note = Note::new(op.kind, cause(op, host_cause), of_host.map(|(op, _)| op));
                    self.costs.note(note, op.kind, lane);
                }
            }
            if is_gc {
                *collecting.get_or_insert(Time::ZERO) += on_channel + in_array;
            } else {
                transfer += on_channel;
                array += in_array;
            }
            if op.why == Why::Host {
                debug_assert_eq!(ops.len(), 1, "the host has one page");
                has_ended = true;
                lane.mark(Step::Deliver);
            }
            if after_gc == Some(planned) {
                lane.mark(Step::Gc(false));
            }
            self.stats.add(cause(op, host_cause), ops.len() as u64);
        }
        if let Some(collecting) = collecting {
            self.gc_took[chip] = collecting;
        }
        let Some((op, written)) = host else { return };
        if !is_served {
            lane.mark(Step::Serve);
        }
        if !has_ended {
            // No flash operation accessed the host's page. In case of a read, the page has no copy on flash, and the
            // read takes the time of any other read. In case of a write, the write failed. It completes after the steps
            // that searched for room, without further time, as an event of its own.
            if op.is_read() {
                let nowhere = FlashOp {
                    kind: OpKind::Read { ppn: 0 },
                    why: Why::Host,
                };
                let (on_channel, in_array) = self.costs.append(&[nowhere], lane);
                if lane.noted {
                    let note = Note::new(nowhere.kind, op.cause, Some(op));
                    self.costs.note(note, nowhere.kind, lane);
                }
                transfer += on_channel;
                array += in_array;
                self.stats.add(op.cause, 1);
            } else {
                lane.work(Time::ZERO);
            }
            lane.mark(Step::Deliver);
        }
        lane.in_hand = Some(Done {
            op,
            queue_gc: Time::ZERO,
            transfer,
            array,
            written,
            failed: false,
        });
        let Some(log) = &mut self.log else { return };
        if let Some(duration) = collecting {
            log.push(FlashEvent::Clean {
                at: now,
                chip: chip as u32,
                duration,
            });
        }
        log.push(FlashEvent::Page {
            at: now,
            chip: chip as u32,
            plane: None,
            lpn: op.lpn,
            cause: op.cause,
            place: None,
            duration: transfer + array,
            request: op.request,
        });
    }
}
