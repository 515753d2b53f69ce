//! Ages of pages, and sets of ages; the documentation of [`super`] explains both.

use super::PageId;
use crate::memory::{large_table, reach, room_for};

const NONE: u32 = u32::MAX;
/// Number of 64-bit words in a *run*. The bits of an age set are divided into runs. For each run, the set stores the
/// number of ages in it.
const WORDS: usize = 16;
const RUN: usize = 64 * WORDS;

/// A set of ages.
#[derive(Clone, Debug)]
struct AgeSet {
    /// A tree of 64-bit words. In a leaf, each bit stands for one age and is set if the age is in the set. In any other
    /// word, each bit stands for one of 64 children and is set if the child is not zero. The root is word 0, and the
    /// children of word n begin with word 64 n + 1.
    tree: Vec<u64>,
    /// Number of the first leaf.
    leaves: usize,
    /// Number of ages in each run.
    counts: Vec<u32>,
}

impl AgeSet {
    /// Creates an empty set for ages below `ages`, a multiple of [`RUN`].
    fn new(ages: usize) -> AgeSet {
        let (mut leaves, mut level) = (0, 1);
        while level < ages / 64 {
            leaves += level;
            level *= 64;
        }
        AgeSet {
            tree: large_table(0, leaves + ages / 64),
            leaves,
            counts: vec![0; ages / RUN],
        }
    }

    #[inline(always)]
    fn insert(&mut self, age: usize) {
        self.counts[age / RUN] += 1;
        let (mut n, mut bit) = (self.leaves + age / 64, age % 64);
        loop {
            let word = &mut self.tree[n];
            let was_empty = *word == 0;
            *word |= 1 << bit;
            if !was_empty || n == 0 {
                return;
            }
            (n, bit) = ((n - 1) / 64, (n - 1) % 64);
        }
    }

    #[inline(always)]
    fn remove(&mut self, age: usize) {
        self.counts[age / RUN] -= 1;
        let (mut n, mut bit) = (self.leaves + age / 64, age % 64);
        loop {
            let word = &mut self.tree[n];
            *word &= !(1 << bit);
            if *word != 0 || n == 0 {
                return;
            }
            (n, bit) = ((n - 1) / 64, (n - 1) % 64);
        }
    }

    /// Returns the least age of the set; `None` if the set is empty.
    #[inline]
    fn first(&self) -> Option<usize> {
        let root = self.tree[0];
        (root != 0).then(|| self.first_below(0, root))
    }

    /// Returns the least age of the set that is at least `age`; `None` if there is none.
    #[inline]
    fn first_from(&self, age: usize) -> Option<usize> {
        let mut n = self.leaves + age / 64;
        let mut word = self.tree.get(n)? & (u64::MAX << (age % 64));
        while word == 0 {
            if n == 0 {
                return None;
            }
            let bit = (n - 1) % 64;
            n = (n - 1) / 64;
            // The later children of the parent.
            word = self.tree[n] & (!1 << bit);
        }
        Some(self.first_below(n, word))
    }

    /// Returns the least age in the subtree of word `n`. Considers only the bits of word `n` that are set in `word`.
    #[inline]
    fn first_below(&self, mut n: usize, mut word: u64) -> usize {
        while n < self.leaves {
            n = n * 64 + 1 + word.trailing_zeros() as usize;
            word = self.tree[n];
        }
        (n - self.leaves) * 64 + word.trailing_zeros() as usize
    }

    fn count(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Returns the number of ages in the set that are below `age`.
    fn below(&self, age: usize) -> u64 {
        let run = age / RUN;
        let low = self.first().unwrap_or(age);
        let from = (low.min(age) / 64).max(run * WORDS);
        let leaves = &self.tree[self.leaves..];
        let words = &leaves[from..age / 64];
        let whole: u32 = words.iter().map(|word| word.count_ones()).sum();
        let rest = leaves[age / 64] & ((1 << (age % 64)) - 1);
        let runs: u32 = match low / RUN {
            first if first < run => self.counts[first..run].iter().sum(),
            _ => 0,
        };
        u64::from(runs + whole + rest.count_ones())
    }

    /// Prepares the set for a renumbering of the ages: clears the counts and all levels of the tree except the leaves.
    /// The caller then reads and clears the leaves one by one.
    fn begin_anew(&mut self) {
        self.counts.fill(0);
        self.tree[..self.leaves].fill(0);
    }
}

/// The age of each page, and sets of these ages. A page with a larger age is more recent.
#[derive(Clone, Debug)]
pub struct Ages {
    /// Age of each page.
    at: Vec<u32>,
    /// For each age, the page that received it.
    log: Vec<u32>,
    /// Number of ages that can be assigned before they are renumbered.
    limit: usize,
    sets: Vec<AgeSet>,
    /// Number of renumberings of the ages.
    numbering: u32,
}

impl Ages {
    /// Creates an index with `sets` empty sets of ages. About `pages` pages are expected to have an age at the same
    /// time.
    pub fn new(pages: u32, sets: usize) -> Ages {
        let limit = (pages as usize * 4).max(RUN).next_multiple_of(RUN);
        Ages {
            at: Vec::new(),
            log: room_for(limit),
            limit,
            sets: (0..sets).map(|_| AgeSet::new(limit)).collect(),
            numbering: 0,
        }
    }

    /// Gives `page` a new age, larger than all others. The age is in no set yet.
    #[inline]
    pub fn push(&mut self, page: PageId) {
        reach(&mut self.at, page.0 as usize, NONE);
        if self.log.len() == self.limit {
            self.renumber();
        }
        let age = self.log.len();
        self.log.push(page.0);
        self.at[page.0 as usize] = age as u32;
    }

    /// Puts the age of a page into a set.
    #[inline(always)]
    pub fn insert(&mut self, page: PageId, set: usize) {
        let age = self.of(page);
        self.sets[set].insert(age as usize);
    }

    /// Removes the age of a page from a set. The page keeps its age until [`Ages::push`] assigns a new one.
    #[inline(always)]
    pub fn remove(&mut self, page: PageId, set: usize) {
        let age = self.of(page);
        self.sets[set].remove(age as usize);
    }

    /// Returns the age of a page.
    #[inline]
    pub fn of(&self, page: PageId) -> u32 {
        self.at[page.0 as usize]
    }

    /// Returns the page whose current age is `age`.
    #[inline]
    pub fn page_at(&self, age: u32) -> PageId {
        PageId(self.log[age as usize])
    }

    /// Returns how often the ages have been renumbered. A renumbering makes all ages invalid that a caller has stored.
    #[inline]
    pub fn numbering(&self) -> u32 {
        self.numbering
    }

    /// Returns the number of pages in a set.
    pub fn count(&self, set: usize) -> u64 {
        self.sets[set].count()
    }

    /// Returns the position of a page in its set, counted from 1 at the least recent end. A scan for the page reads
    /// this number of entries.
    pub fn position(&self, page: PageId, set: usize) -> u64 {
        self.sets[set].below(self.of(page) as usize) + 1
    }

    /// Returns the least recent page of a set; `None` if the set is empty.
    #[inline]
    pub fn oldest(&self, set: usize) -> Option<PageId> {
        self.sets[set].first().map(|age| PageId(self.log[age]))
    }

    /// Returns the pages of a set from the least recent to the most recent.
    pub fn iter_oldest_first(&self, set: usize) -> impl Iterator<Item = PageId> + '_ {
        let set = &self.sets[set];
        std::iter::successors(set.first(), |&age| set.first_from(age + 1))
            .map(|age| PageId(self.log[age]))
    }

    /// Renumbers all ages from 0 without gaps and keeps their order. Increases the limit if many ages are in use.
    #[cold]
    fn renumber(&mut self) {
        self.numbering = self.numbering.wrapping_add(1);
        self.sets.iter_mut().for_each(AgeSet::begin_anew);
        // The sets that contain any of the 64 consecutive ages being renumbered, each with its bits for these ages.
        let mut taken: Vec<(usize, u64)> = Vec::with_capacity(self.sets.len());
        let mut next = 0;
        // The new age of a page is never larger than its old age. An entry of `log` is therefore not overwritten before
        // the loop has read it.
        for age in 0..self.log.len() {
            if age % 64 == 0 {
                taken.clear();
                let leaf = |set: &mut AgeSet| std::mem::take(&mut set.tree[set.leaves + age / 64]);
                let words = self.sets.iter_mut().map(leaf).enumerate();
                taken.extend(words.filter(|&(_, word)| word != 0));
            }
            let page = self.log[age];
            let at = &mut self.at[page as usize];
            // An age is dropped if its page has received a later age since.
            if *at == age as u32 {
                *at = next as u32;
                self.log[next] = page;
                for &(set, word) in &taken {
                    if word >> (age % 64) & 1 == 1 {
                        self.sets[set].insert(next);
                    }
                }
                next += 1;
            }
        }
        self.log.truncate(next);
        if next * 2 > self.limit {
            self.grow((next * 4).next_multiple_of(RUN));
        }
    }

    fn grow(&mut self, limit: usize) {
        self.limit = limit;
        for set in &mut self.sets {
            let old = std::mem::replace(set, AgeSet::new(limit));
            let mut age = old.first();
            while let Some(at) = age {
                set.insert(at);
                age = old.first_from(at + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{AgeSet, RUN};
    use crate::rng::{seeds, Rng};

    /// The three sizes of the set give trees of two, three and four levels.
    #[test]
    fn a_set_of_ages_is_a_sorted_set() {
        for seed in seeds(2) {
            for runs in [1, 5, 300] {
                let mut rng = Rng::new(seed);
                let ages = (runs * RUN) as u64;
                let (mut set, mut naive) = (AgeSet::new(ages as usize), BTreeSet::new());
                for step in 0..20_000 {
                    // Phases of 5000 steps alternate: ages from the whole range, then only the 100 largest ages.
                    let age = match step % 10_000 < 5_000 {
                        true => rng.below(ages) as usize,
                        false => (ages - 1 - rng.below(100)) as usize,
                    };
                    match naive.remove(&age) {
                        true => set.remove(age),
                        false => {
                            naive.insert(age);
                            set.insert(age);
                        }
                    }
                    if rng.below(3) == 0 {
                        let first = naive.pop_first();
                        assert_eq!(set.first(), first, "seed {seed}, {runs} runs");
                        first.into_iter().for_each(|age| set.remove(age));
                    }
                    let from = rng.below(ages) as usize;
                    let next = naive.range(from..).next().copied();
                    assert_eq!(set.first_from(from), next, "seed {seed}, {runs} runs");
                    if step % 100 == 0 {
                        assert_eq!(set.below(from), naive.range(..from).count() as u64);
                        assert_eq!(set.count(), naive.len() as u64);
                    }
                }
            }
        }
    }
}
