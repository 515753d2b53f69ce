//! A slow member: it works at its own times, and its responses take a multiple of the time that they would,
//! counted from the request (D-145). The array cannot know why.

use std::collections::VecDeque;

use super::spent::Spent;
use crate::nand::Done;
use crate::units::Time;

/// Thousandths of a member that is as fast as it is.
const ONCE: u32 = 1000;

/// How slow a member is, and which of its responses the array has not received yet.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    /// Times as late, in thousandths.
    times_milli: u32,
    /// The next one to come first.
    held: VecDeque<(Time, Held)>,
}

/// A response in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held {
    /// To a request by the array's number for it: what it spent, and that it was written.
    Part(u32, Spent, bool),
    /// A page operation that went to the member's flash directly.
    Page(Done),
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
    /// It holds responses back.
    #[inline(always)]
    pub fn is_slow(&self) -> bool {
        self.times_milli > ONCE
    }

    /// When the next response comes, [`Time::NEVER`] if none is in flight.
    #[inline(always)]
    pub fn next_answer(&self) -> Time {
        self.held.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// From now on responses take `times_milli` thousandths of their time, at least 1000: those not given yet.
    pub fn set(&mut self, times_milli: u32) {
        self.times_milli = times_milli.max(ONCE);
    }

    fn times(&self, time: Time) -> Time {
        let scaled = u128::from(time.0) * u128::from(self.times_milli) / u128::from(ONCE);
        // An instant beyond all others; the device's clock does not come so far.
        Time(u64::try_from(scaled).unwrap_or(u64::MAX / 2))
    }

    /// Holds back the response to a request that was sent at `asked`.
    pub fn hold_part(&mut self, asked: Time, now: Time, id: u32, spent: Spent, written: bool) {
        let spent = spent.map(|time| self.times(time));
        self.hold(asked, now, Held::Part(id, spent, written));
    }

    /// The same of a page operation.
    pub fn hold_page(&mut self, mut done: Done, now: Time) {
        done.queue_gc = self.times(done.queue_gc);
        done.transfer = self.times(done.transfer);
        done.array = self.times(done.array);
        self.hold(done.op.enqueued, now, Held::Page(done));
    }

    /// The next response that has come by `now`.
    pub fn take(&mut self, now: Time) -> Option<Held> {
        match self.next_answer() <= now {
            true => self.held.pop_front().map(|(_, answer)| answer),
            false => None,
        }
    }

    /// What was held, in its order.
    pub fn into_held(self) -> impl Iterator<Item = Held> {
        self.held.into_iter().map(|(_, answer)| answer)
    }

    /// Of simultaneous responses the one that was held first comes first.
    fn hold(&mut self, asked: Time, now: Time, answer: Held) {
        let at = asked + self.times(now - asked);
        let place = self.held.partition_point(|(other, _)| *other <= at);
        self.held.insert(place, (at, answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Responses in the order of their instants; of simultaneous ones the one that was held first.
    #[test]
    fn answers_come_in_their_order() {
        let mut slow = Slow {
            times_milli: 2000,
            ..Slow::default()
        };
        for (part, asked, now) in [(0, 2, 6), (1, 0, 5), (2, 3, 6), (3, 4, 7), (4, 2, 7)] {
            let answer = Held::Part(part, Spent::default(), true);
            slow.hold(Time::from_us(asked), Time::from_us(now), answer);
        }
        let order = slow.held.iter().map(|(at, held)| match held {
            Held::Part(part, ..) => (*part, at.0 / 1_000_000),
            Held::Page(_) => unreachable!("none was held"),
        });
        let order: Vec<_> = order.collect();
        assert_eq!(order, [(2, 9), (0, 10), (1, 10), (3, 10), (4, 12)]);
        assert_eq!(slow.next_answer(), Time::from_us(9));
    }
}
