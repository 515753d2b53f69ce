//! SIEVE: FIFO with a hand that evicts the first page without a hit since the hand last passed it (Zhang et al., NSDI
//! 2024, Algorithm 1).
//!
//! A hit marks the page as visited. A page that misses enters at the newest end, without the mark. The hand moves from
//! the oldest page to the newest, and then starts again at the oldest. If the page at the hand has the mark, the mark
//! is cleared, and the page keeps its place in the list. The first page without the mark is the victim, and the hand
//! stays at the victim's position.

use crate::buffer::entry::{cost, example, Entry, Family, Make, GENERAL};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::second_chance::{flagged_text, set};
use crate::buffer::{List, PageId, Setup};
use crate::component::{source, Provenance};

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "sieve",
    title: "SIEVE",
    line: "A queue with a hand, which evicts the first page not accessed since the hand last \
         passed.",
    family: Family::General,
    source: source(
        "Y. Zhang, J. Yang, Y. Yue, Y. Vigfusson, K. V. Rashmi",
        "SIEVE is Simpler than LRU: An Efficient Turn-Key Eviction Algorithm for Web Caches",
        "NSDI",
        2024,
    ),
    provenance: Provenance::Original,
    rule: &[
        "All pages are in one queue, each with a visited bit. Miss: the page enters at the head \
         with its bit cleared.",
        "Hit: the bit is set; no page moves.",
        "Victim: the hand moves from its position towards the head and clears bits that are set. \
         The first page whose bit is clear is the victim. After the head, the hand continues at \
         the tail.",
    ],
    drawing: "
head [ 6d0  5c1  4d0  3d1  1d1 ] tail
                  ^    <---- hand clears bits on its way
                  victim; unlike in CLOCK, pages kept do not move",
    state: "The queue, newest first, with visited bits, and the page at the hand.",
    cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
    example: example(4, GENERAL),
    make: Make::Base(|setup| Sieve::new(setup).into()),
    ..Entry::PLAIN
}];

/// FIFO with lazy promotion and quick demotion.
#[derive(Clone, Debug)]
pub struct Sieve {
    queue: List,
    /// For each page: whether it has been visited.
    visited: Vec<bool>,
    /// The page at the hand; `None` if the hand is at the oldest page.
    hand: Option<PageId>,
}

impl Sieve {
    /// Creates the policy with an empty queue.
    pub fn new(_setup: &Setup) -> Sieve {
        Sieve {
            queue: List::default(),
            visited: Vec::new(),
            hand: None,
        }
    }

    /// Returns the page to which the hand moves from `page`.
    fn after(&self, page: PageId) -> Option<PageId> {
        self.queue.newer(page).or(self.queue.oldest())
    }
}

impl Policy for Sieve {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        set(&mut self.visited, page, false);
        self.queue.push_newest(page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        self.visited[page.0 as usize] = true;
    }

    fn forget(&mut self, page: PageId) {
        if self.hand == Some(page) {
            self.hand = self.queue.newer(page);
        }
        self.queue.remove(page);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let mut at = self.hand.or(self.queue.oldest());
        let mut spared_in_a_row = 0;
        while let Some(page) = at {
            out.inspected += 1;
            if skip.page(device, page) {
                out.skipped |= skip.page_by_chip(device, page);
                spared_in_a_row += 1;
                if spared_in_a_row == self.queue.len() {
                    return false;
                }
            } else if std::mem::take(&mut self.visited[page.0 as usize]) {
                spared_in_a_row = 0;
            } else {
                self.hand = Some(page);
                self.forget(page);
                out.victims.push(page);
                return true;
            }
            at = self.after(page);
        }
        false
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let list = flagged_text(device, self.queue.iter_oldest_first(), |page| {
            self.visited[page.0 as usize].into()
        });
        let hand = self
            .hand
            .map_or(String::new(), |page| device.lpn(page).0.to_string());
        format!("{list} hand[{hand}]")
    }
}

impl Prefetch for Sieve {
    #[inline]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        let first = self.hand.or(self.queue.oldest());
        let second = first.and_then(|page| self.queue.newer(page));
        [
            first,
            second,
            second.and_then(|page| self.queue.newer(page)),
        ]
    }
}
