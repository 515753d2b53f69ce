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
    /// Reads `bytes` from `offset` on.
    #[default]
    Read = 0,
    /// Writes `bytes` from `offset` on.
    Write = 1,
    /// Discards the data of `bytes` from `offset` on (discard, deallocate).
    Trim = 2,
    /// Completes once all earlier writes are on the medium. Has no address.
    Flush = 3,
}

/// One request of a host. Its address is counted in bytes from the start of the device. The default is a read of no
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Time of arrival at the device. If arrivals depend on completions (closed loop), the driver sets it.
    pub arrival: Time,
    /// First byte.
    pub offset: u64,
    /// Length in bytes. A flush has length 0.
    pub bytes: u64,
    /// Operation.
    pub op: Op,
    /// Force unit access: the write completes only when its data is on the medium.
    pub fua: bool,
    /// Placement id of a write. Devices without [`crate::placement`] ignore it.
    pub placement: PlacementId,
}

/// A request must stay small, because queues copy it. The placement id uses bytes that would otherwise be padding.
const _: () = assert!(size_of::<Request>() == 32);

/// Status of a completed request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// The request was executed.
    #[default]
    Ok = 0,
    /// The device has reached its end of life and accepts no more writes.
    ReadOnly = 1,
    /// Data of the request is lost. Either more members of an array have failed than its redundancy permits, or the
    /// data was on a die that is dead.
    Failed = 2,
}

/// A finished request.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// Number that the driver chose for the request.
    pub tag: u64,
    /// Operation of the request.
    pub op: Op,
    /// Status of the request.
    pub status: Status,
    /// Address of the first byte of the request.
    pub offset: u64,
    /// Number of bytes of the request.
    pub bytes: u64,
    /// Number of pages of the request.
    pub pages: u32,
    /// Number of pages of the request that were in the buffer.
    pub hits: u32,
    /// Time of arrival.
    pub arrival: Time,
    /// Time of completion.
    pub done: Time,
    /// Parts of the response time; they sum to `done - arrival` exactly.
    pub breakdown: Breakdown,
}
