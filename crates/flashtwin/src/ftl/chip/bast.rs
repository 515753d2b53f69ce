//! BAST, a translation layer in which each of a few logical blocks has its own log block (Kim et al., IEEE TCE 48(2),
//! 2002).
//!
//! A page is written to its place in the data block if that place was never written. Otherwise it is written to the
//! log block of its logical block. A log block is merged when it is full and another page arrives for it. If a
//! logical block needs a log block and none is free, the log block whose last write is the oldest is merged.

use std::io::{self, Read, Write};

use super::blocks::Blocks;
use super::catalog::{Entry, Example, Provenance, Source};
use super::saved::{read_list, write_list, wrong};
use super::setup::{own, share, Chip, Own, Setup};
use super::store::{Store, NONE};
use super::{ChipFtl, Counters, FlashOp, NoSpace, Outlook, Why};
use crate::component::Kind;
use crate::ftl::StateError;
use crate::joined::Movable;
use crate::list::List;
use crate::units::PageId;

own! {
    /// Parameters of BAST.
    pub struct BastSetup {
        /// Log blocks of a chip
        log_blocks: u32 = Kind::Count(1, u32::MAX - 1), "3 % of its blocks", "the share of CBM's FAST";
    }
}

impl Own for BastSetup {
    const ENTRY: Entry = ENTRY;

    fn new(chip: &Chip) -> BastSetup {
        BastSetup {
            log_blocks: share(chip.blocks, 30, 1),
        }
    }

    fn turn_pages(&self, chip: &Chip) -> u64 {
        u64::from(self.log_blocks) * u64::from(chip.pages_per_block)
    }

    /// Returns the number of blocks that a chip needs: for data, for logs, and one for the new block of a full merge.
    fn blocks_min(&self, chip: &Chip) -> u64 {
        u64::from(chip.logical_blocks()) + u64::from(self.log_blocks) + 1
    }
}

const ENTRY: Entry = Entry {
    name: "bast",
    title: "BAST",
    line: "Block mapping; a few logical blocks have a log block of their own.",
    source: Source {
        authors: "J. Kim, J. M. Kim, S. H. Noh, S. L. Min, Y. Cho",
        title: "A Space-Efficient Flash Translation Layer for CompactFlash Systems",
        venue: "IEEE Transactions on Consumer Electronics 48(2)",
        year: 2002,
    },
    provenance: Provenance::Original,
    rule: &[
        "A page has a fixed place in the data block of its logical block. If this place was never \
         written, the page is written there. Otherwise, the page is appended to the log of its \
         logical block.",
        "There are `log_blocks` logs. If none is free, the log written longest ago is merged. A \
         full log is merged when another page arrives for it.",
        "Switch merge: a log that has all pages of its logical block in order becomes the data \
         block. The only cost is the erase of the old data block.",
        "Partial merge: a log that has the first pages of its logical block in order receives \
         copies of the other pages and becomes the data block.",
        "Full merge: the newest pages are copied to a new block; data block and log are erased.",
    ],
    parameters: BastSetup::ROWS,
    state: "The logs, most recently written first: `log1[5 4]` is the log of logical block 1, \
            with its pages in the order of writing; `-` is a page that is no longer valid.",
    example: Example {
        set: &[("log_blocks", "2")],
        accesses: "0 1 2 3 0 5 4 8 12",
    },
};

/// A log block.
#[derive(Clone, Copy, Debug)]
struct Log {
    block: u32,
    owner: u32,
    /// Number of pages written to the log block.
    count: u32,
    /// Whether the log block contains the offsets 0 to `count` - 1 of its logical block, in this order.
    in_order: bool,
}

/// Block-associative sector translation.
#[derive(Clone, Debug)]
pub struct Bast {
    pub(super) blocks: Blocks,
    logs: Vec<Log>,
    /// Entries of `logs` that are not in use.
    idle: Vec<u32>,
    /// For each logical block, the index of its log in `logs`, or [`NONE`].
    log_of: Vec<u32>,
    /// Log blocks in use, ordered by their last write.
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

    pub(super) fn store(&self) -> &Store {
        &self.blocks.store
    }

    pub(super) fn store_mut(&mut self) -> &mut Store {
        &mut self.blocks.store
    }

    /// Returns the number of log blocks that can be opened before a log block must be merged.
    pub(super) fn idle_logs(&self) -> u32 {
        self.idle.len() as u32
    }

    /// Returns the number of free pages in the log block that was written last; 0 if no log block is in use.
    pub(super) fn newest_room(&self) -> u32 {
        let newest = self.order.newest();
        newest.map_or(0, |at| {
            self.blocks.store.pages_per_block() - self.logs[at.0 as usize].count
        })
    }

    pub(super) fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        self.blocks.save(out)?;
        let logs = self.order.iter_oldest_first().flat_map(|at| {
            let log = &self.logs[at.0 as usize];
            [log.block, log.owner, log.count, u32::from(log.in_order)]
        });
        write_list(out, logs)
    }

    pub(super) fn load(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        let mut roles = self.blocks.load(input)?;
        let numbers = read_list(input, 4 * self.logs.len() as u32)?;
        for log in numbers.chunks(4) {
            let &[block, owner, count, in_order @ (0 | 1)] = log else {
                return wrong("a log block is cut off");
            };
            roles.take(block)?;
            let log = Log {
                block,
                owner,
                count,
                in_order: in_order == 1,
            };
            if !self.is_sound(&log) {
                return wrong("a log block holds what is not of its logical block");
            }
            let at = self.idle.pop();
            let at = at.expect("no more were read than there are");
            self.logs[at as usize] = log;
            self.log_of[owner as usize] = at;
            self.order.push_newest(PageId(at));
        }
        Ok(())
    }

    /// Whether a log block read from a state is valid. Its logical block must have no other log block, and the pages
    /// in the log block must match the fields of `log`.
    fn is_sound(&self, log: &Log) -> bool {
        let store = &self.blocks.store;
        let n = store.pages_per_block();
        let is_its = |tag: u32| tag / n == log.owner;
        let mut pages = (0..n).map(|offset| store.ppn(log.block, offset));
        self.log_of.get(log.owner as usize) == Some(&NONE)
            && (1..=n).contains(&log.count)
            && store.is_written_to(log.block, log.count)
            && pages.all(|ppn| store.tag(ppn).is_none_or(is_its))
            && (!log.in_order || self.blocks.may_adopt(log.owner, log.block, log.count))
    }

    /// Merges a log block with its data block: a switch or partial merge if the log block is in order, otherwise a
    /// full merge.
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

    /// Merges the log block of the logical block `owner` if this log block is full.
    fn merge_if_full(&mut self, owner: u32, ops: &mut Vec<FlashOp>) {
        let own = self.log_of[owner as usize];
        let log = self.logs.get(own as usize);
        if log.is_some_and(|log| log.count == self.blocks.store.pages_per_block()) {
            self.merge(own, ops);
        }
    }

    /// Returns the log block of the logical block `owner`, and opens one if there is none. If no log block is free,
    /// first merges the one whose last write is the oldest. The caller has already merged the log block of `owner` if
    /// it was full.
    fn log_for(&mut self, owner: u32, ops: &mut Vec<FlashOp>) -> u32 {
        let own = self.log_of[owner as usize];
        if own != NONE {
            return own;
        }
        if self.idle.is_empty() {
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

impl Bast {
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

    /// Returns how many pages the host can write, and how many logs it can fill, before the next merge.
    pub(super) fn outlook(&self) -> Outlook {
        let n = self.store().pages_per_block();
        Outlook::of_log(self.idle_logs(), self.newest_room(), n)
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
        let (owner, offset) = self.blocks.split(page);
        if !self.blocks.is_unwritten(page) {
            // The merge may leave the page's place in the data block unwritten. The page must then be written to this
            // place. If it went to a log block, a later write could go to the place, and the log block would still
            // have the older version. Therefore the place is checked after the merge.
            self.merge_if_full(owner, ops);
        }
        if self.blocks.is_unwritten(page) {
            // Blocks to keep free: one for each log that is not in use, and one for a full merge.
            let claims = self.idle.len() as u32 + 1;
            return self.blocks.write_in_place(page, claims, ops);
        }
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

    /// Formats the log blocks, such as `log1[5 4] log0[- 0]`: the number of the logical block, then the pages. The
    /// log block written last is first.
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
