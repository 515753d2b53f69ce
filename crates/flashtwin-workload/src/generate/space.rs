//! The part of a device that a generated load uses.

use super::rng::Rng;

/// The part of the device that a generator uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    /// First byte of the part. The addresses that are drawn are relative to it.
    pub first: u64,
    pub bytes: u64,
    pub alignment: u64,
}

impl Space {
    pub fn units(self) -> u64 {
        self.bytes / self.alignment
    }

    /// Draws a start for a request of `bytes` bytes. All starts at which the request fits are equally likely.
    #[inline(always)]
    pub fn draw(self, rng: &mut Rng, bytes: u64) -> u64 {
        rng.below((self.bytes - bytes) / self.alignment + 1) * self.alignment
    }

    pub fn fits(self, start: u64, bytes: u64) -> bool {
        start
            .checked_add(bytes)
            .is_some_and(|end| end <= self.bytes)
    }
}
