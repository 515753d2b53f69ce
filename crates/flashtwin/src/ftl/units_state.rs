//! Saved form of the map of a device that is written by units, as part of a device's snapshot. It is a sequence of
//! little-endian arrays. The sizes of the device determine their lengths. A loaded map is validated completely before
//! it is used.

use std::io::{self, Read, Write};

use super::state::{
    check_counts, check_erases, read_u32, read_u64, write_u32, write_u64, NUMBER_MAX,
};
use super::units::{Owner, Unit, Units, FREE, NONE};
use super::StateError;

/// Number of 32-bit numbers in the saved form of a unit, which also has two 64-bit numbers.
const NUMBERS: usize = 5;

impl Units {
    /// Whether no page was ever written.
    pub fn is_new(&self) -> bool {
        (self.units.iter()).all(|unit| unit.owner == FREE && unit.erases == 0)
    }

    /// Writes the whole state. All assigned pages must have been programmed.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        write_u32(out, &self.map)?;
        write_u32(out, &self.reverse)?;
        write_u64(out, &self.live)?;
        for unit in self.units.iter() {
            let owner = u32::from(unit.owner.0);
            let numbers = [
                owner,
                unit.bound.into(),
                unit.sequence,
                unit.given,
                unit.erases,
            ];
            write_u32(out, &numbers)?;
            write_u64(out, &[unit.opened_at, unit.last_death])?;
        }
        for group in &self.groups {
            write_u32(out, &[group.sequence, group.free.len() as u32])?;
            let free: Vec<u32> = group.free.iter().copied().collect();
            write_u32(out, &free)?;
        }
        Ok(())
    }

    /// Replaces the contents of this map by a saved state of a map with the same sizes. After an error, the map must
    /// not be used any more.
    ///
    /// # Errors
    /// Fails if reading fails, or if the state is inconsistent.
    pub fn load(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        read_u32(input, &mut self.map)?;
        read_u32(input, &mut self.reverse)?;
        read_u64(input, &mut self.live)?;
        self.load_units(input)?;
        self.load_groups(input)?;
        self.mapped = self
            .live
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        self.check_numbers()?;
        self.check().map_err(StateError::Inconsistent)
    }

    fn load_units(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        let owners = self.shape.owners;
        for at in 0..self.units.len() {
            let (mut n, mut clocks) = ([0; NUMBERS], [0; 2]);
            read_u32(input, &mut n)?;
            read_u64(input, &mut clocks)?;
            let [owner, bound, sequence, given, erases] = n;
            let owner = u16::try_from(owner).ok().map(Owner);
            let owner = owner.filter(|&owner| owner == FREE || owner.0 < owners);
            let (Some(owner), true) = (owner, given <= self.shape.pages && bound <= 1) else {
                return Err(wrong(format!(
                    "unit {at} has no such owner, or too many pages"
                )));
            };
            let live = self.live_words(at as u32).iter();
            self.units[at] = Unit {
                owner,
                bound: bound == 1,
                sequence,
                given,
                live: live.map(|word| word.count_ones()).sum(),
                awaited: 0,
                erases,
                opened_at: clocks[0],
                last_death: clocks[1],
            };
        }
        let all = |of: fn(&Unit) -> u32| -> Vec<u32> { self.units.iter().map(of).collect() };
        check_erases(&all(|unit| unit.erases))?;
        check_counts(
            &all(|unit| unit.sequence),
            NUMBER_MAX,
            ("sequence number", "unit"),
        )
    }

    fn load_groups(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        for group in 0..self.shape.groups {
            let numbers = group * self.shape.units..(group + 1) * self.shape.units;
            let mut n = [0; 2];
            read_u32(input, &mut n)?;
            let [sequence, free] = n;
            if free > self.shape.units {
                return Err(wrong(format!("group {group} has {free} free units")));
            }
            let mut list = vec![0; free as usize];
            read_u32(input, &mut list)?;
            let units = &self.units;
            let is_free = |unit: &u32| units[*unit as usize].owner == FREE;
            let mut sorted = list.clone();
            sorted.sort_unstable();
            if !sorted.into_iter().eq(numbers.clone().filter(is_free)) {
                return Err(wrong(format!("the free units of group {group} are others")));
            }
            let mut opened: Vec<u32> = numbers.filter(|unit| !is_free(unit)).collect();
            opened.sort_unstable_by_key(|&unit| units[unit as usize].sequence);
            let numbers_of = opened.windows(2).map(|two| [two[0], two[1]]);
            let mut twice = numbers_of.map(|two| two.map(|unit| units[unit as usize].sequence));
            let last = opened.last().map(|&unit| units[unit as usize].sequence);
            if twice.any(|[a, b]| a == b) || last.is_some_and(|last| last >= sequence) {
                return Err(wrong(format!("units of group {group} were opened at once")));
            }
            let mut frontier = vec![NONE; usize::from(self.shape.owners)];
            for &unit in opened.iter().filter(|&&unit| units[unit as usize].bound) {
                let of = &mut frontier[usize::from(units[unit as usize].owner.0)];
                if std::mem::replace(of, unit) != NONE {
                    return Err(wrong(format!(
                        "an owner of group {group} has two open units"
                    )));
                }
            }
            let g = &mut self.groups[group as usize];
            (g.sequence, g.free) = (sequence, list.into());
            (g.opened, g.frontier) = (opened, frontier);
        }
        check_counts(
            &[self.groups[0].sequence],
            NUMBER_MAX,
            ("sequence number", "group"),
        )
    }

    /// Checks that the map contains only pages of the flash, and that open units are neither empty nor full.
    fn check_numbers(&self) -> Result<(), StateError> {
        let pages = self.reverse.len() as u32;
        if self.map.iter().any(|&ppn| ppn != NONE && ppn >= pages) {
            return Err(wrong("a page is mapped to a place beyond the flash".into()));
        }
        let is_full =
            |unit: &&Unit| unit.bound && (unit.given == 0 || unit.given >= self.shape.pages);
        match self.units.iter().find(is_full) {
            Some(_) => Err(wrong("an open unit is empty or full".into())),
            None => Ok(()),
        }
    }
}

fn wrong(what: String) -> StateError {
    StateError::Inconsistent(what)
}
