//! Devices that are written by units, without time: nanoseconds a programmed page, with eight handles beside one, and
//! the memory of a page.

use std::time::Instant;

use flashtwin::placement::{Placed, Setup};
use flashtwin_sim::{run_untimed, Control, UntimedPlan, Warm};
use flashtwin_workload::LoadSpec;

use crate::memory::resident_bytes;
use crate::{figure, median, Failure};

const PAGE_BYTES: u32 = 4096;
/// Rounds of both devices in turn.
const ROUNDS: usize = 3;
/// The device of WARP's class A2 (FAST 2026): 448 GiB in units of 128 MiB; `scale` divides its pages.
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

/// Runs a load for so many capacities and one more.
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

/// Eight handles beside one class, under the same load at the same write amplification: every handle writes all pages.
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

/// Rows of WARP at full size, 1 G host pages each: the given loads, or the one with uniform writes.
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
