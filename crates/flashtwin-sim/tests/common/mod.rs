//! Devices and loads that the tests share.
#![allow(dead_code)] // Each test file is a program of its own and uses some of this.

use std::path::PathBuf;

use flashtwin::{Completion, DeviceSpec, Request, Ssd};
use flashtwin_sim::{run, Control, Outcome, RunConfig};
use flashtwin_workload::{GeneratorSpec, Workload, WorkloadError};

/// A directory of the project's test data.
pub fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data")
        .join(name)
}

/// The demo device, changed.
pub fn device(overrides: &[(&str, &str)]) -> DeviceSpec {
    let profile = flashtwin::spec::builtin("demo").expect("demo is built in");
    match DeviceSpec::with_overrides(profile, "demo", overrides) {
        Ok(spec) => spec,
        Err(e) => panic!("{e}"),
    }
}

/// A generated load for a device.
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
        &mut |completions| {
            all.extend_from_slice(completions);
            Ok(())
        },
    );
    (outcome.unwrap_or_else(|e| panic!("{e}")), all)
}

/// What two equal runs must have in common, request by request.
pub fn essence(completions: &[Completion]) -> Vec<(u64, u64, u64, u32)> {
    completions
        .iter()
        .map(|c| (c.tag, c.arrival.0, c.done.0, c.hits))
        .collect()
}

/// A list of requests as a workload.
pub struct Listed(pub std::vec::IntoIter<Request>);

impl Workload for Listed {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        let before = out.len();
        out.extend(self.0.by_ref().take(1000));
        Ok(out.len() - before)
    }

    fn requests_total(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }

    fn describe(&self) -> String {
        "listed".into()
    }
}
