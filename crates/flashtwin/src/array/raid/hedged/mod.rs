//! Sends the hedges of reads: requests for the same page to another copy, or to the rest of its stripe.

use crate::array::clock::Clock;
use crate::array::features::Every;
use crate::array::io::ops::Chain;
use crate::array::io::Io;
use crate::array::jobs::{JobSpec, Jobs, Kind};
use crate::array::layout::{Spot, Stripe};
use crate::array::record::log::ArrayEvent;
use crate::array::table::NONE;
use crate::request::Op;
use crate::units::Lpn;

/// Consecutive pages of a request to a member. All of them are in the same row and at the same place of their stripes.
struct Pages {
    stripe: Stripe,
    place: u32,
    /// The operation that reads the first of these pages. The operations for the other pages follow in the chain of the
    /// request. `count` is the number of pages.
    first: u32,
    count: u32,
}

/// Called at the alarm of hedging: hedges the reads that are due to be hedged.
pub(super) fn due(io: &mut Io, jobs: &mut Jobs, clock: &mut Clock) {
    if let Some(hedge) = &mut io.hedge {
        hedge.alarm.went_off();
    }
    while let Some((request, sent)) = io
        .hedge
        .as_mut()
        .and_then(|hedge| hedge.take_due(clock.now))
    {
        let Some((member, chain)) = io.host_reads(request, sent) else {
            continue;
        };
        let mut at = chain.head;
        while at != NONE {
            let (pages, next) = pages_from(io, at);
            if pages.count > 0 {
                hedge_pages(io, jobs, member, &pages, clock);
            }
            at = next;
        }
    }
    io.send_runs(clock);
    if let Some(hedge) = &mut io.hedge {
        hedge.wake(clock);
    }
}

/// Returns the consecutive pages that begin with the page of the operation `first` and are not hedged yet, and the
/// operation that follows in the chain. There are no such pages if `first` itself is hedged already.
fn pages_from(io: &Io, first: u32) -> (Pages, u32) {
    let layout = &io.layout;
    let (stripe, place) = layout.stripe_of(io.ops.get(first).lpn);
    let (mut at, mut count) = (first, 0);
    while at != NONE {
        let (next, its_place) = layout.stripe_of(io.ops.get(at).lpn);
        let follows = next.0 == stripe.0 + count
            && its_place == place
            && layout.row_of(next) == layout.row_of(stripe);
        if !follows || !io.hedge.as_ref().is_some_and(|hedge| hedge.is_alone(at)) {
            break;
        }
        count += 1;
        at = io.ops.after(at);
    }
    if count == 0 {
        at = io.ops.after(first);
    }
    let pages = Pages {
        stripe,
        place,
        first,
        count,
    };
    (pages, at)
}

/// Hedges pages that are being read from `member`: reads them also from other members, if these can provide the data.
fn hedge_pages(io: &mut Io, jobs: &mut Jobs, member: usize, pages: &Pages, clock: &mut Clock) {
    let &Pages {
        stripe,
        place,
        first,
        count,
    } = pages;
    let other = match io.layout.copies {
        1 => {
            let without = io.missing(stripe) | 1 << place;
            if without.count_ones() > io.layout.parity {
                return;
            }
            None
        }
        _ => {
            let copies = io.layout.copies_at(stripe, place);
            let others = copies.filter(|&m| m != member && io.has(m, stripe));
            let Some(other) = others.min_by_key(|&m| io.members[m].in_flight) else {
                return;
            };
            Some(other)
        }
    };
    let mut chain = Chain::EMPTY;
    let mut op = first;
    for lpn in (stripe.0..stripe.0 + count).map(Lpn) {
        let twin = io.ops.add(*io.ops.get(op));
        io.record.stats.pages_hedged += 1;
        if let Some(hedge) = &mut io.hedge {
            hedge.pair(op, twin);
        }
        io.record.log.add(|| ArrayEvent::Hedged { op, twin });
        match other {
            Some(member) => io.join::<Every>(Spot { member, lpn }, twin, (Op::Read, false), clock),
            None => io.ops.append(&mut chain, twin),
        }
        op = io.ops.after(op);
    }
    if other.is_none() {
        let kind = Kind::Recover(1 << place);
        let what = JobSpec::new(kind, (stripe, count), (chain, false));
        jobs.add::<Every>(io, what, clock);
    }
}

#[cfg(test)]
mod tests;
