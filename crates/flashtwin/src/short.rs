//! A queue that often becomes empty, such as the steps of a chip. It is stored in a vector and never wraps around.
//! The memory of removed items is therefore used again only after the queue has become empty.

use std::ops::{Deref, DerefMut};

/// The queue. It can be read as a slice of the items that are still in it.
#[derive(Clone, Debug)]
pub(crate) struct Short<T> {
    items: Vec<T>,
    taken: usize,
}

impl<T> Default for Short<T> {
    fn default() -> Short<T> {
        Short {
            items: Vec::new(),
            taken: 0,
        }
    }
}

impl<T: Copy> Short<T> {
    /// Appends an item.
    #[inline(always)]
    pub fn push_back(&mut self, item: T) {
        self.items.push(item);
    }

    /// Inserts an item at the front.
    pub fn push_front(&mut self, item: T) {
        match self.taken {
            0 => self.items.insert(0, item),
            _ => {
                self.taken -= 1;
                self.items[self.taken] = item;
            }
        }
    }

    /// Appends several items.
    #[inline]
    pub fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        self.items.extend(items);
    }

    /// Whether the queue is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the first item.
    #[inline(always)]
    pub fn first(&self) -> Option<&T> {
        self.items.get(self.taken)
    }

    /// Removes and returns the first item.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        let mut first = None;
        self.move_front(&mut first);
        first
    }

    /// Moves the first item to `to`; does nothing if the queue is empty. In contrast to [`Short::pop_front`], copies
    /// a large item only once.
    #[inline(always)]
    pub fn move_front(&mut self, to: &mut Option<T>) {
        let Some(first) = self.items.get(self.taken) else {
            return;
        };
        *to = Some(*first);
        self.taken += 1;
        if self.taken == self.items.len() {
            self.items.clear();
            self.taken = 0;
        }
    }
}

impl<T> Deref for Short<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.items[self.taken..]
    }
}

impl<T> DerefMut for Short<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[self.taken..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::VecDeque;

    #[test]
    fn agrees_with_a_plain_queue() {
        for seed in crate::seeds(3) {
            let mut rng = Rng::new(seed);
            let (mut short, mut plain) = (Short::default(), VecDeque::new());
            for n in 0..20_000 {
                match rng.below(6) {
                    0 | 1 => {
                        short.push_back(n);
                        plain.push_back(n);
                    }
                    2 if rng.below(3) == 0 => {
                        short.push_front(n);
                        plain.push_front(n);
                    }
                    3 => {
                        short.extend([n, n + 1]);
                        plain.extend([n, n + 1]);
                    }
                    _ => {
                        for _ in 0..rng.below(4) {
                            assert_eq!(short.pop_front(), plain.pop_front());
                        }
                    }
                }
                assert_eq!(short[..], *plain.make_contiguous());
                assert_eq!(short.is_empty(), plain.is_empty());
                assert_eq!(short.first(), plain.front());
            }
        }
    }
}
