//! Pages in flight (D-36). A page that waits for its slot or its data is never evicted, whatever the policy. If an
//! access finds no page to evict, it waits. Such accesses continue in the order of their arrival.

use flashtwin::buffer::ChosenPolicy as Named;
use flashtwin::buffer::{Access, DeviceView, Eviction, PageId, Policy, Skip};
use flashtwin::spec::builtin;
use flashtwin::{Cause, DeviceSpec, Op, Request, Rng, Ssd, Time};

const PAGE: u64 = 4096;

fn spec(more: &[(&str, &str)]) -> DeviceSpec {
    let mut all = vec![
        ("geometry.blocks_per_plane", "32"),
        ("geometry.reserve_percent", "40"),
        ("buffer.capacity", "16 KiB"),
        ("buffer.evict", "background"),
    ];
    all.extend(more);
    let text = builtin("ecr").expect("it is built in");
    DeviceSpec::with_overrides(text, "ecr", &all).expect("a sound device")
}

fn page(op: Op, page: u64, arrival: Time) -> Request {
    Request {
        arrival,
        offset: page * PAGE,
        bytes: PAGE,
        op,
        fua: false,
        ..Request::default()
    }
}

/// Runs the device until it is idle, then accesses one page per microsecond. Returns the response times in us, in the
/// order of the accesses.
fn responses(ssd: &mut Ssd, op: Op, pages: impl Iterator<Item = u64>) -> Vec<f64> {
    while ssd.step() {}
    ssd.completions().clear();
    let start = ssd.now() + Time::from_us(1);
    for (tag, (number, us)) in pages.zip(1..).enumerate() {
        let at = start + Time::from_us(us);
        ssd.advance(at);
        ssd.submit(at, &page(op, number, at), tag as u64).unwrap();
    }
    while ssd.step() {}
    let mut done: Vec<_> = ssd.completions().drain(..).collect();
    done.sort_by_key(|completion| completion.tag);
    done.iter().map(|c| (c.done - c.arrival).as_us()).collect()
}

/// Submits eight reads to eight different chips, and returns the longest response time in us. The device has 64 idle
/// chips. Its buffer has 4 pages, of which 3 are dirty.
fn eight_reads(mut ssd: Ssd) -> f64 {
    ssd.fill_sequential();
    responses(&mut ssd, Op::Write, 100..103);
    let reads = responses(&mut ssd, Op::Read, 200..208);
    reads.into_iter().fold(0.0, f64::max)
}

#[test]
fn reads_of_idle_chips_are_served_side_by_side() {
    let slowest = |policy: &str| eight_reads(Ssd::new(&spec(&[("buffer.policy", policy)])));
    let lru = slowest("lru");
    for name in Named::names() {
        let worst = slowest(&name);
        assert!(worst <= 1.6 * lru, "{name}: {worst} us; lru: {lru} us");
    }
}

/// A policy that evicts the page inserted last. If `looks` is true, it considers only pages that may be evicted.
#[derive(Clone)]
struct Newest {
    pages: Vec<PageId>,
    looks: bool,
}

impl Policy for Newest {
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        self.pages.push(page);
    }
    fn hit(&mut self, _device: &dyn DeviceView, _page: PageId, _access: &Access) {}
    fn forget(&mut self, page: PageId) {
        self.pages.retain(|&other| other != page);
    }
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let may_leave = |&&page: &&PageId| !self.looks || !skip.page(device, page);
        let found = self.pages.iter().rev().find(may_leave).copied();
        let Some(page) = found else { return false };
        self.forget(page);
        out.one(page, 1);
        true
    }
    fn state(&self, _device: &dyn DeviceView) -> String {
        format!("{:?}", self.pages)
    }
}

#[test]
fn users_policies_evict_nothing_in_flight() {
    let lru = eight_reads(Ssd::new(&spec(&[])));
    for looks in [true, false] {
        let pages = Vec::new();
        let newest = Newest { pages, looks };
        let worst = eight_reads(Ssd::with_policy(&spec(&[]), Box::new(newest)));
        assert!(worst <= 1.6 * lru, "{looks}: {worst} us; lru: {lru} us");
    }
}

/// The buffer has two pages. Each pair of reads waits for the pair before it, and no read overtakes another.
#[test]
fn accesses_wait_in_order_where_all_pages_are_in_flight() {
    for evict in ["blocking", "background"] {
        for policy in ["lru", "ecr", "gcar-lru", "sieve"] {
            let keys = [
                ("buffer.capacity", "8 KiB"),
                ("buffer.evict", evict),
                ("buffer.policy", policy),
            ];
            let mut ssd = Ssd::new(&spec(&keys));
            ssd.fill_sequential();
            // The last read is of page 4. At its turn, page 4 is in the buffer.
            let reads = responses(&mut ssd, Op::Read, [0, 1, 2, 3, 4, 5, 4].into_iter());
            let first = reads[0];
            for (i, &response) in reads.iter().enumerate() {
                let turns = (i.min(5) / 2 + 1) as f64;
                assert!(
                    (response - turns * first).abs() < 0.1 * first,
                    "{policy}, {evict}: {reads:?} us"
                );
            }
        }
    }
}

/// Many more requests are in flight than the buffer has pages: reads and writes of parts of pages, trims and flushes.
/// All of them complete. At each eviction, the buffer itself asserts that the victim is not in flight.
#[test]
fn no_policy_evicts_a_page_in_flight_at_any_depth() {
    for seed in flashtwin::seeds(3) {
        for name in Named::names() {
            for (evict, partial) in [("blocking", "round"), ("background", "sectors")] {
                let keys = [
                    ("geometry.chips", "4"),
                    ("buffer.capacity", "64 KiB"),
                    ("buffer.policy", name.as_str()),
                    ("buffer.evict", evict),
                    ("buffer.partial", partial),
                ];
                let mut ssd = Ssd::new(&spec(&keys));
                ssd.fill_steady(1);
                let mut rng = Rng::new(seed);
                let mut now = ssd.now();
                for tag in 0..1500 {
                    now += Time::from_us(rng.below(120));
                    ssd.advance(now);
                    let op = match rng.below(40) {
                        0 => Op::Flush,
                        1 => Op::Trim,
                        2..20 => Op::Read,
                        _ => Op::Write,
                    };
                    let far = 3000 * u64::from(rng.below(6) == 0);
                    let request = Request {
                        arrival: now,
                        offset: (rng.below(60) + far) * PAGE,
                        bytes: if op == Op::Flush {
                            0
                        } else {
                            512 * (1 + rng.below(30))
                        },
                        op,
                        fua: rng.below(50) == 0,
                        ..Request::default()
                    };
                    ssd.submit(now, &request, tag).unwrap();
                }
                while ssd.step() {}
                assert_eq!(ssd.completions().len(), 1500, "{name}, {evict}");
                ssd.check().unwrap();
            }
        }
    }
}

/// Eight chips become idle, and each has a dirty page in the buffer. The number of pages that are written back at the
/// same time is limited by `background_depth`.
#[test]
fn active_write_backs_are_limited_by_the_depth() {
    for (depth, at_once) in [("2", 2), ("5", 5), ("64", 8)] {
        let set = [
            ("buffer.policy", "co-active"),
            ("buffer.write_backs", "64"),
            ("buffer.idle_unit", "chip"),
            ("buffer.capacity", "128 KiB"),
            ("buffer.background_depth", depth),
        ];
        let mut ssd = Ssd::new(&spec(&set));
        ssd.fill_sequential();
        responses(&mut ssd, Op::Write, 0..8);
        let start = ssd.now() + Time::from_us(1);
        for tag in 0..8 {
            ssd.submit(start, &page(Op::Read, 64 + tag, start), tag)
                .unwrap();
        }
        while ssd.completions().len() < 8 {
            assert!(ssd.step());
        }
        let written = |ssd: &Ssd| ssd.flash_report().flash.count(Cause::WriteBack);
        assert_eq!(written(&ssd), at_once, "depth {depth}");
        while ssd.step() {}
        ssd.check().unwrap();
    }
}

/// Eight chips each have a dirty page in the buffer. The host is quiet from 8 us on. After 1000 us of quiet, the pages
/// are written back, and stay in the buffer.
#[test]
fn pages_are_written_ahead_after_a_silence() {
    for (depth, at_once) in [("2", 2), ("5", 5), ("64", 8)] {
        let set = [
            ("buffer.policy", "coop"),
            ("buffer.quiet_us", "1000"),
            ("buffer.clean", "0"),
            ("link.bus_ns_per_sector", "0"),
            ("buffer.capacity", "128 KiB"),
            ("buffer.background_depth", depth),
        ];
        let mut ssd = Ssd::new(&spec(&set));
        ssd.fill_sequential();
        let start = ssd.now();
        for number in 0..8 {
            let at = start + Time::from_us(1 + number);
            ssd.advance(at);
            ssd.submit(at, &page(Op::Write, number, at), number)
                .unwrap();
        }
        let written = |ssd: &Ssd| ssd.flash_report().flash.count(Cause::WriteBack);
        while ssd.step() {}
        assert!(
            ssd.now() < start + Time::from_us(100),
            "no wait for silence"
        );
        ssd.advance(start + Time::from_us(1007));
        assert_eq!(written(&ssd), 0, "the silence is too short");
        ssd.advance(start + Time::from_us(1008));
        assert_eq!(written(&ssd), at_once, "depth {depth}");
        // The policy chooses no more pages than `background_depth` permits at the same time, so no chosen page has to
        // wait.
        let chosen = ssd.flash_report().policy_counters;
        assert_eq!(chosen, [("coop_written_ahead".to_owned(), at_once)]);
        while ssd.step() {}
        assert_eq!(written(&ssd), 8, "depth {depth}");
        assert_eq!(ssd.flash_report().dirty_pages, 0);
        ssd.check().unwrap();
        let again = responses(&mut ssd, Op::Read, 0..8);
        assert!(again.iter().all(|&time| time == again[0]), "all pages hit");
    }
}

/// The host always has eight requests in the device, so it is never quiet.
#[test]
fn a_busy_host_has_no_pages_written_ahead() {
    let set = [
        ("geometry.blocks_per_plane", "16"),
        ("gc.low_percent", "7"),
        ("buffer.policy", "coop"),
        ("buffer.quiet_us", "10000000"),
    ];
    let text = builtin("nvme-tlc").expect("it is built in");
    let spec = DeviceSpec::with_overrides(text, "nvme-tlc", &set).expect("a sound device");
    let mut ssd = Ssd::new(&spec);
    ssd.fill_sequential();
    let mut rng = Rng::new(1);
    for tag in 0..10_000 {
        while ssd.outstanding() >= 8 {
            assert!(ssd.step());
        }
        let now = ssd.now();
        ssd.advance(now);
        let request = page(Op::Write, rng.below(6000), now);
        ssd.submit(now, &request, tag).unwrap();
    }
    while ssd.step() {}
    let report = ssd.flash_report();
    assert!(report.flash.count(Cause::Destage) > 0);
    assert_eq!(report.flash.count(Cause::WriteBack), 0);
}
