//! Accesses that wait for a page. Each page has a list of them, in order of arrival.

use super::page::{Index, Residency};
use crate::device::cache::Cache;
use crate::device::flash::OpTimes;
use crate::device::requests::ReqId;
use crate::device::{Backend, Device};
use crate::nand::Done;
use crate::request::Breakdown;
use crate::request::Status;
use crate::units::Time;

/// Event for which an access waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// The page gets its slot. The access then writes to the page.
    Slot,
    /// The page gets its slot. The access then writes to the page, which is then programmed.
    SlotThenProgram,
    /// The given sectors of the page (stored as bits) are all valid.
    Data(u64),
    /// The given number of programs of the page have ended.
    Programs(u32),
}

/// A waiting access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub request: ReqId,
    pub since: Time,
    pub wants: Wants,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    waiter: Waiter,
    /// The next entry of the list. The list is circular: the entry after the last one is the first one.
    next: u32,
}

/// The list of waiters of one page, given by its last entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WaitList(Option<Index>);

impl WaitList {
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_none()
    }
}

/// The waiters of all pages.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiters {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl Waiters {
    /// Appends a waiter to a list.
    pub fn push(&mut self, list: &mut WaitList, waiter: Waiter) {
        let id = self.free.pop().unwrap_or(self.entries.len() as u32);
        let next = match list.0 {
            Some(last) => std::mem::replace(&mut self.entries[last.get() as usize].next, id),
            None => id,
        };
        let entry = Entry { waiter, next };
        match self.entries.get_mut(id as usize) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        list.0 = Some(Index::new(id));
    }

    /// Removes and returns the first waiter of a list.
    #[inline]
    pub fn pop(&mut self, list: &mut WaitList) -> Option<Waiter> {
        let last = list.0?.get();
        let first = self.entries[last as usize].next;
        let Entry { waiter, next } = self.entries[first as usize];
        if first == last {
            list.0 = None;
        } else {
            self.entries[last as usize].next = next;
        }
        self.free.push(first);
        Some(waiter)
    }

    /// If a list has exactly one waiter, returns it.
    #[inline(always)]
    pub fn lone(&self, list: WaitList) -> Option<&Waiter> {
        let last = list.0?.get();
        let entry = &self.entries[last as usize];
        (entry.next == last).then_some(&entry.waiter)
    }

    /// Returns the waiters of a list in order.
    pub fn iter(&self, list: WaitList) -> impl Iterator<Item = &Waiter> {
        let last = list.0.map(|last| last.get());
        let first = last.map(|last| self.entries[last as usize].next);
        let next = move |&at: &u32| (Some(at) != last).then(|| self.entries[at as usize].next);
        std::iter::successors(first, next).map(|at| &self.entries[at as usize].waiter)
    }
}

impl Cache {
    /// Lets an access wait for a page, behind the accesses that wait for it already.
    #[inline]
    pub(super) fn wait(&mut self, page: u32, request: ReqId, since: Time, wants: Wants) {
        let waiter = Waiter {
            request,
            since,
            wants,
        };
        let list = &mut self.pages[page as usize].waiters;
        self.waiters.push(list, waiter);
    }

    fn waiters_of(&self, page: u32) -> impl Iterator<Item = &Waiter> {
        self.waiters.iter(self.pages[page as usize].waiters)
    }

    /// Whether a flush or forced write waits for a program of the page.
    pub(super) fn is_program_awaited(&self, page: u32) -> bool {
        self.waiters_of(page)
            .any(|waiter| matches!(waiter.wants, Wants::Programs(_)))
    }

    /// Whether exactly one access waits for the page, and the page lacks sectors that this access needs. The access
    /// cannot be served then.
    #[inline(always)]
    pub(super) fn lacks_for_lone_waiter(&self, page: u32) -> bool {
        let p = &self.pages[page as usize];
        let lone = self.waiters.lone(p.waiters);
        lone.is_some_and(|w| matches!(w.wants, Wants::Data(sectors) if sectors & !p.valid != 0))
    }

    /// Whether an access waits for sectors that are missing in the page.
    pub(super) fn is_fill_awaited(&self, page: u32) -> bool {
        let lacks = !self.pages[page as usize].valid;
        self.waiters_of(page)
            .any(|waiter| matches!(waiter.wants, Wants::Data(sectors) if sectors & lacks != 0))
    }

    /// Returns the latency breakdown of an access that has waited for this page since `since`. `done` is the flash
    /// operation, if any, that ended the wait.
    pub(super) fn wait_parts(
        &self,
        page: u32,
        since: Time,
        done: Option<&Done>,
        now: Time,
    ) -> Breakdown {
        let waited = now - since;
        // If the access arrived after the operation had begun, its wait includes only the rest of the operation.
        let mut parts = done.map_or(Breakdown::default(), |done| {
            OpTimes::of(done, done.op.is_read()).parts_within(waited, now)
        });
        // Before the operation, the access first waited for the slot, and then for other operations on the page.
        let before = waited - parts.total();
        let slot_at = self.pages[page as usize].slot_at;
        let slot = before.min(slot_at.saturating_sub(since));
        parts.queue_host += before - slot;
        if slot > Time::ZERO {
            self.set_slot_wait_of(page, slot, &mut parts);
        }
        parts
    }
}

impl<B: Backend> Device<B> {
    /// Completes the accesses that have waited for the page and whose condition ([`Wants`]) is now met. `done` is the
    /// flash operation that has just ended, if any. `program` is whether this operation was a program.
    #[inline(never)]
    pub(super) fn serve_waiters(&mut self, id: u32, done: Option<&Done>, program: bool) {
        let now = self.now;
        let failed = done.is_some_and(|done| done.failed);
        let refused = program && done.is_some_and(|done| !done.written);
        let mut waiters = std::mem::take(&mut self.page(id).waiters);
        while let Some(w) = self.cache.waiters.pop(&mut waiters) {
            let p = self.page(id);
            let valid = p.valid;
            let stable = !p.dirty && !p.is_programming();
            let has_slot = matches!(p.residency, Residency::Filling(_) | Residency::Ready(_));
            if refused && matches!(w.wants, Wants::Programs(_)) {
                self.requests[w.request].status = Status::ReadOnly;
            }
            let again = match w.wants {
                Wants::Slot | Wants::SlotThenProgram | Wants::Data(_) if !has_slot => Some(w.wants),
                Wants::Slot => None,
                Wants::SlotThenProgram => {
                    self.want_flush_since(w.request, id, w.since);
                    continue;
                }
                Wants::Data(sectors) if sectors & !valid == 0 => None,
                Wants::Data(_) | Wants::Programs(_) if failed => {
                    self.requests[w.request].status = Status::Failed;
                    None
                }
                Wants::Data(_) => Some(w.wants),
                Wants::Programs(_) if stable => None,
                Wants::Programs(1) if program => None,
                Wants::Programs(n) if program => Some(Wants::Programs(n - 1)),
                Wants::Programs(_) => Some(w.wants),
            };
            match again {
                Some(wants) => self.cache.wait(id, w.request, w.since, wants),
                None => {
                    let parts = self.cache.wait_parts(id, w.since, done, now);
                    let is_logged = self.logs_buffer();
                    (self.cache).count_slot_wait(id, w.since, parts.slot(), is_logged);
                    self.page_done(w.request, parts);
                }
            }
        }
    }
}
