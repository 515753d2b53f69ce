//! Changes of GC settings of a running device.

use flashtwin::{Cause, Op, Request, Rng, Ssd, Time};

use super::ssd;

/// Reads and writes random pages, in equal shares. Calls `between` before each request.
fn load(ssd: &mut Ssd, seed: u64, requests: u64, mut between: impl FnMut(&mut Ssd, u64)) {
    let mut rng = Rng::new(seed);
    let (pages, start) = (ssd.exported_bytes() / 4096, ssd.now());
    for tag in 0..requests {
        let now = start + Time::from_us(150 * tag);
        ssd.advance(now);
        between(ssd, tag);
        let request = Request {
            arrival: now,
            offset: rng.below(pages) * 4096,
            bytes: 4096,
            op: [Op::Read, Op::Write][rng.below(2) as usize],
            ..Request::default()
        };
        ssd.submit(now, &request, tag).unwrap();
    }
    while ssd.step() {}
}

const SUPERBLOCK: &[(&str, &str)] = &[
    ("geometry.channels", "2"),
    ("gc.granularity", "superblock"),
    ("geometry.pages_per_block", "64"),
    ("buffer", "none"),
];
const BLOCK: &[(&str, &str)] = &[("geometry.channels", "2"), ("buffer", "none")];
const BACKGROUND: &[(&str, &str)] = &[
    ("geometry.channels", "2"),
    ("buffer", "none"),
    ("nand.background_gc", "true"),
];

/// If the settings of a device change before its first request, the device works like one that was created with these
/// settings.
#[test]
fn changed_settings_work_like_those_of_a_new_device() {
    let higher = ("gc.low_percent", "9");
    for (name, more, set) in [
        (
            "demo",
            &[("buffer", "none"), ("geometry.reserve_percent", "20")][..],
            &[higher][..],
        ),
        (
            "demo",
            &[
                ("buffer", "none"),
                ("geometry.reserve_percent", "20"),
                ("nand.copy_back", "false"),
                ("nand.parallel_units", "1"),
            ],
            &[higher],
        ),
        ("nvme-tlc", BLOCK, &[higher]),
        ("nvme-tlc", BLOCK, &[higher, ("gc.preemptible", "true")]),
        ("nvme-tlc", BACKGROUND, &[("gc.idle_percent", "14")]),
        (
            "nvme-tlc",
            SUPERBLOCK,
            &[higher, ("gc.preemptible", "true")],
        ),
    ] {
        for seed in flashtwin::seeds(2) {
            let made = [more, set].concat();
            let mut devices = [ssd(name, more), ssd(name, &made)];
            let mut results = Vec::new();
            for ssd in &mut devices {
                ssd.fill_sequential();
            }
            let mut unchanged = devices[0].clone();
            devices[0].set_gc(set).unwrap();
            assert_eq!(devices[0].spec().to_toml(), devices[1].spec().to_toml());
            for ssd in devices.iter_mut().chain([&mut unchanged]) {
                load(ssd, seed, 12_000, |_, _| {});
                ssd.check().unwrap();
                let done = ssd.completions().iter().map(|done| (done.tag, done.done));
                let done: Vec<(u64, Time)> = done.collect();
                let count = |cause| ssd.flash_report().flash.count(cause);
                results.push((done, [Cause::GcMove, Cause::Erase].map(count)));
            }
            assert_eq!(results[0], results[1], "{name} {set:?}");
            assert_ne!(
                results[0], results[2],
                "{name} {set:?}: the settings have an effect"
            );
        }
    }
}

/// A device that collects in the background gets a higher watermark. It begins to collect at once, without waiting for
/// a request.
#[test]
fn collection_that_is_due_begins_at_once() {
    let mut ssd = ssd("nvme-tlc", BACKGROUND);
    ssd.fill_steady(1);
    while ssd.step() {}
    ssd.reset_metrics(None);
    ssd.set_gc(&[("gc.idle_percent", "15")]).unwrap();
    assert!(ssd.step());
    while ssd.step() {}
    assert!(ssd.flash_report().flash.count(Cause::Erase) > 0);
    ssd.check().unwrap();
}

/// Settings change while requests and collections are in progress. No page is lost, and every request completes.
#[test]
fn settings_change_amid_collections() {
    for (name, more) in [
        ("nvme-tlc", BLOCK),
        ("nvme-tlc", SUPERBLOCK),
        ("nvme-tlc", BACKGROUND),
    ] {
        for seed in flashtwin::seeds(3) {
            let mut ssd = ssd(name, more);
            ssd.fill_steady(seed);
            let pages = ssd.pages_mapped();
            let mut rng = Rng::new(seed);
            load(&mut ssd, seed, 6_000, |ssd, tag| {
                if tag % 40 == 39 {
                    let low = (2 + rng.below(6)).to_string();
                    let idle = (8 + rng.below(10)).to_string();
                    let passes = ["false", "true"][rng.below(2) as usize];
                    let set = [
                        ("gc.low_percent", low.as_str()),
                        ("gc.idle_percent", &idle),
                        ("gc.preemptible", passes),
                    ];
                    ssd.set_gc(&set).unwrap();
                    ssd.check().unwrap();
                }
            });
            assert_eq!(
                (ssd.completions().len(), ssd.pages_mapped()),
                (6_000, pages)
            );
        }
    }
}

#[test]
fn settings_that_cannot_change_are_refused() {
    for (name, more, set, why) in [
        (
            "nvme-tlc",
            BLOCK,
            ("gc.victim", "fifo"),
            "of [gc], only gc.low_percent, gc.idle_percent",
        ),
        (
            "nvme-tlc",
            BLOCK,
            ("gc.low_percent", "90"),
            "must be below geometry.reserve_percent",
        ),
        (
            "nvme-tlc",
            BLOCK,
            ("gc.preemptible", "often"),
            "gc.preemptible: found",
        ),
        ("demo", &[], ("gc.preemptible", "true"), "gc.preemptible"),
        (
            "demo",
            &[("ftl.kind", "dftl"), ("buffer", "none")],
            ("gc.low_percent", "3"),
            "gc.low_percent",
        ),
        (
            "nvme-fdp",
            &[],
            ("gc.low_percent", "3"),
            "a device that writes by units",
        ),
    ] {
        let mut ssd = match name {
            "nvme-fdp" => Ssd::new(
                &flashtwin::DeviceSpec::parse(flashtwin::spec::builtin(name).unwrap(), name)
                    .unwrap(),
            ),
            _ => ssd(name, more),
        };
        let before = ssd.spec().to_toml();
        let error = ssd.set_gc(&[set]).unwrap_err().to_string();
        assert!(error.contains(why), "{name}: {error}");
        assert_eq!(ssd.spec().to_toml(), before);
    }
}
