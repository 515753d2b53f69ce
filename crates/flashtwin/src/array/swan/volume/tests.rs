//! Volumes under random use, with all kinds of operations in flight.

use super::*;
use crate::array::swan::volume::State;
use crate::rng::Rng;
use crate::spec::builtin_array;

fn spec(more: &[(&str, &str)]) -> ArraySpec {
    let mut set = vec![
        ("array.level", "swan"),
        ("array.members", "harmonia*6"),
        ("member.geometry.chips", "2"),
        ("member.geometry.planes_per_chip", "1"),
        ("member.geometry.blocks_per_plane", "24"),
        ("member.geometry.pages_per_block", "8"),
    ];
    set.extend(more);
    let text = builtin_array("harmonia-array").unwrap();
    ArraySpec::with_overrides(text, "x", &set).unwrap_or_else(|e| panic!("{e}"))
}

/// Checks that all tables agree with each other.
fn check(v: &Volume) -> Result<(), String> {
    let mut valid = vec![0; v.segments.len()];
    for (place, &page) in (0..).zip(&v.pages) {
        if page != NONE {
            valid[v.segment_of(place) as usize] += 1;
            if v.map[page as usize] != place {
                return Err(format!("page {page} is mapped to {place}"));
            }
        }
    }
    let mapped = v.map.iter().filter(|&&place| place != NONE).count();
    if mapped != valid.iter().sum::<u32>() as usize {
        return Err("a page lies where another is".into());
    }
    for (segment, s) in (0..).zip(&v.segments) {
        let g = &v.groups[v.group_of(segment) as usize];
        let recorded = [
            s.state == State::Free,
            s.state == State::Open,
            s.state == State::Victim,
        ];
        let is = [
            g.free.contains(&segment),
            g.open == segment,
            g.victim == segment,
        ];
        let at_rest = matches!(s.state, State::Free | State::Trimming);
        if recorded != is
            || s.valid != valid[segment as usize]
            || at_rest && s.valid + s.reading > 0
        {
            return Err(format!("segment {segment} is {s:?}"));
        }
    }
    Ok(())
}

/// Operations in flight on a volume.
enum Flying {
    Write(u32),
    Copy(u32),
    Paste(u32, u32),
    Trim(u32),
}

/// Writes `count` pages whose numbers `draw` returns. Up to `depth` operations are in flight and complete in any
/// order. Returns the number of moved pages.
fn drive(
    v: &mut Volume,
    seed: u64,
    count: u32,
    depth: usize,
    mut draw: impl FnMut() -> u32,
) -> u64 {
    let mut rng = Rng::new(seed);
    let mut flying: Vec<Flying> = Vec::new();
    let (mut sent, mut moved, mut steps) = (0, 0, 0_u64);
    let mut wanted = draw();
    while sent < count || !flying.is_empty() {
        let mut wait = false;
        if sent < count && flying.len() < depth {
            match v.write(Lpn(wanted)) {
                Some(place) => {
                    flying.push(Flying::Write(place));
                    sent += 1;
                    wanted = draw();
                }
                None => wait = true,
            }
        }
        for group in 0..v.shape.groups {
            if v.collects(group, wait) && flying.len() < 2 * depth {
                if let Some(from) = v.next_to_move(group) {
                    v.read_began(from);
                    flying.push(Flying::Copy(from));
                }
            }
            if let Some(segment) = v.take_emptied(group) {
                flying.push(Flying::Trim(segment));
            }
        }
        if rng.below(3) == 0 && !flying.is_empty() {
            let at = rng.below(flying.len() as u64) as usize;
            match flying.swap_remove(at) {
                Flying::Write(place) => v.landed(place),
                Flying::Copy(from) => match v.place_for_move(from) {
                    Some(to) => flying.push(Flying::Paste(from, to)),
                    None => v.read_ended(from),
                },
                Flying::Paste(from, to) => {
                    v.landed(to);
                    v.moved(from, to);
                    v.read_ended(from);
                    moved += 1;
                }
                Flying::Trim(segment) => v.trimmed(segment),
            }
        }
        steps += 1;
        assert!(steps < 200 * u64::from(count), "nothing goes on: {v:?}");
        if steps % 512 == 0 {
            check(v).unwrap();
        }
    }
    check(v).unwrap();
    moved
}

/// Even with the smallest permitted number of spare segments, a volume whose pages are all written can still be
/// overwritten.
#[test]
fn full_volume_makes_progress() {
    for seed in crate::seeds(3) {
        for more in [
            &[("array.groups", "2"), ("array.spare_percent", "16")][..],
            &[("array.groups", "3"), ("array.spare_percent", "16")],
            &[
                ("array.groups", "3"),
                ("array.segment", "16 KiB"),
                ("array.spare_percent", "5"),
            ],
            &[
                ("array.groups", "2"),
                ("array.segment", "100 KiB"),
                ("array.spare_percent", "35"),
            ],
        ] {
            for depth in [1, 30] {
                let spec = spec(more);
                let mut v = Volume::of(&spec).unwrap();
                let exported = v.shape.exported;
                let mut next = 0;
                drive(&mut v, seed, exported, depth, || {
                    next += 1;
                    (next - 1) % exported
                });
                assert!(v.map.iter().all(|&place| place != NONE));
                let mut rng = Rng::new(seed);
                let moved = drive(&mut v, seed, 10 * exported, depth, || {
                    rng.below(exported.into()) as u32
                });
                assert!(moved > u64::from(exported), "{moved}");
                // Only the first 9 pages are overwritten. All of them stay in one group, so all invalid pages are in
                // the front group.
                drive(&mut v, seed, 3 * exported, depth, || rng.below(9) as u32);
                let mut state = Vec::new();
                v.save(&mut state).unwrap();
                let again = Volume::load(&spec, &mut &state[..], |_| true)
                    .unwrap()
                    .unwrap();
                check(&again).unwrap();
                assert_eq!(again.pages, v.pages);
                assert_eq!(again.map, v.map);
            }
        }
    }
}

/// Every location is on a member of the place's group. No two locations are equal. The parity of a stripe is on the
/// member that has no data of the stripe.
#[test]
fn places_and_parity_use_every_member_page_once() {
    for more in [
        &[("array.groups", "2")][..],
        &[("array.groups", "3"), ("array.chunk", "16 KiB")],
        &[
            ("array.groups", "2"),
            ("array.rotation", "right-asymmetric"),
        ],
    ] {
        let mut v = Volume::of(&spec(more)).unwrap();
        let pages = v.shape.segments * v.shape.pages;
        let mut used = vec![vec![false; pages as usize]; 6];
        for place in 0..v.pages.len() as u32 {
            let (members, first) = v.extent(v.segment_of(place));
            let spots = [Some(v.spot(place)), v.parity_after(place)];
            for spot in spots.into_iter().flatten() {
                assert!(members.contains(&spot.member));
                assert!((first..first + v.shape.pages).contains(&spot.lpn.0));
                let used = &mut used[spot.member][spot.lpn.0 as usize];
                assert!(!std::mem::replace(used, true), "{spot:?} twice");
            }
            v.pages[place as usize] = place;
            assert_eq!(v.page_at(v.spot(place)), Some(Lpn(place)));
        }
        assert!(used.iter().flatten().all(|&used| used));
    }
}

/// A state of another volume, or one that no volume can have, is refused.
#[test]
fn a_state_that_cannot_be_is_refused() {
    for seed in crate::seeds(3) {
        let spec = spec(&[]);
        let mut v = Volume::of(&spec).unwrap();
        let exported = v.shape.exported;
        let mut rng = Rng::new(seed);
        drive(&mut v, seed, exported / 4, 8, || {
            rng.below(exported.into()) as u32
        });
        let mut bytes = Vec::new();
        v.save(&mut bytes).unwrap();
        let load = |bytes: &[u8]| Volume::load(&spec, &mut &bytes[..], |_| true);
        assert!(load(&bytes).is_ok());
        assert!(load(&bytes[..bytes.len() - 1]).is_err());
        assert!(Volume::load(&spec, &mut &bytes[..], |_| false).is_err());
        let word = |at: usize, value: u32| {
            let mut other = bytes.clone();
            other[4 * at..4 * at + 4].copy_from_slice(&value.to_le_bytes());
            load(&other).is_err()
        };
        // Damaged numbers: the front group, a cursor, the number of free segments, and a free segment of another group.
        assert!(word(0, 2) && word(2, 1 << 20) && word(4, 1 << 20) && word(5, 1 << 20));
        let free = v.groups[0].free.len();
        assert!(word(6, v.shape.segments) && word(6, v.groups[0].free[free - 1]));
        // A page that has two places, a page beyond the volume, and a page in a free segment.
        let first = bytes.len() / 4 - v.pages.len();
        let mut held = (0..v.pages.len()).filter(|&place| v.pages[place] != NONE);
        let (one, two) = (held.next().unwrap(), held.next().unwrap());
        assert!(word(first + one, v.pages[two]) && word(first + one, exported));
        let in_free = v.groups[0].free[0] as usize * v.shape.data as usize;
        let mut moved = bytes.clone();
        moved[4 * (first + one)..4 * (first + one) + 4].copy_from_slice(&[0xff; 4]);
        assert!(load(&moved).is_ok());
        let page = v.pages[one].to_le_bytes();
        moved[4 * (first + in_free)..4 * (first + in_free) + 4].copy_from_slice(&page);
        assert!(load(&moved).is_err());
    }
}
