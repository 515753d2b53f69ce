//! Snapshots, which are also how a served device is kept: any file is refused with a message, or leaves a device that
//! agrees with itself and goes on. Bytes of a good snapshot are changed, behind a checksum that is right again or not.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use flashtwin::{DeviceSpec, Op, Request, Ssd, Time};
use flashtwin_sim::{load_snapshot, save_snapshot};
use libfuzzer_sys::fuzz_target;

/// After the state: its length, a checksum, an end mark.
const TRAILER_BYTES: usize = 16;

static SPEC: LazyLock<DeviceSpec> = LazyLock::new(|| {
    let changes = [
        ("geometry.chips", "2"),
        ("geometry.planes_per_chip", "2"),
        ("geometry.blocks_per_plane", "16"),
        ("geometry.pages_per_block", "4"),
        ("geometry.reserve_percent", "40"),
        ("nand.parallel_units", "1"),
        ("gc.low_percent", "15"),
        ("buffer.capacity", "64 KiB"),
    ];
    let demo = flashtwin::spec::builtin("demo").expect("it is built in");
    DeviceSpec::with_overrides(demo, "demo", &changes).expect("a sound device")
});

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("flashtwin_fuzz_{}.state", std::process::id()))
});

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut ssd = Ssd::new(&SPEC);
    ssd.fill_steady(1);
    save_snapshot(&FILE, &ssd, "the fuzzer").expect("room for a small file");
    std::fs::read(&*FILE).expect("it was written")
});

/// The first byte picks what is done with the rest: a file of its own, or changes of the good one.
fn file_of(data: &[u8]) -> Option<Vec<u8>> {
    let (&pick, rest) = data.split_first()?;
    if pick & 1 == 0 {
        return Some(rest.to_vec());
    }
    let mut file = GOOD.clone();
    for change in rest.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % file.len();
        file[at] = change[2];
    }
    if pick & 2 == 0 {
        let end = file.len() - TRAILER_BYTES + 8;
        let sum = crc32fast::hash(&file[..end]);
        file[end..end + 4].copy_from_slice(&sum.to_le_bytes());
    }
    Some(file)
}

fuzz_target!(|data: &[u8]| {
    let Some(file) = file_of(data) else {
        return;
    };
    std::fs::write(&*FILE, file).expect("room for a small file");
    let mut ssd = Ssd::new(&SPEC);
    match load_snapshot(&FILE, &mut ssd) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(_) => {
            ssd.check()
                .expect("a state that was accepted agrees with itself");
            let bytes = ssd.exported_bytes();
            for tag in 0..40 {
                let request = Request {
                    arrival: Time::ZERO,
                    offset: tag * 4096 % bytes,
                    bytes: 4096,
                    op: Op::Write,
                    fua: false,
                };
                ssd.submit(ssd.now(), &request, tag).expect("on the device");
                while ssd.step() {}
            }
            ssd.check().expect("and so does what it becomes");
        }
    }
});
