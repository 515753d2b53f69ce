//! Heaps of nodes. The node with the least key is first. The position of each node in its heap is recorded.

use std::ops::Range;

use super::{NodeId, NONE};
use crate::memory::reach;

/// Number of children of a heap entry.
const ARITY: usize = 4;

/// Several heaps, identified by number. A node is in at most one of them.
#[derive(Clone, Debug)]
pub struct Heaps<K> {
    heaps: Vec<Vec<(K, NodeId)>>,
    /// For each node, its heap and its position in that heap.
    places: Vec<(u32, u32)>,
}

impl<K: Ord + Copy> Heaps<K> {
    /// Creates `heaps` empty heaps, numbered from 0.
    pub fn new(heaps: usize) -> Heaps<K> {
        Heaps {
            heaps: vec![Vec::new(); heaps],
            places: Vec::new(),
        }
    }

    /// Returns the nodes of a heap with their keys, in no particular order.
    #[inline]
    pub fn entries(&self, heap: usize) -> &[(K, NodeId)] {
        &self.heaps[heap]
    }

    /// Returns the least key of a heap, with its node; `None` if the heap is empty.
    #[inline]
    pub fn first(&self, heap: usize) -> Option<(K, NodeId)> {
        self.heaps[heap].first().copied()
    }

    /// Returns the heap that a node is in; `None` if it is in no heap.
    #[inline]
    pub fn heap_of(&self, node: NodeId) -> Option<usize> {
        let place = self.places.get(node.0 as usize)?;
        (place.0 != NONE).then_some(place.0 as usize)
    }

    /// Returns the key of a node; `None` if the node is in no heap.
    #[inline]
    pub fn key_of(&self, node: NodeId) -> Option<K> {
        let heap = self.heap_of(node)?;
        let place = self.places[node.0 as usize].1;
        Some(self.heaps[heap][place as usize].0)
    }

    /// Inserts a node into a heap with the given key. If the node is already in the heap, changes its key.
    pub fn set(&mut self, heap: usize, node: NodeId, key: K) {
        reach(&mut self.places, node.0 as usize, (NONE, NONE));
        let mut place = self.places[node.0 as usize];
        if place.0 == NONE {
            place = (heap as u32, self.heaps[heap].len() as u32);
            self.heaps[heap].push((key, node));
        }
        self.settle(place, (key, node));
    }

    /// Removes a node from the heap that contains it.
    pub fn remove(&mut self, node: NodeId) {
        let (heap, place) = self.places[node.0 as usize];
        self.places[node.0 as usize] = (NONE, NONE);
        let entries = &mut self.heaps[heap as usize];
        let last = entries.pop();
        if let Some(last) = last.filter(|_| (place as usize) < entries.len()) {
            self.settle((heap, place), last);
        }
    }

    /// Writes an entry at a free position of the heap, then moves it up or down until the heap order is restored.
    fn settle(&mut self, (heap, place): (u32, u32), entry: (K, NodeId)) {
        let entries = &mut self.heaps[heap as usize];
        let mut at = place as usize;
        let mut put = |entries: &mut [(K, NodeId)], at: usize, entry: (K, NodeId)| {
            entries[at] = entry;
            self.places[entry.1 .0 as usize] = (heap, at as u32);
        };
        while at > 0 && entry.0 < entries[(at - 1) / ARITY].0 {
            let parent = (at - 1) / ARITY;
            let above = entries[parent];
            put(entries, at, above);
            at = parent;
        }
        loop {
            let children = at * ARITY + 1..(at * ARITY + 1 + ARITY).min(entries.len());
            let Some(least) = children.min_by_key(|&child| entries[child].0) else {
                break;
            };
            if entry.0 <= entries[least].0 {
                break;
            }
            let under = entries[least];
            put(entries, at, under);
            at = least;
        }
        put(entries, at, entry);
    }

    /// Visits entries of a heap, starting with the least one, and calls `below` for each. If `below` returns true for
    /// an entry, its children are visited too. Their keys are at least as large as the key of the entry.
    #[inline]
    pub fn walk(&self, heap: usize, mut below: impl FnMut(K, NodeId) -> bool) {
        walk_from(&self.heaps[heap], 0..1, &mut below);
    }

    /// Returns the least key among the nodes for which `passed_over` returns false, and the node with that key.
    pub fn first_but(
        &self,
        heap: usize,
        passed_over: &mut dyn FnMut(NodeId) -> bool,
    ) -> Option<(K, NodeId)> {
        let mut best: Option<(K, NodeId)> = None;
        self.walk(heap, |key, node| {
            let better = best.is_none_or(|best| key < best.0);
            if better && !passed_over(node) {
                best = Some((key, node));
                return false;
            }
            better
        });
        best
    }

    /// Returns the number of nodes in a heap whose key is less than `key` and for which `counts` returns true.
    pub fn before(&self, heap: usize, key: K, counts: &mut dyn FnMut(NodeId) -> bool) -> u64 {
        let mut nodes = 0;
        self.walk(heap, |other, node| {
            nodes += u64::from(other < key && counts(node));
            other < key
        });
        nodes
    }
}

/// Walks a heap, starting at the given places.
fn walk_from<K: Copy>(
    entries: &[(K, NodeId)],
    places: Range<usize>,
    below: &mut impl FnMut(K, NodeId) -> bool,
) {
    for at in places.start..places.end.min(entries.len()) {
        let (key, node) = entries[at];
        if below(key, node) {
            walk_from(entries, at * ARITY + 1..at * ARITY + ARITY + 1, below);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::PageId;
    use crate::rng::Rng;

    #[test]
    fn agree_with_sorted_lists() {
        for seed in crate::seeds(3) {
            let mut rng = Rng::new(seed);
            let mut heaps: Heaps<(u64, u32)> = Heaps::new(2);
            let mut sorted: [Vec<((u64, u32), NodeId)>; 2] = Default::default();
            for _ in 0..20_000 {
                let node = PageId(rng.below(60) as u32);
                let known = (0..2).find(|&i| sorted[i].iter().any(|entry| entry.1 == node));
                assert_eq!(heaps.heap_of(node), known);
                let heap = known.unwrap_or(rng.below(2) as usize);
                sorted[heap].retain(|entry| entry.1 != node);
                if rng.below(3) == 0 && known.is_some() {
                    heaps.remove(node);
                } else {
                    let key = (rng.below(9), node.0);
                    heaps.set(heap, node, key);
                    sorted[heap].push((key, node));
                    sorted[heap].sort();
                }
                let sorted = &sorted[heap];
                assert_eq!(heaps.first(heap), sorted.first().copied());
                assert_eq!(heaps.entries(heap).len(), sorted.len());
                let odd = heaps.first_but(heap, &mut |node| node.0 % 2 == 0);
                let wanted = sorted.iter().position(|entry| entry.1 .0 % 2 == 1);
                assert_eq!(odd, wanted.map(|i| sorted[i]));
                if let (Some((key, _)), Some(i)) = (odd, wanted) {
                    assert_eq!(heaps.before(heap, key, &mut |_| true), i as u64);
                }
            }
        }
    }
}
