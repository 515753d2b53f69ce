//! Instructions per request, by stage of the model. Unlike times, they do not depend on the load of the machine.
//!
//! `stages` runs this program again under callgrind, once per case, and adds up the instructions of each source file.
//! Code of the standard library counts for the stage into which it is inlined; it is also shown separately. A case
//! begins with the flash in its steady state. Counting begins when the buffer is in a steady state, too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flashtwin::{spec, Array, ArraySpec, Device, Ssd};
use flashtwin_sim::{run, Control, Drivable, Pacing, RunConfig};
use flashtwin_workload::GeneratorSpec;

use crate::{profile, scaling, Failure, DEPTH, LOAD};

/// Overrides of a profile.
type Overrides = &'static [(&'static str, &'static str)];

/// A case: name, profile, overrides, number of counted requests, and requests in flight.
type Case = (&'static str, &'static str, Overrides, u64, u32);

/// Reduced number of blocks per plane. Under callgrind, bringing the full device into its steady state would take
/// minutes.
const FEWER: (&str, &str) = ("geometry.blocks_per_plane", "256");

/// An array of eight devices of 8 chips behind one buffer, on one host bus.
macro_rules! raid5_of_8 {
    ($($more:expr),*) => {
        &[
            ("array.level", "raid5"),
            ("array.members", "ecr*8"),
            ("member.geometry.chips", "8"),
            ("member.geometry.blocks_per_plane", "256"),
            ("member.buffer", "none"),
            ("buffer.capacity", "32 MiB"),
            ("link.bus_ns_per_sector", "238.4"),
            ("member.link.bus_ns_per_sector", "0"),
            $($more),*
        ]
    };
}

const CASES: [Case; 13] = [
    ("msr", "ecr", &[FEWER], 100_000, DEPTH),
    (
        "modern",
        "ecr",
        &[
            FEWER,
            ("nand.backend", "modern"),
            ("geometry.channels", "16"),
            ("nand.background_gc", "false"),
        ],
        100_000,
        DEPTH,
    ),
    ("depth_4096", "ecr", &[FEWER], 100_000, 4096),
    ("raid5_of_8", "raid5-array", raid5_of_8!(), 40_000, DEPTH),
    (
        "raid5_gcar_lru",
        "raid5-array",
        raid5_of_8!(("buffer.policy", "gcar-lru")),
        40_000,
        DEPTH,
    ),
    (
        "policy_gcar_lru",
        "ecr",
        &[FEWER, ("buffer.policy", "gcar-lru")],
        40_000,
        DEPTH,
    ),
    (
        "policy_arc",
        "ecr",
        &[FEWER, ("buffer.policy", "arc")],
        40_000,
        DEPTH,
    ),
    (
        "policy_ecr",
        "ecr",
        &[FEWER, ("buffer.policy", "ecr")],
        40_000,
        DEPTH,
    ),
    (
        "policy_coop",
        "ecr",
        &[FEWER, ("buffer.policy", "coop")],
        40_000,
        DEPTH,
    ),
    ("dftl", "ecr", &[("ftl.kind", "dftl"), FEWER], 40_000, DEPTH),
    ("bast", "ecr", &[("ftl.kind", "bast"), FEWER], 30_000, DEPTH),
    ("fast", "ecr", &[("ftl.kind", "fast"), FEWER], 30_000, DEPTH),
    (
        "faster",
        "ecr",
        &[("ftl.kind", "faster"), FEWER],
        30_000,
        DEPTH,
    ),
];

/// The stages of the model: the name of each, and the beginnings of the paths of its source files below `crates/`. If
/// several stages match a file, it belongs to the first.
const STAGES: [(&str, &[&str]); 12] = [
    ("generator or reader", &["flashtwin-workload/"]),
    ("driver", &["flashtwin-sim/"]),
    (
        "link",
        &["flashtwin/src/device/link", "flashtwin/src/device/wire"],
    ),
    ("cached pages", &["flashtwin/src/device/cache/"]),
    (
        "submit, queues, completion",
        &["flashtwin/src/device", "flashtwin/src/request"],
    ),
    ("buffer lookup", &["flashtwin/src/buffer/directory"]),
    ("policy", &["flashtwin/src/buffer/"]),
    (
        "map, collection",
        &["flashtwin/src/ftl/", "flashtwin/src/gc/"],
    ),
    (
        "flash operations",
        &["flashtwin/src/nand", "flashtwin/src/ssd"],
    ),
    ("array", &["flashtwin/src/array"]),
    ("event queue", &["flashtwin/src/events"]),
    ("metrics", &["flashtwin/src/metrics", "hdrhistogram"]),
];

/// Instructions in files that belong to no stage, such as those of small types and of the C library.
const OTHER: &str = "other";

/// Instructions of a case.
#[derive(Debug, Default)]
struct Counts {
    by_stage: BTreeMap<&'static str, u64>,
    in_std: u64,
    total: u64,
}

/// The cases that CI checks against recorded counts.
const HELD: [&str; 3] = ["msr", "modern", "raid5_of_8"];
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.txt");
/// Largest relative difference between a count and the recorded one. CI fails if a difference is larger.
const TOLERANCE: f64 = 0.03;

/// Compares the counts of the cases that CI checks with the recorded counts. With `record`, records them instead.
pub fn held(record: bool) -> Result<(), Failure> {
    let compiler = Command::new("rustc").arg("--version").output()?;
    let compiler = String::from_utf8(compiler.stdout)?.trim().to_string();
    let before = std::fs::read_to_string(RECORD)?;
    if !has_valgrind() || !(record || before.contains(&compiler)) {
        println!("instructions a request: not compared; that takes valgrind and the compiler on record in {RECORD}");
        return Ok(());
    }
    let mut lines = vec![compiler];
    let mut wrong = Vec::new();
    let case_of = |name| CASES.iter().find(|case| case.0 == name).ok_or("a case");
    let cases = HELD
        .map(case_of)
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    for ((name, .., requests, _), counts) in cases.iter().zip(count_all(&cases)?) {
        let now = counts.total / requests;
        lines.push(format!("{name} {now}"));
        let known = before
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        if !known.is_some_and(|known| (now as f64 / known - 1.0).abs() <= TOLERANCE) {
            wrong.push(format!(
                "{name}: {now} instructions a request, {} on record",
                known.unwrap_or(0.0)
            ));
        }
    }
    if record {
        std::fs::write(RECORD, lines.join("\n") + "\n")?;
    } else if !wrong.is_empty() {
        return Err(format!(
            "{}; if that is meant: flashtwin-bench record",
            wrong.join("; ")
        )
        .into());
    }
    Ok(())
}

pub fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok()
}

/// Prints the instructions per request of every case, or of the named cases.
pub fn table(names: &[String]) -> Result<(), Failure> {
    let known = |name: &String| CASES.iter().any(|case| case.0 == name);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        let all: Vec<_> = CASES.iter().map(|case| case.0).collect();
        return Err(format!("no case {name}; cases: {}", all.join(", ")).into());
    }
    if !has_valgrind() {
        println!("instructions a request: not counted, since valgrind is not installed");
        return Ok(());
    }
    let cases = CASES
        .iter()
        .filter(|case| names.is_empty() || names.iter().any(|name| name == case.0));
    let cases: Vec<&Case> = cases.collect();
    let counts = count_all(&cases)?;
    let found: Vec<_> = cases.into_iter().zip(counts).collect();
    print!("{}", as_table(&found));
    Ok(())
}

/// Counts the instructions of cases, one case at a time on each core. Prints each count as soon as it is known.
fn count_all(cases: &[&Case]) -> Result<Vec<Counts>, Failure> {
    let next = AtomicUsize::new(0);
    let take = || -> Result<Vec<(usize, Counts)>, String> {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((name, .., requests, _)) = cases.get(at) else {
                return Ok(done);
            };
            let counts = count(name).map_err(|e| e.to_string())?;
            let each = counts.total / requests;
            println!("instructions_per_request_{name}: {each}");
            done.push((at, counts));
        }
    };
    let cores = thread::available_parallelism()?.get().min(cases.len());
    let mut found = thread::scope(|scope| -> Result<Vec<_>, String> {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(take)).collect();
        let mut found = Vec::new();
        for worker in workers {
            found.extend(worker.join().map_err(|_| "a count ended by a panic")??);
        }
        Ok(found)
    })?;
    found.sort_by_key(|&(at, _)| at);
    Ok(found.into_iter().map(|(_, counts)| counts).collect())
}

fn as_table(found: &[(&Case, Counts)]) -> String {
    let mut text = String::from("| stage |");
    let row = |text: &mut String, name: &str, of: &dyn Fn(&Counts) -> u64| {
        let _ = write!(text, "\n| {name} |");
        for (case, counts) in found {
            let _ = write!(text, " {} |", of(counts) / case.3);
        }
    };
    for (case, _) in found {
        let _ = write!(text, " `{}` |", case.0);
    }
    text.push_str("\n|---|");
    text.push_str(&"---:|".repeat(found.len()));
    for name in STAGES.iter().map(|stage| stage.0).chain([OTHER]) {
        row(&mut text, name, &|counts| {
            counts.by_stage.get(name).copied().unwrap_or(0)
        });
    }
    row(&mut text, "**all**", &|counts| counts.total);
    row(&mut text, "of these in the standard library", &|counts| {
        counts.in_std
    });
    text.push('\n');
    text
}

/// Returns the number of instructions that all requests counted in [`counted`] take together.
pub fn total(name: &str) -> Result<u64, Failure> {
    Ok(count(name)?.total)
}

fn count(name: &str) -> Result<Counts, Failure> {
    let out =
        std::env::temp_dir().join(format!("flashtwin_{}_{name}.callgrind", std::process::id()));
    let done = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--collect-atstart=no",
            "--toggle-collect=*stages::within*",
            "--dump-after=*Books::open",
            "--dump-before=*Books::check",
        ])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe()?)
        .args(["counted", name])
        .output()?;
    // The checks at the start and at the end of a run must not be counted: they take instructions for each page of the
    // device, not for each request. Therefore callgrind dumps its counts after the first and before the last check of a
    // run. Of the four dumps, two belong to the run to the steady state. The last one has the counts of the measured
    // requests.
    let dumps = (1..=4).map(|number| out.with_extension(format!("callgrind.{number}")));
    let files: Vec<_> = dumps.chain([out.clone()]).collect();
    let text = std::fs::read_to_string(&files[3]);
    for file in files {
        let _ = std::fs::remove_file(file);
    }
    if !done.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    Ok(add_up(&text?))
}

/// Prefixes of the lines of a callgrind file that name a source file: that of a function (`fl`), of code inlined into
/// it (`fi`, `fe`), or of a function that it calls (`cfi`, `cfl`).
const FILES: [&str; 5] = ["fl", "fi", "fe", "cfi", "cfl"];

/// Adds up the lines of a callgrind file. The line after `calls` is skipped, because it repeats counts of the called
/// function.
fn add_up(text: &str) -> Counts {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut counts = Counts::default();
    let (mut stage, mut in_std, mut is_call) = (OTHER, false, false);
    for line in text.lines() {
        let file = line.split_once('=').filter(|(key, _)| FILES.contains(key));
        if let Some((key, file)) = file {
            let (id, name) = file.split_once(' ').unwrap_or((file, ""));
            if !name.is_empty() {
                names.insert(id, name);
            }
            if key.starts_with('c') {
                continue;
            }
            let name = names.get(id).copied().unwrap_or("");
            in_std = name.contains("/library/");
            if !in_std {
                stage = stage_of(name);
            }
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let cost = line
                .split(' ')
                .nth(1)
                .and_then(|cost| cost.parse().ok())
                .unwrap_or(0);
            if !std::mem::take(&mut is_call) {
                *counts.by_stage.entry(stage).or_default() += cost;
                counts.total += cost;
                counts.in_std += if in_std { cost } else { 0 };
            }
        }
    }
    counts
}

fn stage_of(file: &str) -> &'static str {
    let below = file.rsplit_once("crates/").map_or(file, |(_, below)| below);
    let fits = |starts: &&[&str]| {
        starts.iter().any(|start| {
            below.starts_with(start) || below.contains("hdrhistogram") && *start == "hdrhistogram"
        })
    };
    STAGES
        .iter()
        .find(|(_, starts)| fits(starts))
        .map_or(OTHER, |stage| stage.0)
}

/// Runs a case. `stages` starts this function under callgrind.
pub fn counted(name: &str) -> Result<(), Failure> {
    if let Some(done) = scaling::counted(name) {
        return done;
    }
    let mut replay = prepare(name)?;
    let requests = requests(name)?;
    replay(requests / 4)?;
    within(&mut || replay(requests))
}

fn case(name: &str) -> Result<&'static Case, Failure> {
    let case = CASES.iter().find(|case| case.0 == name);
    case.ok_or_else(|| format!("no case {name}").into())
}

/// Returns the number of counted requests of a case.
pub fn requests(name: &str) -> Result<u64, Failure> {
    Ok(case(name)?.3)
}

/// Replays a number of requests.
pub type Replay = Box<dyn FnMut(u64) -> Result<(), Failure>>;

/// Brings the device of a case into its steady state. Returns a function that replays requests on it.
pub fn prepare(name: &str) -> Result<Replay, Failure> {
    let &(_, device, overrides, _, depth) = case(name)?;
    match spec::builtin_array(device) {
        Some(text) => {
            let mut array = Array::new(&ArraySpec::with_overrides(text, device, overrides)?);
            array.fill_steady(1);
            replays(array, depth)
        }
        None => {
            let mut ssd = Ssd::new(&profile(device, overrides)?);
            ssd.fill_steady(1);
            replays(ssd, depth)
        }
    }
}

fn replays<S: Drivable>(mut device: Device<S>, depth: u32) -> Result<Replay, Failure>
where
    Device<S>: 'static,
{
    let mut load = GeneratorSpec::parse(LOAD)?.build(device.exported_bytes(), 1)?;
    Ok(Box::new(move |requests| {
        let config = RunConfig {
            pacing: Pacing::Closed { depth },
            requests_max: Some(requests),
            ..RunConfig::default()
        };
        run(&mut device, &mut *load, &config, &Control::default(), None)?;
        Ok(())
    }))
}

/// Calls `device`. Callgrind counts only the instructions that are executed within this call.
#[inline(never)]
pub fn within(device: &mut dyn FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    device()
}
