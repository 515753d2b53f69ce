//! Logical page to cached page: an open-addressing table with linear probing.
//!
//! One 8-byte slot a page at a load of at most two thirds: a lookup is one cache line.

use super::PageId;
use crate::memory::prefetch;
use crate::units::Lpn;

const EMPTY: u64 = u64::MAX;

/// The table; grows when pages in flight exceed what it was made for.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    slots: Vec<u64>,
    shift: u32,
    len: usize,
}

impl Directory {
    /// A table for about `pages` pages.
    pub fn new(pages: usize) -> Directory {
        let size = (pages.max(4) * 2).next_power_of_two();
        Directory {
            slots: vec![EMPTY; size],
            shift: 64 - size.trailing_zeros(),
            len: 0,
        }
    }

    #[inline]
    fn home(&self, lpn: Lpn) -> usize {
        ((lpn.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline]
    fn find(&self, lpn: Lpn) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut i = self.home(lpn);
        loop {
            let slot = self.slots[i];
            if slot == EMPTY {
                return Err(i);
            }
            if (slot >> 32) as u32 == lpn.0 {
                return Ok(i);
            }
            i = (i + 1) & mask;
        }
    }

    /// Starts loading what a lookup of `lpn` will touch.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.slots, self.home(lpn));
    }

    /// The cached page of `lpn`.
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Option<PageId> {
        self.find(lpn).ok().map(|i| PageId(self.slots[i] as u32))
    }

    /// Sets the cached page of `lpn`, in place of any before.
    #[inline]
    pub fn insert(&mut self, lpn: Lpn, page: PageId) {
        let value = (lpn.0 as u64) << 32 | page.0 as u64;
        match self.find(lpn) {
            Ok(i) => self.slots[i] = value,
            Err(i) => {
                self.slots[i] = value;
                self.len += 1;
                if self.len * 3 > self.slots.len() * 2 {
                    self.grow();
                }
            }
        }
    }

    /// Removes `lpn`, if `page` is its cached page.
    #[inline]
    pub fn remove(&mut self, lpn: Lpn, page: PageId) {
        let Ok(mut hole) = self.find(lpn) else { return };
        if self.slots[hole] as u32 != page.0 {
            return;
        }
        self.len -= 1;
        // Close the gap: move back every entry that would no longer be reached.
        let mask = self.slots.len() - 1;
        let mut i = hole;
        loop {
            i = (i + 1) & mask;
            let slot = self.slots[i];
            if slot == EMPTY {
                break;
            }
            let home = self.home(Lpn((slot >> 32) as u32));
            if (i.wrapping_sub(home) & mask) >= (i.wrapping_sub(hole) & mask) {
                self.slots[hole] = slot;
                hole = i;
            }
        }
        self.slots[hole] = EMPTY;
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = Directory::new(self.slots.len());
        for &slot in self.slots.iter().filter(|&&s| s != EMPTY) {
            larger.insert(Lpn((slot >> 32) as u32), PageId(slot as u32));
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn agrees_with_a_map_on_random_operations() {
        let mut rng = crate::rng::Rng::new(11);
        let mut table = Directory::new(4);
        let mut plain: HashMap<u32, u32> = HashMap::new();
        for _ in 0..100_000 {
            let lpn = Lpn(rng.below(300) as u32 * 65_536);
            match rng.below(3) {
                0 => {
                    let page = rng.below(1_000) as u32;
                    table.insert(lpn, PageId(page));
                    plain.insert(lpn.0, page);
                }
                1 => {
                    if let Some(page) = plain.remove(&lpn.0) {
                        table.remove(lpn, PageId(page + 1));
                        assert_eq!(
                            table.get(lpn),
                            Some(PageId(page)),
                            "removed by a stale page"
                        );
                        table.remove(lpn, PageId(page));
                    }
                }
                _ => {}
            }
            assert_eq!(table.get(lpn).map(|p| p.0), plain.get(&lpn.0).copied());
            assert_eq!(table.len, plain.len());
        }
    }
}
