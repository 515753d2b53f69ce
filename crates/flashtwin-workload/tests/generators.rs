//! Generated loads depend only on their seed, stay within their range, and have the requested statistics.

use flashtwin::{Op, Request};
use flashtwin_workload::{ErrorKind, GeneratorSpec, LoadSpec, TraceInfo};
use std::collections::HashMap;

const GIB: u64 = 1 << 30;

fn draw(text: &str, range: u64, seed: u64) -> Vec<Request> {
    let mut workload = GeneratorSpec::parse(text)
        .unwrap()
        .build(range, seed)
        .unwrap();
    let mut requests = Vec::new();
    while workload.next_batch(&mut requests).unwrap() > 0 {}
    requests
}

fn info(text: &str, seed: u64) -> TraceInfo {
    let mut workload = GeneratorSpec::parse(text)
        .unwrap()
        .build(GIB, seed)
        .unwrap();
    TraceInfo::measure(&mut *workload).unwrap()
}

/// Returns an FNV-1a hash of all fields.
fn hash(requests: &[Request]) -> u64 {
    let words = requests.iter().flat_map(|r| {
        [
            r.arrival.0,
            r.offset,
            r.bytes,
            r.op as u64 | u64::from(r.fua) << 8,
        ]
        .into_iter()
    });
    words
        .flat_map(u64::to_le_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

#[test]
fn the_same_seed_gives_the_same_requests_on_every_machine() {
    let golden = [
        ("uniform:write=0.7,rate=20k/s,requests=10000", 15_019_754_560_585_242_745),
        ("zipf:theta=0.99,write=0.7,size=4k,rate=20k/s,requests=10000", 12_418_574_093_753_245_231),
        ("normal:sigma=1M,size=exp(32k),arrival=hyper,rate=1k/s,cv=5,requests=10000", 3_327_131_384_625_321_799),
        ("hotcold:size=geometric(12k),write=0.5,trim=.1,flush=.1,fua=.2,on_rate=5k/s,requests=10000", 6_154_408_852_948_328_085),
        ("uniform:seq=0.3,local=0.3,size=list(4k*70+64k*30),arrival=constant,rate=3,requests=10000", 10_657_335_328_878_660_574),
        ("stack:distances=40+12+2+9+20+15,size=geometric(8k),write=0.5,seq=0.1,requests=10000", 13_092_955_121_741_624_895),
    ];
    let found: Vec<(&str, u64)> = golden
        .iter()
        .map(|(t, _)| (*t, hash(&draw(t, GIB, 42))))
        .collect();
    assert_eq!(found, golden);
    for (text, _) in golden {
        assert_ne!(
            hash(&draw(text, GIB, 43)),
            hash(&draw(text, GIB, 42)),
            "the seed matters: {text}"
        );
    }
}

#[test]
fn a_change_of_rate_leaves_addresses_as_they_were() {
    for seed in flashtwin::seeds(2) {
        let places = |text: &str| -> Vec<(u64, Op)> {
            draw(text, GIB, seed)
                .iter()
                .map(|r| (r.offset, r.op))
                .collect()
        };
        let slow = places("zipf:write=0.5,rate=10/s,requests=5000");
        let fast = places("zipf:write=0.5,arrival=hyper,rate=10k/s,requests=5000");
        assert_eq!(slow, fast);
    }
}

#[test]
fn every_request_fits_the_range_and_is_aligned() {
    for seed in flashtwin::seeds(2) {
        let loads = [
            "uniform:size=64k",
            "normal:sigma=400k,size=uniform(4k..512k)",
            "zipf:size=exp(200k)",
            "hotcold:size=geometric(100k)",
            "sequential:size=list(4k+256k)",
            "uniform:local=0.5,seq=0.4,size=128k",
            "zipf:align=512,size=512",
            "sequential:align=512,size=1000",
            "uniform:size=1000",
        ];
        for load in loads {
            for range in [1 << 20, (1 << 20) + 4095, 3_000_001] {
                let alignment = GeneratorSpec::parse(load).unwrap().alignment;
                for r in draw(
                    &format!(
                        "{load},{}requests=5000",
                        if load.contains(':') { "" } else { ":" }
                    ),
                    range,
                    seed,
                ) {
                    assert!(
                        r.bytes > 0 && r.offset + r.bytes <= range,
                        "{load}: {r:?} in {range}"
                    );
                    assert_eq!(r.offset % alignment, 0, "{load}: {r:?}");
                }
            }
        }
    }
}

#[test]
fn shares_of_operations_are_as_asked() {
    for seed in flashtwin::seeds(2) {
        let i = info(
            "uniform:write=0.5,trim=0.1,flush=0.05,fua=0.2,requests=200k",
            seed,
        );
        let share = |n: u64| n as f64 / i.requests as f64;
        assert!((share(i.writes.requests) - 0.5).abs() < 0.005);
        assert!((share(i.trims.requests) - 0.1).abs() < 0.005);
        assert!((share(i.flushes) - 0.05).abs() < 0.005);
        assert!((share(i.reads.requests) - 0.35).abs() < 0.005);
        assert!((share(i.fua_writes) - 0.1).abs() < 0.005);
        let all = info("uniform:write=1,requests=10k", seed);
        assert_eq!(all.writes.requests, 10_000);
        assert_eq!(info("uniform:requests=10k", seed).reads.requests, 10_000);
    }
}

#[test]
fn arrivals_have_the_mean_and_variation_asked_for() {
    for seed in flashtwin::seeds(2) {
        let near = |got: f64, wanted: f64, part: f64| (got - wanted).abs() < part * wanted;
        let i = info("uniform:arrival=constant,rate=3/ms,requests=30001", seed);
        assert!(
            i.gap_cv < 1e-6 && near(i.span_s, 10.0, 1e-9),
            "{} {}",
            i.gap_cv,
            i.span_s
        );
        let i = info("uniform:interval=4ms,requests=200k", seed);
        assert!(
            near(i.gap_mean_us, 4000.0, 0.01) && near(i.gap_cv, 1.0, 0.01),
            "{i}"
        );
        let i = info("uniform:arrival=hyper,rate=1k/s,cv=5,requests=1e6", seed);
        assert!(
            near(i.gap_mean_us, 1000.0, 0.03) && near(i.gap_cv, 5.0, 0.03),
            "{i}"
        );
        let closed = draw("uniform:requests=1000", GIB, seed);
        assert!(closed.iter().all(|r| r.arrival.0 == 0));
    }
}

#[test]
fn bursts_have_their_length_rate_and_duty() {
    for seed in flashtwin::seeds(2) {
        let requests = draw(
            "uniform:on_rate=100k/s,on_length=50,duty=0.02,requests=500k",
            GIB,
            seed,
        );
        let gaps: Vec<u64> = requests
            .windows(2)
            .map(|w| w[1].arrival.0 - w[0].arrival.0)
            .collect();
        // The silences between bursts have a mean of 50 x 10 us x 49 = 24.5 ms. A gap above 1 ms counts as a silence.
        // The computation corrects for the 4 % of the silences that are shorter.
        let pauses = gaps.iter().filter(|&&g| g > 1_000_000_000).count() as f64;
        let length = requests.len() as f64 / (pauses / (-1.0f64 / 24.5).exp());
        assert!((length - 50.0).abs() < 2.0, "mean burst of {length}");
        let inside: Vec<u64> = gaps
            .iter()
            .copied()
            .filter(|&g| g <= 1_000_000_000)
            .collect();
        let mean_us = inside.iter().sum::<u64>() as f64 / inside.len() as f64 / 1e6;
        assert!(
            (mean_us - 10.0).abs() < 1.0,
            "mean gap in a burst of {mean_us} us"
        );
        let rate = requests.len() as f64 / (requests[requests.len() - 1].arrival.0 as f64 / 1e12);
        assert!((rate - 2000.0).abs() < 60.0, "long-run rate of {rate}");
    }
}

#[test]
fn steps_of_a_schedule_have_their_rates_and_durations() {
    for seed in flashtwin::seeds(2) {
        let text = "uniform:schedule=20k/s*50ms+0*150ms+80k/s*100ms,requests=450k";
        // `tenths` counts the requests in each tenth of a pass of the schedule (300 ms), summed over 49 whole passes.
        // The load ends in pass 50 or 51.
        let (pass, mut tenths) = (300_000_000_000, [0.0; 10]);
        for request in draw(text, GIB, seed) {
            if request.arrival.0 < 49 * pass {
                tenths[(request.arrival.0 % pass * 10 / pass) as usize] += 1.0;
            }
        }
        // A pass has 9000 requests. The first step of the schedule ends after 50 ms, within the second tenth (30 to 60
        // ms). The third step begins after 200 ms, within the seventh tenth.
        let expected = [600, 400, 0, 0, 0, 0, 800, 2400, 2400, 2400].map(|n| f64::from(n) * 49.0);
        for (got, wanted) in tenths.iter().zip(expected) {
            assert!((got - wanted).abs() <= 0.03 * wanted, "{tenths:?}");
        }
    }
}

#[test]
fn sizes_have_their_distribution() {
    for seed in flashtwin::seeds(2) {
        let mean = |text: &str| info(text, seed).size_mean_bytes;
        // Sizes are rounded up to a multiple of a = 4 KiB. This turns an exponential distribution of mean m into a
        // geometric one of mean a / (1 - e^(-a/m)).
        let expected = 4096.0 / (1.0 - (-4096.0f64 / 32768.0).exp());
        assert!((mean("uniform:size=exp(32k),requests=300k") / expected - 1.0).abs() < 0.01);
        assert!((mean("uniform:size=geometric(24k),requests=300k") / 24576.0 - 1.0).abs() < 0.01);
        assert!((mean("uniform:size=uniform(4k..64k),requests=300k") / 34816.0 - 1.0).abs() < 0.01);
        let list = info("uniform:size=list(4k*70+8k*20+64k*10),requests=200k", seed);
        let shares: HashMap<u64, f64> = list
            .size_top
            .iter()
            .map(|&(b, n)| (b, n as f64 / 200_000.0))
            .collect();
        for (bytes, share) in [(4096, 0.7), (8192, 0.2), (65536, 0.1)] {
            assert!((shares[&bytes] - share).abs() < 0.005, "{shares:?}");
        }
    }
}

#[test]
fn addresses_follow_their_pattern() {
    for seed in flashtwin::seeds(2) {
        // Mean and standard deviation of the normal pattern. The range is so wide that it cuts off no part of the
        // distribution.
        let requests = draw("normal:sigma=40000k,requests=300k", 16 * GIB, seed);
        let n = requests.len() as f64;
        let mean = requests.iter().map(|r| r.offset as f64).sum::<f64>() / n;
        let deviation = (requests
            .iter()
            .map(|r| (r.offset as f64 - mean).powi(2))
            .sum::<f64>()
            / n)
            .sqrt();
        assert!((mean - 8.0 * GIB as f64).abs() < 1e6, "{mean}");
        assert!((deviation / 40_960_000.0 - 1.0).abs() < 0.01, "{deviation}");

        let hot = draw(
            "hotcold:hot_access=0.9,hot_space=0.1,requests=100k",
            GIB,
            seed,
        );
        let share = hot.iter().filter(|r| r.offset < GIB / 10).count() as f64 / 1e5;
        assert!((share - 0.9).abs() < 0.005, "{share}");

        let uniform = draw("uniform:requests=100k", 16 * 4096, seed);
        let mut counts = [0u32; 16];
        uniform
            .iter()
            .for_each(|r| counts[(r.offset / 4096) as usize] += 1);
        assert!(
            counts.iter().all(|c| (5_900..6_600).contains(c)),
            "{counts:?}"
        );

        let sequential = draw("sequential:size=8k,requests=10", 5 * 8192, seed);
        let units: Vec<u64> = sequential.iter().map(|r| r.offset / 8192).collect();
        assert_eq!(units, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    }
}

#[test]
fn zipf_ranks_are_in_order_or_scattered() {
    for seed in flashtwin::seeds(2) {
        let top = |text: &str| {
            let mut counts: HashMap<u64, u32> = HashMap::new();
            draw(text, GIB, seed)
                .iter()
                .for_each(|r| *counts.entry(r.offset / 4096).or_default() += 1);
            let mut pages: Vec<(u32, u64)> =
                counts.into_iter().map(|(page, n)| (n, page)).collect();
            pages.sort_unstable_by(|a, b| b.cmp(a));
            pages
        };
        let plain = top("zipf:theta=1.1,scramble=false,requests=200k");
        assert_eq!(plain[0].1, 0);
        assert_eq!(plain[1].1, 1);
        let scattered = top("zipf:theta=1.1,requests=200k");
        assert!(
            scattered[0].0.abs_diff(plain[0].0) < plain[0].0 / 10,
            "the same skew"
        );
        assert!(
            scattered.iter().take(10).any(|p| p.1 > 1000),
            "{:?}",
            &scattered[..10]
        );
    }
}

#[test]
fn disksim_requests_are_sequential_and_local_as_asked() {
    for seed in flashtwin::seeds(2) {
        let requests = draw(
            "uniform:seq=0.4,local=0.3,local_range=64k,write=0.5,requests=100k",
            64 * GIB,
            seed,
        );
        let (mut sequential, mut local) = (0u32, 0u32);
        for pair in requests.windows(2) {
            if pair[1].offset == pair[0].offset + pair[0].bytes {
                sequential += 1;
                // A request that starts where the previous request ended has the same operation as the previous
                // request. The exceptions are a few local requests that start there by chance.
            }
            local += u32::from(pair[1].offset.abs_diff(pair[0].offset) <= 65536);
        }
        let n = requests.len() as f64;
        // A local request starts at one of 33 places. One of them is the place where the previous request ended.
        assert!(
            (f64::from(sequential) / n - (0.4 + 0.3 / 33.0)).abs() < 0.01,
            "{sequential}"
        );
        assert!((f64::from(local) / n - 0.7).abs() < 0.01, "{local}");
        let kept = requests
            .windows(2)
            .filter(|p| p[1].offset == p[0].offset + p[0].bytes);
        let changed = kept.filter(|p| p[1].op != p[0].op).count() as f64;
        assert!(changed / n < 0.01, "sequential requests keep their kind");
    }
}

/// In a cluster, pages with consecutive ranks of popularity are adjacent. Every page of the range can be drawn.
#[test]
fn clusters_of_ranks_lie_side_by_side() {
    for seed in flashtwin::seeds(3) {
        let range = 1000 * 4096;
        let requests = draw("zipf:theta=1.2,cluster=3,requests=200k", range, seed);
        let mut counts: HashMap<u64, u64> = HashMap::new();
        for request in &requests {
            *counts.entry(request.offset / 4096).or_default() += 1;
        }
        let mut ranked: Vec<(u64, u64)> = counts.iter().map(|(p, n)| (*n, *p)).collect();
        ranked.sort_unstable_by(|a, b| b.cmp(a));
        let first: Vec<u64> = ranked[..3].iter().map(|(_, place)| *place).collect();
        assert_eq!(first, [first[0], first[0] + 1, first[0] + 2], "seed {seed}");
        assert!(counts.len() > 990, "{} places of 1000", counts.len());
        assert!(counts.keys().all(|place| *place < 1000));
    }
}

#[test]
fn empirical_locality_reads_counts_from_a_file() {
    let path = std::env::temp_dir().join(format!("flashtwin_locality_{}.csv", std::process::id()));
    std::fs::write(
        &path,
        "LBA,Frequency\n4096,700\n8704,200\n40960,100\n99999999999,5\n",
    )
    .unwrap();
    let text = format!("locality:file={},write=1,requests=100k", path.display());
    let requests = draw(&text, 1 << 20, 1);
    let share = |offset| requests.iter().filter(|r| r.offset == offset).count() as f64 / 1e5;
    assert!((share(4096) - 0.7).abs() < 0.006 && (share(8192) - 0.2).abs() < 0.006);
    assert!((share(40960) - 0.1).abs() < 0.006);
    let described = GeneratorSpec::parse(&text)
        .unwrap()
        .build(1 << 20, 1)
        .unwrap()
        .describe();
    assert!(
        described.contains("3 starts, 1000 accesses counted, 1 beyond the range"),
        "{described}"
    );
    std::fs::write(&path, "LBA,Frequency\n4096,many\n").unwrap();
    let error = GeneratorSpec::parse(&text)
        .unwrap()
        .build(1 << 20, 1)
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .contains("line 2: Frequency: expected a count"),
        "{error}"
    );
    std::fs::remove_file(&path).unwrap();
    let error = GeneratorSpec::parse(&text)
        .unwrap()
        .build(1 << 20, 1)
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn a_load_beyond_the_clock_or_the_device_is_refused() {
    let mut slow = GeneratorSpec::parse("uniform:rate=0.000001,requests=1k")
        .unwrap()
        .build(GIB, 1)
        .unwrap();
    let mut out = Vec::new();
    let error = loop {
        match slow.next_batch(&mut out) {
            Ok(n) => assert!(n > 0, "an error was due"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let spec = GeneratorSpec::parse("normal:sigma=4k,mean=1G,size=512M").unwrap();
    let error = spec
        .build(GIB, 1)
        .unwrap()
        .next_batch(&mut out)
        .unwrap_err();
    assert!(
        error.to_string().contains("do not fit the range"),
        "{error}"
    );
}

/// The load for a smaller device has the cumulative popularity of the original: the most popular N pages of the smaller
/// range get the accesses of the most popular `factor` * N pages.
#[test]
fn ranks_that_share_a_place_keep_the_skew() {
    const FACTOR: usize = 16;
    let by_popularity = |text: &str, range: u64| {
        let mut counts: HashMap<u64, u64> = HashMap::new();
        for request in draw(text, range, 3) {
            *counts.entry(request.offset).or_default() += 1;
        }
        let mut counts: Vec<u64> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    };
    let large = by_popularity("zipf:theta=0.99,requests=400k", GIB);
    let small = by_popularity(
        "zipf:theta=0.99,ranks_per_place=16,requests=400k",
        GIB / FACTOR as u64,
    );
    let other = by_popularity("zipf:theta=0.99,requests=400k", GIB / FACTOR as u64);
    for n in [4, 64, 256] {
        let sum = |counts: &[u64], n: usize| counts[..n].iter().sum::<u64>() as f64 / 400e3;
        let (expected, found) = (sum(&large, n * FACTOR), sum(&small, n));
        assert!((found - expected).abs() < 0.01, "{n}: {found}, {expected}");
        assert!((sum(&other, n) - expected).abs() > 0.02, "{n}");
    }
}

#[test]
fn smaller_load_divides_lengths_that_refer_to_the_device() {
    let smaller = |text: &str| LoadSpec::parse(text).and_then(|load| load.smaller(4.0));
    for (text, expected) in [
        ("uniform:size=4096,write=1", "uniform:size=4096,write=1"),
        (
            "zipf:theta=0.9,range=1M",
            "zipf:theta=0.9,ranks_per_place=4,size=4096,range=262144",
        ),
        (
            "normal:sigma=400k,mean=4M",
            "normal:sigma=102400,mean=1048576,size=4096",
        ),
        (
            "uniform:range=10%..50%,bytes=0.5 + sequential:write=1,bytes=0.5",
            "uniform:size=4096,range=10%..50%,bytes=0.5 + sequential:size=4096,write=1,bytes=0.5",
        ),
    ] {
        assert_eq!(smaller(text).unwrap().to_string(), expected);
    }
    // The skew of a large range with many ranks per place is within the numbers that can be counted.
    let most = LoadSpec::parse("zipf:ranks_per_place=1048576").unwrap();
    assert!(most.build(1 << 62, 1).is_ok());
    let beyond = most.smaller(1e15).unwrap();
    assert!(beyond.build(1 << 62, 1).is_err());
    for text in ["zipf:theta=0.9,fio=true", "stack:distances=1+1"] {
        assert_eq!(
            smaller(text).unwrap_err().kind(),
            ErrorKind::Option,
            "{text}"
        );
    }
}
