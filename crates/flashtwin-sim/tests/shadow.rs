//! Random requests on random small devices. In any configuration, every request completes once, the parts of its
//! response time sum to the response time, and the device becomes idle. The page map holds exactly the pages that a
//! shadow model recorded as written. The model's own assertions are enabled.

use std::collections::BTreeSet;

use crate::common::drawn::{draw_device, draw_request, one_in, pick};
use flashtwin::{seed_count, Cause, Op, Request, Rng, Ssd, Status, Time};

/// Logical pages that the device must hold. If a trim and a write of a page are in flight together, either may take
/// effect last; such pages are in `either`.
#[derive(Default)]
struct Shadow {
    mapped: BTreeSet<u64>,
    either: BTreeSet<u64>,
}

/// Limit on the number of events between two requests. No random load needs as many.
const STEPS_MAX: u32 = 1_000_000;

/// Runs the device until it is idle.
fn rest(ssd: &mut Ssd) {
    let mut steps = 0;
    while ssd.step() {
        steps += 1;
        assert!(steps < STEPS_MAX, "the device never comes to rest");
    }
}

/// Runs one random device under one random load. A failure panics with the description of the device.
fn try_seed(seed: u64, mapping: &str) {
    let mut rng = Rng::new(seed);
    let spec = draw_device(&mut rng, mapping);
    let mut ssd = Ssd::new(&spec);
    let page = u64::from(spec.geometry.page_bytes);
    let exported = u64::from(spec.exported_pages());
    let mut shadow = Shadow::default();
    match rng.below(4) {
        0 => {}
        1 => ssd.fill_steady(seed),
        _ => ssd.fill_sequential(),
    }
    if ssd.pages_mapped() > 0 {
        shadow.mapped.extend(0..exported);
    }
    ssd.reset_metrics(None);
    let free_before = ssd.free_flash_pages() as i64;
    let whole_pages = one_in(&mut rng, 2);
    let trims_alone = one_in(&mut rng, 2);
    let gap_us = pick(&mut rng, &[0, 1, 30, 300, 2000]);
    let depth = pick(&mut rng, &[1, 3, 40, usize::MAX]);
    let requests = 600;

    let mut completed = vec![0u32; requests + 1];
    let mut last_done = Time::ZERO;
    let mut collect = |ssd: &mut Ssd| {
        let may_refuse = ssd.is_read_only();
        for c in ssd.completions().drain(..) {
            completed[c.tag as usize] += 1;
            assert!(c.done >= last_done, "completions out of order");
            last_done = c.done;
            assert_eq!(
                c.breakdown.total(),
                c.done - c.arrival,
                "parts of request {}",
                c.tag
            );
            assert!(c.hits <= c.pages);
            let refused = c.status == Status::ReadOnly && may_refuse && c.op != Op::Read;
            assert!(c.status == Status::Ok || refused);
        }
    };
    let mut at = Time::ZERO;
    let mut meeting: Vec<(u64, u64, Op)> = Vec::new();
    for tag in 0..requests {
        let request = draw_request(&mut rng, page, exported, whole_pages);
        let alone = trims_alone && request.op == Op::Trim;
        while ssd.outstanding() > 0 && (alone || ssd.outstanding() >= depth) {
            assert!(ssd.step(), "requests in the device and nothing pending");
        }
        at = (at + Time::from_us(rng.below(1 + 2 * gap_us))).max(ssd.now());
        let mut steps = 0;
        while ssd.next_event().is_some_and(|next| next <= at) {
            steps += 1;
            assert!(steps < STEPS_MAX, "the device never gets on");
            ssd.step();
        }
        ssd.advance(at);
        if ssd.outstanding() == 0 {
            meeting.clear();
        }
        let (first, end) = match request.op {
            Op::Flush => (0, 0),
            Op::Trim => (
                request.offset.div_ceil(page),
                (request.offset + request.bytes) / page,
            ),
            _ => (
                request.offset / page,
                (request.offset + request.bytes).div_ceil(page),
            ),
        };
        if matches!(request.op, Op::Write | Op::Trim) {
            let write = request.op == Op::Write;
            for lpn in first..end.max(first) {
                let met = |&(a, b, op): &(u64, u64, Op)| a <= lpn && lpn < b && op != request.op;
                if meeting.iter().any(met) {
                    shadow.either.insert(lpn);
                } else {
                    shadow.either.remove(&lpn);
                }
                if write {
                    shadow.mapped.insert(lpn);
                } else {
                    shadow.mapped.remove(&lpn);
                }
            }
            meeting.push((first, end, request.op));
        }
        ssd.submit(at, &request, tag as u64)
            .expect("the request is on the device");
        if alone {
            rest(&mut ssd);
            meeting.clear();
        }
        collect(&mut ssd);
    }
    rest(&mut ssd);
    collect(&mut ssd);
    // After a flush, all data that must be on flash are there, except those that a buffer with power-loss protection
    // may keep.
    let now = ssd.now();
    let flush = Request {
        arrival: now,
        offset: 0,
        bytes: 0,
        op: Op::Flush,
        fua: false,
        ..Request::default()
    };
    ssd.submit(now, &flush, requests as u64)
        .expect("a flush has no address");
    rest(&mut ssd);
    collect(&mut ssd);

    assert!(
        completed.iter().all(|&n| n == 1),
        "a request completed {completed:?} times"
    );
    assert_eq!(ssd.outstanding(), 0);
    assert_eq!(ssd.next_event(), None);
    ssd.check().expect("a consistent map");
    let report = ssd.flash_report();
    let protected = spec
        .buffer
        .as_ref()
        .is_some_and(|b| b.power_loss_protection || b.policy.base == "cbm");
    let certain = shadow.mapped.difference(&shadow.either).count() as u64;
    // The device may also map pages that the host never wrote: pages programmed as padding, and pages that were only
    // read, which merges program.
    let beside = report.flash.count(Cause::Padding) + report.flash.count(Cause::Merge);
    let possible = match beside {
        0 => shadow.mapped.union(&shadow.either).count() as u64,
        _ => exported,
    };
    let mapped = ssd.pages_mapped();
    if !ssd.is_read_only() {
        let buffered = if protected {
            spec.buffer.as_ref().map_or(0, |b| b.capacity_pages)
        } else {
            0
        };
        let least = certain.saturating_sub(buffered.into());
        assert!(
            (least..=possible).contains(&mapped),
            "{mapped} pages mapped, {certain} to {possible} by the shadow ({buffered} may be buffered)"
        );
        assert_eq!(report.pages_lost, 0);
    }
    // The change in the number of free pages equals the pages freed minus the pages programmed.
    let erases = report.flash.count(Cause::Erase);
    let erased = u64::from(spec.geometry.pages_per_block) * erases;
    let freed = (erased - report.flash.pages_skipped) as i64;
    assert_eq!(
        report.programs() as i64,
        freed + free_before - ssd.free_flash_pages() as i64,
        "conservation of pages"
    );
}

/// Tries seeds with the page map.
fn try_seeds(seeds: impl Iterator<Item = u64>) {
    try_seeds_with("page", seeds);
}

/// Tries seeds. A failure names the first seed that fails and its device.
fn try_seeds_with(mapping: &str, seeds: impl Iterator<Item = u64>) {
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| try_seed(seed, mapping)) {
            let spec = draw_device(&mut Rng::new(seed), mapping);
            eprintln!("seed {seed}: {}", spec.to_toml());
            std::panic::resume_unwind(panic);
        }
    }
}

// Four tests, so that they run in parallel.

#[test]
fn random_requests_on_random_devices_a() {
    try_seeds((0..seed_count(150)).map(|n| 4 * n));
}

#[test]
fn random_requests_on_random_devices_b() {
    try_seeds((0..seed_count(150)).map(|n| 4 * n + 1));
}

#[test]
fn random_requests_on_random_devices_c() {
    try_seeds((0..seed_count(150)).map(|n| 4 * n + 2));
}

#[test]
fn random_requests_on_random_devices_d() {
    try_seeds((0..seed_count(150)).map(|n| 4 * n + 3));
}

#[test]
fn random_requests_on_random_devices_with_dftl() {
    try_seeds_with("dftl", 0..seed_count(100));
}

#[test]
fn random_requests_on_random_devices_with_bast() {
    try_seeds_with("bast", 0..seed_count(100));
}

#[test]
fn random_requests_on_random_devices_with_fast() {
    try_seeds_with("fast", 0..seed_count(100));
}

#[test]
fn random_requests_on_random_devices_with_faster() {
    try_seeds_with("faster", 0..seed_count(100));
}

/// A test with many more seeds, for use after changes of the buffer: `cargo test -- --ignored`.
#[test]
#[ignore = "minutes"]
fn random_requests_on_very_many_random_devices() {
    try_seeds(600..60_000);
    for mapping in ["dftl", "bast", "fast", "faster"] {
        try_seeds_with(mapping, 600..20_000);
    }
}
