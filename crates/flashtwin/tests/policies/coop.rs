//! COOP: test vectors, identities with ARC, and a comparison with a naive implementation.

use super::harness::{compare, on, random_accesses, Case, Did, Naive, On, Op, World};
use flashtwin::buffer::{Programs, Setup};
use flashtwin::spec::builtin;
use flashtwin::{DeviceSpec, Rng, Time};

/// Settings of the vectors: four chips, where page n is on chip n mod 4, and a buffer of four pages.
const COOP: On<'static> = On {
    policy: "coop",
    capacity: 4,
    set: &[("quiet_us", "60000000"), ("clean", "0")],
    chips: 4,
    stride_pages: 1,
    pages_per_block: 4,
};

/// The last access evicts a page of chip 0, whose queue completes after 300 us. Pages 1 and 5 are on chip 1, whose
/// queue takes 900 us.
#[test]
fn coop_a_evicts_clean_pages_then_by_cost() {
    COOP.check(
        "
        drain0=300 drain1=900 W0 W1 R2 W3 | miss        | T1[3d 2c 1d 0d] T2[] B1[] B2[] p=0
        W4                                | miss, ev 2c | T1[4d 3d 1d 0d] T2[] B1[] B2[] p=0
        W5                                | miss, ev 3d | T1[5d 4d 1d 0d] T2[] B1[] B2[] p=0
        W6                                | miss, ev 0d | T1[6d 5d 4d 1d] T2[] B1[] B2[] p=0
    ",
    );
}

#[test]
fn coop_b_chooses_within_the_list_that_arc_names() {
    COOP.check(
        "
        drain0=300 drain1=900 drain2=100 drain3=500 W0 W1 W2 W3 | miss | T1[3d 2d 1d 0d] T2[] B1[] B2[] p=0
        W4 | miss, ev 2d | T1[4d 3d 1d 0d] T2[] B1[] B2[] p=0
        R4 | hit         | T1[3d 1d 0d] T2[4d] B1[] B2[] p=0
        W5 | miss, ev 0d | T1[5d 3d 1d] T2[4d] B1[0] B2[] p=0
    ",
    );
}

#[test]
fn coop_c_writes_ahead_pages_written_once() {
    let on = On {
        set: &[("quiet_us", "0"), ("cooled", "0")],
        ..COOP
    };
    on.check(
        "
        drain0=300 drain1=900 W0 W1 W1 | hit            | T1[0d] T2[1d] B1[] B2[] p=0
        idle0                          | write back {0} | T1[0c] T2[1d] B1[] B2[] p=0
        idle1                          |                | T1[0c] T2[1d] B1[] B2[] p=0
        W2 W3 W4                       | miss, ev 0c    | T1[4d 3d 2d] T2[1d] B1[0] B2[] p=0
    ",
    );
}

/// A page of T2 that was written once is written ahead after two accesses to other pages. If a page that was written
/// ahead is written again, it counts as written more than once.
#[test]
fn coop_d_waits_until_pages_of_t2_have_cooled() {
    let on = On {
        set: &[("quiet_us", "1000"), ("cooled", "2")],
        ..COOP
    };
    on.check(
        "
        R0 W0 t+1 idle0 |                | T1[] T2[0d] B1[] B2[] p=0
        R1 t+1 idle0    |                | T1[1c] T2[0d] B1[] B2[] p=0
        R2 idle0        |                | T1[2c 1c] T2[0d] B1[] B2[] p=0
        t+1 idle0       | write back {0} | T1[2c 1c] T2[0c] B1[] B2[] p=0
        W0 R1 R2 t+1 idle0 |                |T1[] T2[2c 1c 0d] B1[] B2[] p=0
    ",
    );
}

/// The host is never quiet. Therefore, pages are written ahead only until two slots are free or clean.
#[test]
fn coop_e_keeps_some_slots_clean() {
    let on = On {
        set: &[("quiet_us", "60000000"), ("clean", "2"), ("cooled", "0")],
        chips: 1,
        ..COOP
    };
    on.check(
        "
        W0 W1 idle0 |                  | T1[1d 0d] T2[] B1[] B2[] p=0
        W2 idle0    | write back {0}   | T1[2d 1d 0c] T2[] B1[] B2[] p=0
        W3 W4       | miss, ev 0c      | T1[4d 3d 2d 1d] T2[] B1[] B2[] p=0
        idle0       | write back {1,2} | T1[4d 3d 2c 1c] T2[] B1[] B2[] p=0
    ",
    );
}

/// If all accesses are reads, or if there is only one chip and all pages are dirty, COOP evicts as ARC does.
#[test]
fn coop_without_costs_is_arc() {
    for seed in flashtwin::seeds(50) {
        let mut rng = Rng::new(seed);
        let accesses = random_accesses(&mut rng, 200, 14);
        for letter in ["R", "W"] {
            let accesses = accesses.replace(['R', 'W'], letter);
            let coop = On {
                capacity: 6,
                chips: 1,
                ..COOP
            };
            let states = |on: On| -> Vec<String> {
                let steps = on.steps(&accesses);
                steps.iter().map(|step| step.state.clone()).collect()
            };
            assert_eq!(states(coop), states(on("arc", 6)), "{accesses}");
        }
    }
}

/// Constants that COOP derives from the device. Reads of `nvme-tlc` suspend erases; reads of `ecr` do not.
#[test]
fn the_silence_and_the_batch_follow_from_the_device() {
    for (name, blocked_us, pages, row_pages) in [
        ("ecr", 1700, 1, 1),
        ("nvme-tlc", 2700, 16, 48),
        ("qlc", 9500, 16, 64),
    ] {
        let spec = DeviceSpec::parse(builtin(name).unwrap(), name).unwrap();
        let wanted = Programs {
            blocked: Time::from_us(blocked_us),
            pages,
            row_pages,
        };
        assert_eq!(Setup::of(&spec).programs, wanted, "{name}");
    }
}

#[derive(Clone, Copy, Debug)]
struct Page {
    lpn: u32,
    dirty: bool,
    writes: u32,
    last: u64,
}

/// COOP with static placement, implemented as lists that are scanned. The least recent page of a list is first.
struct Coop {
    c: usize,
    gcar: bool,
    quiet_us: u64,
    depth: u64,
    clean: usize,
    cooled: u64,
    p: f64,
    t: [Vec<Page>; 2],
    b: [Vec<u32>; 2],
    accesses: u64,
    last_ms: u64,
}

impl Coop {
    fn new(case: &Case) -> Coop {
        let value = |key: &str| -> u64 {
            let (_, text) = case.set.iter().find(|(k, _)| k == key).unwrap();
            text.parse().unwrap()
        };
        Coop {
            c: case.capacity as usize,
            gcar: case.setup.filtered,
            quiet_us: value("quiet_us"),
            depth: value("ahead_depth"),
            clean: value("clean") as usize,
            cooled: value("cooled"),
            p: 0.0,
            t: Default::default(),
            b: Default::default(),
            accesses: 0,
            last_ms: 0,
        }
    }

    /// Returns the victim, as its list and its index in the list.
    fn victim(&self, world: &World, lists: [usize; 2], gcar: bool) -> Option<(usize, usize)> {
        let open = |page: &Page| !(gcar && world.skipped(page.lpn));
        for list in lists {
            let clean = self.t[list]
                .iter()
                .position(|page| !page.dirty && open(page));
            if let Some(i) = clean {
                return Some((list, i));
            }
        }
        lists.into_iter().find_map(|list| {
            let pages = self.t[list].iter().enumerate();
            let dirty = pages.filter(|(_, page)| page.dirty && open(page));
            let cheapest = dirty.min_by_key(|(i, page)| (world.drain_us[world.chip(page.lpn)], *i));
            cheapest.map(|(i, _)| (list, i))
        })
    }

    /// Cases II to IV of ARC. Returns the list for the new page, and the victim if there is one.
    fn miss(&mut self, world: &World, lpn: u32) -> (usize, Option<Page>) {
        let [b1, b2] = [self.b[0].len() as f64, self.b[1].len() as f64];
        let from = (0..2).find(|&list| self.b[list].contains(&lpn));
        let cached = self.t[0].len() + self.t[1].len();
        match from {
            Some(0) => self.p = (self.p + (b2 / b1).max(1.0)).min(self.c as f64),
            Some(_) => self.p = (self.p - (b1 / b2).max(1.0)).max(0.0),
            None if self.t[0].len() + self.b[0].len() >= self.c => {
                let oldest = self.b[0].len().min(1);
                self.b[0].drain(..oldest);
            }
            None if cached + self.b[0].len() + self.b[1].len() >= 2 * self.c => {
                self.b[1].remove(0);
            }
            None => {}
        }
        if let Some(list) = from {
            self.b[list].retain(|&other| other != lpn);
        }
        let list = usize::from(from.is_some());
        if cached < self.c {
            return (list, None);
        }
        let t1 = self.t[0].len() as f64;
        let lists = match t1 > self.p || t1 == self.p && from == Some(1) {
            true => [0, 1],
            false => [1, 0],
        };
        let open = self.gcar && world.in_gc.contains(&true);
        let filtered = open.then(|| self.victim(world, lists, true)).flatten();
        let found = filtered.or_else(|| self.victim(world, lists, false));
        let (from_list, i) = found.expect("a full buffer has a page");
        let remembered = from.is_some() || self.t[0].len() < self.c;
        let victim = self.t[from_list].remove(i);
        if remembered {
            self.b[from_list].push(victim.lpn);
        }
        (list, Some(victim))
    }
}

impl Naive for Coop {
    fn access(&mut self, world: &World, op: Op) -> Did {
        let mut did = Did::default();
        let place = (0..2).find_map(|list| {
            let i = self.t[list].iter().position(|page| page.lpn == op.lpn);
            i.map(|i| (list, i))
        });
        let (mut page, list) = match place {
            Some((list, i)) => {
                did.hit = true;
                (self.t[list].remove(i), 1)
            }
            None => {
                let (list, victim) = self.miss(world, op.lpn);
                did.victims
                    .extend(victim.map(|page| (page.lpn, page.dirty)));
                let page = Page {
                    lpn: op.lpn,
                    dirty: false,
                    writes: 0,
                    last: 0,
                };
                (page, list)
            }
        };
        self.accesses += 1;
        self.last_ms = world.now_ms;
        page.last = self.accesses;
        page.dirty |= op.write;
        page.writes += u32::from(op.write);
        self.t[list].push(page);
        did
    }

    fn trim(&mut self, _world: &World, lpn: u32) {
        for list in &mut self.t {
            list.retain(|page| page.lpn != lpn);
        }
    }

    fn idle(&mut self, world: &World, chip: usize) -> Vec<u32> {
        let mut written = Vec::new();
        while self.depth > 0 {
            let quiet = world.now_ms * 1000 >= self.last_ms * 1000 + self.quiet_us;
            let cached = self.t[0].len() + self.t[1].len();
            let pages = self.t.iter().flatten();
            let clean = pages.filter(|page| !page.dirty).count();
            if !quiet && clean + self.c - cached >= self.clean {
                break;
            }
            let candidate =
                |page: &&mut Page| page.dirty && page.writes == 1 && world.chip(page.lpn) == chip;
            let (accesses, cooled) = (self.accesses, self.cooled);
            let [t1, t2] = &mut self.t;
            let in_t1 = t1.iter_mut().find(candidate);
            let mut in_t2 = t2.iter_mut().filter(candidate);
            let in_t2 = in_t2.find(|page| accesses - page.last >= cooled);
            let Some(page) = in_t1.or(in_t2) else { break };
            page.dirty = false;
            written.push(page.lpn);
        }
        written
    }
}

#[test]
fn coop_equals_its_rule() {
    for policy in ["coop", "gcar-coop"] {
        let draw = |rng: &mut Rng, capacity: u32| {
            let quiet_us = [0, 100_000, 400_000, 60_000_000][rng.below(4) as usize];
            let share = u64::from(capacity) + 1;
            [
                ("quiet_us", quiet_us),
                ("ahead_depth", rng.below(3)),
                ("clean", rng.below(share)),
                ("cooled", rng.below(share)),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_string()))
            .to_vec()
        };
        compare(policy, draw, Coop::new);
    }
}
