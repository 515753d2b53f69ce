//! Converts the operations that the front end queued at one instant into requests to members, and into jobs on page
//! stripes.

use crate::array::clock::Clock;
use crate::array::features::{Every, Features};
use crate::array::io::ops::Chain;
use crate::array::io::Io;
use crate::array::jobs::{JobSpec, Jobs, Kind};
use crate::array::layout::plan::{count, Places};
use crate::array::layout::{Layout, Spot, Stripe};
use crate::array::member::response::Spent;
use crate::array::table::NONE;
use crate::request::Op;
use crate::units::Lpn;

/// A page of a stripe: the stripe, the page's data place in the stripe, and the number of the operation on the page
/// ([`NONE`] for a trim).
type Placed = (Stripe, u32, u32);

/// Adjacent stripes of one row in which the same places are written.
struct Stretch {
    stripe: Stripe,
    pages: u32,
    places: Places,
    /// Index of the first entry after the stretch in the sorted list of writes or trims.
    end: usize,
}

/// Operations queued at the current instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub ops: Vec<u32>,
    pub trims: Vec<Lpn>,
    /// Writes (or trims) of the batch, sorted by stripe and place.
    sorted: Vec<Placed>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty() && self.trims.is_empty()
    }

    pub fn clear(&mut self) {
        self.ops.clear();
        self.trims.clear();
    }

    /// Queues a page operation. `written` is its page if the operation is a write. Of the operations queued at one
    /// instant, all writes are executed before all trims. A trim is therefore dropped if a write of the same page is
    /// queued after it.
    #[inline]
    pub fn push(&mut self, id: u32, written: Option<Lpn>) {
        self.ops.push(id);
        if let Some(written) = written.filter(|_| !self.trims.is_empty()) {
            self.trims.retain(|&lpn| lpn != written);
        }
    }

    /// Queues page operations again that were in flight on a member when the member failed. They will then be executed
    /// by other members.
    pub fn again(&mut self, io: &mut Io, mut chain: Chain) {
        while let Some(op) = io.ops.take_first(&mut chain) {
            // A hedged read need not be repeated if its twin (the other read of the same page) completed first.
            match io.hedge.as_ref().is_some_and(|hedge| hedge.is_late(op)) {
                true => io.finish::<Every>(Chain::only(op), Spent::default(), true),
                false => self.ops.push(op),
            }
        }
    }

    /// Completes all queued operations as failed.
    pub fn refuse(&mut self, io: &mut Io, clock: &mut Clock) {
        for &op in &self.ops {
            io.finish::<Every>(Chain::only(op), Spent::default(), false);
        }
        self.clear();
        io.deliver(clock);
    }

    #[inline(always)]
    pub fn place<F: Features>(&mut self, io: &mut Io, jobs: &mut Jobs, clock: &mut Clock) {
        match self.ops[..] {
            [id] if self.trims.is_empty() && io.layout.has_rows() && !io.ops.get(id).is_read() => {
                self.ops.clear();
                write_one::<F>(io, jobs, id, clock);
            }
            _ => self.place_any::<F>(io, jobs, clock),
        }
    }

    /// Executes [`Batch::place`] in the general case: any number of queued operations, of any kind.
    #[inline(never)]
    fn place_any<F: Features>(&mut self, io: &mut Io, jobs: &mut Jobs, clock: &mut Clock) {
        io.runs.alone = self.ops.len() == 1;
        for &id in &self.ops {
            let op = *io.ops.get(id);
            if op.is_read() {
                read::<F>(io, jobs, id, op.lpn, clock);
            } else if io.layout.has_rows() {
                let (stripe, place) = io.layout.stripe_of(op.lpn);
                self.sorted.push((stripe, place, id));
            } else {
                let fua = op.fua | io.through;
                io.record.stats.data_pages_written += 1;
                io.join::<F>(io.layout.spot(op.lpn), id, (Op::Write, fua), clock);
            }
        }
        io.runs.alone = false;
        io.send_runs(clock);
        if !self.sorted.is_empty() {
            self.write_stripes::<F>(io, jobs, clock);
        }
        if !self.trims.is_empty() {
            self.trim::<F>(io, jobs, clock);
        }
        self.clear();
    }

    fn write_stripes<F: Features>(&mut self, io: &mut Io, jobs: &mut Jobs, clock: &mut Clock) {
        if !self.sorted.is_sorted() {
            self.sorted.sort_unstable();
        }
        let mut from = 0;
        while from < self.sorted.len() {
            let stretch = stretch(&io.layout, &self.sorted, from);
            let mut chain = Chain::EMPTY;
            let mut fua = io.through;
            for &(_, _, id) in &self.sorted[from..stretch.end] {
                fua |= io.ops.get(id).fua;
                io.ops.append(&mut chain, id);
            }
            from = stretch.end;
            let pages = stretch.pages * count(stretch.places);
            io.record.stats.data_pages_written += u64::from(pages);
            let (kind, place) = (Kind::Write(stretch.places), (stretch.stripe, stretch.pages));
            let what = JobSpec::new(kind, place, (chain, fua));
            jobs.add::<F>(io, what, clock);
        }
        self.sorted.clear();
    }

    /// Trims pages. In an array with parity, a stripe is trimmed only if all its data pages are trimmed at the same
    /// instant, so that its parity stays consistent (D-86).
    fn trim<F: Features>(&mut self, io: &mut Io, jobs: &mut Jobs, clock: &mut Clock) {
        self.trims.sort_unstable();
        self.trims.dedup();
        if !io.layout.has_rows() {
            for &lpn in &self.trims {
                io.join::<F>(io.layout.spot(lpn), NONE, (Op::Trim, false), clock);
            }
            return io.send_runs(clock);
        }
        self.sorted.extend(self.trims.iter().map(|&lpn| {
            let (stripe, place) = io.layout.stripe_of(lpn);
            (stripe, place, NONE)
        }));
        self.sorted.sort_unstable();
        let mut from = 0;
        while from < self.sorted.len() {
            let stretch = stretch(&io.layout, &self.sorted, from);
            from = stretch.end;
            let whole = count(stretch.places) as usize == io.layout.data();
            if io.layout.parity == 0 || whole {
                let (kind, place) = (Kind::Trim(stretch.places), (stretch.stripe, stretch.pages));
                let what = JobSpec::new(kind, place, (Chain::EMPTY, false));
                jobs.add::<F>(io, what, clock);
            }
        }
        self.sorted.clear();
    }
}

/// Writes a page if nothing else is queued. The result is the same as that of [`Batch::write_stripes`].
#[cfg_attr(not(debug_assertions), inline(always))]
fn write_one<F: Features>(io: &mut Io, jobs: &mut Jobs, id: u32, clock: &mut Clock) {
    let op = io.ops.get(id);
    let (stripe, place) = io.layout.stripe_of(op.lpn);
    let what = JobSpec {
        kind: Kind::Write(1 << place),
        stripe,
        pages: 1,
        chain: Chain::only(id),
        fua: op.fua | io.through,
    };
    io.record.stats.data_pages_written += 1;
    jobs.add::<F>(io, what, clock);
}

/// Returns the stretch (adjacent stripes in which the same places are written) that begins with the entry `from` of the
/// sorted list of pages.
fn stretch(layout: &Layout, sorted: &[Placed], from: usize) -> Stretch {
    let stripe_at = |from: usize| {
        let stripe = sorted[from].0;
        let mut end = from;
        let mut places: Places = 0;
        while end < sorted.len() && sorted[end].0 == stripe {
            places |= 1 << sorted[end].1;
            end += 1;
        }
        (stripe, places, end)
    };
    let (stripe, places, mut end) = stripe_at(from);
    let row = layout.row_of(stripe);
    let mut pages = 1;
    while end < sorted.len() {
        let (next, next_places, next_end) = stripe_at(end);
        let follows = next.0 == stripe.0 + pages && layout.row_of(next) == row;
        if !follows || next_places != places {
            break;
        }
        pages += 1;
        end = next_end;
    }
    Stretch {
        stripe,
        pages,
        places,
        end,
    }
}

fn read<F: Features>(io: &mut Io, jobs: &mut Jobs, id: u32, lpn: Lpn, clock: &mut Clock) {
    let (stripe, place) = io.layout.stripe_of(lpn);
    io.record.stats.data_pages_read += 1;
    match io.readable_copy(stripe, place) {
        Some(member) => {
            let lpn = Lpn(stripe.0);
            io.join::<F>(Spot { member, lpn }, id, (Op::Read, false), clock);
        }
        None => jobs.recover(io, id, (stripe, place), clock),
    }
}
