//! Tests of the policy alone, and in a device.

use flashtwin::buffer::untimed::UntimedBuffer;
use flashtwin::buffer::Setup;
use flashtwin::{DeviceSpec, Lpn, Op, Request, Rng, Ssd, Time};
use rust_policy::Random;

fn spec() -> DeviceSpec {
    let demo = flashtwin::spec::builtin("demo").unwrap();
    let small = [
        ("geometry.blocks_per_plane", "72"),
        ("buffer.capacity", "64 KiB"),
    ];
    DeviceSpec::with_overrides(demo, "demo", &small).unwrap()
}

/// The hit ratio of uniform reads over M pages in a buffer of C pages is C / M under any policy.
#[test]
fn uniform_reads_hit_by_the_share_of_the_buffer() {
    let mut buffer = UntimedBuffer::with_user(Box::new(Random::new(1)), &Setup::of(&spec()));
    let (mut rng, mut hits) = (Rng::new(2), 0);
    for request in 0..200_000 {
        let lpn = Lpn(rng.below(64) as u32);
        hits += u32::from(buffer.access(lpn, false, request, 1).hit);
    }
    assert!((49_000..51_000).contains(&hits), "{hits}");
}

/// 15 pages are written and one is read. With eight draws, half of the searches find the clean page.
#[test]
fn a_clean_page_leaves_before_dirty_ones() {
    let setup = Setup::of(&spec());
    let mut clean = 0;
    for seed in 0..1000 {
        let mut buffer = UntimedBuffer::with_user(Box::new(Random::new(seed)), &setup);
        for i in 0..16 {
            buffer.access(Lpn(i), i != 7, 0, 1);
        }
        let outcome = buffer.access(Lpn(99), true, 0, 1);
        clean += outcome.victims.iter().filter(|(_, dirty)| !dirty).count();
    }
    assert!((450..550).contains(&clean), "{clean}");
}

#[test]
fn the_policy_runs_in_a_device_with_trims_and_flushes() {
    let spec = spec();
    let mut ssd = Ssd::with_policy(&spec, Box::new(Random::new(1)));
    ssd.fill_sequential();
    let mut rng = Rng::new(3);
    for tag in 0..5_000 {
        let op = match rng.below(10) {
            0 => Op::Trim,
            1 => Op::Flush,
            2..=4 => Op::Read,
            _ => Op::Write,
        };
        let now = ssd.now();
        ssd.advance(now);
        let request = Request {
            arrival: now,
            offset: rng.below(1000) * 4096,
            bytes: 4096 * (1 + rng.below(8)),
            op,
            fua: false,
            ..Request::default()
        };
        ssd.submit(now, &request, tag).unwrap();
        while ssd.outstanding() >= 8 && ssd.step() {}
    }
    while ssd.step() {}
    assert_eq!(ssd.completions().len(), 5_000);
    assert_eq!(ssd.outstanding(), 0);
    assert!(ssd.now() > Time::ZERO);
    ssd.check().unwrap();
}
