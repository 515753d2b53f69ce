//! The device as a back end with time uses it: the same tables and rules, with the steps of a collection apart.

use super::device::{Placed, Untimed};
use super::ids::Resolved;
use super::scheme::{Class, Survivors};
use crate::units::{Lpn, Ppn};

impl Placed {
    /// The page that holds a logical page's copy.
    #[inline]
    pub(crate) fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.units.lookup(lpn)
    }

    /// Logical pages with a copy.
    pub(crate) fn pages_mapped(&self) -> u64 {
        self.units.mapped()
    }

    /// Number of pages that no write has been given since their erase. Those of units closed early are among them.
    pub(crate) fn free_pages(&self) -> u64 {
        let units = 0..self.units.shape.groups * self.units.shape.units;
        units.map(|unit| u64::from(self.unwritten(unit))).sum()
    }

    /// Erases of each unit.
    pub(crate) fn erase_counts(&self) -> Vec<u32> {
        let units = 0..self.units.shape.groups * self.units.shape.units;
        units.map(|unit| self.units.unit(unit).erases).collect()
    }

    /// Resets all erase counts.
    pub(crate) fn reset_wear(&mut self) {
        self.units.reset_wear();
    }

    /// Work of the collections that took no time.
    pub(crate) fn untimed(&self) -> Untimed {
        self.untimed
    }

    /// Free units at or below which a group collects.
    pub(crate) fn low(&self) -> u32 {
        self.low
    }

    /// Free units at or below which collections begin early.
    pub(crate) fn early(&self) -> u32 {
        self.early
    }

    /// Free units of a group.
    #[inline]
    pub(crate) fn free(&self, group: u32) -> u32 {
        self.units.free(group)
    }

    /// Whether the group has at most `low` free units.
    #[inline]
    pub(crate) fn is_low(&self, group: u32) -> bool {
        self.free(group) <= self.low
    }

    /// Pages of the open unit of a group's first class.
    pub(crate) fn open_pages(&self, group: u32) -> u32 {
        self.units.left(group, self.classes.host(0))
    }

    /// Whether the class has an open unit in the group, or opens one now.
    #[inline]
    pub(crate) fn opens(&mut self, group: u32, class: Class) -> bool {
        let owner = self.classes.host(class);
        self.units.frontier(group, owner).is_some() || self.open(group, class)
    }

    /// The other groups, those with more free units first.
    pub(crate) fn others_by_room(&self, wanted: u32) -> Vec<u32> {
        let groups = 0..self.setup().groups;
        let mut others: Vec<u32> = groups.filter(|&group| group != wanted).collect();
        others.sort_by_key(|&group| (std::cmp::Reverse(self.units.free(group)), group));
        others
    }

    /// Counts a page that goes to another group than its id names.
    pub(crate) fn count_redirected(&mut self) {
        self.redirected += 1;
    }

    /// Whether survivors may go to units of the host's pages.
    pub(crate) fn mixes_survivors(&self) -> bool {
        !matches!(self.survivors, Survivors::Apart | Survivors::Shared)
    }

    /// The destination of a write with this id.
    #[inline]
    pub(crate) fn resolve(&self, id: Option<u16>) -> Resolved {
        self.ids.resolve(id)
    }

    // ---- programs ----

    /// Counts a page that was given to a unit and is not programmed yet. A unit is collected only if it has none.
    #[inline]
    pub(crate) fn await_program(&mut self, ppn: Ppn) {
        self.units.await_program(ppn);
    }

    /// Counts pages of a unit that have been programmed; returns whether those were the last ones awaited.
    #[inline]
    pub(crate) fn programmed(&mut self, unit: u32, pages: u32) -> bool {
        self.units.programmed(unit, pages)
    }

    /// Whether pages of a group are not programmed yet.
    pub(crate) fn is_awaited(&self, group: u32) -> bool {
        let mut opened = self.units.opened(group).iter();
        opened.any(|&unit| self.units.unit(unit).awaited > 0)
    }

    // ---- a unit that is collected ----

    #[inline]
    pub(crate) fn is_live(&self, unit: u32, page: u32) -> bool {
        self.units.is_live(unit, page)
    }

    /// The place of a page of a unit.
    #[inline]
    pub(crate) fn place_of(&self, unit: u32, page: u32) -> Ppn {
        Ppn(unit * self.units.shape.pages + page)
    }

    /// Whether a page of a unit has been given to the map, or never will be.
    #[inline]
    pub(crate) fn is_given(&self, unit: u32, page: u32) -> bool {
        let unit = self.units.unit(unit);
        !unit.bound || unit.given > page
    }

    /// Pages of a unit that were never given to the map, since it was closed early.
    pub(crate) fn unwritten(&self, unit: u32) -> u32 {
        self.units.shape.pages - self.units.unit(unit).given
    }

    /// Live pages of a unit.
    pub(crate) fn live_of(&self, unit: u32) -> u32 {
        self.units.unit(unit).live
    }
}
