//! Checks that the settings of a device do not contradict each other.
//!
//! The type and the range of each single value have been checked before.

mod collection;

use super::section::{section_of, Values};
use super::{
    AllocationPool, Assign, Buffer, Cell, DeviceSpec, Ftl, Gc, Geometry, Host, ModernNand, MsrNand,
    Nand, Placement, Published, Separation, SlcCache, Timing,
};
use crate::buffer::ChosenPolicy;
use crate::component::{size, Kind, Pages};
use crate::ftl::{chip, LEAD_MAX};
use crate::units::Time;

/// Largest number of pages. Page numbers have 32 bits, and the largest number means "no page".
const PAGES_MAX: u64 = u32::MAX as u64 - 1;
/// Longest transfer of a page.
const PAGE_TRANSFER_MAX: Time = Time::from_s(1);
/// Permitted numbers of logical pages per flash page.
const FLASH_PAGE_PAGES: std::ops::RangeInclusive<u32> = 1..=64;

/// Reports all contradictions, each as key and message.
pub(super) fn check(spec: &DeviceSpec, v: &Values, report: &mut dyn FnMut(&str, String)) {
    // The checks below run only if the geometry is valid. Otherwise, the quantities with which they compute have no
    // bounds.
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
        let instead = Buffer::partial;
        report(
            Ftl::partial.name(),
            format!("has no effect with a buffer: leave it out, or set {instead} instead"),
        );
    }
    if let Some(buffer) = &spec.buffer {
        let bytes = v.setting(&Buffer::capacity_pages);
        if capacity(spec, bytes, report) {
            windows(buffer, report);
        }
        pauses(buffer, report);
    }
}

fn published(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let section = section_of(&Published::source.doc);
    for (name, least) in &spec.published.figures {
        let Some(figure) = name.strip_suffix("_min") else {
            continue;
        };
        let most = spec.published.figure(&format!("{figure}_max"));
        if let Some(most) = most.filter(|most| least > most) {
            report(
                &format!("{section}.{name}"),
                format!("found {least}; must be at most {section}.{figure}_max = {most}"),
            );
        }
    }
}

fn geometry(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) -> bool {
    let g = &spec.geometry;
    let mut sound = true;
    if !g.page_bytes.is_multiple_of(512) || g.page_bytes == 0 {
        report(
            Geometry::page_bytes.name(),
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
            Geometry::blocks_per_plane.name(),
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
            Timing::transfer_per_byte.name(),
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

/// Checks that there are enough queues for all priority classes, and that NVMe permits the burst size.
fn queues(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let host = &spec.host;
    if host.burst > 0 && !host.burst.is_power_of_two() {
        let burst = host.burst;
        report(
            Host::burst.name(),
            format!("found {burst}; must be 0, 1, 2, 4, 8, 16, 32 or 64"),
        );
    }
    let classed: u32 = host.classes().iter().sum();
    if classed > host.queues {
        let queues = host.queues;
        report(
            Host::queues.name(),
            format!(
                "found {queues}; must be at least the {classed} that are urgent, high and medium"
            ),
        );
    }
    if host.assign == Assign::Kind && host.queues < 2 {
        report(
            Host::assign.name(),
            format!(
                "found \"kind\"; needs {} of 2 or more: must be \"turn\"",
                Host::queues
            ),
        );
    }
}

/// Checks that the reserve has more blocks than the open blocks and the low watermark together. With a smaller reserve,
/// a full device could not collect.
fn reserve(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let exported = spec.pages_per_chip_exported();
    let stride = spec.ftl.stride_pages;
    if !exported.is_multiple_of(stride) {
        report(
            Ftl::stride_pages.name(),
            format!("found {stride}; must divide the {exported} pages a chip exports"),
        );
    }
    if let Some(setup) = spec.chip_setup() {
        return translation_layer(&setup, report);
    }
    let (low, reserve) = (spec.gc.low_percent, spec.geometry.reserve_percent);
    if low >= reserve {
        let key = Geometry::reserve_percent;
        let message = format!("found {low}; must be below {key} = {reserve}");
        report(Gc::low_percent.name(), message);
        return;
    }
    pool_of(spec).check(spec, report);
}

/// Numbers of blocks of a pool: a set of blocks that is collected independently of other sets.
struct Pool {
    name: &'static str,
    blocks: u32,
    /// Number of free blocks at which collection starts.
    low: u32,
    spare: u32,
    /// Number of open blocks.
    active: u32,
}

fn pool_of(spec: &DeviceSpec) -> Pool {
    let g = &spec.geometry;
    let reserved = spec.reserved_blocks_per_plane();
    if spec.copy_back() && matches!(spec.nand, Nand::Msr(_)) {
        return Pool {
            name: "plane",
            blocks: g.blocks_per_plane,
            low: spec.low_blocks_plane(),
            spare: reserved,
            active: spec.write_streams(),
        };
    }
    Pool {
        name: "chip",
        blocks: spec.blocks_per_chip(),
        low: spec.low_blocks_chip(),
        spare: reserved * g.planes_per_chip,
        active: match spec.gc.has_superblocks() {
            true => 1 + LEAD_MAX,
            false => spec.write_streams(),
        },
    }
}

impl DeviceSpec {
    /// Returns the number of spare blocks of a pool (a set of blocks that is collected on its own): the blocks that are
    /// not filled by logical pages. A pool is a plane if the `msr` back end uses copy-back, otherwise a chip.
    pub fn spare_blocks_pool(&self) -> u32 {
        pool_of(self).spare
    }
}

impl Pool {
    fn check(&self, spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
        let Pool {
            name,
            blocks,
            low,
            spare,
            active,
        } = self;
        if *low == 0 {
            // The value is rounded up, so that the value suggested in the message is large enough.
            let least = (1e6 / f64::from(*blocks)).ceil() / 1e4;
            report(
                Gc::low_percent.name(),
                format!(
                    "{} % of the {blocks} blocks of a {name} are no whole block; must be at least \
                     {least} so that collection starts before the last block is gone",
                    spec.gc.low_percent
                ),
            );
        } else if *spare <= low + active {
            report(
                Geometry::reserve_percent.name(),
                format!(
                    "{} % reserve {spare} of the {blocks} blocks of a {name}; must be more than {} \
                     ({low} that start collection and {active} being written), or a full device \
                     cannot run",
                    spec.geometry.reserve_percent,
                    low + active
                ),
            );
        }
    }
}

/// Checks that a chip has enough blocks for its translation layer.
fn translation_layer(setup: &chip::Setup, report: &mut dyn FnMut(&str, String)) {
    let Err(error) = setup.check() else { return };
    let kind = Ftl::kind;
    let key = match error.parameter() {
        Some(parameter) => format!("{}.{parameter}", section_of(&kind.doc)),
        None => Geometry::reserve_percent.name().to_owned(),
    };
    report(&key, format!("with {kind} = {:?}: {error}", setup.name()));
}

fn back_end(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let g = &spec.geometry;
    match &spec.nand {
        Nand::Msr(msr) => check_msr(spec, msr, report),
        Nand::Modern(modern) => {
            check_modern(spec, modern, report);
            if g.channels > g.chips || !g.chips.is_multiple_of(g.channels) {
                let (found, key, chips) = (g.channels, Geometry::chips, g.chips);
                let message = format!("found {found}; must divide {key} = {chips}");
                report(Geometry::channels.name(), message);
            }
        }
    }
}

/// Checks that parallel units consist of whole planes. Also checks the settings that need copy-back or another back
/// end.
fn check_msr(spec: &DeviceSpec, msr: &MsrNand, report: &mut dyn FnMut(&str, String)) {
    let (units, planes) = (msr.parallel_units, spec.geometry.planes_per_chip);
    let copy_back = MsrNand::copy_back;
    let wrong = if !matches!(units, 1 | 2 | 4) {
        Some("must be 1, 2 or 4".to_owned())
    } else if !msr.copy_back && units != 1 {
        Some(format!(
            "without copy-back a chip serves one page at a time: must be 1, or set {copy_back} = true"
        ))
    } else if !planes.is_multiple_of(units) {
        let key = Geometry::planes_per_chip;
        Some(format!("must divide {key} = {planes}"))
    } else {
        None
    };
    if let Some(wrong) = wrong {
        let message = format!("found {units}; {wrong}");
        report(MsrNand::parallel_units.name(), message);
    }
    if !msr.copy_back && msr.allocation_pool == AllocationPool::Plane {
        report(
            MsrNand::allocation_pool.name(),
            format!(
                "found \"plane\"; without copy-back a chip has one write pointer: must be \
                 \"chip\", or set {copy_back} = true"
            ),
        );
    }
    if spec.ftl.placement == Placement::Dynamic {
        report(
            Ftl::placement.name(),
            format!(
                "found \"dynamic\"; the \"msr\" back end places pages as the reference does: \
                 must be \"static\", or set {} = \"modern\"",
                DeviceSpec::nand
            ),
        );
    }
}

/// Checks that blocks consist of whole programs. Also checks that host reads have priority if they can suspend other
/// operations.
fn check_modern(spec: &DeviceSpec, modern: &ModernNand, report: &mut dyn FnMut(&str, String)) {
    let (page, pages) = (spec.geometry.page_bytes, spec.geometry.pages_per_block);
    if !FLASH_PAGE_PAGES.contains(&spec.flash_page_pages()) {
        report(
            Geometry::flash_page_bytes.name(),
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
            ModernNand::multi_plane.name(),
            format!(
                "found {}; the {unit} pages of a program must divide {} = {pages}",
                modern.multi_plane,
                Geometry::pages_per_block
            ),
        );
    }
    if modern.slc_cache.is_some() {
        check_slc_cache(spec, modern, report);
    }
    if modern.suspend && !modern.read_priority {
        let instead = ModernNand::read_priority;
        report(
            ModernNand::suspend.name(),
            format!(
                "found true; reads that wait in line stop nothing: must be false, or set \
                 {instead} = true"
            ),
        );
    }
}

/// Checks the SLC write cache. It must have at least one block, and a block in SLC mode must have at least one row.
/// Cells must have several bits, and no other setting may separate pages.
fn check_slc_cache(spec: &DeviceSpec, modern: &ModernNand, report: &mut dyn FnMut(&str, String)) {
    let wrong = if modern.cell == Cell::Slc {
        let cell = ModernNand::cell;
        format!("with {cell} = \"slc\" all blocks are in SLC mode: must be 0")
    } else if spec.ftl.separation != Separation::None || spec.policy_separates() {
        let separation = Ftl::separation;
        format!("must be 0 where pages are kept apart by {separation} or by the buffer policy")
    } else if spec.ftl.summary_page {
        format!("must be 0 with {} = true", Ftl::summary_page)
    } else if spec.slc_blocks_chip() == 0 {
        let blocks = spec.blocks_per_chip();
        format!("is no whole block of the {blocks} of a chip; must be more, or 0")
    } else if spec.hot_pages_per_block() == 0 {
        "a block in SLC mode would not have a row; must be 0".into()
    } else {
        return;
    };
    report(SlcCache::percent.name(), wrong);
}

/// Checks that a list of times has either one entry, or one entry for each page type of the cell.
fn page_types(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let (types, cell) = match &spec.nand {
        Nand::Msr(_) => (1, "the \"msr\" back end".into()),
        Nand::Modern(modern) => {
            let cell = modern.cell;
            let key = ModernNand::cell;
            (cell.page_types(), format!("{key} = {:?}", cell.name()))
        }
    };
    for (key, times) in [
        (Timing::read_by_type.name(), &spec.timing.read_by_type),
        (Timing::program_by_type.name(), &spec.timing.program_by_type),
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

/// Checks that the buffer has a whole number of pages, and not more pages than the flash. Returns false if the buffer
/// has less than one page.
fn capacity(spec: &DeviceSpec, bytes: u64, report: &mut dyn FnMut(&str, String)) -> bool {
    let page = u64::from(spec.geometry.page_bytes);
    let key = Buffer::capacity_pages.name();
    let (found, page_size) = (size(bytes), size(page));
    if bytes < page {
        let message = format!("found {found}; must be at least one page of {page_size}");
        report(key, message);
        return false;
    }
    if !bytes.is_multiple_of(page) {
        let below = bytes - bytes % page;
        let (below, above) = (size(below), size(below + page));
        let message =
            format!("found {found}; must be whole pages of {page_size}: {below} or {above}");
        report(key, message);
    }
    if bytes > spec.raw_bytes() {
        let flash = size(spec.raw_bytes());
        let message = format!("found {found}; must be at most the {flash} of flash behind it");
        report(key, message);
    }
    true
}

/// Checks that the windows of the policy are not larger than the buffer. The size of the read cache, and parameters that
/// may exceed the buffer (such as the number of pages that the policy remembers), must be at most [`BEYOND_MAX`].
fn windows(buffer: &Buffer, report: &mut dyn FnMut(&str, String)) {
    let mut at_most = |key: &str, pages, most, what: &str| {
        if pages > most {
            let message = format!("comes to {pages} pages; must be at most {what}");
            report(key, message);
        }
    };
    let beyond = BEYOND_MAX.to_string();
    at_most(
        Buffer::read_cache_pages.name(),
        buffer.read_cache_pages,
        BEYOND_MAX,
        &beyond,
    );
    let capacity = buffer.capacity_pages;
    let of_buffer = format!("the {capacity} pages of the buffer");
    let section = section_of(&Buffer::policy.doc);
    for parameter in ChosenPolicy::parameters(&buffer.policy.name()) {
        let key = format!("{section}.{}", parameter.key);
        let pages = || buffer.policy.settings.get::<Pages>(parameter.key).0;
        match parameter.kind {
            Kind::Window => at_most(&key, pages(), capacity, &of_buffer),
            Kind::Beyond => at_most(&key, pages(), BEYOND_MAX, &beyond),
            _ => {}
        }
    }
}

/// Checks that a pause ends before the next one begins; a pause in which programs begin may last forever. If pauses have
/// length 0, their interval must be 0, too.
fn pauses(buffer: &Buffer, report: &mut dyn FnMut(&str, String)) {
    let (pause, every) = (buffer.pause, buffer.pause_every);
    let (pause_key, every_key) = (Buffer::pause.name(), Buffer::pause_every.name());
    let steady = every == pause && buffer.pause_pages_per_s > 0;
    if pause > Time::ZERO && every <= pause && !steady {
        report(every_key, format!("must be more than {pause_key}"));
    }
    if pause == Time::ZERO && every > Time::ZERO {
        report(every_key, format!("has no effect with {pause_key} = 0"));
    }
    if pause == Time::ZERO && buffer.pause_pages_per_s > 0 {
        let rate_key = Buffer::pause_pages_per_s.name();
        report(rate_key, format!("has no effect with {pause_key} = 0"));
    }
}

/// Largest number of pages in a read cache, and largest number of pages that a policy remembers.
const BEYOND_MAX: u32 = 1 << 28;
