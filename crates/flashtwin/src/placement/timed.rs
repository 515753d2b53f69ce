//! Functions for a back end that simulates time. Tables and rules are the same as without time, but each step of a
//! collection is executed separately.

use super::device::{Placed, Untimed};
use super::ids::Resolved;
use super::scheme::{Class, Survivors};
use crate::units::{Lpn, Ppn};

impl Placed {
    /// Returns the flash page that holds a logical page's copy.
    #[inline]
    pub(crate) fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.units.lookup(lpn)
    }

    /// Returns the number of logical pages with a copy.
    pub(crate) fn pages_mapped(&self) -> u64 {
        self.units.mapped()
    }

    /// Returns the number of pages that have not been assigned to a write since the last erase of their unit. Unwritten
    /// pages of units that were closed early are included.
    pub(crate) fn free_pages(&self) -> u64 {
        let units = 0..self.units.shape.groups * self.units.shape.units;
        units.map(|unit| u64::from(self.unwritten(unit))).sum()
    }

    /// Returns the number of erases of each unit.
    pub(crate) fn erase_counts(&self) -> Vec<u32> {
        let units = 0..self.units.shape.groups * self.units.shape.units;
        units.map(|unit| self.units.unit(unit).erases).collect()
    }

    /// Resets all erase counts.
    pub(crate) fn reset_wear(&mut self) {
        self.units.reset_wear();
    }

    /// Returns the counts of the collections that were executed in no simulated time.
    pub(crate) fn untimed(&self) -> Untimed {
        self.untimed
    }

    /// Returns the watermark: a group collects if at most this number of its units is free.
    pub(crate) fn low(&self) -> u32 {
        self.low
    }

    /// Returns the early watermark: collections may begin early if at most this number of a group's units is free.
    pub(crate) fn early(&self) -> u32 {
        self.early
    }

    /// Returns the number of free units of a group.
    #[inline]
    pub(crate) fn free(&self, group: u32) -> u32 {
        self.units.free(group)
    }

    /// Whether the group has at most `low` free units.
    #[inline]
    pub(crate) fn is_low(&self, group: u32) -> bool {
        self.free(group) <= self.low
    }

    /// Returns the number of free pages in the open unit of class 0 in a group.
    pub(crate) fn open_pages(&self, group: u32) -> u32 {
        self.units.left(group, self.classes.host(0))
    }

    /// Returns whether the class has an open unit in the group. If there is none, tries to open one first.
    #[inline]
    pub(crate) fn opens(&mut self, group: u32, class: Class) -> bool {
        let owner = self.classes.host(class);
        self.units.frontier(group, owner).is_some() || self.open(group, class)
    }

    /// Returns all groups except `wanted`. Groups with more free units are first.
    pub(crate) fn others_by_room(&self, wanted: u32) -> Vec<u32> {
        let groups = 0..self.setup().groups;
        let mut others: Vec<u32> = groups.filter(|&group| group != wanted).collect();
        others.sort_by_key(|&group| (std::cmp::Reverse(self.units.free(group)), group));
        others
    }

    /// Counts a page that is written to another group than its id selects.
    pub(crate) fn count_redirected(&mut self) {
        self.redirected += 1;
    }

    /// Whether moved pages may be written to units of host pages.
    pub(crate) fn mixes_survivors(&self) -> bool {
        !matches!(self.survivors, Survivors::Apart | Survivors::Shared)
    }

    /// Returns the destination of a write with this placement id, or without one.
    #[inline]
    pub(crate) fn resolve(&self, id: Option<u16>) -> Resolved {
        self.ids.resolve(id)
    }

    // ---- programs ----

    /// Counts a page to which a place in a unit was assigned, but which is not programmed yet. While a unit has such
    /// pages, it is not collected.
    #[inline]
    pub(crate) fn await_program(&mut self, ppn: Ppn) {
        self.units.await_program(ppn);
    }

    /// Counts pages of a unit that have been programmed. Returns whether all pages assigned in the unit are now
    /// programmed.
    #[inline]
    pub(crate) fn programmed(&mut self, unit: u32, pages: u32) -> bool {
        self.units.programmed(unit, pages)
    }

    /// Whether a group has pages that are assigned to a place in a unit, but not programmed yet.
    pub(crate) fn is_awaited(&self, group: u32) -> bool {
        let mut opened = self.units.opened(group).iter();
        opened.any(|&unit| self.units.unit(unit).awaited > 0)
    }

    // ---- a unit that is collected ----

    #[inline]
    pub(crate) fn is_live(&self, unit: u32, page: u32) -> bool {
        self.units.is_live(unit, page)
    }

    /// Returns the logical page that is stored at page `page` of a unit, or was stored there before it became invalid.
    #[inline]
    pub(crate) fn lpn_at(&self, unit: u32, page: u32) -> Lpn {
        self.units.lpn_at(unit, page)
    }

    /// Returns the physical page number of page `page` of a unit.
    #[inline]
    pub(crate) fn place_of(&self, unit: u32, page: u32) -> Ppn {
        Ppn(unit * self.units.shape.pages + page)
    }

    /// Whether page `page` of a unit was assigned to a write, or can no longer be assigned because the unit is closed.
    #[inline]
    pub(crate) fn is_given(&self, unit: u32, page: u32) -> bool {
        let unit = self.units.unit(unit);
        !unit.bound || unit.given > page
    }

    /// Returns the number of pages of a unit that have not been assigned to a write. A closed unit has such pages only
    /// if it was closed early.
    pub(crate) fn unwritten(&self, unit: u32) -> u32 {
        self.units.shape.pages - self.units.unit(unit).given
    }

    /// Returns the number of live pages of a unit.
    pub(crate) fn live_of(&self, unit: u32) -> u32 {
        self.units.unit(unit).live
    }
}
