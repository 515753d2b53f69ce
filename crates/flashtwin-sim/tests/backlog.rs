//! Open loops in which requests arrive faster than the device completes them.

use crate::common::{device, load};
use flashtwin::{Op, Request, Ssd, Time};
use flashtwin_sim::{run, Backlog, Control, Outcome, Pacing, RunConfig, SimError, Speed};
use flashtwin_workload::{Workload, WorkloadError};

/// Largest number of requests that may be pending in these tests.
const WAITING_MAX: u64 = 20_000;

fn run_at(text: &str, pacing: Pacing) -> Result<Outcome, SimError> {
    let mut ssd = Ssd::new(&device(&[("buffer", "none")]));
    let mut load = load(text, &ssd, 1);
    run_on(&mut ssd, &mut *load, pacing)
}

fn run_on(ssd: &mut Ssd, load: &mut dyn Workload, pacing: Pacing) -> Result<Outcome, SimError> {
    ssd.fill_sequential();
    let config = RunConfig {
        pacing,
        waiting_max: WAITING_MAX,
        ..RunConfig::default()
    };
    run(ssd, load, &config, &Control::default(), None)
}

fn at_speed(speed: f64) -> Pacing {
    let speed = Speed::try_from(speed).expect("a sound speed");
    Pacing::Open { speed }
}

fn backlog(ended: Result<Outcome, SimError>) -> Backlog {
    match ended {
        Err(SimError::Behind(backlog)) => *backlog,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it ran"),
    }
}

#[test]
fn the_speed_named_for_a_load_that_is_too_fast_is_one_that_the_device_follows() {
    let text = "uniform:write=0,size=4k,rate=400k/s,requests=200000";
    let refused = run_at(text, at_speed(2.0));
    let message = refused.as_ref().err().map(ToString::to_string);
    let message = message.expect("the device is slower");
    assert!(message.contains("requests per second"), "{message}");
    assert!(message.contains("--queue-depth"), "{message}");
    let found = backlog(refused);
    let named = message.split_once("--speed ").expect("a speed is named").1;
    let named = named.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    let named = named.expect("a number") / found.speed;
    assert!((0.9..1.1).contains(&named), "{message}, {found:?}");
    assert!(found.waiting > WAITING_MAX && found.submitted < 100_000);
    let rate = found.submitted_per_s / 800e3;
    assert!((0.95..1.05).contains(&rate), "{found:?}");
    run_at(text, at_speed(found.speed * 0.9)).expect("the device follows");
    run_at(text, Pacing::Closed { depth: 32 }).expect("a closed loop never waits");
}

/// Requests that all arrive at one instant.
struct Burst {
    left: u64,
    bytes: u64,
}

impl Workload for Burst {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        let count = self.left.min(1000);
        self.left -= count;
        out.extend((0..count).map(|i| Request {
            arrival: Time::ZERO,
            offset: i * 4096,
            bytes: self.bytes,
            op: Op::Read,
            fua: false,
            ..Request::default()
        }));
        Ok(count as usize)
    }

    fn requests_total(&self) -> Option<u64> {
        None
    }

    fn describe(&self) -> String {
        "a burst".into()
    }
}

fn burst(left: u64, bytes: u64) -> Result<Outcome, SimError> {
    let mut ssd = Ssd::new(&device(&[]));
    run_on(&mut ssd, &mut Burst { left, bytes }, at_speed(1.0))
}

#[test]
fn a_burst_within_the_bound_runs_and_one_beyond_it_is_refused() {
    burst(WAITING_MAX, 4096).expect("so many may wait");
    let found = backlog(burst(u64::MAX, 4096));
    assert!(found.waiting <= WAITING_MAX + 1000, "{found:?}");
    assert!(
        found.completed_per_s > 0.0 && found.speed == 0.0,
        "{found:?}"
    );
    let message = SimError::Behind(Box::new(found)).to_string();
    assert!(message.contains("at one instant"), "{message}");
    assert!(!message.contains("give --speed"), "{message}");
}

#[test]
fn fewer_large_requests_may_wait_than_small_ones() {
    let found = backlog(burst(u64::MAX, 1 << 20));
    assert!(found.waiting <= WAITING_MAX / 128 + 1000, "{found:?}");
}
