//! Hits and evictions of LRU buffers of all sizes, counted in one pass over the accesses.
//!
//! LRU is a stack algorithm (Mattson et al., IBM Systems Journal 9(2), 1970): a buffer of C pages contains the C pages
//! accessed last. The depth of a page in this stack is 1 plus the number of distinct pages accessed since its own last
//! access. A page at depth d is therefore cached in all buffers of d or more pages, and an access to it hits in these
//! buffers.
//!
//! *Order.* A *line of time* is a sequence of slots, used one after the other. Each access takes the next slot for its
//! page, and clears the slot of the page's previous access. The depth of a page is the number of taken slots from its
//! own slot on. Each slot is a bit. Prefix sums in nodes of one or two cache lines count whole words of bits, so an
//! access reads a constant number of cache lines. Once all slots are used, the taken slots are moved to the start of a
//! new line ([`Slots::compact`]).
//!
//! *Trims.* A trim leaves a *hole* at the depth of the page: buffers that contained the page now have a free slot. The
//! next access to a page that is deeper than a hole fills the hole nearest to the top. The pages between the top and
//! this hole move down by one, and the hole moves to the former depth of the accessed page. Buffers that include the
//! old depth of the hole but not the accessed page fill their free slot. Larger buffers keep a free slot.
//!
//! *Write-backs.* Each page has a number `dirty`: it is dirty in buffers of at least this many pages. A write sets
//! `dirty` to 1. A read raises `dirty` to at least the page's depth, since smaller buffers have evicted the page and
//! fetched it again, clean. When a page is accessed at depth d, all buffers of fewer than d pages have evicted it since
//! its last access. Among them, the buffers of at least `dirty` pages wrote it back. The number of write-backs at each
//! size is stored as the difference from the next smaller size.

use std::collections::BinaryHeap;

use crate::memory::{large_table, prefetch, reach};
use crate::units::Lpn;

/// Counts of an LRU buffer of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LruCounts {
    /// Read accesses.
    pub reads: u64,
    /// Reads of a cached page.
    pub read_hits: u64,
    /// Write accesses.
    pub writes: u64,
    /// Writes to a cached page.
    pub write_hits: u64,
    /// Number of evicted pages that were clean: not written since they entered the buffer.
    pub evicted_clean: u64,
    /// Evicted pages that were written back.
    pub evicted_dirty: u64,
}

/// LRU buffers of all sizes, empty at first.
#[derive(Clone, Debug, Default)]
pub struct LruStack {
    pages: PageTable,
    slots: Slots,
    /// Holes: taken slots whose page was trimmed. The hole nearest to the top is first.
    holes: BinaryHeap<u32>,
    /// Counts by depth.
    at: Vec<AtDepth>,
    reads: u64,
    writes: u64,
}

/// Counts of the accesses at one depth.
#[derive(Clone, Copy, Debug, Default)]
struct AtDepth {
    reads: u64,
    writes: u64,
    trims: u64,
    /// Write-backs of a buffer of this size, minus the write-backs of a buffer that is one page smaller. The size
    /// equals the depth.
    written_back: i64,
}

/// A page without a slot.
const NO_SLOT: u32 = u32::MAX;
/// Value of `Page::dirty` for a page that is dirty in no buffer.
const CLEAN: u32 = u32::MAX;

impl LruStack {
    /// Creates empty buffers.
    pub fn new() -> LruStack {
        LruStack::default()
    }

    /// Prefetches the data that an access to `lpn` reads first.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        self.pages.prefetch(lpn.0);
    }

    /// Executes an access to a page. `lpn` must be below `u32::MAX`, which marks an empty entry of the page table.
    #[inline]
    pub fn access(&mut self, lpn: Lpn, write: bool) {
        if self.slots.is_full() {
            self.compact();
        }
        self.reads += u64::from(!write);
        self.writes += u64::from(write);
        let page = self.pages.entry(lpn.0);
        let slot = page.slot;
        let mut dirty = page.dirty;
        page.slot = self.slots.next();
        if slot == NO_SLOT {
            page.dirty = if write { 1 } else { CLEAN };
            if let Some(hole) = self.holes.pop() {
                self.slots.clear(hole);
            }
            self.slots.take();
            return;
        }
        let depth = self.slots.depth(slot);
        let at = reached(&mut self.at, depth);
        match write {
            true => at.writes += 1,
            false => at.reads += 1,
        }
        if dirty < depth {
            at.written_back -= 1;
            self.at[dirty as usize].written_back += 1;
            dirty = depth;
        }
        page.dirty = if write { 1 } else { dirty };
        match self.holes.peek() {
            Some(&hole) if hole > slot => self.move_hole(slot),
            _ => self.slots.clear(slot),
        }
        self.slots.take();
    }

    /// Fills the hole nearest to the top, and makes a hole at `slot`. The page that was in `slot` moves to the top.
    #[cold]
    fn move_hole(&mut self, slot: u32) {
        if let Some(hole) = self.holes.pop() {
            self.slots.clear(hole);
            self.holes.push(slot);
        }
    }

    /// Drops a page without a write-back.
    pub fn trim(&mut self, lpn: Lpn) {
        let Some(page) = self.pages.get(lpn.0).filter(|page| page.slot != NO_SLOT) else {
            return;
        };
        let (slot, dirty) = (page.slot, page.dirty);
        page.slot = NO_SLOT;
        let depth = self.slots.depth(slot);
        let at = reached(&mut self.at, depth);
        at.trims += 1;
        if dirty < depth {
            at.written_back -= 1;
            self.at[dirty as usize].written_back += 1;
        }
        self.holes.push(slot);
    }

    #[cold]
    fn compact(&mut self) {
        let old = self.slots.compact();
        for page in &mut self.pages.entries {
            if page.slot != NO_SLOT {
                page.slot = old.rank(page.slot);
            }
        }
        let holes = std::mem::take(&mut self.holes).into_vec();
        self.holes = holes.into_iter().map(|hole| old.rank(hole)).collect();
    }

    /// Ends the pass. Returns the counts for buffers of all sizes.
    pub fn finish(mut self) -> LruCurve {
        // At the end, a page is cached in the buffers whose size is at least its depth.
        let mut held: Vec<u64> = vec![0; self.at.len()];
        let cached = self.pages.entries.iter().filter(|p| p.slot != NO_SLOT);
        let cached: Vec<(u32, u32)> = cached.map(|page| (page.slot, page.dirty)).collect();
        for (slot, dirty) in cached {
            let depth = self.slots.depth(slot);
            let at = reached(&mut self.at, depth);
            if dirty < depth {
                at.written_back -= 1;
                self.at[dirty as usize].written_back += 1;
            }
            *reached(&mut held, depth) += 1;
        }
        held.resize(self.at.len(), 0);
        let mut sums = Vec::with_capacity(self.at.len());
        let mut sum = LruCounts {
            reads: self.reads,
            writes: self.writes,
            ..LruCounts::default()
        };
        let (mut dropped, mut held_sum) = (0, 0);
        for (at, held) in self.at.iter().zip(held) {
            sum.read_hits += at.reads;
            sum.write_hits += at.writes;
            sum.evicted_dirty = sum.evicted_dirty.wrapping_add_signed(at.written_back);
            dropped += at.trims;
            held_sum += held;
            // Each page that entered the buffer was evicted, was trimmed, or is in the buffer at the end.
            let entered = self.reads + self.writes - sum.read_hits - sum.write_hits;
            sum.evicted_clean = entered - dropped - held_sum - sum.evicted_dirty;
            sums.push(sum);
        }
        if let Some(none) = sums.first_mut() {
            // Without a buffer, every write is programmed.
            (none.evicted_clean, none.evicted_dirty) = (none.reads, none.writes);
        }
        LruCurve {
            sums,
            pages: self.pages.used as u64,
            reads: self.reads,
            writes: self.writes,
        }
    }
}

/// Returns the element of `at` for a depth. Extends `at` if it is too short.
#[inline(always)]
fn reached<T: Clone + Default>(at: &mut Vec<T>, depth: u32) -> &mut T {
    reach(at, depth as usize, T::default());
    &mut at[depth as usize]
}

/// Counts of hits and evictions of LRU, by the size of the buffer.
#[derive(Clone, Debug, Default)]
pub struct LruCurve {
    /// Counts for buffers of 0, 1, 2 and more pages. The last entry applies to all larger sizes.
    sums: Vec<LruCounts>,
    pages: u64,
    reads: u64,
    writes: u64,
}

impl LruCurve {
    /// Returns the number of different pages that were accessed.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the size of the smallest buffer that evicts nothing. All larger buffers have the same counts.
    pub fn pages_max(&self) -> u64 {
        self.sums.len().saturating_sub(1).max(1) as u64
    }

    /// Returns the counts of a buffer of `capacity` pages.
    pub fn at(&self, capacity: u64) -> LruCounts {
        let last = self.sums.len().saturating_sub(1) as u64;
        let none = LruCounts {
            reads: self.reads,
            writes: self.writes,
            ..LruCounts::default()
        };
        let sum = self.sums.get(capacity.min(last) as usize);
        sum.copied().unwrap_or(none)
    }
}

/// A page of the table: its slot, and the size of the smallest buffer in which it is dirty.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Page {
    lpn: u32,
    slot: u32,
    dirty: u32,
}

const NO_PAGE: Page = Page {
    lpn: u32::MAX,
    slot: NO_SLOT,
    dirty: CLEAN,
};

/// All pages accessed so far, in a hash table with open addressing. Four entries fit in a cache line.
#[derive(Clone, Debug)]
struct PageTable {
    entries: Vec<Page>,
    used: usize,
    shift: u32,
}

impl Default for PageTable {
    fn default() -> PageTable {
        PageTable::of_size(1 << 10)
    }
}

impl PageTable {
    fn of_size(size: usize) -> PageTable {
        PageTable {
            entries: large_table(NO_PAGE, size),
            used: 0,
            shift: 64 - size.trailing_zeros(),
        }
    }

    #[inline(always)]
    fn home(&self, lpn: u32) -> usize {
        (u64::from(lpn).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline(always)]
    fn prefetch(&self, lpn: u32) {
        prefetch(&self.entries, self.home(lpn));
    }

    /// Returns the index of the page's entry. If the page has none, returns the index of the empty entry that it would
    /// use.
    #[inline(always)]
    fn place(&self, lpn: u32) -> usize {
        let mask = self.entries.len() - 1;
        let mut place = self.home(lpn) & mask;
        loop {
            let found = self.entries[place & mask].lpn;
            if found == lpn || found == NO_PAGE.lpn {
                return place;
            }
            place = (place + 1) & mask;
        }
    }

    fn get(&mut self, lpn: u32) -> Option<&mut Page> {
        let place = self.place(lpn);
        Some(&mut self.entries[place]).filter(|page| page.lpn == lpn)
    }

    /// Returns the entry of a page. Adds an entry if the page has none.
    #[inline(always)]
    fn entry(&mut self, lpn: u32) -> &mut Page {
        let mut place = self.place(lpn);
        if self.entries[place].lpn != lpn {
            place = self.add(lpn, place);
        }
        &mut self.entries[place]
    }

    #[cold]
    fn add(&mut self, lpn: u32, mut place: usize) -> usize {
        if (self.used + 1) * 3 > self.entries.len() * 2 {
            let mut larger = PageTable::of_size(self.entries.len() * 2);
            for page in self.entries.iter().filter(|page| page.lpn != NO_PAGE.lpn) {
                let place = larger.place(page.lpn);
                larger.entries[place] = *page;
            }
            larger.used = self.used;
            *self = larger;
            place = self.place(lpn);
        }
        self.used += 1;
        self.entries[place] = Page { lpn, ..NO_PAGE };
        place
    }
}

/// Number of slots in a block. The bits of a block form one word.
const BLOCK: u32 = 64;
/// Number of children of a node. The prefix sums of a node on the lowest level fit into one cache line.
const FAN: usize = 32;
const FAN_BITS: u32 = 5;
/// Number of slots of the first line of time.
const SLOTS_MIN: u32 = 1 << 14;

/// The slots of a line of time, with prefix sums. Each slot is a bit, which is set if the slot is taken.
#[derive(Clone, Debug, Default)]
struct Slots {
    bits: Vec<u64>,
    /// Prefix sums on four levels. On the lowest level, the sum of a block is the number of taken slots in earlier
    /// blocks of the same node. On each higher level, the sum of a node is the number of taken slots in earlier nodes
    /// of the same parent. The slots of the block that is being filled are added to the sums when the block is full.
    low: Vec<Low>,
    middle: Vec<Node>,
    high: Vec<Node>,
    top: Vec<u32>,
    /// Number of taken slots.
    taken: u32,
    /// The slot that is taken next.
    next: u32,
    /// Number of slots.
    end: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Low([u16; FAN]);

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Node([u32; FAN]);

impl Slots {
    /// Creates `end` slots and takes the first `taken` of them. `end` must be a multiple of [`BLOCK`].
    fn new(end: u32, taken: u32) -> Slots {
        let blocks = (end / BLOCK) as usize;
        let nodes = |fan: usize| blocks.div_ceil(fan);
        let mut slots = Slots {
            bits: large_table(0, blocks),
            low: vec![Low::default(); nodes(FAN)],
            middle: vec![Node::default(); nodes(FAN * FAN)],
            high: vec![Node::default(); nodes(FAN * FAN * FAN)],
            top: vec![0; nodes(FAN * FAN * FAN)],
            taken: 0,
            next: 0,
            end,
        };
        for _ in 0..taken {
            slots.take();
        }
        slots
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.next == self.end
    }

    /// Returns the next slot to take.
    #[inline(always)]
    fn next(&self) -> u32 {
        self.next
    }

    /// Takes the next slot.
    #[inline(always)]
    fn take(&mut self) {
        let (block, within) = (self.next / BLOCK, self.next % BLOCK);
        self.bits[block as usize] |= 1 << within;
        self.taken += 1;
        self.next += 1;
        if self.next.is_multiple_of(BLOCK) {
            self.close(block);
        }
    }

    /// Adds the taken slots of a block to the sums of later blocks. All slots of the block must have been used.
    #[cold]
    fn close(&mut self, block: u32) {
        let taken = self.bits[block as usize].count_ones();
        self.add(block, taken);
    }

    /// Adds `n` to the sums of the blocks after `block`, in wrapping arithmetic. To subtract, pass a negated number.
    #[inline(always)]
    fn add(&mut self, block: u32, n: u32) {
        let at = |level: u32| (block >> (level * FAN_BITS)) as usize;
        // The index of each child has a signed type of the same width as the sums, so that the compiler can use vector
        // instructions.
        let from = (at(0) % FAN) as i16;
        for (child, sum) in (0_i16..).zip(&mut self.low[at(1)].0) {
            *sum = sum.wrapping_add(if child > from { n as u16 } else { 0 });
        }
        for (level, nodes) in [(1, &mut self.middle), (2, &mut self.high)] {
            let from = (at(level) % FAN) as i32;
            for (child, sum) in (0_i32..).zip(&mut nodes[at(level + 1)].0) {
                *sum = sum.wrapping_add(if child > from { n } else { 0 });
            }
        }
        for sum in self.top.iter_mut().skip(at(3) + 1) {
            *sum = sum.wrapping_add(n);
        }
    }

    /// Clears a taken slot.
    #[inline(always)]
    fn clear(&mut self, slot: u32) {
        let (block, within) = (slot / BLOCK, slot % BLOCK);
        self.bits[block as usize] &= !(1 << within);
        self.taken -= 1;
        if block != self.next / BLOCK {
            self.add(block, 1_u32.wrapping_neg());
        }
    }

    /// Counts the taken slots before `slot`.
    #[inline(always)]
    fn rank(&self, slot: u32) -> u32 {
        let block = slot / BLOCK;
        let at = |level: u32| (block >> (level * FAN_BITS)) as usize;
        let before = self.bits[at(0)] & ((1 << (slot % BLOCK)) - 1);
        before.count_ones()
            + u32::from(self.low[at(1)].0[at(0) % FAN])
            + self.middle[at(2)].0[at(1) % FAN]
            + self.high[at(3)].0[at(2) % FAN]
            + self.top[at(3)]
    }

    /// Counts the taken slots from `slot` on.
    #[inline(always)]
    fn depth(&self, slot: u32) -> u32 {
        self.taken - self.rank(slot)
    }

    /// Moves the taken slots to the start of a new line of time, which has three times as many free slots as taken
    /// ones. Returns the former slots. The position of a taken slot in the new line is its rank among the former taken
    /// slots.
    fn compact(&mut self) -> Slots {
        let end = (u64::from(self.taken) * 4).max(u64::from(SLOTS_MIN));
        let last = u64::from(u32::MAX / BLOCK * BLOCK);
        let end = end.next_multiple_of(u64::from(BLOCK)).min(last) as u32;
        std::mem::replace(self, Slots::new(end, self.taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// LRU buffer of one size, as a plain list. The most recent page is first.
    #[derive(Default)]
    struct Naive {
        cached: Vec<(u32, bool)>,
        counts: LruCounts,
    }

    impl Naive {
        fn access(&mut self, capacity: usize, lpn: u32, write: bool) {
            let found = self.cached.iter().position(|page| page.0 == lpn);
            let hit = u64::from(found.is_some());
            match write {
                true => {
                    (self.counts.writes, self.counts.write_hits) =
                        (self.counts.writes + 1, self.counts.write_hits + hit)
                }
                false => {
                    (self.counts.reads, self.counts.read_hits) =
                        (self.counts.reads + 1, self.counts.read_hits + hit)
                }
            }
            let dirty = found.map(|place| self.cached.remove(place).1);
            if dirty.is_none() && self.cached.len() == capacity {
                match self.cached.pop() {
                    Some((_, true)) => self.counts.evicted_dirty += 1,
                    _ => self.counts.evicted_clean += 1,
                }
            }
            self.cached.insert(0, (lpn, write || dirty == Some(true)));
        }

        fn trim(&mut self, lpn: u32) {
            self.cached.retain(|page| page.0 != lpn);
        }
    }

    #[test]
    fn counts_of_every_size_are_those_of_a_list() {
        for seed in crate::seeds(20) {
            let mut rng = Rng::new(seed);
            let pages = 1 + rng.below(40);
            let trims = rng.below(3) * 8;
            let mut stack = LruStack::new();
            let mut naive: Vec<Naive> = (0..50).map(|_| Naive::default()).collect();
            for _ in 0..2000 {
                let lpn = rng.below(pages).min(rng.below(pages)) as u32 * 1_000_003;
                let (kind, write) = (rng.below(100), rng.below(2) == 0);
                match kind < trims {
                    true => stack.trim(Lpn(lpn)),
                    false => stack.access(Lpn(lpn), write),
                }
                for (i, buffer) in naive.iter_mut().enumerate() {
                    match kind < trims {
                        true => buffer.trim(lpn),
                        false => buffer.access(i + 1, lpn, write),
                    }
                }
            }
            let curve = stack.finish();
            for (i, buffer) in naive.iter().enumerate() {
                assert_eq!(curve.at(i as u64 + 1), buffer.counts, "{} pages", i + 1);
            }
        }
    }

    #[test]
    fn depths_stay_exact_across_compactions_and_levels() {
        // Three rounds over many pages. A line of time has four slots for each page, and thus more slots than a node on
        // the third level.
        let pages = BLOCK * FAN.pow(3) as u32 / 4 + 77;
        let mut stack = LruStack::new();
        for round in 0..3 {
            for page in 0..pages {
                stack.access(Lpn(page), round == 0);
            }
        }
        let curve = stack.finish();
        let (pages, all) = (u64::from(pages), 2 * u64::from(pages));
        assert_eq!(curve.pages(), pages);
        assert_eq!(curve.at(pages).read_hits, all);
        let one_less = curve.at(pages - 1);
        assert_eq!((one_less.read_hits, one_less.evicted_dirty), (0, pages));
        assert_eq!(curve.at(pages).evicted_dirty, 0);
    }

    #[test]
    fn empty_curve_has_no_hits() {
        let curve = LruStack::new().finish();
        assert_eq!((curve.at(8), curve.pages()), (LruCounts::default(), 0));
    }
}
