//! ARC: hits in two lists of evicted pages set the balance between recency and frequency (Megiddo and Modha, FAST 2003,
//! Fig. 4).
//!
//! T1 has the pages referenced once recently, and T2 the pages referenced more often. The lists B1 and B2 remember the
//! pages that were evicted from T1 and T2. The target size of T1 is p; the size of the buffer is c. T1 and B1 together,
//! called L1, have at most c pages. All four lists together have at most 2c pages. A hit in T1 or T2 moves the page to
//! the most recent end of T2. The effect of a miss depends on the list that remembers the page:
//!
//! - B1: p grows by max(1, |B2|/|B1|), and the page enters T2.
//! - B2: p shrinks by max(1, |B1|/|B2|), and the page enters T2.
//! - None: the page enters T1. If L1 is full, B1 forgets its oldest page. If L1 is not full but all four lists together
//!   are, B2 forgets its oldest page.
//!
//! The victim is the least recent page of T1 if |T1| > p, or if |T1| = p and B2 remembered the incoming page.
//! Otherwise it is the least recent page of T2. A victim of T1 is remembered in B1, a victim of T2 in B2. There is
//! one exception: if T1 alone fills the buffer and no list remembered the incoming page, the victim is not
//! remembered.

use crate::buffer::age_index::AgedLists;
use crate::buffer::balance::Balance;
use crate::buffer::entry::{cost, example, Entry, Family, Make, GENERAL};
use crate::buffer::policy::{pages_text, Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::second_chance::set;
use crate::buffer::{PageId, Setup};
use crate::component::{source, Provenance};

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "arc",
    title: "ARC",
    line: "A recency list and a frequency list, whose sizes adapt to hits among recently \
                evicted pages.",
    family: Family::General,
    source: source(
        "N. Megiddo, D. S. Modha",
        "ARC: A Self-Tuning, Low Overhead Replacement Cache",
        "FAST",
        2003,
    ),
    provenance: Provenance::Original,
    rule: &[
        "T1 has the pages that were accessed once, T2 all others, each in LRU order. B1 remembers \
         the numbers of pages evicted from T1, and B2 those of pages evicted from T2. p is the \
         target size of T1.",
        "Hit: the page moves to the most recent end of T2.",
        "Miss of a page in B1: p grows by |B2| / |B1|, at least 1. Miss of a page in B2: p shrinks \
             by |B1| / |B2|, at least 1. A page of B1 or B2 enters T2; any other page enters T1.",
        "Victim: the least recent page of T1 if T1 has more than p pages, or if T1 has exactly p \
         pages and the incoming page is in B2. Otherwise, the least recent page of T2.",
        "T1 and B1 together have at most C numbers, all four lists at most 2 C. If T1 alone fills \
             the buffer, its least recent page is evicted without being remembered.",
    ],
    drawing: "
B1 ( 9 8 ) <- [ 5 4 3   T1 | T2   7 6 1 ] -> B2 ( 2 )
                           ^ p
a hit in B1 moves p right, one in B2 moves it left",
    state:
        "`T1[6d 5c] T2[1d 2c] B1[4 3] B2[] p=1`: pages and remembered numbers, most recent first.",
    cost: cost("O(1)", "O(1)", "O(1)"),
    example: example(4, GENERAL),
    make: Make::Base(|setup| Arc::new(setup).into()),
    ..Entry::PLAIN
}];

/// Indices of the lists of cached pages.
const T1: usize = 0;
const T2: usize = 1;
/// Adaptive replacement cache.
#[derive(Clone, Debug)]
pub struct Arc {
    balance: Balance,
    lists: AgedLists<2>,
    /// For each page: whether it is in T2.
    in_t2: Vec<bool>,
}

impl Arc {
    /// Creates the policy with empty lists.
    pub fn new(setup: &Setup) -> Arc {
        Arc {
            balance: Balance::new(setup.capacity),
            lists: AgedLists::new(setup),
            in_t2: Vec::new(),
        }
    }

    fn list(&self, page: PageId) -> usize {
        match self.in_t2[page.0 as usize] {
            true => T2,
            false => T1,
        }
    }

    fn len(&self, list: usize) -> usize {
        self.lists.lists().len(list)
    }
}

impl Policy for Arc {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let (t1, t2) = (self.len(T1), self.len(T2));
        let known = self.balance.inserted(access.lpn, t1, t2);
        set(&mut self.in_t2, page, known);
        self.lists.push_newest(self.list(page), page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        self.lists.renew(self.list(page), page, T2);
        self.in_t2[page.0 as usize] = true;
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
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let (t1, t2) = (self.len(T1), self.len(T2));
        let from = self.balance.arrives(incoming.lpn, t1, t2);
        let lists = match self.balance.evicts_from_t1(t1, from) {
            true => [T1, T2],
            false => [T2, T1],
        };
        let mut oldest = |list| self.lists.oldest_not(list, device, skip, out);
        let found = lists.into_iter().find_map(&mut oldest);
        let Some(page) = found else { return false };
        let in_t2 = self.in_t2[page.0 as usize];
        self.balance.remember(device.lpn(page), in_t2, t1, from);
        self.forget(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let lists = self.lists.lists();
        let text = |list| pages_text(device, lists.iter_oldest_first(list));
        let (t1, t2) = (text(T1), text(T2));
        format!("T1[{t1}] T2[{t2}] {}", self.balance.text())
    }
}

impl Prefetch for Arc {
    #[inline]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        let t1_first = self.balance.evicts_from_t1(self.len(T1), None);
        self.lists.next_three(if t1_first { T1 } else { T2 })
    }
}
