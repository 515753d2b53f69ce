//! A table of items in flight. The number of an item is reused after the item is removed.

use std::ops::{Index, IndexMut};

use crate::units::narrow;

/// Means "no number".
pub(crate) const NONE: u32 = u32::MAX;

/// Items by their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Table<T> {
    /// Whether the table has no items.
    pub fn is_empty(&self) -> bool {
        self.items.len() == self.free.len()
    }

    #[inline(always)]
    pub fn add(&mut self, item: T) -> u32 {
        if let Some(id) = self.free.pop() {
            self[id] = item;
            return id;
        }
        let id = narrow(self.items.len());
        self.items.push(item);
        id
    }

    /// Frees the number of an item for reuse. The old item stays readable until then.
    #[inline(always)]
    pub fn remove(&mut self, id: u32) {
        self.free.push(id);
    }

    #[inline]
    pub fn get(&self, id: u32) -> Option<&T> {
        self.items.get(id as usize)
    }

    /// Returns all items with their numbers, including removed items whose numbers are not reused yet.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        (0..).zip(self.items.iter_mut())
    }

    /// Returns the items that were not removed.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let items = (0..).zip(self.items.iter());
        let there = items.filter(|(id, _)| !self.free.contains(id));
        there.map(|(_, item)| item)
    }
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table {
            items: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Index<u32> for Table<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, id: u32) -> &T {
        &self.items[id as usize]
    }
}

impl<T> IndexMut<u32> for Table<T> {
    #[inline(always)]
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.items[id as usize]
    }
}
