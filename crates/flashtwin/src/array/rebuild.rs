//! A new member gets what the missing one held, row after row, while the host goes on (D-89).
//!
//! A row that is there again is read and written like any other. One that is not is read and written
//! as if the member were missing. Which rows are there is kept as one bit a row, so that rows may
//! be rebuilt in any order and several at a time. Adjacent rows are rebuilt together as a *stretch*,
//! with one request to a member where its pages follow each other (D-106).

use super::condition::MemberRebuild;
use super::failure::MemberError;
use super::layout::Stripe;
use super::log::{ArrayEvent, SentFor};
use super::member::{Rows, State};
use super::plan::{sources, Places};
use super::raid::{set_earlier, Chain, Raid};
use super::stripes::{Kind, Phase};
use super::Array;
use crate::events::EventQueue;
use crate::request::Op;
use crate::units::Time;

/// Rows whose chunks are smaller than this together are rebuilt as one stretch.
const STRETCH_BYTES: u32 = 64 << 10;

/// How far the rebuilding of all replaced members has come.
#[derive(Clone, Debug)]
pub(super) struct Rebuild {
    /// Rows before this one are there again or under way.
    next_row: u32,
    /// Stretches under way.
    under_way: u32,
    /// The next stretch begins no earlier: the rate is limited.
    not_before: Time,
    /// When it will be looked at again.
    pending: Time,
    /// Of each member, the pages to be asked for together: first and how many.
    runs: Vec<(u32, u32)>,
}

impl Default for Rebuild {
    fn default() -> Rebuild {
        Rebuild {
            next_row: 0,
            under_way: 0,
            not_before: Time::ZERO,
            pending: Time::NEVER,
            runs: Vec::new(),
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
            if member.state == State::Rebuilding && !self.backend.broken {
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
        let chunk = self.layout.chunk_pages();
        let rows = (self.spec.member_pages() / u64::from(chunk)) as u32;
        if self.broken {
            return Err(MemberError::Lost);
        }
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
        self.history.rebuilds.push(MemberRebuild {
            member,
            from: now,
            until: None,
            pages_written: 0,
            pages: u64::from(rows) * u64::from(chunk),
        });
        self.begin_phase(now);
        self.tell(|_| ArrayEvent::Replaced { member });
        Ok(())
    }

    /// The next rows that members being rebuilt lack: the first, and how many.
    fn rows_to_rebuild(&self) -> Option<(u32, u32)> {
        let lacking_from = |from: u32| {
            let rebuilding = self.members.iter().filter(|m| m.state == State::Rebuilding);
            rebuilding.filter_map(|m| m.rows.lacking_from(from)).min()
        };
        let first = lacking_from(self.rebuild.next_row)?;
        let chunk_bytes = self.layout.chunk_pages() * self.spec.page_bytes();
        let most = (STRETCH_BYTES / chunk_bytes).max(1);
        let mut rows = 1;
        while rows < most && lacking_from(first + rows) == Some(first + rows) {
            rows += 1;
        }
        Some((first, rows))
    }

    /// Begins with as many stretches as may be under way, and when they may.
    pub(super) fn rebuild_on(&mut self, now: Time, events: &mut EventQueue) {
        while self.rebuild.under_way < self.spec.rebuild_depth {
            let Some((row, rows)) = self.rows_to_rebuild() else {
                return;
            };
            let at = self.rebuild.not_before;
            if now < at {
                let resource = self.members.len() + 1;
                return set_earlier(&mut self.rebuild.pending, resource, at, events);
            }
            self.rebuild.next_row = row + rows;
            self.rebuild.under_way += 1;
            self.rebuild.not_before = now + self.spec.rebuild_row_time() * u64::from(rows);
            let pages = self.layout.chunk_pages();
            // On flash, so that a power cut takes nothing that was safe before the member failed.
            let forced = (Chain::EMPTY, true);
            let stripe = Stripe(row * pages);
            self.add_job(Kind::Rebuild, stripe, rows * pages, forced, now, events);
        }
    }

    /// The instant set for the next stretch has come.
    pub(super) fn rebuild_due(&mut self, now: Time, events: &mut EventQueue) {
        self.rebuild.pending = Time::NEVER;
        self.rebuild_on(now, events);
    }

    // ---- a stretch ----

    /// Places of a stripe that could be written and are not there.
    fn to_rebuild(&self, stripe: Stripe) -> Places {
        self.places_where(|at| {
            let member = self.member_at(stripe, at);
            self.members[member].state == State::Rebuilding && !self.has(member, stripe)
        })
    }

    /// What is read, and what is written, to have in a row what members lack.
    fn plan_rebuild(&self, stripe: Stripe) -> (Places, Places) {
        let writes = self.to_rebuild(stripe);
        if self.layout.copies > 1 {
            let mut reads = 0;
            for place in (0..self.places()).filter(|at| writes >> at & 1 == 1) {
                let copy = self.readable_copy(stripe, place / self.layout.copies);
                reads |= 1 << copy.expect("a page has a copy that is there");
            }
            return (reads, writes);
        }
        let (data, parity) = (self.layout.data(), self.layout.parity as usize);
        let reads = match writes {
            0 => 0,
            _ => sources(data, parity, self.missing(stripe)),
        };
        (reads, writes)
    }

    /// The rows of a stretch, each by its first page stripe.
    fn rows_of(&self, id: u32) -> impl Iterator<Item = Stripe> {
        let (stripe, pages) = self.extent_of(id);
        let chunk = self.layout.chunk_pages();
        (stripe.0..stripe.0 + pages)
            .step_by(chunk as usize)
            .map(Stripe)
    }

    /// Has the stretch the rows it needs: reads what the missing is worked out from.
    pub(super) fn read_stretch(&mut self, id: u32, now: Time, events: &mut EventQueue) {
        let mut members: Places = 0;
        for stripe in self.rows_of(id) {
            let (reads, writes) = self.plan_rebuild(stripe);
            for at in (0..self.places()).filter(|at| writes >> at & 1 == 1) {
                members |= 1 << self.member_at(stripe, at);
            }
            self.stats.pages_read_to_rebuild +=
                u64::from(reads.count_ones() * self.layout.chunk_pages());
            self.extend_runs(id, stripe, reads, Op::Read, now, events);
        }
        self.job_goes_on(id, Phase::Reading, members);
        if !self.send_stretch(id, Op::Read, now, events) {
            self.write_phase(id, now, events);
        }
    }

    /// Writes it to members that still lack it.
    pub(super) fn write_stretch(&mut self, id: u32, now: Time, events: &mut EventQueue) {
        let members = self.writes_of(id);
        let mut still: Places = 0;
        for stripe in self.rows_of(id) {
            let lacking = self.to_rebuild(stripe);
            let mut writes = 0;
            for at in (0..self.places()).filter(|at| lacking >> at & 1 == 1) {
                let member: Places = 1 << self.member_at(stripe, at);
                if members & member != 0 {
                    still |= member;
                    writes |= 1 << at;
                }
            }
            self.extend_runs(id, stripe, writes, Op::Write, now, events);
        }
        self.job_goes_on(id, Phase::Writing, still);
        if !self.send_stretch(id, Op::Write, now, events) {
            self.end(id, now, events);
        }
    }

    /// Adds a row to what is asked of the members at these places.
    fn extend_runs(
        &mut self,
        id: u32,
        stripe: Stripe,
        places: Places,
        op: Op,
        now: Time,
        events: &mut EventQueue,
    ) {
        let chunk = self.layout.chunk_pages();
        self.rebuild.runs.resize(self.members.len(), (0, 0));
        for at in (0..self.places()).filter(|at| places >> at & 1 == 1) {
            let member = self.member_at(stripe, at);
            let (first, pages) = self.rebuild.runs[member];
            if pages > 0 && first + pages == stripe.0 {
                self.rebuild.runs[member].1 += chunk;
            } else {
                self.send_rows(id, member, op, now, events);
                self.rebuild.runs[member] = (stripe.0, chunk);
            }
        }
    }

    fn send_rows(&mut self, id: u32, member: usize, op: Op, now: Time, events: &mut EventQueue) {
        let (first, pages) = std::mem::take(&mut self.rebuild.runs[member]);
        if pages == 0 {
            return;
        }
        self.one_more_part(id);
        let fua = op == Op::Write;
        let to = (id, Chain::EMPTY);
        let part = self.send(member, (first, pages), op, fua, to, now, events);
        self.tell(|raid| ArrayEvent::Sent {
            part,
            member,
            first,
            pages,
            op,
            on_behalf: SentFor::Rows {
                job: id,
                places: raid.places_of(member, first, pages),
            },
            number: raid.number_at(member),
        });
    }

    /// Sends what is left of a stretch; false if nothing of it is under way.
    fn send_stretch(&mut self, id: u32, op: Op, now: Time, events: &mut EventQueue) -> bool {
        for member in 0..self.rebuild.runs.len() {
            self.send_rows(id, member, op, now, events);
        }
        self.parts_left(id) > 0
    }

    /// The place of a member in each of these rows.
    fn places_of(&self, member: usize, first: u32, pages: u32) -> Vec<u32> {
        let rows = (first..first + pages).step_by(self.layout.chunk_pages() as usize);
        let place =
            |row: u32| (0..self.places()).find(|&at| self.member_at(Stripe(row), at) == member);
        rows.filter_map(place).collect()
    }

    /// The job on a stretch is done: these members, as bits, have it now, unless it could not be
    /// written.
    pub(super) fn stretch_rebuilt(&mut self, id: u32, written: bool, now: Time) {
        self.rebuild.under_way -= 1;
        if !written {
            return;
        }
        let members = self.writes_of(id);
        let (first, pages) = self.extent_of(id);
        let chunk = self.layout.chunk_pages();
        let rows = self.layout.row_of(first)..self.layout.row_of(first) + pages / chunk;
        for member in (0..self.members.len()).filter(|member| members >> member & 1 == 1) {
            let m = &mut self.members[member];
            let before = m.rows.there;
            let whole = rows.clone().fold(false, |_, row| m.rows.add(row));
            let new = u64::from(m.rows.there - before) * u64::from(chunk);
            self.stats.pages_rebuilt += new;
            let mut rebuilds = self.history.rebuilds.iter_mut().rev();
            let record = rebuilds.find(|record| record.member == member);
            if let Some(record) = record {
                record.pages_written += new;
                record.until = whole.then_some(now);
            }
            if whole {
                m.state = State::There;
                m.rows = Rows::default();
                self.count_members();
                self.begin_phase(now);
                self.tell(|_| ArrayEvent::Rebuilt { member });
            }
        }
    }
}
