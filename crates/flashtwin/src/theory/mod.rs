//! Closed forms of hit ratios and of mean response times. A hit ratio follows from the popularity of pages, that is,
//! the share of the accesses that go to each page.
//!
//! The closed forms of write amplification are in [`crate::placement::theory`]. All forms assume independent
//! references: each access draws its page independently of the others, with probabilities that do not change.

mod smaller;

pub use smaller::Smaller;

use crate::placement::theory::uniform_fifo;
use crate::spec::{DeviceSpec, Nand};

/// Number of steps of a bisection. It exceeds the number of binary digits of a double, because the first steps are
/// needed to find the magnitude of the result.
const STEPS: usize = 200;

/// A class of pages that are accessed equally often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageClass {
    /// Number of pages.
    pub pages: f64,
    /// Share of all accesses that go to the pages of the class.
    pub accesses: f64,
}

/// A pool: the blocks or superblocks among which a collection chooses its victim. If a device has several pools, they
/// all have the same numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pool {
    /// Number of pools.
    pub pools: u32,
    /// Number of blocks or superblocks of a pool.
    pub units: u32,
    /// Number of data pages of a block or superblock.
    pub unit_pages: u32,
    /// GC watermark: the pool collects when it has at most this number of free blocks.
    pub low: u32,
    /// Mean number of blocks that are neither free nor candidates for collection when a collection begins: the open
    /// block and, with the back end `msr`, a half more. With copy-back, it is one more, which the planes of a chip
    /// share. The numbers for `msr` were measured in long runs of devices of 64 to 512 blocks per pool.
    pub unsealed: f64,
    /// Number of host pages in a pool if all exported pages are written.
    pub live_pages: u32,
}

impl Pool {
    /// Returns the pools of a device with a page map as its translation layer.
    pub fn of(spec: &DeviceSpec) -> Pool {
        let g = &spec.geometry;
        let chip = Pool {
            pools: g.chips,
            units: spec.blocks_per_chip(),
            unit_pages: spec.data_pages_per_block(),
            low: spec.low_blocks_chip(),
            unsealed: match &spec.nand {
                Nand::Msr(_) => 1.5,
                Nand::Modern(_) => 1.0,
            },
            live_pages: spec.pages_per_chip_exported(),
        };
        match &spec.nand {
            Nand::Msr(_) if spec.copy_back() => Pool {
                pools: g.chips * g.planes_per_chip,
                units: g.blocks_per_plane,
                low: spec.low_blocks_plane(),
                live_pages: chip.live_pages / g.planes_per_chip,
                unsealed: 1.0 + 1.0 / f64::from(g.planes_per_chip),
                ..chip
            },
            Nand::Modern(_) if spec.gc.has_superblocks() => Pool {
                pools: 1,
                unit_pages: chip.unit_pages * g.chips,
                live_pages: chip.live_pages * g.chips,
                ..chip
            },
            _ => chip,
        }
    }

    /// Returns the effective number of blocks in use when a collection begins, as the closed forms need it. The closed
    /// forms measure time in host writes: a newly opened block receives all its moved pages at once, and then host
    /// pages one by one until it is sealed. Therefore the result is the number of sealed blocks, minus half of the
    /// fraction of a block that host pages fill.
    pub fn units_in_use(&self) -> f64 {
        let sealed = f64::from(self.units) - f64::from(self.low) - self.unsealed;
        let live = f64::from(self.live_pages) / f64::from(self.unit_pages);
        let load = (live / (sealed - 0.25)).clamp(0.0, 0.999);
        sealed - 0.5 / uniform_fifo(load)
    }

    /// Returns the share of the pages in use that are live, if all exported pages are written.
    pub fn load(&self) -> f64 {
        f64::from(self.live_pages) / f64::from(self.unit_pages) / self.units_in_use()
    }
}

/// Returns the hit ratio of LRU by Che's approximation (IEEE JSAC 20(7), 2002): each page stays in the buffer for the
/// characteristic time after its last access. The characteristic time is the time in which `capacity` different pages
/// are accessed.
pub fn lru_hits(classes: &[PageClass], capacity: f64) -> f64 {
    hits(classes, capacity, |accesses| -(-accesses).exp_m1())
}

/// Returns the hit ratio of FIFO and of RANDOM, which are equal (Gelenbe, IEEE Trans. Comput. C-22(6), 1973). Uses
/// Che's approximation: a page with a mean number of `a` accesses in the characteristic time is in the buffer with
/// probability a / (1 + a).
pub fn fifo_hits(classes: &[PageClass], capacity: f64) -> f64 {
    hits(classes, capacity, |accesses| accesses / (1.0 + accesses))
}

/// Computes a hit ratio by Che's approximation. `present` returns the probability that a page is in the buffer, given
/// its mean number of accesses in the characteristic time.
fn hits(classes: &[PageClass], capacity: f64, present: impl Fn(f64) -> f64) -> f64 {
    let used: Vec<&PageClass> = classes
        .iter()
        .filter(|class| class.pages > 0.0 && class.accesses > 0.0)
        .collect();
    let pages: f64 = used.iter().map(|class| class.pages).sum();
    if capacity <= 0.0 || used.is_empty() {
        return 0.0;
    }
    if capacity >= pages {
        return 1.0;
    }
    let cached = |time: f64| -> f64 {
        let of = |c: &&PageClass| c.pages * present(c.accesses / c.pages * time);
        used.iter().map(of).sum()
    };
    let (mut low, mut high) = (1e-6_f64, 1e30_f64);
    for _ in 0..STEPS {
        let middle = (low * high).sqrt();
        match cached(middle) < capacity {
            true => low = middle,
            false => high = middle,
        }
    }
    let of = |c: &&PageClass| c.accesses * present(c.accesses / c.pages * low);
    used.iter().map(of).sum()
}

/// Returns the mean response time of a queue with Poisson arrivals and one server (Pollaczek and Khinchine). `rate`
/// is the number of arrivals per unit of time. `service` lists the possible service times, each with its probability.
/// `None` if the queue would grow without limit.
pub fn mean_response(rate: f64, service: &[(f64, f64)]) -> Option<f64> {
    let moment = |n: i32| -> f64 {
        let of = |&(time, chance): &(f64, f64)| chance * time.powi(n);
        service.iter().map(of).sum()
    };
    let utilisation = rate * moment(1);
    (utilisation < 1.0).then(|| moment(1) + rate * moment(2) / (2.0 * (1.0 - utilisation)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_references_hit_in_proportion_to_the_capacity() {
        let uniform = [PageClass {
            pages: 76_800.0,
            accesses: 1.0,
        }];
        for capacity in [1.0, 8192.0, 50_000.0, 76_800.0, 1e6] {
            let expected: f64 = (capacity / 76_800.0_f64).min(1.0);
            for found in [lru_hits(&uniform, capacity), fifo_hits(&uniform, capacity)] {
                assert!((found - expected).abs() < 1e-9, "{found} {expected}");
            }
        }
        assert_eq!(lru_hits(&[], 8.0), 0.0);
    }

    #[test]
    fn lru_hits_more_often_than_fifo_where_pages_differ() {
        let classes = [(100.0, 0.8), (900.0, 0.2), (1000.0, 0.0)];
        let classes = classes.map(|(pages, accesses)| PageClass { pages, accesses });
        let (lru, fifo) = (lru_hits(&classes, 150.0), fifo_hits(&classes, 150.0));
        assert!(lru > fifo && fifo > 0.15, "{lru} {fifo}");
        assert_eq!(lru_hits(&classes, 1000.0), 1.0);
    }

    #[test]
    fn constant_service_waits_half_as_long_as_exponential() {
        // The mean wait of M/D/1 with load u and service time s is u s / (2 (1 - u)).
        let response = mean_response(0.008, &[(100.0, 1.0)]).unwrap();
        assert!((response - 300.0).abs() < 1e-9, "{response}");
        assert_eq!(mean_response(0.01, &[(100.0, 1.0)]), None);
        let mixed = mean_response(0.008, &[(50.0, 0.5), (150.0, 0.5)]).unwrap();
        assert!(mixed > response);
    }
}
