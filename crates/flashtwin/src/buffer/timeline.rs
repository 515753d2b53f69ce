//! Pages by their last access, in classes: the lists of policies that move pages without an access.
//!
//! Every access gives its page the next age. A page keeps its age when it changes class: a dirty page
//! that was written back stands among the clean ones where its last access belongs. A class is a
//! bitmap over ages, with a bit above each word that is not empty, and so on up to a single word: its
//! least recent page is found without a scan, and how many are older than a page by counting bits.
//! Ages that are used up are given anew, without gaps, once in three times as many accesses as there
//! are pages.
//!
//! Where a policy asks for it, the pages of a class also stand on a list for each chip, the last list
//! being that of the pages without one.
//!
//! A page in flight has an age and a class, but stands apart until it has arrived: no search meets it.

use super::order::Shelf;
use super::policy::{DeviceView, Spare};
use super::PageId;
use crate::memory::{large_table, reach};
use crate::units::ChipId;

const NONE: u32 = u32::MAX;
/// Bits of a run of words that are counted together.
const RUN: usize = 4096;

/// A set of ages.
#[derive(Clone, Debug)]
struct Bits {
    /// The bits; above them, those of the words that are not empty; and so on.
    levels: Vec<Vec<u64>>,
    /// Bits set in each run.
    counts: Vec<u32>,
    /// No bit before this is set.
    low: usize,
}

impl Bits {
    fn new(ages: usize) -> Bits {
        let mut levels = Vec::new();
        let mut bits = ages;
        while levels.is_empty() || bits > 1 {
            bits = bits.div_ceil(64);
            levels.push(vec![0; bits]);
        }
        Bits {
            levels,
            counts: vec![0; ages.div_ceil(RUN)],
            low: 0,
        }
    }

    #[inline]
    fn set(&mut self, mut i: usize) {
        self.low = self.low.min(i);
        self.counts[i / RUN] += 1;
        for level in &mut self.levels {
            let word = &mut level[i / 64];
            let was_empty = *word == 0;
            *word |= 1 << (i % 64);
            if !was_empty {
                return;
            }
            i /= 64;
        }
    }

    #[inline]
    fn clear(&mut self, mut i: usize) {
        self.low += usize::from(self.low == i);
        self.counts[i / RUN] -= 1;
        for level in &mut self.levels {
            let word = &mut level[i / 64];
            *word &= !(1 << (i % 64));
            if *word != 0 {
                return;
            }
            i /= 64;
        }
    }

    /// The first bit that is set.
    #[inline]
    fn first(&self) -> Option<usize> {
        self.first_from(self.low)
    }

    fn count(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Bits set before `i`.
    fn before(&self, i: usize) -> u64 {
        let (run, word) = (i / RUN, i / 64);
        let words = &self.levels[0];
        let runs: u32 = self.counts[..run].iter().sum();
        let mut count = (words[word] & ((1 << (i % 64)) - 1)).count_ones();
        for word in &words[run * RUN / 64..word] {
            count += word.count_ones();
        }
        u64::from(runs + count)
    }

    /// The first bit that is set at or after `i`.
    #[inline]
    fn first_from(&self, mut i: usize) -> Option<usize> {
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(i / 64)? & (u64::MAX << (i % 64));
            if word != 0 {
                i = i / 64 * 64 + word.trailing_zeros() as usize;
                for below in self.levels[..height].iter().rev() {
                    i = i * 64 + below[i].trailing_zeros() as usize;
                }
                return Some(i);
            }
            i = i / 64 + 1;
        }
        None
    }
}

/// A page.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    age: u32,
    /// Neighbours on the list.
    newer: u32,
    older: u32,
    /// Its list: that of its chip, then that of pages without one; beyond those it is in flight.
    list: u16,
    class: u8,
}

/// The lists of a class.
#[derive(Clone, Debug)]
struct Lists {
    kept: bool,
    /// Per chip, the (most recent, least recent) page.
    ends: Vec<(u32, u32)>,
    /// Per chip, the age of the least recent page.
    heads: Vec<u32>,
}

/// Pages in `N` classes, each in the order of last access.
#[derive(Clone, Debug)]
pub(crate) struct Timeline<const N: usize> {
    nodes: Vec<Node>,
    /// The page that got an age.
    log: Vec<u32>,
    classes: [Bits; N],
    /// Ages of the pages in flight, of any class.
    in_flight: Bits,
    next: usize,
    lists: [Lists; N],
    chips: u16,
}

impl<const N: usize> Timeline<N> {
    /// For about `pages` pages at a time; `listed` says which classes have lists by chip.
    pub fn new(pages: u32, chips: u32, listed: [bool; N]) -> Timeline<N> {
        let ages = (pages as usize * 4).max(RUN);
        let chips = chips as u16;
        Timeline {
            nodes: Vec::new(),
            log: large_table(NONE, ages),
            classes: std::array::from_fn(|_| Bits::new(ages)),
            in_flight: Bits::new(ages),
            next: 0,
            lists: listed.map(|kept| Lists {
                kept,
                ends: vec![(NONE, NONE); chips as usize + 1],
                heads: vec![NONE; chips as usize + 1],
            }),
            chips,
        }
    }

    #[inline]
    fn list_of(&self, shelf: Shelf) -> u16 {
        match shelf {
            Shelf::Chip(chip) => chip.0,
            Shelf::NoChip => self.chips,
            Shelf::InFlight => self.chips + 1,
        }
    }

    /// A page comes in: the most recent one of a class.
    #[inline]
    pub fn insert(&mut self, page: PageId, class: usize, shelf: Shelf) {
        reach(&mut self.nodes, page.0 as usize, Node::default());
        self.nodes[page.0 as usize].list = self.list_of(shelf);
        self.push(page, class);
    }

    /// A page becomes the most recent one of a class.
    #[inline]
    pub fn renew(&mut self, page: PageId, class: usize) {
        self.remove(page);
        self.push(page, class);
    }

    #[inline]
    fn push(&mut self, page: PageId, class: usize) {
        if self.next == self.log.len() {
            self.renumber();
        }
        self.log[self.next] = page.0;
        let node = &mut self.nodes[page.0 as usize];
        node.age = self.next as u32;
        node.class = class as u8;
        let node = *node;
        self.next += 1;
        self.ages_of(node).set(node.age as usize);
        if self.is_linked(node) {
            let newest = self.lists[class].ends[node.list as usize].0;
            self.link(page, NONE, newest);
        }
    }

    /// Whether such a page stands on a list.
    #[inline]
    fn is_linked(&self, node: Node) -> bool {
        self.lists[node.class as usize].kept && node.list <= self.chips
    }

    /// The ages among which that of a page is.
    #[inline]
    fn ages_of(&mut self, node: Node) -> &mut Bits {
        match node.list <= self.chips {
            true => &mut self.classes[node.class as usize],
            false => &mut self.in_flight,
        }
    }

    /// A page leaves.
    #[inline]
    pub fn remove(&mut self, page: PageId) {
        let node = self.nodes[page.0 as usize];
        self.ages_of(node).clear(node.age as usize);
        self.unlink(node);
    }

    /// Puts a page that was removed where its age belongs.
    fn put_back(&mut self, page: PageId) {
        let node = self.nodes[page.0 as usize];
        self.ages_of(node).set(node.age as usize);
        self.link_by_age(page);
    }

    /// A page comes to another class and keeps its age.
    pub fn change(&mut self, page: PageId, class: usize) {
        self.remove(page);
        self.nodes[page.0 as usize].class = class as u8;
        self.put_back(page);
    }

    /// A page may belong on another list.
    #[inline]
    pub fn moved(&mut self, page: PageId, shelf: Shelf) {
        let list = self.list_of(shelf);
        if self.nodes[page.0 as usize].list != list {
            self.remove(page);
            self.nodes[page.0 as usize].list = list;
            self.put_back(page);
        }
    }

    fn link_by_age(&mut self, page: PageId) {
        let node = self.nodes[page.0 as usize];
        if !self.is_linked(node) {
            return;
        }
        let newest = self.lists[node.class as usize].ends[node.list as usize].0;
        let (mut newer, mut older) = (NONE, newest);
        while older != NONE && self.age(PageId(older)) > node.age {
            newer = older;
            older = self.nodes[older as usize].older;
        }
        self.link(page, newer, older);
    }

    #[inline]
    fn link(&mut self, page: PageId, newer: u32, older: u32) {
        let node = &mut self.nodes[page.0 as usize];
        (node.newer, node.older) = (newer, older);
        let node = *node;
        let lists = &mut self.lists[node.class as usize];
        let (newest, oldest) = &mut lists.ends[node.list as usize];
        match newer {
            NONE => *newest = page.0,
            newer => self.nodes[newer as usize].older = page.0,
        }
        match older {
            NONE => {
                *oldest = page.0;
                lists.heads[node.list as usize] = node.age;
            }
            older => self.nodes[older as usize].newer = page.0,
        }
    }

    #[inline]
    fn unlink(&mut self, node: Node) {
        if !self.is_linked(node) {
            return;
        }
        let lists = &mut self.lists[node.class as usize];
        let (newest, oldest) = &mut lists.ends[node.list as usize];
        match node.newer {
            NONE => *newest = node.older,
            newer => self.nodes[newer as usize].older = node.older,
        }
        match node.older {
            NONE => {
                *oldest = node.newer;
                let newer = self.nodes.get(node.newer as usize);
                lists.heads[node.list as usize] = newer.map_or(NONE, |newer| newer.age);
            }
            older => self.nodes[older as usize].newer = node.newer,
        }
    }

    /// Larger is more recent.
    #[inline]
    pub fn age(&self, page: PageId) -> u32 {
        self.nodes[page.0 as usize].age
    }

    /// The class of a page.
    #[inline]
    pub fn class(&self, page: PageId) -> usize {
        self.nodes[page.0 as usize].class as usize
    }

    /// The chip of a page, as far as this was told of it.
    #[inline]
    pub fn chip(&self, page: PageId) -> Option<ChipId> {
        self.chip_of_list(self.nodes[page.0 as usize].list as usize)
    }

    /// The chip of a list of [`Timeline::heads`].
    #[inline]
    pub fn chip_of_list(&self, list: usize) -> Option<ChipId> {
        (list < self.chips as usize).then_some(ChipId(list as u16))
    }

    /// The page of an age that is in use.
    #[inline]
    pub fn at(&self, age: u32) -> PageId {
        PageId(self.log[age as usize])
    }

    /// For each chip, and for the pages without one, the age of the least recent page of a class with
    /// lists; the largest number if there is none.
    #[inline]
    pub fn heads(&self, class: usize) -> &[u32] {
        &self.lists[class].heads
    }

    /// The pages of a class from the least recent to the most recent.
    pub fn iter_oldest_first(&self, class: usize) -> impl Iterator<Item = PageId> + '_ {
        let bits = &self.classes[class];
        std::iter::successors(bits.first(), |&age| bits.first_from(age + 1))
            .map(|age| PageId(self.log[age]))
    }

    /// The pages of a chip, of a class with lists, from the least recent to the most recent.
    pub fn iter_chip(&self, class: usize, list: usize) -> impl Iterator<Item = PageId> + '_ {
        let some = |page| (page != NONE).then_some(PageId(page));
        let oldest = some(self.lists[class].ends[list].1);
        std::iter::successors(oldest, move |page| some(self.nodes[page.0 as usize].newer))
    }

    /// The least recent page of a class that `spare` does not pass over, and how many a scan looks
    /// at. To pass over any, the class must have lists.
    #[inline]
    pub fn oldest_not(
        &self,
        class: usize,
        device: &dyn DeviceView,
        spare: Spare,
    ) -> (Option<PageId>, u64) {
        let bits = &self.classes[class];
        let Some(age) = bits.first() else {
            return (None, 0);
        };
        let page = PageId(self.log[age]);
        match spare.page(device, page) {
            false => (Some(page), 1),
            true => self.search(class, device, spare),
        }
    }

    #[cold]
    fn search(&self, class: usize, device: &dyn DeviceView, spare: Spare) -> (Option<PageId>, u64) {
        let mut oldest = NONE;
        for (list, &age) in self.heads(class).iter().enumerate() {
            let chip = self.chip_of_list(list);
            if age < oldest && !chip.is_some_and(|chip| spare.chip(device, chip)) {
                oldest = age;
            }
        }
        let bits = &self.classes[class];
        match oldest {
            NONE => (None, bits.count()),
            age => (Some(self.at(age)), bits.before(age as usize) + 1),
        }
    }

    /// Ages without gaps, in the same order; more of them if many are in use.
    #[cold]
    fn renumber(&mut self) {
        for ages in self.classes.iter_mut().chain([&mut self.in_flight]) {
            ages.counts.fill(0);
            ages.low = 0;
            ages.levels[1..].iter_mut().for_each(|level| level.fill(0));
        }
        self.next = 0;
        // The new ages lie below those not yet looked at.
        for i in 0..self.log.len().div_ceil(64) {
            let mut in_use = 0;
            for ages in self.classes.iter_mut().chain([&mut self.in_flight]) {
                in_use |= std::mem::take(&mut ages.levels[0][i]);
            }
            while in_use != 0 {
                let page = self.log[i * 64 + in_use.trailing_zeros() as usize];
                in_use &= in_use - 1;
                let node = &mut self.nodes[page as usize];
                node.age = self.next as u32;
                let node = *node;
                self.ages_of(node).set(node.age as usize);
                self.log[self.next] = page;
                self.next += 1;
            }
        }
        if self.next * 2 > self.log.len() {
            self.log.resize(self.next * 4, NONE);
            self.classes = std::array::from_fn(|_| Bits::new(self.log.len()));
            self.in_flight = Bits::new(self.log.len());
            for age in 0..self.next {
                let node = self.nodes[self.log[age] as usize];
                self.ages_of(node).set(age);
            }
        }
        for lists in &mut self.lists {
            for (head, (_, oldest)) in lists.heads.iter_mut().zip(&lists.ends) {
                let oldest = self.nodes.get(*oldest as usize);
                *head = oldest.map_or(NONE, |oldest| oldest.age);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn classes_and_lists_are_sorted_by_last_access() {
        let mut rng = Rng::new(5);
        for (pages, steps) in [(3, 30_000), (40, 50_000), (9000, 60_000)] {
            // A timeline made for fewer pages grows. The class 0 has no lists.
            let mut timeline = Timeline::<3>::new(pages / 4, 2, [false, true, true]);
            let mut naive: Vec<(PageId, usize, Shelf)> = Vec::new();
            let mut cached = vec![false; pages as usize];
            for _ in 0..steps {
                let page = PageId(rng.below(u64::from(pages)) as u32);
                let class = rng.below(3) as usize;
                let shelf = match rng.below(4) {
                    0 => Shelf::NoChip,
                    1 => Shelf::InFlight,
                    chip => Shelf::Chip(ChipId(chip as u16 - 2)),
                };
                if !cached[page.0 as usize] {
                    timeline.insert(page, class, shelf);
                    naive.push((page, class, shelf));
                    cached[page.0 as usize] = true;
                } else {
                    let i = naive.iter().position(|p| p.0 == page).unwrap();
                    match rng.below(5) {
                        0 => {
                            timeline.change(page, class);
                            naive[i].1 = class;
                        }
                        1 => {
                            timeline.moved(page, shelf);
                            naive[i].2 = shelf;
                        }
                        2 => {
                            timeline.remove(page);
                            naive.remove(i);
                            cached[page.0 as usize] = false;
                        }
                        _ => {
                            timeline.renew(page, class);
                            let (_, _, shelf) = naive.remove(i);
                            naive.push((page, class, shelf));
                        }
                    }
                }
                if rng.below(if pages < 100 { 1 } else { 300 }) == 0 {
                    check(&timeline, &naive);
                }
            }
        }
    }

    fn check(timeline: &Timeline<3>, naive: &[(PageId, usize, Shelf)]) {
        for class in 0..3 {
            let arrived = naive.iter().filter(|p| p.2 != Shelf::InFlight);
            let of_class = arrived.filter(|p| p.1 == class);
            let wanted: Vec<PageId> = of_class.clone().map(|p| p.0).collect();
            assert!(timeline.iter_oldest_first(class).eq(wanted.iter().copied()));
            for (i, &page) in wanted.iter().enumerate() {
                let age = timeline.age(page) as usize;
                assert_eq!(timeline.classes[class].before(age), i as u64);
                assert_eq!(timeline.at(age as u32), page);
            }
            for list in 0..if class == 0 { 0 } else { 3 } {
                let chip = timeline.chip_of_list(list);
                let listed = of_class.clone().filter(|p| p.2 == chip.into()).map(|p| p.0);
                assert!(timeline.iter_chip(class, list).eq(listed.clone()));
                let head = timeline.heads(class)[list];
                let first = (head != NONE).then(|| timeline.at(head));
                assert_eq!(first, listed.clone().next());
                assert!(listed.clone().all(|page| timeline.chip(page) == chip));
            }
        }
    }
}
