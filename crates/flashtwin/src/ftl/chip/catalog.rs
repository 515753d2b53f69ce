//! Descriptions of the translation layers of one chip for the command line, Python and `docs/ftls.md`. The file
//! of each layer has its description; the table in `mod.rs` lists the files.

pub use crate::component::{Parameter, Provenance, Source};

/// Example access string of a translation layer. The chip has 16 blocks of 4 pages and exports half of its pages.
/// Every exported page is written before the first access.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Parameters.
    pub set: &'static [(&'static str, &'static str)],
    /// Accesses in the notation of [`super::trace`].
    pub accesses: &'static str,
}

/// Description of a translation layer.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name of the layer.
    pub name: &'static str,
    /// Name in print.
    pub title: &'static str,
    /// Description in one line.
    pub line: &'static str,
    /// Publication.
    pub source: Source,
    /// Certainty that the layer's rule is the published one.
    pub provenance: Provenance,
    /// The rule, sentence by sentence.
    pub rule: &'static [&'static str],
    /// Parameters of the layer.
    pub parameters: &'static [Parameter],
    /// Notation of the state.
    pub state: &'static str,
    /// An access string with the states it leads to.
    pub example: Example,
}

/// Returns the translation layer called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    super::ENTRIES
        .iter()
        .find(|entry| entry.name == name)
        .copied()
}
