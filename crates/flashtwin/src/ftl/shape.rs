//! Dimensions of a page map, and the settings that determine where pages are written.

use super::levelling::WearAware;

/// Dimensions that fix the sizes of the arrays, and settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub chips: u32,
    pub planes_per_chip: u32,
    pub blocks_per_plane: u32,
    pub pages_per_block: u32,
    /// Number of pages of a block that hold data: all pages, or all except the summary page.
    pub data_pages: u32,
    /// Number of pools of a chip: one per plane, or 1.
    pub pools_per_chip: u32,
    pub blocks_per_pool: u32,
    /// Logical pages.
    pub exported_pages: u32,
    /// Number of blocks of a plane that the exported pages fill when they are written sequentially.
    pub usable_per_plane: u32,
    pub stride_pages: u32,
    /// Number of erases that a block survives. With an `endurance_spread`, this is the mean.
    pub erase_limit: u32,
    /// Standard deviation of the number of survived erases, as a fraction of the mean, in units of 2^-16.
    pub endurance_spread: u32,
    /// Whether the free block with the fewest erases is opened first.
    pub least_worn_first: bool,
    /// Parameters of the reference's wear levelling, if it is used.
    pub wear_aware: Option<WearAware>,
    /// A block is collected if its number of erases is below the mean of its pool by at least this number, however
    /// many live pages it has.
    pub erases_behind: Option<u32>,
    /// Correction of the number of free blocks. Without copy-back, the number of the reference (DiskSim with
    /// Microsoft's SSD extension) is one too high at the start (quirk Q6).
    pub free_count_bias: u32,
    /// Number of write streams, each with an open block in every pool: 1, or 2 if hot and cold pages are written
    /// separately.
    pub streams: u32,
    /// Number of data pages of the second open block. A block in SLC mode has fewer.
    pub hot_pages: u32,
    /// Largest number of blocks of a pool in SLC mode. 0 if the second open block is a normal one.
    pub slc_blocks: u32,
    /// Pages that go to the second of two open blocks.
    pub apart: Apart,
    /// Whether superblocks are collected instead of blocks.
    pub superblocks: bool,
}

/// Pages that go to the second open block of a pool, the hot one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Pages that the buffer policy declares hot. Pages that GC moves are cold.
    AsAsked,
    /// Pages that the buffer policy declares hot, and pages that GC moves from a block that was opened as a hot one.
    AsVictim,
    /// Pages that the buffer policy declares hot, and pages that GC moves if the copy of the policy's filter contains
    /// them.
    ByClass,
    /// All pages that the host writes; pages that GC moves are cold.
    Moved,
    /// Pages whose logical number is below this number, written by the host or moved by GC.
    Below(u32),
    /// All pages that the host writes, as long as the SLC write cache has room.
    Cached,
}
