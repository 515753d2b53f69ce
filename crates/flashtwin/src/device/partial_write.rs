//! Writes of parts of pages, on a device that has no buffer and does not extend requests to whole pages. Such a write
//! first reads the page (D-97).
//!
//! This read must return the results of all earlier writes of the page, and the program that follows must not undo
//! later writes. The writes of a page therefore take turns. A turn is either one partial write, which reads, changes
//! and programs the page, or any number of writes of the whole page. Host reads do not wait for turns. Whether they
//! return the data of a write that has not completed is undefined.

use std::collections::VecDeque;

use super::flash::flash_parts;
use super::requests::ReqId;
use super::{Backend, Device, Front};
use crate::buffer::{Directory, PageId};
use crate::nand::{Cause, Done, Owner};
use crate::request::Breakdown;
use crate::request::Status;
use crate::spec::Partial;
use crate::units::Lpn;

/// Number of pages being written at a time for which the hash table is sized. With more pages, lookups take longer.
const PAGES: usize = 1024;

/// A page that is being written.
#[derive(Clone, Debug)]
struct Written {
    lpn: Lpn,
    /// Number of running programs in the present turn, which is one partial write or several writes of the whole page.
    /// 0 while the page is being read.
    programs: u32,
    /// Latency breakdown of the read of the present turn; `None` if no read of this turn has ended.
    read: Option<Breakdown>,
    /// Writes that wait until earlier writes of the page have ended. The flag is whether the write covers the whole
    /// page.
    waiting: VecDeque<(ReqId, bool)>,
}

/// The pages that are being written.
#[derive(Clone, Debug)]
pub(super) struct PageWrites {
    /// Maps a logical page to its index in `pages`. `None` if the writes of a page need not take turns: if every write
    /// covers whole pages, or if the device has a buffer.
    directory: Option<Directory>,
    pages: Vec<Written>,
    free: Vec<u32>,
}

impl PageWrites {
    pub fn new(front: &Front) -> PageWrites {
        let in_turn = front.buffer.is_none() && front.partial == Partial::Sectors;
        PageWrites {
            directory: in_turn.then(|| Directory::new(PAGES)),
            pages: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Whether writes take turns.
    #[inline]
    pub fn in_turn(&self) -> bool {
        self.directory.is_some()
    }

    fn find(&self, lpn: Lpn) -> Option<usize> {
        let page = self.directory.as_ref()?.get(lpn)?;
        Some(page.0 as usize)
    }

    fn add(&mut self, lpn: Lpn) -> usize {
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.pages.push(Written {
                    lpn,
                    programs: 0,
                    read: None,
                    waiting: VecDeque::new(),
                });
                self.pages.len() as u32 - 1
            }
        };
        self.pages[at as usize].lpn = lpn;
        if let Some(directory) = &mut self.directory {
            directory.insert(lpn, PageId(at));
        }
        at as usize
    }

    fn remove(&mut self, at: usize) {
        if let Some(directory) = &mut self.directory {
            directory.remove(self.pages[at].lpn, PageId(at as u32));
        }
        self.free.push(at as u32);
    }
}

impl<B: Backend> Device<B> {
    /// Executes the pages of a write. On each page, the write may have to wait until earlier writes of this page have
    /// ended.
    pub(super) fn write_in_turn(&mut self, id: ReqId) {
        let r = &self.requests[id];
        let (first, pages) = (r.first_page, r.pages);
        let page_bytes = self.address.page_bytes;
        let (start, end) = (r.offset % page_bytes, (r.offset + r.bytes) % page_bytes);
        for i in 0..pages {
            let whole = (i > 0 || start == 0) && (i + 1 < pages || end == 0);
            self.page_in_turn(id, Lpn(first + i), whole);
        }
    }

    fn page_in_turn(&mut self, id: ReqId, lpn: Lpn, whole: bool) {
        let Some(at) = self.writes.find(lpn) else {
            let at = self.writes.add(lpn);
            return self.begin_turn(at, id, whole);
        };
        let page = &mut self.writes.pages[at];
        if !whole || page.programs == 0 || page.read.is_some() || !page.waiting.is_empty() {
            return page.waiting.push_back((id, whole));
        }
        page.programs += 1;
        self.direct_write(id, lpn);
    }

    /// Begins a turn: one partial write of a page, or writes of the whole page. No other write of the page may be in
    /// flight.
    fn begin_turn(&mut self, at: usize, id: ReqId, whole: bool) {
        let page = &mut self.writes.pages[at];
        let lpn = page.lpn;
        page.read = None;
        if !whole {
            // A page without a flash copy contains only zeros, so it need not be read.
            if let Some(chip) = self.backend.unit_of_copy(lpn) {
                return self.queue_flash(chip, lpn, Cause::PartialRead, Owner::host_request(id.0));
            }
        }
        page.programs = 1;
        self.direct_write(id, lpn);
    }

    /// Processes the end of the read with which a partial write begins.
    pub(super) fn partial_read_done(&mut self, id: ReqId, done: &Done) {
        let parts = flash_parts(done, self.now);
        let at = self.writes.find(done.op.lpn);
        let page = &mut self.writes.pages[at.expect("a page being read has its place")];
        page.read = Some(parts);
        page.programs = 1;
        if done.failed {
            // The part of the page that is not written cannot be read. The write therefore fails, and the page keeps
            // its old contents.
            self.requests[id].status = Status::Failed;
            let mut parts = Breakdown::default();
            self.end_turn(id, done.op.lpn, &mut parts);
            return self.page_done(id, parts);
        }
        self.direct_write(id, done.op.lpn);
    }

    /// Ends the program of a page. Adds the time before the program (the wait behind earlier writes, and the read) to
    /// `parts`. If this was the last program of the turn, begins the turn of the next waiting write.
    pub(super) fn end_turn(&mut self, id: ReqId, lpn: Lpn, parts: &mut Breakdown) {
        let at = self.writes.find(lpn);
        let at = at.expect("a page being written has its place");
        let page = &mut self.writes.pages[at];
        parts.add(&page.read.unwrap_or_default());
        parts.queue_host += (self.now - self.requests[id].dispatched) - parts.total();
        page.programs -= 1;
        if page.programs > 0 {
            return;
        }
        let Some((next, whole)) = page.waiting.pop_front() else {
            return self.writes.remove(at);
        };
        self.begin_turn(at, next, whole);
        while let (true, Some(&(next, true))) = (whole, self.writes.pages[at].waiting.front()) {
            self.writes.pages[at].waiting.pop_front();
            self.writes.pages[at].programs += 1;
            self.direct_write(next, lpn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Op, Request};
    use crate::spec::builtin;
    use crate::units::Time;
    use crate::{DeviceSpec, Ssd};

    /// Returns a chip with data. A page of 16 KiB takes 25 us to read, 200 us to program, and 409.6 us to transfer.
    fn chip(backend: &str, more: &[(&str, &str)]) -> Ssd {
        let mut overrides = vec![
            ("geometry.chips", "1"),
            ("geometry.planes_per_chip", "1"),
            ("geometry.page_bytes", "16KiB"),
            ("ftl.partial", "sectors"),
            ("link.bus_ns_per_sector", "0"),
            ("nand.backend", backend),
            ("buffer", "none"),
        ];
        if backend == "modern" {
            overrides.push(("geometry.channels", "1"));
        }
        overrides.extend(more);
        let spec = DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &overrides);
        let mut ssd = Ssd::new(&spec.unwrap());
        ssd.fill_sequential();
        ssd
    }

    /// Submits requests, given as operation, offset and length in KiB, at the same instant. Returns an entry for each
    /// request, in order of completion: its index in the list, and the instant of its completion in tenths of a
    /// microsecond.
    fn ends(ssd: &mut Ssd, requests: &[(Op, u64, u64)]) -> Vec<(u64, u64)> {
        for (tag, &(op, offset, kib)) in requests.iter().enumerate() {
            let request = Request {
                arrival: Time::ZERO,
                offset: offset * 1024,
                bytes: kib * 1024,
                op,
                fua: false,
                ..Request::default()
            };
            ssd.submit(Time::ZERO, &request, tag as u64).unwrap();
        }
        while ssd.step() {}
        assert!(
            ssd.writes.pages.len() == ssd.writes.free.len(),
            "no turn left"
        );
        let done = ssd.completions().drain(..);
        done.map(|done| (done.tag, done.done.0 / 100_000)).collect()
    }

    fn reads(ssd: &Ssd) -> u64 {
        ssd.flash_report().flash.count(Cause::PartialRead)
    }

    use Op::{Read, Trim, Write};

    /// A read-modify-write. The read takes 25 + 409.6 us, and the program after it 409.6 + 200 us.
    #[test]
    fn a_write_of_a_part_reads_the_rest_first() {
        for backend in ["msr", "modern"] {
            let mut ssd = chip(backend, &[]);
            assert_eq!(ends(&mut ssd, &[(Write, 4, 4)]), [(0, 10_442)], "{backend}");
            assert_eq!(reads(&ssd), 1);
            let parts = ssd.metrics().op(Op::Write).parts_us_mean();
            let spent = Breakdown {
                transfer: 8192.0,
                array: 2250.0,
                ..Breakdown::default()
            };
            let tenths = parts.parts().map(|us| (us * 10.0).round());
            assert_eq!(tenths, spent.parts());
            let report = ssd.flash_report();
            assert_eq!(report.flash.count(Cause::HostWrite), 1);
            assert_eq!(report.gc_write_amplification(), Some(1.0));
        }
    }

    #[test]
    fn whole_pages_unwritten_ones_and_rounded_ones_are_not_read() {
        for backend in ["msr", "modern"] {
            let mut ssd = chip(backend, &[]);
            assert_eq!(
                ends(&mut ssd, &[(Write, 16, 16)]),
                [(0, 6_096)],
                "{backend}"
            );
            assert_eq!(reads(&ssd), 0);
            let mut ssd = chip(backend, &[]);
            assert_eq!(
                ends(&mut ssd, &[(Trim, 16, 16), (Write, 20, 1)]),
                [(0, 0), (1, 6_096)]
            );
            assert_eq!(reads(&ssd), 0);
            let mut ssd = chip(backend, &[("ftl.partial", "round")]);
            assert_eq!(ends(&mut ssd, &[(Write, 4, 4)]), [(0, 6_096)]);
            assert_eq!(reads(&ssd), 0);
        }
    }

    /// A write covers three pages, the first and the last only in part. These two are read first, which takes 434.6 us
    /// each. The page between them waits only for the chip.
    #[test]
    fn only_the_ends_of_a_request_are_read() {
        let mut ssd = chip("msr", &[]);
        let end = 2 * 4_346 + 3 * 6_096;
        assert_eq!(ends(&mut ssd, &[(Write, 12, 32)]), [(0, end)]);
        assert_eq!(reads(&ssd), 2);
    }

    /// Two partial writes of one page do not undo each other, because the second write reads the data that the first
    /// has programmed. A write of the whole page that arrives between them is also executed between them. Writes of
    /// other pages do not wait for these writes, nor do reads.
    #[test]
    fn writes_of_one_page_take_turns() {
        for backend in ["msr", "modern"] {
            let mut ssd = chip(backend, &[("nand.copy_back", "false")]);
            let done = ends(&mut ssd, &[(Write, 0, 4), (Write, 4, 4)]);
            assert_eq!(done, [(0, 10_442), (1, 20_884)], "{backend}");
            assert_eq!(reads(&ssd), 2);
        }
        // After a write of the whole page, a partial write reads the data that this write has programmed.
        let mut ssd = chip("msr", &[]);
        let done = ends(&mut ssd, &[(Write, 0, 16), (Write, 0, 4)]);
        assert_eq!((done, reads(&ssd)), (vec![(0, 6_096), (1, 16_538)], 1));
        // A write of the whole page arrives while a partial write of this page is being programmed. It waits for the
        // end of that program. It needs no read.
        let mut ssd = chip("msr", &[]);
        let at = Time::from_us(500);
        for (now, bytes) in [(Time::ZERO, 4096), (at, 16 * 1024)] {
            ssd.advance(now);
            let request = Request {
                arrival: now,
                offset: 0,
                bytes,
                op: Write,
                fua: false,
                ..Request::default()
            };
            ssd.submit(now, &request, bytes).unwrap();
        }
        while ssd.step() {}
        let done: Vec<_> = ssd.completions().drain(..).collect();
        assert_eq!(done[1].done, Time(1_653_800_000));
        assert_eq!(done[1].breakdown.array, Time::from_us(200));
        let mut ssd = chip("msr", &[]);
        let requests = [
            (Write, 0, 4),
            (Write, 0, 16),
            (Write, 8, 4),
            (Write, 16, 16),
            (Read, 0, 4),
        ];
        let done = ends(&mut ssd, &requests);
        // The chip's operations in their order, with the index of the request that each is for: read for 0, program for
        // 3, read for 4, program for 0, program for 1, read for 2, program for 2.
        let at = [4_346, 6_096, 4_346, 6_096, 6_096, 4_346, 6_096];
        let until = |n: usize| at[..n].iter().sum::<u64>();
        assert_eq!(
            done,
            [
                (3, until(2)),
                (4, until(3)),
                (0, until(4)),
                (1, until(5)),
                (2, until(7))
            ]
        );
    }
}
