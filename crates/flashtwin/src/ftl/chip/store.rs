//! The blocks of a chip: the contents of each page, the number of live pages in each block, and the free blocks. Every
//! function that changes them also records the flash operation, so operations and tables always agree.

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use super::saved::{read_list, write_list, wrong};
use super::{FlashOp, OpKind, Why};
use crate::ftl::state::{check_erases, read_u32, write_u32};
use crate::ftl::StateError;
use crate::joined::{JoinedTable, Movable};
use crate::memory::prefetch;

/// Means "no page" or "no block".
pub(super) const NONE: u32 = u32::MAX;

/// Tag of a page that can be programmed.
const ERASED: u32 = u32::MAX;

/// Tag of an invalid page.
const STALE: u32 = u32::MAX - 1;

/// Flag in the tally (number of live pages) of a block. The block is free or still being written, so it may not be
/// collected.
const OPEN: u16 = 1 << 15;

/// Number of blocks that share an entry of [`Store::least`].
const STRIP: usize = 64;

/// Largest number of pages of a block.
pub(super) const PAGES_PER_BLOCK_MAX: u32 = OPEN as u32 - 1;

/// The blocks of a chip.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pages_per_block: u32,
    /// Tag of each page: the page's contents, or [`ERASED`] or [`STALE`]. The contents of a data page are its logical
    /// page.
    tags: JoinedTable<u32>,
    /// Number of live pages of each block, with the flag [`OPEN`].
    tallies: Vec<u16>,
    /// Lowest number in `tallies` for each strip of [`STRIP`] adjacent blocks. It is below [`OPEN`] if a block of the
    /// strip may be collected.
    least: Vec<u16>,
    /// Free blocks, in the order of their erases. The block erased longest ago is used next, which spreads wear.
    free: VecDeque<u32>,
    /// Erases of each block.
    erases: Vec<u32>,
    /// Pages that were erased without having been programmed.
    skipped: u64,
}

impl Store {
    pub fn new(blocks: u32, pages_per_block: u32) -> Store {
        Store {
            pages_per_block,
            tags: JoinedTable::new(ERASED, blocks as usize * pages_per_block as usize),
            tallies: vec![OPEN; blocks as usize],
            least: vec![OPEN; (blocks as usize).div_ceil(STRIP)],
            free: (0..blocks).collect(),
            erases: vec![0; blocks as usize],
            skipped: 0,
        }
    }

    /// Returns the large tables.
    pub fn tables(&mut self) -> impl Iterator<Item = &mut dyn Movable> {
        std::iter::once(&mut self.tags as &mut dyn Movable)
    }

    pub fn erases(&self) -> &[u32] {
        &self.erases
    }

    pub fn reset_wear(&mut self) {
        self.erases.fill(0);
    }

    /// Returns the number of pages that were erased without having been programmed. A merge leaves a page unprogrammed
    /// if its logical page has no copy.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the number of erased pages, over all blocks.
    pub fn erased_pages(&self) -> u64 {
        self.tags.iter().filter(|&&tag| tag == ERASED).count() as u64
    }

    /// Writes the state of the blocks.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        write_u32(out, &self.tags)?;
        write_u32(out, &self.erases)?;
        write_list(out, self.free.iter().copied())
    }

    /// Reads a state into a new store. The contents of pages must be below `tags_end`. Afterwards a block may be
    /// collected only after the caller has sealed it ([`Store::seal`]).
    pub fn load(&mut self, tags_end: u32, input: &mut dyn Read) -> Result<(), StateError> {
        read_u32(input, &mut self.tags)?;
        read_u32(input, &mut self.erases)?;
        check_erases(&self.erases)?;
        self.free = read_list(input, self.blocks())?.into();
        if self.tags.iter().any(|tag| (tags_end..STALE).contains(tag)) {
            return wrong("a page holds what is no page");
        }
        let blocks = self.tags.chunks(self.pages_per_block as usize);
        for (tally, pages) in self.tallies.iter_mut().zip(blocks) {
            *tally = OPEN | pages.iter().filter(|&&tag| tag < STALE).count() as u16;
        }
        Ok(())
    }

    pub fn free(&self) -> impl Iterator<Item = u32> + '_ {
        self.free.iter().copied()
    }

    /// Returns all live pages with their contents.
    pub fn live_pages(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let pages = (0u32..).zip(&*self.tags);
        pages.filter_map(|(ppn, &tag)| (tag < STALE).then_some((tag, ppn)))
    }

    /// Whether exactly the first `count` pages of a block have been programmed.
    pub fn is_written_to(&self, block: u32, count: u32) -> bool {
        let mut offsets = 0..self.pages_per_block;
        offsets.all(|offset| self.is_erased(self.ppn(block, offset)) == (offset >= count))
    }

    /// Returns the number of pages of a block (N in the papers).
    #[inline]
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    pub fn blocks(&self) -> u32 {
        self.tallies.len() as u32
    }

    #[inline]
    pub fn free_blocks(&self) -> u32 {
        self.free.len() as u32
    }

    /// Returns the number of a page, given its block and offset.
    #[inline]
    pub fn ppn(&self, block: u32, offset: u32) -> u32 {
        block * self.pages_per_block + offset
    }

    /// Returns the contents of a page; `None` if it is erased or invalid.
    #[inline]
    pub fn tag(&self, ppn: u32) -> Option<u32> {
        let tag = self.tags[ppn as usize];
        (tag < STALE).then_some(tag)
    }

    #[inline]
    pub fn is_erased(&self, ppn: u32) -> bool {
        self.tags[ppn as usize] == ERASED
    }

    /// Returns the number of live pages of a block.
    #[inline]
    pub fn live(&self, block: u32) -> u32 {
        u32::from(self.tallies[block as usize] & !OPEN)
    }

    /// Takes a free block. There must be one: the caller has reserved it, or has checked that a block is free.
    pub fn take(&mut self) -> u32 {
        self.free
            .pop_front()
            .expect("a block is kept free for this")
    }

    /// Marks a full block as one that may be collected.
    pub fn seal(&mut self, block: u32) {
        self.tallies[block as usize] &= !OPEN;
        self.find_least(block);
    }

    /// Computes the least tally of a block's strip.
    #[inline(never)]
    fn find_least(&mut self, block: u32) {
        let strip = block as usize / STRIP;
        let tallies = self.tallies[strip * STRIP..].iter().take(STRIP);
        self.least[strip] = tallies.fold(OPEN, |least, &tally| least.min(tally));
    }

    /// Returns the greedy victim: of the sealed blocks (those that may be collected), the one with the fewest live
    /// pages; of equals, the one with the lowest number. `None` if no sealed block has an invalid page.
    pub fn victim(&self) -> Option<u32> {
        let least = self.least.iter().fold(OPEN, |a, &b| a.min(b));
        let is_it = |tally: &u16| *tally == least;
        let victim = (u32::from(least) < self.pages_per_block).then(|| {
            let strip = self.least.iter().position(is_it).unwrap_or(0);
            let tallies = &self.tallies[strip * STRIP..];
            let at = tallies.iter().position(is_it);
            (strip * STRIP) as u32 + at.expect("the strip has a block of this tally") as u32
        });
        debug_assert_eq!(victim, self.victim_among(|_| true));
        victim
    }

    /// Returns the greedy victim among the blocks for which `may` returns true. `None` if none of them is sealed and
    /// has an invalid page.
    pub fn victim_among(&self, may: impl Fn(u32) -> bool) -> Option<u32> {
        let (mut best, mut least) = (None, self.pages_per_block as u16);
        for (block, &tally) in self.tallies.iter().enumerate() {
            if tally < least && may(block as u32) {
                (best, least) = (Some(block as u32), tally);
            }
        }
        best
    }

    pub fn read(&self, ppn: u32, why: Why, ops: &mut Vec<FlashOp>) {
        let kind = OpKind::Read { ppn };
        ops.push(FlashOp { kind, why });
    }

    pub fn program(&mut self, ppn: u32, tag: u32, why: Why, ops: &mut Vec<FlashOp>) {
        self.set(ppn, tag);
        let kind = OpKind::Program { ppn };
        ops.push(FlashOp { kind, why });
    }

    #[inline(always)]
    pub fn copy(&mut self, from: u32, to: u32, why: Why, ops: &mut Vec<FlashOp>) {
        let tag = self.drop_page(from);
        self.set(to, tag);
        let kind = OpKind::Copy { from, to };
        ops.push(FlashOp { kind, why });
    }

    /// Copies pages to consecutive places of one block, beginning with the place `to`. `places` has the location of
    /// each page. It has [`NONE`] for a page without a copy on flash; the new place of such a page stays erased.
    pub fn copy_each(&mut self, places: &mut [u32], to: u32, why: Why, ops: &mut Vec<FlashOp>) {
        let mut copied = 0;
        places.iter().for_each(|&place| self.prefetch_page(place));
        for (place, to) in places.iter_mut().zip(to..) {
            if *place != NONE {
                let from = std::mem::replace(place, to);
                let tag = self.drop_page(from);
                self.fill(to, tag);
                copied += 1;
                let kind = OpKind::Copy { from, to };
                ops.push(FlashOp { kind, why });
            }
        }
        self.count_live(to / self.pages_per_block, copied);
    }

    /// Erases a block without live pages.
    pub fn erase(&mut self, block: u32, why: Why, ops: &mut Vec<FlashOp>) {
        debug_assert_eq!(self.live(block), 0, "block {block} still holds pages");
        let first = self.ppn(block, 0) as usize;
        let tags = &mut self.tags[first..first + self.pages_per_block as usize];
        self.skipped += tags.iter().filter(|&&tag| tag == ERASED).count() as u64;
        tags.fill(ERASED);
        let erases = &mut self.erases[block as usize];
        *erases = erases.saturating_add(1);
        self.tallies[block as usize] = OPEN;
        self.find_least(block);
        self.free.push_back(block);
        let kind = OpKind::Erase { block };
        ops.push(FlashOp { kind, why });
    }

    /// Sets the contents of an erased page without a flash operation. Used for initial states.
    #[inline(always)]
    pub fn set(&mut self, ppn: u32, tag: u32) {
        self.fill(ppn, tag);
        self.count_live(ppn / self.pages_per_block, 1);
    }

    /// Sets the contents of an erased page. The caller must add the page to the tally by [`Store::count_live`].
    #[inline(always)]
    fn fill(&mut self, ppn: u32, tag: u32) {
        debug_assert!(self.is_erased(ppn), "page {ppn} is programmed twice");
        self.tags[ppn as usize] = tag;
    }

    /// Counts `pages` further live pages of a block.
    #[inline(always)]
    fn count_live(&mut self, block: u32, pages: u16) {
        let tally = &mut self.tallies[block as usize];
        *tally += pages;
        if *tally < OPEN {
            // The block is already sealed: a block is sealed when its last page is taken, and that page is among these.
            self.find_least(block);
        }
    }

    /// Marks a page invalid, and returns its contents.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn drop_page(&mut self, ppn: u32) -> u32 {
        debug_assert!(self.tag(ppn).is_some(), "page {ppn} holds nothing");
        let block = (ppn / self.pages_per_block) as usize;
        let tally = &mut self.tallies[block];
        *tally -= 1;
        if *tally < OPEN {
            let least = &mut self.least[block / STRIP];
            *least = (*least).min(*tally);
        }
        std::mem::replace(&mut self.tags[ppn as usize], STALE)
    }

    /// Prefetches the data that [`Store::drop_page`] changes.
    #[inline]
    pub fn prefetch(&self, ppn: u32) {
        prefetch(&self.tallies, (ppn / self.pages_per_block) as usize);
        self.prefetch_page(ppn);
    }

    /// Prefetches the contents of all pages of a block.
    #[inline]
    pub fn prefetch_block(&self, block: u32) {
        let lines = (self.ppn(block, 0)..self.ppn(block + 1, 0)).step_by(64 / size_of::<u32>());
        lines.for_each(|ppn| self.prefetch_page(ppn));
    }

    /// Prefetches the contents of a page.
    #[inline]
    pub fn prefetch_page(&self, ppn: u32) {
        prefetch(&self.tags, ppn as usize);
    }

    /// Checks that the live pages are exactly `places`, each with its contents. Also checks the tallies and the free
    /// blocks.
    pub fn check(&self, places: impl Iterator<Item = (u32, u32)>) -> Result<(), String> {
        let mut mapped = 0;
        for (tag, ppn) in places {
            mapped += 1;
            if self.tag(ppn) != Some(tag) {
                let found = self.tag(ppn);
                return Err(format!("page {ppn} should hold {tag}, holds {found:?}"));
            }
        }
        let live = self.tags.iter().filter(|&&tag| tag < STALE).count();
        if live != mapped {
            return Err(format!("{live} pages are live, {mapped} are mapped"));
        }
        for (block, pages) in self.tags.chunks(self.pages_per_block as usize).enumerate() {
            let live = pages.iter().filter(|&&tag| tag < STALE).count() as u32;
            if live != self.live(block as u32) {
                return Err(format!("block {block}: {live} live pages, miscounted"));
            }
        }
        for &block in &self.free {
            let first = self.ppn(block, 0);
            if (first..first + self.pages_per_block).any(|ppn| !self.is_erased(ppn)) {
                return Err(format!("block {block} is free and not erased"));
            }
        }
        Ok(())
    }

    /// Formats the contents of the first `pages` pages of a block, such as `[9 13 -]`. `-` marks an invalid page.
    /// `mark` returns the mark that follows a live page.
    pub fn text(&self, block: u32, pages: u32, mark: impl Fn(u32) -> &'static str) -> String {
        let page = |offset| match self.tag(self.ppn(block, offset)) {
            Some(tag) => format!("{tag}{}", mark(self.ppn(block, offset))),
            None => "-".to_owned(),
        };
        let pages: Vec<String> = (0..pages).map(page).collect();
        format!("[{}]", pages.join(" "))
    }
}
