//! The model compared with closed forms: queueing, write amplification, hit ratios, Little's law.

use crate::common::{assert_near, device, load, one_pool, run_all};
use flashtwin::{Cause, DeviceSpec, Op, Rng, Ssd};
use flashtwin_sim::{Pacing, RunConfig, RunInfo, Summary};

// ---- queueing ----

#[test]
fn waiting_on_one_die_is_that_of_m_d_1() {
    const SERVICE_US: f64 = 100.0;
    for backend in ["msr", "modern"] {
        let mut overrides = vec![
            ("geometry.chips", "1"),
            ("nand.backend", backend),
            ("timing.read_us", "100"),
            ("timing.transfer_ns_per_byte", "0"),
            ("nand.copy_back", "true"),
            ("link.command_overhead_us", "0"),
            ("link.bus_ns_per_sector", "0"),
            ("buffer", "none"),
        ];
        match backend {
            "msr" => overrides.push(("nand.parallel_units", "1")),
            _ => overrides.push(("geometry.channels", "1")),
        }
        let spec = device(&overrides);
        for (utilisation, requests) in [(0.3, 500_000), (0.6, 800_000), (0.8, 2_000_000)] {
            let mut ssd = Ssd::new(&spec);
            ssd.fill_sequential();
            let rate = utilisation / SERVICE_US * 1e6;
            let mut workload = load(
                &format!("uniform:rate={rate},requests={requests}"),
                &ssd,
                11,
            );
            let outcome = flashtwin_sim::run(
                &mut ssd,
                &mut *workload,
                &RunConfig::default(),
                &flashtwin_sim::Control::default(),
                None,
            )
            .expect("a sound run");
            let summary = Summary::new(&ssd, &outcome, &RunInfo::default());
            assert_eq!(summary.read.parts_us.array, SERVICE_US);
            let wait = utilisation * SERVICE_US / (2.0 * (1.0 - utilisation));
            let what = format!("{backend}, utilisation {utilisation}");
            assert_near(
                &format!("{what}: wait"),
                summary.read.parts_us.queue_host,
                wait,
                0.01,
            );
            let inside = utilisation * (1.0 + utilisation / (2.0 * (1.0 - utilisation)));
            assert_near(
                &format!("{what}: inside"),
                summary.inside.requests_mean,
                inside,
                0.01,
            );
            assert!(
                summary.inside.little_error < 1e-9,
                "{what}: {:?}",
                summary.inside
            );
        }
    }
}

// ---- write amplification ----

/// Write amplification of greedy collection under uniform random writes, from an independent simulation with blocks of
/// 64 pages. Each pair has the load rho (exported pages per page in use) and the write amplification.
const GREEDY: [(f64, f64); 4] = [(0.9, 4.825), (0.85, 3.356), (0.8, 2.601), (0.6667, 1.681)];

/// Overwrites the device `times` times with uniformly random writes. Returns the write amplification of GC.
fn amplification(ssd: &mut Ssd, times: u64, rng: &mut Rng) -> f64 {
    ssd.reset_metrics(None);
    assert!(ssd.write_random(rng, times * u64::from(ssd.spec().exported_pages())));
    ssd.flash_report().gc_write_amplification().unwrap()
}

#[test]
fn write_amplification_of_greedy_is_that_of_the_table() {
    for seed in flashtwin::seeds(1) {
        for backend in ["msr", "modern"] {
            for (rho, expected) in GREEDY {
                let mut ssd = Ssd::new(&one_pool(backend, 4096, rho, &[]));
                let mut rng = Rng::new(seed);
                ssd.fill_sequential();
                amplification(&mut ssd, 6, &mut rng);
                let got = amplification(&mut ssd, 6, &mut rng);
                assert_near(&format!("{backend}, rho {rho}"), got, expected, 0.01);
                ssd.check().expect("a consistent map");
            }
        }
    }
}

#[test]
fn steady_preconditioning_starts_with_the_write_amplification_of_the_table() {
    for seed in flashtwin::seeds(1) {
        for backend in ["msr", "modern"] {
            for (rho, expected) in GREEDY {
                let mut ssd = Ssd::new(&one_pool(backend, 4096, rho, &[]));
                ssd.fill_steady(9);
                let got = amplification(&mut ssd, 2, &mut Rng::new(seed));
                assert_near(&format!("{backend}, rho {rho}"), got, expected, 0.01);
            }
        }
    }
}

#[test]
fn write_amplification_in_timed_runs_is_that_of_the_table() {
    for backend in ["msr", "modern"] {
        let (rho, expected) = GREEDY[2];
        let mut ssd = Ssd::new(&one_pool(backend, 1024, rho, &[]));
        ssd.fill_steady(2);
        let requests = 6 * u64::from(ssd.spec().exported_pages());
        let config = RunConfig {
            pacing: Pacing::Closed { depth: 4 },
            ..RunConfig::default()
        };
        let mut workload = load(&format!("uniform:write=1,requests={requests}"), &ssd, 4);
        let outcome = run_all(&mut ssd, &mut *workload, &config).0;
        assert_near(
            backend,
            outcome.flash.gc_write_amplification().unwrap(),
            expected,
            0.01,
        );
    }
}

/// If all pages are written equally often, a device with two write streams (each plane has hot and cold blocks) has
/// about the write amplification of a device with one stream.
#[test]
fn two_write_streams_amplify_uniform_writes_no_more_than_one() {
    let amplification = |of_policy: &[(&str, &str)]| {
        let of_device = [
            ("geometry.chips", "2"),
            ("geometry.blocks_per_plane", "256"),
            ("geometry.planes_per_chip", "8"),
            ("geometry.reserve_percent", "15"),
            ("nand.parallel_units", "1"),
            ("buffer.capacity", "1MiB"),
        ];
        let mut ssd = Ssd::new(&device(&[&of_device, of_policy].concat()));
        ssd.fill_steady(5);
        let requests = 4 * u64::from(ssd.spec().exported_pages());
        let config = RunConfig {
            pacing: Pacing::Closed { depth: 8 },
            ..RunConfig::default()
        };
        let mut workload = load(&format!("uniform:write=1,requests={requests}"), &ssd, 4);
        let outcome = run_all(&mut ssd, &mut *workload, &config).0;
        outcome.flash.gc_write_amplification().unwrap()
    };
    let one = amplification(&[("buffer.policy", "lru")]);
    let two = amplification(&[
        ("buffer.policy", "cda-gc-dispatcher"),
        ("buffer.filter_reset_items", "0"),
    ]);
    assert_near("two streams", two, one, 0.02);
}

/// Tests that the steady initial state does not favour a policy with a second open block. The policy under test never
/// classifies a page as hot, because its filter is reset at each write. After the steady state, it must erase as often
/// as LRU.
#[test]
fn a_policy_without_hot_pages_gains_nothing_from_the_initial_state() {
    for backend in ["msr", "modern"] {
        let erases = |of_policy: &[(&str, &str)]| {
            let of_device = [
                ("geometry.chips", "4"),
                ("geometry.channels", "4"),
                ("geometry.blocks_per_plane", "256"),
                ("geometry.planes_per_chip", "4"),
                ("geometry.reserve_percent", "15"),
                ("nand.backend", backend),
                ("buffer.capacity", "1MiB"),
            ];
            let mut ssd = Ssd::new(&device(&[&of_device, of_policy].concat()));
            let mut erases = 0;
            for seed in 1..4 {
                ssd.fill_steady(seed);
                assert!(ssd.open_policy_blocks(seed));
                ssd.reset_metrics(None);
                let requests = u64::from(ssd.spec().exported_pages()) / 8;
                let config = RunConfig {
                    pacing: Pacing::Closed { depth: 8 },
                    ..RunConfig::default()
                };
                let mut workload =
                    load(&format!("uniform:write=1,requests={requests}"), &ssd, seed);
                let outcome = run_all(&mut ssd, &mut *workload, &config).0;
                erases += outcome.flash.flash.count(Cause::Erase);
            }
            erases as f64
        };
        let lru = erases(&[("buffer.policy", "lru")]);
        let separate = erases(&[
            ("buffer.policy", "cda-gc-dispatcher"),
            ("buffer.filter", "exact"),
            ("buffer.filter_reset_items", "1"),
        ]);
        assert_near(&format!("{backend}: erases"), separate, lru, 0.03);
    }
}

#[test]
fn the_steady_state_is_the_limit_of_random_writing() {
    for seed in flashtwin::seeds(1) {
        let spec = device(&[
            ("geometry.chips", "2"),
            ("geometry.blocks_per_plane", "256"),
            ("geometry.reserve_percent", "15"),
            ("nand.parallel_units", "1"),
            ("buffer", "none"),
        ]);
        let mut rng = Rng::new(seed);
        let mut written = Ssd::new(&spec);
        written.fill_sequential();
        amplification(&mut written, 10, &mut rng);
        let long_run = amplification(&mut written, 6, &mut rng);

        let mut placed = Ssd::new(&spec);
        placed.fill_steady(22);
        // The first overwrite shows that write amplification has its steady value from the start. Five more overwrites
        // show that it keeps this value.
        for overwrites in [1, 5] {
            let steady = amplification(&mut placed, overwrites, &mut rng);
            assert_near(&format!("{overwrites} overwrites"), steady, long_run, 0.01);
        }
    }
}

// ---- hit ratios ----

/// Returns Che's approximation of the LRU hit ratio for independent references whose probabilities are proportional to
/// `weights`.
fn che(weights: &[f64], capacity: f64) -> f64 {
    let sum: f64 = weights.iter().sum();
    let filled = |t: f64| {
        weights
            .iter()
            .map(|w| 1.0 - (-w / sum * t).exp())
            .sum::<f64>()
    };
    let (mut low, mut high) = (0.0, 1e12);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if filled(middle) < capacity {
            low = middle;
        } else {
            high = middle;
        }
    }
    weights
        .iter()
        .map(|w| w / sum * (1.0 - (-w / sum * low).exp()))
        .sum()
}

/// Returns the hit ratio of a 32 MiB LRU buffer, measured after a warm-up.
fn hit_ratio(workload: &str) -> f64 {
    let spec = device(&[
        ("buffer.capacity", "32MiB"),
        ("buffer.evict", "background"),
        ("buffer.background_depth", "64"),
    ]);
    let mut ssd = Ssd::new(&spec);
    ssd.fill_sequential();
    let config = RunConfig {
        pacing: Pacing::Closed { depth: 8 },
        warmup_requests: 300_000,
        ..RunConfig::default()
    };
    let mut workload = load(workload, &ssd, 3);
    let outcome = run_all(&mut ssd, &mut *workload, &config).0;
    Summary::new(&ssd, &outcome, &RunInfo::default()).hits.ratio
}

/// Pages of the buffer of [`hit_ratio`].
const CAPACITY: f64 = 8192.0;

fn assert_within_half_a_point(what: &str, got: f64, expected: f64) {
    assert!(
        (got - expected).abs() <= 0.005,
        "{what}: hit ratio {got:.4}, expected {expected:.4}"
    );
}

#[test]
fn hit_ratio_of_uniform_references_is_capacity_over_pages() {
    // 76 800 pages of 4 KiB.
    let got = hit_ratio("uniform:range=300M,write=0.5,requests=1.3e6");
    assert_within_half_a_point("uniform", got, CAPACITY / 76_800.0);
}

#[test]
fn hit_ratio_of_normal_references_is_che_s() {
    // Sigma 10 000 pages.
    let weights: Vec<f64> = (-60_000..60_000)
        .map(|page: i32| (-0.5 * (f64::from(page) / 10_000.0).powi(2)).exp())
        .collect();
    let expected = che(&weights, CAPACITY);
    assert_within_half_a_point("the formula", expected, 0.226);
    let got = hit_ratio("normal:sigma=40000k,write=0.5,requests=1.3e6");
    assert_within_half_a_point("normal", got, expected);
}

#[test]
fn hit_ratio_of_zipf_references_is_che_s() {
    for theta in [0.7_f64, 0.99, 1.2] {
        let weights: Vec<f64> = (1..=76_800).map(|k| f64::from(k).powf(-theta)).collect();
        let got = hit_ratio(&format!(
            "zipf:theta={theta},range=300M,write=0.5,requests=1.3e6"
        ));
        assert_within_half_a_point(&format!("zipf {theta}"), got, che(&weights, CAPACITY));
    }
}

// ---- Little's law ----

#[test]
fn little_s_law_holds_on_every_run() {
    for backend in ["msr", "modern"] {
        for policy in ["lru", "gcar-cflru"] {
            for text in [
                "uniform:write=0.7,trim=0.02,flush=0.02,fua=0.1,rate=3000/s,requests=20000",
                "zipf:write=0.5,size=exp(16k),arrival=onoff,on_rate=20000/s,requests=20000",
            ] {
                let mut overrides = vec![("nand.backend", backend), ("buffer.policy", policy)];
                if backend == "modern" {
                    overrides.extend([("geometry.channels", "2"), ("nand.copy_back", "false")]);
                }
                let mut ssd = Ssd::new(&device(&overrides));
                ssd.fill_sequential();
                let mut workload = load(text, &ssd, 8);
                let outcome = run_all(&mut ssd, &mut *workload, &RunConfig::default()).0;
                let summary = Summary::new(&ssd, &outcome, &RunInfo::default());
                assert!(summary.inside.requests_mean > 0.0);
                assert!(summary.inside.little_error < 1e-9, "{:?}", summary.inside);
                let parts: f64 = summary.all.parts_us.parts().iter().sum();
                assert_near("parts of the mean", parts, summary.all.mean_us, 1e-9);
                assert_eq!(outcome.metrics.op(Op::Read).refused, 0);
            }
        }
    }
}

/// Requests of three pages seldom hit and arrive one at a time, so each request evicts a block of three pages. If the
/// buffer reserves room for whole blocks, a request waits for all write-backs of the block that it replaces. If the
/// buffer reserves room page by page, a request waits less, because an earlier eviction may have left free slots.
#[test]
fn requests_wait_for_all_write_backs_of_the_evicted_block() {
    for policy in ["bplru", "fab"] {
        let [page, whole] = ["pages", "whole"].map(|room| {
            let set = [
                ("buffer.policy", policy),
                ("buffer.blocks", "host"),
                ("buffer.room", room),
            ];
            let cbm = flashtwin::spec::builtin("cbm").expect("it is built in");
            let mut ssd = Ssd::new(&DeviceSpec::with_overrides(cbm, "cbm", &set).unwrap());
            ssd.fill_steady(1);
            let requests = "uniform:range=400M,write=1,size=12k,rate=0.1,requests=8000";
            let mut workload = load(requests, &ssd, 3);
            let done = run_all(&mut ssd, &mut *workload, &RunConfig::default()).1;
            let total: f64 = done.iter().map(|c| (c.done - c.arrival).as_us()).sum();
            let report = ssd.flash_report();
            let written = report.flash.count(Cause::Destage) as f64;
            [total, report.busy_time[0].as_us(), written]
        });
        assert_near(&format!("{policy}: pages written"), whole[2], page[2], 0.03);
        let shares = [page, whole].map(|[response, busy, _]| response / busy);
        assert!((0.5..0.9).contains(&shares[0]), "{policy}: {shares:?}");
        assert!((0.9..1.05).contains(&shares[1]), "{policy}: {shares:?}");
    }
}
