//! Nodes (the cached pages of one block each) sorted by their number of pages, with one recency list for each size.
//!
//! ```text
//! size 4:  B9 - B2            most recent ... least recent
//! size 2:  B1 - B7 - B3
//! size 1:  B0 - B5            largest: B2
//! ```
//!
//! A node that loses a page keeps its recency, so its position in the list of its new size would have to be searched
//! for. To avoid this search, the node is kept in a heap until its next access. The access makes it the most recent
//! node of its size. Few nodes are in the heap.

use super::{Heaps, NodeId, NONE};
use crate::buffer::PageId;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    newer: u32,
    older: u32,
    size: u32,
    /// Whether the node is in the heap.
    shrunk: bool,
    /// Recency of the node; larger is more recent.
    since: u64,
}

/// Returns the position of the last set bit before position `end`; `None` if there is none.
#[inline]
pub fn last_before(bits: &[u64], end: usize) -> Option<usize> {
    let last = |i: usize, word: u64| i * 64 + word.ilog2() as usize;
    let part = bits
        .get(end / 64)
        .map_or(0, |word| word & ((1 << (end % 64)) - 1));
    if part != 0 {
        return Some(last(end / 64, part));
    }
    let whole = &bits[..(end / 64).min(bits.len())];
    let i = whole.iter().rposition(|&word| word != 0)?;
    Some(last(i, whole[i]))
}

/// The lists.
#[derive(Clone, Debug)]
pub struct BySize {
    /// For each size, the most recent and the least recent node of its list.
    ends: Vec<(u32, u32)>,
    /// One bit per size: whether the list of that size has nodes.
    filled: Vec<u64>,
    /// The entry of each node.
    entries: Vec<Entry>,
    /// Heap of the nodes that have lost pages. The node with the most pages is first; among nodes with equally many
    /// pages, the least recent one.
    shrunk: Heaps<(u32, u64)>,
    clock: u64,
}

impl BySize {
    /// Creates an empty structure.
    pub fn new() -> BySize {
        BySize {
            ends: Vec::new(),
            filled: Vec::new(),
            entries: Vec::new(),
            shrunk: Heaps::new(1),
            clock: 0,
        }
    }

    /// Adds a node of `size` pages as the most recent one.
    #[inline]
    pub fn push(&mut self, node: NodeId, size: u32) {
        let i = node.0 as usize;
        if i >= self.entries.len() {
            self.entries.resize(i + 1, Entry::default());
        }
        if size as usize >= self.ends.len() {
            self.ends.resize(size as usize + 1, (NONE, NONE));
            self.filled.resize(size as usize / 64 + 1, 0);
        }
        let (newest, oldest) = &mut self.ends[size as usize];
        self.clock += 1;
        self.entries[i] = Entry {
            newer: NONE,
            older: *newest,
            size,
            shrunk: false,
            since: self.clock,
        };
        match *newest {
            NONE => {
                *oldest = node.0;
                self.filled[size as usize / 64] |= 1 << (size % 64);
            }
            newest => self.entries[newest as usize].newer = node.0,
        }
        *newest = node.0;
    }

    /// Takes a node out.
    #[inline]
    pub fn remove(&mut self, node: NodeId) {
        let entry = self.entries[node.0 as usize];
        if entry.shrunk {
            return self.shrunk.remove(node);
        }
        let (newest, oldest) = &mut self.ends[entry.size as usize];
        match entry.newer {
            NONE => *newest = entry.older,
            newer => self.entries[newer as usize].older = entry.older,
        }
        match entry.older {
            NONE => *oldest = entry.newer,
            older => self.entries[older as usize].newer = entry.newer,
        }
        if *newest == NONE {
            self.filled[entry.size as usize / 64] &= !(1 << (entry.size % 64));
        }
    }

    /// Makes a node the most recent one.
    #[inline]
    pub fn renew(&mut self, node: NodeId) {
        let entry = self.entries[node.0 as usize];
        if entry.newer == NONE && !entry.shrunk {
            self.clock += 1;
            self.entries[node.0 as usize].since = self.clock;
            return;
        }
        self.remove(node);
        self.push(node, entry.size);
    }

    /// Records that a node has lost a page. The node keeps its recency.
    pub fn shrink(&mut self, node: NodeId) {
        if !self.entries[node.0 as usize].shrunk {
            self.remove(node);
        }
        let entry = &mut self.entries[node.0 as usize];
        entry.size -= 1;
        entry.shrunk = true;
        self.shrunk.set(0, node, (!entry.size, entry.since));
    }

    /// Returns the recency of a node: larger is more recent.
    #[inline]
    pub fn since(&self, node: NodeId) -> u64 {
        self.entries[node.0 as usize].since
    }

    /// Returns the sizes whose lists have nodes, largest first.
    fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        let before = |&size: &usize| last_before(&self.filled, size);
        std::iter::successors(before(&self.ends.len()), before)
    }

    /// Returns the node with the most pages for which `passed_over` returns false. Among nodes with equally many pages,
    /// the least recent one is returned.
    pub fn largest_but(&self, passed_over: &mut dyn FnMut(NodeId) -> bool) -> Option<NodeId> {
        let older = |&at: &u32| Some(self.entries[at as usize].newer).filter(|&n| n != NONE);
        let listed = self
            .sizes()
            .flat_map(|size| std::iter::successors(Some(self.ends[size].1), older))
            .map(PageId)
            .find(|&node| !passed_over(node));
        let shrunk = self.shrunk.first_but(0, passed_over);
        let key = |node: NodeId| {
            let entry = &self.entries[node.0 as usize];
            (!entry.size, entry.since)
        };
        match (listed, shrunk) {
            (Some(node), Some((key_of_shrunk, _))) if key(node) < key_of_shrunk => Some(node),
            (node, None) => node,
            (_, Some((_, node))) => Some(node),
        }
    }
}
