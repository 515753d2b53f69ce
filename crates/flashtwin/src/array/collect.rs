//! Members told to collect now, by whoever serves the array (D-143). Its coordinator hears nothing of it but
//! what it sees of the members.

use super::member::State;
use super::raid::Raid;
use super::{Array, MemberError};
use crate::events::EventQueue;
use crate::ssd::CollectError;
use crate::units::Time;

impl Array {
    /// Tells a member, or all that are there, what [`crate::Ssd::collect`] tells a drive; to nobody unless all
    /// of them can. How many dies were told.
    pub fn collect(
        &mut self,
        member: Option<usize>,
        die: Option<u32>,
    ) -> Result<u32, CollectError> {
        self.advance(self.now());
        let now = self.now();
        let raid = &mut self.backend;
        let which = match member {
            None if raid.broken => return Err(CollectError::Member(MemberError::Lost)),
            None => 0..raid.members.len(),
            Some(member) => {
                raid.may_use(member).map_err(CollectError::Member)?;
                member..member + 1
            }
        };
        let there = |raid: &Raid, at: &usize| raid.members[*at].state != State::Failed;
        let mut told = 0;
        for at in which.clone().filter(|at| there(raid, at)) {
            let dies = raid.members[at].ssd.may_collect(die);
            told += dies.map_err(|why| CollectError::At {
                member: at,
                why: Box::new(why),
            })?;
        }
        for at in which {
            if there(raid, &at) {
                raid.collect_at(at, die, now, &mut self.events);
            }
        }
        Ok(told)
    }
}

impl Raid {
    /// The member is there, whole or not.
    pub(super) fn may_use(&self, member: usize) -> Result<(), MemberError> {
        let members = self.members.len();
        match self.members.get(member).map(|m| m.state) {
            _ if self.broken => Err(MemberError::Lost),
            None => Err(MemberError::Unknown { member, members }),
            Some(State::Failed) => Err(MemberError::Missing { member }),
            Some(_) => Ok(()),
        }
    }

    fn collect_at(&mut self, member: usize, die: Option<u32>, now: Time, events: &mut EventQueue) {
        if self.direct.open {
            self.collect_direct(member, die, now, events);
        } else {
            self.members[member].advance(now);
            // It was asked before whether it can.
            let _ = self.members[member].ssd.collect(die);
            self.wake(member, now, events);
        }
        self.look_at(member, now, events);
    }
}
