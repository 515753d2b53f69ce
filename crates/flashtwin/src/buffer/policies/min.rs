//! MIN: knows future accesses and has the most hits that any policy can have (Belady, IBM Systems Journal 5(2), 1966).
//!
//! The victim is the cached page that will be accessed latest. Every page that misses enters the buffer. MIN needs the
//! complete list of accesses in advance.
//!
//! The buffer is stored as a set of positions in the list of accesses: for each cached page, the position of its next
//! access. An access is a hit if its own position is in the set. The victim is the page with the largest position. Page
//! numbers are not needed.

use crate::buffer::entry::{cost, Entry, Family, Make};
use crate::component::{source, Provenance};
use std::collections::HashMap;

use crate::units::Lpn;

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "min",
    title: "MIN",
    line: "Belady's optimum: evicts the page whose next access is farthest away; a bound for all policies.",
    family: Family::General,
    source: source(
        "L. A. Belady",
        "A Study of Replacement Algorithms for a Virtual-Storage Computer",
        "IBM Systems Journal 5(2)",
        1966,
    ),
    provenance: Provenance::Original,
    rule: &[
        "Victim: the page whose next access is farthest away. Pages that are never accessed again \
         are evicted first.",
        "No policy that fetches on demand has more hits. Reads and writes count alike, so MIN \
         does not bound the number of pages written.",
        "MIN must know the future. It exists only in `flashtwin policy hits`; a device cannot use \
         it.",
    ],
    drawing: "
to come:  R3 W1 R2 R1 ...
buffer    [ 1  2  3 ]   next access after 2, 3, 1 -> victim: 2",
    state: "",
    cost: cost("O(log n)", "O(log n)", "O(log n)"),
    example: None,
    make: Make::Offline,
    ..Entry::PLAIN
}];

/// Returns the number of hits in a buffer of `capacity` pages that is empty at the start.
pub fn hits(accesses: &[Lpn], capacity: u32) -> u64 {
    if capacity == 0 {
        return 0;
    }
    let mut cached = Positions::new(accesses.len());
    // Number of cached pages that will not be accessed again. All of them are equally good victims.
    let mut never = 0_u64;
    let mut free = capacity;
    let mut hits = 0;
    for (position, next) in next_accesses(accesses).into_iter().enumerate() {
        if cached.remove(position) {
            hits += 1;
        } else if free > 0 {
            free -= 1;
        } else if never > 0 {
            never -= 1;
        } else {
            cached.remove_largest();
        }
        match next {
            NEVER => never += 1,
            _ => cached.insert(next),
        }
    }
    hits
}

const NEVER: usize = usize::MAX;

/// Returns, for each access, the position of the next access to the same page; `NEVER` if there is none.
fn next_accesses(accesses: &[Lpn]) -> Vec<usize> {
    let mut seen = HashMap::new();
    let mut next = vec![NEVER; accesses.len()];
    for (position, lpn) in accesses.iter().enumerate().rev() {
        if let Some(later) = seen.insert(*lpn, position) {
            next[position] = later;
        }
    }
    next
}

/// A set of numbers below a bound, as bitmaps on several levels. The lowest bitmap is the set itself. Each bit of a
/// higher bitmap marks a word of the bitmap below that is not empty.
struct Positions {
    /// The bitmaps. The lowest one, the set itself, is first. The highest one, which has a single word, is last.
    levels: Vec<Vec<u64>>,
}

impl Positions {
    fn new(bound: usize) -> Positions {
        let mut levels = Vec::new();
        let mut words = bound.div_ceil(64).max(1);
        loop {
            levels.push(vec![0; words]);
            if words == 1 {
                return Positions { levels };
            }
            words = words.div_ceil(64);
        }
    }

    fn insert(&mut self, number: usize) {
        let mut at = number;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let was_empty = *word == 0;
            *word |= 1 << (at % 64);
            if !was_empty {
                return;
            }
            at /= 64;
        }
    }

    /// Removes a number; returns false if it is not in the set.
    fn remove(&mut self, number: usize) -> bool {
        if self.levels[0][number / 64] & (1 << (number % 64)) == 0 {
            return false;
        }
        let mut at = number;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
        true
    }

    /// Removes the largest number of the set, which must not be empty.
    fn remove_largest(&mut self) {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            at = at * 64 + level[at].ilog2() as usize;
        }
        self.remove(at);
    }
}
