//! One of several streams of a load.

use super::spec::GeneratorSpec;

/// Amount of a stream's requests, relative to the other streams of the phase or absolute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Number of bytes in proportion to those of the other streams.
    Share(f64),
    /// Number of passes over the stream's range. The phase ends after them.
    Passes(f64),
}

/// One stream of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// Requests of the stream. Their number, if given, is that of the whole phase. At most one stream of a phase may
    /// have it.
    pub requests: GeneratorSpec,
    /// Amount in proportion to the other streams.
    pub amount: Amount,
}

/// Streams that run at the same time.
pub(super) type Phase = Vec<StreamSpec>;
