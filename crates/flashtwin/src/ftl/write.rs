//! Changes to the locations of pages: writes, trims, and moves of a block's live pages.

use super::page::{LiveFrom, PageMap, LPNS_OF_LINE, NOT_SEALED, UNMAPPED};
use super::shape::Apart;
use crate::memory::prefetch;
use crate::memory::TrustedTable;
use crate::units::Stream;
use crate::units::{Lpn, Ppn};

impl PageMap {
    /// Writes `lpn` to the open block of `pool` for `stream`, and invalidates its old copy. `stream` must be the result
    /// of [`PageMap::make_room`]. Returns true if this page fills the open block, which is then sealed.
    #[inline(always)]
    pub fn append(&mut self, pool: u32, stream: Stream, lpn: Lpn) -> bool {
        let old = self.map[lpn.0 as usize];
        if old == UNMAPPED {
            self.mapped += 1;
        } else {
            self.invalidate(Ppn(old));
        }
        self.place(pool, stream, lpn)
    }

    /// Moves the live page `page` of `block` to the open block of `pool` for `stream`. `stream` must be the result of
    /// [`PageMap::make_room`]. Returns true if this page fills the open block, which is then sealed. Does not read the
    /// old map entry of the page: it is known to be the page's old location, and is seldom in the processor's cache.
    #[inline(always)]
    pub fn move_page(&mut self, block: u32, page: u32, pool: u32, stream: Stream) -> bool {
        let ppn = block * self.shape.pages_per_block + page;
        let lpn = self.reverse[ppn as usize];
        debug_assert_eq!(
            self.map[lpn as usize], ppn,
            "a live page is at its mapped place"
        );
        self.forget(block, page);
        self.place(pool, stream, Lpn(lpn))
    }

    /// Moves the first live page of `block` to the cold open block of `pool`, as [`PageMap::move_page`] does. The pool
    /// must be the only one of its chip, and no page before the cursor `from` may be live.
    ///
    /// Returns the old location of the page, and whether it filled the open block, which is then sealed. Changes
    /// nothing and returns `None` in two cases: the word of live bits at the cursor has no live page, or the open block
    /// is full.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn move_first(&mut self, block: u32, from: LiveFrom, pool: u32) -> Option<(Ppn, bool)> {
        debug_assert_eq!(self.shape.pools_per_chip, 1);
        let bits = self.rows[from.word as usize];
        let frontier = &mut self.pools[pool as usize];
        let (active, page) = (frontier.active, frontier.next_page);
        let left = self.shape.data_pages - page;
        if bits == 0 || left == 0 {
            return None;
        }
        frontier.next_page = page + 1;
        self.room[pool as usize] -= 1;
        let old = Ppn(from.first + bits.trailing_zeros());
        let lpn = self.lpn_at(old);
        debug_assert_eq!(self.lookup(lpn), Some(old));
        self.rows[from.word as usize] = bits & (bits - 1);
        self.count_dead(block);
        self.fill_page(active, page, lpn);
        if left == 1 {
            self.seal(active);
        }
        Some((old, left == 1))
    }

    /// Assigns the next page of the open block of `pool` for `stream` to `lpn`. The caller must have invalidated the
    /// old copy.
    #[inline(always)]
    fn place(&mut self, pool: u32, stream: Stream, lpn: Lpn) -> bool {
        let (active, page) = self.advance(pool, stream, 1);
        let sealed = page + 1 == self.end_of(stream);
        self.fill_page(active, page, lpn);
        if sealed {
            self.seal(active);
        }
        sealed
    }

    /// Records that page `page` of an open block holds `lpn`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn fill_page(&mut self, active: u32, page: u32, lpn: Lpn) {
        let block = active as usize;
        let ppn = active * self.shape.pages_per_block + page;
        self.reverse[ppn as usize] = lpn.0;
        if ppn.is_multiple_of(LPNS_OF_LINE) {
            self.prefetch_lpn_at(Ppn(ppn.wrapping_add(LPNS_OF_LINE)));
        }
        self.map[lpn.0 as usize] = ppn;
        let word = self.rows.of_page(block as u32, page);
        self.rows[word] |= 1 << (page % 64);
        self.tally[block] += 1;
    }

    #[inline(always)]
    fn invalidate(&mut self, ppn: Ppn) {
        let (block, page) = self.by_pages_per_block.div_rem(ppn.0);
        self.forget(block, page);
    }

    /// Marks page `page` of `block` as no longer live.
    #[inline(always)]
    fn forget(&mut self, block: u32, page: u32) {
        let word = self.rows.of_page(block, page);
        let word = &mut self.rows[word];
        debug_assert!(
            *word >> (page % 64) & 1 == 1,
            "page {page} of {block} is not live"
        );
        *word &= !(1 << (page % 64));
        self.count_dead(block);
    }

    /// Updates the counters of `block` after one of its pages was invalidated.
    #[inline(always)]
    fn count_dead(&mut self, block: u32) {
        let strip = self.strip_of(block);
        let tally = &mut self.tally[block as usize];
        *tally -= 1;
        let least = &mut self.least[strip];
        if *tally < *least {
            *least = *tally;
        }
    }

    /// Unmaps `lpn`; returns true if it had a copy on flash.
    pub fn unmap(&mut self, lpn: Lpn) -> bool {
        let old = std::mem::replace(&mut self.map[lpn.0 as usize], UNMAPPED);
        if old != UNMAPPED {
            self.invalidate(Ppn(old));
            self.mapped -= 1;
        }
        old != UNMAPPED
    }

    /// Seals a full block. From then on it may be collected, unless it is worn out.
    #[inline(never)]
    pub(super) fn seal(&mut self, block: u32) {
        if !self.is_spent(block) {
            let strip = self.strip_of(block);
            let tally = &mut self.tally[block as usize];
            *tally &= !NOT_SEALED;
            let least = &mut self.least[strip];
            *least = (*least).min(*tally);
        }
        self.prefetch_next_block(self.pool_of(block));
    }

    /// Moves all live pages of `block`, in page order, to the open blocks of `pool`, which must have room for them.
    /// Prefetches all map entries before it changes the first one. Calls `moved` after each run of pages to the same
    /// open block, with this block, the number of pages, and whether the block was sealed.
    pub fn relocate(
        &mut self,
        block: u32,
        pool: u32,
        mut moved: impl FnMut(&PageMap, u32, u32, bool),
    ) {
        // SAFETY: nothing accesses the empty table before the full one is put back below.
        let none = unsafe { TrustedTable::new(Vec::new()) };
        let mut lpns = std::mem::replace(&mut self.moving, none);
        let mut count = 0;
        let first_page = block as usize * self.shape.pages_per_block as usize;
        for (i, word) in self.rows.live_mut(block).iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                let lpn = self.reverse[first_page + i * 64 + bits.trailing_zeros() as usize];
                prefetch(&self.map, lpn as usize);
                lpns[count] = lpn;
                count += 1;
                bits &= bits - 1;
            }
        }
        let strip = self.strip_of(block);
        // The following erase of `block` searches this strip for its lowest tally.
        self.prefetch_strip(strip);
        let tally = &mut self.tally[block as usize];
        *tally &= NOT_SEALED;
        let least = &mut self.least[strip];
        *least = (*least).min(*tally);
        let mut rest = lpns.part(0, count);
        while !rest.is_empty() {
            let wanted = self.move_stream(block, Lpn(rest[0]));
            let stream = self
                .make_room(pool, wanted)
                .expect("the caller saw the room");
            let left = self.shape.data_pages - self.next_page(pool, stream);
            let run = match self.shape.apart {
                Apart::Below(_) | Apart::ByClass => {
                    let others = |&lpn: &u32| self.move_stream(block, Lpn(lpn)) != wanted;
                    rest.iter().position(others).unwrap_or(rest.len())
                }
                _ => rest.len(),
            };
            let (now, later) = rest.split_at(run.min(left as usize));
            let n = now.len() as u32;
            let (to, page) = self.advance(pool, stream, n);
            let sealed = n == left;
            let ppn = to * self.shape.pages_per_block + page;
            self.reverse
                .part_mut(ppn as usize, now.len())
                .copy_from_slice(now);
            for (i, &lpn) in now.iter().enumerate() {
                self.map[lpn as usize] = ppn + i as u32;
            }
            self.set_live(to, page, n);
            self.tally[to as usize] += n as i16;
            if sealed {
                self.seal(to);
            }
            moved(self, to, n, sealed);
            rest = later;
        }
        self.moving = lpns;
    }

    /// Marks `n` pages of `block` from `page` on as live.
    #[inline]
    fn set_live(&mut self, block: u32, page: u32, n: u32) {
        let words = self.rows.live_mut(block);
        let (mut at, end) = (page, page + n);
        while at < end {
            let in_word = (64 - at % 64).min(end - at);
            words[at as usize / 64] |= (u64::MAX >> (64 - in_word)) << (at % 64);
            at += in_word;
        }
    }

    // ---- initial states ----

    /// Stores `lpn` at the unwritten page `ppn`, without advancing a frontier.
    #[inline]
    pub(super) fn put(&mut self, ppn: u32, lpn: u32) {
        let (block, page) = self.by_pages_per_block.div_rem(ppn);
        self.reverse[ppn as usize] = lpn;
        self.map[lpn as usize] = ppn;
        let word = self.rows.of_page(block, page);
        self.rows[word] |= 1 << (page % 64);
        self.tally[block as usize] += 1;
    }

    pub(super) fn set_sealed(&mut self, block: u32, sealed: bool) {
        if sealed {
            self.tally[block as usize] &= !NOT_SEALED;
        } else {
            self.tally[block as usize] |= NOT_SEALED;
        }
    }
}
