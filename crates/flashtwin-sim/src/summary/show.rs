//! A summary as a block of text for a terminal.

use std::fmt;

use flashtwin::Breakdown;

use super::numbers::{bytes, digits, grouped, or_dash, percent, ratio_text, time};
use super::{ArraySummary, Latency, PassesSummary, PhaseSummary, RebuildSummary, Summary};

/// Lines of text, each with a label.
struct Lines<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Lines<'_, '_> {
    fn line(&mut self, label: &str, text: String) -> fmt::Result {
        writeln!(self.0, "{label:<15}{text}")
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let out = &mut Lines(f);
        self.run_lines(out)?;
        self.response_lines(out)?;
        if self.buffer_pages > 0 {
            self.buffer_lines(out)?;
        }
        self.flash_lines(out)?;
        if let Some(placement) = &self.placement {
            let lines = placement.lines();
            for (n, line) in lines.into_iter().enumerate() {
                out.line(if n == 0 { "placement" } else { "" }, line)?;
            }
        }
        self.health_lines(out)?;
        if let Some(array) = &self.array {
            array.lines(out)?;
        }
        self.note_lines(out)
    }
}

impl fmt::Display for PassesSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passes, drive_writes) = (grouped(self.passes), digits(self.drive_writes));
        write!(f, "{passes} of the workload, {drive_writes} drive writes")?;
        let Some(amplification) = self.device_write_amplification else {
            return Ok(());
        };
        write!(f, "; write amplification {}", digits(amplification))?;
        if let Some(half_width) = self.device_write_amplification_half_width {
            write!(f, " +-{}", percent(half_width / amplification))?;
        }
        let parts = self.programs_by_purpose.iter();
        let parts = parts.map(|part| format!("{} {}", part.name, digits(part.write_amplification)));
        let parts: Vec<String> = parts.collect();
        write!(f, " over the last half ({})", parts.join(", "))
    }
}

impl Summary {
    /// Writes the lines about device, workload, pacing and the number of requests.
    fn run_lines(&self, out: &mut Lines) -> fmt::Result {
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
        out.line(
            "device",
            format!(
                "{} ({}), exports {exports}, {buffer}",
                self.device, self.backend
            ),
        )?;
        out.line("workload", self.workload.clone())?;
        out.line(
            "run",
            format!(
                "{}; precondition {}; seed {}",
                self.pacing, self.precondition, self.seed
            ),
        )?;
        if let Some(steady) = self.steady.filter(|steady| steady.is_met) {
            let after = grouped(steady.after_requests);
            out.line("steady state", format!("after {after} requests"))?;
        }
        if let Some(passes) = &self.passes {
            out.line("passes", passes.to_string())?;
        }
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
        out.line(
            "requests",
            format!("{requests}) in {} virtual", time(self.span_s * 1e6)),
        )?;
        let t = &self.throughput;
        out.line(
            "throughput",
            format!(
                "{} requests/s, {} MB/s (read {}, write {})",
                digits(t.iops),
                digits(t.mb_per_s),
                digits(t.read_mb_per_s),
                digits(t.write_mb_per_s)
            ),
        )?;
        Ok(())
    }

    /// Writes the lines about response times and their parts.
    fn response_lines(&self, out: &mut Lines) -> fmt::Result {
        let header = ["mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
        out.line("response time", header.map(|h| format!("{h:>11}")).concat())?;
        for (label, l) in [
            ("  all", &self.all),
            ("  read", &self.read),
            ("  write", &self.write),
        ] {
            if l.requests > 0 {
                out.line(label, latency_row(l))?;
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
        out.line("deviation", spread.join(", "))?;
        out.line("of the mean", parts_row(&self.all.parts_us))?;
        Ok(())
    }

    /// Writes the lines about hits, evictions and the policy.
    fn buffer_lines(&self, out: &mut Lines) -> fmt::Result {
        let h = &self.hits;
        out.line(
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
        out.line("buffer", text)?;
        if let Some(limit) = &b.limit {
            let (key, value, share) = (limit.key, limit.value, percent(limit.time_share));
            let text =
                format!("{key} = {value} write-backs at a time, reached in {share} of the time");
            out.line("limit", text)?;
        }
        if b.evictions > 0 {
            let written: u64 = b.destages.iter().sum();
            let pages = ratio_text(b.evicted_dirty_pages, written);
            let looked = ratio_text(b.entries_inspected, b.evictions);
            out.line(
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
            out.line("policy", texts.join(", "))?;
        }
        Ok(())
    }

    /// Writes the lines about flash operations, collections and erases.
    fn flash_lines(&self, out: &mut Lines) -> fmt::Result {
        let flash = &self.flash;
        let done = flash.ops.iter().filter(|op| op.count > 0);
        let ops: Vec<String> = done
            .map(|op| format!("{} {}", op.name.replace('_', " "), grouped(op.count)))
            .collect();
        out.line(
            "flash",
            if ops.is_empty() {
                "idle".into()
            } else {
                ops.join(", ")
            },
        )?;
        out.line(
            "",
            format!(
                "device write amplification {}, GC write amplification {}",
                or_dash(self.health.device_write_amplification),
                or_dash(flash.gc_write_amplification)
            ),
        )?;
        let counted = flash.ftl_counters.iter().filter(|c| c.count > 0);
        let counters: Vec<String> = counted
            .map(|c| format!("{} {}", c.name.replace('_', " "), grouped(c.count)))
            .collect();
        if !counters.is_empty() {
            out.line("mapping", counters.join(", "))?;
        }
        out.line(
            "gc",
            format!(
                "{} actions, {} of the time (busiest chip {})",
                grouped(flash.gc_actions),
                percent(flash.gc_share_mean),
                percent(flash.gc_share_max)
            ),
        )?;
        out.line(
            "chips busy",
            format!(
                "{} (most {})",
                percent(flash.busy_share_mean),
                percent(flash.busy_share_max)
            ),
        )?;
        out.line(
            "block erases",
            format!(
                "min {}, mean {}, max {}, deviation {}",
                flash.block_erases_min,
                digits(flash.block_erases_mean),
                flash.block_erases_max,
                digits(flash.block_erases_deviation)
            ),
        )?;
        Ok(())
    }

    /// Writes the lines about wear and lifetime.
    fn health_lines(&self, out: &mut Lines) -> fmt::Result {
        let h = &self.health;
        if h.spent_blocks > 0 {
            out.line(
                "health",
                format!(
                    "{} blocks spent, {} % of the reserve left",
                    grouped(h.spent_blocks.into()),
                    h.available_spare_percent
                ),
            )?;
        }
        if let Some(life) = &h.lifetime {
            out.line(
                "lifetime",
                format!(
                    "{} TB written by the host, {} drive writes a day over {} years, {} at this rate",
                    digits(life.host_tb_written),
                    digits(life.drive_writes_per_day),
                    life.warranty_years,
                    life_time(life.years_at_this_rate)
                ),
            )?;
            out.line(
                "",
                format!(
                    "projected from {} erases a block: {}",
                    grouped(life.rated_erases.into()),
                    life.assumptions
                ),
            )?;
            if h.drive_writes < 1.0 {
                out.line(
                    "",
                    format!(
                        "the run wrote {} of the capacity: the initial state decides these figures (see flashtwin \
                         lifetime)",
                        percent(h.drive_writes)
                    ),
                )?;
            }
        }
        Ok(())
    }

    /// Writes the numbers of requests in flight, and of requests that were dropped, refused or failed.
    fn note_lines(&self, out: &mut Lines) -> fmt::Result {
        let of_times = digits(self.inside.little_requests_mean);
        let inside = digits(self.inside.requests_mean);
        // By Little's law, the two means are equal. They differ only if requests were in flight at the beginning or the
        // end of the measurement.
        let differs = if inside == of_times {
            String::new()
        } else {
            format!("; by Little's law {of_times}")
        };
        out.line(
            "in the device",
            format!("{inside} requests on average{differs}"),
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
            (self.requests_failed, "requests failed: the array lost data"),
        ] {
            if count > 0 {
                out.line("note", format!("{} {what}", grouped(count)))?;
            }
        }
        if self.read_only {
            out.line(
                "note",
                "the device is at its end of life and read-only".into(),
            )?;
        }
        for warning in &self.warnings {
            out.line("warning", warning.clone())?;
        }
        if self.interrupted {
            out.line("note", "interrupted: these are the results so far".into())?;
        }
        Ok(())
    }
}

impl ArraySummary {
    /// Writes the lines about the array: pages, hedged reads, phases and rebuilds.
    fn lines(&self, out: &mut Lines) -> fmt::Result {
        out.line(
            "array",
            format!(
                "{} of {}, GC {}; {} data and {} parity pages written, {} read for parity, {} \
                 worked out",
                self.level,
                self.members.len(),
                self.coordination,
                grouped(self.data_pages_written),
                grouped(self.parity_pages_written),
                grouped(self.pages_read_for_parity),
                grouped(self.pages_recovered)
            ),
        )?;
        let wa = self
            .members
            .iter()
            .map(|m| or_dash(m.flash.gc_write_amplification));
        let wa: Vec<String> = wa.collect();
        let erases = self.members.iter().map(|m| grouped(m.flash.erases));
        let erases: Vec<String> = erases.collect();
        out.line(
            "",
            format!("GC write amplification by member {}", wa.join(", ")),
        )?;
        out.line("", format!("erases by member {}", erases.join(", ")))?;
        if self.segments_trimmed > 0 {
            let text = format!(
                "{} pages moved, {} segments trimmed; write amplification {} there, {} in all",
                grouped(self.pages_moved),
                grouped(self.segments_trimmed),
                digits(self.volume_write_amplification),
                or_dash(self.total_write_amplification)
            );
            out.line("volume", text)?;
        }
        if self.pages_hedged > 0 {
            let text = format!(
                "{} pages, {} completed elsewhere first; {} pages read in vain",
                grouped(self.pages_hedged),
                grouped(self.hedges_won),
                grouped(self.pages_read_in_vain)
            );
            out.line("hedged reads", text)?;
        }
        for phase in &self.phases {
            out.line(&format!("  {}", phase.condition), phase_row(phase))?;
        }
        for rebuild in &self.rebuilds {
            out.line("rebuild", rebuild_row(rebuild))?;
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

/// Formats the parts of a response time that are not zero. The parts of the wait for a slot follow that wait.
fn parts_row(parts: &Breakdown<f64>) -> String {
    let spent = Breakdown::NAMES.into_iter().zip(parts.parts());
    let spent: Vec<(&str, f64)> = spent.filter(|&(_, us)| us > 0.0).collect();
    let text = |name: &str, us: f64| format!("{} {}", name.replace('_', " "), time(us));
    let of_slot = |&(name, us): &(&'static str, f64)| Some((name.strip_prefix("slot_")?, us));
    let slot: Vec<(&str, f64)> = spent.iter().filter_map(of_slot).collect();
    let slot_us: f64 = slot.iter().map(|(_, us)| us).sum();
    let slot: Vec<String> = slot.into_iter().map(|(name, us)| text(name, us)).collect();
    let mut slot =
        (!slot.is_empty()).then(|| format!("{} ({})", text("slot", slot_us), slot.join(", ")));
    let parts = spent.iter().filter_map(|part| match of_slot(part) {
        Some(_) => slot.take(),
        None => Some(text(part.0, part.1)),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Formats a lifetime, in days if it is shorter than a year.
fn life_time(years: f64) -> String {
    match years < 1.0 {
        true => format!("{} days", digits(years * 365.0)),
        false => format!("{} years", digits(years)),
    }
}

fn latency_row(l: &Latency) -> String {
    [
        l.mean_us, l.p50_us, l.p90_us, l.p99_us, l.p999_us, l.p9999_us, l.max_us,
    ]
    .map(|us| format!("{:>11}", time(us)))
    .concat()
}
