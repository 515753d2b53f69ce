//! Costs of the translation layers, compared with each other. The cost of DFTL is also compared with that of a layer
//! whose page map is in memory.

use std::collections::VecDeque;

use flashtwin::ftl::chip::trace::Cost;
use flashtwin::ftl::chip::{ChipFtl, FlashOp, Ftl, Layer, OpKind, Setup, Why};
use flashtwin::Rng;

const N: u32 = 32;

fn made(name: &str, set: &[(&str, &str)]) -> (Setup, Ftl) {
    // The chip has 512 blocks; three quarters of their pages are logical pages.
    let mut setup = Setup::new(name, 512 * N * 3 / 4, 512, N).unwrap();
    setup.set_all(set).unwrap();
    let mut ftl = Ftl::new(&setup).unwrap();
    ftl.fill();
    (setup, ftl)
}

/// Returns the number of flash operations that 30 000 writes of uniformly random pages cause.
fn random_writes(name: &str, seed: u64) -> usize {
    let (setup, mut ftl) = made(name, &[]);
    let (mut rng, mut ops) = (Rng::new(seed), Vec::new());
    for _ in 0..30_000 {
        let page = rng.below(setup.logical_pages.into()) as u32;
        ftl.write(page, &mut ops).unwrap();
    }
    ops.len()
}

#[test]
fn random_writes_cost_bast_most_and_dftl_least() {
    for seed in flashtwin::seeds(3) {
        let [dftl, bast, fast, faster] =
            ["dftl", "bast", "fast", "faster"].map(|name| random_writes(name, seed));
        assert!(bast * 100 > fast * 110, "BAST {bast}, FAST {fast}");
        assert!(fast > 3 * dftl, "FAST {fast}, DFTL {dftl}");
        assert!(faster < fast, "FASTER {faster}, FAST {fast}");
    }
}

#[test]
fn sequential_writes_cost_block_mapping_a_switch_a_block_and_no_copy() {
    for name in ["bast", "fast", "faster"] {
        let (setup, mut ftl) = made(name, &[]);
        let mut ops = Vec::new();
        for page in (0..setup.logical_pages).chain([0]) {
            ftl.write(page, &mut ops).unwrap();
        }
        let cost = Cost::of(&ops);
        let merges = ftl.counters();
        assert_eq!(
            (cost.copies, merges.full_merges, merges.partial_merges),
            (0, 0, 0),
            "{name}"
        );
        assert_eq!(cost.erases, merges.switch_merges, "{name}");
        assert!(
            merges.switch_merges + 16 > u64::from(setup.logical_blocks()),
            "{name}"
        );
    }
}

#[test]
fn progressive_merging_spreads_the_merges() {
    for seed in flashtwin::seeds(3) {
        let most_at_once = |name: &str| {
            let (setup, mut ftl) = made(name, &[]);
            let (mut rng, mut ops) = (Rng::new(seed), Vec::new());
            let mut most = 0;
            for _ in 0..30_000 {
                let before = ftl.counters().full_merges;
                ops.clear();
                let page = rng.below(setup.logical_pages.into()) as u32;
                ftl.write(page, &mut ops).unwrap();
                most = most.max(ftl.counters().full_merges - before);
            }
            most
        };
        let (fast, faster) = (most_at_once("fast"), most_at_once("faster"));
        assert!(
            fast > u64::from(N / 2),
            "FAST merges what a log block holds: {fast}"
        );
        assert!(faster <= 2, "FASTER spreads it: {faster}");
    }
}

/// A page-mapping layer with the free list and the collection of DFTL, but with the whole map in memory.
struct PageMapped {
    map: Vec<u32>,
    /// For each physical page, its logical page if the page is live.
    inverse: Vec<Option<u32>>,
    free: VecDeque<u32>,
    full: Vec<bool>,
    open: u32,
    next: u32,
    low: u32,
}

impl PageMapped {
    fn place(&mut self) -> u32 {
        if self.next == N {
            self.open = self.free.pop_front().unwrap();
            self.next = 0;
        }
        self.next += 1;
        self.full[self.open as usize] = self.next == N;
        self.open * N + self.next - 1
    }

    fn live(&self, block: u32) -> usize {
        let first = (block * N) as usize;
        self.inverse[first..first + N as usize]
            .iter()
            .flatten()
            .count()
    }

    fn put(&mut self, page: u32) -> u32 {
        let ppn = self.place();
        self.inverse[ppn as usize] = Some(page);
        self.map[page as usize] = ppn;
        ppn
    }

    fn write(&mut self, page: u32, ops: &mut Vec<OpKind>) {
        while self.free.len() as u32 <= self.low {
            let full = (0..self.full.len() as u32).filter(|&block| self.full[block as usize]);
            let victim = full.min_by_key(|&block| (self.live(block), block)).unwrap();
            for from in victim * N..(victim + 1) * N {
                if let Some(page) = self.inverse[from as usize].take() {
                    let to = self.put(page);
                    ops.push(OpKind::Copy { from, to });
                }
            }
            self.full[victim as usize] = false;
            self.free.push_back(victim);
            ops.push(OpKind::Erase { block: victim });
        }
        self.inverse[self.map[page as usize] as usize] = None;
        let ppn = self.put(page);
        ops.push(OpKind::Program { ppn });
    }
}

#[test]
fn dftl_with_the_whole_map_cached_is_page_mapping() {
    for seed in flashtwin::seeds(3) {
        let set = [
            ("cmt_entries", "12288"),
            ("entries_per_translation_page", "96"),
            ("low_blocks", "9"),
        ];
        let (setup, mut ftl) = made("dftl", &set);
        let Layer::Dftl(own) = &setup.kind else {
            panic!()
        };
        let (data, map) = (
            setup.logical_blocks(),
            own.translation_pages(setup.logical_pages) / N,
        );
        let mut plain = PageMapped {
            map: (0..setup.logical_pages).collect(),
            inverse: (0..setup.blocks * N)
                .map(|ppn| (ppn < data * N).then_some(ppn))
                .collect(),
            free: (data + map..setup.blocks).collect(),
            full: (0..setup.blocks).map(|block| block < data).collect(),
            open: 0,
            next: N,
            low: own.low_blocks,
        };
        let mut ops: Vec<FlashOp> = Vec::new();
        for page in 0..setup.logical_pages {
            ftl.read(page, &mut ops);
        }
        assert_eq!(
            Cost::of(&ops).map_reads,
            u64::from(setup.logical_pages),
            "a miss each"
        );
        let (mut rng, mut wanted) = (Rng::new(seed), Vec::new());
        for i in 0..60_000 {
            let page = rng.below(setup.logical_pages.into()) as u32;
            ops.clear();
            wanted.clear();
            ftl.write(page, &mut ops).unwrap();
            plain.write(page, &mut wanted);
            let found: Vec<OpKind> = ops.iter().map(|op| op.kind).collect();
            assert_eq!(found, wanted, "write {i}");
            assert!(ops.iter().all(|op| matches!(op.why, Why::Host | Why::Gc)));
        }
        assert!(ftl.counters().gc_runs > 1000);
        let counters = ftl.counters();
        assert_eq!((counters.map_hits, counters.map_misses), (60_000, 12_288));
    }
}
