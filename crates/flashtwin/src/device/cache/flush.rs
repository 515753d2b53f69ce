//! Flush, forced unit access, trim, and what a power cut takes.

use std::collections::HashSet;

use super::life::wait_parts;
use super::*;
use crate::buffer::Stream;
use crate::device::{Backend, Device, OWNER_IS_REQUEST};
use crate::metrics::Breakdown;
use crate::nand::PageOp;
use crate::request::{Op, Request};

/// What a power cut took from the buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    /// Logical pages whose newest contents flash lacks, ascending. Of a page not listed, flash has
    /// what the host was told is written.
    pub lost: Vec<Lpn>,
    /// Host requests that were not finished.
    pub unfinished: usize,
}

impl<B: Backend> Device<B> {
    /// Completes the request once all that was acknowledged before is on flash.
    pub(in crate::device) fn flush(&mut self, request: ReqId) {
        let protected = !self.cache.present || self.cache.protected;
        self.tell_of_loss(request);
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
        let parts = Breakdown::default();
        let r = &mut self.requests[request];
        r.left -= 1;
        if r.left == 0 {
            r.parts = parts;
            self.pages_done(request);
        }
    }

    /// If something that was answered before is lost and nobody was told, the request says so, whatever
    /// becomes of itself (D-148).
    #[inline]
    pub(in crate::device) fn tell_of_loss(&mut self, request: ReqId) {
        if let Some(how) = self.cache.untold.take() {
            self.requests[request].status = how;
        }
    }

    /// Has what is behind the buffer write what it holds itself; false if there is nothing to do.
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
            owner: request.0 | OWNER_IS_REQUEST,
            cause: Cause::Flush,
            request: self.requests[request].number as u32,
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

    /// Lets `request` wait until what the page holds now is on flash.
    pub(super) fn want_flush_since(&mut self, request: ReqId, id: u32, since: Time) {
        let p = self.page(id);
        let programs = p.programming as u32 + p.dirty as u32;
        if programs == 0 {
            // Trimmed while it waited for its slot: there is nothing to program.
            let parts = wait_parts(since, p.slot_at, None, self.now);
            return self.page_done(request, parts);
        }
        let by = self.requests[request].number as u32;
        let p = self.page(id);
        if p.dirty && !p.wants_flush {
            p.wants_flush = true;
            p.by = by;
        }
        self.cache()
            .wait(id, request, since, Wants::Programs(programs));
    }

    /// Forgets a page, in the buffer and on flash.
    pub(in crate::device) fn trim(&mut self, lpn: Lpn) {
        let cache = &mut self.cache;
        let Some(PageId(id)) = cache.find(lpn) else {
            self.backend.trim(lpn, self.now, &mut self.events);
            return;
        };
        let p = &mut cache.pages[id as usize];
        if !p.evicted {
            p.evicted = true;
            cache.room.forget(PageId(id), lpn);
            self.stage_changed(id);
        }
        self.backend.trim(lpn, self.now, &mut self.events);
        // This copy and all older ones that are not on flash yet: none of them is wanted any more.
        let mut at = id;
        while at != NONE {
            let cache = self.cache();
            let whole = cache.whole;
            let p = &mut cache.pages[at as usize];
            p.dirty = false;
            p.rewrite = false;
            p.valid = whole;
            p.trimmed = p.programming;
            let older = p.older;
            cache.note_stability(at);
            // Flushes have nothing left to wait for; accesses still wait for slot and data.
            self.serve_waiters(at, None, false);
            at = older;
        }
        self.pump(id);
    }

    /// Has the device write what its buffer holds, protected or not, as a drive does that is told that its
    /// power will be cut; takes at most `steps` steps and returns how many are left. Its own completion
    /// is among [`Device::completions`].
    pub fn shut_down(&mut self, mut steps: u64) -> u64 {
        let protected = std::mem::take(&mut self.cache.protected);
        let flush = Request {
            arrival: self.now,
            offset: 0,
            bytes: 0,
            op: Op::Flush,
            fua: false,
        };
        // What is due at this instant happens before.
        self.advance(self.now);
        // A flush has no address that could be wrong.
        let _ = self.submit(self.now, &flush, u64::MAX);
        while self.outstanding() > 0 && steps > 0 && self.step() {
            steps -= 1;
        }
        self.cache.protected = protected;
        steps
    }

    /// Has protected memory write what it holds after a power cut ([`Device::shut_down`]), and adds to the
    /// cut what it could not.
    pub(in crate::device) fn write_protected(&mut self, cut: &mut PowerCut, steps: u64) -> u64 {
        self.cache.lost = Some(Vec::new());
        let steps = self.shut_down(steps);
        cut.lost
            .extend(self.cache.lost.take().into_iter().flatten());
        cut.lost.sort_unstable();
        cut.lost.dedup();
        steps
    }

    /// What a power cut at this instant would take: the contents of volatile buffer memory that flash
    /// does not have, nothing where the memory is non-volatile or protected; and what the volatile
    /// memory of an array's members holds. A program under way counts as not done; a trimmed page is
    /// not missed.
    pub fn power_cut(&self) -> PowerCut {
        let unfinished = self.requests.len();
        let mut lost = Vec::new();
        self.backend.lost(&mut lost);
        if self.cache.present {
            let ids = self.cache.unstable_pages();
            let pages = ids.iter().map(|&id| &self.cache.pages[id as usize]);
            let held = pages.filter(|p| p.dirty || !p.trimmed).map(|p| p.lpn);
            match self.cache.protected {
                false => lost.extend(held),
                // What is in there is newer than what is lost.
                true => {
                    let held: HashSet<Lpn> = held.collect();
                    lost.retain(|lpn| !held.contains(lpn));
                }
            }
        }
        lost.sort_unstable();
        lost.dedup();
        PowerCut { lost, unfinished }
    }
}
