//! The instants at which things end on the `modern` back end, computed by hand: 25 us to read, 200 us to program,
//! 102.4 us a transfer unless a test has others.

mod general;
mod superblock;

use super::*;

/// One die with data in it and room.
fn die(overrides: &[(&str, &str)]) -> Bench {
    let mut all = vec![
        ("geometry.chips", "1"),
        ("geometry.planes_per_chip", "1"),
        ("geometry.blocks_per_plane", "80"),
        ("geometry.channels", "1"),
        ("nand.backend", "modern"),
        ("nand.copy_back", "false"),
        ("nand.background_gc", "false"),
        ("ftl.summary_page", "false"),
    ];
    all.extend(overrides);
    Bench::written_once(&all, 1)
}

fn us(us: f64) -> Time {
    Time((us * 1e6).round() as u64)
}

impl Bench {
    /// Queues an operation at `at`, after all that happens before.
    fn at(&mut self, at: f64, cause: Cause, lpn: u32) {
        while self.events.next_time() < us(at) {
            self.step();
        }
        self.now = us(at);
        self.enqueue_page(Lpn(lpn), cause, Stream::Cold);
    }

    /// Lets all end: these logical pages, at these microseconds.
    fn ends(&mut self, ends: &[(u32, f64)]) {
        while self.step() {}
        let ended: Vec<(u32, Time)> = self
            .done
            .drain(..)
            .map(|(at, done)| {
                let own = done.transfer + done.array + done.queue_gc;
                assert!(at >= done.op.enqueued + own, "more parts than time");
                (done.op.lpn.0, at)
            })
            .collect();
        let ends: Vec<(u32, Time)> = ends.iter().map(|&(lpn, at)| (lpn, us(at))).collect();
        assert_eq!(ended, ends);
    }
}

use Cause::{Destage, Flush, HostRead};

#[test]
fn short_ways_of_a_collection_are_as_the_general_one() {
    let common = [
        ("nand.backend", "modern"),
        ("geometry.channels", "1"),
        ("geometry.pages_per_block", "96"),
        ("nand.copy_back", "true"),
    ];
    let variants: [&[(&str, &str)]; 6] = [
        &[],
        &[("nand.suspend", "true")],
        &[("gc.preemptible", "true")],
        &[("ftl.summary_page", "false")],
        &[("ftl.separation", "gc")],
        &[("nand.read_retry_percent", "20")],
    ];
    for variant in variants {
        let all: Vec<_> = common.iter().chain(variant).copied().collect();
        let mut short = Bench::new(&all, 3);
        let mut general = Bench::new(&all, 3);
        general.general = true;
        match &mut general.nand {
            Nand::Modern(nand) => nand.move_in_general(),
            _ => panic!("another back end"),
        }
        let mut gone_on = 0;
        for _ in 0..20_000 {
            if short.rng.below(3) == 0 {
                general.rng.below(3);
                short.enqueue(7);
                general.enqueue(7);
            } else {
                general.rng.below(3);
                let next = short.events.next_time();
                let Some(resource) = short.events.pop() else {
                    continue;
                };
                short.now = next;
                if short.nand.goes_on(resource, next, &mut short.events) {
                    gone_on += 1;
                } else {
                    short.on_event(resource);
                }
                assert!(general.step());
            }
            assert_eq!(short.now, general.now);
            assert_eq!(short.events.next_time(), general.events.next_time());
            assert_eq!(short.done.len(), general.done.len());
        }
        assert_eq!(short.nand.stats(), general.nand.stats());
        let maps = [&short, &general].map(|bench| bench.nand.ftl());
        for lpn in (0..maps[0].shape.exported_pages).map(Lpn) {
            assert_eq!(maps[0].lookup(lpn), maps[1].lookup(lpn));
        }
        for pool in 0..3 {
            assert_eq!(maps[0].tallies(pool), maps[1].tallies(pool));
            assert_eq!(maps[0].least_tally(pool), maps[1].least_tally(pool));
        }
        let busy = |bench: &Bench| {
            bench
                .nand
                .chips()
                .iter()
                .map(|chip| chip.busy_total)
                .collect::<Vec<_>>()
        };
        assert_eq!(busy(&short), busy(&general));
        assert!(gone_on > 2_000, "{variant:?}: {gone_on}");
    }
}

#[test]
fn a_read_suspends_a_program() {
    let mut bench = die(&[("nand.suspend", "true")]);
    bench.at(0.0, Destage, 1);
    bench.at(150.0, HostRead, 2);
    // 20 to stop; 152.4 of the program are left, and 20 to go on.
    let rest = 20.0 + 25.0 + 102.4 + 20.0 + 152.4;
    assert_eq!(bench.nand.drain_time(0, true, bench.now), us(rest));
    bench.ends(&[(2, 297.4), (1, 150.0 + rest)]);
}

#[test]
fn a_read_that_comes_with_the_data_waits_and_so_does_one_near_the_end() {
    let mut bench = die(&[("nand.suspend", "true")]);
    bench.at(0.0, Destage, 1);
    bench.at(50.0, HostRead, 2);
    bench.ends(&[(1, 302.4), (2, 302.4 + 127.4)]);
    let mut bench = die(&[("nand.suspend", "true")]);
    bench.at(0.0, Destage, 1);
    bench.at(282.4, HostRead, 2);
    bench.ends(&[(1, 302.4), (2, 302.4 + 127.4)]);
    let mut bench = die(&[]);
    bench.at(0.0, Destage, 1);
    bench.at(150.0, HostRead, 2);
    bench.ends(&[(1, 302.4), (2, 302.4 + 127.4)]);
}

#[test]
fn what_would_end_soon_is_not_stopped() {
    let rest = [("nand.suspend", "true"), ("nand.suspend_rest_us", "100")];
    let mut bench = die(&rest);
    bench.at(0.0, Destage, 1);
    bench.at(202.4, HostRead, 2);
    bench.ends(&[(1, 302.4), (2, 302.4 + 127.4)]);
    let mut bench = die(&rest);
    bench.at(0.0, Destage, 1);
    bench.at(202.0, HostRead, 2);
    bench.ends(&[(2, 349.4), (1, 349.4 + 20.0 + 100.4)]);
}

#[test]
fn a_suspension_ends_when_enough_reads_have_passed() {
    let mut bench = die(&[("nand.suspend", "true"), ("nand.suspend_limit", "1")]);
    bench.at(0.0, Destage, 1);
    bench.at(150.0, HostRead, 2);
    bench.at(160.0, HostRead, 3);
    bench.ends(&[(2, 297.4), (1, 469.8), (3, 469.8 + 127.4)]);
    let mut bench = die(&[("nand.suspend", "true"), ("nand.suspend_limit", "2")]);
    bench.at(0.0, Destage, 1);
    bench.at(150.0, HostRead, 2);
    bench.at(160.0, HostRead, 3);
    // The second pays no stop of its own; a third, after the program has gone on, finds no more leave.
    bench.at(450.0, HostRead, 4);
    bench.ends(&[(2, 297.4), (3, 424.8), (1, 597.2), (4, 597.2 + 127.4)]);
}

#[test]
fn a_program_suspended_twice_keeps_what_was_left() {
    let mut bench = die(&[("nand.suspend", "true")]);
    bench.at(0.0, Destage, 1);
    bench.at(150.0, HostRead, 2);
    bench.at(330.0, HostRead, 3);
    // It went on at 297.4 and would have ended at 469.8: 139.8 are left.
    let second = 330.0 + 20.0 + 127.4;
    bench.ends(&[(2, 297.4), (3, second), (1, second + 20.0 + 139.8)]);
}

#[test]
fn page_types_take_turns_along_a_block() {
    let mut bench = die(&[
        ("nand.cell", "tlc"),
        ("timing.read_us", "[50, 80, 110]"),
        ("timing.program_us", "[300, 600, 900]"),
    ]);
    for (lpn, took) in [(0, 50.0), (1, 80.0), (2, 110.0), (3, 50.0), (16, 50.0)] {
        let at = bench.now.as_us();
        bench.at(at, HostRead, lpn);
        bench.ends(&[(lpn, at + took + 102.4)]);
    }
    for took in [300.0, 600.0, 900.0, 300.0] {
        let at = bench.now.as_us();
        bench.at(at, Destage, 7);
        bench.ends(&[(7, at + took + 102.4)]);
    }
    // The page written last is of the lowest type; its old place does not matter.
    let at = bench.now.as_us();
    bench.at(at, HostRead, 7);
    bench.ends(&[(7, at + 50.0 + 102.4)]);
}

#[test]
fn planes_program_at_once_what_waits() {
    let mut bench = die(&[("nand.multi_plane", "4")]);
    for lpn in 0..6 {
        bench.at(0.0, Destage, lpn);
    }
    // The first finds an idle die; three fill up its row, the others begin the next.
    let second = 302.4 + 3.0 * 102.4 + 200.0;
    let third = second + 2.0 * 102.4 + 200.0;
    let ends = [302.4, second, second, second, third, third];
    let ends: Vec<_> = (0..).zip(ends).collect();
    bench.ends(&ends);
    assert_eq!(bench.nand.stats().count(Destage), 6);
}

#[test]
fn write_backs_wait_for_a_full_row_and_no_longer_than_they_may() {
    let patient = [("nand.multi_plane", "4"), ("nand.program_wait_us", "500")];
    let mut bench = die(&patient);
    for (lpn, at) in [(0, 0.0), (1, 10.0), (2, 20.0), (3, 30.0)] {
        bench.at(at, Destage, lpn);
    }
    let full = 30.0 + 4.0 * 102.4 + 200.0;
    bench.ends(&[(0, full), (1, full), (2, full), (3, full)]);
    let mut bench = die(&patient);
    bench.at(0.0, Destage, 0);
    bench.at(10.0, Destage, 1);
    bench.ends(&[(0, 904.8), (1, 904.8)]);
    let mut bench = die(&patient);
    bench.at(0.0, Destage, 0);
    bench.at(10.0, Flush, 1);
    bench.ends(&[(0, 414.8), (1, 414.8)]);
}

#[test]
fn reads_of_a_row_go_together() {
    let mut bench = die(&[("nand.multi_plane", "4")]);
    for lpn in [0, 4, 5, 8, 6] {
        bench.at(0.0, HostRead, lpn);
    }
    bench.ends(&[(0, 127.4), (4, 254.8), (5, 357.2), (6, 459.6), (8, 587.0)]);
}

#[test]
fn independent_planes_read_different_rows_together() {
    for (independent, ends) in [
        ("true", [(15, 127.4), (0, 254.8), (5, 357.2), (9, 484.6)]),
        ("false", [(15, 127.4), (0, 254.8), (5, 382.2), (9, 509.6)]),
    ] {
        let mut bench = die(&[
            ("nand.multi_plane", "4"),
            ("nand.independent_reads", independent),
        ]);
        for lpn in [15, 0, 5, 9] {
            bench.at(0.0, HostRead, lpn);
        }
        bench.ends(&ends);
    }
}

#[test]
fn the_data_of_the_next_program_cross_while_the_array_programs() {
    let mut bench = die(&[("nand.cached_commands", "true")]);
    for lpn in 1..4 {
        bench.at(0.0, Destage, lpn);
    }
    bench.ends(&[(1, 302.4), (2, 502.4), (3, 702.4)]);
    // Of a row of two planes, both pages.
    let mut bench = die(&[("nand.cached_commands", "true"), ("nand.multi_plane", "2")]);
    for lpn in 1..6 {
        bench.at(0.0, Destage, lpn);
    }
    // The second fills up the row of the first; the data of the two after it take longer than it.
    let row = 302.4 + 204.8 + 200.0;
    bench.ends(&[(1, 302.4), (2, 502.4), (3, row), (4, row), (5, row + 200.0)]);
}

#[test]
fn the_next_read_begins_while_the_last_crosses() {
    let mut bench = die(&[("nand.cached_commands", "true")]);
    for lpn in 1..4 {
        bench.at(0.0, HostRead, lpn);
    }
    bench.ends(&[(1, 127.4), (2, 229.8), (3, 332.2)]);
    // Where the array is what takes longest, it never waits.
    let mut bench = die(&[("nand.cached_commands", "true"), ("timing.read_us", "300")]);
    for lpn in 1..4 {
        bench.at(0.0, HostRead, lpn);
    }
    bench.ends(&[(1, 402.4), (2, 702.4), (3, 1002.4)]);
}

#[test]
fn a_program_whose_data_are_there_lets_reads_pass() {
    let cached = [("nand.cached_commands", "true"), ("nand.suspend", "true")];
    let mut bench = die(&cached);
    for lpn in [1, 2] {
        bench.at(0.0, Destage, lpn);
    }
    // Beside the data of the second program the first is not stopped.
    bench.at(150.0, HostRead, 3);
    assert_eq!(
        bench.nand.drain_time(0, true, bench.now),
        us(152.4 + 54.8 + 200.0 + 127.4)
    );
    bench.ends(&[(1, 302.4), (3, 429.8), (2, 629.8)]);
    // Once they are there, it is.
    let mut bench = die(&cached);
    for lpn in [1, 2] {
        bench.at(0.0, Destage, lpn);
    }
    bench.at(230.0, HostRead, 3);
    let first = 230.0 + 20.0 + 127.4 + 20.0 + 72.4;
    bench.ends(&[(3, 377.4), (1, first), (2, first + 200.0)]);
}

/// Reads and writes at random with everything that can come between them.
#[test]
fn all_that_begins_ahead_ends_once() {
    for suspend in ["true", "false"] {
        let mut bench = cached(&[
            ("nand.cached_commands", "true"),
            ("nand.suspend", suspend),
            ("nand.program_wait_us", "300"),
            ("geometry.flash_page_bytes", "8 KiB"),
            ("nand.multi_plane", "2"),
            ("gc.idle_percent", "20"),
        ]);
        let mut asked = 0;
        for _ in 0..6_000 {
            for _ in 0..bench.rng.below(6) {
                let (_, lpn) = bench.draw_page();
                let cause = [HostRead, HostRead, Destage, Flush][bench.rng.below(4) as usize];
                bench.enqueue_page(lpn, cause, Stream::Cold);
                asked += 1;
            }
            for _ in 0..bench.rng.below(60) {
                bench.nand.drain_time(0, true, bench.now);
                bench.step();
            }
        }
        while bench.step() {}
        assert_eq!(bench.done.len(), asked);
        for (at, done) in &bench.done {
            let own = done.transfer + done.array + done.queue_gc;
            assert!(*at >= done.op.enqueued + own, "more parts than time");
        }
        assert!(bench.nand.is_idle(0));
        bench.nand.ftl().check().unwrap();
    }
}

/// Pages of 2 KiB, two to a flash page: both cost one read.
#[test]
fn a_flash_page_is_read_once_for_all_its_pages() {
    let mut bench = die(&[
        ("geometry.page_bytes", "2 KiB"),
        ("geometry.flash_page_bytes", "4 KiB"),
    ]);
    for lpn in [9, 2, 3, 4] {
        bench.at(0.0, HostRead, lpn);
    }
    bench.ends(&[(9, 76.2), (2, 152.4), (3, 203.6), (4, 279.8)]);
}

/// The same of planes that read by themselves: the pages of one flash page are on one plane.
#[test]
fn a_flash_page_of_an_independent_plane_is_read_once() {
    let mut bench = die(&[
        ("geometry.page_bytes", "2 KiB"),
        ("geometry.flash_page_bytes", "4 KiB"),
        ("nand.multi_plane", "2"),
        ("nand.independent_reads", "true"),
    ]);
    for lpn in [9, 4, 5, 6] {
        bench.at(0.0, HostRead, lpn);
    }
    bench.ends(&[(9, 76.2), (4, 152.4), (5, 203.6), (6, 254.8)]);
}

#[test]
fn a_share_of_the_reads_is_repeated_always_the_same_ones() {
    let run = || {
        let mut bench = die(&[("nand.read_retry_percent", "25")]);
        let mut arrays = 0;
        for i in 0..2_000 {
            let at = bench.now.as_us();
            bench.at(at, HostRead, i % 500);
            while bench.step() {}
            arrays += bench.done.pop().unwrap().1.array.0 / us(25.0).0;
        }
        arrays
    };
    let arrays = run();
    assert!((2_550..2_790).contains(&arrays), "{arrays} for 2667");
    assert_eq!(arrays, run());
}

/// A worn die that collects up to 15 % of its 80 blocks while nothing waits, and otherwise at 10 %.
fn worn(overrides: &[(&str, &str)]) -> Bench {
    let mut all = vec![
        ("geometry.chips", "1"),
        ("geometry.channels", "1"),
        ("nand.backend", "modern"),
        ("nand.copy_back", "false"),
        ("nand.background_gc", "true"),
        ("nand.read_priority", "false"),
        ("ftl.summary_page", "false"),
    ];
    all.extend(overrides);
    Bench::new(&all, 9)
}

#[test]
fn idle_collection_has_a_watermark_of_its_own() {
    for (idle, free) in [(None, 9), (Some("15"), 13)] {
        let key = idle.map(|percent| ("gc.idle_percent", percent));
        let mut bench = worn(key.as_slice());
        bench.at(0.0, HostRead, 1);
        while bench.step() {}
        assert_eq!(bench.nand.ftl().pool(0).free, free);
        assert!(bench.nand.chips_in_gc().is_empty());
    }
}

#[test]
fn a_write_passes_between_two_moves_while_there_is_room() {
    // A move: 25 + 2 x 102.4 + 200.
    let (one_move, write) = (us(429.8), us(302.4));
    for (preemptible, at_most) in [("false", us(1e6)), ("true", one_move + write)] {
        let mut bench = worn(&[("gc.idle_percent", "15"), ("gc.preemptible", preemptible)]);
        bench.at(0.0, HostRead, 1);
        // Until the free blocks are above the watermark of all times, and a block is half moved.
        while bench.nand.ftl().pool(0).free <= 10 {
            bench.step();
        }
        let begun = bench.nand.stats().count(Cause::GcMove);
        while bench.nand.stats().count(Cause::GcMove) < begun + 3 {
            bench.step();
        }
        bench.done.clear();
        bench.enqueue_page(Lpn(5), Destage, Stream::Cold);
        let came = bench.now;
        while bench.done.is_empty() {
            bench.step();
        }
        let took = bench.done[0].0 - came;
        assert!(took <= at_most, "{preemptible}: {took:?}");
        assert_eq!(took > one_move + write, preemptible == "false", "{took:?}");
        while bench.step() {}
        assert_eq!(bench.nand.ftl().pool(0).free, 13, "the collection goes on");
        bench.nand.ftl().check().unwrap();
    }
}

/// At the watermark writes pass in step with the moves: none waits for a whole block, no more is moved than
/// without, and the free blocks stay.
#[test]
fn at_the_watermark_writes_pass_in_step_with_the_moves() {
    let mut moves = Vec::new();
    for preemptible in ["false", "true"] {
        let mut bench = worn(&[("gc.preemptible", preemptible)]);
        let (mut longest, mut least_free) = (Time::ZERO, u32::MAX);
        for written in 0..20_000 {
            let (_, lpn) = bench.draw_page();
            bench.enqueue_page(lpn, Destage, Stream::Cold);
            while bench.done.is_empty() {
                bench.step();
            }
            for (at, done) in bench.done.drain(..) {
                // The die is filled, but not worn, when it begins.
                if written > 10_000 {
                    longest = longest.max(at - done.op.enqueued);
                    least_free = least_free.min(bench.nand.ftl().pool(0).free);
                }
            }
        }
        assert_eq!(longest < us(4_500.0), preemptible == "true", "{longest:?}");
        assert!(least_free >= 6, "{least_free}");
        bench.nand.ftl().check().unwrap();
        moves.push(bench.nand.stats().count(Cause::GcMove) as f64);
    }
    let more = moves[1] / moves[0] - 1.0;
    assert!(more.abs() < 0.1, "{moves:?}");
}

/// Host writes that are all hot find the room that the collections made, although those gain it in the cold open
/// block only: where free blocks count, one write waits for several collections in a row; where free pages do, for
/// about one.
#[test]
fn room_counted_in_pages_is_there_when_a_second_block_needs_it() {
    let mut ends = Vec::new();
    for watermark in ["blocks", "pages"] {
        let mut bench = worn(&[("buffer.policy", "cda-gc"), ("gc.watermark", watermark)]);
        let (mut erased, mut most, mut least_free) = (0, 0, u32::MAX);
        for written in 0..20_000 {
            let (_, lpn) = bench.draw_page();
            bench.enqueue_page(lpn, Destage, Stream::Hot);
            while bench.step() {}
            let erases = bench.nand.stats().count(Cause::Erase);
            // The die is filled, but not worn, when it begins.
            if written > 10_000 {
                most = most.max(erases - erased);
                least_free = least_free.min(bench.nand.ftl().pool(0).free);
            }
            erased = erases;
        }
        bench.nand.ftl().check().unwrap();
        assert!(
            least_free >= 8,
            "{least_free} blocks free at the watermark of 8"
        );
        ends.push((most, erased));
    }
    let [(blocks, erases), (pages, of_pages)] = ends[..] else {
        unreachable!("two watermarks")
    };
    assert!(
        blocks >= 4 && pages <= 2,
        "{ends:?} collections for one write"
    );
    assert!(of_pages.abs_diff(erases) < erases / 20, "{ends:?} erases");
}

/// Writes without end leave a preemptible collection the room that it needs.
#[test]
fn a_preemptible_collection_ends_before_the_room_does() {
    let mut bench = worn(&[("gc.idle_percent", "15"), ("gc.preemptible", "true")]);
    for _ in 0..3_000 {
        for _ in 0..bench.rng.below(12) {
            let (_, lpn) = bench.draw_page();
            bench.enqueue_page(lpn, Destage, Stream::Cold);
        }
        for _ in 0..bench.rng.below(60) {
            bench.step();
        }
    }
    while bench.step() {}
    bench.nand.ftl().check().unwrap();
    assert_eq!(bench.nand.stats().writes_failed, 0);
}

/// A die whose blocks hold 16 pages, or 5 in SLC mode, in which four of its 80 may be.
fn cached(overrides: &[(&str, &str)]) -> Bench {
    let mut all = vec![
        ("nand.cell", "tlc"),
        ("timing.program_us", "600"),
        ("nand.background_gc", "true"),
        ("nand.pslc_percent", "5"),
        ("nand.pslc_read_us", "10"),
        ("nand.pslc_program_us", "100"),
        ("nand.pslc_idle_us", "5000"),
    ];
    all.extend(overrides);
    die(&all)
}

fn slc_blocks(bench: &Bench) -> Vec<u32> {
    (0..80).filter(|&b| bench.nand.ftl().is_slc(b)).collect()
}

#[test]
fn writes_fill_the_cache_and_then_pass_it_by_and_an_idle_die_folds() {
    let mut bench = cached(&[]);
    let free = bench.nand.ftl().pool(0).free;
    let mut at = 0.0;
    for lpn in 0..21 {
        bench.at(at, Destage, lpn);
        at += 102.4 + if lpn < 20 { 100.0 } else { 600.0 };
        while bench.done.is_empty() {
            bench.step();
        }
        assert_eq!(bench.done.pop().unwrap().0, us(at), "page {lpn}");
    }
    assert_eq!(slc_blocks(&bench).len(), 4);
    bench.nand.ftl().check().unwrap();
    for (lpn, read) in [(3, 10.0), (20, 25.0)] {
        bench.at(at, HostRead, lpn);
        at += read + 102.4;
        while bench.done.is_empty() {
            bench.step();
        }
        assert_eq!(bench.done.pop().unwrap().0, us(at), "page {lpn}");
    }
    // Four blocks one after the other: five moves and an erase each.
    while bench.step() {}
    let fold = 5.0 * (10.0 + 2.0 * 102.4 + 600.0) + 1_500.0;
    assert_eq!(bench.now, us(at + 5_000.0 + 4.0 * fold));
    let stats = bench.nand.stats();
    assert_eq!(stats.count(Cause::Fold), 20);
    assert_eq!(stats.count(Cause::GcMove), 0);
    assert_eq!(stats.count(Cause::Erase), 4);
    assert_eq!(slc_blocks(&bench), []);
    // 21 pages in blocks of 16, the first of which was open.
    assert_eq!(bench.nand.ftl().pool(0).free, free - 1);
    bench.nand.ftl().check().unwrap();
}

#[test]
fn a_write_passes_between_two_moves_of_a_fold() {
    let mut bench = cached(&[]);
    for lpn in 0..5 {
        bench.at(0.0, Destage, lpn);
    }
    while bench.nand.stats().count(Cause::Fold) < 2 {
        bench.step();
    }
    bench.done.clear();
    let came = bench.now;
    bench.enqueue_page(Lpn(9), Destage, Stream::Cold);
    while bench.done.is_empty() {
        bench.step();
    }
    assert_eq!(bench.done[0].0 - came, us(814.8 + 202.4), "a move, then it");
    while bench.step() {}
    assert_eq!(bench.nand.stats().count(Cause::Fold), 5);
}

/// Every page programmed and every block erased explain the free pages, whatever mode blocks were in;
/// nothing is lost when the cache is folded because blocks run short.
#[test]
fn pages_are_conserved_with_a_cache() {
    let mut bench = cached(&[
        ("nand.pslc_percent", "20"),
        ("nand.pslc_idle_us", "300"),
        ("gc.idle_percent", "20"),
    ]);
    let free = |bench: &Bench| {
        let ftl = bench.nand.ftl();
        let pool = ftl.pool(0);
        let hot = ftl.next_page(0, Stream::Hot);
        i64::from(pool.free * 16 + 16 - pool.next_page + (5 - hot))
    };
    let (before, mapped) = (free(&bench), bench.nand.ftl().pages_mapped());
    let (mut in_mode, mut opened, mut most) = (vec![], 0, 0);
    for round in 0..4_000 {
        // Bursts, and rests of different lengths.
        let burst = if round % 400 < 100 { 30 } else { 4 };
        for _ in 0..bench.rng.below(burst) {
            let (_, lpn) = bench.draw_page();
            bench.enqueue_page(lpn, Destage, Stream::Cold);
        }
        for _ in 0..bench.rng.below(200) {
            bench.step();
            let now = slc_blocks(&bench);
            opened += now.iter().filter(|b| !in_mode.contains(*b)).count() as i64;
            most = most.max(now.len());
            in_mode = now;
        }
        if round % 100 == 0 {
            bench.nand.ftl().check().unwrap();
        }
    }
    bench.nand.ftl().check().unwrap();
    let stats = bench.nand.stats();
    let count = |cause| stats.count(cause) as i64;
    let programs = count(Destage) + count(Cause::GcMove) + count(Cause::Fold);
    let freed = 16 * count(Cause::Erase) - 11 * opened;
    assert_eq!(programs, freed + before - free(&bench));
    assert_eq!(bench.nand.ftl().pages_mapped(), mapped);
    assert_eq!(stats.writes_failed, 0);
    assert!(most > 4 && most <= 16, "{most} blocks in SLC mode");
    let (folds, moves) = (count(Cause::Fold), count(Cause::GcMove));
    assert!(folds > 1_000 && moves > 1_000, "{folds}, {moves}");
}

#[test]
fn a_saved_cache_is_read_back_and_a_damaged_one_refused() {
    let mut bench = cached(&[("nand.background_gc", "false")]);
    for lpn in 0..13 {
        bench.at(0.0, Destage, lpn);
    }
    while bench.step() {}
    let in_mode = slc_blocks(&bench);
    assert_eq!(in_mode.len(), 3);
    let mut state = Vec::new();
    bench.nand.ftl().save(&mut state).unwrap();
    let fresh = cached(&[("nand.background_gc", "false")]);
    let load = |state: &[u8]| {
        let mut ftl = fresh.nand.ftl().clone();
        ftl.load(&mut &state[..]).map(|()| ftl)
    };
    let again = load(&state).unwrap();
    assert_eq!(again.oldest_slc(0), bench.nand.ftl().oldest_slc(0));
    assert!((0..80).all(|b| again.is_slc(b) == in_mode.contains(&b)));
    // The bits stand at the end: a full block in the mode, and a free one.
    let words = state.len() - 16;
    for block in [0, 79] {
        let mut damaged = state.clone();
        damaged[words + block / 8] ^= 1 << (block % 8);
        assert!(load(&damaged).is_err(), "block {block}");
    }
    let without: Vec<u8> = state[..words].into();
    assert!(load(&without).is_err(), "hot frontiers of another kind");
    // A state of one stream has no cache yet.
    assert!(load(&state[..words - 8]).is_ok());
}
