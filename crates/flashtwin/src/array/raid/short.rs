//! The short way of a write of one page ([`Io::find_way`]): what [`Raid::flash_event`] does, in fewer steps.
//!
//! [`Io::find_way`]: crate::array::io::Io::find_way

use super::Raid;
use crate::array::clock::Clock;
use crate::array::io::requests::OF_JOB;
use crate::array::member::drive::Place;
use crate::device::OutsideDone;
use crate::events::EventQueue;
use crate::nand::Done;
use crate::units::Time;

impl Raid {
    /// Processes the event of a resource of a member's flash.
    #[inline(always)]
    pub(super) fn short_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        finished: &mut Option<Done>,
    ) -> Option<usize> {
        let Place { first, member } = self.io.members.flash_at(resource);
        let chip = resource - first;
        let m = &mut self.io.members[member];
        let (flash, read_only) = m.drive.ssd.past_front(now);
        let page = flash.ending(chip).map(OutsideDone::of);
        let jobs = &mut self.jobs;
        let done = page.filter(|page| page.tag & OF_JOB != 0).and_then(|page| {
            let job = page.tag & !OF_JOB;
            let was_last = jobs.page_of_pair_done(job, member, &page)?;
            Some((job, page.written, was_last))
        });
        let Some((job, written, was_last)) = done else {
            return self.flash_event(resource, now, events, finished);
        };
        *read_only |= !written;
        jobs.tell_page_came(&mut self.io.record.log, job, member);
        events.number_from(first);
        let collects = flash.go_on(chip, now, events);
        m.under_way -= 1;
        if collects {
            (self.io).look_at_flash(member, &mut Clock { now, events });
        }
        if was_last {
            let clock = &mut Clock { now, events };
            (self.jobs).pair_goes_on(&mut self.io, job, finished, clock);
        }
        self.unit_of_event(member, finished)
    }
}

#[cfg(test)]
mod tests;
