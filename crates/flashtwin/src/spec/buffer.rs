//! The buffer in front of the flash, with its replacement policy.

use super::decimal::{scale, Rounding};
use super::section::{section, Key, Only, Values, OPTIONAL};
use super::{DeviceSpec, Geometry, STEP_US};
use crate::buffer::ChosenPolicy;
use crate::component::{words, Kind, Parameter, Settings, Value};
use crate::units::{saturating_u32, Time};

/// Largest size of a buffer in bytes. A device with 2^32 pages cannot use a larger one.
const SIZE: u64 = 1 << 52;
const BACKGROUND: Only = &[(Buffer::evict.name(), &[EvictMode::Background.name()])];

words! {
    /// Time at which an access that needs a slot may proceed (D-2).
    pub enum EvictMode {
        /// The access proceeds when the program of its victim has completed.
        Blocking = "blocking",
        /// The access proceeds immediately if at most `background_depth` write-backs are in flight.
        Background = "background",
    }
}

words! {
    /// Handling of requests that do not cover whole pages (D-1).
    pub enum Partial {
        /// Every request is extended to page boundaries.
        Round = "round",
        /// With a buffer, each page has a bitmap of its valid sectors; sectors that are not valid are read from flash
        /// when they are needed. Without a buffer, only the requested sectors cross the host link, and a write of a part
        /// of a page first reads the page from flash (D-97).
        Sectors = "sectors",
    }
}

section! {
    /// Memory for pages in front of the flash.
    pub struct Buffer(v) in (spec: DeviceSpec => spec.buffer.as_ref()) {
        capacity_pages: u32 = "buffer.capacity", Kind::Size(SIZE), None, &[],
            "Size of the buffer: whole pages, at least one.", "GCaR 1 to 32 MB, ECR 32 MB",
            read capacity_pages(v),
            write capacity(spec);
        policy: ChosenPolicy = "buffer.policy", Kind::PolicyName, Some("\"lru\""), &[],
            "Replacement policy; `gcar-NAME` is the policy NAME filtered by GCaR.", "the papers' baseline",
            read policy(v, capacity_pages),
            write Some(Value::Text(spec.buffer.as_ref()?.policy.name()));
        evict: EvictMode = "buffer.evict", Kind::Choice(EvictMode::WORDS), Some("\"blocking\""), &[],
            "When the access that needs a slot proceeds: once its victim is programmed (`blocking`), or immediately (`background`).", "D-2";
        background_depth: u32 = "buffer.background_depth", Kind::Count(1, 65_535), Some("8"), BACKGROUND,
            "Maximum number of write-backs in flight. An access that needs another one waits. Write-backs of pages that stay cached count, too.", "D-2";
        pause: Time = "buffer.pause_us", Kind::Micros(STEP_US), Some("0"), BACKGROUND,
            "Time for which programs of the buffer are held, again and again. Meanwhile, evicted pages pass on their slots until `background_depth` write-backs are in flight; then accesses wait. Models drives that write to flash more slowly, or not at all, at regular times.", "ours: D-233";
        pause_every: Time = "buffer.pause_every_us", Kind::Micros(STEP_US), Some("0"), BACKGROUND,
            "Time from the end of one pause to the end of the next one: more than `pause_us` (with `pause_pages_per_s`, at least as much), or 0 without pauses.", "ours: D-233";
        pause_pages_per_s: u32 = "buffer.pause_pages_per_s", Kind::Count(0, 100_000_000), Some("0"), BACKGROUND,
            "Pages per second whose programs begin in a pause. With 0, no program begins in a pause.", "ours: D-233";
        partial: Partial = "buffer.partial", Kind::Choice(Partial::WORDS), Some("\"round\""), &[],
            "Handling of requests that cover only part of a page. `round`: they are rounded to whole pages. `sectors`: each page has a bitmap of its valid sectors.", "D-1";
        latency: Time = "buffer.latency_us", Kind::Micros(STEP_US), Some("0"), &[],
            "Read latency of the buffer memory, and write latency unless `write_latency_us` is set.", "ours: only CBM prints it";
        write_latency: Time = "buffer.write_latency_us", Kind::Micros(STEP_US), OPTIONAL, &[],
            "Write latency of the buffer memory; default: `latency_us`.", "CBM Table I: 40 ns a 64-byte line of NVM, 2.56 (D-21)",
            follows latency;
        read_cache_pages: u32 = "buffer.read_cache", Kind::Window, OPTIONAL, &[],
            "Size of a separate LRU cache for read pages, in addition to `capacity`: pages, or a share of the capacity. Default: 0; with `cbm`, 0.75 of the capacity (24 MB beside 32 MB, CBM section V).", "CBM section III; D-6",
            read v.get(&Self::read_cache_pages).map_or(0, |given| share(given, capacity_pages)),
            write read_cache(spec);
        read_cache_latency: Time = "buffer.read_cache_latency_us", Kind::Micros(STEP_US), OPTIONAL, &[],
            "Latency of the separate read cache; default: `latency_us`.", "CBM Table I: 15 ns a 64-byte line of DRAM, 0.96 (D-21)",
            follows latency;
        power_loss_protection: bool = "buffer.power_loss_protection", Kind::Bool, Some("false"), &[],
            "The buffer survives a power loss: a flush or FUA write completes once its data is in the buffer. Always the case with `cbm`, whose write buffer is non-volatile.", "ours";
    } and {
        /// Whether the memory is non-volatile. The policy in the device file determines this. If another policy
        /// replaces it at run time, the memory stays the same.
        non_volatile: bool = policy.entry().non_volatile;
    }
}

impl Buffer {
    /// Whether the memory survives a power loss.
    pub(crate) fn is_protected(&self) -> bool {
        self.power_loss_protection || self.non_volatile
    }
}

fn capacity_pages(v: &Values) -> u32 {
    let bytes: u64 = v.setting(&Buffer::capacity_pages);
    let page: u64 = v.setting(&Geometry::page_bytes);
    saturating_u32(bytes / page.max(1))
}

fn capacity(spec: &DeviceSpec) -> Option<Value> {
    let pages = spec.buffer.as_ref()?.capacity_pages;
    let bytes = u64::from(pages) * u64::from(spec.geometry.page_bytes);
    Some(Value::Number(bytes))
}

/// Returns the size of the read cache, to be written to a device file. Returns `None` if the file can omit the key.
/// This is the case if the device has no read cache, and its policy has none by default.
fn read_cache(spec: &DeviceSpec) -> Option<Value> {
    let buffer = spec.buffer.as_ref()?;
    let key = Buffer::read_cache_pages.short_name();
    let mut defaults = buffer.policy.entry().defaults.iter();
    let pages = buffer.read_cache_pages;
    let is_written = pages > 0 || defaults.any(|(of, _)| *of == key);
    is_written.then(|| Value::Number(pages.into()))
}

/// Converts a parameter to a number of pages. The parameter is a number of pages, or a share of the capacity. A share
/// is rounded down, but a share above zero is at least one page.
fn share(value: &Value, capacity_pages: u32) -> u32 {
    match value {
        Value::Number(pages) => saturating_u32(*pages),
        Value::Float(share) => {
            let pages = scale(*share, capacity_pages.into(), 1, Rounding::Down).unwrap_or(0);
            saturating_u32(pages.max(u64::from(*share > 0.0)))
        }
        _ => unreachable!("neither pages nor a share"),
    }
}

/// Returns the policy with the values of its parameters.
fn policy(v: &Values, capacity_pages: u32) -> ChosenPolicy {
    let key: Key<ChosenPolicy> = Buffer::policy;
    let name: String = v.setting(&key);
    let setting = |parameter: &'static Parameter| {
        let value = v.parameter(&key, parameter);
        let value = value.expect("a parameter has a default");
        let value = match parameter.kind {
            Kind::Window | Kind::Beyond => Value::Number(share(value, capacity_pages).into()),
            _ => value.clone(),
        };
        (parameter.key, value)
    };
    let settings = Settings::new(ChosenPolicy::parameters(&name).map(setting).collect());
    ChosenPolicy::new(&name, settings).expect("the name was checked against the list")
}
