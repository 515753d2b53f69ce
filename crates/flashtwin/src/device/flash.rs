//! Flash operations for requests and cached pages. They are passed to the back end, and their completions are
//! processed.

use super::*;

impl<B: Backend> Device<B> {
    /// Queues a read, or a write of a page that can be written to one unit only.
    #[inline(always)]
    pub(super) fn queue_flash(&mut self, chip: u32, lpn: Lpn, cause: Cause, owner: Owner) {
        let request = self.request_of(owner);
        self.queue_for(request, chip, lpn, cause, owner, (Stream::Cold, false));
    }

    /// Queues a write to flash. `owner` is the cached page or the host request that it belongs to.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn queue_program(
        &mut self,
        lpn: Lpn,
        cause: Cause,
        owner: Owner,
        stream: Stream,
        fua: bool,
    ) {
        let request = self.request_of(owner);
        self.queue_program_for(request, lpn, cause, owner, (stream, fua));
    }

    /// Queues a write to flash. `request` is the number of the host request that causes it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn queue_program_for(
        &mut self,
        request: u32,
        lpn: Lpn,
        cause: Cause,
        owner: Owner,
        (stream, fua): (Stream, bool),
    ) {
        let asked = match B::PLAIN {
            true => Asked::default(),
            false => self.asked_of(owner),
        };
        let op = self.operation(request, lpn, cause, owner, (stream, fua));
        self.backend
            .enqueue_write(op, asked, self.now, &mut self.events);
    }

    /// Returns the placement that the host requested for a page of the buffer, or for a request.
    #[inline(always)]
    fn asked_of(&self, owner: Owner) -> Asked {
        match owner.is_cached_page() {
            true => self.cache.asked(owner.number()),
            false => self.requests[ReqId(owner.number())].asked(),
        }
    }

    /// Returns the number of the host request that causes an operation of this owner (a cached page or a host request).
    #[inline(always)]
    fn request_of(&self, owner: Owner) -> u32 {
        match owner.is_cached_page() {
            true => self.cache.on_behalf(owner.number()),
            false => self.requests[ReqId(owner.number())].number_in_logs,
        }
    }

    /// Queues a flash operation on a chip. `request` is the number of the host request that causes it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn queue_for(
        &mut self,
        request: u32,
        chip: u32,
        lpn: Lpn,
        cause: Cause,
        owner: Owner,
        (stream, fua): (Stream, bool),
    ) {
        let op = self.operation(request, lpn, cause, owner, (stream, fua));
        self.backend
            .enqueue(chip as usize, op, self.now, &mut self.events);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn operation(
        &mut self,
        request: u32,
        lpn: Lpn,
        cause: Cause,
        owner: Owner,
        (stream, fua): (Stream, bool),
    ) -> PageOp {
        let op = PageOp {
            lpn,
            owner,
            cause,
            request,
            stream,
            fua,
            again: 0,
            enqueued: self.now,
            gc_before: Time::ZERO,
        };
        if !B::PLAIN {
            self.programs.queued(&op);
        }
        op
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn flash_done(&mut self, done: &Done) {
        if !done.written && !self.broken {
            self.read_only = true;
        }
        if done.op.owner.is_cached_page() {
            if !B::PLAIN {
                self.programs.done(done);
            }
            return self.cached_flash_done(done);
        }
        self.direct_flash_done(done);
    }

    /// Processes the end of a flash operation that serves a host request directly, not a page of the buffer.
    #[inline(never)]
    fn direct_flash_done(&mut self, done: &Done) {
        debug_assert_eq!(done.op.owner.receiver(), Receiver::HostRequest);
        let id = ReqId(done.op.owner.number());
        if !self.requests[id].flushing {
            self.programs.done(done);
        }
        if done.op.cause == Cause::PartialRead {
            return self.partial_read_done(id, done);
        }
        if !done.written {
            self.requests[id].status = Status::ReadOnly;
        }
        if done.failed {
            self.requests[id].status = Status::Failed;
        }
        let mut parts = flash_parts(done, self.now);
        if self.requests[id].flushing {
            self.requests[id].write_parts_out();
            parts.add(&self.requests[id].parts);
        } else if done.op.cause == Cause::HostRead {
            // The read bypassed the buffer. Any time before its flash operation was queued is a wait for a slot, behind
            // accesses that were waiting for an evictable page.
            parts.slot_order += done.op.enqueued - self.requests[id].dispatched;
        }
        if self.writes.in_turn() && done.op.cause == Cause::HostWrite {
            self.end_turn(id, done.op.lpn, &mut parts);
        }
        self.page_done(id, parts);
    }
}

/// Times of a finished flash operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpTimes {
    pub enqueued: Time,
    queue_gc: Time,
    transfer: Time,
    array: Time,
    is_read: bool,
}

impl OpTimes {
    #[inline(always)]
    pub fn of(done: &Done, is_read: bool) -> OpTimes {
        OpTimes {
            enqueued: done.op.enqueued,
            queue_gc: done.queue_gc,
            transfer: done.transfer,
            array: done.array,
            is_read,
        }
    }

    /// Returns the latency breakdown of the operation, from its queueing to its end at `now`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn parts(&self, now: Time) -> Breakdown {
        let waited = now - self.enqueued - self.transfer - self.array;
        let queue_gc = self.queue_gc.min(waited);
        Breakdown {
            queue_gc,
            queue_host: waited - queue_gc,
            transfer: self.transfer,
            array: self.array,
            ..Breakdown::default()
        }
    }

    /// Returns the latency breakdown of the last part of the operation: the time span of length `time` that ends at
    /// `now`, when the operation ends. If the operation took less time, returns the breakdown of the whole operation.
    #[inline(always)]
    pub fn parts_within(&self, time: Time, now: Time) -> Breakdown {
        match now - self.enqueued <= time {
            true => self.parts(now),
            false => self.last_parts(time, now),
        }
    }

    #[inline(never)]
    fn last_parts(&self, time: Time, now: Time) -> Breakdown {
        let mut parts = self.parts(now);
        let mut over = now - self.enqueued - time;
        let of_chip = match self.is_read {
            true => [&mut parts.array, &mut parts.transfer],
            false => [&mut parts.transfer, &mut parts.array],
        };
        let in_order = [&mut parts.queue_gc, &mut parts.queue_host];
        for part in in_order.into_iter().chain(of_chip) {
            let cut = over.min(*part);
            *part -= cut;
            over -= cut;
        }
        parts
    }
}

/// Returns the latency breakdown of a finished flash operation, from its queueing until `now`.
#[inline]
pub(super) fn flash_parts(done: &Done, now: Time) -> Breakdown {
    OpTimes::of(done, done.op.is_read()).parts(now)
}
