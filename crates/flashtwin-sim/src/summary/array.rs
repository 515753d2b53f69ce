//! Part of the summary that describes an array.

use flashtwin::metrics::{FlashReport, OpMetrics};
use flashtwin::{Array, MemberRebuild, RaidStats, Time};
use serde::Serialize;

use super::build::ratio;
use super::{FlashSummary, Latency};
use crate::{Outcome, PhaseOutcome};

/// Counters of an array, and of its members.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArraySummary {
    /// Layout of the array.
    pub level: &'static str,
    /// The coordinator of the members' collections.
    pub coordination: &'static str,
    /// Pages that the front end (host link, processor and buffer) read from the array.
    pub data_pages_read: u64,
    /// Pages written to members as data.
    pub data_pages_written: u64,
    /// Pages written to members as parity.
    pub parity_pages_written: u64,
    /// Pages read to compute parity.
    pub pages_read_for_parity: u64,
    /// Pages that were missing and were computed from the other pages of their stripe.
    pub pages_recovered: u64,
    /// Hedged pages: pages that were also read from other members because the first read took too long.
    pub pages_hedged: u64,
    /// Hedged pages whose second read completed first.
    pub hedges_won: u64,
    /// Pages read from members in vain, because the same data were available earlier from other members.
    pub pages_read_in_vain: u64,
    /// Pages read to rebuild members.
    pub pages_read_to_rebuild: u64,
    /// Pages written to members that replaced failed ones.
    pub pages_rebuilt: u64,
    /// All pages read from members.
    pub member_pages_read: u64,
    /// All pages written to members.
    pub member_pages_written: u64,
    /// Pages read from members per page that the front end of the array (host link, processor and buffer) read.
    pub read_amplification: f64,
    /// Pages written to members per page that the front end of the array (host link, processor and buffer) wrote.
    pub write_amplification: f64,
    /// Valid pages that were moved out of segments so that the segments could be trimmed.
    pub pages_moved: u64,
    /// Segments trimmed on all their members.
    pub segments_trimmed: u64,
    /// Write amplification of the volume: pages written by the host plus pages moved, divided by pages written by the
    /// host.
    pub volume_write_amplification: f64,
    /// Pages programmed on the flash of all members, per page that the front end of the array (host link, processor and
    /// buffer) wrote.
    pub total_write_amplification: Option<f64>,
    /// Page stripes that one request wrote completely, so that no page was read to compute the parity.
    pub stripes_written_whole: u64,
    /// Page stripes written by read-modify-write.
    pub stripes_read_modify_write: u64,
    /// Page stripes written by reconstruct-write.
    pub stripes_reconstruct_write: u64,
    /// Page stripes for whose write missing data had to be reconstructed first.
    pub stripes_recovered: u64,
    /// Page stripes that were written in part without any read, because the members with their parity had failed.
    pub stripes_without_parity: u64,
    /// Writes that waited because another write to the same row was in flight.
    pub row_waits: u64,
    /// PARTICIPATE_GGC messages.
    pub gc_participations: u64,
    /// REQUEST_GGC messages.
    pub gc_requests: u64,
    /// FORCE_GC messages.
    pub gc_forced: u64,
    /// Messages to stop collecting.
    pub gc_left_off: u64,
    /// Phases of the array. During a phase, the set of working members does not change. Empty unless faults were
    /// requested.
    pub phases: Vec<PhaseSummary>,
    /// Members that were replaced.
    pub rebuilds: Vec<RebuildSummary>,
    /// The members, in their order.
    pub members: Vec<MemberSummary>,
}

/// Counters of a member.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemberSummary {
    /// Name of the member's device.
    pub device: String,
    /// Counters of the member's flash.
    pub flash: FlashSummary,
}

/// Counters and response times in one phase of an array. A phase ends when a member fails, is replaced, or has been
/// completely rebuilt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseSummary {
    /// `whole`, `degraded`, `rebuilding` or `lost`.
    pub condition: &'static str,
    /// Start of the phase, in seconds from the start of the measurement.
    pub from_s: f64,
    /// End of the phase, in seconds from the start of the measurement. The last phase ends with the last event.
    pub until_s: f64,
    /// Response times of the reads and writes that completed in the phase.
    pub all: Latency,
    /// Response times of reads.
    pub read: Latency,
    /// Response times of writes.
    pub write: Latency,
    /// Requests not served because data were lost.
    pub requests_failed: u64,
    /// Pages that were missing and were computed from the other pages of their stripe.
    pub pages_recovered: u64,
    /// Pages read from members per page that the front end of the array (host link, processor and buffer) read.
    pub read_amplification: f64,
    /// Pages written to members per page that the front end of the array (host link, processor and buffer) wrote.
    pub write_amplification: f64,
}

/// A member that replaced a failed one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RebuildSummary {
    /// The member.
    pub member: usize,
    /// Start of the rebuild, in seconds from the start of the measurement.
    pub from_s: f64,
    /// End of the rebuild, in seconds from the start of the measurement; `None` if the rebuild was not completed.
    pub until_s: Option<f64>,
    /// Bytes written to the member to restore missing data.
    pub bytes_written: u64,
    /// Number of bytes to restore, as known at the start of the rebuild.
    pub bytes: u64,
}

/// Returns the read amplification and the write amplification of an array between the states `before` and `now`: pages
/// read from (written to) members per page that the front end read (wrote).
fn amplification(now: &RaidStats, before: &RaidStats) -> (f64, f64) {
    let of = |all: fn(&RaidStats) -> u64, data: fn(&RaidStats) -> u64| {
        ratio(
            (all(now) - all(before)) as f64,
            (data(now) - data(before)) as f64,
        )
    };
    (
        of(|s| s.member_pages_read, |s| s.data_pages_read),
        of(|s| s.member_pages_written, |s| s.data_pages_written),
    )
}

impl ArraySummary {
    pub(super) fn new(array: &Array, outcome: &Outcome) -> ArraySummary {
        let spec = array.spec();
        let s = array.raid_stats();
        let members = array.member_reports();
        let member = |(report, spec): (FlashReport, &flashtwin::DeviceSpec)| MemberSummary {
            device: spec.name.clone(),
            flash: FlashSummary::new(&report),
        };
        let (read_amplification, write_amplification) = amplification(s, &RaidStats::default());
        let start = outcome.metrics.since();
        let page_bytes = u64::from(spec.page_bytes());
        ArraySummary {
            level: spec.level.name(),
            coordination: spec.coordination.name,
            data_pages_read: s.data_pages_read,
            data_pages_written: s.data_pages_written,
            parity_pages_written: s.parity_pages_written,
            pages_read_for_parity: s.pages_read_for_parity,
            pages_recovered: s.pages_recovered,
            pages_hedged: s.pages_hedged,
            hedges_won: s.hedges_won,
            pages_read_in_vain: s.pages_read_in_vain,
            pages_read_to_rebuild: s.pages_read_to_rebuild,
            pages_rebuilt: s.pages_rebuilt,
            member_pages_read: s.member_pages_read,
            member_pages_written: s.member_pages_written,
            read_amplification,
            write_amplification,
            pages_moved: s.pages_moved,
            segments_trimmed: s.segments_trimmed,
            volume_write_amplification: ratio(
                (s.data_pages_written + s.pages_moved) as f64,
                s.data_pages_written as f64,
            ),
            total_write_amplification: (array.flash_report().gc_write_amplification())
                .map(|by_members| write_amplification * by_members),
            stripes_written_whole: s.stripes[0],
            stripes_read_modify_write: s.stripes[1],
            stripes_reconstruct_write: s.stripes[2],
            stripes_recovered: s.stripes[3],
            stripes_without_parity: s.stripes[4],
            row_waits: s.row_waits,
            gc_participations: s.gc_participations,
            gc_requests: s.gc_requests,
            gc_forced: s.gc_forced,
            gc_left_off: s.gc_left_off,
            phases: phases(&outcome.faults.phases, s, start, array.now()),
            rebuilds: array
                .rebuilds()
                .iter()
                .map(|r| RebuildSummary::new(r, start, page_bytes))
                .collect(),
            members: members.into_iter().zip(&spec.members).map(member).collect(),
        }
    }
}

/// Returns the time from `start` to `at` in seconds. The division by 1e12 returns the nearest double, unlike a
/// multiplication by 1e-12. A fault requested at 0.4 s is therefore reported at 0.4.
fn seconds(at: Time, start: Time) -> f64 {
    at.saturating_sub(start).0 as f64 / 1e12
}

fn phases(
    outcomes: &[PhaseOutcome],
    at_end: &RaidStats,
    start: Time,
    end: Time,
) -> Vec<PhaseSummary> {
    let phase = |(i, of): (usize, &PhaseOutcome)| {
        let next = outcomes.get(i + 1).map(|next| &next.phase);
        let stats = next.map_or(at_end, |next| &next.stats_before);
        let until = next.map_or(end, |next| next.from);
        let before = &of.phase.stats_before;
        let (read_amplification, write_amplification) = amplification(stats, before);
        let mut both: OpMetrics = of.reads.clone();
        both.merge(&of.writes);
        PhaseSummary {
            condition: of.phase.condition.name(),
            from_s: seconds(of.phase.from, start),
            until_s: seconds(until, start),
            all: Latency::new(&both),
            read: Latency::new(&of.reads),
            write: Latency::new(&of.writes),
            requests_failed: both.failed,
            pages_recovered: stats.pages_recovered - before.pages_recovered,
            read_amplification,
            write_amplification,
        }
    };
    outcomes.iter().enumerate().map(phase).collect()
}

impl RebuildSummary {
    fn new(of: &MemberRebuild, start: Time, page_bytes: u64) -> RebuildSummary {
        RebuildSummary {
            member: of.member,
            from_s: seconds(of.from, start),
            until_s: of.until.map(|until| seconds(until, start)),
            bytes_written: of.pages_written * page_bytes,
            bytes: of.pages * page_bytes,
        }
    }
}
