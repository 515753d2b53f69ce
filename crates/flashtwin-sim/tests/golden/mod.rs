//! Results of the model, held to the last bit: checksums in `tests/data/golden`, a file for each test and a line for
//! each case. A change that is to leave results as they are leaves the files as they are; one that changes results
//! writes them anew, in a commit of its own that states why:
//!
//!     FLASHTWIN_GOLDEN=write cargo test -p flashtwin-sim --test all golden

mod keys;
mod random;
mod runs;
mod untimed;

use std::fmt::{self, Debug, Write};

use crate::common::data;

/// FNV-1a: enough to distinguish results, and short.
struct Checksum(u64);

impl Checksum {
    fn new() -> Checksum {
        Checksum(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    /// Adds a value as it is printed for debugging.
    fn show(&mut self, value: &dyn Debug) {
        write!(self, "{value:?};").expect("a checksum takes all");
    }
}

impl Write for Checksum {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

/// Compares the cases of a test with those on record.
fn hold(test: &str, cases: &[(String, u64)]) {
    let file = data("golden").join(format!("{test}.txt"));
    let mut now = String::new();
    for (name, sum) in cases {
        writeln!(now, "{sum:016x} {name}").expect("a string takes it");
    }
    if std::env::var("FLASHTWIN_GOLDEN").is_ok_and(|what| what == "write") {
        std::fs::write(&file, &now).expect("the file can be written");
    }
    let before = std::fs::read_to_string(&file).expect("the cases are on record");
    let changed: Vec<_> = now.lines().filter(|line| !before.contains(line)).collect();
    assert!(
        changed.is_empty(),
        "{} results changed; if they should, FLASHTWIN_GOLDEN=write cargo test -p flashtwin-sim --test all golden \
         writes them:\n{}",
        changed.len(),
        changed.join("\n")
    );
    assert_eq!(
        now.lines().count(),
        before.lines().count(),
        "cases are missing"
    );
}
