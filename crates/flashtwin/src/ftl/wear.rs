//! Wear: the number of erases that a block survives, and the distribution of erases over blocks.

use super::page::PageMap;
use crate::rng::Rng;

impl PageMap {
    /// Returns the number of erases that a block survives. With an endurance spread, this number is drawn from a
    /// nearly normal distribution. The seed is the block number, so the number is always the same for a block.
    #[inline]
    pub fn erases_survived(&self, block: u32) -> u32 {
        let limit = self.shape.erase_limit;
        match self.shape.endurance_spread {
            0 => limit,
            spread => drawn_limit(limit, spread, block),
        }
    }

    /// Whether the block is worn out. A worn-out block may not be erased any more, and keeps its contents.
    #[inline]
    pub fn is_spent(&self, block: u32) -> bool {
        // Without an erase limit, the erase count is not read, because reading it may cause a cache miss.
        self.shape.erase_limit != u32::MAX && self.erases_of(block) >= self.erases_survived(block)
    }

    /// Returns the number of worn-out blocks.
    pub fn spent_blocks(&self) -> u32 {
        let blocks = 0..self.tally.len() as u32;
        blocks.filter(|&block| self.is_spent(block)).count() as u32
    }

    /// Returns the free block of a pool with the fewest erases. Of equals, returns the first one from `from` on in
    /// circular order.
    pub(super) fn find_least_worn(&self, pool: u32, from: u32) -> Option<u32> {
        let blocks = self.shape.blocks_per_pool;
        let erases = |bit: u32| self.erases_of(pool * blocks + bit);
        (from..blocks)
            .chain(0..from)
            .filter(|&bit| self.is_free(pool, bit))
            .min_by_key(|&bit| erases(bit))
    }

    /// Returns the block that wear levelling collects: the one with the fewest erases, among the blocks that may be
    /// collected. `None` if its number of erases is not far enough below the mean of the pool. After the collection,
    /// its data are elsewhere, and the block is the next one to be written. This is the simplest form of the method of
    /// Chang, ACM SAC 2007.
    pub fn left_behind(&self, pool: u32) -> Option<u32> {
        let behind = self.shape.erases_behind?;
        let first = pool * self.shape.blocks_per_pool;
        let bits = 0..self.shape.blocks_per_pool;
        let erases = |bit: u32| self.erases_of(first + bit);
        let sum: u64 = bits.clone().map(|bit| u64::from(erases(bit))).sum();
        let mean = (sum / u64::from(self.shape.blocks_per_pool)) as u32;
        let sealed = |&bit: &u32| self.tallies(pool)[bit as usize] < PageMap::CANDIDATE_END;
        let least = bits.filter(sealed).min_by_key(|&bit| erases(bit))?;
        (erases(least).saturating_add(behind) <= mean).then_some(least)
    }
}

/// Draws the number of erases that a block survives. The sum of four uniform numbers is nearly normal. Its variance is
/// 1/3.
fn drawn_limit(limit: u32, spread: u32, block: u32) -> u32 {
    let bits = Rng::new(u64::from(block) ^ 0x77ea).next_u64();
    let sum: u64 = (0..4).map(|i| bits >> (16 * i) & 0xffff).sum();
    let deviate = (sum as f64 / 65_536.0 - 2.0) * 3f64.sqrt();
    let limit = f64::from(limit);
    (limit + limit * deviate * f64::from(spread) / 65_536.0).max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nand::Nand;
    use crate::spec::{self, DeviceSpec};
    use crate::units::Lpn;
    use crate::units::Stream;

    #[test]
    fn limits_have_the_mean_and_the_deviation_asked_for() {
        let limits: Vec<f64> = (0..20_000)
            .map(|block| f64::from(drawn_limit(3_000, 6_554, block)))
            .collect();
        let mean = limits.iter().sum::<f64>() / limits.len() as f64;
        let squares = limits.iter().map(|l| (l - mean) * (l - mean));
        let deviation = (squares.sum::<f64>() / limits.len() as f64).sqrt();
        assert!((mean - 3_000.0).abs() < 10.0, "{mean}");
        assert!((deviation - 300.0).abs() < 6.0, "{deviation}");
    }

    /// Returns a chip of 64 blocks. Each page was written once, in order.
    fn chip(overrides: &[(&str, &str)]) -> Nand {
        let mut all = vec![
            ("geometry.chips", "1"),
            ("geometry.planes_per_chip", "1"),
            ("geometry.blocks_per_plane", "64"),
            ("geometry.pages_per_block", "16"),
            ("geometry.reserve_percent", "20"),
            ("gc.low_percent", "4"),
            ("nand.parallel_units", "1"),
            ("buffer", "none"),
        ];
        all.extend(overrides);
        let profile = spec::builtin("demo").unwrap();
        let spec = DeviceSpec::with_overrides(profile, "demo", &all).unwrap();
        let mut nand = Nand::new(&spec);
        nand.ftl_mut().fill_sequential(false, |_, n| n);
        nand
    }

    /// Writes random pages of the first eighth of a chip. Returns the lowest and the highest erase count of a block.
    fn worn_by_hot_writes(levelling: &[(&str, &str)], seed: u64) -> (u32, u32) {
        let mut nand = chip(levelling);
        let mut rng = Rng::new(seed);
        let hot = u64::from(nand.ftl().shape.exported_pages) / 8;
        for _ in 0..40_000 {
            assert!(nand.write_untimed(0, Lpn(rng.below(hot) as u32), Stream::Cold));
        }
        nand.ftl().check().unwrap();
        let erases = nand.ftl().erase_counts();
        (*erases.iter().min().unwrap(), *erases.iter().max().unwrap())
    }

    #[test]
    fn levelling_narrows_the_wear_of_hot_writes() {
        for seed in crate::seeds(3) {
            let (none_min, none_max) = worn_by_hot_writes(&[], seed);
            let (dynamic_min, dynamic_max) =
                worn_by_hot_writes(&[("wear.levelling", "dynamic")], seed);
            let by_8 = [("wear.levelling", "static"), ("wear.erases_behind", "8")];
            let (static_min, static_max) = worn_by_hot_writes(&by_8, seed);
            // Without levelling, the cold blocks are never erased.
            assert_eq!((none_min, dynamic_min), (0, 0));
            assert!(dynamic_max <= none_max, "{dynamic_max} {none_max}");
            assert!(
                static_max - static_min < dynamic_max / 3,
                "{static_min} {static_max} {dynamic_max} {none_max}"
            );
        }
    }

    #[test]
    fn blocks_go_bad_one_after_the_other_and_none_is_erased_beyond_its_limit() {
        for seed in crate::seeds(3) {
            let mut nand = chip(&[
                ("wear.erase_limit", "30"),
                ("wear.endurance_spread_percent", "20"),
            ]);
            let mut rng = Rng::new(seed);
            let pages = u64::from(nand.ftl().shape.exported_pages);
            let mut spent = vec![0];
            while nand.write_untimed(0, Lpn(rng.below(pages) as u32), Stream::Cold) {
                let now = nand.ftl().spent_blocks();
                assert!(now >= spent[spent.len() - 1]);
                if now > spent[spent.len() - 1] {
                    nand.ftl().check().unwrap();
                    spent.push(now);
                }
            }
            assert!(spent.len() > 4, "{spent:?}");
            for (block, &erases) in nand.ftl().erase_counts().iter().enumerate() {
                assert!(
                    erases <= nand.ftl().erases_survived(block as u32),
                    "{block}"
                );
            }
        }
    }
}
