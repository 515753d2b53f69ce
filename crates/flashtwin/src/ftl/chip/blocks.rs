//! Common parts of the block-mapping translation layers: the block map, the page map of the log blocks, writes in
//! place, and merges.
//!
//! A logical block has at most one data block, which holds page `o` of the logical block at offset `o`. One array has
//! the location of the newest version of each page, in a data block or in a log block. It replaces the tables of log
//! blocks in the papers, which contain the same information.

use std::io::{self, Read, Write};

use super::saved::{wrong, Roles};
use super::setup::Setup;
use super::store::{Store, NONE};
use super::{Counters, FlashOp, NoSpace, Why};
use crate::ftl::state::{read_u32, write_u32};
use crate::ftl::StateError;
use crate::joined::{JoinedTable, Movable};
use crate::memory::prefetch;

/// Data blocks, and the location of each page.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    pub store: Store,
    pub counters: Counters,
    /// Physical page of each logical page.
    map: JoinedTable<u32>,
    /// Data block of each logical block.
    data: Vec<u32>,
}

impl Blocks {
    pub fn new(setup: &Setup) -> Blocks {
        Blocks {
            store: Store::new(setup.blocks, setup.pages_per_block),
            counters: Counters::default(),
            map: JoinedTable::new(NONE, setup.logical_pages as usize),
            data: vec![NONE; setup.logical_blocks() as usize],
        }
    }

    /// Returns the large tables.
    pub fn tables(&mut self) -> impl Iterator<Item = &mut dyn Movable> {
        let map: &mut dyn Movable = &mut self.map;
        self.store.tables().chain([map])
    }

    pub fn fill(&mut self) {
        let n = self.store.pages_per_block();
        for page in 0..self.map.len() as u32 {
            if page % n == 0 {
                self.data[(page / n) as usize] = self.store.take();
            }
            let ppn = self.in_place(page).expect("its block was just taken");
            self.store.set(ppn, page);
            self.map[page as usize] = ppn;
        }
    }

    pub fn logical_blocks(&self) -> u32 {
        self.data.len() as u32
    }

    /// Returns the logical block of a page, and the page's offset in the block.
    #[inline]
    pub fn split(&self, page: u32) -> (u32, u32) {
        let n = self.store.pages_per_block();
        (page / n, page % n)
    }

    #[inline]
    pub fn lookup(&self, page: u32) -> Option<u32> {
        let ppn = self.map[page as usize];
        (ppn != NONE).then_some(ppn)
    }

    /// Prefetches the location of a page, and the data block of its logical block.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        prefetch(&self.map, page as usize);
        prefetch(&self.data, self.split(page).0 as usize);
    }

    /// Prefetches the state of the page's copy on flash, and of its place in the data block.
    #[inline]
    pub fn prefetch_old_copy(&self, page: u32) {
        self.store.prefetch(self.map[page as usize]);
        if let Some(ppn) = self.in_place(page) {
            self.store.prefetch_page(ppn);
        }
    }

    pub fn read(&self, page: u32, ops: &mut Vec<FlashOp>) {
        if let Some(ppn) = self.lookup(page) {
            self.store.read(ppn, Why::Host, ops);
        }
    }

    pub fn trim(&mut self, page: u32) {
        if let Some(ppn) = self.lookup(page) {
            self.store.drop_page(ppn);
            self.map[page as usize] = NONE;
        }
    }

    /// Returns the place of a page in its data block; `None` if its logical block has no data block.
    #[inline]
    fn in_place(&self, page: u32) -> Option<u32> {
        let (block, offset) = self.split(page);
        let data = self.data[block as usize];
        (data != NONE).then(|| self.store.ppn(data, offset))
    }

    /// Whether the place of the page in its data block can be written: either the place was never written, or the
    /// logical block has no data block yet.
    #[inline]
    pub fn is_unwritten(&self, page: u32) -> bool {
        self.in_place(page)
            .is_none_or(|ppn| self.store.is_erased(ppn))
    }

    /// Writes a page to its place in the data block, which must be unwritten. If the logical block has no data block,
    /// takes a free block for it. Fails if fewer than `claims` blocks would then stay free for logs and merges.
    pub fn write_in_place(
        &mut self,
        page: u32,
        claims: u32,
        ops: &mut Vec<FlashOp>,
    ) -> Result<(), NoSpace> {
        let (block, offset) = self.split(page);
        if self.data[block as usize] == NONE {
            if self.store.free_blocks() <= claims {
                return Err(NoSpace);
            }
            self.data[block as usize] = self.store.take();
        }
        let ppn = self.store.ppn(self.data[block as usize], offset);
        self.write_at(page, ppn, ops);
        Ok(())
    }

    /// Programs the host's page at `ppn`.
    #[inline]
    pub fn write_at(&mut self, page: u32, ppn: u32, ops: &mut Vec<FlashOp>) {
        self.trim(page);
        self.store.program(ppn, page, Why::Host, ops);
        self.map[page as usize] = ppn;
    }

    /// Copies a page from its present location to the physical page `ppn`.
    pub fn move_to(&mut self, page: u32, ppn: u32, why: Why, ops: &mut Vec<FlashOp>) {
        self.store.copy(self.map[page as usize], ppn, why, ops);
        self.map[page as usize] = ppn;
    }

    /// Copies the pages `offsets` of a logical block to the same offsets of block `to`. If `new` is given, it is one
    /// of these pages and the host is writing it. It is then programmed instead of copied.
    pub fn gather(
        &mut self,
        block: u32,
        offsets: std::ops::Range<u32>,
        to: u32,
        new: Option<u32>,
        ops: &mut Vec<FlashOp>,
    ) {
        let first = block * self.store.pages_per_block();
        let end = offsets.end.min(self.map.len() as u32 - first);
        let mut next = offsets.start;
        if let Some(page) = new {
            let offset = page - first;
            self.gather_old(first, next..offset, to, ops);
            self.write_at(page, self.store.ppn(to, offset), ops);
            next = offset + 1;
        }
        self.gather_old(first, next..end, to, ops);
    }

    /// Copies the pages `offsets` of a logical block to the same offsets of block `to`. `first` is the first page of
    /// the logical block.
    fn gather_old(
        &mut self,
        first: u32,
        offsets: std::ops::Range<u32>,
        to: u32,
        ops: &mut Vec<FlashOp>,
    ) {
        if !offsets.is_empty() {
            let pages = (first + offsets.start) as usize..(first + offsets.end) as usize;
            let to = self.store.ppn(to, offsets.start);
            (self.store).copy_each(&mut self.map[pages], to, Why::Merge, ops);
        }
    }

    /// Full merge: copies the newest version of each page of a logical block to a new block, and erases the data
    /// block. If `new` is given, the host is writing this page. It is then programmed instead of copied.
    pub fn merge_full(&mut self, block: u32, new: Option<u32>, ops: &mut Vec<FlashOp>) {
        self.counters.full_merges += 1;
        let n = self.store.pages_per_block();
        let end = ((block + 1) * n).min(self.map.len() as u32);
        let any = new.is_some() || (block * n..end).any(|page| self.lookup(page).is_some());
        let mut to = NONE;
        if any {
            to = self.store.take();
            self.gather(block, 0..n, to, new, ops);
        }
        self.replace(block, to, ops);
    }

    /// Switch or partial merge. The log block holds the first `count` pages of a logical block in order. Copies the
    /// other pages to the log block, makes it the data block, and erases the old data block.
    pub fn adopt(&mut self, block: u32, log: u32, count: u32, ops: &mut Vec<FlashOp>) {
        let n = self.store.pages_per_block();
        if count == n {
            self.counters.switch_merges += 1;
        } else {
            self.counters.partial_merges += 1;
            self.gather(block, count..n, log, None, ops);
        }
        self.replace(block, log, ops);
    }

    /// Partial merge of a log block while the host writes page `new`. Copies the missing pages to the log block,
    /// except `new`, which is programmed. Then makes the log block the data block.
    pub fn adopt_with(
        &mut self,
        block: u32,
        log: u32,
        count: u32,
        new: u32,
        ops: &mut Vec<FlashOp>,
    ) {
        self.counters.partial_merges += 1;
        let n = self.store.pages_per_block();
        self.gather(block, count..n, log, Some(new), ops);
        self.replace(block, log, ops);
    }

    /// Makes `new` the data block of a logical block, and erases its old data block.
    fn replace(&mut self, block: u32, new: u32, ops: &mut Vec<FlashOp>) {
        let old = std::mem::replace(&mut self.data[block as usize], new);
        if old != NONE {
            self.store.erase(old, Why::Merge, ops);
        }
    }

    /// Writes the state. The map is not stored, because it follows from the contents of the flash pages.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        self.store.save(out)?;
        write_u32(out, &self.data)
    }

    /// Reads a state into a chip that was just created. Returns the roles of the blocks: which of them are free or
    /// data blocks.
    pub fn load(&mut self, input: &mut dyn Read) -> Result<Roles, StateError> {
        self.store.load(self.map.len() as u32, input)?;
        read_u32(input, &mut self.data)?;
        let mut roles = Roles::of(&self.store)?;
        for &data in self.data.iter().filter(|&&data| data != NONE) {
            roles.take(data)?;
        }
        for (page, ppn) in self.store.live_pages() {
            if std::mem::replace(&mut self.map[page as usize], ppn) != NONE {
                return wrong("a page is twice on flash");
            }
        }
        Ok(roles)
    }

    /// Whether `log` may become the data block of a logical block. It must contain the first `count` pages of the
    /// logical block, each at its offset, and nothing else. The place of a page without a copy on flash may be empty
    /// or invalid. All places from `count` on must be erased.
    pub fn may_adopt(&self, block: u32, log: u32, count: u32) -> bool {
        let n = self.store.pages_per_block();
        let mut offsets = 0..n;
        count <= n
            && offsets.all(|offset| {
                let (page, ppn) = (block * n + offset, self.store.ppn(log, offset));
                let is_elsewhere = || self.map.get(page as usize).is_some_and(|&at| at != NONE);
                match self.store.tag(ppn) {
                    Some(tag) => offset < count && tag == page,
                    None if offset < count => !is_elsewhere(),
                    None => self.store.is_erased(ppn),
                }
            })
    }

    /// Checks the map and the data blocks. `logs` is the number of blocks that are log blocks.
    pub fn check(&self, logs: u32) -> Result<(), String> {
        let mapped = self.map.iter().enumerate();
        let mapped = mapped.filter(|(_, &ppn)| ppn != NONE);
        self.store
            .check(mapped.map(|(page, &ppn)| (page as u32, ppn)))?;
        let n = self.store.pages_per_block();
        for (block, &data) in self.data.iter().enumerate() {
            let offsets = 0..if data == NONE { 0 } else { n };
            for offset in offsets {
                let wanted = block as u32 * n + offset;
                match self.store.tag(self.store.ppn(data, offset)) {
                    Some(tag) if tag != wanted => {
                        return Err(format!("page {tag} is at the place of {wanted}"));
                    }
                    _ => {}
                }
            }
        }
        let data = self.data.iter().filter(|&&data| data != NONE).count() as u32;
        let free = self.store.free_blocks();
        if data + logs + free != self.store.blocks() {
            return Err(format!(
                "{data} data, {logs} log and {free} free blocks: one is lost"
            ));
        }
        Ok(())
    }
}
