//! The array's back end as its buffer policy sees it. In place of chips, the policy sees units: members, chips or sets
//! of members (`coordinate/units.rs`).

use super::Raid;
use crate::array::member::Member;
use crate::chips::ChipSet;
use crate::device::Backend;
use crate::metrics::FlashReport;
use crate::ssd::{Flash, Ssd};
use crate::units::{ChipId, Lpn, Time};

impl Raid {
    /// Returns the member that a unit belongs to, and the chips of that member which the unit stands for: one chip if
    /// units are chips, otherwise all.
    fn chips_of_unit(&self, unit: usize) -> (&Member, std::ops::Range<u32>) {
        let chips = |member: usize| self.spec.members[member].geometry.chips;
        let (member, chips) = self.io.watch.units.chips_of(unit, chips);
        (&self.io.members[member], chips)
    }

    fn over_chips<T: Ord>(
        &self,
        unit: usize,
        of: impl Fn(&Flash, usize) -> T,
    ) -> impl Iterator<Item = T> {
        let (member, chips) = self.chips_of_unit(unit);
        let flash = &member.drive.ssd.backend;
        let values: Vec<T> = chips.map(|chip| of(flash, chip as usize)).collect();
        values.into_iter()
    }

    /// Returns the sum of the members' flash reports, which `report` returns. The sum covers the time `span`.
    fn sum_of(&self, span: Time, report: impl Fn(&Ssd) -> FlashReport) -> FlashReport {
        let mut whole = FlashReport {
            span,
            ..FlashReport::default()
        };
        for member in self.io.members.iter() {
            whole.add_member(&report(&member.drive.ssd));
        }
        whole
    }
}

impl Backend for Raid {
    #[inline(always)]
    fn unit_of(&self, lpn: Lpn) -> Option<ChipId> {
        let (io, units) = (&self.io, &self.io.watch.units);
        let Some(swan) = &self.swan else {
            return units.of_page(&io.layout, &io.members, lpn);
        };
        let place = swan.volume.find(lpn)?;
        units.of_spot(&io.members, swan.volume.spot(place))
    }

    #[inline]
    fn units_in_gc(&self) -> &ChipSet {
        &self.io.watch.units.collecting
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
        member.in_flight == 0
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
