//! Counts of a device: in total, by class, and by owner (the kind of pages that a unit holds).

use super::device::Placed;
use super::scheme::Class;
use super::state::{live_of, OwnerCounts};
use crate::ftl::Owner;

/// Counts of one owner (a kind of units, such as those for host pages of class 0), and the live pages and units that
/// the owner holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerReport {
    /// Name of the owner: `h0` for host pages of class 0; `g0` for moved pages of class 0, if these are kept apart from
    /// other classes; `s` for moved pages of the classes that share units.
    pub name: String,
    /// Class of the owner; `None` if several classes share its units.
    pub class: Option<Class>,
    /// Whether host pages are programmed into the owner's units. If not, the units hold only moved pages.
    pub of_host: bool,
    /// Counts of the owner.
    pub counts: OwnerCounts,
    /// Live pages of the owner.
    pub live: u64,
    /// Units that the owner holds.
    pub units: u32,
}

/// Counts of a device since it was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementReport {
    /// Owners that have had a unit so far.
    pub owners: Vec<OwnerReport>,
    /// Number of moved pages, for each class of the page that waited for room (first index) and each owner (kind of
    /// unit) of the collected unit.
    pub caused: Vec<Vec<u64>>,
    /// Pages that the host wrote.
    pub host_pages: u64,
    /// Number of moved pages (survivors) that were programmed.
    pub moves: u64,
    /// Units erased.
    pub erases: u64,
    /// Pages that the host wrote through each handle.
    pub accepted: Vec<u64>,
    /// Number of host pages whose old copy was in a unit of another class.
    pub crossed: u64,
    /// Number of pages that were written to another group than their id selects.
    pub redirected: u64,
    /// Number of victims that were chosen outside the scope, because no unit of the scope would have gained space.
    pub scope_fallbacks: u64,
}

impl Placed {
    /// Returns the number of free units of a group.
    pub fn units_free(&self, group: u32) -> u32 {
        self.units.free(group)
    }

    /// Returns the counts since the device was created. Examines all units.
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
    /// Returns the counts of the owner with this name; `None` if the owner never had a unit.
    pub fn owner(&self, name: &str) -> Option<&OwnerReport> {
        self.owners.iter().find(|owner| owner.name == name)
    }

    /// Returns the write amplification since `before`, an earlier report of the same device: programmed pages per page
    /// that the host wrote. Returns `None` if the host wrote nothing in this time.
    pub fn write_amplification(&self, before: &PlacementReport) -> Option<f64> {
        let host = self.host_pages - before.host_pages;
        let moves = self.moves - before.moves;
        (host > 0).then(|| 1.0 + moves as f64 / host as f64)
    }
}
