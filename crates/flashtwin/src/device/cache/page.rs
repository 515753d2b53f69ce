//! The record of a page in the buffer. A record fills one cache line of the processor. A miss accesses two records:
//! that of the victim and that of the incoming page.

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

/// Part of the buffer that a slot belongs to: the part that the policy manages, or the separate read cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pool {
    Policy,
    ReadCache,
}

/// State of a page's slot. Pages that still wait for their slot have no such state ([`Residency::Awaiting`]).
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
    /// The page has no slot yet, because its future slot still belongs to another page. `writer` is the write request,
    /// if any, that created the page and waits only for the slot.
    Awaiting { writer: Option<Index> },
    /// The page is being read from flash.
    Filling(Slot),
    /// The page is in the buffer memory.
    Ready(Slot),
}

/// Whether the policy (or, for its own pages, the separate read cache) can evict the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// The page may be chosen as a victim.
    Evictable,
    /// The policy holds the page, but the page is in flight and therefore pinned (D-36).
    InFlight,
    /// The page was evicted, trimmed or replaced, and is no longer in the policy.
    Left,
}

/// State of the page's program (its write to flash).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    None,
    /// The program must wait until an older copy of the logical page has been programmed.
    BehindOlder,
    Running {
        /// Whether the program writes contents that flash lacks.
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
    /// The page is written back ahead of its eviction, for example because a chip is idle.
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

    /// Whether the page must be programmed although it stays cached.
    #[inline]
    pub fn writes_cached(self) -> bool {
        matches!(self, Want::Flush | Want::WriteBack | Want::Merge)
    }
}

/// Membership of a page in a group: pages that are programmed together, as soon as all of them are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    None,
    /// The page is not complete, and its group waits for it. The number is that of the group.
    Missing(u32),
    /// The page is complete, but other pages of the group are not.
    Whole(u32),
}

/// A cached page.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Page {
    pub lpn: Lpn,
    /// The only unit (such as a chip) to which the page can be written. [`NO_HOME`](crate::device::NO_HOME) if there
    /// are several.
    pub home: ChipId,
    pub residency: Residency,
    pub pool: Pool,
    pub rank: Rank,
    /// Whether the page must be programmed because its contents differ from flash. Contents that a running program is
    /// writing count as being in flash.
    pub dirty: bool,
    pub program: Program,
    pub want: Want,
    pub group: Membership,
    /// Number of the request that causes the page's next flash operation (read or program).
    pub by: u32,
    /// The page that receives this page's slot.
    pub slot_successor: Option<Index>,
    /// The next older copy of the same logical page, which was evicted and must be programmed before this one.
    /// `younger` is the next younger copy.
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

    /// Whether there is nothing to do when the page gets its slot, except to complete the write that waits for the
    /// slot. This is so if the policy holds the page, no other access waits for it, and no operation on it is pending.
    #[inline(always)]
    pub fn is_plain_arrival(&self) -> bool {
        self.rank == Rank::InFlight
            && self.pool == Pool::Policy
            && self.waiters.is_empty()
            && self.want == Want::Nothing
    }

    /// Whether an evicted page can be released as soon as its running program ends. This is so if the page was neither
    /// trimmed nor written during the program, and neither an access nor another program waits for it. Must be called
    /// only for evicted pages.
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

    /// Whether eviction is the only reason for which the page may have to be programmed. This is so if it holds its
    /// slot and has no running program, no older copy, no group, and no other reason to be programmed.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.residency == Residency::Ready(Slot::Held)
            && !self.is_programming()
            && self.older.is_none()
            && self.want == Want::Nothing
            && self.group == Membership::None
    }

    /// Whether the page may have a next step. It has none if it is plain ([`Page::is_plain`]), clean and not evicted.
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
