//! The path of a request from its dispatch, when the controller begins to access buffer and flash for it, to its
//! completion.

use super::*;

impl<B: Backend> Device<B> {
    /// Dispatches a request: accesses its pages in buffer and flash, in ascending order. Each page then waits
    /// independently of the others (D-35).
    #[inline(never)]
    pub(super) fn dispatch(&mut self, id: ReqId) {
        self.dispatch_now(id, self.requests[id].op);
    }

    /// Dispatches a request; inlined for the most frequent caller.
    #[inline(always)]
    pub(super) fn dispatch_now(&mut self, id: ReqId, op: Op) {
        let r = &mut self.requests[id];
        r.dispatched = self.now;
        let (first, pages) = (r.first_page, r.pages);
        let is_access = matches!(op, Op::Read | Op::Write) && pages > 0;
        if is_access && (B::PLAIN || self.cache.present) && !self.refuses(op) {
            return self.dispatch_to_cache(id, op == Op::Write, first, pages);
        }
        self.dispatch_past_cache(id);
    }

    /// Dispatches a request that does not access the buffer: a flush, a trim, a refused request, or any request to a
    /// device without a buffer.
    #[inline(never)]
    fn dispatch_past_cache(&mut self, id: ReqId) {
        let r = &mut self.requests[id];
        // If no page sets the latency parts of the request, they must be zero. They are therefore set to zero here.
        (r.parts, r.parts_set) = (Breakdown::default(), PartsSet::All);
        let (op, first, pages) = (r.op, r.first_page, r.pages);
        if self.broken {
            r.status = Status::Failed;
            return self.pages_done(id);
        }
        if self.read_only && matches!(op, Op::Write | Op::Trim) {
            r.status = Status::ReadOnly;
            return self.pages_done(id);
        }
        if pages == 0 && op != Op::Flush {
            return self.pages_done(id);
        }
        match op {
            Op::Flush => self.flush(id),
            Op::Trim => {
                for page in first..first + pages {
                    self.trim(Lpn(page));
                }
                self.pages_done(id);
            }
            Op::Read => {
                for page in first..first + pages {
                    self.direct_read(id, Lpn(page));
                }
            }
            Op::Write => {
                if self.writes.in_turn() {
                    return self.write_in_turn(id);
                }
                for page in first..first + pages {
                    self.direct_write(id, Lpn(page));
                }
            }
        }
    }

    /// Whether requests of this kind are refused because the device is read-only or broken.
    #[inline]
    fn refuses(&self, op: Op) -> bool {
        self.broken || self.read_only && matches!(op, Op::Write | Op::Trim)
    }

    /// Dispatches a read or write to the buffer.
    #[inline(always)]
    fn dispatch_to_cache(&mut self, id: ReqId, write: bool, first: u32, pages: u32) {
        if write && self.requests[id].fua {
            self.report_loss(id);
        }
        if pages > 1 {
            return self.dispatch_pages(id, write, first, pages);
        }
        let spans = self.requests[id].spans(&self.address);
        self.cached_page(id, Lpn(first), write, spans.of(0, 1));
    }

    /// Accesses the pages of a request of several pages.
    #[inline(never)]
    fn dispatch_pages(&mut self, id: ReqId, write: bool, first: u32, pages: u32) {
        let spans = self.requests[id].spans(&self.address);
        for i in 0..pages {
            self.one_cached_page(id, Lpn(first + i), write, spans.of(i, pages));
        }
    }

    pub(super) fn direct_read(&mut self, id: ReqId, lpn: Lpn) {
        match self.backend.unit_of_copy(lpn) {
            Some(chip) => self.queue_flash(chip, lpn, Cause::HostRead, Owner::host_request(id.0)),
            // The page was never written or is trimmed, so no flash read is needed.
            None => {
                self.page_done_in_slot(id);
            }
        }
    }

    pub(super) fn direct_write(&mut self, id: ReqId, lpn: Lpn) {
        let (owner, fua) = (Owner::host_request(id.0), self.requests[id].fua);
        self.queue_program(lpn, Cause::HostWrite, owner, Stream::Cold, fua);
    }

    /// Completes one page of a request. `parts` is its latency breakdown, whose sum is the time since the dispatch.
    #[inline(always)]
    pub(super) fn page_done(&mut self, id: ReqId, parts: Breakdown) {
        let r = &mut self.requests[id];
        debug_assert_eq!(
            parts.total(),
            self.now - r.dispatched,
            "a page's time does not add up"
        );
        (r.parts, r.parts_set) = (parts, PartsSet::All);
        self.one_less(id);
    }

    /// Completes a page whose time since the dispatch was only a wait for a slot, or was zero.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn page_done_in_slot(&mut self, id: ReqId) {
        let now = self.now;
        let r = &mut self.requests[id];
        let wait = now - r.dispatched;
        r.parts_set = match wait {
            _ if !B::PLAIN && r.controller > Time::ZERO => {
                r.parts = Breakdown::default();
                PartsSet::All
            }
            Time::ZERO => PartsSet::None,
            _ => PartsSet::Slot,
        };
        if wait > Time::ZERO {
            self.cache.set_slot_wait(wait, now, &mut r.parts);
        }
        self.one_less(id);
    }

    #[inline(always)]
    fn one_less(&mut self, id: ReqId) {
        let r = &mut self.requests[id];
        debug_assert!(r.left > 0, "a page completed twice");
        r.left -= 1;
        if r.left == 0 {
            self.pages_done(id);
        }
    }

    /// Continues a request whose pages are all done. The remaining steps are the access time of the buffer and the
    /// transfer on the link.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn pages_done(&mut self, id: ReqId) {
        if self.requests[id].op == Op::Flush && self.flush_behind(id) {
            return;
        }
        if B::PLAIN || self.latencies.are_none {
            self.requests[id].pages_done = self.now;
            return self.leave(id);
        }
        let search = self.search_left(id);
        let r = &mut self.requests[id];
        r.pages_done = self.now;
        let buffer = match r.op {
            Op::Flush => Time::ZERO,
            Op::Write => self.latencies.write,
            Op::Read if !r.past_read_cache => self.latencies.read_cache,
            Op::Read | Op::Trim => self.latencies.read,
        };
        if buffer + search == Time::ZERO {
            return self.leave(id);
        }
        self.leave_after(id, search, buffer);
    }

    /// Lets the request return over the link after two delays: `search`, for which the processor still searches for
    /// victims, and `buffer`, the access time of the buffer.
    fn leave_after(&mut self, id: ReqId, search: Time, buffer: Time) {
        let r = &mut self.requests[id];
        r.write_parts_out();
        r.parts.controller += search;
        r.parts.buffer += buffer;
        let at = self.now + search + buffer;
        let place = self.in_buffer.partition_point(|&(other, _)| other <= at);
        self.in_buffer.insert(place, (at, id));
        if place == 0 {
            let order = self.events.take_order();
            self.link.pending.set(link::BUFFER, at, order);
        }
    }

    #[inline(never)]
    pub(super) fn buffer_done(&mut self) {
        let (_, id) = self
            .in_buffer
            .pop_front()
            .expect("the buffer's event has a request");
        let next = self.in_buffer.front().map_or(Time::NEVER, |&(at, _)| at);
        let order = self.events.take_order();
        self.link.pending.set(link::BUFFER, next, order);
        self.requests[id].pages_done = self.now;
        self.leave(id);
    }

    /// Completes the request and records its metrics.
    #[inline(never)]
    pub(super) fn complete(&mut self, id: ReqId) {
        let (now, work) = (self.now, self.controller.work::<B>());
        let r = self.requests.remove(id);
        debug_assert_eq!(
            r.finished(now, work).parts.breakdown().total(),
            now - r.arrival,
            "the parts are not the whole"
        );
        let queue = r.queue;
        let is_usual = !self.broken && !self.collects_completions;
        // The rare cases are in another function, so that this function needs no stack frame.
        if !is_usual || !self.metrics.finished(&r.finished(now, work), B::PLAIN) {
            self.complete_unusually(id);
        }
        self.leave_queue(queue);
    }

    /// Completes a request in the rare cases, for example if the device is broken or completions are collected. The
    /// record of `id` has been freed already, but is still valid.
    #[inline(never)]
    fn complete_unusually(&mut self, id: ReqId) {
        let (now, work) = (self.now, self.controller.work::<B>());
        let r = &mut self.requests[id];
        if self.broken {
            r.status = Status::Failed;
        }
        let finished = r.finished(now, work);
        if !self.metrics.finished(&finished, false) {
            self.metrics.finished_unusually(&finished);
        }
        if self.collects_completions {
            self.completions.push(Completion {
                tag: r.tag,
                op: r.op,
                status: r.status,
                offset: r.offset,
                bytes: r.bytes,
                pages: r.pages,
                hits: r.hits,
                arrival: r.arrival,
                done: now,
                breakdown: finished.parts.breakdown(),
            });
        }
    }
}
