//! What a policy sees of the device.

use super::Page;
use crate::buffer::{DeviceView, PageId};
use crate::chips::ChipSet;
use crate::nand::Nand;
use crate::ssd::Address;
use crate::units::{ChipId, Lpn, Time};

pub(super) struct View<'a> {
    pub now: Time,
    pub pages: &'a [Page],
    pub nand: &'a Nand,
    pub address: &'a Address,
}

/// Runs something with the cache and what a policy sees of the device.
macro_rules! with_view {
    ($ssd:expr, |$cache:ident, $view:ident| $body:expr) => {{
        let $cache = &mut $ssd.cache;
        let $view = View {
            now: $ssd.now,
            pages: &$cache.pages,
            nand: &$ssd.nand,
            address: &$ssd.address,
        };
        $body
    }};
}
pub(super) use with_view;

impl DeviceView for View<'_> {
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
        let lpn = self.lpn(page);
        if self.address.static_placement {
            return Some(ChipId(self.address.chip(lpn) as u16));
        }
        let ftl = self.nand.ftl();
        ftl.lookup(lpn).map(|ppn| ChipId(ftl.chip_of(ppn) as u16))
    }
    #[inline]
    fn chips_in_gc(&self) -> &ChipSet {
        self.nand.chips_in_gc()
    }
    fn drain_time(&self, chip: ChipId, exact: bool) -> Time {
        self.nand.drain_time(chip.0 as usize, exact, self.now)
    }
    fn load(&self, chip: ChipId) -> Time {
        self.nand.load(chip.0 as usize)
    }
    fn chip_idle(&self, chip: ChipId) -> bool {
        self.nand.is_idle(chip.0 as usize)
    }
    fn free_blocks(&self, chip: ChipId) -> u32 {
        self.nand.ftl().free_blocks_of_chip(chip.0.into())
    }
    fn gc_trigger_blocks(&self, chip: ChipId) -> u32 {
        self.nand.ftl().gc_trigger_blocks_of_chip(chip.0.into())
    }
    fn open_pages(&self, chip: ChipId) -> u32 {
        self.nand.ftl().open_pages_of_chip(chip.0.into())
    }
}
