//! Checks of the page map: its arrays must agree with each other.

use std::panic::resume_unwind;
use std::thread;

use super::page::{PageMap, NOT_SEALED, UNMAPPED};

/// Number of pages that are processed together, in vector registers of the processor.
const LANES: usize = 8;

/// Number of logical pages from which on a map is checked by two threads. The check of such a map takes milliseconds;
/// the start of a thread takes far less.
const ON_TWO_THREADS: usize = 1 << 20;

/// Number of pairs of a logical page and its flash page, and the checksum of these pairs ([`sum_pairs`]).
#[derive(Clone, Copy, Default)]
struct Pairs {
    count: u64,
    sum: u64,
}

/// For each value of a byte, one mask per bit: all ones if the bit is set, all zeros if not.
static MASKS: [[u32; LANES]; 256] = {
    let mut masks = [[0; LANES]; 256];
    let mut i = 0;
    while i < 256 * LANES {
        masks[i / LANES][i % LANES] = if (i / LANES) >> (i % LANES) & 1 == 1 {
            u32::MAX
        } else {
            0
        };
        i += 1;
    }
    masks
};

/// Returns a checksum of pairs of logical and flash pages: the sum of the products of their hashed numbers. A pair
/// counts only if its `mask` is all ones. If the map and its inverse disagree, their checksums almost certainly differ,
/// even if two pages are merely exchanged. The alternative, to follow each page from one table to the other, costs a
/// cache miss per page. It would take most of the time of loading a state.
#[inline(always)]
fn sum_pairs(lpns: [u32; LANES], ppns: [u32; LANES], mask: [u32; LANES]) -> u64 {
    let mut sum = 0u64;
    for i in 0..LANES {
        let lpn = (lpns[i] ^ 0x1656_67b1) & mask[i];
        let ppn = ppns[i].wrapping_mul(0x9e37_79b1) ^ 0x7f4a_7c15;
        sum = sum.wrapping_add(u64::from(lpn) * u64::from(ppn));
    }
    sum
}

/// Returns the next [`LANES`] numbers from `first` on.
#[inline(always)]
fn row(first: u32) -> [u32; LANES] {
    std::array::from_fn(|i| first.wrapping_add(i as u32))
}

/// Returns a part of a table, padded with [`UNMAPPED`].
#[inline(always)]
fn lanes(part: &[u32]) -> [u32; LANES] {
    part.try_into().unwrap_or_else(|_| {
        let mut padded = [UNMAPPED; LANES];
        padded[..part.len()].copy_from_slice(part);
        padded
    })
}

impl PageMap {
    /// Checks that all arrays agree with each other. Called by tests, and after a state is read from a file.
    pub fn check(&self) -> Result<(), String> {
        self.check_pages()?;
        self.check_pools()?;
        self.check_slc()?;
        self.check_hot_blocks()?;
        self.check_sets()?;
        self.check_counts()
    }

    /// Checks all pages: the map, the inverse map, the live bits and the tallies (live pages per block) must agree.
    /// Each run ends with this check.
    pub(super) fn check_pages(&self) -> Result<(), String> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor supports the vector instructions for which these functions are compiled.
            let (live, mapped) = self.beside(
                || unsafe { self.live_pages_in_wide_vectors() },
                || unsafe { self.mapped_pages_in_wide_vectors() },
            );
            return self.compare(live?, mapped);
        }
        self.check_pages_in_vectors()
    }

    pub(super) fn check_pages_in_vectors(&self) -> Result<(), String> {
        let (live, mapped) = self.beside(|| self.live_pages(), || self.mapped_pages());
        self.compare(live?, mapped)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn live_pages_in_wide_vectors(&self) -> Result<Pairs, String> {
        self.live_pages()
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn mapped_pages_in_wide_vectors(&self) -> (Pairs, u32) {
        self.mapped_pages()
    }

    pub(super) fn is_checked_on_two_threads(&self) -> bool {
        self.map.len() >= ON_TWO_THREADS
    }

    /// Runs `one` and `other`, and returns the results of both. For a large map, `other` runs on a second thread.
    fn beside<A, B: Send>(&self, one: impl FnOnce() -> A, other: impl Fn() -> B + Sync) -> (A, B) {
        if !self.is_checked_on_two_threads() {
            return (one(), other());
        }
        thread::scope(|scope| {
            let beside = thread::Builder::new().spawn_scoped(scope, &other);
            let one = one();
            let other = match beside {
                Ok(beside) => beside.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // The system cannot start another thread.
                Err(_) => other(),
            };
            (one, other)
        })
    }

    /// Counts the live flash pages by the live bits, and computes the checksum of their pairs (logical page, flash
    /// page) by the inverse map. Fails if the tally of a block differs from the number of its live bits.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn live_pages(&self) -> Result<Pairs, String> {
        let mut live = Pairs::default();
        for block in 0..self.tally.len() as u32 {
            let (count, sum) = self.live_pairs(block)?;
            if count != self.valid_of(block) {
                let tally = self.valid_of(block);
                return Err(format!("block {block}: {count} live pages, tally {tally}"));
            }
            live.count += u64::from(count);
            live.sum = live.sum.wrapping_add(sum);
        }
        Ok(live)
    }

    /// Counts the mapped logical pages, and computes the checksum of their pairs (logical page, flash page) by the map.
    /// Also returns the largest flash page in the map.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn mapped_pages(&self) -> (Pairs, u32) {
        let mut mapped = Pairs::default();
        let mut last = [0; LANES];
        for (n, part) in self.map.chunks(LANES).enumerate() {
            let ppns = lanes(part);
            let mask = ppns.map(|ppn| if ppn == UNMAPPED { 0 } else { u32::MAX });
            for i in 0..LANES {
                last[i] = last[i].max(ppns[i] & mask[i]);
            }
            mapped.count += u64::from(mask.iter().fold(0u32, |sum, mask| sum + (mask & 1)));
            let sum = sum_pairs(row((n * LANES) as u32), ppns, mask);
            mapped.sum = mapped.sum.wrapping_add(sum);
        }
        (mapped, last.into_iter().fold(0, u32::max))
    }

    fn compare(&self, live: Pairs, (mapped, last): (Pairs, u32)) -> Result<(), String> {
        if mapped.count != live.count || mapped.count != self.mapped {
            let (live, mapped, counted) = (live.count, mapped.count, self.mapped);
            return Err(format!(
                "{live} live flash pages, {mapped} mapped pages, {counted} counted"
            ));
        }
        // The largest flash page must be checked here, because the pages in the map are later used as indices of tables
        // without a check.
        if live.sum != mapped.sum || last as usize >= self.reverse.len() {
            return Err("a live flash page is not where the map has its logical page".into());
        }
        Ok(())
    }

    /// Returns the number of live pages of a block, and the checksum of their pairs (logical page, flash page).
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn live_pairs(&self, block: u32) -> Result<(u32, u64), String> {
        let s = &self.shape;
        let words = self.live_words(block);
        let first = block * s.pages_per_block;
        let reverse = (self.reverse).part(first as usize, s.data_pages as usize);
        let count = words.iter().map(|word| word.count_ones()).sum();
        let (mut pairs, mut largest) = (0u64, [0; LANES]);
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        // The loop has no branch that depends on whether a page is live. In a block with many invalid pages, the
        // processor could not predict this branch.
        for (n, byte) in bytes.enumerate() {
            let at = n * LANES;
            let part = reverse.get(at..).unwrap_or_default();
            let lpns = lanes(&part[..part.len().min(LANES)]);
            let mask = MASKS[usize::from(byte)];
            pairs = pairs.wrapping_add(sum_pairs(lpns, row(first + at as u32), mask));
            for i in 0..LANES {
                largest[i] = largest[i].max(lpns[i] & mask[i]);
            }
        }
        let largest = largest.into_iter().fold(0, u32::max);
        match largest < s.exported_pages || count == 0 {
            true => Ok((count, pairs)),
            false => Err(format!("block {block}: a live page cannot hold data")),
        }
    }

    /// Checks free blocks and write frontiers.
    fn check_pools(&self) -> Result<(), String> {
        let s = &self.shape;
        for (i, p) in self.pools.iter().enumerate() {
            let pool = i as u32;
            let free = (0..s.blocks_per_pool)
                .filter(|&bit| self.is_free(pool, bit))
                .count() as u32;
            if free.checked_add(s.free_count_bias) != Some(p.free) {
                return Err(format!(
                    "pool {pool}: {free} blocks free, {} counted",
                    p.free
                ));
            }
            if (s.blocks_per_pool..s.blocks_per_pool.next_multiple_of(64))
                .any(|bit| self.is_free(pool, bit))
            {
                return Err(format!("pool {pool}: a block beyond its last one is free"));
            }
            if self.is_retired(pool) {
                self.check_retired(pool)?;
            } else if p.cursor > s.blocks_per_pool {
                return Err(format!("pool {pool}: impossible write frontier"));
            }
            self.check_frontier(pool, p.active, p.next_page, s.data_pages)?;
            self.check_order(pool)?;
            if let Some(hot) = self.hot.get(i) {
                self.check_frontier(pool, hot.active, hot.next_page, s.hot_pages)?;
                let both_open = hot.next_page < s.hot_pages && p.next_page < s.data_pages;
                if both_open && hot.active == p.active {
                    return Err(format!("pool {pool}: one block is open twice"));
                }
            }
        }
        for (block, &tally) in self.tally.iter().enumerate() {
            let pool = self.pool_of(block as u32);
            if self.is_free(pool, block as u32 - pool * s.blocks_per_pool) && tally != NOT_SEALED {
                return Err(format!("block {block} is free and holds data"));
            }
        }
        Ok(())
    }

    /// Checks the blocks with live pages in a pool: none of them may have been opened after the pool's open block. The
    /// placement of the next page relies on this order.
    fn check_order(&self, pool: u32) -> Result<(), String> {
        if !self.hot.is_empty() || self.is_retired(pool) {
            return Ok(());
        }
        let p = self.pool(pool);
        let first = pool * self.shape.blocks_per_pool;
        let blocks = first..first + self.shape.blocks_per_pool;
        let young = |&block: &u32| self.seq_of(block) > p.active_seq && self.valid_of(block) > 0;
        match blocks.into_iter().find(young) {
            Some(block) => Err(format!(
                "pool {pool}: block {block} was opened after the open one"
            )),
            None => Ok(()),
        }
    }

    /// Checks a write frontier: the open block, and the next page to write in it. If the block is full, its state is
    /// not checked, since it may have been collected already. Otherwise it must not be free, must not be marked as
    /// collectable, and must have no live page from the frontier on.
    fn check_frontier(
        &self,
        pool: u32,
        active: u32,
        next_page: u32,
        end: u32,
    ) -> Result<(), String> {
        let s = &self.shape;
        if next_page > end || active / s.blocks_per_pool != pool {
            return Err(format!("pool {pool}: impossible write frontier"));
        }
        let bit = active - pool * s.blocks_per_pool;
        let sealed = || self.tally[active as usize] < NOT_SEALED;
        let ahead = || self.next_live(active, next_page).is_some();
        if next_page < end && (self.is_free(pool, bit) || sealed() || ahead()) {
            return Err(format!("pool {pool}: its open block is not open"));
        }
        Ok(())
    }

    /// Checks the records of hot blocks. No free block may be recorded as hot. An open block that is not full must be
    /// recorded as the stream (hot or cold) for which it is open. Does nothing if the map does not record hot blocks.
    fn check_hot_blocks(&self) -> Result<(), String> {
        if self.hot_blocks.is_empty() {
            return Ok(());
        }
        let s = &self.shape;
        for block in 0..self.hot_blocks.len() as u32 * 64 {
            let beyond = block as usize >= self.tally.len();
            let pool = if beyond { 0 } else { self.pool_of(block) };
            let free = || self.is_free(pool, block - pool * s.blocks_per_pool);
            if self.is_hot(block) && (beyond || free()) {
                return Err(format!("block {block} is hot, and free or none"));
            }
        }
        for (pool, (p, hot)) in self.pools.iter().zip(&self.hot).enumerate() {
            let wrong = p.next_page < s.data_pages && self.is_hot(p.active)
                || hot.next_page < s.hot_pages && !self.is_hot(hot.active);
            if wrong {
                return Err(format!("pool {pool}: an open block is of the other kind"));
            }
        }
        Ok(())
    }

    /// Compares the counters that are updated during a run with a new count over all blocks.
    fn check_counts(&self) -> Result<(), String> {
        let mut afresh = Counts::of(self);
        let counted = Counts {
            room: self.room.to_vec(),
            least: self.least.to_vec(),
            needy: self.needy.to_vec(),
            chip_free: self.chip_free.clone(),
            oldest_open: self.oldest_open.to_vec(),
        };
        // If the room of a pool (the number of pages that can be written to it) exceeds the range of its type, the
        // stored value is the largest number of the type. Such a room is not compared.
        for (room, counted) in afresh.room.iter_mut().zip(&counted.room) {
            if *room == i32::MAX {
                *room = *counted;
            }
        }
        if counted != afresh {
            return Err(format!("counted {counted:?}, there are {afresh:?}"));
        }
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
struct Counts {
    room: Vec<i32>,
    least: Vec<i16>,
    needy: Vec<u16>,
    chip_free: Vec<u32>,
    oldest_open: Vec<u32>,
}

impl Counts {
    fn of(map: &PageMap) -> Counts {
        let pools = map.pools.len();
        let chips = 0..map.shape.chips;
        let needy = |chip| {
            map.pools_of_chip(chip)
                .iter()
                .filter(|p| p.free <= map.low())
        };
        Counts {
            room: (0..pools).map(|pool| map.count_room(pool)).collect(),
            least: (0..map.least.len())
                .map(|strip| map.find_least(strip))
                .collect(),
            needy: chips
                .clone()
                .map(|chip| needy(chip).count() as u16)
                .collect(),
            chip_free: chips
                .clone()
                .map(|chip| map.pools_of_chip(chip).iter().map(|p| p.free).sum())
                .collect(),
            oldest_open: chips.map(|chip| map.find_oldest_open(chip)).collect(),
        }
    }
}
