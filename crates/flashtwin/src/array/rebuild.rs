//! A new member gets what the missing one held, row after row, while the host goes on (D-89).
//!
//! A row that is there again is read and written like any other. One that is not is read and written
//! as if the member were missing. Which rows are there is kept as one bit a row, so that rows may
//! be rebuilt in any order and several at a time.

use super::failure::MemberError;
use super::layout::Stripe;
use super::log::ArrayEvent;
use super::member::{Rows, State};
use super::raid::{set_earlier, Chain, Raid};
use super::stripes::Kind;
use super::Array;
use crate::events::EventQueue;
use crate::units::Time;

/// How far the rebuilding of all replaced members has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rebuild {
    /// Rows before this one are there again or under way.
    next_row: u32,
    under_way: u32,
    /// The next row begins no earlier: the rate is limited.
    not_before: Time,
    /// When it will be looked at again.
    pending: Time,
}

impl Default for Rebuild {
    fn default() -> Rebuild {
        Rebuild {
            next_row: 0,
            under_way: 0,
            not_before: Time::ZERO,
            pending: Time::NEVER,
        }
    }
}

impl Array {
    /// A new, empty member takes the place of a failed one. What belongs there is worked out from the
    /// others, as `array.rebuild_depth` and `array.rebuild_mib_per_s` say.
    pub fn replace_member(&mut self, member: usize) -> Result<(), MemberError> {
        let now = self.now();
        self.backend.replace(member, now)?;
        self.backend.rebuild_on(now, &mut self.events);
        Ok(())
    }

    /// Rows that are there again and rows in all, of the members being rebuilt; `None` if none is.
    pub fn rebuild_progress(&self) -> Option<(u64, u64)> {
        let mut progress = None;
        for member in &self.backend.members {
            if member.state == State::Rebuilding {
                let (done, total) = progress.unwrap_or((0, 0));
                let rows = &member.rows;
                progress = Some((done + u64::from(rows.there), total + u64::from(rows.of)));
            }
        }
        progress
    }
}

impl Raid {
    fn replace(&mut self, member: usize, now: Time) -> Result<(), MemberError> {
        let members = self.members.len();
        let rows = (self.spec.member_pages() / u64::from(self.layout.chunk_pages())) as u32;
        let Some(m) = self.members.get_mut(member) else {
            return Err(MemberError::Unknown { member, members });
        };
        if m.state != State::Failed {
            return Err(MemberError::Present { member });
        }
        m.ssd.advance(now);
        m.ssd.reset_flash_report();
        m.state = State::Rebuilding;
        m.rows = Rows::none(rows);
        self.rebuild.next_row = 0;
        self.tell(|_| ArrayEvent::Replaced { member });
        Ok(())
    }

    /// The next row that a member being rebuilt lacks.
    fn row_to_rebuild(&self) -> Option<u32> {
        let rebuilding = self.members.iter().filter(|m| m.state == State::Rebuilding);
        let lacking = rebuilding.filter_map(|m| m.rows.lacking_from(self.rebuild.next_row));
        lacking.min()
    }

    /// Begins with as many rows as may be under way, and when they may.
    pub(super) fn rebuild_on(&mut self, now: Time, events: &mut EventQueue) {
        while self.rebuild.under_way < self.spec.rebuild_depth {
            let Some(row) = self.row_to_rebuild() else {
                return;
            };
            let at = self.rebuild.not_before;
            if now < at {
                let resource = self.members.len() + 1;
                return set_earlier(&mut self.rebuild.pending, resource, at, events);
            }
            self.rebuild.next_row = row + 1;
            self.rebuild.under_way += 1;
            self.rebuild.not_before = now + self.spec.rebuild_row_time();
            let pages = self.layout.chunk_pages();
            // On flash, so that a power cut takes nothing that was safe before the member failed.
            let forced = (Chain::EMPTY, true);
            self.add_job(
                Kind::Rebuild,
                Stripe(row * pages),
                pages,
                forced,
                now,
                events,
            );
        }
    }

    /// The instant set for the next row has come.
    pub(super) fn rebuild_due(&mut self, now: Time, events: &mut EventQueue) {
        self.rebuild.pending = Time::NEVER;
        self.rebuild_on(now, events);
    }

    /// The job on a row is done: it was written to these members.
    pub(super) fn row_rebuilt(&mut self, stripe: Stripe, members: &[usize]) {
        let row = self.layout.row_of(stripe);
        self.rebuild.under_way -= 1;
        for &member in members {
            let m = &mut self.members[member];
            if m.rows.add(row) {
                m.state = State::There;
                m.rows = Rows::default();
                self.tell(|_| ArrayEvent::Rebuilt { member });
            }
        }
    }
}
