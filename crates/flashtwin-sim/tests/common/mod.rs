//! Devices and loads shared by several tests.

pub mod case;
pub mod drawn;

use std::path::PathBuf;

use flashtwin::{Completion, DeviceSpec, Ssd};
use flashtwin_sim::{run, Control, Outcome, RunConfig};
use flashtwin_workload::{GeneratorSpec, Workload};

/// Returns the path of a directory of the project's test data.
pub fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data")
        .join(name)
}

/// Returns the demo device with the given keys changed.
pub fn device(overrides: &[(&str, &str)]) -> DeviceSpec {
    let profile = flashtwin::spec::builtin("demo").expect("demo is built in");
    match DeviceSpec::with_overrides(profile, "demo", overrides) {
        Ok(spec) => spec,
        Err(e) => panic!("{e}"),
    }
}

/// Returns a generated load for a device.
pub fn load(text: &str, ssd: &Ssd, seed: u64) -> Box<dyn Workload> {
    let spec = GeneratorSpec::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    spec.build(ssd.exported_bytes(), seed)
        .unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Runs a load and keeps every completion.
pub fn run_all(
    ssd: &mut Ssd,
    workload: &mut dyn Workload,
    config: &RunConfig,
) -> (Outcome, Vec<Completion>) {
    let mut all = Vec::new();
    let outcome = run(
        ssd,
        workload,
        config,
        &Control::default(),
        Some(&mut |completions| {
            all.extend_from_slice(completions);
            Ok(())
        }),
    );
    (outcome.unwrap_or_else(|e| panic!("{e}")), all)
}

/// Returns the properties of each request that must be equal in two equal runs.
pub fn essence(completions: &[Completion]) -> Vec<(u64, u64, u64, u32)> {
    completions
        .iter()
        .map(|c| (c.tag, c.arrival.0, c.done.0, c.hits))
        .collect()
}

/// Asserts that `got` differs from `expected` by at most the fraction `share` of `expected`.
pub fn assert_near(what: &str, got: f64, expected: f64, share: f64) {
    let off = (got / expected - 1.0).abs();
    assert!(
        off <= share,
        "{what}: got {got:.4}, expected {expected:.4}, off by {:.2} %",
        off * 100.0
    );
}

/// Returns a device with one chip and one pool of `blocks` blocks. Collection keeps 1/64 of the blocks free, or one
/// block more; the other blocks are in use. `rho` is the ratio of exported pages to pages in use. `further` overrides
/// other keys.
pub fn one_pool(backend: &str, blocks: u32, rho: f64, further: &[(&str, &str)]) -> DeviceSpec {
    let low = blocks / 64;
    let exported = (rho * f64::from(blocks - low)).round();
    let percent = |blocks_of: f64| ((blocks_of + 0.3) / f64::from(blocks) * 100.0).to_string();
    let mut overrides = vec![
        ("geometry.chips", "1".to_owned()),
        ("geometry.planes_per_chip", "1".to_owned()),
        ("geometry.blocks_per_plane", blocks.to_string()),
        ("geometry.pages_per_block", "64".to_owned()),
        (
            "geometry.reserve_percent",
            percent(f64::from(blocks) - exported),
        ),
        ("gc.low_percent", percent(f64::from(low))),
        ("ftl.summary_page", "false".to_owned()),
        ("nand.backend", backend.to_owned()),
        ("nand.copy_back", "true".to_owned()),
        ("buffer", "none".to_owned()),
    ];
    match backend {
        "msr" => overrides.push(("nand.parallel_units", "1".to_owned())),
        _ => overrides.push(("geometry.channels", "1".to_owned())),
    }
    let mut all: Vec<(&str, &str)> = overrides.iter().map(|(k, v)| (*k, v.as_str())).collect();
    all.extend(further);
    device(&all)
}
