//! The flash: chips that serve queued page operations and collect garbage.
//!
//! Three back ends behind one interface. [`Msr`] is the element model of the MSR SSD extension, exact to its event
//! logs. [`Modern`] has channels shared by dies. [`Layered`] has a translation layer in each chip. All change the
//! page map at the instant at which an operation is dispatched to its chip: operations in a queue have changed
//! nothing yet.
//!
//! Contract: the caller queues operations ([`Nand::enqueue`]), advances the clock to the next pending instant of the
//! event queue, and calls [`Nand::on_event`]. If that returns a chip, the caller processes the finished operation,
//! may queue further operations meanwhile, and then calls [`Nand::activate`] for that chip. The chip thus chooses
//! among all of these operations, as in the reference. A back end never calls upwards.

mod drain;
mod layered;
mod log;
mod modern;
mod msr;
mod owner;
mod placed;

#[cfg(test)]
mod tests;

pub(crate) use layered::Layered;
pub use log::{FlashEvent, Place};
pub(crate) use modern::Modern;
pub(crate) use msr::Msr;
pub use owner::Owner;
pub(crate) use owner::Receiver;
pub(crate) use placed::PoolBlocks;

use drain::{Drain, InHand, Latencies};
use placed::Placed;
use std::collections::VecDeque;

use crate::chips::ChipSet;
use crate::events::EventQueue;
use crate::ftl::PageMap;
use crate::gc::{Force, Orders};
use crate::spec::{self, DeviceSpec};
use crate::units::Stream;
use crate::units::{Lpn, Time};

/// Why a flash operation exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cause {
    /// A read the host waits for, without a buffer.
    HostRead,
    /// Read of a page that a write covers in part, without a buffer.
    PartialRead,
    /// A read that fills a buffer page.
    Fill,
    /// A host write, without a buffer.
    HostWrite,
    /// Write-back of an evicted page.
    Destage,
    /// Write-back because the host asked for a flush or forced unit access.
    Flush,
    /// Write-back of a page that stays, while its chip was idle.
    WriteBack,
    /// Read of a page that fills up a block which is written back whole.
    PaddingRead,
    /// Program of a page that pads a block.
    Padding,
    /// Program of a clean page of the read cache, written with a block.
    Merge,
    /// Read and program of a page that GC moves.
    GcMove,
    /// Read and program of a page that moves out of a block in SLC mode.
    Fold,
    /// Read and program of a page that moves to a worn block, for wear levelling.
    Migration,
    /// A block's summary page.
    Summary,
    /// Read of a page of the map that lies in flash.
    MapRead,
    /// Program of a page of the map that lies in flash.
    MapWrite,
    /// Read and program of a page that a merge of a log block with its data block moves.
    MergeCopy,
    /// Erase of a collected or merged block.
    Erase,
}

impl Cause {
    /// All causes, in the order of their counters.
    pub const ALL: [Cause; 18] = [
        Cause::HostRead,
        Cause::PartialRead,
        Cause::Fill,
        Cause::HostWrite,
        Cause::Destage,
        Cause::Flush,
        Cause::WriteBack,
        Cause::PaddingRead,
        Cause::Padding,
        Cause::Merge,
        Cause::GcMove,
        Cause::Fold,
        Cause::Migration,
        Cause::Summary,
        Cause::MapRead,
        Cause::MapWrite,
        Cause::MergeCopy,
        Cause::Erase,
    ];

    /// Name in results.
    pub fn name(self) -> &'static str {
        match self {
            Cause::HostRead => "host_read",
            Cause::PartialRead => "partial_read",
            Cause::Fill => "fill",
            Cause::HostWrite => "host_write",
            Cause::Destage => "destage",
            Cause::Flush => "flush",
            Cause::WriteBack => "write_back",
            Cause::PaddingRead => "padding_read",
            Cause::Padding => "padding",
            Cause::Merge => "merge",
            Cause::GcMove => "gc_move",
            Cause::Fold => "fold",
            Cause::Migration => "migration",
            Cause::Summary => "summary",
            Cause::MapRead => "map_read",
            Cause::MapWrite => "map_write",
            Cause::MergeCopy => "merge_copy",
            Cause::Erase => "erase",
        }
    }
}

/// A page operation in a chip's queue or in service.
#[derive(Clone, Copy, Debug)]
pub struct PageOp {
    pub lpn: Lpn,
    /// The receiver of the result.
    pub owner: Owner,
    pub cause: Cause,
    /// Number of the host's request that caused it; [`FlashEvent::NO_REQUEST`] if none did.
    pub request: u32,
    /// For a write, which open block it goes to.
    pub stream: Stream,
    /// The host waits until it is safe from a power loss.
    pub fua: bool,
    /// Of a program that is done again since its die died, how many dies it has been given to since.
    pub again: u8,
    pub enqueued: Time,
    /// Time its chip had spent in GC when it was queued.
    pub gc_before: Time,
}

/// The causes of reads, as bits.
const READS: u32 = 1 << Cause::HostRead as u32
    | 1 << Cause::PartialRead as u32
    | 1 << Cause::Fill as u32
    | 1 << Cause::PaddingRead as u32;

impl PageOp {
    #[inline]
    pub fn is_read(&self) -> bool {
        READS >> self.cause as u32 & 1 == 1
    }

    /// Index of the operation's kind among counters: 0 for a read, 1 for a write.
    #[inline]
    fn kind(&self) -> usize {
        usize::from(!self.is_read())
    }
}

/// A page operation that has finished, with where its time went.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub op: PageOp,
    pub queue_gc: Time,
    pub transfer: Time,
    pub array: Time,
    /// False for a write that found no free page: the device is at the end of its life.
    pub written: bool,
    /// True for a read of what lay on a dead die.
    pub failed: bool,
}

impl Done {
    /// The place of one where there is none.
    const NOTHING: Done = Done {
        op: PageOp {
            lpn: Lpn(0),
            owner: Owner::cached_page(0),
            cause: Cause::HostRead,
            request: FlashEvent::NO_REQUEST,
            stream: Stream::Cold,
            fua: false,
            again: 0,
            enqueued: Time::ZERO,
            gc_before: Time::ZERO,
        },
        queue_gc: Time::ZERO,
        transfer: Time::ZERO,
        array: Time::ZERO,
        written: false,
        failed: false,
    };
}

/// Receives the finished operation, as a whole or only what its receiver needs.
pub(crate) trait Finished {
    fn put(&mut self, done: &Done);
}

impl Finished for Option<Done> {
    #[inline(always)]
    fn put(&mut self, done: &Done) {
        *self = Some(*done);
    }
}

/// Counters of the flash, over the whole device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlashStats {
    /// Operations by [`Cause`], in the order of [`Cause::ALL`].
    pub ops: [u64; Cause::ALL.len()],
    /// GC actions: number of times that a chip began GC.
    pub gc_actions: u64,
    /// Pages erased without having been programmed: holes that a merge left for pages that did not exist, and pages
    /// of a block that received fewer pages from another one in wear levelling.
    pub pages_skipped: u64,
    /// Writes that found no free page.
    pub writes_failed: u64,
    /// Pages programmed a second time, elsewhere, because their die died during the first program, which `ops`
    /// counts.
    pub programs_again: u64,
}

impl FlashStats {
    /// Operations of one cause.
    pub fn count(&self, cause: Cause) -> u64 {
        self.ops[cause as usize]
    }

    #[inline]
    fn add(&mut self, cause: Cause, n: u64) {
        self.ops[cause as usize] += n;
    }

    /// A page is programmed.
    #[inline]
    fn add_program(&mut self, op: &PageOp) {
        match op.again {
            0 => self.add(op.cause, 1),
            _ => self.programs_again += 1,
        }
    }

    /// Data pages programmed for the host: written directly, destaged, flushed or written back.
    pub fn host_programs(&self) -> u64 {
        self.count(Cause::HostWrite)
            + self.count(Cause::Destage)
            + self.count(Cause::Flush)
            + self.count(Cause::WriteBack)
    }
}

/// State of a chip common to the back ends. Fields that a collection's move uses are in the first cache line.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Chip {
    /// Host reads that overtake the queue; used only if reads have priority.
    pub reads: VecDeque<PageOp>,
    /// Time spent with any operation, finished ones.
    pub busy_total: Time,
    /// Since when a GC action is running, if one is.
    gc_since: Time,
    /// Total time of the finished GC actions. A reset of the counters does not reset it, since waiting operations
    /// have recorded its value.
    gc_total: Time,
    /// Reads and writes that wait or are in service.
    inside: [u32; 2],
    pub queue: VecDeque<PageOp>,
    /// `gc_total` at the last reset of the counters.
    gc_before_start: Time,
    /// A GC action is running.
    pub in_gc: bool,
}

impl Chip {
    /// Time spent in GC from the start of the counters until `now`.
    pub fn gc_time_counted(&self, now: Time) -> Time {
        self.gc_time(now) - self.gc_before_start
    }

    /// Time spent in GC until `now`.
    #[inline(always)]
    pub fn gc_time(&self, now: Time) -> Time {
        if self.in_gc {
            self.gc_total + (now - self.gc_since)
        } else {
            self.gc_total
        }
    }

    /// Counts an arriving operation, and records the GC time before it.
    #[inline(always)]
    fn count_arrival(&mut self, op: &mut PageOp, now: Time) {
        op.gc_before = self.gc_time(now);
        self.inside[op.kind()] += 1;
    }

    /// Queues an operation: among the reads with priority, or in order.
    #[inline(always)]
    fn take_in(&mut self, mut op: PageOp, overtakes: bool, now: Time) {
        self.count_arrival(&mut op, now);
        match overtakes {
            true => self.reads.push_back(op),
            false => self.queue.push_back(op),
        }
    }

    /// An operation has ended.
    #[inline(always)]
    fn ended(&mut self, op: &PageOp) {
        self.inside[op.kind()] -= 1;
    }

    fn enter_gc(&mut self, now: Time) {
        debug_assert!(!self.in_gc);
        self.in_gc = true;
        self.gc_since = now;
    }

    fn leave_gc(&mut self, now: Time) {
        debug_assert!(self.in_gc);
        self.in_gc = false;
        self.gc_total += now - self.gc_since;
    }
}

/// A flash back end. `repr(u8)` makes dispatch cheaper.
#[derive(Clone, Debug)]
#[repr(u8)]
pub(crate) enum Nand {
    Msr(Msr),
    Modern(Modern),
    Layered(Layered),
}

impl Nand {
    pub fn new(spec: &DeviceSpec) -> Nand {
        if let Some(setup) = spec.chip_setup() {
            return Nand::Layered(Layered::new(spec, setup));
        }
        match &spec.nand {
            spec::Nand::Msr(p) => Nand::Msr(Msr::new(spec, p)),
            spec::Nand::Modern(p) => Nand::Modern(Modern::new(spec, p)),
        }
    }

    /// Resources of the event queue this back end uses, from 0.
    pub fn resources(&self) -> usize {
        match self {
            Nand::Msr(n) => n.chips.len(),
            Nand::Modern(n) => n.resources(),
            Nand::Layered(n) => n.resources(),
        }
    }

    /// Queues an operation on `chip` and lets the chip start on it if it is free.
    #[inline(always)]
    pub fn enqueue(&mut self, chip: usize, mut op: PageOp, now: Time, events: &mut EventQueue) {
        op.enqueued = now;
        op.stream = self.host_stream(op.lpn, op.stream);
        self.take_in(chip, op, now, events);
    }

    /// Queues an operation that has already waited elsewhere.
    #[inline(always)]
    pub fn take_in(&mut self, chip: usize, mut op: PageOp, now: Time, events: &mut EventQueue) {
        match self {
            Nand::Msr(n) => n.take_in(chip, &mut op, now, events),
            Nand::Modern(n) => {
                let overtakes = op.is_read() && n.reads_overtake();
                if n.takes_at_once(chip, &op, overtakes) {
                    return n.start_at_once(chip, op, now, events);
                }
                n.chips[chip].take_in(op, overtakes, now);
                if overtakes {
                    n.suspend_for_read(chip, now, events);
                }
                n.activate(chip, now, events);
            }
            Nand::Layered(n) => {
                let overtakes = op.is_read() && n.reads_overtake();
                n.chips[chip].take_in(op, overtakes, now);
                n.activate(chip, now, events);
            }
        }
    }

    /// Has its resources of the event queue from this one on.
    pub fn set_first_resource(&mut self, first: usize) {
        match self {
            Nand::Msr(n) => n.first_resource = first,
            Nand::Modern(n) => n.first_resource = first,
            Nand::Layered(n) => n.first_resource = first,
        }
    }

    /// Processes the event of a resource, counted from its first one. Stores the operation that finished, if any, in
    /// `done`, which is empty before. Returns the chip to activate afterwards; `None` if the chip only continued a
    /// collection.
    #[inline(always)]
    pub fn on_event(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        done: &mut Option<Done>,
    ) -> Option<usize> {
        match self {
            Nand::Msr(n) => Some(n.on_event(resource, now, events, done)),
            Nand::Modern(n) => match n.continue_collection(resource, now, events) {
                true => None,
                false => Some(n.on_event(resource, now, events, done)),
            },
            Nand::Layered(n) => Some(n.on_event(resource, now, events, done)),
        }
    }

    /// [`Nand::on_event`] with a place for what is needed of the operation that finished.
    #[inline(always)]
    pub fn on_event_into(
        &mut self,
        resource: usize,
        now: Time,
        events: &mut EventQueue,
        finished: &mut impl Finished,
    ) -> Option<usize> {
        if let Nand::Msr(n) = self {
            return Some(n.on_event(resource, now, events, finished));
        }
        let mut done = None;
        let chip = self.on_event(resource, now, events, &mut done);
        if let Some(done) = &done {
            finished.put(done);
        }
        chip
    }

    /// Lets a chip start its next operation, if it is free and there is one.
    #[inline(always)]
    pub fn activate(&mut self, chip: usize, now: Time, events: &mut EventQueue) {
        match self {
            Nand::Msr(n) => n.activate(chip, now, events),
            Nand::Modern(n) => n.activate(chip, now, events),
            Nand::Layered(n) => n.activate(chip, now, events),
        }
    }

    /// The orders of the array's controller to this drive about collecting; `None` with translation layers per chip,
    /// which receive no orders.
    #[inline]
    pub fn orders(&self) -> Option<&Orders> {
        match self {
            Nand::Msr(n) => Some(&n.orders),
            Nand::Modern(n) => Some(&n.orders),
            Nand::Layered(_) => None,
        }
    }

    /// Returns the orders, mutably.
    #[inline]
    pub fn orders_mut(&mut self) -> Option<&mut Orders> {
        match self {
            Nand::Msr(n) => Some(&mut n.orders),
            Nand::Modern(n) => Some(&mut n.orders),
            Nand::Layered(_) => None,
        }
    }

    /// Orders all pools to collect.
    pub fn force_gc(&mut self, force: Force) {
        match self {
            Nand::Msr(n) => n.orders.force(&n.ftl, force),
            Nand::Modern(n) => n.orders.force(&n.ftl, force),
            Nand::Layered(_) => {}
        }
    }

    /// Orders each pool of a die, or of all, to collect a block.
    pub fn force_one_each(&mut self, die: Option<u32>) {
        let (orders, ftl) = match self {
            Nand::Msr(n) => (&mut n.orders, &n.ftl),
            Nand::Modern(n) => (&mut n.orders, &n.ftl),
            Nand::Layered(_) => return,
        };
        let each = ftl.shape.pools_per_chip;
        let dies = match die {
            Some(die) => die..die + 1,
            None => 0..ftl.shape.chips,
        };
        orders.force_one_each(ftl, dies.start * each..dies.end * each);
    }

    /// The die is dead.
    #[inline]
    pub fn is_dead(&self, die: u32) -> bool {
        match self {
            Nand::Modern(n) => n.ftl.is_retired(die),
            Nand::Msr(_) | Nand::Layered(_) => false,
        }
    }

    /// The dies that are, ascending.
    pub fn dead_dies(&self) -> impl Iterator<Item = u32> + '_ {
        let dies = 0..self.chips().len() as u32;
        dies.filter(|&die| self.is_dead(die))
    }

    /// The `n`-th block a sequential fill writes in a chip.
    pub fn fill_order(&self, chip: u32, n: u32) -> u32 {
        match self {
            Nand::Msr(nand) => nand.fill_order(chip, n),
            Nand::Modern(nand) => chip * nand.ftl.shape.blocks_per_pool + n,
            Nand::Layered(_) => n,
        }
    }

    /// Writes a page, collecting as needed, without time passing, for preconditioning. `asked` is the stream that the
    /// buffer policy would choose if it has blocks of its own.
    pub fn write_untimed(&mut self, chip: usize, lpn: Lpn, asked: Stream) -> bool {
        match self {
            Nand::Msr(n) => n.write_untimed(chip, lpn, asked),
            Nand::Modern(n) => n.write_untimed(chip, lpn, asked),
            Nand::Layered(n) => n.write_untimed(chip, lpn),
        }
    }

    /// The chip that a write goes to, where the flash itself hands out turns.
    #[inline]
    pub fn next_chip(&mut self) -> Option<u32> {
        match self {
            Nand::Modern(n) => n.next_die(),
            Nand::Msr(_) | Nand::Layered(_) => None,
        }
    }

    /// Sets how many erases blocks survive, as `of` has it.
    pub fn limit_erases(&mut self, of: &Nand) {
        if let (Nand::Modern(n), Nand::Modern(of)) = (self, of) {
            n.ftl.shape.erase_limit = of.ftl.shape.erase_limit;
        }
    }

    /// Appends the positions of all round robins; with the page map they are the whole state of idle flash.
    pub fn cursors(&self, out: &mut Vec<u32>) {
        match self {
            Nand::Msr(n) => n.cursors(out),
            Nand::Modern(n) => out.extend(n.turns()),
            Nand::Layered(_) => {}
        }
    }

    /// Sets the positions that [`Nand::cursors`] returned; returns false if they do not fit this device.
    pub fn set_cursors(&mut self, cursors: &[u32]) -> bool {
        match self {
            Nand::Msr(n) => n.set_cursors(cursors),
            Nand::Modern(n) => n.set_turns(cursors),
            Nand::Layered(_) => cursors.is_empty(),
        }
    }

    #[cfg(test)]
    pub fn ftl(&self) -> &PageMap {
        match self {
            Nand::Msr(n) => &n.ftl,
            Nand::Modern(n) => &n.ftl,
            Nand::Layered(_) => panic!("no page map"),
        }
    }

    #[cfg(test)]
    pub fn ftl_mut(&mut self) -> &mut PageMap {
        match self {
            Nand::Msr(n) => &mut n.ftl,
            Nand::Modern(n) => &mut n.ftl,
            Nand::Layered(_) => panic!("no page map"),
        }
    }

    #[inline]
    pub fn chips(&self) -> &[Chip] {
        match self {
            Nand::Msr(n) => &n.chips,
            Nand::Modern(n) => &n.chips,
            Nand::Layered(n) => &n.chips,
        }
    }

    #[inline]
    fn chips_mut(&mut self) -> &mut [Chip] {
        match self {
            Nand::Msr(n) => &mut n.chips,
            Nand::Modern(n) => &mut n.chips,
            Nand::Layered(n) => &mut n.chips,
        }
    }

    /// Time until `chip` has completed its work: ECR's CQCT, as printed or exactly (D-14).
    #[inline]
    pub fn drain_time(&self, chip: usize, exact: bool, now: Time) -> Time {
        let ftl = match self.placed() {
            Placed::Map(ftl) => ftl,
            Placed::Layers(layers) => return layers.drain_time(chip, exact, now),
        };
        let of = &self.chips()[chip];
        debug_assert_eq!(of.inside, self.count_inside(chip, now));
        if exact {
            return self.drain_time_exact(ftl, chip, now);
        }
        let waiting_writes = of.inside[1] - self.writes_in_service(chip);
        Drain::of(ftl, chip as u32, of.inside, waiting_writes, of.in_gc, 0).time(self.times())
    }

    fn drain_time_exact(&self, ftl: &PageMap, chip: usize, now: Time) -> Time {
        let of = &self.chips()[chip];
        let in_hand = self.in_hand(chip, now);
        let waiting = [of.inside[0] - in_hand.reads, of.inside[1] - in_hand.writes];
        let moves = in_hand.gc_moves;
        let drain = Drain::of(ftl, chip as u32, waiting, waiting[1], of.in_gc, moves);
        drain.time_exact(self.times(), &in_hand)
    }

    /// Writes of a chip that have taken their page.
    #[inline]
    fn writes_in_service(&self, chip: usize) -> u32 {
        match self {
            Nand::Msr(n) => n.writes_in_service(chip),
            Nand::Modern(n) => n.writes_in_service(chip),
            Nand::Layered(n) => n.writes_in_service(chip),
        }
    }

    /// Flash time of the reads and writes of `chip`, those in service whole and GC apart.
    #[inline]
    pub fn load(&self, chip: usize) -> Time {
        let [reads, writes] = self.chips()[chip].inside;
        let l = self.times();
        l.read * reads.into() + l.program * writes.into()
    }

    /// Reads and writes of a chip, counted one by one.
    fn count_inside(&self, chip: usize, now: Time) -> [u32; 2] {
        let of = &self.chips()[chip];
        let in_hand = self.in_hand(chip, now);
        let mut inside = [in_hand.reads, in_hand.writes];
        for op in of.reads.iter().chain(&of.queue) {
            inside[op.kind()] += 1;
        }
        inside
    }

    fn in_hand(&self, chip: usize, now: Time) -> InHand {
        match self {
            Nand::Msr(n) => n.in_hand(chip, now),
            Nand::Modern(n) => n.in_hand(chip, now),
            Nand::Layered(n) => n.in_hand(chip, now),
        }
    }

    #[inline]
    fn times(&self) -> &Latencies {
        match self {
            Nand::Msr(n) => &n.times,
            Nand::Modern(n) => &n.times,
            Nand::Layered(n) => &n.times,
        }
    }

    /// The chip has no operation and none waits.
    #[inline]
    pub fn is_idle(&self, chip: usize) -> bool {
        if let Nand::Layered(n) = self {
            return n.is_idle(chip);
        }
        let c = &self.chips()[chip];
        c.inside == [0, 0] && !c.in_gc
    }

    /// The chips that are collecting now.
    #[inline(always)]
    pub fn chips_in_gc(&self) -> &ChipSet {
        match self {
            Nand::Msr(n) => &n.chips_in_gc,
            Nand::Modern(n) => &n.chips_in_gc,
            Nand::Layered(n) => &n.chips_in_gc,
        }
    }

    pub fn stats(&self) -> &FlashStats {
        match self {
            Nand::Msr(n) => &n.stats,
            Nand::Modern(n) => &n.stats,
            Nand::Layered(n) => &n.stats,
        }
    }

    /// Starts all counters and clocks of the chips at zero again.
    pub fn reset_stats(&mut self, now: Time) {
        for chip in self.chips_mut() {
            chip.gc_before_start = chip.gc_time(now);
            chip.busy_total = Time::ZERO;
        }
        match self {
            Nand::Msr(n) => n.stats = FlashStats::default(),
            Nand::Modern(n) => n.stats = FlashStats::default(),
            Nand::Layered(n) => n.reset_stats(),
        }
    }

    /// Starts or stops keeping a log of every operation.
    pub fn set_log(&mut self, on: bool) {
        match self {
            Nand::Msr(n) => n.log = on.then(Vec::new),
            Nand::Modern(n) => n.set_log(on),
            Nand::Layered(n) => {
                n.log = on.then(Vec::new);
                n.forget_notes();
            }
        }
    }

    fn log_mut(&mut self) -> &mut Option<Vec<FlashEvent>> {
        match self {
            Nand::Msr(n) => &mut n.log,
            Nand::Modern(n) => &mut n.log,
            Nand::Layered(n) => &mut n.log,
        }
    }

    /// A log is kept.
    pub fn is_logged(&self) -> bool {
        match self {
            Nand::Msr(n) => n.log.is_some(),
            Nand::Modern(n) => n.log.is_some(),
            Nand::Layered(n) => n.log.is_some(),
        }
    }

    /// Takes the logged operations since the last call.
    pub fn take_log(&mut self) -> Vec<FlashEvent> {
        self.log_mut()
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }
}
