//! 2Q, full version: a page proves itself by coming back (Johnson and Shasha, VLDB 1994).
//!
//! A1in, FIFO, takes first references; A1out remembers what left it; Am, LRU, holds what came back.
//! Hit in Am -> most recent end. Hit in A1in -> nothing: references close together count as one.
//! Miss: remembered in A1out -> Am, else -> A1in.
//! Victim: if A1in holds more than Kin pages, its oldest, which A1out remembers; else the least
//! recent page of Am, which is forgotten. A1out holds Kout numbers; the oldest makes room.

use super::clock::set;
use super::ghosts::{Ghosts, Incoming};
use super::policy::{pages_text, Access, DeviceView, Eviction, Policy, Spare};
use super::{Aged, PageId, Setup};
use crate::memory::prefetch;
use crate::units::Lpn;

/// Two queues.
#[derive(Clone, Debug)]
pub struct TwoQ {
    k_in: usize,
    k_out: u32,
    a1in: Aged,
    am: Aged,
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
            a1in: Aged::new(setup),
            am: Aged::new(setup),
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

    fn list(&mut self, page: PageId) -> &mut Aged {
        match self.in_am[page.0 as usize] {
            true => &mut self.am,
            false => &mut self.a1in,
        }
    }
}

impl Policy for TwoQ {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let known = self.arrives(access.lpn);
        self.incoming.done();
        set(&mut self.in_am, page, known);
        self.list(page).push_newest(page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        if self.in_am[page.0 as usize] {
            self.am.renew(page);
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
        let a1in_first = self.a1in.list().len() > self.k_in;
        let mut queues = [&mut self.am, &mut self.a1in];
        if a1in_first {
            queues.reverse();
        }
        let found = queues
            .iter_mut()
            .find_map(|queue| queue.oldest_not(device, spare, out));
        let Some(page) = found else { return false };
        // A1out makes room for the victim by forgetting the page that comes in, if it can.
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
        match self.a1in.list().len() > self.k_in {
            true => self.a1in.list().oldest_three(),
            false => self.am.list().oldest_three(),
        }
    }

    #[inline]
    fn expect(&self, page: PageId, near: bool) {
        if !near {
            prefetch(&self.in_am, page.0 as usize);
        }
        self.am.expect(page, near);
        self.a1in.expect(page, near);
    }

    #[inline]
    fn expect_lpn(&self, lpn: Lpn, _leaves: bool) {
        self.a1out.prefetch(lpn);
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let text = |queue: &Aged| pages_text(device, queue.list().iter_oldest_first());
        let (a1in, am) = (text(&self.a1in), text(&self.am));
        format!("A1in[{a1in}] Am[{am}] A1out[{}]", self.a1out.text(0))
    }
}
