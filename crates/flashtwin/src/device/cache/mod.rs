//! The buffer of a running device: cached pages between host requests and flash.
//!
//! A page in the buffer uses a *slot* of the buffer memory. When a page is evicted, its slot goes to its *slot
//! successor*: the page of the access that needed room. In blocking mode, the successor receives the slot when the
//! evicted page has been programmed. In background mode, it receives the slot when the write-back starts (D-2). If
//! several pages are evicted together, their slots go to the waiting accesses in order of arrival (D-41).
//!
//! A page is *in flight* while it lacks its slot or its data. Pages in flight are not evicted. If all candidates for
//! eviction are in flight, accesses that need room wait in order (D-36). An evicted page stays in the directory until
//! it is released, and serves reads until then. A write of the same logical page creates a new page, which is
//! programmed after the evicted one.
//!
//! | file | content |
//! |---|---|
//! | `page`, `page_state` | the record of a page; its states, and the steps from one to the next |
//! | `waiters`, `slot_wait` | accesses that wait for a page; parts of a wait for a slot |
//! | `access` | hits, misses, reads of cached pages |
//! | `in_order` | the fast path of a miss |
//! | `in_flight` | pages that cannot be evicted yet, and the accesses that wait for one |
//! | `evict`, `groups` | victims; pages that are written together |
//! | `unsettled` | pages whose chip may have changed since the last report to the policy |
//! | `ahead` | pages that are written back ahead of their eviction |
//! | `claims` | slots under policies whose blocks occupy the room of all their pages |
//! | `flush`, `trim`, `power_cut` | flushes, trims, power loss |
//! | `exchange_policy`, `view`, `log` | replacement of the policy at run time; the policy's view of the device; the log |

mod access;
mod ahead;
mod claims;
mod evict;
mod exchange_policy;
mod flush;
mod groups;
mod in_flight;
mod in_order;
mod log;
mod page;
mod page_state;
mod pause;
mod power_cut;
mod slot_wait;
mod trim;
mod unsettled;
mod view;
mod waiters;

use std::collections::VecDeque;

use super::requests::low_bits;
use super::{Front, NO_HOME};
use crate::buffer::{
    AnyPolicy, ChosenPolicy, Directory, Eviction, PageId, Policy, Room, UserPolicy,
};
use crate::memory::TrustedTable;
use crate::metrics::FlashReport;
use crate::nand::Asked;
use crate::request::Status;
use crate::spec::{self, EvictMode};
use crate::units::{Lpn, Time};
use ahead::Quiet;
use claims::Claims;
use groups::Group;
use in_flight::HeldUp;
pub use log::BufferEvent;
use page::{Page, Pool, Residency};
use pause::Pauses;
pub use power_cut::PowerCut;
use slot_wait::Ended;
use waiters::Waiters;

/// Counters of the buffer.
#[derive(Clone, Debug, Default)]
struct Counters {
    evicted_clean: u64,
    evicted_dirty: u64,
    evicted_dirty_in_gc: u64,
    /// Number of evictions, that is, of accesses for which victims were chosen. `inspected` is the number of list
    /// entries that were inspected to choose them. The separate read cache counts, too.
    evictions: u64,
    inspected: u64,
    /// Number of evictions with this many dirty pages: 1, 2, 3-4, 5-8, 9-16, 17-32, 33-64, more than 64.
    destages: [u64; 8],
    lost_pages: u64,
    slot_waits: u64,
    /// Sum of the waits for slots, in picoseconds. On an overloaded device, the sum may exceed the range of [`Time`].
    slot_wait_total: u128,
    /// Total time for which write-backs waited because the limit on write-backs in flight was reached. A wait that has
    /// not ended is not included (`Cache::at_limit_since`).
    at_limit: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// Whether the device has a buffer. If not, no other field is used.
    pub present: bool,
    room: Room,
    eviction: Eviction,
    directory: Directory,
    pages: TrustedTable<Page>,
    free_pages: Vec<u32>,
    /// Free slots, by [`Pool`].
    free_slots: [u32; 2],
    /// Slots of the policy's pages, under a policy with blocks that each occupy the room of all their pages. In this
    /// case, `free_slots` has no meaning for [`Pool::Policy`].
    claims: Option<Box<Claims>>,
    /// For each [`Pool`], the pages that wait for the next slot to become free. (Other pages wait for the slot of a
    /// certain page.)
    waiting: [VecDeque<u32>; 2],
    /// Number of pages in flight that the policy holds.
    in_flight: u32,
    /// Accesses that wait for an evictable page, in their order.
    held_up: VecDeque<HeldUp>,
    /// Whether a waiting access may succeed now, because a page has become evictable.
    may_retry: bool,
    waiters: Waiters,
    /// The flash operation that ended last among those of cached pages.
    ended: Ended,
    /// For each page, the flash operation that had ended last when the page got its slot. Valid only if accesses were
    /// waiting for the page at this instant.
    slot_ends: Vec<Ended>,
    /// For each page, the placement that the host requested in its last write. Empty if the flash does not use
    /// placements.
    asked: Vec<Asked>,
    /// Whether the flash uses the placement of writes.
    heeds_placement: bool,
    /// Expected victims of later evictions, as a hint for prefetches: the fourth, the third and the second from now. If
    /// the policy knows only its third victim, this page also stands for the fourth. Set at each eviction.
    ahead: [PageId; 3],
    groups: Vec<Group>,
    free_groups: Vec<u32>,
    /// One bit per page: whether flash lacks its contents.
    unstable: TrustedTable<u64>,
    /// Pages whose unit may have changed without a report to the policy (`unsettled`). Pages that no longer belong here
    /// may still be in the list.
    unsettled: Vec<u32>,
    /// Largest number of write-backs in flight in background mode, including those ahead of eviction. `None` in
    /// blocking mode.
    background: Option<u32>,
    writing_back: u32,
    write_back_queue: VecDeque<u32>,
    /// Regular pauses in which programs are held; `None` if the buffer has none.
    pauses: Option<Box<Pauses>>,
    /// Instant since which write-backs have been waiting because the limit on write-backs in flight is reached. `None`
    /// if none waits.
    at_limit_since: Option<Time>,
    /// Number of write-backs in flight that were started ahead of eviction.
    active_write_backs: u32,
    /// Whether the policy wants to be notified of idle chips in order to write pages back.
    uses_idle: bool,
    /// The timer for policies that write pages back after a time without accesses of the host.
    quiet: Quiet,
    /// All sectors of a page, as bits.
    whole: u64,
    /// Whether the memory survives a power loss.
    pub protected: bool,
    counters: Counters,
    /// Status with which the next flush or forced write fails. Set if acknowledged data have been lost and no request
    /// has reported the loss by failing yet (D-148).
    unreported_error: Option<Status>,
    /// Pages that could not be written to flash since a power loss. `None` except while protected memory is being
    /// written to flash after a power loss.
    lost: Option<Vec<Lpn>>,
    log: Option<Vec<BufferEvent>>,
}

impl Cache {
    pub fn new(front: &Front, user: Option<Box<dyn UserPolicy>>) -> Cache {
        let absent = spec::Buffer {
            capacity_pages: 0,
            policy: ChosenPolicy::lru(),
            read_cache_pages: 0,
            evict: EvictMode::Blocking,
            background_depth: 0,
            pause: Time::ZERO,
            pause_every: Time::ZERO,
            pause_pages_per_s: 0,
            partial: spec::Partial::Round,
            latency: Time::ZERO,
            write_latency: Time::ZERO,
            read_cache_latency: Time::ZERO,
            power_loss_protection: false,
            non_volatile: false,
        };
        let b = front.buffer.unwrap_or(&absent);
        let setup = &front.setup;
        let round = b.partial == spec::Partial::Round;
        let slots = b.capacity_pages as usize + b.read_cache_pages as usize;
        let policy = match user {
            Some(policy) => AnyPolicy::user(policy),
            None => AnyPolicy::of(&b.policy, setup),
        };
        let has_claims = policy.takes_whole_blocks();
        Cache {
            claims: has_claims
                .then(|| Box::new(Claims::new(b.capacity_pages, setup.pages_per_block))),
            present: front.buffer.is_some(),
            uses_idle: policy.wants_idle(),
            quiet: Quiet::new(&policy),
            room: Room::new(policy, setup, b.read_cache_pages),
            eviction: Eviction::default(),
            directory: Directory::new(slots),
            // SAFETY: indexed by numbers of pages. `add_page` assigns these numbers, and the module `evict` checks
            // those that a policy names as victims.
            pages: unsafe { TrustedTable::new(Vec::with_capacity(slots)) },
            free_pages: Vec::new(),
            free_slots: [b.capacity_pages, b.read_cache_pages],
            waiting: Default::default(),
            in_flight: 0,
            held_up: VecDeque::new(),
            may_retry: false,
            waiters: Waiters::default(),
            ended: Ended::default(),
            slot_ends: Vec::new(),
            asked: Vec::new(),
            heeds_placement: front.heeds_placement,
            ahead: [PageId(0); 3],
            groups: Vec::new(),
            free_groups: Vec::new(),
            // SAFETY: has one bit for each of `pages`.
            unstable: unsafe { TrustedTable::new(Vec::new()) },
            unsettled: Vec::new(),
            background: match b.evict {
                EvictMode::Blocking => None,
                EvictMode::Background => Some(b.background_depth),
            },
            writing_back: 0,
            write_back_queue: VecDeque::new(),
            pauses: Pauses::new(b),
            at_limit_since: None,
            active_write_backs: 0,
            whole: if round {
                u64::MAX
            } else {
                low_bits(u64::from(front.page_bytes) / 512)
            },
            protected: b.is_protected(),
            counters: Counters::default(),
            unreported_error: None,
            lost: None,
            log: None,
        }
    }

    /// Whether the policy writes pages back after a silence (a time without accesses of the host).
    pub fn writes_ahead(&self) -> bool {
        self.quiet.is_used()
    }

    /// Whether the buffer meets the conditions of the plain path: blocking mode, a policy that does not write back
    /// when chips become idle, blocks that occupy only the room of their cached pages, and no log.
    pub fn is_plain(&self) -> bool {
        let waits = self.background.is_none() && !self.uses_idle;
        self.present && waits && self.claims.is_none() && !self.is_logged()
    }

    /// Whether the policy requires the record of the chips in which the load or the drain time (time until all queued
    /// work is done) has changed.
    pub fn follows_times(&self) -> bool {
        self.room.policy.follows_times()
    }

    /// Prefetches the data that an access to `lpn` reads.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        self.directory.prefetch(lpn);
    }

    /// Returns the newest cached copy of `lpn`.
    #[inline(always)]
    fn find(&self, lpn: Lpn) -> Option<PageId> {
        self.directory.get(lpn)
    }

    pub fn report(&self, report: &mut FlashReport) {
        let c = &self.counters;
        let words = self.unstable.iter();
        report.dirty_pages += words.map(|word| u64::from(word.count_ones())).sum::<u64>();
        report.evicted_clean = c.evicted_clean;
        report.evicted_dirty = c.evicted_dirty;
        report.evicted_dirty_in_gc = c.evicted_dirty_in_gc;
        report.evictions = c.evictions;
        report.entries_inspected = c.inspected;
        report.destages = c.destages;
        report.pages_lost = c.lost_pages;
        report.slot_waits = c.slot_waits;
        report.slot_wait_total = c.slot_wait_total;
        report.policy_counters = self
            .room
            .policy
            .counters()
            .into_iter()
            .map(|(name, n)| (name.to_owned(), n))
            .collect();
    }

    /// Returns the limit on write-backs in flight, and the time for which write-backs have waited because of it since
    /// the last reset of the counters. `None` if there is no limit, or if no write-back waited.
    pub fn write_back_limit(&self, now: Time) -> Option<(u32, Time)> {
        let running = self.at_limit_since.map_or(Time::ZERO, |since| now - since);
        let waited = self.counters.at_limit + running;
        Some((self.background?, waited)).filter(|_| waited > Time::ZERO)
    }

    pub fn reset_counters(&mut self, now: Time) {
        self.counters = Counters::default();
        self.at_limit_since = self.at_limit_since.map(|_| now);
        self.room.policy.reset_counters();
    }

    // ---- tables ----

    #[inline(always)]
    fn add_page(&mut self, page: Page) -> u32 {
        let id = match self.free_pages.pop() {
            Some(id) => id,
            None => self.one_more_page(),
        };
        self.pages[id as usize] = page;
        id
    }

    /// Returns the placement of a page's last write.
    #[inline(always)]
    pub fn asked(&self, id: u32) -> Asked {
        self.asked.get(id as usize).copied().unwrap_or_default()
    }

    /// Adds a record to the table.
    #[cold]
    fn one_more_page(&mut self) -> u32 {
        self.pages.push(Page::new(Lpn(0), Pool::Policy, NO_HOME));
        self.slot_ends.push(Ended::default());
        if self.heeds_placement {
            self.asked.push(Asked::default());
        }
        if self.pages.len() > self.unstable.len() * 64 {
            self.unstable.push(0);
        }
        self.pages.len() as u32 - 1
    }

    /// Counts a wait of an access for the slot of page `id`. The wait began at `since` and took the time `slot`. A wait
    /// of zero is not counted.
    #[inline(always)]
    fn count_slot_wait(&mut self, id: u32, since: Time, slot: Time, is_logged: bool) {
        if slot > Time::ZERO {
            self.counters.slot_waits += 1;
            self.counters.slot_wait_total += u128::from(slot.0);
            if is_logged {
                self.log_wait(id, since, slot);
            }
        }
    }

    /// Marks the page as unstable: flash lacks its contents.
    #[inline(always)]
    fn set_unstable(&mut self, id: u32) {
        debug_assert!(self.pages[id as usize].is_unstable());
        self.unstable[id as usize / 64] |= 1 << (id % 64);
    }

    /// Marks the page as stable: flash has its contents.
    #[inline(always)]
    fn clear_unstable(&mut self, id: u32) {
        debug_assert!(!self.pages[id as usize].is_unstable());
        self.unstable[id as usize / 64] &= !(1 << (id % 64));
    }

    /// Marks the page as unstable if flash lacks its contents, otherwise as stable.
    #[inline(always)]
    fn note_stability(&mut self, id: u32) {
        let unstable = u64::from(self.pages[id as usize].is_unstable());
        let word = &mut self.unstable[id as usize / 64];
        *word = *word & !(1 << (id % 64)) | unstable << (id % 64);
    }

    /// Returns the cached pages (and those being written back) whose contents flash lacks.
    fn unstable_pages(&self) -> Vec<u32> {
        let mut ids = Vec::new();
        for (i, &word) in self.unstable.iter().enumerate() {
            let mut bits = word;
            while bits != 0 {
                ids.push(i as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        ids.retain(|&id| {
            let residency = self.pages[id as usize].residency;
            matches!(residency, Residency::Filling(_) | Residency::Ready(_))
        });
        ids
    }
}
