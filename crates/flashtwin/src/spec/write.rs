//! From a [`DeviceSpec`] to the TOML text that reads back to it.

use super::decimal::show;
use super::keys::PAGE_MAP;
use super::keys::{find, keys};
use super::tree::split;
use super::{
    Arbitration, BackendWord, DeviceSpec, EvictMode, EvictWord, Granularity, Host, LinkKind,
    LinkWord, Mapping, ModernNand, Nand, Placement, Published, Separation, SeparationWord,
    Watermark,
};
use crate::component::{size, Settings, Value};
use crate::units::Time;

impl DeviceSpec {
    /// Canonical text: every key that has a meaning for this device, in the order of
    /// [`keys`](super::keys()); [`DeviceSpec::parse`] reads it back to an equal spec.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut current = "";
        for doc in keys() {
            let Some(value) = self.value_toml(doc.key) else {
                continue;
            };
            let (section, name) = split(doc.key);
            if section != current {
                text.push_str(&format!("\n[{section}]\n"));
                current = section;
            }
            text.push_str(&format!("{name} = {value}\n"));
        }
        text
    }

    /// The value of a dotted key as TOML text; `None` if it has no meaning for this device.
    pub fn value_toml(&self, key: &str) -> Option<String> {
        if !find(key)?.is_for_mapping(self.mapping_name()) {
            return None;
        }
        let (section, name) = split(key);
        match section {
            "" => match name {
                "name" => Some(quote(&self.name)),
                "description" => Some(quote(&self.description)),
                _ => None,
            },
            "host" => self.host.value_toml(name),
            "link" => self.link_toml(name),
            "nand" => self.nand_toml(name),
            "published" => self.published.value_toml(name),
            "buffer" => self.buffer_toml(name),
            _ => self.plain_toml(key),
        }
    }

    fn plain_toml(&self, key: &str) -> Option<String> {
        let g = &self.geometry;
        let is_modern = matches!(self.nand, Nand::Modern(_));
        Some(match key {
            "geometry.chips" => g.chips.to_string(),
            "geometry.channels" if is_modern => g.channels.to_string(),
            "geometry.planes_per_chip" => g.planes_per_chip.to_string(),
            "geometry.blocks_per_plane" => g.blocks_per_plane.to_string(),
            "geometry.pages_per_block" => g.pages_per_block.to_string(),
            "geometry.page_bytes" => quoted_size(g.page_bytes.into()),
            "geometry.flash_page_bytes" => match &self.nand {
                Nand::Modern(modern) if modern.flash_page_pages != 1 => {
                    quoted_size(u64::from(modern.flash_page_pages) * u64::from(g.page_bytes))
                }
                _ => return None,
            },
            "geometry.spare_bytes_per_sector" => g.spare_bytes_per_sector.to_string(),
            "geometry.reserve_percent" => float(g.reserve_percent),
            "controller.request_us" => us(self.controller.request),
            "controller.scan_entry_ns" => ns(self.controller.scan_entry),
            "timing.read_us" => by_type(&self.timing.read_by_type),
            "timing.program_us" => by_type(&self.timing.program_by_type),
            "timing.erase_us" => us(self.timing.erase),
            "timing.transfer_ns_per_byte" => ns(self.timing.transfer_per_byte),
            "ftl.kind" => quote(self.mapping_name()),
            "ftl.placement" => quote(self.ftl.placement.name()),
            "ftl.stride_pages" if self.ftl.placement == Placement::Static => {
                self.ftl.stride_pages.to_string()
            }
            "ftl.summary_page" => self.ftl.summary_page.to_string(),
            "ftl.partial" => quote(self.ftl.partial?.name()),
            "ftl.separation" => quote(
                match self.ftl.separation {
                    Separation::None => SeparationWord::None,
                    Separation::Gc => SeparationWord::Gc,
                    Separation::Region(_) => SeparationWord::Region,
                }
                .name(),
            ),
            "ftl.region_percent" => match self.ftl.separation {
                Separation::Region(percent) => float(percent),
                _ => return None,
            },
            "gc.victim" => quote(self.gc.victim.name),
            "gc.granularity" if is_modern => quote(
                match self.gc.superblocks {
                    true => Granularity::Superblock,
                    false => Granularity::Block,
                }
                .name(),
            ),
            "gc.watermark" if is_modern && !self.gc.superblocks => quote(
                match self.gc.in_pages {
                    true => Watermark::Pages,
                    false => Watermark::Blocks,
                }
                .name(),
            ),
            "gc.low_percent" => float(self.gc.low_percent),
            "gc.idle_percent" => float(self.gc.idle_percent?),
            "gc.moves" => quote(self.gc.moves.name()),
            "gc.ideal" => self.gc.ideal.to_string(),
            "gc.preemptible" if is_modern => self.gc.preemptible.to_string(),
            "wear.erase_limit" => self.wear.erase_limit.unwrap_or(0).to_string(),
            "wear.endurance_spread_percent" => float(self.wear.endurance_spread_percent),
            "wear.levelling" => quote(self.wear.levelling.name),
            "wear.rated_erases" => self.wear.rated_erases.unwrap_or(0).to_string(),
            "wear.warranty_years" => self.wear.warranty_years.to_string(),
            _ => match split(key) {
                ("gc", name) => return setting_toml(&self.gc.victim.settings, name),
                ("wear", name) => return setting_toml(&self.wear.levelling.settings, name),
                (_, name) => return self.chip_setup()?.value(name),
            },
        })
    }

    /// The value of `ftl.kind`.
    fn mapping_name(&self) -> &'static str {
        match &self.ftl.kind {
            Mapping::Page => PAGE_MAP,
            Mapping::Chip(layer) => layer.entry().name,
        }
    }

    fn link_toml(&self, name: &str) -> Option<String> {
        Some(match (name, self.link.kind) {
            ("kind", LinkKind::Reference) => quote(LinkWord::Reference.name()),
            ("kind", LinkKind::Sata) => quote(LinkWord::Sata.name()),
            ("kind", LinkKind::Pcie { .. }) => quote(LinkWord::Pcie.name()),
            ("command_overhead_us", _) => us(self.link.command_overhead),
            ("bus_ns_per_sector", LinkKind::Reference) => ns(self.link.bus_per_sector),
            ("pcie_generation", LinkKind::Pcie { generation, .. }) => generation.to_string(),
            ("pcie_lanes", LinkKind::Pcie { lanes, .. }) => lanes.to_string(),
            ("pcie_payload_bytes", LinkKind::Pcie { payload_bytes, .. }) => {
                payload_bytes.to_string()
            }
            _ => return None,
        })
    }

    fn nand_toml(&self, name: &str) -> Option<String> {
        Some(match (&self.nand, name) {
            (Nand::Msr(_), "backend") => quote(BackendWord::Msr.name()),
            (Nand::Msr(msr), "parallel_units") => msr.parallel_units.to_string(),
            (Nand::Msr(msr), "copy_back") => msr.copy_back.to_string(),
            (Nand::Msr(msr), "plane_mapping") => quote(msr.plane_mapping.name()),
            (Nand::Msr(msr), "allocation_pool") => quote(msr.allocation_pool.name()),
            (Nand::Msr(msr), "cleaning_in_background") => msr.cleaning_in_background.to_string(),
            (Nand::Modern(_), "backend") => quote(BackendWord::Modern.name()),
            (Nand::Modern(modern), "copy_back") => modern.copy_back.to_string(),
            (Nand::Modern(modern), "read_priority") => modern.read_priority.to_string(),
            (Nand::Modern(modern), _) => return modern.value_toml(name),
            _ => return None,
        })
    }

    fn buffer_toml(&self, name: &str) -> Option<String> {
        let buffer = self.buffer.as_ref()?;
        Some(match name {
            "capacity" => {
                quoted_size(u64::from(buffer.capacity_pages) * u64::from(self.geometry.page_bytes))
            }
            "policy" => quote(&buffer.policy.name()),
            "evict" => quote(
                match buffer.evict {
                    EvictMode::Blocking => EvictWord::Blocking,
                    EvictMode::Background(_) => EvictWord::Background,
                }
                .name(),
            ),
            "background_depth" => match buffer.evict {
                EvictMode::Blocking => return None,
                EvictMode::Background(depth) => depth.to_string(),
            },
            "partial" => quote(buffer.partial.name()),
            "latency_us" => us(buffer.latency),
            "write_latency_us" if buffer.write_latency != buffer.latency => {
                us(buffer.write_latency)
            }
            "read_cache"
                if buffer.read_cache_pages > 0
                    || buffer
                        .policy
                        .entry()
                        .defaults
                        .iter()
                        .any(|d| d.0 == "read_cache") =>
            {
                buffer.read_cache_pages.to_string()
            }
            "read_cache_latency_us" if buffer.read_cache_latency != buffer.latency => {
                us(buffer.read_cache_latency)
            }
            "power_loss_protection" => buffer.power_loss_protection.to_string(),
            _ => return setting_toml(&buffer.policy.settings, name),
        })
    }
}

impl Host {
    fn value_toml(&self, name: &str) -> Option<String> {
        let number = match name {
            "queues" => self.queues,
            "queue_depth" => self.queue_depth,
            "commands" => self.commands,
            "burst" => self.burst,
            "assign" => return Some(quote(self.assign.name())),
            "arbitration" => {
                let arbitration = match self.weighted {
                    true => Arbitration::Weighted,
                    false => Arbitration::RoundRobin,
                };
                return Some(quote(arbitration.name()));
            }
            _ if !self.weighted => return None,
            "urgent_queues" => self.classes[0],
            "high_queues" => self.classes[1],
            "medium_queues" => self.classes[2],
            "high_weight" => self.weights[0],
            "medium_weight" => self.weights[1],
            "low_weight" => self.weights[2],
            _ => return None,
        };
        Some(number.to_string())
    }
}

impl Published {
    fn value_toml(&self, name: &str) -> Option<String> {
        if name == "source" {
            return (*self != Published::default()).then(|| quote(&self.source));
        }
        self.figure(name).map(float)
    }
}

impl ModernNand {
    fn value_toml(&self, name: &str) -> Option<String> {
        Some(match name {
            "background_gc" => self.background_gc.to_string(),
            "cell" => quote(self.cell.name()),
            "multi_plane" => self.multi_plane.to_string(),
            "independent_reads" => self.independent_reads.to_string(),
            "cached_commands" => self.cached_commands.to_string(),
            "program_wait_us" => us(self.program_wait),
            "suspend" => self.suspend.to_string(),
            "suspend_us" => us(self.suspend_cost),
            "suspend_rest_us" if self.suspend_rest != self.suspend_cost => us(self.suspend_rest),
            "suspend_limit" => self.suspend_limit.to_string(),
            "read_retry_percent" => show(self.read_retry_ppm, 10_000),
            _ => return self.slc_cache_toml(name),
        })
    }

    fn slc_cache_toml(&self, name: &str) -> Option<String> {
        let Some(cache) = &self.slc_cache else {
            return (name == "pslc_percent").then(|| "0".into());
        };
        Some(match name {
            "pslc_percent" => float(cache.percent),
            "pslc_read_us" => us(cache.read),
            "pslc_program_us" => us(cache.program),
            "pslc_idle_us" => us(cache.idle),
            _ => return None,
        })
    }
}

/// A parameter of a component.
pub(super) fn setting_toml(settings: &Settings, key: &str) -> Option<String> {
    Some(match settings.value(key)? {
        Value::Text(word) => quote(word),
        Value::Bool(on) => on.to_string(),
        Value::Number(n) => n.to_string(),
        Value::Float(x) => float(*x),
        Value::Numbers(_) => unreachable!("no component has a list"),
    })
}

fn quote(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

fn us(time: Time) -> String {
    show(time.0, 1_000_000)
}

/// One time, or a list by page type.
fn by_type(times: &[Time]) -> String {
    match times {
        [one] => us(*one),
        _ => {
            let times: Vec<String> = times.iter().map(|&time| us(time)).collect();
            format!("[{}]", times.join(", "))
        }
    }
}

fn ns(time: Time) -> String {
    show(time.0, 1_000)
}

/// Shortest text that reads back to the same number, as an integer if it is whole.
fn float(x: f64) -> String {
    x.to_string()
}

fn quoted_size(bytes: u64) -> String {
    quote(&size(bytes))
}
