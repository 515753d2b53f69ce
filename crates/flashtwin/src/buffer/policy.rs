//! The trait of replacement policies, and the view of the device that policies have.

use crate::chips::{ChipChanges, ChipSet};
use crate::units::{ChipId, Lpn, PageId, Stream, Time};

/// One access to one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The logical page.
    pub lpn: Lpn,
    /// True for a write, false for a read.
    pub write: bool,
    /// Whether the cached page will differ from its flash copy once the access is complete.
    pub dirty: bool,
    /// Number of the host request. All pages of a request have the same number.
    pub request: u64,
    /// Pages of that request.
    pub request_pages: u32,
}

/// The information about the device that a policy may query.
pub trait DeviceView {
    /// Returns the current virtual time.
    fn now(&self) -> Time;
    /// Whether a cached page differs from flash.
    fn dirty(&self, page: PageId) -> bool;
    /// Returns the logical page that is cached as `page`.
    fn lpn(&self, page: PageId) -> Lpn;
    /// Returns the chip of the page's flash copy. If the page has no copy, static placement determines the chip to
    /// which it will be written, and this chip is returned. With dynamic placement, returns `None` for such a page.
    fn chip(&self, page: PageId) -> Option<ChipId>;
    /// Whether the page cannot be evicted because it is in flight (D-36): it has no slot yet, or its data are still
    /// being read. In the buffer without time, no page is in flight.
    #[inline]
    fn in_flight(&self, _page: PageId) -> bool {
        false
    }
    /// Returns the number of pages of the policy that are in flight.
    #[inline]
    fn pages_in_flight(&self) -> u32 {
        0
    }
    /// Whether the page is being programmed and will stay cached. Such a page is not [dirty](DeviceView::dirty), but
    /// its eviction must wait until the program ends. In the buffer without time, programs take no time.
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
    /// Returns the time until the chip has completed its queued work (ECR's chip queue complete time, Eqs 1-4). With
    /// `exact`, the time also includes transfers, and the remaining times of the running operation and of a running GC
    /// (D-14).
    fn drain_time(&self, chip: ChipId, exact: bool) -> Time;
    /// Returns the flash time of all reads and writes queued for the chip, without GC (LCR's load).
    fn load(&self, chip: ChipId) -> Time;
    /// Returns the record of the chips whose `load` or `drain_time` (without `exact`) has changed. Returns `None` if
    /// the device keeps no such record. The device keeps the record if the policy [follows the
    /// times](Policy::follows_times) and if the time of a chip does not depend on other chips.
    #[inline]
    fn time_changes(&self) -> Option<&ChipChanges> {
        None
    }
    /// Whether the chip is executing no operation, and no operation waits for it.
    fn chip_idle(&self, chip: ChipId) -> bool;
    /// Returns the set of chips for which `chip_idle` is true. Returns `None` if the device keeps no such set. The set
    /// is guaranteed to be exact only when the device calls [`Policy::ahead`].
    #[inline]
    fn idle_chips(&self) -> Option<&ChipSet> {
        None
    }
    /// Returns the number of free blocks of the chip. Open blocks are not free. Returns `u32::MAX` for a dead chip,
    /// which never collects.
    fn free_blocks(&self, chip: ChipId) -> u32;
    /// Returns the GC trigger: the chip collects when its number of free blocks is at most this number.
    fn gc_trigger_blocks(&self, chip: ChipId) -> u32;
    /// Returns the number of free pages in the chip's open blocks. Returns `u32::MAX` for a dead chip.
    fn open_pages(&self, chip: ChipId) -> u32;
}

/// Pages that a victim search skips. Pages in flight are always skipped. The variants other than `Nothing` are used by
/// the filter GCaR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// The search skips only pages in flight.
    Nothing,
    /// The search also skips pages whose chip is in GC.
    Gc,
    /// The search also skips pages whose chip is in GC, and pages whose chip is one free block away from GC
    /// (`gc_lookahead`, D-4).
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

    /// Whether `page` is skipped because of its chip. A page without a chip is never skipped for this reason.
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
    /// Evicted pages, usually a single one. The dirty ones are written back in this order.
    pub victims: Vec<PageId>,
    /// The logical block whose pages are evicted; `None` with policies that evict single pages.
    pub block: Option<u32>,
    /// Whether clean victims are written together with the dirty ones, because the whole block is written.
    pub write_clean: bool,
    /// Pages outside the buffer that are read from flash and written together with the victims.
    pub padding: Vec<Lpn>,
    /// Pages of the separate read cache that are written together with the victims. These pages stay in the read cache.
    pub merged: Vec<Lpn>,
    /// Number of list entries that the published algorithm inspects to find the victim (D-10).
    pub inspected: u64,
    /// Whether the search skipped any page because of its chip.
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

    /// Records `page` as the only victim. `inspected` is the number of entries that were examined to find it.
    #[inline]
    pub fn one(&mut self, page: PageId, inspected: u64) {
        self.victims.push(page);
        self.inspected += inspected;
    }
}

/// A replacement policy. It ranks pages and chooses victims; the device does everything else.
///
/// On a hit, the device calls `hit`. On a miss, it first calls `admits`. If the buffer is full, or the policy
/// `lacks_room`, the device then calls `evict`, which removes the victims from the policy. Last, it calls `insert`.
/// Three functions notify the policy of other events:
///
/// - `cleaned`: a page was written back and stays as a clean page.
/// - `moved`: a change may affect the chip of a page's flash copy, or whether the page is in flight.
/// - `forget`: a page is removed for another reason than eviction, such as a trim.
///
/// A policy keeps its data per [`PageId`] in arrays, because these numbers are small.
pub trait Policy {
    /// Whether a page that misses enters the buffer. A read that is not admitted bypasses the buffer. Written pages
    /// always enter.
    #[inline]
    fn admits(&self, _access: &Access) -> bool {
        true
    }
    /// Whether pages must be evicted to make room for `incoming` although the buffer is not full. Called on a miss.
    /// Returns false if the buffer is empty.
    #[inline]
    fn lacks_room(&self, _incoming: &Access) -> bool {
        false
    }
    /// Called when a page was inserted into the buffer.
    fn insert(&mut self, device: &dyn DeviceView, page: PageId, access: &Access);
    /// Called when a cached page was accessed.
    fn hit(&mut self, device: &dyn DeviceView, page: PageId, access: &Access);
    /// Removes a page from the policy that `evict` did not choose, for example after a trim.
    fn forget(&mut self, page: PageId);
    /// Called when a dirty page was written back. The page stays in the buffer as a clean page.
    fn cleaned(&mut self, _device: &dyn DeviceView, _page: PageId) {}
    /// Called after a change that may affect the chip of the page's flash copy, or whether the page is in flight.
    fn moved(&mut self, _device: &dyn DeviceView, _page: PageId) {}
    /// Chooses victims to make room for `incoming`, and removes them from the policy. Never chooses pages that `skip`
    /// excludes. Returns false only if `skip` excludes all candidates. In this case, no page is removed.
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
    /// Returns the block if the inserted page is stored in room reserved for its block. Returns `None` if the page
    /// needs a slot of its own.
    fn block_of_room(&self, _lpn: Lpn) -> Option<u32> {
        None
    }
    /// Returns the number of slots that are reserved for blocks but store no page. The device does not grant them to
    /// pages that need a slot of their own.
    fn room_kept(&self) -> u32 {
        0
    }
    /// Whether the device must record which chips' times have changed ([`DeviceView::time_changes`]). Called once, when
    /// the policy starts.
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
    /// Returns the time without host accesses after which the device must call `ahead`. If `None` is returned, the
    /// device never calls `ahead`. Called once, when the policy starts.
    fn ahead_after(&self) -> Option<Time> {
        None
    }
    /// Returns a dirty page to write back ahead of its eviction; `None` if no more pages are to be written now. The
    /// page stays cached. The device calls this function whenever a chip becomes idle, and when the host has made no
    /// access for the time of `ahead_after`. The device repeats the call until the result is `None`. `in_flight` is the
    /// number of such write-backs in progress. A page for which `busy` returns true must not be returned.
    fn ahead(
        &mut self,
        _device: &dyn DeviceView,
        _in_flight: u32,
        _busy: &dyn Fn(PageId) -> bool,
    ) -> Option<PageId> {
        None
    }
    /// Returns the stream (open block) to which a page is written. `lpn` is its logical page. `page` may already have
    /// been evicted.
    #[inline]
    fn stream(&self, _page: PageId, _lpn: Lpn) -> Stream {
        Stream::Cold
    }
    /// Called before a page is removed from the separate read cache. There are two cases: the read cache is full and
    /// page `lpn` will enter it, or the host writes page `lpn` and the read cache has a copy of it.
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

/// Lets the device prefetch data about the next victims into the processor cache. The results of a simulation do not
/// change. A policy implements this trait only if prefetching makes replays of a large device with a large buffer
/// measurably faster. The table entry of such a policy has the suffix `+ Prefetch`.
pub(crate) trait Prefetch {
    /// Returns the likely next victims in the order of their eviction. The device prefetches the data that their
    /// write-back reads.
    fn prefetch_victims(&self) -> [Option<PageId>; 3];
    /// Returns the last entry of [`Prefetch::prefetch_victims`].
    #[inline(always)]
    fn third_victim(&self) -> Option<PageId> {
        self.prefetch_victims()[2]
    }
}

/// Returns the first three pages of two sequences joined together: `first`, followed by the pages that `then` returns.
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

/// Formats pages, separated by spaces. The text starts with the most recent page, although `oldest_first` starts with
/// the least recent one.
pub fn pages_text(device: &dyn DeviceView, oldest_first: impl Iterator<Item = PageId>) -> String {
    let mut texts: Vec<String> = oldest_first.map(|page| page_text(device, page)).collect();
    texts.reverse();
    texts.join(" ")
}
