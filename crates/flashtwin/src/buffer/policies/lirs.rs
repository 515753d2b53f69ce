//! LIRS: keeps pages with short distances between their references (Jiang and Zhang, SIGMETRICS 2002).
//!
//! Pages with a low inter-reference recency are LIR pages; all other pages are HIR pages. The stack S orders pages by
//! recency, down to the least recent LIR page. It contains LIR pages, cached HIR pages, and HIR pages that are no
//! longer cached. The queue Q contains all cached HIR pages.
//!
//! While there are too few LIR pages, a new page becomes LIR. There is one exception: if the HIR pages already fill
//! their share of the buffer, a new page becomes HIR. This happens when searches skip all pages of Q and therefore
//! evict LIR pages. Without the exception, new pages would replace the evicted LIR pages until all old LIR pages are
//! gone.
//!
//! - Hit on a LIR page: the page moves to the top of S.
//! - Hit on a HIR page in S: the page becomes LIR, moves to the top of S, and is removed from Q.
//! - Hit on a HIR page not in S: the page is put on top of S, and moves to the end of Q.
//! - Miss: the front of Q is evicted. The new page is put on top of S. If S remembered it, it becomes LIR. Otherwise it
//!   becomes HIR and is added at the end of Q.
//! - If there is one LIR page too many, the one at the bottom of S becomes HIR and is added at the end of Q. Then HIR
//!   pages are removed from the bottom of S until a LIR page is there.
//!
//! S is limited to twice the number of pages of the buffer. Beyond this limit, S forgets the uncached page that was
//! evicted first. The limit is that of libCacheSim; the paper specifies none.

use crate::buffer::entry::{cost, example_with, Entry, Family, Make, GENERAL};
use crate::buffer::ghosts::{Ghosts, Incoming, Place};
use crate::buffer::policy::{page_text, pages_text, Access, DeviceView, Eviction, Policy, Skip};
use crate::buffer::second_chance::set;
use crate::buffer::{Aged, List, PageId, Setup};
use crate::component::{parameters, Kind, Pages};
use crate::component::{source, Provenance};
use crate::units::Lpn;

parameters! {
    /// Parameters of LIRS.
    struct Parameters {
        /// Size of the part of the buffer for pages of high inter-reference recency (HIR).
        hir: Pages = Kind::Window, "0.01", "original: 0.01 of the capacity";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "lirs",
        title: "LIRS",
        line: "Ranks pages by the distance between their last two accesses.",
        family: Family::General,
        source: source(
            "S. Jiang, X. Zhang",
            "LIRS: An Efficient Low Inter-Reference Recency Set Replacement Policy to Improve \
             Buffer Cache Performance",
            "SIGMETRICS",
            2002,
        ),
        provenance: Provenance::Original,
        rule: &[
            "Pages with a short distance between accesses are LIR pages and are kept. All other \
             pages are HIR pages, for which `hir` slots of the buffer are set aside.",
            "The stack S has, in order of recency, all LIR pages and some HIR pages: those that \
             were accessed since the last access to the oldest LIR page, whether they are still \
             cached or not. The queue Q has the cached HIR pages.",
            "Access to an LIR page: the page moves to the top of S. Access to a HIR page in S: \
             the page becomes LIR, and the oldest LIR page becomes HIR and moves to the end of Q. \
             Access to any other page: the page moves to the top of S and to the end of Q.",
            "The bottom of S is always an LIR page: HIR pages below it are removed from S. S has \
             at most twice as many pages as the buffer (not in the paper).",
            "Victim: the page at the front of Q.",
        ],
        drawing: "
S (recent on top)      Q
  5 HIR  cached        [ 5  3 ] -> victim: 3
  4 LIR
  2 HIR  gone, remembered
  1 LIR  <- oldest LIR is the bottom",
        state: "`S[5cH 4 1dL] Q[5c]`: stack and queue, most recent first; L is LIR, H is HIR, a bare number \
                a page no longer cached.",
        cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
        example: example_with(4, &[("hir", "1")], 1, GENERAL),
        parameters: &[Parameters::ROWS],
        make: Make::Base(|setup| Lirs::new(setup).into()),
        ..Entry::PLAIN
    },
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Status {
    #[default]
    Lir,
    /// A cached HIR page, which is in Q. `in_stack` is true if the page is also in S.
    Hir { in_stack: bool },
}

/// Low inter-reference recency set.
#[derive(Clone, Debug)]
pub struct Lirs {
    capacity: usize,
    /// Number of LIR pages when the buffer is full. `hir_pages` is the number of HIR pages in this case.
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
    /// Creates the policy. The parameter `hir` is the number of pages of the buffer for HIR pages; at least one is
    /// used.
    pub fn new(setup: &Setup) -> Lirs {
        let hir_pages = Parameters::of(&setup.settings).hir.0.max(1);
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

    /// Whether S remembered the incoming page as an uncached page. If so, removes it from S.
    fn arrives(&mut self, lpn: Lpn) -> bool {
        if let Some(known) = self.incoming.known(lpn) {
            return known;
        }
        let ghost = self.ghosts.find(lpn);
        if let Some(at) = ghost {
            self.stack.remove(Place::Ghost(at).number());
            self.ghosts.remove(at);
        }
        self.incoming.keep(lpn, ghost.is_some())
    }

    /// Makes a page that is neither in S nor in Q a LIR page. If there are then too many LIR pages, the least recent
    /// one becomes HIR.
    fn push_lir(&mut self, page: PageId) {
        self.status[page.0 as usize] = Status::Lir;
        self.stack.push_newest(Place::Page(page).number());
        self.lir += 1;
        if self.lir <= self.lir_pages {
            return;
        }
        let bottom = self.stack.oldest().map(Place::of);
        if let Some(Place::Page(demoted)) = bottom {
            self.remove(demoted);
            self.status[demoted.0 as usize] = Status::Hir { in_stack: false };
            self.queue.push_newest(demoted);
        }
    }

    /// Takes a page out of S and Q.
    fn remove(&mut self, page: PageId) {
        let status = self.status[page.0 as usize];
        if status != (Status::Hir { in_stack: false }) {
            self.stack.remove(Place::Page(page).number());
        }
        if status == Status::Lir {
            self.lir -= 1;
            self.prune();
        } else {
            self.queue.remove(page);
        }
    }

    /// Removes HIR pages from the bottom of S until a LIR page is at the bottom.
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.oldest() {
            match Place::of(bottom) {
                Place::Ghost(at) => {
                    self.ghosts.remove(at);
                }
                Place::Page(page) => match &mut self.status[page.0 as usize] {
                    Status::Lir => return,
                    Status::Hir { in_stack } => *in_stack = false,
                },
            }
            self.stack.remove(bottom);
        }
    }

    /// Puts a HIR page on top of S. The page must not be in S.
    fn push_hir(&mut self, page: PageId) {
        self.status[page.0 as usize] = Status::Hir { in_stack: true };
        self.stack.push_newest(Place::Page(page).number());
        if self.lir == 0 {
            self.prune();
        }
        if self.stack.len() > 2 * self.capacity {
            if let Some(at) = self.ghosts.oldest(0) {
                self.stack.remove(Place::Ghost(at).number());
                self.ghosts.remove(at);
            }
        }
    }

    /// Returns the least recent cached page of S that `skip` does not exclude. Used when the search skips all pages of
    /// Q, so only LIR pages can be found.
    #[cold]
    fn search_stack(
        &self,
        device: &dyn DeviceView,
        skip: Skip,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let mut entries = self.stack.iter_oldest_first().map(Place::of);
        entries.find_map(|entry| {
            out.inspected += 1;
            let Place::Page(page) = entry else {
                return None;
            };
            out.skipped |= skip.page_by_chip(device, page);
            (!skip.page(device, page)).then_some(page)
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
        let number = Place::Page(page).number();
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
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        self.arrives(incoming.lpn);
        let found = (self.queue.oldest_not(device, skip, out))
            .or_else(|| self.search_stack(device, skip, out));
        let Some(page) = found else { return false };
        if self.status[page.0 as usize] == (Status::Hir { in_stack: true }) {
            let ghost = Place::Ghost(self.ghosts.push_newest(0, device.lpn(page)));
            let place = Place::Page(page).number();
            self.stack.insert_newer_than(Some(place), ghost.number());
        }
        self.remove(page);
        out.victims.push(page);
        true
    }

    /// Formats the stack S and the queue Q. In S, `L` or `H` follows each cached page. Uncached pages have no letter.
    fn state(&self, device: &dyn DeviceView) -> String {
        let mut stack: Vec<String> = (self.stack.iter_oldest_first())
            .map(|number| match Place::of(number) {
                Place::Ghost(at) => self.ghosts.lpn(at).0.to_string(),
                Place::Page(page) => {
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
