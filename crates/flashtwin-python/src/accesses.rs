//! A workload as a list of page accesses in memory. A separate thread reads the workload. Meanwhile, code that counts
//! hits processes the accesses read so far, so that it need not wait for the end of the workload.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use flashtwin::{Op, Request};
use pyo3::prelude::*;

use crate::errors::{of_workload, FlashtwinError};
use crate::workload::Workload;

/// Number of requests that the reader passes on at a time. With so many, the time for passing them on is small.
const PIECE: usize = 1 << 15;
/// Interval at which a waiting caller checks whether it has been stopped.
const PERIOD: Duration = Duration::from_millis(50);

/// Consecutive pages accessed by one request.
#[derive(Clone, Copy)]
pub struct Span {
    pub first: u32,
    /// Number of pages accessed, in the low 30 bits. The two highest bits hold the kind of access.
    pages: u32,
}

const KIND_SHIFT: u32 = 30;
const PAGES_MASK: u32 = (1 << KIND_SHIFT) - 1;
const READ: u32 = 0;
pub const WRITE: u32 = 1;
pub const TRIM: u32 = 2;

impl Span {
    /// Returns the page accesses of a request; `None` for a flush. `number` is the number of the request in the
    /// workload.
    fn of(request: &Request, number: u64, page_bytes: u32) -> PyResult<Option<Span>> {
        let kind = match request.op {
            Op::Read => READ,
            Op::Write => WRITE,
            Op::Trim => TRIM,
            Op::Flush => return Ok(None),
        };
        let page_bytes = u64::from(page_bytes);
        let end = request.offset.saturating_add(request.bytes);
        let (first, last) = (request.offset / page_bytes, end.div_ceil(page_bytes));
        // The highest page number is excluded, because it means "none" in the model.
        let last = u32::try_from(last).ok().filter(|&last| last < u32::MAX);
        let pages = last.map(|last| last.saturating_sub(first as u32));
        let Some(pages) = pages.filter(|&pages| pages <= PAGES_MASK) else {
            return Err(FlashtwinError::new_err(format!(
                "request {number}: {} bytes at offset {} end beyond the last of 2^32 pages of \
                 {page_bytes} bytes; give larger pages",
                request.bytes, request.offset
            )));
        };
        Ok(Some(Span {
            first: first as u32,
            pages: pages | kind << KIND_SHIFT,
        }))
    }

    pub fn kind(self) -> u32 {
        self.pages >> KIND_SHIFT
    }

    pub fn pages(self) -> u32 {
        self.pages & PAGES_MASK
    }

    pub fn lpns(self) -> std::ops::Range<u32> {
        self.first..self.first + self.pages()
    }
}

/// A workload in memory, cut into pages.
#[pyclass(frozen, module = "flashtwin._core")]
pub struct Accesses {
    shared: Arc<Shared>,
    reader: Mutex<Option<JoinHandle<PyResult<()>>>>,
    pub page_bytes: u32,
}

#[derive(Default)]
struct Shared {
    read: Mutex<Read>,
    changed: Condvar,
    /// Whether the reader should end, because no caller needs further requests.
    stop: AtomicBool,
}

/// The part of the workload that has been read so far.
#[derive(Default)]
struct Read {
    pieces: Vec<Arc<Vec<Span>>>,
    /// Number of requests in all pieces.
    requests: u64,
    /// Whether the reader has ended. `whole` is true if the reader has reached the end of the workload.
    ended: bool,
    whole: bool,
}

/// Next item of a reader.
pub enum Next {
    Piece(Arc<Vec<Span>>),
    End,
    /// There are no further accesses: this caller was stopped, or the reader failed and another caller has received the
    /// error.
    Stopped,
}

#[pymethods]
impl Accesses {
    /// Starts to read a workload. Flushes are omitted.
    #[staticmethod]
    #[pyo3(signature = (workload, *, page_bytes, requests_max))]
    fn read(
        workload: Py<Workload>,
        page_bytes: u32,
        requests_max: Option<u64>,
    ) -> PyResult<Accesses> {
        if !(512..=1 << 20).contains(&page_bytes) || !page_bytes.is_multiple_of(512) {
            return Err(FlashtwinError::new_err(format!(
                "page_bytes: {page_bytes}: give a multiple of 512 from 512 to 1048576"
            )));
        }
        let shared = Arc::new(Shared::default());
        let ending = Ending(Arc::clone(&shared));
        let reader = thread::Builder::new().spawn(move || {
            let shared = &ending.0;
            let mut requests = workload.get().lock()?;
            shared.read_all(&mut **requests, page_bytes, requests_max)
        });
        let reader = reader
            .map_err(|e| FlashtwinError::new_err(format!("no thread to read the workload: {e}")))?;
        Ok(Accesses {
            shared,
            reader: Mutex::new(Some(reader)),
            page_bytes,
        })
    }
}

impl Drop for Accesses {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// Guard of the reader. When the reader ends, even by a panic, the guard wakes all waiting callers.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    /// Returns the lock even if a thread panicked while it held the lock. The data are still valid then.
    fn lock(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_all(
        &self,
        requests: &mut dyn flashtwin_workload::Workload,
        page_bytes: u32,
        requests_max: Option<u64>,
    ) -> PyResult<()> {
        let (mut batch, mut seen) = (Vec::new(), 0);
        let mut piece = Vec::with_capacity(PIECE);
        while !self.stop.load(Ordering::Relaxed) && requests_max != Some(seen) {
            batch.clear();
            if requests.next_batch(&mut batch).map_err(of_workload)? == 0 {
                break;
            }
            let wanted = requests_max.map_or(u64::MAX, |max| max - seen);
            for request in batch
                .iter()
                .take(usize::try_from(wanted).unwrap_or(usize::MAX))
            {
                piece.extend(Span::of(request, seen, page_bytes)?);
                seen += 1;
                if piece.len() == PIECE {
                    self.pass_on(std::mem::replace(&mut piece, Vec::with_capacity(PIECE)));
                }
            }
        }
        self.pass_on(piece);
        self.lock().whole = true;
        Ok(())
    }

    fn pass_on(&self, piece: Vec<Span>) {
        let mut read = self.lock();
        read.requests += piece.len() as u64;
        read.pieces.push(Arc::new(piece));
        drop(read);
        self.changed.notify_all();
    }
}

impl Accesses {
    /// Waits for the piece of the workload with the number `number`, and returns it. The caller must not hold the GIL.
    /// At the end of the workload, sets the total number of requests in `control`.
    ///
    /// # Errors
    /// Fails if the workload cannot be read. Only one of the callers receives the error.
    pub fn next(&self, number: usize, control: &flashtwin_sim::Control) -> PyResult<Next> {
        let mut read = self.shared.lock();
        loop {
            if read.whole {
                control.total.store(read.requests, Ordering::Relaxed);
            }
            if let Some(piece) = read.pieces.get(number) {
                return Ok(Next::Piece(Arc::clone(piece)));
            }
            if read.whole {
                return Ok(Next::End);
            }
            if control.stop.load(Ordering::Relaxed) {
                return Ok(Next::Stopped);
            }
            if read.ended {
                drop(read);
                return self.failure().map(|()| Next::Stopped);
            }
            let waited = self.shared.changed.wait_timeout(read, PERIOD);
            read = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn failure(&self) -> PyResult<()> {
        let reader = self.reader.lock();
        let reader = reader.unwrap_or_else(PoisonError::into_inner).take();
        reader.map_or(Ok(()), |reader| {
            reader
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
