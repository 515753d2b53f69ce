//! Spatial separation (SWAN, Kim et al., USENIX ATC 2019): what the array does with its volume.
//!
//! The front group takes all writes, page after page of its open segment; a page of parity follows when
//! a page stripe is complete. The groups behind collect: valid pages of a segment are read and written to
//! the open segment of the same group, then the segment is trimmed on its members, whose own flash has
//! whole blocks to erase and nothing to move. Reads wait for no order: a segment is trimmed only once
//! nothing of it is being read, and what is still being written is read from the controller's memory.

use std::collections::VecDeque;

use super::layout::Spot;
use super::log::{ArrayEvent, SentFor};
use super::raid::{Chain, Raid, Spent};
use super::stripes::NONE;
use super::volume::Volume;
use crate::events::EventQueue;
use crate::request::Op;
use crate::spec::ArraySpec;
use crate::units::{Lpn, Time};

/// Marks the number of a [`Task`] among those of jobs.
pub(super) const TASK: u32 = 1 << 30;
/// Pages of a group that are moved at a time, for each of its members.
const MOVES_PER_MEMBER: u32 = 4;

/// A request to a member that nobody outside waits for.
#[derive(Clone, Copy, Debug)]
enum Task {
    Parity { segment: u32 },
    Trim { segment: u32 },
    Read { from: u32 },
    Write { from: u32, to: u32 },
}

/// The volume and what is under way on it.
#[derive(Clone, Debug)]
pub(super) struct Swan {
    pub volume: Volume,
    /// Writes for which no group has room, in their order.
    waiting: VecDeque<u32>,
    /// The place of each page operation that is at a member.
    place_of_op: Vec<u32>,
    tasks: Vec<Task>,
    free_tasks: Vec<u32>,
    /// Moves under way in each group.
    moving: Vec<u32>,
    /// Trims under way of each segment.
    trims: Vec<u16>,
    /// Parity to be written, and its segments.
    complete: VecDeque<(Spot, u32)>,
    /// A member takes no more writes.
    worn_out: bool,
}

impl Swan {
    /// An array of groups that were never written.
    pub fn of(spec: &ArraySpec) -> Option<Box<Swan>> {
        Volume::of(spec).map(Swan::with)
    }

    /// Nothing is under way on the volume.
    pub fn with(volume: Volume) -> Box<Swan> {
        Box::new(Swan {
            waiting: VecDeque::new(),
            place_of_op: Vec::new(),
            tasks: Vec::new(),
            free_tasks: Vec::new(),
            moving: vec![0; volume.groups.len()],
            trims: vec![0; volume.segments.len()],
            complete: VecDeque::new(),
            worn_out: false,
            volume,
        })
    }

    /// Takes the page operations that wait for room.
    pub fn take_waiting(&mut self) -> VecDeque<u32> {
        std::mem::take(&mut self.waiting)
    }

    fn add_task(&mut self, task: Task) -> u32 {
        match self.free_tasks.pop() {
            Some(id) => {
                self.tasks[id as usize] = task;
                id
            }
            None => {
                self.tasks.push(task);
                self.tasks.len() as u32 - 1
            }
        }
    }

    /// A place was given away: the parity of its page stripe may follow.
    fn note_parity(&mut self, place: u32) {
        if let Some(spot) = self.volume.parity_after(place) {
            let segment = self.volume.segment_of(place);
            self.volume.write_began(segment);
            self.complete.push_back((spot, segment));
        }
    }

    fn set_place(&mut self, op: u32, place: u32) {
        let op = op as usize;
        if op >= self.place_of_op.len() {
            self.place_of_op.resize(op + 1, NONE);
        }
        self.place_of_op[op] = place;
    }
}

fn only(op: u32) -> Chain {
    Chain { head: op, tail: op }
}

impl Raid {
    /// The volume is put aside while the array does what it asks for.
    fn with_swan(&mut self, act: impl FnOnce(&mut Raid, &mut Swan)) {
        if let Some(mut swan) = self.swan.take() {
            act(self, &mut swan);
            self.swan = Some(swan);
        }
    }

    /// What the front end queued at this instant.
    pub(super) fn place_in_volume(&mut self, now: Time, events: &mut EventQueue) {
        self.with_swan(|raid, swan| {
            let mut batch = std::mem::take(&mut raid.batch);
            raid.batch_of_one = batch.len() == 1;
            for &id in &batch {
                let op = raid.ops[id as usize].0;
                if op.is_read() {
                    raid.read_place(swan, id, op.lpn, now, events);
                } else {
                    swan.waiting.push_back(id);
                    raid.admit(swan, now, events);
                }
            }
            batch.clear();
            raid.batch = batch;
            raid.batch_of_one = false;
            raid.send_all(swan, now, events);
            for lpn in raid.trims.drain(..) {
                swan.volume.forget(lpn);
            }
            raid.collect(swan, now, events);
        });
        self.deliver(now, events);
    }

    fn read_place(
        &mut self,
        swan: &mut Swan,
        id: u32,
        lpn: Lpn,
        now: Time,
        events: &mut EventQueue,
    ) {
        self.stats.data_pages_read += 1;
        match swan.volume.find(lpn) {
            Some(place) if !swan.volume.is_flying(place) => {
                swan.volume.read_began(place);
                swan.set_place(id, place);
                let spot = swan.volume.spot(place);
                return self.join(spot, id, Op::Read, false, now, events);
            }
            Some(_) => self.tell(|_| ArrayEvent::FromMemory { op: id }),
            None => self.tell(|_| ArrayEvent::Unwritten { op: id }),
        }
        self.finish(only(id), Spent::default(), true);
    }

    /// Gives writes their places, in their order, as long as there is room.
    fn admit(&mut self, swan: &mut Swan, now: Time, events: &mut EventQueue) {
        while let Some(&id) = swan.waiting.front() {
            let op = self.ops[id as usize].0;
            if swan.worn_out {
                self.finish(only(id), Spent::default(), false);
            } else {
                let Some(place) = swan.volume.write(op.lpn) else {
                    break;
                };
                self.stats.data_pages_written += 1;
                swan.set_place(id, place);
                swan.note_parity(place);
                let spot = swan.volume.spot(place);
                self.join(spot, id, Op::Write, op.fua | self.through, now, events);
            }
            swan.waiting.pop_front();
        }
    }

    /// Sends what was put together, then the parity of stripes that are complete. The host does not wait
    /// for it: until then the controller's memory has it.
    fn send_all(&mut self, swan: &mut Swan, now: Time, events: &mut EventQueue) {
        self.send_runs(now, events);
        while let Some((spot, segment)) = swan.complete.pop_front() {
            self.stats.parity_pages_written += 1;
            let task = swan.add_task(Task::Parity { segment });
            let pages = (spot.lpn.0, 1);
            let what = (Op::Write, SentFor::Parity);
            self.send_task(task, spot.member, pages, what, now, events);
        }
    }

    fn send_task(
        &mut self,
        task: u32,
        member: usize,
        (first, pages): (u32, u32),
        (op, on_behalf): (Op, SentFor),
        now: Time,
        events: &mut EventQueue,
    ) {
        let fua = op == Op::Write && self.volatile;
        let to = (task | TASK, Chain::EMPTY);
        let part = self.send(member, (first, pages), op, fua, to, now, events);
        self.tell(|raid| ArrayEvent::Sent {
            part,
            member,
            first,
            pages,
            op,
            on_behalf,
            number: raid.number_at(member),
        });
    }

    /// Has groups collect that should, and segments trimmed that are empty.
    fn collect(&mut self, swan: &mut Swan, now: Time, events: &mut EventQueue) {
        if swan.worn_out {
            return;
        }
        let wait = !swan.waiting.is_empty();
        let most = MOVES_PER_MEMBER * swan.volume.shape.members;
        for group in 0..swan.volume.shape.groups {
            loop {
                let collects = swan.volume.collects(group, wait);
                while collects && swan.moving[group as usize] < most {
                    let Some(from) = swan.volume.next_to_move(group) else {
                        break;
                    };
                    swan.moving[group as usize] += 1;
                    swan.volume.read_began(from);
                    let spot = swan.volume.spot(from);
                    let number = swan.add_task(Task::Read { from });
                    let what = (Op::Read, SentFor::Move { number });
                    self.send_task(number, spot.member, (spot.lpn.0, 1), what, now, events);
                }
                let Some(segment) = swan.volume.take_emptied(group) else {
                    break;
                };
                self.trim_segment(swan, segment, now, events);
            }
        }
    }

    fn trim_segment(&mut self, swan: &mut Swan, segment: u32, now: Time, events: &mut EventQueue) {
        self.stats.segments_trimmed += 1;
        let (members, first) = swan.volume.extent(segment);
        swan.trims[segment as usize] = members.len() as u16;
        for member in members {
            let task = swan.add_task(Task::Trim { segment });
            let pages = (first, swan.volume.shape.pages);
            let what = (Op::Trim, SentFor::Pages(Vec::new()));
            self.send_task(task, member, pages, what, now, events);
        }
    }

    /// What host requests had asked of a member is done there.
    pub(super) fn places_done(&mut self, chain: Chain, written: bool) {
        let Some(swan) = &mut self.swan else {
            return;
        };
        swan.worn_out |= !written;
        let mut at = chain.head;
        while at != NONE {
            let (op, next) = &self.ops[at as usize];
            let place = swan.place_of_op[at as usize];
            match op.is_read() {
                true => swan.volume.read_ended(place),
                false => swan.volume.landed(place),
            }
            at = *next;
        }
    }

    /// A member has done what the volume asked of it.
    pub(super) fn task_done(&mut self, id: u32, written: bool, now: Time, events: &mut EventQueue) {
        self.with_swan(|raid, swan| {
            swan.worn_out |= !written;
            let moved = match swan.tasks[id as usize] {
                Task::Parity { segment } => {
                    swan.volume.write_ended(segment);
                    None
                }
                Task::Trim { segment } => {
                    swan.trims[segment as usize] -= 1;
                    if swan.trims[segment as usize] == 0 {
                        swan.volume.trimmed(segment);
                    }
                    None
                }
                Task::Read { from } => {
                    let volume = &mut swan.volume;
                    let to = (!swan.worn_out).then(|| volume.place_for_move(from));
                    if let Some(to) = to.flatten() {
                        return raid.write_moved(swan, id, (from, to), now, events);
                    }
                    Some(from)
                }
                Task::Write { from, to } => {
                    swan.volume.landed(to);
                    if written {
                        swan.volume.moved(from, to);
                    }
                    Some(from)
                }
            };
            if let Some(from) = moved {
                swan.volume.read_ended(from);
                let group = swan.volume.group_of(swan.volume.segment_of(from));
                swan.moving[group as usize] -= 1;
            }
            swan.free_tasks.push(id);
        });
    }

    /// A page to be moved has been read.
    fn write_moved(
        &mut self,
        swan: &mut Swan,
        number: u32,
        (from, to): (u32, u32),
        now: Time,
        events: &mut EventQueue,
    ) {
        self.stats.pages_moved += 1;
        swan.tasks[number as usize] = Task::Write { from, to };
        swan.note_parity(to);
        let spot = swan.volume.spot(to);
        let what = (Op::Write, SentFor::Move { number });
        self.send_task(number, spot.member, (spot.lpn.0, 1), what, now, events);
        self.send_all(swan, now, events);
    }

    /// Members have done something: what waited for it goes on.
    pub(super) fn volume_goes_on(&mut self, now: Time, events: &mut EventQueue) {
        self.with_swan(|raid, swan| {
            raid.admit(swan, now, events);
            raid.send_all(swan, now, events);
            raid.collect(swan, now, events);
        });
        self.deliver(now, events);
    }
}
