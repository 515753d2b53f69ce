//! Types of the model's quantities: time in integer picoseconds, the numbers of pages, chips and pages of the buffer,
//! and the streams of writes.
//!
//! A `u64` of picoseconds covers 213 days. Nanoseconds would be too coarse: a sector takes 238.4 ns on the host bus
//! of the reference, so rounding errors would accumulate. Floats would give different results on different machines.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// An instant or a span of simulated time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The start of the clock, or an empty span.
    pub const ZERO: Time = Time(0);
    /// No instant: later than every instant that a run can reach.
    pub const NEVER: Time = Time(u64::MAX);

    /// Returns a span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * 1_000)
    }
    /// Returns a span of `us` microseconds.
    pub const fn from_us(us: u64) -> Time {
        Time(us * 1_000_000)
    }
    /// Returns a span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms * 1_000_000_000)
    }
    /// Returns a span of `s` seconds.
    pub const fn from_s(s: u64) -> Time {
        Time(s * 1_000_000_000_000)
    }
    /// Returns the time in nanoseconds, rounded to the nearest whole number.
    pub const fn to_ns(self) -> u64 {
        (self.0 + 500) / 1_000
    }
    /// Returns the time in seconds as a float. Only reports use it; the simulation does not.
    pub fn as_s(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// Returns the time in microseconds as a float. Only reports use it; the simulation does not.
    pub fn as_us(self) -> f64 {
        self.0 as f64 * 1e-6
    }
    /// Returns `self - other`, or zero if `other` is later.
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, o: Time) -> Time {
        Time(self.0 + o.0)
    }
}
impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, o: Time) {
        self.0 += o.0;
    }
}
impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, o: Time) -> Time {
        debug_assert!(self.0 >= o.0, "time runs backwards: {} - {}", self.0, o.0);
        Time(self.0.wrapping_sub(o.0))
    }
}
impl SubAssign for Time {
    #[inline]
    fn sub_assign(&mut self, o: Time) {
        *self = *self - o;
    }
}
impl Mul<u64> for Time {
    type Output = Time;
    #[inline]
    fn mul(self, n: u64) -> Time {
        Time(self.0 * n)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0..=999_999 => (self.0 as f64 / 1e3, "ns"),
            1_000_000..=999_999_999 => (self.0 as f64 / 1e6, "us"),
            1_000_000_000..=999_999_999_999 => (self.0 as f64 / 1e9, "ms"),
            _ => (self.0 as f64 / 1e12, "s"),
        };
        write!(f, "{value:.3} {unit}")
    }
}

/// Logical page number: the page's address as the host uses it, divided by the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Lpn(pub u32);

/// Physical page number: the position of a flash page among all flash pages of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Ppn(pub u32);

/// A chip, also called die (the "element" of the reference). It executes one operation at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ChipId(pub u16);

impl ChipId {
    /// Returns the chip with this number.
    #[inline]
    pub(crate) fn of(number: u32) -> ChipId {
        ChipId(number.try_into().expect("chips are numbered in 16 bits"))
    }
}

/// Number of a page in the buffer. The number of an evicted page is used again, so numbers stay small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(pub u32);

/// A stream of writes, hot or cold. It determines the open block of a pool to which a page is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Stream of the cold open block, for rarely written pages and for pages moved by GC. If a pool has only one open
    /// block, all pages go to it.
    #[default]
    Cold,
    /// Stream of the hot open block, for frequently written pages.
    Hot,
}

/// Converts a count or an index to 32 bits. The number always fits: no specification permits more pages, and no table
/// has more entries.
#[inline]
pub(crate) fn narrow(n: impl TryInto<u32>) -> u32 {
    n.try_into().ok().expect("counts are below 2^32")
}

/// Converts a number from a device file to 32 bits. A number that does not fit becomes the largest 32-bit number.
#[inline]
pub(crate) fn saturating_u32(n: impl TryInto<u32>) -> u32 {
    n.try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_print_in_a_fitting_unit() {
        assert_eq!(Time(238_400).to_string(), "238.400 ns");
        assert_eq!(Time::from_us(200).to_string(), "200.000 us");
        assert_eq!(Time::from_ns(1_500_000).to_string(), "1.500 ms");
        assert_eq!(Time::from_s(3).to_string(), "3.000 s");
    }

    #[test]
    fn nanoseconds_round_to_nearest() {
        assert_eq!(Time(1_499).to_ns(), 1);
        assert_eq!(Time(1_500).to_ns(), 2);
    }
}
