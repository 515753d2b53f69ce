//! BPLRU: LRU over blocks. A victim is a whole block (Kim, Ahn, FAST 2008).
//!
//! A hit or an insertion moves the page's block to the most recent end of the list. The victim is the least recent
//! block, with all its pages. The block that is being accessed is a victim only if there is no other block. Two
//! parameters change these rules:
//!
//! - Compensation: a block that was written completely and in order moves to the least recent end.
//! - Padding: the missing pages of a victim are read from flash, and the block is written as a whole. A block without
//!   dirty pages is dropped instead (D-6).
//!
//! ```text
//! most recent  B3 - B0 - B7 - | - B2 - B5  least recent
//!                 list            complete blocks, the last one first
//! ```
//!
//! With `cache_reads`, a read moves its block just as a write does. Without it, reads neither move blocks nor enter the
//! buffer.

use crate::buffer::age_index::AgeIndex;
use crate::buffer::blocks::{
    BlockParameters, BlockRoom, BlockTable, FilteredParameters, NodeId, ReadParameters,
    RoomParameters,
};
use crate::buffer::entry::{cost, example_with, Entry, Family, Make, BLOCKS};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Skip};
use crate::buffer::{List, PageId, Setup};
use crate::component::{parameters, Kind};
use crate::component::{source, Provenance};
use crate::units::Lpn;

parameters! {
    /// Parameters of BPLRU.
    struct Parameters {
        /// Complete a victim block with pages read from flash, and write the whole block.
        padding: bool = Kind::Bool, "false", "original: true; CBM: false; D-8";
        /// Make a block that was written completely and in order the next victim.
        compensation: bool = Kind::Bool, "true", "original: true";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "bplru",
    title: "BPLRU",
    line: "LRU of blocks instead of pages: evicts all cached pages of the least recent block \
           together.",
    family: Family::Blocks,
    source: source(
        "H. Kim, S. Ahn",
        "BPLRU: A Buffer Management Scheme for Improving Random Writes in Flash Storage",
        "FAST",
        2008,
    ),
    provenance: Provenance::Original,
    rule: &[
        "Cached pages are grouped by logical block. The blocks are in a list, ordered by recency.",
        "Write: the page joins its block, which moves to the most recent end.",
        "Read: with `cache_reads`, a read is handled as a write, except that the page is clean. \
         Without `cache_reads`, a read that hits moves nothing, and a read that misses bypasses \
         the buffer.",
        "Compensation: a block whose N pages were written in order from the first to the last \
             moves to the least recent end.",
        "Victim: the least recent block. The block being accessed is the victim only if it is the \
             only one. The victim's dirty pages are written in ascending order.",
        "With `padding`, the missing pages of the victim are read from flash, and all N pages are \
         written. A victim without dirty pages is dropped.",
    ],
    drawing: "
most recent [ B2{8,9}  B0{0,1}  B1{5} ] least recent -> victim
                                   ^ padding reads 4, 6, 7 and writes 4 to 7",
    state: BLOCKS,
    cost: cost("O(1)", "O(N)", "O(N)"),
    example: example_with(4, &[("padding", "true")], 1, "W0 W5 W1 W8 W9"),
    parameters: &[
        BlockParameters::ROWS,
        ReadParameters::ROWS,
        RoomParameters::ROWS,
        Parameters::ROWS,
    ],
    filtered: FilteredParameters::ROWS,
    make: Make::Base(|setup| Bplru::new(setup).into()),
    ..Entry::PLAIN
}];

#[derive(Clone, Debug, Default)]
struct Block {
    /// Number of pages that were written in ascending order so far, starting at offset 0 of the block.
    run: u32,
    /// Whether the block has been written completely and in order.
    done: bool,
}

/// Block-padding LRU.
#[derive(Clone, Debug)]
pub struct Bplru {
    blocks: BlockTable<Block>,
    parameters: Parameters,
    cache_reads: bool,
    room: BlockRoom,
    list: List,
    /// Blocks written completely and in order. The block completed last is at the least recent end.
    done: List,
    /// The blocks of `list`, divided by chip. `None` unless GCaR filters the policy and each block is on one chip.
    by_chip: Option<AgeIndex<1>>,
}

impl Bplru {
    /// Makes the policy with the parameters of `setup`.
    pub fn new(setup: &Setup) -> Bplru {
        let blocks = BlockTable::new(setup);
        let by_chip = setup.filtered && blocks.have_a_chip();
        Bplru {
            blocks,
            parameters: Parameters::of(&setup.settings),
            cache_reads: ReadParameters::of(&setup.settings).cache_reads,
            room: RoomParameters::of(&setup.settings).room,
            list: List::default(),
            done: List::default(),
            by_chip: by_chip.then(|| AgeIndex::new(setup.capacity, setup.chips, [true])),
        }
    }

    fn push(&mut self, node: NodeId) {
        self.list.push_newest(node);
        if let Some(by_chip) = &mut self.by_chip {
            by_chip.insert(node, 0, self.blocks.chip(node).into());
        }
    }

    fn unlink(&mut self, node: NodeId) {
        if self.blocks[node].done {
            return self.done.remove(node);
        }
        self.list.remove(node);
        if let Some(by_chip) = &mut self.by_chip {
            by_chip.remove(node);
        }
    }

    /// Inserts a block that is in no list. If the access is a write that completes the block in order, the block
    /// becomes the first victim in `done`. Otherwise, it becomes the most recent block of `list`.
    #[inline]
    fn place(&mut self, node: NodeId, offset: u32, write: bool) {
        let whole = (self.parameters.compensation).then_some(self.blocks.setup().pages_per_block);
        let block = &mut self.blocks[node];
        if write {
            let extends = offset == 0 || offset == block.run;
            block.run = if extends { offset + 1 } else { 0 };
        }
        block.done = write && Some(block.run) == whole;
        if block.done {
            self.done.insert_newer_than(None, node);
        } else {
            self.push(node);
        }
    }

    /// Returns the least recent block that is not `current` and that the search does not skip.
    fn choose(
        &self,
        device: &dyn DeviceView,
        skip: Skip,
        current: Option<NodeId>,
        out: &mut Eviction,
    ) -> Option<NodeId> {
        let done = self.done.iter_oldest_first();
        for (i, node) in done.chain(self.list.iter_oldest_first()).enumerate() {
            if Some(node) == current {
                continue;
            }
            if !(self.blocks).passed_over(device, skip, node, &mut out.skipped) {
                out.inspected += i as u64 + 1;
                return Some(node);
            }
            match &self.by_chip {
                Some(by_chip) if out.skipped && !self.blocks[node].done => {
                    return self.search(device, skip, current, by_chip, out);
                }
                _ => {}
            }
        }
        out.inspected += u64::from(self.blocks.len());
        None
    }

    /// Compares the lists of all chips. Returns the least recent block that is not `current`, not in flight, and not
    /// excluded by `skip`.
    #[cold]
    fn search(
        &self,
        device: &dyn DeviceView,
        skip: Skip,
        current: Option<NodeId>,
        by_chip: &AgeIndex<1>,
        out: &mut Eviction,
    ) -> Option<NodeId> {
        let (found, looked) = by_chip.search(0, device, skip, |node| {
            Some(node) == current || self.blocks.in_flight(device, node)
        });
        out.inspected += self.done.len() as u64 + looked;
        found
    }

    /// Adds the missing pages of `block` as padding: the pages of the block that are not among the victims. They are
    /// read from flash.
    fn pad(&self, block: u32, out: &mut Eviction) {
        let setup = self.blocks.setup();
        let mut cached = out
            .victims
            .iter()
            .map(|&page| self.blocks.offset(page))
            .peekable();
        for offset in 0..setup.pages_per_block {
            if cached.next_if_eq(&offset).is_none() {
                out.padding.extend(self.blocks.page_of_block(block, offset));
            }
        }
        out.write_clean = true;
    }
}

impl Policy for Bplru {
    fn admits(&self, access: &Access) -> bool {
        access.write || self.cache_reads
    }

    fn takes_whole_blocks(&self) -> bool {
        self.room == BlockRoom::Whole
    }

    fn block_of_room(&self, lpn: Lpn) -> Option<u32> {
        self.takes_whole_blocks()
            .then(|| self.blocks.number_of(lpn))
    }

    fn lacks_room(&self, incoming: &Access) -> bool {
        self.room == BlockRoom::Whole && self.blocks.lack_room_for(incoming.lpn)
    }

    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let (node, offset) = self.blocks.node_for(access.lpn);
        if self.blocks.pages(node) > 0 {
            self.unlink(node);
        }
        self.blocks.add_page(node, page, offset);
        self.place(node, offset, access.write);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        if !self.admits(access) {
            return;
        }
        let Some(node) = self.blocks.node_of(page) else {
            return;
        };
        self.unlink(node);
        self.place(node, self.blocks.offset(page), access.write);
    }

    fn forget(&mut self, page: PageId) {
        let node = self.blocks.remove_page(page);
        if self.blocks.pages(node) == 0 {
            self.unlink(node);
            self.blocks.remove(node);
        }
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let current = self.blocks.find_for(incoming.lpn);
        let found = self.choose(device, skip, current, out);
        let free = |&node: &NodeId| !(self.blocks).passed_over(device, skip, node, &mut false);
        let only = current.filter(free).filter(|_| !out.skipped);
        let Some(node) = found.or(only) else {
            return false;
        };
        let block = self.blocks.number(node);
        self.unlink(node);
        self.blocks.evict(node, out);
        let padding = self.parameters.padding;
        if padding && out.victims.iter().any(|&page| device.dirty(page)) {
            self.pad(block, out);
        }
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let done = self.done.iter_oldest_first();
        self.blocks
            .texts(device, done.chain(self.list.iter_oldest_first()))
    }
}
