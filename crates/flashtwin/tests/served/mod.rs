//! Changes to a running device: orders to collect, another buffer policy, other GC settings, and another speed of a
//! member.

mod collect;
mod policy;
mod settings;
mod slow;

use flashtwin::spec::{builtin, builtin_array};
use flashtwin::{Array, ArraySpec, DeviceSpec, Ssd};

/// Returns a small device: the given profile with the given settings.
fn ssd(name: &str, more: &[(&str, &str)]) -> Ssd {
    let mut all = vec![
        ("geometry.chips", "4"),
        ("geometry.blocks_per_plane", "64"),
        ("geometry.pages_per_block", "16"),
    ];
    all.extend(more);
    let text = builtin(name).unwrap();
    Ssd::new(&DeviceSpec::with_overrides(text, name, &all).unwrap())
}

/// Returns an array of small members with the given settings.
fn array(level: &str, members: &str, more: &[(&str, &str)]) -> Array {
    let mut all = vec![
        ("array.level", level),
        ("array.members", members),
        ("member.geometry.chips", "4"),
        ("member.geometry.planes_per_chip", "1"),
        ("member.geometry.blocks_per_plane", "64"),
        ("member.geometry.pages_per_block", "16"),
        ("member.nand.parallel_units", "1"),
    ];
    all.extend(more);
    let text = builtin_array("harmonia-array").unwrap();
    Array::new(&ArraySpec::with_overrides(text, "harmonia-array", &all).unwrap())
}
