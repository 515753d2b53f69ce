//! The page map: where every logical page is, and what every block holds.
//!
//! Plain arrays indexed by page or block. A host write touches the map entry of its page, the live
//! word and tally of the block that held the old copy, and the (hot) write frontier of a pool;
//! a GC move touches one cold cache line, the map entry, which [`PageMap::prefetch`] hides.
//!
//! Blocks are numbered plane by plane: all blocks of a pool (a plane, or a whole chip) stand
//! together. The reference's own block numbers exist only in its event logs ([`crate::nand`]).
//!
//! Here: the arrays, and looking things up in them. `write` changes where pages are, `pools` opens
//! and erases blocks, `check` proves the arrays against each other.

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

/// No flash page holds this logical page.
pub(super) const UNMAPPED: u32 = u32::MAX;
/// Flag in a tally: this block may not be collected (free, open, worn out or set aside). Tallies
/// are signed because that is what the smallest common vector instructions compare.
pub(super) const NOT_SEALED: i16 = 0x4000;
/// Blocks of a strip at most, as a power of two.
const STRIP_SHIFT_MAX: u32 = 6;

/// Numbers of logical pages in a cache line.
pub(super) const LPNS_OF_LINE: u32 = 16;

/// The block of a pool that is likely to be collected next, and the extent of the data loaded ahead for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foresight {
    /// Whether the last of the blocks with the fewest live pages is taken, not the first.
    pub last: bool,
    /// Pages whose logical numbers are loaded.
    pub pages: u32,
    /// Whether map entries of these pages are loaded as well, by [`PageMap::load_foreseen`].
    pub maps: bool,
}

/// Live pages whose map entries are still to be loaded.
#[derive(Clone, Debug, Default)]
pub(super) struct Foreseen {
    /// Live bits of the present word.
    pub live: u64,
    /// The flash page of its first bit.
    pub first: u32,
    /// Words after it.
    pub next: VecDeque<LiveFrom>,
}

/// Cursor over the live pages of a block: pages before it are not live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveFrom {
    /// A word of its live bits, and the page of the first of them.
    pub(super) word: u32,
    pub(super) first: u32,
}

/// Logical-to-physical map, its inverse, and the state of every block.
#[derive(Clone, Debug)]
pub(crate) struct PageMap {
    pub shape: Shape,
    /// LPN to PPN.
    pub(super) map: TrustedTable<u32>,
    /// PPN to LPN; meaningful only where the live bit is set.
    pub(super) reverse: TrustedTable<u32>,
    /// Per block, its live bits, when it was opened, and its erases.
    pub(super) rows: Rows,
    /// Live pages of each block, with [`NOT_SEALED`] where it may not be collected.
    pub(super) tally: TrustedTable<i16>,
    /// Time of each block's last erase, in erases of the device; empty where no rule needs it.
    pub(super) erased_at: Vec<u32>,
    pub(super) pools: TrustedTable<Pool>,
    /// Per pool, where its hot pages go; empty with one stream.
    pub(super) hot: Vec<Frontier>,
    /// Per pool, the pages that can be written until its free blocks are gone, as the reference
    /// counts them: (free + 1) x pages per block - next page, and what is left of the hot block.
    /// Side by side, to be compared at once.
    pub(super) room: TrustedTable<i32>,
    /// Per chip, the pools with most of it.
    pub(super) roomiest: TrustedTable<Roomiest>,
    /// The lowest of the tallies of each strip: `1 << strip_shift` blocks, all of one pool. One of the whole pool would
    /// take a look at all its blocks for every erase.
    pub(super) least: TrustedTable<i16>,
    pub(super) strip_shift: u32,
    /// Blocks in SLC mode as bits, and their number by pool; empty where there are none.
    pub(super) slc_bits: Vec<u64>,
    pub(super) slc_used: Vec<u32>,
    /// Blocks opened in SLC mode so far.
    pub(super) slc_opened: u64,
    /// Blocks opened as hot ones, as bits; empty where no move depends on it.
    pub(super) hot_blocks: Vec<u64>,
    /// A copy of the buffer policy's filter that the same writes enter: flash calls no policy. `None` where no move
    /// depends on it.
    pub(super) classes: Option<Box<Filter>>,
    /// Superblocks, where they are what is collected.
    pub(super) sets: Option<Sets>,
    /// Free blocks as bits, `words_per_pool` words a pool.
    pub(super) free_bits: Vec<u64>,
    /// Last sequence number given out, per chip.
    pub(super) last_seq: Vec<u32>,
    /// Erases since wear was last forgotten, if they are counted.
    pub(super) erase_clock: u32,
    /// Logical pages with a flash copy.
    pub(super) mapped: u64,
    /// Scratch of [`PageMap::relocate`], with room for all pages that a block's live bits can name.
    pub(super) moving: TrustedTable<u32>,
    /// A pool at or below this many free blocks is needy.
    pub(super) low: u32,
    /// Fewest free blocks of a pool after one was taken, since it was last asked.
    pub(super) lowest: u32,
    /// Needy pools of each chip.
    pub(super) needy: TrustedTable<u16>,
    /// Free blocks of each chip, all its pools together.
    pub(super) chip_free: Vec<u32>,
    /// Lowest sequence number of the open blocks of each chip; see [`PageMap::oldest_open`].
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
    /// A device that was never written: every block is free, except one open block in each pool.
    /// A pool with at most `low` free blocks is needy.
    pub fn new(shape: Shape, low: u32) -> PageMap {
        let blocks = (shape.chips * shape.planes_per_chip * shape.blocks_per_plane) as usize;
        let pages = blocks * shape.pages_per_block as usize;
        let pools = (shape.chips * shape.pools_per_chip) as usize;
        let rows = Rows::new(blocks, shape.pages_per_block);
        let words_per_pool = (shape.blocks_per_pool as usize).div_ceil(64);
        let strip_shift = shape.blocks_per_pool.trailing_zeros().min(STRIP_SHIFT_MAX);
        let mut map = PageMap {
            shape,
            // SAFETY: by LPN; a device refuses requests beyond its exported pages.
            map: unsafe { TrustedTable::new(large_table(UNMAPPED, shape.exported_pages as usize)) },
            // SAFETY: by PPN; `map` and frontiers name pages of the flash.
            reverse: unsafe { TrustedTable::new(large_table(UNMAPPED, pages)) },
            // SAFETY: as long as a block has live bits, of which each is moved once.
            moving: unsafe { TrustedTable::new(vec![0; rows.pages_max()]) },
            rows,
            // SAFETY: by block, of which PPNs and pools name no others.
            tally: unsafe { TrustedTable::new(vec![NOT_SEALED; blocks]) },
            erased_at: match shape.wear_aware {
                None => Vec::new(),
                Some(_) => vec![0; blocks],
            },
            erase_clock: 0,
            // SAFETY: by pool, of which chips have equally many.
            pools: unsafe { TrustedTable::new(vec![Pool::unopened(&shape); pools]) },
            hot: Vec::new(),
            // SAFETY: by pool.
            room: unsafe { TrustedTable::new(vec![0; pools]) },
            // SAFETY: by chip.
            roomiest: unsafe { TrustedTable::new(vec![Roomiest::UNKNOWN; shape.chips as usize]) },
            // SAFETY: by strip, of which blocks have one each.
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
            // SAFETY: by chip.
            needy: unsafe { TrustedTable::new(vec![0; shape.chips as usize]) },
            chip_free: vec![0; shape.chips as usize],
            // SAFETY: by chip.
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

    // ---- where things are ----

    /// The flash page that holds `lpn`, if any.
    #[inline(always)]
    pub fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        match self.map[lpn.0 as usize] {
            UNMAPPED => None,
            ppn => Some(Ppn(ppn)),
        }
    }

    /// The logical page whose live copy stands at `ppn`.
    #[inline(always)]
    pub fn lpn_at(&self, ppn: Ppn) -> Lpn {
        Lpn(self.reverse[ppn.0 as usize])
    }

    #[inline]
    pub fn block_of(&self, ppn: Ppn) -> u32 {
        self.by_pages_per_block.div(ppn.0)
    }

    /// Pool of a block, numbered over the whole device.
    #[inline]
    pub fn pool_of(&self, block: u32) -> u32 {
        self.by_blocks_per_pool.div(block)
    }

    /// Plane of a block, numbered over the whole device.
    #[inline]
    pub fn plane_of(&self, block: u32) -> u32 {
        self.by_blocks_per_plane.div(block)
    }

    /// Chip of a flash page.
    pub fn chip_of(&self, ppn: Ppn) -> u32 {
        self.plane_of(self.block_of(ppn)) / self.shape.planes_per_chip
    }

    /// The number of pages of `block`, counted from its first page.
    #[inline(always)]
    pub fn first_ppn(&self, block: u32) -> Ppn {
        Ppn(block * self.shape.pages_per_block)
    }

    /// Sequence number of a block: a block opened later has a greater one.
    #[inline]
    pub fn seq_of(&self, block: u32) -> u32 {
        self.rows.opened(block)
    }

    /// Live pages of a block.
    #[inline]
    pub fn valid_of(&self, block: u32) -> u32 {
        (self.tally[block as usize] & !NOT_SEALED) as u32
    }

    /// Live pages of the blocks of a pool; a value of [`PageMap::CANDIDATE_END`] or more means
    /// that the block may not be collected.
    pub fn tallies(&self, pool: u32) -> &[i16] {
        let n = self.shape.blocks_per_pool as usize;
        self.tally.part(pool as usize * n, n)
    }

    /// Tallies below this belong to blocks that may be collected.
    pub const CANDIDATE_END: i16 = NOT_SEALED;

    /// Live bits of a block.
    #[inline(always)]
    pub(super) fn live_words(&self, block: u32) -> &[u64] {
        self.rows.live(block)
    }

    /// The first live page of `block` at or after `page`.
    #[inline(always)]
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

    /// A cursor from the first page of `block` on.
    pub fn live_from(&self, block: u32) -> LiveFrom {
        LiveFrom {
            word: self.rows.first(block) as u32,
            first: self.first_ppn(block).0,
        }
    }

    /// The first live page of `block`, where none is before `from`, which moves on to it.
    #[inline(always)]
    pub fn first_live(&self, block: u32, from: &mut LiveFrom) -> Option<Ppn> {
        match NonZeroU64::new(self.rows[from.word as usize]) {
            Some(bits) => Some(Ppn(from.first + bits.trailing_zeros())),
            None => self.first_live_beyond(block, from),
        }
    }

    /// Finds the first live page in a later word.
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

    /// Erases of all blocks.
    pub fn erase_counts(&self) -> Vec<u32> {
        self.rows.all_erases()
    }

    /// Erases of a block.
    #[inline(always)]
    pub fn erases_of(&self, block: u32) -> u32 {
        self.rows.erases(block)
    }

    // ---- hints ----

    /// Starts loading what a write or read of `lpn` will touch first.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.map, lpn.0 as usize);
    }

    /// Starts loading the map entries of the logical pages that are live in `block` among `n` pages from `page` on, a
    /// multiple of `n`; `n` is a power of two up to 64.
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

    /// Starts loading the number of the logical page that stands, or stood, at `ppn`.
    #[inline(always)]
    pub fn prefetch_lpn_at(&self, ppn: Ppn) {
        prefetch(&self.reverse, ppn.0 as usize);
    }

    /// Starts loading which pages of `block` are live, the logical pages of the first `pages`, and how often it was
    /// erased.
    #[inline(always)]
    pub fn prefetch_block(&self, block: u32, pages: u32) {
        self.rows.prefetch(block);
        let first = self.first_ppn(block).0;
        (0..pages)
            .step_by(LPNS_OF_LINE as usize)
            .for_each(|page| self.prefetch_lpn_at(Ppn(first.wrapping_add(page))));
    }

    /// Starts loading what is touched when the pool opens its next block.
    #[inline]
    pub(super) fn prefetch_next_block(&self, pool: u32) {
        let free = self.find_free(pool, self.pools[pool as usize].cursor);
        if let Some(bit) = free {
            let block = pool * self.shape.blocks_per_pool + bit;
            self.prefetch_block(block, 1);
            prefetch(&self.tally, block as usize);
        }
    }

    /// Starts loading what a write of `lpn` will touch next, once its map entry is at hand: the
    /// state of the block that holds the old copy.
    #[inline(always)]
    pub fn prefetch_old_copy(&self, lpn: Lpn) {
        let ppn = self.map[lpn.0 as usize];
        let block = self.by_pages_per_block.div(ppn);
        self.rows.prefetch(block);
        prefetch(&self.tally, block as usize);
    }
}
