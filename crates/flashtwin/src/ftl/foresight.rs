//! Loads data of a collection into the processor's caches before it begins. When few blocks of a pool are free, its
//! chip collects in it soon, and the victim is known. First the victim's live bits and logical pages are loaded, then
//! a few of their map entries with each write to a chip. Loading them all together would make the core wait.

use super::page::{Foresight, LiveFrom, PageMap};
use super::rows::WORD;
use crate::memory::prefetch;
use crate::units::Ppn;

/// Map entries loaded with each write. At a write amplification of 4.7, collections move 3.7 pages per write.
const MAPS_A_WRITE: usize = 4;
/// Words of live bits that wait for their turn, at most.
const WORDS_MAX: usize = 16;

impl PageMap {
    /// Pools load their victims ahead from now on.
    pub fn foresee(&mut self, foresight: Foresight) {
        self.foresight = Some(foresight);
        self.foreseen.next.reserve_exact(WORDS_MAX);
    }

    /// Loads the victim of a pool ahead, if that is wanted.
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

    /// Starts loading the next map entries of victims that were foreseen.
    #[inline(always)]
    pub fn load_foreseen(&mut self) {
        let first = self.foreseen.first;
        let mut live = self.foreseen.live;
        if live == 0 {
            if !self.foreseen.next.is_empty() {
                self.begin_word();
            }
            return;
        }
        // Without testing in each round whether an entry is left: the branch could not be predicted, and loading one
        // entry too many does no harm.
        for _ in 0..MAPS_A_WRITE {
            let lpn = self.lpn_at(Ppn(first + live.trailing_zeros() % WORD));
            prefetch(&self.map, lpn.0 as usize);
            live &= live.wrapping_sub(1);
        }
        self.foreseen.live = live;
    }

    /// The next word has its turn, from the next write on.
    #[inline(never)]
    fn begin_word(&mut self) {
        if let Some(LiveFrom { word, first }) = self.foreseen.next.pop_front() {
            self.foreseen.live = self.rows[word as usize];
            self.foreseen.first = first;
        }
    }
}
