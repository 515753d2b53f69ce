//! The short way to the flash of an array's member: what [`crate::device::port`] does, for flash whose chips serve one
//! operation at a time ([`Msr::has_short_way`]).

use super::{Flash, Ssd, STATIC_MSR};
use crate::device::{OutsideDone, Work};
use crate::events::EventQueue;
use crate::nand::{Msr, Nand};
use crate::units::{Lpn, Time};

impl Flash {
    /// It can be taken, see [`Msr::has_short_way`].
    pub(crate) fn has_short_way(&self) -> bool {
        match &self.nand {
            Nand::Msr(msr) => self.kind() == STATIC_MSR && !self.has_dead && msr.has_short_way(),
            Nand::Modern(_) | Nand::Layered(_) => false,
        }
    }

    /// A page has the same chip here as in `other`.
    pub(crate) fn has_chips_of(&self, other: &Flash) -> bool {
        self.placement == other.placement
    }

    /// The chip of a page.
    #[inline(always)]
    pub(crate) fn chip_of(&self, lpn: Lpn) -> u32 {
        self.placement.chip(lpn)
    }

    /// The flash, if it has a short way.
    #[inline(always)]
    fn short(&mut self) -> &mut Msr {
        match &mut self.nand {
            Nand::Msr(msr) => msr,
            Nand::Modern(_) | Nand::Layered(_) => unreachable!("a flash without a short way"),
        }
    }
}

impl Ssd {
    /// [`crate::Device::submit_one_among`] for a page of this chip.
    #[inline(always)]
    pub(crate) fn submit_short<const READ: bool>(
        &mut self,
        events: &mut EventQueue,
        now: Time,
        (chip, lpn): (u32, Lpn),
        fua: bool,
        tag: u32,
    ) -> Option<bool> {
        let flash = self.backend.short();
        let is_refused = match READ {
            true => flash.ftl.lookup(lpn).is_none(),
            false => self.read_only,
        };
        if is_refused {
            return None;
        }
        let op = OutsideDone::page::<READ>(lpn, fua, now, (tag, self.submitted() as u32));
        self.take_number();
        self.set_now(now);
        let flash = self.backend.short();
        Some(flash.take_in_short(chip as usize, op, now, events))
    }

    /// The way past its front end: its flash, and whether it is read-only.
    #[inline(always)]
    pub(crate) fn past_front(&mut self, now: Time) -> (&mut Msr, &mut bool) {
        self.set_now(now);
        (self.backend.short(), &mut self.read_only)
    }
}
