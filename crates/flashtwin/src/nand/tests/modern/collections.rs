//! Tests of collections on the `modern` back end: host writes that pass them, the room that they preserve, and blocks
//! in SLC mode.

use super::*;

#[test]
fn continued_collections_equal_general_ones() {
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
        let mut continued = 0;
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
                continued += u32::from(!short.on_event(resource));
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
        assert!(continued > 2_000, "{variant:?}: {continued}");
    }
}

/// Returns a die of 80 blocks that was written at random for a long time. It collects when at most 10 % of its blocks
/// are free. `overrides` may set a higher watermark for idle times.
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
    // A move takes 25 + 2 x 102.4 + 200 us: read, two transfers, program.
    let (one_move, write) = (us(429.8), us(302.4));
    for (preemptible, at_most) in [("false", us(1e6)), ("true", one_move + write)] {
        let mut bench = worn(&[("gc.idle_percent", "15"), ("gc.preemptible", preemptible)]);
        bench.at(0.0, HostRead, 1);
        // Runs until the number of free blocks is above the watermark for busy times, and three further pages have been
        // moved.
        while bench.nand.ftl().pool(0).free <= 10 {
            bench.step();
        }
        let begun = bench.nand.stats().count(Cause::GcMove);
        while bench.nand.stats().count(Cause::GcMove) < begun + 3 {
            bench.step();
        }
        bench.done.clear();
        bench.enqueue_page(Lpn(5), Destage, Stream::Cold);
        let arrived = bench.now;
        while bench.done.is_empty() {
            bench.step();
        }
        let took = bench.done[0].0 - arrived;
        assert!(took <= at_most, "{preemptible}: {took:?}");
        assert_eq!(took > one_move + write, preemptible == "false", "{took:?}");
        while bench.step() {}
        assert_eq!(bench.nand.ftl().pool(0).free, 13, "the collection goes on");
        bench.nand.ftl().check().unwrap();
    }
}

/// At the watermark, a preemptible collection lets host writes pass in step with its moves, so no write waits for the
/// collection of a whole block. The number of moved pages is about the same as without preemption. At least 6 blocks
/// stay free.
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
                // The first 10 000 writes are not examined, because the die has not yet been written at random for long
                // enough.
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

/// All host writes are hot, and moved pages go to the cold open block. A collection therefore first adds room to the
/// cold open block only, and a hot write may need several collections. If the watermark counts free blocks, the write
/// waits for several collections in succession. If it counts free pages, the write waits for about one.
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
            // The first 10 000 writes are not examined, because the die has not yet been written at random for long
            // enough.
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

/// A preemptible collection must keep the room that it needs, even if many writes arrive.
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

/// Returns a die of 80 blocks. Up to four of them may be in SLC mode. A block has 16 pages, or 5 pages in SLC mode.
pub(super) fn cached(overrides: &[(&str, &str)]) -> Bench {
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
    // Four blocks are folded one after the other. The fold of a block takes five moves and an erase.
    while bench.step() {}
    let fold = 5.0 * (10.0 + 2.0 * 102.4 + 600.0) + 1_500.0;
    assert_eq!(bench.now, us(at + 5_000.0 + 4.0 * fold));
    let stats = bench.nand.stats();
    assert_eq!(stats.count(Cause::Fold), 20);
    assert_eq!(stats.count(Cause::GcMove), 0);
    assert_eq!(stats.count(Cause::Erase), 4);
    assert_eq!(slc_blocks(&bench), []);
    // The 20 folded pages and one host page fill one block of 16 pages, and a part of a second one. One of these two
    // blocks was open already, so one free block fewer remains.
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
    let arrived = bench.now;
    bench.enqueue_page(Lpn(9), Destage, Stream::Cold);
    while bench.done.is_empty() {
        bench.step();
    }
    assert_eq!(
        bench.done[0].0 - arrived,
        us(814.8 + 202.4),
        "a move, then it"
    );
    while bench.step() {}
    assert_eq!(bench.nand.stats().count(Cause::Fold), 5);
}

/// The number of free pages must follow from the erased and programmed pages, in SLC mode and in normal mode. No page
/// may be lost when blocks of the SLC cache are folded because free blocks are scarce.
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
        // Bursts of writes alternate with idle times of different lengths.
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
    // The bits for SLC mode are at the end of the saved state. The test flips the bit of a full block and that of a
    // free block.
    let words = state.len() - 16;
    for block in [0, 79] {
        let mut damaged = state.clone();
        damaged[words + block / 8] ^= 1 << (block % 8);
        assert!(load(&damaged).is_err(), "block {block}");
    }
    let without: Vec<u8> = state[..words].into();
    assert!(load(&without).is_err(), "hot frontiers of another kind");
    // A state of a device with one stream has no SLC cache.
    assert!(load(&state[..words - 8]).is_ok());
}
