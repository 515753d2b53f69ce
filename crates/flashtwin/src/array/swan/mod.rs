//! Operations of a SWAN array on its volume (spatial separation, Kim et al., USENIX ATC 2019). The members form groups,
//! and a group is written in segments ([`volume`]).
//!
//! The front group receives all writes of the host, page after page of its open segment. When a page stripe is
//! complete, a page of parity follows. The other groups collect garbage: the valid pages of a segment are read and
//! written to the open segment of the same group, and the segment is trimmed on its members. The members' own garbage
//! collection then finds whole blocks to erase and no pages to move.
//!
//! Reads do not wait for these steps. A page that is still being written is read from the controller's memory. A
//! segment is trimmed only when none of its pages is being read.

pub(super) mod untimed;
pub(super) mod volume;

use std::collections::VecDeque;

use super::clock::Clock;
use super::features::Every;
use super::io::ops::Chain;
use super::io::requests::Origin;
use super::io::{Io, Order};
use super::layout::Spot;
use super::member::response::Spent;
use super::record::log::{ArrayEvent, SentFor};
use super::table::{Table, NONE};
use crate::request::Op;
use crate::spec::ArraySpec;
use crate::units::Lpn;
use volume::Volume;

/// Number of pages of a group that may be moved at the same time, per member of the group.
const MOVES_PER_MEMBER: u32 = 4;

/// A request to a member for which no host operation waits.
#[derive(Clone, Copy, Debug)]
enum Task {
    Parity { segment: u32 },
    Trim { segment: u32 },
    Read { from: u32 },
    Write { from: u32, to: u32 },
}

/// The volume and the operations in flight on it.
#[derive(Clone, Debug)]
pub(crate) struct Swan {
    pub volume: Volume,
    /// Writes for which no group has room, in order of arrival.
    waiting: VecDeque<u32>,
    /// For each page operation that was sent to a member, the place of its page in the volume.
    place_of_op: Vec<u32>,
    tasks: Table<Task>,
    /// For each group, the number of running moves.
    moving: Vec<u32>,
    /// For each segment, the number of trims in flight.
    trims: Vec<u32>,
    /// Locations of parity pages to be written, each with its segment. The stripes of these pages are complete.
    complete: VecDeque<(Spot, u32)>,
    /// Whether a member has refused a write because it is worn out. The array then executes no more writes.
    worn_out: bool,
}

impl Swan {
    /// Creates the volume of a SWAN array that was never written; `None` for other arrays.
    pub fn of(spec: &ArraySpec) -> Option<Box<Swan>> {
        Volume::of(spec).map(Swan::with)
    }

    /// Creates the state of a volume on which nothing is in flight.
    pub fn with(volume: Volume) -> Box<Swan> {
        Box::new(Swan {
            waiting: VecDeque::new(),
            place_of_op: Vec::new(),
            tasks: Table::default(),
            moving: vec![0; volume.groups.len()],
            trims: vec![0; volume.segments.len()],
            complete: VecDeque::new(),
            worn_out: false,
            volume,
        })
    }

    /// Takes out the writes that wait for room in a group.
    pub fn take_waiting(&mut self) -> VecDeque<u32> {
        std::mem::take(&mut self.waiting)
    }

    /// Queues the parity of a page stripe if `place` completes the stripe.
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

    /// Places the operations that the front end queued at this instant.
    pub fn place(&mut self, io: &mut Io, (ops, trims): (&[u32], &[Lpn]), clock: &mut Clock) {
        io.runs.alone = ops.len() == 1;
        for &id in ops {
            let op = *io.ops.get(id);
            if op.is_read() {
                self.read(io, id, op.lpn, clock);
            } else {
                self.waiting.push_back(id);
                self.admit(io, clock);
            }
        }
        io.runs.alone = false;
        self.send_all(io, clock);
        for &lpn in trims {
            self.volume.forget(lpn);
        }
        self.collect(io, clock);
    }

    fn read(&mut self, io: &mut Io, id: u32, lpn: Lpn, clock: &mut Clock) {
        io.record.stats.data_pages_read += 1;
        match self.volume.find(lpn) {
            Some(place) if !self.volume.is_flying(place) => {
                self.volume.read_began(place);
                self.set_place(id, place);
                let spot = self.volume.spot(place);
                return io.join::<Every>(spot, id, (Op::Read, false), clock);
            }
            Some(_) => io.record.log.add(|| ArrayEvent::FromMemory { op: id }),
            None => io.record.log.add(|| ArrayEvent::Unwritten { op: id }),
        }
        io.finish::<Every>(Chain::only(id), Spent::default(), true);
    }

    /// Assigns places to the waiting writes, in order, as long as there is room.
    fn admit(&mut self, io: &mut Io, clock: &mut Clock) {
        while let Some(&id) = self.waiting.front() {
            let op = *io.ops.get(id);
            if self.worn_out {
                io.finish::<Every>(Chain::only(id), Spent::default(), false);
            } else {
                let Some(place) = self.volume.write(op.lpn) else {
                    break;
                };
                io.record.stats.data_pages_written += 1;
                self.set_place(id, place);
                self.note_parity(place);
                let spot = self.volume.spot(place);
                let fua = op.fua | io.through;
                io.join::<Every>(spot, id, (Op::Write, fua), clock);
            }
            self.waiting.pop_front();
        }
    }

    /// Sends the pages that were joined to requests, then the parity of complete stripes. Host writes complete without
    /// waiting for parity, because the controller's memory holds the data of a stripe until its parity is written.
    fn send_all(&mut self, io: &mut Io, clock: &mut Clock) {
        io.send_runs(clock);
        while let Some((spot, segment)) = self.complete.pop_front() {
            io.record.stats.parity_pages_written += 1;
            let task = self.tasks.add(Task::Parity { segment });
            send_page(io, task, spot, (Op::Write, SentFor::Parity), clock);
        }
    }

    /// Starts collections in the groups that must collect, and trims of segments that are empty.
    fn collect(&mut self, io: &mut Io, clock: &mut Clock) {
        if self.worn_out {
            return;
        }
        let wait = !self.waiting.is_empty();
        let most = MOVES_PER_MEMBER * self.volume.shape.members;
        for group in 0..self.volume.shape.groups {
            loop {
                let collects = self.volume.collects(group, wait);
                while collects && self.moving[group as usize] < most {
                    let Some(from) = self.volume.next_to_move(group) else {
                        break;
                    };
                    self.moving[group as usize] += 1;
                    self.volume.read_began(from);
                    let spot = self.volume.spot(from);
                    let number = self.tasks.add(Task::Read { from });
                    let what = (Op::Read, SentFor::Move { number });
                    send_page(io, number, spot, what, clock);
                }
                let Some(segment) = self.volume.take_emptied(group) else {
                    break;
                };
                self.trim_segment(io, segment, clock);
            }
        }
    }

    fn trim_segment(&mut self, io: &mut Io, segment: u32, clock: &mut Clock) {
        io.record.stats.segments_trimmed += 1;
        let (members, first) = self.volume.extent(segment);
        self.trims[segment as usize] = self.volume.shape.members;
        for member in members {
            let task = self.tasks.add(Task::Trim { segment });
            let pages = (first, self.volume.shape.pages);
            let what = (Op::Trim, SentFor::Pages(Vec::new()));
            send(io, task, member, pages, what, clock);
        }
    }

    /// Records that a member has completed the host operations of a chain.
    pub fn places_done(&mut self, io: &Io, chain: Chain, written: bool) {
        self.worn_out |= !written;
        for op in io.ops.of(chain) {
            let place = self.place_of_op[op as usize];
            match io.ops.get(op).is_read() {
                true => self.volume.read_ended(place),
                false => self.volume.landed(place),
            }
        }
    }

    /// Processes the completion of a request to a member that belongs to a task (such as a move or a trim), not to the
    /// host.
    pub fn task_done(&mut self, io: &mut Io, id: u32, written: bool, clock: &mut Clock) {
        self.worn_out |= !written;
        let volume = &mut self.volume;
        let moved = match self.tasks[id] {
            Task::Parity { segment } => {
                volume.write_ended(segment);
                None
            }
            Task::Trim { segment } => {
                self.trims[segment as usize] -= 1;
                if self.trims[segment as usize] == 0 {
                    volume.trimmed(segment);
                }
                None
            }
            Task::Read { from } => {
                let to = (!self.worn_out).then(|| volume.place_for_move(from));
                if let Some(to) = to.flatten() {
                    return self.write_moved(io, id, (from, to), clock);
                }
                Some(from)
            }
            Task::Write { from, to } => {
                volume.landed(to);
                if written {
                    volume.moved(from, to);
                }
                Some(from)
            }
        };
        if let Some(from) = moved {
            volume.read_ended(from);
            let group = volume.group_of(volume.segment_of(from));
            self.moving[group as usize] -= 1;
        }
        self.tasks.remove(id);
    }

    /// Sends the write of a page that is being moved from `from` to `to`. The page has been read.
    fn write_moved(&mut self, io: &mut Io, number: u32, (from, to): (u32, u32), clock: &mut Clock) {
        io.record.stats.pages_moved += 1;
        self.tasks[number] = Task::Write { from, to };
        self.note_parity(to);
        let what = (Op::Write, SentFor::Move { number });
        send_page(io, number, self.volume.spot(to), what, clock);
        self.send_all(io, clock);
    }

    /// Continues after responses of members: starts waiting writes for which there is room now, sends queued requests,
    /// and continues collections.
    pub fn proceed(&mut self, io: &mut Io, clock: &mut Clock) {
        self.admit(io, clock);
        self.send_all(io, clock);
        self.collect(io, clock);
    }
}

fn send_page(io: &mut Io, task: u32, spot: Spot, what: (Op, SentFor), clock: &mut Clock) {
    send(io, task, spot.member, (spot.lpn.0, 1), what, clock);
}

fn send(
    io: &mut Io,
    task: u32,
    member: usize,
    pages: (u32, u32),
    (op, on_behalf): (Op, SentFor),
    clock: &mut Clock,
) {
    let fua = op == Op::Write && io.volatile;
    let order = Order {
        member,
        pages,
        op,
        fua,
        origin: Origin::Task(task),
    };
    io.send(order, clock, |_| on_behalf);
}
