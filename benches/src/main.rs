//! `make bench`: prints every figure of speed and size as a line `name: value`. Each rate is relative to a baseline
//! that is measured in the same run. This program only records times; no test asserts them.
//!
//! Arguments select a part of the figures:
//!
//! - `flashtwin-bench [device|io|ftls|arrays|placement|policies|growth|curves] [POLICY...]`: one part; if
//!   it is `policies` or `growth`, optionally for some policies only
//! - `placement-full [LOAD...]`: loads on the device of the WARP paper at full size
//! - `stages [CASE...]`: instructions per request
//! - `scaling`: speed and instructions of devices and arrays of many sizes
//! - `schemes`: the cost of published schemes relative to the devices that they extend
//! - `held`: compares three instruction counts with the recorded ones, as CI does
//! - `record`: records these three counts again

mod arrays;
mod curves;
mod ftls;
mod io;
mod limit;
mod memory;
mod msr_csv;
mod placement;
mod policies;
mod scaling;
mod schemes;
mod stages;

use std::time::Instant;

use flashtwin::{spec, DeviceSpec, Rng, Ssd};
use flashtwin_sim::{load_snapshot, run, save_snapshot, Control, Pacing, RunConfig};
use flashtwin_workload::GeneratorSpec;
use limit::{Kernel, Lookahead};

/// Number of rounds. The kernel and the model run in turn in each round. Medians are reported.
const ROUNDS: usize = 5;
/// Number of requests that the model runs in one round, and of pages that the kernel writes in one round.
const REQUESTS: u64 = 3_000_000;
/// Number of requests in flight: one per chip of the ECR device, which has 64.
const DEPTH: u32 = 64;
/// The load under which speeds are compared: 4 KiB, uniform over the whole device, 80 % writes.
const LOAD: &str = "uniform:write=0.8,size=4k";

type Failure = Box<dyn std::error::Error>;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn figure(name: &str, value: f64) {
    println!("{name}: {value:.4}");
}

/// Returns the requests per second of the model on a steady device.
fn model_rate(ssd: &mut Ssd, seed: u64) -> Result<f64, Failure> {
    let mut load = GeneratorSpec::parse(LOAD)?.build(ssd.exported_bytes(), seed)?;
    let config = RunConfig {
        pacing: Pacing::Closed { depth: DEPTH },
        requests_max: Some(REQUESTS),
        ..RunConfig::default()
    };
    let began = Instant::now();
    let outcome = run(ssd, &mut *load, &config, &Control::default(), None)?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(outcome.submitted as f64 / seconds)
}

/// Returns the number of page writes of the kernel per second.
fn kernel_rate(kernel: &mut Kernel, rng: &mut Rng, lookahead: Lookahead) -> f64 {
    let began = Instant::now();
    kernel.write_random(rng, REQUESTS, lookahead);
    REQUESTS as f64 / began.elapsed().as_secs_f64()
}

fn profile(name: &str, overrides: &[(&str, &str)]) -> Result<DeviceSpec, Failure> {
    let text = spec::builtin(name).ok_or("the profile is shipped")?;
    Ok(DeviceSpec::with_overrides(text, name, overrides)?)
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let part = arguments.next();
    let mut names: Vec<String> = arguments.collect();
    match part.as_deref() {
        Some("counted") => return stages::counted(names.first().map_or("", String::as_str)),
        Some("stages") => return stages::table(&names),
        Some("scaling") => return scaling::table(),
        Some("schemes") => return schemes::ratios(),
        Some("placement-full") => return placement::full(&names),
        Some("held") => return stages::held(false),
        Some("record") => return stages::held(true),
        _ => {}
    }
    if names.is_empty() {
        names = flashtwin::buffer::ChosenPolicy::names();
    }
    let wanted = |name| part.as_deref().is_none_or(|part| part == name);
    // This part runs first, in memory that no other part has used, because it measures the memory per page.
    if wanted("device") {
        device()?;
    }
    if wanted("policies") {
        policies::rates(&names)?;
    }
    if wanted("growth") {
        policies::growth(&names)?;
    }
    if wanted("curves") {
        curves::rates()?;
    }
    if wanted("io") {
        io::rates(ROUNDS)?;
    }
    if wanted("ftls") {
        ftls::ratios()?;
    }
    if wanted("placement") {
        placement::ratios()?;
        placement::timed()?;
    }
    if wanted("arrays") {
        arrays::ratios()?;
    }
    if part.is_none() {
        stages::table(&[])?;
    }
    Ok(())
}

/// Prints the speed of the model, with each back end of the flash, relative to the kernel without and with prefetching.
fn limit_ratios(rates: &[Vec<f64>; 4]) {
    let ratio = |model: usize, kernel: usize| {
        median(
            rates[model]
                .iter()
                .zip(&rates[kernel])
                .map(|(m, k)| m / k)
                .collect(),
        )
    };
    figure("limit_ratio_msr", ratio(2, 0));
    figure("limit_ratio_modern", ratio(3, 0));
    figure("limit_ratio_msr_lookahead", ratio(2, 1));
    figure("limit_ratio_modern_lookahead", ratio(3, 1));
}

/// Measures the time to load a snapshot.
fn snapshot_loads(spec: &DeviceSpec, device: &Ssd) -> Result<(), Failure> {
    let path =
        std::env::temp_dir().join(format!("flashtwin_bench_{}.snapshot", std::process::id()));
    save_snapshot(&path, device, "bench")?;
    let mut loads = Vec::new();
    for _ in 0..3 {
        let mut ssd = Ssd::new(spec);
        let began = Instant::now();
        load_snapshot(&path, &mut ssd)?;
        loads.push(began.elapsed().as_secs_f64());
    }
    std::fs::remove_file(&path)?;
    figure("snapshot_load_seconds", median(loads));
    Ok(())
}

/// Compares the speed of the whole model with that of a minimal kernel that has the same data structures. Also prints
/// both speeds.
fn device() -> Result<(), Failure> {
    let msr = profile("ecr", &[])?;
    // The same geometry and buffer, but the flash is modelled by the other back end, `modern`.
    let modern = profile(
        "ecr",
        &[
            ("nand.backend", "modern"),
            ("geometry.channels", "16"),
            ("nand.background_gc", "false"),
        ],
    )?;

    let before = memory::resident_bytes();
    let began = Instant::now();
    let mut on_msr = Ssd::new(&msr);
    on_msr.fill_steady(1);
    figure("steady_seconds", began.elapsed().as_secs_f64());
    model_rate(&mut on_msr, 1)?;
    if let (Some(before), Some(after)) = (before, memory::resident_bytes()) {
        figure(
            "bytes_per_page",
            (after - before) as f64 / msr.physical_pages() as f64,
        );
    }

    snapshot_loads(&msr, &on_msr)?;

    let mut on_modern = Ssd::new(&modern);
    on_modern.fill_steady(1);
    model_rate(&mut on_modern, 1)?;

    let mut rng = Rng::new(1);
    let mut kernel = Kernel::new(&msr);
    kernel.write_random(
        &mut rng,
        4 * msr.exported_pages() as u64,
        Lookahead::Sixteen,
    );

    let names = ["kernel", "kernel_lookahead", "model_msr", "model_modern"];
    let mut rates: [Vec<f64>; 4] = Default::default();
    for round in 0..ROUNDS {
        rates[0].push(kernel_rate(&mut kernel, &mut rng, Lookahead::None));
        rates[2].push(model_rate(&mut on_msr, 2 + round as u64)?);
        rates[1].push(kernel_rate(&mut kernel, &mut rng, Lookahead::Sixteen));
        rates[3].push(model_rate(&mut on_modern, 2 + round as u64)?);
    }
    limit_ratios(&rates);
    for (name, rates) in names.iter().zip(&rates) {
        figure(&format!("{name}_per_second"), median(rates.clone()));
    }
    figure("kernel_moves_per_write", kernel.moves_per_write());
    figure(
        "model_moves_per_host_program",
        on_msr
            .flash_report()
            .gc_write_amplification()
            .unwrap_or(1.0)
            - 1.0,
    );
    figure(
        "msr_csv_lines_per_second",
        median(
            (0..5)
                .map(|_| msr_csv::lines_per_second())
                .collect::<Result<_, _>>()?,
        ),
    );
    Ok(())
}
