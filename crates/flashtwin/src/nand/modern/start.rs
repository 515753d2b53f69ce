//! Starts operations. Determines which pages share a read or a program, and how long the steps take.

use super::*;

impl<M: Map> Modern<M> {
    /// Starts the first step of a free lane.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn start(&mut self, at: usize, now: Time, events: &mut EventQueue) {
        let lane = &mut self.lanes[at];
        lane.since = now;
        lane.passed = 0;
        if lane.steps.first() == Some(&Step::Deliver) {
            // The first step is a completion, because the write failed. It completes immediately, but as an event of
            // its own.
            lane.steps.push_front(Step::Array(Time::ZERO));
        }
        let mut done = None;
        self.proceed(at, now, events, &mut done);
        debug_assert!(done.is_none(), "no operation ends before it began");
    }

    /// Starts array work that serves no host operation, such as an erase, in a free lane.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn start_pulse(
        &mut self,
        at: usize,
        time: Time,
        now: Time,
        events: &mut EventQueue,
    ) {
        let lane = &mut self.lanes[at];
        lane.since = now;
        lane.passed = 0;
        lane.step = Some(Step::Pulse(time));
        lane.ends = now + time;
        set(lane, self.first_resource + at, events);
    }

    /// Starts a move of a collection in a free die, by copy-back.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn start_move(
        &mut self,
        die: usize,
        time: Time,
        now: Time,
        events: &mut EventQueue,
    ) {
        let lane = &mut self.lanes[die];
        lane.step = Some(Step::Move);
        lane.pending = true;
        self.start_next_move(die, time, now, events);
    }

    /// Starts a move of a collection directly after another one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn start_next_move(
        &mut self,
        die: usize,
        time: Time,
        now: Time,
        events: &mut EventQueue,
    ) {
        let lane = &mut self.lanes[die];
        lane.since = now;
        lane.passed = 0;
        lane.ends = now + time;
        events.set(self.first_resource + die, lane.ends);
    }

    /// Starts steps that move pages: an array read, the transfers of `pages` pages, and a program. The read or the
    /// program may be missing.
    pub(super) fn start_moves(
        &mut self,
        die: usize,
        read: Option<Step>,
        pages: u32,
        program: Option<Step>,
        now: Time,
        events: &mut EventQueue,
    ) {
        let transfer = self.times.transfer;
        let steps = &mut self.lanes[die].steps;
        steps.extend(read);
        steps.extend((0..pages).map(|_| Step::Transfer(transfer)));
        steps.extend(program);
        self.start(die, now, events);
    }

    /// Returns the time to read a flash page, including repetitions because of errors.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn sense(&mut self, ppn: Ppn) -> Time {
        let once = match &self.params.slc_cache {
            Some(cache) if self.map.is_slc_at(ppn) => cache.read,
            _ => self.layout.read(ppn),
        };
        let mut times = 1;
        let ppm = u64::from(self.params.read_retry.0);
        while ppm > 0 && times <= RETRIES_MAX && self.retries.below(1_000_000) < ppm {
            times += 1;
        }
        once * times
    }

    /// Returns the time to program the row that contains page `page` of the open block of a stream.
    #[inline(always)]
    pub(super) fn program(&self, stream: Stream, page: u32) -> Time {
        match &self.params.slc_cache {
            Some(cache) if stream == Stream::Hot => cache.program,
            _ => self.layout.program(page),
        }
    }

    /// Starts a read, together with the waiting reads that can join it.
    #[inline(never)]
    pub(super) fn start_reads(
        &mut self,
        at: usize,
        first: PageOp,
        delay: Time,
        now: Time,
        events: &mut EventQueue,
    ) {
        self.stats.add(first.cause, 1);
        self.begin_op(at, first, now);
        let array = match self.map.lookup(first.lpn) {
            None => self.times.read,
            Some(ppn) => {
                let array = self.sense(ppn);
                match self.layout.unit {
                    1 => array,
                    _ => self.join_reads(at, ppn, array, now),
                }
            }
        };
        let transfer = self.times.transfer;
        let lane = &mut self.lanes[at];
        lane.steps.push_back(Step::Array(delay + array));
        for done in lane.ops.iter_mut() {
            (done.transfer, done.array) = (transfer, array);
            lane.steps.extend([Step::Transfer(transfer), Step::Deliver]);
        }
        if self.log.is_some() {
            self.log_ops(at, now);
        }
        self.start(at, now, events);
    }

    /// Adds those waiting reads to a lane that can share a command with its first read. `first` is the flash page of
    /// this read, and `array` is its array time. Returns the array time of all reads of the lane together.
    fn join_reads(&mut self, at: usize, first: Ppn, array: Time, now: Time) -> Time {
        let die = self.die_of(at);
        let mut sensing = self.layout.sensing();
        sensing.add(&self.layout, first, array);
        let mut i = 0;
        while i < READS_LOOKED_AT {
            let chip = &mut self.chips[die];
            let queue = match self.params.read_priority {
                true => &mut chip.reads,
                false => &mut chip.queue,
            };
            let Some(op) = queue.get(i).copied().filter(PageOp::is_read) else {
                break;
            };
            let with = self.map.lookup(op.lpn);
            let Some(ppn) = with.filter(|&ppn| sensing.may_join(&self.layout, ppn)) else {
                i += 1;
                continue;
            };
            queue.remove(i);
            if !sensing.has(&self.layout, ppn) {
                let time = self.sense(ppn);
                sensing.add(&self.layout, ppn, time);
            }
            self.stats.add(op.cause, 1);
            self.begin_op(at, op, now);
        }
        sensing.total()
    }

    /// Sets a timer that activates the die at `until`. The die then no longer waits for writes that would fill a row
    /// (the pages of one program).
    pub(super) fn look_again(&mut self, die: usize, until: Time, events: &mut EventQueue) {
        if !std::mem::replace(&mut self.timed[die], true) {
            events.set(self.first_resource + self.lanes.len() + die, until);
        }
    }

    /// Puts an operation into a lane. The caller sets its transfer and array times later.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn begin_op(&mut self, at: usize, op: PageOp, now: Time) {
        let queue_gc = self.chips[self.die_of(at)].gc_time(now) - op.gc_before;
        self.lanes[at].ops.push_back(Done {
            op,
            queue_gc,
            transfer: Time::ZERO,
            array: Time::ZERO,
            written: true,
            failed: false,
        });
    }
}
