//! LIRS: pages with a short distance between references stay (Jiang and Zhang, SIGMETRICS 2002).
//!
//! A LIR page has low inter-reference recency, all others are HIR. Stack S holds in recency order
//! what was referenced since the least recent LIR page: LIR, HIR and HIR pages no longer cached.
//! Queue Q holds the cached HIR pages. As long as there are too few LIR pages, a new page is LIR, but
//! not where HIR pages have their share: then pages of Q were passed over and LIR pages left instead,
//! and new pages that took their status would soon be all that is LIR.
//!
//! Hit on LIR -> top of S. Hit on HIR in S -> LIR, top of S, out of Q. Hit on HIR not in S -> top of
//! S, end of Q. Miss: the front of Q leaves; if the page is in S it becomes LIR, else HIR at the end
//! of Q; in both cases it goes to the top of S. A LIR page too many: the one at the bottom of S
//! becomes HIR, at the end of Q. Then S is pruned, so that a LIR page is at its bottom.
//! S is bounded to twice the buffer: the page that left the buffer first is forgotten (not in the
//! paper, which leaves the bound open; as in libCacheSim).

use super::clock::set;
use super::ghosts::{Ghosts, Incoming};
use super::policy::{page_text, pages_text, Access, DeviceView, Eviction, Policy, Spare};
use super::{Aged, List, PageId, Setup};
use crate::memory::prefetch;
use crate::units::Lpn;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Status {
    #[default]
    Lir,
    /// In Q; in S as well or not.
    Hir { in_stack: bool },
}

/// What an entry of S stands for.
enum Entry {
    Page(PageId),
    /// A page no longer cached.
    Ghost(u32),
}

impl Entry {
    /// Its number in the list: even for pages, odd for ghosts.
    fn number(self) -> PageId {
        match self {
            Entry::Page(page) => PageId(page.0 * 2),
            Entry::Ghost(at) => PageId(at * 2 + 1),
        }
    }

    fn of(number: PageId) -> Entry {
        match number.0 % 2 {
            0 => Entry::Page(PageId(number.0 / 2)),
            _ => Entry::Ghost(number.0 / 2),
        }
    }
}

/// Low inter-reference recency set.
#[derive(Clone, Debug)]
pub struct Lirs {
    capacity: usize,
    /// LIR and HIR pages that there are when the buffer is full.
    lir_pages: usize,
    hir_pages: usize,
    lir: usize,
    stack: List,
    queue: Aged,
    status: Vec<Status>,
    ghosts: Ghosts,
    incoming: Incoming<bool>,
}

impl Lirs {
    /// `setup.params.hir_pages` of the buffer, at least one, are for HIR pages.
    pub fn new(setup: &Setup) -> Lirs {
        let hir_pages = setup.params.hir_pages.max(1);
        Lirs {
            capacity: setup.capacity as usize,
            lir_pages: setup.capacity.saturating_sub(hir_pages) as usize,
            hir_pages: hir_pages as usize,
            lir: 0,
            stack: List::default(),
            queue: Aged::new(setup),
            status: Vec::new(),
            ghosts: Ghosts::new(),
            incoming: Incoming::none(),
        }
    }

    /// Whether the page that comes in was in S; it no longer is.
    fn arrives(&mut self, lpn: Lpn) -> bool {
        if let Some(known) = self.incoming.known(lpn) {
            return known;
        }
        let ghost = self.ghosts.find(lpn);
        if let Some(at) = ghost {
            self.stack.remove(Entry::Ghost(at).number());
            self.ghosts.remove(at);
        }
        self.incoming.keep(lpn, ghost.is_some())
    }

    /// Makes a page of no list LIR; the least recent LIR page makes room.
    fn push_lir(&mut self, page: PageId) {
        self.status[page.0 as usize] = Status::Lir;
        self.stack.push_newest(Entry::Page(page).number());
        self.lir += 1;
        if self.lir <= self.lir_pages {
            return;
        }
        let bottom = self.stack.oldest().map(Entry::of);
        if let Some(Entry::Page(demoted)) = bottom {
            self.remove(demoted);
            self.status[demoted.0 as usize] = Status::Hir { in_stack: false };
            self.queue.push_newest(demoted);
        }
    }

    /// Takes a page out of S and Q.
    fn remove(&mut self, page: PageId) {
        let status = self.status[page.0 as usize];
        if status != (Status::Hir { in_stack: false }) {
            self.stack.remove(Entry::Page(page).number());
        }
        if status == Status::Lir {
            self.lir -= 1;
            self.prune();
        } else {
            self.queue.remove(page);
        }
    }

    /// Takes HIR entries off the bottom of S.
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.oldest() {
            match Entry::of(bottom) {
                Entry::Ghost(at) => {
                    self.ghosts.remove(at);
                }
                Entry::Page(page) => match &mut self.status[page.0 as usize] {
                    Status::Lir => return,
                    Status::Hir { in_stack } => *in_stack = false,
                },
            }
            self.stack.remove(bottom);
        }
    }

    /// Puts a HIR page that is not in S on top of it.
    fn push_hir(&mut self, page: PageId) {
        self.status[page.0 as usize] = Status::Hir { in_stack: true };
        self.stack.push_newest(Entry::Page(page).number());
        if self.lir == 0 {
            self.prune();
        }
        if self.stack.len() > 2 * self.capacity {
            if let Some(at) = self.ghosts.oldest(0) {
                self.stack.remove(Entry::Ghost(at).number());
                self.ghosts.remove(at);
            }
        }
    }

    /// The least recent LIR page that is not spared: where all of Q is.
    #[cold]
    fn search_stack(
        &self,
        device: &dyn DeviceView,
        spare: Spare,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let mut entries = self.stack.iter_oldest_first().map(Entry::of);
        entries.find_map(|entry| {
            out.inspected += 1;
            let Entry::Page(page) = entry else {
                return None;
            };
            out.spared |= spare.page_by_chip(device, page);
            (!spare.page(device, page)).then_some(page)
        })
    }
}

impl Policy for Lirs {
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let in_stack = self.arrives(access.lpn);
        self.incoming.done();
        set(&mut self.status, page, Status::Lir);
        let starts = self.lir < self.lir_pages && self.queue.list().len() < self.hir_pages;
        if in_stack || starts {
            self.push_lir(page);
        } else {
            self.queue.push_newest(page);
            self.push_hir(page);
        }
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        let number = Entry::Page(page).number();
        match self.status[page.0 as usize] {
            Status::Lir => {
                self.stack.remove(number);
                self.stack.push_newest(number);
                self.prune();
            }
            Status::Hir { in_stack: true } => {
                self.remove(page);
                self.push_lir(page);
            }
            Status::Hir { in_stack: false } => {
                self.queue.renew(page);
                self.push_hir(page);
            }
        }
    }

    fn forget(&mut self, page: PageId) {
        self.remove(page);
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        if self.status[page.0 as usize] != Status::Lir {
            self.queue.moved(device, page);
        }
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        self.arrives(incoming.lpn);
        let found = (self.queue.oldest_not(device, spare, out))
            .or_else(|| self.search_stack(device, spare, out));
        let Some(page) = found else { return false };
        if self.status[page.0 as usize] == (Status::Hir { in_stack: true }) {
            let ghost = Entry::Ghost(self.ghosts.push_newest(0, device.lpn(page)));
            let place = Entry::Page(page).number();
            self.stack.insert_newer_than(Some(place), ghost.number());
        }
        self.remove(page);
        out.victims.push(page);
        true
    }

    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        self.queue.next_three()
    }

    #[inline]
    fn expect(&self, page: PageId, near: bool) {
        if !near {
            prefetch(&self.status, page.0 as usize);
        }
        self.stack.expect(Entry::Page(page).number(), near);
        self.queue.expect(page, near);
    }

    fn wants_hints(&self) -> bool {
        true
    }

    #[inline]
    fn expect_lpn(&self, lpn: Lpn, _leaves: bool) {
        self.ghosts.prefetch(lpn);
    }

    #[inline]
    fn expect_lpn_near(&self, lpn: Lpn) {
        self.ghosts.expect_near(lpn);
    }

    #[inline]
    fn expect_last(&self, lpn: Lpn, page: Option<PageId>) {
        if page.is_none() {
            self.ghosts.expect_last(lpn);
        }
    }

    /// In S, `L` and `H` follow the cached pages; those no longer cached have no state.
    fn state(&self, device: &dyn DeviceView) -> String {
        let mut stack: Vec<String> = (self.stack.iter_oldest_first())
            .map(|number| match Entry::of(number) {
                Entry::Ghost(at) => self.ghosts.lpn(at).0.to_string(),
                Entry::Page(page) => {
                    let lir = self.status[page.0 as usize] == Status::Lir;
                    format!("{}{}", page_text(device, page), if lir { 'L' } else { 'H' })
                }
            })
            .collect();
        stack.reverse();
        let queue = pages_text(device, self.queue.list().iter_oldest_first());
        format!("S[{}] Q[{queue}]", stack.join(" "))
    }
}
