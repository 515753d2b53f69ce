//! The short way through the back end: what [`Msr::take_in`] and [`Msr::step`] do, without tests for what a flash does
//! not have.

use super::serve::SHORT;
use super::*;
use crate::spec::AllocationPool;

impl Msr {
    /// It may be taken: chips do one thing at a time, on planes of which any will do, with one open block each, they
    /// collect when they must, and nothing is logged.
    pub fn has_short_way(&self) -> bool {
        let p = &self.params;
        let one = p.parallel_units == 1 && !p.cleaning_in_background && self.log.is_none();
        let any = p.copy_back && p.allocation_pool == AllocationPool::Chip && self.planes <= 64;
        one && any && self.ftl.streams() == 1
    }

    /// [`Msr::take_in`], inlined; false if the chip has not begun to clean by that.
    #[inline(always)]
    pub fn take_in_short(
        &mut self,
        chip: usize,
        mut op: PageOp,
        now: Time,
        events: &mut EventQueue,
    ) -> bool {
        debug_assert!(self.has_short_way());
        let may_clean = self.may_clean(chip);
        let mut on = self.serving(chip);
        on.chip.came(&mut op, now);
        let is_idle = !on.chip.in_gc && !on.service.serves;
        if is_idle && on.chip.queue.is_empty() && !may_clean {
            on.service.next.done.op = op;
            let (done_at, _) = on.serve::<SHORT>(now);
            events.set(chip, done_at);
            return false;
        }
        on.chip.queue.push_back(op);
        if is_idle {
            self.start_next(chip, now, events);
        }
        is_idle
    }

    /// The page operation that ends next at a chip; `None`: what ends there is a collection.
    #[inline(always)]
    pub fn ending(&self, chip: usize) -> Option<&Done> {
        let s = &self.service[chip];
        s.serves.then_some(&s.next.done)
    }

    /// That operation ends, and the chip goes on, as by [`Msr::step`]; true if it collects then.
    #[inline(always)]
    pub fn go_on(&mut self, chip: usize, now: Time, events: &mut EventQueue) -> bool {
        debug_assert!(self.has_short_way());
        let may_clean = self.may_clean(chip);
        let mut on = self.serving(chip);
        let (c, s) = (&mut *on.chip, &mut *on.service);
        debug_assert!(s.serves && s.next.done_at == now && s.rest.is_empty());
        c.ended(&s.next.done.op);
        c.busy_total += now - s.batch_since;
        s.serves = false;
        if may_clean {
            return self.goes_on_in_gc(chip, now, events);
        }
        if on.take_next() {
            let (done_at, _) = on.serve::<SHORT>(now);
            events.set(chip, done_at);
        }
        false
    }

    /// The same of a chip that may have to collect.
    #[inline(never)]
    fn goes_on_in_gc(&mut self, chip: usize, now: Time, events: &mut EventQueue) -> bool {
        if self.has_work(chip) {
            self.start_next(chip, now, events);
        }
        self.chips[chip].in_gc
    }
}
