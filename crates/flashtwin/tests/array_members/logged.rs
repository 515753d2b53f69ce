//! An array with a log behaves like an array without a log, whatever happens to its members.

use flashtwin::spec::builtin_array;
use flashtwin::{seed_count, seeds, Array, ArraySpec, Op, Request, Rng, Time};

/// Returns an array of small members whose front ends take no time.
fn bare(level: &str) -> Array {
    let keys = [
        ("array.level", level),
        ("array.members", "ecr*4"),
        ("array.chunk", "8 KiB"),
        ("buffer", "none"),
        ("member.buffer", "none"),
        ("member.gc.low_percent", "10"),
        ("member.geometry.chips", "1"),
        ("member.geometry.planes_per_chip", "1"),
        ("member.geometry.blocks_per_plane", "16"),
        ("member.geometry.pages_per_block", "16"),
        ("member.geometry.reserve_percent", "30"),
        ("member.link.bus_ns_per_sector", "0"),
    ];
    let text = builtin_array("raid5-array").unwrap();
    let spec = ArraySpec::with_overrides(text, "raid5-array", &keys).unwrap();
    let mut array = Array::new(&spec);
    array.fill_sequential();
    array
}

#[test]
fn writes_that_a_failing_member_holds_end_at_the_same_instants_with_a_log() {
    for (level, writes, (member, at)) in [
        ("raid5", [(11, 4), (2, 4)], (0, Time::from_us(30))),
        ("raid6", [(10, 1), (12, 2)], (3, Time::from_us(100))),
    ] {
        let ends = |log: bool| {
            let mut array = bare(level);
            array.set_log(log);
            for ((first, pages), tag) in writes.into_iter().zip(0..) {
                let request = super::request(Op::Write, first, pages);
                array.submit(Time::ZERO, &request, tag).unwrap();
            }
            array.advance(at);
            array.fail_member(member).unwrap();
            super::until_idle(&mut array);
            let done = array.completions().drain(..);
            done.map(|c| (c.tag, c.done)).collect::<Vec<_>>()
        };
        assert_eq!(ends(false), ends(true), "{level}");
    }
}

/// Returns an array drawn at random.
fn draw(rng: &mut Rng) -> Array {
    let mut pick = |from: &[&'static str]| from[rng.below(from.len() as u64) as usize];
    let level = pick(&[
        "raid5", "raid5", "raid5", "raid6", "raid10", "raid1", "swan",
    ]);
    let count = match level {
        "raid5" => pick(&["3", "4", "6"]),
        "raid1" => pick(&["2", "3"]),
        "swan" => "4",
        _ => pick(&["4", "6"]),
    };
    let is_modern = pick(&["msr", "msr", "modern"]) == "modern";
    let members = format!("{}*{count}", if is_modern { "nvme-tlc" } else { "ecr" });
    let mut set = vec![
        ("array.level", level),
        ("array.members", &members),
        ("array.chunk", pick(&["4 KiB", "8 KiB", "16 KiB", "64 KiB"])),
        ("array.rebuild_mib_per_s", pick(&["0", "20"])),
        ("buffer", "none"),
        ("member.gc.low_percent", "10"),
        ("member.geometry.chips", "2"),
        ("member.geometry.planes_per_chip", "1"),
        ("member.geometry.pages_per_block", "16"),
        ("member.geometry.reserve_percent", "40"),
    ];
    match is_modern {
        true => set.extend([
            ("member.geometry.channels", "1"),
            ("member.geometry.blocks_per_plane", "24"),
            ("member.buffer.capacity", "64 KiB"),
        ]),
        false => {
            set.push(("member.geometry.blocks_per_plane", "16"));
            match pick(&["bare", "bare", "link", "buffer"]) {
                "bare" => set.extend([
                    ("member.buffer", "none"),
                    ("member.link.bus_ns_per_sector", "0"),
                ]),
                "link" => set.push(("member.buffer", "none")),
                _ => set.extend([
                    ("member.buffer.policy", "lru"),
                    ("member.buffer.capacity", "32 KiB"),
                ]),
            }
        }
    }
    if level == "swan" {
        set.extend([
            ("array.groups", "2"),
            ("array.segment", "64 KiB"),
            ("array.spare_percent", "36"),
        ]);
    } else {
        match pick(&["direct", "direct", "hedged", "around-gc"]) {
            "hedged" => set.extend([("array.reads", "hedged"), ("array.hedge_after_us", "200")]),
            reads => set.push(("array.reads", reads)),
        }
        let schemes = ["local", "local", "turns", "inclusive"];
        set.push(("array.coordination", pick(&schemes)));
    }
    if pick(&["no", "no", "yes"]) == "yes" {
        set.retain(|&(key, _)| key != "buffer");
        set.extend([("buffer.policy", "lru"), ("buffer.capacity", "128 KiB")]);
    }
    let state = pick(&["empty", "filled", "steady"]);
    let text = builtin_array("raid5-array").unwrap();
    let spec = ArraySpec::with_overrides(text, "raid5-array", &set);
    let mut array = Array::new(&spec.unwrap_or_else(|e| panic!("{e}: {set:?}")));
    match state {
        "empty" => {}
        "filled" => array.fill_sequential(),
        _ => array.fill_steady(1),
    }
    array
}

/// Applies a random event, or none, to an array, and returns the outcome as text. Arrays in equal states have equal
/// outcomes if the states of `rng` are equal, too.
fn intervene(array: &mut Array, rng: &mut Rng) -> String {
    let members = array.spec().members.len() as u64;
    let (what, member) = (rng.below(60), rng.below(members) as usize);
    let outcome = match what {
        0..3 => array.fail_member(member).map_err(|e| e.to_string()),
        3..6 => array.replace_member(member).map_err(|e| e.to_string()),
        6 => (array.slow_member(member, 1500)).map_err(|e| e.to_string()),
        7 => (array.collect(Some(member), None).map(drop)).map_err(|e| e.to_string()),
        8 => (array.set_policy("fifo", &[])).map_err(|e| e.to_string()),
        9 => return format!("{:?}", array.power_cut()),
        10 if rng.below(20) == 0 => (array.fail_needed_member(member)).map_err(|e| e.to_string()),
        _ => Ok(()),
    };
    format!("{what} {outcome:?}")
}

fn reports(array: &Array) -> String {
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        array.power_cut(),
        array.raid_stats(),
        array.flash_report(),
        array.member_reports(),
        array.metrics().op(Op::Write),
        array.phases(),
        array.rebuilds(),
    )
}

/// Compares an array whose log is on, always or at times, with an array whose log is never on. Returns the number of
/// failures that occurred.
fn compare(seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let array = draw(&mut rng);
    let mut arrays = [array.clone(), array];
    let pages = arrays[0].exported_bytes() / 4096;
    let pace = [30, 300, 2000][rng.below(3) as usize];
    let (mut now, mut failures) = (arrays[0].now(), 0);
    arrays[1].set_log(true);
    let switches = rng.below(2) == 0;
    for tag in 0..240 {
        if switches && rng.below(6) == 0 {
            arrays[1].set_log(rng.below(2) == 0);
        }
        now = now.max(arrays[0].now()) + Time::from_us(rng.below(pace));
        let span = 1 + rng.below(12).saturating_sub(5).min(pages - 1);
        let op = match rng.below(20) {
            0 => Op::Flush,
            1 => Op::Trim,
            2..7 => Op::Read,
            _ => Op::Write,
        };
        let within = [pages, pages.min(40 + span)][rng.below(2) as usize];
        let first = rng.below(within - span + 1);
        let request = match op {
            Op::Flush => super::request(op, 0, 0),
            _ => Request {
                fua: rng.below(8) == 0,
                ..super::request(op, first, span)
            },
        };
        let chance = rng.clone();
        let texts = arrays.each_mut().map(|array| {
            array.advance(now);
            let mut chance = chance.clone();
            let outcome = intervene(array, &mut chance);
            array.submit(now, &request, tag).unwrap();
            drop(array.take_log());
            let report = match tag % 64 {
                0 => reports(array),
                _ => String::new(),
            };
            let done = std::mem::take(array.completions());
            (outcome, format!("{done:?}"), report)
        });
        rng.next_u64();
        failures += u64::from(["0 Ok(())", "1 Ok(())", "2 Ok(())"].contains(&&*texts[0].0));
        assert!(
            texts[0] == texts[1],
            "seed {seed}, request {tag}: {texts:#?}"
        );
    }
    let ends = arrays.each_mut().map(|array| {
        super::until_idle(array);
        let mut state = Vec::new();
        array.save_state(&mut state).unwrap();
        (format!("{:?}", array.completions()), reports(array), state)
    });
    assert!(ends[0] == ends[1], "seed {seed}, at the end");
    failures
}

#[test]
fn a_log_changes_nothing_in_an_array_whose_members_fail() {
    let failures: u64 = seeds(60).map(compare).sum();
    assert!(failures >= seed_count(60), "{failures} failures");
}
