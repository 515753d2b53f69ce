//! Naive implementations of the block policies, with lists and scans.
//!
//! [`Buffer`] implements the parts that all policies have in common: hits, dirty pages, room, the separate read cache,
//! and a second search without GCaR if the first finds no victim. A [`Rule`] only orders blocks. Lists begin with the
//! most recent entry.

use std::collections::{BTreeMap, BTreeSet};

use super::harness::{Case, Did, Naive, Op, World};
use flashtwin::buffer::{Blocking, Blocks as BlockKind, Setup};
use flashtwin::component::{Pages, Value};
use flashtwin::Lpn;

/// Returns the logical block of a page, and the offset of the page in this block.
fn block_of(setup: &Setup, lpn: u32) -> (u32, u32) {
    let word: String = setup.settings.get("blocks");
    let blocks = BlockKind::from_word(&word).expect("a kind of blocks");
    Blocking::new(setup, blocks).block_of(Lpn(lpn))
}

/// Pages evicted together.
#[derive(Default)]
pub struct Out {
    pub pages: BTreeSet<u32>,
    pub padding: Vec<u32>,
    pub merged: Vec<u32>,
}

/// Input of a search for a victim, with a counter of the entries examined.
pub struct Look<'a> {
    pub world: &'a World,
    pub op: Op,
    /// Whether the search skips blocks with pages on chips in GC.
    pub filter: bool,
    pub dirty: &'a BTreeMap<u32, bool>,
    pub read_cache: &'a [u32],
    pub looked: u64,
}

impl Look<'_> {
    /// Returns whether GCaR skips a block with these cached pages.
    fn skips(&self, setup: &Setup, pages: &BTreeSet<u32>) -> bool {
        let in_gc = pages.iter().filter(|&&p| self.world.skipped(p)).count();
        let is = match setup.settings.value("block_in_gc") {
            // Req-block does not have this parameter.
            None => in_gc > 0,
            Some(Value::Text(word)) => match word.as_str() {
                "any" => in_gc > 0,
                "all" => in_gc == pages.len(),
                "majority" => 2 * in_gc > pages.len(),
                other => unreachable!("{other}"),
            },
            Some(other) => unreachable!("{other:?}"),
        };
        self.filter && is
    }
}

pub trait Rule {
    fn holds(&self, lpn: u32) -> bool;
    fn hit(&mut self, op: Op);
    fn insert(&mut self, op: Op);
    fn forget(&mut self, lpn: u32);
    fn evict(&mut self, look: &mut Look) -> Option<Out>;
    fn read_cache_is(&mut self, _pages: &[u32]) {}
    /// Returns whether the policy has no room for this page, although the buffer has room for one more page.
    fn lacks_room(&self, _op: Op) -> bool {
        false
    }
    /// Called when an access begins.
    fn arrives(&mut self, _op: Op) {}
    /// Called when an access has ended.
    fn ended(&mut self) {}
    /// Whether a page that is read is inserted.
    fn admits_reads(&self) -> bool;
}

pub struct Buffer<R> {
    rule: R,
    gcar: bool,
    capacity: usize,
    dirty: BTreeMap<u32, bool>,
    read_capacity: usize,
    read_cache: Vec<u32>,
}

impl<R: Rule> Buffer<R> {
    pub fn new(case: &Case, gcar: bool, rule: R) -> Buffer<R> {
        let read_cache = case.set.iter().find(|(key, _)| key == "read_cache");
        Buffer {
            rule,
            gcar,
            capacity: case.capacity as usize,
            dirty: BTreeMap::new(),
            read_capacity: read_cache.map_or(0, |(_, pages)| pages.parse().unwrap()),
            read_cache: Vec::new(),
        }
    }

    fn look_up(&mut self, world: &World, op: Op) -> Did {
        let mut did = Did {
            inspected: Some(0),
            ..Did::default()
        };
        if self.rule.holds(op.lpn) {
            self.rule.hit(op);
            *self.dirty.get_mut(&op.lpn).unwrap() |= op.write;
            did.hit = true;
            return did;
        }
        if let Some(i) = self.read_cache.iter().position(|&p| p == op.lpn) {
            self.read_cache.remove(i);
            if !op.write {
                self.read_cache.insert(0, op.lpn);
                did.hit = true;
                return did;
            }
            self.rule.read_cache_is(&self.read_cache);
        }
        if !op.write && self.read_capacity > 0 {
            if self.read_cache.len() == self.read_capacity {
                let lpn = self.read_cache.pop().unwrap();
                did.victims.push((lpn, false));
                did.inspected = Some(1);
                self.rule.read_cache_is(&self.read_cache);
            }
            self.read_cache.insert(0, op.lpn);
            self.rule.read_cache_is(&self.read_cache);
        } else if op.write || self.rule.admits_reads() {
            if self.dirty.len() == self.capacity || self.rule.lacks_room(op) {
                self.make_room(world, op, &mut did);
            }
            self.rule.insert(op);
            self.dirty.insert(op.lpn, op.write);
        }
        did
    }

    fn make_room(&mut self, world: &World, op: Op, did: &mut Did) {
        let mut look = Look {
            world,
            op,
            filter: self.gcar && world.in_gc.contains(&true),
            dirty: &self.dirty,
            read_cache: &self.read_cache,
            looked: 0,
        };
        let found = self.rule.evict(&mut look);
        let out = found.unwrap_or_else(|| {
            look.filter = false;
            self.rule
                .evict(&mut look)
                .expect("a full buffer has a victim")
        });
        did.inspected = Some(look.looked);
        did.padding = out.padding;
        did.merged = out.merged;
        for lpn in out.pages {
            did.victims.push((lpn, self.dirty.remove(&lpn).unwrap()));
        }
    }
}

impl<R: Rule> Naive for Buffer<R> {
    fn access(&mut self, world: &World, op: Op) -> Did {
        self.rule.arrives(op);
        let did = self.look_up(world, op);
        self.rule.ended();
        did
    }

    fn trim(&mut self, _world: &World, lpn: u32) {
        if self.dirty.remove(&lpn).is_some() {
            self.rule.forget(lpn);
        }
        self.read_cache.retain(|&p| p != lpn);
        self.rule.read_cache_is(&self.read_cache);
    }
}

/// A block, with all data that any rule stores for a block.
#[derive(Clone, Default)]
pub struct Block {
    number: u32,
    pages: BTreeSet<u32>,
    /// Highest offset written so far, if the block was written in sequence from offset 0; `None` if not.
    seq: Option<u32>,
    referenced: bool,
    at: u64,
    writes: u64,
}

/// The list of blocks of a rule.
pub struct Blocks {
    setup: Setup,
    list: Vec<Block>,
}

impl Blocks {
    fn new(case: &Case) -> Blocks {
        Blocks {
            setup: case.setup.clone(),
            list: Vec::new(),
        }
    }
    fn number(&self, lpn: u32) -> u32 {
        block_of(&self.setup, lpn).0
    }
    fn holds(&self, lpn: u32) -> bool {
        self.list.iter().any(|b| b.pages.contains(&lpn))
    }
    fn find(&self, number: u32) -> Option<usize> {
        self.list.iter().position(|b| b.number == number)
    }
    /// Removes the block of a page from the list, or creates the block if it is not in the list. Adds the page to the
    /// block.
    fn take(&mut self, lpn: u32) -> Block {
        let number = self.number(lpn);
        let mut block = match self.find(number) {
            Some(i) => self.list.remove(i),
            None => Block {
                number,
                ..Block::default()
            },
        };
        block.pages.insert(lpn);
        block
    }
    /// Removes a page from its block. The block keeps its position in the list. If no page is left, the block is
    /// removed.
    fn forget(&mut self, lpn: u32) {
        for block in &mut self.list {
            block.pages.remove(&lpn);
        }
        self.list.retain(|b| !b.pages.is_empty());
    }
    fn evict(&mut self, i: usize) -> Out {
        Out {
            pages: self.list.remove(i).pages,
            ..Out::default()
        }
    }
    /// Returns the position of the block with the most pages, among the given positions. Of several such blocks,
    /// returns the largest position.
    fn largest(&self, places: impl Iterator<Item = usize>) -> Option<usize> {
        places.max_by_key(|&i| (self.list[i].pages.len(), i))
    }
    /// Returns the number of buffer pages that the blocks reserve. `None` if a block takes only the room of its cached
    /// pages.
    fn room(&self) -> Option<u32> {
        let is_whole = self.setup.settings.get::<String>("room") == "whole";
        is_whole.then(|| self.list.len() as u32 * self.setup.pages_per_block)
    }
    /// Returns whether the page would open a new block for which the buffer has no room. The first block always has
    /// room.
    fn lacks_room(&self, lpn: u32) -> bool {
        let more = self.setup.pages_per_block;
        self.find(self.number(lpn)).is_none()
            && !self.list.is_empty()
            && self
                .room()
                .is_some_and(|room| room + more > self.setup.capacity)
    }
    fn reads(&self) -> bool {
        self.setup.settings.get::<bool>("cache_reads")
    }
}

/// Methods shared by all rules that have only a list of blocks as their state.
macro_rules! on_blocks {
    () => {
        fn holds(&self, lpn: u32) -> bool {
            self.0.holds(lpn)
        }
        fn forget(&mut self, lpn: u32) {
            self.0.forget(lpn);
        }
        fn admits_reads(&self) -> bool {
            self.0.reads()
        }
        fn hit(&mut self, op: Op) {
            if op.write || self.0.reads() {
                self.insert(op);
            }
        }
    };
}

pub struct Bplru(Blocks);

impl Bplru {
    pub fn new(case: &Case) -> Bplru {
        Bplru(Blocks::new(case))
    }
}

impl Rule for Bplru {
    on_blocks!();
    fn lacks_room(&self, op: Op) -> bool {
        self.0.lacks_room(op.lpn)
    }
    fn insert(&mut self, op: Op) {
        let mut block = self.0.take(op.lpn);
        let (_, offset) = block_of(&self.0.setup, op.lpn);
        let n = self.0.setup.pages_per_block;
        let mut whole = false;
        if op.write {
            let extends = offset == 0 || block.seq == Some(offset.wrapping_sub(1));
            block.seq = extends.then_some(offset);
            whole = block.seq == Some(n - 1);
        }
        if whole && self.0.setup.settings.get::<bool>("compensation") {
            self.0.list.push(block);
        } else {
            self.0.list.insert(0, block);
        }
    }
    fn evict(&mut self, look: &mut Look) -> Option<Out> {
        let setup = self.0.setup.clone();
        let current = self.0.number(look.op.lpn);
        let mut found = None;
        for i in (0..self.0.list.len()).rev() {
            look.looked += 1;
            let block = &self.0.list[i];
            if block.number != current && !look.skips(&setup, &block.pages) {
                found = Some(i);
                break;
            }
        }
        let alone = self.0.list.len() == 1;
        let only = |&i: &usize| alone && !look.skips(&setup, &self.0.list[i].pages);
        let i = found.or_else(|| self.0.find(current).filter(only))?;
        let number = self.0.list[i].number;
        let mut out = self.0.evict(i);
        if setup.settings.get::<bool>("padding") && out.pages.iter().any(|p| look.dirty[p]) {
            let of_block = (0..1000).filter(|&p| block_of(&setup, p).0 == number);
            out.padding = of_block.filter(|p| !out.pages.contains(p)).collect();
        }
        Some(out)
    }
}

pub struct Fab(Blocks);

impl Fab {
    pub fn new(case: &Case) -> Fab {
        Fab(Blocks::new(case))
    }
}

impl Rule for Fab {
    on_blocks!();
    fn lacks_room(&self, op: Op) -> bool {
        self.0.lacks_room(op.lpn)
    }
    fn insert(&mut self, op: Op) {
        let block = self.0.take(op.lpn);
        self.0.list.insert(0, block);
    }
    fn evict(&mut self, look: &mut Look) -> Option<Out> {
        let blocks = &self.0;
        look.looked += blocks.list.len() as u64;
        let free = |&i: &usize| !look.skips(&blocks.setup, &blocks.list[i].pages);
        let i = blocks.largest((0..blocks.list.len()).filter(free))?;
        Some(self.0.evict(i))
    }
}

/// Blocks in the order of the clock, starting at the hand.
pub struct LbClock(Blocks);

impl LbClock {
    pub fn new(case: &Case) -> LbClock {
        LbClock(Blocks::new(case))
    }
}

impl Rule for LbClock {
    on_blocks!();
    fn insert(&mut self, op: Op) {
        if let Some(i) = self.0.find(self.0.number(op.lpn)) {
            self.0.list[i].pages.insert(op.lpn);
            self.0.list[i].referenced = true;
        } else {
            let block = self.0.take(op.lpn);
            self.0.list.push(block);
        }
    }
    fn evict(&mut self, look: &mut Look) -> Option<Out> {
        let setup = self.0.setup.clone();
        let ring = &mut self.0.list;
        let mut hand = 0;
        loop {
            let block = ring.get(hand)?;
            if look.skips(&setup, &block.pages) {
                hand += 1;
            } else if block.referenced {
                let mut block = ring.remove(hand);
                block.referenced = false;
                ring.push(block);
                look.looked += 1;
            } else {
                break;
            }
        }
        look.looked += ring.len() as u64;
        let cold = |&i: &usize| !ring[i].referenced && !look.skips(&setup, &ring[i].pages);
        let cold = (0..ring.len()).filter(cold);
        let i = cold.min_by_key(|&i| (std::cmp::Reverse(ring[i].pages.len()), i))?;
        Some(self.0.evict(i))
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => common_divisor(b, a % b),
    }
}

pub struct PudLru {
    blocks: Blocks,
    now: u64,
}

impl PudLru {
    pub fn new(case: &Case) -> PudLru {
        PudLru {
            blocks: Blocks::new(case),
            now: 0,
        }
    }
}

impl Rule for PudLru {
    fn holds(&self, lpn: u32) -> bool {
        self.blocks.holds(lpn)
    }
    fn forget(&mut self, lpn: u32) {
        self.blocks.forget(lpn);
    }
    fn admits_reads(&self) -> bool {
        self.blocks.reads()
    }
    fn hit(&mut self, op: Op) {
        if op.write || self.blocks.reads() {
            self.insert(op);
        }
    }
    fn insert(&mut self, op: Op) {
        self.now += u64::from(op.write);
        let mut block = self.blocks.take(op.lpn);
        if block.writes == 0 {
            block.at = self.now;
            block.writes = 1;
        } else {
            block.writes += u64::from(op.write);
        }
        self.blocks.list.insert(0, block);
    }
    fn evict(&mut self, look: &mut Look) -> Option<Out> {
        let now = self.now + u64::from(look.op.write);
        let list = &self.blocks.list;
        // The least common multiple of 1 to 46. Dividing it by any of these numbers leaves no remainder.
        let unit: u64 = (1..=46).fold(1, |all, f| all / common_divisor(all, f) * f);
        let pud = |b: &Block| u128::from(now - b.at) * u128::from(unit / b.writes);
        let puds: Vec<u128> = list.iter().map(pud).collect();
        let sum: u128 = puds.iter().sum();
        look.looked += list.len() as u64;
        let free = |&i: &usize| !look.skips(&self.blocks.setup, &list[i].pages);
        let free: Vec<usize> = (0..list.len()).filter(free).collect();
        let order = |&i: &usize, &j: &usize| {
            let (a, b) = (&list[i], &list[j]);
            let distances = ((now - a.at) * b.writes).cmp(&((now - b.at) * a.writes));
            let pages = a.pages.len().cmp(&b.pages.len());
            pages.then(distances).then(i.cmp(&j))
        };
        let above = free.iter().copied();
        let above = above.filter(|&i| puds[i] * list.len() as u128 > sum);
        let i = above
            .max_by(order)
            .or_else(|| free.iter().copied().max_by(order))?;
        Some(self.blocks.evict(i))
    }
}

pub struct Bpac {
    clusters: Blocks,
    /// Pages that are not in a cluster yet, the most recent first.
    pages: Vec<u32>,
    /// For each page, the value of `now` when it was last inserted.
    written: BTreeMap<u32, u64>,
    capacity: u64,
    now: u64,
    l_p: usize,
    age: u64,
    /// Numbers of page rewrites, by distance. A distance is the number of insertions since the rewritten page was last
    /// inserted.
    rewrites: BTreeMap<u64, u64>,
    growth: BTreeMap<u64, u64>,
}

/// Returns the least distance that at least 90 % of the counted cases do not exceed. Then halves all counts.
fn cover(counts: &mut BTreeMap<u64, u64>) -> Option<u64> {
    let all: u64 = counts.values().sum();
    let mut seen = 0;
    let found = counts.iter().find(|(_, &n)| {
        seen += n;
        seen * 10 >= all * 9
    });
    let found = found.map(|(&distance, _)| distance);
    for n in counts.values_mut() {
        *n /= 2;
    }
    counts.retain(|_, n| *n > 0);
    found
}

impl Bpac {
    pub fn new(case: &Case) -> Bpac {
        Bpac {
            clusters: Blocks::new(case),
            pages: Vec::new(),
            written: BTreeMap::new(),
            capacity: case.capacity.into(),
            now: 0,
            l_p: case.setup.settings.get::<Pages>("l_p").0 as usize,
            age: case.setup.settings.get::<Pages>("age").0.into(),
            rewrites: BTreeMap::new(),
            growth: BTreeMap::new(),
        }
    }
}

impl Rule for Bpac {
    fn holds(&self, lpn: u32) -> bool {
        self.pages.contains(&lpn) || self.clusters.holds(lpn)
    }
    fn forget(&mut self, lpn: u32) {
        self.pages.retain(|&p| p != lpn);
        self.clusters.forget(lpn);
    }
    fn admits_reads(&self) -> bool {
        self.clusters.reads()
    }
    fn hit(&mut self, op: Op) {
        if op.write || self.clusters.reads() {
            let distance = self.now + 1 - self.written[&op.lpn];
            *self
                .rewrites
                .entry(distance.min(self.capacity))
                .or_default() += 1;
            self.forget(op.lpn);
            self.insert(op);
        }
    }
    fn lacks_room(&self, _op: Op) -> bool {
        let pages = self.pages.len() as u64 + 1;
        !self.clusters.list.is_empty()
            && (self.clusters.room()).is_some_and(|room| u64::from(room) + pages > self.capacity)
    }
    fn insert(&mut self, op: Op) {
        self.now += 1;
        self.pages.insert(0, op.lpn);
        self.written.insert(op.lpn, self.now);
        while self.pages.len() > self.l_p {
            let lpn = self.pages.pop().unwrap();
            let mut cluster = self.clusters.take(lpn);
            if cluster.pages.len() > 1 {
                let distance = self.now - cluster.at;
                *self.growth.entry(distance.min(self.capacity)).or_default() += 1;
            }
            cluster.at = self.now;
            self.clusters.list.insert(0, cluster);
        }
        if self.clusters.setup.settings.get::<bool>("adapt")
            && self.now.is_multiple_of(self.capacity)
        {
            if let Some(distance) = cover(&mut self.rewrites) {
                let (least, most) = (self.capacity / 10, self.capacity * 9 / 10);
                self.l_p = distance.clamp(least.max(1), most.max(1)) as usize;
            }
            if let Some(distance) = cover(&mut self.growth) {
                self.age = distance.max(1);
            }
        }
    }
    fn evict(&mut self, look: &mut Look) -> Option<Out> {
        let clusters = &self.clusters;
        let free = |i: usize| !look.skips(&clusters.setup, &clusters.list[i].pages);
        let places = (0..clusters.list.len()).rev();
        let grown = |&i: &usize| self.now + 1 - clusters.list[i].at > self.age;
        let grown: Vec<usize> = places.clone().filter(grown).collect();
        let mut looked = grown.len() as u64;
        let mut found = clusters.largest(grown.iter().copied().filter(|&i| free(i)));
        if found.is_none() {
            for i in places.filter(|i| !grown.contains(i)) {
                looked += 1;
                if free(i) {
                    found = Some(i);
                    break;
                }
            }
        }
        if let Some(i) = found {
            look.looked += looked;
            return Some(self.clusters.evict(i));
        }
        for i in (0..self.pages.len()).rev() {
            looked += 1;
            if !(look.filter && look.world.skipped(self.pages[i])) {
                look.looked += looked;
                return Some(Out {
                    pages: BTreeSet::from([self.pages.remove(i)]),
                    ..Out::default()
                });
            }
        }
        look.looked += looked;
        None
    }
}

pub struct Cbm {
    setup: Setup,
    region: Vec<u32>,
    /// Blocks of the block region. `at` is the number of the last write to the block.
    blocks: Blocks,
    /// For each block, its popularity, and the request that was last counted in it.
    popularity: BTreeMap<u32, (u32, u64)>,
    read_cache: Vec<u32>,
    threshold: usize,
    now: u64,
    /// For each block, the number of the last write to it.
    written: BTreeMap<u32, u64>,
    /// The block to which the current access belongs.
    arriving: Option<u32>,
}

impl Cbm {
    pub fn new(case: &Case) -> Cbm {
        let settings = &case.setup.settings;
        let n = case.pages_per_block;
        Cbm {
            setup: case.setup.clone(),
            region: Vec::new(),
            blocks: Blocks::new(case),
            popularity: BTreeMap::new(),
            read_cache: Vec::new(),
            threshold: match settings.get::<u32>("threshold") {
                0 => settings
                    .get::<u32>("threshold_floor")
                    .clamp(2, n.max(2))
                    .min(n) as usize,
                fixed => fixed as usize,
            },
            now: 0,
            written: BTreeMap::new(),
            arriving: None,
        }
    }
    /// Moves the pages of a block from the page region to the block region if their number reaches the threshold.
    fn migrate(&mut self, number: u32) {
        let pages = self.in_region(number);
        if pages.len() >= self.threshold {
            self.region.retain(|p| !pages.contains(p));
            self.blocks.list.push(Block {
                number,
                pages,
                at: self.written[&number],
                ..Block::default()
            });
            self.grown();
        }
    }
    fn in_region(&self, number: u32) -> BTreeSet<u32> {
        let of_block = |&&p: &&u32| self.blocks.number(p) == number;
        self.region.iter().filter(of_block).copied().collect()
    }
    fn count(&mut self, op: Op) {
        self.now += 1;
        let number = self.blocks.number(op.lpn);
        self.written.insert(number, self.now);
        let (popularity, last) = self.popularity.entry(number).or_default();
        if *popularity == 0 || *last != op.request {
            *popularity += 1;
            *last = op.request;
        }
    }
    fn forget_popularity(&mut self) {
        let (blocks, region, cache) = (&self.blocks, &self.region, &self.read_cache);
        let arriving = self.arriving;
        self.popularity.retain(|&number, _| {
            let mut pages = region.iter().chain(cache);
            arriving == Some(number)
                || blocks.find(number).is_some()
                || pages.any(|&p| blocks.number(p) == number)
        });
    }
    fn grown(&mut self) {
        let pages: usize = self.blocks.list.iter().map(|b| b.pages.len()).sum();
        let settings = &self.setup.settings;
        let share = pages as f64 / f64::from(self.setup.capacity);
        if settings.get::<u32>("threshold") == 0 && share > settings.get::<f64>("theta") {
            self.threshold = (self.threshold * 2).min(self.setup.pages_per_block as usize);
        }
    }
}

impl Rule for Cbm {
    fn holds(&self, lpn: u32) -> bool {
        self.region.contains(&lpn) || self.blocks.holds(lpn)
    }
    fn forget(&mut self, lpn: u32) {
        self.region.retain(|&p| p != lpn);
        self.blocks.forget(lpn);
        self.forget_popularity();
    }
    fn admits_reads(&self) -> bool {
        false
    }
    fn hit(&mut self, op: Op) {
        if !op.write {
            return;
        }
        self.count(op);
        if let Some(i) = self.region.iter().position(|&p| p == op.lpn) {
            self.region.remove(i);
            self.region.insert(0, op.lpn);
        } else {
            let i = self.blocks.find(self.blocks.number(op.lpn)).unwrap();
            self.blocks.list[i].at = self.now;
        }
    }
    fn insert(&mut self, op: Op) {
        self.count(op);
        let number = self.blocks.number(op.lpn);
        if let Some(i) = self.blocks.find(number) {
            self.blocks.list[i].pages.insert(op.lpn);
            self.blocks.list[i].at = self.now;
            return self.grown();
        }
        self.region.insert(0, op.lpn);
        self.migrate(number);
    }
    fn evict(&mut self, look: &mut Look) -> Option<Out> {
        let current = self.blocks.number(look.op.lpn);
        let free = |number: u32, pages: &BTreeSet<u32>| {
            number != current && !look.skips(&self.setup, pages)
        };
        // The blocks in the order of the block popularity list, starting at its tail.
        let mut tail_first: Vec<&Block> = self.blocks.list.iter().collect();
        tail_first.sort_by_key(|b| {
            let more_pages_first = std::cmp::Reverse(b.pages.len());
            (self.popularity[&b.number].0, more_pages_first, b.at)
        });
        let blocks = tail_first.iter().map(|b| (b.number, b.pages.clone()));
        let of_region = self.region.iter().rev().map(|&page| {
            let number = self.blocks.number(page);
            (number, self.in_region(number))
        });
        let in_blocks: usize = self.blocks.list.iter().map(|b| b.pages.len()).sum();
        let share = self.setup.settings.get::<f64>("block_share");
        let order: Vec<_> = match in_blocks as f64 > share * f64::from(self.setup.capacity) {
            true => blocks.chain(of_region).collect(),
            false => of_region.chain(blocks).collect(),
        };
        let place = order
            .iter()
            .position(|(number, pages)| free(*number, pages));
        let found = place.map(|i| order[i].0);
        look.looked += place.map_or(order.len(), |i| i + 1) as u64;
        let of = |number: u32| match self.blocks.find(number) {
            Some(i) => self.blocks.list[i].pages.clone(),
            None => self.in_region(number),
        };
        let pages = found.map(of).or_else(|| {
            let pages = of(current);
            let only = pages.len() == look.dirty.len();
            (only && !look.skips(&self.setup, &pages)).then_some(pages)
        })?;
        let number = found.unwrap_or(current);
        let settings = &self.setup.settings;
        let before = self.threshold;
        if self.blocks.list.is_empty() && settings.get::<u32>("threshold") == 0 {
            let floor = settings
                .get::<u32>("threshold_floor")
                .min(self.setup.pages_per_block);
            self.threshold = (self.threshold / 2).max(floor as usize);
        }
        let mut merged: Vec<u32> = look.read_cache.to_vec();
        merged.retain(|&p| self.blocks.number(p) == number);
        merged.sort();
        if !settings.get::<bool>("merge") || pages.len() <= merged.len() {
            merged.clear();
        }
        for &page in &pages {
            self.region.retain(|&p| p != page);
            self.blocks.forget(page);
        }
        if self.threshold < before && settings.get::<String>("migrate") == "scan" {
            for page in self.region.clone().into_iter().rev() {
                if self.region.contains(&page) {
                    self.migrate(self.blocks.number(page));
                }
            }
        }
        self.forget_popularity();
        Some(Out {
            pages,
            padding: Vec::new(),
            merged,
        })
    }
    fn arrives(&mut self, op: Op) {
        self.arriving = Some(self.blocks.number(op.lpn));
    }
    fn ended(&mut self) {
        self.arriving = None;
        self.forget_popularity();
    }
    fn read_cache_is(&mut self, pages: &[u32]) {
        self.read_cache = pages.to_vec();
        self.forget_popularity();
        for &page in pages {
            self.popularity.entry(self.blocks.number(page)).or_default();
        }
    }
}

#[derive(Clone, Default)]
struct Request {
    id: u64,
    pages: BTreeSet<u32>,
    request: u64,
    at: u64,
    hits: u64,
    /// The last request that hit the block, and whether the block was small at that time.
    hit_by: Option<(u64, bool)>,
    /// The request that split this block off another block.
    divided: Option<u64>,
    origin: Option<u64>,
}

pub struct ReqBlock {
    setup: Setup,
    /// The lists IRL, DRL and SRL.
    lists: [Vec<Request>; 3],
    now: u64,
    last: u64,
    ids: u64,
}

impl ReqBlock {
    pub fn new(case: &Case) -> ReqBlock {
        ReqBlock {
            setup: case.setup.clone(),
            lists: Default::default(),
            now: 0,
            last: 0,
            ids: 0,
        }
    }
    fn find(&self, is: impl Fn(&Request) -> bool) -> Option<(usize, usize)> {
        (0..3).find_map(|l| Some((l, self.lists[l].iter().position(&is)?)))
    }
    fn add(&mut self, list: usize, lpn: u32, request: u64) -> &mut Request {
        self.ids += 1;
        let block = Request {
            id: self.ids,
            pages: BTreeSet::from([lpn]),
            request,
            at: self.now,
            hits: 1,
            ..Request::default()
        };
        self.lists[list].insert(0, block);
        &mut self.lists[list][0]
    }
    /// Returns the list and position of the coldest block. The candidates are the last block of each list that may be
    /// evicted.
    fn coldest(
        &self,
        looked: &mut u64,
        allowed: impl Fn(&Request) -> bool,
    ) -> Option<(usize, usize)> {
        let mut best: Option<(usize, usize)> = None;
        for (l, list) in self.lists.iter().enumerate() {
            for i in (0..list.len()).rev() {
                *looked += 1;
                if !allowed(&list[i]) {
                    continue;
                }
                let room = |b: &Request| b.pages.len() as u64 * (self.now - b.at);
                let colder = best.is_none_or(|(bl, bi)| {
                    let (a, b) = (&list[i], &self.lists[bl][bi]);
                    a.hits * room(b) < b.hits * room(a)
                });
                if colder {
                    best = Some((l, i));
                }
                break;
            }
        }
        best
    }
}

impl Rule for ReqBlock {
    fn holds(&self, lpn: u32) -> bool {
        self.find(|b| b.pages.contains(&lpn)).is_some()
    }
    fn forget(&mut self, lpn: u32) {
        for list in &mut self.lists {
            for block in list.iter_mut() {
                block.pages.remove(&lpn);
            }
            list.retain(|b| !b.pages.is_empty());
        }
    }
    fn admits_reads(&self) -> bool {
        false
    }
    fn insert(&mut self, op: Op) {
        self.now += 1;
        let last = self.last;
        if let Some((l, i)) = self.find(|b| b.id == last && b.request == op.request) {
            self.lists[l][i].pages.insert(op.lpn);
            return;
        }
        self.last = self.add(0, op.lpn, op.request).id;
    }
    fn hit(&mut self, op: Op) {
        self.now += 1;
        let (l, i) = self.find(|b| b.pages.contains(&op.lpn)).unwrap();
        let small = self.lists[l][i].pages.len()
            <= self.setup.settings.get::<u32>("small_request") as usize;
        let mut block = self.lists[l].remove(i);
        if block
            .hit_by
            .is_none_or(|(request, _)| request != op.request)
        {
            block.hits += 1;
            block.hit_by = Some((op.request, small));
            block.divided = None;
            if small {
                return self.lists[2].insert(0, block);
            }
        }
        if block.hit_by.is_some_and(|(_, small)| small) {
            return self.lists[l].insert(i, block);
        }
        block.pages.remove(&op.lpn);
        let known = self.find(|b| Some(b.id) == block.divided);
        if let Some((l, i)) = known {
            self.lists[l][i].pages.insert(op.lpn);
        }
        let id = block.id;
        let empty = block.pages.is_empty();
        self.lists[l].insert(i, block);
        if known.is_none() {
            let divided = self.add(1, op.lpn, op.request);
            divided.origin = Some(id);
            let divided = divided.id;
            let (l, i) = self.find(|b| b.id == id).unwrap();
            self.lists[l][i].divided = Some(divided);
        }
        if empty {
            let (l, i) = self.find(|b| b.id == id).unwrap();
            self.lists[l].remove(i);
        }
    }
    fn evict(&mut self, look: &mut Look) -> Option<Out> {
        let mut looked = 0;
        let free = |b: &Request| !look.skips(&self.setup, &b.pages);
        let mut blocks = self.lists.iter().flatten();
        let all_own = blocks.all(|b| b.request == look.op.request);
        let found = self
            .coldest(&mut looked, |b| b.request != look.op.request && free(b))
            .or_else(|| match all_own {
                true => self.coldest(&mut looked, free),
                false => None,
            });
        look.looked += looked;
        let (l, i) = found?;
        let block = self.lists[l].remove(i);
        let mut pages = block.pages;
        let irl = &mut self.lists[0];
        let origin = irl.iter().position(|b| Some(b.id) == block.origin);
        let free = |b: &Request| !look.skips(&self.setup, &b.pages);
        if let (1, Some(i)) = (l, origin.filter(|&i| free(&irl[i]))) {
            pages.extend(irl.remove(i).pages);
        }
        Some(Out {
            pages,
            ..Out::default()
        })
    }
}
