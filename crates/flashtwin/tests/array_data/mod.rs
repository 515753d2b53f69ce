//! Tests that arrays keep data, with random reads, writes, trims, failures and rebuilds, and with real contents.
//!
//! A *schedule* is a random array and a random sequence of operations and failures, both drawn from a seed. The
//! *shadow* follows the log of the array and computes the contents of all pages. When a member fails, its contents
//! become random.

mod field;
mod shadow;

use flashtwin::spec::Rotation;
use flashtwin::{seed_count, seeds, Array, ArraySpec, Op, Request, Rng};
use shadow::{Shadow, Shape};

const LEVELS: [&str; 6] = ["raid0", "raid1", "raid10", "raid5", "raid6", "swan"];

/// Draws a random array. Returns it with its layout.
fn draw(level: &str, rng: &mut Rng) -> (Array, Shape) {
    let mut pick = |from: &[&'static str]| from[rng.below(from.len() as u64) as usize];
    let count: usize = match level {
        "raid0" => pick(&["1", "2", "3"]),
        "raid1" => pick(&["2", "3"]),
        "raid10" => pick(&["2", "4", "6"]),
        "raid5" => pick(&["3", "4", "5"]),
        "swan" => pick(&["4", "6"]),
        _ => pick(&["4", "5", "6", "7"]),
    }
    .parse()
    .unwrap();
    let modern = pick(&["no", "no", "yes"]) == "yes";
    let members = match modern {
        true => format!("nvme-tlc*{count}"),
        false => format!("harmonia*{count}"),
    };
    let mut set = vec![
        ("array.level", level),
        ("array.members", &members),
        ("array.chunk", pick(&["4 KiB", "8 KiB", "16 KiB", "20 KiB"])),
        ("array.rebuild_depth", pick(&["1", "3", "8"])),
        ("array.rebuild_mib_per_s", pick(&["0", "0", "20"])),
        ("member.geometry.chips", "2"),
        ("member.geometry.planes_per_chip", "1"),
        ("member.gc.low_percent", "10"),
    ];
    set.extend(match modern {
        true => [
            ("member.geometry.channels", "1"),
            ("member.geometry.blocks_per_plane", "12"),
            ("member.geometry.pages_per_block", "16"),
            ("member.geometry.reserve_percent", "50"),
        ],
        false => [
            ("member.geometry.blocks_per_plane", "16"),
            ("member.geometry.pages_per_block", "8"),
            ("member.geometry.reserve_percent", "25"),
            ("member.nand.parallel_units", "1"),
        ],
    });
    if !modern && pick(&["no", "yes"]) == "yes" {
        // Pages are sent directly to the members' flash, not through their front ends.
        set.push(("member.link.bus_ns_per_sector", "0"));
    }
    let rotations = Rotation::ALL.map(Rotation::name);
    set.push(("array.rotation", pick(&rotations)));
    if pick(&["no", "no", "yes"]) == "yes" {
        let policies = ["lru", "gcar-lru", "bplru", "gcar-bplru"];
        set.push(("buffer.policy", pick(&policies)));
        set.push(("buffer.capacity", pick(&["64 KiB", "256 KiB"])));
    }
    if modern {
        set.push(("member.buffer.capacity", "64 KiB"));
    } else if pick(&["no", "no", "yes"]) == "yes" {
        set.push(("member.buffer.policy", "lru"));
        set.push(("member.buffer.capacity", pick(&["16 KiB", "128 KiB"])));
        set.push(("member.buffer.evict", pick(&["blocking", "background"])));
    }
    let mut groups = 0;
    if level == "swan" {
        let count = match count {
            4 => "2",
            _ => pick(&["2", "3"]),
        };
        groups = count.parse().unwrap();
        set.push(("array.groups", count));
        let (segment, spare) = match pick(&["small", "large"]) {
            "small" => (pick(&["16 KiB", "24 KiB"]), pick(&["15", "30"])),
            _ => ("64 KiB", "36"),
        };
        set.extend([("array.segment", segment), ("array.spare_percent", spare)]);
    }
    // With a short delay, reads are hedged although they would soon complete. With a long delay, no read is hedged.
    if level != "raid0" && level != "swan" && pick(&["no", "yes"]) == "yes" {
        set.push(("array.reads", "hedged"));
        match pick(&["0", "40", "200", "1000"]) {
            "0" => set.push(("array.hedge_percent", "60")),
            after => set.push(("array.hedge_after_us", after)),
        }
    }
    let text = flashtwin::spec::builtin_array("harmonia-array").unwrap();
    let spec = ArraySpec::with_overrides(text, "drawn", &set);
    let spec = spec.unwrap_or_else(|e| panic!("{e}"));
    let (data, parity, copies) = match level {
        "raid0" => (count, 0, 1),
        "raid1" => (1, 0, count),
        "raid10" => (count / 2, 0, 2),
        "raid5" => (count - 1, 1, 1),
        // The shadow does not know the layout of groups. It only checks that parity is the sum of the data.
        "swan" => (0, 0, 0),
        _ => (count - 2, 2, 1),
    };
    let shape = Shape {
        members: count,
        data,
        parity,
        copies,
        chunk: spec.chunk_pages,
        member_pages: spec.member_pages() as u32,
        groups,
    };
    let mut array = Array::new(&spec);
    if pick(&["empty", "filled"]) == "filled" {
        array.fill_sequential();
    }
    (array, shape)
}

/// A running schedule.
struct Run {
    array: Array,
    shadow: Shadow,
    rng: Rng,
    members: usize,
    failed: Vec<usize>,
    sent: u64,
    done: u64,
    failures: u64,
    rebuilt: u64,
}

impl Run {
    fn request(&mut self, op: Op, first: u64, pages: u64, fua: bool) -> Result<(), String> {
        let request = Request {
            arrival: self.array.now(),
            offset: first * 4096,
            bytes: pages * 4096,
            op,
            fua,
            ..Request::default()
        };
        self.array
            .submit(self.array.now(), &request, self.sent)
            .map_err(|e| e.to_string())?;
        self.sent += 1;
        self.follow()
    }

    fn follow(&mut self) -> Result<(), String> {
        self.done += self.array.completions().drain(..).count() as u64;
        let log = self.array.take_log();
        self.shadow.follow(log)
    }

    fn pages(&self) -> u64 {
        self.array.exported_bytes() / 4096
    }

    /// Submits a random request. The addresses of requests are often close together, so that requests concern the same
    /// pages.
    fn random_request(&mut self) -> Result<(), String> {
        let pages = self.pages();
        let span = 1 + self.rng.below(12).min(pages - 1);
        let within = match self.rng.below(3) {
            0 => pages,
            _ => pages.min(span + 20),
        };
        let first = self.rng.below(within - span + 1);
        let (op, span) = match self.rng.below(12) {
            0 => (Op::Trim, (span * 4).min(pages - first)),
            1..=4 => (Op::Read, span),
            5 => (Op::Flush, 0),
            _ => (Op::Write, span),
        };
        let fua = self.rng.below(8) == 0;
        match op {
            Op::Flush => self.request(op, 0, 0, false),
            _ => self.request(op, first, span, fua),
        }
    }

    fn fail_some(&mut self) -> Result<(), String> {
        let member = self.rng.below(self.members as u64) as usize;
        if self.array.fail_member(member).is_ok() {
            self.failed.push(member);
            self.failures += 1;
        }
        self.follow()
    }

    fn replace_some(&mut self) -> Result<(), String> {
        if self.failed.is_empty() {
            return Ok(());
        }
        let at = self.rng.below(self.failed.len() as u64) as usize;
        let member = self.failed.swap_remove(at);
        self.array
            .replace_member(member)
            .map_err(|e| e.to_string())?;
        self.follow()
    }

    fn rest(&mut self) -> Result<(), String> {
        while self.array.step() {}
        self.follow()?;
        if self.array.rebuild_progress().is_some() {
            return Err("a rebuild never ends".into());
        }
        if self.done != self.sent {
            return Err(format!("{} requests, {} completions", self.sent, self.done));
        }
        self.shadow.finished()
    }

    fn read_all(&mut self) -> Result<(), String> {
        self.shadow.at_rest = true;
        let pages = self.pages();
        let mut first = 0;
        while first < pages {
            let span = 48.min(pages - first);
            self.request(Op::Read, first, span, false)?;
            self.rest()?;
            first += span;
        }
        self.shadow.at_rest = false;
        Ok(())
    }

    /// Replaces all failed members and waits until they are rebuilt.
    fn mend(&mut self) -> Result<(), String> {
        while !self.failed.is_empty() {
            self.replace_some()?;
            self.rebuilt += 1;
        }
        self.rest()
    }

    fn run(&mut self) -> Result<(), String> {
        // An array of groups collects only after its spare room has been written. Therefore it gets more requests.
        let more = if self.shadow.has_groups() { 240 } else { 0 };
        let requests = 60 + self.rng.below(120) + more;
        for _ in 0..requests {
            self.random_request()?;
            // Some requests are submitted at the same instant, others after the array has executed some steps.
            for _ in 0..self.rng.below(4) * self.rng.below(12) {
                self.array.step();
            }
            match self.rng.below(40) {
                0 => self.fail_some()?,
                1 | 2 => self.replace_some()?,
                _ => {}
            }
            self.follow()?;
        }
        self.rest()?;
        self.read_all()?;
        // In each round, other members fail.
        for _ in 0..2 {
            self.mend()?;
            for _ in 0..3 {
                self.fail_some()?;
            }
            self.read_all()?;
        }
        Ok(())
    }
}

/// Runs a schedule. Returns the numbers of:
///
/// - reads checked,
/// - failures,
/// - members rebuilt,
/// - hedged reads (an array of groups has none; the number is that of pages moved),
/// - hedged reads completed by the second read (in an array of groups, the number is that of segments trimmed),
/// - pages sent on the fast path, for which plain arrays keep no record.
fn schedule(level: &str, seed: u64) -> Result<[u64; 6], String> {
    let mut rng = Rng::new(seed);
    let (mut array, shape) = draw(level, &mut rng);
    array.set_log(true);
    array.log_plain_path();
    let pages = array.exported_bytes() / 4096;
    let shadow = Shadow::new(shape, pages, seed);
    let mut run = Run {
        array,
        shadow,
        rng,
        members: shape.members,
        failed: Vec::new(),
        sent: 0,
        done: 0,
        failures: 0,
        rebuilt: 0,
    };
    run.run()?;
    let stats = run.array.raid_stats();
    let hedged = match level {
        "swan" => [stats.pages_moved, stats.segments_trimmed],
        _ => [stats.pages_hedged, stats.hedges_won],
    };
    Ok([
        run.shadow.reads,
        run.failures,
        run.rebuilt,
        hedged[0],
        hedged[1],
        run.shadow.pages_of_pairs,
    ])
}

fn schedules(level: usize, count: u64) {
    let mut sums = [0; 6];
    let seeds = seeds(count);
    let count = seed_count(count);
    for seed in seeds {
        let name = LEVELS[level];
        match schedule(name, seed) {
            Ok(counts) => sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n),
            Err(message) => panic!("{name}, seed {seed}: {message}"),
        }
    }
    let [reads, failures, rebuilt, hedged, won, pages_of_pairs] = sums;
    if LEVELS[level] == "raid5" {
        assert!(pages_of_pairs > 4 * count, "{sums:?}");
    }
    assert!(reads > count * 100, "{reads} reads checked");
    if LEVELS[level] == "swan" {
        assert!(hedged > 40 * count && won > 10 * count, "{sums:?}");
    } else if level > 0 {
        assert!(failures > 2 * count && rebuilt > count, "{sums:?}");
        assert!(hedged > 10 * count && won > count, "{sums:?}");
        assert!(hedged > won + count, "{sums:?}");
    }
}

#[test]
fn striping_keeps_data() {
    schedules(0, 100);
}

#[test]
fn mirrors_keep_data() {
    schedules(1, 150);
}

#[test]
fn striped_mirrors_keep_data() {
    schedules(2, 150);
}

#[test]
fn single_parity_keeps_data() {
    schedules(3, 300);
}

#[test]
fn double_parity_keeps_data() {
    schedules(4, 300);
}

#[test]
fn groups_keep_data() {
    schedules(5, 250);
}
