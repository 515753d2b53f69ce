//! The record of a cached page fills one cache line. A miss accesses two records: that of the victim and that of the
//! incoming page.

use std::num::NonZeroU32;

use super::waiters::WaitList;
use crate::nand::FlashEvent;
use crate::units::{ChipId, Lpn, Time};

/// An index into a table. An `Option<Index>` takes no more memory than an `Index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index(NonZeroU32);

impl Index {
    #[inline]
    pub fn new(index: u32) -> Index {
        Index(NonZeroU32::new(index.wrapping_add(1)).expect("tables are shorter"))
    }

    #[inline]
    pub fn get(self) -> u32 {
        self.0.get() - 1
    }
}

/// Owner of a slot: the policy, or the separate read cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pool {
    Policy,
    ReadCache,
}

/// The slot of a page that has a place in the buffer memory, or needs none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The page holds its slot until it is released.
    Held,
    /// The page has passed its slot on at the start of its write-back (background mode).
    PassedOn,
    /// The page is padding, and never has a slot.
    Extra,
}

/// Where the page's data are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Residency {
    /// The record is unused.
    Free,
    /// The page has no slot yet, because its slot still belongs to another page. `writer` is the write that created
    /// the page and waits for the slot.
    Awaiting { writer: Option<Index> },
    /// The page is being read from flash.
    Filling(Slot),
    /// The page is in the buffer memory.
    Ready(Slot),
}

/// Whether the page can be evicted by the policy or, for a page of the read cache, by the read cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// The page may be chosen as a victim.
    Evictable,
    /// The policy holds the page, but the page is in flight and therefore pinned (D-36).
    InFlight,
    /// The page was evicted, trimmed or replaced, and is no longer in the policy.
    Left,
}

/// State of the page's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    None,
    /// The program must wait until an older copy of the logical page has been programmed.
    BehindOlder,
    Running {
        /// Whether the program carries content that flash lacks.
        fresh: bool,
        /// Whether the page was trimmed since the program started.
        trimmed: bool,
    },
}

/// Reasons to program the page other than its eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Nothing,
    /// A flush or a forced write waits for the page.
    Flush,
    /// An idle chip writes the page back.
    WriteBack,
    /// The page is evicted and clean. It is programmed because its block is written as a whole.
    Padding,
    /// The page is clean and stays in the read cache. It is programmed because its block is written as a whole.
    Merge,
}

impl Want {
    /// Whether the page must be programmed although flash has its contents.
    #[inline]
    pub fn writes_clean(self) -> bool {
        matches!(self, Want::Padding | Want::Merge)
    }

    /// Whether the page must be programmed although it is not evicted.
    #[inline]
    pub fn writes_cached(self) -> bool {
        matches!(self, Want::Flush | Want::WriteBack | Want::Merge)
    }
}

/// The group of pages with which the page is programmed. The programs start when all pages of the group are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    None,
    /// The page is not complete, and the group waits for it.
    Missing(u32),
    /// The page is complete, but other pages of the group are not.
    Whole(u32),
}

/// A cached page.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Page {
    pub lpn: Lpn,
    /// The only unit to which the page can be written, or [`NO_HOME`](crate::device::NO_HOME).
    pub home: ChipId,
    pub residency: Residency,
    pub pool: Pool,
    pub rank: Rank,
    /// Whether the contents differ from flash. Contents that a running program is writing count as being in flash.
    pub dirty: bool,
    pub program: Program,
    pub want: Want,
    pub group: Membership,
    /// Number of the request because of which the page is read or written next.
    pub by: u32,
    /// The page that receives this page's slot.
    pub slot_successor: Option<Index>,
    /// The evicted copy of the same logical page that must be programmed first. `younger` is the next younger copy.
    pub older: Option<Index>,
    pub younger: Option<Index>,
    /// Accesses that wait for the page, except the `writer` of [`Residency::Awaiting`].
    pub waiters: WaitList,
    /// Valid sectors, as bits.
    pub valid: u64,
    /// Instant at which the page got its slot.
    pub slot_at: Time,
}

const _: () = assert!(size_of::<Page>() == 64, "a page fits one cache line");

impl Page {
    /// Creates a page that waits for its slot.
    #[inline]
    pub fn new(lpn: Lpn, pool: Pool, home: ChipId) -> Page {
        Page {
            lpn,
            home,
            residency: Residency::Awaiting { writer: None },
            pool,
            rank: Rank::Evictable,
            dirty: false,
            program: Program::None,
            want: Want::Nothing,
            group: Membership::None,
            by: FlashEvent::NO_REQUEST,
            slot_successor: None,
            older: None,
            younger: None,
            waiters: WaitList::default(),
            valid: 0,
            slot_at: Time::ZERO,
        }
    }

    #[inline]
    pub fn is_ready(&self) -> bool {
        matches!(self.residency, Residency::Ready(_))
    }

    #[inline]
    pub fn is_awaiting(&self) -> bool {
        matches!(self.residency, Residency::Awaiting { .. })
    }

    #[inline]
    pub fn has_left(&self) -> bool {
        self.rank == Rank::Left
    }

    #[inline]
    pub fn is_programming(&self) -> bool {
        matches!(self.program, Program::Running { .. })
    }

    /// Whether the page only has to complete the request that writes it when the page gets its slot. This holds if the
    /// page is in the policy, no other access waits for it, and no operation on it is pending.
    #[inline(always)]
    pub fn is_plain_arrival(&self) -> bool {
        self.rank == Rank::InFlight
            && self.pool == Pool::Policy
            && self.waiters.is_empty()
            && self.want == Want::Nothing
    }

    /// Whether the page holds its slot only until its running program ends. This holds if the page was neither trimmed
    /// nor written during the program, and no access and no other program waits for it. Called only for a page that has
    /// left the policy.
    #[inline(always)]
    pub fn is_held_by_program(&self) -> bool {
        debug_assert!(self.has_left());
        self.residency == Residency::Ready(Slot::Held)
            && matches!(self.program, Program::Running { trimmed: false, .. })
            && !self.dirty
            && self.want == Want::Nothing
            && self.group == Membership::None
            && self.waiters.is_empty()
    }

    /// Whether the page holds its slot and must be programmed only if it is evicted. This holds if it has no running
    /// program, no older copy, no other reason to be programmed, and no group.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.residency == Residency::Ready(Slot::Held)
            && !self.is_programming()
            && self.older.is_none()
            && self.want == Want::Nothing
            && self.group == Membership::None
    }

    /// Whether the page may have a next step. A clean page of the policy that holds its slot has none, unless it has an
    /// older copy, a group or a reason to be programmed.
    #[inline(always)]
    pub fn is_pending(&self) -> bool {
        !self.is_plain() || self.dirty || self.has_left()
    }

    /// Whether flash lacks the page's contents.
    #[inline]
    pub fn is_unstable(&self) -> bool {
        self.dirty | matches!(self.program, Program::Running { fresh: true, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::Index;

    #[test]
    fn indices_keep_their_numbers() {
        let numbers = [0, 1, u32::MAX - 1];
        assert_eq!(numbers.map(|number| Index::new(number).get()), numbers);
    }

    #[test]
    #[should_panic(expected = "tables are shorter")]
    fn index_beyond_any_table_is_refused() {
        Index::new(u32::MAX);
    }
}
