//! The coordinator of the members' garbage collection. It holds the coordination scheme, and the members' states that
//! the scheme uses.

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

/// Whether this specification has no coordination scheme, so that each member decides for itself when to collect.
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

/// The coordinator: its scheme, its views of the members' states, and its messages to the members.
#[derive(Clone, Debug)]
pub(crate) struct Coordinator {
    scheme: Coordination,
    views: Vec<MemberView>,
    messages: Vec<Message>,
    /// Whether no request is in flight in the array.
    idle: bool,
}

impl Coordinator {
    /// Creates the coordinator. `pools` has, for each member, the size and the watermarks of its pools of blocks.
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

    /// Whether members collect without coordination.
    pub fn is_local(&self) -> bool {
        self.scheme.is_local()
    }

    /// Ends coordination: from now on, each member decides for itself when to collect.
    pub fn dismiss(&mut self) {
        self.scheme = Coordination::LOCAL;
    }

    /// Whether the member was ordered to collect and has not finished.
    pub fn has_ordered(&self, member: usize) -> bool {
        self.views[member].ordered
    }

    /// Updates the coordinator's view of a member. Returns true if the member has just finished its order to collect.
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

    /// Takes the next message to be carried out.
    pub fn take_message(&mut self) -> Option<Message> {
        (!self.messages.is_empty()).then(|| self.messages.remove(0))
    }

    /// Records whether a member has an order to collect that it has not finished.
    pub fn set_ordered(&mut self, member: usize, ordered: bool) {
        self.views[member].ordered = ordered;
    }

    /// Returns the instant of the scheme's next periodic check; [`Time::NEVER`] if there is none.
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

    /// Records that a host request has arrived; returns true if the array was idle before.
    pub fn leave_idle(&mut self) -> bool {
        let was_idle = std::mem::take(&mut self.idle);
        if was_idle {
            if let Some(scheme) = self.scheme.get() {
                scheme.on_request(&self.views, &mut self.messages);
            }
        }
        was_idle
    }

    /// Records that the last request in flight in the array has completed.
    pub fn become_idle(&mut self, now: Time) {
        self.idle = true;
        if let Some(scheme) = self.scheme.get() {
            scheme.became_idle(now);
        }
    }

    /// Whether no request is in flight in the array.
    pub fn is_idle(&self) -> bool {
        self.idle
    }
}
