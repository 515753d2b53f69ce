//! The plain copy of an array's code has the same results as the general copy.

use super::Copy;
use crate::device::Work;
use crate::nand::{Cause, Owner, PageOp};
use crate::request::{Op, Request};
use crate::rng::Rng;
use crate::spec::{builtin_array, Level};
use crate::units::{Lpn, Stream, Time};
use crate::{Array, ArraySpec};

const PAGE: u64 = 4096;
/// Number of the request before which the clock advances by a minute, so that the rebuild is complete by then.
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

fn is_plain(array: &Array) -> bool {
    array.backend.io.copy() != Copy::EVERY
}

/// Processes the events that are due by `until`. If `plain`, the plain copy of the code runs wherever it is
/// permitted. Otherwise the general copy always runs.
fn advance(array: &mut Array, until: Time, plain: bool) {
    while array.next_event().is_some_and(|at| at <= until) {
        array.step();
        let io = &mut array.backend.io;
        io.allow_plain(plain);
        for (at, member) in io.members.iter().enumerate() {
            let collects = member.drive.ssd.is_in_gc();
            assert_eq!(io.watch.units.is_in_gc(at), collects, "known of a member");
        }
    }
    array.advance(until);
}

/// Makes the change to the array, such as the failure of a member, that precedes the request with the number `tag`. In
/// an array without redundancy, no member fails.
fn intervene(array: &mut Array, tag: u64) {
    let has_copies = array.spec().level != Level::Raid0;
    match tag {
        500 => array.set_gc_timeline(true),
        700 => array.set_gc_timeline(false),
        900 => array.set_log(true),
        1100 => array.set_log(false),
        1300 => array.set_logs(true),
        1320 => array.set_logs(false),
        1500 if has_copies => array.fail_member(1).expect("all are there"),
        1600 if has_copies => array.replace_member(1).expect("it is missing"),
        3600 => {
            array.collect(Some(0), None).expect("it can");
        }
        3800 => array.slow_member(2, 1500).expect("it is there"),
        _ => {}
    }
}

/// Submits random requests and changes the array between them. Returns a text and a list of requests. The text has
/// the completed requests with results and times, and the counters of the array and its members. The list has the
/// requests before which another copy of the code was chosen.
fn run(array: &mut Array, seed: u64, plain: bool) -> (String, Vec<u64>) {
    let mut rng = Rng::new(seed);
    let pages = array.exported_bytes() / PAGE;
    let (mut now, mut text, mut changes) = (Time::ZERO, String::new(), Vec::new());
    array.backend.io.allow_plain(plain);
    let mut was_plain = plain;
    for tag in 0..4000 {
        now += Time::from_us(rng.below(4) * 150);
        if tag == REBUILT {
            now += Time::from_ms(60_000);
        }
        advance(array, now, plain);
        intervene(array, tag);
        array.backend.io.allow_plain(plain);
        if was_plain != is_plain(array) {
            was_plain = !was_plain;
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
            ..Request::default()
        };
        array
            .submit(now, &request, tag)
            .expect("it is on the array");
        let done = array.completions().drain(..);
        done.for_each(|c| text += &format!("{c:?}\n"));
    }
    advance(array, Time(Time::NEVER.0 / 2), plain);
    let done = array.completions().drain(..);
    done.for_each(|c| text += &format!("{c:?}\n"));
    let (stats, members) = (array.raid_stats(), array.member_reports());
    (text + &format!("{stats:?}\n{members:?}"), changes)
}

/// Numbers of the requests before which a change by [`intervene`] makes the array plain, or no longer plain.
const CHANGES: [u64; 9] = [500, 700, 900, 1100, 1300, 1320, 1500, REBUILT, 3800];
const CHANGES_WITHOUT_COPIES: [u64; 7] = [500, 700, 900, 1100, 1300, 1320, 3800];

const MODERN: [(&str, &str); 2] = [
    ("member.nand.backend", "modern"),
    ("member.geometry.channels", "2"),
];

#[test]
fn plain_arrays_do_the_same_on_both_copies() {
    let variants: [&[(&str, &str)]; 10] = [
        &[
            ("array.chunk", "4 KiB"),
            ("array.rotation", "left-symmetric"),
        ],
        &[
            ("array.chunk", "64 KiB"),
            ("array.rotation", "right-asymmetric"),
        ],
        &[("array.chunk", "16 KiB"), ("member.wear.erase_limit", "2")],
        &[("array.level", "raid0")],
        &[("array.level", "raid1"), ("array.members", "ecr*3")],
        &[("array.level", "raid6")],
        &[("array.level", "raid10")],
        &MODERN,
        &[MODERN[0], MODERN[1], ("member.gc.preemptible", "true")],
        &[("member.nand.parallel_units", "2")],
    ];
    for more in variants {
        let is_worn = more
            .iter()
            .any(|(key, _)| *key == "member.wear.erase_limit");
        for seed in crate::seeds(2) {
            let mut array = array(more);
            assert!(is_plain(&array), "{more:?}");
            let mut other = array.clone();
            let (got, mut changes) = run(&mut array, seed, true);
            // The array becomes plain again when the rebuild ends, which may be before the request `REBUILT`. In the
            // list of changes, `REBUILT` then replaces the earlier request.
            let rebuilt = changes
                .iter_mut()
                .find(|tag| (1600..REBUILT).contains(*tag));
            if let Some(tag) = rebuilt {
                *tag = REBUILT;
            }
            let (expected, none) = run(&mut other, seed, false);
            assert!(got == expected, "{more:?}, seed {seed}");
            assert!(none.is_empty());
            match array.spec().level {
                Level::Raid0 => assert_eq!(changes, CHANGES_WITHOUT_COPIES, "{more:?}"),
                _ => assert_eq!(changes, CHANGES, "{more:?}"),
            }
            // With an erase limit, the array must become read-only. The converse is not checked: an array with
            // `nand.parallel_units` may become read-only even without wear, if one of its small chips becomes full
            // between two collections.
            assert!(!is_worn || got.contains("ReadOnly"), "{more:?}");
            let moves = array.flash_report().flash.count(Cause::GcMove);
            assert!(moves > 300, "{more:?}: {moves}");
        }
    }
}

#[test]
fn arrays_with_further_features_are_not_plain() {
    for (key, value) in [
        ("array.level", "swan"),
        ("array.reads", "hedged"),
        ("array.coordination", "inclusive"),
        ("array.member_in_gc", "chip"),
        ("member.buffer.capacity", "1 MiB"),
        ("member.link.bus_ns_per_sector", "10"),
        ("member.host.queue_depth", "4"),
    ] {
        assert!(!is_plain(&array(&[(key, value)])), "{key} = {value}");
    }
}

/// If several operations on one page are queued at the same instant, all of them complete when the page is written.
#[test]
fn writes_of_the_same_page_at_once_are_one_write() {
    let mut array = array(&[]);
    let now = array.now();
    for tag in 1..4 {
        let op = PageOp {
            lpn: Lpn(5),
            owner: Owner::cached_page(tag),
            cause: Cause::HostWrite,
            request: 0,
            stream: Stream::Cold,
            fua: false,
            again: 0,
            enqueued: now,
            gc_before: Time::ZERO,
        };
        array.backend.enqueue(0, op, now, &mut array.events);
    }
    array.backend.settle(now, &mut array.events);
    assert!(is_plain(&array));
    let mut owners = Vec::new();
    while array.events.next_time() != Time::NEVER {
        let now = array.events.next_time();
        let resource = array.events.pop().expect("an event is pending");
        let (raid, events, mut done) = (&mut array.backend, &mut array.events, None);
        let unit = raid.on_event(resource, now, events, &mut done);
        owners.extend(done.map(|done| done.op.owner.number()));
        while let Some(done) = raid.more_done() {
            owners.push(done.op.owner.number());
        }
        if let Some(unit) = unit {
            raid.activate(unit, now, events);
        }
    }
    assert_eq!(owners, [1, 2, 3]);
    assert_eq!(array.raid_stats().member_pages_written, 2);
}
