//! Replacement (*exchange*) of the policy while the buffer is in use. No page is lost, no page is in the buffer twice,
//! and requests in flight complete.

use flashtwin::buffer::ChosenPolicy;
use flashtwin::component::Pages;
use flashtwin::{
    seed_of, seeds, Backend, BufferEvent, Device, Durable, Lpn, Op, Request, Rng, Ssd, Time,
};
use std::collections::HashMap;
use std::ops::Range;

use super::{array, ssd};

const PAGE: u64 = 4096;

/// A load of random requests to a running device. It records the requests in flight.
struct Load {
    rng: Rng,
    now: Time,
    submitted: u64,
    completed: u64,
    /// For each write in flight, the pages it writes.
    writing: HashMap<u64, Range<u64>>,
}

impl Load {
    fn new(seed: u64) -> Load {
        Load {
            rng: Rng::new(seed),
            now: Time::ZERO,
            submitted: 0,
            completed: 0,
            writing: HashMap::new(),
        }
    }

    fn take_completions<B: Backend>(&mut self, device: &mut Device<B>) {
        for done in device.completions().drain(..) {
            self.completed += 1;
            self.writing.remove(&done.tag);
        }
    }

    fn is_being_written(&self, page: Lpn) -> bool {
        let page = u64::from(page.0);
        self.writing.values().any(|pages| pages.contains(&page))
    }

    fn requests<B: Backend>(&mut self, device: &mut Device<B>, count: u64) {
        self.now = self.now.max(device.now());
        for _ in 0..count {
            // The mean interval is long enough for new requests to reach the buffer between two exchanges of policies.
            self.now += Time::from_us(self.rng.below(4000));
            device.advance(self.now);
            let op = match self.rng.below(40) {
                0 => Op::Flush,
                1 | 2 => Op::Trim,
                3..20 => Op::Read,
                _ => Op::Write,
            };
            // Requests cover parts of pages. Most go to a few pages, some to pages far away.
            let first = self.rng.below(120) + 5000 * u64::from(self.rng.below(8) == 0);
            let bytes = 512 * (1 + self.rng.below(40));
            let request = Request {
                arrival: self.now,
                offset: if op == Op::Flush { 0 } else { first * PAGE },
                bytes: if op == Op::Flush { 0 } else { bytes },
                op,
                fua: op == Op::Write && self.rng.below(20) == 0,
                ..Request::default()
            };
            device.submit(self.now, &request, self.submitted).unwrap();
            if op == Op::Write {
                let end = (request.offset + bytes).div_ceil(PAGE);
                self.writing.insert(self.submitted, first..end);
            }
            self.submitted += 1;
            self.take_completions(device);
        }
    }

    fn end<B: Backend>(&mut self, device: &mut Device<B>) {
        while device.step() {}
        self.take_completions(device);
        assert_eq!(self.completed, self.submitted);
    }
}

/// Returns the names of all policies, with and without GCaR.
fn policies() -> Vec<String> {
    ChosenPolicy::names()
}

/// Replaces the policy and checks that no dirty page is lost or added. Compares the pages that a power loss would lose
/// directly before and directly after the replacement. All pages that it would lose before must also be lost after.
/// Further pages may be lost only if writes in flight got the slots of evicted clean pages.
fn exchange(ssd: &mut Ssd, name: &str, load: &mut Load) {
    ssd.advance(ssd.now());
    load.take_completions(ssd);
    let (cut, before) = (ssd.power_cut(), ssd.flash_report());
    ssd.set_policy(name, &[]).unwrap();
    let (report, after) = (ssd.flash_report(), ssd.power_cut());
    assert_eq!(report.dirty_pages, before.dirty_pages, "{name}");
    let is_in = |lpns: &[Lpn], lpn: &Lpn| lpns.binary_search(lpn).is_ok();
    assert!(cut.lost.iter().all(|lpn| is_in(&after.lost, lpn)), "{name}");
    let more = || after.lost.iter().filter(|lpn| !is_in(&cut.lost, lpn));
    more().for_each(|lpn| assert!(load.is_being_written(*lpn), "{name}: {lpn:?}"));
    let waiting = before.dirty_pages as usize - cut.lost.len();
    assert!(more().count() <= waiting, "{name}: {waiting}");
    let buffer = ssd.spec().buffer.as_ref().unwrap();
    assert_eq!(buffer.policy.name(), name);
}

fn every_policy_follows_every_other(more: &[(&str, &str)]) {
    let mut all = vec![
        ("geometry.chips", "2"),
        ("buffer.capacity", "160 KiB"),
        ("buffer.power_loss_protection", "false"),
        ("buffer.partial", "sectors"),
        // With this policy, the flash has separate blocks for hot and cold pages.
        ("buffer.policy", "cda-gc"),
    ];
    all.extend(more);
    let mut ssd = ssd("demo", &all);
    ssd.fill_steady(1);
    for seed in seeds(3) {
        let mut dirty = 0;
        for old in policies() {
            for new in policies() {
                // The random requests depend only on the seed and on the names of the two policies. If a policy is
                // added, the requests of the existing pairs stay the same.
                let mut ssd = ssd.clone();
                let mut load = Load::new(seed_of(&new, seed_of(&old, seed)));
                exchange(&mut ssd, &old, &mut load);
                load.requests(&mut ssd, 40);
                dirty += ssd.power_cut().lost.len();
                exchange(&mut ssd, &new, &mut load);
                load.requests(&mut ssd, 10);
                load.end(&mut ssd);
                ssd.check().unwrap();
            }
        }
        let pairs = policies().len().pow(2);
        assert!(
            dirty > 10 * pairs,
            "seed {seed}: {dirty}: nothing to hand over"
        );
    }
}

#[test]
fn no_exchange_of_policies_loses_a_page() {
    every_policy_follows_every_other(&[]);
}

#[test]
fn no_page_is_lost_in_background_mode_and_beside_a_read_cache() {
    let more = [
        ("buffer.evict", "background"),
        ("buffer.read_cache", "16"),
        ("ftl.placement", "dynamic"),
        ("nand.backend", "modern"),
        ("geometry.channels", "2"),
    ];
    every_policy_follows_every_other(&more);
}

/// A write waits for a slot. The replacement evicts a clean page, and the write gets the slot of this page. From then
/// on, a power loss would lose the written page. The counter of waits for slots does not count a forced write or a wait
/// of length zero.
#[test]
fn a_write_in_flight_gets_the_slot_of_a_clean_page_that_an_exchange_evicts() {
    for (forced, at_once) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut ssd = ssd(
            "demo",
            &[
                ("buffer.capacity", "16 KiB"),
                ("buffer.policy", "lru"),
                ("buffer.power_loss_protection", "false"),
                ("link.bus_ns_per_sector", "0"),
            ],
        );
        ssd.fill_sequential();
        let mut tag = 0;
        let mut send = |ssd: &mut Ssd, op: Op, page: u64, fua: bool| {
            let request = Request {
                arrival: ssd.now(),
                offset: page * PAGE,
                bytes: if op == Op::Flush { 0 } else { PAGE },
                op,
                fua,
                ..Request::default()
            };
            ssd.submit(ssd.now(), &request, tag).unwrap();
            tag += 1;
        };
        // Two clean pages and two dirty ones fill the buffer.
        for (op, page) in [(Op::Read, 0), (Op::Read, 1), (Op::Write, 2), (Op::Write, 3)] {
            send(&mut ssd, op, page, false);
            while ssd.step() {}
        }
        // Page 2 is trimmed while it is being programmed. It is removed from the policy, but keeps its slot.
        send(&mut ssd, Op::Flush, 0, false);
        ssd.advance(ssd.now() + Time::from_us(50));
        send(&mut ssd, Op::Trim, 2, false);
        ssd.advance(ssd.now() + Time::from_us(20));
        ssd.completions().clear();
        let dirty = ssd.flash_report().dirty_pages;
        // The policy has room for page 9, but no slot is free.
        send(&mut ssd, Op::Write, 9, forced);
        while ssd.flash_report().dirty_pages == dirty {
            assert!(ssd.step());
        }
        if !at_once {
            ssd.advance(ssd.now() + Time::from_us(1));
        }
        let (before, cut) = (ssd.flash_report(), ssd.power_cut());
        // Req-block does not insert pages that were read. The exchange therefore evicts the clean pages.
        ssd.set_policy("req-block", &[]).unwrap();
        let (report, after) = (ssd.flash_report(), ssd.power_cut());
        assert_eq!(cut.lost, [Lpn(3)]);
        assert_eq!(after.lost, [Lpn(3), Lpn(9)]);
        assert_eq!(report.dirty_pages, before.dirty_pages);
        let counted = report.slot_waits - before.slot_waits;
        assert_eq!(counted, u64::from(!forced && !at_once));
        let is_done = ssd.completions().iter().any(|done| done.tag == 6);
        assert!(!is_done, "acknowledged");
    }
}

/// Writes pages one after the other, and returns the pages evicted.
fn evicted(ssd: &mut Ssd, pages: std::ops::Range<u64>) -> Vec<u32> {
    ssd.set_logs(true);
    for page in pages {
        access(ssd, page, Op::Write);
    }
    let log = ssd.take_buffer_log();
    let evicted = log.into_iter().filter_map(|event| match event {
        BufferEvent::Evicted { lpn: Lpn(lpn), .. } => Some(lpn),
        _ => None,
    });
    evicted.collect()
}

fn access(ssd: &mut Ssd, page: u64, op: Op) {
    let request = Request {
        arrival: ssd.now(),
        offset: page * PAGE,
        bytes: PAGE,
        op,
        fua: false,
        ..Request::default()
    };
    ssd.submit(ssd.now(), &request, page).unwrap();
    while ssd.step() {}
}

#[test]
fn the_new_policy_begins_with_the_order_of_the_old_one() {
    for new in ["lru", "fifo", "clock", "gcar-lru"] {
        let set = [("buffer.capacity", "32 KiB"), ("buffer.policy", "lru")];
        let mut ssd = ssd("demo", &set);
        (0..8).for_each(|page| access(&mut ssd, page, Op::Write));
        access(&mut ssd, 0, Op::Read);
        access(&mut ssd, 3, Op::Write);
        ssd.set_policy(new, &[]).unwrap();
        let order = evicted(&mut ssd, 100..108);
        assert_eq!(order, [1, 2, 4, 5, 6, 7, 0, 3], "{new}");
    }
}

/// A replacement inserts each page, including the first one, into the new policy as part of a request. This must not be
/// the request of the access that later needs a victim.
#[test]
fn no_page_is_of_the_request_that_asks_for_victims() {
    let set = [("buffer.capacity", "32 KiB"), ("buffer.policy", "lru")];
    let mut ssd = ssd("demo", &set);
    (0..8).for_each(|page| access(&mut ssd, page, Op::Write));
    ssd.set_policy("req-block", &[]).unwrap();
    ssd.set_policy("lru", &[]).unwrap();
    assert_eq!(evicted(&mut ssd, 100..108), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// CBM requires non-volatile memory. When CBM replaces another policy or is replaced, the memory stays as volatile as
/// it was, even after a power loss.
#[test]
fn memory_stays_as_volatile_as_it_was() {
    for (first, second, durable) in [
        ("lru", "cbm", Durable::Programmed),
        ("cbm", "lru", Durable::AtOnce),
    ] {
        let mut ssd = ssd(
            "demo",
            &[
                ("buffer.capacity", "32 KiB"),
                ("buffer.policy", first),
                ("buffer.power_loss_protection", "false"),
            ],
        );
        ssd.fill_sequential();
        assert_eq!(ssd.durable(), durable, "{first}");
        ssd.set_policy(second, &[]).unwrap();
        assert_eq!(ssd.durable(), durable, "{first}, then {second}");
        ssd.cut_power(1_000_000).unwrap();
        assert_eq!(ssd.durable(), durable, "{second} after a power loss");
        access(&mut ssd, 3, Op::Write);
        let lost = ssd.power_cut().lost;
        assert_eq!(lost.is_empty(), durable == Durable::AtOnce, "{second}");
    }
}

/// An exchange keeps all dirty pages. It keeps clean pages only if the new policy inserts pages that are read.
#[test]
fn clean_pages_stay_if_the_new_policy_admits_them() {
    for (new, set, stay) in [
        ("lru", &[][..], true),
        ("bplru", &[], true),
        ("bplru", &[("buffer.cache_reads", "false")], false),
        ("req-block", &[], false),
    ] {
        let mut ssd = ssd(
            "demo",
            &[("buffer.capacity", "32 KiB"), ("buffer.policy", "lru")],
        );
        ssd.fill_sequential();
        (0..4).for_each(|page| access(&mut ssd, page, Op::Read));
        (4..8).for_each(|page| access(&mut ssd, page, Op::Write));
        ssd.set_policy(new, set).unwrap();
        ssd.reset_metrics(None);
        (4..8).for_each(|page| access(&mut ssd, page, Op::Read));
        assert_eq!(ssd.metrics().op(Op::Read).hits, 4, "{new}: dirty pages");
        access(&mut ssd, 0, Op::Read);
        assert_eq!(
            ssd.metrics().op(Op::Read).hits,
            4 + u64::from(stay),
            "{new}: clean pages"
        );
    }
}

/// A page whose program is running is not yet on flash. The exchange therefore keeps it like a dirty page.
#[test]
fn pages_being_flushed_stay() {
    let mut ssd = ssd("demo", &[("buffer.power_loss_protection", "false")]);
    (0..4).for_each(|page| access(&mut ssd, page, Op::Write));
    let flush = Request {
        arrival: ssd.now(),
        offset: 0,
        bytes: 0,
        op: Op::Flush,
        fua: false,
        ..Request::default()
    };
    ssd.submit(ssd.now(), &flush, 9).unwrap();
    // The device has received the flush, and all four pages are being programmed.
    ssd.advance(ssd.now() + Time::from_us(50));
    assert_eq!(ssd.power_cut().lost.len(), 4);
    exchange(&mut ssd, "req-block", &mut Load::new(0));
    while ssd.step() {}
    assert_eq!(ssd.power_cut().lost, []);
    (0..4).for_each(|page| access(&mut ssd, page, Op::Read));
    assert_eq!(ssd.metrics().op(Op::Read).hits, 4);
}

#[test]
fn the_new_policy_remains_after_a_power_loss() {
    let mut ssd = ssd("demo", &[]);
    let set = [("buffer.window", "0.5")];
    ssd.set_policy("cflru", &set).unwrap();
    let policy = ssd.spec().buffer.clone().unwrap().policy;
    assert_eq!(policy.settings.get::<Pages>("window").0, 512);
    ssd.cut_power(1_000_000).unwrap();
    assert_eq!(ssd.spec().buffer.clone().unwrap().policy, policy);
    // The parameters of the previous policy are not kept.
    ssd.set_policy("gcar-cflru", &[]).unwrap();
    let policy = ssd.spec().buffer.clone().unwrap().policy;
    assert_eq!(policy.settings.get::<Pages>("window").0, 256);
}

#[test]
fn an_array_exchanges_the_policy_of_its_own_buffer() {
    for name in ["gcar-array", "harmonia-array"] {
        let more = [("buffer.capacity", "1 MiB"), ("buffer.partial", "sectors")];
        let more = if name == "gcar-array" { &more[..] } else { &[] };
        let mut array = array("raid5", "harmonia*4", more);
        array.fill_steady(1);
        for policy in policies() {
            let mut array = array.clone();
            let mut load = Load::new(seed_of(&policy, 9));
            load.requests(&mut array, 50);
            let changed = array.set_policy(&policy, &[]);
            match array.spec().buffer {
                Some(_) => changed.unwrap(),
                None => drop(changed.unwrap_err()),
            }
            load.requests(&mut array, 50);
            load.end(&mut array);
        }
    }
}

#[test]
fn an_invalid_policy_is_refused_and_changes_nothing() {
    let mut ssd = ssd("demo", &[]);
    let before = ssd.spec().clone();
    for (name, set, why) in [
        ("none", &[][..], "there is no such policy"),
        ("lrru", &[], "there is no such policy"),
        ("cda-gc", &[], "blocks of their own"),
        ("lru", &[("buffer.window", "0.5")], "buffer.window"),
        (
            "lru",
            &[("buffer.capacity", "8MiB")],
            "only the keys of a policy",
        ),
        (
            "lru",
            &[("gc.low_percent", "8")],
            "only the keys of a policy",
        ),
        ("cflru", &[("buffer.window", "wide")], "buffer.window"),
        ("cflru", &[("buffer.window", "100000")], "buffer.window"),
    ] {
        let message = ssd.set_policy(name, set).unwrap_err().to_string();
        assert!(message.contains(why), "{message}");
        assert_eq!(ssd.spec(), &before);
    }
    let mut bare = super::ssd("demo", &[("buffer", "none")]);
    let message = bare.set_policy("lru", &[]).unwrap_err().to_string();
    assert!(message.contains("no buffer"), "{message}");
}
