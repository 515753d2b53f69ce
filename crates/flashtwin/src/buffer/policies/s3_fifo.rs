//! S3-FIFO: a small queue filters out pages that are not accessed again (Yang et al., SOSP 2023, Algorithm 1).
//!
//! S, a small FIFO, receives new pages. M, the main FIFO, receives pages that are accessed again. G remembers pages
//! that were evicted from S. A hit raises the page's count by 1, to at most 3. A page that misses enters with count 0:
//! into M if G remembers it, otherwise into S. The victim is taken from M if M has more than its share of the buffer or
//! S is empty, otherwise from S:
//!
//! - From S, oldest page first: a page with a count of 2 or more moves to M, and its count becomes 0. Any other page is
//!   the victim, and G remembers it.
//! - From M, oldest page first: a page with a count of 1 or more moves to the newest end, and its count decreases by 1.
//!   Any other page is the victim.
//!
//! Until the first eviction, pages for which S has no room enter M, as in libCacheSim. In the paper, S receives all
//! new pages.

use crate::buffer::age_index::AgedLists;
use crate::buffer::entry::{cost, example_with, Entry, Family, Make, GENERAL};
use crate::buffer::ghosts::{Ghosts, Incoming};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::second_chance::{flagged_text, second_chance, set};
use crate::buffer::{PageId, Setup};
use crate::component::{parameters, Kind, Pages};
use crate::component::{source, Provenance};
use crate::memory::prefetch;
use crate::units::Lpn;

parameters! {
    /// Parameters of S3-FIFO.
    struct Parameters {
        /// Size of the small queue.
        small: Pages = Kind::Window, "0.1", "original: 0.1 of the capacity";
        /// Number of pages remembered after they left the small queue.
        ghosts: Pages = Kind::Beyond, "0.9", "original: as many as the main queue holds";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "s3-fifo",
    title: "S3-FIFO",
    line: "Has three FIFO queues; a small one filters out pages that are accessed only once.",
    family: Family::General,
    source: source(
        "J. Yang, Y. Zhang, Z. Qiu, Y. Yue, K. V. Rashmi",
        "FIFO Queues Are All You Need for Cache Eviction",
        "SOSP",
        2023,
    ),
    provenance: Provenance::Original,
    rule: &[
        "S is a small queue of new pages, M the main queue. G remembers the numbers of pages \
             evicted from S. Each page has a counter from 0 to 3.",
        "Hit: the counter grows by 1; no page moves.",
        "Miss: a page that G remembers enters M, any other page enters S, with counter 0.",
        "If M has more than C - `small` pages, the victim is taken from M. As long as the counter \
         of the oldest page is above 0, it is reduced by 1, and the page returns to the other end \
         of M. The victim is the first page with counter 0.",
        "Otherwise, the victim is taken from S. As long as the oldest page was hit more than \
         once, it moves to M with counter 0. The victim is the first page that was hit at most \
         once, and G remembers it.",
        "G forgets the incoming page before it remembers the victim. As printed, G would forget \
             this page only afterwards (D-161).",
        "Until the first eviction, pages for which S has no room enter M.",
    ],
    drawing: "
new -> S [ 6 5 ] -- hit more than once --> M [ 4 3 1 ] -> victim
              |                            ^   ^     |
              v victim, number kept        |   +-----+ counter > 0: counter - 1
            G ( 2 ) --- asked for again ---+",
    state: "`S[6d0] M[2c0 1c1] G[5]`: pages with counters and remembered numbers, newest first.",
    cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
    example: example_with(4, &[("small", "1"), ("ghosts", "3")], 1, GENERAL),
    parameters: &[Parameters::ROWS],
    make: Make::Base(|setup| S3Fifo::new(setup).into()),
    ..Entry::PLAIN
}];

/// Indices of the queues.
const S: usize = 0;
const M: usize = 1;
/// Largest access count of a page; the count is stored in two bits.
const MOST: u8 = 3;

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    in_main: bool,
    count: u8,
}

/// Simple, scalable FIFO with three static queues.
#[derive(Clone, Debug)]
pub struct S3Fifo {
    small_pages: usize,
    main_pages: usize,
    ghost_pages: u32,
    queues: AgedLists<2>,
    pages: Vec<Page>,
    ghosts: Ghosts,
    incoming: Incoming<bool>,
    has_evicted: bool,
}

impl S3Fifo {
    /// Creates the policy with empty queues. The parameters give their sizes.
    pub fn new(setup: &Setup) -> S3Fifo {
        let Parameters { small, ghosts } = Parameters::of(&setup.settings);
        let small_pages = small.0;
        S3Fifo {
            small_pages: small_pages as usize,
            main_pages: setup.capacity.saturating_sub(small_pages) as usize,
            ghost_pages: ghosts.0,
            queues: AgedLists::new(setup),
            pages: Vec::new(),
            ghosts: Ghosts::new(),
            incoming: Incoming::none(),
            has_evicted: false,
        }
    }

    /// Whether G remembered the incoming page. If so, G forgets the page.
    fn arrives(&mut self, lpn: Lpn) -> bool {
        let known = self.incoming.known(lpn);
        known.unwrap_or_else(|| {
            let known = self.ghosts.recall(lpn).is_some();
            self.incoming.keep(lpn, known)
        })
    }

    fn queue(&self, page: PageId) -> usize {
        match self.pages[page.0 as usize].in_main {
            true => M,
            false => S,
        }
    }

    fn main_first(&self) -> bool {
        let queues = self.queues.lists();
        queues.len(M) > self.main_pages || queues.len(S) == 0
    }

    /// Returns the victim in S; `None` if there is none. If the search passes a page with a count of 2 or more, it
    /// moves this page to M.
    fn search_small(
        &mut self,
        device: &dyn DeviceView,
        skip: Skip,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let pages = &mut self.pages;
        let oldest =
            |queues: &mut AgedLists<2>, out: &mut _| queues.oldest_not(S, device, skip, out);
        second_chance(&mut self.queues, out, oldest, |queues, page| {
            let state = &mut pages[page.0 as usize];
            let back = state.count > 1;
            if back {
                (state.in_main, state.count) = (true, 0);
                queues.renew(S, page, M);
            }
            back
        })
    }

    /// Returns the victim in M.
    fn search_main(
        &mut self,
        device: &dyn DeviceView,
        skip: Skip,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let pages = &mut self.pages;
        let oldest =
            |queues: &mut AgedLists<2>, out: &mut _| queues.oldest_not(M, device, skip, out);
        second_chance(&mut self.queues, out, oldest, |queues, page| {
            let count = &mut pages[page.0 as usize].count;
            let again = *count > 0;
            if again {
                *count -= 1;
                queues.renew(M, page, M);
                if let [_, _, Some(third)] = queues.next_three(M) {
                    prefetch(pages, third.0 as usize);
                }
            }
            again
        })
    }
}

impl Policy for S3Fifo {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let known = self.arrives(access.lpn);
        self.incoming.done();
        let small_is_full = self.queues.lists().len(S) >= self.small_pages;
        let in_main = known || (!self.has_evicted && small_is_full);
        set(&mut self.pages, page, Page { in_main, count: 0 });
        self.queues.push_newest(self.queue(page), page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        let count = &mut self.pages[page.0 as usize].count;
        *count = MOST.min(*count + 1);
    }

    fn forget(&mut self, page: PageId) {
        self.queues.remove(self.queue(page), page);
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.queues.moved(self.queue(page), device, page);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        self.has_evicted = true;
        let found = match self.main_first() {
            true => self.search_main(device, skip, out),
            false => None,
        };
        // The first search may fail for two reasons: all pages of S may have moved to M, or `skip` may exclude all
        // pages of M. The other queue is then searched.
        let found = found
            .or_else(|| self.search_small(device, skip, out))
            .or_else(|| self.search_main(device, skip, out));
        let Some(page) = found else { return false };
        // Make room in G for the victim: if G remembers the incoming page, G forgets it (D-161).
        self.arrives(incoming.lpn);
        if !self.pages[page.0 as usize].in_main {
            let lpn = device.lpn(page);
            self.ghosts.push_bounded(0, lpn, self.ghost_pages);
        }
        self.forget(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let queues = self.queues.lists();
        let text = |queue| {
            flagged_text(device, queues.iter_oldest_first(queue), |page| {
                self.pages[page.0 as usize].count
            })
        };
        let (small, main) = (text(S), text(M));
        format!("S[{small}] M[{main}] G[{}]", self.ghosts.text(0))
    }
}

impl Prefetch for S3Fifo {
    #[inline]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        let queue = if self.main_first() { M } else { S };
        self.queues.next_three(queue)
    }
}
