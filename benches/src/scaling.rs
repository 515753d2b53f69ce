//! `flashtwin-bench scaling`: the time and instructions of a request on devices of 64 GiB to 16 TiB, on arrays of 1 to
//! 32 members, and with 1 to 4096 requests in flight. The largest device takes 9 GB of memory.

use std::time::Instant;

use flashtwin::{Array, ArraySpec, Device, Ssd};
use flashtwin_sim::{run, Control, Drivable, Pacing, RunConfig};
use flashtwin_workload::GeneratorSpec;

use crate::{memory, profile, stages, Failure, DEPTH};

const DEPTHS: [u32; 3] = [1, DEPTH, 4096];
/// Number of requests of a timed measurement, and of a measurement that counts instructions.
const REQUESTS: u64 = 2_000_000;
const REQUESTS_COUNTED: u64 = 100_000;
/// Total number of chips of every array.
const CHIPS: u32 = 64;
const MEMBERS: [u32; 4] = [1, 2, 8, 32];

/// A device: its name, page size and changes to the ECR device, and whether it is small enough for callgrind.
type Size = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    bool,
);

const SIZES: [Size; 4] = [
    ("64 GiB, pages of 4 KiB", "4k", &[], true),
    (
        "1 TiB, 4 KiB",
        "4k",
        &[
            ("geometry.blocks_per_plane", "2048"),
            ("geometry.pages_per_block", "256"),
        ],
        false,
    ),
    (
        "1 TiB, 16 KiB",
        "16k",
        &[
            ("geometry.page_bytes", "16 KiB"),
            ("geometry.blocks_per_plane", "2048"),
        ],
        true,
    ),
    (
        "16 TiB, 16 KiB",
        "16k",
        &[
            ("geometry.page_bytes", "16 KiB"),
            ("geometry.blocks_per_plane", "4096"),
            ("geometry.pages_per_block", "512"),
        ],
        false,
    ),
];

fn load(page: &str) -> String {
    format!("uniform:write=0.8,size={page},align={page}")
}

fn members(count: u32) -> Result<Array, Failure> {
    let (members, chips) = (format!("ecr*{count}"), (CHIPS / count).to_string());
    let overrides = [
        ("array.level", "raid0"),
        ("array.members", members.as_str()),
        ("member.geometry.chips", chips.as_str()),
        ("member.buffer", "none"),
        ("buffer.capacity", "32 MiB"),
    ];
    let text = flashtwin::spec::builtin_array("raid5-array").ok_or("the array is shipped")?;
    let mut array = Array::new(&ArraySpec::with_overrides(text, "raid5-array", &overrides)?);
    array.fill_steady(1);
    Ok(array)
}

/// Replays requests; returns the seconds it took.
fn replay<S: Drivable>(
    device: &mut Device<S>,
    page: &str,
    depth: u32,
    requests: u64,
) -> Result<f64, Failure> {
    let mut load = GeneratorSpec::parse(&load(page))?.build(device.exported_bytes(), 1)?;
    let config = RunConfig {
        pacing: Pacing::Closed { depth },
        requests_max: Some(requests),
        ..RunConfig::default()
    };
    let began = Instant::now();
    run(device, &mut *load, &config, &Control::default(), None)?;
    Ok(began.elapsed().as_secs_f64())
}

/// Returns the speed at each of the queue depths [`DEPTHS`], in millions of requests per second, as cells of a table
/// row.
fn rates<S: Drivable>(device: &mut Device<S>, page: &str) -> Result<String, Failure> {
    let mut cells = String::new();
    for depth in DEPTHS {
        replay(device, page, depth, REQUESTS / 4)?;
        let seconds = replay(device, page, depth, REQUESTS)?;
        cells += &format!(" {:.1} |", REQUESTS as f64 / seconds / 1e6);
    }
    Ok(cells)
}

/// Returns the instructions per request at depth [`DEPTH`], as a cell of a table row.
fn instructions(name: &str, is_small: bool) -> Result<String, Failure> {
    if !is_small || !stages::has_valgrind() {
        return Ok(" |".into());
    }
    let total = stages::total(&format!("scaling {name}"))?;
    Ok(format!(" {} |", total / REQUESTS_COUNTED))
}

/// Runs the device of a table row twice; callgrind counts the instructions of the second run. `name` is the name of the
/// row after the word `scaling`. Returns `None` if there is no such row.
pub fn counted(name: &str) -> Option<Result<(), Failure>> {
    let name = name.strip_prefix("scaling ")?;
    if let Some((_, page, overrides, _)) = SIZES.iter().find(|size| size.0 == name) {
        return Some(profile("ecr", overrides).and_then(|spec| {
            let mut ssd = Ssd::new(&spec);
            ssd.fill_steady(1);
            count(&mut ssd, page)
        }));
    }
    let count_of = name.parse().ok().filter(|count| MEMBERS.contains(count))?;
    Some(members(count_of).and_then(|mut array| count(&mut array, "4k")))
}

fn count<S: Drivable>(device: &mut Device<S>, page: &str) -> Result<(), Failure> {
    replay(device, page, DEPTH, REQUESTS_COUNTED / 4)?;
    stages::within(&mut || replay(device, page, DEPTH, REQUESTS_COUNTED).map(|_| ()))
}

/// Prints both tables.
pub fn table() -> Result<(), Failure> {
    let depths: String = (DEPTHS.iter())
        .map(|depth| format!(" depth {depth} (M/s) |"))
        .collect();
    let rule = "|---|".to_owned() + &"---:|".repeat(DEPTHS.len() + 2);
    println!("| device |{depths} instructions | bytes per flash page | write amplification |\n{rule}---:|");
    for (name, page, overrides, is_small) in &SIZES {
        let spec = profile("ecr", overrides)?;
        let before = memory::resident_bytes();
        let mut ssd = Ssd::new(&spec);
        ssd.fill_steady(1);
        let rates = rates(&mut ssd, page)?;
        let bytes = before.zip(memory::resident_bytes());
        let bytes = bytes.map_or(String::new(), |(before, after)| {
            format!(
                "{:.1}",
                (after - before) as f64 / spec.physical_pages() as f64
            )
        });
        let amplification = ssd.flash_report().gc_write_amplification().unwrap_or(1.0);
        drop(ssd);
        let counts = instructions(name, *is_small)?;
        println!("| {name} |{rates}{counts} {bytes} | {amplification:.1} |");
    }
    println!(
        "\n| members of a RAID-0 |{depths} instructions |\n{}",
        &rule[..rule.len() - 5]
    );
    for count in MEMBERS {
        let rates = rates(&mut members(count)?, "4k")?;
        let counts = instructions(&count.to_string(), true)?;
        println!("| {count} |{rates}{counts}");
    }
    Ok(())
}
