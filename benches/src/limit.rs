//! The bare kernel: what the memory of the same device costs, without timing, buffer or statistics.
//!
//! Map and reverse map of 4 bytes a page, valid counts, greedy victims from buckets by valid count,
//! the geometry, reserve and watermark of the device that the model runs. A host write touches the
//! map entry of its page, the reverse entry of its old copy, and the map entry of each page that GC
//! moves. Nothing here is shared with the model.

use flashtwin::{DeviceSpec, Rng};

const NONE: u32 = u32::MAX;

/// How far the kernel goes to hide its cache misses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lookahead {
    /// Each access when it is needed.
    None,
    /// Map entries of the victim's pages fetched before they are updated; map entries of the next
    /// host writes, and the reverse entries of their old copies, fetched 16 writes ahead.
    Sixteen,
}

struct Plane {
    active: u32,
    next: u32,
    free: Vec<u32>,
    /// Sealed blocks by valid count; each block knows its place.
    buckets: Vec<Vec<u32>>,
}

/// The kernel's state.
pub struct Kernel {
    map: Vec<u32>,
    reverse: Vec<u32>,
    valid: Vec<u16>,
    place: Vec<u32>,
    sealed: Vec<bool>,
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
        // SAFETY: a prefetch reads nothing and cannot fault; the address is that of a live entry.
        unsafe { _mm_prefetch(std::ptr::from_ref(entry).cast::<i8>(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, i);
}

impl Kernel {
    /// The device of `spec`, every exported page written once.
    pub fn new(spec: &DeviceSpec) -> Kernel {
        let g = &spec.geometry;
        let planes = (g.chips * g.planes_per_chip) as usize;
        let blocks = planes * g.blocks_per_plane as usize;
        let exported = spec.exported_pages();
        let data_pages = spec.data_pages_per_block();
        let mut k = Kernel {
            map: vec![NONE; exported as usize],
            reverse: vec![NONE; blocks * g.pages_per_block as usize],
            valid: vec![0; blocks],
            place: vec![0; blocks],
            sealed: vec![false; blocks],
            planes: (0..planes as u32)
                .map(|p| {
                    let first = p * g.blocks_per_plane;
                    let mut free: Vec<u32> = (first..first + g.blocks_per_plane).rev().collect();
                    let active = free.pop().unwrap_or(first);
                    Plane { active, next: 0, free, buckets: vec![Vec::new(); data_pages as usize + 1] }
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
            let full = p.active;
            let valid = self.valid[full as usize] as usize;
            self.sealed[full as usize] = true;
            self.place[full as usize] = p.buckets[valid].len() as u32;
            p.buckets[valid].push(full);
            p.active = p.free.pop().expect("GC keeps blocks free");
            p.next = 0;
        }
        let ppn = p.active * self.pages_per_block + p.next;
        p.next += 1;
        self.valid[p.active as usize] += 1;
        self.reverse[ppn as usize] = lpn;
        self.map[lpn as usize] = ppn;
    }

    fn leave_bucket(&mut self, plane: usize, block: u32) {
        let bucket = &mut self.planes[plane].buckets[self.valid[block as usize] as usize];
        let at = self.place[block as usize] as usize;
        bucket.swap_remove(at);
        if let Some(&moved) = bucket.get(at) {
            self.place[moved as usize] = at as u32;
        }
    }

    fn invalidate(&mut self, ppn: u32) {
        self.reverse[ppn as usize] = NONE;
        let block = ppn / self.pages_per_block;
        let plane = (block / self.blocks_per_plane()) as usize;
        if self.sealed[block as usize] {
            self.leave_bucket(plane, block);
            self.valid[block as usize] -= 1;
            let bucket = &mut self.planes[plane].buckets[self.valid[block as usize] as usize];
            self.place[block as usize] = bucket.len() as u32;
            bucket.push(block);
        } else {
            self.valid[block as usize] -= 1;
        }
    }

    fn blocks_per_plane(&self) -> u32 {
        self.valid.len() as u32 / self.planes.len() as u32
    }

    fn collect<const AHEAD: bool>(&mut self, plane: usize) {
        let Some(bucket) = self.planes[plane].buckets.iter().position(|b| !b.is_empty()) else { return };
        let block = self.planes[plane].buckets[bucket][0];
        self.leave_bucket(plane, block);
        self.sealed[block as usize] = false;
        let first = (block * self.pages_per_block) as usize;
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
        self.valid[block as usize] = 0;
        self.planes[plane].free.insert(0, block);
    }

    /// Pages moved by GC per random host page write.
    pub fn moves_per_write(&self) -> f64 {
        self.moves as f64 / self.writes as f64
    }

    /// One host page write.
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
            self.invalidate(old);
        }
        self.append(plane, lpn);
    }

    /// `writes` uniformly random host page writes.
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
