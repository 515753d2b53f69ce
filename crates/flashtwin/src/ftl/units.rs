//! The map of a device that is written by units. A unit is a part of the flash: one superblock, or several. It is
//! opened for one owner (a kind of pages), filled in order, and collected and erased as a whole.
//!
//! The pages of a unit are numbered in the order in which they are assigned. The flash pages of all units are numbered
//! consecutively: page k of unit u is flash page u * P + k, where P is the number of pages per unit.
//!
//! A host write accesses the map entry of its page, the word with the live bit of the old copy, the record of the old
//! copy's unit, and the frontier. Only the frontier is usually in the processor's cache. A move accesses the map
//! entry, which [`Units::prefetch_moves`] prefetches. The tables need 4 bytes of memory per logical page, and 4.125
//! bytes per flash page.
//!
//! This file has the tables and the functions that change them. [`crate::placement`] chooses the owner of a unit, and
//! the unit to collect.

use std::collections::VecDeque;

use crate::divide::Divider;
use crate::memory::{large_table, prefetch, TrustedTable};
use crate::units::{Lpn, Ppn};

/// Marks a logical page without a flash page.
const UNMAPPED: u32 = u32::MAX;
/// Means "no unit".
pub(super) const NONE: u32 = u32::MAX;

/// Owner of a unit, as a number below [`UnitShape::owners`]. The owner determines which pages are written to the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner(pub u16);

/// Marks a free unit, which has no owner.
pub(super) const FREE: Owner = Owner(u16::MAX);

/// The order in which the free units of a group (the units on the same dies) are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reuse {
    /// The unit erased longest ago is used first. Units that were never erased precede all others, in the order of
    /// their numbers.
    Oldest,
    /// The unit with the fewest erases is used first; of equals, the one with the lowest number.
    LeastWorn,
}

/// Sizes of the tables of units. The flash must have fewer than 2^32 pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitShape {
    /// Number of groups of units. Each unit, with all its pages, belongs to one group.
    pub groups: u32,
    /// Units of a group.
    pub units: u32,
    /// Pages of a unit.
    pub pages: u32,
    /// Pages that the host sees.
    pub logical_pages: u32,
    /// Number of owners, at most 2^16 - 1.
    pub owners: u16,
    pub reuse: Reuse,
}

/// A unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    pub owner: Owner,
    /// Whether the unit is the frontier of its owner, that is, receives the owner's next pages.
    pub bound: bool,
    /// Sequence number: the number of units that the unit's group had opened before this one.
    pub sequence: u32,
    /// Number of pages of the unit that have been assigned to logical pages.
    pub given: u32,
    /// Number of live pages of the unit.
    pub live: u32,
    /// Number of assigned pages that are not yet completely programmed. Always 0 in simulations without time.
    pub awaited: u32,
    pub erases: u32,
    /// Host clock at the opening of the unit. The host clock is the number of pages that the host has written.
    pub opened_at: u64,
    /// Host clock when a page of the unit last became invalid. If no page has become invalid, equal to `opened_at`.
    pub last_death: u64,
}

/// The place assigned to a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    pub ppn: Ppn,
    pub unit: u32,
    /// Whether this page fills the unit. A full unit is no longer a frontier.
    pub full: bool,
}

/// A group of units.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Free units, in the order in which they are used next. With [`Reuse::LeastWorn`], in any order.
    pub(super) free: VecDeque<u32>,
    /// Units in use, in the order in which they were opened.
    pub(super) opened: Vec<u32>,
    /// Units opened so far.
    pub(super) sequence: u32,
    /// For each owner, the unit that receives its next page.
    pub(super) frontier: Vec<u32>,
}

/// Tables of all units, and the map.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    pub shape: UnitShape,
    /// Logical page (LPN) to flash page.
    pub(super) map: TrustedTable<u32>,
    /// Flash page to logical page (LPN); valid only if the live bit is set.
    pub(super) reverse: TrustedTable<u32>,
    /// Live bits of the flash pages. The bits of each unit begin with a new word.
    pub(super) live: TrustedTable<u64>,
    pub(super) units: TrustedTable<Unit>,
    pub(super) groups: Vec<Group>,
    /// Words of live bits of a unit.
    words: u32,
    by_pages: Divider,
    by_units: Divider,
    pub(super) mapped: u64,
}

impl Units {
    /// Creates the tables of a device that was never written.
    pub fn new(shape: UnitShape) -> Units {
        let n = shape.groups * shape.units;
        let words = shape.pages.div_ceil(64);
        let pages = n as usize * shape.pages as usize;
        let free = Unit {
            owner: FREE,
            bound: false,
            sequence: 0,
            given: 0,
            live: 0,
            awaited: 0,
            erases: 0,
            opened_at: 0,
            last_death: 0,
        };
        let group = |group: u32| Group {
            free: (group * shape.units..(group + 1) * shape.units).collect(),
            opened: Vec::with_capacity(shape.units as usize),
            sequence: 0,
            frontier: vec![NONE; usize::from(shape.owners)],
        };
        Units {
            shape,
            // SAFETY: indexed by LPN; callers refuse pages beyond the logical ones.
            map: unsafe { TrustedTable::new(large_table(UNMAPPED, shape.logical_pages as usize)) },
            // SAFETY: indexed by flash page. `map` and frontiers contain only pages of the flash.
            reverse: unsafe { TrustedTable::new(large_table(UNMAPPED, pages)) },
            // SAFETY: indexed by a word of a unit.
            live: unsafe { TrustedTable::new(vec![0; n as usize * words as usize]) },
            // SAFETY: indexed by unit.
            units: unsafe { TrustedTable::new(vec![free; n as usize]) },
            groups: (0..shape.groups).map(group).collect(),
            words,
            by_pages: Divider::new(shape.pages),
            by_units: Divider::new(shape.units),
            mapped: 0,
        }
    }

    // ---- where things are ----

    /// Returns the flash page that holds `lpn`, if any.
    #[inline(always)]
    pub fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        match self.map[lpn.0 as usize] {
            UNMAPPED => None,
            ppn => Some(Ppn(ppn)),
        }
    }

    /// Returns the unit of a flash page.
    #[inline(always)]
    pub fn unit_of(&self, ppn: Ppn) -> u32 {
        self.by_pages.div(ppn.0)
    }

    /// Returns the group of a unit.
    #[inline]
    pub fn group_of(&self, unit: u32) -> u32 {
        self.by_units.div(unit)
    }

    #[inline(always)]
    pub fn unit(&self, unit: u32) -> &Unit {
        &self.units[unit as usize]
    }

    /// Returns the logical page whose copy is at page `page` of a unit, or was there before it became invalid.
    #[inline(always)]
    pub fn lpn_at(&self, unit: u32, page: u32) -> Lpn {
        Lpn(self.reverse[(unit * self.shape.pages + page) as usize])
    }

    #[inline(always)]
    pub fn is_live(&self, unit: u32, page: u32) -> bool {
        self.live[(unit * self.words + page / 64) as usize] >> (page % 64) & 1 == 1
    }

    /// Returns the live bits of a unit.
    pub fn live_words(&self, unit: u32) -> &[u64] {
        self.live
            .part((unit * self.words) as usize, self.words as usize)
    }

    /// Returns the first live page of a unit.
    pub fn first_live(&self, unit: u32) -> Option<u32> {
        let words = self.live_words(unit);
        let word = words.iter().position(|&word| word != 0)?;
        Some(word as u32 * 64 + words[word].trailing_zeros())
    }

    /// Returns the number of free units of a group.
    #[inline(always)]
    pub fn free(&self, group: u32) -> u32 {
        self.groups[group as usize].free.len() as u32
    }

    /// Returns the free units of a group in the order in which they are used next.
    pub fn free_units(&self, group: u32) -> Vec<u32> {
        let mut free: Vec<u32> = self.groups[group as usize].free.iter().copied().collect();
        if self.shape.reuse == Reuse::LeastWorn {
            free.sort_by_key(|&unit| (self.unit(unit).erases, unit));
        }
        free
    }

    /// Returns the units of a group that are in use, in the order in which they were opened.
    #[inline]
    pub fn opened(&self, group: u32) -> &[u32] {
        &self.groups[group as usize].opened
    }

    /// Returns the number of units that a group has opened so far.
    #[inline]
    pub fn sequence(&self, group: u32) -> u32 {
        self.groups[group as usize].sequence
    }

    /// Returns the unit that receives the owner's next page; `None` if the owner has no frontier.
    #[inline(always)]
    pub fn frontier(&self, group: u32, owner: Owner) -> Option<u32> {
        match self.groups[group as usize].frontier[usize::from(owner.0)] {
            NONE => None,
            unit => Some(unit),
        }
    }

    /// Returns the number of pages that the owner's frontier can still receive. 0 if the owner has no frontier.
    #[inline]
    pub fn left(&self, group: u32, owner: Owner) -> u32 {
        let unit = self.frontier(group, owner);
        unit.map_or(0, |unit| self.shape.pages - self.unit(unit).given)
    }

    // ---- what changes them ----

    /// Opens the next free unit of a group as the frontier of an owner that has none. `None` if no unit is free.
    pub fn bind(&mut self, group: u32, owner: Owner, clock: u64) -> Option<u32> {
        debug_assert!(self.frontier(group, owner).is_none());
        let units = &self.units;
        let g = &mut self.groups[group as usize];
        let unit = match self.shape.reuse {
            Reuse::Oldest => g.free.pop_front()?,
            Reuse::LeastWorn => {
                let wear = |&(_, &unit): &(usize, &u32)| (units[unit as usize].erases, unit);
                let at = g.free.iter().enumerate().min_by_key(wear)?.0;
                g.free.swap_remove_back(at)?
            }
        };
        let u = &mut self.units[unit as usize];
        u.owner = owner;
        u.bound = true;
        u.sequence = g.sequence;
        (u.opened_at, u.last_death) = (clock, clock);
        g.sequence += 1;
        g.opened.push(unit);
        g.frontier[usize::from(owner.0)] = unit;
        Some(unit)
    }

    /// Assigns the next page of the owner's frontier to a logical page. The owner must have a frontier. The caller
    /// must have invalidated the old copy of the logical page.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn give(&mut self, group: u32, owner: Owner, lpn: Lpn) -> Given {
        let unit = self.groups[group as usize].frontier[usize::from(owner.0)];
        let u = &mut self.units[unit as usize];
        let page = u.given;
        u.given += 1;
        u.live += 1;
        let full = u.given == self.shape.pages;
        let ppn = unit * self.shape.pages + page;
        self.reverse[ppn as usize] = lpn.0;
        self.map[lpn.0 as usize] = ppn;
        self.live[(unit * self.words + page / 64) as usize] |= 1 << (page % 64);
        if full {
            self.unbind(group, owner);
        }
        Given {
            ppn: Ppn(ppn),
            unit,
            full,
        }
    }

    /// Increments the number of mapped pages, because a logical page without a copy now gets one.
    #[inline(always)]
    pub fn count_mapped(&mut self) {
        self.mapped += 1;
    }

    /// Closes the owner's frontier, even if it is not full. Returns its unit; `None` if the owner had no frontier.
    pub fn close(&mut self, group: u32, owner: Owner) -> Option<u32> {
        self.frontier(group, owner)?;
        Some(self.unbind(group, owner))
    }

    #[inline(never)]
    fn unbind(&mut self, group: u32, owner: Owner) -> u32 {
        let frontier = &mut self.groups[group as usize].frontier[usize::from(owner.0)];
        let unit = std::mem::replace(frontier, NONE);
        self.units[unit as usize].bound = false;
        unit
    }

    /// Marks the flash page `ppn` as no longer live, and returns its unit. Does not change the map entry of its
    /// logical page.
    #[inline(always)]
    pub fn kill(&mut self, ppn: Ppn, clock: u64) -> u32 {
        let (unit, page) = self.by_pages.div_rem(ppn.0);
        self.clear(unit, page);
        self.units[unit as usize].last_death = clock;
        unit
    }

    /// Unmaps a logical page. Returns the unit that had its copy; `None` if it had no copy.
    pub fn unmap(&mut self, lpn: Lpn, clock: u64) -> Option<u32> {
        let ppn = self.lookup(lpn)?;
        self.map[lpn.0 as usize] = UNMAPPED;
        self.mapped -= 1;
        Some(self.kill(ppn, clock))
    }

    /// Clears the live bit of page `page` of a unit, before the page moves to another unit.
    #[inline(always)]
    pub fn clear(&mut self, unit: u32, page: u32) {
        let word = &mut self.live[(unit * self.words + page / 64) as usize];
        debug_assert!(*word >> (page % 64) & 1 == 1, "page {page} is not live");
        *word &= !(1 << (page % 64));
        self.units[unit as usize].live -= 1;
    }

    /// Erases a unit and makes it free. The unit must have no live page, and must not be a frontier.
    pub fn erase(&mut self, unit: u32) {
        let group = self.group_of(unit) as usize;
        let u = &mut self.units[unit as usize];
        debug_assert!(u.live == 0 && !u.bound && u.owner != FREE);
        u.owner = FREE;
        u.given = 0;
        u.erases += 1;
        let sequence = u.sequence;
        let (g, units) = (&mut self.groups[group], &self.units);
        let order = |&other: &u32| units[other as usize].sequence;
        let at = g.opened.binary_search_by_key(&sequence, order);
        g.opened.remove(at.expect("it is in use"));
        g.free.push_back(unit);
    }

    /// Counts a page as assigned but not yet programmed.
    #[inline]
    pub fn await_program(&mut self, ppn: Ppn) {
        let unit = self.unit_of(ppn) as usize;
        self.units[unit].awaited += 1;
    }

    /// Counts `pages` pages of a unit as programmed. Returns whether all assigned pages of the unit are now
    /// programmed.
    #[inline]
    pub fn programmed(&mut self, unit: u32, pages: u32) -> bool {
        let u = &mut self.units[unit as usize];
        u.awaited -= pages;
        u.awaited == 0
    }

    /// Returns the host clock (the number of pages that the host has written) at the last opening of a unit or
    /// invalidation of a page; 0 if neither has happened.
    pub fn latest(&self) -> u64 {
        let of = |unit: &Unit| unit.opened_at.max(unit.last_death);
        self.units.iter().map(of).max().unwrap_or(0)
    }

    /// Resets all erase counts.
    pub fn reset_wear(&mut self) {
        self.units.iter_mut().for_each(|unit| unit.erases = 0);
    }

    /// Returns the number of logical pages with a copy.
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    // ---- hints ----

    /// Prefetches the data that a write of `lpn` accesses first: its map entry.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.map, lpn.0 as usize);
    }

    /// Prefetches the word with the live bit of the old copy of `lpn`. The map entry of `lpn` should be in the
    /// processor's cache already.
    #[inline(always)]
    pub fn prefetch_old_copy(&self, lpn: Lpn) {
        let ppn = self.map[lpn.0 as usize];
        if ppn != UNMAPPED {
            let (unit, page) = self.by_pages.div_rem(ppn);
            prefetch(&self.live, (unit * self.words + page / 64) as usize);
        }
    }

    /// Prefetches the map entries of the live pages in one word of live bits of a unit. A word stands for 64 pages.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn prefetch_moves(&self, unit: u32, word: u32) {
        if word >= self.words {
            return;
        }
        let mut bits = self.live[(unit * self.words + word) as usize];
        let first = (unit * self.shape.pages + word * 64) as usize;
        while bits != 0 {
            let lpn = self.reverse[first + bits.trailing_zeros() as usize];
            prefetch(&self.map, lpn as usize);
            bits &= bits - 1;
        }
    }

    // ---- checks ----

    /// Checks that the tables agree with each other: the map and its inverse, the live bits and counts of the units,
    /// and the lists of free and opened units and of frontiers. Reads all tables of the device.
    ///
    /// # Errors
    /// The error names the first disagreement.
    pub fn check(&self) -> Result<(), String> {
        let mut mapped = 0;
        for (lpn, &ppn) in self.map.iter().enumerate() {
            if ppn != UNMAPPED {
                let (unit, page) = self.by_pages.div_rem(ppn);
                if !self.is_live(unit, page) || self.lpn_at(unit, page).0 as usize != lpn {
                    return Err(format!(
                        "page {lpn} is mapped to {ppn}, which holds another"
                    ));
                }
                mapped += 1;
            }
        }
        let mut live = 0;
        for (number, unit) in self.units.iter().enumerate() {
            let bits: u32 = self
                .live_words(number as u32)
                .iter()
                .map(|word| word.count_ones())
                .sum();
            if bits != unit.live || unit.live > unit.given {
                return Err(format!(
                    "unit {number}: {bits} live bits, {} live, {} given",
                    unit.live, unit.given
                ));
            }
            if unit.owner == FREE && (unit.given > 0 || unit.bound) {
                return Err(format!("unit {number} is free and holds pages"));
            }
            live += u64::from(unit.live);
        }
        if (live, mapped) != (self.mapped, self.mapped) {
            return Err(format!(
                "{mapped} pages are mapped, {live} live, {} counted",
                self.mapped
            ));
        }
        (0..self.shape.groups).try_for_each(|group| self.check_group(group))
    }

    fn check_group(&self, group: u32) -> Result<(), String> {
        let g = &self.groups[group as usize];
        let mut all: Vec<u32> = g.free.iter().chain(&g.opened).copied().collect();
        all.sort_unstable();
        let expected = group * self.shape.units..(group + 1) * self.shape.units;
        if !all.iter().copied().eq(expected) {
            return Err(format!("group {group}: a unit is in two lists or in none"));
        }
        let free_is_free = g.free.iter().all(|&u| self.unit(u).owner == FREE);
        let used_is_owned = g.opened.iter().all(|&u| self.unit(u).owner != FREE);
        if !free_is_free || !used_is_owned {
            return Err(format!("group {group}: a unit is in the wrong list"));
        }
        let sequences: Vec<u32> = g.opened.iter().map(|&u| self.unit(u).sequence).collect();
        if !sequences.is_sorted_by(|a, b| a < b) {
            return Err(format!("group {group}: units are not in their order"));
        }
        let bound = g.opened.iter().filter(|&&u| self.unit(u).bound).count();
        let frontiers = g.frontier.iter().enumerate().filter(|(_, &u)| u != NONE);
        for (owner, &unit) in frontiers.clone() {
            let u = self.unit(unit);
            let may_be = u.bound && usize::from(u.owner.0) == owner;
            if !may_be || u.given == 0 || u.given == self.shape.pages {
                return Err(format!("group {group}: frontier {unit} of owner {owner}"));
            }
        }
        match frontiers.count() == bound {
            true => Ok(()),
            false => Err(format!("group {group}: a bound unit is no frontier")),
        }
    }
}
