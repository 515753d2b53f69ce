//! The device profiles that come with flashtwin.

/// Name and text of every profile, in the order a list shows them.
const PROFILES: &[(&str, &str)] = &[
    ("cbm", include_str!("../../devices/cbm.toml")),
    ("cosmos", include_str!("../../devices/cosmos.toml")),
    ("demo", include_str!("../../devices/demo.toml")),
    ("ecr", include_str!("../../devices/ecr.toml")),
    ("gcar", include_str!("../../devices/gcar.toml")),
    ("gcar-14g", include_str!("../../devices/gcar-14g.toml")),
    ("harmonia", include_str!("../../devices/harmonia.toml")),
    ("instant", include_str!("../../devices/instant.toml")),
    ("jasmine", include_str!("../../devices/jasmine.toml")),
    ("nvme-tlc", include_str!("../../devices/nvme-tlc.toml")),
    ("optane", include_str!("../../devices/optane.toml")),
    ("qlc", include_str!("../../devices/qlc.toml")),
    ("qlc-client", include_str!("../../devices/qlc-client.toml")),
    ("sata-dc", include_str!("../../devices/sata-dc.toml")),
    ("sata-tlc", include_str!("../../devices/sata-tlc.toml")),
    ("tlc-client", include_str!("../../devices/tlc-client.toml")),
];

/// The same of arrays.
const ARRAYS: &[(&str, &str)] = &[
    ("gcar-array", include_str!("../../devices/gcar-array.toml")),
    (
        "harmonia-array",
        include_str!("../../devices/harmonia-array.toml"),
    ),
    (
        "raid5-array",
        include_str!("../../devices/raid5-array.toml"),
    ),
    ("raid6-nvme", include_str!("../../devices/raid6-nvme.toml")),
];

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
