//! BAST: each of a few logical blocks has a log block of its own (policies.md B3).
//!
//! A page whose place in the data block was never written goes there; any other goes to the log
//! block of its logical block. A log block is merged when it is full and another page comes, or when
//! a log block is needed and its own was written longest ago.

use super::blocks::Blocks;
use super::setup::{BastSetup, Setup};
use super::store::NONE;
use super::{ChipFtl, Counters, FlashOp, NoSpace, Why};
use crate::buffer::{List, PageId};

/// A log block.
#[derive(Clone, Copy, Debug)]
struct Log {
    block: u32,
    owner: u32,
    /// Pages written to it.
    count: u32,
    /// They are the offsets 0 to count - 1, in this order.
    in_order: bool,
}

/// Block-associative sector translation.
#[derive(Clone, Debug)]
pub struct Bast {
    blocks: Blocks,
    logs: Vec<Log>,
    /// Places in `logs` that hold none.
    idle: Vec<u32>,
    /// Place in `logs` of each logical block's log.
    log_of: Vec<u32>,
    /// Logs in use, by their last write.
    order: List,
}

impl Bast {
    pub(super) fn new(setup: &Setup, own: &BastSetup) -> Bast {
        let none = Log {
            block: NONE,
            owner: NONE,
            count: 0,
            in_order: true,
        };
        Bast {
            blocks: Blocks::new(setup),
            logs: vec![none; own.log_blocks as usize],
            idle: (0..own.log_blocks).rev().collect(),
            log_of: vec![NONE; setup.logical_blocks() as usize],
            order: List::default(),
        }
    }

    /// Merges a log with its data block: switch, partial or full, by what is in it.
    fn merge(&mut self, log: u32, ops: &mut Vec<FlashOp>) {
        let Log {
            block,
            owner,
            count,
            in_order,
        } = self.logs[log as usize];
        self.order.remove(PageId(log));
        self.idle.push(log);
        self.log_of[owner as usize] = NONE;
        if in_order {
            self.blocks.adopt(owner, block, count, ops);
        } else {
            self.blocks.merge_full(owner, None, ops);
            self.blocks.store.erase(block, Why::Merge, ops);
        }
    }

    /// The log to write a page of this logical block to.
    fn log_for(&mut self, owner: u32, ops: &mut Vec<FlashOp>) -> u32 {
        let own = self.log_of[owner as usize];
        if own != NONE {
            if self.logs[own as usize].count < self.blocks.store.pages_per_block() {
                return own;
            }
            self.merge(own, ops);
        } else if self.idle.is_empty() {
            if let Some(oldest) = self.order.oldest() {
                self.merge(oldest.0, ops);
            }
        }
        let log = self.idle.pop().expect("one is idle, or was just merged");
        let block = self.blocks.store.take();
        self.logs[log as usize] = Log {
            block,
            owner,
            count: 0,
            in_order: true,
        };
        self.log_of[owner as usize] = log;
        self.order.push_newest(PageId(log));
        log
    }
}

impl ChipFtl for Bast {
    fn fill(&mut self) {
        self.blocks.fill();
    }

    fn read(&mut self, page: u32, ops: &mut Vec<FlashOp>) {
        self.blocks.read(page, ops);
    }

    fn write(&mut self, page: u32, ops: &mut Vec<FlashOp>) -> Result<(), NoSpace> {
        if self.blocks.is_unwritten(page) {
            // The idle logs, and the new block of a full merge.
            let claims = self.idle.len() as u32 + 1;
            return self.blocks.write_in_place(page, claims, ops);
        }
        let (owner, offset) = self.blocks.split(page);
        let at = self.log_for(owner, ops);
        self.order.remove(PageId(at));
        self.order.push_newest(PageId(at));
        let log = &mut self.logs[at as usize];
        let ppn = self.blocks.store.ppn(log.block, log.count);
        log.in_order &= offset == log.count;
        log.count += 1;
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
        let used = (self.logs.len() - self.idle.len()) as u32;
        if self.order.len() as u32 != used {
            return Err(format!("{used} logs in use, {} in order", self.order.len()));
        }
        self.blocks.check(used)
    }

    fn counters(&self) -> Counters {
        self.blocks.counters
    }

    /// `log1[5 4] log0[- 0]`: most recently written first.
    fn state(&self) -> String {
        let mut texts: Vec<String> = self
            .order
            .iter_oldest_first()
            .map(|at| {
                let log = &self.logs[at.0 as usize];
                let pages = self.blocks.store.text(log.block, log.count, |_| "");
                format!("log{}{pages}", log.owner)
            })
            .collect();
        texts.reverse();
        texts.join(" ")
    }
}
