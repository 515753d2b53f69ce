//! The cached mapping table (CMT) of DFTL. It caches some entries of the page map, each with a dirty bit, and evicts
//! them in segmented LRU order.

use std::io::{self, Read, Write};

use super::dftl::DftlSetup;
use super::saved::{read_list, write_list, wrong};
use super::setup::Setup;
use super::store::NONE;
use crate::divide::Divider;
use crate::ftl::StateError;
use crate::list::List;
use crate::memory::prefetch;
use crate::units::PageId;

/// A cached entry of the map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Logical page.
    pub page: u32,
    /// Physical page of the entry, or [`NONE`].
    pub ppn: u32,
    /// Whether the entry differs from the translation page on flash, because the page was written, trimmed or moved.
    pub is_dirty: bool,
    is_protected: bool,
    /// Neighbours in the list of dirty entries of the same translation page; unused if the entry is clean.
    newer: u32,
    older: u32,
}

/// The cache, a segmented LRU. A new entry is in the probationary segment. A hit moves an entry to the protected
/// segment. If this segment is then too large, its least recent entry returns to the probationary segment. If the
/// protected segment has size 0, the order is plain LRU.
#[derive(Clone, Debug)]
pub(super) struct CachedMap {
    entries: Vec<Entry>,
    entries_max: usize,
    protected_max: usize,
    /// Index in `entries` of each logical page.
    place_of: Vec<u32>,
    probation: List,
    protected: List,
    /// For each translation page, the newest of its dirty entries.
    dirty: Vec<u32>,
    by_translation_page: Divider,
}

impl CachedMap {
    pub fn new(setup: &Setup, own: &DftlSetup) -> CachedMap {
        let logical_pages = setup.logical_pages;
        // The cache needs at most one entry per logical page.
        let entries = |most: u32| most.min(logical_pages) as usize;
        CachedMap {
            entries: Vec::with_capacity(entries(own.cmt_entries)),
            entries_max: entries(own.cmt_entries),
            protected_max: entries(own.protected_entries),
            place_of: vec![NONE; logical_pages as usize],
            probation: List::default(),
            protected: List::default(),
            dirty: vec![NONE; own.translation_pages(logical_pages) as usize],
            by_translation_page: Divider::new(own.entries_per_translation_page),
        }
    }

    #[inline]
    pub fn get(&self, page: u32) -> Option<&Entry> {
        self.entries.get(self.place_of[page as usize] as usize)
    }

    /// Changes the location of a page in the cache and marks the entry dirty. Returns the old location; `None` if the
    /// page is not cached.
    #[inline]
    pub fn change(&mut self, page: u32, ppn: u32) -> Option<u32> {
        let place = self.place_of[page as usize];
        let entry = self.entries.get_mut(place as usize)?;
        let old = std::mem::replace(&mut entry.ppn, ppn);
        if !entry.is_dirty {
            self.soil(place);
        }
        Some(old)
    }

    fn soil(&mut self, place: u32) {
        let entry = &mut self.entries[place as usize];
        let newest = &mut self.dirty[self.by_translation_page.div(entry.page) as usize];
        let older = std::mem::replace(newest, place);
        entry.is_dirty = true;
        (entry.newer, entry.older) = (NONE, older);
        if let Some(older) = self.entries.get_mut(older as usize) {
            older.newer = place;
        }
    }

    /// Whether any entry of a translation page is dirty.
    pub fn has_dirty(&self, which: u32) -> bool {
        self.dirty[which as usize] != NONE
    }

    /// Marks the cached entry of a page clean, because the caller writes it to flash. Returns the location of the
    /// page if the entry was dirty, otherwise `None`.
    pub fn clean(&mut self, page: u32) -> Option<u32> {
        let place = self.place_of[page as usize] as usize;
        let entry = self.entries.get_mut(place).filter(|entry| entry.is_dirty)?;
        entry.is_dirty = false;
        let Entry {
            ppn, newer, older, ..
        } = *entry;
        match self.entries.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.dirty[self.by_translation_page.div(page) as usize] = older,
        }
        if let Some(older) = self.entries.get_mut(older as usize) {
            older.newer = newer;
        }
        Some(ppn)
    }

    /// Marks one dirty entry of a translation page clean, and returns its logical page and location. `None` if no
    /// entry of the translation page is dirty.
    pub fn clean_one(&mut self, which: u32) -> Option<(u32, u32)> {
        let newest = self.dirty[which as usize];
        let page = self.entries.get(newest as usize)?.page;
        Some((page, self.clean(page)?))
    }

    /// Prefetches the index of a page.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        prefetch(&self.place_of, page as usize);
    }

    /// Returns the entry to evict for a new one; `None` if the cache has a free entry.
    pub fn victim(&self) -> Option<&Entry> {
        if self.entries.len() < self.entries_max {
            return None;
        }
        let place = self.probation.oldest().or(self.protected.oldest())?;
        self.entries.get(place.0 as usize)
    }

    /// Records a hit on a cached page.
    pub fn renew(&mut self, page: u32) {
        let place = PageId(self.place_of[page as usize]);
        let was_protected = self.entries[place.0 as usize].is_protected;
        if was_protected {
            self.protected.remove(place);
        } else {
            self.probation.remove(place);
        }
        if self.protected_max == 0 {
            return self.probation.push_newest(place);
        }
        self.protected.push_newest(place);
        self.entries[place.0 as usize].is_protected = true;
        if self.protected.len() > self.protected_max {
            if let Some(oldest) = self.protected.oldest() {
                self.protected.remove(oldest);
                self.probation.push_newest(oldest);
                self.entries[oldest.0 as usize].is_protected = false;
            }
        }
    }

    /// Adds a clean entry for a page. If the cache is full, the entry replaces the victim.
    pub fn insert(&mut self, page: u32, ppn: u32) {
        let entry = Entry {
            page,
            ppn,
            is_dirty: false,
            is_protected: false,
            newer: NONE,
            older: NONE,
        };
        let place = match self.victim().copied() {
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
            Some(victim) => {
                let place = std::mem::replace(&mut self.place_of[victim.page as usize], NONE);
                if victim.is_protected {
                    self.protected.remove(PageId(place));
                } else {
                    self.probation.remove(PageId(place));
                }
                self.entries[place as usize] = entry;
                place
            }
        };
        self.place_of[page as usize] = place;
        self.probation.push_newest(PageId(place));
    }

    /// Writes the cached logical pages with their dirty bits: first the protected segment, then the probationary one,
    /// each with the least recent entry first.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        for list in [&self.protected, &self.probation] {
            let entries = list.iter_oldest_first();
            let numbers = entries.flat_map(|place| {
                let entry = &self.entries[place.0 as usize];
                [entry.page, u32::from(entry.is_dirty)]
            });
            write_list(out, numbers)?;
        }
        Ok(())
    }

    /// Reads cached entries into an empty cache; `places` has the location of each logical page.
    pub fn load(&mut self, places: &[u32], input: &mut dyn Read) -> Result<(), StateError> {
        for is_protected in [true, false] {
            let most = match is_protected {
                true => self.protected_max,
                false => self.entries_max - self.entries.len(),
            };
            for entry in read_list(input, 2 * most as u32)?.chunks(2) {
                let &[page, dirty @ (0 | 1)] = entry else {
                    return wrong("a cached map entry is cut off");
                };
                if self.place_of.get(page as usize) != Some(&NONE) {
                    return wrong("a cached map entry is of no page, or twice there");
                }
                let place = self.entries.len() as u32;
                self.place_of[page as usize] = place;
                self.entries.push(Entry {
                    page,
                    ppn: places[page as usize],
                    is_dirty: false,
                    is_protected,
                    newer: NONE,
                    older: NONE,
                });
                if dirty == 1 {
                    self.soil(place);
                }
                match is_protected {
                    true => self.protected.push_newest(PageId(place)),
                    false => self.probation.push_newest(PageId(place)),
                }
            }
        }
        Ok(())
    }

    /// Returns all entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Formats the cache, such as `[4 1*|0]`: the protected entries, a bar, then the probationary entries. In each
    /// segment, the most recent entry is first. `*` marks dirty entries.
    pub fn text(&self) -> String {
        let list = |list: &List| {
            let entry = |place: PageId| {
                let entry = &self.entries[place.0 as usize];
                format!("{}{}", entry.page, if entry.is_dirty { "*" } else { "" })
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
            cache.insert(page, page);
        }
        assert!(cache.victim().is_some_and(|entry| entry.page == 0));
        cache.renew(0);
        assert_eq!(cache.text(), "[0|2 1]");
        cache.renew(1);
        assert_eq!(cache.text(), "[1|0 2]");
        cache.insert(7, 7);
        assert_eq!(cache.text(), "[1|7 0]");
        assert!(cache.get(2).is_none() && cache.get(7).is_some());
    }
}
