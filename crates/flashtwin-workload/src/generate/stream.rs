//! One of several streams of a load.

use super::spec::GeneratorSpec;

/// Amount of a stream's requests, relative to the other streams of the phase or absolute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Weight of the stream. The streams of a phase move bytes in proportion to their weights.
    Share(f64),
    /// Number of passes over the stream's range. The phase ends after them.
    Passes(f64),
}

/// One stream of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// Requests of the stream. If the number of requests is set here, it is the number for all streams of the phase
    /// together. Only one stream of a phase may set it.
    pub requests: GeneratorSpec,
    /// Amount in proportion to the other streams.
    pub amount: Amount,
}

/// Streams that run at the same time.
pub(super) type Phase = Vec<StreamSpec>;
