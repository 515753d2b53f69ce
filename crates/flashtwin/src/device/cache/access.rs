//! Page accesses of host requests: hits, misses, reads of cached pages.

use super::page::{Index, Page, Pool, Rank};
use super::view::{with_view, View};
use super::waiters::Wants;
use crate::buffer::{Access, PageId, Way};
use crate::device::requests::{number_in_logs, ReqId};
use crate::device::{Backend, Device};
use crate::request::Op;
use crate::units::Lpn;

impl<B: Backend> Device<B> {
    /// Returns the access as the policy sees it.
    #[inline(always)]
    fn access(&self, request: ReqId, lpn: Lpn, write: bool, dirty: bool) -> Access {
        let r = &self.requests[request];
        Access {
            lpn,
            write,
            dirty,
            request: r.number,
            request_pages: r.pages,
        }
    }

    /// Executes one page access of a host request. `sectors` has the sectors that the access covers, as bits. Returns
    /// false and changes nothing if the access needs room, but every page that could be evicted is in flight.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn access_page(
        &mut self,
        request: ReqId,
        lpn: Lpn,
        write: bool,
        sectors: u64,
    ) -> bool {
        match self.cache.find(lpn) {
            None => self.miss(request, lpn, write, sectors, None),
            Some(page) => self.access_found(request, lpn, page.0, write, sectors),
        }
    }

    /// Repeats an access that has waited for an evictable page. Not inlined, since such accesses are rare.
    #[inline(never)]
    pub(super) fn access_page_again(&mut self, request: ReqId, lpn: Lpn, sectors: u64) -> bool {
        let write = self.requests[request].op == Op::Write;
        self.access_page(request, lpn, write, sectors)
    }

    /// Executes an access to a page that is in the directory (the table of the buffer's pages) with the number `id`.
    /// The page is either cached, or evicted and not yet released.
    #[inline(never)]
    fn access_found(
        &mut self,
        request: ReqId,
        lpn: Lpn,
        id: u32,
        write: bool,
        sectors: u64,
    ) -> bool {
        if !self.page(id).has_left() {
            if write && self.page(id).pool == Pool::ReadCache {
                self.leave_read_cache(id);
                return self.miss(request, lpn, write, sectors, self.copy_of(lpn));
            }
            self.hit(request, id, write, sectors);
            return true;
        }
        if write {
            return self.miss(request, lpn, write, sectors, Some(id));
        }
        self.requests[request].hits += 1;
        if self.logs_buffer() {
            self.log_access(request, lpn, true);
        }
        self.read_cached(request, id, sectors);
        true
    }

    #[inline]
    fn copy_of(&self, lpn: Lpn) -> Option<u32> {
        self.cache.find(lpn).map(|page| page.0)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn hit(&mut self, request: ReqId, id: u32, write: bool, sectors: u64) {
        self.note_host_access();
        self.requests[request].hits += 1;
        let cache = self.cache();
        let p = &mut cache.pages[id as usize];
        let (lpn, dirty) = (p.lpn, p.dirty || write);
        if write {
            p.dirty = true;
            p.valid |= sectors;
            cache.set_unstable(id);
            self.note_asked(request, id);
        }
        if self.logs_buffer() {
            self.log_access(request, lpn, true);
        }
        let access = self.access(request, lpn, write, dirty);
        with_view!(self, |cache, view| cache.room.hit(
            &view,
            PageId(id),
            &access
        ));
        if write {
            self.backend.note_write(lpn, self.now);
            self.write_cached(request, id);
        } else {
            self.read_cached(request, id, sectors);
        }
    }

    /// Records the placement that the host requests for the page in this write. The placement of an earlier write of
    /// the page is replaced.
    #[inline(always)]
    pub(super) fn note_asked(&mut self, request: ReqId, id: u32) {
        if !B::PLAIN && !self.cache.asked.is_empty() {
            self.cache.asked[id as usize] = self.requests[request].asked();
        }
    }

    /// Completes an access whose page is available now. Any time since the dispatch of the request is counted as a wait
    /// for a slot, because the access then waited for an evictable page.
    #[inline(always)]
    fn done_at_once(&mut self, request: ReqId, id: u32) {
        let since = self.requests[request].dispatched;
        let slot = self.now - since;
        let is_logged = self.logs_buffer();
        (self.cache).count_slot_wait(id, since, slot, is_logged);
        self.page_done_in_slot(request);
    }

    /// Executes the rest of a write to a page that is in the directory (the table of the buffer's pages) and marked as
    /// dirty. The write completes when the page has its slot.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn write_cached(&mut self, request: ReqId, id: u32) {
        let since = self.requests[request].dispatched;
        let through = self.requests[request].fua && !self.cache.protected;
        if self.page(id).is_awaiting() {
            let wants = if through {
                Wants::SlotThenProgram
            } else {
                Wants::Slot
            };
            return self.cache().wait(id, request, since, wants);
        }
        if !through {
            return self.done_at_once(request, id);
        }
        self.want_flush_since(request, id, since);
        self.pump(id);
    }

    #[inline(never)]
    fn read_cached(&mut self, request: ReqId, id: u32, sectors: u64) {
        let since = self.requests[request].dispatched;
        let whole = self.cache.whole;
        self.requests[request].past_read_cache |= self.page(id).pool != Pool::ReadCache;
        let p = self.page(id);
        let ready = p.is_ready();
        if ready && sectors & whole & !p.valid == 0 {
            return self.done_at_once(request, id);
        }
        self.cache()
            .wait(id, request, since, Wants::Data(sectors & whole));
        if ready {
            self.page(id).by = self.requests[request].number_in_logs;
            self.fill(id);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn miss(
        &mut self,
        request: ReqId,
        lpn: Lpn,
        write: bool,
        sectors: u64,
        older: Option<u32>,
    ) -> bool {
        self.usual_miss(request, lpn, write, sectors, older)
            || self.any_miss(request, lpn, write, sectors, older)
    }

    #[inline(never)]
    fn any_miss(
        &mut self,
        request: ReqId,
        lpn: Lpn,
        write: bool,
        sectors: u64,
        older: Option<u32>,
    ) -> bool {
        self.note_host_access();
        let access = self.access(request, lpn, write, write);
        let way = self.cache.room.way(&access);
        let pool = match way {
            Way::Policy => Pool::Policy,
            Way::ReadCache => Pool::ReadCache,
            Way::Past => Pool::Policy,
        };
        // Victims are evicted before the incoming page is inserted, so that the policy cannot choose the incoming page.
        let Some(evicted) = self.make_room(way, &access) else {
            return false;
        };
        if self.logs_buffer() {
            self.log_access(request, lpn, false);
        }
        if way == Way::Past {
            self.direct_read(request, lpn);
            return true;
        }
        let home = self.backend.home(lpn);
        let cache = &mut self.cache;
        let is_ranked = pool == Pool::Policy;
        let id = cache.add_page(Page {
            dirty: write,
            by: number_in_logs(access.request),
            rank: match is_ranked {
                true => Rank::InFlight,
                false => Rank::Evictable,
            },
            valid: if write { sectors } else { 0 },
            ..Page::new(lpn, pool, home)
        });
        cache.in_flight += u32::from(is_ranked);
        cache.directory.insert(lpn, PageId(id));
        with_view!(self, |cache, view| {
            cache.room.insert(&view, way, PageId(id), &access)
        });
        if write {
            self.backend.note_write(lpn, self.now);
            self.link_older(id, older);
            self.cache().set_unstable(id);
            self.note_asked(request, id);
        }
        self.seek_slot(id, pool, evicted);
        if !write {
            self.requests[request].past_read_cache |= pool != Pool::ReadCache;
        }
        self.await_slot(request, id, write, sectors);
        true
    }

    /// Makes the page's program wait for that of `older`, a copy of the same logical page that is being written back.
    /// Sectors that are valid in `older` are still in the buffer memory, so they become valid in the new page, too.
    #[inline(always)]
    pub(super) fn link_older(&mut self, id: u32, older: Option<u32>) {
        let Some(older) = older else { return };
        let o = self.page(older);
        o.younger = Some(Index::new(id));
        let held = o.valid;
        let p = self.page(id);
        p.older = Some(Index::new(older));
        p.valid |= held;
        self.cache.note_unsettled(id);
    }

    /// Removes a page from the read cache because the host writes it.
    fn leave_read_cache(&mut self, id: u32) {
        let p = self.page(id);
        p.rank = Rank::Left;
        let lpn = p.lpn;
        self.cache.room.take_over(PageId(id), lpn);
        self.pump(id);
    }
}
