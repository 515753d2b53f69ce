//! Watches the members: records which members are in GC, notifies the coordinator of their states, and executes the
//! messages of the coordinator.

use super::units::Units;
use super::Coordinator;
use crate::array::clock::Clock;
use crate::array::layout::Layout;
use crate::array::member::Members;
use crate::array::record::log::ArrayEvent;
use crate::array::record::timeline::Timeline;
use crate::array::record::Record;
use crate::coordinate::Message;
use crate::spec::ArraySpec;
use crate::units::Time;

/// The watch over the members.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub units: Units,
    pub coordinator: Coordinator,
    /// Whether members collect without coordination.
    pub is_local: bool,
    /// Log of the intervals in which members collect garbage; `None` while it is off.
    pub timeline: Option<Timeline>,
    sees_only_gc: bool,
}

impl Watch {
    pub fn new(spec: &ArraySpec, members: &Members, layout: &Layout) -> Watch {
        let pools = members.iter().map(|member| member.drive.ssd.pool_blocks());
        let coordinator = Coordinator::new(spec, pools);
        let mut watch = Watch {
            units: Units::new(spec, layout),
            is_local: coordinator.is_local(),
            coordinator,
            timeline: None,
            sees_only_gc: false,
        };
        watch.sees_only_gc = watch.may_see_only_gc();
        watch
    }

    fn may_see_only_gc(&self) -> bool {
        self.is_local && self.timeline.is_none() && self.units.any_chip_counts
    }

    /// Whether the watch needs only one fact about each member: whether any of its chips is in GC.
    pub fn sees_only_gc(&self) -> bool {
        self.sees_only_gc
    }

    /// Whether the watched state of a member is certainly unchanged since the last check. If not, the caller must call
    /// [`Watch::look_at`].
    #[inline(always)]
    pub fn has_seen(&self, member: usize, members: &Members) -> bool {
        let chips = members[member].drive.ssd.chips_in_gc();
        self.sees_only_gc && self.units.is_noted(member, chips)
    }

    /// Checks a member after one of its events: records whether it is in GC, and notifies the coordinator. Does nothing
    /// for a member that is simulated ahead.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn look_at(
        &mut self,
        member: usize,
        members: &mut Members,
        record: &mut Record,
        clock: &mut Clock,
    ) {
        if !members[member].is_usual() && members[member].ahead.is_some() {
            return;
        }
        self.note(member, members, clock.now);
        if !self.is_local {
            self.coordinate(member, members, record, clock);
        }
    }

    /// Reports the state of a member to the coordinator, and executes the messages that the coordinator then sends.
    #[inline(never)]
    fn coordinate(
        &mut self,
        member: usize,
        members: &mut Members,
        record: &mut Record,
        clock: &mut Clock,
    ) {
        self.observe(member, members, record, clock.now);
        self.carry_out(members, record, clock);
        self.wake_for_check(members, clock);
    }

    /// Records whether a member is in GC.
    #[inline(always)]
    fn note(&mut self, member: usize, members: &Members, now: Time) {
        self.units
            .note(member, members[member].drive.ssd.chips_in_gc());
        if self.timeline.is_some() {
            self.note_interval(member, members, now);
        }
    }

    fn note_interval(&mut self, member: usize, members: &Members, now: Time) {
        if let Some(timeline) = &mut self.timeline {
            let collects = members[member].drive.ssd.is_in_gc();
            let ordered = self.coordinator.has_ordered(member);
            timeline.note(member, collects, ordered, now);
        }
    }

    fn observe(&mut self, member: usize, members: &mut Members, record: &mut Record, now: Time) {
        let ssd = &mut members[member].drive.ssd;
        if self.coordinator.observe(member, ssd, now) {
            record.log.add(|| ArrayEvent::Collected { member });
        }
    }

    fn carry_out(&mut self, members: &mut Members, record: &mut Record, clock: &mut Clock) {
        while let Some(message) = self.coordinator.take_message() {
            record.log.add(|| message.log_entry());
            match message {
                Message::Participate { .. } => record.stats.gc_participations += 1,
                Message::Request { .. } => record.stats.gc_requests += 1,
                Message::Force { to, force } => {
                    record.stats.gc_forced += 1;
                    self.coordinator.set_ordered(to, true);
                    members[to].force_gc(clock, force);
                    self.note(to, members, clock.now);
                    self.observe(to, members, record, clock.now);
                    members[to].wake(clock);
                }
                Message::Cancel { to } => {
                    record.stats.gc_left_off += 1;
                    self.coordinator.set_ordered(to, false);
                    members[to].drive.ssd.cancel_forced_gc();
                }
            }
        }
    }

    fn wake_for_check(&mut self, members: &mut Members, clock: &mut Clock) {
        let at = self.coordinator.next_check();
        if at != Time::NEVER {
            members.own.set(at.max(clock.now), clock);
        }
    }

    /// Runs the coordinator's periodic check if it is due.
    pub fn check(&mut self, members: &mut Members, record: &mut Record, clock: &mut Clock) {
        self.coordinator.check(clock.now);
        self.carry_out(members, record, clock);
        self.wake_for_check(members, clock);
    }

    /// Notifies the coordinator of a host request.
    #[inline(always)]
    pub fn leave_idle(&mut self, members: &mut Members, record: &mut Record, clock: &mut Clock) {
        if !self.is_local && self.coordinator.leave_idle() {
            self.carry_out(members, record, clock);
        }
    }

    /// Notifies the coordinator that no request is in flight any more.
    pub fn become_idle(&mut self, members: &mut Members, clock: &mut Clock) {
        self.coordinator.become_idle(clock.now);
        self.wake_for_check(members, clock);
    }

    /// Starts or stops the log of the intervals in which members collect garbage.
    pub fn set_timeline(&mut self, on: bool, members: &Members, now: Time) {
        self.timeline = on.then(|| Timeline::new(members.len()));
        self.sees_only_gc = self.may_see_only_gc();
        for member in 0..members.len() {
            self.note_interval(member, members, now);
        }
    }
}
