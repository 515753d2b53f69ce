//! A summary as a block of text for a terminal.

use std::fmt;

use super::{Latency, PhaseSummary, RebuildSummary, Summary};

/// A span of time given in microseconds, with four digits and the usual unit.
fn time(us: f64) -> String {
    let (value, unit) = match us {
        _ if us < 0.9995 => (us * 1e3, "ns"),
        _ if us < 999.5 => (us, "us"),
        _ if us < 999_500.0 => (us * 1e-3, "ms"),
        _ => (us * 1e-6, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// Four significant digits, no fewer than the whole ones.
fn digits(value: f64) -> String {
    match value {
        _ if value == 0.0 => "0".into(),
        _ if value < 9.9995 => format!("{value:.3}"),
        _ if value < 99.995 => format!("{value:.2}"),
        _ if value < 999.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The same of what may not exist.
fn or_dash(value: Option<f64>) -> String {
    value.map_or("-".into(), digits)
}

/// A whole number with its thousands apart.
fn grouped(n: u64) -> String {
    let plain = n.to_string();
    let groups = plain.as_bytes().rchunks(3).rev();
    let texts: Vec<String> = groups
        .map(|group| String::from_utf8_lossy(group).into_owned())
        .collect();
    texts.join(" ")
}

/// Bytes in the usual binary unit.
pub fn bytes(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        digits(value)
    };
    format!("{text} {}", units[unit])
}

/// A mean with one digit after the point.
fn ratio_text(sum: u64, count: u64) -> String {
    format!("{:.1}", sum as f64 / count.max(1) as f64)
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |label: &str, text: String| writeln!(f, "{label:<15}{text}");
        let buffer = match self.buffer_pages {
            0 => "no buffer".into(),
            pages => {
                let read_cache = match self.read_cache_pages {
                    0 => String::new(),
                    pages => format!(" and {} read cache", bytes(pages * self.page_bytes)),
                };
                let size = bytes(pages * self.page_bytes);
                format!("{size} buffer{read_cache}, {}", self.policy)
            }
        };
        let exports = bytes(self.exported_bytes);
        line(
            "device",
            format!(
                "{} ({}), exports {exports}, {buffer}",
                self.device, self.backend
            ),
        )?;
        line("workload", self.workload.clone())?;
        line(
            "run",
            format!(
                "{}; precondition {}; seed {}",
                self.pacing, self.precondition, self.seed
            ),
        )?;
        let c = &self.counts;
        let mut requests = format!(
            "{} ({} reads, {} writes",
            grouped(c.reads.requests + c.writes.requests + c.trims.requests + c.flushes.requests),
            grouped(c.reads.requests),
            grouped(c.writes.requests)
        );
        for (count, name) in [(c.trims, "trims"), (c.flushes, "flushes")] {
            if count.requests > 0 {
                requests.push_str(&format!(", {} {name}", grouped(count.requests)));
            }
        }
        line(
            "requests",
            format!("{requests}) in {} virtual", time(self.span_s * 1e6)),
        )?;
        let t = &self.throughput;
        line(
            "throughput",
            format!(
                "{} requests/s, {} MB/s (read {}, write {})",
                digits(t.iops),
                digits(t.mb_per_s),
                digits(t.read_mb_per_s),
                digits(t.write_mb_per_s)
            ),
        )?;
        let header = ["mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
        line("response time", header.map(|h| format!("{h:>11}")).concat())?;
        for (label, l) in [
            ("  all", &self.all),
            ("  read", &self.read),
            ("  write", &self.write),
        ] {
            if l.requests > 0 {
                line(label, latency_row(l))?;
            }
        }
        let kinds = [
            ("all", &self.all),
            ("read", &self.read),
            ("write", &self.write),
        ];
        let spread = kinds.into_iter().filter(|(_, l)| l.requests > 0);
        let spread: Vec<String> = spread
            .map(|(name, l)| {
                format!(
                    "{name} {} (CV {})",
                    time(l.deviation_us),
                    digits(l.variation)
                )
            })
            .collect();
        line("deviation", spread.join(", "))?;
        let spent = self
            .all
            .parts_us
            .named()
            .into_iter()
            .filter(|(_, us)| *us > 0.0);
        let parts: Vec<String> = spent
            .map(|(name, us)| format!("{} {}", name.replace('_', " "), time(us)))
            .collect();
        line("of the mean", parts.join(", "))?;
        if self.buffer_pages > 0 {
            let h = &self.hits;
            line(
                "hit ratio",
                format!(
                    "{} (read {}, write {})",
                    percent(h.ratio),
                    percent(h.read_ratio),
                    percent(h.write_ratio)
                ),
            )?;
            let b = &self.buffer;
            let mut text = format!(
                "{} dirty, {} clean evicted; {} waits for a slot",
                grouped(b.evicted_dirty_pages),
                grouped(b.evicted_clean_pages),
                grouped(b.slot_waits)
            );
            if b.slot_waits > 0 {
                text.push_str(&format!(", {} each", time(b.slot_wait_mean_us)));
            }
            line("buffer", text)?;
            if b.evictions > 0 {
                let written: u64 = b.destages.iter().sum();
                let pages = ratio_text(b.evicted_dirty_pages, written);
                let looked = ratio_text(b.entries_inspected, b.evictions);
                line(
                    "evictions",
                    format!(
                        "{}; {pages} pages written, {looked} entries looked at each",
                        grouped(b.evictions)
                    ),
                )?;
            }
            if !b.policy_counters.is_empty() {
                let counters = b.policy_counters.iter();
                let texts: Vec<String> = counters
                    .map(|c| format!("{} {}", c.name, grouped(c.count)))
                    .collect();
                line("policy", texts.join(", "))?;
            }
        }
        let flash = &self.flash;
        let done = flash.ops.iter().filter(|op| op.count > 0);
        let ops: Vec<String> = done
            .map(|op| format!("{} {}", op.name.replace('_', " "), grouped(op.count)))
            .collect();
        line(
            "flash",
            if ops.is_empty() {
                "idle".into()
            } else {
                ops.join(", ")
            },
        )?;
        line(
            "",
            format!("write amplification {}", or_dash(flash.write_amplification)),
        )?;
        let counted = flash.ftl_counters.iter().filter(|c| c.count > 0);
        let counters: Vec<String> = counted
            .map(|c| format!("{} {}", c.name.replace('_', " "), grouped(c.count)))
            .collect();
        if !counters.is_empty() {
            line("mapping", counters.join(", "))?;
        }
        line(
            "gc",
            format!(
                "{} actions, {} of the time (busiest chip {})",
                grouped(flash.gc_actions),
                percent(flash.gc_share_mean),
                percent(flash.gc_share_max)
            ),
        )?;
        line(
            "chips busy",
            format!(
                "{} (most {})",
                percent(flash.busy_share_mean),
                percent(flash.busy_share_max)
            ),
        )?;
        line(
            "block erases",
            format!(
                "min {}, mean {}, max {}, deviation {}",
                flash.block_erases_min,
                digits(flash.block_erases_mean),
                flash.block_erases_max,
                digits(flash.block_erases_deviation)
            ),
        )?;
        let h = &self.health;
        if h.spent_blocks > 0 {
            line(
                "health",
                format!(
                    "{} blocks spent, {} % of the reserve left",
                    grouped(h.spent_blocks.into()),
                    h.available_spare_percent
                ),
            )?;
        }
        if let Some(life) = &h.lifetime {
            line(
                "lifetime",
                format!(
                    "{} TB written by the host, {} drive writes a day over {} years, {} years at this \
                     rate",
                    digits(life.host_tb_written),
                    digits(life.drive_writes_per_day),
                    life.warranty_years,
                    digits(life.years_at_this_rate)
                ),
            )?;
            line(
                "",
                format!(
                    "projected from {} erases a block: {}",
                    grouped(life.rated_erases.into()),
                    life.assumptions
                ),
            )?;
        }
        if let Some(a) = &self.array {
            line(
                "array",
                format!(
                    "{} of {}, GC {}; {} data and {} parity pages written, {} read for parity, {} \
                     worked out",
                    a.level,
                    a.members.len(),
                    a.coordination,
                    grouped(a.data_pages_written),
                    grouped(a.parity_pages_written),
                    grouped(a.pages_read_for_parity),
                    grouped(a.pages_recovered)
                ),
            )?;
            let wa = a
                .members
                .iter()
                .map(|m| or_dash(m.flash.write_amplification));
            let wa: Vec<String> = wa.collect();
            let erases = a.members.iter().map(|m| grouped(m.flash.erases));
            let erases: Vec<String> = erases.collect();
            line(
                "",
                format!("write amplification by member {}", wa.join(", ")),
            )?;
            line("", format!("erases by member {}", erases.join(", ")))?;
            if a.segments_trimmed > 0 {
                let text = format!(
                    "{} pages moved, {} segments trimmed; write amplification {} there, {} in all",
                    grouped(a.pages_moved),
                    grouped(a.segments_trimmed),
                    digits(a.volume_write_amplification),
                    or_dash(a.total_write_amplification)
                );
                line("volume", text)?;
            }
            if a.pages_hedged > 0 {
                let text = format!(
                    "{} pages, {} came from elsewhere first; {} pages read in vain",
                    grouped(a.pages_hedged),
                    grouped(a.hedges_won),
                    grouped(a.pages_read_in_vain)
                );
                line("hedged reads", text)?;
            }
            for phase in &a.phases {
                line(&format!("  {}", phase.condition), phase_row(phase))?;
            }
            for rebuild in &a.rebuilds {
                line("rebuild", rebuild_row(rebuild))?;
            }
        }
        let i = &self.inside;
        line(
            "in the device",
            format!(
                "{} requests on average; by Little's law {}",
                digits(i.requests_mean),
                digits(i.little_requests_mean)
            ),
        )?;
        for (count, what) in [
            (
                self.requests_dropped,
                "requests beyond the device were dropped",
            ),
            (
                self.requests_wrapped,
                "requests beyond the device were wrapped",
            ),
            (
                self.requests_refused,
                "requests were refused: the device takes no more writes",
            ),
            (self.pages_lost, "acknowledged pages could not be written"),
            (
                self.requests_failed,
                "requests were answered with an error: the array lost data",
            ),
        ] {
            if count > 0 {
                line("note", format!("{} {what}", grouped(count)))?;
            }
        }
        if self.read_only {
            line(
                "note",
                "the device is at its end of life and read-only".into(),
            )?;
        }
        for warning in &self.warnings {
            line("warning", warning.clone())?;
        }
        if self.interrupted {
            line("note", "interrupted: these are the results so far".into())?;
        }
        Ok(())
    }
}

fn phase_row(p: &PhaseSummary) -> String {
    let failed = match p.requests_failed {
        0 => String::new(),
        n => format!("{} failed, ", grouped(n)),
    };
    format!(
        "{} to {}: {} requests, {failed}p50 {}, p99 {}, p99.9 {}; members read {} and write {} pages \
         a page",
        time(p.from_s * 1e6),
        time(p.until_s * 1e6),
        grouped(p.all.requests),
        time(p.all.p50_us),
        time(p.all.p99_us),
        time(p.all.p999_us),
        digits(p.read_amplification),
        digits(p.write_amplification)
    )
}

fn rebuild_row(r: &RebuildSummary) -> String {
    let from = time(r.from_s * 1e6);
    let written = bytes(r.bytes_written);
    match r.until_s {
        Some(until) => format!(
            "member {}: {from} to {}, {written}",
            r.member,
            time(until * 1e6)
        ),
        None => format!(
            "member {}: from {from}, {written} of {}, not finished",
            r.member,
            bytes(r.bytes)
        ),
    }
}

fn latency_row(l: &Latency) -> String {
    [
        l.mean_us, l.p50_us, l.p90_us, l.p99_us, l.p999_us, l.p9999_us, l.max_us,
    ]
    .map(|us| format!("{:>11}", time(us)))
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_the_unit_one_would_say() {
        assert_eq!(time(0.0), "0 ns");
        assert_eq!(time(0.2384), "238.4 ns");
        assert_eq!(time(330.5), "330.5 us");
        assert_eq!(time(999.6), "1.000 ms");
        assert_eq!(time(12_345_678.0), "12.35 s");
        assert_eq!(grouped(1_234_567), "1 234 567");
        assert_eq!(grouped(12), "12");
        assert_eq!(bytes(4096), "4 KiB");
        assert_eq!(bytes(4_310_000_000), "4.014 GiB");
        assert_eq!(percent(0.10665), "10.66 %");
    }
}
