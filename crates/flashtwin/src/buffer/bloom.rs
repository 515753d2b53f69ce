//! Filter that classifies pages as hot: a page is hot if it was written since the filter's last reset (CDA-GC section
//! 3.2.2). The filter is a Bloom filter or the exact set of written pages.
//!
//! Every write first queries the filter, then inserts its page. The page is hot if the filter already contained it.
//!
//! - Hashes: a page sets 8 bits of the bitmap of m bits. Bit i is (h1 + i h2) mod m, for i = 0..7. The hashes h1 and h2
//!   are the halves of one 64-bit mix of the page number, scaled to numbers below m.
//! - Reset: clears the whole filter. A write triggers a reset if a certain number of distinct pages have been inserted,
//!   or if the reset time has passed.
//! - Generations (D-18): there are two bitmaps of half the size. Pages are inserted into the younger bitmap, and a page
//!   is hot if either bitmap contains it. A reset clears the older bitmap, which then becomes the younger one.

use std::collections::HashSet;

use super::Setup;
use crate::component::{parameters, words, Kind};
use crate::memory::large_table;
use crate::rng::Rng;
use crate::units::{Lpn, Time};

words! {
    /// How the filter stores the pages that were written.
    pub(super) enum Hotness {
        /// A Bloom filter.
        Bloom = "bloom",
        /// An exact set of pages.
        Exact = "exact",
    }
}

words! {
    /// Pages that a reset removes from the filter.
    pub(super) enum Forget {
        /// A reset removes all pages from the filter.
        Reset = "reset",
        /// A reset removes only the pages that were inserted before the previous reset.
        Generations = "generations",
    }
}

parameters! {
    /// Parameters of policies that separate hot pages from cold ones.
    pub(super) struct FilterParameters {
        /// How the filter stores pages: as a Bloom filter with 8 hash functions, or exactly.
        filter: Hotness = Kind::Choice(Hotness::WORDS), "\"bloom\"", "printed: CDA-GC section 3.2.2";
        /// Size of the filter's bitmap, in percent of the buffer's size.
        filter_percent: f64 = Kind::Percent, "5", "printed: CDA-GC section 3.2.2";
        /// Number of distinct pages after which the filter is reset; 0: no limit; `auto`: 0.1455 per bit, which gives
        /// 5 % false positives.
        filter_reset_items: Option<u32> = Kind::CountOrAuto(0, u32::MAX - 1), "\"auto\"", "D-9, D-18: from CDA-GC section 3.2.2";
        /// Time after which the filter is reset as well; 0: no limit.
        filter_reset_ms: u32 = Kind::Count(0, 1_000_000), "0", "D-9, D-18: our decision";
        /// Pages that a reset removes from the filter: all (`reset`), or those inserted before the previous reset
        /// (`generations`). With `generations`, the bitmap has two halves.
        filter_forget: Forget = Kind::Choice(Forget::WORDS), "\"reset\"", "D-18: our decision";
    }
}

const HASHES: usize = 8;

/// Number of distinct pages per 10 000 bits of bitmap at which a filter with 8 hash functions has 5 % false positives.
const PAGES_OF_10_000_BITS: u64 = 1455;

/// A filter of m bits.
#[derive(Clone, Debug)]
struct Bloom {
    bits: u64,
    words: Vec<u64>,
    /// Indices of the words that are not 0. A reset clears only these words. If there are more such words than the list
    /// can hold, a reset clears all words.
    used: Vec<usize>,
}

impl Bloom {
    fn new(bits: u64) -> Bloom {
        let words = bits.div_ceil(64) as usize;
        Bloom {
            bits,
            words: large_table(0, words),
            used: Vec::with_capacity(words / 32 + HASHES),
        }
    }

    #[inline]
    fn positions(&self, lpn: Lpn) -> [u64; HASHES] {
        let mix = Rng::new(u64::from(lpn.0)).next_u64();
        // Scales a hash to a bit index below m. A multiplication is used because a division is slow.
        let scaled = |hash: u64| ((u128::from(hash) * u128::from(self.bits)) >> 64) as u64;
        let mut at = scaled(mix);
        let step = scaled(mix.rotate_left(32));
        std::array::from_fn(|_| {
            let position = at;
            at += step;
            if at >= self.bits {
                at -= self.bits;
            }
            position
        })
    }

    /// Whether all bits at `positions` are set. Reads every bit, even after a bit that is not set, so that the cache
    /// misses overlap.
    #[inline]
    fn contains(&self, positions: &[u64; HASHES]) -> bool {
        let bit = |&p: &u64| self.words[(p / 64) as usize] >> (p % 64);
        positions.iter().fold(1, |all, p| all & bit(p)) == 1
    }

    /// Inserts a page; returns whether the filter already contained it.
    #[inline]
    fn insert(&mut self, lpn: Lpn) -> bool {
        let positions = self.positions(lpn);
        if self.contains(&positions) {
            return true;
        }
        for p in positions {
            let i = (p / 64) as usize;
            if self.words[i] == 0 && self.used.len() < self.used.capacity() {
                self.used.push(i);
            }
            self.words[i] |= 1 << (p % 64);
        }
        false
    }

    fn clear(&mut self) {
        if self.used.len() < self.used.capacity() {
            for &i in &self.used {
                self.words[i] = 0;
            }
        } else {
            self.words.fill(0);
        }
        self.used.clear();
    }
}

#[derive(Clone, Debug)]
enum Known {
    Bloom(Bloom),
    Exact(HashSet<Lpn>),
}

impl Known {
    fn new(by: Hotness, bits: u64) -> Known {
        match by {
            Hotness::Exact => Known::Exact(HashSet::new()),
            Hotness::Bloom => Known::Bloom(Bloom::new(bits)),
        }
    }

    /// Inserts a page; returns whether the filter already contained it.
    #[inline]
    fn insert(&mut self, lpn: Lpn) -> bool {
        match self {
            Known::Bloom(bloom) => bloom.insert(lpn),
            Known::Exact(set) => !set.insert(lpn),
        }
    }

    fn has(&self, lpn: Lpn) -> bool {
        match self {
            Known::Bloom(bloom) => bloom.contains(&bloom.positions(lpn)),
            Known::Exact(set) => set.contains(&lpn),
        }
    }

    fn clear(&mut self) {
        match self {
            Known::Bloom(bloom) => bloom.clear(),
            Known::Exact(set) => set.clear(),
        }
    }
}

/// Separates hot pages from cold ones.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// Pages inserted since the last reset.
    younger: Known,
    /// Pages inserted between the last reset and the one before it; `None` if a reset removes all pages.
    older: Option<Known>,
    /// Number of distinct pages in `younger`.
    items: u64,
    items_max: u64,
    period: Time,
    last_reset: Time,
    epoch: u32,
}

impl Filter {
    /// Creates a filter. The parameter `filter_percent` gives the size of its bitmap, in percent of the buffer's size.
    pub fn new(setup: &Setup) -> Filter {
        let parameters = FilterParameters::of(&setup.settings);
        let buffer_bits = u64::from(setup.capacity) * u64::from(setup.page_bytes) * 8;
        let bits = (buffer_bits as f64 * parameters.filter_percent / 100.0) as u64;
        let is_halved = parameters.filter_forget == Forget::Generations;
        let bits = if is_halved { bits / 2 } else { bits }.max(64);
        let known = || Known::new(parameters.filter, bits);
        Filter {
            younger: known(),
            older: is_halved.then(known),
            items: 0,
            items_max: match parameters.filter_reset_items {
                None => (bits * PAGES_OF_10_000_BITS / 10_000).max(1),
                Some(0) => u64::MAX,
                Some(items) => items.into(),
            },
            period: match parameters.filter_reset_ms {
                0 => Time::NEVER,
                ms => Time::from_ms(ms.into()),
            },
            last_reset: Time::ZERO,
            epoch: 1,
        }
    }

    /// Records a write of a page; returns whether the page is hot.
    #[inline]
    pub fn write(&mut self, now: Time, lpn: Lpn) -> bool {
        if self.items >= self.items_max || now.saturating_sub(self.last_reset) >= self.period {
            self.reset(now);
        }
        let is_in = self.younger.insert(lpn);
        self.items += u64::from(!is_in);
        is_in || self.older.as_ref().is_some_and(|older| older.has(lpn))
    }

    /// Whether the filter contains a page. A Bloom filter may return true for a page that was never inserted.
    pub fn has(&self, lpn: Lpn) -> bool {
        self.younger.has(lpn) || self.older.as_ref().is_some_and(|older| older.has(lpn))
    }

    /// Returns the number of the current period, which began at the last reset. The number is never 0. When a policy
    /// finds a page hot, it stores this number with the page.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether a page that was found hot in period `epoch` is still hot. `epoch` is 0 for a page that was never found
    /// hot.
    #[inline]
    pub fn remembers(&self, epoch: u32) -> bool {
        epoch == self.epoch || epoch != 0 && self.older.is_some() && epoch + 1 == self.epoch
    }

    #[cold]
    fn reset(&mut self, now: Time) {
        self.last_reset = now;
        self.items = 0;
        self.epoch = self.epoch.checked_add(1).unwrap_or(1);
        if let Some(older) = &mut self.older {
            std::mem::swap(older, &mut self.younger);
        }
        self.younger.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the Bloom filter with a bitmap of 64 bits into which one page is inserted.
    #[test]
    fn one_item_in_64_bits() {
        for lpn in (0..1000).map(Lpn) {
            let mut bloom = Bloom::new(64);
            assert!(!bloom.insert(lpn));
            assert!((1..=8).contains(&bloom.words[0].count_ones()));
            assert!(bloom.insert(lpn));
            bloom.clear();
            assert_eq!(bloom.words, [0]);
            assert!(!bloom.insert(lpn));
        }
    }

    /// After n pages, a Bloom filter with 8 hash functions and m bits has a false-positive rate of (1 - e^(-8n/m))^8.
    /// At n = 0.1455 m, this rate is 5 %.
    #[test]
    fn false_positives_are_as_computed() {
        for (bits, first) in [(1_000_000, 0), (8_388_608, 77), (1_638_400, 3_000_000_000)] {
            let mut bloom = Bloom::new(bits);
            let items = (bits as f64 * 0.1455) as u32;
            for lpn in first..first + items {
                bloom.insert(Lpn(lpn));
            }
            let others = first + items..first + items + 200_000;
            let positive = |&lpn: &u32| bloom.contains(&bloom.positions(Lpn(lpn)));
            let percent = others.filter(positive).count() as f64 / 2000.0;
            assert!((4.5..5.5).contains(&percent), "{percent} % in {bits} bits");
            bloom.clear();
            assert!(bloom.words.iter().all(|&word| word == 0));
        }
    }

    #[test]
    fn few_items_and_many_are_forgotten_alike() {
        for items in [0, 1, 5, 60, 700, 20_000] {
            let mut bloom = Bloom::new(100_003);
            for _ in 0..3 {
                for lpn in 0..items {
                    bloom.insert(Lpn(lpn));
                }
                bloom.clear();
                assert!(bloom.words.iter().all(|&word| word == 0), "{items}");
            }
        }
    }
}
