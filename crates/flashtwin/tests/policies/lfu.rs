//! LFU with ageing: a vector computed by hand, and a comparison with a naive implementation that scans a single list.

use super::harness::{compare, on, Did, Naive, On, Op, World};
use flashtwin::Rng;

#[test]
fn vector_lfu() {
    let lfu = On {
        set: &[("mean_max", "2")],
        ..on("lfu", 3)
    };
    lfu.check(
        "
        W1 R1 R2 W3 | miss        | 1d2 3d1 2c1
        W4          | miss, ev 2c | 1d2 4d1 3d1
        R1 R1       | hit         | 1d4 4d1 3d1
        R1          | hit         | 1d3 4d1 3d1
        W5          | miss, ev 3d | 1d3 5d1 4d1
    ",
    );
}

/// Pages with their dirty flags and counts. The least recent page is first.
struct Lfu {
    capacity: usize,
    gcar: bool,
    count_max: u32,
    mean_max: u32,
    pages: Vec<(u32, bool, u32)>,
}

impl Lfu {
    fn evict(&mut self, world: &World) -> Did {
        let least = |spare: bool| {
            let pages = self.pages.iter().filter(|p| !(spare && world.skipped(p.0)));
            // Among pages with the least count, `min_by_key` returns the first one, which is the least recent.
            pages.min_by_key(|page| page.2).map(|page| page.0)
        };
        let victim = least(self.gcar).or_else(|| least(false));
        let victim = victim.expect("a full buffer has a victim");
        let at = self.pages.iter().position(|page| page.0 == victim);
        let (lpn, dirty, _) = self.pages.remove(at.expect("it is there"));
        Did {
            victims: vec![(lpn, dirty)],
            ..Did::default()
        }
    }

    fn age(&mut self) {
        let sum: u32 = self.pages.iter().map(|page| page.2).sum();
        if sum <= self.mean_max * self.pages.len() as u32 {
            return;
        }
        // Halving may make different counts equal. Pages with equal counts then stay in the order of their counts
        // before the halving, so that the smallest count is the least recent.
        self.pages.sort_by_key(|page| page.2);
        for page in &mut self.pages {
            page.2 = page.2.div_ceil(2);
        }
    }
}

impl Naive for Lfu {
    fn access(&mut self, world: &World, op: Op) -> Did {
        if let Some(at) = self.pages.iter().position(|page| page.0 == op.lpn) {
            let (lpn, dirty, count) = self.pages.remove(at);
            let count = (count + 1).min(self.count_max);
            self.pages.push((lpn, dirty | op.write, count));
            self.age();
            return Did::hit();
        }
        let mut did = Did::default();
        if self.pages.len() == self.capacity {
            did = self.evict(world);
        }
        self.pages.push((op.lpn, op.write, 1));
        did
    }

    fn trim(&mut self, _world: &World, lpn: u32) {
        self.pages.retain(|page| page.0 != lpn);
    }
}

#[test]
fn lfu_is_its_rule() {
    for (name, gcar) in [("lfu", false), ("gcar-lfu", true)] {
        let drawn = |rng: &mut Rng, _| {
            let mut draw = |key: &str, from: u64, to: u64| {
                (key.to_owned(), (from + rng.below(to)).to_string())
            };
            vec![draw("count_max", 2, 15), draw("mean_max", 1, 5)]
        };
        compare(name, drawn, |case| {
            let set = |at: usize| case.set[at].1.parse().expect("a number");
            Lfu {
                capacity: case.capacity as usize,
                gcar,
                count_max: set(0),
                mean_max: set(1),
                pages: Vec::new(),
            }
        });
    }
}
