//! The plain front end: faster copies of the request path for common devices. They do not test for features that these
//! devices lack.
//!
//! The request path is written once and compiled seven times for SSDs and three times for arrays. One copy is for any
//! device. The others are for *plain* devices ([`Device::is_plain`]): with any back end, and with each of the two most
//! frequent kinds of flash, in each case with and without write-backs ahead of eviction. [`Device::submit`] and the
//! event loop choose the copy. In the code, the constants [`Work::PLAIN`] and [`Work::AHEAD`] distinguish the copies.

use std::mem::offset_of;

use super::link::Mode;
use super::{Backend, Device};
use crate::chips::{ChipChanges, ChipSet, MovedPages};
use crate::device::Work;
use crate::events::EventQueue;
use crate::metrics::FlashReport;
use crate::nand::{Asked, Done, PageOp};
use crate::units::{ChipId, Lpn, Time};

/// A compiled copy of the request path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path(pub u8);

impl Path {
    pub const ANY: Path = Path(0);

    /// Returns the copy of the path for a plain front end, with a back end of this [`Work::kind`]. `ahead` is whether
    /// the policy writes pages ahead of their eviction.
    pub const fn plain(kind: u8, ahead: bool) -> Path {
        Path(1 + 2 * kind + ahead as u8)
    }
}

/// Evaluates an expression in the copy of the request path that the device, a `Device<B>`, uses. No copies are compiled
/// for kinds that the back end `B` does not have.
macro_rules! on_path {
    ($device:expr, $on:ident => $work:expr) => {
        on_path!($device, $on => $work, 0 1 2)
    };
    ($device:expr, $on:ident => $work:expr, $($kind:literal)+) => {
        match $device.path {
            $(Path(path) if const { $kind < B::KINDS } && path == Path::plain($kind, false).0 => {
                let $on = $device.as_plain::<$kind, false>();
                $work
            })+
            $(Path(path) if const { $kind < B::KINDS } && path == Path::plain($kind, true).0 => {
                let $on = $device.as_plain::<$kind, true>();
                $work
            })+
            _ => {
                let $on = $device;
                $work
            }
        }
    };
}
pub(super) use on_path;

/// A back end of the given kind behind a plain front end. `AHEAD` is the value of [`Work::AHEAD`].
#[derive(Clone, Debug)]
#[repr(transparent)]
pub(crate) struct Plain<B, const KIND: u8, const AHEAD: bool>(B);

/// Fails to compile if a device and a plain device differ in size, alignment or the places of fields.
const fn assert_same_layout<B: Backend, P: Backend>() {
    assert!(size_of::<Device<B>>() == size_of::<Device<P>>());
    assert!(align_of::<Device<B>>() == align_of::<Device<P>>());
    assert!(offset_of!(Device<B>, backend) == offset_of!(Device<P>, backend));
    assert!(offset_of!(Device<B>, queues) == offset_of!(Device<P>, queues));
    assert!(offset_of!(Device<B>, broken) == offset_of!(Device<P>, broken));
}

impl<B: Backend> Device<B> {
    /// Whether the device is plain. A plain device has one submission queue without limits, a bus without command
    /// overhead, a buffer in blocking mode, and a page size that is a power of two. Its processor and buffer memory
    /// take no time. Its policy does not write back when chips become idle, and its blocks occupy only the room of
    /// their cached pages. Its flash does not use the placement of writes, nothing is logged, and the device measures
    /// its requests itself.
    fn is_plain(&self) -> bool {
        let front = self.queues.are_plain()
            && self.link.has_mode_alone(Mode::Bus)
            && self.latencies.are_none
            && self.controller.is_free_of_cost()
            && self.address.page_shift.is_some();
        front
            && self.cache.is_plain()
            && !self.programs.is_on()
            && !self.metrics.are_elsewhere()
            && !self.backend.heeds_placement()
    }

    /// Chooses the copy of the request path. Must be called whenever a condition of [`Device::is_plain`] may have
    /// changed.
    pub(super) fn find_path(&mut self) {
        self.path = self.path_now();
    }

    /// Returns the names of the copies of the code that are in use, first that of the front end, then that of the
    /// back end. For example: "plain front end, msr flash". The table of paths in ARCHITECTURE.md has the conditions.
    pub fn path(&self) -> String {
        let (front, is_plain) = match self.path {
            Path::ANY => ("general", false),
            _ => ("plain", true),
        };
        format!("{front} front end, {}", self.backend.path(is_plain))
    }

    pub(super) fn path_now(&self) -> Path {
        match self.is_plain() {
            true => {
                debug_assert!(self.backend.kind() < B::KINDS);
                Path::plain(self.backend.kind(), self.cache.writes_ahead())
            }
            false => Path::ANY,
        }
    }

    /// Returns a reference to this device as a plain device with a back end of the kind `KIND`.
    ///
    /// # Panics
    /// Panics if the device's back end is of another kind.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn as_plain<const KIND: u8, const AHEAD: bool>(
        &mut self,
    ) -> &mut Device<Plain<B, KIND, AHEAD>> {
        const { assert_same_layout::<B, Plain<B, KIND, AHEAD>>() };
        assert!(
            self.backend.kind() == KIND,
            "the path of another kind of back end"
        );
        // SAFETY: both types have the same layout. `Device` is `repr(C)`, and its fields are the same except the back
        // end. `Plain` has the layout of the back end that it contains. A back end of this kind is a valid `Plain`.
        unsafe { &mut *std::ptr::from_mut(self).cast() }
    }
}

impl<B: Backend, const KIND: u8, const AHEAD: bool> Plain<B, KIND, AHEAD> {
    #[inline(always)]
    fn get(&self) -> &B {
        // SAFETY: only `as_plain` creates a `Plain`, and only from a back end of this kind. No method called here
        // changes the kind: see `Work`.
        unsafe { self.0.assume(KIND) };
        &self.0
    }

    #[inline(always)]
    fn get_mut(&mut self) -> &mut B {
        // SAFETY: see `get`.
        unsafe { self.0.assume(KIND) };
        &mut self.0
    }
}

// SAFETY: the kind is a constant.
unsafe impl<B: Backend, const KIND: u8, const AHEAD: bool> Work for Plain<B, KIND, AHEAD> {
    const PLAIN: bool = true;
    const AHEAD: bool = AHEAD;

    fn path(&self, plain_front: bool) -> &'static str {
        self.get().path(plain_front)
    }

    fn resources(&self) -> usize {
        self.0.resources()
    }

    #[inline(always)]
    fn unit_for_write(&mut self, lpn: Lpn) -> u32 {
        self.get_mut().unit_for_write(lpn)
    }

    #[inline(always)]
    fn home(&self, lpn: Lpn) -> ChipId {
        self.get().home(lpn)
    }

    #[inline(always)]
    fn unit_of_copy(&self, lpn: Lpn) -> Option<u32> {
        self.get().unit_of_copy(lpn)
    }

    #[inline(always)]
    fn enqueue(&mut self, unit: usize, op: PageOp, now: Time, events: &mut EventQueue) {
        self.get_mut().enqueue(unit, op, now, events);
    }

    #[inline(always)]
    fn enqueue_write(&mut self, op: PageOp, asked: Asked, now: Time, events: &mut EventQueue) {
        self.get_mut().enqueue_write(op, asked, now, events);
    }

    #[inline(always)]
    fn settle(&mut self, now: Time, events: &mut EventQueue) {
        self.get_mut().settle(now, events);
    }

    #[inline(always)]
    fn on_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        done: &mut Option<Done>,
    ) -> Option<usize> {
        self.get_mut().on_event(resource, now, events, done)
    }

    #[inline(always)]
    fn more_done(&mut self) -> Option<Done> {
        self.get_mut().more_done()
    }

    #[inline(always)]
    fn activate(&mut self, unit: usize, now: Time, events: &mut EventQueue) {
        self.get_mut().activate(unit, now, events);
    }

    fn is_volatile(&self) -> bool {
        self.0.is_volatile()
    }

    fn flush(&mut self, op: PageOp, now: Time, events: &mut EventQueue) {
        self.0.flush(op, now, events);
    }

    fn lost(&self, lost: &mut Vec<Lpn>) {
        self.0.lost(lost);
    }

    fn trim(&mut self, lpn: Lpn, now: Time, events: &mut EventQueue) {
        self.0.trim(lpn, now, events);
    }

    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        self.get().prefetch(lpn);
    }

    #[inline(always)]
    fn prefetch_old_copy(&self, lpn: Lpn) {
        self.get().prefetch_old_copy(lpn);
    }

    #[inline(always)]
    fn note_write(&mut self, lpn: Lpn, now: Time) {
        self.get_mut().note_write(lpn, now);
    }

    #[inline(always)]
    fn prefetch_ahead(&self, next: Lpn, later: Lpn) {
        self.get().prefetch_ahead(next, later);
    }

    #[inline]
    fn time_changes(&self) -> Option<&ChipChanges> {
        self.get().time_changes()
    }

    #[inline(always)]
    fn has_moved(&self) -> bool {
        self.get().has_moved()
    }

    fn take_moved(&mut self) -> MovedPages {
        self.0.take_moved()
    }

    #[inline]
    fn idle_units(&self) -> Option<&ChipSet> {
        self.get().idle_units()
    }

    fn reset_stats(&mut self, now: Time) {
        self.0.reset_stats(now);
    }
}

impl<B: Backend, const KIND: u8, const AHEAD: bool> Backend for Plain<B, KIND, AHEAD> {
    #[inline(always)]
    fn unit_of(&self, lpn: Lpn) -> Option<ChipId> {
        self.get().unit_of(lpn)
    }

    #[inline(always)]
    fn units_in_gc(&self) -> &ChipSet {
        self.get().units_in_gc()
    }

    #[inline(always)]
    fn drain_time(&self, unit: usize, exact: bool, now: Time) -> Time {
        self.get().drain_time(unit, exact, now)
    }

    fn load(&self, unit: usize) -> Time {
        self.get().load(unit)
    }

    #[inline(always)]
    fn is_idle(&self, unit: usize) -> bool {
        self.get().is_idle(unit)
    }

    fn free_blocks(&self, unit: usize) -> u32 {
        self.get().free_blocks(unit)
    }

    fn gc_trigger_blocks(&self, unit: usize) -> u32 {
        self.get().gc_trigger_blocks(unit)
    }

    fn open_pages(&self, unit: usize) -> u32 {
        self.get().open_pages(unit)
    }

    fn report(&self, now: Time, since: Time) -> FlashReport {
        self.0.report(now, since)
    }

    fn report_without_wear(&self, now: Time, since: Time) -> FlashReport {
        self.0.report_without_wear(now, since)
    }
}

#[cfg(test)]
mod tests;
