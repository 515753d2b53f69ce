//! Writing by units. A unit is a part of the flash that is collected and erased as a whole. It is striped over the dies
//! of a group. Each placement class of pages has its own units.
//!
//! A host page gets its place in flash, and its map entry, when its program is queued, in the order of queueing. The
//! die programs the page later.
//!
//! In two cases, a page waits in its group, behind other pages of its class: while the group collects and writes may
//! not pass the collection, or if no unit can be collected before running programs end (`write`). If the group has no
//! room for the class of the page, the page goes to another group.
//!
//! Each group collects one unit at a time, independently of the other groups (`collect`). [`Placed`] makes all
//! placement decisions, in simulated time as well as without time.

mod collect;
mod stripes;
mod write;

use super::*;
use crate::placement::{Collection, PageToPut, Placed};
use crate::watch::{each_page, Watch};
use collect::{Group, Part};
use stripes::Stripes;
pub use write::Asked;

/// Largest number of random page writes with which a device is brought to steady state, in multiples of its capacity.
/// After these writes the device counts as steady, even if its write amplification still changes.
const CAPACITIES_MAX: u32 = 20;
/// Write amplification counts as constant if it changes by less than this fraction from one capacity of writes to the
/// next.
const LEVEL: f64 = 0.01;
/// Stored in place of the flash page of a write if there was no room for its page.
const NO_PAGE: u32 = u32::MAX;

/// The map by units, and the state of collections.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    pub device: Placed,
    stripes: Stripes,
    groups: Vec<Group>,
    dies: Vec<Die>,
    /// Dies that must check again for work.
    woken: Vec<u32>,
    /// Watermark of early collections: a group with at most this number of free units may collect when a die is idle,
    /// or when writes may pass the collection.
    early: u32,
    /// Whether host writes may pass a collection that keeps pace with the host (D-170).
    preemptible: bool,
    /// Whether collections take no time.
    ideal: bool,
}

/// A die.
#[derive(Clone, Debug, Default)]
struct Die {
    /// Flash pages of the writes in the die's queue, in the order of the queue.
    waiting: VecDeque<u32>,
    /// Flash pages of the writes in service, in the order of their start.
    in_service: VecDeque<u32>,
    part: Part,
}

impl Map for Units {
    #[inline]
    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        let ppn = self.device.lookup(lpn)?;
        Some(self.stripes.physical(ppn))
    }

    fn write_ahead(
        nand: &mut Modern<Units>,
        die: usize,
        at: usize,
        now: Time,
        events: &mut EventQueue,
    ) {
        nand.begin_write_ahead(die, at, now, events);
    }

    fn work_ended(nand: &mut Modern<Units>, die: usize, of_host: bool, now: Time) {
        if !of_host {
            nand.part_ended(die, now);
        }
    }

    fn left_to_move(nand: &Modern<Units>, die: usize) -> Option<u32> {
        nand.moves_left(die)
    }
}

impl Modern<Units> {
    pub fn by_units(spec: &DeviceSpec, params: &ModernNand, device: Placed) -> Modern<Units> {
        let setup = device.setup();
        let map = Units {
            stripes: Stripes::new(spec, setup),
            groups: vec![Group::new(device.needs().classes); setup.groups as usize],
            dies: vec![Die::default(); spec.geometry.chips as usize],
            woken: Vec::new(),
            early: device.early(),
            preemptible: spec.gc.preemptible,
            ideal: spec.gc.ideal,
            device,
        };
        Modern::with_map(spec, params, map)
    }

    /// Starts or stops keeping a log.
    pub fn set_log(&mut self, on: bool) {
        self.log = on.then(Vec::new);
    }

    /// Returns the die that has a page's copy.
    pub fn die_of_copy(&self, lpn: Lpn) -> Option<u32> {
        let ppn = self.map.device.lookup(lpn)?;
        Some(self.map.stripes.die_of(ppn) as u32)
    }

    /// Returns the number of free blocks of a die.
    pub fn free_blocks(&self, die: usize) -> u32 {
        let group = self.map.stripes.group_of(die);
        self.map.device.free(group) * self.map.stripes.blocks
    }

    /// Returns the GC trigger of a die: it collects when it has at most this number of free blocks.
    pub fn gc_trigger_blocks(&self) -> u32 {
        self.map.device.low() * self.map.stripes.blocks
    }

    /// Writes every page once in ascending order. Then writes uniformly random pages without a placement id, until
    /// write amplification is constant. Returns false if `watch` stopped the work.
    pub fn fill_steady(&mut self, rng: &mut Rng, watch: &dyn Watch) -> bool {
        self.fill_sequential();
        let pages = u64::from(self.map.device.setup().logical_pages);
        let mut last = None;
        for _ in 0..CAPACITIES_MAX {
            let before = self.map.device.untimed();
            let finished = each_page(watch, pages, |_| {
                self.write_untimed(Lpn(rng.below(pages) as u32))
            });
            if !finished {
                return false;
            }
            let after = self.map.device.untimed();
            let amplification = 1.0 + (after.moves - before.moves) as f64 / pages as f64;
            let is_level = |last: f64| (amplification / last - 1.0).abs() < LEVEL;
            if last.is_some_and(is_level) {
                break;
            }
            // If fewer than half of the units were erased, parts of the flash were never written. Write amplification
            // is then too low for a comparison.
            let setup = self.map.device.setup();
            let units = u64::from(setup.units) * u64::from(setup.groups);
            let collects = after.erases - before.erases >= units / 2;
            last = collects.then_some(amplification);
        }
        self.map.device.reset_wear();
        true
    }

    /// Returns the largest number of random page writes of [`Modern::fill_steady`].
    pub fn steady_pages(&self) -> u64 {
        u64::from(CAPACITIES_MAX) * u64::from(self.map.device.setup().logical_pages)
    }

    /// Returns the approximate number of free pages on the die in its group's open unit for the first class.
    pub fn open_pages(&self, die: usize) -> u32 {
        let group = self.map.stripes.group_of(die);
        self.map.device.open_pages(group) / self.map.stripes.dies
    }

    /// Returns the number of pages that can be programmed without an erase. It includes the places of pages that wait
    /// in the queues of dies and are not programmed yet.
    pub fn free_pages(&self) -> u64 {
        let waiting = self.map.dies.iter().flat_map(|die| &die.waiting);
        let placed = waiting.filter(|&&page| page != NO_PAGE).count();
        self.map.device.free_pages() + placed as u64
    }

    /// Writes every exported page once in ascending order, in no simulated time. The flash must be new.
    pub fn fill_sequential(&mut self) {
        for lpn in 0..self.map.device.setup().logical_pages {
            let written = self.write_untimed(Lpn(lpn));
            debug_assert!(written, "new flash has room for all pages");
        }
    }

    /// Returns the number of erases of each block.
    pub fn erase_counts(&self) -> Vec<u32> {
        let blocks = (self.map.stripes.blocks * self.map.stripes.dies) as usize;
        let of_units = self.map.device.erase_counts();
        (of_units.into_iter())
            .flat_map(|erases| std::iter::repeat_n(erases, blocks))
            .collect()
    }

    /// Returns the number of blocks of a unit, over all its dies.
    #[cfg(test)]
    pub fn blocks_of_unit(&self) -> u32 {
        self.map.stripes.blocks * self.map.stripes.dies
    }

    /// Whether no page waits, neither for room nor for its program, and no group collects.
    #[cfg(test)]
    pub fn is_at_rest(&self) -> bool {
        (self.map.groups.iter()).all(|group| group.run.is_none() && group.pages_waiting == 0)
            && (self.map.dies.iter()).all(|die| die.waiting.is_empty() && die.in_service.is_empty())
    }

    /// Activates a die, and then all dies that were woken as a result.
    pub fn activate_and_woken(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        self.activate_one(die, now, events);
        while let Some(die) = self.map.woken.pop() {
            self.activate_one(die as usize, now, events);
        }
    }

    /// Starts the next work of a free die. Reads with priority are first. The collection precedes all other host
    /// operations, except if writes may pass collections: then host operations and steps of the collection take turns.
    fn activate_one(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        if self.is_taken(die, now, events) {
            return;
        }
        if let Some(op) = self.chips[die].reads.pop_front() {
            return self.start_reads(die, op, Time::ZERO, now, events);
        }
        if self.chips[die].queue.is_empty() {
            self.begin_in_background(die, now);
        }
        let host_first = self.map.preemptible && self.map.dies[die].part.host_is_next;
        if host_first && self.start_of_host(die, now, events) {
            return;
        }
        if self.start_part(die, now, events) {
            self.map.dies[die].part.host_is_next = true;
            return;
        }
        if !host_first {
            self.start_of_host(die, now, events);
        }
    }

    /// Starts the next host operation of a free die. Returns whether the die had one.
    fn start_of_host(&mut self, die: usize, now: Time, events: &mut EventQueue) -> bool {
        let Some(next) = self.next_of_host(die, now, events) else {
            return false;
        };
        self.map.dies[die].part.host_is_next = false;
        let queue = &mut self.chips[die].queue;
        match queue[next.at].is_read() {
            true => {
                let op = queue.remove(next.at).expect("it is in the queue");
                self.start_reads(die, op, Time::ZERO, now, events);
            }
            false => self.start_row(die, next, now, events),
        }
        true
    }
}
