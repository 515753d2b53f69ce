//! Descriptions of all buffer policies for the command line, Python and `docs/policies.md`.
//!
//! The entry of each policy is in the policy's own file. The table in `policies/mod.rs` lists these files.

use std::sync::LazyLock;

use super::policies::{gcar, min};
use super::registry::registered;

pub(crate) use super::entry::GCAR;
pub use super::entry::{Cost, Entry, Example, Family, FILTER};

/// Returns the entries of all policies in the order of the documentation: sorted by family. The filter GCaR is the
/// first entry of its family, which is the last family.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    static ENTRIES: LazyLock<Vec<&Entry>> = LazyLock::new(|| {
        let all = [gcar::ENTRIES]
            .into_iter()
            .chain(registered())
            .chain([min::ENTRIES]);
        let mut entries: Vec<&Entry> = all.flatten().collect();
        entries.sort_by_key(|entry| entry.family);
        entries
    });
    ENTRIES.iter().copied()
}

/// Returns the entry of the policy called `name`. For `gcar-X`, returns the entry of the filter and that of X. Returns
/// `None` if there is no such policy.
pub fn find(name: &str) -> Option<(&'static Entry, Option<&'static Entry>)> {
    let called = |name: &str| entries().find(|entry| entry.name == name);
    match name.strip_prefix(GCAR) {
        None => Some((called(name)?, None)),
        Some(base) => {
            let base = called(base).filter(|entry| entry.stands_alone())?;
            Some((called(FILTER)?, Some(base)))
        }
    }
}
