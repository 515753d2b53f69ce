//! What a write looks at together of the block that holds the old copy: which of its pages are live, and when it was
//! opened. They stand in one row, most often in one cache line.

use std::ops::{Index, IndexMut};

use crate::memory::{large_table, prefetch, Table};

/// Bits of a word.
const WORD: u32 = u64::BITS;

/// The rows of all blocks: words of live bits, then the sequence number.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    words: Table<u64>,
    /// Words of live bits of a block, and of its row.
    live: usize,
    row: usize,
}

impl Rows {
    /// Blocks without live pages that were never opened.
    pub fn new(blocks: usize, pages_per_block: u32) -> Rows {
        let live = pages_per_block.div_ceil(WORD) as usize;
        Rows {
            words: large_table(0, blocks * (live + 1)).into(),
            live,
            row: live + 1,
        }
    }

    /// Pages that the live bits of a block have room for.
    pub fn pages_max(&self) -> usize {
        self.live * WORD as usize
    }

    fn blocks(&self) -> u32 {
        (self.words.len() / self.row) as u32
    }

    /// The first word of live bits of `block`.
    #[inline(always)]
    pub fn first(&self, block: u32) -> usize {
        block as usize * self.row
    }

    /// The word behind the last one of live bits of `block`.
    #[inline(always)]
    pub fn end(&self, block: u32) -> usize {
        self.first(block) + self.live
    }

    /// The word with the live bit of a page.
    #[inline(always)]
    pub fn of_page(&self, block: u32, page: u32) -> usize {
        self.first(block) + (page / WORD) as usize
    }

    /// The live bits of a block.
    #[inline(always)]
    pub fn live(&self, block: u32) -> &[u64] {
        self.words.part(self.first(block), self.live)
    }

    #[inline(always)]
    pub fn live_mut(&mut self, block: u32) -> &mut [u64] {
        let first = self.first(block);
        self.words.part_mut(first, self.live)
    }

    /// When a block was opened, as a number that grows within its chip.
    #[inline(always)]
    pub fn opened(&self, block: u32) -> u32 {
        self.words[self.end(block)] as u32
    }

    #[inline(always)]
    pub fn set_opened(&mut self, block: u32, seq: u32) {
        let at = self.end(block);
        self.words[at] = seq.into();
    }

    /// Starts loading the row of a block.
    #[inline(always)]
    pub fn prefetch(&self, block: u32) {
        prefetch(&self.words, self.first(block));
    }

    /// Gives the blocks from `first` on the rows of `other`, a table of as long rows.
    pub fn copy_from(&mut self, first: u32, other: &Rows) {
        let at = self.first(first);
        let n = other.words.len();
        self.words.part_mut(at, n).copy_from_slice(&other.words);
    }

    /// All live bits, block by block.
    pub fn all_live(&self) -> Vec<u64> {
        (0..self.blocks())
            .flat_map(|block| self.live(block))
            .copied()
            .collect()
    }

    /// All sequence numbers.
    pub fn all_opened(&self) -> Vec<u32> {
        (0..self.blocks()).map(|block| self.opened(block)).collect()
    }

    /// Takes what [`Rows::all_live`] and [`Rows::all_opened`] gave for as many blocks.
    pub fn set_all(&mut self, live: &[u64], opened: &[u32]) {
        for ((block, live), &seq) in (0..).zip(live.chunks_exact(self.live)).zip(opened) {
            self.live_mut(block).copy_from_slice(live);
            self.set_opened(block, seq);
        }
    }
}

/// A word of live bits, by its place in the table.
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
