//! LB-CLOCK: a clock over blocks. The victim is the largest block that was not accessed recently (Debnath, Subramanya,
//! Du, Lilja, MASCOTS 2009).
//!
//! An access to a cached block sets its reference bit. A new block enters behind the hand with the bit cleared. A
//! victim is chosen in two steps. First, the hand advances to a block whose bit is clear, and clears the bits of the
//! blocks that it passes. Then, the victim is the block with the most cached pages among all blocks whose bit is clear.
//! If several have equally many pages, it is the first of them from the hand on.
//!
//! A block that the hand has just passed is the last one that the hand reaches again. The ring is therefore a queue:
//!
//! ```text
//! hand -> B0r0 - B1r1 - B2r1 <- behind the hand
//! ```
//!
//! The blocks whose bit is clear are also in lists by size. If GCaR filters the policy, the hand passes over skipped
//! blocks without changing their bit or place. With `cache_reads`, a read sets the bit or inserts its page, as a write
//! does. Without `cache_reads`, a read does neither.

use crate::buffer::blocks::{
    BlockParameters, BlockTable, BySize, FilteredParameters, NodeId, ReadParameters,
};
use crate::buffer::entry::{cost, example, Entry, Family, Make};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Skip};
use crate::buffer::{List, PageId, Setup};
use crate::component::{source, Provenance};

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "lb-clock",
    title: "LB-CLOCK",
    line: "CLOCK over blocks: of the blocks without recent writes, evicts the one with the \
                most pages.",
    family: Family::Blocks,
    source: source(
        "B. Debnath, S. Subramanya, D. Du, D. J. Lilja",
        "Large Block CLOCK (LB-CLOCK): A Write Caching Algorithm for Solid State Disks",
        "MASCOTS",
        2009,
    ),
    provenance: Provenance::Original,
    rule: &[
        "Blocks are in a ring, each with a reference bit. A hand points at one of them.",
        "An access to a block of the ring sets its bit. A new block enters just behind the \
             hand, with the bit cleared.",
        "Victim: the hand clears bits and advances until it reaches a block whose bit is clear. Of \
             all blocks with a clear bit, the one with the most pages is the victim; of several \
             such blocks, the first one from the hand on.",
    ],
    drawing: "
     hand
      v
-> B3r0{12} - B2r0{8,9} - B0r1{1} -   (ring)
              ^ victim: bit 0, most pages",
    state: "The ring from the hand on, with reference bits: `B3r0{12} B2r1{8,9}`.",
    cost: cost("O(1)", "O(B)", "O(N) amortised"),
    example: example(5, "W0 W4 W8 W9 W5 W12 W1 W13 W16"),
    parameters: &[BlockParameters::ROWS, ReadParameters::ROWS],
    filtered: FilteredParameters::ROWS,
    make: Make::Base(|setup| LbClock::new(setup).into()),
    ..Entry::PLAIN
}];

#[derive(Clone, Debug, Default)]
struct Block {
    referenced: bool,
}

/// Large-block CLOCK.
#[derive(Clone, Debug)]
pub struct LbClock {
    cache_reads: bool,
    blocks: BlockTable<Block>,
    /// The clock. The block under the hand is the oldest in the list.
    ring: List,
    /// Blocks whose reference bit is clear, in the order of the ring.
    cold: BySize,
}

impl LbClock {
    /// Makes the policy with the parameters of `setup`.
    pub fn new(setup: &Setup) -> LbClock {
        LbClock {
            blocks: BlockTable::new(setup),
            cache_reads: ReadParameters::of(&setup.settings).cache_reads,
            ring: List::default(),
            cold: BySize::new(),
        }
    }

    #[inline]
    fn reference(&mut self, node: NodeId) {
        if !self.blocks[node].referenced {
            self.blocks[node].referenced = true;
            self.cold.remove(node);
        }
    }

    fn unlink(&mut self, node: NodeId) {
        self.ring.remove(node);
        if !self.blocks[node].referenced {
            self.cold.remove(node);
        }
    }

    /// Moves the hand to the first block whose bit is clear, and clears the bits of the blocks before it. Blocks that
    /// the search skips keep their bits. Returns false if the search skips all blocks.
    fn sweep(&mut self, device: &dyn DeviceView, skip: Skip, out: &mut Eviction) -> bool {
        let Some(mut at) = self.ring.oldest() else {
            return false;
        };
        loop {
            let next = self.ring.newer(at);
            if (self.blocks).passed_over(device, skip, at, &mut out.skipped) {
                match next {
                    Some(next) => at = next,
                    None => return false,
                }
                continue;
            }
            if !self.blocks[at].referenced {
                return true;
            }
            self.blocks[at].referenced = false;
            self.cold.push(at, self.blocks.pages(at));
            self.ring.remove(at);
            self.ring.push_newest(at);
            out.inspected += 1;
            // `next` is `None` if there is only one block. The hand then reaches this block again.
            at = next.unwrap_or(at);
        }
    }
}

impl Policy for LbClock {
    fn admits(&self, access: &Access) -> bool {
        access.write || self.cache_reads
    }

    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let (node, offset) = self.blocks.node_for(access.lpn);
        self.blocks.add_page(node, page, offset);
        if self.blocks.pages(node) > 1 {
            return self.reference(node);
        }
        self.ring.push_newest(node);
        self.cold.push(node, 1);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        if self.admits(access) {
            if let Some(node) = self.blocks.node_of(page) {
                self.reference(node);
            }
        }
    }

    fn forget(&mut self, page: PageId) {
        let node = self.blocks.remove_page(page);
        if self.blocks.pages(node) == 0 {
            self.unlink(node);
            self.blocks.remove(node);
        } else if !self.blocks[node].referenced {
            self.cold.shrink(node);
        }
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        if !self.sweep(device, skip, out) {
            return false;
        }
        // The published algorithm inspects all blocks, in one round over the ring, to find the largest one.
        out.inspected += u64::from(self.blocks.len());
        let largest = |skip| {
            let blocks = &self.blocks;
            (self.cold).largest_but(&mut |node| blocks.passed_over(device, skip, node, &mut false))
        };
        let found = largest(skip);
        out.skipped |= skip != Skip::Nothing && found != largest(Skip::Nothing);
        let Some(node) = found else { return false };
        self.unlink(node);
        self.blocks.evict(node, out);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let ring = self.ring.iter_oldest_first();
        let texts: Vec<String> = ring
            .map(|node| {
                let bit = u8::from(self.blocks[node].referenced);
                let pages = self.blocks.pages_text(device, node);
                format!("B{}r{bit}{pages}", self.blocks.number(node))
            })
            .collect();
        texts.join(" ")
    }
}
