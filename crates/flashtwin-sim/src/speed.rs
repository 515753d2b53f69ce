//! The speed of a replay relative to the recording, as an exact decimal number.

use std::fmt;

use flashtwin::Time;

use crate::SimError;

/// Factor by which an open loop submits requests faster than they were recorded. It is stored as a decimal number
/// without rounding, so that request times are the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// The number is `digits` / 10^`decimals`.
    digits: u64,
    decimals: u32,
    /// Inverse of the speed: `whole` + `rest` / `digits`.
    whole: u64,
    rest: u64,
}

impl Speed {
    /// The speed of the recording: 1.
    pub const RECORDED: Speed = Speed {
        digits: 1,
        decimals: 0,
        whole: 1,
        rest: 0,
    };

    /// Returns the nearest binary fraction.
    pub(crate) fn as_f64(self) -> f64 {
        self.digits as f64 / 10f64.powi(self.decimals as i32)
    }

    /// Returns the time that the replay of a recorded span takes: `recorded` divided by the speed, rounded down to a
    /// picosecond.
    #[inline]
    pub fn replayed(&self, recorded: Time) -> Time {
        let scaled = |factor: u64| u128::from(recorded.0) * u128::from(factor);
        let part = scaled(self.rest);
        // Most products fit into 64 bits, where division is faster.
        let part = match u64::try_from(part) {
            Ok(part) => u128::from(part / self.digits),
            Err(_) => part / u128::from(self.digits),
        };
        let span = scaled(self.whole) + part;
        Time(u64::try_from(span).unwrap_or(u64::MAX))
    }
}

impl TryFrom<f64> for Speed {
    type Error = SimError;

    /// Converts the number that the decimal text of `number` denotes: 0.1 becomes exactly one tenth, not the nearest
    /// binary fraction.
    fn try_from(number: f64) -> Result<Speed, SimError> {
        if !(1e-18..=1e18).contains(&number) {
            return Err(SimError::Config(format!(
                "speed {number}: must be between 1e-18 and 1e18; 1 is as recorded"
            )));
        }
        // The shortest text that parses to this number has at most 17 significant digits.
        let text = number.to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let written = whole.bytes().chain(fraction.bytes());
        let digits = written.fold(0, |n, digit| n * 10 + u64::from(digit - b'0'));
        let one = 10u128.pow(fraction.len() as u32);
        Ok(Speed {
            digits,
            decimals: fraction.len() as u32,
            whole: (one / u128::from(digits)) as u64,
            rest: (one % u128::from(digits)) as u64,
        })
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10u128.pow(self.decimals);
        let digits = u128::from(self.digits);
        write!(f, "{}", digits / one)?;
        match self.decimals {
            0 => Ok(()),
            width => write!(f, ".{:0width$}", digits % one, width = width as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_exact() -> Result<(), SimError> {
        for (number, recorded, replayed) in [
            (1.0, 7, 7),
            (2.0, 7, 3),
            (0.1, 3, 30),
            (0.7, 7_000_000_000_000_000_001, 10_000_000_000_000_000_001),
            (1.5, 9, 6),
            (3.0, u64::MAX, u64::MAX / 3),
            (1e18, 3_000_000_000_000_000_000, 3),
            (1e-18, 7, 7_000_000_000_000_000_000),
            (1e-18, 70, u64::MAX),
            (1.2345678901234566e-18, 1, 810_000_007_290_000_190),
        ] {
            let speed = Speed::try_from(number)?;
            assert_eq!(speed.replayed(Time(recorded)), Time(replayed), "{number}");
            assert_eq!(speed.to_string(), number.to_string());
        }
        assert_eq!(Speed::try_from(1.0)?, Speed::RECORDED);
        Ok(())
    }

    #[test]
    fn other_numbers_are_refused() {
        for number in [0.0, -1.0, 9e-19, 2e18, f64::NAN, f64::INFINITY] {
            assert!(Speed::try_from(number).is_err(), "{number}");
        }
    }
}
