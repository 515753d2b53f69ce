//! The buffer at work: cached pages between host requests and flash.
//!
//! A page passes its slot on to its *slot successor*: the access that needed the slot. In blocking mode the successor
//! receives it when the page's program has completed, in background mode when its write-back starts (D-2). If several
//! pages are evicted together, their slots go to the waiting accesses, first come first served (D-41). A page in
//! flight, whose slot or data have not arrived, is not evicted; if all candidates are in flight, accesses wait in
//! their order (D-36). An evicted page stays in the directory until it is released: reads are served from it, and a
//! write creates a new page that is written back after it.
//!
//! | file | content |
//! |---|---|
//! | `page`, `page_state` | the record of a page; its states, and the steps from one to the next |
//! | `waiters`, `slot_wait` | accesses that wait for a page; parts of a wait for a slot |
//! | `access` | hits, misses, reads of what is cached |
//! | `in_order` | the usual miss, in short |
//! | `in_flight` | pages that cannot be evicted yet, and the accesses that wait for one |
//! | `evict`, `groups` | victims; pages that are written together |
//! | `claims` | slots where blocks take the room of all their pages |
//! | `flush`, `trim`, `power_cut` | flushes, trims, power loss |
//! | `exchange_policy`, `view`, `log` | another policy at run time; what a policy sees; events |

mod access;
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
mod power_cut;
mod slot_wait;
mod trim;
mod view;
mod waiters;

use std::collections::VecDeque;

use super::requests::low_bits;
use super::Front;
use crate::buffer::{
    AnyPolicy, ChosenPolicy, Directory, Eviction, PageId, Policy, Room, UserPolicy,
};
use crate::memory::TrustedTable;
use crate::metrics::FlashReport;
use crate::request::Status;
use crate::spec::{self, EvictMode};
use crate::units::{Lpn, Time};
use claims::Claims;
use groups::Group;
use in_flight::HeldUp;
pub use log::BufferEvent;
use page::{Page, Pool, Residency};
pub use power_cut::PowerCut;
use slot_wait::Ended;
use waiters::Waiters;

/// Counters of the buffer.
#[derive(Clone, Debug, Default)]
struct Counters {
    evicted_clean: u64,
    evicted_dirty: u64,
    evicted_dirty_in_gc: u64,
    /// Evictions for the sake of an access, and list entries inspected for that.
    evictions: u64,
    inspected: u64,
    /// Evictions by the number of dirty pages: 1, 2, 3-4, 5-8, 9-16, 17-32, 33-64, more.
    destages: [u64; 8],
    lost_pages: u64,
    slot_waits: u64,
    /// In picoseconds; wider than a `Time`, which the sum of the waits of an overloaded device exceeds.
    slot_wait_total: u128,
    /// Time in which write-backs waited for others to end, until `Cache::at_limit_since`.
    at_limit: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// Whether the device has a buffer; if not, nothing else here is used.
    pub present: bool,
    room: Room,
    eviction: Eviction,
    directory: Directory,
    pages: TrustedTable<Page>,
    free_pages: Vec<u32>,
    /// Free slots, by [`Pool`].
    free_slots: [u32; 2],
    /// Slots of [`Pool::Policy`] if blocks occupy the room of all their pages; they replace `free_slots`.
    claims: Option<Box<Claims>>,
    /// Pages that wait for a slot of no particular other page, by [`Pool`].
    waiting: [VecDeque<u32>; 2],
    /// Pages in flight that the policy holds.
    in_flight: u32,
    /// Accesses that wait until something may be evicted, in their order.
    held_up: VecDeque<HeldUp>,
    /// Whether a held-up access may succeed now, because a page has become evictable.
    may_retry: bool,
    waiters: Waiters,
    /// The flash operation of a cached page that ended last.
    ended: Ended,
    /// By page, what ended as it got its slot, if accesses waited for it then.
    slot_ends: Vec<Ended>,
    /// A hint at the pages that will be evicted: the fourth victim from now at the last eviction, then the third and
    /// the second.
    ahead: [PageId; 3],
    groups: Vec<Group>,
    free_groups: Vec<u32>,
    /// Pages whose contents flash does not have, as bits.
    unstable: TrustedTable<u64>,
    /// Largest number of write-backs at a time in background mode, of evicted pages and active ones; `None` in
    /// blocking mode.
    background: Option<u32>,
    writing_back: u32,
    write_back_queue: VecDeque<u32>,
    /// Start of the time in which write-backs wait for others to end; `None`: none waits.
    at_limit_since: Option<Time>,
    /// Active write-backs in flight, for policies that write back while a chip is idle.
    active_write_backs: u32,
    /// The policy writes back while chips are idle.
    uses_idle: bool,
    /// The chip of a page's flash copy may change while it is cached.
    chips_move: bool,
    /// All sectors of a page.
    whole: u64,
    /// The memory survives a power loss.
    pub protected: bool,
    counters: Counters,
    /// Status of the next flush or forced write, if acknowledged data are lost and no request has failed for that yet
    /// (D-148).
    unreported_error: Option<Status>,
    /// Pages lost since the power was cut, while protected memory is written.
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
            room: Room::new(policy, setup, b.read_cache_pages),
            eviction: Eviction::default(),
            directory: Directory::new(slots),
            // SAFETY: indexed by page; `add_page` assigns the numbers, and `evict` checks those that a policy names.
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
            ahead: [PageId(0); 3],
            groups: Vec::new(),
            free_groups: Vec::new(),
            // SAFETY: one bit for each of `pages`.
            unstable: unsafe { TrustedTable::new(Vec::new()) },
            background: match b.evict {
                EvictMode::Blocking => None,
                EvictMode::Background => Some(b.background_depth),
            },
            writing_back: 0,
            write_back_queue: VecDeque::new(),
            at_limit_since: None,
            active_write_backs: 0,
            chips_move: setup.stride_pages.is_none(),
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

    /// Whether the device has a buffer in blocking mode whose policy does not write back on its own and whose blocks
    /// occupy only the room of their pages, and nothing is logged.
    pub fn is_plain(&self) -> bool {
        let blocks = self.background.is_none() && !self.uses_idle;
        self.present && blocks && self.claims.is_none() && !self.is_logged()
    }

    /// Starts loading what an access to `lpn` will touch.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        self.directory.prefetch(lpn);
    }

    /// The newest cached copy of `lpn`.
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

    /// The limit on write-backs at a time, and the time since the counters were reset in which others waited for it.
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

    /// A record that there was not before.
    #[cold]
    fn one_more_page(&mut self) -> u32 {
        self.pages.push(Page::new(Lpn(0), Pool::Policy));
        self.slot_ends.push(Ended::default());
        if self.pages.len() > self.unstable.len() * 64 {
            self.unstable.push(0);
        }
        self.pages.len() as u32 - 1
    }

    /// An access to the page `id` has waited since `since` for a slot.
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
        ids.retain(|&id| {
            let residency = self.pages[id as usize].residency;
            matches!(residency, Residency::Filling(_) | Residency::Ready(_))
        });
        ids
    }
}
