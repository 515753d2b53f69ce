//! Writes on a device that writes by units: finding room for a page, queueing its write at the die, and programming a
//! row.

use super::super::lane::Step;
use super::*;
use crate::placement::{Class, Untimed, NEVER};
use crate::request::PlacementId;

/// Largest number of waiting operations that are examined to find the write to start, or further writes of its row (the
/// pages of one program).
const WRITES_LOOKED_AT: usize = 64;

/// Placement that the host requests for a write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// The id, if there is one.
    pub placement: PlacementId,
    /// Number of pages of the host's request.
    pub pages: u32,
}

/// A write that waits in its group, because there is no room for its page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub op: PageOp,
    pub page: PageToPut,
    /// Order of arrival in the group.
    pub number: u64,
    pub since: Time,
}

/// An operation in a die's queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub at: usize,
    /// Number of writes that precede this operation in the queue.
    pub writes: usize,
}

/// Room for a page.
enum Room {
    /// The page fits into the open unit of its class in this group.
    In(u32),
    /// The page must wait until this group has collected, or until programs of the group have ended.
    After(u32),
    None,
}

impl Modern<Units> {
    /// Queues a write. The placement scheme assigns a class to its page. If there is room, assigns a place to the
    /// page, and puts the write into the queue of the die with this place. Otherwise the write waits for room.
    pub fn write(&mut self, op: PageOp, asked: Asked, now: Time, events: &mut EventQueue) {
        let id = asked.placement.get();
        let to = self.map.device.resolve(id);
        // If the host requests no placement id, pages that the buffer policy declares hot get the placement id 1.
        let id = id.or((op.stream == Stream::Hot).then_some(1));
        let pages = asked.pages.max(1);
        let page = self.map.device.ask(op.lpn, to, id, pages, NEVER);
        let waiting = Waiting {
            op,
            page,
            number: 0,
            since: now,
        };
        let group = &self.map.groups[page.group as usize];
        match group.waits(page.class) {
            true => self.let_wait(page.group, waiting),
            false => self.find_room(waiting, now),
        }
        self.activate_woken(now, events);
    }

    fn activate_woken(&mut self, now: Time, events: &mut EventQueue) {
        if let Some(die) = self.map.woken.pop() {
            self.activate_and_woken(die as usize, now, events);
        }
    }

    /// Writes a page in no simulated time. Returns false if there is no room for it.
    pub fn write_untimed(&mut self, lpn: Lpn) -> bool {
        let before = self.map.device.untimed();
        let written = self.map.device.write(lpn, 1, None, &[]).is_ok();
        self.stats.add(Cause::HostWrite, u64::from(written));
        self.count_untimed(before);
        written
    }

    /// Adds the collections executed in no simulated time since `before` to the statistics.
    fn count_untimed(&mut self, before: Untimed) {
        let after = self.map.device.untimed();
        let blocks = u64::from(self.map.stripes.blocks * self.map.stripes.dies);
        self.stats.add(Cause::GcMove, after.moves - before.moves);
        let units = after.erases - before.erases;
        self.stats.add(Cause::Erase, units * blocks);
        self.stats.pages_skipped += after.unwritten - before.unwritten;
    }

    fn let_wait(&mut self, group: u32, waiting: Waiting) {
        let class = waiting.page.class;
        self.map.groups[group as usize].let_wait(class, waiting);
    }

    /// Assigns a place to the page of a write, or lets the write wait for room.
    fn find_room(&mut self, waiting: Waiting, now: Time) {
        debug_assert!(
            !self.map.groups[waiting.page.group as usize].waits(waiting.page.class),
            "a page passes none of its class"
        );
        match self.room(&waiting.page, now) {
            Room::In(group) => self.put(&waiting, group, now),
            Room::After(group) => self.let_wait(group, waiting),
            Room::None => self.fail(&waiting, now),
        }
    }

    /// Finds room for a host page. Before that, begins a collection if the group has at most `low` free units, as on a
    /// device that is simulated without time.
    fn room(&mut self, page: &PageToPut, now: Time) -> Room {
        let (group, class) = (page.group, page.class);
        if self.map.ideal {
            return self.room_at_once(page);
        }
        if self.map.groups[group as usize].run.is_none()
            && !self.begin_if_low(group, class, now)
            && !self.begin_early(group, class, now)
        {
            let device = &mut self.map.device;
            if device.is_low(group) && device.is_awaited(group) {
                // No unit can be collected now, but programs of the group are running or waiting. After they have
                // ended, a unit may be collected, so the write waits for them.
                return Room::After(group);
            }
            return match device.opens(group, class) {
                true => Room::In(group),
                false => self.room_elsewhere(page, now),
            };
        }
        match self.may_pass(group) && self.map.device.opens(group, class) {
            true => Room::In(group),
            false => Room::After(group),
        }
    }

    fn room_at_once(&mut self, page: &PageToPut) -> Room {
        let before = self.map.device.untimed();
        let room = self.map.device.room_for(page);
        self.count_untimed(before);
        room.map_or(Room::None, Room::In)
    }

    /// Finds room in another group, because the group that the placement id selects is full.
    #[cold]
    fn room_elsewhere(&mut self, page: &PageToPut, now: Time) -> Room {
        for group in self.map.device.others_by_room(page.group) {
            let runs = self.map.groups[group as usize].run.is_some();
            let collects = runs || self.begin_if_low(group, page.class, now);
            if collects && !self.may_pass(group) {
                return Room::After(group);
            }
            if self.map.device.opens(group, page.class) {
                return Room::In(group);
            }
        }
        Room::None
    }

    /// Assigns the next place to the page of a write, and puts the write into the queue of the die with this place.
    fn put(&mut self, waiting: &Waiting, group: u32, now: Time) {
        if group != waiting.page.group {
            self.map.device.count_redirected();
        }
        let ppn = self.map.device.put(&waiting.page, group);
        self.map.device.await_program(ppn);
        if let Some(run) = &mut self.map.groups[group as usize].run {
            run.passed += 1;
        }
        let die = self.map.stripes.die_of(ppn);
        self.queue(waiting, die, ppn.0, now);
    }

    /// Queues a write without room for its page. The write will complete as a failed one.
    #[cold]
    fn fail(&mut self, waiting: &Waiting, now: Time) {
        self.stats.writes_failed += 1;
        let die = self.map.stripes.dies_of(waiting.page.group).start;
        self.queue(waiting, die, NO_PAGE, now);
    }

    fn queue(&mut self, waiting: &Waiting, die: usize, ppn: u32, now: Time) {
        let mut op = waiting.op;
        let chip = &mut self.chips[die];
        chip.count_arrival(&mut op, now);
        // The wait for room counts as waiting for GC. It is counted by setting `gc_before` back by the time of the
        // wait.
        op.gc_before -= (now - waiting.since).min(op.gc_before);
        chip.queue.push_back(op);
        self.map.dies[die].waiting.push_back(ppn);
        self.map.woken.push(die as u32);
    }

    /// Assigns places to the waiting writes of a group in the order of their arrival, as far as there is room.
    pub(super) fn release(&mut self, group: u32, now: Time) {
        let mut after = None;
        while self.map.groups[group as usize].pages_waiting > 0 {
            let Some((number, class)) = self.map.groups[group as usize].next_head(after) else {
                return;
            };
            self.release_first(group, class, now);
            after = Some(number);
        }
    }

    /// Assigns a place to the first waiting write of a class, if there is room for it.
    fn release_first(&mut self, group: u32, class: Class, now: Time) {
        let first = self.map.groups[group as usize].first(class);
        let room = self.room(&first.page, now);
        if let Room::After(same) = room {
            if same == group {
                return;
            }
        }
        let waiting = self.map.groups[group as usize].take_first(class);
        match room {
            Room::In(group) => self.put(&waiting, group, now),
            Room::After(other) => self.let_wait(other, waiting),
            Room::None => self.fail(&waiting, now),
        }
    }

    // ---- programs ----

    /// Returns the first operation in the die's queue that can start now: a read, or a write that need not wait for
    /// more pages of its row (the pages of one program). A write-back waits until no further page can be added to its
    /// row, or until it has waited for `params.program_wait`. Later operations in the queue may start before it.
    pub(super) fn next_of_host(
        &mut self,
        die: usize,
        now: Time,
        events: &mut EventQueue,
    ) -> Option<Next> {
        let (mut writes, mut until) = (0, Time::NEVER);
        for (at, op) in self.chips[die].queue.iter().enumerate() {
            let next = Next { at, writes };
            if op.is_read() {
                return Some(next);
            }
            let patient = matches!(op.cause, Cause::Destage | Cause::WriteBack);
            let ends = op.enqueued + self.params.program_wait;
            let ppn = self.map.dies[die].waiting[writes];
            if !patient || ends <= now || ppn == NO_PAGE || self.is_row_given(Ppn(ppn)) {
                return Some(next);
            }
            writes += 1;
            until = until.min(ends);
            if writes == WRITES_LOOKED_AT {
                break;
            }
        }
        if until < Time::NEVER {
            self.look_again(die, until, events);
        }
        None
    }

    /// Starts the program of a write, together with waiting writes of the same row (the pages that one program writes).
    pub(super) fn start_row(&mut self, at: usize, next: Next, now: Time, events: &mut EventQueue) {
        let die = self.die_of(at);
        let of = &mut self.map.dies[die];
        let (op, ppn) = (
            self.chips[die].queue.remove(next.at),
            of.waiting.remove(next.writes),
        );
        let (first, ppn) = op.zip(ppn).expect("each write in the queue has a page");
        of.in_service.push_back(ppn);
        if ppn == NO_PAGE {
            self.begin_op(at, first, now);
            self.lanes[at].ops[0].written = false;
            self.lanes[at].steps.push_back(Step::Deliver);
            return self.start(at, now, events);
        }
        let page = self.map.stripes.page_in_block(Ppn(ppn));
        let array = self.program(Stream::Cold, page);
        self.take_along(at, &first, now);
        let row = self.map.stripes.row_of(Ppn(ppn));
        if self.layout.unit > 1 {
            self.take_row_of(at, die, row, now);
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

    /// Moves the waiting writes of a row from the die's queue into a lane.
    fn take_row_of(&mut self, at: usize, die: usize, row: u32, now: Time) {
        let (mut i, mut write) = (0, 0);
        while i < WRITES_LOOKED_AT {
            let Some(op) = self.chips[die].queue.get(i).copied() else {
                return;
            };
            if op.is_read() {
                i += 1;
                continue;
            }
            let of = &mut self.map.dies[die];
            let ppn = of.waiting[write];
            if ppn == NO_PAGE || self.map.stripes.row_of(Ppn(ppn)) != row {
                (i, write) = (i + 1, write + 1);
                continue;
            }
            of.waiting.remove(write);
            of.in_service.push_back(ppn);
            self.chips[die].queue.remove(i);
            self.take_along(at, &op, now);
        }
    }

    fn take_along(&mut self, at: usize, op: &PageOp, now: Time) {
        self.stats.add_program(op);
        self.begin_op(at, *op, now);
        let transfer = self.times.transfer;
        let lane = &mut self.lanes[at];
        if let Some(done) = lane.ops.last_mut() {
            done.transfer = transfer;
        }
        lane.steps.push_back(Step::Transfer(transfer));
    }

    /// Begins the next write of a die while another write is being programmed.
    pub(super) fn begin_write_ahead(
        &mut self,
        die: usize,
        at: usize,
        now: Time,
        events: &mut EventQueue,
    ) {
        // A step of a collection that the die can execute has precedence.
        if self.has_part(die) {
            return;
        }
        let next = self.next_of_host(die, now, events);
        let is_write = |next: &Next| !self.chips[die].queue[next.at].is_read();
        if let Some(next) = next.filter(is_write) {
            self.start_row(at, next, now, events);
        }
    }

    /// Processes the end of a host operation on a die. If it was a write, waiting writes may find room, because its
    /// unit may now be collected.
    pub fn program_done(&mut self, die: usize, done: &Done, now: Time) {
        if done.op.is_read() {
            return;
        }
        let page = self.map.dies[die].in_service.pop_front();
        let ppn = page.expect("each program has a page");
        if ppn == NO_PAGE {
            return;
        }
        let unit = self.map.stripes.unit_of(Ppn(ppn));
        if self.map.device.programmed(unit, 1) {
            let group = self.map.stripes.group_of(die);
            let of = &self.map.groups[group as usize];
            if of.run.is_none() && of.pages_waiting > 0 {
                self.release(group, now);
            }
        }
    }
}
