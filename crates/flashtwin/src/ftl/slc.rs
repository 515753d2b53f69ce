//! Blocks in SLC mode. They form a write cache; their cells store one bit each (D-65).
//!
//! The hot frontier of a pool writes to blocks in SLC mode. Such a block has the number of pages of a normal block
//! divided by the bits per cell. Any free block may be opened in SLC mode, and its next erase ends this mode. There
//! are two limits. Blocks in SLC mode may be at most a certain share of the pool. Enough free blocks must remain to
//! *fold* the data, that is, to move them to normal blocks.

use super::page::PageMap;
use crate::units::Ppn;
use crate::units::Stream;

impl PageMap {
    /// Whether the device has blocks in SLC mode.
    #[inline]
    fn has_slc(&self) -> bool {
        self.shape.slc_blocks > 0
    }

    #[inline]
    pub fn is_slc(&self, block: u32) -> bool {
        self.has_slc() && self.slc_bits[block as usize / 64] >> (block % 64) & 1 == 1
    }

    /// Whether a page is in a block in SLC mode.
    #[inline]
    pub fn is_slc_at(&self, ppn: Ppn) -> bool {
        self.has_slc() && self.is_slc(self.block_of(ppn))
    }

    /// Whether the frontier of a stream writes in SLC mode.
    #[inline]
    pub fn writes_slc(&self, stream: Stream) -> bool {
        self.has_slc() && stream == Stream::Hot
    }

    pub(super) fn set_slc(&mut self, block: u32, on: bool) {
        debug_assert_ne!(self.is_slc(block), on);
        self.slc_bits[block as usize / 64] ^= 1 << (block % 64);
        let used = &mut self.slc_used[self.by_blocks_per_pool.div(block) as usize];
        match on {
            true => {
                *used += 1;
                self.slc_opened += 1;
            }
            false => *used -= 1,
        }
    }

    /// Whether another block of the pool may be opened in SLC mode. The cache must not be full, and enough free
    /// blocks must remain to fold its contents.
    #[inline]
    pub(super) fn may_open_slc(&self, pool: u32) -> bool {
        self.slc_used[pool as usize] < self.shape.slc_blocks
            && self.pool(pool).free > self.low() + 1
    }

    /// Returns the stream to which a page of `stream` is written in `pool`: the cold stream if the SLC cache is
    /// full, otherwise `stream`.
    #[inline]
    pub fn stream_for(&self, pool: u32, stream: Stream) -> Stream {
        let full = self.writes_slc(stream)
            && self.next_page(pool, stream) == self.shape.hot_pages
            && !self.may_open_slc(pool);
        match full {
            true => Stream::Cold,
            false => stream,
        }
    }

    /// Returns the position of the next block to fold, and its number of live pages. This is the block opened first,
    /// among the full blocks of the cache.
    pub fn oldest_slc(&self, pool: u32) -> Option<(u32, u32)> {
        if !self.has_slc() || self.slc_used[pool as usize] == 0 {
            return None;
        }
        let first = pool * self.shape.blocks_per_pool;
        let last_seq = self.last_seq[(pool / self.shape.pools_per_chip) as usize];
        let age = |bit: &u32| last_seq.wrapping_sub(self.seq_of(first + bit));
        (0..self.shape.blocks_per_pool)
            .filter(|&bit| self.is_slc(first + bit))
            .filter(|&bit| self.tallies(pool)[bit as usize] < PageMap::CANDIDATE_END)
            .max_by_key(age)
            .map(|bit| (bit, self.valid_of(first + bit)))
    }

    /// Returns the number of pages that blocks lack in SLC mode compared with normal mode, summed over all blocks
    /// opened in SLC mode so far. These pages are never programmed, but an erase counts them as erased.
    pub fn slc_pages_lacked(&self) -> u64 {
        let lacks = self.shape.data_pages - self.shape.hot_pages;
        match self.has_slc() {
            true => self.slc_opened * u64::from(lacks),
            false => 0,
        }
    }

    /// Returns the number of blocks in SLC mode of each pool.
    pub(super) fn count_slc(&self) -> Vec<u32> {
        let blocks = self.shape.blocks_per_pool;
        let of_pool =
            |pool: u32| (pool * blocks..(pool + 1) * blocks).filter(|&block| self.is_slc(block));
        (0..self.slc_used.len() as u32)
            .map(|pool| of_pool(pool).count() as u32)
            .collect()
    }

    /// Checks that each block in SLC mode is in use, and that it has no more pages than the mode permits.
    pub(super) fn check_slc(&self) -> Result<(), String> {
        if self.count_slc() != self.slc_used {
            let counted = &self.slc_used;
            return Err(format!(
                "blocks in SLC mode: {counted:?} counted, there are {:?}",
                self.count_slc()
            ));
        }
        for block in (0..self.tally.len() as u32).filter(|&block| self.is_slc(block)) {
            let pool = self.pool_of(block);
            if self.is_free(pool, block - pool * self.shape.blocks_per_pool) {
                return Err(format!("block {block} is free and in SLC mode"));
            }
            if self.next_live(block, self.shape.hot_pages).is_some() {
                return Err(format!("block {block}: more pages than in SLC mode"));
            }
        }
        for (pool, hot) in self.hot.iter().enumerate() {
            let open = hot.next_page < self.shape.hot_pages;
            if self.has_slc() && open && !self.is_slc(hot.active) {
                return Err(format!("pool {pool}: its cache is not in SLC mode"));
            }
        }
        Ok(())
    }
}
