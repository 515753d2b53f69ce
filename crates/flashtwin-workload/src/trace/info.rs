//! Summary of a trace. It is measured in one pass over the trace.

use flashtwin::{Op, Request};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use super::input::Input;
use super::options::TraceOptions;
use super::reader::TraceReader;
use crate::error::WorkloadError;
use crate::Workload;

const PAGE_BYTES: u64 = 4096;
/// Number of pages per piece of the bitmap of accessed pages. A piece takes 4 KiB of memory and covers 128 MiB of
/// addresses.
const PIECE_PAGES: u64 = 1 << 15;
/// Number of sizes that are listed, the most frequent first. The next constant is the number of volumes that are
/// listed, in order of appearance.
const TOP_SIZES: usize = 5;
const VOLUMES_LISTED: usize = 32;

/// One volume (disk, LUN, application unit) of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VolumeInfo {
    /// Name of the volume in the trace.
    pub name: String,
    /// Number of requests to the volume.
    pub requests: u64,
    /// End of the highest byte range accessed, in the volume's own addresses.
    pub extent_bytes: u64,
    /// First byte of the volume on the device if the volumes are laid end to end.
    pub start_bytes: u64,
}

/// Counts of one kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OpInfo {
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
    /// Number of requests that start where the previous request of the same kind ended.
    pub sequential: u64,
}

/// The summary of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TraceInfo {
    /// Description of the workload. For a trace: its format and units, and whether they were detected or given. For a
    /// generated load: the generator.
    pub description: String,
    /// Total number of requests.
    pub requests: u64,
    /// Reads.
    pub reads: OpInfo,
    /// Writes.
    pub writes: OpInfo,
    /// Trims.
    pub trims: OpInfo,
    /// Flushes.
    pub flushes: u64,
    /// Writes with force unit access.
    pub fua_writes: u64,
    /// Fraction of writes among reads and writes.
    pub write_ratio: f64,
    /// Mean bytes of reads and writes.
    pub size_mean_bytes: f64,
    /// Median bytes of reads and writes.
    pub size_p50_bytes: u64,
    /// 90th percentile of bytes of reads and writes.
    pub size_p90_bytes: u64,
    /// Largest read or write, bytes.
    pub size_max_bytes: u64,
    /// The most frequent sizes of reads and writes: pairs of the size in bytes and the number of requests with it.
    pub size_top: Vec<(u64, u64)>,
    /// Distinct pages of 4 KiB read or written.
    pub footprint_pages: u64,
    /// Lowest byte read or written.
    pub address_min_bytes: u64,
    /// Largest address read, written or trimmed, plus one.
    pub address_max_bytes: u64,
    /// Seconds from the first arrival to the last.
    pub span_s: f64,
    /// Requests per second over the span.
    pub rate_per_s: f64,
    /// Mean gap between arrivals, microseconds.
    pub gap_mean_us: f64,
    /// Coefficient of variation of the gaps between arrivals. It is 1 for a Poisson process.
    pub gap_cv: f64,
    /// Share of the reads and writes that start where the previous one ended.
    pub sequential_share: f64,
    /// Share of the reads and writes with a start and a length that are multiples of 4 KiB.
    pub aligned_4k_share: f64,
    /// The first 32 volumes, in order of appearance.
    pub volumes: Vec<VolumeInfo>,
    /// Total number of volumes; 0 for a load without volumes.
    pub volumes_total: u64,
    /// Lines or records read.
    pub lines: u64,
    /// Lines that could not be read and were skipped.
    pub bad_lines: u64,
    /// Number of requests that were out of order in the trace and have been sorted.
    pub reordered: u64,
    /// Number of requests of zero size, which were skipped.
    pub zero_size: u64,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// Reads a whole trace and summarises it.
///
/// # Errors
/// Fails if the trace cannot be read.
pub fn trace_info(path: &Path, opts: &TraceOptions) -> Result<TraceInfo, WorkloadError> {
    let mut reader = TraceReader::open(Input::File(path.to_path_buf()), opts)?;
    let mut info = TraceInfo::measure(&mut reader)?;
    info.lines = reader.lines();
    info.volumes_total = reader.collector.volumes.list.len() as u64;
    info.volumes = reader
        .volumes()
        .take(VOLUMES_LISTED)
        .map(|(v, start)| VolumeInfo {
            name: v.name.clone(),
            requests: v.requests,
            extent_bytes: v.extent,
            start_bytes: start,
        })
        .collect();
    info.bad_lines = reader.collector.bad_lines;
    info.reordered = reader.collector.reordered;
    info.zero_size = reader.collector.zero_size;
    Ok(info)
}

impl TraceInfo {
    /// Reads a workload to its end and summarises it. The number of requests of an endless load must be limited;
    /// otherwise the function never returns.
    ///
    /// # Errors
    /// Fails if the workload returns an error.
    pub fn measure(workload: &mut dyn Workload) -> Result<TraceInfo, WorkloadError> {
        let mut sums = Sums::default();
        let mut batch = Vec::new();
        while workload.next_batch(&mut batch)? > 0 {
            batch.iter().for_each(|r| sums.add(r));
            batch.clear();
        }
        let mut info = sums.finish();
        info.description = workload.describe();
        info.warnings = workload.warnings();
        Ok(info)
    }
}

/// Running sums over requests.
#[derive(Default)]
struct Sums {
    info: TraceInfo,
    sizes: HashMap<u64, u64>,
    pieces: HashMap<u64, Box<[u64]>>,
    last_arrival: Option<u64>,
    gaps: u64,
    gap_mean: f64,
    gap_m2: f64,
    last_end: Option<u64>,
    last_read_end: Option<u64>,
    last_write_end: Option<u64>,
    sequential: u64,
    aligned: u64,
    span_ps: u64,
    lowest: Option<u64>,
}

impl Sums {
    fn add(&mut self, r: &Request) {
        self.info.requests += 1;
        self.add_gap(r.arrival.0);
        let end = r.offset + r.bytes;
        let (op, last_end) = match r.op {
            Op::Flush => {
                self.info.flushes += 1;
                return;
            }
            Op::Trim => {
                self.info.trims.requests += 1;
                self.info.trims.bytes = self.info.trims.bytes.saturating_add(r.bytes);
                self.info.address_max_bytes = self.info.address_max_bytes.max(end);
                return;
            }
            Op::Read => (&mut self.info.reads, &mut self.last_read_end),
            Op::Write => (&mut self.info.writes, &mut self.last_write_end),
        };
        op.requests += 1;
        op.bytes += r.bytes;
        op.sequential += u64::from(*last_end == Some(r.offset));
        *last_end = Some(end);
        self.sequential += u64::from(self.last_end == Some(r.offset));
        self.last_end = Some(end);
        self.aligned += u64::from((r.offset | r.bytes).is_multiple_of(PAGE_BYTES));
        self.info.fua_writes += u64::from(r.fua);
        *self.sizes.entry(r.bytes).or_default() += 1;
        self.lowest = Some(self.lowest.map_or(r.offset, |l| l.min(r.offset)));
        self.info.address_max_bytes = self.info.address_max_bytes.max(end);
        self.touch(r.offset / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
    }

    /// Updates the mean and variance of the gaps (Welford's method).
    fn add_gap(&mut self, arrival: u64) {
        if let Some(last) = self.last_arrival {
            let gap = (arrival - last) as f64;
            self.gaps += 1;
            let from_mean = gap - self.gap_mean;
            self.gap_mean += from_mean / self.gaps as f64;
            self.gap_m2 += from_mean * (gap - self.gap_mean);
        }
        self.last_arrival = Some(arrival);
        self.span_ps = arrival;
    }

    /// Marks the pages `from..to` in the bitmap, 64 pages (one word) at a time.
    fn touch(&mut self, from: u64, to: u64) {
        let mut page = from;
        while page < to {
            let piece = self
                .pieces
                .entry(page / PIECE_PAGES)
                .or_insert_with(|| vec![0; (PIECE_PAGES / 64) as usize].into());
            let stop = to.min((page / PIECE_PAGES + 1) * PIECE_PAGES);
            while page < stop {
                let (word, bit) = ((page % PIECE_PAGES / 64) as usize, page % 64);
                let bits = (64 - bit).min(stop - page);
                let mask = (u64::MAX >> (64 - bits)) << bit;
                self.info.footprint_pages += u64::from((mask & !piece[word]).count_ones());
                piece[word] |= mask;
                page += bits;
            }
        }
    }

    fn finish(mut self) -> TraceInfo {
        let transfers = self.info.reads.requests + self.info.writes.requests;
        let share = |n: u64| {
            if transfers == 0 {
                0.0
            } else {
                n as f64 / transfers as f64
            }
        };
        let mut sizes: Vec<(u64, u64)> = self.sizes.into_iter().collect();
        sizes.sort_unstable();
        let percentile = |p: f64| {
            let mut left = (transfers as f64 * p).ceil() as u64;
            sizes.iter().find(|(_, n)| {
                left = left.saturating_sub(*n);
                left == 0
            })
        };
        let i = &mut self.info;
        i.write_ratio = share(i.writes.requests);
        i.sequential_share = share(self.sequential);
        i.aligned_4k_share = share(self.aligned);
        i.size_mean_bytes = share(i.reads.bytes + i.writes.bytes);
        i.size_p50_bytes = percentile(0.5).map_or(0, |s| s.0);
        i.size_p90_bytes = percentile(0.9).map_or(0, |s| s.0);
        i.size_max_bytes = sizes.last().map_or(0, |s| s.0);
        sizes.sort_by_key(|&(bytes, n)| (std::cmp::Reverse(n), bytes));
        sizes.truncate(TOP_SIZES);
        i.size_top = sizes;
        i.address_min_bytes = self.lowest.unwrap_or(0);
        i.span_s = self.span_ps as f64 / 1e12;
        i.rate_per_s = if i.span_s > 0.0 {
            self.gaps as f64 / i.span_s
        } else {
            0.0
        };
        i.gap_mean_us = self.gap_mean / 1e6;
        let deviation = (self.gap_m2 / self.gaps.max(1) as f64).sqrt();
        i.gap_cv = if self.gap_mean > 0.0 {
            deviation / self.gap_mean
        } else {
            0.0
        };
        self.info
    }
}

/// Formats a number of bytes with a binary unit, for readers.
fn bytes(n: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = n;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{value:.0} B")
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

impl TraceInfo {
    fn show_sizes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transfers = self.reads.requests + self.writes.requests;
        let top: Vec<String> = self
            .size_top
            .iter()
            .map(|&(b, n)| format!("{} ({:.0} %)", bytes(b as f64), percent(n, transfers)))
            .collect();
        writeln!(
            f,
            "  size        mean {}, median {}, p90 {}, max {}; most frequent {}",
            bytes(self.size_mean_bytes),
            bytes(self.size_p50_bytes as f64),
            bytes(self.size_p90_bytes as f64),
            bytes(self.size_max_bytes as f64),
            top.join(", ")
        )
    }

    fn show_volumes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.volumes_total > 1 {
            let named: Vec<String> = self
                .volumes
                .iter()
                .map(|v| {
                    format!(
                        "{} ({} requests, {})",
                        v.name,
                        v.requests,
                        bytes(v.extent_bytes as f64)
                    )
                })
                .collect();
            let more = if self.volumes_total as usize > named.len() {
                ", ..."
            } else {
                ""
            };
            writeln!(
                f,
                "  volumes     {}: {}{more}",
                self.volumes_total,
                named.join(", ")
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for TraceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.description)?;
        writeln!(
            f,
            "  requests    {}: {} reads, {} writes, {} trims, {} flushes; {:.1} % of reads and writes are writes",
            self.requests,
            self.reads.requests,
            self.writes.requests,
            self.trims.requests,
            self.flushes,
            100.0 * self.write_ratio
        )?;
        writeln!(
            f,
            "  bytes       {} read, {} written, {} trimmed",
            bytes(self.reads.bytes as f64),
            bytes(self.writes.bytes as f64),
            bytes(self.trims.bytes as f64)
        )?;
        self.show_sizes(f)?;
        writeln!(
            f,
            "  footprint   {} ({} pages of 4 KiB) between {} and {}",
            bytes(self.footprint_pages as f64 * PAGE_BYTES as f64),
            self.footprint_pages,
            bytes(self.address_min_bytes as f64),
            bytes(self.address_max_bytes as f64)
        )?;
        writeln!(
            f,
            "  time        span {:.3} s, {:.3} requests/s, mean gap {:.3} us, variation of gaps {:.2}",
            self.span_s, self.rate_per_s, self.gap_mean_us, self.gap_cv
        )?;
        writeln!(
            f,
            "  pattern     {:.1} % sequential ({:.1} % within reads, {:.1} % within writes), {:.1} % whole 4 KiB pages",
            100.0 * self.sequential_share,
            percent(self.reads.sequential, self.reads.requests),
            percent(self.writes.sequential, self.writes.requests),
            100.0 * self.aligned_4k_share
        )?;
        self.show_volumes(f)?;
        for warning in &self.warnings {
            writeln!(f, "  warning     {warning}")?;
        }
        Ok(())
    }
}
