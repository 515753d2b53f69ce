//! Logical page to cached page: a hash table of chains, links in one array by page. A link has the logical page
//! beside the cached one, so that a lookup reads nothing else.
//!
//! A page that was evicted stays until it is gone, so a logical page may be here several times; the one that came
//! last is found. When that is gone, the one before it is found again.

use super::PageId;
use crate::memory::{large_table, prefetch, reach, room_for, Table};
use crate::units::Lpn;

/// A page of a chain, cached as `page`.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
struct Link {
    lpn: u32,
    page: u32,
}

/// The end of a chain.
const END: Link = Link {
    lpn: 0,
    page: u32::MAX,
};

impl Link {
    #[inline(always)]
    fn is_end(self) -> bool {
        self.page == END.page
    }
}

/// Chains for each page, at least. With a quarter as many, four lookups of ten meet another page in their chain, which the
/// processor cannot predict.
const HEADS_A_PAGE: usize = 8;

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    /// First page of each chain.
    heads: Table<Link>,
    /// Per cached page, the next page of its chain.
    next: Table<Link>,
    shift: u32,
}

impl Directory {
    /// A table for about `pages` pages.
    pub fn new(pages: usize) -> Directory {
        let size = (pages.max(2) * HEADS_A_PAGE).next_power_of_two();
        Directory {
            heads: large_table(END, size).into(),
            next: room_for(pages).into(),
            shift: 64 - size.trailing_zeros(),
        }
    }

    #[inline(always)]
    fn chain(&self, lpn: Lpn) -> usize {
        ((lpn.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Starts loading what a lookup of `lpn` will touch.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.heads, self.chain(lpn));
    }

    /// The page is likely to be looked at, or to leave: starts loading its place.
    #[inline]
    pub fn prefetch_link(&self, page: PageId) {
        prefetch(&self.next, page.0 as usize);
    }

    /// The cached page of `lpn` that came last.
    #[inline(always)]
    pub fn get(&self, lpn: Lpn) -> Option<PageId> {
        let mut link = self.heads[self.chain(lpn)];
        while !link.is_end() {
            if link.lpn == lpn.0 {
                return Some(PageId(link.page));
            }
            link = self.next[link.page as usize];
        }
        None
    }

    /// Adds `page`, which is not in the table, as the cached page of `lpn`.
    #[inline(always)]
    pub fn insert(&mut self, lpn: Lpn, page: PageId) {
        reach(&mut self.next, page.0 as usize, END);
        self.insert_again(lpn, page);
    }

    /// The same for a page that has been in the table before.
    #[inline(always)]
    pub fn insert_again(&mut self, lpn: Lpn, page: PageId) {
        let chain = self.chain(lpn);
        self.next[page.0 as usize] = self.heads[chain];
        self.heads[chain] = Link {
            lpn: lpn.0,
            page: page.0,
        };
    }

    /// Removes `page`, which is in the table as a cached page of `lpn`.
    #[inline(always)]
    pub fn remove(&mut self, lpn: Lpn, page: PageId) {
        let after = self.next[page.0 as usize];
        let chain = self.chain(lpn);
        let mut at = self.heads[chain].page;
        if at == page.0 {
            self.heads[chain] = after;
            return;
        }
        while self.next[at as usize].page != page.0 {
            at = self.next[at as usize].page;
        }
        self.next[at as usize] = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_plain_list_on_random_operations() {
        for seed in crate::seeds(3) {
            let mut rng = crate::rng::Rng::new(seed);
            for pages in [1, 4, 64] {
                let mut table = Directory::new(pages);
                // Pages in the order in which they came.
                let mut plain: Vec<(Lpn, PageId)> = Vec::new();
                for _ in 0..50_000 {
                    let lpn = Lpn(rng.below(40) as u32 * 65_536);
                    if rng.below(2) == 0 && plain.len() < 100 {
                        let free = (0..)
                            .map(PageId)
                            .find(|id| plain.iter().all(|p| p.1 != *id));
                        plain.push((lpn, free.unwrap()));
                        table.insert(lpn, free.unwrap());
                    } else if !plain.is_empty() {
                        let (lpn, page) = plain.remove(rng.below(plain.len() as u64) as usize);
                        table.remove(lpn, page);
                    }
                    let last = plain.iter().rev().find(|p| p.0 == lpn).map(|p| p.1);
                    assert_eq!(table.get(lpn), last);
                }
            }
        }
    }
}
