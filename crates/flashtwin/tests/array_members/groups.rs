//! Arrays of groups (SWAN). The front group receives the writes, while the other groups collect.

use super::loss::through_a_loss;
use super::{array, do_alone, paced, pages, request, until_idle};
use flashtwin::{Array, Cause, MemberError, Op, Rng, StateError, Status, Time};

fn groups(more: &[(&str, &str)]) -> Array {
    array("swan", "harmonia*4", more)
}

fn saved(array: &Array) -> Vec<u8> {
    let mut bytes = Vec::new();
    array.save_state(&mut bytes).unwrap();
    bytes
}

/// All pages of the volume are valid, and more writes arrive at once than there is room for. Some writes wait, and all
/// complete.
#[test]
fn writes_that_wait_for_room_complete() {
    for seed in flashtwin::seeds(3) {
        for more in [
            &[("array.spare_percent", "6")][..],
            &[
                ("array.spare_percent", "6"),
                ("array.coordination", "ideal"),
            ],
            &[("array.segment", "64 KiB"), ("array.spare_percent", "3")],
            &[
                ("buffer.capacity", "1 MiB"),
                ("buffer.policy", "gcar-bplru"),
            ],
        ] {
            let mut device = groups(more);
            device.fill_steady(1);
            let mut rng = Rng::new(seed);
            for tag in 0..1000 {
                let first = rng.below(pages(&device) - 8);
                let write = request(Op::Write, first, 8);
                device.submit(device.now(), &write, tag).unwrap();
            }
            until_idle(&mut device);
            assert_eq!(device.completions().len(), 1000, "{more:?}");
            assert_eq!(device.outstanding(), 0);
            let stats = device.raid_stats();
            assert!(
                stats.pages_moved > 0 && stats.segments_trimmed > 10,
                "{stats:?}"
            );
        }
    }
}

/// The array trims whole blocks of its members. The members' own collections therefore move hardly any pages.
#[test]
fn members_have_whole_blocks_to_erase() {
    let mut device = groups(&[]);
    device.fill_steady(1);
    device.reset_metrics(None);
    paced(&mut device, Op::Write, 20_000, Time::from_us(100), 3);
    until_idle(&mut device);
    let stats = device.raid_stats();
    assert!(stats.pages_moved > 10_000, "{stats:?}");
    // Groups have two members, so each page of data is written with one page of parity.
    let written = stats.data_pages_written + stats.pages_moved;
    assert!(stats.parity_pages_written.abs_diff(written) <= 2);
    let flash = device.flash_report().flash;
    assert!(flash.count(Cause::Erase) > 1000);
    assert!(flash.count(Cause::GcMove) < stats.member_pages_written / 50);
}

#[test]
fn a_trimmed_page_needs_no_move() {
    let mut device = groups(&[]);
    device.fill_sequential();
    let all = pages(&device);
    do_alone(&mut device, &request(Op::Trim, 0, all));
    paced(&mut device, Op::Write, 2000, Time::from_us(200), 3);
    until_idle(&mut device);
    let stats = device.raid_stats();
    assert!(stats.segments_trimmed > 0);
    assert!(stats.pages_moved < 10, "{stats:?}");
    let before = stats.member_pages_read;
    do_alone(&mut device, &request(Op::Trim, 0, all));
    do_alone(&mut device, &request(Op::Read, 0, 16));
    assert_eq!(device.raid_stats().member_pages_read, before);
}

/// When a member fails, data of its group are lost. (The model does not let a group work without one of its members.)
#[test]
fn a_failed_member_is_data_lost() {
    for seed in flashtwin::seeds(2) {
        for more in [
            &[][..],
            &[("member.link.bus_ns_per_sector", "0")],
            &[("buffer.capacity", "256 KiB"), ("buffer.policy", "bplru")],
            &[("array.spare_percent", "6")],
        ] {
            let mut device = groups(more);
            device.fill_steady(1);
            assert_eq!(
                device.fail_member(1),
                Err(MemberError::Needed { member: 1 })
            );
            let [ok, failed] = through_a_loss(&mut device, &[1], seed);
            assert!(ok > 400 && failed >= 1000, "{ok} {failed}");
            let read = do_alone(&mut device, &request(Op::Read, 0, 1));
            assert_eq!(read.status, Status::Failed);
        }
    }
}

/// When a member accepts no more writes, the array refuses all writes. No request waits forever.
#[test]
fn a_worn_member_ends_all_writes() {
    for seed in flashtwin::seeds(3) {
        let mut device = groups(&[("member.wear.erase_limit", "4")]);
        device.fill_sequential();
        let mut rng = Rng::new(seed);
        let mut refused = 0;
        for tag in 0..60_000 {
            let first = rng.below(pages(&device) - 2);
            let op = [Op::Write, Op::Write, Op::Read, Op::Trim][rng.below(4) as usize];
            device
                .submit(device.now(), &request(op, first, 2), tag)
                .unwrap();
            while device.outstanding() > 32 {
                assert!(device.step(), "a request without a response");
            }
            refused += device
                .completions()
                .drain(..)
                .filter(|c| c.status != Status::Ok)
                .count();
        }
        until_idle(&mut device);
        assert_eq!(device.outstanding(), 0);
        assert!(device.is_read_only() && refused > 1000, "{refused}");
        let read = do_alone(&mut device, &request(Op::Read, 0, 1));
        assert_eq!(read.status, Status::Ok);
    }
}

#[test]
fn a_loaded_array_of_groups_continues_as_the_saved_one() {
    let make = || groups(&[("array.segment", "128 KiB")]);
    let mut device = make();
    device.fill_steady(3);
    paced(&mut device, Op::Write, 3000, Time::from_us(300), 1);
    until_idle(&mut device);
    let bytes = saved(&device);
    let mut other = make();
    other.load_state(&mut &bytes[..]).unwrap();
    assert_eq!(saved(&other), bytes);
    let times = [&mut device, &mut other].map(|device| {
        let every = Time::from_us(300);
        let writes = paced(device, Op::Write, 3000, every, 7);
        let reads = paced(device, Op::Read, 300, every, 8);
        until_idle(device);
        [writes, reads].concat()
    });
    assert_eq!(times[0], times[1]);
    assert_eq!(saved(&device), saved(&other));

    // In this invalid state, the volume has pages, but the members are empty.
    let mut empty = make();
    let nothing = saved(&empty);
    let volume = |bytes: &[u8]| bytes.len() - 4 * (pages(&device) as usize * 100 / 80);
    let mut mixed = nothing.clone();
    let tail = volume(&bytes);
    mixed.truncate(volume(&nothing));
    mixed.extend(&bytes[tail..]);
    let refused: Result<(), StateError> = empty.load_state(&mut &mixed[..]);
    assert!(refused.is_err());
    assert_eq!(saved(&empty), nothing);
}
