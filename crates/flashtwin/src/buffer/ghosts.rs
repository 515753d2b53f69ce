//! Numbers of evicted pages that a policy still remembers (*ghosts*). They are stored in a hash table, and in lists in
//! the order of eviction.
//!
//! Examples of ghosts are the pages in A1out of 2Q, in B1 and B2 of ARC, and in the ghost queue of S3-FIFO. LIRS (HIR
//! pages) and CLOCK-Pro also remember pages that are no longer cached. Each policy bounds its lists. The table grows
//! until the lists have reached these bounds, and allocates no memory afterwards.

use crate::memory::{large_table, prefetch};
use crate::units::{Lpn, PageId};

const NONE: u32 = u32::MAX;

/// An entry for one remembered page. Four entries fit in a cache line.
#[derive(Clone, Copy, Debug)]
struct Ghost {
    lpn: Lpn,
    /// The next entry of the hash chain. For a free entry: the next free entry.
    next: u32,
    newer: u32,
    older: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    newest: u32,
    oldest: u32,
    len: usize,
}

/// `LISTS` lists of remembered pages. A page is in at most one list.
#[derive(Clone, Debug)]
pub(crate) struct Ghosts<const LISTS: usize = 1> {
    /// First entry of each chain. The number of chains is twice the number of entries.
    heads: Vec<u32>,
    shift: u32,
    ghosts: Vec<Ghost>,
    /// For each entry, the list it is in.
    list: Vec<u8>,
    free: u32,
    lists: [Ends; LISTS],
}

impl<const LISTS: usize> Ghosts<LISTS> {
    /// Creates an empty list.
    pub fn new() -> Self {
        let none = Ends {
            newest: NONE,
            oldest: NONE,
            len: 0,
        };
        Ghosts {
            heads: vec![NONE; 2],
            shift: 63,
            ghosts: Vec::new(),
            list: Vec::new(),
            free: NONE,
            lists: [none; LISTS],
        }
    }

    #[inline]
    fn chain(&self, lpn: Lpn) -> usize {
        (u64::from(lpn.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Pages in a list.
    #[inline]
    pub fn len(&self, list: usize) -> usize {
        self.lists[list].len
    }

    /// Returns the number of the entry that remembers a page; `None` if no list remembers the page. Entry numbers are
    /// small and are reused after a page is forgotten.
    #[inline]
    pub fn find(&self, lpn: Lpn) -> Option<u32> {
        let mut at = self.heads[self.chain(lpn)];
        while at != NONE {
            let ghost = &self.ghosts[at as usize];
            if ghost.lpn == lpn {
                return Some(at);
            }
            at = ghost.next;
        }
        None
    }

    /// Returns, for one of the lists, the entry number of the page that was evicted earliest; `None` if the list is
    /// empty.
    #[inline]
    pub fn oldest(&self, list: usize) -> Option<u32> {
        let oldest = self.lists[list].oldest;
        (oldest != NONE).then_some(oldest)
    }

    /// Remembers a page in `list`, as the page evicted last. The page must not be in any list yet. Returns the entry
    /// number.
    pub fn push_newest(&mut self, list: usize, lpn: Lpn) -> u32 {
        debug_assert!(self.find(lpn).is_none(), "{lpn:?} is remembered twice");
        if self.free == NONE {
            self.grow();
        }
        let chain = self.chain(lpn);
        let ends = &mut self.lists[list];
        let at = self.free;
        let place = &mut self.ghosts[at as usize];
        self.free = place.next;
        *place = Ghost {
            lpn,
            next: self.heads[chain],
            newer: NONE,
            older: ends.newest,
        };
        self.list[at as usize] = list as u8;
        self.heads[chain] = at;
        match ends.newest {
            NONE => ends.oldest = at,
            newest => self.ghosts[newest as usize].newer = at,
        }
        ends.newest = at;
        ends.len += 1;
        at
    }

    /// Doubles the number of entries and of hash chains. Must be called only when every entry is in use.
    #[cold]
    fn grow(&mut self) {
        let used = self.ghosts.len();
        let places = (used * 2).max(32);
        let unused = Ghost {
            lpn: Lpn(0),
            next: NONE,
            newer: NONE,
            older: NONE,
        };
        let before = std::mem::replace(&mut self.ghosts, large_table(unused, places));
        self.ghosts[..used].copy_from_slice(&before);
        self.list.resize(places, 0);
        for at in (used..places).rev() {
            self.ghosts[at].next = self.free;
            self.free = at as u32;
        }
        self.heads = large_table(NONE, places * 2);
        self.shift = 64 - self.heads.len().trailing_zeros();
        for at in 0..used {
            let chain = self.chain(self.ghosts[at].lpn);
            self.ghosts[at].next = self.heads[chain];
            self.heads[chain] = at as u32;
        }
    }

    /// Removes an entry from its hash chain. Returns the entry.
    #[inline]
    fn leave_chain(&mut self, at: u32) -> Ghost {
        let ghost = self.ghosts[at as usize];
        let chain = self.chain(ghost.lpn);
        if self.heads[chain] == at {
            self.heads[chain] = ghost.next;
        } else {
            let mut before = self.heads[chain];
            while self.ghosts[before as usize].next != at {
                before = self.ghosts[before as usize].next;
            }
            self.ghosts[before as usize].next = ghost.next;
        }
        ghost
    }

    /// Forgets the page in entry number `at`. Returns the list that remembered it.
    pub fn remove(&mut self, at: u32) -> usize {
        let ghost = self.leave_chain(at);
        let list = self.list[at as usize].into();
        let ends: &mut Ends = &mut self.lists[list];
        match ghost.newer {
            NONE => ends.newest = ghost.older,
            newer => self.ghosts[newer as usize].older = ghost.older,
        }
        match ghost.older {
            NONE => ends.oldest = ghost.newer,
            older => self.ghosts[older as usize].newer = ghost.newer,
        }
        ends.len -= 1;
        self.ghosts[at as usize].next = self.free;
        self.free = at;
        list
    }

    /// Forgets a page. Returns the list that remembered it; `None` if no list did.
    #[inline]
    pub fn recall(&mut self, lpn: Lpn) -> Option<usize> {
        self.find(lpn).map(|at| self.remove(at))
    }

    /// Forgets, of the pages in a list, the one that was evicted earliest. Also prefetches the data that the next call
    /// for this list reads.
    pub fn forget_oldest(&mut self, list: usize) {
        let Some(at) = self.oldest(list) else { return };
        let newer = self.leave_chain(at).newer;
        self.ghosts[at as usize].next = self.free;
        self.free = at;
        let ends = &mut self.lists[list];
        ends.oldest = newer;
        ends.len -= 1;
        if newer == NONE {
            ends.newest = NONE;
            return;
        }
        let next = &mut self.ghosts[newer as usize];
        next.older = NONE;
        let lpn = next.lpn;
        prefetch(&self.heads, self.chain(lpn));
    }

    /// Remembers a page in a list of at most `bound` pages. If the list is full, the page that was evicted earliest is
    /// forgotten first.
    pub fn push_bounded(&mut self, list: usize, lpn: Lpn, bound: u32) {
        if bound == 0 {
            return;
        }
        if self.len(list) >= bound as usize {
            self.forget_oldest(list);
        }
        self.push_newest(list, lpn);
    }

    /// Returns the page remembered at a place.
    #[inline]
    pub fn lpn(&self, at: u32) -> Lpn {
        self.ghosts[at as usize].lpn
    }

    /// Formats the page numbers in a list, separated by spaces. The page that was evicted last is first.
    pub fn text(&self, list: usize) -> String {
        let mut texts = Vec::new();
        let mut at = self.lists[list].newest;
        while at != NONE {
            let ghost = &self.ghosts[at as usize];
            texts.push(ghost.lpn.0.to_string());
            at = ghost.older;
        }
        texts.join(" ")
    }
}

/// Entry of a list that has both cached pages and ghosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Page(PageId),
    /// A page no longer cached.
    Ghost(u32),
}

impl Place {
    /// Returns a number that identifies the entry in the list. The number is even for a cached page and odd for a
    /// ghost.
    pub fn number(self) -> PageId {
        match self {
            Place::Page(page) => PageId(page.0 * 2),
            Place::Ghost(at) => PageId(at * 2 + 1),
        }
    }

    /// Returns the entry with this number.
    pub fn of(number: PageId) -> Place {
        match number.0 % 2 {
            0 => Place::Page(PageId(number.0 / 2)),
            _ => Place::Ghost(number.0 / 2),
        }
    }
}

/// The result of looking up the incoming page among the ghosts. Stored because `evict` and `insert` both need it.
#[derive(Clone, Debug)]
pub(crate) struct Incoming<T> {
    of: Option<(Lpn, T)>,
}

impl<T: Copy> Incoming<T> {
    /// Creates the empty state: no result of a lookup is stored.
    pub fn none() -> Self {
        Incoming { of: None }
    }

    /// Returns the stored result of the lookup of `lpn`, if there is one.
    #[inline]
    pub fn known(&self, lpn: Lpn) -> Option<T> {
        self.of.and_then(|(of, known)| (of == lpn).then_some(known))
    }

    /// Stores the result of the lookup of `lpn` until the page is inserted. Returns the result.
    #[inline]
    pub fn keep(&mut self, lpn: Lpn, known: T) -> T {
        self.of = Some((lpn, known));
        known
    }

    /// Deletes the stored result. Must be called when the page is inserted.
    #[inline]
    pub fn done(&mut self) {
        self.of = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_plain_lists_on_random_operations() {
        for seed in crate::seeds(3) {
            let mut rng = crate::rng::Rng::new(seed);
            let mut ghosts = Ghosts::<2>::new();
            // Each list is in the order of eviction: the page that was evicted earliest is first.
            let mut plain: [Vec<Lpn>; 2] = [Vec::new(), Vec::new()];
            for _ in 0..100_000 {
                // All numbers are multiples of 65 536, so that some pages share a chain.
                let lpn = Lpn(rng.below(400) as u32 * 65_536);
                let list = rng.below(2) as usize;
                let held = plain.iter().position(|pages| pages.contains(&lpn));
                assert_eq!(ghosts.find(lpn).map(|at| ghosts.lpn(at)), held.map(|_| lpn));
                match rng.below(5) {
                    0 => {
                        ghosts.forget_oldest(list);
                        if !plain[list].is_empty() {
                            plain[list].remove(0);
                        }
                    }
                    1 => {
                        assert_eq!(ghosts.recall(lpn), held);
                        plain
                            .iter_mut()
                            .for_each(|pages| pages.retain(|p| *p != lpn));
                    }
                    _ if held.is_none() => {
                        ghosts.push_bounded(list, lpn, 150);
                        if plain[list].len() == 150 {
                            plain[list].remove(0);
                        }
                        plain[list].push(lpn);
                    }
                    _ => {}
                }
                for (list, pages) in plain.iter().enumerate() {
                    assert_eq!(ghosts.len(list), pages.len());
                    let oldest = ghosts.oldest(list).map(|at| ghosts.lpn(at));
                    assert_eq!(oldest, pages.first().copied());
                }
            }
            for (list, pages) in plain.iter().enumerate() {
                let texts: Vec<String> = pages.iter().rev().map(|lpn| lpn.0.to_string()).collect();
                assert_eq!(ghosts.text(list), texts.join(" "));
            }
        }
    }
}
