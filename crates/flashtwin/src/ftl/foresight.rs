//! What a collection will touch is loaded before it begins: the victim is foreseen when its pool comes so low that it
//! will be collected once its chip comes free. First which of its pages are live, and which they are; then, a few with
//! each write of the chips, where the map has them. All at once would have the core wait.

use super::page::{Foresight, LiveFrom, PageMap};
use crate::memory::prefetch;
use crate::units::Ppn;

/// Bits of a word.
const WORD: u32 = u64::BITS;
/// Map entries loaded with a write: more than collections move for it, which are 3.7 at a write amplification of 4.7.
const MAPS_A_WRITE: usize = 5;
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
        let LiveFrom { word, first } = self.live_from(block);
        let next = &mut self.foreseen.next;
        for i in 0..pages.div_ceil(WORD) {
            if next.len() == WORDS_MAX {
                next.pop_front();
            }
            next.push_back(LiveFrom {
                word: word + i,
                first: first + i * WORD,
            });
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
        // Without asking each time whether one is left: that cannot be predicted, and one page too many does no harm.
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
