//! Rebuilds a replaced member row by row under host load (D-89). A *stretch* is a number of adjacent rows that are
//! read and written together.

use crate::array::clock::Clock;
use crate::array::io::requests::Origin;
use crate::array::io::{Io, Order};
use crate::array::layout::plan::{each, sources, Places};
use crate::array::layout::Stripe;
use crate::array::member::rows::Rows;
use crate::array::member::State;
use crate::array::record::log::{ArrayEvent, SentFor};
use crate::request::Op;
use crate::units::Time;

/// Adjacent rows, given by their first page stripe and their number of page stripes.
type Extent = (Stripe, u32);

/// Collects the pages of a stretch into requests. `runs` has, for each member, the first page and the number of pages
/// of the member's next request.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    runs: Vec<(u32, u32)>,
    /// Number of requests sent.
    sent: u32,
}

impl Stretch {
    pub fn new(members: usize) -> Stretch {
        Stretch {
            runs: vec![(0, 0); members],
            sent: 0,
        }
    }

    /// Reads the pages from which the missing pages of a stretch are reconstructed. Returns the members that lack
    /// pages, as bits, and the number of requests sent.
    pub fn read(
        &mut self,
        io: &mut Io,
        job: u32,
        extent: Extent,
        clock: &mut Clock,
    ) -> (Places, u32) {
        let mut members: Places = 0;
        for stripe in rows_of(io, extent) {
            let (reads, writes) = plan(io, stripe);
            for at in each(writes) {
                members |= 1 << io.layout.member_at(stripe, at);
            }
            io.record.stats.pages_read_to_rebuild +=
                u64::from(reads.count_ones() * io.layout.chunk_pages());
            self.extend(io, job, stripe, (reads, Op::Read), clock);
        }
        (members, self.send(io, job, Op::Read, clock))
    }

    /// Writes the reconstructed pages to those of `members` that still lack them. Returns these members, as bits, and
    /// the number of requests sent.
    pub fn write(
        &mut self,
        io: &mut Io,
        job: u32,
        extent: Extent,
        members: Places,
        clock: &mut Clock,
    ) -> (Places, u32) {
        let mut still: Places = 0;
        for stripe in rows_of(io, extent) {
            let mut writes = 0;
            for at in each(lacking(io, stripe)) {
                let member: Places = 1 << io.layout.member_at(stripe, at);
                if members & member != 0 {
                    still |= member;
                    writes |= 1 << at;
                }
            }
            self.extend(io, job, stripe, (writes, Op::Write), clock);
        }
        (still, self.send(io, job, Op::Write, clock))
    }

    /// Adds the pages of a row to the runs of the members at these places. (The run of a member has the pages of its
    /// next request.) If the pages do not continue a run, this run is sent first.
    fn extend(
        &mut self,
        io: &mut Io,
        job: u32,
        stripe: Stripe,
        (places, op): (Places, Op),
        clock: &mut Clock,
    ) {
        let chunk = io.layout.chunk_pages();
        for at in each(places) {
            let member = io.layout.member_at(stripe, at);
            let (first, pages) = self.runs[member];
            if pages > 0 && first + pages == stripe.0 {
                self.runs[member].1 += chunk;
            } else {
                self.send_rows(io, job, member, op, clock);
                self.runs[member] = (stripe.0, chunk);
            }
        }
    }

    fn send_rows(&mut self, io: &mut Io, job: u32, member: usize, op: Op, clock: &mut Clock) {
        let (first, pages) = std::mem::take(&mut self.runs[member]);
        if pages == 0 {
            return;
        }
        self.sent += 1;
        let order = Order {
            member,
            pages: (first, pages),
            op,
            fua: op == Op::Write,
            origin: Origin::Job(job),
        };
        let layout = io.layout.clone();
        io.send(order, clock, |_| {
            // For each row of the request, the place of the member in this row.
            let rows = (first..first + pages).step_by(layout.chunk_pages() as usize);
            let place = |row: u32| {
                (0..layout.places()).find(|&at| layout.member_at(Stripe(row), at) == member)
            };
            SentFor::Rows {
                job,
                places: rows.filter_map(place).collect(),
            }
        });
    }

    /// Sends the remaining runs (consecutive pages on one member) of a stretch. Returns the total number of requests
    /// sent for the stretch.
    fn send(&mut self, io: &mut Io, job: u32, op: Op, clock: &mut Clock) -> u32 {
        for member in 0..self.runs.len() {
            self.send_rows(io, job, member, op, clock);
        }
        std::mem::take(&mut self.sent)
    }
}

/// Returns the first page stripe of each row of a stretch.
fn rows_of(io: &Io, (first, pages): Extent) -> impl Iterator<Item = Stripe> {
    let chunk = io.layout.chunk_pages() as usize;
    (first.0..first.0 + pages).step_by(chunk).map(Stripe)
}

/// Returns the places of a stripe whose pages are missing on members that are being rebuilt.
fn lacking(io: &Io, stripe: Stripe) -> Places {
    io.layout.places_where(|at| {
        let member = io.layout.member_at(stripe, at);
        io.members[member].state == State::Rebuilding && !io.has(member, stripe)
    })
}

/// Returns the places to read and the places to write in order to restore the missing pages of a row.
fn plan(io: &Io, stripe: Stripe) -> (Places, Places) {
    let (layout, writes) = (&io.layout, lacking(io, stripe));
    if layout.copies > 1 {
        let mut reads = 0;
        for place in each(writes) {
            let copy = io.readable_copy(stripe, place / layout.copies);
            reads |= 1 << copy.expect("a page has a copy that is there");
        }
        return (reads, writes);
    }
    let reads = match writes {
        0 => 0,
        _ => sources(layout.data(), layout.parity as usize, io.missing(stripe)),
    };
    (reads, writes)
}

/// Marks the rows of a written stretch as restored on these members, given as bits.
pub(super) fn rebuilt(io: &mut Io, (first, pages): Extent, members: Places, now: Time) {
    let chunk = io.layout.chunk_pages();
    let first = io.layout.row_of(first);
    let rows = first..first + pages / chunk;
    for member in each(members).map(|member| member as usize) {
        let m = &mut io.members[member];
        let before = m.rows.there;
        let whole = rows.clone().fold(false, |_, row| m.rows.add(row));
        let new = u64::from(m.rows.there - before) * u64::from(chunk);
        io.record.stats.pages_rebuilt += new;
        let mut rebuilds = io.record.history.rebuilds.iter_mut().rev();
        let record = rebuilds.find(|record| record.member == member);
        if let Some(record) = record {
            record.pages_written += new;
            record.until = whole.then_some(now);
        }
        if whole {
            m.state = State::There;
            m.rows = Rows::default();
            io.members.count();
            io.choose_features();
            io.begin_phase(now);
            io.record.log.add(|| ArrayEvent::Rebuilt { member });
        }
    }
}
