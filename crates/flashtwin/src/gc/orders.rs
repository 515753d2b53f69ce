//! What an array's controller tells a drive about its garbage collection (policies.md C5).
//!
//! A drive collects by itself when a pool of blocks is at its watermark. It may be told to collect
//! now (FORCE_GC), and to leave off between two moves. Told to collect, a pool takes one victim at
//! least, then goes on until it has more free blocks than it was told (D-25). Whoever serves the drive
//! may tell pools to collect a block each (D-143).

use std::ops::Range;

use crate::ftl::PageMap;

/// What a pool was told.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// One victim has still to be taken.
    once: bool,
    /// Go on while there are at most so many free blocks; `None`: it was told nothing.
    until: Option<u32>,
}

/// What a drive was told.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pools: Vec<Told>,
    /// Pools of each chip that still have something to do.
    chips: Vec<u16>,
    /// And of them all.
    left: u32,
    /// No pool takes more than one victim.
    single: bool,
    /// Told to leave off between two moves when asked to.
    pub yields: bool,
}

/// FORCE_GC: what a drive is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Force {
    /// Every pool goes on while it has at most so many free blocks.
    pub until: u32,
    /// Every pool takes one victim at least.
    pub once: bool,
    /// No pool takes more than one.
    pub single: bool,
    /// It is to leave off when the host wants something.
    pub yields: bool,
}

impl Orders {
    pub fn new(ftl: &PageMap) -> Orders {
        let shape = &ftl.shape;
        Orders {
            pools: vec![Told::default(); (shape.chips * shape.pools_per_chip) as usize],
            chips: vec![0; shape.chips as usize],
            left: 0,
            single: false,
            yields: false,
        }
    }

    /// Tells all pools to collect.
    pub fn force(&mut self, ftl: &PageMap, force: Force) {
        self.yields = force.yields;
        self.single = force.single;
        for pool in 0..self.pools.len() as u32 {
            if force.once || ftl.pool(pool).free <= force.until {
                self.tell(ftl, pool, force.once, force.until);
            }
        }
    }

    /// Tells those pools to collect a block each, now; one that was told something and has not done it
    /// yet is left at that (D-143).
    pub fn force_one_each(&mut self, ftl: &PageMap, pools: Range<u32>) {
        if self.left == 0 {
            (self.yields, self.single) = (false, false);
        }
        for pool in pools {
            if self.pools[pool as usize].until.is_none() {
                self.tell(ftl, pool, true, 0);
            }
        }
    }

    fn tell(&mut self, ftl: &PageMap, pool: u32, once: bool, until: u32) {
        let told = &mut self.pools[pool as usize];
        if told.until.is_none() {
            self.chips[(pool / ftl.shape.pools_per_chip) as usize] += 1;
            self.left += 1;
        }
        let until = Some(until);
        *told = Told { once, until };
    }

    /// Takes back what the pools were told.
    pub fn leave_off(&mut self) {
        if self.left > 0 {
            self.pools.fill(Told::default());
            self.chips.fill(0);
            self.left = 0;
        }
    }

    /// A pool of the chip was told something that is not done yet.
    #[inline]
    pub fn any(&self, chip: usize) -> bool {
        self.left > 0 && self.chips[chip] > 0
    }

    /// Pools that have something to do.
    #[inline]
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Whether the pool is to collect: for itself at or below `low` free blocks, or as told.
    #[inline]
    pub fn wants(&self, pool: u32, free: u32, low: u32) -> bool {
        free <= low
            || self.left > 0 && {
                let told = &self.pools[pool as usize];
                told.once || told.until.is_some_and(|until| free <= until)
            }
    }

    /// The pool has collected a block, or found none worth it; it has `free` free blocks.
    #[inline]
    pub fn collected(&mut self, ftl: &PageMap, pool: u32, found: bool) {
        if self.left == 0 {
            return;
        }
        let told = &mut self.pools[pool as usize];
        told.once = false;
        if told
            .until
            .is_some_and(|until| !found || self.single || ftl.pool(pool).free > until)
        {
            told.until = None;
            self.chips[(pool / ftl.shape.pools_per_chip) as usize] -= 1;
            self.left -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::builtin;
    use crate::DeviceSpec;

    /// Told to collect until more blocks are free than there are, a pool takes one victim or goes on.
    #[test]
    fn a_single_collection_is_one() {
        let spec = DeviceSpec::parse(builtin("demo").unwrap(), "demo").unwrap();
        let ftl = PageMap::new(&spec, true, 1);
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
