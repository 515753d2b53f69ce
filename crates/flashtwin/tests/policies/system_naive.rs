//! Naive implementations of ECR, Co-Active and CDA-GC as published, with lists, time stamps and scans.

use super::harness::{compare, on, random_accesses, Case, Did, Naive, On, Op, World};
use flashtwin::Rng;
use std::collections::{HashMap, HashSet};

/// A cached page.
#[derive(Clone, Copy, Debug)]
struct Page {
    lpn: u32,
    dirty: bool,
    hot: bool,
}

/// The part of a policy that chooses the pages to evict or to write back. The pages are sorted by last access, the
/// least recent first.
trait Rule {
    /// Called after a page was read or written. The page is the last one of `pages`.
    fn accessed(&mut self, _world: &World, _pages: &mut [Page], _write: bool) {}
    /// Called before the page at index `i` is removed, or moved by another access.
    fn leaves(&mut self, _pages: &[Page], _i: usize) {}
    /// Returns the index of the victim, and the number of entries examined. With `gcar`, pages on chips in GC are
    /// skipped; if all pages are on such chips, there is no victim.
    fn victim(&mut self, world: &World, pages: &[Page], gcar: bool) -> (Option<usize>, u64);
    /// Returns the indices of the pages to write back while the chip is idle.
    fn idle(&mut self, _world: &World, _pages: &[Page], _chip: usize) -> Vec<usize> {
        Vec::new()
    }
}

struct Buffer<R> {
    capacity: usize,
    gcar: bool,
    pages: Vec<Page>,
    rule: R,
}

impl<R: Rule> Naive for Buffer<R> {
    fn access(&mut self, world: &World, op: Op) -> Did {
        let mut did = Did {
            inspected: Some(0),
            ..Did::default()
        };
        let mut page = Page {
            lpn: op.lpn,
            dirty: false,
            hot: false,
        };
        if let Some(i) = self.pages.iter().position(|p| p.lpn == op.lpn) {
            did.hit = true;
            self.rule.leaves(&self.pages, i);
            page = self.pages.remove(i);
        } else if self.pages.len() == self.capacity {
            let gcar = self.gcar && world.in_gc.contains(&true);
            let (mut found, mut looked) = (None, 0);
            if gcar {
                (found, looked) = self.rule.victim(world, &self.pages, true);
            }
            if found.is_none() {
                let (i, more) = self.rule.victim(world, &self.pages, false);
                (found, looked) = (i, looked + more);
            }
            let i = found.unwrap();
            self.rule.leaves(&self.pages, i);
            let victim = self.pages.remove(i);
            did.victims.push((victim.lpn, victim.dirty));
            did.inspected = Some(looked);
        }
        page.dirty |= op.write;
        self.pages.push(page);
        self.rule.accessed(world, &mut self.pages, op.write);
        did
    }

    fn trim(&mut self, _world: &World, lpn: u32) {
        if let Some(i) = self.pages.iter().position(|p| p.lpn == lpn) {
            self.rule.leaves(&self.pages, i);
            self.pages.remove(i);
        }
    }

    fn idle(&mut self, world: &World, chip: usize) -> Vec<u32> {
        let mut written = Vec::new();
        for i in self.rule.idle(world, &self.pages, chip) {
            self.pages[i].dirty = false;
            written.push(self.pages[i].lpn);
        }
        written
    }
}

/// Returns the index of the first page that qualifies (with `gcar`, outside chips in GC), and the number of qualifying
/// pages examined.
fn first(
    world: &World,
    pages: &[Page],
    gcar: bool,
    qualifies: impl Fn(&Page) -> bool,
) -> (Option<usize>, u64) {
    let mut looked = 0;
    for (i, page) in pages.iter().enumerate().filter(|(_, page)| qualifies(page)) {
        looked += 1;
        if !(gcar && world.skipped(page.lpn)) {
            return (Some(i), looked);
        }
    }
    (None, looked)
}

struct Ecr {
    epsilon: bool,
    tie: String,
    /// Chip of the last dirty victim.
    last_chip: Option<usize>,
}

impl Rule for Ecr {
    fn victim(&mut self, world: &World, pages: &[Page], gcar: bool) -> (Option<usize>, u64) {
        let mut looked = 0;
        if !self.epsilon {
            let (clean, entries) = first(world, pages, gcar, |page| !page.dirty);
            if clean.is_some() {
                return (clean, entries);
            }
            looked = entries;
        }
        let chips = world.in_gc.len();
        // For each chip: its queue complete time, its rank among chips with the same time, the index of its least
        // recent page, and its number.
        let mut candidates = Vec::new();
        for chip in (0..chips).filter(|&chip| !(gcar && world.in_gc[chip])) {
            let listed = |p: &Page| world.chip(p.lpn) == chip && (self.epsilon || p.dirty);
            if let Some(i) = pages.iter().position(listed) {
                let place = match (self.tie.as_str(), self.last_chip) {
                    ("oldest", _) => i,
                    ("round-robin", Some(last)) => (chip + chips - last - 1) % chips,
                    _ => chip,
                };
                candidates.push((world.drain_us[chip], place, i, chip));
            }
        }
        let Some(&(_, _, i, chip)) = candidates.iter().min() else {
            return (None, looked);
        };
        self.last_chip = Some(chip);
        (Some(i), looked + 1)
    }
}

fn ecr(policy: &str, epsilon: bool) {
    compare(
        policy,
        |rng, _| {
            let tie = ["oldest", "lowest", "round-robin"][rng.below(3) as usize];
            vec![("tie".into(), format!("\"{tie}\""))]
        },
        |case| Buffer {
            capacity: case.capacity as usize,
            gcar: policy.starts_with("gcar"),
            pages: Vec::new(),
            rule: Ecr {
                epsilon,
                tie: case.set[0].1.trim_matches('"').to_owned(),
                last_chip: None,
            },
        },
    );
}

#[test]
fn ecr_equals_its_published_rule() {
    ecr("ecr", false);
    ecr("gcar-ecr", false);
}

#[test]
fn lcr_equals_its_published_rule() {
    ecr("lcr", false);
    ecr("gcar-lcr", false);
}

#[test]
fn ecr_epsilon_equals_its_published_rule() {
    ecr("ecr-eps", true);
    ecr("gcar-ecr-eps", true);
}

/// Pages written since the last reset of the filter. With generations, pages written between the last two resets are
/// kept, too.
struct Written {
    younger: HashSet<u32>,
    older: HashSet<u32>,
    generations: bool,
    /// The filter is reset after this number of distinct pages (`items`), or after this time in ms (`reset_ms`). 0
    /// means never.
    items: u64,
    reset_ms: u64,
    last_ms: u64,
    resets: u64,
}

impl Written {
    fn new(set: &[(String, String)]) -> Written {
        let value = |key: &str| set.iter().find(|(k, _)| k == key).unwrap().1.as_str();
        Written {
            younger: HashSet::new(),
            older: HashSet::new(),
            generations: value("filter_forget") == "\"generations\"",
            // With `auto`, the policy computes a number of pages that these small buffers never reach.
            items: value("filter_reset_items").parse().unwrap_or(0),
            reset_ms: value("filter_reset_ms").parse().unwrap(),
            last_ms: 0,
            resets: 0,
        }
    }

    fn has(&self, lpn: u32) -> bool {
        self.younger.contains(&lpn) || self.older.contains(&lpn)
    }

    /// Records a write of a page. Returns whether the page is hot.
    fn write(&mut self, now_ms: u64, lpn: u32) -> bool {
        let full = self.items > 0 && self.younger.len() as u64 >= self.items;
        if full || self.reset_ms > 0 && now_ms - self.last_ms >= self.reset_ms {
            let younger = std::mem::take(&mut self.younger);
            if self.generations {
                self.older = younger;
            }
            self.last_ms = now_ms;
            self.resets += 1;
        }
        let hot = self.has(lpn);
        self.younger.insert(lpn);
        hot
    }
}

fn value(case: &Case, key: &str) -> u64 {
    let pair = case.set.iter().find(|(k, _)| k == key);
    pair.unwrap().1.parse().unwrap()
}

fn filter_set(rng: &mut Rng) -> Vec<(String, String)> {
    let mut pick = |of: &[&str]| of[rng.below(of.len() as u64) as usize].to_owned();
    vec![
        ("filter".into(), "\"exact\"".into()),
        (
            "filter_reset_items".into(),
            pick(&["0", "\"auto\"", "1", "7", "30"]),
        ),
        (
            "filter_reset_ms".into(),
            pick(&["0", "50", "500", "2000", "1000000"]),
        ),
        (
            "filter_forget".into(),
            pick(&["\"reset\"", "\"generations\""]),
        ),
    ]
}

struct CoActive {
    written: Written,
}

impl Rule for CoActive {
    fn accessed(&mut self, world: &World, pages: &mut [Page], write: bool) {
        if write {
            let page = pages.last_mut().unwrap();
            page.hot = self.written.write(world.now_ms, page.lpn);
        }
    }

    fn victim(&mut self, world: &World, pages: &[Page], gcar: bool) -> (Option<usize>, u64) {
        let mut looked = 0;
        let classes: [fn(&Page) -> bool; 3] =
            [|p| !p.dirty, |p| p.dirty && !p.hot, |p| p.dirty && p.hot];
        for qualifies in classes {
            let (found, entries) = first(world, pages, gcar, qualifies);
            looked += entries;
            if found.is_some() {
                return (found, looked);
            }
        }
        (None, looked)
    }

    fn idle(&mut self, world: &World, pages: &[Page], chip: usize) -> Vec<usize> {
        // In these tests, write-backs take no time, so none is ever in flight.
        let cold = |i: &usize| pages[*i].dirty && !pages[*i].hot;
        let of_chip = |i: &usize| world.chip(pages[*i].lpn) == chip;
        (0..pages.len()).filter(cold).filter(of_chip).collect()
    }
}

fn co_active(policy: &str) {
    compare(
        policy,
        |rng, _| {
            let mut set = filter_set(rng);
            let unit = ["channel", "chip"][rng.below(2) as usize];
            set.push(("idle_unit".into(), format!("\"{unit}\"")));
            set.push(("write_backs".into(), (1 + rng.below(3)).to_string()));
            set
        },
        |case| Buffer {
            capacity: case.capacity as usize,
            gcar: policy.starts_with("gcar"),
            pages: Vec::new(),
            rule: CoActive {
                written: Written::new(&case.set),
            },
        },
    );
}

#[test]
fn co_active_equals_its_lists() {
    co_active("co-active");
    co_active("gcar-co-active");
}

struct Stager {
    test_num: u64,
    cycle_num: u64,
    /// The page under the pointer.
    test_entry: Option<u32>,
    lookups: u64,
}

impl Rule for Stager {
    fn leaves(&mut self, pages: &[Page], i: usize) {
        if self.test_entry == Some(pages[i].lpn) {
            self.test_entry = pages.get(i + 1).map(|p| p.lpn);
        }
    }

    fn victim(&mut self, world: &World, pages: &[Page], gcar: bool) -> (Option<usize>, u64) {
        let pointed = |lpn| pages.iter().position(|p| p.lpn == lpn).unwrap();
        let mut q = self.test_entry.map_or(0, pointed);
        let mut n = 0;
        let mut victim = None;
        while n < self.test_num && q < pages.len() {
            n += 1;
            // In these tests, a chip is either in GC or far from it.
            if !world.skipped(pages[q].lpn) {
                victim = Some(q);
                break;
            }
            q += 1;
        }
        let pointer = pages.get(q + usize::from(victim.is_some()));
        let mut looked = n;
        if victim.is_none() {
            let (tail, entries) = match gcar {
                true => first(world, pages, true, |_| true),
                false => (Some(0), 0),
            };
            looked += entries;
            if tail.is_none() {
                return (None, looked);
            }
            victim = tail;
        }
        self.test_entry = pointer.map(|p| p.lpn);
        self.lookups += 1;
        if self.lookups == self.cycle_num {
            self.lookups = 0;
            self.test_entry = None;
        }
        (victim, looked)
    }
}

/// Plain LRU. The dispatcher alone does not change the choice of victims.
struct Lru;

impl Rule for Lru {
    fn victim(&mut self, world: &World, pages: &[Page], gcar: bool) -> (Option<usize>, u64) {
        first(world, pages, gcar, |_| true)
    }
}

fn stager_set(rng: &mut Rng) -> Vec<(String, String)> {
    vec![
        ("test_num".into(), (1 + rng.below(6)).to_string()),
        ("cycle_num".into(), (1 + rng.below(8)).to_string()),
    ]
}

fn stager(policy: &str) {
    compare(
        policy,
        |rng, _| stager_set(rng),
        |case| Buffer {
            capacity: case.capacity as usize,
            gcar: policy.starts_with("gcar"),
            pages: Vec::new(),
            rule: Stager {
                test_num: value(case, "test_num"),
                cycle_num: value(case, "cycle_num"),
                test_entry: None,
                lookups: 0,
            },
        },
    );
}

#[test]
fn the_stager_equals_its_published_lookup() {
    stager("cda-gc-stager");
    stager("gcar-cda-gc-stager");
}

#[test]
fn cda_gc_equals_its_published_lookup() {
    stager("cda-gc");
    stager("gcar-cda-gc");
}

#[test]
fn the_dispatcher_evicts_as_lru() {
    for policy in ["cda-gc-dispatcher", "gcar-cda-gc-dispatcher"] {
        compare(
            policy,
            |rng, _| filter_set(rng),
            |case| Buffer {
                capacity: case.capacity as usize,
                gcar: policy.starts_with("gcar"),
                pages: Vec::new(),
                rule: Lru,
            },
        );
    }
}

/// Checks the hot pages, which the state marks with `h`. A page is hot if the filter contains an earlier write of the
/// page.
#[test]
fn the_dispatcher_knows_hot_pages() {
    for seed in flashtwin::seeds(3) {
        let mut rng = Rng::new(seed);
        for _ in 0..500 {
            let mut tokens: Vec<String> = Vec::new();
            for token in random_accesses(&mut rng, 200, 30).split(' ') {
                tokens.push(token.to_owned());
                if rng.below(10) == 0 {
                    tokens.push(format!("t+{}", rng.below(300)));
                }
            }
            let policy = ["cda-gc", "cda-gc-dispatcher"][rng.below(2) as usize];
            let at_write_back = rng.below(2) == 0;
            let mut of_filter = filter_set(&mut rng);
            let mut written = Written::new(&of_filter);
            let hot_at = ["\"write\"", "\"write-back\""][usize::from(at_write_back)];
            of_filter.push(("hot_at".into(), hot_at.into()));
            let set: Vec<(&str, &str)> = of_filter
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .collect();
            let steps = On {
                set: &set,
                ..on(policy, 20)
            };
            // For each dirty page, the number of resets before its last write; `None` if the page was not hot at that
            // write.
            let mut dirty: HashMap<u32, Option<u64>> = HashMap::new();
            let mut now_ms = 0;
            for step in steps.steps(&tokens.join(" ")) {
                let page = |text: &str| text.parse::<u32>().unwrap();
                if let Some(ms) = step.op.strip_prefix("t+") {
                    now_ms += u64::from(page(ms));
                } else if let Some(lpn) = step.op.strip_prefix('W') {
                    let hot = written.write(now_ms, page(lpn));
                    dirty.insert(page(lpn), hot.then_some(written.resets));
                }
                for victim in step.evicted() {
                    dirty.remove(&victim.lpn);
                }
                let remembered = |resets| written.resets - resets <= u64::from(written.generations);
                let is_hot = |(&lpn, marked): (&u32, &Option<u64>)| match at_write_back {
                    true => written.has(lpn),
                    false => marked.is_some_and(remembered),
                };
                let hot = dirty.iter().filter(|&page| is_hot(page));
                let hot: HashSet<u32> = hot.map(|(&lpn, _)| lpn).collect();
                let marked = |text: &str| text.strip_suffix("dh").map(page);
                let marked: HashSet<u32> = step.state.split(' ').filter_map(marked).collect();
                assert_eq!(marked, hot, "{policy} {set:?}: {}", tokens.join(" "));
            }
        }
    }
}
