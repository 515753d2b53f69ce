//! Snapshots; served devices are stored in the same format. Any file is either rejected with a message, or leaves a
//! device that is consistent, executes requests and reports. Inputs are valid snapshots with changed bytes, with or
//! without a corrected checksum. They cover each back end, translation layer and kind of array.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use flashtwin::spec::{builtin, builtin_array};
use flashtwin::{Array, ArraySpec, Device, DeviceSpec, Ssd, Unwatched};
use flashtwin_sim::{
    load_snapshot, run, save_snapshot, Control, Drivable, RunConfig, RunInfo, SimError, Summary,
};
use flashtwin_workload::GeneratorSpec;
use libfuzzer_sys::fuzz_target;

/// Size in bytes of the trailer, which follows the state: length of the state (8), checksum (4), end mark (4).
const TRAILER_BYTES: usize = 16;

/// The devices: the name of the profile and the changed keys of each.
const DEVICES: [(&str, &[(&str, &str)]); 12] = [
    ("demo", &[]),
    (
        "demo",
        &[("wear.erase_limit", "500"), ("wear.levelling", "reference")],
    ),
    (
        "demo",
        &[("nand.backend", "modern"), ("geometry.channels", "1")],
    ),
    ("nvme-tlc", &[("geometry.channels", "1")]),
    ("qlc", &[("geometry.channels", "1")]),
    ("cosmos", &[("geometry.channels", "1")]),
    ("demo", &[("ftl.kind", "bast")]),
    ("demo", &[("ftl.kind", "fast")]),
    ("demo", &[("ftl.kind", "faster")]),
    ("demo", &[("ftl.kind", "dftl")]),
    ("raid5-array", &[("array.members", "harmonia*3")]),
    (
        "raid5-array",
        &[
            ("array.members", "harmonia*4"),
            ("array.level", "swan"),
            ("array.groups", "2"),
            ("array.segment", "64 KiB"),
            ("array.spare_percent", "36"),
        ],
    ),
];

/// A new device and a valid snapshot of it.
enum Subject {
    Ssd(Ssd, Vec<u8>),
    Array(Array, Vec<u8>),
}

impl Subject {
    fn new((name, keys): (&str, &[(&str, &str)])) -> Subject {
        let prefix = match builtin_array(name) {
            Some(_) => "member.",
            None => "",
        };
        let small = [
            ("geometry.chips", "2"),
            ("geometry.planes_per_chip", "1"),
            ("geometry.blocks_per_plane", "32"),
            ("geometry.pages_per_block", "16"),
            ("geometry.reserve_percent", "40"),
            ("gc.low_percent", "15"),
        ];
        let small = small.map(|(key, value)| (format!("{prefix}{key}"), value));
        let mut all: Vec<(&str, &str)> = small.iter().map(|(k, v)| (&**k, *v)).collect();
        all.push(("buffer.capacity", "64 KiB"));
        let is_msr =
            matches!(name, "demo" | "raid5-array") && !keys.contains(&("nand.backend", "modern"));
        let units = format!("{prefix}nand.parallel_units");
        if is_msr {
            all.push((&units, "1"));
        }
        all.extend(keys);
        match builtin_array(name) {
            Some(text) => {
                let spec = ArraySpec::with_overrides(text, name, &all).expect("a sound array");
                let new = Array::new(&spec);
                let good = good(new.clone());
                Subject::Array(new, good)
            }
            None => {
                let text = builtin(name).expect("it is built in");
                let spec = DeviceSpec::with_overrides(text, name, &all).expect("a sound device");
                let new = Ssd::new(&spec);
                let good = good(new.clone());
                Subject::Ssd(new, good)
            }
        }
    }
}

static SUBJECTS: LazyLock<Vec<Subject>> = LazyLock::new(|| DEVICES.map(Subject::new).into());

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("flashtwin_fuzz_{}.state", std::process::id()))
});

fn good<S: Drivable>(mut device: Device<S>) -> Vec<u8> {
    S::fill_sequential(&mut device, &Unwatched);
    use_it(&mut device, 500).expect("a sound device");
    save_snapshot(&FILE, &device, "the fuzzer").expect("room for a small file");
    std::fs::read(&*FILE).expect("it was written")
}

/// Runs requests, then makes the report.
fn use_it<S: Drivable>(device: &mut Device<S>, requests: u32) -> Result<(), SimError> {
    let text = format!("uniform:write=0.8,size=4k,rate=2k/s,requests={requests}");
    let load = GeneratorSpec::parse(&text).expect("a sound load");
    let mut load = load.build(device.exported_bytes(), 1).expect("it fits");
    let (config, control) = (RunConfig::default(), Control::default());
    let outcome = run(device, &mut *load, &config, &control, None)?;
    let summary = Summary::new(device, &outcome, &RunInfo::default());
    serde_json::to_string(&summary).expect("a summary is JSON");
    Ok(())
}

/// Converts fuzzer input to a file. The first byte decides whether the rest is a whole file or changes of the valid
/// one.
fn file_of(data: &[u8], good: &[u8]) -> Option<Vec<u8>> {
    let (&pick, rest) = data.split_first()?;
    if pick & 1 == 0 {
        return Some(rest.to_vec());
    }
    let mut file = good.to_vec();
    for change in rest.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % file.len();
        file[at] = change[2];
        if pick & 4 == 0 {
            let end = (at + 4).min(file.len());
            file[at..end].fill(change[2]);
        }
    }
    if pick & 2 == 0 {
        let end = file.len() - TRAILER_BYTES + 8;
        let sum = crc32fast::hash(&file[..end]);
        file[end..end + 4].copy_from_slice(&sum.to_le_bytes());
    }
    Some(file)
}

fn load<S: Drivable + Clone>(new: &Device<S>, good: &[u8], data: &[u8]) {
    let Some(file) = file_of(data, good) else {
        return;
    };
    std::fs::write(&*FILE, file).expect("room for a small file");
    let mut device = new.clone();
    match load_snapshot(&FILE, &mut device) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(_) => use_it(&mut device, 40).expect("a state that was accepted agrees with itself"),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&which, data)) = data.split_first() else {
        return;
    };
    match &SUBJECTS[usize::from(which) % SUBJECTS.len()] {
        Subject::Ssd(new, good) => load(new, good, data),
        Subject::Array(new, good) => load(new, good, data),
    }
});
