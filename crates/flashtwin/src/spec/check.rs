//! What must hold between the numbers of a device.
//!
//! Each number alone is already of its kind and within its own limits.

mod collection;

use super::{AllocationPool, Assign, Cell, DeviceSpec, ModernNand, Nand, Placement, Separation};
use crate::buffer::ChosenPolicy;
use crate::component::{size, Kind, Pages};
use crate::ftl::{chip, LEAD_MAX};
use crate::units::Time;

/// Page numbers are 32-bit, and the last one means "none".
const PAGES_MAX: u64 = u32::MAX as u64 - 1;
/// Longest transfer of a page.
const PAGE_TRANSFER_MAX: Time = Time::from_s(1);
/// Pages of the map in a flash page.
const FLASH_PAGE_PAGES: std::ops::RangeInclusive<u32> = 1..=64;

/// Reports every contradiction as (key, message).
pub(super) fn check(
    spec: &DeviceSpec,
    buffer_bytes: Option<u64>,
    report: &mut dyn FnMut(&str, String),
) {
    // Later checks compute with what earlier ones have bounded.
    if !geometry(spec, report) {
        return;
    }
    queues(spec, report);
    reserve(spec, report);
    collection::check(spec, report);
    back_end(spec, report);
    page_types(spec, report);
    published(spec, report);
    if spec.ftl.partial.is_some() && spec.buffer.is_some() {
        report(
            "ftl.partial",
            "has no effect with a buffer: leave it out, or set buffer.partial instead".into(),
        );
    }
    if let Some(bytes) = buffer_bytes {
        check_buffer(spec, bytes, report);
    }
}

fn published(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    for (name, least) in &spec.published.figures {
        let Some(figure) = name.strip_suffix("_min") else {
            continue;
        };
        let most = spec.published.figure(&format!("{figure}_max"));
        if let Some(most) = most.filter(|most| least > most) {
            report(
                &format!("published.{name}"),
                format!("found {least}; must be at most published.{figure}_max = {most}"),
            );
        }
    }
}

fn geometry(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) -> bool {
    let g = &spec.geometry;
    let mut sound = true;
    if !g.page_bytes.is_multiple_of(512) || g.page_bytes == 0 {
        report(
            "geometry.page_bytes",
            format!(
                "found {}; must be a multiple of 512 bytes from 512 bytes to 1 MiB (it need not \
                 be a power of two)",
                size(g.page_bytes.into())
            ),
        );
        sound = false;
    }
    let pages = [
        g.chips,
        g.planes_per_chip,
        g.blocks_per_plane,
        g.pages_per_block,
    ]
    .iter()
    .map(|&n| u64::from(n))
    .product::<u64>();
    if pages > PAGES_MAX {
        report(
            "geometry.blocks_per_plane",
            format!(
                "{} chips of {} planes of {} blocks of {} pages make {pages} pages; must be at \
                 most {PAGES_MAX}",
                g.chips, g.planes_per_chip, g.blocks_per_plane, g.pages_per_block
            ),
        );
        sound = false;
    }
    if sound && spec.page_transfer() > PAGE_TRANSFER_MAX {
        report(
            "timing.transfer_ns_per_byte",
            format!(
                "a page of {} would take {}; must be at most {PAGE_TRANSFER_MAX}",
                size(g.page_bytes.into()),
                spec.page_transfer()
            ),
        );
        sound = false;
    }
    sound
}

/// Every queue has one class, and bursts are those of NVMe.
fn queues(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let host = &spec.host;
    if host.burst > 0 && !host.burst.is_power_of_two() {
        let burst = host.burst;
        report(
            "host.burst",
            format!("found {burst}; must be 0, 1, 2, 4, 8, 16, 32 or 64"),
        );
    }
    let classed: u32 = host.classes.iter().sum();
    if classed > host.queues {
        let queues = host.queues;
        report(
            "host.queues",
            format!(
                "found {queues}; must be at least the {classed} that are urgent, high and medium"
            ),
        );
    }
    if host.assign == Assign::Kind && host.queues < 2 {
        report(
            "host.assign",
            "found \"kind\"; needs host.queues of 2 or more: must be \"turn\"".into(),
        );
    }
}

/// The reserve must carry the active blocks and the low watermark, or a full device stands still.
fn reserve(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let g = &spec.geometry;
    let exported = spec.pages_per_chip_exported();
    let stride = spec.ftl.stride_pages;
    if !exported.is_multiple_of(stride) {
        report(
            "ftl.stride_pages",
            format!("found {stride}; must divide the {exported} pages a chip exports"),
        );
    }
    if let Some(setup) = spec.chip_setup() {
        return translation_layer(&setup, report);
    }
    let low_percent = spec.gc.low_percent;
    if low_percent >= g.reserve_percent {
        report(
            "gc.low_percent",
            format!(
                "found {low_percent}; must be below geometry.reserve_percent = {}",
                g.reserve_percent
            ),
        );
        return;
    }
    let reserved = spec.reserved_blocks_per_plane();
    let pools_are_planes = spec.copy_back() && matches!(spec.nand, Nand::Msr(_));
    let (pool, blocks, low, spare, active) = match pools_are_planes {
        true => (
            "plane",
            g.blocks_per_plane,
            spec.low_blocks_plane(),
            reserved,
            spec.write_streams(),
        ),
        false => {
            let spare = reserved * g.planes_per_chip;
            (
                "chip",
                spec.blocks_per_chip(),
                spec.low_blocks_chip(),
                spare,
                match spec.gc.superblocks {
                    true => 1 + LEAD_MAX,
                    false => spec.write_streams(),
                },
            )
        }
    };
    if low == 0 {
        // Rounded up, so that what the message asks for is enough.
        let least = (1e6 / f64::from(blocks)).ceil() / 1e4;
        report(
            "gc.low_percent",
            format!(
                "{low_percent} % of the {blocks} blocks of a {pool} are no whole block; must be \
                 at least {least} so that collection starts before the last block is gone"
            ),
        );
    } else if spare <= low + active {
        report(
            "geometry.reserve_percent",
            format!(
                "{} % reserve {spare} of the {blocks} blocks of a {pool}; must be more than {} \
                 ({low} that start collection and {active} being written), or a full device \
                 cannot run",
                g.reserve_percent,
                low + active
            ),
        );
    }
}

/// A chip must have the blocks that its translation layer needs.
fn translation_layer(setup: &chip::Setup, report: &mut dyn FnMut(&str, String)) {
    let Err(error) = setup.check() else { return };
    let key = match error.parameter() {
        Some(parameter) => format!("ftl.{parameter}"),
        None => "geometry.reserve_percent".to_owned(),
    };
    report(&key, format!("with ftl.kind = {:?}: {error}", setup.name()));
}

fn back_end(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let g = &spec.geometry;
    match &spec.nand {
        Nand::Msr(msr) => {
            let units = msr.parallel_units;
            if !matches!(units, 1 | 2 | 4) {
                report(
                    "nand.parallel_units",
                    format!("found {units}; must be 1, 2 or 4"),
                );
            } else if !msr.copy_back && units != 1 {
                report(
                    "nand.parallel_units",
                    format!(
                        "found {units}; without copy-back a chip serves one page at a time: must \
                         be 1, or set nand.copy_back = true"
                    ),
                );
            } else if !g.planes_per_chip.is_multiple_of(units) {
                report(
                    "nand.parallel_units",
                    format!(
                        "found {units}; must divide geometry.planes_per_chip = {}",
                        g.planes_per_chip
                    ),
                );
            }
            if !msr.copy_back && msr.allocation_pool == AllocationPool::Plane {
                report(
                    "nand.allocation_pool",
                    "found \"plane\"; without copy-back a chip has one write pointer: must be \
                     \"chip\", or set nand.copy_back = true"
                        .into(),
                );
            }
            if spec.ftl.placement == Placement::Dynamic {
                report(
                    "ftl.placement",
                    "found \"dynamic\"; the \"msr\" back end places pages as the reference does: \
                     must be \"static\", or set nand.backend = \"modern\""
                        .into(),
                );
            }
        }
        Nand::Modern(modern) => {
            check_modern(spec, modern, report);
            if g.channels > g.chips || !g.chips.is_multiple_of(g.channels) {
                report(
                    "geometry.channels",
                    format!(
                        "found {}; must divide geometry.chips = {}",
                        g.channels, g.chips
                    ),
                );
            }
        }
    }
}

/// Rows must be whole, and a host read must be able to overtake what it stops.
fn check_modern(spec: &DeviceSpec, modern: &ModernNand, report: &mut dyn FnMut(&str, String)) {
    let (page, pages) = (spec.geometry.page_bytes, spec.geometry.pages_per_block);
    if !FLASH_PAGE_PAGES.contains(&modern.flash_page_pages) {
        report(
            "geometry.flash_page_bytes",
            format!(
                "must be whole pages of {}, from 1 to {}",
                size(page.into()),
                FLASH_PAGE_PAGES.end()
            ),
        );
        return;
    }
    let unit = spec.pages_per_program();
    if !pages.is_multiple_of(unit) {
        report(
            "nand.multi_plane",
            format!(
                "found {}; the {unit} pages of a program must divide geometry.pages_per_block = \
                 {pages}",
                modern.multi_plane
            ),
        );
    }
    if modern.slc_cache.is_some() {
        check_slc_cache(spec, modern, report);
    }
    if modern.suspend && !modern.read_priority {
        report(
            "nand.suspend",
            "found true; reads that wait in line stop nothing: must be false, or set \
             nand.read_priority = true"
                .into(),
        );
    }
}

/// A cache has a block at least, of a row at least, and cells of several bits; what the host writes goes to it
/// and nothing else separates pages.
fn check_slc_cache(spec: &DeviceSpec, modern: &ModernNand, report: &mut dyn FnMut(&str, String)) {
    let wrong = if modern.cell == Cell::Slc {
        "with nand.cell = \"slc\" all blocks are in SLC mode: must be 0".into()
    } else if spec.ftl.separation != Separation::None || spec.policy_separates() {
        "must be 0 where pages are kept apart by ftl.separation or by the buffer policy".into()
    } else if spec.ftl.summary_page {
        "must be 0 with ftl.summary_page = true".into()
    } else if spec.slc_blocks_chip() == 0 {
        let blocks = spec.blocks_per_chip();
        format!("is no whole block of the {blocks} of a chip; must be more, or 0")
    } else if spec.hot_pages_per_block() == 0 {
        "a block in SLC mode would not have a row; must be 0".into()
    } else {
        return;
    };
    report("nand.pslc_percent", wrong);
}

/// A list by page type has one entry for each type of the cell.
fn page_types(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let (types, cell) = match &spec.nand {
        Nand::Msr(_) => (1, "the \"msr\" back end".into()),
        Nand::Modern(modern) => {
            let cell = modern.cell;
            (cell.page_types(), format!("nand.cell = {:?}", cell.name()))
        }
    };
    for (key, times) in [
        ("timing.read_us", &spec.timing.read_by_type),
        ("timing.program_us", &spec.timing.program_by_type),
    ] {
        let n = times.len();
        if n != 1 && n != types {
            let wanted = match types {
                1 => "one number".into(),
                _ => format!("one number or {types}"),
            };
            report(
                key,
                format!("found a list of {n}; with {cell} must be {wanted}"),
            );
        }
    }
}

fn check_buffer(spec: &DeviceSpec, capacity: u64, report: &mut dyn FnMut(&str, String)) {
    let page = u64::from(spec.geometry.page_bytes);
    let Some(buffer) = &spec.buffer else { return };
    if capacity < page {
        report(
            "buffer.capacity",
            format!(
                "found {}; must be at least one page of {}",
                size(capacity),
                size(page)
            ),
        );
        return;
    }
    if !capacity.is_multiple_of(page) {
        let below = capacity - capacity % page;
        report(
            "buffer.capacity",
            format!(
                "found {}; must be whole pages of {}: {} or {}",
                size(capacity),
                size(page),
                size(below),
                size(below + page)
            ),
        );
    }
    if capacity > spec.raw_bytes() {
        report(
            "buffer.capacity",
            format!(
                "found {}; must be at most the {} of flash behind it",
                size(capacity),
                size(spec.raw_bytes())
            ),
        );
    }
    let window = |key, pages, most, what: &str| {
        (pages > most).then(|| {
            (
                key,
                format!("comes to {pages} pages; must be at most {what}"),
            )
        })
    };
    let of_buffer = format!("the {} pages of the buffer", buffer.capacity_pages);
    let beyond = |key, pages| window(key, pages, BEYOND_MAX, &BEYOND_MAX.to_string());
    let read_cache = beyond("buffer.read_cache".to_owned(), buffer.read_cache_pages);
    let of_policy = ChosenPolicy::parameters(&buffer.policy.name()).filter_map(|parameter| {
        let key = format!("buffer.{}", parameter.key);
        let pages = || buffer.policy.settings.get::<Pages>(parameter.key).0;
        match parameter.kind {
            Kind::Window => window(key, pages(), buffer.capacity_pages, &of_buffer),
            Kind::Beyond => beyond(key, pages()),
            _ => None,
        }
    });
    for (key, message) in read_cache.into_iter().chain(of_policy) {
        report(&key, message);
    }
}

/// Most pages of a read cache, and most that a policy remembers.
const BEYOND_MAX: u32 = 1 << 28;
