//! A buffer by itself: hits and victims, in no time and without flash.
//!
//! What policies are stepped, compared and measured with where only the order of accesses counts.
//! Write-backs are done at once; chips are striped and their states set by hand.

use super::policy::{Access, DeviceView, Eviction, PageId, Policy};
use super::room::{Room, Way};
use super::{AnyPolicy, Directory, Setup, UserPolicy};
use crate::spec;
use crate::units::{ChipId, Lpn, Time};

/// The state of a chip, set by hand.
#[derive(Clone, Debug)]
pub struct ChipState {
    /// It collects garbage.
    pub in_gc: bool,
    /// Its CQCT, which is also its load.
    pub drain: Time,
    /// It has nothing to do.
    pub idle: bool,
}

/// Cached pages and chips as a policy sees them.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    pages: Vec<(Lpn, bool)>,
    pub chips: Vec<ChipState>,
    chips_in_gc: u32,
    stride: u32,
    now: Time,
}

impl DeviceView for Pages {
    fn now(&self) -> Time {
        self.now
    }
    #[inline]
    fn dirty(&self, page: PageId) -> bool {
        self.pages[page.0 as usize].1
    }
    #[inline]
    fn lpn(&self, page: PageId) -> Lpn {
        self.pages[page.0 as usize].0
    }
    #[inline]
    fn chip(&self, page: PageId) -> Option<ChipId> {
        let chips = self.chips.len() as u32;
        Some(ChipId((self.lpn(page).0 / self.stride % chips) as u16))
    }
    #[inline]
    fn in_gc(&self, chip: ChipId) -> bool {
        self.chips[chip.0 as usize].in_gc
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
        // Far from GC, or at its end.
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
    fn chips_in_gc(&self) -> (u32, u32) {
        (self.chips_in_gc, self.chips.len() as u32)
    }
}

/// What an access did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The page was cached (a write to a page of the separate read cache is a miss).
    pub hit: bool,
    /// What left, and what was read and written with it.
    pub eviction: Eviction,
    /// Logical page of each victim, and whether it was dirty.
    pub victims: Vec<(Lpn, bool)>,
}

/// The buffer.
#[derive(Clone, Debug)]
pub struct Alone {
    room: Room,
    directory: Directory,
    free: Vec<PageId>,
    pages: Pages,
    outcome: Outcome,
}

impl Alone {
    /// An empty buffer with a policy, and a separate read cache of `read_cache_pages`.
    pub fn new(policy: &spec::Policy, setup: &Setup, read_cache_pages: u32) -> Alone {
        Alone::with(AnyPolicy::of(policy, setup), setup, read_cache_pages)
    }

    /// An empty buffer with a user's policy.
    pub fn with_user(policy: Box<dyn UserPolicy>, setup: &Setup) -> Alone {
        Alone::with(AnyPolicy::user(policy), setup, 0)
    }

    fn with(policy: AnyPolicy, setup: &Setup, read_cache_pages: u32) -> Alone {
        let pages = setup.capacity as usize + read_cache_pages as usize;
        let chip = ChipState {
            in_gc: false,
            drain: Time::ZERO,
            idle: false,
        };
        Alone {
            room: Room::new(policy, setup, read_cache_pages),
            directory: Directory::new(pages),
            free: Vec::new(),
            pages: Pages {
                pages: Vec::with_capacity(pages),
                chips: vec![chip; setup.chips.max(1) as usize],
                chips_in_gc: 0,
                stride: setup.stride_pages.unwrap_or(1).max(1),
                now: Time::ZERO,
            },
            outcome: Outcome::default(),
        }
    }

    /// Changes the state of a chip; false if there is no such chip.
    pub fn set_chip(&mut self, chip: u32, change: impl FnOnce(&mut ChipState)) -> bool {
        let Some(state) = self.pages.chips.get_mut(chip as usize) else {
            return false;
        };
        change(state);
        self.pages.chips_in_gc = self.pages.chips.iter().filter(|c| c.in_gc).count() as u32;
        true
    }

    /// Lets time pass.
    pub fn wait(&mut self, span: Time) {
        self.pages.now += span;
    }

    /// The state in the notation of the specification.
    pub fn state(&self) -> String {
        self.room.state(&self.pages)
    }

    /// What the policy counted.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.room.policy.counters()
    }

    /// Starts loading what an access to `lpn` will touch.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        self.directory.prefetch(lpn);
    }

    /// One access to one page of request number `request`, which has `request_pages`.
    #[inline]
    pub fn access(&mut self, lpn: Lpn, write: bool, request: u64, request_pages: u32) -> &Outcome {
        let mut access = Access {
            lpn,
            write,
            dirty: write,
            request,
            request_pages,
        };
        let out = &mut self.outcome;
        if let Some(page) = self.directory.get(lpn) {
            if !(write && self.room.in_read_cache(page)) {
                out.victims.clear();
                out.eviction.clear();
                out.hit = true;
                let dirty = &mut self.pages.pages[page.0 as usize].1;
                *dirty |= write;
                access.dirty = *dirty;
                self.room.hit(&self.pages, page, &access);
                return &self.outcome;
            }
            // The write buffer takes over.
            self.room.forget(page, lpn);
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
        if self.room.is_full(way) {
            self.room.evict(&self.pages, way, access, &mut out.eviction);
            for &page in &out.eviction.victims {
                let (lpn, dirty) = self.pages.pages[page.0 as usize];
                out.victims.push((lpn, dirty));
                self.directory.remove(lpn, page);
                self.free.push(page);
            }
        }
        let new = (access.lpn, access.write);
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

    /// The chip is idle now: the pages that the policy writes back, which stay and become clean.
    pub fn idle(&mut self, chip: u32) -> Vec<Lpn> {
        let chip = ChipId(chip as u16);
        self.set_chip(chip.0.into(), |state| state.idle = true);
        let mut written = Vec::new();
        if self.room.policy.wants_idle() {
            while let Some(page) = self.room.policy.idle(&self.pages, chip, 0, &|_| false) {
                self.pages.pages[page.0 as usize].1 = false;
                self.room.policy.cleaned(&self.pages, page);
                written.push(self.pages.pages[page.0 as usize].0);
            }
        }
        self.set_chip(chip.0.into(), |state| state.idle = false);
        written
    }

    /// Drops a page, as a trim does; false if it is not cached.
    pub fn trim(&mut self, lpn: Lpn) -> bool {
        let Some(page) = self.directory.get(lpn) else {
            return false;
        };
        self.room.forget(page, lpn);
        self.directory.remove(lpn, page);
        self.free.push(page);
        true
    }
}
