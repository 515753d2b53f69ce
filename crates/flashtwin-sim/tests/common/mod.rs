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

/// Free pages of the flash, read off the end of the saved state: of each pool its open block, next
/// page in it, free blocks, and two numbers more.
pub fn free_pages(ssd: &Ssd) -> i64 {
    let spec = ssd.spec();
    let mut state = Vec::new();
    ssd.save_state(&mut state).expect("memory takes all");
    let planes_are_pools = matches!(&spec.nand, flashtwin::spec::Nand::Msr(msr) if msr.copy_back);
    let pools_per_chip = if planes_are_pools {
        spec.geometry.planes_per_chip
    } else {
        1
    };
    let pools = (spec.geometry.chips * pools_per_chip) as usize;
    let numbers: Vec<i64> = state[state.len() - pools * 20..]
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]).into())
        .collect();
    let per_block = i64::from(spec.geometry.pages_per_block);
    let of_pool = |pool: &[i64]| {
        let (next_page, free_blocks) = (pool[1], pool[2]);
        let open = next_page < i64::from(spec.data_pages_per_block());
        free_blocks * per_block + if open { per_block - next_page } else { 0 }
    };
    numbers.chunks_exact(5).map(of_pool).sum()
}
