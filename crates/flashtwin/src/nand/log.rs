//! The log of flash operations, which `validate` compares and a timeline draws.
//!
//! An operation that keeps a place busy has a beginning and an end. Both may be logged before their instant, if a
//! back end knows them at dispatch, and a beginning may be logged after it. Entries of one place are in order.

use super::Cause;
use crate::units::{Lpn, Time};

/// A resource that works on one operation at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A chip.
    Chip(u32),
    /// A parallel unit of a chip: the chip and the unit's number there.
    Unit(u32, u32),
    /// The second register of a chip, with what it has begun ahead.
    Ahead(u32),
    /// The garbage collection of a chip, from its first to its last step.
    Collection(u32),
    /// A channel.
    Channel(u32),
}

/// One thing a chip did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashEvent {
    /// A place began with something.
    Begin {
        /// When.
        at: Time,
        /// Where.
        place: Place,
        /// Cause; for several pages, that of the first.
        cause: Cause,
        /// Number of pages; 0 for an erase.
        pages: u32,
        /// The logical page if there is one; an operation on several has a [`FlashEvent::Page`] for each.
        lpn: Option<Lpn>,
        /// The block in the chip that is moved or erased.
        block: Option<u32>,
        /// The request for whose sake that page is read or written, as in [`FlashEvent::Page`].
        request: u32,
    },
    /// A page read or program was dispatched.
    Page {
        /// When.
        at: Time,
        /// The chip.
        chip: u32,
        /// Plane in the chip. If the chip has one write frontier for all planes, `None`, unless its planes work
        /// together: then the plane of the page.
        plane: Option<u32>,
        /// The logical page.
        lpn: Lpn,
        /// Why.
        cause: Cause,
        /// The place that has just begun with it, where the entry of the beginning lacks it.
        place: Option<Place>,
        /// From dispatch to completion, without waiting for a channel.
        duration: Time,
        /// Number of the request that caused it; [`FlashEvent::NO_REQUEST`] if none did.
        request: u32,
    },
    /// A place is done with what it began.
    End {
        /// When.
        at: Time,
        /// Where.
        place: Place,
    },
    /// A chip stopped in the middle of a program or erase.
    Suspended {
        /// When.
        at: Time,
        /// The chip.
        chip: u32,
    },
    /// A suspended operation resumed.
    Resumed {
        /// When.
        at: Time,
        /// The chip.
        chip: u32,
    },
    /// An operation begun ahead (cached commands) became the chip's current one.
    Moved {
        /// Instant from which the chip has no other work.
        since: Time,
        /// When the second register was free again.
        at: Time,
        /// The chip.
        chip: u32,
    },
    /// A block was chosen for cleaning.
    Victim {
        /// When.
        at: Time,
        /// The chip.
        chip: u32,
        /// Plane in the chip.
        plane: u32,
        /// Block number in the chip, as the device numbers its blocks.
        block: u32,
        /// Live pages in it.
        valid: u32,
    },
    /// A cleaning action began; the chip is busy for `duration`.
    Clean {
        /// When.
        at: Time,
        /// The chip.
        chip: u32,
        /// How long.
        duration: Time,
    },
}

impl FlashEvent {
    /// Request of operations that no request caused, and of those caused by requests numbered from 2^32 - 1 on.
    pub const NO_REQUEST: u32 = u32::MAX;

    /// Both ends of a time that a chip collects.
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
