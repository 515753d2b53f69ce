//! The shape of a device's page map.

use std::num::NonZeroU32;

use super::decimal::percent_of;
use super::{DeviceSpec, Moves, Nand, Separation};
use crate::ftl::{Apart, Levelling, Shape};
use crate::units::saturating_u32;

impl Shape {
    /// Returns the shape of a device's page map. If `pools_are_planes`, each plane is a pool (a set of blocks that is
    /// collected on its own), otherwise each chip.
    pub fn of(spec: &DeviceSpec, pools_are_planes: bool) -> Shape {
        let g = &spec.geometry;
        let pools_per_chip = if pools_are_planes {
            g.planes_per_chip
        } else {
            1
        };
        let levelling = Levelling::of(&spec.wear.levelling);
        Shape {
            chips: g.chips,
            planes_per_chip: g.planes_per_chip,
            blocks_per_plane: g.blocks_per_plane,
            pages_per_block: g.pages_per_block,
            data_pages: spec.data_pages_per_block(),
            pools_per_chip,
            blocks_per_pool: g.planes_per_chip * g.blocks_per_plane / pools_per_chip,
            exported_pages: spec.exported_pages(),
            usable_per_plane: spec.usable_blocks_per_plane(),
            stride_pages: spec.ftl.stride_pages,
            erase_limit: spec.wear.erase_limit.map_or(u32::MAX, NonZeroU32::get),
            endurance_spread: saturating_u32(percent_of(
                1 << 16,
                spec.wear.endurance_spread_percent,
            )),
            least_worn_first: levelling.least_worn_first,
            wear_aware: levelling.wear_aware,
            erases_behind: levelling.erases_behind,
            free_count_bias: match &spec.nand {
                Nand::Msr(msr) if !msr.copy_back => 1,
                _ => 0,
            },
            streams: spec.write_streams(),
            hot_pages: spec.hot_pages_per_block(),
            // Only the back end `modern` can have blocks in SLC mode. The pools of this back end are chips.
            slc_blocks: spec.slc_blocks_chip(),
            apart: match spec.ftl.separation {
                Separation::None if spec.slc_cache().is_some() => Apart::Cached,
                Separation::None | Separation::Policy => match spec.moves() {
                    Moves::Cold => Apart::AsAsked,
                    Moves::Victim => Apart::AsVictim,
                    Moves::Class => Apart::ByClass,
                },
                Separation::Gc => Apart::Moved,
                Separation::Region => Apart::Below(saturating_u32(percent_of(
                    spec.exported_pages().into(),
                    spec.ftl.region_percent,
                ))),
            },
            superblocks: spec.gc.has_superblocks(),
        }
    }
}
