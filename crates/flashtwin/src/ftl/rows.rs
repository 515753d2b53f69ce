//! Rows: the live bits, the sequence number and the erase count of each block. Most accesses need all three, so they
//! are adjacent, usually in one cache line.

use std::ops::{Index, IndexMut};

use crate::memory::{large_table, prefetch, TrustedTable};

/// Bits of a word.
pub(super) const WORD: u32 = u64::BITS;

/// The rows of all blocks. A row has the words of live bits, then one more word. The low half of this word is the
/// sequence number, the high half is the erase count.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    words: TrustedTable<u64>,
    /// Number of words of live bits in a row. `row` is the number of all words in a row.
    live: usize,
    row: usize,
}

impl Rows {
    /// Creates rows of blocks that were never opened and have no live pages.
    pub fn new(blocks: usize, pages_per_block: u32) -> Rows {
        let live = pages_per_block.div_ceil(WORD) as usize;
        Rows {
            // SAFETY: indexed by words of the blocks' rows, which all have `row` words.
            words: unsafe { TrustedTable::new(large_table(0, blocks * (live + 1))) },
            live,
            row: live + 1,
        }
    }

    /// Returns the number of live bits in a row: the pages per block, rounded up to a multiple of [`WORD`].
    pub fn pages_max(&self) -> usize {
        self.live * WORD as usize
    }

    fn blocks(&self) -> u32 {
        (self.words.len() / self.row) as u32
    }

    /// Returns the index of the first word of live bits of `block`.
    #[inline(always)]
    pub fn first(&self, block: u32) -> usize {
        block as usize * self.row
    }

    /// Returns the end of the words of live bits of `block`: the index of the word after them.
    #[inline(always)]
    pub fn end(&self, block: u32) -> usize {
        self.first(block) + self.live
    }

    /// Returns the index of the word with the live bit of a page.
    #[inline(always)]
    pub fn of_page(&self, block: u32, page: u32) -> usize {
        self.first(block) + (page / WORD) as usize
    }

    /// Returns the words of live bits of a block.
    #[inline(always)]
    pub fn live(&self, block: u32) -> &[u64] {
        self.words.part(self.first(block), self.live)
    }

    #[inline(always)]
    pub fn live_mut(&mut self, block: u32) -> &mut [u64] {
        let first = self.first(block);
        self.words.part_mut(first, self.live)
    }

    /// Returns the sequence number of a block. A block has a larger number than all blocks of its chip opened
    /// earlier.
    #[inline(always)]
    pub fn opened(&self, block: u32) -> u32 {
        self.words[self.end(block)] as u32
    }

    #[inline(always)]
    pub fn erases(&self, block: u32) -> u32 {
        (self.words[self.end(block)] >> u32::BITS) as u32
    }

    #[inline(always)]
    pub fn set_opened(&mut self, block: u32, seq: u32) {
        self.set_last(block, seq, self.erases(block));
    }

    pub fn set_erases(&mut self, block: u32, erases: u32) {
        self.set_last(block, self.opened(block), erases);
    }

    #[inline(always)]
    pub fn count_erase(&mut self, block: u32) {
        let erases = self.erases(block).saturating_add(1);
        self.set_last(block, self.opened(block), erases);
    }

    #[inline(always)]
    fn set_last(&mut self, block: u32, seq: u32, erases: u32) {
        let at = self.end(block);
        self.words[at] = u64::from(erases) << u32::BITS | u64::from(seq);
    }

    /// Prefetches the row of a block.
    #[inline(always)]
    pub fn prefetch(&self, block: u32) {
        prefetch(&self.words, self.first(block));
    }

    /// Copies all rows of `other` to the blocks from `first` on. The rows of both tables must have the same length.
    pub fn copy_from(&mut self, first: u32, other: &Rows) {
        let at = self.first(first);
        let n = other.words.len();
        self.words.part_mut(at, n).copy_from_slice(&other.words);
    }

    /// Returns all live bits, block by block.
    pub fn all_live(&self) -> Vec<u64> {
        (0..self.blocks())
            .flat_map(|block| self.live(block))
            .copied()
            .collect()
    }

    /// Returns all sequence numbers.
    pub fn all_opened(&self) -> Vec<u32> {
        (0..self.blocks()).map(|block| self.opened(block)).collect()
    }

    /// Returns the erases of all blocks.
    pub fn all_erases(&self) -> Vec<u32> {
        (0..self.blocks()).map(|block| self.erases(block)).collect()
    }

    /// Sets the rows of all blocks. The arguments are results of [`Rows::all_live`], [`Rows::all_opened`] and
    /// [`Rows::all_erases`] for a table of the same size.
    pub fn set_all(&mut self, live: &[u64], opened: &[u32], erases: &[u32]) {
        let live = live.chunks_exact(self.live);
        for ((block, live), (&seq, &erases)) in (0..).zip(live).zip(opened.iter().zip(erases)) {
            self.live_mut(block).copy_from_slice(live);
            self.set_last(block, seq, erases);
        }
    }

    /// Sets the erases of all blocks to 0.
    pub fn forget_erases(&mut self) {
        (0..self.blocks()).for_each(|block| self.set_erases(block, 0));
    }
}

/// Access to a word of live bits by its index.
impl Index<usize> for Rows {
    type Output = u64;
    #[inline(always)]
    fn index(&self, word: usize) -> &u64 {
        &self.words[word]
    }
}

impl IndexMut<usize> for Rows {
    #[inline(always)]
    fn index_mut(&mut self, word: usize) -> &mut u64 {
        &mut self.words[word]
    }
}
