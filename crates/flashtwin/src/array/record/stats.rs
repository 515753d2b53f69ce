//! Counters of an array.

use crate::request::Op;

/// Counters of the array itself, in addition to its members' counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RaidStats {
    /// Pages that the front end read from the array.
    pub data_pages_read: u64,
    /// Pages read from members, for any purpose.
    pub member_pages_read: u64,
    /// Pages written to members, for any purpose.
    pub member_pages_written: u64,
    /// Pages that the front end wrote to the array.
    pub data_pages_written: u64,
    /// Parity pages written together with data pages of the front end.
    pub parity_pages_written: u64,
    /// Pages read to compute parity.
    pub pages_read_for_parity: u64,
    /// Pages reconstructed from the other pages of their stripe.
    pub pages_recovered: u64,
    /// Pages that were also read from other members (hedged), because the first read had not completed in time.
    pub pages_hedged: u64,
    /// Hedged pages of which the second read (the hedge) completed before the first.
    pub hedges_won: u64,
    /// Pages that hedging read from members in vain: the other read of the same page had completed first.
    pub pages_read_in_vain: u64,
    /// Pages read from members in order to rebuild other members.
    pub pages_read_to_rebuild: u64,
    /// Pages written to members that replaced failed ones.
    pub pages_rebuilt: u64,
    /// Page stripes written, by the method that gives the new parity, in this order: whole stripe; read-modify-write;
    /// reconstruct-write; with reconstruction of missing data; part of a stripe without parity.
    pub stripes: [u64; 5],
    /// Number of times that a job (such as a write) waited for a row, because another job was changing the row.
    pub row_waits: u64,
    /// Valid pages that a SWAN array moved to other segments.
    pub pages_moved: u64,
    /// Segments that a SWAN array trimmed after their valid pages were moved.
    pub segments_trimmed: u64,
    /// Messages PARTICIPATE_GGC of the coordination protocol.
    pub gc_participations: u64,
    /// Messages REQUEST_GGC.
    pub gc_requests: u64,
    /// Messages FORCE_GC.
    pub gc_forced: u64,
    /// Messages that order a member to stop collecting.
    pub gc_left_off: u64,
}

impl RaidStats {
    /// Counts pages that are sent to a member.
    #[inline(always)]
    pub(crate) fn pages_sent(&mut self, op: Op, pages: u32) {
        match op {
            Op::Read => self.member_pages_read += u64::from(pages),
            Op::Write => self.member_pages_written += u64::from(pages),
            Op::Trim | Op::Flush => {}
        }
    }
}
