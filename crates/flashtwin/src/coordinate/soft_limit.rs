//! A proactive scheme that Harmonia's paper describes but does not implement (section 4.3.2). The controller checks the
//! members periodically. It orders members to collect early, before any of them must collect.
//!
//! In our version, each check starts a round unless a member is still collecting. The round consists of all members in
//! which a pool has fallen to T_soft free blocks since the last round. They collect together, one block in each pool
//! that has at most T_soft free blocks. A round is therefore short, and usually begins before any pool has fallen to
//! T_hard.

use super::scheme::{Coordinate, MemberView, Message, Scheme};
use crate::component::{parameters, Component, Kind, Settings};
use crate::gc::Force;
use crate::units::Time;

parameters! {
    /// Parameters of the soft limit.
    struct Parameters {
        /// Interval between the controller's checks of the members.
        idle_check_us: u32 = Kind::Count(1, 1_000_000_000), "1000", "not printed (D-24)";
    }
}

/// The scheme `soft-limit`.
#[derive(Clone, Debug)]
pub(crate) struct SoftLimit {
    every: Time,
    next_check: Time,
    /// For each member, whether a pool has fallen to T_soft free blocks since the member was last ordered to collect.
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
        // A check is scheduled only while there is a member that it can order to collect.
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
