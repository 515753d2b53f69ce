//! Splits waits for buffer slots by the flash operation that ended them.
//!
//! A wait for a slot ends when a flash operation ends. Usually this operation is the write-back of the page that had
//! the slot. If the number of write-backs is limited, it may be another write-back. If no page was evictable, it is the
//! read or program that made a page evictable. The part of the wait that overlaps with the operation is split like the
//! time of the operation. During the rest of the wait, the access waited for its turn behind other operations.

use super::Cache;
use crate::device::flash::OpTimes;
use crate::nand::Done;
use crate::request::Breakdown;
use crate::units::Time;

/// End and times of a finished flash operation of a cached page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    at: Time,
    times: OpTimes,
}

impl Ended {
    /// Sets the parts of a latency breakdown that describe the wait for a slot. This wait had the duration `wait` and
    /// ended at `until`.
    #[cfg_attr(not(debug_assertions), inline(always))]
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
    /// Records the end of a flash operation of a cached page.
    #[inline(always)]
    pub(super) fn note_end(&mut self, done: &Done, is_read: bool, now: Time) {
        self.ended = Ended {
            at: now,
            times: OpTimes::of(done, is_read),
        };
    }

    /// Stores the operation that ended when the page got its slot. Accesses that wait for more than the slot need this
    /// operation later.
    #[inline(always)]
    pub(super) fn keep_slot_end(&mut self, page: u32) {
        self.slot_ends[page as usize] = self.ended;
    }

    /// Sets the parts of a latency breakdown that describe the wait for a slot. This wait had the duration `wait` and
    /// ends now.
    #[inline(always)]
    pub fn set_slot_wait(&self, wait: Time, now: Time, parts: &mut Breakdown) {
        self.ended.set_wait(wait, now, parts);
    }

    /// Sets the parts of a latency breakdown that describe the wait for a slot. This wait had the duration `wait` and
    /// ended when the page got its slot.
    #[inline(always)]
    pub(super) fn set_slot_wait_of(&self, page: u32, wait: Time, parts: &mut Breakdown) {
        let slot_at = self.pages[page as usize].slot_at;
        self.slot_ends[page as usize].set_wait(wait, slot_at, parts);
    }
}
