//! Passes the per-request log to Python on a separate thread. The model thus waits neither for Python nor for the disk.

use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use flashtwin::Completion;
use flashtwin_sim::{SimError, Sink};
use pyo3::prelude::*;

use crate::columns::Log;

/// Number of rows that are passed to the sink per call. With so many, the time for the call itself is small.
const PIECE: usize = 8192;
/// Largest number of pieces that wait for the sink. A Parquet writer accepts several pieces quickly, and then encodes
/// them for a longer time.
const WAITING: usize = 16;

/// Runs `body`, and passes the completions that it adds to `sink`, as columns. The completions are passed in order and
/// in pieces of equal size, regardless of how `body` grouped them. Also returns the exception that `sink` raised, if
/// there is one.
///
/// The thread of the model only copies rows. That takes a third of the time that writing columns would take.
pub fn logging<T>(sink: &Py<PyAny>, body: impl FnOnce(&mut Sink) -> T) -> (T, PyResult<()>) {
    let (full, to_write) = sync_channel::<Vec<Completion>>(WAITING);
    let (read, empty) = channel::<Vec<Completion>>();
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let mut columns = Log::with_capacity(PIECE);
            for mut piece in to_write {
                columns.put(&piece);
                piece.clear();
                // The run may have ended.
                let _ = read.send(piece);
                Python::attach(|py| {
                    let columns = columns.to_python(py)?;
                    sink.call1(py, (columns,)).map(drop)
                })?;
            }
            Ok(())
        });
        let mut spare = Vec::new();
        let mut piece = Vec::with_capacity(PIECE);
        // Writing stops early only if the sink raises an exception. The caller reports that exception instead of this
        // error.
        let stopped = || SimError::Sink("the request log cannot be written".into());
        let done = body(&mut |mut batch| {
            while !batch.is_empty() {
                let room = PIECE - piece.len();
                let (now, later) = batch.split_at(batch.len().min(room));
                piece.extend_from_slice(now);
                batch = later;
                if piece.len() == PIECE {
                    // The most recently emptied buffer is reused, because it is most likely still in the caches.
                    spare.extend(empty.try_iter());
                    let next = spare.pop().unwrap_or_else(|| Vec::with_capacity(PIECE));
                    full.send(std::mem::replace(&mut piece, next))
                        .map_err(|_| stopped())?;
                }
            }
            Ok(())
        });
        if !piece.is_empty() {
            // Sending fails if writing has stopped. The exception of the sink is returned below.
            let _ = full.send(piece);
        }
        drop(full);
        let raised = writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (done, raised)
    })
}
