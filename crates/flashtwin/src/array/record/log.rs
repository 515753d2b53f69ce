//! Log of an array's operations, for tests that track page contents, and for timelines.

use crate::array::layout::plan::{Method, Places};
use crate::request::Op;
use crate::units::Lpn;

/// Purpose of a job. Places of a stripe are bits: data places first, then parity; with mirrors, the copies of each
/// page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Write these data places.
    Write {
        /// How the new parity is made.
        method: Method,
        /// The data places.
        places: Places,
    },
    /// Work out these data places for reads.
    Recover {
        /// The data places.
        places: Places,
    },
    /// Work out what members lack that are being rebuilt, and write it.
    Rebuild,
    /// Forget.
    Trim,
}

/// Purpose of a request to a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentFor {
    /// Page operations, one per page; empty for a trim.
    Pages(Vec<u32>),
    /// A job, for this place of its stripes.
    Job {
        /// The job's number.
        job: u32,
        /// The place.
        place: u32,
    },
    /// The rebuilding of adjacent rows.
    Rows {
        /// The job's number.
        job: u32,
        /// The member's place in each row.
        places: Vec<u32>,
    },
    /// The parity of a group's page stripe, all of which has been sent.
    Parity,
    /// A page that is moved: a read followed by a write.
    Move {
        /// The move's number.
        number: u32,
    },
}

/// An event of an array. Numbers of operations, jobs and parts are reused once these are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrayEvent {
    /// The front end started an operation.
    Asked {
        /// The operation's number.
        op: u32,
        /// The page; `None` for a flush.
        lpn: Lpn,
        /// A read, a write or a flush.
        what: Op,
        /// Number of the request that caused it; [`crate::FlashEvent::NO_REQUEST`] if none did.
        request: u32,
    },
    /// The front end trimmed a page; the array may trim it now or later.
    Forgotten {
        /// The page.
        lpn: Lpn,
    },
    /// An operation is done.
    Answered {
        /// The operation's number.
        op: u32,
    },
    /// A read returns what its newest write, which is in flight, will have written.
    FromMemory {
        /// The operation's number.
        op: u32,
    },
    /// A read returns zeros because the page was never written.
    Unwritten {
        /// The operation's number.
        op: u32,
    },
    /// A page is also read from other members: the first completion counts.
    Hedged {
        /// The operation.
        op: u32,
        /// The second operation on the page.
        twin: u32,
    },
    /// An operation is done after its twin.
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
        /// The first page on each member, and how many.
        first: u32,
        /// The number of pages.
        pages: u32,
        /// Page operations that wait for it.
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
    /// A member failed with its contents and all that was in flight there.
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
    /// A message of the coordinator's protocol.
    Message {
        /// The message.
        what: GcMessage,
        /// The sender, or the receiver of an order.
        member: usize,
    },
    /// A member has finished its order.
    Collected {
        /// The member.
        member: usize,
    },
}

/// The content of a message of the coordinator's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcMessage {
    /// PARTICIPATE_GGC: the member is registered.
    Participate,
    /// REQUEST_GGC: the member must collect.
    Request,
    /// FORCE_GC: the member is to collect.
    Force,
    /// The member is to stop.
    Cancel,
}

/// The log, if it is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    events: Option<Vec<ArrayEvent>>,
    /// A plain array stays one while it is logged, in builds with debug assertions.
    includes_plain: bool,
}

impl Log {
    pub fn set(&mut self, on: bool) {
        self.events = on.then(Vec::new);
    }

    /// For tests: an array stays plain while it is logged.
    pub fn include_plain(&mut self) {
        self.includes_plain = true;
    }

    pub fn is_on(&self) -> bool {
        self.events.is_some()
    }

    /// Whether an array can be plain beside this log.
    pub fn leaves_plain(&self) -> bool {
        !self.is_on() || (cfg!(debug_assertions) && self.includes_plain)
    }

    /// Takes the events since the last call.
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
