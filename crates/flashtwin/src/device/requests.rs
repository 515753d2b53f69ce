//! The host requests in the device. They are stored in a table. The place of a finished request is used for a later
//! one.

use std::ops::{Index, IndexMut};

use super::Address;
use crate::memory::TrustedTable;
pub(super) use crate::metrics::PartsSet;
use crate::metrics::{Finished, Parts};
use crate::nand::Asked;
use crate::request::Breakdown;
use crate::request::{Op, PlacementId, Request, Status};
use crate::units::Time;

/// Index of a request in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReqId(pub u32);

/// A request between its arrival and its completion. `queue`, `parts` and the instants after the arrival are set as the
/// request proceeds. Fields that start at zero are adjacent, so that few instructions set them.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct InDevice {
    pub tag: u64,
    /// Number of the request, in order of arrival from 0.
    pub number: u64,
    pub arrival: Time,
    /// Time at which the request passed the host link.
    pub dispatched: Time,
    /// Time at which the last page was done.
    pub pages_done: Time,
    pub offset: u64,
    pub bytes: u64,
    pub first_page: u32,
    pub pages: u32,
    /// Number of pages still to be done.
    pub left: u32,
    pub op: Op,
    pub fua: bool,
    /// Submission queue of the request.
    pub queue: u16,
    pub hits: u32,
    /// Placement that the host requests, if the flash uses it.
    pub placement: PlacementId,
    /// Number of the request in logs ([`number_in_logs`]).
    pub number_in_logs: u32,
    pub status: Status,
    /// Whether at least one page of a read did not come from the separate read cache.
    pub past_read_cache: bool,
    /// Whether the last step of a flush has begun, in which the back end writes its volatile data.
    pub flushing: bool,
    /// The fields of `parts` that have been set. All other fields count as zero.
    pub parts_set: PartsSet,
    /// Time that the request spent at the controller before its pages were accessed: the wait until the controller took
    /// it, and the fixed work of the processor.
    pub controller: Time,
    /// Instant at which the processor ends its search for the request's victims.
    pub controller_until: Time,
    /// Latency breakdown of the page that finished last, from the dispatch of the request to the end of the page.
    pub parts: Breakdown,
}

/// Sectors that a request covers in its first page, in its last page, and in the pages between, as bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spans {
    whole: u64,
    first: u64,
    last: u64,
}

impl Spans {
    /// Returns the sectors covered in page `i` of `pages`, as bits.
    #[inline]
    pub fn of(&self, i: u32, pages: u32) -> u64 {
        let mut mask = self.whole;
        if i == 0 {
            mask &= self.first;
        }
        if i + 1 == pages {
            mask &= self.last;
        }
        mask
    }
}

/// Returns a number whose `n` lowest bits are set.
pub(super) fn low_bits(n: u64) -> u64 {
    if n >= 64 {
        u64::MAX
    } else {
        (1 << n) - 1
    }
}

/// Converts the number of a request to the 32 bits that logs have for it. A number that does not fit becomes
/// [`FlashEvent::NO_REQUEST`](crate::FlashEvent::NO_REQUEST), so that logs never name a wrong request.
#[inline(always)]
pub(super) fn number_in_logs(number: u64) -> u32 {
    number.min(u32::MAX.into()) as u32
}

impl InDevice {
    /// Returns the placement that the host requested for the pages.
    #[inline(always)]
    pub fn asked(&self) -> Asked {
        Asked {
            placement: self.placement,
            pages: self.pages,
        }
    }

    /// Sets the fields of `parts` that have not been set yet to zero.
    pub fn write_parts_out(&mut self) {
        self.parts = self.parts_set.of(&self.parts);
        self.parts_set = PartsSet::All;
    }

    /// Returns the data of a finished request that the metrics record. The request finished at `now`. `work` is the
    /// fixed time that the processor works for each request.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn finished(&self, now: Time, work: Time) -> Finished<'_> {
        debug_assert!(self.parts_set == PartsSet::All || self.controller == Time::ZERO);
        Finished {
            op: self.op,
            status: self.status,
            bytes: self.bytes,
            pages: self.pages,
            hits: self.hits,
            arrival: self.arrival,
            done: now,
            parts: Parts {
                link: (self.dispatched - self.arrival - self.controller) + (now - self.pages_done),
                submission: self.controller - work,
                controller: work,
                between: &self.parts,
                set: self.parts_set,
            },
        }
    }

    /// Returns the number of sectors that a read or write transfers over the host link.
    #[inline(always)]
    pub fn link_sectors(&self, address: &Address) -> u64 {
        match address.round {
            true => u64::from(self.pages) * (address.page_bytes / 512),
            false => self.bytes.div_ceil(512),
        }
    }

    /// Returns the sectors that the request covers. If requests are extended to whole pages, these are all sectors of
    /// the pages.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn spans(&self, address: &Address) -> Spans {
        if address.round {
            return Spans {
                whole: u64::MAX,
                first: u64::MAX,
                last: u64::MAX,
            };
        }
        let whole = low_bits(address.page_bytes / 512);
        let start = self.offset % address.page_bytes / 512;
        let end = ((self.offset + self.bytes - 1) % address.page_bytes) / 512 + 1;
        Spans {
            whole,
            first: whole & !low_bits(start),
            last: low_bits(end),
        }
    }
}

/// All requests in the device.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    places: TrustedTable<InDevice>,
    /// The free places are the first `free` entries of this table. The table has as many entries as there are places.
    are_free: TrustedTable<ReqId>,
    free: usize,
    next_number: u64,
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            // SAFETY: `Requests::add` assigns the numbers, and no place is ever removed.
            places: unsafe { TrustedTable::new(Vec::new()) },
            // SAFETY: the table has as many entries as there are places, and no more places than these can be free.
            are_free: unsafe { TrustedTable::new(Vec::new()) },
            free: 0,
            next_number: 0,
        }
    }
}

impl Requests {
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.places.len() - self.free
    }

    /// Returns the number of the next request.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Returns the number of the next request, and advances the numbering. Also called if the request is not stored in
    /// this table (see `bare`).
    pub fn take_number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn add(&mut self, request: &Request, tag: u64, now: Time, address: &Address) -> ReqId {
        let (first, end) = match request.op {
            Op::Flush => (0, 0),
            // A trim drops only the pages that it covers as a whole.
            Op::Trim => {
                let first = address.page_of(request.offset + address.page_bytes - 1);
                let end = address.page_of(request.offset + request.bytes);
                (first, end.max(first))
            }
            _ if request.bytes == 0 => (0, 0),
            _ => (
                address.page_of(request.offset),
                address.page_of(request.offset + request.bytes - 1) + 1,
            ),
        };
        let number = self.take_number();
        if self.free == 0 {
            self.one_more();
        }
        self.free -= 1;
        let id = self.are_free[self.free];
        let r = &mut self.places[id.0 as usize];
        r.tag = tag;
        (r.number, r.number_in_logs) = (number, number_in_logs(number));
        r.arrival = now;
        (r.offset, r.bytes) = (request.offset, request.bytes);
        r.first_page = first as u32;
        r.pages = (end - first) as u32;
        r.left = r.pages;
        (r.op, r.fua) = (request.op, request.fua);
        r.hits = 0;
        r.status = Status::Ok;
        r.past_read_cache = false;
        r.flushing = false;
        r.parts_set = PartsSet::None;
        (r.controller, r.controller_until) = (Time::ZERO, Time::ZERO);
        id
    }

    /// Adds a place to the table.
    #[cold]
    fn one_more(&mut self) {
        let id = ReqId(self.places.len() as u32);
        self.places.push(InDevice::default());
        self.are_free.push(id);
        self.are_free[0] = id;
        self.free = 1;
    }

    /// Frees the place of a request. The contents of the place stay valid until the next request is added.
    #[inline(always)]
    pub fn remove(&mut self, id: ReqId) -> &mut InDevice {
        self.are_free[self.free] = id;
        self.free += 1;
        &mut self.places[id.0 as usize]
    }
}

impl Index<ReqId> for Requests {
    type Output = InDevice;
    #[inline]
    fn index(&self, id: ReqId) -> &InDevice {
        &self.places[id.0 as usize]
    }
}

impl IndexMut<ReqId> for Requests {
    #[inline]
    fn index_mut(&mut self, id: ReqId) -> &mut InDevice {
        &mut self.places[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::number_in_logs;
    use crate::nand::FlashEvent;

    #[test]
    fn number_beyond_32_bits_is_no_request_in_logs() {
        let last = u64::from(FlashEvent::NO_REQUEST) - 1;
        assert_eq!(number_in_logs(last), FlashEvent::NO_REQUEST - 1);
        for number in [last + 1, last + 2, last + 3, u64::MAX] {
            assert_eq!(number_in_logs(number), FlashEvent::NO_REQUEST);
        }
    }
}
