//! Pools of blocks: their open blocks, free blocks and counters.
//!
//! A pool is a plane or a whole chip. With one write stream, a pool has one open block, which receives the host's
//! pages and the pages that GC moves. With two write streams, this block is the cold one, and a second open block
//! receives the hot pages. Both are taken from the same free blocks. [`Apart`](super::shape::Apart) lists the
//! criteria for hot pages, including that of CDA-GC section 3.2.2. A new block is opened only when a write finds the
//! open one full.

use super::frontier::{Frontier, Pool, PoolFull, Roomiest};
use super::page::{PageMap, NOT_SEALED};
use super::shape::Apart;
use crate::buffer::Filter;
use crate::rng::Rng;
use crate::units::Lpn;
use crate::units::{Stream, Time};

impl PageMap {
    // ---- open blocks ----

    #[inline]
    pub fn pool(&self, pool: u32) -> &Pool {
        &self.pools[pool as usize]
    }

    #[inline]
    pub fn pools_of_chip(&self, chip: u32) -> &[Pool] {
        let n = self.shape.pools_per_chip as usize;
        &(*self.pools)[chip as usize * n..][..n]
    }

    /// Whether a stream has an open block besides the cold one. Only the hot stream has one, if the device has two
    /// streams.
    #[inline(always)]
    fn has_own_block(&self, stream: Stream) -> bool {
        stream == Stream::Hot && !self.hot.is_empty()
    }

    /// Returns the next page to write in the open block of `pool` for `stream`. If this block is full, returns the
    /// number of its data pages.
    #[inline(always)]
    pub fn next_page(&self, pool: u32, stream: Stream) -> u32 {
        if self.has_own_block(stream) {
            self.hot[pool as usize].next_page
        } else {
            self.pools[pool as usize].next_page
        }
    }

    /// Returns the number of data pages in an open block of the stream. It is smaller if the block is in SLC mode.
    #[inline(always)]
    pub(super) fn end_of(&self, stream: Stream) -> u32 {
        match self.has_own_block(stream) {
            true => self.shape.hot_pages,
            false => self.shape.data_pages,
        }
    }

    /// Returns the number of free data pages in those open blocks of the pool that receive pages moved by GC.
    #[inline]
    pub fn open_pages_for_moves(&self, pool: u32) -> u32 {
        match self.shape.apart {
            Apart::Cached => self.shape.data_pages - self.pools[pool as usize].next_page,
            _ => self.open_pages(pool),
        }
    }

    /// Returns the number of free data pages in the open blocks of the pool, hot and cold.
    #[inline]
    pub fn open_pages(&self, pool: u32) -> u32 {
        let left = self.shape.data_pages - self.pools[pool as usize].next_page;
        left + self.hot_pages(pool as usize)
    }

    /// Returns the number of free data pages in the hot open block of the pool; 0 if there is no such block.
    #[inline]
    fn hot_pages(&self, pool: usize) -> u32 {
        let hot = self.hot.get(pool);
        hot.map_or(0, |hot| self.shape.hot_pages.saturating_sub(hot.next_page))
    }

    /// Returns the chip of a pool, and the pool's number within the chip.
    #[inline(always)]
    fn chip_of_pool(&self, pool: u32) -> (usize, u32) {
        let (chip, in_chip) = self.by_pools_per_chip.div_rem(pool);
        (chip as usize, in_chip)
    }

    /// Sets the room of a pool: the number of pages that can be written to it. Marks the record of the chip's pools
    /// with the most room (`roomiest`) as unknown.
    #[inline]
    fn set_room(&mut self, pool: u32, room: i32) {
        self.room[pool as usize] = room;
        let chip = self.chip_of_pool(pool).0;
        self.roomiest[chip] = Roomiest::UNKNOWN;
    }

    /// Returns the pool of a chip with the most room, numbered within the chip. Of equals, returns the first one from
    /// `start` on in circular order.
    #[inline(always)]
    pub fn roomiest_of_chip(&mut self, chip: u32, start: u32) -> u32 {
        if !self.roomiest[chip as usize].is_known() {
            self.roomiest[chip as usize] = Roomiest::of(self.rooms_of_chip(chip));
        }
        self.roomiest[chip as usize].first_from(start)
    }

    /// Takes the next `n` pages of the open block, which must have `n` free pages. Returns the block and the first of
    /// these pages.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn advance(&mut self, pool: u32, stream: Stream, n: u32) -> (u32, u32) {
        let (block, next_page) = if self.has_own_block(stream) {
            let hot = &mut self.hot[pool as usize];
            (hot.active, &mut hot.next_page)
        } else {
            let pool = &mut self.pools[pool as usize];
            (pool.active, &mut pool.next_page)
        };
        let page = *next_page;
        *next_page += n;
        debug_assert!(
            *next_page <= self.shape.data_pages,
            "write past the end of block {block}"
        );
        self.room[pool as usize] -= n as i32;
        if self.shape.pools_per_chip > 1 {
            let (chip, in_chip) = self.chip_of_pool(pool);
            self.roomiest[chip].shrink(in_chip, n as i32);
        }
        (block, page)
    }

    /// Ensures that the pool has an open block with a free page, and returns the stream of this block. Usually this
    /// is the requested stream. It is the other stream in two cases: the SLC write cache is full; or no free block
    /// can be opened, and only the open block of the other stream has free pages.
    #[inline(always)]
    pub fn make_room(&mut self, pool: u32, stream: Stream) -> Result<Stream, PoolFull> {
        if self.next_page(pool, stream) < self.end_of(stream) {
            return Ok(stream);
        }
        self.take_block(pool, stream)
    }

    #[cold]
    fn take_block(&mut self, pool: u32, stream: Stream) -> Result<Stream, PoolFull> {
        if self.stream_for(pool, stream) != stream {
            return self.make_room(pool, Stream::Cold);
        }
        let cursor = self.pools[pool as usize].cursor;
        let free = match self.shape.least_worn_first {
            true => self.find_least_worn(pool, cursor),
            false => self.find_free(pool, cursor),
        };
        if let Some(bit) = free {
            self.open(pool, stream, bit);
            return Ok(stream);
        }
        let other = match stream {
            Stream::Cold => Stream::Hot,
            Stream::Hot => Stream::Cold,
        };
        if self.next_page(pool, other) < self.end_of(other) {
            return Ok(other);
        }
        Err(PoolFull)
    }

    fn open(&mut self, pool: u32, stream: Stream, bit: u32) {
        self.set_free(pool, bit, false);
        let active = pool * self.shape.blocks_per_pool + bit;
        let chip = (pool / self.shape.pools_per_chip) as usize;
        let seq = self.last_seq[chip].wrapping_add(1);
        self.last_seq[chip] = seq;
        self.rows.set_opened(active, seq);
        if let Some(sets) = &mut self.sets {
            sets.opened(seq, pool, active);
        }
        let hot = self.has_own_block(stream);
        if self.writes_slc(stream) {
            self.set_slc(active, true);
        }
        self.set_hot(active, hot);
        let p = &mut self.pools[pool as usize];
        if hot {
            self.hot[pool as usize] = Frontier {
                active,
                next_page: 0,
            };
        } else {
            p.active = active;
            p.active_seq = seq;
            p.next_page = 0;
        }
        self.count_taken(pool);
        let p = &mut self.pools[pool as usize];
        p.cursor = if bit + 1 == self.shape.blocks_per_pool {
            0
        } else {
            bit + 1
        };
        self.set_room(pool, self.count_room(pool as usize));
        self.oldest_open[chip] = self.find_oldest_open(chip as u32);
    }

    /// Updates the counters of a pool after it took one of its free blocks.
    fn count_taken(&mut self, pool: u32) {
        let chip = (pool / self.shape.pools_per_chip) as usize;
        let p = &mut self.pools[pool as usize];
        if p.free == self.low + 1 {
            self.needy[chip] += 1;
        }
        p.free -= 1;
        let is_needy = p.free == self.low;
        self.lowest = self.lowest.min(p.free);
        self.chip_free[chip] -= 1;
        if is_needy {
            self.load_victim(pool);
        }
    }

    /// Removes a block from the free blocks without making it an open block.
    pub(super) fn take_free(&mut self, pool: u32, block: u32) {
        self.set_free(pool, block - pool * self.shape.blocks_per_pool, false);
        self.count_taken(pool);
        self.set_room(pool, self.count_room(pool as usize));
    }

    /// Opens the first block of each pool. All blocks of the map must be free.
    pub(super) fn open_first_blocks(&mut self) {
        self.recount();
        for pool in 0..self.pools.len() as u32 {
            for bit in 0..self.shape.blocks_per_pool {
                self.set_free(pool, bit, true);
            }
            self.open(pool, Stream::Cold, 0);
            self.pools[pool as usize].free += self.shape.free_count_bias;
        }
        self.recount();
    }

    /// Returns hot frontiers without an open block.
    pub(super) fn hot_unopened(&self) -> Vec<Frontier> {
        let full = |pool| Frontier {
            active: pool * self.shape.blocks_per_pool,
            next_page: self.shape.hot_pages,
        };
        (0..self.pools.len() as u32).map(full).collect()
    }

    // ---- free blocks ----

    /// Erases a block without live pages, and makes it free.
    pub fn erase(&mut self, block: u32) {
        debug_assert_eq!(self.valid_of(block), 0, "block {block} still holds data");
        let pool = self.pool_of(block);
        let chip = (pool / self.shape.pools_per_chip) as usize;
        self.tally[block as usize] = NOT_SEALED;
        if self.is_slc(block) {
            self.set_slc(block, false);
        }
        self.set_hot(block, false);
        self.rows.count_erase(block);
        if !self.erased_at.is_empty() {
            if self.erase_clock == u32::MAX {
                self.renumber_erases();
            }
            self.erase_clock += 1;
            self.erased_at[block as usize] = self.erase_clock;
        }
        self.set_free(pool, block - pool * self.shape.blocks_per_pool, true);
        let p = &mut self.pools[pool as usize];
        p.free += 1;
        self.chip_free[chip] += 1;
        if p.free == self.low + 1 {
            self.needy[chip] -= 1;
        }
        let room = self.room[pool as usize] + self.shape.pages_per_block as i32;
        self.set_room(pool, room);
        // The lowest tally of the strip is computed again, because an erase can raise it. No other change can.
        let strip = self.strip_of(block);
        self.least[strip] = self.find_least(strip);
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

    /// Returns the position in the pool of the first free block from `from` on in circular order. `None` if no block
    /// of the pool is free.
    pub(super) fn find_free(&self, pool: u32, from: u32) -> Option<u32> {
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

    // ---- counts ----

    /// Whether a pool of the chip is needy: it has no more free blocks than the low watermark.
    #[inline]
    pub fn is_needy(&self, chip: u32) -> bool {
        self.needy[chip as usize] > 0
    }

    /// Returns the fewest free blocks that any pool had after it took a block, since the last call. `None` if no
    /// block was taken.
    #[inline]
    pub fn take_lowest(&mut self) -> Option<u32> {
        match self.lowest {
            u32::MAX => None,
            lowest => {
                self.lowest = u32::MAX;
                Some(lowest)
            }
        }
    }

    /// Returns the low watermark: a pool collects when it has at most this number of free blocks.
    pub fn low(&self) -> u32 {
        self.low
    }

    /// Sets the low watermark: a pool collects when it has at most this number of free blocks.
    pub fn set_low(&mut self, low: u32) {
        self.low = low;
        self.recount();
    }

    /// Returns the lowest sequence number of the chip's open blocks, if the device has one stream. With two streams, a
    /// block opened earlier may have the newer copy of a page, so sequence numbers are not compared: the result is
    /// larger than any of them.
    #[inline]
    pub fn oldest_open(&self, chip: u32) -> u32 {
        self.oldest_open[chip as usize]
    }

    /// Returns the room of each pool of a chip (field `room`).
    #[inline]
    pub(super) fn rooms_of_chip(&self, chip: u32) -> &[i32] {
        let n = self.shape.pools_per_chip as usize;
        &(*self.room)[chip as usize * n..][..n]
    }

    /// Returns the stream to which a page of the host is written. `asked` is the stream that the buffer policy chose.
    #[inline(always)]
    pub fn host_stream(&self, lpn: Lpn, asked: Stream) -> Stream {
        match self.shape.apart {
            Apart::AsAsked | Apart::AsVictim | Apart::ByClass => asked,
            Apart::Moved | Apart::Cached => Stream::Hot,
            Apart::Below(end) if lpn.0 < end => Stream::Hot,
            Apart::Below(_) => Stream::Cold,
        }
    }

    /// Returns the stream of a page that was written so long ago that it is no longer in the SLC write cache. `asked`
    /// is the stream that the buffer policy chose.
    pub fn stream_at_rest(&self, lpn: Lpn, asked: Stream) -> Stream {
        match self.shape.apart {
            Apart::Cached => Stream::Cold,
            _ => self.host_stream(lpn, asked),
        }
    }

    /// Returns the stream to which GC moves a page of `block`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn move_stream(&self, block: u32, lpn: Lpn) -> Stream {
        let is_hot = match self.shape.apart {
            Apart::Below(end) => lpn.0 < end,
            Apart::AsVictim => self.is_hot(block),
            Apart::ByClass => self.has_hot_class(lpn),
            Apart::AsAsked | Apart::Moved | Apart::Cached => false,
        };
        match is_hot {
            true => Stream::Hot,
            false => Stream::Cold,
        }
    }

    /// Whether the page is in the copy of the buffer policy's filter of hot pages.
    fn has_hot_class(&self, lpn: Lpn) -> bool {
        self.classes.as_ref().is_some_and(|filter| filter.has(lpn))
    }

    /// Replaces the copy of the buffer policy's filter.
    pub fn exchange_classes(&mut self, classes: Option<Box<Filter>>) -> Option<Box<Filter>> {
        std::mem::replace(&mut self.classes, classes)
    }

    /// Adds a page to the copy of the buffer policy's filter of hot pages. Called when the host writes the page to
    /// the buffer, at `now`.
    #[inline(always)]
    pub fn note_write(&mut self, lpn: Lpn, now: Time) {
        if self.shape.apart == Apart::ByClass {
            if let Some(filter) = &mut self.classes {
                filter.write(now, lpn);
            }
        }
    }

    /// Whether the block was opened as a hot block. Always false if GC does not need this to choose the stream of a
    /// moved page.
    #[inline]
    pub fn is_hot(&self, block: u32) -> bool {
        let word = self.hot_blocks.get(block as usize / 64);
        word.is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    /// Records whether a block is a hot block. Does nothing if GC does not need this to choose the stream of a moved
    /// page.
    pub(super) fn set_hot(&mut self, block: u32, is_hot: bool) {
        if let Some(word) = self.hot_blocks.get_mut(block as usize / 64) {
            *word = *word & !(1 << (block % 64)) | u64::from(is_hot) << (block % 64);
        }
    }

    /// Whether GC moves every page to the cold stream ([`PageMap::move_stream`]).
    pub fn moves_to_one_stream(&self) -> bool {
        match self.shape.apart {
            Apart::Below(_) | Apart::AsVictim | Apart::ByClass => false,
            Apart::AsAsked | Apart::Moved | Apart::Cached => true,
        }
    }

    /// Returns the number of blocks that were opened after `block` on the same chip.
    #[inline]
    pub fn age_of(&self, block: u32) -> u32 {
        let chip = self.plane_of(block) / self.shape.planes_per_chip;
        self.last_seq[chip as usize].wrapping_sub(self.seq_of(block))
    }

    /// Returns a seed for random choices in the pool, derived from its state. The opening of a block in the pool's
    /// chip changes the seed, and so does an erase in the pool.
    pub fn position_hash(&self, pool: u32) -> u64 {
        let p = self.pool(pool);
        let seq = u64::from(self.last_seq[(pool / self.shape.pools_per_chip) as usize]);
        Rng::new(seq << 32 | u64::from(pool)).next_u64()
            ^ (u64::from(p.free) << 32 | u64::from(p.next_page))
    }

    /// Returns the number of write streams.
    #[inline]
    pub fn streams(&self) -> u32 {
        1 + u32::from(!self.hot.is_empty())
    }

    /// Returns the room of a pool (the number of pages that can be written) for one stream, without the free pages in
    /// the open block of the other stream. If these free pages counted, each stream would write to pools in which the
    /// other stream has just opened a block. The numbers of live pages of the pools would then diverge, and write
    /// amplification would rise by half or more.
    #[inline]
    pub fn room_for(&self, pool: u32, stream: Stream) -> i32 {
        let others = match self.has_own_block(stream) {
            true => self.shape.data_pages - self.pool(pool).next_page,
            false => self.hot_pages(pool as usize),
        };
        self.room[pool as usize] - others as i32
    }

    /// Returns the pool of the chip that will collect next. This is the pool with the fewest free blocks; of equals,
    /// the pool with the fewest free pages in its open blocks.
    #[inline]
    fn scarcest(&self, chip: u32) -> u32 {
        let n = self.shape.pools_per_chip;
        let first = chip * n;
        let scarcity = |&pool: &u32| (self.pool(pool).free, self.open_pages(pool));
        (first..first + n).min_by_key(scarcity).unwrap_or(first)
    }

    /// Returns the fewest free blocks of a pool of the chip. The pool with the fewest will collect next.
    pub fn free_blocks_of_chip(&self, chip: u32) -> u32 {
        self.pool(self.scarcest(chip)).free
    }

    /// Returns the number of free blocks that the pool would have if its free pages formed whole blocks, and one of
    /// these blocks were open (D-207). With one open block that is not full, this is the actual number of free blocks.
    /// With two open blocks, the actual number falls by a whole block when the second one is opened, but the returned
    /// number falls page by page.
    pub fn free_beside_open(&self, pool: u32) -> u32 {
        let data = self.shape.data_pages;
        let room = self.pool(pool).free * data + self.open_pages(pool);
        room.div_ceil(data).saturating_sub(1)
    }

    /// Returns the GC trigger: the chip collects when [`PageMap::free_blocks_of_chip`] is at or below this number.
    pub fn gc_trigger_blocks_of_chip(&self, _chip: u32) -> u32 {
        self.low
    }

    /// Returns the number of free data pages in the open blocks, hot and cold, of the pool that will collect next.
    pub fn open_pages_of_chip(&self, chip: u32) -> u32 {
        self.open_pages(self.scarcest(chip))
    }

    /// Returns the number of data pages in the free blocks of a chip when each of its pools is at the low watermark.
    #[inline]
    pub fn low_pages_of_chip(&self) -> u32 {
        self.low * self.shape.pools_per_chip * self.shape.data_pages
    }

    /// Returns the number of data pages in the chip's free blocks.
    #[inline]
    pub fn pages_of_free_blocks(&self, chip: u32) -> u32 {
        self.chip_free[chip as usize].saturating_mul(self.shape.data_pages)
    }

    /// Returns the number of data pages that can be written to the chip without an erase: the free pages of its free
    /// and open blocks.
    #[inline]
    pub fn free_pages_of_chip(&self, chip: u32) -> u32 {
        let rooms = self.rooms_of_chip(chip).iter();
        let pages = rooms.fold(0u32, |pages, &room| pages.wrapping_add(room as u32));
        let blocks = self.chip_free[chip as usize] + self.shape.pools_per_chip;
        let summary_pages = blocks * (self.shape.pages_per_block - self.shape.data_pages);
        pages.saturating_sub(summary_pages)
    }

    /// Computes all values that follow from the pools and tallies. Called after these were replaced. If a file has
    /// inconsistent pools or tallies, `check` reports it afterwards.
    pub(super) fn recount(&mut self) {
        let low = self.low;
        for chip in 0..self.shape.chips {
            let pools = self.pools_of_chip(chip);
            let needy = pools.iter().filter(|pool| pool.free <= low).count() as u16;
            let free = pools
                .iter()
                .fold(0u32, |free, pool| free.wrapping_add(pool.free));
            self.needy[chip as usize] = needy;
            self.chip_free[chip as usize] = free;
            self.oldest_open[chip as usize] = self.find_oldest_open(chip);
        }
        for pool in 0..self.pools.len() {
            self.set_room(pool as u32, self.count_room(pool));
        }
        for strip in 0..self.least.len() {
            self.least[strip] = self.find_least(strip);
        }
        self.regroup();
    }

    pub(super) fn count_room(&self, pool: usize) -> i32 {
        let p = &self.pools[pool];
        let pages = (i64::from(p.free) + 1) * i64::from(self.shape.pages_per_block)
            - i64::from(p.next_page)
            + i64::from(self.hot_pages(pool));
        pages.min(i32::MAX.into()) as i32
    }

    pub(super) fn find_oldest_open(&self, chip: u32) -> u32 {
        if !self.hot.is_empty() {
            return u32::MAX;
        }
        let pools = self.pools_of_chip(chip).iter();
        pools.map(|pool| pool.active_seq).min().unwrap_or(0)
    }

    // ---- initial states ----

    /// Replaces the open block and the number of free blocks of a pool. Used by initial states that fill whole
    /// blocks.
    pub(super) fn set_frontier(&mut self, pool: u32, active_bit: u32, next_page: u32, free: u32) {
        let p = &mut self.pools[pool as usize];
        p.active = pool * self.shape.blocks_per_pool + active_bit;
        p.active_seq = self.rows.opened(p.active);
        p.next_page = next_page;
        p.free = free;
    }

    pub(super) fn set_cursor(&mut self, pool: u32, bit: u32) {
        self.pools[pool as usize].cursor = bit % self.shape.blocks_per_pool;
    }
}
