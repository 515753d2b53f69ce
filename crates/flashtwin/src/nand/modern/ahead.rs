//! Cached commands: a die begins its next operation while the present one is still running (D-68).
//!
//! A die has a second register, which permits two overlaps. While the array programs, the data of the next program can
//! be transferred. While the data of a read are transferred, the array can execute the next read.
//!
//! An operation that begins ahead of the end of its predecessor has its own lane (`lane`). It stops before the step
//! that needs a resource of the predecessor: the array for a program, the channel for a read. When the predecessor has
//! ended, the operation moves to the first lane of the die.

use super::lane::Step;
use super::*;

impl<M: Map> Modern<M> {
    /// Returns the lane of the operation begun ahead.
    pub(super) fn ahead(&self, die: usize) -> usize {
        die + 2 * self.chips.len()
    }

    /// Whether lane `at` has an operation that began ahead and must now wait for the end of its predecessor.
    pub(super) fn must_wait(&self, at: usize) -> bool {
        let lane = &self.lanes[at];
        let ahead = at >= 2 * self.chips.len();
        ahead
            && match lane.steps.first() {
                Some(Step::Pulse(_)) => true,
                Some(Step::Transfer(_)) => lane.ops.first().is_some_and(|done| done.op.is_read()),
                _ => false,
            }
    }

    /// Whether the data of the die's next program are being transferred over the channel, or wait for it.
    pub(super) fn data_come(&self, die: usize) -> bool {
        self.params.cached_commands && !self.lanes[self.ahead(die)].is_free()
    }

    /// Begins an operation ahead if the die is busy. If the die is free, moves the operation that began ahead to the
    /// first lane and continues it. Returns true if no other operation may begin now.
    #[inline(never)]
    pub(super) fn continue_ahead(
        &mut self,
        die: usize,
        now: Time,
        events: &mut EventQueue,
    ) -> bool {
        if !self.lanes[die].is_free() {
            self.begin_ahead(die, now, events);
            return false;
        }
        let at = self.ahead(die);
        let Some(first) = self.lanes[at].ops.first() else {
            return false;
        };
        if !self.lanes[at].is_free() {
            return true;
        }
        // A waiting read overtakes a program that began ahead, even if the data of the program have been transferred
        // already.
        if !first.op.is_read() && !self.chips[die].reads.is_empty() {
            return false;
        }
        let since = self.lanes[at].since.max(self.lanes[die].ends);
        let (ops, steps) = (
            std::mem::take(&mut self.lanes[at].ops),
            std::mem::take(&mut self.lanes[at].steps),
        );
        let lane = &mut self.lanes[die];
        (lane.ops, lane.steps) = (ops, steps);
        if let Some(log) = &mut self.log {
            log.push(FlashEvent::Moved {
                since,
                at: now,
                chip: die as u32,
            });
        }
        self.start(die, now, events);
        self.lanes[die].since = since;
        self.begin_ahead(die, now, events);
        true
    }

    fn begin_ahead(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        let (at, lane) = (self.ahead(die), &self.lanes[die]);
        let Some(first) = lane.ops.first() else {
            return;
        };
        if !self.lanes[at].ops.is_empty() || lane.held.is_some() {
            return;
        }
        match lane.step {
            Some(Step::Transfer(_)) if first.op.is_read() => {
                let chip = &mut self.chips[die];
                let queue = match self.params.read_priority {
                    true => &mut chip.reads,
                    false => &mut chip.queue,
                };
                if queue.front().is_some_and(PageOp::is_read) {
                    if let Some(op) = queue.pop_front() {
                        self.start_reads(at, op, Time::ZERO, now, events);
                    }
                }
            }
            Some(Step::Pulse(_)) if !first.op.is_read() => {
                M::write_ahead(self, die, at, now, events)
            }
            _ => {}
        }
    }
}
