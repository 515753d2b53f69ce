//! PUD-LRU: ranks blocks by predicted average update distance (a reconstruction after Hu, Jiang, Tian, Xu, MASCOTS
//! 2010).
//!
//! PUD = (now - t) / f, where t is the time at which the block was inserted. The number f counts the page writes to the
//! block since then, including the insertion. The unit of time is one page write. The victim is chosen among the blocks
//! whose PUD is above the mean, or among all blocks if there are none. The victim is the block with the most pages.
//! Ties go to the larger PUD, then to the least recent block. All pages of the block are evicted. The paper publishes
//! PUD as the key; the formula and the threshold are ours.
//!
//! To compare PUDs exactly, they are kept as fractions. The mean is computed from the values of 1 / f, counted in a
//! small unit. For f up to 46, 1 / f is a whole number of units. For larger f, it is rounded down.
//!
//! Sums over all blocks give the mean without a scan. A block whose PUD cannot be above the mean waits in a *room*. A
//! block in room k has f of 2^k or more. It waits as long as (now - t) / 2^k is not above the mean. This value is at
//! least its PUD. Blocks enter every room in the order of t, so a search examines only the first block of a room. The
//! blocks that do not wait are in heaps. For each number of pages there is one heap per value or range of f, each with
//! the earliest t first:
//!
//! ```text
//! room 0   B6 - B5 - B0           room 1   -          room 2   B10
//! 3 pages   f 3: B8 B1     f 4, 5 .. 7: -     f 8..9: B2      from 8 on, four heaps for each doubling of f
//! 2 pages   f 2: B7        f 3: B9 B4                         victim: B8 if its PUD is above the mean
//! ```
//!
//! A write does not move a block to another room or heap. Since f only grows, the PUD computed from the least f of a
//! heap may be too large, but never too small. A search that reaches a block moves the block to the room or heap where
//! it belongs. For each number of pages, an upper bound of the PUDs is also stored, so that a search can skip all heaps
//! without candidates.
//!
//! With `cache_reads`, pages that are read enter the buffer, and a read makes its block the most recent one. Reads
//! therefore affect only the last tie-break; they do not count as updates. Without `cache_reads`, reads change nothing.

use crate::buffer::entry::{cost, example, Entry, Family, Make, BLOCKS};
use crate::component::{source, Provenance};
use std::cmp::{Ordering, Reverse};

use crate::buffer::blocks::{
    last_before, BlockParameters, BlockTable, FilteredParameters, Heaps, NodeId, ReadParameters,
};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Skip};
use crate::buffer::{PageId, Setup};
use crate::list::Lists;

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "pud-lru",
    title: "PUD-LRU",
    line: "Keeps blocks written often and recently; of the others, evicts the one with the most pages.",
    family: Family::Blocks,
    source: source(
        "J. Hu, H. Jiang, L. Tian, L. Xu",
        "PUD-LRU: An Erase-Efficient Write Buffer Management Algorithm for Flash Memory SSD",
        "MASCOTS",
        2010,
    ),
    provenance: Provenance::Reconstruction,
    rule: &[
        "Time is counted in page writes. A block has the time t of its insertion, and the number \
         f of its page writes. Its predicted update distance is (now - t) / f.",
        "Candidates: the blocks whose predicted update distance is above the mean of all blocks. \
         If all distances are equal, all blocks are candidates.",
        "Victim: the candidate with the most pages; of several such candidates, the one with the \
         largest distance; of equal distances, the least recent one.",
    ],
    state: BLOCKS,
    cost: cost("O(1)", "O(B)", "O(log B + N)"),
    example: example(5, "W0 W1 W4 W0 W8 W0 W9 W12"),
    parameters: &[BlockParameters::ROWS, ReadParameters::ROWS],
    filtered: FilteredParameters::ROWS,
    make: Make::Base(|setup| PudLru::new(setup).into()),
    ..Entry::PLAIN
}];

/// Number of heaps for each number of pages. The heaps cover values of f below 2^32.
const HEAPS: usize = 128;
/// Number of rooms in which blocks wait. Room k is for values of f of 2^k or more.
const ROOMS: usize = 32;

/// Returns the number of the heap for blocks with this f. [`least_of`] returns the least f of a heap.
fn heap_of(f: u32) -> usize {
    match f.ilog2() {
        0 | 1 => f as usize,
        octave => (octave as usize - 2) * 4 + (f >> (octave - 2)) as usize,
    }
}

fn least_of(heap: usize) -> u32 {
    match heap {
        0..8 => heap as u32,
        _ => (heap as u32 % 4 + 4) << (heap / 4 - 1),
    }
}

/// Number of units in 1: the least common multiple of 1 to 46. For f up to 46, 1 / f is therefore a whole number of
/// units. The least common multiple of 1 to 47 does not fit into 64 bits.
const UNIT: u64 = 9_419_588_158_802_421_600;

/// Returns 1 / f in units.
fn share(f: u32) -> u64 {
    UNIT / u64::from(f)
}

/// Returns the PUD, in units, of a block that was inserted `age` page writes ago. `share` is 1 / f in units.
fn pud(age: u64, share: u64) -> u128 {
    u128::from(age) * u128::from(share)
}

#[derive(Clone, Debug, Default)]
struct Block {
    /// Time t at which the block was inserted.
    at: u64,
    /// Number of page writes to the block, f. The field `share` is 1 / f in units.
    writes: u32,
    share: u64,
    /// Value of `clock` at the last access to this block. A block with a larger value is more recent.
    used: u64,
    /// Whether the block has changed since the last search.
    changed: bool,
    /// The room in which the block waits. Valid only if the block is in no heap.
    room: u8,
}

/// Upper bound of the PUDs of all blocks with a certain number of pages. At time `at` the bound is `pud`. With each
/// later page write it rises by `slope`.
#[derive(Clone, Copy, Debug, Default)]
struct Ceiling {
    pud: u128,
    slope: u64,
    at: u64,
}

impl Ceiling {
    fn height(&self, now: u64) -> u128 {
        self.pud + pud(now - self.at, self.slope)
    }
}

/// PUD-aware LRU.
#[derive(Clone, Debug)]
pub struct PudLru {
    cache_reads: bool,
    blocks: BlockTable<Block>,
    waiting: Box<Lists<ROOMS>>,
    /// Rooms entered so far.
    rooms: usize,
    /// The blocks that do not wait, in heaps ordered by t, then by `used`.
    heaps: Heaps<(u64, u64)>,
    /// For each number of pages, one bit per heap: whether the heap has blocks.
    filled: Vec<u128>,
    /// One bit for each number of pages: whether any of its heaps has blocks.
    sizes: Vec<u64>,
    /// For each number of pages, an upper bound of the PUDs of the blocks.
    ceilings: Vec<Ceiling>,
    /// Page writes so far.
    now: u64,
    clock: u64,
    /// Two sums over all blocks, both in units: `shares` is the sum of 1 / f, and `shares_at` is the sum of t / f.
    shares: u128,
    shares_at: u128,
    /// Blocks that have changed since the last search. The next search updates the heaps and the sums for these blocks.
    changed: Vec<NodeId>,
}

impl PudLru {
    /// Makes the policy with the parameters of `setup`.
    pub fn new(setup: &Setup) -> PudLru {
        let sizes = setup.pages_per_block.min(setup.capacity) as usize + 1;
        PudLru {
            blocks: BlockTable::new(setup),
            cache_reads: ReadParameters::of(&setup.settings).cache_reads,
            waiting: Box::new(Lists::new()),
            rooms: 1,
            heaps: Heaps::new(sizes * HEAPS),
            filled: vec![0; sizes],
            sizes: vec![0; sizes.div_ceil(64)],
            ceilings: vec![Ceiling::default(); sizes],
            now: 0,
            clock: 0,
            shares: 0,
            shares_at: 0,
            changed: Vec::new(),
        }
    }

    /// Brings heaps and sums up to date.
    fn follow(&mut self) {
        while let Some(node) = self.changed.pop() {
            self.leave_sums(node);
            let block = &mut self.blocks[node];
            block.changed = false;
            block.share = share(block.writes);
            self.shares += u128::from(block.share);
            self.shares_at += pud(block.at, block.share);
            let pages = self.blocks.pages(node) as usize;
            // A block whose number of pages has changed moves to another heap. A block that was only written stays in
            // its heap.
            if (self.heaps.heap_of(node)).is_some_and(|heap| heap / HEAPS != pages) {
                self.unfile(node);
                self.file(node);
            }
        }
    }

    /// Moves the waiting blocks whose PUD may be above `mean` into heaps. If `mean` is `None`, moves all waiting
    /// blocks.
    fn end_waiting(&mut self, now: u64, mean: Option<u128>) {
        let mut room = 0;
        while room < self.rooms {
            while let Some(node) = self.waiting.oldest(room) {
                let block = &mut self.blocks[node];
                let least = share(1 << room);
                if mean.is_some_and(|mean| pud(now - block.at, least) <= mean) {
                    break;
                }
                self.waiting.remove(room, node);
                if mean.is_some() && block.writes >> room > 1 {
                    block.room += 1;
                    self.rooms = self.rooms.max(room + 2);
                    self.waiting.push_newest(room + 1, node);
                } else {
                    self.file(node);
                }
            }
            room += 1;
        }
    }

    /// Subtracts the values of a block from the sums.
    fn leave_sums(&mut self, node: NodeId) {
        let block = &self.blocks[node];
        self.shares -= u128::from(block.share);
        self.shares_at -= pud(block.at, block.share);
    }

    /// Puts a block into the heap for its number of pages and its f. The block must be in no heap.
    fn file(&mut self, node: NodeId) {
        let pages = self.blocks.pages(node) as usize;
        let block = &self.blocks[node];
        let heap = heap_of(block.writes);
        let ceiling = &mut self.ceilings[pages];
        if self.filled[pages] == 0 {
            *ceiling = Ceiling::default();
        }
        *ceiling = Ceiling {
            pud: ceiling
                .height(self.now)
                .max(pud(self.now - block.at, block.share)),
            slope: ceiling.slope.max(block.share),
            at: self.now,
        };
        self.filled[pages] |= 1 << heap;
        self.sizes[pages / 64] |= 1 << (pages % 64);
        self.heaps
            .set(pages * HEAPS + heap, node, (block.at, block.used));
    }

    /// Removes a block from its heap, if it is in one.
    fn unfile(&mut self, node: NodeId) {
        let Some(heap) = self.heaps.heap_of(node) else {
            return;
        };
        self.heaps.remove(node);
        if self.heaps.entries(heap).is_empty() {
            let pages = heap / HEAPS;
            self.filled[pages] &= !(1 << (heap % HEAPS));
            if self.filled[pages] == 0 {
                self.sizes[pages / 64] &= !(1 << (pages % 64));
            }
        }
    }

    /// Records an access to a page of the block.
    fn touch(&mut self, node: NodeId, write: bool) {
        self.clock += 1;
        let block = &mut self.blocks[node];
        block.used = self.clock;
        block.writes = block.writes.saturating_add(u32::from(write));
        if !block.changed {
            block.changed = true;
            self.changed.push(node);
        }
    }

    /// Returns the victim among the blocks with a PUD above `mean`, or among all blocks if `mean` is `None`. The victim
    /// is the block with the most pages. Ties go to the larger PUD, then to the least recent block.
    fn search(
        &mut self,
        device: &dyn DeviceView,
        skip: Skip,
        now: u64,
        mean: Option<u128>,
        out: &mut Eviction,
    ) -> Option<NodeId> {
        let mut larger = self.filled.len();
        while let Some(pages) = last_before(&self.sizes, larger) {
            larger = pages;
            if mean.is_some_and(|mean| self.ceilings[pages].height(now) <= mean) {
                continue;
            }
            let mut search = Search {
                now,
                mean,
                best: None,
                skipped: None,
                ceiling: 0,
            };
            let slope = least_of(self.filled[pages].trailing_zeros() as usize);
            let mut heap = 0;
            // Heaps are searched in ascending order. `put_right` only moves a block to a heap that is searched later,
            // so the search still finds the block.
            while self.filled[pages] >> heap != 0 {
                heap += self.filled[pages].wrapping_shr(heap).trailing_zeros();
                let at = pages * HEAPS + heap as usize;
                self.put_right(at, &search);
                self.search_heap(at, device, skip, &mut search);
                heap += 1;
            }
            out.skipped |= search.skipped > search.best.map(|(rank, _)| rank);
            if let Some((_, node)) = search.best {
                return Some(node);
            }
            self.ceilings[pages] = Ceiling {
                pud: search.ceiling,
                slope: share(slope),
                at: self.now,
            };
        }
        None
    }

    /// Moves blocks from the top of a heap to the heaps where they belong. Stops at a block that is already in its
    /// right heap, or that cannot be better than the best block found by `search`.
    fn put_right(&mut self, heap: usize, search: &Search) {
        while let Some(((at, used), node)) = self.heaps.first(heap) {
            let block = &self.blocks[node];
            let least = least_of(heap % HEAPS);
            if !search.wants(search.rank(at, least, share(least), used))
                || (heap_of(block.writes), block.used) == (heap % HEAPS, used)
            {
                break;
            }
            self.unfile(node);
            self.file(node);
        }
    }

    fn search_heap(&self, heap: usize, device: &dyn DeviceView, skip: Skip, search: &mut Search) {
        let least = least_of(heap % HEAPS);
        let most = share(least);
        self.heaps.walk(heap, |(at, used), node| {
            let at_most = search.rank(at, least, most, used);
            if !search.wants(at_most) {
                search.ceiling = search.ceiling.max(at_most.0.units);
                return false;
            }
            let block = &self.blocks[node];
            let rank = search.rank(at, block.writes, block.share, block.used);
            search.ceiling = search.ceiling.max(rank.0.units);
            if search.wants(rank) {
                let mut by_chip = false;
                if !(self.blocks).passed_over(device, skip, node, &mut by_chip) {
                    search.best = Some((rank, node));
                } else if by_chip {
                    search.skipped = search.skipped.max(Some(rank));
                }
            }
            true
        });
    }
}

/// A PUD in two forms: an exact fraction, which serves to compare blocks, and a number of units, which is compared with
/// the mean.
#[derive(Clone, Copy, Debug)]
struct Pud {
    age: u64,
    writes: u32,
    units: u128,
}

impl Ord for Pud {
    fn cmp(&self, other: &Pud) -> Ordering {
        let times = |age: u64, writes: u32| u128::from(age) * u128::from(writes);
        times(self.age, other.writes).cmp(&times(other.age, self.writes))
    }
}

impl PartialOrd for Pud {
    fn partial_cmp(&self, other: &Pud) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pud {
    fn eq(&self, other: &Pud) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pud {}

/// Rank of a block: its PUD, then the time of its last use.
type Rank = (Pud, Reverse<u64>);

/// Search for the victim among all blocks with the same number of pages.
struct Search {
    now: u64,
    /// The mean; only PUDs above it are candidates.
    mean: Option<u128>,
    best: Option<(Rank, NodeId)>,
    /// Rank of the best block that was skipped because of its chips.
    skipped: Option<Rank>,
    /// An upper bound of the PUDs of two groups of blocks: those that the search did not examine, and those that it
    /// rejected.
    ceiling: u128,
}

impl Search {
    fn rank(&self, at: u64, writes: u32, share: u64, used: u64) -> Rank {
        let age = self.now - at;
        let units = pud(age, share);
        (Pud { age, writes, units }, Reverse(used))
    }

    fn wants(&self, rank: Rank) -> bool {
        self.mean.is_none_or(|mean| rank.0.units > mean)
            && self.best.is_none_or(|best| rank > best.0)
    }
}

impl Policy for PudLru {
    fn admits(&self, access: &Access) -> bool {
        access.write || self.cache_reads
    }

    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        self.now += u64::from(access.write);
        let (node, offset) = self.blocks.node_for(access.lpn);
        let first = self.blocks.pages(node) == 0;
        if first {
            let block = &mut self.blocks[node];
            (block.at, block.writes) = (self.now, 1);
            self.waiting.push_newest(0, node);
        }
        self.touch(node, access.write && !first);
        self.blocks.add_page(node, page, offset);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        if self.admits(access) {
            self.now += u64::from(access.write);
            if let Some(node) = self.blocks.node_of(page) {
                self.touch(node, access.write);
            }
        }
    }

    fn forget(&mut self, page: PageId) {
        self.follow();
        let node = self.blocks.remove_page(page);
        let (waits, left) = (self.heaps.heap_of(node).is_none(), self.blocks.pages(node));
        self.unfile(node);
        if left == 0 {
            if waits {
                self.waiting.remove(self.blocks[node].room.into(), node);
            }
            self.leave_sums(node);
            self.blocks.remove(node);
        } else if !waits {
            self.file(node);
        }
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        self.follow();
        // The access that needs room already counts.
        let now = self.now + u64::from(incoming.write);
        out.inspected += u64::from(self.blocks.len());
        let sum = u128::from(now) * self.shares - self.shares_at;
        let mean = sum / u128::from(self.blocks.len().max(1));
        let mut found = None;
        for above in [Some(mean), None] {
            self.end_waiting(now, above);
            found = self.search(device, skip, now, above, out);
            if found.is_some() {
                break;
            }
        }
        let Some(node) = found else { return false };
        self.unfile(node);
        self.leave_sums(node);
        self.blocks.evict(node, out);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let mut nodes: Vec<NodeId> = self.blocks.iter().collect();
        nodes.sort_unstable_by_key(|&node| self.blocks[node].used);
        self.blocks.texts(device, nodes.into_iter())
    }
}
