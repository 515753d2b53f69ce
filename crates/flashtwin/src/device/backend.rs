//! Interface between a device's front end and its back end: the flash of an SSD, or the members of an array. A back
//! end executes page operations and returns them when they have completed.
//!
//! Contract: while it processes one event, the front end queues any number of operations ([`Backend::enqueue`]) and
//! then calls [`Backend::settle`] once. It advances the clock to the next event of the queue, calls
//! [`Backend::on_event`], processes the finished operations, takes further ones ([`Backend::more_done`]), and calls
//! [`Backend::activate`] for the unit that `on_event` returned. A back end never calls the front end.

use crate::chips::ChipSet;
use crate::events::EventQueue;
use crate::metrics::FlashReport;
use crate::nand::{Done, PageOp};
use crate::units::{ChipId, Lpn, Time};

/// The back end of a device. A *unit* executes one operation at a time and collects its own garbage: a chip of an
/// SSD, or a member of an array.
pub trait Backend: Clone + std::fmt::Debug + sealed::Work {
    /// Unit on which the page is, or would be written; `None` if it has no copy yet and may be written to any unit.
    fn unit_of(&self, lpn: Lpn) -> Option<ChipId>;
    /// The units that are collecting garbage now.
    fn units_in_gc(&self) -> &ChipSet;
    /// Time until a unit has completed its work: ECR's CQCT, as printed or exactly (D-14).
    fn drain_time(&self, unit: usize, exact: bool, now: Time) -> Time;
    /// Time of the reads and writes that a unit has to do.
    fn load(&self, unit: usize) -> Time;
    /// The unit has no operation and none waits.
    fn is_idle(&self, unit: usize) -> bool;
    /// Free blocks of a unit; `u32::MAX` for a dead die, which never collects.
    fn free_blocks(&self, unit: usize) -> u32;
    /// At how many free blocks it collects.
    fn gc_trigger_blocks(&self, unit: usize) -> u32;
    /// Free pages of the unit's open block; `u32::MAX` for a dead die.
    fn open_pages(&self, unit: usize) -> u32;
    /// Returns the counters since `since`.
    fn report(&self, now: Time, since: Time) -> FlashReport;
    /// Returns the counters without the wear of blocks, which takes a pass over them.
    fn report_without_wear(&self, now: Time, since: Time) -> FlashReport;
}

/// The part of the interface that is the front end's own.
pub(crate) mod sealed {
    use super::*;

    /// There is no single unit.
    pub const NO_HOME: u32 = u32::MAX;

    /// Executes operations and returns them.
    ///
    /// # Safety
    /// No method of this trait or of [`Backend`] changes what [`Work::kind`] returns.
    pub unsafe trait Work {
        /// The front end before it is a plain one.
        const PLAIN: bool = false;
        /// Tag of the back end's variant, for which the request path is specialized.
        #[inline(always)]
        fn kind(&self) -> u8 {
            0
        }
        /// Name of the copy of its code that runs behind a front end, a plain one or any.
        fn path(&self, plain_front: bool) -> &'static str;
        /// Lets the compiler omit code for other kinds.
        ///
        /// # Safety
        /// [`Work::kind`] must be `kind`.
        #[inline(always)]
        unsafe fn assume(&self, _kind: u8) {}
        /// Resources of the event queue this back end uses, from 0.
        fn resources(&self) -> usize;
        /// Unit a write of the page goes to.
        fn unit_for_write(&mut self, lpn: Lpn) -> u32;
        /// The only unit that copies of the page are written to; [`NO_HOME`] if there may be several.
        #[inline(always)]
        fn home(&self, _lpn: Lpn) -> u32 {
            NO_HOME
        }
        /// Unit that holds the page's copy, if there is one.
        fn unit_of_copy(&self, lpn: Lpn) -> Option<u32>;
        /// Queues an operation.
        fn enqueue(&mut self, unit: usize, op: PageOp, now: Time, events: &mut EventQueue);
        /// All that is queued at this instant, by this event, has been queued.
        fn settle(&mut self, _now: Time, _events: &mut EventQueue) {}
        /// Processes the event of a resource and returns the unit to activate afterwards; `None` if the event is
        /// internal to the back end, with nothing finished and no unit idle. Stores the operation that finished, if
        /// any, in `done`, which is empty before.
        fn on_event(
            &mut self,
            resource: usize,
            now: Time,
            events: &mut EventQueue,
            done: &mut Option<Done>,
        ) -> Option<usize>;
        /// A further operation that finished with the last event.
        fn more_done(&mut self) -> Option<Done> {
            None
        }
        /// Lets a unit start its next operation, if it is free and there is one.
        fn activate(&mut self, unit: usize, now: Time, events: &mut EventQueue);
        /// True if a power loss may take written, acknowledged data that has not been flushed.
        #[inline]
        fn is_volatile(&self) -> bool {
            false
        }
        /// Returns `op` as done once all earlier writes are safe from a power loss; called only if
        /// [`Work::is_volatile`].
        fn flush(&mut self, _op: PageOp, _now: Time, _events: &mut EventQueue) {}
        /// Adds the pages whose newest contents a power loss would take.
        fn lost(&self, _lost: &mut Vec<Lpn>) {}
        /// Forgets a page.
        fn trim(&mut self, lpn: Lpn, now: Time, events: &mut EventQueue);
        /// The host has written a page to the buffer at `now`, and the buffer's policy knows.
        #[inline(always)]
        fn note_write(&mut self, _lpn: Lpn, _now: Time) {}
        /// Starts loading what an operation on the page will touch first.
        fn prefetch(&self, _lpn: Lpn) {}
        /// Starts loading what follows from that.
        fn prefetch_old_copy(&self, _lpn: Lpn) {}
        /// Starts loading data for pages that will be written soon: the state of the old copy of `next`, and the map
        /// entry of `later`.
        #[inline(always)]
        fn prefetch_ahead(&self, next: Lpn, later: Lpn) {
            self.prefetch(later);
            self.prefetch_old_copy(next);
        }
        /// Starts all counters and clocks at zero again.
        fn reset_stats(&mut self, now: Time);
    }
}
