//! The array as its buffer's policy sees it: units, which are its members or their chips.

use super::member::Member;
use super::raid::Raid;
use crate::chips::ChipSet;
use crate::device::Backend;
use crate::metrics::FlashReport;
use crate::spec::{MemberInGc, Protect};
use crate::ssd::Ssd;
use crate::units::{ChipId, Lpn, Time};

impl Raid {
    /// The member of a unit, and its chips: one, or all of them.
    fn chips_of_unit(&self, unit: usize) -> (&Member, std::ops::Range<usize>) {
        let member = self
            .first_unit
            .partition_point(|&first| first <= unit as u32)
            - 1;
        let m = &self.members[member];
        match self.spec.member_in_gc {
            MemberInGc::Chip if self.spec.protect == Protect::Data => {
                let chip = unit - self.first_unit[member] as usize;
                (m, chip..chip + 1)
            }
            _ => (m, 0..self.spec.members[member].geometry.chips as usize),
        }
    }

    fn over_chips<T: Ord>(
        &self,
        unit: usize,
        of: impl Fn(&crate::ssd::Flash, usize) -> T,
    ) -> impl Iterator<Item = T> {
        let (member, chips) = self.chips_of_unit(unit);
        let values: Vec<T> = chips.map(|chip| of(&member.ssd.backend, chip)).collect();
        values.into_iter()
    }

    /// What all members did.
    fn sum_of(&self, span: Time, report: impl Fn(&Ssd) -> FlashReport) -> FlashReport {
        let mut whole = FlashReport {
            span,
            ..FlashReport::default()
        };
        for member in &self.members {
            whole.add_member(&report(&member.ssd));
        }
        whole
    }
}

impl Backend for Raid {
    #[inline]
    fn unit_of(&self, lpn: Lpn) -> Option<ChipId> {
        self.unit_of_page(lpn)
    }

    #[inline]
    fn units_in_gc(&self) -> &ChipSet {
        &self.units_in_gc
    }

    fn drain_time(&self, unit: usize, exact: bool, now: Time) -> Time {
        let times = self.over_chips(unit, |flash, chip| flash.drain_time(chip, exact, now));
        times.max().unwrap_or(Time::ZERO)
    }

    fn load(&self, unit: usize) -> Time {
        let times = self.over_chips(unit, |flash, chip| flash.load(chip));
        times.max().unwrap_or(Time::ZERO)
    }

    fn is_idle(&self, unit: usize) -> bool {
        let (member, _) = self.chips_of_unit(unit);
        member.under_way == 0
    }

    fn free_blocks(&self, unit: usize) -> u32 {
        let blocks = self.over_chips(unit, |flash, chip| flash.free_blocks(chip));
        blocks.min().unwrap_or(0)
    }

    fn gc_trigger_blocks(&self, unit: usize) -> u32 {
        let blocks = self.over_chips(unit, |flash, chip| flash.gc_trigger_blocks(chip));
        blocks.max().unwrap_or(0)
    }

    fn open_pages(&self, unit: usize) -> u32 {
        let pages = self.over_chips(unit, |flash, chip| flash.open_pages(chip));
        pages.min().unwrap_or(0)
    }

    fn report(&self, now: Time, since: Time) -> FlashReport {
        self.sum_of(now - since, Ssd::flash_report)
    }

    fn report_without_wear(&self, now: Time, since: Time) -> FlashReport {
        self.sum_of(now - since, Ssd::flash_report_without_wear)
    }
}
