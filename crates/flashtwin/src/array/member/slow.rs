//! A slow member: it works at its normal speed, but its responses are delayed to a multiple of their response time
//! (D-145). The array does not know why.

use std::collections::VecDeque;

use super::response::Response;
use crate::units::Time;

/// Thousandths of a member that is as fast as it is.
const ONCE: u32 = 1000;

/// How slow a member is, and which of its responses the array has not received yet.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    /// Times as late, in thousandths.
    times_milli: u32,
    /// The next one to come first.
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
    /// True if the member delays its responses.
    #[inline(always)]
    pub fn is_slow(&self) -> bool {
        self.times_milli > ONCE
    }

    /// When the next response comes, [`Time::NEVER`] if none is in flight.
    #[inline(always)]
    pub fn next_response(&self) -> Time {
        self.held.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Multiplies response times by `times_milli` thousandths, at least 1000, from now on, including those of
    /// requests in flight.
    pub fn set(&mut self, times_milli: u32) {
        self.times_milli = times_milli.max(ONCE);
    }

    fn times(&self, time: Time) -> Time {
        let scaled = u128::from(time.0) * u128::from(self.times_milli) / u128::from(ONCE);
        // Later than all other instants; the device's clock does not reach it.
        Time(u64::try_from(scaled).unwrap_or(u64::MAX / 2))
    }

    /// Delays a response to a request submitted at `asked`. Of simultaneous responses the one that was delayed first
    /// is returned first.
    pub fn hold(&mut self, asked: Time, now: Time, mut response: Response) {
        response.spent = response.spent.map(|time| self.times(time));
        let at = asked + self.times(now - asked);
        let place = self.held.partition_point(|(other, _)| *other <= at);
        self.held.insert(place, (at, response));
    }

    /// The next response that has come by `now`.
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

    /// Responses are returned in the order of their instants; of simultaneous ones the one that was delayed first.
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
