//! Simulates each member of an array by itself, ahead of the array, so that a driver can use one thread per member.
//!
//! In some arrays, no member affects which requests another member receives, or when. Such an array has striping
//! without redundancy, no coordinator, and a front end that takes no time and has no buffer. The requests to all
//! members then follow from the array's requests alone. If the array's requests are known in advance, each member
//! immediately receives its parts (*pieces*) of all of them. Each member simulates its pieces up to the last arrival,
//! as a separate task, and records its responses with their instants. Afterwards the array processes the requests one
//! by one, as without this module. Where it would wait for a member, it uses the recorded response:
//! ```text
//! requests --split--> member 0: pieces --task 1--> results --.
//!          `--------> member 1: pieces --task 2--> results --+--> the array, request by request
//! ```
//!
//! Results are identical to the last bit with and without this module. To make this possible, simultaneous events of
//! different members are processed in the order of the members in such arrays, not in the order in which they were
//! scheduled (D-113).

use super::executor::{Executor, Task};
use super::io::Io;
use super::layout::Spot;
use super::member::Member;
use super::raid::{Array, Raid};
use crate::request::{Op, Request};
use crate::units::{narrow, Lpn, Time};

impl Array {
    /// Simulates each member ahead of the array with its parts of `requests`, as one task of `executor` per member. The
    /// caller must later submit each request exactly at its `arrival`, before it advances the device beyond the last
    /// arrival. If `last` is true, no other request follows until all of `requests` have completed.
    ///
    /// Does nothing and returns false if members depend on each other or are missing, if a request does not consist of
    /// whole pages, if the array is logged, or if other operations are in flight. Before other requests are submitted,
    /// [`Array::resume_serial`] must be called.
    pub fn run_ahead(&mut self, requests: &[Request], last: bool, executor: &dyn Executor) -> bool {
        let page_bytes = u64::from(self.spec().page_bytes());
        let cannot = |r: &Request| {
            !r.offset.is_multiple_of(page_bytes) || !r.bytes.is_multiple_of(page_bytes)
        };
        let at_rest = || self.next_event().is_none() && self.outstanding() == 0;
        let may = self.is_bare() && self.backend.may_run_ahead(at_rest);
        if !may || requests.iter().any(cannot) {
            return false;
        }
        self.backend.ahead_ends = last;
        let io = &mut self.backend.io;
        io.members.iter_mut().for_each(Member::begin_ahead);
        // The simulation ahead joins consecutive pages of a member to one piece. The array must therefore join them to
        // one request, too.
        io.sends_single_pages = false;
        io.choose_features();
        for (number, request) in (0..).zip(requests) {
            foresee(io, number, request, page_bytes);
        }
        let until = match (last, requests.last()) {
            (true, _) => Time(Time::NEVER.0 - 1),
            (false, Some(request)) => request.arrival,
            (false, None) => return true,
        };
        let tasks = io.members.iter_mut().filter_map(|member| {
            let Member { ahead, drive, .. } = member;
            let ahead = ahead.as_mut()?;
            Some(Box::new(move || ahead.run(drive, until, last)) as Task)
        });
        executor.run(tasks.collect());
        let (raid, mut clock) = self.raid_now();
        for member in raid.io.members.iter_mut() {
            member.wake(&mut clock);
        }
        true
    }

    /// Ends the simulation ahead: from now on, members advance together with the array. Must be called before requests
    /// are submitted that were not passed to [`Array::run_ahead`].
    pub fn resume_serial(&mut self) {
        let (raid, mut clock) = self.raid_now();
        for member in raid.io.members.iter_mut() {
            if let Some(ahead) = &mut member.ahead {
                ahead.resume_serial();
                member.wake(&mut clock);
            }
        }
    }
}

impl Raid {
    /// Whether the members can be simulated ahead of the array: they are independent and complete, the array is not
    /// logged, and every operation in flight (if there is one) was simulated ahead. `at_rest` returns whether the front
    /// end has no operation in flight.
    fn may_run_ahead(&self, at_rest: impl FnOnce() -> bool) -> bool {
        let io = &self.io;
        self.independent
            && io.members.whole
            && !io.record.log.is_on()
            && io.watch.timeline.is_none()
            && (io.members.iter().all(|m| m.ahead.is_some()) || at_rest())
    }
}

/// Records, for each member, the part (*piece*) of a request that the member will receive.
fn foresee(io: &mut Io, number: u32, request: &Request, page_bytes: u64) {
    let first = request.offset / page_bytes;
    let end = (request.offset + request.bytes).div_ceil(page_bytes);
    let (op, fua) = match request.op {
        Op::Write => (Op::Write, request.fua | io.through),
        other => (other, false),
    };
    for page in first..end {
        let Spot { member, lpn } = io.layout.spot(Lpn(narrow(page)));
        if let Some(ahead) = &mut io.members[member].ahead {
            ahead.foresee(number, request.arrival, lpn, op, fua);
        }
    }
}
