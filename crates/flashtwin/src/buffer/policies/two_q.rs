//! 2Q, full version: a page is kept longer once it is referenced again (Johnson and Shasha, VLDB 1994).
//!
//! A1in, a FIFO, receives pages on their first reference. A1out remembers pages that were evicted from A1in. Am, an LRU
//! list, contains pages that were referenced again. A hit in Am moves the page to the most recent end. A hit in A1in
//! changes nothing, since references in quick succession count as one.
//!
//! A page that misses enters Am if A1out remembers it, otherwise A1in. If A1in has more pages than its target size Kin,
//! the victim is its oldest page, and A1out remembers the victim. Otherwise, the victim is the least recent page of Am,
//! and it is not remembered. A1out contains at most Kout page numbers. When it is full, it forgets the oldest one.

use crate::buffer::age_index::AgedLists;
use crate::buffer::entry::{cost, example_with, Entry, Family, Make, GENERAL};
use crate::buffer::ghosts::{Ghosts, Incoming};
use crate::buffer::policy::{pages_text, Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::second_chance::set;
use crate::buffer::{PageId, Setup};
use crate::component::{parameters, Kind, Pages};
use crate::component::{source, Provenance};
use crate::units::Lpn;

parameters! {
    /// Parameters of 2Q.
    struct Parameters {
        /// Size of A1in, the queue of new pages.
        k_in: Pages = Kind::Window, "0.25", "original: 0.25 of the capacity";
        /// Number of pages that A1out remembers after they left A1in.
        k_out: Pages = Kind::Beyond, "0.5", "original: 0.5 of the capacity";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "2q",
    title: "2Q",
    line: "New pages pass through a queue; only those that are accessed again after that are \
                kept.",
    family: Family::General,
    source: source(
        "T. Johnson, D. Shasha",
        "2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm",
        "VLDB",
        1994,
    ),
    provenance: Provenance::Original,
    rule: &[
        "A1in is a queue of new pages. Am is an LRU list. A1out remembers the numbers of \
             pages evicted from A1in (ghosts).",
        "Miss: a page that A1out remembers enters Am; any other page enters A1in.",
        "Hit in Am: the page moves to the most recent end. Hit in A1in: nothing changes.",
        "Victim: if A1in has more than `k_in` pages, the oldest page of A1in. A1out then \
         remembers this page (at most `k_out` numbers). Otherwise, the least recent page of Am, \
         which is not remembered.",
        "A1out forgets the incoming page before it remembers the victim. As printed, A1out would \
             forget this page only afterwards (D-161).",
    ],
    drawing: "
new -> A1in [ 5 4 3 ] -> victim, number kept in A1out ( 2 1 )
                                                         |
       Am   [ 9 7 ] -> victim     <---- asked for again -+",
    state: "`A1in[5c 4d] Am[1c] A1out[3 2]`: pages and remembered numbers, most recent first.",
    cost: cost("O(1)", "O(1)", "O(1)"),
    example: example_with(4, &[("k_in", "1"), ("k_out", "2")], 1, GENERAL),
    parameters: &[Parameters::ROWS],
    make: Make::Base(|setup| TwoQ::new(setup).into()),
    ..Entry::PLAIN
}];

/// Indices of the lists.
const A1IN: usize = 0;
const AM: usize = 1;

/// The 2Q policy.
#[derive(Clone, Debug)]
pub struct TwoQ {
    k_in: usize,
    k_out: u32,
    lists: AgedLists<2>,
    /// For each page: whether it is in Am.
    in_am: Vec<bool>,
    a1out: Ghosts,
    incoming: Incoming<bool>,
}

impl TwoQ {
    /// Creates the policy with empty lists. The parameters give the sizes Kin and Kout.
    pub fn new(setup: &Setup) -> TwoQ {
        let Parameters { k_in, k_out } = Parameters::of(&setup.settings);
        TwoQ {
            k_in: k_in.0 as usize,
            k_out: k_out.0,
            lists: AgedLists::new(setup),
            in_am: Vec::new(),
            a1out: Ghosts::new(),
            incoming: Incoming::none(),
        }
    }

    /// Whether A1out remembered the incoming page. If so, A1out forgets the page.
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
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let lists = match self.a1in_first() {
            true => [A1IN, AM],
            false => [AM, A1IN],
        };
        let mut oldest = |list| self.lists.oldest_not(list, device, skip, out);
        let found = lists.into_iter().find_map(&mut oldest);
        let Some(page) = found else { return false };
        // Make room in A1out for the victim: if A1out remembers the incoming page, A1out forgets it (D-161).
        self.arrives(incoming.lpn);
        if !self.in_am[page.0 as usize] {
            self.a1out.push_bounded(0, device.lpn(page), self.k_out);
        }
        self.forget(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let lists = self.lists.lists();
        let text = |list| pages_text(device, lists.iter_oldest_first(list));
        let (a1in, am) = (text(A1IN), text(AM));
        format!("A1in[{a1in}] Am[{am}] A1out[{}]", self.a1out.text(0))
    }
}

impl Prefetch for TwoQ {
    #[inline]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        let list = if self.a1in_first() { A1IN } else { AM };
        self.lists.next_three(list)
    }
}
