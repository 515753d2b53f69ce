//! Initial states: written once sequentially, or stamped from a chip that random writing wore in.

use super::page::PageMap;
use crate::divide::Divider;
use crate::units::{Lpn, Ppn};

impl PageMap {
    /// Logical pages of one chip.
    pub fn pages_per_chip(&self) -> u32 {
        self.shape.exported_pages / self.shape.chips
    }

    /// The logical page that is page `i` of `chip` (static striping).
    #[inline]
    pub fn lpn_of(&self, chip: u32, i: u32) -> Lpn {
        let stride = self.shape.stride_pages;
        Lpn((i / stride * self.shape.chips + chip) * stride + i % stride)
    }

    /// Every logical page written once in ascending order; `order(chip, n)` is the n-th block
    /// filled in a chip. The state the reference starts from: with `keep_last_open` the last filled
    /// block of each chip is never collected (quirk Q5).
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
                self.seq[block as usize] = n + 1;
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
                // The first block behind the filled ones: of plane 0 where a pool is a whole chip
                // striped over planes.
                let bit = (0..s.blocks_per_pool).find(|&bit| self.is_free(pool, bit));
                let bit = bit.expect("a checked spec reserves blocks in every pool");
                self.set_free(pool, bit, false);
                self.last_seq[chip as usize] += 1;
                let block = pool * s.blocks_per_pool + bit;
                self.seq[block as usize] = self.last_seq[chip as usize];
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

    /// Gives `chip` the state of the one chip of `worn`, with logical pages renamed by
    /// i -> (i * factor + shift) mod pages, `factor` having no divisor in common with them.
    pub fn stamp(&mut self, chip: u32, worn: &PageMap, factor: u32, shift: u32) {
        let s = self.shape;
        let renaming = Renaming::new(self.pages_per_chip(), factor, shift);
        let blocks = (s.planes_per_chip * s.blocks_per_plane) as usize;
        let first_block = chip as usize * blocks;
        let first_page = first_block as u32 * s.pages_per_block;
        fn copy<T: Copy>(to: &mut [T], chip: u32, from: &[T]) {
            let n = from.len();
            to[chip as usize * n..][..n].copy_from_slice(from);
        }
        copy(&mut self.live, chip, &worn.live);
        copy(&mut self.tally, chip, &worn.tally);
        copy(&mut self.seq, chip, &worn.seq);
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
        let stride = Divider::new(s.stride_pages);
        let chips = s.chips;
        for block in 0..blocks as u32 {
            let first = first_page + block * s.pages_per_block;
            let mut page = 0;
            while let Some(at) = worn.next_live(block, page) {
                let local = worn.lpn_at(Ppn(worn.first_ppn(block).0 + at)).0;
                let (row, in_row) = stride.div_rem(renaming.of(local));
                let lpn = (row * chips + chip) * stride.by() + in_row;
                self.reverse[(first + at) as usize] = lpn;
                self.map[lpn as usize] = first + at;
                page = at + 1;
            }
        }
        self.mapped += worn.mapped;
        self.recount();
    }

    /// Forgets all wear: a preconditioned drive counts as new.
    pub fn reset_wear(&mut self) {
        self.erases.fill(0);
        self.erased_at.fill(0);
        self.erase_clock = 0;
    }
}

/// i -> (i * factor + shift) mod n, without a division a page.
struct Renaming {
    n: u64,
    factor: u64,
    shift: u64,
    /// factor * 2^32 / n, rounded down: the quotient that it gives is at most one too small.
    inverse: u64,
}

impl Renaming {
    fn new(n: u32, factor: u32, shift: u32) -> Renaming {
        let n = u64::from(n.max(1));
        let factor = u64::from(factor) % n;
        Renaming {
            n,
            factor,
            shift: u64::from(shift) % n,
            inverse: (factor << 32) / n,
        }
    }

    /// `i` is below n.
    #[inline]
    fn of(&self, i: u32) -> u32 {
        let i = u64::from(i);
        let quotient = (i * self.inverse) >> 32;
        let wrap = |x: u64| if x >= self.n { x - self.n } else { x };
        let scaled = wrap(i * self.factor - quotient * self.n);
        wrap(scaled + self.shift) as u32
    }
}

/// Numbers without a common divisor with `n`, for [`PageMap::stamp`]: the first at or after `from`.
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
    fn renaming_is_the_remainder() {
        let mut rng = crate::rng::Rng::new(5);
        for n in [1, 2, 3, 1023, 1 << 20, 877_464, u32::MAX] {
            for _ in 0..200 {
                let (factor, shift) = (rng.next_u64() as u32, rng.next_u64() as u32);
                let renaming = Renaming::new(n, factor, shift);
                let any = rng.below(u64::from(n)) as u32;
                for i in [0, any, n - 1] {
                    let exact =
                        (u128::from(i) * u128::from(factor) + u128::from(shift)) % u128::from(n);
                    assert_eq!(
                        u128::from(renaming.of(i)),
                        exact,
                        "{i} * {factor} + {shift} mod {n}"
                    );
                }
            }
        }
    }

    #[test]
    fn coprime_starts_where_it_is_asked() {
        assert_eq!(coprime(12, 2), 5);
        assert_eq!(coprime(1, 0), 1);
        assert_eq!(coprime(877_464, 600_000) % 2, 1);
    }
}
