//! Functions shared by the tests of policies: tables in the notation of the specification, and comparisons with naive
//! implementations on random access strings.

use flashtwin::buffer::trace::Step;
use flashtwin::buffer::untimed::UntimedBuffer;
use flashtwin::buffer::Setup;
use flashtwin::stepping::{trace_policy, Traceable};
use flashtwin::{Lpn, Rng, Time};

/// The policy that a table tests, and the sizes of the device.
#[derive(Clone, Copy)]
pub struct On<'a> {
    pub policy: &'a str,
    pub capacity: u32,
    pub set: &'a [(&'a str, &'a str)],
    pub chips: u32,
    pub stride_pages: u32,
    /// Number of pages of an erase block (N).
    pub pages_per_block: u32,
}

/// Returns the settings for `policy` in a buffer of `capacity` pages, with one chip and four pages per block.
pub fn on(policy: &str, capacity: u32) -> On<'_> {
    On {
        policy,
        capacity,
        set: &[],
        chips: 1,
        stride_pages: 1,
        pages_per_block: 4,
    }
}

impl On<'_> {
    pub fn steps(&self, accesses: &str) -> Vec<Step> {
        let device = Traceable {
            policy: self.policy,
            capacity: self.capacity,
            set: self.set,
            chips: self.chips,
            stride_pages: self.stride_pages,
            pages_per_block: self.pages_per_block,
        };
        let device = device
            .device()
            .unwrap_or_else(|e| panic!("{}: {e}", self.policy));
        trace_policy(&device, accesses).unwrap()
    }

    /// Applies the accesses of the first column of a table to the policy. For each row, compares the result of its last
    /// access with the second column, and the state after it with the third column. A column with `-` is not compared.
    pub fn check(&self, table: &str) {
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(|line| line.split('|').map(str::trim).collect())
            .collect();
        let accesses: Vec<&str> = rows.iter().map(|row| row[0]).collect();
        let steps = self.steps(&accesses.join(" "));
        let mut done = 0;
        for row in rows {
            done += row[0].split_whitespace().count();
            let step = &steps[done - 1];
            for (wanted, found) in row[1..].iter().zip([step.result(), step.state.clone()]) {
                assert!(
                    *wanted == "-" || *wanted == found,
                    "{}, {}: wanted {wanted}, found {found}",
                    self.policy,
                    row[0]
                );
            }
        }
    }
}

/// Chips and time, as a naive policy sees them.
#[derive(Clone, Debug)]
pub struct World {
    pub in_gc: Vec<bool>,
    /// For each chip, its queue complete time (CQCT) in us.
    pub drain_us: Vec<u64>,
    pub stride_pages: u32,
    pub now_ms: u64,
}

impl World {
    pub fn chip(&self, lpn: u32) -> usize {
        (lpn / self.stride_pages) as usize % self.in_gc.len()
    }
    /// Returns whether the page is skipped because its chip is in GC.
    pub fn skipped(&self, lpn: u32) -> bool {
        self.in_gc[self.chip(lpn)]
    }
}

/// A page access as a naive policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub lpn: u32,
    pub write: bool,
    pub request: u64,
}

/// Result of a page access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Did {
    pub hit: bool,
    /// Each victim, and whether it was dirty, in the order of eviction.
    pub victims: Vec<(u32, bool)>,
    pub padding: Vec<u32>,
    pub merged: Vec<u32>,
    /// Number of list entries that the published scan examines; `None` if the test does not compare it.
    pub inspected: Option<u64>,
}

impl Did {
    pub fn hit() -> Did {
        Did {
            hit: true,
            ..Did::default()
        }
    }
}

/// A naive implementation of a policy, as its paper describes it, with lists and scans.
pub trait Naive {
    fn access(&mut self, world: &World, op: Op) -> Did;
    fn trim(&mut self, world: &World, lpn: u32);
    /// Called when the chip is idle. Returns the pages to write back, in order.
    fn idle(&mut self, _world: &World, _chip: usize) -> Vec<u32> {
        Vec::new()
    }
}

/// A random buffer, and the device around it.
#[derive(Clone, Debug)]
pub struct Case {
    pub capacity: u32,
    pub chips: u32,
    pub stride_pages: u32,
    pub pages_per_block: u32,
    /// Parameters of the policy, as drawn by `set` of [`compare`].
    pub set: Vec<(String, String)>,
    pub setup: Setup,
}

/// Number of random strings in a comparison; `FLASHTWIN_SEEDS` multiplies it.
const STRINGS: u64 = 10_000;
/// Number of strings for each random buffer.
const STRINGS_A_BUFFER: u64 = 20;

/// Compares `policy` with `naive` on random strings of reads, writes, trims and changes of chips. Hits, victims and
/// write-backs must be equal. `set` draws the parameters of the policy; its arguments are a random generator and the
/// capacity of the buffer.
pub fn compare<N: Naive>(
    policy: &str,
    set: impl Fn(&mut Rng, u32) -> Vec<(String, String)>,
    naive: impl Fn(&Case) -> N,
) {
    for buffer in flashtwin::seeds(STRINGS / STRINGS_A_BUFFER) {
        let mut rng = Rng::new(buffer * 7919 + 1);
        let mut below = |n: u64| rng.below(n) as u32;
        let capacity = 1 + below(if buffer % 10 == 0 { 40 } else { 12 });
        let (chips, stride_pages) = (1 + below(5), 1 + below(3));
        let pages_per_block = 2 + below(7);
        let set = set(&mut rng, capacity);
        let pairs: Vec<(&str, &str)> = set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let device = Traceable {
            policy,
            capacity,
            set: &pairs,
            chips,
            stride_pages,
            pages_per_block,
        };
        let device = device
            .device()
            .unwrap_or_else(|e| panic!("{policy} {set:?}: {e}"));
        let buffer = device.buffer.as_ref().unwrap();
        let setup = Setup::of(&device);
        let case = Case {
            capacity,
            chips,
            stride_pages,
            pages_per_block,
            set: set.clone(),
            setup: setup.clone(),
        };
        for _ in 0..STRINGS_A_BUFFER {
            let mut fast = UntimedBuffer::new(&buffer.policy, &setup, buffer.read_cache_pages);
            let mut slow = naive(&case);
            run(&mut rng, &case, &mut fast, &mut slow, policy);
        }
    }
}

fn run<N: Naive>(rng: &mut Rng, case: &Case, fast: &mut UntimedBuffer, slow: &mut N, policy: &str) {
    let chips = case.chips as usize;
    let mut world = World {
        in_gc: vec![false; chips],
        drain_us: vec![0; chips],
        stride_pages: case.stride_pages,
        now_ms: 0,
    };
    let pages = u64::from(case.capacity) * 2 + 4;
    let writes = 1 + rng.below(9);
    let mut history = Vec::new();
    for request in 0..80 {
        let context = |history: &[String]| format!("{policy} {case:?}: {}", history.join(" "));
        let chip = rng.below(chips as u64) as usize;
        match rng.below(20) {
            0 => {
                world.in_gc[chip] ^= true;
                let sign = if world.in_gc[chip] { '+' } else { '-' };
                history.push(format!("gc{sign}{chip}"));
                fast.set_chip(chip as u32, |c| c.in_gc = world.in_gc[chip]);
            }
            1 => {
                world.drain_us[chip] = rng.below(4) * 100;
                history.push(format!("drain{chip}={}", world.drain_us[chip]));
                let drain = Time::from_us(world.drain_us[chip]);
                fast.set_chip(chip as u32, |c| c.drain = drain);
            }
            2 => {
                history.push(format!("idle{chip}"));
                let written: Vec<u32> = fast.idle(chip as u32).iter().map(|lpn| lpn.0).collect();
                assert_eq!(written, slow.idle(&world, chip), "{}", context(&history));
            }
            3 => {
                let lpn = rng.below(pages) as u32;
                history.push(format!("trim{lpn}"));
                fast.trim(Lpn(lpn));
                slow.trim(&world, lpn);
            }
            4 => {
                let ms = rng.below(600);
                world.now_ms += ms;
                history.push(format!("t+{ms}"));
                fast.wait(Time::from_ms(ms));
            }
            _ => {
                let write = rng.below(10) < writes;
                let first = rng.below(pages) as u32;
                let request_pages = if rng.below(4) == 0 {
                    1 + rng.below(5) as u32
                } else {
                    1
                };
                let letter = if write { 'W' } else { 'R' };
                history.push(format!("{letter}{first}x{request_pages}"));
                for lpn in first..first + request_pages {
                    let op = Op {
                        lpn,
                        write,
                        request,
                    };
                    let wanted = slow.access(&world, op);
                    let outcome = fast.access(Lpn(lpn), write, request, request_pages);
                    let pages = |list: &[Lpn]| list.iter().map(|lpn| lpn.0).collect::<Vec<_>>();
                    let found = Did {
                        hit: outcome.hit,
                        victims: outcome.victims.iter().map(|v| (v.0 .0, v.1)).collect(),
                        padding: pages(&outcome.eviction.padding),
                        merged: pages(&outcome.eviction.merged),
                        inspected: wanted.inspected.map(|_| outcome.eviction.inspected),
                    };
                    assert_eq!(wanted, found, "page {lpn} of {}", context(&history));
                }
            }
        }
    }
}

/// Returns a random string of reads and writes, for tests that compare two policies.
pub fn random_accesses(rng: &mut Rng, length: usize, pages: u64) -> String {
    let tokens: Vec<String> = (0..length)
        .map(|_| {
            let letter = if rng.below(2) == 0 { 'R' } else { 'W' };
            format!("{letter}{}", rng.below(pages))
        })
        .collect();
    tokens.join(" ")
}
