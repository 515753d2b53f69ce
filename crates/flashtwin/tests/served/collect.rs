//! Orders to a running device to collect garbage: the dies that collect, the number of blocks collected, and the
//! absence of other effects.

use flashtwin::metrics::FlashReport;
use flashtwin::{
    Array, Backend, Cause, CollectError, Device, MemberError, Op, Request, Rng, Ssd, Time,
};

use super::{array, ssd};

/// Returns the chips that have spent time in GC.
fn collected(report: &FlashReport) -> Vec<usize> {
    let times = report.gc_time.iter().enumerate();
    let some = times.filter(|(_, &time)| time > Time::ZERO);
    some.map(|(chip, _)| chip).collect()
}

/// Orders an idle device to collect. Returns the number of erases, and the chips that collected.
fn order(ssd: &mut Ssd, die: Option<u32>) -> (u64, Vec<usize>) {
    ssd.reset_metrics(None);
    let mapped = ssd.pages_mapped();
    let dies = ssd.spec().geometry.chips;
    assert_eq!(ssd.collect(die), Ok(if die.is_some() { 1 } else { dies }));
    while ssd.step() {}
    ssd.check().unwrap();
    assert_eq!(ssd.pages_mapped(), mapped);
    let report = ssd.flash_report();
    (report.flash.count(Cause::Erase), collected(&report))
}

#[test]
fn every_pool_collects_one_block() {
    let all = vec![0, 1, 2, 3];
    for (name, more, pools) in [
        // Each plane is a pool.
        ("demo", &[][..], 4),
        ("demo", &[("nand.parallel_units", "1")], 4),
        ("gcar", &[], 8),
        ("harmonia", &[], 4),
        ("nvme-tlc", &[("geometry.channels", "2")], 1),
        (
            "sata-tlc",
            &[
                ("geometry.channels", "2"),
                ("gc.preemptible", "true"),
                ("gc.low_percent", "2"),
            ],
            1,
        ),
    ] {
        let mut ssd = ssd(name, more);
        assert_eq!(
            order(&mut ssd, None),
            (0, vec![]),
            "{name}: nothing to collect"
        );
        ssd.fill_steady(1);
        assert_eq!(order(&mut ssd, None), (4 * pools, all.clone()), "{name}");
        assert_eq!(order(&mut ssd, Some(2)), (pools, vec![2]), "{name}");
        let beyond = CollectError::UnknownDie { die: 4, dies: 4 };
        assert_eq!(ssd.collect(Some(4)), Err(beyond));
        assert!(!ssd.step(), "{name}: what is refused does nothing");
    }
}

/// An order to any die collects one whole superblock: a block of every die.
#[test]
fn a_superblock_is_collected_whole() {
    let more = [
        ("geometry.channels", "2"),
        ("gc.granularity", "superblock"),
        ("geometry.pages_per_block", "64"),
    ];
    let mut ssd = ssd("nvme-tlc", &more);
    assert_eq!(order(&mut ssd, None), (0, vec![]));
    ssd.fill_steady(1);
    for die in [None, Some(3)] {
        assert_eq!(order(&mut ssd, die), (4, vec![0, 1, 2, 3]), "{die:?}");
    }
}

#[test]
fn a_device_that_takes_no_orders_reports_it() {
    let mut ssd = ssd("demo", &[("ftl.kind", "dftl"), ("buffer", "none")]);
    let message = ssd.collect(None).unwrap_err().to_string();
    assert!(
        message.contains("demo cannot be told to collect"),
        "{message}"
    );
}

/// The host reads and writes random pages while all dies are repeatedly ordered to collect. Every request completes,
/// each die executes its orders in spite of the requests, and no page is lost.
#[test]
fn host_requests_continue_during_a_forced_collection() {
    for seed in flashtwin::seeds(3) {
        let mut ssd = ssd(
            "nvme-tlc",
            &[("geometry.channels", "2"), ("buffer", "none")],
        );
        ssd.fill_sequential();
        let pages = ssd.pages_mapped();
        collect_between_requests(&mut ssd, seed, |ssd| assert_eq!(ssd.collect(None), Ok(4)));
        ssd.check().unwrap();
        assert_eq!(ssd.pages_mapped(), pages);
        assert!(ssd.flash_report().flash.count(Cause::Erase) >= 4 * 9);
        let bare = ("member.link.bus_ns_per_sector", "0");
        for (level, more) in [("raid0", &[bare][..]), ("raid5", &[])] {
            let mut array = array(level, "harmonia*4", more);
            array.fill_sequential();
            collect_between_requests(&mut array, seed, |array| {
                assert_eq!(array.collect(None, None), Ok(16));
            });
            let erases = array.flash_report().flash.count(Cause::Erase);
            assert!(erases >= 16 * 5, "{level}: {erases}");
        }
    }
}

/// Submits 2000 requests, and calls `order` ten times in between.
fn collect_between_requests<B: Backend>(
    device: &mut Device<B>,
    seed: u64,
    order: impl Fn(&mut Device<B>),
) {
    device.reset_metrics(None);
    let mut rng = Rng::new(seed);
    let pages = device.exported_bytes() / 4096;
    let start = device.now();
    for tag in 0..2000 {
        let now = start + Time::from_us(100 * tag);
        device.advance(now);
        if tag % 200 == 199 {
            // Since the last order, the host has written enough that a collection gains space.
            order(device);
        }
        let request = Request {
            arrival: now,
            offset: rng.below(pages) * 4096,
            bytes: 4096,
            op: [Op::Read, Op::Write][rng.below(2) as usize],
            fua: false,
            ..Request::default()
        };
        device.submit(now, &request, tag).unwrap();
    }
    while device.step() {}
    assert_eq!(device.completions().len(), 2000);
}

/// Returns the members with at least one chip that collected.
fn members(array: &Array) -> Vec<usize> {
    let reports = array.member_reports().into_iter().enumerate();
    let some = reports.filter(|(_, report)| !collected(report).is_empty());
    some.map(|(member, _)| member).collect()
}

/// Orders one member or all members to collect, in four kinds of arrays: striping over bare members (their flash events
/// are in the array's own queue), striping over other members, an array with redundancy, and an array with a
/// coordinator.
#[test]
fn members_collect_as_ordered() {
    let turns = ("array.coordination", "turns");
    let bare = ("member.link.bus_ns_per_sector", "0");
    for (level, more) in [
        ("raid0", &[bare][..]),
        ("raid0", &[]),
        ("raid5", &[]),
        ("raid5", &[turns]),
    ] {
        let mut array = array(level, "harmonia*4", more);
        array.fill_steady(1);
        array.reset_metrics(None);
        assert_eq!(array.collect(Some(2), None), Ok(4));
        while array.step() {}
        assert_eq!(members(&array), [2], "{level}");
        assert_eq!(array.collect(None, Some(3)), Ok(4));
        while array.step() {}
        assert_eq!(members(&array), [0, 1, 2, 3], "{level}");
        let reports = array.member_reports();
        // The ordered collections take free blocks. A coordinator may therefore order other chips to collect, too.
        if more != [turns] {
            assert_eq!(collected(&reports[1]), [3], "{level}");
        }
        let at = CollectError::UnknownDie { die: 4, dies: 4 };
        let why = Box::new(at);
        assert_eq!(
            array.collect(None, Some(4)),
            Err(CollectError::At { member: 0, why })
        );
        let unknown = MemberError::Unknown {
            member: 4,
            members: 4,
        };
        assert_eq!(
            array.collect(Some(4), None),
            Err(CollectError::Member(unknown))
        );
    }
}

#[test]
fn a_failed_member_collects_nothing() {
    let mut array = array("raid5", "harmonia*4", &[]);
    array.fill_steady(1);
    array.fail_member(1).unwrap();
    assert_eq!(array.collect(None, None), Ok(12));
    let missing = MemberError::Missing { member: 1 };
    assert_eq!(
        array.collect(Some(1), None),
        Err(CollectError::Member(missing))
    );
    while array.step() {}
    array.fail_needed_member(2).unwrap();
    assert_eq!(
        array.collect(None, None),
        Err(CollectError::Member(MemberError::Lost))
    );
}
