//! Log of an array's operations. Tests use it to track the contents of pages. Timelines are also made from it.

use crate::array::layout::plan::{Method, Places};
use crate::request::Op;
use crate::units::Lpn;

/// Purpose of a job (an operation on page stripes). `places` is a set of places of a stripe, stored as bits: bit 0 is
/// the first data place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// The job writes these data places.
    Write {
        /// Method by which the new parity is computed.
        method: Method,
        /// The data places.
        places: Places,
    },
    /// The job reconstructs these data places for reads.
    Recover {
        /// The data places.
        places: Places,
    },
    /// The job reconstructs the missing pages of members being rebuilt, and writes them.
    Rebuild,
    /// The job trims a stripe.
    Trim,
}

/// Purpose of a request to a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentFor {
    /// The request executes these page operations of the front end, one per page. The list is empty for a trim.
    Pages(Vec<u32>),
    /// The request belongs to a job. It reads, writes or trims one page of each of the job's stripes: the page at this
    /// place in the stripe. All these pages are on the same member.
    Job {
        /// The job's number.
        job: u32,
        /// The place.
        place: u32,
    },
    /// The request belongs to the rebuild of adjacent rows.
    Rows {
        /// The job's number.
        job: u32,
        /// The member's place in each row.
        places: Vec<u32>,
    },
    /// The request writes the parity of a page stripe of a SWAN group. All data of the stripe were sent before.
    Parity,
    /// The request is part of moving a page to another segment: first the page is read, then it is written.
    Move {
        /// The move's number.
        number: u32,
    },
}

/// An event of an array. Operations, jobs and parts (requests to members) have numbers. The number of one that has
/// ended is reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrayEvent {
    /// The front end started an operation.
    Asked {
        /// The operation's number.
        op: u32,
        /// The page; has no meaning for a flush.
        lpn: Lpn,
        /// A read, a write or a flush.
        what: Op,
        /// Number of the request that caused the operation; [`crate::FlashEvent::NO_REQUEST`] if
        /// none did.
        request: u32,
    },
    /// The front end trimmed a page. The array does not necessarily trim it on a member: with parity, only whole
    /// stripes are trimmed (D-86).
    Forgotten {
        /// The page.
        lpn: Lpn,
    },
    /// An operation completed.
    Answered {
        /// The operation's number.
        op: u32,
    },
    /// A read is served from the controller's memory. It returns the data of the newest write of the page, which is
    /// in flight.
    FromMemory {
        /// The operation's number.
        op: u32,
    },
    /// A read returns zeros because the page was never written.
    Unwritten {
        /// The operation's number.
        op: u32,
    },
    /// A read was hedged: its page is also read from other members. The result of the read that completes first is
    /// used.
    Hedged {
        /// The original operation's number.
        op: u32,
        /// The number of the second operation on the page.
        twin: u32,
    },
    /// A hedged read completed, but after its twin (the other read of the same page), so that its result is not used.
    Late {
        /// The operation's number.
        op: u32,
    },
    /// A job begins, because it now holds the locks of its rows, or begins again after a member failed. A flush is not
    /// logged as a job.
    Begun {
        /// The job's number.
        job: u32,
        /// The job's purpose.
        kind: JobKind,
        /// The first page of the job, which has the same number on each member.
        first: u32,
        /// The number of pages.
        pages: u32,
        /// Page operations that wait for the job.
        ops: Vec<u32>,
    },
    /// A request was sent to a member.
    Sent {
        /// The number of the request (part).
        part: u32,
        /// The member.
        member: usize,
        /// The first page on this member.
        first: u32,
        /// The number of pages.
        pages: u32,
        /// The kind of request.
        op: Op,
        /// The purpose.
        on_behalf: SentFor,
        /// The number that the member's SSD gave to the request.
        number: u32,
    },
    /// A member completed a request.
    Came {
        /// The number of the request.
        part: u32,
    },
    /// A member failed. Its contents and all requests in flight to it are lost.
    Failed {
        /// The member.
        member: usize,
    },
    /// An empty member took the place of a failed one.
    Replaced {
        /// The member.
        member: usize,
    },
    /// The rebuild of a member is complete.
    Rebuilt {
        /// The member.
        member: usize,
    },
    /// A message of the coordination protocol.
    Message {
        /// The message.
        what: GcMessage,
        /// The sender, or the receiver of an order.
        member: usize,
    },
    /// A member has finished an ordered collection.
    Collected {
        /// The member.
        member: usize,
    },
}

/// Kind of a message of the coordination protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcMessage {
    /// PARTICIPATE_GGC, from a member: the member is registered with the coordinator.
    Participate,
    /// REQUEST_GGC, from a member: the member must collect.
    Request,
    /// FORCE_GC, from the coordinator: the member is ordered to collect.
    Force,
    /// The member is ordered to stop collecting.
    Cancel,
}

/// The log, which may be off.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    events: Option<Vec<ArrayEvent>>,
    /// Whether a logged array may nevertheless run the plain copy of its code. Has an effect only in builds with debug
    /// assertions.
    includes_plain: bool,
}

impl Log {
    pub fn set(&mut self, on: bool) {
        self.events = on.then(Vec::new);
    }

    /// For tests: permits the plain copy of the code while the array is logged.
    pub fn include_plain(&mut self) {
        self.includes_plain = true;
    }

    pub fn is_on(&self) -> bool {
        self.events.is_some()
    }

    /// Whether the array may run the plain copy of its code: the array is not logged, or a test logs the plain copy.
    pub fn leaves_plain(&self) -> bool {
        !self.is_on() || (cfg!(debug_assertions) && self.includes_plain)
    }

    /// Returns the events logged since the last call.
    pub fn take(&mut self) -> Vec<ArrayEvent> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    #[inline]
    pub fn add(&mut self, event: impl FnOnce() -> ArrayEvent) {
        if let Some(log) = &mut self.events {
            log.push(event());
        }
    }
}
