//! A die that dies (D-146). Its lanes bring to an end what they have begun, so that channels, suspended
//! operations and clocks need to know nothing of it; whoever takes the ends says that they failed.

use super::*;

impl Modern {
    /// The die is dead from now on: no page of it is free, none is collected. Returns the writes that waited
    /// for it, in their order; they have changed nothing yet.
    pub fn kill(&mut self, die: usize, now: Time) -> VecDeque<PageOp> {
        self.ftl.retire(die as u32);
        let lane = &self.lanes[die];
        let moves = !lane.is_free() && lane.ops.is_empty();
        // A step under way ends, and the collection with it.
        if self.collecting[die].take().is_some() && !moves {
            self.leave_gc(die, now);
        }
        let chip = &mut self.chips[die];
        let (reads, writes): (_, VecDeque<_>) = chip.queue.drain(..).partition(PageOp::is_read);
        chip.queue = reads;
        writes.iter().for_each(|op| chip.ended(op));
        writes
    }
}
