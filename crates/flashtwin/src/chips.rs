//! A set of chips: one bit per chip, and their number.

use crate::units::ChipId;

/// A set of chips, by number.
#[derive(Clone, Debug)]
pub struct ChipSet {
    /// Bits of the chips, and of two further numbers that are never in the set.
    words: Vec<u64>,
    of: u32,
    len: u32,
}

impl ChipSet {
    /// Returns the empty set, for `of` chips.
    pub fn none(of: u32) -> ChipSet {
        ChipSet {
            words: vec![0; (of as usize + 2).div_ceil(64)],
            of,
            len: 0,
        }
    }

    /// Returns the number of chips in the set.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no chip is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of all chips, in the set or not.
    #[inline]
    pub fn of(&self) -> u32 {
        self.of
    }

    /// Whether a chip is in the set.
    #[inline(always)]
    pub fn contains(&self, chip: ChipId) -> bool {
        self.words[chip.0 as usize / 64] >> (chip.0 % 64) & 1 == 1
    }

    /// Returns the word of bits for the chips numbered from 64 * `i` on.
    #[inline]
    pub(crate) fn word(&self, i: usize) -> u64 {
        self.words[i]
    }

    /// Adds a chip to the set, or removes it.
    #[inline]
    pub fn set(&mut self, chip: ChipId, present: bool) {
        let word = &mut self.words[chip.0 as usize / 64];
        let was = *word >> (chip.0 % 64) & 1;
        *word = *word & !(1 << (chip.0 % 64)) | u64::from(present) << (chip.0 % 64);
        self.len = self.len + u32::from(present) - was as u32;
    }
}
