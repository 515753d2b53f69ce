//! The end of the clock: a run that would exceed the range of the clock ends with an error.

use crate::common::{device, load};
use flashtwin::{Ssd, Time};
use flashtwin_sim::{run, Control, Outcome, Pacing, RunConfig, SimError, Speed};
use flashtwin_workload::Workload;

const DAY_S: u64 = 86_400;

/// Returns a device with one chip, whose reads take 1.8 seconds each.
fn slow() -> Ssd {
    let mut ssd = Ssd::new(&device(&[
        ("geometry.chips", "1"),
        ("geometry.blocks_per_plane", "32"),
        ("timing.read_us", "1000000"),
        ("timing.transfer_ns_per_byte", "200000"),
        ("buffer", "none"),
    ]));
    ssd.fill_sequential();
    ssd
}

fn open(speed: f64) -> RunConfig {
    RunConfig {
        pacing: Pacing::Open {
            speed: Speed::try_from(speed).unwrap(),
        },
        ..RunConfig::default()
    }
}

fn run_on(
    ssd: &mut Ssd,
    workload: &mut dyn Workload,
    config: &RunConfig,
) -> Result<Outcome, SimError> {
    run(ssd, workload, config, &Control::default(), None)
}

/// Returns the number of the request that, according to the error, is beyond the end of the clock.
fn late<T>(result: Result<T, SimError>) -> u64 {
    match result.map(|_| ()) {
        Err(SimError::Clock { request }) => request,
        other => panic!("{other:?}"),
    }
}

/// Replays ten requests that were recorded one second apart. The replay stretches each interval to `days` days.
fn apart(ssd: &mut Ssd, days: f64, config: RunConfig) -> Result<Outcome, SimError> {
    let mut requests = load(
        "uniform:write=0,arrival=constant,rate=1/s,requests=10",
        ssd,
        1,
    );
    let config = RunConfig {
        pacing: open(1.0 / (days * DAY_S as f64)).pacing,
        ..config
    };
    run_on(ssd, &mut *requests, &config)
}

#[test]
fn a_request_after_the_end_of_the_clock_is_an_error() {
    // The third request would arrive on day 220, after the end of the clock on day 213.
    assert_eq!(late(apart(&mut slow(), 110.0, RunConfig::default())), 2);
    assert_eq!(late(apart(&mut slow(), 1e9, RunConfig::default())), 1);
    let ends_before = RunConfig {
        requests_max: Some(2),
        ..RunConfig::default()
    };
    assert!(apart(&mut slow(), 110.0, ends_before).is_ok());
    assert!(apart(&mut slow(), 23.0, RunConfig::default()).is_ok());
    let after_warmup = RunConfig {
        warmup_requests: 1,
        ..RunConfig::default()
    };
    assert_eq!(late(apart(&mut slow(), 110.0, after_warmup)), 2);
}

#[test]
fn closed_loops_and_remaining_requests_stop_at_the_end_of_the_clock() {
    // Nine intervals separate the ten requests. The last request arrives one hour before day 213, the end of the clock.
    let mut ssd = slow();
    let days = (213.0 - 1.0 / 24.0) / 9.0;
    assert!(apart(&mut ssd, days, RunConfig::default()).is_ok());
    let mut backlogged = ssd.clone();

    let mut endless = load("uniform:write=0,requests=1000000", &ssd, 2);
    let closed = RunConfig {
        pacing: Pacing::Closed { depth: 4 },
        ..RunConfig::default()
    };
    let reached = late(run_on(&mut ssd, &mut *endless, &closed));
    assert!((2_000..3_000).contains(&reached), "{reached}");

    // All 5000 requests arrive at once. The device cannot complete them all before the end of the clock.
    let mut burst = load(
        "uniform:write=0,arrival=constant,rate=1M/s,requests=5000",
        &backlogged,
        2,
    );
    let at_once = late(run_on(&mut backlogged, &mut *burst, &open(1.0)));
    assert_eq!(at_once, 5000);
    assert!(backlogged.now() < Time::from_s(213 * DAY_S + 10));
}
