//! A log that all logical blocks share: a queue of log blocks, oldest first. Pages are appended to the newest
//! block.

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use super::saved::{read_list, read_numbers, write_list, wrong, Roles};
use super::store::Store;
use crate::ftl::state::write_u32;
use crate::ftl::StateError;

/// A log with a maximum number of blocks.
#[derive(Clone, Debug)]
pub(super) struct Area {
    /// Oldest first.
    blocks: VecDeque<u32>,
    blocks_max: u32,
    pages_per_block: u32,
    /// Next page of the newest block.
    next: u32,
}

impl Area {
    pub fn new(blocks_max: u32, pages_per_block: u32) -> Area {
        Area {
            blocks: VecDeque::with_capacity(blocks_max as usize),
            blocks_max,
            pages_per_block,
            next: pages_per_block,
        }
    }

    pub fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Returns the number of further blocks that the log can take. If it is 0 and the newest block is full, the
    /// oldest block must be reclaimed.
    pub fn claims(&self) -> u32 {
        self.blocks_max - self.len()
    }

    /// Returns the number of free pages of the newest block.
    #[inline]
    pub fn open_pages(&self) -> u32 {
        self.pages_per_block - self.next
    }

    /// Whether the log is full: it can take another page only after its oldest block is reclaimed.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.next == self.pages_per_block && self.claims() == 0
    }

    /// Returns the physical page to write next. Takes a new block if the newest one is full.
    pub fn place(&mut self, store: &mut Store) -> u32 {
        if self.next == self.pages_per_block {
            self.blocks.push_back(store.take());
            self.next = 0;
        }
        let newest = self.blocks[self.blocks.len() - 1];
        self.next += 1;
        store.ppn(newest, self.next - 1)
    }

    pub fn oldest(&self) -> Option<u32> {
        self.blocks.front().copied()
    }

    /// Removes the oldest block from the log. The block must be full.
    pub fn pop_oldest(&mut self) -> Option<u32> {
        self.blocks.pop_front()
    }

    /// Appends a full block as the newest. The previous newest block must be full.
    pub fn push_newest(&mut self, block: u32) {
        debug_assert_eq!(self.next, self.pages_per_block);
        self.blocks.push_back(block);
    }

    /// Returns all blocks of the log, oldest first, each with the number of its written pages.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let last = self.blocks.len().wrapping_sub(1);
        let pages = move |i| {
            if i == last {
                self.next
            } else {
                self.pages_per_block
            }
        };
        let blocks = self.blocks.iter().enumerate();
        blocks.map(move |(i, &block)| (block, pages(i)))
    }

    /// Writes the state of the log.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        write_list(out, self.blocks.iter().copied())?;
        write_u32(out, &[self.next])
    }

    /// Reads a state into this empty log. Fails if one of its blocks already has another use in `roles`, for example as
    /// a data block.
    pub fn load(
        &mut self,
        roles: &mut Roles,
        store: &Store,
        input: &mut dyn Read,
    ) -> Result<(), StateError> {
        let blocks = read_list(input, self.blocks_max)?;
        let [next] = read_numbers(input)?;
        for (i, &block) in blocks.iter().enumerate() {
            roles.take(block)?;
            let is_newest = i + 1 == blocks.len();
            let written = if is_newest {
                next
            } else {
                self.pages_per_block
            };
            if !store.is_written_to(block, written) {
                return wrong("a log block is written otherwise than page by page");
            }
        }
        if next > self.pages_per_block || blocks.is_empty() && next < self.pages_per_block {
            return wrong("a log is written beyond its blocks");
        }
        (self.blocks, self.next) = (blocks.into(), next);
        Ok(())
    }

    /// Formats the log, such as `[9 13] [17]`: the pages of each block in brackets, oldest block first.
    pub fn text(&self, store: &Store, mark: impl Fn(u32) -> &'static str) -> String {
        let texts = self
            .iter()
            .map(|(block, pages)| store.text(block, pages, &mark));
        texts.collect::<Vec<_>>().join(" ")
    }
}
