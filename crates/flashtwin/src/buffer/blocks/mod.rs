//! Cached pages grouped by logical block, for the policies that rank blocks.
//!
//! ```text
//! block number -> hash -> node {number, pages, state of the policy}
//!                           |
//!                           +-> page <-> page <-> page      (offset of each in its block)
//! ```
//!
//! A node holds the cached pages of one block and the policy's data for the block. The node usually exists while a page
//! of its block is cached; a policy may keep it longer. Nodes have small numbers, which are reused. A node number has
//! the same type as a page number, so that a [`super::List`] can order nodes.

mod by_size;
mod heaps;

pub use by_size::{last_before, BySize};
pub use heaps::Heaps;

use std::ops::{Index, IndexMut};

use super::policy::{DeviceView, Eviction, Skip};
use super::{Blocking, Blocks, PageId, Setup};
use crate::component::{parameters, words, Kind};
use crate::memory::{prefetch, prefetch_whole, reach};
use crate::units::{ChipId, Lpn};

words! {
    /// Rule by which a block counts as being on a chip in GC (D-13).
    pub(super) enum BlockInGc {
        /// At least one page of the block is on a chip in GC.
        Any = "any",
        /// All pages of the block are on chips in GC.
        All = "all",
        /// More than half of the pages of the block are on chips in GC.
        Majority = "majority",
    }
}

parameters! {
    /// Parameters of policies that rank blocks.
    pub(super) struct BlockParameters {
        /// Logical blocks of N pages, as many as an erase block has: consecutive pages of one chip (`element`), or
        /// consecutive pages of the host (`host`). Both are the same under dynamic placement. `cbm` always uses
        /// `host`.
        blocks: Blocks = Kind::Choice(Blocks::WORDS), "\"element\"", "D-7; GCaR element, CBM host";
    }
}

words! {
    /// Space in the buffer that a block is charged for (D-209).
    pub(super) enum BlockRoom {
        /// A block is charged for its cached pages only.
        Pages = "pages",
        /// A block is charged for all its N pages, cached or not.
        Whole = "whole",
    }
}

parameters! {
    /// Parameters of policies that can reserve room in the buffer for all pages of a block.
    pub(super) struct RoomParameters {
        /// Room that a block occupies in the buffer: that of its cached pages (`pages`), or that of all its N pages
        /// (`whole`).
        room: BlockRoom = Kind::Choice(BlockRoom::WORDS), "\"pages\"", "D-209: our decision";
    }
}

parameters! {
    /// Parameters that GCaR adds when it filters a policy that ranks blocks.
    pub(super) struct FilteredParameters {
        /// When GCaR treats a block as being on a chip in GC: if any, all or most of its pages are.
        block_in_gc: BlockInGc = Kind::Choice(BlockInGc::WORDS), "\"any\"", "D-13: our decision";
    }
}

parameters! {
    /// Parameters of policies that rank blocks and may also cache pages that the host reads.
    pub(super) struct ReadParameters {
        /// Whether pages that are read enter the buffer as part of their block. With `false`, a read that misses
        /// bypasses the buffer, as in a pure write buffer.
        cache_reads: bool = Kind::Bool, "true", "D-6: our decision";
    }
}

const NONE: u32 = u32::MAX;
/// Value of `next` in a node that is in no hash chain.
const APART: u32 = u32::MAX - 1;

/// A node of the table.
pub type NodeId = PageId;

#[derive(Clone, Debug)]
struct Node<T> {
    number: u32,
    /// Next node in the hash chain. For a free node: next node in the list of free nodes.
    next: u32,
    first_page: u32,
    pages: u32,
    state: T,
}

/// A cached page in its node.
#[derive(Clone, Copy, Debug)]
struct Member {
    node: u32,
    /// Offset of the page in its block; the pages of a node are in the order of their offsets.
    offset: u32,
    next: u32,
    previous: u32,
}

/// The table of blocks. `T` is the data that the policy keeps for each block.
#[derive(Clone, Debug)]
pub struct BlockTable<T> {
    setup: Setup,
    blocking: Blocking,
    /// Whether all pages of a block are on one chip.
    has_chips: bool,
    in_gc: BlockInGc,
    heads: Vec<u32>,
    nodes: Vec<Node<T>>,
    free: u32,
    len: u32,
    /// Entry of each cached page: its node, and its neighbours in the node.
    members: Vec<Member>,
}

impl<T: Default> BlockTable<T> {
    /// Creates an empty table.
    pub fn new(setup: &Setup) -> BlockTable<T> {
        let blocks = BlockParameters::of(&setup.settings).blocks;
        let in_gc = match setup.filtered {
            true => FilteredParameters::of(&setup.settings).block_in_gc,
            false => BlockInGc::Any,
        };
        BlockTable::with(setup, blocks, in_gc)
    }

    /// Creates an empty table in which a block consists of the pages that one request inserted. The parameters of the
    /// policy do not change this.
    pub fn of_requests(setup: &Setup) -> BlockTable<T> {
        BlockTable::with(setup, Blocks::Element, BlockInGc::Any)
    }

    fn with(setup: &Setup, blocks: Blocks, in_gc: BlockInGc) -> BlockTable<T> {
        BlockTable {
            setup: setup.clone(),
            blocking: Blocking::new(setup, blocks),
            has_chips: blocks == Blocks::Element && setup.stride_pages.is_some(),
            in_gc,
            heads: vec![NONE; 64],
            nodes: Vec::new(),
            free: NONE,
            len: 0,
            members: Vec::new(),
        }
    }

    /// Whether `blocks` whole blocks and `others` more pages exceed the capacity of the buffer. Each block counts with
    /// all its pages, cached or not. Returns false if the table has no block, so the first block is always admitted.
    fn exceed(&self, blocks: u32, others: u32) -> bool {
        let pages = u64::from(blocks) * u64::from(self.setup.pages_per_block) + u64::from(others);
        self.len > 0 && pages > u64::from(self.setup.capacity)
    }

    /// Returns the number of a page's block.
    pub fn number_of(&self, lpn: Lpn) -> u32 {
        self.blocking.block_of(lpn).0
    }

    /// Whether the page would need a new block for which the buffer has no room. Each block counts with all its pages,
    /// cached or not.
    pub fn lack_room_for(&self, lpn: Lpn) -> bool {
        self.exceed(self.len + 1, 0) && self.find_for(lpn).is_none()
    }

    /// Whether the buffer lacks room for `others` pages that are in no block, in addition to the blocks of the table.
    /// Each block counts with all its pages, cached or not.
    pub fn lack_room_beside(&self, others: u32) -> bool {
        self.exceed(self.len, others)
    }

    /// Nodes in the table.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns the properties of the device and buffer for which the policy was created.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the logical page at an offset of a block. The page may be beyond the capacity of the device. Returns
    /// `None` if the page number does not fit in 32 bits.
    pub fn page_of_block(&self, block: u32, offset: u32) -> Option<Lpn> {
        self.blocking.page_of_block(block, offset)
    }

    #[inline]
    fn chain(&self, number: u32) -> usize {
        let hash = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> (64 - self.heads.len().trailing_zeros())) as usize
    }

    /// Returns the node of a block.
    #[inline]
    pub fn find(&self, number: u32) -> Option<NodeId> {
        let mut at = self.heads[self.chain(number)];
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.number == number {
                return Some(PageId(at));
            }
            at = node.next;
        }
        None
    }

    /// Adds a node for a block that has no node yet.
    pub fn add(&mut self, number: u32) -> NodeId {
        if self.len as usize == self.heads.len() {
            self.grow();
        }
        let chain = self.chain(number);
        let node = self.place(number, self.heads[chain]);
        self.heads[chain] = node.0;
        node
    }

    /// Adds a node that is in no hash chain, so [`Self::find`] does not find it. A table must use this function for all
    /// of its nodes, or for none.
    pub fn add_apart(&mut self, number: u32) -> NodeId {
        self.place(number, APART)
    }

    /// Creates a node that precedes `next` in its hash chain.
    #[inline]
    fn place(&mut self, number: u32, next: u32) -> NodeId {
        let node = Node {
            number,
            next,
            first_page: NONE,
            pages: 0,
            state: T::default(),
        };
        let id = match self.free {
            NONE => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
            id => {
                self.free = self.nodes[id as usize].next;
                self.nodes[id as usize] = node;
                id
            }
        };
        self.len += 1;
        PageId(id)
    }

    /// Doubles the number of hash chains. Must be called when there are as many nodes as hash chains.
    #[cold]
    fn grow(&mut self) {
        let mut at_hand: Vec<u32> = Vec::with_capacity(self.len as usize);
        for &head in &self.heads {
            let next = |&id: &u32| Some(self.nodes[id as usize].next).filter(|&n| n != NONE);
            at_hand.extend(std::iter::successors(
                Some(head).filter(|&h| h != NONE),
                next,
            ));
        }
        self.heads = vec![NONE; self.heads.len() * 2];
        for id in at_hand {
            let chain = self.chain(self.nodes[id as usize].number);
            self.nodes[id as usize].next = self.heads[chain];
            self.heads[chain] = id;
        }
    }

    /// Removes a node that has no pages.
    pub fn remove(&mut self, node: NodeId) {
        let after = self.nodes[node.0 as usize].next;
        if after != APART {
            self.unchain(node, after);
        }
        self.nodes[node.0 as usize].next = self.free;
        self.free = node.0;
        self.len -= 1;
    }

    fn unchain(&mut self, node: NodeId, after: u32) {
        let chain = self.chain(self.number(node));
        let mut at = self.heads[chain];
        if at == node.0 {
            self.heads[chain] = after;
            return;
        }
        while self.nodes[at as usize].next != node.0 {
            at = self.nodes[at as usize].next;
        }
        self.nodes[at as usize].next = after;
    }

    /// Returns the block of a node.
    #[inline]
    pub fn number(&self, node: NodeId) -> u32 {
        self.nodes[node.0 as usize].number
    }

    /// Returns the number of cached pages of a node.
    #[inline]
    pub fn pages(&self, node: NodeId) -> u32 {
        self.nodes[node.0 as usize].pages
    }

    /// Adds a page to a node. The page must be in no node.
    #[inline]
    pub fn add_page(&mut self, node: NodeId, page: PageId, offset: u32) {
        let nowhere = Member {
            node: NONE,
            offset: 0,
            next: NONE,
            previous: NONE,
        };
        reach(&mut self.members, page.0 as usize, nowhere);
        let of = &mut self.nodes[node.0 as usize];
        self.members[page.0 as usize] = Member {
            node: node.0,
            offset,
            next: of.first_page,
            previous: NONE,
        };
        if of.first_page != NONE {
            self.members[of.first_page as usize].previous = page.0;
        }
        of.first_page = page.0;
        of.pages += 1;
    }

    /// Removes a page from its node. The node remains, even without pages. Returns the node.
    pub fn remove_page(&mut self, page: PageId) -> NodeId {
        let member = self.members[page.0 as usize];
        match member.previous {
            NONE => self.nodes[member.node as usize].first_page = member.next,
            previous => self.members[previous as usize].next = member.next,
        }
        if member.next != NONE {
            self.members[member.next as usize].previous = member.previous;
        }
        self.nodes[member.node as usize].pages -= 1;
        self.members[page.0 as usize].node = NONE;
        PageId(member.node)
    }

    /// Prefetches the entry of a page.
    #[inline]
    pub fn prefetch_page(&self, page: PageId) {
        prefetch(&self.members, page.0 as usize);
    }

    /// Prefetches a node.
    #[inline]
    pub fn prefetch_node(&self, node: NodeId) {
        prefetch_whole(&self.nodes, node.0 as usize);
    }

    /// Prefetches the hash chain of a page's block.
    #[inline]
    pub fn prefetch_chain(&self, lpn: Lpn) {
        let number = self.blocking.block_of(lpn).0;
        prefetch(&self.heads, self.chain(number));
    }

    /// Prefetches the first node of the hash chain of a page's block. This node is most likely the node of the block.
    /// The head of the chain must already be in the processor cache.
    #[inline]
    pub fn prefetch_first_of_chain(&self, lpn: Lpn) {
        let number = self.blocking.block_of(lpn).0;
        prefetch_whole(&self.nodes, self.heads[self.chain(number)] as usize);
    }

    /// Returns the node that a page is in; `None` if the page is in no node.
    #[inline]
    pub fn node_of(&self, page: PageId) -> Option<NodeId> {
        let member = self.members.get(page.0 as usize)?;
        (member.node != NONE).then_some(PageId(member.node))
    }

    /// Returns the offset of a page in its node.
    #[inline]
    pub fn offset(&self, page: PageId) -> u32 {
        self.members[page.0 as usize].offset
    }

    /// Returns the pages of a node. The page that was inserted last is first.
    pub fn pages_of(&self, node: NodeId) -> impl Iterator<Item = PageId> + '_ {
        let id = |page: u32| (page != NONE).then_some(PageId(page));
        std::iter::successors(id(self.nodes[node.0 as usize].first_page), move |page| {
            id(self.members[page.0 as usize].next)
        })
    }

    /// Adds all pages of a node to the victims, in the order of their offsets. The node remains, without pages.
    pub fn evict_pages(&mut self, node: NodeId, out: &mut Eviction) {
        let mut at = self.nodes[node.0 as usize].first_page;
        while at != NONE {
            out.victims.push(PageId(at));
            self.members[at as usize].node = NONE;
            at = self.members[at as usize].next;
        }
        let of = &mut self.nodes[node.0 as usize];
        (of.first_page, of.pages) = (NONE, 0);
        let members = &self.members;
        out.victims
            .sort_unstable_by_key(|page| members[page.0 as usize].offset);
    }

    /// Removes a block and all its pages from the table. Adds the pages to the victims.
    pub fn evict(&mut self, node: NodeId, out: &mut Eviction) {
        out.block = Some(self.number(node));
        self.evict_pages(node, out);
        self.remove(node);
    }

    /// Returns the node of the page's block, and the page's offset in the block. Adds the node if the block has none.
    #[inline]
    pub fn node_for(&mut self, lpn: Lpn) -> (NodeId, u32) {
        let (number, offset) = self.blocking.block_of(lpn);
        let found = self.find(number);
        (found.unwrap_or_else(|| self.add(number)), offset)
    }

    /// Returns the node of the page's block, if there is one.
    #[inline]
    pub fn find_for(&self, lpn: Lpn) -> Option<NodeId> {
        self.find(self.blocking.block_of(lpn).0)
    }

    /// Whether all pages of a block are on one chip.
    pub fn have_a_chip(&self) -> bool {
        self.has_chips
    }

    /// Returns the chip of a block; `None` if the pages of a block are on several chips.
    #[inline]
    pub fn chip(&self, node: NodeId) -> Option<ChipId> {
        let chips = self.setup.chips;
        self.have_a_chip()
            .then(|| ChipId((self.number(node) % chips) as u16))
    }

    /// Whether a victim search passes over a block. It does if a page of the block is in flight, or if GCaR regards the
    /// block as being on a chip in GC (D-13). Sets `skipped` in the second case.
    #[inline]
    pub fn passed_over(
        &self,
        device: &dyn DeviceView,
        skip: Skip,
        node: NodeId,
        skipped: &mut bool,
    ) -> bool {
        if self.in_flight(device, node) {
            return true;
        }
        let by_chip = match self.chip(node) {
            _ if skip == Skip::Nothing => false,
            Some(chip) => skip.chip(device, chip),
            None => self.skipped_by_pages(device, skip, node),
        };
        *skipped |= by_chip;
        by_chip
    }

    /// Whether a page of the block is in flight.
    #[inline]
    pub fn in_flight(&self, device: &dyn DeviceView, node: NodeId) -> bool {
        // The pages inserted last are the most likely ones to be in flight. The iterator returns them first.
        device.pages_in_flight() > 0 && self.pages_of(node).any(|page| device.in_flight(page))
    }

    /// Whether GCaR skips a block because of the chips of its pages. The parameter `block_in_gc` sets the rule.
    /// Examines the chip of each page.
    pub fn skipped_by_pages(&self, device: &dyn DeviceView, skip: Skip, node: NodeId) -> bool {
        if skip == Skip::Nothing {
            return false;
        }
        let by_chip = |&page: &PageId| skip.page_by_chip(device, page);
        let mut pages = self.pages_of(node);
        match self.in_gc {
            BlockInGc::Any => pages.any(|page| by_chip(&page)),
            BlockInGc::All => pages.all(|page| by_chip(&page)),
            BlockInGc::Majority => pages.filter(by_chip).count() as u32 > self.pages(node) / 2,
        }
    }

    /// Formats the pages of a node in ascending order, such as `{8,9}`.
    pub fn pages_text(&self, device: &dyn DeviceView, node: NodeId) -> String {
        let mut pages: Vec<u32> = self.pages_of(node).map(|page| device.lpn(page).0).collect();
        pages.sort_unstable();
        let texts: Vec<String> = pages.iter().map(u32::to_string).collect();
        format!("{{{}}}", texts.join(","))
    }

    /// Formats a block with its pages, such as `B2{8,9}`.
    pub fn text(&self, device: &dyn DeviceView, node: NodeId) -> String {
        format!("B{}{}", self.number(node), self.pages_text(device, node))
    }

    /// Formats blocks, separated by spaces. The text starts with the most recent block, although `oldest_first` starts
    /// with the least recent one.
    pub fn texts(
        &self,
        device: &dyn DeviceView,
        oldest_first: impl Iterator<Item = NodeId>,
    ) -> String {
        let mut texts: Vec<String> = oldest_first.map(|node| self.text(device, node)).collect();
        texts.reverse();
        texts.join(" ")
    }

    /// Nodes that hold pages.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        let nodes = (0..).map(PageId).take(self.nodes.len());
        nodes.filter(|&node| self.pages(node) > 0)
    }
}

impl<T> Index<NodeId> for BlockTable<T> {
    type Output = T;
    #[inline]
    fn index(&self, node: NodeId) -> &T {
        &self.nodes[node.0 as usize].state
    }
}

impl<T> IndexMut<NodeId> for BlockTable<T> {
    #[inline]
    fn index_mut(&mut self, node: NodeId) -> &mut T {
        &mut self.nodes[node.0 as usize].state
    }
}
