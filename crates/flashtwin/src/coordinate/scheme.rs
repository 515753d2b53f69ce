//! The trait of coordination schemes. A scheme observes the states of the members and sends messages. The array
//! executes the messages; a scheme never changes a member itself. Messages take no time (D-24).

use crate::component::{Component, Settings};
use crate::gc::Force;
use crate::units::Time;

/// State of a member that is visible to a scheme.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberView {
    /// Number of free blocks at or below which the member is registered (T_soft).
    pub soft: u32,
    /// Number of free blocks at or below which the member must collect (T_hard).
    pub hard: u32,
    /// Number of free blocks (T_stop). While a pool has at most this many, it continues an ordered collection.
    pub stop: u32,
    /// Number of free blocks at which a pool stops a collection that was started because the array was idle.
    pub idle_until: u32,
    /// Number of free blocks of the pool of the member that last took a free block. If several pools took blocks since
    /// the last observation, the least of their numbers.
    pub lowest: u32,
    /// Whether the member was ordered to collect and has not completed the order yet.
    pub ordered: bool,
}

/// A message between the coordinator and a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// PARTICIPATE_GGC: the member has been registered.
    Participate { from: usize },
    /// REQUEST_GGC: the member must collect.
    Request { from: usize },
    /// FORCE_GC: the member is ordered to collect.
    Force { to: usize, force: Force },
    /// The member is ordered to stop collecting.
    Cancel { to: usize },
}

/// A scheme of the table in this directory's `mod.rs`.
pub(super) trait Scheme: Coordinate + Sized {
    /// Description of the scheme, for device files and documentation.
    const COMPONENT: Component;
    /// Whether members collect without coordination.
    const IS_LOCAL: bool = false;

    /// Creates the scheme for `members` members, with the values of its parameters.
    fn new(members: usize, settings: &Settings) -> Self;
}

/// Events that a scheme handles. Every method with the argument `_out` can send messages.
pub(crate) trait Coordinate {
    /// Called when a pool of the member has taken a free block. `members[member].lowest` is then the number of free
    /// blocks of this pool.
    fn on_low_free_blocks(
        &mut self,
        _now: Time,
        _members: &[MemberView],
        _member: usize,
        _out: &mut Vec<Message>,
    ) {
    }
    /// Called when the member has finished the ordered collection.
    fn finished(&mut self, _members: &[MemberView], _member: usize, _out: &mut Vec<Message>) {}
    /// Called when the array's last request in flight has completed.
    fn became_idle(&mut self, _now: Time) {}
    /// Called when a host request arrives while the array has no other request in flight.
    fn on_request(&mut self, _members: &[MemberView], _out: &mut Vec<Message>) {}
    /// Returns the time of the scheme's next check; [`Time::NEVER`] if there is none.
    fn next_check(&self) -> Time {
        Time::NEVER
    }
    /// Called at the time that `next_check` returned.
    fn check(&mut self, _now: Time, _members: &[MemberView], _out: &mut Vec<Message>) {}
}

/// Returns Harmonia's order FORCE_GC. With this order, each pool collects at least one victim, then continues until it
/// has more than T_stop free blocks (D-25).
pub(super) fn force_round(view: &MemberView) -> Force {
    Force {
        until: view.stop,
        once: true,
        single: false,
        yields: false,
    }
}

/// A round, in which several members are ordered to collect at the same time.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    pub running: bool,
}

impl Round {
    /// Starts a round at the request of the member `from`: orders the members in `which` to collect.
    pub fn begin(
        &mut self,
        from: usize,
        which: impl Iterator<Item = usize>,
        members: &[MemberView],
        out: &mut Vec<Message>,
    ) {
        self.running = true;
        out.push(Message::Request { from });
        out.extend(which.map(|to| Message::Force {
            to,
            force: force_round(&members[to]),
        }));
    }

    /// Ends the round if every member has finished.
    pub fn ends(&mut self, members: &[MemberView]) {
        self.running &= members.iter().any(|member| member.ordered);
    }
}
