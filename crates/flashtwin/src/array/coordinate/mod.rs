//! The coordinator of garbage collection, and further knowledge of members.

#[cfg(test)]
mod tests;
pub(super) mod units;
pub(super) mod watch;

use crate::array::record::log::{ArrayEvent, GcMessage};
use crate::coordinate::{Coordination, MemberView, Message};
use crate::nand::PoolBlocks;
use crate::spec::ArraySpec;
use crate::ssd::Ssd;
use crate::units::Time;

/// Members of such an array collect when they must, each for itself.
pub(super) fn is_local(spec: &ArraySpec) -> bool {
    Coordination::of(&spec.coordination, spec.members.len()).is_local()
}

impl Message {
    /// Returns the log entry of the message.
    pub fn log_entry(self) -> ArrayEvent {
        let (what, member) = match self {
            Message::Participate { from } => (GcMessage::Participate, from),
            Message::Request { from } => (GcMessage::Request, from),
            Message::Force { to, .. } => (GcMessage::Force, to),
            Message::Cancel { to } => (GcMessage::Cancel, to),
        };
        ArrayEvent::Message { what, member }
    }
}

/// The coordinator, its knowledge of the members, and its messages to them.
#[derive(Clone, Debug)]
pub(crate) struct Coordinator {
    scheme: Coordination,
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
                ordered: false,
            }
        };
        Coordinator {
            scheme: Coordination::of(&spec.coordination, spec.members.len()),
            views: pools.map(view).collect(),
            messages: Vec::new(),
            idle: true,
        }
    }

    /// Members go their own ways.
    pub fn is_local(&self) -> bool {
        self.scheme.is_local()
    }

    /// From now on members go their own ways.
    pub fn dismiss(&mut self) {
        self.scheme = Coordination::LOCAL;
    }

    /// The member was ordered to collect and has not finished.
    pub fn has_ordered(&self, member: usize) -> bool {
        self.views[member].ordered
    }

    /// Updates the view of a member; returns true if the member has finished its order.
    pub fn observe(&mut self, member: usize, ssd: &mut Ssd, now: Time) -> bool {
        let Some(scheme) = self.scheme.get() else {
            return false;
        };
        if let Some(lowest) = ssd.take_lowest() {
            self.views[member].lowest = lowest;
            scheme.on_low_free_blocks(now, &self.views, member, &mut self.messages);
        }
        let collects = ssd.gc_left() > 0 || ssd.is_in_gc();
        let finished = self.views[member].ordered && !collects;
        if finished {
            self.views[member].ordered = false;
            scheme.finished(&self.views, member, &mut self.messages);
        }
        finished
    }

    /// The next message to be carried out.
    pub fn take_message(&mut self) -> Option<Message> {
        (!self.messages.is_empty()).then(|| self.messages.remove(0))
    }

    /// Records that a member was ordered to collect (true), or to stop, or that its order no longer counts (false).
    pub fn set_ordered(&mut self, member: usize, ordered: bool) {
        self.views[member].ordered = ordered;
    }

    /// Returns when the coordinator checks the members next on its own; [`Time::NEVER`] if it does not.
    pub fn next_check(&mut self) -> Time {
        self.scheme
            .get()
            .map_or(Time::NEVER, |scheme| scheme.next_check())
    }

    /// Runs the scheme's periodic check if it is due.
    pub fn check(&mut self, now: Time) {
        if let Some(scheme) = self.scheme.get() {
            if scheme.next_check() <= now {
                scheme.check(now, &self.views, &mut self.messages);
            }
        }
    }

    /// Notes a request of the host; returns true if the array was idle before.
    pub fn leave_idle(&mut self) -> bool {
        let was_idle = std::mem::take(&mut self.idle);
        if was_idle {
            if let Some(scheme) = self.scheme.get() {
                scheme.on_request(&self.views, &mut self.messages);
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
