//! Waits for buffer slots, by the flash operation that ended them.
//!
//! A slot comes free, or an access may try again, at the end of an operation: the write-back of the slot's former page,
//! of another page where so many run at a time, or the read or program that makes a page evictable. Of the wait, the
//! last part is this operation, as far as it overlaps; before it the access waited for its turn, behind others.

use super::Cache;
use crate::device::flash::OpTimes;
use crate::nand::Done;
use crate::request::Breakdown;
use crate::units::Time;

/// A flash operation of a cached page, at its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    at: Time,
    times: OpTimes,
}

impl Ended {
    /// Sets those of `parts` that are for a slot, of a wait of `wait` until `until`.
    #[inline(always)]
    fn set_wait(&self, wait: Time, until: Time, parts: &mut Breakdown) {
        let op = match self.at == until {
            true => self.times.parts_within(wait, until),
            false => Breakdown::default(),
        };
        parts.slot_order = wait - op.total();
        parts.slot_queue_host = op.queue_host;
        parts.slot_queue_gc = op.queue_gc;
        parts.slot_transfer = op.transfer;
        parts.slot_array = op.array;
    }
}

impl Cache {
    /// A flash operation of a cached page ends.
    #[inline(always)]
    pub(super) fn note_end(&mut self, done: &Done, is_read: bool, now: Time) {
        self.ended = Ended {
            at: now,
            times: OpTimes::of(done, is_read),
        };
    }

    /// Keeps what ended as the page gets its slot, for the accesses that wait for more than the slot.
    #[inline(always)]
    pub(super) fn keep_slot_end(&mut self, page: u32) {
        self.slot_ends[page as usize] = self.ended;
    }

    /// Sets the parts of a wait of `wait` for a slot, which ends now.
    #[inline(always)]
    pub fn set_slot_wait(&self, wait: Time, now: Time, parts: &mut Breakdown) {
        self.ended.set_wait(wait, now, parts);
    }

    /// Sets the parts of a wait of `wait` for the slot of a page, until the page got it.
    #[inline(always)]
    pub(super) fn set_slot_wait_of(&self, page: u32, wait: Time, parts: &mut Breakdown) {
        let slot_at = self.pages[page as usize].slot_at;
        self.slot_ends[page as usize].set_wait(wait, slot_at, parts);
    }
}
