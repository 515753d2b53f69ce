//! Snapshots that are intact, that are damaged, that belong to another device, or whose disk is full.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flashtwin::{Array, ArraySpec, DeviceSpec, Ssd};

use super::write::save_through;
use super::{load_snapshot, save_snapshot};
use crate::SimError;

fn device(overrides: &[(&str, &str)]) -> Ssd {
    let profile = flashtwin::spec::builtin("demo").expect("demo is built in");
    let mut all = vec![
        ("geometry.chips", "2"),
        ("geometry.blocks_per_plane", "40"),
        ("geometry.reserve_percent", "20"),
    ];
    all.extend_from_slice(overrides);
    Ssd::new(&DeviceSpec::with_overrides(profile, "demo", &all).expect("a sound device"))
}

fn warm() -> Ssd {
    let mut ssd = device(&[]);
    ssd.fill_steady(3);
    ssd
}

/// A temporary directory of one test. It is removed at the end of the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("flashtwin-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("the temporary directory is writable");
        Directory(path)
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.0).expect("it is there").count()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Saves a preconditioned device and changes the bytes of the file. Returns the error of loading the file into `into`.
fn load_changed(name: &str, into: &mut Ssd, change: impl FnOnce(&mut Vec<u8>)) -> SimError {
    let directory = Directory::new(name);
    let path = directory.0.join("warm");
    save_snapshot(&path, &warm(), "steady, seed 3").expect("room on the disk");
    let mut bytes = fs::read(&path).expect("just written");
    change(&mut bytes);
    fs::write(&path, &bytes).expect("room on the disk");
    load_snapshot(&path, into).expect_err("it was changed")
}

#[test]
fn a_snapshot_names_its_origin_and_fits_other_timings_and_buffers() {
    let directory = Directory::new("made");
    let path = directory.0.join("warm");
    save_snapshot(&path, &warm(), "steady, seed 3").expect("room on the disk");
    let mut other = device(&[
        ("timing.read_us", "60"),
        ("buffer", "none"),
        ("name", "other"),
    ]);
    assert_eq!(
        load_snapshot(&path, &mut other).expect("the same flash"),
        "steady, seed 3"
    );
    assert_eq!(other.pages_mapped(), warm().pages_mapped());
    assert_eq!(directory.files(), 1);
}

#[test]
fn every_truncation_is_noticed() {
    let mut sizes = vec![0, 5, 16, 19, 24, 200, 1000];
    sizes.extend([1, 4, 8, 12, 16, 4096].map(|less| usize::MAX - less));
    for size in sizes {
        let mut ssd = device(&[]);
        let error = load_changed("truncated", &mut ssd, |bytes| {
            let size = if size > bytes.len() {
                bytes.len() - (usize::MAX - size)
            } else {
                size
            };
            bytes.truncate(size);
        });
        assert!(
            matches!(error, SimError::Snapshot { .. }),
            "{size}: {error}"
        );
        assert_eq!(ssd.pages_mapped(), 0, "the device was changed");
    }
}

#[test]
fn bytes_added_at_the_end_are_reported_as_such() {
    for added in [1, 8, 20, 5000] {
        let mut ssd = device(&[]);
        let error = load_changed("added", &mut ssd, |bytes| {
            bytes.extend(std::iter::repeat_n(0xAA, added));
        });
        let message = error.to_string();
        assert!(
            message.contains("truncated, or has bytes added at its end"),
            "{message}"
        );
        assert_eq!(ssd.pages_mapped(), 0, "the device was changed");
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let length = {
        let directory = Directory::new("length");
        save_snapshot(&directory.0.join("warm"), &warm(), "").expect("room on the disk");
        fs::metadata(directory.0.join("warm"))
            .expect("just written")
            .len() as usize
    };
    for at in (0..700)
        .step_by(23)
        .chain((700..length).step_by(length / 40))
    {
        let mut ssd = device(&[]);
        let error = load_changed("flipped", &mut ssd, |bytes| bytes[at] ^= 1 << (at % 8));
        assert!(matches!(error, SimError::Snapshot { .. }), "{at}: {error}");
        assert_eq!(ssd.pages_mapped(), 0, "the device was changed");
    }
}

#[test]
fn another_device_is_refused_with_the_first_difference() {
    for (key, value, expected) in [
        (
            "geometry.chips",
            "4",
            "geometry.chips is 2 in the snapshot, 4 in the device",
        ),
        ("gc.low_percent", "6", "gc.low_percent is 5"),
        (
            "nand.copy_back",
            "false",
            "nand.parallel_units is 4 in the snapshot, 1 in the device",
        ),
    ] {
        let mut overrides = vec![(key, value)];
        if key == "nand.copy_back" {
            overrides.push(("nand.parallel_units", "1"));
        }
        let error = load_changed("other", &mut device(&overrides), |_| ()).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn other_files_and_other_formats_have_their_own_errors() {
    let error = load_changed("text", &mut device(&[]), |bytes| bytes[0] = b'x').to_string();
    assert!(error.contains("no snapshot"), "{error}");
    let error = load_changed("format", &mut device(&[]), |bytes| bytes[16] = 9).to_string();
    assert!(
        error.contains("format 9") && error.contains("make it anew"),
        "{error}"
    );
    let error = load_snapshot(Path::new("/nonexistent/warm"), &mut device(&[])).expect_err("none");
    assert!(
        error.to_string().contains("/nonexistent/warm: cannot open"),
        "{error}"
    );
}

/// A simulated disk with room for 100 000 bytes.
struct Full<'a>(&'a File, usize);

impl Write for Full<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.1 + data.len() > 100_000 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.1 += data.len();
        self.0.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn a_full_disk_leaves_nothing_new_and_the_old_snapshot_whole() {
    let directory = Directory::new("full");
    let path = directory.0.join("warm");
    let full = |path: &Path| save_through(path, &warm(), "new", |file| Box::new(Full(file, 0)));
    let error = full(&path).expect_err("the disk is full").to_string();
    assert!(error.contains("free some space"), "{error}");
    assert_eq!(directory.files(), 0);

    save_snapshot(&path, &warm(), "old").expect("room on the disk");
    full(&path).expect_err("the disk is full");
    assert_eq!(directory.files(), 1);
    assert_eq!(
        load_snapshot(&path, &mut device(&[])).expect("the old one"),
        "old"
    );
}

#[test]
fn a_name_that_cannot_be_written_is_an_error() {
    let error =
        save_snapshot(Path::new("/nonexistent/warm"), &warm(), "").expect_err("no directory");
    assert!(
        error
            .to_string()
            .contains("/nonexistent/warm: cannot write"),
        "{error}"
    );
    save_snapshot(Path::new("/"), &warm(), "").expect_err("no file name");
}

/// A device whose translation layer is loaded continues exactly as the saved device. The state of one kind of layer
/// fits no other kind.
#[test]
fn translation_layers_are_saved_whole() {
    for kind in ["dftl", "bast", "fast", "faster"] {
        let directory = Directory::new(kind);
        let path = directory.0.join("warm");
        let overrides = [("ftl.kind", kind), ("geometry.blocks_per_plane", "80")];
        let mut saved = device(&overrides);
        saved.fill_steady(3);
        save_snapshot(&path, &saved, "steady, seed 3").expect("room on the disk");
        let mut loaded = device(&overrides);
        load_snapshot(&path, &mut loaded).expect("the same device");
        for seed in flashtwin::seeds(3) {
            for ssd in [&mut saved, &mut loaded] {
                assert_eq!(ssd.pages_mapped(), u64::from(ssd.spec().exported_pages()));
                ssd.check().expect("consistent tables");
                ssd.reset_metrics(None);
                let mut rng = flashtwin::Rng::new(seed);
                assert!(ssd.write_random(&mut rng, 20_000));
            }
            let (one, other) = (saved.flash_report(), loaded.flash_report());
            assert_eq!(one.flash, other.flash, "{kind} {seed}");
            assert_eq!(one.ftl_counters, other.ftl_counters, "{kind} {seed}");
            assert!(one.flash.count(flashtwin::Cause::Erase) > 0, "{kind}");
        }

        let error = load_snapshot(&path, &mut device(&[("geometry.blocks_per_plane", "80")]))
            .expect_err("another translation layer");
        assert!(
            error.to_string().contains("is of another device"),
            "{error}"
        );
        let (key, value) = match kind {
            "dftl" => ("ftl.cmt_entries", "77"),
            "bast" => ("ftl.log_blocks", "3"),
            _ => ("ftl.rw_log_blocks", "3"),
        };
        let further = [overrides[0], overrides[1], (key, value)];
        let error = load_snapshot(&path, &mut device(&further)).expect_err("another parameter");
        assert!(error.to_string().contains(key), "{error}");
    }
}

fn array(overrides: &[(&str, &str)]) -> Array {
    let mut all = vec![
        ("array.members", "harmonia*3"),
        ("array.level", "raid5"),
        ("member.geometry.chips", "2"),
        ("member.geometry.blocks_per_plane", "40"),
    ];
    all.extend_from_slice(overrides);
    let text = flashtwin::spec::builtin_array("harmonia-array").expect("it is built in");
    Array::new(&ArraySpec::with_overrides(text, "harmonia-array", &all).expect("a sound array"))
}

fn state_of(array: &Array) -> Vec<u8> {
    let mut bytes = Vec::new();
    array.save_state(&mut bytes).expect("memory");
    bytes
}

/// The snapshot of an array consists of the states of the members. Therefore it fits any array of the same members,
/// regardless of the level.
#[test]
fn arrays_are_saved_and_fit_arrays_of_the_same_members() {
    let directory = Directory::new("array");
    let path = directory.0.join("warm");
    let mut saved = array(&[]);
    saved.fill_steady(3);
    save_snapshot(&path, &saved, "steady, seed 3").expect("room on the disk");
    for change in [
        ("array.coordination", "turns"),
        ("array.level", "raid0"),
        ("array.chunk", "64 KiB"),
        ("member.timing.read_us", "60"),
    ] {
        let mut loaded = array(&[change]);
        let made_by = load_snapshot(&path, &mut loaded).expect("the same members");
        assert_eq!(made_by, "steady, seed 3");
        assert!(state_of(&loaded) == state_of(&saved), "{change:?}");
    }
    for (change, expected) in [
        (
            ("array.members", "harmonia*4"),
            "array.members is member*3 in the snapshot, member*4 in the device",
        ),
        (
            ("array.members", "harmonia*2, gcar"),
            "array.members is member*3 in the snapshot, member0*2, member1*1 in the device",
        ),
        (
            ("member.geometry.chips", "4"),
            "member.geometry.chips is 2 in the snapshot, 4 in the device",
        ),
    ] {
        let mut other = array(&[change]);
        let before = state_of(&other);
        let error = load_snapshot(&path, &mut other).expect_err("other members");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(state_of(&other) == before);
    }
    let error = load_snapshot(&path, &mut device(&[])).expect_err("no array");
    assert!(error.to_string().contains("geometry.chips is -"), "{error}");
    save_snapshot(&path, &warm(), "one drive").expect("room on the disk");
    let error = load_snapshot(&path, &mut array(&[])).expect_err("an array");
    assert!(error.to_string().contains("array.members is -"), "{error}");
}

/// The snapshot of a SWAN volume contains the map of its pages. Therefore it fits only arrays with the same groups.
#[test]
fn volumes_are_saved_and_fit_the_same_groups() {
    let directory = Directory::new("volume");
    let path = directory.0.join("warm");
    let groups = |more: &[(&str, &str)]| {
        let mut all = vec![("array.members", "harmonia*4"), ("array.level", "swan")];
        all.extend_from_slice(more);
        array(&all)
    };
    let mut saved = groups(&[]);
    saved.fill_steady(3);
    save_snapshot(&path, &saved, "steady, seed 3").expect("room on the disk");
    let mut loaded = groups(&[("member.timing.read_us", "60")]);
    load_snapshot(&path, &mut loaded).expect("the same groups");
    assert!(state_of(&loaded) == state_of(&saved));
    for (change, expected) in [
        (("array.segment", "512 KiB"), "array.segment is"),
        (
            ("array.spare_percent", "30"),
            "array.spare_percent is 20.0 in",
        ),
        (("array.rotation", "right-symmetric"), "array.rotation is"),
        (
            ("array.level", "raid5"),
            "the snapshot also has array.level",
        ),
    ] {
        let mut other = groups(&[change]);
        let before = state_of(&other);
        let error = load_snapshot(&path, &mut other).expect_err("another volume");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(state_of(&other) == before);
    }
    let raid5 = array(&[("array.members", "harmonia*4")]);
    save_snapshot(&path, &raid5, "rows").expect("room on the disk");
    let error = load_snapshot(&path, &mut groups(&[])).expect_err("no volume");
    assert!(error.to_string().contains("array.level is -"), "{error}");
}
