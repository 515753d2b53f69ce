//! Selection of the next unit to collect. A victim rule chooses among the closed units of the scope.

use super::scheme::{Class, Survivors};
use super::scopes::{AnyScope, Asked};
use super::state::Classes;
use crate::component::Chosen;
use crate::ftl::{Owner, Unit};
use crate::gc::{Candidate, Pool, Tie, Victims};

/// The units among which a rule chooses, and the settings that limit the choice.
pub(super) struct Choice<'a> {
    pub asked: &'a Asked<'a>,
    pub scope: &'a AnyScope,
    pub survivors: Survivors,
    /// A victim within the scope may have at most this number of live pages more than the closed unit with the fewest
    /// live pages. `None` means no limit.
    pub tolerance: Option<u32>,
    pub low: u32,
}

/// Result of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub unit: Option<u32>,
    /// Whether the victim was chosen outside the scope, because no unit of the scope gains space.
    pub fell_back: bool,
}

/// The victim rule of the device.
#[derive(Clone, Debug)]
pub(super) enum AnyVictim {
    Rule(Victims),
    User(User),
}

/// A user's rule, behind a pointer.
pub(super) struct User(Box<dyn UserVictim>);

impl Clone for User {
    fn clone(&self) -> User {
        User(self.0.boxed_clone())
    }
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("User")
    }
}

/// A victim rule of a user.
pub trait UserVictim: Send + Sync {
    /// Returns the unit to collect, as an index into [`VictimPool::units`]. Returns `None` if no unit is to be
    /// collected now.
    fn choose(&mut self, pool: &VictimPool) -> Option<u32>;

    /// Returns the name in results.
    fn name(&self) -> &str {
        "own"
    }

    /// Returns a copy with its state.
    fn boxed_clone(&self) -> Box<dyn UserVictim>;
}

/// A closed unit as a user's rule sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VictimUnit {
    /// Number of the unit in its group.
    pub number: u32,
    /// Number of live pages.
    pub valid: u32,
    /// Number of pages that were written since the last erase. The other pages of the unit are unwritten.
    pub written: u32,
    /// Number of units of the group that were opened after this one.
    pub age: u32,
    /// Class of the unit; `None` if moved pages of several classes share it.
    pub class: Option<Class>,
    /// Whether the unit holds only moved pages.
    pub survivors: bool,
    /// Number of erases so far.
    pub erases: u32,
    /// Host clock when the unit was opened.
    pub opened_at: u64,
    /// Host clock when a page of the unit last became invalid.
    pub last_death: u64,
}

/// The units that a user's rule may choose, and the class of the page that needs room. The units are closed units of
/// one group, in the order in which they were opened. Units whose live pages fit into no other units are left out.
#[derive(Clone, Debug)]
pub struct VictimPool {
    /// The units.
    pub units: Vec<VictimUnit>,
    /// Pages of a unit.
    pub pages: u32,
    /// Class of the page that needs room; `None` if no page waits for room.
    pub class: Option<Class>,
    /// The group.
    pub group: u32,
    /// Free units of the group.
    pub free: u32,
    /// Watermark: the group collects if at most this number of its units is free.
    pub low: u32,
    /// Pages that the host has written.
    pub clock: u64,
    /// For each class, the number of units of the group that the class holds.
    pub in_use: Vec<u32>,
}

impl AnyVictim {
    pub fn new(chosen: &Chosen) -> AnyVictim {
        AnyVictim::Rule(Victims::of(chosen))
    }

    pub fn user(victim: Box<dyn UserVictim>) -> AnyVictim {
        AnyVictim::User(User(victim))
    }

    /// Returns the name of a user's rule; `None` for a shipped rule, which the setup chooses.
    pub fn name_of_own(&self) -> Option<&str> {
        match self {
            AnyVictim::Rule(_) => None,
            AnyVictim::User(user) => Some(user.0.name()),
        }
    }

    /// Chooses a unit. Finds none in three cases: no closed unit gains space, there is no room for the live pages of
    /// any such unit, or a user's rule chooses none.
    pub fn choose(&mut self, choice: &Choice) -> Found {
        let all = Closed::new(choice, false);
        let Some(least) = all.least_live() else {
            return Found::default();
        };
        let rule = match self {
            AnyVictim::Rule(rule) => rule,
            AnyVictim::User(user) => {
                let pool = all.for_user();
                let places = all.places_of_candidates();
                let place = user.0.choose(&pool).and_then(|at| places.get(at as usize));
                let unit = place.map(|&place| all.unit(place));
                return Found {
                    unit,
                    fell_back: false,
                };
            }
        };
        let of = |pool: &Closed| rule.choose(pool).map(|found| found.unit);
        if let AnyScope::Global(_) = choice.scope {
            return Found {
                unit: of(&all),
                fell_back: false,
            };
        }
        let scoped = Closed::new(choice, true);
        let gains = scoped.least_live().is_some();
        let live = |unit: &u32| choice.asked.units.unit(*unit).live;
        let within = |unit: &u32| {
            let limit = choice.tolerance.map(|tolerance| least + tolerance);
            limit.is_none_or(|limit| live(unit) <= limit)
        };
        let unit = match gains {
            true => of(&scoped).filter(within).or_else(|| of(&all)),
            false => of(&all),
        };
        Found {
            unit,
            fell_back: !gains,
        }
    }
}

/// Returns the owner (kind of unit) to which the live pages of a unit of the owner `from` are moved, for schemes that
/// do not choose the class of each moved page.
pub(super) fn destination(classes: &Classes, survivors: Survivors, from: Owner) -> Owner {
    let Some(class) = classes.class_of(from) else {
        return from;
    };
    match survivors {
        Survivors::Apart if classes.is_isolated(class) => classes.own(class),
        Survivors::Apart | Survivors::Shared => classes.shared(),
        Survivors::Next => classes.host((class + 1).min(classes.classes() - 1)),
        Survivors::Same | Survivors::Scheme => classes.host(class),
    }
}

/// The closed units of a group, in the order in which they were opened. Units whose live pages fit into no other units
/// are left out. With `scoped`, units outside the scope are left out, too.
struct Closed<'a> {
    choice: &'a Choice<'a>,
    scoped: bool,
    opened: &'a [u32],
    free_pages: u64,
    /// Whether the live pages of one unit may be distributed over several classes, so that each class needs a new unit.
    scatters: bool,
}

/// A closed unit.
#[derive(Clone, Copy)]
struct ClosedUnit<'a> {
    unit: u32,
    of: &'a Unit,
    newest: u32,
}

impl Candidate for ClosedUnit<'_> {
    #[inline]
    fn live(&self) -> u32 {
        self.of.live
    }

    #[inline]
    fn age(&self) -> u32 {
        self.newest - 1 - self.of.sequence
    }

    #[inline]
    fn erases(&self) -> u32 {
        self.of.erases
    }
}

impl<'a> Closed<'a> {
    fn new(choice: &'a Choice<'a>, scoped: bool) -> Closed<'a> {
        let Asked { units, group, .. } = *choice.asked;
        let free = u64::from(units.free(group));
        Closed {
            choice,
            scoped,
            opened: units.opened(group),
            free_pages: free * u64::from(units.shape.pages),
            scatters: choice.survivors == Survivors::Scheme,
        }
    }

    fn unit(&self, place: u32) -> u32 {
        self.opened[place as usize]
    }

    /// Whether there is room elsewhere for the live pages of a unit.
    #[inline]
    fn fits(&self, unit: &Unit) -> bool {
        let Asked {
            units,
            classes,
            group,
            ..
        } = self.choice.asked;
        if self.scatters {
            return self.fits_scattered(unit);
        }
        // If any unit is free, it has room for all live pages of the unit.
        u64::from(unit.live) <= self.free_pages || {
            let to = destination(classes, self.choice.survivors, unit.owner);
            u64::from(unit.live) <= self.free_pages + u64::from(units.left(*group, to))
        }
    }

    /// Whether there is room for the live pages of a unit, whatever classes the scheme assigns to them. In the worst
    /// case, the pages fill as many open units as possible, and each of their classes needs a new unit.
    fn fits_scattered(&self, unit: &Unit) -> bool {
        let Asked {
            units,
            classes,
            group,
            ..
        } = self.choice.asked;
        let free = units.free(*group);
        if free >= u32::from(classes.classes()).min(unit.live) {
            return true;
        }
        let owners = 0..classes.classes();
        let mut left: Vec<u32> = owners
            .map(|owner| units.left(*group, Owner(owner)))
            .collect();
        left.sort_unstable();
        let (mut live, mut needed) = (unit.live, 0);
        for pages in left {
            if live <= pages {
                break;
            }
            live -= pages + 1;
            needed += 1;
        }
        needed <= free
    }

    /// Returns the fewest live pages of any candidate; `None` if no candidate has an invalid page.
    fn least_live(&self) -> Option<u32> {
        let least = self.candidates().map(|c| c.of.live).min()?;
        (least < self.data_pages()).then_some(least)
    }

    fn places_of_candidates(&self) -> Vec<u32> {
        let places = 0..self.places();
        places
            .filter(|&place| self.candidate(place).is_some())
            .collect()
    }

    fn for_user(&self) -> VictimPool {
        let Asked {
            units,
            classes,
            group,
            class,
            ..
        } = self.choice.asked;
        let first = group * units.shape.units;
        let view = |c: ClosedUnit| VictimUnit {
            number: c.unit - first,
            valid: c.of.live,
            written: c.of.given,
            age: c.age(),
            class: classes.class_of(c.of.owner),
            survivors: !classes.is_host(c.of.owner),
            erases: c.of.erases,
            opened_at: c.of.opened_at,
            last_death: c.of.last_death,
        };
        VictimPool {
            units: self.candidates().map(view).collect(),
            pages: units.shape.pages,
            class: *class,
            group: *group,
            free: units.free(*group),
            low: self.choice.low,
            clock: classes.clock(),
            in_use: (0..classes.classes())
                .map(|class| classes.in_use(*group, class))
                .collect(),
        }
    }
}

impl<'a> Pool for Closed<'a> {
    type Candidate = ClosedUnit<'a>;

    fn places(&self) -> u32 {
        self.opened.len() as u32
    }

    #[inline]
    fn candidate(&self, place: u32) -> Option<ClosedUnit<'a>> {
        let Asked { units, group, .. } = self.choice.asked;
        let unit = self.opened[place as usize];
        let of = units.unit(unit);
        let in_scope = || !self.scoped || self.choice.scope.has(self.choice.asked, unit, of);
        (!of.bound && of.awaited == 0 && self.fits(of) && in_scope()).then(|| ClosedUnit {
            unit,
            of,
            newest: units.sequence(*group),
        })
    }

    fn data_pages(&self) -> u32 {
        self.choice.asked.units.shape.pages
    }

    fn tie(&self) -> Tie {
        Tie::Lowest
    }

    fn seed(&self) -> u64 {
        let Asked { units, group, .. } = self.choice.asked;
        let mixed = u64::from(units.sequence(*group)) << 32 | u64::from(*group);
        mixed ^ self.choice.asked.classes.clock()
    }
}
