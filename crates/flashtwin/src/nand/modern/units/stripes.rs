//! The dies and blocks in which the pages of a unit are.
//!
//! The pages of a unit are numbered in the order in which they are written. One program writes a *row* of pages. The
//! rows go to the dies of the group in turn. With `n` dies, row `r` of a unit is on die `r mod n`. It is row `r / n`
//! among the rows of the unit on this die.

use crate::divide::Divider;
use crate::placement::Setup;
use crate::spec::DeviceSpec;
use crate::units::Ppn;

#[derive(Clone, Copy, Debug)]
pub(super) struct Stripes {
    /// Dies of a group.
    pub dies: u32,
    /// Pages of a row.
    pub row: u32,
    /// Rows of a unit on each die.
    pub rows: u32,
    /// Blocks of a unit on each die.
    pub blocks: u32,
    by_pages: Divider,
    by_units: Divider,
    by_row: Divider,
    by_dies: Divider,
}

impl Stripes {
    pub fn new(spec: &DeviceSpec, setup: &Setup) -> Stripes {
        let dies = spec.geometry.chips / setup.groups;
        let row = spec.pages_per_program();
        Stripes {
            dies,
            row,
            rows: setup.unit_pages / dies / row,
            blocks: setup.unit_pages / dies / spec.geometry.pages_per_block,
            by_pages: Divider::new(setup.unit_pages),
            by_units: Divider::new(setup.units),
            by_row: Divider::new(row),
            by_dies: Divider::new(dies),
        }
    }

    /// Returns the dies of a group.
    pub fn dies_of(&self, group: u32) -> std::ops::Range<usize> {
        (group * self.dies) as usize..((group + 1) * self.dies) as usize
    }

    /// Returns the group of a die.
    #[inline]
    pub fn group_of(&self, die: usize) -> u32 {
        self.by_dies.div(die as u32)
    }

    /// Returns the unit of a page.
    #[inline]
    pub fn unit_of(&self, ppn: Ppn) -> u32 {
        self.by_pages.div(ppn.0)
    }

    /// Returns the die that has a page.
    #[inline]
    pub fn die_of(&self, ppn: Ppn) -> usize {
        let (unit, page) = self.by_pages.div_rem(ppn.0);
        let in_group = self.by_dies.div_rem(self.by_row.div(page)).1;
        (self.by_units.div(unit) * self.dies + in_group) as usize
    }

    /// Returns the number of a page if pages are counted block by block. This number determines the page's position in
    /// its block, and thus the time to read it.
    #[inline]
    pub fn physical(&self, ppn: Ppn) -> Ppn {
        let (unit, page) = self.by_pages.div_rem(ppn.0);
        let (row, in_row) = self.by_row.div_rem(page);
        let (line, die) = self.by_dies.div_rem(row);
        Ppn(((unit * self.dies + die) * self.rows + line) * self.row + in_row)
    }

    /// Returns the number of a page within its block.
    #[inline]
    pub fn page_in_block(&self, ppn: Ppn) -> u32 {
        self.physical(ppn).0 % (self.rows * self.row / self.blocks)
    }

    /// Returns the row of a page, numbered over all units of the device.
    #[inline]
    pub fn row_of(&self, ppn: Ppn) -> u32 {
        self.by_row.div(ppn.0)
    }

    /// Returns the first page, numbered within the unit, of row `line` of a die. `line` counts the rows of a unit on
    /// this die.
    #[inline]
    pub fn first_page(&self, line: u32, die: usize) -> u32 {
        let in_group = self.by_dies.div_rem(die as u32).1;
        (line * self.dies + in_group) * self.row
    }
}
