//! Tests of the values that chips report. Queue lengths and loads are compared with counts of the operations. Predicted
//! times are compared with the times that the operations then take.

mod modern;

use super::{Cause, Done, Nand, PageOp};
use crate::buffer::{Filter, Setup};
use crate::events::EventQueue;
use crate::nand::Owner;
use crate::rng::Rng;
use crate::spec::{builtin, DeviceSpec, Moves};
use crate::units::Stream;
use crate::units::{Lpn, Time};

/// Flash without a front end, filled with data.
struct Bench {
    nand: Nand,
    events: EventQueue,
    now: Time,
    chips: u32,
    rng: Rng,
    /// Finished operations, with their times.
    done: Vec<(Time, Done)>,
    /// Whether all operations use the general path, and never a fast path.
    general: bool,
}

impl Bench {
    /// Creates flash that was written at random for a long time.
    fn new(overrides: &[(&str, &str)], seed: u64) -> Bench {
        let mut bench = Bench::written_once(overrides, seed);
        for _ in 0..3 * bench.nand.ftl().shape.exported_pages {
            let (chip, lpn) = bench.draw_page();
            assert!(bench.nand.write_untimed(chip, lpn, Stream::Cold));
        }
        bench
    }

    fn written_once(overrides: &[(&str, &str)], seed: u64) -> Bench {
        let mut all = vec![
            ("geometry.chips", "3"),
            ("geometry.planes_per_chip", "4"),
            ("geometry.blocks_per_plane", "20"),
            ("geometry.pages_per_block", "16"),
            ("geometry.reserve_percent", "25"),
            ("gc.low_percent", "10"),
            ("buffer.capacity", "1MiB"),
        ];
        for o in overrides {
            all.retain(|(key, _)| key != &o.0);
            all.push(*o);
        }
        let spec = DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &all).unwrap();
        let mut nand = Nand::new(&spec);
        if spec.moves() == Moves::Class {
            nand.exchange_classes(Some(Box::new(Filter::new(&Setup::of(&spec)))));
        }
        let fresh = nand.clone();
        nand.ftl_mut()
            .fill_sequential(false, |chip, n| fresh.fill_order(chip, n));
        Bench {
            events: EventQueue::new(nand.resources()),
            nand,
            now: Time::ZERO,
            chips: spec.geometry.chips,
            rng: Rng::new(seed),
            done: Vec::new(),
            general: false,
        }
    }

    /// Draws a random page. Returns its chip and the page.
    fn draw_page(&mut self) -> (usize, Lpn) {
        let exported = u64::from(self.nand.ftl().shape.exported_pages);
        let lpn = self.rng.below(exported) as u32;
        ((lpn % self.chips) as usize, Lpn(lpn))
    }

    /// Queues a random operation on a random page: a write with probability `writes_in_ten` / 10, otherwise a read.
    fn enqueue(&mut self, writes_in_ten: u64) {
        let (_, lpn) = self.draw_page();
        let causes = if self.rng.below(10) < writes_in_ten {
            [Cause::Destage, Cause::WriteBack, Cause::Padding]
        } else {
            [Cause::HostRead, Cause::Fill, Cause::PaddingRead]
        };
        let cause = causes[self.rng.below(3) as usize];
        let stream = [Stream::Cold, Stream::Hot][self.rng.below(2) as usize];
        self.enqueue_page(lpn, cause, stream);
    }

    fn enqueue_page(&mut self, lpn: Lpn, cause: Cause, stream: Stream) {
        let chip = (lpn.0 % self.chips) as usize;
        if stream == Stream::Hot {
            self.nand.note_write(lpn, self.now);
        }
        let op = PageOp {
            lpn,
            owner: Owner::cached_page(0),
            cause,
            request: crate::nand::FlashEvent::NO_REQUEST,
            stream,
            fua: false,
            again: 0,
            enqueued: self.now,
            gc_before: Time::ZERO,
        };
        match self.general {
            true => self.queue(chip, op),
            false => self.nand.enqueue(chip, op, self.now, &mut self.events),
        }
    }

    /// Executes the next event. Returns false if no event is pending, because all chips are idle.
    fn step(&mut self) -> bool {
        self.now = match self.events.next_time() {
            Time::NEVER => return false,
            at => at,
        };
        let resource = self.events.pop().unwrap();
        self.on_event(resource);
        true
    }

    /// Processes the event of a resource; returns false if the chip only continued a collection.
    fn on_event(&mut self, resource: usize) -> bool {
        let (mut done, now, events) = (None, self.now, &mut self.events);
        let chip = match &mut self.nand {
            Nand::Modern(nand) if self.general => {
                Some(nand.on_event(resource, now, events, &mut done))
            }
            nand => nand.on_event(resource, now, events, &mut done),
        };
        assert!(done.is_none_or(|done| done.written));
        self.done.extend(done.map(|done| (self.now, done)));
        if let Some(chip) = chip {
            self.nand.activate(chip, self.now, &mut self.events);
        }
        chip.is_some()
    }

    /// Computes the chip queue complete time (Eqs 1 to 4 of ECR) by counting the operations in the queues, not from the
    /// counters of the chip.
    fn queue_complete_time(&self, chip: usize) -> Time {
        let (nand, ftl) = (&self.nand, self.nand.ftl());
        let shape = ftl.shape;
        let [reads, writes] = nand.count_inside(chip, self.now).map(u64::from);
        let pools = chip as u32 * shape.pools_per_chip..(chip as u32 + 1) * shape.pools_per_chip;
        let data = u64::from(shape.data_pages);
        let left = |pool: u32| data - u64::from(ftl.pool(pool).next_page);
        let free_pages =
            |pool: u32| u64::from(ftl.pool(pool).free) * data + u64::from(ftl.open_pages(pool));
        let free: u64 = pools.clone().map(free_pages).sum();
        let low = u64::from(ftl.low() * shape.pools_per_chip) * data;
        // A write in service has already taken its page, so it needs no free page (D-162).
        let unplaced = writes - u64::from(nand.in_hand(chip, self.now).writes);
        let collects = nand.chips()[chip].in_gc || free.saturating_sub(unplaced) <= low;
        let tallies = pools.clone().flat_map(|pool| ftl.tallies(pool).iter());
        let candidates = tallies.filter(|&&t| t < crate::ftl::PageMap::CANDIDATE_END);
        let victim = *candidates.min().unwrap() as u64;
        let moved = if collects { victim } else { 0 };
        let l = nand.times();
        let mut time = l.read * reads + l.program * writes;
        if collects {
            time += l.erase + (l.read + l.program) * moved;
        }
        let most = pools.map(|pool| match left(pool) {
            0 => u64::from(shape.pages_per_block),
            left => left + u64::from(shape.pages_per_block) - data,
        });
        let room = most.max().unwrap() - 1;
        if unplaced + moved >= room {
            let per_block = u64::from(shape.pages_per_block) - 1;
            time += l.summary * (1 + (unplaced + moved - room) / per_block);
        }
        time
    }
}

const BACK_ENDS: [&[(&str, &str)]; 10] = [
    &[],
    &[("buffer.policy", "cda-gc")],
    &[
        ("buffer.policy", "cda-gc"),
        ("nand.parallel_units", "4"),
        ("gc.moves", "victim"),
    ],
    &[
        ("buffer.policy", "cda-gc"),
        ("buffer.filter_reset_ms", "50"),
        ("nand.backend", "modern"),
        ("geometry.channels", "1"),
        ("gc.moves", "class"),
    ],
    &[("nand.parallel_units", "4")],
    &[("nand.copy_back", "false"), ("nand.parallel_units", "1")],
    &[
        ("nand.backend", "modern"),
        ("geometry.channels", "1"),
        ("nand.read_priority", "true"),
    ],
    &[
        ("nand.backend", "modern"),
        ("geometry.channels", "1"),
        ("nand.read_priority", "true"),
        ("gc.watermark", "pages"),
    ],
    &[
        ("nand.backend", "modern"),
        ("geometry.channels", "3"),
        ("nand.copy_back", "false"),
        ("nand.background_gc", "true"),
        ("ftl.summary_page", "false"),
    ],
    &[
        ("nand.backend", "modern"),
        ("geometry.channels", "3"),
        ("nand.copy_back", "false"),
        ("nand.suspend", "true"),
        ("nand.suspend_limit", "2"),
        ("nand.cell", "tlc"),
        ("timing.read_us", "[15, 25, 35]"),
        ("timing.program_us", "[100, 200, 300]"),
        ("nand.multi_plane", "4"),
        ("nand.program_wait_us", "300"),
        ("nand.independent_reads", "true"),
        ("nand.read_retry_percent", "5"),
    ],
];

#[test]
fn drain_time_and_load_are_those_of_a_scan() {
    for (i, overrides) in BACK_ENDS.iter().enumerate() {
        let mut bench = Bench::new(overrides, i as u64);
        let (mut collecting, mut busy) = (0, 0);
        for round in 0..6_000 {
            for _ in 0..bench.rng.below(3) {
                bench.enqueue(7);
            }
            for _ in 0..bench.rng.below(4) {
                bench.step();
            }
            if round % 97 == 0 {
                while bench.step() {}
            }
            for chip in 0..bench.chips as usize {
                let printed = bench.nand.drain_time(chip, false, bench.now);
                assert_eq!(printed, bench.queue_complete_time(chip));
                let [reads, writes] = bench.nand.count_inside(chip, bench.now).map(u64::from);
                let load = Time::from_us(25) * reads + Time::from_us(200) * writes;
                assert_eq!(bench.nand.load(chip), load);
                let in_gc = bench.nand.chips()[chip].in_gc;
                assert_eq!(
                    bench.nand.is_idle(chip),
                    reads + writes == 0 && !in_gc,
                    "nothing to do"
                );
                collecting += u32::from(in_gc);
                busy += u32::from(writes > 1);
            }
        }
        bench.nand.ftl().check().unwrap();
        assert!(collecting > 200 && busy > 500, "{collecting} {busy}");
    }
}

/// Writes of two streams must always find room, even if the reserve (the blocks that the host does not see) is hardly
/// larger than the watermark plus two open blocks.
#[test]
fn two_streams_find_room_on_a_tight_device() {
    for (i, overrides) in BACK_ENDS.iter().enumerate() {
        let mut overrides = overrides.to_vec();
        overrides.push(("geometry.blocks_per_plane", "40"));
        overrides.push(("geometry.planes_per_chip", "4"));
        overrides.push(("buffer.policy", "cda-gc-dispatcher"));
        overrides.push(("geometry.reserve_percent", "10"));
        // If planes are pools, a pool has 4 reserved blocks, and collects at 1 free block. If chips are pools, a pool
        // has 16 reserved blocks, and collects at 11 free blocks.
        let modern = overrides.contains(&("nand.backend", "modern"));
        let pools_are_chips = modern || overrides.contains(&("nand.copy_back", "false"));
        overrides.push((
            "gc.low_percent",
            if pools_are_chips { "7.4" } else { "2.5" },
        ));
        let mut bench = Bench::new(&overrides, i as u64);
        assert_eq!(bench.nand.ftl().shape.streams, 2);
        for _ in 0..10_000 {
            for _ in 0..bench.rng.below(5) {
                bench.enqueue(9);
            }
            for _ in 0..bench.rng.below(6) {
                bench.step();
            }
        }
        while bench.step() {}
        bench.nand.ftl().check().unwrap();
        assert_eq!(bench.nand.stats().writes_failed, 0);
        let moved = bench.nand.stats().count(Cause::GcMove);
        assert!(moved > 30_000, "{moved} moved");
    }
}

/// With two streams, a write goes to the plane with the most room for its stream. The location of the old copy has no
/// influence. The test executes writes both singly and in batches.
#[test]
fn two_streams_go_to_the_planes_with_most_room() {
    for units in ["1", "4"] {
        let overrides = [
            ("buffer.policy", "cda-gc"),
            ("nand.parallel_units", units),
            ("ftl.summary_page", "false"),
        ];
        let mut bench = Bench::new(&overrides, 7);
        let mut held = 0;
        for _ in 0..3_000 {
            let erased = bench.nand.stats().count(Cause::Erase);
            let stream = [Stream::Cold, Stream::Hot][bench.rng.below(2) as usize];
            let rooms = |bench: &Bench| -> Vec<i32> {
                let ftl = bench.nand.ftl();
                let pools = 0..ftl.shape.pools_per_chip;
                pools.map(|pool| ftl.room_for(pool, stream)).collect()
            };
            let before = rooms(&bench);
            // The first operation starts immediately. The others wait, and then form a batch over the parallel units.
            for _ in 0..9 {
                let lpn = Lpn(bench.rng.below(40) as u32 * bench.chips);
                bench.enqueue_page(lpn, Cause::Destage, stream);
            }
            while bench.step() {}
            if bench.nand.stats().count(Cause::Erase) > erased {
                continue;
            }
            held += 1;
            let after = rooms(&bench);
            let most = *after.iter().max().unwrap();
            for (before, after) in before.iter().zip(&after) {
                assert!(after == before || *after >= most - 1, "{after:?}");
            }
        }
        assert!(held > 500, "{held}");
    }
}

/// Two dies share a channel, so one of two transfers must wait. The remaining time of each transfer is counted from the
/// instant at which it begins.
#[test]
fn the_rest_of_a_transfer_that_waited_is_known() {
    let overrides = [
        ("geometry.chips", "2"),
        ("nand.backend", "modern"),
        ("geometry.channels", "1"),
        ("nand.background_gc", "false"),
    ];
    let mut bench = Bench::new(&overrides, 1);
    let base: Vec<Time> = (0..2)
        .map(|chip| bench.nand.drain_time(chip, true, bench.now))
        .collect();
    bench.enqueue_page(Lpn(0), Cause::HostRead, Stream::Cold);
    bench.enqueue_page(Lpn(1), Cause::HostRead, Stream::Cold);
    let transfer = bench.nand.times().transfer;
    let read = bench.nand.times().read;
    let rests = |bench: &Bench, after: Time| {
        [0, 1].map(|chip| bench.nand.drain_time(chip, true, bench.now + after) - base[chip])
    };
    assert_eq!(rests(&bench, Time::ZERO), [read + transfer; 2]);
    bench.step();
    bench.step();
    assert_eq!(bench.now, read);
    assert_eq!(rests(&bench, Time::ZERO), [transfer; 2]);
    let part = Time::from_us(30);
    assert_eq!(rests(&bench, part), [transfer - part, transfer]);
    bench.step();
    assert_eq!(bench.now, read + transfer);
    assert_eq!(rests(&bench, Time::ZERO), [Time::ZERO, transfer]);
    assert_eq!(rests(&bench, part), [Time::ZERO, transfer - part]);
}

/// A chip with one plane and its own bus must take exactly the time that `drain_time` predicts with `exact`. Cases in
/// which the chip starts a collection in this time are skipped.
#[test]
fn the_exact_drain_time_is_the_time_it_takes() {
    let one = [
        ("geometry.chips", "1"),
        ("geometry.planes_per_chip", "1"),
        ("geometry.blocks_per_plane", "80"),
        ("geometry.channels", "1"),
    ];
    let msr: &[_] = &[("nand.backend", "msr")];
    let modern: &[_] = &[("nand.backend", "modern"), ("nand.background_gc", "false")];
    let suspends = [modern, &[("nand.suspend", "true")]].concat();
    for (i, back_end) in [msr, modern, &suspends].into_iter().enumerate() {
        for copy_back in ["true", "false"] {
            let mut overrides = one.to_vec();
            overrides.extend(back_end);
            overrides.push(("nand.copy_back", copy_back));
            if i == 0 {
                overrides.retain(|(key, _)| *key != "geometry.channels");
            } else {
                overrides.push(("nand.read_priority", "true"));
            }
            let mut bench = Bench::new(&overrides, 30);
            let (mut met, mut met_in_gc) = (0, 0);
            for _ in 0..3_000 {
                for _ in 0..1 + bench.rng.below(5) {
                    bench.enqueue(5);
                }
                for _ in 0..bench.rng.below(4) {
                    bench.step();
                }
                // From here on, no further operations arrive.
                let actions = bench.nand.stats().gc_actions;
                let (at, in_gc) = (bench.now, bench.nand.chips()[0].in_gc);
                let predicted = bench.nand.drain_time(0, true, at);
                let mut later_predictions = Vec::new();
                while bench.step() {
                    let predicted = bench.nand.drain_time(0, true, bench.now);
                    later_predictions.push((bench.now, predicted));
                }
                let ftl = bench.nand.ftl();
                let owes_gc = ftl.free_pages_of_chip(0) <= ftl.low() * ftl.shape.data_pages;
                let at_rest = bench.nand.drain_time(0, true, bench.now);
                assert_eq!(at_rest > Time::ZERO, owes_gc);
                if bench.nand.stats().gc_actions > actions {
                    continue;
                }
                let took = bench.now - at;
                let erase = bench.nand.times().erase;
                if in_gc {
                    met_in_gc += 1;
                    assert_eq!(predicted, took);
                } else if predicted < erase + took {
                    // A prediction may include a collection that the chip does not execute. Such a prediction exceeds
                    // the time taken by at least the time of an erase. It is not compared.
                    met += 1;
                    assert_eq!(predicted, took);
                    for (at, predicted) in later_predictions {
                        assert!(predicted >= bench.now - at + erase || predicted == bench.now - at);
                    }
                }
            }
            assert!(
                met > 500 && met_in_gc > 50,
                "{overrides:?}: {met} {met_in_gc}"
            );
        }
    }
}
