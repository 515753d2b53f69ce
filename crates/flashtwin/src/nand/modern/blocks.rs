//! The page map by blocks, in which each die is a pool of its own. This module also determines the next work of a die:
//! a host operation, or a step of the collection of a block.

use super::collect::{Run, FAR_AHEAD};
use super::lane::Step;
use super::superblock::Superblocks;
use super::*;

/// The page map of all dies, and the state of their collections.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    pub ftl: PageMap,
    pub orders: Orders,
    pub(super) victims: Victims,
    /// GC watermark for idle times: a die without waiting operations collects if at most this number of its blocks is
    /// free.
    pub(super) idle_blocks: u32,
    /// Unit of the GC watermark: free pages of a die (D-207) if true, otherwise free blocks.
    pub(super) in_pages: bool,
    /// Whether host writes may be executed between two moves of a collection (D-170).
    pub(super) preemptible: bool,
    /// Whether collections take no time.
    pub(super) ideal: bool,
    pub(super) collecting: TrustedTable<Option<Run>>,
    /// State of collections by superblocks, on a device that collects superblocks. `collecting` is then not used.
    pub(super) sets: Option<Box<Superblocks>>,
    /// Duration of a move if all moves take equally long, otherwise `None`. All moves take equally long only if each is
    /// one read and one program within the die.
    move_time: Option<Time>,
    /// Enables the fast path of moves: `move_time` if no log is kept, otherwise `None`.
    pub(super) plain_move: Option<Time>,
    pub(super) summary_transfer: Option<Time>,
}

impl Map for Blocks {
    #[inline(always)]
    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.ftl.lookup(lpn)
    }

    #[inline(always)]
    fn is_slc_at(&self, ppn: Ppn) -> bool {
        self.ftl.is_slc_at(ppn)
    }

    fn write_ahead(nand: &mut Modern, die: usize, at: usize, now: Time, events: &mut EventQueue) {
        let is_write = |op: &PageOp| !op.is_read();
        // A collection has precedence over the next write if it is due or running.
        if nand.map.collecting[die].is_some()
            || nand.in_run()
            || nand.must_hold(die)
            || nand.is_short(die)
            || !nand.chips[die].queue.front().is_some_and(is_write)
            || nand.waits_for_writes(die, now, events)
        {
            return;
        }
        if let Some(op) = nand.chips[die].queue.pop_front() {
            nand.start_writes(at, op, now, events);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn work_ended(nand: &mut Modern, die: usize, of_host: bool, now: Time) {
        if nand.map.sets.is_some() {
            if !of_host {
                nand.part_ended(die, now);
            }
            return;
        }
        if !of_host && nand.map.collecting[die].is_none() {
            nand.leave_gc(die, now);
        }
    }

    fn left_to_move(nand: &Modern, die: usize) -> Option<u32> {
        match nand.map.collecting[die] {
            Some(run) => Some(nand.map.ftl.valid_of(run.block)),
            None => nand.in_run().then(|| nand.moves_of_run(die)),
        }
    }
}

impl Modern {
    pub fn new(spec: &DeviceSpec, params: &ModernNand) -> Modern {
        let g = &spec.geometry;
        let mut ftl = PageMap::new(Shape::of(spec, false), spec.low_blocks_chip());
        let victims = Victims::of(&spec.gc.victim);
        gc::foresee(&mut ftl, victims, Tie::Lowest, FAR_AHEAD, false);
        let layout = Layout::new(spec, params);
        let are_alike = params.copy_back
            && params.slc_cache.is_none()
            && params.read_retry == Ppm(0)
            && ftl.moves_to_one_stream();
        let move_time = layout.move_one().filter(|_| are_alike);
        let map = Blocks {
            move_time,
            plain_move: move_time,
            orders: Orders::new(&ftl),
            ftl,
            victims,
            idle_blocks: spec.idle_blocks_chip(),
            in_pages: spec.gc.watermark == Watermark::Pages,
            preemptible: spec.gc.preemptible,
            ideal: spec.gc.ideal,
            // SAFETY: indexed by die, as `chips`.
            collecting: unsafe { TrustedTable::new(vec![None; g.chips as usize]) },
            sets: spec
                .gc
                .has_superblocks()
                .then(|| Box::new(Superblocks::new(g.chips))),
            summary_transfer: spec.ftl.summary_page.then(|| spec.summary_transfer()),
        };
        Modern::with_map(spec, params, map)
    }

    /// Takes over the GC settings of `spec`.
    pub fn set_gc(&mut self, spec: &DeviceSpec) {
        self.map.ftl.set_low(spec.low_blocks_chip());
        self.map.idle_blocks = spec.idle_blocks_chip();
        self.map.preemptible = spec.gc.preemptible;
    }

    /// Starts or stops keeping a log.
    pub fn set_log(&mut self, on: bool) {
        self.log = on.then(Vec::new);
        self.map.plain_move = self.map.move_time.filter(|_| !on);
    }

    /// Fast path for the end of a move: begins the next move of the collection, or its erase. The effect is that of
    /// [`Modern::on_event`] followed by [`Modern::activate`]. Changes nothing and returns false in three cases: the
    /// event is of another kind, a host operation has precedence, or a log is kept.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn continue_collection(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
    ) -> bool {
        let die = resource;
        if die >= self.chips.len() {
            return false;
        }
        let (lane, chip) = (&self.lanes[die], &self.chips[die]);
        if lane.step != Some(Step::Move) || lane.ends > now || !chip.reads.is_empty() {
            return false;
        }
        let Some(run) = &self.map.collecting[die] else {
            return false;
        };
        let may_yield = run.folds | self.map.preemptible | self.map.orders.yields;
        if let (false, Some(time)) = (may_yield, self.map.plain_move) {
            let since = lane.since;
            if let Some(time) = self.move_plainly(die, time) {
                self.chips[die].busy_total += now - since;
                self.start_next_move(die, time, now, events);
                return true;
            }
        }
        self.continue_any_collection(die, now, events)
    }

    /// Does the work of [`Modern::continue_collection`] in the less frequent cases, in which moves differ in duration
    /// or host operations may have precedence. Changes nothing and returns false if a host operation has precedence, or
    /// if a log is kept.
    #[inline(never)]
    fn continue_any_collection(&mut self, die: usize, now: Time, events: &mut EventQueue) -> bool {
        let continues = self.log.is_none() && !self.yields(die);
        if continues {
            self.chips[die].busy_total += now - self.lanes[die].since;
            self.start_gc_step(die, now, events);
        }
        continues
    }

    /// Disables the fast path of moves.
    #[cfg(test)]
    pub fn move_in_general(&mut self) {
        self.map.plain_move = None;
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn activate(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        if self.map.sets.is_some() {
            return self.activate_by_sets(die, now, events);
        }
        if self.is_taken(die, now, events) {
            return;
        }
        if let Some(op) = self.chips[die].reads.pop_front() {
            return self.start_reads(die, op, Time::ZERO, now, events);
        }
        if self.map.collecting[die].is_none() && self.may_collect(die) {
            self.begin_to_collect(die, now, events);
        }
        let collects = self.map.collecting[die].is_some();
        if collects && !self.yields(die) {
            return self.start_gc_step_again(die, now, events);
        }
        if !self.chips[die].queue.is_empty() {
            self.start_next(die, collects, now, events);
        }
    }

    /// Whether a call of [`Modern::begin_to_collect`] might begin a collection. If not, the caller can omit the call.
    #[inline(always)]
    fn may_collect(&self, die: usize) -> bool {
        match self.chips[die].queue.is_empty() {
            true => self.params.background_gc || self.map.ideal || self.map.orders.any(die),
            false => (self.map.orders).wants(die as u32, self.free_of(die), self.map.ftl.low()),
        }
    }

    /// Whether an operation that arrives now starts immediately. If so, [`Modern::start_at_once`] has the same effect
    /// as queueing the operation and calling [`Modern::activate`], but is faster.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn takes_at_once(&self, die: usize, op: &PageOp, overtakes: bool) -> bool {
        let chip = &self.chips[die];
        self.lanes[die].is_free()
            && self.map.sets.is_none()
            && !self.params.cached_commands
            && chip.reads.is_empty()
            && (overtakes
                || chip.queue.is_empty()
                    && (self.layout.unit == 1 || op.is_read())
                    && self.map.collecting[die].is_none()
                    && !(self.map.orders).wants(die as u32, self.free_of(die), self.map.ftl.low()))
    }

    /// Starts an operation for which [`Modern::takes_at_once`] returned true.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn start_at_once(
        &mut self,
        die: usize,
        mut op: PageOp,
        now: Time,
        events: &mut EventQueue,
    ) {
        self.chips[die].count_arrival(&mut op, now);
        match op.is_read() {
            true => self.start_reads(die, op, Time::ZERO, now, events),
            false => self.start_writes(die, op, now, events),
        }
    }

    /// Begins to collect a block if a watermark or an order requires this. Also begins to fold a block of the SLC cache
    /// if the die has been idle long enough.
    #[inline(never)]
    fn begin_to_collect(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        let waits = !self.chips[die].queue.is_empty();
        let low = match waits {
            true => self.map.ftl.low(),
            false => self.map.idle_blocks,
        };
        if self.map.ideal {
            while self.pick_victim(die, low, now) {
                self.collect_untimed(die);
            }
        }
        let background = self.params.background_gc;
        let may = waits || background || self.map.orders.any(die);
        if may && self.pick_victim(die, low, now)
            || !waits && background && self.fold_when_idle(die, now, events)
        {
            self.chips[die].enter_gc(now);
            self.chips_in_gc.set(ChipId(die as u16), true);
            self.log_gc(die, true, now);
            self.stats.gc_actions += 1;
        }
    }

    /// Starts the first operation in the queue of a free die. The operation may be a write that waits for others to
    /// fill its row (the pages of one program). In this case starts the next step of the die's collection instead, if
    /// there is one.
    #[inline(never)]
    fn start_next(&mut self, die: usize, collects: bool, now: Time, events: &mut EventQueue) {
        if self.waits_for_writes(die, now, events) {
            if collects {
                self.start_gc_step_again(die, now, events);
            }
            return;
        }
        if let Some(op) = self.chips[die].queue.pop_front() {
            if op.is_read() {
                self.start_reads(die, op, Time::ZERO, now, events);
            } else {
                self.start_writes(die, op, now, events);
            }
        }
    }

    /// Whether the die's collection lets a waiting operation pass. Above the watermark, it does if it is preemptible,
    /// if an order permits this, or if it folds the SLC cache. At the watermark, it does if it is preemptible and keeps
    /// pace with the host.
    #[inline(always)]
    fn yields(&self, die: usize) -> bool {
        let folds = || self.map.collecting[die].is_some_and(|run| run.folds);
        !self.chips[die].queue.is_empty()
            && (self.map.preemptible || self.map.orders.yields || folds())
            && (!self.map.ftl.is_needy(die as u32) || self.map.preemptible && self.keeps_pace(die))
    }

    /// Logs that a die begins a step of a collection, as `log_step` does. Here, however, `block` is numbered over all
    /// dies.
    #[cold]
    pub(super) fn log_part(
        &mut self,
        die: usize,
        part: (Cause, u32),
        block: Option<u32>,
        now: Time,
    ) {
        let each = self.map.ftl.shape.blocks_per_pool;
        self.log_step(die, part, block.map(|block| block % each), now);
    }
}
