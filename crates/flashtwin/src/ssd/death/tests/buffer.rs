//! What a buffer holds for dead dies: parts of lost pages, and what finds no room any more.

use super::*;

/// Fills a buffer of 16 pages with others than `page`, which it reads.
fn push_out(ssd: &mut Ssd, page: u64) {
    for other in 0..16 {
        read(ssd, (page + 1 + other) % pages(ssd));
    }
}

/// How the request with this tag has ended.
fn ended(ssd: &mut Ssd, tag: u64) -> Status {
    let mut done = ssd.completions().iter();
    done.find(|done| done.tag == tag).unwrap().status
}

/// What a buffer has taken and cannot be written any more: whoever flushes hears of it, and so does a forced
/// write; who flushes later does once, if nobody did before.
#[test]
fn what_was_taken_and_refused_is_told() {
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
    // Several pages, one of which is written again.
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
    // Nobody waits when it is refused.
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

/// A device with a buffer whose die 2 is dead, and a page that lay there.
fn device_and_lost_page(more: &[(&str, &str)]) -> (Ssd, u64) {
    let mut ssd = device(more);
    ssd.kill_die(2).unwrap();
    let page = (0..pages(&ssd)).find(|&page| lies_on(&ssd, page, 2));
    (ssd, page.unwrap())
}

fn sector(ssd: &mut Ssd, op: Op, page: u64, sector: u64) -> Status {
    one(ssd, op, page * PAGE + 512 * sector, 512)
}

/// The page leaves by itself: the next flush or forced write says that it is lost, once.
#[test]
fn a_part_that_is_dropped_is_told() {
    for is_forced in [false, true] {
        let (mut ssd, page) = device_and_lost_page(&[]);
        assert_eq!(sector(&mut ssd, Op::Write, page, 0), Status::Ok);
        push_out(&mut ssd, page);
        assert_eq!(ssd.flash_report().pages_lost, 1);
        let at = (page + 1) * PAGE;
        let told = match is_forced {
            true => forced(&mut ssd, at, PAGE),
            false => flush(&mut ssd),
        };
        assert_eq!(told, Status::Failed);
        assert_eq!(forced(&mut ssd, at, PAGE), Status::Ok);
        assert_eq!(flush(&mut ssd), Status::Ok);
    }
}
