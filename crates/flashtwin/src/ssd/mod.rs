//! One SSD: the flash behind a front end.
//!
//! [`Flash`] is the back end of an SSD: the chips, and the assignment of pages to chips.

mod classes;
mod collect;
mod death;
mod exchange_gc;
mod exchange_policy;
mod precondition;
mod times;

use crate::buffer::{Setup, UserPolicy};
use crate::chips::{ChipChanges, ChipSet, MovedPages};
use crate::device::{Backend, Device, Front, PowerCut, Work, NO_HOME};
use crate::divide::Divider;
use crate::events::EventQueue;
use crate::ftl::Apart;
use crate::gc::{Force, Orders};
use crate::metrics::FlashReport;
use crate::nand::{Asked, Done, Finished, FlashEvent, Nand, PageOp, PoolBlocks};
use crate::placement::{Placed, SetupError, UserRules};
use crate::spec::{DeviceSpec, Placement};
use crate::units::{ChipId, Lpn, Time};
use classes::classes;
pub use death::DieError;
use times::WorkRecord;

/// An SSD. A clone has the same state as the original, including requests in flight.
pub type Ssd = Device<Flash>;

/// The flash of an SSD.
#[derive(Clone, Debug)]
pub struct Flash {
    spec: Box<DeviceSpec>,
    nand: Nand,
    placement: Places,
    /// Position in the round robin over the chips, for dynamic placement: the number of pages written so far, modulo a
    /// round. In a round, each chip in turn receives as many pages as one of its programs writes.
    next_write: u32,
    /// Whether a die is dead.
    has_dead: bool,
    /// A user's placement rules, which replace those of the specification. `None` if those of the specification are
    /// used.
    rules: Option<Box<UserRules>>,
    /// Record of the chips whose drain times have changed ([`times`]). `None` if the policy does not use it.
    record: Option<Box<WorkRecord>>,
    /// Whether, since the last call of [`Work::take_moved`], the map was changed outside of simulated time, for example
    /// by preconditioning.
    is_rewritten: bool,
}

/// Assignment of pages to chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Places {
    by_stride: Divider,
    by_chips: Divider,
    is_static: bool,
    pages_per_program: u32,
}

impl Places {
    fn new(spec: &DeviceSpec) -> Places {
        Places {
            by_stride: Divider::new(spec.ftl.stride_pages),
            by_chips: Divider::new(spec.geometry.chips),
            is_static: spec.ftl.placement == Placement::Static,
            pages_per_program: spec.pages_per_program(),
        }
    }

    /// Returns the chip of a page with static placement: pages are striped over the chips.
    #[inline(always)]
    fn chip(&self, lpn: Lpn) -> u32 {
        self.by_chips.div_rem(self.by_stride.div(lpn.0)).1
    }

    /// Returns the number of pages in a round of the round robin over the chips.
    fn writes_a_turn(&self) -> u32 {
        self.by_chips.by() * self.pages_per_program
    }
}

/// Kinds of flash ([`Work::kind`]). The two most frequent kinds have static placement, and write each page to the
/// stream (hot or cold) that the caller requests.
const ANY: u8 = 0;
const STATIC_MSR: u8 = 1;
const STATIC_MODERN: u8 = 2;

// SAFETY: no method below, or of `Backend`, changes `placement`, `nand` to another back end, or `ftl.shape.apart`.
unsafe impl Work for Flash {
    const KINDS: u8 = 3;

    #[inline(always)]
    fn kind(&self) -> u8 {
        match &self.nand {
            _ if !self.placement.is_static => ANY,
            Nand::Msr(n) if n.ftl.shape.apart == Apart::AsAsked => STATIC_MSR,
            Nand::Modern(n) if n.map.ftl.shape.apart == Apart::AsAsked => STATIC_MODERN,
            _ => ANY,
        }
    }

    fn path(&self, plain_front: bool) -> &'static str {
        match self.kind() {
            STATIC_MSR if plain_front => "msr flash",
            STATIC_MODERN if plain_front => "modern flash",
            _ => "any flash",
        }
    }

    // SAFETY: the caller guarantees that the kind is `kind`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    unsafe fn assume(&self, kind: u8) {
        let is_kind = match (kind, &self.nand) {
            (STATIC_MSR, Nand::Msr(n)) => n.ftl.shape.apart == Apart::AsAsked,
            (STATIC_MODERN, Nand::Modern(n)) => n.map.ftl.shape.apart == Apart::AsAsked,
            _ => kind == ANY,
        };
        // SAFETY: the caller guarantees that the kind is `kind`.
        unsafe {
            std::hint::assert_unchecked(kind == ANY || self.placement.is_static);
            std::hint::assert_unchecked(is_kind);
        }
    }

    fn resources(&self) -> usize {
        self.nand.resources()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn unit_for_write(&mut self, lpn: Lpn) -> u32 {
        if self.placement.is_static {
            return self.placement.chip(lpn);
        }
        if let Some(chip) = self.nand.next_chip() {
            return chip;
        }
        match self.has_dead {
            false => self.next_turn(),
            true => self.next_living(),
        }
    }

    #[inline(always)]
    fn home(&self, lpn: Lpn) -> ChipId {
        match self.placement.is_static {
            true => ChipId(self.placement.chip(lpn) as u16),
            false => NO_HOME,
        }
    }

    #[inline(always)]
    fn unit_of_copy(&self, lpn: Lpn) -> Option<u32> {
        if self.placement.is_static {
            let chip = self.placement.chip(lpn);
            return self.nand.is_mapped(lpn).then_some(chip);
        }
        self.nand.chip_of_copy(lpn)
    }

    #[inline(always)]
    fn enqueue(&mut self, unit: usize, op: PageOp, now: Time, events: &mut EventQueue) {
        self.nand.enqueue(unit, op, now, events);
        self.note_arrival(unit);
    }

    #[inline(always)]
    fn enqueue_write(&mut self, op: PageOp, asked: Asked, now: Time, events: &mut EventQueue) {
        if self.nand.has_units() {
            return self.nand.write_by_unit(op, asked, now, events);
        }
        let unit = self.unit_for_write(op.lpn);
        self.enqueue(unit as usize, op, now, events);
    }

    #[inline(always)]
    fn heeds_placement(&self) -> bool {
        self.nand.has_units()
    }

    fn accept(&mut self, asked: Asked) {
        if let Some(units) = self.nand.units_mut() {
            units.accept(asked.placement.get(), asked.pages);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn on_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        done: &mut Option<Done>,
    ) -> Option<usize> {
        let unit = self.nand.on_event(resource, now, events, done);
        // If no unit is returned, the event has only continued the collection of a die. The number of this die is that
        // of the resource.
        self.note_change(unit.unwrap_or(resource));
        let unit = unit?;
        if self.has_dead {
            *done = self.after_death(unit, done.take(), now, events);
        }
        Some(unit)
    }

    #[inline(always)]
    fn activate(&mut self, unit: usize, now: Time, events: &mut EventQueue) {
        self.nand.activate(unit, now, events);
        self.note_activation(unit);
    }

    #[inline]
    fn trim(&mut self, lpn: Lpn, now: Time, events: &mut EventQueue) {
        self.nand.trim(lpn, now, events);
        self.note_activation(self.placement.chip(lpn) as usize);
    }

    #[inline(always)]
    fn note_write(&mut self, lpn: Lpn, now: Time) {
        self.nand.note_write(lpn, now);
    }

    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        self.nand.prefetch(lpn);
    }

    #[inline(always)]
    fn prefetch_old_copy(&self, lpn: Lpn) {
        self.nand.prefetch_old_copy(lpn);
    }

    #[inline(always)]
    fn prefetch_ahead(&self, next: Lpn, later: Lpn) {
        self.nand.prefetch_ahead(next, later);
    }

    fn follow_times(&mut self, on: bool) {
        self.record = self.record_of_times(on);
    }

    #[inline]
    fn time_changes(&self) -> Option<&ChipChanges> {
        self.valid_record().map(|record| &record.changes)
    }

    #[inline]
    fn idle_units(&self) -> Option<&ChipSet> {
        self.valid_record()?.idle()
    }

    #[inline(always)]
    fn has_moved(&self) -> bool {
        !self.placement.is_static && (self.is_rewritten || self.nand.has_moved())
    }

    fn take_moved(&mut self) -> MovedPages {
        let moved = self.nand.take_moved();
        match std::mem::take(&mut self.is_rewritten) {
            true => MovedPages::any(),
            false => moved,
        }
    }

    fn reset_stats(&mut self, now: Time) {
        self.nand.reset_stats(now);
    }
}

impl Backend for Flash {
    #[inline(always)]
    fn unit_of(&self, lpn: Lpn) -> Option<ChipId> {
        if self.placement.is_static {
            return Some(ChipId(self.placement.chip(lpn) as u16));
        }
        let chip = self.nand.chip_of_copy(lpn);
        chip.map(|chip| ChipId(chip as u16))
    }

    #[inline(always)]
    fn units_in_gc(&self) -> &ChipSet {
        self.nand.chips_in_gc()
    }

    #[inline(always)]
    fn drain_time(&self, unit: usize, exact: bool, now: Time) -> Time {
        self.nand.drain_time(unit, exact, now)
    }

    fn load(&self, unit: usize) -> Time {
        self.nand.load(unit)
    }

    #[inline(always)]
    fn is_idle(&self, unit: usize) -> bool {
        self.nand.is_idle(unit)
    }

    fn free_blocks(&self, unit: usize) -> u32 {
        match self.is_dead(unit) {
            true => u32::MAX,
            false => self.nand.free_blocks(unit),
        }
    }

    fn gc_trigger_blocks(&self, unit: usize) -> u32 {
        self.nand.gc_trigger_blocks(unit)
    }

    fn open_pages(&self, unit: usize) -> u32 {
        match self.is_dead(unit) {
            true => u32::MAX,
            false => self.nand.open_pages(unit),
        }
    }

    fn report(&self, now: Time, since: Time) -> FlashReport {
        FlashReport::new(&self.nand, now, since).with_overhead(self.spec.media_overhead())
    }

    fn report_without_wear(&self, now: Time, since: Time) -> FlashReport {
        FlashReport::without_wear(&self.nand, now, since).with_overhead(self.spec.media_overhead())
    }
}

impl Flash {
    /// Returns flash that was never written, with the same rules as this flash.
    fn new_nand(&self) -> Nand {
        match &self.rules {
            Some(rules) => Nand::with_rules(&self.spec, rules).expect("the rules were checked"),
            None => Nand::new(&self.spec),
        }
    }

    /// Returns the next chip in turn.
    #[inline]
    fn next_turn(&mut self) -> u32 {
        let chip = self.next_write / self.placement.pages_per_program;
        self.next_write += 1;
        if self.next_write == self.placement.writes_a_turn() {
            self.next_write = 0;
        }
        chip
    }

    /// Processes an event of the flash of a member of an array, as [`Work::on_event`] does. Dies of members never fail.
    #[inline(always)]
    pub(crate) fn process_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        done: &mut impl Finished,
    ) -> Option<usize> {
        debug_assert!(!self.has_dead, "dies of members do not die");
        self.nand.on_event_into(resource, now, events, done)
    }

    /// Queues an operation on a chip of a member of an array. Called if the member's front end takes no time. No change
    /// of the chip's drain time (time until its work is done) is recorded, because such a member has no buffer policy.
    #[inline(always)]
    pub(crate) fn enqueue_on_member(
        &mut self,
        chip: usize,
        op: PageOp,
        now: Time,
        events: &mut EventQueue,
    ) {
        debug_assert!(self.record.is_none());
        self.nand.enqueue(chip, op, now, events);
    }

    /// Starts the next operation of a chip of a member of an array. Called if the member's front end takes no time.
    #[inline(always)]
    pub(crate) fn activate_on_member(&mut self, chip: usize, now: Time, events: &mut EventQueue) {
        self.nand.activate(chip, now, events);
    }

    /// Sets the number of the flash's first resource in the event queue.
    pub(crate) fn set_first_resource(&mut self, first: usize) {
        self.nand.set_first_resource(first);
    }

    /// Orders the pools of a die, or of all dies, to collect one block each (D-143).
    pub(crate) fn collect(&mut self, die: Option<u32>, now: Time, events: &mut EventQueue) {
        self.nand.force_one_each(die);
        self.activate_all(now, events);
    }

    /// Replaces the specification by one that differs only in its GC settings.
    pub(crate) fn set_gc(&mut self, spec: DeviceSpec, now: Time, events: &mut EventQueue) {
        self.nand.set_gc(&spec);
        *self.spec = spec;
        self.activate_all(now, events);
    }

    /// Orders the whole drive to collect (Harmonia's FORCE_GC).
    pub(crate) fn force_gc(&mut self, force: Force, now: Time, events: &mut EventQueue) {
        self.nand.force_gc(force);
        self.activate_all(now, events);
    }

    fn activate_all(&mut self, now: Time, events: &mut EventQueue) {
        for chip in 0..self.spec.geometry.chips as usize {
            self.activate(chip, now, events);
        }
    }
}

fn front(spec: &DeviceSpec) -> Front<'_> {
    Front {
        page_bytes: spec.geometry.page_bytes,
        exported_bytes: spec.exported_bytes(),
        host: &spec.host,
        link: &spec.link,
        controller: &spec.controller,
        buffer: spec.buffer.as_ref(),
        partial: spec.partial(),
        setup: Setup::of(spec),
        heeds_placement: spec.placement.is_some(),
    }
}

impl Ssd {
    /// Creates a device that was never written.
    pub fn new(spec: &DeviceSpec) -> Ssd {
        Ssd::build(spec, None)
    }

    /// Creates a device whose buffer is managed by `policy` instead of the policy that `spec` names.
    pub fn with_policy(spec: &DeviceSpec, policy: Box<dyn UserPolicy>) -> Ssd {
        Ssd::build(spec, Some(policy))
    }

    fn build(spec: &DeviceSpec, policy: Option<Box<dyn UserPolicy>>) -> Ssd {
        let mut nand = Nand::new(spec);
        nand.exchange_classes(classes(spec));
        let flash = Flash {
            spec: Box::new(spec.clone()),
            nand,
            placement: Places::new(spec),
            next_write: 0,
            has_dead: false,
            rules: None,
            record: None,
            is_rewritten: false,
        };
        Device::behind(&front(spec), flash, policy)
    }

    /// Replaces the placement rules that [`Ssd::spec`] names by a user's rules.
    ///
    /// # Errors
    /// Fails if the device does not write by units (sets of blocks that are erased together), or if a sequence of
    /// writes exists that would find no room.
    ///
    /// # Panics
    /// Panics if the device has been written.
    pub fn set_rules(&mut self, rules: UserRules) -> Result<(), SetupError> {
        assert!(self.is_new(), "rules are set before the first write");
        let nand = Nand::with_rules(self.spec(), &rules)?;
        self.backend.rules = Some(Box::new(rules));
        self.backend.replace_nand(nand);
        Ok(())
    }

    /// Simulates a power loss at this instant. Requests in flight never complete. [`Device::now`] advances until the
    /// flash is idle. Afterwards the buffer is empty and has the policy that [`Ssd::spec`] names, and all counters are
    /// zero (D-135). The result lists the lost pages. Returns `None` if the flash is not idle after `steps` events. The
    /// device must not be used any more then.
    pub fn cut_power(&mut self, steps: u64) -> Option<PowerCut> {
        let spec = self.backend.spec.clone();
        self.backend.nand.exchange_classes(classes(&spec));
        let cut = self.start_again(&front(&spec), steps);
        if let Some(placed) = self.placement_mut() {
            placed.cut_power();
        }
        cut
    }

    /// Returns the tables and rules of [`crate::placement`]. `None` for devices that do not write by units (sets of
    /// blocks that are erased together).
    pub fn placement(&self) -> Option<&Placed> {
        self.backend.nand.units()
    }

    /// Returns the tables and rules of [`crate::placement`], mutably, so that commands of the host can change them.
    pub fn placement_mut(&mut self) -> Option<&mut Placed> {
        self.backend.nand.units_mut()
    }

    /// Returns the device's specification.
    pub fn spec(&self) -> &DeviceSpec {
        &self.backend.spec
    }

    /// Starts or stops the log of flash operations.
    pub fn set_flash_log(&mut self, on: bool) {
        self.backend.nand.set_log(on);
    }

    /// Starts or stops the logs of flash operations and of the buffer.
    pub fn set_logs(&mut self, on: bool) {
        self.set_flash_log(on);
        self.set_buffer_log(on);
    }

    /// Whether flash operations are logged.
    pub(crate) fn is_logged(&self) -> bool {
        self.backend.nand.is_logged()
    }

    /// Returns the total number of free blocks of all chips.
    pub fn free_blocks(&self) -> u32 {
        let chips = 0..self.spec().geometry.chips as usize;
        chips.map(|chip| self.backend.nand.free_blocks(chip)).sum()
    }

    /// Returns the flash operations logged since the last call.
    pub fn take_flash_log(&mut self) -> Vec<FlashEvent> {
        self.backend.nand.take_log()
    }

    /// Returns the chips that are in GC.
    #[inline]
    pub(crate) fn chips_in_gc(&self) -> &ChipSet {
        self.backend.nand.chips_in_gc()
    }

    /// Whether any chip is in GC.
    pub(crate) fn is_in_gc(&self) -> bool {
        !self.chips_in_gc().is_empty()
    }

    /// Returns the chip that holds a page's copy or will receive its next write; `None` if neither is known.
    #[inline]
    pub(crate) fn backend_unit(&self, lpn: Lpn) -> Option<ChipId> {
        self.backend.unit_of(lpn)
    }

    /// Orders the drive to stop collecting.
    pub(crate) fn cancel_forced_gc(&mut self) {
        if let Some(orders) = self.backend.nand.orders_mut() {
            orders.cancel_forced_gc();
        }
    }

    /// Returns the number of pools of blocks that have not finished an order to collect.
    pub(crate) fn gc_left(&self) -> u32 {
        self.backend.nand.orders().map_or(0, Orders::left)
    }

    /// Returns the lowest number of free blocks that any pool has had since the last call, counted directly after the
    /// pool took a free block. `None` if no pool took one.
    #[inline]
    pub(crate) fn take_lowest(&mut self) -> Option<u32> {
        self.backend.nand.take_lowest()
    }

    /// Returns numbers of blocks of a pool: the size of the pool, the reserved blocks, and the GC watermark.
    pub(crate) fn pool_blocks(&self) -> PoolBlocks {
        self.backend.nand.pool_blocks()
    }

    /// Checks that all tables agree with each other. Intended for tests, because the whole device is visited.
    ///
    /// # Errors
    /// The error names the first table that disagrees with another one.
    pub fn check(&self) -> Result<(), String> {
        self.check_write_backs()?;
        self.backend.nand.check()
    }

    /// Returns the number of logical pages with a flash copy.
    pub fn pages_mapped(&self) -> u64 {
        self.backend.nand.pages_mapped()
    }

    /// Returns the number of flash pages that can be programmed without an erase, including summary pages.
    pub fn free_flash_pages(&self) -> u64 {
        self.backend.nand.free_pages()
    }

    /// Returns the number of pages that blocks lack in SLC mode compared with normal mode, summed over all blocks
    /// opened in SLC mode so far. These pages are never programmed, but an erase counts them as erased.
    pub fn slc_pages_lacked(&self) -> u64 {
        self.backend.nand.slc_pages_lacked()
    }
}
