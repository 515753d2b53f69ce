//! Log of flash operations. `flashtwin validate` compares it with the log of the reference simulator. Timelines are
//! drawn from it.
//!
//! A *place* is a resource that executes one operation at a time. Each operation on a place has two entries, its start
//! and its end. A back end may log both in advance if it knows both instants at dispatch. It may also log a start later
//! than it occurs. The entries of one place are always in order of time.

use super::Cause;
use crate::units::{Lpn, Time};

/// A place: a resource that executes one operation at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A chip.
    Chip(u32),
    /// A parallel unit (a part of the planes) of a chip: the number of the chip, and that of the unit within the chip.
    Unit(u32, u32),
    /// The second register of a chip. With cached commands, it holds an operation that begins before its predecessor
    /// has ended.
    Ahead(u32),
    /// The garbage collection of a chip, from its first to its last step.
    Collection(u32),
    /// A channel.
    Channel(u32),
}

/// An entry of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashEvent {
    /// An operation began on a place.
    Begin {
        /// Instant.
        at: Time,
        /// Place.
        place: Place,
        /// Cause of the operation. If the operation has several pages, the cause of the first page.
        cause: Cause,
        /// Number of pages; 0 for an erase.
        pages: u32,
        /// The logical page of an operation with one page. In an operation with several pages, each page has a
        /// [`FlashEvent::Page`] instead.
        lpn: Option<Lpn>,
        /// The block that is erased, or that pages are moved from, numbered within the chip. `None` for a step of a
        /// collection that only programs moved pages, and for all other operations.
        block: Option<u32>,
        /// Number of the request that caused the operation, as in [`FlashEvent::Page`].
        request: u32,
    },
    /// A page read or program was dispatched.
    Page {
        /// Instant.
        at: Time,
        /// The chip.
        chip: u32,
        /// Plane within the chip. `None` if all planes of the chip share one write frontier and no operation covers
        /// several planes.
        plane: Option<u32>,
        /// The logical page.
        lpn: Lpn,
        /// Cause.
        cause: Cause,
        /// The place on which this page operation has just begun. `None` if the [`FlashEvent::Begin`] of the place
        /// already has the logical page.
        place: Option<Place>,
        /// Time from dispatch to completion, not including waits for a channel.
        duration: Time,
        /// Number of the request that caused the operation; [`FlashEvent::NO_REQUEST`] if none did.
        request: u32,
    },
    /// The operation on a place ended.
    End {
        /// Instant.
        at: Time,
        /// Place.
        place: Place,
    },
    /// A chip suspended a program or erase.
    Suspended {
        /// Instant.
        at: Time,
        /// The chip.
        chip: u32,
    },
    /// A suspended operation resumed.
    Resumed {
        /// Instant.
        at: Time,
        /// The chip.
        chip: u32,
    },
    /// With cached commands, an operation may begin before its predecessor has ended. Such an operation has now become
    /// the chip's current one.
    Moved {
        /// Instant from which this operation was the only one of the chip.
        since: Time,
        /// Instant at which the second register became free.
        at: Time,
        /// The chip.
        chip: u32,
    },
    /// A block was chosen for cleaning.
    Victim {
        /// Instant.
        at: Time,
        /// The chip.
        chip: u32,
        /// Plane in the chip.
        plane: u32,
        /// Block number within the chip, as the back end numbers blocks.
        block: u32,
        /// Live pages in the block.
        valid: u32,
    },
    /// A GC action began. It occupies the chip for `duration`.
    Clean {
        /// Instant.
        at: Time,
        /// The chip.
        chip: u32,
        /// Duration.
        duration: Time,
    },
}

impl FlashEvent {
    /// Number in place of a request's number if no request caused the operation. Also used for every request with a
    /// number of 2^32 - 1 or more.
    pub const NO_REQUEST: u32 = u32::MAX;

    /// Returns the log entry for the start or end of a chip's GC.
    pub(super) fn collection(chip: usize, begins: bool, at: Time) -> FlashEvent {
        let place = Place::Collection(chip as u32);
        match begins {
            true => FlashEvent::Begin {
                at,
                place,
                cause: Cause::GcMove,
                pages: 0,
                lpn: None,
                block: None,
                request: FlashEvent::NO_REQUEST,
            },
            false => FlashEvent::End { at, place },
        }
    }
}
