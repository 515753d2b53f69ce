//! Collecting a block: a run of moves, as many pages at a time as one program takes, and an erase.

use super::lane::Step;
use super::*;
use crate::gc::{self, Tie};

/// Pages ahead of the one being moved whose map entries are fetched.
const AHEAD: u32 = 12;

/// A block being collected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub block: u32,
    page: u32,
}

/// A page that was moved in the map.
struct Move {
    from: Ppn,
    /// Its new page in its block.
    page: u32,
    /// It was the last of that block.
    sealed: bool,
    stream: Stream,
}

impl Modern {
    /// Whether the die has at most `low` free blocks, and a block worth collecting; takes it up.
    pub(super) fn pick_victim(&mut self, die: usize, low: u32, now: Time) -> bool {
        let pool = die as u32;
        if !self.orders.wants(pool, self.ftl.pool(pool).free, low) {
            return false;
        }
        let victim = gc::victim(&self.ftl, pool, self.victim, Tie::Lowest);
        let worth = victim.filter(|&(_, valid)| gc::worth_collecting(&self.ftl, pool, valid));
        let Some((bit, valid)) = worth else {
            self.orders.collected(&self.ftl, pool, false);
            return false;
        };
        let block = pool * self.ftl.shape.blocks_per_pool + bit;
        self.collecting[die] = Some(Run { block, page: 0 });
        if let Some(log) = &mut self.log {
            log.push(FlashEvent::Victim {
                at: now,
                chip: pool,
                plane: bit / self.ftl.shape.blocks_per_plane,
                block: bit,
                valid,
            });
        }
        true
    }

    /// Moves the next live page of the block under collection in the map; or erases the block, and
    /// says `None`.
    fn collect_page(&mut self, die: usize) -> Option<Move> {
        let run = self.collecting[die].as_mut().expect("a run is under way");
        let Some(page) = self.ftl.next_live(run.block, run.page) else {
            self.ftl.erase(run.block);
            self.stats.add(Cause::Erase, 1);
            self.collecting[die] = None;
            self.orders.collected(&self.ftl, die as u32, true);
            return None;
        };
        run.page = page + 1;
        let from = Ppn(self.ftl.first_ppn(run.block).0 + page);
        self.ftl.prefetch_at(Ppn(from.0 + AHEAD));
        let lpn = self.ftl.lpn_at(from);
        let pool = die as u32;
        let stream = self
            .ftl
            .make_room(pool, self.ftl.move_stream(lpn))
            .expect("worth_collecting saw the room");
        let page = self.ftl.next_page(pool, stream);
        let sealed = self.ftl.append(pool, stream, lpn);
        self.stats.add(Cause::GcMove, 1);
        if sealed && self.summary_transfer.is_some() {
            self.stats.add(Cause::Summary, 1);
        }
        Some(Move {
            from,
            page,
            sealed,
            stream,
        })
    }

    /// The block under collection has another live page, which goes where the one before went.
    fn has_more(&self, die: usize, stream: Stream) -> bool {
        let next = self.collecting[die].and_then(|run| {
            let page = self.ftl.next_live(run.block, run.page)?;
            Some(self.ftl.lpn_at(Ppn(self.ftl.first_ppn(run.block).0 + page)))
        });
        next.is_some_and(|lpn| self.ftl.move_stream(lpn) == stream)
    }

    pub(super) fn start_gc_step(&mut self, die: usize, now: Time, events: &mut EventQueue) {
        let Some(first) = self.collect_page(die) else {
            self.lanes[die]
                .steps
                .push_back(Step::Pulse(self.times.erase));
            return self.start(die, now, events);
        };
        let mut program = self.layout.program(first.page);
        let left = self.layout.left_in_row(first.page);
        let mut sensing = self.layout.sensing();
        let (mut moved, mut last) = (1, first);
        loop {
            if !sensing.has(&self.layout, last.from) {
                let time = self.sense(last.from);
                sensing.add(&self.layout, last.from, time);
            }
            if moved == left || last.sealed || !self.has_more(die, last.stream) {
                break;
            }
            last = self.collect_page(die).expect("a live page was seen");
            moved += 1;
        }
        let mut summary = Time::ZERO;
        if let (true, Some(transfer)) = (last.sealed, self.summary_transfer) {
            summary = transfer;
            program += self.times.program;
        }
        let (read, transfer) = (sensing.total(), self.times.transfer);
        let steps = &mut self.lanes[die].steps;
        if self.params.copy_back {
            steps.push_back(Step::Pulse(read + program + summary));
        } else {
            steps.push_back(Step::Array(read));
            steps.extend((0..2 * moved - 1).map(|_| Step::Transfer(transfer)));
            steps.push_back(Step::Transfer(transfer + summary));
            steps.push_back(Step::Pulse(program));
        }
        self.start(die, now, events);
    }

    /// Collects the whole block taken up, in no time.
    pub(super) fn collect_untimed(&mut self, die: usize) {
        while self.collect_page(die).is_some() {}
    }

    pub fn write_untimed(&mut self, die: usize, lpn: Lpn) -> bool {
        while self.pick_victim(die, self.ftl.low(), Time::ZERO) {
            self.collect_untimed(die);
        }
        let stream = self.ftl.host_stream(lpn, Stream::Cold);
        let Ok(stream) = self.ftl.make_room(die as u32, stream) else {
            return false;
        };
        if self.ftl.append(die as u32, stream, lpn) && self.summary_transfer.is_some() {
            self.stats.add(Cause::Summary, 1);
        }
        self.stats.add(Cause::HostWrite, 1);
        true
    }
}
