//! Page numbers that are remembered after the eviction of their pages (*ghosts*): a hash table of chains, and lists
//! in the order of eviction.
//!
//! Ghosts are 2Q's A1out, ARC's B1 and B2, S3-FIFO's ghost queue, the HIR pages of LIRS that are no longer cached,
//! and the uncached pages of CLOCK-Pro. Each policy bounds its lists. The table grows to the largest bound, and
//! allocates nothing afterwards.

use crate::memory::{large_table, prefetch};
use crate::units::{Lpn, PageId};

const NONE: u32 = u32::MAX;

/// An entry for one remembered page: a quarter of a cache line.
#[derive(Clone, Copy, Debug)]
struct Ghost {
    lpn: Lpn,
    /// The next entry of the chain, or the next free one.
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

    /// Returns the number under which a page is remembered; `None` if no list has it. Numbers are small. The number
    /// of a forgotten page is reused.
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

    /// Returns the number of the page of a list that was evicted first; `None` if the list is empty.
    #[inline]
    pub fn oldest(&self, list: usize) -> Option<u32> {
        let oldest = self.lists[list].oldest;
        (oldest != NONE).then_some(oldest)
    }

    /// Remembers a page that is in no list. The page becomes the last evicted one of `list`. Returns its number.
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

    /// Doubles the entries and chains. Called only when every entry is in use.
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

    /// Removes an entry from its chain; returns the entry.
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

    /// Forgets the page that is remembered under the number `at`; returns the list that had it.
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

    /// Forgets a page; returns the list that had it, `None` if no list remembered the page.
    #[inline]
    pub fn recall(&mut self, lpn: Lpn) -> Option<usize> {
        self.find(lpn).map(|at| self.remove(at))
    }

    /// Forgets the page of a list that was evicted first. Prefetches the data that the next call for this list
    /// accesses.
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

    /// Remembers a page in a list of at most `bound` pages. If the list is full, it first forgets the page that was
    /// evicted first.
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

    /// Formats the pages of a list, the most recently evicted first, separated by spaces.
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
    /// Returns a number that identifies the entry in the list: even for cached pages, odd for ghosts.
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

/// The result of looking up the incoming page among the ghosts. `evict` and `insert` share this lookup.
#[derive(Clone, Debug)]
pub(crate) struct Incoming<T> {
    of: Option<(Lpn, T)>,
}

impl<T: Copy> Incoming<T> {
    /// Creates the state in which no page is being inserted.
    pub fn none() -> Self {
        Incoming { of: None }
    }

    /// Returns the result of the lookup of `lpn`, if there was one.
    #[inline]
    pub fn known(&self, lpn: Lpn) -> Option<T> {
        self.of.and_then(|(of, known)| (of == lpn).then_some(known))
    }

    /// Keeps the result of the lookup of `lpn` until the page is inserted.
    #[inline]
    pub fn keep(&mut self, lpn: Lpn, known: T) -> T {
        self.of = Some((lpn, known));
        known
    }

    /// Drops the kept result, because the page was inserted.
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
            // Each list is in the order of eviction, the page evicted first at the front.
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
