//! A shadow of the flash: it executes every operation, fails on an operation that no chip can perform, and records the
//! contents that each page must return.

use flashtwin::ftl::chip::{ChipFtl, FlashOp, Ftl, OpKind, Setup, Why, ENTRIES};
use flashtwin::Rng;

/// Contents of a flash page in the shadow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Erased,
    /// Data that was superseded, moved or trimmed.
    Dead,
    Data(u32),
    Map,
}

pub struct Shadow {
    n: u32,
    held: Vec<Held>,
    /// For each block, the offset after the highest programmed page.
    next: Vec<u32>,
    /// Physical page of each logical page, derived only from the flash operations.
    at: Vec<Option<u32>>,
    /// Logical pages that the current access has moved.
    touched: Vec<u32>,
    /// Whether the layer maps whole blocks. If so, pages of a block may be programmed out of order, each at its own
    /// offset.
    maps_blocks: bool,
    pub ops: u64,
}

impl Shadow {
    /// Creates the shadow of a chip on which `ftl` has already placed the logical pages.
    pub fn new(setup: &Setup, ftl: &Ftl) -> Shadow {
        let n = setup.pages_per_block;
        let mut shadow = Shadow {
            n,
            held: vec![Held::Erased; (setup.blocks * n) as usize],
            next: vec![0; setup.blocks as usize],
            at: vec![None; setup.logical_pages as usize],
            touched: Vec::new(),
            maps_blocks: setup.name() != "dftl",
            ops: 0,
        };
        for page in 0..setup.logical_pages {
            if let Some(ppn) = ftl.lookup(page) {
                shadow.program(ppn, Held::Data(page));
                shadow.at[page as usize] = Some(ppn);
            }
        }
        if let flashtwin::ftl::chip::Layer::Dftl(own) = &setup.kind {
            // Translation pages have blocks of their own, after the data blocks.
            let first = setup.logical_blocks() * n;
            for which in 0..own.translation_pages(setup.logical_pages) {
                shadow.program(first + which, Held::Map);
            }
        }
        shadow
    }

    fn program(&mut self, ppn: u32, what: Held) {
        let (block, offset) = ((ppn / self.n) as usize, ppn % self.n);
        assert_eq!(
            self.held[ppn as usize],
            Held::Erased,
            "page {ppn} is programmed twice"
        );
        let in_place =
            self.maps_blocks && matches!(what, Held::Data(page) if page % self.n == offset);
        assert!(
            offset >= self.next[block] || in_place,
            "page {ppn} is programmed behind page {} of its block",
            self.next[block]
        );
        self.next[block] = self.next[block].max(offset + 1);
        self.held[ppn as usize] = what;
    }

    /// Marks a page as dead and returns its former contents.
    fn take(&mut self, ppn: u32) -> Held {
        let held = std::mem::replace(&mut self.held[ppn as usize], Held::Dead);
        assert!(
            matches!(held, Held::Data(_) | Held::Map),
            "page {ppn} holds {held:?}"
        );
        held
    }

    /// Executes the flash operations of one access. `page` is the logical page that the host writes, if it writes one.
    fn execute(&mut self, ops: &[FlashOp], page: Option<u32>) {
        self.ops += ops.len() as u64;
        self.touched.clear();
        let mut host_programs = 0;
        let mut map_read = None;
        for op in ops {
            let superseded = map_read.take();
            match op.kind {
                OpKind::Read { ppn } if op.why == Why::Host => {
                    assert!(
                        matches!(self.held[ppn as usize], Held::Data(_)),
                        "page {ppn} is read"
                    );
                }
                OpKind::Read { ppn } => {
                    assert_eq!(
                        self.held[ppn as usize],
                        Held::Map,
                        "no map is on page {ppn}"
                    );
                    map_read = Some(ppn);
                }
                OpKind::Program { ppn } if op.why == Why::Host => {
                    host_programs += 1;
                    let page = page.expect("only a write programs a page of the host");
                    if let Some(old) = self.at[page as usize].replace(ppn) {
                        self.take(old);
                    }
                    self.program(ppn, Held::Data(page));
                }
                OpKind::Program { ppn } => {
                    assert!(matches!(op.why, Why::Map | Why::GcMap), "{op:?}");
                    // The new map page replaces the map page that was read just before.
                    if let Some(old) = superseded {
                        self.take(old);
                    }
                    self.program(ppn, Held::Map);
                }
                OpKind::Copy { from, to } => {
                    assert!(matches!(op.why, Why::Gc | Why::Merge), "{op:?}");
                    let held = self.take(from);
                    self.program(to, held);
                    if let Held::Data(page) = held {
                        assert_eq!(self.at[page as usize], Some(from));
                        self.at[page as usize] = Some(to);
                        self.touched.push(page);
                    }
                }
                OpKind::Erase { block } => self.erase(block),
            }
        }
        assert_eq!(host_programs, u32::from(page.is_some()));
    }

    fn erase(&mut self, block: u32) {
        let first = (block * self.n) as usize;
        let pages = &mut self.held[first..first + self.n as usize];
        let live = pages
            .iter()
            .find(|held| matches!(held, Held::Data(_) | Held::Map));
        assert_eq!(live, None, "block {block} is erased");
        pages.fill(Held::Erased);
        self.next[block as usize] = 0;
    }

    /// Checks that every page returns its last write, and that no page has two live copies.
    fn check(&self, ftl: &Ftl) {
        ftl.check().unwrap();
        for (page, at) in self.at.iter().enumerate() {
            assert_eq!(ftl.lookup(page as u32), *at, "page {page}");
            if let Some(ppn) = at {
                assert_eq!(self.held[*ppn as usize], Held::Data(page as u32));
            }
        }
        let live = self
            .held
            .iter()
            .filter(|held| matches!(held, Held::Data(_)))
            .count();
        assert_eq!(live, self.at.iter().flatten().count(), "live pages");
    }

    pub fn write(&mut self, ftl: &mut Ftl, page: u32, ops: &mut Vec<FlashOp>) {
        ops.clear();
        ftl.write(page, ops).unwrap();
        self.execute(ops, Some(page));
        self.compare_touched(ftl, page);
    }

    fn read(&mut self, ftl: &mut Ftl, page: u32, ops: &mut Vec<FlashOp>) {
        ops.clear();
        ftl.read(page, ops);
        self.execute(ops, None);
        let read = ops
            .iter()
            .rev()
            .find(|op| op.why == Why::Host)
            .map(|op| op.kind);
        let wanted = self.at[page as usize].map(|ppn| OpKind::Read { ppn });
        assert_eq!(read, wanted, "page {page} is read");
        self.compare_touched(ftl, page);
    }

    fn trim(&mut self, ftl: &mut Ftl, page: u32, ops: &mut Vec<FlashOp>) {
        ops.clear();
        ftl.trim(page, ops);
        self.execute(ops, None);
        if let Some(old) = self.at[page as usize].take() {
            self.take(old);
        }
        self.compare_touched(ftl, page);
    }

    fn flush(&mut self, ftl: &mut Ftl, ops: &mut Vec<FlashOp>) {
        ops.clear();
        ftl.flush(ops);
        self.execute(ops, None);
        assert!(ops.iter().all(|op| op.why != Why::Host));
    }

    fn compare_touched(&self, ftl: &Ftl, page: u32) {
        for &page in self.touched.iter().chain([&page]) {
            assert_eq!(ftl.lookup(page), self.at[page as usize], "page {page}");
        }
    }
}

/// Executes random accesses, trims and flushes. Some accesses are sequential.
fn stress(setup: &Setup, filled: bool, accesses: u32, seed: u64) {
    let mut ftl = Ftl::new(setup).unwrap();
    if filled {
        ftl.fill();
    }
    let mut rng = Rng::new(seed);
    let mut shadow = match filled {
        true => Shadow::new(setup, &ftl),
        false => {
            let mut empty = Shadow::new(setup, &ftl);
            empty.held.fill(Held::Erased);
            empty.next.fill(0);
            empty
        }
    };
    let mut ops = Vec::new();
    let (mut next, mut run) = (0, 0);
    for i in 0..accesses {
        let mut page = rng.below(setup.logical_pages.into()) as u32;
        if run > 0 {
            (page, run) = (next, run - 1);
        } else if rng.below(64) == 0 {
            run = rng.below(u64::from(setup.pages_per_block) * 3);
            page -= if rng.below(2) == 0 {
                page % setup.pages_per_block
            } else {
                0
            };
        }
        next = (page + 1) % setup.logical_pages;
        match rng.below(100) {
            0..=14 => shadow.read(&mut ftl, page, &mut ops),
            15..=18 if run == 0 => shadow.trim(&mut ftl, page, &mut ops),
            _ => shadow.write(&mut ftl, page, &mut ops),
        }
        if rng.below(20_000) == 0 {
            shadow.flush(&mut ftl, &mut ops);
        }
        if i % (1 << 14) == 0 || i < 300 {
            shadow.check(&ftl);
        }
    }
    shadow.check(&ftl);
}

/// Executes a million accesses at three fill levels. Most accesses are at 70 %, where an access takes the fewest flash
/// operations.
fn at_every_fill(name: &str) {
    for (percent, accesses) in [(70, 600_000), (90, 300_000), (99, 100_000)] {
        // With DFTL, translation pages need further blocks in addition to these data pages.
        let logical_pages = 1024 * 16 * percent / 100 / 16 * 16;
        let mut setup = Setup::new(name, logical_pages, 1024, 16).unwrap();
        let few = match name {
            "dftl" => &[("entries_per_translation_page", "256")][..],
            "bast" => &[("log_blocks", "9")],
            "fast" => &[("rw_log_blocks", "7")],
            _ => &[("rw_log_blocks", "4"), ("isolation_blocks", "3")],
        };
        setup
            .set_all(if percent == 99 || name == "dftl" {
                few
            } else {
                &[]
            })
            .unwrap();
        stress(&setup, true, accesses, u64::from(percent));
    }
}

#[test]
fn dftl_loses_nothing() {
    at_every_fill("dftl");
}

#[test]
fn bast_loses_nothing() {
    at_every_fill("bast");
}

#[test]
fn fast_loses_nothing() {
    at_every_fill("fast");
}

#[test]
fn faster_loses_nothing() {
    at_every_fill("faster");
}

/// Each layer works on the smallest chip on which it can be created. Blocks have odd sizes, caches are small, and every
/// second chip starts empty.
#[test]
fn the_smallest_chips_never_run_out() {
    for seed in flashtwin::seeds(3) {
        let mut rng = Rng::new(seed);
        for round in 0..200 {
            for name in ENTRIES.iter().map(|entry| entry.name) {
                let (n, pages) = (2 + rng.below(9) as u32, 1 + rng.below(120) as u32);
                let mut setup = Setup::new(name, pages, 400, n).unwrap();
                let digit = |rng: &mut Rng, max: u64| (1 + rng.below(max)).to_string();
                let (a, b, c) = (digit(&mut rng, 4), digit(&mut rng, 6), digit(&mut rng, 12));
                let on = (rng.below(2) == 0).to_string();
                let set = match name {
                    "dftl" => vec![
                        ("cmt_entries", c.as_str()),
                        ("entries_per_translation_page", &b),
                        ("batching", &on),
                    ],
                    "bast" => vec![("log_blocks", a.as_str())],
                    "fast" => vec![("rw_log_blocks", a.as_str())],
                    _ => vec![
                        ("rw_log_blocks", a.as_str()),
                        ("isolation_blocks", &b),
                        ("refinements", &on),
                    ],
                };
                setup.set_all(&set).unwrap();
                setup.blocks = u32::try_from(setup.blocks_min()).unwrap();
                setup.set_all(&set).unwrap();
                stress(&setup, round % 2 == 0, 1500, round);
            }
        }
    }
}

/// The chip has no spare block. A collection may need two blocks and free only one. Therefore, DFTL must collect
/// translation blocks before the last free block is used.
#[test]
fn dftl_collects_in_time() {
    for seed in flashtwin::seeds(3) {
        let mut setup = Setup::new("dftl", 112, 47, 4).unwrap();
        let set = [
            ("cmt_entries", "3"),
            ("entries_per_translation_page", "2"),
            ("batching", "false"),
        ];
        setup.set_all(&set).unwrap();
        assert_eq!(setup.blocks_min(), 47);
        let mut rng = Rng::new(seed);
        for _ in 0..400 {
            let mut ftl = Ftl::new(&setup).unwrap();
            ftl.fill();
            let (mut shadow, mut ops) = (Shadow::new(&setup, &ftl), Vec::new());
            for _ in 0..1500 {
                let hot = rng.below(3) == 0;
                let page = rng.below(if hot { 15 } else { 112 }) as u32;
                match rng.below(20) {
                    0 => shadow.trim(&mut ftl, page, &mut ops),
                    1..=4 => shadow.read(&mut ftl, page, &mut ops),
                    _ => shadow.write(&mut ftl, page, &mut ops),
                }
            }
            shadow.check(&ftl);
        }
    }
}
