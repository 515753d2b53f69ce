//! The wear levelling of the reference (DiskSim with Microsoft's SSD extension): its cleaning policy 3 (D-99).
//!
//! The remaining life of a block is the number of erases that it still survives. If the greedy victim has little life
//! left, one of two methods applies:
//!
//! - Migration: the block is collected, and receives the data of the coldest block of its pool. These data are rarely
//!   rewritten, so the block rests. The coldest block becomes free.
//! - Rate limit: the block is skipped, with a probability that grows as its life shrinks.
//!
//! Both methods of the reference have bugs, which are not reproduced here. The bugs concern blocks at the end of their
//! life, and open blocks that count as cold.

use super::page::PageMap;
use crate::rng::Rng;
use crate::units::Ppn;

impl PageMap {
    /// Returns the number of erases that a block still survives.
    fn life(&self, block: u32) -> u64 {
        let survived = self.erases_survived(block);
        survived.saturating_sub(self.erases_of(block)).into()
    }

    /// Returns the sum of the remaining lives of all blocks of a pool, and the number of these blocks. Their quotient
    /// is the mean.
    fn lives(&self, pool: u32) -> (u64, u64) {
        let n = self.shape.blocks_per_pool;
        let sum = (pool * n..(pool + 1) * n)
            .map(|block| self.life(block))
            .sum();
        (sum, n.into())
    }

    /// Whether the remaining life of a block is below a fraction of the mean `sum / n`. `share` is this fraction, in
    /// units of 1/10 000.
    fn is_below(&self, block: u32, (sum, n): (u64, u64), share: u32) -> bool {
        u128::from(self.life(block) * n) * 10_000 < u128::from(sum) * u128::from(share)
    }

    /// Draws whether a victim is skipped. The probability is 1 - life / (mean life * share), and 0 if this value is
    /// negative. `share` is a fraction, in units of 1/10 000.
    fn is_passed_over(&self, block: u32, (sum, n): (u64, u64), share: u32, rng: &mut Rng) -> bool {
        if !self.is_below(block, (sum, n), share) {
            return false;
        }
        let life = u128::from(self.life(block) * n) * 10_000;
        let chance = (life << 32) / (u128::from(sum) * u128::from(share));
        u128::from(rng.below(1 << 32)) >= chance
    }

    /// Returns the victim of the reference's wear-aware cleaning in a pool: its position, and its number of live pages.
    /// In case of a migration, also returns the position of the coldest block, whose data move to the victim.
    ///
    /// The reference scans the blocks in order. A block is a candidate if no block before it has fewer live pages. The
    /// last candidate is tried first.
    pub fn wear_aware_victim(&self, pool: u32) -> Option<(u32, u32, Option<u32>)> {
        let wear = self.shape.wear_aware?;
        let lives = self.lives(pool);
        let mut rng = Rng::new(self.position_hash(pool));
        let tallies = self.tallies(pool);
        let mut end = tallies.len();
        loop {
            // Find the last block before `end` with the fewest live pages.
            let least = tallies[..end].iter().copied().min()?;
            if least >= PageMap::CANDIDATE_END {
                return None;
            }
            let bit = tallies[..end].iter().rposition(|&t| t == least)?;
            let block = pool * self.shape.blocks_per_pool + bit as u32;
            let is_last = tallies[..bit].iter().all(|&t| t >= PageMap::CANDIDATE_END);
            if is_last {
                return Some((bit as u32, least as u32, None));
            }
            if self.is_below(block, lives, wear.migrate_below) {
                if let Some(cold) = self.coldest(pool, bit as u32) {
                    return Some((bit as u32, least as u32, Some(cold)));
                }
            }
            if !self.is_passed_over(block, lives, wear.limit_below, &mut rng) {
                return Some((bit as u32, least as u32, None));
            }
            end = bit;
        }
    }

    /// Removes from `order` the blocks that the rate limit skips, except the last entry. `order` lists blocks of a pool
    /// in the order of their collection, fewest live pages first. The pool must be a whole chip.
    pub fn pass_over_worn<T>(&self, pool: u32, order: &mut Vec<T>, block_of: impl Fn(&T) -> u32) {
        let Some(wear) = self.shape.wear_aware else {
            return;
        };
        let lives = self.lives(pool);
        let mut rng = Rng::new(self.position_hash(pool));
        let mut left = order.len();
        order.retain(|entry| {
            left -= 1;
            left == 0 || !self.is_passed_over(block_of(entry), lives, wear.limit_below, &mut rng)
        });
    }

    /// Returns the coldest block of a pool except block `but`. This is the block erased longest ago, among those that
    /// may be collected and have live pages; of equals, the first. An open block is excluded, even if it is full, until
    /// another one is opened.
    fn coldest(&self, pool: u32, but: u32) -> Option<u32> {
        let first = pool * self.shape.blocks_per_pool;
        let holds = |&bit: &u32| {
            let tally = self.tallies(pool)[bit as usize];
            let is_last = self.pool(pool).active == first + bit
                || (self.hot.get(pool as usize)).is_some_and(|hot| hot.active == first + bit);
            !is_last && bit != but && tally > 0 && tally < PageMap::CANDIDATE_END
        };
        let erased_at = |&bit: &u32| self.erased_at[(first + bit) as usize];
        (0..self.shape.blocks_per_pool)
            .filter(holds)
            .min_by_key(erased_at)
    }

    /// Renumbers the times of the blocks' last erases from 1 on, and keeps their order. Called when the 32-bit erase
    /// clock has reached its end.
    #[cold]
    pub(super) fn renumber_erases(&mut self) {
        let mut used = self.erased_at.clone();
        used.push(0);
        used.sort_unstable();
        used.dedup();
        for at in &mut self.erased_at {
            *at = used.partition_point(|other| other < at) as u32;
        }
        self.erase_clock = used.len() as u32 - 1;
    }

    /// Moves the data of block `cold` to `worn`, a free block of the same pool. `worn` takes over the sequence number
    /// of `cold`, and thus its age. Returns the number of moved pages. The other pages of `worn` stay unwritten.
    pub fn migrate(&mut self, cold: u32, worn: u32) -> u32 {
        let pool = self.pool_of(worn);
        self.take_free(pool, worn);
        self.set_hot(worn, self.is_hot(cold));
        self.rows.set_opened(worn, self.seq_of(cold));
        let mut pages = 0;
        while let Some(page) = self.next_live(cold, 0) {
            let lpn = self.lpn_at(Ppn(self.first_ppn(cold).0 + page));
            self.unmap(lpn);
            self.mapped += 1;
            self.put(self.first_ppn(worn).0 + pages, lpn.0);
            pages += 1;
        }
        self.seal(worn);
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::Shape;
    use super::*;
    use crate::nand::{Cause, FlashEvent, Nand, Owner};
    use crate::spec::{builtin, DeviceSpec};
    use crate::units::Stream;
    use crate::units::{Lpn, Time};

    /// Returns a device with one plane of 16 blocks. A block has 7 data pages and a summary page, and survives 50
    /// erases.
    fn spec(more: &[(&str, &str)]) -> DeviceSpec {
        let mut overrides = vec![
            ("geometry.chips", "1"),
            ("geometry.planes_per_chip", "1"),
            ("geometry.blocks_per_plane", "16"),
            ("geometry.pages_per_block", "8"),
            ("geometry.reserve_percent", "30"),
            ("gc.low_percent", "10"),
            ("nand.parallel_units", "1"),
            ("wear.erase_limit", "50"),
            ("wear.levelling", "reference"),
            ("buffer", "none"),
        ];
        overrides.extend(more);
        DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &overrides).unwrap()
    }

    /// Returns a map with the given sealed blocks. Each block is given as (block, live pages, erases, time of the last
    /// erase). All other blocks are open or free.
    fn pool(more: &[(&str, &str)], blocks: &[(u32, u32, u32, u32)]) -> PageMap {
        let mut map = PageMap::new(Shape::of(&spec(more), true), 1);
        let mut lpn = 0;
        for &(block, live, erases, at) in blocks {
            map.take_free(0, block);
            for page in 0..live {
                map.put(block * 8 + page, lpn);
                map.mapped += 1;
                lpn += 1;
            }
            map.seal(block);
            map.rows.set_erases(block, erases);
            map.erased_at[block as usize] = at;
        }
        map.check().unwrap();
        map
    }

    /// Test vector WL-1. The candidates are blocks 2, 4, 7 and 9, with 6, 3, 3 and 1 live pages. Blocks 5 and 11 are no
    /// candidates, because a block before each of them has fewer live pages. A worn block has a remaining life of 38.
    /// The mean is then 49.25, and 38 is below 0.85 x 49.25 = 41.9.
    #[test]
    fn a_worn_victim_takes_the_coldest_data() {
        let blocks = |worn: u32| {
            let erases = |block| if block == worn { 12 } else { 0 };
            [
                (2, 6, 8),
                (4, 3, 2),
                (5, 5, 1),
                (7, 3, 9),
                (9, 1, 7),
                (11, 2, 1),
            ]
            .map(|(block, live, at)| (block, live, erases(block), at))
        };
        // No candidate is worn, so the victim is the greedy choice.
        assert_eq!(
            pool(&[], &blocks(0)).wear_aware_victim(0),
            Some((9, 1, None))
        );
        // Blocks 5 and 11 were erased longest ago, so the first of them is the coldest block. It need not be a
        // candidate.
        let victim = pool(&[], &blocks(9)).wear_aware_victim(0);
        assert_eq!(victim, Some((9, 1, Some(5))));
        // Now block 5 is the block opened last, which is excluded. The next coldest block is chosen.
        let mut map = pool(&[], &blocks(9));
        (map.pools[0].active, map.pools[0].next_page) = (5, map.shape.data_pages);
        assert_eq!(map.wear_aware_victim(0), Some((9, 1, Some(11))));
        assert_eq!(
            pool(&[("wear.migrate_percent", "0")], &blocks(4)).wear_aware_victim(0),
            Some((9, 1, None))
        );
        // If all other candidates were skipped, the last one is chosen even if it is worn.
        let map = pool(&[], &[(2, 6, 12, 8), (4, 7, 0, 0)]);
        assert_eq!(map.wear_aware_victim(0), Some((2, 6, None)));
    }

    /// Test vector WL-2. Block 9 has a remaining life of 20; the mean is 48.125. Block 9 is chosen with a probability
    /// of 20 / 48.125 / 0.8 = 0.519. If it is skipped, the candidate before it is chosen.
    #[test]
    fn a_worn_victim_is_passed_over_by_its_life() {
        let none = [("wear.migrate_percent", "0")];
        let mut map = pool(&none, &[(2, 6, 0, 0), (4, 3, 0, 0), (9, 1, 30, 0)]);
        let mut taken = 0;
        for stands in 0..4_000 {
            map.last_seq[0] = stands;
            match map.wear_aware_victim(0) {
                Some((9, 1, None)) => taken += 1,
                other => assert_eq!(other, Some((4, 3, None))),
            }
        }
        assert!((f64::from(taken) / 4_000.0 - 0.519).abs() < 0.03, "{taken}");
        let mut without = vec![(1, 9), (3, 4), (6, 2)];
        let mut kept = 0;
        for stands in 0..4_000 {
            map.last_seq[0] = stands;
            without = vec![(1, 9), (3, 4), (6, 2)];
            map.pass_over_worn(0, &mut without, |&(_, block)| block);
            kept += without.len() - 2;
        }
        assert!((kept as f64 / 4_000.0 - 0.519).abs() < 0.03, "{kept}");
        assert_eq!(without.last(), Some(&(6, 2)));
    }

    /// Test vector WL-3. The worn block 9 has 1 live page, and receives the 5 live pages of block 5. This takes 1.5 +
    /// 0.225 ms for the collection of block 9, 5 x 0.225 ms for the moves, and 1.5 ms for the erase of block 5.
    /// Afterwards block 5 is free, and block 9 has the data and the age of block 5.
    #[test]
    fn a_migration_takes_its_time_and_moves_the_data() {
        let of = spec(&[("ftl.summary_page", "false")]);
        let mut nand = Nand::new(&of);
        let erases = |block| if block == 9 { 12 } else { 0 };
        let blocks = [
            (2, 6, 8),
            (4, 3, 2),
            (5, 5, 1),
            (7, 3, 9),
            (9, 1, 7),
            (11, 2, 1),
        ]
        .map(|(block, live, at)| (block, live, erases(block), at));
        *nand.ftl_mut() = pool(&[("ftl.summary_page", "false")], &blocks);
        for block in [1, 3, 6, 8, 10, 12, 13, 14] {
            nand.ftl_mut().take_free(0, block);
        }
        let lpns: Vec<Lpn> = (0..5)
            .map(|page| nand.ftl().lpn_at(Ppn(40 + page)))
            .collect();
        let age = nand.ftl().seq_of(5);
        nand.set_log(true);
        let mut events = crate::events::EventQueue::new(nand.resources());
        let op = crate::nand::PageOp {
            lpn: Lpn(40),
            owner: Owner::cached_page(0),
            cause: Cause::HostWrite,
            request: crate::nand::FlashEvent::NO_REQUEST,
            stream: Stream::Cold,
            fua: false,
            again: 0,
            enqueued: Time::ZERO,
            gc_before: Time::ZERO,
        };
        nand.enqueue(0, op, Time::ZERO, &mut events);
        let log = nand.take_log();
        let cleaned = FlashEvent::Clean {
            at: Time::ZERO,
            chip: 0,
            duration: Time::from_us(1_500 + 225 + 5 * 225 + 1_500),
        };
        assert_eq!(log.last(), Some(&cleaned), "{log:?}");
        let stats = nand.stats();
        let counts = [Cause::GcMove, Cause::Migration, Cause::Erase].map(|c| stats.count(c));
        assert_eq!((counts, stats.pages_skipped), ([1, 5, 2], 3));
        let map = nand.ftl();
        map.check().unwrap();
        for (page, lpn) in lpns.into_iter().enumerate() {
            assert_eq!(map.lookup(lpn), Some(Ppn(72 + page as u32)));
        }
        assert!(map.is_free(0, 5) && !map.is_free(0, 9));
        assert_eq!(
            (map.seq_of(9), map.erases_of(9), map.erases_of(5)),
            (age, 13, 1)
        );
    }

    #[test]
    fn erases_are_numbered_again_in_their_order() {
        let mut map = pool(&[], &[(2, 6, 0, 8), (4, 3, 0, 0), (5, 5, 0, u32::MAX - 1)]);
        map.erase_clock = u32::MAX - 1;
        map.erase(9);
        let erased_at =
            |map: &PageMap, blocks: [usize; 5]| blocks.map(|block| map.erased_at[block]);
        assert_eq!(
            erased_at(&map, [2, 4, 5, 9, 11]),
            [8, 0, u32::MAX - 1, u32::MAX, 0]
        );
        map.erase(11);
        assert_eq!(erased_at(&map, [2, 4, 5, 9, 11]), [1, 0, 2, 3, 4]);
        map.erase(12);
        assert_eq!(map.erased_at[12], 5);
    }

    /// A chip is full of data, and an eighth of it is rewritten. With migration, blocks wear out at more similar times,
    /// so more can be written until the end of the chip's life.
    #[test]
    fn migration_lengthens_the_life_of_a_chip() {
        for seed in crate::seeds(3) {
            let written = |levelling: &str| {
                let more = [
                    ("wear.levelling", levelling),
                    ("geometry.blocks_per_plane", "64"),
                ];
                let mut nand = Nand::new(&spec(&more));
                nand.ftl_mut().fill_sequential(true, |_, n| n);
                let mut rng = Rng::new(seed);
                let hot = u64::from(nand.ftl().shape.exported_pages) / 8;
                let mut written = 0;
                while nand.write_untimed(0, Lpn(rng.below(hot) as u32), Stream::Cold) {
                    written += 1;
                    if written % 1000 == 0 {
                        nand.ftl().check().unwrap();
                    }
                }
                nand.ftl().check().unwrap();
                written
            };
            let (none, levelled) = (written("none"), written("reference"));
            assert!(levelled > none * 3 / 2, "{none} {levelled}");
        }
    }
}
