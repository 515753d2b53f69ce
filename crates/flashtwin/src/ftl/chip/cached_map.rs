//! The cached mapping table (CMT) of DFTL. It caches some entries of the page map, each with a dirty bit, and evicts
//! them in segmented LRU order.

use std::io::{self, Read, Write};
use std::ops::Range;

use super::dftl::DftlSetup;
use super::saved::{read_list, write_list, wrong};
use super::setup::Setup;
use super::store::NONE;
use crate::divide::Divider;
use crate::ftl::StateError;
use crate::joined::{JoinedTable, Movable};
use crate::list::List;
use crate::memory::prefetch;
use crate::units::PageId;

/// A logical page in the map.
#[derive(Clone, Copy, Debug)]
struct Mapped {
    /// Newest physical page, or [`NONE`].
    ppn: u32,
    /// Place of the page's entry in the cache, or [`NONE`].
    place: u32,
}

/// The cache, and the newest location of each page. The translation pages on flash have the same locations, except for
/// the dirty entries.
///
/// A new entry is on probation. A hit makes an entry protected. If there is no room for another protected entry, the
/// oldest protected entry returns to probation. If the maximum number of protected entries is 0, the order is LRU.
#[derive(Clone, Debug)]
pub(super) struct CachedMap {
    /// All logical pages, cached or not.
    map: JoinedTable<Mapped>,
    /// Logical page of each place in the cache.
    pages: Vec<u32>,
    /// For each place in the cache, whether its entry is protected.
    is_protected: Vec<bool>,
    entries_max: usize,
    protected_max: usize,
    probation: List,
    protected: List,
    /// One bit per logical page: whether its cached entry is dirty, that is, newer than the translation page on flash.
    /// The bits of each translation page begin with a new word.
    dirty: JoinedTable<u64>,
    /// Number of words of `dirty` for a translation page.
    words: usize,
    by_translation_page: Divider,
}

impl CachedMap {
    pub fn new(setup: &Setup, own: &DftlSetup) -> CachedMap {
        let logical_pages = setup.logical_pages;
        // The cache needs at most one entry per logical page.
        let entries = |most: u32| most.min(logical_pages) as usize;
        let entries_max = entries(own.cmt_entries);
        let words = own.entries_per_translation_page.div_ceil(u64::BITS) as usize;
        let absent = Mapped {
            ppn: NONE,
            place: NONE,
        };
        CachedMap {
            map: JoinedTable::new(absent, logical_pages as usize),
            pages: Vec::with_capacity(entries_max),
            is_protected: vec![false; entries_max],
            entries_max,
            protected_max: entries(own.protected_entries),
            probation: List::default(),
            protected: List::default(),
            dirty: JoinedTable::new(0, own.translation_pages(logical_pages) as usize * words),
            words,
            by_translation_page: Divider::new(own.entries_per_translation_page),
        }
    }

    /// Returns the large tables.
    pub fn tables(&mut self) -> impl Iterator<Item = &mut dyn Movable> {
        let tables: [&mut dyn Movable; 2] = [&mut self.map, &mut self.dirty];
        tables.into_iter()
    }

    /// Returns the number of logical pages.
    #[inline]
    pub fn logical_pages(&self) -> u32 {
        self.map.len() as u32
    }

    /// Returns the translation page that has the entry of `page`.
    #[inline]
    pub fn translation_page(&self, page: u32) -> u32 {
        self.by_translation_page.div(page)
    }

    /// Returns the newest physical page of a logical page, or [`NONE`].
    #[inline]
    pub fn location(&self, page: u32) -> u32 {
        self.map[page as usize].ppn
    }

    /// Sets the location of a page in an initial or loaded state, and returns the location before.
    pub fn set_location(&mut self, page: u32, ppn: u32) -> u32 {
        std::mem::replace(&mut self.map[page as usize].ppn, ppn)
    }

    /// Changes the location of a page. If its entry is cached, marks the entry dirty. Returns the old location, and
    /// whether the entry is cached. If it is not, the caller must write the translation page.
    #[inline]
    pub fn change(&mut self, page: u32, ppn: u32) -> (u32, bool) {
        let mapped = &mut self.map[page as usize];
        let old = std::mem::replace(&mut mapped.ppn, ppn);
        let is_cached = mapped.place != NONE;
        if is_cached {
            let (word, bit) = self.dirty_bit(page);
            self.dirty[word] |= bit;
        }
        (old, is_cached)
    }

    #[inline]
    pub fn is_cached(&self, page: u32) -> bool {
        self.map[page as usize].place != NONE
    }

    /// Returns the word and the bit of a page in `dirty`.
    #[inline]
    fn dirty_bit(&self, page: u32) -> (usize, u64) {
        let (which, within) = self.by_translation_page.div_rem(page);
        let word = which as usize * self.words + within as usize / 64;
        (word, 1 << (within % 64))
    }

    /// Whether the entry of a page is cached and dirty.
    #[inline]
    pub fn is_dirty(&self, page: u32) -> bool {
        let (word, bit) = self.dirty_bit(page);
        self.dirty[word] & bit != 0
    }

    /// Returns the words of `dirty` for a translation page.
    #[inline]
    fn words_of(&self, which: u32) -> Range<usize> {
        let first = which as usize * self.words;
        first..first + self.words
    }

    /// Whether any entry of a translation page is dirty.
    pub fn has_dirty(&self, which: u32) -> bool {
        self.dirty[self.words_of(which)]
            .iter()
            .any(|&word| word != 0)
    }

    /// Marks a page's entry clean, because the caller writes it to flash.
    pub fn clean(&mut self, page: u32) {
        let (word, bit) = self.dirty_bit(page);
        self.dirty[word] &= !bit;
    }

    /// Marks all entries of a translation page clean, because the caller writes the translation page.
    #[inline]
    pub fn clean_all(&mut self, which: u32) {
        let words = self.words_of(which);
        self.dirty[words].fill(0);
    }

    /// Prefetches the location and the place of a page.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        prefetch(&self.map, page as usize);
    }

    /// Returns the place of the entry to evict for a new one; `None` if the cache has a free place.
    #[inline]
    fn oldest(&self) -> Option<PageId> {
        if self.pages.len() < self.entries_max {
            return None;
        }
        self.probation.oldest().or(self.protected.oldest())
    }

    /// Returns the page whose entry is evicted for a new one; `None` if the cache has a free place.
    #[inline]
    pub fn victim(&self) -> Option<u32> {
        let place = self.oldest()?;
        Some(self.pages[place.0 as usize])
    }

    /// Records a hit on a cached page.
    pub fn renew(&mut self, page: u32) {
        let place = PageId(self.map[page as usize].place);
        if self.is_protected[place.0 as usize] {
            self.protected.remove(place);
        } else {
            self.probation.remove(place);
        }
        if self.protected_max == 0 {
            return self.probation.push_newest(place);
        }
        self.protected.push_newest(place);
        self.is_protected[place.0 as usize] = true;
        if self.protected.len() > self.protected_max {
            if let Some(oldest) = self.protected.oldest() {
                self.protected.remove(oldest);
                self.probation.push_newest(oldest);
                self.is_protected[oldest.0 as usize] = false;
            }
        }
    }

    /// Caches a page with a clean entry. If the cache is full, the entry replaces the victim, which must be clean.
    pub fn insert(&mut self, page: u32) {
        let place = match self.oldest() {
            None => {
                self.pages.push(page);
                self.pages.len() as u32 - 1
            }
            Some(place) => {
                let victim = std::mem::replace(&mut self.pages[place.0 as usize], page);
                debug_assert!(!self.is_dirty(victim), "a dirty entry is lost");
                self.map[victim as usize].place = NONE;
                let was_protected = &mut self.is_protected[place.0 as usize];
                match std::mem::take(was_protected) {
                    true => self.protected.remove(place),
                    false => self.probation.remove(place),
                }
                place.0
            }
        };
        self.map[page as usize].place = place;
        self.probation.push_newest(PageId(place));
        if let Some(victim) = self.victim() {
            self.prefetch(victim);
            prefetch(&self.dirty, self.dirty_bit(victim).0);
        }
    }

    /// Writes the cached logical pages with their dirty bits: first the protected segment, then the probationary one,
    /// each with the least recent entry first.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        for list in [&self.protected, &self.probation] {
            let entries = list.iter_oldest_first();
            let numbers = entries.flat_map(|place| {
                let page = self.pages[place.0 as usize];
                [page, u32::from(self.is_dirty(page))]
            });
            write_list(out, numbers)?;
        }
        Ok(())
    }

    /// Reads cached pages into an empty cache. The locations of all pages must have been set.
    pub fn load(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        for is_protected in [true, false] {
            let most = match is_protected {
                true => self.protected_max,
                false => self.entries_max - self.pages.len(),
            };
            for entry in read_list(input, 2 * most as u32)?.chunks(2) {
                let &[page, dirty @ (0 | 1)] = entry else {
                    return wrong("a cached map entry is cut off");
                };
                let place = self.pages.len() as u32;
                match self.map.get_mut(page as usize) {
                    Some(mapped) if mapped.place == NONE => mapped.place = place,
                    _ => return wrong("a cached map entry is of no page, or twice there"),
                }
                self.pages.push(page);
                self.is_protected[place as usize] = is_protected;
                if dirty == 1 {
                    let (word, bit) = self.dirty_bit(page);
                    self.dirty[word] |= bit;
                }
                match is_protected {
                    true => self.protected.push_newest(PageId(place)),
                    false => self.probation.push_newest(PageId(place)),
                }
            }
        }
        Ok(())
    }

    /// Checks that each cached page has a place of its own, and that only cached pages are dirty.
    pub fn check(&self) -> Result<(), String> {
        let mut cached = 0;
        for (page, mapped) in (0u32..).zip(&*self.map) {
            if mapped.place != NONE {
                cached += 1;
                if self.pages.get(mapped.place as usize) != Some(&page) {
                    return Err(format!("page {page} has the cached entry of another page"));
                }
            } else if self.is_dirty(page) {
                return Err(format!("page {page} is dirty and not cached"));
            }
        }
        let listed = self.probation.len() + self.protected.len();
        if cached != self.pages.len() || cached != listed {
            return Err(format!("{cached} pages are cached, {listed} are in lists"));
        }
        Ok(())
    }

    /// Formats the cache, such as `[4 1*|0]`: the protected entries, a bar, then the probationary entries. In each
    /// segment, the most recent entry is first. `*` marks dirty entries.
    pub fn text(&self) -> String {
        let list = |list: &List| {
            let entry = |place: PageId| {
                let page = self.pages[place.0 as usize];
                format!("{page}{}", if self.is_dirty(page) { "*" } else { "" })
            };
            let mut texts: Vec<String> = list.iter_oldest_first().map(entry).collect();
            texts.reverse();
            texts.join(" ")
        };
        if self.protected_max == 0 {
            return format!("[{}]", list(&self.probation));
        }
        format!("[{}|{}]", list(&self.protected), list(&self.probation))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Layer;
    use super::*;

    #[test]
    fn a_hit_protects_and_the_protected_part_gives_back_its_oldest() {
        let mut setup = Setup::new("dftl", 9, 16, 4).unwrap();
        let set = [("cmt_entries", "3"), ("protected_entries", "1")];
        setup.set_all(&set).unwrap();
        let Layer::Dftl(own) = &setup.kind else {
            panic!()
        };
        let mut cache = CachedMap::new(&setup, own);
        for page in [0, 1, 2] {
            cache.insert(page);
        }
        assert!(cache.victim() == Some(0));
        cache.renew(0);
        assert_eq!(cache.text(), "[0|2 1]");
        cache.renew(1);
        assert_eq!(cache.text(), "[1|0 2]");
        cache.insert(7);
        assert_eq!(cache.text(), "[1|7 0]");
        assert!(!cache.is_cached(2) && cache.is_cached(7));
    }
}
