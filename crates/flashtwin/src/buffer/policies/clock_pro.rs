//! CLOCK-Pro: one clock with three hands for hot pages, cold pages, and uncached pages that it still remembers (Jiang,
//! Chen and Zhang, USENIX ATC 2005).
//!
//! The clock, a ring, is stored as a list that begins at HAND_hot. The oldest end of the list is the position of this
//! hand; the newest end is the list head. A hit only sets the page's reference bit. A page that misses enters at the
//! list head as a cold page in its test period.
//!
//! HAND_cold searches for the victim among the cold pages. A victim in its test period stays in the clock as an
//! uncached page. A page that is accessed in its test period becomes hot, and HAND_hot then makes another page cold.
//! HAND_hot and HAND_test end the test periods of the pages that they pass. HAND_test limits the number of uncached
//! pages to C, the size of the buffer. The target number of cold pages grows by 1 for each page that is accessed in its
//! test period. It shrinks by 1 for each test period that ends without an access.
//!
//! Three rules are our decision:
//!
//! - Hot pages fill the buffer first, as in the authors' simulator.
//! - A cold page that was accessed after its test period starts another test period at the list head.
//! - HAND_hot and HAND_test may end the test period of a page that was accessed in it. The target then does not shrink.

use crate::buffer::entry::{cost, example_with, Entry, Family, Make};
use crate::buffer::ghosts::{Ghosts, Incoming, Place};
use crate::buffer::policy::{page_text, Access, DeviceView, Eviction, Policy, Skip};
use crate::buffer::second_chance::set;
use crate::buffer::{List, PageId, Setup};
use crate::component::{parameters, Kind, Pages};
use crate::component::{source, Provenance};
use crate::units::Lpn;

parameters! {
    /// Parameters of CLOCK-Pro.
    struct Parameters {
        /// Minimum and initial target number of cold pages; at least one page.
        cold_min: Pages = Kind::Window, "0.01", "ours: as the HIR pages of LIRS";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "clock-pro",
    title: "CLOCK-Pro",
    line: "LIRS on a clock: pages accessed again within their test period are hot and stay.",
    family: Family::General,
    source: source(
        "S. Jiang, F. Chen, X. Zhang",
        "CLOCK-Pro: An Effective Improvement of the CLOCK Replacement",
        "USENIX ATC",
        2005,
    ),
    provenance: Provenance::Reconstruction,
    rule: &[
        "One ring (the clock) has hot pages, cold pages, and uncached pages in their test period. \
         Each cached page has a reference bit, which a hit sets. The head of the ring, where \
         pages enter, is just behind HAND_hot.",
        "Miss: the page is cold, in its test period, and enters at the head. If the page is still \
         on the clock as an uncached page, it becomes hot instead, and HAND_hot runs.",
        "Victim: HAND_cold goes from one cold page to the next. A page whose bit is clear is \
         evicted; if it is in its test period, it stays on the clock as an uncached page. A page \
         whose bit is set moves to the head, with its bit cleared. This page becomes hot if it \
         was in its test period (HAND_hot runs); otherwise it stays cold and starts a new test \
         period.",
        "HAND_hot runs while the hot pages exceed C minus the target of cold pages. It clears bits \
         that are set; a hot page whose bit is clear becomes cold. When HAND_hot passes a cold \
         page, the test period of this page ends.",
        "HAND_test ends test periods while the clock has more than C uncached pages. An uncached \
         page whose test period ends is removed from the clock.",
        "The target of cold pages starts at `cold_min`. It grows by 1 for each page accessed in \
         its test period. It shrinks by 1, but not below `cold_min`, for each test period that \
         ends without an access.",
        "Until the first eviction, new pages are hot while the number of hot pages is less than C \
             minus the target of cold pages.",
    ],
    drawing: "
       HAND_hot
          v
  [ 1H1  4H0  7C0t  3  8C1t ] head    H hot, C cold, t in test; 3 is remembered
               ^    ^
       HAND_cold    HAND_test",
    state: "`6dC0t 3 4dH1 target=1`: clock from the list head to HAND_hot; H hot, C cold, with reference bits; t: in \
            test; a bare number: a page no longer cached; `cold[6]` and `test[3]`: pages at the other hands.",
    cost: cost("O(1)", "O(n), O(1) amortised", "O(n), O(1) amortised"),
    example: example_with(3, &[("cold_min", "1")], 1, "W1 R2 R3 W4 R3 R1 W2 W5 R2 W6"),
    parameters: &[Parameters::ROWS],
    make: Make::Base(|setup| ClockPro::new(setup).into()),
    ..Entry::PLAIN
}];

/// State of a cached page.
#[derive(Clone, Copy, Debug, Default)]
struct Status {
    hot: bool,
    /// A cold page in its test period.
    in_test: bool,
    referenced: bool,
}

/// Hot and cold pages on one clock.
#[derive(Clone, Debug)]
pub struct ClockPro {
    capacity: usize,
    cold_min: usize,
    cold_target: usize,
    hot: usize,
    cold: usize,
    /// The clock, from HAND_hot on.
    clock: List,
    /// The entry at HAND_cold; `None` if this hand is at the oldest entry of the clock. `hand_test` is the entry at
    /// HAND_test, stored in the same way.
    hand_cold: Option<PageId>,
    hand_test: Option<PageId>,
    /// For each page: its state.
    status: Vec<Status>,
    ghosts: Ghosts,
    incoming: Incoming<bool>,
    /// Whether any page has been evicted yet. Before the first eviction, a new page can enter as a hot page.
    evicted: bool,
}

impl ClockPro {
    /// Creates the policy with an empty clock.
    pub fn new(setup: &Setup) -> ClockPro {
        let capacity = setup.capacity as usize;
        let cold_min = Parameters::of(&setup.settings).cold_min.0 as usize;
        let cold_min = cold_min.min(capacity.saturating_sub(1)).max(1);
        ClockPro {
            capacity,
            cold_min,
            cold_target: cold_min,
            hot: 0,
            cold: 0,
            clock: List::default(),
            hand_cold: None,
            hand_test: None,
            status: Vec::new(),
            ghosts: Ghosts::new(),
            incoming: Incoming::none(),
            evicted: false,
        }
    }

    /// Whether the clock remembered the incoming page as an uncached page. If so, removes this entry and raises the
    /// target number of cold pages.
    fn arrives(&mut self, lpn: Lpn) -> bool {
        if let Some(known) = self.incoming.known(lpn) {
            return known;
        }
        let ghost = self.ghosts.find(lpn);
        if let Some(at) = ghost {
            self.forget_ghost(at);
            self.raise_target();
        }
        self.incoming.keep(lpn, ghost.is_some())
    }

    fn raise_target(&mut self) {
        let most = self.capacity.saturating_sub(1).max(self.cold_min);
        self.cold_target = (self.cold_target + 1).min(most);
    }

    fn lower_target(&mut self) {
        self.cold_target = (self.cold_target - 1).max(self.cold_min);
    }

    /// Returns the next entry of the clock.
    fn after(&self, entry: PageId) -> Option<PageId> {
        self.clock.newer(entry).or(self.clock.oldest())
    }

    /// Removes an entry from the clock. Hands at this entry advance to the next entry.
    fn take(&mut self, entry: PageId) {
        let next = self.after(entry).filter(|&next| next != entry);
        for hand in [&mut self.hand_cold, &mut self.hand_test] {
            if *hand == Some(entry) {
                *hand = next;
            }
        }
        self.clock.remove(entry);
    }

    fn forget_ghost(&mut self, at: u32) {
        self.take(Place::Ghost(at).number());
        self.ghosts.remove(at);
    }

    /// Ends the test period of a page on the clock. Lowers the target number of cold pages if the page was not accessed
    /// in the test period.
    fn end_test(&mut self, place: Place) {
        let accessed = match place {
            Place::Ghost(at) => {
                self.forget_ghost(at);
                false
            }
            Place::Page(page) => {
                let status = &mut self.status[page.0 as usize];
                if !std::mem::take(&mut status.in_test) {
                    return;
                }
                status.referenced
            }
        };
        if !accessed {
            self.lower_target();
        }
    }

    /// Moves HAND_hot until it has made one hot page cold. Then moves it on to the next hot page.
    fn run_hand_hot(&mut self) {
        let mut demoted = false;
        while let Some(entry) = self.clock.oldest() {
            let place = Place::of(entry);
            if let Place::Page(page) = place {
                let status = &mut self.status[page.0 as usize];
                if status.hot {
                    if demoted {
                        return;
                    }
                    if !std::mem::take(&mut status.referenced) {
                        status.hot = false;
                        self.hot -= 1;
                        self.cold += 1;
                        demoted = true;
                    }
                } else {
                    self.end_test(place);
                }
                // HAND_hot is at the oldest end of the list. An entry that it passes therefore moves to the list head.
                // HAND_cold and HAND_test stay at their entries.
                self.clock.remove(entry);
                self.clock.push_newest(entry);
                if demoted && self.hot == 0 {
                    return;
                }
            } else {
                self.end_test(place);
            }
        }
    }

    /// Moves HAND_hot until the number of hot pages is at most the capacity of the buffer minus the target number of
    /// cold pages.
    fn limit_hot(&mut self) {
        while self.hot > 0 && self.hot > self.capacity - self.cold_target.min(self.capacity) {
            self.run_hand_hot();
        }
    }

    /// Moves HAND_test until the clock has at most as many uncached pages as the buffer has slots.
    fn limit_ghosts(&mut self) {
        while self.ghosts.len(0) > self.capacity {
            let Some(entry) = self.hand_test.or(self.clock.oldest()) else {
                return;
            };
            self.hand_test = self.after(entry);
            self.end_test(Place::of(entry));
        }
    }

    /// Moves HAND_cold to the next cold page whose reference bit is clear. Returns `None` if `skip` excludes all cold
    /// pages.
    fn run_hand_cold(
        &mut self,
        device: &dyn DeviceView,
        skip: Skip,
        out: &mut Eviction,
    ) -> Option<PageId> {
        let mut passed = 0;
        while passed <= self.clock.len() {
            let entry = self.hand_cold.or(self.clock.oldest())?;
            passed += 1;
            let cold = match Place::of(entry) {
                Place::Page(page) if !self.status[page.0 as usize].hot => page,
                _ => {
                    self.hand_cold = self.after(entry);
                    continue;
                }
            };
            out.inspected += 1;
            if skip.page(device, cold) {
                out.skipped |= skip.page_by_chip(device, cold);
                self.hand_cold = self.after(entry);
                continue;
            }
            let status = &mut self.status[cold.0 as usize];
            if !std::mem::take(&mut status.referenced) {
                return Some(cold);
            }
            passed = 0;
            let promoted = std::mem::replace(&mut status.in_test, true);
            self.take(entry);
            self.clock.push_newest(entry);
            if promoted {
                self.status[cold.0 as usize] = Status {
                    hot: true,
                    ..Status::default()
                };
                self.hot += 1;
                self.cold -= 1;
                self.raise_target();
                self.limit_hot();
            }
        }
        None
    }

    /// Removes an evicted page from the clock. If the page is in its test period, its position becomes the entry of an
    /// uncached page.
    fn leave(&mut self, lpn: Lpn, page: PageId) {
        let place = Place::Page(page).number();
        if self.status[page.0 as usize].in_test {
            let ghost = Place::Ghost(self.ghosts.push_newest(0, lpn)).number();
            self.clock.insert_newer_than(Some(place), ghost);
        }
        self.forget(page);
        self.limit_ghosts();
    }
}

impl Policy for ClockPro {
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        let known = self.arrives(access.lpn);
        self.incoming.done();
        let fills = !self.evicted && self.hot < self.capacity - self.cold_target.min(self.capacity);
        let hot = known || fills;
        set(
            &mut self.status,
            page,
            Status {
                hot,
                in_test: !hot,
                referenced: false,
            },
        );
        self.clock.push_newest(Place::Page(page).number());
        match hot {
            true => self.hot += 1,
            false => self.cold += 1,
        }
        self.limit_hot();
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        self.status[page.0 as usize].referenced = true;
    }

    fn forget(&mut self, page: PageId) {
        self.take(Place::Page(page).number());
        match self.status[page.0 as usize].hot {
            true => self.hot -= 1,
            false => self.cold -= 1,
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
        self.evicted = true;
        let found = self.run_hand_cold(device, skip, out).or_else(|| {
            // If `skip` excludes all cold pages, a hot page is evicted.
            let mut entries = self.clock.iter_oldest_first().map(Place::of);
            entries.find_map(|entry| match entry {
                Place::Page(page) if self.status[page.0 as usize].hot => {
                    out.inspected += 1;
                    out.skipped |= skip.page_by_chip(device, page);
                    (!skip.page(device, page)).then_some(page)
                }
                _ => None,
            })
        });
        let Some(page) = found else { return false };
        self.leave(device.lpn(page), page);
        out.victims.push(page);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let lpn = |place| match place {
            Place::Ghost(at) => self.ghosts.lpn(at).0.to_string(),
            Place::Page(page) => device.lpn(page).0.to_string(),
        };
        let mut texts: Vec<String> = (self.clock.iter_oldest_first().map(Place::of))
            .map(|place| match place {
                Place::Ghost(_) => lpn(place),
                Place::Page(page) => {
                    let Status {
                        hot,
                        in_test,
                        referenced,
                    } = self.status[page.0 as usize];
                    let (kind, test) =
                        (if hot { 'H' } else { 'C' }, if in_test { "t" } else { "" });
                    format!(
                        "{}{kind}{}{test}",
                        page_text(device, page),
                        u8::from(referenced)
                    )
                }
            })
            .collect();
        texts.reverse();
        let hand = |hand: Option<PageId>| {
            let at = hand.or(self.clock.oldest()).map(Place::of);
            at.map_or(String::new(), lpn)
        };
        let (cold, test) = (hand(self.hand_cold), hand(self.hand_test));
        format!(
            "{} cold[{cold}] test[{test}] target={}",
            texts.join(" "),
            self.cold_target
        )
    }
}
