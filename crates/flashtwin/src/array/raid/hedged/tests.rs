//! A read that waits for garbage collection is hedged after various delays. The results are compared with values
//! computed by hand.

use crate::array::RaidStats;
use crate::gc::Force;
use crate::request::{Op, Request};
use crate::rng::Rng;
use crate::spec::builtin_array;
use crate::units::{Lpn, Time};
use crate::{Array, ArraySpec};

fn array(seed: u64, level: &str, more: &[(&str, &str)]) -> Array {
    let mut set = vec![
        ("array.level", level),
        ("array.members", "harmonia*4"),
        ("member.geometry.chips", "2"),
        ("member.geometry.blocks_per_plane", "32"),
    ];
    set.extend(more);
    let text = builtin_array("harmonia-array").unwrap();
    let spec = ArraySpec::with_overrides(text, "harmonia-array", &set).unwrap();
    let mut array = Array::new(&spec);
    array.fill_sequential();
    // These writes leave invalid pages to collect, but enough free blocks that no collection is necessary.
    let holder = holder(&array);
    let first = &mut array.backend.io.members[holder].drive.ssd;
    assert!(first.write_random(&mut Rng::new(seed), 1000));
    array
}

/// Returns the member that holds the first page of the array.
fn holder(array: &Array) -> usize {
    array.backend.io.layout.spot(Lpn(0)).member
}

/// Returns the duration of a read of the first two pages, and the counters of the array. If `collects`, the member of
/// the pages begins to collect at the start of the read.
fn read(seed: u64, level: &str, after_us: Option<&str>, collects: bool) -> (Time, RaidStats) {
    let mut set = vec![("array.chunk", "8 KiB")];
    set.extend(after_us.map(|_| ("array.reads", "hedged")));
    set.extend(after_us.map(|us| ("array.hedge_after_us", us)));
    let mut array = array(seed, level, &set);
    let force = Force {
        until: 0,
        once: true,
        single: true,
        yields: false,
    };
    if collects {
        let holder = holder(&array);
        let (raid, mut clock) = array.raid_now();
        let member = &mut raid.io.members[holder];
        member.force_gc(&mut clock, force);
        assert!(member.drive.ssd.is_in_gc());
        member.wake(&mut clock);
    }
    let request = Request {
        arrival: Time::ZERO,
        offset: 0,
        bytes: 8192,
        op: Op::Read,
        fua: false,
        ..Request::default()
    };
    array.submit(array.now(), &request, 0).unwrap();
    let mut took = None;
    while array.step() {
        for c in array.completions().drain(..) {
            assert!(took.replace(c.done - c.arrival).is_none(), "twice");
            assert_eq!(c.breakdown.total(), c.done - c.arrival);
        }
    }
    assert!(array.backend.io.is_empty());
    (took.unwrap(), array.raid_stats().clone())
}

/// A hedge of two pages in arrays of four members. RAID-5 reads two pages from each of the three other members. RAID-6
/// reads two pages of the other data place and two of the parity P. Mirrors read the two pages of another copy.
#[test]
fn first_completion_of_two_counts() {
    for seed in crate::seeds(3) {
        for (level, read_for_hedge) in [("raid5", 6), ("raid6", 4), ("raid10", 2), ("raid1", 2)] {
            let (idle, _) = read(seed, level, None, false);
            let (waits, _) = read(seed, level, None, true);
            assert!(waits > idle * 5, "{waits} {idle}");

            let (took, stats) = read(seed, level, Some("300"), true);
            assert_eq!(took, Time::from_us(300) + idle, "{level}: from elsewhere");
            assert_eq!((stats.pages_hedged, stats.hedges_won), (2, 2));
            assert_eq!(stats.pages_read_in_vain, 2);
            assert_eq!(stats.member_pages_read, 2 + read_for_hedge);

            let shortly_before = Time(waits.0 - idle.0 / 2).to_ns() / 1000;
            let (took, stats) = read(seed, level, Some(&shortly_before.to_string()), true);
            assert_eq!(took, waits, "{level}: from where it lies");
            assert_eq!((stats.pages_hedged, stats.hedges_won), (2, 0));
            assert_eq!(stats.pages_read_in_vain, read_for_hedge);

            let afterwards = waits.to_ns() / 1000 + 1;
            let (took, stats) = read(seed, level, Some(&afterwards.to_string()), true);
            assert_eq!((took, stats.pages_hedged), (waits, 0), "{level}: in time");
        }
    }
}
