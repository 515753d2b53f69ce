//! A member fails: what it was doing is lost, its pages are worked out from the others.

use super::log::ArrayEvent;
use super::member::{Member, State};
use super::raid::{Raid, Spent};
use super::stripes::NONE;
use super::Array;
use crate::events::EventQueue;
use crate::spec::Level;
use crate::units::Time;

/// Why a member cannot fail, or be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberError {
    /// There is no such member.
    Unknown {
        /// The one asked for.
        member: usize,
        /// Members there are.
        members: usize,
    },
    /// It has failed already.
    Missing {
        /// The one asked for.
        member: usize,
    },
    /// It has not failed.
    Present {
        /// The one asked for.
        member: usize,
    },
    /// Without it, data would be lost.
    Needed {
        /// The one asked for.
        member: usize,
    },
    /// The array has lost data: nothing can be done for it.
    Lost,
}

impl std::fmt::Display for MemberError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MemberError::Unknown { member, members } => {
                write!(
                    f,
                    "member {member}: the array has members 0 to {}",
                    members - 1
                )
            }
            MemberError::Missing { member } => write!(f, "member {member} has failed already"),
            MemberError::Present { member } => write!(f, "member {member} has not failed"),
            MemberError::Needed { member } => write!(
                f,
                "member {member} cannot fail: with those already missing, data would be lost"
            ),
            MemberError::Lost => f.write_str("the array has lost data and is of no use any more"),
        }
    }
}

impl std::error::Error for MemberError {}

impl Array {
    /// A member fails at this instant. What it was doing is done without it.
    pub fn fail_member(&mut self, member: usize) -> Result<(), MemberError> {
        let now = self.now();
        self.backend.may_fail(member)?;
        self.backend.lose(member);
        self.backend.begin_phase(now);
        self.backend.replan(member, now, &mut self.events);
        Ok(())
    }
}

impl Raid {
    pub(super) fn may_fail(&self, member: usize) -> Result<(), MemberError> {
        let members = self.members.len();
        if self.broken {
            return Err(MemberError::Lost);
        }
        let Some(state) = self.members.get(member).map(|m| m.state) else {
            return Err(MemberError::Unknown { member, members });
        };
        if state == State::Failed {
            return Err(MemberError::Missing { member });
        }
        if self.needs(member, |at| self.members[at].state != State::There) {
            return Err(MemberError::Needed { member });
        }
        Ok(())
    }

    /// Without `member`, and without all others that are missing, data would be lost.
    pub(super) fn needs(&self, member: usize, missing: impl Fn(usize) -> bool) -> bool {
        let members = self.members.len();
        let others = (0..members).filter(|&at| at != member && missing(at));
        match self.layout.level() {
            Level::Raid10 => missing(member ^ 1),
            level => others.count() as u32 >= level.redundancy(members as u32),
        }
    }

    /// Nothing of the member is left.
    fn lose(&mut self, member: usize) {
        let mut lost = Member::new(&self.spec.members[member]);
        let m = &mut self.members[member];
        lost.ssd.set_logs(m.ssd.is_logged());
        m.ssd = lost.ssd;
        m.state = State::Failed;
        m.rows = lost.rows;
        m.slow = lost.slow;
        self.whole = false;
        self.tell(|_| ArrayEvent::Failed { member });
    }

    /// What was under way at the lost member goes on without it.
    fn replan(&mut self, member: usize, now: Time, events: &mut EventQueue) {
        self.views[member].told = false;
        self.look_at(member, now, events);
        self.forget_rebuilt(member);
        for part in self.parts_of(member) {
            match part.work {
                NONE => self.again(part.chain),
                work => self.step_lost(work, now, events),
            }
        }
        self.place(now, events);
    }

    fn step_lost(&mut self, work: u32, now: Time, events: &mut EventQueue) {
        self.read_again(work);
        self.step_done(work, Spent::default(), true, now, events);
    }
}
