//! Arrays: page operations per second, relative to one SSD with as many chips that is measured in the same run.
//!
//! One SSD of 64 chips with its buffer is compared with eight SSDs of 8 chips each behind the same buffer, as RAID-0
//! and as RAID-5. Page operations are counted as in [`crate::ftls`]. All devices run the same load. RAID-5 runs fewer
//! requests of it, because parity multiplies the page operations per request.

use std::time::Instant;

use flashtwin::{spec, Array, ArraySpec, Device, Ssd};
use flashtwin_sim::{run, Control, Drivable, Pacing, RunConfig};
use flashtwin_workload::GeneratorSpec;

use crate::ftls::page_operations;
use crate::{figure, median, profile, Failure, DEPTH, LOAD};

/// Number of rounds. Each round runs all devices, one after the other, and gives one ratio per array. The medians of
/// these ratios are reported.
const ROUNDS: usize = 5;

fn array(level: &str) -> Result<Array, Failure> {
    let name = "raid5-array";
    let text = spec::builtin_array(name).ok_or("the profile is shipped")?;
    let overrides = [
        ("array.level", level),
        ("array.members", "ecr*8"),
        ("member.geometry.chips", "8"),
        ("member.geometry.blocks_per_plane", "512"),
        ("member.buffer", "none"),
        ("buffer.capacity", "32 MiB"),
        // Only the bus between host and array takes time, like the bus between host and SSD. The members' own buses
        // take none.
        ("link.bus_ns_per_sector", "238.4"),
        ("member.link.bus_ns_per_sector", "0"),
    ];
    let mut array = Array::new(&ArraySpec::with_overrides(text, name, &overrides)?);
    array.fill_steady(1);
    Ok(array)
}

/// Runs one round. Returns the page operations per second.
fn rate<S: Drivable>(
    device: &mut Device<S>,
    operations: impl Fn(&Device<S>) -> u64,
    requests: u64,
    seed: u64,
) -> Result<f64, Failure> {
    let mut load = GeneratorSpec::parse(LOAD)?.build(device.exported_bytes(), seed)?;
    let config = RunConfig {
        pacing: Pacing::Closed { depth: DEPTH },
        requests_max: Some(requests),
        ..RunConfig::default()
    };
    device.reset_metrics(None);
    let began = Instant::now();
    run(device, &mut *load, &config, &Control::default(), None)?;
    Ok(operations(device) as f64 / began.elapsed().as_secs_f64())
}

/// Prints the ratios and the rates.
pub fn ratios() -> Result<(), Failure> {
    let of_ssd = |ssd: &Ssd| page_operations(&ssd.flash_report());
    let of_members = |array: &Array| array.member_reports().iter().map(page_operations).sum();
    let mut ssd = Ssd::new(&profile("ecr", &[])?);
    ssd.fill_steady(1);
    let mut arrays = [
        ("raid0", array("raid0")?, 1_000_000),
        ("raid5", array("raid5")?, 300_000),
    ];
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 0..=ROUNDS as u64 {
        let rate_of_ssd = rate(&mut ssd, of_ssd, 1_000_000, 1 + round)?;
        let mut of_round = vec![rate_of_ssd];
        for (_, array, requests) in &mut arrays {
            of_round.push(rate(array, of_members, *requests, 1 + round)?);
        }
        // The first round warms up.
        if round > 0 {
            for (all, of_round) in rates.iter_mut().zip(of_round) {
                all.push(of_round);
            }
        }
    }
    for ((name, ..), own) in arrays.iter().zip(&rates[1..]) {
        let of_round = own.iter().zip(&rates[0]).map(|(own, ssd)| own / ssd);
        figure(&format!("ratio_{name}_of_8"), median(of_round.collect()));
    }
    for (name, own) in ["ssd", "raid0_of_8", "raid5_of_8"].iter().zip(&rates) {
        figure(
            &format!("{name}_million_page_operations_per_second"),
            median(own.clone()) / 1e6,
        );
    }
    Ok(())
}
