//! Pages in flight: pages that have no slot yet, or whose data are still being read (D-36).
//!
//! A page in flight is pinned, as in a real controller: no policy can evict it. Accesses still change its rank among
//! the other pages. If all pages that could be evicted are in flight, an access that needs room waits until one of them
//! is in flight no more. Later accesses then wait behind this access.

use super::page::{Pool, Rank};
use super::view::{with_view, View};
use crate::buffer::PageId;
use crate::device::requests::ReqId;
use crate::device::{Backend, Device};
use crate::units::Lpn;

/// A page access that waits for an evictable page.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldUp {
    request: ReqId,
    lpn: Lpn,
    sectors: u64,
}

impl<B: Backend> Device<B> {
    /// Executes one page access of a host request. `sectors` has the sectors that it covers, as bits.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::device) fn cached_page(
        &mut self,
        request: ReqId,
        lpn: Lpn,
        write: bool,
        sectors: u64,
    ) {
        let must_wait = !self.cache.held_up.is_empty();
        if must_wait || !self.access_page(request, lpn, write, sectors) {
            self.hold_up(request, lpn, sectors);
        }
    }

    /// Executes one page access of a request with several pages. Not inlined, so that the loop over the pages stays
    /// small.
    #[inline(never)]
    pub(in crate::device) fn one_cached_page(
        &mut self,
        request: ReqId,
        lpn: Lpn,
        write: bool,
        sectors: u64,
    ) {
        self.cached_page(request, lpn, write, sectors);
    }

    #[inline(never)]
    fn hold_up(&mut self, request: ReqId, lpn: Lpn, sectors: u64) {
        self.cache.held_up.push_back(HeldUp {
            request,
            lpn,
            sectors,
        });
    }

    /// Retries the accesses that wait for an evictable page.
    #[inline(always)]
    pub(in crate::device) fn resume_accesses(&mut self) {
        if !self.cache.held_up.is_empty() {
            self.resume_held_up();
        }
    }

    #[inline(never)]
    fn resume_held_up(&mut self) {
        while !self.cache.held_up.is_empty() && std::mem::take(&mut self.cache.may_retry) {
            self.without_bus(|device| {
                while let Some(next) = device.cache.held_up.front().copied() {
                    if !device.access_page_again(next.request, next.lpn, next.sectors) {
                        break;
                    }
                    device.cache.held_up.pop_front();
                }
            });
        }
    }

    /// Called after the state of a page's slot or data (`Residency`) has changed. Notifies the policy if the page is in
    /// flight now and was not before, or was in flight and now can be evicted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn residency_changed(&mut self, id: u32) {
        let cache = &mut self.cache;
        let p = &mut cache.pages[id as usize];
        match (p.rank, p.is_ready()) {
            _ if p.pool == Pool::ReadCache => cache.may_retry = true,
            (Rank::Left, _) | (Rank::Evictable, true) => cache.may_retry = true,
            (Rank::InFlight, false) => {}
            (Rank::InFlight, true) => self.has_arrived(id),
            (Rank::Evictable, false) => {
                p.rank = Rank::InFlight;
                cache.in_flight += 1;
                self.notify_moved(id);
            }
        }
    }

    /// Records that a page that the policy holds is no longer in flight.
    #[inline(always)]
    pub(super) fn has_arrived(&mut self, id: u32) {
        let cache = &mut self.cache;
        let p = &mut cache.pages[id as usize];
        debug_assert!(p.rank == Rank::InFlight && p.is_ready());
        p.rank = Rank::Evictable;
        cache.in_flight -= 1;
        cache.may_retry = true;
        self.notify_moved(id);
    }

    #[inline(always)]
    fn notify_moved(&mut self, id: u32) {
        if self.cache.room.heeds_move(PageId(id)) {
            self.notify_policy_moved(id);
        }
    }

    #[inline(never)]
    fn notify_policy_moved(&mut self, id: u32) {
        with_view!(self, |cache, view| cache.room.moved(&view, PageId(id)));
    }

    /// Records that the policy no longer holds a page, which may be in flight.
    pub(super) fn leave_policy(&mut self, id: u32) {
        let cache = &mut self.cache;
        let p = &mut cache.pages[id as usize];
        let was = std::mem::replace(&mut p.rank, Rank::Left);
        cache.in_flight -= u32::from(was == Rank::InFlight);
        cache.may_retry = true;
    }
}
