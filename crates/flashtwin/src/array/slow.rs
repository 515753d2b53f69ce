//! A slow member: it does what it is asked at its own times, and its answers come so many times as late as
//! they would, counted from when it was asked (D-145). The array cannot know why.

use std::collections::VecDeque;

use super::layout::Stripe;
use super::raid::{Raid, Spent};
use super::{Array, MemberError};
use crate::events::EventQueue;
use crate::nand::Done;
use crate::units::Time;

/// Thousandths of a member that is as fast as it is.
const ONCE: u32 = 1000;

/// How slow a member is, and what of its answers the array has not got yet.
#[derive(Clone, Debug)]
pub(super) struct Slow {
    /// Times as late, in thousandths.
    times_milli: u32,
    /// The next one to come first.
    held: VecDeque<(Time, Held)>,
}

/// An answer on its way.
#[derive(Clone, Copy, Debug)]
enum Held {
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
    /// It holds answers back.
    #[inline]
    pub fn is_slow(&self) -> bool {
        self.times_milli > ONCE
    }

    /// When the next answer comes, [`Time::NEVER`] if none is on its way.
    #[inline]
    pub fn next_answer(&self) -> Time {
        self.held.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    fn times(&self, time: Time) -> Time {
        let scaled = u128::from(time.0) * u128::from(self.times_milli) / u128::from(ONCE);
        // An instant beyond all others; the device's clock does not come so far.
        Time(u64::try_from(scaled).unwrap_or(u64::MAX / 2))
    }

    /// Of answers that come at one instant the one that was held first comes first.
    fn hold(&mut self, asked: Time, now: Time, answer: Held) {
        let at = asked + self.times(now - asked);
        let place = self.held.partition_point(|(other, _)| *other <= at);
        self.held.insert(place, (at, answer));
    }
}

impl Array {
    /// From now on answers of a member come `times_milli` thousandths as late, at least 1000: those that it
    /// has not given yet. It counts for the member that is there, not for one that takes its place.
    pub fn slow_member(&mut self, member: usize, times_milli: u32) -> Result<(), MemberError> {
        self.backend.may_use(member)?;
        self.backend.members[member].slow.times_milli = times_milli.max(ONCE);
        Ok(())
    }
}

impl Raid {
    /// A member has done a request.
    #[inline]
    pub(super) fn part_answered(
        &mut self,
        member: usize,
        id: u32,
        spent: Spent,
        written: bool,
        now: Time,
        events: &mut EventQueue,
    ) {
        let slow = &mut self.members[member].slow;
        if !slow.is_slow() {
            return self.part_done(id, spent, written, now, events);
        }
        let spent = Spent {
            queue_gc: slow.times(spent.queue_gc),
            transfer: slow.times(spent.transfer),
            array: slow.times(spent.array),
        };
        let asked = self.parts[id as usize].sent();
        slow.hold(asked, now, Held::Part(id, spent, written));
    }

    /// A member's flash has done a page operation that went there directly: the same, if it comes now.
    #[inline]
    pub(super) fn page_answered(
        &mut self,
        member: usize,
        mut done: Done,
        now: Time,
        events: &mut EventQueue,
    ) -> Option<Done> {
        done.op.lpn = self.layout.page_of(Stripe(done.op.lpn.0), member as u32);
        // Nobody looks at what members hold of an array that has lost data.
        if self.broken || !self.members[member].slow.is_slow() {
            return Some(self.page_came(member, done));
        }
        let slow = &mut self.members[member].slow;
        done.queue_gc = slow.times(done.queue_gc);
        done.transfer = slow.times(done.transfer);
        done.array = slow.times(done.array);
        slow.hold(done.op.enqueued, now, Held::Page(done));
        self.wake(member, now, events);
        None
    }

    fn page_came(&mut self, member: usize, done: Done) -> Done {
        self.members[member].under_way -= 1;
        self.tell_done(&done.op);
        done
    }

    /// Takes what comes from a slow member by now.
    pub(super) fn take_held(&mut self, member: usize, now: Time, events: &mut EventQueue) {
        while self.members[member].slow.next_answer() <= now {
            match self.members[member].slow.held.pop_front() {
                Some((_, Held::Part(id, spent, written))) => {
                    self.part_done(id, spent, written, now, events);
                }
                Some((_, Held::Page(done))) => {
                    let done = self.page_came(member, done);
                    self.hand_over(done);
                }
                None => return,
            }
        }
    }

    /// All of them come now, or never: nothing is done any more.
    pub(super) fn let_go_of_held(&mut self) {
        for member in 0..self.members.len() {
            for (_, answer) in std::mem::take(&mut self.members[member].slow).held {
                if let Held::Page(done) = answer {
                    let done = self.page_came(member, done);
                    // It comes sooner than that would have taken.
                    self.hand_over(Done {
                        queue_gc: Time::ZERO,
                        transfer: Time::ZERO,
                        array: Time::ZERO,
                        ..done
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers in the order of their instants; of those of one instant the one that was held first.
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
