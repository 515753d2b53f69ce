//! Smaller devices that have the ratios of a large one: fewer blocks, and the same share of live pages in the blocks in
//! use. Write amplification depends on this share, and it does not depend on the number of blocks if there are many.
//!
//! Pages per block stay the same, so a collection takes as long as on the large device.

use super::Pool;
use crate::spec::{DeviceSpec, Gc, Geometry, Mapping};
use crate::units::saturating_u32;

/// Smallest number of blocks of a pool (the blocks among which a victim is chosen) of a smaller device.
const POOL_BLOCKS_MIN: u32 = 64;
/// The number of blocks may deviate by a `DEVIATION`th from the requested one. Among these numbers, the one is chosen
/// with which a whole number of reserved blocks gives the share of live pages most accurately.
const DEVIATION: u32 = 5;
/// Largest number of numbers of blocks that are compared.
const NUMBERS_MAX: u32 = 256;

/// Values of keys of a smaller device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smaller {
    /// Value of `geometry.blocks_per_plane`.
    pub blocks_per_plane: u32,
    /// Value of `geometry.reserve_percent`.
    pub reserve_percent: f64,
    /// Value of `gc.low_percent`, if the device has this key.
    pub low_percent: Option<f64>,
    /// Value of `gc.idle_percent`, if the device has this key.
    pub idle_percent: Option<f64>,
}

impl Smaller {
    /// Returns the keys with their values.
    pub fn keys(self) -> impl Iterator<Item = (&'static str, f64)> {
        let keys = [
            (
                Geometry::blocks_per_plane.name(),
                Some(self.blocks_per_plane.into()),
            ),
            (Geometry::reserve_percent.name(), Some(self.reserve_percent)),
            (Gc::low_percent.name(), self.low_percent),
            (Gc::idle_percent.name(), self.idle_percent),
        ];
        keys.into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
    }
}

impl DeviceSpec {
    /// Returns the settings of a device with about 1/`factor` of the blocks and the same share of live pages in the
    /// blocks in use when a collection begins. `None` if a pool would have fewer than 64 blocks.
    #[must_use]
    pub fn smaller(&self, factor: u32) -> Option<Smaller> {
        let large = self.victims();
        let blocks = self.geometry.blocks_per_plane;
        let least = (POOL_BLOCKS_MIN * blocks).div_ceil(large.units);
        let mean = blocks / factor.max(1);
        let first = (mean - mean / DEVIATION).max(least);
        let last = (mean + mean / DEVIATION).min(blocks);
        let step = (last.saturating_sub(first) / NUMBERS_MAX).max(1);
        let numbers = (first..=last).step_by(step as usize);
        let candidates = numbers.flat_map(|blocks| self.with_blocks(&large, blocks));
        let best = candidates.min_by(|(a, _), (b, _)| a.total_cmp(b));
        best.map(|(_, smaller)| smaller)
    }

    /// Returns the pools. Translation layers with logs select victims among the blocks of a chip.
    fn victims(&self) -> Pool {
        let pool = Pool::of(self);
        match self.ftl.kind {
            Mapping::Page => pool,
            Mapping::Chip(_) => Pool {
                units: self.blocks_per_chip(),
                live_pages: self.pages_per_chip_exported(),
                ..pool
            },
        }
    }

    /// Returns the settings of devices with `blocks` blocks per plane, each with its difference from the device with the
    /// pools `large`: the difference in the share of live pages, plus a thousandth of the relative difference in the
    /// watermark. The latter decides between nearly equal shares.
    fn with_blocks(
        &self,
        large: &Pool,
        blocks: u32,
    ) -> impl Iterator<Item = (f64, Smaller)> + use<'_> {
        let (large, old) = (*large, self.geometry.blocks_per_plane);
        let units = large.units / old * blocks;
        let low = scaled(large.low, units, large.units);
        let idle = scaled(self.idle_blocks_chip(), units, large.units).max(low);
        let idle = self.gc.idle_percent.map(|_| percent_for(idle, units));
        let has_map = matches!(self.ftl.kind, Mapping::Page);
        // Layers with logs keep blocks free by rules of their own.
        let share = move |pool: &Pool| match has_map {
            true => pool.load(),
            false => {
                f64::from(pool.live_pages) / f64::from(pool.unit_pages) / f64::from(pool.units)
            }
        };
        let low_difference =
            f64::from(low) * f64::from(large.units) / f64::from(units) - f64::from(large.low);
        let low_difference = low_difference.abs() / f64::from(large.low.max(1));
        let reserved = scaled(self.reserved_blocks_per_plane(), blocks, old);
        (reserved.saturating_sub(2)..=reserved + 2)
            .filter(move |&reserved| reserved < blocks)
            .map(move |reserved| {
                let smaller = Smaller {
                    blocks_per_plane: blocks,
                    reserve_percent: percent_for(reserved, blocks),
                    low_percent: has_map.then(|| percent_for(low, units)),
                    idle_percent: idle,
                };
                let mut spec = self.clone();
                spec.geometry.blocks_per_plane = blocks;
                spec.geometry.reserve_percent = smaller.reserve_percent;
                spec.gc.low_percent = smaller.low_percent.unwrap_or_default();
                let difference = (share(&spec.victims()) - share(&large)).abs();
                (difference + low_difference / 1000.0, smaller)
            })
    }
}

/// Returns `count * part / whole`, rounded to the nearest number. A count above 0 stays above 0.
fn scaled(count: u32, part: u32, whole: u32) -> u32 {
    let (count, part, whole) = (u64::from(count), u64::from(part), u64::from(whole));
    let scaled = (count * part + whole / 2) / whole;
    saturating_u32(scaled.max(count.min(1)))
}

/// Returns a percentage that gives `part` of `whole` blocks, with a margin for rounding down.
fn percent_for(part: u32, whole: u32) -> f64 {
    match part {
        0 => 0.0,
        part => (f64::from(part) + 0.5) / f64::from(whole) * 100.0,
    }
}
