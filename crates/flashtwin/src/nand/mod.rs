//! The flash: chips that serve queued page operations and collect garbage.
//!
//! Four back ends have one interface:
//!
//! - [`Msr`] is the element model of the MSR SSD extension of DiskSim. It reproduces the event logs of this simulator,
//!   the *reference*, exactly.
//! - [`Modern`] has dies that share channels, as in a current drive.
//! - [`Layered`] has a translation layer in each chip.
//! - [`Units`] uses the chips and channels of [`Modern`], but places pages in units (docs/placement.md).
//!
//! `Units` assigns a place to a page when the write of the page is queued. The other back ends change the page map only
//! when they dispatch an operation to its chip. There, an operation in a queue has changed nothing yet.
//!
//! The caller queues operations ([`Nand::enqueue`]), advances the clock to the next instant in the event queue, and
//! calls [`Nand::on_event`]. If `on_event` returns a chip, the caller processes the finished operation, may queue
//! further operations, and then calls [`Nand::activate`] for the chip. The chip then chooses among all queued
//! operations, as in the reference. A back end never calls functions of its caller.

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
pub use modern::Asked;
pub(crate) use modern::{Modern, Units};
pub(crate) use msr::Msr;
pub use owner::Owner;
pub(crate) use owner::Receiver;
pub(crate) use placed::PoolBlocks;

use drain::{Drain, InHand, Latencies};
use placed::Placed;
use std::collections::VecDeque;

use crate::chips::{ChipSet, MovedPages};
use crate::events::EventQueue;
use crate::ftl::PageMap;
use crate::gc::{Force, Orders};
use crate::placement::{self, SetupError, UserRules};
use crate::spec::{self, DeviceSpec};
use crate::units::Stream;
use crate::units::{Lpn, Time};

/// Cause of a flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cause {
    /// Host read on a device without a buffer.
    HostRead,
    /// Read of a page of which a host write covers only a part, on a device without a buffer.
    PartialRead,
    /// Read that fills a page of the buffer.
    Fill,
    /// Host write on a device without a buffer.
    HostWrite,
    /// Write-back of an evicted page.
    Destage,
    /// Write-back for a flush of the host, or for a write with forced unit access.
    Flush,
    /// Write-back of a page while its chip was idle; the page stays in the buffer.
    WriteBack,
    /// Read of a page that is missing in a block of the buffer, before the block is written back as a whole.
    PaddingRead,
    /// Program of a page that was read for padding, as a part of the write-back of its block.
    Padding,
    /// Program of a clean page of the read cache, as a part of the write-back of its block.
    Merge,
    /// Read and program of a page that GC moves.
    GcMove,
    /// Read and program of a page that is folded, that is, moved out of a block in SLC mode.
    Fold,
    /// Read and program of a page that wear levelling migrates to a worn block.
    Migration,
    /// A block's summary page.
    Summary,
    /// Read of a translation page, which has a part of the map.
    MapRead,
    /// Program of a translation page, which has a part of the map.
    MapWrite,
    /// Read and program of a page that is moved when a log block is merged with its data block.
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

    /// Returns the name in results.
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

/// A page operation, waiting in a chip's queue or in service.
#[derive(Clone, Copy, Debug)]
pub struct PageOp {
    pub lpn: Lpn,
    /// The receiver of the result.
    pub owner: Owner,
    pub cause: Cause,
    /// Number of the host request that caused the operation, or [`FlashEvent::NO_REQUEST`].
    pub request: u32,
    /// For a write, the stream (hot or cold) that determines the open block to which the page is written.
    pub stream: Stream,
    /// Whether the host waits until the data would survive a power loss (forced unit access).
    pub fua: bool,
    /// Number of times that a program was sent to another die, because its die had failed. Usually 0.
    pub again: u8,
    pub enqueued: Time,
    /// Total GC time of the chip until this operation was queued.
    pub gc_before: Time,
}

/// Set of the causes of reads, as bits.
const READS: u32 = 1 << Cause::HostRead as u32
    | 1 << Cause::PartialRead as u32
    | 1 << Cause::Fill as u32
    | 1 << Cause::PaddingRead as u32;

impl PageOp {
    #[inline]
    pub fn is_read(&self) -> bool {
        READS >> self.cause as u32 & 1 == 1
    }

    /// Returns the index of the operation's counter: 0 for reads, 1 for writes.
    #[inline]
    fn kind(&self) -> usize {
        usize::from(!self.is_read())
    }
}

/// A finished page operation, with the parts of its latency.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub op: PageOp,
    pub queue_gc: Time,
    pub transfer: Time,
    pub array: Time,
    /// False for a write that found no free page, because the device has reached the end of its life.
    pub written: bool,
    /// True for a read of a page on a dead die.
    pub failed: bool,
}

impl Done {
    /// Placeholder for a [`Done`] that is not in use.
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

/// Receiver of a finished operation. It may store only those parts of a [`Done`] that it needs.
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
    /// Number of operations for each [`Cause`], in the order of [`Cause::ALL`].
    pub ops: [u64; Cause::ALL.len()],
    /// GC actions: how often a chip began GC.
    pub gc_actions: u64,
    /// Number of pages that were erased without having been programmed. A merge leaves a page unprogrammed if its
    /// logical page has no copy. A migration of wear levelling may fill a block only in part.
    pub pages_skipped: u64,
    /// Writes that found no free page.
    pub writes_failed: u64,
    /// Number of pages programmed again on another die, because their die failed during the first program. The first
    /// program is counted in `ops`.
    pub programs_again: u64,
}

impl FlashStats {
    /// Returns the number of operations with this cause.
    pub fn count(&self, cause: Cause) -> u64 {
        self.ops[cause as usize]
    }

    #[inline]
    fn add(&mut self, cause: Cause, n: u64) {
        self.ops[cause as usize] += n;
    }

    /// Counts the program of an operation by its cause. If the operation was sent to this die because another die had
    /// failed during its first program, counts the program in `programs_again` instead.
    #[inline]
    fn add_program(&mut self, op: &PageOp) {
        match op.again {
            0 => self.add(op.cause, 1),
            _ => self.programs_again += 1,
        }
    }

    /// Returns the number of data pages programmed for the host: host writes, destages, flushes and write-backs.
    pub fn host_programs(&self) -> u64 {
        self.count(Cause::HostWrite)
            + self.count(Cause::Destage)
            + self.count(Cause::Flush)
            + self.count(Cause::WriteBack)
    }
}

/// State of a chip that all back ends need. The fields that every move of a collection uses are in the first cache
/// line.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Chip {
    /// Host reads with priority, which overtake the queue. Empty if reads have no priority.
    pub reads: VecDeque<PageOp>,
    /// Total time of the finished operations, including those of GC.
    pub busy_total: Time,
    /// Start of the running GC action, if there is one.
    gc_since: Time,
    /// Total time of the finished GC actions. A reset of the counters does not change it, because waiting operations
    /// have recorded it in `gc_before`.
    gc_total: Time,
    /// Numbers of reads and of writes of the chip, waiting or in service.
    inside: [u32; 2],
    pub queue: VecDeque<PageOp>,
    /// `gc_total` at the last reset of the counters.
    gc_before_start: Time,
    /// Whether a GC action is running.
    pub in_gc: bool,
}

impl Chip {
    /// Returns the time spent in GC from the last reset of the counters until `now`.
    pub fn gc_time_counted(&self, now: Time) -> Time {
        self.gc_time(now) - self.gc_before_start
    }

    /// Returns the time spent in GC until `now`.
    #[inline(always)]
    pub fn gc_time(&self, now: Time) -> Time {
        if self.in_gc {
            self.gc_total + (now - self.gc_since)
        } else {
            self.gc_total
        }
    }

    /// Counts an arriving operation. Records in it the chip's GC time so far, for its latency breakdown.
    #[inline(always)]
    fn count_arrival(&mut self, op: &mut PageOp, now: Time) {
        op.gc_before = self.gc_time(now);
        self.inside[op.kind()] += 1;
    }

    /// Appends an operation to the queue of reads with priority if `overtakes`, otherwise to the ordinary queue.
    #[inline(always)]
    fn take_in(&mut self, mut op: PageOp, overtakes: bool, now: Time) {
        self.count_arrival(&mut op, now);
        match overtakes {
            true => self.reads.push_back(op),
            false => self.queue.push_back(op),
        }
    }

    /// Removes a finished operation from the counts.
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
    Units(Modern<Units>),
}

/// Returns the chip queue complete time of a chip as printed in the paper of ECR. `begun` is the number of writes that
/// have already taken their page.
#[inline(always)]
fn drain_time_as_printed(
    ftl: &PageMap,
    chip: usize,
    of: &Chip,
    begun: u32,
    times: &Latencies,
) -> Time {
    let waiting_writes = of.inside[1] - begun;
    Drain::of(ftl, chip as u32, of.inside, waiting_writes, of.in_gc, 0).time(times)
}

impl Nand {
    /// Creates flash that writes by units (parts of the flash that are erased as a whole). The placement rules of a
    /// user replace those that `spec` names.
    ///
    /// # Errors
    /// Fails if `spec` does not write by units, or if some sequence of writes would find no room.
    pub fn with_rules(spec: &DeviceSpec, rules: &UserRules) -> Result<Nand, SetupError> {
        let (spec::Nand::Modern(params), Some(Ok(setup))) = (&spec.nand, spec.placement_setup())
        else {
            return Err(SetupError::new(
                "the device does not write by units (placement.scheme): it has no placement rules",
            ));
        };
        if let Some(scheme) = &rules.scheme {
            setup.check_needs(&scheme.needs())?;
        }
        let device = placement::Placed::with_rules(&setup, rules)?;
        Ok(Nand::Units(Modern::by_units(spec, params, device)))
    }

    pub fn new(spec: &DeviceSpec) -> Nand {
        if let Some(setup) = spec.chip_setup() {
            return Nand::Layered(Layered::new(spec, setup));
        }
        match &spec.nand {
            spec::Nand::Msr(p) => Nand::Msr(Msr::new(spec, p)),
            spec::Nand::Modern(p) => match spec.placement_setup() {
                Some(setup) => {
                    let device = setup.map_or(None, |setup| placement::Placed::new(&setup).ok());
                    let device = device.expect("the spec was checked");
                    Nand::Units(Modern::by_units(spec, p, device))
                }
                None => Nand::Modern(Modern::new(spec, p)),
            },
        }
    }

    /// Queues a write on flash that writes by units (parts of the flash that are erased as a whole). `asked` is the
    /// placement that the host requests.
    #[inline(never)]
    pub fn write_by_unit(
        &mut self,
        mut op: PageOp,
        asked: Asked,
        now: Time,
        events: &mut EventQueue,
    ) {
        op.enqueued = now;
        if let Nand::Units(n) = self {
            n.write(op, asked, now, events);
        }
    }

    /// Whether the flash writes by units (parts of the flash that are erased as a whole), and thus assigns a place to a
    /// page when its write is queued.
    #[inline(always)]
    pub fn has_units(&self) -> bool {
        matches!(self, Nand::Units(_))
    }

    /// Returns the tables and placement rules of flash that writes by units (parts of the flash that are erased as a
    /// whole); `None` for other flash.
    pub fn units(&self) -> Option<&placement::Placed> {
        match self {
            Nand::Units(n) => Some(&n.map.device),
            _ => None,
        }
    }

    /// Returns the tables and placement rules of flash that writes by units ([`Nand::units`]), mutably.
    pub fn units_mut(&mut self) -> Option<&mut placement::Placed> {
        match self {
            Nand::Units(n) => Some(&mut n.map.device),
            _ => None,
        }
    }

    /// Returns the number of resources that this back end uses in the event queue.
    pub fn resources(&self) -> usize {
        match self {
            Nand::Msr(n) => n.chips.len(),
            Nand::Modern(n) => n.resources(),
            Nand::Layered(n) => n.resources(),
            Nand::Units(n) => n.resources(),
        }
    }

    /// Queues an operation on `chip`. If the chip is free, it starts its next work.
    #[inline(always)]
    pub fn enqueue(&mut self, chip: usize, mut op: PageOp, now: Time, events: &mut EventQueue) {
        op.enqueued = now;
        op.stream = self.host_stream(op.lpn, op.stream);
        self.take_in(chip, op, now, events);
    }

    /// Queues an operation that has waited outside the flash. `op.enqueued` must already have the instant at which that
    /// wait began.
    #[cfg_attr(not(debug_assertions), inline(always))]
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
            Nand::Units(n) => {
                if !op.is_read() {
                    return n.write(op, Asked::default(), now, events);
                }
                let overtakes = n.reads_overtake();
                n.chips[chip].take_in(op, overtakes, now);
                if overtakes {
                    n.suspend_for_read(chip, now, events);
                }
                n.activate_and_woken(chip, now, events);
            }
        }
    }

    /// Sets the number that the first resource of this back end (a chip or a lane) has in the event queue.
    pub fn set_first_resource(&mut self, first: usize) {
        match self {
            Nand::Msr(n) => n.first_resource = first,
            Nand::Modern(n) => n.first_resource = first,
            Nand::Layered(n) => n.first_resource = first,
            Nand::Units(n) => n.first_resource = first,
        }
    }

    /// Processes the event of a resource (such as a chip or a channel), which is numbered from the back end's first
    /// one. Stores a finished operation in `done`, which must be empty. Returns the chip to activate afterwards, or
    /// `None` if the chip only continued a collection.
    #[cfg_attr(not(debug_assertions), inline(always))]
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
            Nand::Units(n) => {
                let die = n.on_event(resource, now, events, done);
                if let Some(done) = done {
                    n.program_done(die, done, now);
                }
                Some(die)
            }
        }
    }

    /// Does the work of [`Nand::on_event`], but stores only those parts of a finished operation that `finished` needs.
    #[cfg_attr(not(debug_assertions), inline(always))]
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

    /// Starts the next work of a chip if the chip is free.
    #[inline(always)]
    pub fn activate(&mut self, chip: usize, now: Time, events: &mut EventQueue) {
        match self {
            Nand::Msr(n) => n.activate(chip, now, events),
            Nand::Modern(n) => n.activate(chip, now, events),
            Nand::Layered(n) => n.activate(chip, now, events),
            Nand::Units(n) => n.activate_and_woken(chip, now, events),
        }
    }

    /// Returns the orders to collect that this drive has received, for example from the controller of an array. `None`
    /// for flash with translation layers in its chips and for flash that writes by units. Neither accepts orders.
    #[inline]
    pub fn orders(&self) -> Option<&Orders> {
        match self {
            Nand::Msr(n) => Some(&n.orders),
            Nand::Modern(n) => Some(&n.map.orders),
            Nand::Layered(_) | Nand::Units(_) => None,
        }
    }

    /// Returns the orders to collect, mutably.
    #[inline]
    pub fn orders_mut(&mut self) -> Option<&mut Orders> {
        match self {
            Nand::Msr(n) => Some(&mut n.orders),
            Nand::Modern(n) => Some(&mut n.map.orders),
            Nand::Layered(_) | Nand::Units(_) => None,
        }
    }

    /// Orders all pools to collect.
    pub fn force_gc(&mut self, force: Force) {
        match self {
            Nand::Msr(n) => n.orders.force(&n.ftl, force),
            Nand::Modern(n) => n.map.orders.force(&n.map.ftl, force),
            Nand::Layered(_) | Nand::Units(_) => {}
        }
    }

    /// Whether [`Nand::set_gc`] has an effect.
    pub fn can_set_gc(&self) -> bool {
        matches!(self, Nand::Msr(_) | Nand::Modern(_))
    }

    /// Takes over the GC settings of `spec`.
    pub fn set_gc(&mut self, spec: &DeviceSpec) {
        match self {
            Nand::Msr(n) => n.set_gc(spec),
            Nand::Modern(n) => n.set_gc(spec),
            Nand::Layered(_) | Nand::Units(_) => {}
        }
    }

    /// Orders each pool of a die, or of all dies, to collect one block.
    pub fn force_one_each(&mut self, die: Option<u32>) {
        let (orders, ftl) = match self {
            Nand::Msr(n) => (&mut n.orders, &n.ftl),
            Nand::Modern(n) => (&mut n.map.orders, &n.map.ftl),
            Nand::Layered(_) | Nand::Units(_) => return,
        };
        let each = ftl.shape.pools_per_chip;
        let dies = match die {
            Some(die) => die..die + 1,
            None => 0..ftl.shape.chips,
        };
        orders.force_one_each(ftl, dies.start * each..dies.end * each);
    }

    /// Whether the die is dead.
    #[inline]
    pub fn is_dead(&self, die: u32) -> bool {
        match self {
            Nand::Modern(n) => n.map.ftl.is_retired(die),
            Nand::Msr(_) | Nand::Layered(_) | Nand::Units(_) => false,
        }
    }

    /// Returns the dead dies in ascending order.
    pub fn dead_dies(&self) -> impl Iterator<Item = u32> + '_ {
        let dies = 0..self.chips().len() as u32;
        dies.filter(|&die| self.is_dead(die))
    }

    /// Returns the block of a chip that a sequential fill writes as the `n`-th.
    pub fn fill_order(&self, chip: u32, n: u32) -> u32 {
        match self {
            Nand::Msr(nand) => nand.fill_order(chip, n),
            Nand::Modern(nand) => chip * nand.map.ftl.shape.blocks_per_pool + n,
            Nand::Layered(_) | Nand::Units(_) => n,
        }
    }

    /// Writes a page in no simulated time, for preconditioning. Also executes the collections that the write requires.
    /// `asked` is the stream that the buffer policy chooses for the page. Returns false if there is no room for the
    /// page.
    pub fn write_untimed(&mut self, chip: usize, lpn: Lpn, asked: Stream) -> bool {
        match self {
            Nand::Msr(n) => n.write_untimed(chip, lpn, asked),
            Nand::Modern(n) => n.write_untimed(chip, lpn, asked),
            Nand::Layered(n) => n.write_untimed(chip, lpn),
            Nand::Units(n) => n.write_untimed(lpn),
        }
    }

    /// Returns the chip for the next write if the flash itself distributes writes over chips, otherwise `None`.
    #[inline]
    pub fn next_chip(&mut self) -> Option<u32> {
        match self {
            Nand::Modern(n) => n.next_die(),
            Nand::Msr(_) | Nand::Layered(_) | Nand::Units(_) => None,
        }
    }

    /// Sets the number of erases that a block survives to that of the flash `of`.
    pub fn limit_erases(&mut self, of: &Nand) {
        if let (Nand::Modern(n), Nand::Modern(of)) = (self, of) {
            n.map.ftl.shape.erase_limit = of.map.ftl.shape.erase_limit;
        }
    }

    /// Appends all round-robin positions to `out`. They and the page map are the whole state of idle flash.
    pub fn cursors(&self, out: &mut Vec<u32>) {
        match self {
            Nand::Msr(n) => n.cursors(out),
            Nand::Modern(n) => out.extend(n.turns()),
            Nand::Layered(_) | Nand::Units(_) => {}
        }
    }

    /// Sets the round-robin positions that [`Nand::cursors`] returned. Returns false if they do not fit this device.
    pub fn set_cursors(&mut self, cursors: &[u32]) -> bool {
        match self {
            Nand::Msr(n) => n.set_cursors(cursors),
            Nand::Modern(n) => n.set_turns(cursors),
            Nand::Layered(_) | Nand::Units(_) => cursors.is_empty(),
        }
    }

    #[cfg(test)]
    pub fn ftl(&self) -> &PageMap {
        match self {
            Nand::Msr(n) => &n.ftl,
            Nand::Modern(n) => &n.map.ftl,
            Nand::Layered(_) | Nand::Units(_) => panic!("no page map"),
        }
    }

    #[cfg(test)]
    pub fn ftl_mut(&mut self) -> &mut PageMap {
        match self {
            Nand::Msr(n) => &mut n.ftl,
            Nand::Modern(n) => &mut n.map.ftl,
            Nand::Layered(_) | Nand::Units(_) => panic!("no page map"),
        }
    }

    #[inline]
    pub fn chips(&self) -> &[Chip] {
        match self {
            Nand::Msr(n) => &n.chips,
            Nand::Modern(n) => &n.chips,
            Nand::Layered(n) => &n.chips,
            Nand::Units(n) => &n.chips,
        }
    }

    #[inline]
    fn chips_mut(&mut self) -> &mut [Chip] {
        match self {
            Nand::Msr(n) => &mut n.chips,
            Nand::Modern(n) => &mut n.chips,
            Nand::Layered(n) => &mut n.chips,
            Nand::Units(n) => &mut n.chips,
        }
    }

    /// Returns the time until `chip` has completed all its work (ECR's chip queue complete time). With `exact`, the
    /// time is exact; otherwise it is as printed in the paper (D-14).
    #[inline]
    pub fn drain_time(&self, chip: usize, exact: bool, now: Time) -> Time {
        debug_assert_eq!(self.chips()[chip].inside, self.count_inside(chip, now));
        match self {
            Nand::Msr(_) | Nand::Modern(_) if exact => self.drain_time_exact(chip, now),
            Nand::Msr(n) => {
                let begun = n.writes_in_service(chip);
                drain_time_as_printed(&n.ftl, chip, &n.chips[chip], begun, &n.times)
            }
            Nand::Modern(n) => {
                let begun = n.writes_in_service(chip);
                drain_time_as_printed(&n.map.ftl, chip, &n.chips[chip], begun, &n.times)
            }
            Nand::Layered(n) => n.drain_time(chip, exact, now),
            Nand::Units(_) => self.drain_time_by_units(chip, now),
        }
    }

    /// Returns the time until a chip has completed its reads and writes, and its part of a running collection, on a
    /// device that writes by units. There, the chips form groups, and all chips of a group execute a collection
    /// together.
    #[inline(never)]
    fn drain_time_by_units(&self, chip: usize, now: Time) -> Time {
        let gc_rest = self.in_hand(chip, now).gc_rest;
        self.load(chip) + gc_rest.unwrap_or(Time::ZERO)
    }

    #[inline(never)]
    fn drain_time_exact(&self, chip: usize, now: Time) -> Time {
        let Placed::Map(ftl) = self.placed() else {
            unreachable!("only flash with a page map has these equations");
        };
        let of = &self.chips()[chip];
        let in_hand = self.in_hand(chip, now);
        let waiting = [of.inside[0] - in_hand.reads, of.inside[1] - in_hand.writes];
        let moves = in_hand.gc_moves;
        let drain = Drain::of(ftl, chip as u32, waiting, waiting[1], of.in_gc, moves);
        drain.time_exact(self.times(), &in_hand)
    }

    /// Returns the flash time of the reads and writes of `chip`, waiting or in service, without GC. An operation in
    /// service counts with its whole time.
    #[inline]
    pub fn load(&self, chip: usize) -> Time {
        let [reads, writes] = self.chips()[chip].inside;
        let l = self.times();
        l.read * reads.into() + l.program * writes.into()
    }

    /// Counts the reads and the writes of a chip, in its queues and in service. Used to check the counter `inside`.
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
            Nand::Units(n) => n.in_hand(chip, now),
        }
    }

    #[inline]
    fn times(&self) -> &Latencies {
        match self {
            Nand::Msr(n) => &n.times,
            Nand::Modern(n) => &n.times,
            Nand::Layered(n) => &n.times,
            Nand::Units(n) => &n.times,
        }
    }

    /// Whether the chip has no operation, waiting or in service, and is not in GC.
    #[inline]
    pub fn is_idle(&self, chip: usize) -> bool {
        if let Nand::Layered(n) = self {
            return n.is_idle(chip);
        }
        let c = &self.chips()[chip];
        c.inside == [0, 0] && !c.in_gc
    }

    /// Returns the chips that are collecting now.
    #[inline(always)]
    pub fn chips_in_gc(&self) -> &ChipSet {
        match self {
            Nand::Msr(n) => &n.chips_in_gc,
            Nand::Modern(n) => &n.chips_in_gc,
            Nand::Layered(n) => &n.chips_in_gc,
            Nand::Units(n) => &n.chips_in_gc,
        }
    }

    /// Whether a collection may have moved pages to other chips since the last call of [`Nand::take_moved`].
    #[inline]
    pub fn has_moved(&self) -> bool {
        match self {
            Nand::Msr(_) | Nand::Layered(_) => false,
            Nand::Modern(n) => !n.moved.is_empty(),
            Nand::Units(n) => !n.moved.is_empty(),
        }
    }

    /// Returns the pages that collections may have moved to other chips since the last call of this function.
    pub fn take_moved(&mut self) -> MovedPages {
        match self {
            Nand::Msr(_) | Nand::Layered(_) => MovedPages::default(),
            Nand::Modern(n) => std::mem::take(&mut n.moved),
            Nand::Units(n) => std::mem::take(&mut n.moved),
        }
    }

    pub fn stats(&self) -> &FlashStats {
        match self {
            Nand::Msr(n) => &n.stats,
            Nand::Modern(n) => &n.stats,
            Nand::Layered(n) => &n.stats,
            Nand::Units(n) => &n.stats,
        }
    }

    /// Resets the counters of the flash, and the busy and GC times of its chips, to zero.
    pub fn reset_stats(&mut self, now: Time) {
        for chip in self.chips_mut() {
            chip.gc_before_start = chip.gc_time(now);
            chip.busy_total = Time::ZERO;
        }
        match self {
            Nand::Msr(n) => n.stats = FlashStats::default(),
            Nand::Modern(n) => n.stats = FlashStats::default(),
            Nand::Layered(n) => n.reset_stats(),
            Nand::Units(n) => n.stats = FlashStats::default(),
        }
    }

    /// Starts or stops the log of operations.
    pub fn set_log(&mut self, on: bool) {
        match self {
            Nand::Msr(n) => n.log = on.then(Vec::new),
            Nand::Modern(n) => n.set_log(on),
            Nand::Layered(n) => {
                n.log = on.then(Vec::new);
                n.forget_notes();
            }
            Nand::Units(n) => n.set_log(on),
        }
    }

    fn log_mut(&mut self) -> &mut Option<Vec<FlashEvent>> {
        match self {
            Nand::Msr(n) => &mut n.log,
            Nand::Modern(n) => &mut n.log,
            Nand::Layered(n) => &mut n.log,
            Nand::Units(n) => &mut n.log,
        }
    }

    /// Whether a log is kept.
    pub fn is_logged(&self) -> bool {
        match self {
            Nand::Msr(n) => n.log.is_some(),
            Nand::Modern(n) => n.log.is_some(),
            Nand::Layered(n) => n.log.is_some(),
            Nand::Units(n) => n.log.is_some(),
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
