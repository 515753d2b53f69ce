//! A doubly linked list over page numbers, links in one array: the order policies keep.

use super::PageId;
use crate::memory::{prefetch, reach};

const NONE: u32 = u32::MAX;

/// Most recent first, least recent last; every operation but iteration takes constant time.
#[derive(Clone, Debug)]
pub struct List {
    /// (towards most recent, towards least recent) of each page.
    links: Vec<(u32, u32)>,
    newest: u32,
    oldest: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        List {
            links: Vec::new(),
            newest: NONE,
            oldest: NONE,
            len: 0,
        }
    }
}

fn id(n: u32) -> Option<PageId> {
    (n != NONE).then_some(PageId(n))
}

impl List {
    /// Pages in the list.
    pub fn len(&self) -> usize {
        self.len
    }

    /// No page is in the list.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The least recent page.
    #[inline]
    pub fn oldest(&self) -> Option<PageId> {
        id(self.oldest)
    }

    /// The most recent page.
    #[inline]
    pub fn newest(&self) -> Option<PageId> {
        id(self.newest)
    }

    /// The three least recent pages, the least recent first; starts loading the place of the third.
    #[inline]
    pub fn oldest_three(&self) -> [Option<PageId>; 3] {
        let first = self.oldest();
        let second = first.and_then(|page| self.newer(page));
        let third = second.and_then(|page| self.newer(page));
        if let Some(page) = third {
            prefetch(&self.links, page.0 as usize);
        }
        [first, second, third]
    }

    /// The page is likely to move soon: starts loading its place, or, `near`, its neighbours.
    #[inline]
    pub fn expect(&self, page: PageId, near: bool) {
        let at = page.0 as usize;
        if !near {
            return prefetch(&self.links, at);
        }
        if let Some(&(newer, older)) = self.links.get(at) {
            prefetch(&self.links, newer as usize);
            prefetch(&self.links, older as usize);
        }
    }

    /// The neighbour towards the most recent end.
    #[inline]
    pub fn newer(&self, page: PageId) -> Option<PageId> {
        id(self.links[page.0 as usize].0)
    }

    /// The neighbour towards the least recent end.
    #[inline]
    pub fn older(&self, page: PageId) -> Option<PageId> {
        id(self.links[page.0 as usize].1)
    }

    /// Puts a page that is not in the list at the most recent end.
    #[inline]
    pub fn push_newest(&mut self, page: PageId) {
        reach(&mut self.links, page.0 as usize, (NONE, NONE));
        self.links[page.0 as usize] = (NONE, self.newest);
        match self.newest {
            NONE => self.oldest = page.0,
            newest => self.links[newest as usize].0 = page.0,
        }
        self.newest = page.0;
        self.len += 1;
    }

    /// Puts a page that is not in the list just newer than `older`; at the least recent end if
    /// there is none.
    pub fn insert_newer_than(&mut self, older: Option<PageId>, page: PageId) {
        let newer = match older {
            Some(o) => self.links[o.0 as usize].0,
            None => self.oldest,
        };
        if newer == NONE {
            return self.push_newest(page);
        }
        reach(&mut self.links, page.0 as usize, (NONE, NONE));
        self.links[page.0 as usize] = (newer, older.map_or(NONE, |o| o.0));
        self.links[newer as usize].1 = page.0;
        match older {
            Some(o) => self.links[o.0 as usize].0 = page.0,
            None => self.oldest = page.0,
        }
        self.len += 1;
    }

    /// Takes a page out of the list it is in.
    #[inline]
    pub fn remove(&mut self, page: PageId) {
        let (newer, older) = self.links[page.0 as usize];
        match newer {
            NONE => self.newest = older,
            n => self.links[n as usize].1 = older,
        }
        match older {
            NONE => self.oldest = newer,
            o => self.links[o as usize].0 = newer,
        }
        self.len -= 1;
    }

    /// Pages from the least recent to the most recent.
    pub fn iter_oldest_first(&self) -> impl Iterator<Item = PageId> + '_ {
        std::iter::successors(self.oldest(), |&page| self.newer(page))
    }
}
