//! Dimensions of a page map, and the settings that determine where pages are written.

use super::levelling::WearAware;

/// Dimensions, which determine the sizes of the map's arrays, and settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub chips: u32,
    pub planes_per_chip: u32,
    pub blocks_per_plane: u32,
    pub pages_per_block: u32,
    /// Number of pages of a block that hold data: all pages, or all pages except the summary page at the end.
    pub data_pages: u32,
    /// Number of pools of a chip: 1, or one per plane.
    pub pools_per_chip: u32,
    pub blocks_per_pool: u32,
    /// Logical pages.
    pub exported_pages: u32,
    /// Number of blocks of a plane that the exported pages fill when they are written sequentially.
    pub usable_per_plane: u32,
    pub stride_pages: u32,
    /// Number of erases that a block survives. If `endurance_spread` is not 0, the mean of this number.
    pub erase_limit: u32,
    /// Standard deviation of the number of erases that a block survives, as a fraction of the mean, in units of
    /// 2^-16.
    pub endurance_spread: u32,
    /// Whether the free block with the fewest erases is opened first. If false, free blocks are opened in circular
    /// order.
    pub least_worn_first: bool,
    /// Thresholds of the reference's wear levelling; `None` if the device uses another method.
    pub wear_aware: Option<WearAware>,
    /// Threshold of static wear levelling. A block is collected when its erases are fewer than the mean of its pool
    /// by at least this number, even if all its pages are live.
    pub erases_behind: Option<u32>,
    /// Number added to the initial number of free blocks. Without copy-back, the reference (DiskSim with Microsoft's
    /// SSD extension) counts one free block too many at the start (quirk Q6, see docs/devices.md).
    pub free_count_bias: u32,
    /// Number of write streams: 1, or 2 if hot and cold pages are written separately. Each stream has an open block
    /// in every pool.
    pub streams: u32,
    /// Number of data pages of a hot block, that is, the second open block of a pool. It is smaller if the block is
    /// in SLC mode.
    pub hot_pages: u32,
    /// Largest number of blocks in SLC mode in a pool. 0 if hot blocks are normal ones.
    pub slc_blocks: u32,
    /// Criterion for the pages that are written to the hot open block.
    pub apart: Apart,
    /// Whether superblocks are collected instead of blocks.
    pub superblocks: bool,
}

/// Criteria for hot pages, which are written to the second open block of a pool. All other pages are cold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Pages that the buffer policy declares hot. All pages that GC moves are cold.
    AsAsked,
    /// Pages that the buffer policy declares hot, and pages that GC moves from a hot block.
    AsVictim,
    /// Pages that the buffer policy declares hot, and those moved by GC that are in the copy of the policy's filter
    /// of hot pages.
    ByClass,
    /// All pages that the host writes; pages that GC moves are cold.
    Moved,
    /// Pages with a logical number below this number, whether the host writes them or GC moves them.
    Below(u32),
    /// All pages that the host writes while the SLC write cache has room. All pages that GC moves are cold.
    Cached,
}
