//! LRU and CFLRU, with and without GCaR: test vectors, identities, and comparisons with naive lists.

use super::harness::{compare, on, random_accesses, Did, Naive, On, Op, World};
use flashtwin::stepping::{trace_policy, Traceable};

#[test]
fn lru_1() {
    on("lru", 3).check(
        "
        W1 | miss        | 1d
        R2 | miss        | 2c 1d
        W3 | miss        | 3d 2c 1d
        R1 | hit         | 1d 3d 2c
        W4 | miss, ev 2c | 4d 1d 3d
        R2 | miss, ev 3d | 2c 4d 1d
    ",
    );
}

fn cflru(window: &'static str, capacity: u32) -> On<'static> {
    let set: &'static [(&str, &str)] = match window {
        "2" => &[("window", "2")],
        "3" => &[("window", "3")],
        _ => &[("window", "4")],
    };
    On {
        set,
        ..on("cflru", capacity)
    }
}

#[test]
fn cflru_1_2_3() {
    cflru("2", 4).check(
        "
        W1 R2 W3 W4 | miss        | 4d 3d 2c 1d
        R5          | miss, ev 2c | 5c 4d 3d 1d
        W6          | miss, ev 1d | 6d 5c 4d 3d
        R7          | miss, ev 3d | 7c 6d 5c 4d
    ",
    );
    cflru("4", 4).check(
        "
        W1 R2 W3 W4 | miss        | 4d 3d 2c 1d
        R5          | miss, ev 2c | -
        W6          | miss, ev 5c | -
        R7          | miss, ev 1d | 7c 6d 4d 3d
    ",
    );
    cflru("2", 4).check(
        "
        W1 W2 R3 R4 | miss        | 4c 3c 2d 1d
        W5          | miss, ev 1d | 5d 4c 3c 2d
    ",
    );
}

#[test]
fn gcar_1() {
    let gcar = On {
        chips: 2,
        ..on("gcar-lru", 4)
    };
    gcar.check(
        "
        W1 W2 R3 W4    | miss        | 4d 3c 2d 1d
        gc+1 W6        | miss, ev 2d | 6d 4d 3c 1d
        R8             | miss, ev 4d | 8c 6d 3c 1d
        gc+0 W10       | miss, ev 1d | 10d 8c 6d 3c
        gc-0 gc-1 W12  | miss, ev 3c | 12d 10d 8c 6d
    ",
    );
    let lru = On {
        policy: "lru",
        ..gcar
    };
    lru.check(
        "
        W1 W2 R3 W4    | miss        | 4d 3c 2d 1d
        gc+1 W6        | miss, ev 1d | -
        R8             | miss, ev 2d | -
        gc+0 W10       | miss, ev 3c | -
        gc-0 gc-1 W12  | miss, ev 4d | -
    ",
    );
}

#[test]
fn gcar_takes_from_each_chip_its_share_of_a_request() {
    let gcar = On {
        chips: 2,
        set: &[("chip_share_percent", "100")],
        ..on("gcar-lru", 6)
    };
    // Without GC, a request of four pages evicts two pages from each chip. If chip 0 is in GC, the request evicts two
    // pages from chip 1, and then the two least recent pages.
    gcar.check(
        "
        W1 W3 W5 W7 W2 W4 | miss                               | 4d 2d 7d 5d 3d 1d
        W10x4             | miss, ev 1d, ev 3d, ev 2d, ev 4d   | 13d 12d 11d 10d 7d 5d
        gc+0 W20x4        | miss, ev 5d, ev 7d, ev 10d, ev 11d | 23d 22d 21d 20d 13d 12d
    ",
    );
}

#[test]
fn gcar_evicts_the_dirty_pages_of_a_stripe_together() {
    let gcar = On {
        chips: 2,
        set: &[("stripe_pages", "3")],
        ..on("gcar-lru", 6)
    };
    // Only dirty pages of the victim's stripe are evicted with it, and a clean victim is evicted alone. In the last
    // row, pages 3 and 5 are on the chip in GC, but are evicted together with page 4, the victim.
    gcar.check(
        "
        W0 W3 W1 R2 W5 W4 | miss               | 4d 5d 2c 1d 3d 0d
        W9                | miss, ev 0d 1d     | 9d 4d 5d 2c 3d
        W10               | miss               | 10d 9d 4d 5d 2c 3d
        gc+1 W12          | miss, ev 2c        | 12d 10d 9d 4d 5d 3d
        W14               | miss, ev 3d 4d 5d  | 14d 12d 10d 9d
    ",
    );
}

#[test]
fn gcar_2_figure_4() {
    // In figure 4 of the paper, pages 2, 6 and 1 are D7, D6 and D5. Pages 2 and 6 are on chip 2, which is in GC, so
    // page 1 is the victim.
    let gcar = On {
        chips: 4,
        ..on("gcar-lru", 7)
    };
    gcar.check(
        "
        W2 W6 W1 W3 W4 W5 W7 | miss        | 7d 5d 4d 3d 1d 6d 2d
        gc+2 W8              | miss, ev 1d | 8d 7d 5d 4d 3d 6d 2d
    ",
    );
}

#[test]
fn gcar_3_over_cflru() {
    let gcar = On {
        policy: "gcar-cflru",
        chips: 2,
        ..cflru("3", 5)
    };
    gcar.check(
        "
        gc+1 R1 W2 W3 R4 W6 | miss        | 6d 4c 3d 2d 1c
        W8                  | miss, ev 2d | 8d 6d 4c 3d 1c
        W10                 | miss, ev 4c | 10d 8d 6d 3d 1c
        W12                 | miss, ev 6d | 12d 10d 8d 3d 1c
    ",
    );
    let plain = On {
        policy: "cflru",
        ..gcar
    };
    plain.check(
        "
        gc+1 R1 W2 W3 R4 W6 | miss        | 6d 4c 3d 2d 1c
        W8                  | miss, ev 1c | -
    ",
    );
}

#[test]
fn a_request_of_several_pages_is_accessed_in_page_order() {
    on("lru", 3).check(
        "
        W4x3 | miss               | 6d 5d 4d
        R6   | hit                | 6d 5d 4d
        W7x2 | miss, ev 4d, ev 5d | 8d 7d 6d
    ",
    );
}

#[test]
fn a_token_that_cannot_be_read_is_named_with_its_place() {
    let device = Traceable {
        policy: "lru",
        capacity: 2,
        set: &[],
        chips: 2,
        stride_pages: 1,
        pages_per_block: 4,
    };
    let device = device.device().unwrap();
    for (token, problem) in [
        ("X1", "not an access"),
        ("W", "\"\" is no number"),
        ("W4x0", "0 pages from page 4"),
        ("gc+7", "chip 7 of 2, counted from 0"),
        ("drain1", "no \"=\""),
        ("idle2", "chip 2 of 2, counted from 0"),
    ] {
        let error = trace_policy(&device, &format!("W1 {token}")).unwrap_err();
        assert_eq!(
            (error.position, error.token.as_str(), error.problem.as_str()),
            (2, token, problem)
        );
    }
}

/// CFLRU with an empty window equals LRU. As long as no chip is in GC, every policy with GCaR equals the policy without
/// GCaR.
#[test]
fn identities_on_random_strings() {
    for seed in flashtwin::seeds(1) {
        let mut rng = flashtwin::Rng::new(seed);
        for _ in 0..200 {
            let accesses = random_accesses(&mut rng, 300, 40);
            let steps = |policy: &str, set: &[(&str, &str)]| {
                let on = On {
                    policy,
                    capacity: 12,
                    set,
                    chips: 4,
                    stride_pages: 1,
                    pages_per_block: 4,
                };
                on.steps(&accesses)
            };
            assert_eq!(steps("cflru", &[("window", "0")]), steps("lru", &[]));
            for base in flashtwin::buffer::ChosenPolicy::base_names() {
                assert_eq!(
                    steps(&format!("gcar-{base}"), &[]),
                    steps(base, &[]),
                    "{base}"
                );
            }
        }
    }
}

/// A list of pages with their dirty flags. The most recent page is first.
struct Recency {
    capacity: usize,
    window: Option<usize>,
    gcar: bool,
    list: Vec<(u32, bool)>,
}

impl Recency {
    /// Returns the position of the victim, and the number of entries examined.
    fn victim(&self, world: &World) -> (usize, u64) {
        let last = self.list.len() - 1;
        let skipped = |i: usize| self.gcar && world.skipped(self.list[i].0);
        let mut looked = 0;
        if let Some(window) = self.window {
            for i in (0..=last).rev().take(window) {
                looked += 1;
                if !self.list[i].1 && !skipped(i) {
                    return (i, looked);
                }
            }
            if !(self.gcar && world.in_gc.contains(&true)) {
                return (last, looked.max(1));
            }
        }
        for i in (0..=last).rev() {
            looked += 1;
            if !skipped(i) {
                return (i, looked);
            }
        }
        // Every page is on a chip in GC. The victim is that of the policy without GCaR.
        let base = Recency {
            gcar: false,
            list: self.list.clone(),
            ..*self
        };
        let (i, more) = base.victim(world);
        (i, looked + more)
    }
}

impl Naive for Recency {
    fn access(&mut self, world: &World, op: Op) -> Did {
        let mut did = Did::default();
        let mut dirty = op.write;
        if let Some(i) = self.list.iter().position(|p| p.0 == op.lpn) {
            dirty |= self.list.remove(i).1;
            did.hit = true;
            did.inspected = Some(0);
        } else {
            did.inspected = Some(0);
            if self.list.len() == self.capacity {
                let (i, looked) = self.victim(world);
                did.inspected = Some(looked);
                did.victims.push(self.list.remove(i));
            }
        }
        self.list.insert(0, (op.lpn, dirty));
        did
    }
    fn trim(&mut self, _world: &World, lpn: u32) {
        self.list.retain(|p| p.0 != lpn);
    }
}

fn differ(policy: &str, window: bool, gcar: bool) {
    compare(
        policy,
        |rng, capacity| {
            let pages = rng.below(u64::from(capacity) + 1);
            if window {
                vec![("window".into(), pages.to_string())]
            } else {
                vec![]
            }
        },
        |case| Recency {
            capacity: case.capacity as usize,
            window: window.then(|| case.set[0].1.parse().unwrap()),
            gcar,
            list: Vec::new(),
        },
    );
}

#[test]
fn lru_equals_its_naive_list() {
    differ("lru", false, false);
}

#[test]
fn cflru_equals_its_published_scan() {
    differ("cflru", true, false);
}

#[test]
fn gcar_lru_equals_its_published_scan() {
    differ("gcar-lru", false, true);
}

#[test]
fn gcar_cflru_equals_its_published_scan() {
    differ("gcar-cflru", true, true);
}
