//! Striping without redundancy, over members whose front ends cost nothing: a page operation is one on one
//! member's flash and nothing else. It goes there at once, as that of an SSD does, and the flash of all members
//! shares the array's event queue: nothing need put pages together for a member, or take its responses apart
//! again.
//!
//! Resources of the members' flash come after the array's own. Where members are independent, what
//! falls on one instant happens member by member (D-113), as when each is simulated by itself.

use std::collections::HashMap;

use crate::array::clock::Clock;
use crate::array::coordinate;
use crate::array::io::Io;
use crate::array::layout::{Spot, Stripe};
use crate::array::member::drive::Place;
use crate::array::member::slow::Held;
use crate::array::member::spent::Spent;
use crate::array::member::Member;
use crate::array::record::log::{ArrayEvent, SentFor};
use crate::device::Work;
use crate::events::EventQueue;
use crate::nand::{Done, PageOp};
use crate::request::Op;
use crate::spec::{ArraySpec, Level, Reads};
use crate::ssd::Ssd;
use crate::units::Stream;
use crate::units::{narrow, Lpn, Time};

/// The way past the array's own queues.
#[derive(Clone, Debug)]
pub(crate) struct Direct {
    /// It is taken.
    pub open: bool,
    /// What members' flash has to do was taken this way.
    pub takes_part: bool,
    /// Member and chip of the event that is being reported to the front end.
    at: Option<(usize, usize)>,
    /// Numbers in the log of operations that it contains, by owner and page.
    told: HashMap<(u32, Lpn), u32>,
}

impl Direct {
    pub fn of(spec: &ArraySpec, members: &[Member]) -> Direct {
        let open = spec.level == Level::Raid0
            && coordinate::is_local(spec)
            && spec.reads == Reads::Direct
            && members.iter().all(|member| member.drive.takes_pages);
        Direct {
            open,
            takes_part: open,
            at: None,
            told: HashMap::new(),
        }
    }

    /// Members are simulated ahead: what their flash does is no business of the array's.
    pub fn leave(&mut self) {
        (self.open, self.takes_part) = (false, false);
    }

    /// Has a member's flash do something, with its resources among those of the array.
    #[inline]
    fn on_flash<T>(
        io: &mut Io,
        member: usize,
        clock: &mut Clock,
        act: impl FnOnce(&mut Ssd, &mut EventQueue) -> T,
    ) -> T {
        let drive = &mut io.members[member].drive;
        let place = drive.place.expect("its place is the array's queue");
        drive.among(place, clock, |ssd, events, _| act(ssd, events))
    }

    #[inline(never)]
    pub fn enqueue(&mut self, io: &mut Io, mut op: PageOp, clock: &mut Clock) {
        let Spot { member, lpn } = io.layout.spot(op.lpn);
        let is_read = op.is_read();
        let stats = &mut io.record.stats;
        if is_read {
            stats.data_pages_read += 1;
            stats.member_pages_read += 1;
        } else {
            stats.data_pages_written += 1;
            stats.member_pages_written += 1;
        }
        let whole = op;
        op.lpn = lpn;
        // As over any other way to a member.
        op.stream = Stream::Cold;
        if io.record.log.is_on() {
            op.request = self.tell_sent(io, &whole, member, lpn);
        }
        let now = clock.now;
        let taken = Direct::on_flash(io, member, clock, |ssd, events| {
            let read_only = ssd.read_only;
            let flash = &mut ssd.backend;
            let unit = match is_read {
                true => flash.unit_of_copy(lpn),
                false if read_only => None,
                false => Some(flash.unit_for_write(lpn)),
            };
            if let Some(unit) = unit {
                flash.enqueue(unit as usize, op, now, events);
            }
            unit.is_some()
        });
        if taken {
            io.members[member].under_way += 1;
            return io.look_at(member, clock);
        }
        // Nothing to read, or refused.
        self.tell_done(io, &whole);
        io.ops.done.push_back(Spent::default().on(whole, is_read));
        io.deliver(clock);
    }

    /// Processes the event of a resource of a member's flash; `finished` gets a page that it completes. Returns the
    /// member's first unit.
    #[inline]
    pub fn event(
        &mut self,
        io: &mut Io,
        resource: usize,
        (now, events): (Time, &mut EventQueue),
        finished: &mut Option<Done>,
    ) -> Option<usize> {
        let clock = &mut Clock { now, events };
        let Place { first, member } = io.members.flash_at(resource);
        let chip = Direct::on_flash(io, member, clock, |ssd, events| {
            (ssd.backend).on_event(resource - first, now, events, finished)
        })?;
        self.at = Some((member, chip));
        if let Some(done) = finished.take() {
            io.members[member].drive.ssd.read_only |= !done.written;
            *finished = self.answered(io, member, done, clock);
        }
        Some(io.watch.units.first_of(member))
    }

    /// A member's flash has done a page operation: it, unless a slow member holds it back.
    #[inline]
    fn answered(
        &mut self,
        io: &mut Io,
        member: usize,
        mut done: Done,
        clock: &mut Clock,
    ) -> Option<Done> {
        done.op.lpn = io.layout.page_of(Stripe(done.op.lpn.0), narrow(member));
        let lost = io.members.lost;
        let m = &mut io.members[member];
        // The contents of members do not matter in an array that has lost data.
        if m.slow.is_slow() && !lost {
            m.slow.hold_page(done, clock.now);
            m.wake(clock);
            return None;
        }
        Some(self.came(io, member, done))
    }

    /// What a member has done comes to the array.
    pub fn came(&mut self, io: &mut Io, member: usize, done: Done) -> Done {
        io.members[member].under_way -= 1;
        self.tell_done(io, &done.op);
        done
    }

    /// Nothing is done any more: what slow members hold comes now, or never; what is in flight at members' flash
    /// comes back as failed when it is done there.
    pub fn close(&mut self, io: &mut Io) {
        self.open = false;
        for member in 0..io.members.len() {
            let slow = std::mem::take(&mut io.members[member].slow);
            for answer in slow.into_held() {
                if let Held::Page(done) = answer {
                    let done = self.came(io, member, done);
                    // It comes sooner than that would have taken.
                    let at_once = Spent::default().on(done.op, done.written);
                    io.ops.done.push_back(Done {
                        failed: done.failed,
                        ..at_once
                    });
                }
            }
        }
    }

    /// The front end knows what happened: the chip goes on.
    #[inline(always)]
    pub fn goes_on(&mut self, io: &mut Io, clock: &mut Clock) {
        if let Some((member, chip)) = self.at.take() {
            self.chip_goes_on(io, member, chip, clock);
        }
    }

    #[inline(never)]
    fn chip_goes_on(&self, io: &mut Io, member: usize, chip: usize, clock: &mut Clock) {
        let now = clock.now;
        Direct::on_flash(io, member, clock, |ssd, events| {
            ssd.backend.activate(chip, now, events);
        });
        // Not of interest in an array that has lost data.
        if self.open {
            io.look_at(member, clock);
        }
    }

    pub fn trim(&mut self, io: &mut Io, lpn: Lpn, clock: &mut Clock) {
        io.record.log.tell(|| ArrayEvent::Forgotten { lpn });
        let Spot { member, lpn } = io.layout.spot(lpn);
        let now = clock.now;
        Direct::on_flash(io, member, clock, |ssd, events| {
            if !ssd.read_only {
                ssd.backend.trim(lpn, now, events);
            }
        });
        io.look_at(member, clock);
    }

    /// Logs an operation that goes to a member; returns its number as a request there.
    fn tell_sent(&mut self, io: &mut Io, op: &PageOp, member: usize, at: Lpn) -> u32 {
        let number = io.members[member].drive.ssd.take_number();
        let what = match op.is_read() {
            true => Op::Read,
            false => Op::Write,
        };
        let id = io.take_in(*op, what, op.enqueued);
        self.told.insert((op.owner, op.lpn), id);
        io.record.log.tell(|| ArrayEvent::Sent {
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

    /// Logs the end of an operation whose beginning is in the log.
    #[inline]
    fn tell_done(&mut self, io: &mut Io, op: &PageOp) {
        if self.told.is_empty() {
            return;
        }
        if let Some(id) = self.told.remove(&(op.owner, op.lpn)) {
            io.record.log.tell(|| ArrayEvent::Came { part: id });
            io.record.log.tell(|| ArrayEvent::Answered { op: id });
            io.ops.free(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::device::Backend;
    use crate::rng::Rng;
    use crate::spec::builtin_array;
    use crate::units::Time;
    use crate::{Array, ArraySpec, Op, Request};

    /// Further knowledge of members: which are in GC, and which have work.
    #[test]
    fn members_are_known_to_collect_and_to_be_idle() {
        for seed in crate::seeds(3) {
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
            let mut rng = Rng::new(seed);
            let pages = array.exported_bytes() / 4096;
            let mut seen = [0; 2];
            for tag in 0..2000 {
                let now = Time::from_us(tag * 400);
                while array.next_event().is_some_and(|at| at <= now) {
                    array.step();
                    let raid = &array.backend;
                    for (at, member) in raid.io.members.iter().enumerate() {
                        assert_eq!(
                            raid.io.watch.units.is_in_gc(at),
                            member.drive.ssd.is_in_gc()
                        );
                        seen[usize::from(raid.io.watch.units.is_in_gc(at))] += 1;
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
}
