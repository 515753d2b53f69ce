//! The page map: where every logical page is, and what every block holds.
//!
//! Plain arrays indexed by page or block. A host write touches the map entry of its page, the live
//! word and tally of the block that held the old copy, and the (hot) write frontier of a pool;
//! a GC move touches one cold cache line, the map entry, which [`PageMap::prefetch`] hides.
//!
//! Blocks are numbered plane by plane: all blocks of a pool (a plane, or a whole chip) stand
//! together. The reference's own block numbers exist only in its event logs ([`crate::nand`]).

use crate::divide::Divider;
use crate::memory::{large_table, prefetch};
use crate::spec::DeviceSpec;
use crate::units::{Lpn, Ppn};

/// No flash page holds this logical page.
const UNMAPPED: u32 = u32::MAX;
/// Flag in a tally: this block may not be collected (free, open, worn out or set aside). Tallies
/// are signed because that is what the smallest common vector instructions compare.
const NOT_SEALED: i16 = 0x4000;

/// A pool of blocks with one write frontier: a plane, or a chip.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// The open block.
    pub active: u32,
    /// Next page to write in it; at `data_pages` the block is sealed and a new one is taken lazily.
    pub next_page: u32,
    /// Blocks free to be opened.
    pub free: u32,
    /// Sequence number of the open block.
    pub active_seq: u32,
    /// Where the circular search for a free block goes on, from the pool's first block.
    pub(super) cursor: u32,
}

/// A pool has no free block left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolFull;

/// Counts that fix the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub chips: u32,
    pub planes_per_chip: u32,
    pub blocks_per_plane: u32,
    pub pages_per_block: u32,
    /// Pages of a block that carry data: one less with a summary page.
    pub data_pages: u32,
    /// Pools in a chip: its planes, or 1.
    pub pools_per_chip: u32,
    pub blocks_per_pool: u32,
    /// Logical pages.
    pub exported_pages: u32,
    /// Blocks of a plane that the exported pages fill when written sequentially.
    pub usable_per_plane: u32,
    pub stride_pages: u32,
    pub erase_limit: u32,
    /// The reference's free count without copy-back starts one too high (quirk Q6).
    pub free_count_bias: u32,
}

/// A pair of logical and flash page as one well-mixed number. The map and its inverse are compared
/// by the sums of their pairs: following each page from one to the other would cost a cache miss a
/// page, most of the time of loading a state.
#[inline]
fn pair_sum(lpn: u32, ppn: u32) -> u64 {
    let z = (u64::from(lpn) << 32 | u64::from(ppn)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Logical-to-physical map, its inverse, and the state of every block.
#[derive(Clone, Debug)]
pub(crate) struct PageMap {
    pub shape: Shape,
    /// LPN to PPN.
    pub(super) map: Vec<u32>,
    /// PPN to LPN; meaningful only where the live bit is set.
    pub(super) reverse: Vec<u32>,
    /// Live bits, `words_per_block` words a block.
    pub(super) live: Vec<u64>,
    /// Live pages of each block, with [`NOT_SEALED`] where it may not be collected.
    pub(super) tally: Vec<i16>,
    /// When each block was opened, as a number that grows within its chip.
    pub(super) seq: Vec<u32>,
    pub(super) erases: Vec<u32>,
    pub(super) pools: Vec<Pool>,
    /// Per pool, the pages that can be written until its free blocks are gone, as the reference
    /// counts them: (free + 1) x pages per block - next page. Side by side, to be compared at once.
    room: Vec<i32>,
    /// Free blocks as bits, `words_per_pool` words a pool.
    pub(super) free_bits: Vec<u64>,
    /// Last sequence number given out, per chip.
    pub(super) last_seq: Vec<u32>,
    /// Logical pages with a flash copy.
    pub(super) mapped: u64,
    /// Scratch of [`PageMap::relocate`].
    moving: Vec<u32>,
    /// A pool at or below this many free blocks is needy.
    low: u32,
    /// Needy pools of each chip.
    needy: Vec<u16>,
    /// Lowest sequence number of the open blocks of each chip.
    oldest_open: Vec<u32>,
    words_per_block: usize,
    words_per_pool: usize,
    by_pages_per_block: Divider,
    by_blocks_per_pool: Divider,
    by_blocks_per_plane: Divider,
}

impl PageMap {
    /// A device that was never written: every block free but one open block a pool.
    pub fn new(spec: &DeviceSpec, pools_are_planes: bool, low: u32) -> PageMap {
        let g = &spec.geometry;
        let pools_per_chip = if pools_are_planes {
            g.planes_per_chip
        } else {
            1
        };
        let shape = Shape {
            chips: g.chips,
            planes_per_chip: g.planes_per_chip,
            blocks_per_plane: g.blocks_per_plane,
            pages_per_block: g.pages_per_block,
            data_pages: spec.data_pages_per_block(),
            pools_per_chip,
            blocks_per_pool: g.planes_per_chip * g.blocks_per_plane / pools_per_chip,
            exported_pages: spec.exported_pages(),
            usable_per_plane: spec.usable_blocks_per_plane(),
            stride_pages: spec.ftl.stride_pages,
            erase_limit: spec.wear.erase_limit.unwrap_or(u32::MAX),
            free_count_bias: match &spec.nand {
                crate::spec::Nand::Msr(msr) if !msr.copy_back => 1,
                _ => 0,
            },
        };
        let blocks = (shape.chips * shape.planes_per_chip * shape.blocks_per_plane) as usize;
        let pages = blocks * shape.pages_per_block as usize;
        let pools = (shape.chips * shape.pools_per_chip) as usize;
        let words_per_block = (shape.pages_per_block as usize).div_ceil(64);
        let words_per_pool = (shape.blocks_per_pool as usize).div_ceil(64);
        let mut map = PageMap {
            shape,
            map: large_table(UNMAPPED, shape.exported_pages as usize),
            reverse: large_table(UNMAPPED, pages),
            live: large_table(0, blocks * words_per_block),
            tally: vec![NOT_SEALED; blocks],
            seq: large_table(0, blocks),
            erases: vec![0; blocks],
            pools: Vec::with_capacity(pools),
            room: vec![0; pools],
            free_bits: vec![0; pools * words_per_pool],
            last_seq: vec![0; shape.chips as usize],
            mapped: 0,
            moving: Vec::new(),
            low,
            needy: vec![0; shape.chips as usize],
            oldest_open: vec![0; shape.chips as usize],
            words_per_block,
            words_per_pool,
            by_pages_per_block: Divider::new(shape.pages_per_block),
            by_blocks_per_pool: Divider::new(shape.blocks_per_pool),
            by_blocks_per_plane: Divider::new(shape.blocks_per_plane),
        };
        for pool in 0..pools as u32 {
            for bit in 0..shape.blocks_per_pool {
                map.set_free(pool, bit, true);
            }
            map.pools.push(Pool {
                active: 0,
                next_page: 0,
                free: shape.blocks_per_pool,
                active_seq: 0,
                cursor: 0,
            });
            map.open(pool, 0);
            map.pools[pool as usize].free += shape.free_count_bias;
        }
        map.recount();
        map
    }

    // ---- where things are ----

    /// The flash page that holds `lpn`, if any.
    #[inline]
    pub fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        match self.map[lpn.0 as usize] {
            UNMAPPED => None,
            ppn => Some(Ppn(ppn)),
        }
    }

    /// The logical page whose live copy stands at `ppn`.
    #[inline]
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

    #[inline]
    pub fn pool(&self, pool: u32) -> &Pool {
        &self.pools[pool as usize]
    }

    /// Some pool of the chip is at or below the low watermark.
    #[inline]
    pub fn is_needy(&self, chip: u32) -> bool {
        self.needy[chip as usize] > 0
    }

    /// Free blocks at or below which a pool collects.
    pub fn low(&self) -> u32 {
        self.low
    }

    /// All open blocks of the chip are younger than this sequence number, or as old.
    #[inline]
    pub fn oldest_open(&self, chip: u32) -> u32 {
        self.oldest_open[chip as usize]
    }

    /// Works out afresh what is derived from the pools, after they were set wholesale.
    pub(super) fn recount(&mut self) {
        let (low, pages_per_block) = (self.low, self.shape.pages_per_block as i64);
        for (chip, pools) in self
            .pools
            .chunks(self.shape.pools_per_chip as usize)
            .enumerate()
        {
            self.needy[chip] = pools.iter().filter(|pool| pool.free <= low).count() as u16;
            self.oldest_open[chip] = pools.iter().map(|pool| pool.active_seq).min().unwrap_or(0);
        }
        for (room, pool) in self.room.iter_mut().zip(&self.pools) {
            let pages = (pool.free as i64 + 1) * pages_per_block - pool.next_page as i64;
            *room = pages.min(i32::MAX as i64) as i32;
        }
    }

    #[inline]
    pub fn pools_of_chip(&self, chip: u32) -> &[Pool] {
        let n = self.shape.pools_per_chip as usize;
        &self.pools[chip as usize * n..][..n]
    }

    /// Room in each pool of a chip, see the field.
    #[inline]
    pub fn rooms_of_chip(&self, chip: u32) -> &[i32] {
        let n = self.shape.pools_per_chip as usize;
        &self.room[chip as usize * n..][..n]
    }

    /// Sequence number of a block: a block opened later has a greater one.
    #[inline]
    pub fn seq_of(&self, block: u32) -> u32 {
        self.seq[block as usize]
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
        &self.tally[pool as usize * n..][..n]
    }

    /// Tallies below this belong to blocks that may be collected.
    pub const CANDIDATE_END: i16 = NOT_SEALED;

    pub fn pages_mapped(&self) -> u64 {
        self.mapped
    }

    pub fn erase_counts(&self) -> &[u32] {
        &self.erases
    }

    /// Starts loading what a write or read of `lpn` will touch first.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.map, lpn.0 as usize);
    }

    /// Starts loading the map entries of the pages that `block` holds.
    pub fn prefetch_block(&self, block: u32) {
        let first = block as usize * self.shape.pages_per_block as usize;
        let words = &self.live[block as usize * self.words_per_block..][..self.words_per_block];
        for (i, &word) in words.iter().enumerate() {
            let mut bits = word;
            while bits != 0 {
                let page = first + i * 64 + bits.trailing_zeros() as usize;
                prefetch(&self.map, self.reverse[page] as usize);
                bits &= bits - 1;
            }
        }
    }

    /// Starts loading the map entry of the logical page that stands, or stood, at `ppn`.
    #[inline]
    pub fn prefetch_at(&self, ppn: Ppn) {
        if let Some(&lpn) = self.reverse.get(ppn.0 as usize) {
            prefetch(&self.map, lpn as usize);
        }
    }

    /// Starts loading what a write of `lpn` will touch next, once its map entry is at hand: the
    /// state of the block that holds the old copy.
    #[inline]
    pub fn prefetch_old_copy(&self, lpn: Lpn) {
        let ppn = self.map[lpn.0 as usize];
        let block = self.by_pages_per_block.div(ppn) as usize;
        prefetch(&self.live, block * self.words_per_block);
        prefetch(&self.seq, block);
        prefetch(&self.tally, block);
    }

    // ---- writing ----

    /// Takes a new open block if the pool's open block is full.
    #[inline]
    pub fn make_room(&mut self, pool: u32) -> Result<(), PoolFull> {
        if self.pools[pool as usize].next_page < self.shape.data_pages {
            return Ok(());
        }
        self.take_block(pool)
    }

    #[cold]
    fn take_block(&mut self, pool: u32) -> Result<(), PoolFull> {
        let cursor = self.pools[pool as usize].cursor;
        let bit = self.find_free(pool, cursor).ok_or(PoolFull)?;
        self.open(pool, bit);
        Ok(())
    }

    /// Writes `lpn` at the frontier of `pool`, after [`PageMap::make_room`], and forgets its old
    /// copy. True if that was the last data page of its block, which is now sealed.
    #[inline]
    pub fn append(&mut self, pool: u32, lpn: Lpn) -> bool {
        let old = self.map[lpn.0 as usize];
        if old == UNMAPPED {
            self.mapped += 1;
        } else {
            self.invalidate(Ppn(old));
        }
        let data_pages = self.shape.data_pages;
        let p = &mut self.pools[pool as usize];
        debug_assert!(
            p.next_page < data_pages,
            "write past the end of block {}",
            p.active
        );
        let page = p.next_page;
        let block = p.active as usize;
        p.next_page += 1;
        self.room[pool as usize] -= 1;
        let sealed = p.next_page == data_pages;
        let ppn = block as u32 * self.shape.pages_per_block + page;
        self.reverse[ppn as usize] = lpn.0;
        self.map[lpn.0 as usize] = ppn;
        self.live[block * self.words_per_block + page as usize / 64] |= 1 << (page % 64);
        self.tally[block] += 1;
        if sealed {
            self.seal(block as u32);
        }
        sealed
    }

    #[inline]
    fn invalidate(&mut self, ppn: Ppn) {
        let (block, page) = self.by_pages_per_block.div_rem(ppn.0);
        let word = &mut self.live[block as usize * self.words_per_block + page as usize / 64];
        debug_assert!(*word >> (page % 64) & 1 == 1, "page {ppn:?} is not live");
        *word &= !(1 << (page % 64));
        self.tally[block as usize] -= 1;
    }

    /// Forgets the flash copy of `lpn`; true if there was one.
    pub fn unmap(&mut self, lpn: Lpn) -> bool {
        let old = std::mem::replace(&mut self.map[lpn.0 as usize], UNMAPPED);
        if old != UNMAPPED {
            self.invalidate(Ppn(old));
            self.mapped -= 1;
        }
        old != UNMAPPED
    }

    // ---- collecting ----

    /// Moves all live pages of `block` to the frontier of `pool`, which has room for them, in page
    /// order. `moved` is told of each destination block: the pages that went there, and whether
    /// that sealed it. Starts loading all map entries before it changes the first.
    pub fn relocate(
        &mut self,
        block: u32,
        pool: u32,
        mut moved: impl FnMut(&PageMap, u32, u32, bool),
    ) {
        let mut lpns = std::mem::take(&mut self.moving);
        lpns.clear();
        let first_page = block as usize * self.shape.pages_per_block as usize;
        let words =
            block as usize * self.words_per_block..(block as usize + 1) * self.words_per_block;
        for (i, word) in self.live[words.clone()].iter().enumerate() {
            let mut bits = *word;
            while bits != 0 {
                let lpn = self.reverse[first_page + i * 64 + bits.trailing_zeros() as usize];
                prefetch(&self.map, lpn as usize);
                lpns.push(lpn);
                bits &= bits - 1;
            }
        }
        self.live[words].fill(0);
        self.tally[block as usize] &= NOT_SEALED;
        let mut rest = &lpns[..];
        while !rest.is_empty() {
            self.make_room(pool).expect("the caller saw the room");
            let p = &mut self.pools[pool as usize];
            let (to, page) = (p.active, p.next_page);
            let n = rest.len().min((self.shape.data_pages - page) as usize);
            let (now, later) = rest.split_at(n);
            p.next_page += n as u32;
            self.room[pool as usize] -= n as i32;
            let sealed = p.next_page == self.shape.data_pages;
            let ppn = to * self.shape.pages_per_block + page;
            self.reverse[ppn as usize..][..n].copy_from_slice(now);
            for (i, &lpn) in now.iter().enumerate() {
                self.map[lpn as usize] = ppn + i as u32;
            }
            self.set_live(to, page, n as u32);
            self.tally[to as usize] += n as i16;
            if sealed {
                self.seal(to);
            }
            moved(self, to, n as u32, sealed);
            rest = later;
        }
        self.moving = lpns;
    }

    /// Marks `n` pages of `block` from `page` on as live.
    #[inline]
    fn set_live(&mut self, block: u32, page: u32, n: u32) {
        let words = &mut self.live[block as usize * self.words_per_block..][..self.words_per_block];
        let (mut at, end) = (page, page + n);
        while at < end {
            let in_word = (64 - at % 64).min(end - at);
            words[at as usize / 64] |= (u64::MAX >> (64 - in_word)) << (at % 64);
            at += in_word;
        }
    }

    #[inline]
    fn seal(&mut self, block: u32) {
        if self.erases[block as usize] < self.shape.erase_limit {
            self.tally[block as usize] &= !NOT_SEALED;
        }
    }

    /// The first live page of `block` at or after `page`.
    pub fn next_live(&self, block: u32, page: u32) -> Option<u32> {
        let words = &self.live[block as usize * self.words_per_block..][..self.words_per_block];
        let mut i = page as usize / 64;
        let mut mask = u64::MAX << (page % 64);
        while i < words.len() {
            let bits = words[i] & mask;
            if bits != 0 {
                return Some(i as u32 * 64 + bits.trailing_zeros());
            }
            mask = u64::MAX;
            i += 1;
        }
        None
    }

    /// The number of pages of `block`, counted from its first page.
    pub fn first_ppn(&self, block: u32) -> Ppn {
        Ppn(block * self.shape.pages_per_block)
    }

    /// Frees a block that holds no live page.
    pub fn erase(&mut self, block: u32) {
        debug_assert_eq!(self.valid_of(block), 0, "block {block} still holds data");
        let pool = self.pool_of(block);
        self.tally[block as usize] = NOT_SEALED;
        self.erases[block as usize] += 1;
        self.set_free(pool, block - pool * self.shape.blocks_per_pool, true);
        let p = &mut self.pools[pool as usize];
        p.free += 1;
        self.room[pool as usize] += self.shape.pages_per_block as i32;
        if p.free == self.low + 1 {
            self.needy[(pool / self.shape.pools_per_chip) as usize] -= 1;
        }
    }

    // ---- free blocks ----

    fn open(&mut self, pool: u32, bit: u32) {
        self.set_free(pool, bit, false);
        let block = pool * self.shape.blocks_per_pool + bit;
        let chip = (pool / self.shape.pools_per_chip) as usize;
        let seq = &mut self.last_seq[chip];
        *seq = seq.wrapping_add(1);
        self.seq[block as usize] = *seq;
        let p = &mut self.pools[pool as usize];
        p.active = block;
        p.active_seq = *seq;
        p.next_page = 0;
        if p.free == self.low + 1 {
            self.needy[chip] += 1;
        }
        p.free -= 1;
        self.room[pool as usize] = ((p.free + 1) * self.shape.pages_per_block) as i32;
        p.cursor = if bit + 1 == self.shape.blocks_per_pool {
            0
        } else {
            bit + 1
        };
        // Not all pools exist yet while the map is made; `recount` follows.
        let n = self.shape.pools_per_chip as usize;
        let open = self
            .pools
            .iter()
            .skip(chip * n)
            .take(n)
            .map(|pool| pool.active_seq);
        self.oldest_open[chip] = open.min().unwrap_or(0);
    }

    pub(super) fn set_free(&mut self, pool: u32, bit: u32, free: bool) {
        let word = &mut self.free_bits[pool as usize * self.words_per_pool + bit as usize / 64];
        let mask = 1u64 << (bit % 64);
        if free {
            *word |= mask;
        } else {
            *word &= !mask;
        }
    }

    pub(super) fn is_free(&self, pool: u32, bit: u32) -> bool {
        self.free_bits[pool as usize * self.words_per_pool + bit as usize / 64] >> (bit % 64) & 1
            == 1
    }

    /// The first free block at or after `from` in circular order.
    fn find_free(&self, pool: u32, from: u32) -> Option<u32> {
        let words = &self.free_bits[pool as usize * self.words_per_pool..][..self.words_per_pool];
        let start = from as usize / 64;
        let below = (1u64 << (from % 64)) - 1;
        for step in 0..=words.len() {
            let i = (start + step) % words.len();
            let mask = match step {
                0 => !below,
                n if n == words.len() => below,
                _ => u64::MAX,
            };
            let bits = words[i] & mask;
            if bits != 0 {
                return Some(i as u32 * 64 + bits.trailing_zeros());
            }
        }
        None
    }

    // ---- initial states ----

    /// Overwrites the state of a pool: used by the initial fills, which place blocks wholesale.
    pub(super) fn set_frontier(&mut self, pool: u32, active_bit: u32, next_page: u32, free: u32) {
        let p = &mut self.pools[pool as usize];
        p.active = pool * self.shape.blocks_per_pool + active_bit;
        p.active_seq = self.seq[p.active as usize];
        p.next_page = next_page;
        p.free = free;
    }

    pub(super) fn set_cursor(&mut self, pool: u32, bit: u32) {
        self.pools[pool as usize].cursor = bit % self.shape.blocks_per_pool;
    }

    /// Puts `lpn` at a page nobody has written, without moving any frontier.
    #[inline]
    pub(super) fn put(&mut self, ppn: u32, lpn: u32) {
        let (block, page) = self.by_pages_per_block.div_rem(ppn);
        self.reverse[ppn as usize] = lpn;
        self.map[lpn as usize] = ppn;
        self.live[block as usize * self.words_per_block + page as usize / 64] |= 1 << (page % 64);
        self.tally[block as usize] += 1;
    }

    pub(super) fn set_sealed(&mut self, block: u32, sealed: bool) {
        if sealed {
            self.tally[block as usize] &= !NOT_SEALED;
        } else {
            self.tally[block as usize] |= NOT_SEALED;
        }
    }

    /// Number of live pages of a block, and the sum of their pairs of logical and flash page.
    fn live_pairs(&self, block: u32) -> Result<(u32, u64), String> {
        let s = &self.shape;
        let words = &self.live[block as usize * self.words_per_block..][..self.words_per_block];
        let first = block * s.pages_per_block;
        let reverse = &self.reverse[first as usize..][..s.data_pages as usize];
        let (mut count, mut pairs) = (0, 0u64);
        for (i, &word) in words.iter().enumerate() {
            let mut bits = word;
            while bits != 0 {
                let page = i as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                let lpn = reverse.get(page as usize).copied().unwrap_or(UNMAPPED);
                if lpn >= s.exported_pages {
                    return Err(format!("block {block}: page {page} cannot hold data"));
                }
                pairs = pairs.wrapping_add(pair_sum(lpn, first + page));
                count += 1;
            }
        }
        Ok((count, pairs))
    }

    /// Checks every array against every other; for tests and for states read from a file.
    pub fn check(&self) -> Result<(), String> {
        let s = &self.shape;
        let (mut live, mut pairs_live) = (0u64, 0u64);
        for block in 0..self.tally.len() as u32 {
            let (count, pairs) = self.live_pairs(block)?;
            if count != self.valid_of(block) {
                let tally = self.valid_of(block);
                return Err(format!("block {block}: {count} live pages, tally {tally}"));
            }
            live += u64::from(count);
            pairs_live = pairs_live.wrapping_add(pairs);
        }
        let (mut mapped, mut pairs_mapped) = (0u64, 0u64);
        for (lpn, &ppn) in self.map.iter().enumerate() {
            let used = ppn != UNMAPPED;
            mapped += u64::from(used);
            let pair = if used { pair_sum(lpn as u32, ppn) } else { 0 };
            pairs_mapped = pairs_mapped.wrapping_add(pair);
        }
        if mapped != live || mapped != self.mapped {
            let counted = self.mapped;
            return Err(format!(
                "{live} live flash pages, {mapped} mapped pages, {counted} counted"
            ));
        }
        if pairs_live != pairs_mapped {
            return Err("a live flash page is not where the map has its logical page".into());
        }
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
            let in_pool = p.active / s.blocks_per_pool == pool;
            if p.next_page > s.data_pages || p.cursor >= s.blocks_per_pool || !in_pool {
                return Err(format!("pool {pool}: impossible write frontier"));
            }
            // A full open block may have been collected; any other must be in use, with no page
            // written at or after its frontier.
            if p.next_page < s.data_pages {
                let ahead = self.next_live(p.active, p.next_page).is_some();
                let bit = p.active - pool * s.blocks_per_pool;
                if ahead || self.is_free(pool, bit) || self.tally[p.active as usize] < NOT_SEALED {
                    return Err(format!("pool {pool}: its open block is not open"));
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
}
