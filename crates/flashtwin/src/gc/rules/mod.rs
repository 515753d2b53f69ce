//! Victim rules: the choice of the sealed block to collect. A rule is a file in this directory and a line of the
//! table below.
//!
//! Every sealed block is a candidate, even one without invalid pages: a rule that chooses such a block moves all of
//! its pages, as published. All candidates are compared, once per collected block; `tie` decides between equal ones.
//! Random numbers are seeded with the pool's position, so that a rule has no state of its own, and a loaded device
//! continues like the saved one. The age of a block is the number of blocks of its chip that were opened after it
//! (D-61).

mod cost_age_time;
mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod random;
mod windowed;

use crate::component::{Chosen, Component, Settings};
use crate::ftl::{Foresight, PageMap};
use crate::rng::Rng;

/// The table: file and type of every rule, in the order of the documentation. Add a rule by adding a line.
macro_rules! rules {
    ($then:ident! $rest:tt) => {
        $then! { $rest
            greedy::Greedy
            fifo::Fifo
            random::Random
            d_choices::DChoices
            windowed::Windowed
            cost_benefit::CostBenefit
            cost_age_time::CostAgeTime
        }
    };
}

macro_rules! declare {
    (() $($file:ident::$Type:ident)+) => {
        /// A rule with its parameters.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Victims {
            $($Type($file::$Type),)+
        }

        /// Descriptions of all rules.
        pub(crate) const RULES: &[Component] = &[$($file::$Type::COMPONENT),+];

        impl Victims {
            /// Returns the rule chosen for the device.
            pub fn of(chosen: &Chosen) -> Victims {
                $(if chosen.name == $file::$Type::COMPONENT.name {
                    return Victims::$Type($file::$Type::new(&chosen.settings));
                })+
                unreachable!("{}: rules are chosen from the table", chosen.name)
            }

            #[inline]
            fn choose<'a>(&self, pool: &Pool<'a>) -> Option<Candidate<'a>> {
                match self { $(Victims::$Type(rule) => rule.choose(pool),)+ }
            }
        }
    };
}

rules!(declare!());

/// A victim rule: chooses the block of a pool to collect.
trait Rule: Sized {
    /// Description of the rule, for device files and documentation.
    const COMPONENT: Component;

    /// Makes the rule with the values of its parameters.
    fn new(settings: &Settings) -> Self;

    /// Returns the block to collect next; `None` if no block may be collected.
    fn choose<'a>(&self, pool: &Pool<'a>) -> Option<Candidate<'a>>;
}

/// Name of the greedy rule. GCaR, Harmonia and ECR use it, and some parts of the model require it.
pub(crate) const GREEDY: &str = greedy::Greedy::COMPONENT.name;

/// Choice among several equal candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    /// The lowest block number.
    Lowest,
    /// The highest block number, as in the reference, which keeps the last one it scans.
    Highest,
}

/// Returns the block to collect next: its position in its pool, and its live pages. `None` if no block may be
/// collected. A block chosen by static wear levelling takes precedence over the rule.
#[inline]
pub(crate) fn victim(ftl: &PageMap, pool: u32, of: Victims, tie: Tie) -> Option<(u32, u32)> {
    if let Some(bit) = ftl.left_behind(pool) {
        let block = pool * ftl.shape.blocks_per_pool + bit;
        return Some((bit, ftl.valid_of(block)));
    }
    let pool = Pool { ftl, pool, tie };
    of.choose(&pool).map(|chosen| (chosen.bit, chosen.live))
}

/// Enables the prefetching of data of the next collection, `pages` pages at a time; with `maps`, of map entries, too.
/// Only for the greedy rule, whose victim is found in a few steps.
pub(crate) fn foresee(ftl: &mut PageMap, of: Victims, tie: Tie, pages: u32, maps: bool) {
    if let Victims::Greedy(_) = of {
        let last = tie == Tie::Highest;
        ftl.foresee(Foresight { last, pages, maps });
    }
}

/// A block that may be collected. Values that only some rules use are read when needed, because they are seldom in
/// the processor's caches.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    ftl: &'a PageMap,
    block: u32,
    /// Position of the block in its pool.
    bit: u32,
    live: u32,
}

impl Candidate<'_> {
    #[inline]
    fn age(&self) -> u32 {
        self.ftl.age_of(self.block)
    }

    #[inline]
    fn erases(&self) -> u32 {
        self.ftl.erases_of(self.block)
    }
}

/// A pool of blocks, as the rules see it.
struct Pool<'a> {
    ftl: &'a PageMap,
    pool: u32,
    tie: Tie,
}

impl<'a> Pool<'a> {
    /// Returns the number of all blocks of the pool.
    fn blocks(&self) -> u32 {
        self.ftl.shape.blocks_per_pool
    }

    /// Returns the number of data pages of a block.
    fn data_pages(&self) -> u32 {
        self.ftl.shape.data_pages
    }

    #[inline]
    fn candidate(&self, bit: u32) -> Option<Candidate<'a>> {
        let live = self.ftl.tallies(self.pool)[bit as usize];
        (live < PageMap::CANDIDATE_END).then(|| Candidate {
            ftl: self.ftl,
            block: self.pool * self.blocks() + bit,
            bit,
            live: live as u32,
        })
    }

    fn candidates(&self) -> impl Iterator<Item = Candidate<'a>> + '_ {
        (0..self.blocks()).filter_map(|bit| self.candidate(bit))
    }

    /// Returns the candidate that is better than all others, by the comparison `better`.
    fn best(&self, better: impl Fn(&Candidate, &Candidate) -> bool) -> Option<Candidate<'a>> {
        self.candidates().reduce(|best, next| {
            let replaces = match self.tie {
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

    /// Returns the candidate with the fewest live pages among `choices` random ones. If no draw finds a candidate,
    /// returns the greedy choice.
    fn drawn(&self, choices: u32) -> Option<Candidate<'a>> {
        const DRAWS_MAX: usize = 64;
        let mut rng = Rng::new(self.ftl.position_hash(self.pool));
        let mut found: Option<Candidate> = None;
        for _ in 0..choices {
            let draw = || self.candidate(rng.below(self.blocks().into()) as u32);
            let Some(next) = std::iter::repeat_with(draw)
                .take(DRAWS_MAX)
                .flatten()
                .next()
            else {
                continue;
            };
            if found.is_none_or(|found| next.live < found.live) {
                found = Some(next);
            }
        }
        found.or_else(|| self.best(|a, b| a.live < b.live))
    }
}
