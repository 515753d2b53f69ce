//! The buffer's log: accesses, evictions, waits for slots, write-backs.

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
        /// When.
        at: Time,
        /// The page.
        lpn: Lpn,
        /// The request.
        request: u32,
        /// True for a write.
        write: bool,
        /// The page was in the buffer.
        hit: bool,
    },
    /// A page was evicted for the sake of an access.
    Evicted {
        /// When.
        at: Time,
        /// The page.
        lpn: Lpn,
        /// True if the page has to be written back.
        dirty: bool,
        /// The request of the access.
        request: u32,
    },
    /// An access waited for a slot.
    Waited {
        /// Since when.
        since: Time,
        /// When it got one.
        at: Time,
        /// The page.
        lpn: Lpn,
    },
    /// A page was written back.
    Written {
        /// When it was handed to what is behind the buffer.
        since: Time,
        /// When it was done.
        at: Time,
        /// The page.
        lpn: Lpn,
        /// Why.
        cause: Cause,
        /// Number of the request that caused it; [`FlashEvent::NO_REQUEST`](crate::FlashEvent::NO_REQUEST) if none.
        request: u32,
    },
}

impl Cache {
    /// The request for whose sake a page is read or written.
    #[inline]
    pub fn on_behalf(&self, page: u32) -> u32 {
        self.pages[page as usize].by
    }

    /// Pages whose contents flash does not have.
    pub fn dirty_pages(&self) -> u32 {
        self.unstable.iter().map(|word| word.count_ones()).sum()
    }

    /// A log is kept.
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
