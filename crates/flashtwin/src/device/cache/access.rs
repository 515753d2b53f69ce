//! Page accesses of host requests: hits, misses, reads of what is cached.

use super::view::{with_view, View};
use super::*;
use crate::buffer::Access;
use crate::device::{Backend, Device};
use crate::metrics::Breakdown;
use crate::request::Op;

impl<B: Backend> Device<B> {
    #[inline]
    pub(super) fn cache(&mut self) -> &mut Cache {
        &mut self.cache
    }

    #[inline]
    pub(super) fn page(&mut self, id: u32) -> &mut Page {
        &mut self.cache.pages[id as usize]
    }

    /// The access as the policy sees it.
    #[inline]
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

    /// One page access of a host request; `sectors` are those it covers.
    pub(in crate::device) fn cached_page(&mut self, request: ReqId, lpn: Lpn, sectors: u64) {
        let write = self.requests[request].op == Op::Write;
        let cached = self.cache.find(lpn).map(|page| page.0);
        match cached {
            Some(id) if !self.page(id).evicted => {
                if write && self.page(id).pool == Pool::ReadCache {
                    self.leave_read_cache(id);
                    return self.miss(request, lpn, write, sectors, self.copy_of(lpn));
                }
                self.hit(request, id, write, sectors);
            }
            Some(id) if !write => {
                self.requests[request].hits += 1;
                if self.cache.is_logged() {
                    self.log_access(request, lpn, true);
                }
                self.read_cached(request, id, sectors);
            }
            older => self.miss(request, lpn, write, sectors, older),
        }
    }

    #[inline]
    fn copy_of(&self, lpn: Lpn) -> Option<u32> {
        self.cache.find(lpn).map(|page| page.0)
    }

    fn hit(&mut self, request: ReqId, id: u32, write: bool, sectors: u64) {
        self.requests[request].hits += 1;
        let cache = self.cache();
        let p = &mut cache.pages[id as usize];
        let (lpn, dirty) = (p.lpn, p.dirty || write);
        if write {
            p.dirty = true;
            p.valid |= sectors;
            cache.note_stability(id);
        }
        if self.cache.is_logged() {
            self.log_access(request, lpn, true);
        }
        let access = self.access(request, lpn, write, dirty);
        with_view!(self, |cache, view| cache.room.hit(
            &view,
            PageId(id),
            &access
        ));
        if write {
            self.write_cached(request, id);
        } else {
            self.read_cached(request, id, sectors);
        }
    }

    /// A write whose page is in the directory and dirty: it is done once the page has its slot.
    #[inline]
    fn write_cached(&mut self, request: ReqId, id: u32) {
        let now = self.now;
        let through = self.requests[request].fua && !self.cache.protected;
        if self.page(id).stage == Stage::NoSlot {
            let wants = if through {
                Wants::SlotThenProgram
            } else {
                Wants::Slot
            };
            return self.cache().wait(id, request, now, wants);
        }
        if !through {
            return self.page_done(request, Breakdown::default());
        }
        self.want_flush(request, id);
        self.pump(id);
    }

    fn read_cached(&mut self, request: ReqId, id: u32, sectors: u64) {
        let now = self.now;
        let whole = self.cache.whole;
        self.requests[request].read_cache_only &= self.page(id).pool == Pool::ReadCache;
        let p = self.page(id);
        if p.stage == Stage::Ready && sectors & whole & !p.valid == 0 {
            return self.page_done(request, Breakdown::default());
        }
        let ready = p.stage == Stage::Ready;
        self.cache()
            .wait(id, request, now, Wants::Data(sectors & whole));
        if ready {
            self.page(id).by = self.requests[request].number as u32;
            self.fill(id);
        }
    }

    fn miss(&mut self, request: ReqId, lpn: Lpn, write: bool, sectors: u64, older: Option<u32>) {
        let now = self.now;
        if self.cache.is_logged() {
            self.log_access(request, lpn, false);
        }
        let access = self.access(request, lpn, write, write);
        let way = self.cache.room.way(&access);
        let pool = match way {
            Way::Policy => Pool::Policy,
            Way::ReadCache => Pool::ReadCache,
            Way::Past => return self.direct_read(request, lpn),
        };
        // Evict before insert: the page coming in is never its own victim.
        let evicted = self.make_room(way, &access);
        let cache = &mut self.cache;
        let id = cache.add_page(lpn, pool);
        cache.directory.insert(lpn, PageId(id));
        cache.pages[id as usize].dirty = write;
        cache.pages[id as usize].by = access.request as u32;
        with_view!(self, |cache, view| {
            cache.room.insert(&view, way, PageId(id), &access)
        });
        if write {
            self.page(id).valid = sectors;
            self.link_older(id, older);
            self.cache().note_stability(id);
        }
        self.seek_slot(id, pool, evicted);
        if write {
            let through = self.requests[request].fua && !self.cache.protected;
            let p = self.page(id);
            if p.stage == Stage::NoSlot && !through {
                p.writer = request.0;
            } else {
                self.write_cached(request, id);
            }
        } else {
            self.requests[request].read_cache_only &= pool == Pool::ReadCache;
            let whole = self.cache.whole;
            self.cache()
                .wait(id, request, now, Wants::Data(sectors & whole));
            if self.page(id).stage == Stage::Ready {
                self.fill(id);
            }
        }
    }

    /// The page is programmed after the copy `older` of the same logical page, which is on its way out;
    /// what that has and the page lacks is still in the buffer memory.
    pub(super) fn link_older(&mut self, id: u32, older: Option<u32>) {
        let Some(older) = older else { return };
        let o = self.page(older);
        o.younger = id;
        let held = o.valid;
        let p = self.page(id);
        p.older = older;
        p.valid |= held;
    }

    /// A page of the read cache leaves because the host writes it.
    fn leave_read_cache(&mut self, id: u32) {
        let lpn = self.page(id).lpn;
        self.page(id).evicted = true;
        self.cache.room.take_over(PageId(id), lpn);
        self.pump(id);
    }
}
