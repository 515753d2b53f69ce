//! Failures of a die. Under random requests, the contents of the die are lost, all other contents stay, and each
//! request completes once.

mod buffer;

use super::*;
use crate::request::{Op, Request, Status};
use crate::rng::Rng;
use crate::spec::{builtin, DeviceSpec};
use crate::units::Stream;
use crate::units::{ChipId, Lpn};

const DIES: u32 = 4;
const PAGE: u64 = 4096;
const US: u64 = 1_000_000;

fn device(more: &[(&str, &str)]) -> Ssd {
    let mut all = vec![
        ("geometry.chips", "4"),
        ("geometry.channels", "2"),
        ("geometry.planes_per_chip", "1"),
        ("geometry.blocks_per_plane", "32"),
        ("geometry.pages_per_block", "16"),
        ("geometry.reserve_percent", "50"),
        ("gc.low_percent", "4"),
        ("buffer.capacity", "64KiB"),
        ("buffer.power_loss_protection", "false"),
    ];
    all.extend(more);
    if more.contains(&("buffer", "none")) {
        all.retain(|(key, _)| !key.starts_with("buffer."));
    }
    let spec = DeviceSpec::with_overrides(builtin("nvme-tlc").unwrap(), "nvme-tlc", &all);
    let mut ssd = Ssd::new(&spec.unwrap());
    ssd.fill_sequential();
    ssd
}

fn pages(ssd: &Ssd) -> u64 {
    ssd.exported_bytes() / PAGE
}

fn submit(ssd: &mut Ssd, op: Op, offset: u64, bytes: u64, tag: u64) {
    let request = Request {
        arrival: ssd.now(),
        offset,
        bytes,
        op,
        fua: tag % 16 == 7,
        ..Request::default()
    };
    ssd.submit(ssd.now(), &request, tag).unwrap();
}

fn run(ssd: &mut Ssd) {
    let mut steps = 0;
    while ssd.step() {
        steps += 1;
        assert!(steps < 10_000_000, "no end of it");
    }
    assert_eq!(ssd.outstanding(), 0, "somebody waits for ever");
    let (nand, mut dies) = (&ssd.backend.nand, (0..DIES).map(|die| ChipId(die as u16)));
    assert!(dies.all(|die| !nand.is_dead(die.0.into()) || !nand.chips_in_gc().contains(die)));
    ssd.check().unwrap();
}

/// Executes one request while no other is in flight. Returns its status.
fn one(ssd: &mut Ssd, op: Op, offset: u64, bytes: u64) -> Status {
    alone(ssd, op, offset, bytes, 1)
}

/// Executes a forced write while no other request is in flight. Returns its status.
fn forced(ssd: &mut Ssd, offset: u64, bytes: u64) -> Status {
    alone(ssd, Op::Write, offset, bytes, 7)
}

fn alone(ssd: &mut Ssd, op: Op, offset: u64, bytes: u64, tag: u64) -> Status {
    ssd.completions().clear();
    submit(ssd, op, offset, bytes, tag);
    run(ssd);
    ssd.completions().pop().unwrap().status
}

fn flush(ssd: &mut Ssd) -> Status {
    one(ssd, Op::Flush, 0, 0)
}

fn read(ssd: &mut Ssd, page: u64) -> Status {
    one(ssd, Op::Read, page * PAGE, PAGE)
}

fn lies_on(ssd: &Ssd, page: u64, die: u32) -> bool {
    ssd.backend_unit(Lpn(page as u32))
        .is_some_and(|unit| u32::from(unit.0) == die)
}

/// Reads every page. The buffer must be empty. Returns the pages whose reads fail, and checks that these are the pages
/// on the die.
fn lost(ssd: &mut Ssd, die: u32) -> Vec<u64> {
    let mut lost = Vec::new();
    for page in 0..pages(ssd) {
        let failed = read(ssd, page) == Status::Failed;
        assert_eq!(failed, lies_on(ssd, page, die), "page {page}");
        lost.extend(failed.then_some(page));
    }
    lost
}

const DEVICES: [&[(&str, &str)]; 13] = [
    &[("buffer", "none")],
    &[
        ("buffer", "none"),
        ("nand.read_priority", "false"),
        ("nand.suspend", "false"),
    ],
    &[("buffer", "none"), ("ftl.partial", "sectors")],
    &[
        ("buffer", "none"),
        ("nand.cached_commands", "true"),
        ("nand.copy_back", "true"),
    ],
    &[
        ("buffer", "none"),
        ("gc.preemptible", "true"),
        ("gc.victim", "cost-benefit"),
    ],
    &[("buffer", "none"), ("ftl.separation", "gc")],
    &[
        ("buffer", "none"),
        ("wear.levelling", "dynamic"),
        ("gc.ideal", "true"),
    ],
    &[],
    &[("buffer.evict", "blocking"), ("buffer.policy", "bplru")],
    &[("buffer.policy", "fab"), ("buffer.read_cache", "0.25")],
    &[("buffer.policy", "cbm"), ("buffer.evict", "blocking")],
    &[
        ("buffer.policy", "co-active"),
        ("buffer.power_loss_protection", "true"),
    ],
    &[("buffer.policy", "coop"), ("buffer.quiet_us", "100")],
];

#[test]
fn only_pages_of_the_dead_die_fail() {
    for (i, more) in DEVICES.iter().enumerate() {
        for seed in crate::seeds(3) {
            check_one_death(more, i as u64 * 100 + seed);
        }
    }
}

fn check_one_death(more: &[(&str, &str)], seed: u64) {
    let mut ssd = device(more);
    let mut rng = Rng::new(seed);
    let (pages, die) = (pages(&ssd), rng.below(DIES.into()) as u32);
    let before = 1500 + rng.below(500);
    let count = before + 700;
    let mut ended = vec![false; count as usize];
    let (mut whole, mut failed) = (Vec::new(), 0);
    let mut killed = false;
    for tag in 0..count {
        let now = ssd.now() + Time(rng.below(60 * US));
        ssd.advance(now);
        if tag == before {
            let reported = ssd.kill_die(die).unwrap();
            assert!(u64::from(reported) > pages / 8, "{more:?}: {reported}");
            assert_eq!(ssd.kill_die(die), Err(DieError::Dead { die }));
            killed = true;
        }
        let page = rng.below(pages - 4);
        let op = [Op::Read, Op::Write, Op::Write, Op::Trim, Op::Flush][match rng.below(40) {
            0 => 4,
            1 => 3,
            n => n as usize % 3,
        }];
        let part = matches!(op, Op::Read | Op::Write) && rng.below(4) == 0;
        let (offset, bytes) = match op {
            Op::Flush => (0, 0),
            _ if part => (page * PAGE + 512 * rng.below(5), 512 * (1 + rng.below(10))),
            _ => (page * PAGE, PAGE * (1 + rng.below(4))),
        };
        whole.push((op == Op::Write && !part).then_some(page..page + bytes / PAGE));
        submit(&mut ssd, op, offset, bytes, tag);
        let mut done = std::mem::take(ssd.completions());
        for done in done.drain(..) {
            assert!(!std::mem::replace(&mut ended[done.tag as usize], true));
            assert_ne!(done.status, Status::ReadOnly);
            assert!(done.status == Status::Ok || killed, "{more:?}");
            failed += u64::from(done.status == Status::Failed);
        }
        *ssd.completions() = done;
    }
    run(&mut ssd);
    for done in ssd.completions().drain(..) {
        failed += u64::from(done.status == Status::Failed);
        assert!(!std::mem::replace(&mut ended[done.tag as usize], true));
    }
    assert!(ended.iter().all(|&ended| ended), "{more:?}");
    assert!(failed > 0, "{more:?}: nobody met the dead die");
    // Pages that were written as a whole after the failure are on other dies.
    ssd.shut_down(u64::MAX);
    for page in whole.drain(before as usize..).flatten().flatten() {
        assert!(!lies_on(&ssd, page, die), "{more:?}: page {page}");
    }
    ssd.cut_power(u64::MAX).unwrap();
    assert_eq!(ssd.flash_report().dead_dies, [die]);
    let gone = lost(&mut ssd, die);
    assert!(!gone.is_empty() && ssd.collect(Some(die)).is_err());
    assert_eq!(ssd.collect(None), Ok(DIES - 1));
    // Lost pages are still lost after the device is saved and loaded. They can be read again after they are written or
    // trimmed.
    let mut saved = Vec::new();
    run(&mut ssd);
    ssd.save_state(&mut saved).unwrap();
    let mut again = device(more);
    again.load_state(&mut &saved[..]).unwrap();
    assert_eq!(lost(&mut again, die), gone);
    for mut ssd in [ssd, again] {
        let mut both = device(more).flash_report();
        assert_eq!(both.dead_dies, []);
        both.add_member(&ssd.flash_report_without_wear());
        assert_eq!(both.dead_dies, [DIES + die]);
        let (trimmed, written) = gone.split_at(gone.len() / 2);
        for page in trimmed {
            assert_eq!(one(&mut ssd, Op::Trim, page * PAGE, PAGE), Status::Ok);
        }
        for page in written {
            assert_eq!(one(&mut ssd, Op::Write, page * PAGE, PAGE), Status::Ok);
        }
        ssd.shut_down(u64::MAX);
        for page in 0..pages {
            assert_eq!(read(&mut ssd, page), Status::Ok, "{more:?}: page {page}");
            assert!(!lies_on(&ssd, page, die));
        }
    }
}

/// A die fails at various instants under writes. Its running and waiting programs are executed on other dies. Reads of
/// the die fail after the usual time of a read: 54 us in the flash array, then 9.0112 us on the channel.
#[test]
fn operations_on_a_dying_die_end() {
    let mut again = 0;
    for at_us in (0..4_000).step_by(97) {
        let mut ssd = device(&[
            ("buffer", "none"),
            ("timing.read_us", "54"),
            ("link.command_overhead_us", "0"),
            ("controller", "none"),
        ]);
        assert_eq!(one(&mut ssd, Op::Trim, 0, 64 * PAGE), Status::Ok);
        ssd.completions().clear();
        for page in 0..64 {
            submit(&mut ssd, Op::Write, page * PAGE, PAGE, page);
        }
        let at = ssd.now() + Time::from_us(at_us);
        ssd.advance(at);
        let completed: Vec<u64> = ssd.completions().drain(..).map(|done| done.tag).collect();
        let reported = ssd.kill_die(1).unwrap();
        let mut before = ssd.flash_report().flash;
        while ssd.step() {
            let report = ssd.flash_report();
            let flash = &report.flash;
            let pairs = flash.ops.iter().zip(&before.ops);
            assert!(pairs.into_iter().all(|(now, before)| now >= before));
            assert!(flash.host_programs() <= 64, "{at_us}");
            let all = (64 + flash.programs_again) as f64 / 64.0;
            if flash.host_programs() == 64 && report.moves() == 0 {
                assert_eq!(report.gc_write_amplification(), Some(all));
            }
            before = report.flash;
        }
        assert_eq!(before.host_programs(), 64, "{at_us}");
        again += before.programs_again;
        run(&mut ssd);
        let later: Vec<_> = ssd.completions().drain(..).collect();
        assert_eq!(completed.len() + later.len(), 64);
        for done in later {
            assert_eq!(done.status, Status::Ok);
            assert!(!lies_on(&ssd, done.tag, 1), "{at_us}: page {}", done.tag);
        }
        let mut gone = (0..pages(&ssd)).filter(|&page| lies_on(&ssd, page, 1));
        let page = gone.next().unwrap();
        assert_eq!(1 + gone.count() as u32, reported, "{at_us}");
        submit(&mut ssd, Op::Read, page * PAGE, PAGE, 0);
        run(&mut ssd);
        let done = ssd.completions().pop().unwrap();
        assert_eq!(done.status, Status::Failed);
        assert_eq!(done.breakdown.array, Time::from_us(54));
        assert!(done.breakdown.transfer > Time::ZERO);
    }
    assert!(again > 0, "no die died under a program");
}

/// If a die has no room for a repeated program, the program is passed on to further dies.
#[test]
fn repeated_programs_use_dies_with_room() {
    for (full, room) in [(&[0][..], true), (&[0, 2], true), (&[0, 2, 3], false)] {
        let set = [("buffer", "none"), ("geometry.reserve_percent", "20")];
        let mut ssd = device(&set);
        let first = ssd.backend.placement.pages_per_program;
        ssd.backend.next_write = first;
        submit(&mut ssd, Op::Write, 0, PAGE, 0);
        while ssd.flash_report().flash.host_programs() == 0 {
            assert!(ssd.step());
        }
        assert!(lies_on(&ssd, 0, 1));
        // Pages of die 1, which will fail, are written to the other dies to fill them. No page on these dies becomes
        // invalid.
        for &die in full {
            let mut others = (1..pages(&ssd) as u32).map(Lpn);
            while others.any(|lpn| {
                ssd.backend.nand.chip_of_copy(lpn) == Some(1)
                    && ssd.backend.nand.write_untimed(die, lpn, Stream::Cold)
            }) {}
        }
        ssd.backend.next_write = 0;
        ssd.kill_die(1).unwrap();
        run(&mut ssd);
        let expected = if room { Status::Ok } else { Status::ReadOnly };
        assert_eq!(ssd.completions()[0].status, expected, "{full:?}");
        assert_eq!(ssd.is_read_only(), !room);
        let again = ssd.flash_report().flash.programs_again;
        assert_eq!(again, u64::from(room));
        // If no die had room, the page is lost: the failed die cannot be read, and the old copy is invalid.
        assert_eq!(
            read(&mut ssd, 0),
            if room { Status::Ok } else { Status::Failed }
        );
    }
}

/// Only programs that had begun on a die that then failed are passed on to other dies. If any other program finds no
/// room, the device reaches its end of life.
#[test]
fn a_write_that_finds_no_room_is_not_passed_on() {
    let mut ssd = device(&[("buffer", "none"), ("geometry.reserve_percent", "20")]);
    let mut others = (0..pages(&ssd) as u32).map(Lpn);
    while others.any(|lpn| {
        ssd.backend.nand.chip_of_copy(lpn) == Some(1)
            && ssd.backend.nand.write_untimed(0, lpn, Stream::Cold)
    }) {}
    ssd.backend.next_write = 0;
    let page = (0..pages(&ssd)).find(|&page| lies_on(&ssd, page, 2));
    let status = one(&mut ssd, Op::Write, page.unwrap() * PAGE, PAGE);
    assert_eq!(status, Status::ReadOnly);
}

/// A part of a lost page is written. Without a buffer, the write fails. With a buffer, the write succeeds, but the
/// write-back of the page cannot read the rest of the page. The flush that waits for it then fails.
#[test]
fn a_part_of_a_lost_page_is_lost_with_it() {
    for more in [&[("buffer", "none"), ("ftl.partial", "sectors")][..], &[]] {
        let mut ssd = device(more);
        ssd.kill_die(2).unwrap();
        let page = (0..pages(&ssd))
            .find(|&page| lies_on(&ssd, page, 2))
            .unwrap();
        let wrote = one(&mut ssd, Op::Write, page * PAGE, 512);
        if more.is_empty() {
            assert_eq!(wrote, Status::Ok);
            assert_eq!(flush(&mut ssd), Status::Failed);
            assert_eq!(ssd.flash_report().pages_lost, 1);
            assert_eq!(ssd.power_cut().lost, []);
        } else {
            assert_eq!(wrote, Status::Failed);
        }
        assert_eq!(flush(&mut ssd), Status::Ok);
        assert_eq!(read(&mut ssd, page), Status::Failed);
        assert_eq!(one(&mut ssd, Op::Write, page * PAGE, PAGE), Status::Ok);
        assert_eq!(one(&mut ssd, Op::Write, page * PAGE, 512), Status::Ok);
        assert_eq!(flush(&mut ssd), Status::Ok);
        assert_eq!(read(&mut ssd, page), Status::Ok);
    }
}

/// If the other dies have too few blocks, the device reaches its end of life: writes are refused, and pages that are
/// not lost can still be read.
#[test]
fn too_little_room_is_the_end_of_writing() {
    for more in [&[("buffer", "none")][..], &[]] {
        let mut all = vec![("geometry.reserve_percent", "20")];
        all.extend(more);
        let mut ssd = device(&all);
        let die = 3;
        ssd.kill_die(die).unwrap();
        let mut page = 0;
        let pages = pages(&ssd);
        while !ssd.is_read_only() {
            assert!(page < 3 * pages, "it goes on and on");
            one(&mut ssd, Op::Write, page % pages * PAGE, PAGE);
            page += 1;
        }
        assert!(page > 32);
        assert_eq!(one(&mut ssd, Op::Write, 0, PAGE), Status::ReadOnly);
        ssd.cut_power(u64::MAX).unwrap();
        assert!(!lost(&mut ssd, die).is_empty());
    }
}

#[test]
fn devices_that_need_every_die_refuse_a_kill() {
    for (more, why) in [
        (&[("ftl.placement", "static")][..], "ftl.placement"),
        (
            &[
                ("gc.granularity", "superblock"),
                ("geometry.pages_per_block", "64"),
            ],
            "gc.granularity",
        ),
    ] {
        let reported = device(more).kill_die(0).unwrap_err().to_string();
        assert!(reported.contains(why), "{reported}");
    }
    let spec = DeviceSpec::parse(builtin("ecr").unwrap(), "ecr").unwrap();
    let reported = Ssd::new(&spec).kill_die(0).unwrap_err().to_string();
    assert!(reported.contains("nand.backend"), "{reported}");
    let unknown = DieError::Unknown { die: 4, dies: DIES };
    assert_eq!(device(&[]).kill_die(4), Err(unknown));
}

/// `Ssd::check` reports an error if only some of a dead die's blocks are marked as dead.
#[test]
fn a_state_with_half_a_dead_die_is_refused() {
    let mut ssd = device(&[]);
    let all = ssd.exported_bytes();
    one(&mut ssd, Op::Trim, 0, all);
    ssd.kill_die(0).unwrap();
    ssd.check().unwrap();
    let Nand::Modern(modern) = &mut ssd.backend.nand else {
        panic!("it is modern");
    };
    modern.map.ftl.erase(0);
    assert!(ssd.check().is_err());
}
