//! Requests in flight to members of an array.

use super::ops::{Chain, Ops};
use crate::array::table::Table;
use crate::units::Time;

/// The origin of a request to a member: operations of the host, a job or a task. The origin is notified when the
/// request completes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// Page operations of the front end; an empty chain if nothing waits for the request.
    Host(Chain),
    /// A job ([`Jobs`](crate::array::jobs::Jobs)), by number.
    Job(u32),
    /// A task of a SWAN volume, by number.
    Task(u32),
}

/// A request to a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub member: usize,
    pub origin: Origin,
    /// Number of pages to which the member has not responded. A member with a front end instead sends a single response
    /// to the whole request.
    left: u32,
    /// Whether all pages completed so far were written.
    written: bool,
    in_use: bool,
    /// Instant at which the request was sent.
    pub sent: Time,
    /// Position of the request in the order of sending. The number of the request in the table does not show this
    /// order, because numbers are reused.
    pub order: u64,
}

/// All requests in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    table: Table<Request>,
    sent: u64,
}

impl Requests {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the position in the order of sending for the next request, and advances this order.
    #[inline(always)]
    pub fn take_order(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn add(&mut self, member: usize, pages: u32, origin: Origin, now: Time) -> u32 {
        let order = self.take_order();
        self.table.add(Request {
            member,
            origin,
            left: pages,
            written: true,
            in_use: true,
            sent: now,
            order,
        })
    }

    /// Returns the instant at which a request was sent.
    pub fn sent(&self, id: u32) -> Time {
        self.table[id].sent
    }

    /// Counts a response to one page of a request, or to the whole request (`is_whole`). Returns `None` while pages of
    /// the request are in flight. After the last response, returns false if the write of a page was refused.
    #[inline(always)]
    pub fn responded(&mut self, id: u32, is_whole: bool, written: bool) -> Option<bool> {
        let request = &mut self.table[id];
        request.left = match is_whole {
            true => 0,
            false => request.left - 1,
        };
        request.written &= written;
        (request.left == 0).then_some(request.written)
    }

    /// Removes and returns a completed request.
    #[inline(always)]
    pub fn take(&mut self, id: u32) -> Request {
        let request = &mut self.table[id];
        request.in_use = false;
        let request = *request;
        self.table.remove(id);
        request
    }

    /// Removes and returns all requests to a member.
    pub fn take_of(&mut self, member: usize) -> Vec<Request> {
        let all = self.table.iter_mut();
        let of_member = all.filter(|(_, request)| request.in_use && request.member == member);
        let ids: Vec<u32> = of_member.map(|(id, _)| id).collect();
        ids.into_iter().map(|id| self.take(id)).collect()
    }

    /// Removes and returns all requests.
    pub fn take_all(&mut self) -> Vec<Request> {
        let all = std::mem::take(&mut self.table);
        all.iter().filter(|r| r.in_use).copied().collect()
    }

    /// Returns the member and the chain of page operations of a request that serves reads of the front end. `None` for
    /// other requests, and if the request that was sent at `sent` is no longer in flight.
    pub fn host_reads(&self, ops: &Ops, id: u32, sent: Time) -> Option<(usize, Chain)> {
        let request = self.table.get(id)?;
        let is_it = request.in_use && request.sent == sent;
        match request.origin {
            Origin::Host(chain) if is_it && ops.are_reads(chain) => Some((request.member, chain)),
            _ => None,
        }
    }
}
