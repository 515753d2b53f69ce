//! Packs the addresses of a trace: pieces of the address space without any read or write are removed. The other pieces
//! keep their order, and adjacent pieces stay adjacent (D-191).

use flashtwin::{Op, Request};
use std::collections::BTreeSet;

/// Bytes in a piece.
pub(crate) const PIECE_BYTES: u64 = 1 << 20;

/// The pieces that a trace touches, in order.
pub(crate) struct Touched(Vec<u64>);

impl Touched {
    /// Adds the pieces that a read or write accesses. A trim adds no pieces, because it may be as large as the address
    /// space.
    pub fn note(pieces: &mut BTreeSet<u64>, request: &Request) {
        if matches!(request.op, Op::Read | Op::Write) && request.bytes > 0 {
            let last = (request.offset + request.bytes - 1) / PIECE_BYTES;
            pieces.extend(request.offset / PIECE_BYTES..=last);
        }
    }

    pub fn new(pieces: BTreeSet<u64>) -> Self {
        Touched(pieces.into_iter().collect())
    }

    /// Returns the number of pieces that are kept.
    pub fn pieces(&self) -> usize {
        self.0.len()
    }

    /// Returns the new address of a byte. For a byte in a removed piece, it is the start of the next piece that is
    /// kept.
    fn place(&self, byte: u64) -> u64 {
        let piece = byte / PIECE_BYTES;
        let before = self.0.partition_point(|&p| p < piece);
        let within = match self.0.get(before) {
            Some(&p) if p == piece => byte % PIECE_BYTES,
            _ => 0,
        };
        before as u64 * PIECE_BYTES + within
    }

    /// Moves a request to its new address. Returns false if nothing of the request remains, which happens to trims of
    /// removed pieces.
    pub fn move_request(&self, request: &mut Request) -> bool {
        if request.bytes == 0 {
            return true;
        }
        let end = self.place(request.offset + request.bytes);
        request.offset = self.place(request.offset);
        request.bytes = end - request.offset;
        request.bytes > 0
    }
}
