//! Publication of a rule, and the confidence in it.

/// Provenance of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// Printed in GCaR, Harmonia, ECR, CDA-GC or CBM.
    Printed,
    /// The original article's rule, as commonly known and as published implementations have it.
    Original,
    /// Partly ours: the articles leave it open, or only a summary of the original was at hand.
    Reconstruction,
    /// Ours.
    Ours,
}

impl Provenance {
    /// One word for tables.
    pub fn word(self) -> &'static str {
        match self {
            Provenance::Printed => "printed",
            Provenance::Original => "original",
            Provenance::Reconstruction => "reconstruction",
            Provenance::Ours => "ours",
        }
    }
}

/// The article a policy was published in.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Authors of the publication.
    pub authors: &'static str,
    /// Title of the publication.
    pub title: &'static str,
    /// Journal or conference.
    pub venue: &'static str,
    /// Year.
    pub year: u16,
}

pub(crate) const fn source(
    authors: &'static str,
    title: &'static str,
    venue: &'static str,
    year: u16,
) -> Source {
    Source {
        authors,
        title,
        venue,
        year,
    }
}
