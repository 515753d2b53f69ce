//! Response of a member, and the parts into which its response time is divided.

use crate::nand::{Done, Finished, Owner, PageOp};
use crate::request::{Breakdown, Completion, Status};
use crate::units::Time;

/// Parts of the response time of a member: wait for GC, transfer, and work in the flash array. The response is to a
/// request or to one of its pages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub queue_gc: Time,
    pub transfer: Time,
    pub array: Time,
}

impl Spent {
    #[inline(always)]
    fn of_page(done: &Done) -> Spent {
        Spent {
            queue_gc: done.queue_gc,
            transfer: done.transfer,
            array: done.array,
        }
    }

    /// Returns the parts of the response time of a whole request to a member with a front end. If the request waited
    /// for a slot in the member's buffer, each part includes the corresponding part of this wait.
    fn of_request(parts: &Breakdown) -> Spent {
        Spent {
            queue_gc: parts.gc(),
            transfer: parts.transfer + parts.slot_transfer + parts.link,
            array: parts.array + parts.slot_array,
        }
    }

    pub fn add(&mut self, other: Spent) {
        self.queue_gc += other.queue_gc;
        self.transfer += other.transfer;
        self.array += other.array;
    }

    /// Returns these parts after `change` was applied to each of them.
    pub fn map(self, change: impl Fn(Time) -> Time) -> Spent {
        Spent {
            queue_gc: change(self.queue_gc),
            transfer: change(self.transfer),
            array: change(self.array),
        }
    }

    /// Returns a record of the completion of the page operation `op`. The parts of the operation's time in the record
    /// are those in `self`.
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

/// The response of a member to a request, or to a page of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response {
    /// The receiver of the response.
    pub owner: Owner,
    /// Instant at which the request was sent to the member. If the request has a record in the array, the array sets
    /// this field from the record.
    pub asked: Time,
    pub spent: Spent,
    /// False for a write that was refused.
    pub written: bool,
    /// Whether the response is to a whole request, not to a page of it.
    pub is_whole: bool,
}

impl Response {
    /// Creates the response to a page operation that took no time: a trim, the read of a page that was never written,
    /// or a refused write.
    pub fn at_once(owner: Owner, now: Time, written: bool) -> Response {
        Response {
            owner,
            asked: now,
            spent: Spent::default(),
            written,
            is_whole: false,
        }
    }

    #[inline(always)]
    fn of_page(done: &Done) -> Response {
        Response {
            owner: done.op.owner,
            asked: done.op.enqueued,
            spent: Spent::of_page(done),
            written: done.written,
            is_whole: false,
        }
    }

    pub fn of_request(completion: Completion) -> Response {
        Response {
            owner: Owner::from_tag(completion.tag),
            asked: completion.arrival,
            spent: Spent::of_request(&completion.breakdown),
            written: completion.status == Status::Ok,
            is_whole: true,
        }
    }
}

impl Finished for Option<Response> {
    #[inline(always)]
    fn put(&mut self, done: &Done) {
        *self = Some(Response::of_page(done));
    }
}
