//! Owners of units, and the counts of each class and owner. An owner is the kind of pages that a unit holds.
//!
//! With n classes, there are 2 n + 1 owners:
//!
//! - owner c, with c below n: the host pages of class c (printed as `h0` for class 0);
//! - owner n + c: the moved pages of class c (`g0`), if these are kept apart from other classes;
//! - owner 2 n: the moved pages of the classes that share units (`s`).

use super::scheme::Class;
use crate::ftl::{Owner, Unit, Units};

/// Number of bins for a unit's share of live pages at its collection. A bin covers 5 %.
pub const LIVE_BINS: usize = 20;
/// Number of bins for lifespans, in host pages. The bounds of the bins are powers of two.
pub const LIFESPAN_BINS: usize = 48;

/// Limit on each count in a saved state. No device programs as many pages.
const COUNT_MAX: u64 = 1 << 48;

/// Counts of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerCounts {
    /// Pages programmed for the host.
    pub host_pages: u64,
    /// Moved pages that were programmed into units of the owner.
    pub moved_in: u64,
    /// Pages that were moved out of units of the owner.
    pub moved_out: u64,
    /// Units erased.
    pub erases: u64,
    /// Number of collected units, by their share of live pages at the collection.
    pub live_at_collection: [u64; LIVE_BINS],
    /// Number of erased units, by lifespan: the number of host pages written between the opening of the unit and its
    /// erase. Bin i begins at 2^i. Bin 0 also contains zero.
    pub lifespans: [u64; LIFESPAN_BINS],
}

impl OwnerCounts {
    const NONE: OwnerCounts = OwnerCounts {
        host_pages: 0,
        moved_in: 0,
        moved_out: 0,
        erases: 0,
        live_at_collection: [0; LIVE_BINS],
        lifespans: [0; LIFESPAN_BINS],
    };
}

/// Classes, their owners and counts.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    classes: u16,
    isolated: Vec<bool>,
    /// Pages that the host has written.
    clock: u64,
    /// Counts of each owner.
    pub counts: Vec<OwnerCounts>,
    /// Number of moved pages, for each class of the page that waited for room and each owner (kind of unit) of the
    /// collected unit.
    pub caused: Vec<u64>,
    /// Number of units in use, by group and owner.
    in_use: Vec<u32>,
    erases: u64,
    /// Number of host pages whose old copy was in a unit of another class.
    pub crossed: u64,
}

impl Classes {
    pub fn new(classes: u16, isolated: Vec<bool>, groups: u32) -> Classes {
        let owners = usize::from(classes) * 2 + 1;
        Classes {
            classes,
            isolated,
            clock: 0,
            counts: vec![OwnerCounts::NONE; owners],
            caused: vec![0; owners * usize::from(classes)],
            in_use: vec![0; owners * groups as usize],
            erases: 0,
            crossed: 0,
        }
    }

    pub fn classes(&self) -> u16 {
        self.classes
    }

    pub fn owners(&self) -> u16 {
        self.classes * 2 + 1
    }

    #[inline(always)]
    pub fn host(&self, class: Class) -> Owner {
        Owner(class)
    }

    #[inline]
    pub fn own(&self, class: Class) -> Owner {
        Owner(self.classes + class)
    }

    #[inline]
    pub fn shared(&self) -> Owner {
        Owner(self.classes * 2)
    }

    /// Whether moved pages of the class are kept apart from those of other classes.
    #[inline]
    pub fn is_isolated(&self, class: Class) -> bool {
        self.isolated[usize::from(class)]
    }

    /// Whether the owner holds host pages.
    #[inline]
    pub fn is_host(&self, owner: Owner) -> bool {
        owner.0 < self.classes
    }

    /// Returns the class of an owner; `None` if several classes share its units.
    #[inline]
    pub fn class_of(&self, owner: Owner) -> Option<Class> {
        match owner.0 {
            class if class < self.classes => Some(class),
            own if own < self.classes * 2 => Some(own - self.classes),
            _ => None,
        }
    }

    /// Formats the name of an owner.
    pub fn show(&self, owner: Owner) -> String {
        match self.class_of(owner) {
            Some(class) if self.is_host(owner) => format!("h{class}"),
            Some(class) => format!("g{class}"),
            None => "s".into(),
        }
    }

    // ---- counts ----

    /// Returns the number of pages that the host has written.
    #[inline(always)]
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Counts a page of this class that the host has written.
    #[inline(always)]
    pub fn count_host(&mut self, class: Class) {
        self.clock += 1;
        self.counts[usize::from(class)].host_pages += 1;
    }

    /// Returns the number of pages of this class that the host has written.
    #[inline]
    pub fn host_pages(&self, class: Class) -> u64 {
        self.counts[usize::from(class)].host_pages
    }

    /// Counts a unit that was opened.
    pub fn count_opened(&mut self, group: u32, owner: Owner) {
        *self.in_use_mut(group, owner) += 1;
    }

    fn in_use_mut(&mut self, group: u32, owner: Owner) -> &mut u32 {
        let owners = usize::from(self.owners());
        &mut self.in_use[group as usize * owners + usize::from(owner.0)]
    }

    /// Counts a unit that is about to be collected.
    pub fn count_collected(&mut self, unit: &Unit, pages: u32) {
        let bin = u64::from(unit.live) * LIVE_BINS as u64 / u64::from(pages);
        let counts = &mut self.counts[usize::from(unit.owner.0)];
        counts.live_at_collection[(bin as usize).min(LIVE_BINS - 1)] += 1;
    }

    /// Counts pages that were moved out of a unit of the owner. `class` is the class of the page that waited for room,
    /// if there was one.
    pub fn count_moved_out(&mut self, owner: Owner, class: Option<Class>, pages: u32) {
        self.counts[usize::from(owner.0)].moved_out += u64::from(pages);
        if let Some(class) = class {
            let at = usize::from(class) * usize::from(self.owners()) + usize::from(owner.0);
            self.caused[at] += u64::from(pages);
        }
    }

    /// Counts a moved page that was programmed into a unit of the owner.
    #[inline(always)]
    pub fn count_moved(&mut self, owner: Owner) {
        self.counts[usize::from(owner.0)].moved_in += 1;
    }

    /// Counts a unit that is erased.
    pub fn count_erased(&mut self, group: u32, unit: &Unit) {
        self.erases += 1;
        *self.in_use_mut(group, unit.owner) -= 1;
        let bin = (self.clock - unit.opened_at).checked_ilog2().unwrap_or(0);
        let counts = &mut self.counts[usize::from(unit.owner.0)];
        counts.erases += 1;
        counts.lifespans[(bin as usize).min(LIFESPAN_BINS - 1)] += 1;
    }

    /// Returns the number of units erased so far.
    pub fn erases(&self) -> u64 {
        self.erases
    }

    /// Returns the number of units of a group that the class holds: units for its host pages, and units only for its
    /// moved pages. Units that several classes share are not included.
    pub fn in_use(&self, group: u32, class: Class) -> u32 {
        let of = &self.in_use[group as usize * usize::from(self.owners())..];
        of[usize::from(class)] + of[usize::from(self.classes + class)]
    }

    /// Returns the number of units of a group that an owner holds.
    pub fn in_use_of(&self, group: u32, owner: Owner) -> u32 {
        self.in_use[group as usize * usize::from(self.owners()) + usize::from(owner.0)]
    }

    /// Returns the counts as a list of fixed length, for a saved state.
    pub fn words(&self) -> Vec<u64> {
        let mut words = vec![self.clock, self.erases, self.crossed];
        for of in &self.counts {
            words.extend([of.host_pages, of.moved_in, of.moved_out, of.erases]);
            words.extend(of.live_at_collection);
            words.extend(of.lifespans);
        }
        words.extend(&self.caused);
        words.extend(self.in_use.iter().map(|&units| u64::from(units)));
        words
    }

    /// Restores the counts from a saved state. Returns false if the words do not suit the classes of this device.
    pub fn set_words(&mut self, words: &[u64]) -> bool {
        if words.len() != self.words().len() {
            return false;
        }
        let mut words = words.iter().copied();
        let mut next = || words.next().unwrap_or(0);
        (self.clock, self.erases, self.crossed) = (next(), next(), next());
        for of in &mut self.counts {
            (of.host_pages, of.moved_in) = (next(), next());
            (of.moved_out, of.erases) = (next(), next());
            of.live_at_collection.fill_with(&mut next);
            of.lifespans.fill_with(&mut next);
        }
        self.caused.fill_with(&mut next);
        self.in_use
            .fill_with(|| next().min(u64::from(u32::MAX)) as u32);
        // The counts are limited, so that their sums do not overflow.
        let counts = self.counts.iter();
        counts
            .flat_map(|of| [of.host_pages, of.moved_in, of.moved_out, of.erases])
            .chain([self.clock, self.erases])
            .all(|n| n < COUNT_MAX)
    }

    /// Returns the number of live pages in units of the class. Examines all units.
    pub fn live(&self, units: &Units, class: Class) -> u64 {
        let of_owner = |owner| live_of(units, owner);
        of_owner(self.host(class)) + of_owner(self.own(class))
    }

    /// Returns the number of moved pages of all owners.
    pub fn moved(&self) -> u64 {
        self.counts.iter().map(|counts| counts.moved_in).sum()
    }
}

/// Returns the number of live pages in units of an owner. Examines all units.
pub(super) fn live_of(units: &Units, owner: Owner) -> u64 {
    let groups = 0..units.shape.groups;
    let all = groups.flat_map(|group| units.opened(group));
    let of_owner = all
        .map(|&unit| units.unit(unit))
        .filter(|u| u.owner == owner);
    of_owner.map(|unit| u64::from(unit.live)).sum()
}
