//! A proactive scheme that the paper describes but does not implement (section 4.3.2): the controller checks the
//! members periodically and makes those collect that would benefit, before any member must.
//!
//! Our version: if a check finds that no member is collecting and that the scarcest pool of some member is at or
//! below T_soft, all such members collect together, one block in each pool at or below T_soft. So a round begins one
//! step before T_hard, and is as short as possible.

use super::scheme::{Coordinate, MemberView, Message, Scheme};
use crate::component::{parameters, Component, Kind, Settings};
use crate::gc::Force;
use crate::units::Time;

parameters! {
    /// Parameters of the soft limit.
    struct Parameters {
        /// How often the controller looks at the members.
        idle_check_us: u32 = Kind::Count(1, 1_000_000_000), "1000", "not printed (D-24)";
    }
}

/// Proactive with a soft limit.
#[derive(Clone, Debug)]
pub(crate) struct SoftLimit {
    every: Time,
    next_check: Time,
    /// Members that have come down to T_soft since they last collected.
    low: Vec<bool>,
}

impl Scheme for SoftLimit {
    const COMPONENT: Component = Component {
        name: "soft-limit",
        line: "the controller looks now and then and has those registered collect",
        parameters: Parameters::ROWS,
    };

    fn new(members: usize, settings: &Settings) -> SoftLimit {
        let every = Parameters::of(settings).idle_check_us;
        SoftLimit {
            every: Time::from_us(every.into()),
            next_check: Time::NEVER,
            low: vec![false; members],
        }
    }
}

impl Coordinate for SoftLimit {
    fn on_low_free_blocks(
        &mut self,
        now: Time,
        members: &[MemberView],
        member: usize,
        out: &mut Vec<Message>,
    ) {
        let view = &members[member];
        if view.lowest <= view.soft && !std::mem::replace(&mut self.low[member], true) {
            out.push(Message::Participate { from: member });
        }
        // Looks that would find nothing are left out.
        if self.next_check == Time::NEVER && self.low.contains(&true) {
            self.next_check = Time((now.0 / self.every.0 + 1) * self.every.0);
        }
    }

    fn next_check(&self) -> Time {
        self.next_check
    }

    fn check(&mut self, now: Time, members: &[MemberView], out: &mut Vec<Message>) {
        if members.iter().any(|member| member.ordered) {
            self.next_check = now + self.every;
            return;
        }
        self.next_check = Time::NEVER;
        for (to, low) in self.low.iter_mut().enumerate() {
            if std::mem::take(low) {
                let force = Force {
                    until: members[to].soft,
                    once: false,
                    single: true,
                    yields: false,
                };
                out.push(Message::Force { to, force });
            }
        }
    }
}
