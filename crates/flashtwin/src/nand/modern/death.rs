//! The failure of a die (D-146). Each lane of the die completes the step that it has begun. Code for channels,
//! suspensions and event times therefore needs no special case. The receiver of a completed operation marks the
//! operation as failed.

use super::*;

impl Modern {
    /// Returns the number of pages that would be lost if the die failed. These are all pages on the die, except pages
    /// that are being programmed. Those are programmed again on another die.
    pub fn pages_to_lose(&self, die: usize) -> u32 {
        let of_die = |lane: &usize| self.die_of(*lane) == die;
        let lanes = (0..self.lanes.len()).filter(of_die);
        let in_service = lanes.flat_map(|lane| self.lanes[lane].ops.iter());
        let is_there = |lpn: &Lpn| {
            let ppn = self.map.ftl.lookup(*lpn);
            ppn.is_some_and(|ppn| self.map.ftl.chip_of(ppn) as usize == die)
        };
        let programs = in_service.filter(|done| !done.op.is_read() && done.written);
        let mut pages: Vec<Lpn> = programs.map(|done| done.op.lpn).filter(is_there).collect();
        pages.sort_unstable();
        pages.dedup();
        self.map.ftl.pages_in(die as u32) - pages.len() as u32
    }

    /// Makes the die fail. From now on, none of its pages is free and it does not collect. Returns the writes that
    /// waited for the die, in their order. They have not changed the map yet.
    pub fn kill(&mut self, die: usize, now: Time) -> VecDeque<PageOp> {
        self.map.ftl.retire(die as u32);
        let lane = &self.lanes[die];
        let moves = !lane.is_free() && lane.ops.is_empty();
        // If a step of a collection is running, it still ends, but the collection does not continue.
        if self.map.collecting[die].take().is_some() && !moves {
            self.leave_gc(die, now);
        }
        let chip = &mut self.chips[die];
        let (reads, writes): (_, VecDeque<_>) = chip.queue.drain(..).partition(PageOp::is_read);
        chip.queue = reads;
        writes.iter().for_each(|op| chip.ended(op));
        writes
    }
}
