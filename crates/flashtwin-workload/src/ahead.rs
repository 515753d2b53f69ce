//! Reads a workload on a separate thread, which is a few batches ahead of the consumer.

use std::sync::mpsc::{channel, sync_channel, Receiver, Sender};
use std::thread::{self, JoinHandle};

use flashtwin::Request;

use crate::{Workload, WorkloadError};

/// Largest number of batches that wait for the consumer. A batch has some thousand requests. The waiting batches and
/// the batch being read fit into the second-level cache of a processor.
const WAITING: usize = 4;

/// Returns a workload that is read, decompressed and parsed on a separate thread. The thread starts when the first
/// batch is requested. Requests, errors and warnings are the same as without the thread, regardless of the number of
/// batches that the consumer takes.
pub fn read_ahead(workload: Box<dyn Workload>) -> Box<dyn Workload> {
    Box::new(Ahead {
        requests_total: workload.requests_total(),
        description: workload.describe(),
        warnings: workload.warnings(),
        passes: workload.passes(),
        reader: Reader::Idle(workload),
    })
}

struct Ahead {
    reader: Reader,
    requests_total: Option<u64>,
    description: String,
    /// Warnings up to the last batch that the consumer has taken. The thread may already have read further.
    warnings: Vec<String>,
    /// Passes completed before the last consumed batch.
    passes: u64,
}

enum Reader {
    Idle(Box<dyn Workload>),
    Reading {
        batches: Receiver<Batch>,
        /// Channel for used batches. The thread reuses their memory.
        used: Sender<Vec<Request>>,
        thread: JoinHandle<()>,
    },
    Ended,
}

struct Batch {
    requests: Vec<Request>,
    /// Number of requests in the batch, or the error. The number is 0 at the end of the workload.
    read: Result<usize, WorkloadError>,
    warnings: Vec<String>,
    passes: u64,
}

impl Reader {
    fn start(mut workload: Box<dyn Workload>) -> Reader {
        let (full, batches) = sync_channel(WAITING);
        let (used, empty) = channel::<Vec<Request>>();
        let thread = thread::spawn(move || loop {
            let mut requests = empty.try_recv().unwrap_or_default();
            requests.clear();
            let read = workload.next_batch(&mut requests);
            let is_last = !matches!(read, Ok(1..));
            let batch = Batch {
                requests,
                read,
                warnings: workload.warnings(),
                passes: workload.passes(),
            };
            // Sending fails if the consumer has been dropped. It then needs no more batches.
            if full.send(batch).is_err() || is_last {
                return;
            }
        });
        Reader::Reading {
            batches,
            used,
            thread,
        }
    }
}

impl Workload for Ahead {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        if let Reader::Idle(_) = self.reader {
            if let Reader::Idle(workload) = std::mem::replace(&mut self.reader, Reader::Ended) {
                self.reader = Reader::start(workload);
            }
        }
        let Reader::Reading { batches, used, .. } = &self.reader else {
            return Ok(0);
        };
        let Ok(mut batch) = batches.recv() else {
            if let Reader::Reading { thread, .. } =
                std::mem::replace(&mut self.reader, Reader::Ended)
            {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
            return Ok(0);
        };
        self.warnings = batch.warnings;
        self.passes = batch.passes;
        if out.is_empty() {
            std::mem::swap(out, &mut batch.requests);
        } else {
            out.append(&mut batch.requests);
        }
        // A thread that has ended needs none.
        let _ = used.send(batch.requests);
        batch.read
    }

    fn requests_total(&self) -> Option<u64> {
        self.requests_total
    }

    fn describe(&self) -> String {
        self.description.clone()
    }

    fn passes(&self) -> u64 {
        self.passes
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}
