//! The publication that is the source of a rule, and the certainty that the implemented rule is the published one.

/// Certainty that an implemented rule is the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// Printed in one of the reproduced papers (GCaR, Harmonia, ECR, CDA-GC, CBM).
    Printed,
    /// Taken from the original article, in the form that published implementations commonly have.
    Original,
    /// Partly our own, because the articles leave details open, or because only a summary of the original article was
    /// available.
    Reconstruction,
    /// Our own design.
    Ours,
}

impl Provenance {
    /// Returns the word that the documentation's tables use for this certainty.
    pub fn word(self) -> &'static str {
        match self {
            Provenance::Printed => "printed",
            Provenance::Original => "original",
            Provenance::Reconstruction => "reconstruction",
            Provenance::Ours => "ours",
        }
    }

    /// Returns the sentence with which the documentation states this certainty. It follows the source of the rule.
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
