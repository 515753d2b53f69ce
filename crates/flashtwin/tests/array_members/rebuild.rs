//! A failed member is replaced: its rows come back while the host goes on.

use super::{array, paced, pages, until_idle};
use flashtwin::{Array, MemberError, Op, Time};

fn percentile_99(times: &[Time]) -> Time {
    times[times.len() * 99 / 100]
}

fn mended(mut array: Array, member: usize) -> (Array, Time) {
    let start = array.now();
    array.replace_member(member).unwrap();
    until_idle(&mut array);
    assert_eq!(array.rebuild_progress(), None);
    let took = array.now() - start;
    (array, took)
}

/// The figures of docs/arrays.md: shown with `--nocapture`.
#[test]
fn a_limited_rebuild_spares_the_host_and_takes_as_long_as_it_says() {
    let every = Time::from_us(100);
    let mut shown = Vec::new();
    let mut by_rate = Vec::new();
    for rate in ["0", "40", "10"] {
        let set = [
            ("array.chunk", "64 KiB"),
            ("array.rebuild_depth", "4"),
            ("array.rebuild_mib_per_s", rate),
        ];
        let mut device = array("raid5", "harmonia*4", &set);
        device.fill_sequential();
        let healthy = percentile_99(&paced(&mut device, Op::Read, 3000, every, 1));
        device.fail_member(1).unwrap();
        let degraded = percentile_99(&paced(&mut device, Op::Read, 3000, every, 2));
        device.replace_member(1).unwrap();
        let start = device.now();
        let mut times = Vec::new();
        let mut seen = 0;
        while let Some((done, total)) = device.rebuild_progress() {
            assert!(done >= seen && done < total, "{done} of {total} rows");
            seen = done;
            times.extend(paced(&mut device, Op::Read, 100, every, done));
        }
        let took = device.now() - start;
        times.sort_unstable();
        let rebuilding = percentile_99(&times);
        let rebuilt = device.raid_stats().pages_rebuilt;
        let rows = device.spec().member_pages() / 16;
        assert_eq!(rebuilt, rows * 16);
        if let Ok(limit @ 1..) = rate.parse::<u64>() {
            let least = (rebuilt * 4096) as f64 / (limit << 20) as f64;
            let ratio = took.as_s() / least;
            assert!((0.98..1.1).contains(&ratio), "{ratio} of the time");
        }
        assert!(degraded > healthy);
        shown.push(format!(
            "{rate:>4} MiB/s: p99 {healthy} healthy, {degraded} degraded, {rebuilding} for {took}"
        ));
        by_rate.push((rebuilding, took, degraded));
    }
    println!("{}", shown.join("\n"));
    assert!(by_rate[0].0 > by_rate[1].0 * 2, "{shown:#?}");
    assert!(by_rate[1].0 >= by_rate[2].0, "{shown:#?}");
    assert!(by_rate[0].1 < by_rate[1].1 && by_rate[1].1 < by_rate[2].1);
}

/// The same, with the host writing: rows that are rebuilt are written as any other.
#[test]
fn writes_go_on_while_a_member_is_rebuilt() {
    for (level, members) in [
        ("raid1", "harmonia*2"),
        ("raid10", "harmonia*4"),
        ("raid6", "harmonia*5"),
    ] {
        let mut device = array(level, members, &[("array.rebuild_mib_per_s", "30")]);
        device.fill_sequential();
        device.fail_member(0).unwrap();
        device.replace_member(0).unwrap();
        let times = paced(&mut device, Op::Write, 500, Time::from_us(200), 4);
        assert_eq!(times.len(), 500);
        assert!(device.rebuild_progress().is_some(), "{level}");
        until_idle(&mut device);
        assert_eq!(device.rebuild_progress(), None);
        let all = device.spec().member_pages();
        assert_eq!(device.raid_stats().pages_rebuilt, all, "{level}");
    }
}

#[test]
fn more_rows_at_a_time_are_faster() {
    let times = ["1", "8"].map(|depth| {
        let mut device = array("raid5", "harmonia*3", &[("array.rebuild_depth", depth)]);
        device.fill_sequential();
        device.fail_member(2).unwrap();
        mended(device, 2).1
    });
    assert!(times[1] * 2 < times[0], "{times:?}");
}

/// Without a member too many, data would be lost: it may not fail. One that is being rebuilt is not
/// there yet, and may.
#[test]
fn as_many_members_may_fail_as_there_is_redundancy_for() {
    let mut device = array("raid5", "harmonia*4", &[]);
    device.fill_sequential();
    let needed = |member| Err(MemberError::Needed { member });
    assert_eq!(
        device.replace_member(2),
        Err(MemberError::Present { member: 2 })
    );
    device.fail_member(2).unwrap();
    assert_eq!(device.fail_member(0), needed(0));
    device.replace_member(2).unwrap();
    device.advance(Time::from_ms(5));
    assert!(device.rebuild_progress().is_some_and(|(done, _)| done > 0));
    assert_eq!(device.fail_member(0), needed(0));
    device.fail_member(2).unwrap();
    assert_eq!(device.rebuild_progress(), None);
    let (mut device, _) = mended(device, 2);
    device.fail_member(0).unwrap();

    let mut device = array("raid6", "harmonia*5", &[]);
    device.fail_member(1).unwrap();
    device.replace_member(1).unwrap();
    device.fail_member(4).unwrap();
    assert_eq!(device.fail_member(0), needed(0));
    let (mut device, _) = mended(device, 4);
    device.fail_member(0).unwrap();

    let mut device = array("raid10", "harmonia*4", &[]);
    device.fail_member(1).unwrap();
    device.replace_member(1).unwrap();
    assert_eq!(device.fail_member(0), needed(0));
    device.fail_member(2).unwrap();

    let mut device = array("raid0", "harmonia*2", &[]);
    assert_eq!(device.fail_member(0), needed(0));
    let unknown = MemberError::Unknown {
        member: 7,
        members: 2,
    };
    assert_eq!(device.replace_member(7), Err(unknown));
    assert!(pages(&device) > 0);
}
