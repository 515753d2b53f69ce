//! One of several streams of a load.

use super::spec::GeneratorSpec;

/// Amount of a stream's requests compared with the other streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Bytes, relative to those of the other streams.
    Share(f64),
    /// A number of passes over the stream's range; the phase ends after that.
    Passes(f64),
}

/// One stream of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// Requests of the stream. If a number of requests is set, it is that of the whole phase; only
    /// one of its streams may set it.
    pub requests: GeneratorSpec,
    /// Amount in proportion to the other streams.
    pub amount: Amount,
}

/// Streams that run at the same time.
pub(super) type Phase = Vec<StreamSpec>;
