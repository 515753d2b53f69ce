//! Logs of random devices under random loads. In a log, operations on one place (a chip or a channel, for example)
//! never overlap. The operations of a chip take as long as the report's busy time. Logging does not change the results.

use std::collections::BTreeMap;

use flashtwin::spec::builtin;
use flashtwin::{Cause, Completion, DeviceSpec, FlashEvent, Op, Place, Request, Rng, Ssd, Time};

/// Settings of devices whose chips work in different ways.
const KINDS: [&[(&str, &str)]; 12] = [
    &[],
    &[("nand.copy_back", "false")],
    &[
        ("geometry.planes_per_chip", "4"),
        ("nand.parallel_units", "2"),
    ],
    &[("wear.levelling", "reference"), ("wear.erase_limit", "12")],
    &[("nand.backend", "modern"), ("geometry.channels", "2")],
    &[
        ("nand.backend", "modern"),
        ("geometry.channels", "1"),
        ("nand.suspend", "true"),
        ("nand.read_priority", "true"),
        ("nand.copy_back", "false"),
    ],
    &[
        ("nand.backend", "modern"),
        ("geometry.channels", "2"),
        ("nand.suspend", "true"),
        ("nand.read_priority", "true"),
        ("nand.cached_commands", "true"),
        ("gc.preemptible", "true"),
    ],
    &[
        ("nand.backend", "modern"),
        ("geometry.channels", "2"),
        ("geometry.planes_per_chip", "2"),
        ("nand.multi_plane", "2"),
        ("nand.read_priority", "true"),
        ("nand.cached_commands", "true"),
    ],
    &[
        ("nand.backend", "modern"),
        ("geometry.channels", "2"),
        ("gc.granularity", "superblock"),
        ("ftl.summary_page", "false"),
        ("nand.copy_back", "false"),
        ("ftl.placement", "dynamic"),
    ],
    &[("ftl.kind", "dftl")],
    &[
        ("ftl.kind", "fast"),
        ("nand.backend", "modern"),
        ("geometry.channels", "1"),
    ],
    &[("ftl.kind", "bast"), ("buffer.policy", "bplru")],
];

fn device(keys: &[(&str, &str)], buffered: bool) -> DeviceSpec {
    let mut all = vec![
        ("geometry.chips", "4"),
        ("geometry.planes_per_chip", "1"),
        ("geometry.blocks_per_plane", "48"),
        ("geometry.pages_per_block", "16"),
        ("geometry.reserve_percent", "25"),
        ("buffer.capacity", "128 KiB"),
    ];
    all.extend(keys);
    if !buffered && !keys.iter().any(|(key, _)| key.starts_with("buffer")) {
        all.push(("buffer", "none"));
        all.retain(|&(key, _)| key != "buffer.capacity");
    }
    DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &all).unwrap()
}

/// Submits a thousand random requests at irregular intervals. Returns the log and the completions.
fn run(ssd: &mut Ssd, seed: u64) -> (Vec<FlashEvent>, Vec<Completion>) {
    let mut rng = Rng::new(seed);
    let (mut log, mut done) = (Vec::new(), Vec::new());
    let pages = ssd.exported_bytes() / 4096;
    let mut at = Time::ZERO;
    for tag in 0..1000 {
        at += Time::from_us(rng.below(3) * rng.below(700));
        ssd.advance(at);
        let size = 1 + rng.below(4);
        // Two thirds of the requests go to the first sixteenth of the pages.
        let among = [pages / 16, pages][rng.below(3) as usize / 2];
        let request = Request {
            arrival: at,
            offset: rng.below(among - size) * 4096,
            bytes: size * 4096,
            op: [Op::Read, Op::Write, Op::Write, Op::Write, Op::Trim][rng.below(5) as usize],
            fua: false,
            ..Request::default()
        };
        ssd.submit(at, &request, tag).unwrap();
        log.extend(ssd.take_flash_log());
        done.append(ssd.completions());
    }
    while ssd.step() {}
    log.extend(ssd.take_flash_log());
    done.append(ssd.completions());
    (log, done)
}

/// Returns the operations on each place (such as a chip or a channel) as time intervals, in the order of the log.
fn slices(log: &[FlashEvent]) -> BTreeMap<Place, Vec<(Time, Time)>> {
    let mut all: BTreeMap<Place, Vec<(Time, Time)>> = BTreeMap::new();
    let mut open: BTreeMap<Place, Time> = BTreeMap::new();
    let begin = |open: &mut BTreeMap<Place, Time>, place: Place, at: Time| {
        assert_eq!(
            open.insert(place, at),
            None,
            "{place:?} does two things at {at:?}"
        );
    };
    for event in log {
        match *event {
            FlashEvent::Begin { at, place, .. } => begin(&mut open, place, at),
            FlashEvent::Resumed { at, chip } => begin(&mut open, Place::Chip(chip), at),
            FlashEvent::End { at, place } => {
                let since = open
                    .remove(&place)
                    .unwrap_or_else(|| panic!("{place:?}: no beginning"));
                all.entry(place).or_default().push((since, at));
            }
            FlashEvent::Suspended { at, chip } => {
                let place = Place::Chip(chip);
                let since = open
                    .remove(&place)
                    .expect("suspended in the middle of something");
                all.entry(place).or_default().push((since, at));
            }
            FlashEvent::Moved { since, at, chip } => {
                let ahead = Place::Ahead(chip);
                let begun = open.remove(&ahead).expect("begun ahead");
                all.entry(ahead).or_default().push((begun, at));
                begin(&mut open, Place::Chip(chip), since);
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    all
}

#[test]
fn places_do_one_operation_at_a_time_and_busy_times_match_the_log() {
    let mut kinds = [0; 7];
    for (kind, keys) in KINDS.iter().enumerate() {
        for buffered in [false, true] {
            let spec = device(keys, buffered);
            let mut ssd = Ssd::new(&spec);
            ssd.fill_steady(kind as u64);
            ssd.reset_metrics(None);
            let mut unlogged = ssd.clone();
            ssd.set_logs(true);
            let (log, done) = run(&mut ssd, kind as u64);
            let (nothing, same) = run(&mut unlogged, kind as u64);
            assert!(nothing.is_empty());
            let texts = |value: &dyn std::fmt::Debug| format!("{value:?}");
            assert_eq!(
                texts(&done),
                texts(&same),
                "{keys:?}: the log changes the run"
            );
            assert_eq!(texts(&ssd.flash_report()), texts(&unlogged.flash_report()));

            let slices = slices(&log);
            for (place, slices) in &slices {
                for pair in slices.windows(2) {
                    assert!(pair[0].1 <= pair[1].0, "{keys:?}: {place:?} {pair:?}");
                }
                // A page occupies the channel for at least 102.4 us.
                let least = match place {
                    Place::Channel(_) => Time(102_400_000),
                    _ => Time::ZERO,
                };
                let lasts = |&(since, at): &(Time, Time)| at >= since + least;
                assert!(slices.iter().all(lasts), "{keys:?}: {place:?}");
            }
            let report = ssd.flash_report();
            let busy = |place| {
                let of = slices.get(&place).into_iter().flatten();
                of.fold(Time::ZERO, |sum, &(since, at)| sum + (at - since))
            };
            for chip in 0..4 {
                if kind != 2 {
                    let logged = busy(Place::Chip(chip));
                    assert_eq!(logged, report.busy_time[chip as usize], "{keys:?} {chip}");
                }
                let logged = busy(Place::Collection(chip));
                assert_eq!(logged, report.gc_time[chip as usize], "{keys:?} {chip}");
            }
            // The log has as many pages and as many erases as the report counts.
            let pages_of = |wanted: Cause| -> u64 {
                let of = |event: &FlashEvent| match *event {
                    FlashEvent::Begin {
                        cause,
                        pages,
                        place: Place::Chip(_) | Place::Unit(..),
                        ..
                    } if cause == wanted => u64::from(pages.max(1)),
                    _ => 0,
                };
                log.iter().map(of).sum()
            };
            for cause in [
                Cause::Erase,
                Cause::MergeCopy,
                Cause::MapRead,
                Cause::MapWrite,
                Cause::Migration,
            ] {
                assert_eq!(
                    pages_of(cause),
                    report.flash.count(cause),
                    "{keys:?} {cause:?}"
                );
            }
            for place in slices.keys() {
                kinds[match place {
                    Place::Chip(_) => 0,
                    Place::Unit(..) => 1,
                    Place::Ahead(_) => 2,
                    Place::Collection(_) => 3,
                    Place::Channel(_) => 4,
                }] += 1;
            }
            kinds[6] += report.flash.count(Cause::Migration) as usize;
            kinds[5] += log
                .iter()
                .filter(|e| matches!(e, FlashEvent::Suspended { .. }))
                .count();
        }
    }
    assert!(kinds.iter().all(|&n| n > 0), "not all was met: {kinds:?}");
}
