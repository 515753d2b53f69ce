//! Setup of a device that writes by units: sizes, handles, scheme, victim rule and scope.

use std::fmt;

use super::scheme::Scheme as _;
use super::scheme::{Isolated, Needs, Survivors, CLASSES_MAX};
use super::schemes::{AnyScheme, Device};
use super::scopes::AnyScope;
use crate::component::{words, Chosen};
use crate::ftl::Reuse;

words! {
    /// Type of a reclaim unit handle.
    pub enum Isolation {
        /// Initially isolated: moved pages of the handle may be mixed with those of other initially isolated handles.
        Initially = "ii",
        /// Persistently isolated: moved pages of the handle are in units that only this handle uses.
        Persistently = "pi",
    }
}

words! {
    /// Choice of the free unit that is opened next.
    pub enum FreeUnit {
        /// The unit that was erased longest ago. Units that were never erased are opened before all others, in the
        /// order of their numbers.
        Oldest = "oldest",
        /// The unit with the fewest erases. Of several such units, the one with the lowest number.
        LeastWorn = "least-worn",
    }
}

/// Description of a device that writes by units.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Number of reclaim groups. All blocks of a unit are within one group.
    pub groups: u32,
    /// Units of a group.
    pub units: u32,
    /// Pages of a unit.
    pub unit_pages: u32,
    /// Pages that the host sees.
    pub logical_pages: u32,
    /// Types of the handles.
    pub handles: Vec<Isolation>,
    /// For each placement handle, its reclaim unit handle.
    pub namespace: Vec<u16>,
    /// Number of bits of a placement id that select the group.
    pub group_bits: u32,
    /// The placement scheme.
    pub scheme: Chosen,
    /// Destination of moved pages. If `None`, the scheme determines the destination.
    pub survivors: Option<Survivors>,
    /// The victim rule.
    pub victim: Chosen,
    /// The scope, which is the set of units among which the victim rule chooses.
    pub scope: Chosen,
    /// Collection begins when at most this number of units of a group is free.
    pub low: u32,
    /// Early watermark: collections may begin early when at most this number of units of a group is free. A number
    /// below `low` counts as `low`.
    pub early: u32,
    /// Share of a unit's pages that an early collection must gain at least, in percent.
    pub least_gain_percent: f64,
    /// The free unit that is opened next.
    pub reuse: FreeUnit,
    /// Whether a power loss closes the host's open units.
    pub closes_at_power_cut: bool,
}

/// Error: the setup is invalid. The message contains the wrong word and its value, and describes how to correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupError(pub(super) String);

impl SetupError {
    pub(crate) fn new(text: impl Into<String>) -> SetupError {
        SetupError(text.into())
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

/// The parts of a setup, created and checked.
pub(super) struct Parts {
    pub scheme: AnyScheme,
    pub scope: AnyScope,
}

impl Setup {
    /// Checks the sizes, and creates the scheme and the scope.
    pub(super) fn parts(&self) -> Result<Parts, SetupError> {
        self.check_sizes()?;
        let device = self.device();
        let scheme = AnyScheme::new(&self.scheme, &device).map_err(SetupError)?;
        let scope = AnyScope::new(&self.scope, self).map_err(SetupError)?;
        Ok(Parts { scheme, scope })
    }

    /// Checks two conditions for a device that is simulated with time. Every load must find room even while units wait
    /// for their programs. The scheme must not need to know the load in advance.
    pub(crate) fn check_timed(&self) -> Result<(), SetupError> {
        let needs = self.parts()?.scheme.needs();
        self.check_needs(&needs)
    }

    /// Executes [`Setup::check_timed`] for a scheme with these needs.
    pub(crate) fn check_needs(&self, needs: &Needs) -> Result<(), SetupError> {
        if needs.future {
            return Err(SetupError(format!(
                "scheme {} needs to know the load in advance: it runs without time only (flashtwin placement waf)",
                self.scheme.name
            )));
        }
        let (survivors, isolated) = self.survivors(needs)?;
        // Each owner may have an additional unit that cannot be collected yet, because it is full but not fully
        // programmed.
        self.check_room(needs, survivors, &isolated, 2)
    }

    fn device(&self) -> Device {
        Device {
            logical_pages: self.logical_pages,
            unit_pages: self.unit_pages,
            handles: self.handles.len() as u16,
            groups: self.groups,
            units: self.units,
            low: self.low,
        }
    }

    fn check_sizes(&self) -> Result<(), SetupError> {
        let err = |text: String| Err(SetupError(text));
        let pages = u64::from(self.groups) * u64::from(self.units) * u64::from(self.unit_pages);
        if self.groups == 0 || self.units == 0 || self.unit_pages == 0 || pages > u32::MAX.into() {
            return err(format!(
                "units: found {} groups of {} units of {} pages; must be at least one of each, and below 2^32 pages in all",
                self.groups, self.units, self.unit_pages
            ));
        }
        if self.logical_pages == 0 || u64::from(self.logical_pages) > pages {
            return err(format!(
                "logical_pages: found {}; must be from 1 to {pages}, the pages of the flash",
                self.logical_pages
            ));
        }
        if self.low == 0 || self.low >= self.units {
            return err(format!(
                "low: found {}; must be from 1 to {}, since survivors need a free unit",
                self.low,
                self.units - 1
            ));
        }
        if self.early >= self.units {
            return err(format!(
                "early: found {}; must be below {}, the units of a group",
                self.early, self.units
            ));
        }
        if !(0.0..100.0).contains(&self.least_gain_percent) {
            return err(format!(
                "least_gain_percent: found {}; must be from 0 to below 100",
                self.least_gain_percent
            ));
        }
        let handles = self.handles.len();
        if handles == 0 || handles > usize::from(CLASSES_MAX) {
            return err(format!(
                "handles: found {handles}; must be from 1 to {CLASSES_MAX}"
            ));
        }
        if self.namespace.is_empty() || self.namespace.len() > 128 {
            let n = self.namespace.len();
            return err(format!(
                "namespace: found {n} placement handles; must be from 1 to 128"
            ));
        }
        if let Some(handle) = self.namespace.iter().find(|&&h| usize::from(h) >= handles) {
            return err(format!(
                "namespace: found handle {handle}; the handles are 0 to {}",
                handles - 1
            ));
        }
        let bits_min = self.groups.next_power_of_two().ilog2();
        let room = (16 - self.group_bits.min(16)).min(7);
        if self.group_bits < bits_min || self.namespace.len() > 1 << room {
            return err(format!(
                "group_bits: found {}; {} groups need at least {bits_min}, and the rest of the 16 bits must name {} \
                 placement handles",
                self.group_bits,
                self.groups,
                self.namespace.len()
            ));
        }
        Ok(())
    }

    /// Returns the destination of moved pages, and for each class whether its moved pages are isolated.
    ///
    /// # Errors
    /// Fails if the destination of moved pages in the setup does not suit the scheme.
    pub(super) fn survivors(&self, needs: &Needs) -> Result<(Survivors, Vec<bool>), SetupError> {
        if needs.classes == 0 || needs.classes > CLASSES_MAX {
            return Err(SetupError(format!(
                "scheme: found {} classes; must be from 1 to {CLASSES_MAX}",
                needs.classes
            )));
        }
        let survivors = match (self.survivors, needs.survivors) {
            (None, of_scheme) => of_scheme,
            (Some(given), of_scheme) if given == of_scheme => given,
            (Some(given), Survivors::Scheme) => {
                return Err(SetupError(format!(
                    "survivors: found \"{}\"; scheme {} places them itself: leave the word out",
                    given.name(),
                    self.scheme.name
                )))
            }
            (Some(Survivors::Scheme), _) => {
                return Err(SetupError(format!(
                    "survivors: found \"scheme\"; scheme {} does not place them",
                    self.scheme.name
                )))
            }
            (Some(given), _) => given,
        };
        let classes = usize::from(needs.classes);
        let is_persistent = |&of: &Isolation| of == Isolation::Persistently;
        let isolated = match needs.isolated {
            Isolated::ByHandle => self.handles.iter().map(is_persistent).collect(),
            Isolated::All => vec![true; classes],
            Isolated::None => vec![false; classes],
        };
        Ok((survivors, isolated))
    }

    /// Checks that every load finds room, even if each owner (kind of unit) holds `units_of_owner` units that cannot be
    /// collected.
    pub(super) fn check_room(
        &self,
        needs: &Needs,
        survivors: Survivors,
        isolated: &[bool],
        units_of_owner: u32,
    ) -> Result<(), SetupError> {
        let host = u32::from(needs.classes);
        let own = isolated.iter().filter(|&&isolated| isolated).count() as u32;
        let (moved, low_min) = match survivors {
            Survivors::Apart => (own + u32::from(own < host), 1),
            Survivors::Shared => (1, 1),
            Survivors::Same | Survivors::Next => (0, 1),
            // The scheme may distribute the survivors of one unit over all classes.
            Survivors::Scheme => (0, host.min(self.unit_pages)),
        };
        if self.low < low_min {
            return Err(SetupError(format!(
                "low: found {}; must be at least {low_min}, since scheme {} may send the survivors of a unit to as many classes",
                self.low, self.scheme.name
            )));
        }
        let needed = u64::from(self.logical_pages / self.unit_pages)
            + u64::from(self.groups) * u64::from((host + moved) * units_of_owner + self.low);
        let there = u64::from(self.groups) * u64::from(self.units);
        match needed > there {
            false => Ok(()),
            true => Err(SetupError(format!(
                "placement: {host} {0}, with their survivors and the free units kept, need {needed} units of {1} pages; \
                 there are {there}: use fewer {0}, smaller units or a larger reserve",
                match needs.isolated {
                    Isolated::ByHandle => "handles",
                    Isolated::All | Isolated::None => "classes",
                },
                self.unit_pages
            ))),
        }
    }

    pub(super) fn reuse(&self) -> Reuse {
        match self.reuse {
            FreeUnit::Oldest => Reuse::Oldest,
            FreeUnit::LeastWorn => Reuse::LeastWorn,
        }
    }
}
