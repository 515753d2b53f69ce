//! Log of flash operations. `flashtwin validate` compares it with the log of a reference simulator, and timelines are
//! drawn from it.
//!
//! A *place* is a resource that executes one operation at a time. An operation that occupies a place has two entries:
//! its beginning and its end. A back end that knows both instants at dispatch may log both in advance. The beginning
//! may also be logged later than its instant. The entries of one place are always in order of time.

use super::Cause;
use crate::units::{Lpn, Time};

/// A place: a resource that executes one operation at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A chip.
    Chip(u32),
    /// A parallel unit of a chip, given by the chip and the number of the unit in the chip.
    Unit(u32, u32),
    /// The second register of a chip, for an operation that begins before its predecessor has ended (cached commands).
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
        /// Cause of the operation. If it has several pages, this is the cause of the first page.
        cause: Cause,
        /// Number of pages; 0 for an erase.
        pages: u32,
        /// The logical page, if the operation has only one. If the operation has several pages, each page has a
        /// [`FlashEvent::Page`] instead.
        lpn: Option<Lpn>,
        /// The block whose pages are moved, or that is erased, numbered within the chip. `None` for a step of a
        /// collection that only programs moved pages, and for all other operations.
        block: Option<u32>,
        /// The request that caused the page operation, as in [`FlashEvent::Page`].
        request: u32,
    },
    /// A page read or program was dispatched.
    Page {
        /// Instant.
        at: Time,
        /// The chip.
        chip: u32,
        /// Plane in the chip. `None` if all planes of the chip share one write frontier and no operation covers several
        /// planes.
        plane: Option<u32>,
        /// The logical page.
        lpn: Lpn,
        /// Cause.
        cause: Cause,
        /// The place on which the page operation has just begun. `None` if the [`FlashEvent::Begin`] of that place
        /// already has the page.
        place: Option<Place>,
        /// Time from dispatch to completion, without waiting for a channel.
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
    /// An operation that began before its predecessor had ended (cached commands) became the chip's current operation.
    Moved {
        /// Instant from which the chip has no other operation.
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
        /// Block number in the chip, in the device's own numbering.
        block: u32,
        /// Live pages in the block.
        valid: u32,
    },
    /// A cleaning action began; the chip is busy for `duration`.
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
    /// Number that stands for "no request". It also stands for every request whose number is 2^32 - 1 or more.
    pub const NO_REQUEST: u32 = u32::MAX;

    /// Returns the entry for the beginning or end of a chip's collection.
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
