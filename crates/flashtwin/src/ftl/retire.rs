//! Retired pools: the pools of a dead die, which can be read but no longer written (D-146).
//!
//! A retired pool has no free or open block, and no block that may be collected. Searches for room and for
//! victims therefore skip the pool. Its pages stay mapped until they are written elsewhere or trimmed.

use super::page::{PageMap, NOT_SEALED};

impl PageMap {
    /// Retires a pool: from now on it accepts no programs and no erases.
    pub fn retire(&mut self, pool: u32) {
        let (blocks, data_pages) = (self.shape.blocks_per_pool, self.shape.data_pages);
        for bit in 0..blocks {
            self.set_free(pool, bit, false);
            self.set_sealed(pool * blocks + bit, false);
        }
        let p = &mut self.pools[pool as usize];
        (p.free, p.next_page, p.cursor) = (0, data_pages, blocks);
        if let Some(hot) = self.hot.get_mut(pool as usize) {
            hot.next_page = self.shape.hot_pages;
        }
        self.recount();
    }

    /// Whether the pool was retired.
    #[inline]
    pub fn is_retired(&self, pool: u32) -> bool {
        self.pools[pool as usize].cursor == self.shape.blocks_per_pool
    }

    /// Returns the number of logical pages that have their copy in the pool.
    pub fn pages_in(&self, pool: u32) -> u32 {
        let first = pool * self.shape.blocks_per_pool;
        let blocks = first..first + self.shape.blocks_per_pool;
        blocks.map(|block| self.valid_of(block)).sum()
    }

    /// Checks that a retired pool has no block that could be written or collected.
    pub(super) fn check_retired(&self, pool: u32) -> Result<(), String> {
        let p = &self.pools[pool as usize];
        let hot = self.hot.get(pool as usize);
        let open = p.next_page < self.shape.data_pages
            || hot.is_some_and(|hot| hot.next_page < self.shape.hot_pages);
        let sealed = |&tally: &i16| tally < NOT_SEALED;
        if p.free > 0 || open || self.tallies(pool).iter().any(sealed) {
            return Err(format!("pool {pool}: its die is dead, and takes writes"));
        }
        Ok(())
    }
}
