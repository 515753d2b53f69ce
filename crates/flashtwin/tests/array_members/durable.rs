//! Flush, forced unit access, and the data that an array loses in a power loss.

use super::{array, do_alone, pages, request, until_idle};
use flashtwin::{Array, Lpn, Op, Rng, Time};

const VOLATILE_MEMBERS: [(&str, &str); 2] = [
    ("member.buffer.policy", "lru"),
    ("member.buffer.capacity", "256 KiB"),
];

const PROTECTED_MEMBERS: [(&str, &str); 3] = [
    ("member.buffer.policy", "lru"),
    ("member.buffer.capacity", "256 KiB"),
    ("member.buffer.power_loss_protection", "true"),
];

const OWN_BUFFER: [(&str, &str); 2] = [("buffer.policy", "lru"), ("buffer.capacity", "128 KiB")];

const OWN_PROTECTED: [(&str, &str); 3] = [
    ("buffer.policy", "lru"),
    ("buffer.capacity", "128 KiB"),
    ("buffer.power_loss_protection", "true"),
];

fn lost(array: &Array) -> Vec<u32> {
    array.power_cut().lost.iter().map(|lpn| lpn.0).collect()
}

/// When a write completes, its data are only in the members' buffers. When a later flush completes, the data are on
/// flash.
#[test]
fn a_flush_reaches_the_members() {
    for (level, members) in [
        ("raid0", "harmonia*2"),
        ("raid1", "harmonia*2"),
        ("raid10", "harmonia*4"),
        ("raid5", "harmonia*3"),
        ("raid6", "harmonia*5"),
        ("swan", "harmonia*4"),
    ] {
        let mut device = array(level, members, &VOLATILE_MEMBERS);
        device.fill_sequential();
        do_alone(&mut device, &request(Op::Write, 5, 3));
        assert_eq!(lost(&device), [5, 6, 7], "{level}");
        let flushed = do_alone(&mut device, &request(Op::Flush, 0, 0));
        assert_eq!(lost(&device), [0; 0], "{level}");
        let took = flushed.done - flushed.arrival;
        assert!(took >= Time::from_us(200), "{level}: a program at least");
        assert_eq!(flushed.breakdown.total(), took);
        let again = do_alone(&mut device, &request(Op::Flush, 0, 0));
        assert_eq!(again.done, again.arrival, "{level}: nothing left to do");
    }
}

#[test]
fn a_flush_is_free_where_nothing_can_be_lost() {
    for more in [&[][..], &PROTECTED_MEMBERS[..]] {
        let mut device = array("raid5", "harmonia*3", more);
        device.fill_sequential();
        do_alone(&mut device, &request(Op::Write, 5, 3));
        assert_eq!(lost(&device), [0; 0]);
        let flushed = do_alone(&mut device, &request(Op::Flush, 0, 0));
        assert_eq!(flushed.done, flushed.arrival);
    }
}

#[test]
fn a_forced_write_is_on_flash_when_it_is_done() {
    for level in ["raid0", "raid1", "raid5"] {
        for own in [&[][..], &OWN_BUFFER[..]] {
            let set = [&VOLATILE_MEMBERS[..], own].concat();
            let mut device = array(level, "harmonia*3", &set);
            device.fill_sequential();
            do_alone(&mut device, &request(Op::Write, 100, 2));
            let mut forced = request(Op::Write, 5, 3);
            forced.fua = true;
            let done = do_alone(&mut device, &forced);
            assert!(done.done - done.arrival >= Time::from_us(200));
            assert_eq!(lost(&device), [100, 101], "{level} {own:?}");
        }
    }
}

/// A power loss directly after a flush loses nothing, whatever has happened before.
#[test]
fn nothing_is_lost_after_a_flush() {
    for seed in flashtwin::seeds(3) {
        for (level, members) in [("raid1", "harmonia*3"), ("raid5", "harmonia*4")] {
            for own in [&[][..], &OWN_BUFFER[..]] {
                for fail in [false, true] {
                    let set = [&VOLATILE_MEMBERS[..], own].concat();
                    let mut device = array(level, members, &set);
                    device.fill_sequential();
                    let mut rng = Rng::new(seed);
                    for tag in 0..600 {
                        let first = rng.below(pages(&device) / 8);
                        let op = [Op::Read, Op::Write, Op::Write][rng.below(3) as usize];
                        let request = request(op, first, 1 + rng.below(6));
                        device.submit(device.now(), &request, tag).unwrap();
                        for _ in 0..rng.below(30) {
                            device.step();
                        }
                        if fail && tag == 300 {
                            device.fail_member(1).unwrap();
                        }
                        if tag % 50 == 0 {
                            while device.outstanding() > 0 {
                                device.step();
                            }
                            device.completions().clear();
                            do_alone(&mut device, &super::request(Op::Flush, 0, 0));
                            assert_eq!(lost(&device), [0; 0], "{level} {own:?} {tag}");
                        }
                    }
                }
            }
        }
    }
}

/// The array's buffer survives power losses, but the buffers of its members do not. When the array evicts a page, it
/// forces the page through the member's buffer to flash. Nothing is therefore lost at any time, even without a flush.
#[test]
fn evictions_from_a_protected_buffer_are_durable() {
    for seed in flashtwin::seeds(3) {
        let set = [&VOLATILE_MEMBERS[..], &OWN_PROTECTED[..]].concat();
        let mut device = array("raid5", "harmonia*4", &set);
        device.fill_sequential();
        let mut rng = Rng::new(seed);
        for tag in 0..800 {
            let write = request(Op::Write, rng.below(pages(&device) - 4), 4);
            device.submit(device.now(), &write, tag).unwrap();
            for _ in 0..rng.below(30) {
                device.step();
                assert_eq!(lost(&device), [0; 0], "{tag}");
            }
        }
        until_idle(&mut device);
        device.completions().clear();
        let flushed = do_alone(&mut device, &request(Op::Flush, 0, 0));
        assert_eq!(flushed.done, flushed.arrival);
    }
}

/// A page of a missing member is reconstructed from its stripe. It is therefore lost if any other page of the stripe
/// is lost.
#[test]
fn a_missing_page_is_lost_with_any_page_of_its_stripe() {
    let mut device = array("raid5", "harmonia*3", &VOLATILE_MEMBERS);
    device.fill_sequential();
    // In the left-symmetric layout, pages 0 and 1 are in stripe 0, on members 0 and 1.
    device.fail_member(1).unwrap();
    do_alone(&mut device, &request(Op::Write, 0, 1));
    assert_eq!(device.power_cut().lost, [Lpn(0), Lpn(1)]);
    // In a mirror, page 1 is in no stripe with page 0, and page 1 has another copy.
    let mut device = array("raid1", "harmonia*2", &VOLATILE_MEMBERS);
    device.fill_sequential();
    device.fail_member(1).unwrap();
    do_alone(&mut device, &request(Op::Write, 0, 1));
    assert_eq!(device.power_cut().lost, [Lpn(0)]);
}
