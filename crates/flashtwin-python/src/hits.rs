//! Hit ratios of policies without a device. A workload is reduced to page accesses, without time.

use std::sync::atomic::Ordering;

use flashtwin::buffer::catalog::{self, Family};
use flashtwin::buffer::sample::{scaled_counts, Sample};
use flashtwin::buffer::stack::LruCounts;
use flashtwin::buffer::untimed::UntimedBuffer;
use flashtwin::buffer::{min, Setup};
use flashtwin::spec::builtin;
use flashtwin::{DeviceSpec, Lpn};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::accesses::{Accesses, Next, TRIM, WRITE};
use crate::control::Control;
use crate::curve::check_rate;
use crate::errors::FlashtwinError;
use crate::policies::of_little_device;
use crate::user::UserPolicy;

/// Number of pages per block (N) for policies that rank blocks. It is the number in the devices of the papers.
const PAGES_PER_BLOCK: u32 = 64;
/// Largest capacity of a buffer in pages. With pages of 4 KiB, it is 256 GiB.
const CAPACITY_MAX: u32 = 1 << 26;
/// Distance of the prefetch, in requests: the directory entry of a request's first page is prefetched this many
/// requests before the request is processed.
const AHEAD: usize = 8;
/// Number of pages between two checks whether the caller has been stopped.
const LOOK: u64 = 4096;

/// Counts the hits of a policy in a buffer of `capacity_pages` that is empty at first. `name` is the policy with its
/// parameters; `user`, if given, replaces it. The workload may still be read meanwhile. Returns None if `control`
/// stopped the work.
///
/// With `rate`, a small buffer stands for a larger one: it receives only the pages of a sample at this rate, and its
/// counts are scaled up. The caller must have multiplied `capacity_pages` by the rate. With `part` as well, the buffer
/// receives only one of several disjoint parts of the sample. The caller must also have divided the capacity by the
/// number of parts.
#[pyfunction]
#[pyo3(signature = (accesses, name, set, user, control, *, capacity_pages, rate=None, part=None))]
#[allow(clippy::too_many_arguments)] // Keywords of one call from Python.
pub fn count_hits<'py>(
    py: Python<'py>,
    accesses: &Accesses,
    name: &str,
    set: Vec<(String, String)>,
    user: Option<&UserPolicy>,
    control: &Control,
    capacity_pages: u32,
    rate: Option<f64>,
    part: Option<u32>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    if !(1..=CAPACITY_MAX).contains(&capacity_pages) {
        return Err(FlashtwinError::new_err(format!(
            "capacity: {capacity_pages} pages: give 1 to {CAPACITY_MAX}"
        )));
    }
    let sample = match rate {
        None => None,
        Some(rate) => {
            check_rate(rate)?;
            let whole = Sample::new(rate).by_units(unit_bits(name));
            Some(part.map_or(whole, |part| whole.part(part)))
        }
    };
    let counts = if name == "min" {
        if let Some((key, _)) = set.first() {
            let message = format!("policy min: it has no parameter \"{key}\"");
            return Err(FlashtwinError::new_err(message));
        }
        py.detach(|| of_min(accesses, capacity_pages, sample, control))?
    } else {
        let device = device(name, &set, accesses.page_bytes, capacity_pages)?;
        py.detach(|| count(accesses, &device, user, sample, control))?
    };
    if let Some(e) = user.and_then(|user| user.failure.take()) {
        return Err(e);
    }
    let counts = counts.map(|count| match sample {
        Some(sample) => count.scaled_up(sample.rate()),
        None => count,
    });
    counts
        .map(|count| dict(py, count, name != "min"))
        .transpose()
}

/// Returns the number of low bits of page numbers that a sample ignores. For policies that rank blocks, pages of a
/// block differ only in these bits, so a sample contains either all pages of a block or none. For other policies, the
/// number is 0, and pages are sampled individually.
fn unit_bits(policy: &str) -> u32 {
    let found = catalog::find(policy).map(|(entry, base)| base.unwrap_or(entry));
    match found.is_some_and(|entry| entry.family == Family::Blocks) {
        true => PAGES_PER_BLOCK.trailing_zeros(),
        false => 0,
    }
}

/// Creates a small device with the policy. Only the buffer of the device is used.
fn device(
    name: &str,
    set: &[(String, String)],
    page_bytes: u32,
    capacity_pages: u32,
) -> PyResult<DeviceSpec> {
    // As much flash as holds the buffer.
    let blocks = 64 + u64::from(capacity_pages) / u64::from(PAGES_PER_BLOCK) * 2;
    let capacity = u64::from(capacity_pages) * u64::from(page_bytes);
    let mut overrides: Vec<(&str, String)> = vec![
        ("geometry.chips", "1".into()),
        ("geometry.planes_per_chip", "1".into()),
        ("geometry.blocks_per_plane", blocks.to_string()),
        ("geometry.pages_per_block", PAGES_PER_BLOCK.to_string()),
        ("geometry.page_bytes", page_bytes.to_string()),
        ("geometry.reserve_percent", "50".into()),
        ("ftl.summary_page", "false".into()),
        ("buffer.capacity", capacity.to_string()),
        ("buffer.policy", name.into()),
    ];
    overrides.extend(set.iter().map(|(key, value)| (key.as_str(), value.clone())));
    let overrides: Vec<(&str, &str)> = overrides.iter().map(|(k, v)| (*k, v.as_str())).collect();
    DeviceSpec::with_overrides(builtin("ecr").unwrap_or_default(), "ecr", &overrides)
        .map_err(|e| of_little_device(&e))
}

/// Counts of hits and other events over a list of accesses. Hits include those in the separate read cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HitCount {
    /// Page accesses.
    accesses: u64,
    /// Accesses to a cached page.
    hits: u64,
    /// Accesses that read.
    reads: u64,
    /// Reads of a cached page.
    read_hits: u64,
    /// Accesses that write.
    writes: u64,
    /// Writes to a cached page.
    write_hits: u64,
    /// Pages evicted to make room for others.
    victims: u64,
    /// Victims that were written back.
    dirty_victims: u64,
    /// Evictions with a victim that was written back.
    destages: u64,
    /// Total number of read accesses, including those to pages outside the sample. The next field is that of write
    /// accesses.
    all_reads: u64,
    all_writes: u64,
}

impl HitCount {
    /// Scales the counts of a sample up.
    fn scaled_up(self, rate: f64) -> HitCount {
        let up = |n: u64| (n as f64 / rate).round() as u64;
        let counts = LruCounts {
            reads: self.reads,
            read_hits: self.read_hits,
            writes: self.writes,
            write_hits: self.write_hits,
            evicted_clean: self.victims - self.dirty_victims,
            evicted_dirty: self.dirty_victims,
        };
        let all = scaled_counts(&counts, rate, (self.all_reads, self.all_writes));
        HitCount {
            accesses: all.reads + all.writes,
            hits: all.read_hits + all.write_hits,
            reads: all.reads,
            read_hits: all.read_hits,
            writes: all.writes,
            write_hits: all.write_hits,
            victims: all.evicted_clean + all.evicted_dirty,
            dirty_victims: all.evicted_dirty,
            destages: up(self.destages),
            ..self
        }
    }
}

/// Returns the counts as a dict. For MIN, the dict has only accesses and hits.
fn dict(py: Python<'_>, count: HitCount, whole: bool) -> PyResult<Bound<'_, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("accesses", count.accesses)?;
    d.set_item("hits", count.hits)?;
    for (name, n) in [
        ("reads", count.reads),
        ("read_hits", count.read_hits),
        ("writes", count.writes),
        ("write_hits", count.write_hits),
        ("evicted_clean", count.victims - count.dirty_victims),
        ("evicted_dirty", count.dirty_victims),
        ("destages", count.destages),
    ] {
        d.set_item(name, whole.then_some(n))?;
    }
    Ok(d)
}

/// Counts the hits of MIN, which must know all accesses in advance. Returns None if `control` stopped the work.
fn of_min(
    accesses: &Accesses,
    capacity_pages: u32,
    sample: Option<Sample>,
    control: &Control,
) -> PyResult<Option<HitCount>> {
    let (mut pages, mut all) = (Vec::new(), 0);
    for number in 0.. {
        match accesses.next(number, &control.0)? {
            Next::Piece(spans) => {
                for span in spans.iter().filter(|span| span.kind() != TRIM) {
                    all += u64::from(span.pages());
                    let chosen = |lpn: &Lpn| sample.is_none_or(|sample| sample.has(*lpn));
                    pages.extend(span.lpns().map(Lpn).filter(chosen));
                }
            }
            Next::End => break,
            Next::Stopped => return Ok(None),
        }
    }
    let (accesses, hits) = (pages.len() as u64, min::hits(&pages, capacity_pages));
    // MIN treats reads and writes alike. Therefore all accesses are counted as reads, and the counts of reads are later
    // scaled up from the sample.
    Ok(Some(HitCount {
        accesses,
        hits,
        reads: accesses,
        read_hits: hits,
        all_reads: all,
        ..HitCount::default()
    }))
}

/// Applies the accesses to an empty buffer. Returns None if `control` stopped the work.
fn count(
    accesses: &Accesses,
    device: &DeviceSpec,
    user: Option<&UserPolicy>,
    sample: Option<Sample>,
    control: &Control,
) -> PyResult<Option<HitCount>> {
    let Some(buffer) = device.buffer.as_ref() else {
        return Ok(None);
    };
    let setup = Setup::of(device);
    let mut alone = match user {
        Some(user) => UntimedBuffer::with_user(user.boxed(), &setup),
        None => UntimedBuffer::new(&buffer.policy, &setup, buffer.read_cache_pages),
    };
    if let Some(user) = user {
        user.failure.stops(&control.0);
    }
    let (mut request, mut steps, mut count) = (0, 0, HitCount::default());
    for number in 0.. {
        let spans = match accesses.next(number, &control.0)? {
            Next::Piece(spans) => spans,
            Next::End => break,
            Next::Stopped => return Ok(None),
        };
        for (i, span) in spans.iter().enumerate() {
            let write = span.kind() == WRITE;
            let ahead = spans.get(i + AHEAD).map(|span| Lpn(span.first));
            if let Some(ahead) = ahead.filter(|_| sample.is_none()) {
                alone.prefetch(ahead);
            }
            match span.kind() {
                TRIM => {}
                WRITE => count.all_writes += u64::from(span.pages()),
                _ => count.all_reads += u64::from(span.pages()),
            }
            for lpn in span.lpns() {
                steps += 1;
                if steps % LOOK == 0 {
                    control.0.done.store(request, Ordering::Relaxed);
                    if control.0.stop.load(Ordering::Relaxed) {
                        return Ok(None);
                    }
                }
                if sample.is_some_and(|sample| !sample.has(Lpn(lpn))) {
                    continue;
                }
                if span.kind() == TRIM {
                    alone.trim(Lpn(lpn));
                    continue;
                }
                let outcome = alone.access(Lpn(lpn), write, request, span.pages());
                let hit = u64::from(outcome.hit);
                let (of_kind, hits_of_kind) = match write {
                    true => (&mut count.writes, &mut count.write_hits),
                    false => (&mut count.reads, &mut count.read_hits),
                };
                *of_kind += 1;
                *hits_of_kind += hit;
                count.accesses += 1;
                count.hits += hit;
                let dirty = outcome.victims.iter().filter(|v| v.1).count() as u64;
                count.victims += outcome.victims.len() as u64;
                count.dirty_victims += dirty;
                count.destages += u64::from(dirty > 0);
            }
            request += 1;
        }
    }
    control.0.done.store(request, Ordering::Relaxed);
    Ok(Some(count))
}
