//! FAST: log blocks shared by all logical blocks (Lee et al., ACM TECS 6(3), 2007).
//!
//! One log block takes sequential writes and can become a data block; the others, for random writes
//! (RW), are used in turn. When they are full the oldest is reclaimed: each logical block of which it
//! holds a newest page is merged.

use std::io::{self, Read, Write};

use super::area::Area;
use super::blocks::Blocks;
use super::sequential::Sequential;
use super::setup::{FastSetup, Setup};
use super::store::Store;
use super::{ChipFtl, Counters, FlashOp, NoSpace, Why};
use crate::ftl::StateError;

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

    /// Merges what the oldest RW block holds, and erases it.
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

impl ChipFtl for Fast {
    fn fill(&mut self) {
        self.blocks.fill();
    }

    fn read(&mut self, page: u32, ops: &mut Vec<FlashOp>) {
        self.blocks.read(page, ops);
    }

    fn write(&mut self, page: u32, ops: &mut Vec<FlashOp>) -> Result<(), NoSpace> {
        if self.blocks.is_unwritten(page) {
            // The logs, and the new block of a full merge.
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

    /// `SW1[4 5] RW[- 9] [10]`: RW blocks oldest first, `-` stale.
    fn state(&self) -> String {
        let sequential = self.sequential.text(&self.blocks);
        let random = self.random.text(&self.blocks.store, |_| "");
        format!("{sequential} RW{random}")
    }
}
