//! The drain time of a chip: the time until the chip has completed all its work. The paper of the buffer policy ECR
//! calls it the chip queue complete time (section 3, Eqs 1-4).
//!
//! Each eviction of a dirty page computes the drain times of all chips. To be fast, the computation reads only counters
//! of the chip, and of its pools in the page map.

use crate::ftl::PageMap;
use crate::spec::DeviceSpec;
use crate::units::Time;

/// Inputs of the drain-time equations for a chip. The comments give the symbols of the paper.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drain {
    /// N_r: number of reads of the chip, waiting or in service.
    pub reads: u32,
    /// N_w: number of writes of the chip, waiting or in service.
    pub writes: u32,
    /// Number of waiting writes among the N_w. Only these still need free pages, because a write takes its page when
    /// its service begins (D-162).
    pub waiting_writes: u32,
    /// S: whether the chip is in GC, or will begin GC because of the waiting writes.
    pub collects: bool,
    /// N_vp: number of live pages of the block that GC would choose now; 0 if `collects` is false.
    pub victim_pages: u32,
    /// N_fpb: number of free pages of the open block, including the summary page.
    pub free_in_block: u32,
    /// N_p: number of pages of a block.
    pub pages_per_block: u32,
}

/// Latencies of a chip's operations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latencies {
    /// L_r: time of a read in the flash array.
    pub read: Time,
    /// L_w: time of a program in the flash array.
    pub program: Time,
    /// L_gc: time of an erase.
    pub erase: Time,
    /// L_sp: time to program a summary page; 0 if blocks have no summary pages.
    pub summary: Time,
    /// Transfer time of a page.
    pub transfer: Time,
    /// Transfer time of a page that GC moves, out of the chip and back; 0 with copy-back.
    pub move_transfer: Time,
    /// Transfer time of a summary page.
    pub summary_transfer: Time,
}

impl Latencies {
    pub fn of(spec: &DeviceSpec, copy_back: bool) -> Latencies {
        let summary_page = |time| {
            if spec.ftl.summary_page {
                time
            } else {
                Time::ZERO
            }
        };
        let transfer = spec.page_transfer();
        Latencies {
            read: spec.timing.read,
            program: spec.timing.program,
            erase: spec.timing.erase,
            summary: summary_page(spec.timing.program),
            transfer,
            move_transfer: if copy_back { Time::ZERO } else { transfer * 2 },
            summary_transfer: summary_page(spec.summary_transfer()),
        }
    }

    /// Returns the time in which GC moves one page, including its transfers.
    pub fn move_one(&self) -> Time {
        self.read + self.program + self.move_transfer
    }
}

/// Work in service on a chip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InHand {
    /// Number of reads in service.
    pub reads: u32,
    /// Number of writes in service.
    pub writes: u32,
    /// Time until the last of the reads and writes in service ends.
    pub rest: Time,
    /// Remaining time of the running GC if it is not interrupted; `None` if the chip is not in GC.
    pub gc_rest: Option<Time>,
    /// Number of pages that the running GC has still to program.
    pub gc_moves: u32,
}

impl Drain {
    /// Returns the inputs for a chip with the given numbers of reads and writes. `waiting_writes` is the number of
    /// these writes that have not taken a page yet. `gc_moves` is the number of pages that a running GC has still to
    /// move.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn of(
        ftl: &PageMap,
        chip: u32,
        [reads, writes]: [u32; 2],
        waiting_writes: u32,
        in_gc: bool,
        gc_moves: u32,
    ) -> Drain {
        let collects = in_gc || is_short(ftl, chip, waiting_writes);
        let victim_pages = if collects { victim_pages(ftl, chip) } else { 0 };
        let programs = waiting_writes + victim_pages.max(gc_moves);
        Drain {
            reads,
            writes,
            waiting_writes,
            collects,
            victim_pages,
            free_in_block: free_in_block(ftl, chip, programs + 1),
            pages_per_block: ftl.shape.pages_per_block,
        }
    }

    /// Returns N_sp: the number of summary pages to program if the waiting writes and `moved` moved pages are
    /// programmed (Eq. 4).
    #[inline(always)]
    fn summaries(&self, moved: u32) -> u64 {
        let programs = self.waiting_writes + moved;
        let room = self.free_in_block.saturating_sub(1);
        if programs < room {
            0
        } else {
            (1 + (programs - room) / (self.pages_per_block - 1).max(1)).into()
        }
    }

    /// Returns the chip queue complete time as printed in the paper (Eqs 1 to 4). An operation in service counts with
    /// its whole time, as if it were still waiting. A running GC counts as if it had not begun.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn time(&self, l: &Latencies) -> Time {
        let (collecting, moved) = if self.collects {
            let moved = self.victim_pages;
            (l.erase + (l.read + l.program) * moved.into(), moved)
        } else {
            (Time::ZERO, 0)
        };
        l.read * self.reads.into()
            + l.program * self.writes.into()
            + collecting
            + l.summary * self.summaries(moved)
    }

    /// Returns the exact time until the chip has completed all its work, transfers included (D-14). `self` must count
    /// only waiting operations; `in_hand` has those in service. A running GC counts with its remaining time.
    pub fn time_exact(&self, l: &Latencies, in_hand: &InHand) -> Time {
        let (collecting, moved) = match in_hand.gc_rest {
            Some(rest) => (rest, in_hand.gc_moves),
            None if self.collects => {
                let moved = self.victim_pages;
                (l.erase + l.move_one() * moved.into(), moved)
            }
            None => (Time::ZERO, 0),
        };
        in_hand.rest
            + (l.read + l.transfer) * self.reads.into()
            + (l.program + l.transfer) * self.writes.into()
            + collecting
            + (l.summary + l.summary_transfer) * self.summaries(moved)
    }
}

/// Returns S (Eq. 2) for a chip that is not in GC. The arguments are N_fp, N_w and N_mfp of the paper: free pages,
/// writes, and the number of free pages at which GC begins.
#[inline]
fn starts_gc(free_pages: u32, writes: u32, low_pages: u32) -> bool {
    free_pages.saturating_sub(writes) <= low_pages
}

/// Whether `writes` waiting writes, each of which takes a data page, will start a GC. For speed, first counts only the
/// pages of the free blocks. In most cases they suffice, and no GC begins. Otherwise counts all free pages. A dead die
/// has no free pages, but never collects.
#[inline]
fn is_short(ftl: &PageMap, chip: u32, writes: u32) -> bool {
    let low = ftl.low_pages_of_chip();
    starts_gc(ftl.pages_of_free_blocks(chip), writes, low)
        && starts_gc(ftl.free_pages_of_chip(chip), writes, low)
        && !ftl.is_retired(chip * ftl.shape.pools_per_chip)
}

/// Returns N_vp of a chip that collects. Kept out of line, so that the code for all other chips stays small.
#[inline(never)]
fn victim_pages(ftl: &PageMap, chip: u32) -> u32 {
    ftl.fewest_live_of_chip(chip)
}

/// Returns the number of free pages in the open block of the chip that has the most, including its summary page. The
/// next write goes to this block. Stops the search at the first block with more than `enough` free pages.
#[inline(always)]
fn free_in_block(ftl: &PageMap, chip: u32, enough: u32) -> u32 {
    let first = &ftl.pools_of_chip(chip)[0];
    match free_after(ftl, first.next_page) {
        free if free > enough => free,
        _ => free_in_any_block(ftl, chip, enough),
    }
}

#[inline(never)]
fn free_in_any_block(ftl: &PageMap, chip: u32, enough: u32) -> u32 {
    let mut most = 0;
    for pool in ftl.pools_of_chip(chip) {
        most = most.max(free_after(ftl, pool.next_page));
        if most > enough {
            break;
        }
    }
    most
}

/// Returns the number of free pages, including the summary page, of an open block whose next page to write is
/// `next_page`.
#[inline(always)]
fn free_after(ftl: &PageMap, next_page: u32) -> u32 {
    // If the block is full, its summary page is written already. The next write then opens another block.
    let is_full = next_page == ftl.shape.data_pages;
    let used = if is_full { 0 } else { next_page };
    ftl.shape.pages_per_block - used
}

#[cfg(test)]
mod tests {
    use super::*;

    const L: Latencies = Latencies {
        read: Time::from_us(25),
        program: Time::from_us(200),
        erase: Time::from_us(1_500),
        summary: Time::from_us(200),
        transfer: Time::from_us(100),
        move_transfer: Time::from_us(10),
        summary_transfer: Time::from_us(1),
    };

    fn chip(reads: u32, writes: u32, free_pages: u32, free_in_block: u32) -> Drain {
        Drain {
            reads,
            writes,
            waiting_writes: writes,
            collects: starts_gc(free_pages, writes, 96),
            victim_pages: 20,
            free_in_block,
            pages_per_block: 64,
        }
    }

    #[test]
    fn vector_ecr_1() {
        assert_eq!(chip(2, 3, 100, 10).time(&L), Time::from_us(650));
        assert_eq!(chip(2, 3, 99, 10).time(&L), Time::from_us(6_850));
    }

    #[test]
    fn vector_ecr_2() {
        assert_eq!(chip(1, 9, 500, 10).time(&L), Time::from_us(2_025));
        assert_eq!(chip(0, 0, 500, 1).time(&L), Time::from_us(200));
    }

    /// D-162: a chip has three writes and three free data pages. If all three writes wait, they fill the block, and a
    /// summary page counts. If one write is in service, it has already taken its page, so the block is not filled and
    /// no summary page counts.
    #[test]
    fn a_write_in_service_has_its_page() {
        let running = Drain {
            waiting_writes: 2,
            ..chip(0, 3, 100, 4)
        };
        assert_eq!(running.time(&L), Time::from_us(600));
        assert_eq!(chip(0, 3, 100, 4).time(&L), Time::from_us(800));
    }

    /// An idle chip has a drain time of zero under two conditions: it is above its GC watermark, and its open block has
    /// at least two free pages.
    #[test]
    fn an_idle_chip_owes_nothing() {
        let in_hand = InHand::default();
        for free_in_block in 2..64 {
            let idle = chip(0, 0, 97, free_in_block);
            assert_eq!(idle.time(&L), Time::ZERO);
            assert_eq!(idle.time_exact(&L, &in_hand), Time::ZERO);
        }
    }

    #[test]
    fn a_running_collection_counts() {
        let collecting = Drain {
            collects: true,
            ..chip(0, 0, 500, 40)
        };
        assert_eq!(collecting.time(&L), Time::from_us(1_500 + 20 * 225));
    }

    /// D-14: a chip has two reads and three writes. One read is in service, and ends in 7 us.
    #[test]
    fn exactly_adds_transfers_and_counts_rests() {
        let in_hand = InHand {
            reads: 1,
            rest: Time::from_us(7),
            ..InHand::default()
        };
        let waiting = |free_pages| chip(1, 3, free_pages, 10);
        let queued = 7 + 125 + 3 * 300;
        let exactly = |drain: Drain, in_hand| drain.time_exact(&L, in_hand);
        assert_eq!(exactly(waiting(100), &in_hand), Time::from_us(queued));
        // Now S = 1: a GC (T_gc) counts, with the transfers of its moves and a summary page.
        let collection = 1_500 + 20 * 235 + 201;
        assert_eq!(
            exactly(waiting(99), &in_hand),
            Time::from_us(queued + collection)
        );
        // Now a GC is running and counts with its remaining time. It has still to program 6 pages, which fill the open
        // block.
        let in_hand = InHand {
            gc_rest: Some(Time::from_us(1_000)),
            gc_moves: 6,
            ..in_hand
        };
        assert_eq!(
            exactly(waiting(99), &in_hand),
            Time::from_us(queued + 1_000 + 201)
        );
    }
}
