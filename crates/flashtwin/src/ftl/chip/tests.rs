//! Tests of translation layers. Some use chips that are too small for their layer; only tests can build such chips. A
//! write without room must be refused there, and data written earlier must remain. Further tests save, load and damage
//! states, or check a step of one layer.

use super::{
    Bast, ChipFtl, Counters, Dftl, Fast, Faster, FlashOp, Ftl, Layer, NoSpace, OpKind, Setup, Why,
    ENTRIES,
};
use crate::rng::Rng;

/// Writes random pages, and continues after a refused write. Checks that exactly the pages written are mapped.
fn overfill(ftl: &mut impl ChipFtl, logical_pages: u32, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut ops: Vec<FlashOp> = Vec::new();
    let mut written = vec![false; logical_pages as usize];
    let mut refused = 0;
    for _ in 0..4000 {
        let page = rng.below(logical_pages.into()) as u32;
        let before = ftl.lookup(page);
        ops.clear();
        match ftl.write(page, &mut ops) {
            Ok(()) => written[page as usize] = true,
            Err(NoSpace) => {
                refused += 1;
                assert!(ftl.lookup(page).is_some() == before.is_some());
            }
        }
        ftl.check().unwrap();
    }
    assert!(refused > 0, "the chip was meant to be too small");
    for (page, written) in written.iter().enumerate() {
        assert_eq!(ftl.lookup(page as u32).is_some(), *written, "page {page}");
    }
}

#[test]
fn write_without_room_is_refused_and_loses_nothing() {
    for seed in crate::seeds(3) {
        for name in ENTRIES.iter().map(|entry| entry.name) {
            // The chip has 16 blocks, but exports 20 logical blocks.
            let setup = Setup::new(name, 80, 16, 4).unwrap();
            assert!(setup.check().is_err(), "{name}");
            match &setup.kind {
                Layer::Dftl(own) => overfill(&mut Dftl::new(&setup, own), 80, seed),
                Layer::Bast(own) => overfill(&mut Bast::new(&setup, own), 80, seed),
                Layer::Fast(own) => overfill(&mut Fast::new(&setup, own), 80, seed),
                Layer::Faster(own) => overfill(&mut Faster::new(&setup, own), 80, seed),
            }
        }
    }
}

/// A merge leaves a hole in the data block for a trimmed page. Later the page is written again, and must go to the
/// hole. If it went to a log block, a second write could go to the hole, and the log block would still have the older
/// version.
#[test]
fn a_log_never_passes_a_hole_of_its_data_block() {
    let mut setup = Setup::new("bast", 16, 16, 4).unwrap();
    setup.set_all(&[("log_blocks", "1")]).unwrap();
    let mut ftl = Ftl::new(&setup).unwrap();
    ftl.fill();
    let mut ops = Vec::new();
    ftl.trim(0, &mut ops);
    for page in [1, 2, 3, 1, 0] {
        ftl.write(page, &mut ops).unwrap();
    }
    ftl.trim(0, &mut ops);
    for page in [0, 4] {
        ftl.write(page, &mut ops).unwrap();
        ftl.check().unwrap();
    }
    assert!(ftl.lookup(0).is_some(), "page 0 is lost");
}

/// DFTL collects before a write if at most two blocks are free. At first, 32 blocks of four pages are free. 29 of
/// them are opened and filled without a collection. At the first write to the 30th block, three blocks are still
/// free.
#[test]
fn dftl_foresees_the_page_that_begins_its_last_block() {
    let mut setup = Setup::new("dftl", 66, 32, 4).unwrap();
    setup.set_all(&[("low_blocks", "2")]).unwrap();
    let outlook = Ftl::new(&setup).unwrap().outlook();
    assert_eq!((outlook.free_blocks, outlook.open_pages), (32, 0));
    assert_eq!(outlook.writes, 29 * 4 + 1);
}

/// Returns a translation layer after writes, trims and reads, with some pages unmapped.
fn used(setup: &Setup, seed: u64, accesses: u32) -> Ftl {
    let mut ftl = Ftl::new(setup).unwrap();
    ftl.fill();
    let mut rng = Rng::new(seed);
    let mut ops = Vec::new();
    for _ in 0..accesses {
        access(&mut ftl, setup, &mut rng, &mut ops);
    }
    ftl
}

fn access(ftl: &mut Ftl, setup: &Setup, rng: &mut Rng, ops: &mut Vec<FlashOp>) {
    let first = rng.below(setup.logical_pages.into()) as u32;
    match rng.below(8) {
        0 => ftl.read(first, ops),
        1 => ftl.trim(first, ops),
        2 => {
            // Writes the first pages of a logical block in sequence, so that some log blocks are in order.
            let first = first / setup.pages_per_block * setup.pages_per_block;
            let end = first + 1 + rng.below(setup.pages_per_block.into()) as u32;
            for page in first..end.min(setup.logical_pages) {
                ftl.write(page, ops).unwrap();
            }
        }
        _ => ftl.write(first, ops).unwrap(),
    }
}

fn setups() -> impl Iterator<Item = Setup> {
    let sizes = [(66, 32, 4), (200, 40, 8)];
    ENTRIES
        .iter()
        .map(|entry| entry.name)
        .flat_map(move |name| {
            sizes.map(|(pages, blocks, n)| {
                let mut setup = Setup::new(name, pages, blocks, n).unwrap();
                if name == "dftl" {
                    let set = [("entries_per_translation_page", "8"), ("cmt_entries", "9")];
                    setup.set_all(&set).unwrap();
                }
                setup
            })
        })
}

#[test]
fn a_loaded_state_continues_as_the_saved_one() {
    for setup in setups() {
        for seed in crate::seeds(20) {
            let mut ftl = used(&setup, seed, 50 * seed as u32);
            let mut bytes = Vec::new();
            ftl.save(&mut bytes).unwrap();
            let mut again = Ftl::new(&setup).unwrap();
            let mut left = &bytes[..];
            again.load(&setup, &mut left).unwrap();
            assert!(left.is_empty());
            assert_eq!(again.state(), ftl.state());
            let (mut ops, mut ops_again) = (Vec::new(), Vec::new());
            let mut rng = Rng::new(seed + 9);
            let mut rng_again = rng.clone();
            for _ in 0..1000 {
                access(&mut ftl, &setup, &mut rng, &mut ops);
                access(&mut again, &setup, &mut rng_again, &mut ops_again);
            }
            assert_eq!(ops, ops_again, "{} {seed}", setup.name());
        }
    }
}

/// A state with changed bytes is either refused or loaded. After it is loaded, no access may panic, even with all
/// assertions enabled.
#[test]
fn a_damaged_state_is_refused_or_works() {
    let (mut refused, mut taken) = (0, 0);
    for setup in setups() {
        for seed in crate::seeds(400) {
            let mut rng = Rng::new(seed);
            let mut bytes = Vec::new();
            used(&setup, seed, 200).save(&mut bytes).unwrap();
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(bytes.len() as u64 / 4) as usize * 4;
                let other = rng.below(bytes.len() as u64 / 4) as usize * 4;
                let number = match rng.below(4) {
                    0 => (rng.below(80) as u32).to_le_bytes(),
                    1 => u32::MAX.to_le_bytes(),
                    2 => (u32::MAX - 1).to_le_bytes(),
                    // Copies a number from another place of the state.
                    _ => bytes[other..other + 4].try_into().unwrap(),
                };
                bytes[at..at + 4].copy_from_slice(&number);
            }
            if rng.below(20) == 0 {
                bytes.truncate(rng.below(bytes.len() as u64) as usize);
            }
            let mut ftl = Ftl::new(&setup).unwrap();
            if ftl.load(&setup, &mut &bytes[..]).is_err() {
                refused += 1;
                ftl.check().unwrap();
                continue;
            }
            taken += 1;
            let mut ops = Vec::new();
            for _ in 0..300 {
                access(&mut ftl, &setup, &mut rng, &mut ops);
                ftl.check().unwrap();
            }
        }
    }
    assert!(refused > 1000 && taken > 100, "{refused} {taken}");
}

#[test]
fn each_counter_has_its_name() {
    let counters = Counters {
        switch_merges: 1,
        partial_merges: 2,
        full_merges: 3,
        gc_runs: 4,
        map_hits: 5,
        map_misses: 6,
    };
    let named = [
        ("switch_merges", 1),
        ("partial_merges", 2),
        ("full_merges", 3),
        ("gc_runs", 4),
        ("map_hits", 5),
        ("map_misses", 6),
    ];
    assert_eq!(counters.named(), named);
}

/// Each collection erases one block. Every other erase has a purpose other than GC.
#[test]
fn collections_are_the_erases_that_they_cause() {
    for seed in crate::seeds(3) {
        for setup in setups().filter(|setup| ["dftl", "faster"].contains(&setup.name())) {
            let mut ftl = Ftl::new(&setup).unwrap();
            ftl.fill();
            let (mut rng, mut ops) = (Rng::new(seed), Vec::new());
            for _ in 0..2000 {
                access(&mut ftl, &setup, &mut rng, &mut ops);
            }
            let of_gc = |op: &&FlashOp| {
                matches!(op.kind, OpKind::Erase { .. }) && matches!(op.why, Why::Gc | Why::GcMap)
            };
            let erases = ops.iter().filter(of_gc).count() as u64;
            assert!(erases > 20, "{}: {erases}", setup.name());
            assert_eq!(ftl.counters().gc_runs, erases, "{}", setup.name());
        }
    }
}

/// Data may use all blocks except those that the map and its collection may need. 25 translation pages need at most 4
/// blocks, and 3 blocks stay free.
#[test]
fn data_leave_room_for_the_map() {
    for seed in crate::seeds(3) {
        let mut setup = Setup::new("dftl", 200, 40, 8).unwrap();
        let set = [("entries_per_translation_page", "8"), ("cmt_entries", "9")];
        setup.set_all(&set).unwrap();
        let Layer::Dftl(own) = &setup.kind else {
            panic!("a DFTL was asked for")
        };
        let mut dftl = Dftl::new(&setup, own);
        let (mut rng, mut ops, mut most) = (Rng::new(seed), Vec::new(), 0);
        for _ in 0..5000 {
            let page = rng.below(200) as u32;
            dftl.write(page, &mut ops).unwrap();
            most = most.max(dftl.data.blocks);
        }
        assert_eq!(most, 33);
    }
}

/// A turn of FASTER writes each page of its log blocks once: 5 RW blocks and 2 isolation blocks of 8 pages. After a
/// turn, nothing of an older state remains.
#[test]
fn a_turn_of_faster_is_its_log() {
    let mut setup = Setup::new("faster", 200, 40, 8).unwrap();
    setup
        .set_all(&[("rw_log_blocks", "5"), ("isolation_blocks", "2")])
        .unwrap();
    assert_eq!(setup.turn_pages(), 7 * 8);
}
