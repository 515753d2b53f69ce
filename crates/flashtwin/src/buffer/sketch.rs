//! Counts of recent accesses to pages, in a count-min sketch of 4-bit counters or exactly (TinyLFU; Einziger, Friedman
//! and Manes, ACM TOS 2017, section 3).
//!
//! Each access to a page adds 1 to its count, up to 15. In the sketch, a page has one counter in each of four rows. An
//! access increments only those of the four counters that have the smallest value (minimal increment). The page's count
//! is this smallest value, which is never less than the exact count. When the number of accesses reaches the sample
//! size, all counts and the number of accesses are halved and rounded down.

use std::collections::HashMap;

use crate::component::words;
use crate::memory::large_table;
use crate::rng::Rng;
use crate::units::Lpn;

words! {
    /// How access counts of pages are stored.
    pub(super) enum Counting {
        /// A count-min sketch.
        Sketch = "sketch",
        /// An exact count for each page.
        Exact = "exact",
    }
}

const COUNT_MAX: u64 = 15;
const ROWS: usize = 4;
/// Number of counters in a row for each page of the buffer. Four rows of 4-bit counters take 8 bytes per page.
const WIDTH: usize = 4;
/// Number of counters in a word.
const IN_WORD: usize = 16;

/// Four rows of counters, one after the other.
#[derive(Clone, Debug)]
struct Sketch {
    words: Vec<u64>,
    /// Number of counters in a row, minus 1. The number of counters is a power of two, so this value is a bit mask.
    mask: u64,
}

impl Sketch {
    fn new(capacity: u32) -> Sketch {
        let width = (capacity as usize * WIDTH).next_power_of_two().max(IN_WORD);
        Sketch {
            words: large_table(0, ROWS * width / IN_WORD),
            mask: width as u64 - 1,
        }
    }

    /// Returns the positions of the four counters of a page. A position is the index of a word and a shift within the
    /// word.
    #[inline]
    fn counters(&self, lpn: Lpn) -> [(usize, u64); ROWS] {
        let mix = Rng::new(u64::from(lpn.0)).next_u64();
        // The step is odd and depends on the page. Pages that collide in one row therefore usually do not collide in
        // the others.
        let step = mix.rotate_left(32) | 1;
        std::array::from_fn(|row| {
            let column = mix.wrapping_add(step.wrapping_mul(row as u64)) & self.mask;
            let at = row as u64 * (self.mask + 1) + column;
            ((at / IN_WORD as u64) as usize, at % IN_WORD as u64 * 4)
        })
    }

    #[inline]
    fn least(&self, counters: &[(usize, u64); ROWS]) -> u64 {
        let counts = counters
            .iter()
            .map(|&(word, shift)| self.words[word] >> shift & COUNT_MAX);
        counts.fold(COUNT_MAX, u64::min)
    }

    #[inline]
    fn add(&mut self, lpn: Lpn) {
        let counters = self.counters(lpn);
        let least = self.least(&counters);
        if least == COUNT_MAX {
            return;
        }
        for (word, shift) in counters {
            if self.words[word] >> shift & COUNT_MAX == least {
                self.words[word] += 1 << shift;
            }
        }
    }

    fn halve(&mut self) {
        for word in &mut self.words {
            *word = *word >> 1 & 0x7777_7777_7777_7777;
        }
    }
}

#[derive(Clone, Debug)]
enum Counts {
    Sketch(Sketch),
    Exact(HashMap<Lpn, u64>),
}

/// Access counts of pages, cached or not.
#[derive(Clone, Debug)]
pub(crate) struct Frequencies {
    counts: Counts,
    accesses: u64,
    sample: u64,
}

impl Frequencies {
    /// Creates counts for a buffer of `capacity` pages. When the number of accesses reaches `sample` * `capacity`,
    /// all counts and the number of accesses are halved.
    pub fn new(counting: Counting, capacity: u32, sample: u32) -> Frequencies {
        Frequencies {
            counts: match counting {
                Counting::Sketch => Counts::Sketch(Sketch::new(capacity)),
                Counting::Exact => Counts::Exact(HashMap::new()),
            },
            accesses: 0,
            sample: u64::from(capacity) * u64::from(sample),
        }
    }

    /// Returns the count of a page.
    #[inline]
    pub fn of(&self, lpn: Lpn) -> u8 {
        let count = match &self.counts {
            Counts::Sketch(sketch) => sketch.least(&sketch.counters(lpn)),
            Counts::Exact(counts) => counts.get(&lpn).copied().unwrap_or(0),
        };
        count as u8
    }

    /// Counts an access to a page.
    #[inline]
    pub fn record(&mut self, lpn: Lpn) {
        match &mut self.counts {
            Counts::Sketch(sketch) => sketch.add(lpn),
            Counts::Exact(counts) => {
                let count = counts.entry(lpn).or_default();
                *count = (*count + 1).min(COUNT_MAX);
            }
        }
        self.accesses += 1;
        if self.accesses >= self.sample {
            self.halve();
        }
    }

    #[cold]
    fn halve(&mut self) {
        self.accesses /= 2;
        match &mut self.counts {
            Counts::Sketch(sketch) => sketch.halve(),
            Counts::Exact(counts) => counts.retain(|_, count| {
                *count /= 2;
                *count > 0
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A count of the sketch is never below the exact count, and rarely above it.
    #[test]
    fn sketch_bounds_exact_counts_from_above() {
        for seed in crate::seeds(3) {
            let mut rng = Rng::new(seed);
            let mut sketch = Frequencies::new(Counting::Sketch, 1000, 10);
            let mut exact = Frequencies::new(Counting::Exact, 1000, 10);
            let (mut more, mut compared) = (0, 0);
            for _ in 0..200_000 {
                // Small numbers often, large ones rarely.
                let lpn = Lpn((rng.below(3000) * rng.below(3000) / 3000) as u32);
                sketch.record(lpn);
                exact.record(lpn);
                assert_eq!(sketch.accesses, exact.accesses);
                let other = Lpn(rng.below(3000) as u32);
                assert!(sketch.of(other) >= exact.of(other), "{other:?}");
                more += u64::from(sketch.of(other) - exact.of(other));
                compared += 1;
            }
            assert!(more * 100 < compared * 5, "{more} of {compared}");
        }
    }

    /// If two pages share a counter, it keeps the larger of their counts, because an access increments only the
    /// smallest counters of its page.
    #[test]
    fn only_the_smallest_counters_grow() {
        let mut sketch = Sketch::new(4);
        let (often, shared) = (Lpn(0), sketch.counters(Lpn(0)));
        let meets = |lpn: &Lpn| {
            let counters = sketch.counters(*lpn);
            let common = counters.iter().filter(|at| shared.contains(at)).count();
            (1..ROWS).contains(&common)
        };
        let rarely = (1..1000).map(Lpn).find(meets).expect("16 counters a row");
        (0..5).for_each(|_| sketch.add(often));
        (0..3).for_each(|_| sketch.add(rarely));
        let count = |(word, shift): (usize, u64)| sketch.words[word] >> shift & COUNT_MAX;
        assert_eq!(shared.map(count), [5; ROWS]);
        assert_eq!(sketch.least(&sketch.counters(rarely)), 3);
    }

    #[test]
    fn counts_end_at_15_and_are_halved_after_the_sample() {
        for counting in [Counting::Sketch, Counting::Exact] {
            let mut counts = Frequencies::new(counting, 4, 5);
            (0..19).for_each(|_| counts.record(Lpn(7)));
            assert_eq!([counts.of(Lpn(7)), counts.of(Lpn(8))], [15, 0]);
            counts.record(Lpn(8));
            assert_eq!([counts.of(Lpn(7)), counts.of(Lpn(8))], [7, 0]);
            assert_eq!(counts.accesses, 10);
        }
    }
}
