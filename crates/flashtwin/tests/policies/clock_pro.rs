//! CLOCK-Pro: vectors computed by hand, and a comparison with a naive implementation. The naive implementation has one
//! list, which begins at the entry under HAND_hot.

use super::harness::{compare, on, Did, Naive, On, Op, World};
use flashtwin::Rng;

#[test]
fn vector_clock_pro() {
    let clock_pro = On {
        set: &[("cold_min", "1")],
        ..on("clock-pro", 3)
    };
    clock_pro.check(
        "
        W1 R2 | miss        | 2cH0 1dH0 cold[1] test[1] target=1
        R3    | miss        | 3cC0t 2cH0 1dH0 cold[1] test[1] target=1
        W4    | miss, ev 3c | 4dC0t 3 2cH0 1dH0 cold[3] test[1] target=1
        R3    | miss, ev 4d | 2cC0 1dC0 3cH0 cold[3] test[3] target=1
        R1 W2 | hit         | 2dC1 1dC1 3cH0 cold[3] test[3] target=1
        W5    | miss, ev 1d | 5dC0t 2dC0t 1 3cH0 cold[1] test[3] target=1
        R2    | hit         | 5dC0t 2dC1t 1 3cH0 cold[1] test[3] target=1
        W6    | miss, ev 5d | 6dC0t 3cC0 2dH0 cold[2] test[2] target=1
    ",
    );
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    Hot,
    Cold,
    ColdInTest,
    Gone,
}

#[derive(Clone, Copy)]
struct Page {
    lpn: u32,
    is: Is,
    dirty: bool,
    referenced: bool,
}

struct ClockPro {
    capacity: usize,
    gcar: bool,
    cold_min: usize,
    target: usize,
    /// Entries of the clock, beginning at HAND_hot. The last entry is the list head.
    clock: Vec<Page>,
    /// Pages under the other two hands. `None` is the first entry of the clock.
    hand_cold: Option<u32>,
    hand_test: Option<u32>,
    evicted: bool,
}

impl ClockPro {
    fn at(&self, lpn: u32) -> Option<usize> {
        self.clock.iter().position(|page| page.lpn == lpn)
    }
    fn number(&self, is: &[Is]) -> usize {
        self.clock
            .iter()
            .filter(|page| is.contains(&page.is))
            .count()
    }
    fn hot_max(&self) -> usize {
        self.capacity - self.target.min(self.capacity)
    }
    /// Returns the page of the next entry. After the last entry, the clock continues with the first.
    fn after(&self, at: usize) -> u32 {
        self.clock[(at + 1) % self.clock.len()].lpn
    }
    fn take(&mut self, at: usize) -> Page {
        let next = Some(self.after(at)).filter(|_| self.clock.len() > 1);
        let page = self.clock.remove(at);
        for hand in [&mut self.hand_cold, &mut self.hand_test] {
            if *hand == Some(page.lpn) {
                *hand = next;
            }
        }
        page
    }
    fn accessed_in_test(&mut self) {
        self.target = (self.target + 1).min((self.capacity - 1).max(self.cold_min));
    }
    /// Ends the test period of the entry at an index. Returns whether the entry is still in the clock.
    fn end_test(&mut self, at: usize) -> bool {
        let page = self.clock[at];
        if [Is::Hot, Is::Cold].contains(&page.is) {
            return true;
        }
        if !page.referenced {
            self.target = (self.target - 1).max(self.cold_min);
        }
        if page.is == Is::Gone {
            self.take(at);
            return false;
        }
        self.clock[at].is = Is::Cold;
        true
    }
    fn hand_hot(&mut self) {
        while self.number(&[Is::Hot]) > self.hot_max() {
            loop {
                let page = self.clock[0];
                if page.is != Is::Hot {
                    if self.end_test(0) {
                        self.clock.rotate_left(1);
                    }
                    continue;
                }
                self.clock[0].referenced = false;
                if !page.referenced {
                    self.clock[0].is = Is::Cold;
                }
                self.clock.rotate_left(1);
                if !page.referenced {
                    break;
                }
            }
            // HAND_hot stops at a hot page.
            while self.number(&[Is::Hot]) > 0 && self.clock[0].is != Is::Hot {
                if self.end_test(0) {
                    self.clock.rotate_left(1);
                }
            }
        }
    }
    fn hand_cold(&mut self, skipped: &dyn Fn(u32) -> bool) -> Option<usize> {
        let mut round = 0;
        while round <= self.clock.len() {
            round += 1;
            let at = self
                .hand_cold
                .map_or(0, |lpn| self.at(lpn).expect("hands are at pages"));
            let page = self.clock[at];
            if [Is::Hot, Is::Gone].contains(&page.is) || skipped(page.lpn) {
                self.hand_cold = Some(self.after(at));
            } else if !page.referenced {
                return Some(at);
            } else {
                round = 0;
                self.take(at);
                let is = match page.is {
                    Is::Cold => Is::ColdInTest,
                    _ => Is::Hot,
                };
                let referenced = false;
                self.clock.push(Page {
                    is,
                    referenced,
                    ..page
                });
                if is == Is::Hot {
                    self.accessed_in_test();
                    self.hand_hot();
                }
            }
        }
        let mut hot = 0..self.clock.len();
        hot.find(|&at| self.clock[at].is == Is::Hot && !skipped(self.clock[at].lpn))
    }
    fn evict(&mut self, world: &World) -> Did {
        self.evicted = true;
        let mut found = None;
        if self.gcar && world.in_gc.contains(&true) {
            found = self.hand_cold(&|lpn| world.skipped(lpn));
        }
        let at = found.or_else(|| self.hand_cold(&|_| false));
        let at = at.expect("a full buffer has a victim");
        let page = self.clock[at];
        if page.is == Is::ColdInTest {
            // The page is evicted, but its entry stays in the clock. HAND_cold therefore stays at this entry, and so
            // does HAND_test if it is at this entry.
            self.clock[at].is = Is::Gone;
            self.clock[at].referenced = false;
        } else {
            self.take(at);
        }
        while self.number(&[Is::Gone]) > self.capacity {
            let at = self
                .hand_test
                .map_or(0, |lpn| self.at(lpn).expect("hands are at pages"));
            self.hand_test = Some(self.after(at));
            self.end_test(at);
        }
        Did {
            victims: vec![(page.lpn, page.dirty)],
            ..Did::default()
        }
    }
}

impl Naive for ClockPro {
    fn access(&mut self, world: &World, op: Op) -> Did {
        let at = self.at(op.lpn);
        if let Some(page) = at
            .map(|at| &mut self.clock[at])
            .filter(|page| page.is != Is::Gone)
        {
            page.dirty |= op.write;
            page.referenced = true;
            return Did::hit();
        }
        if let Some(at) = at {
            self.take(at);
            self.accessed_in_test();
        }
        let mut did = Did::default();
        if self.number(&[Is::Hot, Is::Cold, Is::ColdInTest]) == self.capacity {
            did = self.evict(world);
        }
        let fills = !self.evicted && self.number(&[Is::Hot]) < self.hot_max();
        self.clock.push(Page {
            lpn: op.lpn,
            is: if at.is_some() || fills {
                Is::Hot
            } else {
                Is::ColdInTest
            },
            dirty: op.write,
            referenced: false,
        });
        self.hand_hot();
        did
    }

    fn trim(&mut self, _world: &World, lpn: u32) {
        if let Some(at) = self.at(lpn).filter(|&at| self.clock[at].is != Is::Gone) {
            self.take(at);
        }
    }
}

#[test]
fn clock_pro_is_its_rule() {
    for (name, gcar) in [("clock-pro", false), ("gcar-clock-pro", true)] {
        let drawn = |rng: &mut Rng, capacity: u32| {
            let cold_min = rng.below(u64::from(capacity) + 1).to_string();
            vec![("cold_min".into(), cold_min)]
        };
        compare(name, drawn, |case| {
            let capacity = case.capacity as usize;
            let cold_min: usize = case.set[0].1.parse().expect("a number");
            let cold_min = cold_min.min(capacity - 1).max(1);
            ClockPro {
                capacity,
                gcar,
                cold_min,
                target: cold_min,
                clock: Vec::new(),
                hand_cold: None,
                hand_test: None,
                evicted: false,
            }
        });
    }
}
