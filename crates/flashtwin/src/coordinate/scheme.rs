//! The trait of coordination schemes. A scheme sees the states of the members and sends messages, which the array
//! executes; it never changes a member itself. Messages take no time (D-24).

use crate::component::{Component, Settings};
use crate::gc::Force;
use crate::units::Time;

/// State of a member as a coordinator sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberView {
    /// Free blocks at or below which it is registered (T_soft).
    pub soft: u32,
    /// Free blocks at or below which it must collect (T_hard).
    pub hard: u32,
    /// Free blocks at or below which a pool continues to collect after an order (T_stop).
    pub stop: u32,
    /// While the array is idle, pools collect until so many blocks are free.
    pub idle_until: u32,
    /// Free blocks of its scarcest pool when it last took a block.
    pub lowest: u32,
    /// Whether the member was ordered to collect and has not finished.
    pub ordered: bool,
}

/// A message of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// PARTICIPATE_GGC: a member is registered.
    Participate { from: usize },
    /// REQUEST_GGC: a member must collect.
    Request { from: usize },
    /// FORCE_GC: a member is to collect.
    Force { to: usize, force: Force },
    /// A member is to stop.
    Cancel { to: usize },
}

/// A scheme of the table in this folder's `mod.rs`.
pub(super) trait Scheme: Coordinate + Sized {
    /// Description of the scheme, for device files and documentation.
    const COMPONENT: Component;
    /// Whether members collect without coordination.
    const IS_LOCAL: bool = false;

    /// Makes the scheme for so many members, with the values of its parameters.
    fn new(members: usize, settings: &Settings) -> Self;
}

/// Events that a scheme handles. Every method may send messages.
pub(crate) trait Coordinate {
    /// A pool of a member has fallen to `members[member].lowest` free blocks.
    fn on_low_free_blocks(
        &mut self,
        _now: Time,
        _members: &[MemberView],
        _member: usize,
        _out: &mut Vec<Message>,
    ) {
    }
    /// A member has finished its order.
    fn finished(&mut self, _members: &[MemberView], _member: usize, _out: &mut Vec<Message>) {}
    /// The array has nothing to do any more.
    fn became_idle(&mut self, _now: Time) {}
    /// The host wants something of an idle array.
    fn on_request(&mut self, _members: &[MemberView], _out: &mut Vec<Message>) {}
    /// Time of the scheme's next check; [`Time::NEVER`] if there is none.
    fn next_check(&self) -> Time {
        Time::NEVER
    }
    /// Handles the time of the check.
    fn check(&mut self, _now: Time, _members: &[MemberView], _out: &mut Vec<Message>) {}
}

/// Harmonia's FORCE_GC: collect at least one victim, then continue until more than T_stop blocks are free (D-25).
pub(super) fn force_round(view: &MemberView) -> Force {
    Force {
        until: view.stop,
        once: true,
        single: false,
        yields: false,
    }
}

/// Members that are ordered to collect together.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    pub running: bool,
}

impl Round {
    /// Orders those members to collect.
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

    /// Ends the round if no member has an unfinished order.
    pub fn ends(&mut self, members: &[MemberView]) {
        self.running &= members.iter().any(|member| member.ordered);
    }
}
