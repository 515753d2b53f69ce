//! A read that waits for a collection, hedged at several times: worked out by hand.

use super::{After, PARTS};
use crate::array::RaidStats;
use crate::gc::Force;
use crate::request::{Op, Request};
use crate::rng::Rng;
use crate::spec::builtin_array;
use crate::units::{Lpn, Time};
use crate::{Array, ArraySpec};

fn array(level: &str, more: &[(&str, &str)]) -> Array {
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
    // Something to collect, and room enough not to have to.
    let holder = holder(&array);
    let first = &mut array.backend.members[holder].ssd;
    assert!(first.write_random(&mut Rng::new(1), 1000));
    array
}

/// The member that holds the first page.
fn holder(array: &Array) -> usize {
    array.backend.layout.spot(Lpn(0)).member
}

/// How long a read of the first two pages takes, if the member that holds them begins to collect at the same time.
fn read(level: &str, after_us: Option<&str>, collects: bool) -> (Time, RaidStats) {
    let mut set = vec![("array.chunk", "8 KiB")];
    set.extend(after_us.map(|_| ("array.reads", "hedged")));
    set.extend(after_us.map(|us| ("array.hedge_after_us", us)));
    let mut array = array(level, &set);
    let force = Force {
        until: 0,
        once: true,
        single: true,
        yields: false,
    };
    if collects {
        let (now, holder) = (array.now(), holder(&array));
        let raid = &mut array.backend;
        raid.members[holder].ssd.force_gc(now, force);
        assert!(raid.members[holder].ssd.is_in_gc());
        raid.wake(holder, now, &mut array.events);
    }
    let request = Request {
        arrival: Time::ZERO,
        offset: 0,
        bytes: 8192,
        op: Op::Read,
        fua: false,
    };
    array.submit(array.now(), &request, 0).unwrap();
    let mut took = None;
    while array.step() {
        for c in array.completions().drain(..) {
            assert!(took.replace(c.done - c.arrival).is_none(), "twice");
            assert_eq!(c.breakdown.total(), c.done - c.arrival);
        }
    }
    assert!(array.backend.is_empty());
    (took.unwrap(), array.raid_stats().clone())
}

/// RAID-5 of four works the two pages out from two pages of each of the other three, RAID-6 from the
/// other data and P. Mirrors have a copy.
#[test]
fn the_first_answer_counts() {
    for (level, read_for_hedge) in [("raid5", 6), ("raid6", 4), ("raid10", 2), ("raid1", 2)] {
        let (idle, _) = read(level, None, false);
        let (waits, _) = read(level, None, true);
        assert!(waits > idle * 5, "{waits} {idle}");

        let (took, stats) = read(level, Some("300"), true);
        assert_eq!(took, Time::from_us(300) + idle, "{level}: from elsewhere");
        assert_eq!((stats.pages_hedged, stats.hedges_won), (2, 2));
        assert_eq!(stats.pages_read_in_vain, 2);
        assert_eq!(stats.member_pages_read, 2 + read_for_hedge);

        let shortly_before = Time(waits.0 - idle.0 / 2).to_ns() / 1000;
        let (took, stats) = read(level, Some(&shortly_before.to_string()), true);
        assert_eq!(took, waits, "{level}: from where it lies");
        assert_eq!((stats.pages_hedged, stats.hedges_won), (2, 0));
        assert_eq!(stats.pages_read_in_vain, read_for_hedge);

        let afterwards = waits.to_ns() / 1000 + 1;
        let (took, stats) = read(level, Some(&afterwards.to_string()), true);
        assert_eq!((took, stats.pages_hedged), (waits, 0), "{level}: in time");
    }
}

#[test]
fn the_share_of_reads_that_are_hedged_is_what_was_asked_for() {
    let mut after = After::Share {
        millionths: 950_000,
        counts: Vec::new(),
        seen: 0,
        now: Time::NEVER,
    };
    for i in 0..10_000 {
        after.took(Time::from_us(1 + i * 7919 % 1000));
    }
    let error = after.now().as_us() / 950.0;
    assert!((0.99..1.0 + 2.0 / PARTS as f64).contains(&error), "{error}");
    // The buckets follow each other, and what is in one is not longer than its end.
    for ns in (0..200_000).chain((1 << 40) - 9..(1 << 40) + 9) {
        let bucket = After::bucket(Time::from_ns(ns));
        assert!(Time::from_ns(ns) <= After::end_of(bucket));
        let next = After::bucket(Time::from_ns(ns + 1));
        assert!(next == bucket || next == bucket + 1);
        if next == bucket + 1 && ns >= PARTS {
            assert_eq!(After::end_of(bucket), Time::from_ns(ns + 1));
        }
    }
}
