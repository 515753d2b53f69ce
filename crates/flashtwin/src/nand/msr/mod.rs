//! The back end `Msr`: the element model of the MSR SSD extension of DiskSim 4.0. It reproduces the event logs of this
//! simulator, the reference, exactly.
//!
//! A chip ("element") serves one batch of pages at a time. Usually a batch is one page. With copy-back and several
//! parallel units in a chip, a batch has up to 100 reads and up to 100 writes. All times and all changes of the map are
//! fixed at dispatch. Cleaning (garbage collection) occupies the whole chip. Chips share no bus, since each has its own
//! pins.
//!
//! Some comments give the number of a quirk of the reference, such as Q5. docs/devices.md lists the quirks, and whether
//! each is reproduced or corrected here.

mod batch_log;
mod clean;
mod serve;

use super::{Cause, Chip, Done, Finished, FlashEvent, FlashStats, InHand, Latencies, PageOp};
use crate::chips::ChipSet;
use crate::events::EventQueue;
use crate::ftl::{PageMap, Shape};
use crate::gc::{self, Orders, Tie, Victims};
use crate::memory::TrustedTable;
use crate::spec::{DeviceSpec, MsrNand, PlaneMapping};
use crate::units::Stream;
use crate::units::{ChipId, Lpn, Ppn, Time};

/// Largest number of reads, and largest number of writes, in a batch.
const BATCH_MAX: usize = 100;

/// Before a collection, the logical page numbers of at most this number of pages are prefetched.
const FORESEEN_MAX: u32 = 256;

/// An operation in service.
#[derive(Clone, Copy, Debug)]
struct Running {
    done_at: Time,
    done: Done,
}

/// An operation of the batch being assembled, with the plane on which it is executed.
#[derive(Clone, Copy, Debug)]
struct Planned {
    op: PageOp,
    plane: u32,
}

/// The back end.
#[derive(Clone, Debug)]
pub(crate) struct Msr {
    pub ftl: PageMap,
    pub chips: TrustedTable<Chip>,
    pub stats: FlashStats,
    pub log: Option<Vec<FlashEvent>>,
    pub chips_in_gc: ChipSet,
    pub orders: Orders,
    victims: Victims,
    /// Number of the first chip in the event queue. The queue numbers all resources: chips, channels and buses.
    pub first_resource: usize,
    /// Whether collections take no time.
    ideal: bool,
    pub times: Latencies,
    service: TrustedTable<Service>,
    params: MsrNand,
    /// Transfer time of a summary page: one sector.
    summary_transfer: Option<Time>,
    /// High watermark. On a chip without copy-back, cleaning ends when more than this number of blocks is free.
    high: u32,
    planes: u32,
    // Scratch memory, kept so that serving a batch allocates nothing.
    writes: Vec<Planned>,
    reads: Vec<Planned>,
}

/// Operations in service on a chip, and its round-robin cursors.
#[derive(Clone, Debug)]
struct Service {
    /// Whether operations are in service.
    serves: bool,
    /// The operation of the batch that ends next.
    next: Running,
    /// The other operations of the batch, sorted by their end in descending order.
    rest: Vec<Running>,
    batch_since: Time,
    /// End of the running GC action.
    clean_until: Time,
    /// Cursor of writes: the plane at which the search for a plane to write to starts.
    next_plane: u32,
    /// Cursors of cleaning: for each parallel unit, the plane at which the search for a plane to clean starts.
    clean_cursor: [u32; 4],
    /// The block under collection, if the collection proceeds page by page.
    in_steps: Option<u32>,
}

impl Service {
    /// State of an idle chip.
    const IDLE: Service = Service {
        serves: false,
        next: Running {
            done_at: Time::NEVER,
            done: Done::NOTHING,
        },
        rest: Vec::new(),
        batch_since: Time::ZERO,
        clean_until: Time::ZERO,
        next_plane: 0,
        clean_cursor: [0; 4],
        in_steps: None,
    };

    /// Returns the operations of the batch in service. The first one returned is the last to end.
    fn in_service(&self) -> impl Iterator<Item = &Running> {
        let next = self.serves.then_some(&self.next);
        self.rest.iter().chain(next)
    }
}

/// Returns the low and the high watermark, as numbers of free blocks. A pool collects when it has no more free blocks
/// than the low watermark. On a chip without copy-back, the collection continues until the high watermark is exceeded.
fn watermarks(spec: &DeviceSpec, params: &MsrNand) -> (u32, u32) {
    let g = &spec.geometry;
    let chip_blocks = g.planes_per_chip * g.blocks_per_plane;
    let of = |blocks: u32| blocks as f64 * spec.gc.low_percent / 100.0;
    let low = match params.copy_back {
        true => of(g.blocks_per_plane),
        false => of(chip_blocks),
    };
    (low as u32, (of(chip_blocks) + 1.0) as u32)
}

impl Msr {
    pub fn new(spec: &DeviceSpec, params: &MsrNand) -> Msr {
        let g = &spec.geometry;
        let (low, high) = watermarks(spec, params);
        let mut ftl = PageMap::new(Shape::of(spec, params.copy_back), low);
        let victims = Victims::of(&spec.gc.victim);
        if params.copy_back {
            let pages = g.pages_per_block.min(FORESEEN_MAX);
            gc::foresee(&mut ftl, victims, Tie::Highest, pages, true);
        }
        Msr {
            orders: Orders::new(&ftl),
            ftl,
            // SAFETY: indexed by chip; the event queue and the placement of pages use the same number of chips.
            chips: unsafe { TrustedTable::new(vec![Chip::default(); g.chips as usize]) },
            stats: FlashStats::default(),
            log: None,
            chips_in_gc: ChipSet::none(spec.geometry.chips),
            victims,
            first_resource: 0,
            ideal: spec.gc.ideal,
            times: Latencies::of(spec, params.copy_back),
            // SAFETY: indexed by chip, as `chips`.
            service: unsafe { TrustedTable::new(vec![Service::IDLE; g.chips as usize]) },
            summary_transfer: spec.ftl.summary_page.then(|| spec.summary_transfer()),
            high,
            planes: g.planes_per_chip,
            params: params.clone(),
            writes: Vec::new(),
            reads: Vec::new(),
        }
    }

    /// Takes over the GC settings of `spec`.
    pub fn set_gc(&mut self, spec: &DeviceSpec) {
        let (low, high) = watermarks(spec, &self.params);
        self.ftl.set_low(low);
        self.high = high;
    }

    // ---- service ----

    /// Processes the end of an operation or of the cleaning of a chip. Returns the chip.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn on_event(
        &mut self,
        chip: usize,
        now: Time,
        events: &mut EventQueue,
        done: &mut impl Finished,
    ) -> usize {
        let c = &mut self.chips[chip];
        let s = &mut self.service[chip];
        if !s.serves {
            c.busy_total += now - s.batch_since;
            c.leave_gc(now);
            self.chips_in_gc.set(ChipId(chip as u16), false);
            return chip;
        }
        debug_assert_eq!(s.next.done_at, now);
        c.ended(&s.next.done.op);
        done.put(&s.next.done);
        let Some(next) = s.rest.pop() else {
            c.busy_total += now - s.batch_since;
            s.serves = false;
            return chip;
        };
        events.set(self.first_resource + chip, next.done_at);
        s.next = next;
        chip
    }

    #[inline(always)]
    pub fn is_idle(&self, chip: usize) -> bool {
        !self.chips[chip].in_gc && !self.service[chip].serves
    }

    /// Accepts an operation. If the chip is idle and need not clean, starts the operation immediately.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn take_in(&mut self, chip: usize, op: &mut PageOp, now: Time, events: &mut EventQueue) {
        let may_start = self.params.parallel_units == 1 && !self.may_clean(chip);
        let (c, s) = (&mut self.chips[chip], &mut self.service[chip]);
        c.count_arrival(op, now);
        let is_idle = !c.in_gc && !s.serves;
        if is_idle && may_start && c.queue.is_empty() {
            s.next.done.op = *op;
            return self.serve_one(chip, now, events);
        }
        c.queue.push_back(*op);
        if is_idle {
            self.start_next(chip, now, events);
        }
    }

    #[inline(always)]
    pub fn activate(&mut self, chip: usize, now: Time, events: &mut EventQueue) {
        if self.is_idle(chip) && self.has_work(chip) {
            self.start_next(chip, now, events);
        }
    }

    /// Whether an operation waits for the chip, or the chip may clean even without one.
    #[inline(always)]
    fn has_work(&self, chip: usize) -> bool {
        let waits = !self.chips[chip].queue.is_empty();
        waits || self.params.cleaning_in_background || self.orders.any(chip)
    }

    /// Whether a pool of the chip is at its low watermark or has an order to collect.
    #[inline(always)]
    fn may_clean(&self, chip: usize) -> bool {
        self.orders.any(chip) || self.ftl.is_needy(chip as u32)
    }

    /// Lets an idle chip clean if it must. Otherwise starts a waiting operation.
    #[inline(never)]
    fn start_next(&mut self, chip: usize, now: Time, events: &mut EventQueue) {
        // The reference checks the watermark before it starts any operation, even a read, and cleans first if necessary
        // (Q8). With background cleaning, it also checks when no operation waits (Q11).
        if self.may_clean(chip) && self.clean_now(chip, now, events) {
            return;
        }
        if !self.chips[chip].queue.is_empty() {
            self.serve(chip, now, events);
        }
    }

    /// Cleans a chip if this frees pages. Returns true if the cleaning takes time.
    #[inline(never)]
    fn clean_now(&mut self, chip: usize, now: Time, events: &mut EventQueue) -> bool {
        if self.ideal {
            while self.clean(chip, now).is_some() {}
            return false;
        }
        let cleans = self.clean(chip, now);
        if let Some((duration, first)) = cleans {
            self.chips[chip].enter_gc(now);
            self.chips_in_gc.set(ChipId(chip as u16), true);
            self.service[chip].batch_since = now;
            self.service[chip].clean_until = now + duration;
            self.stats.gc_actions += u64::from(first);
            events.set(self.first_resource + chip, now + duration);
            if self.log.is_some() {
                self.log_clean(chip, now, duration);
            }
        }
        cleans.is_some()
    }

    pub fn write_untimed(&mut self, chip: usize, lpn: Lpn, asked: Stream) -> bool {
        while self.clean(chip, Time::ZERO).is_some() {}
        let stream = self.ftl.host_stream(lpn, asked);
        let plane = self.serving(chip).plane_for_one(lpn, stream);
        let pool = self.serving(chip).pool(plane);
        let Ok(stream) = self.ftl.make_room(pool, stream) else {
            return false;
        };
        if self.ftl.append(pool, stream, lpn) && self.summary_transfer.is_some() {
            self.stats.add(Cause::Summary, 1);
        }
        self.stats.add(Cause::HostWrite, 1);
        true
    }

    /// Returns the number of writes in service.
    #[inline]
    pub fn writes_in_service(&self, chip: usize) -> u32 {
        let s = &self.service[chip];
        let is_write = |running: &Running| !running.done.op.is_read();
        let rest = s.rest.iter().filter(|running| is_write(running)).count();
        u32::from(s.serves && is_write(&s.next)) + rest as u32
    }

    /// Returns the work in service on a chip. A running collection counts with no further pages to move, because all
    /// its changes of the map were made when it started.
    pub fn in_hand(&self, chip: usize, now: Time) -> InHand {
        let s = &self.service[chip];
        if self.chips[chip].in_gc {
            return InHand {
                gc_rest: Some(s.clean_until - now),
                ..InHand::default()
            };
        }
        let writes = self.writes_in_service(chip);
        InHand {
            reads: s.in_service().count() as u32 - writes,
            writes,
            rest: s
                .in_service()
                .next()
                .map_or(Time::ZERO, |r| r.done_at - now),
            ..InHand::default()
        }
    }

    // ---- state ----

    /// Appends the cursors of each chip to `out`. The first is the plane at which the search for a plane to write to
    /// starts. The others are, for each parallel unit, the plane at which the search for a plane to clean starts.
    pub fn cursors(&self, out: &mut Vec<u32>) {
        for s in self.service.iter() {
            out.push(s.next_plane);
            out.extend(s.clean_cursor);
        }
    }

    /// Sets the cursors that [`Msr::cursors`] returned. Returns false if they do not fit this device.
    pub fn set_cursors(&mut self, cursors: &[u32]) -> bool {
        if cursors.len() != self.service.len() * 5 || cursors.iter().any(|&c| c >= self.planes) {
            return false;
        }
        for (s, of_chip) in self.service.iter_mut().zip(cursors.chunks_exact(5)) {
            s.next_plane = of_chip[0];
            s.clean_cursor.copy_from_slice(&of_chip[1..]);
        }
        true
    }

    // ---- the reference's block numbers ----

    /// Converts a block number of the page map to the number that the reference gives the block within its chip.
    fn block_number(&self, chip: usize, block: u32) -> u32 {
        let shape = &self.ftl.shape;
        let in_chip = block - chip as u32 * shape.planes_per_chip * shape.blocks_per_plane;
        let (plane, bit) = (
            in_chip / shape.blocks_per_plane,
            in_chip % shape.blocks_per_plane,
        );
        match self.params.plane_mapping {
            PlaneMapping::Concatenated => in_chip,
            PlaneMapping::Striped => bit * shape.planes_per_chip + plane,
        }
    }

    /// Returns the `n`-th block, counted from 0, that the reference fills in a chip before a run. The result is a block
    /// number of the page map.
    pub fn fill_order(&self, chip: u32, n: u32) -> u32 {
        let shape = &self.ftl.shape;
        let (plane, bit) = match self.params.plane_mapping {
            PlaneMapping::Concatenated => (n / shape.usable_per_plane, n % shape.usable_per_plane),
            PlaneMapping::Striped => (n % shape.planes_per_chip, n / shape.planes_per_chip),
        };
        (chip * shape.planes_per_chip + plane) * shape.blocks_per_plane + bit
    }
}
