//! The seeded generator of random numbers that the model itself uses, for example in preconditioning. The algorithm
//! is splitmix64.

/// A deterministic generator. Equal seeds give equal numbers on every machine.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator with the given seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a random number below `n`, which must not be 0. Multiplies instead of dividing, so the probabilities
    /// of the numbers are biased, but by less than n / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.next_u64() as u128 * n as u128) >> 64) as u64
    }

    /// Draws from the exponential distribution with mean 1. Returns the same numbers on every machine.
    pub fn exponential(&mut self) -> f64 {
        // The 53 highest bits as a number above 0 and at most 1.
        let unit = ((self.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -libm::log(unit)
    }
}

/// Returns the seeds of a randomised test: 0, 1, 2 and so on. Their number is `count`, multiplied by the environment
/// variable `FLASHTWIN_SEEDS` if it is set. Prints each seed when it is used, so that the output of a failed test
/// shows the seed.
#[doc(hidden)]
pub fn seeds(count: u64) -> impl Iterator<Item = u64> {
    (0..seed_count(count)).inspect(|seed| println!("seed {seed}"))
}

/// Combines a seed with a name, such as that of a tested policy. Each policy thus has its own seeds, and they do not
/// change when another policy is added.
#[doc(hidden)]
pub fn seed_of(name: &str, seed: u64) -> u64 {
    let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    name.bytes().fold(seed, mix)
}

/// Returns the number of seeds that [`seeds`] returns for `count`.
///
/// # Panics
/// Panics if the environment variable is not a whole number.
#[doc(hidden)]
pub fn seed_count(count: u64) -> u64 {
    let times = std::env::var("FLASHTWIN_SEEDS");
    count * times.map_or(1, |n| n.parse().expect("FLASHTWIN_SEEDS is a whole number"))
}
