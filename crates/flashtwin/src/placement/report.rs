//! Counts of a device by class and by owner.

use super::device::Placed;
use super::scheme::Class;
use super::state::{live_of, OwnerCounts};
use crate::ftl::Owner;

/// Counts of an owner, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerReport {
    /// Name: `h0` for pages of the host of class 0, `g0` for its survivors, `s` for those of all classes.
    pub name: String,
    /// The class; `None` if the owner is shared.
    pub class: Option<Class>,
    /// The owner takes pages of the host.
    pub of_host: bool,
    /// Counts of the owner.
    pub counts: OwnerCounts,
    /// Live pages of the owner.
    pub live: u64,
    /// Units that the owner holds.
    pub units: u32,
}

/// Counts of a device since it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementReport {
    /// Owners that have had a unit.
    pub owners: Vec<OwnerReport>,
    /// By class that waited for room and owner, in their orders, the pages moved.
    pub caused: Vec<Vec<u64>>,
    /// Pages that the host wrote.
    pub host_pages: u64,
    /// Survivors programmed.
    pub moves: u64,
    /// Units erased.
    pub erases: u64,
    /// Pages that the host wrote through each handle.
    pub accepted: Vec<u64>,
    /// Pages of the host that overwrote a page of another class's unit.
    pub crossed: u64,
    /// Pages that went to another group than their id names.
    pub redirected: u64,
    /// Victims for which the scope had none with anything to gain.
    pub scope_fallbacks: u64,
}

impl Placed {
    /// Free units of a group.
    pub fn units_free(&self, group: u32) -> u32 {
        self.units.free(group)
    }

    /// Counts since the device was made: costs a pass over the units.
    pub fn report(&self) -> PlacementReport {
        let c = &self.classes;
        let all = (0..c.owners()).map(Owner);
        let groups = 0..self.setup().groups;
        let of = |owner: Owner| OwnerReport {
            name: c.show(owner),
            class: c.class_of(owner),
            of_host: c.is_host(owner),
            counts: c.counts[usize::from(owner.0)].clone(),
            live: live_of(&self.units, owner),
            units: groups.clone().map(|group| c.in_use_of(group, owner)).sum(),
        };
        let used: Vec<Owner> = all
            .filter(|owner| {
                let counts = &c.counts[usize::from(owner.0)];
                counts.host_pages + counts.moved_in > 0
            })
            .collect();
        let rows = c.caused.chunks(usize::from(c.owners()));
        let of_row = |row: &[u64]| used.iter().map(|o| row[usize::from(o.0)]).collect();
        PlacementReport {
            owners: used.iter().map(|&owner| of(owner)).collect(),
            caused: rows.map(of_row).collect(),
            host_pages: c.clock(),
            moves: c.moved(),
            erases: c.erases(),
            accepted: self.accepted().to_vec(),
            crossed: c.crossed,
            redirected: self.redirected,
            scope_fallbacks: self.fallbacks,
        }
    }
}

impl PlacementReport {
    /// Counts of the owner with this name; `None` if it has had no unit.
    pub fn owner(&self, name: &str) -> Option<&OwnerReport> {
        self.owners.iter().find(|owner| owner.name == name)
    }

    /// Pages programmed for each page that the host wrote since `before`, an earlier report of the device; `None` if
    /// the host wrote none.
    pub fn write_amplification(&self, before: &PlacementReport) -> Option<f64> {
        let host = self.host_pages - before.host_pages;
        let moves = self.moves - before.moves;
        (host > 0).then(|| 1.0 + moves as f64 / host as f64)
    }
}
