//! Contents of the buffer that cannot be written to flash after dies have failed. Either flash has no room for them, or
//! they are a part of a *lost* page: a page whose flash copy is on a dead die.

use super::*;
use crate::nand::Cause;

/// Makes the buffer, which has 16 pages, evict `page`: reads 16 other pages.
fn push_out(ssd: &mut Ssd, page: u64) {
    for other in 0..16 {
        read(ssd, (page + 1 + other) % pages(ssd));
    }
}

/// Returns the status with which the request with this tag ended.
fn ended(ssd: &mut Ssd, tag: u64) -> Status {
    let mut done = ssd.completions().iter();
    done.find(|done| done.tag == tag).unwrap().status
}

/// All dies are dead, so acknowledged writes cannot reach flash. A flush or forced write that waits for them fails. If
/// none is waiting when they are lost, the next flush fails. Later flushes do not fail.
#[test]
fn flush_fails_once_after_loss_of_acknowledged_writes() {
    let none_lives = |more: &[(&str, &str)]| {
        let mut ssd = device(more);
        (0..DIES).for_each(|die| assert!(ssd.kill_die(die).is_ok()));
        ssd
    };
    let mut ssd = none_lives(&[]);
    assert_eq!(one(&mut ssd, Op::Write, 0, PAGE), Status::Ok);
    assert_eq!(flush(&mut ssd), Status::ReadOnly);
    assert!(ssd.is_read_only());
    assert_eq!(read(&mut ssd, 9), Status::Failed);
    assert_eq!(flush(&mut ssd), Status::Ok);
    let mut ssd = none_lives(&[]);
    assert_eq!(one(&mut ssd, Op::Write, PAGE, PAGE), Status::Ok);
    assert_eq!(forced(&mut ssd, 0, 2 * PAGE), Status::ReadOnly);
    assert_eq!(ssd.flash_report().pages_lost, 2);
    assert_eq!(flush(&mut ssd), Status::Ok);
    // Several pages are written, one of them twice.
    let mut ssd = none_lives(&[]);
    for page in 0..7 {
        submit(&mut ssd, Op::Write, page * PAGE, PAGE, page);
    }
    while ssd.flash_report().dirty_pages < 7 {
        assert!(ssd.step());
    }
    submit(&mut ssd, Op::Flush, 0, 0, 100);
    submit(&mut ssd, Op::Write, 0, 512, 101);
    run(&mut ssd);
    assert_eq!(ended(&mut ssd, 100), Status::ReadOnly);
    // The write-back is refused while no flush or forced write is waiting.
    for protected in ["false", "true"] {
        let mut ssd = none_lives(&[("buffer.power_loss_protection", protected)]);
        assert_eq!(one(&mut ssd, Op::Write, 0, PAGE), Status::Ok);
        push_out(&mut ssd, 0);
        assert_eq!(ssd.flash_report().pages_lost, 1);
        ssd.reset_metrics(None);
        assert_eq!(flush(&mut ssd), Status::ReadOnly);
        assert_eq!(flush(&mut ssd), Status::Ok);
    }
}

/// Returns a device with a buffer and a dead die 2, and a page that was on this die.
fn device_and_lost_page(more: &[(&str, &str)]) -> (Ssd, u64) {
    let mut ssd = device(more);
    ssd.kill_die(2).unwrap();
    let page = (0..pages(&ssd)).find(|&page| lies_on(&ssd, page, 2));
    (ssd, page.unwrap())
}

fn sector(ssd: &mut Ssd, op: Op, page: u64, sector: u64) -> Status {
    one(ssd, op, page * PAGE + 512 * sector, 512)
}

/// Processes events until `fills` flash reads that fill pages of the buffer have been executed or begun.
fn until_filling(ssd: &mut Ssd, fills: u64) {
    while ssd.flash_report().flash.count(Cause::Fill) < fills {
        assert!(ssd.step(), "nothing is read");
    }
}

/// While a lost page is being read from flash, for its write-back or for the host, one of its sectors is written to the
/// buffer. The read fails, and the sectors that were not written stay lost.
#[test]
fn a_write_during_the_read_of_a_lost_page_brings_nothing_back() {
    for (more, first) in [
        (&[][..], Op::Write),
        (&[("buffer.read_cache", "0.25")], Op::Write),
        (&[("buffer.read_cache", "0.25")], Op::Read),
        (&[("buffer.evict", "blocking")], Op::Write),
    ] {
        let (mut ssd, page) = device_and_lost_page(more);
        ssd.reset_metrics(None);
        if first == Op::Write {
            assert_eq!(sector(&mut ssd, Op::Write, page, 0), Status::Ok);
            for other in 1..20 {
                let at = (page + other) % pages(&ssd) * PAGE;
                submit(&mut ssd, Op::Write, at, PAGE, 1);
            }
        } else {
            submit(&mut ssd, Op::Read, page * PAGE, 512, 1);
        }
        until_filling(&mut ssd, 1);
        submit(&mut ssd, Op::Write, page * PAGE + 1024, 512, 99);
        // This sector is not in the buffer, so the host's read of it fails when the running flash read fails.
        submit(&mut ssd, Op::Read, page * PAGE + 2048, 512, 100);
        run(&mut ssd);
        assert_eq!(ended(&mut ssd, 99), Status::Ok, "{more:?}");
        assert_eq!(ended(&mut ssd, 100), Status::Failed, "{more:?}");
        assert_eq!(sector(&mut ssd, Op::Read, page, 5), Status::Failed);
        assert_eq!(sector(&mut ssd, Op::Read, page, 2), Status::Ok);
        if first == Op::Write {
            assert_eq!(sector(&mut ssd, Op::Read, page, 0), Status::Ok);
        }
        assert_eq!(flush(&mut ssd), Status::Failed);
        assert_eq!(flush(&mut ssd), Status::Ok);
        assert_eq!(read(&mut ssd, page), Status::Failed);
        assert!(lies_on(&ssd, page, 2));
        assert_eq!(one(&mut ssd, Op::Write, page * PAGE, PAGE), Status::Ok);
        assert_eq!(flush(&mut ssd), Status::Ok);
        assert_eq!(read(&mut ssd, page), Status::Ok);
    }
}

/// One sector of a lost page was written to the buffer. A read of another sector fails, and the written sector can
/// still be read.
#[test]
fn a_read_of_what_is_lost_leaves_what_was_written() {
    let (mut ssd, page) = device_and_lost_page(&[]);
    assert_eq!(sector(&mut ssd, Op::Write, page, 0), Status::Ok);
    assert_eq!(sector(&mut ssd, Op::Read, page, 5), Status::Failed);
    assert_eq!(sector(&mut ssd, Op::Read, page, 0), Status::Ok);
    assert_eq!(ssd.flash_report().pages_lost, 0);
    assert_eq!(ssd.power_cut().lost, [Lpn(page as u32)]);
    // After its other sectors are written, the page is complete.
    let mut whole = ssd.clone();
    let rest = one(&mut whole, Op::Write, page * PAGE + 512, PAGE - 512);
    assert_eq!((rest, flush(&mut whole)), (Status::Ok, Status::Ok));
    assert_eq!(read(&mut whole, page), Status::Ok);
    assert_eq!(flush(&mut ssd), Status::Failed);
    assert_eq!(ssd.flash_report().pages_lost, 1);
    assert_eq!(flush(&mut ssd), Status::Ok);
    assert_eq!(sector(&mut ssd, Op::Read, page, 0), Status::Failed);
}

/// A lost page is evicted after one of its sectors was written. The written sector is lost, because the rest of the
/// page cannot be read. The next flush or forced write therefore fails. Later ones do not fail.
#[test]
fn flush_or_forced_write_fails_once_after_a_part_is_lost() {
    for is_forced in [false, true] {
        let (mut ssd, page) = device_and_lost_page(&[]);
        assert_eq!(sector(&mut ssd, Op::Write, page, 0), Status::Ok);
        push_out(&mut ssd, page);
        assert_eq!(ssd.flash_report().pages_lost, 1);
        let at = (page + 1) * PAGE;
        let status = match is_forced {
            true => forced(&mut ssd, at, PAGE),
            false => flush(&mut ssd),
        };
        assert_eq!(status, Status::Failed);
        assert_eq!(forced(&mut ssd, at, PAGE), Status::Ok);
        assert_eq!(flush(&mut ssd), Status::Ok);
    }
}

/// After a power loss, protected memory is written to flash. If it has only one sector of a lost page, this sector is
/// lost, too, because the rest of the page cannot be read.
#[test]
fn a_cut_names_what_protected_memory_cannot_write() {
    let (mut ssd, page) = device_and_lost_page(&[("buffer.power_loss_protection", "true")]);
    assert_eq!(sector(&mut ssd, Op::Write, page, 0), Status::Ok);
    let other = (page + 1) % pages(&ssd) * PAGE;
    assert_eq!(one(&mut ssd, Op::Write, other, PAGE), Status::Ok);
    assert_eq!(ssd.power_cut().lost, []);
    let cut = ssd.cut_power(u64::MAX).unwrap();
    assert_eq!(cut.lost, [Lpn(page as u32)]);
    assert_eq!(flush(&mut ssd), Status::Ok);
    assert_eq!(ssd.cut_power(u64::MAX).unwrap().lost, []);
}

/// Under random requests and any policy, unwritten sectors of a lost page can never be read.
#[test]
fn unwritten_sectors_of_a_lost_page_are_never_read() {
    for (i, more) in [
        &[][..],
        &[("buffer.evict", "blocking")],
        &[("buffer.power_loss_protection", "true")],
        &[("buffer.policy", "fab"), ("buffer.read_cache", "0.25")],
        &[("buffer.policy", "bplru"), ("buffer.padding", "true")],
        &[("buffer.policy", "bplru"), ("buffer.evict", "blocking")],
        &[("buffer.policy", "cbm"), ("buffer.evict", "blocking")],
        &[
            ("buffer.policy", "co-active"),
            ("buffer.read_cache", "0.25"),
        ],
        &[("buffer.policy", "coop"), ("buffer.quiet_us", "100")],
    ]
    .iter()
    .enumerate()
    {
        for seed in crate::seeds(4) {
            never_read(more, 100 * i as u64 + seed);
        }
    }
}

fn never_read(more: &[(&str, &str)], seed: u64) {
    const SECTORS: u64 = PAGE / 512;
    let (mut ssd, first) = device_and_lost_page(more);
    let mut rng = Rng::new(seed);
    let pages = 48;
    let lost: Vec<bool> = (0..pages)
        .map(|page| lies_on(&ssd, first + page, 2))
        .collect();
    let mut written = vec![false; (pages * SECTORS) as usize];
    let mut asked: Vec<Option<Vec<u64>>> = Vec::new();
    let mut failed = 0;
    for tag in 0..1500 {
        let now = ssd.now() + Time(rng.below(80 * US));
        ssd.advance(now);
        let op = [Op::Read, Op::Write, Op::Flush][match rng.below(40) {
            0 => 2,
            n => n as usize % 2,
        }];
        let (at, sectors) = match rng.below(12) {
            0 => (rng.below(pages) * SECTORS, SECTORS),
            _ => (rng.below(pages * SECTORS - 3), 1 + rng.below(3)),
        };
        let touched = at as usize..(at + sectors) as usize;
        if op == Op::Write {
            written[touched.clone()].fill(true);
        }
        let lacks = |at: &usize| lost[at / SECTORS as usize] && !written[*at];
        let lacking: Vec<u64> = touched.filter(lacks).map(|at| at as u64).collect();
        asked.push((op == Op::Read && !lacking.is_empty()).then_some(lacking));
        match op {
            Op::Flush => submit(&mut ssd, op, 0, 0, tag),
            _ => submit(&mut ssd, op, first * PAGE + at * 512, sectors * 512, tag),
        }
        for done in ssd.completions().drain(..) {
            // A read of sectors that are lost and not written again must fail. Sectors may be written before the read
            // completes.
            if let Some(lacking) = &asked[done.tag as usize] {
                let still = lacking.iter().any(|&at| !written[at as usize]);
                let is_read = done.status == Status::Ok;
                assert!(!still || !is_read, "{more:?} {seed}: {lacking:?}");
            }
            failed += u64::from(done.status == Status::Failed);
        }
    }
    assert!(failed > 20, "{more:?}: {failed}");
    run(&mut ssd);
    ssd.cut_power(u64::MAX).unwrap();
    for page in 0..pages {
        let of_page = &written[(page * SECTORS) as usize..][..SECTORS as usize];
        if lost[page as usize] && of_page.iter().any(|written| !written) {
            assert!(lies_on(&ssd, first + page, 2), "{more:?} {seed}: {page}");
        }
    }
}

/// Policies that avoid chips in or near GC treat a dead die as one that never collects, and evict its pages like
/// others.
#[test]
fn pages_of_a_dead_die_leave_like_others() {
    let mut stay = Vec::new();
    for more in [
        &[("buffer.policy", "ecr")][..],
        &[("buffer.policy", "ecr"), ("buffer.cqct", "exact")],
        &[("buffer.policy", "ecr-eps")],
        &[("buffer.policy", "cda-gc-stager")],
        &[
            ("buffer.policy", "gcar-lru"),
            ("buffer.gc_lookahead", "true"),
        ],
    ] {
        let (mut ssd, page) = device_and_lost_page(more);
        assert_eq!(one(&mut ssd, Op::Write, page * PAGE, PAGE), Status::Ok);
        for other in 0..200 {
            if !lies_on(&ssd, other, 2) {
                assert_eq!(one(&mut ssd, Op::Write, other * PAGE, PAGE), Status::Ok);
            }
        }
        stay.extend(lies_on(&ssd, page, 2).then_some(more));
        if ssd.backend.nand.drain_time(2, true, ssd.now()) > Time::ZERO {
            stay.push(&[("it", "is said to have work to do")]);
        }
    }
    assert!(stay.is_empty(), "{stay:?}");
}
