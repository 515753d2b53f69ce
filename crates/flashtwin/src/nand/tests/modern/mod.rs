//! Tests of the `modern` back end with completion times computed by hand. A read takes 25 us, a program 200 us and a
//! transfer 102.4 us, unless a test sets other times.

mod collections;
mod general;
mod superblock;
mod units;

use super::*;

/// Returns a die with data in its blocks and room for more.
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
    /// Processes all events before the instant `at`, then queues an operation.
    fn at(&mut self, at: f64, cause: Cause, lpn: u32) {
        while self.events.next_time() < us(at) {
            self.step();
        }
        self.now = us(at);
        self.enqueue_page(Lpn(lpn), cause, Stream::Cold);
    }

    /// Runs until all work is done. Checks the order and the instants, in microseconds, at which operations on logical
    /// pages end.
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
fn a_read_suspends_a_program() {
    let mut bench = die(&[("nand.suspend", "true")]);
    bench.at(0.0, Destage, 1);
    bench.at(150.0, HostRead, 2);
    // The suspension takes 20 us, and so does resuming after the read. 152.4 us of the program are left.
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
fn program_about_to_end_is_not_suspended() {
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
    // The second read arrived during the suspension. The third read arrives after the program has resumed, and may not
    // suspend it again.
    bench.at(450.0, HostRead, 4);
    bench.ends(&[(2, 297.4), (3, 424.8), (1, 597.2), (4, 597.2 + 127.4)]);
}

#[test]
fn a_program_suspended_twice_keeps_what_was_left() {
    let mut bench = die(&[("nand.suspend", "true")]);
    bench.at(0.0, Destage, 1);
    bench.at(150.0, HostRead, 2);
    bench.at(330.0, HostRead, 3);
    // The program resumed at 297.4 us and would have ended at 469.8 us. At the second suspension, 139.8 us of it are
    // left.
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
    // The page written last is on a flash page of the lowest type. The location of its old copy has no influence.
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
    // The first page finds the die idle, and is programmed alone. The next three pages fill its row. The last two pages
    // begin another row.
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
    // With two planes, a program writes both pages of a row.
    let mut bench = die(&[("nand.cached_commands", "true"), ("nand.multi_plane", "2")]);
    for lpn in 1..6 {
        bench.at(0.0, Destage, lpn);
    }
    // The second page fills the row of the first. The third and the fourth page form a row; their transfers take longer
    // than the program before them.
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
    // Here array time exceeds transfer time, so the array never waits.
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
    // The data of the second program are being transferred, so the first program is not suspended.
    bench.at(150.0, HostRead, 3);
    assert_eq!(
        bench.nand.drain_time(0, true, bench.now),
        us(152.4 + 54.8 + 200.0 + 127.4)
    );
    bench.ends(&[(1, 302.4), (3, 429.8), (2, 629.8)]);
    // If the data of the second program have been transferred already, the first program is suspended.
    let mut bench = die(&cached);
    for lpn in [1, 2] {
        bench.at(0.0, Destage, lpn);
    }
    bench.at(230.0, HostRead, 3);
    let first = 230.0 + 20.0 + 127.4 + 20.0 + 72.4;
    bench.ends(&[(3, 377.4), (1, first), (2, first + 200.0)]);
}

/// With cached commands, each of many random reads and writes must complete exactly once, with and without suspension.
#[test]
fn all_that_begins_ahead_ends_once() {
    for suspend in ["true", "false"] {
        let mut bench = collections::cached(&[
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

/// A flash page holds two logical pages of 2 KiB, so one read returns both.
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

/// If planes read independently, a flash page is still read only once, because all its pages are on one plane.
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
