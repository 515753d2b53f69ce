//! FAST, a translation layer in which all logical blocks share the log blocks (Lee et al., ACM TECS 6(3), 2007).
//!
//! One log block, the SW block, receives sequential writes and can become a data block. The other log blocks, the
//! RW blocks, receive random writes and are filled one after the other. If all RW blocks are full, the oldest one
//! is reclaimed: each logical block with a live page in it is merged.

use std::io::{self, Read, Write};

use super::area::Area;
use super::blocks::Blocks;
use super::catalog::{Entry, Example, Provenance, Source};
use super::sequential::Sequential;
use super::setup::{own, share, Chip, Own, Setup};
use super::store::Store;
use super::{ChipFtl, Counters, FlashOp, NoSpace, Outlook, Why};
use crate::component::Kind;
use crate::ftl::StateError;
use crate::joined::Movable;

own! {
    /// Parameters of FAST.
    pub struct FastSetup {
        /// Log blocks of a chip for random writes, beside the one for sequential writes
        rw_log_blocks: u32 = Kind::Count(1, u32::MAX - 1), "3 % of the blocks, less one", "CBM: 3 % of the blocks are log blocks; D-50";
    }
}

impl Own for FastSetup {
    const ENTRY: Entry = ENTRY;

    fn new(chip: &Chip) -> FastSetup {
        FastSetup {
            rw_log_blocks: share(chip.blocks, 30, 2) - 1,
        }
    }

    fn turn_pages(&self, chip: &Chip) -> u64 {
        u64::from(self.rw_log_blocks) * u64::from(chip.pages_per_block)
    }

    /// Returns the number of blocks that a chip needs: for data, for the RW blocks, one for the SW block, and one
    /// for a full merge.
    fn blocks_min(&self, chip: &Chip) -> u64 {
        u64::from(chip.logical_blocks()) + u64::from(self.rw_log_blocks) + 2
    }
}

const ENTRY: Entry = Entry {
    name: "fast",
    title: "FAST",
    line: "Block mapping with log blocks that all logical blocks share.",
    source: Source {
        authors: "S. W. Lee, D. J. Park, T. S. Chung, D. H. Lee, S. Park, H. J. Song",
        title: "A Log Buffer-Based Flash Translation Layer Using Fully-Associative Sector \
                Translation",
        venue: "ACM Transactions on Embedded Computing Systems 6(3)",
        year: 2007,
    },
    provenance: Provenance::Original,
    rule: &[
        "A page whose place in its data block was never written is written there.",
        "A page with offset 0 starts a new log block for sequential writes (SW block). The old SW \
         block becomes the data block of its owner (the logical block whose pages it has), by a \
         switch merge if the SW block is full, otherwise by a partial merge.",
        "A page of the SW block's owner is appended if it is the next one in order. If the page \
         is already in the SW block, it causes a full merge. If it skips ahead, it causes a \
         partial merge. The merge includes the page, and the SW block is then empty.",
        "Any other page goes to the newest of the `rw_log_blocks` log blocks for random writes \
         (RW).",
        "If all RW blocks are full, the oldest one is reclaimed: each logical block that has the \
         newest version of a page in this RW block is merged once, and then the RW block is \
         erased.",
    ],
    parameters: FastSetup::ROWS,
    state: "The SW block with its owner, then the RW blocks, oldest first; `-` is a page that is \
            no longer valid.",
    example: Example {
        set: &[("rw_log_blocks", "2")],
        accesses: "0 1 2 3 4 9 13 10 17 9 14 5 18 11 15",
    },
};

/// Fully associative sector translation.
#[derive(Clone, Debug)]
pub struct Fast {
    pub(super) blocks: Blocks,
    sequential: Sequential,
    pub(super) random: Area,
}

impl Fast {
    pub(super) fn new(setup: &Setup, own: &FastSetup) -> Fast {
        Fast {
            blocks: Blocks::new(setup),
            sequential: Sequential::default(),
            random: Area::new(own.rw_log_blocks, setup.pages_per_block),
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
        self.random.save(out)
    }

    pub(super) fn load(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        let mut roles = self.blocks.load(input)?;
        self.sequential.load(&mut roles, &self.blocks, input)?;
        self.random.load(&mut roles, &self.blocks.store, input)
    }

    /// Reclaims the oldest RW block: merges each logical block that has a live page in it, then erases it.
    fn reclaim(&mut self, ops: &mut Vec<FlashOp>) {
        let Some(victim) = self.random.pop_oldest() else {
            return;
        };
        for offset in 0..self.blocks.store.pages_per_block() {
            let ppn = self.blocks.store.ppn(victim, offset);
            if let Some(page) = self.blocks.store.tag(ppn) {
                let (block, _) = self.blocks.split(page);
                self.sequential.merge(&mut self.blocks, block, ops);
            }
        }
        self.blocks.store.erase(victim, Why::Merge, ops);
    }
}

impl Fast {
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

    /// Returns how many pages and log blocks the host can write before the next merge.
    pub(super) fn outlook(&self) -> Outlook {
        let random = &self.random;
        let n = self.store().pages_per_block();
        Outlook::of_log(random.claims(), random.open_pages(), n)
    }
}

impl ChipFtl for Fast {
    fn fill(&mut self) {
        self.blocks.fill();
    }

    fn read(&mut self, page: u32, ops: &mut Vec<FlashOp>) {
        self.blocks.read(page, ops);
    }

    fn write(&mut self, page: u32, ops: &mut Vec<FlashOp>) -> Result<(), NoSpace> {
        if self.blocks.is_unwritten(page) {
            // Blocks to keep free: the blocks that the logs can still take, and one for a full merge.
            let claims = self.sequential.claims() + self.random.claims() + 1;
            return self.blocks.write_in_place(page, claims, ops);
        }
        if self.sequential.write(&mut self.blocks, page, ops) {
            return Ok(());
        }
        if self.random.is_full() {
            self.reclaim(ops);
        }
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
        self.blocks.check(self.sequential.len() + self.random.len())
    }

    fn counters(&self) -> Counters {
        self.blocks.counters
    }

    /// Formats the state, such as `SW1[4 5] RW[- 9] [10]`: the SW block of logical block 1, then the RW blocks,
    /// oldest first. Brackets contain the pages of a block; `-` marks an invalid page.
    fn state(&self) -> String {
        let sequential = self.sequential.text(&self.blocks);
        let random = self.random.text(&self.blocks.store, |_| "");
        format!("{sequential} RW{random}")
    }
}
