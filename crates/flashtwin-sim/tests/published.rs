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
