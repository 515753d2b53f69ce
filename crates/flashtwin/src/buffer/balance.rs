//! ARC's balance between the lists T1 and T2: the target size of T1, and the remembered pages (Megiddo and Modha, FAST
//! 2003, Fig. 4).

use super::ghosts::{Ghosts, Incoming};
use crate::units::Lpn;

/// Indices of the ghost lists.
const B1: usize = 0;
const B2: usize = 1;

/// The target size of T1, and the remembered pages.
#[derive(Clone, Debug)]
pub(crate) struct Balance {
    c: usize,
    /// Target size of T1. As in the paper, it is a real number. IEEE arithmetic gives the same value on every machine.
    p: f64,
    ghosts: Ghosts<2>,
    incoming: Incoming<Option<usize>>,
}

impl Balance {
    /// Creates the initial state for a buffer of `c` pages: both ghost lists are empty.
    pub fn new(c: u32) -> Balance {
        Balance {
            c: c as usize,
            p: 0.0,
            ghosts: Ghosts::new(),
            incoming: Incoming::none(),
        }
    }

    /// Adapts the target size p of T1 and the ghost lists to a miss, as cases II to IV of the published algorithm do.
    /// The step REPLACE of these cases, which evicts a page, is not executed here. `t1` and `t2` are the current sizes
    /// of T1 and T2. Returns the ghost list that remembered the page, if any.
    #[inline]
    pub fn arrives(&mut self, lpn: Lpn, t1: usize, t2: usize) -> Option<usize> {
        match self.incoming.known(lpn) {
            Some(known) => known,
            None => self.look_up(lpn, t1, t2),
        }
    }

    /// Executes `arrives` for a page that has not been looked up in the ghost lists yet.
    fn look_up(&mut self, lpn: Lpn, t1: usize, t2: usize) -> Option<usize> {
        let (b1, b2) = (self.ghosts.len(B1), self.ghosts.len(B2));
        let from = self.ghosts.recall(lpn);
        match from {
            Some(B1) => self.p = (self.p + (b2 as f64 / b1 as f64).max(1.0)).min(self.c as f64),
            Some(_) => self.p = (self.p - (b1 as f64 / b2 as f64).max(1.0)).max(0.0),
            None if t1 + b1 >= self.c => self.ghosts.forget_oldest(B1),
            None if t1 + t2 + b1 + b2 >= 2 * self.c => self.ghosts.forget_oldest(B2),
            None => {}
        }
        self.incoming.keep(lpn, from)
    }

    /// Must be called when the missed page is inserted. Adapts the target size p of T1 and the ghost lists, unless
    /// `arrives` has already done so for this page. Returns whether a ghost list remembered the page.
    #[inline]
    pub fn inserted(&mut self, lpn: Lpn, t1: usize, t2: usize) -> bool {
        let known = self.arrives(lpn, t1, t2).is_some();
        self.incoming.done();
        known
    }

    /// Whether the victim is taken from T1 rather than T2. `t1` is the current size of T1, and `from` is the ghost list
    /// that remembered the incoming page.
    #[inline]
    pub fn evicts_from_t1(&self, t1: usize, from: Option<usize>) -> bool {
        let size = t1 as f64;
        size > self.p || (size == self.p && from == Some(B2))
    }

    /// Puts a victim of T1 or T2 on its ghost list, B1 or B2. There is one exception, as in the paper: if T1 alone
    /// filled the buffer and no ghost list remembered the incoming page, the victim is not remembered. `t1` is the size
    /// of T1 before the eviction.
    #[inline]
    pub fn remember(&mut self, lpn: Lpn, in_t2: bool, t1: usize, from: Option<usize>) {
        if from.is_some() || t1 < self.c {
            let list = if in_t2 { B2 } else { B1 };
            self.ghosts.push_newest(list, lpn);
        }
    }

    /// Formats the ghost lists and the target size p of T1. A policy puts this text after the pages of T1 and T2.
    pub fn text(&self) -> String {
        let (b1, b2) = (self.ghosts.text(B1), self.ghosts.text(B2));
        format!("B1[{b1}] B2[{b2}] p={}", self.p)
    }
}
