//! The policy's view of the device.

use super::page::Page;
use crate::buffer::{DeviceView, PageId};
use crate::chips::{ChipChanges, ChipSet};
use crate::device::{Backend, NO_HOME};
use crate::units::{ChipId, Lpn, Time};

pub(super) struct View<'a, B> {
    pub now: Time,
    pub pages: &'a [Page],
    /// Number of pages of the policy that are in flight.
    pub in_flight: u32,
    pub backend: &'a B,
}

/// Evaluates an expression in which two names are defined: one for the cache, and one for the policy's view of the
/// device.
macro_rules! with_view {
    ($device:expr, |$cache:ident, $view:ident| $body:expr) => {{
        let $cache = &mut $device.cache;
        let $view = View {
            now: $device.now,
            pages: &$cache.pages,
            in_flight: $cache.in_flight,
            backend: &$device.backend,
        };
        $body
    }};
}
pub(super) use with_view;

impl<B: Backend> DeviceView for View<'_, B> {
    #[inline]
    fn now(&self) -> Time {
        self.now
    }
    #[inline]
    fn dirty(&self, page: PageId) -> bool {
        self.pages[page.0 as usize].dirty
    }
    #[inline]
    fn lpn(&self, page: PageId) -> Lpn {
        self.pages[page.0 as usize].lpn
    }
    #[inline]
    fn chip(&self, page: PageId) -> Option<ChipId> {
        let page = &self.pages[page.0 as usize];
        match page.home {
            NO_HOME => self.backend.unit_of(page.lpn),
            home => Some(home),
        }
    }
    #[inline]
    fn in_flight(&self, page: PageId) -> bool {
        !self.pages[page.0 as usize].is_ready()
    }
    #[inline]
    fn pages_in_flight(&self) -> u32 {
        self.in_flight
    }
    #[inline]
    fn programming(&self, page: PageId) -> bool {
        self.pages[page.0 as usize].is_programming()
    }
    #[inline]
    fn chips_in_gc(&self) -> &ChipSet {
        self.backend.units_in_gc()
    }
    fn drain_time(&self, chip: ChipId, exact: bool) -> Time {
        self.backend.drain_time(chip.0 as usize, exact, self.now)
    }
    fn load(&self, chip: ChipId) -> Time {
        self.backend.load(chip.0 as usize)
    }
    #[inline]
    fn time_changes(&self) -> Option<&ChipChanges> {
        self.backend.time_changes()
    }
    #[inline]
    fn idle_chips(&self) -> Option<&ChipSet> {
        self.backend.idle_units()
    }
    fn chip_idle(&self, chip: ChipId) -> bool {
        self.backend.is_idle(chip.0 as usize)
    }
    fn free_blocks(&self, chip: ChipId) -> u32 {
        self.backend.free_blocks(chip.0 as usize)
    }
    fn gc_trigger_blocks(&self, chip: ChipId) -> u32 {
        self.backend.gc_trigger_blocks(chip.0 as usize)
    }
    fn open_pages(&self, chip: ChipId) -> u32 {
        self.backend.open_pages(chip.0 as usize)
    }
}
