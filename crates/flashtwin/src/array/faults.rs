//! Faults and orders: members fail, are replaced, become slow, or are ordered to collect garbage.

use super::clock::Clock;
use super::features::Every;
use super::io::ops::Chain;
use super::io::requests::Origin;
use super::jobs::Jobs;
use super::member::response::Spent;
use super::member::rows::Rows;
use super::member::{Member, State};
use super::raid::{Array, Raid, REBUILDING};
use super::record::history::{MemberRebuild, Phase};
use super::record::log::ArrayEvent;
use crate::refused::{CollectError, MemberError};
use crate::spec::Level;
use crate::units::{narrow, Time};

impl Array {
    /// Makes a member fail at this instant. The array's operations in flight continue with the other members.
    ///
    /// # Errors
    /// Fails if there is no such member, if it has failed before, if data would be lost without it, or if the array
    /// has lost data already.
    pub fn fail_member(&mut self, member: usize) -> Result<(), MemberError> {
        let (raid, mut clock) = self.raid_now();
        raid.may_fail(member)?;
        raid.lose(member, &mut clock);
        raid.replan(member, &mut clock);
        Ok(())
    }

    /// Makes a member fail even if the array loses data without it. ([`Array::fail_member`] refuses this with
    /// [`MemberError::Needed`].) After a loss of data, all requests in flight and all later requests complete with
    /// [`crate::Status::Failed`] (D-107).
    ///
    /// # Errors
    /// Fails if there is no such member, it has failed before, or the array has lost data.
    pub fn fail_needed_member(&mut self, member: usize) -> Result<(), MemberError> {
        match self.backend.may_fail(member) {
            Ok(()) => self.fail_member(member),
            Err(MemberError::Needed { .. }) => {
                self.broken = true;
                let (raid, mut clock) = self.raid_now();
                raid.break_down(member, &mut clock);
                Ok(())
            }
            Err(other) => Err(other),
        }
    }

    /// Replaces a failed member by a new, empty one. The array reconstructs the contents of the new member from the
    /// other members, at the pace given by `array.rebuild_depth` and `array.rebuild_mib_per_s`.
    ///
    /// # Errors
    /// Fails if there is no such member, it has not failed, or the array has lost data.
    pub fn replace_member(&mut self, member: usize) -> Result<(), MemberError> {
        let (raid, mut clock) = self.raid_now();
        raid.replace(member, clock.now)?;
        raid.jobs.rebuild_anew(&mut raid.io, &mut clock);
        Ok(())
    }

    /// Returns the number of restored rows and the total number of rows, each summed over the members that are being
    /// rebuilt. `None` if no member is being rebuilt.
    pub fn rebuild_progress(&self) -> Option<(u64, u64)> {
        let members = &self.backend.io.members;
        let rebuilding = members.iter().filter(|m| m.state == State::Rebuilding);
        let rows = rebuilding.map(|m| (u64::from(m.rows.there), u64::from(m.rows.of)));
        rows.reduce(|a, b| (a.0 + b.0, a.1 + b.1))
            .filter(|_| !members.lost)
    }

    /// Multiplies the response times of a member by `times_milli` / 1000 (at least 1) from now on. Requests in flight
    /// are affected, too. A new member that replaces this one is not slow.
    ///
    /// # Errors
    /// Fails if there is no such member, it has failed, or the array has lost data.
    pub fn slow_member(&mut self, member: usize, times_milli: u32) -> Result<(), MemberError> {
        self.backend.may_use(member)?;
        let member = &mut self.backend.io.members[member];
        member.slow_down(times_milli);
        self.backend.io.choose_features();
        Ok(())
    }

    /// Orders one member, or all present members, to collect garbage, as [`crate::Ssd::collect`] does for an SSD. If
    /// one of these members cannot execute the order, none receives it. Returns the number of dies that collect. The
    /// coordinator receives no notice of the order. It only observes that the members are in GC (D-143).
    ///
    /// # Errors
    /// Fails if there is no such member or die, if the member or die has failed, if the array has lost data, or if the
    /// translation layer of a member accepts no orders to collect.
    pub fn collect(
        &mut self,
        member: Option<usize>,
        die: Option<u32>,
    ) -> Result<u32, CollectError> {
        self.advance(self.now());
        let (raid, mut clock) = self.raid_now();
        let which = match member {
            None if raid.io.members.lost => return Err(CollectError::Member(MemberError::Lost)),
            None => 0..raid.io.members.len(),
            Some(member) => {
                raid.may_use(member).map_err(CollectError::Member)?;
                member..member + 1
            }
        };
        let there = |raid: &Raid, at: &usize| raid.io.members[*at].state != State::Failed;
        let mut ordered = 0;
        for at in which.clone().filter(|at| there(raid, at)) {
            let dies = raid.io.members[at].drive.ssd.may_collect(die);
            ordered += dies.map_err(|why| CollectError::At {
                member: at,
                why: Box::new(why),
            })?;
        }
        for at in which {
            if there(raid, &at) {
                raid.collect_at(at, die, &mut clock);
            }
        }
        Ok(ordered)
    }

    /// Returns the phases since the last [`crate::Device::reset_metrics`]. A new phase begins when a member fails, is
    /// replaced, or has been rebuilt. There is at least one phase, because the last one is the current one.
    pub fn phases(&self) -> &[Phase] {
        &self.backend.io.record.history.phases
    }

    /// Returns the rebuilds since the last [`crate::Device::reset_metrics`], including those that were running at
    /// that time.
    pub fn rebuilds(&self) -> &[MemberRebuild] {
        &self.backend.io.record.history.rebuilds
    }
}

impl Raid {
    fn state_of(&self, member: usize) -> Result<State, MemberError> {
        let members = &self.io.members;
        if members.lost {
            return Err(MemberError::Lost);
        }
        members
            .get(member)
            .map(|m| m.state)
            .ok_or(MemberError::Unknown {
                member,
                members: members.len(),
            })
    }

    /// Checks that the member is not missing: it is either complete or being rebuilt.
    fn may_use(&self, member: usize) -> Result<(), MemberError> {
        match self.state_of(member)? {
            State::Failed => Err(MemberError::Missing { member }),
            State::There | State::Rebuilding => Ok(()),
        }
    }

    fn may_fail(&self, member: usize) -> Result<(), MemberError> {
        self.may_use(member)?;
        if self.needs(member, |at| self.io.members[at].state != State::There) {
            return Err(MemberError::Needed { member });
        }
        Ok(())
    }

    /// Whether the array would lose data if `member` were missing together with the members for which `missing`
    /// returns true.
    pub(super) fn needs(&self, member: usize, missing: impl Fn(usize) -> bool) -> bool {
        let members = self.io.members.len();
        let others = (0..members).filter(|&at| at != member && missing(at));
        match self.io.layout.level() {
            Level::Raid10 => missing(member ^ 1),
            level => narrow(others.count()) >= level.redundancy(narrow(members)),
        }
    }

    /// Removes a failed member with its contents.
    fn lose(&mut self, member: usize, clock: &mut Clock) {
        let mut lost = Member::new(&self.spec.members[member], member);
        let m = &mut self.io.members[member];
        lost.drive.ssd.set_logs(m.drive.ssd.is_logged());
        m.exchange(lost.drive, clock);
        m.state = State::Failed;
        m.rows = lost.rows;
        m.slow = lost.slow;
        self.io.members.whole = false;
        self.io.choose_features();
        self.io.record.log.add(|| ArrayEvent::Failed { member });
        self.io.begin_phase(clock.now);
    }

    /// Continues, with the other members, the operations that were in flight on the failed member. Operations of the
    /// host are continued first, in the order in which they were sent. Jobs follow, in the order of their numbers. The
    /// order of sending is not used for jobs: a single page of a job has a position in this order only if the array is
    /// logged, so the results would depend on the log.
    fn replan(&mut self, member: usize, clock: &mut Clock) {
        self.io.watch.coordinator.set_ordered(member, false);
        self.io.look_at(member, clock);
        self.jobs.forget_rebuilt(member);
        self.io.members[member].in_flight = 0;
        let mut jobs = self.jobs.take_pages_of(member);
        let pages = self.io.ops.take_sent(Some(member));
        let mut chains: Vec<(u64, Chain)> = pages
            .into_iter()
            .map(|(order, op)| (order, Chain::only(op)))
            .collect();
        for request in self.io.requests.take_of(member) {
            match request.origin {
                Origin::Host(chain) => chains.push((request.order, chain)),
                Origin::Job(job) => jobs.push(job),
                Origin::Task(_) => unreachable!("a volume does without none of its members"),
            }
        }
        chains.sort_unstable_by_key(|&(order, _)| order);
        for (_, chain) in chains {
            self.batch.again(&mut self.io, chain);
        }
        jobs.sort_unstable();
        for job in jobs {
            self.jobs.step_lost(&mut self.io, job, clock);
        }
        self.place::<Every>(clock);
    }

    /// Completes all operations in flight as failed, because the array has lost data.
    fn break_down(&mut self, member: usize, clock: &mut Clock) {
        let io = &mut self.io;
        io.members.lost = true;
        io.members[member].state = State::Failed;
        io.members.whole = false;
        io.choose_features();
        io.watch.coordinator.dismiss();
        let pages = io.ops.take_sent(None).into_iter();
        let mut alone: Vec<(u64, Chain)> =
            pages.map(|(order, op)| (order, Chain::only(op))).collect();
        for request in io.requests.take_all() {
            if let Origin::Host(chain) = request.origin {
                alone.push((request.order, chain));
            }
        }
        alone.sort_unstable_by_key(|&(order, _)| order);
        let alone = alone.into_iter().map(|(_, chain)| chain);
        let none = Jobs::new(&self.spec, &io.layout, io.members.len() + REBUILDING);
        let jobs = std::mem::replace(&mut self.jobs, none);
        let waiting = self.swan.as_mut().map(|swan| swan.take_waiting());
        let waiting = waiting.unwrap_or_default().into_iter().map(Chain::only);
        let chains: Vec<Chain> = alone.chain(jobs.chains()).chain(waiting).collect();
        for chain in chains {
            io.finish::<Every>(chain, Spent::default(), false);
        }
        io.record.log.add(|| ArrayEvent::Failed { member });
        if let Some(timeline) = &mut io.watch.timeline {
            timeline.end(clock.now);
        }
        io.begin_phase(clock.now);
        io.deliver(clock);
    }

    /// Orders a member to collect. The caller has checked that the member can execute the order.
    fn collect_at(&mut self, member: usize, die: Option<u32>, clock: &mut Clock) {
        let io = &mut self.io;
        io.members[member].collect(clock, die);
        io.members[member].wake(clock);
        io.look_at(member, clock);
    }

    fn replace(&mut self, member: usize, now: Time) -> Result<(), MemberError> {
        if self.state_of(member)? != State::Failed {
            return Err(MemberError::Present { member });
        }
        let chunk = u64::from(self.io.layout.chunk_pages());
        let rows = narrow(self.spec.member_pages() / chunk);
        let m = &mut self.io.members[member];
        m.drive.ssd.advance(now);
        m.drive.ssd.reset_flash_report();
        m.state = State::Rebuilding;
        m.rows = Rows::none(rows);
        self.io.record.history.rebuilds.push(MemberRebuild {
            member,
            from: now,
            until: None,
            pages_written: 0,
            pages: u64::from(rows) * chunk,
        });
        self.io.begin_phase(now);
        self.io.record.log.add(|| ArrayEvent::Replaced { member });
        Ok(())
    }
}
