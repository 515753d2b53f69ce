//! Forged states: saved states in which one number, or two adjacent ones, are changed and the checksum is corrected. A
//! forged state must be either rejected with a message or loaded. A device that loads a forged state must remain
//! consistent, execute requests and report its results, all within bounded memory.

use std::path::{Path, PathBuf};

use flashtwin::spec::{builtin, builtin_array};
use flashtwin::{seeds, Array, ArraySpec, Device, DeviceSpec, Rng, Ssd, Unwatched};
use flashtwin_sim::{
    load_snapshot, run, save_snapshot, Control, Drivable, RunConfig, RunInfo, SimError, Summary,
};
use flashtwin_workload::GeneratorSpec;

/// Size in bytes of the trailer, which follows the state: the length of the state, a checksum and an end mark.
const TRAILER_BYTES: usize = 16;
/// Number of forged states per device.
const FORGERIES: u64 = 60;
const VALUES: [u32; 8] = [
    0,
    1,
    0x0001_0000,
    0x7bde_5cf6,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
];

const MODERN: [(&str, &str); 7] = [
    ("geometry.chips", "4"),
    ("geometry.channels", "2"),
    ("geometry.blocks_per_plane", "12"),
    ("geometry.pages_per_block", "32"),
    ("geometry.reserve_percent", "40"),
    ("gc.low_percent", "10"),
    ("buffer.capacity", "256 KiB"),
];
const MSR: [(&str, &str); 6] = [
    ("geometry.chips", "2"),
    ("geometry.blocks_per_plane", "16"),
    ("geometry.pages_per_block", "16"),
    ("geometry.reserve_percent", "40"),
    ("gc.low_percent", "10"),
    ("buffer.capacity", "256 KiB"),
];

fn ssd(name: &str, keys: &[(&str, &str)], more: &[(&str, &str)]) -> Ssd {
    let all = [keys, more].concat();
    let text = builtin(name).expect("it is built in");
    let spec = DeviceSpec::with_overrides(text, name, &all);
    Ssd::new(&spec.unwrap_or_else(|e| panic!("{name} {more:?}: {e}")))
}

fn layered(kind: &str) -> Ssd {
    let keys = [
        ("ftl.kind", kind),
        ("geometry.chips", "2"),
        ("geometry.planes_per_chip", "1"),
        ("geometry.blocks_per_plane", "48"),
        ("geometry.pages_per_block", "16"),
        ("geometry.reserve_percent", "40"),
        ("buffer.capacity", "256 KiB"),
    ];
    ssd("demo", &[], &keys)
}

fn array(keys: &[(&str, &str)]) -> Array {
    let members = [
        ("buffer.capacity", "256 KiB"),
        ("member.geometry.chips", "2"),
        ("member.geometry.planes_per_chip", "1"),
        ("member.geometry.blocks_per_plane", "16"),
        ("member.geometry.pages_per_block", "16"),
        ("member.geometry.reserve_percent", "40"),
        ("member.gc.low_percent", "10"),
        ("member.nand.parallel_units", "1"),
    ];
    let text = builtin_array("raid5-array").expect("it is built in");
    let all = [&members, keys].concat();
    let spec = ArraySpec::with_overrides(text, "raid5-array", &all);
    Array::new(&spec.unwrap_or_else(|e| panic!("{keys:?}: {e}")))
}

/// Runs requests, then makes the report.
fn use_it<S: Drivable>(device: &mut Device<S>, requests: u32) -> Result<(), SimError> {
    let text = format!("uniform:write=0.8,size=4k,rate=2k/s,requests={requests}");
    let load = GeneratorSpec::parse(&text).expect("a sound load");
    let mut load = load
        .build(device.exported_bytes(), 1)
        .expect("it fits the device");
    let outcome = run(
        device,
        &mut *load,
        &RunConfig::default(),
        &Control::default(),
        None,
    )?;
    let summary = Summary::new(device, &outcome, &RunInfo::default());
    serde_json::to_string(&summary).expect("a summary is JSON");
    Ok(())
}

/// Returns the peak size of this process's address space in bytes; 0 if the system does not report it.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    let number = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok());
    1024 * number.unwrap_or(0)
}

/// Returns the offset of the state in the file. Before the state, the file has the magic number, the format version and
/// three texts.
fn header_bytes(file: &[u8]) -> usize {
    (0..3).fold(20, |at, _| {
        let length = file[at..at + 4].try_into().expect("four bytes");
        at + 4 + u32::from_le_bytes(length) as usize
    })
}

fn forge(good: &[u8], seed: u64) -> (Vec<u8>, String) {
    let mut rng = Rng::new(seed);
    let mut file = good.to_vec();
    let (first, end) = (header_bytes(good), good.len() - TRAILER_BYTES);
    let words = (end - first) as u64 / 4;
    let word = rng.below(words);
    let numbers = 1 + rng.below(2).min(words - word - 1);
    let value = VALUES[rng.below(VALUES.len() as u64) as usize];
    for word in word..word + numbers {
        let at = first + 4 * word as usize;
        file[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    let sum = crc32fast::hash(&file[..end + 8]);
    file[end + 8..end + 12].copy_from_slice(&sum.to_le_bytes());
    (
        file,
        format!("{numbers} numbers from {word} on are {value:#x}"),
    )
}

struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Forges states of a device. Returns the numbers of accepted and of rejected states.
fn forge_states<S: Drivable + Clone>(name: &str, mut device: Device<S>) -> [u64; 2] {
    let file = format!("flashtwin-forged-{name}-{}", std::process::id());
    let file = File(std::env::temp_dir().join(file));
    let path: &Path = &file.0;
    let new = device.clone();
    S::fill_sequential(&mut device, &Unwatched);
    use_it(&mut device, 1500).unwrap_or_else(|e| panic!("{name}: {e}"));
    save_snapshot(path, &device, "a test").expect("room for a file");
    let good = std::fs::read(path).expect("it was written");
    let mut counts = [0; 2];
    for seed in seeds(FORGERIES) {
        let (forged, what) = forge(&good, seed);
        std::fs::write(path, forged).expect("room for a file");
        let mut device = new.clone();
        match load_snapshot(path, &mut device) {
            Err(refused) => {
                assert!(!refused.to_string().is_empty());
                counts[1] += 1;
            }
            Ok(_) => {
                use_it(&mut device, 40).unwrap_or_else(|e| panic!("{name}, {what}: {e}"));
                counts[0] += 1;
            }
        }
    }
    println!("{name}: {} bytes, taken and refused {counts:?}", good.len());
    counts
}

#[test]
fn forged_states_are_refused_or_sound() {
    let before = peak_bytes();
    let counts = [
        forge_states("demo", ssd("demo", &MSR, &[])),
        forge_states("nvme-tlc", ssd("nvme-tlc", &MODERN, &[])),
        forge_states("qlc", ssd("qlc", &MODERN, &[])),
        forge_states("cosmos", ssd("cosmos", &MODERN, &[])),
        forge_states("sata-tlc", ssd("sata-tlc", &MODERN, &[])),
        forge_states("fast", layered("fast")),
        forge_states("faster", layered("faster")),
        forge_states("bast", layered("bast")),
        forge_states("dftl", layered("dftl")),
        forge_states(
            "wear levelling",
            ssd(
                "demo",
                &MSR,
                &[
                    ("wear.erase_limit", "5000"),
                    ("wear.levelling", "reference"),
                ],
            ),
        ),
        forge_states("raid5", array(&[("array.members", "harmonia*4")])),
        forge_states(
            "swan",
            array(&[
                ("array.members", "harmonia*4"),
                ("array.level", "swan"),
                ("array.groups", "2"),
                ("array.segment", "64 KiB"),
                ("array.spare_percent", "36"),
            ]),
        ),
    ];
    for [taken, refused] in counts {
        assert!(taken > 0 && refused > 0, "{counts:?}");
    }
    let grown = peak_bytes() - before;
    assert!(grown < 1 << 30, "{grown} bytes of memory");
}

/// The report of wear allocates one entry for each possible erase count up to the largest one. A forged state with an
/// enormous erase count must therefore be rejected.
#[test]
fn an_erase_count_beyond_the_life_of_flash_is_refused_by_name() {
    let mut ssd = ssd("demo", &MSR, &[]);
    ssd.fill_sequential();
    let mut state = Vec::new();
    ssd.save_state(&mut state).expect("memory takes all");
    let counts: Vec<usize> = (0..state.len() - 4)
        .step_by(4)
        .filter(|&at| {
            let mut forged = state.clone();
            forged[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
            let loaded = ssd.clone().load_state(&mut &forged[..]);
            loaded.is_err_and(|e| {
                e.to_string()
                    .contains("erases = 4294967295: must be at most")
            })
        })
        .collect();
    let blocks = ssd.flash_report().erase_spread.blocks;
    assert_eq!(counts.len() as u64, blocks, "a count a block");
}
