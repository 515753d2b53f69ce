//! The publication that a rule is taken from, and how certain it is that the rule is the published one.

/// How certain it is that a rule is as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// Printed in one of the reproduced papers (GCaR, Harmonia, ECR, CDA-GC, CBM).
    Printed,
    /// From the original article, in the form that is commonly known and that published implementations have.
    Original,
    /// Partly our own, because the articles leave it open, or because only a summary of the original article was
    /// available.
    Reconstruction,
    /// Our own design.
    Ours,
}

impl Provenance {
    /// Returns the word for this certainty that tables of the documentation use.
    pub fn word(self) -> &'static str {
        match self {
            Provenance::Printed => "printed",
            Provenance::Original => "original",
            Provenance::Reconstruction => "reconstruction",
            Provenance::Ours => "ours",
        }
    }

    /// Returns the sentence about this certainty that pages of the documentation print after the source.
    pub fn sentence(self) -> &'static str {
        match self {
            Provenance::Printed => "The rule is printed in this paper.",
            Provenance::Original => "The rule is that of this article.",
            Provenance::Reconstruction => "The rule is partly our reconstruction.",
            Provenance::Ours => "The rule is ours.",
        }
    }
}

/// The article in which a policy was published.
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
