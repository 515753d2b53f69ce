//! Finds the greedy victim of a pool: the block with the fewest live pages, among those that may be collected.
//!
//! The tallies (live pages per block) of a pool are adjacent 16-bit numbers. A strip is a run of up to 64 tallies.
//! The map keeps the lowest tally of each strip up to date. This module searches the strip with the lowest tally for
//! the block. The comparison of 64 tallies takes a few vector instructions per collected block. To keep the tallies
//! sorted at every invalidation would cost more.

use super::page::{PageMap, NOT_SEALED};
use crate::memory::prefetch;

impl PageMap {
    /// Returns the lowest of [`PageMap::tallies`].
    #[inline]
    pub fn least_tally(&self, pool: u32) -> i16 {
        let strips = self.least_of_strips(pool).iter();
        strips.fold(NOT_SEALED, |least, &t| least.min(t))
    }

    /// Returns the lowest tally of each strip of a pool.
    fn least_of_strips(&self, pool: u32) -> &[i16] {
        let n = (self.shape.blocks_per_pool >> self.strip_shift) as usize;
        self.least.part(pool as usize * n, n)
    }

    /// Returns the strip of a block.
    #[inline(always)]
    pub(super) fn strip_of(&self, block: u32) -> usize {
        (block >> self.strip_shift) as usize
    }

    /// Returns the position in the pool of the block with the lowest tally, among the blocks that may be collected.
    /// Of equals, returns the last one if `last` is true, otherwise the first one. `None` if no block may be
    /// collected.
    #[inline]
    pub fn position_of_least(&self, pool: u32, last: bool) -> Option<u32> {
        let least = self.least_tally(pool);
        if least >= PageMap::CANDIDATE_END {
            return None;
        }
        let (strips, tallies) = (self.least_of_strips(pool), self.tallies(pool));
        let n = tallies.len() / strips.len();
        let first = position(strips, least, last)? * n;
        let at = first + position(&tallies[first..first + n], least, last)?;
        Some(at as u32)
    }

    /// Returns the lowest number of live pages of a block, among the blocks of the chip that may be collected. 0 if
    /// no block may be collected.
    #[inline]
    pub fn fewest_live_of_chip(&self, chip: u32) -> u32 {
        let n = self.shape.pools_per_chip * self.shape.blocks_per_pool;
        let n = (n >> self.strip_shift) as usize;
        let strips = self.least.part(chip as usize * n, n).iter();
        let least = strips.fold(NOT_SEALED, |a, &b| a.min(b));
        if least < NOT_SEALED {
            least as u32
        } else {
            0
        }
    }

    /// Prefetches the tallies of a strip.
    #[inline(always)]
    pub(super) fn prefetch_strip(&self, strip: usize) {
        let n = 1 << self.strip_shift;
        let first = strip * n;
        for line in (first..first + n).step_by(64 / size_of::<i16>()) {
            prefetch(&self.tally, line);
        }
    }

    /// Searches the tallies of a strip for the lowest one, and returns it.
    pub(super) fn find_least(&self, strip: usize) -> i16 {
        let n = 1 << self.strip_shift;
        let tallies = self.tally.part(strip * n, n).iter();
        tallies.fold(NOT_SEALED, |least, &t| least.min(t))
    }
}

/// Number of tallies compared in one step.
const STEP: usize = 16;

/// Returns the position of the tally `least`. If it occurs several times, returns the last position if `last` is
/// true, otherwise the first one.
fn position(tallies: &[i16], least: i16, last: bool) -> Option<usize> {
    let has = |of: &[i16; STEP]| of.iter().fold(false, |found, &t| found | (t == least));
    let is_least = |&t: &i16| t == least;
    let (steps, rest) = tallies.as_chunks::<STEP>();
    let in_rest = |at| steps.len() * STEP + at;
    if last {
        if let Some(at) = rest.iter().rposition(is_least) {
            return Some(in_rest(at));
        }
        let step = steps.iter().rposition(has)?;
        let at = steps[step].iter().rposition(is_least)?;
        return Some(step * STEP + at);
    }
    match steps.iter().position(has) {
        Some(step) => (steps[step].iter().position(is_least)).map(|at| step * STEP + at),
        None => rest.iter().position(is_least).map(in_rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSED: i16 = PageMap::CANDIDATE_END;

    #[test]
    fn takes_the_fewest_and_breaks_ties_as_asked() {
        let tallies = [CLOSED, 40, 12, CLOSED | 3, 12, 63];
        assert_eq!(position(&tallies, 12, false), Some(2));
        assert_eq!(position(&tallies, 12, true), Some(4));
        assert_eq!(position(&tallies, 13, false), None);
        assert_eq!(position(&[], 13, true), None);
    }

    #[test]
    fn vector_gc_1() {
        // A pool of 20 blocks. Only the blocks 7, 9 and 13 are sealed, with 40, 12 and 12 live pages. The victim is
        // block 9.
        let mut tallies = [CLOSED; 20];
        (tallies[7], tallies[9], tallies[13]) = (40, 12, 12);
        let least = *tallies.iter().min().expect("there are some");
        assert_eq!((position(&tallies, least, false), least), (Some(9), 12));
    }

    #[test]
    fn agrees_with_a_plain_scan_at_every_length() {
        for seed in crate::seeds(3) {
            let mut rng = crate::rng::Rng::new(seed);
            for len in 1..200 {
                let tallies: Vec<i16> = (0..len).map(|_| rng.below(9) as i16).collect();
                for least in 0..9 {
                    let first = tallies.iter().position(|&t| t == least);
                    let last = tallies.iter().rposition(|&t| t == least);
                    assert_eq!(position(&tallies, least, false), first);
                    assert_eq!(position(&tallies, least, true), last);
                }
            }
        }
    }
}
