//! Flushes, and writes with forced unit access (FUA, *forced writes*).

use super::page::Want;
use super::waiters::Wants;
use crate::device::requests::{PartsSet, ReqId};
use crate::device::{Backend, Device};
use crate::nand::{Cause, Owner, PageOp};
use crate::request::Breakdown;
use crate::units::Stream;
use crate::units::{Lpn, Time};

impl<B: Backend> Device<B> {
    /// Completes the request when all data that were acknowledged before it are in flash.
    pub(in crate::device) fn flush(&mut self, request: ReqId) {
        let protected = !self.cache.present || self.cache.protected;
        self.report_loss(request);
        self.requests[request].left = 1;
        if !protected {
            let pages = self.cache().unstable_pages();
            self.requests[request].left += pages.len() as u32;
            for &id in &pages {
                self.want_flush(request, id);
            }
            for &id in &pages {
                self.pump(id);
            }
        }
        let r = &mut self.requests[request];
        r.left -= 1;
        if r.left == 0 {
            (r.parts, r.parts_set) = (Breakdown::default(), PartsSet::All);
            self.pages_done(request);
        }
    }

    /// Makes this flush or forced write fail if acknowledged data have been lost and no earlier request has reported
    /// the loss by failing (D-148).
    #[inline]
    pub(in crate::device) fn report_loss(&mut self, request: ReqId) {
        if let Some(how) = self.cache.unreported_error.take() {
            self.requests[request].status = how;
        }
    }

    /// Makes the back end flush its volatile data, and lets the request wait for it. Returns false if there is nothing
    /// to wait for: the back end has no volatile data, or it has already flushed them for this request.
    pub(in crate::device) fn flush_behind(&mut self, request: ReqId) -> bool {
        let now = self.now;
        let r = &mut self.requests[request];
        if r.flushing || !self.backend.is_volatile() {
            return false;
        }
        r.flushing = true;
        r.left = 1;
        let op = PageOp {
            lpn: Lpn(0),
            owner: Owner::host_request(request.0),
            cause: Cause::Flush,
            request: self.requests[request].number_in_logs,
            stream: Stream::Cold,
            fua: true,
            again: 0,
            enqueued: now,
            gc_before: Time::ZERO,
        };
        self.backend.flush(op, now, &mut self.events);
        true
    }

    pub(super) fn want_flush(&mut self, request: ReqId, id: u32) {
        let now = self.now;
        self.want_flush_since(request, id, now);
    }

    /// Lets `request` wait until the contents that the page has now are in flash. The request has waited for the page
    /// since `since`.
    pub(super) fn want_flush_since(&mut self, request: ReqId, id: u32, since: Time) {
        let p = self.page(id);
        let programs = u32::from(p.is_programming()) + u32::from(p.dirty);
        if programs == 0 {
            // The page was trimmed while it waited for its slot, so there is no program for which the request could
            // wait.
            let parts = self.cache.wait_parts(id, since, None, self.now);
            let is_logged = self.logs_buffer();
            (self.cache).count_slot_wait(id, since, parts.slot(), is_logged);
            return self.page_done(request, parts);
        }
        let by = self.requests[request].number_in_logs;
        let p = self.page(id);
        if p.dirty && p.want == Want::Nothing {
            p.want = Want::Flush;
            p.by = by;
        }
        self.cache()
            .wait(id, request, since, Wants::Programs(programs));
    }
}
