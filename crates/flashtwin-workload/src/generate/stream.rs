//! One of several streams of a load.

use super::spec::GeneratorSpec;

/// Requests of a stream in proportion to those of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Bytes, relative to those of the other streams.
    Share(f64),
    /// The bytes of the range of the stream, so many times. The phase ends after that.
    Passes(f64),
}

/// One stream of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// Requests of the stream. Their number, if any, is that of the phase; one of its streams may have it.
    pub requests: GeneratorSpec,
    /// Amount in proportion to the other streams.
    pub amount: Amount,
}

/// Streams at the same time.
pub(super) type Phase = Vec<StreamSpec>;
