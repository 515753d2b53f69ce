//! A buffer without time and flash. It determines only hits and victims.
//!
//! This buffer serves to step, compare and measure policies when only the order of accesses matters. Write-backs
//! complete immediately. Pages are striped over the chips. The caller sets the states of the chips.

use super::policy::{Access, DeviceView, Eviction, Policy};
use super::room::{Room, Way};
use super::{AnyPolicy, ChosenPolicy, Directory, Setup, UserPolicy};
use crate::chips::ChipSet;
use crate::memory::{prefetch, room_for};
use crate::units::PageId;
use crate::units::{ChipId, Lpn, Time};

/// State of a chip. It changes only when the caller sets it.
#[derive(Clone, Debug)]
pub struct ChipState {
    /// Whether the chip collects garbage.
    pub in_gc: bool,
    /// Time until the chip has completed its work. Used both as ECR's chip queue complete time (CQCT) and as LCR's load
    /// of the chip.
    pub drain: Time,
    /// Whether the chip is idle.
    pub idle: bool,
}

/// A cached page.
#[derive(Clone, Copy, Debug)]
struct Page {
    lpn: Lpn,
    chip: u16,
    dirty: bool,
}

/// The policy's view of the cached pages and of the chips.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    pages: Vec<Page>,
    pub chips: Vec<ChipState>,
    in_gc: ChipSet,
    stride: u32,
    now: Time,
}

impl DeviceView for Pages {
    fn now(&self) -> Time {
        self.now
    }
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
        Some(ChipId(self.pages[page.0 as usize].chip))
    }
    fn drain_time(&self, chip: ChipId, _exact: bool) -> Time {
        self.chips[chip.0 as usize].drain
    }
    fn load(&self, chip: ChipId) -> Time {
        self.chips[chip.0 as usize].drain
    }
    fn chip_idle(&self, chip: ChipId) -> bool {
        self.chips[chip.0 as usize].idle
    }
    fn free_blocks(&self, chip: ChipId) -> u32 {
        // A chip in GC has no free blocks. Any other chip has so many free blocks that it is not close to GC.
        if self.in_gc(chip) {
            0
        } else {
            u32::MAX
        }
    }
    fn gc_trigger_blocks(&self, _chip: ChipId) -> u32 {
        1
    }
    fn open_pages(&self, chip: ChipId) -> u32 {
        self.free_blocks(chip)
    }
    #[inline]
    fn chips_in_gc(&self) -> &ChipSet {
        &self.in_gc
    }
}

/// Result of an access.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Whether the page was cached. A write to a page of the separate read cache is a miss.
    pub hit: bool,
    /// Evicted pages, and the pages that are read or written together with them.
    pub eviction: Eviction,
    /// Logical page of each victim, and whether it was dirty.
    pub victims: Vec<(Lpn, bool)>,
}

/// The buffer.
#[derive(Clone, Debug)]
pub struct UntimedBuffer {
    room: Room,
    directory: Directory,
    free: Vec<PageId>,
    pages: Pages,
    outcome: Outcome,
}

impl UntimedBuffer {
    /// Creates an empty buffer with a policy, and with a separate read cache of `read_cache_pages` pages.
    pub fn new(policy: &ChosenPolicy, setup: &Setup, read_cache_pages: u32) -> UntimedBuffer {
        UntimedBuffer::with(AnyPolicy::of(policy, setup), setup, read_cache_pages)
    }

    /// Creates an empty buffer with a user's policy.
    pub fn with_user(policy: Box<dyn UserPolicy>, setup: &Setup) -> UntimedBuffer {
        UntimedBuffer::with(AnyPolicy::user(policy), setup, 0)
    }

    fn with(policy: AnyPolicy, setup: &Setup, read_cache_pages: u32) -> UntimedBuffer {
        let pages = setup.capacity as usize + read_cache_pages as usize;
        let chip = ChipState {
            in_gc: false,
            drain: Time::ZERO,
            idle: false,
        };
        UntimedBuffer {
            room: Room::new(policy, setup, read_cache_pages),
            directory: Directory::new(pages),
            free: Vec::new(),
            pages: Pages {
                pages: room_for(pages),
                chips: vec![chip; setup.chips.max(1) as usize],
                in_gc: ChipSet::none(setup.chips.max(1)),
                stride: setup.stride_pages.unwrap_or(1).max(1),
                now: Time::ZERO,
            },
            outcome: Outcome::default(),
        }
    }

    /// Changes the state of a chip. Returns false if there is no such chip.
    pub fn set_chip(&mut self, chip: u32, change: impl FnOnce(&mut ChipState)) -> bool {
        let Some(state) = self.pages.chips.get_mut(chip as usize) else {
            return false;
        };
        change(state);
        self.pages.in_gc.set(ChipId(chip as u16), state.in_gc);
        true
    }

    /// Lets time pass.
    pub fn wait(&mut self, span: Time) {
        self.pages.now += span;
    }

    /// Returns the state in the notation of `policy trace`.
    pub fn state(&self) -> String {
        self.room.state(&self.pages)
    }

    /// Counters of the policy.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.room.policy.counters()
    }

    /// Prefetches the data that an access to `lpn` reads. A driver that knows its next accesses can call this function
    /// in advance.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        self.directory.prefetch(lpn);
    }

    fn find(&self, lpn: Lpn) -> Option<PageId> {
        self.directory.get(lpn)
    }

    /// Executes one access to one page. `request` is the number of the host request, which has `request_pages` pages.
    #[inline]
    pub fn access(&mut self, lpn: Lpn, write: bool, request: u64, request_pages: u32) -> &Outcome {
        let mut access = Access {
            lpn,
            write,
            dirty: write,
            request,
            request_pages,
        };
        if let Some(page) = self.find(lpn) {
            let out = &mut self.outcome;
            if !(write && self.room.in_read_cache(page)) {
                out.victims.clear();
                out.eviction.clear();
                out.hit = true;
                let dirty = &mut self.pages.pages[page.0 as usize].dirty;
                *dirty |= write;
                access.dirty = *dirty;
                self.room.hit(&self.pages, page, &access);
                return &self.outcome;
            }
            self.room.take_over(page, lpn);
            self.directory.remove(lpn, page);
            self.free.push(page);
        }
        self.miss(&access)
    }

    fn miss(&mut self, access: &Access) -> &Outcome {
        let out = &mut self.outcome;
        out.hit = false;
        out.victims.clear();
        out.eviction.clear();
        let way = self.room.way(access);
        if way == Way::Past {
            return &self.outcome;
        }
        if self.room.is_full(way, access) {
            let found = (self.room).evict(&self.pages, way, access, &mut out.eviction);
            debug_assert!(found, "a full buffer has a victim where none is in flight");
            for &page in &out.eviction.victims {
                let Page { lpn, dirty, .. } = self.pages.pages[page.0 as usize];
                out.victims.push((lpn, dirty));
                self.directory.remove(lpn, page);
                self.free.push(page);
            }
            self.look_ahead(way);
        }
        let chips = self.pages.chips.len() as u32;
        let new = Page {
            lpn: access.lpn,
            chip: (access.lpn.0 / self.pages.stride % chips) as u16,
            dirty: access.write,
        };
        let page = match self.free.pop() {
            Some(page) => {
                self.pages.pages[page.0 as usize] = new;
                page
            }
            None => {
                self.pages.pages.push(new);
                PageId(self.pages.pages.len() as u32 - 1)
            }
        };
        self.directory.insert(access.lpn, page);
        self.room.insert(&self.pages, way, page, access);
        &self.outcome
    }

    /// Prefetches the data that the next evictions access.
    #[inline]
    fn look_ahead(&self, way: Way) {
        let [_, second, third] = self.room.prefetch_victims(way);
        if let Some(page) = third {
            prefetch(&self.pages.pages, page.0 as usize);
            self.directory.prefetch_link(page);
        }
        if let Some(page) = second {
            self.directory.prefetch(self.pages.lpn(page));
        }
    }

    /// Notifies the policy that a chip is idle now. Returns the pages that the policy writes back; they stay as clean
    /// pages.
    pub fn idle(&mut self, chip: u32) -> Vec<Lpn> {
        let chip = ChipId(chip as u16);
        self.set_chip(chip.0.into(), |state| state.idle = true);
        let mut written = Vec::new();
        if self.room.policy.wants_idle() {
            while let Some(page) = self.room.policy.idle(&self.pages, chip, 0, &|_| false) {
                self.clean(page);
                written.push(self.pages.lpn(page));
            }
        }
        if self.room.policy.ahead_after().is_some() {
            while let Some(page) = self.room.policy.ahead(&self.pages, 0, &|_| false) {
                self.clean(page);
                written.push(self.pages.lpn(page));
            }
        }
        self.set_chip(chip.0.into(), |state| state.idle = false);
        written
    }

    /// Writes a page back. The page stays in the buffer as a clean page.
    fn clean(&mut self, page: PageId) {
        self.pages.pages[page.0 as usize].dirty = false;
        self.room.policy.cleaned(&self.pages, page);
    }

    /// Drops a page, as a trim does. Returns false if the page is not cached.
    pub fn trim(&mut self, lpn: Lpn) -> bool {
        let Some(page) = self.find(lpn) else {
            return false;
        };
        self.room.forget(page, lpn);
        self.directory.remove(lpn, page);
        self.free.push(page);
        true
    }
}
