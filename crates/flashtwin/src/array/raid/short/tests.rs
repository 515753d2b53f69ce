//! What arrays do on the short way, they do on that of any array.

use crate::device::{OutsideDone, Work};
use crate::nand::Cause;
use crate::request::{Op, Request};
use crate::rng::Rng;
use crate::spec::builtin_array;
use crate::units::{Lpn, Time};
use crate::{Array, ArraySpec};

const PAGE: u64 = 4096;
/// Before this request a rebuild ends.
const REBUILT: u64 = 3000;

fn array(more: &[(&str, &str)]) -> Array {
    let mut keys = vec![
        ("array.level", "raid5"),
        ("array.members", "ecr*4"),
        ("buffer", "none"),
        ("member.buffer", "none"),
        ("member.geometry.chips", "2"),
        ("member.geometry.planes_per_chip", "2"),
        ("member.geometry.blocks_per_plane", "32"),
        ("member.geometry.pages_per_block", "16"),
        ("member.geometry.reserve_percent", "30"),
        ("member.link.bus_ns_per_sector", "0"),
    ];
    keys.extend(more);
    let text = builtin_array("raid5-array").expect("it is built in");
    let spec = ArraySpec::with_overrides(text, "raid5-array", &keys).expect("a sound array");
    let mut array = Array::new(&spec);
    array.fill_steady(1);
    array
}

fn is_short(array: &Array) -> bool {
    array.backend.io.is_short()
}

/// Lets happen what is due by `until`: on the short way where there is one, or never.
fn advance(array: &mut Array, until: Time, short: bool) {
    while array.next_event().is_some_and(|at| at <= until) {
        array.step();
        let io = &mut array.backend.io;
        io.allow_short_way(short);
        for (at, member) in io.members.iter().enumerate() {
            let collects = member.drive.ssd.is_in_gc();
            assert_eq!(io.watch.units.is_in_gc(at), collects, "known of a member");
        }
    }
    array.advance(until);
}

/// What is done to an array before its request of this number.
fn intervene(array: &mut Array, tag: u64) {
    match tag {
        500 => array.set_gc_timeline(true),
        700 => array.set_gc_timeline(false),
        900 => array.set_log(true),
        1100 => array.set_log(false),
        1300 => array.set_logs(true),
        1320 => array.set_logs(false),
        1500 => array.fail_member(1).expect("all are there"),
        1600 => array.replace_member(1).expect("it is missing"),
        3600 => {
            array.collect(Some(0), None).expect("it can");
        }
        3800 => array.slow_member(2, 1500).expect("it is there"),
        _ => {}
    }
}

/// Random requests, and what befalls an array meanwhile: what ended, how and when, and what members did; and before which
/// requests the way changed.
fn run(array: &mut Array, seed: u64, short: bool) -> (String, Vec<u64>) {
    let mut rng = Rng::new(seed);
    let pages = array.exported_bytes() / PAGE;
    let (mut now, mut text, mut changes) = (Time::ZERO, String::new(), Vec::new());
    array.backend.io.allow_short_way(short);
    let mut was_short = short;
    for tag in 0..4000 {
        now += Time::from_us(rng.below(4) * 150);
        if tag == REBUILT {
            now += Time::from_ms(60_000);
        }
        advance(array, now, short);
        intervene(array, tag);
        array.backend.io.allow_short_way(short);
        if was_short != is_short(array) {
            was_short = !was_short;
            changes.push(tag);
        }
        let span = 1 + rng.below(9).saturating_sub(6);
        let request = Request {
            arrival: now,
            offset: rng.below(pages - span) * PAGE,
            bytes: span * PAGE,
            op: match rng.below(40) {
                0 => Op::Flush,
                1 => Op::Trim,
                2..=9 => Op::Read,
                _ => Op::Write,
            },
            fua: rng.below(16) == 0,
        };
        array
            .submit(now, &request, tag)
            .expect("it is on the array");
        let done = array.completions().drain(..);
        done.for_each(|c| text += &format!("{c:?}\n"));
    }
    advance(array, Time(Time::NEVER.0 / 2), short);
    let done = array.completions().drain(..);
    done.for_each(|c| text += &format!("{c:?}\n"));
    let (stats, members) = (array.raid_stats(), array.member_reports());
    (text + &format!("{stats:?}\n{members:?}"), changes)
}

/// Requests before which an array with these interventions leaves the short way, or comes back.
const CHANGES: [u64; 9] = [500, 700, 900, 1100, 1300, 1320, 1500, REBUILT, 3800];

#[test]
fn an_array_does_the_same_on_both_ways() {
    for more in [
        [
            ("array.chunk", "4 KiB"),
            ("array.rotation", "left-symmetric"),
        ],
        [
            ("array.chunk", "64 KiB"),
            ("array.rotation", "right-asymmetric"),
        ],
        [("array.chunk", "16 KiB"), ("member.wear.erase_limit", "2")],
    ] {
        let is_worn = more[1].0 == "member.wear.erase_limit";
        for seed in crate::seeds(3) {
            let mut array = array(&more);
            assert!(is_short(&array), "{more:?}");
            let mut other = array.clone();
            let (got, changes) = run(&mut array, seed, true);
            let (expected, none) = run(&mut other, seed, false);
            assert!(got == expected, "{more:?}, seed {seed}");
            assert!(none.is_empty());
            assert_eq!(changes, CHANGES, "{more:?}");
            assert_eq!(got.contains("ReadOnly"), is_worn, "{more:?}");
            let waits = array.raid_stats().row_waits;
            let moves = array.flash_report().flash.count(Cause::GcMove);
            assert!(waits > 100 && moves > 1000, "{more:?}: {waits}, {moves}");
        }
    }
}

#[test]
fn what_has_more_than_the_short_way_takes_another() {
    for (key, value) in [
        ("array.level", "raid0"),
        ("array.level", "raid6"),
        ("array.level", "raid10"),
        ("array.members", "ecr*3"),
        ("array.reads", "hedged"),
        ("array.coordination", "inclusive"),
        ("array.member_in_gc", "chip"),
        ("member.buffer.capacity", "1 MiB"),
        ("member.link.bus_ns_per_sector", "10"),
        ("member.host.queue_depth", "4"),
        ("member.nand.parallel_units", "2"),
        ("member.nand.copy_back", "false"),
        ("member.nand.allocation_pool", "plane"),
        ("member.nand.cleaning_in_background", "true"),
        ("member.ftl.kind", "dftl"),
    ] {
        assert!(!is_short(&array(&[(key, value)])), "{key} = {value}");
    }
    let modern = [
        ("member.nand.backend", "modern"),
        ("member.geometry.channels", "2"),
    ];
    assert!(!is_short(&array(&modern)));
    // Some page has another chip on one of the members.
    let mut other = array(&[]);
    other.backend.io.members[3] = array(&[("member.ftl.stride_pages", "2")])
        .backend
        .io
        .members[3]
        .clone();
    other.backend.io.find_way();
    assert!(!is_short(&other));
}

/// Of operations on one page that are queued together, all are done when it is written.
#[test]
fn writes_of_the_same_page_at_once_are_one_write() {
    let mut array = array(&[]);
    let now = array.now();
    for tag in 1..4 {
        let op = OutsideDone::page::<false>(Lpn(5), false, now, (tag, 0));
        array.backend.enqueue(0, op, now, &mut array.events);
    }
    array.backend.settle(now, &mut array.events);
    assert!(is_short(&array));
    while array.step() {}
    let tags: Vec<u32> = array.outside_done().iter().map(|done| done.tag).collect();
    assert_eq!(tags, [1, 2, 3]);
    assert_eq!(array.raid_stats().member_pages_written, 2);
}
