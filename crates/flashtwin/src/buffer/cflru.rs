//! CFLRU: clean first within a window at the least recent end (policies.md A2).
//!
//! hit, insert: as LRU. Victim: the least recent clean page among the `window` least recent pages;
//! if none of them is clean, the least recent page.
//!
//! The window is positional. Its clean pages stand in a second list, so that a victim is found
//! without a scan: a page enters the window when another leaves it, at the window's recent end, and
//! leaves it only by a hit or an eviction.

use super::{DeviceView, List, PageId, Policy};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Working,
    /// In the window; on the clean list or not.
    Window { clean: bool },
}

/// Clean-first LRU.
#[derive(Clone, Debug)]
pub struct Cflru {
    window: usize,
    list: List,
    /// Per page: where it stands, and whether it is dirty.
    pages: Vec<(Place, bool)>,
    in_window: usize,
    /// The most recent page of the window.
    boundary: Option<PageId>,
    clean_in_window: List,
}

impl Cflru {
    /// A clean-first region of `window` pages.
    pub fn new(window: usize) -> Cflru {
        Cflru {
            window,
            list: List::default(),
            pages: Vec::new(),
            in_window: 0,
            boundary: None,
            clean_in_window: List::default(),
        }
    }

    /// Lets the next page of the working region into the window if there is room.
    fn refill(&mut self) {
        if self.in_window == self.window {
            return;
        }
        let next = match self.boundary {
            Some(boundary) => self.list.newer(boundary),
            None => self.list.oldest(),
        };
        let Some(page) = next else { return };
        let dirty = self.pages[page.0 as usize].1;
        self.pages[page.0 as usize].0 = Place::Window { clean: !dirty };
        if !dirty {
            self.clean_in_window.push_newest(page);
        }
        self.in_window += 1;
        self.boundary = Some(page);
    }
}

impl Policy for Cflru {
    fn insert(&mut self, page: PageId, dirty: bool) {
        if page.0 as usize >= self.pages.len() {
            self.pages
                .resize(page.0 as usize + 1, (Place::Working, false));
        }
        self.pages[page.0 as usize] = (Place::Working, dirty);
        self.list.push_newest(page);
        self.refill();
    }

    fn touch(&mut self, page: PageId, dirty: bool) {
        self.remove(page);
        self.insert(page, dirty);
    }

    fn remove(&mut self, page: PageId) {
        if let Place::Window { clean } = self.pages[page.0 as usize].0 {
            self.in_window -= 1;
            if clean {
                self.clean_in_window.remove(page);
            }
            if self.boundary == Some(page) {
                self.boundary = self.list.older(page);
            }
        }
        self.list.remove(page);
        self.refill();
    }

    fn cleaned(&mut self, page: PageId) {
        let state = &mut self.pages[page.0 as usize];
        state.1 = false;
        if state.0 != (Place::Window { clean: false }) {
            return;
        }
        state.0 = Place::Window { clean: true };
        // Its place on the clean list: just newer than the next older clean page.
        let is_clean = |p: &PageId| self.pages[p.0 as usize].0 == Place::Window { clean: true };
        let older =
            std::iter::successors(self.list.older(page), |&p| self.list.older(p)).find(is_clean);
        self.clean_in_window.insert_newer_than(older, page);
    }

    fn victim<V: DeviceView>(
        &mut self,
        _device: &V,
        mut accept: impl FnMut(PageId) -> bool,
    ) -> Option<PageId> {
        let clean = self
            .clean_in_window
            .iter_oldest_first()
            .find(|&page| accept(page));
        clean.or_else(|| self.list.iter_oldest_first().find(|&page| accept(page)))
    }

    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        self.list.oldest_three()
    }

    fn order(&self) -> Vec<PageId> {
        let mut pages: Vec<PageId> = self.list.iter_oldest_first().collect();
        pages.reverse();
        pages
    }
}
