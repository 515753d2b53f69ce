//! The page map: the location of every logical page, and the contents of every block.
//!
//! The map consists of arrays indexed by page or block. A host write accesses four places: the map entry of its page,
//! the word of live bits and the tally (live pages) of the block with the old copy, and the write frontier of a pool.
//! Usually, only the frontier is in the processor's cache. A move by GC causes one cache miss, at the map entry;
//! [`PageMap::prefetch`] hides it.
//!
//! Blocks are numbered plane by plane. A pool is a plane or a whole chip, so the blocks of a pool have consecutive
//! numbers. The reference (DiskSim with Microsoft's SSD extension) numbers blocks differently. Its numbers are used
//! only in event logs ([`crate::nand`]).
//!
//! This file has the arrays and lookups. The module `write` changes the locations of pages, `pools` opens and erases
//! blocks, and `check` compares the arrays with each other.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use super::frontier::{Frontier, Pool, Roomiest};
use super::rows::Rows;
use super::sets::Sets;
use super::shape::{Apart, Shape};
use crate::buffer::Filter;
use crate::divide::Divider;
use crate::memory::{large_table, prefetch, TrustedTable};
use crate::units::{Lpn, Ppn};

/// Marks a logical page without a flash page.
pub(super) const UNMAPPED: u32 = u32::MAX;
/// Flag in the tally (number of live pages) of a block that may not be collected, because it is free, open, worn out
/// or set aside. Tallies are signed, because the vector instructions available on all processors compare signed
/// numbers.
pub(super) const NOT_SEALED: i16 = 0x4000;
/// Logarithm to base 2 of the largest number of blocks in a strip.
const STRIP_SHIFT_MAX: u32 = 6;

/// Number of logical page numbers in a cache line.
pub(super) const LPNS_OF_LINE: u32 = 16;

/// Parameters of the prefetches before a collection: how to find the probable victim of a pool, and which of its data
/// to prefetch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foresight {
    /// Choice of the victim among several blocks with equally few live pages: the last if true, otherwise the first.
    pub last: bool,
    /// Number of the block's first pages for which the logical page numbers are prefetched.
    pub pages: u32,
    /// Whether the map entries of these pages are prefetched as well ([`PageMap::load_foreseen`]).
    pub maps: bool,
}

/// Queue of live pages of likely victims. Their map entries are still to be prefetched.
#[derive(Clone, Debug, Default)]
pub(super) struct Foreseen {
    /// Remaining live bits of the present word.
    pub live: u64,
    /// Flash page of the word's first bit.
    pub first: u32,
    /// Words to process next.
    pub next: VecDeque<LiveFrom>,
}

/// Cursor over the live pages of a block. The block has no live page before the cursor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveFrom {
    /// Index of the present word of live bits. `first` is the flash page of the first bit of this word.
    pub(super) word: u32,
    pub(super) first: u32,
}

/// Logical-to-physical map, its inverse, and the state of every block.
#[derive(Clone, Debug)]
pub(crate) struct PageMap {
    pub shape: Shape,
    /// Logical page (LPN) to flash page (PPN).
    pub(super) map: TrustedTable<u32>,
    /// Flash page (PPN) to logical page (LPN); valid only if the live bit is set.
    pub(super) reverse: TrustedTable<u32>,
    /// For each block: its live bits, its sequence number, and its erase count.
    pub(super) rows: Rows,
    /// For each block: its number of live pages, with the flag [`NOT_SEALED`] if the block may not be collected.
    pub(super) tally: TrustedTable<i16>,
    /// For each block, the value of `erase_clock` at its last erase. Empty if no rule needs this.
    pub(super) erased_at: Vec<u32>,
    pub(super) pools: TrustedTable<Pool>,
    /// For each pool, the frontier of the hot stream. Empty if the device has only one stream.
    pub(super) hot: Vec<Frontier>,
    /// Room of each pool: the number of pages that can be written before the pool has no free and no open block left.
    /// As in the reference, this is (free blocks + 1) * pages per block - next page, plus the free pages of the hot
    /// block. The rooms of all pools are adjacent in memory, so that they are compared together.
    pub(super) room: TrustedTable<i32>,
    /// For each chip, its pools with the most room.
    pub(super) roomiest: TrustedTable<Roomiest>,
    /// Lowest tally of each strip. A strip is `1 << strip_shift` blocks of one pool. An erase has to read all tallies
    /// of its strip. If a pool were a single strip, an erase would read the tallies of all blocks of the pool.
    pub(super) least: TrustedTable<i16>,
    pub(super) strip_shift: u32,
    /// One bit per block: whether it is in SLC mode. `slc_used` is the number of these blocks in each pool. Both are
    /// empty if the device has no SLC mode.
    pub(super) slc_bits: Vec<u64>,
    pub(super) slc_used: Vec<u32>,
    /// Blocks opened in SLC mode so far.
    pub(super) slc_opened: u64,
    /// One bit per block: whether it was opened as a hot block. Empty if GC does not need this to choose the stream of
    /// a moved page.
    pub(super) hot_blocks: Vec<u64>,
    /// Copy of the buffer policy's filter of hot pages. The flash needs a copy because it cannot call the policy. The
    /// same writes update both. `None` if GC does not need the filter to choose the stream of a moved page.
    pub(super) classes: Option<Box<Filter>>,
    /// The superblocks; `None` if the device collects single blocks.
    pub(super) sets: Option<Sets>,
    /// One bit per block: whether it is free. Each pool has `words_per_pool` words of 64 bits.
    pub(super) free_bits: Vec<u64>,
    /// For each chip, the sequence number of the block opened last.
    pub(super) last_seq: Vec<u32>,
    /// Clock that advances by one at each erase of the device. 0 if no rule needs it.
    pub(super) erase_clock: u32,
    /// Number of logical pages with a flash copy.
    pub(super) mapped: u64,
    /// Scratch memory of [`PageMap::relocate`], with an entry per live bit of a block.
    pub(super) moving: TrustedTable<u32>,
    /// Low watermark. A pool with at most this number of free blocks is needy: it has to collect.
    pub(super) low: u32,
    /// Fewest free blocks that any pool had after it took a block, since the last call of [`PageMap::take_lowest`].
    pub(super) lowest: u32,
    /// Number of needy pools of each chip.
    pub(super) needy: TrustedTable<u16>,
    /// Number of free blocks of each chip, summed over its pools.
    pub(super) chip_free: Vec<u32>,
    /// For each chip, the result of [`PageMap::oldest_open`].
    pub(super) oldest_open: TrustedTable<u32>,
    pub(super) words_per_pool: usize,
    pub(super) by_pages_per_block: Divider,
    pub(super) by_blocks_per_pool: Divider,
    pub(super) by_pools_per_chip: Divider,
    by_blocks_per_plane: Divider,
    pub(super) foresight: Option<Foresight>,
    pub(super) foreseen: Foreseen,
}

impl PageMap {
    /// Creates the map of a device that was never written. Each pool has one open block; all other blocks are free.
    /// `low` is the low watermark: a pool with at most `low` free blocks is needy.
    pub fn new(shape: Shape, low: u32) -> PageMap {
        let blocks = (shape.chips * shape.planes_per_chip * shape.blocks_per_plane) as usize;
        let pages = blocks * shape.pages_per_block as usize;
        let pools = (shape.chips * shape.pools_per_chip) as usize;
        let rows = Rows::new(blocks, shape.pages_per_block);
        let words_per_pool = (shape.blocks_per_pool as usize).div_ceil(64);
        let strip_shift = shape.blocks_per_pool.trailing_zeros().min(STRIP_SHIFT_MAX);
        let mut map = PageMap {
            shape,
            // SAFETY: indexed by LPN; a device refuses requests beyond its exported pages.
            map: unsafe { TrustedTable::new(large_table(UNMAPPED, shape.exported_pages as usize)) },
            // SAFETY: indexed by PPN; `map` and frontiers only contain pages of the flash.
            reverse: unsafe { TrustedTable::new(large_table(UNMAPPED, pages)) },
            // SAFETY: has an entry for each live bit of a block. Each live page is moved only once.
            moving: unsafe { TrustedTable::new(vec![0; rows.pages_max()]) },
            rows,
            // SAFETY: indexed by block. PPNs and pools contain only blocks of the flash.
            tally: unsafe { TrustedTable::new(vec![NOT_SEALED; blocks]) },
            erased_at: match shape.wear_aware {
                None => Vec::new(),
                Some(_) => vec![0; blocks],
            },
            erase_clock: 0,
            // SAFETY: indexed by pool. Every chip has the same number of pools.
            pools: unsafe { TrustedTable::new(vec![Pool::unopened(&shape); pools]) },
            hot: Vec::new(),
            // SAFETY: indexed by pool, as `pools`.
            room: unsafe { TrustedTable::new(vec![0; pools]) },
            // SAFETY: indexed by chip.
            roomiest: unsafe { TrustedTable::new(vec![Roomiest::UNKNOWN; shape.chips as usize]) },
            // SAFETY: indexed by strip. Every block is in a strip.
            least: unsafe { TrustedTable::new(vec![NOT_SEALED; blocks >> strip_shift]) },
            strip_shift,
            slc_bits: match shape.slc_blocks {
                0 => Vec::new(),
                _ => vec![0; blocks.div_ceil(64)],
            },
            slc_opened: 0,
            slc_used: match shape.slc_blocks {
                0 => Vec::new(),
                _ => vec![0; pools],
            },
            hot_blocks: match shape.apart {
                Apart::AsVictim => vec![0; blocks.div_ceil(64)],
                _ => Vec::new(),
            },
            classes: None,
            sets: shape.superblocks.then(|| Sets::new(shape.chips)),
            free_bits: vec![0; pools * words_per_pool],
            last_seq: vec![0; shape.chips as usize],
            mapped: 0,
            low,
            lowest: u32::MAX,
            // SAFETY: indexed by chip.
            needy: unsafe { TrustedTable::new(vec![0; shape.chips as usize]) },
            chip_free: vec![0; shape.chips as usize],
            // SAFETY: indexed by chip.
            oldest_open: unsafe { TrustedTable::new(vec![0; shape.chips as usize]) },
            words_per_pool,
            by_pages_per_block: Divider::new(shape.pages_per_block),
            by_blocks_per_pool: Divider::new(shape.blocks_per_pool),
            by_pools_per_chip: Divider::new(shape.pools_per_chip),
            by_blocks_per_plane: Divider::new(shape.blocks_per_plane),
            foresight: None,
            foreseen: Foreseen::default(),
        };
        if shape.streams > 1 {
            map.hot = map.hot_unopened();
        }
        map.open_first_blocks();
        map
    }

    // ---- lookups ----

    /// Returns the flash page with the copy of `lpn`; `None` if it has none.
    #[inline(always)]
    pub fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        match self.map[lpn.0 as usize] {
            UNMAPPED => None,
            ppn => Some(Ppn(ppn)),
        }
    }

    /// Returns the logical page whose live copy is at `ppn`.
    #[inline(always)]
    pub fn lpn_at(&self, ppn: Ppn) -> Lpn {
        Lpn(self.reverse[ppn.0 as usize])
    }

    #[inline]
    pub fn block_of(&self, ppn: Ppn) -> u32 {
        self.by_pages_per_block.div(ppn.0)
    }

    /// Returns the pool of a block; pools are numbered over the whole device.
    #[inline]
    pub fn pool_of(&self, block: u32) -> u32 {
        self.by_blocks_per_pool.div(block)
    }

    /// Returns the plane of a block; planes are numbered over the whole device.
    #[inline]
    pub fn plane_of(&self, block: u32) -> u32 {
        self.by_blocks_per_plane.div(block)
    }

    /// Returns the chip of a flash page.
    pub fn chip_of(&self, ppn: Ppn) -> u32 {
        self.plane_of(self.block_of(ppn)) / self.shape.planes_per_chip
    }

    /// Returns the number of the first page of `block`.
    #[inline(always)]
    pub fn first_ppn(&self, block: u32) -> Ppn {
        Ppn(block * self.shape.pages_per_block)
    }

    /// Returns the sequence number of a block. A block has a larger number than all blocks of its chip opened earlier.
    #[inline]
    pub fn seq_of(&self, block: u32) -> u32 {
        self.rows.opened(block)
    }

    /// Returns the number of live pages of a block.
    #[inline]
    pub fn valid_of(&self, block: u32) -> u32 {
        (self.tally[block as usize] & !NOT_SEALED) as u32
    }

    /// Returns the tally of each block of a pool. A block with a tally of [`PageMap::CANDIDATE_END`] or more may not
    /// be collected.
    pub fn tallies(&self, pool: u32) -> &[i16] {
        let n = self.shape.blocks_per_pool as usize;
        self.tally.part(pool as usize * n, n)
    }

    /// End of the tallies of blocks that may be collected: their tallies are below this number.
    pub const CANDIDATE_END: i16 = NOT_SEALED;

    /// Returns the live bits of a block.
    #[inline(always)]
    pub(super) fn live_words(&self, block: u32) -> &[u64] {
        self.rows.live(block)
    }

    /// Returns the first live page of `block` at or after `page`; `None` if there is none.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn next_live(&self, block: u32, page: u32) -> Option<u32> {
        let words = self.live_words(block);
        let mut i = page as usize / 64;
        let mut mask = u64::MAX << (page % 64);
        while i < words.len() {
            if let Some(bits) = NonZeroU64::new(words[i] & mask) {
                return Some(i as u32 * 64 + bits.trailing_zeros());
            }
            mask = u64::MAX;
            i += 1;
        }
        None
    }

    /// Returns a cursor at the first page of `block`.
    pub fn live_from(&self, block: u32) -> LiveFrom {
        LiveFrom {
            word: self.rows.first(block) as u32,
            first: self.first_ppn(block).0,
        }
    }

    /// Returns the first live page of `block` from the cursor `from` on; `None` if there is none. Moves the cursor to
    /// the word with the bit of this page.
    #[inline(always)]
    pub fn first_live(&self, block: u32, from: &mut LiveFrom) -> Option<Ppn> {
        match NonZeroU64::new(self.rows[from.word as usize]) {
            Some(bits) => Some(Ppn(from.first + bits.trailing_zeros())),
            None => self.first_live_beyond(block, from),
        }
    }

    /// Continues [`PageMap::first_live`] in later words.
    #[inline(never)]
    fn first_live_beyond(&self, block: u32, from: &mut LiveFrom) -> Option<Ppn> {
        let end = self.rows.end(block) as u32;
        let word = (from.word..end).find(|&word| self.rows[word as usize] != 0)?;
        from.first += 64 * (word - from.word);
        from.word = word;
        self.first_live(block, from)
    }

    pub fn pages_mapped(&self) -> u64 {
        self.mapped
    }

    /// Returns the erases of all blocks.
    pub fn erase_counts(&self) -> Vec<u32> {
        self.rows.all_erases()
    }

    /// Returns the erases of a block.
    #[inline(always)]
    pub fn erases_of(&self, block: u32) -> u32 {
        self.rows.erases(block)
    }

    // ---- prefetches ----

    /// Prefetches the data that a write or read of `lpn` accesses first: its map entry.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.map, lpn.0 as usize);
    }

    /// Prefetches the map entries of the live pages among the `n` pages of `block` that begin with `page`. `page` must
    /// be a multiple of `n`, and `n` a power of two up to 64.
    #[inline(always)]
    pub fn prefetch_live_maps(&self, block: u32, page: u32, n: u32) {
        let word = self.rows[self.rows.of_page(block, page)];
        let mut bits = word >> (page % 64) & u64::MAX >> (64 - n);
        let first = self.first_ppn(block).0 + page;
        while let Some(left) = NonZeroU64::new(bits) {
            let lpn = self.lpn_at(Ppn(first + left.trailing_zeros()));
            prefetch(&self.map, lpn.0 as usize);
            bits &= bits - 1;
        }
    }

    /// Prefetches the number of the logical page that is at `ppn`, or was there last.
    #[inline(always)]
    pub fn prefetch_lpn_at(&self, ppn: Ppn) {
        prefetch(&self.reverse, ppn.0 as usize);
    }

    /// Prefetches the row of `block` (live bits and erase count), and the logical page numbers of its first `pages`
    /// pages.
    #[inline(always)]
    pub fn prefetch_block(&self, block: u32, pages: u32) {
        self.rows.prefetch(block);
        let first = self.first_ppn(block).0;
        (0..pages)
            .step_by(LPNS_OF_LINE as usize)
            .for_each(|page| self.prefetch_lpn_at(Ppn(first.wrapping_add(page))));
    }

    /// Prefetches the data that the pool accesses when it opens its next block.
    #[inline]
    pub(super) fn prefetch_next_block(&self, pool: u32) {
        let free = self.find_free(pool, self.pools[pool as usize].cursor);
        if let Some(bit) = free {
            let block = pool * self.shape.blocks_per_pool + bit;
            self.prefetch_block(block, 1);
            prefetch(&self.tally, block as usize);
        }
    }

    /// Prefetches the state of the block with the old copy of `lpn`. A write of `lpn` accesses it directly after the
    /// map entry.
    #[inline(always)]
    pub fn prefetch_old_copy(&self, lpn: Lpn) {
        let ppn = self.map[lpn.0 as usize];
        let block = self.by_pages_per_block.div(ppn);
        self.rows.prefetch(block);
        prefetch(&self.tally, block as usize);
    }
}
