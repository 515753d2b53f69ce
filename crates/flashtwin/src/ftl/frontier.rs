//! Open and free blocks of a pool.

use super::shape::Shape;

/// A pool of blocks and its write frontier: the open block and the next page to write in it. If the pool has two
/// frontiers, this is the cold one. The size of the struct is a power of two, which makes indexing fast. Every move
/// of a page indexes the table of pools.
#[derive(Clone, Debug)]
#[repr(align(32))]
pub(crate) struct Pool {
    /// The open block.
    pub active: u32,
    /// Next page to write in the open block. If it is `data_pages`, the block is full and sealed, and the next write
    /// opens another block.
    pub next_page: u32,
    /// Blocks free to be opened.
    pub free: u32,
    /// Sequence number of the open block.
    pub active_seq: u32,
    /// Position in the pool at which the circular search for a free block starts. In a retired pool (of a dead die),
    /// this field is instead the number of blocks of the pool, as a mark.
    pub(super) cursor: u32,
}

impl Pool {
    /// Creates a pool in which all blocks are free.
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

/// The hot write frontier of a pool with two frontiers. Its fields are those of [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frontier {
    pub active: u32,
    pub next_page: u32,
}

/// The pools of one chip that have the most room. The room of a pool is the number of pages that can be written to it
/// (see `PageMap::room`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Roomiest {
    /// One bit for each pool of the chip: whether the pool has the most room. 0 if these pools are not known.
    pools: u64,
    room: i32,
    /// Upper bound of the room of the other pools.
    others: i32,
}

impl Roomiest {
    pub const UNKNOWN: Roomiest = Roomiest {
        pools: 0,
        room: 0,
        others: 0,
    };

    /// Finds the pools with the most room. `rooms` has the room of each pool of a chip; a chip has at most 64 pools.
    #[inline]
    pub fn of(rooms: &[i32]) -> Roomiest {
        let (mut pools, mut room, mut others) = (0u64, i32::MIN, i32::MIN);
        for (at, &of_pool) in rooms.iter().enumerate() {
            let bit = 1 << at;
            if of_pool > room {
                (pools, room, others) = (bit, of_pool, room);
            } else if of_pool == room {
                pools |= bit;
            } else {
                others = others.max(of_pool);
            }
        }
        Roomiest {
            pools,
            room,
            others,
        }
    }

    #[inline(always)]
    pub fn is_known(&self) -> bool {
        self.pools != 0
    }

    /// Returns the first pool with the most room, searched from `start` on in circular order.
    #[inline(always)]
    pub fn first_from(&self, start: u32) -> u32 {
        let from = self.pools >> start << start;
        (if from == 0 { self.pools } else { from }).trailing_zeros()
    }

    /// Reduces the room of a pool by `n` pages.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn shrink(&mut self, pool: u32, n: i32) {
        let bit = 1u64.wrapping_shl(pool);
        if self.pools & bit == 0 {
            return;
        }
        let left = self.room - n;
        if self.pools != bit {
            self.pools &= !bit;
            self.others = self.others.max(left);
        } else if left > self.others {
            self.room = left;
        } else {
            self.pools = 0;
        }
    }
}

/// Error: the pool has no free page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolFull;
