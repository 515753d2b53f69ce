//! When a chip will have done its work: ECR's chip queue complete time (policies.md A13, Eqs 1-4).

use super::Chip;
use crate::ftl::PageMap;
use crate::gc::{self, Tie};
use crate::units::Time;

/// What the equations ask of a chip, in the paper's letters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drain {
    /// N_r, N_w: reads and writes of the chip, the running operation among them.
    pub reads: u64,
    pub writes: u64,
    /// N_fp: free pages of the chip.
    pub free_pages: u64,
    /// N_fpb: free pages of its open block, the summary page among them.
    pub free_in_block: u64,
    /// N_mfp: GC starts at or below this many free pages.
    pub low_pages: u64,
    /// N_vp: live pages of the block GC would choose now.
    pub victim_pages: u64,
    /// N_p: pages of a block.
    pub pages_per_block: u64,
    /// A GC is under way: then S stays 1.
    pub in_gc: bool,
}

/// L_r, L_w, L_gc, L_sp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latencies {
    pub read: Time,
    pub program: Time,
    pub erase: Time,
    pub summary: Time,
}

impl Latencies {
    /// Those of a chip; a summary page costs a program (L_sp = L_w), or nothing where there is none.
    pub fn new(read: Time, program: Time, erase: Time, summary_page: bool) -> Latencies {
        let summary = if summary_page { program } else { Time::ZERO };
        Latencies {
            read,
            program,
            erase,
            summary,
        }
    }
}

impl Drain {
    /// What the equations ask of `chip` as it stands. Of several open blocks the one with most room
    /// counts: the next write goes there.
    pub fn of(
        index: u32,
        chip: &Chip,
        running_reads: u64,
        running_writes: u64,
        ftl: &PageMap,
    ) -> Drain {
        let shape = &ftl.shape;
        let summary = (shape.pages_per_block - shape.data_pages) as u64;
        let pools = ftl.pools_of_chip(index);
        let open = |pool: &crate::ftl::Pool| (shape.data_pages - pool.next_page) as u64;
        let free =
            |pool: &crate::ftl::Pool| pool.free as u64 * shape.data_pages as u64 + open(pool);
        let most = pools.iter().map(open).max().unwrap_or(0);
        let first = index * shape.pools_per_chip;
        let victim = (first..first + shape.pools_per_chip)
            .filter_map(|pool| gc::fewest_valid(ftl.tallies(pool), Tie::Lowest))
            .map(|(_, valid)| valid)
            .min();
        let waiting_reads = chip.reads.len() + chip.queue.iter().filter(|op| op.is_read()).count();
        let waiting = chip.reads.len() + chip.queue.len();
        Drain {
            reads: running_reads + waiting_reads as u64,
            writes: running_writes + (waiting - waiting_reads) as u64,
            free_pages: pools.iter().map(free).sum(),
            free_in_block: if most == 0 { 0 } else { most + summary },
            low_pages: ftl.low() as u64 * shape.pools_per_chip as u64 * shape.data_pages as u64,
            victim_pages: victim.unwrap_or(0) as u64,
            pages_per_block: shape.pages_per_block as u64,
            in_gc: chip.in_gc,
        }
    }

    /// The chip queue complete time as printed: Eqs 1 to 4.
    pub fn time(&self, l: &Latencies) -> Time {
        let collects = self.in_gc || self.free_pages.saturating_sub(self.writes) <= self.low_pages;
        let moved = if collects { self.victim_pages } else { 0 };
        let programs = self.writes + moved;
        let room = self.free_in_block.saturating_sub(1);
        let summaries = if programs < room {
            0
        } else {
            1 + (programs - room) / (self.pages_per_block - 1).max(1)
        };
        let collecting = if collects {
            l.erase + (l.read + l.program) * moved
        } else {
            Time::ZERO
        };
        l.read * self.reads + l.program * self.writes + collecting + l.summary * summaries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const L: Latencies = Latencies {
        read: Time::from_us(25),
        program: Time::from_us(200),
        erase: Time::from_us(1_500),
        summary: Time::from_us(200),
    };

    fn chip(reads: u64, writes: u64, free_pages: u64, free_in_block: u64) -> Drain {
        Drain {
            reads,
            writes,
            free_pages,
            free_in_block,
            low_pages: 96,
            victim_pages: 20,
            pages_per_block: 64,
            in_gc: false,
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

    /// F1.8: an idle chip above its watermark with two free pages or more owes nothing.
    #[test]
    fn an_idle_chip_owes_nothing() {
        for free_in_block in 2..64 {
            assert_eq!(chip(0, 0, 97, free_in_block).time(&L), Time::ZERO);
        }
    }

    #[test]
    fn a_running_collection_counts() {
        let collecting = Drain {
            in_gc: true,
            ..chip(0, 0, 500, 40)
        };
        assert_eq!(collecting.time(&L), Time::from_us(1_500 + 20 * 225));
    }
}
