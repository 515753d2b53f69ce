//! Tests of writing by units. The tables must equal those of a device without time, in whatever order the chips work.
//! Every page must be programmed once, at its place in the map. Collections must end.

use std::collections::HashMap;

use crate::events::EventQueue;
use crate::nand::{Asked, Cause, Done, FlashEvent, Nand, Owner, PageOp};
use crate::placement::Placed;
use crate::request::PlacementId;
use crate::rng::Rng;
use crate::spec::{builtin, DeviceSpec};
use crate::units::{Lpn, Stream, Time};

const HANDLES: u64 = 3;

/// Flash that writes by units, without the rest of a device: no host interface and no buffer.
struct Bench {
    nand: Nand,
    events: EventQueue,
    now: Time,
    rng: Rng,
    /// Number of queued writes of each page.
    awaited: HashMap<u32, u32>,
    done: u64,
    /// The write that ended last, and the instant of its end.
    last: (Lpn, Time),
    logical: u64,
}

fn spec(overrides: &[(&str, &str)]) -> DeviceSpec {
    let mut all = vec![
        ("nand.backend", "modern"),
        ("geometry.chips", "4"),
        ("geometry.channels", "2"),
        ("geometry.planes_per_chip", "1"),
        ("geometry.blocks_per_plane", "24"),
        ("geometry.pages_per_block", "8"),
        ("geometry.reserve_percent", "58"),
        ("buffer", "none"),
        ("gc.low_percent", "5"),
        ("gc.granularity", "superblock"),
        ("nand.copy_back", "false"),
        ("ftl.summary_page", "false"),
        ("ftl.placement", "dynamic"),
        ("nand.background_gc", "false"),
        ("placement.scheme", "handle"),
        ("placement.handles", "ii,pi,ii"),
    ];
    for o in overrides {
        all.retain(|(key, _)| key != &o.0);
        all.push(*o);
    }
    DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &all).unwrap()
}

impl Bench {
    fn new(spec: &DeviceSpec, seed: u64) -> Bench {
        let nand = Nand::new(spec);
        Bench {
            events: EventQueue::new(nand.resources()),
            nand,
            now: Time::ZERO,
            rng: Rng::new(seed),
            awaited: HashMap::new(),
            done: 0,
            last: (Lpn(0), Time::ZERO),
            logical: spec.exported_pages().into(),
        }
    }

    fn device(&self) -> &Placed {
        self.nand.units().expect("it writes by units")
    }

    fn op(&self, lpn: Lpn, cause: Cause) -> PageOp {
        PageOp {
            lpn,
            owner: Owner::cached_page(0),
            cause,
            request: FlashEvent::NO_REQUEST,
            stream: Stream::Cold,
            fua: false,
            again: 0,
            enqueued: self.now,
            gc_before: Time::ZERO,
        }
    }

    fn write(&mut self, lpn: Lpn, id: Option<u16>) {
        let causes = [Cause::Destage, Cause::WriteBack, Cause::HostWrite];
        let cause = causes[self.rng.below(3) as usize];
        self.write_as(cause, lpn, id);
    }

    fn write_as(&mut self, cause: Cause, lpn: Lpn, id: Option<u16>) {
        let op = self.op(lpn, cause);
        let placement = id.and_then(PlacementId::new).unwrap_or_default();
        *self.awaited.entry(lpn.0).or_default() += 1;
        let asked = Asked {
            placement,
            pages: 1,
        };
        if let Nand::Units(_) = &self.nand {
            let (now, events) = (self.now, &mut self.events);
            self.nand.units_mut().unwrap().accept(id, 1);
            self.nand.write_by_unit(op, asked, now, events);
        }
    }

    fn read(&mut self, lpn: Lpn) {
        let Some(die) = self.nand.chip_of_copy(lpn) else {
            return;
        };
        let op = self.op(lpn, Cause::HostRead);
        self.nand
            .enqueue(die as usize, op, self.now, &mut self.events);
    }

    /// Executes the next event. Returns false if no event is pending.
    fn step(&mut self) -> bool {
        self.now = match self.events.next_time() {
            Time::NEVER => return false,
            at => at,
        };
        let resource = self.events.pop().unwrap();
        let mut done: Option<Done> = None;
        let (now, events) = (self.now, &mut self.events);
        let chip = self.nand.on_event(resource, now, events, &mut done);
        if let Some(done) = done {
            assert!(done.written && done.queue_gc <= now - done.op.enqueued);
            if !done.op.is_read() {
                let awaited = self.awaited.get_mut(&done.op.lpn.0).unwrap();
                *awaited -= 1;
                self.done += 1;
                self.last = (done.op.lpn, now);
            }
        }
        if let Some(chip) = chip {
            self.nand.activate(chip, self.now, &mut self.events);
        }
        true
    }

    fn settle(&mut self) {
        while self.step() {}
        assert!(self.awaited.values().all(|&n| n == 0), "a write was lost");
        if let Nand::Units(n) = &self.nand {
            assert!(n.is_at_rest(), "pages wait while nothing is pending");
        }
        self.device().check().unwrap();
    }

    /// Checks that the number of free pages follows from the erases and programs.
    fn check_pages(&self) {
        let Nand::Units(nand) = &self.nand else {
            return;
        };
        let (stats, setup) = (self.nand.stats(), self.device().setup());
        let block = u64::from(setup.unit_pages / nand.blocks_of_unit());
        let all = u64::from(setup.groups * setup.units) * u64::from(setup.unit_pages);
        let programmed = stats.host_programs() + stats.count(Cause::GcMove);
        let erased = stats.count(Cause::Erase) * block;
        let free = all + erased - programmed - stats.pages_skipped;
        assert_eq!(self.nand.free_pages(), free);
    }
}

/// Devices that differ in all settings on which the placement of rows depends.
const SHAPES: [&[(&str, &str)]; 8] = [
    &[],
    &[("gc.preemptible", "true")],
    &[
        ("geometry.planes_per_chip", "2"),
        ("geometry.blocks_per_plane", "12"),
        ("nand.multi_plane", "2"),
        ("nand.program_wait_us", "50"),
    ],
    &[
        ("placement.groups", "2"),
        ("geometry.blocks_per_plane", "40"),
        ("nand.read_priority", "true"),
        ("nand.suspend", "true"),
    ],
    &[("nand.cached_commands", "true"), ("gc.preemptible", "true")],
    &[("placement.survivors", "same"), ("gc.preemptible", "true")],
    &[
        ("placement.scheme", "sepbit"),
        ("geometry.blocks_per_plane", "48"),
        ("gc.low_percent", "15"),
        ("gc.preemptible", "true"),
        ("nand.background_gc", "true"),
        ("gc.idle_percent", "20"),
    ],
    &[
        ("placement.unit_superblocks", "2"),
        ("geometry.blocks_per_plane", "48"),
        ("gc.scope", "handle"),
    ],
];

#[test]
fn every_write_is_programmed_once_and_nothing_waits_for_ever() {
    for seed in crate::seeds(2) {
        for (shape, overrides) in SHAPES.iter().enumerate() {
            let spec = spec(overrides);
            let mut bench = Bench::new(&spec, seed);
            let mut writes = 0;
            for round in 0..3_000 {
                let depth = [1, 4, 40][round % 3];
                for _ in 0..bench.rng.below(depth) + 1 {
                    let lpn = Lpn(bench.rng.below(bench.logical) as u32);
                    match bench.rng.below(8) {
                        0 => bench.read(lpn),
                        1 if round % 50 == 0 => bench.nand.trim_untimed(lpn),
                        1 if round % 50 == 1 => {
                            let id = bench.rng.below(HANDLES) as u16;
                            bench.nand.units_mut().unwrap().update(&[id]).unwrap();
                        }
                        n => {
                            let id = (n < 7).then(|| bench.rng.below(HANDLES) as u16);
                            bench.write(lpn, id);
                            writes += 1;
                        }
                    }
                }
                for _ in 0..bench.rng.below(30) {
                    bench.step();
                    bench.check_pages();
                }
                if round % 100 == 99 {
                    bench.settle();
                }
            }
            bench.settle();
            let stats = bench.nand.stats();
            assert_eq!(
                (stats.host_programs(), bench.done),
                (writes, writes),
                "{shape}"
            );
            assert!(
                stats.count(Cause::Erase) > 100,
                "shape {shape} hardly collects"
            );
            let report = bench.device().report();
            assert_eq!(report.moves, stats.count(Cause::GcMove));
            assert_eq!(report.host_pages, writes);
        }
    }
}

/// The tables must change in the same order as those of a device without time. This requires three conditions: no write
/// passes a collection, collections begin only at the watermark, and each group has one die. Several dies would move
/// their parts of a unit at the same time, so the order of the moved pages would differ.
#[test]
fn tables_are_those_of_the_device_without_time() {
    let one_die = [
        ("geometry.chips", "1"),
        ("geometry.channels", "1"),
        ("geometry.pages_per_block", "32"),
    ];
    let groups = [
        ("placement.groups", "4"),
        ("geometry.pages_per_block", "32"),
    ];
    for seed in crate::seeds(3) {
        for (shape, more) in [
            (SHAPES[0], &one_die[..]),
            (SHAPES[2], &one_die),
            (SHAPES[7], &one_die),
            (SHAPES[0], &groups),
        ] {
            let overrides = [shape, more].concat();
            let spec = spec(&overrides);
            let setup = spec.placement_setup().unwrap().unwrap();
            let mut twin = Placed::new(&setup).unwrap();
            let mut bench = Bench::new(&spec, seed);
            for _ in 0..4_000 {
                let lpn = Lpn(bench.rng.below(bench.logical) as u32);
                // With one group, ids may be missing or invalid; an invalid id counts as none. With several groups, a
                // page without an id goes to the group with the most room, which depends on the waiting writes. The
                // order of two writes of a page to different groups depends on them too. There, all ids are therefore
                // valid, and each page always has the same group.
                let id = match spec.placement.as_ref().unwrap().groups {
                    1 => (bench.rng.below(5) > 0).then(|| bench.rng.below(HANDLES + 1) as u16),
                    _ => Some((u64::from(lpn.0 % 4) << 14 | bench.rng.below(HANDLES)) as u16),
                };
                twin.write(lpn, 1, id, &[]).unwrap();
                bench.write(lpn, id);
                for _ in 0..bench.rng.below(12) {
                    bench.step();
                }
                // A unit cannot be collected before its programs have ended. So that victims remain, the number of
                // writes in flight is limited.
                while bench.awaited.values().sum::<u32>() > 20 && bench.step() {}
            }
            bench.settle();
            let reports = [bench.device().report(), twin.report()];
            // The age of a page counts the host writes to all groups. Groups do not wait for each other, so with
            // several groups ages can differ.
            let reports = reports.map(|mut report| {
                if spec.placement.as_ref().unwrap().groups > 1 {
                    report
                        .owners
                        .iter_mut()
                        .for_each(|o| o.counts.lifespans.fill(0));
                }
                report
            });
            assert!(reports[0] == reports[1], "{overrides:?}: {reports:?}");
            for lpn in (0..bench.logical).map(|lpn| Lpn(lpn as u32)) {
                assert_eq!(bench.device().lookup(lpn), twin.lookup(lpn));
            }
        }
    }
}

/// A device with a saved and reloaded state must continue exactly like the original device.
#[test]
fn saved_state_continues_alike() {
    for seed in crate::seeds(2) {
        for overrides in SHAPES {
            let spec = spec(overrides);
            let mut bench = Bench::new(&spec, seed);
            let write = |bench: &mut Bench| {
                for _ in 0..2_000 {
                    let lpn = Lpn(bench.rng.below(bench.logical) as u32);
                    let id = Some(bench.rng.below(HANDLES) as u16);
                    bench.write(lpn, id);
                    bench.step();
                }
                bench.settle();
            };
            write(&mut bench);
            let mut saved = Vec::new();
            bench.nand.save_state(&mut saved).unwrap();
            let mut again = Bench::new(&spec, seed);
            again.nand.load_state(&mut &saved[..]).unwrap();
            (again.rng, again.now) = (bench.rng.clone(), bench.now);
            assert_eq!(again.device().report(), bench.device().report());
            write(&mut bench);
            write(&mut again);
            let state = |bench: &Bench| {
                let mut bytes = Vec::new();
                bench.nand.save_state(&mut bytes).unwrap();
                bytes
            };
            assert!(state(&again) == state(&bench), "{overrides:?}");
            // A damaged state must be refused, or else it must be consistent.
            for _ in 0..200 {
                let mut bytes = saved.clone();
                let at = bench.rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << bench.rng.below(8);
                let cut = match bench.rng.below(4) {
                    0 => at,
                    _ => bytes.len(),
                };
                let mut nand = Nand::new(&spec);
                if nand.load_state(&mut &bytes[..cut]).is_ok() {
                    nand.check().unwrap();
                }
            }
        }
    }
}

/// A row (the pages of one program) that waits for more pages of its class must not delay a full row of another class
/// that is behind it in the queue.
#[test]
fn a_full_row_passes_one_that_waits() {
    let wait = Time::from_ms(5);
    let spec = spec(&[
        ("geometry.chips", "1"),
        ("geometry.channels", "1"),
        ("geometry.planes_per_chip", "2"),
        ("geometry.blocks_per_plane", "12"),
        ("nand.multi_plane", "2"),
        ("nand.program_wait_us", "5000"),
    ]);
    let mut bench = Bench::new(&spec, 1);
    bench.write_as(Cause::Destage, Lpn(0), Some(0));
    for lpn in [1, 2] {
        bench.write_as(Cause::Destage, Lpn(lpn), Some(2));
    }
    while bench.done < 2 {
        assert!(bench.step());
    }
    assert_eq!(bench.last.0, Lpn(2));
    assert!(bench.last.1 < wait, "{:?}", bench.last.1);
    bench.settle();
    assert_eq!(bench.last.0, Lpn(0));
    assert!(bench.last.1 > wait);
}
