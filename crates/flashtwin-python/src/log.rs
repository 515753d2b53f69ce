//! Passes the per-request log to Python on a thread of its own, so that the model waits neither for
//! Python nor for the disk.

use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use flashtwin_sim::{SimError, Sink};
use pyo3::prelude::*;

use crate::columns::Log;

/// Rows per call of the sink: enough to make the cost of a call small.
const PIECE: usize = 8192;
/// Pieces that may wait for the sink. A Parquet writer takes many in an instant, then encodes them.
const WAITING: usize = 16;

/// Runs `body`, and passes the completions that it takes to `sink` as columns, in their order and in
/// pieces of the same size however they arrived. Returns what `sink` raised, too.
///
/// The model's thread turns completions into columns, while they are in its first-level cache: there are a
/// quarter fewer bytes to write, and the other thread reads each column once.
pub fn logging<T>(sink: &Py<PyAny>, body: impl FnOnce(&mut Sink) -> T) -> (T, PyResult<()>) {
    let (full, to_write) = sync_channel::<Log>(WAITING);
    let (written, empty) = channel::<Log>();
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for mut piece in to_write {
                Python::attach(|py| {
                    let columns = piece.to_python(py)?;
                    sink.call1(py, (columns,)).map(drop)
                })?;
                piece.clear();
                // The run may have ended.
                let _ = written.send(piece);
            }
            Ok(())
        });
        let mut spare = Vec::new();
        let mut piece = Log::with_capacity(PIECE);
        // The writer stops only when the sink raises; the caller then prefers that exception.
        let stopped = || SimError::Sink("the request log cannot be written".into());
        let done = body(&mut |mut batch| {
            while !batch.is_empty() {
                batch = piece.take(batch);
                if piece.is_full() {
                    // The one written last is nearest in the caches.
                    spare.extend(empty.try_iter());
                    let next = spare.pop().unwrap_or_else(|| Log::with_capacity(PIECE));
                    full.send(std::mem::replace(&mut piece, next))
                        .map_err(|_| stopped())?;
                }
            }
            Ok(())
        });
        if !piece.is_empty() {
            // What a writer that has stopped raised is returned below.
            let _ = full.send(piece);
        }
        drop(full);
        let raised = writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (done, raised)
    })
}
