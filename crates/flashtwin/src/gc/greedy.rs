//! Greedy victim selection: the sealed block with the fewest live pages.
//!
//! The tallies of a pool stand together as 16-bit numbers, so looking at all of them is a few
//! vector instructions per 64 blocks, once per collected block: cheaper than keeping them sorted
//! on every invalidation.

use crate::ftl::PageMap;

/// Which of several equal candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    /// The lowest block number (policies.md C1).
    Lowest,
    /// The highest: the reference's last scanned.
    Highest,
}

/// Tallies looked at in one step of the search for the position.
const STRIP: usize = 32;

/// Position and live pages of the candidate with the fewest, among the tallies of a pool.
pub(crate) fn fewest_valid(tallies: &[i16], tie: Tie) -> Option<(u32, u32)> {
    let least = tallies.iter().fold(i16::MAX, |least, &t| least.min(t));
    if least >= PageMap::CANDIDATE_END {
        return None;
    }
    let has = |strip: &[i16]| strip.iter().fold(false, |found, &t| found | (t == least));
    let (strip, at) = match tie {
        Tie::Lowest => {
            let strip = tallies.chunks(STRIP).position(has)?;
            let at = tallies[strip * STRIP..].iter().position(|&t| t == least)?;
            (strip, at)
        }
        Tie::Highest => {
            let strip = tallies.chunks(STRIP).rposition(has)?;
            let end = tallies.len().min((strip + 1) * STRIP);
            let at = tallies[strip * STRIP..end]
                .iter()
                .rposition(|&t| t == least)?;
            (strip, at)
        }
    };
    Some(((strip * STRIP + at) as u32, least as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSED: i16 = PageMap::CANDIDATE_END;

    #[test]
    fn takes_the_fewest_and_breaks_ties_as_asked() {
        let tallies = [CLOSED, 40, 12, CLOSED | 3, 12, 63];
        assert_eq!(fewest_valid(&tallies, Tie::Lowest), Some((2, 12)));
        assert_eq!(fewest_valid(&tallies, Tie::Highest), Some((4, 12)));
    }

    #[test]
    fn vector_gc_1() {
        // Pool of 20 blocks; sealed blocks {7: 40, 9: 12, 13: 12}: victim 9.
        let mut tallies = [CLOSED; 20];
        (tallies[7], tallies[9], tallies[13]) = (40, 12, 12);
        assert_eq!(fewest_valid(&tallies, Tie::Lowest), Some((9, 12)));
    }

    #[test]
    fn agrees_with_a_plain_scan_at_every_length() {
        let mut rng = crate::rng::Rng::new(5);
        for len in 1..200 {
            let tallies: Vec<i16> = (0..len)
                .map(|_| rng.below(9) as i16 | if rng.below(2) == 0 { CLOSED } else { 0 })
                .collect();
            let least = tallies.iter().filter(|&&t| t < CLOSED).min();
            let first = least.map(|l| {
                (
                    tallies.iter().position(|t| t == l).unwrap() as u32,
                    *l as u32,
                )
            });
            let last = least.map(|l| {
                (
                    tallies.iter().rposition(|t| t == l).unwrap() as u32,
                    *l as u32,
                )
            });
            assert_eq!(fewest_valid(&tallies, Tie::Lowest), first);
            assert_eq!(fewest_valid(&tallies, Tie::Highest), last);
        }
    }

    #[test]
    fn no_candidate_is_said_so() {
        assert_eq!(fewest_valid(&[CLOSED, CLOSED | 1], Tie::Lowest), None);
        assert_eq!(fewest_valid(&[], Tie::Lowest), None);
    }
}
