//! Loads of several streams: shares, ranges, placement ids and orders. The named loads of papers are tested, too.

use flashtwin::{Op, Request};
use flashtwin_workload::{GeneratorSpec, LoadSpec, Workload, NAMED_LOADS};
use std::collections::{BTreeMap, BTreeSet};

const GIB: u64 = 1 << 30;

fn all(mut workload: Box<dyn Workload>) -> Vec<Request> {
    let mut requests = Vec::new();
    while workload.next_batch(&mut requests).unwrap() > 0 {}
    requests
}

fn draw(text: &str, range: u64, seed: u64) -> Vec<Request> {
    all(LoadSpec::parse(text).unwrap().build(range, seed).unwrap())
}

fn error(text: &str) -> String {
    let built = LoadSpec::parse(text).and_then(|load| load.build(GIB, 1));
    built.err().unwrap().to_string()
}

#[test]
fn ranges_have_two_ends() {
    for seed in flashtwin::seeds(2) {
        let device = 10_000 * 4096 + 512;
        for (range, first, end) in [
            ("10%..30%", 1000, 3000),
            ("4M..8M", 1024, 2048),
            ("1M..50%", 256, 5000),
            ("0%..100%", 0, 10_000),
            // A bound in percent need not be a multiple of a page. Both bounds of a range are rounded down.
            ("33.333%..66.667%", 3333, 6666),
        ] {
            for pattern in [
                "uniform:",
                "sequential:",
                "zipf:",
                "uniform:permute=true,",
                "normal:sigma=1M,",
            ] {
                let requests = draw(
                    &format!("{pattern}range={range},write=1,requests=20000"),
                    device,
                    seed,
                );
                let pages: BTreeSet<u64> = requests.iter().map(|r| r.offset / 4096).collect();
                assert!(
                    pages.iter().all(|page| (first..end).contains(page)),
                    "{pattern}{range}"
                );
                if pattern == "sequential:" || pattern == "uniform:permute=true," {
                    assert_eq!(
                        pages.len() as u64,
                        end - first,
                        "{pattern}{range}: every page"
                    );
                }
            }
        }
    }
    let text = "uniform:range=10%..1G,size=4096";
    assert_eq!(
        LoadSpec::parse(text).unwrap().to_string(),
        "uniform:size=4096,range=10%..1073741824"
    );
    assert!(error("uniform:range=50%..20%")
        .contains("the end (byte 214748364) must be after the start (byte 536870912)"));
    assert!(error("uniform:range=1M..2T").contains("is more than the 1073741824 bytes there are"));
    assert!(
        error("uniform:range=..2G").contains("range=: bytes are expected")
            || error("uniform:range=..2G").contains("bytes are expected")
    );
}

#[test]
fn a_permutation_covers_the_range_once_a_pass() {
    for seed in flashtwin::seeds(2) {
        for (size, range, places) in [
            ("4k", GIB / 64, 4096),
            ("128k", 100 * (128 << 10) + 4096, 100),
            ("5000", 81_920, 10),
        ] {
            let text = format!(
                "uniform:permute=true,size={size},write=1,requests={}",
                3 * places
            );
            let requests = draw(&text, range, seed);
            let passes: Vec<Vec<u64>> = requests
                .chunks(places)
                .map(|pass| pass.iter().map(|r| r.offset).collect())
                .collect();
            let sorted = |pass: &[u64]| pass.iter().copied().collect::<BTreeSet<u64>>();
            assert_eq!(sorted(&passes[0]).len(), places, "{text}: each place once");
            assert!(
                passes.iter().all(|pass| sorted(pass) == sorted(&passes[0])),
                "{text}"
            );
            assert_ne!(passes[0], passes[1], "a pass has an order of its own");
            assert!(
                requests.iter().all(|r| r.offset + r.bytes <= range),
                "{text}"
            );
        }
    }
    assert!(error("uniform:permute=true,size=exp(8k)").contains("all requests must have one size"));
    assert!(error("uniform:permute=true,seq=0.5").contains("leave seq and local out"));
    assert!(error("uniform:permute=true,zoned=50/50:50/50").contains("leave one out"));
}

#[test]
fn zoned_accesses_have_their_shares() {
    for seed in flashtwin::seeds(3) {
        let n = 100_000;
        let requests = draw(
            &format!("uniform:zoned=80/20:10/20:0/10:10/50,requests={n}"),
            GIB,
            seed,
        );
        let share = |from: f64, to: f64| {
            let within = |r: &&Request| (from..to).contains(&(r.offset as f64 / GIB as f64));
            requests.iter().filter(within).count() as f64 / f64::from(n)
        };
        for ((from, to), expected) in [
            ((0.0, 0.2), 0.8),
            ((0.2, 0.4), 0.1),
            ((0.4, 0.5), 0.0),
            ((0.5, 1.0), 0.1),
        ] {
            assert!((share(from, to) - expected).abs() < 0.006, "{from}..{to}");
        }
        // Uniform within: its halves are equally frequent.
        assert!((share(0.0, 0.1) - 0.4).abs() < 0.01);
    }
    assert!(error("uniform:zoned=80/20:10/20").contains("the shares of accesses sum to 90 %"));
    assert!(error("uniform:zoned=80:20").contains("\"80\" is no share of the accesses"));
    assert!(error("uniform:zoned=50/0.00001:50/99.99999").contains("has no place for a request"));
}

#[test]
fn streams_have_their_shares_ranges_and_ids() {
    let text = "sequential:size=128k,write=1,range=0%..90%,placement=0,bytes=0.57,requests=200k + \
                uniform:write=0.9,trim=0.1,range=0%..90%,placement=0x10,bytes=0.22 + \
                uniform:size=uniform(4k..12k),write=1,range=90%..100%,bytes=0.21";
    for seed in flashtwin::seeds(2) {
        let requests = draw(text, GIB, seed);
        assert_eq!(requests.len(), 200_000);
        let boundary = GIB * 9 / 10 / 4096 * 4096;
        let mut bytes: BTreeMap<Option<u16>, u64> = BTreeMap::new();
        for request in &requests {
            let id = request.placement.get();
            match (id, request.op) {
                (Some(0), _) => assert_eq!(request.bytes, 128 << 10),
                // Trims of the second stream have no placement id.
                (Some(16), Op::Write) | (None, Op::Trim) => assert_eq!(request.bytes, 4096),
                (None, Op::Write) => assert!(request.offset >= boundary),
                other => panic!("{other:?}"),
            }
            assert_eq!(
                request.offset >= boundary,
                id.is_none() && request.op == Op::Write
            );
            assert!(request.offset + request.bytes <= GIB);
            *bytes
                .entry(if request.op == Op::Trim { Some(16) } else { id })
                .or_default() += request.bytes;
        }
        let total: u64 = bytes.values().sum();
        for (id, share) in [(Some(0), 0.57), (Some(16), 0.22), (None, 0.21)] {
            let found = bytes[&id] as f64 / total as f64;
            assert!((found - share).abs() < 0.02, "{id:?}: {found}");
        }
        let sequential: Vec<u64> = requests
            .iter()
            .filter(|r| r.placement.get() == Some(0))
            .map(|r| r.offset)
            .collect();
        assert!(
            sequential
                .windows(2)
                .all(|two| two[1] == two[0] + (128 << 10) || two[1] == 0),
            "in order"
        );
        assert_eq!(
            draw(text, GIB, seed),
            requests,
            "the same for the same seed"
        );
    }
    assert_ne!(draw(text, GIB, 1), draw(text, GIB, 2));
}

#[test]
fn equal_streams_have_addresses_of_their_own() {
    let text = "uniform:write=1,placement=1,requests=2000 + uniform:write=1,placement=2";
    for seed in flashtwin::seeds(2) {
        let requests = draw(text, GIB, seed);
        let first = |id: u16| -> Vec<u64> {
            let of_stream = requests.iter().filter(|r| r.placement.get() == Some(id));
            of_stream.map(|r| r.offset).take(100).collect()
        };
        assert_eq!(first(1).len(), 100);
        assert_ne!(first(1), first(2));
    }
}

#[test]
fn a_stream_is_drawn_alike_beside_any_other() {
    for seed in flashtwin::seeds(2) {
        let first = |other: &str| -> Vec<u64> {
            let text = format!("uniform:write=1,range=50%,placement=1,requests=20000 + {other}");
            let requests = draw(&text, GIB, seed);
            let of_first = requests.iter().filter(|r| r.placement.get() == Some(1));
            of_first.map(|r| r.offset).take(1000).collect()
        };
        assert_eq!(first("sequential:write=1"), first("zipf:size=64k,bytes=4"));
    }
}

#[test]
fn load_texts_read_back_and_errors_name_the_remedy() {
    for text in [
        "uniform:write=1",
        "uniform:permute=true,size=128k + uniform:zoned=80/20:20/80,bytes=0.5",
        "zipf:theta=1.2,fio=true,range=10%..20%,placement=3,bytes=2 + sequential:size=list(4k*1+8k*2)",
        "warp-3stream:dist=zoned,handles=shared,requests=1e6",
        "gcar-synthetic:write=0.5",
    ] {
        let load = LoadSpec::parse(text).unwrap();
        assert_eq!(LoadSpec::parse(&load.to_string()).unwrap(), load, "{text}");
    }
    for (text, expected) in [
        (
            "uniform:bytes=0.5",
            "uniform: bytes is the share of one of several streams",
        ),
        ("uniform:rate=5/s + uniform", "give shares, like bytes=0.5"),
        (
            "uniform:depth=4 + uniform",
            "the queue depth is of the whole run",
        ),
        ("uniform:flush=1 + uniform", "give a flush below 1"),
        (
            "uniform:bytes=0 + uniform",
            "bytes=0: the share of a stream must be above 0",
        ),
        ("uniform:requests=5 + uniform:requests=5", "give it once"),
        ("uniform:pinned=0.5 + uniform", "pinned cuts requests"),
        ("uniform + warp-3stream", "warp-3stream: a load of its own"),
        (
            "uniform:placement=65535",
            "placement=65535: a placement id from 0 to 65534",
        ),
        ("uniform:placement=", "placement=: a placement id"),
        (
            "zipf:fio=true,theta=1",
            "the formula of fio has no theta of 1",
        ),
        (
            "zipf:fio=true,cluster=2",
            "leave scramble, cluster and ranks_per_place out",
        ),
        ("warp-3strem", "did you mean warp-3stream?"),
        (
            "warp-3stream:dst=zoned",
            "key \"dst\" is not known; did you mean dist?",
        ),
        (
            "warp-3stream:dist=zipf",
            "dist=zipf: one of uniform, zipf1.2, zipf2.2, zoned is expected",
        ),
        (
            "warp-3stream:shares=1/2",
            "shares=1/2: the shares of the bytes",
        ),
        (
            "cachelib:soc=30",
            "the share of the bytes is known for 4, 20 and 40; give it, like soc_bytes=0.1",
        ),
        ("cachelib:soc=0", "above 0 and below 100 is possible"),
    ] {
        let error = error(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn fio_zipf_leaves_places_out_and_ours_does_not() {
    let touched = |text: &str| {
        let requests = draw(text, 1000 * 4096, 7);
        requests
            .iter()
            .map(|r| r.offset)
            .collect::<BTreeSet<u64>>()
            .len()
    };
    let theirs = touched("zipf:theta=0.5,fio=true,requests=100000");
    assert!((600..665).contains(&theirs), "{theirs}");
    assert!(touched("zipf:theta=0.5,requests=100000") > 990);
}

/// The load `warp-3stream` has the shares, ranges and placement ids of the published jobs. The requests that fill the
/// device before the load equal those of the published jobs, too.
#[test]
fn warp_3stream_is_the_published_job() {
    let pages = 100_000u64;
    let device = pages * 4096;
    for (handles, ids) in [
        ("own", [Some(0), Some(2), Some(1)]),
        ("shared", [Some(0), Some(0), Some(1)]),
        ("none", [None; 3]),
    ] {
        for dist in ["uniform", "zipf1.2", "zipf2.2", "zoned"] {
            let load = LoadSpec::parse(&format!(
                "warp-3stream:dist={dist},handles={handles},requests=200000"
            ))
            .unwrap();
            let requests = all(load.build(device, 3).unwrap());
            let boundary = pages * 9 / 10 * 4096;
            let mut bytes = [0u64; 3];
            for request in &requests {
                assert_eq!(request.op, Op::Write);
                let stream = match (request.bytes, request.offset >= boundary) {
                    (131_072, false) => 0,
                    (4096, false) => 1,
                    (4096, true) => 2,
                    other => panic!("{other:?}"),
                };
                assert_eq!(request.placement.get(), ids[stream], "{dist} {handles}");
                bytes[stream] += request.bytes;
            }
            let total: u64 = bytes.iter().sum();
            let found = bytes.map(|b| b as f64 / total as f64);
            // The shares of the three streams are within these limits, whatever the distribution of addresses and the
            // assignment of handles.
            for (found, (least, most)) in
                found
                    .iter()
                    .zip([(0.55, 0.635), (0.175, 0.23), (0.19, 0.225)])
            {
                assert!((least..most).contains(found), "{dist} {handles}: {found}");
            }
            let map = load.handles(device).unwrap();
            for (offset, stream) in [(0, 0), (boundary - 1, 0), (boundary, 2), (device - 1, 2)] {
                assert_eq!(map.handle_of(offset).get(), ids[stream]);
            }
            assert_eq!(map.handle_of(device).get(), None);
            let fill = all(load.fill(device, 3).unwrap().unwrap());
            let large = (boundary / (128 << 10)) as usize;
            assert_eq!(fill.len(), large + 10_000);
            for (i, request) in fill[..large].iter().enumerate() {
                assert_eq!(
                    (request.offset, request.bytes),
                    (i as u64 * (128 << 10), 128 << 10)
                );
                assert_eq!(request.placement.get(), ids[0]);
            }
            let small: BTreeSet<u64> = fill[large..].iter().map(|r| r.offset).collect();
            assert!(fill[large..]
                .iter()
                .all(|r| r.bytes == 4096 && r.placement.get() == ids[2]));
            assert!(small.iter().all(|offset| *offset >= boundary));
            // The fill draws 10 000 pages with replacement, so a fraction e^-1 of the pages is not written.
            assert!((6200..6450).contains(&small.len()), "{}", small.len());
        }
    }
    let given = LoadSpec::parse("warp-3stream:shares=1/1/2,requests=400000").unwrap();
    let requests = all(given.build(device, 1).unwrap());
    let random: u64 = requests
        .iter()
        .filter(|r| r.offset >= device * 9 / 10)
        .map(|r| r.bytes)
        .sum();
    let total: u64 = requests.iter().map(|r| r.bytes).sum();
    assert!((random as f64 / total as f64 - 0.5).abs() < 0.02);
}

#[test]
fn warp_1stream_permutes_large_blocks() {
    let load = LoadSpec::parse("warp-1stream:requests=800").unwrap();
    let requests = all(load.build(400 * (128 << 10), 1).unwrap());
    let first: BTreeSet<u64> = requests[..400].iter().map(|r| r.offset).collect();
    assert_eq!(first.len(), 400);
    assert!(requests
        .iter()
        .all(|r| r.bytes == 128 << 10 && r.placement.get().is_none()));
    assert!(
        load.fill(GIB, 1).unwrap().is_none(),
        "its first pass fills the device"
    );
}

#[test]
fn cachelib_writes_buckets_at_random_and_a_log() {
    for (soc, share) in [("4", 0.067), ("20%", 0.119), ("40", 0.127)] {
        let load = LoadSpec::parse(&format!("cachelib:soc={soc},requests=300000")).unwrap();
        let requests = all(load.build(GIB, 1).unwrap());
        let percent: u64 = soc.trim_end_matches('%').parse().unwrap();
        let boundary = GIB * percent / 100 / 4096 * 4096;
        let mut small = 0;
        for request in &requests {
            let is_small = request.offset < boundary;
            assert_eq!(request.bytes, if is_small { 4096 } else { 1 << 20 });
            assert_eq!(request.placement.get(), Some(u16::from(!is_small)));
            small += if is_small { request.bytes } else { 0 };
        }
        let total: u64 = requests.iter().map(|r| r.bytes).sum();
        assert!((small as f64 / total as f64 - share).abs() < 0.01);
    }
}

/// `docs/traces.md` describes the named loads exactly as the code defines them.
#[test]
fn named_loads_are_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/traces.md");
    let page = std::fs::read_to_string(path).unwrap();
    for load in NAMED_LOADS {
        let keys: Vec<String> = load
            .keys
            .iter()
            .map(|(key, default)| format!("`{key}` ({default})"))
            .collect();
        let row = format!("| `{}` | {} | {} |", load.name, keys.join(", "), load.line);
        assert!(page.contains(&row), "{row}");
        let needs_key = load.keys.iter().any(|(_, default)| *default == "needed");
        assert_eq!(LoadSpec::parse(load.name).is_ok(), !needs_key);
        assert!(
            GeneratorSpec::parse(load.name).is_err(),
            "it is more than a stream"
        );
    }
}

/// Any text is either read or rejected. A load that was read is either built or rejected.
#[test]
fn mutated_loads_never_panic() {
    let texts = [
        "uniform:permute=true,size=128k,write=1,range=0%..90%,placement=0,bytes=0.57 + uniform:zoned=80/20:20/80",
        "zipf:theta=1.2,fio=true,range=1M..50%,placement=0x10,bytes=2 + sequential:size=list(4k*1+8k*2),requests=1e3",
        "warp-3stream:dist=zipf1.2,handles=shared,shares=0.5/0.3/0.2,requests=1000",
        "cachelib:soc=20%,soc_bytes=0.2,skew=0.9,loc_io=64k,requests=50",
    ];
    const SYNTAX: &[u8] = b"0123456789.,:=/+% -kMGe_";
    for seed in flashtwin::seeds(2) {
        let mut rng = flashtwin::Rng::new(seed);
        let mut good = 0;
        for _ in 0..20_000 {
            let mut text = texts[rng.below(4) as usize].as_bytes().to_vec();
            for _ in 0..=rng.below(3) {
                let at = rng.below(text.len() as u64) as usize;
                let byte = SYNTAX[rng.below(SYNTAX.len() as u64) as usize];
                match rng.below(3) {
                    0 => text[at] = byte,
                    1 => text.insert(at, byte),
                    _ => drop(text.remove(at)),
                }
            }
            let text = String::from_utf8(text).unwrap();
            let Ok(load) = LoadSpec::parse(&text) else {
                continue;
            };
            assert_eq!(
                LoadSpec::parse(&load.to_string()).as_ref(),
                Ok(&load),
                "{text}"
            );
            let _ = load.handles(GIB);
            if let Ok(mut workload) = load.build(GIB, 1) {
                good += usize::from(workload.next_batch(&mut Vec::new()).is_ok());
            }
        }
        assert!(good > 400, "{good}");
    }
}
