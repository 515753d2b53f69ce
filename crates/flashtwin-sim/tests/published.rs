//! The profiles of drives on the market, compared with the published figures of these drives.

use flashtwin::spec::builtin;
use flashtwin::DeviceSpec;
use flashtwin_sim::{measure, Control};

/// Published figures that the model does not meet (docs/devices.md explains why). All others are
/// met within 10 %.
const MISSED: [(&str, &str); 1] = [("nvme-tlc", "beside_p75_us")];

/// The keys of the ranges that every profile of a drive states (docs/devices.md, "Under steady
/// writes").
const BOUNDS: [&str; 6] = [
    "write_steady_iops_min",
    "write_steady_iops_max",
    "write_steady_p99_us_max",
    "mixed_steady_iops_min",
    "mixed_steady_iops_max",
    "mixed_read_p99_us_max",
];

fn every_figure_is_met(name: &str) {
    let text = builtin(name).expect("a profile");
    let spec = DeviceSpec::parse(text, name).expect("a sound profile");
    let measured = measure(&spec, &Control::default()).expect("a device large enough");
    let measured = measured.expect("no caller stops it");
    let mut met = 0;
    for &(figure, found) in &measured {
        if let Some(published) = spec.published.figure(figure) {
            let off = (found / published - 1.0).abs();
            assert_eq!(
                off > 0.1,
                MISSED.contains(&(name, figure)),
                "{name} {figure}: {found:.1} for {published}"
            );
            met += 1;
        }
        if let Some(least) = spec.published.figure(&format!("{figure}_min")) {
            assert!(found >= least, "{name} {figure}: {found:.1} below {least}");
            met += 1;
        }
        if let Some(most) = spec.published.figure(&format!("{figure}_max")) {
            assert!(found <= most, "{name} {figure}: {found:.1} above {most}");
            met += 1;
        }
    }
    assert_eq!(
        met,
        spec.published.figures.len(),
        "figures that are measured"
    );
    for bound in BOUNDS {
        assert!(spec.published.figure(bound).is_some(), "{name}: {bound}");
    }
}

#[test]
fn a_client_nvme_drive() {
    every_figure_is_met("tlc-client");
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
fn too_small_devices_are_refused() {
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
