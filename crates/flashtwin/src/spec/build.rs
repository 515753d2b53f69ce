//! From values to the types of a [`DeviceSpec`].

use super::decimal::{percent_of, scale, Rounding};
use super::keys::keys;
use super::read::Values;
use super::tree::split;
use super::{
    Arbitration, BackendWord, Buffer, Controller, DeviceSpec, EvictMode, EvictWord, Ftl, Gc,
    Geometry, Granularity, Host, Link, LinkKind, LinkWord, Mapping, ModernNand, MsrNand, Nand,
    Published, Separation, SeparationWord, SlcCache, Timing, Watermark, Wear,
};
use crate::buffer::ChosenPolicy;
use crate::component::{Chosen, Component, Kind, Parameter, Settings, Value};
use crate::ftl::{chip, LEVELLING};
use crate::gc;
use crate::units::{narrow, saturating_u32, Time};

/// The spec that the values describe, not yet checked as a whole, and the bytes of its buffer before it became pages.
pub(super) fn build(v: &Values) -> (DeviceSpec, Option<u64>) {
    let chips = v.count("geometry.chips");
    let is_msr = v.word::<BackendWord>("nand.backend") == BackendWord::Msr;
    let page_bytes = v.count("geometry.page_bytes");
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
            assign: v.word("host.assign"),
            burst: v.count("host.burst"),
            weighted: v.word::<Arbitration>("host.arbitration") == Arbitration::Weighted,
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
            kind: match v.word("link.kind") {
                LinkWord::Sata => LinkKind::Sata,
                LinkWord::Pcie => LinkKind::Pcie {
                    generation: v.count("link.pcie_generation"),
                    lanes: v.count("link.pcie_lanes"),
                    payload_bytes: v.count("link.pcie_payload_bytes"),
                },
                LinkWord::Reference => LinkKind::Reference,
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
                plane_mapping: v.word("nand.plane_mapping"),
                allocation_pool: v.word("nand.allocation_pool"),
                cleaning_in_background: v.is_on("nand.cleaning_in_background"),
            }),
            false => Nand::Modern(ModernNand {
                read_priority: v.flag("nand.read_priority"),
                copy_back: v.flag("nand.copy_back"),
                background_gc: v.is_on("nand.background_gc"),
                cell: v.word("nand.cell"),
                flash_page_pages: match v.has("geometry.flash_page_bytes") {
                    true => {
                        let bytes = v.number("geometry.flash_page_bytes");
                        let page = u64::from(page_bytes.max(1));
                        // No whole pages are none at all: the check reports it.
                        match bytes.is_multiple_of(page) {
                            true => saturating_u32(bytes / page),
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
            placement: v.word("ftl.placement"),
            stride_pages: v.count_or("ftl.stride_pages", 1),
            summary_page: v.is_on("ftl.summary_page"),
            partial: v.has("ftl.partial").then(|| v.word("ftl.partial")),
            separation: match v.word("ftl.separation") {
                SeparationWord::None => Separation::None,
                SeparationWord::Gc => Separation::Gc,
                SeparationWord::Region => Separation::Region(v.float("ftl.region_percent")),
            },
        },
        gc: Gc {
            victim: chosen(v, "gc.victim", gc::RULES),
            superblocks: v.word::<Granularity>("gc.granularity") == Granularity::Superblock,
            low_percent: v.float_or("gc.low_percent", 0.0),
            in_pages: v.word::<Watermark>("gc.watermark") == Watermark::Pages,
            idle_percent: v.has("gc.idle_percent").then(|| v.float("gc.idle_percent")),
            moves: v.word("gc.moves"),
            ideal: v.is_on("gc.ideal"),
            preemptible: v.is_on("gc.preemptible"),
        },
        wear: Wear {
            erase_limit: match v.count_or("wear.erase_limit", 0) {
                0 => None,
                limit => Some(limit),
            },
            endurance_spread_percent: v.float_or("wear.endurance_spread_percent", 0.0),
            levelling: chosen(v, "wear.levelling", LEVELLING),
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

/// What a key chose among components.
fn chosen(v: &Values, key: &str, among: &'static [Component]) -> Chosen {
    let word: String = v.word(key);
    let component = among.iter().find(|component| component.name == word);
    let component = component.expect("the word was checked against the list");
    let section = split(key).0;
    let setting = |parameter: &'static Parameter| {
        let value = v.get(&format!("{section}.{}", parameter.key));
        (
            parameter.key,
            value.expect("a parameter has a default").clone(),
        )
    };
    Chosen {
        name: component.name,
        settings: Settings::new(component.parameters.iter().map(setting).collect()),
    }
}

/// The translation layer with its parameters; those not given follow from the chip. Numbers that no
/// chip can have are cut off: the check refuses them.
fn build_mapping(v: &Values, g: &Geometry) -> Mapping {
    let name = v.text("ftl.kind");
    let small = |n: u64| narrow(n.min(1 << 31));
    let planes = u64::from(g.planes_per_chip);
    let reserved = percent_of(g.blocks_per_plane.into(), g.reserve_percent);
    let usable = planes * u64::from(g.blocks_per_plane).saturating_sub(reserved);
    let blocks = small(planes * u64::from(g.blocks_per_plane));
    let pages = small(usable * u64::from(g.pages_per_block));
    let Ok(mut setup) = chip::Setup::new(name, pages, blocks, g.pages_per_block) else {
        return Mapping::Page;
    };
    let mut settings = Vec::new();
    for parameter in setup.parameters().iter().map(|parameter| parameter.key) {
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

fn mean(times: &[Time]) -> Time {
    let sum: u64 = times.iter().map(|time| time.0).sum();
    Time(sum / times.len() as u64)
}

fn build_buffer(v: &Values, page_bytes: u32) -> (Buffer, u64) {
    let capacity = v.number("buffer.capacity");
    let pages = capacity / u64::from(page_bytes.max(1));
    let capacity_pages = saturating_u32(pages);
    let name = v.text("buffer.policy");
    let latency = v.time("buffer.latency_us");
    let latency_or = |key| if v.has(key) { v.time(key) } else { latency };
    let read_cache_pages = share(v, "buffer.read_cache", capacity_pages).unwrap_or(0);
    let settings = settings(v, name, capacity_pages);
    let policy = ChosenPolicy::new(name, settings).expect("the name was checked against the list");
    let buffer = Buffer {
        capacity_pages,
        non_volatile: policy.entry().non_volatile,
        policy,
        evict: match v.word("buffer.evict") {
            EvictWord::Background => EvictMode::Background(v.count("buffer.background_depth")),
            EvictWord::Blocking => EvictMode::Blocking,
        },
        partial: v.word("buffer.partial"),
        read_cache_pages,
        latency,
        write_latency: latency_or("buffer.write_latency_us"),
        read_cache_latency: latency_or("buffer.read_cache_latency_us"),
        power_loss_protection: v.flag("buffer.power_loss_protection"),
    };
    (buffer, capacity)
}

/// Pages: a whole number of them, or a share of the capacity. A share rounds down, but only a share
/// of zero is no page at all.
fn share(v: &Values, key: &str, capacity_pages: u32) -> Option<u32> {
    match v.get(key)? {
        Value::Number(pages) => Some(saturating_u32(*pages)),
        Value::Float(share) => {
            let pages = scale(*share, capacity_pages.into(), 1, Rounding::Down).unwrap_or(0);
            Some(saturating_u32(pages.max(u64::from(*share > 0.0))))
        }
        _ => None,
    }
}

/// The values of the policy's parameters.
fn settings(v: &Values, policy: &str, capacity_pages: u32) -> Settings {
    let value = |parameter: &'static Parameter| {
        let key = format!("buffer.{}", parameter.key);
        let value = match share(v, &key, capacity_pages) {
            Some(pages) if matches!(parameter.kind, Kind::Window | Kind::Beyond) => {
                Value::Number(pages.into())
            }
            _ => v.get(&key).expect("a parameter has a default").clone(),
        };
        (parameter.key, value)
    };
    Settings::new(ChosenPolicy::parameters(policy).map(value).collect())
}
