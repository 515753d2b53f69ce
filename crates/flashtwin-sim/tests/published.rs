//! The profiles that stand for drives one can buy against what is published of these drives.

use flashtwin::spec::builtin;
use flashtwin::DeviceSpec;
use flashtwin_sim::{measure, Control};

/// What the model does not meet (docs/devices.md says why), and what else is no more than 10 % off.
const MISSED: [(&str, &str); 1] = [("nvme-tlc", "beside_p75_us")];

fn every_figure_is_met(name: &str) {
    let text = builtin(name).expect("a profile");
    let spec = DeviceSpec::parse(text, name).expect("a sound profile");
    let measured = measure(&spec, &Control::default()).expect("a device large enough");
    let measured = measured.expect("nobody stops it");
    assert!(!spec.published.figures.is_empty());
    for &(figure, published) in &spec.published.figures {
        let found = measured.iter().find(|(known, _)| *known == figure);
        let found = found.expect("every published figure is measured").1;
        let off = (found / published - 1.0).abs();
        assert_eq!(
            off > 0.1,
            MISSED.contains(&(name, figure)),
            "{name} {figure}: {found:.1} for {published}"
        );
    }
}

/// Steady random writes a second, their 99th percentile in ms, requests a second of a mix of 70 % reads, and
/// the 99th percentile of its reads in ms: least and most, from docs/devices.md ("Under steady writes").
type Ranges = [(&'static str, f64, f64); 4];

fn ranges(iops: (f64, f64), p99_ms: f64, mixed: (f64, f64), read_p99_ms: f64) -> Ranges {
    [
        ("write_steady_iops", iops.0, iops.1),
        ("write_steady_p99_us", 0.0, p99_ms * 1e3),
        ("mixed_steady_iops", mixed.0, mixed.1),
        ("mixed_read_p99_us", 0.0, read_p99_ms * 1e3),
    ]
}

fn lies_within(name: &str, ranges: Ranges) {
    let text = builtin(name).expect("a profile");
    let spec = DeviceSpec::parse(text, name).expect("a sound profile");
    let measured = measure(&spec, &Control::default()).expect("a device large enough");
    let measured = measured.expect("nobody stops it");
    for (figure, least, most) in ranges {
        let found = measured.iter().find(|(known, _)| *known == figure);
        let found = found.expect("every figure is measured").1;
        assert!(
            (least..=most).contains(&found),
            "{name} {figure}: {found:.1}, not from {least} to {most}"
        );
    }
}

#[test]
fn a_client_nvme_drive_under_steady_writes() {
    let limits = ranges((10_000.0, 40_000.0), 5.0, (10_000.0, 133_000.0), 5.0);
    lies_within("tlc-nvme", limits);
}

#[test]
fn the_fitted_drives_under_steady_writes() {
    let nvme = ranges((67_500.0, 82_500.0), 5.0, (75_000.0, 250_000.0), 5.0);
    lies_within("nvme-tlc", nvme);
    let sata_dc = ranges((66_600.0, 81_400.0), 5.0, (74_000.0, 93_000.0), 5.0);
    lies_within("sata-dc", sata_dc);
    let sata = ranges((10_000.0, 13_200.0), 20.0, (12_000.0, 40_000.0), 20.0);
    lies_within("sata-tlc", sata);
    let qlc = ranges((5_850.0, 7_150.0), 20.0, (6_500.0, 21_700.0), 20.0);
    lies_within("qlc", qlc);
    let optane = ranges((450_000.0, 550_000.0), 0.2, (450_000.0, 550_000.0), 0.15);
    lies_within("optane", optane);
}

#[test]
fn a_data_centre_tlc_drive() {
    every_figure_is_met("nvme-tlc");
}

#[test]
fn a_client_sata_drive() {
    every_figure_is_met("sata-tlc");
}

#[test]
fn a_data_centre_sata_drive() {
    every_figure_is_met("sata-dc");
}

#[test]
fn a_qlc_drive() {
    every_figure_is_met("qlc");
}

#[test]
fn a_client_drive_with_a_cache() {
    every_figure_is_met("qlc-client");
}

#[test]
fn an_optane_drive() {
    every_figure_is_met("optane");
}

#[test]
fn what_is_too_small_is_refused() {
    let overrides = [
        ("geometry.blocks_per_plane", "32"),
        ("geometry.chips", "1"),
        ("geometry.planes_per_chip", "1"),
        ("nand.parallel_units", "1"),
        ("geometry.reserve_percent", "20"),
    ];
    let text = builtin("demo").expect("a profile");
    let spec = DeviceSpec::with_overrides(text, "demo", &overrides);
    let spec = spec.map_err(|e| e.to_string()).expect("a sound device");
    let refused = measure(&spec, &Control::default()).map(drop);
    let message = refused.expect_err("6 MiB").to_string();
    assert!(message.contains("must export 16 MiB"), "{message}");
}
