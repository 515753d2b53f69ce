//! Every translation layer of this room in words, for the command line, Python and `docs/ftls.md`. Each layer's
//! file has its entry; the table in `mod.rs` names the files.

pub use crate::component::{Parameter, Provenance, Source};

/// A string of accesses that shows the rule at work, on 16 blocks of 4 pages of which half are
/// exported, all written.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Parameters.
    pub set: &'static [(&'static str, &'static str)],
    /// In the notation of [`super::trace`].
    pub accesses: &'static str,
}

/// A translation layer in words.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name of the layer.
    pub name: &'static str,
    /// Name in print.
    pub title: &'static str,
    /// One line.
    pub line: &'static str,
    /// Where it was published.
    pub source: Source,
    /// How sure the rule is.
    pub provenance: Provenance,
    /// The rule, sentence by sentence.
    pub rule: &'static [&'static str],
    /// Parameters of the layer.
    pub parameters: &'static [Parameter],
    /// How its state is printed.
    pub state: &'static str,
    /// The rule at work.
    pub example: Example,
}

/// The one called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    super::ENTRIES
        .iter()
        .find(|entry| entry.name == name)
        .copied()
}
