//! The placement of pages: the page map of the whole device, or a translation layer in each chip.

use std::io::{self, Read, Write};

use super::{FlashStats, Layered, Nand};
use crate::buffer::Filter;
use crate::events::EventQueue;
use crate::ftl::chip::Counters;
use crate::ftl::{PageMap, StateError};
use crate::rng::Rng;
use crate::units::Stream;
use crate::units::{Lpn, Time};
use crate::watch::Watch;

/// Blocks of a pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PoolBlocks {
    /// All of them.
    pub blocks: u32,
    /// Blocks that the host does not see.
    pub reserved: u32,
    /// The GC watermark in free blocks: at or below it, the pool collects.
    pub low: u32,
}

/// The keeper of the pages' locations.
pub(super) enum Placed<'a> {
    Map(&'a PageMap),
    Layers(&'a Layered),
}

/// Keeper of the pages' locations, mutable.
enum PlacedMut<'a> {
    Map(&'a mut PageMap),
    Layers(&'a mut Layered),
}

impl Nand {
    #[inline(always)]
    pub(super) fn placed(&self) -> Placed<'_> {
        match self {
            Nand::Msr(n) => Placed::Map(&n.ftl),
            Nand::Modern(n) => Placed::Map(&n.ftl),
            Nand::Layered(n) => Placed::Layers(n),
        }
    }

    #[inline]
    fn placed_mut(&mut self) -> PlacedMut<'_> {
        match self {
            Nand::Msr(n) => PlacedMut::Map(&mut n.ftl),
            Nand::Modern(n) => PlacedMut::Map(&mut n.ftl),
            Nand::Layered(n) => PlacedMut::Layers(n),
        }
    }

    /// The page has a copy on flash.
    #[inline]
    pub fn is_mapped(&self, lpn: Lpn) -> bool {
        match self.placed() {
            Placed::Map(map) => map.lookup(lpn).is_some(),
            Placed::Layers(layers) => layers.is_mapped(lpn),
        }
    }

    /// The chip that holds the page's copy according to the page map; `None` with translation layers, which only know
    /// their own chip.
    #[inline]
    pub fn chip_of_copy(&self, lpn: Lpn) -> Option<u32> {
        match self.placed() {
            Placed::Map(map) => map.lookup(lpn).map(|ppn| map.chip_of(ppn)),
            Placed::Layers(_) => None,
        }
    }

    /// Starts loading what an operation on the page will touch first.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        match self.placed() {
            Placed::Map(map) => map.prefetch(lpn),
            Placed::Layers(layers) => layers.prefetch(lpn),
        }
    }

    /// Starts loading what follows from that.
    #[inline(always)]
    pub fn prefetch_old_copy(&self, lpn: Lpn) {
        if let Placed::Map(map) = self.placed() {
            map.prefetch_old_copy(lpn);
        }
    }

    /// Starts loading data for pages that will be written soon: the state of the old copy of `next`, and the map
    /// entry of `later`.
    #[inline(always)]
    pub fn prefetch_ahead(&self, next: Lpn, later: Lpn) {
        match self.placed() {
            Placed::Map(map) => {
                map.prefetch(later);
                map.prefetch_old_copy(next);
            }
            Placed::Layers(layers) => layers.prefetch(later),
        }
    }

    /// The open block that a write goes to.
    #[inline(always)]
    pub(super) fn host_stream(&self, lpn: Lpn, asked: Stream) -> Stream {
        match self.placed() {
            Placed::Map(map) => map.host_stream(lpn, asked),
            Placed::Layers(_) => asked,
        }
    }

    /// See [`PageMap::note_write`].
    #[inline(always)]
    pub fn note_write(&mut self, lpn: Lpn, now: Time) {
        match self {
            Nand::Msr(n) => n.ftl.note_write(lpn, now),
            Nand::Modern(n) => n.ftl.note_write(lpn, now),
            Nand::Layered(_) => {}
        }
    }

    /// Exchanges the copy of the buffer policy's filter for another.
    pub fn exchange_classes(&mut self, classes: Option<Box<Filter>>) -> Option<Box<Filter>> {
        match self.placed_mut() {
            PlacedMut::Map(map) => map.exchange_classes(classes),
            PlacedMut::Layers(_) => None,
        }
    }

    /// Hot and cold pages that a buffer policy distinguishes go to blocks of their own, or need not.
    pub fn separates(&self) -> bool {
        match self.placed() {
            Placed::Map(map) => map.streams() > 1,
            Placed::Layers(_) => true,
        }
    }

    /// Forgets a page.
    pub fn trim(&mut self, lpn: Lpn, now: Time, events: &mut EventQueue) {
        match self.placed_mut() {
            PlacedMut::Map(map) => {
                map.unmap(lpn);
            }
            PlacedMut::Layers(layers) => layers.trim(lpn, now, events),
        }
    }

    /// Drops a page, and whatever that takes on flash, without time passing.
    pub fn trim_untimed(&mut self, lpn: Lpn) {
        match self.placed_mut() {
            PlacedMut::Map(map) => {
                map.unmap(lpn);
            }
            PlacedMut::Layers(layers) => layers.trim_untimed(lpn),
        }
    }

    /// Blocks that a chip may begin before it must give one back.
    pub fn free_blocks(&self, chip: usize) -> u32 {
        match self.placed() {
            Placed::Map(map) => map.free_blocks_of_chip(chip as u32),
            Placed::Layers(layers) => layers.outlook(chip).free_blocks,
        }
    }

    /// At how many of them it collects.
    pub fn gc_trigger_blocks(&self, chip: usize) -> u32 {
        match self.placed() {
            Placed::Map(map) => map.gc_trigger_blocks_of_chip(chip as u32),
            Placed::Layers(layers) => layers.outlook(chip).trigger_blocks,
        }
    }

    /// Free pages of its open block.
    pub fn open_pages(&self, chip: usize) -> u32 {
        match self.placed() {
            Placed::Map(map) => map.open_pages_of_chip(chip as u32),
            Placed::Layers(layers) => layers.outlook(chip).open_pages,
        }
    }

    /// Proves the tables against each other.
    pub fn check(&self) -> Result<(), String> {
        match self.placed() {
            Placed::Map(map) => map.check(),
            Placed::Layers(layers) => layers.check(),
        }
    }

    /// Logical pages with a flash copy.
    pub fn pages_mapped(&self) -> u64 {
        match self.placed() {
            Placed::Map(map) => map.pages_mapped(),
            Placed::Layers(layers) => layers.pages_mapped(),
        }
    }

    /// Pages that can be programmed without an erase, summary pages among them.
    pub fn free_pages(&self) -> u64 {
        match self.placed() {
            Placed::Map(map) => map.free_pages(),
            Placed::Layers(layers) => layers.erased_pages(),
        }
    }

    /// See [`PageMap::slc_pages_lacked`].
    pub fn slc_pages_lacked(&self) -> u64 {
        match self.placed() {
            Placed::Map(map) => map.slc_pages_lacked(),
            Placed::Layers(_) => 0,
        }
    }

    /// Fewest free blocks of a pool that took one since this was last asked.
    #[inline]
    pub fn take_lowest(&mut self) -> Option<u32> {
        match self.placed_mut() {
            PlacedMut::Map(map) => map.take_lowest(),
            PlacedMut::Layers(_) => None,
        }
    }

    /// Number of blocks of a pool of the page map; zeros with translation layers, which have no pools.
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

    /// Erases of each block.
    pub fn erase_counts(&self) -> Vec<u32> {
        match self.placed() {
            Placed::Map(map) => map.erase_counts(),
            Placed::Layers(layers) => layers.erase_counts(),
        }
    }

    /// Blocks that have had all the erases they survive.
    pub fn spent_blocks(&self) -> u32 {
        match self.placed() {
            Placed::Map(map) => map.spent_blocks(),
            Placed::Layers(_) => 0,
        }
    }

    /// Forgets wear.
    pub fn reset_wear(&mut self) {
        match self.placed_mut() {
            PlacedMut::Map(map) => map.reset_wear(),
            PlacedMut::Layers(layers) => layers.reset_wear(),
        }
    }

    /// Counters of the translation layers; `None` with the page map.
    pub fn ftl_counters(&self) -> Option<Counters> {
        match self.placed() {
            Placed::Map(_) => None,
            Placed::Layers(layers) => Some(layers.counters()),
        }
    }

    // ---- initial states ----

    /// Every exported page written once in ascending order, on new flash.
    pub fn fill_sequential(&mut self) {
        if let Nand::Layered(layers) = self {
            return layers.fill_sequential();
        }
        let fresh = self.clone();
        let keep_last_open = matches!(self, Nand::Msr(_));
        if let PlacedMut::Map(map) = self.placed_mut() {
            map.fill_sequential(keep_last_open, |chip, n| fresh.fill_order(chip, n));
        }
    }

    /// Stamps a chip of the page map with that of `worn`, its pages renamed.
    pub fn stamp(&mut self, chip: u32, worn: &Nand, factor: u32, shift: u32) {
        if let (PlacedMut::Map(map), Placed::Map(worn)) = (self.placed_mut(), worn.placed()) {
            map.stamp(chip, worn, factor, shift);
        }
    }

    /// Places translation layers in the steady state; returns false if `watch` stopped it, and `None` with the page
    /// map, which does not reach it by itself.
    pub fn fill_steady(&mut self, rng: &mut Rng, watch: &dyn Watch) -> Option<bool> {
        match self.placed_mut() {
            PlacedMut::Map(_) => None,
            PlacedMut::Layers(layers) => Some(layers.fill_steady(rng, watch)),
        }
    }

    /// Number of pages that [`Nand::fill_steady`] writes; `None` with the page map.
    pub fn steady_pages(&self) -> Option<u64> {
        match self.placed() {
            Placed::Map(_) => None,
            Placed::Layers(layers) => Some(layers.steady_pages()),
        }
    }

    /// Writes the whole state of idle flash, except [`Nand::cursors`].
    pub fn save_state(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.placed() {
            Placed::Map(map) => map.save(out),
            Placed::Layers(layers) => layers.save(out),
        }
    }

    /// Nothing was ever written to the page map.
    pub fn is_new(&self) -> bool {
        match self.placed() {
            Placed::Map(map) => *self.stats() == FlashStats::default() && map.is_new(),
            Placed::Layers(_) => false,
        }
    }

    /// Reads such a state.
    pub fn load_state(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        match self.placed_mut() {
            PlacedMut::Map(map) => map.load(input),
            PlacedMut::Layers(layers) => layers.load(input),
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
