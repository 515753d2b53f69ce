//! CBM: buffers random writes by page and sequential writes by block. It also uses the contents of the read cache (Wei,
//! Chen, Yang, MSST 2014, section III).
//!
//! The write buffer has a page region PR and a block region BR. PR is a list of pages by recency. BR is a list of
//! blocks by popularity: the number of write requests that accessed the block. A written page enters BR if its block is
//! there, otherwise PR. Once PR has THR pages of a block, all pages of the block move to BR.
//!
//! The victim is the least popular block of BR. Among equally popular blocks, it is the one with the most pages, then
//! the one written least recently. If BR is empty, the least recent page of PR is evicted with all pages of its block.
//! The block that is being written is a victim only if there is no other block.
//!
//! Merge-on-flush: the read cache may contain clean pages of the victim block. If the victim has more dirty pages than
//! there are such clean pages, these pages are written together with the victim.
//!
//! ```text
//! PR  20 - 16 - 8 - 0            most recent ... least recent
//! BR  B3 pop2 - B1 pop2          most popular ... victim
//! RC  6                          read cache, LRU, managed by the buffer
//! ```
//!
//! THR changes as follows (D-20). It starts at 2. Each time BR grows and then occupies more than theta of the write
//! buffer, THR doubles, but it never exceeds N, the number of pages of a block. It halves each time an eviction finds
//! BR empty, but never falls below `threshold_floor`. After a halving, PR may have blocks with THR or more pages. Such
//! a block moves to BR when its next page arrives, or immediately with `migrate = "scan"` (D-222).
//!
//! With `block_share`, BR may occupy this share of the write buffer: victims are taken from PR until BR occupies more
//! (D-206). Reads change nothing, and reads that miss bypass the write buffer.

use crate::buffer::blocks::{BlockParameters, BlockTable, FilteredParameters, Heaps, NodeId};
use crate::buffer::entry::{cost, example_with, Entry, Family, Make};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Skip};
use crate::buffer::{List, PageId, Setup};
use crate::component::{parameters, words, Kind};
use crate::component::{source, Provenance};
use crate::units::Lpn;

words! {
    /// Time at which blocks of PR move to BR after the threshold was lowered.
    enum Migrate {
        /// A block with enough pages moves when its next page is inserted.
        Write = "write",
        /// All blocks are compared at once.
        Scan = "scan",
    }
}

parameters! {
    /// Parameters of CBM.
    struct Parameters {
        /// Share of the write buffer; the threshold doubles when the block region has grown and occupies more than
        /// this share.
        theta: f64 = Kind::Share, "0.1", "printed: CBM section III";
        /// Number of pages that a block must have in the page region to move to the block region; 0: dynamic,
        /// starting at 2.
        threshold: u32 = Kind::Count(0, 65_535), "0", "printed: CBM section III";
        /// Least dynamic threshold.
        threshold_floor: u32 = Kind::Count(1, 65_535), "1", "printed: 1; D-20";
        /// Time at which blocks of the page region move after the threshold has fallen: each with its next page
        /// (`write`), or all at once (`scan`).
        migrate: Migrate = Kind::Choice(Migrate::WORDS), "\"write\"", "D-222: our decision";
        /// Share of the write buffer that the block region must exceed before its blocks become victims; 0: blocks are
        /// always victims before pages, as printed.
        block_share: f64 = Kind::Share, "0", "ours: D-206; 0 is as printed";
        /// Write the clean pages of the read cache that belong to a victim block together with that block, if the block
        /// has more dirty pages.
        merge: bool = Kind::Bool, "true", "printed: CBM section III";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "cbm",
    title: "CBM",
    line: "A write buffer with a page region and a block region, which cooperates with a read \
           cache.",
    family: Family::Blocks,
    source: source(
        "Q. Wei, C. Chen, J. Yang",
        "CBM: A Cooperative Buffer Management for SSD",
        "MSST",
        2014,
    ),
    provenance: Provenance::Printed,
    rule: &[
        "Written pages are in the page region PR, a list of pages, or in the block region BR, \
             a list of blocks by popularity. Pages that were read are in the separate read cache, \
             an LRU list (`buffer.read_cache`).",
        "A write request adds 1 to the popularity of each block that it accesses. The popularity \
         of a block is forgotten when the block has no cached page left and none is about to be \
         inserted (D-163). The tail of BR is the least popular block. Of several equally popular \
         blocks, it is the one with the most pages, and of these, the one written least recently.",
        "Write: a page of PR moves to the head of PR. A new page joins its block in BR, or \
             enters at the head of PR. When a block has THR pages in PR, all of them move to BR.",
        "THR starts at 2. Each time BR grows and then takes more than the share `theta` of the \
             buffer, THR doubles. When an eviction finds BR empty, THR halves, but not below \
             `threshold_floor`. A block of PR that has at least THR pages after the halving moves \
             to BR when its next page enters. With `migrate` = scan, all such blocks move at once, \
             after the victim has been taken (D-222).",
        "Victim: the block at the tail of BR. If BR is empty, the victim is the least recent page \
         of PR, together with all other pages of its block. The block being written is the victim \
         only if there is no other.",
        "Merge-on-flush: if the read cache has clean pages of the victim block, but fewer than \
         the block has dirty pages, the clean and the dirty pages are written together in \
         ascending order.",
    ],
    drawing: "
write -> PR [ 20 16 8 0 ] -- THR pages of a block --> BR [ B3 | B1 ] -> victim
                                                    popular ^    + clean pages
read  -> read cache [ 6 ] -------------------------------------- of the block",
    state: "`PR[8 0] BR[B3 pop2 {12,13}] THR=2 RC[6]`: page region, block region from the most \
                popular, threshold, read cache.",
    cost: cost("O(log B)", "O(log B + N)", "O(log B + N)"),
    example: example_with(
        8,
        &[("theta", "0.5"), ("read_cache", "4")],
        1,
        "W0 W4 W5 W8 R6 W8 W12 W13 W16 W20 W24",
    ),
    parameters: &[BlockParameters::ROWS, Parameters::ROWS],
    filtered: FilteredParameters::ROWS,
    defaults: &[("blocks", "\"host\""), ("read_cache", "0.75")],
    non_volatile: true,
    make: Make::Base(|setup| Cbm::new(setup).into()),
    ..Entry::PLAIN
}];

#[derive(Clone, Debug, Default)]
struct Block {
    popularity: u32,
    /// Number of the last write request that raised the popularity of the block.
    request: u64,
    /// Time of the last write to the block. The unit of time is one page write.
    written: u64,
    /// Number of the block's clean pages in the read cache.
    clean: u32,
}

/// Rank of a block in BR: its popularity, then the complement of its number of pages (least for the most pages), then
/// the time of its last write. The victim is the block with the least rank.
type Rank = (u32, u32, u64);

/// Cooperative buffer management.
#[derive(Clone, Debug)]
pub struct Cbm {
    parameters: Parameters,
    /// Every block that has a page in the write buffer or in the read cache.
    blocks: BlockTable<Block>,
    /// The pages of PR. The list may still contain pages that have moved to BR with their block, because removing all
    /// of them at once would access scattered memory. Such a page is removed when a search encounters it, or when it is
    /// evicted.
    pr: List,
    br: Heaps<Rank>,
    br_pages: u32,
    /// For each node, one bit per page of its block: whether the page is in the read cache.
    clean: Vec<u64>,
    threshold: u32,
    writes: u64,
    /// The block of the page that will be inserted next. Its node exists until the insertion even if it has no pages,
    /// because the paper looks up the block when the access arrives (D-163).
    arriving: Option<NodeId>,
}

fn least_threshold(setup: &Setup) -> u32 {
    Parameters::of(&setup.settings)
        .threshold_floor
        .min(setup.pages_per_block)
}

impl Cbm {
    /// Makes the policy with the parameters of `setup`.
    pub fn new(setup: &Setup) -> Cbm {
        let blocks = BlockTable::new(setup);
        let parameters = Parameters::of(&setup.settings);
        Cbm {
            blocks,
            pr: List::default(),
            br: Heaps::new(1),
            br_pages: 0,
            clean: Vec::new(),
            threshold: match parameters.threshold {
                0 => least_threshold(setup).max(2),
                fixed => fixed,
            },
            parameters,
            writes: 0,
            arriving: None,
        }
    }

    /// Records a write to a block. Each request raises the popularity of the block only once.
    fn count(&mut self, node: NodeId, access: &Access) {
        self.writes += 1;
        let block = &mut self.blocks[node];
        block.written = self.writes;
        if block.popularity == 0 || block.request != access.request {
            block.popularity = block.popularity.saturating_add(1);
            block.request = access.request;
        }
    }

    fn rank_of(&self, node: NodeId) -> Rank {
        let block = &self.blocks[node];
        (block.popularity, !self.blocks.pages(node), block.written)
    }

    /// Updates the stored rank of a block in BR if the rank has fallen. A rank that has risen is updated by the next
    /// search.
    fn rank(&mut self, node: NodeId) {
        let rank = self.rank_of(node);
        if self.br.key_of(node).is_none_or(|key| rank < key) {
            self.br.set(0, node, rank);
        }
    }

    /// Returns the block of BR with the least rank, among those for which `passed_over` returns false. Also returns the
    /// number of blocks with lesser ranks. All of these were passed over.
    fn first_of_br(
        &mut self,
        passed_over: &mut dyn FnMut(&Self, NodeId) -> bool,
    ) -> Option<(u64, NodeId)> {
        loop {
            let (key, node) = self.br.first_but(0, &mut |node| passed_over(self, node))?;
            let rank = self.rank_of(node);
            if key == rank {
                let before = &mut |node| self.rank_of(node) < rank;
                return Some((self.br.before(0, rank, before), node));
            }
            self.br.set(0, node, rank);
        }
    }

    #[inline]
    fn in_br(&self, node: NodeId) -> bool {
        self.br.heap_of(node).is_some()
    }

    /// Records that BR has got `pages` more pages.
    fn grown(&mut self, pages: u32) {
        self.br_pages += pages;
        let setup = self.blocks.setup();
        let share = f64::from(self.br_pages) / f64::from(setup.capacity);
        if self.parameters.threshold == 0 && share > self.parameters.theta {
            self.threshold = (self.threshold * 2).min(setup.pages_per_block);
        }
    }

    /// Moves each block that has at least THR pages in PR to BR. The block with the least recent page moves first. Each
    /// move makes BR grow, so THR may double before the next block is examined.
    fn migrate_all(&mut self) {
        let mut next = self.pr.oldest();
        while let Some(page) = next {
            next = self.pr.newer(page);
            let Some(node) = self.blocks.node_of(page) else {
                continue;
            };
            let pages = self.blocks.pages(node);
            if !self.in_br(node) && pages >= self.threshold {
                self.rank(node);
                self.grown(pages);
            }
        }
    }

    /// Returns the bits of `clean` that belong to a node, one for each page of its block.
    fn bits(&mut self, node: NodeId) -> &mut [u64] {
        let words = self.blocks.setup().pages_per_block.div_ceil(64) as usize;
        let start = node.0 as usize * words;
        if self.clean.len() < start + words {
            self.clean.resize(start + words, 0);
        }
        &mut self.clean[start..start + words]
    }

    /// Removes a node that is no longer needed: its block has no page in the write buffer or read cache, and is not the
    /// block of the page that will be inserted next.
    fn drop_if_empty(&mut self, node: NodeId) {
        let empty = self.blocks.pages(node) == 0 && self.blocks[node].clean == 0;
        if empty && self.arriving != Some(node) {
            self.blocks.remove(node);
        }
    }

    /// Sets the node of the page that will be inserted next. Removes the node that was set before if its block has no
    /// pages.
    fn arrive(&mut self, node: Option<NodeId>) {
        let before = std::mem::replace(&mut self.arriving, node);
        if let Some(before) = before {
            self.drop_if_empty(before);
        }
    }

    /// Returns the node of the block to evict. It is neither `current` nor a node that the search skips.
    fn choose(
        &mut self,
        device: &dyn DeviceView,
        skip: Skip,
        current: Option<NodeId>,
        out: &mut Eviction,
    ) -> Option<NodeId> {
        let (inspected, any_skipped) = (&mut out.inspected, &mut out.skipped);
        let mut passed_over = |cbm: &Cbm, node: NodeId| {
            (cbm.blocks).passed_over(device, skip, node, any_skipped) || Some(node) == current
        };
        let capacity = f64::from(self.blocks.setup().capacity);
        let blocks_first = f64::from(self.br_pages) > self.parameters.block_share * capacity;
        if !blocks_first {
            if let Some(node) = self.first_of_pr(inspected, &mut passed_over) {
                return Some(node);
            }
        }
        if let Some((before, node)) = self.first_of_br(&mut passed_over) {
            *inspected += 1 + before;
            return Some(node);
        }
        *inspected += self.br.entries(0).len() as u64;
        match blocks_first {
            true => self.first_of_pr(inspected, &mut passed_over),
            false => None,
        }
    }

    /// Returns the node of the least recent page of PR, among the nodes for which `passed_over` returns false. If the
    /// search finds pages in the list of PR that have moved to BR, it removes them from the list.
    fn first_of_pr(
        &mut self,
        inspected: &mut u64,
        passed_over: &mut dyn FnMut(&Self, NodeId) -> bool,
    ) -> Option<NodeId> {
        let mut next = self.pr.oldest();
        while let Some(page) = next {
            next = self.pr.newer(page);
            let Some(node) = self.blocks.node_of(page) else {
                continue;
            };
            if self.in_br(node) {
                self.pr.remove(page);
                continue;
            }
            *inspected += 1;
            if !passed_over(self, node) {
                return Some(node);
            }
        }
        None
    }

    /// Removes a page of the write buffer from the list of PR, if the list contains it.
    #[inline]
    fn unlist(&mut self, page: PageId) {
        if self.pr.holds(page) {
            self.pr.remove(page);
        }
    }

    /// Removes all pages of a block from the write buffer and adds them to the victims.
    fn take(&mut self, node: NodeId, out: &mut Eviction) {
        if self.in_br(node) {
            self.br.remove(node);
            self.br_pages -= self.blocks.pages(node);
        }
        out.block = Some(self.blocks.number(node));
        self.blocks.evict_pages(node, out);
        for &page in &out.victims {
            self.unlist(page);
        }
    }

    /// Selects the pages to write together with the block of `node`, which is being evicted: the clean pages of the
    /// block in the read cache.
    fn merge(&mut self, node: NodeId, out: &mut Eviction) {
        let block = self.blocks.number(node);
        let n = self.blocks.setup().pages_per_block;
        for offset in 0..n {
            if self.bits(node)[offset as usize / 64] >> (offset % 64) & 1 == 1 {
                out.merged.extend(self.blocks.page_of_block(block, offset));
            }
        }
    }
}

impl Policy for Cbm {
    fn admits(&self, access: &Access) -> bool {
        access.write
    }

    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let (node, offset) = self.blocks.node_for(access.lpn);
        self.blocks.add_page(node, page, offset);
        self.arrive(None);
        self.count(node, access);
        if self.in_br(node) {
            self.rank(node);
            return self.grown(1);
        }
        self.pr.push_newest(page);
        let pages = self.blocks.pages(node);
        if pages >= self.threshold {
            self.rank(node);
            self.grown(pages);
        }
    }

    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let Some(node) = self.blocks.node_of(page).filter(|_| access.write) else {
            return;
        };
        self.count(node, access);
        if self.in_br(node) {
            self.rank(node);
        } else {
            self.pr.remove(page);
            self.pr.push_newest(page);
        }
    }

    fn forget(&mut self, page: PageId) {
        let node = self.blocks.remove_page(page);
        self.unlist(page);
        if self.in_br(node) {
            self.br_pages -= 1;
            match self.blocks.pages(node) {
                0 => self.br.remove(node),
                _ => self.rank(node),
            }
        }
        self.drop_if_empty(node);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        self.arrives(incoming.lpn);
        let current = self.arriving;
        let found = self.choose(device, skip, current, out);
        let may_leave =
            |&node: &NodeId| self.blocks.pages(node) > 0 && !self.blocks.in_flight(device, node);
        let only = current.filter(may_leave).filter(|_| !out.skipped);
        let Some(node) = found.or(only) else {
            return false;
        };
        let setup = self.blocks.setup();
        let merge = self.parameters.merge;
        let before = self.threshold;
        if self.br.entries(0).is_empty() && self.parameters.threshold == 0 {
            self.threshold = (self.threshold / 2).max(least_threshold(setup));
        }
        let has_fallen = self.threshold < before;
        self.take(node, out);
        if has_fallen && self.parameters.migrate == Migrate::Scan {
            self.migrate_all();
        }
        let dirty = out
            .victims
            .iter()
            .filter(|&&page| device.dirty(page))
            .count();
        let clean = self.blocks[node].clean as usize;
        if merge && clean > 0 && dirty > clean {
            self.merge(node, out);
        }
        self.drop_if_empty(node);
        true
    }

    fn arrives(&mut self, lpn: Lpn) {
        self.arrive(self.blocks.find_for(lpn));
    }

    fn read_cache_changed(&mut self, lpn: Lpn, present: bool) {
        let (node, offset) = self.blocks.node_for(lpn);
        let bit = 1 << (offset % 64);
        let word = &mut self.bits(node)[offset as usize / 64];
        let was_present = *word & bit != 0;
        *word = *word & !bit | u64::from(present) << (offset % 64);
        let clean = &mut self.blocks[node].clean;
        *clean = *clean + u32::from(present) - u32::from(was_present);
        if present {
            self.arrive(None);
        }
        self.drop_if_empty(node);
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let mut pages: Vec<String> = self
            .pr
            .iter_oldest_first()
            .filter(|&page| self.blocks.node_of(page).is_some_and(|n| !self.in_br(n)))
            .map(|page| device.lpn(page).0.to_string())
            .collect();
        pages.reverse();
        let entries = self.br.entries(0).iter();
        let mut ranked: Vec<(Rank, NodeId)> = entries
            .map(|&(_, node)| (self.rank_of(node), node))
            .collect();
        ranked.sort_unstable_by(|a, b| b.cmp(a));
        let blocks: Vec<String> = ranked
            .iter()
            .map(|&(_, node)| {
                let (number, pages) = (
                    self.blocks.number(node),
                    self.blocks.pages_text(device, node),
                );
                format!("B{number} pop{} {pages}", self.blocks[node].popularity)
            })
            .collect();
        let (pages, blocks) = (pages.join(" "), blocks.join(", "));
        format!("PR[{pages}] BR[{blocks}] THR={}", self.threshold)
    }
}
