//! One type for all policies of the table in `policies/mod.rs`. The type is an enum: a call selects the policy with a
//! `match`, not through a pointer.

use super::age_index::Aged;
use super::entry::Entry;
use super::policy::{Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::units::{ChipId, Lpn, PageId, Stream, Time};

/// A policy that a user of the library implements: any [`Policy`] that can be cloned together with its device.
pub trait UserPolicy: Policy + Send + Sync {
    /// Returns a copy with its state.
    fn boxed_clone(&self) -> Box<dyn UserPolicy>;
}

impl<P: Policy + Clone + Send + Sync + 'static> UserPolicy for P {
    fn boxed_clone(&self) -> Box<dyn UserPolicy> {
        Box::new(self.clone())
    }
}

/// A user's policy behind a pointer.
pub(crate) struct User(pub Box<dyn UserPolicy>);

impl Clone for User {
    fn clone(&self) -> User {
        User(self.0.boxed_clone())
    }
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a user's policy")
    }
}

macro_rules! declare {
    (() $($file:ident::$Type:ident $(+ $Prefetch:ident)?)+) => {
        /// Any policy that is not a filter over another policy. `repr(u8)` makes calls cheaper.
        #[derive(Clone, Debug)]
        #[repr(u8)]
        pub(crate) enum Base {
            $($Type(super::policies::$file::$Type),)+
            User(User),
        }

        $(impl From<super::policies::$file::$Type> for Base {
            fn from(policy: super::policies::$file::$Type) -> Base {
                Base::$Type(policy)
            }
        })+

        /// Returns the files' descriptions of their policies.
        pub(super) fn registered() -> impl Iterator<Item = &'static [Entry]> {
            [$(super::policies::$file::ENTRIES),+].into_iter()
        }
    };
}

policies!(declare!());

macro_rules! dispatch {
    (($base:expr, $p:ident => $call:expr) $($file:ident::$Type:ident $(+ $Prefetch:ident)?)+) => {
        match $base {
            $(Base::$Type($p) => $call,)+
            Base::User(User($p)) => $call,
        }
    };
}

macro_rules! each {
    ($base:expr, $p:ident => $call:expr) => {
        policies!(dispatch! ($base, $p => $call))
    };
}

impl Policy for Base {
    #[inline(always)]
    fn admits(&self, access: &Access) -> bool {
        each!(self, p => p.admits(access))
    }
    #[inline(always)]
    fn lacks_room(&self, incoming: &Access) -> bool {
        each!(self, p => p.lacks_room(incoming))
    }
    #[inline(always)]
    fn insert(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        each!(self, p => p.insert(device, page, access))
    }
    #[inline]
    fn hit(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        each!(self, p => p.hit(device, page, access))
    }
    fn forget(&mut self, page: PageId) {
        each!(self, p => p.forget(page))
    }
    fn cleaned(&mut self, device: &dyn DeviceView, page: PageId) {
        each!(self, p => p.cleaned(device, page))
    }
    #[inline(always)]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        each!(self, p => p.moved(device, page))
    }
    #[inline(always)]
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        each!(self, p => p.evict(device, incoming, skip, out))
    }
    fn takes_whole_blocks(&self) -> bool {
        each!(self, p => p.takes_whole_blocks())
    }
    fn block_of_room(&self, lpn: Lpn) -> Option<u32> {
        each!(self, p => p.block_of_room(lpn))
    }
    fn room_kept(&self) -> u32 {
        each!(self, p => p.room_kept())
    }
    fn follows_times(&self) -> bool {
        each!(self, p => p.follows_times())
    }
    fn wants_idle(&self) -> bool {
        each!(self, p => p.wants_idle())
    }
    fn idle(
        &mut self,
        device: &dyn DeviceView,
        chip: ChipId,
        in_flight: u32,
        busy: &dyn Fn(PageId) -> bool,
    ) -> Option<PageId> {
        each!(self, p => p.idle(device, chip, in_flight, busy))
    }
    fn ahead_after(&self) -> Option<Time> {
        each!(self, p => p.ahead_after())
    }
    fn ahead(
        &mut self,
        device: &dyn DeviceView,
        in_flight: u32,
        busy: &dyn Fn(PageId) -> bool,
    ) -> Option<PageId> {
        each!(self, p => p.ahead(device, in_flight, busy))
    }
    #[inline(always)]
    fn stream(&self, page: PageId, lpn: Lpn) -> Stream {
        each!(self, p => p.stream(page, lpn))
    }
    fn arrives(&mut self, lpn: Lpn) {
        each!(self, p => p.arrives(lpn))
    }
    fn read_cache_changed(&mut self, lpn: Lpn, present: bool) {
        each!(self, p => p.read_cache_changed(lpn, present))
    }
    fn state(&self, device: &dyn DeviceView) -> String {
        each!(self, p => p.state(device))
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        each!(self, p => p.counters())
    }
    fn reset_counters(&mut self) {
        each!(self, p => p.reset_counters())
    }
}

impl Base {
    /// Returns the recency list of the policy, if the policy orders its pages independently of the chips. The victim is
    /// then the least recent page that is not in flight, and an incoming page becomes the most recent one.
    #[inline(always)]
    pub fn in_order(&mut self) -> Option<&mut Aged> {
        match self {
            Base::Lru(lru) => Some(lru.list_mut()),
            Base::Fifo(fifo) => Some(fifo.list_mut()),
            _ => None,
        }
    }
}

macro_rules! prefetch {
    (($base:expr, $method:ident, $none:expr) $($file:ident::$Type:ident $(+ $Prefetch:ident)?)+) => {
        match $base {
            $($(Base::$Type(policy) => $Prefetch::$method(policy),)?)+
            _ => $none,
        }
    };
}

impl Prefetch for Base {
    #[inline(always)]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        policies!(prefetch!(self, prefetch_victims, [None; 3]))
    }
    #[inline(always)]
    fn third_victim(&self) -> Option<PageId> {
        policies!(prefetch!(self, third_victim, None))
    }
}
