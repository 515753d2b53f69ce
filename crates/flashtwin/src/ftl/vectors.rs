//! A hand-checked example of the page map.

use super::{PageMap, Shape};
use crate::gc::{self, Tie, Victims, GREEDY};
use crate::spec::{builtin, DeviceSpec};
use crate::units::Stream;
use crate::units::{Lpn, Ppn};

/// Returns a map with one pool of `blocks` blocks of `pages` pages, without summary pages. Half of the blocks are
/// exported and written.
fn one_pool(blocks: u32, pages: u32) -> PageMap {
    let mut spec = DeviceSpec::parse(builtin("ecr").unwrap(), "ecr").unwrap();
    spec.geometry.chips = 1;
    spec.geometry.planes_per_chip = 1;
    spec.geometry.blocks_per_plane = blocks;
    spec.geometry.pages_per_block = pages;
    spec.geometry.reserve_percent = 50.0;
    spec.ftl.summary_page = false;
    let mut map = PageMap::new(Shape::of(&spec, true), 1);
    map.fill_sequential(false, |_, n| n);
    map
}

/// Formats the pages of a block, such as `b2 = [0* 1 4 0]`. `written` lists them in the order of writing; `*` marks
/// invalid pages.
fn show(map: &PageMap, block: u32, written: &[u32]) -> String {
    let pages: Vec<String> = written
        .iter()
        .enumerate()
        .map(|(i, lpn)| {
            let here = Some(Ppn(map.first_ppn(block).0 + i as u32));
            let stale = if map.lookup(Lpn(*lpn)) == here {
                ""
            } else {
                "*"
            };
            format!("{lpn}{stale}")
        })
        .collect();
    format!("b{block} = [{}]", pages.join(" "))
}

#[test]
fn vector_pm_1() {
    let mut map = one_pool(4, 4);
    for lpn in [0, 1, 4, 0] {
        map.make_room(0, Stream::Cold).unwrap();
        map.append(0, Stream::Cold, Lpn(lpn));
    }
    assert_eq!(show(&map, 2, &[0, 1, 4, 0]), "b2 = [0* 1 4 0]");
    assert_eq!(show(&map, 0, &[0, 1, 2, 3]), "b0 = [0* 1* 2 3]");
    assert_eq!(show(&map, 1, &[4, 5, 6, 7]), "b1 = [4* 5 6 7]");
    let valid: Vec<u32> = (0..3).map(|block| map.valid_of(block)).collect();
    assert_eq!(valid, [2, 3, 3]);

    let greedy = DeviceSpec::parse(builtin("ecr").unwrap(), "ecr")
        .unwrap()
        .gc
        .victim;
    assert_eq!(greedy.name, GREEDY);
    let victim = gc::victim(&map, 0, Victims::of(&greedy), Tie::Lowest);
    assert_eq!(victim, Some((0, 2)), "greedy victim b0");
    let mut copies = Vec::new();
    map.relocate(0, 0, |_, to, pages, _| copies.push((to, pages)));
    map.erase(0);
    assert_eq!(copies, [(3, 2)], "2 copies to block 3");
    assert_eq!(show(&map, 3, &[2, 3]), "b3 = [2 3]");
    assert_eq!(map.erase_counts(), [1, 0, 0, 0], "1 erase");
    map.check().unwrap();
}
