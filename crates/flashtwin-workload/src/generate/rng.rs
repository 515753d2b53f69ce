//! Random numbers: xoshiro256++, seeded by splitmix64, and the distributions that the generators need. Results are the
//! same on every machine, because the code uses only integers, IEEE products and sums, and the logarithm of the
//! pure-Rust `libm`.

/// Performs one step of splitmix64. The result is also a good hash of a counter.
pub(crate) fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Number of units that make 1.
const UNITS: f64 = (1u64 << 53) as f64;

/// The generator xoshiro256++ (Blackman and Vigna).
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    s: [u64; 4],
}

impl Rng {
    /// Creates the random stream with the number `stream` of a seed. The streams of a seed are independent. For
    /// example, a change of the arrival rate does not change the addresses.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut state = seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03);
        Rng {
            s: std::array::from_fn(|_| splitmix64(&mut state)),
        }
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.s;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Returns a uniformly distributed number below `n` (n > 0), without bias (Lemire's method).
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        let mut product = u128::from(self.bits()) * u128::from(n);
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.bits()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// Draws a number from 1 to 2^53. Multiplied by 2^-53, it is the number that [`Rng::unit`] draws.
    #[inline]
    pub fn units(&mut self) -> u64 {
        (self.bits() >> 11) + 1
    }

    /// Converts a bound on [`Rng::unit`] to the equivalent bound on [`Rng::units`]. The comparison of integers is
    /// exact, because the scale is a power of two.
    pub fn units_up_to(p: f64) -> u64 {
        (p * UNITS) as u64
    }

    /// Draws uniformly from (0, 1]. The result is never 0, so its logarithm is finite.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        self.units() as f64 * (1.0 / UNITS)
    }

    /// Returns true with probability `p`: never for 0, always for 1.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() <= p
    }

    /// Draws from the exponential distribution with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }

    /// Draws from the normal distribution with mean 0 and standard deviation 1 (Marsaglia's polar
    /// method).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let r = x * x + y * y;
            if r > 0.0 && r < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(r) / r);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_agrees_with_its_published_first_values() {
        let mut state = 1234567;
        assert_eq!(splitmix64(&mut state), 6457827717110365317);
        assert_eq!(splitmix64(&mut state), 3203168211198807973);
    }

    #[test]
    fn whole_units_compare_as_their_fractions_do() {
        for seed in flashtwin::seeds(3) {
            let mut rng = Rng::new(seed, 0);
            for p in [0.0, 1e-17, 0.3, 0.8, 0.1 + 0.2, 1.0 - f64::EPSILON, 1.0] {
                let bound = Rng::units_up_to(p);
                let near = (bound.saturating_sub(3)..bound + 3)
                    .filter(|units| (1..=1 << 53).contains(units));
                let drawn = std::iter::repeat_with(|| rng.units()).take(2000);
                for units in near.chain(drawn) {
                    assert_eq!(
                        units as f64 * (1.0 / UNITS) <= p,
                        units <= bound,
                        "{p}, {units}"
                    );
                }
            }
        }
    }

    #[test]
    fn draws_below_a_bound_are_even() {
        for seed in flashtwin::seeds(3) {
            let mut rng = Rng::new(seed, 0);
            let mut counts = [0u32; 6];
            for _ in 0..600_000 {
                counts[rng.below(6) as usize] += 1;
            }
            assert!(
                counts.iter().all(|c| (99_000..101_000).contains(c)),
                "{counts:?}"
            );
        }
    }

    #[test]
    fn exponential_and_normal_have_their_moments() {
        for seed in flashtwin::seeds(3) {
            let mut rng = Rng::new(seed, 0);
            let n = 400_000;
            let (mut e, mut z, mut z2) = (0.0, 0.0, 0.0);
            for _ in 0..n {
                e += rng.exponential();
                let v = rng.normal();
                z += v;
                z2 += v * v;
            }
            let n = f64::from(n);
            assert!((e / n - 1.0).abs() < 0.01);
            assert!((z / n).abs() < 0.01);
            assert!((z2 / n - 1.0).abs() < 0.01);
        }
    }
}
