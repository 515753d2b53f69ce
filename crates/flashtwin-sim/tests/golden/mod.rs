//! Results of the model must equal the recorded results, to the last bit. Checksums of the results are recorded in
//! `tests/data/golden`, with one file per test and one line per case. A change that should not affect results must
//! leave these files unchanged. A change that affects results rewrites them, in a separate commit that states the
//! reason:
//!
//!     FLASHTWIN_GOLDEN=write cargo test -p flashtwin-sim --test all golden

mod keys;
mod random;
mod runs;
mod untimed;

use std::fmt::{self, Debug, Write};

use crate::common::data;

/// FNV-1a hash, which is short and sufficient to distinguish results.
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

    /// Adds the debug output of a value.
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

/// Compares the cases of a test with the recorded ones.
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
