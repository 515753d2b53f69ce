//! Histogram of response times, and sums of the parts of response times. The counters of the histogram have the layout
//! of HdrHistogram with three significant digits. Every request updates them, so the code checks as little as possible.

use hdrhistogram::Histogram;

use crate::memory::{prefetch, TrustedTable};
use crate::request::{Breakdown, PARTS};
use crate::units::Time;

/// Response times longer than this are counted as if they were this long.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Binary logarithm of `HALF`. The times below 2 * `HALF` nanoseconds have one counter for each nanosecond. Each
/// further doubling of the time has `HALF` counters.
const HALF_BITS: u32 = 10;
const HALF: usize = 1 << HALF_BITS;

/// Returns the index of the counter for a response time.
#[inline(always)]
const fn index(ns: u64) -> usize {
    let shift = (u64::BITS - 1 - HALF_BITS) - (ns | (2 * HALF as u64 - 1)).leading_zeros();
    ((shift as usize) << HALF_BITS) + (ns >> shift) as usize
}

/// Number of counters.
const COUNTERS: usize = (index(LONGEST_NS) / HALF + 1) * HALF;

/// Returns the smallest response time that a counter counts.
fn least(index: usize) -> u64 {
    let shift = (index >> HALF_BITS).saturating_sub(1);
    ((index - (shift << HALF_BITS)) as u64) << shift
}

/// Number of response times that wait to be counted. A counter is first prefetched and later incremented, because the
/// counters do not fit into the processor's nearest cache.
const WAITING: usize = 16;

/// Counts of response times in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Times {
    /// Counters: for each, the number of response times counted. One more entry, the last, is for positions of
    /// `waiting` that are not in use yet.
    counts: TrustedTable<u64>,
    /// Indices of the counters for the latest response times. These response times have not been counted yet.
    waiting: [u32; WAITING],
    /// Position in `waiting` of the entry that has waited longest, modulo `WAITING`.
    turn: usize,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            // SAFETY: indexed by entries of `waiting`. They are initially `COUNTERS`, which is the last index, and
            // `Times::record` writes only numbers below `COUNTERS`.
            counts: unsafe { TrustedTable::new(vec![0; COUNTERS + 1]) },
            waiting: [COUNTERS as u32; WAITING],
            turn: 0,
        }
    }
}

impl Times {
    #[inline(always)]
    pub fn record(&mut self, time: Time) {
        let counter = match index(time.to_ns()) {
            counter if counter < COUNTERS => counter,
            _ => index(LONGEST_NS),
        };
        prefetch(&self.counts, counter);
        let turn = self.turn % WAITING;
        let due = std::mem::replace(&mut self.waiting[turn], counter as u32);
        self.turn = turn + 1;
        self.counts[due as usize] += 1;
    }

    /// Returns the number of response times for each counter, including the latest ones in `waiting`.
    fn counted(&self) -> Vec<u64> {
        let mut counts = self.counts.to_vec();
        self.waiting
            .iter()
            .for_each(|&counter| counts[counter as usize] += 1);
        counts.pop();
        counts
    }

    /// Returns the number of recorded response times.
    pub fn requests(&self) -> u64 {
        self.counted().iter().sum()
    }

    pub fn merge(&mut self, other: &Times) {
        for (count, more) in self.counts.iter_mut().zip(other.counted()) {
            *count += more;
        }
    }

    /// Returns the response times as a histogram.
    pub fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3)
            .expect("the bounds are constants that the histogram takes");
        for (index, count) in self.counted().into_iter().enumerate() {
            if count > 0 {
                histogram.saturating_record_n(least(index), count);
            }
        }
        histogram
    }
}

/// Set of the parts of a response time that have been set. A part that has not been set counts as zero, whatever its
/// stored value is. This saves time, because most requests set few parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PartsSet {
    #[default]
    None,
    /// The parts of the wait for a slot are set.
    Slot,
    All,
}

impl PartsSet {
    /// Returns `parts`, with every part that is not set replaced by zero.
    pub fn of(self, parts: &Breakdown) -> Breakdown {
        match self {
            PartsSet::None => Breakdown::default(),
            PartsSet::Slot => Breakdown {
                slot_order: parts.slot_order,
                slot_queue_host: parts.slot_queue_host,
                slot_queue_gc: parts.slot_queue_gc,
                slot_transfer: parts.slot_transfer,
                slot_array: parts.slot_array,
                ..Breakdown::default()
            },
            PartsSet::All => *parts,
        }
    }
}

/// The parts of the response time of a finished request.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub link: Time,
    /// Time that the request waited in its submission queue. It is zero unless `set` is [`PartsSet::All`].
    pub submission: Time,
    pub controller: Time,
    /// Parts of the time from the first page access to the completion, without the time in the field `link`.
    pub between: &'a Breakdown,
    /// Parts of `between` that have been set.
    pub set: PartsSet,
}

impl Parts<'_> {
    /// Returns the latency breakdown of the request: the sum of the parts in all fields.
    pub fn breakdown(&self) -> Breakdown {
        let mut all = self.set.of(self.between);
        all.link += self.link;
        all.submission += self.submission;
        all.controller += self.controller;
        all
    }
}

impl<'a> From<&'a Breakdown> for Parts<'a> {
    fn from(all: &'a Breakdown) -> Parts<'a> {
        Parts {
            link: Time::ZERO,
            submission: Time::ZERO,
            controller: Time::ZERO,
            between: all,
            set: PartsSet::All,
        }
    }
}

/// Sums of response times and of their parts, in picoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct PartSums {
    whole: u128,
    sums: [u128; PARTS],
    /// Sum of the latest response times, which have not been added to `whole` yet. `last` has the sums of their parts.
    /// None of these sums exceeds `last_whole`, so none overflows as long as `last_whole` does not.
    last_whole: u64,
    last: [u64; PARTS],
}

impl PartSums {
    /// Adds a response time and its parts.
    pub fn add(&mut self, parts: &Parts, whole: Time) {
        let last_whole = self.last_whole_with(whole).unwrap_or_else(|| {
            (self.whole, self.sums) = (self.whole(), self.all());
            (self.last_whole, self.last) = (0, [0; PARTS]);
            whole.0
        });
        self.add_last(parts, last_whole);
    }

    /// Returns the sum of the latest response times plus `whole`; `None` if the sum overflows.
    #[inline(always)]
    pub fn last_whole_with(&self, whole: Time) -> Option<u64> {
        self.last_whole.checked_add(whole.0)
    }

    /// Adds a response time and its parts. `last_whole` is the new sum of the latest response times, including this one
    /// ([`PartSums::last_whole_with`]).
    #[inline(always)]
    pub fn add_last(&mut self, parts: &Parts, last_whole: u64) {
        self.last_whole = last_whole;
        let of = parts.between.parts();
        let mut add = |i: usize, part: Time| self.last[i] = self.last[i].wrapping_add(part.0);
        add(0, parts.link);
        match parts.set {
            PartsSet::None => {}
            PartsSet::Slot => Breakdown::SLOT.for_each(|i| add(i, of[i])),
            PartsSet::All => {
                (0..PARTS).for_each(|i| add(i, of[i]));
                add(1, parts.submission);
                add(2, parts.controller);
            }
        }
    }

    pub fn merge(&mut self, other: &PartSums) {
        self.whole += other.whole();
        for (sum, more) in self.sums.iter_mut().zip(other.all()) {
            *sum += more;
        }
    }

    /// Returns the sum of the response times.
    pub fn whole(&self) -> u128 {
        self.whole + u128::from(self.last_whole)
    }

    /// Returns the sum of each part of the response times.
    pub fn all(&self) -> [u128; PARTS] {
        std::array::from_fn(|i| self.sums[i] + u128::from(self.last[i]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_the_histogram() {
        for seed in crate::seeds(3) {
            let mut plain = Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 3).unwrap();
            let mut times = Times::default();
            let mut rng = crate::rng::Rng::new(seed);
            let edges = [
                0,
                1,
                2047,
                2048,
                2049,
                4095,
                4096,
                LONGEST_NS,
                LONGEST_NS + 1,
                1 << 42,
                u64::MAX / 1000,
            ];
            let random = (0..20_000).map(|i| rng.below(1 << (i % 50 + 1)));
            for ns in edges.into_iter().chain(random) {
                plain.saturating_record(ns);
                times.record(Time::from_ns(ns));
            }
            let ours = times.histogram();
            assert_eq!(ours, plain);
            assert_eq!((ours.min(), ours.max()), (plain.min(), plain.max()));
            let mut twice = times.clone();
            twice.merge(&times);
            plain.add(&ours).unwrap();
            assert_eq!(twice.histogram(), plain);
        }
    }

    #[test]
    fn sums_of_parts_hold_more_than_a_time() {
        let mut sums = PartSums::default();
        let (mut plain, mut wholes) = ([0u128; PARTS], 0);
        for whole in [1, 1 << 43, u64::MAX] {
            for _ in 0..3 {
                let parts =
                    Breakdown::from_parts(std::array::from_fn(|i| Time(whole / (i as u64 + 1))));
                sums.add(&Parts::from(&parts), Time(whole));
                wholes += u128::from(whole);
                for (sum, part) in plain.iter_mut().zip(parts.parts()) {
                    *sum += u128::from(part.0);
                }
            }
        }
        assert_eq!((sums.all(), sums.whole()), (plain, wholes));
        let mut twice = sums.clone();
        twice.merge(&sums);
        assert_eq!(twice.all(), plain.map(|sum| 2 * sum));
        assert_eq!(twice.whole(), 2 * wholes);
    }
}
