//! Devices that write by units (groups of blocks): nanoseconds per programmed page in runs without and with simulated
//! time; eight handles relative to one class of pages; and the memory per page.

use std::time::Instant;

use flashtwin::placement::{Placed, Setup};
use flashtwin::{spec, Cause, DeviceSpec, Rng, Ssd};
use flashtwin_sim::{run as run_timed, run_untimed, Control, Pacing, RunConfig, UntimedPlan, Warm};
use flashtwin_workload::LoadSpec;

use crate::memory::resident_bytes;
use crate::{figure, median, Failure};

const PAGE_BYTES: u32 = 4096;
/// Number of rounds. All devices that are compared run in turn in each round.
const ROUNDS: usize = 3;
/// Returns the setup of the emulated device of class A2 in the WARP paper (FAST 2026): 448 GiB in units of 128 MiB. The
/// numbers of pages of the device and of a unit are divided by `scale`.
fn setup(scale: u32, scheme: &str) -> Result<Setup, Failure> {
    let words = [
        ("units", 4086),
        ("unit_pages", 32768 / scale),
        ("logical_pages", 117_440_512 / scale),
        ("low", 96),
        ("handles", 8),
    ];
    let words = words.map(|(key, number)| (key.to_string(), number.to_string()));
    let scheme = ("scheme".to_string(), scheme.to_string());
    Ok(Setup::of_words(&[&words[..], &[scheme]].concat())?)
}

/// Figures of a run.
struct Measured {
    ns_per_program: f64,
    waf: f64,
    resident_bytes: u64,
}

/// Fills the device, writes `capacities` times its capacity, and then one further capacity. Write amplification is that
/// of the last capacity; the time per program is a mean over the whole run.
fn run(load: &str, scale: u32, scheme: &str, capacities: f64) -> Result<Measured, Failure> {
    let setup = setup(scale, scheme)?;
    let mut device = Placed::new(&setup)?;
    let bytes = u64::from(setup.logical_pages) * u64::from(PAGE_BYTES);
    let load = LoadSpec::parse(load)?;
    let mut fill = load.fill_or_in_order(bytes, PAGE_BYTES, 1)?;
    let mut load = load.build(bytes, 1)?;
    let plan = UntimedPlan {
        page_bytes: PAGE_BYTES,
        warm: Warm::Capacities(capacities),
        capacities: 1.0,
        points: 4,
    };
    let began = Instant::now();
    let found = run_untimed(
        &mut device,
        fill.as_mut(),
        load.as_mut(),
        &plan,
        &Control::default(),
    )?;
    let nanos = began.elapsed().as_secs_f64() * 1e9;
    Ok(Measured {
        ns_per_program: nanos / device.totals().media as f64,
        waf: found
            .after
            .write_amplification(&found.before)
            .unwrap_or(1.0),
        resident_bytes: resident_bytes().unwrap_or(0),
    })
}

/// Compares the time per programmed page with eight handles and with a single class of pages under the same load. Each
/// handle writes to all pages of the device, so that both runs have the same write amplification.
pub fn ratios() -> Result<(), Failure> {
    let streams: Vec<String> = (0..8)
        .map(|handle| format!("uniform:write=1,size=4k,placement={handle},bytes=1"))
        .collect();
    let eight = streams.join(" + ");
    let mut found: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        found[0].push(run(&eight, 16, "gc", 1.0)?.ns_per_program);
        found[1].push(run(&eight, 16, "handle", 1.0)?.ns_per_program);
    }
    let of_eight = found[1].iter().zip(&found[0]).map(|(a, b)| a / b).collect();
    figure("placement_ns_per_program", median(found[0].clone()));
    figure("placement_eight_handles_ratio", median(of_eight));
    Ok(())
}

/// Measures, with simulated time, the nanoseconds per programmed page of a device that writes by units with eight
/// handles. Compares eight handles with one class, and one class with the same device if it writes superblocks (`off`).
pub fn timed() -> Result<(), Failure> {
    let streams: Vec<String> = (0..8)
        .map(|handle| format!("uniform:write=1,size=4k,placement={handle},bytes=1"))
        .collect();
    let load = format!("{},requests=1000000", streams.join(" + "));
    let mut found: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        for (times, scheme) in found.iter_mut().zip(["off", "none", "handle"]) {
            times.push(timed_run(&load, scheme)?);
        }
    }
    let ratio = |of: usize, to: usize| {
        let pairs = found[of].iter().zip(&found[to]);
        median(pairs.map(|(a, b)| a / b).collect())
    };
    figure("placement_timed_ns_per_program", median(found[2].clone()));
    figure("placement_timed_eight_handles_ratio", ratio(2, 1));
    figure("placement_timed_units_over_superblocks", ratio(1, 0));
    Ok(())
}

/// Returns the nanoseconds per programmed page in a run with this scheme.
fn timed_run(load: &str, scheme: &str) -> Result<f64, Failure> {
    let set = [("placement.scheme", scheme), ("buffer", "none")];
    let text = spec::builtin("nvme-fdp").ok_or("the profile is shipped")?;
    let mut ssd = Ssd::new(&DeviceSpec::with_overrides(text, "nvme-fdp", &set)?);
    ssd.fill_sequential();
    let pages = u64::from(ssd.spec().exported_pages());
    assert!(
        ssd.write_random(&mut Rng::new(1), 2 * pages),
        "no block wears out"
    );
    ssd.reset_metrics(None);
    let mut load = LoadSpec::parse(load)?.build(ssd.exported_bytes(), 1)?;
    let config = RunConfig {
        pacing: Pacing::Closed { depth: 64 },
        ..RunConfig::default()
    };
    let began = Instant::now();
    let outcome = run_timed(&mut ssd, load.as_mut(), &config, &Control::default(), None)?;
    let nanos = began.elapsed().as_secs_f64() * 1e9;
    let moves = outcome.flash.flash.count(Cause::GcMove);
    Ok(nanos / (outcome.submitted + moves) as f64)
}

/// Runs loads on the device of the WARP paper at full size, with 1 G host pages each: the given loads or, if there are
/// none, WARP's load with uniform writes.
pub fn full(loads: &[String]) -> Result<(), Failure> {
    match loads {
        [] => full_row("warp-3stream:dist=uniform"),
        _ => loads.iter().try_for_each(|load| {
            println!("{load}");
            full_row(load)
        }),
    }
}

fn full_row(load: &str) -> Result<(), Failure> {
    let before = resident_bytes().unwrap_or(0);
    let began = Instant::now();
    let found = run(load, 1, "handle", 6.5)?;
    figure("placement_full_seconds", began.elapsed().as_secs_f64());
    figure("placement_full_ns_per_program", found.ns_per_program);
    figure("placement_full_waf", found.waf);
    let pages = 4086.0 * 32768.0;
    let held = found.resident_bytes.saturating_sub(before);
    figure("placement_bytes_per_page", held as f64 / pages);
    Ok(())
}
