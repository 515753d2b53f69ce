//! Making room: a victim for an access, or a group of pages that leave and are written together.
//!
//! Pages of a group are programmed in the order of the eviction once all of them are whole: BPLRU
//! reads what its block lacks, then writes the block in ascending order (policies.md A3).

use super::view::{with_view, View};
use super::*;
use crate::buffer::{Access, DeviceView, Prefetch};
use crate::device::{Backend, Device};
use crate::memory::prefetch;

/// Pages that are programmed together.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pages: Vec<u32>,
    /// Pages that are not whole yet.
    missing: u32,
}

/// What left for the sake of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evicted {
    /// Nothing had to.
    Nothing,
    /// This page; its slot goes to the access.
    One(u32),
    /// The pages that the last eviction names; their slots go to whoever waits.
    Group,
}

impl<B: Backend> Device<B> {
    /// Lets the policy choose what leaves. It is still to be written back: [`Device::seek_slot`]. `None` if
    /// something must, and all that might is in flight.
    #[inline]
    pub(super) fn make_room(&mut self, way: Way, access: &Access) -> Option<Evicted> {
        if !self.cache.room.is_full(way) {
            return Some(Evicted::Nothing);
        }
        let mut out = std::mem::take(&mut self.cache.eviction);
        out.clear();
        let found = with_view!(self, |cache, view| cache
            .room
            .evict(&view, way, access, &mut out));
        if !found {
            debug_assert!(
                way == Way::ReadCache || self.cache.in_flight > 0,
                "a full buffer of which nothing is in flight has a victim"
            );
            self.cache.eviction = out;
            return None;
        }
        let cache = &mut self.cache;
        cache.counters.evictions += 1;
        cache.counters.inspected += out.inspected;
        self.charge_scan(out.inspected);
        let single = out.victims.len() == 1 && out.padding.is_empty() && out.merged.is_empty();
        let evicted = match out.victims[..] {
            [one] if single => Evicted::One(one.0),
            _ => Evicted::Group,
        };
        let mut dirty = 0;
        for page in &out.victims {
            let p = &mut self.cache.pages[page.0 as usize];
            debug_assert!(p.stage == Stage::Ready, "a page in flight is evicted");
            p.evicted = true;
            p.by = access.request as u32;
            dirty += u64::from(p.dirty);
        }
        if self.cache.is_logged() {
            self.log_eviction(&out.victims, access);
        }
        if dirty > 0 && !self.backend.units_in_gc().is_empty() {
            self.count_victims_in_gc(&out);
        }
        let cache = &mut self.cache;
        cache.counters.evicted_dirty += dirty;
        cache.counters.evicted_clean += out.victims.len() as u64 - dirty;
        if dirty > 0 {
            let class = (64 - (dirty - 1).leading_zeros()).min(7);
            cache.counters.destages[class as usize] += 1;
        }
        cache.eviction = out;
        if let Evicted::One(_) = evicted {
            self.look_ahead();
        }
        Some(evicted)
    }

    /// Counts the dirty victims whose flash copy is on a chip in GC (ECR Fig. 3).
    #[cold]
    fn count_victims_in_gc(&mut self, out: &Eviction) {
        let in_gc = with_view!(self, |cache, view| {
            let waits = |page: &&PageId| {
                let chip = view.chip(**page);
                view.dirty(**page) && chip.is_some_and(|chip| view.in_gc(chip))
            };
            out.victims.iter().filter(waits).count() as u64
        });
        self.cache.counters.evicted_dirty_in_gc += in_gc;
    }

    /// Starts loading what the next victims' write-backs touch, three steps ahead: the page, then
    /// where its address leads, then where that leads.
    #[inline]
    fn look_ahead(&self) {
        let cache = &self.cache;
        let [first, second, third] = cache.room.policy.prefetch_victims();
        if let Some(page) = third {
            prefetch(&cache.pages, page.0 as usize);
        }
        if let Some(page) = second {
            let lpn = cache.pages[page.0 as usize].lpn;
            cache.directory.prefetch(lpn);
            self.backend.prefetch(lpn);
        }
        if let Some(page) = first {
            let lpn = cache.pages[page.0 as usize].lpn;
            self.backend.prefetch_old_copy(lpn);
        }
    }

    /// The page waits for its slot: that of its victim, a free one, or the next that comes free.
    pub(super) fn seek_slot(&mut self, id: u32, pool: Pool, evicted: Evicted) {
        let cache = &mut self.cache;
        match evicted {
            Evicted::One(victim) => {
                cache.pages[victim as usize].heir = id;
                self.pump(victim);
            }
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

    /// Writes back what the last eviction names.
    fn write_group(&mut self) {
        let out = std::mem::take(&mut self.cache.eviction);
        let mut pages = match self.cache.free_groups.last() {
            Some(&group) => std::mem::take(&mut self.cache.groups[group as usize].pages),
            None => Vec::new(),
        };
        let by = (out.victims.first()).map_or(NONE, |victim| self.page(victim.0).by);
        for victim in &out.victims {
            let p = self.page(victim.0);
            if p.dirty {
                pages.push(victim.0);
            } else if out.write_clean {
                p.rewrite = true;
                p.why = Cause::Padding;
                pages.push(victim.0);
            }
        }
        for &lpn in &out.merged {
            let cached = self.cache.find(lpn).map(|page| page.0);
            // What is still on its way from flash is left out.
            if let Some(id) = cached.filter(|&id| self.page(id).stage == Stage::Ready) {
                let p = self.page(id);
                if !p.evicted && !p.dirty && !p.programming && p.group == NONE {
                    p.rewrite = true;
                    p.by = by;
                    p.why = Cause::Merge;
                    p.wants_flush = true;
                    pages.push(id);
                }
            }
        }
        for &lpn in &out.padding {
            let beyond = u64::from(lpn.0) * self.address.page_bytes >= self.address.exported_bytes;
            // The page whose access evicts its own block: what it brings goes its own way.
            let came = (self.cache.find(lpn)).is_some_and(|page| !self.page(page.0).evicted);
            if !beyond && !came {
                pages.push(self.add_padding(lpn, by));
            }
        }
        if !out.padding.is_empty() || !out.merged.is_empty() {
            let cache = &self.cache;
            pages.sort_unstable_by_key(|&id| cache.pages[id as usize].lpn);
        }
        self.open_group(pages);
        // Clean pages leave at once; the others when the group is complete.
        for victim in &out.victims {
            if self.page(victim.0).group == NONE {
                self.pump(victim.0);
            }
        }
        self.cache.eviction = out;
    }

    /// A page to be read from flash and written with a group; it takes no slot.
    fn add_padding(&mut self, lpn: Lpn, by: u32) -> u32 {
        let older = self.cache.find(lpn).map(|page| page.0);
        let id = self.cache.add_page(lpn, Pool::Policy);
        self.cache.directory.insert(lpn, PageId(id));
        let p = self.page(id);
        p.stage = Stage::Ready;
        p.evicted = true;
        p.slot_gone = true;
        p.rewrite = true;
        p.by = by;
        p.why = Cause::Padding;
        self.link_older(id, older);
        id
    }

    /// Lets the pages be programmed in their order once all of them are whole.
    fn open_group(&mut self, pages: Vec<u32>) {
        if pages.is_empty() {
            return;
        }
        let cache = &mut self.cache;
        let group = match cache.free_groups.pop() {
            Some(group) => group,
            None => {
                cache.groups.push(Group::default());
                cache.groups.len() as u32 - 1
            }
        };
        for &id in &pages {
            let p = &mut cache.pages[id as usize];
            p.group = group;
            p.group_waits = true;
        }
        let count = pages.len() as u32;
        cache.groups[group as usize] = Group {
            pages,
            missing: count,
        };
        for i in 0..count as usize {
            // The group may be complete, and this page gone on, before the walk ends.
            let Some(&id) = self.cache.groups[group as usize].pages.get(i) else {
                break;
            };
            self.pump(id);
        }
    }

    /// A page of a group is whole; if it was the last one, all are programmed.
    pub(super) fn whole_in_group(&mut self, id: u32) {
        let p = self.page(id);
        let group = p.group as usize;
        if !std::mem::take(&mut p.group_waits) {
            return;
        }
        let g = &mut self.cache.groups[group];
        g.missing -= 1;
        if g.missing > 0 {
            return;
        }
        let mut pages = std::mem::take(&mut g.pages);
        for &id in &pages {
            self.page(id).group = NONE;
        }
        for &id in &pages {
            self.pump(id);
        }
        pages.clear();
        self.cache.groups[group].pages = pages;
        self.cache.free_groups.push(group as u32);
    }

    /// An idle chip may write back what the policy names, one page at a time.
    pub(in crate::device) fn idle_chip(&mut self, chip: usize) {
        if !self.cache.uses_idle || !self.backend.is_idle(chip) {
            return;
        }
        let chip = crate::units::ChipId(chip as u16);
        let in_flight = self.cache.active_write_backs;
        let named = with_view!(self, |cache, view| {
            let pages = &cache.pages;
            let busy = |page: PageId| {
                let p = &pages[page.0 as usize];
                p.programming || p.wants_flush || p.stage != Stage::Ready
            };
            cache.room.policy.idle(&view, chip, in_flight, &busy)
        });
        let Some(PageId(id)) = named else { return };
        let p = self.page(id);
        p.wants_flush = true;
        p.by = FlashEvent::NOBODY;
        p.why = Cause::WriteBack;
        self.cache.active_write_backs += 1;
        self.pump(id);
    }

    /// For tests: a device with nothing to come writes nothing back.
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
