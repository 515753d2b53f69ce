//! Harmonia's proactive scheme (section 4.3.2). While the array has requests in flight, the scheme works like the
//! reactive-selective one. While the array is idle, registered members collect until their reserve is free or a host
//! request arrives.

use super::global::Selective;
use super::scheme::{Coordinate, MemberView, Message, Scheme};
use crate::component::{parameters, Component, Kind, Settings};
use crate::gc::Force;
use crate::units::Time;

parameters! {
    /// Parameters of `idle`.
    struct Parameters {
        /// Time without a request in flight after which the array counts as idle.
        idle_ms: u32 = Kind::Count(0, 1_000_000), "10", "not printed (D-24)";
        /// Interval between the controller's checks of the members.
        idle_check_us: u32 = Kind::Count(1, 1_000_000_000), "1000", "not printed (D-24)";
    }
}

/// The scheme `idle`. The array counts as idle when no request has been in flight for a fixed time (Douglis et al.).
#[derive(Clone, Debug)]
pub(crate) struct Idle {
    under_load: Selective,
    /// Time without a request in flight after which the array counts as idle (T_idle).
    after: Time,
    /// Interval between two checks by the controller (T_chk).
    every: Time,
    next_check: Time,
    collecting: bool,
}

impl Scheme for Idle {
    const COMPONENT: Component = Component {
        name: "idle",
        line: "the same, and while the array is idle (Harmonia, proactive idle)",
        parameters: Parameters::ROWS,
    };

    fn new(members: usize, settings: &Settings) -> Idle {
        let Parameters {
            idle_ms,
            idle_check_us,
        } = Parameters::of(settings);
        Idle {
            under_load: Selective::new(members, settings),
            after: Time::from_ms(idle_ms.into()),
            every: Time::from_us(idle_check_us.into()),
            next_check: Time::NEVER,
            collecting: false,
        }
    }
}

impl Coordinate for Idle {
    fn on_low_free_blocks(
        &mut self,
        now: Time,
        members: &[MemberView],
        member: usize,
        out: &mut Vec<Message>,
    ) {
        if !self.collecting {
            self.under_load
                .on_low_free_blocks(now, members, member, out);
        }
    }

    fn finished(&mut self, members: &[MemberView], member: usize, out: &mut Vec<Message>) {
        self.under_load.finished(members, member, out);
        if self.collecting && members.iter().all(|member| !member.ordered) {
            self.collecting = false;
            self.under_load.clear();
        }
    }

    /// Schedules the check that may start a collection. The controller checks only at multiples of T_chk. The scheduled
    /// check is the first of these at which the array has been idle for T_idle.
    fn became_idle(&mut self, now: Time) {
        let at = (now + self.after).0.div_ceil(self.every.0) * self.every.0;
        self.next_check = Time(at);
    }

    fn on_request(&mut self, members: &[MemberView], out: &mut Vec<Message>) {
        self.next_check = Time::NEVER;
        if std::mem::take(&mut self.collecting) {
            let ordered = (0..members.len()).filter(|&to| members[to].ordered);
            out.extend(ordered.map(|to| Message::Cancel { to }));
        }
    }

    fn next_check(&self) -> Time {
        self.next_check
    }

    fn check(&mut self, _now: Time, members: &[MemberView], out: &mut Vec<Message>) {
        self.next_check = Time::NEVER;
        for to in self.under_load.registered() {
            self.collecting = true;
            let force = Force {
                until: members[to].idle_until.saturating_sub(1),
                once: false,
                single: false,
                yields: true,
            };
            out.push(Message::Force { to, force });
        }
    }
}
