//! The back end `Layered`: each chip has its own translation layer (DFTL, BAST, FAST or FASTER).
//!
//! When an operation is dispatched to a chip, the chip's translation layer (`ftl::chip`) returns the flash operations
//! that serve it, in order. They become the steps of the chip (`plan`). Steps are not interrupted: a merge or a
//! collection runs to its end, and a read with priority overtakes only waiting operations.
//!
//! The host's operation completes when its own page has been read or programmed. Later flash operations keep the chip
//! busy. The chip counts as in GC from the first move or erase of an access until the end of the last one.
//!
//! If each chip has its own pins, it shares no channel with other chips, and no transfer ever waits. Transfer times
//! are then added to array times. Such a chip has an event only when an operation or a GC begins or ends.

mod chip_log;
mod plan;
mod state;
#[cfg(test)]
mod tests;

use super::{Cause, Chip, Done, FlashEvent, FlashStats, InHand, Latencies};
use crate::chips::ChipSet;
use crate::divide::Divider;
use crate::events::EventQueue;
use crate::ftl::chip::{ChipFtl, Counters, FlashOp, Ftl, Outlook, Setup};
use crate::rng::Rng;
use crate::spec::{DeviceSpec, Nand as NandSpec};
use crate::units::{ChipId, Lpn, Time};
use crate::watch::{each_page, Watch};

use plan::{Lane, Step};
use std::collections::VecDeque;

/// A channel that several chips share.
#[derive(Clone, Debug, Default)]
struct Channel {
    /// The chip whose transfer is running.
    busy_with: Option<u32>,
    waiting: VecDeque<(u32, Time)>,
}

/// The back end.
#[derive(Clone, Debug)]
pub(crate) struct Layered {
    setup: Setup,
    ftls: Vec<Ftl>,
    pub chips: Vec<Chip>,
    pub stats: FlashStats,
    pub log: Option<Vec<FlashEvent>>,
    pub chips_in_gc: ChipSet,
    pub times: Latencies,
    lanes: Vec<Lane>,
    /// Empty if each chip has its own pins.
    channels: Vec<Channel>,
    /// Flash operations of the access that is being planned. They are a field so that their memory is used again.
    ops: Vec<FlashOp>,
    /// Duration of the last collection or merge of each chip. It serves as an estimate for the next one.
    gc_took: Vec<Time>,
    /// Counters of the translation layers at the last reset of the statistics.
    counted_before: Counters,
    /// Number of the first chip in the event queue. The queue numbers all resources: chips, channels and buses.
    pub first_resource: usize,
    pages: Pages,
    costs: plan::Costs,
    read_priority: bool,
}

/// Converter from a logical page of the device to a chip and a page within the chip.
#[derive(Clone, Copy, Debug)]
struct Pages {
    by_stride: Divider,
    by_chips: Divider,
    by_row: Divider,
}

impl Pages {
    /// Returns the chip of a page, and the page's number within the chip.
    #[inline]
    fn split(&self, lpn: Lpn) -> (usize, u32) {
        let (unit, within) = self.by_stride.div_rem(lpn.0);
        let chip = self.by_chips.div_rem(unit).1;
        let page = self.by_row.div(lpn.0) * self.by_stride.by() + within;
        (chip as usize, page)
    }
}

impl Layered {
    pub fn new(spec: &DeviceSpec, setup: Setup) -> Layered {
        let chips = spec.geometry.chips as usize;
        let ftl = Ftl::new(&setup).expect("the device was checked");
        let has_own_pins = spec.geometry.channels == spec.geometry.chips;
        let channels = match has_own_pins {
            true => 0,
            false => spec.geometry.channels as usize,
        };
        let stride = spec.ftl.stride_pages;
        let mut ftls = vec![ftl; chips];
        Ftl::join(&mut ftls);
        Layered {
            ftls,
            setup,
            chips: vec![Chip::default(); chips],
            stats: FlashStats::default(),
            log: None,
            chips_in_gc: ChipSet::none(spec.geometry.chips),
            times: Latencies::of(spec, spec.copy_back()),
            lanes: vec![Lane::default(); chips],
            channels: vec![Channel::default(); channels],
            ops: Vec::new(),
            gc_took: vec![spec.timing.erase; chips],
            counted_before: Counters::default(),
            first_resource: 0,
            pages: Pages {
                by_stride: Divider::new(stride),
                by_chips: Divider::new(spec.geometry.chips),
                by_row: Divider::new(stride * spec.geometry.chips),
            },
            costs: plan::Costs::new(spec, has_own_pins),
            read_priority: matches!(&spec.nand, NandSpec::Modern(nand) if nand.read_priority),
        }
    }

    /// Returns the number of resources that this back end uses in the event queue: the chips, then the channels.
    pub fn resources(&self) -> usize {
        self.chips.len() + self.channels.len()
    }

    /// Whether host reads wait in a queue of their own.
    pub fn reads_overtake(&self) -> bool {
        self.read_priority
    }

    // ---- time passes ----

    pub fn on_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        done: &mut Option<Done>,
    ) -> usize {
        let mut chip = resource;
        if let Some(at) = resource.checked_sub(self.chips.len()) {
            let channel = &mut self.channels[at];
            let ended = channel.busy_with.take();
            chip = ended.expect("a transfer ends on a busy channel") as usize;
            if let Some((next, time)) = channel.waiting.pop_front() {
                channel.busy_with = Some(next);
                self.lanes[next as usize].ends = now + time;
                events.set(self.first_resource + resource, now + time);
                if self.log.is_some() {
                    self.log_transfer(next as usize, time, now);
                }
            }
        }
        *done = self.proceed(chip, now, events);
        chip
    }

    /// Starts the chip's next step that takes time; if there is none, the chip becomes free. Executes the steps before
    /// it, which take no time. If one of these completes the host operation, returns this operation.
    fn proceed(&mut self, chip: usize, now: Time, events: &mut EventQueue) -> Option<Done> {
        let mut done = None;
        loop {
            let lane = &mut self.lanes[chip];
            match lane.next() {
                None => {
                    self.chips[chip].busy_total += now - lane.since;
                    return done;
                }
                Some(Step::Array(time)) => {
                    lane.ends = now + time;
                    events.set(self.first_resource + chip, lane.ends);
                    if self.log.is_some() {
                        self.log_array(chip, time, now);
                    }
                    return done;
                }
                Some(Step::Transfer(time)) => {
                    if self.log.is_some() {
                        self.log_wait(chip, now);
                    }
                    // Adjacent chips are on different channels.
                    let lane = &mut self.lanes[chip];
                    let at = chip % self.channels.len();
                    let channel = &mut self.channels[at];
                    if channel.busy_with.is_none() {
                        channel.busy_with = Some(chip as u32);
                        lane.ends = now + time;
                        events.set(self.first_resource + self.chips.len() + at, lane.ends);
                        if self.log.is_some() {
                            self.log_transfer(chip, time, now);
                        }
                    } else {
                        lane.ends = Time::NEVER;
                        channel.waiting.push_back((chip as u32, time));
                    }
                    return done;
                }
                Some(Step::Gc(true)) => {
                    self.chips[chip].enter_gc(now);
                    self.chips_in_gc.set(ChipId(chip as u16), true);
                    self.stats.gc_actions += 1;
                    if self.log.is_some() {
                        self.log_gc(chip, true, now);
                    }
                }
                Some(Step::Gc(false)) => {
                    self.chips[chip].leave_gc(now);
                    self.chips_in_gc.set(ChipId(chip as u16), false);
                    if self.log.is_some() {
                        self.log_gc(chip, false, now);
                    }
                }
                Some(Step::Serve) => {
                    let gc_time = self.chips[chip].gc_time(now);
                    if let Some(done) = &mut lane.in_hand {
                        done.queue_gc = gc_time - done.op.gc_before;
                    }
                }
                Some(Step::Deliver) => {
                    done = lane.in_hand.take();
                    if let Some(done) = &done {
                        self.chips[chip].ended(&done.op);
                    }
                }
            }
        }
    }

    pub fn activate(&mut self, chip: usize, now: Time, events: &mut EventQueue) {
        if !self.lanes[chip].is_free() {
            return;
        }
        let of = &mut self.chips[chip];
        let Some(op) = of.reads.pop_front().or_else(|| of.queue.pop_front()) else {
            return;
        };
        let (_, page) = self.pages.split(op.lpn);
        let skipped = self.ftls[chip].skipped();
        self.ops.clear();
        let written = match op.is_read() {
            true => {
                self.ftls[chip].read(page, &mut self.ops);
                true
            }
            false => self.ftls[chip].write(page, &mut self.ops).is_ok(),
        };
        self.stats.pages_skipped += self.ftls[chip].skipped() - skipped;
        self.stats.writes_failed += u64::from(!written);
        self.plan(chip, Some((op, written)), now);
        self.start(chip, now, events);
    }

    /// Trims a page. If the chip has an operation in service, the flash operations of the trim begin after it.
    pub fn trim(&mut self, lpn: Lpn, now: Time, events: &mut EventQueue) {
        let (chip, page) = self.pages.split(lpn);
        self.ops.clear();
        self.ftls[chip].trim(page, &mut self.ops);
        if self.ops.is_empty() {
            return;
        }
        self.plan(chip, None, now);
        if self.lanes[chip].is_free() {
            self.start(chip, now, events);
        }
    }

    /// Starts the first step of a free chip.
    fn start(&mut self, chip: usize, now: Time, events: &mut EventQueue) {
        self.lanes[chip].since = now;
        let done = self.proceed(chip, now, events);
        debug_assert!(done.is_none(), "no operation ends before it began");
    }

    // ---- queries ----

    /// Whether the chip has no operation in service or waiting.
    pub fn is_idle(&self, chip: usize) -> bool {
        self.lanes[chip].is_free() && self.chips[chip].inside == [0, 0]
    }

    pub fn outlook(&self, chip: usize) -> Outlook {
        self.ftls[chip].outlook()
    }

    /// Returns the number of writes in service.
    pub fn writes_in_service(&self, chip: usize) -> u32 {
        let begun = self.lanes[chip].in_hand.as_ref();
        u32::from(begun.is_some_and(|done| !done.op.is_read()))
    }

    /// Returns the work in service on a chip.
    pub fn in_hand(&self, chip: usize, now: Time) -> InHand {
        let lane = &self.lanes[chip];
        let writes = self.writes_in_service(chip);
        InHand {
            reads: u32::from(lane.in_hand.is_some()) - writes,
            writes,
            rest: lane.rest(now),
            ..InHand::default()
        }
    }

    /// Prefetches the data that an operation on the page accesses first.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        let (chip, page) = self.pages.split(lpn);
        self.ftls[chip].prefetch(page);
    }

    /// Prefetches the state of the page's copy on flash.
    #[inline]
    pub fn prefetch_old_copy(&self, lpn: Lpn) {
        let (chip, page) = self.pages.split(lpn);
        self.ftls[chip].prefetch_old_copy(page);
    }

    /// Returns ECR's chip queue complete time (ECR section 3, Eqs 1-4). How many pages a collection or merge moves is
    /// known only when it begins. The next collection or merge is therefore assumed to take as long as the last one of
    /// the chip (D-79).
    pub fn drain_time(&self, chip: usize, exact: bool, now: Time) -> Time {
        let (of, l) = (&self.chips[chip], &self.times);
        let [reads, writes] = of.inside;
        // Writes in service have already taken their page.
        let waiting = writes - self.writes_in_service(chip);
        let is_short = u64::from(waiting) > self.ftls[chip].outlook().writes;
        if !exact {
            let collects = of.in_gc || is_short;
            let collecting = self.gc_took[chip] * u64::from(collects);
            return l.read * reads.into() + l.program * writes.into() + collecting;
        }
        let in_hand = self.in_hand(chip, now);
        let collects = !of.in_gc && is_short;
        in_hand.rest
            + (l.read + l.transfer) * (reads - in_hand.reads).into()
            + (l.program + l.transfer) * (writes - in_hand.writes).into()
            + self.gc_took[chip] * u64::from(collects)
    }

    /// Whether the page has a copy on flash.
    #[inline]
    pub fn is_mapped(&self, lpn: Lpn) -> bool {
        let (chip, page) = self.pages.split(lpn);
        self.ftls[chip].lookup(page).is_some()
    }

    pub fn pages_mapped(&self) -> u64 {
        let mapped = |ftl: &Ftl| ftl.pages_mapped(self.setup.logical_pages);
        self.ftls.iter().map(mapped).sum()
    }

    pub fn erased_pages(&self) -> u64 {
        self.ftls.iter().map(Ftl::erased_pages).sum()
    }

    pub fn erase_counts(&self) -> Vec<u32> {
        let counts = self.ftls.iter().map(Ftl::erases);
        counts.collect::<Vec<_>>().concat()
    }

    pub fn reset_wear(&mut self) {
        for ftl in &mut self.ftls {
            ftl.reset_wear();
        }
    }

    pub fn check(&self) -> Result<(), String> {
        for (chip, ftl) in self.ftls.iter().enumerate() {
            ftl.check().map_err(|e| format!("chip {chip}: {e}"))?;
        }
        Ok(())
    }

    fn counted(&self) -> Counters {
        let mut sum = Counters::default();
        for ftl in &self.ftls {
            sum += ftl.counters();
        }
        sum
    }

    /// Returns the counters of the translation layers since the last reset of the statistics.
    pub fn counters(&self) -> Counters {
        self.counted() - self.counted_before
    }

    pub fn reset_stats(&mut self) {
        self.stats = FlashStats::default();
        self.counted_before = self.counted();
    }

    // ---- initial states ----

    /// Writes every page once, in order.
    pub fn fill_sequential(&mut self) {
        let mut full = Ftl::new(&self.setup).expect("the device was checked");
        full.fill();
        self.ftls.fill(full);
        self.reset_stats();
    }

    /// Puts the flash in steady state. A model chip is filled in order, and then written at random until nothing
    /// remains of its sequential order. Its state is copied to each chip in turn. Between two copies, more random
    /// pages are written to the model chip (D-40). Page numbers within the chip stay as they are, since the state
    /// depends on which pages are adjacent. Returns false if `watch` stopped the work.
    pub fn fill_steady(&mut self, rng: &mut Rng, watch: &dyn Watch) -> bool {
        let mut worn = Ftl::new(&self.setup).expect("the device was checked");
        worn.fill();
        let pages = u64::from(self.setup.logical_pages);
        let mut writes = WEAR_IN * self.setup.turn_pages();
        for chip in 0..self.ftls.len() {
            let finished = each_page(watch, writes, |_| {
                self.ops.clear();
                let written = worn.write(rng.below(pages) as u32, &mut self.ops);
                debug_assert!(written.is_ok(), "a chip without end of life has room");
                true
            });
            if !finished {
                return false;
            }
            self.ftls[chip] = worn.clone();
            writes = self.between_copies();
        }
        self.reset_wear();
        self.reset_stats();
        true
    }

    /// Returns the number of random page writes of [`Layered::fill_steady`].
    pub fn steady_pages(&self) -> u64 {
        let copies = self.ftls.len() as u64 - 1;
        WEAR_IN * self.setup.turn_pages() + copies * self.between_copies()
    }

    /// Returns the number of random page writes to the model chip between two copies.
    fn between_copies(&self) -> u64 {
        let turns = self.setup.turn_pages();
        (turns / self.ftls.len() as u64)
            .clamp(turns / 64, turns / 16)
            .max(1)
    }

    pub fn trim_untimed(&mut self, lpn: Lpn) {
        let (chip, page) = self.pages.split(lpn);
        self.ops.clear();
        self.ftls[chip].trim(page, &mut self.ops);
    }

    pub fn write_untimed(&mut self, chip: usize, lpn: Lpn) -> bool {
        let (_, page) = self.pages.split(lpn);
        self.ops.clear();
        let written = self.ftls[chip].write(page, &mut self.ops).is_ok();
        for op in &self.ops {
            self.stats.add(plan::cause(op, Cause::HostWrite), 1);
        }
        written
    }
}

/// Number of random page writes before the first copy, in multiples of `turn_pages`. After `turn_pages` page writes,
/// nothing of an older state remains.
const WEAR_IN: u64 = 8;
