//! Prefetches the data of a collection into the processor's cache before the collection begins.
//!
//! When few blocks of a pool are free, its chip will collect soon, and the victim is already known. First the
//! victim's live bits and logical page numbers are prefetched. Then each write prefetches a few map entries of the
//! victim's live pages. A prefetch of all entries at the same time would stall the core.

use super::page::{Foresight, LiveFrom, PageMap};
use super::rows::WORD;
use crate::memory::prefetch;
use crate::units::Ppn;

/// Number of map entries prefetched at each host write. It keeps pace with collection: at a write amplification of
/// 4.7, collections move 3.7 pages per write.
const MAPS_A_WRITE: usize = 4;
/// Maximum length of the queue of live pages with map entries that are still to be prefetched, in words of live bits.
const WORDS_MAX: usize = 16;

impl PageMap {
    /// Enables the prefetching of victims.
    pub fn foresee(&mut self, foresight: Foresight) {
        self.foresight = Some(foresight);
        self.foreseen.next.reserve_exact(WORDS_MAX);
    }

    /// Prefetches the data of the block that the pool will probably collect next. Does nothing unless
    /// [`PageMap::foresee`] was called.
    #[inline(never)]
    pub(super) fn load_victim(&mut self, pool: u32) {
        let Some(Foresight { last, pages, maps }) = self.foresight else {
            return;
        };
        let Some(bit) = self.position_of_least(pool, last) else {
            return;
        };
        let block = pool * self.shape.blocks_per_pool + bit;
        self.prefetch_block(block, pages);
        if !maps {
            return;
        }
        for page in (0..pages).step_by(WORD as usize) {
            let word = self.rows.of_page(block, page) as u32;
            let first = self.first_ppn(block).0 + page;
            let next = &mut self.foreseen.next;
            if next.len() == WORDS_MAX {
                next.pop_front();
            }
            next.push_back(LiveFrom { word, first });
        }
    }

    /// Prefetches the next few map entries of the likely victims' live pages.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn load_foreseen(&mut self) {
        let first = self.foreseen.first;
        let mut live = self.foreseen.live;
        if live == 0 {
            if !self.foreseen.next.is_empty() {
                self.begin_word();
            }
            return;
        }
        // The loop does not test whether a live bit remains. The processor could not predict this branch, and
        // unneeded prefetches do no harm.
        for _ in 0..MAPS_A_WRITE {
            let lpn = self.lpn_at(Ppn(first + live.trailing_zeros() % WORD));
            prefetch(&self.map, lpn.0 as usize);
            live &= live.wrapping_sub(1);
        }
        self.foreseen.live = live;
    }

    /// Takes the next word of live bits from the queue. The next write prefetches its map entries.
    #[inline(never)]
    fn begin_word(&mut self) {
        if let Some(LiveFrom { word, first }) = self.foreseen.next.pop_front() {
            self.foreseen.live = self.rows[word as usize];
            self.foreseen.first = first;
        }
    }
}
