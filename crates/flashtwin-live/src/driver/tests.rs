//! The driver in real time with many threads. The devices respond immediately, after a short time, or never.

use std::sync::atomic::AtomicU32;

use flashtwin::{DeviceSpec, Durable, PlacementId, Rng, Ssd};

use super::*;
use crate::twin::made_up::{Does, MadeUp};

fn twin() -> Box<dyn Twin> {
    let profile = flashtwin::spec::builtin("demo").expect("demo is built in");
    let all = [
        ("geometry.blocks_per_plane", "64"),
        ("geometry.chips", "4"),
        ("geometry.reserve_percent", "15"),
    ];
    let mut ssd = Ssd::new(&DeviceSpec::with_overrides(profile, "demo", &all).expect("sound"));
    ssd.fill_sequential();
    Box::new(ssd)
}

fn undo() -> Arc<Undo> {
    Arc::new(Undo::new(Durable::AtOnce, 4096, 1 << 20))
}

fn page(op: Op, number: u64) -> Call {
    Call {
        op,
        offset: number * 4096,
        bytes: 4096,
        fua: false,
        placement: PlacementId::NONE,
    }
}

#[test]
fn a_call_takes_no_less_than_the_device_does() {
    for (times, least_us) in [("1", 25), ("20", 500)] {
        let driver = Driver::start(
            twin(),
            times.parse().expect("a number"),
            undo(),
            None,
            Arc::default(),
        )
        .expect("threads");
        let began = Instant::now();
        driver.call(&page(Op::Read, 100), 0).expect("completes");
        assert!(
            began.elapsed() >= Duration::from_micros(least_us),
            "{times}"
        );
        assert_eq!(driver.report().lateness.calls, 1);
        assert_eq!(driver.report().waiting, 0);
        assert!(driver.stop(|_| ()).is_some());
    }
}

#[test]
fn each_of_many_threads_gets_its_response() {
    for seed in flashtwin::seeds(1) {
        let driver = Driver::start(twin(), Dilation::default(), undo(), None, Arc::default())
            .expect("threads");
        let completed = AtomicU32::new(0);
        thread::scope(|scope| {
            for thread in 0..12 {
                let (driver, completed) = (&driver, &completed);
                scope.spawn(move || {
                    let mut rng = Rng::new(seed * 12 + thread);
                    for _ in 0..150 {
                        let op = [Op::Read, Op::Write, Op::Trim][rng.below(3) as usize];
                        driver
                            .call(&page(op, rng.below(50_000)), 0)
                            .expect("completes");
                        completed.fetch_add(1, Ordering::Relaxed);
                    }
                    let flush = Call {
                        op: Op::Flush,
                        offset: 0,
                        bytes: 0,
                        fua: false,
                        placement: PlacementId::NONE,
                    };
                    driver.call(&flush, 0).expect("completes");
                });
            }
        });
        assert_eq!(completed.into_inner(), 12 * 150);
        let report = driver.report();
        assert_eq!(report.lateness.calls, 12 * 151);
        assert_eq!(report.responses.flush.requests, 12);
        assert!(driver
            .stop(|twin| assert!(twin.next_event().is_none()))
            .is_some());
    }
}

#[test]
fn a_sleeping_waiter_is_woken_in_time() {
    let (send, results) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let driver = Driver::start(twin(), Dilation::default(), undo(), None, Arc::default())
            .expect("threads");
        driver.shared.pollers.are_crowded(u64::MAX);
        for number in 0..20 {
            // After this time, the pacer sleeps until it is woken.
            thread::sleep(Duration::from_millis(3));
            driver
                .call(&page(Op::Read, number * 100), 0)
                .expect("completes");
        }
        send.send(driver.report().lateness.calls)
            .expect("the test listens");
    });
    let calls = results.recv_timeout(Duration::from_secs(20));
    assert_eq!(calls, Ok(20), "no call was reported");
}

#[test]
fn the_hint_is_released_without_calls() {
    let path = std::env::temp_dir().join(format!("flashtwin-driver-{}", std::process::id()));
    std::fs::write(&path, "").expect("a file");
    let hint = LatencyHint::open(&path);
    let driver = Driver::start_with(
        hint,
        twin(),
        Dilation::default(),
        undo(),
        None,
        Arc::default(),
    )
    .expect("threads");
    for round in 1..=2 {
        for number in 0..20 {
            driver
                .call(&page(Op::Read, number * 100), 0)
                .expect("completes");
        }
        assert!(driver.shared.hint.is_held());
        let began = Instant::now();
        while driver.shared.hint.is_held() && began.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(5));
        }
        // In each round, setting and releasing the hint writes 8 bytes. There may be more, if the hint was released and
        // set again because this thread made no calls for a long time.
        let wishes = std::fs::read(&path).expect("a file");
        assert!(wishes.len() >= round * 8 && wishes.len().is_multiple_of(8));
    }
    drop(driver);
    std::fs::remove_file(&path).expect("it is there");
}

#[test]
fn more_threads_than_pollers_all_get_their_responses() {
    for seed in flashtwin::seeds(1) {
        let driver = Driver::start(
            twin(),
            "30".parse().expect("a number"),
            undo(),
            None,
            Arc::default(),
        )
        .expect("threads");
        thread::scope(|scope| {
            for thread in 0..100 {
                let driver = &driver;
                scope.spawn(move || {
                    let mut rng = Rng::new(seed * 100 + thread);
                    for _ in 0..5 {
                        let number = rng.below(50_000);
                        driver.call(&page(Op::Read, number), 0).expect("completes");
                    }
                });
            }
        });
        assert!(driver.shared.pollers.none(), "all places are given back");
        assert_eq!(driver.report().lateness.calls, 500);
    }
}

#[test]
fn a_call_longer_than_a_batch_is_done_in_parts() {
    let driver = Driver::start(
        twin(),
        "0.001".parse().expect("a number"),
        undo(),
        None,
        Arc::default(),
    )
    .expect("threads");
    let bytes = 150 << 20;
    let call = Call {
        op: Op::Trim,
        offset: 4096,
        bytes,
        fua: false,
        placement: PlacementId::NONE,
    };
    driver.call(&call, 0).expect("completes");
    let report = driver.report();
    assert_eq!(report.responses.trim.bytes, bytes);
    assert_eq!(report.lateness.calls, 3, "0 to 64 MiB, to 128, to 150");
    let beyond = driver.call(&page(Op::Read, u64::MAX / 4096), 0);
    assert!(matches!(beyond, Err(Failure::Beyond)));
}

fn made_up(does: Does) -> Driver {
    let twin = Box::new(MadeUp::new(does));
    Driver::start(twin, Dilation::default(), undo(), None, Arc::default()).expect("threads")
}

/// Returns the results of calls by four threads. Panics if a call does not return within a time that suffices on any
/// machine.
fn outcomes(driver: &Arc<Driver>) -> Vec<Result<(), Failure>> {
    let (send, results) = std::sync::mpsc::channel();
    for number in 0..4 {
        let (driver, send) = (driver.clone(), send.clone());
        thread::spawn(move || {
            let call = || driver.call(&page(Op::Read, number), 0);
            // The thread that runs the model into the bug also panics.
            let outcome = catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(Failure::Lost));
            send.send(outcome).expect("the test listens");
        });
    }
    let wait = || results.recv_timeout(Duration::from_secs(20));
    (0..4)
        .map(|_| wait().expect("a call never returns"))
        .collect()
}

#[test]
fn a_bug_in_the_model_fails_waiting_calls() {
    for does in [
        Does::BreaksLater { asked: false },
        Does::BreaksAtTheSecond { first: None },
    ] {
        let driver = Arc::new(made_up(does));
        let outcomes = outcomes(&driver);
        assert!(
            outcomes.iter().all(Result::is_err),
            "completed by a broken device"
        );
        let again = driver.call(&page(Op::Read, 0), 0);
        assert!(matches!(again, Err(Failure::Lost)));
        assert!(driver.stop(|_| ()).is_none());
    }
}

#[test]
fn a_bug_in_a_power_loss_fails_waiting_calls() {
    let driver = Arc::new(made_up(Does::BreaksInACut));
    let cutting = driver.clone();
    thread::spawn(move || {
        while cutting.report().waiting < 4 {
            thread::yield_now();
        }
        cutting.cut_power(|_, _| ())
    });
    assert!(outcomes(&driver).iter().all(Result::is_err));
}

#[test]
fn device_time_without_power_delays_no_call() {
    let driver = Arc::new(made_up(Does::RestsForHours { due: None }));
    let before = driver.report();
    driver.cut_power(|_, unfinished| assert_eq!(unfinished, 0));
    let cuts = driver.cuts();
    let (send, results) = std::sync::mpsc::channel();
    let calling = driver.clone();
    thread::spawn(move || send.send(calling.call(&page(Op::Read, 0), cuts).is_ok()));
    assert_eq!(results.recv_timeout(Duration::from_secs(20)), Ok(true));
    let after = driver.report();
    assert!(after.elapsed_s - before.elapsed_s < 60.0 && after.recent.device_s < 60.0);
    assert_eq!(after.lateness.calls, 1);
}
