//! Replacement policies: the trait, and their view of the device.

use crate::chips::{ChipChanges, ChipSet};
use crate::units::{ChipId, Lpn, PageId, Stream, Time};

/// One access to one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The logical page.
    pub lpn: Lpn,
    /// True for a write, false for a read.
    pub write: bool,
    /// Whether the cached page differs from its flash copy after the access.
    pub dirty: bool,
    /// Number of the host request; all pages of a request have the same number.
    pub request: u64,
    /// Pages of that request.
    pub request_pages: u32,
}

/// The information that policies may query of the device.
pub trait DeviceView {
    /// Returns the current virtual time.
    fn now(&self) -> Time;
    /// Whether a cached page differs from flash.
    fn dirty(&self, page: PageId) -> bool;
    /// Returns the logical page that is cached as `page`.
    fn lpn(&self, page: PageId) -> Lpn;
    /// Returns the chip of the page's flash copy. If the page has no copy, returns the chip to which it will be written
    /// with static placement, and `None` with dynamic placement.
    fn chip(&self, page: PageId) -> Option<ChipId>;
    /// Whether the page cannot be evicted because it is in flight (D-36): it has no slot yet, or its data are still
    /// being read. In the buffer without time no page is in flight.
    #[inline]
    fn in_flight(&self, _page: PageId) -> bool {
        false
    }
    /// Returns the number of the policy's pages that are in flight.
    #[inline]
    fn pages_in_flight(&self) -> u32 {
        0
    }
    /// Whether the page is being programmed and stays cached. Such a page is not [dirty](DeviceView::dirty), but its
    /// eviction must wait until the program ends. In the buffer without time, programs take no time.
    #[inline]
    fn programming(&self, _page: PageId) -> bool {
        false
    }
    /// Whether the chip is collecting garbage now.
    #[inline]
    fn in_gc(&self, chip: ChipId) -> bool {
        self.chips_in_gc().contains(chip)
    }
    /// Returns the chips that are collecting garbage now.
    fn chips_in_gc(&self) -> &ChipSet;
    /// Returns the time until the chip has completed its work (ECR's chip queue complete time, Eqs 1-4). With
    /// `exact`, the time includes transfers, and the remaining times of the running operation and of a running GC
    /// (D-14).
    fn drain_time(&self, chip: ChipId, exact: bool) -> Time;
    /// Returns the flash time of the reads and writes that the chip has to execute, without GC (LCR's load).
    fn load(&self, chip: ChipId) -> Time;
    /// Returns the record of the chips whose `load`, or `drain_time` without `exact`, has changed. Returns `None` if
    /// the device keeps no such record. The device keeps it for a policy that [follows the
    /// times](Policy::follows_times), provided that the time of a chip does not depend on other chips.
    #[inline]
    fn time_changes(&self) -> Option<&ChipChanges> {
        None
    }
    /// Whether the chip executes no operation, and no operation waits for the chip.
    fn chip_idle(&self, chip: ChipId) -> bool;
    /// Returns the chips for which `chip_idle` is true. Returns `None` if the device keeps no such set. The set is exact
    /// when the device calls [`Policy::ahead`].
    #[inline]
    fn idle_chips(&self) -> Option<&ChipSet> {
        None
    }
    /// Returns the number of free blocks of the chip. Open blocks are not free. Returns `u32::MAX` for a dead chip,
    /// which never collects.
    fn free_blocks(&self, chip: ChipId) -> u32;
    /// Returns the GC trigger: the chip collects if its number of free blocks is not above this number.
    fn gc_trigger_blocks(&self, chip: ChipId) -> u32;
    /// Returns the number of free pages in the chip's open blocks. Returns `u32::MAX` for a dead chip.
    fn open_pages(&self, chip: ChipId) -> u32;
}

/// Pages that a victim search skips. Pages in flight are skipped in all cases. GCaR's filter uses the cases other than
/// `Nothing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// The search skips only pages in flight.
    Nothing,
    /// The search also skips pages whose chip is in GC.
    Gc,
    /// The search also skips pages whose chip is in GC, or one block away from it (`gc_lookahead`,
    /// D-4).
    GcSoon,
}

impl Skip {
    /// Whether pages of `chip` are skipped.
    #[inline(always)]
    pub fn chip(self, device: &dyn DeviceView, chip: ChipId) -> bool {
        match self {
            Skip::Nothing => false,
            Skip::Gc => device.chips_in_gc().contains(chip),
            Skip::GcSoon => {
                device.in_gc(chip)
                    || device.free_blocks(chip) <= device.gc_trigger_blocks(chip).saturating_add(1)
            }
        }
    }

    /// Whether `page` is skipped.
    #[inline(always)]
    pub fn page(self, device: &dyn DeviceView, page: PageId) -> bool {
        device.in_flight(page) || self.page_by_chip(device, page)
    }

    /// Whether `page` is skipped because of its chip; a page without a chip never is.
    #[inline(always)]
    pub fn page_by_chip(self, device: &dyn DeviceView, page: PageId) -> bool {
        self != Skip::Nothing
            && device
                .chip(page)
                .is_some_and(|chip| self.chip(device, chip))
    }
}

/// Pages evicted together, filled in by [`Policy::evict`].
#[derive(Clone, Debug, Default)]
pub struct Eviction {
    /// Evicted pages, usually a single one. The dirty ones are written in this order.
    pub victims: Vec<PageId>,
    /// The logical block whose pages are evicted; `None` with policies that evict single pages.
    pub block: Option<u32>,
    /// Whether the clean victims are written together with the dirty ones, because the block is written as a whole.
    pub write_clean: bool,
    /// Pages not in the buffer that are read from flash and written with the victims.
    pub padding: Vec<Lpn>,
    /// Pages of the separate read cache that are written with the victims, and stay.
    pub merged: Vec<Lpn>,
    /// List entries that the published algorithm inspects to find the victim (D-10).
    pub inspected: u64,
    /// Whether a page was skipped because of its chip.
    pub skipped: bool,
}

impl Eviction {
    /// Clears all fields, but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.victims.clear();
        self.padding.clear();
        self.merged.clear();
        self.block = None;
        self.write_clean = false;
        self.inspected = 0;
        self.skipped = false;
    }

    /// Records `page` as the only victim, and `inspected` as the number of entries examined to find
    /// it.
    #[inline]
    pub fn one(&mut self, page: PageId, inspected: u64) {
        self.victims.push(page);
        self.inspected += inspected;
    }
}

/// A replacement policy: ranks pages and chooses victims. The device does everything else.
///
/// On a miss, the device calls `admits`. If the buffer is full, or the policy `lacks_room`, the device then calls
/// `evict`, which removes the victims from the policy. Last, the device calls `insert`. On a hit, the device calls
/// `hit`. Three functions report other events:
///
/// - `cleaned`: a page was written back and stays as a clean page.
/// - `moved`: the flash copy of a page may be on another chip, or the page may have begun or ceased to be in flight.
/// - `forget`: a page is removed for another reason than eviction, such as a trim.
///
/// A policy keeps its data per [`PageId`] in arrays, because these numbers are small.
pub trait Policy {
    /// Whether a page that misses enters the buffer. If a read is not admitted, it bypasses the buffer. Written pages
    /// enter in any case.
    #[inline]
    fn admits(&self, _access: &Access) -> bool {
        true
    }
    /// Whether pages must be evicted for `incoming` although the buffer is not full. Called on a miss. Returns false if
    /// the buffer is empty.
    #[inline]
    fn lacks_room(&self, _incoming: &Access) -> bool {
        false
    }
    /// Called when a page was inserted into the buffer.
    fn insert(&mut self, device: &dyn DeviceView, page: PageId, access: &Access);
    /// Called when a cached page was accessed.
    fn hit(&mut self, device: &dyn DeviceView, page: PageId, access: &Access);
    /// Removes a page from the policy for another reason than that `evict` chose it.
    fn forget(&mut self, page: PageId);
    /// Called when a dirty page was written back; it stays as a clean page.
    fn cleaned(&mut self, _device: &dyn DeviceView, _page: PageId) {}
    /// Called when the chip of the page's flash copy may have changed, or when the page may have begun or ceased to
    /// be in flight.
    fn moved(&mut self, _device: &dyn DeviceView, _page: PageId) {}
    /// Chooses victims to make room for `incoming`, and removes them from the policy. Never chooses pages that `skip`
    /// excludes. Returns false only if `skip` excludes all candidates; the policy then has the same pages as before.
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool;
    /// Whether a block occupies the room of all its pages, cached or not. If so, the device calls `block_of_room` and
    /// `room_kept` when it grants slots. Called once, when the policy starts.
    fn takes_whole_blocks(&self) -> bool {
        false
    }
    /// Returns the block whose reserved room stores the inserted page. Returns `None` if the page needs a slot of its
    /// own.
    fn block_of_room(&self, _lpn: Lpn) -> Option<u32> {
        None
    }
    /// Returns the number of slots that are reserved for blocks. Pages outside blocks do not receive these slots.
    fn room_kept(&self) -> u32 {
        0
    }
    /// Whether the device must record the chips whose times have changed ([`DeviceView::time_changes`]). Called once,
    /// when the policy starts.
    fn follows_times(&self) -> bool {
        false
    }
    /// Whether the device must call `idle` when a chip becomes idle.
    fn wants_idle(&self) -> bool {
        false
    }
    /// Returns a dirty page to write back because the chip is idle; `None` if there is none. The page stays cached.
    /// `in_flight` is the number of such write-backs in progress. A page for which `busy` returns true must not be
    /// returned.
    fn idle(
        &mut self,
        _device: &dyn DeviceView,
        _chip: ChipId,
        _in_flight: u32,
        _busy: &dyn Fn(PageId) -> bool,
    ) -> Option<PageId> {
        None
    }
    /// Returns the time without host accesses after which the device must call `ahead`. With `None`, the device never
    /// calls `ahead`. Called once, when the policy starts.
    fn ahead_after(&self) -> Option<Time> {
        None
    }
    /// Returns a dirty page to write back ahead of its eviction; `None` if no further page is to be written now. The
    /// page stays cached. The device calls this function whenever a chip becomes idle, and when the host has made no
    /// access for the time of `ahead_after`. Each time it calls until the result is `None`. `in_flight` is the number
    /// of such write-backs in progress. A page for which `busy` returns true must not be returned.
    fn ahead(
        &mut self,
        _device: &dyn DeviceView,
        _in_flight: u32,
        _busy: &dyn Fn(PageId) -> bool,
    ) -> Option<PageId> {
        None
    }
    /// Returns the stream (open block) to which the page is written. `page` may have been evicted, and `lpn` is its
    /// logical page.
    #[inline]
    fn stream(&self, _page: PageId, _lpn: Lpn) -> Stream {
        Stream::Cold
    }
    /// Called before a page is removed from the separate read cache. There are two reasons: the read cache is full and
    /// page `lpn` will enter it, or the host writes page `lpn`, of which the read cache has a copy.
    #[inline]
    fn arrives(&mut self, _lpn: Lpn) {}
    /// Called when a page was inserted into the separate read cache, or evicted from it.
    #[inline]
    fn read_cache_changed(&mut self, _lpn: Lpn, _present: bool) {}
    /// Returns the state in the notation of `policy trace`, such as `4d 3c`.
    fn state(&self, device: &dyn DeviceView) -> String;
    /// Counters of the policy: name and value.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    /// Starts the counters at zero.
    fn reset_counters(&mut self) {}
}

/// A hint about the next victims. The device uses it to prefetch data; the hint changes no result. A policy implements
/// this trait only if prefetching makes replays of a large device with a large buffer measurably faster. The table
/// entry of such a policy has the suffix `+ Prefetch`.
pub(crate) trait Prefetch {
    /// Returns the pages likely to be evicted next, soonest first. The device prefetches the data that their
    /// write-back accesses.
    fn prefetch_victims(&self) -> [Option<PageId>; 3];
    /// Returns the last entry of [`Prefetch::prefetch_victims`].
    #[inline(always)]
    fn third_victim(&self) -> Option<PageId> {
        self.prefetch_victims()[2]
    }
}

/// Returns the first three pages of two sequences in a row: `first`, then the pages that `then` returns.
#[inline]
pub(super) fn then(
    first: [Option<PageId>; 3],
    then: impl FnOnce() -> [Option<PageId>; 3],
) -> [Option<PageId>; 3] {
    if first[2].is_some() {
        return first;
    }
    let mut pages = first.into_iter().chain(then()).flatten();
    [pages.next(), pages.next(), pages.next()]
}

/// Formats a page: `7d` if dirty, `7c` if clean.
pub fn page_text(device: &dyn DeviceView, page: PageId) -> String {
    let letter = if device.dirty(page) { 'd' } else { 'c' };
    format!("{}{letter}", device.lpn(page).0)
}

/// Formats pages, separated by spaces, the most recent first; `oldest_first` starts at the least recent.
pub fn pages_text(device: &dyn DeviceView, oldest_first: impl Iterator<Item = PageId>) -> String {
    let mut texts: Vec<String> = oldest_first.map(|page| page_text(device, page)).collect();
    texts.reverse();
    texts.join(" ")
}
