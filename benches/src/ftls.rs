//! Translation layers and back ends (models of the flash): page operations per second, relative to the page map on the
//! back end `msr`, which is measured in the same run.
//!
//! A page operation is an operation of the flash on one page: a read or program for the host or for the map, a page
//! that a collection or merge moves (counted once), or a summary page. Erases are not counted. All cases run the same
//! load on the ECR device in its steady state: 4 KiB, uniform, 80 % writes, 64 requests in flight.

use std::time::Instant;

use flashtwin::metrics::FlashReport;
use flashtwin::{Cause, Ssd};
use flashtwin_sim::{run, Control, Pacing, RunConfig};
use flashtwin_workload::GeneratorSpec;

use crate::{figure, median, profile, Failure, DEPTH, LOAD};

/// Number of rounds. Each round runs all cases, one after the other, and divides their rates by that of the page map.
/// The medians of these ratios over the rounds are reported.
const ROUNDS: usize = 3;

/// A case: name, overrides of the ECR device, and the number of requests of a round. A round takes about half a second.
type Case = (&'static str, &'static [(&'static str, &'static str)], u64);

const CASES: [Case; 5] = [
    ("page_on_msr", &[], 1_000_000),
    ("dftl", &[("ftl.kind", "dftl")], 200_000),
    ("fast", &[("ftl.kind", "fast")], 100_000),
    (
        "modern_plain",
        &[
            ("nand.backend", "modern"),
            ("geometry.channels", "16"),
            ("nand.background_gc", "false"),
        ],
        1_000_000,
    ),
    (
        "modern",
        &[
            ("nand.backend", "modern"),
            ("geometry.channels", "16"),
            ("nand.multi_plane", "2"),
            ("nand.independent_reads", "true"),
            ("nand.program_wait_us", "100"),
            ("nand.suspend", "true"),
            ("nand.read_retry_percent", "0.1"),
            ("gc.idle_percent", "6"),
            ("gc.preemptible", "true"),
        ],
        1_000_000,
    ),
];

pub fn page_operations(report: &FlashReport) -> u64 {
    let counted = Cause::ALL
        .into_iter()
        .filter(|&cause| cause != Cause::Erase);
    counted.map(|cause| report.flash.count(cause)).sum()
}

/// Runs one round. Returns the page operations per second.
fn rate(ssd: &mut Ssd, requests: u64, seed: u64) -> Result<f64, Failure> {
    let mut load = GeneratorSpec::parse(LOAD)?.build(ssd.exported_bytes(), seed)?;
    let config = RunConfig {
        pacing: Pacing::Closed { depth: DEPTH },
        requests_max: Some(requests),
        ..RunConfig::default()
    };
    ssd.reset_metrics(None);
    let began = Instant::now();
    run(ssd, &mut *load, &config, &Control::default(), None)?;
    Ok(page_operations(&ssd.flash_report()) as f64 / began.elapsed().as_secs_f64())
}

/// Prints the ratios and the rates.
pub fn ratios() -> Result<(), Failure> {
    let mut devices = Vec::new();
    for (_, overrides, requests) in CASES {
        let mut ssd = Ssd::new(&profile("ecr", overrides)?);
        ssd.fill_steady(1);
        rate(&mut ssd, requests, 1)?;
        devices.push(ssd);
    }
    let mut rates: [Vec<f64>; CASES.len()] = Default::default();
    for round in 0..ROUNDS as u64 {
        for (at, ssd) in devices.iter_mut().enumerate() {
            rates[at].push(rate(ssd, CASES[at].2, 2 + round)?);
        }
    }
    for (case, own) in CASES.iter().zip(&rates).skip(1) {
        let of_round = own.iter().zip(&rates[0]).map(|(own, page)| own / page);
        figure(&format!("ratio_{}", case.0), median(of_round.collect()));
    }
    for (case, own) in CASES.iter().zip(&rates) {
        figure(
            &format!("{}_million_page_operations_per_second", case.0),
            median(own.clone()) / 1e6,
        );
    }
    Ok(())
}
