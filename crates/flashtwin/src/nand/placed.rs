//! Queries about the locations of pages. Depending on the device, they are kept in a page map of the whole device, in a
//! translation layer of each chip, or in the tables of units.

use std::io::{self, Read, Write};

use super::{FlashStats, Layered, Modern, Nand, Units};
use crate::buffer::Filter;
use crate::events::EventQueue;
use crate::ftl::chip::Counters;
use crate::ftl::{PageMap, StateError};
use crate::rng::Rng;
use crate::units::Stream;
use crate::units::{Lpn, Time};
use crate::watch::Watch;

/// Numbers of blocks of a pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PoolBlocks {
    /// All blocks.
    pub blocks: u32,
    /// Blocks that the host does not see.
    pub reserved: u32,
    /// The GC watermark: the pool collects if at most this number of its blocks is free.
    pub low: u32,
}

/// The structure that has the locations of pages.
pub(super) enum Placed<'a> {
    Map(&'a PageMap),
    Layers(&'a Layered),
    Units(&'a Modern<Units>),
}

/// [`Placed`], mutable.
enum PlacedMut<'a> {
    Map(&'a mut PageMap),
    Layers(&'a mut Layered),
    Units(&'a mut Modern<Units>),
}

impl Nand {
    #[inline(always)]
    pub(super) fn placed(&self) -> Placed<'_> {
        match self {
            Nand::Msr(n) => Placed::Map(&n.ftl),
            Nand::Modern(n) => Placed::Map(&n.map.ftl),
            Nand::Layered(n) => Placed::Layers(n),
            Nand::Units(n) => Placed::Units(n),
        }
    }

    #[inline]
    fn placed_mut(&mut self) -> PlacedMut<'_> {
        match self {
            Nand::Msr(n) => PlacedMut::Map(&mut n.ftl),
            Nand::Modern(n) => PlacedMut::Map(&mut n.map.ftl),
            Nand::Layered(n) => PlacedMut::Layers(n),
            Nand::Units(n) => PlacedMut::Units(n),
        }
    }

    /// Whether the page has a copy on flash.
    #[inline]
    pub fn is_mapped(&self, lpn: Lpn) -> bool {
        match self.placed() {
            Placed::Map(map) => map.lookup(lpn).is_some(),
            Placed::Layers(layers) => layers.is_mapped(lpn),
            Placed::Units(units) => units.die_of_copy(lpn).is_some(),
        }
    }

    /// Returns the chip with the copy of a page. Always `None` if each chip has a translation layer, because such a
    /// layer maps only the pages of its own chip.
    #[inline]
    pub fn chip_of_copy(&self, lpn: Lpn) -> Option<u32> {
        match self.placed() {
            Placed::Map(map) => map.lookup(lpn).map(|ppn| map.chip_of(ppn)),
            Placed::Layers(_) => None,
            Placed::Units(units) => units.die_of_copy(lpn),
        }
    }

    /// Prefetches the data that an operation on the page accesses first.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        match self.placed() {
            Placed::Map(map) => map.prefetch(lpn),
            Placed::Layers(layers) => layers.prefetch(lpn),
            Placed::Units(units) => units.map.device.prefetch(lpn),
        }
    }

    /// Prefetches the state of the block with the page's old copy. The map entry should be in the processor's cache
    /// already.
    #[inline(always)]
    pub fn prefetch_old_copy(&self, lpn: Lpn) {
        match self.placed() {
            Placed::Map(map) => map.prefetch_old_copy(lpn),
            Placed::Units(units) => units.map.device.prefetch_old_copy(lpn),
            Placed::Layers(layers) => layers.prefetch_old_copy(lpn),
        }
    }

    /// Prefetches data for two writes. The caller is about to write `next`, and after it `later`. For `next`,
    /// prefetches the state of the block with the old copy; for `later`, the map entry.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn prefetch_ahead(&self, next: Lpn, later: Lpn) {
        match self.placed() {
            Placed::Map(map) => {
                map.prefetch(later);
                map.prefetch_old_copy(next);
            }
            Placed::Layers(layers) => {
                layers.prefetch(later);
                layers.prefetch_old_copy(next);
            }
            Placed::Units(units) => {
                units.map.device.prefetch(later);
                units.map.device.prefetch_old_copy(next);
            }
        }
    }

    /// Returns the stream (hot or cold) that determines the open block for a host write. `asked` is the stream that the
    /// buffer policy chose.
    #[inline(always)]
    pub(super) fn host_stream(&self, lpn: Lpn, asked: Stream) -> Stream {
        match self.placed() {
            Placed::Map(map) => map.host_stream(lpn, asked),
            Placed::Layers(_) => asked,
            Placed::Units(_) => asked,
        }
    }

    /// See [`PageMap::note_write`].
    #[inline(always)]
    pub fn note_write(&mut self, lpn: Lpn, now: Time) {
        match self {
            Nand::Msr(n) => n.ftl.note_write(lpn, now),
            Nand::Modern(n) => n.map.ftl.note_write(lpn, now),
            Nand::Layered(_) | Nand::Units(_) => {}
        }
    }

    /// Replaces the copy of the buffer policy's filter.
    pub fn exchange_classes(&mut self, classes: Option<Box<Filter>>) -> Option<Box<Filter>> {
        match self.placed_mut() {
            PlacedMut::Map(map) => map.exchange_classes(classes),
            PlacedMut::Layers(_) | PlacedMut::Units(_) => None,
        }
    }

    /// Whether the device permits a buffer policy that distinguishes hot and cold pages. A page map must have two
    /// streams for this. Other devices always permit it.
    pub fn separates(&self) -> bool {
        match self.placed() {
            Placed::Map(map) => map.streams() > 1,
            Placed::Layers(_) => true,
            Placed::Units(_) => true,
        }
    }

    /// Trims a page.
    pub fn trim(&mut self, lpn: Lpn, now: Time, events: &mut EventQueue) {
        match self.placed_mut() {
            PlacedMut::Map(map) => {
                map.unmap(lpn);
            }
            PlacedMut::Layers(layers) => layers.trim(lpn, now, events),
            PlacedMut::Units(units) => units.map.device.trim(lpn, 1),
        }
    }

    /// Trims a page in no simulated time.
    pub fn trim_untimed(&mut self, lpn: Lpn) {
        match self.placed_mut() {
            PlacedMut::Map(map) => {
                map.unmap(lpn);
            }
            PlacedMut::Layers(layers) => layers.trim_untimed(lpn),
            PlacedMut::Units(units) => units.map.device.trim(lpn, 1),
        }
    }

    /// Returns the number of free blocks of a chip; with several pools, of the pool that will collect next. For
    /// translation layers with log blocks: the number of log blocks that the chip can open before it must reclaim one.
    pub fn free_blocks(&self, chip: usize) -> u32 {
        match self.placed() {
            Placed::Map(map) => map.free_blocks_of_chip(chip as u32),
            Placed::Layers(layers) => layers.outlook(chip).free_blocks,
            Placed::Units(units) => units.free_blocks(chip),
        }
    }

    /// Returns the GC trigger: the chip collects when it has at most this number of free blocks.
    pub fn gc_trigger_blocks(&self, chip: usize) -> u32 {
        match self.placed() {
            Placed::Map(map) => map.gc_trigger_blocks_of_chip(chip as u32),
            Placed::Layers(layers) => layers.outlook(chip).trigger_blocks,
            Placed::Units(units) => units.gc_trigger_blocks(),
        }
    }

    /// Returns the number of free pages in the open blocks of a chip; with several pools, of the pool that will collect
    /// next.
    pub fn open_pages(&self, chip: usize) -> u32 {
        match self.placed() {
            Placed::Map(map) => map.open_pages_of_chip(chip as u32),
            Placed::Layers(layers) => layers.outlook(chip).open_pages,
            Placed::Units(units) => units.open_pages(chip),
        }
    }

    /// Checks that the tables agree with each other.
    pub fn check(&self) -> Result<(), String> {
        match self.placed() {
            Placed::Map(map) => map.check(),
            Placed::Layers(layers) => layers.check(),
            Placed::Units(units) => units.map.device.check(),
        }
    }

    /// Returns the number of logical pages that have a copy on flash.
    pub fn pages_mapped(&self) -> u64 {
        match self.placed() {
            Placed::Map(map) => map.pages_mapped(),
            Placed::Layers(layers) => layers.pages_mapped(),
            Placed::Units(units) => units.map.device.pages_mapped(),
        }
    }

    /// Returns the number of pages that can be programmed without an erase, including summary pages.
    pub fn free_pages(&self) -> u64 {
        match self.placed() {
            Placed::Map(map) => map.free_pages(),
            Placed::Layers(layers) => layers.erased_pages(),
            Placed::Units(units) => units.free_pages(),
        }
    }

    /// See [`PageMap::slc_pages_lacked`].
    pub fn slc_pages_lacked(&self) -> u64 {
        match self.placed() {
            Placed::Map(map) => map.slc_pages_lacked(),
            Placed::Layers(_) | Placed::Units(_) => 0,
        }
    }

    /// Returns the fewest free blocks that any pool had after it took a block, since the last call. `None` if no block
    /// was taken, or without a page map.
    #[inline]
    pub fn take_lowest(&mut self) -> Option<u32> {
        match self.placed_mut() {
            PlacedMut::Map(map) => map.take_lowest(),
            PlacedMut::Layers(_) | PlacedMut::Units(_) => None,
        }
    }

    /// Returns the numbers of blocks in a pool of the page map. All numbers are 0 on devices without a page map.
    pub fn pool_blocks(&self) -> PoolBlocks {
        let Placed::Map(map) = self.placed() else {
            return PoolBlocks::default();
        };
        let blocks = map.shape.blocks_per_pool;
        PoolBlocks {
            blocks,
            reserved: blocks - map.shape.usable_per_plane * (blocks / map.shape.blocks_per_plane),
            low: map.low(),
        }
    }

    /// Returns the number of erases of each block.
    pub fn erase_counts(&self) -> Vec<u32> {
        match self.placed() {
            Placed::Map(map) => map.erase_counts(),
            Placed::Layers(layers) => layers.erase_counts(),
            Placed::Units(units) => units.erase_counts(),
        }
    }

    /// Returns the number of worn-out blocks: those that have been erased as often as they survive.
    pub fn spent_blocks(&self) -> u32 {
        match self.placed() {
            Placed::Map(map) => map.spent_blocks(),
            Placed::Layers(_) | Placed::Units(_) => 0,
        }
    }

    /// Resets all erase counts.
    pub fn reset_wear(&mut self) {
        match self.placed_mut() {
            PlacedMut::Map(map) => map.reset_wear(),
            PlacedMut::Layers(layers) => layers.reset_wear(),
            PlacedMut::Units(units) => units.map.device.reset_wear(),
        }
    }

    /// Returns the counters of the translation layers; `None` if the chips have no translation layers.
    pub fn ftl_counters(&self) -> Option<Counters> {
        match self.placed() {
            Placed::Map(_) | Placed::Units(_) => None,
            Placed::Layers(layers) => Some(layers.counters()),
        }
    }

    // ---- initial states ----

    /// Writes every exported page once in ascending order. The flash must be new.
    pub fn fill_sequential(&mut self) {
        match self {
            Nand::Layered(layers) => return layers.fill_sequential(),
            Nand::Units(units) => return units.fill_sequential(),
            Nand::Msr(_) | Nand::Modern(_) => {}
        }
        let fresh = self.clone();
        let keep_last_open = matches!(self, Nand::Msr(_));
        if let PlacedMut::Map(map) = self.placed_mut() {
            map.fill_sequential(keep_last_open, |chip, n| fresh.fill_order(chip, n));
        }
    }

    /// Copies the state of `worn`, flash with one chip, to a chip of the page map, with its pages renumbered as in
    /// [`PageMap::stamp`].
    pub fn stamp(&mut self, chip: u32, worn: &Nand, factor: u32, shift: u32) {
        if let (PlacedMut::Map(map), Placed::Map(worn)) = (self.placed_mut(), worn.placed()) {
            map.stamp(chip, worn, factor, shift);
        }
    }

    /// Puts flash with translation layers, or flash that writes by units, in steady state. Returns false if `watch`
    /// stopped the work. For a page map, changes nothing and returns `None`, because the module `ssd` does this.
    pub fn fill_steady(&mut self, rng: &mut Rng, watch: &dyn Watch) -> Option<bool> {
        match self.placed_mut() {
            PlacedMut::Map(_) => None,
            PlacedMut::Layers(layers) => Some(layers.fill_steady(rng, watch)),
            PlacedMut::Units(units) => Some(units.fill_steady(rng, watch)),
        }
    }

    /// Returns the largest number of random page writes of [`Nand::fill_steady`]; `None` for a page map.
    pub fn steady_pages(&self) -> Option<u64> {
        match self.placed() {
            Placed::Map(_) => None,
            Placed::Layers(layers) => Some(layers.steady_pages()),
            Placed::Units(units) => Some(units.steady_pages()),
        }
    }

    /// Writes the whole state of idle flash, except the positions that [`Nand::cursors`] returns.
    pub fn save_state(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.placed() {
            Placed::Map(map) => map.save(out),
            Placed::Layers(layers) => layers.save(out),
            Placed::Units(units) => units.map.device.save(out),
        }
    }

    /// Whether nothing was ever written to the flash. Always false if the chips have translation layers.
    pub fn is_new(&self) -> bool {
        match self.placed() {
            Placed::Map(map) => *self.stats() == FlashStats::default() && map.is_new(),
            Placed::Layers(_) => false,
            Placed::Units(units) => units.map.device.is_new(),
        }
    }

    /// Reads a state written by [`Nand::save_state`].
    pub fn load_state(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        match self.placed_mut() {
            PlacedMut::Map(map) => map.load(input),
            PlacedMut::Layers(layers) => layers.load(input),
            PlacedMut::Units(units) => units.map.device.load(input),
        }
    }
}

impl PageMap {
    fn free_pages(&self) -> u64 {
        let per_block = self.shape.pages_per_block;
        let (cold, hot) = (self.shape.data_pages, self.shape.hot_pages);
        let streams = match self.shape.streams {
            1 => &[(Stream::Cold, cold)][..],
            _ => &[(Stream::Cold, cold), (Stream::Hot, hot)],
        };
        let mut pages = 0;
        for pool in 0..self.shape.chips * self.shape.pools_per_chip {
            pages += u64::from(self.pool(pool).free * per_block);
            for &(stream, end) in streams {
                let next = self.next_page(pool, stream);
                if next < end {
                    pages += u64::from(end + (per_block - cold) - next);
                }
            }
        }
        pages
    }
}
