//! What a pool of blocks has open and free.

use super::shape::Shape;

/// A pool of blocks and its write frontier, the cold one of two.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// The open block.
    pub active: u32,
    /// Next page to write in it; at `data_pages` the block is sealed and a new one is taken lazily.
    pub next_page: u32,
    /// Blocks free to be opened.
    pub free: u32,
    /// Sequence number of the open block.
    pub active_seq: u32,
    /// Where the circular search for a free block goes on, from the pool's first block; beyond the last one
    /// of a pool that is retired.
    pub(super) cursor: u32,
}

impl Pool {
    /// All blocks free.
    pub(super) fn unopened(shape: &Shape) -> Pool {
        Pool {
            active: 0,
            next_page: 0,
            free: shape.blocks_per_pool,
            active_seq: 0,
            cursor: 0,
        }
    }
}

/// The second write frontier of a pool; its fields are as those of [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frontier {
    pub active: u32,
    pub next_page: u32,
}

/// A pool has no free page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolFull;
