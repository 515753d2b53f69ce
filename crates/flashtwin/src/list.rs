//! Doubly linked lists of pages, for buffer policies. The links of all pages are in one array, indexed by page.

use crate::memory::{prefetch, reach};
use crate::units::PageId;

const NONE: u32 = u32::MAX;
/// Links of a page that is in no list.
const APART: (u32, u32) = (u32::MAX - 1, u32::MAX - 1);

fn id(n: u32) -> Option<PageId> {
    (n != NONE).then_some(PageId(n))
}

/// Links of each page: its more recent neighbour, and its less recent neighbour.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links(Vec<(u32, u32)>);

impl Links {
    /// Prefetches the links of a page.
    #[inline]
    pub fn prefetch(&self, page: PageId) {
        prefetch(&self.0, page.0 as usize);
    }

    /// Returns the more recent neighbour of a page.
    #[inline(always)]
    pub fn newer(&self, page: PageId) -> Option<PageId> {
        id(self.0[page.0 as usize].0)
    }

    /// Returns the less recent neighbour of a page.
    #[inline(always)]
    pub fn older(&self, page: PageId) -> Option<PageId> {
        id(self.0[page.0 as usize].1)
    }

    /// Returns three adjacent pages: `first`, the next more recent page, and the one after that. Prefetches the links
    /// of the third.
    #[inline(always)]
    pub fn three_from(&self, first: Option<PageId>) -> [Option<PageId>; 3] {
        let second = first.and_then(|page| self.newer(page));
        let third = second.and_then(|page| self.newer(page));
        if let Some(page) = third {
            self.prefetch(page);
        }
        [first, second, third]
    }

    /// Returns the page `oldest` and all pages that are more recent, in order from least to most recent.
    pub fn iter_from(&self, oldest: Option<PageId>) -> impl Iterator<Item = PageId> + '_ {
        std::iter::successors(oldest, |&page| self.newer(page))
    }
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    newest: u32,
    oldest: u32,
    len: usize,
}

/// `N` lists that share one array of links. A page is in at most one of these lists.
#[derive(Clone, Debug)]
pub(crate) struct Lists<const N: usize> {
    links: Links,
    ends: [Ends; N],
}

impl<const N: usize> Lists<N> {
    /// Creates empty lists.
    pub fn new() -> Self {
        let none = Ends {
            newest: NONE,
            oldest: NONE,
            len: 0,
        };
        Lists {
            links: Links::default(),
            ends: [none; N],
        }
    }

    /// Returns the links of all pages.
    #[inline]
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Returns the number of pages in a list.
    #[inline]
    pub fn len(&self, list: usize) -> usize {
        self.ends[list].len
    }

    /// Returns the least recent page of a list.
    #[inline(always)]
    pub fn oldest(&self, list: usize) -> Option<PageId> {
        id(self.ends[list].oldest)
    }

    /// Returns the three least recent pages: see [`List::oldest_three`].
    #[inline]
    pub fn oldest_three(&self, list: usize) -> [Option<PageId>; 3] {
        self.links.three_from(self.oldest(list))
    }

    /// Inserts a page at the most recent end of a list. The page must not be in any list.
    #[inline(always)]
    pub fn push_newest(&mut self, list: usize, page: PageId) {
        let links = &mut self.links.0;
        reach(links, page.0 as usize, APART);
        let ends = &mut self.ends[list];
        links[page.0 as usize] = (NONE, ends.newest);
        match ends.newest {
            NONE => ends.oldest = page.0,
            newest => links[newest as usize].0 = page.0,
        }
        ends.newest = page.0;
        ends.len += 1;
    }

    /// Inserts a page into a list, as the more recent neighbour of `older`. If `older` is `None`, the page becomes
    /// the least recent one. The page must not be in any list.
    pub fn insert_newer_than(&mut self, list: usize, older: Option<PageId>, page: PageId) {
        let newer = match older {
            Some(older) => self.links.newer(older),
            None => self.oldest(list),
        };
        let Some(newer) = newer else {
            return self.push_newest(list, page);
        };
        let links = &mut self.links.0;
        reach(links, page.0 as usize, APART);
        links[page.0 as usize] = (newer.0, older.map_or(NONE, |o| o.0));
        links[newer.0 as usize].1 = page.0;
        match older {
            Some(older) => links[older.0 as usize].0 = page.0,
            None => self.ends[list].oldest = page.0,
        }
        self.ends[list].len += 1;
    }

    /// Removes a page from its list.
    #[inline(always)]
    pub fn remove(&mut self, list: usize, page: PageId) {
        let links = &mut self.links.0;
        let (newer, older) = links[page.0 as usize];
        let ends = &mut self.ends[list];
        match newer {
            NONE => ends.newest = older,
            n => links[n as usize].1 = older,
        }
        match older {
            NONE => ends.oldest = newer,
            o => links[o as usize].0 = newer,
        }
        ends.len -= 1;
        links[page.0 as usize] = APART;
    }

    /// Whether the array of links has an entry for `page`.
    #[inline(always)]
    pub fn has_links_of(&self, page: PageId) -> bool {
        self.links.0.len() > page.0 as usize
    }

    /// Removes `out` from a list, and inserts `page` at its most recent end. Then counts four pages from the old
    /// position of `out` towards the most recent end, returns the fourth of them, and prefetches its links. Requires
    /// that:
    ///
    /// - `page` is in no list,
    /// - [`Lists::has_links_of`] is true for `page`,
    /// - at least three pages of the list are more recent than `out`.
    #[inline(always)]
    pub fn exchange(&mut self, list: usize, out: PageId, page: PageId) -> PageId {
        debug_assert!(self.has_links_of(page));
        let links = &mut self.links.0[..];
        let ends = &mut self.ends[list];
        let newest = std::mem::replace(&mut ends.newest, page.0);
        links[newest as usize].0 = page.0;
        links[page.0 as usize] = (NONE, newest);
        let (second, older) = std::mem::replace(&mut links[out.0 as usize], APART);
        links[second as usize].1 = older;
        match older {
            NONE => ends.oldest = second,
            older => links[older as usize].0 = second,
        }
        let next = links[second as usize].0;
        let third = links[next as usize].0;
        let fourth = PageId(links[third as usize].0);
        self.links.prefetch(fourth);
        fourth
    }

    /// Returns the pages of a list from the least recent to the most recent.
    pub fn iter_oldest_first(&self, list: usize) -> impl Iterator<Item = PageId> + '_ {
        self.links.iter_from(self.oldest(list))
    }
}

/// One list of pages, ordered from most recent to least recent. Every operation except iteration takes constant time.
#[derive(Clone, Debug)]
pub struct List(Lists<1>);

impl Default for List {
    fn default() -> Self {
        List(Lists::new())
    }
}

impl List {
    /// Returns the links of all pages.
    #[inline]
    pub(crate) fn links(&self) -> &Links {
        self.0.links()
    }

    /// Returns the number of pages in the list.
    pub fn len(&self) -> usize {
        self.0.len(0)
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the least recent page.
    #[inline(always)]
    pub fn oldest(&self) -> Option<PageId> {
        self.0.oldest(0)
    }

    /// Returns the most recent page.
    #[inline]
    pub fn newest(&self) -> Option<PageId> {
        id(self.0.ends[0].newest)
    }

    /// Returns the three least recent pages, the least recent first; prefetches the links of the third.
    #[inline]
    pub fn oldest_three(&self) -> [Option<PageId>; 3] {
        self.0.oldest_three(0)
    }

    /// Prefetches the links of a page.
    #[inline]
    pub fn prefetch(&self, page: PageId) {
        self.0.links.prefetch(page);
    }

    /// Returns the more recent neighbour of a page.
    #[inline(always)]
    pub fn newer(&self, page: PageId) -> Option<PageId> {
        self.0.links.newer(page)
    }

    /// Returns the less recent neighbour of a page.
    #[inline(always)]
    pub fn older(&self, page: PageId) -> Option<PageId> {
        self.0.links.older(page)
    }

    /// Whether a page is in the list.
    #[inline]
    pub fn holds(&self, page: PageId) -> bool {
        let links = &self.0.links.0;
        links.get(page.0 as usize).is_some_and(|&at| at != APART)
    }

    /// Inserts a page at the most recent end. The page must not be in the list.
    #[inline(always)]
    pub fn push_newest(&mut self, page: PageId) {
        self.0.push_newest(0, page);
    }

    /// Inserts a page as the more recent neighbour of `older`. If `older` is `None`, the page becomes the least
    /// recent one. The page must not be in the list.
    pub fn insert_newer_than(&mut self, older: Option<PageId>, page: PageId) {
        self.0.insert_newer_than(0, older, page);
    }

    /// Removes a page from the list.
    #[inline(always)]
    pub fn remove(&mut self, page: PageId) {
        self.0.remove(0, page);
    }

    /// Whether the array of links has an entry for `page`.
    #[inline(always)]
    pub(crate) fn has_links_of(&self, page: PageId) -> bool {
        self.0.has_links_of(page)
    }

    /// Removes one page and inserts another: see [`Lists::exchange`].
    #[inline(always)]
    pub(crate) fn exchange(&mut self, out: PageId, page: PageId) -> PageId {
        self.0.exchange(0, out, page)
    }

    /// Returns the pages from the least recent to the most recent one.
    pub fn iter_oldest_first(&self) -> impl Iterator<Item = PageId> + '_ {
        self.0.iter_oldest_first(0)
    }
}
