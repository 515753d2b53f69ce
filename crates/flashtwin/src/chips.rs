//! Sets of chips. A set stores one bit for each chip, and the number of chips in the set. This file also has two
//! records of changes: the chips whose remaining work has changed, and the pages that have moved to other chips.

use crate::units::{ChipId, Lpn};

/// A set of chips, by number.
#[derive(Clone, Debug)]
pub struct ChipSet {
    /// One bit per chip, followed by two spare bits that are never set.
    words: Vec<u64>,
    of: u32,
    len: u32,
}

impl ChipSet {
    /// Returns the empty set, for `of` chips.
    pub fn none(of: u32) -> ChipSet {
        ChipSet {
            words: vec![0; (of as usize + 2).div_ceil(64)],
            of,
            len: 0,
        }
    }

    /// Returns the number of chips in the set.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no chip is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of all chips, not only of those in the set.
    #[inline]
    pub fn of(&self) -> u32 {
        self.of
    }

    /// Whether a chip is in the set.
    #[inline(always)]
    pub fn contains(&self, chip: ChipId) -> bool {
        self.words[chip.0 as usize / 64] >> (chip.0 % 64) & 1 == 1
    }

    /// Returns the `i`-th word of the set. It has the bits of chips 64 * `i` to 64 * `i` + 63.
    #[inline]
    pub(crate) fn word(&self, i: usize) -> u64 {
        self.words[i]
    }

    /// Adds a chip to the set if `present`, otherwise removes it.
    #[inline]
    pub fn set(&mut self, chip: ChipId, present: bool) {
        let word = &mut self.words[chip.0 as usize / 64];
        let was = *word >> (chip.0 % 64) & 1;
        *word = *word & !(1 << (chip.0 % 64)) | u64::from(present) << (chip.0 % 64);
        self.len = self.len + u32::from(present) - was as u32;
    }
}

/// Calls `find` for the chips of a set, from the chip `start` on in circular order, until a result is not `None`. Returns
/// this result. Chips with the number `of` or above are ignored. `word` returns a word of the set, as [`ChipSet::word`]
/// does.
#[inline]
pub(crate) fn find_from<T>(
    start: u16,
    of: u16,
    word: impl Fn(usize) -> u64,
    mut find: impl FnMut(ChipId) -> Option<T>,
) -> Option<T> {
    let words = usize::from(of).div_ceil(64);
    let (mut i, before) = (usize::from(start) / 64, (1 << (start % 64)) - 1);
    let begin = word(i);
    for round in 0..=words {
        let mut open = match round {
            0 => begin & !before,
            _ if round == words => begin & before,
            _ => word(i),
        };
        while open != 0 {
            let chip = (i * 64) as u16 + open.trailing_zeros() as u16;
            open &= open - 1;
            if chip >= of {
                break;
            }
            if let Some(found) = find(ChipId(chip)) {
                return Some(found);
            }
        }
        i = if i + 1 < words { i + 1 } else { 0 };
    }
    None
}

/// Record of the chips whose remaining work (queued or running operations) has changed. A ring holds the latest
/// changes. A reader keeps a value for each chip, and the number of changes that it has read. At its next look it
/// recomputes only the values of chips that have changed since.
#[derive(Clone, Debug)]
pub struct ChipChanges {
    ring: Vec<u16>,
    /// Number of changes since the record was created.
    count: u64,
}

impl ChipChanges {
    /// Returns an empty record for `of` chips.
    pub(crate) fn new(of: u32) -> ChipChanges {
        ChipChanges {
            ring: vec![0; (of as usize).next_power_of_two()],
            count: 0,
        }
    }

    /// Records that the remaining work of a chip has changed.
    #[inline(always)]
    pub(crate) fn note(&mut self, chip: usize) {
        let at = self.count as usize & (self.ring.len() - 1);
        self.ring[at] = chip as u16;
        self.count += 1;
    }

    /// Records that the remaining work of every chip may have changed. For readers that have not read this change yet,
    /// [`ChipChanges::since`] then returns `None`.
    pub(crate) fn note_all(&mut self) {
        self.count += self.ring.len() as u64 + 1;
    }

    /// Returns the number of changes since the record was created.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the chips of all changes except the first `seen` ones. A chip that changed several times is returned
    /// several times. `None` if the ring no longer has all of these changes.
    #[inline]
    pub fn since(&self, seen: u64) -> Option<impl Iterator<Item = ChipId> + '_> {
        let chips = self.ring.len();
        let is_kept = self.count - seen <= chips as u64;
        let chip = move |change| ChipId(self.ring[change as usize & (chips - 1)]);
        is_kept.then(|| (seen..self.count).map(chip))
    }
}

/// Record of the pages that a back end has moved to other chips on its own, not for a write of the host.
#[derive(Clone, Debug, Default)]
pub struct MovedPages {
    /// The moved pages; a page may be listed several times. Not used if `any` is true.
    pub(crate) pages: Vec<Lpn>,
    /// Whether any page may have moved.
    pub(crate) any: bool,
}

impl MovedPages {
    /// Largest number of pages in the record. If more pages move, the record only states that any page may have moved.
    const MAX: usize = 4096;

    /// Returns the record of a back end in which any page may have moved.
    pub(crate) fn any() -> MovedPages {
        MovedPages {
            pages: Vec::new(),
            any: true,
        }
    }

    /// Records that a page has moved.
    #[inline]
    pub(crate) fn note(&mut self, lpn: Lpn) {
        if self.pages.len() == MovedPages::MAX {
            *self = MovedPages::any();
        }
        if !self.any {
            self.pages.push(lpn);
        }
    }

    /// Whether no page has moved.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        !self.any && self.pages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_record_of_moved_pages_contains_any_page() {
        let mut moved = MovedPages::default();
        assert!(moved.is_empty());
        (0..MovedPages::MAX as u32).for_each(|page| moved.note(Lpn(page)));
        assert!(!moved.any && moved.pages.len() == MovedPages::MAX);
        moved.note(Lpn(0));
        assert!(moved.any && moved.pages.is_empty() && !moved.is_empty());
    }

    #[test]
    fn a_search_begins_at_any_chip() {
        for seed in crate::seeds(4) {
            let mut rng = crate::rng::Rng::new(seed);
            for _ in 0..2_000 {
                let of = 1 + rng.below(200) as u16;
                let start = rng.below(of.into()) as u16;
                // The words also have random bits beyond the last chip. The search must ignore them.
                let full: Vec<u64> = (0..of / 64 + 1).map(|_| rng.next_u64()).collect();
                let words: Vec<u64> = full.iter().map(|word| word & rng.next_u64()).collect();
                let wanted = 1 + rng.below(20) as u16;
                let suits = |chip: u16| (chip % 20 < wanted).then_some(chip);
                let mut asked = Vec::new();
                let found = find_from(
                    start,
                    of,
                    |i| words[i],
                    |chip| {
                        asked.push(chip.0);
                        suits(chip.0)
                    },
                );
                let in_set = |&chip: &u16| words[chip as usize / 64] >> (chip % 64) & 1 == 1;
                let in_turn = (start..of).chain(0..start).filter(in_set);
                let last = in_turn.clone().position(|chip| suits(chip).is_some());
                let naive: Vec<u16> = in_turn.take(last.map_or(200, |last| last + 1)).collect();
                assert_eq!(asked, naive, "seed {seed}, {start} of {of}");
                assert_eq!(found, last.map(|last| naive[last]));
            }
        }
    }

    #[test]
    fn a_record_returns_the_changes_since_the_last_look() {
        let mut changes = ChipChanges::new(3);
        let since = |changes: &ChipChanges, seen| {
            let chips = changes.since(seen)?;
            Some(chips.map(|chip| chip.0).collect::<Vec<_>>())
        };
        assert_eq!(since(&changes, 0), Some(vec![]));
        for chip in [2, 0, 1, 1] {
            changes.note(chip);
        }
        assert_eq!(since(&changes, 0), Some(vec![2, 0, 1, 1]));
        assert_eq!(since(&changes, 3), Some(vec![1]));
        changes.note(2);
        assert_eq!(since(&changes, 0), None, "the ring has four changes");
        assert_eq!(since(&changes, 1), Some(vec![0, 1, 1, 2]));
        let seen = changes.count();
        changes.note_all();
        assert_eq!(since(&changes, seen), None);
        let seen = changes.count();
        changes.note(0);
        assert_eq!(since(&changes, seen), Some(vec![0]));
    }
}
