//! Collection of a block, called a *run*. A run consists of moves and an erase. A move has as many pages as one
//! program.

use super::lane::Step;
use super::*;
use crate::ftl::LiveFrom;
use crate::gc::{self, Tie};

/// Further map entries are prefetched when the page being moved is at most this number of pages before the first page
/// with a map entry that is not prefetched yet.
const AHEAD: u32 = 4;
/// Number of pages for which the map entries are prefetched together: a power of two, at most 64. The core would stall
/// at each prefetch if the entries were prefetched one by one.
const TOGETHER: u32 = 16;
/// When map entries are prefetched, the logical page numbers that follow at this distance, in pages, are prefetched
/// too. They locate the map entries that are prefetched later.
pub(super) const FAR_AHEAD: u32 = 32;

/// State of the collection of a block. Every move indexes the table of these states. The size of this struct is a power
/// of two, so the index is multiplied by a shift.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Run {
    pub block: u32,
    from: LiveFrom,
    /// The first flash page with a map entry that is not prefetched yet.
    unloaded: u32,
    /// Whether the block is in SLC mode.
    pub folds: bool,
    /// Number of live pages of the block at the beginning of its collection.
    live: u32,
    moved: u32,
    /// Number of pages that the host has programmed since the collection began.
    passed: u32,
}

impl Run {
    /// Returns the cause of the block's moves.
    #[inline(always)]
    fn moves(&self) -> Cause {
        match self.folds {
            true => Cause::Fold,
            false => Cause::GcMove,
        }
    }

    /// Prefetches map entries for the moves after that of `page`, unless enough of them have been prefetched already.
    #[inline(always)]
    fn load_ahead(&mut self, page: Ppn, ftl: &PageMap) {
        if page.0 + AHEAD >= self.unloaded {
            self.load_more(ftl);
        }
    }

    #[inline(never)]
    fn load_more(&mut self, ftl: &PageMap) {
        let first = self.unloaded;
        let page = first - ftl.first_ppn(self.block).0;
        if page < ftl.shape.pages_per_block {
            ftl.prefetch_live_maps(self.block, page, TOGETHER);
            ftl.prefetch_lpn_at(Ppn(first.wrapping_add(FAR_AHEAD)));
            self.unloaded = first.saturating_add(TOGETHER);
        } else {
            self.unloaded = u32::MAX;
        }
    }

    /// Whether the collection keeps pace with the host (D-170). The collection will gain a number of free pages. The
    /// fraction of this number that the host has used must be below the fraction of the moves that are done.
    fn keeps_pace(&self, pages_per_block: u32) -> bool {
        let gains = u64::from(pages_per_block.saturating_sub(self.live));
        u64::from(self.passed) * u64::from(self.live) < u64::from(self.moved) * gains
    }
}

/// A page that was just moved in the map.
struct Move {
    from: Ppn,
    /// Page number within the new block.
    page: u32,
    /// Whether this page filled its new block.
    sealed: bool,
    stream: Stream,
}

impl Modern {
    /// Begins to collect a block under two conditions: the die has at most `low` free blocks or an order to collect,
    /// and a block is worth collecting. Returns whether a collection began.
    #[inline(never)]
    pub(super) fn pick_victim(&mut self, die: usize, low: u32, now: Time) -> bool {
        let pool = die as u32;
        if !self.map.orders.wants(pool, self.free_of(die), low) {
            return false;
        }
        // Blocks of the SLC cache are collected first. Their collection frees space even if all their pages are live,
        // because the same data take fewer blocks outside the cache.
        let victim = self.map.ftl.oldest_slc(pool);
        let victim =
            victim.or_else(|| gc::victim(&self.map.ftl, pool, self.map.victims, Tie::Lowest));
        let taken = victim.is_some_and(|(bit, valid)| self.begin_collection(die, bit, valid, now));
        if !taken {
            self.map.orders.collected(&self.map.ftl, pool, false);
        }
        taken
    }

    /// Returns the free space of a die in blocks, for comparison with the watermark.
    #[inline(always)]
    pub(super) fn free_of(&self, die: usize) -> u32 {
        match self.map.in_pages {
            true => self.map.ftl.free_beside_open(die as u32),
            false => self.map.ftl.pool(die as u32).free,
        }
    }

    /// Whether the die is at its GC watermark. If so, a collection is due before the next write.
    #[inline]
    pub(super) fn is_short(&self, die: usize) -> bool {
        self.map.ftl.is_needy(die as u32)
            || self.map.in_pages && self.free_of(die) <= self.map.ftl.low()
    }

    /// Begins to collect a block of the die if its collection gains room ([`gc::worth_collecting`]). Returns whether
    /// the collection began.
    fn begin_collection(&mut self, die: usize, bit: u32, valid: u32, now: Time) -> bool {
        let pool = die as u32;
        if !gc::worth_collecting(&self.map.ftl, pool, valid) {
            return false;
        }
        let block = pool * self.map.ftl.shape.blocks_per_pool + bit;
        self.map.collecting[die] = Some(Run {
            block,
            from: self.map.ftl.live_from(block),
            unloaded: self.map.ftl.first_ppn(block).0,
            folds: self.map.ftl.is_slc(block),
            live: valid,
            moved: 0,
            passed: 0,
        });
        self.map.ftl.prefetch_block(block, FAR_AHEAD);
        if let Some(log) = &mut self.log {
            log.push(FlashEvent::Victim {
                at: now,
                chip: pool,
                plane: bit / self.map.ftl.shape.blocks_per_plane,
                block: bit,
                valid,
            });
        }
        true
    }

    /// Begins to collect the oldest block of the SLC cache if the die has been idle long enough. Otherwise sets a timer
    /// for the instant at which this will be so, and returns false.
    #[inline(never)]
    pub(super) fn fold_when_idle(
        &mut self,
        die: usize,
        now: Time,
        events: &mut EventQueue,
    ) -> bool {
        let Some(cache) = &self.params.slc_cache else {
            return false;
        };
        let Some((bit, valid)) = self.map.ftl.oldest_slc(die as u32) else {
            return false;
        };
        let due = self.lanes[die].served + cache.idle;
        if due <= now {
            return self.begin_collection(die, bit, valid, now);
        }
        if !std::mem::replace(&mut self.resting[die], true) {
            events.set(
                self.first_resource + self.lanes.len() + self.chips.len() + die,
                due,
            );
        }
        false
    }

    /// Moves the next live page of the block under collection, but only in the map. If no live page remains, erases the
    /// block in the map and returns `None`. The caller adds the time of the move or the erase.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn collect_page(&mut self, die: usize) -> Option<Move> {
        let run = self.map.collecting[die]
            .as_mut()
            .expect("a run is under way");
        let Some(from) = self.map.ftl.first_live(run.block, &mut run.from) else {
            self.map.ftl.erase(run.block);
            self.stats.add(Cause::Erase, 1);
            self.map.collecting[die] = None;
            self.map.orders.collected(&self.map.ftl, die as u32, true);
            return None;
        };
        run.moved += 1;
        run.load_ahead(from, &self.map.ftl);
        let from_page = from.0 - self.map.ftl.first_ppn(run.block).0;
        let block = run.block;
        let cause = run.moves();
        let lpn = self.map.ftl.lpn_at(from);
        let pool = die as u32;
        let stream = self
            .map
            .ftl
            .make_room(pool, self.map.ftl.move_stream(block, lpn))
            .expect("worth_collecting saw the room");
        let page = self.map.ftl.next_page(pool, stream);
        let sealed = self.map.ftl.move_page(block, from_page, pool, stream);
        self.stats.add(cause, 1);
        if sealed && self.map.summary_transfer.is_some() {
            self.stats.add(Cause::Summary, 1);
        }
        Some(Move {
            from,
            page,
            sealed,
            stream,
        })
    }

    /// Whether the block under collection has another live page that goes to `stream`, as the previous one did.
    fn has_more(&self, die: usize, stream: Stream) -> bool {
        let next = self.map.collecting[die].and_then(|run| {
            let page = self.map.ftl.first_live(run.block, &mut { run.from })?;
            let lpn = self.map.ftl.lpn_at(page);
            Some(self.map.ftl.move_stream(run.block, lpn))
        });
        next == Some(stream)
    }

    /// Moves further pages with the program that moves `first`. They must go to the same row (the pages of one
    /// program), and at most `left` pages are moved in total. Returns the number of moved pages, the time to read them,
    /// and whether the last one filled its block.
    #[inline(never)]
    fn collect_row(&mut self, die: usize, first: Move, left: u32) -> (u32, Time, bool) {
        let mut sensing = self.layout.sensing();
        let (mut moved, mut last) = (1, first);
        loop {
            if !sensing.has(&self.layout, last.from) {
                let time = self.sense(last.from);
                sensing.add(&self.layout, last.from, time);
            }
            if moved == left || last.sealed || !self.has_more(die, last.stream) {
                return (moved, sensing.total(), last.sealed);
            }
            let next = self.collect_page(die);
            last = next.expect("a live page was seen");
            moved += 1;
        }
    }

    /// Calls [`Modern::start_gc_step`] without inlining it, for callers that are rarely executed.
    #[inline(never)]
    pub(super) fn start_gc_step_again(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        self.start_gc_step(die, now, events);
    }

    /// Begins the next move of the run, or the erase.
    #[inline(always)]
    pub(super) fn start_gc_step(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        match self
            .map
            .plain_move
            .and_then(|time| self.move_plainly(die, time))
        {
            Some(time) => self.start_move(die, time, now, events),
            None => self.start_any_move(die, now, events),
        }
    }

    /// Fast path: makes the next move of a run in which every move takes `time`, is one program, and goes to the same
    /// block. Returns the duration of the move. Changes nothing and returns `None` in two cases: the current word of
    /// live bits has no live page, or the move would have to open another block.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn move_plainly(&mut self, die: usize, time: Time) -> Option<Time> {
        let run = self.map.collecting[die].as_mut()?;
        let (page, sealed) = self.map.ftl.move_first(run.block, run.from, die as u32)?;
        run.moved += 1;
        run.load_ahead(page, &self.map.ftl);
        self.stats.add(run.moves(), 1);
        match sealed {
            true => Some(time + self.summary()),
            false => Some(time),
        }
    }

    /// Counts the summary page of a block that was just filled. Returns the time to transfer and program it; zero if
    /// blocks have no summary page.
    #[inline(never)]
    fn summary(&mut self) -> Time {
        let Some(transfer) = self.map.summary_transfer else {
            return Time::ZERO;
        };
        self.stats.add(Cause::Summary, 1);
        transfer + self.times.program
    }

    #[inline(never)]
    pub(super) fn start_any_move(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        let run = self.map.collecting[die].expect("a run is under way");
        let Some(first) = self.collect_page(die) else {
            if self.log.is_some() {
                self.log_part(die, (Cause::Erase, 0), Some(run.block), now);
            }
            return self.start_pulse(die, self.times.erase, now, events);
        };
        let mut program = self.program(first.stream, first.page);
        let (moved, read, sealed) = match self.layout.left_in_row(first.page) {
            1 => (1, self.sense(first.from), first.sealed),
            left => self.collect_row(die, first, left),
        };
        if self.log.is_some() {
            self.log_part(die, (run.moves(), moved), Some(run.block), now);
        }
        let transfer = self.times.transfer;
        let mut summary = Time::ZERO;
        if let (true, Some(transfer)) = (sealed, self.map.summary_transfer) {
            summary = transfer;
            program += self.times.program;
        }
        if self.params.copy_back {
            let time = read + program + summary;
            return match self.params.cached_commands {
                true => self.start_pulse(die, time, now, events),
                false => self.start_move(die, time, now, events),
            };
        }
        let steps = &mut self.lanes[die].steps;
        steps.push_back(Step::Array(read));
        steps.extend((0..2 * moved - 1).map(|_| Step::Transfer(transfer)));
        steps.push_back(Step::Transfer(transfer + summary));
        steps.push_back(Step::Pulse(program));
        self.start(die, now, events);
    }

    /// Whether a host write may pass the collection although the die is at the watermark. The collection must keep pace
    /// with the host, and more than one block must be free, so that the moves have room (D-170).
    pub(super) fn keeps_pace(&self, die: usize) -> bool {
        let pages = self.map.ftl.shape.pages_per_block;
        self.map.ftl.pool(die as u32).free > 1
            && self.map.collecting[die].is_some_and(|run| run.keeps_pace(pages))
    }

    /// Counts a page that the host programs while the die collects.
    pub(super) fn count_passed(&mut self, die: usize) {
        if let Some(run) = &mut self.map.collecting[die] {
            run.passed += 1;
        }
    }

    /// Collects the rest of the block in no simulated time.
    pub(super) fn collect_untimed(&mut self, die: usize) {
        while self.collect_page(die).is_some() {}
    }

    pub fn write_untimed(&mut self, die: usize, lpn: Lpn, asked: Stream) -> bool {
        match self.map.ftl.has_sets() {
            true => self.collect_sets_untimed(),
            false => {
                while self.pick_victim(die, self.map.ftl.low(), Time::ZERO) {
                    self.collect_untimed(die);
                }
            }
        }
        let stream = self.map.ftl.stream_at_rest(lpn, asked);
        let Ok(stream) = self.map.ftl.make_room(die as u32, stream) else {
            return false;
        };
        if self.map.ftl.append(die as u32, stream, lpn) && self.map.summary_transfer.is_some() {
            self.stats.add(Cause::Summary, 1);
        }
        self.stats.add(Cause::HostWrite, 1);
        true
    }
}
