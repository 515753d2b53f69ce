//! From values to the types of a [`DeviceSpec`].

use super::convert::Value;
use super::decimal::{scale, Rounding};
use super::policy::PolicyParams;
use super::read::Values;
use super::{
    AllocationPool, Buffer, DeviceSpec, EvictMode, Ftl, Gc, Geometry, Link, ModernNand, MsrNand,
    Nand, Partial, Placement, PlaneMapping, Policy, Timing, Wear,
};

/// The buffer section before it became pages.
pub(super) struct BufferBytes {
    pub capacity: u64,
}

/// The spec that the values describe, not yet checked as a whole.
pub(super) fn build(v: &Values) -> (DeviceSpec, Option<BufferBytes>) {
    let chips = v.count("geometry.chips");
    let is_msr = v.text("nand.backend") == "msr";
    let page_bytes = v.number("geometry.page_bytes").min(u32::MAX.into()) as u32;
    let (buffer, bytes) = match v.has("buffer.capacity") {
        true => {
            let (buffer, bytes) = build_buffer(v, page_bytes);
            (Some(buffer), Some(bytes))
        }
        false => (None, None),
    };
    let spec = DeviceSpec {
        name: v.text("name").into(),
        description: v.text("description").into(),
        geometry: Geometry {
            chips,
            channels: if is_msr {
                chips
            } else {
                v.count("geometry.channels")
            },
            planes_per_chip: v.count("geometry.planes_per_chip"),
            blocks_per_plane: v.count("geometry.blocks_per_plane"),
            pages_per_block: v.count("geometry.pages_per_block"),
            page_bytes,
            spare_bytes_per_sector: v.count("geometry.spare_bytes_per_sector"),
            reserve_percent: v.float("geometry.reserve_percent"),
        },
        timing: Timing {
            read: v.time("timing.read_us"),
            program: v.time("timing.program_us"),
            erase: v.time("timing.erase_us"),
            transfer_per_byte: v.time("timing.transfer_ns_per_byte"),
        },
        link: Link {
            command_overhead: v.time("link.command_overhead_us"),
            bus_per_sector: v.time("link.bus_ns_per_sector"),
        },
        nand: match is_msr {
            true => Nand::Msr(MsrNand {
                parallel_units: v.count("nand.parallel_units"),
                copy_back: v.flag("nand.copy_back"),
                plane_mapping: match v.text("nand.plane_mapping") {
                    "concatenated" => PlaneMapping::Concatenated,
                    _ => PlaneMapping::Striped,
                },
                allocation_pool: match v.text("nand.allocation_pool") {
                    "plane" => AllocationPool::Plane,
                    _ => AllocationPool::Chip,
                },
                cleaning_in_background: v.flag("nand.cleaning_in_background"),
            }),
            false => Nand::Modern(ModernNand {
                read_priority: v.flag("nand.read_priority"),
                copy_back: v.flag("nand.copy_back"),
                background_gc: v.flag("nand.background_gc"),
            }),
        },
        ftl: Ftl {
            placement: match v.text("ftl.placement") {
                "dynamic" => Placement::Dynamic,
                _ => Placement::Static,
            },
            stride_pages: match v.has("ftl.stride_pages") {
                true => v.count("ftl.stride_pages"),
                false => 1,
            },
            summary_page: v.flag("ftl.summary_page"),
        },
        gc: Gc {
            low_percent: v.float("gc.low_percent"),
        },
        wear: Wear {
            erase_limit: match v.count("wear.erase_limit") {
                0 => None,
                limit => Some(limit),
            },
        },
        buffer,
    };
    (spec, bytes)
}

fn build_buffer(v: &Values, page_bytes: u32) -> (Buffer, BufferBytes) {
    let capacity = v.number("buffer.capacity");
    let pages = capacity / u64::from(page_bytes.max(1));
    let capacity_pages = pages.min(u32::MAX.into()) as u32;
    let mut params = PolicyParams::defaults(capacity_pages);
    match v.get("buffer.window") {
        Some(Value::Number(pages)) => params.window_pages = *pages as u32,
        Some(Value::Float(share)) => {
            // A share rounds down, but only a share of zero is no page at all.
            let pages = scale(*share, capacity_pages.into(), 1, Rounding::Down).unwrap_or(0);
            params.window_pages = pages.max(u64::from(*share > 0.0)) as u32;
        }
        _ => {}
    }
    let buffer = Buffer {
        capacity_pages,
        policy: Policy::from_name(v.text("buffer.policy"), &params)
            .expect("the name was checked against the list"),
        evict: match v.text("buffer.evict") {
            "background" => EvictMode::Background(v.count("buffer.background_depth")),
            _ => EvictMode::Blocking,
        },
        partial: match v.text("buffer.partial") {
            "sectors" => Partial::Sectors,
            _ => Partial::Round,
        },
        latency: v.time("buffer.latency_us"),
        power_loss_protection: v.flag("buffer.power_loss_protection"),
    };
    (buffer, BufferBytes { capacity })
}
