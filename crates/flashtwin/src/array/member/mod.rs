//! The members of an array. A member consists of an SSD, the responses that the array has not taken yet, and, during a
//! rebuild, the set of its restored rows.

pub(super) mod ahead;
pub(super) mod drive;
pub(super) mod response;
pub(super) mod rows;
pub(super) mod slow;

use std::ops::{Deref, DerefMut, Index, IndexMut};

use super::clock::{Alarm, Clock};
use super::record::history::Condition;
use crate::device::Work;
use crate::events::EventQueue;
use crate::gc::Force;
use crate::memory::TrustedTable;
use crate::spec::{ArraySpec, DeviceSpec};
use crate::units::{narrow, Time};
use ahead::Ahead;

use drive::{Ask, Drive};
use rows::Rows;
use slow::Slow;

/// State of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    There,
    Failed,
    /// A new member has replaced a failed one. So far it has only the rows in [`Member::rows`].
    Rebuilding,
}

/// A member.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub drive: Drive,
    pub state: State,
    /// Rows restored so far, during a rebuild.
    pub rows: Rows,
    /// Whether the member has a volatile buffer.
    pub volatile: bool,
    /// State of the member's simulation ahead of the array; `None` if the member is not simulated ahead.
    pub ahead: Option<Box<Ahead>>,
    /// Number of requests in flight at the member.
    pub in_flight: u32,
    pub alarm: Alarm,
    pub slow: Slow,
    /// Whether pages may be sent directly to the member's flash. They may if the array's queue holds the events of the
    /// flash, the member is not simulated ahead, and it was never slowed down.
    is_usual: bool,
}

impl Member {
    /// Creates the member with this number.
    pub fn new(spec: &DeviceSpec, number: usize) -> Member {
        let drive = Drive::new(spec);
        Member {
            is_usual: false,
            drive,
            state: State::There,
            rows: Rows::default(),
            volatile: spec.buffer.as_ref().is_some_and(|b| !b.is_protected()),
            ahead: None,
            in_flight: 0,
            alarm: Alarm::of(number),
            slow: Slow::default(),
        }
    }

    /// Whether pages may be sent directly to the member's flash. All responses of the member are then those of its
    /// flash, without delay.
    #[inline(always)]
    pub fn is_usual(&self) -> bool {
        debug_assert!(
            !self.is_usual
                || self.drive.first_resource.is_some()
                    && self.ahead.is_none()
                    && !self.slow.is_slow()
                    && self.slow.next_response() == Time::NEVER
        );
        self.is_usual
    }

    /// Sets the factor by which the member's response times are multiplied, in thousandths. 1000 means that the
    /// member is not slow.
    pub fn slow_down(&mut self, times_milli: u32) {
        self.is_usual = false;
        self.slow.set(times_milli);
    }

    /// Prepares the member to be simulated ahead of the array: the member's own queue then holds the events of its
    /// flash. If the member was not simulated ahead before, no event of the flash may be pending.
    pub fn begin_ahead(&mut self) {
        self.is_usual = false;
        if self.ahead.is_none() {
            self.drive.set_first_resource(None);
            self.ahead = Some(Box::default());
        }
    }

    /// Makes the array's event queue hold the events of the member's flash. In this queue, the resources of the flash
    /// have numbers from `first` on. No event of the flash may be pending.
    fn share_queue(&mut self, first: usize) {
        self.drive.set_first_resource(Some(first));
        self.is_usual = true;
    }

    /// Replaces the member's drive.
    pub fn exchange(&mut self, mut drive: Drive, clock: &mut Clock) {
        let first = self.drive.first_resource;
        if let Some(first) = first {
            for resource in 0..self.drive.ssd.backend.resources() {
                clock.events.forget(first + resource);
            }
            drive.ssd.set_now(clock.now);
        }
        self.drive = drive;
        self.drive.set_first_resource(first);
    }

    /// Whether the member is in the state in which it was created: it never received a request, and its flash is new.
    pub fn is_new(&self) -> bool {
        let drive = &self.drive.ssd;
        self.state == State::There
            && self.ahead.is_none()
            && !self.slow.is_slow()
            && drive.submitted() == 0
            && drive.is_new()
    }

    /// Submits a request to the member. The response goes to the owner that `ask` names.
    #[inline(always)]
    pub fn submit(&mut self, ask: &Ask, clock: &mut Clock) {
        self.in_flight += 1;
        match &mut self.ahead {
            Some(ahead) => ahead.submit(&mut self.drive, ask, clock.now),
            None => {
                let shared = self.drive.first_resource.map(|_| &mut *clock.events);
                self.drive.submit(ask, clock.now, shared);
            }
        }
    }

    /// Processes all events in the member's own queue that are due by `now`.
    #[inline(always)]
    pub fn advance(&mut self, now: Time) {
        match &mut self.ahead {
            Some(ahead) => ahead.advance(&mut self.drive, now),
            None => self.drive.advance(now),
        }
    }

    /// Returns the instant of the next event in the member's own queue, or of its next recorded or delayed response if
    /// that is earlier. [`Time::NEVER`] if there is neither.
    pub fn next_event(&self) -> Time {
        let own = match &self.ahead {
            Some(ahead) => ahead.next_event(&self.drive),
            None => self.drive.next_event(),
        };
        own.min(self.slow.next_response())
    }

    /// Whether a response of the member, which the array has not taken yet, is due by `now`.
    #[inline(always)]
    pub fn has_responses(&self, now: Time) -> bool {
        if !self.drive.responses.is_empty() {
            return true;
        }
        if self.is_usual() {
            return false;
        }
        let ahead = self.ahead.as_ref();
        ahead.is_some_and(|ahead| ahead.next_response() <= now) || self.slow.next_response() <= now
    }

    /// Sets the member's alarm to the earliest of its next own event, its next recorded response and its next delayed
    /// response. Does nothing if the alarm is already set to this instant or to an earlier one.
    #[inline(always)]
    pub fn wake(&mut self, clock: &mut Clock) {
        match self.has_responses(clock.now) {
            true => self.alarm.set(clock.now, clock),
            false if self.is_usual() => {}
            false => self.alarm.set(self.next_event(), clock),
        }
    }

    /// Orders the member to collect garbage. `force` is the order of the coordinator.
    pub fn force_gc(&mut self, clock: &mut Clock, force: Force) {
        let now = clock.now;
        let shared = self.shared(clock);
        self.drive.force_gc(force, now, shared);
    }

    /// Orders the member, or one of its dies, to collect a block. The caller has checked that the member can execute
    /// the order.
    pub fn collect(&mut self, clock: &mut Clock, die: Option<u32>) {
        let now = clock.now;
        let shared = self.shared(clock);
        self.drive.collect(die, now, shared);
    }

    /// Returns the array's event queue if this queue holds the events of the member's flash. Otherwise advances the
    /// member, which has its own queue, to the current instant, and returns `None`.
    fn shared<'a>(&mut self, clock: &'a mut Clock<'_>) -> Option<&'a mut EventQueue> {
        if self.drive.first_resource.is_none() {
            self.advance(clock.now);
            return None;
        }
        Some(clock.events)
    }

    /// Returns the number that the member's SSD gave to the last request.
    pub fn last_number(&self) -> u32 {
        self.drive.ssd.submitted().wrapping_sub(1) as u32
    }
}

/// The resources of a member's flash in the array's event queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Number of the first resource in the queue.
    pub first: u32,
    pub member: u32,
}

/// All members, and the alarm of the array itself.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    list: TrustedTable<Member>,
    /// For each flash resource in the array's event queue, its member, and the number of this member's first flash
    /// resource. The first entry is for the resource with the number `before`.
    places: TrustedTable<Place>,
    before: usize,
    /// Whether no member is missing or being rebuilt.
    pub whole: bool,
    /// Whether the array has lost data, because more members are missing than its redundancy permits. No request is
    /// executed any more.
    pub lost: bool,
    /// Alarm for work of the array itself.
    pub own: Alarm,
}

impl Members {
    /// Creates the members. `before` is the number of resources that precede the flash resources in the array's event
    /// queue.
    pub fn new(spec: &ArraySpec, before: usize) -> Members {
        let mut members = Members {
            // SAFETY: the table is empty, but `replace` puts the members into it before any member is accessed.
            list: unsafe { TrustedTable::new(Vec::new()) },
            // SAFETY: see `list`.
            places: unsafe { TrustedTable::new(Vec::new()) },
            before,
            whole: true,
            lost: false,
            own: Alarm::of(spec.members.len()),
        };
        members.replace(Members::fresh(spec));
        members
    }

    /// Creates new members.
    pub fn fresh(spec: &ArraySpec) -> Vec<Member> {
        let numbered = spec.members.iter().zip(0..);
        numbered.map(|(spec, at)| Member::new(spec, at)).collect()
    }

    /// Returns the number of flash resources in the array's event queue.
    pub fn flash_resources(&self) -> usize {
        self.places.len()
    }

    /// Whether a resource belongs to flash.
    #[inline(always)]
    pub fn is_flash(&self, resource: usize) -> bool {
        resource >= self.before
    }

    /// Returns the member of a flash resource.
    #[inline(always)]
    pub fn flash_at(&self, resource: usize) -> Place {
        self.places[resource - self.before]
    }

    /// Takes all members out; the table must not be accessed until [`Members::replace`] is called.
    pub fn take(&mut self) -> Vec<Member> {
        // SAFETY: no member is accessed before `replace`.
        let none = unsafe { TrustedTable::new(Vec::new()) };
        std::mem::replace(&mut self.list, none).into_records()
    }

    /// Replaces all members.
    pub fn replace(&mut self, members: Vec<Member>) {
        // SAFETY: indexed by members of the layout, which has as many members as `members`.
        self.list = unsafe { TrustedTable::new(members) };
        let mut places = Vec::new();
        for (number, member) in self.list.iter_mut().enumerate() {
            if member.drive.is_bare {
                let first = self.before + places.len();
                let place = Place {
                    first: narrow(first),
                    member: narrow(number),
                };
                member.share_queue(first);
                let resources = member.drive.ssd.backend.resources();
                places.extend(std::iter::repeat_n(place, resources));
            }
        }
        // SAFETY: indexed by the flash resources of the array's event queue, each of which has an entry.
        self.places = unsafe { TrustedTable::new(places) };
        self.count();
    }

    /// Whether the member has its pages of a row.
    #[inline(always)]
    pub fn has(&self, member: usize, row: u32) -> bool {
        let m = &self.list[member];
        match m.state {
            State::There => true,
            State::Failed => false,
            State::Rebuilding => m.rows.contain(row),
        }
    }

    /// Updates `whole` after the states of members have changed.
    pub fn count(&mut self) {
        self.whole = self.list.iter().all(|member| member.state == State::There);
    }

    pub fn condition(&self) -> Condition {
        let any = |state| self.list.iter().any(|m| m.state == state);
        match () {
            () if self.lost => Condition::Lost,
            () if any(State::Rebuilding) => Condition::Rebuilding,
            () if any(State::Failed) => Condition::Degraded,
            () => Condition::Whole,
        }
    }
}

impl Deref for Members {
    type Target = [Member];

    #[inline(always)]
    fn deref(&self) -> &[Member] {
        &self.list
    }
}

impl DerefMut for Members {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [Member] {
        &mut self.list
    }
}

// Members are indexed by their numbers, as in layouts and resources.
impl Index<usize> for Members {
    type Output = Member;

    #[inline(always)]
    fn index(&self, member: usize) -> &Member {
        &self.list[member]
    }
}

impl IndexMut<usize> for Members {
    #[inline(always)]
    fn index_mut(&mut self, member: usize) -> &mut Member {
        &mut self.list[member]
    }
}
