//! Summary of data placement in the measured time, for devices that write by units: pages and bytes by handle, owner
//! and cause. `docs/placement.md` defines these terms.

use flashtwin::placement::{OwnerReport, Placed, PlacementReport};
use serde::Serialize;
use serde_json::Value;

use super::numbers::{bytes, digits, grouped};
use crate::placement_log::placement_logs;

/// Data placement on a device that writes by units (blocks that are erased together): the rules, and their effects over
/// the measured time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacementSummary {
    /// The placement scheme.
    pub scheme: String,
    /// The victim rule.
    pub victim: String,
    /// The units that the rule chooses among.
    pub scope: String,
    /// Bytes of a unit.
    pub unit_bytes: u64,
    /// Units of the device.
    pub units: u32,
    /// Number of units without data at the end.
    pub units_free: u32,
    /// The reclaim unit handles.
    pub handles: Vec<HandleSummary>,
    /// Owners of units. `h0` owns the units with pages that the host wrote to class 0. `g0` owns the units with moved
    /// pages of class 0, if these are kept apart from moved pages of other classes. `s` owns the units shared by moved
    /// pages of several classes.
    pub owners: Vec<OwnerSummary>,
    /// For each pair of a class and an owner: the number of pages that GC moved out of units of the owner while a page
    /// of the class waited for room. Pairs without moved pages are omitted.
    pub caused: Vec<Caused>,
    /// Pages whose placement id names a group that was full, so that they were written to another group.
    pub redirected_pages: u64,
    /// Number of victims for which the scope of the rule was ignored. These victims were chosen from all units, because
    /// no unit in the scope had an invalid page.
    pub scope_fallbacks: u64,
    /// Pages written by the host whose previous copy had another class.
    pub crossed_pages: u64,
    /// Log pages 20h to 23h of flexible data placement, which count since the device was created.
    pub logs: Vec<Value>,
}

/// A reclaim unit handle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HandleSummary {
    /// Number of the handle.
    pub handle: u16,
    /// Type of the handle: `ii` or `pi`.
    pub kind: &'static str,
    /// Bytes that the host wrote through the handle, in whole pages, including bytes still in the buffer.
    pub host_bytes: u64,
}

/// An owner of units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OwnerSummary {
    /// Name of the owner.
    pub name: String,
    /// Host pages programmed into units of the owner.
    pub host_pages: u64,
    /// Moved pages that were programmed into units of the owner.
    pub moved_in_pages: u64,
    /// Pages that collection moved out of units of the owner.
    pub moved_out_pages: u64,
    /// Number of units of the owner that were erased.
    pub erases: u64,
    /// Live pages in the owner's units at the end.
    pub live_pages: u64,
    /// Units that the owner holds at the end.
    pub units: u32,
    /// Histogram of collected units by their share of live pages. The bins divide the range from 0 to 1 equally.
    pub live_at_collection: Vec<u64>,
    /// Histogram of erased units by lifespan: the number of pages that the host wrote between the opening and the erase
    /// of the unit. Bin i counts lifespans from 2^i up to the start of the next bin. Bin 0 also counts lifespans of 0.
    pub lifespans: Vec<u64>,
}

/// Pages moved while a class waited for room.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Caused {
    /// The class that waited.
    pub class: u16,
    /// The owner of the units that were collected.
    pub owner: String,
    /// Number of pages moved out of units of this owner while a page of the class waited for room.
    pub pages: u64,
}

impl PlacementSummary {
    /// Returns the changes of `device` since `before`.
    pub(super) fn new(device: &Placed, before: &PlacementReport, page_bytes: u32) -> Self {
        let now = device.report();
        let setup = device.setup();
        let bytes_of = |pages: u64| pages * u64::from(page_bytes);
        let types = device.handle_types().iter();
        let accepted = now.accepted.iter().zip(&before.accepted);
        let handles = types.zip(accepted).zip(0..);
        let free = (0..setup.groups).map(|group| device.units_free(group));
        PlacementSummary {
            scheme: device.scheme_name().into(),
            victim: device.victim_name().into(),
            scope: setup.scope.name.into(),
            unit_bytes: bytes_of(setup.unit_pages.into()),
            units: setup.groups * setup.units,
            units_free: free.sum(),
            handles: handles
                .map(|((kind, (now, before)), handle)| HandleSummary {
                    handle,
                    kind: kind.name(),
                    host_bytes: bytes_of(now - before),
                })
                .collect(),
            owners: (now.owners.iter())
                .map(|owner| OwnerSummary::new(owner, before.owner(&owner.name)))
                .collect(),
            caused: caused(&now, before),
            redirected_pages: now.redirected - before.redirected,
            scope_fallbacks: now.scope_fallbacks - before.scope_fallbacks,
            crossed_pages: now.crossed - before.crossed,
            logs: placement_logs(device, page_bytes),
        }
    }

    /// Returns the summary as lines of text: the rules, then one line for each owner that had pages.
    pub(super) fn lines(&self) -> Vec<String> {
        let handles = self.handles.len();
        let mut lines = vec![format!(
            "{}, {handles} {}; {} among {}; {} units of {}, {} free",
            self.scheme,
            if handles == 1 { "handle" } else { "handles" },
            self.victim,
            self.scope,
            self.units,
            bytes(self.unit_bytes),
            self.units_free
        )];
        let host: u64 = self.owners.iter().map(|owner| owner.host_pages).sum();
        let share = |pages: u64| digits(pages as f64 / host.max(1) as f64);
        for owner in &self.owners {
            lines.push(format!(
                "{}: {} pages of the host, {} of survivors ({} a page of the host), {} moved out; {} live in {} units",
                owner.name,
                grouped(owner.host_pages),
                grouped(owner.moved_in_pages),
                share(owner.moved_in_pages),
                grouped(owner.moved_out_pages),
                grouped(owner.live_pages),
                owner.units
            ));
        }
        lines
    }
}

impl OwnerSummary {
    fn new(now: &OwnerReport, before: Option<&OwnerReport>) -> OwnerSummary {
        let since = |of: fn(&OwnerReport) -> u64| of(now) - before.map_or(0, of);
        OwnerSummary {
            name: now.name.clone(),
            host_pages: since(|o| o.counts.host_pages),
            moved_in_pages: since(|o| o.counts.moved_in),
            moved_out_pages: since(|o| o.counts.moved_out),
            erases: since(|o| o.counts.erases),
            live_pages: now.live,
            units: now.units,
            live_at_collection: parts_since(now, before, |o| &o.counts.live_at_collection),
            lifespans: parts_since(now, before, |o| &o.counts.lifespans),
        }
    }
}

/// A histogram of an owner since `before`.
fn parts_since(
    now: &OwnerReport,
    before: Option<&OwnerReport>,
    of: fn(&OwnerReport) -> &[u64],
) -> Vec<u64> {
    let earlier = |part: usize| before.map_or(0, |before| of(before)[part]);
    let parts = of(now).iter().enumerate();
    parts.map(|(part, &n)| n - earlier(part)).collect()
}

fn caused(now: &PlacementReport, before: &PlacementReport) -> Vec<Caused> {
    let mut all = Vec::new();
    for (class, row) in now.caused.iter().enumerate() {
        for (owner, &pages) in now.owners.iter().zip(row) {
            let earlier = before.owners.iter().position(|o| o.name == owner.name);
            let earlier = earlier.map_or(0, |at| before.caused[class][at]);
            if pages > earlier {
                all.push(Caused {
                    class: class as u16,
                    owner: owner.name.clone(),
                    pages: pages - earlier,
                });
            }
        }
    }
    all
}
