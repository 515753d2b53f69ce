//! The keys of a device file: what each takes, its default, what it does, where it comes from.
//!
//! This table is what the reader checks against, what suggestions for unknown keys come from, and
//! what `docs/devices.md` and `flashtwin device show` print. The parameters of policies stand in their own
//! files (`crate::component`); any other new key is a row here, a line in `build.rs` and one in `write.rs`.

use std::sync::LazyLock;

use super::{
    AllocationPool, Arbitration, Assign, BackendWord, Cell, EvictWord, Granularity, LinkWord,
    Moves, Partial, Placement, PlaneMapping, SeparationWord, Watermark,
};
use crate::buffer::catalog::{entries, FILTER};
use crate::buffer::ChosenPolicy;
use crate::component::{Component, Kind, Parameter};
use crate::ftl::{chip, LEVELLING};
use crate::gc;

/// One key of a device file.
#[derive(Clone, Copy, Debug)]
pub struct KeyDoc {
    /// Dotted: `buffer.capacity`.
    pub key: &'static str,
    /// What it takes, with its unit.
    pub kind: Kind,
    /// TOML text of the default; `None`: the key must be given.
    pub default: Option<&'static str>,
    /// The key has a meaning only when every one of these selectors has one of these values.
    pub only: &'static [(&'static str, &'static [&'static str])],
    /// What it does.
    pub doc: &'static str,
    /// Where the key or its default comes from.
    pub provenance: &'static str,
}

const U32: u32 = u32::MAX - 1;
/// A flash step or a request's overhead: a second. Real ones stay below 20 ms.
const STEP_US: u32 = 1_000_000;
/// Transfer of a byte or a sector: a millisecond.
const TRANSFER_NS: u32 = 1_000_000;
/// Larger than any device of 2^32 pages could use.
const SIZE: u64 = 1 << 52;

const MODERN: &[(&str, &[&str])] = &[("nand.backend", &["modern"])];
const PAGE: &[(&str, &[&str])] = &[("ftl.kind", &["page"])];
const MSR_PAGE: &[(&str, &[&str])] = &[("nand.backend", &["msr"]), ("ftl.kind", &["page"])];
const MODERN_PAGE: &[(&str, &[&str])] = &[("nand.backend", &["modern"]), ("ftl.kind", &["page"])];
const MODERN_BLOCKS: &[(&str, &[&str])] = &[
    ("nand.backend", &["modern"]),
    ("ftl.kind", &["page"]),
    ("gc.granularity", &["block"]),
];
const WEIGHTED: &[(&str, &[&str])] = &[("host.arbitration", &["weighted"])];
const REFERENCE: &[(&str, &[&str])] = &[("link.kind", &["reference"])];
const PCIE: &[(&str, &[&str])] = &[("link.kind", &["pcie"])];
const STATIC: &[(&str, &[&str])] = &[("ftl.placement", &["static"])];
const BACKGROUND: &[(&str, &[&str])] = &[("buffer.evict", &["background"])];

/// The default of a key that may be left out and then follows another.
pub(super) const OPTIONAL: Option<&str> = Some("none");

/// All keys, section by section in the order of [`DeviceSpec`](super::DeviceSpec).
pub fn keys() -> &'static [KeyDoc] {
    static KEYS: LazyLock<Vec<KeyDoc>> = LazyLock::new(|| {
        let of_the_device = OF_THE_DEVICE
            .iter()
            .flat_map(|doc| match components(doc.key) {
                Some(components) => with_components(doc, &components),
                None => vec![*doc],
            });
        let rest = of_policies().into_iter().chain(PUBLISHED.iter().copied());
        of_the_device.chain(rest).collect()
    });
    &KEYS
}

/// The components that a key chooses among.
fn components(key: &str) -> Option<Vec<Component>> {
    match key {
        "gc.victim" => Some(gc::RULES.to_vec()),
        "wear.levelling" => Some(LEVELLING.to_vec()),
        "ftl.kind" => {
            let page = Component {
                name: PAGE_MAP,
                line: "a map of all pages in memory",
                parameters: &[],
            };
            let layers = chip::ENTRIES.iter().map(|entry| Component {
                name: entry.name,
                line: "",
                parameters: entry.parameters,
            });
            Some([page].into_iter().chain(layers).collect())
        }
        _ => None,
    }
}

/// The value of `ftl.kind` that is no layer of a chip.
pub(super) const PAGE_MAP: &str = "page";

/// A key that chooses among components, with their names and what they do, and their parameters behind it.
pub(super) fn with_components(doc: &KeyDoc, components: &[Component]) -> Vec<KeyDoc> {
    // What a static table would hold lives as long as the program.
    let names: Vec<&str> = components.iter().map(|component| component.name).collect();
    let said = components
        .iter()
        .filter(|component| !component.line.is_empty());
    let lines = said.map(|c| format!(" `{}`: {}.", c.name, c.line));
    let selector = KeyDoc {
        kind: Kind::Choice(names.leak()),
        doc: format!("{}{}", doc.doc, lines.collect::<String>()).leak(),
        ..*doc
    };
    let section = super::tree::split(doc.key).0;
    // Each parameter once, with those that have it.
    let mut found: Vec<(&Parameter, String, Vec<&str>)> = Vec::new();
    for component in components {
        for parameter in component.parameters {
            match found
                .iter_mut()
                .find(|(known, ..)| known.key == parameter.key)
            {
                Some((known, text, names)) => {
                    if known.doc != parameter.doc {
                        text.push_str(&format!(" `{}`: {}", component.name, parameter.doc));
                    }
                    names.push(component.name);
                }
                None => found.push((parameter, parameter.doc.into(), vec![component.name])),
            }
        }
    }
    let row = |(parameter, text, names): (&Parameter, String, Vec<&'static str>)| KeyDoc {
        key: format!("{section}.{}", parameter.key).leak(),
        kind: parameter.kind,
        default: Some(parameter.default),
        only: vec![(doc.key, &*names.leak())].leak(),
        doc: text.leak(),
        provenance: parameter.provenance,
    };
    [selector]
        .into_iter()
        .chain(found.into_iter().map(row))
        .collect()
}

/// The parameters of all policies, each with the names of those that have it.
fn of_policies() -> Vec<KeyDoc> {
    // Each parameter once, in the order of the catalog.
    let mut found: Vec<(&Parameter, bool, Vec<&str>)> = Vec::new();
    for entry in entries() {
        let name = if entry.name == FILTER {
            ANY_GCAR
        } else {
            entry.name
        };
        let own = entry.parameters.iter().copied().flatten();
        let with = |filtered| move |parameter| (parameter, filtered);
        let all = own
            .map(with(false))
            .chain(entry.filtered.iter().map(with(true)));
        for (parameter, filtered) in all {
            match found
                .iter_mut()
                .find(|(known, ..)| known.key == parameter.key)
            {
                Some((_, _, names)) => names.push(name),
                None => found.push((parameter, filtered, vec![name])),
            }
        }
    }
    // What a static table would hold lives as long as the program.
    let row = |(parameter, filtered, names): (&Parameter, bool, Vec<&'static str>)| {
        let mut only: Vec<(&str, &[&str])> = vec![(POLICY, names.leak())];
        only.extend(filtered.then_some((POLICY, &[ANY_GCAR][..])));
        KeyDoc {
            key: format!("buffer.{}", parameter.key).leak(),
            kind: parameter.kind,
            default: Some(parameter.default),
            only: only.leak(),
            doc: parameter.doc,
            provenance: parameter.provenance,
        }
    };
    found.into_iter().map(row).collect()
}

/// Keys that are parameters of the policy called `name`; for the filter those that it adds to its base's.
pub fn policy_keys(name: &str) -> Vec<&'static KeyDoc> {
    let of_filter = |doc: &&KeyDoc| {
        let mut names = ChosenPolicy::base_names();
        names.any(|name| doc.is_for_policy(&format!("gcar-{name}")) && !doc.is_for_policy(name))
    };
    let all = keys().iter().filter(|doc| doc.is_policy_parameter());
    match name {
        FILTER => all.filter(of_filter).collect(),
        _ => all.filter(|doc| doc.is_for_policy(name)).collect(),
    }
}

/// The key that names the policy.
pub(super) const POLICY: &str = "buffer.policy";

/// A row: key, kind, default, only, doc, provenance.
macro_rules! rows {
    ($($key:literal $kind:expr, $default:expr, $only:expr, $doc:literal, $from:literal;)*) => {
        &[$(KeyDoc {
            key: $key, kind: $kind, default: $default, only: $only, doc: $doc, provenance: $from,
        }),*]
    };
}

#[rustfmt::skip]
const OF_THE_DEVICE: &[KeyDoc] = rows![
    "name" Kind::Name, None, &[],
        "Short name of the device, printed with every result.", "ours";
    "description" Kind::Text, Some("\"\""), &[],
        "One line for people.", "ours";

    "geometry.chips" Kind::Count(1, 65_535), None, &[],
        "Chips (dies, \"elements\"): each does one thing at a time.", "GCaR, Harmonia, ECR";
    "geometry.channels" Kind::Count(1, 65_535), None, MODERN,
        "Channels shared by the chips; must divide `chips`. On `msr` each chip has its own pins: leave it out.", "published drives";
    "geometry.planes_per_chip" Kind::Count(1, 1024), None, &[],
        "Planes in a chip.", "GCaR, Harmonia, ECR";
    "geometry.blocks_per_plane" Kind::Count(1, 1 << 24), None, &[],
        "Erase blocks in a plane.", "GCaR, Harmonia, ECR";
    "geometry.pages_per_block" Kind::Count(2, 4096), None, &[],
        "Pages in an erase block.", "GCaR, Harmonia, ECR";
    "geometry.page_bytes" Kind::Size(1 << 20), None, &[],
        "Size of a page: a multiple of 512 bytes from 512 bytes to 1 MiB; it need not be a power of two.", "GCaR, Harmonia, ECR";
    "geometry.flash_page_bytes" Kind::Size(1 << 20), OPTIONAL, MODERN_PAGE,
        "A flash page, read and programmed at once: whole pages of the map; left out: `page_bytes`.", "published parts: 16 KiB";
    "geometry.spare_bytes_per_sector" Kind::Count(0, 512), Some("0"), &[],
        "Bytes moved over the pins with every 512-byte sector, beside the data (ECC, metadata).", "the reference: 16";
    "geometry.reserve_percent" Kind::Percent, None, &[],
        "Share of the blocks the host does not see; rounded down to whole blocks a plane.", "GCaR, Harmonia, ECR: 15";

    "timing.read_us" Kind::MicrosByType(STEP_US), None, &[],
        "Page read, array to register; with several bits a cell a list, lower page first.", "GCaR, Harmonia, ECR: 25";
    "timing.program_us" Kind::MicrosByType(STEP_US), None, &[],
        "Page program, register to array; with several bits a cell a list, lower page first.", "GCaR, Harmonia, ECR: 200";
    "timing.erase_us" Kind::Micros(STEP_US), None, &[],
        "Block erase.", "GCaR, Harmonia, ECR: 1500";
    "timing.transfer_ns_per_byte" Kind::Nanos(TRANSFER_NS), None, &[],
        "One byte between controller and chip.", "ECR Table 2: 25";

    "host.queues" Kind::Count(1, 65_535), Some("1"), &[],
        "Submission queues.", "NVMe; SATA has one";
    "host.queue_depth" Kind::Count(0, 65_535), Some("0"), &[],
        "Requests of a queue that the device has not finished, at most; others wait at the host; 0: no limit.", "NVMe: at most 65 535";
    "host.commands" Kind::Count(0, 65_535), Some("0"), &[],
        "Requests that the controller works on at a time, from all queues; 0: no limit.", "ours";
    "host.assign" Kind::Choice(Assign::WORDS), Some("\"turn\""), &[],
        "Which queue a request goes to: one after the other (`turn`), or reads to the first half of them and all else to the second (`kind`).", "ours";
    "host.arbitration" Kind::Choice(Arbitration::WORDS), Some("\"round-robin\""), &[],
        "Which queue the controller takes from: one after the other, or urgent ones first and the others by weights.", "NVMe Base Specification 2.0, 3.4.4";
    "host.burst" Kind::Count(0, 64), Some("1"), &[],
        "Commands taken from a queue before the next has its turn: a power of 2; 0: no limit.", "NVMe: Arbitration Burst";
    "host.urgent_queues" Kind::Count(0, 65_535), Some("0"), WEIGHTED,
        "Queues that go before all others: the first ones.", "NVMe Base Specification 2.0, 3.4.4.2";
    "host.high_queues" Kind::Count(0, 65_535), Some("0"), WEIGHTED,
        "Queues of high priority, after those.", "NVMe Base Specification 2.0, 3.4.4.2";
    "host.medium_queues" Kind::Count(0, 65_535), Some("0"), WEIGHTED,
        "Queues of medium priority, after those; what is left is of low priority.", "NVMe Base Specification 2.0, 3.4.4.2";
    "host.high_weight" Kind::Count(1, 256), Some("1"), WEIGHTED,
        "Commands in a round of the queues of high priority.", "NVMe: High Priority Weight";
    "host.medium_weight" Kind::Count(1, 256), Some("1"), WEIGHTED,
        "The same of medium priority.", "NVMe: Medium Priority Weight";
    "host.low_weight" Kind::Count(1, 256), Some("1"), WEIGHTED,
        "The same of low priority.", "NVMe: Low Priority Weight";

    "link.kind" Kind::Choice(LinkWord::WORDS), Some("\"reference\""), &[],
        "`reference`: one bus, a request at a time, finished ones first. `sata`: 6 Gb/s, half duplex, served alike but that reads come in at any time. `pcie`: reads and writes do not wait for each other.", "ours";
    "link.command_overhead_us" Kind::Micros(STEP_US), Some("0"), &[],
        "Delay of every request before the device sees it.", "not printed anywhere";
    "link.bus_ns_per_sector" Kind::Nanos(TRANSFER_NS), Some("0"), REFERENCE,
        "One 512-byte sector on the host bus; requests cross it one at a time.", "the reference as shipped: 238.4";
    "link.pcie_generation" Kind::Count(1, 5), Some("3"), PCIE,
        "2.5, 5, 8, 16 or 32 GT/s a lane, 8 bits in 10 below the third and 128 in 130 from there.", "PCI Express Base Specification";
    "link.pcie_lanes" Kind::Count(1, 16), Some("4"), PCIE,
        "Lanes.", "drives in U.2 and M.2";
    "link.pcie_payload_bytes" Kind::Count(128, 4096), Some("256"), PCIE,
        "Most data of a packet; 24 bytes of framing, header and checksum go with each.", "common hosts: 256";

    "nand.backend" Kind::Choice(BackendWord::WORDS), None, &[],
        "`msr`: the element model of the MSR SSD extension, exact. `modern`: channels shared by dies, GC as queued operations.", "ours";
    "nand.parallel_units" Kind::Count(1, 4), Some("1"), MSR_PAGE,
        "The planes are split evenly into this many units (1, 2 or 4) that may work at once; 1 without copy-back.", "the reference as shipped: 1";
    "nand.copy_back" Kind::Bool, None, &[],
        "GC moves pages inside the chip, and each plane is a pool of its own; else pages cross the pins and the chip is the pool.", "the reference as shipped: true";
    "nand.plane_mapping" Kind::Choice(PlaneMapping::WORDS), Some("\"striped\""), MSR_PAGE,
        "Block number to plane: `concatenated` = block / blocks_per_plane, `striped` = block mod planes.", "the reference as shipped: striped (3)";
    "nand.allocation_pool" Kind::Choice(AllocationPool::WORDS), Some("\"chip\""), MSR_PAGE,
        "A write goes to any plane of the chip, or to the plane of the old copy (copy-back only).", "the reference as shipped: chip (1)";
    "nand.cleaning_in_background" Kind::Bool, Some("false"), MSR_PAGE,
        "Look for cleaning after every completion, not only when requests wait.", "the reference as shipped: false";
    "nand.read_priority" Kind::Bool, Some("true"), MODERN,
        "Host reads overtake other waiting operations of their die.", "common firmware practice";
    "nand.background_gc" Kind::Bool, Some("true"), MODERN_PAGE,
        "Collect also when no host operation waits.", "common firmware practice";
    "nand.cell" Kind::Choice(Cell::WORDS), Some("\"slc\""), MODERN,
        "Bits a cell holds, 1 to 4: how many page types `read_us` and `program_us` may tell apart. Rows of a block take the types in turn.", "published parts";
    "nand.multi_plane" Kind::Count(1, 16), Some("1"), MODERN_PAGE,
        "Planes that a block is striped over: waiting writes fill a flash page in each and are programmed at once, waiting reads of a row are read at once, and one erase erases all.", "ONFI multi-plane commands";
    "nand.independent_reads" Kind::Bool, Some("false"), MODERN_PAGE,
        "Waiting reads of different rows go together, too, if each is on another plane.", "ONFI asynchronous plane reads";
    "nand.cached_commands" Kind::Bool, Some("false"), MODERN_PAGE,
        "The data of the next program cross the channel while the array programs, and the array reads for the next read while the data of the last cross (D-68).", "ONFI: page cache program, read cache";
    "nand.program_wait_us" Kind::Micros(STEP_US), Some("0"), MODERN_PAGE,
        "How long a write-back waits for others that fill its program; a flush or a write that the host waits for makes it start at once.", "our decision";
    "nand.suspend" Kind::Bool, Some("false"), MODERN_PAGE,
        "A host read that comes during a program or erase stops it and goes first; one that comes while the data of a program crosses the channel does not.", "measured on a Micron 7300 PRO (ublk-disksim, VALIDATION section 5)";
    "nand.suspend_us" Kind::Micros(STEP_US), Some("20"), MODERN_PAGE,
        "Time lost when the array stops, and again when it goes on.", "Wu and He, FAST '12: a verify phase of some 24";
    "nand.suspend_rest_us" Kind::Micros(STEP_US), OPTIONAL, MODERN_PAGE,
        "A program or erase that would end within this time is not stopped; left out: `suspend_us`.", "our decision (D-66)";
    "nand.suspend_limit" Kind::Count(1, 65_535), Some("16"), MODERN_PAGE,
        "Read commands that may go before one program or erase; later ones wait for its end.", "our decision: a program must end";
    "nand.read_retry_percent" Kind::Percent, Some("0"), MODERN_PAGE,
        "Share of the reads of a flash page that must be repeated, each repetition by the same share again, up to 8.", "our decision";

    "nand.pslc_percent" Kind::Percent, Some("0"), MODERN_PAGE,
        "Most of the blocks of a chip that are written in SLC mode at a time, as a cache of what the host writes; a block then holds as many pages as otherwise, divided by the bits of `cell` (D-65).", "consumer drives";
    "nand.pslc_read_us" Kind::Micros(STEP_US), Some("25"), MODERN_PAGE,
        "Page read in SLC mode; without effect while `pslc_percent` is 0, as the next two.", "published parts: 20 to 30";
    "nand.pslc_program_us" Kind::Micros(STEP_US), Some("200"), MODERN_PAGE,
        "Page program in SLC mode.", "published parts: 160 to 300";
    "nand.pslc_idle_us" Kind::Micros(STEP_US), Some("100000"), MODERN_PAGE,
        "How long a chip must have had nothing to do until it folds: moves what stands in SLC mode to other blocks.", "our decision";

    "ftl.kind" Kind::Choice(&[]), Some("\"page\""), &[],
        "How logical pages are mapped. Those but `page`, on docs/ftls.md, map each chip by itself and pay for it on flash.", "GCaR, Harmonia, ECR: page; CBM: fast and faster";
    "ftl.placement" Kind::Choice(Placement::WORDS), Some("\"static\""), PAGE,
        "`static`: chip = (page / stride) mod chips, for ever. `dynamic`: every write goes to the next chip of a round robin, channel first (`modern` only).", "D-3";
    "ftl.stride_pages" Kind::Count(1, U32), Some("1"), STATIC,
        "Consecutive pages on a chip before the next chip.", "the reference as shipped: 1";
    "ftl.summary_page" Kind::Bool, Some("true"), PAGE,
        "The last page of each block holds a summary that the device writes.", "the reference: always";
    "ftl.partial" Kind::Choice(Partial::WORDS), OPTIONAL, &[],
        "Without a buffer, requests that cover part of a page: round outwards, or carry their sectors only, a write reading the rest of the page from flash first; left out: `round` on `msr`, `sectors` on `modern`. With a buffer `buffer.partial` says it.", "D-1; D-97";
    "ftl.separation" Kind::Choice(SeparationWord::WORDS), Some("\"none\""), PAGE,
        "Pages that go to open blocks of their own. `gc`: those that GC moves. `region`: the first logical pages, as two namespaces or placement handles keep them, also when GC moves them. With `none` the buffer policy may still tell hot pages from cold ones.", "common firmware practice";
    "ftl.region_percent" Kind::Percent, None, &[("ftl.separation", &["region"])],
        "The first logical pages that are kept apart, as a share of all.", "ours";

    "gc.victim" Kind::Choice(&[]), Some("\"greedy\""), PAGE,
        "Which sealed block is collected.", "GCaR, Harmonia, ECR: greedy";
    "gc.granularity" Kind::Choice(Granularity::WORDS), Some("\"block\""), MODERN_PAGE,
        "What is opened, collected and erased as one: an erase block of a die, or one of every die (D-98).", "client and data-centre drives";
    "gc.low_percent" Kind::Percent, None, PAGE,
        "A pool collects when its free blocks are at or below this share of its blocks, rounded down.", "GCaR Table 2, Harmonia Table 7: 5";
    "gc.watermark" Kind::Choice(Watermark::WORDS), Some("\"blocks\""), MODERN_BLOCKS,
        "What counts against `low_percent`: free blocks, or free pages, of open blocks too, beyond the pages of one block (D-207).", "the reference: blocks";
    "gc.idle_percent" Kind::Percent, OPTIONAL, MODERN_PAGE,
        "With `background_gc`, what a chip collects at while no host operation waits; left out: `low_percent`.", "common firmware practice";
    "gc.preemptible" Kind::Bool, Some("false"), MODERN_PAGE,
        "Host writes, too, pass between two moves of a collection: always while more blocks are free than `low_percent`, else in step with the moves (D-170); reads pass with `read_priority`.", "semi-preemptive GC (Lee, Kim, Oral, Shipman, Kim, ISPASS 2011)";
    "gc.moves" Kind::Choice(Moves::WORDS), Some("\"cold\""), PAGE,
        "Where GC moves pages to if the buffer policy separates hot pages from cold ones: the cold open block, an open block of the victim's kind, or that of the class that the policy gives the page then (D-220). Without effect under other policies.", "not printed clearly: CDA-GC section 3.2.2";
    "gc.ideal" Kind::Bool, Some("false"), PAGE,
        "Collecting takes no time: a bound on what any policy can gain.", "Harmonia section 6, \"Ideal\"";

    "wear.erase_limit" Kind::Count(0, U32), Some("0"), PAGE,
        "Erases a block survives; 0: no limit. A device whose blocks are spent is read-only (Q4).", "the reference: 50, a constant";
    "wear.endurance_spread_percent" Kind::Percent, Some("0"), PAGE,
        "Standard deviation over blocks of the erases they survive, as a share of `erase_limit`: blocks go bad one after the other. A block that is spent keeps its data, which stay readable.", "ours";
    "wear.levelling" Kind::Choice(&[]), Some("\"none\""), PAGE,
        "How erases are spread over blocks.", "the reference as shipped, GCaR, Harmonia: none; ECR section 4.1: dynamic";
    "wear.rated_erases" Kind::Count(0, U32), Some("0"), &[],
        "Erases a block is rated for; 0: not known. Lifetime is projected from it.", "datasheets";
    "wear.warranty_years" Kind::Count(1, 100), Some("5"), &[],
        "Years over which drive writes a day are counted.", "common warranty";

    "controller.request_us" Kind::Micros(STEP_US), Some("0"), &[],
        "Time of the controller's one processor for every request.", "D-10: 2 for CDA-GC's platform, else 0";
    "controller.scan_entry_ns" Kind::Nanos(TRANSFER_NS), Some("0"), &[],
        "Time of the controller's processor for every list entry that the published policy inspects to find a victim.", "D-10: 100 for CDA-GC's platform, else 0";

    "buffer.capacity" Kind::Size(SIZE), None, &[],
        "Size of the buffer: whole pages, at least one.", "GCaR 1 to 32 MB, ECR 32 MB";
    "buffer.policy" Kind::PolicyName, Some("\"lru\""), &[],
        "Replacement policy; `gcar-NAME` is the policy NAME filtered by GCaR.", "the papers' baseline";
    "buffer.evict" Kind::Choice(EvictWord::WORDS), Some("\"blocking\""), &[],
        "When the access that needs a slot goes on: once its victim is programmed, or at once.", "D-2";
    "buffer.background_depth" Kind::Count(1, 65_535), Some("8"), BACKGROUND,
        "Write-backs in flight before an access must wait; active write-backs of pages that stay count too.", "D-2";
    "buffer.partial" Kind::Choice(Partial::WORDS), Some("\"round\""), &[],
        "Requests that cover part of a page: round outwards, or keep a bitmap of valid sectors.", "D-1";
    "buffer.latency_us" Kind::Micros(STEP_US), Some("0"), &[],
        "Access time of the buffer memory for a read, and for a write unless `write_latency_us` says otherwise.", "not printed anywhere but in CBM";
    "buffer.write_latency_us" Kind::Micros(STEP_US), OPTIONAL, &[],
        "Access time of the buffer memory for a write; left out: `latency_us`.", "CBM Table I: 40 ns a 64-byte line of NVM, 2.56 (D-21)";
    "buffer.read_cache" Kind::Window, OPTIONAL, &[],
        "Separate LRU cache for pages that were read, beside `capacity`: pages or a share of the capacity; left out: 0, with `cbm` 0.75 (24 MB to 32 MB, CBM section V).", "CBM section III; D-6";
    "buffer.read_cache_latency_us" Kind::Micros(STEP_US), OPTIONAL, &[],
        "Access time of the separate read cache; left out: `latency_us`.", "CBM Table I: 15 ns a 64-byte line of DRAM, 0.96 (D-21)";
    "buffer.power_loss_protection" Kind::Bool, Some("false"), &[],
        "A flush or FUA write is done once its data is in the buffer, and a power cut loses nothing; always so with `cbm` (its write buffer is non-volatile).", "ours";
];

#[rustfmt::skip]
const PUBLISHED: &[KeyDoc] = rows![
    "published.source" Kind::Text, Some("\"\""), &[],
        "Where the figures of this section stand.", "ours";
    "published.read_128k_mbs" Kind::Figure, OPTIONAL, &[],
        "Sequential reads of 128 KiB at depth 32, in MB/s.", "data sheets";
    "published.write_128k_mbs" Kind::Figure, OPTIONAL, &[],
        "Sequential writes of 128 KiB at depth 32 to a new drive, in MB/s.", "data sheets";
    "published.write_cache_full_mbs" Kind::Figure, OPTIONAL, &[],
        "The same once the cache in SLC mode (`nand.pslc_percent`) is full.", "data sheets, reviews";
    "published.read_qd1_us" Kind::Figure, OPTIONAL, &[],
        "Random reads of 4 KiB one at a time: the mean.", "data sheets";
    "published.read_p17_us" Kind::Figure, OPTIONAL, &[],
        "The same: the middle of the fastest third.", "measurements of drives with three page types";
    "published.read_p50_us" Kind::Figure, OPTIONAL, &[],
        "The same: the median.", "measurements of drives";
    "published.read_p83_us" Kind::Figure, OPTIONAL, &[],
        "The same: the middle of the slowest third.", "measurements of drives with three page types";
    "published.read_qd32_iops" Kind::Figure, OPTIONAL, &[],
        "Random reads of 4 KiB a second at depth 32.", "data sheets";
    "published.write_qd1_us" Kind::Figure, OPTIONAL, &[],
        "Random writes of 4 KiB one at a time into an empty buffer: the mean.", "data sheets";
    "published.write_steady_iops" Kind::Figure, OPTIONAL, &[],
        "Random writes of 4 KiB a second at depth 32 to a drive worn in by such writes.", "data sheets";
    "published.write_steady_iops_min" Kind::Figure, OPTIONAL, &[],
        "The least of what is published of such drives.", "data sheets, reviews";
    "published.write_steady_iops_max" Kind::Figure, OPTIONAL, &[],
        "The most of what is published of such drives.", "data sheets, reviews";
    "published.write_steady_p99_us" Kind::Figure, OPTIONAL, &[],
        "The same: the 99th percentile.", "data sheets, reviews";
    "published.write_steady_p99_us_max" Kind::Figure, OPTIONAL, &[],
        "The most of what is published of such drives.", "data sheets, reviews";
    "published.mixed_steady_iops" Kind::Figure, OPTIONAL, &[],
        "The same drive, 70 % of the requests reads of 4 KiB, the others writes: requests a second at depth 32.", "data sheets, reviews";
    "published.mixed_steady_iops_min" Kind::Figure, OPTIONAL, &[],
        "The least of what is published of such drives, or follows from it.", "data sheets, reviews";
    "published.mixed_steady_iops_max" Kind::Figure, OPTIONAL, &[],
        "The most of what is published of such drives, or follows from it.", "data sheets, reviews";
    "published.mixed_read_p99_us" Kind::Figure, OPTIONAL, &[],
        "The same: the 99th percentile of the reads.", "data sheets, reviews";
    "published.mixed_read_p99_us_max" Kind::Figure, OPTIONAL, &[],
        "The most of what is published of such drives.", "data sheets, reviews";
    "published.beside_p50_us" Kind::Figure, OPTIONAL, &[],
        "Random reads of 4 KiB one at a time, beside a writer of 4 KiB that syncs after each (D-67): the median.", "measurements of drives";
    "published.beside_p75_us" Kind::Figure, OPTIONAL, &[],
        "The same: the 75th percentile.", "measurements of drives";
    "published.beside_p90_us" Kind::Figure, OPTIONAL, &[],
        "The same: the 90th percentile.", "measurements of drives";
    "published.beside_p95_us" Kind::Figure, OPTIONAL, &[],
        "The same: the 95th percentile.", "measurements of drives";
    "published.beside_p99_us" Kind::Figure, OPTIONAL, &[],
        "The same: the 99th percentile.", "measurements of drives";
    "published.beside_p995_us" Kind::Figure, OPTIONAL, &[],
        "The same: the 99.5th percentile.", "measurements of drives";
    "published.beside_p999_us" Kind::Figure, OPTIONAL, &[],
        "The same: the 99.9th percentile.", "measurements of drives";
];

/// Stands for every policy filtered by GCaR in the conditions of a key.
const ANY_GCAR: &str = "gcar-*";

impl KeyDoc {
    /// The key is a parameter of some policies.
    pub fn is_policy_parameter(&self) -> bool {
        self.only.iter().any(|(selector, _)| *selector == POLICY)
    }

    /// The key has a meaning for this policy, as far as policies go. A filtered policy has the
    /// parameters of its base.
    pub fn is_for_policy(&self, name: &str) -> bool {
        let mut conditions = self.only.iter().filter(|(s, _)| *s == POLICY);
        conditions.all(|(selector, wanted)| is_met(selector, wanted, name))
    }

    /// The key has a meaning with this `ftl.kind`, as far as that goes.
    pub(super) fn is_for_mapping(&self, kind: &str) -> bool {
        let mut conditions = self.only.iter().filter(|(s, _)| *s == "ftl.kind");
        conditions.all(|(_, wanted)| wanted.contains(&kind))
    }
}

/// Whether the value of a selector is one of those wanted.
pub(super) fn is_met(selector: &str, wanted: &[&str], value: &str) -> bool {
    if wanted.contains(&value) {
        return true;
    }
    match value.strip_prefix("gcar-") {
        Some(base) if selector == POLICY => wanted.contains(&base) || wanted.contains(&ANY_GCAR),
        _ => false,
    }
}

/// The row of a key.
pub(super) fn find(key: &str) -> Option<&'static KeyDoc> {
    keys().iter().find(|doc| doc.key == key)
}

/// The message about a key that is not in the table.
pub(super) fn unknown_key(key: &str) -> String {
    let (section, name) = super::tree::split(key);
    let rows = keys().iter().map(|doc| super::tree::split(doc.key));
    let mut here: Vec<&str> = rows
        .filter(|(s, _)| *s == section)
        .map(|(_, n)| n)
        .collect();
    if section.is_empty() {
        here.extend(sections());
    }
    let homes: Vec<&KeyDoc> = keys()
        .iter()
        .filter(|doc| super::tree::split(doc.key).1 == name)
        .collect();
    if let [home, ..] = homes[..] {
        return match super::tree::split(home.key) {
            ("", name) => format!("unknown key; {name:?} stands before the first section"),
            (home, name) => format!("unknown key; {name:?} belongs to section [{home}]"),
        };
    }
    match nearest(name, here.iter().copied()) {
        Some(near) => format!("unknown key; did you mean {near:?}?"),
        None => match nearest(name, keys().iter().map(|doc| super::tree::split(doc.key).1)) {
            Some(near) => {
                let home = keys()
                    .iter()
                    .find(|doc| super::tree::split(doc.key).1 == near);
                format!(
                    "unknown key; did you mean {:?}?",
                    home.map_or(near, |doc| doc.key)
                )
            }
            None => {
                let of_policies = |name: &&str| {
                    find(&format!("{section}.{name}")).is_some_and(KeyDoc::is_policy_parameter)
                };
                here.retain(|name| !of_policies(name));
                let more = match section {
                    "buffer" => ", and the parameters of the policy",
                    _ => "",
                };
                format!("unknown key; known here: {}{more}", here.join(", "))
            }
        },
    }
}

/// The message about a section without keys.
pub(super) fn unknown_section(name: &str) -> String {
    match nearest(name, sections().into_iter()) {
        Some(near) => format!("unknown section; did you mean [{near}]?"),
        None => format!("unknown section; known: {}", sections().join(", ")),
    }
}

/// Names of the sections, in the order of the table.
fn sections() -> Vec<&'static str> {
    let mut known: Vec<&str> = keys()
        .iter()
        .map(|doc| super::tree::split(doc.key).0)
        .collect();
    known.dedup();
    known.retain(|section| !section.is_empty());
    known
}

/// The candidate nearest to `word`, if it is near enough to be meant: at most a third of its
/// letters differ, and at least one edit is always forgiven.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .map(|candidate| (edits(word, candidate, limit), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements that make `a` into `b`; anything above `limit` may be
/// reported as `limit + 1`.
fn edits(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replace = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_key_and_nonsense_finds_none() {
        assert_eq!(
            nearest("capcity", ["capacity", "policy"].into_iter()),
            Some("capacity")
        );
        assert_eq!(
            nearest("chip", ["chips", "stride"].into_iter()),
            Some("chips")
        );
        assert_eq!(nearest("zzz", ["chips", "stride"].into_iter()), None);
        assert_eq!(edits("kitten", "sitting", 9), 3);
    }

    #[test]
    fn the_table_is_sound() {
        for (i, doc) in keys().iter().enumerate() {
            assert!(
                keys()[..i].iter().all(|other| other.key != doc.key),
                "{} twice",
                doc.key
            );
            assert!(doc.doc.ends_with('.'), "{}", doc.key);
            for (selector, values) in doc.only {
                for name in values.iter().filter(|_| *selector == POLICY) {
                    assert!(*name == ANY_GCAR || ChosenPolicy::is_name(name), "{name}");
                }
                // The reader decides selectors before what depends on them.
                assert!(keys().iter().any(|d| d.key == *selector), "{selector}");
                assert!(!values.is_empty());
            }
        }
    }
}
