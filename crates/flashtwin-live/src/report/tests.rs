//! Reports: the counts between two reports are those of the calls made between them.

use flashtwin::{Device, DeviceSpec, Flash, Request, Ssd};

use super::*;

const PAGE: u64 = 4096;

fn full_device() -> Ssd {
    let profile = flashtwin::spec::builtin("demo").expect("demo is built in");
    let all = [
        ("geometry.blocks_per_plane", "64"),
        ("geometry.chips", "4"),
        ("geometry.reserve_percent", "15"),
    ];
    let mut ssd = Ssd::new(&DeviceSpec::with_overrides(profile, "demo", &all).expect("sound"));
    ssd.fill_steady(1);
    ssd
}

/// Writes random pages of the whole device, with one write in flight.
fn write(device: &mut Device<Flash>, pages: u64) {
    let exported = device.exported_bytes() / PAGE;
    for i in 0..pages {
        let request = Request {
            arrival: device.now(),
            offset: i * 7919 % exported * PAGE,
            bytes: PAGE,
            op: Op::Write,
            fua: true,
            ..Request::default()
        };
        device.submit(device.now(), &request, 0).expect("within");
        while device.outstanding() > 0 {
            device.step();
        }
    }
    device.completions().clear();
}

fn counts(device: &Ssd, elapsed_s: f64, late_ns: &[u64]) -> Counts {
    let mut lateness = LatenessLog::default();
    late_ns.iter().for_each(|&ns| lateness.record(ns));
    Counts {
        elapsed_s,
        now: device.now(),
        lateness,
        metrics: device.metrics().clone(),
        flash: device.flash_report_without_wear(),
        page_bytes: device.spec().geometry.page_bytes,
    }
}

#[test]
fn two_reports_add_up_to_the_whole() {
    let mut device = full_device();
    let start = counts(&device, 0.0, &[]);
    write(&mut device, 7000);
    let first = counts(&device, 1.5, &[1_000; 700]);
    write(&mut device, 9000);
    let late = [vec![1_000; 700], vec![50_000; 900]].concat();
    let last = counts(&device, 2.0, &late);

    let parts = [first.since(&start), last.since(&first)];
    let whole = last.since(&start);
    assert_eq!(parts[0].responses.write.requests, 7000);
    assert_eq!(parts[1].responses.write.requests, 9000);
    assert_eq!(parts[1].responses.write.bytes, 9000 * PAGE);
    assert_eq!(parts[1].responses.read, CallCounts::default());
    assert_eq!(parts[1].elapsed_s, 0.5);
    let of = |f: fn(&Recent) -> u64| assert_eq!(f(&parts[0]) + f(&parts[1]), f(&whole));
    of(|r| r.flash.host_pages);
    of(|r| r.flash.moved_pages);
    of(|r| r.flash.erases);
    of(|r| r.flash.collections);
    assert!(whole.flash.moved_pages > 0 && whole.flash.erases > 1);
    let report = device.flash_report();
    assert_eq!(whole.flash.moved_pages, report.moves());
    assert_eq!(
        whole.flash.gc_write_amplification,
        report.gc_write_amplification()
    );
    for chip in 0..4 {
        let sum: f64 = parts.iter().map(|part| part.flash.chips_gc_s[chip]).sum();
        assert!((sum - seconds(report.gc_time[chip])).abs() < 1e-9);
    }
}

#[test]
fn percentiles_cover_the_time_between_reports() {
    let device = full_device();
    let before = counts(&device, 1.0, &[1_000; 1000]);
    // The values are 1 to 1000 µs. Therefore the percentile p is 10 p µs.
    let late: Vec<u64> = (1..=1000).map(|us| us * 1000).collect();
    let now = counts(&device, 2.0, &[vec![1_000; 1000], late].concat());
    let recent = now.since(&before).lateness;
    assert_eq!(recent.calls, 1000);
    let json = serde_json::to_value(recent).expect("numbers");
    let expected = [
        ("p50_us", 500.0),
        ("p75_us", 750.0),
        ("p90_us", 900.0),
        ("p95_us", 950.0),
        ("p99_us", 990.0),
        ("p995_us", 995.0),
        ("p999_us", 999.0),
        ("max_us", 1000.0),
    ];
    for (key, us) in expected {
        let off = json[key].as_f64().map(|found| (found - us).abs());
        assert!(off.is_some_and(|off| off < 0.7), "{key}: {json}");
    }
    let all = now.since(&Counts::default()).lateness.percentiles;
    assert!((all.p50_us - 1.0).abs() < 0.1, "{all:?}");
}

#[test]
fn reports_without_wear_count_dirty_pages() {
    let mut device = full_device();
    let request = Request {
        arrival: device.now(),
        offset: 0,
        bytes: 8 * PAGE,
        op: Op::Write,
        fua: false,
        ..Request::default()
    };
    device.submit(device.now(), &request, 0).expect("within");
    while device.outstanding() > 0 {
        device.step();
    }
    let glance = device.flash_report_without_wear();
    assert_eq!(glance.dirty_pages, 8);
    assert!(glance.erase_counts.is_empty());
    let whole = device.flash_report();
    assert_eq!(whole.dirty_pages, 8);
    assert_eq!(whole.flash, glance.flash);
}
