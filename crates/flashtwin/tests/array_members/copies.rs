//! Mirrors: the choice of the copy from which a page is read.

use super::{array, do_alone, request, until_idle};
use flashtwin::{Array, Cause, Op};

fn reads(array: &Array) -> Vec<u64> {
    let reports = array.member_reports();
    reports
        .iter()
        .map(|r| r.flash.count(Cause::HostRead))
        .collect()
}

/// Simultaneous reads are distributed evenly over the copies.
#[test]
fn reads_go_to_the_member_with_the_fewest_requests() {
    for (level, members, pages, want) in [
        ("raid1", "harmonia*2", 1, vec![30, 30]),
        ("raid1", "harmonia*3", 1, vec![20, 20, 20]),
        // Page 0 is on the first pair of members.
        ("raid10", "harmonia*4", 1, vec![30, 30, 0, 0]),
        ("raid10", "harmonia*4", 2, vec![30, 30, 30, 30]),
    ] {
        let mut device = array(level, members, &[]);
        device.fill_sequential();
        for tag in 0..60 {
            let read = request(Op::Read, 0, pages);
            device.submit(device.now(), &read, tag).unwrap();
        }
        until_idle(&mut device);
        assert_eq!(reads(&device), want, "{level} of {members}");
    }
}

/// Consecutive pages of one request are read from one copy, with one request to the copy's member. An idle array reads
/// the first copy.
#[test]
fn one_request_is_not_torn_apart() {
    let mut device = array("raid1", "harmonia*2", &[]);
    device.fill_sequential();
    for first in 0..5 {
        do_alone(&mut device, &request(Op::Read, first * 8, 8));
    }
    assert_eq!(reads(&device), [40, 0]);
}

#[test]
fn missing_copies_are_not_read() {
    let mut device = array("raid1", "harmonia*3", &[("array.rebuild_mib_per_s", "1")]);
    device.fill_sequential();
    device.fail_member(0).unwrap();
    device.replace_member(0).unwrap();
    device.fail_member(2).unwrap();
    device.reset_metrics(None);
    for tag in 0..10 {
        let read = request(Op::Read, 2000, 1);
        device.submit(device.now(), &read, tag).unwrap();
    }
    while device.outstanding() > 0 {
        device.step();
    }
    let [first, second, third] = reads(&device)[..] else {
        panic!("three members");
    };
    assert_eq!((first, third), (0, 0));
    assert!(second >= 10, "the rebuild reads there, too");
}
