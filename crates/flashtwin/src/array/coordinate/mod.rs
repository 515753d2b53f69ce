//! Coordinators of garbage collection (Kim et al., "Harmonia", MSST 2011, and others), and further knowledge of
//! members.

mod global;
mod idle;
pub(super) mod scheme;
mod soft_limit;
mod turns;
pub(super) mod units;
pub(super) mod watch;

use crate::nand::PoolBlocks;
use crate::spec::{ArraySpec, Coordination};
use crate::ssd::Ssd;
use crate::units::Time;
use global::{Inclusive, Selective};
use idle::Idle;
use scheme::{Coordinate, MemberView, Message};
use soft_limit::SoftLimit;
use turns::Turns;

/// One of the schemes.
#[derive(Clone, Debug)]
enum Scheme {
    Local,
    Inclusive(Inclusive),
    Selective(Selective),
    Idle(Idle),
    SoftLimit(SoftLimit),
    Turns(Turns),
}

impl Scheme {
    fn of(spec: &ArraySpec) -> Scheme {
        let members = spec.members.len();
        match spec.coordination {
            Coordination::Local | Coordination::Ideal => Scheme::Local,
            Coordination::Inclusive => Scheme::Inclusive(Inclusive::default()),
            Coordination::Selective => Scheme::Selective(Selective::new(members)),
            Coordination::Idle => {
                Scheme::Idle(Idle::new(members, spec.idle_after, spec.idle_check))
            }
            Coordination::SoftLimit => Scheme::SoftLimit(SoftLimit::new(members, spec.idle_check)),
            Coordination::Turns => Scheme::Turns(Turns::default()),
        }
    }

    /// The scheme; `None` if members go their own ways.
    fn get(&mut self) -> Option<&mut dyn Coordinate> {
        match self {
            Scheme::Local => None,
            Scheme::Inclusive(c) => Some(c),
            Scheme::Selective(c) => Some(c),
            Scheme::Idle(c) => Some(c),
            Scheme::SoftLimit(c) => Some(c),
            Scheme::Turns(c) => Some(c),
        }
    }
}

/// Members of such an array collect when they must, each for itself.
pub(super) fn is_local(spec: &ArraySpec) -> bool {
    matches!(Scheme::of(spec), Scheme::Local)
}

/// The coordinator, its knowledge of the members, and its messages to them.
#[derive(Clone, Debug)]
pub(crate) struct Coordinator {
    scheme: Scheme,
    views: Vec<MemberView>,
    messages: Vec<Message>,
    /// The array has nothing to do.
    idle: bool,
}

impl Coordinator {
    /// The coordinator of members with these pools.
    pub fn new(spec: &ArraySpec, pools: impl Iterator<Item = PoolBlocks>) -> Coordinator {
        let view = |pool: PoolBlocks| {
            let of = |percent: f64| (f64::from(pool.blocks) * percent / 100.0) as u32;
            let hard = spec.hard_percent.map_or(pool.low, of);
            MemberView {
                soft: of(spec.soft_percent),
                hard,
                stop: hard + spec.stop_blocks,
                idle_until: spec.idle_until_percent.map_or(pool.reserved, of),
                lowest: pool.blocks,
                told: false,
            }
        };
        Coordinator {
            scheme: Scheme::of(spec),
            views: pools.map(view).collect(),
            messages: Vec::new(),
            idle: true,
        }
    }

    /// Members go their own ways.
    pub fn is_local(&self) -> bool {
        matches!(self.scheme, Scheme::Local)
    }

    /// From now on members go their own ways.
    pub fn dismiss(&mut self) {
        self.scheme = Scheme::Local;
    }

    /// The member was ordered to collect and has not finished.
    pub fn has_told(&self, member: usize) -> bool {
        self.views[member].told
    }

    /// Looks at a member; true if it has finished its order.
    pub fn observe(&mut self, member: usize, ssd: &mut Ssd, now: Time) -> bool {
        let Some(scheme) = self.scheme.get() else {
            return false;
        };
        if let Some(lowest) = ssd.take_lowest() {
            self.views[member].lowest = lowest;
            scheme.fell(now, &self.views, member, &mut self.messages);
        }
        let collects = ssd.gc_left() > 0 || ssd.is_in_gc();
        let finished = self.views[member].told && !collects;
        if finished {
            self.views[member].told = false;
            scheme.finished(&self.views, member, &mut self.messages);
        }
        finished
    }

    /// The next message to be carried out.
    pub fn take_message(&mut self) -> Option<Message> {
        (!self.messages.is_empty()).then(|| self.messages.remove(0))
    }

    /// A member is ordered to collect, or to stop; or nothing is expected of it any more.
    pub fn tells(&mut self, member: usize, told: bool) {
        self.views[member].told = told;
    }

    /// When the coordinator wants to look at the members by itself, [`Time::NEVER`] if it does not.
    pub fn next_check(&mut self) -> Time {
        self.scheme
            .get()
            .map_or(Time::NEVER, |scheme| scheme.next_check())
    }

    /// It does, if its time has come.
    pub fn check(&mut self, now: Time) {
        if let Some(scheme) = self.scheme.get() {
            if scheme.next_check() <= now {
                scheme.check(now, &self.views, &mut self.messages);
            }
        }
    }

    /// The host wants something; true if the array had nothing to do before.
    pub fn leave_idle(&mut self) -> bool {
        let was_idle = std::mem::take(&mut self.idle);
        if was_idle {
            if let Some(scheme) = self.scheme.get() {
                scheme.request_came(&self.views, &mut self.messages);
            }
        }
        was_idle
    }

    /// The array has nothing to do any more.
    pub fn become_idle(&mut self, now: Time) {
        self.idle = true;
        if let Some(scheme) = self.scheme.get() {
            scheme.became_idle(now);
        }
    }

    /// The array has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.idle
    }
}

#[cfg(test)]
mod tests;
