//! Superblocks. A superblock consists of one block of each die; its blocks are collected and erased together (D-98).
//!
//! Superblock n consists of the n-th block that each die opened. The number n is the sequence number of these blocks.
//! Host writes and moves are distributed over the dies in turn. Every die therefore receives equally many pages, and
//! the blocks of a superblock are written at the same time.
//!
//! The block of a die is chosen when the die opens it, and is never a worn-out one. As long as each die has a block to
//! open, every superblock therefore has a block of every die. When a superblock with a worn-out block is collected,
//! this block keeps its contents.

use std::collections::VecDeque;

use super::frontier::Pool;
use super::page::{PageMap, NOT_SEALED};

/// Marks a missing block of a superblock: the die has not opened its block yet, or the block has been erased.
const NONE: u32 = u32::MAX;
/// Largest number of blocks by which a die may be ahead of another die in opening blocks.
pub(crate) const LEAD_MAX: u32 = 2;

/// The blocks of each superblock.
#[derive(Clone, Debug, Default)]
pub(super) struct Sets {
    dies: u32,
    /// The blocks of all superblocks: for each superblock, one entry per die.
    blocks: Vec<u32>,
    /// Unused superblocks, as indices into the table `blocks`.
    free: Vec<u32>,
    /// Incomplete superblocks, oldest first: some die has not opened its block yet. Each entry has the sequence number
    /// of the blocks, the index of the superblock, and the number of dies that have opened their block.
    open: VecDeque<(u32, u32, u32)>,
}

impl Sets {
    pub fn new(dies: u32) -> Sets {
        Sets {
            dies,
            ..Sets::default()
        }
    }

    /// Records that die `die` has opened `block` as its `seq`-th block.
    pub fn opened(&mut self, seq: u32, die: u32, block: u32) {
        let at = match self.open.iter().position(|&(open, ..)| open == seq) {
            Some(at) => at,
            None => {
                let set = self.free.pop().unwrap_or_else(|| {
                    let n = self.blocks.len() + self.dies as usize;
                    self.blocks.resize(n, NONE);
                    n as u32 / self.dies - 1
                });
                self.open.push_back((seq, set, 0));
                self.open.len() - 1
            }
        };
        let (_, set, dies) = &mut self.open[at];
        self.blocks[(*set * self.dies + die) as usize] = block;
        *dies += 1;
        if *dies == self.dies {
            self.open.remove(at);
        }
    }

    fn of(&self, set: u32) -> &[u32] {
        &self.blocks[(set * self.dies) as usize..][..self.dies as usize]
    }

    fn sets(&self) -> impl Iterator<Item = u32> + '_ {
        let n = self.blocks.len() as u32 / self.dies.max(1);
        let is_open = |set: &u32| self.open.iter().any(|(_, open, _)| open == set);
        (0..n).filter(move |set| !is_open(set))
    }
}

impl PageMap {
    /// Whether the device collects superblocks instead of blocks.
    #[inline]
    pub fn has_sets(&self) -> bool {
        self.sets.is_some()
    }

    /// Returns the superblock to collect, its number of live pages, and the number of pages that its collection frees.
    /// All its blocks must be full. Chooses the superblock with the fewest live pages; of equals, the one opened
    /// first. `None` if no superblock may be collected.
    pub fn victim_set(&self) -> Option<(u32, u32, u32)> {
        let sets = self.sets.as_ref()?;
        let tallied = sets.sets().filter_map(|set| {
            let (live, blocks) = self.tally_of_set(sets.of(set))?;
            Some((set, live, blocks * self.shape.data_pages - live))
        });
        tallied.min_by_key(|&(set, live, _)| (live, self.age_key(sets.of(set))))
    }

    /// Returns the number of live pages of a superblock in those blocks that may be collected, and the number of these
    /// blocks. `None` if a block of the superblock is not full yet, or if no block may be collected.
    fn tally_of_set(&self, blocks: &[u32]) -> Option<(u32, u32)> {
        let (mut live, mut collectable) = (0, 0);
        for &block in blocks.iter().filter(|&&block| block != NONE) {
            let tally = self.tally[block as usize];
            if tally < NOT_SEALED {
                live += tally as u32;
                collectable += 1;
            } else if !self.is_spent(block) || self.is_open(block) {
                return None;
            }
        }
        (collectable > 0).then_some((live, collectable))
    }

    /// Whether the block has unwritten pages.
    fn is_open(&self, block: u32) -> bool {
        let pool = self.pool(self.pool_of(block));
        pool.active == block && pool.next_page < self.shape.data_pages
    }

    fn age_key(&self, blocks: &[u32]) -> u32 {
        let last = self.last_seq.first().copied().unwrap_or(0);
        let ages = blocks.iter().filter(|&&block| block != NONE);
        let age = ages
            .map(|&block| last.wrapping_sub(self.seq_of(block)).wrapping_add(LEAD_MAX))
            .max();
        u32::MAX - age.unwrap_or(0)
    }

    /// Returns the block of a superblock that is on the given die; `None` if this block may not be collected.
    pub fn collectable_of_set(&self, set: u32, die: u32) -> Option<u32> {
        let block = self.sets.as_ref()?.of(set)[die as usize];
        (block != NONE && self.tally[block as usize] < NOT_SEALED).then_some(block)
    }

    /// Records that the collection of a superblock has ended: all its blocks have been erased, except worn-out ones.
    pub fn set_erased(&mut self, set: u32) {
        if let Some(sets) = &mut self.sets {
            let first = (set * sets.dies) as usize;
            sets.blocks[first..][..sets.dies as usize].fill(NONE);
            sets.free.push(set);
        }
    }

    /// Whether the open block of the die is full.
    pub fn is_full(&self, die: u32) -> bool {
        self.pool(die).next_page == self.shape.data_pages
    }

    /// Whether this die is ahead: another die has not yet opened its block of the superblock that this die writes. If
    /// `never`, considers only dies that cannot open this block, because they have neither a free block nor a free
    /// page.
    pub fn is_ahead(&self, die: u32, never: bool) -> bool {
        let seq = self.pool(die).active_seq;
        let full = |pool: &Pool| pool.free == 0 && pool.next_page == self.shape.data_pages;
        let behind = |pool: &Pool| (pool.active_seq.wrapping_sub(seq) as i32) < 0;
        self.pools
            .iter()
            .any(|pool| behind(pool) && (!never || full(pool)))
    }

    /// Whether `pages` moved pages fit if they are distributed equally over the dies: every die must have room for its
    /// share.
    pub fn shares_fit(&self, pages: u32, pages_per_program: u32) -> bool {
        let share = pages.div_ceil(self.shape.chips) + pages_per_program;
        let room = |pool: u32| {
            let free = self.pool(pool).free.min(1 << 12);
            self.open_pages(pool) + free * self.shape.data_pages
        };
        (0..self.shape.chips).all(|die| room(die) >= share)
    }

    /// Rebuilds the table of superblocks from the sequence numbers of all blocks.
    pub(super) fn regroup(&mut self) {
        if self.sets.is_none() {
            return;
        }
        let mut sets = Sets::new(self.shape.chips);
        for (seq, die, block) in self.in_use_by_seq() {
            sets.opened(seq, die, block);
        }
        // A superblock may also lack a block because the block was erased or lost. Only superblocks near the newest
        // one can still receive a block.
        let newest = self.last_seq.iter().copied().max().unwrap_or(0);
        let lead = |seq: u32| newest.wrapping_sub(seq);
        sets.open.retain(|&(seq, ..)| lead(seq) <= LEAD_MAX);
        self.sets = Some(sets);
    }

    /// Returns all blocks in use as triples (sequence number, die, block), in ascending order.
    fn in_use_by_seq(&self) -> Vec<(u32, u32, u32)> {
        let of_pool = self.shape.blocks_per_pool;
        let mut blocks: Vec<(u32, u32, u32)> = (0..self.tally.len() as u32)
            .map(|block| (self.seq_of(block), block / of_pool, block))
            .filter(|&(_, die, block)| !self.is_free(die, block % of_pool))
            .collect();
        blocks.sort_unstable();
        blocks.dedup_by_key(|&mut (seq, die, _)| (seq, die));
        blocks
    }

    /// Checks that no die is more than [`LEAD_MAX`] blocks ahead of another. Also checks that the table of superblocks
    /// agrees with the sequence numbers of the blocks.
    pub(super) fn check_sets(&self) -> Result<(), String> {
        let Some(sets) = &self.sets else {
            return Ok(());
        };
        let first = self.last_seq.iter().min().copied().unwrap_or(0);
        let last = self.last_seq.iter().max().copied().unwrap_or(0);
        if last - first > LEAD_MAX {
            return Err(format!(
                "dies have opened from {first} to {last} blocks: it is of a device without superblocks"
            ));
        }
        let mut set_of = vec![NONE; self.tally.len()];
        for (place, &block) in sets.blocks.iter().enumerate().filter(|(_, &b)| b != NONE) {
            let first = sets
                .of(place as u32 / sets.dies)
                .iter()
                .find(|&&b| b != NONE);
            let alien = first.is_some_and(|&b| self.seq_of(b) != self.seq_of(block));
            if alien || set_of[block as usize] != NONE {
                return Err(format!(
                    "block {block} is in a superblock that is not its own"
                ));
            }
            set_of[block as usize] = place as u32 / sets.dies;
        }
        for (_, _, block) in self.in_use_by_seq() {
            let retired = self.is_spent(block) && !self.is_open(block);
            if set_of[block as usize] == NONE && !retired {
                return Err(format!("block {block} is in no superblock"));
            }
        }
        Ok(())
    }
}
