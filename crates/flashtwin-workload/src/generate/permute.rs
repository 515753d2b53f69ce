//! Visits every place (possible start address) of a range once per pass. Each pass has a new pseudo-random order, which
//! is computed without a table.
//!
//! A number is represented by two digits. Each digit has about as many values as the square root of the range. Each
//! round adds a hash of one digit to the other, so that different numbers stay different (a Feistel network of unequal
//! halves: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). The few results beyond the range pass
//! through the rounds again.
//!
//! The ranks of `zipf` are spread by another network, which operates on bits. Its domain is up to four times as large
//! as the range. The network in this module is faster for two reasons: nearly every result is within the range at once,
//! and the digits are incremented instead of computed by division.

use super::rng::splitmix64;

/// Number of rounds. With only four rounds, in ranges of some hundred places, some pairs of places are more frequent
/// than others.
const ROUNDS: usize = 6;

/// Passes over a range of places.
pub(crate) struct Passes {
    places: u64,
    /// Number of values of the higher and of the lower digit.
    high: u64,
    low: u64,
    /// Digits of the next number of the pass. `left` is the number of places left in the pass.
    next: (u64, u64),
    left: u64,
    keys: [u64; ROUNDS],
    seed: u64,
}

impl Passes {
    pub fn new(places: u64, seed: u64) -> Self {
        let high = libm::ceil(libm::sqrt(places as f64)).max(1.0) as u64;
        let mut passes = Passes {
            places,
            high,
            low: places.div_ceil(high),
            next: (0, 0),
            left: 0,
            keys: [0; ROUNDS],
            seed,
        };
        passes.begin();
        passes
    }

    /// Begins a pass with new keys.
    #[cold]
    fn begin(&mut self) {
        self.keys = std::array::from_fn(|_| splitmix64(&mut self.seed));
        self.next = (0, 0);
        self.left = self.places;
    }

    /// Returns the next place.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        if self.left == 0 {
            self.begin();
        }
        self.left -= 1;
        let mut place = self.shuffle(self.next);
        self.next.1 += 1;
        if self.next.1 == self.low {
            self.next = (self.next.0 + 1, 0);
        }
        while place >= self.places {
            place = self.shuffle((place / self.low, place % self.low));
        }
        place
    }

    #[inline(always)]
    fn shuffle(&self, (mut high, mut low): (u64, u64)) -> u64 {
        for keys in self.keys.chunks_exact(2) {
            high = added(high, low ^ keys[0], self.high);
            low = added(low, high ^ keys[1], self.low);
        }
        high * self.low + low
    }
}

/// Adds a hash of `other` to a digit, which has `values` values (at most 2^32). The code has no branch, because the
/// processor could not predict it.
#[inline(always)]
fn added(digit: u64, other: u64, values: u64) -> u64 {
    let product = u128::from(other) * 0x94d0_49bb_1331_11eb;
    let hash = (product >> 64) as u64 ^ product as u64;
    let sum = digit + (((hash >> 32) * values) >> 32);
    sum - (values & 0u64.wrapping_sub(u64::from(sum >= values)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_has_every_place_once() {
        for seed in flashtwin::seeds(3) {
            for places in [1u64, 2, 3, 5, 7, 64, 65, 1000, 4097, 99_991] {
                let mut passes = Passes::new(places, seed);
                for pass in 0..3 {
                    let mut seen = vec![false; places as usize];
                    for _ in 0..places {
                        let place = passes.draw() as usize;
                        assert!(!seen[place], "{place} twice in pass {pass} of {places}");
                        seen[place] = true;
                    }
                }
            }
        }
    }

    /// Every pair of places occurs equally often at the beginning of a pass.
    #[test]
    fn orders_are_evenly_frequent() {
        for seed in flashtwin::seeds(3) {
            let draws = 60_000;
            for places in [60u64, 100] {
                let mut passes = Passes::new(places, seed);
                let mut counts = vec![0u32; (places * places) as usize];
                for _ in 0..draws {
                    let order: Vec<u64> = (0..places).map(|_| passes.draw()).collect();
                    counts[(order[0] * places + order[1]) as usize] += 1;
                }
                let cells = places * (places - 1);
                let expected = f64::from(draws) / cells as f64;
                let squares = counts.iter().map(|&n| f64::from(n).powi(2) / expected);
                let square = squares.sum::<f64>() - f64::from(draws);
                // Mean and standard deviation of chi-square.
                let freedom = (cells - 1) as f64;
                let deviation = (square - freedom) / (2.0 * freedom).sqrt();
                assert!(
                    deviation.abs() < 5.0,
                    "{places} places: {deviation} deviations"
                );
            }
        }
    }

    /// Consecutive places of a pass are not neighbours in the range. The position of a place in one pass does not
    /// predict its position in the next pass.
    #[test]
    fn orders_are_uncorrelated() {
        for seed in flashtwin::seeds(3) {
            let places = 10_007u64;
            let mut passes = Passes::new(places, seed);
            let orders: Vec<Vec<f64>> = (0..8)
                .map(|_| {
                    (0..places)
                        .map(|_| passes.draw() as f64 / places as f64 - 0.5)
                        .collect()
                })
                .collect();
            let correlation = |pairs: &mut dyn Iterator<Item = (f64, f64)>| {
                let products: Vec<f64> = pairs.map(|(x, y)| 12.0 * x * y).collect();
                // The factor 12 gives the product of two centred uniform values a variance of 1.
                products.iter().sum::<f64>() / (products.len() as f64).sqrt()
            };
            for two in orders.windows(2) {
                let next =
                    correlation(&mut two[0].iter().copied().zip(two[0][1..].iter().copied()));
                let later = correlation(&mut two[0].iter().copied().zip(two[1].iter().copied()));
                assert!(next.abs() < 5.0 && later.abs() < 5.0, "{next} {later}");
            }
        }
    }
}
