//! Lists of pages, one list per chip, each sorted by age. The documentation of [`super`] explains their use.

use super::{Ages, PageId};
use crate::buffer::policy::{DeviceView, Skip};
use crate::memory::reach;
use crate::units::ChipId;

const NONE: u32 = u32::MAX;

/// The list that a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// The list of a chip.
    Chip(ChipId),
    /// The list of pages without a chip.
    NoChip,
    /// No list: the page is in flight, and searches must not find it.
    InFlight,
}

impl Shelf {
    /// Returns the list to which a page belongs in the device's current state.
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

/// The lists of a class of pages.
#[derive(Clone, Debug)]
struct Class {
    /// Whether the class has lists.
    is_listed: bool,
    /// The most recent and the least recent page of each list. The lists of the chips are first, followed by the list
    /// of pages without a chip.
    ends: Vec<(u32, u32)>,
    /// Age of the least recent page of each list; [`NONE`] if the list is empty. Searches compare these ages first.
    heads: Vec<u32>,
    /// Lists that have pages, as bits.
    filled: Vec<u64>,
    /// Number of pages on the lists.
    linked: u32,
    /// Lists that have changed since [`ChipLists::take_changed`], as bits.
    changed: Vec<u64>,
}

/// The class of a page (a group of pages, such as the clean ones), and the number of its list within the class. Pages
/// in flight are on no list. They have the number that follows that of the last list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    list: u16,
    class: u8,
}

impl Place {
    const NOWHERE: Place = Place {
        list: u16::MAX,
        class: 0,
    };

    #[inline]
    pub fn class(self) -> usize {
        self.class as usize
    }

    /// Returns a place with this list number in another class, `class`.
    #[inline]
    pub fn in_class(self, class: usize) -> Place {
        Place {
            class: class as u8,
            ..self
        }
    }
}

/// A page's neighbours on its list, and the list.
#[derive(Clone, Copy, Debug)]
struct Node {
    newer: u32,
    older: u32,
    place: Place,
}

/// Lists of pages in one or more classes (groups of pages, such as the clean ones). Each class has one list for each
/// chip and one for pages without a chip.
#[derive(Clone, Debug)]
pub struct ChipLists {
    classes: Vec<Class>,
    nodes: Vec<Node>,
    chips: u16,
    /// Value of [`Ages::numbering`] when `heads` was last updated. A different value means that the ages in `heads` are
    /// invalid.
    numbering: u32,
}

impl ChipLists {
    /// Creates empty lists for `chips` chips. Only the classes for which `listed` is true have lists.
    pub fn new(chips: u32, listed: &[bool]) -> ChipLists {
        let lists = chips as usize + 1;
        let class = |&is_listed: &bool| Class {
            is_listed,
            ends: vec![(NONE, NONE); lists],
            heads: vec![NONE; lists],
            filled: vec![0; lists.div_ceil(64)],
            linked: 0,
            changed: vec![0; lists.div_ceil(64)],
        };
        ChipLists {
            classes: listed.iter().map(class).collect(),
            nodes: Vec::new(),
            chips: chips as u16,
            numbering: 0,
        }
    }

    /// Returns the place of a page with the given class and shelf. The shelf is the list of a chip, the list of pages
    /// without a chip, or no list.
    #[inline]
    pub fn place_at(&self, class: usize, shelf: Shelf) -> Place {
        let list = match shelf {
            Shelf::Chip(chip) => chip.0,
            Shelf::NoChip => self.chips,
            Shelf::InFlight => self.chips + 1,
        };
        Place {
            list,
            class: class as u8,
        }
    }

    /// Returns the place of a registered page.
    #[inline]
    pub fn place(&self, page: PageId) -> Place {
        self.nodes[page.0 as usize].place
    }

    /// Returns the number of lists of a class.
    #[inline]
    fn lists(&self) -> usize {
        self.chips as usize + 1
    }

    #[inline]
    pub fn is_in_flight(&self, place: Place) -> bool {
        place.list > self.chips
    }

    /// Returns the chip of a list; `None` for the list of pages without a chip.
    #[inline]
    pub fn chip_of_list(&self, list: usize) -> Option<ChipId> {
        (list < self.chips as usize).then_some(ChipId(list as u16))
    }

    /// Records the place of a page, without links to other pages. The caller then links the page into the list.
    #[inline]
    pub fn register(&mut self, page: PageId, place: Place) {
        let node = |place| Node {
            newer: NONE,
            older: NONE,
            place,
        };
        reach(&mut self.nodes, page.0 as usize, node(Place::NOWHERE));
        self.nodes[page.0 as usize] = node(place);
    }

    /// Deletes the recorded place of a page. The page must already be unlinked from its list.
    #[inline]
    pub fn unregister(&mut self, page: PageId) {
        self.nodes[page.0 as usize].place = Place::NOWHERE;
    }

    /// Whether the page is registered.
    #[inline]
    pub fn holds(&self, page: PageId) -> bool {
        let node = self.nodes.get(page.0 as usize);
        node.is_some_and(|node| node.place != Place::NOWHERE)
    }

    #[inline]
    pub fn chip(&self, page: PageId) -> Option<ChipId> {
        self.chip_of_list(self.place(page).list as usize)
    }

    /// Updates the heads (the ages of the least recent pages) if the ages were renumbered. Must be called after
    /// [`Ages::push`].
    #[inline]
    pub fn follow(&mut self, ages: &Ages) {
        if self.numbering != ages.numbering() {
            self.renew_heads(ages);
        }
    }

    #[cold]
    fn renew_heads(&mut self, ages: &Ages) {
        self.numbering = ages.numbering();
        for class in &mut self.classes {
            for (head, &(_, oldest)) in class.heads.iter_mut().zip(&class.ends) {
                if oldest != NONE {
                    *head = ages.of(PageId(oldest));
                }
            }
            for (changed, filled) in class.changed.iter_mut().zip(&class.filled) {
                *changed |= filled;
            }
        }
    }

    /// Assigns an unlinked page to another list.
    #[inline]
    pub fn set_place(&mut self, page: PageId, place: Place) {
        self.nodes[page.0 as usize].place = place;
    }

    /// Whether pages with this place (class and list number) are linked into a list. Pages in flight and pages of a
    /// class without lists are not.
    #[inline]
    fn is_linked(&self, place: Place) -> bool {
        self.classes[place.class()].is_listed && !self.is_in_flight(place)
    }

    /// Returns the most recent page of a list; [`NONE`] if the list is empty.
    #[inline]
    fn newest(&self, place: Place) -> u32 {
        self.classes[place.class()].ends[place.list as usize].0
    }

    /// Returns the least recent page of a list; `None` if the list is empty, or if pages with this place are not on
    /// lists.
    #[inline]
    pub fn oldest(&self, place: Place) -> Option<PageId> {
        if !self.is_linked(place) {
            return None;
        }
        let (_, oldest) = self.classes[place.class()].ends[place.list as usize];
        (oldest != NONE).then_some(PageId(oldest))
    }

    /// Links a page that has an age at the most recent end of its list.
    #[inline(always)]
    pub fn link_newest(&mut self, page: PageId, place: Place, ages: &Ages) {
        if self.is_linked(place) {
            self.link(page, place, NONE, self.newest(place), ages);
        }
    }

    /// Links a page into its list at the position given by its age.
    #[inline(always)]
    pub fn link_by_age(&mut self, page: PageId, place: Place, ages: &Ages) {
        if !self.is_linked(place) {
            return;
        }
        let age = ages.of(page);
        let mut newer = NONE;
        let mut older = self.newest(place);
        while older != NONE && ages.of(PageId(older)) > age {
            newer = older;
            older = self.nodes[older as usize].older;
        }
        self.link(page, place, newer, older, ages);
    }

    /// Links a page between two neighbours of its list.
    #[inline(always)]
    fn link(&mut self, page: PageId, place: Place, newer: u32, older: u32, ages: &Ages) {
        let node = &mut self.nodes[page.0 as usize];
        (node.newer, node.older) = (newer, older);
        let list = place.list as usize;
        let class = &mut self.classes[place.class()];
        class.linked += 1;
        let (newest, oldest) = &mut class.ends[list];
        match newer {
            NONE => *newest = page.0,
            newer => self.nodes[newer as usize].older = page.0,
        }
        match older {
            NONE => {
                *oldest = page.0;
                class.heads[list] = ages.of(page);
                class.filled[list / 64] |= 1 << (list % 64);
                class.changed[list / 64] |= 1 << (list % 64);
            }
            older => self.nodes[older as usize].newer = page.0,
        }
    }

    /// Takes a page out of its list.
    #[inline(always)]
    pub fn unlink(&mut self, page: PageId, ages: &Ages) {
        let node = self.nodes[page.0 as usize];
        if !self.is_linked(node.place) {
            return;
        }
        let list = node.place.list as usize;
        let class = &mut self.classes[node.place.class()];
        class.linked -= 1;
        let (newest, oldest) = &mut class.ends[list];
        match node.newer {
            NONE => *newest = node.older,
            newer => self.nodes[newer as usize].older = node.older,
        }
        match node.older {
            NONE => {
                *oldest = node.newer;
                class.changed[list / 64] |= 1 << (list % 64);
                class.heads[list] = match node.newer {
                    NONE => {
                        class.filled[list / 64] &= !(1 << (list % 64));
                        NONE
                    }
                    newer => ages.of(PageId(newer)),
                };
            }
            older => self.nodes[older as usize].newer = node.newer,
        }
    }

    /// Whether no page of a class is on a list.
    #[inline(always)]
    pub fn is_empty(&self, class: usize) -> bool {
        self.classes[class].linked == 0
    }

    /// Returns, for each list of a class, the age of the least recent page. For an empty list this is `u32::MAX`.
    #[inline]
    pub fn heads(&self, class: usize) -> &[u32] {
        &self.classes[class].heads
    }

    /// Returns one bit for each list of a class: whether the list has pages.
    #[inline]
    pub fn filled(&self, class: usize) -> &[u64] {
        &self.classes[class].filled
    }

    /// Marks list number `list` of some classes as changed. [`ChipLists::take_changed`] then reports it even if its
    /// head (the age of its least recent page) has not changed.
    #[inline]
    pub fn mark_changed<const N: usize>(&mut self, classes: [usize; N], list: usize) {
        let (word, bit) = (list / 64, 1 << (list % 64));
        for class in classes {
            self.classes[class].changed[word] |= bit;
        }
    }

    /// Reports all changes since the last call. Calls `update` for each list number that was
    /// [marked](ChipLists::mark_changed), or for which the head (age of the least recent page) has changed in any of
    /// `classes`. The arguments of `update` are the list number, and the least of the heads of the lists with this
    /// number in `classes`.
    #[inline]
    pub fn take_changed<const N: usize>(
        &mut self,
        classes: [usize; N],
        mut update: impl FnMut(usize, u32),
    ) {
        for i in 0..self.lists().div_ceil(64) {
            let changed = |class: usize| std::mem::take(&mut self.classes[class].changed[i]);
            let mut lists = classes
                .map(changed)
                .into_iter()
                .fold(0, |all, word| all | word);
            while lists != 0 {
                let list = i * 64 + lists.trailing_zeros() as usize;
                lists &= lists - 1;
                let heads = classes.map(|class| self.classes[class].heads[list]);
                update(list, heads.into_iter().fold(NONE, u32::min));
            }
        }
    }

    /// Returns the pages of a list from the least recent to the most recent.
    pub fn iter_oldest_first(
        &self,
        class: usize,
        list: usize,
    ) -> impl Iterator<Item = PageId> + '_ {
        let some = |page| (page != NONE).then_some(PageId(page));
        let oldest = some(self.classes[class].ends[list].1);
        std::iter::successors(oldest, move |page| some(self.nodes[page.0 as usize].newer))
    }

    /// Returns the oldest page of a class that neither `skip` nor `passed_over` excludes. Compares the lists of all
    /// chips.
    pub fn oldest_not(
        &self,
        class: usize,
        device: &dyn DeviceView,
        skip: Skip,
        ages: &Ages,
        passed_over: impl Fn(PageId) -> bool,
    ) -> Option<PageId> {
        debug_assert!(self.numbering == ages.numbering(), "heads of other ages");
        let class = &self.classes[class];
        let chips = self.chips as usize;
        let (mut least, mut found) = (NONE, None);
        let in_gc = device.chips_in_gc();
        for (i, &filled) in class.filled.iter().enumerate() {
            let mut open = match skip {
                Skip::Nothing => filled,
                Skip::Gc | Skip::GcSoon => filled & !in_gc.word(i),
            };
            while open != 0 {
                let list = i * 64 + open.trailing_zeros() as usize;
                open &= open - 1;
                // Most lists are skipped here: their oldest page is more recent than the best page found so far.
                if class.heads[list] >= least {
                    continue;
                }
                let soon = skip == Skip::GcSoon && list < chips;
                if soon && skip.chip(device, ChipId(list as u16)) {
                    continue;
                }
                let mut page = class.ends[list].1;
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

    /// Whether the class has a page that is older than `age` and that `skip` excludes because of its chip.
    pub fn passes_over_before(
        &self,
        class: usize,
        device: &dyn DeviceView,
        skip: Skip,
        age: u32,
    ) -> bool {
        let class = &self.classes[class];
        let in_gc = device.chips_in_gc();
        (class.filled.iter().enumerate()).any(|(i, &filled)| {
            let mut lists = match skip {
                Skip::Nothing => 0,
                Skip::Gc => filled & in_gc.word(i),
                Skip::GcSoon => filled,
            };
            while lists != 0 {
                let list = i * 64 + lists.trailing_zeros() as usize;
                lists &= lists - 1;
                let is_skipped = |chip| skip == Skip::Gc || skip.chip(device, chip);
                if class.heads[list] < age && self.chip_of_list(list).is_some_and(is_skipped) {
                    return true;
                }
            }
            false
        })
    }
}
