//! W-TinyLFU: a vector computed by hand, and a comparison with a naive implementation that uses lists and exact
//! counts.

use super::harness::{compare, on, Did, Naive, On, Op, World};
use flashtwin::Rng;

#[test]
fn vector_w_tinylfu() {
    let w_tinylfu = On {
        set: &[("admission_window", "1")],
        ..on("w-tinylfu", 4)
    };
    w_tinylfu.check(
        "
        W1    | miss        | window[1d1] probation[] protected[]
        W2    | miss        | window[2d1] probation[1d1] protected[]
        R1    | hit         | window[2d1] probation[] protected[1d2]
        R3 R4 | miss        | window[4c1] probation[3c1 2d1] protected[1d2]
        W5    | miss, ev 4c | window[5d1] probation[3c1 2d1] protected[1d2]
        R4    | miss, ev 5d | window[4c2] probation[3c1 2d1] protected[1d2]
        W6    | miss, ev 2d | window[6d1] probation[4c2 3c1] protected[1d2]
        R4    | hit         | window[6d1] probation[3c1] protected[4c3 1d2]
        R3    | hit         | window[6d1] probation[1d2] protected[3c2 4c3]
    ",
    );
}

/// Pages with their dirty flags. The least recent page is first.
type List = Vec<(u32, bool)>;

struct WTinyLfu {
    capacity: usize,
    gcar: bool,
    window_pages: usize,
    protected_pages: usize,
    sample: usize,
    window: List,
    probation: List,
    protected: List,
    /// The count of each page that was ever accessed.
    counts: Vec<u32>,
    accesses: usize,
}

impl WTinyLfu {
    fn count(&mut self, lpn: u32) {
        let needed = self.counts.len().max(lpn as usize + 1);
        self.counts.resize(needed, 0);
        self.counts[lpn as usize] = 15.min(self.counts[lpn as usize] + 1);
        self.accesses += 1;
        if self.accesses == self.sample {
            self.accesses /= 2;
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
    }

    /// Returns the two pages that compete for eviction. The first is a page of the window. It competes only if the
    /// window is full or the main part has no candidate; otherwise, it is `None`. The second is a page of the main
    /// part.
    fn rivals(&self, world: &World, skips: bool) -> [Option<u32>; 2] {
        let oldest = |list: &List| {
            let mut pages = list.iter().map(|page| page.0);
            pages.find(|&lpn| !(skips && world.skipped(lpn)))
        };
        let of_window = oldest(&self.window);
        let rival = oldest(&self.probation).or_else(|| oldest(&self.protected));
        let competes = self.window.len() >= self.window_pages || rival.is_none();
        [of_window.filter(|_| competes), rival]
    }

    fn evict(&mut self, world: &World) -> Did {
        let mut rivals = self.rivals(world, self.gcar);
        if rivals == [None, None] {
            rivals = self.rivals(world, false);
        }
        let count = |lpn: u32| self.counts[lpn as usize];
        let victim = match rivals {
            [Some(candidate), Some(rival)] if count(candidate) > count(rival) => {
                let at = self.window.iter().position(|page| page.0 == candidate);
                let page = self.window.remove(at.expect("it is there"));
                self.probation.push(page);
                rival
            }
            [candidate, rival] => candidate.or(rival).expect("a full buffer has a victim"),
        };
        Did {
            victims: vec![self.remove(victim).expect("it is there")],
            ..Did::default()
        }
    }

    fn remove(&mut self, lpn: u32) -> Option<(u32, bool)> {
        let lists = [&mut self.window, &mut self.probation, &mut self.protected];
        lists.into_iter().find_map(|list| {
            let at = list.iter().position(|page| page.0 == lpn)?;
            Some(list.remove(at))
        })
    }
}

impl Naive for WTinyLfu {
    fn access(&mut self, world: &World, op: Op) -> Did {
        self.count(op.lpn);
        let of_window = self.window.iter().any(|page| page.0 == op.lpn);
        if let Some((lpn, dirty)) = self.remove(op.lpn) {
            let to = if of_window {
                &mut self.window
            } else {
                &mut self.protected
            };
            to.push((lpn, dirty | op.write));
            if self.protected.len() > self.protected_pages {
                self.probation.push(self.protected.remove(0));
            }
            return Did::hit();
        }
        let mut did = Did::default();
        if self.window.len() + self.probation.len() + self.protected.len() == self.capacity {
            did = self.evict(world);
        }
        self.window.push((op.lpn, op.write));
        if self.window.len() > self.window_pages {
            self.probation.push(self.window.remove(0));
        }
        did
    }

    fn trim(&mut self, _world: &World, lpn: u32) {
        self.remove(lpn);
    }
}

#[test]
fn w_tinylfu_is_its_rule() {
    for (name, gcar) in [("w-tinylfu", false), ("gcar-w-tinylfu", true)] {
        let drawn = |rng: &mut Rng, capacity: u32| {
            let window = rng.below(u64::from(capacity) + 1).to_string();
            let sample = (1 + rng.below(12)).to_string();
            let share = ["0.0", "0.5", "0.8", "1.0"][rng.below(4) as usize];
            let set = [
                ("admission_window", window.as_str()),
                ("sample", &sample),
                ("protected", share),
                ("counts", "exact"),
            ];
            set.map(|(key, value)| (key.into(), value.into())).into()
        };
        compare(name, drawn, |case| {
            let set = |at: usize| case.set[at].1.parse::<usize>().expect("a number");
            let (capacity, window_pages) = (case.capacity as usize, set(0).max(1));
            let share: f64 = case.set[2].1.parse().expect("a number");
            WTinyLfu {
                capacity,
                gcar,
                window_pages,
                protected_pages: ((capacity - window_pages) as f64 * share) as usize,
                sample: capacity * set(1),
                window: Vec::new(),
                probation: Vec::new(),
                protected: Vec::new(),
                counts: Vec::new(),
                accesses: 0,
            }
        });
    }
}
