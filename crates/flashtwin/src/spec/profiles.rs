//! The device profiles that come with flashtwin.

/// Names with the texts of their files.
macro_rules! files {
    ($($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../devices/", $name, ".toml")))),+]
    };
}

/// Profiles of devices, in the order a list shows them.
#[rustfmt::skip]
const PROFILES: &[(&str, &str)] = files![
    "cbm", "cosmos", "demo", "ecr", "gcar", "gcar-14g",
    "harmonia", "instant", "jasmine", "nvme-tlc", "optane", "qlc",
    "qlc-client", "sata-dc", "sata-tlc", "tlc-client"
];

/// Profiles of arrays.
const ARRAYS: &[(&str, &str)] = files!["gcar-array", "harmonia-array", "raid5-array", "raid6-nvme"];

/// The TOML text of the array called `name`.
pub fn builtin_array(name: &str) -> Option<&'static str> {
    let mut arrays = ARRAYS.iter();
    arrays
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// Names of all arrays that come with flashtwin.
pub fn builtin_array_names() -> impl Iterator<Item = &'static str> {
    ARRAYS.iter().map(|(name, _)| *name)
}

/// The TOML text of the profile called `name`.
pub fn builtin(name: &str) -> Option<&'static str> {
    PROFILES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// Names of all profiles.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}
