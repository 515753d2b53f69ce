//! Programs of writes on a device with a page map by blocks. A page gets its place when the die takes the write from
//! its queue.

use super::*;

impl Modern {
    /// Starts the program of a write, together with the next writes of the queue that fit into its row (the pages that
    /// one program writes).
    #[inline(never)]
    pub(super) fn start_writes(
        &mut self,
        at: usize,
        first: PageOp,
        now: Time,
        events: &mut EventQueue,
    ) {
        let die = self.die_of(at);
        let pool = die as u32;
        let room = match self.is_blocked(die) {
            true => Err(PoolFull),
            false => self.map.ftl.make_room(pool, first.stream),
        };
        let Ok(stream) = room else {
            self.block_opened();
            self.stats.writes_failed += 1;
            self.begin_op(at, first, now);
            self.lanes[at].ops[0].written = false;
            self.lanes[at].steps.push_back(Step::Deliver);
            return self.start(at, now, events);
        };
        let page = self.map.ftl.next_page(pool, stream);
        if page == 0 {
            self.block_opened();
        }
        if self.layout.unit == 1 && self.log.is_none() {
            return self.start_write(at, &first, stream, page, now, events);
        }
        let left = self.layout.left_in_row(page);
        let mut array = self.program(stream, page);
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(op) = next {
            let sealed = self.map.ftl.append(pool, stream, op.lpn);
            self.count_passed(die);
            self.stats.add_program(&op);
            let mut transfer = self.times.transfer;
            if let (true, Some(summary)) = (sealed, self.map.summary_transfer) {
                self.stats.add(Cause::Summary, 1);
                transfer += summary;
                array += self.times.program;
            }
            self.begin_op(at, op, now);
            let lane = &mut self.lanes[at];
            if let Some(done) = lane.ops.last_mut() {
                done.transfer = transfer;
            }
            lane.steps.push_back(Step::Transfer(transfer));
            taken += 1;
            let queue = &mut self.chips[die].queue;
            let goes_along = |op: &&PageOp| !op.is_read() && op.stream == first.stream;
            next = match taken < left && !sealed && queue.front().filter(goes_along).is_some() {
                true => queue.pop_front(),
                false => None,
            };
        }
        let lane = &mut self.lanes[at];
        lane.steps.push_back(Step::Pulse(array));
        for done in lane.ops.iter_mut() {
            done.array = array;
            lane.steps.push_back(Step::Deliver);
        }
        if self.log.is_some() {
            self.log_ops(at, now);
        }
        self.start(at, now, events);
    }

    /// Starts the program of a single write, for which there is room. Used if a program takes one page and no log is
    /// kept.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn start_write(
        &mut self,
        at: usize,
        op: &PageOp,
        stream: Stream,
        page: u32,
        now: Time,
        events: &mut EventQueue,
    ) {
        let die = self.die_of(at);
        let mut array = self.program(stream, page);
        let mut transfer = self.times.transfer;
        let sealed = self.map.ftl.append(die as u32, stream, op.lpn);
        self.count_passed(die);
        self.stats.add_program(op);
        if let (true, Some(summary)) = (sealed, self.map.summary_transfer) {
            self.stats.add(Cause::Summary, 1);
            transfer += summary;
            array += self.times.program;
        }
        let queue_gc = self.chips[die].gc_time(now) - op.gc_before;
        let lane = &mut self.lanes[at];
        lane.ops.push_back(Done {
            op: *op,
            queue_gc,
            transfer,
            array,
            written: true,
            failed: false,
        });
        lane.steps.push_back(Step::Pulse(array));
        lane.steps.push_back(Step::Deliver);
        lane.since = now;
        lane.passed = 0;
        lane.step = Some(Step::Transfer(transfer));
        self.cross_channel(at, die, transfer, now, events);
    }

    /// Whether the first write of the queue waits for further writes that would fill its row (the pages of one
    /// program). It waits only if all operations in the queue are write-backs. If not, the host waits for one of the
    /// operations.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn waits_for_writes(
        &mut self,
        die: usize,
        now: Time,
        events: &mut EventQueue,
    ) -> bool {
        if self.layout.unit == 1 {
            return false;
        }
        let queue = &self.chips[die].queue;
        let Some(first) = queue.front().filter(|op| !op.is_read()) else {
            return false;
        };
        let until = first.enqueued + self.params.program_wait;
        let stream = self.map.ftl.stream_for(die as u32, first.stream);
        let room = self
            .layout
            .left_in_row(self.map.ftl.next_page(die as u32, stream));
        let patient = |op: &PageOp| matches!(op.cause, Cause::Destage | Cause::WriteBack);
        if until <= now || queue.len() >= room as usize || !queue.iter().all(patient) {
            return false;
        }
        self.look_again(die, until, events);
        true
    }
}
