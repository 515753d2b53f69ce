//! What a replacement policy is, what it may ask of the device, and the policies there are.

use super::{Cflru, Gcar, Lru};
use crate::spec;
use crate::units::{ChipId, Lpn, Time};

/// A page in the buffer; small numbers, reused when a page leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageId(pub u32);

/// All that a policy may ask of the device (policies.md 0.7): what makes policies comparable.
pub trait DeviceView {
    /// Whether a cached page differs from flash.
    fn dirty(&self, page: PageId) -> bool;
    /// The logical page cached.
    fn lpn(&self, page: PageId) -> Lpn;
    /// The chip that holds the page's flash copy (with static placement also before it has one).
    fn chip(&self, page: PageId) -> Option<ChipId>;
    /// The chip is collecting garbage now.
    fn in_gc(&self, chip: ChipId) -> bool;
    /// How many chips are collecting, and how many there are.
    fn chips_in_gc(&self) -> (u32, u32);
    /// Time until the chip has done what it has to do: ECR's CQCT, Eqs 1-4.
    fn drain_time(&self, chip: ChipId) -> Time;
    /// The chip has no operation and none waits.
    fn chip_idle(&self, chip: ChipId) -> bool;
    /// Free blocks of the chip.
    fn free_blocks(&self, chip: ChipId) -> u32;
}

/// A replacement policy: it ranks pages and names victims, and does nothing else.
///
/// Contract: the device calls `insert` once for each page that comes in, `touch` on every hit,
/// `cleaned` when a page that stays was written back, and `remove` when a page leaves, which is
/// always so after `victim` named it. A policy keeps what it likes per [`PageId`], in arrays.
pub trait Policy {
    /// A page came in.
    fn insert(&mut self, page: PageId, dirty: bool);
    /// A cached page was accessed; `dirty` is its state after the access.
    fn touch(&mut self, page: PageId, dirty: bool);
    /// A page leaves.
    fn remove(&mut self, page: PageId);
    /// A dirty page was written back and stays.
    fn cleaned(&mut self, page: PageId);
    /// The first page in the policy's order of eviction that `accept` takes; without changing the
    /// order. `None` only if `accept` takes none.
    fn victim<V: DeviceView>(
        &mut self,
        device: &V,
        accept: impl FnMut(PageId) -> bool,
    ) -> Option<PageId>;
    /// Pages likely to be named next, soonest first: a hint that lets the device load what their
    /// write-back will touch.
    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        [None; 3]
    }
    /// The pages in canonical order, most recent first: for tests and traces.
    fn order(&self) -> Vec<PageId>;
    /// What the policy counted: name and value.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    /// Starts the counters at zero.
    fn reset_counters(&mut self) {}
}

/// Every policy of the model; dispatch by match, no call through a pointer.
#[derive(Clone, Debug)]
pub(crate) enum AnyPolicy {
    Lru(Lru),
    Cflru(Cflru),
    GcarLru(Gcar<Lru>),
    GcarCflru(Gcar<Cflru>),
}

macro_rules! each {
    ($self:expr, $p:ident => $call:expr) => {
        match $self {
            AnyPolicy::Lru($p) => $call,
            AnyPolicy::Cflru($p) => $call,
            AnyPolicy::GcarLru($p) => $call,
            AnyPolicy::GcarCflru($p) => $call,
        }
    };
}

impl AnyPolicy {
    pub fn new(spec: &spec::Policy) -> AnyPolicy {
        match spec {
            spec::Policy::Lru => AnyPolicy::Lru(Lru::default()),
            spec::Policy::Cflru { window_pages } => {
                AnyPolicy::Cflru(Cflru::new(*window_pages as usize))
            }
            spec::Policy::Gcar { base } => match AnyPolicy::new(base) {
                AnyPolicy::Lru(base) => AnyPolicy::GcarLru(Gcar::new(base)),
                AnyPolicy::Cflru(base) => AnyPolicy::GcarCflru(Gcar::new(base)),
                filtered => filtered,
            },
        }
    }
}

impl Policy for AnyPolicy {
    #[inline]
    fn insert(&mut self, page: PageId, dirty: bool) {
        each!(self, p => p.insert(page, dirty))
    }
    #[inline]
    fn touch(&mut self, page: PageId, dirty: bool) {
        each!(self, p => p.touch(page, dirty))
    }
    #[inline]
    fn remove(&mut self, page: PageId) {
        each!(self, p => p.remove(page))
    }
    fn cleaned(&mut self, page: PageId) {
        each!(self, p => p.cleaned(page))
    }
    #[inline]
    fn victim<V: DeviceView>(
        &mut self,
        device: &V,
        accept: impl FnMut(PageId) -> bool,
    ) -> Option<PageId> {
        each!(self, p => p.victim(device, accept))
    }
    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        each!(self, p => p.next_victims())
    }
    fn order(&self) -> Vec<PageId> {
        each!(self, p => p.order())
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        each!(self, p => p.counters())
    }
    fn reset_counters(&mut self) {
        each!(self, p => p.reset_counters())
    }
}
