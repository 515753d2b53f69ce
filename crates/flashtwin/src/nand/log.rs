//! The log of flash operations: what `validate` compares, and what a timeline draws.

use super::Cause;
use crate::units::{Lpn, Time};

/// One thing a chip did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashEvent {
    /// A page read or program was dispatched.
    Page {
        /// When.
        at: Time,
        /// The chip.
        chip: u32,
        /// Plane in the chip; `None` where the chip has one write frontier for all planes.
        plane: Option<u32>,
        /// The logical page.
        lpn: Lpn,
        /// Why.
        cause: Cause,
        /// From dispatch to completion.
        duration: Time,
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
    /// A cleaning action began; it keeps the chip for `duration`.
    Clean {
        /// When.
        at: Time,
        /// The chip.
        chip: u32,
        /// How long.
        duration: Time,
    },
}
