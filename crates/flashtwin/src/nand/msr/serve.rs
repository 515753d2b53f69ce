//! Execution of page operations: singly, or in batches over several parallel units of a chip.

use super::*;
use crate::spec::AllocationPool;

/// Length from which on a queue is long: data for its operations are prefetched again before they start.
const LONG_QUEUE: usize = 24;

/// A chip, and the parts of the back end that serve it. The operation to start is built in place in `service.next`, so
/// that it is copied only once.
pub(super) struct Serving<'a> {
    at: u32,
    pub chip: &'a mut Chip,
    pub service: &'a mut Service,
    ftl: &'a mut PageMap,
    stats: &'a mut FlashStats,
    times: &'a Latencies,
    summary_transfer: &'a Option<Time>,
    planes: &'a u32,
    params: &'a MsrNand,
}

impl Msr {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn serving(&mut self, chip: usize) -> Serving<'_> {
        Serving {
            at: chip as u32,
            chip: &mut self.chips[chip],
            service: &mut self.service[chip],
            ftl: &mut self.ftl,
            stats: &mut self.stats,
            times: &self.times,
            summary_transfer: &self.summary_transfer,
            planes: &self.planes,
            params: &self.params,
        }
    }

    /// Takes the next operation or batch from the queue of a chip, and starts it.
    #[inline(always)]
    pub(super) fn serve(&mut self, chip: usize, now: Time, events: &mut EventQueue) {
        if self.params.parallel_units > 1 {
            return self.serve_batch(chip, now, events);
        }
        if self.serving(chip).take_next() {
            self.serve_one(chip, now, events);
        }
    }

    /// Starts the single operation in `service.next`.
    #[inline(always)]
    pub(super) fn serve_one(&mut self, chip: usize, now: Time, events: &mut EventQueue) {
        let (done_at, plane) = self.serving(chip).serve(now);
        if self.log.is_some() {
            self.log_started(chip, plane, now, (now, done_at));
        }
        events.set(self.first_resource + chip, done_at);
    }

    /// Executes a batch over several parallel units, in rounds, first all reads and then all writes. In a round, each
    /// unit that still has pages executes one of them. Within a round, the array times of the units overlap, but the
    /// transfers follow one another.
    #[inline(never)]
    fn serve_batch(&mut self, chip: usize, now: Time, events: &mut EventQueue) {
        self.service[chip].batch_since = now;
        let units = self.params.parallel_units;
        let mut reads = std::mem::take(&mut self.reads);
        let mut writes = std::mem::take(&mut self.writes);
        while reads.len() < BATCH_MAX && writes.len() < BATCH_MAX {
            let Some(op) = self.chips[chip].queue.pop_front() else {
                break;
            };
            let mut on = self.serving(chip);
            if op.is_read() {
                let plane = on.plane_of_copy(op.lpn);
                reads.push(Planned { op, plane });
            } else {
                let plane = on.pick_plane(op.lpn, op.stream, &writes);
                writes.push(Planned { op, plane });
            }
        }
        let mut base = now;
        self.in_rounds(&mut reads, units, &mut base, |msr, planned, base, rank| {
            let done_at = base + msr.times.transfer * rank + msr.times.read;
            let mut on = msr.serving(chip);
            on.service.next.done.op = planned.op;
            on.read(now, done_at);
            on.join_batch();
            if msr.log.is_some() {
                msr.log_started(chip, planned.plane, now, (base, done_at));
            }
            done_at
        });
        self.in_rounds(&mut writes, units, &mut base, |msr, planned, base, rank| {
            let loaded_at = base + msr.times.transfer * rank;
            let mut on = msr.serving(chip);
            on.service.next.done.op = planned.op;
            let done_at = on.write(planned.plane, now, loaded_at);
            on.join_batch();
            if msr.log.is_some() {
                msr.log_started(chip, planned.plane, now, (base, done_at));
            }
            done_at
        });
        self.reads = reads;
        self.writes = writes;
        // The last entry must be the first to end. The sort is stable, so operations with equal ends complete in the
        // order of their dispatch.
        let s = &mut self.service[chip];
        s.rest.sort_by_key(|r| r.done_at);
        s.rest.reverse();
        if let Some(next) = s.rest.pop() {
            events.set(self.first_resource + chip, next.done_at);
            (s.serves, s.next) = (true, next);
        }
    }

    /// Executes the operations `planned` in rounds over the units, and removes them from the list. `base` is the start
    /// of the first round, and is set to the end of the last one.
    fn in_rounds(
        &mut self,
        planned: &mut Vec<Planned>,
        units: u32,
        base: &mut Time,
        serve: impl Fn(&mut Msr, Planned, Time, u64) -> Time,
    ) {
        let per_unit = self.planes / units;
        while !planned.is_empty() {
            let mut rank = 0;
            let mut end = *base;
            for unit in 0..units {
                let Some(i) = planned.iter().position(|p| p.plane / per_unit == unit) else {
                    continue;
                };
                rank += 1;
                let head = planned.remove(i);
                end = end.max(serve(self, head, *base, rank));
            }
            *base = end;
        }
    }
}

impl Serving<'_> {
    /// Moves the first queued operation of the chip to `service.next`. Returns false if no operation is queued.
    #[inline(always)]
    pub fn take_next(&mut self) -> bool {
        let Some(op) = self.chip.queue.front() else {
            return false;
        };
        self.service.next.done.op = *op;
        self.chip.queue.pop_front();
        self.look_ahead();
        true
    }

    /// Prefetches data for the two operations that wait longest. An operation needs the map entry of its page, and then
    /// the block with the old copy. Both loads were already started when the page was chosen for eviction, but in a
    /// long queue the processor's cache has dropped the data since.
    #[inline(always)]
    fn look_ahead(&mut self) {
        let queue = &self.chip.queue;
        if queue.len() >= LONG_QUEUE {
            self.ftl.prefetch_old_copy(queue[0].lpn);
            self.ftl.prefetch(queue[1].lpn);
        }
    }

    /// Starts a single operation; returns its end, and the plane of a write.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn serve(&mut self, now: Time) -> (Time, u32) {
        self.service.batch_since = now;
        self.service.serves = true;
        let op = &self.service.next.done.op;
        if op.is_read() {
            let done_at = now + self.times.transfer + self.times.read;
            self.read(now, done_at);
            return (done_at, 0);
        }
        let plane = self.plane_for_one(op.lpn, op.stream);
        let loaded_at = now + self.times.transfer;
        (self.write(plane, now, loaded_at), plane)
    }

    /// Adds the operation started last to the batch that is being assembled.
    fn join_batch(&mut self) {
        self.service.rest.push(self.service.next);
    }

    /// Starts a read, which ends at `done_at`.
    #[inline(always)]
    pub fn read(&mut self, now: Time, done_at: Time) {
        self.stats.add(self.service.next.done.op.cause, 1);
        let (transfer, array) = (self.times.transfer, self.times.read);
        self.start(now, done_at, (transfer, array), true);
    }

    /// Starts a write to a plane. `loaded_at` is the instant at which its data are in the chip's register. Returns the
    /// end of the write.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn write(&mut self, plane: u32, now: Time, loaded_at: Time) -> Time {
        let PageOp {
            lpn, cause, stream, ..
        } = self.service.next.done.op;
        let pool = self.pool(plane);
        let Ok(stream) = self.ftl.make_room(pool, stream) else {
            self.stats.writes_failed += 1;
            self.start(now, now, (Time::ZERO, Time::ZERO), false);
            return now;
        };
        self.ftl.load_foreseen();
        let sealed = self.ftl.append(pool, stream, lpn);
        self.stats.add(cause, 1);
        let (mut transfer, mut array) = (self.times.transfer, self.times.program);
        if sealed {
            if let Some(summary) = *self.summary_transfer {
                self.stats.add(Cause::Summary, 1);
                transfer += summary;
                array += self.times.program;
            }
        }
        let done_at = loaded_at + (transfer - self.times.transfer) + array;
        self.start(now, done_at, (transfer, array), true);
        done_at
    }

    #[inline(always)]
    fn start(&mut self, now: Time, done_at: Time, (transfer, array): (Time, Time), written: bool) {
        let s = &mut *self.service;
        let done = &mut s.next.done;
        done.queue_gc = self.chip.gc_time(now) - done.op.gc_before;
        (done.transfer, done.array, done.written) = (transfer, array, written);
        s.next.done_at = done_at;
    }

    // ---- placement of a write ----

    #[inline(always)]
    fn pools_are_planes(&self) -> bool {
        self.params.copy_back
    }

    #[inline(always)]
    pub fn pool(&self, plane: u32) -> u32 {
        if self.pools_are_planes() {
            self.at * *self.planes + plane
        } else {
            self.at
        }
    }

    /// Returns the plane, numbered within its chip, that has the copy of a page. 0 if the page has no copy.
    pub fn plane_of_copy(&self, lpn: Lpn) -> u32 {
        match self.ftl.lookup(lpn) {
            Some(ppn) => self.ftl.plane_of(self.ftl.block_of(ppn)) % *self.planes,
            None => 0,
        }
    }

    /// Returns the plane for a single write; always 0 if a pool is a whole chip.
    #[inline(always)]
    pub fn plane_for_one(&mut self, lpn: Lpn, stream: Stream) -> u32 {
        match self.pools_are_planes() {
            true => self.pick_plane(lpn, stream, &[]),
            false => 0,
        }
    }

    /// Chooses the plane for a write. `assigned` has the writes of this batch that already have a plane.
    ///
    /// If pages must stay in their plane, a page with a copy goes to the plane of this copy. Otherwise the write goes
    /// to the plane with the most room for its stream, among the eligible ones. A plane is eligible if its open block
    /// is younger than the old copy or contains it. Of planes with equal room, the first one from the chip's cursor on
    /// is chosen.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick_plane(&mut self, lpn: Lpn, stream: Stream, assigned: &[Planned]) -> u32 {
        let old = self.ftl.lookup(lpn);
        let of_old = self.params.allocation_pool == AllocationPool::Plane;
        let plane = match old {
            Some(_) if of_old => self.plane_of_copy(lpn),
            _ => {
                let old_block = old.map_or(u32::MAX, |ppn| self.ftl.block_of(ppn));
                let old_seq = old.map_or(0, |_| self.ftl.seq_of(old_block));
                let start = self.service.next_plane;
                let simple = self.ftl.streams() == 1 && *self.planes <= 64;
                let younger = self.ftl.oldest_open(self.at) > old_seq;
                if assigned.is_empty() && simple && younger {
                    self.ftl.roomiest_of_chip(self.at, start)
                } else {
                    let old = (old_block, old_seq);
                    roomiest_eligible(
                        self.ftl,
                        (self.at, *self.planes),
                        start,
                        old,
                        stream,
                        assigned,
                    )
                }
            }
        };
        self.service.next_plane = if plane + 1 == *self.planes {
            0
        } else {
            plane + 1
        };
        plane
    }
}

/// Returns the eligible plane of a chip with the most room. A plane is eligible if its open block is younger than the
/// block with the old copy, or is this block.
#[inline(never)]
fn roomiest_eligible(
    ftl: &PageMap,
    (chip, planes): (u32, u32),
    start: u32,
    (old_block, old_seq): (u32, u32),
    stream: Stream,
    assigned: &[Planned],
) -> u32 {
    let pools = ftl.pools_of_chip(chip);
    let first = chip * planes;
    let all_younger = ftl.oldest_open(chip) > old_seq;
    let mut best = (i32::MIN, start);
    for plane in (start..planes).chain(0..start) {
        let pool = &pools[plane as usize];
        if all_younger || pool.active_seq > old_seq || pool.active == old_block {
            let ahead = assigned.iter().filter(|w| w.plane == plane).count();
            let room = ftl.room_for(first + plane, stream) - ahead as i32;
            if room > best.0 {
                best = (room, plane);
            }
        }
    }
    debug_assert!(
        best.0 > i32::MIN,
        "the old copy's own plane is always eligible"
    );
    best.1
}
