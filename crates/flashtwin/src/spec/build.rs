//! From values to the types of a [`DeviceSpec`].

use super::convert::Value;
use super::decimal::{percent_of, scale, Rounding};
use super::keys::{keys, Kind};
use super::policy::PolicyParams;
use super::read::Values;
use super::tree::split;
use super::{
    AllocationPool, Assign, BlockInGc, Blocks, Buffer, Cell, Controller, DeviceSpec, EvictMode,
    Ftl, Gc, Geometry, Host, Levelling, Link, LinkKind, Mapping, ModernNand, MsrNand, Nand,
    Partial, Placement, PlaneMapping, Policy, Published, Separation, SlcCache, Tie, Timing, Victim,
    Wear, WearAware,
};
use crate::ftl::chip;
use crate::units::Time;

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
    let geometry = Geometry {
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
    };
    let mapping = build_mapping(v, &geometry);
    let spec = DeviceSpec {
        name: v.text("name").into(),
        description: v.text("description").into(),
        geometry,
        timing: Timing {
            read: mean(&v.times("timing.read_us")),
            program: mean(&v.times("timing.program_us")),
            read_by_type: v.times("timing.read_us"),
            program_by_type: v.times("timing.program_us"),
            erase: v.time("timing.erase_us"),
            transfer_per_byte: v.time("timing.transfer_ns_per_byte"),
        },
        host: Host {
            queues: v.count("host.queues"),
            queue_depth: v.count("host.queue_depth"),
            commands: v.count("host.commands"),
            assign: match v.text("host.assign") {
                "kind" => Assign::Kind,
                _ => Assign::Turn,
            },
            burst: v.count("host.burst"),
            weighted: v.text("host.arbitration") == "weighted",
            classes: [
                "host.urgent_queues",
                "host.high_queues",
                "host.medium_queues",
            ]
            .map(|key| v.count_or(key, 0)),
            weights: ["host.high_weight", "host.medium_weight", "host.low_weight"]
                .map(|key| v.count_or(key, 1)),
        },
        link: Link {
            command_overhead: v.time("link.command_overhead_us"),
            kind: match v.text("link.kind") {
                "sata" => LinkKind::Sata,
                "pcie" => LinkKind::Pcie {
                    generation: v.count("link.pcie_generation"),
                    lanes: v.count("link.pcie_lanes"),
                    payload_bytes: v.count("link.pcie_payload_bytes"),
                },
                _ => LinkKind::Reference,
            },
            bus_per_sector: match v.has("link.bus_ns_per_sector") {
                true => v.time("link.bus_ns_per_sector"),
                false => Time::ZERO,
            },
        },
        nand: match is_msr {
            true => Nand::Msr(MsrNand {
                parallel_units: v.count_or("nand.parallel_units", 1),
                copy_back: v.flag("nand.copy_back"),
                plane_mapping: match v.text_or("nand.plane_mapping", "striped") {
                    "concatenated" => PlaneMapping::Concatenated,
                    _ => PlaneMapping::Striped,
                },
                allocation_pool: match v.text_or("nand.allocation_pool", "chip") {
                    "plane" => AllocationPool::Plane,
                    _ => AllocationPool::Chip,
                },
                cleaning_in_background: v.is_on("nand.cleaning_in_background"),
            }),
            false => Nand::Modern(ModernNand {
                read_priority: v.flag("nand.read_priority"),
                copy_back: v.flag("nand.copy_back"),
                background_gc: v.is_on("nand.background_gc"),
                cell: {
                    let word = v.text("nand.cell");
                    let cell = Cell::ALL.into_iter().find(|cell| cell.name() == word);
                    cell.expect("the word was checked against the list")
                },
                flash_page_pages: match v.has("geometry.flash_page_bytes") {
                    true => {
                        let bytes = v.number("geometry.flash_page_bytes");
                        let page = u64::from(page_bytes.max(1));
                        // No whole pages are none at all: the check says so.
                        match bytes.is_multiple_of(page) {
                            true => (bytes / page).min(u32::MAX.into()) as u32,
                            false => 0,
                        }
                    }
                    false => 1,
                },
                multi_plane: v.count_or("nand.multi_plane", 1),
                independent_reads: v.is_on("nand.independent_reads"),
                cached_commands: v.is_on("nand.cached_commands"),
                program_wait: v.time_or("nand.program_wait_us", Time::ZERO),
                suspend: v.is_on("nand.suspend"),
                suspend_cost: v.time_or("nand.suspend_us", Time::ZERO),
                suspend_rest: match v.has("nand.suspend_rest_us") {
                    true => v.time("nand.suspend_rest_us"),
                    false => v.time_or("nand.suspend_us", Time::ZERO),
                },
                suspend_limit: v.count_or("nand.suspend_limit", 1),
                read_retry_ppm: scale(
                    v.float_or("nand.read_retry_percent", 0.0),
                    1_000_000,
                    100,
                    Rounding::Nearest,
                )
                .expect("a percentage was checked"),
                slc_cache: match v.float_or("nand.pslc_percent", 0.0) {
                    0.0 => None,
                    percent => Some(SlcCache {
                        percent,
                        read: v.time("nand.pslc_read_us"),
                        program: v.time("nand.pslc_program_us"),
                        idle: v.time("nand.pslc_idle_us"),
                    }),
                },
            }),
        },
        ftl: Ftl {
            kind: mapping,
            placement: match v.text_or("ftl.placement", "static") {
                "dynamic" => Placement::Dynamic,
                _ => Placement::Static,
            },
            stride_pages: v.count_or("ftl.stride_pages", 1),
            summary_page: v.is_on("ftl.summary_page"),
            partial: v.has("ftl.partial").then(|| partial(v.text("ftl.partial"))),
            separation: match v.text_or("ftl.separation", "none") {
                "gc" => Separation::Gc,
                "region" => Separation::Region(v.float("ftl.region_percent")),
                _ => Separation::None,
            },
        },
        gc: Gc {
            victim: match v.text_or("gc.victim", "greedy") {
                "fifo" => Victim::Fifo,
                "random" => Victim::Random,
                "d-choices" => Victim::DChoices(v.count("gc.choices")),
                "windowed" => Victim::Windowed(v.float("gc.window_percent")),
                "cost-benefit" => Victim::CostBenefit,
                "cost-age-time" => Victim::CostAgeTime,
                _ => Victim::Greedy,
            },
            superblocks: v.text_or("gc.granularity", "block") == "superblock",
            low_percent: v.float_or("gc.low_percent", 0.0),
            idle_percent: v.has("gc.idle_percent").then(|| v.float("gc.idle_percent")),
            ideal: v.is_on("gc.ideal"),
            preemptible: v.is_on("gc.preemptible"),
        },
        wear: Wear {
            erase_limit: match v.count_or("wear.erase_limit", 0) {
                0 => None,
                limit => Some(limit),
            },
            endurance_spread_percent: v.float_or("wear.endurance_spread_percent", 0.0),
            levelling: match v.text_or("wear.levelling", "none") {
                "dynamic" => Levelling::Dynamic,
                "static" => Levelling::Static(v.count("wear.erases_behind")),
                "reference" => Levelling::Reference(WearAware {
                    migrate_below: (v.float("wear.migrate_percent") * 100.0).round() as u32,
                    limit_below: (v.float("wear.rate_limit_percent") * 100.0).round() as u32,
                }),
                _ => Levelling::None,
            },
            rated_erases: match v.count("wear.rated_erases") {
                0 => None,
                rated => Some(rated),
            },
            warranty_years: v.count("wear.warranty_years"),
        },
        controller: Controller {
            request: v.time("controller.request_us"),
            scan_entry: v.time("controller.scan_entry_ns"),
        },
        buffer,
        published: Published {
            source: v.text("published.source").into(),
            figures: keys()
                .iter()
                .filter(|doc| doc.kind == Kind::Figure && v.has(doc.key))
                .map(|doc| (split(doc.key).1, v.float(doc.key)))
                .collect(),
        },
    };
    (spec, bytes)
}

/// The translation layer with its parameters; those not given follow from the chip. Numbers that no
/// chip can have are cut off: the check refuses them.
fn build_mapping(v: &Values, g: &Geometry) -> Mapping {
    let name = v.text("ftl.kind");
    let small = |n: u64| n.min(1 << 31) as u32;
    let planes = u64::from(g.planes_per_chip);
    let reserved = percent_of(g.blocks_per_plane.into(), g.reserve_percent);
    let usable = planes * u64::from(g.blocks_per_plane).saturating_sub(reserved);
    let blocks = small(planes * u64::from(g.blocks_per_plane));
    let pages = small(usable * u64::from(g.pages_per_block));
    let Ok(mut setup) = chip::Setup::new(name, pages, blocks, g.pages_per_block) else {
        return Mapping::Page;
    };
    let mut settings = Vec::new();
    for &parameter in setup.parameters() {
        let value = match v.get(&format!("ftl.{parameter}")) {
            Some(Value::Number(n)) => n.to_string(),
            Some(Value::Bool(on)) => on.to_string(),
            _ if parameter == "entries_per_translation_page" => {
                (g.page_bytes / 4).max(1).to_string()
            }
            _ => continue,
        };
        settings.push((parameter, value));
    }
    let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let set = setup.set_all(&settings);
    set.expect("each is a parameter of it, and of the kind that its key says");
    Mapping::Chip(setup.kind)
}

fn partial(word: &str) -> Partial {
    match word {
        "sectors" => Partial::Sectors,
        _ => Partial::Round,
    }
}

fn mean(times: &[Time]) -> Time {
    let sum: u64 = times.iter().map(|time| time.0).sum();
    Time(sum / times.len() as u64)
}

fn build_buffer(v: &Values, page_bytes: u32) -> (Buffer, BufferBytes) {
    let capacity = v.number("buffer.capacity");
    let pages = capacity / u64::from(page_bytes.max(1));
    let capacity_pages = pages.min(u32::MAX.into()) as u32;
    let name = v.text("buffer.policy");
    let mut params = build_params(v, capacity_pages);
    // CBM's blocks are those of the host (D-7).
    if matches!(name, "cbm" | "gcar-cbm") && !v.has("buffer.blocks") {
        params.blocks = Blocks::Host;
    }
    let latency = v.time("buffer.latency_us");
    let latency_or = |key| if v.has(key) { v.time(key) } else { latency };
    let read_cache_pages = match share(v, "buffer.read_cache", capacity_pages) {
        Some(pages) => pages,
        // 24 MB of read cache to 32 MB of write buffer (CBM section V).
        None if name == "cbm" || name == "gcar-cbm" => capacity_pages / 4 * 3,
        None => 0,
    };
    let buffer = Buffer {
        capacity_pages,
        policy: Policy::from_name(name, &params).expect("the name was checked against the list"),
        evict: match v.text("buffer.evict") {
            "background" => EvictMode::Background(v.count("buffer.background_depth")),
            _ => EvictMode::Blocking,
        },
        partial: partial(v.text("buffer.partial")),
        read_cache_pages,
        latency,
        write_latency: latency_or("buffer.write_latency_us"),
        read_cache_latency: latency_or("buffer.read_cache_latency_us"),
        power_loss_protection: v.flag("buffer.power_loss_protection"),
    };
    (buffer, BufferBytes { capacity })
}

/// Pages: a whole number of them, or a share of the capacity. A share rounds down, but only a share
/// of zero is no page at all.
fn share(v: &Values, key: &str, capacity_pages: u32) -> Option<u32> {
    match v.get(key)? {
        Value::Number(pages) => Some(*pages as u32),
        Value::Float(share) => {
            let pages = scale(*share, capacity_pages.into(), 1, Rounding::Down).unwrap_or(0);
            Some(pages.max(u64::from(*share > 0.0)) as u32)
        }
        _ => None,
    }
}

/// The parameters that the policy has; the others keep their defaults.
fn build_params(v: &Values, capacity_pages: u32) -> PolicyParams {
    let mut p = PolicyParams::defaults(capacity_pages);
    for (key, pages) in [
        ("buffer.window", &mut p.window_pages),
        ("buffer.min_lc", &mut p.min_lc_pages),
        ("buffer.k_in", &mut p.k_in_pages),
        ("buffer.k_out", &mut p.k_out_pages),
        ("buffer.hir", &mut p.hir_pages),
        ("buffer.small", &mut p.small_pages),
        ("buffer.ghosts", &mut p.ghost_pages),
        ("buffer.l_p", &mut p.l_p_pages),
        ("buffer.age", &mut p.age_writes),
    ] {
        *pages = share(v, key, capacity_pages).unwrap_or(*pages);
    }
    for (key, flag) in [
        ("buffer.cache_reads", &mut p.cache_reads),
        ("buffer.padding", &mut p.padding),
        ("buffer.compensation", &mut p.compensation),
        ("buffer.adapt", &mut p.adapt),
        ("buffer.merge", &mut p.merge),
        ("buffer.gc_lookahead", &mut p.gc_lookahead),
    ] {
        if v.has(key) {
            *flag = v.flag(key);
        }
    }
    for (key, count) in [
        ("buffer.threshold", &mut p.threshold),
        ("buffer.threshold_floor", &mut p.threshold_floor),
        ("buffer.small_request", &mut p.small_request_pages),
        ("buffer.write_backs", &mut p.write_backs),
        ("buffer.test_num", &mut p.test_num),
        ("buffer.cycle_num", &mut p.cycle_num),
    ] {
        if v.has(key) {
            *count = v.count(key);
        }
    }
    for (key, number) in [
        ("buffer.theta", &mut p.theta),
        ("buffer.filter_percent", &mut p.filter_percent),
        ("buffer.hp_margin_percent", &mut p.hp_margin_percent),
    ] {
        if v.has(key) {
            *number = v.float(key);
        }
    }
    let word = |key| if v.has(key) { v.text(key) } else { "" };
    if word("buffer.blocks") == "host" {
        p.blocks = Blocks::Host;
    }
    match word("buffer.block_in_gc") {
        "all" => p.block_in_gc = BlockInGc::All,
        "majority" => p.block_in_gc = BlockInGc::Majority,
        _ => {}
    }
    match word("buffer.tie") {
        "lowest" => p.tie = Tie::Lowest,
        "round-robin" => p.tie = Tie::RoundRobin,
        _ => {}
    }
    p.exact_cqct = word("buffer.cqct") == "exact";
    p.exact_filter = word("buffer.filter") == "exact";
    p.idle_channel = word("buffer.idle_unit") != "chip";
    if v.has("buffer.filter_reset_ms") {
        p.filter_reset = Time::from_ms(v.number("buffer.filter_reset_ms"));
    }
    p
}
