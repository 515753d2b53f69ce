//! Warm-ups that end once the run is steady.

use crate::common::run_all;
use flashtwin::{Completion, DeviceSpec, Op, Request, Rng, Ssd, Time};
use flashtwin_sim::{run, Control, Outcome, RunConfig, SimError, WorkPhase};
use flashtwin_workload::{Workload, WorkloadError};

/// A workload of one-page writes. `pages` maps the number of a request to the number of pages in its address range.
struct Writes<F> {
    pages: F,
    gap: Time,
    count: u64,
    next: u64,
    rng: Rng,
    known: bool,
}

impl<F: Fn(u64) -> u64 + Send> Workload for Writes<F> {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        let upto = (self.next + 333).min(self.count);
        let begin = std::mem::replace(&mut self.next, upto);
        out.extend((begin..upto).map(|i| Request {
            arrival: Time(self.gap.0 * i),
            offset: self.rng.below((self.pages)(i)) * 4096,
            bytes: 4096,
            op: Op::Write,
            fua: false,
            ..Request::default()
        }));
        Ok((upto - begin) as usize)
    }

    fn requests_total(&self) -> Option<u64> {
        self.known.then_some(self.count)
    }

    fn describe(&self) -> String {
        "writes".into()
    }
}

fn writes<F: Fn(u64) -> u64 + Send>(seed: u64, pages: F, gap_us: u64, count: u64) -> Writes<F> {
    Writes {
        pages,
        gap: Time::from_us(gap_us),
        count,
        next: 0,
        rng: Rng::new(seed),
        known: true,
    }
}

/// Returns a device with a buffer of 256 pages.
fn device() -> Ssd {
    let toml = flashtwin::spec::builtin("demo").expect("it is built in");
    let keys = [("buffer.capacity", "1 MiB"), ("buffer.policy", "lru")];
    let spec = DeviceSpec::with_overrides(toml, "demo", &keys).expect("a sound device");
    let mut ssd = Ssd::new(&spec);
    ssd.fill_steady(1);
    ssd
}

fn result<F: Fn(u64) -> u64 + Send>(
    mut workload: Writes<F>,
    config: &RunConfig,
) -> (Outcome, Vec<Completion>) {
    run_all(&mut device(), &mut workload, config)
}

fn until_steady(first: u64, most: u64) -> RunConfig {
    RunConfig {
        warmup_requests: first,
        warmup_requests_max: Some(most),
        ..RunConfig::default()
    }
}

/// Number of pages to which the loads write, unless a load changes its range. The buffer holds an eighth of them.
const RANGE: u64 = 8 * 256;

/// An eighth of the writes hit the buffer. By chance, the hit ratio varies by 3 % between parts of 10 000 requests.
/// Between parts of 1000 requests, it varies by more than half of the variation that the criterion for a steady run
/// permits.
#[test]
fn a_load_that_changes_is_not_steady_until_long_after() {
    for seed in flashtwin::seeds(2) {
        let config = RunConfig {
            requests_max: Some(130_000),
            ..until_steady(100_000, 800_000)
        };
        let after = |change: u64| {
            let pages = move |i| if i < change { RANGE } else { RANGE / 4 };
            let (outcome, completions) = result(writes(seed, pages, 2000, 2_000_000), &config);
            let steady = outcome.steady.expect("it was asked for");
            assert!(steady.is_met, "{change}: {:?}", steady.missed);
            assert_eq!(completions.len(), 30_000, "{change}");
            assert_eq!(
                outcome.submitted,
                steady.after_requests + 30_000,
                "{change}"
            );
            steady.after_requests
        };
        assert_eq!(after(0), 100_000);
        assert_eq!(after(75_000), 200_000);
        assert_eq!(after(150_000), 100_000, "the future is not known");
        let (outcome, _) = result(
            writes(seed, |_| RANGE, 2000, 60_000),
            &until_steady(100, 3200),
        );
        let steady = outcome.steady.expect("it was asked for");
        assert!(
            steady.after_requests > 400,
            "a buffer of 256 pages was not replaced before 400"
        );
    }
}

#[test]
fn a_load_that_never_is_steady_counts_after_the_maximum() {
    for seed in flashtwin::seeds(2) {
        let pages = |i| RANGE - RANGE * 9 / 10 * i / 20_000;
        let (outcome, completions) = result(
            writes(seed, pages, 2000, 20_000),
            &until_steady(1_000, 9_000),
        );
        let steady = outcome.steady.expect("it was asked for");
        assert!(!steady.is_met);
        assert_eq!(steady.missed, Some("the hit ratio varied"));
        assert_eq!(steady.after_requests, 8_000);
        assert_eq!(completions.len(), 12_000);
    }
}

#[test]
fn a_queue_that_grows_is_not_steady() {
    for seed in flashtwin::seeds(2) {
        let (outcome, _) = result(
            writes(seed, |_| 1 << 14, 10, 20_000),
            &until_steady(1_000, 8_000),
        );
        let steady = outcome.steady.expect("it was asked for");
        assert_eq!(steady.missed, Some("more requests arrived than completed"));
    }
}

#[test]
fn a_steady_warm_up_ends_like_a_counted_one() {
    for seed in flashtwin::seeds(2) {
        let pages = |i| if i < 1_500 { RANGE } else { RANGE / 4 };
        let (until, seen) = result(
            writes(seed, pages, 2000, 12_000),
            &until_steady(2_000, 16_000),
        );
        let fixed = RunConfig {
            warmup_requests: 4_000,
            ..RunConfig::default()
        };
        let (plain, completions) = result(writes(seed, pages, 2000, 12_000), &fixed);
        assert_eq!(until.steady.as_ref().map(|s| s.after_requests), Some(4_000));
        assert_eq!(format!("{seen:?}"), format!("{completions:?}"));
        let without = Outcome {
            steady: None,
            ..until
        };
        assert_eq!(format!("{without:?}"), format!("{plain:?}"));
    }
}

/// A warm-up that ends when the run is steady must leave enough requests to measure: as many as the shortest warm-up,
/// or half of a short workload. Here, it can end after 3000, 6000 or 12 000 of the 20 000 requests, but after 12 000,
/// too few requests would be left. The load drifts; whether the drift is detected earlier depends on chance.
#[test]
fn a_steady_warm_up_leaves_enough_of_a_short_workload() {
    let drifting = |i| RANGE - RANGE * 9 / 10 * i / 20_000;
    for seed in flashtwin::seeds(8) {
        let after = |config: &RunConfig| {
            let (outcome, completions) = result(writes(seed, drifting, 2000, 20_000), config);
            let steady = outcome.steady.expect("it was asked for");
            (steady.after_requests, completions.len())
        };
        let (begun, measured) = after(&until_steady(3_000, 1 << 40));
        assert!([3_000, 6_000].contains(&begun), "seed {seed}: {begun}");
        assert_eq!(measured as u64, 20_000 - begun, "seed {seed}");
        let most = RunConfig {
            requests_max: Some(10_000),
            ..until_steady(3_000, 1 << 40)
        };
        let (begun, measured) = after(&most);
        assert!(
            [3_000, 6_000, 12_000].contains(&begun),
            "seed {seed}: {begun}"
        );
        assert_eq!(measured, 7_000, "seed {seed}");
    }
}

#[test]
fn senseless_limits_are_refused() {
    let refused = |config: &RunConfig, known| {
        let mut workload = writes(0, |_| RANGE, 2000, 2_000);
        workload.known = known;
        match run(
            &mut device(),
            &mut workload,
            config,
            &Control::default(),
            None,
        ) {
            Err(SimError::Config(message)) => message,
            other => panic!("{other:?}"),
        }
    };
    for (first, most) in [(0, 100), (9, 100), (100, 99)] {
        let message = refused(&until_steady(first, most), true);
        assert!(message.contains("until the run is steady"), "{message}");
    }
    let message = refused(&until_steady(1_500, 1 << 40), false);
    assert!(message.contains("the run has 2000"), "{message}");
}

/// A workload that records the phase of the run whenever a batch of requests is read.
struct Phases<'a, W> {
    writes: W,
    control: &'a Control,
    seen: Vec<WorkPhase>,
}

impl<W: Workload> Workload for Phases<'_, W> {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        let phase = self.control.phase();
        if self.seen.last() != Some(&phase) {
            self.seen.push(phase);
        }
        self.writes.next_batch(out)
    }

    fn requests_total(&self) -> Option<u64> {
        self.writes.requests_total()
    }

    fn describe(&self) -> String {
        self.writes.describe()
    }
}

#[test]
fn control_has_the_phase_of_a_run() {
    for (warmup_requests, phases) in [
        (0, &[WorkPhase::Main][..]),
        (10_000, &[WorkPhase::Warmup, WorkPhase::Main]),
    ] {
        let control = Control::default();
        let mut load = Phases {
            writes: writes(1, |_| RANGE, 2000, 20_000),
            control: &control,
            seen: vec![],
        };
        let config = RunConfig {
            warmup_requests,
            ..RunConfig::default()
        };
        run(&mut device(), &mut load, &config, &control, None).expect("no trouble");
        assert_eq!(load.seen, phases);
    }
}
