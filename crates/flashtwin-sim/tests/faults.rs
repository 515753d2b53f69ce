//! Members that fail and are replaced during a run.

use std::sync::atomic::Ordering;

use flashtwin::{Array, ArraySpec, Completion, DeviceSpec, Op, Request, Ssd, Time};
use flashtwin_sim::{
    run, Control, Fault, FaultKind, Outcome, Pacing, RunConfig, RunInfo, SimError, Sink, Summary,
};
use flashtwin_workload::GeneratorSpec;

fn array(level: &str, more: &[(&str, &str)]) -> Array {
    let mut all = vec![
        ("array.level", level),
        ("array.members", "harmonia*4"),
        ("array.chunk", "64 KiB"),
        ("member.geometry.chips", "4"),
        ("member.geometry.planes_per_chip", "1"),
        ("member.geometry.blocks_per_plane", "64"),
        ("member.geometry.pages_per_block", "16"),
        ("member.nand.parallel_units", "1"),
    ];
    all.extend(more);
    let text = flashtwin::spec::builtin_array("harmonia-array").expect("it is built in");
    let spec = ArraySpec::with_overrides(text, "harmonia-array", &all).expect("a sound array");
    let mut array = Array::new(&spec);
    array.fill_sequential();
    array
}

fn fault(kind: FaultKind, member: usize, ms: u64) -> Fault {
    Fault {
        at: Time::from_ms(ms),
        kind,
        member,
    }
}

use FaultKind::{Fail, Replace};

const LOAD: &str = "uniform:write=0.3,rate=1500/s,requests=3000";

fn config(faults: &[Fault]) -> RunConfig {
    RunConfig {
        series_interval: Some(Time::from_ms(50)),
        faults: faults.to_vec(),
        ..RunConfig::default()
    }
}

fn outcome(
    array: &mut Array,
    load: &str,
    config: &RunConfig,
    sink: Option<&mut Sink>,
) -> Result<Outcome, SimError> {
    let spec = GeneratorSpec::parse(load).expect("a sound load");
    let mut workload = spec.build(array.exported_bytes(), 5).expect("a sound load");
    run(array, &mut *workload, config, &Control::default(), sink)
}

fn result(array: &mut Array, load: &str, config: &RunConfig) -> Result<Summary, SimError> {
    let mut seen = 0;
    let mut count = |c: &[Completion]| {
        seen += c.len() as u64;
        Ok(())
    };
    let outcome = outcome(array, load, config, Some(&mut count))?;
    assert_eq!(seen, outcome.submitted - config.warmup_requests);
    Ok(Summary::new(array, &outcome, &RunInfo::default()))
}

/// Tests the reports of a failure and a rebuild: in an open loop, in a closed loop, and after a warm-up.
#[test]
fn results_separate_a_failure_from_a_rebuild() {
    let faults = [fault(Replace, 2, 800), fault(Fail, 2, 400)];
    let open = config(&faults);
    let warm = RunConfig {
        warmup_requests: 500,
        ..open.clone()
    };
    let closed = RunConfig {
        pacing: Pacing::Closed { depth: 2 },
        ..open.clone()
    };
    for config in [open, warm, closed] {
        let slow = ("array.rebuild_mib_per_s", "20");
        let load = "uniform:write=0.3,rate=1500/s,requests=6000";
        let s = result(&mut array("raid5", &[slow]), load, &config).expect("a sound run");
        let a = s.array.as_ref().expect("an array");
        let conditions: Vec<&str> = a.phases.iter().map(|p| p.condition).collect();
        assert_eq!(conditions, ["whole", "degraded", "rebuilding", "whole"]);
        assert_eq!((a.phases[0].from_s, a.phases[0].until_s), (0.0, 0.4));
        assert_eq!((a.phases[1].from_s, a.phases[1].until_s), (0.4, 0.8));
        let [r] = &a.rebuilds[..] else {
            panic!("{:?}", a.rebuilds)
        };
        assert_eq!((r.member, r.from_s), (2, 0.8));
        assert_eq!(r.until_s, Some(a.phases[2].until_s));
        assert_eq!(a.phases[3].from_s, a.phases[2].until_s);
        assert_eq!(r.bytes_written, r.bytes);
        assert_eq!(a.pages_rebuilt * 4096, r.bytes);
        assert_eq!(a.pages_read_to_rebuild, 3 * a.pages_rebuilt);
        // Every measured request is in one phase.
        let in_phases: u64 = a.phases.iter().map(|p| p.all.requests).sum();
        assert_eq!(in_phases, s.all.requests);
        for phase in a.phases.iter().take(3) {
            // In an open loop, about as many requests complete in a phase as arrive in it.
            let arrived = 1500.0 * (phase.until_s - phase.from_s);
            let ratio = phase.all.requests as f64 / arrived;
            let open = config.pacing == RunConfig::default().pacing;
            assert!(!open || (0.88..1.12).contains(&ratio), "{phase:?}");
        }
        assert!(a.phases[1].pages_recovered > 0 && a.phases[3].pages_recovered == 0);
        // To read a page of the missing member, the array reads three other pages.
        let reads: Vec<f64> = a.phases.iter().map(|p| p.read_amplification).collect();
        assert!(reads[1] > reads[0] && reads[2] > reads[1], "{reads:?}");
        assert!(a.phases[2].read.p99_us > a.phases[0].read.p99_us);
        let shares: Vec<f64> = s.series.iter().filter_map(|p| p.rebuilt_share).collect();
        assert!(shares.len() >= 10 && shares.is_sorted(), "{shares:?}");
        let whole = shares.iter().filter(|&&share| share == 1.0).count();
        assert_eq!((shares.last(), whole), (Some(&1.0), 1), "{shares:?}");
        let first = s.series.iter().find(|p| p.rebuilt_share.is_some());
        assert_eq!(first.map(|p| (p.t_s * 1e3).round()), Some(800.0));
        assert_eq!(s.requests_failed, 0);
        let shown = s.to_string();
        assert!(shown.contains("  degraded"), "{shown}");
        assert!(shown.contains("member 2: 800.0 ms to"), "{shown}");
    }
}

/// Faults planned for a time after the end of the run change nothing. The results mention them in a warning.
#[test]
fn a_fault_after_the_end_is_left_out() {
    for pacing in [RunConfig::default().pacing, Pacing::Closed { depth: 4 }] {
        let with = |faults: &[Fault]| RunConfig {
            pacing,
            ..config(faults)
        };
        let plain = result(&mut array("raid5", &[]), LOAD, &with(&[])).expect("a sound run");
        let late = with(&[fault(Fail, 0, 100_000)]);
        let mut late = result(&mut array("raid5", &[]), LOAD, &late).expect("a sound run");
        assert_eq!(
            late.warnings,
            ["fail 0@100s did not happen: the run was over before"]
        );
        late.warnings.clear();
        let a = late.array.as_mut().expect("an array");
        assert_eq!(a.phases.len(), 1);
        a.phases.clear();
        assert_eq!(
            serde_json::to_string(&late).expect("numbers"),
            serde_json::to_string(&plain).expect("numbers")
        );
    }
}

#[test]
fn more_failures_than_the_level_allows_are_counted_errors() {
    let faults = [
        fault(Fail, 0, 300),
        fault(Fail, 1, 600),
        fault(Replace, 0, 900),
    ];
    let s = result(&mut array("raid5", &[]), LOAD, &config(&faults)).expect("a sound run");
    let a = s.array.as_ref().expect("an array");
    let conditions: Vec<&str> = a.phases.iter().map(|p| p.condition).collect();
    assert_eq!(conditions, ["whole", "degraded", "lost"]);
    assert!(s.requests_failed > 1500, "{}", s.requests_failed);
    assert_eq!(a.phases[2].requests_failed, s.requests_failed);
    assert_eq!(s.warnings.len(), 1);
    assert!(s.warnings[0].starts_with("replace 0@0.9s did not happen: the array has lost"));
    assert!(s.to_string().contains("the array lost data"));
    assert!(!s.read_only && s.requests_refused == 0);
}

#[test]
fn faults_that_cannot_happen_are_refused_before_the_run() {
    let refused = |faults: &[Fault]| {
        let result = result(&mut array("raid6", &[]), LOAD, &config(faults));
        result.expect_err("it cannot happen").to_string()
    };
    for (faults, words) in [
        (
            &[fault(Fail, 4, 1)][..],
            "fail 4@0.001s: the array has members 0 to 3",
        ),
        (&[fault(Replace, 1, 1)], "has not failed by then"),
        (
            &[fault(Fail, 1, 1), fault(Fail, 1, 2)],
            "has failed already by then",
        ),
        (
            &[fault(Fail, 1, 3), fault(Replace, 1, 2)],
            "has not failed by then",
        ),
    ] {
        let message = refused(faults);
        assert!(message.contains(words), "{message}");
    }
    let demo = flashtwin::spec::builtin("demo").expect("it is built in");
    let mut ssd = Ssd::new(&DeviceSpec::parse(demo, "demo").expect("sound"));
    let spec = GeneratorSpec::parse(LOAD).expect("a sound load");
    let mut load = spec.build(ssd.exported_bytes(), 1).expect("a sound load");
    let faults = config(&[fault(Fail, 0, 1)]);
    let error = run(&mut ssd, &mut *load, &faults, &Control::default(), None);
    let message = error.expect_err("it is no array").to_string();
    assert!(message.contains("needs an array"), "{message}");
}

/// A rebuild that outlasts the workload continues to its end. Meanwhile it can be observed and stopped.
#[test]
fn a_long_rebuild_ends_with_the_run_or_is_stopped() {
    let faults = config(&[fault(Fail, 3, 10), fault(Replace, 3, 20)]);
    let load = "uniform:write=0.3,rate=1500/s,requests=100";
    let slow = [("array.rebuild_mib_per_s", "1")];
    let s = result(&mut array("raid5", &slow), load, &faults).expect("a sound run");
    let a = s.array.expect("an array");
    let until = a.rebuilds[0].until_s.expect("it was finished");
    assert!((12.0..14.0).contains(&until), "{until}");

    let control = Control::default();
    let mut device = array(
        "raid5",
        &[("array.rebuild_mib_per_s", "1"), ("array.chunk", "4 KiB")],
    );
    let spec = GeneratorSpec::parse(load).expect("a sound load");
    let mut workload = spec
        .build(device.exported_bytes(), 5)
        .expect("a sound load");
    let mut stop = |_: &[flashtwin::Completion]| {
        control.stop.store(true, Ordering::Relaxed);
        Ok(())
    };
    let outcome = run(
        &mut device,
        &mut *workload,
        &faults,
        &control,
        Some(&mut stop),
    );
    let outcome = outcome.expect("a sound run");
    assert!(outcome.interrupted);
    assert!(control.rows_to_rebuild.load(Ordering::Relaxed) > 0);
    assert!(device.rebuild_progress().is_some());
    assert_eq!(device.outstanding(), 0);
}

/// Completions that the caller does not take are counted, but not stored. All results are the same as for a caller that
/// takes them.
#[test]
fn completions_that_are_not_taken_are_counted() {
    let with_faults = config(&[fault(Fail, 3, 10), fault(Replace, 3, 20)]);
    let with_warmup = RunConfig {
        warmup_requests: 500,
        ..config(&[])
    };
    let with_history = RunConfig {
        history: true,
        ..config(&[])
    };
    for config in [with_faults, with_warmup, with_history, config(&[])] {
        let taken = result(&mut array("raid5", &[]), LOAD, &config).expect("a sound run");
        let mut array = array("raid5", &[]);
        let outcome = outcome(&mut array, LOAD, &config, None).expect("a sound run");
        let counted = Summary::new(&array, &outcome, &RunInfo::default());
        assert!(array.completions().is_empty());
        assert_eq!(format!("{counted:?}"), format!("{taken:?}"));
        // After the run, the array stores completions again.
        let write = Request {
            arrival: array.now(),
            offset: 0,
            bytes: 4096,
            op: Op::Write,
            fua: false,
            ..Request::default()
        };
        array
            .submit(array.now(), &write, 7)
            .expect("it is on the array");
        while array.step() {}
        assert_eq!(array.completions().len(), 1);
    }
}
