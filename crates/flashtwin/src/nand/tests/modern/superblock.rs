//! Tests of a superblock of two dies, and of the time that its collection takes.

use super::*;

/// Returns two dies, each with its own channel and 12 blocks of 4 pages. 7 superblocks are full and one is open. Page
/// `lpn` is written to die `lpn % 2`.
fn dies() -> Bench {
    let mut bench = die(&[
        ("geometry.chips", "2"),
        ("geometry.channels", "2"),
        ("geometry.blocks_per_plane", "12"),
        ("geometry.pages_per_block", "4"),
        ("geometry.reserve_percent", "42"),
        ("buffer.capacity", "8KiB"),
        ("ftl.placement", "dynamic"),
        ("gc.granularity", "superblock"),
    ]);
    // Overwrite all pages of the first four superblocks except one page on each die. These writes fill three more
    // superblocks.
    for first in [0, 8, 16, 24] {
        for lpn in first..first + 6 {
            bench.at(0.0, Destage, lpn);
        }
    }
    while bench.step() {}
    bench.done.clear();
    bench
}

/// Test vector SB-1. A die has only one free block, so the next writes start the collection of a superblock. Each die
/// reads its one valid page (25 + 102.4 us) and programs one moved page (102.4 + 200 us). Both dies erase their block
/// (1500 us), and then execute the writes.
#[test]
fn dies_collect_their_parts_at_once_and_erase_together() {
    let mut bench = dies();
    let t = 20_000.0;
    bench.at(t, Destage, 32);
    bench.ends(&[(32, t + 302.4)]);
    let t = 30_000.0;
    bench.at(t, Destage, 33);
    bench.at(t, Destage, 34);
    let (moved, erased) = (127.4 + 302.4, 1500.0);
    let counts = |bench: &mut Bench, until: f64| {
        while bench.events.next_time() < us(until) {
            bench.step();
        }
        [Cause::GcMove, Cause::Erase].map(|cause| bench.nand.stats().count(cause))
    };
    assert_eq!(
        counts(&mut bench, t + moved - 1.0),
        [2, 0],
        "a page is on its way"
    );
    assert_eq!(counts(&mut bench, t + moved + erased - 1.0), [2, 2]);
    assert!((0..2).all(|die| bench.nand.chips()[die].in_gc));
    bench.nand.ftl().check().unwrap();
    while bench.step() {}
    for (_, done) in &bench.done {
        assert_eq!(done.queue_gc, us(moved + erased));
    }
    let end = t + moved + erased + 302.4;
    let mut ended: Vec<(u32, Time)> = (bench.done.iter())
        .map(|&(at, done)| (done.op.lpn.0, at))
        .collect();
    ended.sort_unstable();
    assert_eq!(ended, [(33, us(end)), (34, us(end))]);
}
