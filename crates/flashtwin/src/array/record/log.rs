//! Log of an array's operations, for tests that track page contents, and for timelines.

use crate::array::layout::plan::{Method, Places};
use crate::request::Op;
use crate::units::Lpn;

/// Purpose of a job. A set of places of a stripe is stored as bits. Data places are first, then parity places; with
/// mirrors, each data place is followed by the other copies of its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// The job writes these data places.
    Write {
        /// How the new parity is computed.
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
    /// Page operations of the front end, one per page; empty for a trim.
    Pages(Vec<u32>),
    /// The request belongs to a job, for one place of its stripes.
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
    /// The request writes the parity of a page stripe of a SWAN group. All data of the stripe have been sent.
    Parity,
    /// The request moves a page: it is the read of the page, or the write that follows.
    Move {
        /// The move's number.
        number: u32,
    },
}

/// An event of an array. The numbers of operations, jobs and parts (requests to members) are reused after these have
/// ended.
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
    /// The front end trimmed a page; the array may trim it now or later.
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
    /// A page is also read from other members; the first completion counts.
    Hedged {
        /// The original operation's number.
        op: u32,
        /// The number of the second operation on the page.
        twin: u32,
    },
    /// An operation completed after its twin.
    Late {
        /// The operation's number.
        op: u32,
    },
    /// A job holds its rows, or restarts after a member failed. Flushes have no row.
    Begun {
        /// The job's number.
        job: u32,
        /// The job's purpose.
        kind: JobKind,
        /// First page on each member.
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
        /// The first page there.
        first: u32,
        /// The number of pages.
        pages: u32,
        /// The kind of request.
        op: Op,
        /// The purpose.
        on_behalf: SentFor,
        /// The request's number at the member.
        number: u32,
    },
    /// A member completed a request.
    Came {
        /// The number of the request.
        part: u32,
    },
    /// A member failed, with its contents and all requests in flight there.
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
    /// PARTICIPATE_GGC: the member is registered.
    Participate,
    /// REQUEST_GGC: the member must collect.
    Request,
    /// FORCE_GC: the member is ordered to collect.
    Force,
    /// The member is ordered to stop collecting.
    Cancel,
}

/// The log, which may be off.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    events: Option<Vec<ArrayEvent>>,
    /// Whether an array runs the plain copy of its code although it is logged (in builds with debug assertions).
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

    /// Returns the events since the last call.
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
