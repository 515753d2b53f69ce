//! Striping without redundancy, over members whose front ends cost nothing: a page operation is one on
//! one member's flash and nothing else. It goes there at once, as that of an SSD does, and the flash of
//! all members shares the array's event queue: what would put pages together for a member, and take
//! its answers apart again, has nothing to do.
//!
//! Resources of the members' flash come after the array's own. Where members are independent, what
//! falls on one instant happens member by member (D-113), as when each is simulated by itself.

use std::collections::HashMap;

use super::layout::Spot;
use super::log::{ArrayEvent, SentFor};
use super::member::Member;
use super::raid::Raid;
use crate::buffer::Stream;
use crate::device::Work;
use crate::events::EventQueue;
use crate::nand::{Done, PageOp};
use crate::request::Op;
use crate::spec::{ArraySpec, Level, Reads};
use crate::units::{Lpn, Time};

/// The way past the array's own queues.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    /// It is taken.
    pub open: bool,
    /// The first resource of each member's flash.
    first: Vec<u32>,
    /// The member of each of them.
    member_of: Vec<u16>,
    /// Where something happened that the front end is being told: member and chip.
    at: Option<(usize, usize)>,
    /// Of operations that the log was told of, their numbers there, by owner and page.
    told: HashMap<(u32, Lpn), u32>,
}

impl Direct {
    /// `own` resources are the array's.
    pub fn of(spec: &ArraySpec, members: &[Member], is_local: bool, own: usize) -> Direct {
        let open = spec.level == Level::Raid0
            && is_local
            && spec.reads == Reads::Direct
            && members.iter().all(|member| member.takes_pages);
        let (mut first, mut member_of) = (Vec::new(), Vec::new());
        if open {
            for (number, member) in (0..).zip(members) {
                first.push((own + member_of.len()) as u32);
                member_of.extend((0..member.ssd.backend.resources()).map(|_| number));
            }
        }
        Direct {
            open,
            first,
            member_of,
            at: None,
            told: HashMap::new(),
        }
    }

    /// Resources of all members' flash.
    pub fn resources(&self) -> usize {
        self.member_of.len()
    }
}

impl Raid {
    /// Has a member's flash do something, with its resources among those of `events`.
    #[inline]
    fn on_flash<T>(
        &mut self,
        member: usize,
        now: Time,
        events: &mut EventQueue,
        act: impl FnOnce(&mut Member, &mut EventQueue) -> T,
    ) -> T {
        let m = &mut self.members[member];
        m.ssd.set_now(now);
        events.enter(self.direct.first[member] as usize, member);
        let result = act(m, events);
        events.leave();
        result
    }

    #[inline]
    pub(super) fn enqueue_direct(&mut self, mut op: PageOp, now: Time, events: &mut EventQueue) {
        let Spot { member, lpn } = self.layout.spot(op.lpn);
        let is_read = op.is_read();
        if is_read {
            self.stats.data_pages_read += 1;
            self.stats.member_pages_read += 1;
        } else {
            self.stats.data_pages_written += 1;
            self.stats.member_pages_written += 1;
        }
        let whole = op;
        op.lpn = lpn;
        // As over any other way to a member.
        op.stream = Stream::Cold;
        if self.log.is_some() {
            op.request = self.tell_sent(&whole, member, lpn);
        }
        let taken = self.on_flash(member, now, events, |member, events| {
            let flash = &mut member.ssd.backend;
            let unit = match is_read {
                true => flash.unit_of_copy(lpn),
                false if member.ssd.read_only => None,
                false => Some(flash.unit_for_write(lpn)),
            };
            if let Some(unit) = unit {
                member.under_way += 1;
                flash.enqueue(unit as usize, op, now, events);
            }
            unit.is_some()
        });
        if taken {
            return self.look_at(member, now, events);
        }
        // Nothing to read, or refused.
        self.tell_done(&whole);
        self.hand_over(Done {
            op: whole,
            queue_gc: Time::ZERO,
            transfer: Time::ZERO,
            array: Time::ZERO,
            written: is_read,
            failed: false,
        });
        self.deliver(now, events);
    }

    /// What happened at a resource of a member's flash.
    #[inline]
    pub(super) fn flash_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
    ) -> (usize, Option<Done>) {
        let own = self.direct.first[0] as usize;
        let member = usize::from(self.direct.member_of[resource - own]);
        let local = resource - self.direct.first[member] as usize;
        let (chip, done) = self.on_flash(member, now, events, |member, events| {
            member.ssd.backend.on_event(local, now, events)
        });
        self.direct.at = Some((member, chip));
        let done = done.and_then(|done| {
            self.members[member].ssd.read_only |= !done.written;
            self.page_answered(member, done, now, events)
        });
        (self.first_unit[member] as usize, done)
    }

    /// Tells a member's flash to collect.
    pub(super) fn collect_direct(
        &mut self,
        member: usize,
        die: Option<u32>,
        now: Time,
        events: &mut EventQueue,
    ) {
        self.on_flash(member, now, events, |member, events| {
            member.ssd.backend.collect(die, now, events);
        });
    }

    /// The front end knows what happened: the chip goes on.
    #[inline]
    pub(super) fn flash_goes_on(&mut self, now: Time, events: &mut EventQueue) {
        if let Some((member, chip)) = self.direct.at.take() {
            self.on_flash(member, now, events, |member, events| {
                member.ssd.backend.activate(chip, now, events);
            });
            // Nobody looks at an array that has lost data.
            if self.direct.open {
                self.look_at(member, now, events);
            }
        }
    }

    /// Tells the log of an operation that goes to a member; gives its number as a request there.
    fn tell_sent(&mut self, op: &PageOp, member: usize, at: Lpn) -> u32 {
        let id = self.add_op(*op);
        let number = self.members[member].ssd.take_number();
        self.direct.told.insert((op.owner, op.lpn), id);
        let what = match op.is_read() {
            true => Op::Read,
            false => Op::Write,
        };
        self.tell(|_| ArrayEvent::Asked {
            op: id,
            lpn: op.lpn,
            what,
            request: op.request,
        });
        self.tell(|_| ArrayEvent::Sent {
            part: id,
            member,
            first: at.0,
            pages: 1,
            op: what,
            on_behalf: SentFor::Pages(vec![id]),
            number,
        });
        number
    }

    /// Tells the log that an operation is done of which it was told.
    #[inline]
    pub(super) fn tell_done(&mut self, op: &PageOp) {
        if self.direct.told.is_empty() {
            return;
        }
        if let Some(id) = self.direct.told.remove(&(op.owner, op.lpn)) {
            self.tell(|_| ArrayEvent::Came { part: id });
            self.tell(|_| ArrayEvent::Answered { op: id });
            self.free_op(id);
        }
    }

    pub(super) fn trim_direct(&mut self, lpn: Lpn, now: Time, events: &mut EventQueue) {
        self.tell(|_| ArrayEvent::Forgotten { lpn });
        let Spot { member, lpn } = self.layout.spot(lpn);
        self.on_flash(member, now, events, |member, events| {
            if !member.ssd.read_only {
                member.ssd.backend.trim(lpn, now, events);
            }
        });
        self.look_at(member, now, events);
    }
}

#[cfg(test)]
mod tests {
    use crate::device::Backend;
    use crate::rng::Rng;
    use crate::spec::builtin_array;
    use crate::units::Time;
    use crate::{Array, ArraySpec, Op, Request};

    /// What is known of members besides: who is in GC, and who has something to do.
    #[test]
    fn members_are_known_to_collect_and_to_be_idle() {
        let set = [
            ("array.level", "raid0"),
            ("array.members", "harmonia*3"),
            ("member.geometry.chips", "2"),
            ("member.geometry.blocks_per_plane", "32"),
            ("member.link.bus_ns_per_sector", "0"),
        ];
        let text = builtin_array("harmonia-array").unwrap();
        let spec = ArraySpec::with_overrides(text, "harmonia-array", &set).unwrap();
        let mut array = Array::new(&spec);
        array.fill_steady(1);
        assert!(array.backend.direct.open);
        let mut rng = Rng::new(3);
        let pages = array.exported_bytes() / 4096;
        let mut seen = [0; 2];
        for tag in 0..2000 {
            let now = Time::from_us(tag * 400);
            while array.next_event().is_some_and(|at| at <= now) {
                array.step();
                let raid = &array.backend;
                for (at, member) in raid.members.iter().enumerate() {
                    assert_eq!(raid.in_gc[at], member.ssd.is_in_gc());
                    seen[usize::from(raid.in_gc[at])] += 1;
                }
            }
            let request = Request {
                arrival: now,
                offset: rng.below(pages) * 4096,
                bytes: 4096,
                op: [Op::Read, Op::Write][rng.below(2) as usize],
                fua: false,
            };
            array.submit(now, &request, tag).unwrap();
            let busy = (0..3).filter(|&member| !array.backend.is_idle(member));
            assert!(busy.count() <= array.outstanding());
        }
        assert!(seen.iter().all(|&n| n > 100), "{seen:?}");
        while array.step() {}
        assert!((0..3).all(|member| array.backend.is_idle(member)));
    }
}
