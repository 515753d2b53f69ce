//! Collection of a superblock, which consists of one block of every die (D-98).
//!
//! All dies take part in a collection, called a *run*. Each die reads the live pages of its own block, row by row, and
//! transfers them over its channel to the controller. From there the pages are distributed over the dies in turn, and
//! are programmed to the blocks that the host is writing. When all pages are programmed, each die erases its block, and
//! the run ends. A page gets its new place when its read begins, since all changes of the map are made at dispatch.
//!
//! During a run, host reads are executed between two steps. Host writes wait. With `gc.preemptible`, host writes are
//! executed if the die has room.
//!
//! A die with a longer queue than others falls behind with its writes. To limit the number of open superblocks, the
//! other dies wait for it. A host write may open the next block of a die only after all other dies have opened their
//! block of the superblock that this die has filled.

use super::lane::Step;
use super::*;

/// Index into `turns` for pages of the host.
const HOST: usize = 0;
/// Index into `turns` for pages moved by collections.
const MOVES: usize = 1;

/// Current activity of a die in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Nothing,
    Reading,
    /// Programming this many pages.
    Programming(u32),
    Erasing,
}

/// The state of one die.
#[derive(Clone, Debug)]
struct Part {
    /// The die's block in the superblock under collection; `None` after its erase has begun.
    block: Option<u32>,
    /// Page of the block at which the search for the next live page starts.
    page: u32,
    /// Whether the reads of all live pages of the block have begun.
    read: bool,
    doing: Doing,
    /// Pages that are being read. Each entry has the die to which the page moves, and its new page number in the open
    /// block of that die.
    taken: Vec<(u32, u32)>,
    /// Pages of the die's open block to which moved pages must be programmed. Their data are in the controller.
    arrived: Vec<u32>,
}

/// A superblock being collected.
#[derive(Clone, Copy, Debug)]
struct Run {
    set: u32,
    /// Number of dies that still have pages to read.
    reading: u32,
    /// Number of pages being moved: their reads have begun, and their programs have not ended.
    moving: u32,
    /// Number of blocks not erased.
    blocks: u32,
}

/// Superblocks of a device.
#[derive(Clone, Debug)]
pub(super) struct Superblocks {
    run: Option<Run>,
    /// Positions of two round robins over the dies: for host pages and for moved pages. They are separate, so that the
    /// moved pages of a run are distributed evenly even if the host writes during the run.
    turns: [u32; 2],
    parts: Vec<Part>,
    /// Dies that must check again for work.
    woken: Vec<u32>,
}

impl Superblocks {
    pub fn new(dies: u32) -> Superblocks {
        let part = Part {
            block: None,
            page: 0,
            read: true,
            doing: Doing::Nothing,
            taken: Vec::new(),
            arrived: Vec::new(),
        };
        Superblocks {
            run: None,
            turns: [0; 2],
            parts: vec![part; dies as usize],
            woken: Vec::new(),
        }
    }

    /// Returns the die for the next page. Each die in turn receives the pages of one program.
    fn next_die(&mut self, whose: usize, unit: u32) -> u32 {
        let turn = &mut self.turns[whose];
        let die = *turn / unit;
        *turn += 1;
        if *turn == unit * self.parts.len() as u32 {
            *turn = 0;
        }
        die
    }

    fn wake_all(&mut self) {
        self.woken.clear();
        self.woken.extend((0..self.parts.len() as u32).rev());
    }
}

impl Modern {
    /// Returns the die for the next host page; `None` if the device does not write by superblocks.
    pub fn next_die(&mut self) -> Option<u32> {
        let unit = self.layout.unit;
        self.map.sets.as_mut().map(|sets| sets.next_die(HOST, unit))
    }

    /// Returns the current positions of the distribution.
    pub fn turns(&self) -> &[u32] {
        self.map.sets.as_ref().map_or(&[], |sets| &sets.turns)
    }

    /// Sets the round-robin positions. Returns false if they are invalid.
    pub fn set_turns(&mut self, turns: &[u32]) -> bool {
        let end = self.layout.unit * self.chips.len() as u32;
        if turns.len() != self.turns().len() || turns.iter().any(|&turn| turn >= end) {
            return false;
        }
        if let Some(sets) = &mut self.map.sets {
            sets.turns.copy_from_slice(turns);
        }
        true
    }

    /// Whether a superblock is being collected.
    pub(super) fn in_run(&self) -> bool {
        self.map
            .sets
            .as_ref()
            .is_some_and(|sets| sets.run.is_some())
    }

    /// Returns the number of pages that the die has still to read or to program in the run. This is an upper bound:
    /// pages that the host overwrites before they are read are not moved.
    pub(super) fn moves_of_run(&self, die: usize) -> u32 {
        let Some(sets) = &self.map.sets else { return 0 };
        let part = &sets.parts[die];
        part.arrived.len() as u32 + part.block.map_or(0, |block| self.map.ftl.valid_of(block))
    }

    /// Activates a die, and then all dies that were woken as a result.
    pub(super) fn activate_by_sets(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        self.activate_one(die, now, events);
        while let Some(die) = self.map.sets.as_mut().and_then(|sets| sets.woken.pop()) {
            self.activate_one(die as usize, now, events);
        }
    }

    fn activate_one(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        if self.is_taken(die, now, events) {
            return;
        }
        if let Some(op) = self.chips[die].reads.pop_front() {
            return self.start_reads(die, op, Time::ZERO, now, events);
        }
        let waits = !self.chips[die].queue.is_empty();
        if !self.in_run() {
            let low = match waits {
                true => self.map.ftl.low(),
                false => self.map.idle_blocks,
            };
            if self.map.ideal {
                while self.begin_run(low, now) {
                    self.collect_set_untimed();
                }
            }
            let may = waits || self.params.background_gc || self.map.orders.any(die);
            if may && self.begin_run(low, now) {
                self.enter_run(now);
            }
        }
        let runs = self.in_run();
        let yields = self.map.preemptible || self.map.orders.yields;
        if runs && (!waits || !yields || self.map.ftl.is_needy(die as u32)) {
            return self.start_part(die, now, events);
        }
        let is_write = |op: &PageOp| !op.is_read();
        let writes = self.chips[die].queue.front().is_some_and(is_write);
        if writes && (self.must_hold(die) || self.waits_for_writes(die, now, events)) {
            if runs {
                self.start_part(die, now, events);
            }
            return;
        }
        match self.chips[die].queue.pop_front() {
            Some(op) if op.is_read() => self.start_reads(die, op, Time::ZERO, now, events),
            Some(op) => self.start_writes(die, op, now, events),
            None => {}
        }
    }

    /// Whether another die keeps this die from its next host write. This is so if the write would have to open a block,
    /// while the other die has not yet opened its block of the superblock that this die has filled.
    pub(super) fn is_blocked(&self, die: usize) -> bool {
        self.map.sets.is_some()
            && self.map.ftl.is_full(die as u32)
            && self.map.ftl.is_ahead(die as u32, false)
    }

    /// Whether the die must wait until another die opens a block. The other die may have no free block to open. During
    /// a run, this die waits even then, because the run frees a block. Without a run it does not, because the wait
    /// would not end.
    pub(super) fn must_hold(&self, die: usize) -> bool {
        self.is_blocked(die) && (self.in_run() || !self.map.ftl.is_ahead(die as u32, true))
    }

    /// Wakes all dies after a block was opened or can be opened, since any of them may have waited for this.
    pub(super) fn block_opened(&mut self) {
        if let Some(sets) = &mut self.map.sets {
            sets.wake_all();
        }
    }

    // ---- runs ----

    /// Begins to collect the superblock with the fewest live pages under two conditions: a die has at most `low` free
    /// blocks or an order to collect, and the collection frees pages and has room for the moved ones. Returns whether a
    /// run began.
    fn begin_run(&mut self, low: u32, now: Time) -> bool {
        let wants = |&pool: &u32| {
            self.map
                .orders
                .wants(pool, self.map.ftl.pool(pool).free, low)
        };
        let Some(pool) = (0..self.chips.len() as u32).find(wants) else {
            return false;
        };
        let victim =
            self.map.ftl.victim_set().filter(|&(_, live, gain)| {
                gain > 0 && self.map.ftl.shares_fit(live, self.layout.unit)
            });
        let (Some((set, live, _)), Some(sets)) = (victim, &mut self.map.sets) else {
            self.map.orders.collected(&self.map.ftl, pool, false);
            return false;
        };
        let mut run = Run {
            set,
            reading: 0,
            moving: 0,
            blocks: 0,
        };
        for (die, part) in sets.parts.iter_mut().enumerate() {
            part.block = self.map.ftl.collectable_of_set(set, die as u32);
            part.page = 0;
            part.read = part.block.is_none();
            run.reading += u32::from(!part.read);
        }
        run.blocks = run.reading;
        sets.run = Some(run);
        if let Some(log) = &mut self.log {
            let block = sets.parts[pool as usize].block.unwrap_or(0);
            log.push(FlashEvent::Victim {
                at: now,
                chip: pool,
                plane: 0,
                block: block % self.map.ftl.shape.blocks_per_pool,
                valid: live,
            });
        }
        true
    }

    fn enter_run(&mut self, now: Time) {
        for (die, chip) in self.chips.iter_mut().enumerate() {
            chip.enter_gc(now);
            self.chips_in_gc.set(ChipId(die as u16), true);
        }
        for die in 0..self.chips.len() {
            self.log_gc(die, true, now);
        }
        self.stats.gc_actions += self.chips.len() as u64;
        self.block_opened();
    }

    /// Begins the die's next step of the run, if it has one.
    fn start_part(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        let mut program = self.row_arrived(die);
        if program.is_none() {
            let (pages, time) = self.take_row(die);
            if pages > 0 {
                return self.start_step_of_set(
                    die,
                    Some(Step::Array(time)),
                    pages,
                    None,
                    now,
                    events,
                );
            }
            program = self.row_arrived(die);
        }
        if let Some((page, pages)) = program {
            let program = Step::Pulse(self.program(Stream::Cold, page));
            return self.start_step_of_set(die, None, pages, Some(program), now, events);
        }
        if let Some(block) = self.block_to_erase(die) {
            self.erase_part(die, block);
            if self.log.is_some() {
                self.log_part(die, (Cause::Erase, 0), Some(block), now);
            }
            self.start_pulse(die, self.times.erase, now, events);
        }
    }

    /// Takes the die's next row to program if it is complete, that is, if the data of all its pages are in the
    /// controller. If the die has no further page to read, takes the row even if it is incomplete. Returns the first
    /// page of the row to program, and the number of pages.
    fn row_arrived(&mut self, die: usize) -> Option<(u32, u32)> {
        let unit = self.layout.unit;
        let part = &mut self.map.sets.as_mut()?.parts[die];
        let page = part.arrived.iter().copied().min()?;
        let of_row = |other: &u32| other / unit == page / unit;
        let pages = part.arrived.iter().filter(|&other| of_row(other)).count() as u32;
        if !part.read && pages < self.layout.left_in_row(page) {
            return None;
        }
        part.arrived.retain(|other| !of_row(other));
        part.doing = Doing::Programming(pages);
        Some((page, pages))
    }

    /// Logs a step of the run, and starts it by [`Modern::start_moves`].
    fn start_step_of_set(
        &mut self,
        die: usize,
        read: Option<Step>,
        pages: u32,
        program: Option<Step>,
        now: Time,
        events: &mut EventQueue,
    ) {
        if self.log.is_some() {
            // A step that programs writes to the open block of the die. It does not access the block under collection.
            let block = (self.map.sets.as_ref())
                .filter(|_| read.is_some())
                .and_then(|sets| sets.parts[die].block);
            self.log_part(die, (Cause::GcMove, pages), block, now);
        }
        self.start_moves(die, read, pages, program, now, events);
    }

    /// Assigns new places in the map to the next live pages of the die's block, at most as many as one program takes.
    /// Returns the number of these pages, and the time to read them.
    fn take_row(&mut self, die: usize) -> (u32, Time) {
        let mut sensing = self.layout.sensing();
        let mut pages = 0;
        while pages < self.layout.unit {
            let Some((from, to, page)) = self.take_page(die) else {
                break;
            };
            if !sensing.has(&self.layout, from) {
                let time = self.sense(from);
                sensing.add(&self.layout, from, time);
            }
            if let Some(sets) = &mut self.map.sets {
                sets.parts[die].taken.push((to, page));
                sets.parts[die].doing = Doing::Reading;
            }
            pages += 1;
        }
        (pages, sensing.total())
    }

    /// Assigns a new place in the map to the next live page of the die's block. Returns the old place, the die to which
    /// the page moves, and its page number in the open block of that die.
    fn take_page(&mut self, die: usize) -> Option<(Ppn, u32, u32)> {
        let unit = self.layout.unit;
        let sets = self.map.sets.as_mut()?;
        let part = &mut sets.parts[die];
        let block = part.block?;
        let run = sets.run.as_mut()?;
        let Some(page) = self.map.ftl.next_live(block, part.page) else {
            if !std::mem::replace(&mut part.read, true) {
                run.reading -= 1;
                if run.reading == 0 && run.moving == 0 {
                    sets.wake_all();
                }
            }
            return None;
        };
        part.page = page + 1;
        run.moving += 1;
        let to = sets.next_die(MOVES, unit);
        let from = Ppn(self.map.ftl.first_ppn(block).0 + page);
        let lpn = self.map.ftl.lpn_at(from);
        let stream = self.map.ftl.make_room(to, Stream::Cold);
        let stream = stream.expect("shares_fit saw the room");
        let page = self.map.ftl.next_page(to, stream);
        self.map.ftl.append(to, stream, lpn);
        self.moved.note(lpn);
        self.stats.add(Cause::GcMove, 1);
        if page == 0 {
            sets.wake_all();
        }
        Some((from, to, page))
    }

    /// Returns the die's block if it can be erased, because all pages of the superblock have been moved.
    fn block_to_erase(&self, die: usize) -> Option<u32> {
        let sets = self.map.sets.as_ref()?;
        let run = sets.run?;
        let block = sets.parts[die].block?;
        (run.reading == 0 && run.moving == 0).then_some(block)
    }

    fn erase_part(&mut self, die: usize, block: u32) {
        self.map.ftl.erase(block);
        self.stats.add(Cause::Erase, 1);
        if let Some(sets) = &mut self.map.sets {
            sets.parts[die].block = None;
            sets.parts[die].doing = Doing::Erasing;
        }
    }

    /// Processes the end of a step that the die executed for the run.
    pub(super) fn part_ended(&mut self, die: usize, now: Time) {
        let Some(sets) = &mut self.map.sets else {
            return;
        };
        let Some(run) = &mut sets.run else { return };
        let part = &mut sets.parts[die];
        match std::mem::replace(&mut part.doing, Doing::Nothing) {
            Doing::Nothing => {}
            Doing::Reading => {
                let mut taken = std::mem::take(&mut part.taken);
                for (to, page) in taken.drain(..) {
                    sets.parts[to as usize].arrived.push(page);
                    sets.woken.push(to);
                }
                sets.parts[die].taken = taken;
            }
            Doing::Programming(pages) => {
                run.moving -= pages;
                if run.reading == 0 && run.moving == 0 {
                    sets.wake_all();
                }
            }
            Doing::Erasing => {
                run.blocks -= 1;
                if run.blocks == 0 {
                    self.end_run(Some(now));
                }
            }
        }
    }

    fn end_run(&mut self, now: Option<Time>) {
        let Some(sets) = &mut self.map.sets else {
            return;
        };
        if let Some(run) = sets.run.take() {
            self.map.ftl.set_erased(run.set);
        }
        sets.wake_all();
        for die in 0..self.chips.len() {
            self.map.orders.collected(&self.map.ftl, die as u32, true);
            if let Some(now) = now {
                self.chips[die].leave_gc(now);
                self.chips_in_gc.set(ChipId(die as u16), false);
                self.log_gc(die, false, now);
            }
        }
    }

    /// Collects the superblock of the run in no simulated time.
    fn collect_set_untimed(&mut self) {
        for die in 0..self.chips.len() {
            while self.take_page(die).is_some() {}
        }
        for die in 0..self.chips.len() {
            if let Some(run) = self.map.sets.as_mut().and_then(|sets| sets.run.as_mut()) {
                run.moving = 0;
            }
            if let Some(block) = self.block_to_erase(die) {
                self.erase_part(die, block);
            }
        }
        self.end_run(None);
        if let Some(sets) = &mut self.map.sets {
            sets.parts
                .iter_mut()
                .for_each(|part| part.doing = Doing::Nothing);
        }
    }

    /// Executes the collections that a write requires, in no simulated time.
    pub(super) fn collect_sets_untimed(&mut self) {
        while self.begin_run(self.map.ftl.low(), Time::ZERO) {
            self.collect_set_untimed();
        }
        if let Some(sets) = &mut self.map.sets {
            sets.woken.clear();
        }
    }
}
