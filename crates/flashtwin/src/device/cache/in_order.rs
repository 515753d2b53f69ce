//! The usual miss: the policy keeps its pages in one order whatever the device does, as LRU does, the
//! buffer is full, and the page that leaves needs no more than its write-back. Everything else takes the way of
//! [`super::access`], with the same result.

use super::page::{Index, Membership, Page, Pool, Program, Rank, Residency, Slot, Want};
use super::waiters::Wants;
use super::Cache;
use crate::buffer::{PageId, Policy};
use crate::device::requests::ReqId;
use crate::device::{Backend, Device};
use crate::nand::Cause;
use crate::units::Lpn;

impl Cache {
    /// The page that an access of this kind evicts, if the miss is a usual one.
    #[inline(always)]
    fn usual_victim(&mut self, write: bool) -> Option<u32> {
        if self.log.is_some() || !(write || self.room.takes_reads()) {
            return None;
        }
        let PageId(victim) = self.room.oldest_in_order()?;
        self.pages[victim as usize].is_ready().then_some(victim)
    }
}

impl<B: Backend> Device<B> {
    /// A miss, if it is a usual one; false if not, with nothing changed.
    #[inline(always)]
    pub(super) fn usual_miss(
        &mut self,
        request: ReqId,
        lpn: Lpn,
        write: bool,
        sectors: u64,
        older: Option<u32>,
    ) -> bool {
        let Some(victim) = self.cache.usual_victim(write) else {
            return false;
        };
        let by = self.requests[request].number as u32;
        self.evict_one(victim, 1, by);
        let cache = &mut self.cache;
        let id = cache.add_page(Page {
            dirty: write,
            by,
            rank: Rank::InFlight,
            valid: if write { sectors } else { 0 },
            ..Page::new(lpn, Pool::Policy)
        });
        cache.in_flight += 1;
        cache.directory.insert(lpn, PageId(id));
        cache.room.exchange_oldest(PageId(id));
        self.look_ahead();
        let cache = &mut self.cache;
        if write {
            cache.set_unstable(id);
        }
        if older.is_some() {
            self.link_older(id, older);
        }
        self.hand_over_slot(victim, id);
        self.await_slot(request, id, write, sectors);
        true
    }

    /// The evicted page `victim` is written back if it is dirty, and gives its slot to `successor` when that is done.
    #[inline(always)]
    pub(super) fn hand_over_slot(&mut self, victim: u32, successor: u32) {
        let whole = self.cache.whole;
        let is_blocking = self.cache.background.is_none();
        let p = self.page(victim);
        p.slot_successor = Some(Index::new(successor));
        let is_plain = p.residency == Residency::Ready(Slot::Held)
            && !p.is_programming()
            && p.older.is_none()
            && p.want == Want::Nothing
            && p.group == Membership::None;
        if !is_plain {
            return self.pump(victim);
        }
        if !p.dirty {
            return self.release(victim);
        }
        if p.valid != whole || !is_blocking {
            return self.pump(victim);
        }
        p.program = Program::Running {
            fresh: true,
            trimmed: false,
        };
        p.dirty = false;
        let (lpn, by) = (p.lpn, p.by);
        let unit = self.backend.unit_for_write(lpn);
        let stream = self.cache.room.policy.stream(PageId(victim));
        self.queue_for(by, unit, lpn, Cause::Destage, victim, (stream, false));
    }

    /// The access waits for the slot of its page, which may have come already.
    #[inline(always)]
    pub(super) fn await_slot(&mut self, request: ReqId, id: u32, write: bool, sectors: u64) {
        if write {
            let through = self.requests[request].fua && !self.cache.protected;
            match &mut self.page(id).residency {
                Residency::Awaiting { writer } if !through => {
                    *writer = Some(Index::new(request.0));
                }
                _ => self.write_cached(request, id),
            }
            return;
        }
        let (since, whole) = (self.requests[request].dispatched, self.cache.whole);
        self.cache()
            .wait(id, request, since, Wants::Data(sectors & whole));
        if self.page(id).is_ready() {
            self.fill(id);
        }
    }
}
