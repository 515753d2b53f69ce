//! Tests of device files: permitted values, and the messages about values that are not permitted.

mod declared;
mod docs;
mod messages;
mod numbers;
mod overrides;
mod profiles;
mod together;

/// A device like those in the small test cases of the reference simulator. The file has only the
/// required keys.
pub(super) const SMALL: &str = r#"name = "small"

[geometry]
chips = 2
planes_per_chip = 2
blocks_per_plane = 16
pages_per_block = 8
page_bytes = "4 KiB"
reserve_percent = 25

[timing]
read_us = 25
program_us = 200
erase_us = 1500
transfer_ns_per_byte = 25

[nand]
backend = "msr"
copy_back = true

[gc]
low_percent = 12

[buffer]
capacity = "32 KiB"
"#;

/// Returns [`SMALL`] with one piece of text replaced.
pub(super) fn small_with(from: &str, to: &str) -> String {
    assert_eq!(SMALL.matches(from).count(), 1, "{from}");
    SMALL.replace(from, to)
}
