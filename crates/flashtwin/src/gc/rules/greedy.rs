//! Greedy victim selection: the sealed block with the fewest live pages.
//!
//! The tallies of a pool stand together as 16-bit numbers, so looking at all of them is a few
//! vector instructions per 64 blocks, once per collected block: cheaper than keeping them sorted
//! on every invalidation. The page map keeps the lowest along; here its block is found.

use super::{Candidate, Pool, Rule, Tie};
use crate::component::{Component, Settings};
use crate::ftl::PageMap;

/// Tallies looked at in one step of the search for the position.
const STRIP: usize = 32;

/// The fewest valid pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Greedy;

impl Rule for Greedy {
    const COMPONENT: Component = Component {
        name: "greedy",
        line: "the fewest valid pages",
        parameters: &[],
    };

    fn new(_settings: &Settings) -> Greedy {
        Greedy
    }

    #[inline(always)]
    fn choose(&self, pool: &Pool) -> Option<Candidate> {
        let least = pool.ftl.least_tally(pool.pool);
        if least >= PageMap::CANDIDATE_END {
            return None;
        }
        let (strips, tallies) = (
            pool.ftl.least_of_strips(pool.pool),
            pool.ftl.tallies(pool.pool),
        );
        let n = tallies.len() / strips.len();
        let first = position(strips, least, pool.tie)? * n;
        let at = first + position(&tallies[first..first + n], least, pool.tie)?;
        pool.candidate(at as u32)
    }
}

/// Position of `least` among the tallies of a pool.
fn position(tallies: &[i16], least: i16, tie: Tie) -> Option<usize> {
    let has = |strip: &[i16]| strip.iter().fold(false, |found, &t| found | (t == least));
    match tie {
        Tie::Lowest => {
            let strip = tallies.chunks(STRIP).position(has)?;
            let at = tallies[strip * STRIP..].iter().position(|&t| t == least)?;
            Some(strip * STRIP + at)
        }
        Tie::Highest => {
            let strip = tallies.chunks(STRIP).rposition(has)?;
            let end = tallies.len().min((strip + 1) * STRIP);
            let of_strip = &tallies[strip * STRIP..end];
            let at = of_strip.iter().rposition(|&t| t == least)?;
            Some(strip * STRIP + at)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{position, Tie};
    use crate::ftl::PageMap;

    const CLOSED: i16 = PageMap::CANDIDATE_END;

    #[test]
    fn takes_the_fewest_and_breaks_ties_as_asked() {
        let tallies = [CLOSED, 40, 12, CLOSED | 3, 12, 63];
        assert_eq!(position(&tallies, 12, Tie::Lowest), Some(2));
        assert_eq!(position(&tallies, 12, Tie::Highest), Some(4));
        assert_eq!(position(&tallies, 13, Tie::Lowest), None);
        assert_eq!(position(&[], 13, Tie::Highest), None);
    }

    #[test]
    fn vector_gc_1() {
        // Pool of 20 blocks; sealed blocks {7: 40, 9: 12, 13: 12}: victim 9.
        let mut tallies = [CLOSED; 20];
        (tallies[7], tallies[9], tallies[13]) = (40, 12, 12);
        let least = *tallies.iter().min().expect("there are some");
        assert_eq!(
            (position(&tallies, least, Tie::Lowest), least),
            (Some(9), 12)
        );
    }

    #[test]
    fn agrees_with_a_plain_scan_at_every_length() {
        let mut rng = crate::rng::Rng::new(5);
        for len in 1..200 {
            let tallies: Vec<i16> = (0..len).map(|_| rng.below(9) as i16).collect();
            for least in 0..9 {
                let first = tallies.iter().position(|&t| t == least);
                let last = tallies.iter().rposition(|&t| t == least);
                assert_eq!(position(&tallies, least, Tie::Lowest), first);
                assert_eq!(position(&tallies, least, Tie::Highest), last);
            }
        }
    }
}
