use super::{AgeIndex, Ages, Shelf};
use crate::buffer::{List, PageId};
use crate::rng::Rng;
use crate::units::ChipId;

const NONE: u32 = u32::MAX;

#[test]
fn classes_and_lists_are_sorted_by_last_access() {
    for seed in crate::seeds(2) {
        let mut rng = Rng::new(seed);
        for (pages, steps) in [(3, 30_000), (40, 50_000), (9000, 60_000)] {
            // The index must grow, because it is created for a quarter of the pages. Class 0 has no lists by chip.
            let mut index = AgeIndex::<3>::new(pages / 4, 2, [false, true, true]);
            let mut naive: Vec<(PageId, usize, Shelf)> = Vec::new();
            let mut cached = vec![false; pages as usize];
            let mut known = [[NONE; 3]; 3];
            for _ in 0..steps {
                let page = PageId(rng.below(u64::from(pages)) as u32);
                let class = rng.below(3) as usize;
                let shelf = match rng.below(4) {
                    0 => Shelf::NoChip,
                    1 => Shelf::InFlight,
                    chip => Shelf::Chip(ChipId(chip as u16 - 2)),
                };
                if !cached[page.0 as usize] {
                    index.insert(page, class, shelf);
                    naive.push((page, class, shelf));
                    cached[page.0 as usize] = true;
                } else {
                    let i = naive.iter().position(|p| p.0 == page).unwrap();
                    match rng.below(5) {
                        0 => {
                            index.change(page, class);
                            naive[i].1 = class;
                        }
                        1 => {
                            index.moved(page, shelf);
                            naive[i].2 = shelf;
                        }
                        2 => {
                            index.evict(page);
                            let (_, class, shelf) = naive.remove(i);
                            cached[page.0 as usize] = false;
                            let is_listed = class != 0 && shelf != Shelf::InFlight;
                            let next = naive.iter().find(|p| (p.1, p.2) == (class, shelf));
                            let next = next.filter(|_| is_listed).map(|p| p.0);
                            assert_eq!(index.upcoming(), next);
                        }
                        _ => {
                            index.renew(page, class);
                            let (_, _, shelf) = naive.remove(i);
                            naive.push((page, class, shelf));
                        }
                    }
                }
                if rng.below(if pages < 100 { 1 } else { 300 }) == 0 {
                    check(&index, &naive);
                    check_changes(&mut index, &mut known);
                }
            }
        }
    }
}

fn check(index: &AgeIndex<3>, naive: &[(PageId, usize, Shelf)]) {
    for class in 0..3 {
        let arrived = naive.iter().filter(|p| p.2 != Shelf::InFlight);
        let of_class = arrived.filter(|p| p.1 == class);
        let wanted: Vec<PageId> = of_class.clone().map(|p| p.0).collect();
        assert!(index.iter_oldest_first(class).eq(wanted.iter().copied()));
        for (i, &page) in wanted.iter().enumerate() {
            assert_eq!(index.ages.position(page, class), i as u64 + 1);
            assert_eq!(index.at(index.age(page)), page);
        }
        for list in 0..if class == 0 { 0 } else { 3 } {
            let chip = index.chip_of_list(list);
            let listed = of_class.clone().filter(|p| p.2 == chip.into()).map(|p| p.0);
            assert!(index.iter_chip(class, list).eq(listed.clone()));
            let head = index.heads(class)[list];
            let first = (head != NONE).then(|| index.at(head));
            assert_eq!(first, listed.clone().next());
            assert!(listed.clone().all(|page| index.chip(page) == chip));
        }
    }
}

/// Applies the changes that `take_changed` reports to `known`. Checks that `known` then equals the heads of all lists.
fn check_changes(index: &mut AgeIndex<3>, known: &mut [[u32; 3]; 3]) {
    for (class, known) in known.iter_mut().enumerate() {
        index.take_changed([class], |list, head| known[list] = head);
        assert_eq!(index.heads(class), known);
        assert_eq!(
            index.lists.is_empty(class),
            known.iter().all(|&head| head == NONE)
        );
        index.take_changed([class], |_, _| panic!("a change is reported once"));
    }
}

#[test]
fn positions_agree_with_a_walk() {
    for seed in crate::seeds(3) {
        let mut rng = Rng::new(seed);
        let mut list = List::default();
        let mut ages = Ages::new(40, 1);
        let mut cached = Vec::new();
        for _ in 0..20_000 {
            let page = PageId(rng.below(40) as u32);
            if cached.contains(&page) {
                list.remove(page);
                ages.remove(page, 0);
                cached.retain(|&p| p != page);
            }
            if rng.below(4) > 0 {
                list.push_newest(page);
                ages.push(page);
                ages.insert(page, 0);
                cached.push(page);
            }
            for (i, page) in list.iter_oldest_first().enumerate() {
                assert_eq!(ages.position(page, 0), i as u64 + 1);
            }
        }
    }
}
