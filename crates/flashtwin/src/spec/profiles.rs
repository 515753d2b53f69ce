//! The device profiles that come with flashtwin.

/// Creates a table with the name and the text of each profile.
macro_rules! files {
    ($($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../devices/", $name, ".toml")))),+]
    };
}

/// Profiles of devices, in the order of lists.
#[rustfmt::skip]
const PROFILES: &[(&str, &str)] = files![
    "cbm", "cosmos", "demo", "ecr", "fit-7450-max", "fit-980-pro",
    "fit-cm7-r", "fit-p5520", "fit-pe8110", "fit-warp-a", "gcar", "gcar-14g",
    "harmonia", "instant", "jasmine", "nvme-fdp", "nvme-tlc", "optane", "qlc",
    "qlc-client", "sata-dc", "sata-tlc", "tlc-client"
];

/// Profiles of arrays.
const ARRAYS: &[(&str, &str)] = files!["gcar-array", "harmonia-array", "raid5-array", "raid6-nvme"];

/// Returns the TOML text of the array profile called `name`.
pub fn builtin_array(name: &str) -> Option<&'static str> {
    let mut arrays = ARRAYS.iter();
    arrays
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// Returns the names of all array profiles.
pub fn builtin_array_names() -> impl Iterator<Item = &'static str> {
    ARRAYS.iter().map(|(name, _)| *name)
}

/// Returns the TOML text of the device profile called `name`.
pub fn builtin(name: &str) -> Option<&'static str> {
    PROFILES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// Returns the names of all device profiles.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}
