//! Effects of a power loss under every policy. A volatile buffer loses exactly the pages that were not yet written to
//! flash. A non-volatile buffer loses nothing. Data covered by a completed flush or forced write are never lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::common;
use flashtwin::buffer::ChosenPolicy;
use flashtwin::{
    seed_of, Cause, Durable, FlashEvent, Lpn, Op, PageProgram, Request, Rng, Ssd, Time,
};

const PAGE: u64 = 4096;

fn request(op: Op, first: u64, pages: u64, fua: bool) -> Request {
    Request {
        arrival: Time::ZERO,
        offset: first * PAGE,
        bytes: pages * PAGE,
        op,
        fua,
        ..Request::default()
    }
}

/// Returns a random request of at most six pages, all within the first `reach` pages.
fn draw(rng: &mut Rng, reach: u64) -> Request {
    let pages = 1 + rng.below(6);
    let first = rng.below(reach - pages);
    match rng.below(20) {
        0..=4 => request(Op::Read, first, pages, false),
        5 => request(Op::Trim, first, pages, false),
        6 => request(Op::Flush, 0, 0, false),
        7 | 8 => request(Op::Write, first, pages, true),
        _ => request(Op::Write, first, pages, false),
    }
}

fn pages_of(r: &Request) -> std::ops::Range<u32> {
    (r.offset / PAGE) as u32..((r.offset + r.bytes) / PAGE) as u32
}

/// Returns the demo device with a small buffer and the given policy, in the steady state, so that GC runs.
fn device(policy: &str, rng: &mut Rng) -> Ssd {
    let evict = if rng.below(2) == 0 {
        "blocking"
    } else {
        "background"
    };
    let capacity = ((4 + rng.below(40)) * PAGE).to_string();
    let read_cache = rng.below(9).to_string();
    let mut set = vec![
        ("buffer.policy", policy),
        ("buffer.capacity", capacity.as_str()),
        ("buffer.evict", evict),
        ("buffer.read_cache", read_cache.as_str()),
        ("buffer.power_loss_protection", "false"),
        ("geometry.blocks_per_plane", "64"),
    ];
    if policy == "bplru" && rng.below(2) == 0 {
        set.push(("buffer.padding", "true"));
    }
    let mut ssd = Ssd::new(&common::device(&set));
    ssd.fill_steady(rng.below(9));
    ssd
}

/// Contents of the flash, derived only from the log of flash programs. A server that stores the clients' data outside
/// the model has only this log.
#[derive(Default)]
struct ByLog {
    /// Versions of each page's contents: the number of the version last written by the host, the number of the version
    /// on flash, and the numbers of the versions that running programs write.
    pages: BTreeMap<Lpn, (u32, u32, VecDeque<u32>)>,
}

impl ByLog {
    fn submitted(&mut self, r: &Request) {
        for page in pages_of(r) {
            let (holds, on_flash, carried) = self.pages.entry(Lpn(page)).or_default();
            match r.op {
                Op::Write => *holds += 1,
                Op::Trim => {
                    *on_flash = *holds;
                    carried.iter_mut().for_each(|of_one| *of_one = *holds);
                }
                _ => {}
            }
        }
    }

    fn on_program(&mut self, ssd: &mut Ssd) {
        for program in ssd.take_program_log() {
            let (PageProgram::Queued(lpn) | PageProgram::Ended(lpn) | PageProgram::Failed(lpn)) =
                program;
            let (holds, on_flash, carried) = self.pages.entry(lpn).or_default();
            match program {
                PageProgram::Queued(_) => carried.push_back(*holds),
                PageProgram::Ended(_) => *on_flash = carried.pop_front().expect("was queued"),
                PageProgram::Failed(_) => drop(carried.pop_front().expect("was queued")),
            }
        }
    }

    fn lost(&self) -> Vec<Lpn> {
        let pages = self.pages.iter();
        let lost = pages.filter(|(_, (holds, on_flash, _))| holds != on_flash);
        lost.map(|(&lpn, _)| lpn).collect()
    }
}

fn every_policy(test: impl Fn(&str, &mut Rng)) {
    for name in &ChosenPolicy::names() {
        for seed in flashtwin::seeds(6) {
            test(name, &mut Rng::new(seed_of(name, seed)));
        }
    }
}

/// If only one request is in flight at a time, a power loss loses a page exactly if no program of the page began after
/// the last write to it.
#[test]
fn exactly_the_unflushed_dirty_pages_are_lost() {
    every_policy(|policy, rng| {
        let mut ssd = device(policy, rng);
        ssd.set_flash_log(true);
        ssd.set_program_log(true);
        let mut by_log = ByLog::default();
        let mut written: BTreeMap<u32, Time> = BTreeMap::new();
        let mut lost_ever = 0;
        for tag in 0..300 {
            let mut r = draw(rng, 120);
            if r.op == Op::Write {
                // Writes are limited to one page. Otherwise the device could program the old contents of a page to make
                // room for another page of the same request.
                r.bytes = PAGE;
            }
            let at = ssd.now() + Time::from_us(rng.below(500));
            ssd.advance(at);
            ssd.submit(at, &r, tag).unwrap();
            by_log.submitted(&r);
            while ssd.step() {}
            by_log.on_program(&mut ssd);
            ssd.completions().clear();
            for lpn in pages_of(&r) {
                match r.op {
                    Op::Write => {
                        written.insert(lpn, at);
                    }
                    Op::Trim => {
                        written.remove(&lpn);
                    }
                    _ => {}
                }
            }
            for event in ssd.take_flash_log() {
                if let FlashEvent::Page { at, lpn, cause, .. } = event {
                    let program = !matches!(
                        cause,
                        Cause::Fill | Cause::HostRead | Cause::PaddingRead | Cause::GcMove
                    );
                    if program && written.get(&lpn.0).is_some_and(|&since| at >= since) {
                        written.remove(&lpn.0);
                    }
                }
            }
            let cut = ssd.power_cut();
            assert_eq!(cut.unfinished, 0);
            let wanted: Vec<Lpn> = match policy {
                "cbm" | "gcar-cbm" => Vec::new(),
                _ => written.keys().map(|&lpn| Lpn(lpn)).collect(),
            };
            assert_eq!(cut.lost, wanted, "{policy}, request {tag}");
            if !matches!(policy, "cbm" | "gcar-cbm") {
                assert_eq!(by_log.lost(), wanted, "{policy}, request {tag}, by the log");
            }
            lost_ever += cut.lost.len();
        }
        assert!(
            policy == "cbm" || lost_ever > 0,
            "{policy}: nothing was ever at stake"
        );
    });
}

/// With power-loss protection, no data are lost under any policy.
#[test]
fn protected_memory_loses_nothing() {
    every_policy(|policy, rng| {
        let spec = common::device(&[
            ("buffer.policy", policy),
            ("buffer.capacity", "64KiB"),
            ("buffer.power_loss_protection", "true"),
        ]);
        let mut ssd = Ssd::new(&spec);
        for tag in 0..200 {
            let at = ssd.now() + Time::from_us(rng.below(50));
            ssd.advance(at);
            ssd.submit(at, &draw(rng, 120), tag).unwrap();
            assert_eq!(ssd.power_cut().lost, []);
        }
    });
}

/// With many requests in flight, data covered by a completed flush or forced write are never lost, unless the host
/// wrote the pages again. Pages that were never written are never reported as lost.
#[test]
fn flush_and_forced_writes_keep_their_promises() {
    every_policy(|policy, rng| {
        let mut ssd = device(policy, rng);
        ssd.set_program_log(true);
        let mut by_log = ByLog::default();
        let mut requests: Vec<Request> = Vec::new();
        // `at_stake`: pages that are possibly not on flash, because a write was submitted after they were last known to
        // be on flash. `ever`: all pages ever written.
        let mut at_stake: BTreeSet<u32> = BTreeSet::new();
        let mut ever: BTreeSet<u32> = BTreeSet::new();
        // For each page, the number of the last write submitted.
        let mut last_write: BTreeMap<u32, usize> = BTreeMap::new();
        // Writes that had completed when a flush was submitted.
        let mut completed: BTreeSet<usize> = BTreeSet::new();
        let mut covered: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for tag in 0..600 {
            let r = draw(rng, 120);
            let at = ssd.now() + Time::from_us(rng.below(120));
            while ssd.outstanding() > 24 || ssd.next_event().is_some_and(|next| next <= at) {
                assert!(
                    ssd.step(),
                    "{policy}: requests in the device and nothing pending"
                );
            }
            let at = at.max(ssd.now());
            ssd.advance(at);
            let done: Vec<usize> = ssd
                .completions()
                .drain(..)
                .map(|c| c.tag as usize)
                .collect();
            for done in done {
                let finished: &Request = &requests[done];
                completed.insert(done);
                let safe: Vec<u32> = match finished.op {
                    Op::Flush => {
                        let covered = covered.remove(&done).unwrap();
                        let of = |lpn: &&u32| covered.contains(&last_write[lpn]);
                        at_stake.iter().filter(of).copied().collect()
                    }
                    Op::Write if finished.fua => {
                        let own = |lpn: &u32| last_write[lpn] == done;
                        pages_of(finished).filter(own).collect()
                    }
                    _ => Vec::new(),
                };
                for lpn in safe {
                    at_stake.remove(&lpn);
                }
            }
            by_log.on_program(&mut ssd);
            let is_volatile = ssd.durable() == Durable::Programmed;
            let by_log_lost = by_log.lost().into_iter().filter(|_| is_volatile);
            for lost in ssd.power_cut().lost.into_iter().chain(by_log_lost) {
                assert!(
                    at_stake.contains(&lost.0),
                    "{policy}: page {} is lost",
                    lost.0
                );
                assert!(
                    ever.contains(&lost.0),
                    "{policy}: page {} was never written",
                    lost.0
                );
            }
            if r.op == Op::Write {
                for lpn in pages_of(&r) {
                    at_stake.insert(lpn);
                    ever.insert(lpn);
                    last_write.insert(lpn, tag);
                }
            }
            if r.op == Op::Flush {
                covered.insert(tag, completed.clone());
            }
            requests.push(r);
            ssd.submit(at, &r, tag as u64).unwrap();
            by_log.submitted(&r);
        }
    });
}

/// After a power loss with requests in flight, a device has an empty buffer, is idle, and continues to execute
/// requests.
#[test]
fn the_buffer_is_empty_after_a_power_loss() {
    every_policy(|policy, rng| {
        let mut ssd = device(policy, rng);
        let mut lost_ever = 0;
        for round in 0..6 {
            for tag in 0..40 {
                let at = ssd.now() + Time::from_us(rng.below(100));
                ssd.advance(at);
                ssd.submit(at, &draw(rng, 120), tag).unwrap();
            }
            let foreseen = ssd.power_cut();
            let cut = ssd.cut_power(1_000_000).expect("flash comes to rest");
            assert_eq!(cut, foreseen);
            lost_ever += cut.lost.len();
            assert!(ssd.next_event().is_none() && ssd.outstanding() == 0);
            assert_eq!(ssd.power_cut(), Default::default(), "{policy}, cut {round}");
            assert!(ssd.check().is_ok(), "{policy}: {:?}", ssd.check());
            let read = request(Op::Read, 0, 120, false);
            ssd.submit(ssd.now(), &read, 0).unwrap();
            while ssd.step() {}
            let read = ssd.completions().drain(..).next().expect("a completion");
            assert_eq!(read.hits, 0, "{policy}, cut {round}");
        }
        let keeps = ssd.durable() == Durable::AtOnce;
        assert_eq!(lost_ever == 0, keeps, "{policy}");
    });
}
