//! Pages written before: a Bloom filter, or the exact set (CDA-GC section 3.2.2).
//!
//! Every write queries, then inserts: a page is hot if it was written since the last reset. k = 8 bits
//! (h1 + i h2) mod m, i = 0..7, both hashes from the halves of one 64-bit mix. The whole filter is cleared
//! when the reset time has passed, which is looked at when something is written.

use std::collections::HashSet;

use super::Setup;
use crate::component::{parameters, words, Kind};
use crate::memory::large_table;
use crate::rng::Rng;
use crate::units::{Lpn, Time};

words! {
    /// How pages written before are known.
    pub(super) enum Hotness {
        /// By a Bloom filter.
        Bloom = "bloom",
        /// Each by itself.
        Exact = "exact",
    }
}

parameters! {
    /// Parameters of policies that separate hot pages from cold ones.
    pub(super) struct FilterParameters {
        /// How pages written before are known: a Bloom filter of 8 hashes, or exactly.
        filter: Hotness = Kind::Choice(Hotness::WORDS), "\"bloom\"", "printed: CDA-GC section 3.2.2";
        /// Bitmap of the filter, in percent of the buffer.
        filter_percent: f64 = Kind::Percent, "5", "printed: CDA-GC section 3.2.2";
        /// The filter forgets after this time.
        filter_reset_ms: u32 = Kind::Count(1, 1_000_000), "1000", "D-9, D-18: our decision";
    }
}

const HASHES: usize = 8;

/// A filter of m bits.
#[derive(Clone, Debug)]
struct Bloom {
    bits: u64,
    words: Vec<u64>,
    /// Words that are not 0, as far as there is room: clearing them is cheaper than clearing all.
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
        // To a number below m by multiplication: divisions would be felt.
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

    /// All bits are set. Looks at every one, so that their cache misses overlap.
    #[inline]
    fn contains(&self, positions: &[u64; HASHES]) -> bool {
        let bit = |&p: &u64| self.words[(p / 64) as usize] >> (p % 64);
        positions.iter().fold(1, |all, p| all & bit(p)) == 1
    }

    /// Inserts a page; whether it seemed to be there.
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

/// Separates hot pages from cold ones.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    kind: Known,
    period: Time,
    last_reset: Time,
    epoch: u32,
}

impl Filter {
    /// With these parameters; the bitmap is a share of the buffer.
    pub fn new(setup: &Setup) -> Filter {
        let parameters = FilterParameters::of(&setup.settings);
        let buffer_bits = u64::from(setup.capacity) * u64::from(setup.page_bytes) * 8;
        let bits = (buffer_bits as f64 * parameters.filter_percent / 100.0) as u64;
        Filter {
            kind: match parameters.filter {
                Hotness::Exact => Known::Exact(HashSet::new()),
                Hotness::Bloom => Known::Bloom(Bloom::new(bits.max(64))),
            },
            period: Time::from_ms(parameters.filter_reset_ms.into()),
            last_reset: Time::ZERO,
            epoch: 1,
        }
    }

    /// A page is written: whether it is hot.
    #[inline]
    pub fn write(&mut self, now: Time, lpn: Lpn) -> bool {
        if now.saturating_sub(self.last_reset) >= self.period {
            self.reset(now);
        }
        match &mut self.kind {
            Known::Bloom(bloom) => bloom.insert(lpn),
            Known::Exact(set) => !set.insert(lpn),
        }
    }

    /// The page was written since the last reset, or the bitmap has it for one that was.
    pub fn has(&self, lpn: Lpn) -> bool {
        match &self.kind {
            Known::Bloom(bloom) => bloom.contains(&bloom.positions(lpn)),
            Known::Exact(set) => set.contains(&lpn),
        }
    }

    /// Another number after each reset, never 0.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    #[cold]
    fn reset(&mut self, now: Time) {
        self.last_reset = now;
        self.epoch = self.epoch.checked_add(1).unwrap_or(1);
        match &mut self.kind {
            Known::Bloom(bloom) => bloom.clear(),
            Known::Exact(set) => set.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DSP-2.
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

    /// Bloom filters of 8 functions: (1 - e^(-8n/m))^8 = 5 % at n = 0.1455 m.
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
