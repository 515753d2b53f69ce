//! Metrics of the flash: numbers of operations by cause, write amplification, erases, and time spent in GC.

use std::collections::BTreeMap;

use crate::nand::{Cause, FlashStats, Nand};
use crate::spec::Ppm;
use crate::units::Time;

/// Spread of the blocks' erase counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EraseSpread {
    /// Fewest erases of a block.
    pub min: u32,
    /// Mean over all blocks.
    pub mean: f64,
    /// Most erases of a block.
    pub max: u32,
    /// Standard deviation over all blocks.
    pub deviation: f64,
    /// Number of blocks.
    pub blocks: u64,
}

impl EraseSpread {
    fn new(counts: &[u32]) -> EraseSpread {
        let n = counts.len().max(1) as f64;
        let sum: u64 = counts.iter().map(|&c| c as u64).sum();
        let squares: u128 = counts.iter().map(|&c| c as u128 * c as u128).sum();
        let mean = sum as f64 / n;
        EraseSpread {
            min: counts.iter().copied().min().unwrap_or(0),
            mean,
            max: counts.iter().copied().max().unwrap_or(0),
            deviation: (squares as f64 / n - mean * mean).max(0.0).sqrt(),
            blocks: counts.len() as u64,
        }
    }

    /// Returns the spread of the erase counts over the blocks of both `self` and `other`.
    fn with(&self, other: &EraseSpread) -> EraseSpread {
        if self.blocks == 0 {
            return *other;
        }
        let (a, b) = (self.blocks as f64, other.blocks as f64);
        let n = a + b;
        let mean = (self.mean * a + other.mean * b) / n;
        let squares = |s: &EraseSpread, n: f64| (s.deviation.powi(2) + s.mean.powi(2)) * n;
        let square_mean = (squares(self, a) + squares(other, b)) / n;
        EraseSpread {
            min: self.min.min(other.min),
            mean,
            max: self.max.max(other.max),
            deviation: (square_mean - mean * mean).max(0.0).sqrt(),
            blocks: self.blocks + other.blocks,
        }
    }
}

/// Counts the blocks by their number of erases. Returns pairs of an erase count and the number of blocks that have it,
/// in ascending order.
fn tally(mut counts: Vec<u32>) -> Vec<(u32, u64)> {
    counts.sort_unstable();
    let equals = counts.chunk_by(|a, b| a == b);
    equals.map(|some| (some[0], some.len() as u64)).collect()
}

/// Counters of the flash and the buffer since the start of the measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlashReport {
    /// Numbers of flash operations by cause, and other counters of the flash.
    pub flash: FlashStats,
    /// Spread of the erase counts of the blocks, over the life of the device.
    pub erase_spread: EraseSpread,
    /// Pairs of an erase count and the number of blocks that have it, in ascending order of the erase count.
    pub erase_counts: Vec<(u32, u64)>,
    /// Number of worn-out blocks, which have reached the limit on their erases.
    pub spent_blocks: u32,
    /// Time each chip spent in GC.
    pub gc_time: Vec<Time>,
    /// Time each chip was busy, including GC.
    pub busy_time: Vec<Time>,
    /// Time from the start of the measurement to now.
    pub span: Time,
    /// Number of pages in buffers whose contents flash does not have, at the end of the span.
    pub dirty_pages: u64,
    /// Clean pages evicted from the buffer.
    pub evicted_clean: u64,
    /// Dirty pages evicted from the buffer.
    pub evicted_dirty: u64,
    /// Dirty pages that were evicted while their chip was in GC.
    pub evicted_dirty_in_gc: u64,
    /// Number of evictions. An eviction makes room for one access; policies that rank blocks evict several pages at
    /// once.
    pub evictions: u64,
    /// Number of list entries that the published algorithms of the policies would inspect to find the victims (D-10).
    pub entries_inspected: u64,
    /// Numbers of evictions that wrote back 1, 2, 3 to 4, 5 to 8, 9 to 16, 17 to 32, 33 to 64, and more than 64 pages.
    pub destages: [u64; 8],
    /// Number of page accesses that waited for a slot in the buffer.
    pub slot_waits: u64,
    /// Total time for which page accesses waited for a slot in the buffer, in picoseconds. It may exceed the range of a
    /// `Time`.
    pub slot_wait_total: u128,
    /// Number of buffered pages that could not be written to flash, so that acknowledged data was lost. The reason was
    /// that flash had no room, or that a part of the page was on a dead die.
    pub pages_lost: u64,
    /// Numbers of the dead dies, ascending. The numbers are indices into `gc_time`. A die fails only by a command or
    /// in a test.
    pub dead_dies: Vec<u32>,
    /// Counters of the translation layer, such as merges, collections, and hits of the cached map.
    pub ftl_counters: Vec<(&'static str, u64)>,
    /// Counters of the buffer's policy.
    pub policy_counters: Vec<(String, u64)>,
    /// Number of pages that the drive programs for its parity and metadata, computed from the share in its
    /// specification.
    pub overhead_pages: u64,
}

impl FlashReport {
    pub(crate) fn new(nand: &Nand, now: Time, since: Time) -> FlashReport {
        let erases = nand.erase_counts();
        FlashReport {
            erase_spread: EraseSpread::new(&erases),
            erase_counts: tally(erases),
            ..FlashReport::without_wear(nand, now, since)
        }
    }

    /// Creates a report without the wear of blocks, which is slow to collect because all blocks must be visited.
    pub(crate) fn without_wear(nand: &Nand, now: Time, since: Time) -> FlashReport {
        FlashReport {
            flash: nand.stats().clone(),
            spent_blocks: nand.spent_blocks(),
            dead_dies: nand.dead_dies().collect(),
            gc_time: nand
                .chips()
                .iter()
                .map(|c| c.gc_time_counted(now))
                .collect(),
            busy_time: nand.chips().iter().map(|c| c.busy_total).collect(),
            span: now - since,
            ftl_counters: match nand.ftl_counters() {
                Some(counters) => counters.named().to_vec(),
                None => Vec::new(),
            },
            ..FlashReport::default()
        }
    }

    /// Sets the number of pages that the drive programs for its parity and metadata to the fraction `share` of all
    /// other pages programmed.
    pub(crate) fn with_overhead(mut self, share: Ppm) -> FlashReport {
        let parts = u128::from(self.programs()) * u128::from(share.0);
        self.overhead_pages = (parts / 1_000_000) as u64;
        self
    }

    /// Adds the report of a member to the report of its array.
    pub(crate) fn add_member(&mut self, member: &FlashReport) {
        for (sum, n) in self.flash.ops.iter_mut().zip(member.flash.ops) {
            *sum += n;
        }
        self.flash.gc_actions += member.flash.gc_actions;
        self.flash.writes_failed += member.flash.writes_failed;
        self.flash.programs_again += member.flash.programs_again;
        self.flash.pages_skipped += member.flash.pages_skipped;
        self.erase_spread = self.erase_spread.with(&member.erase_spread);
        let mut together: BTreeMap<u32, u64> = self.erase_counts.iter().copied().collect();
        for &(erases, blocks) in &member.erase_counts {
            *together.entry(erases).or_default() += blocks;
        }
        self.erase_counts = together.into_iter().collect();
        self.spent_blocks += member.spent_blocks;
        let chips = self.gc_time.len() as u32;
        let dead = member.dead_dies.iter().map(|die| chips + die);
        self.dead_dies.extend(dead);
        self.gc_time.extend(&member.gc_time);
        self.busy_time.extend(&member.busy_time);
        self.pages_lost += member.pages_lost;
        self.dirty_pages += member.dirty_pages;
        self.overhead_pages += member.overhead_pages;
    }

    /// Returns the number of pages programmed for each purpose, without the drive's parity and metadata.
    pub fn programs_by_purpose(&self) -> [(&'static str, u64); 9] {
        let count = |cause| self.flash.count(cause);
        [
            ("host", self.flash.host_programs()),
            ("collection", count(Cause::GcMove)),
            ("merges", count(Cause::MergeCopy) + count(Cause::Merge)),
            ("SLC cache", count(Cause::Fold)),
            ("wear levelling", count(Cause::Migration)),
            ("map", count(Cause::MapWrite)),
            ("padding", count(Cause::Padding)),
            ("summaries", count(Cause::Summary)),
            ("dead dies", self.flash.programs_again),
        ]
    }

    /// Returns the number of pages programmed for each purpose, including the drive's parity and metadata. A counter in
    /// the drive would count all of these pages.
    pub fn media_by_purpose(&self) -> [(&'static str, u64); 10] {
        let mut all = [("parity and metadata", self.overhead_pages); 10];
        all[..9].copy_from_slice(&self.programs_by_purpose());
        all
    }

    /// Returns the number of pages programmed for all purposes, including the drive's parity and metadata.
    pub fn media_pages(&self) -> u64 {
        self.programs() + self.overhead_pages
    }

    /// Returns the number of pages programmed for all purposes, without the drive's parity and metadata.
    pub fn programs(&self) -> u64 {
        self.programs_by_purpose().iter().map(|(_, n)| n).sum()
    }

    /// Returns the number of pages moved within the flash, for any reason.
    pub fn moves(&self) -> u64 {
        let moves = [
            Cause::GcMove,
            Cause::Fold,
            Cause::Migration,
            Cause::MergeCopy,
        ];
        moves.iter().map(|&cause| self.flash.count(cause)).sum()
    }

    /// Returns the write amplification of the device: the bytes programmed, divided by the bytes that the host wrote.
    /// The health log of a drive has the same two counters. A buffer that absorbs writes makes the quotient smaller.
    /// Mapping, padding and the drive's parity make it larger. `None` if the host wrote nothing.
    pub fn device_write_amplification(&self, page_bytes: u32, host_bytes: u64) -> Option<f64> {
        let media = self.media_pages() * u64::from(page_bytes);
        (host_bytes > 0).then(|| media as f64 / host_bytes as f64)
    }

    /// Returns the write amplification inside the flash, of which garbage collection is the main cause: all pages
    /// programmed except summary pages, divided by the pages programmed for the host. `None` if no page was programmed
    /// for the host.
    pub fn gc_write_amplification(&self) -> Option<f64> {
        let host = self.flash.host_programs();
        let pages = self.programs() - self.flash.count(Cause::Summary);
        (host > 0).then(|| pages as f64 / host as f64)
    }
}
