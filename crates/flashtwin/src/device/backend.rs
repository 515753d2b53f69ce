//! Interface between the front end of a device and its back end. The back end is the flash of an SSD, or the members of
//! an array. It executes page operations and returns them when they have completed.
//!
//! The front end processes one event after the other. While it processes an event, it queues any number of operations
//! ([`Backend::enqueue`]), and then calls [`Backend::settle`] once. For the next event, the front end:
//!
//! 1. Advances the clock and calls [`Backend::on_event`].
//! 2. Processes the operation that has finished, and any others that finished with the same event
//!    ([`Backend::more_done`]).
//! 3. Calls [`Backend::activate`] for the unit that `on_event` returned.
//!
//! A back end never calls the front end.

use crate::chips::{ChipChanges, ChipSet, MovedPages};
use crate::events::EventQueue;
use crate::metrics::FlashReport;
use crate::nand::{Asked, Done, PageOp};
use crate::units::{ChipId, Lpn, Time};

/// The back end of a device. A *unit* is a part of the back end whose garbage collection the front end observes. In
/// an SSD, it is a chip. In an array, it is a member, a chip of a member, or a set of members that share a stripe.
pub trait Backend: Clone + std::fmt::Debug + sealed::Work {
    /// Returns the unit that holds the page's flash copy, or, if all copies of the page go to the same unit, that unit.
    /// `None` if the page has no copy and may be written to several units.
    fn unit_of(&self, lpn: Lpn) -> Option<ChipId>;
    /// Returns the units that are collecting garbage now.
    fn units_in_gc(&self) -> &ChipSet;
    /// Returns the time until a unit has completed all its queued work (the "chip queue complete time" of ECR). Without
    /// `exact`, this time is the estimate by the formula of the ECR paper (D-14).
    fn drain_time(&self, unit: usize, exact: bool, now: Time) -> Time;
    /// Returns the load of a unit: the sum of the flash times of the reads and writes that are queued or in service on
    /// it.
    fn load(&self, unit: usize) -> Time;
    /// Whether the unit has no operation in service or waiting.
    fn is_idle(&self, unit: usize) -> bool;
    /// Returns the number of free blocks of a unit. Returns `u32::MAX` for a dead die, which never collects.
    fn free_blocks(&self, unit: usize) -> u32;
    /// Returns the GC trigger: a unit collects if its number of free blocks is not above this number.
    fn gc_trigger_blocks(&self, unit: usize) -> u32;
    /// Returns the number of free pages in a unit's open block. Returns `u32::MAX` for a dead die.
    fn open_pages(&self, unit: usize) -> u32;
    /// Returns the flash counters from `since` to `now`.
    fn report(&self, now: Time, since: Time) -> FlashReport;
    /// Returns the flash counters from `since` to `now`, without the wear of blocks. (To collect the wear, all blocks
    /// must be visited.)
    fn report_without_wear(&self, now: Time, since: Time) -> FlashReport;
}

/// The part of the interface that only the front end uses.
pub(crate) mod sealed {
    use super::*;

    /// Stands for "no home": the page may be written to several units (such as chips).
    pub const NO_HOME: ChipId = ChipId(u16::MAX);

    /// Executes page operations, and returns them when they have ended.
    ///
    /// # Safety
    /// No method of this trait or of [`Backend`] may change what [`Work::kind`] returns.
    pub unsafe trait Work {
        /// Whether this back end is behind a plain front end ([`super::plain`]).
        const PLAIN: bool = false;
        /// Whether the buffer's policy may write pages back ahead of their eviction.
        const AHEAD: bool = true;
        /// Number of kinds of this back end ([`Work::kind`]), at most 3.
        const KINDS: u8 = 1;
        /// Returns the kind of the back end, a number below [`Work::KINDS`]. A copy of the request path is compiled for
        /// each kind.
        #[inline(always)]
        fn kind(&self) -> u8 {
            0
        }
        /// Returns the name of the copy of the back end's code that is in use. `plain_front` is whether the front end
        /// is a plain one.
        fn path(&self, plain_front: bool) -> &'static str;
        /// Informs the compiler that [`Work::kind`] returns `kind`.
        ///
        /// # Safety
        /// [`Work::kind`] must be `kind`.
        #[inline(always)]
        unsafe fn assume(&self, _kind: u8) {}
        /// Returns the number of resources that this back end uses in the event queue.
        fn resources(&self) -> usize;
        /// Returns the unit to which a write of the page goes.
        fn unit_for_write(&mut self, lpn: Lpn) -> u32;
        /// Returns the *home* of a page: the only unit to which its copies can be written. Returns [`NO_HOME`] if
        /// copies can be written to several units.
        #[inline(always)]
        fn home(&self, _lpn: Lpn) -> ChipId {
            NO_HOME
        }
        /// Returns the unit that holds the page's copy, if there is one.
        fn unit_of_copy(&self, lpn: Lpn) -> Option<u32>;
        /// Queues an operation.
        fn enqueue(&mut self, unit: usize, op: PageOp, now: Time, events: &mut EventQueue);
        /// Queues a write; the back end chooses the unit. `asked` is the placement that the host requests for the page.
        #[inline(always)]
        fn enqueue_write(&mut self, op: PageOp, _asked: Asked, now: Time, events: &mut EventQueue) {
            let unit = self.unit_for_write(op.lpn);
            self.enqueue(unit as usize, op, now, events);
        }
        /// Whether the back end uses the placement that the host requests for writes.
        #[inline(always)]
        fn heeds_placement(&self) -> bool {
            false
        }
        /// Notifies the back end of a write request of the host, before any of its pages is written. Called only if
        /// [`Work::heeds_placement`] returns true.
        fn accept(&mut self, _asked: Asked) {}
        /// Called once per event, after all operations of the event have been queued.
        fn settle(&mut self, _now: Time, _events: &mut EventQueue) {}
        /// Processes the event of a resource. If an operation finished, stores it in `done`, which must be empty.
        /// Returns the unit to activate afterwards. Returns `None` for an event that is internal to the back end, that
        /// is, if no operation finished and no unit became idle.
        fn on_event(
            &mut self,
            resource: usize,
            now: Time,
            events: &mut EventQueue,
            done: &mut Option<Done>,
        ) -> Option<usize>;
        /// Returns another operation that finished with the last event. `None` if there is none left.
        fn more_done(&mut self) -> Option<Done> {
            None
        }
        /// Starts the next operation of a unit, if the unit is free and an operation waits.
        fn activate(&mut self, unit: usize, now: Time, events: &mut EventQueue);
        /// Whether a power loss may destroy data that the back end has acknowledged but not flushed.
        #[inline]
        fn is_volatile(&self) -> bool {
            false
        }
        /// Completes the flush `op` when all earlier writes survive a power loss. Called only if
        /// [`Work::is_volatile`] returns true.
        fn flush(&mut self, _op: PageOp, _now: Time, _events: &mut EventQueue) {}
        /// Adds to `lost` the pages whose newest contents would be destroyed by a power loss at this instant.
        fn lost(&self, _lost: &mut Vec<Lpn>) {}
        /// Trims a page.
        fn trim(&mut self, lpn: Lpn, now: Time, events: &mut EventQueue);
        /// Notifies the back end that the host has written a page to the buffer at `now`. The buffer's policy is
        /// notified first.
        #[inline(always)]
        fn note_write(&mut self, _lpn: Lpn, _now: Time) {}
        /// Prefetches the table entries that an operation on the page accesses first.
        fn prefetch(&self, _lpn: Lpn) {}
        /// Prefetches the state of the block with the page's old copy.
        fn prefetch_old_copy(&self, _lpn: Lpn) {}
        /// Prefetches the state of the block with the old copy of `next`, and the map entry of `later`. Both pages
        /// will be written soon, `next` first.
        #[inline(always)]
        fn prefetch_ahead(&self, next: Lpn, later: Lpn) {
            self.prefetch(later);
            self.prefetch_old_copy(next);
        }
        /// Starts or stops the record of the units in which the load or the drain time (time until all queued work is
        /// done) has changed.
        fn follow_times(&mut self, _on: bool) {}
        /// Returns the record of the units in which the load or the estimated drain time ([`Backend::drain_time`]
        /// without `exact`) has changed. Returns `None` if there is no record.
        #[inline]
        fn time_changes(&self) -> Option<&ChipChanges> {
            None
        }
        /// Whether [`Work::take_moved`] has any pages to return.
        #[inline(always)]
        fn has_moved(&self) -> bool {
            false
        }
        /// Returns the pages whose unit the back end has changed on its own since the last call: pages moved to other
        /// units, and trimmed pages whose copies have been dropped. Pages that the front end wrote are not included.
        fn take_moved(&mut self) -> MovedPages {
            MovedPages::default()
        }
        /// Returns the set of idle units ([`Backend::is_idle`]); `None` if the back end keeps no such set. A unit that
        /// becomes idle enters the set when it is next activated.
        #[inline]
        fn idle_units(&self) -> Option<&ChipSet> {
            None
        }
        /// Resets all counters and clocks to zero.
        fn reset_stats(&mut self, now: Time);
    }
}
