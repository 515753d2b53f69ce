//! Victim rules. A victim rule chooses the next block to collect among the sealed blocks, which are completely written.
//! Each rule is a file in this directory and a line of the table below.
//!
//! Every sealed block is a candidate, even one without invalid pages. If a rule chooses such a block, all its pages are
//! moved, as published. A rule compares all candidates each time a block is collected. If it ranks several candidates
//! equally, `tie` determines which of them is chosen.
//!
//! A rule has no state of its own. The seed of its random numbers depends on what the pool has written. If a device is
//! saved and loaded, it therefore makes the same choices as a device that was not.
//!
//! The age of a block is the number of blocks of its chip that were opened after it (D-61).

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

/// The table of rules: file and type of each, in the order of the documentation. To add a rule, add a line.
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
        /// A victim rule with the values of its parameters.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Victims {
            $($Type($file::$Type),)+
        }

        /// Descriptions of all rules.
        pub(crate) const RULES: &[Component] = &[$($file::$Type::COMPONENT),+];

        impl Victims {
            /// Creates the rule that the device file names.
            pub fn of(chosen: &Chosen) -> Victims {
                $(if chosen.name == $file::$Type::COMPONENT.name {
                    return Victims::$Type($file::$Type::new(&chosen.settings));
                })+
                unreachable!("{}: rules are chosen from the table", chosen.name)
            }

            /// Returns the candidate to collect next; `None` if the pool has no candidate.
            #[inline]
            pub fn choose<P: Pool>(&self, pool: &P) -> Option<P::Candidate> {
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

    /// Creates the rule with the values of its parameters.
    fn new(settings: &Settings) -> Self;

    /// Returns the candidate to collect next; `None` if the pool has no candidate.
    fn choose<P: Pool>(&self, pool: &P) -> Option<P::Candidate>;
}

/// Name of the greedy rule. GCaR, Harmonia and ECR use it, and some parts of the model require it.
pub(crate) const GREEDY: &str = greedy::Greedy::COMPONENT.name;

/// Choice among several equal candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    /// The lowest block number.
    Lowest,
    /// The highest block number. This is the choice of the reference (DiskSim with Microsoft's SSD extension), which
    /// scans all blocks and keeps the last of several equal ones.
    Highest,
}

/// Returns the block to collect next: its position in its pool, and the number of its live pages. Returns `None` if the
/// pool has no candidate. If static wear levelling has chosen a block of the pool, returns this block and does not
/// apply the rule.
#[inline]
pub(crate) fn victim(ftl: &PageMap, pool: u32, of: Victims, tie: Tie) -> Option<(u32, u32)> {
    if let Some(bit) = ftl.left_behind(pool) {
        let block = pool * ftl.shape.blocks_per_pool + bit;
        return Some((bit, ftl.valid_of(block)));
    }
    let pool = Blocks { ftl, pool, tie };
    of.choose(&pool).map(|chosen| (chosen.bit, chosen.live))
}

/// Enables prefetching for the next collection. It covers `pages` pages of the likely next victim and, with `maps`, the
/// map entries of these pages. Has an effect only if the rule is greedy: the next victim of other rules cannot be
/// predicted cheaply.
pub(crate) fn foresee(ftl: &mut PageMap, of: Victims, tie: Tie, pages: u32, maps: bool) {
    if let Victims::Greedy(_) = of {
        let last = tie == Tie::Highest;
        ftl.foresee(Foresight { last, pages, maps });
    }
}

/// A block that may be collected or, with data placement, a unit (blocks that are collected together). Has the values
/// that rules use.
pub(crate) trait Candidate: Copy {
    /// Returns the number of live pages.
    fn live(&self) -> u32;

    /// Returns the age: the number of blocks that were opened later on the same chip, or of units that were opened
    /// later in the same group.
    fn age(&self) -> u32;

    /// Returns how often the block or unit was erased.
    fn erases(&self) -> u32;
}

/// The candidates of a rule: the blocks of a pool or, with data placement, the units of a group of units. A unit
/// consists of blocks that are collected together.
pub(crate) trait Pool {
    type Candidate: Candidate;

    /// Returns the number of positions in the pool. A position may have no candidate.
    fn places(&self) -> u32;

    /// Returns the candidate at a position; `None` if the position has no candidate.
    fn candidate(&self, place: u32) -> Option<Self::Candidate>;

    /// Returns the number of pages of a block or unit that can contain data.
    fn data_pages(&self) -> u32;

    fn tie(&self) -> Tie;

    /// Returns the seed for random choices. The seed depends on what the pool has written so far.
    fn seed(&self) -> u64;

    /// Returns the candidate with the fewest live pages.
    fn fewest_live(&self) -> Option<Self::Candidate> {
        self.best(|a, b| a.live() < b.live())
    }

    fn candidates(&self) -> impl Iterator<Item = Self::Candidate> {
        (0..self.places()).filter_map(|place| self.candidate(place))
    }

    /// Returns the best candidate. `better` returns whether its first argument is better than its second. If several
    /// candidates are equally good, `tie` determines which of them is returned.
    fn best(
        &self,
        better: impl Fn(&Self::Candidate, &Self::Candidate) -> bool,
    ) -> Option<Self::Candidate> {
        self.candidates().reduce(|best, next| {
            let replaces = match self.tie() {
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

    /// Draws `choices` candidates at random and returns the one with the fewest live pages. If no draw finds a
    /// candidate, returns the candidate of the pool with the fewest live pages.
    fn drawn(&self, choices: u32) -> Option<Self::Candidate> {
        const DRAWS_MAX: usize = 64;
        let mut rng = Rng::new(self.seed());
        let mut found: Option<Self::Candidate> = None;
        for _ in 0..choices {
            let draw = || self.candidate(rng.below(self.places().into()) as u32);
            let Some(next) = std::iter::repeat_with(draw)
                .take(DRAWS_MAX)
                .flatten()
                .next()
            else {
                continue;
            };
            if found.is_none_or(|found| next.live() < found.live()) {
                found = Some(next);
            }
        }
        found.or_else(|| self.best(|a, b| a.live() < b.live()))
    }
}

/// A block that may be collected. Its age and its number of erases are read only when a rule uses them, because they
/// are seldom in the processor's caches.
#[derive(Clone, Copy)]
struct Block<'a> {
    ftl: &'a PageMap,
    block: u32,
    /// Position of the block in its pool.
    bit: u32,
    live: u32,
}

impl Candidate for Block<'_> {
    #[inline]
    fn live(&self) -> u32 {
        self.live
    }

    #[inline]
    fn age(&self) -> u32 {
        self.ftl.age_of(self.block)
    }

    #[inline]
    fn erases(&self) -> u32 {
        self.ftl.erases_of(self.block)
    }
}

/// The blocks of one pool of the page map. Its sealed blocks are the candidates.
struct Blocks<'a> {
    ftl: &'a PageMap,
    pool: u32,
    tie: Tie,
}

impl<'a> Pool for Blocks<'a> {
    type Candidate = Block<'a>;

    fn places(&self) -> u32 {
        self.ftl.shape.blocks_per_pool
    }

    #[inline]
    fn candidate(&self, bit: u32) -> Option<Block<'a>> {
        let live = self.ftl.tallies(self.pool)[bit as usize];
        (live < PageMap::CANDIDATE_END).then(|| Block {
            ftl: self.ftl,
            block: self.pool * self.places() + bit,
            bit,
            live: live as u32,
        })
    }

    fn data_pages(&self) -> u32 {
        self.ftl.shape.data_pages
    }

    fn tie(&self) -> Tie {
        self.tie
    }

    fn seed(&self) -> u64 {
        self.ftl.position_hash(self.pool)
    }

    /// Uses the least numbers of live pages, which the page map keeps up to date. A comparison of all blocks is not
    /// needed.
    #[inline]
    fn fewest_live(&self) -> Option<Block<'a>> {
        let last = self.tie == Tie::Highest;
        self.candidate(self.ftl.position_of_least(self.pool, last)?)
    }
}
