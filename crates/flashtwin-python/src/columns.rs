//! Results as columns of little-endian numbers. The numbers are written directly into Python `bytes`, which pyarrow and
//! numpy use without a copy. The names and types of the columns are those in `flashtwin/_support/tables.py`.

use flashtwin::metrics::OpMetrics;
use flashtwin::Breakdown;
use flashtwin::{Completion, GcInterval};
use flashtwin_sim::Timeline;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

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
        put_cells(bytes, rows, value);
        Ok(())
    })
}

/// Writes a cell for each row.
#[inline(always)]
fn put_cells<R, T: Cell>(into: &mut [u8], rows: &[R], value: impl Fn(&R) -> T) {
    for (row, cell) in rows.iter().zip(into.chunks_exact_mut(T::BYTES)) {
        value(row).put(cell);
    }
}

/// Columns of the per-request log. The largest number of rows is fixed at creation.
pub struct Log {
    rows: usize,
    columns: Vec<Column>,
}

struct Column {
    name: String,
    cell_bytes: usize,
    bytes: Vec<u8>,
}

/// Number of rows that are converted to columns at a time. It is small, so that the rows stay in the cache until all
/// columns are written.
const AT_ONCE: usize = 64;

/// Declares the columns of the log, in order. Each has a name, a type, and an expression that computes its value from a
/// [`Completion`].
macro_rules! log {
    ($($name:ident: $type:ty = |$completion:ident| $value:expr;)*) => {
        impl Log {
            pub fn with_capacity(rows: usize) -> Log {
                let numbers = [$((stringify!($name).to_string(), size_of::<$type>())),*];
                let parts = Breakdown::KEYS.map(|key| (key.to_string(), size_of::<u64>()));
                let columns = numbers.into_iter().chain(parts).map(|(name, cell_bytes)| Column {
                    name,
                    cell_bytes,
                    bytes: vec![0; rows * cell_bytes],
                });
                Log { rows: 0, columns: columns.collect() }
            }

            fn put_at(&mut self, at: usize, completions: &[Completion]) {
                let mut columns = self.columns.iter_mut();
                $(if let Some(column) = columns.next() {
                    column.put(at, completions, |$completion| -> $type { $value });
                })*
                for (i, column) in columns.enumerate() {
                    column.put(at, completions, |c| c.breakdown.parts()[i].0);
                }
            }
        }
    };
}
log! {
    request: u64 = |c| c.tag;
    op: u8 = |c| c.op as u8;
    status: u8 = |c| c.status as u8;
    offset_bytes: u64 = |c| c.offset;
    size_bytes: u64 = |c| c.bytes;
    pages: u32 = |c| c.pages;
    hits: u32 = |c| c.hits;
    arrival_ps: u64 = |c| c.arrival.0;
    response_ps: u64 = |c| (c.done - c.arrival).0;
}

impl Column {
    #[inline(always)]
    fn put<T: Cell>(&mut self, at: usize, rows: &[Completion], value: impl Fn(&Completion) -> T) {
        put_cells(&mut self.bytes[at * T::BYTES..], rows, value);
    }
}

impl Log {
    /// Replaces the rows by the given completions. There must not be more completions than the log has room for.
    pub fn put(&mut self, completions: &[Completion]) {
        for (i, some) in completions.chunks(AT_ONCE).enumerate() {
            self.put_at(i * AT_ONCE, some);
        }
        self.rows = completions.len();
    }

    /// Returns the rows, by column.
    pub fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let d = PyDict::new(py);
        for column in &self.columns {
            let used = &column.bytes[..self.rows * column.cell_bytes];
            d.set_item(&column.name, PyBytes::new(py, used))?;
        }
        Ok(d)
    }
}

/// Timeline of a run. Its columns are created when they are requested.
#[pyclass(frozen)]
pub struct Slices(pub Timeline);

#[pymethods]
impl Slices {
    /// Returns the number of slices.
    fn __len__(&self) -> usize {
        self.0.slices as usize
    }

    /// Returns the device time at the start of the measurement. The times in the request log are also device times.
    #[getter]
    fn start_ps(&self) -> u64 {
        self.0.start.0
    }

    /// Slices and instants, by column.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let rows = self.0.rows();
        let d = PyDict::new(py);
        macro_rules! list {
            ($name:literal, |$row:ident| $value:expr) => {
                d.set_item($name, PyList::new(py, rows.iter().map(|$row| $value))?)?
            };
        }
        list!("track", |row| &row.track);
        list!("name", |row| row.name);
        list!("member", |row| row.member);
        list!("die", |row| row.die);
        list!("channel", |row| row.channel);
        list!("begin_ps", |row| row.begin.0);
        list!("duration_ps", |row| row.duration.map(|duration| duration.0));
        list!("request", |row| row.request);
        list!("lpn", |row| &row.lpns);
        list!("causes", |row| &row.causes);
        list!("details", |row| &row.details);
        Ok(d)
    }
}

/// Parts of a response time: names and descriptions.
#[pyfunction]
pub fn parts() -> Vec<(&'static str, &'static str)> {
    Breakdown::NAMES.into_iter().zip(Breakdown::TEXTS).collect()
}

/// Columns of the collections of an array's members.
pub fn of_gc_intervals<'py>(py: Python<'py>, rows: &[GcInterval]) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("member", column(py, rows, |i| i.member as u32)?)?;
    d.set_item("begin_ns", column(py, rows, |i| i.begin.to_ns())?)?;
    d.set_item("end_ns", column(py, rows, |i| i.end.to_ns())?)?;
    d.set_item("kind", column(py, rows, |i| u8::from(i.forced))?)?;
    Ok(d)
}

/// Returns the histogram of the response times of one kind of request. Each pair has the upper end of a bucket in ns,
/// and the number of requests in the bucket.
pub fn of_histogram(op: &OpMetrics) -> Vec<(u64, u64)> {
    let histogram = op.histogram_ns();
    let buckets = histogram.iter_recorded();
    buckets
        .map(|b| (b.value_iterated_to(), b.count_at_value()))
        .collect()
}
