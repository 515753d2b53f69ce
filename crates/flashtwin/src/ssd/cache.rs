//! The buffer at work: cached pages between host requests and flash.
//!
//! A page leaves its slot to its *heir*: the access that needed the slot. In blocking mode the heir
//! gets it when the page's program has completed, in background mode when its write-back is taken
//! up (D-2). A page may be evicted before its own slot or data have come; it is then written back
//! once it is whole, and its heir waits that long (D-36). An evicted page stays in the directory
//! until it is gone: reads are served from it, a write makes a new page that is written back after
//! it (policies.md 0.2, rule 6).
//!
//! [`Ssd::pump`] looks at one page and does the next thing its state allows; everything that
//! changes a page ends by calling it.

use std::collections::VecDeque;

use super::requests::{low_bits, ReqId};
use super::{flash_parts, Address, Ssd};
use crate::buffer::{AnyPolicy, DeviceView, Directory, PageId, Policy};
use crate::memory::prefetch;
use crate::metrics::{Breakdown, FlashReport};
use crate::nand::{Cause, Done, Nand};
use crate::spec::{self, DeviceSpec, EvictMode};
use crate::units::{ChipId, Lpn, Time};

const NONE: u32 = u32::MAX;

/// How far a page has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its slot still belongs to another page.
    NoSlot,
    /// Being read from flash.
    Filling,
    /// In its slot.
    Ready,
}

/// A cached page.
#[derive(Clone, Debug)]
struct Page {
    lpn: Lpn,
    stage: Stage,
    /// Differs from flash (a program under way does not count).
    dirty: bool,
    /// A program of it is under way.
    programming: bool,
    /// No longer known to the policy.
    evicted: bool,
    /// The host wants it on flash although it stays.
    wants_flush: bool,
    /// Trimmed while its program was under way.
    trimmed: bool,
    /// The slot was handed on before the program ended (background mode).
    slot_gone: bool,
    /// Waits for the program of an older copy of the same logical page.
    behind_older: bool,
    /// Valid sectors.
    valid: u64,
    /// When it got its slot.
    slot_at: Time,
    heir: u32,
    /// Evicted copy of the same logical page that must be on flash first, and the reverse.
    older: u32,
    younger: u32,
    /// The write that made the page, while it waits for the slot.
    writer: u32,
    /// First of the other waiting accesses.
    waiters: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    /// A slot, to write into.
    Slot,
    /// A slot to write into, then the program.
    SlotThenProgram,
    /// These sectors.
    Data(u64),
    /// The end of this many programs.
    Programs(u32),
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    request: ReqId,
    since: Time,
    wants: Wants,
    next: u32,
}

/// What the buffer counted.
#[derive(Clone, Debug, Default)]
struct Counters {
    evicted_clean: u64,
    evicted_dirty: u64,
    lost_pages: u64,
    slot_waits: u64,
    slot_wait_total: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// The device has a buffer at all; if not, nothing of this is used.
    pub present: bool,
    policy: AnyPolicy,
    directory: Directory,
    pages: Vec<Page>,
    free_pages: Vec<u32>,
    free_slots: u32,
    waiters: Vec<Waiter>,
    free_waiters: Vec<u32>,
    /// Pages that are dirty or being programmed, as bits.
    unstable: Vec<u64>,
    /// Accesses that found no victim at all.
    starved: VecDeque<u32>,
    /// Write-backs at a time in background mode; `None`: blocking.
    background: Option<u32>,
    writing_back: u32,
    write_back_queue: VecDeque<u32>,
    /// All sectors of a page.
    whole: u64,
    protected: bool,
    counters: Counters,
}

/// What a policy sees.
struct View<'a> {
    pages: &'a [Page],
    nand: &'a Nand,
    address: &'a Address,
}

impl DeviceView for View<'_> {
    #[inline]
    fn dirty(&self, page: PageId) -> bool {
        self.pages[page.0 as usize].dirty
    }
    #[inline]
    fn lpn(&self, page: PageId) -> Lpn {
        self.pages[page.0 as usize].lpn
    }
    #[inline]
    fn chip(&self, page: PageId) -> Option<ChipId> {
        let lpn = self.lpn(page);
        if self.address.static_placement {
            return Some(ChipId(self.address.chip(lpn) as u16));
        }
        self.nand
            .ftl()
            .lookup(lpn)
            .map(|ppn| ChipId(self.nand.ftl().chip_of(ppn) as u16))
    }
    #[inline]
    fn in_gc(&self, chip: ChipId) -> bool {
        self.nand.chips()[chip.0 as usize].in_gc
    }
    #[inline]
    fn chips_in_gc(&self) -> (u32, u32) {
        (self.nand.chips_in_gc(), self.address.chips)
    }
    fn drain_time(&self, chip: ChipId) -> Time {
        self.nand.drain_time(chip.0 as usize)
    }
    fn chip_idle(&self, chip: ChipId) -> bool {
        self.nand.is_idle(chip.0 as usize)
    }
    fn free_blocks(&self, chip: ChipId) -> u32 {
        let pools = self.nand.ftl().pools_of_chip(chip.0 as u32);
        pools.iter().map(|pool| pool.free).sum()
    }
}

impl Cache {
    pub fn new(spec: &DeviceSpec) -> Cache {
        let absent = spec::Buffer {
            capacity_pages: 0,
            policy: spec::Policy::Lru,
            evict: EvictMode::Blocking,
            partial: spec::Partial::Round,
            latency: Time::ZERO,
            power_loss_protection: false,
        };
        let b = spec.buffer.as_ref().unwrap_or(&absent);
        let round = b.partial == spec::Partial::Round;
        Cache {
            present: spec.buffer.is_some(),
            policy: AnyPolicy::new(&b.policy),
            directory: Directory::new(b.capacity_pages as usize),
            pages: Vec::with_capacity(b.capacity_pages as usize),
            free_pages: Vec::new(),
            free_slots: b.capacity_pages,
            waiters: Vec::new(),
            free_waiters: Vec::new(),
            unstable: Vec::new(),
            starved: VecDeque::new(),
            background: match b.evict {
                EvictMode::Blocking => None,
                EvictMode::Background(depth) => Some(depth),
            },
            writing_back: 0,
            write_back_queue: VecDeque::new(),
            whole: if round {
                u64::MAX
            } else {
                low_bits(spec.geometry.page_bytes as u64 / 512)
            },
            protected: b.power_loss_protection,
            counters: Counters::default(),
        }
    }

    /// Starts loading what an access to `lpn` will touch.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        self.directory.prefetch(lpn);
    }

    pub fn report(&self, report: &mut FlashReport) {
        report.evicted_clean = self.counters.evicted_clean;
        report.evicted_dirty = self.counters.evicted_dirty;
        report.pages_lost = self.counters.lost_pages;
        report.slot_waits = self.counters.slot_waits;
        report.slot_wait_total = self.counters.slot_wait_total;
        report.policy_counters = self
            .policy
            .counters()
            .into_iter()
            .map(|(name, n)| (name.to_owned(), n))
            .collect();
    }

    pub fn reset_counters(&mut self) {
        self.counters = Counters::default();
        self.policy.reset_counters();
    }

    // ---- tables ----

    fn add_page(&mut self, lpn: Lpn) -> u32 {
        let page = Page {
            lpn,
            stage: Stage::NoSlot,
            dirty: false,
            programming: false,
            evicted: false,
            wants_flush: false,
            trimmed: false,
            slot_gone: false,
            behind_older: false,
            valid: 0,
            slot_at: Time::ZERO,
            heir: NONE,
            older: NONE,
            younger: NONE,
            writer: NONE,
            waiters: NONE,
        };
        match self.free_pages.pop() {
            Some(id) => {
                self.pages[id as usize] = page;
                id
            }
            None => {
                self.pages.push(page);
                self.unstable.resize(self.pages.len().div_ceil(64), 0);
                self.pages.len() as u32 - 1
            }
        }
    }

    /// Adds a waiter at the end of the page's list: first come, first served.
    fn wait(&mut self, page: u32, request: ReqId, since: Time, wants: Wants) {
        let waiter = Waiter {
            request,
            since,
            wants,
            next: NONE,
        };
        let id = match self.free_waiters.pop() {
            Some(id) => {
                self.waiters[id as usize] = waiter;
                id
            }
            None => {
                self.waiters.push(waiter);
                self.waiters.len() as u32 - 1
            }
        };
        let mut at = self.pages[page as usize].waiters;
        if at == NONE {
            self.pages[page as usize].waiters = id;
            return;
        }
        while self.waiters[at as usize].next != NONE {
            at = self.waiters[at as usize].next;
        }
        self.waiters[at as usize].next = id;
    }

    #[inline]
    fn count_slot_wait(&mut self, slot: Time) {
        if slot > Time::ZERO {
            self.counters.slot_waits += 1;
            self.counters.slot_wait_total += slot;
        }
    }

    /// Keeps the page among the unstable ones exactly while it is dirty or being programmed.
    #[inline]
    fn note_stability(&mut self, id: u32) {
        let p = &self.pages[id as usize];
        let unstable = u64::from(p.dirty | p.programming);
        let word = &mut self.unstable[id as usize / 64];
        *word = *word & !(1 << (id % 64)) | unstable << (id % 64);
    }

    /// The unstable pages that hold something.
    fn unstable_pages(&self) -> Vec<u32> {
        let mut ids = Vec::new();
        for (i, &word) in self.unstable.iter().enumerate() {
            let mut bits = word;
            while bits != 0 {
                ids.push(i as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        ids.retain(|&id| self.pages[id as usize].stage != Stage::NoSlot);
        ids
    }
}

impl Ssd {
    #[inline]
    fn cache(&mut self) -> &mut Cache {
        &mut self.cache
    }

    #[inline]
    fn page(&mut self, id: u32) -> &mut Page {
        &mut self.cache().pages[id as usize]
    }

    // ---- accesses ----

    /// One page access of a host request; `sectors` are those it covers.
    pub(super) fn cached_page(&mut self, request: ReqId, lpn: Lpn, sectors: u64) {
        let write = self.requests[request].op == crate::request::Op::Write;
        let cached = self.cache().directory.get(lpn).map(|page| page.0);
        match cached {
            Some(id) if !self.page(id).evicted => self.hit(request, id, write, sectors),
            Some(id) if !write => {
                self.requests[request].hits += 1;
                self.read_cached(request, id, sectors);
            }
            older => self.miss(request, lpn, write, sectors, older),
        }
    }

    fn hit(&mut self, request: ReqId, id: u32, write: bool, sectors: u64) {
        self.requests[request].hits += 1;
        let cache = self.cache();
        let p = &mut cache.pages[id as usize];
        let dirty = p.dirty || write;
        if write {
            p.dirty = true;
            p.valid |= sectors;
            cache.note_stability(id);
        }
        self.cache().policy.touch(PageId(id), dirty);
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
        let through = self.requests[request].fua && !self.cache().protected;
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
        let whole = self.cache().whole;
        let p = self.page(id);
        if p.stage == Stage::Ready && sectors & whole & !p.valid == 0 {
            return self.page_done(request, Breakdown::default());
        }
        let ready = p.stage == Stage::Ready;
        self.cache()
            .wait(id, request, now, Wants::Data(sectors & whole));
        if ready {
            self.fill(id);
        }
    }

    fn miss(&mut self, request: ReqId, lpn: Lpn, write: bool, sectors: u64, older: Option<u32>) {
        let now = self.now;
        // Evict before insert: the page coming in is never its own victim.
        let victim = if self.cache().free_slots == 0 {
            self.choose_victim()
        } else {
            None
        };
        let cache = &mut self.cache;
        let id = cache.add_page(lpn);
        cache.directory.insert(lpn, PageId(id));
        cache.policy.insert(PageId(id), write);
        if write {
            let p = &mut cache.pages[id as usize];
            p.dirty = true;
            p.valid = sectors;
            if let Some(older) = older {
                // The rest of the page is still in the buffer memory.
                p.valid = cache.whole;
                p.older = older;
                cache.pages[older as usize].younger = id;
            }
            cache.note_stability(id);
        }
        if let Some(victim) = victim {
            let v = &mut cache.pages[victim as usize];
            v.heir = id;
            v.evicted = true;
            if v.dirty {
                cache.counters.evicted_dirty += 1;
            } else {
                cache.counters.evicted_clean += 1;
            }
            self.pump(victim);
        } else if cache.free_slots > 0 {
            cache.free_slots -= 1;
            self.give_slot(id);
        } else {
            cache.starved.push_back(id);
        }
        if write {
            let through = self.requests[request].fua && !self.cache.protected;
            let p = self.page(id);
            if p.stage == Stage::NoSlot && !through {
                p.writer = request.0;
            } else {
                self.write_cached(request, id);
            }
        } else {
            let whole = self.cache().whole;
            self.cache()
                .wait(id, request, now, Wants::Data(sectors & whole));
            if self.page(id).stage == Stage::Ready {
                self.fill(id);
            }
        }
    }

    fn choose_victim(&mut self) -> Option<u32> {
        let cache = &mut self.cache;
        let view = View {
            pages: &cache.pages,
            nand: &self.nand,
            address: &self.address,
        };
        let victim = cache.policy.victim(&view, |_| true)?;
        cache.policy.remove(victim);
        // Three steps ahead: the page, then where its address leads, then where that leads.
        let [first, second, third] = cache.policy.next_victims();
        if let Some(page) = third {
            prefetch(&cache.pages, page.0 as usize);
        }
        if let Some(page) = second {
            let lpn = cache.pages[page.0 as usize].lpn;
            cache.directory.prefetch(lpn);
            self.nand.ftl().prefetch(lpn);
        }
        if let Some(page) = first {
            self.nand
                .ftl()
                .prefetch_old_copy(cache.pages[page.0 as usize].lpn);
        }
        Some(victim.0)
    }

    // ---- a page's life ----

    /// The page gets its slot.
    fn give_slot(&mut self, id: u32) {
        let now = self.now;
        let p = self.page(id);
        debug_assert!(p.stage == Stage::NoSlot, "a slot for a page that has one");
        p.stage = Stage::Ready;
        p.slot_at = now;
        let writer = std::mem::replace(&mut p.writer, NONE);
        if writer != NONE {
            let slot = now - self.requests[ReqId(writer)].dispatched;
            self.cache().count_slot_wait(slot);
            self.page_done(
                ReqId(writer),
                Breakdown {
                    slot,
                    ..Breakdown::default()
                },
            );
        }
        if self.page(id).waiters != NONE {
            self.serve_waiters(id, None, false);
            let p = self.page(id);
            if p.waiters != NONE && p.stage == Stage::Ready {
                self.fill_if_wanted(id);
            }
        }
        let p = self.page(id);
        if p.evicted || p.wants_flush {
            self.pump(id);
        }
    }

    /// Reads the page from flash if somebody waits for sectors it lacks.
    fn fill_if_wanted(&mut self, id: u32) {
        let cache = self.cache();
        let mut at = cache.pages[id as usize].waiters;
        while at != NONE {
            let w = cache.waiters[at as usize];
            if let Wants::Data(sectors) = w.wants {
                if sectors & !cache.pages[id as usize].valid != 0 {
                    return self.fill(id);
                }
            }
            at = w.next;
        }
    }

    /// Reads what the page lacks from flash; at once if flash has nothing of it.
    fn fill(&mut self, id: u32) {
        let lpn = self.page(id).lpn;
        let Some(chip) = self.chip_of_copy(lpn) else {
            let whole = self.cache().whole;
            self.page(id).valid = whole;
            self.serve_waiters(id, None, false);
            return self.pump(id);
        };
        self.page(id).stage = Stage::Filling;
        self.queue_flash(chip, lpn, Cause::Fill, id);
    }

    /// Does the next thing that the page's state allows.
    fn pump(&mut self, id: u32) {
        let background = self.cache().background;
        let whole = self.cache().whole;
        let p = self.page(id);
        if p.stage != Stage::Ready || p.programming {
            return;
        }
        if !p.dirty {
            p.wants_flush = false;
            if p.evicted {
                self.release(id);
            }
            return;
        }
        if !p.evicted && !p.wants_flush {
            return;
        }
        if p.older != NONE {
            p.behind_older = true;
            return;
        }
        if p.valid != whole {
            return self.fill(id);
        }
        let lpn = p.lpn;
        let evicted = p.evicted;
        if let (true, Some(depth)) = (evicted && !p.slot_gone, background) {
            let cache = self.cache();
            if cache.writing_back == depth {
                return cache.write_back_queue.push_back(id);
            }
            cache.writing_back += 1;
            let p = self.page(id);
            p.slot_gone = true;
        }
        let p = self.page(id);
        p.dirty = false;
        p.programming = true;
        p.wants_flush = false;
        let cause = if evicted {
            Cause::Destage
        } else {
            Cause::Flush
        };
        let hand_on = p.slot_gone;
        let chip = self.chip_for_write(lpn);
        self.queue_flash(chip, lpn, cause, id);
        if hand_on {
            self.hand_on_slot(id);
        }
    }

    /// A flash operation of a cached page has finished.
    pub(super) fn cached_flash_done(&mut self, done: &Done) {
        let id = done.op.owner;
        if done.op.cause == Cause::Fill {
            let whole = self.cache().whole;
            let p = self.page(id);
            p.valid = whole;
            p.stage = Stage::Ready;
            self.serve_waiters(id, Some(done), false);
            return self.pump(id);
        }
        let p = self.page(id);
        p.programming = false;
        let (trimmed, dirty, evicted, lpn) = (p.trimmed, p.dirty, p.evicted, p.lpn);
        if !done.written {
            self.cache().counters.lost_pages += 1;
        }
        if trimmed && !dirty {
            self.nand.ftl_mut().unmap(lpn);
        }
        self.cache().note_stability(id);
        if !evicted && !dirty {
            self.cache().policy.cleaned(PageId(id));
        }
        let freed_credit = self.page(id).slot_gone;
        self.serve_waiters(id, Some(done), true);
        self.pump(id);
        if freed_credit {
            let cache = self.cache();
            cache.writing_back -= 1;
            let depth = cache.background.unwrap_or(0);
            while self.cache().writing_back < depth {
                let Some(next) = self.cache().write_back_queue.pop_front() else {
                    break;
                };
                self.pump(next);
            }
        }
    }

    /// Answers the accesses that the page can answer now. `done` is the flash operation that just
    /// ended, if one did; `program` that it was a program.
    fn serve_waiters(&mut self, id: u32, done: Option<&Done>, program: bool) {
        let now = self.now;
        let cache = self.cache();
        let p = &mut cache.pages[id as usize];
        let mut at = p.waiters;
        if at == NONE {
            return;
        }
        p.waiters = NONE;
        while at != NONE {
            let cache = self.cache();
            let w = cache.waiters[at as usize];
            let p = &cache.pages[id as usize];
            let (slot_at, valid) = (p.slot_at, p.valid);
            let stable = !p.dirty && !p.programming;
            cache.free_waiters.push(at);
            at = w.next;
            let has_slot = p.stage != Stage::NoSlot;
            let again = match w.wants {
                Wants::Slot | Wants::SlotThenProgram | Wants::Data(_) if !has_slot => Some(w.wants),
                Wants::Slot => None,
                Wants::SlotThenProgram => {
                    self.want_flush_since(w.request, id, w.since);
                    continue;
                }
                Wants::Data(sectors) if sectors & !valid == 0 => None,
                Wants::Data(_) => Some(w.wants),
                Wants::Programs(_) if stable => None,
                Wants::Programs(1) if program => None,
                Wants::Programs(n) if program => Some(Wants::Programs(n - 1)),
                Wants::Programs(_) => Some(w.wants),
            };
            match again {
                Some(wants) => self.cache().wait(id, w.request, w.since, wants),
                None => {
                    let parts = wait_parts(w.since, slot_at, done, now);
                    self.cache().count_slot_wait(parts.slot);
                    self.page_done(w.request, parts);
                }
            }
        }
    }

    /// An evicted page is done with: its slot goes to its heir.
    fn release(&mut self, id: u32) {
        let cache = self.cache();
        let p = &mut cache.pages[id as usize];
        debug_assert!(
            p.waiters == NONE && p.writer == NONE,
            "a page leaves while somebody waits for it"
        );
        // Whoever still names this place finds nothing to do there.
        p.stage = Stage::NoSlot;
        let (lpn, slot_gone, older, younger) = (p.lpn, p.slot_gone, p.older, p.younger);
        cache.directory.remove(lpn, PageId(id));
        // All links are mended before the slot is handed on, which may release further pages.
        let mut wake = false;
        if older != NONE {
            // Trimmed before its turn: the copies around it now follow each other.
            cache.pages[older as usize].younger = younger;
        }
        if younger != NONE {
            let y = &mut cache.pages[younger as usize];
            y.older = older;
            wake = older == NONE && std::mem::take(&mut y.behind_older);
        }
        cache.note_stability(id);
        if !slot_gone {
            self.hand_on_slot(id);
        }
        self.cache().free_pages.push(id);
        if wake {
            self.pump(younger);
        }
    }

    fn hand_on_slot(&mut self, id: u32) {
        let heir = std::mem::replace(&mut self.page(id).heir, NONE);
        if heir != NONE {
            return self.give_slot(heir);
        }
        let cache = self.cache();
        match cache.starved.pop_front() {
            Some(starved) => self.give_slot(starved),
            None => cache.free_slots += 1,
        }
    }

    // ---- flush, FUA, trim ----

    /// Completes the request once all that was acknowledged before is on flash.
    pub(super) fn flush(&mut self, request: ReqId) {
        let protected = !self.cache.present || self.cache.protected;
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

    fn want_flush(&mut self, request: ReqId, id: u32) {
        let now = self.now;
        self.want_flush_since(request, id, now);
    }

    /// Lets `request` wait until what the page holds now is on flash.
    fn want_flush_since(&mut self, request: ReqId, id: u32, since: Time) {
        let p = self.page(id);
        let programs = p.programming as u32 + p.dirty as u32;
        if programs == 0 {
            // Trimmed while it waited for its slot: there is nothing to program.
            let parts = wait_parts(since, p.slot_at, None, self.now);
            return self.page_done(request, parts);
        }
        p.wants_flush |= p.dirty;
        self.cache()
            .wait(id, request, since, Wants::Programs(programs));
    }

    /// Forgets a page, in the buffer and on flash.
    pub(super) fn trim(&mut self, lpn: Lpn) {
        let cache = &mut self.cache;
        let Some(PageId(id)) = cache.directory.get(lpn) else {
            self.nand.ftl_mut().unmap(lpn);
            return;
        };
        let p = &mut cache.pages[id as usize];
        if !p.evicted {
            p.evicted = true;
            cache.policy.remove(PageId(id));
        }
        self.nand.ftl_mut().unmap(lpn);
        // This copy and all older ones that are not on flash yet: none of them is wanted any more.
        let mut at = id;
        while at != NONE {
            let cache = self.cache();
            let whole = cache.whole;
            let p = &mut cache.pages[at as usize];
            p.dirty = false;
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
}

/// Where the time of an access went that waited since `since` for a page which got its slot at
/// `slot_at`; the last wait was for `done`, if for any flash operation.
fn wait_parts(since: Time, slot_at: Time, done: Option<&Done>, now: Time) -> Breakdown {
    let mut parts = done.map_or(Breakdown::default(), |d| flash_parts(d, now));
    let waited = now - since;
    // An access that came later than the operation waited only for its end.
    let mut over = parts.total().saturating_sub(waited);
    for part in [
        &mut parts.queue_gc,
        &mut parts.queue_host,
        &mut parts.array,
        &mut parts.transfer,
    ] {
        let cut = over.min(*part);
        *part -= cut;
        over -= cut;
    }
    // What was before the operation: first the slot, then other work on the page.
    let before = waited - parts.total();
    parts.slot = before.min(slot_at.saturating_sub(since));
    parts.queue_host += before - parts.slot;
    parts
}
