//! Tests of the victim rules. Each rule is tested on four blocks against a result computed by hand, and on random pools
//! against its definition.

use super::{victim, worth_collecting, Tie, Victims};
use crate::ftl::{PageMap, Shape};
use crate::spec::{self, DeviceSpec};
use crate::units::Lpn;
use crate::units::Stream;

/// Name of a rule in device files, and the key and value of a parameter to set, if any.
type Named = (&'static str, Option<(&'static str, &'static str)>);

const GREEDY: Named = ("greedy", None);

fn rule((name, set): Named) -> Victims {
    let mut overrides = vec![("gc.victim", name)];
    overrides.extend(set);
    let profile = spec::builtin("demo").unwrap();
    let spec = DeviceSpec::with_overrides(profile, "demo", &overrides).unwrap();
    Victims::of(&spec.gc.victim)
}

fn windowed(percent: &'static str) -> Named {
    ("windowed", Some(("gc.window_percent", percent)))
}

fn d_choices(choices: &'static str) -> Named {
    ("d-choices", Some(("gc.choices", choices)))
}

fn map() -> PageMap {
    let overrides = [
        ("geometry.chips", "1"),
        ("geometry.planes_per_chip", "1"),
        ("geometry.blocks_per_plane", "16"),
        ("geometry.pages_per_block", "8"),
        ("geometry.reserve_percent", "40"),
        ("gc.low_percent", "7"),
        ("ftl.summary_page", "false"),
        ("nand.backend", "modern"),
        ("geometry.channels", "1"),
        ("nand.copy_back", "true"),
        ("buffer", "none"),
    ];
    let profile = spec::builtin("demo").unwrap();
    let spec = DeviceSpec::with_overrides(profile, "demo", &overrides).unwrap();
    PageMap::new(Shape::of(&spec, false), spec.low_blocks_chip())
}

fn write(map: &mut PageMap, lpn: u32) {
    let stream = map.make_room(0, Stream::Cold).unwrap();
    map.append(0, stream, Lpn(lpn));
}

/// Returns blocks 0 to 3, which were written in this order and have 5, 2, 7 and 2 valid pages.
fn four_blocks() -> PageMap {
    let mut map = map();
    (0..32).for_each(|lpn| write(&mut map, lpn));
    for lpn in [0, 1, 2, 8, 9, 10, 11, 12, 13, 16, 24, 25, 26, 27, 28, 29] {
        map.unmap(Lpn(lpn));
    }
    map
}

fn bit(map: &PageMap, of: Named, tie: Tie) -> u32 {
    victim(map, 0, rule(of), tie).unwrap().0
}

#[test]
fn by_hand() {
    let map = four_blocks();
    for (of, lowest, highest) in [
        (GREEDY, 1, 3),
        (("fifo", None), 0, 0),
        // The pool has 16 blocks. The three shares give windows of one block, of two blocks, and of all sealed blocks.
        (windowed("7"), 0, 0),
        (windowed("13"), 1, 1),
        (windowed("50"), 1, 3),
        // Values of age * (8 - live) / live for blocks 0 to 3: 3 * 3/5, 2 * 6/2, 1 * 1/7, 0.
        (("cost-benefit", None), 1, 1),
        // Values of live / (8 - live) / (age + 1) for blocks 0 to 3: 5/3/4, 2/6/3, 7/1/2, 2/6/1.
        (("cost-age-time", None), 1, 1),
    ] {
        assert_eq!(bit(&map, of, Tie::Lowest), lowest, "{of:?}");
        assert_eq!(bit(&map, of, Tie::Highest), highest, "{of:?}");
    }
}

/// Block 1 was erased twice before. It has the same cost as block 3, which was never erased: 2/6 * 3/3 and 2/6 * 1/1.
#[test]
fn cost_age_time_counts_erases() {
    let mut map = four_blocks();
    map.set_erases(1, 2);
    assert_eq!(bit(&map, ("cost-age-time", None), Tie::Lowest), 1);
    map.set_erases(1, 3);
    assert_eq!(bit(&map, ("cost-age-time", None), Tie::Lowest), 3);
}

#[test]
fn a_block_without_a_dead_page_is_taken_only_by_rules_that_do_not_look() {
    let mut map = map();
    (0..25).for_each(|lpn| write(&mut map, lpn));
    assert!(!worth_collecting(&map, 0, 8), "no block has a dead page");
    map.unmap(Lpn(20));
    assert!(worth_collecting(&map, 0, 8));
    for (of, bit, live) in [
        (GREEDY, 2, 7),
        (windowed("99"), 2, 7),
        (("cost-benefit", None), 2, 7),
        (("cost-age-time", None), 2, 7),
        (("fifo", None), 0, 8),
        (d_choices("100"), 2, 7),
    ] {
        assert_eq!(
            victim(&map, 0, rule(of), Tie::Lowest),
            Some((bit, live)),
            "{of:?}"
        );
    }
}

/// The n blocks are numbered by ascending valid pages. With d = 2, block k is chosen with probability ((n - k)^2 - (n -
/// k - 1)^2) / n^2. If the state of the page map is the same, a rule chooses the same victim again.
#[test]
fn draws_have_the_chances_of_d_choices() {
    let mut counts = [[0u32; 4]; 3];
    for stands in 0..4_000 {
        let mut map = four_blocks();
        // Blocks 0 to 3 now have 5, 2, 7 and 1 live pages.
        map.unmap(Lpn(30));
        map.set_last_seq(stands);
        for (i, of) in [("random", None), d_choices("2"), d_choices("40")]
            .into_iter()
            .enumerate()
        {
            let (bit, live) = victim(&map, 0, rule(of), Tie::Lowest).unwrap();
            assert_eq!(victim(&map, 0, rule(of), Tie::Lowest), Some((bit, live)));
            counts[i][bit as usize] += 1;
        }
    }
    let chances = [
        [0.25; 4],
        [0.1875, 0.3125, 0.0625, 0.4375],
        [0.0, 0.0, 0.0, 1.0],
    ];
    for (counts, chances) in counts.iter().zip(chances) {
        for (&count, chance) in counts.iter().zip(chances) {
            let share = f64::from(count) / 4_000.0;
            assert!((share - chance).abs() < 0.03, "{counts:?} {chances:?}");
        }
    }
}
