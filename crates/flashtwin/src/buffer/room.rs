//! The contents of the buffer: the pages of the policy and of the separate read cache, and the room for them.
//!
//! This module models a buffer without time. [`crate::device`] adds slots, programs and waiting to it.
//! [`super::untimed`] uses it unchanged.

use super::policy::{Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use super::{Aged, AnyPolicy, List, Setup};
use crate::memory::reach;
use crate::units::Lpn;
use crate::units::PageId;

/// Where an inserted page is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The page is ranked by the policy.
    Policy,
    /// The page goes into the separate read cache.
    ReadCache,
    /// The page is not inserted: the read bypasses the buffer.
    Past,
}

/// The policy, the read cache, and the number of pages in both.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub policy: AnyPolicy,
    /// Whether a user of the library implements the policy. Only such a policy may choose pages in flight as victims.
    is_users: bool,
    capacity: u32,
    pages: u32,
    read_capacity: u32,
    read_pages: u32,
    read_list: List,
    /// Pages in flight that a user's policy chose as victims, each with its last access. These pages stay cached. They
    /// are inserted into the policy again when they are no longer in flight.
    aside: Vec<(PageId, Access)>,
    /// For each page, one bit: whether it is in the read cache.
    in_read_cache: Vec<u64>,
}

impl Room {
    /// Creates an empty buffer for a policy with this `setup`, and a read cache of `read_capacity` pages.
    pub fn new(policy: AnyPolicy, setup: &Setup, read_capacity: u32) -> Room {
        Room {
            is_users: policy.is_users(),
            policy,
            capacity: setup.capacity,
            pages: 0,
            read_capacity,
            read_pages: 0,
            read_list: List::default(),
            aside: Vec::new(),
            in_read_cache: Vec::new(),
        }
    }

    /// Replaces the policy. The new policy is notified of the pages in the read cache. It has no pages of its own yet.
    pub fn exchange(&mut self, device: &dyn DeviceView, mut policy: AnyPolicy) {
        for page in self.read_list.iter_oldest_first() {
            policy.read_cache_changed(device.lpn(page), true);
        }
        self.is_users = policy.is_users();
        self.policy = policy;
        self.aside.clear();
        self.pages = 0;
    }

    /// Whether the page is in the separate read cache.
    #[inline(always)]
    pub fn in_read_cache(&self, page: PageId) -> bool {
        self.read_capacity > 0
            && (self.in_read_cache.get(page.0 as usize / 64))
                .is_some_and(|word| word >> (page.0 % 64) & 1 == 1)
    }

    #[inline]
    fn set_in_read_cache(&mut self, page: PageId, is: bool) {
        reach(&mut self.in_read_cache, page.0 as usize / 64, 0);
        let word = &mut self.in_read_cache[page.0 as usize / 64];
        *word = *word & !(1 << (page.0 % 64)) | u64::from(is) << (page.0 % 64);
    }

    /// Prefetches the data of the next victims: see [`Prefetch::prefetch_victims`].
    #[inline]
    pub fn prefetch_victims(&self, way: Way) -> [Option<PageId>; 3] {
        match way {
            Way::ReadCache => self.read_list.oldest_three(),
            _ => self.policy.prefetch_victims(),
        }
    }

    /// Returns where a page that misses is put.
    #[inline(always)]
    pub fn way(&self, access: &Access) -> Way {
        if access.write {
            Way::Policy
        } else if self.read_capacity > 0 {
            Way::ReadCache
        } else if self.policy.admits(access) {
            Way::Policy
        } else {
            Way::Past
        }
    }

    /// Whether a page must be evicted before the page of `incoming` can be inserted. `way` is the place of insertion.
    #[inline(always)]
    pub fn is_full(&self, way: Way, incoming: &Access) -> bool {
        match way {
            Way::Past => false,
            Way::Policy => self.pages == self.capacity || self.policy.lacks_room(incoming),
            Way::ReadCache => self.read_pages == self.read_capacity,
        }
    }

    /// Returns the victim that a scan of the policy's recency list finds. Used for checks. Returns `None` if the policy
    /// has no single list, or if the scan finds no page.
    pub fn victim_by_scan(&mut self, device: &dyn DeviceView, way: Way) -> Option<PageId> {
        match way {
            Way::Policy => self.policy.victim_by_scan(device),
            Way::ReadCache | Way::Past => None,
        }
    }

    /// Chooses victims in a full buffer and adds them to `out`. Returns false if all candidates are in flight.
    #[inline(always)]
    pub fn evict(
        &mut self,
        device: &dyn DeviceView,
        way: Way,
        incoming: &Access,
        out: &mut Eviction,
    ) -> bool {
        if way == Way::ReadCache {
            let mut pages = self.read_list.iter_oldest_first();
            let found = pages.find(|&page| !device.in_flight(page));
            drop(pages);
            let Some(page) = found else { return false };
            self.policy.arrives(incoming.lpn);
            self.leave_read_cache(page, device.lpn(page));
            out.one(page, 1);
            return true;
        }
        // A user's policy may choose pages in flight. These are set aside, and the policy no longer has them. If fewer
        // pages are in flight than are cached, the policy still has a page that can be evicted.
        while device.pages_in_flight() < self.pages {
            if !self.policy.evict(device, incoming, Skip::Nothing, out) {
                break;
            }
            if self.is_users && device.pages_in_flight() > 0 {
                self.keep_in_flight(device, incoming, out);
            }
            if !out.victims.is_empty() {
                self.pages -= out.victims.len() as u32;
                return true;
            }
        }
        false
    }

    /// Whether pages that the host reads enter the policy instead of a separate read cache.
    #[inline(always)]
    pub fn takes_reads(&self) -> bool {
        self.read_capacity == 0
    }

    /// Returns the policy's list if the next victim can be taken from it directly. The victim is [`Aged::next`], unless
    /// this page is in flight. Returns `None` unless the policy has a single recency list, the buffer is full, and all
    /// pages that searches have skipped are in flight.
    #[inline(always)]
    pub fn full_in_order(&mut self) -> Option<&mut Aged> {
        let list = self.policy.in_order()?;
        (self.pages >= self.capacity && list.waits_for_all_passed()).then_some(list)
    }

    /// Whether the choice of victims may depend on the chips of the flash copies. If the policy has a single recency
    /// list, the choice does not depend on the chips.
    #[inline(always)]
    pub fn heeds_chips(&mut self) -> bool {
        self.policy.in_order().is_none()
    }

    /// Whether the policy must be notified when the chip of the flash copy of `page` changes, or when `page` becomes or
    /// stops being in flight.
    #[inline(always)]
    pub fn heeds_move(&mut self, page: PageId) -> bool {
        self.policy.heeds_move(page)
    }

    /// Removes the pages in flight from the victims, and sets them aside.
    #[inline(never)]
    fn keep_in_flight(&mut self, device: &dyn DeviceView, incoming: &Access, out: &mut Eviction) {
        let aside = &mut self.aside;
        out.victims.retain(|&page| {
            let in_flight = device.in_flight(page);
            if in_flight {
                let access = Access {
                    lpn: device.lpn(page),
                    write: device.dirty(page),
                    dirty: device.dirty(page),
                    request: incoming.request,
                    request_pages: 1,
                };
                aside.push((page, access));
            }
            !in_flight
        });
    }

    /// Returns the position of a page in `aside`, the list of pages set aside.
    #[inline(always)]
    fn aside(&self, page: PageId) -> Option<usize> {
        self.aside.iter().position(|&(aside, _)| aside == page)
    }

    /// Notifies the policy of a change that may affect the chip of the page's flash copy, or whether the page is in
    /// flight.
    #[inline(always)]
    pub fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        if self.in_read_cache(page) {
            return;
        }
        match self.aside.is_empty() {
            true => self.policy.moved(device, page),
            false => self.moved_aside(device, page),
        }
    }

    /// If the page was set aside and is no longer in flight, inserts it into the policy again. For any other page,
    /// notifies the policy of the change.
    #[inline(never)]
    fn moved_aside(&mut self, device: &dyn DeviceView, page: PageId) {
        let Some(at) = self.aside(page) else {
            return self.policy.moved(device, page);
        };
        if !device.in_flight(page) {
            let (_, access) = self.aside.remove(at);
            self.policy.insert(device, page, &access);
        }
    }

    /// Inserts a page into the policy or the read cache.
    #[inline(always)]
    pub fn insert(&mut self, device: &dyn DeviceView, way: Way, page: PageId, access: &Access) {
        match way {
            Way::Past => {}
            Way::Policy => {
                self.pages += 1;
                self.policy.insert(device, page, access);
            }
            Way::ReadCache => {
                self.set_in_read_cache(page, true);
                self.read_pages += 1;
                self.read_list.push_newest(page);
                self.policy.read_cache_changed(access.lpn, true);
            }
        }
    }

    /// Records an access to a cached page.
    #[inline]
    pub fn hit(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        if self.in_read_cache(page) {
            self.read_list.remove(page);
            self.read_list.push_newest(page);
        } else if let Some(at) = self.aside(page) {
            self.aside[at].1 = *access;
        } else {
            self.policy.hit(device, page, access);
        }
    }

    /// Removes a page for another reason than its eviction, such as a trim.
    pub fn forget(&mut self, page: PageId, lpn: Lpn) {
        if self.in_read_cache(page) {
            self.leave_read_cache(page, lpn);
        } else {
            self.pages -= 1;
            match self.aside(page) {
                Some(at) => drop(self.aside.remove(at)),
                None => self.policy.forget(page),
            }
        }
    }

    /// Removes a page from the read cache because the host writes it. The caller then inserts the new contents into the
    /// policy.
    pub fn take_over(&mut self, page: PageId, lpn: Lpn) {
        self.policy.arrives(lpn);
        self.leave_read_cache(page, lpn);
    }

    fn leave_read_cache(&mut self, page: PageId, lpn: Lpn) {
        self.set_in_read_cache(page, false);
        self.read_pages -= 1;
        self.read_list.remove(page);
        self.policy.read_cache_changed(lpn, false);
    }

    /// Returns the state in the notation of `policy trace`. The state of the read cache is last, if there is one.
    pub fn state(&self, device: &dyn DeviceView) -> String {
        let state = self.policy.state(device);
        if self.read_capacity == 0 {
            return state;
        }
        let mut pages: Vec<String> = self
            .read_list
            .iter_oldest_first()
            .map(|page| device.lpn(page).0.to_string())
            .collect();
        pages.reverse();
        format!("{state} RC[{}]", pages.join(" "))
    }
}
