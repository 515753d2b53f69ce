//! Initial states of the page map: every page written once in order, or on each chip the state of a chip that was
//! randomly written for a long time.

use super::page::{PageMap, UNMAPPED};
use crate::units::Lpn;

impl PageMap {
    /// Returns the number of logical pages of one chip.
    pub fn pages_per_chip(&self) -> u32 {
        self.shape.exported_pages / self.shape.chips
    }

    /// Returns the `i`-th logical page of `chip` with static striping.
    #[inline]
    pub fn lpn_of(&self, chip: u32, i: u32) -> Lpn {
        let stride = self.shape.stride_pages;
        Lpn((i / stride * self.shape.chips + chip) * stride + i % stride)
    }

    /// Writes every logical page once in ascending order. This is the initial state of the reference (DiskSim with
    /// Microsoft's SSD extension). `order(chip, n)` returns the n-th block to fill in a chip. With `keep_last_open`,
    /// the last filled block of each chip is never collected (quirk Q5 of the reference, see docs/devices.md).
    pub fn fill_sequential(&mut self, keep_last_open: bool, order: impl Fn(u32, u32) -> u32) {
        let s = self.shape;
        let (pools, chip_blocks) = (
            s.chips * s.pools_per_chip,
            s.usable_per_plane * s.planes_per_chip,
        );
        for pool in 0..pools {
            let open = self.pool(pool).active - pool * s.blocks_per_pool;
            self.set_free(pool, open, true);
        }
        for chip in 0..s.chips {
            let mut page = 0;
            for n in 0..chip_blocks {
                let block = order(chip, n);
                let pool = self.pool_of(block);
                self.set_free(pool, block - pool * s.blocks_per_pool, false);
                self.rows.set_opened(block, n + 1);
                self.set_sealed(block, n + 1 < chip_blocks || !keep_last_open);
                for i in 0..s.data_pages {
                    let lpn = self.lpn_of(chip, page);
                    self.put(block * s.pages_per_block + i, lpn.0);
                    page += 1;
                }
            }
            self.last_seq[chip as usize] = chip_blocks;
            for in_chip in 0..s.pools_per_chip {
                let pool = chip * s.pools_per_chip + in_chip;
                // The open block is the first free block of the pool. If the pool is a whole chip and blocks are filled
                // in turn over the planes (striped), this block is in plane 0.
                let bit = (0..s.blocks_per_pool).find(|&bit| self.is_free(pool, bit));
                let bit = bit.expect("a checked spec reserves blocks in every pool");
                self.set_free(pool, bit, false);
                self.last_seq[chip as usize] += 1;
                let block = pool * s.blocks_per_pool + bit;
                self.rows.set_opened(block, self.last_seq[chip as usize]);
                let free = (0..s.blocks_per_pool)
                    .filter(|&b| self.is_free(pool, b))
                    .count() as u32;
                self.set_frontier(pool, bit, 0, free + s.free_count_bias);
                self.set_cursor(pool, 0);
            }
        }
        self.mapped = s.exported_pages as u64;
        self.recount();
    }

    /// Copies the state of `worn`, a map of one chip, to the chip `chip` of this map. Logical page i of `worn` becomes
    /// the logical page `(i * factor + shift) % n` of `chip`, where n is the number of logical pages per chip. `factor`
    /// and n must have no common divisor. Must be called once for each chip, in ascending order.
    pub fn stamp(&mut self, chip: u32, worn: &PageMap, factor: u32, shift: u32) {
        let s = self.shape;
        let blocks = (s.planes_per_chip * s.blocks_per_plane) as usize;
        let first_block = chip as usize * blocks;
        let first_page = first_block as u32 * s.pages_per_block;
        fn copy<T: Copy>(to: &mut [T], chip: u32, from: &[T]) {
            let n = from.len();
            to[chip as usize * n..][..n].copy_from_slice(from);
        }
        self.rows.copy_from(first_block as u32, &worn.rows);
        copy(&mut self.tally, chip, &worn.tally);
        copy(&mut self.free_bits, chip, &worn.free_bits);
        copy(&mut self.last_seq, chip, &worn.last_seq);
        for (i, from) in worn.pools.iter().enumerate() {
            let mut pool = from.clone();
            pool.active += first_block as u32;
            self.pools[chip as usize * s.pools_per_chip as usize + i] = pool;
        }
        for (i, from) in worn.hot.iter().enumerate() {
            let at = chip as usize * s.pools_per_chip as usize + i;
            if let Some(hot) = self.hot.get_mut(at) {
                *hot = *from;
                hot.active += first_block as u32;
            }
        }
        // The pages are copied in ascending order of their new numbers. Random accesses then stay within one chip's
        // part of the tables.
        for (renamed, local) in originals(self.pages_per_chip(), factor, shift).enumerate() {
            let ppn = worn.map[local as usize];
            if ppn != UNMAPPED {
                let lpn = self.lpn_of(chip, renamed as u32);
                self.reverse[(first_page + ppn) as usize] = lpn.0;
                self.map[lpn.0 as usize] = first_page + ppn;
            }
        }
        self.mapped += worn.mapped;
        self.recount();
        if chip + 1 == s.chips {
            self.regroup();
        }
    }

    /// Resets all erase counts, because a preconditioned drive counts as new.
    pub fn reset_wear(&mut self) {
        self.rows.forget_erases();
        self.erased_at.fill(0);
        self.erase_clock = 0;
    }
}

/// Yields the inverse of the permutation i -> (i * factor + shift) mod n: first the number that it maps to 0, then the
/// number that it maps to 1, and so on up to n - 1. `factor` and n must have no common divisor.
fn originals(n: u32, factor: u32, shift: u32) -> impl Iterator<Item = u32> {
    let n = u64::from(n);
    let step = inverse(u64::from(factor) % n, n);
    let first = (n - u64::from(shift) % n) * step % n;
    (0..n).scan(first, move |at, _| {
        let this = *at;
        *at += step;
        if *at >= n {
            *at -= n;
        }
        Some(this as u32)
    })
}

/// Returns the inverse of `factor` modulo `n`, computed by Euclid's algorithm.
fn inverse(factor: u64, n: u64) -> u64 {
    let (mut rest, mut next) = (n as i64, factor as i64);
    let (mut of_rest, mut of_next) = (0, 1);
    while next != 0 {
        let quotient = rest / next;
        (rest, next) = (next, rest - quotient * next);
        (of_rest, of_next) = (of_next, of_rest - quotient * of_next);
    }
    debug_assert_eq!(rest, 1, "{factor} and {n} have a common divisor");
    of_rest.rem_euclid(n as i64) as u64
}

/// Returns the first number from `from` on that has no common divisor with `n`: a factor for [`PageMap::stamp`].
pub(crate) fn coprime(n: u32, from: u32) -> u32 {
    let gcd = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (from.max(1)..).find(|&f| gcd(f, n) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn originals_are_renamed_to_all_pages_in_order() {
        for (n, factor, shift) in [
            (1, 1, 0),
            (2, 3, 1),
            (12, 5, 40),
            (1023, 1022, 7),
            (877_464, 600_001, u32::MAX),
        ] {
            let factor = coprime(n, factor);
            let mut next = 0;
            for i in originals(n, factor, shift) {
                let renamed = (u64::from(i) * u64::from(factor) + u64::from(shift)) % u64::from(n);
                assert_eq!(renamed, next, "{i} * {factor} + {shift} mod {n}");
                next += 1;
            }
            assert_eq!(next, u64::from(n));
        }
    }

    #[test]
    fn coprime_starts_at_the_given_number() {
        assert_eq!(coprime(12, 2), 5);
        assert_eq!(coprime(1, 0), 1);
        assert_eq!(coprime(877_464, 600_000) % 2, 1);
    }
}
