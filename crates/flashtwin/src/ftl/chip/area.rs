//! A log that logical blocks share: its blocks in the order in which they were begun, the newest
//! being written page after page.

use std::collections::VecDeque;

use super::store::Store;

/// A log of at most so many blocks.
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

    /// Blocks that it may yet begin without giving one back.
    pub fn claims(&self) -> u32 {
        self.blocks_max - self.len()
    }

    /// No page can be written until the oldest block is given back.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.next == self.pages_per_block && self.claims() == 0
    }

    /// The page to write next; begins a block if that is due.
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

    /// Takes out the oldest block, which is not being written.
    pub fn pop_oldest(&mut self) -> Option<u32> {
        self.blocks.pop_front()
    }

    /// Puts a full block back as the newest, while no other is being written.
    pub fn push_newest(&mut self, block: u32) {
        debug_assert_eq!(self.next, self.pages_per_block);
        self.blocks.push_back(block);
    }

    /// Every block begun, oldest first, with its pages written.
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

    /// `[9 13] [17]`, oldest block first.
    pub fn text(&self, store: &Store, mark: impl Fn(u32) -> &'static str) -> String {
        let texts = self
            .iter()
            .map(|(block, pages)| store.text(block, pages, &mark));
        texts.collect::<Vec<_>>().join(" ")
    }
}
