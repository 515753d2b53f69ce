//! Results as columns: little-endian numbers written once, straight into Python `bytes`, which
//! pyarrow and numpy view without a copy. Names and types are repeated in `flashtwin/tables.py`.

use flashtwin::metrics::OpMetrics;
use flashtwin::Breakdown;
use flashtwin::{Completion, GcInterval};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// One number of a column as bytes.
trait Cell: Copy {
    const BYTES: usize;
    fn put(self, into: &mut [u8]);
}

macro_rules! cell {
    ($type:ty) => {
        impl Cell for $type {
            const BYTES: usize = size_of::<$type>();
            fn put(self, into: &mut [u8]) {
                into.copy_from_slice(&self.to_ne_bytes());
            }
        }
    };
}
cell!(u8);
cell!(u32);
cell!(u64);

fn column<'py, R, T: Cell>(
    py: Python<'py>,
    rows: &[R],
    value: impl Fn(&R) -> T,
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, rows.len() * T::BYTES, |bytes| {
        for (row, cell) in rows.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
            value(row).put(cell);
        }
        Ok(())
    })
}

/// The per-request log of a batch.
pub fn of_completions<'py>(py: Python<'py>, rows: &[Completion]) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("request", column(py, rows, |c| c.tag)?)?;
    d.set_item("op", column(py, rows, |c| c.op as u8)?)?;
    d.set_item("status", column(py, rows, |c| c.status as u8)?)?;
    d.set_item("offset_bytes", column(py, rows, |c| c.offset)?)?;
    d.set_item("size_bytes", column(py, rows, |c| c.bytes)?)?;
    d.set_item("pages", column(py, rows, |c| c.pages)?)?;
    d.set_item("hits", column(py, rows, |c| c.hits)?)?;
    d.set_item("arrival_ps", column(py, rows, |c| c.arrival.0)?)?;
    d.set_item("response_ps", column(py, rows, |c| (c.done - c.arrival).0)?)?;
    for (i, name) in Breakdown::NAMES.iter().enumerate() {
        d.set_item(
            format!("{name}_ps"),
            column(py, rows, |c| c.breakdown.parts()[i].0)?,
        )?;
    }
    Ok(d)
}

/// When members of an array collected.
pub fn of_gc_intervals<'py>(py: Python<'py>, rows: &[GcInterval]) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("member", column(py, rows, |i| i.member as u32)?)?;
    d.set_item("begin_ns", column(py, rows, |i| i.begin.to_ns())?)?;
    d.set_item("end_ns", column(py, rows, |i| i.end.to_ns())?)?;
    d.set_item("kind", column(py, rows, |i| u8::from(i.forced))?)?;
    Ok(d)
}

/// Response times of a kind of request: each bucket's upper end in ns, and how many were in it.
pub fn of_histogram(op: &OpMetrics) -> Vec<(u64, u64)> {
    let histogram = op.histogram_ns();
    let buckets = histogram.iter_recorded();
    buckets
        .map(|b| (b.value_iterated_to(), b.count_at_value()))
        .collect()
}
