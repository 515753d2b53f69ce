//! Victim selection but greedy: first come first out, random, d choices, windows, cost and age.
//!
//! Candidates are the sealed blocks, those without a dead page among them: a rule that takes such a
//! block moves it whole, as published. All are looked at, once per collected block; of equals the one
//! that `tie` says. Randomness comes from where the pool stands, so that it needs no state of its own
//! and a device that was saved goes on as it would have.

use super::greedy::{self, Tie};
use crate::ftl::PageMap;
use crate::rng::Rng;
use crate::spec::Victim;

/// A block that may be collected.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// Position in its pool.
    bit: u32,
    live: u32,
    /// Blocks of its chip opened after it.
    age: u32,
    erases: u32,
}

/// Position in its pool, and live pages, of the block to collect next; `None` if none may be. Static
/// wear levelling comes first.
#[inline]
pub(crate) fn victim(ftl: &PageMap, pool: u32, of: Victim, tie: Tie) -> Option<(u32, u32)> {
    if let Some(bit) = ftl.left_behind(pool) {
        let block = pool * ftl.shape.blocks_per_pool + bit;
        return Some((bit, ftl.valid_of(block)));
    }
    match of {
        Victim::Greedy => greedy::victim(ftl, pool, tie),
        _ => chosen(ftl, pool, of, tie).map(|c| (c.bit, c.live)),
    }
}

#[cold]
fn chosen(ftl: &PageMap, pool: u32, of: Victim, tie: Tie) -> Option<Candidate> {
    let data_pages = ftl.shape.data_pages;
    match of {
        Victim::Greedy => None,
        Victim::Fifo => best(ftl, pool, tie, |a, b| a.age > b.age),
        Victim::Random => drawn(ftl, pool, 1, tie),
        Victim::DChoices(choices) => drawn(ftl, pool, choices, tie),
        Victim::Windowed(percent) => {
            let blocks = f64::from(ftl.shape.blocks_per_pool) * percent / 100.0;
            let mut ages: Vec<u32> = candidates(ftl, pool).map(|c| c.age).collect();
            let last = (blocks as usize).clamp(1, ages.len().max(1)) - 1;
            let least_age = match ages.get(last) {
                Some(_) => *ages.select_nth_unstable_by(last, |a, b| b.cmp(a)).1,
                None => 0,
            };
            best(ftl, pool, tie, |a, b| {
                let within = |c: &Candidate| c.age >= least_age;
                within(a) && (!within(b) || a.live < b.live)
            })
        }
        Victim::CostBenefit => best(ftl, pool, tie, |a, b| {
            let benefit = |c: &Candidate| u128::from(c.age) * u128::from(data_pages - c.live);
            benefit(a) * u128::from(b.live) > benefit(b) * u128::from(a.live)
        }),
        Victim::CostAgeTime => best(ftl, pool, tie, |a, b| {
            // A block that was never erased has been paid for as well.
            let cost = |c: &Candidate| u128::from(c.live) * (u128::from(c.erases) + 1);
            let gain = |c: &Candidate| u128::from(data_pages - c.live) * (u128::from(c.age) + 1);
            cost(a) * gain(b) < cost(b) * gain(a)
        }),
    }
}

fn candidate(ftl: &PageMap, pool: u32, bit: u32) -> Option<Candidate> {
    let live = ftl.tallies(pool)[bit as usize];
    let block = pool * ftl.shape.blocks_per_pool + bit;
    (live < PageMap::CANDIDATE_END).then(|| Candidate {
        bit,
        live: live as u32,
        age: ftl.age_of(block),
        erases: ftl.erase_counts()[block as usize],
    })
}

fn candidates(ftl: &PageMap, pool: u32) -> impl Iterator<Item = Candidate> + '_ {
    (0..ftl.shape.blocks_per_pool).filter_map(move |bit| candidate(ftl, pool, bit))
}

/// The candidate that is better than all others.
fn best(
    ftl: &PageMap,
    pool: u32,
    tie: Tie,
    better: impl Fn(&Candidate, &Candidate) -> bool,
) -> Option<Candidate> {
    candidates(ftl, pool).reduce(|best, next| {
        let replaces = match tie {
            Tie::Lowest => better(&next, &best),
            Tie::Highest => !better(&best, &next),
        };
        if replaces {
            next
        } else {
            best
        }
    })
}

/// The candidate with the fewest live pages among `choices` drawn at random; the greedy one where
/// draws meet no candidate.
fn drawn(ftl: &PageMap, pool: u32, choices: u32, tie: Tie) -> Option<Candidate> {
    const DRAWS_MAX: u32 = 64;
    let mut rng = Rng::new(ftl.where_it_stands(pool));
    let mut found: Option<Candidate> = None;
    for _ in 0..choices {
        let draw = || {
            candidate(
                ftl,
                pool,
                rng.below(ftl.shape.blocks_per_pool.into()) as u32,
            )
        };
        let Some(next) = std::iter::repeat_with(draw)
            .take(DRAWS_MAX as usize)
            .flatten()
            .next()
        else {
            continue;
        };
        if found.is_none_or(|found| next.live < found.live) {
            found = Some(next);
        }
    }
    found.or_else(|| best(ftl, pool, tie, |a, b| a.live < b.live))
}
