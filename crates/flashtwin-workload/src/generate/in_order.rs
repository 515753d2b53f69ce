//! Writes every page of a device once, in ascending order. Each page gets the placement id with which the load writes
//! it later.

use flashtwin::{Op, Request};

use super::load::Handles;
use crate::error::WorkloadError;
use crate::Workload;

/// Number of requests returned at a time.
const BATCH: u64 = 4096;

/// A workload of one-page writes in ascending order.
pub(super) struct InOrder {
    handles: Handles,
    next: u64,
    pages: u64,
    page_bytes: u64,
}

impl InOrder {
    /// Creates a workload that writes all whole pages of a device of `range_bytes` bytes.
    pub fn new(handles: Handles, range_bytes: u64, page_bytes: u64) -> InOrder {
        InOrder {
            handles,
            next: 0,
            pages: range_bytes / page_bytes,
            page_bytes,
        }
    }
}

impl Workload for InOrder {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        let end = self.pages.min(self.next + BATCH);
        let pages = self.next..end;
        let count = pages.clone().count();
        out.extend(pages.map(|page| {
            let offset = page * self.page_bytes;
            Request {
                offset,
                bytes: self.page_bytes,
                op: Op::Write,
                placement: self.handles.handle_of(offset),
                ..Request::default()
            }
        }));
        self.next = end;
        Ok(count)
    }

    fn requests_total(&self) -> Option<u64> {
        Some(self.pages)
    }

    fn describe(&self) -> String {
        format!("{} pages in ascending order", self.pages)
    }
}
