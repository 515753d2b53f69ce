//! Ages of pages across lists, and lists by chip: what makes GCaR's victim search flat.
//!
//! The first page of a list whose chip is not in GC is the oldest among the oldest of the lists of
//! the chips that are not in GC. How many entries a scan would have looked at on the way to it is a
//! count of older pages: a bitmap of ages with sums (D-10 charges the controller for them).

use super::{DeviceView, PageId, Spare};
use crate::memory::{large_table, reach};
use crate::units::ChipId;

const NONE: u32 = u32::MAX;
/// The list of a page that stands on none.
const NOWHERE: u16 = u16::MAX;
const WORDS: usize = 16;

/// An age for each page of a list: larger is more recent.
#[derive(Clone, Debug)]
pub struct Ages {
    /// Per page.
    at: Vec<u32>,
    /// Ages in use, as bits.
    bits: Vec<u64>,
    /// Bits set in each run of [`WORDS`] words.
    sums: Vec<u32>,
    next: u32,
    /// Times the ages were given anew.
    numbering: u32,
}

impl Ages {
    /// Ages for at most `pages` pages at a time.
    pub fn new(pages: u32) -> Ages {
        let ages = (pages as usize * 2).max(1024).next_multiple_of(64 * WORDS);
        Ages {
            at: Vec::new(),
            bits: large_table(0, ages / 64),
            sums: vec![0; ages / 64 / WORDS],
            next: 0,
            numbering: 0,
        }
    }

    /// Gives `page` an age, more than all before it. `oldest_first` walks over all pages that have
    /// one, `page` being the last.
    #[inline]
    pub fn push(&mut self, page: PageId, oldest_first: impl Iterator<Item = PageId>) {
        reach(&mut self.at, page.0 as usize, NONE);
        if self.next as usize == self.bits.len() * 64 {
            return self.renumber(oldest_first);
        }
        self.set(page, self.next);
        self.next += 1;
    }

    #[inline]
    fn set(&mut self, page: PageId, age: u32) {
        self.at[page.0 as usize] = age;
        self.bits[age as usize / 64] |= 1 << (age % 64);
        self.sums[age as usize / 64 / WORDS] += 1;
    }

    /// Ages without gaps, in the same order: once in as many accesses as there are pages.
    #[cold]
    fn renumber(&mut self, oldest_first: impl Iterator<Item = PageId>) {
        self.bits.fill(0);
        self.sums.fill(0);
        self.next = 0;
        self.numbering = self.numbering.wrapping_add(1);
        for page in oldest_first {
            self.set(page, self.next);
            self.next += 1;
        }
    }

    /// The page leaves the list.
    #[inline]
    pub fn remove(&mut self, page: PageId) {
        let age = self.at[page.0 as usize];
        self.bits[age as usize / 64] &= !(1 << (age % 64));
        self.sums[age as usize / 64 / WORDS] -= 1;
    }

    /// The age of a page of the list.
    #[inline]
    pub fn of(&self, page: PageId) -> u32 {
        self.at[page.0 as usize]
    }

    /// Its position from the least recent end, from 1: entries a scan from there looks at.
    pub fn position(&self, page: PageId) -> u64 {
        let age = self.of(page) as usize;
        let run = age / 64 / WORDS;
        let whole: u32 = self.sums[..run].iter().sum();
        let words: u32 = self.bits[run * WORDS..age / 64]
            .iter()
            .map(|word| word.count_ones())
            .sum();
        let below = self.bits[age / 64] & ((1 << (age % 64)) - 1);
        u64::from(whole + words + below.count_ones()) + 1
    }
}

/// The list on which a page stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// That of its chip.
    Chip(ChipId),
    /// That of the pages without one.
    NoChip,
    /// That of the pages in flight, whatever their chip: no search looks at it.
    InFlight,
}

impl Shelf {
    /// Where a page belongs now.
    #[inline]
    pub fn of(device: &dyn DeviceView, page: PageId) -> Shelf {
        if device.in_flight(page) {
            return Shelf::InFlight;
        }
        device.chip(page).into()
    }
}

impl From<Option<ChipId>> for Shelf {
    fn from(chip: Option<ChipId>) -> Shelf {
        chip.map_or(Shelf::NoChip, Shelf::Chip)
    }
}

/// A list of pages for each chip, one for pages without a chip, and one for pages in flight.
#[derive(Clone, Debug)]
pub struct ChipLists {
    /// (most recent, least recent) of each chip, of the pages without one, of those in flight.
    ends: Vec<(u32, u32)>,
    /// Age of each chip's least recent page, [`NONE`] where there is none: what a search looks at.
    heads: Vec<u32>,
    /// Lists that have pages, as bits.
    filled: Vec<u64>,
    /// The numbering of ages that `heads` is of.
    numbering: u32,
    /// Links and list of each page.
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    newer: u32,
    older: u32,
    list: u16,
}

impl ChipLists {
    /// Lists for `chips` chips.
    pub fn new(chips: u32) -> ChipLists {
        let lists = chips as usize + 2;
        ChipLists {
            ends: vec![(NONE, NONE); lists],
            heads: vec![NONE; lists],
            filled: vec![0; lists.div_ceil(64)],
            numbering: 0,
            nodes: Vec::new(),
        }
    }

    fn slot(&self, shelf: Shelf) -> usize {
        match shelf {
            Shelf::Chip(chip) => chip.0 as usize,
            Shelf::NoChip => self.ends.len() - 2,
            Shelf::InFlight => self.ends.len() - 1,
        }
    }

    /// The page stands on a list.
    #[inline]
    pub fn holds(&self, page: PageId) -> bool {
        let node = self.nodes.get(page.0 as usize);
        node.is_some_and(|node| node.list != NOWHERE)
    }

    /// Whether a page stands on this list.
    #[inline]
    pub fn is_on(&self, page: PageId, shelf: Shelf) -> bool {
        self.nodes[page.0 as usize].list as usize == self.slot(shelf)
    }

    /// Looks up the heads again if the ages were given anew: to be called after [`Ages::push`], and
    /// by [`ChipLists::push_newest`].
    #[inline]
    pub fn follow(&mut self, ages: &Ages) {
        if self.numbering == ages.numbering {
            return;
        }
        self.numbering = ages.numbering;
        for (head, &(_, oldest)) in self.heads.iter_mut().zip(&self.ends) {
            if oldest != NONE {
                *head = ages.of(PageId(oldest));
            }
        }
    }

    /// Puts a page, which has its age, at the most recent end of a list.
    #[inline]
    pub fn push_newest(&mut self, page: PageId, shelf: Shelf, ages: &Ages) {
        self.follow(ages);
        let slot = self.slot(shelf);
        let newest = self.ends[slot].0;
        self.place(page, slot, NONE, newest, ages);
    }

    /// Puts a page where its age belongs in a list.
    pub fn insert_by_age(&mut self, page: PageId, shelf: Shelf, ages: &Ages) {
        let slot = self.slot(shelf);
        let age = ages.of(page);
        let mut newer = NONE;
        let mut at = self.ends[slot].0;
        while at != NONE && ages.of(PageId(at)) > age {
            newer = at;
            at = self.nodes[at as usize].older;
        }
        self.place(page, slot, newer, at, ages);
    }

    /// Links a page between two neighbours of a list.
    #[inline]
    fn place(&mut self, page: PageId, slot: usize, newer: u32, older: u32, ages: &Ages) {
        let node = Node {
            newer,
            older,
            list: slot as u16,
        };
        let nowhere = Node {
            list: NOWHERE,
            ..node
        };
        reach(&mut self.nodes, page.0 as usize, nowhere);
        self.nodes[page.0 as usize] = node;
        self.filled[slot / 64] |= 1 << (slot % 64);
        match newer {
            NONE => self.ends[slot].0 = page.0,
            n => self.nodes[n as usize].older = page.0,
        }
        match older {
            NONE => {
                self.ends[slot].1 = page.0;
                self.heads[slot] = ages.of(page);
            }
            o => self.nodes[o as usize].newer = page.0,
        }
    }

    /// Takes a page out of its list.
    #[inline]
    pub fn remove(&mut self, page: PageId, ages: &Ages) {
        let Node { newer, older, list } = self.nodes[page.0 as usize];
        self.nodes[page.0 as usize].list = NOWHERE;
        let slot = list as usize;
        match newer {
            NONE => self.ends[slot].0 = older,
            n => self.nodes[n as usize].older = older,
        }
        match older {
            NONE => {
                self.ends[slot].1 = newer;
                self.heads[slot] = match newer {
                    NONE => {
                        self.filled[slot / 64] &= !(1 << (slot % 64));
                        NONE
                    }
                    n => ages.of(PageId(n)),
                };
            }
            o => self.nodes[o as usize].newer = newer,
        }
    }

    /// The oldest page that neither `spare` nor `passed_over` passes over, by a look at each chip.
    pub fn oldest_not(
        &self,
        device: &dyn DeviceView,
        spare: Spare,
        ages: &Ages,
        passed_over: impl Fn(PageId) -> bool,
    ) -> Option<PageId> {
        debug_assert!(self.numbering == ages.numbering, "heads of other ages");
        let chips = self.heads.len() - 2;
        let (mut least, mut found) = (NONE, None);
        let in_gc = device.chips_in_gc();
        for (i, &filled) in self.filled.iter().enumerate() {
            let mut open = match spare {
                Spare::Nobody => filled,
                Spare::Gc | Spare::GcSoon => filled & !in_gc.word(i),
            };
            while open != 0 {
                let slot = i * 64 + open.trailing_zeros() as usize;
                open &= open - 1;
                // Most chips are too young to be asked.
                if self.heads[slot] >= least || slot > chips {
                    continue;
                }
                let soon = spare == Spare::GcSoon && slot < chips;
                if soon && spare.chip(device, ChipId(slot as u16)) {
                    continue;
                }
                let mut page = self.ends[slot].1;
                while page != NONE && passed_over(PageId(page)) {
                    page = self.nodes[page as usize].newer;
                }
                if page != NONE && ages.of(PageId(page)) < least {
                    (least, found) = (ages.of(PageId(page)), Some(PageId(page)));
                }
            }
        }
        found
    }

    /// Whether a page older than `age` is passed over for the sake of its chip.
    pub fn passes_over_before(&self, device: &dyn DeviceView, spare: Spare, age: u32) -> bool {
        let chips = self.heads.len() - 2;
        let mut heads = (0..).zip(&self.heads[..chips]);
        spare != Spare::Nobody
            && heads.any(|(chip, &head)| head < age && spare.chip(device, ChipId(chip)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::List;
    use crate::rng::Rng;

    #[test]
    fn positions_agree_with_a_walk() {
        let mut rng = Rng::new(5);
        let mut list = List::default();
        let mut ages = Ages::new(40);
        let mut cached = Vec::new();
        for _ in 0..20_000 {
            let page = PageId(rng.below(40) as u32);
            if cached.contains(&page) {
                list.remove(page);
                ages.remove(page);
                cached.retain(|&p| p != page);
            }
            if rng.below(4) > 0 {
                list.push_newest(page);
                ages.push(page, list.iter_oldest_first());
                cached.push(page);
            }
            for (i, page) in list.iter_oldest_first().enumerate() {
                assert_eq!(ages.position(page), i as u64 + 1);
            }
        }
    }
}
