//! The test vectors of the specification, and random devices compared with a naive implementation.

use super::script::{self, Step};
use super::*;
use crate::rng::Rng;
use crate::units::Lpn;

mod chains;
mod closed_forms;
mod naive;
mod two_regions;

fn words(text: &str) -> Vec<(String, String)> {
    let pairs = text
        .split_whitespace()
        .filter_map(|word| word.split_once('='));
    pairs.map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

fn device(text: &str) -> Placed {
    let setup = Setup::of_words(&words(text)).unwrap();
    Placed::new(&setup).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn result(step: &Step) -> String {
    let parts = step.status.iter().chain(&step.did).chain(&step.output);
    parts.cloned().collect::<Vec<_>>().join("; ")
}

/// Test vectors F1 to F18 (`vectors.txt`), with the state after each operation.
#[test]
fn vectors() {
    let mut found = 0;
    for vector in include_str!("vectors.txt").split("\n\n") {
        let (title, ops) = vector.split_once('\n').unwrap();
        let setup = title.rsplit_once('(').unwrap().1.trim_end_matches(')');
        let mut device = device(setup);
        for line in ops.lines() {
            let (left, state) = line.split_once(" => ").unwrap();
            let (op, expected) = left.split_once(" -> ").unwrap_or((left, ""));
            let step = &script::run(&mut device, op).unwrap()[0];
            assert_eq!(result(step), expected.trim(), "{title}\n{line}");
            assert_eq!(step.state, state, "{title}\n{line}");
            device.check().unwrap();
        }
        found += 1;
    }
    assert_eq!(found, 18);
}

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.below(from.len() as u64) as usize]
}

/// Returns a random device with little spare room, and 200 operations.
fn random_case(seed: u64) -> (String, Vec<String>) {
    let mut rng = Rng::new(seed);
    let handles = 1 + rng.below(4);
    let types: Vec<&str> = (0..handles)
        .map(|_| pick(&mut rng, &["ii", "pi"]))
        .collect();
    let groups = 1 + rng.below(2) * rng.below(2);
    let unit_pages = 1 + rng.below(9);
    let logical = 1 + rng.below(40);
    let low = 1 + rng.below(3);
    let survivors = pick(&mut rng, &["apart", "same", "shared", "next"]);
    let per_group = (logical / unit_pages).div_ceil(groups);
    let more = rng.below(4);
    let units = per_group + 2 * handles + 1 + low + more;
    // Every load finds room as long as collection keeps at most `low + more` units free.
    let early = low + rng.below(more + 1);
    let least_gain = pick(&mut rng, &["0", "12.5", "40", "75"]);
    let victim = pick(&mut rng, &["greedy", "fifo", "cost-benefit"]);
    let scope = pick(
        &mut rng,
        &[
            "global",
            "handle tolerance_percent=none",
            "handle",
            "noisy",
            "noisy quota=optimal",
            "save-sequential",
        ],
    );
    let reuse = pick(&mut rng, &["oldest", "least-worn"]);
    let setup = format!(
        "units={units} unit_pages={unit_pages} logical_pages={logical} handles={} low={low} groups={groups} \
         survivors={survivors} victim={victim} scope={scope} reuse={reuse} closes_at_power_cut=true \
         early={early} least_gain_percent={least_gain}",
        types.join(",")
    );
    let shift = 16 - groups.next_power_of_two().ilog2();
    let id = |rng: &mut Rng| match rng.below(12) {
        0 => "-".to_string(),
        1 => "300".to_string(),
        _ => (rng.below(groups) << shift | rng.below(handles)).to_string(),
    };
    let ops = (0..200).map(|_| {
        let first = rng.below(logical);
        let n = 1 + rng.below((logical - first).min(unit_pages * 2));
        match rng.below(20) {
            0 => format!("T {first} {n}"),
            1 => format!("U {}", id(&mut rng).replace('-', "0")),
            2 if rng.below(4) == 0 => "P".to_string(),
            _ => format!("W {first} {n} {}", id(&mut rng)),
        }
    });
    let ops = ops.collect();
    (setup, ops)
}

/// Compares the numbers of moved pages with those of the naive implementation. They are counted by the class of the
/// page that waited for room and by the owner (kind of unit) of the collected unit.
fn assert_caused(device: &Placed, twin: &naive::Naive) {
    let report = device.report();
    for (class, row) in report.caused.iter().enumerate() {
        for (owner, &pages) in report.owners.iter().zip(row) {
            let of_twin = twin.caused.get(&(class, owner.name.clone()));
            assert_eq!(
                pages,
                of_twin.copied().unwrap_or(0),
                "{class} {}",
                owner.name
            );
        }
    }
}

/// Random devices must have the same state as the naive implementation after each operation, and must keep all
/// invariants.
#[test]
fn random_devices_agree_with_the_naive_twin() {
    let mut collected = 0;
    for seed in crate::seeds(150) {
        let (setup, ops) = random_case(seed);
        let mut device = device(&setup);
        let mut twin = naive::Naive::new(device.setup());
        for op in &ops {
            let step = &script::run(&mut device, op).unwrap()[0];
            let (did, state) = twin.step(op);
            assert_eq!(result(step), did.join("; "), "seed {seed} {setup}\n{op}");
            assert_eq!(step.state, state, "seed {seed} {setup}\n{op}");
            let checked = device.check();
            checked.unwrap_or_else(|e| panic!("seed {seed} {setup}\n{op}: {e}"));
            collected += step.did.iter().filter(|did| *did == "80h").count();
        }
        assert_eq!(twin.programs, device.totals().media);
        assert_caused(&device, &twin);
    }
    assert!(collected > 500, "{collected}");
}

/// Every scheme must keep the invariants and lose no page. Two equal runs must reach the same state.
#[test]
fn schemes_keep_the_invariants() {
    for entry in SCHEMES {
        let name = entry.component.name;
        let setup =
            format!("units=60 unit_pages=8 logical_pages=200 handles=4 low=17 scheme={name}");
        let run = |seed: u64| {
            let mut device = device(&setup);
            let mut rng = Rng::new(seed);
            let mut mapped = std::collections::HashSet::new();
            for i in 0..6_000u32 {
                let lpn = (rng.below(200) * rng.below(200) / 200) as u32;
                if rng.below(40) == 0 {
                    device.trim(Lpn(lpn), 1);
                    mapped.remove(&lpn);
                    continue;
                }
                let id = rng.below(6) as u16;
                let next = u64::from(i) + rng.below(300);
                device.write(Lpn(lpn), 1, Some(id), &[next]).unwrap();
                mapped.insert(lpn);
                if i % 100 == 0 {
                    device.check().unwrap_or_else(|e| panic!("{name}: {e}"));
                }
            }
            let live: u64 = device.report().owners.iter().map(|owner| owner.live).sum();
            assert_eq!(live, mapped.len() as u64, "{name}");
            assert!(device.report().moves > 0, "{name}");
            script::state_text(&device)
        };
        assert_eq!(run(3), run(3), "{name}");
        assert_ne!(run(3), run(4), "{name}");
    }
}

/// Invalid setups are refused. The message contains the wrong word, and describes how to correct it.
#[test]
fn impossible_setups_are_refused() {
    let cases = [
        ("units=4 handles=8", "handles"),
        ("low=0", "low"),
        ("low=8", "low"),
        ("handles=ii,xx", "handles"),
        ("namespace=0,7", "namespace"),
        ("scheme=handel", "did you mean \"handle\"?"),
        ("victim=greedy scope=noisy quota=1,2,3", "quota"),
        ("scope=noisy quota=many", "quota"),
        ("scope=handle tolerance_percent=-3", "tolerance_percent"),
        ("scheme=region ends_percent=50,20", "ends_percent"),
        ("scheme=region survivors=shared", "survivors"),
        ("survivors=scheme", "survivors"),
        ("groups=0", "units"),
        ("groups=4 group_bits=1", "group_bits"),
        ("logical_pages=0", "logical_pages"),
        ("logical_pages=90000", "logical_pages"),
        ("ends_percent=50", "ends_percent"),
        ("unit=3", "no such word"),
        ("scheme=sepbit units=40 low=1", "low"),
    ];
    for (text, expected) in cases {
        let setup = Setup::of_words(&words(text));
        let made = setup.and_then(|setup| Placed::new(&setup).map(|_| ()));
        let error = made.expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// A greedy rule and a scheme of a user have the same results as the shipped rule and scheme.
#[test]
fn a_users_rule_does_what_the_shipped_one_does() {
    #[derive(Clone)]
    struct Mine;
    impl UserVictim for Mine {
        fn choose(&mut self, pool: &VictimPool) -> Option<u32> {
            let units = pool.units.iter().enumerate();
            let best = units.min_by_key(|(_, unit)| (unit.valid, std::cmp::Reverse(unit.age)));
            best.map(|(at, _)| at as u32)
        }

        fn boxed_clone(&self) -> Box<dyn UserVictim> {
            Box::new(self.clone())
        }
    }
    #[derive(Clone)]
    struct ByHandle;
    impl Scheme for ByHandle {
        fn needs(&self) -> Needs {
            Needs::classes(2)
        }

        fn host(&mut self, page: &HostPage) -> Class {
            page.handle
        }
    }
    let text = "units=40 unit_pages=8 logical_pages=200 handles=ii,ii low=2";
    let setup = Setup::of_words(&words(text)).unwrap();
    let mut shipped = Placed::new(&setup).unwrap();
    let mut mine = Placed::with_scheme(&setup, Box::new(ByHandle)).unwrap();
    mine.set_victim(Box::new(Mine));
    let mut rng = Rng::new(5);
    for _ in 0..4_000 {
        let (lpn, id) = (Lpn(rng.below(200) as u32), rng.below(2) as u16);
        shipped.write(lpn, 1, Some(id), &[]).unwrap();
        mine.write(lpn, 1, Some(id), &[]).unwrap();
    }
    assert_eq!(script::state_text(&mine), script::state_text(&shipped));
    assert!(mine.report().moves > 1000);
}

/// Returns the class of each written page, as the scheme of the setup assigns it.
fn classes(setup: &str, writes: &[(u32, u16)]) -> Vec<u16> {
    let mut device = device(setup);
    let class = |&(lpn, id): &(u32, u16)| {
        let before: Vec<u64> = (0..8).map(|c| host_pages(&device, c)).collect();
        device.write(Lpn(lpn), 1, Some(id), &[]).unwrap();
        (0..8)
            .find(|&c| host_pages(&device, c) > before[usize::from(c)])
            .unwrap()
    };
    writes.iter().map(class).collect()
}

fn host_pages(device: &Placed, class: u16) -> u64 {
    let report = device.report();
    let of_class = report
        .owners
        .iter()
        .filter(|o| o.class == Some(class) && o.of_host);
    of_class.map(|owner| owner.counts.host_pages).sum()
}

/// Tests the classes that four schemes assign: `hints`, `region`, `asked` (hot pages of the dispatcher) and `bloom`.
#[test]
fn schemes_give_the_classes_of_their_rules() {
    let sizes = "units=60 unit_pages=4 logical_pages=100 low=8";
    let hints: Vec<(u32, u16)> = (0..7).map(|id| (u32::from(id), id)).collect();
    assert_eq!(
        classes(&format!("{sizes} scheme=hints"), &hints),
        [1, 1, 0, 1, 2, 3, 1]
    );
    let regions = [(9, 0), (10, 0), (49, 0), (50, 0), (99, 0)];
    let found = classes(
        &format!("{sizes} scheme=region ends_percent=10,50"),
        &regions,
    );
    assert_eq!(found, [0, 1, 1, 2, 2]);
    let asked = [(1, 1), (1, 0), (1, 2)];
    assert_eq!(classes(&format!("{sizes} scheme=asked"), &asked), [1, 0, 0]);
    let bloom = format!("{sizes} scheme=bloom filter_bits=4096 filter_items=3");
    // The third different page empties the filter.
    let pages = [(1, 0), (1, 0), (2, 0), (1, 0), (3, 0), (1, 0), (1, 0)];
    assert_eq!(classes(&bloom, &pages), [1, 0, 1, 0, 1, 1, 0]);
}

/// Moved pages go to the next generation. Moved pages of the last generation stay in it.
#[test]
fn survivors_grow_older_by_a_generation() {
    let sizes = "units=29 unit_pages=4 logical_pages=80 low=4";
    let mut device = device(&format!("{sizes} scheme=generations classes=4"));
    let mut rng = Rng::new(4);
    for _ in 0..6_000 {
        let cold = rng.below(8) == 0;
        let lpn = if cold {
            rng.below(60)
        } else {
            60 + rng.below(20)
        };
        device.write(Lpn(lpn as u32), 1, None, &[]).unwrap();
    }
    let report = device.report();
    let count = |class: u16| {
        let owner = report
            .owners
            .iter()
            .find(|o| o.class == Some(class))
            .unwrap();
        assert!(owner.of_host, "survivors of a class are with its pages");
        (owner.counts.moved_in, owner.counts.moved_out)
    };
    assert_eq!(count(0).0, 0);
    assert_eq!((count(1).0, count(2).0), (count(0).1, count(1).1));
    assert_eq!(count(3).0, count(2).1 + count(3).1);
    assert!(count(3).1 > 100, "{:?}", count(3));
}

/// Tests the classes at the limits of each range: by age, and by the time until the next write.
#[test]
fn classes_by_age_and_by_remaining_life() {
    let make = |name: &str, set: &[(&str, &str)]| {
        let set: Vec<_> = set
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        let chosen = Choice::Scheme.choose(name, &set).unwrap();
        let device = schemes::Device {
            logical_pages: 1000,
            unit_pages: 10,
            handles: 1,
            groups: 1,
            units: 120,
            low: 4,
        };
        schemes::AnyScheme::new(&chosen, &device).unwrap()
    };
    let survivor = |from: Class, age: u64, next: u64| MovedPage {
        lpn: Lpn(1),
        from,
        age,
        moves: 0,
        next,
        clock: 5000,
    };
    let set = [("base_percent", "10"), ("factor", "4"), ("classes", "4")];
    let mut age = make("age", &set);
    let ages = [0, 99, 100, 399, 400, NO_AGE].map(|g| age.moved(&survivor(0, g, NEVER)));
    assert_eq!(ages, [1, 1, 2, 2, 3, 3]);

    let mut oracle = make("oracle", &[("classes", "5")]);
    // Number of host pages until the next write. With units of 10 pages, the limits of the classes are 2, 4, 8 and 16
    // units. The last page is never written again.
    let lives = [0, 19, 20, 39, 40, 79, 80, 159, 160, u64::MAX - 5000];
    let found = lives.map(|life| oracle.moved(&survivor(0, 0, 5000 + life)));
    assert_eq!(found, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);

    let mut sepbit = make("sepbit", &[("sample", "1")]);
    let unit = |opened_at| UnitView {
        number: 0,
        group: 0,
        class: Some(0),
        survivors: false,
        opened_at,
        pages: 10,
        live: 0,
        erases: 1,
    };
    sepbit.erased(&unit(900), 3, 1000);
    assert_eq!(sepbit.state(), "l 100; 0 of 1");
    let of = |sepbit: &mut schemes::AnyScheme, from, age| sepbit.moved(&survivor(from, age, NEVER));
    assert_eq!(of(&mut sepbit, 0, 5000), 2);
    let ages = [0, 399, 400, 1599, 1600, NO_AGE].map(|g| of(&mut sepbit, 1, g));
    assert_eq!(ages, [3, 3, 4, 4, 5, 5]);
    let host = |age| HostPage {
        lpn: Lpn(1),
        handle: 0,
        id: None,
        clock: 5000,
        old_class: None,
        age,
        next: NEVER,
        request_pages: 1,
    };
    let written = [0, 99, 100, NO_AGE].map(|age| sepbit.host(&host(age)));
    assert_eq!(written, [0, 0, 1, 1]);
}

/// If classes are not handles, an update closes nothing, and the status reports whole units.
#[test]
fn commands_of_handles_need_the_scheme_of_handles() {
    let mut device = device("handles=2 units=12 low=2 scheme=generations classes=2");
    let steps = script::run(&mut device, "W 0 2 0; U 0 1; S").unwrap();
    assert!(steps[1].did.is_empty() && steps[1].status.is_none());
    assert!(steps[1].state.contains("h0:u0[0 1 . .]*"));
    assert_eq!(steps[2].output.as_deref(), Some("ruamw 0:4 1:4"));
}
