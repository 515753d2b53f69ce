//! Hit ratios of policies by themselves: a workload as page accesses, without a device's time.

use std::sync::atomic::Ordering;

use flashtwin::buffer::untimed::Alone;
use flashtwin::buffer::{min, Setup};
use flashtwin::spec::builtin;
use flashtwin::{DeviceSpec, Lpn, Op};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::control::Control;
use crate::errors::{of_workload, FlashtwinError};
use crate::policies::of_little_device;
use crate::user::UserPolicy;
use crate::workload::Workload;

/// N of the block policies: that of the devices of the papers.
const PAGES_PER_BLOCK: u32 = 64;
/// A buffer of 256 GiB of the usual pages.
const CAPACITY_MAX: u32 = 1 << 26;
/// Requests for which there is room from the start; a load may announce any number.
const RESERVED_MAX: u64 = 1 << 24;
/// Pages between two looks at the wish to stop.
const LOOK: u64 = 4096;

/// Consecutive pages accessed by one request.
#[derive(Clone, Copy)]
struct Span {
    first: u32,
    /// With the kind in the two highest bits.
    pages: u32,
}

const KIND_SHIFT: u32 = 30;
const PAGES_MASK: u32 = (1 << KIND_SHIFT) - 1;
const READ: u32 = 0;
const WRITE: u32 = 1;
const TRIM: u32 = 2;

impl Span {
    fn kind(self) -> u32 {
        self.pages >> KIND_SHIFT
    }

    fn lpns(self) -> std::ops::Range<u32> {
        self.first..self.first + (self.pages & PAGES_MASK)
    }
}

/// A workload in memory, cut into pages.
#[pyclass(frozen, module = "flashtwin._core")]
pub struct Accesses {
    spans: Vec<Span>,
    page_bytes: u32,
    /// Pages read and written.
    #[pyo3(get)]
    accesses: u64,
}

#[pymethods]
impl Accesses {
    /// Reads a workload to its end; None if `control` stopped it. Flushes are left out.
    #[staticmethod]
    #[pyo3(signature = (workload, control, *, page_bytes, requests_max))]
    fn load(
        py: Python<'_>,
        workload: &Workload,
        control: &Control,
        page_bytes: u32,
        requests_max: Option<u64>,
    ) -> PyResult<Option<Accesses>> {
        if !(512..=1 << 20).contains(&page_bytes) || !page_bytes.is_multiple_of(512) {
            return Err(FlashtwinError::new_err(format!(
                "page_bytes: {page_bytes}: give a multiple of 512 from 512 to 1048576"
            )));
        }
        let mut requests = workload.lock()?;
        let requests: &mut dyn flashtwin_workload::Workload = &mut **requests;
        py.detach(|| load(requests, control, page_bytes, requests_max))
    }

    /// Counts hits of a policy (by name with parameters, or `user`) in a buffer of
    /// `capacity_pages` that begins empty; None if `control` stopped it.
    #[pyo3(signature = (name, set, user, control, *, capacity_pages))]
    fn hits<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        set: Vec<(String, String)>,
        user: Option<&UserPolicy>,
        control: &Control,
        capacity_pages: u32,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        if !(1..=CAPACITY_MAX).contains(&capacity_pages) {
            return Err(FlashtwinError::new_err(format!(
                "capacity: {capacity_pages} pages: give 1 to {CAPACITY_MAX}"
            )));
        }
        control.0.total.store(self.accesses, Ordering::Relaxed);
        let counts = if name == "min" {
            if let Some((key, _)) = set.first() {
                let message = format!("policy min: it has no parameter \"{key}\"");
                return Err(FlashtwinError::new_err(message));
            }
            Some(py.detach(|| self.min(capacity_pages)))
        } else {
            let device = device(name, &set, self.page_bytes, capacity_pages)?;
            py.detach(|| self.count(&device, user, control))
        };
        if let Some(e) = user.and_then(|user| user.failure.take()) {
            return Err(e);
        }
        counts
            .map(|count| dict(py, count, name != "min"))
            .transpose()
    }
}

fn load(
    requests: &mut dyn flashtwin_workload::Workload,
    control: &Control,
    page_bytes: u32,
    requests_max: Option<u64>,
) -> PyResult<Option<Accesses>> {
    let (control, page_bytes_64) = (&control.0, u64::from(page_bytes));
    let total = requests.requests_total().unwrap_or(0);
    control.total.store(total, Ordering::Relaxed);
    let expected = requests_max.map_or(total, |max| max.min(total));
    let mut all = Accesses {
        spans: Vec::with_capacity(expected.min(RESERVED_MAX) as usize),
        page_bytes,
        accesses: 0,
    };
    let (mut batch, mut seen) = (Vec::new(), 0);
    loop {
        batch.clear();
        if requests.next_batch(&mut batch).map_err(of_workload)? == 0 {
            return Ok(Some(all));
        }
        for request in &batch {
            if requests_max == Some(seen) {
                return Ok(Some(all));
            }
            let kind = match request.op {
                Op::Read => READ,
                Op::Write => WRITE,
                Op::Trim => TRIM,
                Op::Flush => {
                    seen += 1;
                    continue;
                }
            };
            let end = request.offset.saturating_add(request.bytes);
            let (first, last) = (request.offset / page_bytes_64, end.div_ceil(page_bytes_64));
            // The last page number means "none" in the model.
            let last = u32::try_from(last).ok().filter(|&last| last < u32::MAX);
            let pages = last.map(|last| last.saturating_sub(first as u32));
            let Some(pages) = pages.filter(|&pages| pages <= PAGES_MASK) else {
                return Err(FlashtwinError::new_err(format!(
                    "request {seen}: {} bytes at offset {} end beyond the last of 2^32 pages of \
                     {page_bytes} bytes; give larger pages",
                    request.bytes, request.offset
                )));
            };
            all.spans.push(Span {
                first: first as u32,
                pages: pages | kind << KIND_SHIFT,
            });
            all.accesses += u64::from(if kind == TRIM { 0 } else { pages });
            seen += 1;
        }
        control.done.store(seen, Ordering::Relaxed);
        if control.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
}

/// A device around the policy, of which only the buffer is used.
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

/// What a list of accesses came to. Hits include those in the separate read cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HitCount {
    /// Page accesses.
    accesses: u64,
    /// Those to a cached page.
    hits: u64,
    /// Accesses that read.
    reads: u64,
    /// Those to a cached page.
    read_hits: u64,
    /// Accesses that write.
    writes: u64,
    /// Those to a cached page.
    write_hits: u64,
    /// Pages that left for others.
    victims: u64,
    /// Those that were written back.
    dirty_victims: u64,
}

/// As a dict; MIN knows only accesses and hits.
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
    ] {
        d.set_item(name, whole.then_some(n))?;
    }
    Ok(d)
}

impl Accesses {
    fn min(&self, capacity_pages: u32) -> HitCount {
        let spans = self.spans.iter().filter(|span| span.kind() != TRIM);
        let pages: Vec<Lpn> = spans.flat_map(|span| span.lpns().map(Lpn)).collect();
        HitCount {
            accesses: self.accesses,
            hits: min::hits(&pages, capacity_pages),
            ..HitCount::default()
        }
    }

    /// Runs the accesses through an empty buffer; None if `control` stopped it.
    fn count(
        &self,
        device: &DeviceSpec,
        user: Option<&UserPolicy>,
        control: &Control,
    ) -> Option<HitCount> {
        let (setup, buffer) = (Setup::of(device), device.buffer.as_ref()?);
        let mut alone = match user {
            Some(user) => Alone::with_user(user.boxed(), &setup),
            None => Alone::new(&buffer.policy, &setup, buffer.read_cache_pages),
        };
        if let Some(user) = user {
            user.failure.stops(&control.0);
        }
        let (mut steps, mut count) = (0, HitCount::default());
        for (number, span) in self.spans.iter().enumerate() {
            let write = span.kind() == WRITE;
            if let Some(ahead) = self.spans.get(number + 1) {
                alone.prefetch(Lpn(ahead.first));
            }
            for lpn in span.lpns() {
                steps += 1;
                if steps % LOOK == 0 {
                    control.0.done.store(count.accesses, Ordering::Relaxed);
                    if control.0.stop.load(Ordering::Relaxed) {
                        return None;
                    }
                }
                if span.kind() == TRIM {
                    alone.trim(Lpn(lpn));
                    continue;
                }
                let pages = span.pages & PAGES_MASK;
                let outcome = alone.access(Lpn(lpn), write, number as u64, pages);
                let hit = u64::from(outcome.hit);
                let (of_kind, hits_of_kind) = match write {
                    true => (&mut count.writes, &mut count.write_hits),
                    false => (&mut count.reads, &mut count.read_hits),
                };
                *of_kind += 1;
                *hits_of_kind += hit;
                count.accesses += 1;
                count.hits += hit;
                count.victims += outcome.victims.len() as u64;
                count.dirty_victims += outcome.victims.iter().filter(|v| v.1).count() as u64;
            }
        }
        control.0.done.store(count.accesses, Ordering::Relaxed);
        Some(count)
    }
}
