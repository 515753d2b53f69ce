//! Orders to collect garbage that a drive receives, for example from an array (Kim et al., "Harmonia", MSST 2011).
//!
//! A drive collects on its own if the number of free blocks in a pool has fallen to the watermark. Orders make it
//! collect at other times. There are two kinds:
//!
//! - An array can order the drive to collect at once (FORCE_GC), and to stop between two page moves. Each pool then
//!   collects until it has more free blocks than the limit that the order gives (D-25).
//! - The server of a drive can order pools to collect one block each (D-143).

use std::ops::Range;

use crate::ftl::PageMap;

/// The order of a pool.
#[derive(Clone, Copy, Debug, Default)]
struct PoolOrder {
    /// Whether the pool must collect one victim even if it has many free blocks.
    once: bool,
    /// Limit of the order: the pool collects while it has at most this many free blocks. `None` if the pool has no
    /// order.
    until: Option<u32>,
}

/// The orders of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pools: Vec<PoolOrder>,
    /// For each chip, the number of its pools with an unfinished order.
    chips: Vec<u16>,
    /// Number of pools of the drive with an unfinished order.
    left: u32,
    /// Whether every pool collects at most one victim.
    single: bool,
    /// Whether an ordered collection stops, between two page moves, when a host request arrives.
    pub yields: bool,
}

/// FORCE_GC: an order to a drive to collect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Force {
    /// Number of free blocks. While a pool with an order has at most this many, it collects.
    pub until: u32,
    /// Whether every pool collects at least one victim, even if it has many free blocks.
    pub once: bool,
    /// Whether every pool collects at most one victim.
    pub single: bool,
    /// Whether an ordered collection stops, between two page moves, when a host request arrives.
    pub yields: bool,
}

impl Orders {
    pub fn new(ftl: &PageMap) -> Orders {
        let shape = &ftl.shape;
        Orders {
            pools: vec![PoolOrder::default(); (shape.chips * shape.pools_per_chip) as usize],
            chips: vec![0; shape.chips as usize],
            left: 0,
            single: false,
            yields: false,
        }
    }

    /// Orders pools to collect. If `force.once`, these are all pools; otherwise, the pools with at most `force.until`
    /// free blocks.
    pub fn force(&mut self, ftl: &PageMap, force: Force) {
        self.yields = force.yields;
        self.single = force.single;
        for pool in 0..self.pools.len() as u32 {
            if force.once || ftl.pool(pool).free <= force.until {
                self.order_pool(ftl, pool, force.once, force.until);
            }
        }
    }

    /// Orders each of the given pools to collect one block. A pool that already has an unfinished order keeps its old
    /// order (D-143).
    pub fn force_one_each(&mut self, ftl: &PageMap, pools: Range<u32>) {
        if self.left == 0 {
            (self.yields, self.single) = (false, false);
        }
        for pool in pools {
            if self.pools[pool as usize].until.is_none() {
                self.order_pool(ftl, pool, true, 0);
            }
        }
    }

    fn order_pool(&mut self, ftl: &PageMap, pool: u32, once: bool, until: u32) {
        let order = &mut self.pools[pool as usize];
        if order.until.is_none() {
            self.chips[(pool / ftl.shape.pools_per_chip) as usize] += 1;
            self.left += 1;
        }
        let until = Some(until);
        *order = PoolOrder { once, until };
    }

    /// Cancels the orders of all pools.
    pub fn cancel_forced_gc(&mut self) {
        if self.left > 0 {
            self.pools.fill(PoolOrder::default());
            self.chips.fill(0);
            self.left = 0;
        }
    }

    /// Whether a pool of the chip has an unfinished order.
    #[inline]
    pub fn any(&self, chip: usize) -> bool {
        self.left > 0 && self.chips[chip] > 0
    }

    /// Returns the number of pools with an unfinished order.
    #[inline]
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Whether the pool must collect: it has at most `low` free blocks, or it has an order that is not fulfilled.
    #[inline]
    pub fn wants(&self, pool: u32, free: u32, low: u32) -> bool {
        free <= low
            || self.left > 0 && {
                let order = &self.pools[pool as usize];
                order.once || order.until.is_some_and(|until| free <= until)
            }
    }

    /// Records the end of a collection. `found` is true if the pool collected a block, and false if no block was worth
    /// collecting. The pool's order ends if it is fulfilled or if no block was worth collecting.
    #[inline]
    pub fn collected(&mut self, ftl: &PageMap, pool: u32, found: bool) {
        if self.left == 0 {
            return;
        }
        let order = &mut self.pools[pool as usize];
        order.once = false;
        if order
            .until
            .is_some_and(|until| !found || self.single || ftl.pool(pool).free > until)
        {
            order.until = None;
            self.chips[(pool / ftl.shape.pools_per_chip) as usize] -= 1;
            self.left -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::Shape;
    use crate::spec::builtin;
    use crate::DeviceSpec;

    /// The order requires more free blocks than the pool has blocks. With `single`, a pool still collects only one
    /// victim. Without it, the pool continues as long as it finds a victim.
    #[test]
    fn a_single_collection_is_one() {
        let spec = DeviceSpec::parse(builtin("demo").unwrap(), "demo").unwrap();
        let ftl = PageMap::new(Shape::of(&spec, true), 1);
        let left_after_one = |single: bool, found: bool| {
            let mut orders = Orders::new(&ftl);
            let force = Force {
                until: u32::MAX,
                once: true,
                single,
                yields: false,
            };
            orders.force(&ftl, force);
            let all = orders.left();
            assert!(orders.any(0) && orders.wants(0, 9, 1));
            orders.collected(&ftl, 0, found);
            assert_eq!(orders.wants(0, 9, 1), orders.left() == all);
            all - orders.left()
        };
        assert_eq!(left_after_one(true, true), 1);
        assert_eq!(left_after_one(false, true), 0);
        assert_eq!(left_after_one(false, false), 1);
    }
}
