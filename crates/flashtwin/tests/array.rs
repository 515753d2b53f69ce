//! Arrays as devices: what must hold of any of them.

use flashtwin::{
    Array, ArraySpec, Backend, Completion, Device, DeviceSpec, Op, Request, Rng, Ssd, Time,
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

/// Random requests, some at the same instant, until the device has had `count`.
fn drive<B: Backend>(device: &mut Device<B>, seed: u64, count: u64) -> Vec<Completion> {
    let mut rng = Rng::new(seed);
    let pages = device.exported_bytes() / 4096;
    let mut now = device.now();
    let mut done = Vec::new();
    for tag in 0..count {
        now += Time::from_us(rng.below(4) * 200);
        let span = 1 + rng.below(12).min(pages - 1);
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

/// An array of one member is that member.
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
        // The array does not wait for its members when it forgets pages.
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

#[test]
fn every_level_answers_every_request_once() {
    for (level, members) in [
        ("raid0", "harmonia*3"),
        ("raid1", "harmonia*2"),
        ("raid10", "harmonia*4"),
        ("raid5", "harmonia*5"),
        ("raid6", "harmonia*6"),
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
                assert!(device.flash_report().flash.gc_actions > 0, "{level}");
            }
        }
    }
}

/// Members that fail while requests are under way cost no request.
#[test]
fn requests_outlive_the_members_they_were_sent_to() {
    for (level, members, failing) in [
        ("raid1", "harmonia*3", &[2, 0][..]),
        ("raid10", "harmonia*4", &[1, 2]),
        ("raid5", "harmonia*4", &[3]),
        ("raid6", "harmonia*6", &[0, 4]),
    ] {
        let mut device = array(level, members, &[]);
        device.fill_sequential();
        let mut rng = Rng::new(3);
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
