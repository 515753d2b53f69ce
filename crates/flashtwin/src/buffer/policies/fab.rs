//! FAB: evicts the block with the most cached pages (Jo, Kang, Park, Kim, Lee, IEEE TCE 2006).
//!
//! A hit or an insertion makes the page's block the most recent one. The victim is the block with the most cached
//! pages. If several blocks have equally many, it is the least recent of them. The victim may be the block that is
//! being accessed. All its pages are evicted.
//!
//! ```text
//! 4 pages:  B9 - B2           most recent ... least recent
//! 1 page:   B0 - B5 - B3      victim: B2
//! ```
//!
//! With `cache_reads`, a read makes its block the most recent one, as a write does (GCaR section 5). Without it, reads
//! neither change the order of blocks nor enter the buffer.

use crate::buffer::blocks::{
    BlockParameters, BlockRoom, BlockTable, BySize, FilteredParameters, ReadParameters,
    RoomParameters,
};
use crate::buffer::entry::{cost, example, Entry, Family, Make, BLOCKS};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Skip};
use crate::buffer::{PageId, Setup};
use crate::component::{source, Provenance};
use crate::units::Lpn;

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "fab",
    title: "FAB",
    line: "Evicts the block with the most cached pages.",
    family: Family::Blocks,
    source: source(
        "H. Jo, J. Kang, S. Park, J. Kim, J. Lee",
        "FAB: Flash-Aware Buffer Management Policy for Portable Media Players",
        "IEEE Transactions on Consumer Electronics 52(2)",
        2006,
    ),
    provenance: Provenance::Original,
    rule: &[
        "Blocks are as in BPLRU. Every access to a block moves it to the most recent end.",
        "Victim: the block with the most cached pages; of several such blocks, the least recent \
         one. The victim may be the block being accessed.",
        "The victim's dirty pages are written in ascending order, and its clean pages are dropped.",
    ],
    drawing: "
by pages    3: B7
            2: B1, B2     the largest class gives the victim,
            1: B0         its least recent block",
    state: BLOCKS,
    cost: cost("O(1)", "O(B + N)", "O(N)"),
    example: example(5, "W0 W4 W8 W9 W5 W12 W13"),
    parameters: &[
        BlockParameters::ROWS,
        ReadParameters::ROWS,
        RoomParameters::ROWS,
    ],
    filtered: FilteredParameters::ROWS,
    make: Make::Base(|setup| Fab::new(setup).into()),
    ..Entry::PLAIN
}];

/// Flash-aware buffer.
#[derive(Clone, Debug)]
pub struct Fab {
    blocks: BlockTable<()>,
    cache_reads: bool,
    room: BlockRoom,
    sizes: BySize,
}

impl Fab {
    /// Makes the policy with the parameters of `setup`.
    pub fn new(setup: &Setup) -> Fab {
        Fab {
            blocks: BlockTable::new(setup),
            cache_reads: ReadParameters::of(&setup.settings).cache_reads,
            room: RoomParameters::of(&setup.settings).room,
            sizes: BySize::new(),
        }
    }
}

impl Policy for Fab {
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
            self.sizes.remove(node);
        }
        self.blocks.add_page(node, page, offset);
        self.sizes.push(node, self.blocks.pages(node));
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        if self.admits(access) {
            if let Some(node) = self.blocks.node_of(page) {
                self.sizes.renew(node);
            }
        }
    }

    fn forget(&mut self, page: PageId) {
        let node = self.blocks.remove_page(page);
        if self.blocks.pages(node) > 0 {
            return self.sizes.shrink(node);
        }
        self.sizes.remove(node);
        self.blocks.remove(node);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        // As published, every block is inspected.
        out.inspected += u64::from(self.blocks.len());
        let largest = |skip| {
            let blocks = &self.blocks;
            (self.sizes).largest_but(&mut |node| blocks.passed_over(device, skip, node, &mut false))
        };
        let found = largest(skip);
        out.skipped |= skip != Skip::Nothing && found != largest(Skip::Nothing);
        let Some(node) = found else { return false };
        self.sizes.remove(node);
        self.blocks.evict(node, out);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let mut nodes: Vec<PageId> = self.blocks.iter().collect();
        nodes.sort_unstable_by_key(|&node| self.sizes.since(node));
        self.blocks.texts(device, nodes.into_iter())
    }
}
