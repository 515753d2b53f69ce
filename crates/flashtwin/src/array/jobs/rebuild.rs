//! Order and pace of rebuilding rows.
//!
//! A restored row of a member is read and written like any row of a complete member. For a row that is not restored
//! yet, the member counts as missing. One bit per row records whether the row is restored, so rows can be rebuilt in
//! any order and several at a time. Adjacent rows are rebuilt together as a *stretch*. Pages of a stretch that are
//! consecutive on a member are one request to it (D-106).

use crate::array::clock::{Alarm, Clock};
use crate::array::member::{Members, State};
use crate::spec::ArraySpec;
use crate::units::Time;

/// Largest number of bytes of a stretch on one member. A stretch has as many adjacent rows as fit into this size, but
/// at least one.
const STRETCH_BYTES: u32 = 64 << 10;

/// Progress of the rebuild of all replaced members.
#[derive(Clone, Debug)]
pub(super) struct Rebuild {
    /// All rows before this one are restored or being rebuilt.
    pub next_row: u32,
    /// Number of running stretches.
    pub in_flight: u32,
    /// Earliest instant at which the next stretch may begin, so that the limit on the rate of rebuilding is kept.
    not_before: Time,
    /// Alarm for the next stretch.
    pub alarm: Alarm,
    depth: u32,
    row_time: Time,
    /// Largest number of rows in a stretch.
    most: u32,
}

impl Rebuild {
    pub fn new(spec: &ArraySpec, resource: usize) -> Rebuild {
        Rebuild {
            next_row: 0,
            in_flight: 0,
            not_before: Time::ZERO,
            alarm: Alarm::of(resource),
            depth: spec.rebuild_depth,
            row_time: spec.rebuild_row_time(),
            most: (STRETCH_BYTES / spec.chunk_pages.saturating_mul(spec.page_bytes())).max(1),
        }
    }

    /// Returns the stretch whose rebuild begins now, as its first row and number of rows. `None` if no stretch may
    /// begin yet, or if none is left. Sets the alarm if the limit on the rate delays the next stretch.
    pub fn next(&mut self, members: &Members, clock: &mut Clock) -> Option<(u32, u32)> {
        if self.in_flight >= self.depth {
            return None;
        }
        let (row, rows) = self.lacking_rows(members)?;
        if clock.now < self.not_before {
            self.alarm.set(self.not_before, clock);
            return None;
        }
        self.next_row = row + rows;
        self.in_flight += 1;
        self.not_before = clock.now + self.row_time * u64::from(rows);
        Some((row, rows))
    }

    /// Returns the next adjacent rows that a member under rebuild lacks, as first row and number of rows. `None` if no
    /// row is missing.
    fn lacking_rows(&self, members: &Members) -> Option<(u32, u32)> {
        let lacking_from = |from: u32| {
            let rebuilding = members.iter().filter(|m| m.state == State::Rebuilding);
            rebuilding.filter_map(|m| m.rows.lacking_from(from)).min()
        };
        let first = lacking_from(self.next_row)?;
        let mut rows = 1;
        while rows < self.most && lacking_from(first + rows) == Some(first + rows) {
            rows += 1;
        }
        Some((first, rows))
    }
}
