//! Hedged reads (Dean, Barroso, "The Tail at Scale", CACM 2013). If a member has not returned a page after a certain
//! time, the page is also read elsewhere: from another copy, or from the rest of its stripe. The first response to
//! arrive is used.
//!
//! A page that is read twice is two operations of the back end; each is the *twin* of the other. The operation that
//! completes first is passed to the front end. Its twin is then *late* and is dropped (D-109).

use std::collections::VecDeque;

use crate::array::clock::{Alarm, Clock};
use crate::array::layout::Layout;
use crate::array::record::stats::RaidStats;
use crate::array::table::NONE;
use crate::spec::{ArraySpec, Reads};
use crate::units::Time;

/// Marks of a late operation: its twin (the other read of the same page) completed first. [`LATE`] marks an original
/// read, [`LATE_HEDGE`] a hedge.
const LATE: u32 = NONE - 1;
const LATE_HEDGE: u32 = NONE - 2;
/// Flag that is added to the number of an operation's twin (the other read of the same page) if the twin is the hedge.
const IS_HEDGE: u32 = 1 << 31;

/// Number of reads after which the quantile of the read latencies is computed again.
const WINDOW: u32 = 256;
/// Number of histogram buckets for each doubling of the response time.
const PARTS: u64 = 16;

/// Delay before a read is hedged.
#[derive(Clone, Debug)]
enum After {
    /// A fixed delay.
    Fixed(Time),
    /// The delay is a quantile of the latencies of earlier reads. The quantile is given in `millionths`. Recent reads
    /// have more weight.
    Share {
        millionths: u64,
        /// Number of reads in each latency bucket.
        counts: Vec<u64>,
        seen: u32,
        now: Time,
    },
}

impl After {
    fn bucket(time: Time) -> usize {
        let ns = time.to_ns().max(PARTS);
        let doubled = ns.ilog2() - PARTS.ilog2();
        (u64::from(doubled) * PARTS + (ns >> doubled)) as usize
    }

    /// Returns the longest time in a bucket.
    fn end_of(bucket: usize) -> Time {
        let bucket = bucket as u64;
        let doubled = (bucket / PARTS).saturating_sub(1);
        Time::from_ns((bucket - doubled * PARTS + 1) << doubled)
    }

    fn took(&mut self, time: Time) {
        let After::Share {
            millionths,
            counts,
            seen,
            now,
        } = self
        else {
            return;
        };
        let bucket = After::bucket(time);
        if counts.len() <= bucket {
            counts.resize(bucket + 1, 0);
        }
        counts[bucket] += 1 << 16;
        *seen += 1;
        if *seen < WINDOW {
            return;
        }
        *seen = 0;
        let all: u64 = counts.iter().sum();
        let mut below = 0;
        let slower = |count: &u64| {
            below += count;
            u128::from(below) * 1_000_000 >= u128::from(all) * u128::from(*millionths)
        };
        let bucket = counts.iter().position(slower).unwrap_or(0);
        *now = After::end_of(bucket);
        counts.iter_mut().for_each(|count| *count /= 2);
    }

    fn now(&self) -> Time {
        match self {
            After::Fixed(time) => *time,
            After::Share { now, .. } => *now,
        }
    }
}

/// Reads that may have to be hedged.
#[derive(Clone, Debug)]
pub(crate) struct Hedge {
    after: After,
    /// Requests to members, in the order of the instants at which they are to be hedged. Each entry has this instant,
    /// the number of the request, and the instant at which the request was sent. Numbers are reused, so the last two
    /// together identify the request.
    waiting: VecDeque<(Time, u32, Time)>,
    /// Alarm for the next request to hedge.
    pub alarm: Alarm,
    /// For each page operation, one of: the number of its twin (the other read of the same page), with a flag if the
    /// twin is the hedge; [`NONE`] if it has no twin; a mark if the operation is late.
    twins: Vec<u32>,
}

impl Hedge {
    /// Creates the state of hedging; `None` if reads are not hedged. `resource` is the number of the event queue's
    /// resource for hedging.
    pub fn of(spec: &ArraySpec, resource: usize) -> Option<Box<Hedge>> {
        let after = match spec.hedge_after {
            Some(time) => After::Fixed(time),
            None => After::Share {
                millionths: (spec.hedge_percent * 1e4).round() as u64,
                counts: Vec::new(),
                seen: 0,
                now: Time::NEVER,
            },
        };
        let hedge = Hedge {
            after,
            waiting: VecDeque::new(),
            alarm: Alarm::of(resource),
            twins: Vec::new(),
        };
        (spec.reads == Reads::Hedged).then(|| Box::new(hedge))
    }

    fn set(&mut self, op: u32, twin: u32) {
        if self.twins.len() <= op as usize {
            self.twins.resize(op as usize + 1, NONE);
        }
        self.twins[op as usize] = twin;
    }

    fn twin(&self, op: u32) -> u32 {
        self.twins.get(op as usize).copied().unwrap_or(NONE)
    }

    /// Whether a page operation has no twin.
    pub fn is_alone(&self, op: u32) -> bool {
        self.twin(op) == NONE
    }

    /// Whether the twin of the operation completed first.
    pub fn is_late(&self, op: u32) -> bool {
        matches!(self.twin(op), LATE | LATE_HEDGE)
    }

    /// Pairs a read with its hedge, a read of the same page from other members.
    pub fn pair(&mut self, op: u32, hedge: u32) {
        self.set(op, hedge | IS_HEDGE);
        self.set(hedge, op);
    }

    /// Records that a page operation has completed. Returns whether its result is needed. It is not needed if the
    /// operation's twin (the other read of the same page) completed first.
    #[inline]
    pub fn done(&mut self, op: u32, layout: &Layout, stats: &mut RaidStats) -> bool {
        let twin = self.twin(op);
        if twin == NONE {
            return true;
        }
        self.set(op, NONE);
        match twin {
            LATE => stats.pages_read_in_vain += 1,
            LATE_HEDGE => {
                stats.pages_read_in_vain += match layout.copies {
                    1 => layout.data() as u64,
                    _ => 1,
                }
            }
            _ if twin & IS_HEDGE != 0 => self.set(twin & !IS_HEDGE, LATE_HEDGE),
            _ => {
                stats.hedges_won += 1;
                self.set(twin, LATE);
            }
        }
        !matches!(twin, LATE | LATE_HEDGE)
    }

    /// Records the latency of a member request that served reads of the front end.
    #[inline]
    pub fn took(&mut self, time: Time) {
        self.after.took(time);
    }

    /// Adds a request, which was just sent to a member and serves reads of the front end, to the list of requests to
    /// hedge. Removes completed requests from the head of the list.
    pub fn watch(
        &mut self,
        request: u32,
        clock: &mut Clock,
        is_in_flight: impl Fn(u32, Time) -> bool,
    ) {
        let after = self.after.now();
        if after == Time::NEVER {
            return;
        }
        let waiting = &mut self.waiting;
        while waiting
            .front()
            .is_some_and(|&(_, id, sent)| !is_in_flight(id, sent))
        {
            waiting.pop_front();
        }
        // The list must stay in order. If the delay has become shorter, the request is therefore hedged no earlier than
        // the last request in the list.
        let last = waiting.back().map_or(clock.now, |&(at, _, _)| at);
        let at = (clock.now + after).max(last);
        waiting.push_back((at, request, clock.now));
        self.wake(clock);
    }

    /// Takes the next request that is due to be hedged by `now`, and the instant at which it was sent. The request
    /// may have completed already.
    pub fn take_due(&mut self, now: Time) -> Option<(u32, Time)> {
        let &(at, request, sent) = self.waiting.front()?;
        if at > now {
            return None;
        }
        self.waiting.pop_front();
        Some((request, sent))
    }

    /// Sets the alarm for the next request.
    pub fn wake(&mut self, clock: &mut Clock) {
        if let Some(&(at, _, _)) = self.waiting.front() {
            self.alarm.set(at, clock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::builtin_array;

    #[test]
    fn the_share_of_reads_that_are_hedged_is_what_was_asked_for() {
        let set = [
            ("array.level", "raid10"),
            ("array.members", "harmonia*4"),
            ("array.reads", "hedged"),
            ("array.hedge_percent", "95"),
        ];
        let text = builtin_array("harmonia-array").unwrap();
        let spec = ArraySpec::with_overrides(text, "harmonia-array", &set).unwrap();
        let mut after = Hedge::of(&spec, 0).unwrap().after;
        for i in 0..10_000 {
            after.took(Time::from_us(1 + i * 7919 % 1000));
        }
        let error = after.now().as_us() / 950.0;
        assert!((0.99..1.0 + 2.0 / PARTS as f64).contains(&error), "{error}");
        // The buckets are contiguous, and no time in a bucket exceeds its end.
        for ns in (0..200_000).chain((1 << 40) - 9..(1 << 40) + 9) {
            let bucket = After::bucket(Time::from_ns(ns));
            assert!(Time::from_ns(ns) <= After::end_of(bucket));
            let next = After::bucket(Time::from_ns(ns + 1));
            assert!(next == bucket || next == bucket + 1);
            if next == bucket + 1 && ns >= PARTS {
                assert_eq!(After::end_of(bucket), Time::from_ns(ns + 1));
            }
        }
    }
}
