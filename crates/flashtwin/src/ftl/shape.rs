//! Dimensions of a page map: the counts of its device, and the destinations of writes.

use super::levelling::WearAware;

/// Counts that fix the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub chips: u32,
    pub planes_per_chip: u32,
    pub blocks_per_plane: u32,
    pub pages_per_block: u32,
    /// Pages of a block that carry data: one less with a summary page.
    pub data_pages: u32,
    /// Pools in a chip: its planes, or 1.
    pub pools_per_chip: u32,
    pub blocks_per_pool: u32,
    /// Logical pages.
    pub exported_pages: u32,
    /// Blocks of a plane that the exported pages fill when written sequentially.
    pub usable_per_plane: u32,
    pub stride_pages: u32,
    /// Erases a block survives; with `endurance_spread`, in the mean.
    pub erase_limit: u32,
    /// Standard deviation of that number as a share of it, in units of 2^-16.
    pub endurance_spread: u32,
    /// Free blocks are taken by their erases.
    pub least_worn_first: bool,
    /// The reference's wear levelling.
    pub wear_aware: Option<WearAware>,
    /// Erases below the mean of its pool at which a block is collected whatever it holds.
    pub erases_behind: Option<u32>,
    /// The reference's free count without copy-back starts one too high (quirk Q6).
    pub free_count_bias: u32,
    /// Open blocks of a pool: 1, or 2 where hot and cold pages are written apart.
    pub streams: u32,
    /// Data pages of the second one: fewer in SLC mode.
    pub hot_pages: u32,
    /// Blocks of a pool that may be in SLC mode; 0: the second open block is one as all others.
    pub slc_blocks: u32,
    /// Pages that go to the second of two open blocks.
    pub apart: Apart,
    /// Superblocks are what is collected.
    pub superblocks: bool,
}

/// Pages that go to the second open block of a pool, the hot one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Pages for which the buffer policy asks for the second; pages that GC moves go to the first.
    AsAsked,
    /// Pages for which the buffer policy asks for the second; pages that GC moves go to a block of the kind that they
    /// are in.
    AsVictim,
    /// Pages for which the buffer policy asks for the second; of those that GC moves, the ones in the copy of the
    /// policy's filter.
    ByClass,
    /// All that the host writes: the first is for those that GC moves.
    Moved,
    /// Logical pages below this.
    Below(u32),
    /// All that the host writes, as long as there is room in SLC mode.
    Cached,
}
