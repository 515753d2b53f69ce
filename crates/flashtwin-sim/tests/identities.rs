//! Pairs of runs that must have the same result for every request.

use crate::common::{device, essence, load, run_all};
use flashtwin::{Cause, DeviceSpec, Ssd};
use flashtwin_sim::{
    load_snapshot, precondition, save_snapshot, Control, Outcome, Pacing, Precondition, RunConfig,
    RunInfo, Speed, Summary,
};

/// A load with requests of all kinds and sizes.
const MIXED: &str =
    "zipf:theta=0.9,size=exp(12k),align=512,write=0.6,trim=0.03,flush=0.02,fua=0.1,\
                     range=64M,rate=4000/s,requests=15000";

fn open(speed: f64) -> Pacing {
    let speed = Speed::try_from(speed).expect("a speed");
    Pacing::Open { speed }
}

fn small(overrides: &[(&str, &str)]) -> DeviceSpec {
    let mut all = vec![
        ("geometry.chips", "2"),
        ("geometry.blocks_per_plane", "64"),
        ("geometry.reserve_percent", "15"),
        ("buffer.capacity", "256KiB"),
        ("buffer.power_loss_protection", "false"),
    ];
    all.extend_from_slice(overrides);
    device(&all)
}

const MODERN: [(&str, &str); 4] = [
    ("nand.backend", "modern"),
    ("geometry.channels", "1"),
    ("nand.copy_back", "false"),
    ("ftl.placement", "dynamic"),
];

/// Asserts that two runs are equal. The message shows only the first requests that differ.
fn assert_same(what: &str, got: &[(u64, u64, u64, u32)], expected: &[(u64, u64, u64, u32)]) {
    let parts_at = got.iter().zip(expected).position(|(a, b)| a != b);
    if let Some(i) = parts_at {
        panic!(
            "{what}: completion {i} is {:?}, expected {:?} (tag, arrival, done, hits)",
            got[i], expected[i]
        );
    }
    assert_eq!(got.len(), expected.len(), "{what}");
}

/// Result of a run: its summary as JSON, and every completion.
type Result = (String, Vec<(u64, u64, u64, u32)>);

fn result(ssd: &Ssd, run: &(Outcome, Vec<flashtwin::Completion>)) -> Result {
    let summary = Summary::new(
        ssd,
        &run.0,
        &RunInfo {
            seed: 5,
            ..RunInfo::default()
        },
    );
    let json = serde_json::to_string_pretty(&summary).expect("a summary is plain data");
    assert!(!summary.to_string().is_empty());
    (json, essence(&run.1))
}

fn run_spec(spec: &DeviceSpec, kind: Precondition, text: &str, config: &RunConfig) -> Result {
    let mut ssd = Ssd::new(spec);
    precondition(&mut ssd, kind, 5, &Control::default()).expect("a sound device");
    let mut workload = load(text, &ssd, 5);
    let run = run_all(&mut ssd, &mut *workload, config);
    ssd.check().expect("a consistent map");
    result(&ssd, &run)
}

fn with_series() -> RunConfig {
    RunConfig {
        series_interval: Some(flashtwin::Time::from_ms(100)),
        ..RunConfig::default()
    }
}

#[test]
fn the_same_run_twice_gives_the_same_bytes_on_any_thread() {
    for overrides in [&[("buffer.policy", "gcar-cflru")][..], &MODERN] {
        let spec = small(overrides);
        for kind in [Precondition::Steady, Precondition::Random { times: 1.5 }] {
            let first = run_spec(&spec, kind, MIXED, &with_series());
            std::thread::scope(|scope| {
                let runs =
                    [(); 2].map(|()| scope.spawn(|| run_spec(&spec, kind, MIXED, &with_series())));
                for run in runs {
                    let (json, completions) = run.join().expect("no panic");
                    assert_same("a second run", &completions, &first.1);
                    assert_eq!(json, first.0);
                }
            });
        }
    }
}

#[test]
fn a_loaded_snapshot_continues_as_the_saved_device_does() {
    for overrides in [&[][..], &[("nand.parallel_units", "2")], &MODERN] {
        let spec = small(overrides);
        let kinds = [
            Precondition::Sequential,
            Precondition::Steady,
            Precondition::Random { times: 1.3 },
        ];
        for (seed, kind) in flashtwin::seeds(2).flat_map(|seed| kinds.map(|kind| (seed, kind))) {
            let mut saved = Ssd::new(&spec);
            precondition(&mut saved, kind, seed, &Control::default()).expect("a sound device");
            let name = format!(
                "flashtwin-{}-{}-{kind}-{seed}",
                std::process::id(),
                overrides.len()
            );
            let path = std::env::temp_dir().join(name.replace(':', "-"));
            save_snapshot(&path, &saved, "test").expect("room on the disk");
            let mut loaded = Ssd::new(&spec);
            let made_by = load_snapshot(&path, &mut loaded);
            std::fs::remove_file(&path).expect("it was saved");
            assert_eq!(made_by.expect("just saved"), "test");
            let [of_saved, of_loaded] = [saved, loaded].map(|mut ssd| {
                let mut workload = load(MIXED, &ssd, seed);
                let run = run_all(&mut ssd, &mut *workload, &with_series());
                result(&ssd, &run)
            });
            assert_same(&format!("{kind} {overrides:?}"), &of_loaded.1, &of_saved.1);
            assert_eq!(of_loaded.0, of_saved.0, "{kind} {overrides:?}");
        }
    }
}

/// Runs a load and returns only the completions. Summaries contain the names of the policies, so they would differ.
fn completions(
    policy: &[(&str, &str)],
    kind: Precondition,
    config: &RunConfig,
) -> Vec<(u64, u64, u64, u32)> {
    run_spec(&small(policy), kind, MIXED, config).1
}

#[test]
fn gcar_without_gc_is_its_base_policy() {
    // This run is so short that GC does not begin on a large device that was never written.
    let large = ("geometry.blocks_per_plane", "576");
    let probe = small(&[large]);
    let mut ssd = Ssd::new(&probe);
    let mut workload = load(MIXED, &ssd, 5);
    let outcome = run_all(&mut ssd, &mut *workload, &RunConfig::default()).0;
    assert_eq!(
        outcome.flash.flash.count(Cause::Erase),
        0,
        "this load must not collect"
    );
    for base in ["lru", "cflru"] {
        for evict in ["blocking", "background"] {
            let run = |policy: &str| {
                let overrides = [large, ("buffer.policy", policy), ("buffer.evict", evict)];
                completions(&overrides, Precondition::None, &RunConfig::default())
            };
            assert_same(
                &format!("{base} {evict}"),
                &run(&format!("gcar-{base}")),
                &run(base),
            );
        }
    }
}

#[test]
fn gcar_with_gc_differs_from_its_base_policy() {
    // Without GC, GCaR-LRU equals LRU (see the test above). With GC, they must differ. This test uses a tenth of the
    // request rate, because at the full rate every page is in flight, so that no policy has a choice.
    let slower = RunConfig {
        pacing: open(0.1),
        ..RunConfig::default()
    };
    let run = |policy| completions(&[("buffer.policy", policy)], Precondition::Steady, &slower);
    assert!(run("lru") != run("gcar-lru"));
}

#[test]
fn cflru_of_window_0_is_lru() {
    for kind in [Precondition::None, Precondition::Steady] {
        for pacing in [open(3.0), Pacing::Closed { depth: 12 }] {
            let config = RunConfig {
                pacing,
                ..RunConfig::default()
            };
            let lru = completions(&[("buffer.policy", "lru")], kind, &config);
            let cflru = [("buffer.policy", "cflru"), ("buffer.window", "0")];
            assert_same(
                &format!("{kind} {pacing:?}"),
                &completions(&cflru, kind, &config),
                &lru,
            );
            let wide = [("buffer.policy", "cflru"), ("buffer.window", "64")];
            assert!(
                completions(&wide, kind, &config) != lru,
                "{kind} {pacing:?}"
            );
        }
    }
}

#[test]
fn a_span_ends_the_submissions_and_nothing_else() {
    let span = flashtwin::Time::from_ms(400);
    for pacing in [open(1.0), Pacing::Closed { depth: 12 }] {
        let config = |span_max, warmup_requests| RunConfig {
            pacing,
            span_max,
            warmup_requests,
            ..RunConfig::default()
        };
        let whole = completions(&[], Precondition::Steady, &config(None, 0));
        let cut = completions(&[], Precondition::Steady, &config(Some(span), 0));
        let within = whole.iter().filter(|c| c.1 < span.0).count();
        assert!(within > 100 && within < whole.len() / 2, "{pacing:?}");
        assert_eq!(cut.len(), within, "{pacing:?}");
        let mut tags: Vec<u64> = cut.iter().map(|c| c.0).collect();
        tags.sort_unstable();
        assert!(tags.into_iter().eq(0..within as u64), "{pacing:?}");
        // Requests that completed before the end of the span completed at the same times as in the run without a span.
        let completed = cut.iter().take_while(|c| c.2 < span.0).count();
        assert_same(
            &format!("{pacing:?}"),
            &cut[..completed],
            &whole[..completed],
        );

        let warmed = completions(&[], Precondition::Steady, &config(Some(span), 700));
        let first = warmed.iter().map(|c| c.1).min().expect("some requests");
        let last = warmed.iter().map(|c| c.1).max().expect("some requests");
        assert!(
            last - first < span.0 && last - first > span.0 * 9 / 10,
            "{pacing:?}"
        );
    }
}

/// The number of pages is conserved while blocks change between SLC and TLC mode. A block in SLC mode holds fewer pages
/// than become free when it is erased.
#[test]
fn pages_balance_while_blocks_change_their_mode() {
    let spec = device(&[
        ("nand.backend", "modern"),
        ("geometry.channels", "2"),
        ("geometry.blocks_per_plane", "64"),
        ("nand.copy_back", "false"),
        ("nand.cell", "tlc"),
        ("nand.pslc_percent", "20"),
        ("ftl.summary_page", "false"),
        ("ftl.placement", "dynamic"),
    ]);
    let mut ssd = Ssd::new(&spec);
    let config = RunConfig {
        pacing: Pacing::Closed { depth: 8 },
        check_requests: Some(100),
        ..RunConfig::default()
    };
    let pages = u64::from(spec.exported_pages());
    let mut folds = 0;
    for text in ["sequential:write=1,size=128k", "uniform:write=1"] {
        let mut workload = load(&format!("{text},requests={}", pages / 16), &ssd, 1);
        let (outcome, _) = run_all(&mut ssd, &mut *workload, &config);
        folds += outcome.flash.flash.count(Cause::Fold);
    }
    assert!(folds > 0, "blocks have left the mode");
}
