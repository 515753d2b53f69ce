//! A load with many requests in flight, run with every policy, FTL, victim rule, wear levelling, profile and array. The
//! checksums cover the summary and every completion.

use super::{hold, Checksum};
use flashtwin::buffer::ChosenPolicy;
use flashtwin::spec::{builtin, builtin_array, builtin_array_names, builtin_names};
use flashtwin::{Array, ArraySpec, Completion, Device, DeviceSpec, Ssd, Time};
use flashtwin_sim::{
    fill_buffer, precondition, run, Control, Drivable, Fault, FaultKind, Pacing, Precondition,
    RunConfig, RunInfo, Speed, Summary,
};
use flashtwin_workload::GeneratorSpec;

type Set = Vec<(&'static str, String)>;

fn set(pairs: &[(&'static str, &str)]) -> Set {
    pairs.iter().map(|&(k, v)| (k, v.to_owned())).collect()
}

/// A load with reads and writes of several pages each. It accesses a few pages again and again.
const LOAD: &str = "zipf:theta=0.9,write=0.6,size=exp(12k),rate=20000/s,requests=2500";
const DEPTH: Pacing = Pacing::Closed { depth: 16 };
const OPEN: Pacing = Pacing::Open {
    speed: Speed::RECORDED,
};

fn checksum<S: Drivable>(mut device: Device<S>, pacing: Pacing, faults: &[Fault]) -> u64 {
    let control = Control::default();
    precondition(&mut device, Precondition::Steady, 1, &control).expect("a sound device");
    fill_buffer(&mut device, 1, &control).expect("a device that does not wear out");
    let load = GeneratorSpec::parse(LOAD).expect("a sound load");
    let mut load = load.build(device.exported_bytes(), 7).expect("it fits");
    let config = RunConfig {
        pacing,
        warmup_requests: 300,
        series_interval: Some(Time::from_ms(20)),
        faults: faults.to_vec(),
        // During each case, the laws of the model are checked as well.
        check_requests: Some(701),
        ..RunConfig::default()
    };
    let mut sum = Checksum::new();
    let mut keep = |completions: &[Completion]| {
        for c in completions {
            for number in [c.tag, c.arrival.0, c.done.0, c.hits.into(), c.pages.into()] {
                sum.add(&number.to_le_bytes());
            }
        }
        Ok(())
    };
    let outcome =
        run(&mut device, &mut *load, &config, &control, Some(&mut keep)).expect("it runs");
    let summary = Summary::new(&device, &outcome, &RunInfo::default());
    sum.add(&serde_json::to_vec(&summary).expect("a summary is plain data"));
    sum.0
}

/// Returns a profile with the given changes, made small so that GC runs.
fn small(profile: &str, change: &[(&'static str, &str)], more: &Set) -> DeviceSpec {
    let text = builtin(profile).expect("it is built in");
    let mut all = set(change);
    all.extend(more.iter().cloned());
    let all: Vec<(&str, &str)> = all.iter().map(|(k, v)| (*k, v.as_str())).collect();
    DeviceSpec::with_overrides(text, profile, &all).unwrap_or_else(|e| panic!("{profile}: {e}"))
}

const MSR: &[(&str, &str)] = &[
    ("geometry.blocks_per_plane", "64"),
    ("geometry.reserve_percent", "12"),
    ("buffer.capacity", "512 KiB"),
];
const MODERN: &[(&str, &str)] = &[
    ("geometry.blocks_per_plane", "64"),
    ("geometry.reserve_percent", "12"),
    ("buffer.capacity", "512 KiB"),
    ("nand.backend", "modern"),
    ("geometry.channels", "4"),
    ("buffer.evict", "background"),
    ("buffer.partial", "sectors"),
];

/// Cases with their checksums.
type Cases = Vec<(String, u64)>;

fn ssd(all: &mut Cases, name: String, spec: &DeviceSpec, pacing: Pacing) {
    all.push((name, checksum(Ssd::new(spec), pacing, &[])));
}

fn policies(backend: &str, change: &[(&'static str, &str)], pacing: Pacing) -> Cases {
    let mut all = Cases::new();
    let mut policies = ChosenPolicy::names();
    policies.extend(["gcar-ecr", "gcar-arc", "gcar-cbm", "gcar-fab"].map(String::from));
    for policy in &policies {
        let with = vec![("buffer.policy", policy.clone())];
        let spec = small("demo", change, &with);
        ssd(&mut all, format!("{backend} {policy}"), &spec, pacing);
    }
    all
}

#[test]
fn policies_on_msr() {
    hold("policies_on_msr", &policies("msr", MSR, OPEN));
}

#[test]
fn policies_on_modern() {
    hold("policies_on_modern", &policies("modern", MODERN, DEPTH));
}

#[test]
fn settings() {
    let mut all = Cases::new();
    for ftl in ["dftl", "bast", "fast", "faster"] {
        let change = [
            ("geometry.blocks_per_plane", "64"),
            ("geometry.reserve_percent", "25"),
            ("ftl.kind", ftl),
        ];
        for further in [&[][..], &[("buffer", "none")]] {
            let spec = small("demo", &change, &set(further));
            ssd(&mut all, format!("{ftl} {further:?}"), &spec, DEPTH);
        }
    }
    let modern: &[&[(&'static str, &str)]] = &[
        &[("gc.victim", "fifo")],
        &[("gc.victim", "random")],
        &[("gc.victim", "d-choices"), ("gc.choices", "3")],
        &[("gc.victim", "windowed"), ("gc.window_percent", "20")],
        &[("gc.victim", "cost-benefit")],
        &[("gc.victim", "cost-age-time")],
        &[("gc.preemptible", "true")],
        &[("gc.watermark", "pages"), ("ftl.separation", "gc")],
        &[("gc.idle_percent", "9")],
        &[
            ("gc.granularity", "superblock"),
            ("nand.copy_back", "false"),
            ("ftl.placement", "dynamic"),
            ("ftl.summary_page", "false"),
        ],
        &[("wear.levelling", "dynamic")],
        &[("wear.levelling", "static"), ("wear.erases_behind", "2")],
        &[("ftl.separation", "gc")],
        &[("ftl.separation", "region"), ("ftl.region_percent", "20")],
        &[("ftl.placement", "dynamic")],
        &[("nand.copy_back", "false")],
        &[
            ("nand.suspend", "true"),
            ("nand.cell", "tlc"),
            ("timing.read_us", "[40, 60, 80]"),
        ],
        &[
            ("nand.pslc_percent", "10"),
            ("nand.cell", "tlc"),
            ("ftl.summary_page", "false"),
        ],
        &[
            ("ftl.summary_page", "false"),
            ("nand.multi_plane", "2"),
            ("geometry.flash_page_bytes", "8 KiB"),
        ],
        &[
            ("nand.cached_commands", "true"),
            ("nand.read_retry_percent", "5"),
        ],
        &[
            ("host.queues", "4"),
            ("host.queue_depth", "2"),
            ("host.arbitration", "weighted"),
        ],
        &[("link.kind", "pcie"), ("controller.request_us", "2")],
        &[("link.kind", "sata")],
        &[("buffer.policy", "cda-gc"), ("gc.moves", "victim")],
        &[("buffer.policy", "cda-gc"), ("gc.moves", "class")],
    ];
    for change in modern {
        let spec = small("demo", MODERN, &set(change));
        ssd(&mut all, format!("modern {change:?}"), &spec, DEPTH);
    }
    let msr: &[&[(&'static str, &str)]] = &[
        &[
            ("wear.levelling", "reference"),
            ("wear.erase_limit", "5000"),
        ],
        &[("nand.allocation_pool", "plane")],
        &[("nand.copy_back", "false"), ("nand.parallel_units", "1")],
        &[
            ("nand.plane_mapping", "concatenated"),
            ("nand.cleaning_in_background", "true"),
        ],
        &[("gc.ideal", "true")],
    ];
    for change in msr {
        ssd(
            &mut all,
            format!("msr {change:?}"),
            &small("demo", MSR, &set(change)),
            DEPTH,
        );
    }
    hold("settings", &all);
}

#[test]
fn profiles() {
    let mut all = Cases::new();
    let fewer_blocks = [
        ("geometry.blocks_per_plane", "96"),
        ("geometry.reserve_percent", "20"),
        ("gc.low_percent", "5"),
        ("gc.idle_percent", "none"),
    ];
    // FAST and FASTER have rules of their own for collection, so no watermarks are set. The sizes of their logs are
    // removed from the profile: the default size is a share of the chip and therefore suits the small chip.
    let fewer_blocks_and_logs = [
        ("geometry.blocks_per_plane", "96"),
        ("geometry.reserve_percent", "20"),
        ("ftl.rw_log_blocks", "none"),
        ("ftl.isolation_blocks", "none"),
    ];
    for profile in builtin_names() {
        let has = |what| builtin(profile).is_some_and(|text| text.contains(what));
        let mut change = match has("kind = \"fast") {
            true => fewer_blocks_and_logs.to_vec(),
            false => fewer_blocks.to_vec(),
        };
        // Each placement handle has an open unit. With the usual number of handles, the open units would take too large
        // a part of a small device.
        if has("[placement]") {
            change.push(("placement.handles", "4"));
        }
        let spec = small(profile, &change, &Set::new());
        ssd(&mut all, format!("profile {profile}"), &spec, DEPTH);
    }
    hold("profiles", &all);
}

#[test]
fn arrays() {
    let mut all = Cases::new();
    const TINY: &[(&str, &str)] = &[
        ("member.geometry.chips", "4"),
        ("member.geometry.blocks_per_plane", "64"),
        ("member.geometry.pages_per_block", "16"),
        ("buffer.capacity", "512 KiB"),
    ];
    let mut array = |name: String, array: &str, change: &[(&str, &str)], faults: &[Fault]| {
        let text = builtin_array(array).expect("it is built in");
        let change: Vec<_> = TINY.iter().chain(change).copied().collect();
        let spec = ArraySpec::with_overrides(text, array, &change);
        let spec = spec.unwrap_or_else(|e| panic!("{name}: {e}"));
        all.push((name, checksum(Array::new(&spec), OPEN, faults)));
    };
    for name in builtin_array_names().filter(|name| *name != "raid6-nvme") {
        array(format!("array {name}"), name, &[], &[]);
    }
    let level = |level: &'static str| [("array.level", level), ("array.chunk", "32 KiB")];
    for name in ["raid0", "raid1", "raid10", "raid5", "raid6", "swan"] {
        array(format!("array {name}"), "harmonia-array", &level(name), &[]);
    }
    for coordination in [
        "inclusive",
        "selective",
        "idle",
        "soft-limit",
        "turns",
        "ideal",
    ] {
        let change = [("array.coordination", coordination)];
        array(format!("array {coordination}"), "raid5-array", &change, &[]);
    }
    let fault = |kind, ms| Fault {
        at: Time::from_ms(ms),
        kind,
        member: 1,
    };
    let faults = [fault(FaultKind::Fail, 20), fault(FaultKind::Replace, 40)];
    // Members whose front ends take no time. Events of their flash are in the array's event queue.
    let bare = ("member.link.bus_ns_per_sector", "0");
    for name in ["raid0", "raid1", "raid10", "raid5", "raid6", "swan"] {
        let [of, chunk] = level(name);
        let change = [of, chunk, bare];
        array(format!("array bare {name}"), "harmonia-array", &change, &[]);
        if !["raid0", "swan"].contains(&name) {
            let name = format!("array bare {name} fails");
            array(name, "harmonia-array", &change, &faults);
        }
    }
    for coordination in ["inclusive", "selective", "idle", "turns"] {
        let change = [("array.coordination", coordination), bare];
        array(
            format!("array bare {coordination}"),
            "raid5-array",
            &change,
            &[],
        );
    }
    for name in ["raid5", "raid6", "raid10"] {
        array(
            format!("array {name} fails"),
            "harmonia-array",
            &level(name),
            &faults,
        );
    }
    hold("arrays", &all);
}
