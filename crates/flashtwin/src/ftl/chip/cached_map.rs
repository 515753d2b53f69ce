//! The cached mapping table (CMT) of DFTL: some entries of the page map, with their dirty bits, in a
//! segmented LRU order.

use super::store::NONE;
use crate::buffer::{List, PageId};

/// A cached entry of the map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Logical page.
    pub page: u32,
    /// Its physical page, or [`NONE`].
    pub ppn: u32,
    /// Newer than the translation page on flash.
    pub is_dirty: bool,
    is_protected: bool,
}

/// The cache. A page enters on probation; a hit there protects it; what the protected part has no
/// room for returns to probation. Without a protected part this is LRU.
#[derive(Clone, Debug)]
pub(super) struct CachedMap {
    entries: Vec<Entry>,
    entries_max: usize,
    protected_max: usize,
    /// Place in `entries` of each logical page.
    place_of: Vec<u32>,
    probation: List,
    protected: List,
}

impl CachedMap {
    pub fn new(logical_pages: u32, entries_max: u32, protected_max: u32) -> CachedMap {
        CachedMap {
            entries: Vec::with_capacity(entries_max as usize),
            entries_max: entries_max as usize,
            protected_max: protected_max as usize,
            place_of: vec![NONE; logical_pages as usize],
            probation: List::default(),
            protected: List::default(),
        }
    }

    #[inline]
    pub fn get(&self, page: u32) -> Option<&Entry> {
        self.entries.get(self.place_of[page as usize] as usize)
    }

    #[inline]
    pub fn get_mut(&mut self, page: u32) -> Option<&mut Entry> {
        self.entries.get_mut(self.place_of[page as usize] as usize)
    }

    /// The entry that leaves when another comes; `None` while there is room.
    pub fn victim(&self) -> Option<&Entry> {
        if self.entries.len() < self.entries_max {
            return None;
        }
        let place = self.probation.oldest().or(self.protected.oldest())?;
        self.entries.get(place.0 as usize)
    }

    /// A cached page is looked up again.
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

    /// Caches a page, clean, in the place of the victim if there is one.
    pub fn insert(&mut self, page: u32, ppn: u32) {
        let entry = Entry {
            page,
            ppn,
            is_dirty: false,
            is_protected: false,
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

    /// Entries, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// `[4 1*|0]`: protected, then on probation, most recent first; `*` dirty.
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
    use super::*;

    #[test]
    fn a_hit_protects_and_the_protected_part_gives_back_its_oldest() {
        let mut cache = CachedMap::new(9, 3, 1);
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
