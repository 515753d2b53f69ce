//! Where the time of a page operation went, as far as it is not waiting.

use crate::device::OutsideDone;
use crate::nand::{Done, PageOp};
use crate::request::Breakdown;
use crate::units::Time;

/// Parts of the time that a member took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub queue_gc: Time,
    pub transfer: Time,
    pub array: Time,
}

impl Spent {
    pub fn of_page(page: &OutsideDone) -> Spent {
        Spent {
            queue_gc: page.queue_gc,
            transfer: page.transfer,
            array: page.array,
        }
    }

    pub fn of(parts: &Breakdown) -> Spent {
        Spent {
            queue_gc: parts.queue_gc,
            transfer: parts.transfer + parts.link,
            array: parts.array,
        }
    }

    pub fn add(&mut self, other: Spent) {
        self.queue_gc += other.queue_gc;
        self.transfer += other.transfer;
        self.array += other.array;
    }

    /// Each part changed alike.
    pub fn map(self, change: impl Fn(Time) -> Time) -> Spent {
        Spent {
            queue_gc: change(self.queue_gc),
            transfer: change(self.transfer),
            array: change(self.array),
        }
    }

    /// A page operation that took this time.
    pub fn on(self, op: PageOp, written: bool) -> Done {
        Done {
            op,
            queue_gc: self.queue_gc,
            transfer: self.transfer,
            array: self.array,
            written,
            failed: false,
        }
    }
}
