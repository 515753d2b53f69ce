//! What the front end queued at one instant becomes requests to members and jobs on stripes.

use super::layout::{Spot, Stripe};
use super::plan::Places;
use super::raid::{Chain, Raid};
use super::stripes::{Kind, NONE};
use crate::events::EventQueue;
use crate::request::Op;
use crate::units::{Lpn, Time};

/// A page of a stripe, at a data place; and the operation on it, if there is one.
type Placed = (Stripe, u32, u32);

/// Stripes of one row that follow each other, all with the same places.
struct Stretch {
    stripe: Stripe,
    pages: u32,
    places: Places,
    /// Where the next one begins.
    end: usize,
}

impl Raid {
    pub(super) fn place(&mut self, now: Time, events: &mut EventQueue) {
        if self.broken {
            return self.refuse(now, events);
        }
        self.leave_idle(now, events);
        if self.swan.is_some() {
            return self.place_in_volume(now, events);
        }
        let mut batch = std::mem::take(&mut self.batch);
        self.batch_of_one = batch.len() == 1;
        for &id in &batch {
            let op = self.ops[id as usize].0;
            if op.is_read() {
                self.read(id, op.lpn, now, events);
            } else if self.has_rows() {
                let (stripe, place) = self.layout.stripe_of(op.lpn);
                self.sorted.push((stripe, place, id));
            } else {
                let fua = op.fua | self.through;
                self.stats.data_pages_written += 1;
                self.join(self.layout.spot(op.lpn), id, Op::Write, fua, now, events);
            }
        }
        self.batch_of_one = false;
        batch.clear();
        self.batch = batch;
        self.send_runs(now, events);
        if !self.sorted.is_empty() {
            self.write_stripes(now, events);
        }
        if !self.trims.is_empty() {
            self.trim_batch(now, events);
        }
        self.deliver(now, events);
    }

    /// There is redundancy to be kept: what changes a row happens one after the other.
    fn has_rows(&self) -> bool {
        self.layout.parity > 0 || self.layout.copies > 1
    }

    fn read(&mut self, id: u32, lpn: Lpn, now: Time, events: &mut EventQueue) {
        let (stripe, place) = self.layout.stripe_of(lpn);
        self.stats.data_pages_read += 1;
        match self.readable_copy(stripe, place) {
            Some(member) => {
                let spot = Spot {
                    member,
                    lpn: Lpn(stripe.0),
                };
                self.join(spot, id, Op::Read, false, now, events);
            }
            None => self.recover_page(id, stripe, place, now, events),
        }
    }

    /// The member to read a page from: where it lies, or of several copies that of the member with
    /// the fewest requests; `None` if it must be worked out.
    pub(super) fn readable_copy(&self, stripe: Stripe, place: u32) -> Option<usize> {
        let first = self.layout.data_member(stripe, place);
        let copies = first..first + self.layout.copies as usize;
        let copies = copies.filter(|&member| self.has(member, stripe));
        if !self.reads_around_gc() {
            return copies.min_by_key(|&member| self.members[member].under_way);
        }
        let from = copies.min_by_key(|&member| {
            let collects = self.collects_at(member, stripe);
            (collects, self.members[member].under_way)
        })?;
        let around = self.layout.parity > 0
            && self.collects_at(from, stripe)
            && self.others_are_free(stripe, place);
        (!around).then_some(from)
    }

    /// The stretch that begins at `from`, of places sorted by stripe.
    fn stretch(&self, sorted: &[Placed], from: usize) -> Stretch {
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
        let row = self.layout.row_of(stripe);
        let mut pages = 1;
        while end < sorted.len() {
            let (next, next_places, next_end) = stripe_at(end);
            let follows = next.0 == stripe.0 + pages && self.layout.row_of(next) == row;
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

    fn write_stripes(&mut self, now: Time, events: &mut EventQueue) {
        let mut sorted = std::mem::take(&mut self.sorted);
        if !sorted.is_sorted() {
            sorted.sort_unstable();
        }
        let mut from = 0;
        while from < sorted.len() {
            let stretch = self.stretch(&sorted, from);
            let mut chain = Chain::EMPTY;
            let mut fua = self.through;
            for &(_, _, id) in &sorted[from..stretch.end] {
                fua |= self.ops[id as usize].0.fua;
                self.append(&mut chain, id);
            }
            let (stripe, pages, places) = (stretch.stripe, stretch.pages, stretch.places);
            self.stats.data_pages_written += u64::from(pages * places.count_ones());
            let kind = Kind::Write(places);
            self.add_job(kind, stripe, pages, (chain, fua), now, events);
            from = stretch.end;
        }
        sorted.clear();
        self.sorted = sorted;
    }

    /// Forgets pages; with parity only where all data of a stripe goes at once, so that its parity
    /// stays true (D-86).
    fn trim_batch(&mut self, now: Time, events: &mut EventQueue) {
        let mut trims = std::mem::take(&mut self.trims);
        trims.sort_unstable();
        trims.dedup();
        if self.has_rows() {
            let mut sorted = std::mem::take(&mut self.sorted);
            sorted.extend(trims.iter().map(|&lpn| {
                let (stripe, place) = self.layout.stripe_of(lpn);
                (stripe, place, NONE)
            }));
            sorted.sort_unstable();
            let mut from = 0;
            while from < sorted.len() {
                let stretch = self.stretch(&sorted, from);
                from = stretch.end;
                let whole = stretch.places.count_ones() as usize == self.layout.data();
                if self.layout.parity == 0 || whole {
                    let kind = Kind::Trim(stretch.places);
                    let nobody = (Chain::EMPTY, false);
                    self.add_job(kind, stretch.stripe, stretch.pages, nobody, now, events);
                }
            }
            sorted.clear();
            self.sorted = sorted;
        } else {
            for &lpn in &trims {
                self.join(self.layout.spot(lpn), NONE, Op::Trim, false, now, events);
            }
            self.send_runs(now, events);
        }
        trims.clear();
        self.trims = trims;
    }
}
