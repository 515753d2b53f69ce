//! Requests of a host, and their completions.

mod breakdown;
mod placement_id;

pub use breakdown::{Breakdown, PARTS};
pub use placement_id::PlacementId;

use crate::units::Time;

/// The kind of a host request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Read `bytes` from `offset`.
    #[default]
    Read = 0,
    /// Write `bytes` to `offset`.
    Write = 1,
    /// Forget `bytes` from `offset` (discard, deallocate).
    Trim = 2,
    /// Complete once everything written before is on the medium. Carries no address.
    Flush = 3,
}

/// One host request. Addresses are bytes from the start of the device. The default is a read of no bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Arrival at the device; for closed loops the driver sets it.
    pub arrival: Time,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; 0 only for a flush.
    pub bytes: u64,
    /// Operation.
    pub op: Op,
    /// Force unit access: a write that completes only once it is on the medium.
    pub fua: bool,
    /// Placement id of a write; devices without [`crate::placement`] ignore it.
    pub placement: PlacementId,
}

/// Queues copy requests, so that their size matters; the placement id fits into bytes that were
/// padding.
const _: () = assert!(size_of::<Request>() == 32);

/// Status of a completed request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// Done as asked.
    #[default]
    Ok = 0,
    /// The device has reached its end of life and takes no more writes.
    ReadOnly = 1,
    /// Data is lost: more members of an array failed than it can do without, or the die that held it is dead.
    Failed = 2,
}

/// A finished request.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The driver's own number for the request.
    pub tag: u64,
    /// Operation of the request.
    pub op: Op,
    /// Status of the request.
    pub status: Status,
    /// First byte of the request.
    pub offset: u64,
    /// Number of bytes of the request.
    pub bytes: u64,
    /// Pages touched.
    pub pages: u32,
    /// Pages of the request that were found in the buffer.
    pub hits: u32,
    /// Time of arrival.
    pub arrival: Time,
    /// Time of completion.
    pub done: Time,
    /// Parts of the response time; they sum to `done - arrival` exactly.
    pub breakdown: Breakdown,
}
