//! A slow member. It works at its normal speed, but each response is delayed so that the response time is multiplied by
//! a factor (D-145). The array observes only the delay, not its cause.

use std::collections::VecDeque;

use super::response::Response;
use crate::units::Time;

/// Factor of a member that is not slow, in thousandths.
const ONCE: u32 = 1000;

/// Slowdown of a member, and the responses that are being delayed.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    /// Factor by which response times are multiplied, in thousandths.
    times_milli: u32,
    /// Delayed responses, each with the instant at which it will be returned, in the order of these instants.
    held: VecDeque<(Time, Response)>,
}

impl Default for Slow {
    fn default() -> Slow {
        Slow {
            times_milli: ONCE,
            held: VecDeque::new(),
        }
    }
}

impl Slow {
    /// Whether the member delays its responses.
    #[inline(always)]
    pub fn is_slow(&self) -> bool {
        self.times_milli > ONCE
    }

    /// Returns the instant of the next delayed response; [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub fn next_response(&self) -> Time {
        self.held.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Multiplies response times by `times_milli` / 1000 (at least 1) from now on. Requests in flight are affected,
    /// too.
    pub fn set(&mut self, times_milli: u32) {
        self.times_milli = times_milli.max(ONCE);
    }

    fn times(&self, time: Time) -> Time {
        let scaled = u128::from(time.0) * u128::from(self.times_milli) / u128::from(ONCE);
        // If the multiplied time overflows, a time is used that the device's clock never reaches.
        Time(u64::try_from(scaled).unwrap_or(u64::MAX / 2))
    }

    /// Delays a response to a request that was sent at `asked`. Of several responses that are due at the same instant,
    /// the one delayed first is returned first.
    pub fn hold(&mut self, asked: Time, now: Time, mut response: Response) {
        response.spent = response.spent.map(|time| self.times(time));
        let at = asked + self.times(now - asked);
        let place = self.held.partition_point(|(other, _)| *other <= at);
        self.held.insert(place, (at, response));
    }

    /// Takes the next delayed response that is due by `now`.
    pub fn take(&mut self, now: Time) -> Option<Response> {
        match self.next_response() <= now {
            true => self.held.pop_front().map(|(_, response)| response),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nand::Owner;

    /// Delayed responses are returned in the order of their instants. Of several responses that are due at the same
    /// instant, the one delayed first is returned first.
    #[test]
    fn responses_are_taken_in_the_order_of_their_instants() {
        let mut slow = Slow {
            times_milli: 2000,
            ..Slow::default()
        };
        for (number, asked, now) in [(0, 2, 6), (1, 0, 5), (2, 3, 6), (3, 4, 7), (4, 2, 7)] {
            let owner = Owner::member_request(number);
            let response = Response::at_once(owner, Time::ZERO, true);
            slow.hold(Time::from_us(asked), Time::from_us(now), response);
        }
        let order = slow.held.iter();
        let order: Vec<_> = order
            .map(|(at, response)| (response.owner.number(), at.0 / 1_000_000))
            .collect();
        assert_eq!(order, [(2, 9), (0, 10), (1, 10), (3, 10), (4, 12)]);
        assert_eq!(slow.next_response(), Time::from_us(9));
    }
}
