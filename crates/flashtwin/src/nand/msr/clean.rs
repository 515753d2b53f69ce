//! Cleaning, as the reference calls garbage collection: decides when to collect, chooses the blocks, and computes the
//! duration.

use super::*;

impl Msr {
    /// Collects the blocks that a watermark or an order requires to be collected now. Returns the duration, and whether
    /// this is the beginning of a collection. `None` if nothing is collected.
    pub(super) fn clean(&mut self, chip: usize, now: Time) -> Option<(Time, bool)> {
        let ordered = self.orders.any(chip);
        if !ordered && !self.ftl.is_needy(chip as u32) {
            return None;
        }
        if ordered && self.orders.yields {
            return self.clean_step(chip, now);
        }
        self.service[chip].in_steps = None;
        let time = if self.params.copy_back {
            self.clean_planes(chip, now)
        } else {
            self.clean_chip(chip, now)
        };
        time.map(|time| (time, true))
    }

    /// Executes the next step of a collection that proceeds page by page: a move, or the erase. The collection may be
    /// abandoned between two steps. Pages that have not been moved then stay in the block.
    fn clean_step(&mut self, chip: usize, now: Time) -> Option<(Time, bool)> {
        let mut first = false;
        if self.service[chip].in_steps.is_none() {
            self.service[chip].in_steps = self.block_for_steps(chip, now);
            first = true;
        }
        let block = self.service[chip].in_steps?;
        let pool = self.ftl.pool_of(block);
        let Some(page) = self.ftl.next_live(block, 0) else {
            self.ftl.erase(block);
            self.stats.add(Cause::Erase, 1);
            self.service[chip].in_steps = None;
            self.orders.collected(&self.ftl, pool, true);
            self.log_part(block, (Cause::Erase, 0), now, self.times.erase);
            return Some((self.times.erase, first));
        };
        let from = Ppn(self.ftl.first_ppn(block).0 + page);
        let lpn = self.ftl.lpn_at(from);
        let Ok(stream) = self.ftl.make_room(pool, self.ftl.move_stream(block, lpn)) else {
            // There is no room for the move, because host writes were served between the steps.
            self.service[chip].in_steps = None;
            self.orders.collected(&self.ftl, pool, false);
            return None;
        };
        let plane = self.ftl.plane_of(block);
        let sealed = self.ftl.append(pool, stream, lpn);
        self.stats.add(Cause::GcMove, 1);
        let mut cost = self.times.read + self.times.program;
        let to = self.ftl.lookup(lpn).map(|ppn| self.ftl.block_of(ppn));
        if to.is_some_and(|to| self.ftl.plane_of(to) != plane) {
            cost += self.times.transfer * 2;
        }
        if let (true, Some(summary)) = (sealed, self.summary_transfer) {
            self.stats.add(Cause::Summary, 1);
            cost += summary + self.times.program;
        }
        self.log_part(block, (Cause::GcMove, 1), now, cost);
        Some((cost, first))
    }

    /// Returns the block to collect page by page: the victim of the first pool of the chip that must collect and has a
    /// block worth collecting.
    fn block_for_steps(&mut self, chip: usize, now: Time) -> Option<u32> {
        let pools = self.ftl.shape.pools_per_chip;
        for pool in chip as u32 * pools..(chip as u32 + 1) * pools {
            let free = self.ftl.pool(pool).free;
            if !self.orders.wants(pool, free, self.ftl.low()) {
                continue;
            }
            match gc::victim(&self.ftl, pool, self.victims, Tie::Highest) {
                Some((bit, valid)) if gc::worth_collecting(&self.ftl, pool, valid) => {
                    let block = pool * self.ftl.shape.blocks_per_pool + bit;
                    if self.log.is_some() {
                        self.log_victim(chip, block, valid, now);
                    }
                    return Some(block);
                }
                _ => self.orders.collected(&self.ftl, pool, false),
            }
        }
        None
    }

    /// Cleans a chip with copy-back. In each parallel unit (a part of the chip's planes), the first plane that must
    /// collect and can do so collects one block. The units clean at the same time, so the chip is busy for the duration
    /// of the longest collection.
    fn clean_planes(&mut self, chip: usize, now: Time) -> Option<Time> {
        let units = self.params.parallel_units;
        let per_unit = self.planes / units;
        let mut longest = None;
        for unit in 0..units {
            let cursor = self.service[chip].clean_cursor[unit as usize];
            for step in 0..per_unit {
                let in_unit = (cursor + step) % per_unit;
                let plane = unit * per_unit + in_unit;
                let pool = chip as u32 * self.planes + plane;
                let free = self.ftl.pool(pool).free;
                if !self.orders.wants(pool, free, self.ftl.low()) {
                    continue;
                }
                let victim = self.victim_of_plane(pool);
                let worth = victim.filter(|&(_, v, _)| gc::worth_collecting(&self.ftl, pool, v));
                let Some((bit, valid, cold)) = worth else {
                    self.orders.collected(&self.ftl, pool, false);
                    continue;
                };
                self.service[chip].clean_cursor[unit as usize] = (in_unit + 1) % per_unit;
                let block = pool * self.ftl.shape.blocks_per_pool + bit;
                if self.log.is_some() {
                    self.log_victim(chip, block, valid, now);
                }
                let mut cost = self.collect(block, pool, now);
                if let Some(cold) = cold {
                    let cold = pool * self.ftl.shape.blocks_per_pool + cold;
                    cost += self.migrate(cold, block, now + cost);
                }
                self.orders.collected(&self.ftl, pool, true);
                longest = longest.max(Some(cost));
                break;
            }
        }
        longest
    }

    /// Returns the position of the block to collect in a plane, and its number of live pages. If wear levelling
    /// migrates cold data to this block, also returns the position of the block with the cold data.
    #[inline]
    fn victim_of_plane(&self, pool: u32) -> Option<(u32, u32, Option<u32>)> {
        if self.ftl.shape.wear_aware.is_some() {
            return self.ftl.wear_aware_victim(pool);
        }
        let victim = gc::victim(&self.ftl, pool, self.victims, Tie::Highest);
        victim.map(|(bit, valid)| (bit, valid, None))
    }

    /// Migrates the data of block `cold` to block `worn`, which was just collected, and erases `cold`. Returns the
    /// duration.
    fn migrate(&mut self, cold: u32, worn: u32, now: Time) -> Time {
        let pages = self.ftl.migrate(cold, worn);
        self.ftl.erase(cold);
        self.stats.add(Cause::Migration, pages.into());
        self.stats.add(Cause::Erase, 1);
        self.stats.pages_skipped += u64::from(self.ftl.shape.pages_per_block - pages);
        let moving = (self.times.read + self.times.program) * pages.into();
        self.log_part(cold, (Cause::Migration, pages), now, moving);
        self.log_part(cold, (Cause::Erase, 0), now + moving, self.times.erase);
        moving + self.times.erase
    }

    /// Cleans a chip without copy-back. Collects blocks of the whole chip, those with the fewest live pages first,
    /// until the number of free blocks exceeds the high watermark.
    fn clean_chip(&mut self, chip: usize, now: Time) -> Option<Time> {
        let pool = chip as u32;
        let first = pool * self.ftl.shape.blocks_per_pool;
        let mut order: Vec<(i16, u32, u32)> = self
            .ftl
            .tallies(pool)
            .iter()
            .enumerate()
            .filter(|(_, &t)| t < PageMap::CANDIDATE_END)
            .map(|(bit, &t)| {
                (
                    t,
                    self.block_number(chip, first + bit as u32),
                    first + bit as u32,
                )
            })
            .collect();
        order.sort_unstable();
        self.ftl
            .pass_over_worn(pool, &mut order, |&(_, _, block)| block);
        let mut cost = None;
        for (valid, _, block) in order {
            let free = self.ftl.pool(pool).free;
            let wanted = free <= self.high || self.orders.wants(pool, free, self.ftl.low());
            if !wanted || !gc::worth_collecting(&self.ftl, pool, valid as u32) {
                break;
            }
            let before = cost.unwrap_or(Time::ZERO);
            cost = Some(before + self.collect(block, pool, now + before));
            self.orders.collected(&self.ftl, pool, true);
        }
        if cost.is_none() {
            self.orders.collected(&self.ftl, pool, false);
        }
        cost
    }

    /// Moves the live pages of `block` to the open block of `pool`, and erases `block`. `now` is the start of the
    /// collection. Returns its duration.
    pub(super) fn collect(&mut self, block: u32, pool: u32, now: Time) -> Time {
        let from = self.ftl.plane_of(block);
        let (mut moves, mut summaries, mut crossings) = (0, 0, 0);
        self.ftl.relocate(block, pool, |ftl, to, pages, sealed| {
            moves += pages as u64;
            summaries += sealed as u64;
            crossings += if ftl.plane_of(to) == from {
                0
            } else {
                pages as u64
            };
        });
        self.ftl.erase(block);
        self.stats.add(Cause::GcMove, moves);
        self.stats.add(Cause::Erase, 1);
        // A page that moves to another plane is transferred out of the chip and back. With copy-back, pages stay in
        // their plane.
        let mut moving =
            (self.times.read + self.times.program) * moves + self.times.transfer * (2 * crossings);
        if let Some(summary) = self.summary_transfer {
            self.stats.add(Cause::Summary, summaries);
            moving += (summary + self.times.program) * summaries;
        }
        self.log_part(block, (Cause::GcMove, moves as u32), now, moving);
        self.log_part(block, (Cause::Erase, 0), now + moving, self.times.erase);
        moving + self.times.erase
    }
}
