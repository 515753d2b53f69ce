//! The device of a validation case: the parameters of the reference simulator, converted to a [`DeviceSpec`].

use std::path::Path;

use flashtwin::{DeviceSpec, Time};
use serde::de::DeserializeOwned;
use serde::Deserialize;

use super::input::read_text;
use crate::SimError;

/// Device parameters of the reference; times in ms.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Parameters {
    elements: u32,
    planes_per_element: u32,
    blocks_per_plane: u32,
    pages_per_block: u32,
    pub sectors_per_page: u32,
    reserve_percent: f64,
    min_free_percent: f64,
    copy_back: u32,
    parallel_units: u32,
    #[serde(default)]
    cleaning_in_background: u32,
    plane_block_mapping: u32,
    allocation_pool: u32,
    element_stride_pages: u32,
    read_ms: f64,
    program_ms: f64,
    erase_ms: f64,
    transfer_ms_per_byte: f64,
    bus_ms_per_sector: f64,
    #[serde(default)]
    command_overhead_ms: f64,
    #[serde(default = "greedy")]
    cleaning_policy: u32,
}

/// Returns the number that denotes the greedy policy in the reference.
fn greedy() -> u32 {
    2
}

/// Reads a JSON file of a case.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, SimError> {
    let text = read_text(path)?;
    serde_json::from_str(&text).map_err(|e| {
        SimError::case(
            path,
            Some(e.line() as u64).filter(|&l| l > 0),
            e.to_string(),
        )
    })
}

/// Largest permitted number of pages. No real case reaches the limit. It prevents a hostile file from exhausting the
/// memory.
const PAGES_MAX: u64 = 1 << 28;

fn time_of(key: &str, ms: f64) -> Result<Time, String> {
    match (ms * 1e9).round() {
        ps if (0.0..=1e15).contains(&ps) => Ok(Time(ps as u64)),
        _ => Err(format!("{key}: found {ms}; must be from 0 to a million ms")),
    }
}

/// Returns the word of a device file for a parameter that is a number in the reference. The error lists the numbers
/// that the model supports.
fn word_of(key: &str, value: u32, words: &[(u32, &'static str)]) -> Result<&'static str, String> {
    let found = words.iter().find(|(number, _)| *number == value);
    found.map(|(_, word)| *word).ok_or_else(|| {
        let known: Vec<String> = words.iter().map(|(number, _)| number.to_string()).collect();
        format!("{key}: found {value}; modelled are {}", known.join(" and "))
    })
}

impl Parameters {
    /// Returns the number of pages of the device; `None` if it overflows.
    fn pages(&self) -> Option<u64> {
        let counts = [
            self.elements,
            self.planes_per_element,
            self.blocks_per_plane,
            self.pages_per_block,
        ];
        counts
            .into_iter()
            .try_fold(1u64, |n, count| n.checked_mul(count.into()))
    }

    /// Returns the device that the parameters describe. Errors name `path` as the file.
    pub fn device(&self, path: &Path) -> Result<DeviceSpec, SimError> {
        let wrong = |message: String| SimError::case(path, None, message);
        let choose = |key: &str, value: u32, words: &[(u32, &'static str)]| {
            word_of(key, value, words).map_err(wrong)
        };
        let time = |key: &str, ms: f64| time_of(key, ms).map_err(wrong);
        let us =
            |key, ms| time(key, ms).map(|t| format!("{}.{:06}", t.0 / 1_000_000, t.0 % 1_000_000));
        let ns = |key, ms| time(key, ms).map(|t| format!("{}.{:03}", t.0 / 1_000, t.0 % 1_000));
        let flag = |key, value| choose(key, value, &[(0, "false"), (1, "true")]);
        choose("cleaning_policy", self.cleaning_policy, &[(2, "greedy")])?;
        if self.pages().is_none_or(|pages| pages > PAGES_MAX) {
            return Err(wrong(format!("the device has more than {PAGES_MAX} pages")));
        }
        let toml = format!(
            "name = \"reference\"\n\
             [geometry]\n\
             chips = {}\nplanes_per_chip = {}\nblocks_per_plane = {}\npages_per_block = {}\n\
             page_bytes = {}\nspare_bytes_per_sector = 16\nreserve_percent = {:?}\n\
             [timing]\n\
             read_us = {}\nprogram_us = {}\nerase_us = {}\ntransfer_ns_per_byte = {}\n\
             [link]\n\
             command_overhead_us = {}\nbus_ns_per_sector = {}\n\
             [nand]\n\
             backend = \"msr\"\nparallel_units = {}\ncopy_back = {}\nplane_mapping = \"{}\"\n\
             allocation_pool = \"{}\"\ncleaning_in_background = {}\n\
             [ftl]\n\
             stride_pages = {}\nsummary_page = true\n\
             [gc]\n\
             low_percent = {:?}\n",
            self.elements,
            self.planes_per_element,
            self.blocks_per_plane,
            self.pages_per_block,
            u64::from(self.sectors_per_page) * 512,
            self.reserve_percent,
            us("read_ms", self.read_ms)?,
            us("program_ms", self.program_ms)?,
            us("erase_ms", self.erase_ms)?,
            ns("transfer_ms_per_byte", self.transfer_ms_per_byte)?,
            us("command_overhead_ms", self.command_overhead_ms)?,
            ns("bus_ms_per_sector", self.bus_ms_per_sector)?,
            self.parallel_units,
            flag("copy_back", self.copy_back)?,
            choose(
                "plane_block_mapping",
                self.plane_block_mapping,
                &[(1, "concatenated"), (3, "striped")],
            )?,
            choose(
                "allocation_pool",
                self.allocation_pool,
                &[(1, "chip"), (2, "plane")]
            )?,
            flag("cleaning_in_background", self.cleaning_in_background)?,
            self.element_stride_pages,
            self.min_free_percent,
        );
        DeviceSpec::parse(&toml, "device").map_err(|e| {
            let problems = e
                .problems
                .iter()
                .map(|p| format!("{}: {}", p.key, p.message));
            wrong(format!(
                "no possible device: {}",
                problems.collect::<Vec<_>>().join("; ")
            ))
        })
    }
}
