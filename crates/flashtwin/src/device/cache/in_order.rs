//! The fast path of a miss. It applies if three conditions hold: the policy keeps its pages in one order that does
//! not depend on the device, as LRU does; the buffer is full; and the victim needs nothing except its write-back. All
//! other misses take the general path in [`super::access`], with the same result.

use super::page::{Index, Page, Pool, Program, Rank, Residency};
use super::waiters::Wants;
use super::Cache;
use crate::buffer::{PageId, Policy, Stream};
use crate::device::requests::ReqId;
use crate::device::{Backend, Device, NO_HOME};
use crate::nand::{Cause, Owner};
use crate::units::Lpn;

/// Pages exchanged by a miss on the fast path: the victim and the incoming page.
struct Exchanged {
    victim: u32,
    /// Record of the incoming page.
    id: u32,
    /// The page that becomes the fourth victim.
    fourth: PageId,
}

impl Cache {
    /// Exchanges the victim for the incoming page in the policy's list. Changes nothing and returns `None` if the
    /// fast path does not apply.
    #[inline(always)]
    fn exchange_usual(&mut self, write: bool, is_logged: bool) -> Option<Exchanged> {
        if is_logged || !(write || self.room.takes_reads()) {
            return None;
        }
        let list = self.room.full_in_order()?;
        let PageId(victim) = list.list().oldest()?;
        if !self.pages[victim as usize].is_plain() {
            return None;
        }
        let id = *self.free_pages.last()?;
        if !list.list().can_exchange(PageId(id)) {
            return None;
        }
        self.free_pages.truncate(self.free_pages.len() - 1);
        let fourth = list.exchange_oldest(PageId(id));
        Some(Exchanged { victim, id, fourth })
    }
}

impl<B: Backend> Device<B> {
    /// Executes a miss on the fast path. Changes nothing and returns false if the fast path does not apply.
    #[inline(always)]
    pub(super) fn usual_miss(
        &mut self,
        request: ReqId,
        lpn: Lpn,
        write: bool,
        sectors: u64,
        older: Option<u32>,
    ) -> bool {
        // The two copies of the code, for reads and for writes, each lack the steps of the other.
        match write {
            true => self.usual_miss_of::<true>(request, lpn, sectors, older),
            false => self.usual_miss_of::<false>(request, lpn, sectors, older),
        }
    }

    #[inline(always)]
    fn usual_miss_of<const WRITE: bool>(
        &mut self,
        request: ReqId,
        lpn: Lpn,
        sectors: u64,
        older: Option<u32>,
    ) -> bool {
        let write = WRITE;
        let Some(Exchanged { victim, id, fourth }) =
            self.cache.exchange_usual(write, self.logs_buffer())
        else {
            return false;
        };
        self.look_ahead_to(fourth);
        let r = &self.requests[request];
        let by = r.number_in_logs;
        // `give_slot` completes a write that waits only for the slot.
        let is_plain_write = write && (!r.fua || self.cache.protected);
        let cache = &mut self.cache;
        cache.pages[id as usize] = Page {
            dirty: write,
            by,
            rank: Rank::InFlight,
            valid: if write { sectors } else { 0 },
            residency: Residency::Awaiting {
                writer: is_plain_write.then(|| Index::new(request.0)),
            },
            ..Page::new(lpn, Pool::Policy)
        };
        cache.in_flight += 1;
        cache.directory.insert_again(lpn, PageId(id));
        if write {
            cache.set_unstable(id);
            self.note_asked(request, id);
        }
        if older.is_some() {
            self.link_older(id, older);
        }
        let home = self.evict_one(victim, 1, by);
        // Policies with one order do not separate streams.
        self.write_back_plain(victim, id, home, Stream::Cold);
        if !is_plain_write {
            self.await_slot(request, id, write, sectors);
        }
        true
    }

    /// Writes back the evicted page `victim` if it is dirty. Its slot goes to `successor` after that.
    #[inline(always)]
    pub(super) fn hand_over_slot(&mut self, victim: u32, successor: u32) {
        if self.page(victim).is_plain() {
            let stream = self.cache.room.policy.stream(PageId(victim));
            return self.write_back_plain(victim, successor, NO_HOME, stream);
        }
        self.page(victim).slot_successor = Some(Index::new(successor));
        self.pump(victim);
    }

    /// Does the work of [`Device::hand_over_slot`] for a plain page ([`Page::is_plain`]): starts
    /// its write-back. `home` is the only unit to which the page can be written, or [`NO_HOME`].
    #[inline(always)]
    fn write_back_plain(&mut self, victim: u32, successor: u32, home: u32, stream: Stream) {
        let whole = self.cache.whole;
        let is_blocking = self.background().is_none();
        let p = self.page(victim);
        debug_assert!(p.is_plain() && p.has_left());
        p.slot_successor = Some(Index::new(successor));
        if !p.dirty || p.valid != whole || !is_blocking {
            return self.pump(victim);
        }
        p.program = Program::Running {
            fresh: true,
            trimmed: false,
        };
        p.dirty = false;
        let (lpn, by) = (p.lpn, p.by);
        let owner = Owner::cached_page(victim);
        match home {
            NO_HOME => self.queue_program_for(by, lpn, Cause::Destage, owner, (stream, false)),
            unit => self.queue_for(by, unit, lpn, Cause::Destage, owner, (stream, false)),
        }
    }

    /// Lets the access wait for the slot of its page. The slot may already be there.
    #[inline(never)]
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
