//! Stores and their lists of extents, compared with a plain vector of bytes.

use std::fs;
use std::path::PathBuf;

use flashtwin::Rng;

use super::*;

const BYTES: u64 = 1 << 20;

/// A directory that is removed at the end of the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("flashtwin-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Compares a store with a vector under random writes and zeros. The listed stretches (written and unwritten extents)
/// must cover the whole store, and holes must read as zeros.
fn behaves(store: &Store, model: &mut [u8], seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..400 {
        let length = 1 + rng.below(30_000);
        let at = rng.below(BYTES - length);
        let range = at as usize..(at + length) as usize;
        match rng.below(4) {
            0 | 1 => {
                let data: Vec<u8> = (0..length).map(|_| rng.below(256) as u8).collect();
                store.write(&data, at).expect("room");
                model[range].copy_from_slice(&data);
            }
            2 => {
                store.zero(at, length).expect("room");
                model[range].fill(0);
            }
            _ => {
                let mut read = vec![7; length as usize];
                store.read(&mut read, at).expect("there");
                assert!(read == model[range], "at {at}");
            }
        }
        let mut covered = at;
        let each = |stretch: Stretch| {
            assert!(stretch.bytes > 0);
            let range = covered as usize..(covered + stretch.bytes) as usize;
            assert!(!stretch.hole || model[range].iter().all(|&byte| byte == 0));
            covered += stretch.bytes;
            true
        };
        store.stretches(at, length, each).expect("known");
        assert_eq!(covered, at + length);
    }
}

#[test]
fn stores_in_memory_and_files_hold_written_data() {
    for seed in flashtwin::seeds(3) {
        let place = Place::new("hold");
        let path = place.0.join("disk.img");
        let memory = Store::memory(BYTES).expect("memory");
        behaves(&memory, &mut vec![0; BYTES as usize], 2 * seed);
        let mut model = vec![0; BYTES as usize];
        let (file, was_there) = Store::file(&path, BYTES).expect("a new file");
        assert!(!was_there);
        behaves(&file, &mut model, 2 * seed + 1);
        file.sync().expect("on disk");
        drop(file);
        let (file, was_there) = Store::file(&path, BYTES).expect("the same file");
        assert!(was_there);
        let mut all = vec![1; BYTES as usize];
        file.read(&mut all, 0).expect("there");
        assert!(all == model);
    }
}

#[test]
fn without_holes_zeros_are_written() {
    let Store::Sparse(sparse) = Store::memory(BYTES).expect("memory") else {
        unreachable!("memory is a sparse file")
    };
    sparse.punches.store(false, Ordering::Relaxed);
    let store = Store::Sparse(sparse);
    store.write(&[9; 200_000], 1000).expect("room");
    store.zero(2000, 150_000).expect("room");
    let mut read = vec![1; 200_000];
    store.read(&mut read, 1000).expect("there");
    let zero = 1000..151_000;
    assert!((0..200_000).all(|i| read[i] == if zero.contains(&i) { 0 } else { 9 }));
}

#[test]
fn zeroing_gives_memory_back() {
    let Store::Sparse(sparse) = Store::memory(BYTES).expect("memory") else {
        unreachable!("memory is a sparse file")
    };
    let blocks = |of: &Sparse| {
        use std::os::unix::fs::MetadataExt;
        of.file.metadata().expect("an open file").blocks()
    };
    assert_eq!(blocks(&sparse), 0, "nothing is taken before it is written");
    let store = Store::Sparse(sparse);
    store.write(&vec![1; BYTES as usize], 0).expect("room");
    store.zero(0, BYTES).expect("room");
    let Store::Sparse(sparse) = store else {
        unreachable!()
    };
    assert_eq!(blocks(&sparse), 0);
}

#[test]
fn a_store_nowhere_keeps_nothing() {
    let store = Store::None;
    store.write(&[5; 4096], 1 << 45).expect("no limit");
    let mut read = [3; 4096];
    store.read(&mut read, 1 << 45).expect("no limit");
    assert_eq!(read, [0; 4096]);
    assert!(!store.has_stretches());
}

#[test]
fn a_file_of_the_wrong_size_is_refused_with_the_right_size() {
    let place = Place::new("refused");
    let path = place.0.join("disk.img");
    let refusal = |bytes| {
        let refused = Store::file(&path, bytes).expect_err("does not fit");
        refused.to_string()
    };
    let (store, _) = Store::file(&path, BYTES).expect("a new file");
    assert!(refusal(BYTES).contains("another server uses this store"));
    drop(store);
    let message = refusal(2 * BYTES);
    assert!(
        message.contains("holds 1048576 bytes, the device has 2097152"),
        "{message}"
    );
    assert_eq!(
        fs::metadata(&path).expect("there").len(),
        BYTES,
        "as it was"
    );
    fs::remove_file(&path).expect("there");
    fs::create_dir(&path).expect("a name that is free");
    assert!(refusal(BYTES).contains("cannot open"));
}
