//! 2Q, full version: a page proves itself by coming back (Johnson and Shasha, VLDB 1994).
//!
//! A1in, FIFO, takes first references; A1out remembers what left it; Am, LRU, holds what came back.
//! Hit in Am -> most recent end. Hit in A1in -> nothing: references close together count as one.
//! Miss: remembered in A1out -> Am, else -> A1in.
//! Victim: if A1in holds more than Kin pages, its oldest, which A1out remembers; else the least
//! recent page of Am, which is forgotten. A1out holds Kout numbers; the oldest makes room.

use super::aged::AgedLists;
use super::clock::set;
use super::ghosts::{Ghosts, Incoming};
use super::policy::{pages_text, Access, DeviceView, Eviction, Policy, Spare};
use super::{PageId, Setup};
use crate::memory::prefetch;
use crate::units::Lpn;

/// The lists.
const A1IN: usize = 0;
const AM: usize = 1;

/// Two queues.
#[derive(Clone, Debug)]
pub struct TwoQ {
    k_in: usize,
    k_out: u32,
    lists: AgedLists<2>,
    /// Per page.
    in_am: Vec<bool>,
    a1out: Ghosts,
    incoming: Incoming<bool>,
}

impl TwoQ {
    /// Kin and Kout of `setup.params`.
    pub fn new(setup: &Setup) -> TwoQ {
        TwoQ {
            k_in: setup.params.k_in_pages as usize,
            k_out: setup.params.k_out_pages,
            lists: AgedLists::new(setup),
            in_am: Vec::new(),
            a1out: Ghosts::new(),
            incoming: Incoming::none(),
        }
    }

    /// Whether the page that comes in was remembered; it no longer is.
    fn arrives(&mut self, lpn: Lpn) -> bool {
        let known = self.incoming.known(lpn);
        known.unwrap_or_else(|| {
            let known = self.a1out.recall(lpn).is_some();
            self.incoming.keep(lpn, known)
        })
    }

    fn list(&self, page: PageId) -> usize {
        match self.in_am[page.0 as usize] {
            true => AM,
            false => A1IN,
        }
    }

    fn a1in_first(&self) -> bool {
        self.lists.lists().len(A1IN) > self.k_in
    }
}

impl Policy for TwoQ {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let known = self.arrives(access.lpn);
        self.incoming.done();
        set(&mut self.in_am, page, known);
        self.lists.push_newest(self.list(page), page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        if self.in_am[page.0 as usize] {
            self.lists.renew(AM, page, AM);
        }
    }

    fn forget(&mut self, page: PageId) {
        self.lists.remove(self.list(page), page);
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.lists.moved(self.list(page), device, page);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        let lists = match self.a1in_first() {
            true => [A1IN, AM],
            false => [AM, A1IN],
        };
        let mut oldest = |list| self.lists.oldest_not(list, device, spare, out);
        let found = lists.into_iter().find_map(&mut oldest);
        let Some(page) = found else { return false };
        // A1out makes room for the victim by forgetting the page that comes in, if it can (D-161).
        self.arrives(incoming.lpn);
        if !self.in_am[page.0 as usize] {
            self.a1out.push_bounded(0, device.lpn(page), self.k_out);
        }
        self.forget(page);
        out.victims.push(page);
        true
    }

    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        let list = if self.a1in_first() { A1IN } else { AM };
        self.lists.next_three(list)
    }

    #[inline]
    fn expect(&self, page: PageId, near: bool) {
        if !near {
            prefetch(&self.in_am, page.0 as usize);
        }
        self.lists.expect(page, near);
    }

    fn wants_hints(&self) -> bool {
        true
    }

    #[inline]
    fn expect_lpn(&self, lpn: Lpn, _leaves: bool) {
        self.a1out.prefetch(lpn);
    }

    #[inline]
    fn expect_lpn_near(&self, lpn: Lpn) {
        self.a1out.expect_near(lpn);
    }

    #[inline]
    fn expect_last(&self, lpn: Lpn, page: Option<PageId>) {
        if page.is_none() {
            self.a1out.expect_last(lpn);
        }
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let lists = self.lists.lists();
        let text = |list| pages_text(device, lists.iter_oldest_first(list));
        let (a1in, am) = (text(A1IN), text(AM));
        format!("A1in[{a1in}] Am[{am}] A1out[{}]", self.a1out.text(0))
    }
}
