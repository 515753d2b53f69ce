//! Placement of pages in units: handles, groups and the placement scheme.

use super::decimal::percent_of;
use super::section::{section, Field, Only, Values, OPTIONAL};
use super::{DeviceSpec, MODERN_PAGE, U32};
use crate::component::{Chosen, Component, Kind, Value};
use crate::ftl::DYNAMIC_LEVELLING;
use crate::placement::{self, Choice, FreeUnit, Survivors, SCHEMES};
use crate::units::saturating_u32;

/// The value of `placement.scheme` for devices that do not write by units.
pub(super) const OFF: &str = "off";

/// Names of all placement schemes.
const NAMES: [&str; SCHEMES.len()] = {
    let mut names = [""; SCHEMES.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = SCHEMES[i].component.name;
        i += 1;
    }
    names
};

/// Condition of keys that apply only to devices that write by units.
pub(super) const PLACED: Only = &[
    MODERN_PAGE[0],
    MODERN_PAGE[1],
    (WriteUnits::scheme.name(), &NAMES),
];

section! {
    /// Placement of pages in units. A unit is one block, or several, of every die of a group. Its blocks are filled in
    /// order, collected and erased together.
    pub struct WriteUnits(v) in (spec: DeviceSpec => spec.placement.as_ref()) {
        scheme: Chosen = "placement.scheme", Kind::Choice(&[]), Some("\"off\""), MODERN_PAGE,
            "Placement scheme: the rule that assigns each written page a class of units (docs/placement.md). `off`: the device does not write by units.", "NVMe flexible data placement; docs/placement.md",
            among schemes(),
            write written(spec);
        handles: String = "placement.handles", Kind::Text, Some("\"1\""), PLACED,
            "Types of the reclaim unit handles, separated by commas: `ii` (initially isolated: survivors mix) or `pi` (persistently isolated), or a number of handles of type `ii`.", "NVMe flexible data placement";
        namespace: String = "placement.namespace", Kind::Text, Some("\"all\""), PLACED,
            "Reclaim unit handles to which the placement handles 0, 1, ... of the namespace refer, separated by commas; `all`: every handle, in order. Writes without an id use the first.", "NVMe flexible data placement";
        groups: u32 = "placement.groups", Kind::Count(1, 65_535), Some("1"), PLACED,
            "Reclaim groups: the dies are split evenly among them, and units do not cross them.", "NVMe flexible data placement";
        group_bits: Option<u32> = "placement.group_bits", Kind::Count(0, 15), OPTIONAL, PLACED,
            "Number of the highest bits of a placement id that name the group; default: the fewest that suffice.", "NVMe flexible data placement: RGIF";
        unit_superblocks: u32 = "placement.unit_superblocks", Kind::Count(1, U32), Some("1"), PLACED,
            "Blocks of each die of the group that form a unit.", "NVMe flexible data placement: reclaim units";
        survivors: Option<Survivors> = "placement.survivors", Kind::Choice(Survivors::WORDS), OPTIONAL, PLACED,
            "Destination of moved pages; default: that of the scheme. `apart`: units of its own for each isolated class, and shared units for all other classes. `same`: the open unit of their class. `shared`: units that all classes share. `next`: the open unit of the next class. `scheme`: the scheme places each page.", "docs/placement.md";
        closes_at_power_cut: bool = "placement.closes_at_power_cut", Kind::Bool, Some("false"), PLACED,
            "A power loss closes the open units of the host, as event 02h reports.", "NVMe flexible data placement";
        least_gain_percent: f64 = "gc.least_gain_percent", Kind::Percent, Some("0"), PLACED,
            "While more than `low_percent` of the units are free, units are not collected if less than this share of their pages is invalid. Applies if `idle_percent` is above `low_percent`.", "FEMU: 12.5; docs/placement.md";
        scope: Chosen = "gc.scope", Kind::Choice(&[]), Some("\"global\""), PLACED,
            "Units among which the victim rule chooses.", "docs/placement.md",
            among placement::components(Choice::Scope);
    }
}

/// Whether the device writes by units.
pub(super) fn is_on(v: &Values) -> bool {
    let scheme: String = v.setting(&WriteUnits::scheme);
    scheme != OFF
}

/// Returns the placement schemes as components, preceded by a component `off`, which means no scheme.
fn schemes() -> Vec<Component> {
    let off = Component {
        name: OFF,
        line: "",
        parameters: &[],
    };
    [off]
        .into_iter()
        .chain(placement::components(Choice::Scheme))
        .collect()
}

/// Returns the value of `placement.scheme`.
fn written(spec: &DeviceSpec) -> Option<Value> {
    match &spec.placement {
        Some(placement) => placement.scheme.write(),
        None => Some(Value::Text(OFF.into())),
    }
}

impl DeviceSpec {
    /// Returns the number of blocks of each die in a unit. Returns 1 on devices that do not write by units.
    fn blocks_per_unit(&self) -> u32 {
        self.placement.as_ref().map_or(1, |p| p.unit_superblocks)
    }

    /// Returns the number of units of a group. Meaningful only on devices that write by units.
    pub fn units_per_group(&self) -> u32 {
        self.blocks_per_chip() / self.blocks_per_unit()
    }

    /// Converts a percentage of a group's units to a number of units, rounded down.
    fn units_of_percent(&self, percent: f64) -> u32 {
        saturating_u32(percent_of(self.units_per_group().into(), percent))
    }

    /// Returns the early watermark: a group with at most this number of free units may collect early. Early collections
    /// run while no host operation waits, or let host writes run between two moves.
    fn early_units(&self) -> u32 {
        let begins_early =
            self.gc.preemptible || (self.nand.modern()).is_some_and(|modern| modern.background_gc);
        let percent = match self.gc.idle_percent {
            Some(percent) if begins_early => percent,
            _ => self.gc.low_percent,
        };
        self.units_of_percent(percent).max(1)
    }

    /// Returns the placement setup of a device that writes by units; `None` for other devices. An error consists of a
    /// key and a message about its value.
    pub fn placement_setup(&self) -> Option<Result<placement::Setup, (&'static str, String)>> {
        self.placement.as_ref().map(|of| self.setup_of(of))
    }

    fn setup_of(&self, of: &WriteUnits) -> Result<placement::Setup, (&'static str, String)> {
        let wrong = |key: &'static str| move |message: String| (key, message);
        let handles = placement::handles(&of.handles).map_err(wrong(WriteUnits::handles.name()))?;
        let namespace = placement::namespace(&of.namespace, handles.len())
            .map_err(wrong(WriteUnits::namespace.name()))?;
        let dies = self.geometry.chips / of.groups;
        if dies * of.groups != self.geometry.chips || dies == 0 {
            let (found, chips) = (of.groups, self.geometry.chips);
            let message = format!("found {found}; must divide the {chips} chips evenly");
            return Err((WriteUnits::groups.name(), message));
        }
        let each = self.blocks_per_chip();
        if of.unit_superblocks > each {
            let message = format!("found {}; a chip has {each} blocks", of.unit_superblocks);
            return Err((WriteUnits::unit_superblocks.name(), message));
        }
        let by_wear = self.wear.levelling.name == DYNAMIC_LEVELLING.name;
        Ok(placement::Setup {
            groups: of.groups,
            units: self.units_per_group(),
            unit_pages: dies * of.unit_superblocks * self.geometry.pages_per_block,
            logical_pages: self.exported_pages(),
            handles,
            namespace,
            group_bits: (of.group_bits).unwrap_or(of.groups.next_power_of_two().ilog2()),
            scheme: of.scheme.clone(),
            survivors: of.survivors,
            victim: self.gc.victim.clone(),
            scope: of.scope.clone(),
            low: self.units_of_percent(self.gc.low_percent).max(1),
            early: self.early_units(),
            least_gain_percent: of.least_gain_percent,
            reuse: match by_wear {
                true => FreeUnit::LeastWorn,
                false => FreeUnit::Oldest,
            },
            closes_at_power_cut: of.closes_at_power_cut,
        })
    }
}
