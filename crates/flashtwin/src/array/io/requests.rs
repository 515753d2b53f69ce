//! Requests to members that are not done.

use super::ops::{Chain, Ops};
use crate::array::table::Table;
use crate::units::Time;

/// Marks the number of a job where a request's number would stand: a request of one page for that job, without a
/// record.
pub(crate) const OF_JOB: u32 = 1 << 29;

/// For whom a request is sent to a member.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    /// These page operations, or none.
    Host(Chain),
    /// A job.
    Job(u32),
    /// A task of the volume.
    Task(u32),
}

/// A request to a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub member: usize,
    pub owner: Owner,
    /// Pages of it that are not done, if its member takes pages.
    left: u32,
    /// None of them was refused.
    written: bool,
    in_use: bool,
    /// When its member was asked.
    pub sent: Time,
    /// Requests sent before it. Numbers of the table are used again, so they do not order requests.
    order: u64,
}

/// All of them.
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

    #[inline(always)]
    pub fn add(&mut self, member: usize, pages: u32, owner: Owner, now: Time) -> u32 {
        self.sent += 1;
        self.table.add(Request {
            member,
            owner,
            left: pages,
            written: true,
            in_use: true,
            sent: now,
            order: self.sent,
        })
    }

    /// When a request was sent.
    pub fn sent(&self, id: u32) -> Time {
        self.table[id].sent
    }

    /// A page of a request is done; with the last one, whether all were written.
    #[inline(always)]
    pub fn page_done(&mut self, id: u32, written: bool) -> Option<bool> {
        let request = &mut self.table[id];
        request.left -= 1;
        request.written &= written;
        (request.left == 0).then_some(request.written)
    }

    /// A request is done.
    #[inline(always)]
    pub fn take(&mut self, id: u32) -> Request {
        let request = &mut self.table[id];
        request.in_use = false;
        let request = *request;
        self.table.remove(id);
        request
    }

    /// Takes the requests to a member, in the order in which they were sent.
    pub fn take_of(&mut self, member: usize) -> Vec<Request> {
        let all = self.table.iter_mut();
        let of_member = all.filter(|(_, request)| request.in_use && request.member == member);
        let ids: Vec<u32> = of_member.map(|(id, _)| id).collect();
        let mut requests: Vec<Request> = ids.into_iter().map(|id| self.take(id)).collect();
        requests.sort_unstable_by_key(|request| request.order);
        requests
    }

    /// Takes all requests, in the order in which they were sent.
    pub fn take_all(&mut self) -> Vec<Request> {
        let all = std::mem::take(&mut self.table);
        let mut requests: Vec<Request> = all.iter().filter(|r| r.in_use).copied().collect();
        requests.sort_unstable_by_key(|request| request.order);
        requests
    }

    /// The member and the page operations of a request of the front end's reads, sent at `sent`, if it is in
    /// flight.
    pub fn host_reads(&self, ops: &Ops, id: u32, sent: Time) -> Option<(usize, Chain)> {
        let request = self.table.get(id)?;
        let is_it = request.in_use && request.sent == sent;
        match request.owner {
            Owner::Host(chain) if is_it && ops.are_reads(chain) => Some((request.member, chain)),
            _ => None,
        }
    }
}
