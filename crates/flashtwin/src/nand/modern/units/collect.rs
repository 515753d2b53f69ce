//! Collection of a *unit* on a device that writes by units. The pages of a unit are striped over the dies of a *group*.
//! All dies of the group take part in the collection, which is called a *run*.
//!
//! Each die reads the live pages of its part of the unit, row by row, and transfers them over its channel to the
//! controller. From there they go to the dies of their new places, and are programmed row by row. When all pages are
//! programmed, each die erases its blocks of the unit, and the run ends. A page gets its new place when its read
//! begins. A page that becomes invalid before that is not moved.

use super::super::lane::Step;
use super::write::Waiting;
use super::*;
use crate::placement::Class;

/// Current activity of a die in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Doing {
    #[default]
    Nothing,
    Reading,
    /// Programming moved pages: the number of these pages, and their new unit.
    Programming(u32, u32),
    Erasing,
}

/// The state of one die.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// Row of the die's part of the unit at which the search for the next live page starts.
    line: u32,
    /// Whether the die may still find live pages to read.
    reads: bool,
    /// Number of blocks of the unit that the die has still to erase.
    to_erase: u32,
    doing: Doing,
    /// New places of the pages being read.
    taken: Vec<u32>,
    /// Rows of this die to which pages are being moved.
    rows: Vec<Row>,
    /// Whether a host operation has precedence over the next step of the run.
    pub host_is_next: bool,
}

/// A row to which pages are moved.
#[derive(Clone, Copy, Debug)]
struct Row {
    row: u32,
    /// The lowest flash page of the row to which a page is moved.
    first: u32,
    /// Number of pages moved to the row.
    pages: u32,
    /// Number of pages moved to the row that are still being read, so that their data have not reached the controller.
    coming: u32,
}

/// A unit being collected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    of: Collection,
    /// Number of dies that still have pages to read.
    reading: u32,
    /// Number of pages being moved: their reads have begun, and their programs have not ended.
    moving: u32,
    /// Number of dies that have blocks to erase.
    erasing: u32,
    /// Number of host pages that were placed in the group since the collection began.
    pub passed: u32,
}

/// A group of dies.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub run: Option<Run>,
    /// Writes that wait for room, by class.
    waiting: Vec<VecDeque<Waiting>>,
    pub pages_waiting: u32,
    next_number: u64,
}

impl Group {
    pub fn new(classes: Class) -> Group {
        Group {
            run: None,
            waiting: vec![VecDeque::new(); usize::from(classes)],
            pages_waiting: 0,
            next_number: 0,
        }
    }

    /// Whether a page of the class waits.
    pub fn waits(&self, class: Class) -> bool {
        !self.waiting[usize::from(class)].is_empty()
    }

    pub fn let_wait(&mut self, class: Class, waiting: Waiting) {
        let number = self.next_number;
        self.next_number += 1;
        self.pages_waiting += 1;
        self.waiting[usize::from(class)].push_back(Waiting { number, ..waiting });
    }

    /// Compares the first waiting pages of all placement classes, and returns the one that arrived first: its arrival
    /// number and its class. Considers only arrival numbers above `after`.
    pub fn next_head(&self, after: Option<u64>) -> Option<(u64, Class)> {
        let heads = self.waiting.iter().enumerate();
        let heads = heads.filter_map(|(class, of)| Some((of.front()?.number, class as Class)));
        heads
            .filter(|&(number, _)| after.is_none_or(|after| number > after))
            .min()
    }

    pub fn first(&self, class: Class) -> Waiting {
        *self.waiting[usize::from(class)]
            .front()
            .expect("a page waits")
    }

    pub fn take_first(&mut self, class: Class) -> Waiting {
        self.pages_waiting -= 1;
        let first = self.waiting[usize::from(class)].pop_front();
        first.expect("a page waits")
    }
}

impl Part {
    /// Records that a page is moved to a row of the die.
    #[inline]
    fn expect_page(&mut self, row: u32, page: u32) {
        match self.rows.iter_mut().rev().find(|of| of.row == row) {
            Some(of) => {
                of.first = of.first.min(page);
                of.pages += 1;
                of.coming += 1;
            }
            None => self.rows.push(Row {
                row,
                first: page,
                pages: 1,
                coming: 1,
            }),
        }
    }
}

impl Modern<Units> {
    /// Begins a collection if the group has at most `low` free units and a unit is worth collecting. Returns whether a
    /// collection began.
    pub(super) fn begin_if_low(&mut self, group: u32, class: Class, now: Time) -> bool {
        self.map.device.is_low(group) && self.begin_run(group, Some(class), now)
    }

    /// Begins a collection early under three conditions: the group has more than `low` but at most `early` free units,
    /// host writes may pass the collection, and a unit is worth collecting. Returns whether a collection began.
    pub(super) fn begin_early(&mut self, group: u32, class: Class, now: Time) -> bool {
        let early = self.map.preemptible && self.map.device.free(group) <= self.map.early;
        early && !self.map.device.is_low(group) && self.begin_run(group, Some(class), now)
    }

    /// Begins a collection in the background, if the device has background GC and the group has at most `early` free
    /// units.
    pub(super) fn begin_in_background(&mut self, die: usize, now: Time) {
        let group = self.map.stripes.group_of(die);
        let of = &self.map.groups[group as usize];
        if self.params.background_gc
            && !self.map.ideal
            && of.run.is_none()
            && self.map.device.free(group) <= self.map.early
        {
            self.begin_run(group, None, now);
        }
    }

    #[inline(never)]
    fn begin_run(&mut self, group: u32, class: Option<Class>, now: Time) -> bool {
        let Some(unit) = self.map.device.choose(group, class) else {
            return false;
        };
        let of = self.map.device.begin_collection(unit, class);
        let blocks = self.map.stripes.blocks;
        let dies = self.map.stripes.dies_of(group);
        self.map.groups[group as usize].run = Some(Run {
            of,
            reading: dies.len() as u32,
            moving: 0,
            erasing: dies.len() as u32,
            passed: 0,
        });
        if let Some(log) = &mut self.log {
            log.push(FlashEvent::Victim {
                at: now,
                chip: dies.start as u32,
                plane: 0,
                block: of.view.number * blocks,
                valid: of.view.live,
            });
        }
        self.stats.gc_actions += dies.len() as u64;
        for die in dies.rev() {
            let part = &mut self.map.dies[die].part;
            part.line = 0;
            part.reads = true;
            part.to_erase = blocks;
            part.host_is_next = false;
            self.chips[die].enter_gc(now);
            self.chips_in_gc.set(ChipId(die as u16), true);
            self.log_gc(die, true, now);
            self.map.woken.push(die as u32);
        }
        true
    }

    /// Whether a host page may be written to the group now. Outside a collection it always may. During a collection,
    /// this requires `gc.preemptible`, and either more than `low` free units or a collection that keeps pace with the
    /// host (D-170). If moved pages share units with host pages, `low` units must in addition stay free for the moved
    /// pages.
    pub(super) fn may_pass(&self, group: u32) -> bool {
        let device = &self.map.device;
        let Some(run) = &self.map.groups[group as usize].run else {
            return true;
        };
        if !self.map.preemptible || device.mixes_survivors() && device.free(group) < device.low() {
            return false;
        }
        let (live, pages) = (u64::from(run.of.view.live), u64::from(run.of.view.pages));
        let keeps_pace = u64::from(run.passed) * live < u64::from(run.of.moved) * (pages - live);
        keeps_pace || !device.is_low(group)
    }

    /// Whether the die can execute a step of its group's run now.
    pub(super) fn has_part(&self, die: usize) -> bool {
        let group = self.map.stripes.group_of(die);
        let part = &self.map.dies[die].part;
        let Some(run) = &self.map.groups[group as usize].run else {
            return false;
        };
        part.reads || part.rows.iter().any(|row| self.is_due(row, run)) || self.may_erase(run, part)
    }

    fn may_erase(&self, run: &Run, part: &Part) -> bool {
        run.reading == 0 && run.moving == 0 && part.to_erase > 0
    }

    /// Begins the die's next step of its group's run. Returns whether the die had one.
    pub(super) fn start_part(&mut self, die: usize, now: Time, events: &mut EventQueue) -> bool {
        let group = self.map.stripes.group_of(die);
        if self.map.groups[group as usize].run.is_none() {
            return false;
        }
        if self.start_arrived(die, group, now, events) {
            return true;
        }
        let (pages, time) = self.take_live_row(die, group);
        if pages > 0 {
            let block = self.block_of_run(die, group);
            self.log_moves(die, pages, block, now);
            self.start_moves(die, Some(Step::Array(time)), pages, None, now, events);
            if self.map.preemptible {
                self.release(group, now);
            }
            return true;
        }
        self.start_arrived(die, group, now, events) || self.start_erase(die, group, now, events)
    }

    /// Begins to program a row of moved pages, if such a row is due on the die. Returns whether it was.
    fn start_arrived(
        &mut self,
        die: usize,
        group: u32,
        now: Time,
        events: &mut EventQueue,
    ) -> bool {
        let Some((page, pages)) = self.take_due_row(die, group) else {
            return false;
        };
        let program = Step::Pulse(self.program(Stream::Cold, page));
        self.log_moves(die, pages, None, now);
        self.start_moves(die, None, pages, Some(program), now, events);
        true
    }

    fn log_moves(&mut self, die: usize, pages: u32, block: Option<u32>, now: Time) {
        if self.log.is_some() {
            self.log_step(die, (Cause::GcMove, pages), block, now);
        }
    }

    /// Returns the block that the next step of the run reads or erases on the die.
    fn block_of_run(&self, die: usize, group: u32) -> Option<u32> {
        let run = self.map.groups[group as usize].run?;
        let (s, part) = (&self.map.stripes, &self.map.dies[die].part);
        let in_unit = match run.reading {
            0 => s.blocks - part.to_erase,
            _ => (part.line.saturating_sub(1) / (s.rows / s.blocks)).min(s.blocks - 1),
        };
        Some(run.of.view.number * s.blocks + in_unit)
    }

    fn start_erase(&mut self, die: usize, group: u32, now: Time, events: &mut EventQueue) -> bool {
        let part = &self.map.dies[die].part;
        let may =
            (self.map.groups[group as usize].run).is_some_and(|run| self.may_erase(&run, part));
        if !may {
            return false;
        }
        if self.log.is_some() {
            let block = self.block_of_run(die, group);
            self.log_step(die, (Cause::Erase, 0), block, now);
        }
        debug_assert!(
            (self.map.groups[group as usize].run).is_some_and(|run| run.moving == 0),
            "survivors are programmed before the erase"
        );
        let part = &mut self.map.dies[die].part;
        part.to_erase -= 1;
        part.doing = Doing::Erasing;
        self.start_pulse(die, self.times.erase, now, events);
        true
    }

    /// Whether a row of moved pages can be programmed. The data of all its pages must have arrived, and no further page
    /// may be added to the row.
    #[inline]
    fn is_due(&self, row: &Row, run: &Run) -> bool {
        row.coming == 0 && (run.reading == 0 || self.is_row_given(Ppn(row.first)))
    }

    /// Whether all pages of the row of `page` are assigned, so that no further page can be added to the row.
    #[inline]
    pub(super) fn is_row_given(&self, page: Ppn) -> bool {
        let stripes = &self.map.stripes;
        let unit = stripes.unit_of(page);
        let end = (stripes.row_of(page) + 1) * stripes.row - self.map.device.place_of(unit, 0).0;
        self.map.device.is_given(unit, end - 1)
    }

    /// Takes the pages of a row that is due on the die. Returns the first of these pages, numbered within its block,
    /// and their number.
    fn take_due_row(&mut self, die: usize, group: u32) -> Option<(u32, u32)> {
        let run = self.map.groups[group as usize].run.as_ref()?;
        let rows = &self.map.dies[die].part.rows;
        let at = rows.iter().position(|row| self.is_due(row, run))?;
        let part = &mut self.map.dies[die].part;
        let row = part.rows.remove(at);
        let first = Ppn(row.first);
        part.doing = Doing::Programming(row.pages, self.map.stripes.unit_of(first));
        Some((self.map.stripes.page_in_block(first), row.pages))
    }

    /// Searches the die's part of the unit for the next row with live pages, and assigns new places in the map to these
    /// pages. Returns their number, and the time to read them.
    fn take_live_row(&mut self, die: usize, group: u32) -> (u32, Time) {
        let mut sensing = self.layout.sensing();
        let mut pages = 0;
        while pages == 0 {
            let (part, stripes) = (&mut self.map.dies[die].part, &self.map.stripes);
            if !part.reads {
                return (0, Time::ZERO);
            }
            if part.line == stripes.rows {
                self.reads_end(die, group);
                return (0, Time::ZERO);
            }
            let first = stripes.first_page(part.line, die);
            part.line += 1;
            for page in first..first + stripes.row {
                if let Some(from) = self.take_live_page(die, group, page) {
                    if !sensing.has(&self.layout, from) {
                        let time = self.sense(from);
                        sensing.add(&self.layout, from, time);
                    }
                    pages += 1;
                }
            }
        }
        (pages, sensing.total())
    }

    /// Records that the die has no further page to read.
    fn reads_end(&mut self, die: usize, group: u32) {
        self.map.dies[die].part.reads = false;
        if let Some(run) = &mut self.map.groups[group as usize].run {
            run.reading -= 1;
            if run.reading == 0 {
                self.wake_all(group);
            }
        }
    }

    fn wake_all(&mut self, group: u32) {
        let dies = self.map.stripes.dies_of(group);
        self.map.woken.extend(dies.rev().map(|die| die as u32));
    }

    /// Assigns a new place in the map to page `page` of the unit if this page is live. Returns its old place.
    #[inline]
    fn take_live_page(&mut self, die: usize, group: u32, page: u32) -> Option<Ppn> {
        let run = self.map.groups[group as usize].run.as_mut()?;
        let device = &mut self.map.device;
        if !device.is_live(run.of.unit, page) {
            return None;
        }
        let from = device.place_of(run.of.unit, page);
        self.moved.note(device.lpn_at(run.of.unit, page));
        let to = device.move_page(&mut run.of, page);
        device.await_program(to);
        run.moving += 1;
        let stripes = &self.map.stripes;
        let target = stripes.die_of(to);
        self.map.dies[target]
            .part
            .expect_page(stripes.row_of(to), to.0);
        let part = &mut self.map.dies[die].part;
        part.taken.push(to.0);
        part.doing = Doing::Reading;
        self.stats.add(Cause::GcMove, 1);
        Some(self.map.stripes.physical(from))
    }

    /// Processes the end of a step that the die executed for the run.
    pub(super) fn part_ended(&mut self, die: usize, now: Time) {
        let group = self.map.stripes.group_of(die);
        let part = &mut self.map.dies[die].part;
        match std::mem::take(&mut part.doing) {
            Doing::Nothing => {}
            Doing::Reading => {
                let mut taken = std::mem::take(&mut part.taken);
                for page in taken.drain(..) {
                    self.page_arrived(Ppn(page), group);
                }
                self.map.dies[die].part.taken = taken;
            }
            Doing::Programming(pages, unit) => {
                self.map.device.programmed(unit, pages);
                let run = self.map.groups[group as usize].run.as_mut();
                let run = run.expect("pages are moved in a run");
                run.moving -= pages;
                if run.reading == 0 && run.moving == 0 {
                    self.wake_all(group);
                }
            }
            Doing::Erasing => self.erase_ended(die, group, now),
        }
    }

    /// Records that the data of a moved page have reached the controller. If its new row can now be programmed, wakes
    /// the die of this row.
    fn page_arrived(&mut self, page: Ppn, group: u32) {
        let stripes = &self.map.stripes;
        let (target, number) = (stripes.die_of(page), stripes.row_of(page));
        let rows = &mut self.map.dies[target].part.rows;
        let row = rows.iter_mut().rev().find(|row| row.row == number);
        let row = row.expect("the row expects the page");
        row.coming -= 1;
        let row = *row;
        let run = self.map.groups[group as usize].run.as_ref();
        if run.is_some_and(|run| self.is_due(&row, run)) {
            self.map.woken.push(target as u32);
        }
    }

    fn erase_ended(&mut self, die: usize, group: u32, now: Time) {
        if self.map.dies[die].part.to_erase > 0 {
            return;
        }
        let run = self.map.groups[group as usize].run.as_mut();
        let run = run.expect("blocks are erased in a run");
        run.erasing -= 1;
        if run.erasing == 0 {
            self.end_run(group, now);
        }
    }

    fn end_run(&mut self, group: u32, now: Time) {
        if let Some(run) = self.map.groups[group as usize].run.take() {
            self.stats.pages_skipped += u64::from(self.map.device.unwritten(run.of.unit));
            self.map.device.end_collection(&run.of);
        }
        let stripes = &self.map.stripes;
        self.stats
            .add(Cause::Erase, u64::from(stripes.blocks * stripes.dies));
        for die in self.map.stripes.dies_of(group) {
            self.leave_gc(die, now);
        }
        self.wake_all(group);
        self.release(group, now);
    }

    /// Returns the approximate number of pages that the die has still to move; `None` if its group is not collecting.
    pub(super) fn moves_left(&self, die: usize) -> Option<u32> {
        let group = self.map.stripes.group_of(die);
        let run = self.map.groups[group as usize].run?;
        let live = self.map.device.live_of(run.of.unit);
        let rows = self.map.dies[die].part.rows.iter();
        let taken: u32 = rows.map(|row| row.pages).sum();
        Some(taken + live.div_ceil(self.map.stripes.dies))
    }
}
