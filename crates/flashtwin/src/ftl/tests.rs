//! Tests of the page map with random writes and trims in random streams, and the collections that a chip would run.
//! The map must stay consistent, hot and cold pages must stay in separate blocks, and saved states must load into
//! other devices.

use std::collections::HashSet;

use super::{Apart, Foresight, PageMap, Shape};
use crate::buffer::{Filter, Setup};
use crate::gc::{self, Tie, Victims};
use crate::rng::Rng;
use crate::spec::{builtin, DeviceSpec, Moves, Separation};
use crate::units::Stream;
use crate::units::{Lpn, Ppn, Time};

/// Configuration of a device of the tests.
#[derive(Clone, Copy, Debug)]
struct Made {
    chips: u32,
    planes: u32,
    blocks: u32,
    pages: u32,
    /// Reserved blocks of each plane (over-provisioning).
    reserve: u32,
    summary_page: bool,
    pools_are_planes: bool,
    streams: u32,
    /// Criterion that separates hot from cold pages. With `Separation::None`, the buffer policy decides.
    separation: Separation,
    /// Streams of pages that GC moves. Used only if the buffer policy separates hot from cold pages.
    moves: Moves,
    victim: &'static str,
}

impl Made {
    fn spec(&self) -> DeviceSpec {
        let asks = self.streams == 2 && self.separation == Separation::None;
        let policy = [
            ("buffer.policy", "cda-gc"),
            ("buffer.filter", "exact"),
            ("buffer.filter_reset_ms", "500"),
            ("gc.moves", self.moves.name()),
        ];
        let set = if asks { &policy[..] } else { &[] };
        let mut spec = DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", set).unwrap();
        spec.geometry.chips = self.chips;
        spec.geometry.planes_per_chip = self.planes;
        spec.geometry.blocks_per_plane = self.blocks;
        spec.geometry.pages_per_block = self.pages;
        spec.geometry.reserve_percent =
            100.0 * (f64::from(self.reserve) + 0.5) / f64::from(self.blocks);
        spec.ftl.summary_page = self.summary_page;
        if self.streams == 2 {
            spec.ftl.separation = self.separation;
            spec.ftl.region_percent = 25.0;
        }
        assert_eq!(spec.write_streams(), self.streams);
        assert_eq!(spec.reserved_blocks_per_plane(), self.reserve);
        spec
    }

    fn map(&self) -> PageMap {
        let spec = self.spec();
        let mut map = PageMap::new(Shape::of(&spec, self.pools_are_planes), 1);
        if spec.moves() == Moves::Class {
            map.exchange_classes(Some(Box::new(Filter::new(&Setup::of(&spec)))));
        }
        map
    }
}

/// Returns the victim rule that has the name `victim` in device files.
fn rule(victim: &str) -> Victims {
    let ecr = builtin("ecr").unwrap();
    let mut overrides = vec![("gc.victim", victim)];
    match victim {
        "d-choices" => overrides.push(("gc.choices", "3")),
        "windowed" => overrides.push(("gc.window_percent", "40")),
        _ => {}
    }
    let spec = DeviceSpec::with_overrides(ecr, "ecr", &overrides).unwrap();
    Victims::of(&spec.gc.victim)
}

/// A map under random load, with the contents that it should have.
struct Load {
    map: PageMap,
    rng: Rng,
    /// For each block, two flags: whether a cold page, and whether a hot page, was written since the block was
    /// opened.
    written: Vec<[bool; 2]>,
    /// The logical pages that have a copy.
    mapped: Vec<bool>,
    victims: Victims,
    /// Number of writes so far. Each write advances the time by one millisecond.
    writes: u64,
    /// Pages that the host wrote as hot since the last reset of the filter. `forgotten` is the value of `writes` at
    /// this reset.
    recent: HashSet<Lpn>,
    forgotten: u64,
}

impl Load {
    fn new(map: PageMap, victim: &str, seed: u64) -> Load {
        let blocks = map.erase_counts().len();
        let pages = map.shape.exported_pages;
        Load {
            rng: Rng::new(seed),
            written: vec![[false; 2]; blocks],
            mapped: (0..pages)
                .map(|lpn| map.lookup(Lpn(lpn)).is_some())
                .collect(),
            map,
            victims: rule(victim),
            writes: 0,
            recent: HashSet::new(),
            forgotten: 0,
        }
    }

    fn note(&mut self, lpn: Lpn, stream: Stream) {
        let block = self.map.block_of(self.map.lookup(lpn).unwrap());
        self.written[block as usize][(stream == Stream::Hot) as usize] = true;
    }

    /// Collects in `pool` until its free blocks exceed the low watermark, or until no collection would free a page.
    fn collect(&mut self, pool: u32) {
        while self.map.pool(pool).free <= self.map.low() {
            let picked = gc::victim(&self.map, pool, self.victims, Tie::Lowest);
            let Some((bit, valid)) = picked else {
                return;
            };
            if !gc::worth_collecting(&self.map, pool, valid) {
                return;
            }
            let victim = pool * self.map.shape.blocks_per_pool + bit;
            let first = self.map.first_ppn(victim).0;
            let kind = self.written[victim as usize][1];
            let live = |map: &PageMap, page| {
                let page = map.next_live(victim, page)?;
                Some((page, map.lpn_at(Ppn(first + page))))
            };
            if self.rng.below(2) == 0 {
                let after = |&(page, _): &(u32, Lpn)| live(&self.map, page + 1);
                let moved: Vec<(u32, Lpn)> =
                    std::iter::successors(live(&self.map, 0), after).collect();
                self.map.relocate(victim, pool, |_, _, _, _| ());
                for (_, lpn) in moved {
                    self.note(lpn, self.stream_of_move(kind, lpn));
                }
            } else {
                // Moves the pages one by one. The device does this if it may execute reads between two moves.
                while let Some((_, lpn)) = live(&self.map, 0) {
                    let stream = self.map.move_stream(victim, lpn);
                    assert_eq!(stream, self.stream_of_move(kind, lpn));
                    assert_eq!(self.map.make_room(pool, stream), Ok(stream));
                    self.map.append(pool, stream, lpn);
                    self.note(lpn, stream);
                }
            }
            self.map.erase(victim);
            self.written[victim as usize] = [false; 2];
        }
    }

    /// Returns the stream that a moved page must have. `victim_is_hot` is true if it is moved from a hot block.
    fn stream_of_move(&self, victim_is_hot: bool, lpn: Lpn) -> Stream {
        let is_hot = match self.map.shape.apart {
            Apart::AsVictim => victim_is_hot,
            Apart::ByClass => self.recent.contains(&lpn),
            Apart::Below(end) => lpn.0 < end,
            Apart::AsAsked | Apart::Moved | Apart::Cached => false,
        };
        match is_hot {
            true => Stream::Hot,
            false => Stream::Cold,
        }
    }

    fn write(&mut self, lpn: Lpn, stream: Stream) {
        if stream == Stream::Hot {
            // The filter is reset before a hot write if at least half a second has passed since the last reset.
            if self.writes - self.forgotten >= 500 {
                self.recent.clear();
                self.forgotten = self.writes;
            }
            self.recent.insert(lpn);
            self.map.note_write(lpn, Time::from_ms(self.writes));
        }
        self.writes += 1;
        let stream = self.map.host_stream(lpn, stream);
        let shape = self.map.shape;
        let chip = lpn.0 / shape.stride_pages % shape.chips;
        let first = chip * shape.pools_per_chip;
        for pool in first..first + shape.pools_per_chip {
            self.collect(pool);
        }
        let rooms = self.map.rooms_of_chip(chip).iter();
        let most = rooms.enumerate().max_by_key(|(_, room)| **room);
        let pool = first + most.map_or(0, |(pool, _)| pool as u32);
        let of = self.map.make_room(pool, stream);
        assert_eq!(of, Ok(stream), "collected before");
        self.map.append(pool, stream, lpn);
        self.mapped[lpn.0 as usize] = true;
        self.note(lpn, stream);
    }

    fn check(&self) {
        self.map.check().unwrap();
        for (lpn, &mapped) in self.mapped.iter().enumerate() {
            assert_eq!(self.map.lookup(Lpn(lpn as u32)).is_some(), mapped);
        }
        let apart = self.map.shape.streams == 2;
        for block in &self.written {
            assert!(!apart || *block != [true, true], "hot and cold in one");
        }
    }

    /// Executes `writes` writes. Of these, `hot` percent are hot. After each write, a trim follows with a
    /// probability of `trims` percent.
    fn run(&mut self, writes: u32, hot: u64, trims: u64) {
        let pages = u64::from(self.map.shape.exported_pages);
        for i in 0..writes {
            let stream = if self.rng.below(100) < hot {
                Stream::Hot
            } else {
                Stream::Cold
            };
            let lpn = Lpn(self.rng.below(pages) as u32);
            self.write(lpn, stream);
            if self.rng.below(100) < trims {
                let lpn = Lpn(self.rng.below(pages) as u32);
                let had = std::mem::take(&mut self.mapped[lpn.0 as usize]);
                assert_eq!(self.map.unmap(lpn), had);
            }
            if i % 199 == 0 {
                self.check();
            }
        }
        self.check();
    }
}

#[test]
fn random_writes_and_trims_keep_the_map() {
    for seed in crate::seeds(60) {
        let mut rng = Rng::new(seed);
        let mut pick = |of: &[u32]| of[rng.below(of.len() as u64) as usize];
        let made = Made {
            chips: pick(&[1, 2, 3]),
            planes: pick(&[1, 2, 4]),
            blocks: pick(&[10, 17, 33]),
            pages: pick(&[2, 4, 9, 65, 130]),
            reserve: pick(&[4, 5]),
            summary_page: pick(&[0, 1]) == 1,
            pools_are_planes: pick(&[0, 1]) == 1,
            streams: pick(&[1, 2]),
            separation: [Separation::None, Separation::Gc, Separation::Region]
                [pick(&[0, 0, 0, 1, 2]) as usize],
            moves: [Moves::Cold, Moves::Victim, Moves::Class][pick(&[0, 1, 2]) as usize],
            victim: [
                "greedy",
                "fifo",
                "random",
                "d-choices",
                "windowed",
                "cost-benefit",
                "cost-age-time",
            ][pick(&[0, 1, 2, 3, 4, 5, 6]) as usize],
        };
        let hot = pick(&[0, 3, 50, 97, 100]).into();
        let trims = pick(&[0, 10, 60]).into();
        let mut map = made.map();
        if pick(&[0, 1]) == 1 {
            let blocks = made.blocks;
            let usable = map.shape.usable_per_plane;
            map.fill_sequential(false, |chip, n| {
                (chip * made.planes + n / usable) * blocks + n % usable
            });
        }
        println!("seed {seed}: {made:?}, {hot} % hot, {trims} % trims");
        Load::new(map, made.victim, seed).run(4_000, hot, trims);
    }
}

/// The pool has 400 blocks. 396 blocks are exported and written. Of the other four, up to two are open, and a
/// collection begins when at most one is free.
#[test]
fn a_device_99_percent_full_keeps_working() {
    for streams in [1, 2] {
        for summary_page in [false, true] {
            let made = Made {
                chips: 1,
                planes: 1,
                blocks: 400,
                pages: 8,
                reserve: 4,
                summary_page,
                pools_are_planes: true,
                streams,
                separation: Separation::None,
                moves: Moves::Cold,
                victim: "greedy",
            };
            let mut map = made.map();
            map.fill_sequential(false, |_, n| n);
            let mut load = Load::new(map, made.victim, 3);
            load.run(3_000, 0, 0);
            load.run(3_000, 50, 1);
            load.run(3_000, 100, 0);
            assert_eq!(load.map.shape.streams, streams);
        }
    }
}

#[test]
fn one_stream_takes_hot_pages_for_cold_ones() {
    let made = Made {
        chips: 1,
        planes: 1,
        blocks: 20,
        pages: 4,
        reserve: 5,
        summary_page: false,
        pools_are_planes: true,
        streams: 1,
        separation: Separation::None,
        moves: Moves::Cold,
        victim: "greedy",
    };
    let run = |hot| {
        let mut load = Load::new(made.map(), "greedy", 8);
        for i in 0..500 {
            load.write(Lpn(i * 7 % 60), hot);
        }
        let mut state = Vec::new();
        load.map.save(&mut state).unwrap();
        state
    };
    assert!(run(Stream::Hot) == run(Stream::Cold));
}

/// On a chip with two pools, the numbers reported to the buffer are those of the pool that will collect first.
#[test]
fn the_scarcest_pool_speaks_for_its_chip() {
    let made = Made {
        chips: 1,
        planes: 2,
        blocks: 10,
        pages: 4,
        reserve: 4,
        summary_page: false,
        pools_are_planes: true,
        streams: 2,
        separation: Separation::None,
        moves: Moves::Cold,
        victim: "greedy",
    };
    let mut map = made.map();
    let of_chip = |map: &PageMap| (map.free_blocks_of_chip(0), map.open_pages_of_chip(0));
    assert_eq!(map.gc_trigger_blocks_of_chip(0), 1);
    assert_eq!(of_chip(&map), (9, 4));
    assert_eq!(map.free_pages_of_chip(0), 80);
    let write = |map: &mut PageMap, pool, stream, lpn| {
        map.make_room(pool, stream).unwrap();
        map.append(pool, stream, Lpn(lpn));
    };
    write(&mut map, 1, Stream::Cold, 0);
    assert_eq!(of_chip(&map), (9, 3));
    write(&mut map, 0, Stream::Hot, 1);
    assert_eq!(of_chip(&map), (8, 7), "a block each, hot and cold");
    for lpn in 2..5 {
        write(&mut map, 0, Stream::Hot, lpn);
    }
    assert_eq!(of_chip(&map), (8, 4), "the hot one is full");
    assert_eq!(map.free_pages_of_chip(0), 75);
    map.check().unwrap();
}

/// If no block is free, the free pages of both open blocks receive pages of either stream.
#[test]
fn a_pool_is_written_to_its_last_page() {
    for streams in [1, 2] {
        for last in [Stream::Cold, Stream::Hot] {
            let made = Made {
                chips: 1,
                planes: 1,
                blocks: 10,
                pages: 4,
                reserve: 0,
                summary_page: false,
                pools_are_planes: true,
                streams,
                separation: Separation::None,
                moves: Moves::Cold,
                victim: "greedy",
            };
            let mut map = made.map();
            let mut lpn = 0;
            for stream in [Stream::Hot, Stream::Cold] {
                map.make_room(0, stream).unwrap();
                map.append(0, stream, Lpn(lpn));
                lpn += 1;
            }
            while let Ok(stream) = map.make_room(0, last) {
                map.append(0, stream, Lpn(lpn));
                lpn += 1;
                map.check().unwrap();
            }
            assert_eq!(lpn, 40);
            assert_eq!((map.open_pages(0), map.free_pages_of_chip(0)), (0, 0));
        }
    }
}

/// Returns a device with `streams` streams after many writes, its saved state, and the configuration of a device
/// that differs only in the number of streams.
fn saved(streams: u32) -> (Made, Load, Vec<u8>) {
    let made = Made {
        chips: 2,
        planes: 1,
        blocks: 30,
        pages: 9,
        reserve: 6,
        summary_page: true,
        pools_are_planes: false,
        streams,
        separation: Separation::None,
        moves: Moves::Cold,
        victim: "greedy",
    };
    let mut map = made.map();
    map.fill_sequential(true, |chip, n| chip * 30 + n);
    let mut load = Load::new(map, "greedy", 5);
    load.run(2_003, 40, 5);
    let mut state = Vec::new();
    load.map.save(&mut state).unwrap();
    let other = Made {
        streams: 3 - streams,
        ..made
    };
    (other, load, state)
}

fn load_and_check(mut map: PageMap, of: &Load, state: &[u8]) {
    map.load(&mut &state[..]).unwrap();
    map.check().unwrap();
    let mut load = Load::new(map, "greedy", 6);
    assert_eq!(load.mapped, of.mapped);
    load.run(2_000, 40, 5);
}

/// A hot block and a cold block of four pages each are collected when each has two valid pages. One page of each
/// block, 2 and 5, is in the filter of hot pages.
#[test]
fn moved_pages_go_to_the_block_that_the_key_names() {
    for (moves, hot_after) in [
        (Moves::Cold, &[0, 1][..]),
        (Moves::Victim, &[0, 1, 2, 3]),
        (Moves::Class, &[0, 1, 2, 5]),
    ] {
        for by_page in [false, true] {
            let made = Made {
                chips: 1,
                planes: 1,
                blocks: 20,
                pages: 4,
                reserve: 5,
                summary_page: false,
                pools_are_planes: true,
                streams: 2,
                separation: Separation::None,
                moves,
                victim: "greedy",
            };
            let mut map = made.map();
            let write = |map: &mut PageMap, stream, lpns: &[u32]| {
                for &lpn in lpns {
                    assert_eq!(map.make_room(0, stream), Ok(stream));
                    map.append(0, stream, Lpn(lpn));
                }
            };
            write(&mut map, Stream::Hot, &[0, 1, 2, 3]);
            write(&mut map, Stream::Cold, &[4, 5, 6, 7]);
            write(&mut map, Stream::Cold, &[4, 7]);
            write(&mut map, Stream::Hot, &[0, 1]);
            map.note_write(Lpn(2), Time::ZERO);
            map.note_write(Lpn(5), Time::ZERO);
            let block = |map: &PageMap, lpn| map.block_of(map.lookup(Lpn(lpn)).unwrap());
            for lpn in [2, 5] {
                let victim = block(&map, lpn);
                assert_eq!(map.valid_of(victim), 2);
                if by_page {
                    while let Some(page) = map.next_live(victim, 0) {
                        let lpn = map.lpn_at(Ppn(map.first_ppn(victim).0 + page));
                        let stream = map.move_stream(victim, lpn);
                        assert_eq!(map.make_room(0, stream), Ok(stream));
                        map.move_page(victim, page, 0, stream);
                    }
                } else {
                    map.relocate(victim, 0, |_, _, _, _| ());
                }
                map.erase(victim);
            }
            let hot = block(&map, 0);
            let hot: Vec<u32> = (0..8).filter(|&lpn| block(&map, lpn) == hot).collect();
            assert_eq!(hot, hot_after, "{moves:?}");
            map.check().unwrap();
        }
    }
}

/// A saved state contains the list of hot blocks. If a state lacks the list, the open hot blocks are still known
/// from the frontiers.
#[test]
fn a_state_has_the_kinds_of_blocks() {
    let made = |moves| Made {
        chips: 2,
        planes: 1,
        blocks: 30,
        pages: 9,
        reserve: 6,
        summary_page: true,
        pools_are_planes: false,
        streams: 2,
        separation: Separation::None,
        moves,
        victim: "greedy",
    };
    let worn = |moves| {
        let mut load = Load::new(made(moves).map(), "greedy", 5);
        load.run(2_003, 40, 5);
        let mut state = Vec::new();
        load.map.save(&mut state).unwrap();
        (load.map, state)
    };
    let (map, state) = worn(Moves::Victim);
    let mut other = made(Moves::Victim).map();
    other.load(&mut &state[..]).unwrap();
    assert_eq!(other.hot_blocks, map.hot_blocks);
    assert!((0..60).filter(|&block| other.is_hot(block)).count() > 10);
    made(Moves::Cold).map().load(&mut &state[..]).unwrap();
    let error = other.load(&mut &state[..state.len() - 3]).unwrap_err();
    assert!(
        error.to_string().contains("amid the kinds of blocks"),
        "{error}"
    );
    let mut wrong = state.clone();
    *wrong.last_mut().unwrap() = 128;
    let error = other.load(&mut &wrong[..]).unwrap_err().to_string();
    assert!(error.contains("is hot, and free or none"), "{error}");

    let (map, state) = worn(Moves::Cold);
    other.load(&mut &state[..]).unwrap();
    let open = |block| {
        map.hot
            .iter()
            .any(|hot| hot.active == block && hot.next_page < 8)
    };
    assert!((0..60).all(|block| other.is_hot(block) == open(block)));
}

#[test]
fn a_state_of_one_stream_loads_into_two() {
    let (two, load, state) = saved(1);
    let mut map = two.map();
    map.load(&mut &state[..]).unwrap();
    assert!(map.hot.iter().all(|hot| hot.next_page == 8), "none is open");
    load_and_check(two.map(), &load, &state);
}

#[test]
fn a_state_of_two_streams_loads_into_one_and_into_two() {
    let (one, load, state) = saved(2);
    let half_full = load.map.hot.iter().find(|hot| hot.next_page < 8);
    let half_full = half_full.expect("a hot block is open").active as usize;
    let mut map = one.map();
    map.load(&mut &state[..]).unwrap();
    assert!(map.hot.is_empty());
    assert!(
        map.tally[half_full] < PageMap::CANDIDATE_END,
        "it was sealed"
    );
    load_and_check(one.map(), &load, &state);
    load_and_check(load.map.clone(), &load, &state);
    let mut again = Vec::new();
    let mut map = load.map.clone();
    map.load(&mut &state[..]).unwrap();
    map.save(&mut again).unwrap();
    assert!(again == state);
}

#[test]
fn impossible_hot_frontiers_are_refused() {
    let (one, load, state) = saved(2);
    let end = state.len();
    let refuse = |why: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = state.clone();
        change(&mut changed);
        for mut map in [one.map(), load.map.clone()] {
            let error = map.load(&mut &changed[..]).expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
        }
    };
    refuse("amid the hot write frontiers", &|s| s.truncate(end - 3));
    refuse("pool 1: impossible write frontier", &|s| s[end - 4] = 9);
    refuse("pool 1: impossible write frontier", &|s| s[end - 8] = 2);
    refuse("pool 0: its open block is not open", &|s| {
        s[end - 12..end - 8].fill(0)
    });
    let active = load.map.pools[0].active.to_le_bytes();
    refuse("pool 0: one block is open twice", &|s| {
        s[end - 16..end - 12].copy_from_slice(&active);
        s[end - 12..end - 8].copy_from_slice(&7u32.to_le_bytes());
    });
}

/// A state with an invalid map must be refused when it is loaded, because later uses of the map do not check its
/// numbers.
#[test]
fn a_map_of_pages_that_are_not_there_is_refused() {
    let (_, load, state) = saved(1);
    let lpn = (0..).find(|&lpn| load.map.lookup(Lpn(lpn)).is_some());
    let at = 4 * lpn.unwrap() as usize;
    let pages = load.map.reverse.len() as u32;
    for beyond in [pages, pages + 1, u32::MAX - 1] {
        let mut changed = state.clone();
        changed[at..at + 4].copy_from_slice(&beyond.to_le_bytes());
        let error = load.map.clone().load(&mut &changed[..]).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("not where the map has"), "{error}");
    }
}

/// The check returns the same result with and without wide vectors, on one thread and on two.
#[test]
fn vectors_of_any_width_find_the_same() {
    let (_, small, _) = saved(1);
    let made = Made {
        chips: 1,
        planes: 1,
        blocks: 520,
        pages: 2112,
        reserve: 4,
        summary_page: false,
        pools_are_planes: true,
        streams: 1,
        separation: Separation::None,
        moves: Moves::Cold,
        victim: "greedy",
    };
    let mut large = Load::new(made.map(), "greedy", 9);
    assert!(large.map.is_checked_on_two_threads());
    large.run(3_000, 0, 0);
    for map in [&small.map, &large.map] {
        finds_each_change(map);
    }
}

fn finds_each_change(map: &PageMap) {
    let found = |map: &PageMap| {
        let result = map.check_pages();
        assert_eq!(result, map.check_pages_in_vectors());
        result
    };
    assert_eq!(found(map), Ok(()));
    let lpn = (0..).find_map(|lpn| Some((lpn, map.lookup(Lpn(lpn))?)));
    let (lpn, Ppn(ppn)) = lpn.unwrap();
    let block = map.block_of(Ppn(ppn)) as usize;
    let word = map.rows.first(block as u32);
    let changes: [&dyn Fn(&mut PageMap); 4] = [
        &|map| map.map[lpn as usize] ^= 1,
        &|map| map.reverse[ppn as usize] ^= 1,
        &|map| map.tally[block] ^= 1,
        &|map| map.rows[word] ^= 1,
    ];
    for (n, change) in changes.iter().enumerate() {
        let mut map = map.clone();
        change(&mut map);
        found(&map).expect_err(&format!("change {n}"));
    }
}

/// Prefetches of a victim's data process its words of live bits in order, and begin each word at its first live page.
#[test]
fn all_words_of_a_victim_have_their_turn() {
    let made = Made {
        chips: 1,
        planes: 1,
        blocks: 12,
        pages: 130,
        reserve: 3,
        summary_page: false,
        pools_are_planes: true,
        streams: 1,
        separation: Separation::None,
        moves: Moves::Cold,
        victim: "greedy",
    };
    let mut load = Load::new(made.map(), "greedy", 9);
    load.run(3_000, 0, 0);
    let mut map = load.map;
    let last = false;
    map.foresee(Foresight {
        last,
        pages: made.pages,
        maps: true,
    });
    let pool = 0;
    let bit = map.position_of_least(pool, last).expect("a victim");
    map.load_victim(pool);
    let mut seen = Vec::new();
    for _ in 0..made.pages {
        let is_new = map.foreseen.live == 0;
        map.load_foreseen();
        if is_new && map.foreseen.live != 0 {
            seen.push((map.foreseen.first, map.foreseen.live));
        }
    }
    let first = map.first_ppn(bit).0;
    let expected: Vec<(u32, u64)> = (0..)
        .zip(map.live_words(bit))
        .map(|(i, &live)| (first + 64 * i, live))
        .filter(|&(_, live)| live != 0)
        .collect();
    assert_eq!(seen, expected);
    assert!(map.foreseen.next.is_empty() && map.foreseen.live == 0);
}

/// Functions that put the map into states which otherwise only long runs would reach.
impl PageMap {
    pub(crate) fn set_erases(&mut self, block: u32, erases: u32) {
        self.rows.set_erases(block, erases);
    }

    pub(crate) fn set_last_seq(&mut self, seq: u32) {
        self.last_seq[0] = seq;
    }
}

/// The region of hot pages begins at page 0, and is the given percentage of the device.
#[test]
fn the_region_ends_before_its_end() {
    let made = Made {
        chips: 1,
        planes: 1,
        blocks: 20,
        pages: 8,
        reserve: 5,
        summary_page: false,
        pools_are_planes: true,
        streams: 2,
        separation: Separation::Region,
        moves: Moves::Cold,
        victim: "greedy",
    };
    let map = made.map();
    let end = map.shape.exported_pages / 4;
    assert_eq!(map.shape.exported_pages, 120);
    for (lpn, stream) in [
        (0, Stream::Hot),
        (end - 1, Stream::Hot),
        (end, Stream::Cold),
    ] {
        for asked in [Stream::Hot, Stream::Cold] {
            assert_eq!(map.host_stream(Lpn(lpn), asked), stream, "{lpn}");
            assert_eq!(map.stream_at_rest(Lpn(lpn), asked), stream, "{lpn}");
        }
        assert_eq!(map.move_stream(0, Lpn(lpn)), stream, "{lpn}");
    }
}
