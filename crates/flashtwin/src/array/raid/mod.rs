//! The back end of an array: converts page operations to requests to members.
//!
//! Operations that the front end queues at one instant are processed together ([`Work::settle`]). Pages that are
//! consecutive on a member become one request to this member. Pages of one stripe are written together. In arrays with
//! redundancy, [`Jobs`] executes the writes of a row one after the other. Otherwise two writes could compute the parity
//! from the same old contents, and one of the results would be lost.

mod backend;
mod batch;
mod hedged;

use super::clock::Clock;
use super::coordinate;
use super::features::{with_features, Every, Features};
use super::io::ops::Chain;
use super::io::requests::Origin;
use super::io::Io;
use super::jobs::Jobs;
use super::layout::{Spot, Stripe};
use super::member::drive::Drive;
use super::member::response::Response;
use super::member::{Place, State};
use super::record::log::ArrayEvent;
use super::swan::Swan;
use crate::chips::MovedPages;
use crate::device::{Device, Work, NO_HOME};
use crate::events::EventQueue;
use crate::nand::{Done, PageOp};
use crate::request::Op;
use crate::spec::{ArraySpec, DeviceSpec, Level, Reads};
use crate::units::{narrow, ChipId, Lpn, Time};
use batch::Batch;

/// An array of SSDs. Cloning it clones its whole state.
pub type Array = Device<Raid>;

impl Array {
    /// Returns the back end, and the clock at the current instant.
    pub(super) fn raid_now(&mut self) -> (&mut Raid, Clock<'_>) {
        let (now, events) = (self.now(), &mut self.events);
        (&mut self.backend, Clock { now, events })
    }
}

/// Numbers of resources in the array's event queue. The first resources are those of the members, one for each. They
/// are followed by the [`OWN`] resources of the array: for its own alarm, for rebuilding and for hedging. The resources
/// of the members' flash are last. `REBUILDING` and `HEDGING` count from the resource of the array's own alarm.
pub(super) const REBUILDING: usize = 1;
const HEDGING: usize = 2;
const OWN: usize = 3;

/// The back end of an array.
#[derive(Clone, Debug)]
pub struct Raid {
    pub(super) spec: Box<ArraySpec>,
    pub(super) io: Io,
    pub(super) jobs: Jobs,
    /// Volume of a SWAN array, which has groups of members instead of rows.
    pub(super) swan: Option<Box<Swan>>,
    pub(super) batch: Batch,
    /// The member and the chip of the event that the front end is processing, if this is an event of a member's flash.
    /// The front end then calls `activate`, which starts the chip's next operation.
    active: Option<(usize, usize)>,
    /// Whether no member affects which requests another member receives, or when. Each member can then be simulated by
    /// itself ([`super::member::ahead`]).
    pub(super) independent: bool,
    /// Whether no requests follow those that the members received in advance.
    pub(super) ahead_ends: bool,
}

impl Raid {
    pub(super) fn new(spec: &ArraySpec) -> Raid {
        let members = spec.members.len();
        let io = Io::new(spec, members + HEDGING, members + OWN);
        Raid {
            jobs: Jobs::new(spec, &io.layout, members + REBUILDING),
            swan: Swan::of(spec),
            batch: Batch::default(),
            active: None,
            independent: members_are_independent(spec),
            ahead_ends: false,
            io,
            spec: Box::new(spec.clone()),
        }
    }

    /// Returns, for each resource in the array's event queue, the number of its group. Events of the same instant are
    /// ordered by group. The flash resources of a member are in one group with the member's own resource. Each resource
    /// of the array itself is alone in its group.
    pub(super) fn groups_of_resources(&self) -> Vec<u32> {
        let members = &self.io.members;
        let own = members.len() + OWN;
        let group = |resource| match members.is_flash(resource) {
            true => members.flash_at(resource).member,
            false => narrow(resource),
        };
        (0..own + members.flash_resources()).map(group).collect()
    }

    /// Executes the operations that the front end has queued: converts them to requests to members, and sends these.
    #[inline(never)]
    fn place_batch(&mut self, now: Time, events: &mut EventQueue) {
        let clock = &mut Clock { now, events };
        with_features!(self.io.copy(), F => self.place::<F>(clock));
    }

    pub(super) fn place<F: Features>(&mut self, clock: &mut Clock) {
        if F::ALL && self.io.members.lost {
            return self.batch.refuse(&mut self.io, clock);
        }
        if F::ALL {
            self.io.leave_idle(clock);
        }
        match &mut self.swan {
            Some(swan) if F::ALL => {
                let queued = (&self.batch.ops[..], &self.batch.trims[..]);
                swan.place(&mut self.io, queued, clock);
                self.batch.clear();
            }
            _ => (self.batch).place::<F>(&mut self.io, &mut self.jobs, clock),
        }
        self.io.deliver(clock);
    }

    // ---- responses of members ----

    /// Processes the event of a flash resource. If the front end must process the event, too, returns the first unit of
    /// the member. In this case the front end starts the chip's next operation (`activate`).
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn flash_event<F: Features>(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        finished: &mut Option<Done>,
    ) -> Option<usize> {
        let Place { first, member } = self.io.members.flash_at(resource);
        let (resource, member) = (resource - first as usize, member as usize);
        if F::ALL && self.io.members.lost {
            // Once the array has lost data, no operation waits for its members, and their events are ignored.
            return self.unit_of_event(member, finished);
        }
        let drive = &mut self.io.members[member].drive;
        let mut response = None;
        let chip = drive.on_event::<F>(resource, now, Some(events), &mut response);
        let clock = &mut Clock { now, events };
        if let Some(response) = response {
            self.io.in_event = true;
            self.respond::<F>(member, response, clock);
            if F::ALL {
                self.continue_volume(clock);
                self.io.members[member].wake(clock);
            }
            self.io.in_event = false;
        }
        if !self.io.ops.done.is_empty() {
            *finished = self.io.ops.done.pop_front();
        }
        let unit = self.unit_of_event(member, finished);
        match (chip, unit) {
            (Some(chip), Some(_)) => self.active = Some((member, chip)),
            (Some(chip), None) => self.activate_chip::<F>(member, chip, clock),
            (None, _) => self.note_member::<F>(member, clock),
        }
        unit
    }

    /// Calls the general copy of [`Raid::flash_event`], for arrays with any features.
    #[inline(never)]
    fn any_flash_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        finished: &mut Option<Done>,
    ) -> Option<usize> {
        self.flash_event::<Every>(resource, now, events, finished)
    }

    /// Starts the next operation of a chip of a member.
    #[inline(always)]
    fn activate_chip<F: Features>(&mut self, member: usize, chip: usize, clock: &mut Clock) {
        let drive = &mut self.io.members[member].drive;
        drive.activate::<F>(chip, clock.now, Some(clock.events));
        self.note_member::<F>(member, clock);
    }

    /// Checks a member after an event of its flash.
    #[inline(always)]
    fn note_member<F: Features>(&mut self, member: usize, clock: &mut Clock) {
        self.io.look_at_flash::<F>(member, clock);
        if F::ALL {
            self.io.may_be_idle(clock);
        }
    }

    /// Returns the first unit of a member if the front end must process an event of the member, otherwise `None`.
    #[inline(always)]
    fn unit_of_event(&self, member: usize, finished: &Option<Done>) -> Option<usize> {
        // The front end must process events that finish an operation, and events after which a unit may be idle. No
        // unit of a member is idle while requests to the member are in flight.
        let is_quiet = finished.is_none() && self.io.members[member].in_flight > 0;
        (!is_quiet).then(|| self.io.watch.units.first_of(member))
    }

    /// Processes the response of a member to a page or to a whole request. If the member is slow, the response is
    /// delayed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn respond<F: Features>(&mut self, member: usize, mut response: Response, clock: &mut Clock) {
        let owner = response.owner;
        if owner.is_member_request() {
            let (number, requests) = (owner.number(), &mut self.io.requests);
            let (is_whole, written) = (response.is_whole, response.written);
            let Some(written) = requests.responded(number, is_whole, written) else {
                return;
            };
            (response.written, response.asked) = (written, requests.sent(number));
        }
        let m = &mut self.io.members[member];
        if F::ALL && !m.is_usual() && m.slow.is_slow() {
            return m.slow.hold(response.asked, clock.now, response);
        }
        self.receive::<F>(member, &response, clock);
    }

    /// Passes a response on to its owner. The owner is a request, or, for a page sent without a request record, a job
    /// or a page operation.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn receive<F: Features>(&mut self, member: usize, response: &Response, clock: &mut Clock) {
        self.io.members[member].in_flight -= 1;
        let &Response {
            owner,
            spent,
            written,
            ..
        } = response;
        if let Some(job) = owner.job_number() {
            let done = (member, spent, written);
            (self.jobs).page_done::<F>(&mut self.io, job, done, clock);
        } else if owner.is_member_request() {
            self.request_done(response, clock);
        } else {
            self.io.log_page_done::<F>(owner, member);
            let chain = Chain::only(owner.number());
            self.io.finish::<F>(chain, spent, written);
        }
    }

    /// Processes the event of a member's own resource: advances the member if it has its own queue, and takes the
    /// responses that are due.
    fn member_event(&mut self, member: usize, clock: &mut Clock) {
        if self.io.members[member].drive.first_resource.is_none() {
            self.io.members[member].advance(clock.now);
            self.io.look_at(member, clock);
        }
        if self.io.members[member].has_responses(clock.now) {
            self.take_responses(member, clock);
        }
        self.io.members[member].wake(clock);
        self.io.may_be_idle(clock);
    }

    /// Takes all responses of a member that are due by now: those of its drive, those recorded by the simulation ahead,
    /// and those that were delayed because the member is slow.
    fn take_responses(&mut self, member: usize, clock: &mut Clock) {
        let mut responses = std::mem::take(&mut self.io.members[member].drive.responses);
        for response in responses.drain(..) {
            self.respond::<Every>(member, response, clock);
        }
        let drive = &mut self.io.members[member].drive;
        // Requests that were sent during this loop may have added responses. They stay in the list, and are taken at
        // another event of the member.
        if drive.responses.is_empty() {
            drive.responses = responses;
        }
        while let Some(response) = self.take_foreseen(member, clock.now) {
            self.respond::<Every>(member, response, clock);
        }
        while let Some(response) = self.io.members[member].slow.take(clock.now) {
            self.receive::<Every>(member, &response, clock);
        }
        self.continue_volume(clock);
    }

    /// Takes the next recorded response, due by now, of a member that is simulated ahead; `None` if there is none. If
    /// no further requests will follow and the member has completed all of them, ends its simulation ahead.
    fn take_foreseen(&mut self, member: usize, now: Time) -> Option<Response> {
        let ahead = &mut self.io.members[member].ahead;
        let response = ahead.as_mut()?.take(now);
        if response.is_none() {
            let ends = self.ahead_ends;
            ahead.take_if(|ahead| ends && ahead.is_done());
        }
        response
    }

    /// Continues operations of a SWAN volume that were waiting for its members.
    #[inline(always)]
    fn continue_volume(&mut self, clock: &mut Clock) {
        if let Some(swan) = &mut self.swan {
            swan.proceed(&mut self.io, clock);
            self.io.deliver(clock);
        }
    }

    #[inline(never)]
    fn request_done(&mut self, response: &Response, clock: &mut Clock) {
        let io = &mut self.io;
        let id = response.owner.number();
        let (spent, written) = (response.spent, response.written);
        let request = io.requests.take(id);
        io.record.log.add(|| ArrayEvent::Came { part: id });
        match (request.origin, &mut self.swan) {
            (Origin::Host(chain), swan) => {
                if let Some(swan) = swan {
                    swan.places_done(io, chain, written);
                }
                if let Some(hedge) = io.hedge.as_mut().filter(|_| io.ops.are_reads(chain)) {
                    hedge.took(clock.now - request.sent);
                }
                io.finish::<Every>(chain, spent, written);
            }
            (Origin::Job(job), _) => self.jobs.step_done::<Every>(io, job, spent, written, clock),
            (Origin::Task(task), Some(swan)) => swan.task_done(io, task, written, clock),
            (Origin::Task(_), None) => unreachable!("only a volume has tasks"),
        }
    }

    /// Processes an event of any resource that does not belong to the flash of a member.
    #[inline(never)]
    fn other_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        finished: &mut Option<Done>,
    ) -> Option<usize> {
        let clock = &mut Clock { now, events };
        let members = self.io.members.len();
        if resource < members {
            // Once the array has lost data, no operation waits for its members, and their events are ignored.
            if !self.io.members.lost {
                self.io.members[resource].alarm.went_off();
                self.member_event(resource, clock);
            }
        } else {
            self.own_event(resource - members, clock);
        }
        if !self.io.ops.done.is_empty() {
            *finished = self.io.ops.done.pop_front();
        }
        Some(match resource < members {
            true => self.io.watch.units.first_of(resource),
            false => 0,
        })
    }

    /// Processes an event of the array's own resources.
    fn own_event(&mut self, own: usize, clock: &mut Clock) {
        let io = &mut self.io;
        if own == 0 {
            io.members.own.went_off();
            io.check(clock);
        } else if own == HEDGING {
            hedged::due(io, &mut self.jobs, clock);
        } else if !io.members.lost {
            debug_assert_eq!(own, REBUILDING);
            self.jobs.rebuild_due(io, clock);
        }
    }

    /// Calls `touch` for each drive that a write of a page accesses: the drive of the page's first copy, and those of
    /// its parity.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn for_each_touched(&self, lpn: Lpn, touch: impl Fn(&Drive, Lpn)) {
        let layout = &self.io.layout;
        let (stripe, place, members) = layout.placed(lpn);
        let touch = |member: usize| touch(&self.io.members[member].drive, Lpn(stripe.0));
        touch(members.data(place));
        if layout.parity > 0 {
            touch(members.parity(0));
        }
        if layout.parity > 1 {
            touch(members.parity(1));
        }
    }

    /// Prefetches the entry of a page in the map of a SWAN volume. Nothing else is prefetched, because only the volume
    /// knows the locations of the page.
    #[inline(never)]
    fn prefetch_of_volume(&self, lpn: Lpn) {
        if let Some(swan) = &self.swan {
            swan.volume.prefetch(lpn);
        }
    }
}

/// Whether no member of the array affects which requests another member receives, or when.
fn members_are_independent(spec: &ArraySpec) -> bool {
    // The flash of a member must not become read-only, since the array would then refuse writes. A member must have
    // no buffer, since the array may order it to write its buffer back.
    let can_be_foreseen = |m: &DeviceSpec| m.wear.erase_limit.is_none() && m.buffer.is_none();
    spec.level == Level::Raid0
        && coordinate::is_local(spec)
        && spec.reads == Reads::Direct
        && spec.buffer.is_none()
        && spec.members.iter().all(can_be_foreseen)
}

// SAFETY: all arrays are of kind 0.
unsafe impl Work for Raid {
    fn path(&self, _plain_front: bool) -> &'static str {
        self.io.copy().name()
    }

    fn resources(&self) -> usize {
        self.io.members.len() + OWN + self.io.members.flash_resources()
    }

    fn unit_for_write(&mut self, lpn: Lpn) -> u32 {
        narrow(self.io.layout.spot(lpn).member)
    }

    #[inline(always)]
    fn home(&self, lpn: Lpn) -> ChipId {
        let units = &self.io.watch.units;
        match self.swan.is_none() && units.have_homes() {
            true => units.home_of(&self.io.layout, lpn),
            false => NO_HOME,
        }
    }

    fn unit_of_copy(&self, lpn: Lpn) -> Option<u32> {
        // A member is returned even if the page was never written. The member then completes a read of the page
        // immediately.
        Some(narrow(self.io.layout.spot(lpn).member))
    }

    #[inline]
    fn enqueue(&mut self, _unit: usize, op: PageOp, now: Time, _events: &mut EventQueue) {
        let (what, written) = match op.is_read() {
            true => (Op::Read, None),
            false => (Op::Write, Some(op.lpn)),
        };
        let id = self.io.take_in(op, what, now);
        self.batch.push(id, written);
    }

    #[inline(always)]
    fn settle(&mut self, now: Time, events: &mut EventQueue) {
        if !self.batch.is_empty() {
            self.place_batch(now, events);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn on_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        finished: &mut Option<Done>,
    ) -> Option<usize> {
        if !self.io.members.is_flash(resource) {
            return self.other_event(resource, now, events, finished);
        }
        with_features!(self.io.copy(), F => match F::ALL {
            true => self.any_flash_event(resource, now, events, finished),
            false => self.flash_event::<F>(resource, now, events, finished),
        })
    }

    fn is_volatile(&self) -> bool {
        self.io.volatile && !self.io.through
    }

    fn flush(&mut self, op: PageOp, now: Time, events: &mut EventQueue) {
        let clock = &mut Clock { now, events };
        let id = self.io.take_in(op, Op::Flush, now);
        if self.io.members.lost {
            self.batch.push(id, None);
            return self.batch.refuse(&mut self.io, clock);
        }
        self.jobs.flush(&mut self.io, id, clock);
    }

    /// Adds to `lost` the pages whose newest contents would be in no member's flash after a power loss (D-92). With
    /// mirrors, a page is safe if one of its copies is safe. A page of a missing member counts as lost if any page of
    /// its stripe is lost.
    fn lost(&self, lost: &mut Vec<Lpn>) {
        let (members, layout) = (&self.io.members, &self.io.layout);
        if let Some(swan) = &self.swan {
            for (at, member) in (0..).zip(members.iter()) {
                let pages = member.drive.ssd.power_cut().lost.into_iter();
                let spots = pages.map(|lpn| Spot { member: at, lpn });
                lost.extend(spots.filter_map(|spot| swan.volume.page_at(spot)));
            }
            return;
        }
        let mut stripes: Vec<(Stripe, usize)> = Vec::new();
        for (at, member) in members.iter().enumerate() {
            if member.state != State::Failed {
                let pages = member.drive.ssd.power_cut().lost;
                stripes.extend(pages.iter().map(|lpn| (Stripe(lpn.0), at)));
            }
        }
        stripes.sort_unstable();
        for of_one in stripes.chunk_by(|a, b| a.0 == b.0) {
            let stripe = of_one[0].0;
            let safe = |member: usize| {
                self.io.has(member, stripe) && of_one.iter().all(|&(_, lost)| lost != member)
            };
            for place in 0..narrow(layout.data()) {
                if !layout.copies_at(stripe, place).any(safe) {
                    lost.push(layout.page_of(stripe, place));
                }
            }
        }
    }

    #[inline]
    fn more_done(&mut self) -> Option<Done> {
        self.io.ops.done.pop_front()
    }

    #[inline]
    fn activate(&mut self, _unit: usize, now: Time, events: &mut EventQueue) {
        if let Some((member, chip)) = self.active.take() {
            let clock = &mut Clock { now, events };
            with_features!(self.io.copy(), F => self.activate_chip::<F>(member, chip, clock));
        }
    }

    fn trim(&mut self, lpn: Lpn, _now: Time, _events: &mut EventQueue) {
        self.batch.trims.push(lpn);
        self.io.record.log.add(|| ArrayEvent::Forgotten { lpn });
    }

    #[inline]
    fn prefetch(&self, lpn: Lpn) {
        match self.swan {
            None => with_features!(self.io.copy(), F => {
                self.for_each_touched(lpn, |drive, lpn| drive.prefetch::<F>(lpn));
            }),
            Some(_) => self.prefetch_of_volume(lpn),
        }
    }

    #[inline]
    fn prefetch_old_copy(&self, lpn: Lpn) {
        // With parity, nothing is prefetched here: a write first reads the old page, and the data for the write are
        // prefetched during this read.
        match self.swan {
            None if self.io.layout.parity > 0 => {}
            None => with_features!(self.io.copy(), F => {
                self.for_each_touched(lpn, |drive, lpn| drive.prefetch_old_copy::<F>(lpn));
            }),
            Some(_) => self.prefetch_of_volume(lpn),
        }
    }

    #[inline(always)]
    fn has_moved(&self) -> bool {
        let of_volume = self
            .swan
            .as_ref()
            .is_some_and(|s| !s.volume.moved.is_empty());
        of_volume || self.io.watch.units.wander
    }

    fn take_moved(&mut self) -> MovedPages {
        let of_volume = self
            .swan
            .as_mut()
            .map(|swan| std::mem::take(&mut swan.volume.moved));
        match self.io.watch.units.wander {
            true => MovedPages::any(),
            false => of_volume.unwrap_or_default(),
        }
    }

    fn reset_stats(&mut self, now: Time) {
        let Io {
            members,
            record,
            watch,
            ..
        } = &mut self.io;
        let is_rebuilding = |member: usize| members[member].state == State::Rebuilding;
        record.reset(members.condition(), now, |r| {
            r.until.is_none() && is_rebuilding(r.member)
        });
        if let Some(timeline) = &mut watch.timeline {
            timeline.take(now);
        }
        for member in members.iter_mut() {
            member.advance(now);
            member.drive.ssd.reset_flash_report();
        }
    }
}
