//! FASTER, a variant of FAST. Pages of the log get a second chance, and cold pages are isolated (Lim, Lee, Moon, SNAPI
//! 2010).
//!
//! If the random-write (RW) log is full, its oldest block is reclaimed, if possible without merges. Its live pages are
//! handled by their marks. A page without a mark is copied to the head of the log and marked; this is its second
//! chance. A page with a mark moves to the isolation area. Only the isolation area is merged, one logical block at a
//! time. When it is nearly full, merges are spread over the host's writes.

use std::io::{self, Read, Write};

use super::area::Area;
use super::blocks::Blocks;
use super::catalog::{Entry, Example, Provenance, Source};
use super::saved::{read_bits, read_numbers, write_bits};
use super::sequential::Sequential;
use super::setup::{own, share, Chip, Own, Setup};
use super::store::Store;
use super::{ChipFtl, Counters, FlashOp, NoSpace, Outlook, Why};
use crate::component::Kind;
use crate::ftl::state::{check_counts, write_u32, NUMBER_MAX};
use crate::ftl::StateError;
use crate::joined::Movable;

own! {
    /// Parameters of FASTER.
    pub struct FasterSetup {
        /// Log blocks of a chip for random writes, beside the one for sequential writes
        rw_log_blocks: u32 = Kind::Count(1, u32::MAX - 1), "6.7 % of the blocks, less one", "CBM section V: 1120 of 16632 blocks; D-50";
        /// Blocks of a chip's isolation area
        isolation_blocks: u32 = Kind::Count(1, u32::MAX - 1), "1.6 % of the blocks", "CBM section V: 272 of 16632 blocks; D-50";
        /// The three refinements of the published firmware
        refinements: bool = Kind::Bool, "true", "published firmware";
    }
}

impl Own for FasterSetup {
    const ENTRY: Entry = ENTRY;

    fn new(chip: &Chip) -> FasterSetup {
        FasterSetup {
            rw_log_blocks: share(chip.blocks, 67, 3) - 1,
            isolation_blocks: share(chip.blocks, 16, 1),
            refinements: true,
        }
    }

    fn turn_pages(&self, chip: &Chip) -> u64 {
        let logs = u64::from(self.rw_log_blocks) + u64::from(self.isolation_blocks);
        logs * u64::from(chip.pages_per_block)
    }

    /// Returns the number of blocks that a chip needs: for data, for the RW log, for the isolation area, and three
    /// more. Of these, one is the log block for sequential writes. One is a new block of the RW log while its oldest
    /// block is reclaimed. The last one is for a full merge.
    fn blocks_min(&self, chip: &Chip) -> u64 {
        let logs = u64::from(self.rw_log_blocks) + u64::from(self.isolation_blocks);
        u64::from(chip.logical_blocks()) + logs + 3
    }
}

const ENTRY: Entry = Entry {
    name: "faster",
    title: "FASTER",
    line: "FAST whose log gives pages a second chance and isolates cold ones.",
    source: Source {
        authors: "S. P. Lim, S. W. Lee, B. Moon",
        title: "FASTer FTL for Enterprise-Class Flash Memory SSDs",
        venue: "SNAPI",
        year: 2010,
    },
    provenance: Provenance::Reconstruction,
    rule: &[
        "FASTER differs from FAST when the RW log is full: the log is not merged. Instead, the \
         newest versions of pages in the oldest RW block are copied to the head of the log and \
         marked. Pages that were already marked move to the isolation area.",
        "When all `isolation_blocks` are full, the logical block of the oldest page in the \
         isolation area is merged. This is repeated until the oldest isolation block has no valid \
         page and can be erased.",
        "Progressive merge: once at most two isolation blocks are free, such merges are spread \
         over the host's writes, so that the oldest isolation block has no valid page when the \
         newest one is full.",
        "With `refinements`, if all pages of the oldest block are newest versions and unmarked, \
         these pages are only marked, and the block stays in the log for another turn.",
        "With `refinements`, if less than half of the pages of the oldest block are newest \
         versions, all of these are copied to the head, whether they are marked or not.",
        "With `refinements`, the fifth page of a sequential stream starts an SW block. The pages \
         that precede it in its logical block are first copied to the SW block.",
    ],
    parameters: FasterSetup::ROWS,
    state: "The SW block (`SW1[4 5]` has pages 4 and 5 of logical block 1), then the RW blocks \
            and the isolation blocks, oldest first; `*` is a marked page, and `-` is a page that \
            is no longer valid.",
    example: Example {
        set: &[("rw_log_blocks", "2"), ("refinements", "false")],
        accesses: "5 9 13 17 6 5 10 14 18 9",
    },
};

/// Progressive merging begins when the isolation area can take at most this number of further blocks.
const RESERVED: u32 = 2;

/// Number of consecutive pages beyond which writes count as a sequential stream.
const RUN: u32 = 4;

/// State of FASTER.
#[derive(Clone, Debug)]
pub struct Faster {
    pub(super) blocks: Blocks,
    sequential: Sequential,
    pub(super) random: Area,
    isolation: Area,
    refinements: bool,
    /// Physical pages of the RW log that have had their second chance.
    marked: Vec<bool>,
    /// The page written last. `run` counts the consecutive pages up to and including it.
    last: u32,
    run: u32,
    progress: Progress,
}

/// Schedule of progressive merging. A merge step merges one logical block of the oldest isolation block. The steps are
/// spaced so that the oldest block has no live page when the newest block is full. The schedule assumes that the
/// newest block fills as fast as the one before it.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Number of pages that the host wrote to the log while the previous isolation block was filled. `since_block` is
    /// the same count for the isolation block that is being filled.
    writes_per_block: u32,
    since_block: u32,
    /// Log writes since the last merge step.
    since_step: u32,
}

impl Progress {
    fn write(&mut self) {
        self.since_block = self.since_block.saturating_add(1);
        self.since_step = self.since_step.saturating_add(1);
    }

    fn block_begun(&mut self) {
        self.writes_per_block = std::mem::take(&mut self.since_block);
    }

    /// Whether a merge step is due. `remaining` is the number of live pages in the oldest isolation block.
    fn is_due(&self, remaining: u32) -> bool {
        self.since_step >= self.writes_per_block / remaining.max(1)
    }
}

impl Faster {
    pub(super) fn new(setup: &Setup, own: &FasterSetup) -> Faster {
        let pages = setup.blocks as usize * setup.pages_per_block as usize;
        Faster {
            blocks: Blocks::new(setup),
            sequential: Sequential::default(),
            random: Area::new(own.rw_log_blocks, setup.pages_per_block),
            isolation: Area::new(own.isolation_blocks, setup.pages_per_block),
            refinements: own.refinements,
            marked: vec![false; pages],
            last: u32::MAX,
            run: 0,
            progress: Progress::default(),
        }
    }

    pub(super) fn store(&self) -> &Store {
        &self.blocks.store
    }

    pub(super) fn store_mut(&mut self) -> &mut Store {
        &mut self.blocks.store
    }

    pub(super) fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        self.blocks.save(out)?;
        self.sequential.save(out)?;
        self.random.save(out)?;
        self.isolation.save(out)?;
        write_bits(out, &self.marked)?;
        let progress = &self.progress;
        let numbers = [
            self.last,
            self.run,
            progress.writes_per_block,
            progress.since_block,
            progress.since_step,
        ];
        write_u32(out, &numbers)
    }

    pub(super) fn load(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        let mut roles = self.blocks.load(input)?;
        self.sequential.load(&mut roles, &self.blocks, input)?;
        self.random.load(&mut roles, &self.blocks.store, input)?;
        self.isolation.load(&mut roles, &self.blocks.store, input)?;
        read_bits(input, &mut self.marked)?;
        let numbers = read_numbers(input)?;
        check_counts(&numbers[1..], NUMBER_MAX, ("writes", "counter of the log"))?;
        let [last, run, writes_per_block, since_block, since_step] = numbers;
        (self.last, self.run) = (last, run);
        self.progress = Progress {
            writes_per_block,
            since_block,
            since_step,
        };
        Ok(())
    }

    /// Makes room in the RW log.
    fn reclaim(&mut self, ops: &mut Vec<FlashOp>) {
        let n = self.blocks.store.pages_per_block();
        while self.random.is_full() {
            let Some(victim) = self.random.pop_oldest() else {
                return;
            };
            let first = self.blocks.store.ppn(victim, 0);
            let live = self.blocks.store.live(victim);
            let marked = &mut self.marked[first as usize..(first + n) as usize];
            if self.refinements && live == n && !marked.contains(&true) {
                marked.fill(true);
                self.random.push_newest(victim);
                continue;
            }
            self.blocks.counters.gc_runs += 1;
            let spared = self.refinements && live < n / 2;
            for ppn in first..first + n {
                if !spared && self.marked[ppn as usize] {
                    self.isolate(ppn, ops);
                } else if let Some(page) = self.blocks.store.tag(ppn) {
                    let to = self.random.place(&mut self.blocks.store);
                    self.blocks.move_to(page, to, Why::Gc, ops);
                    self.marked[to as usize] = true;
                }
            }
            self.marked[first as usize..(first + n) as usize].fill(false);
            self.blocks.store.erase(victim, Why::Gc, ops);
        }
    }

    /// Moves the page at `ppn` to the isolation area if it is still live. First makes room in the isolation area.
    fn isolate(&mut self, ppn: u32, ops: &mut Vec<FlashOp>) {
        while self.blocks.store.tag(ppn).is_some() && self.isolation.is_full() {
            self.merge_step(ops);
        }
        // The merges above may have moved the page to its data block.
        let Some(page) = self.blocks.store.tag(ppn) else {
            return;
        };
        let begun = self.isolation.len();
        let to = self.isolation.place(&mut self.blocks.store);
        if self.isolation.len() > begun {
            self.progress.block_begun();
        }
        self.blocks.move_to(page, to, Why::Gc, ops);
    }

    /// Executes one merge step: merges the logical block of the first live page in the oldest isolation block. Erases
    /// the oldest isolation block if it then has no live page.
    fn merge_step(&mut self, ops: &mut Vec<FlashOp>) {
        let Some(oldest) = self.isolation.oldest() else {
            return;
        };
        let first = self.blocks.store.ppn(oldest, 0);
        let n = self.blocks.store.pages_per_block();
        let page = (first..first + n).find_map(|ppn| self.blocks.store.tag(ppn));
        if let Some(page) = page {
            let (block, _) = self.blocks.split(page);
            self.sequential.merge(&mut self.blocks, block, ops);
        }
        if self.blocks.store.live(oldest) == 0 {
            self.isolation.pop_oldest();
            self.blocks.store.erase(oldest, Why::Merge, ops);
        }
        self.progress.since_step = 0;
    }

    /// Counts a write to the log. Then executes a merge step if the isolation area is nearly full and a step is due.
    fn progress(&mut self, ops: &mut Vec<FlashOp>) {
        self.progress.write();
        // The newest isolation block is still being written, so it cannot be merged. Steps therefore need an older
        // block. They begin when at most `RESERVED` further blocks can be opened. If no further block can be opened, a
        // step is executed even if it is not due.
        let is_nearly_full = self.isolation.len() > 1 && self.isolation.claims() <= RESERVED;
        if let Some(oldest) = self.isolation.oldest().filter(|_| is_nearly_full) {
            let is_last = self.isolation.claims() == 0;
            if is_last || self.progress.is_due(self.blocks.store.live(oldest)) {
                self.merge_step(ops);
            }
        }
    }

    /// Counts consecutive pages. Returns whether the pages written last, up to and including `page`, are a sequential
    /// stream. Always false without `refinements`.
    fn finds_stream(&mut self, page: u32) -> bool {
        self.run = if page == self.last.wrapping_add(1) {
            self.run.saturating_add(1)
        } else {
            1
        };
        self.last = page;
        self.refinements && self.run > RUN
    }
}

impl Faster {
    /// Returns the large tables.
    pub(super) fn tables(&mut self) -> impl Iterator<Item = &mut dyn Movable> {
        self.blocks.tables()
    }

    /// Prefetches the first data that an access to the page reads.
    #[inline]
    pub(super) fn prefetch(&self, page: u32) {
        self.blocks.prefetch(page);
    }

    /// Prefetches the data that a write of the page reads after the data that `prefetch` loads.
    #[inline]
    pub(super) fn prefetch_old_copy(&self, page: u32) {
        self.blocks.prefetch_old_copy(page);
    }

    /// Returns how many pages and log blocks the host can write before the next merge or reclaim.
    pub(super) fn outlook(&self) -> Outlook {
        let random = &self.random;
        let n = self.store().pages_per_block();
        Outlook::of_log(random.claims(), random.open_pages(), n)
    }
}

impl ChipFtl for Faster {
    fn fill(&mut self) {
        self.blocks.fill();
    }

    fn read(&mut self, page: u32, ops: &mut Vec<FlashOp>) {
        self.blocks.read(page, ops);
    }

    fn write(&mut self, page: u32, ops: &mut Vec<FlashOp>) -> Result<(), NoSpace> {
        let (block, offset) = self.blocks.split(page);
        if self.blocks.is_unwritten(page) && !self.sequential.has_passed(block, offset) {
            // Blocks to keep free: the blocks that the logs can still take, a new block of the RW log while its oldest
            // block is reclaimed, and a block for a full merge.
            let logs = self.sequential.claims() + self.random.claims() + self.isolation.claims();
            self.blocks.write_in_place(page, logs + 2, ops)?;
            self.finds_stream(page);
            return Ok(());
        }
        let is_stream = self.finds_stream(page);
        if self.sequential.write(&mut self.blocks, page, ops) {
            return Ok(());
        }
        if is_stream {
            self.sequential.begin(&mut self.blocks, page, ops);
            return Ok(());
        }
        self.progress(ops);
        self.reclaim(ops);
        let ppn = self.random.place(&mut self.blocks.store);
        self.blocks.write_at(page, ppn, ops);
        Ok(())
    }

    fn trim(&mut self, page: u32, _ops: &mut Vec<FlashOp>) {
        self.blocks.trim(page);
    }

    fn lookup(&self, page: u32) -> Option<u32> {
        self.blocks.lookup(page)
    }

    fn check(&self) -> Result<(), String> {
        let store = &self.blocks.store;
        let n = store.pages_per_block();
        let mut is_log = vec![false; store.blocks() as usize];
        self.random
            .iter()
            .for_each(|(block, _)| is_log[block as usize] = true);
        let mut marked = (0u32..).zip(&self.marked).filter(|(_, marked)| **marked);
        let is_wrong = |ppn: u32| store.is_erased(ppn) || !is_log[(ppn / n) as usize];
        if let Some((ppn, _)) = marked.find(|(ppn, _)| is_wrong(*ppn)) {
            return Err(format!("page {ppn} is marked and not in the log"));
        }
        let logs = self.sequential.len() + self.random.len() + self.isolation.len();
        self.blocks.check(logs)
    }

    fn counters(&self) -> Counters {
        self.blocks.counters
    }

    /// Formats the state, such as `SW[] RW[6 5] [9* 18] ISO[-]`. Brackets contain the pages of a block; each log has
    /// its oldest block first. `*` marks a page that has had its second chance, `-` an invalid page.
    fn state(&self) -> String {
        let store = &self.blocks.store;
        let sequential = self.sequential.text(&self.blocks);
        let mark = |ppn: u32| if self.marked[ppn as usize] { "*" } else { "" };
        let random = self.random.text(store, mark);
        let isolation = self.isolation.text(store, |_| "");
        format!("{sequential} RW{random} ISO{isolation}")
    }
}
