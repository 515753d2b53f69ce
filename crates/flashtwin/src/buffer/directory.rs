//! Maps logical pages to cached pages with a hash table. Its chains are linked lists whose links are in one array,
//! indexed by cached page. A link contains both the logical page and the cached page, so a lookup reads no other table.
//!
//! An evicted page stays in the table until it is released. A logical page may therefore have several entries. A lookup
//! returns the entry that was inserted last.

use super::PageId;
use crate::memory::{large_table, prefetch, room_for, TrustedTable};
use crate::units::Lpn;

/// A page of a chain, cached as `page`.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
struct Link {
    lpn: u32,
    page: u32,
}

/// Marks the end of a chain.
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

/// Minimum number of hash chains per cached page. With only 2 chains per page, four in ten lookups would first find
/// another page in their chain, and the processor would mispredict the branch.
const HEADS_A_PAGE: usize = 8;

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    /// First page of each chain.
    heads: TrustedTable<Link>,
    /// For each cached page, the next link of its chain.
    next: TrustedTable<Link>,
    shift: u32,
}

impl Directory {
    /// Creates a table for about `pages` pages.
    pub fn new(pages: usize) -> Directory {
        let size = (pages.max(2) * HEADS_A_PAGE).next_power_of_two();
        Directory {
            // SAFETY: the only index used is the result of `Directory::chain`, which is less than the number of heads.
            heads: unsafe { TrustedTable::new(large_table(END, size)) },
            // SAFETY: each index is the number of a page that was checked at insertion. Links contain only such pages.
            next: unsafe { TrustedTable::new(room_for(pages)) },
            shift: 64 - size.trailing_zeros(),
        }
    }

    #[inline(always)]
    fn chain(&self, lpn: Lpn) -> usize {
        ((lpn.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Prefetches the head of the chain that a lookup of `lpn` reads first.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.heads, self.chain(lpn));
    }

    /// Prefetches the link of a page that will probably be looked up or removed.
    #[inline]
    pub fn prefetch_link(&self, page: PageId) {
        prefetch(&self.next, page.0 as usize);
    }

    /// Returns the last inserted page of `lpn`.
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

    /// Adds `page` as the cached page of `lpn`. The page must not be in the table.
    #[inline(always)]
    pub fn insert(&mut self, lpn: Lpn, page: PageId) {
        self.next.reach(page.0 as usize, END);
        self.insert_again(lpn, page);
    }

    /// Adds `page` as the cached page of `lpn`. The page must have been in the table earlier, so that it has a link.
    #[inline(always)]
    pub fn insert_again(&mut self, lpn: Lpn, page: PageId) {
        let chain = self.chain(lpn);
        assert!(
            (page.0 as usize) < self.next.len(),
            "a page of the directory"
        );
        self.next[page.0 as usize] = self.heads[chain];
        self.heads[chain] = Link {
            lpn: lpn.0,
            page: page.0,
        };
    }

    /// Removes `page`, which must be in the table as a cached page of `lpn`.
    #[inline(always)]
    pub fn remove(&mut self, lpn: Lpn, page: PageId) {
        assert!(
            (page.0 as usize) < self.next.len(),
            "a page of the directory"
        );
        let after = self.next[page.0 as usize];
        let chain = self.chain(lpn);
        let mut at = self.heads[chain].page;
        if at == page.0 {
            self.heads[chain] = after;
            return;
        }
        // If the chain does not contain the page, the loop reaches `END`. The page number of `END` is not a valid
        // index, so the next access panics.
        let next = &mut *self.next;
        while next[at as usize].page != page.0 {
            at = next[at as usize].page;
        }
        next[at as usize] = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a page of the directory")]
    fn page_that_was_never_inserted_cannot_be_inserted_again() {
        Directory::new(4).insert_again(Lpn(1), PageId(1 << 20));
    }

    #[test]
    #[should_panic(expected = "a page of the directory")]
    fn page_beyond_the_directory_cannot_be_removed() {
        Directory::new(4).remove(Lpn(1), PageId(1 << 20));
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn page_of_another_chain_cannot_be_removed() {
        let mut directory = Directory::new(4);
        directory.insert(Lpn(1), PageId(1));
        directory.remove(Lpn(2), PageId(0));
    }

    #[test]
    fn agrees_with_a_plain_list_on_random_operations() {
        for seed in crate::seeds(3) {
            let mut rng = crate::rng::Rng::new(seed);
            for pages in [1, 4, 64] {
                let mut table = Directory::new(pages);
                // Pages in order of insertion.
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
