//! Fast division of 32-bit numbers by a divisor that is known when the [`Divider`] is created. A division costs one
//! multiplication.
//!
//! Every flash operation splits page and block addresses by division. The division instruction of the processor
//! would be too slow. (Lemire, Kaser, Kurz: "Faster remainder by direct computation", 2019.)

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divider {
    by: u32,
    inverse: u64,
}

impl Divider {
    /// Creates a divider; `by` must not be 0.
    pub fn new(by: u32) -> Divider {
        assert!(by > 0, "division by zero");
        Divider {
            by,
            inverse: u64::MAX / by as u64,
        }
    }

    /// Returns the divisor.
    #[inline(always)]
    pub fn by(self) -> u32 {
        self.by
    }

    /// Returns `n` divided by the divisor. The stored inverse is rounded down, so one is added to `n` in
    /// compensation. The result is exact for all 32-bit numbers, and for every divisor including 1.
    #[inline(always)]
    pub fn div(self, n: u32) -> u32 {
        ((self.inverse as u128 * (n as u128 + 1)) >> 64) as u32
    }

    /// Returns quotient and remainder.
    #[inline(always)]
    pub fn div_rem(self, n: u32) -> (u32, u32) {
        let q = self.div(n);
        (q, n - q * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_hardware_division() {
        for seed in crate::seeds(3) {
            let mut rng = crate::rng::Rng::new(seed);
            let mut divisors = vec![1, 2, 3, 7, 63, 64, 768, 32_768, u32::MAX];
            divisors.extend((0..200).map(|_| 1 + rng.below(u32::MAX as u64 - 1) as u32));
            for by in divisors {
                let divider = Divider::new(by);
                let mut numbers = vec![0, 1, by - 1, by, u32::MAX, u32::MAX - 1];
                numbers.extend((0..500).map(|_| rng.next_u64() as u32));
                for n in numbers {
                    assert_eq!(divider.div_rem(n), (n / by, n % by), "{n} / {by}");
                }
            }
        }
    }
}
