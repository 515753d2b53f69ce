//! Naive implementations of page policies, as their papers define them, with lists and scans.
//!
//! Lists begin with the oldest page. With GCaR, the search for a victim skips pages on chips in GC. If it finds no
//! page, it is repeated without GCaR.

use super::harness::{Did, Naive, Op, World};

#[derive(Clone, Copy, Debug)]
struct Page {
    lpn: u32,
    dirty: bool,
    /// Reference bit, cold flag or count, depending on the policy.
    mark: u8,
}

type List = Vec<Page>;

fn find(list: &List, lpn: u32) -> Option<usize> {
    list.iter().position(|page| page.lpn == lpn)
}

/// Removes a page from the list that contains it, and returns it.
fn take(lists: [&mut List; 2], lpn: u32) -> Option<Page> {
    lists
        .into_iter()
        .find_map(|list| find(list, lpn).map(|at| list.remove(at)))
}

/// Moves a page to the newest end.
fn renew(list: &mut List, at: usize) -> &mut Page {
    let page = list.remove(at);
    list.push(page);
    list.last_mut().unwrap()
}

/// A search for a victim. It counts the entries that it examines.
struct Search<'a> {
    skipped: &'a dyn Fn(u32) -> bool,
    looked: u64,
}

impl Search<'_> {
    /// Returns the oldest page that is not skipped, and removes it from the list.
    fn oldest(&mut self, list: &mut List) -> Option<Page> {
        self.second_chance(list, |_| false)
    }

    /// Searches for a victim from the oldest end. If `chance` returns true for a page, the page moves to the newest
    /// end, and the search continues.
    fn second_chance(
        &mut self,
        list: &mut List,
        mut chance: impl FnMut(&mut Page) -> bool,
    ) -> Option<Page> {
        let mut at = 0;
        while at < list.len() {
            self.looked += 1;
            if (self.skipped)(list[at].lpn) {
                at += 1;
            } else if chance(&mut list[at]) {
                renew(list, at);
            } else {
                return Some(list.remove(at));
            }
        }
        None
    }
}

/// Makes room for a new page: evicts the page that `search` finds.
fn evict(gcar: bool, world: &World, mut search: impl FnMut(&mut Search) -> Option<Page>) -> Did {
    let mut looked = 0;
    let mut victim = None;
    if gcar && world.in_gc.contains(&true) {
        let skipped = |lpn| world.skipped(lpn);
        let mut by = Search {
            skipped: &skipped,
            looked,
        };
        victim = search(&mut by);
        looked = by.looked;
    }
    if victim.is_none() {
        let mut by = Search {
            skipped: &|_| false,
            looked,
        };
        victim = search(&mut by);
        looked = by.looked;
    }
    let victim = victim.expect("a full buffer has a victim");
    Did {
        victims: vec![(victim.lpn, victim.dirty)],
        inspected: Some(looked),
        ..Did::default()
    }
}

fn miss() -> Did {
    Did {
        inspected: Some(0),
        ..Did::default()
    }
}

fn hit() -> Did {
    Did {
        inspected: Some(0),
        ..Did::hit()
    }
}

fn new(op: Op, mark: u8) -> Page {
    Page {
        lpn: op.lpn,
        dirty: op.write,
        mark,
    }
}

/// FIFO, CLOCK and LRU-WSR, which have one list. They differ in the effect of a hit, and in the pages that get a second
/// chance.
pub struct OneList {
    pub capacity: usize,
    pub gcar: bool,
    pub rule: Rule,
    list: List,
}

#[derive(Clone, Copy)]
pub enum Rule {
    Fifo,
    Clock,
    LruWsr,
}

impl OneList {
    pub fn new(capacity: u32, gcar: bool, rule: Rule) -> OneList {
        OneList {
            capacity: capacity as usize,
            gcar,
            rule,
            list: List::new(),
        }
    }
}

impl Naive for OneList {
    fn access(&mut self, world: &World, op: Op) -> Did {
        if let Some(at) = find(&self.list, op.lpn) {
            self.list[at].dirty |= op.write;
            match self.rule {
                Rule::Fifo => {}
                Rule::Clock => self.list[at].mark = 1,
                Rule::LruWsr => renew(&mut self.list, at).mark = 0,
            }
            return hit();
        }
        let mut did = miss();
        if self.list.len() == self.capacity {
            let rule = self.rule;
            did = evict(self.gcar, world, |search| {
                search.second_chance(&mut self.list, |page| match rule {
                    Rule::Fifo => false,
                    Rule::Clock => std::mem::replace(&mut page.mark, 0) == 1,
                    Rule::LruWsr => page.dirty && std::mem::replace(&mut page.mark, 1) == 0,
                })
            });
        }
        self.list.push(new(op, 0));
        did
    }
    fn trim(&mut self, _world: &World, lpn: u32) {
        self.list.retain(|page| page.lpn != lpn);
    }
}

/// CLOCK, implemented as a ring of pages with a hand.
pub struct Ring {
    pub capacity: usize,
    ring: List,
    hand: usize,
}

impl Ring {
    pub fn new(capacity: u32) -> Ring {
        Ring {
            capacity: capacity as usize,
            ring: List::new(),
            hand: 0,
        }
    }
    fn remove(&mut self, at: usize) -> Page {
        if at < self.hand {
            self.hand -= 1;
        }
        let page = self.ring.remove(at);
        if self.hand == self.ring.len() {
            self.hand = 0;
        }
        page
    }
}

impl Naive for Ring {
    fn access(&mut self, world: &World, op: Op) -> Did {
        if let Some(at) = find(&self.ring, op.lpn) {
            self.ring[at].dirty |= op.write;
            self.ring[at].mark = 1;
            return hit();
        }
        let mut did = miss();
        if self.ring.len() == self.capacity {
            did = evict(false, world, |search| loop {
                search.looked += 1;
                if self.ring[self.hand].mark == 0 {
                    return Some(self.remove(self.hand));
                }
                self.ring[self.hand].mark = 0;
                self.hand = (self.hand + 1) % self.ring.len();
            });
        }
        // The new page is inserted just behind the hand.
        self.ring.insert(self.hand, new(op, 0));
        self.hand = (self.hand + 1) % self.ring.len();
        did
    }
    fn trim(&mut self, _world: &World, lpn: u32) {
        if let Some(at) = find(&self.ring, lpn) {
            self.remove(at);
        }
    }
}

pub struct Sieve {
    pub capacity: usize,
    pub gcar: bool,
    queue: List,
    hand: Option<u32>,
}

impl Sieve {
    pub fn new(capacity: u32, gcar: bool) -> Sieve {
        Sieve {
            capacity: capacity as usize,
            gcar,
            queue: List::new(),
            hand: None,
        }
    }
    fn remove(&mut self, at: usize) -> Page {
        if self.hand == Some(self.queue[at].lpn) {
            self.hand = self.queue.get(at + 1).map(|page| page.lpn);
        }
        self.queue.remove(at)
    }
}

impl Naive for Sieve {
    fn access(&mut self, world: &World, op: Op) -> Did {
        if let Some(at) = find(&self.queue, op.lpn) {
            self.queue[at].dirty |= op.write;
            self.queue[at].mark = 1;
            return hit();
        }
        let mut did = miss();
        if self.queue.len() == self.capacity {
            did = evict(self.gcar, world, |search| {
                if self.queue.iter().all(|page| (search.skipped)(page.lpn)) {
                    search.looked += self.queue.len() as u64;
                    return None;
                }
                let hand = self.hand.and_then(|lpn| find(&self.queue, lpn));
                let mut at = hand.unwrap_or(0);
                loop {
                    search.looked += 1;
                    let page = &mut self.queue[at];
                    if !(search.skipped)(page.lpn) {
                        if page.mark == 0 {
                            self.hand = Some(page.lpn);
                            return Some(self.remove(at));
                        }
                        page.mark = 0;
                    }
                    at = (at + 1) % self.queue.len();
                }
            });
        }
        self.queue.push(new(op, 0));
        did
    }
    fn trim(&mut self, _world: &World, lpn: u32) {
        if let Some(at) = find(&self.queue, lpn) {
            self.remove(at);
        }
    }
}

pub struct CcfLru {
    pub capacity: usize,
    pub gcar: bool,
    ml: List,
    ccl: List,
}

impl CcfLru {
    pub fn new(capacity: u32, gcar: bool) -> CcfLru {
        CcfLru {
            capacity: capacity as usize,
            gcar,
            ml: List::new(),
            ccl: List::new(),
        }
    }
}

impl Naive for CcfLru {
    fn access(&mut self, world: &World, op: Op) -> Did {
        if let Some(mut page) = take([&mut self.ml, &mut self.ccl], op.lpn) {
            page.dirty |= op.write;
            page.mark = 0;
            self.ml.push(page);
            return hit();
        }
        let mut did = miss();
        if self.ml.len() + self.ccl.len() == self.capacity {
            let (ml, ccl) = (&mut self.ml, &mut self.ccl);
            did = evict(self.gcar, world, |search| {
                if let Some(page) = search.oldest(ccl) {
                    return Some(page);
                }
                let mut at = 0;
                while at < ml.len() {
                    search.looked += 1;
                    if (search.skipped)(ml[at].lpn) {
                        at += 1;
                    } else if ml[at].mark == 1 {
                        return Some(ml.remove(at));
                    } else {
                        let mut page = ml.remove(at);
                        page.mark = 1;
                        let to = if page.dirty { &mut *ml } else { &mut *ccl };
                        to.push(page);
                    }
                }
                search.oldest(ccl)
            });
        }
        let to = if op.write {
            &mut self.ml
        } else {
            &mut self.ccl
        };
        to.push(new(op, 1));
        did
    }
    fn trim(&mut self, _world: &World, lpn: u32) {
        take([&mut self.ml, &mut self.ccl], lpn);
    }
}

pub struct AdLru {
    pub capacity: usize,
    pub gcar: bool,
    pub min_lc: usize,
    lc: List,
    lh: List,
}

impl AdLru {
    pub fn new(capacity: u32, gcar: bool, min_lc: usize) -> AdLru {
        AdLru {
            capacity: capacity as usize,
            gcar,
            min_lc,
            lc: List::new(),
            lh: List::new(),
        }
    }
}

impl Naive for AdLru {
    fn access(&mut self, world: &World, op: Op) -> Did {
        if let Some(mut page) = take([&mut self.lc, &mut self.lh], op.lpn) {
            page.dirty |= op.write;
            page.mark = 0;
            self.lh.push(page);
            return hit();
        }
        let mut did = miss();
        if self.lc.len() + self.lh.len() == self.capacity {
            let from_lc = self.lc.len() > self.min_lc || self.lh.is_empty();
            let mut lists = [&mut self.lc, &mut self.lh];
            if !from_lc {
                lists.reverse();
            }
            did = evict(self.gcar, world, |search| {
                lists.iter_mut().find_map(|list| {
                    let fc = list.iter().position(|page| !page.dirty);
                    for at in fc.unwrap_or(list.len())..list.len() {
                        search.looked += 1;
                        if !list[at].dirty && !(search.skipped)(list[at].lpn) {
                            return Some(list.remove(at));
                        }
                    }
                    search.second_chance(list, |page| std::mem::replace(&mut page.mark, 1) == 0)
                })
            });
        }
        self.lc.push(new(op, 0));
        did
    }
    fn trim(&mut self, _world: &World, lpn: u32) {
        take([&mut self.lc, &mut self.lh], lpn);
    }
}

pub struct TwoQ {
    pub capacity: usize,
    pub gcar: bool,
    pub k_in: usize,
    pub k_out: usize,
    a1in: List,
    am: List,
    a1out: Vec<u32>,
}

impl TwoQ {
    pub fn new(capacity: u32, gcar: bool, k_in: usize, k_out: usize) -> TwoQ {
        TwoQ {
            capacity: capacity as usize,
            gcar,
            k_in,
            k_out,
            a1in: List::new(),
            am: List::new(),
            a1out: Vec::new(),
        }
    }
}

impl Naive for TwoQ {
    fn access(&mut self, world: &World, op: Op) -> Did {
        if let Some(at) = find(&self.am, op.lpn) {
            renew(&mut self.am, at).dirty |= op.write;
            return hit();
        }
        if let Some(at) = find(&self.a1in, op.lpn) {
            self.a1in[at].dirty |= op.write;
            return hit();
        }
        let remembered = self.a1out.contains(&op.lpn);
        self.a1out.retain(|&lpn| lpn != op.lpn);
        let mut did = miss();
        if self.a1in.len() + self.am.len() == self.capacity {
            let (a1in, am, a1out) = (&mut self.a1in, &mut self.am, &mut self.a1out);
            let (from_a1in, k_out) = (a1in.len() > self.k_in, self.k_out);
            let mut page_out = |search: &mut Search, from_a1in: bool| {
                if !from_a1in {
                    return search.oldest(am);
                }
                let page = search.oldest(a1in)?;
                a1out.push(page.lpn);
                if a1out.len() > k_out {
                    a1out.remove(0);
                }
                Some(page)
            };
            did = evict(self.gcar, world, |search| {
                page_out(search, from_a1in).or_else(|| page_out(search, !from_a1in))
            });
        }
        let to = if remembered {
            &mut self.am
        } else {
            &mut self.a1in
        };
        to.push(new(op, 0));
        did
    }
    fn trim(&mut self, _world: &World, lpn: u32) {
        take([&mut self.a1in, &mut self.am], lpn);
    }
}

/// ARC as in Fig. 4 of the paper, with two changes: "=" is replaced by `>=`, and the buffer need not be full. Both
/// changes have an effect only after trims.
pub struct Arc {
    pub c: usize,
    pub gcar: bool,
    p: f64,
    t1: List,
    t2: List,
    b1: Vec<u32>,
    b2: Vec<u32>,
}

impl Arc {
    pub fn new(capacity: u32, gcar: bool) -> Arc {
        Arc {
            c: capacity as usize,
            gcar,
            p: 0.0,
            t1: List::new(),
            t2: List::new(),
            b1: Vec::new(),
            b2: Vec::new(),
        }
    }
    fn full(&self) -> bool {
        self.t1.len() + self.t2.len() == self.c
    }
    fn replace(&mut self, world: &World, in_b2: bool) -> Did {
        if !self.full() {
            return miss();
        }
        let t1 = self.t1.len() as f64;
        let from_t1 = !self.t1.is_empty() && ((in_b2 && t1 == self.p) || t1 > self.p);
        evict(self.gcar, world, |search| {
            [from_t1, !from_t1].into_iter().find_map(|from_t1| {
                let (list, ghosts) = match from_t1 {
                    true => (&mut self.t1, &mut self.b1),
                    false => (&mut self.t2, &mut self.b2),
                };
                let page = search.oldest(list)?;
                ghosts.push(page.lpn);
                Some(page)
            })
        })
    }
}

impl Naive for Arc {
    fn access(&mut self, world: &World, op: Op) -> Did {
        // Case I of the figure: the page is in T1 or T2.
        if let Some(mut page) = take([&mut self.t1, &mut self.t2], op.lpn) {
            page.dirty |= op.write;
            self.t2.push(page);
            return hit();
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if let Some(at) = self.b1.iter().position(|&lpn| lpn == op.lpn) {
            // Case II of the figure: the page is in B1.
            let delta = if b1 >= b2 { 1.0 } else { b2 / b1 };
            self.p = (self.p + delta).min(self.c as f64);
            let did = self.replace(world, false);
            self.b1.remove(at);
            self.t2.push(new(op, 0));
            return did;
        }
        if let Some(at) = self.b2.iter().position(|&lpn| lpn == op.lpn) {
            // Case III of the figure: the page is in B2.
            let delta = if b2 >= b1 { 1.0 } else { b1 / b2 };
            self.p = (self.p - delta).max(0.0);
            let did = self.replace(world, true);
            self.b2.remove(at);
            self.t2.push(new(op, 0));
            return did;
        }
        // Case IV of the figure: the page is in none of the lists.
        let l1 = self.t1.len() + self.b1.len();
        let mut did = miss();
        if l1 >= self.c {
            if !self.b1.is_empty() {
                self.b1.remove(0);
            }
            if self.t1.len() < self.c {
                did = self.replace(world, false);
            } else {
                did = evict(self.gcar, world, |search| search.oldest(&mut self.t1));
            }
        } else if l1 + self.t2.len() + self.b2.len() >= self.c {
            if l1 + self.t2.len() + self.b2.len() >= 2 * self.c {
                self.b2.remove(0);
            }
            did = self.replace(world, false);
        }
        self.t1.push(new(op, 0));
        did
    }
    fn trim(&mut self, _world: &World, lpn: u32) {
        take([&mut self.t1, &mut self.t2], lpn);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Lir,
    Hir,
    /// A HIR page that is no longer cached.
    Gone,
}

pub struct Lirs {
    pub capacity: usize,
    pub gcar: bool,
    pub lir_pages: usize,
    /// Stack S. The bottom is first.
    stack: Vec<(u32, Is)>,
    /// Queue Q. The front is first.
    queue: Vec<u32>,
    /// Pages of S that are no longer cached, in the order of eviction.
    gone: Vec<u32>,
    dirty: Vec<u32>,
}

impl Lirs {
    pub fn new(capacity: u32, gcar: bool, hir_pages: u32) -> Lirs {
        Lirs {
            capacity: capacity as usize,
            gcar,
            lir_pages: (capacity - hir_pages.max(1)) as usize,
            stack: Vec::new(),
            queue: Vec::new(),
            gone: Vec::new(),
            dirty: Vec::new(),
        }
    }
    fn lirs(&self) -> usize {
        self.stack.iter().filter(|e| e.1 == Is::Lir).count()
    }
    fn prune(&mut self) {
        while self.stack.first().is_some_and(|e| e.1 != Is::Lir) {
            self.stack.remove(0);
        }
        let stack = &self.stack;
        self.gone.retain(|&lpn| stack.contains(&(lpn, Is::Gone)));
    }
    fn push(&mut self, lpn: u32, is: Is) {
        self.stack.retain(|e| e.0 != lpn);
        self.stack.push((lpn, is));
        self.queue.retain(|&q| q != lpn);
        if is == Is::Hir {
            self.queue.push(lpn);
        }
        if self.lirs() > self.lir_pages {
            let bottom = self.stack.remove(0);
            assert_eq!(bottom.1, Is::Lir);
            self.queue.push(bottom.0);
        }
        self.prune();
        if self.stack.len() > 2 * self.capacity {
            let first = self.gone.remove(0);
            self.stack.retain(|e| e.0 != first);
        }
    }
    fn page(&self, lpn: u32) -> Page {
        Page {
            lpn,
            dirty: self.dirty.contains(&lpn),
            mark: 0,
        }
    }
    fn leave(&mut self, search: &mut Search) -> Option<Page> {
        for at in 0..self.queue.len() {
            search.looked += 1;
            let lpn = self.queue[at];
            if !(search.skipped)(lpn) {
                self.queue.remove(at);
                if let Some(entry) = self.stack.iter_mut().find(|e| e.0 == lpn) {
                    entry.1 = Is::Gone;
                    self.gone.push(lpn);
                }
                return Some(self.page(lpn));
            }
        }
        for at in 0..self.stack.len() {
            search.looked += 1;
            let (lpn, is) = self.stack[at];
            if is == Is::Lir && !(search.skipped)(lpn) {
                self.stack.remove(at);
                self.prune();
                return Some(self.page(lpn));
            }
        }
        None
    }
}

impl Naive for Lirs {
    fn access(&mut self, world: &World, op: Op) -> Did {
        let in_stack = self.stack.iter().find(|e| e.0 == op.lpn).map(|e| e.1);
        let queued = self.queue.contains(&op.lpn);
        if in_stack == Some(Is::Lir) || queued {
            if op.write {
                self.dirty.push(op.lpn);
            }
            let is = if in_stack.is_some() { Is::Lir } else { Is::Hir };
            self.push(op.lpn, is);
            return hit();
        }
        if in_stack.is_some() {
            // Before anything else, the page is moved to the top of S.
            self.stack.retain(|e| e.0 != op.lpn);
            self.gone.retain(|&lpn| lpn != op.lpn);
        }
        let mut did = miss();
        if self.lirs() + self.queue.len() == self.capacity {
            did = evict(self.gcar, world, |search| self.leave(search));
        }
        self.dirty.retain(|&lpn| lpn != op.lpn);
        if op.write {
            self.dirty.push(op.lpn);
        }
        let hir_pages = self.capacity - self.lir_pages;
        let starts = self.lirs() < self.lir_pages && self.queue.len() < hir_pages;
        let lir = in_stack.is_some() || starts;
        self.push(op.lpn, if lir { Is::Lir } else { Is::Hir });
        did
    }
    fn trim(&mut self, _world: &World, lpn: u32) {
        self.stack.retain(|&e| e.0 != lpn || e.1 == Is::Gone);
        self.queue.retain(|&q| q != lpn);
        self.prune();
    }
}

/// S3-FIFO as in Algorithm 1 of the paper, with one change: until the first eviction, a page for which S has no room is
/// inserted into M.
pub struct S3Fifo {
    pub capacity: usize,
    pub gcar: bool,
    pub small_pages: usize,
    pub ghost_pages: usize,
    small: List,
    main: List,
    ghosts: Vec<u32>,
    evicted: bool,
}

impl S3Fifo {
    pub fn new(capacity: u32, gcar: bool, small_pages: usize, ghost_pages: usize) -> S3Fifo {
        S3Fifo {
            capacity: capacity as usize,
            gcar,
            small_pages,
            ghost_pages,
            small: List::new(),
            main: List::new(),
            ghosts: Vec::new(),
            evicted: false,
        }
    }
    fn evict_small(&mut self, search: &mut Search) -> Option<Page> {
        let mut at = 0;
        while at < self.small.len() {
            search.looked += 1;
            if (search.skipped)(self.small[at].lpn) {
                at += 1;
                continue;
            }
            let mut page = self.small.remove(at);
            if page.mark > 1 {
                page.mark = 0;
                self.main.push(page);
                continue;
            }
            self.ghosts.push(page.lpn);
            if self.ghosts.len() > self.ghost_pages {
                self.ghosts.remove(0);
            }
            return Some(page);
        }
        None
    }
    fn evict_main(&mut self, search: &mut Search) -> Option<Page> {
        search.second_chance(&mut self.main, |page| {
            let again = page.mark > 0;
            page.mark = page.mark.saturating_sub(1);
            again
        })
    }
}

impl Naive for S3Fifo {
    fn access(&mut self, world: &World, op: Op) -> Did {
        for list in [&mut self.small, &mut self.main] {
            if let Some(at) = find(list, op.lpn) {
                list[at].dirty |= op.write;
                list[at].mark = (list[at].mark + 1).min(3);
                return hit();
            }
        }
        let remembered = self.ghosts.contains(&op.lpn);
        self.ghosts.retain(|&lpn| lpn != op.lpn);
        let mut did = miss();
        if self.small.len() + self.main.len() == self.capacity {
            self.evicted = true;
            did = evict(self.gcar, world, |search| {
                // The buffer is full. Therefore, M is larger than its share exactly if S is smaller than its own share.
                if self.small.len() < self.small_pages || self.small.is_empty() {
                    if let Some(page) = self.evict_main(search) {
                        return Some(page);
                    }
                }
                self.evict_small(search).or_else(|| self.evict_main(search))
            });
        }
        let in_small = self.evicted || self.small.len() < self.small_pages;
        let to = match in_small && !remembered {
            true => &mut self.small,
            false => &mut self.main,
        };
        to.push(new(op, 0));
        did
    }
    fn trim(&mut self, _world: &World, lpn: u32) {
        take([&mut self.small, &mut self.main], lpn);
    }
}

/// Returns the largest number of hits that is possible, by trying all choices of victims.
pub fn most_hits(accesses: &[u32], cached: &[u32], capacity: usize) -> u64 {
    let Some((&lpn, later)) = accesses.split_first() else {
        return 0;
    };
    if cached.contains(&lpn) {
        return 1 + most_hits(later, cached, capacity);
    }
    let with = |cached: &[u32]| most_hits(later, &[cached, &[lpn]].concat(), capacity);
    if cached.len() < capacity {
        return with(cached);
    }
    let choices = (0..cached.len()).map(|victim| {
        let mut rest = cached.to_vec();
        rest.remove(victim);
        with(&rest)
    });
    choices.max().unwrap_or(0)
}
