//! Workloads that are repeated until their write amplification is constant.

use flashtwin::{DeviceSpec, Ssd};
use flashtwin_sim::{run, Control, DriveWrites, Pacing, Passes, RunConfig};
use flashtwin_workload::{repeat, GeneratorSpec, Open, Shift};

/// Returns a device of 128 MiB with a reserve of 12 %.
fn device() -> Ssd {
    let toml = flashtwin::spec::builtin("gcar").expect("it is built in");
    let keys = [
        ("geometry.blocks_per_plane", "128"),
        ("geometry.reserve_percent", "12"),
        ("buffer", "none"),
    ];
    let spec = DeviceSpec::with_overrides(toml, "gcar", &keys).expect("a sound device");
    let mut ssd = Ssd::new(&spec);
    ssd.fill_steady(1);
    ssd
}

fn passes(load: &'static str, passes: Option<u64>, config: RunConfig) -> Passes {
    let mut ssd = device();
    let range_bytes = ssd.exported_bytes();
    let open: Open = Box::new(move || GeneratorSpec::parse(load)?.build(range_bytes, 3));
    let shift = Shift {
        bytes: 0,
        range_bytes,
    };
    let mut workload = repeat(open, passes, shift).expect("a good load");
    let config = RunConfig {
        pacing: Pacing::Closed { depth: 32 },
        ..config
    };
    let outcome = run(&mut ssd, &mut *workload, &config, &Control::default(), None);
    let outcome = outcome.expect("a good run");
    outcome.passes.expect("it was repeated")
}

const ONE_TO_TEN: Option<DriveWrites> = Some(DriveWrites {
    least: 1.0,
    most: 10.0,
});

const SKEWED: &str = "zipf:theta=0.9,write=1,size=4k,requests=5000";

#[test]
fn a_level_run_agrees_with_ten_drive_writes() {
    let until_level = RunConfig {
        drive_writes: ONE_TO_TEN,
        ..RunConfig::default()
    };
    let found = passes(SKEWED, None, until_level);
    assert_eq!(found.missed, None);
    assert!((1.0..10.0).contains(&found.drive_writes), "{found:?}");
    let all = (10.0 / found.drive_writes * found.passes as f64) as u64;
    let long = passes(SKEWED, Some(all), RunConfig::default());
    assert_eq!(long.passes, all);
    let wa = |passes: &Passes| passes.device_write_amplification.expect("it wrote");
    let off = wa(&found) / wa(&long) - 1.0;
    assert!(off.abs() < 0.03, "{off}: {found:?} {long:?}");
    assert!(found.half_width.expect("ten parts") <= 0.01 * wa(&found));
    let sum: f64 = found.by_purpose.iter().map(|(_, share)| share).sum();
    assert!((sum - wa(&found)).abs() < 1e-9);
    assert_eq!(found.by_purpose[0].0, "host");
}

#[test]
fn passes_end_where_asked_and_begin_after_the_warm_up() {
    let at_most = RunConfig {
        drive_writes: Some(DriveWrites {
            least: 5.0,
            most: 0.5,
        }),
        ..RunConfig::default()
    };
    let found = passes(SKEWED, None, at_most);
    assert_eq!(found.missed, Some("the drive was not written often enough"));
    assert!((0.5..0.7).contains(&found.drive_writes), "{found:?}");
    let warm = RunConfig {
        warmup_requests: 12_000,
        ..RunConfig::default()
    };
    let found = passes(SKEWED, Some(10), warm);
    // The ten passes have 50 000 writes. The first 12 000 are the warm-up and do not count.
    let counted = found.drive_writes * device().exported_bytes() as f64 / 4096.0;
    assert!((37_000.0..=38_000.0).contains(&counted), "{counted}");
    assert_eq!(found.passes, 10);
}

#[test]
fn parity_counts_in_the_medium_and_not_in_collection() {
    let toml = flashtwin::spec::builtin("tlc-client").expect("it is built in");
    let report = |percent: &str| {
        let keys = [
            ("nand.media_overhead_percent", percent),
            ("geometry.chips", "4"),
            ("geometry.channels", "4"),
            ("geometry.blocks_per_plane", "64"),
        ];
        let spec = DeviceSpec::with_overrides(toml, "tlc-client", &keys).expect("a sound device");
        let mut ssd = Ssd::new(&spec);
        ssd.fill_steady(1);
        let load = "uniform:write=1,size=4k,requests=20000";
        let load = GeneratorSpec::parse(load).expect("a good load");
        let mut load = load.build(ssd.exported_bytes(), 3).expect("it fits");
        let config = RunConfig {
            pacing: Pacing::Closed { depth: 32 },
            ..RunConfig::default()
        };
        let outcome = run(&mut ssd, &mut *load, &config, &Control::default(), None);
        outcome.expect("a good run").flash
    };
    let (none, tenth) = (report("0"), report("10.5"));
    assert_eq!(none.overhead_pages, 0);
    assert_eq!(tenth.programs(), none.programs());
    assert_eq!(tenth.overhead_pages, none.programs() * 105 / 1000);
    assert_eq!(
        tenth.gc_write_amplification(),
        none.gc_write_amplification()
    );
    let of = |report: &flashtwin::metrics::FlashReport| {
        let device = report.device_write_amplification(4096, 20_000 * 4096);
        device.expect("it wrote")
    };
    let ratio = of(&tenth) / of(&none);
    assert!((ratio - 1.105).abs() < 1e-4, "{ratio}");
    let by_purpose = tenth.media_by_purpose();
    assert_eq!(by_purpose[9], ("parity and metadata", tenth.overhead_pages));
    let sum: u64 = by_purpose.iter().map(|(_, pages)| pages).sum();
    assert_eq!(sum, tenth.media_pages());
}
