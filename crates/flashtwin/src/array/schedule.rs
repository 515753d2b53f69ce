//! Who is in GC, as the array's buffer sees it, and the coordinator's messages carried out.

use super::coordinate::Message;
use super::layout::Stripe;
use super::log::ArrayEvent;
use super::raid::Raid;
use crate::events::EventQueue;
use crate::spec::{Level, MemberInGc, Protect, Reads};
use crate::units::{ChipId, Lpn, Time};

impl Raid {
    /// Looks at a member after something happened there: whether it is in GC, whether its coordinator
    /// should know.
    #[inline]
    pub(super) fn look_at(&mut self, member: usize, now: Time, events: &mut EventQueue) {
        if self.members[member].ahead.is_some() {
            return;
        }
        self.note_gc(member);
        self.note_interval(member, now);
        if self.coordinator.is_local() {
            return;
        }
        self.observe(member, now);
        if !self.messages.is_empty() {
            self.carry_out(now, events);
        }
        self.wake_for_check(now, events);
    }

    fn observe(&mut self, member: usize, now: Time) {
        let m = &mut self.members[member];
        let Some(scheme) = self.coordinator.scheme() else {
            return;
        };
        if let Some(lowest) = m.ssd.take_lowest() {
            self.views[member].lowest = lowest;
            scheme.fell(now, &self.views, member, &mut self.messages);
        }
        let collects = m.ssd.gc_left() > 0 || m.ssd.is_in_gc();
        if self.views[member].told && !collects {
            self.views[member].told = false;
            scheme.finished(&self.views, member, &mut self.messages);
            self.tell(|_| ArrayEvent::Collected { member });
        }
    }

    fn carry_out(&mut self, now: Time, events: &mut EventQueue) {
        let mut next = 0;
        while let Some(&message) = self.messages.get(next) {
            next += 1;
            self.tell(|_| message.told());
            match message {
                Message::Participate { .. } => self.stats.gc_participations += 1,
                Message::Request { .. } => self.stats.gc_requests += 1,
                Message::Force { to, force } => {
                    self.stats.gc_forced += 1;
                    self.views[to].told = true;
                    self.members[to].ssd.force_gc(now, force);
                    self.note_gc(to);
                    self.note_interval(to, now);
                    self.observe(to, now);
                    self.wake(to, now, events);
                }
                Message::LeaveOff { to } => {
                    self.stats.gc_left_off += 1;
                    self.views[to].told = false;
                    self.members[to].ssd.leave_off();
                }
            }
        }
        self.messages.clear();
    }

    fn wake_for_check(&mut self, now: Time, events: &mut EventQueue) {
        let at = self
            .coordinator
            .scheme()
            .map_or(Time::NEVER, |s| s.next_check());
        if at != Time::NEVER {
            self.wake_self(at.max(now), events);
        }
    }

    /// The coordinator's own time may have come.
    pub(super) fn check_time(&mut self, now: Time, events: &mut EventQueue) {
        if let Some(scheme) = self.coordinator.scheme() {
            if scheme.next_check() <= now {
                scheme.check(now, &self.views, &mut self.messages);
                self.carry_out(now, events);
            }
            self.wake_for_check(now, events);
        }
    }

    /// The host wants something.
    #[inline]
    pub(super) fn leave_idle(&mut self, now: Time, events: &mut EventQueue) {
        if std::mem::take(&mut self.idle) {
            if let Some(scheme) = self.coordinator.scheme() {
                scheme.request_came(&self.views, &mut self.messages);
                self.carry_out(now, events);
            }
        }
    }

    /// The array may have nothing to do any more.
    #[inline]
    pub(super) fn may_be_idle(&mut self, now: Time, events: &mut EventQueue) {
        if !self.idle && self.is_empty() {
            self.idle = true;
            if let Some(scheme) = self.coordinator.scheme() {
                scheme.became_idle(now);
                self.wake_for_check(now, events);
            }
        }
    }

    // ---- units in GC ----

    /// How many units the array's buffer tells apart: members, their chips, or sets of members that
    /// share a stripe.
    pub(super) fn count_units(&self) -> (Vec<u32>, u32) {
        let members = self.members.len() as u32;
        let (mut first, mut units) = (Vec::new(), 0);
        for member in &self.spec.members {
            first.push(units);
            units += match (self.spec.protect, self.spec.member_in_gc) {
                (Protect::Stripe, _) => members,
                (Protect::Data, MemberInGc::Chip) => member.geometry.chips,
                (Protect::Data, _) => 1,
            };
        }
        (first, units)
    }

    /// The unit of a page.
    #[inline]
    pub(super) fn unit_of_page(&self, lpn: Lpn) -> Option<ChipId> {
        if let Some(swan) = &self.swan {
            let spot = swan.volume.spot(swan.volume.find(lpn)?);
            let chip = match self.spec.member_in_gc {
                MemberInGc::Chip => self.members[spot.member].ssd.backend_unit(spot.lpn)?.0,
                _ => 0,
            };
            return Some(ChipId(self.first_unit[spot.member] as u16 + chip));
        }
        let (stripe, place) = self.layout.stripe_of(lpn);
        let member = self.layout.data_member(stripe, place);
        let first = self.first_unit[member];
        let within = match (self.spec.protect, self.spec.member_in_gc) {
            (Protect::Stripe, _) if self.layout.parity > 0 => {
                self.layout.parity_member(stripe, 0) as u32
            }
            (Protect::Stripe, _) => 0,
            (Protect::Data, MemberInGc::Chip) => {
                let lpn = Lpn(stripe.0);
                self.members[member].ssd.backend_unit(lpn)?.0.into()
            }
            (Protect::Data, _) => 0,
        };
        Some(ChipId((first + within) as u16))
    }

    /// Looks at whether a member, or which of its chips, is in GC.
    #[inline]
    pub(super) fn note_gc(&mut self, member: usize) {
        let chips = self.members[member].ssd.chips_in_gc();
        if self.any_chip_counts && chips.is_empty() != self.in_gc[member] {
            return;
        }
        if (self.spec.protect, self.spec.member_in_gc) == (Protect::Data, MemberInGc::Chip) {
            let first = self.first_unit[member];
            for chip in 0..chips.of() {
                let collecting = chips.contains(ChipId(chip as u16));
                self.units_in_gc
                    .set(ChipId((first + chip) as u16), collecting);
            }
            return;
        }
        let collecting = match self.spec.member_in_gc {
            MemberInGc::Share(share) => {
                !chips.is_empty() && f64::from(chips.len()) >= share * f64::from(chips.of())
            }
            _ => !chips.is_empty(),
        };
        if std::mem::replace(&mut self.in_gc[member], collecting) != collecting {
            self.mark_units(member);
        }
    }

    /// A member has gone into GC or come out of it.
    fn mark_units(&mut self, member: usize) {
        if self.spec.protect == Protect::Data {
            let unit = ChipId(self.first_unit[member] as u16);
            return self.units_in_gc.set(unit, self.in_gc[member]);
        }
        let members = self.members.len();
        for data in 0..members {
            for with in 0..members {
                let touched = match self.layout.level() {
                    Level::Raid0 | Level::Swan => self.in_gc[data],
                    Level::Raid1 => self.in_gc.contains(&true),
                    Level::Raid10 => self.in_gc[data] || self.in_gc[data ^ 1],
                    Level::Raid5 => self.in_gc[data] || self.in_gc[with],
                    Level::Raid6 => {
                        let q = (with + 1) % members;
                        self.in_gc[data] || self.in_gc[with] || self.in_gc[q]
                    }
                };
                let unit = self.first_unit[data] + with as u32;
                self.units_in_gc.set(ChipId(unit as u16), touched);
            }
        }
    }

    /// The chip that holds a page of a member is in GC.
    #[inline]
    pub(super) fn collects_at(&self, member: usize, stripe: Stripe) -> bool {
        let ssd = &self.members[member].ssd;
        let chips = ssd.chips_in_gc();
        !chips.is_empty()
            && ssd
                .backend_unit(Lpn(stripe.0))
                .is_some_and(|chip| chips.contains(chip))
    }

    /// Pages are read from elsewhere while their chip collects.
    #[inline]
    pub(super) fn reads_around_gc(&self) -> bool {
        self.spec.reads == Reads::AroundGc
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::builtin_array;
    use crate::units::{ChipId, Lpn};
    use crate::{Array, ArraySpec};

    fn array(level: &str, protect: &str) -> Array {
        let set = [
            ("array.level", level),
            ("array.members", "harmonia*4"),
            ("array.protect", protect),
            ("member.geometry.chips", "2"),
            ("member.geometry.blocks_per_plane", "32"),
        ];
        let text = builtin_array("harmonia-array").unwrap();
        Array::new(&ArraySpec::with_overrides(text, "harmonia-array", &set).unwrap())
    }

    /// Of the first pages, those whose unit is in GC while `member` is.
    fn kept(level: &str, protect: &str, member: usize) -> Vec<u32> {
        let raid = &mut array(level, protect).backend;
        raid.in_gc[member] = true;
        raid.mark_units(member);
        let in_gc = |lpn: &u32| {
            let unit: ChipId = raid.unit_of_page(Lpn(*lpn)).unwrap();
            raid.units_in_gc.contains(unit)
        };
        (0..12).filter(in_gc).collect()
    }

    /// Left-symmetric RAID-5 of 4: rows 0 1 2 P, 4 5 P 3, 8 P 6 7, P 9 10 11.
    #[test]
    fn a_stripe_is_kept_for_its_parity_too() {
        assert_eq!(kept("raid5", "data", 3), [3, 7, 11]);
        assert_eq!(kept("raid5", "stripe", 3), [0, 1, 2, 3, 7, 11]);
        assert_eq!(kept("raid10", "data", 1), [0; 0]);
        assert_eq!(kept("raid10", "stripe", 1), [0, 2, 4, 6, 8, 10]);
        assert_eq!(kept("raid0", "stripe", 1), [1, 5, 9]);
    }
}
