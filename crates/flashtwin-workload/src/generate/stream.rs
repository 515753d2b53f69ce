//! One of several streams of a load.

use super::spec::GeneratorSpec;

/// Amount of a stream's requests compared with the other streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Number of bytes, in proportion to the other streams.
    Share(f64),
    /// Number of passes over the stream's range. After them, the phase ends.
    Passes(f64),
}

/// One stream of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// Requests of the stream. A number of requests in it is the number of requests of the whole phase. Only one
    /// stream of a phase may have such a number.
    pub requests: GeneratorSpec,
    /// Amount in proportion to the other streams.
    pub amount: Amount,
}

/// Streams that run at the same time.
pub(super) type Phase = Vec<StreamSpec>;
