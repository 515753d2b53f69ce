//! Hits and write-backs of LRU buffers of all sizes. They are computed in one pass over a workload in memory.

use std::ops::Range;
use std::sync::atomic::Ordering;

use flashtwin::buffer::sample::{SampledCurve, SampledLru};
use flashtwin::buffer::stack::{LruCounts, LruCurve, LruStack};
use flashtwin::Lpn;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::accesses::{Accesses, Next, TRIM, WRITE};
use crate::control::Control;
use crate::errors::FlashtwinError;

/// Distance of the prefetch, in requests: the table entry of a request's first page is prefetched this many requests
/// before the request is processed.
const AHEAD: usize = 16;

/// LRU buffers of all sizes, to which a workload is applied.
trait Pass {
    type Curve;
    fn prefetch(&self, lpn: Lpn);
    fn access(&mut self, pages: Range<u32>, write: bool);
    fn trim(&mut self, pages: Range<u32>);
    fn finish(self) -> Self::Curve;
}

impl Pass for LruStack {
    type Curve = LruCurve;

    #[inline]
    fn prefetch(&self, lpn: Lpn) {
        LruStack::prefetch(self, lpn);
    }

    #[inline]
    fn access(&mut self, pages: Range<u32>, write: bool) {
        for lpn in pages {
            LruStack::access(self, Lpn(lpn), write);
        }
    }

    fn trim(&mut self, pages: Range<u32>) {
        for lpn in pages {
            LruStack::trim(self, Lpn(lpn));
        }
    }

    fn finish(self) -> LruCurve {
        LruStack::finish(self)
    }
}

impl Pass for SampledLru {
    type Curve = SampledCurve;

    fn prefetch(&self, _: Lpn) {}

    #[inline]
    fn access(&mut self, pages: Range<u32>, write: bool) {
        SampledLru::access(self, pages, write);
    }

    fn trim(&mut self, pages: Range<u32>) {
        SampledLru::trim(self, pages);
    }

    fn finish(self) -> SampledCurve {
        SampledLru::finish(self)
    }
}

/// Applies the accesses to buffers of all sizes. Returns None if `control` stopped the work.
fn pass<P: Pass>(accesses: &Accesses, mut of: P, control: &Control) -> PyResult<Option<P::Curve>> {
    let mut requests = 0;
    for number in 0.. {
        let spans = match accesses.next(number, &control.0)? {
            Next::Piece(spans) => spans,
            Next::End => break,
            Next::Stopped => return Ok(None),
        };
        for (i, span) in spans.iter().enumerate() {
            if let Some(ahead) = spans.get(i + AHEAD) {
                of.prefetch(Lpn(ahead.first));
            }
            match span.kind() {
                TRIM => of.trim(span.lpns()),
                kind => of.access(span.lpns(), kind == WRITE),
            }
        }
        requests += spans.len() as u64;
        control.0.done.store(requests, Ordering::Relaxed);
        if control.0.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    Ok(Some(of.finish()))
}

/// Hits and write-backs of LRU as functions of the size of the buffer.
#[pyclass(frozen, module = "flashtwin._core")]
pub struct LruHits(Kind);

enum Kind {
    Exact(LruCurve),
    Sampled(SampledCurve),
}

#[pymethods]
impl LruHits {
    /// Returns the number of distinct pages of the workload. If pages were sampled, the number is an estimate.
    #[getter]
    fn pages(&self) -> u64 {
        match &self.0 {
            Kind::Exact(curve) => curve.pages(),
            Kind::Sampled(curve) => curve.pages().0.round() as u64,
        }
    }

    /// Returns the number of distinct pages in the sample.
    #[getter]
    fn pages_followed(&self) -> u64 {
        match &self.0 {
            Kind::Exact(curve) => curve.pages(),
            Kind::Sampled(curve) => curve.pages().1,
        }
    }

    /// Returns the counts of a buffer of the given size as a dict, and the half-width of the 95 % confidence interval
    /// of its hit ratio. The half-width is `None` if the counts are exact.
    fn at<'py>(
        &self,
        py: Python<'py>,
        capacity_pages: u64,
    ) -> PyResult<(Bound<'py, PyDict>, Option<f64>)> {
        let (counts, error) = match &self.0 {
            Kind::Exact(curve) => (curve.at(capacity_pages), None),
            Kind::Sampled(curve) => {
                let (counts, error) = curve.at(capacity_pages);
                (counts, Some(error))
            }
        };
        Ok((dict(py, &counts)?, error))
    }
}

fn dict<'py>(py: Python<'py>, counts: &LruCounts) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    for (name, n) in [
        ("accesses", counts.reads + counts.writes),
        ("hits", counts.read_hits + counts.write_hits),
        ("reads", counts.reads),
        ("read_hits", counts.read_hits),
        ("writes", counts.writes),
        ("write_hits", counts.write_hits),
        ("evicted_clean", counts.evicted_clean),
        ("evicted_dirty", counts.evicted_dirty),
        // LRU evicts one page at a time.
        ("destages", counts.evicted_dirty),
    ] {
        d.set_item(name, n)?;
    }
    Ok(d)
}

/// Counts the hits and write-backs of LRU in buffers of all sizes, in one pass. The buffers are empty at first. With
/// `rate`, only this fraction of the pages is sampled. Returns None if `control` stopped the work.
#[pyfunction]
#[pyo3(signature = (accesses, control, *, rate=None))]
pub fn lru_curve(
    py: Python<'_>,
    accesses: &Accesses,
    control: &Control,
    rate: Option<f64>,
) -> PyResult<Option<LruHits>> {
    let kind = match rate {
        None => {
            let curve = py.detach(|| pass(accesses, LruStack::new(), control))?;
            curve.map(Kind::Exact)
        }
        Some(rate) => {
            check_rate(rate)?;
            let curve = py.detach(|| pass(accesses, SampledLru::new(rate), control))?;
            curve.map(Kind::Sampled)
        }
    };
    Ok(kind.map(LruHits))
}

/// Checks a rate of sampling.
pub fn check_rate(rate: f64) -> PyResult<()> {
    match rate > 0.0 && rate <= 1.0 {
        true => Ok(()),
        false => Err(FlashtwinError::new_err(format!(
            "sample: {rate}: give a share above 0 and up to 1, as in 0.01"
        ))),
    }
}

/// Returns the half-width of the 95 % confidence interval of a hit ratio. `ratios` are the hit ratios of disjoint parts
/// of a sample.
#[pyfunction]
pub fn half_width(ratios: Vec<f64>) -> f64 {
    flashtwin::buffer::sample::half_width(&ratios)
}
