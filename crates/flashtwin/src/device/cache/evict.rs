//! Evictions: the victims of an access.

use super::claims::Claims;
use super::page::{Pool, Rank};
use super::view::{with_view, View};
use crate::buffer::{Access, PageId, Policy, Prefetch, Way};
use crate::device::requests::number_in_logs;
use crate::device::{Backend, Device, NO_HOME};
use crate::memory::prefetch;
use crate::units::{ChipId, Lpn};

/// Panic message for a user's policy that names a page which it does not hold.
const HELD: &str = "a policy names pages that it holds";

/// Result of making room for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evicted {
    /// No page had to be evicted.
    Nothing,
    /// One page was evicted. Its slot goes to the page of the access. `home` is the unit that [`Device::evict_one`]
    /// returned.
    One { victim: u32, home: ChipId },
    /// The pages in [`Cache::eviction`](super::Cache) were evicted; their slots go to the waiting accesses.
    Group,
}

impl<B: Backend> Device<B> {
    /// Lets the policy choose victims if the buffer is full. [`Device::seek_slot`] writes them back afterwards. Returns
    /// `None` if victims are necessary, but all candidates are in flight.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn make_room(&mut self, way: Way, access: &Access) -> Option<Evicted> {
        if !self.cache.room.is_full(way, access) {
            return Some(Evicted::Nothing);
        }
        self.report_units();
        let found = with_view!(self, |cache, view| {
            let by_scan = match cfg!(debug_assertions) {
                true => cache.room.victim_by_scan(&view, way),
                false => None,
            };
            cache.eviction.clear();
            let found = (cache.room).evict(&view, way, access, &mut cache.eviction);
            debug_assert!(
                by_scan.is_none_or(|page| cache.eviction.victims == [page]),
                "the victim is not that of a scan"
            );
            found
        });
        if !found {
            debug_assert!(
                way == Way::ReadCache || self.cache.in_flight > 0,
                "a full buffer of which nothing is in flight has a victim"
            );
            return None;
        }
        let out = &self.cache.eviction;
        let single = out.padding.is_empty() && out.merged.is_empty();
        let evicted = match out.victims[..] {
            [one] if single => {
                assert!((one.0 as usize) < self.cache.pages.len(), "{HELD}");
                let (victim, inspected) = (one.0, out.inspected);
                let home = self.evict_one(victim, inspected, number_in_logs(access.request));
                self.look_ahead();
                Evicted::One { victim, home }
            }
            _ => {
                self.evict_group(access);
                Evicted::Group
            }
        };
        if self.logs_buffer() {
            self.log_eviction(access);
        }
        Some(evicted)
    }

    /// Evicts one page. To choose it, the policy inspected `inspected` list entries. Returns the page's home (the only
    /// unit to which it can be written) if the page is dirty and has one, otherwise [`NO_HOME`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn evict_one(&mut self, id: u32, inspected: u64, by: u32) -> ChipId {
        self.charge_scan(inspected);
        let cache = &mut self.cache;
        let p = &mut cache.pages[id as usize];
        debug_assert!(p.is_ready(), "a page in flight is evicted");
        p.rank = Rank::Left;
        p.by = by;
        cache.counters.evictions += 1;
        cache.counters.inspected += inspected;
        if !p.dirty {
            cache.counters.evicted_clean += 1;
            return NO_HOME;
        }
        cache.counters.evicted_dirty += 1;
        cache.counters.destages[0] += 1;
        let (lpn, home) = (p.lpn, p.home);
        self.count_if_in_gc(lpn, home);
        home
    }

    /// Processes an eviction with several victims, or with additional pages that are written together with the
    /// victims.
    #[inline(never)]
    fn evict_group(&mut self, access: &Access) {
        let victims = std::mem::take(&mut self.cache.eviction.victims);
        let mut dirty = 0;
        for page in &victims {
            let p = self.cache.pages.get_mut(page.0 as usize);
            let p = p.expect(HELD);
            debug_assert!(p.is_ready(), "a page in flight is evicted");
            p.rank = Rank::Left;
            p.by = number_in_logs(access.request);
            if p.dirty {
                let (lpn, home) = (p.lpn, p.home);
                dirty += 1;
                self.count_if_in_gc(lpn, home);
            }
        }
        let inspected = self.cache.eviction.inspected;
        let counters = &mut self.cache.counters;
        counters.evictions += 1;
        counters.inspected += inspected;
        counters.evicted_dirty += dirty;
        counters.evicted_clean += victims.len() as u64 - dirty;
        if dirty > 0 {
            let class = (64 - (dirty - 1).leading_zeros()).min(7);
            counters.destages[class as usize] += 1;
        }
        self.cache.eviction.victims = victims;
        self.charge_scan(inspected);
    }

    /// Counts a dirty victim if its unit (its home or, without one, the unit of its flash copy) is in GC. Figure 3 of
    /// the ECR paper shows this count.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn count_if_in_gc(&mut self, lpn: Lpn, home: ChipId) {
        let unit = match home {
            NO_HOME if self.backend.units_in_gc().is_empty() => None,
            NO_HOME => self.backend.unit_of(lpn),
            unit => Some(unit),
        };
        if let Some(unit) = unit {
            let in_gc = self.backend.units_in_gc().contains(unit);
            self.cache.counters.evicted_dirty_in_gc += u64::from(in_gc);
        }
    }

    /// Prefetches data for the write-backs of the next victims. A write-back accesses three data in turn: the page's
    /// record, the table entries at the page's address, and the data to which these entries point. The address of each
    /// is known only when the one before is loaded. Each eviction therefore prefetches one of them for each of the next
    /// three victims. A victim advances by one prefetch per eviction.
    #[inline(always)]
    fn look_ahead(&mut self) {
        if let Some(third) = self.cache.room.policy.third_victim() {
            let [_, second, first] = self.cache.ahead;
            self.cache.ahead = [third, third, second];
            self.load_ahead(third, second, first);
        }
    }

    /// Prefetches like `look_ahead`, for a policy that knows its fourth victim. The first prefetch is for the fourth
    /// victim instead of the third. One more eviction thus passes between the first and the second prefetch of a
    /// victim.
    #[inline(always)]
    pub(super) fn look_ahead_to(&mut self, fourth: PageId) {
        let [third, second, first] = self.cache.ahead;
        self.cache.ahead = [fourth, third, second];
        self.load_ahead(fourth, third, first);
    }

    /// Starts the three prefetches of an eviction: the record of `page`, the table entries of `later`, and the data to
    /// which the entries of `next` point.
    #[inline(always)]
    fn load_ahead(&mut self, page: PageId, later: PageId, next: PageId) {
        let cache = &self.cache;
        prefetch(&cache.pages, page.0 as usize);
        let later = cache.pages[later.0 as usize].lpn;
        let next = cache.pages[next.0 as usize].lpn;
        cache.directory.prefetch(later);
        self.backend.prefetch_ahead(next, later);
    }

    /// Gives the page its slot, now or later: a free slot, the slot of the victim after the victim's write-back, or the
    /// next slot that becomes free.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn seek_slot(&mut self, id: u32, pool: Pool, evicted: Evicted) {
        if !B::PLAIN && pool == Pool::Policy && self.cache.claims.is_some() {
            return self.claim_slot(id, evicted);
        }
        let cache = &mut self.cache;
        match evicted {
            Evicted::One { victim, home } => self.hand_over_slot(victim, id, home),
            Evicted::Group => {
                cache.waiting[pool as usize].push_back(id);
                self.write_group();
            }
            Evicted::Nothing if cache.free_slots[pool as usize] > 0 => {
                cache.free_slots[pool as usize] -= 1;
                self.give_slot(id);
            }
            Evicted::Nothing => cache.waiting[pool as usize].push_back(id),
        }
    }

    /// Gives the page its slot, now or later, under a policy whose blocks occupy the room of all their pages. The slot
    /// is granted to the claim of the page's block ([`Claims`]).
    #[inline(never)]
    fn claim_slot(&mut self, id: u32, evicted: Evicted) {
        let cache = &mut self.cache;
        let block = cache
            .room
            .policy
            .block_of_room(cache.pages[id as usize].lpn);
        if let Some(claims) = &mut cache.claims {
            if evicted != Evicted::Nothing {
                let out = &cache.eviction;
                claims.evict(out.victims.iter().map(|page| page.0), out.block.is_some());
            }
            claims.enter(id, block);
        }
        match evicted {
            Evicted::One { victim, .. } => self.pump(victim),
            Evicted::Group => self.write_group(),
            Evicted::Nothing => {}
        }
        self.grant_slots();
    }

    /// Returns the slot of a page to the page's claim or to the free slots, then grants free slots to waiting pages.
    /// Called only under a policy whose blocks occupy the room of all their pages ([`Claims`]).
    #[inline(never)]
    pub(super) fn return_claimed_slot(&mut self, id: u32) {
        if let Some(claims) = &mut self.cache.claims {
            claims.leave(id);
        }
        self.grant_slots();
    }

    fn grant_slots(&mut self) {
        loop {
            let cache = &mut self.cache;
            let kept = cache.room.policy.room_kept();
            let Some(next) = cache.claims.as_mut().and_then(|claims| claims.next(kept)) else {
                return;
            };
            self.give_slot(next);
        }
    }

    /// Adapts the slots to a new policy. Claims are set up if its blocks occupy the room of all their pages, and
    /// dropped if not.
    pub(super) fn renew_claims(&mut self, block_pages: u32) {
        const POOL: usize = Pool::Policy as usize;
        let cache = &mut self.cache;
        let (free, waiting) = match cache.claims.take() {
            Some(claims) => claims.into_rest(),
            None => (
                std::mem::take(&mut cache.free_slots[POOL]),
                std::mem::take(&mut cache.waiting[POOL]),
            ),
        };
        if cache.room.policy.takes_whole_blocks() {
            let mut claims = Box::new(Claims::new(free, block_pages));
            for page in waiting {
                let block = cache
                    .room
                    .policy
                    .block_of_room(cache.pages[page as usize].lpn);
                claims.enter(page, block);
            }
            cache.claims = Some(claims);
            return self.grant_slots();
        }
        (cache.free_slots[POOL], cache.waiting[POOL]) = (free, waiting);
        while self.cache.free_slots[POOL] > 0 {
            let Some(next) = self.cache.waiting[POOL].pop_front() else {
                break;
            };
            self.cache.free_slots[POOL] -= 1;
            self.give_slot(next);
        }
    }

    /// For tests: checks that a device without pending events has no write-backs in flight.
    pub(crate) fn check_write_backs(&self) -> Result<(), String> {
        let (idle, slots) = (self.cache.active_write_backs, self.cache.writing_back);
        match self.next_event() {
            None if idle > 0 || slots > 0 => Err(format!(
                "at rest, {idle} pages are said to be written back in idle time, and {slots} slots to be on their way"
            )),
            _ => Ok(()),
        }
    }
}
