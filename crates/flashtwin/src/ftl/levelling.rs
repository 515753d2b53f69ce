//! Wear levelling methods, and the requirements of each on the page map.

use crate::component::{parameters, Chosen, Component, Kind};

/// Requirements of a wear levelling method on the page map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levelling {
    /// Whether the free block with the fewest erases is opened first. If false, free blocks are opened in circular
    /// order.
    pub least_worn_first: bool,
    /// A block is collected when its erases are fewer than the mean of its pool by at least this number. `None`: no
    /// such rule.
    pub erases_behind: Option<u32>,
    /// Thresholds of the wear levelling of the reference (DiskSim with Microsoft's SSD extension). It skips worn
    /// victims, or moves the coldest data to them.
    pub wear_aware: Option<WearAware>,
}

/// Thresholds of the reference's wear levelling. They are fractions of the mean remaining life of a pool's blocks, in
/// units of 1/10 000. The remaining life of a block is the number of erases that it still survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WearAware {
    /// Migration threshold. A victim with less remaining life is collected, and then receives the data of the coldest
    /// block of its pool.
    pub migrate_below: u32,
    /// Skip threshold. A victim with less remaining life may be skipped.
    pub limit_below: u32,
}

parameters! {
    /// Parameters of `static`.
    struct Behind {
        /// Number of erases by which a block must be below the mean of its pool to be collected.
        erases_behind: u32 = Kind::Count(1, u32::MAX - 1), "16", "ours";
    }
}

parameters! {
    /// Parameters of `reference`.
    struct Shares {
        /// Migration threshold, as a share of the mean remaining life of the pool's blocks. A victim with less
        /// remaining life than this is collected and receives the data of the coldest block, which becomes free in
        /// its place; 0: no migration. Without copy-back there is no migration either.
        migrate_percent: f64 = Kind::Percent, "85", "the reference: 85";
        /// Skip threshold, as a share of the mean remaining life of the pool's blocks. A victim with less remaining
        /// life than this may be skipped, with a probability that grows as its life shrinks; 0: no victim is skipped.
        rate_limit_percent: f64 = Kind::Percent, "80", "the reference: 80";
    }
}

pub(crate) const NONE: Component = Component {
    name: "none",
    line: "free blocks are taken in circular order",
    parameters: &[],
};
pub(crate) const DYNAMIC: Component = Component {
    name: "dynamic",
    line: "the free block with the fewest erases is taken",
    parameters: &[],
};
pub(crate) const STATIC: Component = Component {
    name: "static",
    line: "as `dynamic`; in addition, a block with far fewer erases than the others is collected even if all its pages are live",
    parameters: Behind::ROWS,
};
/// The reference's cleaning policy 3 (D-99).
pub(crate) const REFERENCE: Component = Component {
    name: "reference",
    line:
        "victims with little life left are passed over, or take the coldest data (`msr` only; D-99)",
    parameters: Shares::ROWS,
};

/// All methods.
pub(crate) const LEVELLING: &[Component] = &[NONE, DYNAMIC, STATIC, REFERENCE];

impl Levelling {
    /// Returns the requirements of the device's method.
    pub fn of(chosen: &Chosen) -> Levelling {
        let none = Levelling::default();
        let dynamic = Levelling {
            least_worn_first: true,
            ..none
        };
        let parts = |percent: f64| (percent * 100.0).round() as u32;
        let settings = &chosen.settings;
        match chosen.name {
            name if name == NONE.name => none,
            name if name == DYNAMIC.name => dynamic,
            name if name == STATIC.name => Levelling {
                erases_behind: Some(Behind::of(settings).erases_behind),
                ..dynamic
            },
            name if name == REFERENCE.name => {
                let shares = Shares::of(settings);
                Levelling {
                    wear_aware: Some(WearAware {
                        migrate_below: parts(shares.migrate_percent),
                        limit_below: parts(shares.rate_limit_percent),
                    }),
                    ..none
                }
            }
            name => unreachable!("{name}: ways are chosen from the table"),
        }
    }
}
