//! Log of the buffer: accesses, evictions, waits for slots, and write-backs.

use super::Cache;
use crate::buffer::Access;
use crate::device::requests::{number_in_logs, ReqId};
use crate::device::{Backend, Device};
use crate::nand::{Cause, PageOp};
use crate::request::Op;
use crate::units::{Lpn, Time};

/// An event in a buffer. Requests are identified by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferEvent {
    /// A page was accessed.
    Accessed {
        /// Instant.
        at: Time,
        /// The page.
        lpn: Lpn,
        /// Number of the request.
        request: u32,
        /// True for a write.
        write: bool,
        /// Whether the page was in the buffer.
        hit: bool,
    },
    /// A page was evicted to make room for an access.
    Evicted {
        /// Instant.
        at: Time,
        /// The page.
        lpn: Lpn,
        /// Whether the page has to be written back.
        dirty: bool,
        /// Number of the request that made this access.
        request: u32,
    },
    /// An access waited for a slot.
    Waited {
        /// Start of the wait.
        since: Time,
        /// End of the wait.
        at: Time,
        /// The page that needed the slot.
        lpn: Lpn,
    },
    /// A page was written back.
    Written {
        /// Start of the write-back: the instant at which the program of the page was passed to the back end.
        since: Time,
        /// Instant of completion.
        at: Time,
        /// The page.
        lpn: Lpn,
        /// Cause.
        cause: Cause,
        /// Number of the request that caused the write-back;
        /// [`FlashEvent::NO_REQUEST`](crate::FlashEvent::NO_REQUEST) if none.
        request: u32,
    },
}

impl Cache {
    /// Returns the number of the request that causes the page's next flash operation (read or program).
    #[inline]
    pub fn on_behalf(&self, page: u32) -> u32 {
        self.pages[page as usize].by
    }

    /// Returns the number of pages whose contents flash does not have.
    pub fn dirty_pages(&self) -> u32 {
        self.unstable.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether a log is kept.
    #[inline]
    pub(super) fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    pub fn set_log(&mut self, on: bool) {
        self.log = on.then(Vec::new);
    }

    pub fn take_log(&mut self) -> Vec<BufferEvent> {
        self.log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    #[cold]
    pub(super) fn log_wait(&mut self, id: u32, since: Time, slot: Time) {
        let lpn = self.pages[id as usize].lpn;
        if let Some(log) = &mut self.log {
            let at = since + slot;
            log.push(BufferEvent::Waited { since, at, lpn });
        }
    }

    #[cold]
    pub(super) fn log_written(&mut self, op: &PageOp, at: Time) {
        if let Some(log) = &mut self.log {
            log.push(BufferEvent::Written {
                since: op.enqueued,
                at,
                lpn: op.lpn,
                cause: op.cause,
                request: op.request,
            });
        }
    }
}

impl<B: Backend> Device<B> {
    #[cold]
    pub(super) fn log_access(&mut self, request: ReqId, lpn: Lpn, hit: bool) {
        if let Some(log) = &mut self.cache.log {
            let r = &self.requests[request];
            log.push(BufferEvent::Accessed {
                at: self.now,
                lpn,
                request: r.number_in_logs,
                write: r.op == Op::Write,
                hit,
            });
        }
    }

    #[cold]
    pub(super) fn log_eviction(&mut self, access: &Access) {
        let cache = &mut self.cache;
        let Some(log) = &mut cache.log else { return };
        for victim in &cache.eviction.victims {
            let p = &cache.pages[victim.0 as usize];
            log.push(BufferEvent::Evicted {
                at: self.now,
                lpn: p.lpn,
                dirty: p.dirty,
                request: number_in_logs(access.request),
            });
        }
    }
}
