//! The fast path of a miss. It has the same result as the general path in [`super::access`]. It is taken if all these
//! conditions hold (and some minor ones):
//!
//! - Like LRU, the policy keeps its pages in one order, and this order does not depend on the device.
//! - The buffer is full, and the incoming page enters the policy.
//! - The victim needs nothing except, if it is dirty, its write-back ([`Page::is_plain`]).
//! - Nothing is logged.

use super::page::{Index, Page, Pool, Program, Rank, Residency};
use super::waiters::Wants;
use super::Cache;
use crate::buffer::{PageId, Policy, Stream};
use crate::device::requests::ReqId;
use crate::device::{Backend, Device, NO_HOME};
use crate::nand::{Cause, Owner};
use crate::units::{ChipId, Lpn};

/// Pages exchanged by a miss on the fast path: the victim and the incoming page.
struct Exchanged {
    victim: u32,
    /// Number of the record that the incoming page uses.
    id: u32,
    /// The page that becomes the fourth victim.
    fourth: PageId,
    /// Number of list entries that a scan for the victim would read.
    inspected: u64,
}

impl Cache {
    /// Removes the victim from the policy's list, and inserts the incoming page. If the fast path does not apply,
    /// changes nothing and returns `None`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn exchange_usual(&mut self, write: bool, is_logged: bool) -> Option<Exchanged> {
        if is_logged || !(write || self.room.takes_reads()) {
            return None;
        }
        let list = self.room.full_in_order()?;
        let PageId(victim) = list.next()?;
        if !self.pages[victim as usize].is_plain() {
            return None;
        }
        let id = *self.free_pages.last()?;
        if !list.can_exchange_next(PageId(id)) {
            return None;
        }
        self.free_pages.truncate(self.free_pages.len() - 1);
        let (fourth, inspected) = list.exchange_next(PageId(victim), PageId(id));
        Some(Exchanged {
            victim,
            id,
            fourth,
            inspected,
        })
    }
}

impl<B: Backend> Device<B> {
    /// Executes a miss on the fast path. If the fast path does not apply, changes nothing and returns false.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn usual_miss(
        &mut self,
        request: ReqId,
        lpn: Lpn,
        write: bool,
        sectors: u64,
        older: Option<u32>,
    ) -> bool {
        // There is one copy of the code for reads and one for writes. Each copy contains only the steps for its own
        // kind of access.
        match write {
            true => self.usual_miss_of::<true>(request, lpn, sectors, older),
            false => self.usual_miss_of::<false>(request, lpn, sectors, older),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn usual_miss_of<const WRITE: bool>(
        &mut self,
        request: ReqId,
        lpn: Lpn,
        sectors: u64,
        older: Option<u32>,
    ) -> bool {
        let write = WRITE;
        let exchanged = self.cache.exchange_usual(write, self.logs_buffer());
        let Some(exchanged) = exchanged else {
            return false;
        };
        let Exchanged {
            victim, id, fourth, ..
        } = exchanged;
        self.look_ahead_to(fourth);
        let r = &self.requests[request];
        let by = r.number_in_logs;
        // A write that waits only for the slot of its page needs no waiter: `give_slot` completes it.
        let is_plain_write = write && (!r.fua || self.cache.protected);
        let home = self.backend.home(lpn);
        let cache = &mut self.cache;
        cache.pages[id as usize] = Page {
            dirty: write,
            by,
            rank: Rank::InFlight,
            valid: if write { sectors } else { 0 },
            residency: Residency::Awaiting {
                writer: is_plain_write.then(|| Index::new(request.0)),
            },
            ..Page::new(lpn, Pool::Policy, home)
        };
        cache.in_flight += 1;
        cache.directory.insert_again(lpn, PageId(id));
        if write {
            cache.set_unstable(id);
            self.note_asked(request, id);
        }
        if older.is_some() {
            self.link_older(id, older);
        }
        let home = self.evict_one(victim, exchanged.inspected, by);
        // Policies with one order do not separate streams.
        self.write_back_plain(victim, id, home, Stream::Cold);
        if !is_plain_write {
            self.await_slot(request, id, write, sectors);
        }
        true
    }

    /// Writes back the evicted page `victim` if it is dirty. Afterwards its slot goes to the page `successor`. `home`
    /// is the unit that [`Device::evict_one`] returned for the victim.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn hand_over_slot(&mut self, victim: u32, successor: u32, home: ChipId) {
        if self.page(victim).is_plain() {
            let p = self.page(victim);
            let (lpn, is_dirty) = (p.lpn, p.dirty);
            let stream = match is_dirty {
                true => self.cache.room.policy.stream(PageId(victim), lpn),
                false => Stream::Cold,
            };
            return self.write_back_plain(victim, successor, home, stream);
        }
        self.page(victim).slot_successor = Some(Index::new(successor));
        self.pump(victim);
    }

    /// Does the work of [`Device::hand_over_slot`] for a plain page ([`Page::is_plain`]): starts its write-back. `home`
    /// is the unit to which the page must be written, or [`NO_HOME`] if it can be written to several units.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn write_back_plain(&mut self, victim: u32, successor: u32, home: ChipId, stream: Stream) {
        let whole = self.cache.whole;
        let is_blocking = self.background().is_none();
        let p = self.page(victim);
        debug_assert!(p.is_plain() && p.has_left());
        p.slot_successor = Some(Index::new(successor));
        if !p.dirty {
            return self.release_clean(victim);
        }
        if p.valid != whole || !is_blocking {
            return self.pump(victim);
        }
        p.program = Program::Running {
            fresh: true,
            trimmed: false,
        };
        p.dirty = false;
        let (lpn, by) = (p.lpn, p.by);
        let owner = Owner::cached_page(victim);
        match home {
            NO_HOME => self.queue_program_for(by, lpn, Cause::Destage, owner, (stream, false)),
            unit => self.queue_for(
                by,
                unit.0.into(),
                lpn,
                Cause::Destage,
                owner,
                (stream, false),
            ),
        }
    }

    /// Lets an access wait for its page: a write for the page's slot, and a read for the page's data. The page may have
    /// received its slot already.
    #[inline(never)]
    pub(super) fn await_slot(&mut self, request: ReqId, id: u32, write: bool, sectors: u64) {
        if write {
            let through = self.requests[request].fua && !self.cache.protected;
            match &mut self.page(id).residency {
                Residency::Awaiting { writer } if !through => {
                    *writer = Some(Index::new(request.0));
                }
                _ => self.write_cached(request, id),
            }
            return;
        }
        let (since, whole) = (self.requests[request].dispatched, self.cache.whole);
        self.cache()
            .wait(id, request, since, Wants::Data(sectors & whole));
        if self.page(id).is_ready() {
            self.fill(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::request::{Op, Request};
    use crate::rng::{seeds, Rng};
    use crate::spec::builtin;
    use crate::{DeviceSpec, Ssd};

    /// Submits random requests of one page each, with `depth` requests in flight. Returns, as text, the completions and
    /// the counters of flash and buffer.
    fn drive(ssd: &mut Ssd, seed: u64, depth: usize) -> String {
        let mut rng = Rng::new(seed);
        let pages = u64::from(ssd.spec().exported_pages());
        let mut text = String::new();
        for tag in 0..6_000 {
            let request = Request {
                arrival: ssd.now(),
                offset: rng.below(pages) * 4096,
                bytes: 4096,
                op: match rng.below(100) {
                    0 => Op::Trim,
                    1..=25 => Op::Read,
                    _ => Op::Write,
                },
                ..Request::default()
            };
            ssd.submit(ssd.now(), &request, tag).unwrap();
            while ssd.outstanding() >= depth {
                assert!(ssd.step());
            }
            let done = ssd.completions().drain(..);
            done.for_each(|completion| text += &format!("{completion:?}\n"));
        }
        while ssd.step() {}
        text + &format!("{:?}", ssd.flash_report())
    }

    /// The run to compare with has a log, so that all its misses take the general path. At depth 40, the search for a
    /// victim skips many pages in flight, because the buffer has only 64 pages.
    #[test]
    fn the_fast_path_equals_the_general_one_at_depth() {
        for seed in seeds(2) {
            for policy in ["lru", "fifo"] {
                let keys = [
                    ("geometry.chips", "8"),
                    ("geometry.planes_per_chip", "4"),
                    ("geometry.blocks_per_plane", "32"),
                    ("geometry.pages_per_block", "16"),
                    ("geometry.reserve_percent", "30"),
                    ("buffer.capacity", "256 KiB"),
                    ("buffer.policy", policy),
                ];
                let spec = builtin("ecr").unwrap();
                let spec = DeviceSpec::with_overrides(spec, "ecr", &keys).unwrap();
                let mut ssd = Ssd::new(&spec);
                ssd.fill_steady(seed);
                for depth in [1, 20, 40, 63, 100] {
                    let (mut fast, mut general) = (ssd.clone(), ssd.clone());
                    general.set_buffer_log(true);
                    let fast_text = drive(&mut fast, seed, depth);
                    assert!(
                        fast_text == drive(&mut general, seed, depth),
                        "{policy}, seed {seed}, depth {depth}"
                    );
                    let report = fast.flash_report();
                    let passed = report.entries_inspected > report.evictions;
                    assert!(passed || depth < 40, "no search passes over pages");
                }
            }
        }
    }
}
