//! A failed member is replaced. The new member is rebuilt while host requests continue.

use super::{array, paced, pages, until_idle};
use flashtwin::{Array, ArrayEvent, MemberError, Op, Time};

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

/// Checks what docs/arrays.md states about limited rebuilds. With `--nocapture`, the figures are printed.
#[test]
fn a_limited_rebuild_keeps_its_rate_and_delays_the_host_less() {
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

/// The host writes during a rebuild. In rows that are already rebuilt, writes are executed as in a complete array.
#[test]
fn writes_continue_during_a_rebuild() {
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

/// Returns three numbers of a rebuild: read requests to members, write requests to members, and pages written.
fn requests_of_a_rebuild(level: &str, members: &str, chunk: &str) -> (usize, usize, u64) {
    let mut device = array(level, members, &[("array.chunk", chunk)]);
    device.fill_sequential();
    device.fail_member(0).unwrap();
    device.set_log(true);
    device.replace_member(0).unwrap();
    until_idle(&mut device);
    let sent = |log: &[ArrayEvent], what: Op| {
        let of = |event: &&ArrayEvent| matches!(event, ArrayEvent::Sent { op, .. } if *op == what);
        log.iter().filter(of).count()
    };
    let log = device.take_log();
    let chunk = u64::from(device.spec().chunk_pages);
    let pages = device.spec().member_pages() / chunk * chunk;
    assert_eq!(device.rebuilds()[0].until, Some(device.now()));
    assert_eq!(device.rebuilds()[0].pages_written, pages);
    assert_eq!(device.raid_stats().pages_rebuilt, pages);
    assert_eq!(device.raid_stats().member_pages_written, pages);
    assert_eq!(
        device.raid_stats().member_pages_read,
        device.raid_stats().pages_read_to_rebuild
    );
    (sent(&log, Op::Read), sent(&log, Op::Write), pages)
}

/// If a row has chunks of 4 KiB, 16 rows are rebuilt together. One request to each of the other members reads them, and
/// one request writes them to the new member.
#[test]
fn adjacent_rows_are_rebuilt_together() {
    let (reads, writes, pages) = requests_of_a_rebuild("raid5", "harmonia*4", "4 KiB");
    let stretches = (pages as usize).div_ceil(16);
    assert_eq!((reads, writes), (3 * stretches, stretches));
    let (reads, writes, pages) = requests_of_a_rebuild("raid5", "harmonia*4", "64 KiB");
    let rows = pages as usize / 16;
    assert_eq!((reads, writes), (3 * rows, rows));
}

/// Rebuilds member 0 of a RAID-6 array of six members. In each row, one page is not needed: lost data and a lost P are
/// computed without Q, and a lost Q is computed without P. Therefore one of the other members is not read in each row:
/// in six consecutive rows, these are members 5, 5, 4, 3, 2 and 1. A read of consecutive pages ends before a row in
/// which its member is not read.
#[test]
fn a_rebuild_reads_only_the_pages_it_needs() {
    const LEFT_OUT: [usize; 6] = [5, 5, 4, 3, 2, 1];
    let (reads, writes, pages) = requests_of_a_rebuild("raid6", "harmonia*6", "4 KiB");
    let pages = pages as usize;
    let mut runs = 0;
    for row in 0..pages {
        for member in (1..6).filter(|&member| member != LEFT_OUT[row % 6]) {
            let continues = row % 16 != 0 && member != LEFT_OUT[(row - 1) % 6];
            runs += usize::from(!continues);
        }
    }
    assert_eq!((reads, writes), (runs, pages.div_ceil(16)));
}

#[test]
fn a_rebuild_of_more_rows_at_a_time_is_faster() {
    let times = ["1", "8"].map(|depth| {
        let mut device = array("raid5", "harmonia*3", &[("array.rebuild_depth", depth)]);
        device.fill_sequential();
        device.fail_member(2).unwrap();
        mended(device, 2).1
    });
    assert!(times[1] * 4 < times[0] * 3, "{times:?}");
}

/// A member must not fail if data would be lost. A member that is still being rebuilt may fail, because the array does
/// not need this member.
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
