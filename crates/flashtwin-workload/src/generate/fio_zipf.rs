//! The Zipf generator of fio, for loads whose measurements used fio.
//!
//! Ranks are drawn by the approximation of Gray et al. ("Quickly Generating Billion-Record Synthetic Databases", SIGMOD
//! 1994). fio's normalising sum ends at ten million ranks, which makes the first ranks too frequent. For example, with
//! a skew of 1.2 and 105 million places, the first ten ranks get 47.4 % of the draws; by the exact law, they would get
//! 45.1 %. Ranks are hashed to places. Therefore several ranks may share a place, and about 37 % of the places are
//! never drawn.

use super::rng::{splitmix64, Rng};

/// Number of ranks in fio's normalising sum.
const SUMMED_MAX: u64 = 10_000_000;

/// The generator. The skew may have any value other than 1.
pub(crate) struct FioZipf {
    places: u64,
    sum: f64,
    /// The second rank is chosen if the scaled draw is from 1 to below this bound.
    two: f64,
    /// Exponent and factor of the formula for the ranks after the second.
    alpha: f64,
    eta: f64,
    seed: u64,
}

impl FioZipf {
    pub fn new(places: u64, theta: f64, seed: u64) -> Self {
        let sum = power_sum(places.min(SUMMED_MAX), theta);
        let two = 1.0 + power(0.5, theta);
        let eta = (1.0 - power(2.0 / places as f64, 1.0 - theta)) / (1.0 - two / sum);
        FioZipf {
            places,
            sum,
            two,
            alpha: 1.0 / (1.0 - theta),
            eta,
            seed,
        }
    }

    /// Returns a rank from 0 (the most frequent).
    fn rank(&self, rng: &mut Rng) -> u64 {
        let unit = rng.unit();
        let scaled = unit * self.sum;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < self.two {
            return 1;
        }
        let share = power(self.eta * unit - self.eta + 1.0, self.alpha);
        (self.places as f64 * share) as u64
    }

    /// Returns a place.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let mut state = self.rank(rng) ^ self.seed;
        let hash = splitmix64(&mut state);
        ((u128::from(hash) * u128::from(self.places)) >> 64) as u64
    }
}

/// Returns `base` to the power `exponent`. The result is the same on every machine.
fn power(base: f64, exponent: f64) -> f64 {
    libm::exp(exponent * libm::log(base))
}

/// Returns the sum of k^-theta for k from 1 to `n`. The first terms are added one by one. The sum of the others is
/// computed by the Euler-Maclaurin formula.
fn power_sum(n: u64, theta: f64) -> f64 {
    const ONE_BY_ONE: u64 = 64;
    let term = |k: f64| power(k, -theta);
    let first: f64 = (1..n.min(ONE_BY_ONE)).map(|k| term(k as f64)).sum();
    if n < ONE_BY_ONE {
        return first + term(n as f64);
    }
    let (a, b) = (ONE_BY_ONE as f64, n as f64);
    let integral = (power(b, 1.0 - theta) - power(a, 1.0 - theta)) / (1.0 - theta);
    let slopes = theta / 12.0 * (term(a) / a - term(b) / b);
    first + integral + (term(a) + term(b)) / 2.0 + slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_powers_agree_with_adding_up() {
        for theta in [0.5, 0.99, 1.2, 2.2] {
            for n in [1u64, 2, 63, 64, 65, 1000, 100_000] {
                let added: f64 = (1..=n).map(|k| (k as f64).powf(-theta)).sum();
                let error = (power_sum(n, theta) / added - 1.0).abs();
                assert!(error < 1e-7, "{theta}, {n}: {error}");
            }
        }
    }

    /// Compares the share of the draws that the first ten ranks get. With a skew of 1.2, fio's share is 0.474. It would
    /// be 0.4715 if fio's sum included all 105 million ranks, and 0.4514 by the exact law.
    #[test]
    fn first_ranks_have_the_shares_of_fio() {
        for seed in flashtwin::seeds(2) {
            for (theta, expected) in [(1.2, 0.47407), (2.2, 0.97346)] {
                let zipf = FioZipf::new(105_000_000, theta, 1);
                let mut rng = Rng::new(seed, 0);
                let draws = 4_000_000;
                let ten = (0..draws).filter(|_| zipf.rank(&mut rng) < 10).count();
                let share = ten as f64 / f64::from(draws);
                // Five standard deviations.
                assert!((share - expected).abs() < 0.00125, "{theta}: {share}");
            }
        }
    }

    #[test]
    fn places_collide_as_those_of_a_random_function() {
        for seed in flashtwin::seeds(3) {
            let places = 20_000u64;
            let zipf = FioZipf::new(places, 0.2, seed);
            let mut rng = Rng::new(seed, 0);
            let mut seen = vec![false; places as usize];
            for _ in 0..60 * places {
                seen[zipf.draw(&mut rng) as usize] = true;
            }
            let never = seen.iter().filter(|s| !**s).count() as f64 / places as f64;
            assert!((never - (-1f64).exp()).abs() < 0.02, "{never}");
        }
    }
}
