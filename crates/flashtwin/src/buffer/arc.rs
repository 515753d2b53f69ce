//! ARC: the balance between recency and frequency follows the ghosts (Megiddo and Modha, FAST 2003,
//! Fig. 4).
//!
//! T1 holds pages referenced once lately, T2 those referenced more often; B1 and B2 remember what
//! left them. p is the size that T1 should have. L1 = T1 and B1 is at most c pages, all four 2c.
//! Hit in T1 or T2 -> most recent end of T2. Miss:
//!   in B1 -> p grows by max(1, |B2|/|B1|), the page goes to T2;
//!   in B2 -> p shrinks by max(1, |B1|/|B2|), the page goes to T2;
//!   else -> if L1 is full, B1 forgets its oldest; else if all four are, B2 does; the page goes to T1.
//! Victim: the least recent page of T1 if |T1| > p, or |T1| = p and the page came from B2; else that
//! of T2. Its ghost goes to B1 or B2. If T1 alone fills the buffer, its page leaves without a ghost.

use super::clock::set;
use super::ghosts::{Ghosts, Incoming};
use super::policy::{pages_text, Access, DeviceView, Eviction, Policy, Spare};
use super::{Aged, PageId, Setup};
use crate::memory::prefetch;
use crate::units::Lpn;

/// The lists of ghosts.
const B1: usize = 0;
const B2: usize = 1;

/// Adaptive replacement cache.
#[derive(Clone, Debug)]
pub struct Arc {
    c: usize,
    /// Moves by fractions (the paper's p is a real number); IEEE arithmetic, the same everywhere.
    p: f64,
    t1: Aged,
    t2: Aged,
    /// Per page.
    in_t2: Vec<bool>,
    ghosts: Ghosts<2>,
    incoming: Incoming<Option<usize>>,
}

impl Arc {
    /// Empty lists.
    pub fn new(setup: &Setup) -> Arc {
        Arc {
            c: setup.capacity as usize,
            p: 0.0,
            t1: Aged::new(setup),
            t2: Aged::new(setup),
            in_t2: Vec::new(),
            ghosts: Ghosts::new(),
            incoming: Incoming::none(),
        }
    }

    /// What a miss does to p and to the ghosts: cases II, III and IV but for REPLACE. Says which
    /// list remembered the page.
    fn arrives(&mut self, lpn: Lpn) -> Option<usize> {
        if let Some(known) = self.incoming.known(lpn) {
            return known;
        }
        let (b1, b2) = (self.ghosts.len(B1), self.ghosts.len(B2));
        let from = self.ghosts.recall(lpn);
        match from {
            Some(B1) => self.p = (self.p + (b2 as f64 / b1 as f64).max(1.0)).min(self.c as f64),
            Some(_) => self.p = (self.p - (b1 as f64 / b2 as f64).max(1.0)).max(0.0),
            None => {
                let (t1, t2) = (self.t1.list().len(), self.t2.list().len());
                if t1 + b1 >= self.c {
                    self.ghosts.forget_oldest(B1);
                } else if t1 + t2 + b1 + b2 >= 2 * self.c {
                    self.ghosts.forget_oldest(B2);
                }
            }
        }
        self.incoming.keep(lpn, from)
    }

    fn list(&mut self, page: PageId) -> &mut Aged {
        match self.in_t2[page.0 as usize] {
            true => &mut self.t2,
            false => &mut self.t1,
        }
    }
}

impl Policy for Arc {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let known = self.arrives(access.lpn).is_some();
        self.incoming.done();
        set(&mut self.in_t2, page, known);
        self.list(page).push_newest(page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        if std::mem::replace(&mut self.in_t2[page.0 as usize], true) {
            self.t2.renew(page);
        } else {
            self.t1.remove(page);
            self.t2.push_newest(page);
        }
    }

    fn forget(&mut self, page: PageId) {
        self.list(page).remove(page);
    }

    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.list(page).moved(device, page);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        let from = self.arrives(incoming.lpn);
        let t1 = self.t1.list().len();
        let size = t1 as f64;
        let t1_first = size > self.p || (size == self.p && from == Some(B2));
        let mut lists = [&mut self.t2, &mut self.t1];
        if t1_first {
            lists.reverse();
        }
        let found = lists
            .iter_mut()
            .find_map(|list| list.oldest_not(device, spare, out));
        let Some(page) = found else { return false };
        let ghosts = if self.in_t2[page.0 as usize] { B2 } else { B1 };
        if from.is_some() || t1 < self.c {
            self.ghosts.push_newest(ghosts, device.lpn(page));
        }
        self.forget(page);
        out.victims.push(page);
        true
    }

    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        match self.t1.list().len() as f64 > self.p {
            true => self.t1.list().oldest_three(),
            false => self.t2.list().oldest_three(),
        }
    }

    #[inline]
    fn expect(&self, page: PageId, near: bool) {
        if !near {
            prefetch(&self.in_t2, page.0 as usize);
        }
        self.t1.expect(page, near);
        self.t2.expect(page, near);
    }

    #[inline]
    fn expect_lpn(&self, lpn: Lpn, _leaves: bool) {
        self.ghosts.prefetch(lpn);
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let text = |list: &Aged| pages_text(device, list.list().iter_oldest_first());
        let (t1, t2) = (text(&self.t1), text(&self.t2));
        let (b1, b2) = (self.ghosts.text(B1), self.ghosts.text(B2));
        format!("T1[{t1}] T2[{t2}] B1[{b1}] B2[{b2}] p={}", self.p)
    }
}
