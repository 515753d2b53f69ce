//! DFTL: a page map stored in flash, with a cache of its entries in memory (Gupta, Kim, Urgaonkar, ASPLOS 2009).
//!
//! A translation page has the map entries of consecutive logical pages. The directory, in memory, has the location of
//! each translation page. Translation pages and data pages are written to separate blocks. Garbage collection is
//! greedy over both kinds of blocks. When it moves a data page, the map entry of the page changes. If the entry is
//! cached, it becomes dirty. Otherwise its translation page is rewritten at the end of the collection. A translation
//! page with several such entries is rewritten once.

use std::io::{self, Read, Write};

use super::cached_map::CachedMap;
use super::catalog::{Entry, Example, Provenance, Source};
use super::saved::{read_bits, read_numbers, write_bits, wrong, Roles};
use super::setup::{own, share, Chip, Own, Setup};
use super::store::{Store, NONE};
use super::{ChipFtl, Counters, FlashOp, NoSpace, Outlook, Why};
use crate::component::Kind;
use crate::ftl::state::write_u32;
use crate::ftl::StateError;
use crate::joined::Movable;

own! {
    /// Parameters of DFTL.
    pub struct DftlSetup {
        /// Map entries that are cached for a chip
        cmt_entries: u32 = Kind::Count(1, u32::MAX - 1), "for 1/32 of its pages", "D-47";
        /// Maximum number of entries in the protected segment of the cache; 0 makes the cache LRU
        protected_entries: u32 = Kind::Count(0, u32::MAX - 1), "half", "D-47";
        /// Map entries of a translation page
        entries_per_translation_page: u32 = Kind::Count(1, 1 << 18), "4 bytes each fill a page", "DFTL";
        /// When a translation page is written, all its dirty map entries are written with it
        batching: bool = Kind::Bool, "true", "DFTL";
        /// A chip collects when at most this number of blocks is free
        low_blocks: u32 = Kind::Count(2, u32::MAX - 1), "5 % of them, at most half of the spare ones", "5 % as GCaR and Harmonia; D-48";
    }
}

impl DftlSetup {
    /// Returns the number of translation pages for `logical_pages`.
    pub fn translation_pages(&self, logical_pages: u32) -> u32 {
        logical_pages.div_ceil(self.entries_per_translation_page)
    }

    /// Returns the largest number of blocks that collections can keep free if every logical page has a copy on flash.
    /// `None` if the chip has too few blocks for DFTL.
    fn low_max(&self, chip: &Chip) -> Option<u32> {
        let room = u64::from(chip.blocks).checked_sub(self.blocks_min(chip))?;
        Some(room as u32 + 2)
    }

    /// Returns the default of `low_blocks`: 5 % of the blocks, but at most half of `low_max`, and at least 2 blocks.
    fn low_default(&self, chip: &Chip) -> Option<u32> {
        (self.entries_per_translation_page > 0)
            .then(|| self.low_max(chip))
            .flatten()
            .map(|max| share(chip.blocks, 50, 2).min((max / 2).max(2)))
    }
}

impl Own for DftlSetup {
    const ENTRY: Entry = ENTRY;

    fn new(chip: &Chip) -> DftlSetup {
        let cmt_entries = (chip.logical_pages / 32).max(2);
        let mut own = DftlSetup {
            cmt_entries,
            protected_entries: cmt_entries / 2,
            entries_per_translation_page: 1024,
            batching: true,
            low_blocks: 2,
        };
        own.low_blocks = own.low_default(chip).unwrap_or(own.low_blocks);
        own
    }

    fn follow(&mut self, chip: &Chip, is_given: &dyn Fn(&str) -> bool) {
        if !is_given("low_blocks") {
            self.low_blocks = self.low_default(chip).unwrap_or(self.low_blocks);
        }
        if !is_given("protected_entries") {
            self.protected_entries = self.cmt_entries / 2;
        }
    }

    fn turn_pages(&self, chip: &Chip) -> u64 {
        chip.logical_pages.into()
    }

    /// Returns the number of blocks that a chip needs: for data pages, for translation pages, one open block for each
    /// of these two kinds, and three blocks for collection.
    fn blocks_min(&self, chip: &Chip) -> u64 {
        let n = chip.pages_per_block.max(1);
        let translation = self.translation_pages(chip.logical_pages) / n;
        u64::from(chip.logical_pages / n) + u64::from(translation) + 5
    }

    fn check(&self, chip: &Chip) -> Result<(), String> {
        if self.protected_entries >= self.cmt_entries {
            return Err(format!(
                "protected_entries: found {}; must be below cmt_entries, {}",
                self.protected_entries, self.cmt_entries
            ));
        }
        let max = self.low_max(chip).unwrap_or(2);
        if !(2..=max).contains(&self.low_blocks) {
            return Err(format!(
                "low_blocks: found {}; must be from 2 to {max}, which is what can be kept free \
                 when all pages are live",
                self.low_blocks
            ));
        }
        Ok(())
    }
}

const ENTRY: Entry = Entry {
    name: "dftl",
    title: "DFTL",
    line: "Page mapping with the map stored in flash; a part of it is cached.",
    source: Source {
        authors: "A. Gupta, Y. Kim, B. Urgaonkar",
        title: "DFTL: A Flash Translation Layer Employing Demand-based Selective Caching of \
                Page-level Address Mappings",
        venue: "ASPLOS",
        year: 2009,
    },
    provenance: Provenance::Original,
    rule: &[
        "A translation page has the map entries of `entries_per_translation_page` consecutive \
         pages. A directory in memory has the location of each translation page.",
        "At most `cmt_entries` entries are cached. An access whose entry is not cached evicts the \
         oldest cached entry and reads the translation page of its own entry. If the evicted entry \
         is dirty, the translation page of the evicted entry is read and written first.",
        "With `batching`, when a translation page is written, all cached dirty entries of this \
         page are written with it and become clean.",
        "The cache is a segmented LRU: a second access moves an entry to the protected segment, \
         which has `protected_entries` entries. If this number is 0, the cache is LRU.",
        "Data and translation pages are in separate blocks. Collection is greedy over both. It \
         starts when at most `low_blocks` blocks are free.",
        "When a collection moves data pages, their entries change. Cached entries become dirty. \
         Each translation page with changed entries that are not cached is read and written once.",
    ],
    parameters: DftlSetup::ROWS,
    state: "The cached entries, then the number of free blocks. Entries in the protected segment \
            precede those on probation, the most recent first; `*` marks a dirty entry.",
    example: Example {
        set: &[
            ("cmt_entries", "2"),
            ("protected_entries", "0"),
            ("entries_per_translation_page", "4"),
        ],
        accesses: "R0 1 R4 2 0",
    },
};

/// Minimum number of free blocks at the start of an access. The access may open one data block and one translation
/// block. The third free block remains for the collection that follows.
const FREE_MIN: u32 = 3;

/// Number of pages by which the prefetches of map entries precede the moves of a collection.
const AHEAD: u32 = 8;

/// The open block for pages of one kind, data or translation. When the block is full, it may be collected, although
/// no other block has been opened yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frontier {
    block: u32,
    /// Next page to write in the block.
    pub next: u32,
    /// Number of blocks that hold pages of this kind.
    pub blocks: u32,
}

/// Demand-based page mapping.
#[derive(Clone, Debug)]
pub struct Dftl {
    pub(super) store: Store,
    pub(super) cache: CachedMap,
    /// The global translation directory (GTD): physical page of each translation page.
    directory: Vec<u32>,
    batching: bool,
    pub(super) data: Frontier,
    translation: Frontier,
    /// For each block in use, whether it holds translation pages.
    is_translation: Vec<bool>,
    /// Largest number of data blocks. The remaining blocks suffice for the translation pages and for collection.
    data_blocks_max: u32,
    pub(super) low_blocks: u32,
    /// Translation pages to rewrite at the end of the present collection. `noted` prevents duplicates: for each
    /// translation page, it has the number of the last collection that added the page to this list.
    affected: Vec<u32>,
    noted: Vec<u64>,
    counters: Counters,
}

impl Dftl {
    pub(super) fn new(setup: &Setup, own: &DftlSetup) -> Dftl {
        let n = setup.pages_per_block;
        let translation_pages = own.translation_pages(setup.logical_pages);
        let frontier = Frontier {
            block: NONE,
            next: n,
            blocks: 0,
        };
        // Largest number of translation blocks directly after a collection, including the open one.
        let translation_blocks_max = translation_pages / n + 1;
        Dftl {
            store: Store::new(setup.blocks, n),
            cache: CachedMap::new(setup, own),
            directory: vec![NONE; translation_pages as usize],
            batching: own.batching,
            data: frontier,
            translation: frontier,
            is_translation: vec![false; setup.blocks as usize],
            data_blocks_max: setup
                .blocks
                .saturating_sub(translation_blocks_max + FREE_MIN),
            low_blocks: own.low_blocks,
            affected: Vec::with_capacity(n as usize),
            noted: vec![0; translation_pages as usize],
            counters: Counters::default(),
        }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    pub(super) fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        self.store.save(out)?;
        write_bits(out, &self.is_translation)?;
        for frontier in [&self.data, &self.translation] {
            write_u32(out, &[frontier.block, frontier.next])?;
        }
        self.cache.save(out)
    }

    pub(super) fn load(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        let logical_pages = self.cache.logical_pages();
        let tags_end = logical_pages + self.directory.len() as u32;
        self.store.load(tags_end, input)?;
        read_bits(input, &mut self.is_translation)?;
        let mut roles = Roles::of(&self.store)?;
        let n = self.store.pages_per_block();
        for (frontier, is_translation) in [(&mut self.data, false), (&mut self.translation, true)] {
            [frontier.block, frontier.next] = read_numbers(input)?;
            if frontier.next == n {
                continue;
            }
            roles.take(frontier.block)?;
            let is_right = self.is_translation[frontier.block as usize] == is_translation;
            if !is_right
                || frontier.next > n
                || !self.store.is_written_to(frontier.block, frontier.next)
            {
                return wrong("an open block is written otherwise than page by page");
            }
            frontier.blocks += 1;
        }
        for block in roles.left() {
            if !self.store.is_written_to(block, n) {
                return wrong("a block is neither free nor open and has erased pages");
            }
            self.store.seal(block);
            match self.is_translation[block as usize] {
                true => self.translation.blocks += 1,
                false => self.data.blocks += 1,
            }
        }
        for (tag, ppn) in self.store.live_pages() {
            let which = tag.checked_sub(logical_pages);
            let before = match which {
                Some(which) => std::mem::replace(&mut self.directory[which as usize], ppn),
                None => self.cache.set_location(tag, ppn),
            };
            let is_right = self.is_translation[(ppn / n) as usize] == which.is_some();
            if !is_right || before != NONE {
                return wrong("a page is twice on flash, or in a block of the other kind");
            }
        }
        self.cache.load(input)
    }

    /// Returns the next flash page to write, for data or for a translation page. Opens a new block if the open block
    /// is full.
    fn place(&mut self, is_translation: bool) -> u32 {
        let frontier = if is_translation {
            &mut self.translation
        } else {
            &mut self.data
        };
        let n = self.store.pages_per_block();
        if frontier.next == n {
            frontier.block = self.store.take();
            frontier.next = 0;
            frontier.blocks += 1;
            self.is_translation[frontier.block as usize] = is_translation;
        }
        frontier.next += 1;
        if frontier.next == n {
            self.store.seal(frontier.block);
        }
        self.store.ppn(frontier.block, frontier.next - 1)
    }

    fn can_write_data(&self) -> bool {
        let has_room = self.data.next < self.store.pages_per_block();
        has_room || self.data.blocks < self.data_blocks_max
    }

    /// Collects until there is room for one data page and for the translation pages that the write may cause. Returns
    /// false if collection cannot make this room.
    fn make_room(&mut self, ops: &mut Vec<FlashOp>) -> bool {
        while self.store.free_blocks() <= self.low_blocks || !self.can_write_data() {
            if !self.collect(ops) {
                return self.store.free_blocks() >= FREE_MIN && self.can_write_data();
            }
        }
        true
    }

    /// Collects one block. Returns false if no block can be collected: no block has an invalid page, or too few
    /// blocks are free for the copies.
    fn collect(&mut self, ops: &mut Vec<FlashOp>) -> bool {
        let free = self.store.free_blocks();
        // A collection of a data block may open two blocks, one for data and one for translation pages. A collection
        // of a translation block opens at most one block.
        let mut victim = self.store.victim();
        if free < 2 && victim.is_some_and(|victim| !self.is_translation[victim as usize]) {
            victim = self
                .store
                .victim_among(|block| self.is_translation[block as usize]);
        }
        let Some(victim) = victim.filter(|_| free > 0) else {
            return false;
        };
        self.store.prefetch_block(victim);
        self.counters.gc_runs += 1;
        if self.is_translation[victim as usize] {
            self.collect_translation(victim, ops);
        } else {
            self.collect_data(victim, ops);
        }
        self.store.erase(victim, Why::Gc, ops);
        true
    }

    fn collect_translation(&mut self, victim: u32, ops: &mut Vec<FlashOp>) {
        for offset in 0..self.store.pages_per_block() {
            let from = self.store.ppn(victim, offset);
            if let Some(tag) = self.store.tag(from) {
                let to = self.place(true);
                self.store.copy(from, to, Why::Gc, ops);
                self.directory[(tag - self.cache.logical_pages()) as usize] = to;
            }
        }
        self.translation.blocks -= 1;
    }

    fn collect_data(&mut self, victim: u32, ops: &mut Vec<FlashOp>) {
        self.affected.clear();
        let (first, end) = (self.store.ppn(victim, 0), self.store.ppn(victim + 1, 0));
        (first..end.min(first + AHEAD)).for_each(|ppn| self.prefetch_page_at(ppn));
        for from in first..end {
            if from + AHEAD < end {
                self.prefetch_page_at(from + AHEAD);
            }
            let Some(page) = self.store.tag(from) else {
                continue;
            };
            let to = self.place(false);
            self.store.copy(from, to, Why::Gc, ops);
            let (_, is_cached) = self.cache.change(page, to);
            if is_cached {
                continue;
            }
            let which = self.cache.translation_page(page);
            let noted = &mut self.noted[which as usize];
            if *noted != self.counters.gc_runs {
                *noted = self.counters.gc_runs;
                self.affected.push(which);
            }
        }
        for i in 0..self.affected.len() {
            let which = self.affected[i];
            if self.batching {
                self.cache.clean_all(which);
            }
            self.write_translation(which, Why::GcMap, ops);
        }
        self.data.blocks -= 1;
    }

    /// Prefetches the map entry of the data page at `ppn`.
    #[inline]
    fn prefetch_page_at(&self, ppn: u32) {
        if let Some(page) = self.store.tag(ppn) {
            self.cache.prefetch(page);
        }
    }

    /// Writes a new version of a translation page. The old version, if there is one on flash, is read first.
    fn write_translation(&mut self, which: u32, why: Why, ops: &mut Vec<FlashOp>) {
        let old = self.directory[which as usize];
        if old != NONE {
            self.store.read(old, why, ops);
            self.store.drop_page(old);
        }
        let to = self.place(true);
        let tag = self.cache.logical_pages() + which;
        self.store.program(to, tag, why, ops);
        self.directory[which as usize] = to;
    }

    /// Looks up the map entry of a page and caches it. Returns `false` if the entry cannot be cached because the
    /// victim is dirty and there is no room to write it back.
    fn resolve(&mut self, page: u32, ops: &mut Vec<FlashOp>) -> bool {
        if self.cache.is_cached(page) {
            self.counters.map_hits += 1;
            self.cache.renew(page);
            return true;
        }
        self.counters.map_misses += 1;
        let dirty = |cache: &CachedMap| cache.victim().filter(|&victim| cache.is_dirty(victim));
        let can_cache = dirty(&self.cache).is_none() || self.make_room(ops);
        if can_cache {
            // The victim may be clean now, because the collections of `make_room` write back dirty entries.
            if let Some(victim) = dirty(&self.cache) {
                let which = self.cache.translation_page(victim);
                if self.batching {
                    self.cache.clean_all(which);
                } else {
                    self.cache.clean(victim);
                }
                self.write_translation(which, Why::Map, ops);
            }
        }
        let at = self.directory[self.cache.translation_page(page) as usize];
        if at != NONE {
            self.store.read(at, Why::Map, ops);
        }
        if can_cache {
            self.cache.insert(page);
        }
        can_cache
    }

    /// Changes the location of a page in its cached entry, and marks the old copy invalid.
    fn remap(&mut self, page: u32, ppn: u32) {
        let (old, is_cached) = self.cache.change(page, ppn);
        debug_assert!(is_cached, "page {page} is written without its map entry");
        if old != NONE {
            self.store.drop_page(old);
        }
    }
}

impl Dftl {
    /// Returns the large tables.
    pub(super) fn tables(&mut self) -> impl Iterator<Item = &mut dyn Movable> {
        self.store.tables().chain(self.cache.tables())
    }

    /// Prefetches the first data that an access to the page reads.
    #[inline]
    pub(super) fn prefetch(&self, page: u32) {
        self.cache.prefetch(page);
    }

    /// Prefetches the state of the page's copy on flash.
    #[inline]
    pub(super) fn prefetch_old_copy(&self, page: u32) {
        self.store.prefetch(self.cache.location(page));
    }

    /// Returns the numbers of pages and blocks that can be written before the next collection.
    pub(super) fn outlook(&self) -> Outlook {
        let n = self.store.pages_per_block();
        let (free, low) = (self.store.free_blocks(), self.low_blocks);
        let open_pages = n - self.data.next;
        // A block can be opened without a collection if more than `low` blocks are free just before.
        let begun = match free.checked_sub(low + 1) {
            Some(blocks) => u64::from(blocks) * u64::from(n) + 1,
            None => 0,
        };
        Outlook {
            free_blocks: free,
            trigger_blocks: low,
            open_pages,
            writes: match begun {
                0 => 0,
                begun => begun + u64::from(open_pages),
            },
        }
    }
}

impl ChipFtl for Dftl {
    fn fill(&mut self) {
        for page in 0..self.cache.logical_pages() {
            let ppn = self.place(false);
            self.store.set(ppn, page);
            self.cache.set_location(page, ppn);
        }
        for which in 0..self.directory.len() as u32 {
            let ppn = self.place(true);
            self.store.set(ppn, self.cache.logical_pages() + which);
            self.directory[which as usize] = ppn;
        }
    }

    fn read(&mut self, page: u32, ops: &mut Vec<FlashOp>) {
        self.resolve(page, ops);
        if let Some(ppn) = self.lookup(page) {
            self.store.read(ppn, Why::Host, ops);
        }
    }

    fn write(&mut self, page: u32, ops: &mut Vec<FlashOp>) -> Result<(), NoSpace> {
        if !(self.make_room(ops) && self.resolve(page, ops)) {
            return Err(NoSpace);
        }
        let ppn = self.place(false);
        self.store.program(ppn, page, Why::Host, ops);
        self.remap(page, ppn);
        Ok(())
    }

    fn trim(&mut self, page: u32, ops: &mut Vec<FlashOp>) {
        if self.resolve(page, ops) && self.lookup(page).is_some() {
            self.remap(page, NONE);
        }
    }

    fn flush(&mut self, ops: &mut Vec<FlashOp>) {
        for which in 0..self.directory.len() as u32 {
            // The entries may be clean by now, because the collections of `make_room` write back dirty entries.
            if self.cache.has_dirty(which) && self.make_room(ops) && self.cache.has_dirty(which) {
                self.cache.clean_all(which);
                self.write_translation(which, Why::Map, ops);
            }
        }
    }

    fn lookup(&self, page: u32) -> Option<u32> {
        let ppn = self.cache.location(page);
        (ppn != NONE).then_some(ppn)
    }

    fn check(&self) -> Result<(), String> {
        let pages = 0..self.cache.logical_pages();
        let data = pages.clone();
        let data = data.filter_map(|page| Some((page, self.lookup(page)?)));
        let directory = self.directory.iter().enumerate();
        let directory = directory.filter(|(_, &ppn)| ppn != NONE);
        let first = self.cache.logical_pages();
        let translation = directory.map(|(which, &ppn)| (first + which as u32, ppn));
        self.store.check(data.chain(translation))?;
        self.cache.check()?;
        for page in pages {
            let which = self.cache.translation_page(page);
            let is_on_flash = self.directory[which as usize] != NONE;
            if self.lookup(page).is_some() && !self.cache.is_dirty(page) && !is_on_flash {
                return Err(format!("page {page} is mapped on a page never written"));
            }
        }
        let (data, translation) = (self.data.blocks, self.translation.blocks);
        let free = self.store.free_blocks();
        if data + translation + free != self.store.blocks() {
            return Err(format!(
                "{data} data, {translation} translation and {free} free blocks: one is lost"
            ));
        }
        Ok(())
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    /// Formats the state, such as `CMT[4 1*|0] free 5`: the cache and the number of free blocks. A bar separates the
    /// protected entries from the probationary ones, each most recent first. `*` marks dirty entries.
    fn state(&self) -> String {
        format!("CMT{} free {}", self.cache.text(), self.store.free_blocks())
    }
}
