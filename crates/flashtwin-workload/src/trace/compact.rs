//! Packs the addresses of a trace: pieces of the address space without any read or write are removed. The other pieces
//! keep their order, and adjacent pieces stay adjacent (D-191). A sample also removes most of the other pieces, chosen by
//! a hash (D-234).

use flashtwin::{Op, Request};
use std::collections::BTreeSet;

use crate::generate::rng::splitmix64;

/// Bytes in a piece.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes in a piece of a sample. It is smaller, because a sample should have many pieces. A request that crosses its
/// ends is cut.
const SAMPLED_PIECE_BYTES: u64 = 128 << 10;

/// The kept pieces of those that a trace touches.
pub(crate) struct Touched {
    noted: BTreeSet<u64>,
    /// The pieces, in order. Empty until all requests have been noted.
    kept: Vec<u64>,
    piece_bytes: u64,
    /// One of this number of pieces is kept.
    sample: u32,
    /// Number of flushes so far.
    flushes: u64,
}

impl Touched {
    /// Creates an empty set. If `sample` is above 1, about one of `sample` pieces will be kept.
    pub fn new(sample: u32) -> Self {
        Touched {
            noted: BTreeSet::new(),
            kept: Vec::new(),
            piece_bytes: match sample {
                1 => PIECE_BYTES,
                _ => SAMPLED_PIECE_BYTES,
            },
            sample,
            flushes: 0,
        }
    }

    /// Adds the pieces that a read or write accesses. A trim adds no pieces, because it may be as large as the address
    /// space.
    pub fn note(&mut self, request: &Request) {
        if matches!(request.op, Op::Read | Op::Write) && request.bytes > 0 {
            let first = request.offset / self.piece_bytes;
            let last = (request.offset + request.bytes - 1) / self.piece_bytes;
            let sample = u64::from(self.sample);
            let is_kept = |piece: &u64| splitmix64(&mut piece.clone()).is_multiple_of(sample);
            self.noted.extend((first..=last).filter(is_kept));
        }
    }

    /// Prepares for [`Self::move_request`], after all requests have been noted.
    pub fn complete(mut self) -> Self {
        self.kept = std::mem::take(&mut self.noted).into_iter().collect();
        self
    }

    /// Returns the number of bytes that are kept.
    pub fn bytes(&self) -> u64 {
        self.kept.len() as u64 * self.piece_bytes
    }

    /// Returns the new address of a byte. For a byte in a removed piece, it is the start of the next piece that is
    /// kept.
    fn place(&self, byte: u64) -> u64 {
        let piece = byte / self.piece_bytes;
        let before = self.kept.partition_point(|&p| p < piece);
        let within = match self.kept.get(before) {
            Some(&p) if p == piece => byte % self.piece_bytes,
            _ => 0,
        };
        before as u64 * self.piece_bytes + within
    }

    /// Moves a request to its new address, and divides its arrival time by the number of pieces of which one is kept.
    /// Returns false if nothing of the request remains. Of the flushes, the same share is kept as of the pieces.
    pub fn move_request(&mut self, request: &mut Request) -> bool {
        request.arrival.0 /= u64::from(self.sample);
        if request.bytes == 0 {
            self.flushes += 1;
            return (self.flushes - 1).is_multiple_of(self.sample.into());
        }
        let end = self.place(request.offset + request.bytes);
        request.offset = self.place(request.offset);
        request.bytes = end - request.offset;
        request.bytes > 0
    }
}
