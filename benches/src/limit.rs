//! A minimal kernel: the memory accesses of the modelled device, without timing, buffer or statistics. It shows the
//! lower limit of the time per write.
//!
//! The kernel has a map and a reverse map with 4 bytes per page, valid counts, and greedy victims. It finds the victim
//! by a scan of the valid counts. This is faster here than buckets by valid count (460 against 650 ns per write,
//! measured on one machine). Geometry, reserve and watermark are those of the modelled device. A host write accesses
//! the map entry of its page, the reverse entry of the page's old copy, and the map entry of each page that GC moves.
//! The kernel shares no code with the model.

use std::collections::VecDeque;

use flashtwin::{DeviceSpec, Rng};

const NONE: u32 = u32::MAX;
/// Added to the valid count of a block that is open or free, so that the scan does not choose it as the victim.
const NOT_SEALED: i16 = 0x4000;

/// Extent to which the kernel hides cache misses by prefetching.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lookahead {
    /// Nothing is prefetched.
    None,
    /// Map entries of the victim's pages are prefetched before they are updated. The map entries of host writes, and
    /// the reverse entries of the old copies, are prefetched 16 writes in advance.
    Sixteen,
}

struct Plane {
    active: u32,
    next: u32,
    free: VecDeque<u32>,
}

/// The kernel's state.
pub struct Kernel {
    map: Vec<u32>,
    reverse: Vec<u32>,
    valid: Vec<i16>,
    planes: Vec<Plane>,
    chips: u32,
    planes_per_chip: u32,
    pages_per_block: u32,
    data_pages: u32,
    low: usize,
    turn: Vec<u8>,
    moves: u64,
    writes: u64,
}

fn prefetch<T>(table: &[T], i: u32) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = table.get(i as usize) {
        use core::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: a prefetch reads nothing and cannot fault. The address is that of a live entry.
        unsafe { _mm_prefetch(std::ptr::from_ref(entry).cast::<i8>(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, i);
}

impl Kernel {
    /// Creates the device that `spec` describes, with every exported page written once.
    pub fn new(spec: &DeviceSpec) -> Kernel {
        let g = &spec.geometry;
        let planes = (g.chips * g.planes_per_chip) as usize;
        let blocks = planes * g.blocks_per_plane as usize;
        let exported = spec.exported_pages();
        let data_pages = spec.data_pages_per_block();
        let mut k = Kernel {
            map: vec![NONE; exported as usize],
            reverse: vec![NONE; blocks * g.pages_per_block as usize],
            valid: vec![NOT_SEALED; blocks],
            planes: (0..planes as u32)
                .map(|p| {
                    let first = p * g.blocks_per_plane;
                    let free = (first + 1..first + g.blocks_per_plane).collect();
                    Plane {
                        active: first,
                        next: 0,
                        free,
                    }
                })
                .collect(),
            chips: g.chips,
            planes_per_chip: g.planes_per_chip,
            pages_per_block: g.pages_per_block,
            data_pages,
            low: spec.low_blocks_plane() as usize,
            turn: vec![0; g.chips as usize],
            moves: 0,
            writes: 0,
        };
        for lpn in 0..exported {
            k.write::<false>(lpn);
        }
        k
    }

    fn append(&mut self, plane: usize, lpn: u32) {
        let p = &mut self.planes[plane];
        if p.next == self.data_pages {
            self.valid[p.active as usize] &= !NOT_SEALED;
            p.active = p.free.pop_front().expect("GC keeps blocks free");
            p.next = 0;
        }
        let ppn = p.active * self.pages_per_block + p.next;
        p.next += 1;
        self.valid[p.active as usize] += 1;
        self.reverse[ppn as usize] = lpn;
        self.map[lpn as usize] = ppn;
    }

    fn collect<const AHEAD: bool>(&mut self, plane: usize) {
        let blocks = self.valid.len() / self.planes.len();
        let counts = &self.valid[plane * blocks..][..blocks];
        let least = counts.iter().fold(i16::MAX, |least, &v| least.min(v));
        let Some(at) = counts.iter().position(|&v| v == least) else {
            return;
        };
        let block = plane * blocks + at;
        let first = block * self.pages_per_block as usize;
        let pages = first..first + self.data_pages as usize;
        if AHEAD {
            for page in pages.clone() {
                prefetch(&self.map, self.reverse[page]);
            }
        }
        for page in pages {
            let lpn = self.reverse[page];
            if lpn != NONE {
                self.reverse[page] = NONE;
                self.append(plane, lpn);
                self.moves += 1;
            }
        }
        self.valid[block] = NOT_SEALED;
        self.planes[plane].free.push_back(block as u32);
    }

    /// Returns the number of pages that GC has moved, divided by the number of pages that the host has written at
    /// random.
    pub fn moves_per_write(&self) -> f64 {
        self.moves as f64 / self.writes as f64
    }

    /// Writes one host page.
    fn write<const AHEAD: bool>(&mut self, lpn: u32) {
        let chip = lpn % self.chips;
        let turn = &mut self.turn[chip as usize];
        let plane = (chip * self.planes_per_chip + *turn as u32) as usize;
        *turn = (*turn + 1) % self.planes_per_chip as u8;
        while self.planes[plane].free.len() <= self.low {
            self.collect::<AHEAD>(plane);
        }
        let old = self.map[lpn as usize];
        if old != NONE {
            self.reverse[old as usize] = NONE;
            self.valid[(old / self.pages_per_block) as usize] -= 1;
        }
        self.append(plane, lpn);
    }

    /// Performs `writes` uniformly random host page writes.
    pub fn write_random(&mut self, rng: &mut Rng, writes: u64, lookahead: Lookahead) {
        let exported = self.map.len() as u64;
        self.writes += writes;
        if lookahead == Lookahead::None {
            for _ in 0..writes {
                self.write::<false>(rng.below(exported) as u32);
            }
            return;
        }
        let mut ahead = [0u32; 16];
        for lpn in &mut ahead {
            *lpn = rng.below(exported) as u32;
        }
        for i in 0..writes {
            let at = (i % 16) as usize;
            let lpn = std::mem::replace(&mut ahead[at], rng.below(exported) as u32);
            prefetch(&self.map, ahead[at]);
            let half = ahead[(at + 8) % 16];
            prefetch(&self.reverse, self.map[half as usize]);
            self.write::<true>(lpn);
        }
    }
}
