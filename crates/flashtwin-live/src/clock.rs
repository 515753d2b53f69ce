//! Relates wall-clock time to device time.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use flashtwin::Time;

use crate::LiveError;

/// Largest device time, at which a server's clock stops. `Time` counts picoseconds in 64 bits. The limit leaves time
/// for the last submitted request to complete before the count overflows.
const LAST: Time = Time::from_s(18_000_000);
const MILLION: u128 = 1_000_000;

/// Dilation: the factor by which device time passes more slowly than wall-clock time. With a factor of 10, ten seconds
/// of wall-clock time are one second of device time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dilation {
    /// Dilation in millionths.
    millionths: u64,
}

impl Default for Dilation {
    fn default() -> Dilation {
        Dilation {
            millionths: 1_000_000,
        }
    }
}

impl FromStr for Dilation {
    type Err = LiveError;
    fn from_str(text: &str) -> Result<Dilation, LiveError> {
        match text.parse::<f64>() {
            Ok(times) if (0.001..=1e6).contains(&times) => Ok(Dilation {
                millionths: (times * 1e6).round() as u64,
            }),
            _ => Err(LiveError::setting(
                "dilation",
                text,
                "give a number from 0.001 to 1000000, as in 10",
            )),
        }
    }
}

impl Dilation {
    /// Returns the dilation as it was given.
    pub fn times(self) -> f64 {
        self.millionths as f64 / 1e6
    }

    /// Returns the device time that passes in `wall_ns` of wall-clock time, rounded down.
    pub fn device(self, wall_ns: u64) -> Time {
        let ps = u128::from(wall_ns) * 1000 * MILLION / u128::from(self.millionths);
        Time(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// Returns the wall-clock time at which [`Dilation::device`] reaches `time`: the first such nanosecond.
    pub fn wall_ns(self, time: Time) -> u64 {
        let ns = (u128::from(time.0) * u128::from(self.millionths)).div_ceil(1000 * MILLION);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// The monotonic clock since the start of the server, converted to device time.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    /// Device time in ps at the start of the server, plus all device time that [`Clock::skip_to`] has skipped since
    /// then.
    at_start: AtomicU64,
    pub dilation: Dilation,
}

impl Clock {
    pub fn starting(at_start: Time, dilation: Dilation) -> Clock {
        Clock {
            start: Instant::now(),
            at_start: AtomicU64::new(at_start.0),
            dilation,
        }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Returns the device time at `now_ns`; `None` if it is [`LAST`] or later.
    #[inline]
    pub fn device(&self, now_ns: u64) -> Option<Time> {
        let since = self.dilation.device(now_ns);
        let now = self.at_start().0.checked_add(since.0).map(Time);
        now.filter(|&now| now < LAST)
    }

    /// Returns the wall-clock time, in ns, at which the device time is `time`.
    #[inline]
    pub fn wall_ns(&self, time: Time) -> u64 {
        self.dilation.wall_ns(time.saturating_sub(self.at_start()))
    }

    /// Advances the device time to `time`. Does nothing if the device time is already later. All later device times are
    /// shifted by the same amount. Called when the device has run past the wall clock. Without this call, callers would
    /// wait until the wall clock reaches `time`.
    pub fn skip_to(&self, time: Time) {
        let now = Time(
            self.at_start()
                .0
                .saturating_add(self.dilation.device(self.now_ns()).0),
        );
        let at_start = self.at_start() + time.saturating_sub(now);
        self.at_start.store(at_start.0, Ordering::Relaxed);
    }

    /// Returns `at_start`. A thread that changes the value must hold the device lock. So must a thread that needs the
    /// latest value.
    fn at_start(&self) -> Time {
        Time(self.at_start.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_is_never_early_and_less_than_1_ns_late() {
        for times in ["0.001", "0.3", "1", "2.5", "10", "123.456789", "1000000"] {
            let dilation: Dilation = times.parse().expect("a number");
            for ps in [0, 1, 999, 1000, 1001, 123_456_789, 3_600_000_000_000_000] {
                let ns = dilation.wall_ns(Time(ps));
                assert!(dilation.device(ns) >= Time(ps), "{times}: {ps}");
                if ns > 0 {
                    assert!(dilation.device(ns - 1) < Time(ps), "{times}: {ps}");
                }
            }
        }
    }

    #[test]
    fn time_that_the_device_has_skipped_is_not_waited_for() {
        let clock = Clock::starting(Time::from_s(5), "10".parse().expect("a number"));
        let before_ns = clock.now_ns();
        clock.skip_to(Time::from_s(4));
        assert!(
            clock.device(before_ns).expect("early") < Time::from_s(6),
            "it was not ahead"
        );
        clock.skip_to(Time::from_s(500));
        let now_ns = clock.now_ns();
        let now = clock.device(now_ns).expect("early");
        assert!(now >= Time::from_s(500) && now < Time::from_s(501));
        assert!(clock.wall_ns(now).abs_diff(now_ns) <= 10, "and back");
        clock.skip_to(LAST);
        assert_eq!(
            clock.device(clock.now_ns()),
            None,
            "its clock is at its end"
        );
    }

    #[test]
    fn an_invalid_dilation_is_refused_with_the_valid_range() {
        for text in ["", "0", "-1", "nan", "inf", "1e7", "ten"] {
            let message = text.parse::<Dilation>().expect_err(text).to_string();
            assert!(message.contains("0.001 to 1000000"), "{message}");
        }
    }
}
