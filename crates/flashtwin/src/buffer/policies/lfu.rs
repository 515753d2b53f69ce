//! LFU with ageing: evicts the page with the fewest accesses. The weight of old accesses decreases with time (Robinson,
//! Devarakonda, SIGMETRICS 1990).
//!
//! An insertion sets the count of a page to 1. A hit raises it by 1, to at most `count_max`. The victim is the page
//! with the least count. If several pages have this count, it is the least recent of them. Once the mean count exceeds
//! `mean_max`, every count is halved and rounded up. Pages with two different counts may then have the same count. In
//! the list of this count, the pages that had the larger count are the more recent ones.
//!
//! ```text
//! count 3:  7            most recent ... least recent
//! count 1:  5 - 2        victim: 2
//! ```

use crate::buffer::age_index::AgedLists;
use crate::buffer::entry::{cost, example_with, Entry, Family, Make};
use crate::buffer::policy::{page_text, Access, DeviceView, Eviction, Policy, Skip};
use crate::buffer::second_chance::set;
use crate::buffer::{PageId, Setup};
use crate::component::{parameters, Kind};
use crate::component::{source, Provenance};

parameters! {
    /// Parameters of LFU.
    struct Parameters {
        /// Largest count.
        count_max: u32 = Kind::Count(2, COUNTS as u32), "16", "ours";
        /// Mean count above which all counts are halved.
        mean_max: u32 = Kind::Count(1, COUNTS as u32), "4", "ours";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "lfu",
    title: "LFU with ageing",
    line: "Evicts the page accessed least often; counts are halved when they grow too large.",
    family: Family::General,
    source: source(
        "J. T. Robinson, M. V. Devarakonda",
        "Data Cache Management Using Frequency-Based Replacement",
        "SIGMETRICS",
        1990,
    ),
    provenance: Provenance::Reconstruction,
    rule: &[
        "Each page has a count of its accesses, which is 1 after a miss. Each hit adds 1, up to \
         `count_max`.",
        "Victim: the page with the least count; of several, the least recent.",
        "Ageing: once the mean count is above `mean_max`, every count is halved, rounded up.",
    ],
    drawing: "
count 4 [ 7d 1c ]   hit: one row up, most recent end
count 2 [ 9d ]
count 1 [ 5d  2c ]  victim: 2c",
    state: "`9d2 5d1`: pages with their counts, the victim last.",
    cost: cost("O(1) amortised", "O(log n)", "O(1) amortised"),
    example: example_with(3, &[("mean_max", "2")], 1, "W1 R1 R2 W3 W4 R1 R1 W5"),
    parameters: &[Parameters::ROWS],
    make: Make::Base(|setup| Lfu::new(setup).into()),
    ..Entry::PLAIN
}];

/// Number of different counts that a page can have; each count has its own list.
const COUNTS: usize = 16;

/// Least frequently used.
#[derive(Clone, Debug)]
pub struct Lfu {
    parameters: Parameters,
    /// The lists of pages with count 1, 2 and so on.
    lists: Box<AgedLists<COUNTS>>,
    /// For each page: the index of its list.
    at: Vec<usize>,
    pages: u32,
    /// Sum of the counts of all pages.
    sum: u32,
}

impl Lfu {
    /// Creates the policy with an empty buffer.
    pub fn new(setup: &Setup) -> Lfu {
        Lfu {
            parameters: Parameters::of(&setup.settings),
            lists: Box::new(AgedLists::new(setup)),
            at: Vec::new(),
            pages: 0,
            sum: 0,
        }
    }

    /// Halves all counts if their mean exceeds `mean_max`.
    fn age(&mut self) {
        if self.sum <= self.parameters.mean_max * self.pages {
            return;
        }
        for from in 1..COUNTS {
            let to = from / 2;
            while let Some(page) = self.lists.lists().oldest(from) {
                self.lists.renew(from, page, to);
                self.at[page.0 as usize] = to;
                self.sum -= (from - to) as u32;
            }
        }
    }
}

impl Policy for Lfu {
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        set(&mut self.at, page, 0);
        self.lists.push_newest(0, page);
        self.pages += 1;
        self.sum += 1;
    }

    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        let from = self.at[page.0 as usize];
        let to = (from + 1).min(self.parameters.count_max as usize - 1);
        self.lists.renew(from, page, to);
        self.at[page.0 as usize] = to;
        self.sum += (to - from) as u32;
        self.age();
    }

    fn forget(&mut self, page: PageId) {
        let list = self.at[page.0 as usize];
        self.lists.remove(list, page);
        self.pages -= 1;
        self.sum -= list as u32 + 1;
    }

    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.lists.moved(self.at[page.0 as usize], device, page);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let mut lists = 0..COUNTS;
        let found = lists.find_map(|list| self.lists.oldest_not(list, device, skip, out));
        let Some(page) = found else { return false };
        self.forget(page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let by_count = (0..COUNTS).flat_map(|list| self.lists.lists().iter_oldest_first(list));
        let text = |page: PageId| {
            let count = self.at[page.0 as usize] + 1;
            format!("{}{count}", page_text(device, page))
        };
        let mut texts: Vec<String> = by_count.map(text).collect();
        texts.reverse();
        texts.join(" ")
    }
}
