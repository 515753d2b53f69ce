//! Mapping of pages, garbage collection, and wear.

use std::num::NonZeroU32;

use super::decimal::percent_of;
use super::section::{section, Field, Key, Only, Values, OPTIONAL};
use super::{DeviceSpec, Geometry, Partial, MODERN_PAGE, PAGE, PAGE_MAP, U32};
use crate::component::{words, Chosen, Component, Kind, Value};
use crate::ftl::{chip, LEVELLING};
use crate::gc::RULES;
use crate::units::narrow;

const STATIC: Only = &[(Ftl::placement.name(), &[Placement::Static.name()])];
const REGION: Only = &[(Ftl::separation.name(), &[Separation::Region.name()])];
const MODERN_BLOCKS: Only = &[
    MODERN_PAGE[0],
    MODERN_PAGE[1],
    (Gc::granularity.name(), &[Granularity::Block.name()]),
];

words! {
    /// Assignment of pages to chips (D-3).
    pub enum Placement {
        /// Static placement: a page is always on the chip with the number (page / stride) mod chips.
        Static = "static",
        /// Dynamic placement: each write goes to the next chip in turn. Chips that follow each other are on different
        /// channels.
        Dynamic = "dynamic",
    }
}

words! {
    /// Pages that are separated from the others: they are written to open blocks of their own.
    pub enum Separation {
        /// The FTL does not separate pages. The buffer policy may still separate hot pages from cold ones.
        None = "none",
        /// Pages that GC moves are separated from pages that the host writes.
        Gc = "gc",
        /// For each page that is written back, the buffer policy chooses the open block ([`Policy::stream`]).
        ///
        /// [`Policy::stream`]: crate::buffer::Policy::stream
        Policy = "policy",
        /// The first logical pages, `region_percent` of all, are separated from the others. They stay separate when
        /// GC moves them.
        Region = "region",
    }
}

section! {
    /// Mapping of logical to physical pages.
    pub struct Ftl(v) in (spec: DeviceSpec => Some(&spec.ftl)) {
        kind: Mapping = "ftl.kind", Kind::Choice(&[]), Some("\"page\""), &[],
            "Mapping of logical to physical pages. All kinds but `page` map each chip separately and store the map on flash, at a cost (docs/ftls.md).", "GCaR, Harmonia, ECR: page; CBM: fast and faster",
            among mappings();
        placement: Placement = "ftl.placement", Kind::Choice(Placement::WORDS), Some("\"static\""), PAGE,
            "Assignment of pages to chips. `static`: chip = (page / stride) mod chips, permanently. `dynamic`: each write goes to the next chip in round-robin order, channel first (`modern` only).", "D-3";
        stride_pages: u32 = "ftl.stride_pages", Kind::Count(1, U32), Some("1"), STATIC,
            "Consecutive pages placed on a chip before the next chip follows.", "the reference as shipped: 1";
        summary_page: bool = "ftl.summary_page", Kind::Bool, Some("true"), PAGE,
            "Reserve the last page of each block for a summary written by the device.", "the reference: always";
        partial: Option<Partial> = "ftl.partial", Kind::Choice(Partial::WORDS), OPTIONAL, &[],
            "Handling of requests that cover only part of a page, on a device without a buffer. `round`: they are rounded to whole pages. `sectors`: a write first reads the rest of the page from flash. Default: `round` on `msr`, `sectors` on `modern`. With a buffer, use `buffer.partial`.", "D-1; D-97";
        separation: Separation = "ftl.separation", Kind::Choice(Separation::WORDS), Some("\"none\""), PAGE,
            "Pages that are written to open blocks of their own. `gc`: pages moved by GC. `region`: the first logical pages, like a namespace or placement handle, also when moved by GC. `policy`: pages that a buffer policy in Python calls hot (`is_hot`). CDA-GC's dispatcher separates pages without this key; every other policy calls all pages cold.", "common firmware practice";
        region_percent: f64 = "ftl.region_percent", Kind::Percent, None, REGION,
            "Size of the region `ftl.separation` separates: the first logical pages, as a share of all logical pages.", "ours";
    }
}

/// The kind of mapping of logical to physical pages.
#[derive(Clone, Debug, PartialEq)]
pub enum Mapping {
    /// A page map of the whole device, in memory.
    Page,
    /// A translation layer in each chip.
    Chip(chip::Layer),
}

/// Returns the possible mappings as components: the page map and the translation layers of chips.
fn mappings() -> Vec<Component> {
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
    [page].into_iter().chain(layers).collect()
}

impl Field for Mapping {
    /// Returns the mapping with its parameters. Parameters that are not given are computed from the sizes of the chip.
    /// Sizes beyond those of any chip are limited; the check then refuses the device.
    fn read(v: &Values, key: &Key<Mapping>) -> Mapping {
        let g = Geometry::from_values(v);
        let name: String = v.setting(key);
        let small = |n: u64| narrow(n.min(1 << 31));
        let planes = u64::from(g.planes_per_chip);
        let reserved = percent_of(g.blocks_per_plane.into(), g.reserve_percent);
        let usable = planes * u64::from(g.blocks_per_plane).saturating_sub(reserved);
        let blocks = small(planes * u64::from(g.blocks_per_plane));
        let pages = small(usable * u64::from(g.pages_per_block));
        let Ok(mut setup) = chip::Setup::new(&name, pages, blocks, g.pages_per_block) else {
            return Mapping::Page;
        };
        let mut settings = Vec::new();
        for parameter in setup.parameters() {
            let value = match v.parameter(key, parameter) {
                Some(Value::Number(n)) => n.to_string(),
                Some(Value::Bool(on)) => on.to_string(),
                _ if parameter.key == "entries_per_translation_page" => {
                    (g.page_bytes / 4).max(1).to_string()
                }
                _ => continue,
            };
            settings.push((parameter.key, value));
        }
        let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let set = setup.set_all(&settings);
        set.expect("each is a parameter of it, and of the kind that its key says");
        Mapping::Chip(setup.kind)
    }

    fn write(&self) -> Option<Value> {
        let name = match self {
            Mapping::Page => PAGE_MAP,
            Mapping::Chip(layer) => layer.entry().name,
        };
        Some(Value::Text(name.into()))
    }
}

words! {
    /// Unit of flash that is opened, collected and erased as a whole.
    pub enum Granularity {
        /// An erase block of a die.
        Block = "block",
        /// A superblock: one erase block of every die.
        Superblock = "superblock",
    }
}

words! {
    /// Measure of free space that is compared with the watermark.
    pub enum Watermark {
        /// The watermark is a number of free blocks.
        Blocks = "blocks",
        /// The number of free pages, including the free pages of open blocks.
        Pages = "pages",
    }
}

words! {
    /// Open block to which GC moves pages. Used on devices with a buffer policy that separates hot pages from cold ones
    /// (D-220).
    pub enum Moves {
        /// Moved pages go to the cold open block.
        Cold = "cold",
        /// A moved page goes to the hot open block if its victim block is hot, otherwise to the cold one.
        Victim = "victim",
        /// A moved page goes to the hot open block if the policy classifies the page as hot at the time of the move,
        /// otherwise to the cold one.
        Class = "class",
    }
}

section! {
    /// Garbage collection.
    pub struct Gc(v) in (spec: DeviceSpec => Some(&spec.gc)) {
        victim: Chosen = "gc.victim", Kind::Choice(&[]), Some("\"greedy\""), PAGE,
            "Selection of the sealed block to collect.", "GCaR, Harmonia, ECR: greedy",
            among RULES;
        granularity: Granularity = "gc.granularity", Kind::Choice(Granularity::WORDS), Some("\"block\""), MODERN_PAGE,
            "Unit that is opened, collected and erased: an erase block of a die, or a superblock of one erase block per die (D-98).", "client and data-centre drives";
        low_percent: f64 = "gc.low_percent", Kind::Percent, None, PAGE,
            "GC watermark: a pool collects when its free blocks are at or below this share of its blocks, rounded down. \
             Instead, `gc.low_percent_of_reserve` gives the watermark as a share of the reserve, but at least one block of a plane; it then follows `geometry.reserve_percent`.", "GCaR Table 2, Harmonia Table 7: 5";
        watermark: Watermark = "gc.watermark", Kind::Choice(Watermark::WORDS), Some("\"blocks\""), MODERN_BLOCKS,
            "Free space that is compared with `low_percent`. `blocks`: free blocks. `pages`: free pages, including those of open blocks, beyond the pages of one block (D-207).", "the reference: blocks";
        idle_percent: Option<f64> = "gc.idle_percent", Kind::Percent, OPTIONAL, MODERN_PAGE,
            "With `background_gc`, the GC watermark of a chip while no host operation waits; default: `low_percent`. On devices that write by units with `preemptible`, it is the watermark also while host operations wait: those then pass without limit until `low_percent` is reached.", "common firmware practice";
        preemptible: bool = "gc.preemptible", Kind::Bool, Some("false"), MODERN_PAGE,
            "Host writes may run between two moves of a collection: without limit while the free blocks are above `low_percent`, otherwise in proportion to the moves done (D-170). For host reads, see `nand.read_priority`.", "semi-preemptive GC (Lee, Kim, Oral, Shipman, Kim, ISPASS 2011)";
        moves: Moves = "gc.moves", Kind::Choice(Moves::WORDS), Some("\"cold\""), PAGE,
            "Destination of pages moved by GC if the buffer policy separates hot pages from cold ones: the cold open block (`cold`), the open block of the victim's kind (`victim`), or the open block of the class that the policy assigns to the page at that time (`class`, D-220). No effect under other policies.", "not printed clearly: CDA-GC section 3.2.2";
        ideal: bool = "gc.ideal", Kind::Bool, Some("false"), PAGE,
            "Collections take no time. The result is an upper bound on the gain of any policy.", "Harmonia section 6, \"Ideal\"";
    }
}

impl Gc {
    /// Whether superblocks are collected, instead of single blocks.
    pub fn has_superblocks(&self) -> bool {
        self.granularity == Granularity::Superblock
    }
}

section! {
    /// Endurance.
    pub struct Wear(v) in (spec: DeviceSpec => Some(&spec.wear)) {
        erase_limit: Option<NonZeroU32> = "wear.erase_limit", Kind::Count(0, U32), Some("0"), PAGE,
            "Number of erases that a block survives; 0: unlimited. A device that runs out of blocks becomes read-only (Q4).", "the reference: 50, a constant";
        endurance_spread_percent: f64 = "wear.endurance_spread_percent", Kind::Percent, Some("0"), PAGE,
            "Standard deviation of the number of erases that blocks survive, as a share of `erase_limit`. Blocks then wear out one after another. A worn-out block keeps its data, which remain readable.", "ours";
        levelling: Chosen = "wear.levelling", Kind::Choice(&[]), Some("\"none\""), PAGE,
            "Wear levelling: distribution of erases over blocks.", "the reference as shipped, GCaR, Harmonia: none; ECR section 4.1: dynamic",
            among LEVELLING;
        rated_erases: Option<NonZeroU32> = "wear.rated_erases", Kind::Count(0, U32), Some("0"), &[],
            "Rated erases per block, used to project the lifetime; 0: unknown.", "datasheets";
        warranty_years: u32 = "wear.warranty_years", Kind::Count(1, 100), Some("5"), &[],
            "Warranty period in years, over which drive writes per day are computed.", "common warranty";
    }
}
