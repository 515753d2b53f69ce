//! Properties that every array must have as a device.

use flashtwin::{
    Array, ArrayEvent, ArraySpec, Backend, Cause, Completion, Device, DeviceSpec, Op, Request, Rng,
    Ssd, Time,
};

const SMALL: [(&str, &str); 5] = [
    ("geometry.chips", "4"),
    ("geometry.planes_per_chip", "1"),
    ("geometry.blocks_per_plane", "64"),
    ("geometry.pages_per_block", "16"),
    ("nand.parallel_units", "1"),
];

fn array(level: &str, members: &str, more: &[(&str, &str)]) -> Array {
    let of_members: Vec<(String, &str)> = SMALL
        .iter()
        .map(|&(key, value)| (format!("member.{key}"), value))
        .collect();
    let mut all = vec![("array.level", level), ("array.members", members)];
    all.extend(of_members.iter().map(|(key, value)| (key.as_str(), *value)));
    all.extend(more);
    let text = flashtwin::spec::builtin_array("harmonia-array").unwrap();
    Array::new(&ArraySpec::with_overrides(text, "harmonia-array", &all).unwrap())
}

/// Submits `count` random requests, some of them at the same instant. Runs the device until all have completed.
fn drive<B: Backend>(device: &mut Device<B>, seed: u64, count: u64) -> Vec<Completion> {
    drive_by(device, seed, count, 12, |rng| {
        Time::from_us(rng.below(4) * 200)
    })
}

/// Submits random requests of up to `pages_max` pages. `apart` returns the time until the next request.
fn drive_by<B: Backend>(
    device: &mut Device<B>,
    seed: u64,
    count: u64,
    pages_max: u64,
    apart: impl Fn(&mut Rng) -> Time,
) -> Vec<Completion> {
    let mut rng = Rng::new(seed);
    let pages = device.exported_bytes() / 4096;
    let mut now = device.now();
    let mut done = Vec::new();
    for tag in 0..count {
        now += apart(&mut rng);
        let span = 1 + rng.below(pages_max).min(pages - 1);
        let first = rng.below(pages - span + 1);
        let op = match rng.below(10) {
            0 => Op::Trim,
            1..=4 => Op::Read,
            _ => Op::Write,
        };
        let request = Request {
            arrival: now,
            offset: first * 4096,
            bytes: span * 4096,
            op,
            fua: rng.below(8) == 0,
            ..Request::default()
        };
        device.advance(now);
        device.submit(now, &request, tag).unwrap();
        done.append(device.completions());
    }
    while device.step() {}
    done.append(device.completions());
    assert_eq!(device.outstanding(), 0);
    done
}

fn once_each(done: &[Completion], count: u64) {
    let mut tags: Vec<u64> = done.iter().map(|c| c.tag).collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..count), "each request completes once");
}

/// An array with one member completes its requests at the same times as that member alone.
#[test]
fn one_member_striped_is_that_member() {
    let mut one = array("raid0", "harmonia", &[]);
    let text = flashtwin::spec::builtin("harmonia").unwrap();
    let mut plain = Ssd::new(&DeviceSpec::with_overrides(text, "harmonia", &SMALL).unwrap());
    one.fill_sequential();
    plain.fill_sequential();
    assert_eq!(one.exported_bytes(), plain.exported_bytes());
    let [of_array, of_ssd] = [drive(&mut one, 5, 3000), drive(&mut plain, 5, 3000)];
    once_each(&of_array, 3000);
    let times = |done: &[Completion]| {
        // Trims are not compared, because an array completes them without waiting for its members.
        let waits = done.iter().filter(|c| c.op != Op::Trim);
        let mut times: Vec<(u64, Time)> = waits.map(|c| (c.tag, c.done)).collect();
        times.sort_unstable();
        times
    };
    let (of_array, of_ssd) = (times(&of_array), times(&of_ssd));
    let differ = of_array.iter().zip(&of_ssd).find(|(a, s)| a != s);
    assert_eq!(differ, None);
    let [a, s] = [one.flash_report(), plain.flash_report()];
    assert_eq!(a.flash, s.flash);
    assert_eq!(a.erase_spread, s.erase_spread);
}

/// An array can send pages directly to a member's flash, or as requests through the member's front end. Both paths have
/// the same results. The test forces the second path by a limit on the member's commands. This limit is never reached.
///
/// The two paths process simultaneous events in different orders. Therefore requests have one page and arrive at
/// different instants. They are so few that members seldom end operations at the same instant.
#[test]
fn members_without_costs_are_as_through_their_front_ends() {
    let bare = ("member.link.bus_ns_per_sector", "0");
    let through = ("member.host.commands", "65535");
    for (level, more) in [
        ("raid0", &[][..]),
        ("raid0", &[("array.coordination", "idle")]),
        ("raid1", &[]),
        (
            "raid5",
            &[
                ("array.coordination", "turns"),
                ("array.reads", "around-gc"),
            ],
        ),
        (
            "raid6",
            &[("buffer.capacity", "1 MiB"), ("buffer.policy", "gcar-lru")],
        ),
    ] {
        let results = [&[bare][..], &[bare, through]].map(|front| {
            let mut device = array(level, "harmonia*4", &[more, front].concat());
            device.fill_steady(1);
            let mut done = drive_by(&mut device, 11, 6000, 1, |rng| {
                Time(rng.below(4_000_000_000))
            });
            done.sort_by_key(|c| (c.done, c.tag));
            let done: Vec<String> = done.iter().map(|c| format!("{c:?}")).collect();
            (done, format!("{:?}", device.member_reports()))
        });
        let [straight, through] = &results;
        let differ = straight.0.iter().zip(&through.0).find(|(a, b)| a != b);
        assert_eq!(differ, None, "{level} {more:?}");
        assert_eq!(straight.1, through.1, "{level} {more:?}");
    }
}

/// Compares the direct path and the path through front ends (see the test above) while members become slow, fail and
/// are replaced with requests in flight. With these seeds, a rebuild never ends at the instant of another event for the
/// same member.
#[test]
fn members_without_costs_go_wrong_as_through_their_front_ends() {
    let bare = ("member.link.bus_ns_per_sector", "0");
    let through = ("member.host.commands", "65535");
    let levels = ["raid1", "raid10", "raid5", "raid6"];
    // If a member was never slow, the array keeps no records of the single pages that it sends to the member. The third
    // case of each level tests this.
    let cases = levels.map(|level| [(level, 1, true), (level, 11, true), (level, 11, false)]);
    for (level, seed, slow) in cases.into_iter().flatten() {
        let results = [&[bare][..], &[bare, through]].map(|front| {
            let more = [("array.rebuild_depth", "1")];
            let mut device = array(level, "harmonia*4", &[&more, front].concat());
            device.fill_steady(1);
            let pages = device.exported_bytes() / 4096;
            let (mut rng, mut now) = (Rng::new(seed), Time::ZERO);
            let mut in_flight = [0; 3];
            for tag in 0..6000 {
                now += Time(rng.below(4_000_000_000));
                let request = Request {
                    arrival: now,
                    offset: rng.below(pages) * 4096,
                    bytes: 4096,
                    op: [Op::Read, Op::Write, Op::Write][rng.below(3) as usize],
                    fua: rng.below(8) == 0,
                    ..Request::default()
                };
                device.advance(now);
                device.submit(now, &request, tag).unwrap();
                let member = (tag / 1000) as usize % 4;
                match tag % 1000 {
                    100 if slow => device.slow_member(member, 3000).unwrap(),
                    200 => device.fail_member(member).unwrap(),
                    220 => device.replace_member(member).unwrap(),
                    _ => continue,
                }
                in_flight[usize::from(tag % 1000 > 100)] += device.outstanding();
            }
            while device.step() {}
            let enough = in_flight[0] > 4 || !slow;
            assert!(enough && in_flight[1] > 8, "{in_flight:?}");
            let mut done = std::mem::take(device.completions());
            once_each(&done, 6000);
            done.sort_by_key(|c| (c.done, c.tag));
            // The parts of the response time are not compared, because the two paths may attribute simultaneous
            // operations differently. The order of completions at one instant is not compared, either: requests to a
            // failed member may complete in another order.
            let done = done.iter().map(|c| (c.tag, c.done, c.status));
            let members = device.member_reports();
            let counts: Vec<_> = members.iter().map(|m| (&m.flash, &m.gc_time)).collect();
            (
                done.collect::<Vec<_>>(),
                format!("{counts:?} {:?}", device.raid_stats()),
            )
        });
        let [straight, through] = &results;
        let differ = straight.0.iter().zip(&through.0).find(|(a, b)| a != b);
        assert_eq!(differ, None, "{level} {seed} {slow}");
        assert_eq!(straight.1, through.1, "{level} {seed} {slow}");
    }
}

/// With bare members (pages are sent directly to their flash), the array's log has every page that members read and
/// write.
#[test]
fn pages_that_go_straight_to_members_are_logged() {
    let bare = ("member.link.bus_ns_per_sector", "0");
    let mut device = array("raid0", "harmonia*4", &[bare]);
    device.fill_steady(1);
    device.set_log(true);
    drive(&mut device, 13, 500);
    let stats = device.raid_stats();
    let pages = stats.member_pages_read + stats.member_pages_written;
    let log = device.take_log();
    let sent = log.iter().map(|event| match event {
        ArrayEvent::Sent { pages, op, .. } if *op != Op::Trim => u64::from(*pages),
        _ => 0,
    });
    assert_eq!(sent.sum::<u64>(), pages);
    let completes = |event: &&ArrayEvent| matches!(event, ArrayEvent::Came { .. });
    assert!(pages > 1000 && log.iter().any(|event| completes(&event)));
}

/// A write first reads the old page and its parity, and then writes both. If the log is switched on during the reads,
/// it has both writes.
#[test]
fn a_log_switched_on_amid_a_write_names_its_pages() {
    let bare = ("member.link.bus_ns_per_sector", "0");
    let mut device = array("raid5", "harmonia*4", &[bare]);
    device.fill_steady(1);
    let request = Request {
        arrival: device.now(),
        offset: 0,
        bytes: 4096,
        op: Op::Write,
        fua: false,
        ..Request::default()
    };
    device.submit(device.now(), &request, 0).unwrap();
    let pages = |device: &Array| {
        let stats = device.raid_stats();
        [stats.member_pages_read, stats.member_pages_written]
    };
    while pages(&device) != [2, 0] {
        assert!(device.step());
    }
    device.set_log(true);
    while device.step() {}
    assert_eq!(pages(&device), [2, 2]);
    let sent = |event: &ArrayEvent| match *event {
        ArrayEvent::Sent { op, pages, .. } => Some((op, pages)),
        _ => None,
    };
    let sent: Vec<_> = device.take_log().iter().filter_map(sent).collect();
    assert_eq!(sent, [(Op::Write, 1); 2]);
}

/// Compares the direct path and the path through front ends, with a buffer in the array. Behind a buffer, the order of
/// simultaneous events changes the results. Therefore requests have one page each and never arrive at the same instant.
#[test]
fn members_behind_a_buffer_are_as_through_their_front_ends() {
    for seed in flashtwin::seeds(3) {
        let results = [&[][..], &[("member.host.commands", "65535")]].map(|front| {
            let more = [
                ("member.link.bus_ns_per_sector", "0"),
                ("buffer.capacity", "1 MiB"),
                ("buffer.policy", "lru"),
            ];
            let mut device = array("raid0", "harmonia*3", &[&more, front].concat());
            device.fill_steady(1);
            let pages = device.exported_bytes() / 4096;
            let mut rng = Rng::new(seed);
            let mut now = Time::ZERO;
            for tag in 0..8000 {
                now += Time(rng.below(200_000_000));
                let request = Request {
                    arrival: now,
                    offset: rng.below(pages) * 4096,
                    bytes: 4096,
                    op: [Op::Trim, Op::Read, Op::Read, Op::Write][rng.below(8).min(3) as usize],
                    fua: rng.below(20) == 0,
                    ..Request::default()
                };
                device.advance(now);
                device.submit(now, &request, tag).unwrap();
            }
            while device.step() {}
            // The two paths may complete requests in different orders at one instant.
            let mut done = std::mem::take(device.completions());
            done.sort_by_key(|c| (c.done, c.tag));
            let done: Vec<String> = done.iter().map(|c| format!("{c:?}")).collect();
            assert_eq!(done.len(), 8000);
            let mut reports = device.member_reports();
            for report in &mut reports {
                // If the array sends pages directly to a member's flash, the flash counts them by the cause in the
                // array. Through the front end, all of them are host reads or host writes.
                let ops = &mut report.flash.ops;
                for (as_known, cause) in [
                    (Cause::Fill, Cause::HostRead),
                    (Cause::Destage, Cause::HostWrite),
                    (Cause::Flush, Cause::HostWrite),
                ] {
                    ops[cause as usize] += std::mem::take(&mut ops[as_known as usize]);
                }
            }
            let members = format!("{reports:?} {:?}", device.raid_stats());
            (done, members)
        });
        let [straight, through] = &results;
        let differ = straight.0.iter().zip(&through.0).find(|(a, b)| a != b);
        assert_eq!(differ, None);
        assert_eq!(straight.1, through.1);
    }
}

#[test]
fn every_level_completes_every_request_once() {
    for (level, members) in [
        ("raid0", "harmonia*3"),
        ("raid1", "harmonia*2"),
        ("raid10", "harmonia*4"),
        ("raid5", "harmonia*5"),
        ("raid6", "harmonia*6"),
        ("swan", "harmonia*4"),
    ] {
        for chunk in ["4 KiB", "16 KiB"] {
            for buffer in [
                &[][..],
                &[("buffer.capacity", "1 MiB"), ("buffer.policy", "gcar-lru")],
            ] {
                let mut more = vec![("array.chunk", chunk)];
                more.extend(buffer);
                let mut device = array(level, members, &more);
                device.fill_steady(1);
                let done = drive(&mut device, 7, 2000);
                once_each(&done, 2000);
                let collected = match level {
                    "swan" => device.raid_stats().segments_trimmed,
                    _ => device.flash_report().flash.gc_actions,
                };
                assert!(collected > 0, "{level}");
            }
        }
    }
}

/// No request is lost if members fail while requests are in flight.
#[test]
fn requests_outlive_the_members_they_were_sent_to() {
    for seed in flashtwin::seeds(3) {
        for (level, members, failing) in [
            ("raid1", "harmonia*3", &[2, 0][..]),
            ("raid10", "harmonia*4", &[1, 2]),
            ("raid5", "harmonia*4", &[3]),
            ("raid6", "harmonia*6", &[0, 4]),
        ] {
            let mut device = array(level, members, &[]);
            device.fill_sequential();
            let mut rng = Rng::new(seed);
            let pages = device.exported_bytes() / 4096;
            let mut failing = failing.iter();
            for tag in 0..3000 {
                let now = Time::from_us(tag * 50);
                device.advance(now);
                if tag % 1000 == 500 {
                    if let Some(&member) = failing.next() {
                        device.fail_member(member).unwrap();
                        assert!(device.fail_member(member).is_err());
                    }
                }
                let request = Request {
                    arrival: now,
                    offset: rng.below(pages - 8) * 4096,
                    bytes: (1 + rng.below(8)) * 4096,
                    op: if rng.below(2) == 0 {
                        Op::Read
                    } else {
                        Op::Write
                    },
                    fua: false,
                    ..Request::default()
                };
                device.submit(now, &request, tag).unwrap();
            }
            assert!(device.fail_member(9).is_err());
            while device.step() {}
            once_each(&std::mem::take(device.completions()), 3000);
            let recovered = device.raid_stats().pages_recovered > 0;
            assert_eq!(recovered, level == "raid5" || level == "raid6");
        }
    }
}

#[test]
fn a_parameter_of_another_scheme_is_refused() {
    let change = [("array.coordination", "turns"), ("array.idle_ms", "5")];
    let text = flashtwin::spec::builtin_array("raid5-array").unwrap();
    let error = ArraySpec::with_overrides(text, "raid5-array", &change).unwrap_err();
    let wanted = "array.idle_ms: has no effect here; it needs array.coordination = \"idle\"";
    assert!(error.to_string().contains(wanted), "{error}");
}

/// Every coordination scheme has the same results as no coordination if its thresholds are never reached.
#[test]
fn coordination_that_is_never_asked_for_changes_nothing() {
    let run = |coordination: &str| {
        let mut more = vec![
            ("array.coordination", coordination),
            ("array.soft_percent", "0"),
            ("array.hard_percent", "0"),
        ];
        if coordination == "idle" {
            more.push(("array.idle_ms", "65535"));
        }
        let mut device = array("raid0", "harmonia*3", &more);
        device.fill_steady(2);
        let done = drive(&mut device, 11, 3000);
        let times: Vec<(u64, Time)> = done.iter().map(|c| (c.tag, c.done)).collect();
        (times, device.flash_report().flash)
    };
    let local = run("local");
    for coordination in ["inclusive", "selective", "idle", "soft-limit", "turns"] {
        assert!(run(coordination) == local, "{coordination}");
    }
}

/// The coordination `ideal` collects in no time. It erases as many blocks as ordinary collection, and no request waits
/// for it.
#[test]
fn ideal_erases_as_many_blocks_in_no_time() {
    for seed in flashtwin::seeds(3) {
        let run = |coordination: &str| {
            let mut device = array(
                "raid0",
                "harmonia*3",
                &[("array.coordination", coordination)],
            );
            device.fill_steady(2);
            let mut rng = Rng::new(seed);
            let pages = device.exported_bytes() / 4096;
            let mut waited = 0;
            // Only one request is in flight at a time, so that writes have the same order in both runs.
            for tag in 0..6000 {
                let request = Request {
                    arrival: device.now(),
                    offset: rng.below(pages) * 4096,
                    bytes: 4096,
                    op: Op::Write,
                    fua: false,
                    ..Request::default()
                };
                device.submit(device.now(), &request, tag).unwrap();
                while device.step() {}
                waited += device.completions().pop().unwrap().breakdown.queue_gc.0;
            }
            let report = device.flash_report();
            let gc: u64 = report.gc_time.iter().map(|t| t.0).sum();
            (report.flash.count(flashtwin::Cause::Erase), gc, waited)
        };
        let (erases, gc, waited) = run("local");
        assert!(erases > 0 && gc > 0 && waited > 0);
        assert_eq!(run("ideal"), (erases, 0, 0));
    }
}

/// With every coordination scheme, every request completes once. Every scheme except `local` orders collections.
#[test]
fn schemes_send_their_messages() {
    for (coordination, forced) in [
        ("inclusive", true),
        ("selective", true),
        ("idle", true),
        ("soft-limit", true),
        ("turns", true),
        ("local", false),
    ] {
        for (level, members) in [("raid0", "harmonia*3"), ("raid5", "harmonia*4")] {
            let mut more = vec![
                ("array.coordination", coordination),
                ("array.reads", "around-gc"),
                ("array.protect", "stripe"),
                ("buffer.capacity", "256 KiB"),
                ("buffer.policy", "gcar-lru"),
                ("array.soft_percent", "10"),
            ];
            if coordination == "idle" {
                more.push(("array.idle_ms", "1"));
            }
            let mut device = array(level, members, &more);
            device.fill_steady(2);
            let done = drive(&mut device, 13, 2000);
            once_each(&done, 2000);
            let stats = device.raid_stats();
            assert_eq!(stats.gc_forced > 0, forced, "{coordination} {level}");
        }
    }
}

/// With `reads = "around-gc"`, some pages on collecting chips are not read but computed from the rest of their stripes.
/// With `reads = "direct"`, none are.
#[test]
fn pages_of_a_collecting_chip_are_worked_out() {
    let run = |reads: &str| {
        let more = [
            ("array.coordination", "turns"),
            ("array.soft_percent", "14"),
            ("array.reads", reads),
        ];
        let mut device = array("raid5", "harmonia*4", &more);
        device.fill_steady(2);
        once_each(&drive(&mut device, 17, 2000), 2000);
        device.raid_stats().pages_recovered
    };
    assert_eq!(run("direct"), 0);
    assert!(run("around-gc") > 0);
}

/// One member is missing. If the parity of a stripe is on this member, a page of the stripe is written without any
/// read. Such a write does not count as a write of a whole stripe.
#[test]
fn a_part_of_a_stripe_without_parity_is_not_a_whole_stripe() {
    let mut device = array("raid5", "harmonia*4", &[]);
    device.fill_sequential();
    device.fail_member(1).unwrap();
    let pages = device.exported_bytes() / 4096;
    for tag in 0..20 {
        // A row has 24 pages: a chunk of 8 pages on each of three members. Pages that are 97 apart are therefore never
        // in the same row.
        let page = tag * 97 % pages;
        let now = Time::from_ms(tag * 10);
        device.advance(now);
        let request = Request {
            arrival: now,
            offset: page * 4096,
            bytes: 4096,
            op: Op::Write,
            fua: true,
            ..Request::default()
        };
        device.submit(now, &request, tag).unwrap();
    }
    while device.step() {}
    let written = device.raid_stats().stripes;
    assert_eq!(written[0], 0, "{written:?}");
    assert!(written[4] > 0, "{written:?}");
}
