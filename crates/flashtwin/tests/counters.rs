//! Counters of the report, compared with the events that they count: waits for slots, sizes of evictions, and erases
//! by block.

use flashtwin::spec::builtin;
use flashtwin::{Cause, DeviceSpec, Op, Request, Rng, Ssd, Time};

const PAGE: u64 = 4096;

fn device(name: &str, more: &[(&str, &str)]) -> Ssd {
    let text = builtin(name).expect("it is built in");
    let spec = DeviceSpec::with_overrides(text, name, more).expect("a sound device");
    Ssd::new(&spec)
}

/// Submits `n` random one-page writes, and keeps `depth` of them in flight. Returns the waits for a slot, without those
/// of length zero.
fn write_at_random(ssd: &mut Ssd, n: u64, depth: usize, seed: u64) -> Vec<Time> {
    let mut rng = Rng::new(seed);
    let pages = ssd.exported_bytes() / PAGE;
    for tag in 0..n {
        while ssd.outstanding() >= depth && ssd.step() {}
        let now = ssd.now();
        ssd.advance(now);
        let request = Request {
            arrival: now,
            offset: rng.below(pages) * PAGE,
            bytes: PAGE,
            op: Op::Write,
            fua: false,
            ..Request::default()
        };
        ssd.submit(now, &request, tag).unwrap();
    }
    while ssd.step() {}
    let slots = ssd
        .completions()
        .drain(..)
        .map(|done| done.breakdown.slot());
    slots.filter(|&slot| slot > Time::ZERO).collect()
}

#[test]
fn waits_for_slots_are_those_of_the_requests() {
    for seed in flashtwin::seeds(3) {
        for evict in ["blocking", "background"] {
            let buffer = [
                ("geometry.blocks_per_plane", "32"),
                ("buffer.capacity", "64 KiB"),
                ("buffer.evict", evict),
            ];
            let mut ssd = device("ecr", &buffer);
            let waits = write_at_random(&mut ssd, 2_000, 8, seed);
            let report = ssd.flash_report();
            assert!(waits.len() > 100, "{evict}: {}", waits.len());
            assert_eq!(report.slot_waits, waits.len() as u64);
            let total: u128 = waits.iter().map(|wait| u128::from(wait.0)).sum();
            assert_eq!(report.slot_wait_total, total);
        }
    }
}

#[test]
fn a_write_trimmed_while_it_waits_for_its_slot_is_counted_as_a_wait() {
    for fua in [false, true] {
        let buffer = [
            ("geometry.blocks_per_plane", "32"),
            ("buffer.capacity", "16 KiB"),
            ("buffer.policy", "lru"),
            ("buffer.evict", "blocking"),
            ("buffer.power_loss_protection", "false"),
        ];
        let mut ssd = device("ecr", &buffer);
        ssd.fill_sequential();
        let send = |ssd: &mut Ssd, op: Op, page: u64, fua: bool| {
            let request = Request {
                arrival: ssd.now(),
                offset: page * PAGE,
                bytes: PAGE,
                op,
                fua,
                ..Request::default()
            };
            ssd.submit(ssd.now(), &request, page).unwrap();
        };
        for page in 0..4 {
            send(&mut ssd, Op::Write, page, false);
            while ssd.step() {}
        }
        ssd.completions().clear();
        send(&mut ssd, Op::Write, 9, fua);
        ssd.advance(ssd.now() + Time::from_us(10));
        send(&mut ssd, Op::Trim, 9, false);
        while ssd.step() {}
        let done = ssd.completions().drain(..);
        let slots: u64 = done.map(|done| done.breakdown.slot().0).sum();
        let report = ssd.flash_report();
        assert_eq!(report.slot_waits, 1, "fua {fua}");
        assert_eq!(report.slot_wait_total, u128::from(slots), "fua {fua}");
    }
}

#[test]
fn evictions_are_counted_by_the_pages_that_they_write() {
    for seed in flashtwin::seeds(3) {
        for policy in ["lru", "fab", "bplru", "cbm"] {
            let buffer = [
                ("geometry.blocks_per_plane", "32"),
                ("buffer.capacity", "1 MiB"),
                ("buffer.policy", policy),
            ];
            let mut ssd = device("ecr", &buffer);
            write_at_random(&mut ssd, 3_000, 4, seed);
            let report = ssd.flash_report();
            let evictions: u64 = report.destages.iter().sum();
            assert!(evictions > 100, "{policy}: {evictions}");
            assert!(evictions <= report.evictions);
            let least = [1, 2, 3, 5, 9, 17, 33, 65].iter();
            let most = [1, 2, 4, 8, 16, 32, 64, u64::MAX >> 32].iter();
            let sum = |bounds: std::slice::Iter<u64>| -> u64 {
                report.destages.iter().zip(bounds).map(|(n, b)| n * b).sum()
            };
            let written = report.evicted_dirty;
            assert!(sum(least) <= written && written <= sum(most), "{policy}");
        }
    }
}

#[test]
fn blocks_have_the_erases_that_there_were() {
    for seed in flashtwin::seeds(3) {
        for kind in ["page", "dftl", "bast", "fast", "faster"] {
            let small = [
                ("geometry.chips", "2"),
                ("geometry.blocks_per_plane", "32"),
                ("buffer", "none"),
                ("ftl.kind", kind),
            ];
            let mut ssd = device("ecr", &small);
            let pages = ssd.exported_bytes() / PAGE;
            write_at_random(&mut ssd, 2 * pages, 4, seed);
            let report = ssd.flash_report();
            let counted = report.erase_counts.iter();
            let erases: u64 = counted
                .clone()
                .map(|&(n, blocks)| u64::from(n) * blocks)
                .sum();
            assert!(erases > 50, "{kind}: {erases}");
            assert_eq!(erases, report.flash.count(Cause::Erase), "{kind}");
            let blocks = counted.map(|&(_, blocks)| blocks).sum::<u64>();
            let geometry = &ssd.spec().geometry;
            let chips = geometry.chips * geometry.planes_per_chip;
            assert_eq!(
                blocks,
                u64::from(chips * geometry.blocks_per_plane),
                "{kind}"
            );
        }
    }
}
