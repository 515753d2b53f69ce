//! Fingerprint of a snapshot: the text of all settings on which the state of the flash depends. Other settings are not
//! part of it.

use flashtwin::spec::Level;
use flashtwin::DeviceSpec;

use crate::Described;

/// Keys of a device file on which the state of the flash depends.
const FINGERPRINT_KEYS: [&str; 19] = [
    "geometry.chips",
    "geometry.planes_per_chip",
    "geometry.blocks_per_plane",
    "geometry.pages_per_block",
    "geometry.page_bytes",
    "geometry.flash_page_bytes",
    "geometry.reserve_percent",
    "nand.backend",
    "nand.parallel_units",
    "nand.copy_back",
    "nand.multi_plane",
    "nand.plane_mapping",
    "nand.allocation_pool",
    "ftl.kind",
    "ftl.placement",
    "ftl.stride_pages",
    "ftl.summary_page",
    "gc.victim",
    "gc.low_percent",
];

/// Further keys on which the state of the flash depends if the device has a translation layer per chip.
const FINGERPRINT_KEYS_OF_CHIPS: [&str; 9] = [
    "ftl.cmt_entries",
    "ftl.protected_entries",
    "ftl.entries_per_translation_page",
    "ftl.batching",
    "ftl.low_blocks",
    "ftl.log_blocks",
    "ftl.rw_log_blocks",
    "ftl.isolation_blocks",
    "ftl.refinements",
];

/// Keys on which the location of a page in a SWAN array depends.
const FINGERPRINT_KEYS_OF_VOLUMES: [&str; 6] = [
    "array.level",
    "array.groups",
    "array.segment",
    "array.spare_percent",
    "array.chunk",
    "array.rotation",
];

/// Returns the settings of one drive, one line per key. Each line begins with the prefix that the parameter `of` gives,
/// such as `member0.`; for a single drive, the prefix is empty. If the drive does not have a key, the value is `-`, or
/// the line is left out for keys that few drives have.
fn of_drive(spec: &DeviceSpec, of: &str) -> String {
    let value = |key: &str| spec.value_toml(key).unwrap_or_else(|| "-".into());
    let line = |key: &str| format!("{of}{key} = {}\n", value(key));
    let all = FINGERPRINT_KEYS.map(line);
    let of_chips = FINGERPRINT_KEYS_OF_CHIPS.iter();
    let of_chips =
        of_chips.filter_map(|key| Some(format!("{of}{key} = {}\n", spec.value_toml(key)?)));
    // Only where it differs from most drives.
    let superblocks = spec.gc.has_superblocks().then(|| line("gc.granularity"));
    let wear_aware = spec.wear.levelling.name == "reference";
    let wear = wear_aware.then(|| line("wear.levelling"));
    all.into_iter()
        .chain(of_chips)
        .chain(superblocks)
        .chain(wear)
        .collect()
}

/// Returns the text of all settings on which the state of a device depends. For an array, these are the settings of its
/// members, in order. A SWAN array adds the layout of its volume.
pub(super) fn fingerprint(is: &Described) -> String {
    let Some(array) = is.array else {
        return of_drive(is.members[0], "");
    };
    let mut kinds: Vec<String> = Vec::new();
    let mut order: Vec<usize> = Vec::new();
    for member in &is.members {
        let text = of_drive(member, "");
        let known = kinds.iter().position(|kind| *kind == text);
        order.push(known.unwrap_or(kinds.len()));
        if known.is_none() {
            kinds.push(text);
        }
    }
    let name = |kind: usize| match kinds.len() {
        1 => "member".to_string(),
        _ => format!("member{kind}"),
    };
    let runs = order.chunk_by(|a, b| a == b);
    let runs: Vec<String> = runs
        .map(|run| format!("{}*{}", name(run[0]), run.len()))
        .collect();
    let mut text = format!("array.members = {}\n", runs.join(", "));
    for kind in 0..kinds.len() {
        let member = order.iter().position(|&of| of == kind).unwrap_or(0);
        text += &of_drive(is.members[member], &format!("{}.", name(kind)));
    }
    if array.level == Level::Swan {
        for key in FINGERPRINT_KEYS_OF_VOLUMES {
            let value = array.value_toml(key).unwrap_or_else(|| "-".into());
            text += &format!("{key} = {value}\n");
        }
    }
    text
}
